"""Chapter 2: when in its training does the book model come to its trees?

The model's own training is read back at several steps, and beside it a twin whose training text
had its words shuffled within each sequence (Sinha et al. 2021, arXiv 2104.06644). Snapshots are
decoded without the tie-break in favour of neighbours, so that no model starts as the chain.
One long run of each kind: the intervals are over sentences, not over runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from transformers import PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from unmasked import trees
from unmasked.evaluation import evaluate_masked
from unmasked.experiments import pretraining
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.experiments.parsing import CHAIN, NATS, UUAS, measure
from unmasked.experiments.pretraining import PretrainingConfig
from unmasked.experiments.snapshots import Order, tokens_seen, train_snapshots
from unmasked.experiments.treebank_samples import (
    Sample,
    eligible,
    load_treebank,
    part,
    treebank_checksum,
)
from unmasked.models import MaskedLanguageModel
from unmasked.treebanks import ParsedSentence, gold_edges

Row = Mapping[str, object]
Step = Annotated[int, Field(ge=0)]
Steps = tuple[Step, ...]


class HistoryConfig(PretrainingConfig):
    """The book model's recipe, and the steps at which the runs in each order are parsed.

    `final` names the finished model of the run in natural order, if it need not be trained again:
    the book model, where the recipe and the seed are its own. The sentences come from the end of
    the permutation that the parsing experiment draws from the front of; with the same limits and
    few enough seeds, no sentence is in both.
    """

    treebank: str
    sample: Sample
    natural: Annotated[Steps, Field(min_length=1)]
    shuffled: Steps
    final: str | None = None


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
            yield _loss(point.metrics, order=order, step=point.step, tokens=point.tokens)
        for step in orders[order]:
            model, _ = load_named(str(run.folders[step]))
            folder = workdir / f"information-{order}-{step}"
            where = {"order": order, "step": step, "tokens": tokens[step]}
            yield from _parsed(config, model, tokenizer, sentences, seed, folder, where)
    if config.final is not None:
        model, _ = load_named(config.final)
        corpus = pretraining.corpus_of(config)
        seen = tokens_seen(corpus.train, config.batch_size, seed, config.steps)
        where = {"order": "natural", "step": config.steps, "tokens": seen}
        held_out = pretraining.evaluation_sets(corpus, config)["all"]
        yield _loss(evaluate_masked(_with_sparse_head(model), held_out), **where)
        folder = workdir / "information-final"
        yield from _parsed(config, model, tokenizer, sentences, seed, folder, where)


def _parsed(
    config: HistoryConfig,
    model: PreTrainedModel,
    tokenizer: Tokenizer,
    sentences: Sequence[ParsedSentence],
    seed: int,
    folder: Path,
    where: Mapping[str, object],
) -> Iterator[Row]:
    """UUAS and mean information of one model."""
    sample = config.sample
    measured = measure(
        model, tokenizer, sentences, "head_tail", (sample.head, sample.tail), seed=seed,
        window=None, folder=folder,
    )  # fmt: skip
    found = [
        trees.maximum_spanning_tree(matrix, sentence.counted, adjacent_bonus=0.0)
        for matrix, sentence in zip(measured.matrices, sentences, strict=True)
    ]
    yield from _scores(found, [gold_edges(sentence) for sentence in sentences], **where)
    yield _row("information", _mean(measured.matrices), NATS, len(sentences), **where)


def _with_sparse_head(model: PreTrainedModel) -> MaskedLanguageModel:
    """The same weights in the class whose head is applied at labelled positions only."""
    sparse = MaskedLanguageModel(model.config)
    sparse.load_state_dict(model.state_dict())
    return sparse


def data_checksum(config: HistoryConfig) -> str:
    """Which texts, which sentences and which finished model the rows rest on."""
    final = f"+{named_checksum(config.final)}" if config.final else ""
    texts = pretraining.data_checksum(config)
    return f"{texts}+{treebank_checksum(config.treebank)}{final}"


def _scores(
    predicted: list[np.ndarray], gold: list[np.ndarray], **conditions: object
) -> Iterator[Row]:
    interval = trees.uuas_interval(predicted, gold, np.random.default_rng(0))
    ends = {"uuas": interval.mean, "uuas_low": interval.low, "uuas_high": interval.high}
    for metric, value in ends.items():
        yield _row(metric, value, UUAS, sum(map(len, gold)), **conditions)


def _loss(metrics: Mapping[str, float], **where: object) -> Row:
    return _row("loss", metrics["loss"], NATS, int(metrics["masked"]), **where)


def _mean(matrices: list[np.ndarray]) -> float:
    """Mean of all entries off the diagonals."""
    off = [matrix[~np.eye(len(matrix), dtype=bool)] for matrix in matrices]
    return float(np.concatenate(off).mean())


def _row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; `system` tells the chain from the model."""
    known = {"system": "model", "order": None, "step": None, "tokens": None, **conditions}
    return {**known, "metric": metric, "value": float(value), "unit": unit, "n": n}
