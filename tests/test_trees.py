import itertools

import networkx
import numpy as np
import pytest
import scipy.stats

from unmasked import trees
from unmasked.trees import ParsedSentence


def matrix(n, seed, *, zeros=False):
    """Weights of both signs that are not symmetric, or mostly zeros, as a clamped window gives."""
    weights = np.random.default_rng(seed).normal(size=(n, n))
    return np.where(weights > 1.0, weights, 0.0) if zeros else weights


def total(edges, weights):
    both = np.maximum(weights, weights.T)
    return sum(both[i, j] for i, j in edges)


def graph(weights):
    both = np.maximum(weights, weights.T)
    made = networkx.Graph()
    made.add_weighted_edges_from(
        (i, j, both[i, j]) for i, j in itertools.combinations(range(len(weights)), 2)
    )
    return made


def is_spanning_tree(edges, words):
    made = networkx.Graph(edges.tolist())
    return networkx.is_tree(made) and set(made) == set(words)


def all_trees(n):
    for code in itertools.product(range(n), repeat=n - 2):
        yield [tuple(sorted(edge)) for edge in networkx.from_prufer_sequence(list(code)).edges]


def crosses(edges):
    return any(
        a < c < b < d or c < a < d < b for (a, b), (c, d) in itertools.combinations(edges, 2)
    )


@pytest.mark.parametrize("zeros", [False, True], ids=["signed", "clamped"])
@pytest.mark.parametrize("n", [2, 3, 7, 15])
def test_the_spanning_tree_has_the_largest_total_weight(n, zeros):
    for seed in range(20):
        weights = matrix(n, seed, zeros=zeros)
        edges = trees.maximum_spanning_tree(weights, adjacent_bonus=0.0)
        best = networkx.maximum_spanning_tree(graph(weights)).size(weight="weight")
        assert is_spanning_tree(edges, range(n))
        assert total(edges, weights) == pytest.approx(best)


def test_weights_that_differ_by_little_beside_a_large_one_are_told_apart():
    weights = np.zeros((4, 4))
    weights[0, 3], weights[0, 1], weights[1, 2], weights[0, 2] = 1e9, 1e-12, 2e-12, 3e-12
    edges = trees.maximum_spanning_tree(weights, adjacent_bonus=0.0)
    assert edges.tolist() == [[0, 2], [0, 3], [1, 2]]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_projective_tree_is_the_best_of_all_without_crossings(n):
    for seed in range(6):
        weights = matrix(n, seed)
        best = max(total(t, weights) for t in all_trees(n) if not crosses(t))
        edges = trees.projective_tree(weights, adjacent_bonus=0.0)
        assert is_spanning_tree(edges, range(n))
        assert not crosses(edges.tolist())
        assert total(edges, weights) == pytest.approx(best)


@pytest.mark.parametrize("decode", [trees.maximum_spanning_tree, trees.projective_tree])
def test_punctuation_is_in_no_tree(decode):
    counted = np.array([True, False, True, True, False, True])
    weights = matrix(6, 0)
    weights[1], weights[:, 4] = 50.0, 50.0
    edges = decode(weights, counted, adjacent_bonus=0.0)
    assert is_spanning_tree(edges, [0, 2, 3, 5])
    kept = np.flatnonzero(counted)
    inner = decode(weights[np.ix_(kept, kept)], adjacent_bonus=0.0)
    assert edges.tolist() == kept[inner].tolist()


@pytest.mark.parametrize("decode", [trees.maximum_spanning_tree, trees.projective_tree])
def test_the_bonus_breaks_ties_towards_neighbours_of_the_whole_sentence(decode):
    chain = trees.adjacent_chain(6).tolist()
    assert decode(np.zeros((6, 6))).tolist() == chain
    weights = np.zeros((6, 6))
    weights[5, 0] = 2e-4
    assert [0, 5] in decode(weights).tolist()
    # words 0 and 2 are no neighbours, although only punctuation stands between them
    weights = np.zeros((4, 4))
    weights[0, 3] = 5e-5
    assert [0, 3] in decode(weights, np.array([1, 0, 1, 1], dtype=bool)).tolist()


@pytest.mark.parametrize("decode", [trees.maximum_spanning_tree, trees.projective_tree])
def test_fewer_than_two_words_have_no_edge(decode):
    for counted in ([False], [True], [False, True, False], [False, False]):
        n = len(counted)
        for edges in (
            decode(np.zeros((n, n)), np.array(counted)),
            trees.adjacent_chain(n, np.array(counted)),
            trees.random_tree(n, np.random.default_rng(0), np.array(counted)),
        ):
            assert edges.shape == (0, 2)
            assert edges.dtype == np.int64


@pytest.mark.parametrize(
    ("weights", "counted", "said"),
    [
        (np.zeros((2, 3)), None, r"shape \(2, 3\); a square"),
        (np.full((2, 2), np.nan), None, "NaN or infinity"),
        (np.zeros((3, 3)), [True], r"shape \(1,\), expected one entry for each of 3"),
    ],
)
def test_bad_weights_are_refused(weights, counted, said):
    with pytest.raises(ValueError, match=said):
        trees.maximum_spanning_tree(weights, counted)


def test_the_adjacent_chain_steps_over_punctuation():
    assert trees.adjacent_chain(3).tolist() == [[0, 1], [1, 2]]
    counted = np.array([False, True, False, True, True])
    assert trees.adjacent_chain(5, counted).tolist() == [[1, 3], [3, 4]]


