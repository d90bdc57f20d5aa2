"""What a chapter's cells call to put figures, sentences, tables and source code on the page.

Everything shown carries what the pipeline needs later: a figure its alt text, caption and data, a
banner whether its rows are stale. `unmasked.book.tidy` moves these to where the page finds them.
"""

import ast
import base64
import inspect
import io
import os
import re
import textwrap
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from IPython.display import publish_display_data
from pandas.api.types import is_float_dtype, is_numeric_dtype

if TYPE_CHECKING:
    from unmasked.figures import Figure
    from unmasked.results import Rows

FIGURES_VARIABLE = "UNMASKED_FIGURES"
MAX_SOURCE_LINES = 40
PIXELS_PER_INCH = 144
PALETTE_COLOURS = 64

_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
_MISSING_NUMBER = re.compile(r"(?<![\w'\\-])-?(?:nan|inf)(?![\w'-])")


def show(figure: "Figure") -> None:
    """Display a figure once, as PNG with its alt text, and its caption under it.

    The figure and its data are written as `<name>.png` and `<name>.csv` into the folder named by
    the environment variable `UNMASKED_FIGURES`; `unmasked run` sets it, and without it nothing is
    written. Show one figure a cell: a page can give each cell one caption.

    Raises ValueError if the name is not lower-case words joined by - or _, or if the alt text or
    the caption is empty or holds a missing number.
    """
    if not _NAME.fullmatch(figure.name):
        raise ValueError(
            f"figure name {figure.name!r}: use lower-case letters and digits joined by - or _"
        )
    alt = _clean(figure.alt, f"alt text of figure {figure.name!r}")
    caption = _clean(figure.caption, f"caption of figure {figure.name!r}")
    picture = _png(figure.figure)
    data = _write_files(figure, picture)
    publish_display_data(
        {"image/png": picture, "text/plain": alt},
        metadata={
            "image/png": {"alt": alt},
            "unmasked": {"name": figure.name, "caption": caption, "data": data},
        },
    )
    publish_display_data(
        {"text/markdown": f"*{caption}*", "text/plain": caption},
        metadata={"unmasked": {"caption_of": figure.name}},
    )


def say(markdown: str) -> None:
    """Display a piece of Markdown whose numbers come from rows, usually an f-string.

    Raises ValueError if the text is empty or holds `nan` or `inf`, a number that is missing.
    """
    text = _clean(markdown, "text given to say()", one_line=False)
    publish_display_data({"text/markdown": text, "text/plain": text}, metadata={})


