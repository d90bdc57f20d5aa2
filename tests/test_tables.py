"""Tests of unmasked.tables and unmasked.intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unmasked.claims import Verdict
from unmasked.intervals import bootstrap
from unmasked.tables import formatted, ledger_frame, with_intervals


def test_the_interval_is_scipys_percentile_bootstrap():
    sample = np.random.default_rng(5).normal(3.0, 2.0, size=40)
    ours = bootstrap(sample, np.random.default_rng(1))
    options = {"confidence_level": 0.95, "method": "percentile", "n_resamples": 20_000}
    theirs = stats.bootstrap((sample,), np.mean, **options).confidence_interval
    assert ours.mean == pytest.approx(sample.mean())
    assert ours.low == pytest.approx(theirs.low, abs=0.05)
    assert ours.high == pytest.approx(theirs.high, abs=0.05)
    assert ours.count == 40


def test_the_interval_is_the_same_every_time_and_shifts_with_the_values():
    values = [0.1, 0.5, 0.2, 0.9]
    first = bootstrap(values, np.random.default_rng(0))
    assert first == bootstrap(values, np.random.default_rng(0))
    moved = bootstrap([value + 10 for value in values], np.random.default_rng(0))
    assert moved.low == pytest.approx(first.low + 10)


def test_one_value_has_no_interval_and_none_is_refused():
    one = bootstrap([2.0], np.random.default_rng(0))
    assert (one.mean, one.count) == (2.0, 1)
    assert np.isnan([one.low, one.high]).all()
    with pytest.raises(ValueError, match="at least one value"):
        bootstrap([], np.random.default_rng(0))


def rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "seed": [0, 0, 1, 1, 2, 2, 0, 1, 2],
            "arm": ["b"] * 6 + ["a"] * 3,
            "value": [1.0, 3.0, 2.0, 4.0, 3.0, 5.0, 7.0, 7.0, 7.0],
        }
    )


def test_values_are_averaged_within_seeds_first_and_order_is_kept():
    table = with_intervals(rows(), by=["arm"])
    assert table["arm"].tolist() == ["b", "a"]
    assert table["mean"].tolist() == [3.0, 7.0]
    assert table["seeds"].tolist() == [3, 3]
    assert (table["low"][0], table["high"][0]) == (2.0, 4.0)
    assert table["mean [low, high]"].tolist() == ["3.0 [2.0, 4.0]", "7.00 [7.00, 7.00]"]


def test_a_condition_that_does_not_apply_is_a_line_of_its_own():
    frame = rows().assign(tokens=[1.0, None] * 4 + [1.0])
    assert len(with_intervals(frame, by=["arm", "tokens"])) == 4


def test_one_seed_is_shown_without_an_interval():
    table = with_intervals(rows().query("seed == 0"), by="arm")
    assert table["mean [low, high]"].tolist() == ["2.00", "7.00"]
    assert table["low"].isna().all()


def test_a_column_that_is_missing_is_named():
    with pytest.raises(KeyError, match="no column model"):
        with_intervals(rows(), by=["model"])
    with pytest.raises(ValueError, match="no rows"):
        with_intervals(rows().head(0), by=["arm"])


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((2.34567, 2.31111, 2.38888), "2.346 [2.311, 2.389]"),
        ((-0.5, -0.61, -0.4), "−0.50 [−0.61, −0.40]"),
        ((12345.6, 12000.0, 12700.0), "12346 [12000, 12700]"),
        ((0.0, -0.001, 0.001), "0.0000 [−0.0010, 0.0010]"),
        ((3.14159,), "3.14"),
        ((1234.5,), "1234"),
        ((0.0,), "0.000"),
        ((1e-9, -1e-8, 1e-8), "0.000000 [0.000000, 0.000000]"),
    ],
)
def test_numbers_have_as_many_digits_as_their_interval_supports(numbers, text):
    assert formatted(*numbers) == text


def test_the_ledger_is_one_row_a_claim():
    tested = Verdict(
        "a", "Some 2020", "Table 1", "More | is\nbetter.", "not reproduced", -0.25, -0.5, 0.125, 3,
        "laptop", "nats", "the interval is not above 0",
    )  # fmt: skip
    open_claim = Verdict(
        "b", "Some 2020", "Abstract", "It holds.", "not tested", None, None, None, 0, None, "",
        "no experiment yet",
    )  # fmt: skip
    frame = ledger_frame([tested, open_claim])
    assert frame.to_numpy().tolist() == [
        ["More | is better.", "not reproduced: the interval is not above 0",
         "−0.25 [−0.50, 0.12] nats", "3"],
        [open_claim.statement, "not tested: no experiment yet", "–", "–"],
    ]  # fmt: skip
