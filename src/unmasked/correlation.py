"""Do two measurements on the same pairs go together? Correlations whose pairs come in clusters.

Several pairs come from one sentence and are no independent evidence, so intervals resample
sentences, and the power of a design is simulated with the same clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr
from scipy.stats import rankdata

RESAMPLES = 2_000
LEVEL = 0.95
ROUNDING = 1e-12
METHODS = ("pearson", "spearman")


@dataclass(frozen=True)
class Correlation:
    """A coefficient with its 95 % interval, over `pairs` pairs of `clusters` sentences."""

    value: float
    low: float
    high: float
    pairs: int
    clusters: int


def total_variation(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """(N,) half the L1 distance of distributions (N, C): 0 where equal, 1 where disjoint.

    Raises ValueError for unequal shapes and for rows that are no distributions; so do the others.
    """
    p, q = _distributions(p, q)
    return np.abs(p - q).sum(1) / 2


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """(N,) Jensen-Shannon divergence in nats, 0 to log 2 (scipy's function is its square root)."""
    p, q = _distributions(p, q)
    return jensenshannon(p, q, axis=1) ** 2


def kullback_leibler(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """(N,) KL(p || q) in nats; infinite where q has no mass and p has."""
    p, q = _distributions(p, q)
    return rel_entr(p, q).sum(1)


def clustered_correlation(
    x: ArrayLike,
    y: ArrayLike,
    clusters: ArrayLike,
    generator: np.random.Generator,
    method: str = "pearson",
) -> Correlation:
    """Correlation of x and y, (N,) each, with a bootstrap interval over clusters (N,).

    Spearman's coefficient is Pearson's of the ranks, which are taken once, over all pairs. Samples
    in which x or y is constant do not count. Raises ValueError for fewer than two clusters, values
    that are not finite, unequal shapes, a constant x or y, and another method.
    """
    if method not in METHODS:
        raise ValueError(f"method {method!r}; known are {', '.join(METHODS)}")
    x, y, names = np.asarray(x, float), np.asarray(y, float), np.asarray(clusters)
    if x.ndim != 1 or x.shape != y.shape or x.shape != names.shape:
        raise ValueError(f"x, y and clusters must be (N,), got {x.shape}, {y.shape}, {names.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("x and y must be finite")
    found, place = np.unique(names, return_inverse=True)
    if len(found) < 2:
        raise ValueError(f"pairs of {len(found)} cluster have no interval; two or more are needed")
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("x or y is constant: nothing can go together with it")
    if method == "spearman":
        x, y = rankdata(x), rankdata(y)
    sums = _sums(x - x.mean(), y - y.mean(), place, len(found))
    counts = generator.multinomial(len(found), np.full(len(found), 1 / len(found)), RESAMPLES)
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(_coefficients(counts @ sums), [tail, 1 - tail])
    value = _coefficients(sums.sum(0, keepdims=True))[0]
    return Correlation(float(value), float(low), float(high), len(x), len(found))


def detectable_correlation(
    clusters: int,
    pairs: int,
    within: float,
    generator: np.random.Generator,
    *,
    power: float = 0.8,
    draws: int = 200,
) -> float:
    """The smallest correlation, to 0.01, whose interval excludes 0 in a share `power` of samples.

    Normal x and y with `pairs` pairs in each of `clusters` clusters; a share `within` of either
    variance is common to a cluster. Found by bisection over simulated samples. Raises ValueError
    for fewer than two clusters, no pairs, or a share outside [0, 1). 1 if even 0.99 is missed.
    """
    if clusters < 2 or pairs < 1 or not 0 <= within < 1:
        raise ValueError(
            f"two clusters, one pair and a share in [0, 1) are needed, got {clusters}, {pairs}, "
            f"{within}"
        )
    common, own = generator.standard_normal((2, 2, draws, clusters, pairs))
    common[...] = common[..., :1]
    noise = np.sqrt(within) * common + np.sqrt(1 - within) * own  # (2, draws, clusters, pairs)
    resampled = generator.multinomial(clusters, np.full(clusters, 1 / clusters), RESAMPLES // 4)
    place = np.repeat(np.arange(clusters), pairs)

    def found(rho: float) -> float:
        hits = 0
        for first, second in zip(*noise, strict=True):
            x, y = first.ravel(), (rho * first + np.sqrt(1 - rho**2) * second).ravel()
            drawn = _coefficients(resampled @ _sums(x, y, place, clusters))
            hits += np.quantile(drawn, (1 - LEVEL) / 2) > 0
        return hits / draws

    low, high = 0, 99
    if found(high / 100) < power:
        return 1.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle / 100) >= power else (middle, high)
    return high / 100


def _sums(
    x: NDArray[np.float64], y: NDArray[np.float64], place: NDArray[np.int64], clusters: int
) -> NDArray[np.float64]:
    """(clusters, 6): number and sums of x, y, x², y² and xy of each cluster."""
    parts = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([np.bincount(place, part, clusters) for part in parts], axis=1)


def _coefficients(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R,) Pearson's coefficient from sums (R, 6); NaN where a sample is as good as constant."""
    n, x, y, xx, yy, xy = sums.T
    first, second = n * xx - x**2, n * yy - y**2  # n² times the variances
    varies = (first > ROUNDING * n * xx) & (second > ROUNDING * n * yy)
    scale = np.sqrt(np.where(varies, first * second, np.nan))
    return np.clip((n * xy - x * y) / scale, -1, 1)


def _distributions(p: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p, q = np.asarray(p, float), np.asarray(q, float)
    if p.ndim != 2 or p.shape != q.shape:
        raise ValueError(f"two arrays (N, C) are needed, got {p.shape} and {q.shape}")
    for rows in (p, q):
        if not (np.isfinite(rows).all() and (rows >= 0).all()):
            raise ValueError("probabilities must be finite and not negative")
        if not np.allclose(rows.sum(1), 1, atol=1e-3):
            raise ValueError("rows must sum to 1; apply a softmax to logits")
    return p, q
