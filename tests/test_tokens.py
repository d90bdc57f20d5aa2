import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from unmasked.tokens import SPECIAL_TOKENS, Sequences, encode, train_tokenizer, word_ids

TEXTS = ["The cat sat on the mat.", "Playing cats unplayably sat, playing.", "A dog!"] * 5


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, 60)


def test_special_tokens_come_first_and_ids_are_dense(tokenizer):
    assert tokenizer.convert_ids_to_tokens(range(5)) == list(SPECIAL_TOKENS)
    assert sorted(tokenizer.get_vocab().values()) == list(range(len(tokenizer)))


def test_the_same_texts_give_the_same_vocabulary(tokenizer):
    assert train_tokenizer(TEXTS, 60).get_vocab() == tokenizer.get_vocab()


def test_size_is_respected():
    assert len(train_tokenizer(TEXTS, 40)) == 40


def test_lower_case_is_a_choice():
    assert "T" in train_tokenizer(TEXTS, 80, lowercase=False).get_vocab()
    assert "T" not in train_tokenizer(TEXTS, 80).get_vocab()


def test_round_trip_through_transformers(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert loaded(TEXTS)["input_ids"] == tokenizer(TEXTS)["input_ids"]


@pytest.mark.parametrize("size", [0, 5])
def test_a_vocabulary_without_room_is_refused(size):
    with pytest.raises(ValueError, match="must exceed the 5 special tokens"):
        train_tokenizer(TEXTS, size)


def test_no_text_is_refused():
    with pytest.raises(ValueError, match="every text is empty"):
        train_tokenizer(["", "  "], 60)


def test_encoding_agrees_with_the_tokenizer(tokenizer):
    rows = encode(TEXTS, tokenizer, 64)
    assert [row.tolist() for row in rows] == tokenizer(TEXTS)["input_ids"]


def test_long_texts_are_cut_without_losing_a_piece(tokenizer):
    text = " ".join(TEXTS)
    pieces = tokenizer(text, add_special_tokens=False)["input_ids"]
    rows = encode([text], tokenizer, 10, min_pieces=1)
    assert max(rows.lengths) == 10
    assert [i for row in rows for i in row[1:-1]] == pieces
    assert all(row[0] == 2 and row[-1] == 3 for row in rows)


def test_truncation_keeps_one_row_a_text(tokenizer):
    rows = encode(TEXTS, tokenizer, 6, split_long=False)
    assert len(rows) == len(TEXTS)
    assert max(rows.lengths) == 6


def test_short_remainders_are_dropped_when_splitting(tokenizer):
    assert len(encode(["cat", "the cat sat"], tokenizer, 64, min_pieces=2)) == 1


def test_an_empty_text_is_named_where_rows_must_match_labels(tokenizer):
    with pytest.raises(ValueError, match="text 1 is empty"):
        encode(["cat", " "], tokenizer, 16, split_long=False)


def test_max_length_must_hold_a_piece(tokenizer):
    with pytest.raises(ValueError, match="max_length is 2"):
        encode(["cat"], tokenizer, 2)


def test_padding_pads_to_the_longest_row_only():
    rows = Sequences.from_lists([[2, 7, 3], [2, 3], [2, 7, 8, 9, 3]])
    ids, mask = rows.pad([1, 0])
    assert ids.tolist() == [[2, 3, 0], [2, 7, 3]]
    assert mask.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert ids.dtype == torch.int64


def test_select_and_checksum_follow_content():
    rows = Sequences.from_lists([[2, 7, 3], [2, 3]])
    assert [row.tolist() for row in rows.select([1])] == [[2, 3]]
    assert rows.checksum() == Sequences.from_lists([[2, 7, 3], [2, 3]]).checksum()
    assert rows.checksum() != Sequences.from_lists([[2, 7], [3, 2, 3]]).checksum()


def test_an_empty_sequence_is_refused():
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        Sequences.from_lists([[1], []])


def test_word_ids_agree_with_the_fast_tokenizer(tokenizer):
    batch = tokenizer(TEXTS[:3], padding=True)
    ours = word_ids(tokenizer, torch.tensor(batch["input_ids"]))
    for row in range(3):
        theirs = [-1 if w is None else w for w in batch.word_ids(row)]
        assert ours[row].tolist() == theirs
    assert np.max(ours.numpy()) > 3
