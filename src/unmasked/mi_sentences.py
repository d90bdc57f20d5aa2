"""Sentences as mutual information sees them: ids, the positions that count, and the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from unmasked.masking import MaskingVocabulary

Words = Sequence[str]
NO_LIMIT = 10**9  # tokenizers without a limit of their own state a huge number


@dataclass(frozen=True)
class SentenceInformation:
    """Conditional mutual information of every pair of positions of one sentence.

    The n positions are those that are not special tokens, in order. `information` (n, n) float64,
    nats: [i, j] is the estimate taken from position i's side ("i given j"), 0 on the diagonal and
    outside the window. `captured` (n, n) float64: [i, j] is the probability mass of the values at
    j whose rows entered information[i, j], 1 for `exact`, NaN where nothing was conditioned on.
    `rows`: forward rows that the model really computed. `word_of` (n,) int64: number of the word
    that each position belongs to, of `words` words in all; a word that the tokenizer dropped has
    no position.
    """

    information: np.ndarray
    captured: np.ndarray
    rows: int
    word_of: np.ndarray
    words: int = 0


@dataclass(frozen=True, eq=False)
class Encoded:
    """One sentence as the model reads it: `ids` (L,) int64 on the CPU, special ids included;
    `positions` (n,) int64, where its own tokens stand; `word_of` (n,) int64; `name` for errors."""

    name: str
    ids: Tensor
    positions: Tensor
    word_of: np.ndarray
    words: int

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def identity(self) -> bytes:
        """What distinguishes this sentence: its ids and where its own tokens stand."""
        return self.ids.numpy().tobytes() + b"|" + self.positions.numpy().tobytes()

    def pairs(self, window: int | None) -> list[tuple[int, int]]:
        """Pairs i < j of positions at most `window` apart."""
        reach = len(self) if window is None else window
        return [
            (i, j) for i in range(len(self)) for j in range(i + 1, min(len(self), i + 1 + reach))
        ]


def encode_sentences(
    model: nn.Module,
    vocabulary: PreTrainedTokenizerBase | MaskingVocabulary,
    sentences: Sequence[Words] | Sequence[Tensor],
) -> list[Encoded]:
    """Encode sentences for `conditional_mutual_information`, which states the errors."""
    if isinstance(vocabulary, MaskingVocabulary):
        encoded = [_from_ids(k, ids, vocabulary) for k, ids in enumerate(sentences)]
        limits = [NO_LIMIT]
    else:
        encoded = [_from_words(k, words, vocabulary) for k, words in enumerate(sentences)]
        limits = [vocabulary.model_max_length]
    limits.append(getattr(model.config, "max_position_embeddings", NO_LIMIT))
    for sentence in encoded:
        if len(sentence) == 0:
            raise ValueError(f"{sentence.name} holds no token; give it at least one word")
        if len(sentence.ids) > min(limits):
            raise ValueError(
                f"{sentence.name} has {len(sentence.ids)} tokens, more than the model's "
                f"{min(limits)} positions; leave it out or cut it"
            )
    return encoded


def _from_words(number: int, words: Words, tokenizer: PreTrainedTokenizerBase) -> Encoded:
    if isinstance(words, str):
        raise ValueError(f"sentence {number} is a string; give a list of words (text.split())")
    if not tokenizer.is_fast:
        raise ValueError(
            f"{type(tokenizer).__name__} cannot say which word a piece belongs to; use a fast "
            "tokenizer (AutoTokenizer)"
        )
    name = f"sentence {number} ({' '.join([*words][:6])!r}{' ...' * (len(words) > 6)})"
    if not words:
        raise ValueError(f"sentence {number} holds no token; give it at least one word")
    batch = tokenizer(list(words), is_split_into_words=True)
    numbers = [-1 if word is None else word for word in batch.word_ids(0)]
    word_of = torch.tensor(numbers, dtype=torch.int64)
    positions = (word_of >= 0).nonzero().flatten()
    ids = torch.tensor(batch["input_ids"], dtype=torch.int64)
    return Encoded(name, ids, positions, word_of[positions].numpy(), len(words))


def _from_ids(number: int, ids: Tensor, vocabulary: MaskingVocabulary) -> Encoded:
    ids = torch.as_tensor(ids)
    if ids.dim() != 1 or ids.dtype != torch.int64:
        raise ValueError(
            f"sentence {number} must be a one-dimensional int64 tensor of ids, got {ids.dtype} of "
            f"shape {tuple(ids.shape)}"
        )
    ids = ids.cpu().contiguous()
    if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocabulary.size:
        raise ValueError(f"sentence {number} has ids outside 0..{vocabulary.size - 1}")
    positions = vocabulary.is_ordinary[ids].nonzero().flatten()
    count = len(positions)
    return Encoded(f"sentence {number}", ids, positions, np.arange(count), count)


def to_words(information: SentenceInformation, aggregation: str = "official") -> np.ndarray:
    """Information between words, (W, W) float64, nats, from that between word pieces.

    As the released code of Zhang and Hashimoto (2021) does it: exp, the maximum over the pieces
    of the column's word, the mean over the pieces of the row's word, log. A sentence without a
    split word is passed on unchanged. A word without a piece has zeros; so has the diagonal.
    Raises ValueError for any other aggregation.
    """
    if aggregation != "official":
        raise ValueError(f"unknown aggregation {aggregation!r}; known: official")
    word_of, pieces = information.word_of, information.information
    count = max(information.words, int(word_of.max()) + 1)
    result = np.zeros((count, count))
    if len(np.unique(word_of)) == len(word_of):
        result[np.ix_(word_of, word_of)] = pieces
        return result
    groups = [np.flatnonzero(word_of == word) for word in range(count)]
    powers = np.exp(pieces)
    for row, rows in enumerate(groups):
        for column, columns in enumerate(groups):
            if row != column and len(rows) and len(columns):
                result[row, column] = np.log(powers[np.ix_(rows, columns)].max(1).mean())
    return result


def symmetrise(matrix: np.ndarray, how: str) -> np.ndarray:
    """One value a pair from the two directions of `matrix` (n, n): their max, mean or min.

    "max" is what the official spanning tree silently does. Raises ValueError for another name.
    """
    rules = {
        "max": np.maximum,
        "mean": lambda left, right: (left + right) / 2,
        "min": np.minimum,
    }
    if how not in rules:
        raise ValueError(f"unknown rule {how!r} to symmetrise; known: {', '.join(rules)}")
    return rules[how](matrix, matrix.T)
