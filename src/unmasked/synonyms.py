"""How closely a masked language model ties the two spellings of a synset, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from transformers import BertForMaskedLM

from unmasked.alphabets import A, B, TwoAlphabets


@dataclass(frozen=True)
class Tie:
    """Agreement of A_i and B_i at one layer, and what it would be without any tie.

    ``cosine`` is the mean cosine of the two spellings of a position, ``control`` that of positions
    with different synsets; ``neighbour`` is the share of A states whose nearest B state has their
    synset, ``chance`` the share that a uniform draw among the B states would hit.
    """

    layer: int
    cosine: float
    control: float
    neighbour: float
    chance: float


@torch.no_grad()
def ties(
    model: BertForMaskedLM, language: TwoAlphabets, synsets: NDArray[np.int64]
) -> tuple[Tie, ...]:
    """One tie a layer: 0 is the table of word embeddings, k the output of encoder layer k.

    ``synsets`` (B, L), B L at least 2 and not all equal; each sequence is read twice, all in A and
    all in B, so that two states compared differ in nothing but spelling. Raises ValueError if the
    model's vocabulary is not the language's.
    """
    if model.config.vocab_size != language.mask_id + 1:
        raise ValueError(
            f"the model has {model.config.vocab_size} ids, the language needs "
            f"{language.mask_id + 1}: two spellings of {language.synsets} synsets and [MASK]"
        )
    model.eval()
    table = model.get_input_embeddings().weight[: language.mask_id]
    kinds = torch.arange(language.synsets, device=table.device)
    found = [_tie(0, table[: language.synsets], table[language.synsets :], kinds)]
    states = [_states(model, language.spelt(synsets, alphabet)) for alphabet in (A, B)]
    positions = torch.from_numpy(synsets.ravel()).to(table.device)
    for layer, (first, second) in enumerate(zip(*states, strict=True), start=1):
        found.append(_tie(layer, first, second, positions))
    return tuple(found)


def _states(model: BertForMaskedLM, tokens: NDArray[np.int64]) -> list[Tensor]:
    """The outputs (B L, d) of each encoder layer."""
    ids = torch.from_numpy(tokens).to(next(model.parameters()).device)
    hidden = model.bert(ids, output_hidden_states=True).hidden_states[1:]
    return [layer.flatten(0, 1) for layer in hidden]


def _tie(layer: int, first: Tensor, second: Tensor, synsets: Tensor) -> Tie:
    """The tie of rows (N, d) in A and in B; ``synsets`` (N,)."""
    cosines = F.normalize(first.float(), dim=1) @ F.normalize(second.float(), dim=1).T
    same = synsets[:, None] == synsets
    if bool(same.all()):
        raise ValueError("a tie needs at least two different synsets to compare")
    return Tie(
        layer,
        float(cosines.diagonal().mean()),
        float(cosines[~same].mean()),
        float((synsets[cosines.argmax(1)] == synsets).float().mean()),
        float(same.float().mean()),
    )
