"""Ties between two spellings, on tables whose ties are known and against explicit loops."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from unmasked.alphabets import A, B, TwoAlphabets
from unmasked.languages import RandomWalk
from unmasked.synonyms import ties

SYNSETS, HIDDEN = 8, 16
SEQUENCES = np.array([[0, 0, 1, 5], [2, 1, 0, 7]])


def language():
    return TwoAlphabets(RandomWalk(SYNSETS, 40), RandomWalk(SYNSETS, 40, seed=331))


def tiny(layers=2, vocabulary_size=2 * SYNSETS + 1, dropout=0.0, seed=0):
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=HIDDEN,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=8,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.3,  # states that differ from one another
        pad_token_id=None,
    )
    return BertForMaskedLM(config).eval()


def set_table(model, first, second):
    """Overwrite the embeddings of A and of B."""
    with torch.no_grad():
        table = model.get_input_embeddings().weight
        table[:SYNSETS] = first
        table[SYNSETS : 2 * SYNSETS] = second


def tie_by_loops(first, second, synsets):
    """(cosine, control, neighbour, chance), one pair at a time."""
    same, different, hits, chances = [], [], 0, 0
    for i, a in enumerate(first):
        cosines = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for b in second]
        same.append(cosines[i])
        different += [c for c, s in zip(cosines, synsets, strict=True) if s != synsets[i]]
        hits += synsets[int(np.argmax(cosines))] == synsets[i]
        chances += sum(s == synsets[i] for s in synsets)
    count = len(synsets)
    return np.mean(same), np.mean(different), hits / count, chances / count**2


def test_copied_embeddings_tie_every_layer():
    model = tiny()
    own = torch.randn(SYNSETS, HIDDEN, generator=torch.Generator().manual_seed(1))
    set_table(model, own, own)
    found = ties(model, language(), SEQUENCES)
    assert [tie.layer for tie in found] == [0, 1, 2]
    for tie in found:
        assert tie.cosine == pytest.approx(1, abs=1e-5)
        assert tie.neighbour == 1
        assert tie.control < 0.9


def test_other_embeddings_tie_no_layer():
    """So that the test above is none of copies that any model passes."""
    for tie in ties(tiny(), language(), SEQUENCES):
        assert tie.cosine < 0.9
        assert tie.neighbour < 1


def test_a_cyclic_shift_of_orthonormal_embeddings_has_the_tie_of_the_wrong_synset():
    model = tiny()
    own = torch.linalg.qr(
        torch.randn(HIDDEN, HIDDEN, generator=torch.Generator().manual_seed(2))
    ).Q[:SYNSETS]
    set_table(model, 3 * own, own.roll(1, 0))  # B_{i+1} is A_i's direction; lengths do not count
    table = ties(model, language(), SEQUENCES)[0]
    assert table.neighbour == 0
    assert table.cosine == pytest.approx(0, abs=1e-6)
    # 8 of the 56 ordered pairs of different synsets have cosine 1, the others 0
    assert table.control == pytest.approx(1 / 7, abs=1e-6)
    assert table.chance == pytest.approx(1 / 8)


def test_the_nearest_is_sought_among_the_b_states_of_each_a_state():
    model = tiny()
    axes = torch.eye(HIDDEN)
    # all of A leans to B_0's axis; B_i are the axes: only A_0 finds its own spelling, whereas
    # each B_i but B_0 finds A_i, the only A state with any part along its axis
    set_table(model, axes[:1] + 0.5 * axes[:SYNSETS], axes[:SYNSETS])
    table = ties(model, language(), SEQUENCES)[0]
    assert table.neighbour == pytest.approx(1 / 8)
    assert table.cosine == pytest.approx((1 + 7 * 0.5 / 1.25**0.5) / 8, abs=1e-6)
    assert table.control == pytest.approx(7 / 1.25**0.5 / 56, abs=1e-6)


def test_chance_counts_repeated_synsets():
    found = ties(tiny(), language(), SEQUENCES)
    assert found[0].chance == pytest.approx(1 / 8)
    # 0 stands at 3 of 8 positions, 1 at 2, and 2, 5, 7 at 1 each
    for tie in found[1:]:
        assert tie.chance == pytest.approx((9 + 4 + 1 + 1 + 1) / 64)


@pytest.mark.parametrize("layers", [1, 2])
def test_every_layer_equals_the_loop_over_pairs(layers):
    model = tiny(layers)
    synsets = np.random.default_rng(0).integers(SYNSETS, size=(6, 5))
    found = ties(model, language(), synsets)
    assert len(found) == layers + 1
    outputs = {}

    def keep(key):
        def hook(module, inputs, output):
            states = output[0] if isinstance(output, tuple) else output
            outputs[key] = states.detach().double().reshape(-1, HIDDEN).numpy()

        return hook

    for alphabet in (A, B):
        hooks = [
            layer.register_forward_hook(keep((number, alphabet)))
            for number, layer in enumerate(model.bert.encoder.layer, start=1)
        ]
        model(torch.from_numpy(synsets + SYNSETS * alphabet))
        for hook in hooks:
            hook.remove()
    table = model.bert.embeddings.word_embeddings.weight.detach().double().numpy()
    expected = [tie_by_loops(table[:SYNSETS], table[SYNSETS:-1], list(range(SYNSETS)))]
    for number in range(1, layers + 1):
        states = [outputs[number, alphabet] for alphabet in (A, B)]
        expected.append(tie_by_loops(*states, synsets.ravel().tolist()))
    for layer, (tie, numbers) in enumerate(zip(found, expected, strict=True)):
        assert tie.layer == layer
        np.testing.assert_allclose(
            (tie.cosine, tie.control, tie.neighbour, tie.chance), numbers, atol=1e-5
        )


def test_dropout_plays_no_part():
    model = tiny(dropout=0.5).train()
    found = ties(model, language(), SEQUENCES)
    assert found == ties(tiny(), language(), SEQUENCES)
    assert not any(parameter.grad is not None for parameter in model.parameters())


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("vocabulary_size", [2 * SYNSETS, 2 * SYNSETS + 2])
def test_a_model_of_another_vocabulary_is_refused(vocabulary_size):
    with pytest.raises(ValueError, match=f"has {vocabulary_size} ids, the language needs 17"):
        ties(tiny(vocabulary_size=vocabulary_size), language(), SEQUENCES)


@pytest.mark.parametrize("synsets", [np.array([[3, 3], [3, 3]]), np.array([[3]])])
def test_a_single_synset_is_refused(synsets):
    with pytest.raises(ValueError, match="at least two different synsets"):
        ties(tiny(), language(), synsets)
