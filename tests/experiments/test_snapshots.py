"""The history of a model is the history of that model: same run, same weights, order apart."""

import datasets
import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from unmasked import data
from unmasked.batches import Masking, masked_batches
from unmasked.experiments import corpora, pretraining, snapshots
from unmasked.experiments.pretraining import PretrainingConfig
from unmasked.experiments.snapshots import shuffled_words, train_snapshots
from unmasked.masking import MaskingVocabulary
from unmasked.tokens import encode, train_tokenizer, word_ids

CONFIG = PretrainingConfig(
    sources=("movie_reviews",), vocabulary_size=150, size="tiny", max_length=16, steps=4,
    batch_size=4, learning_rates=(1e-3,), evaluations=2, validation_sequences=10,
    checkpoint_every=1,
)  # fmt: skip
WORDS = ["the", "a", "old", "cat", "sat", "on", "under", "mat", "slept", "unhappily", "wandering"]


@pytest.fixture(autouse=True)
def sentences(monkeypatch):
    def load(name, split=None, **options):
        generator = np.random.default_rng(len(split))
        texts = [" ".join(generator.choice(WORDS, 9)) for _ in range(40)]
        return datasets.Dataset.from_dict({"text": texts})

    corpora.corpus.cache_clear()
    monkeypatch.setattr(data, "load", load)
    yield
    corpora.corpus.cache_clear()


def weights(folder):
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


def test_the_last_natural_snapshot_is_the_model_of_the_plain_run(tmp_path):
    list(pretraining.compute_book_model(CONFIG, 0, tmp_path / "book"))
    kept = train_snapshots(CONFIG, "natural", (0, 2, 4), 0, tmp_path / "natural")
    expected, found = weights(tmp_path / "book" / "model"), weights(kept.folders[4])
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    earlier = weights(kept.folders[2])
    assert any(not torch.equal(earlier[name], found[name]) for name in found)
    assert [point.step for point in kept.evaluations] == [0, 2, 4]
    corpus = pretraining.corpus_of(CONFIG)
    rows, tokenizer = corpus.train, corpus.tokenizer
    drawn = masked_batches(
        rows, MaskingVocabulary.from_tokenizer(tokenizer), Masking(), CONFIG.batch_size, 0
    )
    assert kept.evaluations[1].tokens == drawn(0).tokens + drawn(1).tokens


def test_a_run_ends_with_its_last_snapshot_in_the_middle_of_the_schedule(tmp_path):
    whole = train_snapshots(CONFIG, "natural", (2, 4), 0, tmp_path / "whole")
    half = train_snapshots(CONFIG, "natural", (0, 2), 0, tmp_path / "half")
    expected, found = weights(whole.folders[2]), weights(half.folders[2])
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert half.evaluations == whole.evaluations[:2]


def test_a_killed_run_resumes_to_the_same_weights_and_a_finished_one_is_read(tmp_path, monkeypatch):
    whole = train_snapshots(CONFIG, "shuffled", (2, 4), 0, tmp_path / "whole")
    draw = snapshots.masked_batches

    def dying(*args):
        at = draw(*args)

        def batch_at(step):
            if step == 3:
                raise KeyboardInterrupt
            return at(step)

        return batch_at

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "masked_batches", dying)
        with pytest.raises(KeyboardInterrupt):
            train_snapshots(CONFIG, "shuffled", (2, 4), 0, tmp_path / "cut")
    resumed = train_snapshots(CONFIG, "shuffled", (2, 4), 0, tmp_path / "cut")
    expected, found = weights(whole.folders[4]), weights(resumed.folders[4])
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert not (tmp_path / "cut" / "checkpoint.pt").exists()
    monkeypatch.setattr(snapshots, "fit", None)  # a finished run trains nothing
    again = train_snapshots(CONFIG, "shuffled", (2, 4), 0, tmp_path / "cut")
    assert again == resumed


def test_a_step_that_is_never_evaluated_is_refused_before_training(tmp_path):
    with pytest.raises(ValueError, match="no snapshot, at step 3 of 4"):
        train_snapshots(CONFIG, "natural", (3,), 0, tmp_path)
    assert not list(tmp_path.iterdir())


def test_shuffling_keeps_words_whole_and_their_counts_and_moves_them():
    texts = data.load("movie_reviews", "train")["text"]
    tokenizer = train_tokenizer(texts, 40)  # too few for whole words
    rows = encode(texts, tokenizer, 64)
    mixed = shuffled_words(rows, tokenizer, 0)

    def words(row):
        number = word_ids(tokenizer, torch.from_numpy(row.astype(np.int64))[None])[0]
        return [tuple(row[number == n].tolist()) for n in range(int(number.max()) + 1)]

    moved = 0
    for before, after in zip(rows, mixed, strict=True):
        assert sorted(words(before)) == sorted(words(after))
        assert (before[0], before[-1]) == (after[0], after[-1])
        moved += before.tolist() != after.tolist()
    assert moved > 0.9 * len(mixed)
    assert any(len(word) > 1 for row in mixed for word in words(row))  # pieces were tested
    assert shuffled_words(rows, tokenizer, 0).checksum() == mixed.checksum()
