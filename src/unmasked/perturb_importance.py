"""How much a classifier needs each word or phrase: what it says when that one is masked.

Chiang and Yogatama 2023, the choice of important words and phrases as their released code makes it,
with its two defects as switches: scores off by one, and one sentence of a pair alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from transformers import PreTrainedTokenizerBase

from unmasked.perturb_candidates import Candidate, masked_variants

MOST_IMPORTANT = 4
MARGIN = 0.05
"""A candidate is decisive if without it the class is this near to chance, or below it."""


def most_important(
    original: ArrayLike,
    masked: ArrayLike,
    count: int = MOST_IMPORTANT,
    released_offset: bool = False,
) -> list[int]:
    """The `count` candidates that the prediction needs most, the most important first.

    `original` (C,) are the class probabilities of the whole text, `masked` (K, C) those with each
    candidate masked. Important is what leaves the predicted class least probable; ties go to the
    earlier candidate; fewer than `count` come back where there are fewer. `released_offset`: see
    `predicted_class`. Raises ValueError for shapes that do not fit and values that are no
    probabilities.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    scores, _ = predicted_class(original, masked, released_offset)
    return np.argsort(scores, kind="stable")[:count].tolist()


def decisive(
    original: ArrayLike,
    masked: ArrayLike,
    lengths: Sequence[int],
    released_offset: bool = False,
) -> int | None:
    """The candidate to paraphrase: the shortest without which the prediction does not stand.

    Among the candidates whose masking flips the prediction, or drops the predicted class below
    1/C + 0.05, the shortest by `lengths` (K,), of equally short ones the one that drops it lowest;
    if there are none, the candidate that drops it lowest. None without candidates (K = 0). Shapes,
    `released_offset` and errors as in `most_important`.
    """
    scores, flipped = predicted_class(original, masked, released_offset)
    if len(lengths) != len(scores):
        raise ValueError(f"{len(lengths)} lengths for {len(scores)} candidates")
    if not len(scores):
        return None
    enough = flipped | (scores < 1 / np.size(original) + MARGIN)
    chosen = np.flatnonzero(enough) if enough.any() else np.arange(len(scores))
    size = np.asarray(lengths)[chosen] if enough.any() else np.zeros(len(chosen))
    return int(chosen[np.lexsort((chosen, scores[chosen], size))[0]])


def predicted_class(
    original: ArrayLike, masked: ArrayLike, released_offset: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(K,) probabilities of the class predicted for the whole text, and (K,) whether it flips.

    With `released_offset` both are those that the released code takes for them: its list of
    predictions begins with the whole text, and nothing drops that entry, so that candidate k gets
    the values of candidate k - 1 and the first those of the whole text.
    """
    original, masked = np.asarray(original, float), np.asarray(masked, float)
    if original.ndim != 1 or original.size < 2:
        raise ValueError(f"original must hold the probabilities of classes, got {original.shape}")
    masked = masked.reshape(0, original.size) if masked.size == 0 else masked
    if masked.ndim != 2 or masked.shape[1] != original.size:
        raise ValueError(
            f"masked must be (candidates, {original.size}) like the {original.size} classes of "
            f"the original, got {masked.shape}"
        )
    every = np.vstack([original, masked])
    if not np.allclose(every.sum(1), 1, atol=1e-3) or (every < 0).any():
        raise ValueError("rows must be probabilities that sum to 1; apply a softmax to logits")
    rows = every[:-1] if released_offset else every[1:]
    label = int(original.argmax())
    return rows[:, label], rows.argmax(1) != label


@torch.no_grad()
def class_probabilities(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    size: int = 32,
) -> NDArray[np.float64]:
    """(B, C) class probabilities of any transformers classifier, in the model's order of classes.

    `pairs` are the second sentences of a pair task. Texts are cut at the length that the model
    allows. The model is put in evaluation mode and runs on the device of its parameters, `size`
    texts at a time. Raises ValueError if there are no texts or another number of `pairs`.
    """
    if not texts or (pairs is not None and len(pairs) != len(texts)):
        raise ValueError(f"{len(texts)} texts and {len(pairs or ())} second sentences to classify")
    model.eval()
    device = next(model.parameters()).device
    limit = min(
        getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length,
        tokenizer.model_max_length,
    )
    found = []
    for start in range(0, len(texts), size):
        second = None if pairs is None else list(pairs[start : start + size])
        inputs = tokenizer(
            list(texts[start : start + size]),
            second,
            padding=True,
            truncation=True,
            max_length=limit,
            return_tensors="pt",
        )
        logits = model(**{name: value.to(device) for name, value in inputs.items()}).logits
        found.append(torch.softmax(logits.double(), -1).cpu().numpy())
    return np.concatenate(found)


def importance(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    words: Sequence[str],
    candidates: Sequence[Candidate],
    other: str | None = None,
    side: Literal["first", "second"] = "first",
    released_input: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Class probabilities (C,) of a text and (K, C) with each candidate masked by one mask token.

    `words` are the sentence whose candidates they are. In a pair task `other` is the other sentence
    and `side` says which of the two `words` is (the premise is the first). `released_input` leaves
    `other` out, as the released code does: the classifier then sees one sentence of a pair that it
    was trained to see whole. Raises ValueError for an empty sentence, a candidate outside it, an
    unknown side, and a tokenizer without a mask token.
    """
    if side not in ("first", "second"):
        raise ValueError(f"side must be 'first' or 'second', got {side!r}")
    if tokenizer.mask_token is None:
        raise ValueError("the tokenizer has no mask token; give the tokenizer of a masked model")
    texts = [" ".join(words), *masked_variants(words, candidates, tokenizer.mask_token)]
    if not texts[0]:
        raise ValueError("the sentence is empty; drop empty sentences first")
    if other is None or released_input:
        probabilities = class_probabilities(model, tokenizer, texts)
    elif side == "first":
        probabilities = class_probabilities(model, tokenizer, texts, [other] * len(texts))
    else:
        probabilities = class_probabilities(model, tokenizer, [other] * len(texts), texts)
    return probabilities[0], probabilities[1:]
