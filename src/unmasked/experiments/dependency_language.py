"""Parsing a language whose trees are known: does a masked model's information find them?

A tiny BERT is trained on the dependency language with the dependence on, weaker and off, and the
maximum spanning tree over its conditional mutual information is scored on fresh sentences, along
training and beside trees from the exact information, the adjacent chain, random trees, random
weights and `cpmi`. No tie-break towards neighbours is added. Zhang and Hashimoto 2021, section 5.2,
carried over to a source whose truth is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from unmasked import models, trees
from unmasked.batches import Batch, Masking, masked_batches, masked_evaluation_set
from unmasked.dependency_language import DependencyLanguage
from unmasked.evaluation import evaluate_masked
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary
from unmasked.mi import conditional_mutual_information
from unmasked.tokens import SPECIAL_TOKENS, Sequences
from unmasked.training import Execution, Recipe, fit, masked_loss

Row = Mapping[str, object]
SPECIALS = len(SPECIAL_TOKENS)
CLS, SEP, MASK = (SPECIAL_TOKENS.index(token) for token in ("[CLS]", "[SEP]", "[MASK]"))
Positive = Annotated[int, Field(ge=1)]
Strength = Annotated[float, Field(ge=0, le=1)]

MODEL, EXACT, CHAIN = "masked language model", "exact information", "adjacent chain"
RANDOM_TREE, RANDOM_WEIGHTS, CPMI = "random tree", "random weights", "cpmi"
RANDOM_TREES = 20
"""Random trees drawn for each sentence."""


class DependencyConfig(BaseModel):
    """The language, the strengths at which it is spoken, how much is seen, and the recipe."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    vocabulary_size: Positive = 32
    classes: Positive = 4
    length: Positive = 8
    types: Positive = 4
    choices: Positive = 3
    distance: Annotated[float, Field(ge=1)] = 3.25
    order: Literal["head_initial", "mixed", "crossing"] = "mixed"
    strengths: tuple[Strength, ...]
    train_sentences: Positive
    validation_sentences: Positive
    parsed_sentences: Positive
    steps: Positive
    batch_size: Positive
    learning_rate: Annotated[float, Field(gt=0, lt=1)]
    mask_probability: Annotated[float, Field(gt=0, lt=1)] = 0.25
    evaluations: Positive
    head: Positive
    tail: Annotated[int, Field(ge=0)]

    def language(self, strength: float) -> DependencyLanguage:
        """The language at a strength; its trees are the same at every strength and seed."""
        return DependencyLanguage(
            self.vocabulary_size, self.classes, self.length, self.types, self.choices, strength,
            self.distance, self.order,
        )  # fmt: skip

    @property
    def vocabulary(self) -> MaskingVocabulary:
        """The language's words behind the special tokens."""
        return MaskingVocabulary(SPECIALS + self.vocabulary_size, MASK, tuple(range(SPECIALS)))

    @property
    def masking(self) -> Masking:
        """Pure masks at this configuration's rate."""
        return Masking(self.mask_probability, mask=1.0, random=0.0)


@dataclass(frozen=True)
class Sample:
    """Fresh sentences: words (B, length) and their heads, with the gold edges of each."""

    words: np.ndarray
    heads: np.ndarray

    @cached_property
    def gold(self) -> list[np.ndarray]:
        """Edges (length - 1, 2) with i < j of each sentence."""
        found = []
        for row in self.heads:
            dependents = np.flatnonzero(row >= 0)
            found.append(np.sort(np.stack([dependents, row[dependents]], axis=1), axis=1))
        return found

    @cached_property
    def linked(self) -> np.ndarray:
        """(B, length, length) bool, symmetric: where a gold edge is."""
        table = np.zeros((*self.words.shape, self.words.shape[1]), dtype=bool)
        for number, edges in enumerate(self.gold):
            table[number, edges[:, 0], edges[:, 1]] = table[number, edges[:, 1], edges[:, 0]] = True
        return table


def compute_dependency_language(
    config: DependencyConfig, seed: int, workdir: Path
) -> Iterator[Row]:
    """Excess loss, UUAS, recall by distance and information at each strength, with baselines.

    Sentences to train on, to validate and to parse are drawn anew for each seed; the language is
    the same for all. Nothing is kept in `workdir`: a seed takes a few minutes.
    """
    for strength in config.strengths:
        language = config.language(strength)
        sample = Sample(*language.sample(config.parsed_sentences, np.random.default_rng([2, seed])))
        for found in (
            _trained(config, language, sample, seed),
            _baselines(config, language, sample, seed),
        ):
            for line in found:
                yield {**line, "strength": strength}


def exam_of(config: DependencyConfig, language: DependencyLanguage, seed: int) -> list[Batch]:
    """Masked validation sentences."""
    words, _ = language.sample(config.validation_sentences, np.random.default_rng([1, seed]))
    return masked_evaluation_set(framed(words), config.vocabulary, config.masking)


def floor_of(language: DependencyLanguage, batches: Sequence[Batch]) -> float:
    """Mean loss in nats of the exact conditionals on the masked words of `batches`."""
    nats = []
    for batch in batches:
        labels = batch.inputs["labels"].numpy()[:, 1:-1]
        hidden = labels != IGNORE_INDEX
        seen = batch.inputs["input_ids"].numpy()[:, 1:-1]
        nats.append(language.floor(np.where(hidden, labels, seen) - SPECIALS, hidden))
    return float(np.concatenate(nats).mean())


