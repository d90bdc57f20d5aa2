"""The figures of chapter 3 on real sentences: do two changes of prediction go together?"""

from __future__ import annotations

import pandas as pd
from matplotlib.ticker import MaxNLocator

from unmasked.figures.common import PALETTE, Figure, grouped_points, new_axes
from unmasked.tables import SHOWN, with_intervals

TITLES = {"movie_reviews": "film reviews", "sst2": "SST-2", "mnli": "MNLI"}
CEILING = "another classifier"
RANDOM_MODEL = "untrained language model"
_MAIN = {"classifier": "fine-tuned", "importance": "correct", "divergence": "total variation"}


def changes_figure(rows: pd.DataFrame, dataset: str) -> Figure:
    """Change of the classifier against change of the language model, one point a pair, one seed.

    `rows` are those of experiment paraphrase_changes.
    """
    part = rows[rows["pair"].notna() & (rows["data"] == dataset)]
    data = part.pivot(index="pair", columns="metric", values="value").reset_index()
    coefficient = data["change_f"].corr(data["change_f0"])
    figure, axes = new_axes()
    axes.plot(data["change_f0"], data["change_f"], "o", color=PALETTE[0], markersize=4, alpha=0.5)
    axes.set(
        xlabel="change of the language model (task template)", ylabel="change of the classifier"
    )
    return Figure(
        f"changes-{dataset.replace('_', '-')}",
        figure,
        f"Change of the classifier's prediction against that of the language model's for "
        f"{len(data)} sentences of {TITLES[dataset]} with one word replaced by a synonym, in total "
        f"variation. Their correlation is {coefficient:.2f}.",
        f"One seed, {len(data)} pairs of {TITLES[dataset]}: the correlation of these points is "
        f"{coefficient:.2f}.",
        data,
    )


def correlations_figure(rows: pd.DataFrame) -> Figure:
    """Correlation of the two changes by data set and template, with its ceiling, by replacement."""
    data = with_intervals(correlation_rows(rows), ["data", "predictor", "replacement"])
    lines = {
        (name, predictor): f"{TITLES[name]}, {predictor}"
        for name in data["data"].unique()
        for predictor in data["predictor"].unique()
    }
    kinds = {kind: kind for kind in data["replacement"].unique()}
    figure, axes = new_axes(height=1.2 + 0.36 * len(lines))
    grouped_points(axes, data, "replacement", kinds, ["data", "predictor"], lines)
    axes.axvline(0.0, color="0.3", linewidth=1.0, linestyle=":")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set(xlabel="correlation with the change of the classifier", ylabel="")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=2)
    synonyms = data[data["replacement"] == "synonym"].set_index(["data", "predictor"])[SHOWN]
    said = "; ".join(f"{label}: {synonyms[key]}" for key, label in lines.items())
    return Figure(
        "change-correlations",
        figure,
        "Correlation between the change of the classifier's prediction and that of a predictor: "
        "the language model under four templates, an untrained one, and another classifier. For "
        f"synonyms, {said}.",
        f"Pearson's correlation for synonyms, with intervals over seeds: {said}.",
        data,
    )


def correlation_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Pearson's coefficients of the final classifier, with a column `predictor` in words."""
    chosen = rows["replacement"].notna()
    for name, value in _MAIN.items():
        chosen &= rows[name] == value
    part = rows[chosen]
    names = {"pearson": None, "ceiling_pearson": CEILING, "random_f0_pearson": RANDOM_MODEL}
    part = part[part["metric"].isin(names)]
    predictors = [
        names[metric] or template
        for metric, template in zip(part["metric"], part["template"], strict=True)
    ]
    return part.assign(predictor=predictors)
