"""The publish gate: what a notebook must be before it may become a page."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from unmasked import plainyaml
from unmasked.book.colab import copies
from unmasked.book.prose import numbers_in, typed_results, typed_results_in_code
from unmasked.book.run import chapters
from unmasked.book.tidy import (
    INJECTED_TAG,
    is_figure,
    outputs_hash,
    read_chapter,
    rows_hash,
    source_hash,
    tags,
)
from unmasked.project import UserError, root

MAX_BYTES = 1_000_000
PUBLISHED_PROFILE = "laptop"

_MACHINE_PATH = re.compile(r"(?:/home/|/Users/|/root/|/tmp/|site-packages)[^\s'\"]*")


def check_all(book: Path | None = None, expected_profile: str = PUBLISHED_PROFILE) -> list[str]:
    """Check every chapter's notebook and Colab copy; the messages of all that is wrong.

    Every chapter needs both, no notebook may lack its chapter, and figure names are unique in the
    book, because pages refer to them.
    """
    folder = root() / "book" if book is None else book
    names = chapters(folder)
    problems: list[str] = []
    figures: Counter[str] = Counter()
    for name in names:
        path = folder / f"{name}.ipynb"
        problems += check_notebook(path, expected_profile)
        figures.update(_figure_names(path))
    problems += [f"figure {name!r} is shown {n} times" for name, n in figures.items() if n > 1]
    problems += [
        f"{path.name}: there is no chapter {path.stem}.py"
        for path in sorted(folder.glob("*.ipynb"))
        if path.stem not in names
    ]
    return problems + check_copies(folder)


def check_copies(folder: Path) -> list[str]:
    """Messages for Colab copies that differ from what `unmasked colab` would write."""
    try:
        wanted = copies(folder)
    except UserError as error:
        return [f"colab: {error}"]
    present = {path.stem: path.read_text("utf-8") for path in (folder / "colab").glob("*.ipynb")}
    return [
        f"colab/{name}.ipynb is not the copy of its chapter; run `unmasked colab`"
        for name in sorted(wanted.keys() | present.keys())
        if wanted.get(name) != present.get(name)
    ]


def check_notebook(path: Path, expected_profile: str, source: Path | None = None) -> list[str]:
    """Check one executed notebook; messages that begin with its name, none if all is well.

    `source` is the chapter's .py: by default the one beside the notebook, else the one of that
    name in the book folder.
    """
    if not path.is_file():
        return [f"{path.name}: the notebook is missing; run `unmasked run {path.stem}`"]
    if source is None:
        beside = path.with_suffix(".py")
        source = beside if beside.is_file() else root() / "book" / f"{path.stem}.py"
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        chapter = read_chapter(source)
    except (UserError, nbformat.ValidationError, json.JSONDecodeError) as error:
        return [f"{path.name}: cannot be read: {str(error).splitlines()[0]}"]
    problems = [
        *_check_file(path, notebook, expected_profile),
        *_check_source(notebook, chapter, source),
        *_check_hashes(notebook, source),
        *_check_execution(notebook),
        *_check_figures(notebook, path.parent),
        *_check_prose(chapter, source),
    ]
    return [f"{path.name}: {problem}" for problem in problems]


def _check_file(path: Path, notebook: NotebookNode, expected_profile: str) -> list[str]:
    problems = []
    size = path.stat().st_size
    if size > MAX_BYTES:
        problems.append(f"is {size / 1e6:.2f} MB; a page's notebook has at most 1 MB")
    profile = _provenance(notebook).get("profile")
    if profile != expected_profile:
        problems.append(f"was run at profile {profile!r}, not at {expected_profile!r}")
    return problems


def _check_hashes(notebook: NotebookNode, source: Path) -> list[str]:
    """Outputs as they were written by the run, and rows and claims as they were read by it."""
    problems, known = [], _provenance(notebook)
    if known.get("outputs_sha256") != outputs_hash(notebook):
        problems.append(f"holds outputs that no run wrote; run `unmasked run {source.stem}`")
    if known.get("rows_sha256") != rows_hash(source.parent.parent):
        problems.append(
            "was drawn from other rows or claims than the committed; "
            f"run `unmasked run {source.stem}`"
        )
    return problems


def _check_source(notebook: NotebookNode, chapter: NotebookNode, source: Path) -> list[str]:
    """Hash and cells against the .py; the cell that holds injected parameters does not count."""
    problems = []
    if _provenance(notebook).get("source_sha256") != source_hash(source):
        problems.append(f"was made from another {source.name}; run `unmasked run {source.stem}`")
    cells = [cell for cell in notebook.cells if INJECTED_TAG not in tags(cell)]
    if len(cells) != len(chapter.cells):
        problems.append(f"has {len(cells)} cells, {source.name} has {len(chapter.cells)}")
    for number, (cell, wanted) in enumerate(zip(cells, chapter.cells, strict=False), 1):
        if (cell.cell_type, cell.source, tags(cell)) != (
            wanted.cell_type,
            wanted.source,
            tags(wanted),
        ):
            problems.append(f"cell {number} is not cell {number} of {source.name}")
            break
    return problems


def _check_execution(notebook: NotebookNode) -> list[str]:
    problems = []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not any(cell.outputs for cell in code):
        problems.append("no cell has an output")
    for number, cell in enumerate(notebook.cells, 1):
        marker = "papermill-error-cell" in cell.source
        if marker or any(tag.startswith("papermill-error") for tag in tags(cell)):
            problems.append(f"cell {number} is papermill's mark of a failed run")
        if cell.cell_type != "code":
            continue
        if cell.execution_count is None:
            problems.append(f"cell {number} was not executed")
        problems += [f"cell {number} {wrong}" for o in cell.outputs for wrong in _wrong_output(o)]
    return problems


def _wrong_output(output: NotebookNode) -> list[str]:
    problems = []
    if output.output_type == "error":
        problems.append(f"ends in an error: {output.ename}: {output.evalue}")
    if output.output_type == "stream" and output.name == "stderr":
        problems.append(f"writes to stderr: {output.text.strip()[:80]!r}")
    if _ours(output).get("stale"):
        problems.append("shows stale rows; recompute them")
    texts = [output.get("text", "")]
    texts += [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    if found := _MACHINE_PATH.search("\n".join(texts)):
        problems.append(f"shows a path of a machine: {found[0]!r}")
    return problems


def _check_figures(notebook: NotebookNode, folder: Path) -> list[str]:
    problems = []
    for number, cell in enumerate(notebook.cells, 1):
        for output in filter(is_figure, cell.get("outputs", [])):
            shown = cell.metadata.get("mystnb", {})
            if not shown.get("image", {}).get("alt", "").strip():
                problems.append(f"cell {number} has a figure without alt text; use show()")
            elif not shown.get("figure", {}).get("caption", "").strip():
                problems.append(f"cell {number} has a figure without a caption; use show()")
            chapter = _provenance(notebook).get("chapter", "")
            data = folder / "_static" / "data" / chapter / (_ours(output).get("data") or "none")
            if not data.is_file():
                problems.append(f"cell {number} has a figure without its data as CSV")
    return problems


def _check_prose(chapter: NotebookNode, source: Path) -> list[str]:
    constants = _constants(source)
    problems = []
    for number, cell in enumerate(chapter.cells, 1):
        find = typed_results if cell.cell_type == "markdown" else typed_results_in_code
        problems += [
            f"cell {number} holds {found} typed by hand; take it from rows with say()"
            for found in find(cell.source, constants)
        ]
    return problems


def _constants(source: Path) -> list[float]:
    profiles = source.with_name("profiles.yml")
    if not profiles.is_file():
        return []
    content = plainyaml.read(profiles.read_text(encoding="utf-8"), profiles.name) or {}
    return list(numbers_in(content.get(source.stem, {})))


def _figure_names(path: Path) -> list[str]:
    if not path.is_file():
        return []
    cells = json.loads(path.read_text(encoding="utf-8")).get("cells", [])
    figures = [cell.get("metadata", {}).get("mystnb", {}).get("figure", {}) for cell in cells]
    return [figure["name"] for figure in figures if "name" in figure]


def _provenance(notebook: NotebookNode) -> dict[str, Any]:
    return notebook.metadata.get("unmasked", {})


def _ours(output: NotebookNode) -> dict[str, Any]:
    return output.get("metadata", {}).get("unmasked", {})
