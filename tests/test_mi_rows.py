"""Shortcuts in the forward pass must not change a number; neither must a stop and a restart."""

import pytest
import torch
from transformers import RobertaConfig, RobertaForMaskedLM

from unmasked import mi, mi_rows
from unmasked.masking import MaskingVocabulary
from unmasked.mi_rows import logits_at
from unmasked.models import bert_config, masked_language_model

VOCABULARY = MaskingVocabulary(60, 4, (0, 1, 2, 3, 4))
SENTENCES = [torch.tensor([2, *ids, 3]) for ids in ([9, 30, 41], [8, 50, 12], [55, 31, 9, 17])]


@pytest.fixture(scope="module")
def bert():
    return masked_language_model(bert_config("mini", 60, max_length=16, initializer_range=0.1), 0)


def measured(model, folder=None, seed=0, sentences=SENTENCES, **settings):
    settings = {"head": 4, "tail": 4, **settings}
    return mi.conditional_mutual_information(
        model, VOCABULARY, sentences, generator=torch.Generator().manual_seed(seed),
        folder=folder, **settings,
    )  # fmt: skip


@pytest.mark.parametrize("count", [1, 2])
def test_needed_positions_alone_have_the_logits_of_the_plain_model(bert, count):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(60, (7, 12), generator=generator)
    places = torch.randint(12, (7, count), generator=generator)
    with torch.inference_mode():
        plain = bert.eval()(input_ids=rows).logits[torch.arange(7)[:, None], places]
        torch.testing.assert_close(logits_at(bert, rows, places), plain, atol=1e-5, rtol=1e-5)


def test_any_other_architecture_runs_as_it_is():
    config = RobertaConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1,
                           num_attention_heads=2, intermediate_size=32, pad_token_id=0,
                           max_position_embeddings=16, initializer_range=0.5)  # fmt: skip
    torch.manual_seed(0)
    model = RobertaForMaskedLM(config).eval()
    row = torch.tensor([[2, 9, 4, 41, 3]])
    expected = model(input_ids=row).logits[:, [2]]
    torch.testing.assert_close(logits_at(model, row, torch.tensor([[2]])), expected)
    assert measured(model)[0].information[0, 1] > 0


def test_a_memo_with_room_for_one_row_changes_nothing_but_the_count(bert, monkeypatch):
    settings = {"estimator": "gibbs", "steps": 12, "sentences": SENTENCES[:1]}
    before = measured(bert, **settings)
    monkeypatch.setattr(mi_rows, "MEMO_BYTES", 1)
    after = measured(bert, **settings)
    for left, right in zip(before, after, strict=True):
        torch.testing.assert_close(left.information, right.information, atol=2e-5, rtol=0)
        assert left.rows < right.rows


def count_calls(monkeypatch):
    calls = []
    original = mi_rows.logits_at
    monkeypatch.setattr(mi_rows, "logits_at",
                        lambda *work: calls.append(len(work[1])) or original(*work))  # fmt: skip
    return calls


def test_a_second_run_reads_what_the_first_one_finished(bert, tmp_path, monkeypatch):
    first = measured(bert, tmp_path, sentences=SENTENCES[:2])
    calls = count_calls(monkeypatch)
    again = measured(bert, tmp_path)
    new = again[2].rows
    assert sum(calls) == new > 0
    for left, right in zip(first, again[:2], strict=True):
        for name, value in vars(left).items():
            torch.testing.assert_close(value, vars(right)[name], equal_nan=True, rtol=0, atol=0)


def test_a_run_that_was_stopped_keeps_its_finished_sentences(bert, tmp_path, monkeypatch):
    kept, original = [], mi.save_information

    def stop_after_one(path, information):
        if kept:
            raise KeyboardInterrupt
        kept.append(path)
        original(path, information)

    monkeypatch.setattr(mi, "save_information", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        measured(bert, tmp_path)
    assert [*tmp_path.iterdir()] == kept


@pytest.mark.parametrize("change", ["seed", "head", "weights", "window"])
def test_other_settings_never_read_these_files(bert, tmp_path, change):
    measured(bert, tmp_path)
    before = {*tmp_path.iterdir()}
    model = bert
    if change == "weights":
        model = masked_language_model(bert.config, 1)
    settings = {"seed": {"seed": 1}, "head": {"head": 5}, "window": {"window": 1}}
    measured(model, tmp_path, **settings.get(change, {}))
    assert len({*tmp_path.iterdir()} - before) == len(SENTENCES)


def test_a_damaged_file_is_computed_again_with_a_warning(bert, tmp_path):
    first = measured(bert, tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match=r"\.npz cannot be read"):
        again = measured(bert, tmp_path)
    torch.testing.assert_close(first[0].information, again[0].information)
    measured(bert, tmp_path)  # whole again: no warning, which would be an error
