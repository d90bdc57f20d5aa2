"""Small changes of a sentence that should keep its meaning, and controls that should not.

Chiang and Yogatama 2023, the perturbations of their real-data experiments. The parts: candidates
(`perturb_candidates`), their importance for a classifier (`perturb_importance`), other words for
them (`perturb_words`); paraphrased phrases are in `back_translation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from nltk.corpus.reader import WordNetCorpusReader

from unmasked.perturb_candidates import (
    PHRASES,
    Candidate,
    candidate_words,
    long_phrase,
    masked_variants,
    replaced,
    short_phrases,
)
from unmasked.perturb_importance import (
    class_probabilities,
    decisive,
    importance,
    most_important,
)
from unmasked.perturb_words import random_word, synonym, synonyms, word_class

__all__ = [
    "IDENTITY",
    "PHRASES",
    "RANDOM",
    "REPLACEMENTS",
    "SYNONYM",
    "Candidate",
    "Perturbation",
    "candidate_words",
    "class_probabilities",
    "decisive",
    "importance",
    "long_phrase",
    "masked_variants",
    "most_important",
    "random_word",
    "replace_word",
    "replaced",
    "short_phrases",
    "synonym",
    "synonyms",
    "word_class",
]

SYNONYM, RANDOM, IDENTITY = "synonym", "random word", "identity"
REPLACEMENTS = (SYNONYM, RANDOM, IDENTITY)


@dataclass(frozen=True)
class Perturbation:
    """One changed sentence: words `span` (start, stop) of sentence number `sentence` replaced.

    `kind` is how (one of REPLACEMENTS, or the name of a paraphrase), `original` and `changed` are
    the whole texts, `word` and `replacement` what was there and what is.
    """

    sentence: int
    kind: str
    original: str
    changed: str
    span: tuple[int, int]
    word: str
    replacement: str

    @property
    def same(self) -> bool:
        """Whether nothing changed but case: such pairs are left out of the paper's statistic."""
        return self.word.lower() == self.replacement.lower()


def replace_word(
    words: Sequence[str],
    candidate: Candidate,
    kind: str,
    generator: np.random.Generator,
    sentence: int = 0,
    reader: WordNetCorpusReader | None = None,
) -> Perturbation | None:
    """A sentence with one candidate word replaced by another; None if there is no other.

    `kind` is one of REPLACEMENTS: a random WordNet synonym, a random word of the same class and
    inflection (the control that should change a prediction), or the word itself (the control that
    cannot). `sentence` is kept as the number of the sentence. Raises ValueError for another kind,
    an empty sentence, and a candidate of several words or outside the sentence.
    """
    if kind not in REPLACEMENTS:
        raise ValueError(f"no replacement is called {kind!r}; known: {', '.join(REPLACEMENTS)}")
    if candidate.stop != candidate.start + 1:
        raise ValueError(f"words {candidate.start}..{candidate.stop} are not one word")
    word = " ".join(words[candidate.start : candidate.stop])
    original = replaced(words, candidate, word)
    if kind == IDENTITY:
        replacement = word
    else:
        draw = synonym if kind == SYNONYM else random_word
        replacement = draw(word, candidate.kind, generator, reader, candidate.tag)
    if replacement is None:
        return None
    changed = replaced(words, candidate, replacement)
    span = (candidate.start, candidate.stop)
    return Perturbation(sentence, kind, original, changed, span, word, replacement)
