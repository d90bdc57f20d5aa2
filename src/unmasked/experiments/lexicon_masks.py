"""Continued pretraining with cloze-like, generic or uniform masks, then ten examples a class.

Experiment B of Zhang and Hashimoto 2021 (section 5.1) on a small model, with two controls: the
same model without continued pretraining, and the same architecture with random weights.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerBase

from unmasked import models
from unmasked.batches import Batch, step_seed
from unmasked.evaluation import evaluate_masked
from unmasked.experiments.lexicon_tasks import News, Part, Task, TaskName, load_task, tasks_checksum
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.lexicon import (
    CLOZE,
    GENERIC,
    SETTINGS,
    UNIFORM,
    lexicon_batches,
    with_lexicon_words,
)
from unmasked.masking import MaskingVocabulary
from unmasked.tokens import Sequences, encode
from unmasked.training import Execution, Recipe, finetune, fit, masked_loss

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, lt=1)]
NONE, RANDOM = "none", "random weights"
ENCODERS = (RANDOM, NONE, *SETTINGS)
WARMUP = 0.1


class LexiconMasksConfig(BaseModel):
    """The model, the data sets, and both training recipes.

    `model` is a name for `load_named`; `test_sentences` is the most that are tested on and
    `validation_sentences` the most that the masked loss is measured on; `finetuning_seeds` counts
    the sets of `examples_per_class` examples that each pretraining seed is fine-tuned on. The
    first of `finetuning_learning_rates` is used; `lexicon_tuning` compares them all.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    model: str = "book_model"
    data: Annotated[tuple[TaskName, ...], Field(min_length=1)]
    news: News = "test file"
    lexicon_size: Positive = 500
    max_length: Annotated[int, Field(ge=8, le=512)]
    mask_probability: Rate = 0.15
    pretraining_steps: Positive
    pretraining_batch_size: Positive
    pretraining_learning_rate: Rate
    finetuning_steps: Positive
    finetuning_batch_size: Positive
    finetuning_learning_rates: Annotated[tuple[Rate, ...], Field(min_length=1)]
    finetuning_seeds: Positive
    examples_per_class: Positive = 10
    test_sentences: Positive
    validation_sentences: Positive


@dataclass(frozen=True)
class Encoded:
    """The texts of one part as ids, with their labels int64 (sentences,)."""

    sequences: Sequences
    labels: np.ndarray


@dataclass(frozen=True)
class Bench:
    """What every encoder of one data set is trained and judged on.

    `kept` and `marks` are the training sentences that hold a word of the lexicon, and where;
    `exams` are masked validation sets by where their masks are.
    """

    task: Task
    tokenizer: PreTrainedTokenizerBase
    kept: Sequences
    marks: Sequences
    exams: Mapping[str, list[Batch]]
    validation: Encoded
    test: Encoded


