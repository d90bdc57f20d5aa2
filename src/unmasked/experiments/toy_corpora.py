"""The sentences of the toy cloze experiment: which are pretrained on, fine-tuned on, tested on.

The training split is put into a fixed random order. Its first half is for pretraining; validation
sentences and the fine-tuning pool come from the second half. The pool of the released code of Zhang
and Hashimoto 2021 starts a quarter in: a third of it was seen, label and all, in pretraining.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType

import numpy as np
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from unmasked import data
from unmasked.cloze import append_token, label_word_ids
from unmasked.evaluation import evaluate_classifier
from unmasked.masking import MaskingVocabulary
from unmasked.project import UserError
from unmasked.tokens import Sequences, encode, train_tokenizer

LABEL_WORDS = ("negative", "positive")  # word c stands for label c
TEST_SPLITS = MappingProxyType({"movie_reviews": "test", "sst2": "validation"})


@dataclass(frozen=True)
class Texts:
    """Which texts, and how they become pieces; `validation` counts sentences."""

    name: str
    tokenizer: str | None
    vocabulary_size: int
    max_length: int
    validation: int


@dataclass(frozen=True)
class ToyData:
    """Encoded sentences `[CLS] ... [SEP]` without their labels, in the order of the split.

    `labels` int64, one for each of `sentences`; `test` holds sentences that end `[MASK] [SEP]`, and
    their labels. Of the sentences the first `half` are for pretraining, the next `validation` for
    choosing a checkpoint.
    """

    name: str
    sentences: Sequences
    labels: np.ndarray
    test: tuple[Sequences, np.ndarray]
    half: int
    validation: int
    label_ids: tuple[int, ...]
    vocabulary: MaskingVocabulary

    def pretraining(self, shuffler: np.random.Generator | None = None) -> Sequences:
        """The pretraining half with label words, or with shuffled label words: the control."""
        labels = self.labels[: self.half]
        return self._worded(range(self.half), shuffler.permutation(labels) if shuffler else labels)

    @cached_property
    def held_out(self) -> Sequences:
        """The validation sentences with their label words."""
        rows = self._validation_rows
        return self._worded(rows, self.labels[rows])

    @cached_property
    def hidden(self) -> Sequences:
        """Every sentence of the training split with [MASK] in the label's place."""
        return hide_labels(self.sentences, self.vocabulary)

    def disjoint_pool(self) -> np.ndarray:
        """Rows that pretraining and validation have not seen."""
        return np.arange(self.half + self.validation, len(self.sentences))

    def overlapping_pool(self) -> np.ndarray:
        """The same and the later half of the pretraining rows: a third was pretrained on."""
        return np.concatenate([np.arange(self.half // 2, self.half), self.disjoint_pool()])

    def accuracies(self, classifier: nn.Module) -> dict[str, float]:
        """Accuracy on the validation sentences and on the test sentences."""
        rows = self._validation_rows
        exams = {"validation": (self._exam, self.labels[rows]), "test": self.test}
        return {
            name: evaluate_classifier(classifier, *exam)["accuracy"] for name, exam in exams.items()
        }

    @cached_property
    def _exam(self) -> Sequences:
        return self.hidden.select(self._validation_rows)

    @property
    def _validation_rows(self) -> np.ndarray:
        return np.arange(self.half, self.half + self.validation)

    def _worded(self, rows, labels: np.ndarray) -> Sequences:
        return append_token(self.sentences.select(rows), np.array(self.label_ids)[labels])


@lru_cache(maxsize=2)
def prepared(texts: Texts) -> ToyData:
    """The data of a configuration, the same for every seed.

    Raises UserError if fewer than one sentence would be left to fine-tune on, or if the named
    tokenizer cannot be had.
    """
    train = data.load(texts.name, "train")
    order = np.random.default_rng(0).permutation(len(train))
    half = len(order) // 2
    if half + texts.validation >= len(order):
        raise UserError(
            f"validation_sentences is {texts.validation}, but the second half of {texts.name} has "
            f"{len(order) - half} sentences, of which some must be left to fine-tune on."
        )
    read, known = train["text"][:], np.array(train["label"], dtype=np.int64)[order]
    ordered = [read[i] for i in order]
    tokenizer = _tokenizer(texts, ordered[:half], known)
    vocabulary = MaskingVocabulary.from_tokenizer(tokenizer)
    exam = data.load(texts.name, TEST_SPLITS[texts.name])
    length = texts.max_length - 1  # one place is the label's
    test = hide_labels(encode(exam["text"], tokenizer, length, split_long=False), vocabulary)
    return ToyData(
        texts.name, encode(ordered, tokenizer, length, split_long=False), known,
        (test, np.array(exam["label"], dtype=np.int64)), half, texts.validation,
        label_word_ids(tokenizer, LABEL_WORDS), vocabulary,
    )  # fmt: skip


def hide_labels(sentences: Sequences, vocabulary: MaskingVocabulary) -> Sequences:
    """The sentences with [MASK] appended in the label's place."""
    return append_token(sentences, np.full(len(sentences), vocabulary.mask_token_id))


def drawn(pool: np.ndarray, size: int, generator: np.random.Generator, name: str) -> np.ndarray:
    """`size` rows of the pool; a larger sample of an equal generator holds a smaller one.

    Raises UserError, with both numbers, if the pool is smaller.
    """
    if size > len(pool):
        raise UserError(f"{size} sentences were asked of the {name}, which has {len(pool)}.")
    return generator.permutation(pool)[:size]


def _tokenizer(texts: Texts, sentences: list[str], labels: np.ndarray) -> PreTrainedTokenizerBase:
    """The named tokenizer, or one trained on the sentences with their label words appended."""
    if texts.tokenizer is None:
        worded = (
            f"{sentence} {LABEL_WORDS[label]}"
            for sentence, label in zip(sentences, labels[: len(sentences)], strict=True)
        )
        return train_tokenizer(worded, texts.vocabulary_size, model_max_length=texts.max_length)
    try:
        return AutoTokenizer.from_pretrained(texts.tokenizer)
    except (OSError, ValueError) as error:
        reason = (str(error).strip().splitlines() or ["no message"])[0][:300]
        raise UserError(
            f"The tokenizer {texts.tokenizer!r} cannot be loaded ({reason}). Give a folder with a "
            "saved tokenizer, the name of one of the hub, or none to train a vocabulary."
        ) from error
