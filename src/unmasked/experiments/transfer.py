"""Chapter 3: what a start gives to fine-tuning, under the trained condition and under all four.

A classifier learns the pattern labels from few sequences, most of them spelt in A and walked in
the first domain (A-D1), a share of them in B and the second domain (B-D2), and is tested on every
pair of alphabet and domain. Starts differ in what they take from a pretrained model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from transformers import BertConfig, BertForSequenceClassification

from unmasked import word_vectors
from unmasked.alphabets import A, B
from unmasked.evaluation import evaluate_classifier
from unmasked.experiments.two_alphabets import (
    MIX,
    Keep,
    Positive,
    Rate,
    SourceConfig,
    packed,
    pretrained,
    training_corpus,
)
from unmasked.rows import write_atomically
from unmasked.tokens import Sequences
from unmasked.training import Execution, Recipe, finetune

Row = Mapping[str, object]
Start = Literal[
    "pretrained", "shuffled weights", "embeddings only", "all but embeddings",
    "word vectors", "scrambled word vectors", "scratch",
]  # fmt: skip
Share = Annotated[float, Field(ge=0, le=1)]
FROM_PRETRAINED = ("pretrained", "shuffled weights", "embeddings only", "all but embeddings")
CONDITIONS = {"A-D1": (A, 0), "B-D1": (B, 0), "A-D2": (A, 1), "B-D2": (B, 1)}
TRAINED = "trained"
"""The mixture of conditions that the classifier was fine-tuned on."""
SHARE = "share"
_LABELLED, _TEST = 10, 11  # streams of random numbers


class Plan(BaseModel):
    """Every start, from corpora of every `keep` if it takes from one, at every size and share."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    starts: Annotated[tuple[Start, ...], Field(min_length=1)]
    keeps: tuple[Keep, ...] = (MIX,)
    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    second_shares: Annotated[tuple[Share, ...], Field(min_length=1)]


class TransferConfig(BaseModel):
    """The source with its pretrained models, what is fine-tuned, and how.

    `steps` is the least number of updates; `epochs` over the sequences may ask for more.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    source: SourceConfig
    plans: Annotated[tuple[Plan, ...], Field(min_length=1)]
    steps: Positive
    epochs: Positive = 1
    batch_size: Positive = 32
    learning_rate: Rate
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.1
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    pool_sequences: Positive
    test_sequences: Positive

    @model_validator(mode="after")
    def _pool_suffices(self) -> TransferConfig:
        largest = max(size for plan in self.plans for size in plan.sizes)
        if largest > self.pool_sequences:
            raise ValueError(f"size {largest} exceeds pool_sequences {self.pool_sequences}")
        return self


@dataclass(frozen=True)
class Labelled:
    """Sequences with their pattern labels, int64 (count,)."""

    rows: Sequences
    labels: np.ndarray


def compute_transfer(config: TransferConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Test accuracy by start, share of B-D2, size and condition; the majority class beside it."""
    exams = tests(config)
    for name, exam in exams.items():
        ones = exam.labels.mean()
        yield _row("majority", max(ones, 1 - ones), len(exam.labels), condition=name)
    for plan in config.plans:
        for start, keep in _sources(plan):
            for share in plan.second_shares:
                for size in plan.sizes:
                    where = {"start": start, "keep": keep, "second_share": share, "size": size}
                    for name, value in _kept(config, seed, workdir, **where).items():
                        n = config.test_sequences
                        yield _row("accuracy", value, n, condition=name, **where)


def _kept(
    config: TransferConfig, seed: int, workdir: Path, start: Start, keep: float | None,
    second_share: float, size: int,
) -> dict[str, float]:  # fmt: skip
    """The accuracies of one fine-tuning, read back from `workdir` where they were written."""
    path = workdir / f"{start}-{keep}-{second_share:g}-{size}.json"
    if not path.is_file():
        classifier = started(config.source, start, keep, seed)
        write_atomically(path, json.dumps(finetuned(config, classifier, second_share, size, seed)))
    return json.loads(path.read_text(encoding="utf-8"))


def tests(config: TransferConfig) -> dict[str, Labelled]:
    """The test sequences of the four conditions, the same for every seed."""
    return {
        name: labelled(config.source, place, config.test_sequences, (_TEST, 0))
        for name, place in CONDITIONS.items()
    }


