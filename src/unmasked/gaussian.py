"""Masked prediction in Gaussian graphical models, where its minimiser has a closed form.

X ~ N(0, S) with precision T = S^-1: variables i and j share an edge where T_ij is not zero. A
linear predictor guesses masked coordinates from the visible ones, with 0 standing where a
coordinate is masked. With one mask its coefficients are those of node-wise regression
(Meinshausen and Buhlmann 2006); with more masks they are shrunk, see `masked_regression`. The
statements are those that Zhang and Hashimoto 2021 allude to in their abstract, reconstructed here.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse.csgraph import shortest_path
from sklearn.covariance import GraphicalLassoCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score

Matrix = NDArray[np.float64]
Edges = NDArray[np.int64]
PENALTIES = tuple(np.geomspace(0.001, 0.5, 12).tolist())  # for variables of unit variance
SYMMETRY = 1e-8  # relative: what rounding may do to a symmetric matrix


@dataclass(frozen=True)
class MaskedRegression:
    """Coefficients (n, n): row i predicts variable i from the others, diagonal 0; and the mean
    squared error (n,) of each prediction."""

    coefficients: Matrix
    residual: Matrix


@dataclass(frozen=True)
class Recovery:
    """How well edge scores find a graph: each in 0..1, `f1` at the true number of edges."""

    average_precision: float
    f1: float
    roc_auc: float


def chain_edges(variables: int) -> Edges:
    """Each variable linked to the next: (variables - 1, 2)."""
    first = np.arange(variables - 1, dtype=np.int64)
    return np.stack([first, first + 1], axis=1)


def grid_edges(rows: int, columns: int) -> Edges:
    """Neighbours on a grid, variables numbered row by row: (edges, 2)."""
    number = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def random_edges(variables: int, count: int, generator: np.random.Generator) -> Edges:
    """`count` different pairs i < j, uniform: (count, 2). ValueError if there are not so many."""
    first, second = np.triu_indices(variables, 1)
    if not 1 <= count <= len(first):
        raise ValueError(f"{variables} variables have 1 to {len(first)} edges, not {count}")
    chosen = np.sort(generator.choice(len(first), count, replace=False))
    return np.stack([first[chosen], second[chosen]], axis=1).astype(np.int64)


def precision_on(
    edges: Edges, variables: int, strength: float, generator: np.random.Generator
) -> Matrix:
    """A precision matrix (variables, variables) with this support and a diagonal of ones.

    Identity minus a symmetric matrix with entries of random sign and size 0.5..1 at the edges,
    scaled to spectral radius `strength`: positive definite by construction, since the smallest
    eigenvalue is at least 1 - strength. ValueError for a strength outside (0, 1).
    """
    if not 0 < strength < 1:
        raise ValueError(f"strength must lie in (0, 1), got {strength}")
    links = np.zeros((variables, variables))
    sizes = generator.uniform(0.5, 1.0, len(edges)) * generator.choice([-1.0, 1.0], len(edges))
    links[edges[:, 0], edges[:, 1]] = sizes
    links += links.T
    return np.eye(variables) - strength / np.abs(linalg.eigvalsh(links)).max() * links


def covariance_of(precision: Matrix) -> Matrix:
    """The inverse (n, n) of a precision matrix; ValueError if it is none (see `sample`)."""
    precision = _checked(precision, "precision")
    return linalg.cho_solve(linalg.cho_factor(precision), np.eye(len(precision)))


def sample(precision: Matrix, count: int, generator: np.random.Generator) -> Matrix:
    """`count` independent draws (count, n) from N(0, precision^-1).

    Raises ValueError unless the precision matrix is symmetric and positive definite with at least
    two variables.
    """
    factor = linalg.cholesky(_checked(precision, "precision"))  # T = R' R, so R^-1 z ~ N(0, S)
    noise = generator.standard_normal((len(factor), count))
    return linalg.solve_triangular(factor, noise).T


def second_moments(samples: Matrix) -> Matrix:
    """Mean outer product (n, n) of the rows (count, n): the covariance where the mean is 0."""
    return samples.T @ samples / len(samples)


def one_mask_regression(precision: Matrix) -> MaskedRegression:
    """Statement T1: the one masked variable given all others, -T_ij / T_ii with error 1 / T_ii."""
    precision = _checked(precision, "precision")
    diagonal = np.diag(precision)
    coefficients = -precision / diagonal[:, None]
    np.fill_diagonal(coefficients, 0.0)
    return MaskedRegression(coefficients, 1 / diagonal)


def masked_regression(covariance: Matrix, keep: float = 1.0) -> MaskedRegression:
    """Statement T2: the best linear prediction of a masked variable from a masked input.

    Every other variable is kept with probability `keep`, independently, and replaced by 0
    otherwise. Row i without its diagonal is (q S_-i + (1 - q) D)^-1 S_-i,i with q = keep, S the
    covariance (n, n), population's or sample's, and D the diagonal of S_-i: T1 at q = 1. Raises
    ValueError for a keep outside (0, 1] and for a covariance that is not symmetric and, at q = 1,
    positive definite (fewer samples than variables: take keep < 1), or has a variance of 0.
    """
    if not 0 < keep <= 1:
        raise ValueError(f"keep, the share of visible variables, must lie in (0, 1], got {keep}")
    shrunk = keep * covariance + (1 - keep) * np.diag(np.diag(covariance))
    _checked(shrunk, "covariance" if keep == 1 else "shrunk covariance")
    size = len(covariance)
    coefficients, residual = np.zeros((size, size)), np.zeros(size)
    for i in range(size):
        others = np.delete(np.arange(size), i)
        cross = covariance[others, i]
        solved = linalg.solve(shrunk[np.ix_(others, others)], cross, assume_a="pos")
        coefficients[i, others] = solved
        residual[i] = covariance[i, i] - keep * solved @ cross
    return MaskedRegression(coefficients, residual)


def learned_regression(
    samples: Matrix,
    keep: float,
    generator: torch.Generator,
    *,
    steps: int = 2000,
    batch_size: int = 256,
    learning_rate: float = 0.02,
) -> Matrix:
    """The coefficients (n, n) that Adam finds by predicting masked coordinates of `samples`.

    Each step draws rows and masks afresh: every coordinate is masked with probability 1 - keep,
    or exactly one of each row if keep is 1, and the squared error is averaged over the masked
    ones. The learning rate falls linearly to 0. Deterministic in the generator.
    """
    data = torch.from_numpy(samples).float()
    weight = torch.zeros(data.shape[1], data.shape[1], requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=learning_rate)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - step / steps)
        rows = data[torch.randint(len(data), (batch_size,), generator=generator)]
        hidden = _hidden(rows.shape, keep, generator)
        guess = rows.masked_fill(hidden, 0.0) @ weight.T
        missed = (rows - guess).masked_fill(~hidden, 0.0)
        error = missed.square().sum() / hidden.sum().clamp(min=1)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    learned = weight.detach().double().numpy()
    np.fill_diagonal(learned, 0.0)  # never used: a masked coordinate's own input is 0
    return learned


def edge_scores(coefficients: Matrix) -> Matrix:
    """Symmetric scores (n, n) >= 0: the geometric mean of the sizes of both coefficients.

    For the coefficients of T1 these are the absolute partial correlations.
    """
    return np.sqrt(np.abs(coefficients * coefficients.T))


def correlation_scores(samples: Matrix) -> Matrix:
    """Absolute marginal correlations (n, n), diagonal 0: what a graph is not made of."""
    scores = np.abs(np.corrcoef(samples, rowvar=False))
    np.fill_diagonal(scores, 0.0)
    return scores


def graphical_lasso_scores(samples: Matrix, folds: int = 3) -> tuple[Matrix, float]:
    """Absolute partial correlations (n, n) of the graphical lasso, and its penalty.

    Columns are scaled to unit mean square first, since the penalty is not indifferent to scale;
    it is chosen among PENALTIES by cross-validation on these same samples (scikit-learn, whose own
    search can stop at a far too large penalty when a smaller one does not converge).
    """
    model = GraphicalLassoCV(cv=folds, alphas=PENALTIES, assume_centered=True)
    with warnings.catch_warnings():  # of penalties that are tried and not chosen
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        model.fit(samples / np.sqrt(np.mean(samples**2, axis=0)))
    found = one_mask_regression((model.precision_ + model.precision_.T) / 2)
    return edge_scores(found.coefficients), float(model.alpha_)


def recovery(scores: Matrix, edges: Edges) -> Recovery:
    """How well the scores (n, n) of all pairs find the edges.

    F1 takes as many of the highest scores as there are edges, and never a pair of score 0.
    Raises ValueError if no pair or every pair is an edge.
    """
    first, second = np.triu_indices(len(scores), 1)
    truth = _support(edges, len(scores))[first, second]
    if truth.all() or not truth.any():
        raise ValueError(f"{int(truth.sum())} of {len(truth)} pairs are edges: nothing to rank")
    ranked = scores[first, second]
    top = np.argsort(-ranked, kind="stable")[: truth.sum()]
    top = top[ranked[top] > 0]
    hits = int(truth[top].sum())
    return Recovery(
        float(average_precision_score(truth, ranked)),
        2 * hits / (len(top) + int(truth.sum())),
        float(roc_auc_score(truth, ranked)),
    )


def weight_by_distance(coefficients: Matrix, edges: Edges) -> dict[int, float]:
    """Mean edge score of the pairs at each distance in the graph, nearest first.

    Distance 1 are the edges; pairs that no path links are left out.
    """
    steps = shortest_path(_support(edges, len(coefficients)).astype(float), unweighted=True)
    scores = edge_scores(coefficients)
    upper = np.triu(np.isfinite(steps), 1)
    found = np.unique(steps[upper]).astype(int)
    return {int(d): float(scores[upper & (steps == d)].mean()) for d in found}


def _support(edges: Edges, size: int) -> NDArray[np.bool_]:
    support = np.zeros((size, size), dtype=bool)
    support[edges[:, 0], edges[:, 1]] = support[edges[:, 1], edges[:, 0]] = True
    return support


def _hidden(shape: torch.Size, keep: float, generator: torch.Generator) -> torch.Tensor:
    """Which coordinates of a batch are masked: (rows, n) bool."""
    if keep < 1:
        return torch.rand(shape, generator=generator) >= keep
    chosen = torch.randint(shape[1], (shape[0], 1), generator=generator)
    return torch.zeros(shape, dtype=torch.bool).scatter_(1, chosen, True)


def _checked(matrix: Matrix, name: str) -> Matrix:
    """The matrix; ValueError unless it is symmetric, positive definite and at least 2 x 2."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"the {name} must be square with two variables or more: {matrix.shape}")
    gap = np.abs(matrix - matrix.T).max()
    if not gap <= SYMMETRY * np.abs(matrix).max():  # so that NaN is refused as well
        raise ValueError(f"the {name} is not symmetric: it differs from its transpose by {gap:.3g}")
    smallest = float(linalg.eigvalsh(matrix, subset_by_index=[0, 0])[0])
    if smallest <= len(matrix) * math.ulp(1.0) * np.abs(matrix).max():
        raise ValueError(
            f"the {name} is not positive definite: its smallest eigenvalue is {smallest:.3g}"
            + (" (more samples than variables are needed, or keep < 1)" if name != "precision"
               else "")
        )  # fmt: skip
    return matrix
