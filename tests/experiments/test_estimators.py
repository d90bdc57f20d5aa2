import numpy as np
import pytest
import torch

from unmasked.experiments import estimator_cost, estimators
from unmasked.experiments.estimator_cost import BENCHMARKS, EstimatorCostConfig
from unmasked.experiments.estimators import CountingReader, EstimatorsConfig, Source, estimate
from unmasked.masking import MaskingVocabulary
from unmasked.mi import conditional_mutual_information
from unmasked.mi_sentences import encode_sentences
from unmasked.models import bert_config, masked_language_model

VOCABULARY = MaskingVocabulary(40, 4, (0, 1, 2, 3, 4))
CONFIG = EstimatorsConfig(
    checkpoint="book_model", words=8, values=20, text_sentences=1, language_words=32,
    language_sentences=1, training_sentences=64, training_steps=2, heads=(2, 18, 20), steps=(20,),
)  # fmt: skip
COST = EstimatorCostConfig(
    checkpoint="book_model", words=4, published_steps=20, published_batch=8, timed_steps=1,
    timed_pairs=2, repeats=1, lengths=(3,),
    vocabularies=(40,), size="tiny", values=8, accuracy_sentences=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def model():
    shape = bert_config("tiny", 40, max_length=12, initializer_range=0.25)
    return masked_language_model(shape, 0).eval()


@pytest.fixture(scope="module")
def source(model):
    sentences = [torch.tensor([2, *ids, 3]) for ids in ([9, 30, 31, 7], [8, 12, 39, 20])]
    encoded = encode_sentences(model, VOCABULARY, sentences)
    return Source("tiny", model, 4, encoded, [torch.arange(5, 40)] * 2)


@pytest.fixture(scope="module")
def compared(source):
    rows = list(estimators._compared(CONFIG, source, 0))
    return {(r["estimator"], r["setting"], r["metric"]): r["value"] for r in rows}


def test_a_head_and_tail_that_hold_every_value_are_exact(compared):
    assert compared["head_tail", 20, "rmse"] == pytest.approx(0, abs=1e-6)
    assert compared["head_tail", 20, "rank_correlation"] == pytest.approx(1)
    assert compared["head_tail", 20, "tree_overlap"] == 1
    assert compared["head_tail", 20, "rows"] == 1 + 2 * 35
    assert compared["head_tail", 2, "rmse"] > 0.001


def test_the_official_chain_reads_two_rows_a_step_and_the_other_one_each_value_once(compared):
    assert compared["gibbs", 20, "rows"] == 40
    assert compared["gibbs_rb", 20, "rows"] < 40
    assert compared["cpmi", None, "rows"] == pytest.approx((4 * 5 / 2) / 6)


def test_estimates_through_a_shared_memo_are_those_of_the_public_function(source):
    sentence, allowed = source.sentences[0], source.allowed[0]
    reader = CountingReader(source.model, 4, 128, allowed)
    estimators.exact_information(reader, sentence)
    found = estimate(reader, sentence, "kl_cpmi", None, 0).information
    expected = conditional_mutual_information(
        source.model, VOCABULARY, [sentence.ids], "kl_cpmi",
        generator=torch.Generator().manual_seed(0), allowed_ids=allowed,
    )[0].information  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-5)
    before = reader.rows.total()
    estimate(reader, sentence, "head_tail", 18, 0)
    assert reader.rows.total() - before == 6  # the pairs' own rows: the rest is remembered


def test_scores_of_a_shifted_truth(source):
    truth = np.arange(16.0).reshape(4, 4)
    shifted = estimators.Estimate(truth + 0.5, 7.0)
    scores = {name: value for name, value, _ in estimators._scores([truth], [shifted])}
    assert scores == pytest.approx(
        {
            "bias": 0.5,
            "rmse": 0.5,
            "median_error": 0.5,
            "rank_correlation": 1,
            "tree_overlap": 1,
            "rows": 7,
        }
    )


def test_trees_are_compared_edge_by_edge():
    chain, star = np.zeros((4, 4)), np.zeros((4, 4))
    chain[[0, 1, 2], [1, 2, 3]] = 1.0
    star[0, 1:] = 1.0
    assert estimators.tree_overlap(chain, star) == pytest.approx(1 / 3)  # the edge (0, 1)


@pytest.mark.parametrize("name", ["estimators", "estimator_cost"])
def test_rows_are_finite_unique_and_of_one_shape(name, tmp_path):
    if name == "estimators":
        rows = list(estimators.compute_estimators(CONFIG, 0, tmp_path))
        keys = ("source", "estimator", "setting", "metric")
        assert {r["source"] for r in rows} == {estimators.LANGUAGE, estimators.TEXT}
    else:
        rows = list(estimator_cost.compute_estimator_cost(COST, 0, tmp_path))
        keys = ("benchmark", "label", "metric")
        assert {*BENCHMARKS} < {r["benchmark"] for r in rows}
    assert len({tuple(r[key] for key in keys) for r in rows}) == len(rows)
    assert len({tuple(sorted(r)) for r in rows}) == 1
    assert all(np.isfinite(r["value"]) for r in rows)


def test_sentences_of_text_have_the_length_asked_for_and_their_own_words_allowed():
    source = estimators.text_source(CONFIG, 0)
    again = estimators.text_source(CONFIG, 1)
    assert len(source.sentences[0]) == CONFIG.words
    own = source.sentences[0].ids[source.sentences[0].positions]
    assert torch.isin(own, source.allowed[0]).all()
    assert not torch.equal(own, again.sentences[0].ids[again.sentences[0].positions])


def test_the_published_chain_measures_the_same_information(model):
    """On average over 256 copies of one pair it agrees with the package's chain."""
    sentence = encode_sentences(model, VOCABULARY, [torch.tensor([2, 9, 30, 3])])[0]
    torch.manual_seed(0)
    found = estimator_cost.published_gibbs(model, 4, sentence, 256, 60).double()
    ours = torch.tensor([
        conditional_mutual_information(
            model, VOCABULARY, [sentence.ids], "gibbs", steps=60,
            generator=torch.Generator().manual_seed(seed),
        )[0].information[[0, 1], [1, 0]].tolist()
        for seed in range(12)
    ])  # fmt: skip
    error = (found.var(0) / len(found) + ours.var(0) / len(ours)).sqrt()
    assert torch.all((found.mean(0) - ours.mean(0)).abs() < 5 * error)
    assert torch.all(found.mean(0) > 4 * error)  # so that the agreement says something


def test_times_are_those_of_a_whole_sentence(monkeypatch):
    from unmasked.timing import Ratio

    monkeypatch.setattr(estimator_cost, "interleaved", lambda *_: Ratio(2.0, 1.0, 4.0, 6.0, 3.0, 1))
    ratio = estimator_cost.measured("information_64", COST)
    # 1 of 20 steps for 8 pairs, 2 of 6 pairs of a sentence of four words
    assert ratio.slow_seconds == pytest.approx(6.0 * 20 * 6 / 8)
    assert ratio.fast_seconds == pytest.approx(3.0 * 3)
    assert ratio.median == pytest.approx(2.0 * (20 * 6 / 8) / 3)


def test_timed_pairs_read_what_the_estimator_reads(model):
    sentence = estimator_cost.sample_sentence(model, VOCABULARY, 6)
    run = estimator_cost.timed_estimate(model, 4, sentence, "head_tail", 5, 4)
    assert 4 * (1 + 2 * 10) - 4 * 2 <= run() <= 4 * (1 + 2 * 10)
    assert run() == run()  # nothing is remembered between calls
