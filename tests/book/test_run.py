import json
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from unmasked.book import run
from unmasked.project import UserError

LIGHT = """# %% tags=["parameters"]
profile = "laptop"
seed = 0
path: str = "a"

# %%
import os
print(profile, seed, os.environ["OMP_NUM_THREADS"], os.path.basename(os.getcwd()))
print(os.environ["TQDM_DISABLE"])
"""

FAILING = """# %% [markdown]
# # Failing

# %% tags=["parameters"]
profile = "laptop"

# %%
import os, pathlib
folder = pathlib.Path(os.environ["UNMASKED_FIGURES"])
(folder / "half.csv").write_text("a")
raise KeyError("no such rows")

# %%
print("never")
"""


def outputs(path: Path) -> list[dict]:
    cells = json.loads(path.read_text())["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]


def text(path: Path) -> str:
    return "".join("".join(output.get("text", "")) for output in outputs(path))


def test_a_chapter_lands_beside_its_source_with_where_it_came_from(executed):
    path = executed.book / "mini.ipynb"
    provenance = json.loads(path.read_text())["metadata"]["unmasked"]
    assert provenance["chapter"] == "mini"
    assert provenance["profile"] == "laptop"
    assert provenance["parameters"] == {"profile": "laptop", "seed": 0}
    assert len(provenance["source_sha256"]) == 64
    assert text(path) == "one\ntwo\n"
    assert sorted(p.name for p in executed.book.iterdir() if p.name.startswith(".")) == []


def test_a_second_run_gives_the_same_bytes(executed, tmp_path):
    again = executed.run("mini", output=tmp_path / "mini.ipynb")
    assert again == tmp_path / "mini.ipynb"
    assert again.read_bytes() == (executed.book / "mini.ipynb").read_bytes()
    data = Path("_static") / "data" / "mini" / "line.csv"
    assert (tmp_path / data).read_bytes() == (executed.book / data).read_bytes()


def test_parameters_and_threads_reach_a_quiet_kernel_in_the_book_folder(fresh, capfd, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    before = dict(os.environ)
    fresh.write("light", LIGHT)
    gone = fresh.book / "_static" / "data" / "light" / "gone.csv"
    gone.parent.mkdir(parents=True)
    gone.write_text("data of a figure that the chapter no longer shows")
    path = fresh.run("light", {"profile": "smoke", "seed": 0}, threads=3)
    assert not gone.exists()
    assert text(path) == "smoke 0 3 book\n1\n"
    injected = [
        cell["source"]
        for cell in json.loads(path.read_text())["cells"]
        if "injected-parameters" in cell["metadata"].get("tags", [])
    ]
    assert injected == [["# Parameters\n", 'profile = "smoke"\n']]  # only what differs
    assert capfd.readouterr().err == ""
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("chapter", "parameters", "message"),
    [
        ("light", {"sed": 1}, "'sed'.*Did you mean 'seed'"),
        ("light", {"profile": "laptopp"}, "Unknown profile 'laptopp'"),
        ("absent", {}, r"no chapter source absent\.py"),
        ("bare", {}, "one cell tagged 'parameters', not 0"),
    ],
)
def test_wrong_names_stop_the_run_before_it_begins(
    fresh, monkeypatch, chapter, parameters, message
):
    monkeypatch.setattr(papermill, "execute_notebook", lambda *a, **k: pytest.fail("it ran"))
    fresh.write("light", LIGHT)
    fresh.write("bare", "# %%\nprint(1)\n")
    with pytest.raises(UserError, match=message):
        fresh.run(chapter, parameters)
    assert not list(fresh.book.glob("*.ipynb"))


def test_a_failed_run_leaves_everything_and_keeps_the_failed_notebook(fresh):
    fresh.write("failing", FAILING)
    old = fresh.book / "failing.ipynb"
    old.write_text("the old notebook")
    data = fresh.book / "_static" / "data" / "failing" / "old.csv"
    data.parent.mkdir(parents=True)
    data.write_text("the old data")
    before = dict(os.environ)
    with pytest.raises(run.ChapterError) as caught:
        fresh.run("failing")
    error = caught.value
    assert (error.chapter, error.cell, error.error) == ("failing", 3, "KeyError")
    assert str(error) == (
        "chapter failing failed in cell 3: KeyError: 'no such rows'. "
        "The failed notebook is build/failed/failing.ipynb."
    )
    assert old.read_text() == "the old notebook"
    assert [path.name for path in data.parent.iterdir()] == ["old.csv"]
    kept = outputs(fresh.root / "build" / "failed" / "failing.ipynb")
    assert [output["ename"] for output in kept] == ["KeyError"]
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("line", "error"),
    [("import sys; sys.exit(0)", "SystemExit"), ("import os; os._exit(1)", "DeadKernelError")],
)
def test_a_cell_that_ends_the_kernel_is_a_failure(fresh, line, error):
    fresh.write("ending", f'# %% tags=["parameters"]\nprofile = "laptop"\n\n# %%\n{line}\n')
    with pytest.raises(run.ChapterError) as caught:
        fresh.run("ending")
    assert caught.value.error == error
    assert not (fresh.book / "ending.ipynb").exists()
    assert (fresh.root / "build" / "failed" / "ending.ipynb").exists()


