"""What mutual information costs: head + tail beside the official chain, and beside itself.

The chain stands here as published: two forward passes a step, each with the head on every position,
in batches of 256 pairs. It is timed for a few steps, since its time is linear in them, and it is
spared the storage of all its distributions. Everything is stated for a whole sentence, from some of
its pairs. Beside the times stands the error of both against `exact`, measured in the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from unmasked.experiments.estimators import (
    BATCH_ROWS,
    CountingReader,
    EstimatorsConfig,
    Source,
    estimate,
    exact_information,
    off_diagonal,
    settings_of,
    text_source,
)
from unmasked.experiments.estimators import data_checksum as estimators_checksum
from unmasked.experiments.named_models import load_named
from unmasked.masking import MaskingVocabulary
from unmasked.mi_estimators import ESTIMATORS
from unmasked.mi_rows import Reader, seeded_pair
from unmasked.mi_sentences import Encoded, encode_sentences
from unmasked.models import bert_config, masked_language_model
from unmasked.timing import Ratio, interleaved, seconds

Row = Mapping[str, object]
Positive = Annotated[int, Field(ge=1)]
CALLS = ("head_tail", 64)  # the estimator whose growth is shown


class EstimatorCostConfig(BaseModel):
    """The model and what of it is timed.

    The published chain has `published_steps` steps in batches of `published_batch` pairs; of those
    `timed_steps` steps are run, and `timed_pairs` of a sentence's pairs elsewhere. `lengths`
    are words of the sentences and `vocabularies` sizes of random-weights models to show growth;
    `accuracy_sentences` with predictions over `values` word pieces give the errors.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    checkpoint: str
    words: Annotated[int, Field(ge=3)] = 10
    published_steps: Positive = 2000
    published_batch: Positive = 256
    timed_steps: Positive
    timed_pairs: Positive
    repeats: Positive
    lengths: tuple[Positive, ...]
    vocabularies: tuple[Positive, ...]
    size: str = "mini"
    values: Annotated[int, Field(ge=2)]
    accuracy_sentences: Positive


@dataclass(frozen=True)
class Benchmark:
    """Seconds a sentence of the published chain over those of an estimator, and the goal.

    `setting` is the head, and the tail, or None for a chain as long as the published one.
    """

    label: str
    estimator: str
    setting: int | None
    goal: float | None = None


BENCHMARKS = MappingProxyType(
    {
        **{
            f"information_{size}": Benchmark(
                f"information, head + tail {size} + {size}", "head_tail", size, 40.0
            )
            for size in (32, 48, 64)
        },
        "information_rb": Benchmark("information, whole-row chain", "gibbs_rb", None),
    }
)


def data_checksum(config: EstimatorCostConfig) -> str:
    """What the rows rest on: the named model and the held-out reviews."""
    return estimators_checksum(_accuracy_config(config))


