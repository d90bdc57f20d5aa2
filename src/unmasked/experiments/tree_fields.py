"""Chapter 2 on a tree-structured Markov random field, whose dependencies are known exactly.

A tiny BERT learns to fill masks in samples of the field, with one mask a row or with more. Along
training we ask for its conditional mutual information, for the spanning tree over it, for the loss
above the exact floor, and for how far its conditionals are from having a joint. Beside it stand the
exact information, the tree of Chow and Liu from as many samples, and a random tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from unmasked import mi, models, trees
from unmasked.batches import Batch, Masking, masked_batches, masked_evaluation_set
from unmasked.checkpoints import discard_checkpoint
from unmasked.evaluation import evaluate_masked
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary
from unmasked.mi_compatibility import conditional_tables, imbalance, log_odds_size
from unmasked.tokens import SPECIAL_TOKENS, Sequences
from unmasked.training import Execution, History, Recipe, fit, masked_loss
from unmasked.tree_field import TreeField, marginal_information

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
MaskingName = Literal["one mask", "15 %", "50 %"]
SPECIALS = len(SPECIAL_TOKENS)
CLS, SEP, MASK = (SPECIAL_TOKENS.index(token) for token in ("[CLS]", "[SEP]", "[MASK]"))
RATES = {"15 %": 0.15, "50 %": 0.5}
NATS, SHARE = "nats", "share"
RANDOM_TREES = 100
SWEEPS = 12  # with every value in the head nothing else is approximate
UNITS = {"recovered": SHARE, "accuracy": SHARE}  # of the metrics that are not in nats


class TreeFieldConfig(BaseModel):
    """The field, how much of it is seen, the recipe, and how much of it is measured.

    `sentences` held-out samples are measured; on `compared` of them all tables of all pairs. The
    classical tree is also learned from `classical_samples`, beside the counts a model has seen.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    positions: Annotated[int, Field(ge=3, le=64)] = 9
    values: Annotated[int, Field(ge=2)] = 6
    strength: Annotated[float, Field(ge=0)] = 1.0
    train_sequences: Positive
    validation_sequences: Positive
    steps: Positive
    batch_size: Positive
    learning_rate: Annotated[float, Field(gt=0, lt=1)]
    maskings: Annotated[tuple[MaskingName, ...], Field(min_length=1)]
    evaluations: Positive
    sentences: Positive
    compared: Positive
    classical_samples: tuple[Positive, ...] = ()

    @property
    def field(self) -> TreeField:
        """The source; its tree is the same for every seed of the experiment."""
        return TreeField(self.positions, self.values, self.strength)

    @property
    def vocabulary(self) -> MaskingVocabulary:
        """The field's values behind the special tokens."""
        return MaskingVocabulary(SPECIALS + self.values, MASK, tuple(range(SPECIALS)))

    def masking(self, name: MaskingName) -> Masking:
        """Exactly one mask a row, or each position on its own; always [MASK]."""
        if name == "one mask":
            return Masking(1 / self.positions, "fixed_count", mask=1.0, random=0.0)
        return Masking(RATES[name], "bernoulli", mask=1.0, random=0.0)


@dataclass(frozen=True)
class Exam:
    """What every model of a configuration is asked: single masks with their exact floor in nats,
    sentences (S, positions) without special tokens, and their exact information."""

    batches: list[Batch]
    floor: float
    sentences: np.ndarray
    information: np.ndarray


