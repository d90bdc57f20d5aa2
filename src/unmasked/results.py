"""Result rows: load committed or cached ones, compute the rest seed by seed, publish.

Rows are found by experiment, configuration and code fingerprint. A seed is written when it is done,
in one step, so a killed run resumes and several processes can share a cache without locks.
Committed rows that other code made are *stale*: they are returned with a message that says so,
neither recomputed nor passed off as current.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pydantic

from unmasked import provenance
from unmasked import rows as schema
from unmasked.fingerprint import fingerprint
from unmasked.project import UserError
from unmasked.rows import RowError, SeedRows
from unmasked.store import (
    Experiment,
    Store,
    begin_recompute,
    cached_seeds,
    committed_seeds,
    config_hash,
)

__all__ = [
    "Experiment", "RowError", "Rows", "Store", "committed_rows", "config_hash", "fingerprint",
    "load_or_compute", "publish",
]  # fmt: skip
Progress = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True)
class Rows:
    """Rows of one experiment and where they came from.

    `origin` is committed, cached, computed or mixed; `message` is a sentence for the page; `runs`
    has one provenance record a seed.
    """

    frame: pd.DataFrame
    origin: str
    stale: bool
    message: str
    runs: pd.DataFrame


def load_or_compute(
    experiment: Experiment,
    config: pydantic.BaseModel,
    *,
    profile: str,
    seeds: Iterable[int],
    recompute: bool = False,
    committed: bool = True,
    store: Store | None = None,
    progress: Progress | None = None,
) -> Rows:
    """Rows of `experiment` for each seed: committed, else cached, else computed and cached.

    `committed=False` leaves the committed rows aside; `recompute=True` also the cached ones (a
    killed recompute goes on where it stopped when it is called again). If a needed seed is
    committed but stale, nothing is computed and what there is is returned with `stale` set.
    `progress` wraps the seeds that are computed, as tqdm does. Raises UserError for seeds that are
    not distinct whole numbers, RowError for rows that break the schema.
    """
    store = store or Store()
    wanted = _checked_call(experiment, config, seeds)
    fresh: dict[int, SeedRows] = {}
    stale: dict[int, SeedRows] = {}
    if committed and not recompute:
        fresh, stale = committed_seeds(experiment, config, profile, wanted, store)
    folder = store.rows_folder(experiment, config)
    token = begin_recompute(experiment, config, wanted, store) if recompute else None
    cached, broken = cached_seeds(folder, [seed for seed in wanted if seed not in fresh], token)
    missing = [seed for seed in wanted if seed not in fresh and seed not in cached]
    left = {seed: stale[seed] for seed in missing if seed in stale}
    computed: dict[int, SeedRows] = {}
    if not left and missing:
        compute = functools.partial(_compute_seed, experiment, config, store=store, token=token)
        for seed in (progress or iter)(missing):
            computed[seed] = compute(seed)
    if token:
        (folder / "recompute.json").unlink(missing_ok=True)
    parts = {"committed": fresh, "cached": cached, "computed": computed, "stale": left}
    if recompute:
        parts |= {"cached": {}, "computed": cached | computed}
    return _assemble(experiment, config, profile, wanted, parts, broken)


def committed_rows(
    experiment: Experiment,
    config: pydantic.BaseModel,
    profile: str,
    seeds: Iterable[int],
    store: Store | None = None,
) -> Rows | None:
    """The committed rows of these seeds, as many as there are; None if there are none.

    Nothing is computed and the cache is not read; `stale` is set if any seed is stale.
    """
    wanted = _checked_call(experiment, config, seeds)
    fresh, stale = committed_seeds(experiment, config, profile, wanted, store or Store())
    if not fresh and not stale:
        return None
    parts = {"committed": fresh, "cached": {}, "computed": {}, "stale": stale}
    return _assemble(experiment, config, profile, wanted, parts, [])


def publish(
    experiment: Experiment,
    config: pydantic.BaseModel,
    profile: str,
    seeds: Iterable[int],
    store: Store | None = None,
) -> Path:
    """Copy finished cached seeds into `results/<experiment>.csv` and `results/runs.csv`.

    Replaces the rows of the same experiment and profile and keeps all others; each file is replaced
    in one step. Raises UserError, and changes nothing, when a seed is not in the cache.
    """
    store = store or Store()
    wanted = _checked_call(experiment, config, seeds)
    cached, _ = cached_seeds(store.rows_folder(experiment, config), wanted, None)
    if missing := [str(seed) for seed in wanted if seed not in cached]:
        raise UserError(
            f"Cannot publish {experiment.name} at profile {profile}: no finished rows of this code "
            f"for seed {', '.join(missing)}. Run `{experiment.command} --profile {profile}`."
        )
    text, records = _stamped(experiment, config, profile, cached)
    runs, table = store.table("runs"), store.table(experiment.name)
    same = (runs["experiment"] == experiment.name) & (runs["profile"] == profile)
    runs = pd.concat([runs[~same], records]).fillna("")
    runs["seed"] = runs["seed"].astype(int)
    runs = runs.sort_values(["experiment", "profile", "seed"], kind="stable")
    table = pd.concat([table[table["profile"] != profile], text]).fillna("")
    table = schema.ordered(table.sort_values("profile", kind="stable"))
    for name, frame in (("runs", runs), (experiment.name, table)):
        path = store.committed / f"{name}.csv"
        schema.write_atomically(path, frame.to_csv(index=False, lineterminator="\n"))
    return store.committed / f"{experiment.name}.csv"


def _checked_call(
    experiment: Experiment, config: pydantic.BaseModel, seeds: Iterable[int]
) -> list[int]:
    """The seeds as a list, after the configuration's type and the seeds have been checked."""
    if not isinstance(config, experiment.config_model):
        raise TypeError(
            f"{experiment.name} needs a {experiment.config_model.__name__} as its configuration, "
            f"not a {type(config).__name__}."
        )
    wanted = list(seeds)
    whole = all(isinstance(seed, int) and not isinstance(seed, bool) for seed in wanted)
    if not wanted or not whole or len(set(wanted)) < len(wanted):
        raise UserError(f"Seeds of {experiment.name} must be distinct whole numbers: {wanted}.")
    return wanted


