"""Word pieces: train a vocabulary, encode texts, keep the result without padding.

A corpus is held as one flat array of ids with offsets (`Sequences`): nothing is padded until a
batch is drawn, and a batch is padded to its own longest row only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, trainers
from tokenizers.models import WordPiece
from transformers import BertTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Sequences:
    """Token sequences of unequal length, stored end to end.

    `ids` is int32 of shape (tokens,), `offsets` int64 of shape (sequences + 1,): sequence i is
    `ids[offsets[i]:offsets[i + 1]]`. `pad_id` fills the batches that `pad` makes.
    """

    ids: np.ndarray
    offsets: np.ndarray
    pad_id: int = 0

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[int]], pad_id: int = 0) -> Sequences:
        """Pack lists of ids; an empty list is refused, since it could never be trained on."""
        arrays = [np.asarray(row, dtype=np.int32) for row in lists]
        empty = [i for i, row in enumerate(arrays) if row.size == 0]
        if empty:
            raise ValueError(f"sequence {empty[0]} is empty; drop empty texts before encoding")
        lengths = np.array([row.size for row in arrays], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        ids = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)
        return cls(ids, offsets, pad_id)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sequence, int64 (sequences,)."""
        return np.diff(self.offsets)

    def select(self, indices: Iterable[int]) -> Sequences:
        """The sequences at `indices`, in that order."""
        return Sequences.from_lists((self[int(i)] for i in indices), self.pad_id)

    def pad(self, indices: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows `indices` as (input_ids, attention_mask), both int64 of shape (rows, longest)."""
        rows = [self[int(i)] for i in indices]
        longest = max(len(row) for row in rows)
        input_ids = np.full((len(rows), longest), self.pad_id, dtype=np.int64)
        attention_mask = np.zeros((len(rows), longest), dtype=np.int64)
        for i, row in enumerate(rows):
            input_ids[i, : len(row)] = row
            attention_mask[i, : len(row)] = 1
        return torch.from_numpy(input_ids), torch.from_numpy(attention_mask)

    def checksum(self) -> str:
        """sha256 of ids and offsets: what a run was trained on, in 64 hex digits."""
        digest = hashlib.sha256(np.ascontiguousarray(self.ids))
        digest.update(np.ascontiguousarray(self.offsets))
        return digest.hexdigest()


def train_tokenizer(
    texts: Iterable[str],
    vocabulary_size: int = 8192,
    *,
    lowercase: bool = True,
    model_max_length: int = 128,
) -> PreTrainedTokenizerBase:
    """Train a WordPiece vocabulary and return it as a transformers fast tokenizer.

    The same texts give the same vocabulary: the trainer of `tokenizers` numbers the one-character
    continuations in hash order, which would break ties differently in each process, so they are
    numbered here first, in sorted order. Sentences are framed as `[CLS] ... [SEP]`. Save with
    `save_pretrained`, load with `AutoTokenizer.from_pretrained`.

    Raises ValueError when `vocabulary_size` leaves no room beside the five special tokens or
    when there is no text.
    """
    if vocabulary_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"vocabulary_size is {vocabulary_size}; it must exceed the "
            f"{len(SPECIAL_TOKENS)} special tokens"
        )
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    texts = list(texts)
    continuations = _continuations(texts, tokenizer)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[*SPECIAL_TOKENS, *continuations],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = tokenizer.get_vocab()
    if len(vocabulary) == len(SPECIAL_TOKENS):
        raise ValueError("no text to train a vocabulary on: every text is empty")
    return BertTokenizer(
        vocab=vocabulary, do_lower_case=lowercase, model_max_length=model_max_length
    )


def encode(
    texts: Iterable[str],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int = 128,
    *,
    split_long: bool = True,
    min_pieces: int = 2,
) -> Sequences:
    """Encode texts as `[CLS] pieces [SEP]` of at most `max_length` ids each.

    A longer text is cut into consecutive sequences (`split_long=True`, for pretraining) or
    truncated (`False`, for classification, where one text must stay one row). When splitting,
    remainders of fewer than `min_pieces` pieces are dropped; when not, a text that yields no
    piece is an error that names it.
    """
    if max_length < 3:
        raise ValueError(f"max_length is {max_length}; [CLS], one piece and [SEP] need at least 3")
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows: list[list[int]] = []
    for number, pieces in enumerate(_pieces(list(texts), tokenizer)):
        if not split_long and not pieces:
            raise ValueError(f"text {number} is empty after tokenisation; drop it first")
        room = max_length - 2
        ends = range(0, len(pieces), room) if split_long else (0,)
        for start in ends:
            part = pieces[start : start + room]
            if len(part) >= (min_pieces if split_long else 1):
                rows.append([first, *part, last])
    return Sequences.from_lists(rows, tokenizer.pad_token_id)


def word_ids(tokenizer: PreTrainedTokenizerBase, input_ids: torch.Tensor) -> torch.Tensor:
    """Number the words of each row of `input_ids` (B, L); -1 at special tokens.

    A piece that begins with `##` belongs to the word before it. Returns int64 (B, L).
    """
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    continues = torch.tensor([piece.startswith("##") for piece in pieces])
    special = torch.zeros(len(pieces), dtype=torch.bool)
    special[list(tokenizer.all_special_ids)] = True
    number = (~continues[input_ids] & ~special[input_ids]).long().cumsum(1) - 1
    return number.masked_fill(special[input_ids], -1)


def _continuations(texts: list[str], tokenizer: Tokenizer) -> list[str]:
    """`##c` for every character c that follows another one inside a word, sorted."""
    words: set[str] = set()
    for text in texts:
        normal = tokenizer.normalizer.normalize_str(text)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    return sorted({f"##{character}" for word in words for character in word[1:]})


def _pieces(texts: list[str], tokenizer: PreTrainedTokenizerBase) -> Iterable[list[int]]:
    """Ids of each text without special tokens; the tokenizer's length warning is kept quiet."""
    bounds = [*range(0, len(texts), 1000), len(texts)]
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        for start, stop in pairwise(bounds):
            batch = tokenizer(texts[start:stop], add_special_tokens=False)
            yield from batch["input_ids"]
    finally:
        transformers_logging.set_verbosity(level)
