import math

import numpy as np
import pytest

from unmasked import models
from unmasked.experiments import long_distance
from unmasked.experiments.long_distance import CONSTRUCTIONS, LongDistanceConfig
from unmasked.project import UserError
from unmasked.tokens import train_tokenizer
from unmasked.trees import gold_edges

CONFIG = LongDistanceConfig(sentences=2, head=2, tail=1)


@pytest.fixture(scope="module")
def tokenizer():
    pairs = (*long_distance.NOUNS, *long_distance.TRANSITIVE, *long_distance.INTRANSITIVE)
    text = " ".join(["The the near that .", *(word for pair in pairs for word in pair)])
    return train_tokenizer([text] * 3, 600)


@pytest.fixture(scope="module")
def rows(tokenizer, tmp_path_factory):
    model = models.masked_language_model(
        models.bert_config("tiny", len(tokenizer), max_length=16), 0
    ).eval()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_distance, "load_named", lambda name: (model, tokenizer))
        folder = tmp_path_factory.mktemp("work")
        yield list(long_distance.compute_long_distance(CONFIG, 0, folder))


def test_pattern_slots_become_words_that_agree():
    lists = (long_distance.NOUNS, long_distance.TRANSITIVE, long_distance.INTRANSITIVE)
    number = {word: k for pairs in lists for pair in pairs for k, word in enumerate(pair)}
    for construction in CONSTRUCTIONS.values():
        for sentence in long_distance.sentences_of(construction, 20, 0):
            slots = construction.pattern.split()
            digits = {}
            for slot, word in zip(slots, sentence.words, strict=True):
                if slot[-1].isdigit():
                    digits.setdefault(slot[-1], set()).add(number[word])
                else:
                    assert word == slot
            assert all(len(found) == 1 for found in digits.values())
            assert len(set(sentence.words)) == len(sentence.words)


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("simple", "The-N1 N1-V1"),
        ("prepositional phrase", "The-N1 N1-V1 near-N2 the-N2 N1-N2"),
        ("object relative", "The-N1 N1-V1 that-T2 the-N2 N2-T2 N1-T2"),
        ("subject relative", "The-N1 N1-V1 that-T1 N1-T1 the-N2 T1-N2"),
    ],
)
def test_gold_trees_by_hand(name, edges):
    construction = CONSTRUCTIONS[name]
    slots = construction.pattern.split()
    sentence = construction.sentence("s", np.random.default_rng(0))
    got = {frozenset((slots[i], slots[j])) for i, j in gold_edges(sentence)}
    assert got == {frozenset(edge.split("-")) for edge in edges.split()}


def test_seeds_have_no_sentence_in_common():
    for construction in CONSTRUCTIONS.values():
        seen = [s.words for seed in range(3)
                for s in long_distance.sentences_of(construction, 20, seed)]  # fmt: skip
        assert len(set(seen)) == 60


def test_a_construction_that_runs_out_says_so():
    with pytest.raises(UserError, match="has too few sentences for 120"):
        long_distance.sentences_of(CONSTRUCTIONS["simple"], 120, 0)


def test_rows_hold_together(rows):
    value = {(r["construction"], r["system"], r["metric"]): r["value"] for r in rows}
    assert len(value) == len(rows) == len(CONSTRUCTIONS) * 8
    assert all(math.isfinite(r["value"]) and r["n"] > 0 for r in rows)
    links = "subject_verb_recall"
    chain = {name: value[name, long_distance.CHAIN, links] for name in CONSTRUCTIONS}
    assert chain == {"simple": 1.0, "prepositional phrase": 0.0, "object relative": 0.0,
                     "subject relative": 0.0}  # fmt: skip
    uuas = {name: value[name, long_distance.CHAIN, "uuas"] for name in CONSTRUCTIONS}
    assert uuas == pytest.approx({"simple": 100.0, "prepositional phrase": 40.0,
                                  "object relative": 50.0, "subject relative": 50.0})  # fmt: skip
    # three words: an edge is in a random tree with probability 2 / 3; 40 trees
    random = value["simple", long_distance.RANDOM_TREE, links]
    assert random == pytest.approx(2 / 3, abs=5 * math.sqrt(2 / 9 / 40))
    assert value["simple", long_distance.MODEL, "information"] >= 0


def test_split_words_are_refused():
    small = train_tokenizer(["The the near that . man men"], 60)
    with pytest.raises(UserError, match="splits or does not know woman"):
        long_distance.check_single_pieces(small)
