"""Building the book: what counts as changed, what the pages get, what stops the build."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from sphinx.errors import ExtensionError

from unmasked.book import build, sphinx_extension
from unmasked.claims import Verdict
from unmasked.project import Repository, UserError

TESTED = Verdict(
    "x", "A paper", "Table 1", "It helps.", "reproduced", 0.25, 0.2, 0.3, 3, "laptop", "nats", "why"
)
UNTESTED = Verdict(
    "y", "A paper", "Table 2", "It hurts.", "not tested", None, None, None, 0, None, "", "no rows"
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout with one executed chapter; running a chapter rewrites its notebook."""
    for name in ("src/unmasked/masking.py", "book/one.py", "book/one.ipynb", "book/profiles.yml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(build, "root", lambda: tmp_path)
    monkeypatch.setattr(build, "chapters", lambda: ["one"])
    monkeypatch.setattr(build, "run_chapters", lambda names, parameters, jobs: None)
    return tmp_path


def test_a_fresh_checkout_executes_every_chapter_and_a_second_run_none(checkout):
    assert build.run_outdated("laptop") == ["one"]
    assert build.run_outdated("laptop") == []


@pytest.mark.parametrize(
    "path",
    [
        "book/one.py",
        "book/one.ipynb",
        "book/profiles.yml",
        "src/unmasked/masking.py",
        "src/unmasked/new.py",
        "results/rows.csv",
        "constraints.txt",
    ],
)
def test_a_chapter_is_executed_again_when_something_it_is_made_from_changed(checkout, path):
    build.run_outdated("laptop")
    (checkout / path).write_text("changed")
    assert build.run_outdated("laptop") == ["one"]


def test_a_chapter_is_executed_again_at_another_profile(checkout):
    build.run_outdated("laptop")
    assert build.run_outdated("smoke") == ["one"]


def test_a_chapter_that_failed_stays_outdated(checkout, monkeypatch):
    def fail(names, parameters, jobs):
        raise UserError("cell 3")

    monkeypatch.setattr(build, "run_chapters", fail)
    with pytest.raises(UserError, match="cell 3"):
        build.run_outdated("laptop")
    assert not build.is_current("one", "laptop")


def test_a_build_with_warnings_is_an_error_and_says_what_was_said(checkout, monkeypatch, capsys):
    commands = []

    def run(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: undefined label")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(UserError, match="not built"):
        build.build()
    assert "undefined label" in capsys.readouterr().err
    assert {"-W", "--keep-going", "-n"} < set(commands[0])


def test_a_build_removes_pages_that_have_no_source_any_more(checkout, monkeypatch):
    stale = checkout / "_build" / "html" / "stale.html"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    done = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert build.build() == checkout / "_build" / "html"
    assert not stale.exists()


def test_lighten_removes_maps_and_the_icon_script_and_nothing_else(tmp_path):
    for name in ("a.js", "a.js.map", "fontawesome.js"):
        (tmp_path / name).write_text("x")
    keep = '<script src="a.js"></script>'
    icons = '<script defer src="../_static/scripts/fontawesome.js?digest=1"></script>\n'
    (tmp_path / "page.html").write_text(f"{icons}{keep}")
    build.lighten(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.js", "page.html"]
    assert (tmp_path / "page.html").read_text() == keep


def cells(table: nodes.table) -> list[list[str]]:
    return [
        [entry.astext().replace("\n\n", "\n") for entry in row.findall(nodes.entry)]
        for row in table.findall(nodes.row)
    ]


def test_the_claims_table_shows_verdict_effect_and_interval(monkeypatch):
    monkeypatch.setattr(sphinx_extension.claims, "ledger", lambda: [TESTED, UNTESTED])
    (table,) = sphinx_extension.ClaimsTable.run(None)
    tested, untested = cells(table)[1:]
    assert tested[1:] == ["reproducedwhy", "0.25 [0.20, 0.30] nats3 seeds, laptop"]
    assert untested == ["It hurts.A paper, Table 2", "not testedno rows", "–"]


def test_the_cost_table_has_a_row_a_profile(monkeypatch):
    profile = SimpleNamespace(
        name="gpu", device="one GPU", minutes=90.0, memory_gb=16, seeds=(1, 2)
    )
    stated = {"two_words": {"gpu": profile}}
    monkeypatch.setattr(sphinx_extension.profiles, "load_profiles", lambda: stated)
    (table,) = sphinx_extension.CostTable.run(None)
    assert cells(table)[1:] == [["two words", "gpu", "one GPU", "90", "16", "2"]]


def test_tables_say_when_there_is_nothing_to_show(monkeypatch):
    monkeypatch.setattr(sphinx_extension.claims, "ledger", list)
    monkeypatch.setattr(sphinx_extension.profiles, "load_profiles", dict)
    for directive in (sphinx_extension.ClaimsTable, sphinx_extension.CostTable):
        (paragraph,) = directive.run(None)
        assert "yet" in paragraph.astext()


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Repository:
    source = Repository("https://github.com/ann/book", "ann", "book", "trunk")
    monkeypatch.setattr(sphinx_extension, "repository", lambda: source)
    return source


def test_addresses_come_from_the_repository(repository):
    config = SimpleNamespace(html_theme_options={"navbar_persistent": []}, html_baseurl="")
    sphinx_extension.fill_in_addresses(None, config)
    assert config.html_theme_options["repository_url"] == repository.url
    assert config.html_theme_options["repository_branch"] == "trunk"
    assert config.html_theme_options["navbar_persistent"] == []
    assert config.html_baseurl == "https://ann.github.io/book/"


def test_the_colab_button_leads_to_the_copy_and_thebe_is_dropped(repository):
    colab, other = {"text": "Colab", "url": "x"}, {"text": "Binder", "url": "x"}
    inline = SimpleNamespace(filename=None, attributes={"body": "const THEBE_JS_URL = 1"})
    scripts = [SimpleNamespace(filename="a.js", attributes={}), inline, "_static/sphinx-thebe.js"]
    context = {
        "header_buttons": [{"type": "group", "buttons": [colab, other]}, {"type": "link"}],
        "script_files": list(scripts),
    }
    sphinx_extension.finish_page(None, "book/one", "page.html", context, None)
    assert colab["url"] == (
        "https://colab.research.google.com/github/ann/book/blob/trunk/book/colab/one.ipynb"
    )
    assert other["url"] == "x"
    assert context["script_files"] == scripts[:1]


def test_without_mathjax_the_build_stops_and_says_why(tmp_path, monkeypatch):
    def fail(target):
        raise UserError("npm: not installed")

    monkeypatch.setattr(sphinx_extension.mathjax, "provide", fail)
    with pytest.raises(ExtensionError, match="npm: not installed"):
        sphinx_extension.provide_mathjax(SimpleNamespace(srcdir=str(tmp_path)))
