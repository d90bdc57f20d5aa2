"""Figures of chapter 2 on masks and graphs: recovery, leak, the tree field, compatibility."""

from __future__ import annotations

import pandas as pd

from unmasked.figures.common import (
    DASHES,
    Figure,
    curves,
    grouped_points,
    new_axes,
    plain_ticks,
)
from unmasked.tables import SHOWN, with_intervals

ON_AND_OFF = {"on_tree": "on the tree", "off_tree": "off it"}
SIZES = {"log_odds": "log odds ratio (scale)", "imbalance": "imbalance (0 with a joint)"}


def recovery_figure(rows: pd.DataFrame, graph: str) -> Figure:
    """Average precision against the masking rate, one curve for each number of samples."""
    part = rows[(rows["metric"] == "average_precision") & (rows["graph"] == graph)]
    part = part[(part["method"] == "masked") & part["samples"].notna()]
    data = with_intervals(part, ["samples", "masking"])
    names = {count: f"{count:,.0f} samples" for count in sorted(data["samples"].unique())}
    figure, axes = new_axes()
    curves(axes, data, "samples", names, x="masking")
    axes.set(xlabel="share of the other variables masked (0: one mask)")
    axes.set(ylabel="average precision of the edges", ylim=(0.0, 1.03))
    axes.legend(frameon=False, fontsize=9)
    best = {count: _best(data, count) for count in names}
    said = "; ".join(
        f"{names[count]}: {_at_rate(data, count, 0.0)} with one mask, best {line['mean']:.3f} at "
        f"rate {line['masking']:g}"
        for count, line in best.items()
    )
    few, many = min(names), max(names)
    return Figure(
        f"graph-recovery-{graph}",
        figure,
        f"Average precision of the edges of a {graph} graph against the masking rate. {said}.",
        f"With {names[few]} the best rate of those tried is {best[few]['masking']:g}, with "
        f"{names[many]} it is {best[many]['masking']:g}, where one mask reaches "
        f"{_at_rate(data, many, 0.0)}.",
        data,
    )


def leak_figure(rows: pd.DataFrame, graph: str) -> Figure:
    """Mean size of the population coefficients at each distance against the masking rate."""
    part = rows[(rows["metric"] == "weight") & (rows["graph"] == graph)]
    data = with_intervals(part, ["distance", "masking"])
    first = int(data["distance"].min())
    names = {
        d: "edges" if d == first else f"pairs {d:g} steps apart"
        for d in sorted(data["distance"].unique())
    }
    figure, axes = new_axes(height=3.2)
    curves(axes, data, "distance", names, x="masking")
    axes.set(xlabel="share of the other variables masked (0: one mask)")
    axes.set(ylabel="mean size of the coefficients")
    axes.legend(frameon=False, fontsize=9)
    means = data.set_index(["distance", "masking"])["mean"]
    last = data["masking"].max()
    ratio = {rate: means[first + 1, rate] / means[first, rate] for rate in (0.0, last)}
    said = "; ".join(
        f"{name}: {means[d, 0.0]:.3f} with one mask, {means[d, last]:.3f} at rate {last:g}"
        for d, name in names.items()
    )
    return Figure(
        f"graph-leak-{graph}",
        figure,
        f"Mean size of coefficients in a {graph} graph by distance, against the masking rate. "
        f"{said}.",
        f"Pairs two steps apart have {ratio[0.0]:.3f} of an edge's weight with one mask and "
        f"{ratio[last]:.2f} of it at rate {last:g}: with more masks the support is not the graph.",
        data,
    )


