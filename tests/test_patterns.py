"""Ordered patterns against regular expressions, their published balance, and refusals."""

import re

import numpy as np
import pytest

from unmasked.languages import RandomWalk
from unmasked.patterns import OrderedPatterns

FIRST_CHARACTER = 0x4E00  # one letter a token, none of them special in a regular expression


def spelt(tokens):
    return "".join(chr(FIRST_CHARACTER + token) for token in tokens)


def matches_by_expression(patterns, tokens):
    """(patterns, B) bool: whether each string matches each pattern's regular expression."""
    strings = [spelt(row) for row in tokens]
    return np.array([
        [re.search(".*".join(f"[{spelt(tokens)}]" for tokens in sets), s) is not None
         for s in strings]
        for sets in patterns.sets
    ])  # fmt: skip


def random_strings(patterns, length, count=10_000, seed=0):
    return np.random.default_rng(seed).integers(patterns.vocabulary_size, size=(count, length))


@pytest.mark.parametrize(
    ("constants", "length"),
    [
        ((20, 1, 1, 1), 10),  # 1 bit
        ((20, 2, 4, 3), 10),  # 8 bits
        ((20, 3, 3, 2), 8),  # 9 bits
        ((1000, 5, 3, 12), 100),  # the published constants, 15 bits
        ((30, 4, 4, 3), 14),  # 16 bits
        ((30, 6, 3, 2), 12),  # 18 bits
        ((16, 8, 4, 1), 9),  # 32 bits
        ((30, 11, 3, 2), 9),  # 33 bits
        ((12, 16, 4, 1), 8),  # 64 bits
        ((40, 5, 1, 2), 3),  # any token of a set
        ((12, 2, 4, 3), 4),  # a pattern that takes the whole vocabulary and string
    ],
)
def test_labels_equal_those_of_a_regular_expression(constants, length):
    patterns = OrderedPatterns(*constants, seed=sum(constants))
    tokens = random_strings(patterns, length)
    matches = matches_by_expression(patterns, tokens)
    # each pattern decides the label of some string alone, so an error in any of them shows
    alone = matches.sum(0) == 1
    assert (matches & alone).any(1).all()
    assert 0.005 < matches.any(0).mean() < 0.995
    labels = patterns.labels(tokens)
    np.testing.assert_array_equal(labels, matches.any(0))
    assert labels.dtype == np.int64


def test_order_counts_and_gaps_do_not():
    patterns = OrderedPatterns(9, 1, 3, 1)
    (a, b, c) = patterns.sets[0, :, 0]
    x, y = np.setdiff1d(np.arange(9), [a, b, c])[:2]
    rows = np.array([
        [a, b, c, x, x], [a, x, b, y, c], [x, y, a, b, c], [c, b, a, b, c], [a, a, b, b, c],
        [c, b, a, x, y], [b, a, c, x, y], [a, c, b, x, y], [b, c, a, b, x], [x, y, x, y, x],
    ])  # fmt: skip
    assert patterns.labels(rows).tolist() == [1] * 5 + [0] * 5


def test_sets_of_different_patterns_do_not_complete_each_other():
    patterns = OrderedPatterns(1000, 2, 3, 2)
    first, second = patterns.sets
    assert not set(first.ravel()) & set(second.ravel())  # of this seed
    mixed = [[*first[:2, 0], second[2, 0]], [*second[:2, 0], first[2, 0]],
             [first[0, 0], *second[1:, 0]], [*first[1:, 0], *second[:1, 0]]]  # fmt: skip
    assert patterns.labels(np.array(mixed)).tolist() == [0, 0, 0, 0]
    assert patterns.labels(np.array([first[:, 1], second[:, 1]])).tolist() == [1, 1]


@pytest.mark.parametrize("seed", [330, 331])
def test_both_labels_are_common_in_the_published_domains(seed):
    tokens = RandomWalk(seed=seed).sample(20_000, 100, np.random.default_rng(0))
    assert 0.40 < OrderedPatterns().labels(tokens).mean() < 0.60


def test_sets_have_their_shape_and_are_disjoint_within_a_pattern():
    sets = OrderedPatterns().sets
    assert sets.shape == (5, 3, 12)
    assert sets.min() >= 0
    assert sets.max() < 1000
    assert all(len(np.unique(pattern)) == 36 for pattern in sets)
    assert len(np.unique(sets.reshape(5, 36), axis=0)) == 5
    np.testing.assert_array_equal(
        np.sort(OrderedPatterns(12, 3, 4, 3).sets.reshape(3, 12)), [range(12)] * 3
    )


def test_the_seed_fixes_the_sets():
    patterns = OrderedPatterns()
    np.testing.assert_array_equal(patterns.sets, OrderedPatterns(seed=333).sets)
    assert (patterns.sets != OrderedPatterns(seed=334).sets).any()


def test_no_rows_have_no_labels():
    assert OrderedPatterns().labels(np.empty((0, 5), dtype=np.int64)).shape == (0,)


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"set_size": 334}, "3 x 334 distinct tokens, the vocabulary has 1000"),
        ({"vocabulary_size": 35}, "3 x 12 distinct tokens, the vocabulary has 35"),
        ({"patterns": 0}, "patterns must be at least 1, got 0"),
        ({"stages": 0}, "stages must be at least 1, got 0"),
        ({"set_size": -1}, "set_size must be at least 1, got -1"),
        ({"patterns": 13, "stages": 5}, "at most 64, got 13 x 5"),
        ({"patterns": 22}, "at most 64, got 22 x 3"),
    ],
)
def test_impossible_patterns_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        OrderedPatterns(**changes)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.zeros((2, 3)), "integers of shape .*, got float64"),
        (np.zeros((2, 3), dtype=bool), "integers of shape .*, got bool"),
        (np.zeros(3, dtype=int), "got int64 of shape"),
        (np.zeros((1, 2, 3), dtype=int), "got int64 of shape"),
        (np.array([[0, 1, 40]]), "run from 0 to 40, allowed are 0 to 39"),
        (np.array([[0, -1, 39]]), "run from -1 to 39"),
        (np.array([[0, 1]]), "2 tokens are shorter than a pattern of 3 sets"),
    ],
)
def test_wrong_tokens_are_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        OrderedPatterns(40, 2, 3, 2).labels(tokens)
