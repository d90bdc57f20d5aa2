"""Candidates of a sentence and a parse, and sentences with a word replaced."""

from __future__ import annotations

import numpy as np
import pytest
import small_wordnet
from nltk import Tree

from unmasked import perturb
from unmasked.perturb import Candidate

WORDS = ["She", "loved", "a", "clever", "film", "."]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_wordnet.reader(tmp_path_factory.mktemp("wordnet"))


def test_candidates_without_tags(reader):
    assert perturb.candidate_words(WORDS, reader=reader) == [
        Candidate(1, 2, "V"),
        Candidate(3, 4, "J"),
        Candidate(4, 5, "N"),
    ]
    assert perturb.candidate_words(["she", "was", "."], reader=reader) == []


@pytest.mark.parametrize(
    "tags",
    [
        ["PRON", "VERB", "DET", "ADJ", "PROPN", "PUNCT"],
        ["PRP", "VBD", "DT", "JJR", "NNP", "."],
    ],
    ids=["universal", "penn"],
)
def test_candidates_with_tags(tags):
    found = perturb.candidate_words(WORDS, tags)
    assert [(each.start, each.kind, each.tag) for each in found] == [
        (1, "V", tags[1]),
        (3, "J", tags[3]),
        (4, "N", tags[4]),
    ]


@pytest.mark.parametrize("tag", ["NUM", "NONE", "ADV", "RB", "PRP$", "WP", "IN", "AUX", "-NONE-"])
def test_other_tags_are_no_candidates(tag):
    assert perturb.candidate_words(["seven"], [tag]) == []


def test_bad_sentences():
    with pytest.raises(ValueError, match="sentence is empty"):
        perturb.candidate_words([])
    with pytest.raises(ValueError, match="1 tags for 6 words"):
        perturb.candidate_words(WORDS, ["NN"])
    with pytest.raises(ValueError, match="split it into a list of words"):
        perturb.candidate_words("She loved it .")
    with pytest.raises(ValueError, match=r"spans words 5\.\.7, the sentence has 6"):
        perturb.masked_variants(WORDS, [Candidate(5, 7, "NP")], "[MASK]")


def test_masked_variants_have_one_mask_a_candidate():
    assert perturb.masked_variants(
        WORDS, [Candidate(1, 2, "V"), Candidate(2, 5, "NP")], "<mask>"
    ) == [
        "She <mask> a clever film .",
        "She loved <mask> .",
    ]
    assert perturb.masked_variants(WORDS, [], "<mask>") == []


PARSE = Tree.fromstring(
    "(ROOT (S (NP-SBJ (PRP She)) (VP (VBD told) (NP (PRP us)) (NP=2 (NP (DT a) (JJ long)"
    " (NN story)) (PP (IN about) (NP (NNS films)))) (SBAR (S (VP (TO to) (VP (VB be)"
    " (ADJP (JJ fair))))))) (. .)))"
)


def spans(candidates, words):
    return [(" ".join(words[c.start : c.stop]), c.kind, c.length) for c in candidates]


def test_short_phrases_of_a_parse():
    found = spans(perturb.short_phrases(PARSE), PARSE.leaves())
    assert found == [
        ("a long story", "NP", 3),
        ("films", "NP", 1),
        ("to be fair", "VP", 3),
        ("be fair", "VP", 2),
        ("fair", "ADJP", 1),
        ("told", "V", 1),
        ("long", "J", 1),
        ("story", "N", 1),
        ("films", "N", 1),
        ("be", "V", 1),
        ("fair", "J", 1),
    ]


def test_released_lengths_count_children():
    found = spans(perturb.short_phrases(PARSE, released_lengths=True), PARSE.leaves())
    assert ("told us a long story about films to be fair", "VP", 4) in found
    assert ("a long story about films", "NP", 2) in found
    assert ("a long story", "NP", 3) in found


def test_long_phrase_is_the_longest_below_the_sentence():
    words = PARSE.leaves()
    (long,) = spans([perturb.long_phrase(PARSE)], words)
    assert long == ("told us a long story about films to be fair", "VP", 10)
    wide = Tree.fromstring(
        "(S (NP (DT a) (JJ b) (JJ c) (NN d)) (VP (VBZ e) (NP (NP (DT f) (NN g)) (PP (IN h)"
        " (NP (DT i) (NN j)))) (ADVP (RB k))))"
    )
    assert perturb.long_phrase(wide).start == 4
    assert perturb.long_phrase(wide, released_lengths=True) == Candidate(
        0, 4, "NP", 4, leftmost=True
    )


