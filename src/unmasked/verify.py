"""Compare rows with the committed ones, row by row."""

from __future__ import annotations

import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd

from unmasked import rows as schema
from unmasked.project import UserError

# Timings and memory say nothing about whether a result holds; "s/s" is a ratio of timings.
SKIPPED_UNITS = frozenset({"s", "ms", "us", "min", "h", "MB", "GB"})
# unit -> (relative, absolute) tolerance. Sums differ in their last digits between machines, and
# training amplifies that.
TOLERANCES = {
    "count": (0.0, 0.0),
    "tokens": (0.0, 0.0),
    "nats": (0.02, 1e-6),
    "bits": (0.02, 1e-6),
    "share": (0.0, 0.03),
    "accuracy": (0.0, 0.03),
    "dimensions": (0.05, 1.0),
}
DEFAULT_TOLERANCE = (0.02, 1e-6)
IDENTITY = ("experiment", "config_hash", "seed", "metric")


def read_rows(path: Path, profile: str) -> pd.DataFrame:
    """A reader's rows of one profile, typed; UserError if the file is not one of rows."""
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    try:
        text = schema.read_text(path.read_text(encoding="utf-8"))
        if missing := [name for name in (*schema.FIRST, *schema.LAST) if name not in text]:
            raise UserError(f"{path.name} lacks the columns {', '.join(missing)}.")
        text = text[text["profile"] == profile]
        frame = schema.typed(text)
    except ValueError as error:
        raise UserError(f"{path.name} is not a file of result rows: {error}.") from error
    if frame.empty:
        raise UserError(f"{path.name} has no rows of profile {profile}.")
    return frame


def compare(committed: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """How `rows` agree with `committed`, one line for each experiment, metric and unit.

    Rows are paired by experiment, config_hash, seed, metric and conditions; only experiments and
    seeds that `rows` have are looked at. Columns: agree, differ, missing (committed only), extra
    (`rows` only), skipped (timings) and largest, the largest relative difference of the rest.
    """
    covered = set(zip(rows["experiment"], rows["seed"], strict=True))
    theirs = {
        key: row
        for key, row in _by_identity(committed).items()
        if (row["experiment"], row["seed"]) in covered
    }
    ours = _by_identity(rows)
    lines: dict[tuple[str, str, str], dict[str, Any]] = {}
    for key in [*theirs, *(key for key in ours if key not in theirs)]:
        row = theirs.get(key) or ours[key]
        group = (row["experiment"], row["metric"], row["unit"])
        counts = dict.fromkeys(("agree", "differ", "missing", "extra", "skipped"), 0)
        line = lines.setdefault(group, {**counts, "largest": 0.0})
        word, difference = _judged(theirs.get(key), ours.get(key))
        line[word] += 1
        line["largest"] = max(line["largest"], difference)
    names = ("experiment", "metric", "unit")
    return pd.DataFrame(
        [{**dict(zip(names, group, strict=True)), **line} for group, line in lines.items()]
    )


def agrees(table: pd.DataFrame) -> bool:
    """True if some rows agree and none differ, are missing or come on top."""
    return bool(table["agree"].sum()) and not table[["differ", "missing", "extra"]].sum().sum()


def _by_identity(frame: pd.DataFrame) -> dict[Hashable, dict[str, Any]]:
    conditions = sorted(set(frame.columns) - {*schema.FIRST, *schema.LAST})
    records = frame.to_dict("records")
    return {
        (
            *(row[name] for name in IDENTITY),
            *((name, _cell(row[name])) for name in conditions if not pd.isna(row[name])),
        ): row
        for row in records
    }


def _cell(value: Any) -> Hashable:
    """A condition's value, the same for 10 and 10.0."""
    return str(value) if isinstance(value, bool | str) else float(value)


def _judged(theirs: dict[str, Any] | None, ours: dict[str, Any] | None) -> tuple[str, float]:
    """agree, differ, missing, extra or skipped, and the relative difference."""
    unit = (theirs or ours or {})["unit"]
    if unit in SKIPPED_UNITS or unit.endswith("/s"):
        return "skipped", 0.0
    if theirs is None or ours is None:
        return ("extra" if theirs is None else "missing"), 0.0
    relative, absolute = TOLERANCES.get(unit, DEFAULT_TOLERANCE)
    a, b = theirs["value"], ours["value"]
    same_unit = theirs["unit"] == ours["unit"]
    close = math.isclose(a, b, rel_tol=relative, abs_tol=absolute)
    size = max(abs(a), abs(b))
    return ("agree" if close and same_unit else "differ"), abs(a - b) / size if size else 0.0
