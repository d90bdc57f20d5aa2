"""Chapter 1 on the random walk, whose Bayes-optimal loss is known.

The walk's tokens are shifted by the five special ids and framed as `[CLS] ... [SEP]`, so that the
code under test is the code that trains on text. Masks are pure ([MASK] everywhere), so that the
exact posterior of `languages.RandomWalk` is the best possible prediction of each masked token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from unmasked import models
from unmasked.batches import Batch, Masking, masked_batches, masked_evaluation_set
from unmasked.checkpoints import discard_checkpoint
from unmasked.evaluation import evaluate_masked
from unmasked.languages import RandomWalk
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary
from unmasked.tokens import SPECIAL_TOKENS, Sequences
from unmasked.training import Execution, History, Recipe, fit, masked_loss

Row = Mapping[str, object]
SPECIALS = len(SPECIAL_TOKENS)
CLS, SEP, MASK = (SPECIAL_TOKENS.index(token) for token in ("[CLS]", "[SEP]", "[MASK]"))
NATS = "nats"
SHARE = "share"
Positive = Annotated[int, Field(ge=1)]


class WalkConfig(BaseModel):
    """A random walk, how much of it is seen, and the recipe."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    vocabulary_size: Annotated[int, Field(ge=2)] = 64
    nodes: Annotated[int, Field(ge=2)] = 320
    min_length: Annotated[int, Field(ge=4)]
    max_length: Annotated[int, Field(ge=4, le=510)]
    train_sequences: Positive
    validation_sequences: Positive
    steps: Positive
    batch_size: Positive
    learning_rate: Annotated[float, Field(gt=0, lt=1)]
    mask_probability: Annotated[float, Field(gt=0, lt=1)] = 0.15
    evaluations: Positive

    @property
    def walk(self) -> RandomWalk:
        """The source; its graph is the same for every seed of the experiment."""
        return RandomWalk(vocabulary_size=self.vocabulary_size, nodes=self.nodes)

    @property
    def vocabulary(self) -> MaskingVocabulary:
        """The walk's tokens behind the special ones."""
        return MaskingVocabulary(SPECIALS + self.vocabulary_size, MASK, tuple(range(SPECIALS)))

    @property
    def masking(self) -> Masking:
        """Pure masks at this configuration's rate."""
        return Masking(self.mask_probability, mask=1.0, random=0.0)


@dataclass(frozen=True)
class Exam:
    """Validation batches with the truth: masked tokens (M,) and their exact posterior (M, V)."""

    batches: list[Batch]
    truth: np.ndarray
    posterior: np.ndarray

    @property
    def floor(self) -> float:
        """Mean loss in nats of the Bayes-optimal prediction."""
        return float(-np.log(self.posterior[np.arange(len(self.truth)), self.truth]).mean())


