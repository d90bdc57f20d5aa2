"""The Bayes-optimal masked prediction for two domains in two alphabets, exactly.

A sequence comes from either domain with equal probability. The visible tokens weigh the domains, by
what they mean (can the walk have produced them?) and by how they are spelt; each domain predicts
the hidden synsets by forward-backward over its nodes, and spells them as it spells all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from unmasked.alphabets import TwoAlphabets
from unmasked.languages import HIDDEN, RandomWalk

_ROWS = 64  # sequences whose posteriors over all synsets are held at a time


def log_evidence(walk: RandomWalk, synsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """(B,) log probability in nats of the observed synsets; -inf where the walk has none.

    ``synsets`` (B, L), -1 where hidden. The forward pass over the nodes, scaled at each step.
    """
    emission, back = walk.emission(), walk.transition().T.tocsr()
    belief = np.full((walk.nodes, len(synsets)), 1 / walk.nodes)
    total = np.zeros(len(synsets))
    for seen in synsets.T:
        belief = belief * ((emission[:, None] == seen) | (seen == HIDDEN))
        mass = belief.sum(0)
        with np.errstate(divide="ignore"):
            total += np.log(mass)
        belief = back @ (belief / np.where(mass > 0, mass, 1))
    return total


def posterior(language: TwoAlphabets, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """(M, 2 synsets): p(token | every visible token) at each hidden position, row by row.

    ``tokens`` (B, L) ids, -1 at the M hidden positions; rows sum to 1. Raises ValueError for an id
    out of range, and for a row that neither domain can produce, for example one with random
    replacements.
    """
    tokens = _checked(language, tokens)
    parts = [_posterior(language, tokens[i : i + _ROWS], i) for i in range(0, len(tokens), _ROWS)]
    return np.concatenate([np.empty((0, 2 * language.synsets)), *parts])


def floor(
    language: TwoAlphabets, tokens: NDArray[np.int64], hidden: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Negative log-likelihood in nats of each hidden token under the exact posterior.

    ``tokens`` (B, L) complete, ``hidden`` (B, L) bool: all hidden tokens of a row are hidden
    together. Returns (hidden.sum(),) in the order of ``tokens[hidden]``; no model that sees the
    other tokens can have a lower mean in expectation. Raises what ``posterior`` raises, and
    ValueError for another shape of ``hidden`` or a hidden token that the corpus cannot contain.
    """
    tokens = np.asarray(tokens)
    if hidden.shape != tokens.shape or hidden.dtype != np.bool_:
        raise ValueError(
            f"hidden must be bool of shape {tokens.shape}, got {hidden.dtype} {hidden.shape}"
        )
    true = tokens[hidden]
    _checked(language, true[None])
    if (true == HIDDEN).any():
        raise ValueError("tokens must hold the true token at every hidden position, not -1")
    found = posterior(language, np.where(hidden, HIDDEN, tokens))[np.arange(len(true)), true]
    if not found.all():
        raise ValueError("a hidden token has probability 0: tokens are not from this corpus")
    return -np.log(found)


def _posterior(
    language: TwoAlphabets, tokens: NDArray[np.int64], first_row: int
) -> NDArray[np.float64]:
    """``posterior`` of a few rows."""
    hidden = tokens == HIDDEN
    synsets = np.where(hidden, HIDDEN, language.meaning(tokens))
    alphabets = np.where(hidden, HIDDEN, tokens // language.synsets)
    weights = _domain_weights(language, synsets, alphabets, first_row)  # (2, B)
    rows = np.nonzero(hidden)[0]
    out = np.zeros((len(rows), 2, language.synsets))
    for domain in (0, 1):
        possible = weights[domain] > 0
        predicted = np.zeros((*tokens.shape, language.synsets))
        predicted[possible] = language.walk(domain).posterior(synsets[possible])
        joint = weights[domain, rows, None] * predicted[hidden]  # (M, synsets)
        out[:, domain] += language.keep * joint
        out[:, 1 - domain] += (1 - language.keep) * joint
    return out.reshape(len(rows), 2 * language.synsets)


def _domain_weights(
    language: TwoAlphabets,
    synsets: NDArray[np.int64],
    alphabets: NDArray[np.int64],
    first_row: int,
) -> NDArray[np.float64]:
    """(2, B): p(domain | visible tokens, their spelling included)."""
    logs = np.empty((2, len(synsets)))
    for domain in (0, 1):
        at_home = (alphabets == domain).sum(1)
        abroad = (alphabets == 1 - domain).sum(1)
        logs[domain] = log_evidence(language.walk(domain), synsets)
        logs[domain] += xlogy(at_home, language.keep) + xlogy(abroad, 1 - language.keep)
    best = logs.max(0)
    if np.isneginf(best).any():
        raise ValueError(
            f"neither domain can produce row {first_row + int(np.argmin(best))} "
            "(hide replaced tokens with -1)"
        )
    weights = np.exp(logs - best)
    return weights / weights.sum(0)


def _checked(language: TwoAlphabets, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    tokens = np.asarray(tokens)
    if tokens.ndim != 2 or not np.issubdtype(tokens.dtype, np.integer):
        raise ValueError(
            f"tokens must be integers of shape (batch, length), got {tokens.dtype} of shape "
            f"{tokens.shape}"
        )
    if tokens.size and not HIDDEN <= tokens.min() <= tokens.max() < language.mask_id:
        raise ValueError(
            f"tokens run from {tokens.min()} to {tokens.max()}, allowed are -1 (hidden) to "
            f"{language.mask_id - 1}"
        )
    return tokens