def test_random_trees_are_uniform():
    generator = np.random.default_rng(0)
    drawn = [str(trees.random_tree(4, generator).tolist()) for _ in range(3200)]
    _, counts = np.unique(drawn, return_counts=True)
    assert len(counts) == 16  # Cayley: 4 ** 2 trees
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def edges(*pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


GOLD = [edges((0, 1), (1, 2)), edges((0, 2), (1, 2), (2, 5)), edges()]
FOUND = [edges((0, 1), (0, 2)), edges((0, 2), (1, 2), (1, 5)), edges()]


def test_uuas_is_the_share_of_gold_edges_over_all_sentences():
    assert trees.uuas(FOUND, GOLD) == pytest.approx(100 * 3 / 5)
    assert trees.uuas(GOLD, GOLD) == 100.0
    assert trees.uuas([edges()] * 3, GOLD) == 0.0


def test_scores_without_gold_edges_or_of_other_sentences_are_refused():
    with pytest.raises(ValueError, match="no gold edge"):
        trees.uuas([edges()], [edges()])
    with pytest.raises(ValueError, match="1 predicted trees for 3"):
        trees.uuas([edges()], GOLD)


def many(count, seed):
    """Gold trees of different sizes and trees that have about half of their edges."""
    generator = np.random.default_rng(seed)
    gold = [trees.random_tree(int(n), generator) for n in generator.integers(2, 12, size=count)]
    other = [trees.random_tree(len(g) + 1, generator) for g in gold]
    return [np.where(generator.random((len(g), 1)) < 0.5, g, o)
            for g, o in zip(gold, other, strict=True)], gold  # fmt: skip


def test_the_interval_resamples_sentences_as_scipy_does():
    predicted, gold = many(80, 0)
    size = np.array([len(g) for g in gold])
    hits = np.array([len(set(map(tuple, p.tolist())) & set(map(tuple, g.tolist())))
                     for p, g in zip(predicted, gold, strict=True)])  # fmt: skip
    expected = scipy.stats.bootstrap(
        (hits, size), lambda h, s, axis: 100 * h.sum(axis) / s.sum(axis), paired=True,
        vectorized=True, method="percentile", rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    found = trees.uuas_interval(predicted, gold, np.random.default_rng(2))
    assert found.mean == pytest.approx(trees.uuas(predicted, gold))
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.05 * width)
    assert found.high == pytest.approx(expected.high, abs=0.05 * width)
    assert found.count == 80


def test_the_interval_of_a_difference_is_paired():
    predicted, gold = many(40, 1)
    same = trees.difference_interval(predicted, predicted, gold, np.random.default_rng(0))
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)
    chain = [trees.adjacent_chain(len(g) + 1) for g in gold]
    gap = trees.difference_interval(predicted, chain, gold, np.random.default_rng(0))
    assert gap.mean == pytest.approx(trees.uuas(predicted, gold) - trees.uuas(chain, gold))
    assert gap.low < gap.mean < gap.high


def test_one_sentence_has_no_interval():
    found = trees.uuas_interval(GOLD[:1], GOLD[:1], np.random.default_rng(0))
    assert (found.mean, found.count) == (100.0, 1)
    assert np.isnan([found.low, found.high]).all()


def test_recall_by_distance_counts_every_gold_edge_once():
    table = trees.recall_by_distance(FOUND, GOLD, longest=3)
    assert table.to_dict("list") == {
        "distance": [1, 2, 3], "gold": [3, 1, 1], "correct": [2, 1, 0], "predicted": [2, 2, 1]
    }  # fmt: skip
    everything = trees.recall_by_distance(FOUND, GOLD, longest=1)
    assert everything.to_numpy().tolist() == [[1, 5, 3, 5]]


def sentences(count):
    """`count` copies of a sentence with subject, object and a determiner three words away."""
    heads, relations = (2, 0, 5, 5, 2), ("nsubj", "root", "det", "amod", "obj")
    words = ("she", "saw", "the", "old", "ship")
    return [ParsedSentence(str(i), words, heads, relations, ("X",) * 5, (False,) * 5)
            for i in range(count)]  # fmt: skip


def test_the_relation_table_has_the_counts_and_scipys_odds_ratios():
    given = sentences(10)
    chain = [trees.adjacent_chain(5)] * 10
    mixed = [edges((0, 1), (1, 4)) if i < 7 else edges((2, 4)) for i in range(10)]
    other = [edges((1, 4)) if i < 3 else edges((0, 1)) for i in range(10)]
    table = trees.relation_table(mixed, other, given).set_index("relation")
    assert list(table.index[:2]) == ["obj", "det"]  # gains 0.4 and 0.3
    assert table.loc["obj", ["gold", "correct", "chain"]].tolist() == [10, 7, 3]
    oracle = scipy.stats.contingency.odds_ratio([[7, 3], [3, 7]], kind="sample")
    ends = np.log([*oracle.confidence_interval(0.95)])
    found = table.loc["obj", ["log_odds_ratio", "low", "high"]].to_numpy(dtype=float)
    assert found == pytest.approx([np.log(oracle.statistic), *ends], rel=1e-6)
    # the chain never has a determiner: half an edge is added to each cell
    haldane = trees.relation_table(mixed, chain, given).set_index("relation").loc["det"]
    assert haldane["chain"] == 0
    assert haldane["log_odds_ratio"] == pytest.approx(np.log(3.5 * 10.5 / (7.5 * 0.5)))
