"""Chapter 1: pretraining on real text at two learning rates, and the book model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from transformers import BertForMaskedLM

from unmasked import models
from unmasked.batches import Batch, Masking, masked_evaluation_set
from unmasked.checkpoints import Evaluation, discard_checkpoint
from unmasked.evaluation import evaluate_masked
from unmasked.experiments import corpora
from unmasked.experiments.ngrams import baseline_losses
from unmasked.masking import MaskingVocabulary
from unmasked.tokens import Sequences
from unmasked.training import Execution, Recipe, pretrain

Share = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, lt=1)]
Row = Mapping[str, object]
NATS = "nats"


class PretrainingConfig(BaseModel):
    """What a run on real text depends on. `learning_rates` are tried one after the other."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    sources: Annotated[tuple[Literal["prose", "movie_reviews"], ...], Field(min_length=1)]
    vocabulary_size: Annotated[int, Field(ge=100)]
    size: Literal["tiny", "mini", "small", "base"]
    max_length: Annotated[int, Field(ge=8, le=512)]
    steps: Positive
    batch_size: Positive
    learning_rates: Annotated[tuple[Rate, ...], Field(min_length=1)]
    mask_probability: Share = 0.15
    evaluations: Positive
    validation_sequences: Positive
    checkpoint_every: Annotated[int, Field(ge=0)] = 0
    bf16: bool = False


def compute_pretraining(config: PretrainingConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Loss and accuracy of the n-gram baselines, and along training for each learning rate."""
    corpus = corpus_of(config)
    validation = evaluation_sets(corpus, config)
    for name, loss, accuracy, n in baseline_losses(
        corpus.tokenizer, corpus.train, validation["all"]
    ):
        yield _row("loss", loss, NATS, n, model=name)
        yield _row("accuracy", accuracy, "share", n, model=name)
    for rate in config.learning_rates:
        folder = workdir / f"rate-{rate:g}"
        _, evaluations = _train(config, rate, seed, corpus, validation["all"], folder)
        yield from _curve(evaluations, model="bert", learning_rate=rate)
        discard_checkpoint(folder)


def compute_book_model(config: PretrainingConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """The long run; its model and tokenizer are saved in `workdir / "model"`."""
    corpus = corpus_of(config)
    validation = evaluation_sets(corpus, config)
    rate = config.learning_rates[0]
    model, evaluations = _train(config, rate, seed, corpus, validation["all"], workdir)
    yield from _curve(evaluations, model="bert", learning_rate=rate)
    for source in config.sources:
        metrics = evaluate_masked(model, validation[source])
        masked = int(metrics["masked"])
        for metric, unit in (("loss", NATS), ("accuracy", "share")):
            yield _row(metric, metrics[metric], unit, masked, model="bert", text=source)
    save_model(model, corpus.tokenizer, workdir / "model")
    discard_checkpoint(workdir)
    last = evaluations[-1]
    flops = models.training_flops_per_token(
        model.config, round(float(np.mean(corpus.train.lengths))), config.mask_probability
    )
    yield _row("throughput", last.tokens / last.seconds, "tokens/s", last.step, model="bert")
    yield _row("compute", flops * last.tokens, "FLOP", last.step, model="bert")
    yield _row("parameters", model.num_parameters(), "count", 1, model="bert")
    yield _row("corpus", int(corpus.train.lengths.sum()), "tokens", len(corpus.train), model="bert")


def save_model(model, tokenizer, folder: Path) -> None:
    """Save an ordinary BERT checkpoint with its tokenizer: half precision on disk, loaded in full.

    Written beside its place and renamed, so that a half-written folder is never mistaken for it.
    """
    partial = folder.with_name(f"{folder.name}.partial")
    half = BertForMaskedLM(model.config)
    half.load_state_dict(model.state_dict())
    half.to(torch.float16).save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    described = json.loads((partial / "config.json").read_text(encoding="utf-8"))
    described["dtype"] = "float32"  # what the weights are cast to when they are loaded
    (partial / "config.json").write_text(json.dumps(described, indent=2), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def data_checksum(config: PretrainingConfig) -> str:
    """Which texts the rows rest on."""
    return corpora.checksum(config.sources)


def corpus_of(config: PretrainingConfig) -> corpora.Corpus:
    """The corpus of a configuration."""
    return corpora.corpus(config.sources, config.vocabulary_size, config.max_length)


def evaluation_sets(corpus: corpora.Corpus, config: PretrainingConfig) -> dict[str, list[Batch]]:
    """Masked evaluation sets: one a source, and "all" of a share of each, fixed for all seeds."""
    vocabulary = MaskingVocabulary.from_tokenizer(corpus.tokenizer)
    generator = np.random.default_rng(0)
    each = max(1, config.validation_sequences // len(config.sources))
    parts = {
        source: rows.select(generator.permutation(len(rows))[:each])
        for source, rows in corpus.validation.items()
    }
    parts["all"] = Sequences.from_lists(
        [row for part in list(parts.values()) for row in part], corpus.train.pad_id
    )
    masking = Masking(config.mask_probability, mask=1.0, random=0.0)
    return {name: masked_evaluation_set(rows, vocabulary, masking) for name, rows in parts.items()}


def _train(
    config: PretrainingConfig,
    learning_rate: float,
    seed: int,
    corpus: corpora.Corpus,
    validation: list[Batch],
    folder: Path,
) -> tuple[models.MaskedLanguageModel, tuple[Evaluation, ...]]:
    """One run; the first evaluation is the untrained model's."""
    vocabulary = MaskingVocabulary.from_tokenizer(corpus.tokenizer)
    model = models.masked_language_model(
        models.bert_config(config.size, vocabulary.size, max_length=config.max_length), seed
    )
    start = Evaluation(0, 0, 0.0, evaluate_masked(model, validation))
    recipe = Recipe(
        config.steps,
        config.batch_size,
        learning_rate,
        evaluations=config.evaluations,
        checkpoint_every=config.checkpoint_every,
    )
    history = pretrain(
        model, corpus.train, validation, vocabulary, recipe,
        masking=Masking(config.mask_probability), seed=seed, workdir=folder,
        execution=Execution(bf16=config.bf16),
    )  # fmt: skip
    return model, (start, *history.evaluations)


def _curve(evaluations: tuple[Evaluation, ...], **conditions: object) -> Iterator[Row]:
    for point in evaluations:
        for metric, unit in (("loss", NATS), ("accuracy", "share")):
            yield _row(metric, point.metrics[metric], unit, int(point.metrics["masked"]),
                       step=point.step, tokens=point.tokens, **conditions)  # fmt: skip


def _row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; `text` is "all" where the rows of all sources are meant."""
    known = {"text": "all", "learning_rate": None, "step": None, "tokens": None, **conditions}
    return {**known, "metric": metric, "value": float(value), "unit": unit, "n": n}
