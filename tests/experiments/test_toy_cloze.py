"""The toy cloze experiment on a few invented sentences."""

import datasets
import numpy as np
import pytest

from unmasked.experiments import toy_cloze, toy_corpora
from unmasked.experiments.toy_cloze import ToyClozeConfig, ToyCorpus
from unmasked.experiments.toy_corpora import Texts, ToyData, drawn, prepared
from unmasked.masking import MaskingVocabulary
from unmasked.project import UserError
from unmasked.tokens import Sequences

PAD, UNK, CLS, SEP, MASK, NEGATIVE, POSITIVE = range(7)
CONFIG = ToyClozeConfig(
    corpora=(
        ToyCorpus(name="movie_reviews", pretraining_steps=2, sizes=(4, 8), overlapping_sizes=(8,)),
    ),
    shares=(1.0, 0.0), overlapping_shares=(1.0,), max_length=16, validation_sentences=10,
    pretraining_learning_rate=1e-3, finetuning_learning_rate=1e-3, finetuning_steps=2,
    evaluations=2,
)  # fmt: skip


def toy_data() -> ToyData:
    """80 + 20 sentences whose first token gives the label away."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 100)
    rows = [[CLS, 8 + label, *generator.integers(10, 20, 3), SEP] for label in labels]
    hidden = [[*row[:-1], MASK, SEP] for row in rows[80:]]
    return ToyData(
        "movie_reviews", Sequences.from_lists(rows[:80]), labels[:80],
        (Sequences.from_lists(hidden), labels[80:]), 40, 10, (NEGATIVE, POSITIVE),
        MaskingVocabulary(20, MASK, tuple(range(5))),
    )  # fmt: skip


@pytest.fixture
def invented(monkeypatch):
    monkeypatch.setattr(toy_cloze, "prepared", lambda _: toy_data())


def test_the_pools_overlap_as_they_say():
    toy = toy_data()
    seen, chosen = set(range(40)), set(range(40, 50))
    clean, released = set(toy.disjoint_pool()), set(toy.overlapping_pool())
    assert not clean & (seen | chosen)
    assert len(released & seen) == 20
    assert not released & chosen
    assert released - seen == clean


def test_pretraining_sentences_say_their_labels_and_the_control_says_others():
    toy = toy_data()
    right = np.array([row[-2] for row in toy.pretraining()])
    assert right.tolist() == [(NEGATIVE, POSITIVE)[label] for label in toy.labels[:40]]
    wrong = np.array([row[-2] for row in toy.pretraining(np.random.default_rng(0))])
    assert sorted(wrong) == sorted(right)
    assert (wrong != right).sum() > 5


def test_classified_sentences_do_not_hold_their_labels():
    toy = toy_data()
    assert len(toy.hidden) == 80
    assert not np.isin(toy.hidden.ids, (NEGATIVE, POSITIVE)).any()
    assert all(row[-2] == MASK for row in toy.hidden)


def test_samples_are_nested_and_never_larger_than_the_pool():
    pool = np.arange(100, 130)
    small, large = (drawn(pool, size, np.random.default_rng(3), "pool") for size in (5, 20))
    assert set(small) < set(large) <= set(pool)
    with pytest.raises(UserError, match="31 sentences were asked of the pool, which has 30"):
        drawn(pool, 31, np.random.default_rng(3), "pool")


def test_selection_reads_the_test_accuracy_at_the_best_evaluation():
    points = [
        {"validation": 0.6, "test": 0.7}, {"validation": 0.8, "test": 0.65},
        {"validation": 0.8, "test": 0.9},
    ]  # fmt: skip
    assert toy_cloze.selected(points, "validation") == 0.65
    assert toy_cloze.selected(points, "test") == 0.9


def test_rows_hold_together(invented, tmp_path):
    rows = list(toy_cloze.compute_toy_cloze(CONFIG, 0, tmp_path))
    conditions = {frozenset(r) for r in rows}
    assert len(conditions) == 1
    names = sorted(next(iter(conditions)) - {"metric", "value", "unit", "n"})
    keyed = {(r["metric"], *(r[name] for name in names)): r["value"] for r in rows}
    assert len(keyed) == len(rows)
    accuracy = {
        (r["corpus"], r["share"], r["pool"], r["selection"], r["size"]): r["value"]
        for r in rows
        if r["metric"] == "accuracy"
    }
    for r in rows:
        if r["metric"] == "gain":
            place = r["pool"], r["selection"], r["size"]
            gain = accuracy[r["corpus"], r["share"], *place] - accuracy["none", None, *place]
            assert r["value"] == pytest.approx(gain)
            assert r["corpus"] != "none"
    for (corpus, share, pool, selection, size), value in accuracy.items():
        if selection == "validation":
            assert accuracy[corpus, share, pool, "test", size] >= value
    overlapping = {key[:2] for key in accuracy if key[2] == "overlapping"}
    assert overlapping == {("none", None), ("labels", 1.0)}
    assert {key[:2] for key in accuracy} == {
        ("none", None), ("labels", 1.0), ("labels", 0.0), ("shuffled labels", 1.0)
    }  # fmt: skip
    assert not list(tmp_path.rglob("*.pt"))


def test_a_killed_run_finds_its_pretraining_again(invented, tmp_path, monkeypatch):
    whole = list(toy_cloze.compute_toy_cloze(CONFIG, 0, tmp_path / "whole"))
    stopped = toy_cloze.compute_toy_cloze(CONFIG, 0, tmp_path / "killed")
    for row in stopped:
        if row["corpus"] == "labels":
            break
    stopped.close()
    made = []
    loss = toy_cloze.masked_loss
    monkeypatch.setattr(toy_cloze, "masked_loss", lambda *a: made.append(1) or loss(*a))
    assert list(toy_cloze.compute_toy_cloze(CONFIG, 0, tmp_path / "killed")) == whole
    assert len(made) == 2 * 2  # two steps of each of the two pretrainings that were not finished


def test_cloze_pretraining_on_an_easy_task_is_the_task(invented, tmp_path):
    corpus = ToyCorpus(name="movie_reviews", pretraining_steps=60, sizes=(4,))
    config = CONFIG.model_copy(
        update={
            "corpora": (corpus,), "shares": (1.0,), "overlapping_shares": (), "evaluations": 1,
            "pretraining_learning_rate": 0.02, "dropout": 0.0,
        }
    )  # fmt: skip
    rows = list(toy_cloze.compute_toy_cloze(config, 0, tmp_path))
    at_once = {r["corpus"]: r["value"] for r in rows if r["size"] == 0}
    assert at_once["labels"] == 1.0
    assert at_once["shuffled labels"] < 0.8
    told = {(r["corpus"], r["masked"]): r["value"] for r in rows if r["metric"] == "mlm_accuracy"}
    assert told["labels", "label"] == 1.0
    assert told["none", "label"] < 0.8


@pytest.fixture
def little(monkeypatch):
    """Splits of 60 and 12 sentences in place of the corpora."""

    def load(name, split):
        count = 60 if split == "train" else 12
        rows = [(f"a {('dull', 'fine')[i % 2]} film number {i % 7}", i % 2) for i in range(count)]
        texts, labels = zip(*rows, strict=True)
        return datasets.Dataset.from_dict({"text": texts, "label": labels})

    monkeypatch.setattr(toy_corpora.data, "load", load)
    prepared.cache_clear()
    yield
    prepared.cache_clear()


def test_prepared_texts_keep_their_labels_and_test_sentences_hide_theirs(little):
    toy = prepared(Texts("sst2", None, 100, 16, 5))
    assert (len(toy.sentences), toy.half, toy.validation) == (60, 30, 5)
    rows, labels = toy.test
    # "dull" and "fine" are whole words of the vocabulary, so one piece tells the label
    told = {}
    for row, label in zip([*toy.hidden, *rows], [*toy.labels, *labels], strict=True):
        told.setdefault(int(row[2]), set()).add(int(label))
        assert row[-2] == toy.vocabulary.mask_token_id
    assert sorted(told.values(), key=min) == [{0}, {1}]


def test_too_many_validation_sentences_are_refused(little):
    with pytest.raises(UserError, match=r"validation_sentences is 30.* has 30 sentences"):
        prepared(Texts("movie_reviews", None, 100, 16, 30))


def test_a_tokenizer_that_cannot_be_had_is_named(little, tmp_path):
    folder = tmp_path / "nothing"
    folder.mkdir()
    with pytest.raises(UserError, match=f"tokenizer '{folder}' cannot be loaded"):
        prepared(Texts("movie_reviews", str(folder), 100, 16, 5))


def test_the_checksum_changes_with_the_data_sets(little):
    one = toy_cloze.data_checksum(CONFIG)
    other = CONFIG.corpora[0].model_copy(update={"name": "sst2"})
    assert toy_cloze.data_checksum(CONFIG.model_copy(update={"corpora": (other,)})) == one
    both = CONFIG.model_copy(update={"corpora": (*CONFIG.corpora, other)})
    assert toy_cloze.data_checksum(both) == f"{one}+{one}"
