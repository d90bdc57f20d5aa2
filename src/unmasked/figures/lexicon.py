"""The figure of masks chosen by lexicon: accuracy by encoder, for each data set."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from unmasked.figures.common import MARKERS, PALETTE, Figure, error_lengths, new_axes
from unmasked.tables import SHOWN, with_intervals

ENCODERS = ("random weights", "none", "generic only", "uniform", "cloze only")


def lexicon_masks_figure(rows: pd.DataFrame, titles: Mapping[str, str]) -> Figure:
    """Accuracy after fine-tuning on few examples, one row of points for each data set and encoder.

    `rows` are those of `lexicon_masks`; `titles` maps data sets to the names of their lexicons.
    Thin marks are the single pretraining seeds, thick ones their mean with its interval.
    """
    means = rows[rows["metric"] == "accuracy"].copy()
    means["value"] *= 100
    data = with_intervals(means, ["data", "encoder"])
    names = list(dict.fromkeys(data["data"]))
    figure, axes = new_axes(height=1.2 + 1.25 * len(names))
    ticks: dict[float, str] = {}
    for block, name in enumerate(names):
        for number, encoder in enumerate(ENCODERS):
            place = block * (len(ENCODERS) + 1) + number
            line = data[(data["data"] == name) & (data["encoder"] == encoder)]
            each = means[(means["data"] == name) & (means["encoder"] == encoder)]["value"]
            colour = PALETTE[number]
            axes.plot(each, [place] * len(each), "|", color=colour, markersize=9, alpha=0.6)
            axes.errorbar(line["mean"], [place], xerr=error_lengths(line), capsize=3,
                          fmt=MARKERS[number], color=colour)  # fmt: skip
            ticks[place] = encoder
        axes.annotate(f"{name} ({titles[name]})", (0.01, block * (len(ENCODERS) + 1) - 0.75),
                      xycoords=("axes fraction", "data"), va="center", weight="bold",
                      fontsize=9)  # fmt: skip
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set(ylim=(max(ticks) + 0.7, -1.4), xlabel="accuracy (%)")
    axes.grid(visible=False, axis="y")
    said = "; ".join(f"{name}: {_said(data[data['data'] == name])}" for name in names)
    return Figure(
        "lexicon-masks",
        figure,
        "Accuracy in per cent after fine-tuning on few examples, by data set and by the masks of "
        f"continued pretraining. {said}.",
        f"Accuracy with its interval over {int(data['seeds'].min())} pretraining seeds (thin "
        "marks: each seed, a mean over its fine-tuning runs). “None” is the model without "
        f"continued pretraining. {said}.",
        data,
    )


def _said(data: pd.DataFrame) -> str:
    shown = data.set_index("encoder")[SHOWN]
    return ", ".join(f"{encoder} {shown[encoder]}" for encoder in ENCODERS)
