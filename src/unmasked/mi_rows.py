"""Forward rows for mutual information: one masked sentence in, one distribution out.

The work is cut where it changes nothing: rows of equal length are batched without padding, the
last encoder layer and the head see the needed positions only, and a row that was computed is kept.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertForMaskedLM

from unmasked.mi_sentences import Encoded

MEMO_BYTES = 256 * 2**20
"""Rows kept for reading again, in bytes; the least recently used are dropped."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Positions number i < j of a sentence, and the pair's own source of random numbers."""

    sentence: Encoded
    i: int
    j: int
    generator: torch.Generator

    @cached_property
    def places(self) -> Tensor:
        """(2,) int64: where i and j stand in the sentence's ids."""
        return self.sentence.positions[[self.i, self.j]]


def seeded_pair(sentence: Encoded, i: int, j: int, seed: int) -> Pair:
    """A pair with a random stream that depends on seed, sentence and positions alone."""
    digest = hashlib.sha256(f"{seed} {i} {j} ".encode() + sentence.identity).digest()
    stream = int.from_bytes(digest[:8], "little") >> 1
    return Pair(sentence, i, j, torch.Generator().manual_seed(stream))


class Reader:
    """Reads predictions of a masked language model for pairs of positions.

    Distributions are over `allowed_ids` (V,), or over the whole vocabulary; values of a position
    are numbered 0..V-1 within them. `rows` counts the forward rows of each sentence's name.
    """

    def __init__(
        self, model: nn.Module, mask_token_id: int, batch_rows: int, allowed_ids: Tensor | None
    ) -> None:
        self.model = model
        self.mask_token_id = mask_token_id
        self.batch_rows = batch_rows
        self.device = next(model.parameters()).device
        self.allowed_ids = None if allowed_ids is None else allowed_ids.to(self.device)
        self.size = model.config.vocab_size if allowed_ids is None else len(allowed_ids)
        self.rows: Counter[str] = Counter()
        self._memo: OrderedDict[bytes, tuple[Tensor, float]] = OrderedDict()

    def both_masked(self, pairs: Sequence[Pair]) -> Tensor:
        """Log-probabilities at i and at j with both masked: (pairs, 2, V), one row a pair."""
        rows = torch.stack([pair.sentence.ids for pair in pairs])
        places = torch.stack([pair.places for pair in pairs])
        rows.scatter_(1, places, self.mask_token_id)
        return self._log_probabilities(rows, places, [pair.sentence.name for pair in pairs])

    def given(self, pairs: Sequence[Pair], side: int, values: Sequence[Tensor]) -> Read:
        """Predictions at i (`side` 0) or j (1) of each pair, given values of the other position.

        `values[k]` (K_k,) int64 belongs to `pairs[k]`; the result has sum of K_k rows, in order.
        """
        counts = torch.tensor([len(chosen) for chosen in values])
        ids = torch.stack([pair.sentence.ids for pair in pairs]).repeat_interleave(counts, 0)
        places = torch.stack([pair.places for pair in pairs]).repeat_interleave(counts, 0)
        tokens = self.token_ids(torch.cat([*values])).cpu()
        rows = ids.scatter_(1, places[:, [1 - side]], tokens[:, None])
        rows.scatter_(1, places[:, [side]], self.mask_token_id)
        names = [
            pair.sentence.name
            for pair, n in zip(pairs, counts.tolist(), strict=True)
            for _ in range(n)
        ]
        return self._remembered(rows, places[:, side], names)

    def alone(self, pairs: Sequence[Pair], side: int) -> Read:
        """Predictions at i (`side` 0) or j (1), every other token in its place: a row a pair."""
        rows = torch.stack([pair.sentence.ids for pair in pairs])
        places = torch.stack([pair.places[side] for pair in pairs])
        rows.scatter_(1, places[:, None], self.mask_token_id)
        return self._remembered(rows, places, [pair.sentence.name for pair in pairs])

    def token_ids(self, values: Tensor) -> Tensor:
        """Token ids of values (K,)."""
        return values if self.allowed_ids is None else self.allowed_ids[values]

    def value_of(self, sentence: Encoded, place: int) -> int:
        """The value that stands at a place of the sentence; ValueError if it is not allowed."""
        token = int(sentence.ids[place])
        if self.allowed_ids is None:
            return token
        found = (self.allowed_ids == token).nonzero()
        if not len(found):
            raise ValueError(
                f"{sentence.name} holds token {token}, which allowed_ids lack; pointwise "
                "estimators need the sentence's own tokens among them"
            )
        return int(found[0, 0])

    def _remembered(self, rows: Tensor, places: Tensor, names: Sequence[str]) -> Read:
        """Read rows (R, L) at places (R,), computing only those that are not in the memo."""
        keyed = torch.cat([rows, places[:, None]], 1).numpy()
        keys = [row.tobytes() for row in keyed]
        new = {key: number for number, key in enumerate(keys) if key not in self._memo}
        known = {key: self._memo[key] for key in keys if key in self._memo}
        if new:
            where = torch.tensor(list(new.values()))
            log_p = self._log_probabilities(
                rows[where], places[where, None], [names[k] for k in new.values()]
            )
            p = log_p[:, 0].exp_()
            entropies = torch.special.entr(p).sum(-1, dtype=torch.float64).tolist()
            known.update(zip(new, zip(p, entropies, strict=True), strict=True))
        self._keep(keys, known)
        read = [known[key] for key in keys]
        entropies = torch.tensor([entropy for _, entropy in read], dtype=torch.float64)
        return Read(torch.stack([p for p, _ in read]), entropies.to(self.device))

    def _keep(self, keys: Sequence[bytes], known: dict[bytes, tuple[Tensor, float]]) -> None:
        room = max(1, MEMO_BYTES // (4 * self.size))
        for key in keys[-room:]:
            if key not in self._memo:
                self._memo[key] = (known[key][0].clone(), known[key][1])
            self._memo.move_to_end(key)
        while len(self._memo) > room:
            self._memo.popitem(last=False)

    def _log_probabilities(self, rows: Tensor, places: Tensor, names: Sequence[str]) -> Tensor:
        """(R, Q, V) float32 at places (R, Q) of rows (R, L), in batches."""
        parts = []
        for first in range(0, len(rows), self.batch_rows):
            part = slice(first, first + self.batch_rows)
            logits = logits_at(self.model, rows[part].to(self.device), places[part].to(self.device))
            if self.allowed_ids is not None:
                logits = logits[..., self.allowed_ids]
            log_p = logits.float().log_softmax(-1)
            bad = log_p[..., 0].isnan().any(-1)  # one NaN makes the whole row NaN
            if bad.any():
                name = names[first + int(bad.nonzero()[0, 0])]
                raise ValueError(f"{name}: the model's logits are NaN or infinite")
            parts.append(log_p)
        self.rows.update(names)
        return torch.cat(parts)


@dataclass(frozen=True)
class Read:
    """Distributions `p` (R, V) float32 and their entropies (R,) float64, nats."""

    p: Tensor
    entropies: Tensor

    def split(self, sizes: Sequence[int]) -> list[Read]:
        """Consecutive blocks of rows of the given sizes."""
        parts = zip(self.p.split(sizes), self.entropies.split(sizes), strict=True)
        return [Read(*part) for part in parts]


def logits_at(model: nn.Module, rows: Tensor, places: Tensor) -> Tensor:
    """Logits (R, Q, vocabulary) of `rows` (R, L), without padding, at `places` (R, Q).

    For BERT the last encoder layer computes queries, and the head logits, at those places only:
    the same numbers up to rounding. Any other masked language model runs as it is.
    """
    if isinstance(model, BertForMaskedLM) and not model.config.is_decoder:
        hidden = model.bert.embeddings(input_ids=rows)
        for layer in model.bert.encoder.layer[:-1]:
            hidden = layer(hidden)
        return model.cls(_last_layer(model.bert.encoder.layer[-1], hidden, places))
    logits = model(input_ids=rows).logits
    return logits[torch.arange(len(rows), device=rows.device)[:, None], places]


def _last_layer(layer: nn.Module, hidden: Tensor, places: Tensor) -> Tensor:
    """Output (R, Q, d) of a BERT layer at `places` (R, Q) of its input `hidden` (R, L, d)."""
    attention = layer.attention.self
    needed = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))

    def heads(states: Tensor) -> Tensor:
        return states.unflatten(-1, (-1, attention.attention_head_size)).transpose(1, 2)

    mixed = F.scaled_dot_product_attention(
        heads(attention.query(needed)), heads(attention.key(hidden)), heads(attention.value(hidden))
    )
    attended = layer.attention.output(mixed.transpose(1, 2).flatten(2), needed)
    return layer.feed_forward_chunk(attended)
