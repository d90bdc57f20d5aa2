"""Two domains in two alphabets: synonyms with and without shared contexts.

Each synset i has two spellings, A_i (id i) and B_i (id vocabulary_size + i). Whether the two share
their contexts in a corpus is the distributional property, and it is the only thing that the corpora
of this module differ in (Chiang and Yogatama 2023, their released code; the dial is ours).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unmasked.languages import RandomWalk

A, B = 0, 1
"""The alphabets; domain d is at home in alphabet d."""


@dataclass(frozen=True)
class TwoAlphabets:
    """Two random walks over the same synsets, each token spelt in A or in B.

    Each token is spelt in its domain's own alphabet with probability ``keep``, independently: at
    1/2 the spelling says nothing, A_i and B_i share every context (the corpus ``mix``, with the
    distributional property); at 1 the first domain is all A and the second all B (``shift``,
    without). Raises ValueError if the walks have unequal vocabularies or the same seed, or if
    ``keep`` lies outside [1/2, 1].
    """

    first: RandomWalk = field(default_factory=RandomWalk)
    second: RandomWalk = field(default_factory=lambda: RandomWalk(seed=331))
    keep: float = 0.5

    def __post_init__(self) -> None:
        sizes = self.first.vocabulary_size, self.second.vocabulary_size
        if sizes[0] != sizes[1]:
            raise ValueError(f"both walks need the same vocabulary_size, got {sizes}")
        if self.first.seed == self.second.seed:
            raise ValueError(f"both walks have seed {self.first.seed}: one domain, not two")
        if not 0.5 <= self.keep <= 1:
            raise ValueError(f"keep must lie in [0.5, 1], got {self.keep}")

    @property
    def synsets(self) -> int:
        """Number of synsets; ids 0..synsets - 1 are A, synsets..2 synsets - 1 are B."""
        return self.first.vocabulary_size

    @property
    def mask_id(self) -> int:
        """The id of [MASK], the last of 2 synsets + 1; there is no other special token."""
        return 2 * self.synsets

    def walk(self, domain: int) -> RandomWalk:
        """The walk of domain 0 (D1) or 1 (D2); ValueError for any other."""
        if domain not in (0, 1):
            raise ValueError(f"domain must be 0 (D1) or 1 (D2), got {domain!r}")
        return (self.first, self.second)[domain]

    def sample(
        self, domain: int, count: int, length: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """(count, length) ids of one domain, spelt as this corpus spells."""
        synsets = self.walk(domain).sample(count, length, generator)
        at_home = generator.random(synsets.shape) < self.keep
        return self.spelt(synsets, np.where(at_home, domain, 1 - domain))

    def spelt(
        self, synsets: NDArray[np.int64], alphabet: int | NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Ids of ``synsets`` in an alphabet, A or B, or one for each token."""
        return synsets + self.synsets * np.asarray(alphabet)

    def meaning(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """The synset of each id."""
        return tokens % self.synsets
