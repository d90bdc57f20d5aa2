import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertForSequenceClassification

from unmasked.batches import (
    Batch,
    Masking,
    batch_indices,
    epoch_batches,
    masked_batches,
    masked_evaluation_set,
    step_seed,
)
from unmasked.checkpoints import CHECKPOINT_NAME, discard_checkpoint
from unmasked.evaluation import evaluate_masked
from unmasked.masking import IGNORE_INDEX, MaskingVocabulary
from unmasked.models import bert_config, masked_language_model
from unmasked.tokens import Sequences
from unmasked.training import (
    Execution,
    NonFiniteLossError,
    Recipe,
    finetune,
    learning_rates,
    masked_loss,
    pretrain,
)

VOCABULARY = MaskingVocabulary(40, 4, (0, 1, 2, 3, 4))
CPU = Execution(cpu=True)


def corpus(count: int = 60, seed: int = 0) -> Sequences:
    """Sequences in which token i is always followed by i + 1: learnable at once."""
    generator = np.random.default_rng(seed)
    starts = generator.integers(5, 40, count)
    lengths = generator.integers(4, 12, count)
    return Sequences.from_lists(
        [[2, *(5 + (s - 5 + np.arange(n)) % 35), 3] for s, n in zip(starts, lengths, strict=True)]
    )


def run(recipe: Recipe, *, seed: int = 0, workdir=None, dropout: float = 0.1, **kwargs):
    model = masked_language_model(bert_config("tiny", 40, max_length=16, dropout=dropout), seed)
    data = corpus()
    validation = masked_evaluation_set(corpus(20, seed=1), VOCABULARY)
    history = pretrain(model, data, validation, VOCABULARY, recipe, masking=Masking(), seed=seed,
                       workdir=workdir, execution=CPU, **kwargs)  # fmt: skip
    return model, history


def test_batches_cover_an_epoch_once_and_are_length_sorted_inside_buckets():
    lengths = np.random.default_rng(0).integers(1, 100, 640)
    batches = epoch_batches(lengths, 10, np.random.default_rng(1))
    assert sorted(np.concatenate(batches)) == list(range(640))
    padding = sum(len(b) * lengths[b].max() for b in batches) / lengths.sum()
    order = np.random.default_rng(1).permutation(640).reshape(-1, 10)
    unsorted = sum(10 * lengths[b].max() for b in order) / lengths.sum()
    assert padding < 1.12 < unsorted


def test_an_incomplete_last_batch_sits_out_but_a_small_corpus_does_not():
    generator = np.random.default_rng(0)
    assert sum(map(len, epoch_batches(np.ones(25), 10, generator))) == 20
    assert [len(b) for b in epoch_batches(np.ones(3), 10, generator)] == [3]


def test_batch_indices_are_a_function_of_seed_and_step():
    lengths = np.random.default_rng(0).integers(1, 30, 50)
    first, second = (batch_indices(lengths, 8, seed=5) for _ in range(2))
    assert [first(s) for s in range(20)] == [second(s) for s in range(20)]
    assert second(3) == first(3)
    assert {i for s in range(6) for i in first(s)} != {i for s in range(6, 12) for i in first(s)}
    assert [first(s) for s in range(6)] != [first(s) for s in range(6, 12)]


def test_no_sequence_is_refused():
    with pytest.raises(ValueError, match="no sequence"):
        batch_indices(np.zeros(0), 8, seed=0)


def test_masks_are_fresh_in_every_epoch_and_repeat_with_the_seed():
    data = corpus(8)
    at = masked_batches(data, VOCABULARY, Masking(), 8, seed=0)
    masks = [{i: tuple(row) for i, row in zip(at(s).indices, (at(s).inputs["labels"] != -100)
             .tolist(), strict=True)} for s in range(4)]  # fmt: skip
    assert any(masks[0][i] != masks[1][i] for i in range(8))
    again = masked_batches(data, VOCABULARY, Masking(), 8, seed=0)(2)
    assert torch.equal(again.inputs["input_ids"], at(2).inputs["input_ids"])
    assert again.items == int((again.inputs["labels"] != IGNORE_INDEX).sum())


def test_step_seeds_differ():
    seeds = {step_seed(seed, step) for seed in range(20) for step in range(200)}
    assert len(seeds) == 4000


