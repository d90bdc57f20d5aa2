"""The two sides of each comparison must do the same work; how long they take is not tested."""

import json

import pytest
import torch

from unmasked.experiments import cost
from unmasked.experiments.cost import BENCHMARKS, CostConfig
from unmasked.masking import IGNORE_INDEX
from unmasked.models import bert_config, training_flops_per_token
from unmasked.project import UserError
from unmasked.timing import Ratio

CONFIG = CostConfig(
    size="tiny", vocabulary_size=120, batch_size=4, length=16, masking_rows=200, repeats=1
)


def test_both_maskings_see_the_same_rows_and_select_the_same_share():
    reference, ours = BENCHMARKS["masking_fixed_count"].pair(CONFIG)
    theirs, mine = reference(), ours()
    truth = torch.where(mine.labels == IGNORE_INDEX, mine.input_ids, mine.labels)
    other = torch.where(theirs["labels"] == IGNORE_INDEX, theirs["input_ids"], theirs["labels"])
    assert torch.equal(truth, other)
    share = 200 * 14 * 0.15
    assert int((mine.labels != IGNORE_INDEX).sum()) == 200 * round(14 * 0.15)
    # five standard deviations of a binomial count
    assert abs(int((theirs["labels"] != IGNORE_INDEX).sum()) - share) < 5 * (share * 0.85) ** 0.5


def test_a_helped_collator_masks_no_special_token_either():
    reference, _ = BENCHMARKS["masking_helped_collator"].pair(CONFIG)
    batch = reference()
    assert torch.all(batch["labels"][:, [0, -1]] == IGNORE_INDEX)
    assert (batch["labels"] != IGNORE_INDEX).any()


def test_the_steps_train_the_same_model_on_the_same_objective(monkeypatch):
    seen = []

    def record(model, optimizer, ids, labels, bf16=False):
        seen.append((model, optimizer, ids, labels))
        return 0.0

    monkeypatch.setattr(cost, "_update", record)
    for step in BENCHMARKS["step_same_recipe"].pair(CONFIG):
        step()
    (reference, r_opt, *_), (ours, o_opt, ids, labels) = seen
    ours.load_state_dict(reference.state_dict())
    losses = [m.eval()(input_ids=ids, labels=labels).loss.item() for m in (reference, ours)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert r_opt.defaults == o_opt.defaults
    assert reference.config.hidden_dropout_prob == ours.config.hidden_dropout_prob == 0.1


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_every_benchmark_runs_on_both_sides(name):
    for side in BENCHMARKS[name].pair(CONFIG):
        result = side()
        assert not isinstance(result, float) or result > 0


def test_a_step_lowers_the_loss_on_a_batch_it_repeats():
    step = cost.our_step(CONFIG.model_copy(update={"mask_probability": 0.5}))
    losses = [step() for _ in range(60)]
    assert sum(losses[-10:]) < sum(losses[:10])


def test_rows_of_a_benchmark_carry_its_ratio():
    rows = list(cost.ratio_rows("step_same_recipe", Ratio(2.0, 1.5, 2.5, 4.0, 2.0, 3)))
    assert {row["metric"]: row["value"] for row in rows} == {"median": 2.0, "low": 1.5, "high": 2.5}
    assert {(row["goal"], row["unit"], row["n"]) for row in rows} == {(1.5, "s/s", 3)}


def test_json_has_the_keys_that_machines_read(bench, capsys, monkeypatch):
    monkeypatch.setattr(cost, "measured", lambda name, config: Ratio(2.0, 1.0, 3.0, 2.0, 1.0, 5))
    bench.main(["step_same_recipe", "head_at_masks"], json=True)
    assert json.loads(capsys.readouterr().out) == [
        {"name": "step_same_recipe", "median": 2.0, "low": 1.0, "high": 3.0, "goal": 1.5},
        {"name": "head_at_masks", "median": 2.0, "low": 1.0, "high": 3.0, "goal": None},
    ]
    bench.main(["step_same_recipe"])
    assert "1.5 (met)" in capsys.readouterr().out


def test_an_unknown_benchmark_is_refused_with_the_nearest_name(bench):
    with pytest.raises(UserError, match=r"'step_same_recip'\. Did you mean 'step_same_recipe'\?"):
        bench.main(["step_same_recip"])


def test_throughput_rows_state_the_useful_share_of_the_measured_peak(monkeypatch):
    monkeypatch.setattr(cost, "seconds", lambda function, repeats: 0.5)
    rows = list(cost._throughput_rows(CONFIG))
    value = {(r["label"], r["metric"]): r["value"] for r in rows}
    same_tokens = {"16 x 4", "8 x 8", "4 x 16", "2 x 32"}
    assert {label for label, _ in value} == same_tokens | {"1 x 16", "16 x 16"}
    assert {value[label, "throughput"] for label in same_tokens} == {4 * 16 / 0.5}
    flops = training_flops_per_token(bert_config("tiny", 120), 16, 0.15)
    peak = 2 * 1024**3 / 0.5
    assert value["4 x 16", "utilisation"] == pytest.approx(128 * flops / peak)


def test_the_checkpoint_that_is_timed_holds_the_moments_of_every_parameter(monkeypatch):
    made = []

    class Recorded(cost.Checkpoint):
        def save(self, workdir, progress):
            made.append((self, workdir))
            super().save(workdir, progress)

    monkeypatch.setattr(cost, "Checkpoint", Recorded)
    BENCHMARKS["step_over_load"].pair(CONFIG)
    checkpoint, folder = made[0]
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    moments = state["optimizer"]["state"]
    assert len(moments) == len(list(checkpoint.model.parameters()))
    assert all({"exp_avg", "exp_avg_sq"} <= moment.keys() for moment in moments.values())


@pytest.mark.parametrize(("ratio", "chosen"), [(0.9, False), (1.1, True)])
def test_the_best_recipe_is_in_bfloat16_where_that_is_faster(monkeypatch, ratio, chosen):
    def fixed(slow, fast, repeats):
        return Ratio(ratio, ratio, ratio, ratio, 1.0, repeats)

    def record(model, optimizer, ids, labels, bf16=False):
        return float(bf16)

    monkeypatch.setattr(cost, "interleaved", fixed)
    monkeypatch.setattr(cost, "_update", record)
    reference, ours = BENCHMARKS["step_best_recipe"].pair(CONFIG)
    assert (reference(), ours()) == (0.0, float(chosen))


def test_a_step_in_bfloat16_computes_nearly_the_same_loss():
    losses = []
    for bf16 in (False, True):
        torch.manual_seed(0)
        losses.append(cost.our_step(CONFIG, bf16=bf16)())
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


def test_sampling_time_is_that_of_the_whole_from_a_tenth(monkeypatch):
    shapes = []
    monkeypatch.setattr(cost.RandomWalk, "sample", lambda _, *shape: shapes.append(shape[:2]))
    monkeypatch.setattr(cost, "seconds", lambda function, repeats: function() or 1.5)
    row = cost._sampling_row(CONFIG, 0)
    assert shapes == [(10_000, 512)]
    assert (row["value"], row["unit"], row["goal"]) == (15.0, "s", 30.0)
