"""Cloze masks: the label is a word of the sentence, and one mask a sentence hides it or not.

Each sentence gets its label as a last word, `[CLS] a fine film positive [SEP]`. A *cloze* mask
hides that word, which is then the downstream task itself; a *generic* mask hides any other token.
The classifier reads the state of a [MASK] in the label's place (Zhang and Hashimoto 2021,
section 3.2, as their released code has it).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase
from transformers.modeling_outputs import SequenceClassifierOutput

from unmasked.batches import Batch, Masking, masked_batches, masked_evaluation_set
from unmasked.masking import MaskingVocabulary
from unmasked.models import MaskedLanguageModel
from unmasked.tokens import Sequences


def label_word_ids(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> tuple[int, ...]:
    """The id of each label word; word c stands for class c.

    Raises ValueError, naming the word, if the tokenizer splits it or does not know it, or if two
    classes share one: an appended label must be exactly one token to be hidden by one mask.
    """
    pieces = {word: tokenizer.tokenize(word) for word in words}
    for word, parts in pieces.items():
        if len(parts) != 1 or parts[0] == tokenizer.unk_token:
            raise ValueError(
                f"the label word {word!r} becomes {parts}, not one piece; train the vocabulary on "
                "texts with the label words appended, or choose other words"
            )
    ids = tuple(tokenizer.convert_tokens_to_ids(pieces[word][0]) for word in words)
    if len(set(ids)) < len(words):
        raise ValueError(f"the label words {', '.join(words)} are not distinct: ids {ids}")
    return ids


def append_token(sequences: Sequences, tokens: Sequence[int] | np.ndarray) -> Sequences:
    """Put `tokens[i]` before the last id ([SEP]) of sequence i, which grows by one.

    For pretraining the tokens are the label words, for classification they are all [MASK]. Raises
    ValueError if the counts differ or if a sequence holds nothing between its frame.
    """
    if len(tokens) != len(sequences):
        raise ValueError(f"{len(tokens)} tokens to append for {len(sequences)} sequences")
    empty = np.flatnonzero(sequences.lengths < 3)
    if empty.size:
        raise ValueError(f"sequence {empty[0]} is an empty sentence; drop it before encoding")
    ids = np.insert(sequences.ids, sequences.offsets[1:] - 1, tokens)
    offsets = sequences.offsets + np.arange(len(sequences.offsets))
    return Sequences(ids.astype(np.int32), offsets, sequences.pad_id)


def select_cloze(maskable: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """One position a row: the last maskable one with probability `share`, else any other.

    The others are drawn uniformly. A `masking.Selection`: (B, L) bool in and out. Raises ValueError
    for a share outside 0..1 and for a row that has nothing but its last token to mask.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the cloze share is {share}; it is a probability in 0..1")
    others = maskable.sum(1) - 1
    if (others < 1).any():
        row = int((others < 1).nonzero()[0])
        raise ValueError(f"row {row} has no token to mask beside its label; drop empty sentences")
    cloze = torch.rand(len(maskable), generator=generator) < share
    drawn = (torch.rand(len(maskable), generator=generator) * others).long()
    place = torch.where(cloze, others, torch.minimum(drawn, others - 1))
    return maskable & (maskable.cumsum(1) - 1 == place.unsqueeze(1))


def cloze_batches(
    sequences: Sequences, vocabulary: MaskingVocabulary, share: float, size: int, seed: int
) -> Callable[[int], Batch]:
    """The batch of any step: exactly one mask a sentence, always [MASK], on the label with `share`.

    `sequences` end with their label word, see `append_token`.
    """
    return masked_batches(sequences, vocabulary, _masking(share), size, seed)


def cloze_evaluation_set(
    sequences: Sequences, vocabulary: MaskingVocabulary, share: float
) -> list[Batch]:
    """Every sentence once with one mask, the same at every call: share 1 asks for labels only."""
    return masked_evaluation_set(sequences, vocabulary, _masking(share))


class ClozeClassifier(nn.Module):
    """Classifies from the state of the [MASK] that stands in the label's place.

    Encoder and head transform are copies of the masked language model's; the output layer starts as
    `weight` (classes, d) and `bias` (classes,), of which copies are taken too.
    """

    def __init__(self, model: MaskedLanguageModel, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.bert = copy.deepcopy(model.bert)
        self.transform = copy.deepcopy(model.cls.predictions.transform)
        self.output = nn.utils.skip_init(nn.Linear, *reversed(weight.shape), device=weight.device)
        with torch.no_grad():
            self.output.weight.copy_(weight)
            self.output.bias.copy_(bias)

    @classmethod
    def from_label_words(
        cls, model: MaskedLanguageModel, word_ids: Sequence[int]
    ) -> ClozeClassifier:
        """Start from the decoder's rows and biases of the label words.

        Before any training this classifier *is* the language model restricted to these words.
        """
        decoder, rows = model.cls.predictions.decoder, list(word_ids)
        return cls(model, decoder.weight[rows], decoder.bias[rows])

    @classmethod
    def from_scratch(
        cls, model: MaskedLanguageModel, classes: int, generator: torch.Generator
    ) -> ClozeClassifier:
        """Start from drawn rows and no bias: for a model that was never trained."""
        spread, width = model.config.initializer_range, model.config.hidden_size
        weight = spread * torch.randn(classes, width, generator=generator)
        return cls(model, weight, torch.zeros(classes))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SequenceClassifierOutput:
        """Logits (B, classes) of rows (B, L) that end `[MASK] [SEP]` before their padding."""
        states = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        place = attention_mask.sum(1) - 2
        state = states[torch.arange(len(states), device=states.device), place]
        return SequenceClassifierOutput(logits=self.output(self.transform(state)))


def _masking(share: float) -> Masking:
    return Masking(share, select_cloze, mask=1.0, random=0.0)
