"""Chapter 3: models pretrained on two domains in two alphabets, made once and read back.

Several experiments start from the same pretrained models, so these are kept in the cache, each
under the fingerprint of the code and the configuration that made it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from transformers import BertConfig

from unmasked import models, project
from unmasked.alphabets import TwoAlphabets
from unmasked.batches import Batch, Masking, masked_batches, masked_evaluation_set
from unmasked.checkpoints import discard_checkpoint
from unmasked.evaluation import evaluate_masked
from unmasked.fingerprint import fingerprint
from unmasked.languages import RandomWalk
from unmasked.masking import MaskingVocabulary
from unmasked.models import MaskedLanguageModel
from unmasked.patterns import OrderedPatterns
from unmasked.rows import write_atomically
from unmasked.synonyms import ties
from unmasked.tokens import Sequences
from unmasked.training import Execution, Recipe, fit, masked_loss

MIX, SHIFT = 0.5, 1.0
"""The share of tokens at home in their domain's alphabet, with and without the property."""

Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, lt=1)]
Keep = Annotated[float, Field(ge=0.5, le=1)]
_RECORD = "evaluations.json"
_TRAIN, _VALIDATION, _TIES = 0, 1, 2  # streams of random numbers


class SourceConfig(BaseModel):
    """The source, the model and the recipe of pretraining; counts of sequences are per domain."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    vocabulary_size: Annotated[int, Field(ge=4)] = 1000
    nodes: Annotated[int, Field(ge=4)] = 5000
    set_size: Positive = 12
    length: Annotated[int, Field(ge=3, le=512)]
    labelled_length: Annotated[int, Field(ge=3, le=512)]
    layers: Positive
    hidden_size: Positive
    heads: Positive
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    train_sequences: Positive
    validation_sequences: Positive
    tie_sequences: Positive
    steps: Positive
    batch_size: Positive
    learning_rate: Rate
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    weight_decay: Annotated[float, Field(ge=0)] = 0.001
    mask_probability: Rate = 0.15
    evaluations: Positive
    bf16: bool = False

    @model_validator(mode="after")
    def _fits(self) -> SourceConfig:
        self.language(MIX), self.patterns
        if self.hidden_size % self.heads:
            raise ValueError(f"heads {self.heads} must divide hidden_size {self.hidden_size}")
        return self

    def language(self, keep: float) -> TwoAlphabets:
        """The corpus in which a token is spelt in its domain's alphabet with probability keep."""
        first, second = (
            RandomWalk(self.vocabulary_size, self.nodes, seed=seed) for seed in (330, 331)
        )
        return TwoAlphabets(first, second, keep)

    @property
    def patterns(self) -> OrderedPatterns:
        """What the labels are made by."""
        return OrderedPatterns(self.vocabulary_size, set_size=self.set_size)

    @property
    def vocabulary(self) -> MaskingVocabulary:
        """Both alphabets and [MASK]."""
        mask = 2 * self.vocabulary_size
        return MaskingVocabulary(mask + 1, mask, (mask,))

    @property
    def masking(self) -> Masking:
        """The 80/10/10 masks of pretraining; held-out losses are on pure masks."""
        return Masking(self.mask_probability)

    @property
    def bert(self) -> BertConfig:
        """The model's shape, initialised in the book's way: 0.02 at width 768, wider below."""
        return BertConfig(
            vocab_size=self.vocabulary.size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.hidden_size,
            max_position_embeddings=max(self.length, self.labelled_length),
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
            initializer_range=models.BASE_INITIALIZER_RANGE
            * (models.BASE_HIDDEN_SIZE / self.hidden_size) ** 0.5,
            pad_token_id=None,
        )


