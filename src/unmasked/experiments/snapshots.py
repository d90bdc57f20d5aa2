"""Pretraining that keeps its model at several steps, on text in order or with its words shuffled.

The run in natural order with the book model's recipe and seed *is* the book model's run; its
snapshots are that model's history. The shuffled run is the control of Sinha et al. 2021
(arXiv 2104.06644): each sequence keeps its words and loses their order, once, before training.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from unmasked import models
from unmasked.batches import Batch, Masking, batch_indices, masked_batches
from unmasked.checkpoints import discard_checkpoint
from unmasked.evaluation import evaluate_masked
from unmasked.experiments import corpora
from unmasked.experiments.pretraining import (
    PretrainingConfig,
    corpus_of,
    evaluation_sets,
    save_model,
)
from unmasked.masking import MaskingVocabulary
from unmasked.tokens import Sequences, word_ids
from unmasked.training import Execution, Recipe, fit, masked_loss

Order = Literal["natural", "shuffled"]
RECORD = "evaluations.json"


@dataclass(frozen=True)
class Point:
    """Metrics on the held-out sequences after `step` updates on `tokens` tokens."""

    step: int
    tokens: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Snapshots:
    """The folders of the saved models by step, and the evaluations of the run."""

    folders: dict[int, Path]
    evaluations: tuple[Point, ...]


class _LastSnapshotError(Exception):
    """Ends a run whose last snapshot is saved before its last step."""


def train_snapshots(
    config: PretrainingConfig, order: Order, steps: Iterable[int], seed: int, folder: Path
) -> Snapshots:
    """Train as the book model was trained and save the model after each of `steps`.

    Step 0 is the untrained model; every other step must be one that the recipe evaluates. The run
    ends with the last of them, in the middle of the recipe's schedule if that is where it stands.
    A killed run goes on from its last checkpoint, and a finished one is read back. Raises
    ValueError for a step that is never evaluated.
    """
    wanted = sorted(set(steps))
    recipe = Recipe(
        config.steps,
        config.batch_size,
        config.learning_rates[0],
        evaluations=config.evaluations,
        checkpoint_every=config.checkpoint_every,
    )
    count = recipe.evaluations
    evaluated = {round((i + 1) * recipe.steps / count) for i in range(count)}
    if missing := [step for step in wanted if step and step not in evaluated]:
        raise ValueError(f"no evaluation, so no snapshot, at step {missing[0]} of {recipe.steps}")
    folders = {step: folder / f"step-{step}" for step in wanted}
    points = _recorded(folder)
    if wanted[-1] not in points:
        folder.mkdir(parents=True, exist_ok=True)
        _train(config, recipe, order, folders, seed, folder)
        discard_checkpoint(folder)
        points = _recorded(folder)
    return Snapshots(folders, tuple(points[step] for step in sorted(points)))


def shuffled_words(
    sequences: Sequences, tokenizer: PreTrainedTokenizerBase, seed: int
) -> Sequences:
    """Each sequence with its words in a random order; word pieces stay together.

    `[CLS]` and `[SEP]` keep their places. The order is drawn once for each sequence.
    """
    generator = np.random.default_rng(seed)
    words = word_ids(tokenizer, torch.from_numpy(sequences.ids.astype(np.int64))[None])[0].numpy()
    rows = []
    for index, (start, stop) in enumerate(pairwise(sequences.offsets)):
        row, word = sequences[index].copy(), words[start:stop]
        inside = np.flatnonzero(word >= 0)
        first = word[inside[0]]
        place = generator.permutation(word.max() - first + 1)[word[inside] - first]
        row[inside] = row[inside[np.argsort(place, kind="stable")]]
        rows.append(row)
    return Sequences.from_lists(rows, sequences.pad_id)


def tokens_seen(sequences: Sequences, batch_size: int, seed: int, steps: int) -> int:
    """Tokens in the first `steps` batches of a run."""
    rows_at = batch_indices(sequences.lengths, batch_size, seed)
    return sum(int(sequences.lengths[list(rows_at(step))].sum()) for step in range(steps))


def _train(
    config: PretrainingConfig,
    recipe: Recipe,
    order: Order,
    folders: dict[int, Path],
    seed: int,
    workdir: Path,
) -> None:
    """Train, saving the snapshots and recording the evaluations on the way."""
    corpus = _ordered(corpus_of(config), order)
    validation = evaluation_sets(corpus, config)["all"]
    vocabulary = MaskingVocabulary.from_tokenizer(corpus.tokenizer)
    masking = Masking(config.mask_probability)
    model = models.masked_language_model(
        models.bert_config(config.size, vocabulary.size, max_length=config.max_length), seed
    )
    draw = masked_batches(corpus.train, vocabulary, masking, recipe.batch_size, seed)
    begun = [0]

    def batch_at(step: int) -> Batch:
        if step == max(folders):
            raise _LastSnapshotError
        begun[0] = step + 1
        return draw(step)

    def evaluate(current: torch.nn.Module) -> dict[str, float]:
        step = begun[0]
        if step in folders:
            save_model(current, corpus.tokenizer, folders[step])
        metrics = evaluate_masked(current, validation)
        tokens = tokens_seen(corpus.train, recipe.batch_size, seed, step)
        _record(workdir, Point(step, tokens, metrics))
        return metrics

    if 0 not in _recorded(workdir):
        evaluate(model)
    with suppress(_LastSnapshotError):
        fit(
            model, batch_at, recipe, loss=masked_loss, evaluate=evaluate, seed=seed,
            signature={"data": corpus.train.checksum(), "masking": asdict(masking)},
            workdir=workdir, execution=Execution(bf16=config.bf16),
        )  # fmt: skip


def _ordered(corpus: corpora.Corpus, order: Order) -> corpora.Corpus:
    """The corpus itself, or with the words of every sequence shuffled, held-out ones too."""
    if order == "natural":
        return corpus
    held_out = {
        name: shuffled_words(rows, corpus.tokenizer, 0) for name, rows in corpus.validation.items()
    }
    train = shuffled_words(corpus.train, corpus.tokenizer, 0)
    return replace(corpus, train=train, validation=held_out)


def _recorded(folder: Path) -> dict[int, Point]:
    """The evaluations of a run so far, by step."""
    path = folder / RECORD
    lines = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return {line["step"]: Point(**line) for line in lines}


def _record(folder: Path, point: Point) -> None:
    """Add an evaluation; the file is replaced in one step."""
    points = {**_recorded(folder), point.step: point}
    partial = folder / f"{RECORD}.{os.getpid()}.partial"
    partial.write_text(json.dumps([asdict(each) for each in points.values()]), encoding="utf-8")
    os.replace(partial, folder / RECORD)
