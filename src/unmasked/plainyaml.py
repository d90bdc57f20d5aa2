"""YAML as people mean it: `1e-3` is a number, `no` is a word, a key that is given twice is refused.

PyYAML follows YAML 1.1, where `1e-3` is text, `no` is false and `010` is eight; this reader keeps
to the core schema of YAML 1.2.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from unmasked.project import UserError


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2's core schema and without merging of double keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"null|Null|NULL|~|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
_Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


def read(text: str, source: str) -> Any:
    """The value of a YAML document; UserError that names `source` and the line if it is not one."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not readable"
        raise UserError(f"{source}{place}: not valid YAML: {problem}.") from error


def assignment(text: str) -> tuple[str, Any]:
    """`name=value` as a name and a plain value; quotes make text of anything.

    Raises UserError for text that is no assignment.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise UserError(f"{text!r} is not of the form name=value, for example seed=3.")
    return name.strip(), read(value, f"The value of {name.strip()}")
