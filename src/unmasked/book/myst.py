"""MyST Markdown, as the chapters use it, to plain Markdown that Colab and GitHub can show.

Only the roles and directives that the book allows are known; any other is an error, so that no
raw syntax reaches a reader.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from unmasked.project import UserError, unknown

_FENCE = re.compile(r"(?P<indent> *)(?P<mark>`{3,}|~{3,}|:{3,})\s*(?P<info>.*?)\s*")
_DIRECTIVE = re.compile(r"\{(?P<name>[a-z][\w:-]*)\}\s*(?P<title>.*)")
_OPTION = re.compile(r":(?P<name>[a-z][\w-]*):\s*(?P<value>.*)")
_LABEL = re.compile(r"\((?P<label>[\w:.-]+)\)=\s*")
_EQUATION = re.compile(r"\$\$(?P<body>.+?)\$\$[ ]*(?:\((?P<label>[\w:.-]+)\))?\s*", re.DOTALL)
_TARGETED = re.compile(r"(?P<text>.+?)\s*<(?P<target>[^<>]+)>", re.DOTALL)
_INLINE = re.compile(
    r"""(?P<role>\{[a-z][\w:-]*\})?(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)
    | (?P<math>(?<![\\$])\$(?!\$)(?:\\.|[^$\\])+\$)
    | (?P<footnote>\[\^[\w-]+\])
    | (?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<link>[^)\s]*)\)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Citation:
    """One entry of the bibliography: who, when, where to read it, and its full reference."""

    authors: str
    year: str
    url: str
    entry: str


@dataclass(frozen=True)
class Book:
    """What links lead to. `titles`: page -> title; `labels`: label -> (page, title or "")."""

    site: str
    titles: Mapping[str, str]
    labels: Mapping[str, tuple[str, str]]
    citations: Mapping[str, Citation]

    def address(self, page: str, anchor: str = "") -> str:
        """The published page's address."""
        fragment = re.sub(r"[^a-z0-9]+", "-", anchor.lower()).strip("-")
        return f"{self.site}/book/{page}.html" + (f"#{fragment}" if fragment else "")


def to_markdown(cells: Iterable[str], page: str, book: Book) -> list[str]:
    """The Markdown cells of one page in plain Markdown.

    Labelled equations and theorems are numbered from 1 through the page.

    Raises UserError, naming the page, for a role, directive, citation, label or page that is not
    known, and for footnotes, images in files and links to files, which a copy cannot show.
    """
    cells = list(cells)
    try:
        first = _Page(page, book)
        for cell in cells:
            first.blocks(cell)
        second = _Page(
            page, book, first.equations, first.cited, final=True, proof_names=first.proof_names
        )
        return [second.blocks(cell).strip("\n") for cell in cells]
    except UserError as error:
        raise UserError(f"{page}: {error}") from error


