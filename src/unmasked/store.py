"""Where rows are kept: the committed tables and the cache of finished seeds."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pydantic

from unmasked import project, provenance
from unmasked import rows as schema
from unmasked.fingerprint import fingerprint
from unmasked.project import UserError
from unmasked.rows import SeedRows


@dataclass(frozen=True)
class Experiment:
    """How a configuration becomes rows.

    `config_model` is a strict, frozen pydantic model. `compute(config, seed, workdir)` yields
    dictionaries with metric, value, unit, n and any condition columns; `workdir` exists, belongs to
    this seed and outlives a killed run, so checkpoints may be kept in it. `data_checksum(config)`
    names the data that the rows rest on; seeds on different data are stale together. `chapter` is
    filled in by `profiles.resolve`.
    """

    name: str
    config_model: type[pydantic.BaseModel]
    compute: Callable[[Any, int, Path], Iterable[Mapping[str, Any]]]
    data_checksum: Callable[[Any], str] | None = None
    chapter: str = ""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the code that makes the rows, the configuration's class included.

        Where a checksum pins the data, the code that brings and reads them is left out: a new
        source must not make the rows of others stale.
        """
        without = ("unmasked.data",) if self.data_checksum else ()
        return _fingerprint(self.compute, self.config_model, without)

    @property
    def command(self) -> str:
        """The start of the shell command that recomputes this experiment."""
        return f"unmasked reproduce {self.chapter or 'CHAPTER'} --experiment {self.name}"


@functools.cache
def _fingerprint(
    compute: Callable[..., Any], config_model: type[pydantic.BaseModel], without: tuple[str, ...]
) -> str:
    """Taken once: a chapter that is resolved again makes new Experiments of the same code."""
    return fingerprint(compute, config_model, without=without)


@dataclass(frozen=True)
class Store:
    """Two folders: the committed rows, and the cache (its subfolders `rows` and `work`)."""

    committed: Path = field(default_factory=lambda: project.root() / "results")
    cache: Path = field(default_factory=project.cache)

    def table(self, name: str) -> pd.DataFrame:
        """A committed table as text cells, `runs` or an experiment's; empty if there is none."""
        path = self.committed / f"{name}.csv"
        columns = provenance.COLUMNS if name == "runs" else (*schema.FIRST, *schema.LAST)
        if not path.is_file():
            return pd.DataFrame(columns=list(columns), dtype=str)
        frame = schema.read_text(path.read_text(encoding="utf-8"))
        if missing := [column for column in columns if column not in frame]:
            raise UserError(f"{path.name} in results lacks the columns {', '.join(missing)}.")
        return frame

    def rows_folder(self, experiment: Experiment, config: pydantic.BaseModel) -> Path:
        """Where the seeds of this experiment, configuration and code are kept."""
        return self.cache / "rows" / experiment.name / _key(experiment, config)

    def work_folder(self, experiment: Experiment, config: pydantic.BaseModel, seed: int) -> Path:
        """The folder that `compute` gets for checkpoints; not created here."""
        return self.cache / "work" / experiment.name / _key(experiment, config) / f"seed-{seed}"


def config_hash(config: pydantic.BaseModel) -> str:
    """12 hex digits that change when any field of the configuration does."""
    text = json.dumps(config.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _key(experiment: Experiment, config: pydantic.BaseModel) -> str:
    return f"{config_hash(config)}-{experiment.fingerprint}"


def committed_seeds(
    experiment: Experiment,
    config: pydantic.BaseModel,
    profile: str,
    seeds: Sequence[int],
    store: Store,
) -> tuple[dict[int, SeedRows], dict[int, SeedRows]]:
    """Committed rows of this profile and configuration by seed: of this code, and of other code."""
    table = store.table(experiment.name)
    table = table[(table["profile"] == profile) & (table["config_hash"] == config_hash(config))]
    runs = store.table("runs")
    runs = runs[(runs["experiment"] == experiment.name) & (runs["profile"] == profile)]
    records = {record["run_id"]: record for record in runs.to_dict("records")}
    fresh: dict[int, SeedRows] = {}
    stale: dict[int, SeedRows] = {}
    for seed in seeds:
        text = table[table["seed"] == str(seed)]
        if text.empty:
            continue
        made = [records.get(run_id, {}) for run_id in text["run_id"].unique()]
        current = all(record.get("fingerprint") == experiment.fingerprint for record in made)
        (fresh if current else stale)[seed] = SeedRows(made[0], text)
    return fresh, stale


def cached_seeds(
    folder: Path, seeds: Iterable[int], token: str | None
) -> tuple[dict[int, SeedRows], list[int]]:
    """Finished seeds of a folder (of one recompute if a token is given), and the broken ones."""
    found: dict[int, SeedRows] = {}
    broken: list[int] = []
    for seed in seeds:
        path = folder / f"seed-{seed}.csv"
        rows = schema.read_seed(path)
        if rows is None and path.exists():
            broken.append(seed)
        elif rows is not None and (token is None or rows.record.get("recompute") == token):
            found[seed] = rows
    return found, broken


def begin_recompute(
    experiment: Experiment, config: pydantic.BaseModel, seeds: Sequence[int], store: Store
) -> str:
    """The token of the recompute in progress, a new one if there is none.

    Seeds that join a recompute lose their work folder, so that no old checkpoint is resumed.
    """
    path = store.rows_folder(experiment, config) / "recompute.json"
    try:
        marker = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        marker = {"token": uuid.uuid4().hex, "seeds": []}
    for seed in set(seeds).difference(marker["seeds"]):
        shutil.rmtree(store.work_folder(experiment, config, seed), ignore_errors=True)
    marker["seeds"] = sorted({*seeds, *marker["seeds"]})
    schema.write_atomically(path, json.dumps(marker))
    return marker["token"]