@dataclass(frozen=True)
class Point:
    """Metrics after `step` updates on `tokens` tokens."""

    step: int
    tokens: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model and what was measured on its way, the untrained model first."""

    model: MaskedLanguageModel
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Exam:
    """What a pretraining is watched on: masked held-out sequences, and synsets in two spellings."""

    config: SourceConfig
    keep: float

    @cached_property
    def batches(self) -> list[Batch]:
        """Held-out sequences of both domains as this corpus spells them, with pure masks."""
        rows = corpus(self.config, self.keep, _VALIDATION, self.config.validation_sequences)
        masking = Masking(self.config.mask_probability, mask=1.0, random=0.0)
        return masked_evaluation_set(rows, self.config.vocabulary, masking)

    @cached_property
    def synsets(self) -> np.ndarray:
        """(2 tie_sequences, length) held-out synsets, the first domain's first."""
        language, count = self.config.language(self.keep), self.config.tie_sequences
        generator = np.random.default_rng([_TIES, 0])
        walks = [language.walk(d).sample(count, self.config.length, generator) for d in (0, 1)]
        return np.concatenate(walks)

    def metrics(self, model: MaskedLanguageModel) -> dict[str, float]:
        """Loss, accuracy and the ties of all layers, by name."""
        found = evaluate_masked(model, self.batches)
        for tie in ties(model, self.config.language(self.keep), self.synsets):
            values = asdict(tie)
            layer = values.pop("layer")
            found |= {f"{name} {layer}": value for name, value in values.items()}
        return found


def corpus(config: SourceConfig, keep: float, stream: int, count: int, seed: int = 0) -> Sequences:
    """`count` sequences of each domain in one spelling; streams never share random numbers."""
    language, generator = config.language(keep), np.random.default_rng([stream, seed])
    return packed(
        np.concatenate([language.sample(d, count, config.length, generator) for d in (0, 1)]),
        config,
    )


def training_corpus(config: SourceConfig, keep: float, seed: int) -> Sequences:
    """What the model of this seed is pretrained on, and its word vectors are made from."""
    return corpus(config, keep, _TRAIN, config.train_sequences, seed)


def packed(tokens: np.ndarray, config: SourceConfig) -> Sequences:
    """Sequences of equal length (count, length), without special tokens, as released."""
    offsets = np.arange(len(tokens) + 1, dtype=np.int64) * tokens.shape[1]
    return Sequences(tokens.astype(np.int32).ravel(), offsets, config.vocabulary.mask_token_id)


def pretrained(config: SourceConfig, keep: float, seed: int) -> Pretrained:
    """The model of one corpus and seed: read back where it is whole, else trained and kept.

    A killed training goes on from its last checkpoint. The folder is named by the configuration
    and by the fingerprint of this code, so no other code's model is ever read.
    """
    parts = [config.model_dump_json(), keep, seed, fingerprint(_train)]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    folder = project.cache() / "two_alphabets" / key
    if not (folder / _RECORD).is_file():
        _train(config, keep, seed, folder)
    points = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    model = MaskedLanguageModel.from_pretrained(folder / "model").eval()
    return Pretrained(model, tuple(Point(**point) for point in points))


def _train(config: SourceConfig, keep: float, seed: int, folder: Path) -> None:
    """Pretrain into `folder`; the record is written last, so a folder with one is whole."""
    exam = Exam(config, keep)
    rows = training_corpus(config, keep, seed)
    model = models.masked_language_model(config.bert, seed)
    first = Point(0, 0, exam.metrics(model))
    recipe = Recipe(
        config.steps, config.batch_size, config.learning_rate, config.warmup, config.weight_decay,
        evaluations=config.evaluations, checkpoint_every=max(1, config.steps // 4),
    )  # fmt: skip
    history = fit(
        model, masked_batches(rows, config.vocabulary, config.masking, config.batch_size, seed),
        recipe, loss=masked_loss, evaluate=exam.metrics, seed=seed,
        signature={"data": rows.checksum(), "masking": asdict(config.masking)},
        workdir=folder / "training", execution=Execution(bf16=config.bf16),
    )  # fmt: skip
    model.save_pretrained(folder / "model")
    points = [first, *(Point(p.step, p.tokens, p.metrics) for p in history.evaluations)]
    text = json.dumps([asdict(point) for point in points])
    write_atomically(folder / _RECORD, text)
    discard_checkpoint(folder / "training")
