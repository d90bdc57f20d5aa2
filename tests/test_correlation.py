"""Divergences against scipy, clustered correlations against their definition, and power."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import rel_entr

from unmasked.correlation import (
    clustered_correlation,
    detectable_correlation,
    jensen_shannon,
    kullback_leibler,
    total_variation,
)


@pytest.fixture
def distributions():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(5), 20), rng.dirichlet(np.ones(5), 20)


def test_divergences_are_those_of_their_names(distributions):
    p, q = distributions
    middle = (p + q) / 2
    half = (rel_entr(p, middle).sum(1) + rel_entr(q, middle).sum(1)) / 2
    np.testing.assert_allclose(jensen_shannon(p, q), half, atol=1e-12)
    np.testing.assert_allclose(kullback_leibler(p, q), (p * np.log(p / q)).sum(1))
    largest = [max(p[i][list(s)].sum() - q[i][list(s)].sum() for s in SUBSETS) for i in range(20)]
    np.testing.assert_allclose(total_variation(p, q), largest)


SUBSETS = [[i for i in range(5) if mask >> i & 1] for mask in range(32)]


def test_divergences_at_their_ends():
    one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert total_variation(one, other) == 1
    assert jensen_shannon(one, other) == pytest.approx(np.log(2))
    assert np.isinf(kullback_leibler(one, other))
    for divergence in (total_variation, jensen_shannon, kullback_leibler):
        assert divergence(one, one) == 0


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([[0.5, 0.6]], "sum to 1"),
        ([[1.5, -0.5]], "not negative"),
        ([[np.nan, 1.0]], "finite"),
        ([0.5, 0.5], r"\(N, C\)"),
        ([[1.0]], r"\(N, C\)"),
    ],
    ids=["sum", "negative", "nan", "one axis", "other shape"],
)
def test_what_is_no_distribution_is_refused(p, message):
    with pytest.raises(ValueError, match=message):
        total_variation(p, [[0.5, 0.5]])


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_coefficients_equal_scipys(method):
    rng = np.random.default_rng(1)
    x = rng.exponential(size=60)
    y = x**2 + rng.standard_normal(60)
    found = clustered_correlation(x, y, np.arange(60) // 3, rng, method)
    expected = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[method](x, y)
    assert found.value == pytest.approx(expected.statistic)
    assert (found.pairs, found.clusters) == (60, 20)
    assert found.low < found.value < found.high


def test_the_interval_resamples_sentences_not_pairs():
    """Copies of a sentence's pair add nothing: the interval is that of single pairs."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal(40)
    y = 0.5 * x + rng.standard_normal(40)
    single = clustered_correlation(x, y, np.arange(40), np.random.default_rng(3))
    copies = [np.repeat(values, 5) for values in (x, y, np.arange(40))]
    clustered = clustered_correlation(*copies, np.random.default_rng(3))
    naive = clustered_correlation(*copies[:2], np.arange(200), np.random.default_rng(3))
    assert clustered.low == pytest.approx(single.low)
    assert clustered.high == pytest.approx(single.high)
    assert naive.high - naive.low < 0.6 * (clustered.high - clustered.low)


def test_the_interval_covers_the_true_coefficient():
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        common = rng.standard_normal((50, 1))
        x = common + rng.standard_normal((50, 3))
        y = 0.5 * x + np.sqrt(0.75) * (rng.standard_normal((50, 1)) + rng.standard_normal((50, 3)))
        names = np.repeat(np.arange(50), 3)
        found = clustered_correlation(x.ravel(), y.ravel(), names, rng)
        hits += found.low <= 0.5 <= found.high
    assert 0.88 <= hits / 200 <= 0.99


@pytest.mark.parametrize(
    ("x", "clusters", "method", "message"),
    [
        ([1.0, 2.0, 3.0], [0, 0, 0], "pearson", "1 cluster"),
        ([1.0, 1.0, 1.0], [0, 1, 2], "pearson", "constant"),
        ([1.0, np.nan, 2.0], [0, 1, 2], "pearson", "finite"),
        ([1.0, 2.0], [0, 1, 2], "pearson", r"\(N,\)"),
        ([1.0, 2.0, 3.0], [0, 1, 2], "kendall", "known are pearson, spearman"),
    ],
    ids=["one cluster", "constant", "nan", "shape", "method"],
)
def test_bad_input_is_refused(x, clusters, method, message):
    with pytest.raises(ValueError, match=message):
        clustered_correlation(x, [1.0, 3.0, 2.0], clusters, np.random.default_rng(0), method)


def test_the_detectable_correlation_is_that_of_the_textbook_for_independent_pairs():
    """Power 0.8 at level 0.05 two-sided: Fisher's z of 2.80 standard errors."""
    found = detectable_correlation(100, 1, 0.0, np.random.default_rng(0), draws=400)
    assert found == pytest.approx(np.tanh(2.80 / np.sqrt(97)), abs=0.03)


def test_more_pairs_a_sentence_help_less_when_they_share_more():
    rng = np.random.default_rng
    free = detectable_correlation(60, 5, 0.0, rng(0))
    shared = detectable_correlation(60, 5, 0.9, rng(0))
    single = detectable_correlation(60, 1, 0.0, rng(0))
    assert free < shared <= single + 0.02


@pytest.mark.parametrize("bad", [(1, 2, 0.1), (5, 0, 0.1), (5, 2, 1.0)], ids=str)
def test_a_design_that_cannot_be_is_refused(bad):
    with pytest.raises(ValueError, match="two clusters"):
        detectable_correlation(*bad, np.random.default_rng(0))


def test_a_design_that_detects_nothing_says_one():
    assert detectable_correlation(2, 1, 0.0, np.random.default_rng(0)) == 1
