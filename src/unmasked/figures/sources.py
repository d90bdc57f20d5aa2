"""The figure of chapter 3 on labels: where one sequence holds the sets of each pattern."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from unmasked.figures.common import PALETTE, Figure, new_axes
from unmasked.patterns import OrderedPatterns


def pattern_hits_figure(patterns: OrderedPatterns, synsets: NDArray[np.int64]) -> Figure:
    """One sequence (L,) of synsets against all patterns: a line a pattern, a digit a set.

    A digit says which set of the pattern the token at that position is in; those that the search
    from the left takes are bold and joined. Raises what ``OrderedPatterns.labels`` raises.
    """
    label = int(patterns.labels(np.asarray(synsets)[None])[0])
    data = pattern_hits(patterns, synsets)
    figure, axes = new_axes(height=0.9 + 0.42 * patterns.patterns)
    for row in data.itertuples():
        axes.text(
            row.position, row.pattern, str(row.set), ha="center", va="center", fontsize=9,
            color=PALETTE[0] if row.taken else "0.4",
            fontweight="bold" if row.taken else "normal",
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white",
                  "edgecolor": PALETTE[0] if row.taken else "none"},
        )  # fmt: skip
    taken = data[data["taken"]]
    for pattern, part in taken.groupby("pattern"):
        axes.plot(part["position"], [pattern] * len(part), "-", color=PALETTE[0], linewidth=1.2)
    lines = range(1, patterns.patterns + 1)
    axes.set(
        xlabel="position", xlim=(-0.8, len(synsets) - 0.2), ylim=(patterns.patterns + 0.6, 0.4)
    )
    axes.set_yticks(lines, [f"pattern {line}" for line in lines])
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.grid(visible=False, axis="x")
    said = "; ".join(_said(taken, line, patterns.stages) for line in lines)
    complete = [line for line in lines if (taken["pattern"] == line).sum() == patterns.stages]
    return Figure(
        "pattern-hits",
        figure,
        f"A sequence of {len(synsets)} tokens against {patterns.patterns} patterns of "
        f"{patterns.stages} sets, searched from the left. {said}.",
        f"The label is {label}: of {patterns.patterns} patterns, {len(complete)} found whole. "
        "A digit is the set that a token is in; bold and joined are those that the search took.",
        data,
    )


def pattern_hits(patterns: OrderedPatterns, synsets: NDArray[np.int64]) -> pd.DataFrame:
    """Columns position (from 0), pattern and set (from 1), taken: a row for each token in a set.

    ``taken`` is whether the search from the left takes it: the first token of set 1, the first of
    set 2 behind it, and so on.
    """
    records = []
    for pattern, sets in enumerate(patterns.sets):
        wanted = 0
        for position, token in enumerate(synsets):
            for number in np.flatnonzero((sets == token).any(1)):
                taken = bool(number == wanted)
                wanted += taken
                records.append((position, pattern + 1, int(number) + 1, taken))
    frame = pd.DataFrame(records, columns=["position", "pattern", "set", "taken"])
    return frame.astype({"taken": bool})


def _said(taken: pd.DataFrame, pattern: int, stages: int) -> str:
    places = taken[taken["pattern"] == pattern]["position"].tolist()
    if not places:
        return f"Pattern {pattern}: 0 of {stages} sets"
    where = "position " if len(places) == 1 else "positions "
    where += ", ".join(map(str, places))
    return f"Pattern {pattern}: {len(places)} of {stages} sets, at {where}"
