"""Two alphabets: what the dial sets, what spelling leaves alone, and refusals."""

import numpy as np
import pytest
from scipy.stats import binom

from unmasked.alphabets import A, B, TwoAlphabets
from unmasked.languages import RandomWalk

TAIL = 1e-6
SYNSETS = 20


def language(keep=0.5):
    return TwoAlphabets(RandomWalk(SYNSETS, 100), RandomWalk(SYNSETS, 100, seed=331), keep)


def seeded(seed=0):
    return np.random.default_rng(seed)


def assert_binomial(successes, trials, probability):
    low, high = binom.ppf([TAIL / 2, 1 - TAIL / 2], trials, probability)
    assert low <= successes <= high, f"{successes} of {trials} at p = {probability}"


def in_b(tokens):
    """Where a token is spelt in B, from its id alone."""
    return tokens >= SYNSETS


@pytest.mark.parametrize("keep", [0.5, 0.7, 0.95])
@pytest.mark.parametrize("domain", [0, 1])
def test_the_share_of_the_home_alphabet_is_keep(keep, domain):
    tokens = language(keep).sample(domain, 2000, 30, seeded(domain))
    assert tokens.shape == (2000, 30)
    assert tokens.dtype == np.int64
    at_home = in_b(tokens) == (domain == B)
    assert_binomial(int(at_home.sum()), at_home.size, keep)
    # for each synset and each position alone too
    for synset in range(SYNSETS):
        here = at_home[tokens % SYNSETS == synset]
        assert_binomial(int(here.sum()), here.size, keep)
    for place in range(30):
        assert_binomial(int(at_home[:, place].sum()), 2000, keep)


def test_spellings_are_independent_of_one_another():
    at_home = ~in_b(language(0.7).sample(A, 2000, 30, seeded()))
    apart = at_home[:, 0:-1:2] & at_home[:, 1::2]  # disjoint pairs of neighbours
    assert_binomial(int(apart.sum()), apart.size, 0.49)
    ends = at_home[:, 0] & at_home[:, -1]
    assert_binomial(int(ends.sum()), ends.size, 0.49)


@pytest.mark.parametrize("domain", [0, 1])
def test_every_token_is_at_home_when_keep_is_one(domain):
    tokens = language(1.0).sample(domain, 500, 30, seeded())
    assert (in_b(tokens) == (domain == B)).all()
    assert set(tokens.ravel()) == set(range(SYNSETS * domain, SYNSETS * (domain + 1)))


@pytest.mark.parametrize("domain", [0, 1])
def test_synsets_are_those_of_the_domains_walk(domain):
    source = language(0.6)
    walk = (source.first, source.second)[domain]
    expected = walk.sample(50, 12, seeded(3))
    tokens = source.sample(domain, 50, 12, seeded(3))
    np.testing.assert_array_equal(source.meaning(tokens), expected)
    other = (source.second, source.first)[domain].sample(50, 12, seeded(3))
    assert (source.meaning(tokens) != other).any()
    assert source.walk(domain) is walk


def test_the_generator_fixes_the_sample():
    source, generator = language(), seeded(1)
    first = source.sample(0, 20, 30, generator)
    np.testing.assert_array_equal(first, source.sample(0, 20, 30, seeded(1)))
    assert (first != source.sample(0, 20, 30, generator)).any()


def test_spelling_keeps_the_meaning():
    source = language()
    synsets = seeded().integers(SYNSETS, size=(40, 9))
    mixed = seeded(1).integers(2, size=synsets.shape)
    for alphabet in (A, B, mixed):
        np.testing.assert_array_equal(source.meaning(source.spelt(synsets, alphabet)), synsets)
    np.testing.assert_array_equal(source.spelt(synsets, A), synsets)
    np.testing.assert_array_equal(source.spelt(synsets, B), synsets + SYNSETS)
    np.testing.assert_array_equal(in_b(source.spelt(synsets, mixed)), mixed == B)


def test_every_id_but_the_mask_is_a_spelling():
    source = language()
    both = [source.spelt(np.arange(SYNSETS), alphabet) for alphabet in (A, B)]
    np.testing.assert_array_equal(np.concatenate(both), np.arange(2 * SYNSETS))
    assert source.synsets == SYNSETS
    assert source.mask_id == 2 * SYNSETS


def test_defaults_are_the_published_constants():
    source = TwoAlphabets()
    for walk, seed in [(source.first, 330), (source.second, 331)]:
        constants = (walk.vocabulary_size, walk.nodes, walk.degree, walk.continue_probability)
        assert constants == (1000, 5000, 2, 0.9)
        assert walk.seed == seed
    assert source.keep == 0.5
    assert (source.synsets, source.mask_id) == (1000, 2000)


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0.49, 1.01, -0.5, float("nan")])
def test_a_dial_out_of_range_is_refused(keep):
    with pytest.raises(ValueError, match=r"keep must lie in \[0\.5, 1\], got"):
        language(keep)


def test_walks_that_make_no_two_domains_are_refused():
    with pytest.raises(ValueError, match="both walks have seed 331: one domain"):
        TwoAlphabets(RandomWalk(seed=331))
    with pytest.raises(ValueError, match=r"same vocabulary_size, got \(20, 1000\)"):
        TwoAlphabets(RandomWalk(20, 100))


@pytest.mark.parametrize("domain", [2, -1])
def test_a_third_domain_is_refused(domain):
    source = language()
    with pytest.raises(ValueError, match=f"0 .D1. or 1 .D2., got {domain}"):
        source.walk(domain)
    with pytest.raises(ValueError, match="domain must be"):
        source.sample(domain, 2, 3, seeded())
