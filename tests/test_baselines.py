import itertools
import math

import numpy as np
import pytest

from unmasked.baselines import NeighbourBigramBaseline, UnigramBaseline

CORPUS = [np.array(row) for row in ([1, 3, 4, 2], [1, 3, 5, 2], [1, 4, 4, 2], [1, 3, 4, 2])]
SPECIAL = (0, 1, 2)


def test_unigram_counts_with_one_added_and_specials_left_out():
    # 3: three times, 4: four times, 5: once; plus one each: 4, 5, 2 of 11.
    baseline = UnigramBaseline.fit(CORPUS, 6, SPECIAL)
    assert baseline.probabilities == pytest.approx([0, 0, 0, 4 / 11, 5 / 11, 2 / 11])
    assert baseline.predict() == 4
    assert baseline.negative_log_likelihood(np.array([5, 3])) == pytest.approx(
        [math.log(11 / 2), math.log(11 / 4)]
    )


def test_unigram_entropy_is_the_expected_loss():
    baseline = UnigramBaseline.fit(CORPUS, 6, SPECIAL)
    expected = sum(p * -math.log(p) for p in (4 / 11, 5 / 11, 2 / 11))
    assert baseline.entropy == pytest.approx(expected)
    flat = UnigramBaseline.fit([np.arange(8)], 8)
    assert flat.entropy == pytest.approx(math.log(8))


def by_hand(left: int, right: int, a: float, b: float, unknown: int = 0) -> np.ndarray:
    """p(w | left, right) written out with dictionaries of counts."""
    counts, pairs, follows = {}, {}, {}
    for row in CORPUS:
        for token in row.tolist():
            counts[token] = counts.get(token, 0) + 1
        for first, second in itertools.pairwise(row.tolist()):
            pairs[first, second] = pairs.get((first, second), 0) + 1
            follows[first] = follows.get(first, 0) + 1
    total = sum(counts.values())
    frequency = [(counts.get(w, 0) + 1) / (total + 6) for w in range(6)]

    def conditional(second, first, weight):
        seen = pairs.get((first, second), 0) / max(follows.get(first, 0), 1)
        return weight * seen + (1 - weight) * frequency[second]

    table = np.zeros(6)
    for w in (3, 4, 5):
        table[w] = frequency[w] if left == unknown else conditional(w, left, a)
        table[w] *= 1.0 if right == unknown else conditional(right, w, b)
    return table / table.sum()


@pytest.mark.parametrize(
    ("left", "right"), [(1, 4), (3, 2), (4, 2), (5, 5), (0, 2), (3, 0), (0, 0)]
)
def test_neighbours_agree_with_counting_by_hand(left, right):
    baseline = NeighbourBigramBaseline.fit(CORPUS, 6, SPECIAL, unknown_ids=(0,))
    expected = by_hand(left, right, 0.5, 0.5)
    tokens = np.array([3, 4, 5])
    nats = baseline.negative_log_likelihood(np.full(3, left), tokens, np.full(3, right))
    assert np.exp(-nats) == pytest.approx(expected[3:])
    assert np.exp(-nats).sum() == pytest.approx(1.0)
    assert baseline.predict(np.array([left]), np.array([right]))[0] == expected.argmax()


def test_more_positions_than_a_chunk_give_the_same_answers():
    baseline = NeighbourBigramBaseline.fit(CORPUS, 6, SPECIAL, unknown_ids=(0,))
    left, token, right = (np.tile(v, 300) for v in ([1, 3], [3, 4], [4, 2]))
    nats = baseline.negative_log_likelihood(left, token, right)
    assert nats[0::2] == pytest.approx(np.full(300, nats[0]))
    assert nats[0] == pytest.approx(-math.log(by_hand(1, 4, 0.5, 0.5)[3]))


def test_tuning_finds_the_best_pair_of_weights():
    baseline = NeighbourBigramBaseline.fit(CORPUS, 6, SPECIAL, unknown_ids=(0,))
    tuned = baseline.tuned(CORPUS)
    losses = {}
    for a, b in itertools.product((0.1, 0.3, 0.5, 0.7, 0.9), repeat=2):
        triples = [(r[i - 1], r[i], r[i + 1]) for r in CORPUS for i in (1, 2)]
        losses[a, b] = np.mean([-math.log(by_hand(x, z, a, b)[y]) for x, y, z in triples])
    assert (tuned.left_weight, tuned.right_weight) == min(losses, key=losses.get)


def test_special_tokens_inside_a_held_out_row_do_not_decide_the_weights():
    baseline = NeighbourBigramBaseline.fit(CORPUS, 6, SPECIAL, unknown_ids=(0,))
    tuned = baseline.tuned(CORPUS)
    noisy = baseline.tuned([*CORPUS, np.array([1, 0, 2]), np.array([2, 1, 2])])
    assert (noisy.left_weight, noisy.right_weight) == (tuned.left_weight, tuned.right_weight)
    with pytest.raises(ValueError, match="no held-out token"):
        baseline.tuned([np.array([3, 0, 4])])


def test_context_helps_where_there_is_context():
    cycle = [(np.arange(start, start + 20) % 10) + 1 for start in range(10)]
    unigram = UnigramBaseline.fit(cycle, 11, (0,))
    bigram = NeighbourBigramBaseline.fit(cycle, 11, (0,)).tuned(cycle)
    left, token, right = np.array([3]), np.array([4]), np.array([5])
    assert bigram.negative_log_likelihood(left, token, right)[0] < 0.1
    assert unigram.negative_log_likelihood(token)[0] == pytest.approx(math.log(10))


@pytest.mark.parametrize("bad", [[np.array([7])], [np.array([-1])]])
def test_ids_outside_the_vocabulary_are_refused(bad):
    with pytest.raises(ValueError, match=r"the vocabulary has ids 0\.\.5"):
        UnigramBaseline.fit(bad, 6)


def test_nothing_to_count_and_nothing_to_tune_on_are_refused():
    with pytest.raises(ValueError, match="no token to count"):
        UnigramBaseline.fit([], 6)
    with pytest.raises(ValueError, match="no held-out token"):
        NeighbourBigramBaseline.fit(CORPUS, 6).tuned([np.array([1, 2])])
