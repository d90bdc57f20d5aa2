"""Another word in a word's place: a WordNet synonym, or a random word, in the same inflection.

Word classes are N, V and J (noun, verb, adjective). WordNet gives the words that share a meaning,
lemminflect the inflections (the released code of Chiang and Yogatama 2023 uses pyinflect). Only
inflections that its dictionary has are used, so no form is made up by rule.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import lemminflect
import numpy as np
from nltk.corpus.reader import WordNetCorpusReader
from nltk.corpus.reader.wordnet import Synset

from unmasked import data

WORD_CLASSES = ("N", "V", "J")
_UNIVERSAL = {"N": "NOUN", "V": "VERB", "J": "ADJ", "R": "ADV"}
_WORDNET = {"N": "n", "V": "v", "J": "a", "R": "r"}
_TAGS = {
    "N": ("NN", "NNS"),
    "V": ("VB", "VBZ", "VBD", "VBN", "VBG"),
    "J": ("JJ", "JJR", "JJS"),
}
_BASE = {tags[0] for tags in _TAGS.values()}
_PROPER = {"NNP": "NN", "NNPS": "NNS", "VBP": "VB"}

_FUNCTION_WORDS = (
    # pronouns and determiners
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his "
    "himself she her hers herself it its itself they them their theirs themselves one oneself "
    "a an the this that these those each every either neither some any no none all both half "
    "many much more most few less least several such other another same own who whom whose which "
    "what whatever whoever someone somebody something anyone anybody anything everyone everybody "
    "everything nobody nothing "
    # auxiliaries, with the pieces that tokenizers cut off
    "be am is are was were been being have has had having do does did doing done can could may "
    "might must shall should will would ought cannot 's 'm 're 've 'd 'll ca wo "
    # prepositions, conjunctions, particles
    "about above across after against along amid among around as at before behind below beneath "
    "beside besides between beyond but by despite down during except for from in inside into like "
    "near of off on onto out outside over past per since than through throughout to toward towards "
    "under until up upon with within without and or nor so yet if because although though while "
    "whereas whether unless when where why how that not n't "
    # adverbs that WordNet also has as nouns or adjectives
    "here there now then again ever never just only even still too very quite rather well also "
    "back away once always often perhaps maybe"
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Never candidates without a tagger. A closed list, kept small; this book's choice."""


def word_class(word: str, reader: WordNetCorpusReader | None = None) -> str | None:
    """N, V or J: the most frequent class of a word without its sentence; None for other words.

    A stated rule, for want of a tagger. The `lemmas` of the word are looked up in WordNet; the
    class whose lemmas are tagged most often there wins, ties in the order N, V, J. None for the
    FUNCTION_WORDS, for what is not letters (inner hyphens and apostrophes allowed), for words that
    WordNet lacks or has most often as adverbs.
    """
    word = word.lower()
    if word in FUNCTION_WORDS or not word.replace("-", "").replace("'", "").isalpha():
        return None
    reader = reader or data.wordnet_reader()
    counts = _class_counts(word, reader)
    best = max(counts, key=counts.get, default=None)
    return best if best in WORD_CLASSES else None


def inflection(
    word: str, kind: str, reader: WordNetCorpusReader | None = None, tag: str | None = None
) -> tuple[str, str] | None:
    """The lemma of a word of class `kind` and the Penn tag of its inflection.

    Of several lemmas the one that WordNet has most often in tagged texts (*saw* is of *see*). A
    given `tag` counts before that if the word has that form of a lemma; else a lemma's first tag
    that fits, in the order NN NNS, VB VBZ VBD VBN VBG, JJ JJR JJS: a form that is past and
    participle counts as past. None if no tag fits. Raises ValueError for another class.
    """
    if kind not in WORD_CLASSES:
        raise ValueError(f"no word class is called {kind!r}; known: {', '.join(WORD_CLASSES)}")
    reader = reader or data.wordnet_reader()
    given = _PROPER.get(tag, tag)
    tags = sorted(_TAGS[kind], key=lambda each: each != given)
    found = []
    for lemma in lemmas(word.lower(), kind):
        fitting = [each for each in tags if word.lower() in forms(lemma, each)]
        found += [(lemma, each) for each in fitting[:1]]

    def order(pair: tuple[str, str]) -> tuple[bool, int]:
        return pair[1] == given, _count(pair[0], kind, reader)

    return max(found, key=order, default=None)


@functools.lru_cache(maxsize=1 << 16)
def lemmas(word: str, kind: str) -> tuple[str, ...]:
    """What a lower-case word of class `kind` may be a form of, the word itself last.

    lemminflect's lemmas, those of its dictionary if it has the word, else those of its rules.
    """
    name = _UNIVERSAL[kind]
    known = lemminflect.getAllLemmas(word, name) or lemminflect.getAllLemmasOOV(word, name)
    return tuple(dict.fromkeys([*known.get(name, ()), word]))


