"""What a masked token can be guessed from without a network: its frequency, or its two neighbours.

A masked language model that has learned less than these has learned nothing about context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

WEIGHTS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Interpolation weights that `NeighbourBigramBaseline.tuned` tries for each neighbour."""

_CHUNK = 256  # masked positions at a time: a few tables of 256 x V float64


@dataclass(frozen=True)
class UnigramBaseline:
    """Every masked token is predicted by the token frequencies, add-one smoothed.

    `probabilities` (V,) is 0 at the special ids, which are never masked.
    """

    probabilities: NDArray[np.float64]

    @classmethod
    def fit(
        cls, sequences: Iterable[NDArray], vocabulary_size: int, special_ids: Sequence[int] = ()
    ) -> UnigramBaseline:
        """Count the tokens of `sequences` (arrays of ids); `special_ids` do not count."""
        counts = 1.0 + np.bincount(_joined(sequences, vocabulary_size), minlength=vocabulary_size)
        counts[list(special_ids)] = 0.0
        return cls(counts / counts.sum())

    @property
    def entropy(self) -> float:
        """Entropy of the frequencies in nats: the loss on text that they describe exactly."""
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    def negative_log_likelihood(self, tokens: NDArray) -> NDArray[np.float64]:
        """Loss of each token in nats, (N,)."""
        with np.errstate(divide="ignore"):
            return -np.log(self.probabilities[tokens])

    def predict(self) -> int:
        """The most frequent token."""
        return int(self.probabilities.argmax())


@dataclass(frozen=True)
class NeighbourBigramBaseline:
    """Predicts a masked token w from its neighbours l and r by p(w | l) p(r | w), normalised.

    Both factors are interpolated with frequencies (Jelinek-Mercer): `left_weight` and
    `right_weight` belong to the bigram. A neighbour in `unknown_ids` ([MASK], padding) says
    nothing: its factor is left out. The predicted token is never one of `special_ids`.
    """

    pairs: csr_array  # (V, V): how often the second id follows the first
    frequencies: NDArray[np.float64]  # (V,) of all ids, special ones too: they can be neighbours
    unigram: UnigramBaseline
    unknown_ids: tuple[int, ...]
    left_weight: float = 0.5
    right_weight: float = 0.5

    @classmethod
    def fit(
        cls,
        sequences: Iterable[NDArray],
        vocabulary_size: int,
        special_ids: Sequence[int] = (),
        unknown_ids: Sequence[int] = (),
    ) -> NeighbourBigramBaseline:
        """Count tokens and neighbouring pairs inside each of `sequences` (arrays of ids)."""
        rows = [np.asarray(row, dtype=np.int64) for row in sequences]
        counts = np.bincount(_joined(rows, vocabulary_size), minlength=vocabulary_size)
        first = np.concatenate([row[:-1] for row in rows])
        second = np.concatenate([row[1:] for row in rows])
        pairs = csr_array(
            (np.ones(len(first)), (first, second)), shape=(vocabulary_size, vocabulary_size)
        )
        pairs.sum_duplicates()
        frequencies = (counts + 1.0) / (counts.sum() + vocabulary_size)
        unigram = UnigramBaseline.fit(rows, vocabulary_size, special_ids)
        return cls(pairs, frequencies, unigram, tuple(unknown_ids))

    def tuned(self, sequences: Iterable[NDArray], limit: int = 500) -> NeighbourBigramBaseline:
        """The same counts with the pair of weights that predicts held-out `sequences` best.

        Inner tokens that are not special are predicted from their neighbours; of more than `limit`
        of them, evenly spaced ones. Raises ValueError if there is none.
        """
        rows = [np.asarray(row, dtype=np.int64) for row in sequences if len(row) > 2]
        triples = np.concatenate(
            [np.zeros((3, 0), np.int64), *(np.stack([r[:-2], r[1:-1], r[2:]]) for r in rows)],
            axis=1,
        )
        triples = triples[:, self.unigram.probabilities[triples[1]] > 0]
        if not triples.shape[1]:
            raise ValueError("no held-out token between two others to tune the weights on")
        even = np.linspace(0, triples.shape[1] - 1, min(limit, triples.shape[1])).astype(int)
        left, token, right = triples[:, even]
        candidates = [
            replace(self, left_weight=a, right_weight=b) for a in WEIGHTS for b in WEIGHTS
        ]
        losses = [c.negative_log_likelihood(left, token, right).mean() for c in candidates]
        return candidates[int(np.argmin(losses))]

    def negative_log_likelihood(
        self, left: NDArray, token: NDArray, right: NDArray
    ) -> NDArray[np.float64]:
        """Loss in nats of each token (N,) given its neighbours (N,)."""
        parts = [
            -np.log(distribution[np.arange(len(distribution)), token[rows]])
            for rows, distribution in self._distributions(left, right)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def predict(self, left: NDArray, right: NDArray) -> NDArray[np.int64]:
        """The likeliest token between each pair of neighbours, (N,)."""
        parts = [table.argmax(axis=1) for _, table in self._distributions(left, right)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _distributions(
        self, left: NDArray, right: NDArray
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Slices of the positions with p(w | left, right), (rows, V) each, that sum to 1."""
        follows = np.maximum(np.asarray(self.pairs.sum(axis=1)).ravel(), 1.0)
        after = csr_array(self.pairs.multiply(1.0 / follows[:, None]))  # p(second | first)
        before = csc_array(after)
        for start in range(0, len(left), _CHUNK):
            rows = slice(start, start + _CHUNK)
            table = self._left_factor(left[rows], after) * self._right_factor(right[rows], before)
            table *= self.unigram.probabilities > 0
            yield rows, table / table.sum(axis=1, keepdims=True)

    def _left_factor(self, left: NDArray, after: csr_array) -> NDArray[np.float64]:
        weight = np.where(np.isin(left, self.unknown_ids), 0.0, self.left_weight)[:, None]
        return weight * after[left].toarray() + (1.0 - weight) * self.frequencies

    def _right_factor(self, right: NDArray, before: csc_array) -> NDArray[np.float64]:
        weight = self.right_weight
        seen = weight * before[:, right].toarray().T
        factor = seen + (1.0 - weight) * self.frequencies[right][:, None]
        factor[np.isin(right, self.unknown_ids)] = 1.0
        return factor


def _joined(sequences: Iterable[NDArray], vocabulary_size: int) -> NDArray[np.int64]:
    """All ids end to end; ValueError if there are none or one is outside the vocabulary."""
    ids = np.concatenate([np.zeros(0, np.int64), *(np.asarray(row) for row in sequences)])
    if not ids.size:
        raise ValueError("no token to count")
    if ids.min() < 0 or ids.max() >= vocabulary_size:
        raise ValueError(
            f"ids run from {ids.min():.0f} to {ids.max():.0f}, "
            f"but the vocabulary has ids 0..{vocabulary_size - 1}"
        )
    return ids.astype(np.int64)
