"""Estimators of the conditional mutual information of a pair of positions, and two relatives.

With every token but those at i and j observed, `A[b]` is the prediction at i given value b at j,
`B[a]` that at j given a at i, and `q` the predictions with both masked. The official estimand
(Zhang and Hashimoto 2021, section 5.2 and their code) lets the two predictions alternate: with
rho_j the stationary law of b -> a -> b' and rho_i = rho_j A,

    I_i = sum_b rho_j(b) KL(A[b] || rho_i),

and I_j likewise; they differ unless the predictions come from one joint law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from unmasked.mi_rows import MEMO_BYTES, Pair, Read, Reader

BLOCK_BYTES = 128 * 2**20
"""Distributions held at a time, in bytes: pairs are worked on in blocks of that size."""

DISTINCT_VALUES = 250  # values that a chain of two thousand steps visits, as a rule
EXACT_SWEEPS, TOLERANCE = 100_000, 1e-10


@dataclass(frozen=True)
class Settings:
    """What the estimators can be told; see `mi.conditional_mutual_information`."""

    estimator: str
    head: int
    tail: int
    sweeps: int
    steps: int
    burn_in: float
    window: int | None


@dataclass(frozen=True)
class PairInformation:
    """Nats from i's and from j's side, and the mass of the conditioning values of each."""

    sides: tuple[float, float]
    captured: tuple[float, float] = (math.nan, math.nan)


# --- alternating weights on a support ------------------------------------------------------------


@dataclass(frozen=True)
class Support:
    """Values of one position whose rows are computed, (K,) int64, all different.

    The first `sure` are the likeliest under the prediction with both masked; the others are drawn
    from the rest, each with a probability of inclusion in proportion to its probability `q` (K,).
    """

    values: Tensor
    sure: int
    q: Tensor

    @classmethod
    def of(cls, q: Tensor, head: int, tail: int, generator: torch.Generator) -> Support:
        """The `head` likeliest of q (V,) and `tail` draws from the rest, none of them twice.

        Draws are systematic: equally spaced on the ladder of the sorted probabilities. A value so
        likely that the draws hold it for certain counts as head. With head + tail >= V all do.
        """
        q, order = q.double().sort(descending=True)
        left = q.flip(0).cumsum(0).flip(0)  # left[k]: mass of the values from the k-th on
        sure = min(head, len(q))
        while tail and sure < len(q) and q[sure] * tail >= left[sure]:
            sure, tail = sure + 1, tail - 1
        chosen = torch.arange(sure, device=q.device)
        if tail and sure < len(q):
            ladder = q[sure:].cumsum(0) * (tail / left[sure])
            places = torch.arange(tail) + torch.rand(1, generator=generator)
            drawn = torch.searchsorted(ladder, places.to(ladder), right=True)
            chosen = torch.cat([chosen, sure + drawn.clamp_max(len(ladder) - 1)])
        return cls(order[chosen], sure, q[chosen])

    def weights(self, at: Tensor) -> Tensor:
        """Weights (K,) of the values under a law that has probabilities `at` (K,) there: the sure
        ones have those, the drawn ones share the rest by self-normalised importance weights."""
        ratio = at[self.sure :] / self.q[self.sure :]
        left = (1 - at[: self.sure].sum()).clamp_min(0)
        drawn = ratio * (left / ratio.sum()) if ratio.sum() > 0 else ratio
        weights = torch.cat([at[: self.sure], drawn])
        return weights / weights.sum()


def head_tail(reader: Reader, pairs: Sequence[Pair], settings: Settings) -> list[PairInformation]:
    """Head and tail values of each position, their whole rows, and alternating weights."""
    q = reader.both_masked(pairs).exp_()
    supports = [
        [Support.of(law, settings.head, settings.tail, pair.generator) for law in laws]
        for laws, pair in zip(q, pairs, strict=True)
    ]
    rows_i, rows_j = (
        reader.given(pairs, side, [s[1 - side].values for s in supports]).split(
            [len(s[1 - side].values) for s in supports]
        )
        for side in (0, 1)
    )
    return [
        _alternate(*work, settings.sweeps) for work in zip(rows_i, rows_j, supports, strict=True)
    ]


def exact(reader: Reader, pairs: Sequence[Pair], settings: Settings) -> list[PairInformation]:
    """Every value of each position, and the stationary law to machine precision."""
    q = reader.both_masked(pairs).exp_()
    everything = torch.arange(reader.size, device=q.device)
    result = []
    for pair, laws in zip(pairs, q, strict=True):
        read = [reader.given([pair], side, [everything]) for side in (0, 1)]
        supports = [Support(everything, reader.size, law.double()) for law in laws]
        result.append(_alternate(*read, supports, EXACT_SWEEPS))
    return result


def _alternate(at_i: Read, at_j: Read, supports: Sequence[Support], sweeps: int) -> PairInformation:
    """Weights by turns until they stay, then both generalised Jensen-Shannon divergences.

    `at_i` holds rows A[b] for the values of `supports[1]`, `at_j` rows B[a] for `supports[0]`.
    The turns need the rows at the supports alone, so a turn costs next to nothing.
    """
    support_i, support_j = supports
    inner_i = at_i.p[:, support_i.values].double()
    inner_j = at_j.p[:, support_j.values].double()
    weights_j = support_j.weights(support_j.q)
    for _ in range(sweeps):
        weights_i = support_i.weights(weights_j @ inner_i)
        before, weights_j = weights_j, support_j.weights(weights_i @ inner_j)
        if (weights_j - before).abs().sum() < TOLERANCE:
            break
    captured = (weights_i @ inner_j).sum(), (weights_j @ inner_i).sum()
    return PairInformation(
        (_divergence(weights_j, at_i), _divergence(weights_i, at_j)),
        (float(captured[0]), float(captured[1])),
    )


def _divergence(weights: Tensor, read: Read) -> float:
    """Generalised Jensen-Shannon divergence, nats: entropy of the mixture less mean entropy."""
    mixture = (weights.to(read.p.dtype) @ read.p).double()
    return float(torch.special.entr(mixture).sum() - weights @ read.entropies)


# --- the official chain --------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """What a pair's chain left behind after its burn-in of N kept steps, for i (0) and j (1):
    `mean` (2, V), the mean prediction; `drawn` (N, 2); `log_p` and `entropies` (N, 2), of the
    draws and of the predictions they came from."""

    mean: Tensor
    drawn: Tensor
    log_p: Tensor
    entropies: Tensor

    @property
    def captured(self) -> tuple[float, float]:
        """Mass, under the mean prediction, of the values of j and of i that were visited."""
        mass = [float(self.mean[s, self.drawn[:, s].unique()].sum()) for s in (1, 0)]
        return mass[0], mass[1]


def gibbs(reader: Reader, pairs: Sequence[Pair], settings: Settings) -> list[PairInformation]:
    """The official plug-in: log-probability of each draw less that under the mean prediction."""
    result = []
    for chain in _chains(reader, pairs, settings):
        marginal = chain.mean.gather(1, chain.drawn.T).log().T
        sides = (chain.log_p - marginal).mean(0)
        result.append(PairInformation((float(sides[0]), float(sides[1])), chain.captured))
    return result


def gibbs_rb(reader: Reader, pairs: Sequence[Pair], settings: Settings) -> list[PairInformation]:
    """The same chain, whole rows: mean divergence of the predictions from their mean."""
    result = []
    for chain in _chains(reader, pairs, settings):
        sides = torch.special.entr(chain.mean).sum(-1) - chain.entropies.mean(0)
        result.append(PairInformation((float(sides[0]), float(sides[1])), chain.captured))
    return result


def _chains(reader: Reader, pairs: Sequence[Pair], settings: Settings) -> list[Chain]:
    """One chain a pair, in step: draw at i given j, then at j given i, from both masked."""
    steps, burn_in = settings.steps, int(settings.burn_in * settings.steps)
    uniform = torch.stack([torch.rand(steps, 2, generator=pair.generator) for pair in pairs])
    uniform = uniform.to(reader.device, torch.float64)
    start = reader.both_masked(pairs)[:, 0].exp()
    read = Read(start, torch.special.entr(start).sum(-1, dtype=torch.float64))
    sums = torch.zeros(len(pairs), 2, reader.size, dtype=torch.float64, device=reader.device)
    trace: list[list[Tensor]] = []
    drawn: Tensor | None = None
    for step in range(steps):
        for side in (0, 1):
            if drawn is not None:
                read = reader.given(pairs, side, drawn[:, None])
            drawn = _draw(read.p, uniform[:, step, side])
            if step >= burn_in:
                sums[:, side] += read.p
                log_p = read.p.gather(1, drawn[:, None])[:, 0].double().log()
                trace.append([drawn, log_p, read.entropies])
    parts = (
        torch.stack(part).unflatten(0, (-1, 2)).movedim(2, 0) for part in zip(*trace, strict=True)
    )
    means = sums / (steps - burn_in)
    return [Chain(*work) for work in zip(means, *parts, strict=True)]


def _draw(p: Tensor, uniform: Tensor) -> Tensor:
    """A value (R,) of each distribution of p (R, V) by inversion; none of probability 0."""
    ladder = p.cumsum(-1, dtype=torch.float64)
    found = torch.searchsorted(ladder, (uniform * ladder[:, -1])[:, None], right=True)[:, 0]
    return found.clamp_max(p.shape[-1] - 1)


# --- relatives -----------------------------------------------------------------------------------


def cpmi(reader: Reader, pairs: Sequence[Pair], settings: Settings) -> list[PairInformation]:
    """Contextual pointwise information of the tokens that stand there (Hoover et al. 2021)."""
    masked = reader.both_masked(pairs)
    alone = [reader.alone(pairs, side).p for side in (0, 1)]
    result = []
    for k, pair in enumerate(pairs):
        sides = []
        for side in (0, 1):
            value = reader.value_of(pair.sentence, int(pair.places[side]))
            sides.append(float(alone[side][k, value].log() - masked[k, side, value]))
        result.append(PairInformation((sides[0], sides[1])))
    return result


def kl_cpmi(reader: Reader, pairs: Sequence[Pair], settings: Settings) -> list[PairInformation]:
    """Divergence of the prediction given the other token from that with both masked."""
    masked = reader.both_masked(pairs)
    sides = []
    for side in (0, 1):
        read = reader.alone(pairs, side)
        crossed = torch.special.xlogy(read.p, masked[:, side].exp()).sum(-1, dtype=torch.float64)
        sides.append((-read.entropies - crossed).tolist())
    return [PairInformation(both) for both in zip(*sides, strict=True)]


@dataclass(frozen=True)
class Estimator:
    """The function, and how many pairs to give it at a time, of V values under some settings."""

    estimate: Callable[[Reader, Sequence[Pair], Settings], list[PairInformation]]
    block: Callable[[int, Settings], int]


def _fitting(distributions: int, size: int, budget: int = BLOCK_BYTES) -> int:
    return max(1, budget // (4 * size * distributions))


def _chain_block(size: int, settings: Settings) -> int:
    return _fitting(2 * min(size, DISTINCT_VALUES, settings.steps), size, MEMO_BYTES)


def _support_block(size: int, settings: Settings) -> int:
    return _fitting(2 * min(size, settings.head + settings.tail), size)


ESTIMATORS = MappingProxyType(
    {
        "head_tail": Estimator(head_tail, _support_block),
        "gibbs": Estimator(gibbs, _chain_block),
        "gibbs_rb": Estimator(gibbs_rb, _chain_block),
        "exact": Estimator(exact, lambda size, settings: _fitting(2, size)),
        "cpmi": Estimator(cpmi, lambda size, settings: _fitting(4, size)),
        "kl_cpmi": Estimator(kl_cpmi, lambda size, settings: _fitting(4, size)),
    }
)
