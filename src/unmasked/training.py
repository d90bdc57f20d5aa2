"""Pretraining and fine-tuning on Accelerate: one loop for a CPU, a GPU or several processes.

A run is a pure function of (data, recipe, seed). The batch of step s, its masks and its dropout
noise are drawn from generators seeded by (seed, s), so that a run resumed from a checkpoint at
step s continues exactly as if it had never stopped, and so that several processes, which each
take their slice of the same global batch, follow the loss curve of a single one.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.nn import functional as F
from tqdm import tqdm
from transformers import get_linear_schedule_with_warmup

from unmasked.batches import Batch, Masking, batch_indices, masked_batches, step_seed
from unmasked.checkpoints import Checkpoint, Evaluation, Progress
from unmasked.evaluation import evaluate_classifier, evaluate_masked
from unmasked.masking import MaskingVocabulary
from unmasked.tokens import Sequences

Loss = Callable[[nn.Module, dict[str, torch.Tensor], int], torch.Tensor]
"""`(model, inputs, items)` -> the sum of these rows' losses over the items of the global batch."""


@dataclass(frozen=True)
class Recipe:
    """Optimisation: AdamW, linear warm-up and decay. `batch_size` counts sequences, globally.

    `warmup` is a share of `steps`; `evaluations` are spread evenly and include the last step;
    `checkpoint_every` counts steps, 0 for none.
    """

    steps: int
    batch_size: int = 32
    learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    beta2: float = 0.98
    clip_norm: float = 1.0
    evaluations: int = 10
    checkpoint_every: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "evaluations"):
            if getattr(self, name) < 1:
                raise ValueError(f"Recipe.{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"Recipe.warmup is {self.warmup}; it is a share in [0, 1)")


@dataclass(frozen=True)
class Execution:
    """Where and how the arithmetic runs; none of it changes what is computed."""

    cpu: bool = False
    bf16: bool = False
    compile: bool = False


@dataclass(frozen=True)
class History:
    """The evaluations of a run and the training loss of every step, in nats."""

    evaluations: tuple[Evaluation, ...] = ()
    losses: tuple[float, ...] = field(default=(), repr=False)

    @property
    def last(self) -> Evaluation:
        """The evaluation after the last step."""
        return self.evaluations[-1]

    @property
    def tokens_per_second(self) -> float:
        """Training throughput, evaluation time left out."""
        return self.last.tokens / self.last.seconds


class NonFiniteLossError(RuntimeError):
    """The loss became NaN or infinite; the message names the step and the sequences."""


def masked_loss(model: nn.Module, inputs: dict[str, torch.Tensor], items: int) -> torch.Tensor:
    """Sum of the masked cross-entropy of these rows over the masked positions of the batch."""
    return model(**inputs, num_items_in_batch=max(items, 1)).loss


def classification_loss(
    model: nn.Module, inputs: dict[str, torch.Tensor], items: int
) -> torch.Tensor:
    """Sum of the cross-entropy of these rows over the rows of the global batch."""
    features = {name: value for name, value in inputs.items() if name != "labels"}
    return F.cross_entropy(model(**features).logits, inputs["labels"], reduction="sum") / items


def pretrain(
    model: nn.Module,
    sequences: Sequences,
    validation: Sequence[Batch],
    vocabulary: MaskingVocabulary,
    recipe: Recipe,
    *,
    masking: Masking,
    seed: int,
    workdir: Path | None = None,
    execution: Execution | None = None,
    loss: Loss = masked_loss,
) -> History:
    """Train `model` in place with the masked-language-modelling objective.

    With a `workdir` the run leaves checkpoints there and, started again with the same arguments,
    continues from the last one. `validation` comes from `masked_evaluation_set`.
    """
    return fit(
        model,
        masked_batches(sequences, vocabulary, masking, recipe.batch_size, seed),
        recipe,
        loss=loss,
        evaluate=lambda current: evaluate_masked(current, validation),
        seed=seed,
        signature={"data": sequences.checksum(), "masking": asdict(masking)},
        workdir=workdir,
        execution=execution or Execution(),
    )


def finetune(
    model: nn.Module,
    sequences: Sequences,
    labels: np.ndarray,
    validation: tuple[Sequences, np.ndarray],
    recipe: Recipe,
    *,
    seed: int,
    workdir: Path | None = None,
    execution: Execution | None = None,
) -> History:
    """Train a sequence classifier in place; `labels` is int64 (sequences,).

    The last weights are the result: nothing is selected on `validation`, which is only watched.
    Raises ValueError on labels that do not fit the sequences or the model's `num_labels`.
    """
    _check_labels(labels, len(sequences), model.config.num_labels)
    _check_labels(validation[1], len(validation[0]), model.config.num_labels)
    indices_at = batch_indices(sequences.lengths, recipe.batch_size, seed)

    def batch_at(step: int) -> Batch:
        indices = indices_at(step)
        input_ids, attention_mask = sequences.pad(indices)
        inputs = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "labels": torch.from_numpy(labels[list(indices)]),
        }
        return Batch(inputs, len(indices), int(attention_mask.sum()), indices)

    return fit(
        model,
        batch_at,
        recipe,
        loss=classification_loss,
        evaluate=lambda current: evaluate_classifier(current, *validation),
        seed=seed,
        signature={"data": sequences.checksum(), "labels": labels.tolist()},
        workdir=workdir,
        execution=execution or Execution(),
    )


