import numpy as np
import pytest
from scipy import linalg

from unmasked import gaussian
from unmasked.experiments import graphs

CONFIG = graphs.GraphsConfig(
    graphs=("random", "grid"), rows=2, columns=4, edges=9, strength=0.9, masking_rates=(0.0, 0.5),
    samples=(8, 400), learned_rates=(0.5,), learned_samples=200, steps=30, batch_size=32,
)  # fmt: skip


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return list(graphs.compute_graphs(CONFIG, 0, tmp_path_factory.mktemp("graphs")))


def pick(rows, metric, **conditions):
    return [
        r["value"] for r in rows
        if r["metric"] == metric and all(r[key] == value for key, value in conditions.items())
    ]  # fmt: skip


def test_rows_are_unique_finite_and_have_the_same_columns(rows):
    keys = [tuple(v for k, v in r.items() if k not in {"value", "unit", "n"}) for r in rows]
    assert len(set(keys)) == len(keys)
    assert len({tuple(r) for r in rows}) == 1
    assert np.isfinite([r["value"] for r in rows]).all()


def test_both_statements_hold_to_machine_precision(rows):
    assert max(pick(rows, "t1_error") + pick(rows, "t1_residual_error")) < 1e-11
    assert len(pick(rows, "t2_error")) == 2
    assert max(pick(rows, "t2_error")) < 1e-11


def test_enumerated_masks_minimise_the_expected_error():
    covariance = linalg.inv(gaussian.precision_on(
        gaussian.chain_edges(4), 4, 0.8, np.random.default_rng(0)
    ))  # fmt: skip
    best = graphs.enumerated_coefficients(covariance, 1, 0.6)
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(np.zeros(4), covariance, 200_000)
    seen = draws[:, [0, 2, 3]] * (rng.random((len(draws), 3)) < 0.6)
    fitted = np.linalg.lstsq(seen, draws[:, 1], rcond=None)[0]
    assert best == pytest.approx(fitted, abs=0.02)


def test_with_one_mask_and_all_data_the_graph_is_perfect_and_nothing_leaks(rows):
    population = {"samples": None, "method": "masked"}
    assert pick(rows, "average_precision", masking=0.0, **population) == pytest.approx([1.0, 1.0])
    assert max(pick(rows, "weight", masking=0.0, distance=2)) < 1e-7
    assert min(pick(rows, "weight", masking=0.5, distance=2)) > 1e-3
    assert pick(rows, "residual", masking=0.0) == pytest.approx([1.0, 1.0])  # 1 / T_ii
    assert min(pick(rows, "residual", masking=0.5)) > 1.0


def test_one_mask_is_left_out_where_there_are_no_more_samples_than_variables(rows):
    few = {r["masking"] for r in rows if r["samples"] == 8 and r["method"] == "masked"}
    many = {r["masking"] for r in rows if r["samples"] == 400 and r["method"] == "masked"}
    assert (few, many) == ({0.5}, {0.0, 0.5})


def test_every_sample_has_the_lasso_and_the_control_beside_it(rows):
    for method in ("graphical lasso", "correlation"):
        assert len(pick(rows, "f1", method=method, graph="grid")) == 2 + (method == "correlation")
    assert pick(rows, "learned_distance", graph="random")[0] < 1.0


def test_seeds_give_other_graphs_and_the_same_seed_the_same():
    first, second = (
        graphs.edges_of(CONFIG, "random", np.random.default_rng(seed)).tolist() for seed in (0, 1)
    )
    assert first != second
    assert graphs.edges_of(CONFIG, "grid", np.random.default_rng(0)).tolist() == (
        gaussian.grid_edges(2, 4).tolist()
    )
