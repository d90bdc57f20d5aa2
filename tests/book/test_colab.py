import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager
from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from unmasked.book import colab
from unmasked.book.myst import Book, Citation, to_markdown
from unmasked.project import Repository, UserError

SITE = "https://ann.github.io/unmasked"
BOOK = Book(
    site=SITE,
    titles={"mini": "A miniature chapter", "other": "Another page"},
    labels={"sec-loss": ("other", "The loss"), "bare": ("mini", "")},
    citations={
        "a2019": Citation("Ann and Bob", "2019", "https://doi.org/10.1/x", "Ann. *Title*, 2019."),
        "c2020": Citation("Cy et al.", "2020", "", "Cy. *Other*, 2020."),
    },
)


def convert(*cells: str) -> str:
    return "\n----\n".join(to_markdown(cells, "mini", BOOK))


@pytest.mark.parametrize(
    ("myst", "plain"),
    [
        ("{cite:p}`a2019`", "([Ann and Bob 2019](https://doi.org/10.1/x))"),
        ("{cite:p}`a2019, c2020`", "([Ann and Bob 2019](https://doi.org/10.1/x); Cy et al. 2020)"),
        ("{cite:t}`a2019` say", "[Ann and Bob (2019)](https://doi.org/10.1/x) say"),
        ("{cite:p}`a2019,\nc2020`", "([Ann and Bob 2019](https://doi.org/10.1/x); Cy et al. 2020)"),
        ("{doc}`other`", f"[Another page]({SITE}/book/other.html)"),
        ("{doc}`this <../book/other>`", f"[this]({SITE}/book/other.html)"),
        ("{ref}`sec-loss`", f"[The loss]({SITE}/book/other.html#sec-loss)"),
        ("{ref}`here <bare>`", f"[here]({SITE}/book/mini.html#bare)"),
        ("{ref}`the curve <fig-loss_curve>`", f"[the curve]({SITE}/book/mini.html#fig-loss-curve)"),
        ("{term}`token` {term}`tokens <token>`", "token tokens"),
        ("`{cite:p}` and ``a `b` {eq}``", "`{cite:p}` and ``a `b` {eq}``"),
        ("$`{eq}`$ costs \\$5", "$`{eq}`$ costs \\$5"),
        ("(sec-a)=\n# Title\n% hidden\nText", "# Title\nText"),
        ("```python\n{cite:p}`x`\n```", "```python\n{cite:p}`x`\n```"),
        ("$$ a $$", "$$\na\n$$"),
        ("$$\na \\\\\nb\n$$", "$$\n\\begin{aligned}\na \\\\\nb\n\\end{aligned}\n$$"),
        ("$$ a $$ (eq-a)\nby {eq}`eq-a`", "$$\na \\tag{1}\n$$\nby (1)"),
        ("```{math}\n:label: eq-a\na\n```", "$$\na \\tag{1}\n$$"),
        ("```{note}\nOne.\n\nTwo.\n```", "> **Note**\n>\n> One.\n>\n> Two."),
        (":::{admonition} A {term}`token`\nOne.\n:::", "> **A token**\n>\n> One."),
        (
            "```{dropdown} Answer\nIt is $x$.\n```",
            "<details>\n<summary>Answer</summary>\n\nIt is $x$.\n\n</details>",
        ),
        (
            "```{admonition} Answer\n:class: dropdown\nYes.\n```",
            "<details>\n<summary>Answer</summary>\n\nYes.\n\n</details>",
        ),
        ("```{prf:theorem} Named\n:label: t\nText.\n```", "**Theorem 1 (Named).** Text."),
        (
            "See {prf:ref}`t`.\n\n```{prf:lemma}\n:label: t\nText.\n```",
            "See Lemma 1.\n\n**Lemma 1.** Text.",
        ),
        ("```{prf:proof}\nText.\n```", "**Proof.** Text."),
        (
            "```{glossary}\ntoken\n  A piece.\nmask\n  A cover.\n```",
            "**token**: A piece.\n\n**mask**: A cover.",
        ),
        ("- a\n\n  ```{note}\n  b\n  ```", "- a\n\n  > **Note**\n  >\n  > b"),
    ],
)
def test_each_construct_becomes_plain_markdown(myst, plain):
    assert convert(myst) == plain


