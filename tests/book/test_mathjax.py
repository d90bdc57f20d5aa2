"""MathJax is taken from the cache or brought once, and never used unchecked."""

import shlex
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from unmasked.book import mathjax
from unmasked.project import UserError

FILES = {
    mathjax.SCRIPT: b"script",
    f"{mathjax.FONTS}A.woff": b"font A",
    f"{mathjax.FONTS}B.woff": b"font B",
}
COPY = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"


def archive(path: Path, prefix: str, files: dict[str, bytes]) -> mathjax.Archive:
    """An archive of the files with others beside them, brought by a command that copies it."""
    content = {"package.json": b"{}", **{prefix + name: data for name, data in files.items()}}
    content[f"{prefix}other.js"] = b"not wanted"
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as file:
            for name, data in content.items():
                file.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz") as file:
            for name, data in content.items():
                source = path.with_suffix(".member")
                source.write_bytes(data)
                file.add(source, name)
    command = shlex.join([sys.executable, "-c", COPY, str(path)])
    return mathjax.Archive(path.name, command, prefix)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the expected checksum is that of FILES."""
    folder = tmp_path / "expected"
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    monkeypatch.setattr(mathjax, "SHA256", mathjax.digest(folder))
    monkeypatch.setenv("UNMASKED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def present(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".txt")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("name", ["npm.tgz", "pip.whl"])
def test_the_wanted_files_come_out_of_either_archive(cache, tmp_path, monkeypatch, name):
    monkeypatch.setattr(mathjax, "ARCHIVES", (archive(tmp_path / name, "a/b/", FILES),))
    mathjax.provide(tmp_path / "static" / "mathjax")
    assert present(tmp_path / "static" / "mathjax") == FILES


def test_the_cache_serves_a_second_time_without_any_command(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(mathjax, "ARCHIVES", (archive(tmp_path / "npm.tgz", "a/", FILES),))
    mathjax.provide(tmp_path / "first")
    monkeypatch.setattr(mathjax, "ARCHIVES", ())
    mathjax.provide(tmp_path / "second")
    assert present(tmp_path / "second") == FILES


def test_a_damaged_copy_is_replaced(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(mathjax, "ARCHIVES", (archive(tmp_path / "npm.tgz", "a/", FILES),))
    mathjax.provide(tmp_path / "static")
    (tmp_path / "static" / mathjax.SCRIPT).write_bytes(b"damaged")
    mathjax.provide(tmp_path / "static")
    assert present(tmp_path / "static") == FILES


def test_a_damaged_archive_is_passed_over_for_the_next(cache, tmp_path, monkeypatch):
    wrong = archive(tmp_path / "npm.tgz", "a/", {**FILES, mathjax.SCRIPT: b"changed"})
    right = archive(tmp_path / "pip.whl", "b/", FILES)
    monkeypatch.setattr(mathjax, "ARCHIVES", (wrong, right))
    mathjax.provide(tmp_path / "static")
    assert present(tmp_path / "static") == FILES


def test_when_nothing_serves_the_error_names_each_reason_and_nothing_is_left(
    cache, tmp_path, monkeypatch
):
    offline = f"{shlex.quote(sys.executable)} -c 'raise SystemExit(\"no network\")'"
    archives = (
        mathjax.Archive("npm", "no-such-program pack", "a/"),
        mathjax.Archive("pip", offline, "a/"),
        archive(tmp_path / "wrong.tgz", "a/", {**FILES, mathjax.SCRIPT: b"changed"}),
    )
    monkeypatch.setattr(mathjax, "ARCHIVES", archives)
    with pytest.raises(UserError) as raised:
        mathjax.provide(tmp_path / "static")
    for part in ("npm: not installed", "pip: no network", "wrong.tgz: wrong checksum", "Install"):
        assert part in str(raised.value)
    assert not (tmp_path / "static").exists()
    assert not cache.exists()


def test_the_pinned_versions_are_named_in_the_commands():
    commands = {archive.name: archive.command for archive in mathjax.ARCHIVES}
    assert f"mathjax@{mathjax.VERSION}" in commands["npm"]
    assert "==" in commands["pip"]