def fit(
    model: nn.Module,
    batch_at: Callable[[int], Batch],
    recipe: Recipe,
    *,
    loss: Loss,
    evaluate: Callable[[nn.Module], dict[str, float]],
    seed: int,
    signature: dict[str, Any],
    workdir: Path | None,
    execution: Execution,
) -> History:
    """The training loop: `loss` on `batch_at(step)` for each step, `evaluate` now and then.

    Raises NonFiniteLossError, before the weights are touched, when the loss is NaN or infinite.
    """
    accelerator = Accelerator(cpu=execution.cpu)
    wrapped, optimizer = accelerator.prepare(model, _optimizer(model, recipe))
    wrapped = torch.compile(wrapped) if execution.compile else wrapped
    scheduler = _schedule(optimizer, recipe)
    signed = _signed(recipe, seed, model, signature)
    checkpoint = Checkpoint(accelerator, model, optimizer, scheduler, signed)
    progress = checkpoint.load(workdir) if workdir is not None else Progress()
    bar = tqdm(total=recipe.steps, initial=progress.step, disable=None, leave=False, unit="step")
    due = {round((i + 1) * recipe.steps / recipe.evaluations) for i in range(recipe.evaluations)}
    with torch.random.fork_rng(), bar:
        while progress.step < recipe.steps:
            started = time.perf_counter()
            batch = batch_at(progress.step)
            torch.manual_seed(step_seed(seed, progress.step) + accelerator.process_index)
            wrapped.train()
            with torch.autocast(accelerator.device.type, torch.bfloat16, enabled=execution.bf16):
                value = loss(wrapped, _slice(batch, accelerator), batch.items)
            whole = float(accelerator.reduce(value.detach(), reduction="sum"))
            if not math.isfinite(whole):
                raise NonFiniteLossError(_non_finite(whole, progress.step, batch))
            # DDP averages gradients over processes; the loss is already a share of the whole.
            accelerator.backward(value * accelerator.num_processes)
            accelerator.clip_grad_norm_(wrapped.parameters(), recipe.clip_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            progress = progress.after(whole, batch.tokens, time.perf_counter() - started)
            if progress.step in due:
                progress = progress.evaluated(evaluate(model))
            bar.update()
            if workdir is not None and _checkpoint_due(recipe, progress.step):
                checkpoint.save(workdir, progress)
    return History(progress.evaluations, progress.losses)


def learning_rates(recipe: Recipe) -> list[float]:
    """The learning rate of every step, for a figure: linear warm-up, then linear decay to 0."""
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([parameter], lr=recipe.learning_rate)
    scheduler = _schedule(optimizer, recipe)
    rates = []
    for _ in range(recipe.steps):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return rates


def _signed(
    recipe: Recipe, seed: int, model: nn.Module, signature: dict[str, Any]
) -> dict[str, str]:
    shapes = {name: list(value.shape) for name, value in model.state_dict().items()}
    parts = {**asdict(recipe), "seed": seed, "model": shapes, **signature}
    return {name: json.dumps(value, sort_keys=True) for name, value in parts.items()}


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW; biases and LayerNorm gains are not decayed."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=recipe.learning_rate, betas=(0.9, recipe.beta2), eps=1e-6, fused=True
    )


def _schedule(
    optimizer: torch.optim.Optimizer, recipe: Recipe
) -> torch.optim.lr_scheduler.LRScheduler:
    warmup = round(recipe.warmup * recipe.steps)
    return get_linear_schedule_with_warmup(optimizer, warmup, recipe.steps)


def _slice(batch: Batch, accelerator: Accelerator) -> dict[str, torch.Tensor]:
    """This process's rows of a global batch, on its device."""
    count = accelerator.num_processes
    rows = next(iter(batch.inputs.values())).shape[0]
    if rows < count:
        raise ValueError(f"a batch of {rows} rows cannot be shared by {count} processes")
    part = slice(accelerator.process_index, None, count)
    return {name: value[part].to(accelerator.device) for name, value in batch.inputs.items()}


def _checkpoint_due(recipe: Recipe, step: int) -> bool:
    every = recipe.checkpoint_every
    return every > 0 and (step % every == 0 or step == recipe.steps)


def _non_finite(value: float, step: int, batch: Batch) -> str:
    shown = ", ".join(str(i) for i in batch.indices[:8])
    more = f" and {len(batch.indices) - 8} more" if len(batch.indices) > 8 else ""
    return (
        f"loss is {value} at step {step} (sequences {shown}{more}); "
        "lower the learning rate or look for empty or corrupt sequences"
    )


def _check_labels(labels: np.ndarray, count: int, classes: int) -> None:
    if len(labels) != count:
        raise ValueError(f"{len(labels)} labels for {count} sequences")
    outside = [int(label) for label in labels if not 0 <= label < classes]
    if outside:
        raise ValueError(
            f"label {outside[0]} is outside 0..{classes - 1}; "
            "a split with hidden labels (-1) cannot be used here"
        )
