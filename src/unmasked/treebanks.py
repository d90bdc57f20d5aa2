"""Sentences with a gold dependency tree, from CoNLL-U, CoNLL-X or the rows of a corpus.

Words are numbered from 0 everywhere but in `heads`, which keep the files' numbers from 1 with 0 for
the root. Punctuation stays a word of the sentence, and of a model's input, but never enters a tree:
Zhang and Hashimoto 2021, section 5.2, as released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unmasked.data.conll import blocks

UNIVERSAL_PUNCTUATION = frozenset({"PUNCT"})
"""Universal tags that are left out of trees. SYM is a word: "$" and "%" have dependents."""

PENN_PUNCTUATION = frozenset({"''", "", ",", ".", ":", "``", "-LRB-", "-RRB-"})
"""Penn Treebank tags that are left out of trees, as the released code has them."""


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence of n words with its tree; all tuples have n entries.

    `heads` are 1-based with 0 for the root, `relations` the labels of the edges to the heads,
    `tags` universal (CoNLL-U) or Penn tags, `punctuation` says which words no tree counts. Raises
    ValueError that names the sentence unless the heads form one tree with one root.
    """

    name: str
    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...]
    punctuation: tuple[bool, ...]

    def __post_init__(self) -> None:
        n = len(self.words)
        parts = (self.heads, self.relations, self.tags, self.punctuation)
        if not n or any(len(part) != n for part in parts):
            raise ValueError(f"sentence {self.name!r}: no words, or columns of unequal length")
        if any(not 0 <= head <= n for head in self.heads):
            raise ValueError(f"sentence {self.name!r} has a head outside of it")
        roots = self.heads.count(0)
        if roots != 1:
            raise ValueError(
                f"sentence {self.name!r} has {roots or 'no'} roots (words with head 0); "
                "a tree has one"
            )
        for word in range(1, n + 1):
            at, steps = word, 0
            while at and steps <= n:
                at, steps = self.heads[at - 1], steps + 1
            if at:
                raise ValueError(
                    f"sentence {self.name!r}: the heads of word {word} ({self.words[word - 1]!r}) "
                    "run in a cycle"
                )

    @property
    def counted(self) -> np.ndarray:
        """Which words enter trees, bool (n,): all but punctuation."""
        return ~np.array(self.punctuation, dtype=bool)


def gold_edges(sentence: ParsedSentence) -> np.ndarray:
    """The gold edges between counted words, int64 (k, 2) with i < j, in order of the dependents.

    An edge from or to punctuation is left out, so k can be less than the counted words minus one.
    """
    pairs = [(min(a, b), max(a, b)) for a, b in _dependents(sentence)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def gold_relations(sentence: ParsedSentence) -> list[str]:
    """The labels of `gold_edges`, in the same order."""
    return [sentence.relations[dependent] for dependent, _ in _dependents(sentence)]


def at_most(
    sentences: Iterable[ParsedSentence], words: int, at_least: int = 1
) -> list[ParsedSentence]:
    """The sentences with `at_least` to `words` words that are not punctuation.

    With 10, the rule of WSJ10. A sentence with one such word has no edge and cannot change UUAS.
    """
    return [s for s in sentences if at_least <= int(s.counted.sum()) <= words]


def read_conllu(source: Path | str) -> list[ParsedSentence]:
    """Sentences of a CoNLL-U file (a Path) or text (a str), with universal tags.

    Ranges of multi-word tokens and empty nodes are left out, enhanced dependencies ignored. A
    sentence without `sent_id` is named by its number from 1. Raises ValueError that names the
    sentence and its line for a wrong column count, numbers out of order, a head that is no number
    or outside the sentence, a cycle, and any number of roots but one.
    """
    return _read(source, fine=False, punctuation=UNIVERSAL_PUNCTUATION)


def read_conllx(source: Path | str) -> list[ParsedSentence]:
    """Sentences of a CoNLL-X file (a Path) or text (a str), with Penn Treebank tags.

    The tag is the fifth column, or the fourth where the fifth is `_`. Names and errors as in
    `read_conllu`.
    """
    return _read(source, fine=True, punctuation=PENN_PUNCTUATION)


def from_rows(rows: Iterable[Mapping[str, object]]) -> list[ParsedSentence]:
    """Sentences of rows with columns id, tokens, upos, heads and deprels, as `data.load("ewt")`.

    Raises ValueError that names the sentence if its heads are not a tree.
    """
    return [
        ParsedSentence(
            str(row["id"]),
            tuple(row["tokens"]),
            tuple(row["heads"]),
            tuple(row["deprels"]),
            tuple(row["upos"]),
            tuple(tag in UNIVERSAL_PUNCTUATION for tag in row["upos"]),
        )
        for row in rows
    ]


def _read(source: Path | str, fine: bool, punctuation: frozenset[str]) -> list[ParsedSentence]:
    text = source.read_text(encoding="utf-8-sig") if isinstance(source, Path) else source
    sentences = []
    for number, block in enumerate(blocks(text), start=1):
        words = block.words
        tags = tuple(w.fine_tag if fine and w.fine_tag != "_" else w.tag for w in words)
        try:
            sentence = ParsedSentence(
                block.name or str(number),
                tuple(w.form for w in words),
                tuple(w.head for w in words),
                tuple(w.relation for w in words),
                tags,
                tuple(tag in punctuation for tag in tags),
            )
        except ValueError as error:
            raise ValueError(f"{error} (lines {words[0].line} to {words[-1].line})") from None
        sentences.append(sentence)
    return sentences


def _dependents(sentence: ParsedSentence) -> Sequence[tuple[int, int]]:
    """Dependent and head, both counted words from 0, of every gold edge."""
    counted = sentence.counted
    return [
        (dependent, head - 1)
        for dependent, head in enumerate(sentence.heads)
        if head and counted[dependent] and counted[head - 1]
    ]