def compute_random_walk(config: WalkConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Excess loss over the floor along training, on walks and on shuffled walks (control)."""
    exam = exam_of(config)
    yield row("floor", exam.floor, NATS, len(exam.truth), corpus="walk")
    yield row("unigram", _unigram_loss(config, exam), NATS, len(exam.truth), corpus="walk")
    for corpus in ("walk", "shuffled"):
        rows = walk_sequences(config, seed, shuffled=corpus == "shuffled")
        batch_at = masked_batches(rows, config.vocabulary, config.masking, config.batch_size, seed)
        model, history = train_watched(config, exam, batch_at, masked_loss, seed, workdir / corpus)
        for point in history.evaluations:
            conditions = {"corpus": corpus, "step": point.step, "tokens": point.tokens}
            loss, masked = point.metrics["loss"], int(point.metrics["masked"])
            yield row("loss", loss, NATS, masked, **conditions)
            yield row("excess_loss", loss - exam.floor, NATS, masked, **conditions)
            yield row("accuracy", point.metrics["accuracy"], SHARE, masked, **conditions)
        yield row("divergence", divergence(model, exam), NATS, len(exam.truth), corpus=corpus)


def exam_of(config: WalkConfig) -> Exam:
    """The validation set of a configuration, the same for every seed, with its exact posterior."""
    rows = _framed(config, config.validation_sequences, np.random.default_rng([1, 0]))
    batches = masked_evaluation_set(rows, config.vocabulary, config.masking)
    truth, posterior = [], []
    for batch in batches:
        labels = batch.inputs["labels"].numpy()
        walked = batch.inputs["input_ids"].numpy()[:, 1:] - SPECIALS  # [CLS] off
        hidden = np.where(walked < 0, -1, walked)  # masks, and the frame behind the walk's end
        selected = labels != IGNORE_INDEX
        posterior.append(config.walk.posterior(hidden)[selected[:, 1:]])
        truth.append(labels[selected] - SPECIALS)
    return Exam(batches, np.concatenate(truth), np.concatenate(posterior))


def walk_sequences(config: WalkConfig, seed: int, *, shuffled: bool = False) -> Sequences:
    """Training walks of one seed; `shuffled` destroys the order inside each sequence."""
    return _framed(config, config.train_sequences, np.random.default_rng([0, seed]), shuffled)


@torch.no_grad()
def divergence(model: nn.Module, exam: Exam) -> float:
    """Mean Kullback-Leibler divergence (nats) of the model's predictions from the posterior.

    Its expectation is the excess loss: E[-log q(x)] - E[-log p(x)] = E[KL(p || q)].
    """
    model.eval()
    logs = []
    for batch in exam.batches:
        logits = model(**batch.inputs, num_items_in_batch=1).logits
        logs.append(logits.double().log_softmax(-1)[:, SPECIALS:])
    p, log_q = torch.from_numpy(exam.posterior), torch.cat(logs)
    return float((torch.special.xlogy(p, p) - p * log_q).sum(-1).mean())


def train_watched(
    config: WalkConfig,
    exam: Exam,
    batch_at: Callable[[int], Batch],
    loss: Callable[[nn.Module, dict[str, torch.Tensor], int], torch.Tensor],
    seed: int,
    folder: Path,
) -> tuple[models.MaskedLanguageModel, History]:
    """A tiny model trained on given batches with a given loss, watched honestly."""
    shape = models.bert_config("tiny", config.vocabulary.size, max_length=config.max_length + 2)
    model = models.masked_language_model(shape, seed)
    recipe = Recipe(
        config.steps,
        config.batch_size,
        config.learning_rate,
        evaluations=config.evaluations,
        checkpoint_every=max(1, config.steps // 4),
    )
    history = fit(
        model, batch_at, recipe, loss=loss, evaluate=partial(evaluate_masked, batches=exam.batches),
        seed=seed, signature={"walk": config.model_dump_json()}, workdir=folder,
        execution=Execution(),
    )  # fmt: skip
    discard_checkpoint(folder)
    return model, history


def _framed(
    config: WalkConfig, count: int, generator: np.random.Generator, shuffled: bool = False
) -> Sequences:
    """`count` walks of lengths between the configured bounds as `[CLS] walk [SEP]`."""
    walks = config.walk.sample(count, config.max_length, generator)
    if shuffled:
        walks = generator.permuted(walks, axis=1)
    lengths = generator.integers(config.min_length, config.max_length + 1, size=count)
    return Sequences.from_lists(
        [CLS, *(walk[:length] + SPECIALS), SEP] for walk, length in zip(walks, lengths, strict=True)
    )


def _unigram_loss(config: WalkConfig, exam: Exam) -> float:
    """Loss in nats of the training token frequencies on the exam's masked tokens."""
    walks = config.walk.sample(4096, config.max_length, np.random.default_rng([0, 0]))
    frequencies = np.bincount(walks.ravel(), minlength=config.vocabulary_size) / walks.size
    return float(-np.log(frequencies[exam.truth]).mean())


def row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; `step` is None where no step is meant."""
    return {"step": None, **conditions, "metric": metric, "value": value, "unit": unit, "n": n}
