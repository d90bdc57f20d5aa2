"""Are subjects linked to their verbs across a relative clause?

Jian and Reddy 2023 (their Table 5) score trees over an MLM's conditional mutual information on the
agreement sentences of Marvin and Linzen 2018 by the recall of the edge between subject and verb.
Here the sentences are generated in the style of their categories, with other words, each a single
piece of the model's vocabulary; sentences without a relative clause are the control.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from transformers import PreTrainedTokenizerBase

from unmasked import trees
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.mi import conditional_mutual_information, to_words
from unmasked.project import UserError
from unmasked.trees import ParsedSentence

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]

NOUNS = (
    ("man", "men"), ("woman", "women"), ("child", "children"), ("friend", "friends"),
    ("soldier", "soldiers"), ("officer", "officers"), ("actor", "actors"),
    ("citizen", "citizens"), ("member", "members"),
)  # fmt: skip
TRANSITIVE = (
    ("knows", "know"), ("helps", "help"), ("follows", "follow"), ("calls", "call"),
    ("finds", "find"), ("leaves", "leave"),
)  # fmt: skip
INTRANSITIVE = (
    ("works", "work"), ("falls", "fall"), ("stands", "stand"), ("comes", "come"),
    ("returns", "return"), ("fails", "fail"),
)  # fmt: skip
"""Singular and plural."""

MODEL, CHAIN, RANDOM_TREE = "masked language model", "adjacent chain", "random tree"
RANDOM_TREES = 20
"""Random trees drawn for each sentence."""

REPORTED = MappingProxyType(
    {
        "object relative": {"conditional information": 8.9, "their method": 79.5},
        "subject relative": {"conditional information": 1.9, "their method": 63.0},
    }
)
"""Recall in percent as Jian and Reddy 2023 report it (Table 5): another model, other sentences."""


@dataclass(frozen=True)
class Construction:
    """A pattern of words and slots with its heads, from 1, 0 at the root, as in `ParsedSentence`.

    Slots are N (noun), V (intransitive verb) and T (transitive verb); slots with the same digit
    agree in number. Subject and verb of the main clause are N1 and V1.
    """

    pattern: str
    heads: tuple[int, ...]

    @property
    def subject_verb(self) -> tuple[int, int]:
        """Positions of subject and main verb, from 0."""
        slots = self.pattern.split()
        return slots.index("N1"), slots.index("V1")

    def sentence(self, name: str, generator: np.random.Generator) -> ParsedSentence:
        """The pattern filled at random, no noun twice."""
        nouns = iter(generator.permutation(len(NOUNS)))
        plural = generator.integers(2, size=10)
        kinds = {"V": INTRANSITIVE, "T": TRANSITIVE}
        words = []
        for slot in self.pattern.split():
            if slot[0] == "N" and slot[1:].isdigit():
                words.append(NOUNS[next(nouns)][plural[int(slot[1:])]])
            elif slot[0] in kinds and slot[1:].isdigit():
                verbs = kinds[slot[0]]
                words.append(verbs[generator.integers(len(verbs))][plural[int(slot[1:])]])
            else:
                words.append(slot)
        subject = self.subject_verb[0]
        relations = tuple("nsubj" if i == subject else "dep" for i in range(len(words)))
        stops = tuple(word == "." for word in words)
        tags = tuple("PUNCT" if stop else "X" for stop in stops)
        return ParsedSentence(name, tuple(words), self.heads, relations, tags, stops)


CONSTRUCTIONS = MappingProxyType(
    {
        "simple": Construction("The N1 V1 .", (2, 3, 0, 3)),
        "prepositional phrase": Construction(
            "The N1 near the N2 V1 .", (2, 6, 5, 5, 2, 0, 6)
        ),
        "object relative": Construction(
            "The N1 that the N2 T2 V1 .", (2, 7, 6, 5, 6, 2, 0, 7)
        ),
        "subject relative": Construction(
            "The N1 that T1 the N2 V1 .", (2, 7, 4, 2, 6, 4, 0, 7)
        ),
    }
)  # fmt: skip


class LongDistanceConfig(BaseModel):
    """The model by name, sentences of each construction, and values a side of the estimator."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    model: Annotated[str, Field(min_length=1)] = "book_model"
    sentences: Positive
    head: Positive
    tail: Annotated[int, Field(ge=0)]


