"""Chapter 3: why do tied synonyms not carry a label fully from one alphabet to the other?

Fine-tuning on A moves the embeddings of A and leaves those of B where they were. If that drift is
what opens the gap, freezing the table of embeddings must close it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch.nn import functional as F

from unmasked.experiments.transfer import (
    CONDITIONS,
    SHARE,
    TransferConfig,
    finetuned,
    started,
)
from unmasked.experiments.two_alphabets import MIX

Row = Mapping[str, object]
COSINE = "cosine"


def compute_frozen_embeddings(config: TransferConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Accuracy by condition after training on A-D1 alone, with embeddings free and frozen.

    At each size of the plans. Rows too: the gap between A-D1 and B-D1, and the mean cosine of
    synonyms' embeddings before and after.
    """
    for size in (size for plan in config.plans for size in plan.sizes):
        for frozen in (False, True):
            where = {"frozen": frozen, "size": size}
            classifier = started(config.source, "pretrained", MIX, seed)
            table = classifier.get_input_embeddings().weight
            before = _tie(table, config.source.vocabulary_size)
            table.requires_grad_(not frozen)
            found = finetuned(config, classifier, 0.0, size, seed)
            after = _tie(table, config.source.vocabulary_size)
            n = config.test_sequences
            for name in CONDITIONS:
                yield _row("accuracy", found[name], SHARE, n, **where, condition=name)
            yield _row("gap", found["A-D1"] - found["B-D1"], SHARE, n, **where)
            for metric, value in (("tie_before", before), ("tie_after", after)):
                yield _row(metric, value, COSINE, config.source.vocabulary_size, **where)


@torch.no_grad()
def _tie(table: torch.Tensor, synsets: int) -> float:
    """Mean cosine of the embeddings of A_i and B_i."""
    cosines = F.cosine_similarity(table[:synsets], table[synsets : 2 * synsets])
    return float(cosines.mean())


def _row(metric: str, value: float, unit: str, n: int, **where: object) -> Row:
    known = {"frozen": None, "size": None, "condition": None, **where}
    return {**known, "metric": metric, "value": value, "unit": unit, "n": n}
