"""What the work costs: this package beside the reference implementation, and beside itself.

Every benchmark is a pair of functions that do the same work, timed in turns. The reference is
transformers' `BertForMaskedLM` with its `DataCollatorForLanguageModeling`, used as its manual does.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
import torch
from accelerate import Accelerator
from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from transformers import (
    BertForMaskedLM,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    get_linear_schedule_with_warmup,
)

from unmasked.checkpoints import Checkpoint, Progress
from unmasked.languages import RandomWalk
from unmasked.masking import MaskingVocabulary, mask_tokens
from unmasked.models import SIZES, MaskedLanguageModel, bert_config, training_flops_per_token
from unmasked.timing import Ratio, interleaved, seconds
from unmasked.tokens import SPECIAL_TOKENS

Row = Mapping[str, object]
Pair = tuple[Callable[[], object], Callable[[], object]]
Positive = Annotated[int, Field(ge=1)]


class CostConfig(BaseModel):
    """Sizes of what is timed: a training step of `batch_size` x `length`, and a mask of rows."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    size: Literal["tiny", "mini", "small", "base"]
    vocabulary_size: Annotated[int, Field(ge=100)]
    batch_size: Positive
    length: Annotated[int, Field(ge=8, le=512)]
    masking_rows: Positive
    repeats: Positive
    mask_probability: Annotated[float, Field(gt=0, lt=1)] = 0.15


@dataclass(frozen=True)
class Benchmark:
    """A comparison: what the ratio means, the least ratio we aim at, and the pair to time."""

    label: str
    pair: Callable[[CostConfig], Pair]
    goal: float | None = None


