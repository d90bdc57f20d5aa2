import math

import pytest
import torch

from unmasked.batches import Masking
from unmasked.lens import fill_masks, mask_lens
from unmasked.models import bert_config, masked_language_model
from unmasked.tokens import train_tokenizer

SENTENCE = "the cat sat on the mat while the dog ran"


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([SENTENCE] * 4, 60, model_max_length=24)


@pytest.fixture(scope="module")
def model(tokenizer):
    return masked_language_model(bert_config("tiny", len(tokenizer), max_length=24), 0)


def lens(model, tokenizer, seed=0, **masking):
    generator = torch.Generator().manual_seed(seed)
    return mask_lens(model, tokenizer, SENTENCE, Masking(0.4, **masking), generator)


def test_loss_is_minus_log_probability_of_the_true_token_under_the_corrupted_input(
    model, tokenizer
):
    table = lens(model, tokenizer)
    seen = torch.tensor([tokenizer.convert_tokens_to_ids(table["seen"].tolist())])
    with torch.no_grad():
        dense = model(input_ids=seen).logits[0].double().softmax(-1)
    for row in table[table["selected"]].itertuples():
        p = dense[row.position, tokenizer.convert_tokens_to_ids(row.token)].item()
        assert row.probability == pytest.approx(p, rel=1e-6)
        assert row.loss == pytest.approx(-math.log(p), rel=1e-6)
        best = tokenizer.convert_ids_to_tokens(int(dense[row.position].argmax()))
        assert row.predictions.startswith(f"{best} ")


def test_only_selected_positions_have_a_fate_and_a_loss(model, tokenizer):
    table = lens(model, tokenizer)
    assert table["selected"].sum() == round(0.4 * 10)
    assert (table["fate"] != "").equals(table["selected"])
    assert table["loss"].notna().equals(table["selected"])
    kept = ~table["selected"]
    assert table["token"][kept].equals(table["seen"][kept])


@pytest.mark.parametrize(("masking", "fate"), [((1.0, 0.0), "masked"), ((0.0, 0.0), "kept")])
def test_fates_follow_the_corruption(model, tokenizer, masking, fate):
    table = lens(model, tokenizer, mask=masking[0], random=masking[1])
    assert set(table["fate"]) == {"", fate}


def test_fill_masks_gives_the_models_own_top_tokens(model, tokenizer):
    table = fill_masks(model, tokenizer, ["the [MASK] sat on the mat"], top=3)
    ids = tokenizer("the [MASK] sat on the mat", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        p = model(input_ids=ids).logits[0, 2].double().softmax(-1)
    names = [part.split()[0] for part in table["predictions"][0].split(" · ")]
    assert names == tokenizer.convert_ids_to_tokens(p.topk(3).indices.tolist())
    assert table["entropy"][0] == pytest.approx(float(-(p * p.log()).sum()))


@pytest.mark.parametrize("sentence", ["the cat sat", "the [MASK] sat on [MASK]"])
def test_one_mask_is_needed(model, tokenizer, sentence):
    with pytest.raises(ValueError, match=r"times; once is needed"):
        fill_masks(model, tokenizer, [sentence])


def test_empty_and_long_sentences_are_refused(model, tokenizer):
    with pytest.raises(ValueError, match="holds no token"):
        fill_masks(model, tokenizer, [" "])
    with pytest.raises(ValueError, match="longer than the model's 24 positions"):
        fill_masks(model, tokenizer, ["the cat " * 30 + "[MASK]"])
