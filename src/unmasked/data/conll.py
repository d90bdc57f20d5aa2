"""The ten-column treebank formats, CoNLL-U and CoNLL-X, as words with checked heads.

Both have one word a line, its number, form, lemma, two tags, features, head and relation, and a
blank line after each sentence. CoNLL-U adds comments, ranges for multi-word tokens (`1-2`) and
empty nodes (`1.1`); all three are left out, and of the comments only `sent_id` is kept. Enhanced
dependencies, in the ninth column, are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

COLUMNS = 10


@dataclass(frozen=True)
class Word:
    """One word; `head` is the number of its head in the sentence from 1, 0 for the root.

    `line` is its line in the text from 1, `tag` the fourth column, `fine_tag` the fifth.
    """

    line: int
    form: str
    lemma: str
    tag: str
    fine_tag: str
    head: int
    relation: str


@dataclass(frozen=True)
class Block:
    """One sentence: its `sent_id` (empty if it has none) and its words, one or more."""

    name: str
    words: tuple[Word, ...]


def blocks(text: str) -> Iterator[Block]:
    """The sentences of a text in order.

    Raises ValueError that names the sentence and the line: a line without ten columns, numbers that
    do not count from 1, a head that is no whole number or lies outside the sentence, no word.
    """
    lines: list[tuple[int, str]] = []
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            lines.append((number, line.rstrip("\r")))
        elif lines:
            yield _block(lines)
            lines = []


def _block(lines: list[tuple[int, str]]) -> Block:
    name, words = "", []
    for number, line in lines:
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            name = value.strip() if key.strip() == "sent_id" else name
            continue
        fields = line.split("\t")
        if len(fields) != COLUMNS:
            raise ValueError(
                f"sentence {name!r}: a line with {len(fields)} fields, expected {COLUMNS} "
                f"(line {number})"
            )
        if fields[0].isdigit():
            if int(fields[0]) != len(words) + 1 or not fields[6].isdigit():
                raise ValueError(
                    f"sentence {name!r}: word {fields[0]} is out of order or headless "
                    f"(line {number})"
                )
            words.append(Word(number, *fields[1:5], int(fields[6]), fields[7]))
    outside = [word.line for word in words if word.head > len(words)]
    if not words or outside:
        raise ValueError(
            f"sentence {name!r} has no words or a head outside of it "
            f"(line {outside[0] if outside else lines[0][0]})"
        )
    return Block(name, tuple(words))
