import numpy as np
import pytest

from unmasked.experiments import compatibility
from unmasked.experiments.compatibility import CompatibilityConfig

CONFIG = CompatibilityConfig(models=("book_model",), sentences=2, pairs=3, candidates=6)


def test_trained_and_random_weights_are_measured_on_the_same_sentences(tmp_path):
    rows = list(compatibility.compute_compatibility(CONFIG, 0, tmp_path))
    value = {(r["weights"], r["metric"]): r["value"] for r in rows}
    assert len(value) == len(rows) == 8
    assert {r["n"] for r in rows} == {6}
    assert min(value.values()) >= 0
    assert value["random", "log_odds"] < value["trained", "log_odds"] / 3
    assert value["trained", "imbalance"] > 0


def test_sentences_have_the_wanted_length_and_the_seed_decides():
    first, second = (compatibility.sentences_of(CONFIG, seed) for seed in (0, 1))
    assert first == compatibility.sentences_of(CONFIG, 0) != second
    assert all(6 <= len(words) <= 12 for words in first + second)


def test_too_few_sentences_are_an_error_with_both_numbers():
    config = CONFIG.model_copy(update={"sentences": 10**6})
    with pytest.raises(ValueError, match=r"reviews have 6 to 12 words, 1000000 are wanted"):
        compatibility.sentences_of(config, 0)


def test_the_checksum_pins_text_and_weights():
    first = compatibility.data_checksum(CONFIG)
    other = compatibility.data_checksum(CONFIG.model_copy(update={"models": ("a-hub-name",)}))
    assert first != other
    assert other.endswith("+a-hub-name")
    assert np.isin(first.split("+")[0], other.split("+"))
