"""Chapter 2, experiment A: how much of the gain of masking comes from cloze masks.

The set-up of Zhang and Hashimoto 2021, section 3.2, as their released code has it, smaller: labels
are appended as words, a two-layer BERT is pretrained with one mask a sentence, which falls on the
label with a given share, and is then fine-tuned on few examples. Beside it two defects of the
released protocol, each on its own: a fine-tuning pool that overlaps the pretraining half, and a
checkpoint chosen on the very sentences that accuracy is reported on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from transformers import BertConfig

from unmasked import data, models
from unmasked.batches import Batch, batch_indices
from unmasked.checkpoints import discard_checkpoint
from unmasked.cloze import ClozeClassifier, cloze_batches, cloze_evaluation_set
from unmasked.evaluation import evaluate_classifier, evaluate_masked
from unmasked.experiments.toy_corpora import (
    LABEL_WORDS,
    TEST_SPLITS,
    Texts,
    ToyData,
    drawn,
    prepared,
)
from unmasked.models import MaskedLanguageModel
from unmasked.training import (
    Execution,
    Recipe,
    classification_loss,
    fit,
    masked_loss,
)

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
SHARE = "share"
LABELS, SHUFFLED, SCRATCH = "labels", "shuffled labels", "none"
DISJOINT, OVERLAPPING = "disjoint", "overlapping"
SELECTIONS = ("validation", "test")


class ToyCorpus(BaseModel):
    """A data set, how long to pretrain on it, and the fine-tuning sizes in each pool."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Literal["movie_reviews", "sst2"]
    pretraining_steps: Positive
    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    overlapping_sizes: tuple[Positive, ...] = ()


class ToyClozeConfig(BaseModel):
    """The toy experiment. `shares` are cloze shares; `overlapping_shares` those run in both pools.

    `tokenizer` names a tokenizer of the hub; without it a vocabulary of `vocabulary_size` pieces is
    trained on the pretraining half. Fine-tuning takes `finetuning_epochs` passes, and at least
    `finetuning_steps` steps.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    corpora: Annotated[tuple[ToyCorpus, ...], Field(min_length=1)]
    shares: Annotated[tuple[Share, ...], Field(min_length=1)]
    overlapping_shares: tuple[Share, ...] = ()
    tokenizer: str | None = None
    vocabulary_size: Annotated[int, Field(ge=100)] = 4096
    max_length: Annotated[int, Field(ge=8, le=512)]
    validation_sentences: Positive
    batch_size: Positive = 64
    pretraining_learning_rate: Rate
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05
    finetuning_learning_rate: Rate
    finetuning_steps: Positive
    finetuning_epochs: Positive = 1
    evaluations: Positive
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1

    def texts(self, name: str) -> Texts:
        """Which texts of a data set are read, and into what pieces."""
        return Texts(
            name, self.tokenizer, self.vocabulary_size, self.max_length, self.validation_sentences
        )


@dataclass(frozen=True)
class Start:
    """What fine-tuning starts from: `corpus` and cloze share of pretraining, model and seed."""

    corpus: str
    share: float | None
    model: MaskedLanguageModel
    seed: int

    def classifier(self, toy: ToyData) -> ClozeClassifier:
        """A classifier of two classes; after pretraining its output rows are the label words'."""
        if self.corpus == SCRATCH:
            generator = torch.Generator().manual_seed(self.seed)
            return ClozeClassifier.from_scratch(self.model, len(LABEL_WORDS), generator)
        return ClozeClassifier.from_label_words(self.model, toy.label_ids)


def compute_toy_cloze(config: ToyClozeConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Accuracy after fine-tuning for each start and size, and its gain over starting from scratch.

    A killed run finds its finished pretrainings again in `workdir`.
    """
    for corpus in config.corpora:
        toy = prepared(config.texts(corpus.name))
        base: dict[tuple[object, ...], float] = {}
        for start in _starts(config, corpus, toy, seed, workdir / corpus.name):
            shown = {"dataset": corpus.name, "corpus": start.corpus, "share": start.share}
            yield from (row(**shown, **part) for part in _as_language_model(start, toy))
            for part in _finetuned(config, corpus, start, toy, seed):
                yield row(**shown, **part)
                place = part["pool"], part["selection"], part["size"]
                if start.corpus == SCRATCH:
                    base[place] = part["value"]
                else:
                    gain = {"metric": "gain", "value": part["value"] - base[place]}
                    yield row(**shown, **{**part, **gain})
    for folder in workdir.glob("*/*"):
        discard_checkpoint(folder)


def data_checksum(config: ToyClozeConfig) -> str:
    """Which texts the rows rest on: training and test splits."""
    names = [corpus.name for corpus in config.corpora]
    splits = [(name, split) for name in names for split in ("train", TEST_SPLITS[name])]
    return "+".join(data.checksum(data.load(name, split))[:16] for name, split in splits)


def row(**values: object) -> Row:
    """One result row; conditions that do not apply are None."""
    conditions = dict.fromkeys(("masked", "size", "pool", "selection"))
    return {**conditions, "unit": SHARE, **values}


def toy_config(config: ToyClozeConfig, vocabulary_size: int) -> BertConfig:
    """Two layers, one head, 64 wide throughout; initialised in the book's way, wider than 0.02."""
    width = 64
    scale = models.BASE_INITIALIZER_RANGE * (models.BASE_HIDDEN_SIZE / width) ** 0.5
    return BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=1,
        intermediate_size=width,
        max_position_embeddings=config.max_length,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        initializer_range=scale,
        pad_token_id=0,
    )


