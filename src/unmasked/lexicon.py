"""Masks chosen by a lexicon of words that carry the label of a task.

Zhang and Hashimoto 2021, section 5.1: a mask is *cloze-like* if it hides a word of the task's
lexicon and *generic* if it does not. Three settings differ in where masks may fall; the rate of a
restricted setting is rescaled in each sentence so that its expected number of masks stays that of
uniform masking (formula of their released code).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import chi2
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from unmasked.batches import Batch, batch_indices, step_seed
from unmasked.masking import MaskingVocabulary, Selection, mask_tokens
from unmasked.tokens import Sequences, word_ids

UNIFORM, CLOZE, GENERIC = "uniform", "cloze only", "generic only"
SETTINGS = (UNIFORM, CLOZE, GENERIC)
"""Called baseline, positive and negative in the released code."""

CHUNK_ROWS = 512
MINIMUM_TEXTS = 5


def lexicon_of(words: Iterable[str]) -> frozenset[str]:
    """The words, lower-cased, without white space at the ends; ValueError if none is left."""
    lexicon = frozenset(word.strip().lower() for word in words) - {""}
    if not lexicon:
        raise ValueError("the lexicon is empty: no mask could be cloze-like; give at least a word")
    return lexicon


def informative_words(texts: Sequence[str], labels: Sequence[int], size: int) -> frozenset[str]:
    """The `size` words whose presence depends most on the label, by the chi-square statistic.

    A lexicon for a task that has none (this book's construction). Words are runs of letters, lower
    case, in at least five texts; ties go to the alphabet. Raises ValueError when `size` is below 1
    or fewer words are common enough.
    """
    counter = CountVectorizer(binary=True, token_pattern=r"[^\W\d_]+", min_df=MINIMUM_TEXTS)
    presence = counter.fit_transform(texts)
    words = counter.get_feature_names_out()
    if not 1 <= size <= len(words):
        raise ValueError(
            f"size is {size}; it must lie in 1..{len(words)}, the words to choose from"
        )
    statistic, _ = chi2(presence, np.asarray(labels))
    best = np.argsort(-statistic, kind="stable")[:size]
    return lexicon_of(words[best])


def salient_positions(
    tokenizer: PreTrainedTokenizerBase, input_ids: Tensor, lexicon: frozenset[str]
) -> Tensor:
    """Where a word of the lexicon stands, with all its pieces: (B, L) bool for ids (B, L) int64.

    Words are the tokenizer's own (WordPiece: `##` continues a word), so punctuation is split off
    and case is the tokenizer's; the lexicon is lower case, as in the released code.
    """
    words = word_ids(tokenizer, input_ids)
    columns = input_ids.shape[1]
    places = torch.arange(len(input_ids)).unsqueeze(1) * columns + words
    inside = words >= 0
    pieces = tokenizer.convert_ids_to_tokens(input_ids[inside].tolist())
    keys = places[inside].tolist()
    spelled: dict[int, str] = {}
    for key, piece in zip(keys, pieces, strict=True):
        spelled[key] = spelled.get(key, "") + piece.removeprefix("##")
    found = {key: word in lexicon for key, word in spelled.items()}
    salient = torch.zeros_like(inside)
    salient[inside] = torch.tensor([found[key] for key in keys], dtype=torch.bool)
    return salient


def salience(
    sequences: Sequences, tokenizer: PreTrainedTokenizerBase, lexicon: frozenset[str]
) -> Sequences:
    """`salient_positions` of a whole corpus: 1 and 0 in place of the ids, 0 in the padding."""
    rows: list[np.ndarray] = []
    for start in range(0, len(sequences), CHUNK_ROWS):
        numbers = range(start, min(start + CHUNK_ROWS, len(sequences)))
        salient = salient_positions(tokenizer, sequences.pad(numbers)[0], lexicon).numpy()
        rows.extend(salient[i, : sequences.lengths[n]] for i, n in enumerate(numbers))
    return Sequences.from_lists(rows, pad_id=0)


def with_lexicon_words(
    sequences: Sequences, tokenizer: PreTrainedTokenizerBase, lexicon: frozenset[str]
) -> tuple[Sequences, Sequences]:
    """The sequences that hold a word of the lexicon, and their salience.

    All settings train on these, as in the released code: elsewhere cloze-like masks do not exist.
    Raises ValueError if no sequence is left.
    """
    marks = salience(sequences, tokenizer, lexicon)
    kept = [n for n in range(len(marks)) if marks[n].any()]
    if not kept:
        raise ValueError(
            f"none of the {len(sequences)} sequences holds a word of the lexicon "
            f"({len(lexicon)} words, such as {sorted(lexicon)[0]!r}); is it for this text?"
        )
    return sequences.select(kept), marks.select(kept)


def mask_probabilities(
    maskable: Tensor, salient: Tensor, setting: str, rate: float = 0.15
) -> Tensor:
    """Probability of a mask at each position, (B, L) float64; both arguments (B, L) bool.

    Where masks are allowed it is min(1, rate * n / a), with n maskable and a allowed positions in
    the row, else 0. So a row expects rate * n masks in every setting, unless a < rate * n: then
    every allowed position is masked, and a row without any gets none. Raises ValueError for an
    unknown setting, a rate outside (0, 1), or shapes that differ.
    """
    if not 0 < rate < 1:
        raise ValueError(f"the masking rate must lie in (0, 1), got {rate}")
    if salient.shape != maskable.shape:
        raise ValueError(
            f"salient has shape {tuple(salient.shape)}, maskable {tuple(maskable.shape)}"
        )
    allowed = _allowed(maskable, salient, setting)
    available = maskable.sum(1, keepdim=True).double()
    rescaled = rate * available / allowed.sum(1, keepdim=True).clamp(min=1)
    return rescaled.clamp(max=1.0) * allowed


def select_by_lexicon(salient: Tensor, setting: str) -> Selection:
    """Independent draws with `mask_probabilities`, as a selection for `masking.mask_tokens`."""

    def select(maskable: Tensor, probability: float, generator: torch.Generator) -> Tensor:
        chances = mask_probabilities(maskable, salient, setting, probability)
        return torch.rand(chances.shape, dtype=torch.float64, generator=generator) < chances

    return select


def lexicon_batches(
    sequences: Sequences,
    marks: Sequences,
    vocabulary: MaskingVocabulary,
    setting: str,
    size: int,
    seed: int,
    *,
    rate: float = 0.15,
    mask: float = 0.8,
    random: float = 0.1,
) -> Callable[[int], Batch]:
    """The batch of any step, masked by lexicon: like `batches.masked_batches`, with `marks`.

    `marks` is the salience of `sequences`. Rows of a step are the same in every setting; masks are
    fresh at every step. Raises ValueError, at once, for an unknown setting.
    """
    _check_setting(setting)
    indices_at = batch_indices(sequences.lengths, size, seed)

    def at(step: int) -> Batch:
        indices = indices_at(step)
        input_ids, attention_mask = sequences.pad(indices)
        selection = select_by_lexicon(marks.pad(indices)[0].bool(), setting)
        generator = torch.Generator().manual_seed(step_seed(seed, step))
        masked = mask_tokens(
            input_ids, vocabulary, generator, rate, attention_mask, selection, mask, random
        )
        inputs = {
            "input_ids": masked.input_ids,
            "attention_mask": attention_mask,
            "labels": masked.labels,
        }
        return Batch(inputs, int(masked.selected.sum()), int(attention_mask.sum()), indices)

    return at


def _allowed(maskable: Tensor, salient: Tensor, setting: str) -> Tensor:
    _check_setting(setting)
    return maskable & {
        UNIFORM: torch.ones_like(maskable), CLOZE: salient, GENERIC: ~salient
    }[setting]  # fmt: skip


def _check_setting(setting: str) -> None:
    if setting not in SETTINGS:
        close = difflib.get_close_matches(str(setting), SETTINGS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"setting {setting!r} is not one of {', '.join(SETTINGS)}{hint}")