def compute_long_distance(config: LongDistanceConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Recall of subject-verb edges, UUAS and information for each construction.

    Each seed has sentences of its own. Measured sentences are kept in `workdir`, so that a killed
    run goes on where it was. Raises UserError if the tokenizer splits a word.
    """
    model, tokenizer = load_named(config.model)
    check_single_pieces(tokenizer)
    for name, construction in CONSTRUCTIONS.items():
        sentences = sentences_of(construction, config.sentences, seed)
        found = conditional_mutual_information(
            model, tokenizer, [sentence.words for sentence in sentences], "head_tail",
            generator=torch.Generator().manual_seed(seed), head=config.head, tail=config.tail,
            folder=workdir,
        )  # fmt: skip
        information = [to_words(part) for part in found]
        counted = sentences[0].counted
        row = partial(_row, construction=name)
        predicted = [trees.maximum_spanning_tree(table, counted) for table in information]
        yield from _scores(row, MODEL, predicted, sentences, construction)
        yield from _information(row, information, sentences, construction)
        chain = [trees.adjacent_chain(len(counted), counted) for _ in sentences]
        yield from _scores(row, CHAIN, chain, sentences, construction)
        generator = np.random.default_rng(seed)
        several = list(sentences) * RANDOM_TREES
        drawn = [trees.random_tree(len(counted), generator, counted) for _ in several]
        yield from _scores(row, RANDOM_TREE, drawn, several, construction)


def data_checksum(config: LongDistanceConfig) -> str:
    """Which model the rows rest on."""
    return named_checksum(config.model)


def sentences_of(construction: Construction, count: int, seed: int) -> list[ParsedSentence]:
    """The `count` sentences of a seed: all different, and none is also another seed's.

    Raises UserError if the construction has too few sentences.
    """
    generator = np.random.default_rng(0)
    found: dict[tuple[str, ...], ParsedSentence] = {}
    wanted = count * (seed + 1)
    for number in range(50 * wanted):
        sentence = construction.sentence(f"{construction.pattern} {number}", generator)
        found.setdefault(sentence.words, sentence)
        if len(found) == wanted:
            return list(found.values())[-count:]
    raise UserError(
        f"{construction.pattern!r} has too few sentences for {count} a seed up to seed {seed}; "
        "ask for fewer sentences or lower seeds."
    )


def check_single_pieces(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises UserError unless every word of every construction is one piece of the vocabulary."""
    words = [word for pairs in (NOUNS, TRANSITIVE, INTRANSITIVE) for pair in pairs for word in pair]
    words += ["The", "the", "near", "that", "."]
    split = [
        word for word in words
        if len(pieces := tokenizer.tokenize(word)) != 1 or pieces[0] == tokenizer.unk_token
    ]  # fmt: skip
    if split:
        raise UserError(
            f"The tokenizer splits or does not know {', '.join(split)}. The generated sentences "
            "need a vocabulary that has each of their words as one piece, as that of the book "
            "model or of bert-base-cased."
        )


def _scores(
    row: partial[Row],
    system: str,
    predicted: Sequence[np.ndarray],
    sentences: Sequence[ParsedSentence],
    construction: Construction,
) -> Iterator[Row]:
    gold = [trees.gold_edges(sentence) for sentence in sentences]
    hits = [construction.subject_verb in set(map(tuple, edges.tolist())) for edges in predicted]
    drawn = RANDOM_TREES if system == RANDOM_TREE else 1
    yield row("subject_verb_recall", float(np.mean(hits)), "share", len(hits) // drawn, system)
    edges = sum(map(len, gold)) // drawn
    yield row("uuas", trees.uuas(predicted, gold), "UUAS", edges, system)


def _information(
    row: partial[Row],
    information: Sequence[np.ndarray],
    sentences: Sequence[ParsedSentence],
    construction: Construction,
) -> Iterator[Row]:
    """Mean information (larger direction) of subject and verb, and of all pairs of words."""
    tables = np.stack([np.maximum(table, table.T) for table in information])
    kept = np.flatnonzero(sentences[0].counted)
    i, j = np.triu_indices(len(kept), k=1)
    pairs = tables[:, kept[i], kept[j]]
    linked = tables[:, *construction.subject_verb]
    yield row("subject_verb_information", linked.mean(), "nats", linked.size, MODEL)
    yield row("information", pairs.mean(), "nats", pairs.size, MODEL)


def _row(metric: str, value: float, unit: str, n: int, system: str, construction: str) -> Row:
    return {
        "construction": construction, "system": system, "metric": metric, "value": float(value),
        "unit": unit, "n": int(n),
    }  # fmt: skip
