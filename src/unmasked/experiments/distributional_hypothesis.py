"""Chapter 3, *What the distributional hypothesis does not explain*: experiments and parameters."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from unmasked.experiments import (
    frozen_embeddings,
    paraphrase_changes,
    source_cost,
    synonym_ties,
    transfer,
)
from unmasked.profiles import Name
from unmasked.results import Experiment


class Parameters(BaseModel):
    """What a reader may turn; `sentence` is the one that is perturbed by hand."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    profile: Name = "laptop"
    seed: Annotated[int, Field(ge=0)] = 0
    recompute: bool = False
    sentence: Annotated[str, Field(min_length=1)] = "a charming film with a clever story"


_ALL = (
    Experiment("synonym_ties", synonym_ties.TiesConfig, synonym_ties.compute_synonym_ties),
    Experiment("transfer", transfer.TransferConfig, transfer.compute_transfer),
    Experiment("alphabet_dial", transfer.TransferConfig, transfer.compute_transfer),
    Experiment("frozen_embeddings", transfer.TransferConfig,
               frozen_embeddings.compute_frozen_embeddings),
    Experiment("paraphrase_changes", paraphrase_changes.ParaphraseConfig,
               paraphrase_changes.compute_paraphrase_changes, paraphrase_changes.data_checksum),
    Experiment("source_cost", source_cost.SourceCostConfig, source_cost.compute_source_cost),
)  # fmt: skip

EXPERIMENTS = MappingProxyType({experiment.name: experiment for experiment in _ALL})
