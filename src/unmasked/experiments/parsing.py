"""Chapter 2: do spanning trees over a model's conditional mutual information match syntax?

Zhang and Hashimoto 2021, section 5.2. Their treebanks, for those who hold the Penn Treebank: WSJ10
(section 23, at most ten words without punctuation) and WSJ-200 (a sample of all lengths), both as
CoNLL-X with Stanford dependencies; give the path of one as `treebank`. At `laptop` the validation
split of the English Web Treebank stands in.

Each seed measures sentences of its own. Every system is scored on the same sentences and beside the
adjacent chain, which knows no word. The untrained network is decoded twice: with the released
tie-break of 1e-4 nats in favour of neighbours, which is about as large as what such a network says
and so pulls its trees towards the chain, and without it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from transformers import AutoModelForMaskedLM, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from unmasked import mi, trees
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.experiments.treebank_samples import (
    Sample,
    eligible,
    load_treebank,
    part,
    treebank_checksum,
)
from unmasked.treebanks import ParsedSentence, gold_edges

Row = Mapping[str, object]
Trees = list[np.ndarray]
UUAS, NATS, SHARE, COUNT = "UUAS", "nats", "share", "count"
INFORMATION = "mutual information"
CHAIN, RANDOM, UNTRAINED = "adjacent chain", "random tree", "random weights"
RELATION_SYSTEMS = (INFORMATION, CHAIN)


class ParsingConfig(BaseModel):
    """A model, a treebank, what is measured on short and on long sentences, and how.

    `checkpoint` is a name that `named_models.load_named` knows; `treebank` one that
    `treebank_samples.load_treebank` knows. `window` is the largest distance in word pieces that is
    measured (None: all; the released code has 9). The untrained network has few words that it
    prefers, so it has a support of its own.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    checkpoint: str
    treebank: str
    short: Sample
    long: Sample
    estimator: Literal["head_tail", "gibbs", "gibbs_rb"] = "head_tail"
    window: Annotated[int, Field(ge=1)] | None = None
    untrained_head: Annotated[int, Field(ge=1)]
    untrained_tail: Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Measured:
    """Word by word matrices (W, W) in nats of each sentence, and what they took.

    `captured` is NaN where the estimator conditions on no value. `seconds` is the time for a
    sentence, None where a killed run left part of the work done.
    """

    matrices: list[np.ndarray]
    rows: float
    captured: float
    asymmetry: float
    seconds: float | None


