"""Chapter 2 on Gaussian graphs: masked prediction in closed form, learned, and as a graph finder.

Statements T1 and T2 are checked against the precision matrix and against all masks one by one;
then the coefficients rank pairs of variables, from few and from many samples, at several masking
rates, beside the graphical lasso (penalty by cross-validation on the same samples) and marginal
correlation, the negative control.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from scipy import linalg

from unmasked import gaussian

Row = Mapping[str, object]
Rate = Annotated[float, Field(ge=0, lt=1)]
Graph = Literal["random", "chain", "grid"]
ENUMERATED = 8  # variables of the small graph on which every mask is tried: 128 masks a variable
SHARE = "share"
COEFFICIENT = "coefficient"


class GraphsConfig(BaseModel):
    """Graphs, how strong, and what is tried on them.

    `rows` times `columns` variables; `edges` of the random graph. A masking rate is the share of
    the other variables that is hidden beside the predicted one; 0 is one mask.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    graphs: Annotated[tuple[Graph, ...], Field(min_length=1)]
    rows: Annotated[int, Field(ge=2)] = 5
    columns: Annotated[int, Field(ge=2)] = 6
    edges: Annotated[int, Field(ge=1)] = 45
    strength: Annotated[float, Field(gt=0, lt=1)] = 0.98
    masking_rates: Annotated[tuple[Rate, ...], Field(min_length=1)]
    samples: Annotated[tuple[Annotated[int, Field(ge=5)], ...], Field(min_length=1)]
    learned_rates: tuple[Rate, ...]
    learned_samples: Annotated[int, Field(ge=5)]
    steps: Annotated[int, Field(ge=1)]
    batch_size: Annotated[int, Field(ge=1)] = 256

    @property
    def variables(self) -> int:
        """Number of variables of each graph."""
        return self.rows * self.columns


