"""Check the built pages as they will be published: offline, and without a browser."""

import gzip
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MAX_BYTES = 1_500_000
# Folders of the site that hold no pages: the theme's parts, and files to download.
NOT_PAGES = frozenset({"_static", "_sources", "_downloads", "_images"})

_LOADED = {
    "audio": ("src",),
    "base": ("href",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "input": ("src",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "video": ("src", "poster"),
}
# What else a page may say with <link> (canonical, prev, next, ...) is not fetched.
_LOADED_RELATIONS = re.compile(
    r"\b(?:dns-prefetch|icon|manifest|modulepreload|preconnect|prefetch|preload|stylesheet)\b"
)
_VOID = re.compile(r"area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
_UNREAD = frozenset({"script", "style", "template", "noscript"})
_VERBATIM = frozenset({"code", "pre", "textarea", "mjx-container"})
_CSS_LOAD = re.compile(r"""@import\s+["']([^"']+)|url\(\s*["']?([^"')]+)""")
_SCRIPT_LOAD = re.compile(
    r"""(?:fetch|import|importScripts)\s*\(\s*["'`]((?:https?:)?//[^"'`]+)"""
    r"""|(?:\bfrom|\bimport|\.(?:src|href)\s*=)\s*["'`]((?:https?:)?//[^"'`]+)"""
)
# Roles, directives, fences and TeX that were not turned into anything else.
_MARKUP = re.compile(
    r"\{[a-z][\w:+-]*\}`|\{(?:cite|eq|ref|numref|doc|term|prf)\b|:::|```|\$\$|\\[A-Za-z]{2,}"
    r"|\$[A-Za-z][^$\n]{0,40}\$"
)
_COMPRESSED = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".woff", ".woff2"})
_TRACEBACK = "Traceback (most recent call last)"


def check_site(html: Path) -> list[str]:
    """Messages for all that is wrong with the built pages in a folder; empty if nothing is.

    Checked are: local links and their anchors; that nothing is fetched from another host; an alt
    text for every image; language, title and heading; that no markup was left as text and no
    traceback is shown; and that a page with the scripts, styles and images that it loads has less
    than 1.5 MB as it is sent.
    """
    root = html.resolve()
    paths = [
        p for p in sorted(root.rglob("*.html")) if p.relative_to(root).parts[0] not in NOT_PAGES
    ]
    if not paths:
        return [f"there are no pages in {html.name}; run `unmasked build`"]
    pages = {path: _read(path) for path in paths}
    problems = []
    for path, page in pages.items():
        found = _check_links(path, page, pages, root) + _check_loads(path, page, root)
        if not page.redirects:
            found += _check_content(page) + _check_weight(path, page)
        problems += [f"{path.relative_to(root)}: {problem}" for problem in dict.fromkeys(found)]
    return problems


@dataclass
class _Page(HTMLParser):
    """What the checks need to know of a page, filled by feed()."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    no_alt: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)  # tag -> its text
    language: str = ""
    redirects: bool = False
    prose: list[str] = field(default_factory=list)
    verbatim: list[str] = field(default_factory=list)
    open: list[tuple[str, bool]] = field(default_factory=list)  # tag, whether its text is verbatim

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        a = {name: value or "" for name, value in attrs}
        self.ids.update(a[key] for key in ("id", "name") if a.get(key))
        self.seen.setdefault(tag, "")
        if tag == "html":
            self.language = a.get("lang", "")
        if tag in ("a", "area") and "href" in a:
            self.links.append(a["href"])
        if tag == "img" and not a.get("alt", "").strip():
            self.no_alt.append(a.get("src", "")[:80])
        if tag == "meta" and a.get("http-equiv", "").lower() == "refresh":
            self.redirects = True
            self.links.append(a.get("content", "").partition("=")[2].strip())
        self.loads += _loads(tag, a)
        if not _VOID.fullmatch(tag):
            above = bool(self.open) and self.open[-1][1]
            maths = "math" in a.get("class", "").split()
            self.open.append((tag, above or tag in _VERBATIM or maths))

    def handle_endtag(self, tag: str) -> None:
        while tag in (name for name, _ in self.open) and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, verbatim = self.open[-1] if self.open else ("", False)
        if tag == "script":
            self.loads += [first or second for first, second in _SCRIPT_LOAD.findall(data)]
        elif tag == "style":
            self.loads += _css_loads(data)
        if tag in _UNREAD:
            return
        (self.verbatim if verbatim else self.prose).append(data)
        for name, _ in self.open:
            if name in ("title", "h1"):
                self.seen[name] += data


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def _loads(tag: str, attributes: dict[str, str]) -> list[str]:
    """Addresses that a browser fetches because of this tag."""
    names = _LOADED.get(tag, ())
    if tag == "link" and _LOADED_RELATIONS.search(attributes.get("rel", "").lower()):
        names = ("href",)
    urls = [attributes[name] for name in names if name != "srcset" and attributes.get(name)]
    if "srcset" in names:
        candidates = attributes.get("srcset", "").split(",")
        urls += [candidate.split()[0] for candidate in candidates if candidate.strip()]
    return urls + _css_loads(attributes.get("style", ""))


def _css_loads(css: str) -> list[str]:
    return [first or second for first, second in _CSS_LOAD.findall(css)]


def _is_foreign(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def _local(url: str, page: Path) -> Path | None:
    """The file that a local address means, which may not exist; None for any other address."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return target / "index.html" if target.is_dir() else target


def _check_links(path: Path, page: _Page, pages: dict[Path, _Page], root: Path) -> list[str]:
    problems = []
    for url in page.links:
        target = _local(url, path)
        if target is None:
            continue
        fragment = unquote(urlsplit(url).fragment)
        if not target.is_file() or not target.is_relative_to(root):
            problems.append(f"broken link {url!r}")
        elif fragment and target in pages and fragment not in pages[target].ids:
            problems.append(f"no anchor {url!r}")
    return problems


def _check_loads(path: Path, page: _Page, root: Path) -> list[str]:
    """Nothing from another host, and all that is local exists; style sheets are followed."""
    problems = []
    for url in page.loads:
        target = _local(url, path)
        if _is_foreign(url):
            problems.append(f"loads from another host: {url}")
        elif target is not None and (not target.is_file() or not target.is_relative_to(root)):
            problems.append(f"loads a file that is not there: {url}")
        elif target is not None and target.suffix == ".css":
            problems += [f"loads from another host: {far}" for far in _foreign_in_css(target)]
    return problems


def _foreign_in_css(path: Path) -> tuple[str, ...]:
    """Addresses on other hosts in a style sheet and in those that it imports."""
    found: list[str] = []
    for sheet in _with_imports(path):
        urls = _css_loads(sheet.read_text(encoding="utf-8", errors="replace"))
        found += [url for url in urls if _is_foreign(url)]
    return tuple(found)


def _with_imports(path: Path) -> tuple[Path, ...]:
    """A style sheet and those that it imports, each once."""
    found = [path]
    for sheet in found:
        for url in _css_loads(sheet.read_text(encoding="utf-8", errors="replace")):
            target = _local(url, sheet)
            if target and target.suffix == ".css" and target.is_file() and target not in found:
                found.append(target)
    return tuple(found)


def _check_content(page: _Page) -> list[str]:
    problems = [f"image without alt text: {src}" for src in page.no_alt]
    problems += [
        f"no text in <{tag}>" for tag in ("title", "h1") if not page.seen.get(tag, "").strip()
    ]
    if not page.language:
        problems.append("no language: <html lang=...>")
    prose = "".join(page.prose)
    problems += [f"markup left as text: {found!r}" for found in _MARKUP.findall(prose)]
    if _TRACEBACK in prose or any(_TRACEBACK in text for text in page.verbatim):
        problems.append("shows a traceback")
    return problems


def _check_weight(path: Path, page: _Page) -> list[str]:
    """The page with what it loads whenever it is opened; fonts come only where they are used."""
    files = {path}
    for url in page.loads:
        target = _local(url, path)
        if target and target.is_file():
            files.update(_with_imports(target) if target.suffix == ".css" else [target])
    total = sum(_bytes_sent(file) for file in files)
    if total < MAX_BYTES:
        return []
    return [f"loads {total / 1e6:.2f} MB; at most {MAX_BYTES / 1e6:.1f} MB are allowed"]


def _bytes_sent(path: Path) -> int:
    """Size in bytes as a web server sends it: compressed, unless it is an image."""
    content = path.read_bytes()
    return len(content) if path.suffix in _COMPRESSED else len(gzip.compress(content))
