"""Masks by lexicon: where they fall, how many, and what happens when none can."""

import numpy as np
import pytest
import torch

from unmasked import lexicon
from unmasked.lexicon import CLOZE, GENERIC, SETTINGS, UNIFORM
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary, mask_tokens
from unmasked.tokens import encode, train_tokenizer

TEXTS = ["a good film , unhappily dull", "the film was long", "good good good", "Bad ."]
WORDS = frozenset({"good", "dull", "unhappily", "bad", "a+"})


@pytest.fixture(scope="module")
def tokenizer():
    # No sentence twice, so that long words stay split into pieces.
    return train_tokenizer([*TEXTS, "good film", "dull film"], 45)


@pytest.fixture(scope="module")
def corpus(tokenizer):
    return encode(TEXTS, tokenizer, 48, split_long=False)


def spelled(tokenizer, ids, chosen):
    pieces = tokenizer.convert_ids_to_tokens(ids.tolist())
    return [piece for piece, hit in zip(pieces, chosen.tolist(), strict=True) if hit]


def test_all_pieces_of_lexicon_words_and_no_others_are_salient(tokenizer, corpus):
    ids, _ = corpus.pad(range(4))
    salient = lexicon.salient_positions(tokenizer, ids, WORDS)
    first = spelled(tokenizer, ids[0], salient[0])
    assert "".join(piece.removeprefix("##") for piece in first) == "goodunhappilydull"
    assert len(first) > 3  # so a word of several pieces was among them
    assert not salient[1].any()
    third = spelled(tokenizer, ids[2], salient[2])
    assert "".join(piece.removeprefix("##") for piece in third) == "good" * 3
    fourth = spelled(tokenizer, ids[3], salient[3])
    assert "".join(piece.removeprefix("##") for piece in fourth) == "bad"


def test_a_piece_of_a_longer_word_is_not_the_word(tokenizer):
    ids, _ = encode(["goodfilm good"], tokenizer, 48).pad([0])
    hit = spelled(tokenizer, ids[0], lexicon.salient_positions(tokenizer, ids, WORDS)[0])
    assert "".join(piece.removeprefix("##") for piece in hit) == "good"


def test_salience_of_a_corpus_is_that_of_its_batches(tokenizer, corpus, monkeypatch):
    monkeypatch.setattr(lexicon, "CHUNK_ROWS", 3)
    marks = lexicon.salience(corpus, tokenizer, WORDS)
    assert marks.lengths.tolist() == corpus.lengths.tolist()
    expected = lexicon.salient_positions(tokenizer, corpus.pad(range(4))[0], WORDS)
    assert torch.equal(marks.pad(range(4))[0].bool(), expected)


def test_sentences_without_a_lexicon_word_are_dropped(tokenizer, corpus):
    kept, marks = lexicon.with_lexicon_words(corpus, tokenizer, WORDS)
    assert [row.tolist() for row in kept] == [corpus[n].tolist() for n in (0, 2, 3)]
    assert all(row.any() for row in marks)
    with pytest.raises(ValueError, match="none of the 4 sequences holds a word of the lexicon"):
        lexicon.with_lexicon_words(corpus, tokenizer, frozenset({"table"}))


# Rows: 20 maskable with 4 salient; 20 with 1; 20 with none; 20 all salient; nothing maskable.
MASKABLE = torch.ones(5, 20, dtype=torch.bool)
MASKABLE[4] = False
SALIENT = torch.zeros(5, 20, dtype=torch.bool)
SALIENT[0, 3:7] = SALIENT[1, 5] = SALIENT[3] = True


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (UNIFORM, [3.0, 3.0, 3.0, 3.0, 0.0]),
        (CLOZE, [3.0, 1.0, 0.0, 3.0, 0.0]),  # saturated in the second row, nothing in the third
        (GENERIC, [3.0, 3.0, 3.0, 0.0, 0.0]),
    ],
)
def test_expected_number_of_masks(setting, expected):
    chances = lexicon.mask_probabilities(MASKABLE, SALIENT, setting)
    torch.testing.assert_close(chances.sum(1), torch.tensor(expected, dtype=torch.float64))
    assert chances.min() >= 0
    assert chances.max() <= 1


def test_the_formula_by_hand():
    chances = lexicon.mask_probabilities(MASKABLE, SALIENT, CLOZE, 0.15)
    assert chances[0, 3:7].tolist() == pytest.approx([0.15 * 20 / 4] * 4)
    assert chances[1].nonzero().tolist() == [[5]]
    assert chances[1, 5] == 1
    other = lexicon.mask_probabilities(MASKABLE, SALIENT, GENERIC, 0.15)
    assert other[1, 0].item() == pytest.approx(0.15 * 20 / 19)


@pytest.mark.parametrize("setting", SETTINGS)
def test_simulated_counts_lie_within_binomial_bounds(setting):
    generator = torch.Generator().manual_seed(3)
    draws = 4000
    many, marks = MASKABLE.repeat(draws, 1), SALIENT.repeat(draws, 1)
    chosen = lexicon.select_by_lexicon(marks, setting)(many, 0.15, generator)
    rates = chosen.view(draws, 5, 20).double().mean(0)
    chances = lexicon.mask_probabilities(MASKABLE, SALIENT, setting)
    error = (chances * (1 - chances) / draws).sqrt()
    assert ((rates - chances).abs() <= 4.5 * error).all()  # 0 where never, 1 where saturated


