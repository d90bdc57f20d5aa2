import math

import numpy as np
import pytest

from unmasked.experiments import dependency_language as experiment
from unmasked.experiments.dependency_language import DependencyConfig, Sample
from unmasked.masking import IGNORE_INDEX

CONFIG = DependencyConfig(
    vocabulary_size=8, classes=2, length=5, types=2, choices=1, distance=1.75,
    strengths=(0.0, 0.8), train_sentences=64, validation_sentences=12, parsed_sentences=2,
    steps=2, batch_size=8, learning_rate=1e-3, evaluations=1, head=4, tail=0, mask_probability=0.4,
)  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return list(experiment.compute_dependency_language(CONFIG, 0, None))


def test_the_floor_is_the_loss_of_each_sentence_on_its_own():
    language = CONFIG.language(0.8)
    batches = experiment.exam_of(CONFIG, language, 0)
    nats = []
    for batch in batches:
        for ids, labels in zip(batch.inputs["input_ids"], batch.inputs["labels"], strict=True):
            hidden = (labels != IGNORE_INDEX).numpy()
            words = np.where(hidden, labels, ids)[1:-1] - experiment.SPECIALS
            nats.append(language.floor(words[None], hidden[None, 1:-1]))
    expected = np.concatenate(nats).mean()
    assert experiment.floor_of(language, batches) == pytest.approx(expected)


def test_gold_edges_are_those_of_the_heads():
    sample = Sample(np.zeros((1, 4), dtype=np.int64), np.array([[2, 0, -1, 2]]))
    assert sample.gold[0].tolist() == [[0, 2], [0, 1], [2, 3]]
    assert np.argwhere(np.triu(sample.linked[0])).tolist() == [[0, 1], [0, 2], [2, 3]]
    assert (sample.linked == sample.linked.transpose(0, 2, 1)).all()


def test_trees_from_the_exact_information_are_the_gold_trees():
    language = CONFIG.language(0.5)
    sample = Sample(*language.sample(20, np.random.default_rng(0)))
    found = experiment.spanning_trees(language.information(sample.words))
    for tree, gold in zip(found, sample.gold, strict=True):
        assert set(map(tuple, tree.tolist())) == set(map(tuple, gold.tolist()))


def test_rows_hold_together(rows):
    value = {
        (r["metric"], r["strength"], r["system"], r["step"], r["arc"]): r["value"] for r in rows
    }
    assert len(value) == len(rows)
    assert all(math.isfinite(r["value"]) and r["n"] > 0 for r in rows)
    for strength in CONFIG.strengths:
        untrained = value["uuas", strength, experiment.MODEL, 0, None]
        assert value["uuas", strength, experiment.RANDOM_WEIGHTS, None, None] == untrained
        last = value["uuas", strength, experiment.MODEL, 2, None]
        assert value["uuas", strength, experiment.MODEL, None, None] == last
    assert value["floor", 0.0, None, None, None] == pytest.approx(math.log(4), abs=0.3)
    assert value["floor", 0.8, None, None, None] < value["floor", 0.0, None, None, None]


def test_the_ceiling_stands_only_where_there_is_dependence(rows):
    exact = {r["strength"]: r["value"] for r in rows
             if r["metric"] == "uuas" and r["system"] == experiment.EXACT}  # fmt: skip
    assert exact == {0.8: 100.0}
    off = [
        r["value"]
        for r in rows
        if r["metric"] == "information_off_edges" and r["system"] == experiment.EXACT
    ]
    assert off == pytest.approx([0.0], abs=1e-12)


def test_recall_adds_up_to_uuas(rows):
    for system, strength in ((experiment.EXACT, 0.8), (experiment.MODEL, 0.0)):
        chosen = [r for r in rows if r["system"] == system and r["strength"] == strength]
        recall = [r for r in chosen if r["metric"] == "recall"]
        found = sum(r["value"] * r["n"] for r in recall) / sum(r["n"] for r in recall)
        uuas = [r["value"] for r in chosen if r["metric"] == "uuas" and r["step"] is None]
        assert [100 * found] == pytest.approx(uuas)


def test_chain_and_random_trees_score_what_geometry_gives(rows):
    value = {(r["system"], r["strength"]): r["value"] for r in rows
             if r["metric"] == "uuas" and r["step"] is None}  # fmt: skip
    sample = Sample(*CONFIG.language(0.8).sample(2, np.random.default_rng([2, 0])))
    near = np.mean([edges[:, 1] - edges[:, 0] == 1 for edges in sample.gold])
    assert value[experiment.CHAIN, 0.8] == pytest.approx(100 * near)
    # every pair is in a uniform tree with probability 2 / 5; 20 trees of 2 sentences, 4 edges each
    assert value[experiment.RANDOM_TREE, 0.8] == pytest.approx(40, abs=20)


def test_a_seed_draws_its_own_sentences_and_repeats_itself(rows):
    config = CONFIG.model_copy(update={"strengths": (0.8,)})
    first = [r for r in rows if r["strength"] == 0.8]
    again, other = (
        list(experiment.compute_dependency_language(config, seed, None)) for seed in (0, 1)
    )
    assert first == again
    assert [r["value"] for r in first] != [r["value"] for r in other]