def test_numbers_run_through_the_page_and_may_be_used_before():
    first = "{eq}`eq-b`\n\n```{prf:lemma}\nA\n```"
    second = "$$ a $$ (eq-a)\n\n$$ b $$ (eq-b)\n\n```{prf:lemma}\nB\n```"
    text = convert(first, second)
    assert text.startswith("(2)\n\n**Lemma 1.** A\n----\n")
    assert "a \\tag{1}" in text
    assert "b \\tag{2}" in text
    assert text.endswith("**Lemma 2.** B")


def test_the_bibliography_lists_what_is_cited_on_the_page():
    text = convert("```{bibliography}\n:filter: docname in docnames\n```", "{cite:t}`a2019`")
    assert text.startswith("- Ann. *Title*, 2019.\n----")


@pytest.mark.parametrize(
    ("myst", "message"),
    [
        ("```{tip}\nText\n```", "mini: Unknown directive 'tip'"),
        ("```{prf:teorem}\nText\n```", "Did you mean 'prf:theorem'"),
        ("{prf:ref}`thm-flor`", "theorem or lemma 'thm-flor'"),
        ("{numref}`fig-a`", "Unknown role 'numref'"),
        ("> {cite}`a2019`", "Unknown role 'cite'"),
        ("{cite:p}`a2018`", "Unknown citation 'a2018'. Did you mean 'a2019'"),
        ("{eq}`eq-x`", "Unknown equation 'eq-x'"),
        ("{doc}`otter`", "Unknown page 'otter'. Did you mean 'other'"),
        ("{ref}`sec-los`", "Unknown label 'sec-los'"),
        ("{ref}`bare`", "needs a text"),
        ("{ref}`fig-a`", "needs a text"),
        ("```{note}\nText", "is not closed"),
        ("$$\na", "is not closed"),
        ("$$ a $$ b", "cannot read the equation"),
        ("$$ a \\label{x} $$", "label as"),
        ("$$ a $$ (l)\n\n$$ b $$ (l)", "given to two equations"),
        ("Text[^1]", "footnote"),
        ("![A](a.png)", "image 'a.png'"),
        ("[A](other.ipynb)", "give a full address"),
        ("[](#sec-loss)", "give a full address"),
        (":::\nText\n:::", "without a directive's name"),
        ("```{note}\n```{tip}\n```\n```", "tip"),
    ],
)
def test_what_a_copy_cannot_show_is_an_error(myst, message):
    with pytest.raises(UserError, match=re.escape(message)):
        convert(myst)


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W\d_]{2,}", text))


def words_of_page(path: Path) -> Counter[str]:
    main = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").find(role="main")
    beside_the_text = ".cell, .math, .highlight, .headerlink, .backrefs, .label"
    for part in main.select(beside_the_text):
        part.decompose()
    return words(main.get_text(" "))


def words_of_copy(notebook: nbformat.NotebookNode) -> Counter[str]:
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    without_maths = re.sub(r"\$\$.*?\$\$|\$[^$`]+\$", " ", prose, flags=re.DOTALL)
    html = BeautifulSoup(MarkdownIt().render(without_maths), "html.parser")
    for code in html.select("pre"):
        code.decompose()
    return words(html.get_text(" "))


@pytest.fixture
def copy(executed) -> nbformat.NotebookNode:
    return nbformat.reads(colab.copies(executed.book)["mini"], as_version=4)


def test_the_copy_has_the_words_of_the_page(page, copy):
    assert words_of_copy(copy) == words_of_page(page)
    assert words_of_page(page).total() > 100


def test_the_copy_is_a_plain_notebook_without_outputs(copy):
    nbformat.validate(copy)
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert copy.cells[0] is code[0]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert [cell.source for cell in code if cell.metadata.get("tags") == ["parameters"]] == [
        'profile = "smoke"\nseed = 0'
    ]
    prose = "\n".join(cell.source for cell in copy.cells if cell.cell_type == "markdown")
    outside_code = re.sub(r"```.*?```|(?<!})`[^`]+`", "", prose, flags=re.DOTALL)
    assert not re.search(r"\{[a-z:]+\}`|^:::|^\(\S+\)=|^:\w+:", outside_code, re.MULTILINE)
    assert "```python\nraw" in prose


