"""Chapter 3: does the change in the language model's prediction predict that in the classifier's?

Important words of test sentences are replaced, by a synonym or, as a control, by a random word.
The change of prediction is measured on both sides of each pair: in classifiers f that were
fine-tuned from a masked language model, and in that model f0, asked through templates. If f
generalises because f0 treats the two sentences alike, the two changes go together.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from nltk.tokenize import RegexpTokenizer
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from transformers import PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from unmasked import data, models, perturb, templates
from unmasked.correlation import (
    METHODS,
    clustered_correlation,
    detectable_correlation,
    jensen_shannon,
    total_variation,
)
from unmasked.experiments.lexicon_tasks import TaskName, tasks_checksum
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.experiments.sentence_classifiers import (
    FRAME,
    Classifier,
    FineTuning,
    Sentences,
    trained,
    untrained,
)
from unmasked.perturb import IDENTITY, RANDOM, SYNONYM, Perturbation

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
TASK, MEANS, WITH, PHRASE = "task", "means", "with", "phrase"
TEMPLATES = (TASK, MEANS, WITH, PHRASE)
DIVERGENCES: Mapping[str, Callable[..., NDArray[np.float64]]] = {
    "total variation": total_variation,
    "jensen-shannon": jensen_shannon,
}
TV = "total variation"
FINAL, TWIN, UNTRAINED = "fine-tuned", "twin", "before fine-tuning"
CORRELATION, SHARE = "correlation", "share"
_WORDS = RegexpTokenizer(r"\w+(?:['-]\w+)*|[^\w\s]+")
MAIN = ("pearson", TV)
TWIN_OFFSET = 1_000


class ParaphraseConfig(BaseModel):
    """Data sets, the language model, how it is fine-tuned, and how many sentences are changed."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    data: Annotated[tuple[TaskName, ...], Field(min_length=1)]
    model: str = "book_model"
    max_length: Annotated[int, Field(ge=24)]
    train_sentences: Positive
    test_sentences: Annotated[int, Field(ge=2)]
    words: Positive = 4
    shares: tuple[Share, ...] = ()
    epochs: Positive
    batch_size: Positive = 32
    learning_rate: Annotated[float, Field(gt=0, lt=1)]
    snapshots: Positive
    scatter: Positive = 200

    @property
    def how(self) -> FineTuning:
        """The recipe of every classifier."""
        return FineTuning(
            self.epochs, self.batch_size, self.learning_rate, self.snapshots, self.max_length
        )


@dataclass(frozen=True)
class Pairs:
    """Perturbed sentences of one kind, and what was perturbed: the word classes."""

    changes: tuple[Perturbation, ...]
    kinds: tuple[str, ...]

    @property
    def sentences(self) -> NDArray[np.int64]:
        """The number of each pair's sentence."""
        return np.array([change.sentence for change in self.changes])


