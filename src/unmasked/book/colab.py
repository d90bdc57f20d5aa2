"""The chapters' copies for Colab: plain Markdown, no outputs, a set-up cell first.

Copies are generated from the .py files and committed; the publish gate compares them.
"""

import re
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from pybtex.database import Entry, parse_file
from pybtex.plugin import find_plugin
from pybtex.richtext import Text

from unmasked.book.myst import Book, Citation, to_markdown
from unmasked.book.run import chapters
from unmasked.book.tidy import PARAMETERS_TAG, as_text, number_cells, read_chapter, tags
from unmasked.project import Repository, UserError, repository, root

PROFILE = "smoke"

_SETUP = """\
# Installs the book's package where it is missing, for example in Colab; elsewhere does nothing.
import importlib.util

if importlib.util.find_spec("unmasked") is None:
    %pip install --quiet "unmasked @ git+{url}@{reference}"
"""
_PROFILE_LINE = re.compile(r"^profile(\s*:\s*str)?\s*=\s*(['\"]).*?\2", re.MULTILINE)
_HEADING = re.compile(r"^#+ +(?P<title>.+?) *$", re.MULTILINE)
_LABELLED = re.compile(r"^\((?P<label>[\w:.-]+)\)=[ ]*\n+(?:#+ +(?P<title>.+?) *$)?", re.MULTILINE)


def write_copies(folder: Path | None = None, reference: str | None = None) -> list[Path]:
    """Write the Colab copy of every chapter and return their paths.

    `folder` is `book/colab` by default; `reference` is the branch or tag to install, by default
    the repository's branch. Copies of chapters that no longer exist are removed.

    Raises UserError for what a copy cannot show; then nothing is written.
    """
    target = root() / "book" / "colab" if folder is None else folder
    texts = copies(root() / "book", reference)
    target.mkdir(parents=True, exist_ok=True)
    for path in target.glob("*.ipynb"):
        if path.stem not in texts:
            path.unlink()
    paths = [target / f"{chapter}.ipynb" for chapter in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def copies(folder: Path, reference: str | None = None) -> dict[str, str]:
    """Chapter -> the text of its Colab copy, for all chapters in the book folder."""
    source = repository()
    book = read_book(folder, site(source))
    setup = _SETUP.format(url=source.url, reference=reference or source.branch).rstrip()
    return {
        chapter: as_text(make_copy(read_chapter(folder / f"{chapter}.py"), chapter, book, setup))
        for chapter in chapters(folder)
    }


def make_copy(notebook: NotebookNode, chapter: str, book: Book, setup: str) -> NotebookNode:
    """The Colab copy of one chapter's source notebook.

    Raises UserError for unknown MyST, for a code cell that names a device or calls a shell, and if
    the parameters cell does not set a profile.
    """
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    converted = to_markdown([cell.source for cell in prose], chapter, book)
    for cell, text in zip(prose, converted, strict=True):
        cell.source = text
    for cell in notebook.cells:
        cell.metadata.pop("mystnb", None)
        if cell.cell_type == "code":
            _check_code(cell.source, chapter)
            if PARAMETERS_TAG in tags(cell):
                cell.source = _with_profile(cell.source, chapter)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    notebook.cells.insert(0, new_code_cell(setup))
    number_cells(notebook.cells)
    notebook.metadata["colab"] = {"provenance": []}
    return notebook


def site(source: Repository) -> str:
    """Address of the published book on GitHub Pages."""
    return f"https://{source.owner}.github.io/{source.name}"


def read_book(folder: Path, address: str) -> Book:
    """Titles and labels of all pages in the book folder, and its bibliography."""
    titles: dict[str, str] = {}
    labels: dict[str, tuple[str, str]] = {}
    for path in sorted([*folder.glob("*.py"), *folder.glob("*.md")]):
        text = _prose(path)
        heading = _HEADING.search(text)
        titles[path.stem] = heading["title"] if heading else path.stem
        for match in _LABELLED.finditer(text):
            labels[match["label"]] = (path.stem, match["title"] or "")
    return Book(address, titles, labels, read_bibliography(folder / "references.bib"))


def read_bibliography(path: Path) -> dict[str, Citation]:
    """Key -> citation for every entry of a BibTeX file; empty if there is no such file."""
    if not path.is_file():
        return {}
    entries = parse_file(str(path)).entries
    style = find_plugin("pybtex.style.formatting", "plain")()
    formatted = {entry.key: entry.text for entry in style.format_entries(entries.values())}
    return {
        key: Citation(
            authors=_authors(entry),
            year=entry.fields.get("year", "n.d."),
            url=_url(entry),
            entry=" ".join(formatted[key].render_as("markdown").split()),
        )
        for key, entry in entries.items()
    }


def _authors(entry: Entry) -> str:
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    names = [
        str(Text.from_latex(" ".join([*person.prelast_names, *person.last_names])))
        for person in people
    ]
    if not names:
        raise UserError(f"references.bib: {entry.key} has neither author nor editor")
    return names[0] + " et al." if len(names) > 2 else " and ".join(names)


def _url(entry: Entry) -> str:
    if doi := entry.fields.get("doi"):
        return f"https://doi.org/{doi}"
    if eprint := entry.fields.get("eprint"):
        return f"https://arxiv.org/abs/{eprint}"
    return entry.fields.get("url", "")


def _prose(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = read_chapter(path).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def _check_code(source: str, chapter: str) -> None:
    for line in source.splitlines():
        if line.lstrip().startswith(("!", "%")):
            raise UserError(f"{chapter}: a chapter calls no shell and no magic: {line.strip()!r}")
        if re.search(r"['\"]cuda\b", line):
            raise UserError(f"{chapter}: a chapter names no device: {line.strip()!r}")


def _with_profile(source: str, chapter: str) -> str:
    changed, count = _PROFILE_LINE.subn(rf'profile\1 = "{PROFILE}"', source)
    if count != 1:
        raise UserError(f'{chapter}: the parameters cell needs one line profile = "..."')
    return changed
