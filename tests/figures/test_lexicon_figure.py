"""The figure says what it draws, in the order of the encoders."""

import pandas as pd
import pytest

from unmasked.figures import lexicon
from unmasked.figures.lexicon import ENCODERS

TITLES = {"sst2": "Hu and Liu", "ag_news": "from training labels"}


def rows(seeds=3):
    base = {"sst2": 0.5, "ag_news": 0.3}
    lines = [
        {"seed": seed, "data": data, "encoder": encoder, "metric": metric, "unit": "share", "n": 9,
         "value": base[data] + 0.02 * number + 0.01 * seed}
        for data in base for number, encoder in enumerate(ENCODERS) for seed in range(seeds)
        for metric in ("accuracy", "run_accuracy")
    ]  # fmt: skip
    lines.append({**lines[0], "metric": "loss", "value": 9.0})
    return pd.DataFrame(lines)


def test_it_draws_the_means_of_the_rows_in_per_cent():
    made = lexicon.lexicon_masks_figure(rows(), TITLES)
    (axes,) = made.figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [*ENCODERS, *ENCODERS]
    drawn = [container.lines[0].get_xdata()[0] for container in axes.containers]
    expected = [100 * (b + 0.02 * n + 0.01) for b in (0.5, 0.3) for n in range(5)]
    assert drawn == pytest.approx(expected)
    heads = [text.get_text() for text in axes.texts]
    assert heads == ["sst2 (Hu and Liu)", "ag_news (from training labels)"]
    assert axes.get_xlabel() == "accuracy (%)"


def test_words_and_caption_hold_the_numbers_and_the_seeds():
    made = lexicon.lexicon_masks_figure(rows(), TITLES)
    for text in (made.alt, made.caption):
        assert "sst2: random weights 51.0 [50.0, 52.0], none 53.0" in text
        assert "cloze only 39.0 [38.0, 40.0]." in text
    assert "3 pretraining seeds" in made.caption


def test_one_seed_has_no_interval():
    made = lexicon.lexicon_masks_figure(rows(seeds=1), TITLES)
    assert "sst2: random weights 50.0, none 52.0" in made.alt