@pytest.mark.parametrize("missing", [True, False])
def test_the_first_cell_installs_the_package_only_where_it_is_missing(copy, monkeypatch, missing):
    calls: list[tuple[str, str]] = []
    shell = SimpleNamespace(run_line_magic=lambda name, line: calls.append((name, line)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if missing else object())
    source = TransformerManager().transform_cell(copy.cells[0].source)
    exec(source, {"get_ipython": lambda: shell})
    address = "https://github.com/unmasked-book/unmasked"
    wanted = [("pip", f'install --quiet "unmasked @ git+{address}@main"')]
    assert calls == (wanted if missing else [])


def test_titles_labels_and_references_come_from_the_book_folder(executed):
    book = colab.read_book(executed.book, SITE)
    assert book.titles == {"mini": "A miniature chapter", "other": "Another page"}
    assert book.labels["sec-proof"] == ("mini", "Statement and proof")
    devlin, zhang = book.citations["devlin2019"], book.citations["zhang2021"]
    assert (devlin.authors, devlin.year) == ("Devlin et al.", "2019")
    assert devlin.url == "https://doi.org/10.18653/v1/N19-1423"
    assert zhang.authors == "Zhang and Hashimoto"
    assert zhang.url == "https://arxiv.org/abs/2104.05694"
    assert "On the inductive bias of masked language modeling" in zhang.entry


def test_an_entry_without_an_author_is_refused(tmp_path):
    path = tmp_path / "references.bib"
    path.write_text("@misc{x2000, title = {X}, year = {2000}}")
    with pytest.raises(UserError, match="x2000 has neither author nor editor"):
        colab.read_bibliography(path)


def test_copies_are_written_and_old_ones_removed(executed, tmp_path, monkeypatch):
    monkeypatch.setattr(colab, "root", lambda: executed.root)
    (tmp_path / "gone.ipynb").write_text("{}")
    paths = colab.write_copies(tmp_path, reference="v1.0")
    assert paths == [tmp_path / "mini.ipynb"]
    assert list(tmp_path.iterdir()) == paths
    assert "@v1.0" in json.loads(paths[0].read_text())["cells"][0]["source"][-1]


def notebook(code: str, profile: str = 'profile = "laptop"') -> nbformat.NotebookNode:
    parameters = new_code_cell(profile, metadata={"tags": ["parameters"], "mystnb": {"a": 1}})
    return new_notebook(cells=[new_markdown_cell("# T"), parameters, new_code_cell(code)])


@pytest.mark.parametrize(
    "line", ["profile = 'laptop'", 'profile: str = "laptop"  # or gpu', "seed = 1\nprofile='gpu'"]
)
def test_the_profile_line_is_set_to_smoke(line):
    made = colab.make_copy(notebook("1", line), "mini", BOOK, "setup")
    assert 'profile = "smoke"' in made.cells[2].source.replace(": str", "")
    assert "laptop" not in made.cells[2].source
    assert made.cells[2].metadata == {"tags": ["parameters"]}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("!ls", "no shell and no magic"),
        ("x = 1\n  %cd book", "no shell and no magic"),
        ("model.to('cuda')", "names no device"),
        ('model.to("cuda:0")', "names no device"),
    ],
)
def test_code_that_would_not_run_everywhere_is_refused(code, message):
    with pytest.raises(UserError, match=message):
        colab.make_copy(notebook(code), "mini", BOOK, "setup")


def test_a_chapter_without_a_profile_is_refused():
    with pytest.raises(UserError, match="one line profile"):
        colab.make_copy(notebook("1", "seed = 0"), "mini", BOOK, "setup")


def test_the_site_is_derived_from_the_repository():
    assert colab.site(Repository("https://github.com/ann/unmasked", "ann", "unmasked")) == SITE
