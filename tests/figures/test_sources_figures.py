"""The figure of pattern hits draws exactly what makes the label."""

import numpy as np
import pytest

from unmasked.figures.sources import pattern_hits, pattern_hits_figure
from unmasked.languages import RandomWalk
from unmasked.patterns import OrderedPatterns

PATTERNS = OrderedPatterns(64, patterns=3, stages=3, set_size=3)


def sequence(*steps):
    """A sequence of tokens given as (pattern, set, which one), None for a token of no set."""
    other = np.setdiff1d(np.arange(64), PATTERNS.sets)[0]
    return np.array([other if step is None else PATTERNS.sets[step] for step in steps])


def test_alt_text_and_caption_state_what_is_drawn(states_its_numbers):
    tokens = sequence(None, (1, 0, 2), None, (1, 1, 0), (1, 0, 0), None, (1, 2, 1), None)
    figure = pattern_hits_figure(PATTERNS, tokens)
    states_its_numbers(
        figure, "pattern-hits", "Pattern 2: 3 of 3 sets, at positions 1, 3, 6", "The label is 1"
    )
    of_second = figure.data[figure.data["pattern"] == 2]
    assert of_second["position"].tolist() == [1, 3, 4, 6]
    assert of_second["set"].tolist() == [1, 2, 1, 3]
    assert of_second["taken"].tolist() == [True, True, False, True]


def test_a_sequence_without_any_set_can_be_drawn():
    figure = pattern_hits_figure(PATTERNS, sequence(*[None] * 6))
    assert "Pattern 3: 0 of 3 sets" in figure.alt
    assert "The label is 0: of 3 patterns, 0 found" in figure.caption
    assert figure.data.empty
    figure.figure.canvas.draw()


def test_sets_in_the_wrong_order_are_not_taken():
    hits = pattern_hits(PATTERNS, sequence((0, 2, 0), (0, 1, 0), (0, 0, 0), (0, 2, 1)))
    of_first = hits[hits["pattern"] == 1]
    assert of_first["taken"].tolist() == [False, False, True, False]


def test_a_pattern_is_taken_whole_exactly_where_the_label_is_one():
    tokens = RandomWalk(64, 320).sample(200, 24, np.random.default_rng(0))
    labels = PATTERNS.labels(tokens)
    assert 0 < labels.mean() < 1
    for row, label in zip(tokens, labels, strict=True):
        hits = pattern_hits(PATTERNS, row)
        whole = hits[hits["taken"]].groupby("pattern").size() == PATTERNS.stages
        assert whole.any() == bool(label)


def test_what_labels_refuse_is_refused():
    with pytest.raises(ValueError, match="shorter than a pattern of 3 sets"):
        pattern_hits_figure(PATTERNS, np.array([0, 1]))
    with pytest.raises(ValueError, match="allowed are 0 to 63"):
        pattern_hits_figure(PATTERNS, np.array([0, 1, 64]))
