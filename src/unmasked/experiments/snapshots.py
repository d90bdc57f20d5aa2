"""Pretraining that keeps its model at several steps, on text in order or with its words shuffled.

The run in natural order with the book model's recipe and seed *is* the book model's run; its
snapshots are that model's history. The shuffled run is the control of Sinha et al. 2021
(arXiv 2104.06644): each sequence keeps its words and loses their order, once, before training.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from unmasked import models
from unmasked.batches import Batch, Masking, masked_batches
from unmasked.checkpoints import Evaluation, discard_checkpoint
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
FINISHED = "finished.json"


@dataclass(frozen=True)
class Snapshots:
    """The folders of the saved models by step, and the evaluations of the run."""

    folders: dict[int, Path]
    evaluations: tuple[Evaluation, ...]


def train_snapshots(
    config: PretrainingConfig, order: Order, steps: Iterable[int], seed: int, folder: Path
) -> Snapshots:
    """Train as the book model was trained and save the model after each of `steps`.

    Step 0 is the untrained model; every other step must be one that the recipe evaluates. A killed
    run goes on from its last checkpoint, and a finished one is read back. Raises ValueError for a
    step that is never evaluated.
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
    finished = folder / FINISHED
    if not finished.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        evaluations = _train(config, recipe, order, folders, seed, folder)
        _write(finished, json.dumps([asdict(point) for point in evaluations]))
        discard_checkpoint(folder)
    points = json.loads(finished.read_text(encoding="utf-8"))
    return Snapshots(folders, tuple(Evaluation(**point) for point in points))


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


def _train(
    config: PretrainingConfig,
    recipe: Recipe,
    order: Order,
    folders: dict[int, Path],
    seed: int,
    workdir: Path,
) -> tuple[Evaluation, ...]:
    """Train, saving the snapshots on the way; the first evaluation is the untrained model's."""
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
        begun[0] = step + 1
        return draw(step)

    def evaluate(current: torch.nn.Module) -> dict[str, float]:
        if begun[0] in folders:
            save_model(current, corpus.tokenizer, folders[begun[0]])
        return evaluate_masked(current, validation)

    start = Evaluation(0, 0, 0.0, evaluate(model))
    history = fit(
        model, batch_at, recipe, loss=masked_loss, evaluate=evaluate, seed=seed,
        signature={"data": corpus.train.checksum(), "masking": asdict(masking)},
        workdir=workdir, execution=Execution(bf16=config.bf16),
    )  # fmt: skip
    return (start, *history.evaluations)


def _ordered(corpus: corpora.Corpus, order: Order) -> corpora.Corpus:
    """The corpus itself, or with the words of every sequence shuffled, held-out ones too."""
    if order == "natural":
        return corpus
    held_out = {
        name: shuffled_words(rows, corpus.tokenizer, 0) for name, rows in corpus.validation.items()
    }
    train = shuffled_words(corpus.train, corpus.tokenizer, 0)
    return replace(corpus, train=train, validation=held_out)


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
