"""Which estimator of conditional mutual information to use: error against forward rows."""

from __future__ import annotations

from types import MappingProxyType

import pandas as pd

from unmasked.figures.common import MARKERS, PALETTE, Figure, error_lengths, new_axes, plain_ticks
from unmasked.tables import formatted, with_intervals

LABELS = MappingProxyType(
    {
        "head_tail": "head + tail",
        "gibbs": "official chain",
        "gibbs_rb": "same chain, whole rows",
        "cpmi": "pointwise (cpmi)",
        "kl_cpmi": "one divergence (kl_cpmi)",
    }
)
REFERENCE = "gibbs"


def estimators_figure(rows: pd.DataFrame, source: str) -> Figure:
    """Root mean square error against `exact` over forward rows a pair, both logarithmic.

    `rows` of the experiment `estimators`; `source` one of its sources. The caption names the
    estimator of fewest rows whose mean error is no larger than that of the longest official chain.
    Raises ValueError for a source that the rows lack.
    """
    known = rows["source"].unique()
    if source not in known:
        raise ValueError(f"unknown source {source!r}; the rows have {', '.join(known)}")
    part = rows[(rows["source"] == source) & rows["estimator"].isin([*LABELS])]
    by = ["estimator", "setting"]
    data = with_intervals(part[part["metric"] == "rmse"], by)
    read = with_intervals(part[part["metric"] == "rows"], by)
    data = data.merge(read[[*by, "mean"]].rename(columns={"mean": "rows"}), on=by)
    figure, axes = new_axes(height=3.9)
    for number, (name, label) in enumerate(LABELS.items()):
        points = data[data["estimator"] == name].sort_values("rows")
        axes.errorbar(
            points["rows"], points["mean"], yerr=error_lengths(points), fmt="-",
            marker=MARKERS[number], markersize=6, capsize=2, color=PALETTE[number], label=label,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="forward rows for a pair",
             ylabel="root mean square error (nats)")  # fmt: skip
    plain_ticks(axes.yaxis)
    axes.legend(frameon=False, fontsize=8)
    return Figure("estimators_" + source.replace(" ", "_"), figure, _alt(data, source),
                  _caption(data), data)  # fmt: skip


def cheapest_as_good(data: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """The longest official chain, and the line of fewest rows whose mean error is no larger.

    `data` has columns estimator, setting, mean (error) and rows. If nothing else is as good, the
    chain itself is returned twice.
    """
    chains = data[data["estimator"] == REFERENCE]
    reference = chains.loc[chains["setting"].idxmax()]
    good = data[data["mean"] <= reference["mean"]]
    return reference, good.loc[good["rows"].idxmin()]


def _name(line: pd.Series) -> str:
    label = LABELS[line["estimator"]]
    if pd.isna(line["setting"]):
        return label
    size = int(line["setting"])
    if line["estimator"] == "head_tail":
        return f"{label} {size} + {size}"
    return f"{label} ({size:,} steps)"


def _alt(data: pd.DataFrame, source: str) -> str:
    said = "; ".join(
        f"{_name(line)}: {formatted(line['mean'])} nats at {line['rows']:,.0f} rows"
        for _, line in data.iterrows()
    )
    return f"Error against the exact information over forward rows for a pair, {source}. {said}."


def _caption(data: pd.DataFrame) -> str:
    reference, best = cheapest_as_good(data)
    chain = (
        f"The {_name(reference)} reads {reference['rows']:,.0f} rows for a pair and errs by "
        f"{formatted(reference['mean'])} nats."
    )
    if best["estimator"] == REFERENCE and best["setting"] == reference["setting"]:
        return f"{chain} Nothing with fewer rows errs as little."
    return (
        f"{chain} The {_name(best)} errs by {formatted(best['mean'])} nats and reads "
        f"{best['rows']:,.0f} rows, {reference['rows'] / best['rows']:.0f} times fewer."
    )
