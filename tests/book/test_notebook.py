import base64
import io
import json
from types import SimpleNamespace
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from unmasked.book import notebook

matplotlib.use("Agg")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    outputs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    monkeypatch.setattr(
        notebook, "publish_display_data", lambda data, metadata: outputs.append((data, metadata))
    )
    monkeypatch.delenv(notebook.FIGURES_VARIABLE, raising=False)
    return outputs


def figure(**changes: Any) -> SimpleNamespace:
    drawing, axes = plt.subplots(figsize=(2, 1))
    axes.plot([0, 1])
    data = pd.DataFrame({"x": [0, 1], "y": [0.1, 1 / 3]})
    given = {"name": "two-points", "alt": "A line.", "caption": "It\n  rises.", "data": data}
    return SimpleNamespace(figure=drawing, **{**given, **changes})


def test_a_figure_is_one_image_with_its_alt_text_and_then_its_caption(shown):
    drawn = figure()
    notebook.show(drawn)
    (image, metadata), (caption, caption_metadata) = shown
    size = Image.open(io.BytesIO(base64.b64decode(image["image/png"]))).size
    assert 200 < size[0] < 2.2 * notebook.PIXELS_PER_INCH
    assert metadata["image/png"] == {"alt": "A line."}
    assert metadata["unmasked"] == {"name": "two-points", "caption": "It rises.", "data": ""}
    assert caption["text/markdown"] == "*It rises.*"
    assert caption_metadata == {"unmasked": {"caption_of": "two-points"}}
    assert not plt.fignum_exists(drawn.figure.number)


def test_the_same_figure_gives_the_same_bytes(shown):
    notebook.show(figure())
    notebook.show(figure())
    assert shown[0] == shown[2]


def test_a_figures_data_is_written_where_the_variable_says(shown, monkeypatch, tmp_path):
    monkeypatch.setenv(notebook.FIGURES_VARIABLE, str(tmp_path / "new"))
    notebook.show(figure())
    assert shown[0][1]["unmasked"]["data"] == "two-points.csv"
    assert (tmp_path / "new" / "two-points.csv").read_text() == "x,y\n0,0.1\n1,0.333333\n"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Two points"}, "figure name 'Two points'"),
        ({"name": "../up"}, "figure name"),
        ({"alt": " "}, "alt text of figure 'two-points' is empty"),
        ({"caption": ""}, "caption of figure 'two-points' is empty"),
        ({"alt": "It rises to nan."}, "holds 'nan'"),
    ],
)
def test_a_figure_that_a_page_could_not_explain_is_refused(shown, changes, message):
    with pytest.raises(ValueError, match=message):
        notebook.show(figure(**changes))
    assert shown == []


def test_say_shows_markdown_without_the_indentation_of_the_code(shown):
    notebook.say("""
        One *line*.

        Another; a nanosecond and an infinite list are words, $\\inf f$ is maths.
    """)
    text = (
        "One *line*.\n\nAnother; a nanosecond and an infinite list are words, $\\inf f$ is maths."
    )
    assert shown == [({"text/markdown": text, "text/plain": text}, {})]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_say_refuses_a_missing_number(shown, value):
    with pytest.raises(ValueError, match="a number that is missing"):
        notebook.say(f"The loss is {value:.3f}.")
    assert shown == []


def test_a_table_has_a_caption_headers_and_escaped_text(shown):
    frame = pd.DataFrame({"name": ["a<b", "c"], "loss": [1.23456, float("nan")], "n": [1, 2]})
    notebook.table(frame, 'Loss "now"', digits=2)
    html = BeautifulSoup(shown[0][0]["text/html"], "html.parser")
    assert html.caption.text == 'Loss "now"'
    assert html.div["aria-label"] == 'Loss "now"'
    assert html.div["tabindex"] == "0"
    assert [th.text for th in html.thead.find_all("th", scope="col")] == ["name", "loss", "n"]
    rows = [[cell.text for cell in row.find_all(["th", "td"])] for row in html.tbody.find_all("tr")]
    assert rows == [["a<b", "1.23", "1"], ["c", "–", "2"]]
    assert [th.text for th in html.tbody.find_all("th", scope="row")] == ["a<b", "c"]
    assert "1.23" in shown[0][0]["text/plain"]


def test_a_named_index_gives_the_row_headers(shown):
    frame = pd.DataFrame({"loss": [1.0]}, index=pd.Index(["unigram"], name="model"))
    notebook.table(frame, "Losses")
    html = BeautifulSoup(shown[0][0]["text/html"], "html.parser")
    assert [th.text for th in html.find_all("th")] == ["model", "loss", "unigram"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": []}), "has no rows"),
        (pd.DataFrame({("a", "b"): [1]}), "several header levels"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(shown, frame, message):
    with pytest.raises(ValueError, match=message):
        notebook.table(frame, "Caption")


def test_source_shows_the_code_without_its_docstring(shown):
    notebook.source(notebook.say)
    text = shown[0][0]["text/markdown"]
    assert text.startswith("`unmasked.book.notebook.say`\n\n```python\ndef say(markdown: str)")
    assert "    publish_display_data(" in text
    assert '"""' not in text
    assert "Display a piece" not in text


def test_source_takes_a_class_and_drops_the_docstrings_of_its_methods(shown):
    from unmasked.book.run import ChapterError

    notebook.source(ChapterError)
    code = shown[0][0]["text/plain"]
    assert code.startswith("class ChapterError(UserError):\n    def __init__")
    compile(code, "shown", "exec")


def test_source_refuses_what_is_long_or_not_ours(shown, monkeypatch):
    with pytest.raises(ValueError, match=r"unmasked only, not json\.dumps"):
        notebook.source(json.dumps)
    monkeypatch.setattr(notebook, "MAX_SOURCE_LINES", 2)
    with pytest.raises(ValueError, match="lines long; a cell shows at most 2"):
        notebook.source(notebook.say)


@pytest.mark.parametrize("stale", [False, True])
def test_a_banner_says_and_records_whether_rows_are_stale(shown, stale):
    rows = SimpleNamespace(message="Rows of <3 seeds>.", stale=stale, origin="committed")
    notebook.banner(rows)
    (data, metadata) = shown[0]
    assert metadata == {"unmasked": {"stale": stale, "origin": "committed"}}
    assert "Rows of &lt;3 seeds&gt;." in data["text/html"]
    assert ("Stale rows." in data["text/html"]) is stale
    assert ("Stale rows." in data["text/plain"]) is stale