def compute_lexicon_masks(config: LexiconMasksConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Masked loss and accuracy after fine-tuning of each encoder on each data set, and gains.

    What one encoder gave on one data set is kept in `workdir`, so a killed run goes on after it.
    """
    for name in config.data:
        bench, rows = None, []
        for encoder in ENCODERS:
            file = workdir / f"{name}-{encoder.replace(' ', '-')}.json"
            if not file.is_file():
                bench = bench or bench_of(config, name)
                write_rows(file, list(_encoder_rows(config, bench, encoder, seed)))
            rows += json.loads(file.read_text(encoding="utf-8"))
        yield from [*rows, *_gains(rows, name)]


def masks_checksum(config: LexiconMasksConfig) -> str:
    """Which model, texts and lexicons the rows rest on."""
    texts = tasks_checksum(config.data, config.lexicon_size, config.news)
    return f"{named_checksum(config.model)}+{texts}"


def bench_of(config: LexiconMasksConfig, name: TaskName) -> Bench:
    """Encode one data set. Validation and test sentences are drawn once, for all seeds."""
    task = load_task(name, config.lexicon_size, config.news)
    _, tokenizer = load_named(config.model)
    vocabulary = MaskingVocabulary.from_tokenizer(tokenizer)
    whole = encode(task.train.texts, tokenizer, config.max_length, split_long=False)
    kept, marks = with_lexicon_words(whole, tokenizer, task.lexicon)
    validation = _drawn(task.validation, config.validation_sentences, tokenizer, config)
    watched = with_lexicon_words(validation.sequences, tokenizer, task.lexicon)
    exams = {
        setting: [
            lexicon_batches(*watched, vocabulary, setting, len(watched[0]), 0,
                            rate=config.mask_probability, mask=1.0, random=0.0)(0)
        ]
        for setting in (CLOZE, GENERIC)
    }  # fmt: skip
    test = _drawn(task.test, config.test_sentences, tokenizer, config)
    return Bench(task, tokenizer, kept, marks, exams, validation, test)


def encoder_of(config: LexiconMasksConfig, bench: Bench, encoder: str, seed: int) -> nn.Module:
    """The masked language model that is fine-tuned: one of ENCODERS.

    The three settings train the named model further, on the same sentences in the same order.
    """
    named, _ = load_named(config.model)
    if encoder == RANDOM:
        return models.masked_language_model(named.config, seed)
    model = models.MaskedLanguageModel(named.config)
    model.load_state_dict(named.state_dict())
    if encoder != NONE:
        _pretrain(config, bench, model, encoder, seed)
    return model


def accuracies(
    config: LexiconMasksConfig,
    bench: Bench,
    model: nn.Module,
    exam: Encoded,
    rate: float,
    seed: int,
) -> list[float]:
    """Accuracy on `exam` after fine-tuning on each small set of examples; last weights.

    The examples, the new head and the order of batches depend on seed and set alone, so encoders
    are compared on equal terms.
    """
    recipe = Recipe(
        config.finetuning_steps,
        config.finetuning_batch_size,
        rate,
        warmup=WARMUP,
        evaluations=1,
    )
    found = []
    for subset in range(config.finetuning_seeds):
        own_seed = step_seed(seed, subset)
        few = _few(config, bench, own_seed)
        classifier = _classifier(model, bench.task.classes, own_seed)
        history = finetune(
            classifier, few.sequences, few.labels, (exam.sequences, exam.labels), recipe,
            seed=own_seed,
        )  # fmt: skip
        found.append(history.last.metrics["accuracy"])
    return found


def _encoder_rows(
    config: LexiconMasksConfig, bench: Bench, encoder: str, seed: int
) -> Iterator[Row]:
    model = encoder_of(config, bench, encoder, seed)
    where = {"data": bench.task.name, "encoder": encoder}
    for masks, exam in bench.exams.items():
        metrics = evaluate_masked(model, exam)
        yield _row("loss", metrics["loss"], "nats", int(metrics["masked"]), **where, masks=masks)
    rate = config.finetuning_learning_rates[0]
    found = accuracies(config, bench, model, bench.test, rate, seed)
    count = len(bench.test.labels)
    for subset, accuracy in enumerate(found):
        yield _row("run_accuracy", accuracy, "share", count, **where, subset=subset)
    yield _row("accuracy", float(np.mean(found)), "share", count * len(found), **where)


def _gains(rows: list[Row], name: TaskName) -> Iterator[Row]:
    """Accuracy above that without continued pretraining; what generic masks gain beyond a half.

    `generic_beyond_half` is the gain of generic masks less half the gain of uniform ones: above 0
    where generic masks give most of the gain, provided that uniform masks gain at all.
    """
    means = {row["encoder"]: row for row in rows if row["metric"] == "accuracy"}
    count = means[NONE]["n"]
    gains = {setting: means[setting]["value"] - means[NONE]["value"] for setting in SETTINGS}
    for setting, gain in gains.items():
        yield _row("gain", gain, "share", count, data=name, encoder=setting)
    beyond = gains[GENERIC] - gains[UNIFORM] / 2
    yield _row("generic_beyond_half", beyond, "share", count, data=name, encoder=GENERIC)


def _pretrain(
    config: LexiconMasksConfig, bench: Bench, model: nn.Module, setting: str, seed: int
) -> None:
    """Continued pretraining in place, with 80/10/10 corruption and masks by the setting."""
    recipe = Recipe(
        config.pretraining_steps,
        config.pretraining_batch_size,
        config.pretraining_learning_rate,
        warmup=WARMUP,
        evaluations=1,
    )
    vocabulary = MaskingVocabulary.from_tokenizer(bench.tokenizer)
    batch_at = lexicon_batches(
        bench.kept, bench.marks, vocabulary, setting, recipe.batch_size, seed,
        rate=config.mask_probability,
    )  # fmt: skip
    fit(
        model, batch_at, recipe, loss=masked_loss,
        evaluate=partial(evaluate_masked, batches=bench.exams[GENERIC]), seed=seed, signature={},
        workdir=None, execution=Execution(),
    )  # fmt: skip


def _classifier(model: nn.Module, classes: int, seed: int) -> nn.Module:
    """The encoder of a masked language model under a new head; the model is left as it is."""
    shape = deepcopy(model.config)
    shape.num_labels = classes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        classifier = AutoModelForSequenceClassification.from_config(shape)
    classifier.base_model.load_state_dict(model.base_model.state_dict(), strict=False)
    return classifier


def _few(config: LexiconMasksConfig, bench: Bench, seed: int) -> Encoded:
    """`examples_per_class` training sentences of each class."""
    generator = np.random.default_rng(seed)
    labels = np.array(bench.task.train.labels)
    chosen = np.concatenate(
        [
            generator.choice(np.flatnonzero(labels == label), config.examples_per_class, False)
            for label in range(bench.task.classes)
        ]
    )
    texts = [bench.task.train.texts[i] for i in chosen]
    rows = encode(texts, bench.tokenizer, config.max_length, split_long=False)
    return Encoded(rows, labels[chosen])


def _drawn(
    part: Part, most: int, tokenizer: PreTrainedTokenizerBase, config: LexiconMasksConfig
) -> Encoded:
    """At most `most` sentences of a part, always the same ones."""
    chosen = np.random.default_rng(0).permutation(len(part.texts))[:most]
    texts = [part.texts[i] for i in chosen]
    rows = encode(texts, tokenizer, config.max_length, split_long=False)
    return Encoded(rows, np.array(part.labels)[chosen])


def write_rows(file: Path, rows: list[Row]) -> None:
    """Rows as JSON, written beside their place and renamed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial_file = file.with_name(f"{file.name}.{os.getpid()}.partial")
    partial_file.write_text(json.dumps(rows), encoding="utf-8")
    os.replace(partial_file, file)


def _row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; `masks` is where the masks of a loss are, `subset` the fine-tuning run."""
    known = {"masks": None, "subset": None, **conditions}
    return {**known, "metric": metric, "value": float(value), "unit": unit, "n": n}
