"""Figures of the book: a data frame in, a figure with alt text, caption and its data out."""

from unmasked.figures.alphabets import (
    corpora_figure,
    excess_by_keep_figure,
    tie_growth_figure,
)
from unmasked.figures.common import Figure
from unmasked.figures.dependency_language import (
    known_trees_figure,
    recall_by_arc_figure,
    relative_clause_figure,
    trees_along_training_figure,
)
from unmasked.figures.estimators import cheapest_as_good, estimators_figure
from unmasked.figures.foundations import (
    bug_figure,
    excess_loss_figure,
    learning_curve_figure,
    mask_lens_figure,
    plateau_figure,
    ratio_figure,
)
from unmasked.figures.graphs import (
    compatibility_figure,
    leak_figure,
    recovery_figure,
    tree_information_figure,
)
from unmasked.figures.lexicon import lexicon_masks_figure
from unmasked.figures.paraphrases import changes_figure, correlation_rows, correlations_figure
from unmasked.figures.parsing import (
    distance_figure,
    history_figure,
    information_figure,
    relation_frame,
    uuas_figure,
)
from unmasked.figures.sources import pattern_hits_figure
from unmasked.figures.toy_cloze import cloze_share_figure, defect_effects, released_defects_figure
from unmasked.figures.transfer import (
    common_cell,
    dial_figure,
    generalisation_figure,
    named,
    sample_efficiency_figure,
    transplant_figure,
)

__all__ = [
    "Figure", "bug_figure", "changes_figure", "cheapest_as_good", "cloze_share_figure",
    "common_cell", "compatibility_figure", "corpora_figure", "correlation_rows",
    "correlations_figure", "defect_effects", "dial_figure", "distance_figure",
    "estimators_figure", "excess_by_keep_figure", "excess_loss_figure", "generalisation_figure",
    "history_figure", "information_figure", "known_trees_figure", "leak_figure",
    "learning_curve_figure", "lexicon_masks_figure", "mask_lens_figure", "named",
    "pattern_hits_figure", "plateau_figure", "ratio_figure", "recall_by_arc_figure",
    "recovery_figure", "relation_frame", "relative_clause_figure", "released_defects_figure",
    "sample_efficiency_figure", "tie_growth_figure", "transplant_figure",
    "tree_information_figure", "trees_along_training_figure", "uuas_figure",
]  # fmt: skip
