"""Figures of the book: a data frame in, a figure with alt text, caption and its data out."""

from unmasked.figures.common import Figure
from unmasked.figures.foundations import (
    bug_figure,
    excess_loss_figure,
    learning_curve_figure,
    mask_lens_figure,
    plateau_figure,
    ratio_figure,
)

__all__ = [
    "Figure", "bug_figure", "excess_loss_figure", "learning_curve_figure", "mask_lens_figure",
    "plateau_figure", "ratio_figure",
]  # fmt: skip
