"""The files around the package agree with one another, and none tells of a machine."""

import re
import shlex
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from unmasked.project import repository, root

ROOT = root()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Where people expect to read the address; it must then be the one of pyproject.toml.
MAY_STATE_THE_ADDRESS = {"pyproject.toml", "CITATION.cff", "README.md"}
COLAB_COPIES = "book/colab/"


@cache
def texts() -> dict[str, str]:
    """The text files that are, or may be, committed: name -> content."""
    listing = "git ls-files -z --cached --others --exclude-standard"
    done = subprocess.run(shlex.split(listing), cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    found = {}
    for name in done.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and b"\0" not in (content := path.read_bytes())[:8000]:
            found[name] = content.decode("utf-8")
    return found


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    names = [canonicalize_name(name) for name, _ in pairs]
    assert len(names) == len(set(names)), "a package is named twice"
    return dict(zip(names, (version for _, version in pairs), strict=True))


def requirements() -> list[Requirement]:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for extra in extras.values() for text in extra)]
    return [Requirement(text) for text in texts]


def test_constraints_pin_every_direct_dependency_within_its_bounds():
    pinned = constraints()
    for requirement in requirements():
        version = pinned[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, f"{requirement} against {version}"


def test_constraints_hold_plain_versions_that_any_index_has():
    for name, version in constraints().items():
        assert re.fullmatch(r"[0-9]+(\.[0-9]+)*(\.post[0-9]+)?", version), f"{name}=={version}"


def test_extensions_of_the_book_are_installed_with_it():
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    named = {canonicalize_name(requirement.name) for requirement in requirements()}
    for extension in config["sphinx"]["extra_extensions"]:
        package = extension.partition(".")[0]
        assert package == "unmasked" or canonicalize_name(package) in named, extension


def test_dependencies_of_the_package_set_no_upper_bound():
    for text in PYPROJECT["project"]["dependencies"]:
        assert not re.search(r"[<=~]=|<", text.replace(">=", "")), text


def test_environment_yml_repeats_no_version_and_uses_the_same_files():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    assert environment["name"] == PYPROJECT["project"]["name"]
    *conda, last = environment["dependencies"]
    assert conda == ["python=3.11", "pip"]
    assert last == {"pip": ["-c constraints.txt", "-e .[dev]"]}
    floor = Requirement(f"python{PYPROJECT['project']['requires-python']}")
    assert "3.11" in floor.specifier
    assert "dev" in PYPROJECT["project"]["optional-dependencies"]


def test_the_makefile_installs_the_same():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "CONSTRAINTS ?= -c constraints.txt" in makefile
    assert "$(CONSTRAINTS) -e '.[dev]'" in makefile


def test_citation_is_complete_and_agrees_with_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    needed = {"cff-version", "message", "title", "authors", "version", "date-released", "license"}
    assert needed <= citation.keys()
    project = PYPROJECT["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in project["authors"]
    ]
    assert citation["repository-code"] == repository().url
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", citation["date-released"])


def test_the_licence_is_the_one_that_is_stated():
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert text.startswith(f"{PYPROJECT['project']['license']} License\n")
    assert PYPROJECT["project"]["authors"][0]["name"] in text


def addresses(text: str) -> list[tuple[str, str]]:
    """Owner and name of what looks like this repository or its pages, however it is spelled."""
    source = repository()
    name, owner = re.escape(source.name), re.escape(source.owner)
    patterns = (
        rf"github\.com[/:]+([\w.-]+)/({name})(?![\w-])",
        rf"github\.com[/:]+({owner})/([\w-]+)",
        rf"([\w-]+)\.github\.io/({name})(?![\w-])",
        rf"({owner})\.github\.io/([\w-]+)",
    )
    return [match for pattern in patterns for match in re.findall(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://github.com/{owner}/{name}", True),
        ("git@github.com:someone/{name}.git", True),
        ("https://github.com/{owner}/other", True),
        ("https://Someone.GitHub.io/{name}/book", True),
        ("https://github.com/someone/other", False),
        ("https://github.com/someone/{name}-fork", False),
    ],
)
def test_addresses_are_recognised(text, expected):
    source = repository()
    assert bool(addresses(text.format(owner=source.owner, name=source.name))) is expected


def test_the_address_stands_in_one_place():
    source = repository()
    wrong = []
    for name, text in texts().items():
        if name.startswith("tests/"):
            continue
        allowed = name in MAY_STATE_THE_ADDRESS or name.startswith(COLAB_COPIES)
        wrong += [
            f"{name}: {found}"
            for found in addresses(text)
            if not allowed or found != (source.owner, source.name)
        ]
    assert wrong == []


MACHINE = re.compile(
    r"(?<![\w.$~{}*])/(?:home|Users|root|work|tmp|opt|mnt|srv)/[\w.]"
    r"|pypi\.org|pythonhosted|registry\.npm|deb\.debian|index-url|find-links",
    re.IGNORECASE,
)
# Patterns of paths that the gate and its tests look for.
MAY_NAME_PATHS = {
    "src/unmasked/book/gate.py",
    "tests/book/test_gate.py",
    "tests/test_repository.py",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /home/ann/x", True),
        ("'/tmp/ipykernel_1/2.py'", True),
        ("pip --index-url=x", True),
        ("build/tmp/x", False),
        ("the cost at home/abroad", False),
        ("~/.cache/unmasked", False),
    ],
)
def test_traces_of_a_machine_are_recognised(text, expected):
    assert bool(MACHINE.search(text)) is expected


