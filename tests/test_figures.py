"""Figures say in words and captions what they draw; each is checked against its own rows."""

import itertools

import numpy as np
import pandas as pd
import pytest

from unmasked import figures
from unmasked.figures.common import grouped_points, new_axes


def row(metric, value, seed=0, unit="nats", n=10, **conditions):
    return {"seed": seed, "metric": metric, "value": value, "unit": unit, "n": n, **conditions}


def walk_rows():
    rows = [row("floor", 0.125, s, corpus="walk") for s in range(3)]
    for corpus, step, seed in itertools.product(("walk", "shuffled"), (10, 20), range(3)):
        value = {"walk": 40.0, "shuffled": 80.0}[corpus] / step + 0.1 * seed
        rows.append(row("excess_loss", value, seed, corpus=corpus, step=step, tokens=100 * step))
    return pd.DataFrame(rows)


def text_rows(seeds=range(3)):
    rows = []
    for seed in seeds:
        rows += [row("loss", 7.0, seed, model="unigram"), row("loss", 5.0, seed,
                 model="neighbour bigram")]  # fmt: skip
        for rate, step in itertools.product((0.5, 2.0), (0, 10)):
            where = {"learning_rate": rate, "step": step, "tokens": 100 * step, "text": "all"}
            value = 8.0 - step * rate / 10 + 0.1 * seed
            rows.append(row("loss", value, seed, model="bert", **where))
    frame = pd.DataFrame(rows)
    accuracy = row("accuracy", 0.25, model="bert", step=10, tokens=1000, text="all")
    return pd.concat([frame, pd.DataFrame([accuracy])])


def bug_rows():
    rows = []
    for seed, (bug, honest, reported) in itertools.product(
        range(3), (("none", 0.2, 0.1), ("static", 1.5, -0.25))
    ):
        rows.append(row("excess_loss", honest + 0.01 * seed, seed, bug=bug, step=5))
        rows.append(row("reported_excess", reported, seed, bug=bug, step=5))
    return pd.DataFrame(rows)


def cost_rows():
    rows = []
    for name, median, goal in (("fast", 20.0, 15.0), ("late", 2.0, 3.0), ("free", 1.1, None)):
        for metric, factor in (("low", 0.9), ("median", 1.0), ("high", 1.2)):
            rows.append(row(metric, median * factor, unit="s/s", benchmark=name, label=name,
                            goal=goal))  # fmt: skip
    return pd.DataFrame(rows)


def lens_rows():
    return pd.DataFrame(
        {
            "position": [0, 1, 2, 3], "token": ["[CLS]", "good", "film", "[SEP]"],
            "seen": ["[CLS]", "[MASK]", "film", "[SEP]"], "selected": [False, True, False, False],
            "fate": ["", "masked", "", ""], "loss": [np.nan, 2.5, np.nan, np.nan],
        }
    )  # fmt: skip


BUG_TEXT = "static: reports -0.250, true 1.510"
MADE = {
    "excess-loss": (lambda: figures.excess_loss_figure(walk_rows()), "from 4.10 to 2.10 nats"),
    "learning-curve": (
        lambda: figures.learning_curve_figure(
            text_rows([0]).query("model == 'bert' and learning_rate != 2.0"), text_rows(), 0.5
        ),
        "from 8.00 to 7.50 nats",
    ),
    "plateau": (lambda: figures.plateau_figure(text_rows()), "learning rate 2 ends at 6.10"),
    "bug-gallery": (lambda: figures.bug_figure(bug_rows()), BUG_TEXT),
    "cost": (lambda: figures.ratio_figure(cost_rows()), "late: 2.00 (1.80 to 2.40)"),
    "mask-lens": (
        lambda: figures.mask_lens_figure(lens_rows(), "good film"),
        "good is masked (seen as [MASK]) with loss 2.50 nats",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_alt_text_states_the_numbers_that_are_drawn(name, states_its_numbers):
    make, said = MADE[name]
    states_its_numbers(make(), name, said)


def test_captions_follow_the_numbers():
    assert "2 of 2" not in figures.ratio_figure(cost_rows()).caption
    assert figures.ratio_figure(cost_rows()).caption.startswith("1 of 2 goals")
    bugs = figures.bug_figure(bug_rows())
    assert "so it is with static." in bugs.caption
    honest = bug_rows()
    honest.loc[honest["value"] < 0, "value"] = 0.5
    assert "here none is." in figures.bug_figure(honest).caption
    assert "25.0% of the" in MADE["learning-curve"][0]().caption


def test_drawn_points_are_the_rows_means():
    axes = figures.excess_loss_figure(walk_rows()).figure.axes[0]
    line = next(line for line in axes.lines if line.get_label() == "walks in order")
    assert line.get_xdata() == pytest.approx([1000, 2000])
    assert line.get_ydata() == pytest.approx([4.1, 2.1])


def test_an_interval_is_drawn_only_where_there_are_seeds():
    one = bug_rows().query("seed == 0")
    figure = figures.bug_figure(one)
    assert figure.data["low"].isna().all()
    figure.figure.canvas.draw()


def test_grouped_points_stand_on_their_line_and_a_missing_one_is_left_out():
    data = pd.DataFrame(
        {
            "who": ["a", "b", "a"], "what": ["x", "x", "y"], "mean": [1.0, 2.0, 3.0],
            "low": [0.5, 1.5, 2.5], "high": [1.5, 2.5, 3.5],
        }
    )  # fmt: skip
    _, axes = new_axes()
    names = {"y": "second", "x": "first"}
    grouped_points(axes, data, "who", {"a": "A", "b": "B"}, "what", names, gap=0.4)
    drawn = [container.lines[0].get_xydata() for container in axes.containers]
    assert drawn[0] == pytest.approx(np.array([[3.0, -0.2], [1.0, 0.8]]))
    assert np.isnan(drawn[1][0, 0])
    assert drawn[1][1] == pytest.approx([2.0, 1.2])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["second", "first"]
    assert axes.yaxis_inverted()
