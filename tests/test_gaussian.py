import itertools

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import linalg, stats

from unmasked import gaussian

SIZE = 7


def graph(seed=0, size=SIZE, count=8, strength=0.8):
    rng = np.random.default_rng(seed)
    edges = gaussian.random_edges(size, count, rng)
    return edges, gaussian.precision_on(edges, size, strength, rng)


def unequal(seed=0):
    """A precision whose covariance has unequal variances, so that D in T2 matters."""
    scale = np.diag(np.random.default_rng(seed).uniform(0.5, 2.0, SIZE))
    return scale @ graph(seed)[1] @ scale


def test_the_support_of_a_precision_matrix_is_the_graph_and_it_is_positive_definite():
    edges, precision = graph(3, strength=0.95)
    first, second = np.nonzero(np.triu(precision, 1))
    assert np.stack([first, second], 1).tolist() == edges.tolist()
    values = np.linalg.eigvalsh(precision)
    assert values.min() >= 0.05 - 1e-12
    assert np.abs(1 - values).max() == pytest.approx(0.95)


def test_chain_and_grid_have_the_neighbours_that_are_drawn():
    assert gaussian.chain_edges(4).tolist() == [[0, 1], [1, 2], [2, 3]]
    grid = {tuple(edge) for edge in gaussian.grid_edges(2, 3).tolist()}
    assert grid == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}


def test_random_edges_are_different_pairs_in_order():
    edges = gaussian.random_edges(6, 15, np.random.default_rng(0))
    assert edges.tolist() == [list(pair) for pair in itertools.combinations(range(6), 2)]


def test_samples_have_the_covariance_that_scipy_inverts():
    precision = unequal()
    drawn = gaussian.sample(precision, 200_000, np.random.default_rng(1))
    expected = linalg.inv(precision)
    assert_allclose(gaussian.covariance_of(precision), expected, rtol=1e-10)
    deviation = np.sqrt((np.outer(*[np.diag(expected)] * 2) + expected**2) / len(drawn))
    assert np.abs((gaussian.second_moments(drawn) - expected) / deviation).max() < 5
    assert stats.kstest(drawn[:, 0], "norm", (0, expected[0, 0] ** 0.5)).pvalue > 1e-3


def test_one_mask_is_the_least_squares_regression_on_all_others():
    precision = unequal()
    covariance = linalg.inv(precision)
    found = gaussian.one_mask_regression(precision)
    for i in range(SIZE):
        others = np.delete(np.arange(SIZE), i)
        solved = linalg.inv(covariance[np.ix_(others, others)]) @ covariance[others, i]
        assert_allclose(found.coefficients[i, others], solved, atol=1e-12)
        left = covariance[i, i] - covariance[i, others] @ solved
        assert found.residual[i] == pytest.approx(left)
    same = gaussian.masked_regression(covariance)
    assert_allclose(same.coefficients, found.coefficients, atol=1e-12)
    assert_allclose(same.residual, found.residual, atol=1e-12)


@pytest.mark.parametrize("keep", [0.15, 0.5, 0.85, 1.0])
def test_masked_regression_minimises_the_error_over_all_masks(keep):
    covariance = linalg.inv(unequal(1))
    found = gaussian.masked_regression(covariance, keep)
    for i in range(SIZE):
        others = np.delete(np.arange(SIZE), i)
        left, right = np.zeros((SIZE - 1, SIZE - 1)), np.zeros(SIZE - 1)
        for mask in itertools.product((0.0, 1.0), repeat=SIZE - 1):
            seen = np.array(mask)
            weight = keep ** seen.sum() * (1 - keep) ** (SIZE - 1 - seen.sum())
            left += weight * np.outer(seen, seen) * covariance[np.ix_(others, others)]
            right += weight * seen * covariance[others, i]
        best = linalg.solve(left, right)
        assert_allclose(found.coefficients[i, others], best, atol=1e-12)
        assert found.residual[i] == pytest.approx(covariance[i, i] - best @ right)


def test_masked_regression_of_samples_is_least_squares_on_simulated_masks():
    drawn = gaussian.sample(unequal(2), 300, np.random.default_rng(0))
    found = gaussian.masked_regression(gaussian.second_moments(drawn), 0.7)
    rng = np.random.default_rng(1)
    many = np.repeat(drawn, 1500, axis=0)
    seen = many[:, 1:] * (rng.random((len(many), SIZE - 1)) < 0.7)
    solved = np.linalg.lstsq(seen, many[:, 0], rcond=None)[0]
    assert_allclose(solved, found.coefficients[0, 1:], atol=0.01)
    exact = gaussian.masked_regression(gaussian.second_moments(drawn), 1.0).coefficients
    assert np.abs(exact[0, 1:] - solved).max() > 0.03  # the masks were not without effect


def test_with_one_mask_other_pairs_have_no_weight_and_with_more_it_leaks():
    edges, precision = gaussian.chain_edges(6), gaussian.precision_on(
        gaussian.chain_edges(6), 6, 0.8, np.random.default_rng(0)
    )  # fmt: skip
    covariance = gaussian.covariance_of(precision)
    exact = gaussian.weight_by_distance(gaussian.masked_regression(covariance).coefficients, edges)
    assert list(exact) == [1, 2, 3, 4, 5]
    assert exact[1] > 0.2
    assert max(exact[d] for d in (2, 3, 4, 5)) < 1e-7  # square roots of rounding errors
    leaking = gaussian.masked_regression(covariance, 0.85).coefficients
    weights = gaussian.weight_by_distance(leaking, edges)
    assert weights[1] > weights[2] > weights[3] > 1e-4


