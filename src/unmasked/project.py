"""Where things are: the checkout, the cache, the repository's address."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

PACKAGE = Path(__file__).resolve().parent


class UserError(Exception):
    """Something that the reader can put right; the message says how. Never shown as a traceback."""


@dataclass(frozen=True)
class Repository:
    """The repository's address and its parts, e.g. owner `o`, name `n` of https://host/o/n."""

    url: str
    owner: str
    name: str
    branch: str = "main"


def is_checkout() -> bool:
    """True when the package runs from a checkout of the repository (or an editable install)."""
    base = PACKAGE.parents[1]
    return (base / "pyproject.toml").is_file() and (base / "book").is_dir()


def root() -> Path:
    """The folder that holds `results/`, `book/profiles.yml` and `book/claims.yml`.

    The checkout where there is one, else the copy of these files inside the installed package.
    """
    return PACKAGE.parents[1] if is_checkout() else PACKAGE / "_share"


def cache() -> Path:
    """The folder for computed rows, checkpoints and downloads; not created here.

    UNMASKED_CACHE, else `unmasked` in XDG_CACHE_HOME, else `~/.cache/unmasked`.
    """
    if given := os.environ.get("UNMASKED_CACHE"):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "unmasked"


def repository() -> Repository:
    """The repository, from the one place that states it: `[project.urls] Repository`.

    Raises UserError if that entry is missing or is not an address of the form https://host/owner/name.
    """
    if is_checkout():
        table = tomllib.loads((root() / "pyproject.toml").read_text(encoding="utf-8"))
        url = table.get("project", {}).get("urls", {}).get("Repository", "")
    else:
        entries = metadata.metadata("unmasked").get_all("Project-URL") or []
        pairs = dict(entry.split(", ", 1) for entry in entries)
        url = pairs.get("Repository", "")
    return parse_repository(url)


def parse_repository(url: str) -> Repository:
    """Split https://host/owner/name into its parts; UserError if it is anything else."""
    address = url.rstrip("/").removesuffix(".git")
    split = urlsplit(address)
    parts = split.path.strip("/").split("/")
    if split.scheme != "https" or not split.netloc or len(parts) != 2 or not all(parts):
        raise UserError(
            f"The repository's address is {url!r}; [project.urls] Repository in pyproject.toml "
            "must be of the form https://host/owner/name."
        )
    return Repository(url=address, owner=parts[0], name=parts[1])


def unknown(kind: str, name: str, allowed: Iterable[str]) -> str:
    """A sentence for a name that is not known: the nearest spelling and what is allowed."""
    names = [str(item) for item in allowed]
    folded = {item.casefold(): item for item in names}
    near = difflib.get_close_matches(str(name).casefold(), list(folded), n=1, cutoff=0.6)
    hint = f" Did you mean {folded[near[0]]!r}?" if near else ""
    return f"Unknown {kind} {name!r}.{hint} Allowed: {', '.join(names) or 'none'}."