def compute_cost(config: CostConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """Median ratio of every benchmark with its range, throughput by shape, and sampling time."""
    torch.manual_seed(seed)
    for name in BENCHMARKS:
        yield from ratio_rows(name, measured(name, config))
    yield from _throughput_rows(config)
    yield _sampling_row(config, seed)


def measured(name: str, config: CostConfig) -> Ratio:
    """One benchmark, timed now."""
    return interleaved(*BENCHMARKS[name].pair(config), config.repeats)


def ratio_rows(name: str, ratio: Ratio) -> Iterator[Row]:
    """The rows of one benchmark: median, low and high of the ratio."""
    benchmark = BENCHMARKS[name]
    common = {"benchmark": name, "label": benchmark.label, "goal": benchmark.goal, "unit": "s/s"}
    for metric, value in (("median", ratio.median), ("low", ratio.low), ("high", ratio.high)):
        yield {**common, "metric": metric, "value": value, "n": ratio.repeats}


def _throughput_rows(config: CostConfig) -> Iterator[Row]:
    """Tokens a second of our training step by length, tokens kept, and by batch; utilisation.

    Utilisation is the useful arithmetic of `training_flops_per_token` over what the same device
    does in a large matrix product in the same precision, measured beside it.
    """
    batch, length = config.batch_size, config.length
    shapes = [(4 * batch, length // 4), (2 * batch, length // 2), (batch, length)]
    shapes += [(max(1, batch // 2), 2 * length), (max(1, batch // 4), length), (4 * batch, length)]
    peak = peak_flops(config.repeats)
    for rows, length in dict.fromkeys(shapes):
        step = our_step(config.model_copy(update={"batch_size": rows, "length": length}))
        rate = rows * length / seconds(step, config.repeats)
        flops = training_flops_per_token(
            bert_config(config.size, config.vocabulary_size), length, config.mask_probability
        )
        common = {"benchmark": "throughput", "label": f"{rows} x {length}", "goal": None,
                  "n": config.repeats}  # fmt: skip
        yield {**common, "metric": "throughput", "value": rate, "unit": "tokens/s"}
        yield {**common, "metric": "utilisation", "value": rate * flops / peak, "unit": "s/s"}


def _sampling_row(config: CostConfig, seed: int, share: int = 10) -> Row:
    """Seconds for 100,000 x 512 tokens of the published random walk: a tenth, ten times."""
    walk, generator = RandomWalk(), np.random.default_rng(seed)
    spent = seconds(lambda: walk.sample(100_000 // share, 512, generator), config.repeats)
    return {"benchmark": "random_walk", "label": "100,000 x 512 tokens, from a tenth of them",
            "goal": 30.0, "metric": "sampling", "value": share * spent, "unit": "s",
            "n": config.repeats}  # fmt: skip


def peak_flops(repeats: int, size: int = 1024) -> float:
    """Floating-point operations a second of a square float32 matrix product on the device."""
    device = Accelerator().device
    left, right = (torch.rand(size, size, device=device) for _ in range(2))

    def product() -> float:
        return float((left @ right)[0, 0])  # reading a number waits for the device

    return 2 * size**3 / seconds(product, repeats)


# --- the two sides -------------------------------------------------------------------------------


def our_step(
    config: CostConfig,
    *,
    dropout: float = 0.0,
    fused: bool = True,
    selection: str = "fixed_count",
    dense_head: bool = False,
    bf16: bool = False,
) -> Callable[[], float]:
    """One training step of this package: mask, forward, backward, update; returns the loss.

    It runs on the device that Accelerate finds; masks are made on the CPU, as in training. With
    `bf16` the forward pass is under autocast to bfloat16, as `Execution(bf16=True)` trains.
    """
    shape = bert_config(config.size, config.vocabulary_size, max_length=config.length,
                        dropout=dropout)  # fmt: skip
    model = (BertForMaskedLM if dense_head else MaskedLanguageModel)(shape)
    model = model.to(Accelerator().device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)
    vocabulary, ids = _vocabulary(config), _ids(config, config.batch_size)
    generator = torch.Generator().manual_seed(0)

    def step() -> float:
        batch = mask_tokens(ids, vocabulary, generator, config.mask_probability,
                            selection=selection)  # fmt: skip
        return _update(model, optimizer, batch.input_ids, batch.labels, bf16)

    return step


def reference_step(
    config: CostConfig, *, dropout: float = 0.1, fused: bool = False
) -> Callable[[], float]:
    """The same step with transformers' model and collator; the head runs at every position."""
    shape = bert_config(config.size, config.vocabulary_size, max_length=config.length,
                        dropout=dropout)  # fmt: skip
    model = BertForMaskedLM(shape).to(Accelerator().device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"fused": True} if fused else {}))
    collate, rows = _collator(config), _rows(config, config.batch_size)

    def step() -> float:
        batch = collate(rows)
        return _update(model, optimizer, batch["input_ids"], batch["labels"])

    return step


def _update(
    model: nn.Module, optimizer: torch.optim.Optimizer, ids, labels, bf16: bool = False
) -> float:
    with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
        loss = model(input_ids=ids.to(model.device), labels=labels.to(model.device)).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def _masking(selection: str, *, helped: bool = False) -> Callable[[CostConfig], Pair]:
    """Masks for rows of tokens; `helped` hands the collator the special tokens' places."""

    def pair(config: CostConfig) -> Pair:
        collate, rows = _collator(config), _rows(config, config.masking_rows)
        if helped:
            edge = [1, *([0] * (config.length - 2)), 1]
            rows = [{**row, "special_tokens_mask": edge} for row in rows]
        ids, vocabulary = _ids(config, config.masking_rows), _vocabulary(config)
        generator = torch.Generator().manual_seed(0)
        return lambda: collate(rows), lambda: mask_tokens(
            ids, vocabulary, generator, config.mask_probability, selection=selection
        )

    return pair


def _same_recipe(config: CostConfig) -> Pair:
    recipe = {"dropout": 0.1, "fused": True}
    return reference_step(config, **recipe), our_step(config, **recipe)


def _best_recipe(config: CostConfig) -> Pair:
    """Ours is in bfloat16 where the device multiplies faster in it (`bf16_product`)."""
    bf16 = measured("bf16_product", config).median > 1
    return reference_step(config), our_step(config, bf16=bf16)


def _bf16(config: CostConfig) -> Pair:
    """The feed-forward product of a step in float32 and in bfloat16, which some CPUs emulate."""
    device, width = Accelerator().device, SIZES[config.size][1]
    tokens = torch.rand(config.batch_size * config.length, width, device=device)
    weights = torch.rand(width, 4 * width, device=device)
    halves = tokens.bfloat16(), weights.bfloat16()
    return lambda: float((tokens @ weights)[0, 0]), lambda: float((halves[0] @ halves[1])[0, 0])


def _head(config: CostConfig) -> Pair:
    return our_step(config, dense_head=True), our_step(config)


def _selection(config: CostConfig) -> Pair:
    return our_step(config, selection="bernoulli"), our_step(config)


def _checkpoint(load: bool) -> Callable[[CostConfig], Pair]:
    """A training step beside writing a checkpoint, or beside reading one."""

    def pair(config: CostConfig) -> Pair:
        shape = bert_config(config.size, config.vocabulary_size, max_length=config.length)
        model = MaskedLanguageModel(shape)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()  # AdamW has no moments to save before its first step
        scheduler = get_linear_schedule_with_warmup(optimizer, 1, 2)
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        checkpoint = Checkpoint(Accelerator(cpu=True), model, optimizer, scheduler, {})
        checkpoint.save(folder, Progress())
        touch = partial(checkpoint.load, folder)
        return our_step(config), touch if load else partial(checkpoint.save, folder, Progress())

    return pair


BENCHMARKS = MappingProxyType(
    {
        "masking_fixed_count": Benchmark("masks, fixed count", _masking("fixed_count"), 15.0),
        "masking_bernoulli": Benchmark("masks, independent", _masking("bernoulli"), 15.0),
        "masking_helped_collator": Benchmark(
            "masks, collator told the special tokens", _masking("fixed_count", helped=True)
        ),
        "step_same_recipe": Benchmark("step, same recipe", _same_recipe, 1.5),
        "step_best_recipe": Benchmark("step, best recipe", _best_recipe, 3.0),
        "bf16_product": Benchmark("matrix product in bfloat16", _bf16),
        "head_at_masks": Benchmark("head at masks only", _head),
        "fixed_count_step": Benchmark("fixed count in a step", _selection),
        "step_over_save": Benchmark("a step, in savings of a checkpoint", _checkpoint(load=False)),
        "step_over_load": Benchmark("a step, in loadings of a checkpoint", _checkpoint(load=True)),
    }
)


def _vocabulary(config: CostConfig) -> MaskingVocabulary:
    count = len(SPECIAL_TOKENS)
    mask = SPECIAL_TOKENS.index("[MASK]")
    return MaskingVocabulary(config.vocabulary_size, mask, tuple(range(count)))


def _ids(config: CostConfig, rows: int) -> torch.Tensor:
    """Framed rows of ordinary tokens, int64 (rows, length)."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(
        len(SPECIAL_TOKENS), config.vocabulary_size, (rows, config.length), generator=generator
    )
    ids[:, 0], ids[:, -1] = (SPECIAL_TOKENS.index(token) for token in ("[CLS]", "[SEP]"))
    return ids


def _rows(config: CostConfig, rows: int) -> list[dict[str, list[int]]]:
    """The same rows as the collator takes them from a tokenized data set."""
    return [{"input_ids": row} for row in _ids(config, rows).tolist()]


def _collator(config: CostConfig) -> DataCollatorForLanguageModeling:
    words = [*SPECIAL_TOKENS, *(f"w{i}" for i in range(config.vocabulary_size))]
    vocabulary = {word: i for i, word in enumerate(words[: config.vocabulary_size])}
    return DataCollatorForLanguageModeling(
        BertTokenizer(vocab=vocabulary), mlm_probability=config.mask_probability
    )
