"""The fine-tuning learning rate of `lexicon_masks`, chosen where no conclusion is drawn.

The rates are compared on validation sentences, with the named model as it is and after continued
pretraining with uniform masks: neither of the two settings that the experiment is about is looked
at, and no test sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from unmasked.experiments.lexicon_masks import (
    NONE,
    LexiconMasksConfig,
    accuracies,
    bench_of,
    encoder_of,
)
from unmasked.lexicon import UNIFORM


def compute_lexicon_tuning(
    config: LexiconMasksConfig, seed: int, workdir: Path
) -> Iterator[Mapping[str, object]]:
    """Validation accuracy of both encoders, by data set and learning rate."""
    for name in config.data:
        bench = bench_of(config, name)
        for encoder in (NONE, UNIFORM):
            model = encoder_of(config, bench, encoder, seed)
            for rate in config.finetuning_learning_rates:
                found = accuracies(config, bench, model, bench.validation, rate, seed)
                yield {
                    "data": name,
                    "encoder": encoder,
                    "learning_rate": rate,
                    "metric": "accuracy",
                    "value": float(np.mean(found)),
                    "unit": "share",
                    "n": len(found) * len(bench.validation.labels),
                }
