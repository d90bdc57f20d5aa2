import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unmasked.book import colab, gate
from unmasked.book.prose import numbers_in, typed_results, typed_results_in_code


@pytest.fixture
def book(executed, tmp_path) -> Path:
    """A copy of the executed miniature book, to be broken; it passes the gate as it is."""
    copy = tmp_path / "book"
    shutil.copytree(executed.book, copy)
    (copy / "colab").mkdir()
    for chapter, text in colab.copies(copy).items():
        (copy / "colab" / f"{chapter}.ipynb").write_text(text, encoding="utf-8")
    return copy


def change(path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    edit(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def figure_cell(notebook: dict[str, Any]) -> dict[str, Any]:
    return next(cell for cell in notebook["cells"] if "mystnb" in cell["metadata"])


def said_cell(notebook: dict[str, Any]) -> dict[str, Any]:
    return next(cell for cell in notebook["cells"] if "say(f" in "".join(cell["source"]))


def last_output(notebook: dict[str, Any]) -> dict[str, Any]:
    return said_cell(notebook)["outputs"][-1]


def test_a_book_as_it_should_be_passes(book):
    assert gate.check_all(book) == []


def add_error(notebook):
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}
    said_cell(notebook)["outputs"].append(error)


def add_banner(notebook):
    cell = {"cell_type": "markdown", "id": "a", "source": "An exception was encountered"}
    notebook["cells"].insert(0, {**cell, "metadata": {"tags": ["papermill-error-cell-tag"]}})


def drop_outputs(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = []


def add_weight(notebook):
    said_cell(notebook)["outputs"][0]["data"]["text/plain"] = "a" * 1_000_000


def add_stderr(notebook):
    warning = {"output_type": "stream", "name": "stderr", "text": "UserWarning: old"}
    said_cell(notebook)["outputs"].append(warning)


BREAKS = {
    "error output": (add_error, "ends in an error: KeyError: 'x'"),
    "papermill banner": (add_banner, "cell 1 is papermill's mark of a failed run"),
    "unexecuted cell": (lambda n: said_cell(n).update(execution_count=None), "was not executed"),
    "no output": (drop_outputs, "no cell has an output"),
    "too heavy": (add_weight, "is 1.0. MB; a page's notebook has at most 1 MB"),
    "stderr": (add_stderr, "writes to stderr: 'UserWarning: old'"),
    "stale rows": (
        lambda n: last_output(n)["metadata"]["unmasked"].update(stale=True),
        "shows stale rows; recompute them",
    ),
    "machine path": (
        lambda n: last_output(n)["data"].update({"text/html": "in /home/ann/unmasked"}),
        "shows a path of a machine: '/home/ann/unmasked'",
    ),
    "no alt text": (
        lambda n: figure_cell(n)["metadata"]["mystnb"]["image"].update(alt=" "),
        "figure without alt text",
    ),
    "figure not from show": (
        lambda n: figure_cell(n)["metadata"].pop("mystnb"),
        "figure without alt text",
    ),
    "no caption": (
        lambda n: figure_cell(n)["metadata"]["mystnb"]["figure"].update(caption=""),
        "figure without a caption",
    ),
    "another profile": (
        lambda n: n["metadata"]["unmasked"].update(profile="smoke"),
        "was run at profile 'smoke', not at 'laptop'",
    ),
    "no provenance": (lambda n: n["metadata"].pop("unmasked"), "was run at profile None"),
    "another hash": (
        lambda n: n["metadata"]["unmasked"].update(source_sha256="0" * 64),
        r"was made from another mini\.py",
    ),
    "edited cell": (
        lambda n: said_cell(n).update(source="say('x')"),
        r"cell 5 is not cell 5 of mini\.py",
    ),
    "other tags": (
        lambda n: said_cell(n)["metadata"].update(tags=["hide-cell"]),
        r"cell 5 is not cell 5 of mini\.py",
    ),
    "missing cell": (lambda n: n["cells"].pop(), r"has 5 cells, mini\.py has 6"),
    "not a notebook": (lambda n: n["cells"][0].pop("cell_type"), "cannot be read"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_notebook_is_refused(book, name):
    edit, message = BREAKS[name]
    change(book / "mini.ipynb", edit)
    problems = gate.check_notebook(book / "mini.ipynb", "laptop")
    assert any(re.search(message, problem) for problem in problems), problems
    assert all(problem.startswith("mini.ipynb: ") for problem in problems)


def test_a_number_changed_in_an_output_is_refused(book):
    change(book / "mini.ipynb", lambda n: last_output(n)["data"].update({"text/plain": "9.99"}))
    assert gate.check_notebook(book / "mini.ipynb", "laptop") == [
        "mini.ipynb: holds outputs that no run wrote; run `unmasked run mini`"
    ]


def test_a_number_changed_in_committed_rows_is_refused(book):
    rows = book.parent / "results"
    rows.mkdir()
    (rows / "losses.csv").write_text("seed,value\n0,9.99\n")
    assert gate.check_notebook(book / "mini.ipynb", "laptop") == [
        "mini.ipynb: was drawn from other rows or claims than the committed; "
        "run `unmasked run mini`"
    ]


def test_injected_parameters_are_no_difference(book):
    cell = {"cell_type": "code", "id": "b", "source": "seed = 1", "outputs": []}
    tags = {"tags": ["injected-parameters"]}
    change(
        book / "mini.ipynb",
        lambda n: n["cells"].insert(2, {**cell, "metadata": tags, "execution_count": 9}),
    )
    assert gate.check_notebook(book / "mini.ipynb", "laptop") == []


def test_a_notebook_elsewhere_is_checked_against_the_chapter(book, tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "root", lambda: tmp_path)
    build = tmp_path / "build"
    shutil.copytree(book / "_static", build / "_static")
    shutil.copy(book / "mini.ipynb", build)
    assert gate.check_notebook(build / "mini.ipynb", "laptop") == []
    assert gate.check_notebook(build / "mini.ipynb", "smoke") != []


def test_a_later_edit_of_the_source_is_stale(book):
    source = book / "mini.py"
    source.write_text(source.read_text() + "\n# %%\n1\n")
    problems = gate.check_all(book)
    assert any("was made from another mini.py" in problem for problem in problems)
    assert any("colab/mini.ipynb is not the copy" in problem for problem in problems)


def test_data_of_a_figure_must_be_there(book):
    (book / "_static" / "data" / "mini" / "line.csv").unlink()
    problems = gate.check_all(book)
    assert problems == ["mini.ipynb: cell 3 has a figure without its data as CSV"]


def test_missing_and_orphaned_notebooks_are_named(book):
    (book / "mini.ipynb").rename(book / "gone.ipynb")
    (book / "colab" / "mini.ipynb").rename(book / "colab" / "gone.ipynb")
    assert gate.check_all(book) == [
        "mini.ipynb: the notebook is missing; run `unmasked run mini`",
        "gone.ipynb: there is no chapter gone.py",
        "colab/gone.ipynb is not the copy of its chapter; run `unmasked colab`",
        "colab/mini.ipynb is not the copy of its chapter; run `unmasked colab`",
    ]


def test_an_edited_copy_is_refused(book):
    change(book / "colab" / "mini.ipynb", lambda n: n["cells"].pop())
    assert gate.check_all(book) == [
        "colab/mini.ipynb is not the copy of its chapter; run `unmasked colab`"
    ]


def test_a_chapter_that_cannot_be_copied_is_refused(book):
    source = book / "mini.py"
    source.write_text(source.read_text().replace("{doc}`other`", "{doc}`nowhere`"))
    assert any("Unknown page 'nowhere'" in problem for problem in gate.check_all(book))


def test_a_figure_name_is_used_once_in_the_book(book):
    shutil.copy(book / "mini.py", book / "twin.py")
    shutil.copy(book / "mini.ipynb", book / "twin.ipynb")
    assert "figure 'fig-line' is shown 2 times" in gate.check_all(book)


def test_a_result_typed_into_a_chapter_is_refused(book):
    source = book / "mini.py"
    text = source.read_text().replace("Masks were", "The loss is 5.21 nats. Masks were")
    source.write_text(text.replace('say(f"The seed', 'say(f"At 6.67 the seed'))
    problems = gate.check_notebook(book / "mini.ipynb", "laptop")
    assert any("cell 1 holds a measured number '5.21 nats' typed by hand" in p for p in problems)
    assert any("cell 5 holds a decimal number '6.67' typed by hand" in p for p in problems)


@pytest.mark.parametrize(
    ("text", "allowed"), [("45 %", True), ("37 minutes", True), ("46 %", False)]
)
def test_constants_of_the_profiles_may_be_typed(book, text, allowed):
    source = book / "mini.py"
    source.write_text(source.read_text().replace("Masks were", f"It is {text}. Masks were"))
    problems = gate.check_notebook(book / "mini.ipynb", "laptop")
    assert any("typed by hand" in problem for problem in problems) is not allowed


def test_numbers_are_found_at_any_depth():
    assert list(numbers_in({"a": [1, {"b": 0.5}], "c": True, "d": "2", "e": None})) == [1, 0.5]


@pytest.mark.parametrize(
    "text",
    [
        "In 2021, 12 layers of width 768 and 1,000 sentences.",
        "A constant $p = 0.15$ and $$ x = 2.5 $$ (eq-x)",
        "The rule is 80 % mask, 10 % random, 10 \\% kept, at 15 % or 100 %.",
        "See Section 3.2, Sections 2.1 and 4.3, Table 2.1, Appendix B.2 and § 4.1.",
        "Code `0.5`, ``1.5 s``, a [link of 2.5](https://a.org/1.5) and {cite:p}`a2.5`.",
        "```python\nrate = 0.5  # 3 seconds\n```\nEnd.",
        "Shapes 2 x 128 and $d \\times 4$, $2x + 1$; a 16-bit float.",
        "```{prf:theorem} Name\n:label: thm-1.5\nFor all $x$.\n```",
        "Several minutes, many bits, a few seconds.",
        "We reproduce the experiment at 30 % and 60 minutes.",
    ],
)
def test_prose_without_results_passes(text):
    assert typed_results(text, [0.3, 60]) == []


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("The loss is 5.2.", "decimal number '5.2'"),
        ("At .5 it ends.", "decimal number '.5'"),
        ("A rate of 1e-3 is used.", "decimal number '1e-3'"),
        ("```{note}\nIt fell to 3.5.\n```", "decimal number '3.5'"),
        ("```{admonition} It fell to 3.5\nText.\n```", "decimal number '3.5'"),
        ("It costs 12 nats.", "measured number '12 nats'"),
        ("It costs $12$ nats.", "measured number '12$ nats'"),
        ("It costs $12\\,\\text{nats}$.", "measured number"),
        ("7 bits", "measured number '7 bits'"),
        ("900 tokens/s", "measured number '900 tokens/s'"),
        ("900 tokens per second", "measured number '900 tokens per second'"),
        ("It took 90 seconds.", "measured number '90 seconds'"),
        ("A 61-minute run", "measured number '61-minute'"),
        ("It took 3 hours.", "measured number '3 hours'"),
        ("It needs 2 GB.", "measured number '2 GB'"),
        ("It needs 300MB.", "measured number '300MB'"),
        ("It is 3 times faster.", "measured number '3 times faster'"),
        ("It is 3x faster.", "measured number '3x'"),
        ("It is 3× that.", "measured number '3×'"),
        ("It is $3\\times$ that.", "measured number"),
        ("A gain of 31 %.", "measured number '31 %'"),
        ("A gain of $31\\%$.", "measured number"),
        ("A gain of 15.5 %.", "measured number '15.5 %'"),
        ("A gain of 4 accuracy points.", "measured number '4 accuracy points'"),
        ("The claim is reproduced.", "verdict 'reproduced'"),
        ("Not\nreproduced here.", "verdict 'Not reproduced'"),
        ("Direction only.", "verdict 'Direction only'"),
    ],
)
def test_a_typed_result_is_found(text, quoted):
    found = typed_results(text, [0.3, 60])
    assert any(quoted in item for item in found), found


@pytest.mark.parametrize(
    "source",
    [
        "say(f'The loss is {loss:.3f} nats, {100 * share:.1f} %.')",
        "say('No number at all.')",
        "rate = 0.5\nfit(frame, '1.5')",
        "show(curve(frame.query('rate == 0.5'), caption=f'{a:.2f} nats'))",
        "not python at all",
    ],
)
def test_code_that_computes_its_numbers_passes(source):
    assert typed_results_in_code(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "say('The loss is 5.2.')",
        "notebook.say(f'From 5.2 to {x:.2f}.')",
        "say('The loss ' + f'{x}' + ' of 5.2')",
        "show(Figure('loss', fig, alt='It falls to 5.2', caption=f'{x}', data=d))",
        "Figure('loss', fig, 'It falls to 5.2', text, d)",
        "draw(caption='It takes 3 hours')",
        "table(frame, 'Losses near 5.2')",
        "print('direction only')",
        "say('It fell to 5.2' if x else 'no')",
    ],
)
def test_code_that_types_its_numbers_is_found(source):
    assert len(typed_results_in_code(source)) >= 1