def test_training_learns_and_counts_tokens():
    recipe = Recipe(steps=240, batch_size=16, learning_rate=2e-3, evaluations=3)
    _, history = run(recipe, dropout=0.0)
    losses = [point.metrics["loss"] for point in history.evaluations]
    assert [point.step for point in history.evaluations] == [80, 160, 240]
    assert np.log(35) > losses[0] > losses[1] > losses[2]
    assert losses[2] < 0.8
    data, at = corpus(), batch_indices(corpus().lengths, 16, 0)
    assert history.last.tokens == sum(data.lengths[list(at(s))].sum() for s in range(240))
    assert history.tokens_per_second > 0


@pytest.mark.parametrize("killed_after", [3, 8])
def test_a_resumed_run_is_the_uninterrupted_run(tmp_path, killed_after, monkeypatch):
    recipe = Recipe(steps=12, batch_size=16, evaluations=4, checkpoint_every=2)
    whole_model, whole = run(recipe, seed=3)

    class KilledError(Exception):
        pass

    calls = {"n": 0}

    def dying(model, inputs, items):
        calls["n"] += 1
        if calls["n"] > killed_after:
            raise KilledError
        return masked_loss(model, inputs, items)

    with pytest.raises(KilledError):
        run(recipe, seed=3, workdir=tmp_path, loss=dying)
    resumed_model, resumed = run(recipe, seed=3, workdir=tmp_path)
    assert resumed.losses == whole.losses
    assert [p.metrics for p in resumed.evaluations] == [p.metrics for p in whole.evaluations]
    assert [p.tokens for p in resumed.evaluations] == [p.tokens for p in whole.evaluations]
    for name, value in whole_model.state_dict().items():
        assert torch.equal(value, resumed_model.state_dict()[name]), name


def test_a_finished_run_trains_nothing_again(tmp_path):
    recipe = Recipe(steps=4, batch_size=16, evaluations=1, checkpoint_every=2)
    _, first = run(recipe, workdir=tmp_path)

    def fail(*_):
        raise AssertionError("trained again")

    _, second = run(recipe, workdir=tmp_path, loss=fail)
    assert second.losses == first.losses
    discard_checkpoint(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    recipe = Recipe(steps=2, batch_size=16, evaluations=1, checkpoint_every=1)
    run(recipe, workdir=tmp_path)
    with pytest.raises(ValueError, match=r"belongs to another run \(differs in batch_size\)"):
        run(replace(recipe, batch_size=8), workdir=tmp_path)


def test_a_corrupt_checkpoint_is_named(tmp_path):
    (tmp_path / CHECKPOINT_NAME).write_bytes(b"half a file")
    with pytest.raises(ValueError, match=r"checkpoint\.pt cannot be read .*; delete it"):
        run(Recipe(steps=2, evaluations=1), workdir=tmp_path)


def test_nan_stops_the_run_with_step_and_sequences():
    def broken(model, inputs, items):
        value = masked_loss(model, inputs, items)
        broken.calls += 1
        return value * float("nan") if broken.calls == 3 else value

    broken.calls = 0
    with pytest.raises(NonFiniteLossError, match=r"loss is nan at step 2 \(sequences \d+, "):
        run(Recipe(steps=5, batch_size=16, evaluations=1), loss=broken)


def test_global_random_state_is_left_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    run(Recipe(steps=2, batch_size=8, evaluations=1))
    assert torch.equal(torch.rand(3), expected)


def test_learning_rate_warms_up_and_decays_linearly():
    rates = learning_rates(Recipe(steps=100, learning_rate=1.0, warmup=0.1))
    assert rates[0] == 0.0
    assert rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)
    assert np.allclose(np.diff(rates[10:]), -1 / 90)


@pytest.mark.parametrize("bad", [{"steps": 0}, {"batch_size": 0}, {"evaluations": 0}])
def test_recipes_out_of_range_are_refused(bad):
    with pytest.raises(ValueError, match="must be at least 1"):
        Recipe(**{"steps": 1, **bad})


def test_warmup_is_a_share():
    with pytest.raises(ValueError, match=r"share in \[0, 1\)"):
        Recipe(steps=1, warmup=500)


