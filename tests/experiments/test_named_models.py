import pytest
import torch

from unmasked import project
from unmasked.experiments.named_models import load_named, named_checksum
from unmasked.models import bert_config, masked_language_model
from unmasked.project import UserError
from unmasked.tokens import train_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("named") / "model"
    tokenizer = train_tokenizer(["the old cat sat on the mat"] * 3, 40)
    model = masked_language_model(bert_config("tiny", len(tokenizer), max_length=16), 3)
    model.to(torch.float16).save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


def test_a_folder_gives_its_weights_in_single_precision_ready_to_evaluate(folder):
    model, tokenizer = load_named(str(folder))
    expected = masked_language_model(model.config, 3).state_dict()
    for name, value in model.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, expected[name].half().float())
    assert not model.training
    assert tokenizer.tokenize("the cat")


def test_the_book_model_is_the_committed_one():
    model, tokenizer = load_named("book_model")
    assert model.config.vocab_size == len(tokenizer) == 8192
    file = project.root() / "results" / "checkpoints" / "book_model" / "model.safetensors"
    assert file.is_file()


def test_the_checksum_follows_the_weights_and_is_the_name_on_the_hub(folder, tmp_path):
    before = named_checksum(str(folder))
    assert len(before) == 16
    copy = tmp_path / "copy"
    copy.mkdir()
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "model.safetensors").write_bytes(content)
    assert named_checksum(str(copy)) != before
    assert named_checksum("bert-base-uncased") == "bert-base-uncased"


def test_an_unknown_model_names_itself_and_the_ways_out(monkeypatch, tmp_path):
    with pytest.raises(UserError, match=r"'no/such-model' cannot be loaded .*'book_model', a fold"):
        load_named("no/such-model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="cannot be loaded"):
        load_named(str(tmp_path / "empty"))


def test_a_model_without_a_mask_token_is_refused(folder, tmp_path):
    model, tokenizer = load_named(str(folder))
    tokenizer.mask_token = None
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="has no mask token"):
        load_named(str(tmp_path))
