import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers.modeling_outputs import MaskedLMOutput

from unmasked import masking
from unmasked.experiments import bugs, walks
from unmasked.experiments.walks import MASK, SPECIALS, WalkConfig
from unmasked.masking import IGNORE_INDEX
from unmasked.models import bert_config, masked_language_model
from unmasked.training import masked_loss

CONFIG = WalkConfig(
    vocabulary_size=8, nodes=24, min_length=4, max_length=9, train_sequences=24,
    validation_sequences=20, steps=2, batch_size=8, learning_rate=1e-3, mask_probability=0.3,
    evaluations=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return masked_language_model(bert_config("tiny", CONFIG.vocabulary.size, max_length=11), 0)


def batch(step: int = 0):
    rows = walks.walk_sequences(CONFIG, 0)
    return bugs.correct_batches(rows, CONFIG, 0)(step)


def test_the_floor_of_padded_framed_walks_equals_each_walk_on_its_own():
    exam = walks.exam_of(CONFIG)
    nats = []
    for part in exam.batches:
        ids, labels = part.inputs["input_ids"].numpy(), part.inputs["labels"].numpy()
        for row, length in enumerate(part.inputs["attention_mask"].sum(1).tolist()):
            selected = labels[row, 1 : length - 1] != IGNORE_INDEX
            walk = np.where(selected, labels[row, 1 : length - 1], ids[row, 1 : length - 1])
            nats.append(CONFIG.walk.floor(walk[None] - SPECIALS, selected[None]))
    assert exam.floor == pytest.approx(np.concatenate(nats).mean(), rel=1e-9)


def test_every_seed_sits_the_same_exam_and_trains_on_its_own_walks():
    assert walks.exam_of(CONFIG).floor == walks.exam_of(CONFIG).floor
    first, second = (walks.walk_sequences(CONFIG, seed) for seed in (0, 1))
    assert first.checksum() != second.checksum()
    assert first.checksum() == walks.walk_sequences(CONFIG, 0).checksum()


def test_shuffling_keeps_the_tokens_and_breaks_the_order():
    config = CONFIG.model_copy(update={"min_length": 9})
    straight, mixed = (walks.walk_sequences(config, 0, shuffled=s) for s in (False, True))
    for a, b in zip(straight, mixed, strict=True):
        assert sorted(a) == sorted(b)
    assert any(a.tolist() != b.tolist() for a, b in zip(straight, mixed, strict=True))


class Oracle(torch.nn.Module):
    """Predicts the exact posterior, or with `mix` a mixture of it and the uniform distribution."""

    def __init__(self, exam, mix=0.0):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        table = (1 - mix) * exam.posterior + mix / exam.posterior.shape[1]
        self.pieces = list(torch.from_numpy(table).split([b.items for b in exam.batches]))

    def forward(self, input_ids, attention_mask, labels, num_items_in_batch):
        p = F.pad(self.pieces.pop(0), (SPECIALS, 0))
        logits = p.clamp_min(1e-300).log()
        loss = F.cross_entropy(logits, labels[labels != IGNORE_INDEX], reduction="sum")
        return MaskedLMOutput(loss=loss / num_items_in_batch, logits=logits)


def test_the_exact_posterior_has_the_floor_as_loss_and_no_divergence():
    from unmasked.evaluation import evaluate_masked

    exam = walks.exam_of(CONFIG)
    assert evaluate_masked(Oracle(exam), exam.batches)["loss"] == pytest.approx(exam.floor)
    assert walks.divergence(Oracle(exam), exam) == pytest.approx(0.0, abs=1e-9)


def test_divergence_is_the_kullback_leibler_divergence():
    from scipy.special import rel_entr

    exam = walks.exam_of(CONFIG)
    mixed = 0.5 * exam.posterior + 0.5 / exam.posterior.shape[1]
    expected = rel_entr(exam.posterior, mixed).sum(1).mean()
    assert walks.divergence(Oracle(exam, 0.5), exam) == pytest.approx(expected)


def test_random_walk_rows_hold_together(tmp_path):
    rows = list(walks.compute_random_walk(CONFIG, 0, tmp_path))
    value = {(r["metric"], r["corpus"], r["step"]): r["value"] for r in rows}
    floor = value["floor", "walk", None]
    for corpus in ("walk", "shuffled"):
        gap = value["loss", corpus, 2] - floor
        assert value["excess_loss", corpus, 2] == pytest.approx(gap)
        assert value["divergence", corpus, None] > 0
    assert floor < value["unigram", "walk", None] < math.log(8) + 0.2


def test_mean_before_masking_does_not_see_the_mask(model):
    inputs, items = batch().inputs, batch().items
    value = bugs.mean_before_masking(model, inputs, items)
    whole = torch.where(inputs["labels"] == IGNORE_INDEX, inputs["input_ids"], inputs["labels"])
    logits = model(inputs["input_ids"], inputs["attention_mask"]).logits
    expected = F.cross_entropy(logits.flatten(0, 1), whole.flatten())
    torch.testing.assert_close(value, expected)
    assert not torch.isclose(value, masked_loss(model, inputs, items), rtol=1e-3)


def test_padding_in_the_mean_divides_by_every_position(model):
    inputs, items = batch().inputs, batch().items
    ratio = items / inputs["input_ids"].numel()
    torch.testing.assert_close(
        bugs.padding_in_mean(model, inputs, items), masked_loss(model, inputs, items) * ratio
    )


def by_row(at, step):
    part = at(step)
    labels = part.inputs["labels"]
    return {
        i: tuple((row != IGNORE_INDEX).nonzero().flatten().tolist())
        for i, row in zip(part.indices, labels, strict=True)
    }


def test_static_masks_repeat_in_every_epoch_and_correct_ones_do_not():
    rows = walks.walk_sequences(CONFIG, 0)
    for make, repeats in ((bugs.static_masks, True), (bugs.correct_batches, False)):
        at = make(rows, CONFIG, 0)
        epochs = [{k: v for s in steps for k, v in by_row(at, s).items()}
                  for steps in ((0, 1, 2), (3, 4, 5))]  # fmt: skip
        assert set(epochs[0]) == set(epochs[1]) == set(range(24))
        assert (epochs[0] == epochs[1]) is repeats


def test_static_masks_hide_what_they_label():
    part = bugs.static_masks(walks.walk_sequences(CONFIG, 0), CONFIG, 0)(0)
    selected = part.inputs["labels"] != IGNORE_INDEX
    assert torch.all(part.inputs["input_ids"][selected] == MASK)
    assert part.items == int(selected.sum()) > 0
    assert torch.all(part.inputs["attention_mask"][selected] == 1)


def test_special_tokens_are_selected_only_by_the_bug():
    rows = walks.walk_sequences(CONFIG, 0)
    for make, wrong in ((bugs.special_tokens_selected, True), (bugs.correct_batches, False)):
        labels = torch.cat([make(rows, CONFIG, 0)(s).inputs["labels"].flatten() for s in range(6)])
        assert bool(((labels >= 0) & (labels < SPECIALS)).any()) is wrong
        assert not (labels == 0).any()  # padding is never selected


@pytest.mark.parametrize(
    ("name", "masked", "random"),
    [("none", 0.8, 0.1), ("independent draws", 0.81, 0.09), ("special replacements", 0.8, 0.1)],
)
def test_corruption_bugs_have_the_shares_they_are_named_for(name, masked, random):
    vocabulary = masking.MaskingVocabulary(20_005, MASK, tuple(range(SPECIALS)))
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(SPECIALS, 20_005, (1, 400_000), generator=generator)
    everywhere = torch.ones_like(ids, dtype=torch.bool)
    seen = bugs.CORRUPTIONS[name](ids, everywhere, vocabulary, generator)
    shares = [(seen == MASK).double().mean(), ((seen != MASK) & (seen != ids)).double().mean()]
    # five standard deviations of a share of 400,000 draws
    assert shares[0].item() == pytest.approx(masked, abs=5 * math.sqrt(0.16 / 4e5))
    assert shares[1].item() == pytest.approx(random, abs=5 * math.sqrt(0.09 / 4e5))


def test_special_replacements_are_special_and_correct_ones_are_not():
    vocabulary = CONFIG.vocabulary
    generator = torch.Generator().manual_seed(0)
    ids = torch.full((64, 64), SPECIALS)
    everywhere = torch.ones_like(ids, dtype=torch.bool)
    for name, wrong in (("special replacements", True), ("none", False)):
        seen = bugs.CORRUPTIONS[name](ids, everywhere, vocabulary, generator)
        assert bool(((seen < SPECIALS) & (seen != MASK)).any()) is wrong


def test_gallery_rows_name_every_bug_and_count_empty_selections(tmp_path):
    rows = list(bugs.compute_bug_gallery(CONFIG, 0, tmp_path))
    assert {r["bug"] for r in rows} == {
        *bugs.TRAINED_BUGS, *bugs.CORRUPTIONS, "no masked position"
    }  # fmt: skip
    nan = {r["bug"]: r["value"] for r in rows if r["metric"] == "nan_share"}
    assert nan["none"] == 0.0
    # four positions, each selected with probability 0.3: none is with probability 0.7 ** 4
    expected = 0.7**4
    assert nan["no masked position"] == pytest.approx(expected, abs=5 * math.sqrt(0.19 / 4096))
