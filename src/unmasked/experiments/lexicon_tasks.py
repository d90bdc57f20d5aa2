"""Three labelled data sets, each with a lexicon of words that carry its labels.

sst2 with the lexicon of Hu and Liu is the pair of Zhang and Hashimoto 2021 (section 5.1);
movie_reviews with the VADER lexicon is this book's, and so is the lexicon of ag_news, which is
built from labels of the training part.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

import datasets

from unmasked import data
from unmasked.data.parsing import sentence_split
from unmasked.experiments.corpora import STRAIGHT_QUOTES
from unmasked.lexicon import informative_words, lexicon_of

News = Literal["test file", "all files"]
TaskName = Literal["sst2", "movie_reviews", "ag_news"]
BUCKETS = ("train", "validation", "test")
LEXICON_TITLES: Mapping[str, str] = MappingProxyType(
    {"sst2": "Hu and Liu", "movie_reviews": "VADER", "ag_news": "from training labels"}
)


@dataclass(frozen=True)
class Part:
    """Texts and their labels, 0..classes-1."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """A data set: training texts (also those of continued pretraining), validation and test."""

    name: str
    classes: int
    lexicon: frozenset[str]
    train: Part
    validation: Part
    test: Part


@lru_cache(maxsize=3)
def load_task(name: TaskName, lexicon_size: int, news: News = "test file") -> Task:
    """The data set `name`.

    Texts of sst2's training file whose hash says so are its validation part, and the GLUE
    validation file is the test part. ag_news with "test file" is cut by the same hash into 8:1:1
    out of that one file; with "all files" its test file is the test part. `lexicon_size` words make
    the lexicon of ag_news.
    """
    train, validation, test = _parts(name, news)
    if name == "ag_news":
        lexicon = informative_words(train.texts, train.labels, lexicon_size)
    else:
        lists = {"sst2": "opinion_lexicon", "movie_reviews": "vader_lexicon"}
        lexicon = lexicon_of(data.load(lists[name], "all")["word"])
    return Task(name, max(train.labels) + 1, lexicon, train, validation, test)


def tasks_checksum(names: tuple[TaskName, ...], lexicon_size: int, news: News) -> str:
    """Which texts and lexicons rows rest on: 16 hexadecimal digits a data set, joined by +."""
    sums = []
    for name in names:
        task = load_task(name, lexicon_size, news)
        parts = (task.train, task.validation, task.test)
        columns = {
            "text": [text for part in parts for text in part.texts] + sorted(task.lexicon),
            "label": [label for part in parts for label in part.labels] + [-1] * len(task.lexicon),
        }
        sums.append(data.checksum(datasets.Dataset.from_dict(columns))[:16])
    return "+".join(sums)


def _parts(name: TaskName, news: News) -> tuple[Part, Part, Part]:
    """Training, validation and test part; see `load_task`."""
    if name == "movie_reviews":
        return tuple(_part(name, split) for split in ("train", "validation", "test"))
    if name == "ag_news" and news == "test file":
        return tuple(_part(name, "test", {bucket}) for bucket in BUCKETS)
    held_out = "validation" if name == "sst2" else "test"
    train = _part(name, "train", {"train", "test"})
    return train, _part(name, "train", {"validation"}), _part(name, held_out)


def _part(name: TaskName, split: str, buckets: Container[str] = BUCKETS) -> Part:
    """The rows of a split that the hash of their text puts into one of `buckets`."""
    rows = data.load(name, split)
    pairs = [
        (text.translate(STRAIGHT_QUOTES), label)
        for text, label in zip(rows["text"], rows["label"], strict=True)
        if sentence_split(text) in buckets
    ]
    texts, labels = zip(*pairs, strict=True)
    return Part(texts, labels)