def labelled(
    config: SourceConfig, place: tuple[int, int], count: int, stream: tuple[int, int]
) -> Labelled:
    """`count` sequences of an alphabet and a domain; a stream gives each domain its own walks."""
    alphabet, domain = place
    language = config.language(MIX)
    generator = np.random.default_rng([*stream, domain])
    synsets = language.walk(domain).sample(count, config.labelled_length, generator)
    labels = config.patterns.labels(synsets)
    return Labelled(packed(language.spelt(synsets, alphabet), config), labels)


def training_set(config: TransferConfig, share: float, size: int, seed: int) -> Labelled:
    """`size` sequences of which round(share size) are B-D2, the rest A-D1.

    They are the first of this seed's pools, so that a larger set holds the smaller ones.
    """
    second = round(share * size)
    counts = {"A-D1": size - second, "B-D2": second}
    pools = {
        name: labelled(config.source, CONDITIONS[name], config.pool_sequences, (_LABELLED, seed))
        for name in counts
    }
    lists = [pools[name].rows[i] for name, count in counts.items() for i in range(count)]
    labels = np.concatenate([pools[name].labels[:count] for name, count in counts.items()])
    return Labelled(Sequences.from_lists(lists, config.source.vocabulary.mask_token_id), labels)


def finetuned(
    config: TransferConfig,
    classifier: BertForSequenceClassification,
    share: float,
    size: int,
    seed: int,
) -> dict[str, float]:
    """Test accuracy of each condition, and of the trained mixture of them, with the last weights.

    Nothing is selected: the released code keeps the checkpoint that is best on validation.
    """
    source = config.source
    train = training_set(config, share, size, seed)
    exams = {name: (exam.rows, exam.labels) for name, exam in tests(config).items()}
    recipe = Recipe(
        max(config.steps, -(-config.epochs * size // config.batch_size)), config.batch_size,
        config.learning_rate, config.warmup, config.weight_decay, evaluations=1,
    )  # fmt: skip
    finetune(
        classifier, train.rows, train.labels, exams["A-D1"], recipe, seed=seed,
        execution=Execution(bf16=source.bf16),
    )  # fmt: skip
    found = {
        name: evaluate_classifier(classifier, *exam)["accuracy"] for name, exam in exams.items()
    }
    return {**found, TRAINED: (1 - share) * found["A-D1"] + share * found["B-D2"]}


def started(
    config: SourceConfig, start: Start, keep: float | None, seed: int
) -> BertForSequenceClassification:
    """A classifier of two classes with what `start` takes from the model pretrained at `keep`.

    Everything that is not taken is drawn from the seed; pooler and classifier always are.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        classifier = BertForSequenceClassification(
            BertConfig.from_dict({**config.bert.to_dict(), "num_labels": 2})
        )
    table = classifier.get_input_embeddings().weight
    fresh = table.detach().clone()
    if start in FROM_PRETRAINED:
        model = pretrained(config, keep, seed).model
        if start == "shuffled weights":
            word_vectors.shuffled_weights(model, torch.Generator().manual_seed(seed))
        if start == "embeddings only":
            _put(table, model.get_input_embeddings().weight)
        else:
            classifier.bert.load_state_dict(model.bert.state_dict(), strict=False)
        if start == "all but embeddings":
            _put(table, fresh)
    elif start in ("word vectors", "scrambled word vectors"):
        vectors = word_vectors.scaled(vectors_of(config, seed))
        scrambled = start == "scrambled word vectors"
        vectors = word_vectors.scrambled(vectors) if scrambled else vectors
        _put(table, torch.cat([torch.from_numpy(vectors), fresh[len(vectors) :]]))
    return classifier


@lru_cache(maxsize=2)
def vectors_of(config: SourceConfig, seed: int) -> np.ndarray:
    """(2 synsets, hidden_size) CBOW vectors of the corpus with the property, as released."""
    rows = training_corpus(config, MIX, seed)
    tokens = rows.ids.reshape(len(rows), config.length)
    return word_vectors.cbow(tokens, config.vocabulary.mask_token_id, config.hidden_size, seed)


def _put(table: torch.Tensor, values: torch.Tensor) -> None:
    with torch.no_grad():
        table.copy_(values)


def _sources(plan: Plan) -> Iterator[tuple[Start, float | None]]:
    """Each start with each corpus that it can come from; None where it comes from none."""
    for start in plan.starts:
        yield from ((start, keep) for keep in (plan.keeps if start in FROM_PRETRAINED else (None,)))


def _row(metric: str, value: float, n: int, **where: object) -> Row:
    known = dict.fromkeys(("start", "keep", "second_share", "size", "condition"))
    return {**known, **where, "metric": metric, "value": float(value), "unit": SHARE, "n": n}
