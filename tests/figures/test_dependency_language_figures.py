"""Each figure says in words what it draws, and draws the means of its rows."""

import itertools

import pandas as pd
import pytest

from unmasked.experiments import dependency_language as experiment
from unmasked.experiments import long_distance
from unmasked.figures import dependency_language as figures


def language_rows():
    rows = []
    for seed, strength in itertools.product(range(3), (0.0, 0.8)):
        where = {"seed": seed, "strength": strength}
        for place, system in enumerate(figures.SYSTEMS):
            if strength or system != experiment.EXACT:
                value = 30 + 10 * place + 40 * strength + seed
                rows.append(where | experiment.row("uuas", value, "UUAS", 9, system=system)
                            | {"strength": strength})  # fmt: skip
        for step, excess, uuas in ((0, 0.8, 25.0), (10, 0.2, 25 + 50 * strength)):
            for metric, value in (("excess_loss", excess), ("uuas", uuas + seed)):
                line = experiment.row(metric, value, "x", 9, system=figures.MODEL, step=step)
                rows.append(line | where)
        for arc, share in ((1, 0.9), (4, 0.5)):
            line = experiment.row("recall", share, "share", 9, system=figures.MODEL, arc=arc)
            rows.append(line | where)
    return pd.DataFrame(rows)


def clause_rows():
    rows = []
    names = (long_distance.MODEL, long_distance.CHAIN, long_distance.RANDOM_TREE)
    for seed, (k, name), (m, system) in itertools.product(
        range(3), enumerate(long_distance.CONSTRUCTIONS), enumerate(names)
    ):
        rows.append({"seed": seed, "construction": name, "system": system, "unit": "share",
                     "n": 5, "metric": "subject_verb_recall",
                     "value": (0.8 - 0.2 * k) / (m + 1)})  # fmt: skip
    return pd.DataFrame(rows)


MADE = {
    "known-trees": (
        lambda: figures.known_trees_figure(language_rows()),
        "strength 0.8: masked language model 63.0, exact information 73.0, adjacent chain 83.0",
        "find 63.0 [62.0, 64.0] of 100 gold edges at strength 0.8 and 31.0 at strength 0.",
    ),
    "trees-along-training": (
        lambda: figures.trees_along_training_figure(language_rows()),
        "strength 0.8: from 26.0 at 0.80 nats to 66.0 at 0.200 nats",
        "strength 0: from 26.0 at 0.80 nats to 26.0 at 0.200 nats",
    ),
    "recall-by-arc": (
        lambda: figures.recall_by_arc_figure(language_rows()),
        "1: 0.90, 4: 0.50",
        "0.90 of the edges between neighbours and 0.50 of those over 4 words",
    ),
    "relative-clauses": (
        lambda: figures.relative_clause_figure(clause_rows()),
        "object relative: masked language model 0.40, adjacent chain 0.20, random tree 0.13",
        "0.80 of the simple sentences, in 0.40 across an object relative",
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_alt_text_and_caption_state_the_numbers_that_are_drawn(name, states_its_numbers):
    make, *words = MADE[name]
    states_its_numbers(make(), name, *words)


def test_known_systems_and_constructions_are_those_of_the_experiments():
    assert set(figures.SYSTEMS) == {
        experiment.MODEL, experiment.EXACT, experiment.CHAIN, experiment.RANDOM_TREE,
        experiment.RANDOM_WEIGHTS, experiment.CPMI,
    }  # fmt: skip
    assert tuple(long_distance.CONSTRUCTIONS) == figures.CONSTRUCTIONS
    assert long_distance.MODEL == figures.MODEL


def test_the_path_is_drawn_from_the_first_step_to_the_last():
    axes = figures.trees_along_training_figure(language_rows()).figure.axes[0]
    line = axes.containers[1].lines[0]
    assert line.get_xdata() == pytest.approx([0.8, 0.2])
    assert line.get_ydata() == pytest.approx([26.0, 66.0])


def test_one_seed_draws_no_interval():
    rows = language_rows().query("seed == 0")
    figure = figures.known_trees_figure(rows)
    assert figure.data["low"].isna().all()
    assert "nan" not in figure.caption
    figure.figure.canvas.draw()
