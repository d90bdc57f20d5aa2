"""The parsing figures of chapter 2: one sentence by hand, systems, distance, history, relations."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.axes
import matplotlib.ticker
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.patches import Arc

from unmasked.figures.common import (
    DASHES,
    MARKERS,
    PALETTE,
    WIDTH,
    Figure,
    curves,
    grouped_points,
    new_axes,
    shown_interval,
)
from unmasked.intervals import Interval
from unmasked.tables import SHOWN, formatted, with_intervals
from unmasked.trees import log_odds_ratio

INFORMATION, CHAIN = "mutual information", "adjacent chain"
SAMPLES = {"short": "short sentences", "long": "all lengths"}


def information_figure(
    matrix: np.ndarray, words: Sequence[str], predicted: np.ndarray, gold: np.ndarray
) -> Figure:
    """One sentence: its matrix (W, W) in nats as a heat map, above it both trees as arcs.

    Predicted edges (k, 2) arch above the words, gold ones below; edges in both are drawn bold. Give
    gold edges of shape (0, 2) where no tree is known.
    """
    with sns.axes_style("white"):
        figure = MatplotlibFigure(figsize=(WIDTH, 6.6), layout="constrained")
        above, below = figure.subplots(2, 1, height_ratios=(1.0, 1.5))
    common = {tuple(edge) for edge in predicted.tolist()} & {tuple(edge) for edge in gold.tolist()}
    _arcs(above, words, predicted, gold, common)
    off = np.where(np.eye(len(words), dtype=bool), np.nan, matrix)
    image = below.imshow(off, cmap="Greys")
    below.set_xticks(range(len(words)), words, rotation=45, ha="right")
    below.set_yticks(range(len(words)), words)
    below.set(xlabel="given this word", ylabel="what is learnt about this one")
    top = np.nanmax(off)
    for (i, j), value in np.ndenumerate(off):
        if i != j:
            below.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8,
                       color="white" if value > 0.6 * top else "black")  # fmt: skip
    figure.colorbar(image, ax=below, label="nats", shrink=0.8)
    said = _linked(words, predicted)
    judged = f"the gold tree links {_linked(words, gold)}"
    caught = f"{len(common)} of the {len(gold)} gold edges are in the tree over the matrix"
    if not len(gold):
        judged, caught = "no gold tree is given", f"The tree over the matrix links {said}"
    i, j = np.unravel_index(np.nanargmax(off), off.shape)
    data = pd.DataFrame(matrix, columns=list(words)).assign(word=list(words))
    return Figure(
        "one-sentence",
        figure,
        f"A matrix of {len(words)} by {len(words)} words in nats, and two trees drawn as arcs. The "
        f"largest entry is {top:.2f} for “{words[i]}” given “{words[j]}”. The tree over the matrix "
        f"links {said}; {judged}.",
        f"{caught}.",
        data,
    )


def uuas_figure(rows: pd.DataFrame, only: Sequence[str] | None = None) -> Figure:
    """UUAS of every system on both samples with intervals over seeds; lines mark the chain.

    `only` names the systems to be drawn, all by default.
    """
    scores = rows[rows["metric"] == "uuas"]
    data = with_intervals(scores, ["sample", "system"])
    shown = list(only) if only is not None else list(data["system"].unique())
    data = data[data["system"].isin(shown)].reset_index(drop=True)
    figure, axes = new_axes(height=1.2 + 0.36 * len(shown))
    samples = [name for name in SAMPLES if name in set(data["sample"])]
    labels = {sample: SAMPLES[sample] for sample in samples}
    grouped_points(axes, data, "sample", labels, "system", {name: name for name in shown}, 0.28)
    chains = data[data["system"] == CHAIN].set_index("sample")["mean"]
    for number, sample in enumerate(samples):
        if sample in chains:
            axes.axvline(chains[sample], color=PALETTE[number], linestyle=DASHES[1 + number],
                         linewidth=1.0)  # fmt: skip
    axes.set(xlabel="UUAS; vertical lines: the adjacent chain")
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    return Figure(
        "uuas",
        figure,
        f"UUAS by system, with the adjacent chain as a vertical line for each sample. "
        f"{_listed(data, samples)}.",
        " ".join(_against_chain(rows, sample) for sample in samples),
        data,
    )


def distance_figure(rows: pd.DataFrame, sample: str = "short") -> Figure:
    """Recall of gold edges by their distance in words, over all seeds together."""
    part = rows[(rows["metric"] == "recall") & (rows["sample"] == sample)]
    shown = {name: name for name in (INFORMATION, CHAIN, "random tree", "random weights")
             if name in set(part["system"])}  # fmt: skip
    part = part[part["system"].isin(shown)].assign(hits=part["value"] * part["n"])
    data = part.groupby(["system", "distance"], sort=False)[["hits", "n"]].sum().reset_index()
    data["recall"] = data["hits"] / data["n"]
    figure, axes = new_axes()
    for number, system in enumerate(shown):
        line = data[data["system"] == system].sort_values("distance")
        axes.plot(line["distance"], line["recall"], DASHES[number % len(DASHES)],
                  marker=MARKERS[number], color=PALETTE[number], label=system)  # fmt: skip
    axes.set(xlabel="distance in words (8: and more)", ylabel="share of gold edges found",
             ylim=(-0.03, 1.03))  # fmt: skip
    axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=9)
    table = data.set_index(["system", "distance"])
    first, rest = _near_and_far(data, INFORMATION)
    near_chain, far_chain = _near_and_far(data, CHAIN)
    said = "; ".join(
        f"{system} " + ", ".join(f"{table.loc[(system, d), 'recall']:.2f} at {d:g}"
                                 for d in sorted(data["distance"].unique())
                                 if (system, d) in table.index)
        for system in shown
    )  # fmt: skip
    return Figure(
        f"recall-by-distance-{sample}",
        figure,
        f"Share of the gold edges found, by distance. {said}.",
        f"Between neighbours the tree over mutual information finds {first:.0%} of the gold edges "
        f"and the chain {near_chain:.0%}; of all longer ones {rest:.0%} and {far_chain:.0%}.",
        data,
    )


def history_figure(rows: pd.DataFrame) -> Figure:
    """UUAS and validation loss against tokens seen, for text in order and with shuffled words."""
    with sns.axes_style("whitegrid"):
        figure = MatplotlibFigure(figsize=(WIDTH, 5.2), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.4, 1.0))
    labels = {"natural": "text in order", "shuffled": "words shuffled (control)"}
    scored = rows[rows["metric"].isin(["uuas", "uuas_low", "uuas_high"]) & rows["order"].notna()]
    data = scored.pivot(index=["order", "step", "tokens"], columns="metric", values="value")
    data = data.rename(columns={"uuas": "mean", "uuas_low": "low", "uuas_high": "high"})
    data = data.reset_index()
    labels = {order: label for order, label in labels.items() if order in set(data["order"])}
    curves(above, data, "order", labels)
    chain = float(rows.loc[(rows["metric"] == "uuas") & (rows["system"] == CHAIN), "value"].mean())
    above.axhline(chain, color="0.35", linestyle=DASHES[2], label=CHAIN)
    above.set(ylabel="UUAS")
    above.legend(frameon=False, fontsize=9)
    loss = rows[rows["metric"] == "loss"]
    lines = loss.assign(mean=loss["value"], low=loss["value"], high=loss["value"])
    curves(below, lines, "order", labels)
    below.set(xlabel="training tokens", ylabel="validation loss (nats)")
    below.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    ends = {order: _ends(data, order) for order in labels}
    said = "; ".join(
        f"{labels[order]}: UUAS from {first.mean:.1f} to {last.mean:.1f}, loss "
        f"{_last_loss(loss, order):.2f} nats at the end"
        for order, (first, last) in ends.items()
    )
    shown = "; ".join(
        f"{labels[order]} {shown_interval(last)}" for order, (_, last) in ends.items()
    )
    return Figure(
        "parsing-history",
        figure,
        f"UUAS and validation loss against training tokens. {said}. The adjacent chain is at "
        f"{chain:.1f}.",
        f"UUAS at the end of training: {shown}; the chain has {chain:.1f}. Bands are bootstrap "
        "intervals over sentences.",
        data,
    )


def relation_frame(rows: pd.DataFrame, sample: str = "short", at_least: int = 10) -> pd.DataFrame:
    """Relations with `at_least` gold edges over all seeds: both systems' shares and the odds.

    Columns relation, gold edges, mutual information, adjacent chain (shares found), log odds ratio
    with its 95 % interval (Haldane's correction where a share is 0 or 1), sorted by the difference
    of the shares.
    """
    part = rows[(rows["metric"] == "correct") & (rows["sample"] == sample)]
    counts = part.pivot_table(
        index="relation", columns="system", values=["value", "n"], aggfunc="sum"
    )
    lines = []
    for relation, line in counts.iterrows():
        gold = int(line["n", CHAIN])
        if gold >= at_least:
            ours, theirs = int(line["value", INFORMATION]), int(line["value", CHAIN])
            odds = formatted(*log_odds_ratio(gold, ours, theirs))
            lines.append((relation, gold, ours / gold, theirs / gold, odds))
    columns = ["relation", "gold edges", INFORMATION, CHAIN, "log odds ratio [95\u00a0% interval]"]
    frame = pd.DataFrame(lines, columns=columns)
    order = (frame[INFORMATION] - frame[CHAIN]).sort_values(ascending=False, kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _arcs(
    axes: matplotlib.axes.Axes,
    words: Sequence[str],
    predicted: np.ndarray,
    gold: np.ndarray,
    common: set[tuple[int, int]],
) -> None:
    """Words on a line, predicted edges above it and gold edges below."""
    gap = 0.22  # from the line to where arcs begin, so that they do not cross the words
    for edges, sign, colour in ((predicted, 1, PALETTE[0]), (gold, -1, PALETTE[1])):
        for i, j in edges.tolist():
            bold = (i, j) in common
            axes.add_patch(
                Arc(((i + j) / 2, sign * gap), j - i, 0.9 * (j - i) ** 0.7,
                    theta1=0 if sign > 0 else 180, theta2=180 if sign > 0 else 360,
                    color=colour, linewidth=2.4 if bold else 1.2,
                    linestyle="-" if bold else "--")
            )  # fmt: skip
    for place, word in enumerate(words):
        axes.text(place, 0.0, word, ha="center", va="center", fontsize=10)
    reach = gap + 0.5 * (len(words) - 1) ** 0.7
    axes.text(-0.5, reach * 0.8, "tree over the matrix", color=PALETTE[0], fontsize=9)
    axes.text(-0.5, -reach * 0.8, "gold tree", color=PALETTE[1], fontsize=9)
    axes.set(xlim=(-0.6, len(words) - 0.4), ylim=(-reach, reach))
    axes.set_axis_off()


def _linked(words: Sequence[str], edges: np.ndarray) -> str:
    return ", ".join(f"{words[i]}–{words[j]}" for i, j in edges.tolist())


def _listed(data: pd.DataFrame, samples: Sequence[str]) -> str:
    """Sample after sample, each system with its mean."""
    parts = []
    for sample in samples:
        lines = data[data["sample"] == sample].itertuples()
        means = ", ".join(f"{line.system} {line.mean:.1f}" for line in lines)
        parts.append(f"{SAMPLES[sample]}: {means}")
    return "; ".join(parts)


def _against_chain(rows: pd.DataFrame, sample: str) -> str:
    """A sentence on the tree over mutual information against the chain."""
    part = rows[(rows["metric"] == "uuas_minus_chain") & (rows["sample"] == sample)]
    part = part[part["system"] == INFORMATION]
    shown = with_intervals(part, ["system"]).iloc[0][SHOWN]
    return f"On {SAMPLES[sample]} the tree over mutual information minus the chain is {shown} UUAS."


def _near_and_far(data: pd.DataFrame, system: str) -> tuple[float, float]:
    """Recall between neighbours and recall of all longer edges."""
    part = data[data["system"] == system]
    near = part[part["distance"] == 1][["hits", "n"]].sum()
    far = part[part["distance"] > 1][["hits", "n"]].sum()
    return near["hits"] / max(near["n"], 1), far["hits"] / max(far["n"], 1)


def _ends(data: pd.DataFrame, order: str) -> tuple[Interval, Interval]:
    part = data[data["order"] == order].sort_values("step")
    lines = part[["mean", "low", "high"]].to_numpy()
    return Interval(*lines[0], count=1), Interval(*lines[-1], count=1)


def _last_loss(loss: pd.DataFrame, order: str) -> float:
    part = loss[loss["order"] == order].sort_values("step")
    return float(part["value"].iloc[-1])
