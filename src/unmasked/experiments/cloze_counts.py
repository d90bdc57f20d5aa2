"""How often is a uniform mask cloze-like? Counts on the data sets of `lexicon_masks`, no training.

Zhang and Hashimoto 2021, section 5.1, match white-space words of the text as it stands to a
lower-case list; that count is the row `matching` "white space". Masks fall on word pieces; the
other matching, "word pieces", is that of `lexicon.salient_positions`, which the masks use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from unmasked.experiments.lexicon_tasks import News, TaskName, load_task, tasks_checksum
from unmasked.experiments.named_models import load_named
from unmasked.lexicon import salience
from unmasked.tokens import encode

Row = Mapping[str, object]
SHARE = "share"


class ClozeCountsConfig(BaseModel):
    """The data sets, the model whose tokenizer makes the pieces, and the masking rate.

    `sentences` is the most that are counted of each part; the first ones are taken.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    model: str = "book_model"
    data: Annotated[tuple[TaskName, ...], Field(min_length=1)]
    news: News = "test file"
    lexicon_size: Annotated[int, Field(ge=1)] = 500
    max_length: Annotated[int, Field(ge=8, le=512)]
    mask_probability: Annotated[float, Field(gt=0, lt=1)] = 0.15
    sentences: Annotated[int, Field(ge=1)]


def compute_cloze_counts(config: ClozeCountsConfig, seed: int, workdir: Path) -> Iterator[Row]:
    """The counts; they are exact, so that every seed gives the same rows."""
    _, tokenizer = load_named(config.model)
    for name in config.data:
        task = load_task(name, config.lexicon_size, config.news)
        for part in ("train", "test"):
            texts = getattr(task, part).texts[: config.sentences]
            rows = encode(texts, tokenizer, config.max_length, split_long=False)
            marks = salience(rows, tokenizer, task.lexicon)
            salient = np.array([row.sum() for row in marks])
            counts = {
                "white space": white_space_counts(texts, task.lexicon),
                "word pieces": piece_counts(rows.lengths - 2, salient, config.mask_probability),
            }
            for matching, values in counts.items():
                for metric, value in values.items():
                    yield {
                        "data": name, "part": part, "matching": matching, "metric": metric,
                        "value": value, "unit": "count" if metric in COUNTED else SHARE,
                        "n": len(texts),
                    }  # fmt: skip


def counts_checksum(config: ClozeCountsConfig) -> str:
    """Which texts and lexicons the rows rest on."""
    return tasks_checksum(config.data, config.lexicon_size, config.news)


COUNTED = frozenset({"lexicon_words", "uniform_masks", "cloze_only_masks"})


def white_space_counts(texts: Sequence[str], lexicon: frozenset[str]) -> dict[str, float]:
    """Shares of words in the lexicon and of texts that hold one, as the released code counts.

    Words are what stands between white space, with their case, which the lexicon does not have.
    """
    hits = [[word in lexicon for word in text.split()] for text in texts]
    return {
        "lexicon_words": float(len(lexicon)),
        "salient_share": sum(map(sum, hits)) / sum(map(len, hits)),
        "texts_with": sum(map(any, hits)) / len(hits),
    }


def piece_counts(pieces: np.ndarray, salient: np.ndarray, rate: float) -> dict[str, float]:
    """What independent masks of probability `rate` hit; `pieces` and `salient` are (texts,) counts.

    `salient_share` is the share of pieces that are salient, and so of masks that are cloze-like:
    every piece is masked with the same probability. `mask_set_hits` is the mean probability that
    the masks of a text hold a salient piece, 1 - (1 - rate)^salient. The rows with `kept` are over
    the texts with a salient piece, which continued pretraining uses: there, `saturated` is the
    share whose salient pieces are fewer than the masks that a uniform draw expects, so that
    cloze-only masking falls short; the expected numbers of masks a text stand beside it.
    """
    kept = salient > 0
    if not kept.any():
        raise ValueError("no text holds a salient piece, so no uniform mask is cloze-like")
    hits = 1 - (1 - rate) ** salient
    expected = rate * pieces[kept]
    return {
        "salient_share": float(salient.sum() / pieces.sum()),
        "texts_with": float(kept.mean()),
        "mask_set_hits": float(hits.mean()),
        "salient_share_kept": float(salient[kept].sum() / pieces[kept].sum()),
        "mask_set_hits_kept": float(hits[kept].mean()),
        "saturated": float((salient[kept] < expected).mean()),
        "uniform_masks": float(expected.mean()),
        "cloze_only_masks": float(np.minimum(expected, salient[kept]).mean()),
    }
