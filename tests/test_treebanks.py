import pytest

from unmasked import trees
from unmasked.trees import ParsedSentence

CONLLU = """# newdoc id = d
# sent_id = d-1
# text = Don't go home (now).
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t9:aux\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t0:root\t_
3.1\tback\tback\tADV\tRB\t_\t_\t_\t3:advmod\t_
4\thome\thome\tADV\tRB\t_\t3\tadvmod\t_\t_
5\t(\t(\tPUNCT\t-LRB-\t_\t6\tpunct\t_\t_
6\tnow\tnow\tADV\tRB\t_\t3\tadvmod\t_\t_
7\t)\t)\tPUNCT\t-RRB-\t_\t6\tpunct\t_\t_
8\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\t$\t$\tSYM\t$\t_\t0\troot\t_\t_
2\t5\t5\tNUM\tCD\t_\t1\tnummod\t_\t_
"""

CONLLX = (
    "1\t``\t_\t``\t``\t_\t2\tpunct\t_\t_\n"
    "2\tYes\t_\tUH\tUH\t_\t0\troot\t_\t_\n"
    "3\t,\t_\t,\t,\t_\t2\tpunct\t_\t_\n"
    "4\tsir\t_\tNN\t_\t_\t2\tdep\t_\t_\n"
    "5\t:\t_\t:\t:\t_\t4\tpunct\t_\t_\n"
    "6\t-LRB-\t_\t-LRB-\t-LRB-\t_\t4\tpunct\t_\t_\n"
    "7\t#\t_\t#\t#\t_\t4\tdep\t_\t_\n"
    "8\t-RRB-\t_\t-RRB-\t-RRB-\t_\t4\tpunct\t_\t_\n"
    "9\t''\t_\t''\t''\t_\t2\tpunct\t_\t_\n"
    "10\t.\t_\t.\t.\t_\t2\tpunct\t_\t_\n"
    "11\tx\t_\t\t\t_\t2\tdep\t_\t_\n"
)


def test_conllu_without_ranges_and_empty_nodes():
    first, second = trees.read_conllu(CONLLU)
    assert (first.name, second.name) == ("d-1", "2")
    assert first.words == ("Do", "n't", "go", "home", "(", "now", ")", ".")
    assert first.heads == (3, 3, 0, 3, 6, 3, 6, 3)
    assert first.tags[:3] == ("AUX", "PART", "VERB")
    assert first.punctuation == (False,) * 4 + (True, False, True, True)
    assert second.punctuation == (False, False)  # a symbol is a word


def test_gold_edges_are_those_between_counted_words():
    first, second = trees.read_conllu(CONLLU)
    assert trees.gold_edges(first).tolist() == [[0, 2], [1, 2], [2, 3], [2, 5]]
    assert trees.gold_relations(first) == ["aux", "advmod", "advmod", "advmod"]
    assert trees.gold_edges(second).tolist() == [[0, 1]]


def test_an_edge_through_punctuation_is_lost():
    words = ("a", ",", "b")
    given = ParsedSentence("s", words, (0, 1, 2), ("root", "x", "y"), words, (False, True, False))
    assert trees.gold_edges(given).shape == (0, 2)


def test_conllx_with_penn_punctuation():
    (sentence,) = trees.read_conllx(CONLLX)
    kept = [w for w, p in zip(sentence.words, sentence.punctuation, strict=True) if not p]
    assert kept == ["Yes", "sir", "#"]
    assert sentence.tags[3] == "NN"  # the fourth column where the fifth is empty
    assert trees.gold_edges(sentence).tolist() == [[1, 3], [3, 6]]


def test_files_with_other_line_ends_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_bytes(b"\xef\xbb\xbf" + CONLLU.replace("\n", "\r\n").encode())
    assert trees.read_conllu(path) == trees.read_conllu(CONLLU)


def test_line_separators_inside_a_word_do_not_cut_a_line():
    text = CONLLU.replace("\thome\thome\t", "\tho\u2028me\thome\t")
    assert trees.read_conllu(text)[0].words[3] == "ho\u2028me"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\t3\taux\t9:aux\t_", "\t3\taux\t9:aux", r"'d-1': a line with 9 fields.*line 5"),
        ("\t3\taux", "\t_\taux", r"'d-1': word 1 is out of order or headless \(line 5"),
        ("\t3\taux", "\t-1\taux", r"'d-1': word 1 is out of order or headless \(line 5"),
        ("\t3\taux", "\t9\taux", r"'d-1'.*a head outside of it \(line 5"),
        ("4\thome", "5\thome", r"'d-1': word 5 is out of order.*line 9"),
        ("\t0\troot\t0:root", "\t8\troot\t0:root", r"'d-1' has no roots.*lines 5 to 13"),
        ("\t3\taux", "\t0\taux", r"'d-1' has 2 roots.*lines 5 to 13"),
        ("\t6\tpunct\t_\t_\n6\tnow\tnow\tADV\tRB\t_\t3", "\t6\tpunct\t_\t_\n6\tn\tn\tA\tR\t_\t5",
         r"'d-1': the heads of word 5 \('\('\) run in a cycle \(lines 5 to 13"),
    ],
    ids=["columns", "no head", "negative head", "outside", "order", "no root", "two", "cycle"],
)  # fmt: skip
def test_damaged_sentences_are_named_with_their_line(old, new, said):
    damaged = CONLLU.replace(old, new, 1)
    assert damaged != CONLLU
    with pytest.raises(ValueError, match=said):
        trees.read_conllu(damaged)


def test_a_sentence_of_comments_only_is_refused():
    with pytest.raises(ValueError, match=r"'x' has no words.*line 2"):
        trees.read_conllu("\n# sent_id = x\n\n" + CONLLU)


def test_rows_of_the_corpus_are_the_sentences_of_the_file():
    from unmasked.data import parsing

    columns = parsing.ewt({"dev": CONLLU.encode()}, "dev")
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    read = trees.read_conllu(CONLLU)
    assert trees.from_rows(rows)[0] == read[0]
    assert trees.from_rows(rows)[1].words == read[1].words
    rows[0]["heads"] = [0] * 8
    with pytest.raises(ValueError, match="'d-1' has 8 roots"):
        trees.from_rows(rows)


def test_length_counts_words_without_punctuation():
    given = trees.read_conllu(CONLLU)
    assert trees.at_most(given, 5) == given
    assert trees.at_most(given, 4) == given[1:]
    assert trees.at_most(given, 10, at_least=3) == given[:1]
