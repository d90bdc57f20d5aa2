import numpy as np
import pytest
import torch
from transformers.modeling_outputs import MaskedLMOutput

from unmasked.experiments import tree_fields
from unmasked.experiments.tree_fields import MASK, SPECIALS, TreeFieldConfig
from unmasked.masking import IGNORE_INDEX

CONFIG = TreeFieldConfig(
    positions=5, values=3, strength=1.2, train_sequences=64, validation_sequences=40, steps=4,
    batch_size=16, learning_rate=1e-3, maskings=("one mask", "50 %"), evaluations=2, sentences=3,
    compared=2, classical_samples=(32,),
)  # fmt: skip


@pytest.fixture(scope="module")
def exam():
    return tree_fields.exam_of(CONFIG)


class Oracle(torch.nn.Module):
    """The field's exact conditionals as a masked language model over its ids."""

    def __init__(self):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.config = type("Config", (), {"vocab_size": SPECIALS + CONFIG.values})

    def forward(self, input_ids, attention_mask=None, labels=None, num_items_in_batch=None):
        tokens = input_ids[:, 1:-1].numpy() - SPECIALS
        posterior = CONFIG.field.conditional(tokens, input_ids[:, 1:-1].numpy() == MASK)
        logits = torch.full((*input_ids.shape, SPECIALS + CONFIG.values), -50.0).double()
        logits[:, 1:-1, SPECIALS:] = torch.from_numpy(np.log(posterior))
        if labels is None:
            return MaskedLMOutput(logits=logits)
        chosen = labels != IGNORE_INDEX
        nats = torch.nn.functional.cross_entropy(logits[chosen], labels[chosen], reduction="sum")
        return MaskedLMOutput(loss=nats / num_items_in_batch, logits=logits[chosen])


def test_the_exact_conditionals_pass_every_question_of_the_exam(exam):
    found = tree_fields.measure(Oracle(), CONFIG, exam)
    assert found["excess_loss"] == pytest.approx(0.0, abs=1e-6)
    assert found["recovered"] == 1.0
    linked = tree_fields._linked(CONFIG.field)
    expected = exam.information.mean(0)[linked].mean()
    assert found["on_tree"] == pytest.approx(expected, abs=1e-5)
    for metric in ("off_tree", "sides_apart", "imbalance", "imbalance_off", "log_odds_off"):
        assert found[metric] == pytest.approx(0.0, abs=2e-5), metric
    exact = np.mean([tree_fields.log_odds_size(np.exp(t)) for t in CONFIG.field.log_potentials])
    assert found["log_odds"] == pytest.approx(exact, abs=1e-4)


def test_one_mask_is_one_mask_and_the_exam_uses_it(exam):
    for batch in exam.batches:
        assert ((batch.inputs["labels"] != IGNORE_INDEX).sum(1) == 1).all()
        assert ((batch.inputs["input_ids"] == MASK).sum(1) == 1).all()
    masks = CONFIG.masking("15 %")
    assert (masks.probability, masks.selection, masks.mask) == (0.15, "bernoulli", 1.0)


def test_recovered_counts_shared_edges():
    edges = CONFIG.field.edges
    weights = np.zeros((5, 5))
    weights[tuple(edges.T)] = 1.0
    assert tree_fields.recovered(weights, CONFIG.field) == 1.0
    dropped = weights.copy()
    dropped[tuple(edges[0])] = -1.0  # the worst pair of all: another edge must take its place
    assert tree_fields.recovered(dropped, CONFIG.field) == 0.75


def test_rows_hold_together(tmp_path):
    rows = list(tree_fields.compute_tree_field(CONFIG, 0, tmp_path))
    keys = [tuple(v for k, v in r.items() if k not in {"value", "unit", "n"}) for r in rows]
    assert len(set(keys)) == len(keys)
    assert len({tuple(r) for r in rows}) == 1
    value = dict(zip(keys, (r["value"] for r in rows), strict=True))
    assert value["exact", None, None, None, "recovered"] == 1.0
    assert value["exact", None, None, None, "off_tree"] < 1e-12
    assert {k[3] for k in value if k[0] == "Chow-Liu"} == {32, 64}
    assert {(k[1], k[2]) for k in value if k[0] == "model"} == {
        (name, step) for name in CONFIG.maskings for step in (2, 4)
    }
    floor = value["exact", None, None, None, "floor"]
    for name in CONFIG.maskings:
        excess = value["model", name, 4, 64, "excess_loss"]
        assert value["model", name, 4, 64, "loss"] == pytest.approx(floor + excess)
    chance = value["random tree", None, None, None, "recovered"]
    assert chance == pytest.approx(2 / 5, abs=5 * (0.24 / 100) ** 0.5)
    assert not list(tmp_path.rglob("*.safetensors"))
