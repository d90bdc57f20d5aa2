"""Synthetic languages whose conditional distributions are known exactly.

A model trained on such a source can be measured against the truth: its masked loss less the loss
of the exact posterior is what it has yet to learn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

HIDDEN = -1
"""Stands for a position that is not observed."""

_CHUNK_VALUES = 16_000_000  # float64 values in the forward table at a time, 128 MB
_SAMPLE_ROWS = 8_192  # rows walked together, so that the walks stay in the cache


@dataclass(frozen=True)
class RandomWalk:
    """Random walk on a ring of nodes that emit tokens (Chiang and Yogatama 2023, their code).

    Node k emits ``permutation[k mod vocabulary_size]``, so each token has nodes / vocabulary_size
    nodes. From node k the walk goes to k + 1 with ``continue_probability``, else to one of
    ``degree - 1`` fixed nodes k + r, all modulo ``nodes``, with r drawn once, uniform in
    0..vocabulary_size - 2. It starts at a uniform node. ``seed`` fixes the graph and the
    permutation; the defaults are the published constants of the first domain (331: the second),
    equal in distribution to the published graphs, not draw by draw. Raises ValueError if
    vocabulary_size does not divide nodes, if it or the degree is below 2, or if
    continue_probability lies outside [0, 1].
    """

    vocabulary_size: int = 1000
    nodes: int = 5000
    degree: int = 2
    continue_probability: float = 0.9
    seed: int = 330

    def __post_init__(self) -> None:
        if self.vocabulary_size < 2 or self.degree < 2:
            raise ValueError(
                "vocabulary_size and degree must be at least 2, "
                f"got {self.vocabulary_size} and {self.degree}"
            )
        if self.nodes < 1 or self.nodes % self.vocabulary_size:
            raise ValueError(
                f"nodes must be a multiple of vocabulary_size {self.vocabulary_size}, "
                f"got {self.nodes}"
            )
        if not 0 <= self.continue_probability <= 1:
            raise ValueError(
                f"continue_probability must lie in [0, 1], got {self.continue_probability}"
            )

    @cached_property
    def _graph(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Permutation (vocabulary_size,) and successors (nodes, degree), the ring's one first."""
        rng = np.random.default_rng(self.seed)
        permutation = rng.permutation(self.vocabulary_size)
        steps = rng.integers(self.vocabulary_size - 1, size=(self.nodes, self.degree))
        steps[:, 0] = 1
        return permutation, (np.arange(self.nodes)[:, None] + steps) % self.nodes

    def emission(self) -> NDArray[np.int64]:
        """(nodes,): the token that each node emits."""
        return np.tile(self._graph[0], self.nodes // self.vocabulary_size)

    def transition(self) -> csr_array:
        """(nodes, nodes) float64, sparse: entry [k, m] is the probability of going from k to m."""
        jump = (1 - self.continue_probability) / (self.degree - 1)
        weights = np.full((self.nodes, self.degree), jump)
        weights[:, 0] = self.continue_probability
        origins = np.repeat(np.arange(self.nodes), self.degree)
        entries = (weights.ravel(), (origins, self._graph[1].ravel()))
        return csr_array(entries, shape=(self.nodes, self.nodes))

    def sample(self, count: int, length: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """(count, length) tokens: independent walks, each from a uniform start."""
        tokens = np.empty((count, length), dtype=np.int64)
        emission, successors = self.emission(), self._graph[1]
        for first in range(0, count, _SAMPLE_ROWS):
            block = tokens[first : first + _SAMPLE_ROWS]
            path = np.empty((length, len(block)), dtype=np.int64)
            node = generator.integers(self.nodes, size=len(block))
            for step in range(length):
                path[step] = node
                jumps = generator.random(len(block)) >= self.continue_probability
                which = generator.integers(1, self.degree, size=len(block)) * jumps
                node = successors[node, which]
            block[:] = emission[path.T]
        return tokens

    def posterior(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """p(x_t | every other observed token), exact: (B, L, vocabulary_size), sums to 1.

        ``tokens`` (B, L) int64 with -1 where hidden. At a hidden position this is the Bayes-optimal
        prediction of a masked language model that sees the other tokens; at an observed position
        its own token is left out. Forward-backward over the nodes, scaled at each step. Raises
        ValueError for a token outside -1..vocabulary_size - 1 and for a row that the walk cannot
        produce (one with random replacements, say).
        """
        tokens = self._checked(tokens)
        out = np.empty((*tokens.shape, self.vocabulary_size))
        for rows in self._chunks(tokens):
            out[rows] = self._posterior(tokens[rows], rows.start)
        return out

    def floor(self, tokens: NDArray[np.int64], hidden: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Negative log-likelihood in nats of each hidden token under the exact posterior.

        ``tokens`` (B, L) complete, ``hidden`` (B, L) bool: all of a row's hidden tokens are hidden
        together. Returns (hidden.sum(),) in the order of ``tokens[hidden]``; no model that sees the
        other tokens can have a lower mean in expectation. Raises what ``posterior`` raises, and
        ValueError if the shapes differ or a hidden position has no token.
        """
        tokens = self._checked(tokens)
        if hidden.shape != tokens.shape or hidden.dtype != np.bool_:
            raise ValueError(
                f"hidden must be bool of shape {tokens.shape}, got {hidden.dtype} {hidden.shape}"
            )
        if (tokens[hidden] == HIDDEN).any():
            raise ValueError("tokens must hold the true token at every hidden position, not -1")
        nats = [np.empty(0)]
        for rows in self._chunks(tokens):
            where, true = hidden[rows], tokens[rows]
            posterior = self._posterior(np.where(where, HIDDEN, true), rows.start)[where]
            probability = posterior[np.arange(len(posterior)), true[where]]
            if not probability.all():
                raise ValueError("a hidden token has probability 0: tokens are not from this walk")
            nats.append(-np.log(probability))
        return np.concatenate(nats)

    def _checked(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or not np.issubdtype(tokens.dtype, np.integer):
            raise ValueError(
                f"tokens must be integers of shape (batch, length), got {tokens.dtype} of shape "
                f"{tokens.shape}"
            )
        if tokens.size and not HIDDEN <= tokens.min() <= tokens.max() < self.vocabulary_size:
            raise ValueError(
                f"tokens run from {tokens.min()} to {tokens.max()}, allowed are -1 (hidden) to "
                f"{self.vocabulary_size - 1}"
            )
        return tokens

    def _chunks(self, tokens: NDArray[np.int64]) -> Iterator[slice]:
        """Slices of rows whose forward tables fit into the memory set aside for them."""
        size = max(1, _CHUNK_VALUES // max(1, self.nodes * tokens.shape[1]))
        for first in range(0, len(tokens), size):
            yield slice(first, first + size)

    def _posterior(self, tokens: NDArray[np.int64], first_row: int) -> NDArray[np.float64]:
        """``posterior`` of a few rows: the whole forward table (L, nodes, rows) is held."""
        rows, length = tokens.shape
        emission, onwards = self.emission(), self.transition()
        back = onwards.T.tocsr()
        before = np.empty((length, self.nodes, rows))  # p(node_t | tokens before t)
        belief = np.full((self.nodes, rows), 1 / self.nodes)
        for t in range(length):
            before[t] = belief
            belief = belief * _possible(tokens[:, t], emission)
            belief = back @ _normalised(belief, first_row, t)
        out = np.empty((rows, length, self.vocabulary_size))
        after = np.ones((self.nodes, rows))  # proportional to p(tokens after t | node_t)
        for t in reversed(range(length)):
            node = _normalised(before[t] * after, first_row, t)
            out[:, t, self._graph[0]] = node.reshape(-1, self.vocabulary_size, rows).sum(0).T
            after = after * _possible(tokens[:, t], emission)
            after = onwards @ _normalised(after, first_row, t)
        return out


def _possible(seen: NDArray[np.int64], emission: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(nodes, rows): which nodes may have emitted the tokens (rows,); all of them where hidden."""
    return (emission[:, None] == seen) | (seen == HIDDEN)


def _normalised(weights: NDArray[np.float64], first_row: int, t: int) -> NDArray[np.float64]:
    """``weights`` (nodes, rows) with columns that sum to 1; ValueError where a column is all 0."""
    total = weights.sum(0)
    if not total.all():
        raise ValueError(
            f"the walk cannot produce row {first_row + int(np.argmin(total))}: its tokens up to or "
            f"from position {t} have probability 0 (hide replaced tokens with -1)"
        )
    return weights / total
