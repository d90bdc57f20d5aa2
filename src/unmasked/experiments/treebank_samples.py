"""Which sentences of which treebank an experiment measures.

One fixed permutation of the sentences that fit is cut into parts: seed s takes the s-th from the
front, and the training history takes its own from the end, so no two share a sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from transformers import PreTrainedTokenizerBase as Tokenizer

from unmasked import data
from unmasked.experiments.template_sentences import template_sentences
from unmasked.project import UserError
from unmasked.treebanks import ParsedSentence, at_most, from_rows, read_conllu, read_conllx

EWT = "ewt"
TEMPLATES = "sample"
READERS = {".conllu": read_conllu, ".conllx": read_conllx, ".conll": read_conllx}
Positive = Annotated[int, Field(ge=1)]


class Sample(BaseModel):
    """How many sentences, how long at most, and the size of the estimator's support.

    `words` counts words without punctuation (None: no limit), `pieces` word pieces without the
    special tokens; `head` and `tail` are those of the estimator.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    sentences: Annotated[int, Field(ge=2)]
    words: Annotated[int, Field(ge=2)] | None
    pieces: Annotated[int, Field(ge=2)]
    head: Positive
    tail: Positive


def load_treebank(name: str) -> list[ParsedSentence]:
    """All sentences of "ewt" (validation split), of "sample" (templates), or of a file.

    A file is read by its ending: .conllu (universal tags) or .conllx and .conll (Penn tags). Raises
    UserError for another ending, a missing file or one that is not well formed.
    """
    if name == EWT:
        return from_rows(data.load(EWT, "validation"))
    if name == TEMPLATES:
        return template_sentences(200, np.random.default_rng(0))
    path = Path(name)
    if path.suffix not in READERS or not path.is_file():
        raise UserError(
            f"The treebank {name!r} cannot be read. Known are {EWT!r}, {TEMPLATES!r}, or the path "
            f"of an existing file that ends in {', '.join(READERS)}."
        )
    try:
        return READERS[path.suffix](path)
    except ValueError as error:
        raise UserError(f"The treebank {path.name}: {error}.") from error


def treebank_checksum(name: str) -> str:
    """What pins a treebank: 16 hex digits of its content; the name where code makes it."""
    if name == TEMPLATES:
        return name
    if name == EWT:
        return data.checksum(data.load(EWT, "validation"))[:16]
    load_treebank(name)  # the message for a file that cannot be read
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()[:16]


def eligible(
    sentences: Sequence[ParsedSentence], tokenizer: Tokenizer, words: int | None, pieces: int
) -> list[ParsedSentence]:
    """The sentences that can be measured, in the order of the fixed permutation.

    They have two or more words without punctuation (with one there is no edge to find) and at most
    `words` of them, at most `pieces` word pieces, and no word that the tokenizer drops.
    """
    longest = max((len(sentence.words) for sentence in sentences), default=0)
    kept = []
    for sentence in at_most(sentences, words or longest, at_least=2):
        encoded = tokenizer(
            list(sentence.words), is_split_into_words=True, add_special_tokens=False,
            truncation=False, verbose=False,
        )  # fmt: skip
        found = encoded.word_ids()
        if len(found) <= pieces and len(set(found)) == len(sentence.words):
            kept.append(sentence)
    order = np.random.default_rng(0).permutation(len(kept))
    return [kept[i] for i in order]


def part(pool: Sequence[ParsedSentence], count: int, number: int) -> list[ParsedSentence]:
    """The `number`-th part of `count` sentences from the front; UserError if the pool ends."""
    chosen = list(pool[number * count : (number + 1) * count])
    if len(chosen) < count:
        raise UserError(
            f"Part {number} of {count} sentences needs {(number + 1) * count}, but the treebank "
            f"has {len(pool)} that fit; ask for fewer sentences or seeds."
        )
    return chosen
