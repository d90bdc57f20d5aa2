"""The lexicon experiment on a miniature task: equal terms, resumption, last weights, readings."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from unmasked.experiments import lexicon_masks, lexicon_readings, lexicon_tasks, lexicon_tuning
from unmasked.experiments.lexicon_masks import ENCODERS, LexiconMasksConfig
from unmasked.experiments.lexicon_tasks import Part, Task
from unmasked.lexicon import CLOZE, GENERIC, SETTINGS, UNIFORM
from unmasked.models import bert_config, masked_language_model
from unmasked.tokens import train_tokenizer

CONFIG = LexiconMasksConfig(
    model="miniature", data=("sst2",), max_length=12, pretraining_steps=2,
    pretraining_batch_size=4, pretraining_learning_rate=1e-3, finetuning_steps=2,
    finetuning_batch_size=4, finetuning_learning_rates=(1e-3, 2e-3), finetuning_seeds=2,
    examples_per_class=2, test_sentences=5, validation_sentences=6,
)  # fmt: skip
GOOD = [f"a good {thing} of old" for thing in ("film", "plot", "cast", "joke", "scene", "end")]
BAD = [text.replace("good", "bad") for text in GOOD]
PLAIN = ["it is a film", "the end"]


def part(extra=()):
    return Part((*GOOD, *BAD, *extra), (*[1] * 6, *[0] * 6, *[0] * len(extra)))


TASK = Task("sst2", 2, frozenset({"good", "bad"}), part(PLAIN), part(), part())


@pytest.fixture(scope="module")
def miniature():
    tokenizer = train_tokenizer([*GOOD, *BAD, *PLAIN], 60)
    model = masked_language_model(bert_config("tiny", len(tokenizer), max_length=12), 1).eval()
    return model, tokenizer


@pytest.fixture(autouse=True)
def small(monkeypatch, miniature):
    monkeypatch.setattr(lexicon_masks, "load_named", lambda name: miniature)
    monkeypatch.setattr(lexicon_masks, "load_task", lambda *arguments: TASK)


@pytest.fixture(scope="module")
def rows(tmp_path_factory, miniature):
    folder = tmp_path_factory.mktemp("lexicon")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon_masks, "load_named", lambda name: miniature)
        patch.setattr(lexicon_masks, "load_task", lambda *arguments: TASK)
        return list(lexicon_masks.compute_lexicon_masks(CONFIG, 0, folder)), folder


def test_every_encoder_has_its_losses_runs_and_their_mean(rows):
    frame = pd.DataFrame(rows[0])
    for encoder in ENCODERS:
        own = frame[frame["encoder"] == encoder]
        runs = own[own["metric"] == "run_accuracy"]
        assert runs["subset"].tolist() == [0, 1]
        (mean,) = own[own["metric"] == "accuracy"]["value"]
        assert mean == pytest.approx(runs["value"].mean())
        assert set(runs["value"]) <= {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}
        assert own[own["metric"] == "loss"]["masks"].tolist() == [CLOZE, GENERIC]
    conditions = frame.drop(columns=["value", "unit", "n"])
    assert not conditions.duplicated().any()
    assert np.isfinite(frame["value"]).all()


def test_gains_are_over_no_continued_pretraining(rows):
    frame = pd.DataFrame(rows[0])
    accuracy = frame[frame["metric"] == "accuracy"].set_index("encoder")["value"]
    gain = frame[frame["metric"] == "gain"].set_index("encoder")["value"]
    assert gain.to_dict() == {s: accuracy[s] - accuracy["none"] for s in SETTINGS}
    (beyond,) = frame[frame["metric"] == "generic_beyond_half"]["value"]
    expected = accuracy[GENERIC] - (accuracy[UNIFORM] + accuracy["none"]) / 2
    assert beyond == pytest.approx(expected)


def test_finished_encoders_are_read_back_and_only_the_missing_one_is_computed(rows, monkeypatch):
    done, folder = rows
    (folder / "sst2-none.json").unlink()
    computed = []
    real = lexicon_masks.encoder_of

    def watched(config, bench, encoder, seed):
        computed.append(encoder)
        return real(config, bench, encoder, seed)

    monkeypatch.setattr(lexicon_masks, "encoder_of", watched)
    again = list(lexicon_masks.compute_lexicon_masks(CONFIG, 0, folder))
    assert computed == ["none"]
    assert json.dumps(again) == json.dumps(done)


def test_sentences_without_a_lexicon_word_are_not_trained_on():
    bench = lexicon_masks.bench_of(CONFIG, "sst2")
    assert len(bench.kept) == 12
    assert all(row.sum() == 1 for row in bench.marks)
    assert len(bench.test.labels) == 5
    (batch,) = bench.exams[CLOZE]
    assert set(batch.inputs["labels"].unique().tolist()) - {-100} == set(
        bench.tokenizer.convert_tokens_to_ids(["good", "bad"])
    )


def test_encoders_differ_but_the_named_model_is_never_changed(miniature):
    model, _ = miniature
    before = {name: value.clone() for name, value in model.state_dict().items()}
    bench = lexicon_masks.bench_of(CONFIG, "sst2")
    made = {e: lexicon_masks.encoder_of(CONFIG, bench, e, 0).state_dict() for e in ENCODERS}
    key = "bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(made["none"][key], before[key])
    for first in range(len(ENCODERS)):
        for second in range(first):
            assert not torch.equal(made[ENCODERS[first]][key], made[ENCODERS[second]][key])
    again = lexicon_masks.encoder_of(CONFIG, bench, CLOZE, 0).state_dict()
    assert torch.equal(again[key], made[CLOZE][key])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_classifier_holds_the_encoder_and_the_same_head_for_every_encoder(miniature):
    model, _ = miniature
    other = masked_language_model(model.config, 5)
    first, second = (lexicon_masks._classifier(m, 4, 7) for m in (model, other))
    ids = torch.tensor([[2, 7, 8, 3]])
    expected = model.bert(ids).last_hidden_state
    torch.testing.assert_close(first.bert.eval()(ids).last_hidden_state, expected)
    assert first.classifier.out_features == 4
    for name in ("classifier.weight", "bert.pooler.dense.weight"):
        assert torch.equal(first.state_dict()[name], second.state_dict()[name])


def test_few_examples_are_balanced_and_change_with_the_seed():
    bench = lexicon_masks.bench_of(CONFIG, "sst2")
    few = [lexicon_masks._few(CONFIG, bench, seed) for seed in (0, 0, 1)]
    assert np.bincount(few[0].labels).tolist() == [2, 2]
    assert few[0].sequences.checksum() == few[1].sequences.checksum()
    assert few[0].sequences.checksum() != few[2].sequences.checksum()


def test_tuning_looks_at_validation_sentences_and_at_two_encoders_only(monkeypatch, tmp_path):
    seen = []

    def accuracies(config, bench, model, exam, rate, seed):
        seen.append(exam is bench.validation)
        return [rate, 3 * rate]

    monkeypatch.setattr(lexicon_tuning, "accuracies", accuracies)
    frame = pd.DataFrame(lexicon_tuning.compute_lexicon_tuning(CONFIG, 0, tmp_path))
    assert all(seen)
    assert frame["encoder"].tolist() == ["none", "none", "uniform", "uniform"]
    assert frame["value"].tolist() == pytest.approx([2e-3, 4e-3] * 2)


# --- the readings --------------------------------------------------------------------------------


def accuracy_rows(values):
    return pd.DataFrame(
        [
            {"seed": seed, "data": "sst2", "encoder": encoder, "metric": "accuracy", "value": value}
            for encoder, each in values.items()
            for seed, value in enumerate(each)
        ]
    )


VALUES = {
    "random weights": [0.5, 0.5], "none": [0.50, 0.52], "generic only": [0.56, 0.58],
    "uniform": [0.58, 0.60], "cloze only": [0.70, 0.68],
}  # fmt: skip


def test_contrasts_are_differences_within_a_seed():
    found = lexicon_readings.contrasts(accuracy_rows(VALUES)).set_index(["contrast", "seed"])
    assert found["value"]["cloze only − uniform"].tolist() == pytest.approx([0.12, 0.08])
    assert found["value"]["uniform − generic only"].tolist() == pytest.approx([0.02, 0.02])
    assert found["value"]["generic only − none"].tolist() == pytest.approx([0.06, 0.06])


def test_readings_by_hand():
    (line,) = lexicon_readings.readings(accuracy_rows(VALUES), {"sst2": 0.1}).to_dict("records")
    assert line["uniform gain"] == pytest.approx(0.08)
    assert line["kept"] == pytest.approx(0.75)
    assert line["stable"]
    assert line["additive"] == pytest.approx(0.1 * 0.18 + 0.9 * 0.06)
    assert line["ratio_needed"] == pytest.approx(9.0)
    unstable = {**VALUES, "uniform": [0.45, 0.60]}
    (line,) = lexicon_readings.readings(accuracy_rows(unstable), {"sst2": 0.1}).to_dict("records")
    assert not line["stable"]


def test_readings_need_accuracies():
    with pytest.raises(ValueError, match="no row with the metric accuracy"):
        lexicon_readings.contrasts(accuracy_rows(VALUES).assign(metric="loss"))


def test_the_published_order_of_settings():
    for seeds in (5, 20):
        values = [lexicon_readings.PUBLISHED[s, seeds].accuracy for s in (GENERIC, UNIFORM, CLOZE)]
        assert values == sorted(values)


# --- the tasks -----------------------------------------------------------------------------------


@pytest.fixture
def corpora(monkeypatch):
    """Stand-ins for the data sets: 60 texts a split, and one lexicon for both lists."""
    import datasets

    def load(name, split):
        if name.endswith("lexicon"):
            return datasets.Dataset.from_dict({"word": ["Good", "bad", "good"]})
        topics = ("court", "goal", "bank", "chip")
        texts = [f"{split} {n} ‘{topics[n % 4]}’ news" for n in range(60)]
        labels = [n % (4 if name == "ag_news" else 2) for n in range(60)]
        return datasets.Dataset.from_dict({"text": texts, "label": labels})

    monkeypatch.setattr(lexicon_tasks.data, "load", load)
    lexicon_tasks.load_task.cache_clear()
    yield
    lexicon_tasks.load_task.cache_clear()


@pytest.mark.parametrize("news", ["test file", "all files"])
@pytest.mark.parametrize("name", ["sst2", "movie_reviews", "ag_news"])
def test_parts_never_share_a_text_and_tests_come_from_the_right_split(corpora, name, news):
    task = lexicon_tasks.load_task(name, 4, news)
    parts = [set(p.texts) for p in (task.train, task.validation, task.test)]
    assert all(parts)
    assert sum(map(len, parts)) == len(set().union(*parts))
    split = {"sst2": "validation"}.get(name, "test")
    assert all(text.startswith(split) for text in task.test.texts)
    if not (name == "ag_news" and news == "test file"):
        assert not any(text.startswith("test") for text in task.train.texts)
    assert task.classes == (4 if name == "ag_news" else 2)
    words = {"court", "goal", "bank", "chip"} if name == "ag_news" else {"good", "bad"}
    assert task.lexicon == words
    assert "'" in task.train.texts[0]


def test_checksum_sees_texts_and_lexicon(corpora):
    first = lexicon_tasks.tasks_checksum(("ag_news", "sst2"), 4, "test file")
    assert [len(each) for each in first.split("+")] == [16, 16]
    lexicon_tasks.load_task.cache_clear()
    assert lexicon_tasks.tasks_checksum(("ag_news",), 3, "test file") != first.split("+")[0]


def test_settings_are_encoders():
    assert set(SETTINGS) < set(ENCODERS)
    assert UNIFORM in ENCODERS
