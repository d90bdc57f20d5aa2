import itertools

import pandas as pd
import pytest

from unmasked.figures import graphs as figures


def row(metric, value, seed=0, **conditions):
    return {"seed": seed, "metric": metric, "value": value, "unit": "nats", "n": 9, **conditions}


def graph_rows():
    made = []
    for seed, (samples, rate, value) in itertools.product(
        range(3), ((50, 0.0, 0.25), (50, 0.5, 0.75), (900, 0.0, 0.95), (900, 0.5, 0.85))
    ):
        where = {"graph": "random", "method": "masked", "masking": rate}
        made.append(row("average_precision", value + seed / 100, seed, samples=samples, **where))
        for distance in (1, 2):
            weight = 0.3 / distance if rate or distance == 1 else 0.0
            made.append(row("weight", weight, seed, distance=distance, **where))
    made.append(row("average_precision", 0.1, graph="random", method="correlation", samples=50))
    made.append(row("average_precision", 0.1, graph="grid", method="masked", samples=50, masking=0))
    return pd.DataFrame(made)


def field_rows():
    made = [row("on_tree", 0.5, method="exact"), row("off_tree", 0.0, method="exact")]
    values = {"on_tree": 0.4, "off_tree": 0.02, "imbalance": 0.125, "log_odds": 0.75}
    for seed, step, masking, metric in itertools.product(
        range(3), (10, 20), ("one mask", "15 %", "50 %"), values
    ):
        value = values[metric] * step / 20 + 0.001 * seed
        made.append(row(metric, value, seed, method="model", masking=masking, step=step))
    return pd.DataFrame(made)


def book_rows():
    return pd.DataFrame([
        row(metric, value, seed, model="book_model", weights=weights)
        for seed in range(3)
        for weights, metric, value in (
            ("trained", "imbalance", 0.5), ("trained", "log_odds", 0.9),
            ("random", "imbalance", 0.1), ("random", "log_odds", 0.2),
        )
    ])  # fmt: skip


MADE = {
    "graph-recovery-random": (
        lambda: figures.recovery_figure(graph_rows(), "random"),
        "50 samples: 0.260 with one mask, best 0.760 at rate 0.5",
    ),
    "graph-leak-random": (
        lambda: figures.leak_figure(graph_rows(), "random"),
        "pairs 2 steps apart: 0.000 with one mask, 0.150 at rate 0.5",
    ),
    "tree-information": (
        lambda: figures.tree_information_figure(field_rows()),
        "exact on the tree 0.5000 nats. At the end on the tree, trained with one mask: 0.4010",
    ),
    "compatibility": (
        lambda: figures.compatibility_figure(field_rows(), book_rows()),
        "book model, trained weights: imbalance 0.50, log odds ratio 0.90",
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_alt_text_states_the_numbers_that_are_drawn(name, states_its_numbers):
    make, said = MADE[name]
    states_its_numbers(make(), name, said)


def test_captions_follow_the_numbers():
    caption = figures.recovery_figure(graph_rows(), "random").caption
    assert (
        "With 50 samples the best rate of those tried is 0.5, with 900 samples it is 0," in caption
    )
    leak = figures.leak_figure(graph_rows(), "random").caption
    assert "have 0.000 of an edge's weight with one mask and 0.50 of it at rate 0.5" in leak
    assert "that of book model, trained weights" in MADE["compatibility"][0]().caption
    balanced = book_rows()
    balanced.loc[balanced["weights"] == "random", "value"] = 0.0
    caption = figures.compatibility_figure(field_rows(), balanced).caption
    assert "No model is in balance" not in caption


def test_drawn_points_are_the_rows_means():
    axes = figures.recovery_figure(graph_rows(), "random").figure.axes[0]
    line = next(line for line in axes.lines if line.get_label() == "900 samples")
    assert line.get_xdata() == pytest.approx([0.0, 0.5])
    assert line.get_ydata() == pytest.approx([0.96, 0.86])
    labels = [line.get_label() for line in figures.tree_information_figure(
        field_rows()
    ).figure.axes[0].lines]  # fmt: skip
    assert "on the tree, trained with 50 %" in labels
    assert not any("15 %" in label for label in labels)


def test_one_seed_is_drawn_without_an_interval():
    one = graph_rows().query("seed == 0")
    figure = figures.recovery_figure(one, "random")
    assert figure.data["low"].isna().all()
    figure.figure.canvas.draw()
