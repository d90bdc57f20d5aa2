"""A chapter with one parameter of each kind, for the tests of profiles, the command line and book.

It stands in for `unmasked.experiments.<chapter>`; `install` puts it there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from unmasked import project
from unmasked.results import Experiment

CALLS: list[int] = []


class Strict(pydantic.BaseModel):
    """Strict, frozen and closed, as every configuration is."""

    model_config = pydantic.ConfigDict(strict=True, frozen=True, extra="forbid")


class Config(Strict):
    """Configuration of `losses`."""

    steps: Annotated[int, pydantic.Field(ge=1, le=1000)] = 10
    learning_rate: Annotated[float, pydantic.Field(gt=0)] = 1e-3
    selection: Literal["fixed_count", "bernoulli"] = "fixed_count"
    widths: tuple[int, ...] = (8,)


class Parameters(Strict):
    """Parameters of the chapter."""

    profile: str = "laptop"
    seed: int = 0
    recompute: bool = False
    steps: int | None = None
    learning_rate: float | None = None


def compute(config, seed, workdir):
    """Loss falls with the seed; the control does not."""
    CALLS.append(seed)
    for width in config.widths:
        common = {"width": width, "unit": "nats", "n": config.steps}
        yield {**common, "metric": "loss", "arm": "model", "value": 2.0 - 0.01 * seed}
        yield {**common, "metric": "loss", "arm": "control", "value": 4.0 + 0.01 * seed}
        yield {**common, "metric": "time", "arm": "model", "unit": "s", "value": 1.0 + seed}


EXPERIMENTS = {
    "losses": Experiment("losses", Config, compute),
    "extras": Experiment("extras", Config, compute),
}

PROFILES = """
toy:
  smoke:
    device: two CPU cores
    minutes: 1
    memory_gb: 2
    seeds: [0]
    experiments:
      losses: {steps: 2}
  laptop:
    device: two CPU cores
    minutes: 12.5
    memory_gb: 2
    seeds: [0, 1, 2]
    experiments:
      losses: {steps: 20, learning_rate: 1e-3, widths: [8, 16]}
      extras: {steps: 5}
"""


def install(monkeypatch, folder: Path) -> Path:
    """Make `toy` the only chapter, in a project of its own in `folder`; returns that folder."""
    CALLS.clear()
    (folder / "book").mkdir()
    (folder / "book" / "profiles.yml").write_text(PROFILES)
    monkeypatch.setitem(sys.modules, "unmasked.experiments.toy", sys.modules[__name__])
    monkeypatch.setattr(project, "root", lambda: folder)
    monkeypatch.setenv("UNMASKED_CACHE", str(folder / "cache"))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    return folder
