"""The exact masked prediction against enumeration of every sequence, and its symmetries."""

from itertools import pairwise, product

import numpy as np
import pytest

from unmasked.alphabets import TwoAlphabets
from unmasked.alphabets_posterior import floor, log_evidence, posterior
from unmasked.languages import RandomWalk

SYNSETS, LENGTH = 3, 4


def language(keep):
    walks = [RandomWalk(SYNSETS, 6, continue_probability=0.7, seed=seed) for seed in (330, 331)]
    return TwoAlphabets(*walks, keep)


def walk_probability(walk, synsets):
    """p(synsets) as a sum over all node paths."""
    emission, step = walk.emission(), walk.transition().toarray()
    total = 0.0
    for path in product(range(walk.nodes), repeat=len(synsets)):
        if all(emission[node] == synset for node, synset in zip(path, synsets, strict=True)):
            probability = 1 / walk.nodes
            for here, there in pairwise(path):
                probability *= step[here, there]
            total += probability
    return total


def enumerated(source):
    """ids -> p(ids) of the half and half corpus, from its definition."""
    chances = {}
    for synsets in product(range(SYNSETS), repeat=LENGTH):
        walks = [walk_probability(source.walk(domain), synsets) for domain in (0, 1)]
        for alphabets in product((0, 1), repeat=LENGTH):
            total = 0.0
            for domain in (0, 1):
                spelt = [source.keep if a == domain else 1 - source.keep for a in alphabets]
                total += 0.5 * walks[domain] * np.prod(spelt)
            ids = tuple(s + SYNSETS * a for s, a in zip(synsets, alphabets, strict=True))
            chances[ids] = total
    return chances


@pytest.mark.parametrize("keep", [0.5, 0.7, 1.0])
def test_the_posterior_equals_enumeration(keep):
    source = language(keep)
    chances = enumerated(source)
    assert sum(chances.values()) == pytest.approx(1)
    rng = np.random.default_rng(0)
    for domain in (0, 1):
        for row in source.sample(domain, 4, LENGTH, rng):
            hidden = rng.permutation([True, True, False, False])
            tokens = np.where(hidden, -1, row)
            expected = np.zeros((LENGTH, 2 * SYNSETS))
            for ids, chance in chances.items():
                if all(h or i == t for h, i, t in zip(hidden, ids, row, strict=True)):
                    expected[np.arange(LENGTH), list(ids)] += chance
            expected = expected[hidden] / expected.sum(1, keepdims=True)[hidden]
            np.testing.assert_allclose(posterior(source, tokens[None]), expected, atol=1e-12)


def test_the_evidence_is_the_probability_of_the_visible_synsets():
    walk = language(0.5).first
    for synsets in ([0, 1, 2, 0], [2, 2, 1, 0], [1, 2, 0, 1]):
        value = log_evidence(walk, np.array([synsets]))[0]
        assert np.exp(value) == pytest.approx(walk_probability(walk, synsets), abs=1e-15)
    assert log_evidence(walk, np.full((1, 4), -1))[0] == pytest.approx(0)


def test_with_the_property_the_two_spellings_have_equal_predictions():
    source = language(0.5)
    tokens = source.sample(0, 20, 8, np.random.default_rng(1))
    tokens[:, ::3] = -1
    found = posterior(source, tokens)
    np.testing.assert_allclose(found[:, :SYNSETS], found[:, SYNSETS:], atol=1e-14)
    np.testing.assert_allclose(found.sum(1), 1)


def test_with_the_property_respelling_the_context_changes_nothing():
    source = language(0.5)
    tokens = source.sample(0, 20, 8, np.random.default_rng(1))
    tokens[:, 2] = -1
    respelt = np.where(tokens < 0, -1, (tokens + SYNSETS) % (2 * SYNSETS))
    np.testing.assert_allclose(posterior(source, tokens), posterior(source, respelt), atol=1e-14)


def test_without_the_property_the_spelling_names_the_domain():
    source = language(1.0)
    for domain in (0, 1):
        tokens = source.sample(domain, 20, 8, np.random.default_rng(2))
        tokens[:, 3] = -1
        found = posterior(source, tokens).reshape(20, 2, SYNSETS)
        assert not found[:, 1 - domain].any()
        synsets = np.where(tokens < 0, -1, source.meaning(tokens))
        alone = source.walk(domain).posterior(synsets)[:, 3]
        np.testing.assert_allclose(found[:, domain], alone, atol=1e-14)


def test_the_floor_is_the_negative_log_of_the_true_tokens_chance():
    source = language(0.7)
    tokens = source.sample(1, 10, 8, np.random.default_rng(3))
    hidden = np.random.default_rng(4).random(tokens.shape) < 0.3
    chances = posterior(source, np.where(hidden, -1, tokens))
    expected = [-np.log(row[token]) for row, token in zip(chances, tokens[hidden], strict=True)]
    np.testing.assert_allclose(floor(source, tokens, hidden), expected)


