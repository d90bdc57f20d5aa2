"""A WordNet of a dozen meanings, in the form of the files of the real one."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from nltk.corpus.reader import WordNetCorpusReader

from unmasked.data import wordnet

# class, lexicographer's file, words (each with its count in tagged texts), satellite of (or None)
SYNSETS = [
    ("n", 10, {"movie": 20, "film": 9, "moving_picture": 1, "Picture_Show": 0, "flick": 0}, None),
    ("n", 27, {"film": 2, "coating": 0}, None),
    ("n", 18, {"child": 50, "kid": 30}, None),
    ("n", 18, {"Chaplin": 0}, None),
    ("n", 10, {"Book": 0, "story": 5, "tale": 4, "narrative": 0}, None),
    ("v", 36, {"film": 1, "shoot": 3}, None),
    ("v", 37, {"love": 40, "enjoy": 30}, None),
    ("v", 31, {"see": 90, "watch": 10, "find_out": 5}, None),
    ("v", 42, {"be": 999}, None),
    ("a", 0, {"good": 60, "fine": 9, "nice": 9, "worthwhile": 2}, None),
    ("s", 0, {"clever": 4, "cunning": 1}, "good"),
    ("a", 0, {"bad": 30}, None),
    ("r", 2, {"fine": 20, "all_right": 3}, None),
]
_FILES = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
_TYPES = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
_HEADER = "  1 A miniature. WordNet 9.9 Copyright nobody.\n"


def _line(offset: int, kind: str, number: int, words: dict[str, int], head: int | None) -> str:
    named = " ".join(f"{word} 0" for word in words)
    pointers = "000" if head is None else f"001 & {head:08d} a 0000"
    frames = " 00" if kind == "v" else ""
    return f"{offset:08d} {number:02d} {kind} {len(words):02x} {named} {pointers}{frames} | a\n"


def _key(kind: str, number: int, word: str, head: str | None) -> str:
    after = f"{head}:00" if head else ":"
    return f"{word.lower()}%{_TYPES[kind]}:{number:02d}:00:{after}"


def dictionary() -> dict[str, str]:
    """The files of the dictionary by name."""
    files = {f"data.{name}": _HEADER for name in _FILES.values()}
    index: dict[tuple[str, str], list[int]] = {}
    places: dict[str, int] = {}
    senses = []
    for kind, number, words, head in SYNSETS:
        name = f"data.{_FILES[kind]}"
        offset = len(files[name])
        files[name] += _line(offset, kind, number, words, None if head is None else places[head])
        for word, count in words.items():
            places[word] = offset
            entry = index.setdefault((_FILES[kind], word.lower()), [])
            entry.append(offset)
            key = _key(kind, number, word, head)
            senses.append(f"{key} {offset:08d} {len(entry)} {count}\n")
    letters = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
    for name, letter in letters.items():
        lines = [
            f"{word} {letter} {len(offsets)} 0 {len(offsets)} 0 "
            + " ".join(f"{offset:08d}" for offset in offsets)
            for (file, word), offsets in sorted(index.items())
            if file == name
        ]
        files[f"index.{name}"] = _HEADER + "".join(f"{line}  \n" for line in lines)
    files["index.sense"] = "".join(sorted(senses))
    return files


def archive() -> bytes:
    """The dictionary as the package archive holds it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in dictionary().items():
            info = tarfile.TarInfo(f"package/dict/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def write(folder: Path) -> Path:
    """The dictionary and what NLTK wants beside it, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in wordnet.dictionary_files(archive()).items():
        (folder / name).write_bytes(content)
    return folder


def reader(folder: Path) -> WordNetCorpusReader:
    """NLTK's reader of the miniature."""
    return wordnet.read(write(folder))
