"""Run a chapter: check its parameters, execute it with papermill, tidy it, move it into place.

The notebook that stands there stays whole until the new one is complete. Chapters run in the book
folder, with a kernel that writes no noise.
"""

import ast
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from unmasked.book.notebook import FIGURES_VARIABLE
from unmasked.book.tidy import (
    PARAMETERS_TAG,
    as_text,
    read_chapter,
    rows_hash,
    source_hash,
    tags,
    tidy,
)
from unmasked.profiles import resolve
from unmasked.project import UserError, root, unknown

QUIET = {
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "PYTHONHASHSEED": "0",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


class ChapterError(UserError):
    """A chapter that did not run to its end.

    `cell` counts the cells of the chapter's source from 1 (0 if the kernel died and the cell is not
    known); `error` and `reason` are the exception's name and message.
    """

    def __init__(self, chapter: str, cell: int, error: str, reason: str, kept: str = "") -> None:
        super().__init__(chapter, cell, error, reason, kept)
        self.chapter, self.cell, self.error, self.reason, self.kept = self.args

    def __str__(self) -> str:
        where = f" in cell {self.cell}" if self.cell else ""
        kept = f" The failed notebook is {self.kept}." if self.kept else ""
        return f"chapter {self.chapter} failed{where}: {self.error}: {self.reason}.{kept}"


def chapters(book: Path | None = None) -> list[str]:
    """Names of the chapters: the py:percent files in the book folder, sorted."""
    folder = root() / "book" if book is None else book
    return sorted(path.stem for path in folder.glob("*.py"))


def run_chapter(
    chapter: str,
    parameters: Mapping[str, Any] | None = None,
    output: Path | None = None,
    threads: int | None = None,
) -> Path:
    """Execute one chapter and return the path of its tidied notebook.

    `output` is `book/<chapter>.ipynb` by default; the CSV files of its figures go to
    `_static/data/<chapter>/` beside it. `threads` is OMP_NUM_THREADS of the kernel: by default
    that of this process, else the number of processors.

    Raises what `profiles.resolve` raises, and UserError for a parameter that the chapter's
    parameters cell lacks, both before anything runs; ChapterError if a cell fails. Then the old
    notebook and data are untouched, and the failed notebook is kept under `build/failed/`.
    """
    book = root() / "book"
    given = dict(parameters or {})
    resolve(chapter, given)  # names the nearest spelling of a wrong chapter or parameter
    source = book / f"{chapter}.py"
    notebook = read_chapter(source)
    defaults = parameter_defaults(notebook)
    _check_names(chapter, given, defaults)
    values = resolve(chapter, {**defaults, **given}).parameters.model_dump(mode="json")
    provenance = {
        "chapter": chapter,
        "profile": values["profile"],
        "source_sha256": source_hash(source),
        "rows_sha256": rows_hash(book.parent),
        "parameters": values,
    }
    target = book / f"{chapter}.ipynb" if output is None else Path(output).resolve()
    changed = {name: value for name, value in given.items() if value != defaults[name]}
    with tempfile.TemporaryDirectory(prefix="unmasked-") as scratch:
        work = Path(scratch)
        executed = _execute(chapter, notebook, changed, work, book, threads)
        _publish(executed, provenance, work / "data", target)
    return target


def run_chapters(
    names: Sequence[str],
    parameters: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    jobs: int = 1,
) -> list[Path]:
    """Execute several chapters, `jobs` at a time, and return their notebooks in the given order.

    Every chapter is tried. Raises UserError that lists the chapters that failed and why.
    """
    threads = None if jobs == 1 else max(1, (os.cpu_count() or 1) // jobs)
    outputs = [None if folder is None else Path(folder) / f"{name}.ipynb" for name in names]
    context = multiprocessing.get_context("spawn")  # each job sets its own environment
    with ProcessPoolExecutor(max_workers=jobs, mp_context=context) as pool:
        futures = [
            pool.submit(run_chapter, name, parameters, output, threads)
            for name, output in zip(names, outputs, strict=True)
        ]
    errors = [future.exception() for future in futures]
    failed = [str(error) for error in errors if isinstance(error, UserError)]
    if failed and len(failed) == sum(error is not None for error in errors):
        raise UserError("\n".join([f"{len(failed)} of {len(names)} chapters failed:", *failed]))
    return [future.result() for future in futures]


def parameter_defaults(notebook: NotebookNode) -> dict[str, Any]:
    """Names and values that the notebook's one `parameters` cell assigns.

    Raises UserError if there is not exactly one such cell, or if it holds anything but
    assignments of plain values.
    """
    cells = [cell for cell in notebook.cells if PARAMETERS_TAG in tags(cell)]
    if len(cells) != 1:
        raise UserError(f"a chapter has one cell tagged {PARAMETERS_TAG!r}, not {len(cells)}")
    values: dict[str, Any] = {}
    for statement in ast.parse(cells[0].source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                raise UserError(
                    f"the parameters cell assigns one name a line; found {ast.unparse(statement)!r}"
                )
        try:
            values[name] = ast.literal_eval(value)
        except ValueError:
            raise UserError(
                f"parameter {name!r} needs a plain value, not {ast.unparse(value)!r}"
            ) from None
    return values


def _check_names(chapter: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    for name in given:
        if name not in defaults:
            raise UserError(unknown(f"parameter of chapter {chapter}:", name, defaults))


def _execute(
    chapter: str,
    notebook: NotebookNode,
    parameters: Mapping[str, Any],
    work: Path,
    book: Path,
    threads: int | None,
) -> NotebookNode:
    result = work / f"{chapter}.ipynb"
    source = work / "source.ipynb"
    nbformat.write(notebook, source)
    try:
        with _kernel_environment(work, threads):
            executed = papermill.execute_notebook(
                source,
                result,
                parameters=dict(parameters),
                kernel_name="python3",
                cwd=book,
                progress_bar=False,
                log_output=False,
            )
    except PapermillExecutionError as error:
        cell = _number_in_source(notebook, error.source)
        kept = _keep_failed(result, chapter)
        raise ChapterError(chapter, cell, error.ename, error.evalue, kept) from error
    except DeadKernelError as error:
        kept = _keep_failed(result, chapter)
        raise ChapterError(chapter, 0, "DeadKernelError", "the kernel died", kept) from error
    for number, cell in enumerate(executed.cells, 1):  # papermill lets a sys.exit(0) pass
        if any(output.output_type == "error" for output in cell.get("outputs", [])):
            kept = _keep_failed(result, chapter)
            raise ChapterError(chapter, number, "SystemExit", "the cell ended the run", kept)
    return executed


def _publish(
    executed: NotebookNode, provenance: Mapping[str, Any], data: Path, target: Path
) -> None:
    """Tidy the notebook and put it and its figures' data into place."""
    chapter = provenance["chapter"]
    folder = f"_static/data/{chapter}"
    try:
        text = as_text(tidy(executed, provenance, data_folder=folder))
    except ValueError as error:
        raise ChapterError(chapter, 0, "ValueError", str(error)) from error
    _replace_folder(data, target.parent / folder)
    _replace_file(text, target)


@contextmanager
def _kernel_environment(work: Path, threads: int | None) -> Iterator[None]:
    """Kernels inherit this process's environment: set what they need, and put it back after."""
    settings = work / "ipython" / "profile_default" / "ipython_kernel_config.py"
    settings.parent.mkdir(parents=True)
    # Critical only: a busy kernel also logs the interrupt that ends it, as an error.
    settings.write_text("c.IPKernelApp.log_level = 50\n", encoding="utf-8")
    data = work / "data"
    data.mkdir()
    count = threads or int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    wanted = {
        **QUIET,
        "IPYTHONDIR": str(work / "ipython"),
        "OMP_NUM_THREADS": str(count),
        FIGURES_VARIABLE: str(data),
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _number_in_source(notebook: NotebookNode, source: str) -> int:
    sources = [cell.source for cell in notebook.cells]
    return sources.index(source) + 1 if source in sources else 0


def _keep_failed(executed: Path, chapter: str) -> str:
    """Keep what ran under build/failed and return its path relative to the checkout."""
    if not executed.exists():
        return ""
    kept = root() / "build" / "failed" / f"{chapter}.ipynb"
    _replace_file(executed.read_text(encoding="utf-8"), kept)
    return kept.relative_to(root()).as_posix()


def _replace_file(text: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, target)


def _replace_folder(new: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    if any(new.iterdir()):
        shutil.copytree(new, target)
