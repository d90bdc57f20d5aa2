"""From words to positions and back, and what is refused on the way."""

import numpy as np
import pytest
import torch

from unmasked.masking import MaskingVocabulary
from unmasked.mi import (
    ESTIMATORS,
    SentenceInformation,
    conditional_mutual_information,
    symmetrise,
    to_words,
)
from unmasked.models import bert_config, masked_language_model
from unmasked.tokens import train_tokenizer

VOCABULARY = MaskingVocabulary(60, 4, (0, 1, 2, 3, 4))
TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 5


@pytest.fixture(scope="module")
def bert():
    return masked_language_model(bert_config("tiny", 60, max_length=8, initializer_range=0.2), 0)


@pytest.fixture(scope="module")
def tokenizer():
    # single letters and the words of the texts: an unseen word falls into pieces
    return train_tokenizer(TEXTS, 60)


def measured(model, vocabulary, sentences, estimator="head_tail", **settings):
    settings = {"head": 4, "tail": 4, "steps": 20, **settings}
    return conditional_mutual_information(
        model, vocabulary, sentences, estimator,
        generator=torch.Generator().manual_seed(0), **settings,
    )  # fmt: skip


def test_words_that_are_split_keep_their_number(bert, tokenizer):
    found = measured(bert, tokenizer, [["the", "catdog", "sat"]])[0]
    assert found.word_of[0] == 0
    assert found.word_of[-1] == 2
    pieces = int((found.word_of == 1).sum())
    assert pieces > 1
    assert found.information.shape == (pieces + 2, pieces + 2)
    assert to_words(found).shape == (3, 3)


def test_a_word_that_the_tokenizer_drops_has_no_position_and_zeros(bert, tokenizer):
    found = measured(bert, tokenizer, [["the", "\x07", "cat", "\x07"]])[0]
    assert found.word_of.tolist() == [0, 2]
    words = to_words(found)
    assert words.shape == (4, 4)
    assert words[0, 2] == found.information[0, 1] != 0
    assert not words[[1, 3]].any()
    assert not words[:, [1, 3]].any()


def test_words_without_an_entry_are_still_positions(bert, tokenizer):
    assert measured(bert, tokenizer, [["the", "狗", "cat"]])[0].word_of.tolist() == [0, 1, 2]


@pytest.mark.parametrize("estimator", [*ESTIMATORS])
def test_a_sentence_of_one_word_has_a_single_zero_and_costs_nothing(bert, tokenizer, estimator):
    one, two = measured(bert, tokenizer, [["cat"], ["the", "cat"]], estimator, batch_rows=1)
    assert one.information.tolist() == [[0.0]]
    assert one.rows == 0
    assert two.information.shape == (2, 2)
    assert two.information.any()


@pytest.mark.parametrize("estimator", ["head_tail", "gibbs_rb", "kl_cpmi"])
def test_a_single_pair_is_a_batch(bert, estimator):
    found = measured(bert, VOCABULARY, [torch.tensor([2, 9, 30, 3])], estimator)
    assert found[0].information[0, 1] > 0


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([["the"], []], "sentence 1 holds no token"),
        ([["\x07"]], r"sentence 0 \('\\x07'\) holds no token"),
        ([["the"], ["the", "cat"] * 4], "sentence 1 .* has 10 tokens, more than .* 8 positions"),
        (["the cat"], "sentence 0 is a string; give a list of words"),
    ],
)
def test_sentences_of_words_that_cannot_be_measured_are_named(bert, tokenizer, sentences, message):
    with pytest.raises(ValueError, match=message):
        measured(bert, tokenizer, sentences)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([2, 3]), "sentence 0 holds no token"),
        (torch.tensor([], dtype=torch.int64), "sentence 0 holds no token"),
        (torch.tensor([[2, 9, 3]]), "one-dimensional int64"),
        (torch.tensor([2.0, 9.0]), "one-dimensional int64"),
        (torch.tensor([2, 60, 3]), r"ids outside 0\.\.59"),
        (torch.arange(9) + 5, "has 9 tokens"),
    ],
    ids=["special", "empty", "shape", "dtype", "range", "long"],
)
def test_sentences_of_ids_that_cannot_be_measured_are_named(bert, ids, message):
    with pytest.raises(ValueError, match=message):
        measured(bert, VOCABULARY, [ids])


def test_a_tokenizer_without_a_mask_token_is_refused(bert, tokenizer):
    from transformers import PreTrainedTokenizerFast

    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    with pytest.raises(ValueError, match="has no mask token"):
        measured(bert, bare, [["the"]])


def test_logits_that_are_not_numbers_are_reported_with_the_sentence():
    model = masked_language_model(bert_config("tiny", 60, max_length=8), 0)
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight[4] = torch.nan
    fine, broken = torch.tensor([2, 8, 9, 3]), torch.tensor([2, 9, 30, 31, 3])
    with pytest.raises(ValueError, match="sentence 1: the model's logits are NaN"):
        measured(model, VOCABULARY, [fine, broken], "kl_cpmi")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "head_tale"}, "did you mean 'head_tail'"),
        ({"head": 0}, "head is 0"),
        ({"tail": -1}, "tail is -1"),
        ({"sweeps": 0}, "sweeps is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"burn_in": 1.0}, r"burn_in is 1\.0"),
        ({"window": 0}, "window is 0"),
        ({"batch_rows": 0}, "batch_rows is 0"),
        ({"allowed_ids": torch.tensor([7, 7])}, "distinct"),
        ({"allowed_ids": torch.tensor([7, 60])}, r"0\.\.59"),
        ({"allowed_ids": torch.tensor([7, 8]), "estimator": "cpmi"}, "holds token 9"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_settings_out_of_range_are_refused(bert, settings, message):
    with pytest.raises(ValueError, match=message):
        measured(bert, VOCABULARY, [torch.tensor([2, 9, 30, 3])], **settings)


def information(matrix, word_of, words=0):
    matrix = np.array(matrix)
    return SentenceInformation(matrix, np.ones_like(matrix), 0, np.array(word_of), words)


def test_pieces_become_words_by_the_published_rule():
    a, b, c, d = 0.1, 0.5, 0.3, 0.2
    matrix = [[0, 9.0, a], [9.0, 0, b], [c, d, 0]]
    words = to_words(information(matrix, [0, 0, 1]))
    assert words[0, 1] == pytest.approx(np.log((np.exp(a) + np.exp(b)) / 2))  # mean over rows
    assert words[1, 0] == pytest.approx(max(c, d))  # maximum over columns
    assert words[0, 0] == words[1, 1] == 0


def test_a_sentence_without_a_split_word_is_passed_on_as_it_is():
    matrix = [[0, -0.25], [0.5, 0]]
    assert to_words(information(matrix, [0, 1])).tolist() == matrix
    with pytest.raises(ValueError, match="unknown aggregation 'mean'"):
        to_words(information(matrix, [0, 1]), "mean")


@pytest.mark.parametrize(("how", "value"), [("max", 0.5), ("mean", 0.125), ("min", -0.25)])
def test_symmetrise(how, value):
    result = symmetrise(np.array([[0, -0.25], [0.5, 0]]), how)
    assert result.tolist() == [[0, value], [value, 0]]


def test_an_unknown_rule_to_symmetrise_is_refused():
    with pytest.raises(ValueError, match="known: max, mean, min"):
        symmetrise(np.zeros((2, 2)), "median")
