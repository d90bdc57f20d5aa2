"""Trees from a matrix of weights between words, and how well they match gold trees.

Zhang and Hashimoto 2021, section 5.2: a maximum spanning tree over pairwise weights, scored by
unlabelled undirected attachment (UUAS). Edges are int64 (k, 2) with i < j, words numbered from 0.
Every tree is over the words that `counted` (bool, (n,); all by default) marks; fewer than two of
them give no edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from unmasked.intervals import RESAMPLES, Interval
from unmasked.treebanks import (
    ParsedSentence,
    at_most,
    from_rows,
    gold_edges,
    gold_relations,
    read_conllu,
    read_conllx,
)

__all__ = [
    "ParsedSentence", "adjacent_chain", "at_most", "difference_interval", "from_rows", "gold_edges",
    "gold_relations", "log_odds_ratio", "maximum_spanning_tree", "projective_tree", "random_tree",
    "read_conllu", "read_conllx", "recall_by_distance", "relation_table", "uuas", "uuas_interval",
]  # fmt: skip

ADJACENT_BONUS = 1e-4
"""What the released code adds to the weight of neighbouring words, to break ties."""
TWO_SIDED_95 = 1.959964  # of the standard normal distribution

Edges = Sequence[np.ndarray]


def maximum_spanning_tree(
    weights: np.ndarray, counted: np.ndarray | None = None, adjacent_bonus: float = ADJACENT_BONUS
) -> np.ndarray:
    """The spanning tree of largest total weight over the counted words.

    `weights` is (n, n); of the two directions of a pair the larger wins, as in the released code,
    and the diagonal does not matter. `adjacent_bonus` is added to each pair (i, i + 1) first; where
    the weights themselves are of its size, it decides the tree. Equal weights are broken by
    scipy's order, so compare total weights, not edges. Raises ValueError for a matrix that is not
    square and finite, or a `counted` of another length.
    """
    kept, weights = _counted_weights(weights, counted, adjacent_bonus)
    if len(kept) < 2:
        return _edges([])
    # Only the order matters. Ranks are exact, and positive: scipy reads 0 as "no edge".
    values, rank = np.unique(weights, return_inverse=True)
    costs = np.triu(len(values) - rank.reshape(weights.shape), k=1)
    tree = minimum_spanning_tree(csr_array(costs)).tocoo()
    return _edges(zip(kept[tree.row], kept[tree.col], strict=True))


def projective_tree(
    weights: np.ndarray, counted: np.ndarray | None = None, adjacent_bonus: float = ADJACENT_BONUS
) -> np.ndarray:
    """The tree of largest total weight among those without crossing edges (Eisner 1996).

    Arguments and errors as in `maximum_spanning_tree`. Edges have no direction here, and a tree
    without crossings is projective if it is rooted at its first word; so one head direction of
    Eisner's algorithm is enough. Time grows with n ** 3.
    """
    kept, weights = _counted_weights(weights, counted, adjacent_bonus)
    n = len(kept)
    best = np.zeros((n, n))  # [i, j]: the best tree over words i to j
    linked = np.zeros((n, n))  # the same among trees with the edge (i, j)
    split = np.zeros((n, n), dtype=np.int64)  # last word on i's side once that edge is cut
    farthest = np.zeros((n, n), dtype=np.int64)  # the farthest neighbour of i in best[i, j]
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            cut = best[i, i:j] + best[i + 1 : j + 1, j]
            split[i, j] = i + int(cut.argmax())
            linked[i, j] = weights[i, j] + cut.max()
            joined = linked[i, i + 1 : j + 1] + best[i + 1 : j + 1, j]
            farthest[i, j] = i + 1 + int(joined.argmax())
            best[i, j] = joined.max()
    found, waiting = [], [(0, n - 1)]
    while waiting:
        i, j = waiting.pop()
        if i < j:
            k = farthest[i, j]
            found.append((kept[i], kept[k]))
            waiting += [(i, split[i, k]), (split[i, k] + 1, k), (k, j)]
    return _edges(found)


def adjacent_chain(n: int, counted: np.ndarray | None = None) -> np.ndarray:
    """Each counted word linked to the next one: the baseline that knows no word."""
    kept = _kept(n, counted)
    return _edges(pairwise(kept))


def random_tree(
    n: int, generator: np.random.Generator, counted: np.ndarray | None = None
) -> np.ndarray:
    """A tree drawn uniformly from all trees over the counted words (Aldous-Broder walk).

    Every pair of the m counted words is an edge with probability 2 / m.
    """
    kept = _kept(n, counted)
    found, reached = [], {0}
    at = 0
    while len(reached) < len(kept):
        to = int(generator.integers(len(kept)))
        if to not in reached:
            found.append((kept[at], kept[to]))
            reached.add(to)
        at = to
    return _edges(found)


def uuas(predicted: Edges, gold: Edges) -> float:
    """Share of the gold edges that are predicted, 0 to 100, over all sentences together.

    Both are one array of edges a sentence. Raises ValueError for unequal numbers of sentences and
    where there is no gold edge at all.
    """
    hits, edges = _hits(predicted, gold)
    return float(100.0 * hits.sum() / edges.sum())


def uuas_interval(predicted: Edges, gold: Edges, generator: np.random.Generator) -> Interval:
    """UUAS with the ends of its 95 % percentile bootstrap interval; sentences are resampled.

    Each resample recomputes the ratio of sums. `count` is the number of sentences; with fewer than
    two that hold a gold edge the ends are NaN. Errors as in `uuas`.
    """
    hits, edges = _hits(predicted, gold)
    return _ratio_interval(hits, edges, generator)


def difference_interval(
    predicted: Edges, other: Edges, gold: Edges, generator: np.random.Generator
) -> Interval:
    """UUAS of `predicted` minus that of `other` with a 95 % bootstrap interval, paired.

    Resampled are sentences, each with both of its trees. Errors as in `uuas`.
    """
    hits, edges = _hits(predicted, gold)
    return _ratio_interval(hits - _hits(other, gold)[0], edges, generator)


def recall_by_distance(predicted: Edges, gold: Edges, longest: int = 8) -> pd.DataFrame:
    """Columns distance, gold, correct, predicted: numbers of edges by distance in words.

    Distance j - i counts every word of the sentence; `longest` stands for itself and above.
    """
    _hits(predicted, gold)
    counts = np.zeros((3, longest + 1), dtype=np.int64)
    for tree, truth in zip(predicted, gold, strict=True):
        right = np.array(sorted(_pairs(tree) & _pairs(truth)), dtype=np.int64).reshape(-1, 2)
        for number, edges in enumerate((truth, right, tree)):
            distance = np.minimum(edges[:, 1] - edges[:, 0], longest)
            counts[number] += np.bincount(distance, minlength=longest + 1)
    table = dict(zip(("gold", "correct", "predicted"), counts[:, 1:], strict=True))
    return pd.DataFrame({"distance": range(1, longest + 1), **table})


def relation_table(
    predicted: Edges, chain: Edges, sentences: Sequence[ParsedSentence]
) -> pd.DataFrame:
    """One line a relation: gold edges, and how many of them each of two sets of trees has.

    Columns relation, gold, correct, chain (numbers of edges), log_odds_ratio of being found by
    `predicted` against `chain`, and the ends low and high of its 95 % Wald interval; sorted by the
    difference in shares, as the released code prints it. Where one of the four numbers is 0, half
    an edge is added to each (Haldane's correction). The two sets are treated as independent,
    although they are scored on the same edges: the interval is wider than a paired one.
    """
    counts: dict[str, np.ndarray] = {}
    for tree, other, sentence in zip(predicted, chain, sentences, strict=True):
        ours, theirs = _pairs(tree), _pairs(other)
        pairs = map(tuple, gold_edges(sentence).tolist())
        for pair, relation in zip(pairs, gold_relations(sentence), strict=True):
            line = counts.setdefault(relation, np.zeros(3, dtype=np.int64))
            line += (1, pair in ours, pair in theirs)
    lines = [(name, *map(int, c), *log_odds_ratio(*c)) for name, c in counts.items()]
    columns = ["relation", "gold", "correct", "chain", "log_odds_ratio", "low", "high"]
    table = pd.DataFrame(lines, columns=columns)
    gain = (table["correct"] - table["chain"]) / table["gold"]
    order = gain.sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)


def log_odds_ratio(gold: int, correct: int, chain: int) -> tuple[float, float, float]:
    """Log odds ratio of `correct` against `chain` found of `gold` edges, and its 95 % ends.

    Where one of the four numbers is 0, half an edge is added to each (Haldane's correction).
    """
    cells = np.array([correct, gold - correct, chain, gold - chain], dtype=np.float64)
    cells += 0.5 * (cells == 0).any()
    ratio = np.log(cells[0] * cells[3] / (cells[1] * cells[2]))
    half = TWO_SIDED_95 * np.sqrt((1.0 / cells).sum())
    return float(ratio), float(ratio - half), float(ratio + half)


def _ratio_interval(
    numerators: np.ndarray, denominators: np.ndarray, generator: np.random.Generator
) -> Interval:
    """100 x the ratio of two sums over sentences, those without a gold edge left out."""
    mean, count = float(100.0 * numerators.sum() / denominators.sum()), len(denominators)
    held = denominators > 0
    numerators, denominators = numerators[held], denominators[held]
    if len(denominators) < 2:
        return Interval(mean, float("nan"), float("nan"), count)
    drawn = generator.integers(len(denominators), size=(RESAMPLES, len(denominators)))
    ratios = 100.0 * numerators[drawn].sum(axis=1) / denominators[drawn].sum(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Interval(mean, float(low), float(high), count)


def _hits(predicted: Edges, gold: Edges) -> tuple[np.ndarray, np.ndarray]:
    """Gold edges found and gold edges, int64 (sentences,) each."""
    if len(predicted) != len(gold):
        raise ValueError(f"{len(predicted)} predicted trees for {len(gold)} gold ones")
    if not any(len(edges) for edges in gold):
        raise ValueError("There is no gold edge to score; every sentence has too few words.")
    hits = [len(_pairs(a) & _pairs(b)) for a, b in zip(predicted, gold, strict=True)]
    return np.array(hits, dtype=np.int64), np.array([len(edges) for edges in gold])


def _pairs(edges: np.ndarray) -> set[tuple[int, int]]:
    return set(map(tuple, np.asarray(edges).tolist()))


def _counted_weights(
    weights: np.ndarray, counted: np.ndarray | None, bonus: float
) -> tuple[np.ndarray, np.ndarray]:
    """The counted words and their symmetric weights, the larger direction, bonus included."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"weights have shape {weights.shape}; a square matrix is needed")
    if not np.isfinite(weights).all():
        raise ValueError("weights hold NaN or infinity; a tree needs finite ones")
    kept = _kept(len(weights), counted)
    both = np.maximum(weights, weights.T)
    near = np.eye(len(weights), k=1) + np.eye(len(weights), k=-1)
    return kept, (both + bonus * near)[np.ix_(kept, kept)]


def _kept(n: int, counted: np.ndarray | None) -> np.ndarray:
    mask = np.ones(n, dtype=bool) if counted is None else np.asarray(counted, dtype=bool)
    if mask.shape != (n,):
        raise ValueError(
            f"counted has shape {mask.shape}, expected one entry for each of {n} words"
        )
    return np.flatnonzero(mask)


def _edges(pairs) -> np.ndarray:
    """Pairs as sorted edges (k, 2) with i < j."""
    found = np.array(sorted((min(p), max(p)) for p in pairs), dtype=np.int64)
    return found.reshape(-1, 2)
