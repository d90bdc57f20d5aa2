"""From a chapter's .py to a notebook and from an executed notebook to the one that is committed.

Both directions are deterministic: the same source and the same results give the same bytes.
"""

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from unmasked.project import UserError

PARAMETERS_TAG = "parameters"
INJECTED_TAG = "injected-parameters"
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"}

_EXECUTION_METADATA = ("papermill", "execution", "ExecuteTime", "collapsed", "scrolled")


def read_chapter(source: Path) -> NotebookNode:
    """A chapter's py:percent file as a notebook without outputs, with stable cell ids.

    Raises UserError if the file is missing or holds no cells.
    """
    if not source.is_file():
        raise UserError(f"there is no chapter source {source.name} in the folder {source.parent}")
    notebook = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    if not notebook.cells:
        raise UserError(f"the chapter source {source.name} holds no cells")
    notebook.metadata = NotebookNode(kernelspec=KERNELSPEC, language_info=LANGUAGE)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    number_cells(notebook.cells)
    return notebook


def source_hash(source: Path) -> str:
    """SHA-256 of a chapter's source text, 64 hex digits; line endings do not count."""
    return hashlib.sha256(source.read_text(encoding="utf-8").encode("utf-8")).hexdigest()


def rows_hash(base: Path) -> str:
    """SHA-256 of the committed rows and claims that pages are drawn from, 64 hex digits."""
    total = hashlib.sha256()
    for path in [*sorted((base / "results").glob("*.csv")), base / "book" / "claims.yml"]:
        if path.is_file():
            total.update(f"{path.name}\n{path.read_text(encoding='utf-8')}".encode())
    return total.hexdigest()


def outputs_hash(notebook: NotebookNode) -> str:
    """SHA-256 of all outputs of a notebook, 64 hex digits."""
    outputs = [cell.outputs for cell in notebook.cells if cell.get("outputs")]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()


def number_cells(cells: Iterable[NotebookNode]) -> None:
    """Give each cell an id made from its position and source, so that it is always the same."""
    for position, cell in enumerate(cells):
        digest = hashlib.sha256(f"{position}\n{cell.cell_type}\n{cell.source}".encode())
        cell["id"] = digest.hexdigest()[:12]


def tidy(
    notebook: NotebookNode, provenance: Mapping[str, Any], data_folder: str = ""
) -> NotebookNode:
    """A copy of an executed notebook as it is committed.

    Cell ids are stable, what execution added to the metadata is gone, and consecutive pieces of a
    stream are one. A figure's alt text and caption move to the cell's `mystnb` metadata, where the
    page takes them from; the caption ends with a link to the figure's CSV in `data_folder`, a path
    relative to the notebook. `provenance` becomes the notebook metadata `unmasked`.

    Raises ValueError for a cell that shows a figure and anything beside it: a page would put the
    figure's caption under each of them.
    """
    tidied = copy.deepcopy(notebook)
    tidied.metadata = NotebookNode(
        kernelspec=KERNELSPEC, language_info=LANGUAGE, unmasked=_node(provenance)
    )
    tidied.nbformat, tidied.nbformat_minor = 4, 5
    for cell in tidied.cells:
        for key in _EXECUTION_METADATA:
            cell.metadata.pop(key, None)
        if not tags(cell):
            cell.metadata.pop("tags", None)
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs)
            _move_caption(cell, data_folder)
    number_cells(tidied.cells)
    tidied.metadata.unmasked["outputs_sha256"] = outputs_hash(tidied)
    return tidied


def as_text(notebook: NotebookNode) -> str:
    """The notebook as the JSON text that is written to disk; raises if it is not valid."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def tags(cell: NotebookNode) -> list[str]:
    """The cell's tags."""
    return list(cell.metadata.get("tags", []))


def is_figure(output: NotebookNode) -> bool:
    """Whether an output holds an image."""
    return any(kind.startswith("image/") for kind in output.get("data", {}))


def _node(mapping: Mapping[str, Any]) -> NotebookNode:
    return nbformat.from_dict(dict(mapping))


def _merged(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    merged: list[NotebookNode] = []
    for output in outputs:
        previous = merged[-1] if merged else None
        if (
            output.output_type == "stream"
            and previous is not None
            and previous.output_type == "stream"
            and previous.name == output.name
        ):
            previous.text += output.text
        else:
            merged.append(output)
    for output in merged:
        if output.output_type == "stream":
            output.text = _without_overwritten(output.text)
    return [output for output in merged if output.output_type != "stream" or output.text]


def _without_overwritten(text: str) -> str:
    """What a terminal would still show: text before a carriage return is overwritten."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def _move_caption(cell: NotebookNode, data_folder: str) -> None:
    figures = [output for output in cell.outputs if is_figure(output)]
    if not figures:
        return
    cell.outputs = [
        output
        for output in cell.outputs
        if "caption_of" not in output.get("metadata", {}).get("unmasked", {})
    ]
    displayed = [output for output in cell.outputs if output.output_type != "stream"]
    if len(displayed) > 1:
        raise ValueError(
            "a cell that shows a figure may show nothing else, because the page puts the figure's "
            "caption under every output of the cell: give each show(), say(), table() and "
            f"banner() its own cell. The cell begins: {cell.source[:80]!r}"
        )
    details = figures[0].metadata.get("unmasked")
    if details is None:  # not drawn through show(): the gate refuses it for want of an alt text
        return
    caption = details["caption"]
    if details["data"] and data_folder:
        caption += f" Data: [{details['data']}]({data_folder}/{details['data']})."
    cell.metadata["mystnb"] = _node(
        {
            "image": {"alt": figures[0].metadata["image/png"]["alt"]},
            "figure": {"caption": caption, "name": f"fig-{details['name']}"},
        }
    )
