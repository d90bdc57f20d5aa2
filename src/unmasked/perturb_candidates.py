"""Which words and phrases of a sentence may be perturbed, and the sentence with one of them masked.

Chiang and Yogatama 2023: the candidates are nouns, verbs and adjectives, and the noun, verb and
adjective phrases of a constituency parse; pronouns are none (facts from the released code).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nltk import Tree
from nltk.corpus.reader import WordNetCorpusReader

from unmasked.perturb_words import WORD_CLASSES, word_class

PHRASES = ("NP", "VP", "ADJP")
SHORT = 4
"""A short phrase has at most so many words."""

UNIVERSAL = {"NOUN": "N", "PROPN": "N", "VERB": "V", "ADJ": "J"}
_PENN = {"NN": "N", "VB": "V", "JJ": "J"}
_PRONOUNS = ("PRP", "PRP$", "WP", "WP$", "PRON")


@dataclass(frozen=True)
class Candidate:
    """Words `start` to `stop` - 1 of a sentence, which may be perturbed.

    `kind` is a word class (N, V, J) or the label of a phrase (NP, VP, ADJP); `length` is what the
    choice of the shortest goes by; `tag` is the given tag of a single word; `leftmost` says that
    nothing stands before it under its parent in the parse.
    """

    start: int
    stop: int
    kind: str
    length: int = 1
    tag: str | None = None
    leftmost: bool = False


def class_of_tag(tag: str) -> str | None:
    """N, V or J of a universal or Penn tag; None for any other tag (NUM, RB, PRP, ...)."""
    return UNIVERSAL.get(tag) or _PENN.get(tag[:2])


def candidate_words(
    words: Sequence[str],
    tags: Sequence[str] | None = None,
    reader: WordNetCorpusReader | None = None,
) -> list[Candidate]:
    """The nouns, verbs and adjectives of a sentence, in its order; empty if it has none.

    With `tags` (universal or Penn, one a word) these decide, as in the released code, where any N*,
    V*, J* counts; without, `perturb_words.word_class` does. Raises ValueError for an empty sentence
    and for another number of tags than of words.
    """
    _checked(words)
    if tags is not None and len(tags) != len(words):
        raise ValueError(f"{len(tags)} tags for {len(words)} words; give one tag a word")
    if tags is None:
        kinds = [word_class(word, reader) for word in words]
        tags = [None] * len(words)
    else:
        kinds = [class_of_tag(tag) for tag in tags]
    return [
        Candidate(place, place + 1, kind, tag=tag)
        for place, (kind, tag) in enumerate(zip(kinds, tags, strict=True))
        if kind is not None
    ]


def short_phrases(tree: Tree, released_lengths: bool = False) -> list[Candidate]:
    """The phrases of at most four words, and the single nouns, verbs, adjectives, of a parse.

    Order of the tree, parents first. A phrase of one word stands beside the word's own tag. Neither
    pronouns nor phrases of one pronoun are candidates, nor is what covers the whole sentence.
    `released_lengths` counts the children of a phrase for its words, as the released code does:
    then a phrase of four children may be any number of words long. Raises ValueError for a tree
    without words.
    """
    found = [each for each in _phrases(tree, released_lengths) if each.length <= SHORT]
    return [*found, *_single_words(tree)]


def long_phrase(tree: Tree, released_lengths: bool = False) -> Candidate | None:
    """The longest phrase that does not cover the sentence, the first of equals; None without any.

    Length is in words, or in children with `released_lengths`. Raises ValueError for a tree
    without words.
    """
    return max(_phrases(tree, released_lengths), key=lambda each: each.length, default=None)


def masked_variants(
    words: Sequence[str], candidates: Sequence[Candidate], mask_token: str
) -> list[str]:
    """The sentence once for each candidate, with one `mask_token` in the candidate's place.

    Words are joined by spaces. Raises ValueError for an empty sentence and for a candidate that
    lies outside it.
    """
    return [replaced(words, candidate, mask_token) for candidate in candidates]


def replaced(words: Sequence[str], candidate: Candidate, replacement: str) -> str:
    """The sentence, joined by spaces, with `replacement` for the words of `candidate`."""
    _checked(words)
    if not 0 <= candidate.start < candidate.stop <= len(words):
        raise ValueError(
            f"the candidate spans words {candidate.start}..{candidate.stop}, the sentence has "
            f"{len(words)}"
        )
    return " ".join([*words[: candidate.start], replacement, *words[candidate.stop :]])


def _checked(words: Sequence[str]) -> None:
    if isinstance(words, str):
        raise ValueError("the sentence is one string; split it into a list of words")
    if not words:
        raise ValueError("the sentence is empty; drop empty sentences first")


def _phrases(tree: Tree, released_lengths: bool) -> list[Candidate]:
    """The candidates among the phrases of any length."""
    _checked(tree.leaves())
    candidates = []
    for position, start, node in _nodes(tree):
        words = len(node.leaves())
        label = _label(node)
        pronoun = words == 1 and node.pos()[0][1] in _PRONOUNS
        if label not in PHRASES or pronoun or words == len(tree.leaves()):
            continue
        length = len(node) if released_lengths else words
        first = not position or position[-1] == 0
        candidates.append(Candidate(start, start + words, label, length, leftmost=first))
    return candidates


def _single_words(tree: Tree) -> list[Candidate]:
    if len(tree.leaves()) == 1:
        return []
    firsts = [tree.leaf_treeposition(n)[-2] == 0 for n in range(len(tree.leaves()))]
    kinds = [(tag, class_of_tag(tag)) for _, tag in tree.pos()]
    return [
        Candidate(place, place + 1, kind, tag=tag, leftmost=first)
        for place, ((tag, kind), first) in enumerate(zip(kinds, firsts, strict=True))
        if kind in WORD_CLASSES
    ]


def _nodes(tree: Tree) -> list[tuple[tuple[int, ...], int, Tree]]:
    """(position, first word, node) of every node that is no leaf, parents first."""
    found, start = [], 0
    for position in tree.treepositions():
        node = tree[position]
        if isinstance(node, Tree):
            found.append((position, start, node))
        else:
            start += 1
    return found


def _label(node: Tree) -> str:
    """The category of a node without its function tags: NP of NP-SBJ-1 or NP=2."""
    return node.label().split("-")[0].split("=")[0]