def compute_tree_field(config: TreeFieldConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Exact, classical and random trees; then a model along training for each masking."""
    exam = exam_of(config)
    samples = config.field.sample(config.train_sequences, np.random.default_rng([0, seed]))
    yield _row("floor", exam.floor, NATS, config.validation_sequences, method="exact")
    yield from _reference_rows(config, exam, samples, seed)
    for name in config.maskings:
        history = _train(config, exam, samples, name, seed, workdir / name.replace(" ", "-"))
        for point in history.evaluations:
            where = {"method": "model", "masking": name, "step": point.step}
            for metric, value in point.metrics.items():
                if metric != "masked":
                    yield _row(metric, value, UNITS.get(metric, NATS), config.sentences,
                               **where, samples=seen(config, point.step))  # fmt: skip


def exam_of(config: TreeFieldConfig) -> Exam:
    """The exam of a configuration, the same for every seed."""
    field, generator = config.field, np.random.default_rng([1, 0])
    held_out = field.sample(config.validation_sequences, generator)
    batches = masked_evaluation_set(framed(held_out), config.vocabulary, config.masking("one mask"))
    nats = []
    for batch in batches:
        labels = batch.inputs["labels"].numpy()[:, 1:-1]
        tokens = batch.inputs["input_ids"].numpy()[:, 1:-1] - SPECIALS
        hidden = labels != IGNORE_INDEX
        posterior = field.conditional(tokens, hidden)[hidden]
        nats.append(-np.log(posterior[np.arange(len(posterior)), labels[hidden] - SPECIALS]))
    sentences = field.sample(config.sentences, generator)
    information = field.conditional_information(sentences)
    return Exam(batches, float(np.concatenate(nats).mean()), sentences, information)


def framed(tokens: np.ndarray) -> Sequences:
    """Samples (B, positions) of the field as `[CLS] values [SEP]`."""
    return Sequences.from_lists([CLS, *(row + SPECIALS), SEP] for row in tokens)


def sentence_ids(tokens: np.ndarray) -> list[torch.Tensor]:
    """The same rows as int64 tensors (positions + 2,), as `unmasked.mi` takes them."""
    return [torch.from_numpy(row.astype(np.int64)) for row in framed(tokens)]


def seen(config: TreeFieldConfig, step: int) -> int:
    """How many different samples a model has seen after so many steps."""
    return min(config.train_sequences, step * config.batch_size)


def recovered(weights: np.ndarray, field: TreeField) -> float:
    """Share of the field's edges in the maximum spanning tree over weights (n, n)."""
    return _shared(trees.maximum_spanning_tree(weights, adjacent_bonus=0.0), field)


def measure(model: nn.Module, config: TreeFieldConfig, exam: Exam) -> dict[str, float]:
    """The exam's numbers for one model: loss, tree, information on and off it, compatibility.

    All in nats but `recovered` (share of edges), `accuracy` (share) and `masked` (count).
    """
    metrics = evaluate_masked(model, exam.batches)
    measured = mi.conditional_mutual_information(
        model,
        config.vocabulary,
        sentence_ids(exam.sentences),
        "head_tail",
        head=config.values,
        tail=0,
        sweeps=SWEEPS,
        generator=torch.Generator().manual_seed(0),
        allowed_ids=config.vocabulary.ordinary_ids,
    )
    sides = np.stack([sentence.information for sentence in measured])
    mean = mi.symmetrise(sides.mean(0), "mean")
    linked = _linked(config.field)
    apart = ~linked & ~np.eye(len(linked), dtype=bool)
    pairs = np.triu(np.ones_like(linked), 1)
    return {
        **metrics,
        "excess_loss": metrics["loss"] - exam.floor,
        "recovered": recovered(mean, config.field),
        "on_tree": float(mean[linked].mean()),
        "off_tree": float(mean[apart].mean()),
        "sides_apart": float(np.abs(sides - sides.transpose(0, 2, 1))[:, pairs].mean()),
        **_compatibility(model, config, exam),
    }


def _compatibility(model: nn.Module, config: TreeFieldConfig, exam: Exam) -> dict[str, float]:
    """Mean imbalance and mean log odds ratio on and off the tree, over a few sentences."""
    pairs = [(i, j) for j in range(config.positions) for i in range(j)]
    linked = np.array([_linked(config.field)[pair] for pair in pairs])
    sizes = [
        [
            (imbalance(table), log_odds_size(table.first))
            for table in conditional_tables(
                model, config.vocabulary, ids, pairs,
                candidates=config.values, generator=torch.Generator().manual_seed(0),
            )
        ]
        for ids in sentence_ids(exam.sentences[: config.compared])
    ]  # fmt: skip
    mean = np.mean(sizes, axis=0)  # (pairs, 2)
    on, off = mean[linked].mean(0), mean[~linked].mean(0)
    return {
        "imbalance": float(on[0]),
        "log_odds": float(on[1]),
        "imbalance_off": float(off[0]),
        "log_odds_off": float(off[1]),
    }


def _reference_rows(
    config: TreeFieldConfig, exam: Exam, samples: np.ndarray, seed: int
) -> Iterator[Row]:
    """The exact information and its tree, Chow and Liu's from as many samples, a random tree."""
    field, mean = config.field, exam.information.mean(0)
    linked = _linked(field)
    n = len(exam.sentences)
    for metric, value, unit in (
        ("recovered", recovered(mean, field), SHARE),
        ("on_tree", mean[linked].mean(), NATS),
        ("off_tree", np.abs(mean[~linked]).max(), NATS),
        ("log_odds", np.mean([log_odds_size(np.exp(t)) for t in field.log_potentials]), NATS),
    ):
        yield _row(metric, value, unit, n, method="exact")
    steps = [round((k + 1) * config.steps / config.evaluations) for k in range(config.evaluations)]
    counts = sorted({*config.classical_samples, *(seen(config, step) for step in steps)})
    for count in counts:
        classical = recovered(marginal_information(samples[:count], config.values), field)
        yield _row("recovered", classical, SHARE, count, method="Chow-Liu", samples=count)
    generator = np.random.default_rng([2, seed])
    drawn = [trees.random_tree(config.positions, generator) for _ in range(RANDOM_TREES)]
    chance = np.mean([_shared(edges, field) for edges in drawn])
    yield _row("recovered", chance, SHARE, RANDOM_TREES, method="random tree")


def _train(
    config: TreeFieldConfig,
    exam: Exam,
    samples: np.ndarray,
    name: MaskingName,
    seed: int,
    folder: Path,
) -> History:
    """A tiny model trained with one masking and examined along the way."""
    shape = models.bert_config("tiny", config.vocabulary.size, max_length=config.positions + 2)
    model = models.masked_language_model(shape, seed)
    recipe = Recipe(
        config.steps,
        config.batch_size,
        config.learning_rate,
        evaluations=config.evaluations,
        checkpoint_every=max(1, config.steps // 2),
    )
    batch_at = masked_batches(
        framed(samples), config.vocabulary, config.masking(name), config.batch_size, seed
    )
    history = fit(
        model, batch_at, recipe, loss=masked_loss,
        evaluate=lambda current: measure(current, config, exam), seed=seed,
        signature={"field": config.model_dump_json(), "masking": name}, workdir=folder,
        execution=Execution(),
    )  # fmt: skip
    discard_checkpoint(folder)
    return history


def _linked(field: TreeField) -> np.ndarray:
    """(positions, positions) bool, True at the tree's edges, both ways."""
    linked = np.zeros((field.positions, field.positions), dtype=bool)
    linked[tuple(field.edges.T)] = True
    return linked | linked.T


def _shared(edges: np.ndarray, field: TreeField) -> float:
    truth = {tuple(edge) for edge in field.edges.tolist()}
    return len(truth & {tuple(edge) for edge in edges.tolist()}) / len(truth)


def _row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; `masking` and `step` are None where nothing is trained."""
    known = {"method": None, "masking": None, "step": None, "samples": None, **conditions}
    return {**known, "metric": metric, "value": float(value), "unit": unit, "n": n}