def finetune_watched(
    classifier: nn.Module, toy: ToyData, rows: np.ndarray, config: ToyClozeConfig, seed: int
) -> list[dict[str, float]]:
    """Train on the sentences `rows`; accuracy on validation and test sentences at each evaluation.

    No weights are kept: the accuracy that a rule of selection would report can be read off.
    """
    part, labels = toy.hidden.select(rows), toy.labels[rows]
    steps = max(
        config.finetuning_steps, -(-config.finetuning_epochs * len(rows) // config.batch_size)
    )
    recipe = Recipe(
        steps, config.batch_size, config.finetuning_learning_rate, config.warmup,
        evaluations=config.evaluations,
    )  # fmt: skip
    history = fit(
        classifier, _labelled_batches(part, labels, config.batch_size, seed), recipe,
        loss=classification_loss, evaluate=toy.accuracies, seed=seed,
        signature={"data": part.checksum()}, workdir=None, execution=Execution(),
    )  # fmt: skip
    return [point.metrics for point in history.evaluations]


def selected(points: list[dict[str, float]], selection: str) -> float:
    """Test accuracy at the evaluation that is best on the split `selection`; the first of ties."""
    return max(points, key=lambda point: point[selection])["test"]


def _starts(
    config: ToyClozeConfig, corpus: ToyCorpus, toy: ToyData, seed: int, folder: Path
) -> Iterator[Start]:
    """Scratch, each cloze share, and the control: cloze masks on labels that say nothing."""
    shape = toy_config(config, toy.vocabulary.size)
    yield Start(SCRATCH, None, models.masked_language_model(shape, seed), seed)
    recipe = Recipe(
        corpus.pretraining_steps, config.batch_size, config.pretraining_learning_rate,
        config.warmup, evaluations=1, checkpoint_every=corpus.pretraining_steps,
    )  # fmt: skip
    for kind, share in (*((LABELS, share) for share in config.shares), (SHUFFLED, 1.0)):
        model = models.masked_language_model(shape, seed)
        rows = toy.pretraining(np.random.default_rng([seed, 1]) if kind == SHUFFLED else None)
        batch_at = cloze_batches(rows, toy.vocabulary, share, config.batch_size, seed)
        fit(
            model, batch_at, recipe, loss=masked_loss, evaluate=lambda _: {}, seed=seed,
            signature={"data": rows.checksum(), "share": share},
            workdir=folder / f"{kind} {share:g}", execution=Execution(),
        )  # fmt: skip
        yield Start(kind, share, model, seed)


def _as_language_model(start: Start, toy: ToyData) -> Iterator[dict[str, object]]:
    """Accuracy at masked label words and at other masked tokens, and before any fine-tuning."""
    for name, share in (("label", 1.0), ("generic", 0.0)):
        exam = cloze_evaluation_set(toy.held_out, toy.vocabulary, share)
        metrics = evaluate_masked(start.model, exam)
        count = int(metrics["masked"])
        yield {"metric": "mlm_accuracy", "masked": name, "value": metrics["accuracy"], "n": count}
    value = evaluate_classifier(start.classifier(toy), *toy.test)["accuracy"]
    yield {"metric": "accuracy", "size": 0, "value": value, "n": len(toy.test[0])}


def _finetuned(
    config: ToyClozeConfig, corpus: ToyCorpus, start: Start, toy: ToyData, seed: int
) -> Iterator[dict[str, object]]:
    """Accuracy for each pool, size and rule of selection."""
    plan: list[tuple[str, Callable[[], np.ndarray], int]]
    plan = [(DISJOINT, toy.disjoint_pool, size) for size in corpus.sizes]
    both = start.corpus == SCRATCH or (
        start.corpus == LABELS and start.share in config.overlapping_shares
    )
    if both:
        plan += [(OVERLAPPING, toy.overlapping_pool, size) for size in corpus.overlapping_sizes]
    for name, pool, size in plan:
        rows = drawn(pool(), size, np.random.default_rng([seed, 2]), f"{name} pool of {toy.name}")
        points = finetune_watched(start.classifier(toy), toy, rows, config, seed)
        for selection in SELECTIONS:
            value = selected(points, selection)
            where = {"pool": name, "selection": selection, "size": size}
            yield {"metric": "accuracy", "value": value, "n": len(toy.test[0]), **where}


def _labelled_batches(rows, labels: np.ndarray, size: int, seed: int) -> Callable[[int], Batch]:
    """Batches of classified sentences, a function of the step."""
    indices_at = batch_indices(rows.lengths, size, seed)

    def at(step: int) -> Batch:
        indices = indices_at(step)
        input_ids, attention_mask = rows.pad(indices)
        inputs = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "labels": torch.from_numpy(labels[list(indices)]),
        }
        return Batch(inputs, len(indices), int(attention_mask.sum()), indices)

    return at
