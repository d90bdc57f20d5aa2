"""Tables for pages: means with intervals over seeds, and the ledger of claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from unmasked.claims import Verdict
from unmasked.intervals import bootstrap

SHOWN = "mean [low, high]"
MISSING = "–"
MAXIMUM_DECIMALS = 6


def with_intervals(
    frame: pd.DataFrame, by: Sequence[str] | str, value: str = "value"
) -> pd.DataFrame:
    """One line for each combination of the columns `by`, in order of appearance.

    Values are averaged within each seed, then over seeds: columns mean, low and high (95 %
    bootstrap interval over seeds, NaN for a single seed), seeds (their number) and a text column
    `mean [low, high]`. Raises KeyError for a column that the rows lack, ValueError for no rows.
    """
    columns = [by] if isinstance(by, str) else list(by)
    if missing := [name for name in (*columns, value, "seed") if name not in frame]:
        raise KeyError(f"The rows have no column {', '.join(missing)}.")
    if frame.empty:
        raise ValueError("There are no rows to make a table of.")
    lines = []
    for key, group in frame.groupby(columns, sort=False, dropna=False):
        interval = bootstrap(group.groupby("seed")[value].mean(), np.random.default_rng(0))
        ends = {"mean": interval.mean, "low": interval.low, "high": interval.high}
        shown = formatted(interval.mean, interval.low, interval.high)
        line = dict(zip(columns, key, strict=True))
        lines.append({**line, **ends, "seeds": interval.count, SHOWN: shown})
    return pd.DataFrame(lines)


def formatted(mean: float, low: float | None = None, high: float | None = None) -> str:
    """`mean [low, high]` with as many decimals as the interval's width has two digits for.

    The mean alone, with three digits, where there is no interval. Minus signs are typographic.
    """
    ends = [] if low is None or high is None else [low, high]
    known = len(ends) == 2 and all(math.isfinite(end) for end in ends)
    decimals = _decimals(high - low if known else 0.0, mean)
    texts = [f"{number:.{decimals}f}" for number in (mean, *(ends if known else []))]
    texts = [_signed(text) for text in texts]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]" if known else texts[0]


def ledger_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """The ledger as a frame of text: claim, verdict with its reason, effect with its interval."""
    return pd.DataFrame(
        [
            (
                " ".join(v.statement.split()),
                f"{v.verdict}: {v.reason}",
                _effect(v),
                str(v.seeds or MISSING),
            )
            for v in verdicts
        ],
        columns=["claim", "verdict", "effect [95\u00a0% interval]", "seeds"],
    )


def _effect(verdict: Verdict) -> str:
    if verdict.effect is None:
        return MISSING
    return f"{formatted(verdict.effect, verdict.low, verdict.high)} {verdict.unit}".strip()


def _decimals(width: float, mean: float) -> int:
    """Decimals that show two digits of the width, or three of the mean if there is no width."""
    size, digits = (width, 2) if width > 0 else (abs(mean), 3)
    if size == 0:
        return digits
    return min(MAXIMUM_DECIMALS, max(0, digits - 1 - math.floor(math.log10(size))))


def _signed(text: str) -> str:
    zero = not text.strip("-0.")
    return text.lstrip("-") if zero else text.replace("-", "−")
