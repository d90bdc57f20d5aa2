"""Chapter 1, *Masked language modelling from the ground up*: its experiments and parameters."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer

from unmasked.experiments.bugs import compute_bug_gallery
from unmasked.experiments.cost import CostConfig, compute_cost
from unmasked.experiments.pretraining import (
    PretrainingConfig,
    compute_book_model,
    compute_pretraining,
    data_checksum,
)
from unmasked.experiments.walks import WalkConfig, compute_random_walk
from unmasked.profiles import Name, Run
from unmasked.results import Experiment
from unmasked.saved_models import saved_model


class Parameters(BaseModel):
    """What a reader may turn. `mask_probability` replaces that of every experiment if given."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    profile: Name = "laptop"
    seed: Annotated[int, Field(ge=0)] = 0
    recompute: bool = False
    mask_probability: Annotated[float, Field(gt=0, lt=1)] | None = None
    sentence: Annotated[str, Field(min_length=1)] = "The story is simple but the acting is great."


EXPERIMENTS = MappingProxyType(
    {
        "random_walk": Experiment("random_walk", WalkConfig, compute_random_walk),
        "bug_gallery": Experiment("bug_gallery", WalkConfig, compute_bug_gallery),
        "pretraining": Experiment(
            "pretraining", PretrainingConfig, compute_pretraining, data_checksum
        ),
        "book_model": Experiment(
            "book_model", PretrainingConfig, compute_book_model, data_checksum
        ),
        "cost": Experiment("cost", CostConfig, compute_cost),
    }
)


def book_model(run: Run) -> tuple[PreTrainedModel, Tokenizer]:
    """The book model of a run and its tokenizer; trains it first if this profile never has."""
    run.rows("book_model")
    folder = saved_model(
        run.experiment("book_model"), run.configs["book_model"], run.seeds["book_model"][0]
    )
    model = AutoModelForMaskedLM.from_pretrained(folder)
    return model.eval(), AutoTokenizer.from_pretrained(folder)
