"""A tree-structured Markov random field whose conditional distributions are known exactly.

p(x) is proportional to the product, over the edges of a tree, of positive functions of the two
values at its ends. Positions that share no edge are independent given all the others, so exact
conditional mutual information is zero off the tree; see statement T3 in chapter 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

Tokens = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TreeField:
    """`positions` variables with `values` values each, linked by a tree.

    The log potential of each edge is a (values, values) table of independent normal draws times
    `strength`; at strength 0 all positions are independent and uniform. `tree` gives the edges;
    without it each position, in random order, is linked to a uniform one before it. `seed` fixes
    tree and potentials. Raises ValueError for fewer than two positions or values, a negative
    strength, or edges that are no tree over the positions.
    """

    positions: int
    values: int
    strength: float = 1.0
    seed: int = 0
    tree: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        if self.positions < 2 or self.values < 2:
            raise ValueError(
                f"positions and values must be at least 2, got {self.positions} and {self.values}"
            )
        if self.strength < 0:
            raise ValueError(f"strength must not be negative, got {self.strength}")
        if self.tree is not None and not _is_tree(self.tree, self.positions):
            raise ValueError(
                f"the edges {self.tree} are no tree over the positions 0..{self.positions - 1}: "
                f"it takes {self.positions - 1} edges that link all of them"
            )

    @cached_property
    def _drawn(self) -> tuple[NDArray[np.int64], Floats]:
        """Edges (positions - 1, 2) with i < j in order, and their log potentials."""
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(self.positions)
        links = [(order[k], order[rng.integers(k)]) for k in range(1, self.positions)]
        edges = np.sort(np.array(self.tree or links, dtype=np.int64), axis=1)
        edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
        shape = (len(edges), self.values, self.values)
        return edges, self.strength * rng.standard_normal(shape)

    @property
    def edges(self) -> NDArray[np.int64]:
        """(positions - 1, 2), each i < j, sorted."""
        return self._drawn[0].copy()

    @property
    def log_potentials(self) -> Floats:
        """(positions - 1, values, values): the table of each of `edges`, rows for its first end."""
        return self._drawn[1].copy()

    @cached_property
    def _links(self) -> list[dict[int, Floats]]:
        """For each position its neighbours with the log potential [own value, neighbour's]."""
        links: list[dict[int, Floats]] = [{} for _ in range(self.positions)]
        for (i, j), table in zip(*self._drawn, strict=True):
            links[i][int(j)], links[j][int(i)] = table, table.T
        return links

    @cached_property
    def _rooted(self) -> list[tuple[int, int]]:
        """(position, parent) from the root 0 outwards, parent -1 for the root."""
        order = [(0, -1)]
        for node, parent in order:
            order += [(other, node) for other in self._links[node] if other != parent]
        return order

    @cached_property
    def _log_normaliser(self) -> float:
        everything = np.zeros((1, self.positions, self.values))
        return float(self._inwards(everything)[1][0])

    def log_probability(self, tokens: Tokens) -> Floats:
        """log p(x) in nats of complete rows (B, positions): (B,)."""
        tokens = self._checked(tokens)
        edges, tables = self._drawn
        total = np.zeros(len(tokens))
        for (i, j), table in zip(edges, tables, strict=True):
            total += table[tokens[:, i], tokens[:, j]]
        return total - self._log_normaliser

    def sample(self, count: int, generator: np.random.Generator) -> Tokens:
        """(count, positions): independent exact draws, from the root outwards."""
        inward, _ = self._inwards(np.zeros((1, self.positions, self.values)))
        below = {node: sum(m[0] for m in messages.values()) for node, messages in inward.items()}
        tokens = np.empty((count, self.positions), dtype=np.int64)
        for node, parent in self._rooted:
            logits = np.zeros((count, self.values)) + below[node]
            if parent >= 0:
                logits = logits + self._links[parent][node][tokens[:, parent]]
            cumulative = np.exp(logits - logsumexp(logits, axis=1, keepdims=True)).cumsum(1)
            drawn = generator.random((count, 1)) * cumulative[:, -1:]
            tokens[:, node] = (cumulative <= drawn).sum(1)
        return tokens

    def conditional(self, tokens: Tokens, hidden: NDArray[np.bool_]) -> Floats:
        """p(x_t | every other position that is not hidden), exact: (B, positions, values).

        `tokens` and `hidden` have shape (B, positions); what stands at a hidden position is not
        looked at. At an observed position its own token is left out. Sum-product, in logarithms.
        Raises ValueError if the shapes differ or an observed token is outside 0..values - 1.
        """
        hidden = np.asarray(hidden)
        if hidden.dtype != np.bool_ or hidden.shape != np.shape(tokens):
            raise ValueError(
                f"hidden must be bool of shape {np.shape(tokens)}, got {hidden.dtype} of shape "
                f"{hidden.shape}"
            )
        tokens = self._checked(np.where(hidden, 0, tokens))
        possible = hidden[..., None] | (tokens[..., None] == np.arange(self.values))
        evidence = np.where(possible, 0.0, -np.inf)
        inward, _ = self._inwards(evidence)
        out = np.empty(evidence.shape)
        outward: dict[int, Floats] = {}
        for node, parent in self._rooted:
            arriving = dict(inward[node])
            if parent >= 0:
                arriving[parent] = outward[node]
            total = sum(arriving.values()) + np.zeros_like(out[:, node])
            out[:, node] = np.exp(total - logsumexp(total, axis=1, keepdims=True))
            for child in inward[node]:
                others = [message for name, message in arriving.items() if name != child]
                source = sum(others) + evidence[:, node]
                outward[child] = _through(source, self._links[node][child])
        return out

    def conditional_information(self, tokens: Tokens) -> Floats:
        """I(X_i; X_j | all other positions as in the row) in nats: (B, positions, positions).

        Symmetric, diagonal 0; exact up to rounding, for pairs off the tree as for those on it.
        """
        tokens = self._checked(tokens)
        out = np.zeros((len(tokens), self.positions, self.positions))
        for i in range(self.positions):
            for j in range(i):
                joint = np.exp(self._pair(tokens, i, j))
                product = joint.sum(2, keepdims=True) * joint.sum(1, keepdims=True)
                nats = (xlogy(joint, joint) - xlogy(joint, product)).sum((1, 2))
                out[:, i, j] = out[:, j, i] = nats
        return out

    def _pair(self, tokens: Tokens, i: int, j: int) -> Floats:
        """log p(x_i, x_j | all others): (B, values, values); only neighbours matter."""
        first, second = (
            sum(
                (table.T[tokens[:, k]] for k, table in self._links[a].items() if k != b),
                np.zeros((len(tokens), self.values)),
            )
            for a, b in ((i, j), (j, i))
        )
        log = first[:, :, None] + second[:, None, :] + self._links[i].get(j, 0.0)
        return log - logsumexp(log, axis=(1, 2), keepdims=True)

    def _inwards(self, evidence: Floats) -> tuple[dict[int, dict[int, Floats]], Floats]:
        """Messages towards the root, as {position: {child: (B, values)}}, and log p(evidence)
        without the normaliser, (B,). `evidence` (B, positions, values) is 0 or -inf."""
        inward: dict[int, dict[int, Floats]] = {node: {} for node, _ in self._rooted}
        for node, parent in reversed(self._rooted[1:]):
            source = sum(inward[node].values()) + evidence[:, node]
            inward[parent][node] = _through(source, self._links[node][parent])
        return inward, logsumexp(sum(inward[0].values()) + evidence[:, 0], axis=1)

    def _checked(self, tokens: Tokens) -> Tokens:
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or tokens.shape[1] != self.positions:
            raise ValueError(
                f"tokens must have shape (batch, {self.positions}), got {tokens.shape}"
            )
        if not np.issubdtype(tokens.dtype, np.integer):
            raise ValueError(f"tokens must be integers, got {tokens.dtype}")
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < self.values:
            raise ValueError(
                f"tokens run from {tokens.min()} to {tokens.max()}, allowed are 0 to "
                f"{self.values - 1}"
            )
        return tokens


def marginal_information(tokens: Tokens, values: int) -> Floats:
    """Plug-in mutual information in nats of each pair of columns: (n, n), diagonal 0.

    `tokens` (count, n) with values 0..values - 1. A maximum spanning tree over it is the maximum
    likelihood tree (Chow and Liu 1968). Raises ValueError for no rows.
    """
    if len(tokens) == 0:
        raise ValueError("mutual information needs at least one row of tokens")
    count, size = tokens.shape
    indicator = (tokens[..., None] == np.arange(values)).reshape(count, -1).astype(np.float64)
    joint = (indicator.T @ indicator / count).reshape(size, values, size, values)
    single = indicator.mean(0).reshape(size, values)
    product = single[:, :, None, None] * single[None, None]
    nats = (xlogy(joint, joint) - xlogy(joint, product)).sum((1, 3))
    np.fill_diagonal(nats, 0.0)
    return nats


def _through(source: Floats, table: Floats) -> Floats:
    """Message (B, values) over an edge: log sum over own values of exp(source + table)."""
    return logsumexp(source[:, :, None] + table, axis=1)


def _is_tree(edges: tuple[tuple[int, int], ...], positions: int) -> bool:
    if len(edges) != positions - 1 or any(len(edge) != 2 for edge in edges):
        return False
    group = list(range(positions))
    for i, j in edges:
        if not (0 <= i < positions and 0 <= j < positions) or group[i] == group[j]:
            return False
        old, new = group[i], group[j]
        group = [new if g == old else g for g in group]
    return True