def test_a_notebook_that_a_page_could_not_show_is_a_failure(fresh):
    image = new_output("display_data", data={"image/png": "AAAA"})
    executed = new_notebook(cells=[new_code_cell("f()", outputs=[image, image])])
    with pytest.raises(run.ChapterError, match="may show nothing else"):
        run._publish(executed, {"chapter": "light"}, fresh.root, fresh.book / "light.ipynb")
    assert not (fresh.book / "light.ipynb").exists()


def test_an_error_survives_the_way_from_another_process():
    error = run.ChapterError("mini", 2, "KeyError", "'x'", "build/failed/mini.ipynb")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.cell) == (str(error), 2)


def parameters(source: str) -> dict:
    cell = new_code_cell(source, metadata={"tags": ["parameters"]})
    return run.parameter_defaults(new_notebook(cells=[new_code_cell("x = 1"), cell]))


def test_defaults_are_read_without_running_the_cell():
    source = 'a = 1  # note\nb: str = "x"\nc = [1, -2.5]\nd = None'
    assert parameters(source) == {"a": 1, "b": "x", "c": [1, -2.5], "d": None}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = b = 1", "one name a line; found 'a = b = 1'"),
        ("import os", "found 'import os'"),
        ("a = int('1')", "parameter 'a' needs a plain value"),
        ("a: int", "found 'a: int'"),
    ],
)
def test_a_parameters_cell_holds_plain_assignments_only(source, message):
    with pytest.raises(UserError, match=message):
        parameters(source)


def stub(name, given, output, threads):
    if name.startswith("bad"):
        raise run.ChapterError(name, 1, "ValueError", "no")
    return (name, given, output, threads)


@pytest.fixture
def in_threads(monkeypatch):
    def pool(max_workers, mp_context):
        assert mp_context.get_start_method() == "spawn"
        return ThreadPoolExecutor(max_workers)

    monkeypatch.setattr(run, "ProcessPoolExecutor", pool)
    monkeypatch.setattr(run, "run_chapter", stub)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)


@pytest.mark.usefixtures("in_threads")
def test_chapters_share_the_processors_and_come_back_in_order(tmp_path):
    done = run.run_chapters(["b", "a"], {"seed": 1}, folder=tmp_path, jobs=2)
    assert done == [
        ("b", {"seed": 1}, tmp_path / "b.ipynb", 4),
        ("a", {"seed": 1}, tmp_path / "a.ipynb", 4),
    ]
    assert run.run_chapters(["a"]) == [("a", None, None, None)]


@pytest.mark.usefixtures("in_threads")
def test_every_chapter_that_fails_is_named():
    with pytest.raises(UserError) as caught:
        run.run_chapters(["bad1", "good", "bad2"], jobs=2)
    message = str(caught.value)
    assert message.startswith("2 of 3 chapters failed:\nchapter bad1 failed in cell 1")
    assert "bad2" in message
    assert "good" not in message


def test_chapters_are_the_sources_in_the_book_folder(executed):
    assert run.chapters(executed.book) == ["mini"]