@functools.lru_cache(maxsize=1 << 16)
def forms(lemma: str, tag: str) -> tuple[str, ...]:
    """The forms of a lemma for a Penn tag, as the dictionary has them; base forms always exist."""
    known = lemminflect.getInflection(lemma, tag, inflect_oov=False)
    return tuple(dict.fromkeys([lemma, *known])) if tag in _BASE else tuple(known)


def synonyms(
    word: str, kind: str, reader: WordNetCorpusReader | None = None, tag: str | None = None
) -> list[str]:
    """WordNet's synonyms of a word, in its inflection and capitalisation, sorted.

    All senses of class `kind` of its lemma count. Left out are synonyms of several words, what
    equals the word or its lemma (in any case), and what has no known form of that inflection.
    `tag` is the word's Penn tag where one is given, else `inflection` finds it. Empty if nothing is
    left or the word is not known. Raises ValueError for another class.
    """
    reader = reader or data.wordnet_reader()
    found = inflection(word, kind, reader, tag)
    if found is None:
        return []
    root, tag = found
    names = {
        name
        for synset in _synsets(root, kind, reader)
        for name in synset.lemma_names()
        if "_" not in name and name.lower() != root
    }
    made = (_form(name, tag) for name in names)
    return sorted({_cased(each, word) for each in made if each and each != word.lower()})


def synonym(
    word: str,
    kind: str,
    generator: np.random.Generator,
    reader: WordNetCorpusReader | None = None,
    tag: str | None = None,
) -> str | None:
    """One of `synonyms`, each as likely; None if there is none."""
    found = synonyms(word, kind, reader, tag)
    return found[generator.integers(len(found))] if found else None


def random_word(
    word: str,
    kind: str,
    generator: np.random.Generator,
    reader: WordNetCorpusReader | None = None,
    tag: str | None = None,
) -> str | None:
    """Any other WordNet word of the class, in the word's inflection: the control for a synonym.

    Every single word of letters that WordNet writes in lower case is as likely, however rare it is
    in text. None if the word's inflection is not known. Raises ValueError for another class.
    """
    reader = reader or data.wordnet_reader()
    found = inflection(word, kind, reader, tag)
    if found is None:
        return None
    root, tag = found
    pool = _pool(kind, reader)
    for number in generator.permutation(len(pool)):
        drawn = pool[number]
        made = _form(drawn, tag)
        if made and made != word.lower() and drawn != root and _is_common(drawn, kind, reader):
            return _cased(made, word)
    return None


def _form(lemma: str, tag: str) -> str | None:
    """The usual form of a lemma, lower case; None if it is not known."""
    if tag in _BASE:
        return lemma.lower()
    found = forms(lemma.lower(), tag)
    return found[0] if found else None


def _cased(form: str, like: str) -> str:
    """A lower-case form in the capitalisation of `like`: UPPER, First, or none."""
    if len(like) > 1 and like.isupper():
        return form.upper()
    return form[:1].upper() + form[1:] if like[:1].isupper() else form


@functools.lru_cache(maxsize=1 << 16)
def _synsets(lemma: str, kind: str, reader: WordNetCorpusReader) -> tuple[Synset, ...]:
    """The synsets that have exactly this lemma; the reader's own guesses at a stem are left out."""
    positions = ("a", "s") if kind == "J" else (_WORDNET[kind],)
    found = {synset for position in positions for synset in reader.synsets(lemma, position)}
    named = (each for each in found if lemma in [name.lower() for name in each.lemma_names()])
    return tuple(sorted(named, key=lambda synset: synset.offset()))


def _class_counts(word: str, reader: WordNetCorpusReader) -> dict[str, int]:
    """How often WordNet's tagged texts have a word's lemmas, by the classes that it may have."""
    return {
        kind: sum(max(0, _count(root, kind, reader)) for root in lemmas(word, kind))
        for kind in (*WORD_CLASSES, "R")
        if any(_synsets(root, kind, reader) for root in lemmas(word, kind))
    }


@functools.lru_cache(maxsize=1 << 16)
def _count(root: str, kind: str, reader: WordNetCorpusReader) -> int:
    """How often WordNet's tagged texts have a lemma in any sense of a class; -1 if it has none."""
    synsets = _synsets(root, kind, reader)
    senses = (lemma for synset in synsets for lemma in synset.lemmas())
    counts = [lemma.count() for lemma in senses if lemma.name().lower() == root]
    return sum(counts) if counts else -1


@functools.lru_cache(maxsize=8)
def _pool(kind: str, reader: WordNetCorpusReader) -> Sequence[str]:
    """Every entry of a class that is letters alone, sorted; names among them, in lower case."""
    entries = reader.all_lemma_names(_WORDNET[kind])
    return sorted({entry for entry in entries if entry.isascii() and entry.isalpha()})


def _is_common(word: str, kind: str, reader: WordNetCorpusReader) -> bool:
    """Whether WordNet writes the word in lower case in some sense: no name of a person or genus."""
    return any(word in synset.lemma_names() for synset in _synsets(word, kind, reader))
