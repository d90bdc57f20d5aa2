import json

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from unmasked.book import tidy
from unmasked.project import UserError

SOURCE = '# %% [markdown]\n# # Title\n\n# %% tags=["parameters"]\nseed = 0\n'


def code(*outputs, **metadata):
    cell = new_code_cell("f()", execution_count=1, outputs=list(outputs))
    cell.metadata.update(metadata)
    return cell


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def image(data="line.csv", **unmasked):
    details = {"name": "line", "caption": "It rises.", "data": data, **unmasked}
    metadata = {"image/png": {"alt": "A line."}, "unmasked": details}
    return new_output("display_data", data={"image/png": "AAAA"}, metadata=metadata)


def said(text="Hello", **unmasked):
    metadata = {"unmasked": unmasked} if unmasked else {}
    return new_output("display_data", data={"text/markdown": text}, metadata=metadata)


def tidied_cell(cell, data_folder="_static/data/mini"):
    return tidy.tidy(new_notebook(cells=[cell]), {}, data_folder).cells[0]


def test_a_source_becomes_a_valid_notebook_with_the_same_ids_each_time(tmp_path):
    path = tmp_path / "mini.py"
    path.write_text(SOURCE)
    first, second = tidy.read_chapter(path), tidy.read_chapter(path)
    nbformat.validate(first)
    assert [cell.source for cell in first.cells] == ["# Title", "seed = 0"]
    assert first == second
    assert tidy.tags(first.cells[1]) == ["parameters"]


def test_an_id_depends_on_position_and_source():
    cells = [new_code_cell("a"), new_code_cell("a"), new_code_cell("b")]
    tidy.number_cells(cells)
    ids = [cell.id for cell in cells]
    assert len(set(ids)) == 3
    tidy.number_cells(cells[1:])
    assert cells[1].id == ids[0]


@pytest.mark.parametrize("text", [None, ""])
def test_a_missing_or_empty_source_is_refused(tmp_path, text):
    path = tmp_path / "mini.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=r"mini\.py"):
        tidy.read_chapter(path)


def test_the_source_hash_ignores_line_endings_and_nothing_else(tmp_path):
    unix, dos, other = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"
    unix.write_bytes(b"a = 1\n")
    dos.write_bytes(b"a = 1\r\n")
    other.write_bytes(b"a = 1 \n")
    assert tidy.source_hash(unix) == tidy.source_hash(dos)
    assert tidy.source_hash(unix) != tidy.source_hash(other)


def test_what_execution_adds_is_removed_and_what_authors_wrote_stays():
    cell = code(papermill={"duration": 1.5}, execution={"t": "now"}, tags=["hide-cell"])
    notebook = new_notebook(cells=[cell], metadata={"papermill": {"start_time": "now"}})
    tidied = tidy.tidy(notebook, {"profile": "smoke", "parameters": {"seed": 0}})
    assert tidied.cells[0].metadata == {"tags": ["hide-cell"]}
    assert set(tidied.metadata) == {"kernelspec", "language_info", "unmasked"}
    known = {"profile": "smoke", "parameters": {"seed": 0}}
    known["outputs_sha256"] = tidy.outputs_hash(tidied)
    assert tidied.metadata.unmasked == known
    assert notebook.cells[0].metadata.papermill.duration == 1.5  # the input is not changed


def test_consecutive_pieces_of_a_stream_are_one():
    pieces = [stream("a"), stream("b\n"), stream("x", "stderr"), stream("c"), stream("")]
    outputs = tidied_cell(code(*pieces)).outputs
    assert [(o.name, o.text) for o in outputs] == [
        ("stdout", "ab\n"),
        ("stderr", "x"),
        ("stdout", "c"),
    ]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("10%\r20%\rdone\nnext\n", "done\nnext\n"),
        ("dos\r\nlines\r\n", "dos\nlines\n"),
        ("last\r", "last"),
    ],
)
def test_overwritten_text_is_dropped(written, kept):
    assert tidied_cell(code(stream(written[:4]), stream(written[4:]))).outputs[0].text == kept


def test_alt_text_and_caption_move_to_the_cell_with_a_link_to_the_data():
    cell = tidied_cell(code(image(), said("*It rises.*", caption_of="line")))
    assert cell.metadata.mystnb == {
        "image": {"alt": "A line."},
        "figure": {
            "caption": "It rises. Data: [line.csv](_static/data/mini/line.csv).",
            "name": "fig-line",
        },
    }
    assert len(cell.outputs) == 1


def test_no_link_without_data():
    assert tidied_cell(code(image(data=""))).metadata.mystnb.figure.caption == "It rises."


@pytest.mark.parametrize("beside", [image(name="other"), said(), said(stale=False)])
def test_a_cell_shows_a_figure_alone(beside):
    with pytest.raises(ValueError, match="a cell that shows a figure may show nothing else"):
        tidied_cell(code(image(), beside))


def test_a_figure_not_drawn_through_show_is_left_for_the_gate():
    plain = new_output("display_data", data={"image/png": "AAAA"})
    assert "mystnb" not in tidied_cell(code(plain)).metadata


def test_text_is_valid_json_that_ends_with_one_newline():
    notebook = tidy.tidy(new_notebook(cells=[new_markdown_cell("é")]), {})
    text = tidy.as_text(notebook)
    assert text.endswith("}\n")
    assert json.loads(text)["cells"][0]["source"] == ["é"]
    notebook.cells[0].cell_type = "sonnet"
    with pytest.raises(nbformat.ValidationError):
        tidy.as_text(notebook)


def test_the_page_gets_alt_text_caption_and_a_working_link_to_the_data(page, executed):
    html = BeautifulSoup(page.read_text(), "html.parser")
    figure = html.find("figure", id="fig-line")
    assert figure.img["alt"] == "A line from 1.0 to 2.0."
    assert "The line reaches" in figure.figcaption.text
    link = figure.figcaption.find("a", class_="download")
    assert link.text == "line.csv"
    data = executed.book / "_static" / "data" / "mini" / "line.csv"
    assert (page.parent / link["href"]).read_bytes() == data.read_bytes()
    assert data.read_text() == "step,value\n0,1\n1,2\n"


def test_the_page_shows_what_say_and_banner_made(page):
    html = BeautifulSoup(page.read_text(), "html.parser")
    assert html.find("p", class_="rows").text == "Committed rows of 3 seeds."
    assert "<p>The seed is <strong>0</strong>.</p>" in page.read_text()
    assert "one\ntwo" in html.find("div", class_="stream").text