def test_no_file_tells_of_a_machine_or_a_registry():
    wrong = [
        f"{name}: {match.group()}"
        for name, text in texts().items()
        if name not in MAY_NAME_PATHS and (match := MACHINE.search(text))
    ]
    assert wrong == []


def commands(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def test_the_workflow_runs_what_continuous_integration_runs():
    script = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert script[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in script
    assert script[-1] == "make test"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert commands(ROOT / ".github" / "workflows" / "ci.yml") == [".ci/run"]


def test_the_workflow_publishes_what_was_built_from_main_only():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.13"]
    publish = workflow["jobs"]["publish"]
    assert publish["if"] == "github.ref == 'refs/heads/main'"
    assert publish["needs"] == "test"
    uploads = [step for step in workflow["jobs"]["test"]["steps"] if "upload" in str(step)]
    assert [step["with"]["path"] for step in uploads] == ["_build/html"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_the_makefile_has(workflow):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    called = [shlex.split(line) for line in commands(workflow) if line.startswith("make ")]
    assert {words[1] for words in called} <= targets
    assert called or commands(workflow) == [".ci/run"]


def test_the_scheduled_workflow_uses_the_newest_versions_and_runs_the_colab_copies():
    workflow = next(path for path in WORKFLOWS if path.name == "scheduled.yml")
    assert commands(workflow) == ["make test-all CONSTRAINTS=", "make colab CONSTRAINTS="]
    # YAML 1.1 reads the key `on` as true
    assert "schedule" in yaml.safe_load(workflow.read_text("utf-8"))[True]


def test_the_hooks_run_the_tools_of_the_environment():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = {hook["id"]: hook for repo in hooks["repos"] for hook in repo["hooks"]}
    assert set(entries) == {"ruff-check", "ruff-format", "gate"}
    assert all(hook["language"] == "system" for hook in entries.values())
    assert re.search(entries["gate"]["files"], "book/masked_language_modelling.ipynb")


def test_every_page_of_the_table_of_contents_has_a_source():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    names = [contents["root"], *(chapter["file"] for chapter in contents["chapters"])]
    for name in names:
        assert any((ROOT / f"{name}{ending}").is_file() for ending in (".md", ".ipynb")), name
    notebooks = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.ipynb")}
    assert notebooks <= set(names)