def test_distances_leave_out_pairs_without_a_path():
    weights = gaussian.weight_by_distance(np.ones((4, 4)), np.array([[0, 1], [2, 3]]))
    assert weights == {1: 1.0}


def test_fewer_samples_than_variables_can_be_solved_with_more_masks_only():
    few = gaussian.sample(graph()[1], 4, np.random.default_rng(0))
    moments = gaussian.second_moments(few)
    with pytest.raises(ValueError, match="more samples than variables are needed, or keep < 1"):
        gaussian.masked_regression(moments)
    assert np.isfinite(gaussian.masked_regression(moments, 0.8).coefficients).all()


@pytest.mark.parametrize("keep", [0.6, 1.0])
def test_gradient_descent_finds_the_closed_form(keep):
    drawn = gaussian.sample(unequal(), 2000, np.random.default_rng(0))
    closed = gaussian.masked_regression(gaussian.second_moments(drawn), keep).coefficients
    learned = [
        gaussian.learned_regression(
            drawn, keep, torch.Generator().manual_seed(0), steps=400, learning_rate=0.05
        )
        for _ in range(2)
    ]
    assert (learned[0] == learned[1]).all()
    assert np.linalg.norm(learned[0] - closed) < 0.1 * np.linalg.norm(closed)
    other = gaussian.masked_regression(
        gaussian.second_moments(drawn), 1.6 - keep
    ).coefficients  # the other masking
    assert np.linalg.norm(learned[0] - other) > 2 * np.linalg.norm(learned[0] - closed)


def test_scores_of_one_mask_are_partial_correlations():
    precision = unequal()
    scores = gaussian.edge_scores(gaussian.one_mask_regression(precision).coefficients)
    root = np.sqrt(np.diag(precision))
    partial = np.abs(precision / np.outer(root, root)) - np.eye(SIZE)
    assert_allclose(scores, partial, atol=1e-12)


def test_recovery_of_a_hand_made_ranking():
    scores = np.zeros((4, 4))
    for value, (i, j) in zip((5, 4, 3), ((0, 1), (0, 2), (1, 2)), strict=True):
        scores[i, j] = scores[j, i] = value
    found = gaussian.recovery(scores, np.array([[0, 1], [1, 2]]))
    assert found.average_precision == pytest.approx((1 + 2 / 3) / 2)
    assert found.f1 == 0.5
    assert found.roc_auc == pytest.approx(7 / 8)
    perfect = gaussian.recovery(scores, np.array([[0, 1], [0, 2], [1, 2]]))
    assert (perfect.average_precision, perfect.f1, perfect.roc_auc) == (1.0, 1.0, 1.0)
    # the second and third edge have score 0: one pair is proposed, and it is right
    sparse = gaussian.recovery(np.where(scores == 5, 5, 0), np.array([[0, 1], [0, 3], [2, 3]]))
    assert sparse.f1 == pytest.approx(2 * 1 / (1 + 3))


def test_the_graph_is_found_by_partial_and_not_by_marginal_correlation():
    edges, precision = graph(1, size=12, count=14, strength=0.98)
    drawn = gaussian.sample(precision, 20_000, np.random.default_rng(0))
    moments = gaussian.second_moments(drawn)
    masked = gaussian.edge_scores(gaussian.masked_regression(moments).coefficients)
    lasso, penalty = gaussian.graphical_lasso_scores(drawn)
    assert gaussian.recovery(masked, edges).average_precision == pytest.approx(1.0)
    assert gaussian.recovery(lasso, edges).average_precision == pytest.approx(1.0)
    marginal = gaussian.recovery(gaussian.correlation_scores(drawn), edges)
    assert marginal.average_precision < 0.95
    assert penalty > 0
    truth = gaussian.edge_scores(gaussian.one_mask_regression(precision).coefficients)
    assert np.abs(lasso - truth).max() < 0.05


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "precision is not symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "precision is not positive definite"),
        (np.array([[1.0]]), "two variables or more"),
        (np.ones((2, 3)), "must be square"),
        (np.full((2, 2), np.nan), "not symmetric"),
    ],
)
def test_matrices_that_are_no_precision_are_refused(matrix, message):
    for use in (
        gaussian.covariance_of,
        gaussian.one_mask_regression,
        lambda m: gaussian.sample(m, 3, np.random.default_rng(0)),
    ):
        with pytest.raises(ValueError, match=message):
            use(matrix)


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.01, float("nan")])
def test_a_share_of_visible_variables_outside_its_range_is_refused(keep):
    with pytest.raises(ValueError, match=r"keep.*must lie in \(0, 1\]"):
        gaussian.masked_regression(np.eye(3), keep)


def test_other_bad_input_is_refused():
    with pytest.raises(ValueError, match="covariance must be square with two variables"):
        gaussian.masked_regression(np.eye(1), 0.5)
    with pytest.raises(ValueError, match="strength must lie in"):
        gaussian.precision_on(gaussian.chain_edges(3), 3, 1.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="have 1 to 3 edges, not 4"):
        gaussian.random_edges(3, 4, np.random.default_rng(0))
    with pytest.raises(ValueError, match="nothing to rank"):
        gaussian.recovery(np.ones((3, 3)), gaussian.random_edges(3, 3, np.random.default_rng(0)))
