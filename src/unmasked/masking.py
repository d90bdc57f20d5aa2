"""Which positions are masked, and what stands there instead.

Two steps, kept apart. A selection says where the loss is taken: a boolean (B, L) tensor. A
corruption says what the model sees at the selected positions: [MASK], a random token, or the token
itself (Devlin et al. 2019, section 3.1: 80, 10 and 10 %). Special tokens and padding are never
selected, and a random token is never a special one.

All tensors are on the CPU, where batches are made; randomness comes only from the generator that
is passed in, so the same generator state gives the same mask and every further call a new one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

IGNORE_INDEX = -100
"""Label of a position that carries no loss, as in ``torch.nn.functional.cross_entropy``."""

Selection = Callable[[Tensor, float, torch.Generator], Tensor]
"""``(maskable (B, L) bool, probability, generator) -> selected (B, L) bool``."""

SPAN_LENGTHS = (1, 2, 3)
SPAN_WEIGHTS = (0.2, 0.2 * 0.8, 0.2 * 0.8**2)
"""Geometric with p = 0.2, cut at 3 (span masking in the code of Chiang and Yogatama 2023)."""


@dataclass(frozen=True)
class MaskingVocabulary:
    """What masking needs to know of a vocabulary.

    ``size`` ids 0..size-1; ``special_ids`` (the mask id among them) are never selected and never
    drawn as random replacements. Raises ValueError if an id is out of range, if the mask id is not
    special, or if no ordinary token is left.
    """

    size: int
    mask_token_id: int
    special_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        outside = [i for i in self.special_ids if not 0 <= i < self.size]
        if outside:
            raise ValueError(f"special_ids {outside} are outside 0..{self.size - 1}")
        if self.mask_token_id not in self.special_ids:
            raise ValueError(f"special_ids {self.special_ids} lack the mask {self.mask_token_id}")
        if len(set(self.special_ids)) == self.size:
            raise ValueError("every id is special: there is no token left to mask")

    @classmethod
    def from_tokenizer(cls, tokenizer) -> MaskingVocabulary:
        """The vocabulary of any transformers tokenizer; ValueError if it has no mask token."""
        if tokenizer.mask_token_id is None:
            raise ValueError(
                f"{type(tokenizer).__name__} has no mask token; set tokenizer.mask_token first"
            )
        special = tuple(sorted({*tokenizer.all_special_ids, tokenizer.mask_token_id}))
        return cls(len(tokenizer), tokenizer.mask_token_id, special)

    @cached_property
    def is_ordinary(self) -> Tensor:
        """(size,) bool, False at the special ids."""
        ordinary = torch.ones(self.size, dtype=torch.bool)
        ordinary[list(self.special_ids)] = False
        return ordinary

    @cached_property
    def ordinary_ids(self) -> Tensor:
        """The ids that are not special, long, ascending."""
        return self.is_ordinary.nonzero().squeeze(1)


@dataclass(frozen=True)
class MaskedBatch:
    """A batch to train on: ``input_ids`` (B, L) long, corrupted; ``labels`` (B, L) long, the
    original token where selected and IGNORE_INDEX elsewhere; ``selected`` (B, L) bool."""

    input_ids: Tensor
    labels: Tensor
    selected: Tensor


def maskable(
    input_ids: Tensor, vocabulary: MaskingVocabulary, attention_mask: Tensor | None = None
) -> Tensor:
    """Where a mask may fall: (B, L) bool, False at special tokens and where attention_mask is 0.

    Raises TypeError unless ``input_ids`` is an int64 tensor on the CPU, ValueError if it is not
    two-dimensional, holds an id outside the vocabulary, or differs in shape from the mask.
    """
    if input_ids.dtype != torch.int64 or input_ids.device.type != "cpu":
        raise TypeError(
            "input_ids must be int64 on the CPU, where masks are drawn (use .long().cpu()); "
            f"got {input_ids.dtype} on {input_ids.device}"
        )
    if input_ids.dim() != 2:
        raise ValueError(f"input_ids must have shape (batch, length), got {tuple(input_ids.shape)}")
    try:
        allowed = vocabulary.is_ordinary.index_select(0, input_ids.reshape(-1)).view_as(input_ids)
    except (IndexError, RuntimeError) as error:
        raise ValueError(
            f"input_ids run from {input_ids.min()} to {input_ids.max()}, "
            f"but the vocabulary has ids 0..{vocabulary.size - 1}"
        ) from error
    if attention_mask is None:
        return allowed
    _check_same_shape("attention_mask", attention_mask, input_ids)
    return allowed & attention_mask.bool()


def select_bernoulli(maskable: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """Each maskable position on its own with ``probability``: (B, L) bool. A row may get none."""
    _check_probability(probability)
    return (torch.rand(maskable.shape, generator=generator) < probability) & maskable


def select_fixed_count(maskable: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """A uniform subset of exactly ``round(probability * n)`` of the n maskable positions of a row.

    At least one where n >= 1, none where n = 0. (B, L) bool. Every position gets a random key that
    no other position of its row has (its low bits are the column), so the smallest keys are an
    exact count without ties. numpy sorts the rows because torch takes thirty times as long.
    """
    length = maskable.shape[1]
    counts = _budget(maskable, probability)
    if maskable.numel() == 0:
        return torch.zeros_like(maskable)
    keys = torch.empty(maskable.shape, dtype=torch.int32).random_(generator=generator)
    column_bits = (1 << (length - 1).bit_length()) - 1
    keys.bitwise_and_(~column_bits).bitwise_or_(torch.arange(length, dtype=torch.int32))
    keys.bitwise_or_(maskable.logical_not().int().mul_(2**31 - 1))  # never among the smallest
    ordered = torch.from_numpy(np.sort(keys.numpy(), axis=1))
    largest = ordered.gather(1, (counts - 1).clamp(min=0).unsqueeze(1))
    return (keys <= largest) & maskable


def select_whole_words(
    maskable: Tensor, word_ids: Tensor, probability: float, generator: torch.Generator
) -> Tensor:
    """Whole words: exactly ``round(probability * words)`` of a row's words, with all their pieces.

    ``word_ids`` (B, L) long, -1 where a position belongs to no word, as a fast tokenizer's
    ``word_ids()`` with None replaced. A word is a run of equal ids, so the ids may start again in
    the second sentence of a pair. (B, L) bool; at least one word where there is one.
    """
    _check_same_shape("word_ids", word_ids, maskable)
    pieces = maskable & (word_ids >= 0)
    if pieces.numel() == 0:
        return pieces
    word = torch.zeros_like(word_ids)  # the word's number in its row: 0, 1, ...
    word[:, 1:] = (word_ids[:, 1:] != word_ids[:, :-1]).cumsum(1)
    has_pieces = torch.zeros_like(word_ids).scatter_add_(1, word, pieces.long()) > 0
    chosen = select_fixed_count(has_pieces, probability, generator)
    return chosen.gather(1, word) & pieces


def select_spans(
    maskable: Tensor,
    probability: float,
    generator: torch.Generator,
    lengths: tuple[int, ...] = SPAN_LENGTHS,
    weights: tuple[float, ...] = SPAN_WEIGHTS,
) -> Tensor:
    """Spans of neighbouring maskable positions, ``round(probability * n)`` positions in a row.

    Each round gives every unfinished row one span: its length drawn from ``lengths`` with
    ``weights``, its start uniform over the places where it fits. A span never leaves a run of
    maskable positions and never overlaps another (two may touch); it is shortened where the budget
    or the room that is left is smaller, so the count is exact. (B, L) bool.
    """
    if len(lengths) != len(weights) or min(lengths, default=0) < 1 or min(weights) < 0:
        raise ValueError(
            f"lengths must be positive and have one weight >= 0 each, got {lengths} and {weights}"
        )
    remaining = _budget(maskable, probability)
    selected = torch.zeros_like(maskable)
    choices, odds = torch.tensor(lengths), torch.tensor(weights, dtype=torch.float64)
    columns = torch.arange(maskable.shape[1])
    while (rows := remaining.nonzero().squeeze(1)).numel():
        room = _room(maskable[rows] & ~selected[rows], max(lengths))
        drawn = choices[torch.multinomial(odds, len(rows), replacement=True, generator=generator)]
        length = drawn.minimum(remaining[rows]).minimum(room.amax(1))
        fits = (room >= length.unsqueeze(1)).cumsum(1)
        draw = torch.rand(len(rows), dtype=torch.float64, generator=generator)
        nth = (draw * fits[:, -1]).long()  # which of the fitting starts
        start = (fits <= nth.unsqueeze(1)).sum(1, keepdim=True)
        selected[rows] |= (columns >= start) & (columns < start + length.unsqueeze(1))
        remaining[rows] -= length
    return selected


def corrupt(
    input_ids: Tensor,
    selected: Tensor,
    vocabulary: MaskingVocabulary,
    generator: torch.Generator,
    mask: float = 0.8,
    random: float = 0.1,
) -> Tensor:
    """What the model sees: (B, L) long, changed only where ``selected``.

    One draw decides for each position: the mask token with probability ``mask``, a token drawn
    uniformly from the ordinary ids with ``random`` (it may be the same token again), else the token
    itself. Raises ValueError unless both are >= 0 and their sum is at most 1.
    """
    if mask < 0 or random < 0 or mask + random > 1 + 1e-9:
        raise ValueError(f"mask and random must be >= 0 and sum to <= 1, got {mask} and {random}")
    places = _places(selected)
    corrupted = input_ids.clone(memory_format=torch.contiguous_format)
    flat = corrupted.view(-1)
    fate = torch.rand(len(places), generator=generator)
    drawn = torch.randint(len(vocabulary.ordinary_ids), (len(places),), generator=generator)
    token = flat.index_select(0, places)
    token = torch.where(fate < mask + random, vocabulary.ordinary_ids.index_select(0, drawn), token)
    flat.scatter_(0, places, token.masked_fill_(fate < mask, vocabulary.mask_token_id))
    return corrupted


def mask_tokens(
    input_ids: Tensor,
    vocabulary: MaskingVocabulary,
    generator: torch.Generator,
    probability: float = 0.15,
    attention_mask: Tensor | None = None,
    selection: str | Selection = "fixed_count",
    mask: float = 0.8,
    random: float = 0.1,
) -> MaskedBatch:
    """Masks a batch of token ids (B, L), which is left as it is.

    ``selection`` is "fixed_count", "bernoulli" or a function of (maskable, probability, generator),
    such as ``select_spans`` or a closure over word ids around ``select_whole_words``. Raises what
    ``maskable`` and ``corrupt`` raise, and ValueError for a probability outside (0, 1], an unknown
    selection, or a function that selects a special token or padding.
    """
    allowed = maskable(input_ids, vocabulary, attention_mask)
    selected = _selection(selection)(allowed, probability, generator)
    if callable(selection):
        _check_selected(selected, allowed)
    places = _places(selected)
    labels = torch.full_like(input_ids, IGNORE_INDEX, memory_format=torch.contiguous_format)
    labels.view(-1).scatter_(0, places, input_ids.reshape(-1).index_select(0, places))
    corrupted = corrupt(input_ids, selected, vocabulary, generator, mask, random)
    return MaskedBatch(corrupted, labels, selected)


def _selection(selection: str | Selection) -> Selection:
    if callable(selection):
        return selection
    known = {"bernoulli": select_bernoulli, "fixed_count": select_fixed_count}
    if selection not in known:
        close = difflib.get_close_matches(str(selection), known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"selection {selection!r} is not {', '.join(known)} or a function{hint}")
    return known[selection]


def _check_selected(selected: Tensor, allowed: Tensor) -> None:
    _check_same_shape("the selection", selected, allowed)
    if selected.dtype != torch.bool:
        raise ValueError(f"the selection must be bool, got {selected.dtype}")
    if (wrong := selected & ~allowed).any():
        raise ValueError(f"the selection took {int(wrong.sum())} special or padded positions")


def _check_same_shape(name: str, tensor: Tensor, batch: Tensor) -> None:
    if tensor.shape != batch.shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {tuple(batch.shape)}")


def _check_probability(probability: float) -> None:
    if not 0 < probability <= 1:
        raise ValueError(f"probability must lie in (0, 1], got {probability}")


def _budget(maskable: Tensor, probability: float) -> Tensor:
    """(B,) long: round(probability * n), halves to even, at least 1 where n >= 1."""
    _check_probability(probability)
    count = maskable.sum(1, dtype=torch.int32)  # six times as fast as a sum in int64
    return (count.double() * probability).round().maximum(count.clamp(max=1)).long()


def _room(free: Tensor, longest: int) -> Tensor:
    """(B, L) long: how many positions from here on are free without a gap, at most ``longest``."""
    run = free.clone()
    room = free.long()
    for shift in range(1, min(longest, free.shape[1])):
        run[:, :-shift] &= free[:, shift:]
        run[:, -shift:] = False
        room += run
    return room


def _places(selected: Tensor) -> Tensor:
    """Flat indices of the selected positions, long (numpy's search is five times torch's)."""
    return torch.from_numpy(np.flatnonzero(selected.numpy()))
