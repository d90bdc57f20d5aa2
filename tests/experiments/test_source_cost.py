"""The reference that labels are timed against gives the same labels."""

import numpy as np
import pytest

from unmasked.experiments.source_cost import (
    BENCHMARKS,
    SourceCostConfig,
    compute_source_cost,
    expressions,
    labels_by_expressions,
    measured,
)
from unmasked.languages import RandomWalk
from unmasked.patterns import OrderedPatterns
from unmasked.rows import checked


def test_both_sides_of_the_comparison_do_the_same_work():
    patterns = OrderedPatterns()
    tokens = RandomWalk().sample(400, 100, np.random.default_rng(0))
    slow = labels_by_expressions(expressions(patterns), tokens)
    assert 0.2 < slow.mean() < 0.8
    np.testing.assert_array_equal(slow, patterns.labels(tokens))


def test_rows_name_the_benchmarks_and_the_drawing(tmp_path):
    config = SourceCostConfig(labelled_sequences=20, drawn_sequences=5, drawn_length=9, repeats=1)
    rows = checked(compute_source_cost(config, 0, tmp_path), "")
    assert {row["benchmark"] for row in rows} == {*BENCHMARKS, "walks"}
    value = {(row["benchmark"], row["metric"]): row["value"] for row in rows}
    ratio = value["labels", "slow_seconds"] / value["labels", "fast_seconds"]
    assert value["labels", "median"] == pytest.approx(ratio)
    with pytest.raises(KeyError):
        measured("no such", config)
