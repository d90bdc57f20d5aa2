"""Figures of trees whose truth is known: the dependency language and relative clauses."""

from __future__ import annotations

import pandas as pd

from unmasked.figures.common import (
    DASHES,
    MARKERS,
    PALETTE,
    Figure,
    error_lengths,
    grouped_points,
    new_axes,
    plain_ticks,
)
from unmasked.tables import SHOWN, with_intervals

MODEL = "masked language model"
SYSTEMS = (MODEL, "exact information", "adjacent chain", "random tree", "random weights", "cpmi")
CONSTRUCTIONS = ("simple", "prepositional phrase", "object relative", "subject relative")


def known_trees_figure(rows: pd.DataFrame) -> Figure:
    """UUAS of every system at every strength of the dependence, at the end of training."""
    ends = rows[(rows["metric"] == "uuas") & rows["step"].isna()]
    data = with_intervals(ends, ["strength", "system"])
    strengths = sorted(data["strength"].unique())
    figure, axes = new_axes(height=4.2)
    labels = {strength: f"strength {strength:g}" for strength in strengths}
    systems = {name: name for name in SYSTEMS}
    grouped_points(axes, data, "strength", labels, "system", systems, gap=0.22)
    axes.set(xlim=(0, 104), xlabel="gold edges found (UUAS)")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    said = "; ".join(
        f"strength {strength:g}: "
        + ", ".join(f"{line.system} {line.mean:.1f}" for line in part.itertuples())
        for strength, part in data.groupby("strength")
    )
    model = data[data["system"] == MODEL].set_index("strength")
    return Figure(
        "known-trees",
        figure,
        f"UUAS by system and strength of the dependence. {said}.",
        f"Trees from the model's information find {model.loc[strengths[-1], SHOWN]} of 100 gold "
        "edges at strength "
        f"{strengths[-1]:g} and {model.loc[strengths[0], 'mean']:.1f} at strength "
        f"{strengths[0]:g}.",
        data,
    )


def trees_along_training_figure(rows: pd.DataFrame) -> Figure:
    """UUAS against the loss above the floor along training, one path for each strength."""
    along = rows[(rows["system"] == MODEL) & rows["step"].notna()]
    by = ["strength", "step"]
    uuas = with_intervals(along[along["metric"] == "uuas"], by)
    excess = along[along["metric"] == "excess_loss"].groupby(by)["value"].mean()
    data = uuas.assign(excess=[excess[key] for key in uuas[by].itertuples(index=False, name=None)])
    chain = rows[(rows["metric"] == "uuas") & (rows["system"] == "adjacent chain")]["value"].mean()
    figure, axes = new_axes()
    said = []
    for number, (strength, part) in enumerate(data.groupby("strength")):
        part = part.sort_values("step")
        axes.errorbar(part["excess"], part["mean"], error_lengths(part), capsize=2, markersize=4,
                      fmt=MARKERS[number] + DASHES[number], color=PALETTE[number],
                      label=f"strength {strength:g}")  # fmt: skip
        first, last = part.iloc[0], part.iloc[-1]
        said.append(
            f"strength {strength:g}: from {first['mean']:.1f} at {first['excess']:.2f} nats to "
            f"{last['mean']:.1f} at {last['excess']:.3f} nats"
        )
    axes.axhline(chain, color="0.35", linestyle=":", label="adjacent chain")
    axes.set(xscale="log", ylim=(0, 104), ylabel="gold edges found (UUAS)")
    axes.invert_xaxis()
    axes.set_xlabel("loss above the floor (nats); training runs to the right")
    plain_ticks(axes.xaxis)
    axes.legend(frameon=False, fontsize=9)
    text = "; ".join(said)
    return Figure(
        "trees-along-training",
        figure,
        f"UUAS against the loss above the Bayes floor along training. {text}. The adjacent chain "
        f"stands at {chain:.1f}.",
        f"As the loss approaches its floor, the trees change: {text}.",
        data,
    )


def recall_by_arc_figure(rows: pd.DataFrame) -> Figure:
    """Share of gold edges found by their length, at the largest strength."""
    recall = rows[(rows["metric"] == "recall") & (rows["system"] == MODEL)]
    strength = recall["strength"].max()
    data = with_intervals(recall[recall["strength"] == strength], "arc").sort_values("arc")
    figure, axes = new_axes(height=3.0)
    axes.errorbar(data["arc"], data["mean"], error_lengths(data), fmt="o-", color=PALETTE[0],
                  capsize=3)  # fmt: skip
    axes.set(ylim=(-0.02, 1.05), xlabel="distance between head and dependent (words)",
             ylabel="share of gold edges found")  # fmt: skip
    axes.set_xticks(data["arc"])
    said = ", ".join(f"{line.arc:g}: {line.mean:.2f}" for line in data.itertuples())
    near, far = data.iloc[0], data.iloc[-1]
    return Figure(
        "recall-by-arc",
        figure,
        f"Share of gold edges found by distance in words, at strength {strength:g}: {said}.",
        f"At strength {strength:g} the model's trees hold {near['mean']:.2f} of the edges between "
        f"neighbours and {far['mean']:.2f} of those over {far['arc']:g} words.",
        data,
    )


def relative_clause_figure(rows: pd.DataFrame) -> Figure:
    """Recall of the edge between subject and verb, by construction and system."""
    recall = rows[rows["metric"] == "subject_verb_recall"]
    data = with_intervals(recall, ["construction", "system"])
    figure, axes = new_axes(height=3.6)
    systems = {name: name for name in data["system"]}
    constructions = {name: name for name in CONSTRUCTIONS}
    grouped_points(axes, data, "system", systems, "construction", constructions, gap=0.2)
    axes.set(xlim=(-0.03, 1.03), xlabel="share of subject-verb edges found")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    said = "; ".join(
        f"{name}: " + ", ".join(f"{line.system} {line.mean:.2f}" for line in part.itertuples())
        for name, part in data.groupby("construction", sort=False)
    )
    ours = data[data["system"] == MODEL].set_index("construction")["mean"]
    return Figure(
        "relative-clauses",
        figure,
        f"Share of subject-verb edges found, by construction. {said}.",
        f"The model's trees link subject and verb in {ours['simple']:.2f} of the simple sentences, "
        f"in {ours['object relative']:.2f} across an object relative clause and in "
        f"{ours['subject relative']:.2f} across a subject relative clause.",
        data,
    )
