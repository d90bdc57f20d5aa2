"""Checkpoints of a training run: written whole or not at all, refused when they do not belong."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

CHECKPOINT_NAME = "checkpoint.pt"


@dataclass(frozen=True)
class Evaluation:
    """Metrics after `step` updates on `tokens` tokens and `seconds` of training time."""

    step: int
    tokens: int
    seconds: float
    metrics: dict[str, float]


@dataclass(frozen=True)
class Progress:
    """How far a run has come: steps, tokens, training seconds, losses and evaluations."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    losses: tuple[float, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()

    def after(self, loss: float, tokens: int, seconds: float) -> Progress:
        """One step further."""
        return replace(
            self,
            step=self.step + 1,
            tokens=self.tokens + tokens,
            seconds=self.seconds + seconds,
            losses=(*self.losses, loss),
        )

    def evaluated(self, metrics: dict[str, float]) -> Progress:
        """With an evaluation at the present step."""
        point = Evaluation(self.step, self.tokens, self.seconds, metrics)
        return replace(self, evaluations=(*self.evaluations, point))


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds and how it is put back."""

    accelerator: Accelerator
    model: nn.Module
    optimizer: Any
    scheduler: Any
    signature: dict[str, str]

    def save(self, workdir: Path, progress: Progress) -> None:
        """Write `workdir/checkpoint.pt` (main process only): a temporary file, then a rename."""
        if not self.accelerator.is_main_process:
            return
        workdir.mkdir(parents=True, exist_ok=True)
        partial = workdir / f"{CHECKPOINT_NAME}.{os.getpid()}.partial"
        torch.save(
            {
                "signature": self.signature,
                "progress": json.dumps(asdict(progress)),
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
            },
            partial,
        )
        os.replace(partial, workdir / CHECKPOINT_NAME)

    def load(self, workdir: Path) -> Progress:
        """Put a saved state back; fresh progress if there is none.

        Raises ValueError for a file that cannot be read or that belongs to another run.
        """
        path = workdir / CHECKPOINT_NAME
        if not path.exists():
            return Progress()
        try:
            state = torch.load(path, map_location=self.accelerator.device, weights_only=True)
        except Exception as error:
            raise ValueError(f"checkpoint {path} cannot be read ({error}); delete it") from error
        differing = [k for k, v in self.signature.items() if state["signature"].get(k) != v]
        if differing:
            raise ValueError(
                f"checkpoint {path} belongs to another run (differs in {', '.join(differing)}); "
                "delete it or choose another folder"
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        saved = json.loads(state["progress"])
        saved["losses"] = tuple(saved["losses"])
        saved["evaluations"] = tuple(Evaluation(**point) for point in saved["evaluations"])
        return Progress(**saved)


def discard_checkpoint(workdir: Path) -> None:
    """Remove the checkpoint of a finished run; the model it saved elsewhere stays."""
    (workdir / CHECKPOINT_NAME).unlink(missing_ok=True)
