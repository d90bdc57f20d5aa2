"""Chapter 3: does a masked language model tie the two spellings of a synset?

One model for each corpus, from synonyms that share every context to synonyms that share none,
watched along its pretraining: its loss over the exact floor, and the ties of each layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from unmasked.alphabets_posterior import floor
from unmasked.experiments.two_alphabets import Exam, Keep, SourceConfig, pretrained
from unmasked.masking import IGNORE_INDEX

Row = Mapping[str, object]
NATS, SHARE, COSINE = "nats", "share", "cosine"
_UNITS = {"cosine": COSINE, "control": COSINE, "neighbour": SHARE, "chance": SHARE}


class TiesConfig(BaseModel):
    """The source, and the corpora: how likely a token is to be in its domain's alphabet."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    source: SourceConfig
    keeps: Annotated[tuple[Keep, ...], Field(min_length=1)]


def compute_synonym_ties(config: TiesConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Floor, loss and excess loss (nats), accuracy, and ties by layer, for each corpus and step."""
    for keep in config.keeps:
        exam = Exam(config.source, keep)
        floor, masked = masked_floor(exam)
        yield _row("floor", floor, NATS, masked, keep)
        for point in pretrained(config.source, keep, seed).points:
            where = {"step": point.step, "tokens": point.tokens}
            loss = point.metrics["loss"]
            yield _row("loss", loss, NATS, masked, keep, **where)
            yield _row("excess_loss", loss - floor, NATS, masked, keep, **where)
            yield _row("accuracy", point.metrics["accuracy"], SHARE, masked, keep, **where)
            for name, value in point.metrics.items():
                metric, _, layer = name.partition(" ")
                if layer:
                    n = config.source.vocabulary_size if layer == "0" else exam.synsets.size
                    at = {**where, "layer": int(layer)}
                    yield _row(metric, value, _UNITS[metric], n, keep, **at)


def masked_floor(exam: Exam) -> tuple[float, int]:
    """Loss in nats of the exact posterior on the exam's masks, and the number of masks."""
    language = exam.config.language(exam.keep)
    nats = []
    for batch in exam.batches:
        labels, seen = (batch.inputs[name].numpy() for name in ("labels", "input_ids"))
        hidden = labels != IGNORE_INDEX
        nats.append(floor(language, np.where(hidden, labels, seen), hidden))
    flat = np.concatenate(nats)
    return float(flat.mean()), len(flat)


def _row(metric: str, value: float, unit: str, n: int, keep: float, **where: object) -> Row:
    known = {"keep": keep, "step": None, "tokens": None, "layer": None, **where}
    return {**known, "metric": metric, "value": value, "unit": unit, "n": n}
