"""Which candidates matter: against loops over all of them, and on a real classifier."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from unmasked import perturb_importance as pi
from unmasked.perturb_candidates import Candidate

ORIGINAL = np.array([0.1, 0.9])
MASKED = np.array([[0.3, 0.7], [0.8, 0.2], [0.2, 0.8], [0.7, 0.3], [0.3, 0.7]])


def test_most_important_drops_the_predicted_class_lowest():
    assert pi.most_important(ORIGINAL, MASKED) == [1, 3, 0, 4]  # equal 0 and 4 in their order
    assert pi.most_important(ORIGINAL, MASKED, count=2) == [1, 3]
    assert pi.most_important(1 - ORIGINAL, 1 - MASKED) == [1, 3, 0, 4]  # predicted 0
    assert pi.most_important(ORIGINAL[::-1], MASKED, count=1) == [2]


def test_released_offset_gives_each_the_score_of_the_one_before():
    # Scores: the whole text 0.9, then 0.7, 0.2, 0.8, 0.3; the last candidate's own is never used.
    assert pi.most_important(ORIGINAL, MASKED, released_offset=True) == [2, 4, 1, 3]
    other = MASKED.copy()
    other[-1] = [0.99, 0.01]
    assert pi.most_important(ORIGINAL, other, released_offset=True) == [2, 4, 1, 3]
    assert pi.most_important(ORIGINAL, other)[0] == 4
    scores, flips = pi.predicted_class(ORIGINAL, MASKED, released_offset=True)
    assert scores.tolist() == [0.9, 0.7, 0.2, 0.8, 0.3]
    assert flips.tolist() == [False, False, True, False, True]


def test_decisive_is_the_shortest_that_breaks_the_prediction():
    assert pi.decisive(ORIGINAL, MASKED, [1, 3, 1, 2, 1]) == 3
    assert pi.decisive(ORIGINAL, MASKED, [1, 2, 1, 2, 1]) == 1  # equally short: the lower
    assert pi.decisive(ORIGINAL, MASKED[[0, 2, 4]], [3, 1, 1]) == 0  # none breaks it: the lowest
    # 1/2 + 0.05: a drop to 0.54 breaks it without a flip, one to 0.56 does not.
    near = np.array([[0.46, 0.54], [0.44, 0.56]])
    assert pi.decisive(ORIGINAL, near, [4, 1]) == 0
    assert pi.decisive(ORIGINAL, near[::-1], [4, 1], released_offset=True) == 1


def brute(original, masked, lengths):
    label = int(np.argmax(original))
    limit = 1 / len(original) + 0.05
    broken = [k for k, row in enumerate(masked) if np.argmax(row) != label or row[label] < limit]
    if broken:
        return min(broken, key=lambda k: (lengths[k], masked[k][label], k))
    return min(range(len(masked)), key=lambda k: (masked[k][label], k))


def test_decisive_against_a_loop():
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(300):
        classes, count = rng.integers(2, 5), rng.integers(1, 7)
        original = rng.dirichlet(np.ones(classes))
        masked = 0.6 * original + 0.4 * rng.dirichlet(np.ones(classes), size=count)
        lengths = rng.integers(1, 5, size=count).tolist()
        found = pi.decisive(original, masked, lengths)
        assert found == brute(original, masked, lengths)
        released = np.vstack([original, masked])[:-1]
        assert pi.decisive(original, masked, lengths, released_offset=True) == brute(
            original, released, lengths
        )
        kinds.add(found == int(np.argmin(masked[:, original.argmax()])))
    assert kinds == {True, False}  # both parts of the rule were met


def test_no_candidates():
    assert pi.most_important(ORIGINAL, np.empty((0, 2))) == []
    assert pi.most_important(ORIGINAL, []) == []
    assert pi.decisive(ORIGINAL, [], []) is None
    assert pi.most_important(ORIGINAL, [], released_offset=True) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pi.most_important(ORIGINAL, MASKED, count=0), "count must be at least 1"),
        (lambda: pi.most_important(ORIGINAL, np.ones((2, 3)) / 3), r"\(candidates, 2\)"),
        (lambda: pi.most_important([[0.5, 0.5]], MASKED), "probabilities of classes"),
        (lambda: pi.most_important([2.0, -1.0], MASKED), "sum to 1; apply a softmax"),
        (lambda: pi.most_important([2.0, 1.0], MASKED), "sum to 1; apply a softmax"),
        (lambda: pi.decisive(ORIGINAL, MASKED, [1]), "1 lengths for 5 candidates"),
    ],
    ids=["count", "classes", "shape", "negative", "logits", "lengths"],
)
def test_bad_arrays(call, message):
    with pytest.raises(ValueError, match=message):
        call()


WORDS = ["a", "dull", "film", "with", "good", "jokes"]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "no", "fun"]
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(pieces))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16, num_labels=3, initializer_range=1.0,
    )  # fmt: skip
    return BertForSequenceClassification(config), BertTokenizerFast(str(path))


def direct(model, tokenizer, first, second=None):
    with torch.no_grad():
        inputs = tokenizer(first, second, return_tensors="pt")
        return model.eval()(**inputs).logits.softmax(-1)[0].numpy()


CANDIDATES = [Candidate(1, 2, "J"), Candidate(4, 6, "NP", 2)]
VARIANTS = ["a [MASK] film with good jokes", "a dull film with [MASK]"]


@pytest.mark.parametrize(
    ("other", "side", "released", "pair"),
    [
        (None, "first", False, lambda text: (text,)),
        ("no fun", "first", False, lambda text: (text, "no fun")),
        ("no fun", "second", False, lambda text: ("no fun", text)),
        ("no fun", "first", True, lambda text: (text,)),
        ("no fun", "second", True, lambda text: (text,)),
    ],
    ids=["single", "premise", "hypothesis", "released premise", "released hypothesis"],
)
def test_importance_shows_the_classifier_its_whole_input(classifier, other, side, released, pair):
    original, masked = pi.importance(*classifier, WORDS, CANDIDATES, other, side, released)
    np.testing.assert_allclose(original, direct(*classifier, *pair(" ".join(WORDS))), atol=1e-5)
    expected = [direct(*classifier, *pair(text)) for text in VARIANTS]
    np.testing.assert_allclose(masked, expected, atol=1e-5)


def test_batches_and_long_texts(classifier):
    model, tokenizer = classifier
    texts = ["film", "a dull film", "good jokes with good jokes", "no fun " * 30, "a"]
    model.train()
    found = pi.class_probabilities(model, tokenizer, texts, size=2)
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found.sum(1), 1)
    cut = "no fun " * 7  # 16 positions, 2 of them for [CLS] and [SEP]
    for row, text in zip(found, [*texts[:3], cut, "a"], strict=True):
        np.testing.assert_allclose(row, direct(model, tokenizer, text), atol=1e-5)


def test_bad_inputs_of_importance(classifier):
    model, tokenizer = classifier
    with pytest.raises(ValueError, match="sentence is empty"):
        pi.importance(model, tokenizer, [], [])
    with pytest.raises(ValueError, match="side must be 'first' or 'second', got 'premise'"):
        pi.importance(model, tokenizer, WORDS, CANDIDATES, "no fun", "premise")
    with pytest.raises(ValueError, match="2 texts and 1 second"):
        pi.class_probabilities(model, tokenizer, ["a", "film"], ["a"])
    original, masked = pi.importance(model, tokenizer, WORDS, [])
    assert original.shape == (3,)
    assert masked.shape == (0, 3)
