"""What every figure is made of: the `Figure` record, colours, axes, error bars.

Alt texts and captions are made from the numbers that are drawn. Colours are colour-blind safe and
every series also differs by marker or dash, so that a page printed in grey can be read.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.axes
import matplotlib.axis
import matplotlib.ticker
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as MatplotlibFigure

from unmasked.intervals import Interval
from unmasked.tables import formatted

WIDTH = 5.6  # inches; wider, and the text would be too small on a phone
PALETTE = sns.color_palette("colorblind")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Figure:
    """A drawn figure, its name, what it shows in words, what it says, and its data."""

    name: str
    figure: MatplotlibFigure
    alt: str
    caption: str
    data: pd.DataFrame


def plain_ticks(axis: matplotlib.axis.Axis) -> None:
    """Numbers as they are read, few of them, on a logarithmic axis."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def new_axes(height: float = 3.5) -> tuple[MatplotlibFigure, matplotlib.axes.Axes]:
    """A figure that no global state knows, so that a notebook shows it only when asked."""
    with sns.axes_style("whitegrid"):
        figure = MatplotlibFigure(figsize=(WIDTH, height), layout="constrained")
        return figure, figure.subplots()


def curves(
    axes: matplotlib.axes.Axes,
    data: pd.DataFrame,
    by: str,
    labels: Mapping[object, str],
    x: str = "tokens",
) -> None:
    """One line of means over column `x`, with an interval band, for each value of column `by`.

    `data` comes from `tables.with_intervals`; `labels` maps up to six values of `by` to what the
    legend says.
    """
    for number, (value, label) in enumerate(labels.items()):
        part = data[data[by] == value].sort_values(x)
        colour = PALETTE[number]
        axes.plot(part[x], part["mean"], DASHES[number % len(DASHES)], marker=MARKERS[number],
                  markersize=4, color=colour, label=label)  # fmt: skip
        axes.fill_between(part[x], part["low"], part["high"], color=colour, alpha=0.25)


def grouped_points(
    axes: matplotlib.axes.Axes,
    data: pd.DataFrame,
    by: str,
    labels: Mapping[object, str],
    row: str | Sequence[str],
    rows: Mapping[Hashable, str],
    gap: float = 0.24,
    **style: object,
) -> None:
    """Means with horizontal intervals: a line for each of `rows`, a point for each value of `by`.

    `data` comes from `tables.with_intervals`; `rows` maps values of column `row` (tuples of several
    columns) to what stands beside the line, from the top down, and `labels` values of `by` to what
    the legend says. The points of a line are `gap` apart; one that `data` lacks is left out.
    """
    for number, (value, label) in enumerate(labels.items()):
        part = data[data[by] == value].set_index(row).reindex(pd.Index(list(rows)))
        shift = gap * (number - (len(labels) - 1) / 2)
        axes.errorbar(
            part["mean"], [line + shift for line in range(len(rows))], xerr=error_lengths(part),
            color=PALETTE[number], label=label, **{"fmt": MARKERS[number], "capsize": 3, **style},
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), list(rows.values()))
    axes.invert_yaxis()


def error_lengths(data: pd.DataFrame) -> list[pd.Series]:
    """Lengths of the error bars; 0 where a single seed has no interval."""
    return [(data["mean"] - data["low"]).fillna(0.0), (data["high"] - data["mean"]).fillna(0.0)]


def shown_interval(end: Interval) -> str:
    """`mean [low, high]` as tables print it."""
    return formatted(end.mean, end.low, end.high)
