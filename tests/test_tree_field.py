import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import mutual_info_score

from unmasked.tree_field import TreeField, marginal_information

FIELDS = [TreeField(n, v, 1.2, seed) for n, v, seed in ((2, 3, 0), (4, 3, 1), (5, 2, 2), (5, 3, 3))]
each_field = pytest.mark.parametrize("field", FIELDS, ids=lambda f: f"n{f.positions}v{f.values}")


def table(field):
    """All sequences and their probabilities from the potentials alone, by enumeration."""
    rows = np.array(list(itertools.product(range(field.values), repeat=field.positions)))
    weight = np.ones(len(rows))
    for (i, j), potential in zip(field.edges, field.log_potentials, strict=True):
        weight *= np.exp(potential[rows[:, i], rows[:, j]])
    return rows, weight / weight.sum()


@each_field
def test_log_probability_is_the_normalised_product_of_the_potentials(field):
    rows, probability = table(field)
    assert_allclose(field.log_probability(rows), np.log(probability), atol=1e-10)


@each_field
def test_conditionals_equal_enumeration_for_any_hidden_positions(field):
    rows, probability = table(field)
    rng = np.random.default_rng(0)
    tokens = rows[rng.integers(len(rows), size=12)]
    hidden = rng.random(tokens.shape) < np.linspace(0, 1, 12)[:, None]
    found = field.conditional(np.where(hidden, -1, tokens), hidden)
    for row, away, answer in zip(tokens, hidden, found, strict=True):
        for t in range(field.positions):
            known = np.flatnonzero(~away & (np.arange(field.positions) != t))
            match = (rows[:, known] == row[known]).all(1)
            expected = np.bincount(rows[match, t], probability[match], field.values)
            assert_allclose(answer[t], expected / expected.sum(), atol=1e-10)


@each_field
def test_conditional_information_equals_enumeration_and_is_zero_off_the_tree(field):
    rows, _ = table(field)
    tokens = rows[:: max(1, len(rows) // 7)]
    found = field.conditional_information(tokens)
    edges = {tuple(edge) for edge in field.edges.tolist()}
    values = range(field.values)
    for (i, j), (row, nats) in itertools.product(
        itertools.combinations(range(field.positions), 2), zip(tokens, found, strict=True)
    ):
        pair = np.zeros((field.values, field.values))
        for a, b in itertools.product(values, values):
            changed = row.copy()
            changed[[i, j]] = a, b
            pair[a, b] = np.exp(field.log_probability(changed[None])[0])
        pair /= pair.sum()
        expected = (pair * np.log(pair / np.outer(pair.sum(1), pair.sum(0)))).sum()
        assert nats[i, j] == pytest.approx(expected, abs=1e-12)
        assert nats[j, i] == nats[i, j]
        assert (nats[i, j] > 1e-6) == ((i, j) in edges)
        assert (abs(nats[i, j]) < 1e-12) == ((i, j) not in edges)


def test_an_edge_whose_potential_is_a_product_carries_no_information():
    field = TreeField(3, 3, 0.0, tree=((0, 1), (1, 2)))
    assert np.abs(field.conditional_information(np.zeros((1, 3), dtype=int))).max() < 1e-12
    assert field.log_probability(np.array([[0, 1, 2]]))[0] == pytest.approx(-3 * np.log(3))


@each_field
def test_samples_have_the_probabilities_of_the_table(field):
    rows, probability = table(field)
    count = 50_000
    drawn = field.sample(count, np.random.default_rng(0))
    index = np.ravel_multi_index(drawn.T, (field.values,) * field.positions)
    share = np.bincount(index, minlength=len(rows)) / count
    deviation = np.sqrt(probability * (1 - probability) / count)
    assert np.abs((share - probability) / deviation).max() < 5
    assert (drawn == field.sample(count, np.random.default_rng(0))).all()


def test_random_trees_are_trees_and_the_seed_decides():
    trees = [TreeField(9, 2, 1.0, seed).edges for seed in range(30)]
    for edges in trees:
        reached = {0}
        for _ in range(9):
            reached |= {int(x) for edge in edges if reached & set(edge.tolist()) for x in edge}
        assert reached == set(range(9))
        assert edges.shape == (8, 2)
        assert (edges[:, 0] < edges[:, 1]).all()
    assert len({edges.tobytes() for edges in trees}) > 25
    assert (TreeField(9, 2, 1.0, 4).edges == trees[4]).all()


def test_given_edges_are_kept_whatever_their_order():
    field = TreeField(4, 2, 1.0, tree=((3, 1), (1, 0), (2, 3)))
    assert field.edges.tolist() == [[0, 1], [1, 3], [2, 3]]


def test_marginal_information_is_that_of_scikit_learn():
    drawn = TreeField(5, 4, 1.0, 1).sample(300, np.random.default_rng(0))
    drawn[:, 4] = 2  # a constant says nothing
    found = marginal_information(drawn, 4)
    for i, j in itertools.combinations(range(5), 2):
        expected = mutual_info_score(drawn[:, i], drawn[:, j])
        assert found[i, j] == pytest.approx(expected, abs=1e-12)
        assert found[j, i] == pytest.approx(found[i, j], abs=1e-12)
    assert (np.diag(found) == 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positions": 1, "values": 3}, "must be at least 2, got 1 and 3"),
        ({"positions": 3, "values": 1}, "must be at least 2, got 3 and 1"),
        ({"positions": 3, "values": 2, "strength": -1.0}, "strength must not be negative"),
        ({"positions": 3, "values": 2, "tree": ((0, 1),)}, "no tree over the positions 0..2"),
        ({"positions": 3, "values": 2, "tree": ((0, 1), (1, 0))}, "no tree"),
        ({"positions": 3, "values": 2, "tree": ((0, 1), (1, 3))}, "no tree"),
    ],
)
def test_fields_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TreeField(**arguments)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([[0, 1]], r"shape \(batch, 3\), got \(1, 2\)"),
        ([[0, 1, 2]], "allowed are 0 to 1"),
        ([[0.0, 1.0, 1.0]], "must be integers"),
    ],
)
def test_tokens_that_do_not_fit_are_refused(tokens, message):
    field = TreeField(3, 2)
    for use in (field.log_probability, field.conditional_information):
        with pytest.raises(ValueError, match=message):
            use(np.array(tokens))
    with pytest.raises(ValueError, match="hidden must be bool of shape"):
        field.conditional(np.zeros((1, 3), dtype=int), np.zeros((1, 2), dtype=bool))
    with pytest.raises(ValueError, match="at least one row"):
        marginal_information(np.zeros((0, 3), dtype=int), 2)
