"""The toy cloze figures say what they draw."""

import itertools

import pandas as pd
import pytest

from unmasked.figures.toy_cloze import (
    DEFECTS,
    cloze_share_figure,
    defect_effects,
    released_defects_figure,
)

BASE = {"none": 0.5, "labels": 0.6, "shuffled labels": 0.1}


def toy_rows(seeds=range(3), pools=("disjoint", "overlapping")):
    """Accuracy = start + 0.05 per decade; +0.01 by selection on test, +0.03 by the overlap."""
    rows = []
    starts = [("none", None), ("labels", 0.0), ("labels", 1.0), ("shuffled labels", 1.0)]
    for seed, (corpus, share), pool, selection, size in itertools.product(
        seeds, starts, pools, ("validation", "test"), (10, 100)
    ):
        value = BASE[corpus] + 0.2 * (share or 0) + 0.05 * (size == 100) + 0.01 * seed
        value += 0.01 * (selection == "test") + 0.03 * (pool == "overlapping")
        rows.append(
            {"seed": seed, "dataset": "sst2", "corpus": corpus, "share": share, "size": size,
             "pool": pool, "selection": selection, "metric": "accuracy", "value": value,
             "unit": "share", "n": 872}
        )  # fmt: skip
    zero_shot = {**rows[-1], "size": 0, "pool": None, "selection": None, "value": 0.0}
    other = {**rows[0], "dataset": "movie_reviews", "value": 0.0}
    return pd.DataFrame([*rows, zero_shot, other])


def test_the_share_figure_says_the_ends_of_each_line():
    figure = cloze_share_figure(toy_rows(), "sst2")
    assert figure.name == "cloze-share-sst2"
    said = "100% cloze: 0.810 to 0.860; 0% cloze: 0.610 to 0.660; from scratch: 0.510 to 0.560"
    assert said in figure.alt
    assert "100% cloze 0.810 [0.800, 0.820]" in figure.caption
    assert set(figure.data["size"]) == {10, 100}
    assert figure.data["mean"].min() > 0.5  # neither the control nor another data set
    figure.figure.canvas.draw()


def test_the_drawn_lines_are_the_clean_means():
    axes = cloze_share_figure(toy_rows(), "sst2").figure.axes[0]
    drawn = [container.lines[0].get_ydata().tolist() for container in axes.containers]
    expected = [[0.81, 0.86], [0.61, 0.66], [0.51, 0.56]]
    assert drawn == [pytest.approx(line) for line in expected]


def test_defect_effects_are_taken_within_a_seed():
    effects = defect_effects(toy_rows(), "sst2")
    expected = dict(zip(DEFECTS, (0.01, 0.03, 0.04), strict=True))
    assert len(effects) == 3 * 3 * 2 * 3  # defects, seeds, sizes, starts
    for defect, part in effects.groupby("defect"):
        assert part["value"].to_numpy() == pytest.approx([expected[defect]] * len(part))
    assert effects["start"].drop_duplicates().tolist() == [
        "100% cloze", "0% cloze", "from scratch",
    ]  # fmt: skip


def test_the_defects_figure_says_the_averages():
    figure = released_defects_figure(toy_rows(), "sst2")
    assert "pool overlaps the pretraining half: 0.030" in figure.caption
    assert "for 6 pairs of start and size" in figure.alt
    figure.figure.canvas.draw()


def test_one_seed_has_no_interval_and_still_is_drawn():
    for make in (cloze_share_figure, released_defects_figure):
        figure = make(toy_rows(seeds=[0]), "sst2")
        assert "nan" not in figure.alt + figure.caption
        figure.figure.canvas.draw()


def test_without_an_overlapping_pool_there_are_no_defects_to_show():
    with pytest.raises(ValueError, match="nothing of sst2 was fine-tuned on an overlapping pool"):
        defect_effects(toy_rows(pools=("disjoint",)), "sst2")
