"""Parsing figures say in words and captions what they draw."""

import itertools

import numpy as np
import pandas as pd
import pytest

from unmasked import trees
from unmasked.figures import parsing
from unmasked.figures.parsing import CHAIN, INFORMATION


def row(metric, value, seed=0, unit="UUAS", n=10, **conditions):
    return {"seed": seed, "metric": metric, "value": value, "unit": unit, "n": n, **conditions}


def parsing_rows(seeds=range(3)):
    rows = []
    for seed, (system, base), (sample, shift) in itertools.product(
        seeds, ((INFORMATION, 54.0), (CHAIN, 50.0), ("random tree", 30.0)),
        (("short", 0.0), ("long", -8.0)),
    ):  # fmt: skip
        where = {"sample": sample, "system": system}
        rows.append(row("uuas", base + shift + seed, seed, **where))
        rows.append(row("uuas_minus_chain", base - 50.0, seed, **where))
        for distance, recall, n in ((1, 1.0, 10), (2, 0.5 if system == INFORMATION else 0.0, 6),
                                    (3, 0.0, 4)):  # fmt: skip
            rows.append(row("recall", recall, seed, "share", n, distance=distance, **where))
        for relation, gold, found in (("obj", 5, {INFORMATION: 4, CHAIN: 2}),
                                      ("det", 4, {INFORMATION: 1, CHAIN: 4}),
                                      ("iobj", 1, {INFORMATION: 1, CHAIN: 1})):  # fmt: skip
            if system in found:
                rows.append(row("correct", found[system], seed, "count", gold, relation=relation,
                                **where))  # fmt: skip
    return pd.DataFrame(rows)


def history_rows():
    rows = [row("uuas", 50.0, system=CHAIN), row("uuas_low", 48.0, system=CHAIN)]
    for order, step in itertools.product(("natural", "shuffled"), (0, 100)):
        value = 30.0 + (step / 10 if order == "natural" else 2.0)
        where = {"system": "model", "order": order, "step": step, "tokens": 1000 * step}
        for metric, gap in (("uuas", 0), ("uuas_low", -3), ("uuas_high", 3)):
            rows.append(row(metric, value + gap, **where))
        rows.append(row("loss", 9.0 - step / 50, unit="nats", **where))
    return pd.DataFrame(rows)


WORDS = ("the", "old", "ship", "sank")
MATRIX = np.arange(16.0).reshape(4, 4) / 10
PREDICTED, GOLD = np.array([[0, 1], [1, 2], [2, 3]]), np.array([[0, 2], [1, 2], [2, 3]])
MADE = {
    "one-sentence": (
        lambda: parsing.information_figure(MATRIX, WORDS, PREDICTED, GOLD),
        "largest entry is 1.40 for “sank” given “ship”",
        "2 of the 3 gold edges",
    ),
    "uuas": (
        lambda: parsing.uuas_figure(parsing_rows()),
        "short sentences: mutual information 55.0, adjacent chain 51.0, random tree 31.0",
        "On all lengths the tree over mutual information minus the chain is 4.00",
    ),
    "recall-by-distance-short": (
        lambda: parsing.distance_figure(parsing_rows()),
        "mutual information 1.00 at 1, 0.50 at 2, 0.00 at 3",
        "finds 100% of the gold edges and the chain 100%; of all longer ones 30% and 0%",
    ),
    "parsing-history": (
        lambda: parsing.history_figure(history_rows()),
        "text in order: UUAS from 30.0 to 40.0, loss 7.00 nats at the end",
        "text in order 40.0 [37.0, 43.0]; words shuffled (control) 32.0 [29.0, 35.0]",
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_alt_text_and_caption_state_the_numbers_that_are_drawn(name, states_its_numbers):
    make, *words = MADE[name]
    states_its_numbers(make(), name, *words)


def test_the_chain_is_marked_for_each_sample_and_systems_can_be_chosen():
    axes = parsing.uuas_figure(parsing_rows(), (INFORMATION, CHAIN)).figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [INFORMATION, CHAIN]
    marks = [line.get_xdata()[0] for line in axes.lines
             if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]  # fmt: skip
    assert sorted(marks) == pytest.approx([43.0, 51.0])


def test_one_seed_is_drawn_without_intervals():
    figure = parsing.uuas_figure(parsing_rows(range(1)))
    assert figure.data["low"].isna().all()
    assert "nan" not in figure.caption
    figure.figure.canvas.draw()


def test_relations_are_pooled_over_seeds_and_rare_ones_left_out():
    frame = parsing.relation_frame(parsing_rows())
    assert frame["relation"].tolist() == ["obj", "det"]
    assert frame["gold edges"].tolist() == [15, 12]
    assert frame[INFORMATION].tolist() == pytest.approx([12 / 15, 3 / 12])
    odds = trees.log_odds_ratio(15, 12, 6)
    assert frame.iloc[0, -1].startswith(f"{odds[0]:.1f} [")
    assert len(parsing.relation_frame(parsing_rows(), at_least=1)) == 3


def test_a_sentence_without_a_gold_tree_says_so_and_names_the_links():
    none = np.zeros((0, 2), dtype=np.int64)
    drawn = parsing.information_figure(MATRIX, WORDS, PREDICTED, none)
    assert drawn.alt.endswith("no gold tree is given.")
    assert drawn.caption.startswith("The tree over the matrix links ")
    assert "gold" not in drawn.caption
