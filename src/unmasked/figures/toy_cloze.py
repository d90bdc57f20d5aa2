"""The figures of the toy cloze experiment of chapter 2."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.ticker import MaxNLocator

from unmasked.figures.common import MARKERS, Figure, error_lengths, grouped_points, new_axes
from unmasked.tables import SHOWN, with_intervals

SCRATCH = "from scratch"
CLEAN = {"pool": "disjoint", "selection": "validation"}
DEFECTS = {
    "checkpoint chosen on the test sentences": {"pool": "disjoint", "selection": "test"},
    "pool overlaps the pretraining half": {"pool": "overlapping", "selection": "validation"},
    "both, as released": {"pool": "overlapping", "selection": "test"},
}


def cloze_share_figure(rows: pd.DataFrame, dataset: str) -> Figure:
    """Accuracy against fine-tuning size under the clean protocol, one line a cloze share.

    `rows` are those of experiment toy_cloze; `dataset` is one of its data sets.
    """
    data = with_intervals(_clean(rows, dataset), ["start", "size"])
    starts = _ordered(data["start"])
    colours = [*sns.color_palette("cividis", len(starts) - 1), (0.35,) * 3]
    figure, axes = new_axes(height=4.2)
    for number, start in enumerate(starts):
        part = data[data["start"] == start].sort_values("size")
        places = part["size"] * 1.045 ** (number - (len(starts) - 1) / 2)  # bars side by side
        scratch = start == SCRATCH
        axes.errorbar(
            places, part["mean"], error_lengths(part), marker="X" if scratch else MARKERS[number],
            linestyle="--" if scratch else "-", color=colours[number], markersize=5, linewidth=1.2,
            elinewidth=0.8, label=start,
        )  # fmt: skip
    axes.set(xscale="log", xlabel="labelled sentences for fine-tuning", ylabel="test accuracy")
    axes.set_xticks(sorted(data["size"].unique()))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8, ncols=2)
    said = "; ".join(f"{start}: {_ends(data, start)}" for start in starts)
    least = int(data["size"].min())
    shown = data[data["size"] == least].set_index("start")[SHOWN]
    caption = ", ".join(f"{start} {shown[start]}" for start in (starts[0], starts[-2], SCRATCH))
    return Figure(
        f"cloze-share-{dataset.replace('_', '-')}",
        figure,
        f"Test accuracy on {_name(dataset)} against the number of labelled sentences, one line for "
        f"each start. From the fewest to the most sentences, {said}.",
        f"Test accuracy on {_name(dataset)} after fine-tuning on {least} sentences: {caption}. "
        f"Bars: intervals over seeds ({data['seeds'].max()}).",
        data,
    )


def released_defects_figure(rows: pd.DataFrame, dataset: str) -> Figure:
    """What each defect of the released protocol adds to the reported accuracy, beside clean.

    Differences are taken within a seed, for every start and size that ran in both pools.
    """
    effects = defect_effects(rows, dataset)
    data = with_intervals(effects, ["start", "size", "defect"])
    kinds = {
        (start, size): f"{start}, {size:,.0f}"
        for start, size in zip(data["start"], data["size"], strict=True)
    }
    figure, axes = new_axes(height=1.4 + 0.36 * len(kinds))
    labels = {defect: defect for defect in DEFECTS}
    grouped_points(axes, data, "defect", labels, ["start", "size"], kinds, gap=0.22, capsize=2,
                   markersize=5)  # fmt: skip
    axes.axvline(0.0, color="0.3", linewidth=1.0, linestyle=":")
    axes.set_ylim(len(kinds) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set(xlabel="added to the reported accuracy", ylabel="start, labelled sentences")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    overall = with_intervals(effects, "defect").set_index("defect")[SHOWN]
    said = "; ".join(f"{defect}: {shown}" for defect, shown in overall.items())
    return Figure(
        f"released-defects-{dataset.replace('_', '-')}",
        figure,
        f"What two defects of the released protocol add to the accuracy that is reported on "
        f"{_name(dataset)}, for {len(kinds)} pairs of start and size. On average, {said}.",
        f"Added to the reported accuracy on {_name(dataset)}, averaged over starts and sizes: "
        f"{said}.",
        data,
    )


def defect_effects(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Accuracy with each defect minus that of the clean protocol: seed, start, size, defect, value.

    Raises ValueError if no start and size of the data set ran in both pools.
    """
    accuracy = _fine_tuned(rows, dataset)
    table = accuracy.pivot(
        index=["seed", "start", "size"], columns=["pool", "selection"], values="value"
    )
    if "overlapping" not in table:
        raise ValueError(f"nothing of {dataset} was fine-tuned on an overlapping pool")
    table = table.dropna()
    clean = table[tuple(CLEAN.values())]
    effects = pd.concat(
        {name: table[tuple(place.values())] - clean for name, place in DEFECTS.items()},
        names=["defect"],
    )
    flat = effects.rename("value").reset_index()
    order = {start: number for number, start in enumerate(_ordered(flat["start"]))}
    return flat.sort_values(
        ["start", "size"], key=lambda c: c.map(order) if c.name == "start" else c, kind="stable"
    )


def _fine_tuned(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Accuracy after fine-tuning, without the control, with a column `start` in words."""
    chosen = (rows["dataset"] == dataset) & (rows["metric"] == "accuracy") & rows["pool"].notna()
    part = rows[chosen & (rows["corpus"] != "shuffled labels")]
    words = [SCRATCH if pd.isna(share) else f"{share:.0%} cloze" for share in part["share"]]
    return part.assign(start=words)


def _clean(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    part = _fine_tuned(rows, dataset)
    return part[(part["pool"] == CLEAN["pool"]) & (part["selection"] == CLEAN["selection"])]


def _ordered(starts: pd.Series) -> list[str]:
    """Highest cloze share first, scratch last."""
    return sorted(starts.unique(), key=lambda s: 1 if s == SCRATCH else -float(s.partition("%")[0]))


def _ends(data: pd.DataFrame, start: str) -> str:
    part = data[data["start"] == start].sort_values("size")["mean"]
    return f"{part.iloc[0]:.3f} to {part.iloc[-1]:.3f}"


def _name(dataset: str) -> str:
    return {"sst2": "SST-2", "movie_reviews": "the movie reviews"}.get(dataset, dataset)