def framed(words: np.ndarray) -> Sequences:
    """Sentences (B, length) as `[CLS] sentence [SEP]`, the words behind the special tokens."""
    return Sequences.from_lists([CLS, *(row + SPECIALS), SEP] for row in words)


def information_of(
    model: nn.Module, config: DependencyConfig, sample: Sample, estimator: str = "head_tail"
) -> np.ndarray:
    """The model's information between all words of each sentence: (B, length, length), nats."""
    rows = framed(sample.words)
    sentences = [torch.from_numpy(rows[i].astype(np.int64)) for i in range(len(rows))]
    found = conditional_mutual_information(
        model, config.vocabulary, sentences, estimator,
        generator=torch.Generator().manual_seed(0), head=config.head, tail=config.tail,
    )  # fmt: skip
    return np.stack([sentence.information for sentence in found])


def spanning_trees(information: np.ndarray) -> list[np.ndarray]:
    """The maximum spanning tree of each sentence, without a bonus for neighbours."""
    return [trees.maximum_spanning_tree(table, adjacent_bonus=0.0) for table in information]


def _trained(
    config: DependencyConfig, language: DependencyLanguage, sample: Sample, seed: int
) -> Iterator[Row]:
    """A model trained and parsed along training; step 0 is the model with random weights."""
    words, _ = language.sample(config.train_sentences, np.random.default_rng([0, seed]))
    shape = models.bert_config("tiny", config.vocabulary.size, max_length=config.length + 2)
    model = models.masked_language_model(shape, seed)
    exam = exam_of(config, language, seed)
    floor = floor_of(language, exam)
    masked = sum(batch.items for batch in exam)
    yield row("floor", floor, "nats", masked)
    parsed: list[np.ndarray] = []

    def evaluate(current: nn.Module) -> dict[str, float]:
        parsed.append(information_of(current, config, sample))
        return evaluate_masked(current, exam)

    start = evaluate(model)
    recipe = Recipe(
        config.steps, config.batch_size, config.learning_rate, evaluations=config.evaluations
    )
    batch_at = masked_batches(
        framed(words), config.vocabulary, config.masking, config.batch_size, seed
    )
    history = fit(
        model, batch_at, recipe, loss=masked_loss, evaluate=evaluate, seed=seed,
        signature={"config": config.model_dump_json()}, workdir=None, execution=Execution(),
    )  # fmt: skip
    points = [(0, start), *((point.step, point.metrics) for point in history.evaluations)]
    for (step, metrics), information in zip(points, parsed, strict=True):
        yield row("excess_loss", metrics["loss"] - floor, "nats", masked, system=MODEL, step=step)
        yield _uuas(spanning_trees(information), sample, system=MODEL, step=step)
    yield _uuas(spanning_trees(parsed[0]), sample, system=RANDOM_WEIGHTS)
    pointwise = information_of(model, config, sample, "cpmi")
    yield _uuas(spanning_trees(pointwise), sample, system=CPMI)
    yield from _described(parsed[-1], sample, MODEL)


def _baselines(
    config: DependencyConfig, language: DependencyLanguage, sample: Sample, seed: int
) -> Iterator[Row]:
    """The ceiling where there is dependence, the adjacent chain, and random trees."""
    if language.strength > 0:
        yield from _described(language.information(sample.words), sample, EXACT)
    chain = [trees.adjacent_chain(config.length) for _ in sample.gold]
    yield _uuas(chain, sample, system=CHAIN)
    generator = np.random.default_rng([3, seed])
    drawn = [trees.random_tree(config.length, generator) for _ in sample.gold * RANDOM_TREES]
    value = trees.uuas(drawn, sample.gold * RANDOM_TREES)
    yield row("uuas", value, "UUAS", sum(map(len, sample.gold)), system=RANDOM_TREE)


def _described(information: np.ndarray, sample: Sample, system: str) -> Iterator[Row]:
    """UUAS, recall by arc length, and mean information on and off the gold edges."""
    found = spanning_trees(information)
    yield _uuas(found, sample, system=system)
    table = trees.recall_by_distance(found, sample.gold, sample.words.shape[1] - 1)
    for line in table[table["gold"] > 0].itertuples():
        share = line.correct / line.gold
        yield row("recall", share, "share", line.gold, system=system, arc=line.distance)
    off = ~sample.linked & ~np.eye(sample.words.shape[1], dtype=bool)
    for metric, where in (("information_on_edges", sample.linked), ("information_off_edges", off)):
        values = information[where]
        yield row(metric, values.mean(), "nats", len(values), system=system)


def _uuas(found: Sequence[np.ndarray], sample: Sample, **conditions: object) -> Row:
    edges = sum(map(len, sample.gold))
    return row("uuas", trees.uuas(found, sample.gold), "UUAS", edges, **conditions)


def row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; conditions that do not apply are None."""
    known = {"strength": None, "system": None, "step": None, "arc": None, **conditions}
    return {**known, "metric": metric, "value": float(value), "unit": unit, "n": int(n)}