def test_leftmost_has_nothing_before_it():
    found = perturb.short_phrases(
        Tree.fromstring("(S (NP (DT a) (NN b)) (VP (VBZ c) (NP (NN d))))")
    )
    assert [(each.start, each.kind, each.leftmost) for each in found] == [
        (0, "NP", True),
        (2, "VP", False),
        (3, "NP", False),
        (1, "N", False),
        (2, "V", True),
        (3, "N", True),
    ]


def test_fragments_and_empty_parses():
    assert perturb.short_phrases(Tree.fromstring("(ROOT (NP (NN film)))")) == []
    assert perturb.long_phrase(Tree.fromstring("(ROOT (NP (NN film)))")) is None
    assert spans(
        perturb.short_phrases(Tree.fromstring("(ROOT (NP (JJ a) (NN b)))")), ["a", "b"]
    ) == [
        ("a", "J", 1),
        ("b", "N", 1),
    ]
    with pytest.raises(ValueError, match="sentence is empty"):
        perturb.short_phrases(Tree("ROOT", []))


@pytest.mark.parametrize("released", [False, True])
def test_random_parses_give_the_words_of_their_subtrees(released):
    rng = np.random.default_rng(0)

    def grow(depth):
        if depth == 0 or rng.random() < 0.2:
            return Tree(str(rng.choice(["NN", "VB", "DT"])), [f"w{rng.integers(9)}"])
        label = str(rng.choice(["NP", "VP", "PP"]))
        return Tree(label, [grow(depth - 1) for _ in range(rng.integers(1, 4))])

    for _ in range(40):
        tree = Tree("S", [grow(4), grow(4)])
        words = tree.leaves()
        expected = sorted(
            (node.leaves(), node.label())
            for node in tree.subtrees(lambda t: t.label() in ("NP", "VP"))
            if (len(node) if released else len(node.leaves())) <= 4
        )
        found = [c for c in perturb.short_phrases(tree, released) if c.kind in perturb.PHRASES]
        assert sorted((words[c.start : c.stop], c.kind) for c in found) == expected


def test_replaced_words(reader):
    rng = np.random.default_rng(0)
    film = Candidate(4, 5, "N")
    found = perturb.replace_word(WORDS, Candidate(1, 2, "V"), perturb.SYNONYM, rng, 3, reader)
    assert found == perturb.Perturbation(
        3,
        "synonym",
        "She loved a clever film .",
        "She enjoyed a clever film .",
        (1, 2),
        "loved",
        "enjoyed",
    )
    assert not found.same
    same = perturb.replace_word(WORDS, film, perturb.IDENTITY, rng, reader=reader)
    assert same.same
    assert same.changed == same.original
    other = perturb.replace_word(WORDS, film, perturb.RANDOM, rng, reader=reader)
    assert other.changed == f"She loved a clever {other.replacement} ."
    assert other.replacement != "film"
    bad = ["a", "bad", "film"]
    assert (
        perturb.replace_word(bad, Candidate(1, 2, "J"), perturb.SYNONYM, rng, reader=reader) is None
    )


def test_given_tag_reaches_the_inflection(reader):
    (candidate,) = perturb.candidate_words(["enjoyed"], ["VBN"])
    rngs = [np.random.default_rng(seed) for seed in range(60)]
    found = [
        perturb.replace_word(["enjoyed"], candidate, "random word", r, 0, reader) for r in rngs
    ]
    assert {each.replacement for each in found} == {
        "filmed", "shot", "loved", "seen", "watched", "been",
    }  # fmt: skip


def test_bad_replacements(reader):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="no replacement is called 'antonym'; known: synonym"):
        perturb.replace_word(WORDS, Candidate(1, 2, "V"), "antonym", rng)
    with pytest.raises(ValueError, match=r"words 2\.\.5 are not one word"):
        perturb.replace_word(WORDS, Candidate(2, 5, "NP"), perturb.SYNONYM, rng)
    with pytest.raises(ValueError, match=r"spans words 9\.\.10"):
        perturb.replace_word(WORDS, Candidate(9, 10, "N"), perturb.SYNONYM, rng)
