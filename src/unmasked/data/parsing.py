"""From the bytes of the files to columns: pure functions, one a corpus.

A parser takes the files that it needs as bytes, by name, and the split; it returns a dictionary of
equally long columns. A file that has not the form it should have raises ValueError with the line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping

from unmasked.data.conll import blocks

Columns = dict[str, list]
Files = Mapping[str, bytes]

PASSAGE_WORDS = 120  # a passage of prose ends at the sentence that brings it to this many words
GROUP_ROWS = 10  # consecutive rows that go to the same split of prose
VALIDATION_EVERY = 20  # one such group in this many is for validation

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9$])")


def normalise(text: str) -> str:
    """One line: every run of white space becomes one space, none at the ends."""
    return " ".join(text.split())


def decode(content: bytes) -> str:
    """UTF-8 text with or without a byte order mark; ValueError names the first bad byte."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None


# --- movie_reviews ---------------------------------------------------------------------------

_SNIPPETS = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"


def unpack_movie_reviews(archive: bytes) -> bytes:
    """The rated film sentences, out of the archive inside the package's source archive."""
    inner = _member(archive, "/additional_resources/hutto_ICWSM_2014.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(inner)) as tar:
        return tar.extractfile(_SNIPPETS).read()


def _member(archive: bytes, ending: str) -> bytes:
    """The one file of a tar archive whose name ends so."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        (content,) = (
            tar.extractfile(member).read() for member in tar if member.name.endswith(ending)
        )
    return content


def sentence_split(text: str) -> str:
    """train, validation or test (8:1:1) by a hash of the text, so equal sentences stay together.

    Case and white space do not count: a lower-cased model sees no test sentence in training.
    """
    digest = hashlib.sha256(normalise(text).casefold().encode()).hexdigest()
    bucket = int(digest[:8], 16) % 10
    return {8: "validation", 9: "test"}.get(bucket, "train")


def movie_reviews(
    files: Files, split: str, *, threshold: float = 0.5, labelled: bool = True
) -> Columns:
    """Columns text, rating (mean of the raters, -4..4), label (1 above zero, 0 below).

    Only sentences with |rating| > `threshold` are kept; with `labelled=False` all are, and those
    others have the label -1.
    """
    if type(threshold) not in (int, float) or not 0 <= threshold < 4:
        raise ValueError(f"threshold must be a number from 0 up to 4, got {threshold!r}")
    if not isinstance(labelled, bool):
        raise ValueError(f"labelled must be True or False, got {labelled!r}")
    columns: Columns = {"text": [], "rating": [], "label": []}
    for number, line in enumerate(decode(files["sentences"]).splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) != 3:
            raise ValueError(f"line {number} has {len(fields)} fields, expected id, rating, text")
        rating, text = float(fields[1]), normalise(fields[2])
        clear = abs(rating) > threshold
        if sentence_split(text) == split and (clear or not labelled):
            columns["text"].append(text)
            columns["rating"].append(rating)
            columns["label"].append(int(rating > 0) if clear else -1)
    return columns


# --- prose -----------------------------------------------------------------------------------


def unpack_moby_dick(archive: bytes) -> bytes:
    """The whole book as one text, hard-wrapped, with blank lines between paragraphs."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.extractfile("package/data/data.txt").read()


def unpack_addresses(archive: bytes) -> bytes:
    """The addresses in order of year and name, one a line, with a blank line between."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        texts = {
            member.name: json.load(tar.extractfile(member))["text"]
            for member in tar
            if re.fullmatch(r"package/data/\d{4}_\w+\.json", member.name)
        }
    if not texts:
        raise ValueError("no address in it")
    return "\n\n".join(normalise(texts[name]) for name in sorted(texts)).encode()


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text (blank lines between them), each normalised to one line."""
    return [normalise(block) for block in re.split(r"\n\s*\n", text) if block.strip()]


def passages(paragraph: str, words: int = PASSAGE_WORDS) -> list[str]:
    """A paragraph in pieces of whole sentences; each but the last has at least `words` words."""
    pieces, begin = [], 0
    for end in (match.end() for match in _SENTENCE_END.finditer(paragraph)):
        if len(paragraph[begin:end].split()) >= words:
            pieces.append(paragraph[begin:end].strip())
            begin = end
    return [*pieces, paragraph[begin:]] if begin < len(paragraph) else pieces


def prose(files: Files, split: str) -> Columns:
    """Columns text (one passage), document ("State of the Union 17" or "Moby Dick 93").

    Rows are in reading order. A passage that was there before is left out, so no row of one split
    is in the other; of the groups of ten consecutive rows, every twentieth is for validation.
    """
    rows: dict[str, str] = {}
    for number, address in enumerate(paragraphs(decode(files["addresses"])), start=1):
        for passage in passages(address):
            rows.setdefault(passage, f"State of the Union {number}")
    chapter = "Moby Dick"
    for paragraph in paragraphs(decode(files["moby_dick"])):
        if title := re.match(r"CHAPTER (\d+)\. ", paragraph):
            chapter = f"Moby Dick {title[1]}"
        for passage in passages(paragraph):
            rows.setdefault(passage, chapter)
    columns: Columns = {"text": [], "document": []}
    for number, (text, document) in enumerate(rows.items()):
        validation = number // GROUP_ROWS % VALIDATION_EVERY == VALIDATION_EVERY - 1
        if validation == (split == "validation"):
            columns["text"].append(text)
            columns["document"].append(document)
    return columns


# --- labelled sentences and news -------------------------------------------------------------


def sst2(files: Files, split: str) -> Columns:
    """Columns text, label (1 positive, 0 negative); tab-separated with a header line."""
    lines = decode(files[split]).splitlines()
    if not lines or lines[0].split("\t") != ["sentence", "label"]:
        raise ValueError("line 1 is not the header sentence, label")
    columns: Columns = {"text": [], "label": []}
    for number, line in enumerate(lines[1:], start=2):
        text, tab, label = line.rpartition("\t")
        if not tab or label not in ("0", "1"):
            raise ValueError(f"line {number} is not a sentence, a tab and 0 or 1")
        columns["text"].append(normalise(text))
        columns["label"].append(int(label))
    return columns


def ag_news(files: Files, split: str) -> Columns:
    """Columns text (title, a space, description), label.

    Labels: 0 World, 1 Sports, 2 Business, 3 Science and technology.
    """
    columns: Columns = {"text": [], "label": []}
    for number, row in enumerate(csv.reader(io.StringIO(decode(files[split]))), start=1):
        if len(row) != 3 or row[0] not in ("1", "2", "3", "4"):
            raise ValueError(f"item {number} is not a class from 1 to 4, a title, a description")
        columns["text"].append(normalise(f"{row[1]} {row[2]}"))
        columns["label"].append(int(row[0]) - 1)
    return columns


def wikitext(lines: Iterable[str]) -> Columns:
    """Column text: the lines of the hub's dataset that are not blank, white space normalised."""
    return {"text": [text for text in map(normalise, lines) if text]}


# --- lexicons and treebank -------------------------------------------------------------------


def opinion_lexicon(files: Files, split: str) -> Columns:
    """Columns word, polarity (1 positive, -1 negative), in the order of the two lists.

    The lists are ISO-8859-1; lines that begin with a semicolon are comments.
    """
    columns: Columns = {"word": [], "polarity": []}
    for name, polarity in (("positive", 1), ("negative", -1)):
        for line in files[name].decode("iso-8859-1").splitlines():
            if line.strip() and not line.startswith(";"):
                columns["word"].append(line.strip())
                columns["polarity"].append(polarity)
    return columns


def unpack_vader_lexicon(archive: bytes) -> bytes:
    """The lexicon, out of the package's source archive."""
    return _member(archive, "/vaderSentiment/vader_lexicon.txt")


def vader_lexicon(files: Files, split: str) -> Columns:
    """Columns word, valence (mean of ten raters, -4..4), in the order of the list.

    A line holds the word, the mean, the standard deviation and the ten ratings.
    """
    columns: Columns = {"word": [], "valence": []}
    for number, line in enumerate(decode(files["lexicon"]).splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) != 4:
            raise ValueError(f"line {number} has {len(fields)} fields, expected 4")
        columns["word"].append(fields[0])
        columns["valence"].append(float(fields[1]))
    return columns


def ewt(files: Files, split: str) -> Columns:
    """Columns id, tokens, lemmas, upos, heads, deprels: one sentence a row (CoNLL-U).

    `heads` are 1-based positions in the sentence, 0 for the root. Ranges of multi-word tokens and
    empty nodes are left out, so heads[i] belongs to tokens[i] and len(heads) == len(tokens).
    """
    columns: Columns = {name: [] for name in ("id", "tokens", "lemmas", "upos", "heads", "deprels")}
    for block in blocks(decode(files[split])):
        columns["id"].append(block.name)
        columns["tokens"].append([word.form for word in block.words])
        columns["lemmas"].append([word.lemma for word in block.words])
        columns["upos"].append([word.tag for word in block.words])
        columns["heads"].append([word.head for word in block.words])
        columns["deprels"].append([word.relation for word in block.words])
    return columns