def test_the_property_costs_one_bit_a_token_where_the_domain_is_plain():
    """Long rows name their domain, so that the spelling is all that mix adds: log 2 nats."""
    walks = [RandomWalk(64, 320, seed=seed) for seed in (330, 331)]
    hidden = np.zeros((60, 32), dtype=bool)
    hidden[:, 16] = True
    means = {}
    for keep in (0.5, 1.0):
        source = TwoAlphabets(*walks, keep)
        tokens = source.sample(0, 60, 32, np.random.default_rng(5))
        means[keep] = floor(source, tokens, hidden).mean()
    assert means[0.5] - means[1.0] == pytest.approx(np.log(2), abs=0.1)


def far_apart(keep):
    """Domains so large that a row of one is, as a rule, impossible in the other."""
    return TwoAlphabets(*(RandomWalk(64, 320, seed=seed) for seed in (330, 331)), keep)


def rows_of_one_domain(source, domain):
    """Rows (B, 16) that only this domain can produce, with position 5 hidden."""
    tokens = source.sample(domain, 30, 16, np.random.default_rng(6))
    tokens[:, 5] = -1
    synsets = np.where(tokens < 0, -1, source.meaning(tokens))
    only = np.isneginf(log_evidence(source.walk(1 - domain), synsets))
    assert only.sum() > 5
    return tokens[only], synsets[only]


@pytest.mark.parametrize("domain", [0, 1])
def test_a_domain_that_cannot_have_produced_the_row_has_no_say(domain):
    source = far_apart(0.7)
    tokens, synsets = rows_of_one_domain(source, domain)
    alone = source.walk(domain).posterior(synsets)[:, 5]
    found = posterior(source, tokens).reshape(-1, 2, 64)
    np.testing.assert_allclose(found[:, domain], 0.7 * alone, atol=1e-14)
    np.testing.assert_allclose(found[:, 1 - domain], 0.3 * alone, atol=1e-14)


def test_a_row_with_a_replaced_token_is_refused():
    source = far_apart(0.5)
    tokens, _ = rows_of_one_domain(source, 0)
    other, _ = rows_of_one_domain(source, 1)
    spliced = np.concatenate([tokens[:1, :8], other[:1, 8:]], axis=1)
    with pytest.raises(ValueError, match="neither domain can produce row 1"):
        posterior(source, np.concatenate([tokens[:1], spliced]))


def test_many_rows_are_predicted_as_one_at_a_time():
    source = far_apart(0.6)
    rng = np.random.default_rng(7)
    tokens = np.concatenate([source.sample(domain, 70, 8, rng) for domain in (0, 1)])
    hidden = rng.random(tokens.shape) < 0.25
    assert hidden.any(1).sum() < len(tokens)  # some rows have nothing to predict
    together = floor(source, tokens, hidden)
    apart = [floor(source, tokens[i : i + 1], hidden[i : i + 1]) for i in range(len(tokens))]
    np.testing.assert_allclose(together, np.concatenate(apart), rtol=1e-12)


def test_nothing_hidden_is_nothing_to_pay():
    source = language(0.5)
    tokens = source.sample(0, 3, LENGTH, np.random.default_rng(0))
    assert floor(source, tokens, np.zeros(tokens.shape, dtype=bool)).shape == (0,)
    assert posterior(source, tokens).shape == (0, 2 * SYNSETS)


def test_a_hidden_token_that_the_corpus_cannot_contain_is_refused():
    source = language(1.0)
    tokens = source.sample(0, 3, LENGTH, np.random.default_rng(0))
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[:, 1] = True
    tokens[2, 1] += SYNSETS  # spelt in B among tokens in A
    with pytest.raises(ValueError, match="probability 0: tokens are not from this corpus"):
        floor(source, tokens, hidden)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (np.array([[0, 1, 6, 2]]), "allowed are -1 .hidden. to 5"),
        (np.array([[0, -2, 1, 2]]), "tokens run from -2"),
        (np.array([0, 1, 2]), "shape .batch, length."),
        (np.array([[0.0, 1.0]]), "must be integers"),
    ],
    ids=["too large", "too small", "one row", "floats"],
)
def test_bad_tokens_are_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        posterior(language(0.5), tokens)


def test_a_row_of_no_domain_is_named():
    source = language(1.0)
    good = source.sample(0, 1, LENGTH, np.random.default_rng(0))[0]
    mixed = good.copy()
    mixed[1] += SYNSETS  # D1 is all A, D2 all B
    with pytest.raises(ValueError, match="neither domain can produce row 1"):
        posterior(source, np.stack([good, mixed]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tokens, hidden: (tokens, hidden.astype(int)), "hidden must be bool"),
        (lambda tokens, hidden: (tokens, hidden[:, :2]), "hidden must be bool of shape"),
        (lambda tokens, hidden: (np.where(hidden, -1, tokens), hidden), "not -1"),
    ],
    ids=["integers", "shape", "no truth"],
)
def test_a_floor_needs_the_truth_where_it_is_hidden(change, message):
    source = language(0.5)
    tokens = source.sample(0, 3, LENGTH, np.random.default_rng(0))
    hidden = np.zeros(tokens.shape, dtype=bool)
    hidden[:, 1] = True
    with pytest.raises(ValueError, match=message):
        floor(source, *change(tokens, hidden))