def compute_estimator_cost(config: EstimatorCostConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Ratios of times, seconds and forward rows of a sentence, growth, and errors."""
    for name in BENCHMARKS:
        ratio = measured(name, config)
        yield from ratio_rows(name, ratio)
        yield _row(name, BENCHMARKS[name].label, "seconds", ratio.fast_seconds, "s", ratio.repeats)
    yield _row("published", published_label(config), "seconds", ratio.slow_seconds, "s",
               ratio.repeats)  # fmt: skip
    yield from _growth_rows(config)
    yield from _accuracy_rows(config, seed)


def published_label(config: EstimatorCostConfig) -> str:
    """What was timed of the published chain."""
    return f"published chain of {config.published_steps:,} steps, from {config.timed_steps} of them"


def measured(name: str, config: EstimatorCostConfig) -> Ratio:
    """One benchmark, timed now; its seconds are those of a whole sentence."""
    benchmark = BENCHMARKS[name]
    text = text_source(_accuracy_config(config), 0)
    sentence = text.sentences[0]
    slow = partial(published_gibbs, text.model, text.mask_token_id, sentence,
                   config.published_batch, config.timed_steps)  # fmt: skip
    setting = benchmark.setting or config.published_steps
    fast = timed_estimate(text.model, text.mask_token_id, sentence, benchmark.estimator, setting,
                          config.timed_pairs)  # fmt: skip
    ratio = interleaved(slow, fast, config.repeats)
    pairs = len(sentence.pairs(None))
    slow_scale = config.published_steps / config.timed_steps * pairs / config.published_batch
    fast_scale = pairs / min(config.timed_pairs, pairs)
    scale = slow_scale / fast_scale
    return replace(
        ratio, median=ratio.median * scale, low=ratio.low * scale, high=ratio.high * scale,
        slow_seconds=ratio.slow_seconds * slow_scale, fast_seconds=ratio.fast_seconds * fast_scale,
    )  # fmt: skip


def ratio_rows(name: str, ratio: Ratio) -> Iterator[Row]:
    """The rows of one benchmark: median, low and high of the ratio."""
    for metric, value in (("median", ratio.median), ("low", ratio.low), ("high", ratio.high)):
        yield _row(name, BENCHMARKS[name].label, metric, value, "s/s", ratio.repeats)


@torch.inference_mode()
def published_gibbs(
    model: nn.Module, mask_token_id: int, sentence: Encoded, batch: int, steps: int
) -> Tensor:
    """The official chain on a batch of pairs: information (batch, 2), nats, of both sides.

    The sentence's pairs are repeated to fill the batch, a fifth of the steps is dropped, and draws
    are torch's global ones. Only sums of the distributions are kept.
    """
    pairs, burn_in = sentence.pairs(None), steps // 5
    chosen = torch.tensor([pairs[k % len(pairs)] for k in range(batch)])
    places = sentence.positions[chosen].to(model.device)
    rows = sentence.ids.repeat(batch, 1).to(model.device)
    rows.scatter_(1, places, mask_token_id)
    everything = torch.ones_like(rows)
    number = torch.arange(batch, device=model.device)
    sums = torch.zeros(batch, 2, model.config.vocab_size, device=model.device)
    drawn, logs = [], []
    for step in range(steps):
        for side in (0, 1):
            rows[number, places[:, side]] = mask_token_id
            logits = model(input_ids=rows, attention_mask=everything).logits
            p = logits[number, places[:, side]].softmax(-1)
            value = torch.multinomial(p, 1)[:, 0]
            rows[number, places[:, side]] = value
            if step >= burn_in:
                sums[:, side] += p
                drawn.append(value)
                logs.append(p[number, value].log())
    kept = steps - burn_in
    drawn, logs = (torch.stack(part).view(kept, 2, -1).permute(2, 1, 0) for part in (drawn, logs))
    return (logs - (sums / kept).gather(2, drawn).log()).mean(2)


def timed_estimate(
    model: nn.Module,
    mask_token_id: int,
    sentence: Encoded,
    name: str,
    setting: int,
    pairs: int,
) -> Callable[[], int]:
    """An estimator on some pairs, evenly spread, with nothing remembered; returns its rows."""
    every = sentence.pairs(None)
    chosen = [every[k] for k in np.linspace(0, len(every) - 1, min(pairs, len(every))).round()
              .astype(int)]  # fmt: skip
    settings = settings_of(name, setting)

    @torch.inference_mode()
    def run() -> int:
        reader = Reader(model, mask_token_id, BATCH_ROWS, None)
        size = ESTIMATORS[name].block(reader.size, settings)
        for first in range(0, len(chosen), size):
            part = [seeded_pair(sentence, i, j, 0) for i, j in chosen[first : first + size]]
            ESTIMATORS[name].estimate(reader, part, settings)
        return reader.rows.total()

    return run


def sample_sentence(model: nn.Module, vocabulary: MaskingVocabulary, words: int) -> Encoded:
    """A framed sentence of random ordinary tokens: the default reads as many rows for any."""
    generator = torch.Generator().manual_seed(0)
    ordinary = vocabulary.ordinary_ids
    drawn = ordinary[torch.randint(len(ordinary), (words,), generator=generator)]
    edge = torch.tensor([vocabulary.special_ids[0]])
    return encode_sentences(model, vocabulary, [torch.cat([edge, drawn, edge])])[0]


def _growth_rows(config: EstimatorCostConfig) -> Iterator[Row]:
    """Seconds a sentence and rows a second of the default estimator by length and vocabulary."""
    model, vocabulary = _named(config)
    for words in config.lengths:
        yield from _timed_rows("length", f"{words} words", model, vocabulary, words, config)
    for size in config.vocabularies:
        small = masked_language_model(
            bert_config(config.size, size, max_length=config.words + 2), 0
        )
        own = MaskingVocabulary(size, 4, tuple(range(5)))
        label = f"{size:,} word pieces"
        yield from _timed_rows("vocabulary", label, small.eval(), own, config.words, config)


def _timed_rows(
    benchmark: str,
    label: str,
    model: nn.Module,
    vocabulary: MaskingVocabulary,
    words: int,
    config: EstimatorCostConfig,
) -> Iterator[Row]:
    sentence = sample_sentence(model, vocabulary, words)
    every, timed = len(sentence.pairs(None)), config.timed_pairs
    run = timed_estimate(model, vocabulary.mask_token_id, sentence, *CALLS, timed)
    spent, rows, n = seconds(run, config.repeats), run(), config.repeats
    scale = every / min(timed, every)
    yield _row(benchmark, label, "seconds", spent * scale, "s", n)
    yield _row(benchmark, label, "rows", rows * scale, "rows", n)
    yield _row(benchmark, label, "throughput", rows / spent, "rows/s", n)


def _accuracy_rows(config: EstimatorCostConfig, seed: int) -> Iterator[Row]:
    """Errors against `exact` of what is timed, on the reduced vocabulary."""
    source: Source = text_source(_accuracy_config(config), seed)
    steps = config.published_steps
    compared = [("gibbs", steps, "published chain")]
    compared += [(b.estimator, b.setting or steps, b.label) for b in BENCHMARKS.values()]
    errors: dict[str, list[np.ndarray]] = {label: [] for _, _, label in compared}
    for sentence, allowed in zip(source.sentences, source.allowed, strict=True):
        reader = CountingReader(source.model, source.mask_token_id, BATCH_ROWS, allowed)
        truth = exact_information(reader, sentence)
        for name, setting, label in compared:
            found = estimate(reader, sentence, name, setting, seed).information
            errors[label].append(off_diagonal(found - truth))
    for label, parts in errors.items():
        sizes = np.abs(np.concatenate(parts))
        rmse, median = float(np.sqrt(np.mean(sizes**2))), float(np.median(sizes))
        yield _row("accuracy", label, "rmse", rmse, "nats", sizes.size)
        yield _row("accuracy", label, "median_error", median, "nats", sizes.size)


def _accuracy_config(config: EstimatorCostConfig) -> EstimatorsConfig:
    return EstimatorsConfig(
        checkpoint=config.checkpoint, words=config.words, values=config.values,
        text_sentences=config.accuracy_sentences, language_words=64, language_sentences=1,
        training_sentences=1, training_steps=1, heads=(1,), steps=(1,),
    )  # fmt: skip


def _named(config: EstimatorCostConfig) -> tuple[nn.Module, MaskingVocabulary]:
    model, tokenizer = load_named(config.checkpoint)
    return model, MaskingVocabulary.from_tokenizer(tokenizer)


def _row(benchmark: str, label: str, metric: str, value: float, unit: str, n: int) -> Row:
    goal = BENCHMARKS[benchmark].goal if benchmark in BENCHMARKS else None
    return {"benchmark": benchmark, "label": label, "goal": goal, "metric": metric,
            "value": value, "unit": unit, "n": n}  # fmt: skip
