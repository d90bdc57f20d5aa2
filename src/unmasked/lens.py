"""The mask lens: one sentence followed through selection, corruption, prediction and loss."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from unmasked.batches import Masking
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary, mask_tokens

SEPARATOR = " · "  # no token of a BERT vocabulary holds spaces


@torch.no_grad()
def mask_lens(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    sentence: str,
    masking: Masking,
    generator: torch.Generator,
    top: int = 5,
) -> pd.DataFrame:
    """One row a position of `sentence`, as any transformers masked language model sees it.

    Columns: position, token, seen (what the model reads), selected, fate (masked, random or kept;
    empty where not selected), loss in nats, probability of the true token, and predictions (the
    `top` likeliest tokens with their probabilities). Raises ValueError for a sentence without
    pieces or longer than the model's positions.
    """
    ids = encoded(model, tokenizer, sentence)
    vocabulary = MaskingVocabulary.from_tokenizer(tokenizer)
    batch = mask_tokens(
        ids, vocabulary, generator, masking.probability,
        selection=masking.selection, mask=masking.mask, random=masking.random,
    )  # fmt: skip
    model.eval()
    probabilities = model(input_ids=batch.input_ids).logits[0].double().softmax(-1)
    name = tokenizer.convert_ids_to_tokens
    rows = []
    for position in range(ids.shape[1]):
        true, seen = int(ids[0, position]), int(batch.input_ids[0, position])
        selected = int(batch.labels[0, position]) != IGNORE_INDEX
        row = {
            "position": position,
            "token": name(true),
            "seen": name(seen),
            "selected": selected,
            "fate": _fate(true, seen, tokenizer.mask_token_id) if selected else "",
        }
        if selected:
            p = probabilities[position]
            best = p.topk(top)
            row["loss"] = float(-p[true].log())
            row["probability"] = float(p[true])
            row["predictions"] = _listed(name(best.indices.tolist()), best.values.tolist())
        rows.append(row)
    columns = [*rows[0], "loss", "probability", "predictions"]
    return pd.DataFrame(rows, columns=list(dict.fromkeys(columns)))


@torch.no_grad()
def fill_masks(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    top: int = 5,
) -> pd.DataFrame:
    """The `top` likeliest tokens for the one [MASK] of each sentence.

    Columns: sentence, predictions, entropy of the prediction in nats. Raises ValueError for a
    sentence that does not hold the tokenizer's mask token exactly once.
    """
    model.eval()
    rows = []
    for sentence in sentences:
        ids = encoded(model, tokenizer, sentence)
        where = (ids[0] == tokenizer.mask_token_id).nonzero().flatten()
        if len(where) != 1:
            raise ValueError(
                f"{sentence!r} holds {tokenizer.mask_token} {len(where)} times; once is needed"
            )
        log_p = model(input_ids=ids).logits[0, where[0]].double().log_softmax(-1)
        best = log_p.topk(top)
        names = tokenizer.convert_ids_to_tokens(best.indices.tolist())
        entropy = float(-(log_p.exp() * log_p).sum())
        predictions = _listed(names, best.values.exp().tolist())
        rows.append({"sentence": sentence, "predictions": predictions, "entropy": entropy})
    return pd.DataFrame(rows)


def encoded(model: nn.Module, tokenizer: PreTrainedTokenizerBase, sentence: str) -> torch.Tensor:
    """Ids (1, L) of a sentence with its special tokens; ValueError if it is empty or too long."""
    ids = tokenizer(sentence, return_tensors="pt")["input_ids"]
    special = torch.tensor(sorted({*tokenizer.all_special_ids} - {tokenizer.mask_token_id}))
    if torch.isin(ids, special).all():
        raise ValueError(f"sentence {sentence!r} holds no token; give it at least one word")
    room = model.config.max_position_embeddings
    if ids.shape[1] > room:
        raise ValueError(
            f"sentence of {ids.shape[1]} tokens is longer than the model's {room} positions"
        )
    return ids


def _fate(true: int, seen: int, mask_token_id: int) -> str:
    if seen == mask_token_id:
        return "masked"
    return "kept" if seen == true else "random"


def _listed(names: Sequence[str], probabilities: Sequence[float]) -> str:
    return SEPARATOR.join(f"{name} {p:.2f}" for name, p in zip(names, probabilities, strict=True))