def compute_paraphrase_changes(config: ParaphraseConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Correlations of the changes, their ceiling and controls, by data set."""
    start, tokenizer = load_named(config.model)
    blank = models.masked_language_model(start.config, seed).eval()
    for name in config.data:
        sentences = Sentences.load(
            name, tokenizer, config.max_length, config.train_sentences, config.test_sentences
        )
        found = _classifiers(config, start, sentences, seed, workdir / name)
        for key, each in found.items():
            where = {"data": name, "classifier": key, "share": each.share, "step": each.step}
            yield _row("accuracy", each.accuracy, SHARE, len(sentences.test.texts), **where)
        final = found[FINAL].model
        for offset in (False, True):
            kinds = (SYNONYM,) if offset else (SYNONYM, RANDOM, IDENTITY)
            pairs = perturbed(config, final, sentences, kinds, seed, released_offset=offset)
            where = {"data": name, "importance": "released" if offset else "correct"}
            for kind, some in pairs.items():
                at = {**where, "replacement": kind}
                measured = {key: found[key] for key in ([FINAL] if offset else found)}
                yield from _changes(config, measured, start, blank, tokenizer, some, seed, **at)
        shutil.rmtree(workdir / name)


def data_checksum(config: ParaphraseConfig) -> str:
    """Which model, texts and dictionary the rows rest on."""
    texts = tasks_checksum(config.data, 1, "test file")
    return f"{named_checksum(config.model)}+{texts}+{data.wordnet_checksum()[:16]}"


def perturbed(
    config: ParaphraseConfig,
    classifier: nn.Module,
    sentences: Sentences,
    kinds: Sequence[str],
    seed: int,
    *,
    released_offset: bool,
) -> dict[str, Pairs]:
    """The most important words of each test sentence replaced, one word a pair, by kind.

    A word is left out of all kinds where it has no synonym, or where a changed sentence would not
    leave room for a template, so that kinds are compared on equal words.
    """
    generator = np.random.default_rng([seed, 4])
    changes: dict[str, list[Perturbation]] = {kind: [] for kind in kinds}
    classes: list[str] = []
    for number, text in enumerate(sentences.test.texts):
        words = _WORDS.tokenize(text)
        candidates = perturb.candidate_words(words)
        if not candidates:
            continue
        scores = perturb.importance(classifier, sentences.tokenizer, words, candidates)
        chosen = perturb.most_important(*scores, config.words, released_offset)
        for candidate in (candidates[i] for i in chosen):
            made = [
                perturb.replace_word(words, candidate, kind, generator, number) for kind in kinds
            ]
            if all(made) and all(_fits(config, sentences.tokenizer, each.changed) for each in made):
                classes.append(candidate.kind)
                for kind, change in zip(kinds, made, strict=True):
                    changes[kind].append(change)
    return {kind: Pairs(tuple(some), tuple(classes)) for kind, some in changes.items()}


def _fits(config: ParaphraseConfig, tokenizer: Tokenizer, text: str) -> bool:
    return len(tokenizer.tokenize(text)) <= config.max_length - FRAME


@torch.no_grad()
def mask_predictions(
    model: PreTrainedModel, tokenizer: Tokenizer, texts: Sequence[str], ids: Sequence[int] | None
) -> NDArray[np.float64]:
    """(N, V) or (N, len(ids)) distributions at the one mask of each text, over `ids` if given.

    Raises ValueError for a text whose mask was cut off, or that has several.
    """
    limit = model.config.max_position_embeddings
    device = next(model.parameters()).device
    out = []
    for first in range(0, len(texts), 32):
        inputs = tokenizer(
            list(texts[first : first + 32]), padding=True, truncation=True, max_length=limit,
            return_tensors="pt",
        ).to(device)  # fmt: skip
        masked = inputs["input_ids"] == tokenizer.mask_token_id
        if not bool((masked.sum(1) == 1).all()):
            row = first + int((masked.sum(1) != 1).nonzero()[0])
            raise ValueError(f"text {row} has no mask, or several, within {limit} pieces")
        logits = model(**inputs).logits[masked].double()
        out.append((logits if ids is None else logits[:, list(ids)]).softmax(-1).cpu().numpy())
    return np.concatenate(out)


def template_change(
    model: PreTrainedModel, tokenizer: Tokenizer, pairs: Pairs, template: str
) -> dict[str, NDArray[np.float64]]:
    """Divergence -> (pairs,) change of the language model's prediction under one template."""
    ids = templates.verbaliser_ids(templates.SST2_TASK, tokenizer) if template == TASK else None
    changes: dict[str, list[NDArray[np.float64]]] = {name: [] for name in DIVERGENCES}
    for first in range(0, len(pairs.changes), 128):  # (128, V) distributions at a time
        part = list(zip(pairs.changes, pairs.kinds, strict=True))[first : first + 128]
        before, after = (
            mask_predictions(
                model, tokenizer, [_filled(template, *each, side, tokenizer) for each in part], ids
            )
            for side in (0, 1)
        )
        for name, divergence in DIVERGENCES.items():
            changes[name].append(divergence(before, after))
    return {name: np.concatenate(parts) for name, parts in changes.items()}


def _filled(template: str, change: Perturbation, kind: str, side: int, tokenizer: Tokenizer) -> str:
    """A template filled with the original (side 0) or the changed sentence, or word."""
    if template == PHRASE:
        word = (change.word, change.replacement)[side]
        return templates.fill(templates.phrase_template(kind), word, tokenizer.mask_token)
    frame = {TASK: templates.SST2_TASK, MEANS: templates.MEANS, WITH: templates.WITH}[template]
    return templates.fill(frame, (change.original, change.changed)[side], tokenizer.mask_token)


def _classifiers(
    config: ParaphraseConfig, start: PreTrainedModel, sentences: Sentences, seed: int, folder: Path
) -> dict[str, Classifier]:
    """All classifiers of one data set and seed, by name; the final one first."""
    how, found = config.how, {}
    once = replace(how, snapshots=1)
    *early, final = trained(start, sentences, how, 1.0, seed, folder / "all")
    found[FINAL] = final
    found |= {f"step {each.step}": each for each in early}
    for share in config.shares:
        last = list(trained(start, sentences, once, share, seed, folder / f"share-{share:g}"))[-1]
        found[f"share {share:g}"] = last
    twin = trained(start, sentences, once, 1.0, seed + TWIN_OFFSET, folder / "twin")
    found[TWIN] = list(twin)[-1]
    exam = untrained(start, sentences.classes, seed)
    labels = np.array(sentences.test.labels)
    right = classified(exam, sentences.tokenizer, sentences.test.texts).argmax(1) == labels
    found[UNTRAINED] = Classifier(exam, float(right.mean()), 0.0, 0)
    return found


def classified(model: nn.Module, tokenizer: Tokenizer, texts: Sequence[str]) -> NDArray[np.float64]:
    """(N, classes) probabilities."""
    return perturb.class_probabilities(model, tokenizer, texts)


def _changes(
    config: ParaphraseConfig,
    classifiers: Mapping[str, Classifier],
    start: PreTrainedModel,
    blank: PreTrainedModel,
    tokenizer: Tokenizer,
    pairs: Pairs,
    seed: int,
    **where: object,
) -> Iterator[Row]:
    """Mean changes and correlations for one kind of replacement."""
    texts = [[getattr(c, side) for c in pairs.changes] for side in ("original", "changed")]
    f = {}
    for key, each in classifiers.items():
        before, after = (classified(each.model, tokenizer, some) for some in texts)
        f[key] = {name: how(before, after) for name, how in DIVERGENCES.items()}
    f0 = {name: template_change(start, tokenizer, pairs, name) for name in TEMPLATES}
    count = len(pairs.changes)
    for key, changes in f.items():
        yield _row("mean_change_f", changes[TV].mean(), SHARE, count, classifier=key, **where)
    for name, changes in f0.items():
        yield _row("mean_change_f0", changes[TV].mean(), SHARE, count, template=name, **where)
    if where["replacement"] == IDENTITY:
        return
    for key, changes in f.items():
        for name in TEMPLATES:
            at = {**where, "classifier": key, "template": name}
            found = _correlated("", f0[name], changes, pairs, seed, **at)
            whole = key == FINAL  # of the others the main coefficient alone
            yield from (r for r in found if whole or (r["metric"], r["divergence"]) == MAIN)
    if TWIN in f:
        at = {**where, "classifier": FINAL}
        yield from _correlated("ceiling_", f[TWIN], f[FINAL], pairs, seed, **at)
        random = template_change(blank, tokenizer, pairs, TASK)
        yield from _correlated("random_f0_", random, f[FINAL], pairs, seed, **at, template=TASK)
        within = _within(f[FINAL][TV], pairs.sentences)
        sentences, generator = len(set(pairs.sentences)), np.random.default_rng([seed, 6])
        least = detectable_correlation(sentences, max(1, count // sentences), within, generator)
        yield _row("detectable", least, CORRELATION, count, **where)
        yield _row("within_sentence", within, SHARE, count, **where)
        yield _row("sentences", sentences, "count", sentences, **where)
    if seed == 0 and where["importance"] == "correct" and where["replacement"] == SYNONYM:
        for number in range(min(config.scatter, count)):
            at = {**where, "classifier": FINAL, "template": TASK, "pair": number}
            yield _row("change_f", f[FINAL][TV][number], SHARE, 1, **at)
            yield _row("change_f0", f0[TASK][TV][number], SHARE, 1, **at)


def _correlated(
    prefix: str,
    first: Mapping[str, NDArray[np.float64]],
    second: Mapping[str, NDArray[np.float64]],
    pairs: Pairs,
    seed: int,
    **where: object,
) -> Iterator[Row]:
    """Pearson's and Spearman's coefficient with the ends of their intervals over sentences."""
    for name in DIVERGENCES:
        for method in METHODS:
            found = clustered_correlation(
                first[name], second[name], pairs.sentences, np.random.default_rng([seed, 5]), method
            )
            at = {**where, "divergence": name}
            ends = {"": found.value, "_low": found.low, "_high": found.high}
            for end, value in ends.items():
                yield _row(f"{prefix}{method}{end}", value, CORRELATION, found.pairs, **at)


def _within(values: NDArray[np.float64], clusters: NDArray[np.int64]) -> float:
    """Intraclass correlation: the share of the variance that pairs of a sentence have in common."""
    numbers = np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(numbers)
    means = np.bincount(numbers, values) / sizes
    inside = ((values - means[numbers]) ** 2).sum() / max(1, len(values) - len(sizes))
    between = (sizes * (means - values.mean()) ** 2).sum() / max(1, len(sizes) - 1)
    size = len(values) / len(sizes)
    share = (between - inside) / (between + (size - 1) * inside)
    return float(np.clip(share, 0, 0.99))


def _row(metric: str, value: float, unit: str, n: int, **where: object) -> Row:
    names = (
        "data", "importance", "replacement", "classifier", "share", "step", "template",
        "divergence", "pair",
    )  # fmt: skip
    known = {**dict.fromkeys(names), **where}
    return {**known, "metric": metric, "value": float(value), "unit": unit, "n": int(n)}
