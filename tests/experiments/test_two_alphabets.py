"""Pretrained models made once, and what each start of fine-tuning takes from them."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from unmasked import word_vectors
from unmasked.experiments import frozen_embeddings, synonym_ties, transfer, two_alphabets
from unmasked.experiments.synonym_ties import TiesConfig, compute_synonym_ties, masked_floor
from unmasked.experiments.transfer import Plan, TransferConfig, compute_transfer, started
from unmasked.experiments.two_alphabets import Exam, SourceConfig, pretrained
from unmasked.rows import checked

SMALL = {
    "vocabulary_size": 12, "nodes": 24, "set_size": 2, "length": 8, "labelled_length": 8,
    "layers": 1, "hidden_size": 16, "heads": 2, "train_sequences": 64, "validation_sequences": 16,
    "tie_sequences": 4, "steps": 6, "batch_size": 16, "learning_rate": 2e-3, "evaluations": 2,
}  # fmt: skip
PLAN = Plan(
    starts=("pretrained", "scratch"), keeps=(0.5, 1.0), sizes=(10, 20), second_shares=(0.5,)
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNMASKED_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def source():
    return SourceConfig(**SMALL)


def config(source, **changes):
    given = {"plans": (PLAN,), "steps": 2, "learning_rate": 1e-3, "pool_sequences": 40,
             "test_sequences": 20}  # fmt: skip
    return TransferConfig(source=source, **{**given, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 3}, "heads 3 must divide hidden_size 16"),
        ({"nodes": 25}, "multiple of vocabulary_size 12"),
        ({"set_size": 5}, "distinct tokens"),
    ],
    ids=["heads", "nodes", "sets"],
)
def test_a_source_that_cannot_be_is_refused_before_any_training(change, message):
    with pytest.raises(ValidationError, match=message):
        SourceConfig(**{**SMALL, **change})


def test_a_pretrained_model_is_made_once(source, monkeypatch):
    first = pretrained(source, 0.5, 0)
    monkeypatch.setattr(two_alphabets, "fit", None)  # a second training would fail
    again = pretrained(source, 0.5, 0)
    assert again.points == first.points
    for left, right in zip(first.model.parameters(), again.model.parameters(), strict=True):
        torch.testing.assert_close(left, right)
    with pytest.raises(TypeError):
        pretrained(source, 1.0, 0)


def test_a_killed_pretraining_leaves_nothing_that_is_read_as_whole(source, monkeypatch):
    monkeypatch.setattr(two_alphabets, "write_atomically", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pretrained(source, 0.5, 0)
    monkeypatch.undo()
    assert [point.step for point in pretrained(source, 0.5, 0).points] == [0, 3, 6]


def test_the_floor_lies_below_an_untrained_models_loss(source):
    exam = Exam(source, 0.75)
    floor, count = masked_floor(exam)
    (untrained, *_) = pretrained(source, 0.75, 0).points
    assert count == untrained.metrics["masked"] == sum(batch.items for batch in exam.batches)
    assert 0 < floor < untrained.metrics["loss"]


def test_rows_of_the_ties_have_the_schema(source, tmp_path):
    rows = checked(
        compute_synonym_ties(TiesConfig(source=source, keeps=(0.5, 1.0)), 0, tmp_path), ""
    )
    frame = {(r["keep"], r["metric"], r["step"], r["layer"]): r["value"] for r in rows}
    excess = frame[0.5, "loss", 6, None] - frame[0.5, "floor", None, None]
    assert frame[0.5, "excess_loss", 6, None] == pytest.approx(excess)
    assert {key[3] for key in frame if key[1] == "neighbour"} == {0, 1}


def test_each_start_takes_what_it_says(source):
    model = pretrained(source, 0.5, 0).model
    fresh = started(source, "scratch", None, 0)
    table, theirs = (m.get_input_embeddings().weight for m in (fresh, model))
    layer, there = fresh.bert.encoder.state_dict(), model.bert.encoder.state_dict()
    taken = {name: started(source, name, 0.5, 0) for name in transfer.FROM_PRETRAINED}
    tables = {name: each.get_input_embeddings().weight for name, each in taken.items()}
    layers = {name: each.bert.encoder.state_dict() for name, each in taken.items()}
    key = next(name for name in there if name.endswith("query.weight"))
    assert torch.equal(tables["pretrained"], theirs)
    assert torch.equal(tables["embeddings only"], theirs)
    assert torch.equal(tables["all but embeddings"], table)
    assert torch.equal(layers["pretrained"][key], there[key])
    assert torch.equal(layers["all but embeddings"][key], there[key])
    assert torch.equal(layers["embeddings only"][key], layer[key])
    shuffled = layers["shuffled weights"][key]
    assert not torch.equal(shuffled, there[key])
    torch.testing.assert_close(shuffled.flatten().sort()[0], there[key].flatten().sort()[0])


def test_word_vectors_are_put_in_right_or_scrambled(source):
    vectors = word_vectors.scaled(transfer.vectors_of(source, 0))
    right = started(source, "word vectors", None, 0).get_input_embeddings().weight.detach()
    wrong = started(source, "scrambled word vectors", None, 0).get_input_embeddings().weight
    np.testing.assert_allclose(right[:-1].numpy(), vectors)
    np.testing.assert_allclose(wrong[:-1].detach().numpy(), word_vectors.scrambled(vectors))
    scratch = started(source, "scratch", None, 0).get_input_embeddings().weight
    assert torch.equal(right[-1], scratch[-1])  # [MASK] has no vector


@pytest.mark.parametrize(("share", "second"), [(0.0, 0), (0.1, 2), (0.5, 10)])
def test_training_sets_have_the_share_of_the_second_domain(source, share, second):
    made = transfer.training_set(config(source), share, 20, 0)
    alphabet = made.rows.ids.reshape(20, 8) // source.vocabulary_size
    assert (alphabet == 0).all(1).sum() == 20 - second
    assert (alphabet == 1).all(1).sum() == second
    synsets = made.rows.ids.reshape(20, 8) % source.vocabulary_size
    np.testing.assert_array_equal(made.labels, source.patterns.labels(synsets.astype(np.int64)))


def test_a_larger_training_set_holds_the_smaller(source):
    few, many = (transfer.training_set(config(source), 0.0, size, 0) for size in (10, 30))
    np.testing.assert_array_equal(many.rows.ids[: len(few.rows.ids)], few.rows.ids)


def test_the_alphabet_changes_no_label_and_no_walk(source):
    exams = transfer.tests(config(source))
    for domain in ("D1", "D2"):
        first, second = exams[f"A-{domain}"], exams[f"B-{domain}"]
        np.testing.assert_array_equal(first.labels, second.labels)
        np.testing.assert_array_equal(first.rows.ids + source.vocabulary_size, second.rows.ids)
    assert not np.array_equal(exams["A-D1"].rows.ids, exams["A-D2"].rows.ids)


def test_a_size_above_the_pool_is_refused(source):
    with pytest.raises(ValidationError, match="size 20 exceeds pool_sequences 15"):
        config(source, pool_sequences=15)


def test_a_finished_fine_tuning_is_read_back(source, tmp_path, monkeypatch):
    rows = checked(compute_transfer(config(source), 0, tmp_path), "")
    monkeypatch.setattr(transfer, "finetune", None)
    assert checked(compute_transfer(config(source), 0, tmp_path), "") == rows
    found = {(r["start"], r["keep"], r["size"], r["condition"]): r["value"] for r in rows}
    for start, keep in (("pretrained", 0.5), ("pretrained", 1.0), ("scratch", None)):
        mixed = 0.5 * found[start, keep, 20, "A-D1"] + 0.5 * found[start, keep, 20, "B-D2"]
        assert found[start, keep, 20, "trained"] == pytest.approx(mixed)
    next(tmp_path.glob("scratch*.json")).unlink()
    with pytest.raises(TypeError):
        checked(compute_transfer(config(source), 0, tmp_path), "")


def test_frozen_embeddings_stay_where_they_are(source, tmp_path):
    rows = checked(frozen_embeddings.compute_frozen_embeddings(config(source), 0, tmp_path), "")
    found = {(r["metric"], r["frozen"], r["size"], r["condition"]): r["value"] for r in rows}
    for size in (10, 20):
        assert found["tie_before", True, size, None] == found["tie_after", True, size, None]
        assert found["tie_before", False, size, None] != found["tie_after", False, size, None]
        there, here = (found["accuracy", False, size, name] for name in ("A-D1", "B-D1"))
        assert found["gap", False, size, None] == pytest.approx(there - here)


def test_streams_of_random_numbers_are_apart(source):
    held_out = two_alphabets.corpus(source, 0.5, 1, 16).ids
    assert not np.array_equal(held_out, two_alphabets.corpus(source, 0.5, 0, 16).ids)
    assert synonym_ties.Exam(source, 0.5).synsets.shape == (8, 8)
