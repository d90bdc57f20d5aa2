"""Means over seeds with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 9_999


@dataclass(frozen=True)
class Interval:
    """A mean over `count` values with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int


def bootstrap(values: Sequence[float], generator: np.random.Generator) -> Interval:
    """Mean and 95 % percentile bootstrap interval of the mean; `values` has shape (seeds,).

    With one value the ends are NaN, since nothing can be said. With few values the interval is
    narrower than its level promises: three seeds can give no end outside their own range. Raises
    ValueError for no values.
    """
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("An interval needs at least one value.")
    mean = float(sample.mean())
    if sample.size == 1:
        return Interval(mean, float("nan"), float("nan"), 1)
    drawn = generator.integers(sample.size, size=(RESAMPLES, sample.size))
    low, high = np.quantile(sample[drawn].mean(axis=1), [0.025, 0.975])
    return Interval(mean, float(low), float(high), int(sample.size))
