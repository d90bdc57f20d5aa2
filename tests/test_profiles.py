"""Tests of unmasked.profiles: what a run is made of, and what is refused before it starts."""

from __future__ import annotations

import math
import shutil
import sys
import types

import pytest
import toy_chapter

from unmasked import profiles
from unmasked.profiles import load_profiles, open_chapter, resolve
from unmasked.project import UserError
from unmasked.results import publish


@pytest.fixture(autouse=True)
def toy(tmp_path, monkeypatch):
    return toy_chapter.install(monkeypatch, tmp_path)


def notebook(**given):
    """The globals of a notebook after its parameters cell, as IPython has them."""
    return {
        "__name__": "__main__", "_": "", "_i1": "profile = 'laptop'", "In": ["", "x"], "Out": {},
        "exit": None, "quit": None, "get_ipython": print, "open": open, "math": math,
        "profile": "laptop", "seed": 0, "recompute": False, "steps": None, "learning_rate": None,
        **given,
    }  # fmt: skip


def refusal(given, chapter="toy") -> str:
    with pytest.raises(UserError) as caught:
        resolve(chapter, given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_run_has_the_profiles_configurations_and_seeds():
    run = resolve("toy", {})
    assert run.profile.name == "laptop"
    assert run.profile.minutes == 12.5
    assert run.seeds["losses"] == (0, 1, 2)
    assert run.configs["losses"].learning_rate == 0.001
    assert run.configs["losses"].widths == (8, 16)
    assert run.configs["extras"].steps == 5


def test_a_knob_replaces_the_field_in_every_experiment_and_seed_shifts():
    run = resolve("toy", {"steps": 7, "seed": 4, "learning_rate": 1})
    assert [config.steps for config in run.configs.values()] == [7, 7]
    assert [config.learning_rate for config in run.configs.values()] == [1.0, 1.0]
    assert run.seeds["losses"] == (4, 5, 6)


def test_a_profile_may_leave_an_experiment_out():
    run = resolve("toy", {"profile": "smoke"})
    assert list(run.configs) == ["losses"]
    with pytest.raises(UserError, match=r"Unknown experiment .*at profile smoke: 'extras'"):
        run.rows("extras")


def test_rows_of_a_run_are_computed_once_and_again_when_asked():
    assert len(resolve("toy", {}).rows("losses").frame) == 18
    assert resolve("toy", {}).rows("losses").origin == "cached"
    assert toy_chapter.CALLS == [0, 1, 2]
    assert resolve("toy", {"recompute": True}).rows("losses").origin == "computed"
    assert toy_chapter.CALLS == [0, 1, 2] * 2


def test_stale_rows_name_the_command_that_renews_them(toy):
    run = resolve("toy", {})
    run.rows("losses")
    publish(run.experiment("losses"), run.configs["losses"], "laptop", run.seeds["losses"])
    path = toy / "results" / "runs.csv"
    path.write_text(path.read_text().replace(run.experiment("losses").fingerprint, "0" * 12))
    shutil.rmtree(toy / "cache")
    rows = run.rows("losses")
    assert rows.stale
    assert "`unmasked reproduce toy --experiment losses --profile laptop`" in rows.message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sed": 3}, ["Unknown parameter 'sed'. Did you mean 'seed'?", "Allowed: profile, seed"]),
        ({"learningrate": 1.0}, ["'learningrate'. Did you mean 'learning_rate'?"]),
        ({"Steps": 3}, ["Did you mean 'steps'?"]),
        ({"profile": "labtop"}, ["profile", "'labtop'. Did you mean 'laptop'?", "smoke, laptop"]),
        ({"profile": "gpu"}, ["Unknown profile", "'gpu'", "Allowed: smoke, laptop."]),
        ({"profile": 3}, ["parameter 'profile' should be a valid string, not 3"]),
        ({"recompute": "false"}, ["'recompute' should be a valid boolean, not 'false'", "quotes"]),
        ({"recompute": 0}, ["'recompute' should be a valid boolean, not 0"]),
        ({"seed": "3"}, ["'seed' should be a valid integer, not '3'", "leave out the quotes"]),
        ({"seed": 1.5}, ["'seed'", "integer", "1.5"]),
        ({"seed": True}, ["'seed' should be a valid integer, not True"]),
        ({"seed": -1}, ["'seed' must be 0 or more, not -1"]),
        ({"steps": 0}, ["'steps' should be greater than or equal to 1, not 0"]),
        ({"steps": 5000}, ["'steps' should be less than or equal to 1000, not 5000"]),
        ({"learning_rate": "1e-3"}, ["'learning_rate' should be a valid number, not '1e-3'"]),
        ({"learning_rate": float("nan")}, ["'learning_rate' must be", "finite", "nan"]),
        ({"steps": [3]}, ["'steps' should be a valid integer, not [3]"]),
    ],
)
def test_a_parameter_that_is_wrong_is_refused_by_name(given, said):
    message = refusal(given)
    for part in said:
        assert part in message
    assert not toy_chapter.CALLS


def test_an_unknown_chapter_is_refused():
    assert refusal({}, "tyo") == "Unknown chapter 'tyo'. Did you mean 'toy'? Allowed: toy."


