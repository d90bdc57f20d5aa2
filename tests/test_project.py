"""Tests of unmasked.project: the checkout, the cache, the repository's address, near spellings."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from unmasked import project


def test_root_of_a_checkout_is_the_folder_of_pyproject_and_this_test():
    assert project.is_checkout()
    assert project.root() == Path(__file__).resolve().parents[1]


def test_root_without_a_checkout_is_the_shared_folder_of_the_package(monkeypatch, tmp_path):
    package = tmp_path / "site-packages" / "unmasked"
    monkeypatch.setattr(project, "PACKAGE", package)
    assert not project.is_checkout()
    assert project.root() == package / "_share"


def test_cache_prefers_the_own_variable_then_xdg_then_home(monkeypatch):
    monkeypatch.setenv("UNMASKED_CACHE", "/a/b")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert project.cache() == Path("/a/b")
    monkeypatch.delenv("UNMASKED_CACHE")
    assert project.cache() == Path("/x/unmasked")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert project.cache() == Path.home() / ".cache" / "unmasked"


def test_repository_is_read_from_pyproject():
    table = tomllib.loads((project.root() / "pyproject.toml").read_text())
    found = project.repository()
    assert found.url == table["project"]["urls"]["Repository"]
    assert found.url.endswith(f"/{found.owner}/{found.name}")


def test_repository_of_an_installed_package_comes_from_its_metadata(monkeypatch, tmp_path):
    expected = project.repository()
    monkeypatch.setattr(project, "PACKAGE", tmp_path / "site-packages" / "unmasked")
    assert project.repository() == expected


@pytest.mark.parametrize(
    "url", ["", "http://host/o/n", "https://host/o", "https://host/o/n/tree/main", "o/n"]
)
def test_an_address_that_is_not_a_repository_is_refused(url):
    with pytest.raises(project.UserError, match="must be of the form"):
        project.parse_repository(url)


def test_an_address_with_a_git_ending_is_the_same_repository():
    assert project.parse_repository("https://host/o/n.git") == project.parse_repository(
        "https://host/o/n/"
    )


def test_unknown_names_the_nearest_spelling_and_what_is_allowed():
    said = project.unknown("profile", "Labtop", ["smoke", "laptop"])
    assert said == "Unknown profile 'Labtop'. Did you mean 'laptop'? Allowed: smoke, laptop."
    assert "Did you mean" not in project.unknown("profile", "zzz", ["smoke"])
