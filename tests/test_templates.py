"""Templates as the paper's released code has them, filled; labels in the order of a model."""

from __future__ import annotations

import pytest
from transformers import BertTokenizerFast

from unmasked import templates

FILLED = {
    "sst2": (templates.SST2_TASK, "a fine film .", None, "a fine film . It was [MASK] ."),
    "mnli": (templates.MNLI_TASK, "He ran .", "He moved .", "He ran . ? [MASK] , He moved ."),
    "means": (
        templates.MEANS,
        "a fine film .",
        None,
        'This sentence : "a fine film ." means [MASK]',
    ),
    "with": (templates.WITH, "a fine film .", None, "a fine film with [MASK] ."),
    "with, glued": (templates.WITH, 'he said "fine!"', None, 'he said "fine with [MASK]!"'),
    "with, no end": (templates.WITH, "a fine film", None, "a fine film with [MASK]"),
    "with, inner": (templates.WITH, "so , fine !", None, "so , fine with [MASK] !"),
    "with, only marks": (templates.WITH, "!?", None, "!? with [MASK]"),
    "verb phrase": (templates.PHRASE["VP"], "loved it", None, "[MASK] loved it"),
    "verb": (templates.PHRASE["V"], "loved", None, "[MASK] loved"),
    "noun phrase": (templates.PHRASE["NP"], "a film", None, "a film [MASK]"),
    "noun": (templates.PHRASE["N"], "film", None, "film [MASK]"),
    "adjective phrase": (templates.PHRASE["ADJP"], "very fine", None, "[MASK] is very fine"),
    "adjective": (templates.PHRASE["J"], "fine", None, "[MASK] is fine"),
    "braces": (templates.SST2_TASK, "a {mask} {0}", None, "a {mask} {0} It was [MASK] ."),
}


@pytest.mark.parametrize("case", FILLED)
def test_fill(case):
    template, text, second, expected = FILLED[case]
    assert templates.fill(template, f" {text} ", "[MASK]", second) == expected
    words = second.split() if second else None
    assert templates.fill(template, text.split(), "[MASK]", words) == expected
    other = templates.fill(template, text, "<mask>", second)
    assert other == expected.replace("[MASK]", "<mask>")


def test_verbalisers():
    assert dict(templates.SST2_TASK.verbaliser) == {"negative": "terrible", "positive": "great"}
    assert dict(templates.MNLI_TASK.verbaliser) == {
        "entailment": "yes",
        "neutral": "maybe",
        "contradiction": "no",
    }
    assert templates.SST2_TASK.labels == ("negative", "positive")
    assert templates.WITH.labels == ()


@pytest.mark.parametrize(
    ("template", "text", "second", "message"),
    [
        (templates.MNLI_TASK, "He ran .", None, "takes two texts"),
        (templates.MEANS, "He ran .", "He moved .", "'means' takes one text"),
        (templates.MEANS, "  ", None, "the text is empty"),
        (templates.MEANS, [], None, "the text is empty"),
        (templates.MNLI_TASK, "He ran .", "", "the text is empty"),
        (templates.WITH, "a [MASK] film", None, "two masks would stand"),
    ],
    ids=["missing second", "second", "blank", "no words", "empty second", "mask"],
)
def test_bad_texts(template, text, second, message):
    with pytest.raises(ValueError, match=message):
        templates.fill(template, text, "[MASK]", second)


def test_phrase_templates():
    assert templates.phrase_template("NP") is templates.PHRASE["N"]
    with pytest.raises(ValueError, match=r"kind 'ADVP'\. Did you mean 'ADJP'\? Known: VP, V"):
        templates.phrase_template("ADVP")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "great", "terrible", "yes", "no", "may"]
    path.write_text("\n".join([*pieces, "##be"]))
    return BertTokenizerFast(str(path))


def test_verbaliser_ids(tokenizer):
    assert templates.verbaliser_ids(templates.SST2_TASK, tokenizer) == (6, 5)
    with pytest.raises(ValueError, match=r"'maybe' becomes \['may', '##be'\]"):
        templates.verbaliser_ids(templates.MNLI_TASK, tokenizer)
    with pytest.raises(ValueError, match="'means' has no verbaliser"):
        templates.verbaliser_ids(templates.MEANS, tokenizer)


def test_label_order():
    order = templates.label_order
    assert order(templates.SST2_TASK, {0: "NEGATIVE", 1: "POSITIVE"}) == [0, 1]
    assert order(templates.SST2_TASK, {0: "positive", 1: "negative"}) == [1, 0]
    classes = {0: "contradiction", 1: "entailment", 2: "neutral"}
    assert order(templates.MNLI_TASK, classes) == [1, 2, 0]
    plain = {0: "LABEL_0", 1: "LABEL_1"}
    names = {"negative": "LABEL_1", "positive": "LABEL_0"}
    assert order(templates.SST2_TASK, plain, names) == [1, 0]


@pytest.mark.parametrize(
    ("id2label", "names", "message"),
    [
        ({0: "LABEL_0", 1: "LABEL_1"}, None, "'negative'.*LABEL_0, LABEL_1; pass names="),
        ({0: "a", 1: "negative", 2: "positive"}, None, "has 3 classes"),
        (
            {0: "LABEL_0", 1: "LABEL_1"},
            {"negative": "LABEL_0", "positive": "LABEL_0"},
            "two labels are the same class",
        ),
        ({0: "a", 1: "b"}, {"negativ": "a"}, "'negativ' is no label.*Did you mean 'negative'"),
    ],
    ids=["unknown", "count", "twice", "spelling"],
)
def test_bad_label_orders(id2label, names, message):
    with pytest.raises(ValueError, match=message):
        templates.label_order(templates.SST2_TASK, id2label, names)


def test_hidden_labels_are_refused_where_labels_are_needed():
    assert templates.known_labels([1, 0, 1], 2).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="2 of 3 labels are -1: this split hides its labels"):
        templates.known_labels([-1, 1, -1], 2)
    with pytest.raises(ValueError, match="labels run from 0 to 2, allowed are 0 to 1"):
        templates.known_labels([0, 2], 2)
