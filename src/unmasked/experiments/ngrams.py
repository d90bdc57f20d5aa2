"""Chapter 1: the n-gram baselines on the masked tokens that the model is evaluated on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from unmasked.baselines import NeighbourBigramBaseline, UnigramBaseline
from unmasked.batches import Batch
from unmasked.masking import IGNORE_INDEX
from unmasked.tokens import Sequences

HELD_OUT = 50  # every 50th training sequence chooses the smoothing and is not counted


def baseline_losses(
    tokenizer: PreTrainedTokenizerBase, train: Sequences, validation: Sequence[Batch]
) -> Iterator[tuple[str, float, float, int]]:
    """(name, loss in nats, accuracy, masked tokens) of the unigram and the neighbour bigram.

    Both are fitted on `train`. The bigram sees what the model sees left and right of the masked
    token; a neighbour that is masked too says nothing.
    """
    special, size = tokenizer.all_special_ids, len(tokenizer)
    rows = list(train)
    left, token, right = neighbours(validation)
    unigram = UnigramBaseline.fit(rows, size, special)
    nats = unigram.negative_log_likelihood(token)
    yield "unigram", float(nats.mean()), float(np.mean(token == unigram.predict())), len(token)
    counted = [row for i, row in enumerate(rows) if i % HELD_OUT]
    bigram = NeighbourBigramBaseline.fit(counted, size, special, [tokenizer.mask_token_id])
    bigram = bigram.tuned(rows[::HELD_OUT])
    nats = bigram.negative_log_likelihood(left, token, right)
    hits = bigram.predict(left, right) == token
    yield "neighbour bigram", float(nats.mean()), float(hits.mean()), len(token)


def neighbours(batches: Sequence[Batch]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left neighbour, hidden token and right neighbour of each masked position, as ids (N,).

    [CLS] and [SEP] frame every row, so a masked position has a neighbour on either side.
    """
    found = []
    for batch in batches:
        ids, labels = batch.inputs["input_ids"], batch.inputs["labels"]
        row, column = (labels != IGNORE_INDEX).nonzero(as_tuple=True)
        found.append(torch.stack([ids[row, column - 1], labels[row, column], ids[row, column + 1]]))
    left, token, right = torch.cat(found, dim=1).numpy()
    return left, token, right
