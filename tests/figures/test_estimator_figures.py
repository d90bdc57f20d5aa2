import itertools

import pandas as pd
import pytest

from unmasked.figures.estimators import cheapest_as_good, estimators_figure

ERRORS = {
    ("head_tail", 16.0): (0.009, 65), ("head_tail", 64.0): (0.004, 257),
    ("gibbs", 500.0): (0.012, 1000), ("gibbs", 2000.0): (0.006, 4000),
    ("gibbs_rb", 2000.0): (0.005, 500),
    ("cpmi", None): (0.3, 1.2), ("kl_cpmi", None): (0.1, 1.2),
}  # fmt: skip


def rows(errors=ERRORS):
    lines = []
    for seed, ((name, setting), (error, read)) in itertools.product(range(3), errors.items()):
        common = {"seed": seed, "source": "named model", "estimator": name, "setting": setting}
        lines.append({**common, "metric": "rmse", "value": error * (0.9 + 0.1 * seed)})
        lines.append({**common, "metric": "rows", "value": float(read)})
        lines.append({**common, "metric": "bias", "value": -1.0})
    lines.append({**common, "estimator": "exact", "metric": "information", "value": 0.05})
    return pd.DataFrame(lines)


def test_the_caption_names_the_cheapest_estimator_that_errs_no_more_than_the_chain():
    figure = estimators_figure(rows(), "named model")
    assert figure.name == "estimators_named_model"
    assert "official chain (2,000 steps) reads 4,000 rows" in figure.caption
    assert "head + tail 64 + 64 errs by 0.00400 nats" in figure.caption
    assert "16 times fewer" in figure.caption


def test_a_chain_that_nothing_beats_is_said_to_be_so():
    errors = {**ERRORS, ("gibbs", 2000.0): (0.001, 4000)}
    assert "Nothing with fewer rows errs as little." in estimators_figure(
        rows(errors), "named model"
    ).caption  # fmt: skip


def test_every_estimator_is_drawn_at_its_rows_with_its_mean_error():
    figure = estimators_figure(rows(), "named model")
    drawn = {
        (x, round(y, 6))
        for line in figure.figure.axes[0].get_lines()
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        if line.get_label().startswith("_child") or line.get_marker() in "os^Dv"
    }
    for error, read in ERRORS.values():
        assert (read, round(error, 6)) in drawn
    assert figure.figure.axes[0].get_xscale() == figure.figure.axes[0].get_yscale() == "log"
    assert "pointwise (cpmi): 0.300 nats at 1 rows" in figure.alt
    assert len(figure.data) == len(ERRORS)


def test_the_longest_chain_is_the_reference():
    data = estimators_figure(rows(), "named model").data
    reference, best = cheapest_as_good(data)
    assert reference["setting"] == 2000
    assert (best["estimator"], best["setting"]) == ("head_tail", 64)


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="the rows have named model"):
        estimators_figure(rows(), "book")
