"""A synthetic language whose sentences carry a dependency tree and whose conditionals are exact.

Every sentence is of one of a few types. A type fixes the word class of each position and the tree
over the positions, as a tag sequence and its parse would. Inside its class a word is chosen by its
head alone, so by construction words that are not linked are independent given all others, and the
conditional mutual information of a pair is known, positive on the tree and zero off it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

ORDERS = ("head_initial", "mixed", "crossing")
"""Heads before their dependents; on either side; on either side with arcs that may cross."""

_CANDIDATES = 50_000  # random trees among which those of the wanted arc length are chosen
_NEAR = 0.25  # words that a tree's mean arc length may be off
_APART = 3  # positions in which two types differ at least, so that two hidden words leave one type
_TRIES = 10_000
_LINKS = 3  # most links of a word


@dataclass(frozen=True)
class SentenceType:
    """Word classes, heads (-1 at the root) and positions with heads first, each (length,)."""

    classes: NDArray[np.int64]
    heads: NDArray[np.int64]
    order: NDArray[np.int64]


@dataclass(frozen=True)
class DependencyLanguage:
    """Sentences of ``length`` words with gold heads, and exact conditionals of the words.

    A sentence's type is uniform among ``types``. Word ``c * n + k`` is number k of class c, each
    class holding n = vocabulary_size / classes words. The root's number is uniform. A dependent's
    is, with probability ``strength``, one of the ``choices`` numbers that its class pairs with the
    head's number (fixed permutations), and else any of the n. So all words of a class are equally
    frequent at every strength, and ``strength=0`` is the control: same trees, same frequencies, no
    dependence. ``distance`` is the mean arc length in words that each tree has to within a quarter;
    ``order`` is one of ORDERS; no word has more than three links. Two types differ in the classes
    of at least three positions, so the type is known whenever at most two words are hidden.
    ``seed`` fixes types and permutations.

    Information does not grow with strength throughout: when the other links of a word already
    determine it, one more says nothing. Several choices and few links keep that effect small.

    Raises ValueError for a strength outside [0, 1], a vocabulary that the classes do not divide or
    that leaves too few words in each, an unknown order, a distance that too few trees reach, and
    more types than can be told apart.
    """

    vocabulary_size: int = 32
    classes: int = 4
    length: int = 8
    types: int = 4
    choices: int = 3
    strength: float = 0.8
    distance: float = 3.25
    order: str = "mixed"
    seed: int = 0
    _types: tuple[SentenceType, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1:
            raise ValueError(f"strength must lie in [0, 1], got {self.strength}")
        for name, least in (("classes", 1), ("length", 3), ("types", 1), ("choices", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        least = self.classes * max(2, self.choices)
        if self.vocabulary_size < least or self.vocabulary_size % self.classes:
            raise ValueError(
                f"vocabulary_size must be a multiple of the {self.classes} classes and at least "
                f"{least} (two words and {self.choices} choices each), got {self.vocabulary_size}"
            )
        if self.order not in ORDERS:
            close = difflib.get_close_matches(str(self.order), ORDERS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {self.order!r}{hint}")
        object.__setattr__(self, "_types", self._draw_types())

    @property
    def numbers(self) -> int:
        """Words in a class."""
        return self.vocabulary_size // self.classes

    @cached_property
    def choice(self) -> NDArray[np.float64]:
        """(classes, numbers, numbers): [c, a, b] = p(dependent has number b | class c, head a)."""
        rng, n = np.random.default_rng([self.seed, 1]), self.numbers
        first = np.stack([rng.permutation(n) for _ in range(self.classes)])
        paired = np.eye(n)[(first[..., None] + np.arange(self.choices)) % n].mean(2)
        return self.strength * paired + (1 - self.strength) / n

    def sample(
        self, count: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Independent sentences: tokens (count, length) and heads (count, length), -1 at the root.

        The same generator state gives the same types, hence the same trees, at every strength.
        """
        which = generator.integers(self.types, size=count)
        draws = generator.random((count, self.length))
        tokens = np.empty((count, self.length), dtype=np.int64)
        heads = np.empty_like(tokens)
        for number, kind in enumerate(self._types):
            rows = np.flatnonzero(which == number)
            numbers = np.empty((len(rows), self.length), dtype=np.int64)
            for place in kind.order:
                table = np.full((len(rows), self.numbers), 1 / self.numbers)
                if kind.heads[place] >= 0:
                    table = self.choice[kind.classes[place]][numbers[:, kind.heads[place]]]
                below = table.cumsum(1)[:, :-1] <= draws[rows, place, None]
                numbers[:, place] = below.sum(1)
            tokens[rows] = kind.classes * self.numbers + numbers
            heads[rows] = kind.heads
        return tokens, heads

    def conditional(
        self, tokens: NDArray[np.int64], hidden: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """p(word | the visible words) at each hidden position: (hidden.sum(), vocabulary_size).

        ``tokens`` (B, length), ``hidden`` (B, length) bool; what stands at hidden positions is not
        read; lines in the order of ``tokens[hidden]``. Raises ValueError for wrong shapes, unknown
        words and sentences that the language cannot produce.
        """
        tokens = self._checked(tokens, hidden)
        beliefs = self._beliefs(tokens, hidden)
        evidence = beliefs[:, 0].sum(-1)
        if not evidence.all():
            row = int(np.flatnonzero(evidence == 0)[0])
            raise ValueError(f"sentence {row} fits no sentence type: it is not of this language")
        return beliefs[hidden] / np.repeat(evidence, hidden.sum(1))[:, None]

    def floor(self, tokens: NDArray[np.int64], hidden: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Negative log-likelihood (nats) of each hidden word under ``conditional``.

        ``tokens`` (B, length) complete; returns (hidden.sum(),), in the order of
        ``tokens[hidden]``. No model that sees the visible words has a lower mean in expectation.
        """
        table = self.conditional(tokens, hidden)
        return -np.log(table[np.arange(len(table)), tokens[hidden]])

    def conditional_information(
        self, tokens: NDArray[np.int64], i: int, j: int
    ) -> NDArray[np.float64]:
        """I(X_i; X_j | the other words as they are), exact, in nats: (B,) for tokens (B, length).

        Raises ValueError if i and j are equal or outside the sentence, and what ``conditional``
        raises.
        """
        if i == j or not {i, j} <= set(range(self.length)):
            raise ValueError(f"i and j must be two of 0..{self.length - 1}, got {i} and {j}")
        hidden = np.zeros(np.shape(tokens), dtype=bool)
        hidden[:, i] = True
        tokens = self._checked(tokens, hidden)
        rows = np.repeat(tokens, self.vocabulary_size, axis=0)
        rows[:, j] = np.tile(np.arange(self.vocabulary_size), len(tokens))
        beliefs = self._beliefs(rows, np.repeat(hidden, self.vocabulary_size, axis=0))[:, i]
        joint = beliefs.reshape(len(tokens), self.vocabulary_size, self.vocabulary_size)
        total = joint.sum((1, 2), keepdims=True)
        if not total.all():
            raise ValueError("a sentence fits no sentence type: it is not of this language")
        joint = joint / total
        apart = joint.sum(1, keepdims=True) * joint.sum(2, keepdims=True)
        ratio = np.divide(joint, apart, out=np.ones_like(joint), where=joint > 0)
        return np.maximum((joint * np.log(ratio)).sum((1, 2)), 0.0)

    def information(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """``conditional_information`` of all pairs: (B, length, length), symmetric, diagonal 0."""
        table = np.zeros((len(tokens), self.length, self.length))
        for i in range(self.length):
            for j in range(i):
                table[:, i, j] = table[:, j, i] = self.conditional_information(tokens, i, j)
        return table

    def _checked(self, tokens: NDArray[np.int64], hidden: NDArray[np.bool_]) -> NDArray[np.int64]:
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or tokens.shape[1] != self.length or hidden.shape != tokens.shape:
            raise ValueError(
                f"tokens and hidden must have shape (batch, {self.length}), got {tokens.shape} and "
                f"{hidden.shape}"
            )
        seen = tokens[~hidden]
        if seen.size and not 0 <= seen.min() <= seen.max() < self.vocabulary_size:
            raise ValueError(
                f"tokens run from {seen.min()} to {seen.max()}, allowed are 0 to "
                f"{self.vocabulary_size - 1}"
            )
        return tokens

    def _beliefs(self, tokens: NDArray[np.int64], hidden: NDArray[np.bool_]) -> NDArray[np.float64]:
        """p(word at a position, the visible words): (B, length, V), the sum over the types."""
        beliefs = np.zeros((*tokens.shape, self.classes, self.numbers))
        places = np.arange(self.length)
        for kind in self._types:
            number = tokens - kind.classes * self.numbers
            fits = np.where(hidden[..., None], 1.0, number[..., None] == np.arange(self.numbers))
            table = self._sum_product(fits.transpose(1, 0, 2), kind)
            beliefs[:, places, kind.classes] += table.transpose(1, 0, 2) / self.types
        return beliefs.reshape(*tokens.shape, self.vocabulary_size)

    def _sum_product(self, fits: NDArray[np.float64], kind: SentenceType) -> NDArray[np.float64]:
        """Belief propagation on one tree; ``fits`` and the result are (length, B, numbers)."""
        root, *dependents = kind.order
        inside, outside, message = fits.copy(), np.ones_like(fits), np.ones_like(fits)
        for place in reversed(dependents):
            message[place] = inside[place] @ self.choice[kind.classes[place]].T
            inside[kind.heads[place]] *= message[place]
        outside[root] = 1 / self.numbers
        for place in dependents:
            head = kind.heads[place]
            others = np.flatnonzero((kind.heads == head) & (np.arange(self.length) != place))
            above = outside[head] * fits[head] * message[others].prod(0)
            outside[place] = above @ self.choice[kind.classes[place]]
        return inside * outside

    def _draw_types(self) -> tuple[SentenceType, ...]:
        rng = np.random.default_rng([self.seed, 0])
        heads, orders = random_trees(self.length, _CANDIDATES, self.order, rng)
        near = np.flatnonzero(np.abs(mean_arc_length(heads) - self.distance) <= _NEAR)
        if len(near) < self.types:
            raise ValueError(
                f"distance {self.distance} is out of reach: of {len(heads)} random trees over "
                f"{self.length} words in {self.order} order {len(near)} have a mean arc length "
                f"within {_NEAR} of it, and {self.types} are needed"
            )
        classes = self._draw_classes(rng)
        return tuple(map(SentenceType, classes, heads[near], orders[near]))

    def _draw_classes(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        drawn: list[NDArray[np.int64]] = []
        for _ in range(_TRIES):
            new = rng.integers(self.classes, size=self.length)
            if all((new != old).sum() >= _APART for old in drawn):
                drawn.append(new)
            if len(drawn) == self.types:
                return drawn
        raise ValueError(
            f"{self.types} sentence types of {self.length} words cannot be told apart by "
            f"{self.classes} classes; take fewer types, more classes or longer sentences"
        )


def random_trees(
    length: int, count: int, order: str, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """At most ``count`` random trees: heads (T, length), -1 at the root, and positions heads first.

    Positions join one after another in a random order (``head_initial``: from left to right), each
    below a uniform one of those that are there. Trees with a word of more than three links are then
    dropped, and those with crossing arcs unless ``order`` is ``crossing``.
    """
    joined = np.tile(np.arange(length), (count, 1))
    if order != "head_initial":
        joined = generator.permuted(joined, axis=1)
    heads = np.full((count, length), -1)
    rows = np.arange(count)
    for step in range(1, length):
        below = generator.integers(step, size=count)
        heads[rows, joined[:, step]] = joined[rows, below]
    links = (heads >= 0) + (heads[:, :, None] == np.arange(length)).sum(1)
    kept = links.max(1) <= _LINKS
    if order != "crossing":
        kept &= ~_crossing(heads)
    return heads[kept], joined[kept]


def mean_arc_length(heads: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean distance in words between head and dependent: (...,) for ``heads`` (..., length)."""
    lengths = np.abs(heads - np.arange(heads.shape[-1]))
    return np.where(heads >= 0, lengths, 0).sum(-1) / (heads >= 0).sum(-1)


def _crossing(heads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(T,): whether two arcs cross; the root's own arc comes from -1, before the sentence."""
    place = np.broadcast_to(np.arange(heads.shape[1]), heads.shape)
    low, high = np.minimum(heads, place), np.maximum(heads, place)
    low, high = (
        low[:, :, None],
        high[:, :, None],
    )
    a, b = low.transpose(0, 2, 1), high.transpose(0, 2, 1)
    return ((low < a) & (a < high) & (high < b)).any((1, 2))