def test_a_chapter_without_its_module_is_refused(toy):
    path = toy / "book" / "profiles.yml"
    path.write_text(path.read_text().replace("toy:", "ghost:"))
    assert "has no module unmasked.experiments.ghost" in refusal({}, "ghost")


def test_a_chapter_that_lacks_a_dependency_says_which(monkeypatch, toy, tmp_path):
    path = toy / "book" / "profiles.yml"
    path.write_text(path.read_text().replace("toy:", "needy:"))
    (tmp_path / "needy.py").write_text("import surely_not_installed\n")
    package = sys.modules["unmasked.experiments"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed"):
        resolve("needy", {})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "memory_gb: 2",
            "memory: 2",
            "toy, smoke: Unknown key 'memory'. Did you mean 'memory_gb'?",
        ),
        ("minutes: 1\n", "minutes: fast\n", "'minutes' should be a valid number, not 'fast'"),
        ("minutes: 1\n", "minutes: 0\n", "'minutes' should be greater than 0, not 0"),
        ("    minutes: 1\n", "", "toy, smoke: key 'minutes' is missing"),
        ("seeds: [0]", "seeds: []", "'seeds'"),
        ("seeds: [0]", "seeds: [1, 1]", "seeds must be distinct"),
        ("seeds: [0]", "seeds: 0", "'seeds'"),
        ("smoke:", "smok:", "Unknown profile 'smok'. Did you mean 'smoke'?"),
        ("{steps: 2}", "{step: 2}", "smoke, losses: Unknown key 'step'. Did you mean 'steps'?"),
        ("{steps: 2}", "{steps: two}", "key 'steps' should be a valid integer, not 'two'"),
        ("{steps: 2}", "{steps: 2000}", "'steps' should be less than or equal to 1000"),
        ("{steps: 2}", "{steps: 2.5}", "'steps'"),
        ("{steps: 2}", "{selection: bernouli}", "(did you mean 'bernoulli'?)"),
        ("{steps: 2}", "[2]", "'experiments.losses'"),
        ("losses: {steps: 2}", "loss: {steps: 2}", "experiment 'loss'. Did you mean 'losses'?"),
        ("minutes: 1\n", "minutes: 1\n    minutes: 2\n", "line 6: not valid YAML: the key"),
        ("seeds: [0]", "seeds: [0", "not valid YAML"),
        ("{steps: 2}", "{steps: 2, seeds: [7]}", "must list some of the profile's seeds [0]"),
        ("{steps: 2}", "{steps: 2, seeds: 0}", "must list some of the profile's seeds [0]"),
        ("toy:\n", "toy: 3\nother:\n", "toy: a mapping (name: value) is needed, not 3"),
    ],
)
def test_a_profiles_file_that_is_wrong_is_refused_with_its_place(toy, old, new, said):
    path = toy / "book" / "profiles.yml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    message = refusal({"profile": "smoke"})
    assert message.startswith("book/profiles.yml")
    assert said in message


def test_a_missing_profiles_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"There is no book/profiles\.yml"):
        load_profiles(tmp_path / "none.yml")


def test_the_projects_own_profiles_file_is_valid(monkeypatch):
    monkeypatch.undo()
    assert isinstance(load_profiles(), dict)


def test_a_notebook_opens_with_its_parameters():
    run = open_chapter("toy", notebook(steps=9, profile="smoke"))
    assert run.profile.name == "smoke"
    assert run.configs["losses"].steps == 9


@pytest.mark.parametrize(
    ("injected", "said"),
    [
        ({"stesp": 9}, "Unknown parameter 'stesp'. Did you mean 'steps'?"),
        ({"recompute": "false"}, "'recompute' should be a valid boolean, not 'false'"),
        ({"whatever": None}, "Unknown parameter 'whatever'"),
        ({"profil": "smoke"}, "Did you mean 'profile'?"),
        ({"profile": "smokee"}, "Did you mean 'smoke'?"),
        ({"rates": (1, 2)}, "Unknown parameter 'rates'"),
    ],
)
def test_a_notebook_refuses_what_papermill_only_logs(injected, said):
    with pytest.raises(UserError) as caught:
        open_chapter("toy", notebook(**injected))
    assert said in str(caught.value)


def test_a_live_session_may_open_again_with_names_of_its_own():
    session = notebook()
    open_chapter("toy", session)
    session |= {"total": 3.5, "sentence": "a film", "module": types}
    assert open_chapter("toy", session).profile.name == "laptop"
    session["stepz"] = 4
    with pytest.raises(UserError, match="Did you mean 'steps'"):
        open_chapter("toy", session)


def test_an_unknown_chapter_in_a_notebook_is_refused():
    with pytest.raises(UserError, match="Unknown chapter 'toys'"):
        open_chapter("toys", notebook())


def test_profile_names_are_the_four_of_the_book():
    assert profiles.NAMES == ("smoke", "laptop", "gpu", "paper")


def test_an_experiment_may_run_on_some_of_the_seeds(toy):
    path = toy / "book" / "profiles.yml"
    path.write_text(path.read_text().replace("{steps: 5}", "{steps: 5, seeds: [1]}"))
    run = resolve("toy", {"seed": 2})
    assert run.seeds == {"losses": (2, 3, 4), "extras": (3,)}
    assert set(run.rows("extras").frame["seed"]) == {3}
