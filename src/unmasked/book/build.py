"""Execute what has changed and build the book's pages."""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from unmasked.book.run import chapters, run_chapters
from unmasked.project import UserError, root

HTML = Path("_build/html")
ICON_SCRIPT = re.compile(r"<script[^>]*/fontawesome\.js[^>]*></script>\s*")
STAMPS = Path("build/stamps")
# What a chapter's notebook is made from, besides its own source: code, rows, and settings.
INPUTS = (
    "src/unmasked/**/*.py",
    "results/**/*",
    "book/*.yml",
    "book/references.bib",
    "pyproject.toml",
    "constraints.txt",
)


def build() -> Path:
    """Build the pages from the committed notebooks and return the folder that holds them.

    Always from nothing (a few seconds), so that no page outlives its source. Warnings are errors.
    Raises UserError if the build fails; what Jupyter Book said has then been printed.
    """
    base = root()
    shutil.rmtree(base / "_build", ignore_errors=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    arguments = ["build", "-W", "--keep-going", "-n", "--quiet", str(base)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, cwd=base
    )
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        raise UserError("The book was not built; the warnings and errors above say why.")
    lighten(base / HTML)
    return base / HTML


def lighten(html: Path) -> None:
    """Remove what the theme brings and no page needs: more than half of a page's weight.

    These are source maps, and a script that draws the icons that its style sheet draws as well.
    """
    for path in [*html.rglob("*.map"), *html.rglob("fontawesome.js")]:
        path.unlink()
    for path in html.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(ICON_SCRIPT.sub("", text), encoding="utf-8")


def run_outdated(profile: str, jobs: int = 1) -> list[str]:
    """Execute the chapters whose notebook is out of date and return their names.

    A notebook is up to date only if this checkout executed it and nothing has changed since: its
    source, the notebook itself, the package, the rows, the settings and Python. So a fresh clone
    executes every chapter, and a second call none. Raises UserError if a chapter fails.
    """
    outdated = [name for name in chapters() if not is_current(name, profile)]
    if outdated:
        run_chapters(outdated, {"profile": profile}, jobs=jobs)
    for name in outdated:
        stamp = root() / STAMPS / f"{name}.sha256"
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(state(name, profile), encoding="utf-8")
    return outdated


def is_current(chapter: str, profile: str) -> bool:
    """Whether this checkout executed the chapter at that profile and nothing changed since."""
    stamp = root() / STAMPS / f"{chapter}.sha256"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == state(chapter, profile)


def state(chapter: str, profile: str) -> str:
    """SHA-256 over all that a chapter's notebook is made from and the notebook, 64 hex digits."""
    base = root()
    own = [base / "book" / f"{chapter}.{ending}" for ending in ("py", "ipynb")]
    shared = [path for pattern in INPUTS for path in base.glob(pattern)]
    total = hashlib.sha256(f"{profile} {sys.version}".encode())
    for path in [*own, *sorted(_files(shared))]:
        total.update(path.relative_to(base).as_posix().encode() + b"\0")
        total.update(path.read_bytes() if path.is_file() else b"missing")
    return total.hexdigest()


def _files(paths: Iterable[Path]) -> set[Path]:
    return {path for path in paths if path.is_file() and "__pycache__" not in path.parts}
