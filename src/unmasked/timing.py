"""Speed ratios measured side by side: interleaved repeats, so that a busy machine hits both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ratio:
    """How many times faster one function is: median, least and greatest of the repeats.

    `slow_seconds` and `fast_seconds` are the medians of the two.
    """

    median: float
    low: float
    high: float
    slow_seconds: float
    fast_seconds: float
    repeats: int


def interleaved(
    slow: Callable[[], object],
    fast: Callable[[], object],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Ratio:
    """Time `slow` and `fast` in turns, after one unmeasured call of each.

    The ratio of each pair is taken, so what slows the machine for a moment cancels. Raises
    ValueError for fewer than one repeat.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; at least 1 is needed")
    slow()
    fast()
    pairs = np.array([[_seconds(slow, clock), _seconds(fast, clock)] for _ in range(repeats)])
    ratios = pairs[:, 0] / pairs[:, 1]
    medians = np.median(pairs, axis=0)
    return Ratio(
        float(np.median(ratios)), float(ratios.min()), float(ratios.max()),
        float(medians[0]), float(medians[1]), repeats,
    )  # fmt: skip


def seconds(
    function: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Median time of `repeats` calls after an unmeasured one; ValueError for fewer than one."""
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; at least 1 is needed")
    function()
    return float(np.median([_seconds(function, clock) for _ in range(repeats)]))


def _seconds(function: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    function()
    return clock() - started
