"""Tests of the `unmasked` command: what it passes on, prints, refuses, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

import pandas as pd
import pytest
import toy_chapter
from typer.testing import CliRunner

import unmasked.book.run
from unmasked import cli, project

CLAIM = """
- id: lower-loss
  paper: Some 2020
  where: Table 1
  statement: The model's loss is lower than the control's.
  kind: direction
  experiment: losses
  profile: laptop
  unit: nats
  side: negative
  effect: {metric: loss, where: {arm: model}, minus: {where: {arm: control}}}
- {id: open, paper: Some 2020, where: abstract, statement: It holds., kind: theory}
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return toy_chapter.install(monkeypatch, tmp_path)


@pytest.fixture
def passed(toy, monkeypatch):
    """What `run` passes on to the notebook runner, as (chapter, parameters, output)."""
    calls = []

    def record(chapter, parameters=None, output=None, threads=None):
        calls.append((chapter, parameters, output))
        return output or toy / "book" / f"{chapter}.ipynb"

    monkeypatch.setattr(unmasked.book.run, "run_chapter", record)
    return calls


def call(*arguments: str):
    return CliRunner().invoke(cli.app, list(arguments))


def refused(*arguments: str) -> str:
    """The message of a call that must end with one line on stderr and exit code 2."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("unmasked: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_run_passes_typed_parameters_and_keeps_the_published_page_apart(passed, toy):
    assert call("run", "toy").exit_code == 0
    arguments = ["-p", "learning_rate=1e-3", "-p", "steps=4", "-p", "name=no", "-p", "on=false"]
    result = call("run", "toy", "--profile", "smoke", *arguments, "--recompute")
    assert result.stdout == "build/smoke/toy.ipynb\n"
    call("run", "toy", "-p", "seed=3")
    assert passed == [
        ("toy", {"profile": "laptop"}, None),
        (
            "toy",
            {
                "profile": "smoke", "learning_rate": 0.001, "steps": 4, "name": "no", "on": False,
                "recompute": True,
            },
            toy / "build" / "smoke" / "toy.ipynb",
        ),
        ("toy", {"profile": "laptop", "seed": 3}, toy / "build" / "laptop" / "toy.ipynb"),
    ]  # fmt: skip


def test_run_all_takes_every_chapter(toy, monkeypatch):
    calls = []

    def record(names, parameters, folder, jobs):
        calls.append((names, parameters, folder, jobs))
        return []

    monkeypatch.setattr(unmasked.book.run, "chapters", lambda: ["a", "b"])
    monkeypatch.setattr(unmasked.book.run, "run_chapters", record)
    assert call("run", "all", "--profile", "smoke", "--jobs", "2").exit_code == 0
    assert calls == [(["a", "b"], {"profile": "smoke"}, toy / "build" / "smoke", 2)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-p", "sed=3"), "Unknown parameter 'sed'. Did you mean 'seed'?"),
        (("-p", "seed=three"), "'seed' should be a valid integer, not 'three'"),
        (("-p", "seed='3'"), "'seed' should be a valid integer, not '3'"),
        (("-p", "steps=0"), "'steps' should be greater than or equal to 1"),
        (("-p", "seed"), "'seed' is not of the form name=value"),
        (("-p", "seed=[1"), "The value of seed, line 1: not valid YAML"),
        (("-p", "profile=smoke"), "Give profile as --profile"),
        (("-p", "recompute=true"), "Give recompute as --recompute"),
        (("--profile", "labtop"), "'labtop'. Did you mean 'laptop'?"),
    ],
)
def test_run_refuses_a_wrong_parameter_before_anything_runs(toy, arguments, said):
    assert said in refused("run", "toy", *arguments)
    assert not toy_chapter.CALLS


@pytest.mark.parametrize("command", ["run", "reproduce", "verify"])
def test_an_unknown_chapter_is_refused(toy, command):
    assert "Unknown chapter 'toyy'. Did you mean 'toy'?" in refused(command, "toyy")


@pytest.mark.parametrize("command", ["reproduce", "verify"])
def test_an_unknown_profile_or_experiment_is_refused(toy, command):
    assert "Did you mean 'smoke'?" in refused(command, "toy", "--profile", "smok")
    assert "Did you mean 'losses'?" in refused(command, "toy", "--experiment", "loses")


def test_a_wrong_profiles_file_is_refused(toy):
    path = toy / "book" / "profiles.yml"
    path.write_text(path.read_text().replace("memory_gb", "memory"))
    assert "Did you mean 'memory_gb'?" in refused("run", "toy")


def test_reproduce_publishes_and_takes_what_is_computed(toy):
    assert call("reproduce", "toy", "--experiment", "losses").exit_code == 0
    assert toy_chapter.CALLS == [0, 1, 2]
    assert not (toy / "results" / "extras.csv").exists()
    result = call("reproduce", "toy")
    assert toy_chapter.CALLS == [0, 1, 2, 0, 1, 2], "losses were cached, extras were not"
    assert "Published as results/extras.csv." in result.stdout
    call("reproduce", "toy", "--experiment", "losses", "--recompute")
    assert len(toy_chapter.CALLS) == 9


def test_verify_recomputes_and_agrees_and_finds_a_changed_digit(toy):
    assert "no committed rows of losses" in refused("verify", "toy", "--experiment", "losses")
    call("reproduce", "toy", "--experiment", "losses")
    result = call("verify", "toy", "--experiment", "losses")
    assert result.exit_code == 0
    assert toy_chapter.CALLS == [0, 1, 2] * 2
    committed = toy / "results" / "losses.csv"
    committed.write_text(committed.read_text().replace("1.98", "1.2"))
    result = call("verify", "toy", "--experiment", "losses")
    assert result.exit_code == 1
    assert "losses" in result.stdout


def test_verify_says_when_the_data_differ(toy):
    call("reproduce", "toy", "--experiment", "losses")
    assert "other data" not in call("verify", "toy", "--experiment", "losses").stderr
    path = toy / "results" / "runs.csv"
    runs = pd.read_csv(path, dtype=str).assign(data_checksum="e" * 64)
    runs.to_csv(path, index=False)
    result = call("verify", "toy", "--experiment", "losses")
    assert result.stderr == "losses was computed from other data than the committed rows.\n"


def test_verify_compares_a_readers_rows_without_computing(toy, tmp_path):
    call("reproduce", "toy", "--experiment", "losses")
    given = tmp_path / "mine.csv"
    given.write_text((toy / "results" / "losses.csv").read_text())
    toy_chapter.CALLS.clear()
    assert call("verify", "toy", "--rows", str(given)).exit_code == 0
    given.write_text(given.read_text().replace("4.02", "4.92"))
    assert call("verify", "toy", "--rows", str(given)).exit_code == 1
    assert toy_chapter.CALLS == []
    assert "There is no file" in refused("verify", "toy", "--rows", str(tmp_path / "none"))


def test_claims_as_json_is_the_ledger(toy):
    (toy / "book" / "claims.yml").write_text(CLAIM)
    call("reproduce", "toy", "--experiment", "losses")
    found = json.loads(call("claims", "--json").stdout)
    assert [entry["id"] for entry in found] == ["lower-loss", "open"]
    assert set(found[0]) == {
        "id", "paper", "where", "statement", "verdict", "effect", "low", "high", "seeds",
        "profile", "unit", "reason",
    }  # fmt: skip
    assert found[0]["verdict"] == "reproduced"
    assert found[0]["effect"] == pytest.approx(-2.02)
    assert found[0]["low"] <= found[0]["effect"] <= found[0]["high"] < 0
    assert (found[0]["seeds"], found[0]["profile"]) == (3, "laptop")
    assert (found[1]["verdict"], found[1]["effect"]) == ("not tested", None)
    text = call("claims").stdout
    assert "lower-loss (Some 2020): the interval is below 0" in text
    assert "−2.020 [" in text


def test_bench_calls_the_benchmarks_of_the_checkout(toy):
    (toy / "benchmarks").mkdir()
    (toy / "benchmarks" / "run.py").write_text(
        "def main(names, json, stored):\n    print(names, json, stored)\n"
    )
    assert call("bench", "masking", "--json").stdout == "['masking'] True False\n"
    assert call("bench", "--stored").stdout == "[] False True\n"


def test_commands_that_need_a_checkout_say_so(toy, monkeypatch):
    address = project.Repository("https://host/o/n", "o", "n")
    monkeypatch.setattr(project, "is_checkout", lambda: False)
    monkeypatch.setattr(project, "repository", lambda: address)
    for arguments in (["run", "toy"], ["reproduce", "toy"], ["bench"], ["build"], ["check"]):
        assert "a checkout of the book is needed: git clone https://host/o/n" in refused(*arguments)


def test_the_command_starts_without_torch_and_refuses_without_a_traceback():
    program = "import sys, unmasked.cli; print('torch' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False False\n"
    command = [sys.executable, "-c", "from unmasked.cli import app; app()", "run", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("unmasked: Unknown chapter 'nowhere'.")
    assert "Traceback" not in done.stderr


def test_the_light_modules_do_not_import_torch():
    light = ("results", "profiles", "claims", "tables", "project", "verify", "cli")
    imports = ", ".join(f"unmasked.{module}" for module in light)
    program = f"import sys, {imports}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_help_names_every_command():
    text = call("--help").stdout
    for command in ("run", "reproduce", "verify", "claims", "bench", "build", "check", "colab"):
        assert f"\n  {command} " in text