@dataclass
class _Page:
    """The state of one pass over a page; the first pass collects what the second refers to."""

    name: str
    book: Book
    equations: dict[str, int] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)
    final: bool = False
    proofs: dict[str, int] = field(default_factory=dict)
    proof_names: dict[str, str] = field(default_factory=dict)

    def blocks(self, text: str) -> str:
        """Convert a piece of text that consists of whole blocks."""
        lines = text.split("\n")
        done: list[str] = []
        paragraph: list[str] = []

        def flush() -> None:
            if paragraph:
                done.append(self.inline("\n".join(paragraph)))
                paragraph.clear()

        i = 0
        while i < len(lines):
            line = lines[i]
            fence = _FENCE.fullmatch(line)
            if fence:
                flush()
                end = _closing(lines, i, fence["mark"])
                done.append(self._fenced(fence, lines[i : end + 1]))
                i = end
            elif line.startswith("$$"):
                flush()
                end = _equation_end(lines, i)
                done.append(self._dollars("\n".join(lines[i : end + 1])))
                i = end
            elif _LABEL.fullmatch(line) or line.startswith("% "):
                flush()
            elif not line.strip():
                flush()
                done.append("")
            else:
                paragraph.append(line)
            i += 1
        flush()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(done))

    def _fenced(self, fence: re.Match[str], lines: list[str]) -> str:
        directive = _DIRECTIVE.fullmatch(fence["info"])
        if directive is None:
            if fence["mark"].startswith(":"):
                raise UserError(f"a block {lines[0].strip()!r} without a directive's name")
            return "\n".join(lines)
        handlers: dict[str, Callable[[str, dict[str, str], str], str]] = {
            "admonition": self._admonition,
            "bibliography": self._bibliography,
            "dropdown": self._dropdown,
            "glossary": self._glossary,
            "math": lambda title, options, body: self._equation(body, options.get("label", "")),
            "note": lambda title, options, body: self._admonition("Note", options, body),
            "prf:lemma": lambda *parts: self._proof("Lemma", *parts),
            "prf:proof": lambda *parts: self._proof("Proof", *parts),
            "prf:theorem": lambda *parts: self._proof("Theorem", *parts),
        }
        if directive["name"] not in handlers:
            raise UserError(unknown("directive", directive["name"], handlers))
        options, body = _options(textwrap.dedent("\n".join(lines[1:-1])))
        made = handlers[directive["name"]](directive["title"], options, body)
        return textwrap.indent(made, fence["indent"])

    def _admonition(self, title: str, options: dict[str, str], body: str) -> str:
        if "dropdown" in options.get("class", "").split():
            return self._dropdown(title, options, body)
        text = f"**{self.inline(title)}**\n\n{self.blocks(body).strip()}"
        return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))

    def _dropdown(self, title: str, options: dict[str, str], body: str) -> str:
        summary = self.inline(title)
        return (
            f"<details>\n<summary>{summary}</summary>\n\n{self.blocks(body).strip()}\n\n</details>"
        )

    def _proof(self, kind: str, title: str, options: dict[str, str], body: str) -> str:
        heading = kind
        if kind != "Proof":
            self.proofs[kind] = self.proofs.get(kind, 0) + 1
            heading += f" {self.proofs[kind]}"
            self.proof_names.setdefault(options.get("label", ""), heading)
        if title:
            heading += f" ({self.inline(title)})"
        return f"**{heading}.** {self.blocks(body).strip()}"

    def _glossary(self, title: str, options: dict[str, str], body: str) -> str:
        entries = re.split(r"\n(?=\S)", body.strip("\n"))
        done = []
        for entry in entries:
            term, _, meaning = entry.partition("\n")
            text = self.blocks(textwrap.dedent(meaning).strip())
            done.append(f"**{self.inline(term)}**: {text}")
        return "\n\n".join(done)

    def _bibliography(self, title: str, options: dict[str, str], body: str) -> str:
        keys = sorted(self.cited, key=lambda key: self.book.citations[key].entry)
        return "\n".join(f"- {self.book.citations[key].entry}" for key in keys)

    def _dollars(self, text: str) -> str:
        equation = _EQUATION.fullmatch(text)
        if equation is None:
            raise UserError(f"cannot read the equation {text!r}; write $$ ... $$ (label)")
        return self._equation(equation["body"], equation["label"] or "")

    def _equation(self, body: str, label: str) -> str:
        body = body.strip()
        if "\\label" in body:
            raise UserError(f"write an equation's label as $$ ... $$ (label), not in {body!r}")
        if "\\\\" in body and "\\begin" not in body:  # the page's builder adds an environment too
            body = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
        if label:
            if not self.final and label in self.equations:
                raise UserError(f"the label {label!r} is given to two equations")
            self.equations.setdefault(label, len(self.equations) + 1)
            body += f" \\tag{{{self.equations[label]}}}"
        return f"$$\n{body}\n$$"

    def inline(self, text: str) -> str:
        """Convert roles and links in running text; code and maths stay as they are."""
        return _INLINE.sub(self._inline_match, text)

    def _inline_match(self, match: re.Match[str]) -> str:
        if match["footnote"]:
            raise UserError(f"footnote {match['footnote']}: write it into the text")
        if match["link"] is not None:
            return self._link(match)
        if match["role"]:
            return self._role(match["role"][1:-1], " ".join(match["code"].split()))
        return match[0]

    def _link(self, match: re.Match[str]) -> str:
        link, text = match["link"], self.inline(match["text"])
        if match["image"]:
            raise UserError(f"image {link!r}: draw figures in a code cell")
        if re.match(r"(https?:|mailto:)", link) and text:
            return f"[{text}]({link})"
        raise UserError(
            f"link [{text}]({link}): give a full address and a text, or use "
            "{doc}`text <page>` or {ref}`text <label>`"
        )

    def _role(self, name: str, content: str) -> str:
        targeted = _TARGETED.fullmatch(content)
        text, target = (targeted["text"], targeted["target"]) if targeted else ("", content)
        handlers: dict[str, Callable[[str, str], str]] = {
            "cite:p": lambda text, keys: self._cite(keys, in_text=False),
            "cite:t": lambda text, keys: self._cite(keys, in_text=True),
            "doc": self._doc,
            "eq": self._eq,
            "prf:ref": self._prf_ref,
            "ref": self._ref,
            "term": lambda text, term: text or term,
        }
        if name not in handlers:
            raise UserError(unknown("role", name, handlers))
        return handlers[name](text, target)

    def _cite(self, keys: str, *, in_text: bool) -> str:
        links = []
        for key in (key.strip() for key in keys.split(",")):
            if key not in self.book.citations:
                raise UserError(unknown("citation", key, self.book.citations))
            if key not in self.cited:
                self.cited.append(key)
            citation = self.book.citations[key]
            text = f"{citation.authors} {citation.year}"
            if in_text:
                text = f"{citation.authors} ({citation.year})"
            links.append(f"[{text}]({citation.url})" if citation.url else text)
        return ", ".join(links) if in_text else f"({'; '.join(links)})"

    def _doc(self, text: str, target: str) -> str:
        page = target.rsplit("/", 1)[-1]
        if page not in self.book.titles:
            raise UserError(unknown("page", page, self.book.titles))
        return f"[{text or self.book.titles[page]}]({self.book.address(page)})"

    def _eq(self, text: str, label: str) -> str:
        if label not in self.equations and self.final:
            raise UserError(unknown("equation", label, self.equations))
        return f"({self.equations.get(label, 0)})"

    def _prf_ref(self, text: str, label: str) -> str:
        if label not in self.proof_names and self.final:
            raise UserError(unknown("theorem or lemma", label, self.proof_names))
        return text or self.proof_names.get(label, "")

    def _ref(self, text: str, label: str) -> str:
        figure = label.startswith("fig-")  # made when a chapter runs, so no source holds them
        if label not in self.book.labels and not figure:
            raise UserError(unknown("label", label, self.book.labels))
        page, title = self.book.labels.get(label, (self.name, ""))
        if not (text or title):
            raise UserError(f"{{ref}}`{label}` needs a text: {{ref}}`text <{label}>`")
        return f"[{text or title}]({self.book.address(page, label)})"


def _closing(lines: list[str], start: int, mark: str) -> int:
    """Index of the line that closes the fence: the same character, at least as many."""
    for i in range(start + 1, len(lines)):
        line = lines[i].strip()
        if len(line) >= len(mark) and set(line) == {mark[0]}:
            return i
    raise UserError(f"the block {lines[start].strip()!r} is not closed")


def _equation_end(lines: list[str], start: int) -> int:
    if lines[start].count("$$") > 1:
        return start
    for i in range(start + 1, len(lines)):
        if "$$" in lines[i]:
            return i
    raise UserError(f"the equation {lines[start]!r} is not closed")


def _options(text: str) -> tuple[dict[str, str], str]:
    options: dict[str, str] = {}
    lines = text.split("\n")
    while lines and (option := _OPTION.fullmatch(lines[0].strip())):
        options[option["name"]] = option["value"].strip()
        lines.pop(0)
    return options, "\n".join(lines).strip("\n")
