"""Every estimator against enumeration on models whose predictions are a table."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import rel_entr
from torch import nn

from unmasked import mi
from unmasked.masking import MaskingVocabulary
from unmasked.mi import conditional_mutual_information
from unmasked.mi_estimators import ESTIMATORS, Support
from unmasked.mi_rows import seeded_pair
from unmasked.mi_sentences import encode_sentences
from unmasked.models import bert_config, masked_language_model

V = 6
MASK = V
VOCABULARY = MaskingVocabulary(V + 1, MASK, (MASK,))


class Table(nn.Module):
    """A masked language model over sentences of two tokens that looks its predictions up.

    `given[k]` (V + 1, V) is the law at position k by what stands at the other one, [MASK] last.
    """

    def __init__(self, first, second):
        super().__init__()
        self.given = nn.Parameter(torch.stack([torch.as_tensor(first), torch.as_tensor(second)]))
        self.config = SimpleNamespace(vocab_size=V + 1, max_position_embeddings=8)

    def forward(self, input_ids):
        log_p = self.given.log()
        both = torch.stack([log_p[0, input_ids[:, 1]], log_p[1, input_ids[:, 0]]], 1)
        return SimpleNamespace(logits=nn.functional.pad(both, (0, 1), value=-torch.inf))


class Joint(nn.Module):
    """Exact conditionals of a joint law (V, V, V) over three positions, any of them masked."""

    def __init__(self, law):
        super().__init__()
        self.law = nn.Parameter(torch.as_tensor(law))
        self.config = SimpleNamespace(vocab_size=V + 1, max_position_embeddings=8)

    def forward(self, input_ids):
        logits = torch.full((*input_ids.shape, V + 1), -torch.inf)
        for row, ids in enumerate(input_ids.tolist()):
            for place in range(3):
                seen = [slice(None) if t == MASK else slice(t, t + 1) for t in ids]
                seen[place] = slice(None)
                others = tuple(axis for axis in range(3) if axis != place)
                logits[row, place, :V] = self.law[tuple(seen)].sum(others).log()
        return SimpleNamespace(logits=logits)


def random_table(seed, sharpness=2.0):
    """Two tables of laws that come from no common joint."""
    rng = np.random.default_rng(seed)
    scores = np.exp(sharpness * rng.normal(size=(2, V + 1, V)))
    return scores / scores.sum(-1, keepdims=True)


def stationary_information(given):
    """Both directions by the eigenvector of b -> a -> b', in double precision."""
    a, b = given[0][:V], given[1][:V]
    result = []
    for left, right in ((a, b), (b, a)):
        values, vectors = np.linalg.eig((left @ right).T)
        law = np.real(vectors[:, np.argmax(np.real(values))])
        law = law / law.sum()
        result.append(float(law @ rel_entr(left, law @ left).sum(1)))
    return result


def measured(model, ids, estimator, seed=0, **settings):
    return conditional_mutual_information(
        model, VOCABULARY, [torch.tensor(ids)], estimator,
        generator=torch.Generator().manual_seed(seed), **settings,
    )[0]  # fmt: skip


@pytest.fixture(scope="module")
def bert():
    return masked_language_model(bert_config("tiny", 60, max_length=16, initializer_range=0.3), 0)


BERT_VOCABULARY = MaskingVocabulary(60, 4, (0, 1, 2, 3, 4))
SENTENCES = [torch.tensor([2, *ids, 3]) for ids in ([9, 30, 41, 7], [8, 50, 12], [55, 31, 9, 17])]


