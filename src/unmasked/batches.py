"""Batches as pure functions of (data, seed, step): which rows, which masks.

The rows and masks of step s come from generators seeded by (seed, s), so any step can be made
again: a resumed run sees the batches that the uninterrupted one saw, and several processes can
each take their slice of the same global batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import torch

from unmasked.masking import MaskingVocabulary, mask_tokens
from unmasked.tokens import Sequences

BATCHES_PER_BUCKET = 16


@dataclass(frozen=True)
class Masking:
    """How positions are chosen and corrupted; see `unmasked.masking.mask_tokens`."""

    probability: float = 0.15
    selection: str = "fixed_count"
    mask: float = 0.8
    random: float = 0.1


EVALUATION_MASKING = Masking(mask=1.0, random=0.0)


@dataclass(frozen=True)
class Batch:
    """A global batch: model inputs (rows first), how many loss terms it holds, its tokens."""

    inputs: dict[str, torch.Tensor]
    items: int
    tokens: int
    indices: tuple[int, ...] = ()


def step_seed(seed: int, step: int) -> int:
    """A 63-bit seed for step `step` of run `seed`; distinct pairs give unrelated streams."""
    state = np.random.SeedSequence([seed, step]).generate_state(2, np.uint32)
    return int(state[0]) << 31 | int(state[1]) >> 1


def epoch_batches(
    lengths: np.ndarray, batch_size: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Shuffle row numbers into batches of rows of similar length.

    Rows are shuffled, cut into buckets of 16 batches, sorted by length inside a bucket, cut into
    batches, and the batches shuffled. Rows that do not fill a last batch sit out this epoch,
    unless they are all there is.
    """
    order = generator.permutation(len(lengths))
    if len(order) <= batch_size:
        return [order]
    order = order[: len(order) // batch_size * batch_size]
    bucket = batch_size * BATCHES_PER_BUCKET
    batches: list[np.ndarray] = []
    for start in range(0, len(order), bucket):
        part = order[start : start + bucket]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches.extend(np.split(part, len(part) // batch_size))
    return [batches[i] for i in generator.permutation(len(batches))]


def batch_indices(
    lengths: np.ndarray, batch_size: int, seed: int
) -> Callable[[int], tuple[int, ...]]:
    """Row numbers of the batch of any step, epoch after epoch, as a function of the step."""
    if len(lengths) == 0:
        raise ValueError("no sequence to train on")
    per_epoch = max(1, len(lengths) // batch_size)

    @lru_cache(maxsize=1)
    def epoch(number: int) -> list[np.ndarray]:
        return epoch_batches(lengths, batch_size, np.random.default_rng([seed, number]))

    def at(step: int) -> tuple[int, ...]:
        number, within = divmod(step, per_epoch)
        return tuple(int(i) for i in epoch(number)[within])

    return at


def masked_batches(
    sequences: Sequences, vocabulary: MaskingVocabulary, masking: Masking, size: int, seed: int
) -> Callable[[int], Batch]:
    """The masked batch of any step: fresh masks at every step, the same for the same seed."""
    indices_at = batch_indices(sequences.lengths, size, seed)

    def at(step: int) -> Batch:
        indices = indices_at(step)
        input_ids, attention_mask = sequences.pad(indices)
        generator = torch.Generator().manual_seed(step_seed(seed, step))
        masked = mask_tokens(
            input_ids, vocabulary, generator, attention_mask=attention_mask, **asdict(masking)
        )
        inputs = {
            "input_ids": masked.input_ids,
            "attention_mask": attention_mask,
            "labels": masked.labels,
        }
        return Batch(inputs, int(masked.selected.sum()), int(attention_mask.sum()), indices)

    return at


def masked_evaluation_set(
    sequences: Sequences,
    vocabulary: MaskingVocabulary,
    masking: Masking = EVALUATION_MASKING,
    *,
    seed: int = 0,
    size: int = 64,
) -> list[Batch]:
    """Every sequence once, in order of length, with masks that are the same at every evaluation.

    The default masks are pure ([MASK] at each selected position), so that a loss on them
    estimates the cross-entropy of the masked token given the visible ones.
    """
    order = np.argsort(sequences.lengths, kind="stable")
    batches = []
    for number, start in enumerate(range(0, len(order), size)):
        rows = sequences.select(order[start : start + size])
        batches.append(masked_batches(rows, vocabulary, masking, size, seed + number)(0))
    return batches


def labelled_batches(
    sequences: Sequences, labels: np.ndarray, size: int, seed: int
) -> Callable[[int], Batch]:
    """The batch of any step of a classification task; `labels` is int64 (sequences,)."""
    indices_at = batch_indices(sequences.lengths, size, seed)

    def at(step: int) -> Batch:
        indices = indices_at(step)
        input_ids, attention_mask = sequences.pad(indices)
        inputs = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "labels": torch.from_numpy(labels[list(indices)]),
        }
        return Batch(inputs, len(indices), int(attention_mask.sum()), indices)

    return at