def test_evaluation_equals_a_slow_explicit_sum():
    model = masked_language_model(bert_config("tiny", 40, max_length=16), 0).eval()
    batches = masked_evaluation_set(corpus(10), VOCABULARY, size=3)
    losses, hits = [], []
    with torch.no_grad():
        for batch in batches:
            dense = model(batch.inputs["input_ids"], batch.inputs["attention_mask"]).logits
            for row, labels in enumerate(batch.inputs["labels"].tolist()):
                for column, label in enumerate(labels):
                    if label != IGNORE_INDEX:
                        log_p = dense[row, column].log_softmax(-1)
                        losses.append(-log_p[label].item())
                        hits.append(int(log_p.argmax()) == label)
    result = evaluate_masked(model, batches)
    assert result["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert result["accuracy"] == pytest.approx(np.mean(hits))
    assert result["masked"] == len(losses)


def test_evaluation_masks_are_pure_and_fixed():
    first = masked_evaluation_set(corpus(10), VOCABULARY)
    second = masked_evaluation_set(corpus(10), VOCABULARY)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a.inputs["input_ids"], b.inputs["input_ids"])
        selected = a.inputs["labels"] != IGNORE_INDEX
        assert torch.all(a.inputs["input_ids"][selected] == VOCABULARY.mask_token_id)


def test_an_evaluation_without_masks_is_refused():
    empty = Batch(
        {"input_ids": torch.tensor([[2, 3]]), "labels": torch.tensor([[-100, -100]])}, 0, 2
    )
    model = masked_language_model(bert_config("tiny", 40, max_length=16), 0)
    with pytest.raises(ValueError, match="no masked position"):
        evaluate_masked(model, [empty])


def test_bf16_autocast_stays_close():
    recipe = Recipe(steps=6, batch_size=16, evaluations=1)
    model = masked_language_model(bert_config("tiny", 40, max_length=16), 0)
    validation = masked_evaluation_set(corpus(20, seed=1), VOCABULARY)
    history = pretrain(model, corpus(), validation, VOCABULARY, recipe, masking=Masking(), seed=0,
                       execution=Execution(cpu=True, bf16=True))  # fmt: skip
    _, exact = run(recipe, dropout=0.0)
    assert history.losses != exact.losses
    assert np.allclose(history.losses, exact.losses, rtol=0.02)
    assert all(p.dtype == torch.float32 for p in model.parameters())


def classifier_data():
    data = corpus(64)
    labels = np.array([int(row[1] >= 22) for row in data])
    return data, labels


def classifier():
    config = bert_config("tiny", 40, max_length=16)
    config.num_labels = 2
    torch.manual_seed(0)
    return BertForSequenceClassification(config)


def test_finetuning_learns_a_separable_rule():
    data, labels = classifier_data()
    recipe = Recipe(steps=80, batch_size=16, learning_rate=2e-3, evaluations=2)
    history = finetune(classifier(), data, labels, (data, labels), recipe, seed=0, execution=CPU)
    assert history.last.metrics["accuracy"] > 0.95
    shuffled = np.random.default_rng(0).permutation(labels)
    control = finetune(classifier(), data, labels, (data, shuffled), recipe, seed=0, execution=CPU)
    assert control.last.metrics["accuracy"] < 0.75


@pytest.mark.parametrize(
    ("labels", "message"),
    [([0, 1], "2 labels for 64"), ([-1] * 64, "label -1 is outside 0..1"), ([2] * 64, "label 2")],
)
def test_labels_that_do_not_fit_are_refused(labels, message):
    data, good = classifier_data()
    with pytest.raises(ValueError, match=message):
        finetune(classifier(), data, np.array(labels), (data, good), Recipe(steps=1), seed=0,
                 execution=CPU)  # fmt: skip


def test_two_processes_follow_the_loss_curve_of_one(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(
        textwrap.dedent("""
        import json, sys
        sys.path.insert(0, sys.argv[2])
        from test_training import Recipe, run
        from accelerate import PartialState
        model, history = run(Recipe(steps=6, batch_size=15, evaluations=2), dropout=0.0)
        state = PartialState()
        if state.is_main_process:
            norm = sum(float(p.detach().pow(2).sum()) for p in model.parameters())
            json.dump([state.num_processes, list(history.losses), norm,
                       [p.metrics["loss"] for p in history.evaluations]], open(sys.argv[1], "w"))
        """)
    )
    out = tmp_path / "out.json"
    here = os.path.dirname(__file__)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2",
               "--master_port", "0", "--standalone", str(script), str(out), here]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    processes, losses, norm, evaluations = json.loads(out.read_text())
    model, single = run(Recipe(steps=6, batch_size=15, evaluations=2), dropout=0.0)
    assert processes == 2
    assert np.allclose(losses, single.losses, rtol=1e-5)
    assert norm == pytest.approx(sum(float(p.detach().pow(2).sum()) for p in model.parameters()))
    assert np.allclose(evaluations, [p.metrics["loss"] for p in single.evaluations], rtol=1e-4)
