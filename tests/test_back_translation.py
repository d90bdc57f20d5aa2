"""Back-translation on tiny random translators: what is forced, what is scored, what is chosen."""

from __future__ import annotations

import itertools

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from unmasked import back_translation as bt
from unmasked.perturb import Candidate

WORDS = ["the", "old", "film", "was", "a", "very", "clever", "joke", "about", "us"]


def tiny_translator(seed: int) -> bt.Translator:
    vocabulary = {word: n for n, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing("$A </s>", None, [("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    torch.manual_seed(seed)
    layers = dict(encoder_layers=1, decoder_layers=1)
    heads = dict(encoder_attention_heads=2, decoder_attention_heads=2)
    config = MarianConfig(
        vocab_size=len(vocabulary),
        d_model=16,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=128,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
        init_std=1.0,
        **layers,
        **heads,
    )
    return bt.Translator(MarianMTModel(config).eval(), tokenizer)


@pytest.fixture(scope="module")
def translators():
    return tiny_translator(0), tiny_translator(3)


def test_scores_are_those_of_the_words_after_the_prefix(translators, monkeypatch):
    monkeypatch.setattr(bt, "LONGEST", 5)
    back = translators[1]
    prefix = "the old film"
    texts, scores = bt.translations(back, "a very clever joke", prefix)
    assert len(texts) == bt.BEAMS
    assert scores == sorted(scores, reverse=True)
    encoded = back.tokenizer("a very clever joke", return_tensors="pt")
    compared = 0
    for text, score in zip(texts, scores, strict=True):
        said = back.tokenizer(text, add_special_tokens=False)["input_ids"]
        said = [*said, 1] if len(said) < 5 else said  # it ended, or was cut
        before = [0, *back.tokenizer(prefix, add_special_tokens=False)["input_ids"]]
        with torch.no_grad():
            logits = back.model(
                **encoded, decoder_input_ids=torch.tensor([[*before, *said]])
            ).logits
        logs = logits[0].log_softmax(-1)[len(before) - 1 : -1]
        total = float(logs[torch.arange(len(said)), torch.tensor(said)].sum())
        if {0, 2} & set(said):
            continue  # special tokens do not show in the text
        assert score == pytest.approx(total / len(said), abs=1e-4)
        compared += 1
    assert compared


@pytest.mark.parametrize(
    ("candidate", "sent", "forced"),
    [
        (Candidate(4, 8, "NP", 4), "the old film was a very clever joke", "the old film was"),
        (Candidate(4, 8, "NP", 4, leftmost=True), "a very clever joke", ""),
        (Candidate(4, 8, "VP", 4, leftmost=True), " ".join(WORDS[:8]), "the old film was"),
        (Candidate(0, 3, "NP", 3), "the old film", ""),
    ],
    ids=["after its words", "noun phrase first", "verb phrase first", "sentence start"],
)
def test_what_is_translated_and_what_is_forced(monkeypatch, candidate, sent, forced):
    calls = []

    def translations(translator, text, prefix=""):
        calls.append((translator, text, prefix))
        if translator == "forward":
            return ["ein Witz", "zweiter"], [-1.0, -2.0]
        return ["", "a joke", "those three clever things"], [-0.1, -0.2, -1.15]

    monkeypatch.setattr(bt, "translations", translations)
    found = bt.paraphrased(WORDS, candidate, "long phrase", "forward", "back", sentence=7)
    assert calls == [("forward", sent, ""), ("back", "ein Witz", forced)]
    # The empty translation does not count, so the third is within the margin of the second.
    assert found.replacement == "those three clever things"
    assert (found.sentence, found.kind, found.span) == (
        7,
        "long phrase",
        (candidate.start, candidate.stop),
    )
    before, after = WORDS[: candidate.start], WORDS[candidate.stop :]
    assert found.changed == " ".join([*before, "those three clever things", *after])
    assert found.original == " ".join(WORDS)


def test_nothing_said_is_no_paraphrase(monkeypatch):
    monkeypatch.setattr(bt, "translations", lambda *_: (["", ""], [-1.0, -2.0]))
    assert bt.paraphrased(WORDS, Candidate(0, 3, "NP"), "long phrase", None, None) is None


def test_both_ways_on_real_models(translators):
    found = bt.paraphrased(WORDS, Candidate(4, 8, "VP", 4), "long phrase", *translators)
    again = bt.paraphrased(WORDS, Candidate(4, 8, "VP", 4), "long phrase", *translators)
    assert found == again
    assert found.changed.startswith("the old film was ")
    assert found.changed.endswith(" about us")
    assert found.word == "a very clever joke"


def test_choice_against_a_search_over_all():
    source = ["a", "b", "c"]
    candidates = [list(each) for each in itertools.product("abx", repeat=3)]
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        scores = (3 * torch.rand(len(candidates), generator=generator)).tolist()
        chosen = bt.choose(candidates, scores, source)
        allowed = [n for n, score in enumerate(scores) if max(scores) - score <= 1]
        # No insertion is cheaper among words of one length but shifts, counted by the brute force.
        farthest = max(distance(candidates[n], source) for n in allowed)
        assert chosen in allowed
        assert distance(candidates[chosen], source) == farthest
        equal = [n for n in allowed if distance(candidates[n], source) == farthest]
        assert scores[chosen] == max(scores[n] for n in equal)


def distance(left: list[str], right: list[str]) -> int:
    if not left or not right:
        return len(left) + len(right)
    return min(
        distance(left[1:], right) + 1,
        distance(left, right[1:]) + 1,
        distance(left[1:], right[1:]) + (left[0] != right[0]),
    )


def test_margin_decides_between_the_best_and_the_farthest():
    candidates, scores = [["a", "b"], ["x", "y"]], [-1.0, -2.5]
    assert bt.choose(candidates, scores, ["a", "b"]) == 0
    assert bt.choose(candidates, scores, ["a", "b"], margin=1.5) == 1


@pytest.mark.parametrize(
    ("candidates", "scores", "margin", "message"),
    [
        ([], [], 1.0, "0 candidates with 0 scores"),
        ([["a"]], [1.0, 2.0], 1.0, "1 candidates with 2 scores"),
        ([["a"]], [1.0], -1.0, "margin must be at least 0, got -1.0"),
    ],
)
def test_bad_choices(candidates, scores, margin, message):
    with pytest.raises(ValueError, match=message):
        bt.choose(candidates, scores, ["a"], margin)


def test_translator_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"cannot load the translator .*sacremoses"):
        bt.load_translator(str(tmp_path))
