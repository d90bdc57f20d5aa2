"""Other words for a word, on a miniature WordNet whose meanings are known."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import small_wordnet

from unmasked import perturb_words as words
from unmasked.data import wordnet

REAL = Path(os.environ.get("UNMASKED_DATA", "nowhere")) / wordnet.LOCAL


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return small_wordnet.reader(tmp_path_factory.mktemp("wordnet"))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("film", "N"),  # 11 as a noun, 1 as a verb
        ("films", "N"),
        ("filmed", "V"),  # no noun has this form
        ("Loved", "V"),
        ("clever", "J"),  # a satellite counts as an adjective
        ("fine", None),  # 9 as an adjective, 20 as an adverb
        ("she", None),
        ("was", None),  # WordNet has it; the closed list does not let it through
        ("chaplin", "N"),
        ("unheard-of", None),
        ("42", None),
        (".", None),
        ("", None),
    ],
)
def test_word_class_is_the_most_frequent(reader, word, kind):
    assert words.word_class(word, reader) == kind


@pytest.mark.parametrize(
    ("word", "kind", "lemma", "tag"),
    [
        ("movies", "N", "movie", "NNS"),
        ("children", "N", "child", "NNS"),
        ("loved", "V", "love", "VBD"),
        ("seen", "V", "see", "VBN"),
        ("seeing", "V", "see", "VBG"),
        ("better", "J", "good", "JJR"),
        ("charming", "J", "charming", "JJ"),  # no adjective of the dictionary: a base form
    ],
)
def test_inflection(reader, word, kind, lemma, tag):
    assert words.inflection(word, kind, reader) == (lemma, tag)


def test_given_tag_decides_where_it_fits(reader):
    assert words.inflection("loved", "V", reader, "VBN") == ("love", "VBN")
    assert words.inflection("loved", "V", reader, "VBZ") == ("love", "VBD")
    assert words.inflection("Films", "N", reader, "NNPS") == ("film", "NNS")
    assert words.inflection("saw", "V", reader) == ("see", "VBD")
    assert words.inflection("saw", "V", reader, "VB") == ("saw", "VB")  # with the tool


@pytest.mark.parametrize(
    ("word", "kind", "expected"),
    [
        ("movie", "N", ["film", "flick"]),  # moving_picture and Picture_Show are several words
        ("films", "N", ["coatings", "flicks", "movies"]),
        ("Children", "N", ["Kids"]),
        ("MOVIES", "N", ["FILMS", "FLICKS"]),
        ("filmed", "V", ["shot"]),
        ("loves", "V", ["enjoys"]),
        ("saw", "V", ["watched"]),
        ("better", "J", ["finer", "nicer"]),  # "worthwhile" has no comparative in the dictionary
        ("clever", "J", ["cunning"]),
        ("story", "N", ["book", "narrative", "tale"]),
        ("bad", "J", []),
        ("movie", "V", []),
        ("qwerty", "N", []),
    ],
)
def test_synonyms_keep_class_inflection_and_case(reader, word, kind, expected):
    assert words.synonyms(word, kind, reader) == expected


def test_synonym_draws_all_and_only_these(reader):
    rng = np.random.default_rng(0)
    drawn = Counter(words.synonym("films", "N", rng, reader) for _ in range(600))
    assert set(drawn) == {"coatings", "flicks", "movies"}
    assert min(drawn.values()) > 150  # 200 expected, standard deviation 11.5
    assert words.synonym("bad", "J", rng, reader) is None


def test_random_word_keeps_class_inflection_and_case(reader):
    rng = np.random.default_rng(0)
    drawn = Counter(words.random_word("Films", "N", rng, reader) for _ in range(1500))
    # All nouns of one word but the word itself; "Chaplin" and "Book" are names here.
    assert set(drawn) == {
        "Movies", "Flicks", "Coatings", "Children", "Kids", "Stories", "Tales", "Narratives",
    }  # fmt: skip
    assert min(drawn.values()) > 140  # 187.5 expected, standard deviation 12.8
    assert {words.random_word("loved", "V", rng, reader) for _ in range(60)} == {
        "filmed", "shot", "enjoyed", "saw", "watched", "was",
    }  # fmt: skip


def test_same_generator_same_words(reader):
    def draw(seed):
        rng = np.random.default_rng(seed)
        return [words.random_word("movie", "N", rng, reader) for _ in range(20)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


@pytest.mark.parametrize("function", [words.synonyms, words.inflection])
def test_unknown_class(reader, function):
    with pytest.raises(ValueError, match="no word class is called 'R'; known: N, V, J"):
        function("fine", "R", reader)


@pytest.mark.skipif(not REAL.is_dir(), reason="no WordNet in the folder of UNMASKED_DATA")
def test_real_wordnet():
    assert {"film", "flick", "picture"} <= set(words.synonyms("movie", "N"))
    assert {"kids", "youngsters"} <= set(words.synonyms("children", "N"))
    assert words.word_class("charming") == "J"
    made = words.random_word("movies", "N", np.random.default_rng(0))
    assert words.inflection(made, "N", tag="NNS")[1] == "NNS"
