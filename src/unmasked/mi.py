"""Conditional mutual information between the positions of a sentence, from a masked language model.

Zhang and Hashimoto (2021), section 5.2, ask how much the prediction at one position depends on what
stands at another, all else observed. `conditional_mutual_information` answers for every pair; the
estimators stand in `mi_estimators`, what a forward row costs in `mi_rows`.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from unmasked.masking import MaskingVocabulary
from unmasked.mi_estimators import ESTIMATORS, PairInformation, Settings
from unmasked.mi_folder import file_of, load_information, save_information, weights_digest
from unmasked.mi_rows import Reader, seeded_pair
from unmasked.mi_sentences import (
    Encoded,
    SentenceInformation,
    Words,
    encode_sentences,
    symmetrise,
    to_words,
)

__all__ = [
    "ESTIMATORS", "SentenceInformation", "conditional_mutual_information", "symmetrise",
    "to_words",
]  # fmt: skip

BATCH_ROWS = 128


@torch.inference_mode()
def conditional_mutual_information(
    model: nn.Module,
    tokenizer_or_vocabulary: PreTrainedTokenizerBase | MaskingVocabulary,
    sentences: Sequence[Words] | Sequence[Tensor],
    estimator: str = "head_tail",
    *,
    generator: torch.Generator,
    head: int = 64,
    tail: int = 64,
    sweeps: int = 1000,
    steps: int = 2000,
    burn_in: float = 0.2,
    window: int | None = None,
    batch_rows: int = BATCH_ROWS,
    progress: bool = False,
    folder: Path | None = None,
    allowed_ids: Tensor | None = None,
) -> list[SentenceInformation]:
    """Information in nats between every two positions of each sentence, both directions.

    `model` is any transformers masked language model, used in evaluation mode and in float32.
    With a tokenizer each sentence is a list of words; with a `MaskingVocabulary` it is an int64
    tensor of ids, special ids included, and every other position is a word of its own.

    estimator: "head_tail" (`head` likeliest values and `tail` draws a side, whose weights alternate
    until they stay, at most `sweeps` rounds; exact if head + tail reach the vocabulary's size),
    "gibbs" (the official algorithm, `steps` steps of which the share `burn_in` is dropped),
    "gibbs_rb" (the same chain, whole rows), "exact" (all V values, 32 V^2 bytes), and under their
    own names "cpmi" and "kl_cpmi", other quantities.
    window: pairs further apart are left at 0; the released code used 9.
    batch_rows: rows a forward pass; changes nothing but speed and memory.
    folder: finished sentences are kept there and read again by a later call with the same model,
    settings and generator state. allowed_ids: (V,) distinct ids that predictions are restricted to
    and renormalised over. generator: on the CPU; each pair draws from a stream of its own, so that
    the order of sentences and the batches do not matter.

    A sentence of one token gives a 1 x 1 zero. Raises ValueError that names the sentence if it
    is empty, too long for the model, or has NaN or infinite logits; for an unknown estimator, a
    setting out of range, and a tokenizer without a mask token.
    """
    settings = Settings(estimator, head, tail, sweeps, steps, burn_in, window)
    _check(settings, batch_rows)
    if isinstance(tokenizer_or_vocabulary, MaskingVocabulary):
        mask_token_id = tokenizer_or_vocabulary.mask_token_id
    else:
        mask_token_id = MaskingVocabulary.from_tokenizer(tokenizer_or_vocabulary).mask_token_id
    _check_allowed(allowed_ids, model.config.vocab_size)
    encoded = encode_sentences(model, tokenizer_or_vocabulary, sentences)
    model.eval()
    reader = Reader(model, mask_token_id, batch_rows, allowed_ids)
    seed = int(torch.randint(2**62, (1,), generator=generator))
    files = _files(folder, model, encoded, settings, seed, allowed_ids)
    results = [None if file is None else load_information(file) for file in files]
    todo = [number for number, result in enumerate(results) if result is None]
    for number, result in _measured(reader, encoded, todo, settings, seed, progress):
        results[number] = result
        if files[number] is not None:
            save_information(files[number], result)
    return results


def _measured(
    reader: Reader,
    encoded: Sequence[Encoded],
    todo: Sequence[int],
    settings: Settings,
    seed: int,
    progress: bool,
) -> Iterator[tuple[int, SentenceInformation]]:
    """Each sentence's number and result as soon as its last pair is done, short ones first."""
    estimator = ESTIMATORS[settings.estimator]
    block = estimator.block(reader.size, settings)
    pairs = {number: encoded[number].pairs(settings.window) for number in todo}
    open_sentences = {number: _Matrices(encoded[number], len(pairs[number])) for number in todo}
    total = sum(map(len, pairs.values()))
    with tqdm(total=total, disable=None if progress else True, leave=False, unit="pair") as bar:
        for number in [number for number in todo if not pairs[number]]:
            yield number, open_sentences.pop(number).finished(0)
        by_length = sorted(open_sentences, key=lambda number: len(encoded[number].ids))
        for _, group in itertools.groupby(by_length, lambda number: len(encoded[number].ids)):
            work = ((number, i, j) for number in group for i, j in pairs[number])
            while batch := list(itertools.islice(work, block)):
                made = [seeded_pair(encoded[number], i, j, seed) for number, i, j in batch]
                found = estimator.estimate(reader, made, settings)
                bar.update(len(batch))
                for (number, i, j), information in zip(batch, found, strict=True):
                    matrices = open_sentences[number]
                    matrices.enter(i, j, information)
                    if not matrices.left:
                        rows = reader.rows[encoded[number].name]
                        yield number, open_sentences.pop(number).finished(rows)


class _Matrices:
    """The matrices of one sentence while its pairs come in."""

    def __init__(self, sentence: Encoded, pairs: int) -> None:
        shape = (len(sentence), len(sentence))
        self.sentence, self.left = sentence, pairs
        self.information, self.captured = np.zeros(shape), np.full(shape, math.nan)

    def enter(self, i: int, j: int, pair: PairInformation) -> None:
        self.information[i, j], self.information[j, i] = pair.sides
        self.captured[i, j], self.captured[j, i] = pair.captured
        self.left -= 1

    def finished(self, rows: int) -> SentenceInformation:
        sentence = self.sentence
        return SentenceInformation(
            self.information, self.captured, rows, sentence.word_of, sentence.words
        )


def _files(
    folder: Path | None,
    model: nn.Module,
    encoded: Sequence[Encoded],
    settings: Settings,
    seed: int,
    allowed_ids: Tensor | None,
) -> list[Path | None]:
    if folder is None:
        return [None] * len(encoded)
    allowed = b"" if allowed_ids is None else allowed_ids.cpu().numpy().tobytes()
    made = (weights_digest(model), repr(sorted(asdict(settings).items())).encode(), allowed)
    words = [sentence.word_of.tobytes() for sentence in encoded]
    return [
        file_of(folder, *made, str(seed).encode(), sentence.identity, own)
        for sentence, own in zip(encoded, words, strict=True)
    ]


def _check(settings: Settings, batch_rows: int) -> None:
    if settings.estimator not in ESTIMATORS:
        near = difflib.get_close_matches(settings.estimator, ESTIMATORS, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"unknown estimator {settings.estimator!r}{hint}; known: {', '.join(ESTIMATORS)}"
        )
    least = {"head": 1, "tail": 0, "sweeps": 1, "steps": 1, "window": 1, "batch_rows": 1}
    given = {**asdict(settings), "batch_rows": batch_rows}
    for name, bound in least.items():
        if given[name] is not None and given[name] < bound:
            raise ValueError(f"{name} is {given[name]}; it must be at least {bound}")
    if not 0 <= settings.burn_in < 1:
        raise ValueError(f"burn_in is {settings.burn_in}; it is a share of the steps in [0, 1)")


def _check_allowed(allowed_ids: Tensor | None, size: int) -> None:
    if allowed_ids is None:
        return
    distinct = allowed_ids.unique()
    if allowed_ids.dtype != torch.int64 or len(distinct) != len(allowed_ids) or len(distinct) < 2:
        raise ValueError(
            "allowed_ids must be a one-dimensional int64 tensor of distinct ids, two or more"
        )
    if distinct[0] < 0 or distinct[-1] >= size:
        raise ValueError(f"allowed_ids must lie in 0..{size - 1}")
