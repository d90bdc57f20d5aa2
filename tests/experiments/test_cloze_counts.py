"""Counts by hand, by simulation, and the paper's own on its own data."""

import os
from pathlib import Path

import numpy as np
import pytest

from unmasked import data
from unmasked.experiments.cloze_counts import piece_counts, white_space_counts
from unmasked.lexicon import lexicon_of

WORDS = frozenset({"good", "bad", "well-made"})


def test_white_space_words_by_hand():
    texts = ["a good good film", "Good", "well-made , not bad.", "bad"]
    found = white_space_counts(texts, WORDS)
    assert found == {
        "lexicon_words": 3,
        "salient_share": 4 / 10,  # good, good, well-made, bad; neither "Good" nor "bad."
        "texts_with": 3 / 4,
    }


def test_pieces_by_hand():
    found = piece_counts(np.array([10, 10, 20]), np.array([0, 1, 5]), 0.2)
    assert found == pytest.approx(
        {
            "salient_share": 6 / 40,
            "texts_with": 2 / 3,
            "mask_set_hits": (0 + 0.2 + 1 - 0.8**5) / 3,
            "salient_share_kept": 6 / 30,
            "mask_set_hits_kept": (0.2 + 1 - 0.8**5) / 2,
            "saturated": 1 / 2,
            "uniform_masks": 3.0,
            "cloze_only_masks": (1 + 4) / 2,
        }
    )


def test_hits_and_share_are_what_uniform_masks_do():
    generator = np.random.default_rng(0)
    pieces, salient = np.array([12, 7, 30]), np.array([2, 0, 4])
    drawn = 20_000
    cloze = generator.binomial(salient, 0.15, (drawn, 3))
    generic = generator.binomial(pieces - salient, 0.15, (drawn, 3))
    found = piece_counts(pieces, salient, 0.15)
    assert (cloze > 0).mean() == pytest.approx(found["mask_set_hits"], abs=0.01)
    share = cloze.sum() / (cloze.sum() + generic.sum())
    assert share == pytest.approx(found["salient_share"], abs=0.005)


def test_no_salient_piece_is_refused():
    with pytest.raises(ValueError, match="no text holds a salient piece"):
        piece_counts(np.array([3, 4]), np.array([0, 0]), 0.15)


@pytest.mark.parametrize(
    ("split", "words", "texts"), [("train", 12.59, 70.29), ("validation", 10.30, 87.27)]
)
def test_the_papers_counts_on_sst2_with_hu_and_liu(split, words, texts):
    folder = os.environ.get("UNMASKED_DATA", "")
    if not folder or not (Path(folder) / "sst2" / "train.tsv").is_file():
        pytest.skip("the files are not in UNMASKED_DATA")
    lexicon = lexicon_of(data.load("opinion_lexicon", "all")["word"])
    assert len(lexicon) == 6786
    found = white_space_counts(data.load("sst2", split)["text"][:], lexicon)
    assert 100 * found["salient_share"] == pytest.approx(words, abs=0.005)
    assert 100 * found["texts_with"] == pytest.approx(texts, abs=0.005)
