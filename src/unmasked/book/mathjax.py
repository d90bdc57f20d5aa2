"""MathJax served with the book, so that pages show their formulas without a network.

Two archives hold the same files; either will do, and what comes out is checked by its sha256. The
files are kept in the cache, so the network is needed once.
"""

import hashlib
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unmasked.project import UserError, cache

VERSION = "3.2.2"
SHA256 = "a91e90e13db532fbd9ea0c1e356f6c57171983582a7db6f6b75e71a4e5e64ee1"
SCRIPT = "tex-chtml.js"
FONTS = "output/chtml/fonts/woff-v2/"
NOTICE = f"MathJax {VERSION}, www.mathjax.org, under the Apache License, version 2.0.\n"


@dataclass(frozen=True)
class Archive:
    """A package archive with MathJax under `prefix`; `command` and a folder bring it there."""

    name: str
    command: str
    prefix: str


ARCHIVES = (
    Archive("npm", f"npm pack --silent mathjax@{VERSION} --pack-destination", "package/es5/"),
    Archive(
        "pip",
        f"{shlex.quote(sys.executable)} -m pip download --quiet --no-deps "
        "sphinx-mathjax-offline==0.0.2 --dest",
        "sphinx-mathjax-offline/static/mathjax/",
    ),
)


def provide(target: Path) -> None:
    """Make `target` hold MathJax: `tex-chtml.js` and its fonts, about 1.6 MB.

    Taken from the cache, else brought by npm, else by pip. Raises UserError that says what was
    tried if neither brings the expected files; `target` is then as it was.
    """
    if digest(target) == SHA256:
        return
    kept = cache() / f"mathjax-{VERSION}"
    if digest(kept) != SHA256:
        _fetch(kept)
    _replace(kept, target)


def digest(folder: Path) -> str:
    """SHA-256 over the names and contents of the MathJax files in a folder, 64 hex digits."""
    total = hashlib.sha256()
    for path in sorted([folder / SCRIPT, *(folder / FONTS).glob("*.woff")]):
        if path.is_file():
            total.update(path.relative_to(folder).as_posix().encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _fetch(target: Path) -> None:
    tried = []
    for archive in ARCHIVES:
        with tempfile.TemporaryDirectory(prefix="unmasked-mathjax-") as scratch:
            if problem := _unpacked(archive, Path(scratch)):
                tried.append(f"{archive.name}: {problem}")
            else:
                _replace(Path(scratch) / "files", target)
                return
    raise UserError(
        f"MathJax {VERSION} is needed to build the book and could not be had ({'; '.join(tried)}). "
        "Install npm or pip, or connect to a network once: the files are then kept in "
        f"{target.name} in the cache folder (UNMASKED_CACHE)."
    )


def _unpacked(archive: Archive, scratch: Path) -> str:
    """Bring the archive and unpack it to scratch/files; the reason if that fails, else empty."""
    download, files = scratch / "download", scratch / "files"
    download.mkdir()
    files.mkdir()
    command = [*shlex.split(archive.command), str(download)]
    if shutil.which(command[0]) is None:
        return "not installed"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [path for path in download.iterdir() if path.suffix in (".tgz", ".whl")]
    if done.returncode or len(found) != 1:
        lines = done.stderr.strip().splitlines() or ["no archive came"]
        return lines[-1].strip()
    for name, content in _members(found[0]):
        relative = name.removeprefix(archive.prefix)
        if relative == SCRIPT or (relative.startswith(FONTS) and relative.endswith(".woff")):
            path = files / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    (files / "NOTICE.txt").write_text(NOTICE, encoding="utf-8")
    found_digest = digest(files)
    return "" if found_digest == SHA256 else f"wrong checksum {found_digest[:12]}"


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            for name in file.namelist():
                yield name, file.read(name)
    else:
        with tarfile.open(archive) as file:
            for member in file:
                if member.isfile() and (handle := file.extractfile(member)):
                    yield member.name, handle.read()


def _replace(source: Path, target: Path) -> None:
    """Put a copy of the folder in place of `target`; a reader never meets half a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        copy = Path(scratch) / target.name
        shutil.copytree(source, copy)
        if target.exists():
            shutil.rmtree(target)
        copy.replace(target)
