"""Chapter 2, *From statistical to syntactic dependencies*: its experiments and parameters."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from unmasked.experiments import (
    cloze_counts,
    compatibility,
    dependency_language,
    estimator_cost,
    estimators,
    graphs,
    lexicon_masks,
    lexicon_tuning,
    long_distance,
    parsing,
    parsing_history,
    toy_cloze,
    tree_fields,
)
from unmasked.profiles import Name
from unmasked.results import Experiment


class Parameters(BaseModel):
    """What a reader may turn; `sentence` is the one that is taken apart by hand."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    profile: Name = "laptop"
    seed: Annotated[int, Field(ge=0)] = 0
    recompute: bool = False
    sentence: Annotated[str, Field(min_length=1)] = "the old captain saw the ship"


_ALL = (
    Experiment("toy_cloze", toy_cloze.ToyClozeConfig, toy_cloze.compute_toy_cloze,
               toy_cloze.data_checksum),
    Experiment("cloze_counts", cloze_counts.ClozeCountsConfig, cloze_counts.compute_cloze_counts,
               cloze_counts.counts_checksum),
    Experiment("lexicon_tuning", lexicon_masks.LexiconMasksConfig,
               lexicon_tuning.compute_lexicon_tuning, lexicon_masks.masks_checksum),
    Experiment("lexicon_tuning_many", lexicon_masks.LexiconMasksConfig,
               lexicon_tuning.compute_lexicon_tuning, lexicon_masks.masks_checksum),
    Experiment("lexicon_masks", lexicon_masks.LexiconMasksConfig,
               lexicon_masks.compute_lexicon_masks, lexicon_masks.masks_checksum),
    Experiment("lexicon_news", lexicon_masks.LexiconMasksConfig,
               lexicon_masks.compute_lexicon_masks, lexicon_masks.masks_checksum),
    Experiment("graphs", graphs.GraphsConfig, graphs.compute_graphs),
    Experiment("tree_field", tree_fields.TreeFieldConfig, tree_fields.compute_tree_field),
    Experiment("compatibility", compatibility.CompatibilityConfig,
               compatibility.compute_compatibility, compatibility.data_checksum),
    Experiment("estimators", estimators.EstimatorsConfig, estimators.compute_estimators,
               estimators.data_checksum),
    Experiment("estimator_cost", estimator_cost.EstimatorCostConfig,
               estimator_cost.compute_estimator_cost, estimator_cost.data_checksum),
    Experiment("dependency_language", dependency_language.DependencyConfig,
               dependency_language.compute_dependency_language),
    Experiment("parsing", parsing.ParsingConfig, parsing.compute_parsing, parsing.data_checksum),
    Experiment("parsing_history", parsing_history.HistoryConfig,
               parsing_history.compute_parsing_history, parsing_history.data_checksum),
    Experiment("long_distance", long_distance.LongDistanceConfig,
               long_distance.compute_long_distance, long_distance.data_checksum),
)  # fmt: skip
EXPERIMENTS = MappingProxyType({experiment.name: experiment for experiment in _ALL})