def _compute_seed(
    experiment: Experiment,
    config: pydantic.BaseModel,
    seed: int,
    *,
    store: Store,
    token: str | None,
) -> SeedRows:
    """Compute one seed and write it, unless another process has finished it meanwhile."""
    folder = store.rows_folder(experiment, config)
    done, _ = cached_seeds(folder, [seed], token)
    if done:
        return done[seed]
    workdir = store.work_folder(experiment, config, seed)
    workdir.mkdir(parents=True, exist_ok=True)
    given = {
        "experiment": experiment.name,
        "config_hash": config_hash(config),
        "seed": seed,
        "config": json.dumps(config.model_dump(mode="json"), sort_keys=True),
        "fingerprint": experiment.fingerprint,
        "data_checksum": experiment.data_checksum(config) if experiment.data_checksum else "",
        "recompute": token or "",
    }
    with provenance.recorded(**given) as record:
        source = f"{experiment.name}, seed {seed}"
        rows = schema.checked(experiment.compute(config, seed, workdir), source)
    path = folder / f"seed-{seed}.csv"
    schema.write_seed(path, record, rows)
    finished = schema.read_seed(path)
    if finished is None:
        raise UserError(f"The cache cannot be written: {path.name} of {experiment.name} is broken.")
    return finished


def _stamped(
    experiment: Experiment,
    config: pydantic.BaseModel,
    profile: str,
    parts: Mapping[int, SeedRows],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows with their schema columns, and the provenance records, both as text cells."""
    frames, records = [], []
    for seed, rows in parts.items():
        text = rows.text.assign(
            experiment=experiment.name,
            profile=profile,
            config_hash=config_hash(config),
            seed=str(seed),
            run_id=rows.record.get("run_id", ""),
        )
        frames.append(text)
        record = {**rows.record, "profile": profile}
        records.append({name: record.get(name, "") for name in provenance.COLUMNS})
    text = schema.ordered(pd.concat(frames, ignore_index=True).fillna(""))
    return text, schema.to_text(records)


def _assemble(
    experiment: Experiment,
    config: pydantic.BaseModel,
    profile: str,
    seeds: Sequence[int],
    parts: Mapping[str, Mapping[int, SeedRows]],
    broken: Sequence[int],
) -> Rows:
    """One typed frame in the order of the seeds, with the sentence that says where it came from."""
    by_seed = {seed: rows for part in parts.values() for seed, rows in part.items()}
    found = {seed: by_seed[seed] for seed in seeds if seed in by_seed}
    text, records = _stamped(experiment, config, profile, found)
    origins = [name for name in ("committed", "cached", "computed") if parts[name]]
    origin = origins[0] if len(origins) == 1 and not parts["stale"] else "mixed"
    if parts["stale"] and not origins:
        origin = "committed"
    mixed = records["data_checksum"].nunique() > 1
    if mixed and not parts["stale"]:
        message = (
            f"Rows of {experiment.name} at profile {profile} are stale: their seeds rest on "
            f"different data; `{experiment.command} --profile {profile} --recompute` renews them."
        )
    else:
        message = _message(experiment, profile, seeds, parts, broken)
    return Rows(schema.typed(text), origin, mixed or bool(parts["stale"]), message, records)


def _message(
    experiment: Experiment,
    profile: str,
    seeds: Sequence[int],
    parts: Mapping[str, Mapping[int, SeedRows]],
    broken: Sequence[int],
) -> str:
    name = f"Rows of {experiment.name} at profile {profile}"
    if parts["stale"]:
        absent = len(seeds) - sum(len(part) for part in parts.values())
        lacking = f" ({absent} of {len(seeds)} seeds are missing)" if absent else ""
        return (
            f"{name} are stale: other code made those of seed {_listed(parts['stale'])}"
            f"{lacking}; `{experiment.command} --profile {profile}` renews them."
        )
    ways = {"committed": "committed", "cached": "read from the cache", "computed": "computed now"}
    said = [f"{ways[key]} (seed {_listed(parts[key])})" for key in ways if parts[key]]
    note = f"; incomplete cached rows of seed {_listed(broken)} were set aside" if broken else ""
    return f"{name}: {', '.join(said)}{note}."


def _listed(seeds: Iterable[int]) -> str:
    return ", ".join(str(seed) for seed in seeds)