def table(frame: pd.DataFrame, caption: str, digits: int = 3) -> None:
    """Display a data frame as an HTML table that scrolls sideways and reads well aloud.

    The index is shown as row headers unless it is the default one; then the first column gives
    them. Floats are shown with `digits` decimals, NaN as a dash.

    Raises ValueError if the frame has no rows or several levels of headers, or no caption.
    """
    caption = _clean(caption, "caption of a table")
    if frame.empty:
        raise ValueError(f"table {caption!r} has no rows")
    if frame.columns.nlevels > 1 or frame.index.nlevels > 1:
        raise ValueError(f"table {caption!r} has several header levels; call reset_index() first")
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.rename_axis(index=frame.index.name or "").reset_index()
    numeric = [is_numeric_dtype(dtype) for dtype in frame.dtypes]
    cells = pd.DataFrame(
        {i: _formatted(frame.iloc[:, i], digits) for i in range(frame.shape[1])}
    ).to_numpy()
    head = "".join(
        _cell("th", str(name), number, ' scope="col"')
        for name, number in zip(frame.columns, numeric, strict=True)
    )
    body = "\n".join(f"<tr>{_row(cells[i], numeric)}</tr>" for i in range(len(cells)))
    label = escape(caption, quote=True)
    html = (
        f'<div class="table-scroll" role="region" aria-label="{label}" tabindex="0">\n<table>\n'
        f"<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )
    plain = pd.DataFrame(cells, columns=frame.columns).to_string(index=False)
    publish_display_data({"text/html": html, "text/plain": plain}, metadata={})


def source(thing: Callable[..., Any] | type) -> None:
    """Display the source code of a function or class of this package, without docstrings.

    Raises ValueError if it is not from `unmasked` or longer than 40 lines without docstrings.
    """
    thing = inspect.unwrap(thing)
    module = getattr(thing, "__module__", "") or ""
    name = f"{module}.{getattr(thing, '__qualname__', thing)}"
    if module.split(".")[0] != "unmasked":
        raise ValueError(f"source() shows code of unmasked only, not {name}")
    code = _without_docstrings(textwrap.dedent(inspect.getsource(thing)))
    lines = len(code.splitlines())
    if lines > MAX_SOURCE_LINES:
        raise ValueError(
            f"{name} is {lines} lines long; a cell shows at most {MAX_SOURCE_LINES}: "
            "show one of the functions that it calls"
        )
    text = f"`{name}`\n\n```python\n{code}\n```"
    publish_display_data({"text/markdown": text, "text/plain": code}, metadata={})


def banner(rows: "Rows") -> None:
    """Display one small line that says which rows the section uses; stale rows are marked."""
    text = _clean(rows.message, "message of the rows")
    kind, lead = ("rows stale", "<strong>Stale rows.</strong> ") if rows.stale else ("rows", "")
    publish_display_data(
        {
            "text/html": f'<p class="{kind}"><small>{lead}{escape(text)}</small></p>',
            "text/plain": f"Stale rows. {text}" if rows.stale else text,
        },
        metadata={"unmasked": {"stale": bool(rows.stale), "origin": rows.origin}},
    )


def _clean(text: str, what: str, *, one_line: bool = True) -> str:
    text = textwrap.dedent(text).strip()
    if one_line:
        text = " ".join(text.split())
    if not text:
        raise ValueError(f"{what} is empty")
    if missing := _MISSING_NUMBER.search(text):
        raise ValueError(f"{what} holds {missing.group()!r}, a number that is missing: {text!r}")
    return text


def _png(figure: Any) -> str:
    """The figure as base64 PNG, the same bytes each time; closes it so that it shows once.

    A palette of 64 colours makes the file three times smaller, and a flat drawing looks the same.
    """
    import matplotlib.pyplot as plt
    from PIL import Image

    drawn, buffer = io.BytesIO(), io.BytesIO()
    figure.savefig(
        drawn, format="png", dpi=PIXELS_PER_INCH, bbox_inches="tight", metadata={"Software": None}
    )
    plt.close(figure)
    flat = Image.open(drawn).convert("RGB").quantize(PALETTE_COLOURS, dither=Image.Dither.NONE)
    flat.save(buffer, format="png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _write_files(figure: "Figure", picture: str) -> str:
    """Write CSV and PNG; the CSV's file name, or "" if there is no folder to write them to."""
    folder = os.environ.get(FIGURES_VARIABLE)
    if not folder:
        return ""
    path = Path(folder) / f"{figure.name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.data.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
    path.with_suffix(".png").write_bytes(base64.b64decode(picture))
    return path.name


def _formatted(column: pd.Series, digits: int) -> list[str]:
    def one(value: Any) -> str:
        if pd.isna(value):
            return "–"
        return f"{value:.{digits}f}" if is_float_dtype(column.dtype) else str(value)

    return [one(value) for value in column]


def _row(cells: Any, numeric: list[bool]) -> str:
    first = _cell("th", cells[0], numeric[0], ' scope="row"')
    rest = zip(cells[1:], numeric[1:], strict=True)
    return first + "".join(_cell("td", text, number) for text, number in rest)


def _cell(tag: str, text: str, number: bool, scope: str = "") -> str:
    style = ' class="number"' if number else ""
    return f"<{tag}{scope}{style}>{escape(text)}</{tag}>"


def _without_docstrings(code: str) -> str:
    lines = code.splitlines()
    drop: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        first = node.body[0]
        if ast.get_docstring(node, clean=False) is None or len(node.body) == 1:
            continue
        drop.update(range(first.lineno - 1, first.end_lineno or first.lineno))
        after = first.end_lineno or first.lineno
        while after < len(lines) and not lines[after].strip():
            drop.add(after)
            after += 1
    return "\n".join(line for i, line in enumerate(lines) if i not in drop).rstrip()
