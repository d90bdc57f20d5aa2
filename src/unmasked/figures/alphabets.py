"""The figures of chapter 3 on two alphabets: the source, and the ties between synonyms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure as MatplotlibFigure

from unmasked.alphabets import TwoAlphabets
from unmasked.figures.common import (
    DASHES,
    PALETTE,
    WIDTH,
    Figure,
    curves,
    new_axes,
    plain_ticks,
)
from unmasked.tables import SHOWN, with_intervals

MIX, SHIFT = 0.5, 1.0
MILLIONS = "million tokens seen"


def corpora_figure(
    with_property: TwoAlphabets, without: TwoAlphabets, length: int, generator: np.random.Generator
) -> Figure:
    """One walk of each domain as the two corpora spell it, over the places of the first ring."""
    place = np.argsort(with_property.first.emission()[: with_property.synsets])
    walks = [with_property.walk(domain).sample(1, length, generator) for domain in (0, 1)]
    records, counts = [], {}
    with sns.axes_style("whitegrid"):
        figure = MatplotlibFigure(figsize=(WIDTH, 4.6), layout="constrained")
        panels = figure.subplots(2, 1, sharex=True)
    for axes, (name, source) in zip(
        panels, {"with the property": with_property, "without": without}.items(), strict=True
    ):
        for domain, synsets in enumerate(walks):
            at_home = generator.random(length) < source.keep
            alphabet = np.where(at_home, domain, 1 - domain)
            height = place[synsets[0]]
            axes.plot(range(length), height, DASHES[domain], color="0.6", linewidth=0.8)
            for letter, marker in enumerate("os"):
                drawn = alphabet == letter
                axes.plot(
                    np.flatnonzero(drawn), height[drawn], marker, color=PALETTE[letter],
                    markersize=5, label=f"alphabet {'AB'[letter]}" if domain == 0 else None,
                )  # fmt: skip
            counts[name, domain] = int((alphabet == 0).sum())
            records += [
                {"corpus": name, "domain": f"D{domain + 1}", "position": t, "place": int(h),
                 "alphabet": "AB"[a]}
                for t, (h, a) in enumerate(zip(height, alphabet, strict=True))
            ]  # fmt: skip
        axes.set(title=name, ylabel="place on D1's ring")
    panels[-1].set_xlabel("position")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", fontsize=8,
                  frameon=False, ncols=2)  # fmt: skip
    said = "; ".join(
        f"{name}, D{domain + 1}: {n} of {length} tokens in A"
        for (name, domain), n in counts.items()
    )
    return Figure(
        "two-alphabets",
        figure,
        "The same two walks, a solid line in the first domain and a dashed one in the second, "
        f"drawn in the spelling of two corpora. {said}.",
        f"One walk of each domain, spelt by each corpus. {said}.",
        pd.DataFrame(records),
    )


def excess_by_keep_figure(rows: pd.DataFrame) -> Figure:
    """Loss above the exact floor along pretraining, one line a corpus, log scale.

    `rows` are those of experiment synonym_ties.
    """
    data = with_intervals(rows[rows["metric"] == "excess_loss"], ["keep", "tokens"])
    data = data[data["tokens"] > 0].assign(millions=data["tokens"] / 1e6)
    figure, axes = new_axes()
    curves(axes, data, "keep", keep_names(data), x="millions")
    axes.set(xlabel=MILLIONS, ylabel="nats above the floor", yscale="log")
    plain_ticks(axes.yaxis)
    axes.legend(frameon=False, fontsize=8)
    said = "; ".join(f"{name}: {_last(data, keep)}" for keep, name in keep_names(data).items())
    return Figure(
        "excess-by-keep",
        figure,
        f"Masked loss above the Bayes-optimal one against tokens seen, one line for each corpus. "
        f"At the end, {said} nats.",
        f"What the models have yet to learn at the end of pretraining, in nats: {said}.",
        data,
    )


def tie_growth_figure(rows: pd.DataFrame) -> Figure:
    """Share of A words whose nearest B word is their synonym, along pretraining, by corpus."""
    chosen = (rows["metric"] == "neighbour") & (rows["layer"] == 0)
    data = with_intervals(rows[chosen], ["keep", "tokens"])
    chance = rows[(rows["metric"] == "chance") & (rows["layer"] == 0)]["value"].mean()
    data = data.assign(millions=data["tokens"] / 1e6)
    figure, axes = new_axes()
    curves(axes, data, "keep", keep_names(data), x="millions")
    axes.axhline(chance, color="0.3", linewidth=1.0, linestyle=":")
    axes.set(xlabel=MILLIONS, ylabel="nearest B word is the synonym", ylim=(-0.03, 1.05))
    axes.legend(frameon=False, fontsize=8, loc="center right")
    said = "; ".join(f"{name}: {_last(data, keep)}" for keep, name in keep_names(data).items())
    return Figure(
        "tie-growth",
        figure,
        "Share of words in alphabet A whose nearest word in alphabet B, by the cosine of word "
        f"embeddings, is their synonym, against tokens seen. At the end, {said}; chance is "
        f"{chance:.4f}.",
        f"How many synonyms the word embeddings have found at the end of pretraining: {said}.",
        data,
    )


def keep_names(data: pd.DataFrame) -> Mapping[float, str]:
    """What the legend says of each value of `keep`."""
    ends = {MIX: "0.5: with the property", SHIFT: "1: without"}
    return {keep: ends.get(keep, f"{keep:g}") for keep in sorted(data["keep"].unique())}


def _last(data: pd.DataFrame, keep: float) -> str:
    line = data[data["keep"] == keep].sort_values("tokens")
    return str(line[SHOWN].iloc[-1])
