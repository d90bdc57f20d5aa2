"""Models that experiments save: from the cache into `results/checkpoints`, and found again.

An experiment that trains a model worth keeping leaves it in `workdir / "model"`. Published beside
the rows, it carries a record of the configuration, seed and code that made it, so that a model of
another run is never taken for it.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

import pydantic

from unmasked.project import UserError
from unmasked.store import Experiment, Store, config_hash

FOLDER = "model"
RECORD = "unmasked.json"


def publish_model(
    experiment: Experiment, config: pydantic.BaseModel, seed: int, store: Store | None = None
) -> Path | None:
    """Copy the model that this seed saved to `results/checkpoints/<experiment>`; None if none.

    The folder there is replaced only when the copy is whole.
    """
    store = store or Store()
    source = store.work_folder(experiment, config, seed) / FOLDER
    if not source.is_dir():
        return None
    place = store.committed / "checkpoints" / experiment.name
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f".{place.name}-{uuid.uuid4().hex}")
    shutil.copytree(source, partial)
    record = {**_identity(experiment, config, seed), "fingerprint": experiment.fingerprint}
    (partial / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    old = place.with_name(f".{place.name}-old-{uuid.uuid4().hex}")
    if place.exists():
        os.replace(place, old)
    os.replace(partial, place)
    shutil.rmtree(old, ignore_errors=True)
    return place


def saved_model(
    experiment: Experiment, config: pydantic.BaseModel, seed: int, store: Store | None = None
) -> Path:
    """The folder of the model that this configuration and seed made: committed, else cached.

    Raises UserError that names the way out when there is none, or when the committed one was made
    by another configuration or seed and the cache has none.
    """
    store = store or Store()
    place = store.committed / "checkpoints" / experiment.name
    wanted = _identity(experiment, config, seed)
    found = _record(place)
    if found is not None and {key: found.get(key) for key in wanted} == wanted:
        return place
    cached = store.work_folder(experiment, config, seed) / FOLDER
    if cached.is_dir():
        return cached
    differing = [key for key in wanted if found is not None and found.get(key) != wanted[key]]
    problem = (
        f"The committed model {experiment.name} was made by another run "
        f"(differs in {', '.join(differing)})"
        if differing
        else f"There is no saved model {experiment.name} for this configuration and seed {seed}"
    )
    raise UserError(f"{problem}. Run `{experiment.command} --recompute`.")


def _identity(experiment: Experiment, config: pydantic.BaseModel, seed: int) -> dict[str, object]:
    return {"experiment": experiment.name, "config_hash": config_hash(config), "seed": seed}


def _record(place: Path) -> dict[str, object] | None:
    """What a committed model says of itself; None if there is no such model."""
    file = place / RECORD
    if not file.is_file():
        return None
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise UserError(
            f"{place.name}/{RECORD} in results/checkpoints cannot be read ({error}); "
            "restore it with git checkout."
        ) from error
