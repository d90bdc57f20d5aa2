"""The figures of chapter 3 on fine-tuning: what a start gives, and under which condition."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as MatplotlibFigure

from unmasked.figures.common import (
    DASHES,
    MARKERS,
    PALETTE,
    WIDTH,
    Figure,
    curves,
    error_lengths,
    grouped_points,
    new_axes,
)
from unmasked.tables import SHOWN, with_intervals

MIX, SHIFT = 0.5, 1.0
WITH, WITHOUT = "pretrained with the property", "pretrained without"
CONDITIONS = ("A-D1", "B-D1", "A-D2", "B-D2")
STARTS = (WITH, WITHOUT, "word vectors", "scratch")


def sample_efficiency_figure(rows: pd.DataFrame) -> Figure:
    """Accuracy on the trained mixture against size, one line a start, one panel a second share.

    `rows` are those of experiment transfer.
    """
    part = named(rows)
    data = with_intervals(part[part["condition"] == "trained"], ["second_share", "start", "size"])
    data = data[data["start"].isin(STARTS)]
    shares = sorted(data["second_share"].unique())
    with sns.axes_style("whitegrid"):
        figure = MatplotlibFigure(figsize=(WIDTH, 1.2 + 2.0 * len(shares)), layout="constrained")
        panels = figure.subplots(len(shares), 1, sharex=True, squeeze=False)[:, 0]
    for axes, share in zip(panels, shares, strict=True):
        for number, start in enumerate(STARTS):
            line = data[(data["second_share"] == share) & (data["start"] == start)]
            line = line.sort_values("size")
            axes.errorbar(
                line["size"] * 1.05 ** (number - 1.5), line["mean"], error_lengths(line),
                marker=MARKERS[number], linestyle=DASHES[number], color=PALETTE[number],
                markersize=4, linewidth=1.2, elinewidth=0.8, label=start,
            )  # fmt: skip
        axes.set(xscale="log", ylabel="accuracy", title=f"share of B-D2: {share:g}")
        axes.set_xticks(sorted(data["size"].unique()))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    panels[-1].set_xlabel("labelled sequences")
    panels[0].legend(frameon=False, fontsize=8)
    overall = with_intervals(data.assign(seed=0), "start", "mean").set_index("start")["mean"]
    said = ", ".join(f"{start} {overall[start]:.3f}" for start in STARTS if start in overall)
    return Figure(
        "sample-efficiency",
        figure,
        "Accuracy on the conditions of training against the number of labelled sequences, in "
        f"{len(shares)} panels by the share of B-D2 among them, one line a start. Averaged over "
        f"panels and sizes: {said}.",
        f"Accuracy where the classifier was trained, averaged over panels and sizes: {said}. Bars: "
        f"intervals over seeds ({data['seeds'].max()}).",
        data,
    )


def generalisation_figure(rows: pd.DataFrame) -> Figure:
    """Accuracy on all four conditions at the largest size, by start and second share."""
    part = named(rows)
    part = part[part["condition"].isin(CONDITIONS) & part["start"].isin(STARTS)]
    size = int(part["size"].max())
    data = with_intervals(part[part["size"] == size], ["second_share", "condition", "start"])
    lines = {
        (share, condition): f"{condition}, {share:g}"
        for share in sorted(data["second_share"].unique())
        for condition in CONDITIONS
    }
    figure, axes = new_axes(height=1.2 + 0.42 * len(lines))
    grouped_points(axes, data, "start", {start: start for start in STARTS},
                   ["second_share", "condition"], lines, gap=0.18, capsize=2,
                   markersize=4)  # fmt: skip
    majority = rows[rows["metric"] == "majority"]["value"].mean()
    axes.axvline(majority, color="0.3", linewidth=1.0, linestyle=":")
    axes.set(xlabel="accuracy", ylabel="condition, share of B-D2 in training")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)
    least = data[data["second_share"] == data["second_share"].min()].set_index(
        ["condition", "start"]
    )[SHOWN]
    said = "; ".join(
        f"{start}: {least['A-D1', start]} on A-D1, {least['B-D1', start]} on B-D1"
        for start in STARTS[:2]
    )
    return Figure(
        "generalisation",
        figure,
        f"Accuracy on four pairs of alphabet and domain after training on {size:,} sequences, for "
        f"{len(lines)} pairs of condition and share of B-D2, one point a start. Trained on A-D1 "
        f"alone, {said}. The majority class has {majority:.3f}.",
        f"Trained on A-D1 alone, {said}.",
        data,
    )


def dial_figure(rows: pd.DataFrame) -> Figure:
    """Accuracy on pairs that were not trained, against how far the spelling names the domain.

    `rows` are those of experiment alphabet_dial.
    """
    part = rows[(rows["metric"] == "accuracy") & rows["keep"].notna()]
    data = with_intervals(part, ["second_share", "condition", "keep"])
    shares = sorted(data["second_share"].unique())
    wanted = [(shares[0], "A-D1"), (shares[0], "B-D1"), (shares[-1], "B-D1"), (shares[-1], "A-D2")]
    labels = {key: f"{key[1]}, share of B-D2 {key[0]:g}" for key in wanted}
    data["line"] = list(zip(data["second_share"], data["condition"], strict=True))
    data = data[data["line"].isin(labels)]
    figure, axes = new_axes()
    curves(axes, data, "line", labels, x="keep")
    axes.set(xlabel="probability that a token is in its domain's alphabet", ylabel="accuracy")
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    ends = data.set_index(["line", "keep"])[SHOWN]
    low, high = data["keep"].min(), data["keep"].max()
    said = "; ".join(
        f"{label}: {ends[key, low]} to {ends[key, high]}" for key, label in labels.items()
    )
    return Figure(
        "alphabet-dial",
        figure,
        f"Accuracy against the probability that a token is spelt in its domain's alphabet. From "
        f"{low:g} to {high:g}, {said}.",
        f"From shared contexts (left) to none (right): {said}.",
        data.drop(columns="line"),
    )


def transplant_figure(rows: pd.DataFrame) -> Figure:
    """Accuracy by condition for every start at the size and largest share that all of them have."""
    part = named(rows)
    part = part[part["condition"].isin(CONDITIONS)]
    size, share = common_cell(part)
    part = part[(part["size"] == size) & (part["second_share"] == share)]
    data = with_intervals(part, ["start", "condition"])
    starts = {start: start for start in data["start"].unique()}
    figure, axes = new_axes(height=1.2 + 0.5 * len(starts))
    grouped_points(axes, data, "condition", {name: name for name in CONDITIONS}, "start", starts,
                   gap=0.18, capsize=2, markersize=4)  # fmt: skip
    axes.set(xlabel="accuracy", ylabel="")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=4)
    shown = data.set_index(["start", "condition"])[SHOWN]
    said = "; ".join(f"{start}: {shown[start, 'B-D1']}" for start in starts)
    return Figure(
        "transplants",
        figure,
        f"Accuracy on four conditions for {len(starts)} starts, after training on {size:,} "
        f"sequences of which a share {share:g} is B-D2. On B-D1, {said}.",
        f"Accuracy on B-D1, which was not trained: {said}.",
        data,
    )


def common_cell(part: pd.DataFrame) -> tuple[int, float]:
    """The largest size, and the largest second share, at which every start was run."""
    cells = part.groupby(["size", "second_share"])["start"].nunique()
    complete = cells[cells == part["start"].nunique()].index
    size, share = max(complete)
    return int(size), float(share)


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """The accuracy rows, with starts named as pages name them."""
    part = rows[rows["metric"] == "accuracy"].copy()
    names = {("pretrained", MIX): WITH, ("pretrained", SHIFT): WITHOUT}
    part["start"] = [
        names.get((start, keep), start)
        for start, keep in zip(part["start"], part["keep"], strict=True)
    ]
    return part
