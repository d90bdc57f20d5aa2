import math

import pytest
import torch
from transformers import AutoModelForMaskedLM, BertForMaskedLM

from unmasked.masking import IGNORE_INDEX
from unmasked.models import (
    SIZES,
    MaskedLanguageModel,
    bert_config,
    masked_language_model,
    training_flops_per_token,
)


def batch(vocabulary: int = 50, padded: bool = True):
    generator = torch.Generator().manual_seed(3)
    input_ids = torch.randint(5, vocabulary, (4, 12), generator=generator)
    attention_mask = torch.ones_like(input_ids)
    if padded:
        attention_mask[1, 7:] = 0
        attention_mask[3, 4:] = 0
        input_ids[attention_mask == 0] = 0
    chosen = (torch.rand(4, 12, generator=generator) < 0.3) & attention_mask.bool()
    labels = torch.where(chosen, input_ids, IGNORE_INDEX)
    return input_ids.masked_fill(chosen, 4), attention_mask, labels


@pytest.fixture(scope="module")
def model():
    return masked_language_model(bert_config("tiny", 50), seed=1).eval()


@pytest.fixture(scope="module")
def reference(model):
    other = BertForMaskedLM(model.config).eval()
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize("padded", [True, False])
def test_loss_and_logits_equal_transformers(model, reference, padded):
    input_ids, attention_mask, labels = batch(padded=padded)
    ours = model(input_ids, attention_mask=attention_mask, labels=labels)
    theirs = reference(input_ids, attention_mask=attention_mask, labels=labels)
    torch.testing.assert_close(ours.loss, theirs.loss, rtol=1e-6, atol=1e-6)
    selected = theirs.logits[labels != IGNORE_INDEX]
    assert ours.logits.shape == selected.shape
    torch.testing.assert_close(ours.logits, selected, rtol=0, atol=1e-5)


def test_gradients_equal_transformers(model, reference):
    input_ids, attention_mask, labels = batch()
    for net in (model, reference):
        net.zero_grad()
        net(input_ids, attention_mask=attention_mask, labels=labels).loss.backward()
    theirs = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, theirs[name].grad, rtol=1e-4, atol=1e-6)


def test_without_labels_it_is_the_dense_model(model, reference):
    input_ids, attention_mask, _ = batch()
    with torch.no_grad():
        ours = model(input_ids, attention_mask=attention_mask).logits
        theirs = reference(input_ids, attention_mask=attention_mask).logits
    assert torch.equal(ours, theirs)


def test_padding_does_not_change_the_loss(model):
    input_ids, attention_mask, labels = batch()
    wide = [torch.nn.functional.pad(t, (0, 5), value=v) for t, v in
            ((input_ids, 0), (attention_mask, 0), (labels, IGNORE_INDEX))]  # fmt: skip
    short = model(input_ids, attention_mask=attention_mask, labels=labels).loss
    long = model(wide[0], attention_mask=wide[1], labels=wide[2]).loss
    torch.testing.assert_close(short, long, rtol=1e-5, atol=1e-6)


def test_a_batch_without_labels_has_zero_loss_and_zero_gradient(model):
    input_ids, attention_mask, labels = batch()
    model.zero_grad()
    output = model(
        input_ids, attention_mask=attention_mask, labels=torch.full_like(labels, IGNORE_INDEX)
    )
    assert output.loss.item() == 0.0
    output.loss.backward()
    assert all(torch.all(p.grad == 0) for p in model.parameters() if p.grad is not None)


def test_num_items_rescales_the_sum(model):
    input_ids, attention_mask, labels = batch()
    count = int((labels != IGNORE_INDEX).sum())
    mean = model(input_ids, attention_mask=attention_mask, labels=labels).loss
    part = model(
        input_ids, attention_mask=attention_mask, labels=labels, num_items_in_batch=2 * count
    ).loss
    torch.testing.assert_close(part * 2, mean)


def test_round_trip_and_auto_class(model, tmp_path):
    model.save_pretrained(tmp_path)
    input_ids, attention_mask, _ = batch()
    for cls in (MaskedLanguageModel, AutoModelForMaskedLM):
        loaded = cls.from_pretrained(tmp_path).eval()
        with torch.no_grad():
            expected = model(input_ids, attention_mask=attention_mask).logits
            assert torch.equal(loaded(input_ids, attention_mask=attention_mask).logits, expected)


def test_the_seed_alone_decides_the_weights():
    torch.manual_seed(0)
    first = masked_language_model(bert_config("tiny", 50), seed=7).state_dict()
    torch.rand(100)
    second = masked_language_model(bert_config("tiny", 50), seed=7).state_dict()
    other = masked_language_model(bert_config("tiny", 50), seed=8).state_dict()
    name = "bert.encoder.layer.0.attention.self.query.weight"
    assert torch.equal(first[name], second[name])
    assert not torch.equal(first[name], other[name])


def test_initialisation_scales_with_width():
    assert bert_config("base", 100).initializer_range == pytest.approx(0.02)
    tiny = masked_language_model(bert_config("tiny", 2000), seed=0)
    measured = tiny.bert.embeddings.word_embeddings.weight[1:].std().item()
    assert measured == pytest.approx(0.02 * math.sqrt(768 / 128), rel=0.02)


@pytest.mark.parametrize(("size", "low", "high"), [("mini", 5.0e6, 5.6e6), ("base", 92e6, 93e6)])
def test_parameter_counts(size, low, high):
    with torch.device("meta"):
        count = sum(p.numel() for p in MaskedLanguageModel(bert_config(size, 8192)).parameters())
    assert low < count < high


def test_unknown_size_names_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown model size 'huge'.*tiny, mini, small, base"):
        bert_config("huge", 100)


def test_flops_of_bert_base():
    # 0.588 GFLOP a token: 3 x [12 (24 d^2 + 4 d L) + 0.15 x 2 (d^2 + d V)], V = 30,522.
    flops = training_flops_per_token(bert_config("base", 30_522, max_length=512), 512, 0.15)
    assert flops == pytest.approx(0.588e9, rel=2e-3)


def test_flops_agree_with_a_counter():
    from torch.utils.flop_counter import FlopCounterMode

    config = bert_config("tiny", 50, max_length=16)
    config._attn_implementation = "eager"
    model = masked_language_model(config, seed=0)
    input_ids = torch.randint(5, 50, (4, 16))
    labels = torch.full_like(input_ids, IGNORE_INDEX)
    labels[:, :4] = input_ids[:, :4]
    with FlopCounterMode(display=False) as counter:
        model(input_ids, labels=labels).loss.backward()
    expected = training_flops_per_token(config, 16, 0.25) * input_ids.numel()
    assert counter.get_total_flops() == pytest.approx(expected, rel=0.02)


def test_every_named_size_divides_into_heads():
    assert all(hidden % heads == 0 for _, hidden, heads in SIZES.values())
