"""Whether two conditional distributions can come from one joint, and how far they are from it.

For positions i and j with all else observed, A[b, a] = p(x_i = a | x_j = b) and
B[a, b] = p(x_j = b | x_i = a) have a joint in common exactly if A[b, a] / B[a, b] is a function of
a times one of b; then every log odds ratio is the same in both, and going round
a -> b -> a' -> b' is as likely as going back. A masked language model gives A and B without ever
being told of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import xlogy
from torch import nn
from transformers import PreTrainedTokenizerBase

from unmasked.masking import MaskingVocabulary
from unmasked.mi_rows import Pair, Reader
from unmasked.mi_sentences import Words, encode_sentences

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairTables:
    """Both conditionals of a pair over the candidates of each position, renormalised over them.

    `first` (K_j, K_i): rows are values of j, the prediction at i; `second` (K_i, K_j) the reverse.
    """

    first: Floats
    second: Floats


@torch.inference_mode()
def conditional_tables(
    model: nn.Module,
    tokenizer_or_vocabulary: PreTrainedTokenizerBase | MaskingVocabulary,
    sentence: Words | torch.Tensor,
    pairs: Sequence[tuple[int, int]] | int,
    *,
    candidates: int,
    generator: torch.Generator,
    batch_rows: int = 128,
) -> list[PairTables]:
    """Tables of some pairs of a sentence, given as in `mi.conditional_mutual_information`.

    `pairs` are positions i < j among those that are not special, or how many pairs to draw. Each
    position's candidates are its likeliest ordinary tokens while both are masked.
    Raises ValueError for fewer than two candidates or more than there are ordinary tokens.
    """
    vocabulary = tokenizer_or_vocabulary
    if not isinstance(vocabulary, MaskingVocabulary):
        vocabulary = MaskingVocabulary.from_tokenizer(vocabulary)
    if not 2 <= candidates <= len(vocabulary.ordinary_ids):
        raise ValueError(
            f"candidates must lie in 2..{len(vocabulary.ordinary_ids)}, got {candidates}"
        )
    encoded = encode_sentences(model, tokenizer_or_vocabulary, [sentence])[0]
    model.eval()
    reader = Reader(model, vocabulary.mask_token_id, batch_rows, vocabulary.ordinary_ids)
    if isinstance(pairs, int):
        every = encoded.pairs(None)
        chosen = torch.randperm(len(every), generator=generator)[:pairs]
        pairs = [every[int(k)] for k in chosen]
    return _tables(reader, [Pair(encoded, i, j, generator) for i, j in pairs], candidates)


def log_odds_size(table: Floats) -> float:
    """Mean absolute log odds ratio in nats of a positive table (K, L), over all 2 x 2 sub-tables.

    It does not change when rows or columns are scaled; 0 for a table of independence.
    """
    log = np.log(table)
    low, high = np.triu_indices(len(log), 1)
    steps = np.sort(log[low] - log[high], axis=1)  # (pairs of rows, columns)
    columns = steps.shape[1]
    rank = 2 * np.arange(columns) - (columns - 1)  # sum over k < l of |d_k - d_l|, sorted
    return float((steps @ rank).mean() / (columns * (columns - 1) / 2))


def imbalance(tables: PairTables) -> float:
    """Mean over a, a', b, b' of the absolute log ratio, in nats, of going round to going back.

    p(a|b) p(b|a') p(a'|b') p(b'|a) against p(a|b') p(b'|a') p(a'|b) p(b|a): 0 for all if and only
    if both conditionals have a joint in common. It is the difference of the log odds ratios of
    both, so `log_odds_size` of either is its natural scale.
    """
    return log_odds_size(tables.first.T / tables.second)


def directed_information(tables: PairTables) -> tuple[float, float]:
    """I_i and I_j in nats over the candidates, under the law that alternating draws settle in.

    With rho_j the stationary law of j -> i -> j, I_i is the mutual information of rho_j and
    `first`, and I_j that of rho_i = rho_j first and `second`; equal if a joint exists.
    """
    step = tables.first @ tables.second
    system = np.vstack([step.T - np.eye(len(step)), np.ones(len(step))])
    rho_j = np.linalg.lstsq(system, np.append(np.zeros(len(step)), 1.0), rcond=None)[0]
    rho_j = np.clip(rho_j, 0.0, None) / np.clip(rho_j, 0.0, None).sum()
    return _information(rho_j, tables.first), _information(rho_j @ tables.first, tables.second)


def _information(law: Floats, rows: Floats) -> float:
    """Mutual information in nats of a law (K,) and the conditionals of its rows (K, L)."""
    divergences = (xlogy(rows, rows) - xlogy(rows, law @ rows)).sum(1)
    return float(law @ divergences)


def _tables(reader: Reader, pairs: Sequence[Pair], candidates: int) -> list[PairTables]:
    likely = reader.both_masked(pairs).topk(candidates).indices  # (pairs, 2, candidates)
    sides = []
    for side in (0, 1):
        rows = reader.given(pairs, side, list(likely[:, 1 - side])).p
        rows = rows.view(len(pairs), candidates, -1)
        wanted = likely[:, side, None].expand(-1, candidates, -1)
        table = rows.gather(2, wanted).double().cpu().numpy()
        sides.append(table / table.sum(2, keepdims=True))
    return [PairTables(*both) for both in zip(*sides, strict=True)]
