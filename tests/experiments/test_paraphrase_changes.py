"""Changes of prediction on real sentences: pairs, templates, ceilings and controls."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from unmasked import perturb
from unmasked.experiments import paraphrase_changes as changes
from unmasked.experiments import sentence_classifiers as classifiers
from unmasked.experiments.lexicon_tasks import Part, Task
from unmasked.project import UserError
from unmasked.rows import checked
from unmasked.tokens import train_tokenizer

TEXTS = tuple(
    f"the {noun} was {word} ."
    for word in ("good", "great", "terrible", "bad", "fine", "dull")
    for noun in ("film", "movie", "story", "plot")
)
LABELS = tuple(int(any(w in text for w in ("good", "great", "fine"))) for text in TEXTS)
SWAPS = {"film": "movie", "movie": "film", "good": "fine", "bad": "dull", "story": "plot"}


@pytest.fixture
def small(monkeypatch):
    """A tiny model, a tiny data set, and a dictionary of five words in place of WordNet."""
    words = "yes maybe no this sentence means with is it mask"
    tokenizer = train_tokenizer([*TEXTS, words], 200, model_max_length=40)
    torch.manual_seed(0)
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=40, initializer_range=0.3,
        )
    ).eval()  # fmt: skip
    part = Part(TEXTS, LABELS)
    task = Task("movie_reviews", 2, frozenset(), part, part, part)
    monkeypatch.setattr(classifiers, "load_task", lambda name, size: task)
    monkeypatch.setattr(changes, "load_named", lambda name: (model, tokenizer))
    monkeypatch.setattr(
        changes.perturb, "candidate_words",
        lambda words: [perturb.Candidate(1, 2, "N"), perturb.Candidate(3, 4, "J")],
    )  # fmt: skip

    def replaced(words, candidate, kind, generator, number):
        word = words[candidate.start]
        new = {"synonym": SWAPS.get(word), "random word": "was", "identity": word}[kind]
        if new is None:
            return None
        after = [*words[: candidate.start], new, *words[candidate.stop :]]
        span = (candidate.start, candidate.stop)
        texts = " ".join(words), " ".join(after)
        return perturb.Perturbation(number, kind, *texts, span, word, new)

    monkeypatch.setattr(changes.perturb, "replace_word", replaced)
    return model, tokenizer


def config(**given):
    values = {
        "data": ("movie_reviews",), "max_length": 40, "train_sentences": 16, "test_sentences": 12,
        "words": 2, "shares": (0.5,), "epochs": 1, "batch_size": 8, "learning_rate": 1e-3,
        "snapshots": 2, "scatter": 3,
    }  # fmt: skip
    return changes.ParaphraseConfig(**{**values, **given})


def test_rows_hold_correlations_ceiling_and_controls(small, tmp_path):
    rows = checked(changes.compute_paraphrase_changes(config(), 0, tmp_path), "")
    assert list(tmp_path.iterdir()) == []
    found = {(r["metric"], r["replacement"], r["classifier"], r["template"], r["divergence"],
              r["importance"]): r for r in rows if r["pair"] is None}  # fmt: skip
    still = found["mean_change_f", "identity", "fine-tuned", None, None, "correct"]
    assert still["value"] == 0
    moved = found["mean_change_f", "synonym", "fine-tuned", None, None, "correct"]
    assert moved["value"] > 0
    main = found["pearson", "synonym", "fine-tuned", "task", changes.TV, "correct"]["value"]
    ends = [
        found[f"pearson_{end}", "synonym", "fine-tuned", "task", changes.TV, "correct"]["value"]
        for end in ("low", "high")
    ]
    assert ends[0] <= main <= ends[1]
    assert (
        -1
        <= found["ceiling_pearson", "synonym", "fine-tuned", None, changes.TV, "correct"]["value"]
        <= 1
    )
    names = {r["classifier"] for r in rows if r["metric"] == "accuracy"}
    assert names == {"fine-tuned", "step 1", "share 0.5", "twin", "before fine-tuning"}
    assert sum(r["metric"] == "change_f" for r in rows) == 3
    offset = found["pearson", "synonym", "fine-tuned", "task", changes.TV, "released"]
    assert offset["n"] <= moved["n"] * 2


def test_all_kinds_replace_the_same_words(small):
    model, tokenizer = small
    sentences = classifiers.Sentences.load("movie_reviews", tokenizer, 40, 16, 12)
    blank = classifiers.untrained(model, 2, 0)
    kinds = ("synonym", "random word", "identity")
    pairs = changes.perturbed(config(), blank, sentences, kinds, 0, released_offset=False)
    words = [[(c.sentence, c.word) for c in some.changes] for some in pairs.values()]
    assert words[0] == words[1] == words[2]
    assert all(word in SWAPS for _, word in words[0])
    assert len(words[0]) == len(pairs["synonym"].kinds)


def test_a_template_change_is_the_total_variation_of_two_predictions(small):
    model, tokenizer = small
    change = perturb.Perturbation(
        0, "synonym", "the film was good .", "the movie was good .", (1, 2), "film", "movie"
    )
    pairs = changes.Pairs((change,), ("N",))
    found = changes.template_change(model, tokenizer, pairs, "task")[changes.TV][0]
    ids = tokenizer.convert_tokens_to_ids(["terrible", "great"])
    both = []
    for text in (change.original, change.changed):
        inputs = tokenizer(f"{text} It was [MASK] .", return_tensors="pt")
        place = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
        with torch.no_grad():
            both.append(model(**inputs).logits[0, place, ids].double().softmax(-1).numpy())
    assert found == pytest.approx(np.abs(both[0] - both[1]).sum() / 2)
    same = replace(change, changed=change.original, replacement="film")
    for template in changes.TEMPLATES:
        none = changes.template_change(model, tokenizer, changes.Pairs((same,), ("N",)), template)
        assert none[changes.TV][0] == 0


def test_a_mask_that_is_cut_off_is_refused(small):
    model, tokenizer = small
    with pytest.raises(ValueError, match="text 1 has no mask, or several, within 40 pieces"):
        changes.mask_predictions(model, tokenizer, ["a [MASK]", "film " * 50 + "[MASK]"], None)


def test_finished_trainings_are_read_back(small, tmp_path, monkeypatch):
    model, tokenizer = small
    sentences = classifiers.Sentences.load("movie_reviews", tokenizer, 40, 16, 12)
    first = list(classifiers.trained(model, sentences, config().how, 1.0, 0, tmp_path))
    assert [each.step for each in first] == [1, 2]
    monkeypatch.setattr(classifiers, "fit", None)
    again = list(classifiers.trained(model, sentences, config().how, 1.0, 0, tmp_path))
    assert [each.accuracy for each in again] == [each.accuracy for each in first]
    with pytest.raises(TypeError):
        list(classifiers.trained(model, sentences, config().how, 1.0, 1, tmp_path / "other"))


def test_training_and_heads_leave_the_language_model_as_it_was(small, tmp_path):
    model, tokenizer = small
    before = {name: value.clone() for name, value in model.state_dict().items()}
    sentences = classifiers.Sentences.load("movie_reviews", tokenizer, 40, 16, 12)
    (last,) = list(classifiers.trained(
        model, sentences, replace(config().how, snapshots=1), 1.0, 0, tmp_path
    ))  # fmt: skip
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    start = classifiers.untrained(model, 2, 0)
    key = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(start.state_dict()[key], before[key])
    assert not torch.equal(last.model.state_dict()[key], before[key])


def test_sentences_that_leave_no_room_are_refused_by_name(small):
    _, tokenizer = small
    with pytest.raises(UserError, match=r"No test sentence of movie_reviews has at most 4 pieces"):
        classifiers.Sentences.load("movie_reviews", tokenizer, 24, 16, 12)


def test_the_share_within_sentences_is_the_intraclass_correlation():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(2000), 4)
    common = np.repeat(rng.standard_normal(2000), 4)
    values = np.sqrt(0.3) * common + np.sqrt(0.7) * rng.standard_normal(8000)
    assert changes._within(values, clusters) == pytest.approx(0.3, abs=0.03)
