import json

import pydantic
import pytest

from unmasked.project import UserError
from unmasked.results import Experiment, Store
from unmasked.saved_models import publish_model, saved_model


class Config(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, frozen=True, extra="forbid")
    steps: int = 1


def compute(config, seed, workdir):
    yield {"metric": "loss", "value": float(config.steps), "unit": "nats", "n": 1}


EXPERIMENT = Experiment("toy_model", Config, compute)


@pytest.fixture
def store(tmp_path):
    return Store(committed=tmp_path / "results", cache=tmp_path / "cache")


def save(store, text, config=Config(), seed=0):  # noqa: B008
    folder = store.work_folder(EXPERIMENT, config, seed) / "model"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_text(text)


def test_a_published_model_is_found_and_carries_its_record(store):
    save(store, "one")
    place = publish_model(EXPERIMENT, Config(), 0, store)
    assert place == store.committed / "checkpoints" / "toy_model"
    record = json.loads((place / "unmasked.json").read_text())
    assert (record["experiment"], record["seed"]) == ("toy_model", 0)
    assert record["fingerprint"] == EXPERIMENT.fingerprint
    assert saved_model(EXPERIMENT, Config(), 0, store) == place


def test_publishing_again_replaces_the_whole_folder(store):
    save(store, "one")
    place = publish_model(EXPERIMENT, Config(), 0, store)
    (place / "left-over").write_text("")
    save(store, "two")
    publish_model(EXPERIMENT, Config(), 0, store)
    assert (place / "weights").read_text() == "two"
    assert sorted(path.name for path in place.parent.iterdir()) == ["toy_model"]
    assert not (place / "left-over").exists()


def test_nothing_saved_publishes_nothing(store):
    assert publish_model(EXPERIMENT, Config(), 0, store) is None
    assert not (store.committed / "checkpoints").exists()


def test_the_cache_serves_a_configuration_that_is_not_committed(store):
    save(store, "one")
    publish_model(EXPERIMENT, Config(), 0, store)
    other = Config(steps=2)
    save(store, "other", other, seed=3)
    assert (saved_model(EXPERIMENT, other, 3, store) / "weights").read_text() == "other"


@pytest.mark.parametrize(
    ("config", "seed", "differs"), [(Config(steps=2), 0, "config_hash"), (Config(), 1, "seed")]
)
def test_a_model_of_another_run_is_refused(store, config, seed, differs):
    save(store, "one")
    publish_model(EXPERIMENT, Config(), 0, store)
    with pytest.raises(UserError, match=rf"another run \(differs in {differs}\).*--recompute"):
        saved_model(EXPERIMENT, config, seed, store)


def test_no_model_and_a_broken_record_are_named(store):
    with pytest.raises(UserError, match="There is no saved model toy_model"):
        saved_model(EXPERIMENT, Config(), 0, store)
    place = store.committed / "checkpoints" / "toy_model"
    place.mkdir(parents=True)
    (place / "unmasked.json").write_text("{half")
    with pytest.raises(UserError, match=r"toy_model/unmasked\.json .* cannot be read"):
        saved_model(EXPERIMENT, Config(), 0, store)
