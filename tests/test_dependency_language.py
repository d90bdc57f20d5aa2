"""The dependency language against enumeration of every sentence of a tiny instance."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from unmasked.dependency_language import DependencyLanguage, mean_arc_length, random_trees

TINY = DependencyLanguage(
    vocabulary_size=6, classes=2, length=4, types=2, choices=2, strength=0.7, distance=1.5, seed=3
)
SENTENCES = np.array(list(itertools.product(range(6), repeat=4)))


def joint(language):
    """p(sentence) of each of SENTENCES, (6, 6, 6, 6), straight from the definition."""
    total = np.zeros(len(SENTENCES))
    classes, numbers = np.divmod(SENTENCES, language.numbers)
    for kind in language._types:
        p = (classes == kind.classes).all(1) / language.types
        for place, head in enumerate(kind.heads):
            if head < 0:
                p = p / language.numbers
            else:
                p = p * language.choice[kind.classes[place], numbers[:, head], numbers[:, place]]
        total += p
    return total.reshape(6, 6, 6, 6)


def possible(count, seed=0):
    return TINY.sample(count, np.random.default_rng(seed))[0]


def test_the_joint_distribution_of_the_definition_sums_to_one():
    assert joint(TINY).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("places", [(0,), (2,), (0, 1), (1, 3), (0, 2, 3), (0, 1, 2, 3)])
def test_conditionals_are_those_of_enumeration(places):
    p = joint(TINY)
    tokens = possible(12)
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[:, places] = True
    expected = []
    for row in tokens:
        seen = tuple(slice(None) if h in places else row[h] for h in range(4))
        table = p[seen] / p[seen].sum()
        for axis in range(len(places)):
            expected.append(table.sum(tuple(a for a in range(len(places)) if a != axis)))
    got = TINY.conditional(np.where(hidden, -1, tokens), hidden)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    true = tokens[hidden]
    np.testing.assert_allclose(
        TINY.floor(tokens, hidden), -np.log(np.array(expected)[np.arange(len(true)), true])
    )


@pytest.mark.parametrize(("i", "j"), list(itertools.permutations(range(4), 2)))
def test_conditional_information_is_that_of_enumeration(i, j):
    p = joint(TINY)
    tokens = possible(8)
    for row, got in zip(tokens, TINY.conditional_information(tokens, i, j), strict=True):
        seen = tuple(slice(None) if h in (i, j) else row[h] for h in range(4))
        pair = p[seen] / p[seen].sum()
        apart = pair.sum(1, keepdims=True) * pair.sum(0, keepdims=True)
        inside = pair > 0
        expected = (pair[inside] * np.log(pair[inside] / apart[inside])).sum()
        assert got == pytest.approx(expected, abs=1e-12)


def test_samples_follow_the_joint_distribution():
    tokens = possible(60_000)
    counts = np.zeros((6, 6, 6, 6))
    np.add.at(counts, tuple(tokens.T), 1)
    expected = joint(TINY) * len(tokens)
    assert (counts[expected == 0] == 0).all()
    cells = expected > 5
    chi2 = ((counts - expected)[cells] ** 2 / expected[cells]).sum()
    assert abs(chi2 - cells.sum()) < 5 * np.sqrt(2 * cells.sum())


@pytest.mark.parametrize("strength", [0.4, 0.8])
def test_information_is_positive_on_the_tree_and_zero_off_it(strength):
    language = DependencyLanguage(strength=strength)
    tokens, heads = language.sample(6, np.random.default_rng(0))
    linked = np.zeros((6, 8, 8), dtype=bool)
    for row, place in zip(*np.nonzero(heads >= 0), strict=True):
        linked[row, place, heads[row, place]] = linked[row, heads[row, place], place] = True
    table = language.information(tokens)
    assert table[linked].min() > 1e-6
    assert table[~linked].max() < 1e-12


def test_without_strength_there_are_the_same_trees_and_word_frequencies_and_no_information():
    on, off = DependencyLanguage(strength=0.9), DependencyLanguage(strength=0.0)
    (words, trees), (control, same) = (
        language.sample(20_000, np.random.default_rng(1)) for language in (on, off)
    )
    np.testing.assert_array_equal(trees, same)
    np.testing.assert_array_equal(words // on.numbers, control // off.numbers)
    for tokens in (words, control):
        share = np.bincount(tokens.ravel(), minlength=32).reshape(4, 8)
        np.testing.assert_allclose(share / share.sum(1, keepdims=True), 1 / 8, rtol=0.06)
    assert off.information(control[:20]).max() < 1e-12


def test_choices_are_doubly_stochastic_and_mixed_with_the_uniform():
    table = DependencyLanguage(strength=0.6, choices=3).choice
    np.testing.assert_allclose(table.sum(1), 1.0)
    np.testing.assert_allclose(table.sum(2), 1.0)
    assert np.unique(table.round(12)).tolist() == pytest.approx([0.05, 0.25])


@pytest.mark.parametrize("order", ["head_initial", "mixed", "crossing"])
def test_random_trees_are_trees_of_the_order(order):
    heads, orders = random_trees(7, 2_000, order, np.random.default_rng(0))
    assert len(heads) > 50
    crosses = False
    for row, places in zip(heads, orders, strict=True):
        arcs = [(int(h), d) for d, h in enumerate(row) if h >= 0]
        graph = nx.Graph(arcs)
        assert nx.is_tree(graph)
        assert len(graph) == 7
        assert max(dict(graph.degree).values()) <= 3
        rank = np.argsort(places)
        assert all(rank[h] < rank[d] for h, d in arcs)
        assert order != "head_initial" or all(h < d for h, d in arcs)
        below = nx.DiGraph(arcs)
        projective = all(
            word in nx.descendants(below, h)
            for h, d in arcs
            for word in range(min(h, d) + 1, max(h, d))
        )
        crosses |= not projective
    assert crosses == (order == "crossing")


@pytest.mark.parametrize("distance", [1.75, 2.5, 3.25])
def test_distance_is_the_mean_arc_length(distance):
    _, heads = DependencyLanguage(distance=distance).sample(64, np.random.default_rng(0))
    assert np.abs(mean_arc_length(heads) - distance).max() <= 0.25


def test_mean_arc_length_by_hand():
    assert mean_arc_length(np.array([[-1, 0, 0, 2], [2, 0, -1, 0]])).tolist() == [4 / 3, 2.0]


def test_farther_arcs_are_less_often_between_neighbours():
    share = []
    for distance in (1.75, 3.25):
        _, heads = DependencyLanguage(distance=distance, types=6).sample(
            200, np.random.default_rng(0)
        )
        share.append((np.abs(heads - np.arange(8)) == 1)[heads >= 0].mean())
    assert share[0] > share[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"strength": 1.1}, "strength must lie"),
        ({"strength": -0.1}, "strength must lie"),
        ({"vocabulary_size": 10}, "multiple of the 4 classes"),
        ({"vocabulary_size": 8}, "3 choices each"),
        ({"vocabulary_size": 4, "choices": 1}, "two words"),
        ({"choices": 0}, "choices must be at least 1"),
        ({"length": 2}, "length must be at least 3"),
        ({"order": "mixd"}, "did you mean 'mixed'"),
        ({"distance": 7.0}, "distance 7.0 is out of reach"),
        ({"classes": 1}, "cannot be told apart"),
    ],
)
def test_impossible_languages_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        replace(DependencyLanguage(), **change)


def test_wrong_sentences_are_refused():
    tokens = possible(3)
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[:, 0] = True
    with pytest.raises(ValueError, match=r"shape \(batch, 4\)"):
        TINY.conditional(tokens[:, :3], hidden[:, :3])
    with pytest.raises(ValueError, match="allowed are 0 to 5"):
        TINY.conditional(np.full_like(tokens, 6), hidden)
    ends = [tuple(kind.classes[2:]) for kind in TINY._types]
    other = next(end for end in itertools.product(range(2), repeat=2) if end not in ends)
    strange = np.array([[0, 0, *other]]) * TINY.numbers
    with pytest.raises(ValueError, match="sentence 0 fits no sentence type"):
        TINY.conditional(strange, hidden[:1])
    with pytest.raises(ValueError, match="fits no sentence type"):
        TINY.conditional_information(strange, 0, 1)
    with pytest.raises(ValueError, match="must be two of"):
        TINY.conditional_information(tokens, 2, 2)