@pytest.mark.parametrize("setting", SETTINGS)
def test_batches_never_mask_outside_the_allowed_set(tokenizer, corpus, setting):
    kept, marks = lexicon.with_lexicon_words(corpus, tokenizer, WORDS)
    vocabulary = MaskingVocabulary.from_tokenizer(tokenizer)
    batch_at = lexicon.lexicon_batches(kept, marks, vocabulary, setting, 3, 0)
    masked = 0
    for step in range(30):
        batch = batch_at(step)
        selected = batch.inputs["labels"] != IGNORE_INDEX
        salient = marks.pad(batch.indices)[0].bool()
        original = kept.pad(batch.indices)[0]
        assert torch.equal(batch.inputs["labels"][selected], original[selected])
        assert not (setting == CLOZE and (selected & ~salient).any())
        assert not (setting == GENERIC and (selected & salient).any())
        assert batch.items == int(selected.sum())
        masked += batch.items
    assert masked > 0


def test_batches_are_functions_of_seed_and_step_with_the_same_rows_in_every_setting(
    tokenizer, corpus
):
    kept, marks = lexicon.with_lexicon_words(corpus, tokenizer, WORDS)
    vocabulary = MaskingVocabulary.from_tokenizer(tokenizer)

    def batch(setting, seed, step):
        return lexicon.lexicon_batches(kept, marks, vocabulary, setting, 2, seed)(step)

    again = [batch(UNIFORM, 0, 5).inputs["input_ids"] for _ in range(2)]
    assert torch.equal(*again)
    assert len({batch(setting, 1, 4).indices for setting in SETTINGS}) == 1


def test_it_is_a_selection_for_mask_tokens(tokenizer, corpus):
    ids, attention = corpus.pad(range(4))
    salient = lexicon.salient_positions(tokenizer, ids, WORDS)
    masked = mask_tokens(
        ids, MaskingVocabulary.from_tokenizer(tokenizer), torch.Generator().manual_seed(0), 0.99,
        attention, lexicon.select_by_lexicon(salient, CLOZE), mask=1.0, random=0.0,
    )  # fmt: skip
    assert torch.equal(masked.selected, salient)
    assert (masked.input_ids[salient] == tokenizer.mask_token_id).all()


def test_informative_words_are_those_that_follow_the_label():
    topics = [(0, "court"), (1, "goal"), (2, "bank")]
    texts = [f"The {word} and {n % 7} things" for _, word in topics for n in range(6)]
    labels = [label for label, _ in topics for _ in range(6)]
    assert lexicon.informative_words(texts, labels, 3) == {"court", "goal", "bank"}
    rare = [*texts, *["pelican"] * 4]
    assert "pelican" not in lexicon.informative_words(rare, [*labels, *[0] * 4], 6)
    with pytest.raises(ValueError, match=r"size is 99; it must lie in 1\.\.6"):
        lexicon.informative_words(texts, labels, 99)


def test_lexicon_is_lower_case_and_not_empty():
    assert lexicon.lexicon_of(["Good", " good ", "BAD", ""]) == {"good", "bad"}
    with pytest.raises(ValueError, match="the lexicon is empty"):
        lexicon.lexicon_of(["", " "])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"setting": "cloze"}, "'cloze' is not one of uniform, .*did you mean 'cloze only'"),
        ({"setting": "positive"}, "'positive' is not one of uniform, cloze only, generic only"),
        ({"rate": 0.0}, r"rate must lie in \(0, 1\), got 0.0"),
        ({"rate": 1.0}, r"rate must lie in \(0, 1\), got 1.0"),
        ({"rate": float("nan")}, "got nan"),
        ({"salient": SALIENT[:2]}, r"salient has shape \(2, 20\), maskable \(5, 20\)"),
    ],
    ids=["near", "far", "zero", "one", "nan", "shape"],
)
def test_bad_input(change, reason):
    given = {"maskable": MASKABLE, "salient": SALIENT, "setting": UNIFORM, "rate": 0.15}
    with pytest.raises(ValueError, match=reason):
        lexicon.mask_probabilities(**{**given, **change})


def test_an_unknown_setting_is_refused_before_the_first_batch(tokenizer, corpus):
    vocabulary = MaskingVocabulary.from_tokenizer(tokenizer)
    with pytest.raises(ValueError, match="did you mean 'generic only'"):
        lexicon.lexicon_batches(corpus, corpus, vocabulary, "generic", 2, 0)


def test_equal_expected_numbers_wherever_no_row_is_saturated():
    generator = np.random.default_rng(0)
    maskable = torch.from_numpy(generator.random((200, 30)) < 0.9)
    salient = torch.from_numpy(generator.random((200, 30)) < 0.4) & maskable
    sums = [lexicon.mask_probabilities(maskable, salient, s).sum(1) for s in SETTINGS]
    free = salient.sum(1) >= 0.15 * maskable.sum(1)
    assert free.sum() > 150
    for other in sums[1:]:
        torch.testing.assert_close(other[free], sums[0][free])
