"""Chapter 1, the bug gallery: known mistakes of masked-language-modelling code, each as a switch.

They are trained on the random walk, where the least possible loss is known: a bug that makes the
code report a loss below the floor gives itself away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from unmasked import masking
from unmasked.batches import Batch, masked_batches
from unmasked.checkpoints import Evaluation
from unmasked.experiments.walks import (
    MASK,
    NATS,
    SHARE,
    SPECIALS,
    Row,
    WalkConfig,
    exam_of,
    row,
    train_watched,
    walk_sequences,
)
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary
from unmasked.tokens import Sequences
from unmasked.training import History, masked_loss


def mean_before_masking(
    model: nn.Module, inputs: dict[str, torch.Tensor], items: int
) -> torch.Tensor:
    """BUG: the loss is averaged over all positions, then weighted by the mask: weights cancel.

    `items` is not used: the mean over every position takes its place.
    """
    features = {name: value for name, value in inputs.items() if name != "labels"}
    targets = torch.where(inputs["labels"] == IGNORE_INDEX, inputs["input_ids"], inputs["labels"])
    mean = F.cross_entropy(model(**features).logits.flatten(0, 1), targets.flatten())
    weights = (inputs["labels"] != IGNORE_INDEX).float()
    return (mean * weights).sum() / weights.sum()


def padding_in_mean(model: nn.Module, inputs: dict[str, torch.Tensor], items: int) -> torch.Tensor:
    """BUG: the sum over masked positions is divided by the number of all positions, padding too."""
    return masked_loss(model, inputs, inputs["labels"].numel())


def special_tokens_selected(
    rows: Sequences, config: WalkConfig, seed: int
) -> Callable[[int], Batch]:
    """BUG: [CLS] and [SEP], which are always where they are, can be masked and predicted."""
    careless = MaskingVocabulary(config.vocabulary.size, MASK, (0, MASK))
    return masked_batches(rows, careless, config.masking, config.batch_size, seed)


def static_masks(rows: Sequences, config: WalkConfig, seed: int) -> Callable[[int], Batch]:
    """BUG: a sequence is masked once, before training, and seen with that mask in every epoch."""
    at = correct_batches(rows, config, seed)
    once = [
        masked_batches(rows.select([i]), config.vocabulary, config.masking, 1, i)(0).inputs
        for i in range(len(rows))
    ]

    def frozen(step: int) -> Batch:
        batch = at(step)
        length = batch.inputs["input_ids"].shape[1]
        fills = {"input_ids": 0, "attention_mask": 0, "labels": IGNORE_INDEX}
        inputs = {
            name: torch.cat(
                [
                    F.pad(once[i][name], (0, length - once[i][name].shape[1]), value=fill)
                    for i in batch.indices
                ]
            )
            for name, fill in fills.items()
        }
        return replace(batch, inputs=inputs, items=int((inputs["labels"] != IGNORE_INDEX).sum()))

    return frozen


def correct_batches(rows: Sequences, config: WalkConfig, seed: int) -> Callable[[int], Batch]:
    """No bug: fresh masks at every step, ordinary tokens only."""
    return masked_batches(rows, config.vocabulary, config.masking, config.batch_size, seed)


# name -> (batches, loss); the first one is right.
TRAINED_BUGS = {
    "none": (correct_batches, masked_loss),
    "mean before masking": (correct_batches, mean_before_masking),
    "padding in the mean": (correct_batches, padding_in_mean),
    "special tokens selected": (special_tokens_selected, masked_loss),
    "same mask in every epoch": (static_masks, masked_loss),
}


def independent_draws(
    input_ids: torch.Tensor,
    selected: torch.Tensor,
    vocabulary: MaskingVocabulary,
    generator: torch.Generator,
) -> torch.Tensor:
    """BUG: one draw keeps 10 %, a second draw randomises 10 % of what is left: 81/9/10."""
    kept = torch.rand(input_ids.shape, generator=generator) < 0.1
    random = torch.rand(input_ids.shape, generator=generator) < 0.1
    drawn = masking.corrupt(input_ids, selected, vocabulary, generator, mask=0.0, random=1.0)
    masked = torch.where(random, drawn, vocabulary.mask_token_id)
    return torch.where(selected & ~kept, masked, input_ids)


def special_replacements(
    input_ids: torch.Tensor,
    selected: torch.Tensor,
    vocabulary: MaskingVocabulary,
    generator: torch.Generator,
) -> torch.Tensor:
    """BUG: random replacements come from the whole vocabulary, [PAD] and [MASK] included."""
    draw = torch.rand(input_ids.shape, generator=generator)
    anything = torch.randint(vocabulary.size, input_ids.shape, generator=generator)
    replaced = torch.where(draw < 0.8, vocabulary.mask_token_id, anything)
    return torch.where(selected & (draw < 0.9), replaced, input_ids)


CORRUPTIONS = {
    "none": masking.corrupt,
    "independent draws": independent_draws,
    "special replacements": special_replacements,
}


def compute_bug_gallery(config: WalkConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """What each bug makes the code report, and how good the model really is."""
    exam = exam_of(config)
    rows = walk_sequences(config, seed)
    yield row("floor", exam.floor, NATS, len(exam.truth), bug="none")
    for bug, (batches, loss) in TRAINED_BUGS.items():
        folder = workdir / bug.replace(" ", "-")
        _, history = train_watched(config, exam, batches(rows, config, seed), loss, seed, folder)
        for start, stop, point in _windows(history):
            conditions = {"bug": bug, "step": point.step}
            reported = float(np.mean(history.losses[start:stop]))
            yield row("reported_loss", reported, NATS, stop - start, **conditions)
            honest = point.metrics["loss"]
            yield row("loss", honest, NATS, len(exam.truth), **conditions)
            yield row("excess_loss", honest - exam.floor, NATS, len(exam.truth), **conditions)
            gap = reported - exam.floor
            yield row("reported_excess", gap, NATS, stop - start, **conditions)
    yield from _corruption_rows(config, seed)
    yield from _empty_selection_rows(config, seed)


def _corruption_rows(config: WalkConfig, seed: int) -> Iterator[Row]:
    """Shares of [MASK], random and kept tokens, and of special replacements, of half a million."""
    vocabulary = config.vocabulary
    generator = torch.Generator().manual_seed(seed)
    input_ids = torch.randint(SPECIALS, vocabulary.size, (4096, 128), generator=generator)
    allowed = masking.maskable(input_ids, vocabulary)
    for bug, corruption in CORRUPTIONS.items():
        selected = masking.select_bernoulli(allowed, 0.15, generator)
        seen = corruption(input_ids, selected, vocabulary, generator)[selected]
        true = input_ids[selected]
        special = (seen < SPECIALS) & (seen != MASK)
        shares = {"masked": seen == MASK, "kept": seen == true, "special": special}
        shares["random"] = ~(shares["masked"] | shares["kept"])
        for name, where in shares.items():
            yield row(f"{name}_share", float(where.float().mean()), SHARE, len(seen), bug=bug)


def _empty_selection_rows(config: WalkConfig, seed: int) -> Iterator[Row]:
    """How often independent selection leaves a short sequence without any mask: a NaN each time.

    The mean over an empty selection is 0 / 0; at least one mask a row (fixed count) avoids it.
    """
    short = torch.full((4096, config.min_length), SPECIALS, dtype=torch.int64)
    allowed = masking.maskable(short, config.vocabulary)
    for bug, select in (
        ("none", masking.select_fixed_count),
        ("no masked position", masking.select_bernoulli),
    ):
        generator = torch.Generator().manual_seed(seed)
        selected = select(allowed, config.mask_probability, generator)
        losses = torch.where(selected, 1.0, 0.0).sum(1) / selected.sum(1)  # 0 / 0 where none
        share = float(losses.isnan().float().mean())
        yield row("nan_share", share, SHARE, len(short), bug=bug)


def _windows(history: History) -> Iterator[tuple[int, int, Evaluation]]:
    """(first step, last step, evaluation): the training steps between two evaluations."""
    start = 0
    for point in history.evaluations:
        yield start, point.step, point
        start = point.step
