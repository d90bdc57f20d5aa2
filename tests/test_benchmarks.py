"""The `bench` command's answers that need no measurement: what is stored, and what is refused."""

import json

import pandas as pd
import pytest

from unmasked.project import UserError
from unmasked.results import Rows


@pytest.fixture
def older_rows(bench, monkeypatch):
    """Committed rows of older code that did not have every benchmark."""
    values = {
        "head_at_masks": (2.0, 1.5, 2.5),
        "step_same_recipe": (1.25, 1.0, 1.75),
    }
    frame = pd.DataFrame(
        {"benchmark": name, "metric": metric, "value": value}
        for name, numbers in values.items()
        for metric, value in zip(("median", "low", "high"), numbers, strict=True)
    )
    rows = Rows(frame, "committed", True, "Rows of cost are stale.", pd.DataFrame())
    monkeypatch.setattr(bench, "committed_rows", lambda *_: rows)
    monkeypatch.setattr(bench, "SUITES", bench.SUITES[:1])


@pytest.mark.usefixtures("older_rows")
def test_stored_prints_what_older_code_measured_and_says_that_it_is_stale(bench, capsys):
    bench.main([], json=True, stored=True)
    printed = capsys.readouterr()
    assert json.loads(printed.out) == [
        {"name": "step_same_recipe", "median": 1.25, "low": 1.0, "high": 1.75, "goal": 1.5},
        {"name": "head_at_masks", "median": 2.0, "low": 1.5, "high": 2.5, "goal": None},
    ]
    assert printed.err == "Rows of cost are stale.\n"
    bench.main([], stored=True)
    assert "1.5 (missed)" in capsys.readouterr().out


@pytest.mark.usefixtures("older_rows")
def test_a_benchmark_that_is_not_stored_is_refused_by_name(bench):
    with pytest.raises(UserError, match=r"No committed rows of masking_bernoulli: run `unmasked"):
        bench.main(["head_at_masks", "masking_bernoulli"], stored=True)


def test_nothing_stored_says_how_to_measure(bench, monkeypatch):
    monkeypatch.setattr(bench, "committed_rows", lambda *_: None)
    with pytest.raises(UserError, match="run `unmasked bench`"):
        bench.main([], stored=True)


def test_no_two_suites_have_a_benchmark_of_the_same_name(bench):
    names = [name for suite in bench.SUITES for name in suite.module.BENCHMARKS]
    assert len(set(names)) == len(names)
    assert {"step_same_recipe", "information_64"} < set(names)