def tree_information_figure(rows: pd.DataFrame) -> Figure:
    """Learned information on and off the tree along training, and the exact value on the tree.

    Drawn for the first and the last masking of the rows.
    """
    learned = rows[(rows["method"] == "model") & rows["metric"].isin(list(ON_AND_OFF))]
    maskings = list(dict.fromkeys(learned["masking"]))
    maskings = list(dict.fromkeys([maskings[0], maskings[-1]]))
    learned = learned[learned["masking"].isin(maskings)]
    series = learned["metric"].map(ON_AND_OFF) + ", trained with " + learned["masking"]
    data = with_intervals(learned.assign(series=series), ["series", "metric", "masking", "step"])
    exact = _exact(rows, "on_tree")
    figure, axes = new_axes()
    curves(axes, data, "series", {name: name for name in dict.fromkeys(data["series"])}, x="step")
    axes.axhline(exact, color="0.35", linestyle=":", label="exact, on the tree")
    axes.set(yscale="log", xlabel="training steps", ylabel="information (nats)")
    plain_ticks(axes.yaxis)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    last = data[data["step"] == data["step"].max()].set_index("series")
    said = "; ".join(f"{name}: {shown}" for name, shown in last[SHOWN].items())
    means = last.set_index(["metric", "masking"])["mean"]
    return Figure(
        "tree-information",
        figure,
        f"Mean conditional mutual information of a trained model on and off the tree against "
        f"training steps, on a log scale; exact on the tree {exact:.4f} nats. At the end {said}.",
        f"At the end, pairs off the tree have {means['off_tree', maskings[0]]:.4f} nats of "
        f"information where the truth is 0, edges {means['on_tree', maskings[0]]:.4f} where it is "
        f"{exact:.4f} (trained with {maskings[0]}).",
        data,
    )


def compatibility_figure(fields: pd.DataFrame, book: pd.DataFrame) -> Figure:
    """Imbalance beside the log odds ratios, for models of the tree field and for named models.

    `fields` are rows of the experiment tree_field, of which the last step counts, `book` those of
    compatibility.
    """
    data = _sizes(fields, book)
    names = list(dict.fromkeys(data["who"]))
    figure, axes = new_axes(height=0.9 + 0.45 * len(names))
    grouped_points(axes, data, "metric", SIZES, "who", {name: name for name in names})
    axes.axvline(0.0, color="0.3", linewidth=1.0, linestyle=DASHES[3])
    axes.set(xlabel="nats, mean over pairs and values")
    axes.legend(frameon=False, fontsize=9, ncols=1, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    table = data.set_index(["who", "metric"])["mean"]
    said = "; ".join(
        f"{who}: imbalance {table[who, 'imbalance']:.2f}, log odds ratio "
        f"{table[who, 'log_odds']:.2f}"
        for who in names
    )
    worst = max(names, key=lambda who: table[who, "imbalance"])
    return Figure(
        "compatibility",
        figure,
        f"Mean size in nats of the imbalance of two conditionals, and of their log odds ratios. "
        f"{said}.",
        f"No model is in balance; the largest imbalance, {table[worst, 'imbalance']:.2f} nats, is "
        f"that of {worst}, beside log odds ratios of {table[worst, 'log_odds']:.2f} nats."
        if table.xs("imbalance", level="metric").min() > 0
        else f"The largest imbalance is {table[worst, 'imbalance']:.2f} nats, of {worst}.",
        data,
    )


def _sizes(fields: pd.DataFrame, book: pd.DataFrame) -> pd.DataFrame:
    """Imbalance and log odds ratios with intervals, by `who` they belong to."""
    trained = fields[(fields["method"] == "model") & (fields["step"] == fields["step"].max())]
    parts = [
        trained.assign(who="tree field, " + trained["masking"]),
        book.assign(who=book["model"].str.replace("_", " ") + ", " + book["weights"] + " weights"),
    ]
    both = pd.concat([part[["who", "metric", "seed", "value"]] for part in parts])
    return with_intervals(both[both["metric"].isin(list(SIZES))], ["who", "metric"])


def _best(data: pd.DataFrame, count: float) -> pd.Series:
    part = data[data["samples"] == count]
    return part.loc[part["mean"].idxmax()]


def _at_rate(data: pd.DataFrame, count: float, rate: float) -> str:
    """The mean at one masking rate, or a dash where it was not tried."""
    part = data[(data["samples"] == count) & (data["masking"] == rate)]
    return f"{part['mean'].iloc[0]:.3f}" if len(part) else "–"


def _exact(rows: pd.DataFrame, metric: str) -> float:
    return float(rows[(rows["method"] == "exact") & (rows["metric"] == metric)]["value"].mean())
