"""Loss and accuracy of masked language models and of classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from unmasked.batches import Batch
from unmasked.masking import IGNORE_INDEX
from unmasked.tokens import Sequences


@torch.no_grad()
def evaluate_masked(model: nn.Module, batches: Sequence[Batch]) -> dict[str, float]:
    """Mean loss (nats) and accuracy over the masked positions of `batches`, and their number."""
    model.eval()
    device = next(model.parameters()).device
    total, correct, items = 0.0, 0, 0
    for batch in batches:
        inputs = {name: tensor.to(device) for name, tensor in batch.inputs.items()}
        output = model(**inputs, num_items_in_batch=1)
        targets = inputs["labels"][inputs["labels"] != IGNORE_INDEX]
        total += float(output.loss)
        correct += int((output.logits.argmax(-1) == targets).sum())
        items += batch.items
    if items == 0:
        raise ValueError("the evaluation set has no masked position")
    return {"loss": total / items, "accuracy": correct / items, "masked": float(items)}


@torch.no_grad()
def evaluate_classifier(
    model: nn.Module, sequences: Sequences, labels: np.ndarray, size: int = 64
) -> dict[str, float]:
    """Mean cross-entropy (nats) and accuracy of a classifier over labelled sequences."""
    model.eval()
    device = next(model.parameters()).device
    order = np.argsort(sequences.lengths, kind="stable")
    total, correct = 0.0, 0
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        input_ids, attention_mask = (part.to(device) for part in sequences.pad(rows))
        logits = model(input_ids=input_ids, attention_mask=attention_mask).logits.float()
        targets = torch.from_numpy(labels[rows]).to(device)
        total += float(F.cross_entropy(logits, targets, reduction="sum"))
        correct += int((logits.argmax(-1) == targets).sum())
    return {"loss": total / len(order), "accuracy": correct / len(order)}
