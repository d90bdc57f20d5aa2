"""The row schema, and rows as text: what an experiment yields, checked and written down.

A row is `experiment, profile, config_hash, seed, <conditions...>, metric, value, unit, n, run_id`.
Text is the only stored form, and every frame is read from text, so that rows have the same types
whether they were computed, cached or committed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import numbers
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from unmasked.project import UserError

FIRST = ("experiment", "profile", "config_hash", "seed")
LAST = ("metric", "value", "unit", "n", "run_id")
YIELDED = ("metric", "value", "unit", "n")
RESERVED = frozenset((*FIRST, "run_id"))
TYPES = {
    **dict.fromkeys(("experiment", "profile", "config_hash", "metric", "unit", "run_id"), str),
    "seed": int,
    "value": float,
    "n": int,
}
WHOLE = r"-?(0|[1-9]\d*)"
SCALARS = (
    (WHOLE, int),
    (WHOLE + r"(\.\d+)?(e[+-]?\d+)?", float),
    ("True|False", "True".__eq__),
)


class RowError(UserError, ValueError):
    """A row that an experiment yields breaks the schema; the message names the row."""


@dataclass(frozen=True)
class SeedRows:
    """The finished rows of one seed: its provenance record, and a frame whose cells are text."""

    record: Mapping[str, Any]
    text: pd.DataFrame


def checked(rows: Iterable[Mapping[str, Any]], source: str) -> list[dict[str, Any]]:
    """The rows as plain dictionaries; RowError that names the row if one breaks the schema.

    A row has metric and unit (text), value (finite number), n (whole number, 1 or more) and any
    conditions (text, finite number, truth value or None). No two rows of a seed may agree in metric
    and all conditions.
    """
    result: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for index, given in enumerate(rows):
        row = {str(key): _plain(value) for key, value in given.items()}
        if problem := _problem(row):
            raise RowError(f"Row {index} of {source} is refused: {problem} The row: {row}.")
        identity = json.dumps({key: row[key] for key in row if key not in YIELDED[1:]}, sort_keys=1)
        if identity in seen:
            raise RowError(
                f"Row {index} of {source} repeats row {seen[identity]}: metric and conditions must "
                f"tell rows apart. The row: {row}."
            )
        seen[identity] = index
        result.append(row)
    if not result:
        raise RowError(f"{source} yielded no rows; an experiment must yield at least one a seed.")
    return result


def _plain(value: Any) -> Any:
    """A numpy or torch scalar as a Python one."""
    return value.item() if hasattr(value, "item") else value


def _problem(row: Mapping[str, Any]) -> str:
    """What is wrong with a row, as a sentence; empty if nothing is."""
    if missing := [name for name in YIELDED if row.get(name) is None]:
        return f"it has no {', '.join(missing)}."
    if reserved := sorted(RESERVED & row.keys()):
        return f"the column {', '.join(reserved)} is filled in by the store."
    if not isinstance(row["metric"], str) or not isinstance(row["unit"], str):
        return "metric and unit must be text."
    if not _is_number(row["value"]) or not math.isfinite(row["value"]):
        return f"value is {row['value']!r}, not a finite number."
    if not isinstance(row["n"], int) or isinstance(row["n"], bool) or row["n"] < 1:
        return f"n is {row['n']!r}, not a whole number of 1 or more."
    for name, value in row.items():
        if not isinstance(value, str | bool | int | float | None):
            return f"condition {name} is a {type(value).__name__}; text or a number is needed."
        if value == "" or (isinstance(value, float) and not math.isfinite(value)):
            return f"{name} is {value!r}; leave it out or give None where it does not apply."
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def to_text(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a frame of text cells, empty where a condition does not apply."""
    frame = pd.DataFrame(list(rows), dtype=object)
    return read_text(frame.to_csv(index=False, lineterminator="\n"))


def read_text(text: str) -> pd.DataFrame:
    """CSV text as a frame of text cells."""
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, na_values=[])


def typed(text: pd.DataFrame) -> pd.DataFrame:
    """A frame of text cells with its types, which whole columns decide; empty cells are missing.

    A condition is int64, float64, bool or text, the first that fits; a whole-number or truth
    condition with missing cells becomes float64 or object. Columns that are empty throughout
    (conditions of other profiles) are left out.
    """
    columns = {}
    for name in text:
        if name in TYPES:
            columns[name] = text[name].map(TYPES[name])
        elif (text[name] != "").any():
            columns[name] = _inferred(text[name])
    return pd.DataFrame(columns).reset_index(drop=True)


def _inferred(column: pd.Series) -> pd.Series:
    """A condition column with the first type that all of its cells have."""
    given = column[column != ""]
    for pattern, parse in SCALARS:
        if given.map(lambda cell, pattern=pattern: bool(re.fullmatch(pattern, cell))).all():
            return given.map(parse).reindex(column.index)
    return given.reindex(column.index)


def ordered(text: pd.DataFrame) -> pd.DataFrame:
    """The columns in the order of the schema, conditions in the middle as they came."""
    conditions = [name for name in text if name not in (*FIRST, *LAST)]
    return text[[*FIRST, *conditions, *LAST]]


def write_seed(path: Path, record: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one finished seed as one file: a `#` line with its record and a checksum, then CSV."""
    body = to_text(rows).to_csv(index=False, lineterminator="\n")
    head = {**record, "sha256": hashlib.sha256(body.encode()).hexdigest()}
    write_atomically(path, f"# {json.dumps(head, sort_keys=True)}\n{body}")


def read_seed(path: Path) -> SeedRows | None:
    """The rows of a finished seed; None where the file is missing or not whole."""
    try:
        head, body = path.read_text(encoding="utf-8").split("\n", 1)
        record = json.loads(head.removeprefix("# "))
        expected = record.pop("sha256")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    if hashlib.sha256(body.encode()).hexdigest() != expected:
        return None
    return SeedRows(record, read_text(body))


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step: a reader sees the old file or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
