"""Sentences from a small grammar, with gold trees by construction: a treebank without a treebank.

A subject, a verb, an object and in half of the sentences a place, each noun with an article and
perhaps an adjective. Relations and tags are those of Universal Dependencies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unmasked.treebanks import ParsedSentence

ARTICLES = ("the", "a", "this")
ADJECTIVES = ("old", "small", "good", "young")
NOUNS = ("captain", "ship", "man", "house", "story", "sea", "boat", "king")
VERBS = ("saw", "found", "took", "made", "left")
PREPOSITIONS = ("in", "near", "from")


def template_sentences(count: int, generator: np.random.Generator) -> list[ParsedSentence]:
    """`count` sentences of 5 to 11 counted words and a full stop."""
    return [_sentence(f"template-{number}", generator) for number in range(1, count + 1)]


def _sentence(name: str, generator: np.random.Generator) -> ParsedSentence:
    def pick(words: Sequence[str]) -> str:
        return words[int(generator.integers(len(words)))]

    words: list[tuple[str, str, str, int]] = []  # form, tag, relation, head from 1

    def noun_phrase(relation: str, before: tuple[tuple[str, str, str], ...] = ()) -> int:
        """Append a noun phrase whose noun's head is filled in later; the noun's number."""
        parts = [*before, (pick(ARTICLES), "DET", "det")]
        if generator.random() < 0.5:
            parts.append((pick(ADJECTIVES), "ADJ", "amod"))
        noun = len(words) + len(parts) + 1
        words.extend((*part, noun) for part in parts)
        words.append((pick(NOUNS), "NOUN", relation, -1))
        return noun

    noun_phrase("nsubj")
    verb = len(words) + 1
    words.append((pick(VERBS), "VERB", "root", 0))
    noun_phrase("obj")
    if generator.random() < 0.5:
        noun_phrase("obl", ((pick(PREPOSITIONS), "ADP", "case"),))
    words.append((".", "PUNCT", "punct", verb))
    forms, tags, relations, heads = zip(*words, strict=True)
    heads = tuple(verb if head == -1 else head for head in heads)
    punctuation = tuple(tag == "PUNCT" for tag in tags)
    return ParsedSentence(name, forms, heads, relations, tags, punctuation)
