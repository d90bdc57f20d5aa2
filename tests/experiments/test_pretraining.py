import json

import datasets
import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from unmasked import data
from unmasked.experiments import corpora, pretraining
from unmasked.experiments.ngrams import neighbours
from unmasked.experiments.pretraining import PretrainingConfig
from unmasked.masking import IGNORE_INDEX

WORDS = [
    "the",
    "a",
    "old",
    "young",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "under",
    "mat",
    "tree",
    "and",
    "then",
    "it",
    "slept",
]
CONFIG = PretrainingConfig(
    sources=("movie_reviews",), vocabulary_size=110, size="tiny", max_length=16, steps=2,
    batch_size=4, learning_rates=(1e-3, 2e-3), evaluations=1, validation_sequences=10,
    checkpoint_every=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def sentences(monkeypatch):
    """Each split has sentences of its own, marked by a word that no other split has."""

    def load(name, split=None, **options):
        generator = np.random.default_rng(len(split))
        texts = [
            " ".join(generator.choice(WORDS, 8)) + f" in \u201c{split}\u201d" for _ in range(40)
        ]
        return datasets.Dataset.from_dict({"text": texts})

    corpora.corpus.cache_clear()
    monkeypatch.setattr(data, "load", load)
    yield
    corpora.corpus.cache_clear()


def decoded(corpus, rows):
    return {corpus.tokenizer.decode(row, skip_special_tokens=True) for row in rows}


def test_train_holds_only_training_text_and_quotes_are_straight():
    corpus = pretraining.corpus_of(CONFIG)
    train, validation = (
        decoded(corpus, corpus.train),
        decoded(corpus, corpus.validation["movie_reviews"]),
    )
    assert all("train" in text and '"' in text for text in train)
    assert all("validation" not in text and "test" not in text for text in train)
    assert not train & validation


def test_evaluation_sets_are_the_same_for_every_call_and_disjoint_in_nothing_but_source():
    corpus = pretraining.corpus_of(CONFIG)
    first, second = (pretraining.evaluation_sets(corpus, CONFIG) for _ in range(2))
    assert set(first) == {"all", "movie_reviews"}
    for a, b in zip(first["all"], second["all"], strict=True):
        assert torch.equal(a.inputs["input_ids"], b.inputs["input_ids"])
    assert sum(len(batch.inputs["labels"]) for batch in first["all"]) == 10


def test_rows_of_short_runs(tmp_path):
    rows = list(pretraining.compute_pretraining(CONFIG, 0, tmp_path))
    losses = {(r["model"], r["learning_rate"], r["step"]): r["value"]
              for r in rows if r["metric"] == "loss"}  # fmt: skip
    assert set(losses) == {
        ("unigram", None, None), ("neighbour bigram", None, None),
        *(("bert", rate, step) for rate in (1e-3, 2e-3) for step in (0, 2)),
    }  # fmt: skip
    # the same untrained network starts both runs, near the uniform loss
    assert losses["bert", 1e-3, 0] == losses["bert", 2e-3, 0]
    assert losses["bert", 1e-3, 2] != losses["bert", 2e-3, 2]
    assert losses["unigram", None, None] < losses["bert", 1e-3, 0]
    assert not list(tmp_path.rglob("checkpoint.pt"))


def test_the_book_model_is_an_ordinary_checkpoint(tmp_path):
    rows = list(pretraining.compute_book_model(CONFIG, 0, tmp_path))
    folder = tmp_path / "model"
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    model = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.dtype == torch.float32
    assert len(tokenizer) == model.config.vocab_size
    value = {r["metric"]: r["value"] for r in rows if r["step"] is None and r["text"] == "all"}
    assert value["parameters"] == sum(p.numel() for p in model.parameters())
    assert value["corpus"] == pretraining.corpus_of(CONFIG).train.lengths.sum()
    half = (folder / "model.safetensors").stat().st_size
    assert half == pytest.approx(2 * value["parameters"], rel=0.05)


def test_neighbours_are_read_from_the_corrupted_input():
    corpus = pretraining.corpus_of(CONFIG)
    batches = pretraining.evaluation_sets(corpus, CONFIG)["all"]
    left, token, right = neighbours(batches)
    found = []
    for batch in batches:
        ids, labels = batch.inputs["input_ids"].tolist(), batch.inputs["labels"].tolist()
        for row, line in enumerate(labels):
            for i, label in enumerate(line):
                if label != IGNORE_INDEX:
                    found.append((ids[row][i - 1], label, ids[row][i + 1]))
    assert list(zip(left.tolist(), token.tolist(), right.tolist(), strict=True)) == found
