"""What the synthetic source costs: labels beside regular expressions, and drawing sequences.

The reference finds patterns as the released code does, with one regular expression a pattern over a
sequence written as a string, one character a token; writing the strings is timed with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from unmasked.languages import RandomWalk
from unmasked.patterns import OrderedPatterns
from unmasked.timing import Ratio, interleaved, seconds

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
FIRST_CHARACTER = 0x4E00  # tokens as CJK characters: none of them is special in an expression


class SourceCostConfig(BaseModel):
    """How many sequences are labelled and drawn, at the published constants of the source."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    labelled_sequences: Positive
    labelled_length: Annotated[int, Field(ge=3)] = 100
    drawn_sequences: Positive
    drawn_length: Annotated[int, Field(ge=1)] = 512
    repeats: Positive


@dataclass(frozen=True)
class Benchmark:
    """Seconds of the reference over those of this package, and the least ratio we aim at."""

    label: str
    goal: float | None = None


BENCHMARKS = MappingProxyType(
    {
        "labels": Benchmark("pattern labels against regular expressions", 30.0),
        "labels_ready": Benchmark("the same, strings written beforehand", 30.0),
    }
)
WALKS = "walks"


def compute_source_cost(config: SourceCostConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """The ratio of the labels with the seconds of both sides, and the seconds of drawing walks."""
    for name, benchmark in BENCHMARKS.items():
        ratio = measured(name, config)
        for metric in ("median", "low", "high"):
            yield _row(name, benchmark.label, metric, getattr(ratio, metric), "s/s", ratio.repeats)
        for metric in ("slow_seconds", "fast_seconds"):
            value, n = getattr(ratio, metric), config.labelled_sequences
            yield _row(name, benchmark.label, metric, value, "s", n)
    draw = partial(
        RandomWalk().sample, config.drawn_sequences, config.drawn_length, np.random.default_rng(0)
    )
    value = seconds(draw, config.repeats)
    yield _row(WALKS, "walks drawn", "seconds", value, "s", config.drawn_sequences)


def measured(name: str, config: SourceCostConfig) -> Ratio:
    """The ratio of one benchmark, the two sides timed in turns; KeyError for an unknown one."""
    if name not in BENCHMARKS:
        raise KeyError(name)
    patterns, generator = OrderedPatterns(), np.random.default_rng(0)
    tokens = RandomWalk().sample(config.labelled_sequences, config.labelled_length, generator)
    compiled = expressions(patterns)
    if name == "labels":
        slow = partial(labels_by_expressions, compiled, tokens)
    else:
        slow = partial(matched, compiled, written(tokens))
    return interleaved(slow, partial(patterns.labels, tokens), config.repeats)


def expressions(patterns: OrderedPatterns) -> list[re.Pattern[str]]:
    """One regular expression a pattern: a character of each set in order, with any gaps."""
    return [re.compile(".*".join(f"[{text}]" for text in written(sets))) for sets in patterns.sets]


def labels_by_expressions(
    compiled: list[re.Pattern[str]], tokens: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(B,) labels of tokens (B, L)."""
    return matched(compiled, written(tokens))


def written(tokens: NDArray[np.int64]) -> list[str]:
    """Each row of tokens (B, L) as a string, decoded from all of their code points at once."""
    text = (tokens + FIRST_CHARACTER).astype("<u4").tobytes().decode("utf-32-le")
    length = tokens.shape[1]
    return [text[start : start + length] for start in range(0, len(text), length)]


def matched(compiled: list[re.Pattern[str]], texts: list[str]) -> NDArray[np.int64]:
    """(B,) labels of the texts: 1 where any expression is found."""
    return np.array([any(each.search(text) for each in compiled) for text in texts], dtype=int)


def _row(benchmark: str, label: str, metric: str, value: float, unit: str, n: int) -> Row:
    return {
        "benchmark": benchmark, "label": label, "metric": metric, "value": value, "unit": unit,
        "n": n,
    }  # fmt: skip
