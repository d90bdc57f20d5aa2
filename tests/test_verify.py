"""Tests of unmasked.verify: pairing, tolerances, what counts as a difference."""

from __future__ import annotations

import pandas as pd
import pytest

from unmasked.project import UserError
from unmasked.verify import agrees, compare, read_rows


def rows(*changes: dict) -> pd.DataFrame:
    """Rows of one experiment: two seeds, two widths, one row without a width."""
    lines = []
    for seed in (0, 1):
        for width in (8, 16, None):
            lines.append(
                {
                    "experiment": "losses", "profile": "laptop", "config_hash": "c", "seed": seed,
                    "width": width, "metric": "loss", "value": 2.0 + seed, "unit": "nats", "n": 5,
                    "run_id": f"r{seed}",
                }
            )  # fmt: skip
    frame = pd.DataFrame(lines)
    for change in changes:
        change = dict(change)
        at = change.pop("at")
        for name, value in change.items():
            frame.loc[at, name] = value
    return frame


def test_equal_rows_agree_whatever_their_order_and_run():
    other = rows().iloc[::-1].assign(run_id="x", n=7)
    table = compare(rows(), other)
    assert table.to_dict("records") == [
        {
            "experiment": "losses", "metric": "loss", "unit": "nats", "agree": 6, "differ": 0,
            "missing": 0, "extra": 0, "skipped": 0, "largest": 0.0,
        }
    ]  # fmt: skip
    assert agrees(table)


@pytest.mark.parametrize(("value", "word"), [(2.03, "agree"), (2.05, "differ")])
def test_a_difference_counts_beyond_the_units_tolerance(value, word):
    table = compare(rows(), rows({"at": 1, "value": value}))
    assert table[word][0] == (6 if word == "agree" else 1)
    assert table["largest"][0] == pytest.approx((value - 2) / value)
    assert agrees(table) == (word == "agree")


def test_counts_must_be_equal_and_timings_are_skipped():
    ours, theirs = rows(), rows({"at": 0, "value": 2.0001})
    for frame in (ours, theirs):
        frame["unit"] = "count"
    assert not agrees(compare(ours, theirs))
    for unit in ("s", "tokens/s", "s/s", "MB"):
        table = compare(ours.assign(unit=unit), theirs.assign(unit=unit))
        assert table["skipped"][0] == 6
        assert not agrees(table), "nothing was compared"


def test_another_unit_is_a_difference():
    assert compare(rows(), rows({"at": 0, "unit": "bits"}))["differ"].sum() == 1


@pytest.mark.parametrize(
    "change", [{"width": 32}, {"config_hash": "d"}, {"metric": "accuracy"}, {"width": None}]
)
def test_a_row_with_another_identity_is_missing_and_extra(change):
    base = rows().drop(index=2)
    other = rows({"at": 0, **change}).drop(index=2)
    table = compare(base, other)
    assert (table["missing"].sum(), table["extra"].sum()) == (1, 1)
    assert not agrees(table)


def test_seeds_that_were_not_rerun_are_not_looked_at():
    table = compare(rows(), rows().query("seed == 1"))
    assert (table["agree"][0], table["missing"][0]) == (3, 0)


def test_a_lost_row_is_missing():
    assert compare(rows(), rows().drop(index=0))["missing"][0] == 1


def test_rows_survive_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    rows().to_csv(path, index=False)
    assert agrees(compare(rows(), read_rows(path, "laptop")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed,value\n0,1\n", "lacks the columns experiment, profile"),
        ("<html>", "lacks the columns"),
        ("", "not a file of result rows"),
        (None, "has no rows of profile smoke"),
        ("value", "not a file of result rows"),
    ],
)
def test_a_file_that_is_not_one_of_rows_is_refused(tmp_path, text, said):
    path = tmp_path / "rows.csv"
    full = rows().to_csv(index=False)
    path.write_text({None: full, "value": full.replace("2.0", "two")}.get(text, text))
    with pytest.raises(UserError) as caught:
        read_rows(path, "laptop" if text == "value" else "smoke")
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="There is no file"):
        read_rows(tmp_path / "none.csv", "laptop")
