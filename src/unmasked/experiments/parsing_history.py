"""Chapter 2: when in its training does the book model come to its trees?

The model's own training is read back at several steps, and beside it a twin whose training text
had its words shuffled within each sequence (Sinha et al. 2021, arXiv 2104.06644). Snapshots are
decoded without the tie-break in favour of neighbours, so that no model starts as the chain.
One long run of each kind: the intervals are over sentences, not over runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from unmasked import trees
from unmasked.experiments import pretraining
from unmasked.experiments.named_models import load_named
from unmasked.experiments.parsing import CHAIN, NATS, UUAS, measure
from unmasked.experiments.pretraining import PretrainingConfig
from unmasked.experiments.snapshots import Order, train_snapshots
from unmasked.experiments.treebank_samples import (
    Sample,
    eligible,
    load_treebank,
    part,
    treebank_checksum,
)
from unmasked.treebanks import gold_edges

Row = Mapping[str, object]
Step = Annotated[int, Field(ge=0)]
Steps = tuple[Step, ...]


class HistoryConfig(PretrainingConfig):
    """The book model's recipe, and the steps at which the runs in each order are parsed.

    The sentences come from the end of the permutation that the parsing experiment draws from the
    front of; with the same limits and few enough seeds, no sentence is in both.
    """

    treebank: str
    sample: Sample
    natural: Annotated[Steps, Field(min_length=1)]
    shuffled: Steps


def compute_parsing_history(config: HistoryConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Validation loss and UUAS by order and step, beside the adjacent chain."""
    orders: dict[Order, Steps] = {"natural": config.natural, "shuffled": config.shuffled}
    runs = {
        order: train_snapshots(config, order, steps, seed, workdir / order)
        for order, steps in orders.items()
        if steps
    }
    tokenizer = load_named(str(runs["natural"].folders[config.natural[0]]))[1]
    sample = config.sample
    pool = eligible(load_treebank(config.treebank), tokenizer, sample.words, sample.pieces)
    sentences = part(pool[::-1], sample.sentences, 0)
    gold = [gold_edges(sentence) for sentence in sentences]
    chain = [trees.adjacent_chain(len(s.words), s.counted) for s in sentences]
    yield from _scores(chain, gold, order=None, system=CHAIN)
    for order, run in runs.items():
        tokens = {point.step: point.tokens for point in run.evaluations}
        for point in run.evaluations:
            yield _row("loss", point.metrics["loss"], NATS, int(point.metrics["masked"]),
                       order=order, step=point.step, tokens=point.tokens)  # fmt: skip
        for step in orders[order]:
            model, _ = load_named(str(run.folders[step]))
            measured = measure(
                model, tokenizer, sentences, "head_tail", (sample.head, sample.tail), seed=seed,
                window=None, folder=workdir / f"information-{order}-{step}",
            )  # fmt: skip
            found = [
                trees.maximum_spanning_tree(matrix, sentence.counted, adjacent_bonus=0.0)
                for matrix, sentence in zip(measured.matrices, sentences, strict=True)
            ]
            where = {"order": order, "step": step, "tokens": tokens[step]}
            yield from _scores(found, gold, **where)
            yield _row("information", _mean(measured.matrices), NATS, len(sentences), **where)


def data_checksum(config: HistoryConfig) -> str:
    """Which texts and which sentences the rows rest on."""
    return f"{pretraining.data_checksum(config)}+{treebank_checksum(config.treebank)}"


def _scores(
    predicted: list[np.ndarray], gold: list[np.ndarray], **conditions: object
) -> Iterator[Row]:
    interval = trees.uuas_interval(predicted, gold, np.random.default_rng(0))
    ends = {"uuas": interval.mean, "uuas_low": interval.low, "uuas_high": interval.high}
    for metric, value in ends.items():
        yield _row(metric, value, UUAS, sum(map(len, gold)), **conditions)


def _mean(matrices: list[np.ndarray]) -> float:
    """Mean of all entries off the diagonals."""
    off = [matrix[~np.eye(len(matrix), dtype=bool)] for matrix in matrices]
    return float(np.concatenate(off).mean())


def _row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; `system` tells the chain from the model."""
    known = {"system": "model", "order": None, "step": None, "tokens": None, **conditions}
    return {**known, "metric": metric, "value": float(value), "unit": unit, "n": n}
