import itertools

import numpy as np
import pytest
import torch

from unmasked import mi
from unmasked.masking import MaskingVocabulary
from unmasked.mi_compatibility import (
    PairTables,
    conditional_tables,
    directed_information,
    imbalance,
    log_odds_size,
)
from unmasked.models import bert_config, masked_language_model

VOCABULARY = MaskingVocabulary(11, 4, tuple(range(5)))
SENTENCE = torch.tensor([2, 6, 9, 5, 7, 3])


@pytest.fixture(scope="module")
def model():
    return masked_language_model(bert_config("tiny", 11, max_length=8), 0).eval()


def rows(shape, seed):
    table = np.random.default_rng(seed).uniform(0.1, 1.0, shape)
    return table / table.sum(1, keepdims=True)


def from_joint(seed=0):
    joint = np.random.default_rng(seed).uniform(0.1, 1.0, (4, 3))  # rows i, columns j
    joint /= joint.sum()
    first = (joint / joint.sum(0)).T
    return joint, PairTables(first, joint / joint.sum(1, keepdims=True))


def test_imbalance_is_the_mean_log_ratio_of_going_round_to_going_back():
    tables = PairTables(rows((3, 4), 0), rows((4, 3), 1))
    p, q = np.log(tables.first), np.log(tables.second)
    ratios = [
        abs(p[b, a] + q[c, b] + p[d, c] + q[a, d] - p[d, a] - q[c, d] - p[b, c] - q[a, b])
        for a, c in itertools.combinations(range(4), 2)
        for b, d in itertools.combinations(range(3), 2)
    ]
    assert imbalance(tables) == pytest.approx(np.mean(ratios))


def test_conditionals_of_one_joint_are_balanced_and_agree_on_odds_and_information():
    joint, tables = from_joint()
    assert imbalance(tables) == pytest.approx(0.0, abs=1e-12)
    assert log_odds_size(tables.first) == pytest.approx(log_odds_size(joint))
    assert log_odds_size(tables.second) == pytest.approx(log_odds_size(joint))
    expected = (joint * np.log(joint / np.outer(joint.sum(1), joint.sum(0)))).sum()
    assert directed_information(tables) == pytest.approx((expected, expected))


def test_log_odds_size_is_the_mean_over_all_squares():
    table = np.random.default_rng(0).uniform(0.1, 1.0, (3, 4))
    log = np.log(table)
    expected = np.mean([
        abs(log[a, b] + log[c, d] - log[a, d] - log[c, b])
        for a, c in itertools.combinations(range(3), 2)
        for b, d in itertools.combinations(range(4), 2)
    ])  # fmt: skip
    assert log_odds_size(table) == pytest.approx(expected)
    assert log_odds_size(np.outer([1.0, 2.0, 3.0], [0.5, 0.1])) == pytest.approx(0.0, abs=1e-12)


def test_directions_differ_without_a_joint_and_follow_the_alternating_chain():
    tables = PairTables(rows((3, 4), 2), np.tile(rows((1, 3), 3), (4, 1)))
    i, j = directed_information(tables)
    assert j == pytest.approx(0.0, abs=1e-12)  # j does not listen
    law = tables.second[0]
    mixture = law @ tables.first
    assert i == pytest.approx((law[:, None] * tables.first * np.log(tables.first / mixture)).sum())


def test_tables_are_the_models_own_conditionals(model):
    (found,) = conditional_tables(
        model, VOCABULARY, SENTENCE, [(0, 2)], candidates=6, generator=torch.Generator()
    )

    def predicted(masked, values=None):
        ids = SENTENCE.clone()
        ids[[place + 1 for place in masked]] = VOCABULARY.mask_token_id
        for place, token in (values or {}).items():
            ids[place + 1] = token
        with torch.no_grad():
            return model(ids[None]).logits[0, :, 5:].double().softmax(-1)[[p + 1 for p in masked]]

    both = predicted([0, 2])
    order = both.argsort(descending=True) + 5
    for r, b in enumerate(order[1].tolist()):
        expected = predicted([0], {2: b})[0][order[0] - 5]
        assert found.first[r] == pytest.approx(expected.numpy(), abs=1e-6)
    for r, a in enumerate(order[0].tolist()):
        expected = predicted([2], {0: a})[0][order[1] - 5]
        assert found.second[r] == pytest.approx(expected.numpy(), abs=1e-6)


def test_information_with_every_candidate_is_the_exact_estimate(model):
    tables = conditional_tables(
        model, VOCABULARY, SENTENCE, [(0, 1), (1, 3)], candidates=6, generator=torch.Generator()
    )
    (exact,) = mi.conditional_mutual_information(
        model, VOCABULARY, [SENTENCE], "exact", generator=torch.Generator(),
        allowed_ids=VOCABULARY.ordinary_ids,
    )  # fmt: skip
    for (i, j), table in zip([(0, 1), (1, 3)], tables, strict=True):
        expected = exact.information[i, j], exact.information[j, i]
        assert directed_information(table) == pytest.approx(expected, abs=1e-6)


def test_pairs_are_drawn_and_candidates_are_renormalised(model):
    def draw(seed):
        return conditional_tables(
            model, VOCABULARY, SENTENCE, 3, candidates=4,
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip

    first, again = draw(0), draw(0)
    assert len(first) == 3
    for one, two in zip(first, again, strict=True):
        assert one.first.shape == one.second.shape == (4, 4)
        assert one.first.sum(1) == pytest.approx(np.ones(4))
        assert (one.first == two.first).all()


@pytest.mark.parametrize("candidates", [1, 7])
def test_a_wrong_number_of_candidates_is_refused(model, candidates):
    with pytest.raises(ValueError, match=rf"candidates must lie in 2\.\.6, got {candidates}"):
        conditional_tables(
            model, VOCABULARY, SENTENCE, 1, candidates=candidates, generator=torch.Generator()
        )
