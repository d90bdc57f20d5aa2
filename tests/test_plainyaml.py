"""Tests of unmasked.plainyaml: scalars of YAML 1.2, double keys, assignments."""

from __future__ import annotations

import pytest

from unmasked import plainyaml
from unmasked.project import UserError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("-2.5E+2", -250.0),
        (".5", 0.5),
        ("3", 3),
        ("010", 10),
        ("no", "no"),
        ("on", "on"),
        ("false", False),
        ("False", False),
        ("TRUE", True),
        ("null", None),
        ("", None),
        ("'false'", "false"),
        ('"3"', "3"),
        ("1.2.3", "1.2.3"),
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("[1, 2.0, x]", [1, 2.0, "x"]),
        ("bert-base", "bert-base"),
    ],
)
def test_scalars_mean_what_they_look_like(text, value):
    found = plainyaml.read(text, "test")
    assert found == value
    assert type(found) is type(value)
    assert plainyaml.assignment(f"name={text}") == ("name", value)


def test_a_double_key_is_refused_with_its_line():
    with pytest.raises(UserError, match=r"f\.yml, line 3: .*'a' is given twice"):
        plainyaml.read("a: 1\nb: 2\na: 3\n", "f.yml")


def test_broken_yaml_is_refused_with_its_line():
    with pytest.raises(UserError, match=r"f\.yml, line 2: not valid YAML"):
        plainyaml.read("a: 1\n  b: [2\n", "f.yml")


def test_python_objects_are_not_built():
    with pytest.raises(UserError, match="not valid YAML"):
        plainyaml.read("!!python/object/apply:os.getcwd []", "f.yml")


@pytest.mark.parametrize("text", ["seed", "=3", "a b=3", "3x=1", ""])
def test_what_is_no_assignment_is_refused(text):
    with pytest.raises(UserError, match="not of the form name=value"):
        plainyaml.assignment(text)
