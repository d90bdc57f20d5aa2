"""Chapter 3: classifiers of sentences, fine-tuned from a masked language model and kept.

For each seed one classifier on all training sentences, with its snapshots; one on each smaller
share; a twin that differs from the first in its seed alone; and one that was never trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from unmasked.batches import labelled_batches
from unmasked.checkpoints import discard_checkpoint
from unmasked.evaluation import evaluate_classifier
from unmasked.experiments.lexicon_tasks import Part, TaskName, load_task
from unmasked.project import UserError
from unmasked.tokens import Sequences, encode
from unmasked.training import Execution, Recipe, classification_loss, fit

FRAME, ROOM = 12, 20
"""Pieces left free in a sequence for a template, and for a template and a longer word."""


@dataclass(frozen=True)
class FineTuning:
    """How a classifier is trained; ``snapshots`` are spread evenly and include the last step."""

    epochs: int
    batch_size: int
    learning_rate: float
    snapshots: int
    max_length: int


@dataclass(frozen=True)
class Sentences:
    """Training and test sentences of a data set, encoded for one tokenizer."""

    name: TaskName
    classes: int
    tokenizer: Tokenizer
    max_length: int
    train: Part
    test: Part

    @classmethod
    def load(
        cls, name: TaskName, tokenizer: Tokenizer, max_length: int, train: int, test: int
    ) -> Sentences:
        """`train` and `test` sentences, drawn once for all seeds; test ones leave room for a frame.

        Raises UserError if no test sentence is short enough.
        """
        task = load_task(name, 1)
        short = [
            i for i, text in enumerate(task.test.texts)
            if len(tokenizer.tokenize(text)) <= max_length - ROOM
        ]  # fmt: skip
        if not short:
            raise UserError(
                f"No test sentence of {name} has at most {max_length - ROOM} pieces; raise "
                f"max_length {max_length}."
            )
        part = Part(*(tuple(column[i] for i in short) for column in _columns(task.test)))
        drawn = [_drawn(task.train, train, 1), _drawn(part, test, 2)]
        return cls(name, task.classes, tokenizer, max_length, *drawn)

    @cached_property
    def encoded(self) -> tuple[Sequences, np.ndarray]:
        """The training sentences and their labels, int64."""
        return self._encoded(self.train)

    @cached_property
    def exam(self) -> tuple[Sequences, np.ndarray]:
        """The test sentences and their labels, int64."""
        return self._encoded(self.test)

    def _encoded(self, part: Part) -> tuple[Sequences, np.ndarray]:
        rows = encode(part.texts, self.tokenizer, self.max_length, split_long=False)
        return rows, np.array(part.labels, dtype=np.int64)


@dataclass(frozen=True)
class Classifier:
    """A classifier with its test accuracy, the share of sentences and updates it had."""

    model: PreTrainedModel
    accuracy: float
    share: float
    step: int


def untrained(model: PreTrainedModel, classes: int, seed: int) -> PreTrainedModel:
    """The encoder of a masked language model under a head drawn from `seed`."""
    shape = type(model.config).from_dict({**model.config.to_dict(), "num_labels": classes})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        classifier = AutoModelForSequenceClassification.from_config(shape)
    classifier.base_model.load_state_dict(model.base_model.state_dict(), strict=False)
    return classifier.eval()


def trained(
    start: PreTrainedModel, data: Sentences, how: FineTuning, share: float, seed: int, folder: Path
) -> Iterator[Classifier]:
    """The snapshots of one fine-tuning on a share of the training sentences, the last one last.

    Finished trainings are read back from `folder`.
    """
    rows, labels = data.encoded
    chosen = np.random.default_rng([seed, 3]).permutation(len(rows))
    chosen = chosen[: max(1, round(share * len(rows)))]
    part, part_labels = rows.select(chosen), labels[chosen]
    steps = max(how.snapshots, how.epochs * -(-len(part) // how.batch_size))
    recipe = Recipe(steps, how.batch_size, how.learning_rate, warmup=0.1, evaluations=how.snapshots)
    due = [round((i + 1) * steps / how.snapshots) for i in range(how.snapshots)]
    if not (folder / f"step-{due[-1]}").is_dir():
        model = untrained(start, data.classes, seed)
        left = iter(due)

        def keep(current: nn.Module) -> dict[str, float]:
            current.save_pretrained(folder / f"step-{next(left)}")
            return {}

        fit(
            model, labelled_batches(part, part_labels, how.batch_size, seed), recipe,
            loss=classification_loss, evaluate=keep, seed=seed, signature={}, workdir=None,
            execution=Execution(),
        )  # fmt: skip
        discard_checkpoint(folder)
    for step in due:
        model = AutoModelForSequenceClassification.from_pretrained(folder / f"step-{step}").eval()
        accuracy = evaluate_classifier(model, *data.exam)["accuracy"]
        yield Classifier(model, accuracy, share, step)


def _columns(part: Part) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return part.texts, part.labels


def _drawn(part: Part, count: int, stream: int) -> Part:
    """At most `count` rows, the same for every seed."""
    order = np.random.default_rng([stream, 0]).permutation(len(part.texts))[:count]
    return Part(*(tuple(column[i] for i in order) for column in _columns(part)))
