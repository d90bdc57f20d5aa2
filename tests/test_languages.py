"""The random walk and its exact posterior, against enumeration of every path."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from unmasked import languages
from unmasked.languages import HIDDEN, RandomWalk

TAIL = 1e-6


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def assert_binomial(successes: int, trials: int, probability: float) -> None:
    low, high = binom.ppf([TAIL / 2, 1 - TAIL / 2], trials, probability)
    assert low <= successes <= high, f"{successes} of {trials} at p = {probability}"


def posterior_by_enumeration(walk: RandomWalk, tokens: np.ndarray) -> np.ndarray:
    """(L, V) for one row (L,): the weight of every node path, added up by the token it emits."""
    transition = walk.transition().toarray()
    paths = np.array(list(itertools.product(range(walk.nodes), repeat=len(tokens))))
    weights = transition[paths[:, :-1], paths[:, 1:]].prod(axis=1)
    emitted = walk.emission()[paths]
    agrees = (tokens == HIDDEN) | (emitted == tokens)
    result = np.zeros((len(tokens), walk.vocabulary_size))
    for t in range(len(tokens)):
        others = np.delete(agrees, t, axis=1).all(axis=1)
        np.add.at(result[t], emitted[others, t], weights[others])
    return result / result.sum(1, keepdims=True)


@given(
    shape=st.sampled_from([(2, 4), (3, 6), (4, 4), (2, 6)]),
    degree=st.integers(2, 3),
    continue_probability=st.sampled_from([0.3, 0.9, 1.0]),
    seed=st.integers(0, 10_000),
    hidden_share=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)
@settings(max_examples=15, deadline=None)
def test_posterior_equals_enumeration(shape, degree, continue_probability, seed, hidden_share):
    vocabulary, nodes = shape
    walk = RandomWalk(vocabulary, nodes, degree, continue_probability, seed)
    tokens = walk.sample(3, 4, seeded(seed))
    observed = np.where(seeded(seed + 1).random(tokens.shape) < hidden_share, HIDDEN, tokens)
    posterior = walk.posterior(observed)
    for row, exact in zip(observed, posterior, strict=True):
        np.testing.assert_allclose(exact, posterior_by_enumeration(walk, row), atol=1e-12)


def test_floor_is_the_enumerated_loss_of_the_hidden_tokens():
    walk = RandomWalk(3, 6, continue_probability=0.6, seed=2)
    tokens = walk.sample(8, 5, seeded(3))
    hidden = seeded(4).random(tokens.shape) < 0.5
    expected = [
        -np.log(posterior_by_enumeration(walk, np.where(hide, HIDDEN, row))[t, row[t]])
        for row, hide in zip(tokens, hidden, strict=True)
        for t in np.flatnonzero(hide)
    ]
    np.testing.assert_allclose(walk.floor(tokens, hidden), expected, atol=1e-12)


def test_work_in_chunks_changes_nothing(monkeypatch):
    walk = RandomWalk(8, 40)
    tokens = walk.sample(50, 12, seeded())
    hidden = seeded(1).random(tokens.shape) < 0.3
    whole = walk.floor(tokens, hidden), walk.posterior(tokens)
    monkeypatch.setattr(languages, "_CHUNK_VALUES", 40 * 12 * 7)
    np.testing.assert_allclose(walk.floor(tokens, hidden), whole[0], atol=1e-12)
    np.testing.assert_allclose(walk.posterior(tokens), whole[1], atol=1e-12)


def test_posterior_stays_a_distribution_over_long_rows():
    walk = RandomWalk(16, 80)
    tokens = walk.sample(4, 600, seeded())
    posterior = walk.posterior(np.where(seeded(1).random(tokens.shape) < 0.3, HIDDEN, tokens))
    np.testing.assert_allclose(posterior.sum(-1), 1)


def test_nothing_observed_gives_the_uniform_distribution_at_the_start():
    posterior = RandomWalk(8, 40).posterior(np.full((2, 5), HIDDEN))
    np.testing.assert_allclose(posterior[:, 0], 1 / 8)


def test_a_ring_without_jumps_has_floor_zero():
    walk = RandomWalk(10, 50, continue_probability=1.0)
    tokens = walk.sample(20, 30, seeded())
    hidden = seeded(1).random(tokens.shape) < 0.5
    np.testing.assert_allclose(walk.floor(tokens, hidden), 0, atol=1e-12)


def test_no_other_prediction_beats_the_floor_on_average():
    walk = RandomWalk(8, 40, continue_probability=0.7)
    tokens = walk.sample(400, 20, seeded())
    hidden = seeded(1).random(tokens.shape) < 0.3
    nats = walk.floor(tokens, hidden)
    other_graph = RandomWalk(8, 40, continue_probability=0.5)  # the graph with wrong odds
    assert nats.mean() < other_graph.floor(tokens, hidden).mean()
    assert 0 < nats.mean() < np.log(8)
    # the mean loss is the mean entropy of the posteriors that it is drawn from
    posterior = walk.posterior(np.where(hidden, HIDDEN, tokens))[hidden]
    logs = np.log(posterior, where=posterior > 0, out=np.zeros_like(posterior))
    entropy = -(posterior * logs).sum(-1)
    deviation = np.sqrt((posterior * (logs + entropy[:, None]) ** 2).sum())
    assert abs(nats.sum() - entropy.sum()) < 6 * deviation


# --- the source itself -------------------------------------------------------------------------


def test_next_token_is_the_successor_with_the_continue_probability():
    walk = RandomWalk()  # the published constants
    tokens = walk.sample(2000, 50, seeded())
    emission = walk.emission()
    successor = np.empty(walk.vocabulary_size, dtype=np.int64)
    successor[emission] = np.roll(emission, -1)
    hits = int((successor[tokens[:, :-1]] == tokens[:, 1:]).sum())
    trials = tokens[:, 1:].size
    assert hits >= binom.ppf(TAIL, trials, 0.9)
    assert hits <= binom.ppf(1 - TAIL, trials, 0.9 + 0.1 * 0.005)  # a jump of 1 is one in 999


def test_sample_follows_the_transition_matrix():
    walk = RandomWalk(7, 7, degree=3, continue_probability=0.6)  # each node shows its own token
    tokens = walk.sample(3000, 10, seeded())
    node = np.argsort(walk.emission())[tokens]
    counts = np.zeros((7, 7), dtype=int)
    np.add.at(counts, (node[:, :-1], node[:, 1:]), 1)
    transition = walk.transition().toarray()
    for origin, target in np.ndindex(7, 7):
        p = min(transition[origin, target], 1.0)
        assert_binomial(int(counts[origin, target]), int(counts[origin].sum()), p)
    for start in range(7):
        assert_binomial(int((node[:, 0] == start).sum()), 3000, 1 / 7)


def test_graph_has_the_published_shape():
    walk = RandomWalk()
    transition, emission = walk.transition(), walk.emission()
    assert transition.shape == (5000, 5000)
    np.testing.assert_allclose(transition.sum(1), 1)
    assert transition.max(axis=None) <= 1
    assert (np.bincount(emission) == 5).all()
    assert len(np.bincount(emission)) == 1000
    origin, target = transition.nonzero()
    steps = (target - origin) % 5000
    assert steps.max() <= 998
    ring = transition[[0, 4999], [1, 0]]
    assert (ring >= 0.9).all()


def test_seed_fixes_the_graph_and_the_generator_the_sample():
    walk, again, other = RandomWalk(16, 80), RandomWalk(16, 80), RandomWalk(16, 80, seed=331)
    assert (walk.transition() != again.transition()).nnz == 0
    assert (walk.transition() != other.transition()).nnz > 0
    generator = seeded(1)
    first = walk.sample(20, 30, generator)
    np.testing.assert_array_equal(first, again.sample(20, 30, seeded(1)))
    assert (first != walk.sample(20, 30, generator)).any()
    assert first.dtype == np.int64
    assert first.shape == (20, 30)


def test_blocks_of_rows_are_independent_walks(monkeypatch):
    monkeypatch.setattr(languages, "_SAMPLE_ROWS", 8)
    tokens = RandomWalk(64, 320).sample(20, 30, seeded())
    assert len(np.unique(tokens, axis=0)) == 20


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary_size": 3, "nodes": 10}, "multiple of vocabulary_size 3, got 10"),
        ({"nodes": 0}, "multiple of vocabulary_size"),
        ({"vocabulary_size": 1}, "at least 2"),
        ({"degree": 1}, "at least 2"),
        ({"continue_probability": 1.2}, r"must lie in \[0, 1\], got 1\.2"),
        ({"continue_probability": float("nan")}, r"must lie in \[0, 1\]"),
    ],
)
def test_impossible_walks_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        RandomWalk(**changes)


def test_tokens_that_are_not_from_the_walk_are_refused():
    walk = RandomWalk(10, 50, continue_probability=1.0)
    tokens = walk.sample(3, 6, seeded())
    wrong = tokens.copy()
    wrong[2, 3] = (wrong[2, 3] + 1) % 10
    with pytest.raises(ValueError, match="cannot produce row 2"):
        walk.posterior(wrong)
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[2, 3] = True
    with pytest.raises(ValueError, match="not from this walk"):
        walk.floor(wrong, hidden)


def test_the_refused_row_is_named_across_chunks(monkeypatch):
    monkeypatch.setattr(languages, "_CHUNK_VALUES", 1)
    walk = RandomWalk(10, 50, continue_probability=1.0)
    tokens = walk.sample(3, 6, seeded())
    tokens[2, 3] = (tokens[2, 3] + 1) % 10
    with pytest.raises(ValueError, match="cannot produce row 2"):
        walk.posterior(tokens)


def test_wrong_arguments_are_refused():
    walk = RandomWalk(10, 50)
    tokens = walk.sample(3, 6, seeded())
    with pytest.raises(ValueError, match="allowed are -1"):
        walk.posterior(tokens + 10)
    with pytest.raises(ValueError, match=r"\(batch, length\)"):
        walk.posterior(tokens[0])
    with pytest.raises(ValueError, match="hidden must be bool"):
        walk.floor(tokens, tokens)
    hidden = np.ones(tokens.shape, dtype=bool)
    with pytest.raises(ValueError, match="true token at every hidden"):
        walk.floor(np.where(hidden, HIDDEN, tokens), hidden)