def compute_graphs(config: GraphsConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Errors of T1 and T2, distance of the learned minimiser, leak, and graph recovery."""
    yield from _statement_rows(config, seed)
    for graph in config.graphs:
        generator = np.random.default_rng([seed, len(graph)])
        edges = edges_of(config, graph, generator)
        precision = gaussian.precision_on(edges, config.variables, config.strength, generator)
        yield from _population_rows(config, graph, edges, precision)
        yield from _learned_rows(config, graph, precision, seed, generator)
        for count in config.samples:
            samples = gaussian.sample(precision, count, generator)
            yield from _recovery_rows(config, graph, edges, samples)


def edges_of(config: GraphsConfig, graph: Graph, generator: np.random.Generator) -> gaussian.Edges:
    """The edges (k, 2) of a named graph; only the random one draws."""
    if graph == "chain":
        return gaussian.chain_edges(config.variables)
    if graph == "grid":
        return gaussian.grid_edges(config.rows, config.columns)
    return gaussian.random_edges(config.variables, config.edges, generator)


def enumerated_coefficients(covariance: gaussian.Matrix, target: int, keep: float) -> np.ndarray:
    """The best coefficients (n - 1,) for one target, from the normal equations of every mask.

    Each of the 2^(n - 1) masks of the other variables enters with its probability.
    """
    others = np.delete(np.arange(len(covariance)), target)
    left, right = np.zeros((len(others), len(others))), np.zeros(len(others))
    for mask in itertools.product((0.0, 1.0), repeat=len(others)):
        seen = np.array(mask)
        kept = seen.sum()
        weight = keep**kept * (1 - keep) ** (len(others) - kept)
        left += weight * np.outer(seen, seen) * covariance[np.ix_(others, others)]
        right += weight * seen * covariance[others, target]
    return linalg.solve(left, right, assume_a="pos")


def _statement_rows(config: GraphsConfig, seed: int) -> Iterator[Row]:
    """Largest errors of both closed forms on a small graph with unequal variances."""
    generator = np.random.default_rng([seed, 0])
    edges = gaussian.random_edges(ENUMERATED, ENUMERATED + 2, generator)
    scale = np.diag(generator.uniform(0.5, 2.0, ENUMERATED))
    precision = gaussian.precision_on(edges, ENUMERATED, config.strength, generator)
    precision = scale @ precision @ scale
    covariance = linalg.inv(precision)
    exact, solved = gaussian.one_mask_regression(precision), gaussian.masked_regression(covariance)
    pairs = ENUMERATED * (ENUMERATED - 1)
    error = np.abs(solved.coefficients - exact.coefficients).max()
    yield _row("t1_error", error, COEFFICIENT, pairs, graph="small", masking=0.0)
    error = np.abs(solved.residual - exact.residual).max()
    yield _row("t1_residual_error", error, "variance", ENUMERATED, graph="small", masking=0.0)
    for rate in config.masking_rates:
        found = gaussian.masked_regression(covariance, 1 - rate).coefficients
        error = max(
            np.abs(np.delete(found[i], i) - enumerated_coefficients(covariance, i, 1 - rate)).max()
            for i in range(ENUMERATED)
        )
        yield _row("t2_error", error, COEFFICIENT, pairs, graph="small", masking=rate)


def _population_rows(
    config: GraphsConfig, graph: Graph, edges: gaussian.Edges, precision: gaussian.Matrix
) -> Iterator[Row]:
    """What unlimited data would give: recovery, error, and the weight at each distance."""
    covariance = gaussian.covariance_of(precision)
    for rate in config.masking_rates:
        found = gaussian.masked_regression(covariance, 1 - rate)
        where = {"graph": graph, "method": "masked", "masking": rate}
        yield from _scored(gaussian.edge_scores(found.coefficients), edges, where)
        residual = float(found.residual.mean())
        yield _row("residual", residual, "variance", config.variables, **where)
        weights = gaussian.weight_by_distance(found.coefficients, edges)
        for distance in (1, 2, 3):
            if distance in weights:
                yield _row("weight", weights[distance], COEFFICIENT, config.variables,
                           **where, distance=distance)  # fmt: skip
    correlation = np.abs(covariance / np.sqrt(np.outer(*[np.diag(covariance)] * 2)))
    np.fill_diagonal(correlation, 0.0)
    yield from _scored(correlation, edges, {"graph": graph, "method": "correlation"})


def _learned_rows(
    config: GraphsConfig,
    graph: Graph,
    precision: gaussian.Matrix,
    seed: int,
    generator: np.random.Generator,
) -> Iterator[Row]:
    """Relative distance of coefficients learned by gradient from the closed form on those samples.

    Beside it the distance of the closed form on the samples from that of the population.
    """
    samples = gaussian.sample(precision, config.learned_samples, generator)
    moments, covariance = gaussian.second_moments(samples), gaussian.covariance_of(precision)
    for rate in config.learned_rates:
        closed = gaussian.masked_regression(moments, 1 - rate).coefficients
        population = gaussian.masked_regression(covariance, 1 - rate).coefficients
        learned = gaussian.learned_regression(
            samples, 1 - rate, torch.Generator().manual_seed(seed), steps=config.steps,
            batch_size=config.batch_size,
        )  # fmt: skip
        where = {"graph": graph, "method": "gradient", "masking": rate, "samples": len(samples)}
        for metric, distance in (
            ("learned_distance", linalg.norm(learned - closed) / linalg.norm(closed)),
            ("sampling_distance", linalg.norm(closed - population) / linalg.norm(population)),
        ):
            yield _row(metric, distance, "ratio", config.steps, **where)


def _recovery_rows(
    config: GraphsConfig, graph: Graph, edges: gaussian.Edges, samples: gaussian.Matrix
) -> Iterator[Row]:
    """Recovery of one graph from one sample by all methods."""
    moments = gaussian.second_moments(samples)
    where = {"graph": graph, "samples": len(samples)}
    for rate in config.masking_rates:
        if rate or len(samples) > config.variables:
            coefficients = gaussian.masked_regression(moments, 1 - rate).coefficients
            masked = {**where, "method": "masked", "masking": rate}
            yield from _scored(gaussian.edge_scores(coefficients), edges, masked)
    scores, penalty = gaussian.graphical_lasso_scores(samples)
    lasso = {**where, "method": "graphical lasso"}
    yield from _scored(scores, edges, lasso)
    yield _row("penalty", penalty, COEFFICIENT, len(samples), **lasso)
    marginal = gaussian.correlation_scores(samples)
    yield from _scored(marginal, edges, {**where, "method": "correlation"})


def _scored(
    scores: gaussian.Matrix, edges: gaussian.Edges, where: Mapping[str, object]
) -> Iterator[Row]:
    found = gaussian.recovery(scores, edges)
    for metric in ("average_precision", "f1", "roc_auc"):
        yield _row(metric, getattr(found, metric), SHARE, len(edges), **where)


def _row(metric: str, value: float, unit: str, n: int, **conditions: object) -> Row:
    """One result row; `samples` is None for the population, `masking` where nothing is masked."""
    known = {"graph": None, "method": "masked", "masking": None, "samples": None, "distance": None}
    return {**known, **conditions, "metric": metric, "value": float(value), "unit": unit, "n": n}
