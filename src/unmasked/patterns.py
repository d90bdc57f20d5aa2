"""Sequence labels by ordered patterns (Chiang and Yogatama 2023, their released code).

A pattern is a few token sets in order; a sequence matches it if it holds a token of the first set,
later one of the second, later still one of the third, with any gaps. Its label is 1 if it matches
at least one pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_BITS = 64


@dataclass(frozen=True)
class OrderedPatterns:
    """Labels that depend on the order of a few tokens, and on nothing else.

    ``patterns`` patterns of ``stages`` sets with ``set_size`` distinct tokens each; the sets of one
    pattern are disjoint, those of two patterns may share tokens. ``seed`` draws them; the defaults
    are the published constants, equal in distribution to the published sets. Raises ValueError if
    a count is below 1, if a pattern needs more tokens than the vocabulary has, or if all patterns
    together have more than 64 sets.
    """

    vocabulary_size: int = 1000
    patterns: int = 5
    stages: int = 3
    set_size: int = 12
    seed: int = 333

    def __post_init__(self) -> None:
        for name in ("patterns", "stages", "set_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.stages * self.set_size > self.vocabulary_size:
            raise ValueError(
                f"a pattern needs {self.stages} x {self.set_size} distinct tokens, the vocabulary "
                f"has {self.vocabulary_size}: lower set_size or raise vocabulary_size"
            )
        if self.patterns * self.stages > _BITS:
            raise ValueError(
                f"patterns x stages must be at most {_BITS}, got {self.patterns} x {self.stages}"
            )

    @cached_property
    def sets(self) -> NDArray[np.int64]:
        """(patterns, stages, set_size): the tokens of each set."""
        rng = np.random.default_rng(self.seed)
        size = self.stages * self.set_size
        drawn = [rng.permutation(self.vocabulary_size)[:size] for _ in range(self.patterns)]
        return np.stack(drawn).reshape(self.patterns, self.stages, self.set_size)

    def labels(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B,) labels 0 or 1 of ``tokens`` (B, L), integers in 0..vocabulary_size - 1.

        Greedy, all rows and patterns at once: one bit a set says that it and the sets before it
        have been found in order; the earliest place for each set finds a match if there is one.
        Raises ValueError for another shape or type, for a token out of range, and for sequences
        shorter than a pattern, which nothing could match.
        """
        tokens = self._checked(tokens)
        member, first, last = self._bits
        found = np.zeros(len(tokens), dtype=member.dtype)
        for bits in member[tokens.T]:  # (B,) bits of one position
            found |= bits & ((found << member.dtype.type(1)) | first)
        return ((found & last) != 0).astype(np.int64)

    @cached_property
    def _bits(self) -> tuple[NDArray[np.unsignedinteger], int, int]:
        """Bit ``pattern * stages + stage`` of each token's sets; those of first and last sets."""
        count = self.patterns * self.stages
        kind = np.min_scalar_type(2**count - 1).type
        member = np.zeros(self.vocabulary_size, dtype=kind)
        for number, tokens in enumerate(self.sets.reshape(count, self.set_size)):
            member[tokens] |= kind(1 << number)
        first = kind(sum(1 << number for number in range(0, count, self.stages)))
        return member, first, kind(int(first) << (self.stages - 1))

    def _checked(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or not np.issubdtype(tokens.dtype, np.integer):
            raise ValueError(
                f"tokens must be integers of shape (batch, length), got {tokens.dtype} of shape "
                f"{tokens.shape}"
            )
        if tokens.shape[1] < self.stages:
            raise ValueError(
                f"sequences of {tokens.shape[1]} tokens are shorter than a pattern of "
                f"{self.stages} sets"
            )
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < self.vocabulary_size:
            raise ValueError(
                f"tokens run from {tokens.min()} to {tokens.max()}, allowed are 0 to "
                f"{self.vocabulary_size - 1}; labels depend on synsets, not on alphabets"
            )
        return tokens
