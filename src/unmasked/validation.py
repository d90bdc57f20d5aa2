"""Strict checks of values against a pydantic model, with messages that a reader can act on."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic

from unmasked.project import UserError, unknown

Model = TypeVar("Model", bound=pydantic.BaseModel)


def validated(model: type[Model], values: Mapping[str, Any], kind: str, place: str = "") -> Model:
    """An instance of `model`; UserError for an unknown name, a wrong type or a value out of range.

    Types are strict (the text "false" is no truth value, a whole number is accepted for a real
    one). `kind` says what a name is, e.g. "parameter"; `place` starts the message.
    """
    lead = f"{place}: " if place else ""
    for name in values:
        if name not in model.model_fields:
            raise UserError(lead + unknown(kind, name, model.model_fields))
    try:
        text = json.dumps(dict(values), allow_nan=False)
    except (TypeError, ValueError):
        wrong = next(name for name, value in values.items() if not _is_plain(value))
        raise UserError(
            f"{lead}{kind} {wrong!r} must be text, a finite number, true, false, null or a list of "
            f"these, not {values[wrong]!r}."
        ) from None
    try:
        return model.model_validate_json(text, strict=True)
    except pydantic.ValidationError as error:
        said = "; ".join(_said(item, kind) for item in error.errors())
        raise UserError(f"{lead}{said}.") from None


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _said(error: Mapping[str, Any], kind: str) -> str:
    """One pydantic error as a clause."""
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{kind} {name!r} is missing"
    if error["type"] == "extra_forbidden":
        return f"{kind} {name!r} is not known"
    problem = (
        error["msg"].replace("Input should", "should").replace("Value error, ", "is refused: ")
    )
    given = error["input"]
    hint = ""
    if isinstance(given, str) and not error["type"].startswith(("string", "literal", "value")):
        hint = " (this is text: leave out the quotes, and write True or False with papermill -p)"
    if error["type"] == "literal_error":
        allowed = re.findall("'([^']*)'", error["ctx"]["expected"])
        near = difflib.get_close_matches(str(given), allowed, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{kind} {name!r} {problem}, not {given!r}{hint}"