def compute_parsing(config: ParsingConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """UUAS of every system on short and long sentences, by distance and by relation."""
    model, tokenizer = load_named(config.checkpoint)
    sentences = load_treebank(config.treebank)
    for name in ("short", "long"):
        sample: Sample = getattr(config, name)
        pool = eligible(sentences, tokenizer, sample.words, sample.pieces)
        drawn = part(pool, sample.sentences, seed)
        yield from _sizes(name, drawn)
        measured = _measure_all(config, sample, model, tokenizer, drawn, seed, workdir / name)
        for system, each in measured.items():
            yield from _costs(name, system, each, len(drawn))
        found = systems(measured, drawn, np.random.default_rng([seed, 1]))
        gold = [gold_edges(sentence) for sentence in drawn]
        for system, predicted in found.items():
            yield from _scores(name, system, predicted, found[CHAIN], gold, seed)
        yield from _relations(name, found, drawn)


def data_checksum(config: ParsingConfig) -> str:
    """Which weights and which sentences the rows rest on."""
    return f"{named_checksum(config.checkpoint)}+{treebank_checksum(config.treebank)}"


def measure(
    model: PreTrainedModel,
    tokenizer: Tokenizer,
    sentences: Sequence[ParsedSentence],
    estimator: str,
    support: tuple[int, int],
    *,
    seed: int,
    window: int | None,
    folder: Path,
) -> Measured:
    """The mutual information of each sentence's words, kept in `folder` sentence by sentence.

    `support` is head and tail of the estimator.
    """
    fresh = not folder.exists()
    started = time.perf_counter()
    found = mi.conditional_mutual_information(
        model, tokenizer, [list(sentence.words) for sentence in sentences], estimator,
        generator=torch.Generator().manual_seed(seed), head=support[0], tail=support[1],
        window=window, folder=folder,
    )  # fmt: skip
    seconds = (time.perf_counter() - started) / len(sentences) if fresh else None
    captured = np.concatenate([each.captured[_off_diagonal(each.captured)] for each in found])
    known = np.isfinite(captured)
    gaps = [np.abs(each.information - each.information.T) for each in found]
    return Measured(
        [mi.to_words(each) for each in found],
        rows=float(np.mean([each.rows for each in found])),
        captured=float(captured[known].mean()) if known.any() else float("nan"),
        asymmetry=float(np.concatenate([gap[_off_diagonal(gap)] for gap in gaps]).mean()),
        seconds=seconds,
    )


def untrained(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """The same architecture with fresh weights, in evaluation mode; a seed fixes them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForMaskedLM.from_config(model.config).float().eval()


def systems(
    measured: Mapping[str, Measured],
    sentences: Sequence[ParsedSentence],
    generator: np.random.Generator,
) -> dict[str, Trees]:
    """The trees of every system, one a sentence; the larger direction wins unless said."""
    counted = [sentence.counted for sentence in sentences]
    lengths = [len(sentence.words) for sentence in sentences]

    def decoded(system: str, decode=trees.maximum_spanning_tree, how="max", **options) -> Trees:
        matrices = (mi.symmetrise(matrix, how) for matrix in measured[system].matrices)
        return [decode(m, c, **options) for m, c in zip(matrices, counted, strict=True)]

    return {
        INFORMATION: decoded(INFORMATION),
        f"{INFORMATION}, mean": decoded(INFORMATION, how="mean"),
        f"{INFORMATION}, no tie-break": decoded(INFORMATION, adjacent_bonus=0.0),
        f"{INFORMATION}, projective": decoded(INFORMATION, trees.projective_tree),
        "cpmi": decoded("cpmi"),
        UNTRAINED: decoded(UNTRAINED, adjacent_bonus=0.0),
        f"{UNTRAINED}, tie-break": decoded(UNTRAINED),
        CHAIN: [trees.adjacent_chain(n, c) for n, c in zip(lengths, counted, strict=True)],
        RANDOM: [trees.random_tree(n, generator, c) for n, c in zip(lengths, counted, strict=True)],
    }


def _measure_all(
    config: ParsingConfig,
    sample: Sample,
    model: PreTrainedModel,
    tokenizer: Tokenizer,
    sentences: Sequence[ParsedSentence],
    seed: int,
    folder: Path,
) -> dict[str, Measured]:
    usual, own = (sample.head, sample.tail), (config.untrained_head, config.untrained_tail)
    plan = {
        INFORMATION: (model, config.estimator, usual),
        "cpmi": (model, "cpmi", usual),
        UNTRAINED: (untrained(model, seed), config.estimator, own),
    }
    return {
        system: measure(
            network, tokenizer, sentences, estimator, support, seed=seed, window=config.window,
            folder=folder / system.replace(" ", "_"),
        )
        for system, (network, estimator, support) in plan.items()
    }  # fmt: skip


def _sizes(sample: str, sentences: Sequence[ParsedSentence]) -> Iterator[Row]:
    words = sum(int(sentence.counted.sum()) for sentence in sentences)
    edges = sum(len(gold_edges(sentence)) for sentence in sentences)
    for metric, value in (("sentences", len(sentences)), ("words", words), ("gold_edges", edges)):
        yield _row(metric, value, COUNT, len(sentences), sample)


def _costs(sample: str, system: str, measured: Measured, n: int) -> Iterator[Row]:
    """Forward rows and seconds a sentence, captured mass, size and asymmetry of the matrices."""
    off = [matrix[_off_diagonal(matrix)] for matrix in measured.matrices]
    yield _row("rows", measured.rows, "rows", n, sample, system)
    yield _row("information", np.concatenate(off).mean(), NATS, n, sample, system)
    yield _row("asymmetry", measured.asymmetry, NATS, n, sample, system)
    if np.isfinite(measured.captured):
        yield _row("captured", measured.captured, SHARE, n, sample, system)
    if measured.seconds is not None:
        yield _row("seconds", measured.seconds, "s", n, sample, system)


def _scores(
    sample: str, system: str, predicted: Trees, chain: Trees, gold: Trees, seed: int
) -> Iterator[Row]:
    """UUAS, its difference to the chain, both with bootstrap ends, and recall by distance."""
    edges = sum(map(len, gold))
    generator = np.random.default_rng([seed, 2])
    own = trees.uuas_interval(predicted, gold, generator)
    gap = trees.difference_interval(predicted, chain, gold, generator)
    for metric, interval in (("uuas", own), ("uuas_minus_chain", gap)):
        for ending, value in (
            ("", interval.mean),
            ("_low", interval.low),
            ("_high", interval.high),
        ):
            yield _row(f"{metric}{ending}", value, UUAS, edges, sample, system)
    for line in trees.recall_by_distance(predicted, gold).itertuples():
        if line.gold:
            recall = line.correct / line.gold
            yield _row("recall", recall, SHARE, line.gold, sample, system, distance=line.distance)


def _relations(
    sample: str, found: Mapping[str, Trees], sentences: Sequence[ParsedSentence]
) -> Iterator[Row]:
    """Gold edges found by mutual information and by the chain; subtypes count as their type."""
    table = trees.relation_table(found[INFORMATION], found[CHAIN], sentences)
    types = table["relation"].str.split(":").str[0]
    counts = table.groupby(types)[["gold", "correct", "chain"]].sum()
    for relation, line in counts.iterrows():
        for system, column in zip(RELATION_SYSTEMS, ("correct", "chain"), strict=True):
            yield _row("correct", int(line[column]), COUNT, int(line["gold"]), sample, system,
                       relation=relation)  # fmt: skip


def _off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return ~np.eye(len(matrix), dtype=bool)


def _row(
    metric: str, value: float, unit: str, n: int, sample: str, system: str | None = None,
    distance: int | None = None, relation: str | None = None,
) -> Row:  # fmt: skip
    """One result row; `distance` 8 stands for eight words and more."""
    conditions = {"sample": sample, "system": system, "distance": distance, "relation": relation}
    return {**conditions, "metric": metric, "value": float(value), "unit": unit, "n": int(n)}
