"""What the rows of `lexicon_masks` say: differences between encoders and the additive reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

from unmasked.experiments.lexicon_masks import NONE
from unmasked.lexicon import CLOZE, GENERIC, UNIFORM


@dataclass(frozen=True)
class Published:
    """Accuracy in per cent with the half-width that the source prints beside it."""

    accuracy: float
    half_width: float


PUBLISHED_SOURCE = (
    "README of the code released with Zhang and Hashimoto 2021: SST-2 validation sentences, "
    "bert-base-uncased, continued for 10 epochs, 10 examples a class; ± is 1.96 standard errors"
)
PUBLISHED: Mapping[tuple[str, int], Published] = MappingProxyType(
    {
        (GENERIC, 5): Published(64.36, 3.39),
        (UNIFORM, 5): Published(68.17, 5.25),
        (CLOZE, 5): Published(73.19, 3.49),
        (GENERIC, 20): Published(66.97, 2.60),
        (UNIFORM, 20): Published(69.04, 2.69),
        (CLOZE, 20): Published(74.74, 2.43),
    }
)
"""(setting, fine-tuning seeds) -> what the authors report, at another scale than this book's."""

CONTRASTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "cloze only − uniform": (CLOZE, UNIFORM),
        "uniform − generic only": (UNIFORM, GENERIC),
        "generic only − none": (GENERIC, NONE),
        "uniform − none": (UNIFORM, NONE),
        "cloze only − none": (CLOZE, NONE),
    }
)


def contrasts(rows: pd.DataFrame) -> pd.DataFrame:
    """Differences of mean accuracy within each seed: columns seed, data, contrast, value.

    `rows` are those of `lexicon_masks`. Encoders of one seed share fine-tuning examples and heads,
    so the differences are paired.
    """
    wide = _by_encoder(rows)
    parts = [
        (wide[first] - wide[second]).rename("value").reset_index().assign(contrast=name)
        for name, (first, second) in CONTRASTS.items()
    ]
    return pd.concat(parts, ignore_index=True)[["seed", "data", "contrast", "value"]]


def readings(rows: pd.DataFrame, cloze_share: Mapping[str, float]) -> pd.DataFrame:
    """One line a data set: what generic masks keep of the gain, and what cloze-like masks can add.

    Gains are over no continued pretraining, as means over seeds. `kept` is the gain of generic
    masks over that of uniform ones. With `cloze_share` c, the share of uniform masks that are
    cloze-like, `additive` is what uniform masks would gain if each mask added its worth,
    c * cloze + (1 - c) * generic, and `ratio_needed` is how many generic masks a cloze-like mask
    must be worth to account for half of an additive gain, (1 - c) / c. `stable` says whether
    the uniform gain keeps its sign in all seeds; where it does not, `kept` means nothing.
    """
    wide = _by_encoder(rows)
    gains = wide[[UNIFORM, CLOZE, GENERIC]].sub(wide[NONE], axis=0)
    lines = []
    for name, group in gains.groupby(level="data", sort=False):
        mean, share = group.mean(), cloze_share[str(name)]
        lines.append(
            {
                "data": name,
                "uniform gain": mean[UNIFORM],
                "generic gain": mean[GENERIC],
                "cloze gain": mean[CLOZE],
                "kept": mean[GENERIC] / mean[UNIFORM] if mean[UNIFORM] else float("nan"),
                "stable": bool((group[UNIFORM] > 0).all() or (group[UNIFORM] < 0).all()),
                "cloze share": share,
                "additive": share * mean[CLOZE] + (1 - share) * mean[GENERIC],
                "ratio_needed": (1 - share) / share,
            }
        )
    return pd.DataFrame(lines)


def _by_encoder(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy with an index (data, seed) and a column for each encoder."""
    means = rows[rows["metric"] == "accuracy"]
    if means.empty:
        raise ValueError("there is no row with the metric accuracy")
    return means.pivot(index=["data", "seed"], columns="encoder", values="value")
