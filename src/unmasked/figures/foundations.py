"""The figures of chapter 1, masked language modelling from the ground up."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.axes
import matplotlib.axis
import matplotlib.ticker
import pandas as pd
import seaborn as sns

from unmasked.figures.common import (
    DASHES,
    PALETTE,
    Figure,
    curves,
    error_lengths,
    grouped_points,
    new_axes,
    plain_ticks,
    shown_interval,
)
from unmasked.intervals import Interval
from unmasked.tables import formatted, with_intervals


def mask_lens_figure(lens: pd.DataFrame, sentence: str) -> Figure:
    """The table of `unmasked.lens.mask_lens` as a strip of boxes: token, what is seen, loss."""
    figure, axes = new_axes(height=2.4)
    colours = {"masked": PALETTE[0], "random": PALETTE[1], "kept": PALETTE[2], "": (0.93,) * 3}
    hatches = {"masked": "//", "random": "..", "kept": "\\\\", "": ""}
    for row in lens.itertuples():
        x = row.position
        axes.bar(x, 1.0, width=0.92, bottom=0.0, color=colours[row.fate], alpha=0.35,
                 hatch=hatches[row.fate], edgecolor="0.4", linewidth=0.6)  # fmt: skip
        box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.0}
        axes.text(x, 0.72, row.token, ha="center", va="center", rotation=60, fontsize=9, bbox=box)
        if row.selected:
            axes.text(x, 0.22, row.seen, ha="center", va="center", fontsize=7, bbox=box)
            axes.text(x, 1.08, f"{row.loss:.1f}", ha="center", fontsize=9, weight="bold")
    axes.set(xlim=(-0.6, len(lens) - 0.4), ylim=(0, 1.35), yticks=[], xticks=[])
    axes.set_xlabel("position; the loss in nats stands above each selected token")
    sns.despine(figure, left=True, bottom=True)
    chosen = lens[lens["selected"]]
    said = "; ".join(
        f"{row.token} is {row.fate} (seen as {row.seen}) with loss {row.loss:.2f} nats"
        for row in chosen.itertuples()
    )
    return Figure(
        "mask-lens",
        figure,
        f"The tokens of the sentence “{sentence}” as boxes. Selected: {said}.",
        f"{len(chosen)} of the {len(lens) - 2} tokens carry loss; the mean is "
        f"{chosen['loss'].mean():.2f} nats.",
        lens,
    )


def excess_loss_figure(rows: pd.DataFrame) -> Figure:
    """Excess loss over the Bayes floor against tokens seen, for walks and for shuffled walks."""
    curve = rows[rows["metric"] == "excess_loss"]
    data = with_intervals(curve, ["corpus", "step"])
    tokens = curve.groupby(["corpus", "step"])["tokens"].mean()
    data["tokens"] = [tokens[row.corpus, row.step] for row in data.itertuples()]
    floor = rows.loc[rows["metric"] == "floor", "value"].mean()
    figure, axes = new_axes()
    curves(axes, data, "corpus", {"walk": "walks in order", "shuffled": "shuffled (control)"})
    axes.set(yscale="log", xlabel="training tokens", ylabel="loss above the floor (nats)")
    axes.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    plain_ticks(axes.yaxis)
    axes.legend(frameon=False)
    first, last = _ends(data, "walk")
    control = _ends(data, "shuffled")[1]
    return Figure(
        "excess-loss",
        figure,
        f"Loss above the Bayes floor of {floor:.3f} nats against training tokens, on a log scale. "
        f"On walks it goes from {first.mean:.2f} to {last.mean:.2f} nats; on shuffled walks it "
        f"ends at {control.mean:.2f} nats.",
        f"The loss above the floor goes from {first.mean:.2f} nats to {shown_interval(last)}; "
        f"on shuffled walks it ends at {shown_interval(control)}.",
        data,
    )


def learning_curve_figure(book: pd.DataFrame, short: pd.DataFrame, rate: float) -> Figure:
    """Validation loss against tokens: the long run, the short runs, and the n-gram baselines."""
    figure, axes = new_axes(height=3.9)
    loss = book[(book["metric"] == "loss") & (book["text"] == "all") & book["tokens"].notna()]
    runs = short[(short["metric"] == "loss") & (short["learning_rate"] == rate)]
    several = with_intervals(runs, ["model", "step"])
    several["tokens"] = runs.groupby("step")["tokens"].mean().loc[several["step"]].to_numpy()
    axes.plot(loss["tokens"], loss["value"], "-", color=PALETTE[0], label="book model (1 seed)")
    axes.errorbar(
        several["tokens"], several["mean"], error_lengths(several), fmt="s--", color=PALETTE[1],
        capsize=3, markersize=4, label=f"short runs ({several['seeds'].max()} seeds)",
    )  # fmt: skip
    baselines = _baselines(axes, short)
    axes.set(xlabel="training tokens", ylabel="validation loss (nats)")
    axes.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    axes.legend(frameon=False, fontsize=9)
    last, accuracy = loss.iloc[-1], _last(book, "accuracy")
    said = ", ".join(f"{name} {value:.2f}" for name, value in baselines.items())
    data = pd.concat([loss.assign(run="book model"), several.assign(run="short runs")])
    return Figure(
        "learning-curve",
        figure,
        f"Validation loss against training tokens. The book model goes from "
        f"{loss['value'].iloc[0]:.2f} to {last['value']:.2f} nats after "
        f"{last['tokens'] / 1e6:.1f} million tokens. Horizontal lines: {said} nats.",
        f"The book model ends at {last['value']:.2f} nats and predicts {accuracy:.1%} of the "
        f"masked tokens; the baselines are at {said} nats.",
        data[["run", "step", "tokens", "value", "mean", "low", "high", "seeds"]],
    )


def plateau_figure(short: pd.DataFrame) -> Figure:
    """Validation loss of the short runs for each learning rate, beside the unigram loss."""
    runs = short[(short["metric"] == "loss") & short["learning_rate"].notna()]
    data = with_intervals(runs, ["learning_rate", "step"])
    tokens = runs.groupby(["learning_rate", "step"])["tokens"].mean()
    data["tokens"] = [tokens[row.learning_rate, row.step] for row in data.itertuples()]
    names = {rate: f"learning rate {rate:g}" for rate in data["learning_rate"].unique()}
    figure, axes = new_axes()
    curves(axes, data[data["step"] > 0], "learning_rate", names)
    unigram = _baselines(axes, short, only=("unigram",))["unigram"]
    axes.set(xlabel="training tokens", ylabel="validation loss (nats)")
    axes.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    axes.legend(frameon=False, fontsize=9)
    ends = {name: _ends(data, rate, "learning_rate")[1] for rate, name in names.items()}
    said = "; ".join(f"{name} ends at {end.mean:.2f}" for name, end in ends.items())
    below = "; ".join(
        f"{name}: {formatted(*(unigram - v for v in (end.mean, end.high, end.low)))} nats"
        for name, end in ends.items()
    )
    return Figure(
        "plateau",
        figure,
        f"Validation loss against training tokens for {len(names)} learning rates, with the "
        f"unigram loss at {unigram:.2f} nats. {said} nats.",
        f"How far below the unigram loss the short runs end (negative: above it). {below}.",
        data,
    )


def bug_figure(rows: pd.DataFrame) -> Figure:
    """Reported against true loss above the floor at the last step, for each trained bug."""
    last = rows[rows["step"] == rows["step"].max()]
    data = with_intervals(
        last[last["metric"].isin(["excess_loss", "reported_excess"])], ["bug", "metric"]
    )
    figure, axes = new_axes(height=3.4)
    bugs = list(data["bug"].unique())
    series = {"excess_loss": "the model's true loss", "reported_excess": "what the code reports"}
    names = {bug: "no bug" if bug == "none" else bug for bug in bugs}
    grouped_points(axes, data, "metric", series, "bug", names)
    axes.axvline(0.0, color="0.3", linewidth=1.0, linestyle=":")
    axes.set(xlabel="loss above the Bayes floor (nats); left of the line: wrong or memorised")
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    table = data.set_index(["bug", "metric"])["mean"]
    said = "; ".join(
        f"{name}: reports {table[bug, 'reported_excess']:.3f}, true {table[bug, 'excess_loss']:.3f}"
        for bug, name in names.items()
    )
    highest = data.set_index(["bug", "metric"])[["mean", "high"]].max(axis=1)
    below = [bug for bug in bugs if highest[bug, "reported_excess"] < 0]
    named = f"so it is with {', '.join(below)}" if below else "here none is"
    return Figure(
        "bug-gallery",
        figure,
        f"Reported and true loss above the Bayes floor in nats for each bug. {said}.",
        f"A reported loss that is clearly below the floor is a wrong number or a memorised "
        f"training set: {named}. The true loss is worst with "
        f"{table.xs('excess_loss', level='metric').idxmax()}.",
        data,
    )


def ratio_figure(rows: pd.DataFrame, name: str = "cost") -> Figure:
    """Measured speed ratios as points with the range of their repeats, and the goals.

    The product in bfloat16 is left out: it decides how the best recipe runs and compares no code.
    """
    shown = rows["metric"].isin(["median", "low", "high"]) & (rows["benchmark"] != "bf16_product")
    ratios = rows[shown].pivot(
        index=["benchmark", "label", "goal"], columns="metric", values="value"
    )
    ratios = ratios.reset_index().sort_values("median", ascending=False, ignore_index=True)
    figure, axes = new_axes(height=0.8 + 0.36 * len(ratios))
    places = range(len(ratios))
    errors = [ratios["median"] - ratios["low"], ratios["high"] - ratios["median"]]
    axes.errorbar(ratios["median"], places, xerr=errors, fmt="o", capsize=3, color=PALETTE[0],
                  label="measured")  # fmt: skip
    goal = ratios["goal"].notna()
    axes.plot(ratios["goal"][goal], ratios.index[goal], "|", color="0.2", markersize=14,
              label="goal")  # fmt: skip
    axes.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    axes.set_yticks(places, ratios["label"])
    axes.invert_yaxis()
    axes.set(xlabel="ratio of times (1: no difference)", xscale="log")
    plain_ticks(axes.xaxis)
    axes.legend(frameon=False, fontsize=9)
    said = "; ".join(
        f"{row.label}: {row.median:.2f} ({row.low:.2f} to {row.high:.2f})"
        for row in ratios.itertuples()
    )
    met = int((ratios["median"][goal] >= ratios["goal"][goal]).sum())
    return Figure(
        name,
        figure,
        f"Measured ratios of times. {said}.",
        f"{met} of {int(goal.sum())} goals are met; bars show the range of the repeats.",
        ratios,
    )


def _baselines(
    axes: matplotlib.axes.Axes,
    short: pd.DataFrame,
    only: Sequence[str] = ("unigram", "neighbour bigram"),
) -> dict[str, float]:
    """Horizontal lines at the baselines' losses; returns name -> loss."""
    loss = short[short["metric"] == "loss"].groupby("model")["value"].mean()
    for number, name in enumerate(only):
        axes.axhline(loss[name], color="0.35", linestyle=DASHES[2 + number % 2], label=name)
    return {name: float(loss[name]) for name in only}


def _ends(data: pd.DataFrame, value: object, by: str = "corpus") -> tuple[Interval, Interval]:
    """The first and the last point of one curve."""
    part = data[data[by] == value].sort_values("step")
    lines = part[["mean", "low", "high", "seeds"]].to_numpy()
    return Interval(*lines[0]), Interval(*lines[-1])


def _last(rows: pd.DataFrame, metric: str) -> float:
    """The value of a metric at the last step, over all texts."""
    part = rows[(rows["metric"] == metric) & (rows["text"] == "all") & rows["step"].notna()]
    return float(part.loc[part["step"] == part["step"].max(), "value"].mean())
