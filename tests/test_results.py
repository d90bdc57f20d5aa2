"""Tests of unmasked.results: load or compute, resume, staleness, refusals, publishing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pydantic
import pytest

from unmasked import results
from unmasked.results import Experiment, RowError, Store, config_hash, load_or_compute, publish

CALLS: list[int] = []
FAIL_AT: set[int] = set()
ROWS: dict[str, object] = {}


class Config(pydantic.BaseModel, strict=True, frozen=True, extra="forbid"):
    """A configuration with one number and a name."""

    scale: float = 2.0
    name: str = "a"


def compute(config, seed, workdir):
    """Two conditions with two metrics each; refuses the seeds in FAIL_AT half way."""
    CALLS.append(seed)
    for tokens in (10, None):
        if seed in FAIL_AT and tokens is None:
            raise RuntimeError("killed")
        base = {"tokens": tokens, "model": config.name, "unit": "nats", "n": 5}
        yield {**base, "metric": "loss", "value": config.scale * seed + 0.1}
        yield {**base, "metric": "accuracy", "value": np.float64(seed / 3), **ROWS}


@pytest.fixture
def store(tmp_path):
    CALLS.clear()
    FAIL_AT.clear()
    ROWS.clear()
    return Store(committed=tmp_path / "results", cache=tmp_path / "cache")


@pytest.fixture
def experiment():
    return Experiment("toy", Config, compute, data_checksum=lambda config: "d" * 64)


def run(experiment, store, seeds=(0, 1, 2), config=None, **options):
    options = {"profile": "laptop", **options}
    return load_or_compute(experiment, config or Config(), seeds=seeds, store=store, **options)


def test_rows_have_the_schema_and_keep_their_values(experiment, store):
    rows = run(experiment, store)
    assert list(rows.frame.columns) == [
        "experiment", "profile", "config_hash", "seed", "tokens", "model", "metric", "value",
        "unit", "n", "run_id",
    ]  # fmt: skip
    assert len(rows.frame) == 12
    losses = rows.frame.query("metric == 'loss' and tokens == 10").set_index("seed")["value"]
    assert losses.to_dict() == {0: 0.1, 1: 2.1, 2: 4.1}
    assert rows.frame.query("metric == 'accuracy'")["value"].iloc[-1] == 2 / 3
    assert rows.frame["tokens"].isna().sum() == 6
    assert (rows.origin, rows.stale) == ("computed", False)
    assert set(rows.frame["run_id"]) == set(rows.runs["run_id"])
    assert rows.runs["data_checksum"].unique() == ["d" * 64]


def test_the_second_time_nothing_is_computed_and_rows_are_equal(experiment, store):
    first = run(experiment, store)
    second = run(experiment, store)
    assert CALLS == [0, 1, 2]
    assert second.origin == "cached"
    pd.testing.assert_frame_equal(first.frame, second.frame)


def test_more_seeds_compute_only_the_new_ones_and_keep_the_order(experiment, store):
    run(experiment, store, seeds=(1,))
    rows = run(experiment, store, seeds=(3, 1, 0))
    assert CALLS == [1, 3, 0]
    assert rows.origin == "mixed"
    assert list(dict.fromkeys(rows.frame["seed"])) == [3, 1, 0]


def test_another_configuration_has_rows_of_its_own(experiment, store):
    run(experiment, store, seeds=(0,))
    run(experiment, store, seeds=(0,), config=Config(scale=3.0))
    assert CALLS == [0, 0]
    assert config_hash(Config(scale=3)) == config_hash(Config(scale=3.0))
    assert config_hash(Config(scale=3.0)) != config_hash(Config(scale=3.0, name="b"))


def test_a_failure_at_the_third_seed_keeps_the_first_two(experiment, store):
    FAIL_AT.add(2)
    with pytest.raises(RuntimeError, match="killed"):
        run(experiment, store)
    FAIL_AT.clear()
    rows = run(experiment, store)
    assert CALLS == [0, 1, 2, 2]
    assert len(rows.frame) == 12


def test_a_killed_recompute_goes_on_where_it_stopped(experiment, store):
    before = run(experiment, store)
    work = store.work_folder(experiment, Config(), 0)
    (work / "checkpoint").write_text("old")
    CALLS.clear()
    FAIL_AT.add(2)
    with pytest.raises(RuntimeError, match="killed"):
        run(experiment, store, recompute=True)
    assert not (work / "checkpoint").exists(), "a recompute must not resume an old checkpoint"
    (store.work_folder(experiment, Config(), 2) / "checkpoint").write_text("half way")
    FAIL_AT.clear()
    after = run(experiment, store, recompute=True)
    assert CALLS == [0, 1, 2, 2]
    assert (store.work_folder(experiment, Config(), 2) / "checkpoint").exists()
    assert after.origin == "computed"
    assert not set(before.frame["run_id"]) & set(after.frame["run_id"])
    run(experiment, store, recompute=True)
    assert CALLS == [0, 1, 2, 2, 0, 1, 2], "a finished recompute must not count for the next"


@pytest.mark.parametrize("keep", [0, 40, -1, -30])
def test_a_half_written_seed_is_computed_again_with_a_message(experiment, store, keep):
    run(experiment, store)
    path = store.rows_folder(experiment, Config()) / "seed-1.csv"
    path.write_text(path.read_text()[:keep])
    rows = run(experiment, store)
    assert CALLS == [0, 1, 2, 1]
    assert "incomplete cached rows of seed 1 were set aside" in rows.message
    assert run(experiment, store).message.endswith("read from the cache (seed 0, 1, 2).")


def test_a_changed_digit_in_a_cached_seed_is_noticed(experiment, store):
    run(experiment, store, seeds=(1,))
    path = store.rows_folder(experiment, Config()) / "seed-1.csv"
    path.write_text(path.read_text().replace("2.1", "9.1"))
    rows = run(experiment, store, seeds=(1,))
    assert CALLS == [1, 1]
    assert rows.frame["value"].max() == 2.1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"value": float("nan")}, "not a finite number"),
        ({"value": np.float32("inf")}, "not a finite number"),
        ({"value": "0.3"}, "not a finite number"),
        ({"value": True}, "not a finite number"),
        ({"value": None}, "has no value"),
        ({"unit": None}, "has no unit"),
        ({"n": 0}, "n is 0"),
        ({"n": 2.0}, "n is 2.0"),
        ({"seed": 3}, "seed is filled in by the store"),
        ({"layers": [1, 2]}, "layers is a list"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"model": ""}, "model is ''"),
        ({"metric": "loss"}, "repeats row 0"),
    ],
)
def test_a_row_that_breaks_the_schema_is_refused_and_named(experiment, store, change, said):
    ROWS.update(change)
    with pytest.raises(RowError, match="Row 1 of toy, seed 0") as caught:
        run(experiment, store)
    assert said in str(caught.value)
    assert not list(store.cache.glob("rows/**/seed-*.csv"))


def no_rows(config, seed, workdir):
    """Yields nothing."""
    return []


def test_an_experiment_without_rows_is_refused(store):
    with pytest.raises(RowError, match="yielded no rows"):
        run(Experiment("empty", Config, no_rows), store)


@pytest.mark.parametrize("seeds", [(), (1, 1), ("0",), (True,), (1.0,)])
def test_seeds_must_be_distinct_whole_numbers(experiment, store, seeds):
    with pytest.raises(results.UserError, match="distinct whole numbers"):
        run(experiment, store, seeds=seeds)


def test_a_configuration_of_another_class_is_refused(experiment, store):
    class Other(pydantic.BaseModel):
        pass

    with pytest.raises(TypeError, match="needs a Config"):
        run(experiment, store, config=Other())


def test_text_that_looks_like_missing_or_like_a_number_survives(experiment, store):
    ROWS.update({"optimiser": "None", "run": "NA", "flag": True, "code": "007", "rate": 0.1})
    frame = run(experiment, store, seeds=(0,)).frame
    marked = frame[frame["metric"] == "accuracy"]
    assert marked["optimiser"].tolist() == ["None", "None"]
    assert marked["run"].tolist() == ["NA", "NA"]
    assert marked["code"].tolist() == ["007", "007"]
    assert marked["rate"].tolist() == [0.1, 0.1]
    assert marked["flag"].tolist() == [True, True]
    assert frame["config_hash"].iloc[0] == config_hash(Config())


def test_published_rows_are_used_from_an_empty_cache_and_equal_the_computed(
    experiment, store, tmp_path
):
    computed = run(experiment, store)
    publish(experiment, Config(), "laptop", (0, 1, 2), store)
    elsewhere = Store(store.committed, tmp_path / "other")
    rows = run(experiment, elsewhere)
    assert (rows.origin, CALLS) == ("committed", [0, 1, 2])
    pd.testing.assert_frame_equal(rows.frame, computed.frame)
    aside = run(experiment, elsewhere, seeds=(0,), committed=False)
    assert (aside.origin, CALLS) == ("computed", [0, 1, 2, 0])


def test_publishing_replaces_its_own_experiment_and_profile_only(experiment, store):
    other = Experiment("other", Config, compute)
    small = Config(scale=0.5)
    for which, config, profile, seeds in [
        (experiment, Config(), "laptop", (0, 1, 2)),
        (experiment, small, "smoke", (0,)),
        (other, Config(), "laptop", (0,)),
    ]:
        run(which, store, seeds=seeds, config=config)
        publish(which, config, profile, seeds, store)
    kept = (store.committed / "other.csv").read_bytes()
    new = Config(scale=7.0)
    run(experiment, store, seeds=(4, 5), config=new)
    publish(experiment, new, "laptop", (4, 5), store)
    table = pd.read_csv(store.committed / "toy.csv", dtype={"config_hash": str})
    assert set(zip(table["profile"], table["seed"], strict=True)) == {
        ("smoke", 0), ("laptop", 4), ("laptop", 5),
    }  # fmt: skip
    runs = pd.read_csv(store.committed / "runs.csv")
    assert list(zip(runs["experiment"], runs["profile"], runs["seed"], strict=True)) == [
        ("other", "laptop", 0), ("toy", "laptop", 4), ("toy", "laptop", 5), ("toy", "smoke", 0),
    ]  # fmt: skip
    assert (store.committed / "other.csv").read_bytes() == kept
    rest = run(experiment, Store(store.committed, store.cache / "x"), (0,), small, profile="smoke")
    assert rest.origin == "committed"


def test_publishing_twice_changes_no_byte(experiment, store):
    run(experiment, store)
    path = publish(experiment, Config(), "laptop", (0, 1, 2), store)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    publish(experiment, Config(), "laptop", (0, 1, 2), store)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    assert set(before) == {"toy.csv", "runs.csv"}, "no temporary file may be left"


def test_publishing_an_unfinished_run_changes_nothing(experiment, store):
    run(experiment, store, seeds=(0,))
    with pytest.raises(results.UserError, match=r"seed 1, 2\. Run `unmasked reproduce"):
        publish(experiment, Config(), "laptop", (0, 1, 2), store)
    assert not store.committed.exists()


def test_a_failed_write_leaves_the_old_file_whole(experiment, store, monkeypatch):
    run(experiment, store)
    path = publish(experiment, Config(), "laptop", (0, 1, 2), store)
    before = path.read_bytes()

    def refuse(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="disk full"):
        publish(experiment, Config(), "laptop", (0, 1, 2), store)
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["runs.csv", "toy.csv"]


def other_code(config, seed, workdir):
    """As compute, but another constant three calls deep."""
    return _first(seed)


def _first(seed):
    return _second(seed)


def _second(seed):
    CALLS.append(seed)
    return [{"metric": "loss", "value": seed + OFFSET, "unit": "nats", "n": 1}]


OFFSET = 0.5


def test_stale_committed_rows_are_reported_and_not_recomputed(experiment, store, tmp_path):
    run(experiment, store)
    publish(experiment, Config(), "laptop", (0, 1, 2), store)
    CALLS.clear()
    changed = Experiment("toy", Config, other_code)
    rows = run(changed, Store(store.committed, tmp_path / "other"))
    assert (rows.stale, CALLS) == (True, [])
    assert len(rows.frame) == 12
    assert rows.message == (
        "Rows of toy at profile laptop are stale: other code made those of seed 0, 1, 2; "
        "`unmasked reproduce CHAPTER --experiment toy --profile laptop` renews them."
    )
    partly = run(changed, Store(store.committed, tmp_path / "other"), seeds=(2, 3))
    assert (partly.stale, CALLS) == (True, [])
    assert "(1 of 2 seeds are missing)" in partly.message


def test_fresh_cached_rows_are_better_than_stale_committed_ones(experiment, store):
    run(experiment, store)
    publish(experiment, Config(), "laptop", (0, 1, 2), store)
    changed = Experiment("toy", Config, other_code)
    again = run(changed, store, recompute=True)
    assert (again.origin, again.stale) == ("computed", False)
    rows = run(changed, store)
    assert (rows.origin, rows.stale) == ("cached", False)
    assert rows.frame["value"].tolist() == [0.5, 1.5, 2.5]


def test_seeds_on_different_data_are_stale(store):
    def with_data(letter):
        return Experiment("toy", Config, compute, data_checksum=lambda config: letter * 64)

    assert not run(with_data("d"), store, seeds=(0, 1)).stale
    rows = run(with_data("e"), store, seeds=(0, 1, 2))
    assert rows.stale
    assert "rest on different data" in rows.message
    assert not run(with_data("e"), store, seeds=(0, 1, 2), recompute=True).stale


def test_rows_without_a_provenance_record_are_stale(experiment, store, tmp_path):
    run(experiment, store)
    publish(experiment, Config(), "laptop", (0, 1, 2), store)
    path = store.committed / "runs.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert run(experiment, Store(store.committed, tmp_path / "other")).stale


def test_a_committed_file_without_its_columns_is_refused(experiment, store):
    store.committed.mkdir()
    (store.committed / "toy.csv").write_text("seed,value\n0,1\n")
    with pytest.raises(results.UserError, match=r"toy\.csv in results lacks the columns"):
        run(experiment, store)


PROGRAM = textwrap.dedent(
    """
    import os, sys, time
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    import test_results
    from unmasked.results import Experiment, Store, load_or_compute
    base = Path(sys.argv[2])
    die, delay = int(sys.argv[3]), float(sys.argv[4])
    def work(config, seed, workdir):
        with open(base / "calls", "a") as log:
            log.write(f"{seed} ")
        time.sleep(delay)
        if seed == die:
            os._exit(9)
        for k in range(50):
            yield {"k": k, "metric": "loss", "value": seed + k / 7, "unit": "nats", "n": 1}
    work.__module__, work.__qualname__ = "test_results", "compute"
    experiment = Experiment("toy", test_results.Config, work)
    seeds = range(3) if delay == 0 else range(8)
    store = Store(base / "results", base / "cache")
    rows = load_or_compute(
        experiment, test_results.Config(), profile="laptop", seeds=seeds, store=store
    )
    print(len(rows.frame), rows.frame.groupby("seed").size().unique(), rows.frame.run_id.nunique())
    """
)


def start(base: Path, die: int = -1, delay: float = 0.0) -> subprocess.Popen:
    arguments = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(base)]
    arguments += [str(die), str(delay)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_process_that_dies_at_the_third_seed_resumes_there(tmp_path):
    dead = start(tmp_path, die=2)
    dead.communicate(timeout=60)
    assert dead.returncode == 9
    output, errors = start(tmp_path).communicate(timeout=60)
    assert (tmp_path / "calls").read_text().split() == ["0", "1", "2", "2"], errors
    assert output == "150 [50] 3\n"


def test_two_processes_on_one_cache_lose_no_rows(tmp_path):
    both = [start(tmp_path, delay=0.02) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in both]
    assert [output for output, _ in outputs] == ["400 [50] 8\n"] * 2, outputs
    files = sorted((tmp_path / "cache" / "rows" / "toy").glob("*/*"))
    assert [file.name for file in files] == [f"seed-{seed}.csv" for seed in range(8)]