def on_bert(bert, sentences=SENTENCES, estimator="head_tail", seed=0, **settings):
    settings = {"head": 5, "tail": 9, "steps": 40, **settings}
    return conditional_mutual_information(
        bert, BERT_VOCABULARY, sentences, estimator,
        generator=torch.Generator().manual_seed(seed), **settings,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exact_is_the_information_under_the_stationary_law_in_both_directions(seed):
    given = random_table(seed)
    found = measured(Table(*given), [1, 2], "exact")
    expected = stationary_information(given)
    assert abs(expected[0] - expected[1]) > 0.01  # else one direction could pass for the other
    assert found.information[0, 1] == pytest.approx(expected[0], abs=1e-6)
    assert found.information[1, 0] == pytest.approx(expected[1], abs=1e-6)
    assert found.captured[0, 1] == pytest.approx(1, abs=1e-6)


def test_predictions_of_one_joint_give_its_conditional_information_for_every_pair():
    law = np.random.default_rng(3).dirichlet(np.full(V**3, 0.3)).reshape(V, V, V)
    sentence = [int(k) for k in np.unravel_index(law.argmax(), law.shape)]
    found = measured(Joint(law), sentence, "exact").information
    for i, j in ((0, 1), (0, 2), (1, 2)):
        fixed = ({0, 1, 2} - {i, j}).pop()
        pair = np.take(law, sentence[fixed], axis=fixed)
        pair = pair / pair.sum()
        independent = np.outer(pair.sum(1), pair.sum(0))
        expected = rel_entr(pair, independent).sum()
        assert found[i, j] == pytest.approx(expected, abs=2e-6)
        assert found[j, i] == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(("head", "tail"), [(V + 1, 0), (64, 64), (2, V)])
def test_head_and_tail_that_cover_the_vocabulary_are_exact(head, tail):
    model = Table(*random_table(4))
    full = measured(model, [1, 2], "head_tail", head=head, tail=tail)
    exact = measured(model, [1, 2], "exact")
    np.testing.assert_allclose(full.information, exact.information, atol=1e-6)


EVERY_SENTENCE = [torch.tensor([a, b]) for a in range(V) for b in range(V)]


def test_slow_alternation_goes_on_until_the_laws_stay():
    """Two blocks of values that are rarely left: eight rounds would still remember the start."""
    given = np.full((2, V + 1, V), 0.01 / 3)
    given[:, :3, :3] = given[:, 3:V, 3:] = 0.99 / 3
    given[:, V] = [0.3, 0.3, 0.3, 0.04, 0.03, 0.03]
    full = measured(Table(*given), [1, 2], "head_tail").information
    few = measured(Table(*given), [1, 2], "head_tail", sweeps=8).information
    expected = stationary_information(given)[0]
    assert full[0, 1] == pytest.approx(expected, abs=1e-6)
    assert abs(few[0, 1] - expected) > 0.05


def chains(given, estimator, **settings):
    """One independent chain for every sentence: a table does not look at what is masked."""
    found = conditional_mutual_information(
        Table(*given), VOCABULARY, EVERY_SENTENCE, estimator,
        generator=torch.Generator().manual_seed(0), **settings,
    )  # fmt: skip
    return np.array([[one.information[0, 1], one.information[1, 0]] for one in found])


@pytest.mark.parametrize("estimator", ["gibbs", "gibbs_rb"])
def test_chains_converge_to_exact_in_both_directions(estimator):
    given = random_table(5)
    exact = stationary_information(given)
    assert abs(exact[0] - exact[1]) > 0.1  # the two sides exchanged would show
    draws = chains(given, estimator, steps=500)
    error = 5 * draws.std(0, ddof=1) / len(draws) ** 0.5
    assert np.all(error < 0.04)
    # a plug-in over n draws is biased by about (V - 1) / 2n
    assert np.all(np.abs(draws.mean(0) - exact) < error + 0.006)


def test_whole_rows_have_less_variance_than_the_draws_alone():
    given = random_table(5)
    spread = {name: chains(given, name, steps=100).std(0) for name in ("gibbs", "gibbs_rb")}
    assert np.all(spread["gibbs_rb"] < 0.8 * spread["gibbs"])


def test_more_values_come_closer_to_exact(bert):
    exact = np.stack([s.information for s in on_bert(bert, SENTENCES[::2], "exact")])
    errors = []
    for count in (3, 12, 24):
        found = [
            [s.information for s in on_bert(bert, SENTENCES[::2], head=count, tail=count, seed=k)]
            for k in range(4)
        ]
        errors.append(np.sqrt(np.mean(np.square(np.array(found) - exact))))
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0


def test_values_are_drawn_in_proportion_and_never_twice():
    q = torch.tensor([0.3, 0.02, 0.25, 0.2, 0.15, 0.08])
    counts = np.zeros(6)
    for seed in range(2000):
        support = Support.of(q, 1, 2, torch.Generator().manual_seed(seed))
        assert support.values[0] == 0
        assert len(set(support.values.tolist())) == 3
        counts[support.values] += 1
    expected = np.array([1, *(2 * q[1:] / 0.7)])  # head 0.3 is certain, 0.7 is left for two draws
    assert np.all(np.abs(counts / 2000 - expected) < 5 * np.sqrt(expected * (1 - expected) / 2000)
                  + 1e-9)  # fmt: skip


def test_drawn_values_share_what_the_head_leaves_by_importance():
    support = Support(torch.tensor([4, 0, 2]), 1, torch.tensor([0.4, 0.1, 0.2]).double())
    at = torch.tensor([0.5, 0.2, 0.1]).double()
    # ratios 0.2 / 0.1 and 0.1 / 0.2 share 1 - 0.5
    torch.testing.assert_close(support.weights(at), torch.tensor([0.5, 0.4, 0.1]).double())


def test_the_official_plug_in_is_computed_from_the_chain_as_published():
    """The same uniform draws through a plain chain that keeps every distribution."""
    given = random_table(6)
    model, steps = Table(*given), 50
    found = measured(model, [1, 2], "gibbs", steps=steps, burn_in=0.2)
    seed = int(torch.randint(2**62, (1,), generator=torch.Generator().manual_seed(0)))
    sentence = encode_sentences(model, VOCABULARY, [torch.tensor([1, 2])])[0]
    stream = seeded_pair(sentence, 0, 1, seed).generator
    uniform = torch.rand(steps, 2, generator=stream).numpy()
    rows, drawn, other = ([], []), ([], []), V  # [MASK] first
    for step in range(steps):
        for side in (0, 1):
            row = given[side][other]
            other = int(np.searchsorted(row.cumsum(), uniform[step, side], side="right"))
            rows[side].append(row)
            drawn[side].append(other)
    for side, (i, j) in enumerate(((0, 1), (1, 0))):
        p, x = np.array(rows[side])[10:], np.array(drawn[side])[10:]
        expected = np.mean(np.log(p[np.arange(40), x]) - np.log(p.mean(0)[x]))
        assert found.information[i, j] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("estimator", ["cpmi", "kl_cpmi"])
def test_pointwise_relatives_follow_their_formulas_on_a_plain_model(bert, estimator):
    found = on_bert(bert, estimator=estimator)[0]
    ids = SENTENCES[0]

    def law(place, *masked):
        row = ids.clone()
        row[list(masked)] = 4
        return bert(input_ids=row[None]).logits[0, place].double().softmax(-1).detach()

    for i in range(4):
        for j in range(4):
            if i != j:
                p, q = law(i + 1, i + 1), law(i + 1, i + 1, j + 1)
                token = ids[i + 1]
                value = {"cpmi": (p[token] / q[token]).log(), "kl_cpmi": (p * (p / q).log()).sum()}
                assert found.information[i, j] == pytest.approx(float(value[estimator]), abs=1e-4)
    assert found.rows == 4 * 5 // 2
    assert np.isnan(found.captured).all()


@pytest.mark.parametrize("estimator", ["head_tail", "gibbs", "gibbs_rb"])
def test_batches_change_nothing(bert, estimator):
    one, many = (on_bert(bert, estimator=estimator, batch_rows=size) for size in (1, 512))
    for left, right in zip(one, many, strict=True):
        np.testing.assert_allclose(left.information, right.information, atol=2e-5)
        assert left.rows == right.rows


@pytest.mark.parametrize("estimator", ["head_tail", "gibbs_rb"])
def test_the_order_of_sentences_and_their_company_change_nothing(bert, estimator):
    forward = on_bert(bert, estimator=estimator)
    backward = on_bert(bert, SENTENCES[::-1], estimator)[::-1]
    alone = on_bert(bert, SENTENCES[1:2], estimator)
    for left, right in zip(forward, backward, strict=True):
        np.testing.assert_allclose(left.information, right.information, atol=2e-5)
    np.testing.assert_allclose(alone[0].information, forward[1].information, atol=2e-5)
    other = on_bert(bert, estimator=estimator, seed=1)
    assert not np.allclose(other[0].information, forward[0].information, atol=1e-4)


def test_an_estimator_reads_as_many_rows_as_it_promises(bert):
    ids, pairs = SENTENCES[0], 6
    found = on_bert(bert, [ids], "head_tail", head=5, tail=0)[0]
    # a row whose value is the token that stands there is shared by all pairs of its target
    assert pairs * (1 + 2 * 5) - 4 * 2 <= found.rows <= pairs * (1 + 2 * 5)
    everything = on_bert(bert, [ids], "exact")[0]
    assert everything.rows == pairs * (1 + 2 * 60) - 4 * 2
    steps = 40
    chain = on_bert(bert, [ids], "gibbs_rb", steps=steps)[0]
    assert chain.rows < pairs * 2 * steps


def test_captured_mass_is_that_of_the_conditioning_values(bert):
    few, more = (on_bert(bert, head=head, tail=0)[0].captured[0, 1] for head in (2, 20))
    assert 0 < few < more < 1


def test_pairs_outside_the_window_stay_at_zero(bert):
    ids = [SENTENCES[0]]
    free, near = on_bert(bert, ids)[0], on_bert(bert, ids, window=1)[0]
    distance = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    np.testing.assert_allclose(near.information[distance == 1], free.information[distance == 1],
                               atol=2e-5)  # fmt: skip
    assert not near.information[distance != 1].any()
    assert free.information[distance > 1].all()


def test_allowed_ids_restrict_and_renormalise(bert):
    allowed = torch.tensor([30, 9, 41, 7, 20])

    class Restricted(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.config = bert, bert.config

        def forward(self, input_ids):
            logits = self.inner(input_ids=input_ids).logits
            out = torch.full_like(logits, -torch.inf)
            out[..., allowed] = logits[..., allowed]
            return SimpleNamespace(logits=out)

    ids = [SENTENCES[0]]
    for estimator in ("exact", "kl_cpmi"):
        direct = on_bert(bert, ids, estimator, allowed_ids=allowed)[0]
        # values without probability are never reached, so that the whole vocabulary agrees
        through = on_bert(Restricted(), ids, estimator)[0]
        np.testing.assert_allclose(direct.information, through.information, atol=1e-5)


def test_the_names_of_the_estimators():
    assert [*ESTIMATORS] == ["head_tail", "gibbs", "gibbs_rb", "exact", "cpmi", "kl_cpmi"]
    assert ESTIMATORS is mi.ESTIMATORS
