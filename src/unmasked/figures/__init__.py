"""Figures of the book: a data frame in, a figure with alt text, caption and its data out."""

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
from unmasked.figures.parsing import (
    distance_figure,
    history_figure,
    information_figure,
    relation_frame,
    uuas_figure,
)
from unmasked.figures.toy_cloze import cloze_share_figure, defect_effects, released_defects_figure

__all__ = [
    "Figure", "bug_figure", "cheapest_as_good", "cloze_share_figure", "compatibility_figure",
    "defect_effects", "distance_figure", "estimators_figure", "excess_loss_figure",
    "history_figure", "information_figure", "known_trees_figure", "leak_figure",
    "learning_curve_figure", "lexicon_masks_figure", "mask_lens_figure", "plateau_figure",
    "ratio_figure", "recall_by_arc_figure", "recovery_figure", "relation_frame",
    "relative_clause_figure", "released_defects_figure", "tree_information_figure",
    "trees_along_training_figure", "uuas_figure",
]  # fmt: skip
