"""The toy collator: one mask a sentence, on the label with a given share."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig

from unmasked import cloze
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary
from unmasked.models import masked_language_model
from unmasked.tokens import Sequences, train_tokenizer

PAD, UNK, CLS, SEP, MASK = range(5)
VOCABULARY = MaskingVocabulary(40, MASK, (PAD, UNK, CLS, SEP, MASK))
NEGATIVE, POSITIVE = 38, 39


def sentences(count: int = 8) -> Sequences:
    """Sentences of 2 to 6 ordinary tokens 5..37 in their frame."""
    generator = np.random.default_rng(0)
    return Sequences.from_lists(
        [CLS, *generator.integers(5, 38, 2 + number % 5), SEP] for number in range(count)
    )


def worded(count: int = 8) -> Sequences:
    return cloze.append_token(sentences(count), [NEGATIVE, POSITIVE] * (count // 2))


@pytest.fixture(scope="module")
def model():
    shape = BertConfig(
        vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    built = masked_language_model(shape, 0).eval()
    torch.nn.init.normal_(built.cls.predictions.bias, generator=torch.Generator().manual_seed(1))
    return built


def test_the_label_is_appended_before_the_end_of_each_sentence():
    plain, longer = sentences(), worded()
    for number, (before, after) in enumerate(zip(plain, longer, strict=True)):
        label = (NEGATIVE, POSITIVE)[number % 2]
        assert after.tolist() == [*before[:-1].tolist(), label, SEP]
    assert longer.ids.dtype == np.int32


def test_every_sentence_has_one_mask_and_a_share_of_them_hides_the_label():
    rows, share, draws = worded(64), 0.3, 100
    at = cloze.cloze_batches(rows, VOCABULARY, share, 64, seed=0)
    on_label = 0
    for step in range(draws):
        inputs = at(step).inputs
        chosen = inputs["labels"] != IGNORE_INDEX
        assert torch.equal(chosen.sum(1), torch.ones(64, dtype=torch.long))
        assert torch.all(inputs["input_ids"][chosen] == MASK)
        last = inputs["attention_mask"].sum(1) - 2
        hides = chosen[torch.arange(64), last]
        assert torch.equal(hides, inputs["labels"][chosen] >= NEGATIVE)  # labels only ever last
        on_label += int(hides.sum())
    deviation = math.sqrt(share * (1 - share) / (64 * draws))
    assert on_label / (64 * draws) == pytest.approx(share, abs=5 * deviation)


@pytest.mark.parametrize(("share", "label"), [(0.0, False), (1.0, True)])
def test_the_ends_of_the_scale_are_never_and_always(share, label):
    for batch in cloze.cloze_evaluation_set(worded(32), VOCABULARY, share):
        targets = batch.inputs["labels"][batch.inputs["labels"] != IGNORE_INDEX]
        assert torch.all((targets >= NEGATIVE) == label)


def test_a_generic_mask_is_uniform_over_the_other_tokens():
    count = 20_000
    maskable = torch.tensor([False, True, True, True, True, False]).expand(count, -1)
    generator = torch.Generator().manual_seed(0)
    shares = cloze.select_cloze(maskable, 0.0, generator).double().mean(0)
    deviation = math.sqrt(2 / 9 / count)
    expected = torch.tensor([0, 1 / 3, 1 / 3, 1 / 3, 0, 0], dtype=torch.double)
    torch.testing.assert_close(shares, expected, atol=5 * deviation, rtol=0)


def test_batches_are_functions_of_the_seed_and_the_step():
    first, again, other = (
        cloze.cloze_batches(worded(32), VOCABULARY, 0.5, 8, seed)(3).inputs["labels"]
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert first.shape != other.shape or not torch.equal(first, other)


def test_before_training_the_classifier_is_the_language_model_on_the_label_words(model):
    ids, mask = cloze.append_token(sentences(), [MASK] * 8).pad(range(8))
    classifier = cloze.ClozeClassifier.from_label_words(model, (NEGATIVE, POSITIVE)).eval()
    with torch.no_grad():
        whole = model(ids, attention_mask=mask).logits[torch.arange(8), mask.sum(1) - 2]
        logits = classifier(ids, mask).logits
    torch.testing.assert_close(logits, whole[:, [NEGATIVE, POSITIVE]])


def test_a_classifier_from_scratch_is_drawn_by_its_generator_alone(model):
    first, again, other = (
        cloze.ClozeClassifier.from_scratch(model, 2, torch.Generator().manual_seed(seed)).output
        for seed in (0, 0, 1)
    )
    assert torch.equal(first.weight, again.weight)
    assert not torch.isclose(first.weight, other.weight).any()
    assert torch.equal(first.bias, torch.zeros(2))
    assert first.weight.std().item() == pytest.approx(0.5, rel=0.6)


def test_training_the_classifier_leaves_the_language_model_alone(model):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    classifier = cloze.ClozeClassifier.from_label_words(model, (NEGATIVE, POSITIVE))
    ids, mask = cloze.append_token(sentences(), [MASK] * 8).pad(range(8))
    F.cross_entropy(classifier(ids, mask).logits, torch.tensor([0, 1] * 4)).backward()
    with torch.no_grad():
        for parameter in classifier.parameters():
            parameter -= parameter.grad
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["a fine film positive", "a dull film negative"] * 5, 60)


def test_label_words_that_are_one_piece_have_their_ids(tokenizer):
    ids = cloze.label_word_ids(tokenizer, ("negative", "positive"))
    assert tokenizer.convert_ids_to_tokens(ids) == ["negative", "positive"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("negative", "positively"), "'positively' becomes"),
        (("negative", "\u4e00"), r"'\u4e00' becomes \['\[UNK\]'\]"),
        (("film", "film"), "not distinct"),
        (("film", "Film"), "not distinct"),
    ],
    ids=["split", "unknown", "the same", "the same in lower case"],
)
def test_label_words_that_are_not_one_piece_each_are_refused(tokenizer, words, said):
    with pytest.raises(ValueError, match=said):
        cloze.label_word_ids(tokenizer, words)


@pytest.mark.parametrize("share", [-0.1, 1.5, math.nan])
def test_a_share_outside_zero_to_one_is_refused(share):
    maskable = torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=f"cloze share is {share}"):
        cloze.select_cloze(maskable, share, torch.Generator())


def test_empty_sentences_and_missing_labels_are_refused():
    holed = Sequences.from_lists([[CLS, 7, SEP], [CLS, SEP]])
    with pytest.raises(ValueError, match="sequence 1 is an empty sentence"):
        cloze.append_token(holed, [NEGATIVE, POSITIVE])
    with pytest.raises(ValueError, match="1 tokens to append for 2 sequences"):
        cloze.append_token(holed, [NEGATIVE])
    alone = cloze.append_token(Sequences.from_lists([[CLS, UNK, SEP]]), [POSITIVE])
    with pytest.raises(ValueError, match="row 0 has no token to mask beside its label"):
        cloze.cloze_batches(alone, VOCABULARY, 0.5, 1, 0)(0)
