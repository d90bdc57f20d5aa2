"""What the book's pages need beyond Jupyter Book: addresses, formulas, and tables drawn from data.

- the repository's address, the page's own and the Colab buttons, from `project.repository`;
- MathJax beside the pages;
- `{claims-table}`: the ledger of claims; `{cost-table}`: what each chapter costs to run;
- no Thebe scripts: they are not used, and the theme adds them twice, which is an error in the
  browser's console.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from unmasked import claims, profiles, tables
from unmasked.book import mathjax
from unmasked.book.colab import site
from unmasked.project import UserError, repository

STATIC = Path("book/_static")
COLAB = "https://colab.research.google.com/github"
Cell = str | list[nodes.Node]
AFTER_THE_THEME = 900  # the theme adds its buttons at 501


class ClaimsTable(SphinxDirective):
    """One row a claim: where the paper makes it, the verdict and the effect that decided it."""

    def run(self) -> list[nodes.Node]:
        verdicts = claims.ledger()
        if not verdicts:
            return [nodes.paragraph(text="No claim has been entered yet.")]
        head = ("Claim", "Verdict", "Effect [95\u00a0% interval]")
        body = [
            (
                [nodes.Text(verdict.statement), small(f"{verdict.paper}, {verdict.where}")],
                [nodes.strong(text=verdict.verdict), small(verdict.reason)],
                [nodes.Text(effect(verdict)), small(tested_with(verdict))],
            )
            for verdict in verdicts
        ]
        return [table("The claims and their verdicts", head, body, (54, 23, 23))]


class CostTable(SphinxDirective):
    """One row a chapter and profile: device, minutes and memory as `book/profiles.yml` states."""

    def run(self) -> list[nodes.Node]:
        head = ("Chapter", "Profile", "Device", "Minutes", "Memory, GB", "Seeds")
        body = [
            (
                chapter.replace("_", " "),
                profile.name,
                profile.device,
                f"{profile.minutes:g}",
                f"{profile.memory_gb:g}",
                str(len(profile.seeds)),
            )
            for chapter, stated in profiles.load_profiles().items()
            for profile in stated.values()
        ]
        if not body:
            return [nodes.paragraph(text="No chapter has been entered yet.")]
        return [table("What each chapter costs", head, body, (30, 12, 22, 12, 12, 12))]


def effect(verdict: claims.Verdict) -> str:
    """The effect with its interval and unit; a dash if nothing was measured."""
    if verdict.effect is None:
        return "–"
    return f"{tables.formatted(verdict.effect, verdict.low, verdict.high)} {verdict.unit}".rstrip()


def tested_with(verdict: claims.Verdict) -> str:
    """How many seeds of which profile the effect rests on; empty if on none."""
    if not verdict.seeds:
        return ""
    return f"{verdict.seeds} seed{'s' if verdict.seeds > 1 else ''}, {verdict.profile}"


def small(text: str) -> nodes.inline:
    """Text under the main line of a table's cell."""
    return nodes.inline(text=text, classes=["unmasked-small"])


def table(
    caption: str, head: Sequence[str], body: Iterable[Sequence[Cell]], widths: Sequence[int]
) -> nodes.table:
    """A docutils table; a cell is text or a list of inline nodes, `widths` the columns' shares."""
    group = nodes.tgroup(
        "",
        *(nodes.colspec(colwidth=width) for width in widths),
        nodes.thead("", _row(head)),
        nodes.tbody("", *(_row(cells) for cells in body)),
        cols=len(widths),
    )
    return nodes.table("", nodes.title(text=caption), group, classes=["unmasked-table"])


def _row(cells: Iterable[Cell]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", _paragraph(cell)) for cell in cells))


def _paragraph(cell: Cell) -> nodes.paragraph:
    return nodes.paragraph("", "", *([nodes.Text(cell)] if isinstance(cell, str) else cell))


def fill_in_addresses(app: Sphinx, config: Config) -> None:
    """Give the theme the repository's address and the pages theirs."""
    source = repository()
    config.html_theme_options["repository_url"] = source.url
    config.html_theme_options["repository_branch"] = source.branch
    config.html_theme_options["path_to_docs"] = ""
    config.html_baseurl = f"{site(source)}/"


def provide_mathjax(app: Sphinx) -> None:
    """Bring MathJax to the static folder; stops the build with what to do if it cannot be had."""
    try:
        mathjax.provide(Path(app.srcdir) / STATIC / "mathjax")
    except UserError as error:
        raise ExtensionError(str(error)) from error


def finish_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Send the Colab button to the chapter's copy for Colab, and drop Thebe's scripts."""
    source = repository()
    folder, _, chapter = page.rpartition("/")
    copy = f"{COLAB}/{source.owner}/{source.name}/blob/{source.branch}/{folder}/colab/{chapter}"
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("text") == "Colab":
                button["url"] = f"{copy}.ipynb"
    context["script_files"][:] = [
        script for script in context["script_files"] if "thebe" not in _described(script)
    ]


def _described(script: Any) -> str:
    """File name and inline text of a script, in lower case."""
    body = getattr(script, "attributes", {}).get("body", "")
    return f"{getattr(script, 'filename', script) or ''} {body}".lower()


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("cost-table", CostTable)
    app.connect("config-inited", fill_in_addresses)
    app.connect("builder-inited", provide_mathjax)
    app.connect("html-page-context", finish_page, priority=AFTER_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
