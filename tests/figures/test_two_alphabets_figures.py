"""Figures of chapter 3 state the numbers that they draw."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from unmasked import figures
from unmasked.alphabets import TwoAlphabets
from unmasked.languages import RandomWalk

STARTS = [
    ("pretrained", 0.5), ("pretrained", 1.0), ("word vectors", None), ("scratch", None),
]  # fmt: skip
SHIFTS = {"A-D1": 0.3, "B-D1": 0.2, "A-D2": 0.1, "B-D2": 0.0, "trained": 0.25}


def transfer_rows():
    """Accuracy 0.5 + the condition's shift + 0.01 for each step of the start, +-0.01 by seed."""
    lines = [
        {"metric": "accuracy", "start": start, "keep": keep, "second_share": share, "size": size,
         "condition": condition, "seed": seed,
         "value": 0.5 + shift + 0.01 * number + 0.01 * (seed - 1)}
        for seed, (number, (start, keep)), share, size, (condition, shift) in product(
            (0, 1, 2), enumerate(STARTS), (0.0, 0.5), (100, 1000), SHIFTS.items()
        )
    ]  # fmt: skip
    lines += [
        {"metric": "accuracy", "start": "embeddings only", "keep": 0.5, "second_share": 0.5,
         "size": 100, "condition": condition, "seed": seed, "value": 0.6}
        for seed, condition in product((0, 1, 2), SHIFTS)
    ]  # fmt: skip
    lines += [{"metric": "majority", "condition": "A-D1", "seed": s, "value": 0.51} for s in (0, 1)]
    return pd.DataFrame(lines)


def dial_rows():
    lines = [
        {"metric": "accuracy", "start": "pretrained", "keep": keep, "second_share": share,
         "size": 100, "condition": condition, "seed": seed, "value": value}
        for seed, keep, share in product((0, 1), (0.5, 1.0), (0.0, 0.5))
        for condition, value in {"A-D1": 0.8, "B-D1": 1.3 - keep, "A-D2": 1.2 - keep}.items()
    ]  # fmt: skip
    return pd.DataFrame(lines)


def ties_rows():
    lines = [
        {"keep": keep, "seed": seed, "step": step, "tokens": 100 * step, "layer": layer,
         "metric": metric, "value": value}
        for seed, keep, step in product((0, 1), (0.5, 1.0), (0, 10))
        for metric, layer, value in (
            ("excess_loss", None, 4 - step / 4 + keep + 0.1 * seed),
            ("neighbour", 0.0, (1.5 - keep) * step / 10), ("chance", 0.0, 0.05),
        )
    ]  # fmt: skip
    return pd.DataFrame(lines)


def paraphrase_rows():
    lines = []
    for seed, data, kind in product((0, 1, 2), ("movie_reviews", "sst2"), ("synonym", "random")):
        shared = {"seed": seed, "data": data, "replacement": kind, "importance": "correct",
                  "classifier": "fine-tuned", "divergence": "total variation", "pair": None,
                  "share": None, "step": None}  # fmt: skip
        for template, value in {"task": 0.1, "means": 0.2}.items():
            row = {**shared, "template": template, "metric": "pearson"}
            lines.append({**row, "value": value + 0.01 * seed})
        lines.append({**shared, "template": None, "metric": "ceiling_pearson", "value": 0.6})
        lines.append({**shared, "template": "task", "metric": "random_f0_pearson", "value": 0.0})
    for pair, (f, f0) in enumerate([(0.1, 0.3), (0.2, 0.1), (0.3, 0.2)]):
        row = {"seed": 0, "data": "sst2", "replacement": "synonym", "importance": "correct",
               "classifier": "fine-tuned", "template": "task", "pair": pair}  # fmt: skip
        lines += [
            {**row, "metric": "change_f", "value": f},
            {**row, "metric": "change_f0", "value": f0},
        ]
    return pd.DataFrame(lines)


def corpora():
    walks = [RandomWalk(8, 16, seed=seed) for seed in (330, 331)]
    return TwoAlphabets(*walks, 0.5), TwoAlphabets(*walks, 1.0)


MADE = {
    "two-alphabets": (
        lambda: figures.corpora_figure(*corpora(), 10, np.random.default_rng(0)),
        "without, D1: 10 of 10 tokens in A; without, D2: 0 of 10",
    ),
    "excess-by-keep": (
        lambda: figures.excess_by_keep_figure(ties_rows()), "with the property: 2.05 [2.00, 2.10]",
    ),
    "tie-growth": (
        lambda: figures.tie_growth_figure(ties_rows()), "1: without: 0.500",
    ),
    "sample-efficiency": (
        lambda: figures.sample_efficiency_figure(transfer_rows()),
        "pretrained with the property 0.750, pretrained without 0.760",
    ),
    "generalisation": (
        lambda: figures.generalisation_figure(transfer_rows()),
        "with the property: 0.800 [0.790, 0.810] on A-D1, 0.700 [0.690, 0.710] on B-D1",
    ),
    "alphabet-dial": (
        lambda: figures.dial_figure(dial_rows()), "B-D1, share of B-D2 0: 0.800",
    ),
    "transplants": (
        lambda: figures.transplant_figure(transfer_rows()), "embeddings only: 0.600",
    ),
    "changes-sst2": (
        lambda: figures.changes_figure(paraphrase_rows(), "sst2"), "Their correlation is -0.50",
    ),
    "change-correlations": (
        lambda: figures.correlations_figure(paraphrase_rows()),
        "SST-2, task: 0.110 [0.100, 0.120]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_alt_text_states_the_numbers_that_are_drawn(name, states_its_numbers):
    make, said = MADE[name]
    states_its_numbers(make(), name, said)


def test_the_ceiling_and_the_untrained_model_stand_among_the_predictors():
    rows = figures.correlation_rows(paraphrase_rows())
    means = rows[rows["data"] == "sst2"].groupby("predictor")["value"].mean()
    assert means["another classifier"] == pytest.approx(0.6)
    assert means["untrained language model"] == 0
    assert means["task"] == pytest.approx(0.11)


def test_the_common_cell_is_where_every_start_was_run():
    assert figures.common_cell(figures.named(transfer_rows())) == (100, 0.5)


def test_pretrained_starts_are_told_apart_by_their_corpus():
    starts = set(figures.named(transfer_rows())["start"])
    assert {"pretrained with the property", "pretrained without", "scratch"} <= starts
