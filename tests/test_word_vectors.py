"""Word vectors: shared contexts bring spellings together; the controls keep the values."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM

from unmasked.alphabets import TwoAlphabets
from unmasked.languages import RandomWalk
from unmasked.word_vectors import cbow, scaled, scrambled, shuffled_weights

SYNSETS, WIDTH = 40, 16


def corpus(keep, count=300, length=60):
    """Half of the sequences of either domain."""
    walks = [RandomWalk(SYNSETS, 2 * SYNSETS, seed=seed) for seed in (330, 331)]
    source, generator = TwoAlphabets(*walks, keep), np.random.default_rng(0)
    return np.concatenate([source.sample(d, count, length, generator) for d in (0, 1)])


def share_with_own_neighbour(vectors):
    """The share of A_i whose nearest B vector by cosine is B_i."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = (unit[:SYNSETS] @ unit[SYNSETS:].T).argmax(1)
    return float((nearest == np.arange(SYNSETS)).mean())


# --- vectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("keep", "low", "high"), [(0.5, 0.95, 1.0), (1.0, 0.0, 0.2)])
def test_spellings_are_neighbours_where_they_share_their_contexts(keep, low, high):
    vectors = cbow(corpus(keep), 2 * SYNSETS, WIDTH, seed=0)
    assert vectors.shape == (2 * SYNSETS, WIDTH)
    assert low <= share_with_own_neighbour(vectors) <= high


def test_the_seed_fixes_the_vectors():
    tokens = corpus(0.5, count=40)
    first, again, other = (cbow(tokens, 2 * SYNSETS, WIDTH, seed, epochs=2) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any(1).all()


@pytest.mark.parametrize("changes", [{"window": 1}, {"epochs": 1}])
def test_window_and_epochs_reach_the_training(changes):
    tokens = corpus(0.5, count=20)
    assert (cbow(tokens, 80, 4, 0) != cbow(tokens, 80, 4, 0, **changes)).any()


def test_default_window_and_epochs():
    tokens = corpus(0.5, count=20)
    expected = cbow(tokens, 80, 4, 0, window=5, epochs=15)
    np.testing.assert_array_equal(cbow(tokens, 80, 4, 0), expected)


@pytest.mark.parametrize("missing", [0, 3, 5])
def test_an_id_that_never_occurs_is_refused(missing):
    tokens = np.setdiff1d(np.arange(6), missing)[None].repeat(10, 0)
    with pytest.raises(ValueError, match=f"id {missing} never occurs"):
        cbow(tokens, 6, 4, seed=0)


def test_an_id_outside_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match="ids run to 6, the vocabulary has 6"):
        cbow(np.arange(7)[None], 6, 4, seed=0)
    with pytest.raises(ValueError, match="negative"):
        cbow(np.arange(-1, 6)[None], 6, 4, seed=0)


# --- scale and order ---------------------------------------------------------------------------


def table(words=7, width=3):
    return np.random.default_rng(0).normal(0.2, 2, (words, width)).astype(np.float32)


def test_scaled_vectors_have_the_published_deviation_and_the_same_directions():
    vectors = table()
    result = scaled(vectors)
    assert result.dtype == np.float32
    assert np.std(result, dtype=np.float64) == pytest.approx(0.03, rel=1e-5)
    ratio = result / vectors
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-5)
    assert ratio[0, 0] > 0


def test_scrambled_reads_the_entries_column_by_column():
    vectors = table()
    result = scrambled(vectors)
    assert result.shape == (7, 3)
    for word in range(7):
        for coordinate in range(3):
            place = 3 * word + coordinate  # in the saved (3, 7) table, read row by row
            assert result[word, coordinate] == vectors[place % 7, place // 7]
    np.testing.assert_array_equal(np.sort(result.ravel()), np.sort(vectors.ravel()))
    assert (result != vectors).any()


def test_scrambled_is_a_copy():
    vectors = table()
    before = vectors.copy()
    scrambled(vectors)[:] = 0
    np.testing.assert_array_equal(vectors, before)


# --- shuffled weights --------------------------------------------------------------------------


def bert(seed=0):
    """A tiny tied model, every parameter's entries all different from one another."""
    config = BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=16, max_position_embeddings=8)  # fmt: skip
    model = BertForMaskedLM(config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=generator)
    return model


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def entries(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def test_shuffled_weights_keep_the_values_and_change_their_order():
    model = bert()
    before = entries(model)
    shuffled_weights(model, seeded())
    after = entries(model)
    assert before.keys() == after.keys()
    for name, old in before.items():
        new = after[name]
        assert new.shape == old.shape
        assert torch.equal(new.flatten().sort().values, old.flatten().sort().values), name
        assert not torch.equal(new, old), name
        if old.dim() == 2:  # entries leave their row, not only their place in it
            assert not torch.equal(new.sort(1).values, old.sort(1).values), name
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_tied_bert_stays_tied():
    model = bert()
    shuffled_weights(model, seeded())
    words, decoder = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert words is decoder
    assert torch.equal(model.state_dict()["cls.predictions.decoder.weight"], words)


def test_tied_parameters_are_shuffled_once():
    model = nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 9))
    model[1].weight = model[0].weight
    old = [parameter.detach().flatten().clone() for parameter in
           (model[0].weight, model[0].bias, model[1].bias)]  # fmt: skip
    shuffled_weights(model, seeded(4))
    generator = seeded(4)
    new = [values[torch.randperm(len(values), generator=generator)] for values in old]
    assert torch.equal(model[0].weight.flatten(), new[0])
    assert model[1].weight is model[0].weight
    assert torch.equal(model[0].bias, new[1])
    assert torch.equal(model[1].bias, new[2])


def test_the_generator_fixes_the_shuffle():
    first, again, other = bert(), bert(), bert()
    torch.manual_seed(1)
    shuffled_weights(first, seeded(3))
    torch.manual_seed(2)
    shuffled_weights(again, seeded(3))
    shuffled_weights(other, seeded(5))
    first, again, other = entries(first), entries(again), entries(other)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert all(not torch.equal(first[name], other[name]) for name in first)
