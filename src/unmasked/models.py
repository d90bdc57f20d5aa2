"""Small BERT models on transformers' own modules, with the head at masked positions only.

`MaskedLanguageModel` *is* `BertForMaskedLM` (same modules, same parameter names, same
checkpoints): only its training forward differs, in that the vocabulary-sized head never sees a
position that carries no loss. Devlin et al. 2019, section 3.1.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM
from transformers.modeling_outputs import MaskedLMOutput

from unmasked.masking import IGNORE_INDEX

# name -> (layers, hidden size, attention heads); the feed-forward layer is 4 times as wide.
SIZES = MappingProxyType(
    {"tiny": (2, 128, 2), "mini": (4, 256, 4), "small": (6, 384, 6), "base": (12, 768, 12)}
)
BASE_HIDDEN_SIZE = 768
BASE_INITIALIZER_RANGE = 0.02


def bert_config(
    size: str,
    vocabulary_size: int,
    *,
    max_length: int = 128,
    dropout: float = 0.0,
    initializer_range: float | None = None,
    pad_token_id: int = 0,
) -> BertConfig:
    """The configuration of a named size.

    `initializer_range` defaults to BERT's 0.02 scaled with the width, 0.02 sqrt(768 / d): at
    0.02 a narrow model starts so close to zero that it can stay at the unigram plateau.
    Raises ValueError on an unknown size, naming the known ones.
    """
    if size not in SIZES:
        raise ValueError(f"unknown model size {size!r}; known sizes: {', '.join(SIZES)}")
    layers, hidden, heads = SIZES[size]
    if initializer_range is None:
        initializer_range = BASE_INITIALIZER_RANGE * math.sqrt(BASE_HIDDEN_SIZE / hidden)
    return BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=max_length,
        type_vocab_size=2,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=initializer_range,
        pad_token_id=pad_token_id,
    )


class MaskedLanguageModel(BertForMaskedLM):
    """BERT with the masked-language-modelling head, evaluated where there is a label.

    Without labels it is `BertForMaskedLM`, logits of shape (B, L, V). With labels (B, L), the
    logits are those of the labelled positions alone, shape (M, V) in row-major order, and the
    loss is their mean cross-entropy in nats: equal to `BertForMaskedLM`'s, since positions that
    are not labelled never entered it. A batch without any label has loss 0, not NaN.
    """

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        num_items_in_batch: int | torch.Tensor | None = None,
        **kwargs,
    ) -> MaskedLMOutput:
        """Return loss and logits; the loss sum is divided by `num_items_in_batch` if given."""
        if labels is None:
            return super().forward(input_ids, attention_mask=attention_mask, **kwargs)
        encoded = self.bert(input_ids, attention_mask=attention_mask, **kwargs)
        labelled = labels != IGNORE_INDEX
        hidden = encoded.last_hidden_state[labelled]  # (M, d): gather before the head
        logits = self.cls(hidden)  # (M, V)
        total = F.cross_entropy(logits.float(), labels[labelled], reduction="sum")
        items = max(len(hidden), 1) if num_items_in_batch is None else num_items_in_batch
        return MaskedLMOutput(
            loss=total / items,
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )


def masked_language_model(config: BertConfig, seed: int) -> MaskedLanguageModel:
    """A freshly initialised model; the same seed gives the same weights, whatever ran before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MaskedLanguageModel(config)


def training_flops_per_token(config: BertConfig, length: int, mask_probability: float) -> float:
    """Useful floating-point operations to train on one token: forward and backward, 3 x forward.

    Counts the matrix products of the encoder, of attention at the given length, and of the head
    at the masked share of positions; recomputation and padding do not count.
    """
    d, f, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    encoder = layers * (8 * d * d + 4 * d * f + 4 * d * length)
    head = mask_probability * 2 * (d * d + d * config.vocab_size)
    return 3.0 * (encoder + head)
