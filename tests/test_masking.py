"""Masks: the 80/10/10 rule within binomial bounds, exact counts, and each known bug by name.

Statistical checks use two-sided binomial bounds with the tail probability ``TAIL``, so that a
correct implementation fails one of them about once in a million seeds, and the seeds are fixed.
The checks of the known bugs are themselves checked: each must reject an implementation that has
the bug.
"""

from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from torch.nn.functional import cross_entropy

from unmasked import masking
from unmasked.masking import (
    IGNORE_INDEX,
    MaskedBatch,
    MaskingVocabulary,
    corrupt,
    mask_tokens,
    maskable,
    select_bernoulli,
    select_fixed_count,
    select_spans,
    select_whole_words,
)

TAIL = 1e-6
PAD, UNK, CLS, SEP, MASK = SPECIAL = (0, 1, 2, 3, 4)
VOCABULARY = MaskingVocabulary(size=50, mask_token_id=MASK, special_ids=SPECIAL)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sentences(rows: int = 400, length: int = 64, seed: int = 1) -> torch.Tensor:
    """(rows, length): [CLS] words [SEP] and, in every second row, padding from the middle on."""
    ids = torch.randint(5, VOCABULARY.size, (rows, length), generator=seeded(seed))
    ids[:, 0], ids[:, -1] = CLS, SEP
    ids[::2, length // 2 - 1] = SEP
    ids[::2, length // 2 :] = PAD
    return ids


def assert_binomial(successes: int, trials: int, probability: float) -> None:
    low, high = binom.ppf([TAIL / 2, 1 - TAIL / 2], trials, probability)
    assert low <= successes <= high, f"{successes} of {trials} at p = {probability}"


# --- the 80/10/10 rule -------------------------------------------------------------------------


def assert_80_10_10(original: torch.Tensor, batch: MaskedBatch) -> None:
    """80 % [MASK], 10 % drawn from the ordinary ids, 10 % kept (a drawn id can be the kept one)."""
    n = int(batch.selected.sum())
    seen, true = batch.input_ids[batch.selected], original[batch.selected]
    ordinary = VOCABULARY.size - len(SPECIAL)
    masked = int((seen == MASK).sum())
    same = int((seen == true).sum())
    assert_binomial(masked, n, 0.8)
    assert_binomial(same, n, 0.1 + 0.1 / ordinary)
    assert_binomial(n - masked - same, n, 0.1 * (1 - 1 / ordinary))


def independent_draws(ids: torch.Tensor, seed: int = 0) -> MaskedBatch:
    """The bug: two draws where one should decide, so that 10 % is taken from the wrong rest."""
    generator = seeded(seed)
    selected = select_bernoulli(maskable(ids, VOCABULARY), 0.15, generator)
    out = ids.clone()
    out[selected & (torch.rand(ids.shape, generator=generator) < 0.8)] = MASK
    rest = selected & (out != MASK)
    rare = rest & (torch.rand(ids.shape, generator=generator) < 0.1 / 0.2 * 0.9)
    out[rare] = torch.randint(5, VOCABULARY.size, (int(rare.sum()),), generator=generator)
    return MaskedBatch(out, ids.masked_fill(~selected, IGNORE_INDEX), selected)


@pytest.mark.parametrize("selection", ["fixed_count", "bernoulli", select_spans])
def test_corruption_is_80_10_10(selection):
    ids = sentences(rows=12_000)
    assert_80_10_10(ids, mask_tokens(ids, VOCABULARY, seeded(), selection=selection))


def test_80_10_10_check_rejects_independent_draws():
    ids = sentences(rows=12_000)
    with pytest.raises(AssertionError):
        assert_80_10_10(ids, independent_draws(ids))


def test_80_10_10_check_rejects_81_10_9():
    ids = sentences(rows=12_000)
    selected = select_fixed_count(maskable(ids, VOCABULARY), 0.15, seeded())
    wrong = corrupt(ids, selected, VOCABULARY, seeded(), mask=0.81, random=0.10)
    with pytest.raises(AssertionError):
        assert_80_10_10(ids, MaskedBatch(wrong, ids, selected))


def test_pure_masking_leaves_nothing_else():
    ids = sentences()
    batch = mask_tokens(ids, VOCABULARY, seeded(), mask=1.0, random=0.0)
    assert (batch.input_ids[batch.selected] == MASK).all()


def test_rest_is_kept_when_nothing_is_replaced():
    ids = sentences()
    batch = mask_tokens(ids, VOCABULARY, seeded(), mask=0.0, random=0.0)
    assert torch.equal(batch.input_ids, ids)
    assert batch.selected.any()


def assert_random_is_never_special(corrupted: torch.Tensor, selected: torch.Tensor) -> None:
    drawn = corrupted[selected]
    assert len(drawn) > 10_000  # every special id would show up with certainty
    assert set(drawn.tolist()) == set(range(5, VOCABULARY.size))


def test_random_replacement_is_never_special_and_reaches_every_ordinary_id():
    ids = torch.full((200, 64), 7)
    selected = torch.ones_like(ids, dtype=torch.bool)
    assert_random_is_never_special(
        corrupt(ids, selected, VOCABULARY, seeded(), mask=0.0, random=1.0), selected
    )
    with pytest.raises(AssertionError):  # the bug: drawn from the whole vocabulary
        assert_random_is_never_special(
            torch.randint(VOCABULARY.size, ids.shape, generator=seeded()), selected
        )


def test_random_replacement_skips_special_ids_in_the_middle_of_the_vocabulary():
    vocabulary = MaskingVocabulary(size=9, mask_token_id=8, special_ids=(4, 8))
    ids = torch.zeros((200, 64), dtype=torch.long)
    everywhere = torch.ones_like(ids, dtype=torch.bool)
    drawn = corrupt(ids, everywhere, vocabulary, seeded(), mask=0.0, random=1.0)
    counts = Counter(drawn.flatten().tolist())
    assert sorted(counts) == [0, 1, 2, 3, 5, 6, 7]
    for count in counts.values():
        assert_binomial(count, ids.numel(), 1 / 7)


# --- what may be selected ----------------------------------------------------------------------


def word_selection(maskable, probability, generator):
    words = (torch.rand(maskable.shape, generator=seeded(9)) < 0.6).long().cumsum(1) - 1
    return select_whole_words(maskable, words, probability, generator)


SELECTIONS = ["fixed_count", "bernoulli", select_spans, word_selection]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("probability", [0.15, 1.0])
def test_special_tokens_and_padding_are_never_selected(selection, probability):
    ids = sentences()
    batch = mask_tokens(ids, VOCABULARY, seeded(), probability, selection=selection)
    assert not batch.selected[ids < len(SPECIAL)].any()
    if probability == 1.0 and selection is not word_selection:
        assert torch.equal(batch.selected, ids >= len(SPECIAL))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_attention_mask_keeps_padding_out_whatever_its_id(selection):
    ids = torch.randint(5, VOCABULARY.size, (50, 20), generator=seeded())  # padded with words
    attention = (torch.arange(20) < 8).long().expand(50, 20)
    batch = mask_tokens(ids, VOCABULARY, seeded(), 0.9, attention, selection=selection)
    assert not batch.selected[:, 8:].any()
    assert batch.selected[:, :8].any()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_labels_and_inputs_change_only_where_selected(selection):
    ids = sentences()
    before = ids.clone()
    batch = mask_tokens(ids, VOCABULARY, seeded(), selection=selection)
    assert torch.equal(ids, before)
    assert torch.equal(batch.labels[batch.selected], ids[batch.selected])
    assert (batch.labels[~batch.selected] == IGNORE_INDEX).all()
    assert torch.equal(batch.input_ids[~batch.selected], ids[~batch.selected])
    assert batch.input_ids.dtype == batch.labels.dtype == torch.int64


def test_a_transposed_batch_is_masked_like_a_contiguous_one():
    ids = sentences(rows=64).T
    strided, contiguous = (mask_tokens(x, VOCABULARY, seeded()) for x in (ids, ids.contiguous()))
    assert torch.equal(strided.input_ids, contiguous.input_ids)
    assert torch.equal(strided.labels, contiguous.labels)


# --- nothing to mask ---------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["fixed_count", select_spans, word_selection])
def test_every_row_with_a_word_gets_a_label_so_the_mean_loss_is_a_number(selection):
    ids = torch.tensor([[CLS, 9, SEP, PAD], [CLS, 8, 7, SEP]])  # round(0.15 * n) is 0
    batch = mask_tokens(ids, VOCABULARY, seeded(), selection=selection)
    assert batch.selected.sum(1).tolist() == [1, 1]
    loss = cross_entropy(torch.zeros(8, VOCABULARY.size), batch.labels.flatten())
    assert torch.isfinite(loss)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0)])
def test_a_batch_without_a_maskable_position_selects_nothing(selection, shape):
    ids = torch.full(shape, PAD)
    batch = mask_tokens(ids, VOCABULARY, seeded(), selection=selection)
    assert batch.selected.shape == shape
    assert not batch.selected.any()
    assert (batch.labels == IGNORE_INDEX).all()
    assert torch.equal(batch.input_ids, ids)


# --- randomness --------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", SELECTIONS)
def test_same_generator_state_same_mask_and_a_new_draw_in_every_call(selection):
    ids = sentences()
    first, second = seeded(5), seeded(5)
    a = mask_tokens(ids, VOCABULARY, first, selection=selection)
    b = mask_tokens(ids, VOCABULARY, second, selection=selection)
    assert torch.equal(a.selected, b.selected)
    assert torch.equal(a.input_ids, b.input_ids)
    c = mask_tokens(ids, VOCABULARY, first, selection=selection)  # the next epoch
    assert not torch.equal(a.selected, c.selected)


def test_masking_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    for selection in SELECTIONS:
        mask_tokens(sentences(rows=4), VOCABULARY, seeded(), selection=selection)
    assert torch.equal(torch.random.get_rng_state(), before)


# --- how many, and how evenly ------------------------------------------------------------------


def test_bernoulli_selects_each_position_with_the_probability():
    allowed = maskable(sentences(rows=6_000), VOCABULARY)
    selected = select_bernoulli(allowed, 0.15, seeded())
    assert_binomial(int(selected.sum()), int(allowed.sum()), 0.15)
    per_row = selected.sum(1)[1::2]  # rows of 62 words
    assert_binomial(int((per_row == 0).sum()), len(per_row), binom.pmf(0, 62, 0.15))


@given(st.integers(0, 2**31), st.integers(1, 70), st.floats(0.01, 1.0), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_fixed_count_and_spans_are_exact_in_ragged_rows(seed, length, probability, density):
    allowed = torch.rand((17, length), generator=seeded(seed)) < density
    expected = [max(round(probability * n), min(n, 1)) for n in allowed.sum(1).tolist()]
    for select in (select_fixed_count, select_spans):
        selected = select(allowed, probability, seeded(seed))
        assert selected.sum(1).tolist() == expected
        assert not (selected & ~allowed).any()


def test_fixed_count_is_uniform_over_positions_and_pairs():
    allowed = torch.ones((40_000, 6), dtype=torch.bool)
    allowed[:, 2] = False
    selected = select_fixed_count(allowed, 0.4, seeded())  # 2 of 5: ten subsets
    subsets = Counter(tuple(row.nonzero().flatten().tolist()) for row in selected)
    assert len(subsets) == 10
    for count in subsets.values():
        assert_binomial(count, len(allowed), 0.1)


def test_fixed_count_is_exact_in_rows_where_float32_draws_would_tie():
    allowed = torch.ones((50, 20_000), dtype=torch.bool)
    assert select_fixed_count(allowed, 0.5, seeded()).sum(1).tolist() == [10_000] * 50


# --- whole words -------------------------------------------------------------------------------


def test_whole_words_are_selected_with_all_their_pieces():
    words = torch.tensor([[-1, 0, 0, 1, 2, 2, 2, -1, 0, 1, 1, -1]] * 3000)  # a pair: ids restart
    allowed = words >= 0
    selected = select_whole_words(allowed, words, 0.4, seeded())
    groups = [[1, 2], [3], [4, 5, 6], [8], [9, 10]]
    counts = Counter()
    for row in selected.tolist():
        taken = tuple(i for i, group in enumerate(groups) if row[group[0]])
        assert [p for i in taken for p in groups[i]] == [p for p, on in enumerate(row) if on]
        counts[taken] += 1
    assert len(counts) == 10
    assert {len(taken) for taken in counts} == {2}
    for count in counts.values():
        assert_binomial(count, len(selected), 0.1)


def test_whole_words_leave_out_pieces_that_may_not_be_masked():
    words = torch.tensor([[0, 0, 1, -1]])
    allowed = torch.tensor([[True, False, False, True]])
    assert select_whole_words(allowed, words, 1.0, seeded()).tolist() == [[True, *[False] * 3]]


# --- spans -------------------------------------------------------------------------------------


def runs(row: list[bool]) -> list[int]:
    """Lengths of the maximal runs of True."""
    text = "".join("x" if on else " " for on in row)
    return [len(run) for run in text.split()]


def span_distribution(free: frozenset[int], remaining: int) -> Counter:
    """Probability of each set of selected positions, by enumeration of every draw."""
    if not remaining:
        return Counter({frozenset(): 1.0})
    result = Counter()
    weights = [0.8**i for i in range(3)]
    for length, weight in zip((1, 2, 3), weights, strict=True):
        length = min(length, remaining)
        while not (spans := [s for s in all_spans(length) if s <= free]):
            length -= 1
        for span in spans:
            for rest, p in span_distribution(free - span, remaining - length).items():
                result[span | rest] += p * weight / sum(weights) / len(spans)
    return result


def all_spans(length: int) -> list[frozenset[int]]:
    return [frozenset(range(start, start + length)) for start in range(8)]


def test_spans_follow_the_stated_distribution():
    row = [True, True, True, True, False, True, True]
    allowed = torch.tensor([row] * 40_000)
    selected = select_spans(allowed, 0.5, seeded())  # three of six
    counts = Counter(frozenset(r.nonzero().flatten().tolist()) for r in selected)
    expected = span_distribution(frozenset(i for i, on in enumerate(row) if on), 3)
    assert sum(expected.values()) == pytest.approx(1.0)
    assert set(counts) == set(expected)
    for subset, p in expected.items():
        assert_binomial(counts[subset], len(allowed), p)


def test_spans_never_cross_a_special_token():
    allowed = torch.tensor([[True, True, False, True, True, False, True]] * 500)
    selected = select_spans(allowed, 0.6, seeded(), lengths=(3,), weights=(1.0,))
    assert not selected[:, [2, 5]].any()
    assert selected.sum(1).eq(3).all()


def test_a_span_of_fixed_length_is_one_run_when_there_is_room():
    allowed = torch.ones((500, 30), dtype=torch.bool)
    selected = select_spans(allowed, 0.1, seeded(), lengths=(3,), weights=(1.0,))
    assert all(runs(row) == [3] for row in selected.tolist())
    starts = Counter(row.index(True) for row in selected.tolist())
    assert set(starts) <= set(range(28))
    assert len(starts) == 28


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.1, float("nan")])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_probability_outside_the_unit_interval_is_refused(probability, selection):
    with pytest.raises(ValueError, match=r"probability must lie in \(0, 1\]"):
        mask_tokens(sentences(4), VOCABULARY, seeded(), probability, selection=selection)


@pytest.mark.parametrize(("mask", "random"), [(0.9, 0.2), (-0.1, 0.1), (0.5, -0.1)])
def test_shares_that_are_no_distribution_are_refused(mask, random):
    with pytest.raises(ValueError, match="sum to <= 1"):
        mask_tokens(sentences(4), VOCABULARY, seeded(), mask=mask, random=random)


def test_a_misspelt_selection_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="did you mean 'bernoulli'"):
        mask_tokens(sentences(4), VOCABULARY, seeded(), selection="bernouli")


@pytest.mark.parametrize("bad", [50, -1])
def test_an_id_outside_the_vocabulary_is_refused(bad):
    ids = sentences(4)
    ids[0, 3] = bad
    with pytest.raises(ValueError, match=r"vocabulary has ids 0\.\.49"):
        mask_tokens(ids, VOCABULARY, seeded())


def test_wrong_types_and_shapes_are_refused():
    ids = sentences(4)
    with pytest.raises(TypeError, match="int64 on the CPU"):
        mask_tokens(ids.int(), VOCABULARY, seeded())
    with pytest.raises(ValueError, match=r"\(batch, length\)"):
        mask_tokens(ids[0], VOCABULARY, seeded())
    with pytest.raises(ValueError, match="attention_mask has shape"):
        mask_tokens(ids, VOCABULARY, seeded(), attention_mask=ids[:, 1:])
    with pytest.raises(ValueError, match="word_ids has shape"):
        select_whole_words(ids > 4, ids[:, 1:], 0.15, seeded())
    with pytest.raises(ValueError, match="one weight"):
        select_spans(ids > 4, 0.15, seeded(), lengths=(1, 2), weights=(1.0,))


def test_a_custom_selection_is_checked():
    ids = sentences(4)
    with pytest.raises(ValueError, match="took 4 special or padded"):
        mask_tokens(ids, VOCABULARY, seeded(), selection=lambda m, p, g: ids == CLS)
    with pytest.raises(ValueError, match="must be bool"):
        mask_tokens(ids, VOCABULARY, seeded(), selection=lambda m, p, g: m.long())
    batch = mask_tokens(ids, VOCABULARY, seeded(), selection=lambda m, p, g: ids == 9)
    assert torch.equal(batch.selected, ids == 9)


def test_vocabulary_is_read_from_a_tokenizer_and_checked():
    class Tokenizer(SimpleNamespace):
        def __len__(self) -> int:
            return 50

    tokenizer = Tokenizer(mask_token_id=4, all_special_ids=[4, 0, 3, 2, 1])
    assert MaskingVocabulary.from_tokenizer(tokenizer) == VOCABULARY
    with pytest.raises(ValueError, match="no mask token"):
        MaskingVocabulary.from_tokenizer(Tokenizer(mask_token_id=None, all_special_ids=[0]))
    with pytest.raises(ValueError, match="lack the mask 4"):
        MaskingVocabulary(50, 4, (0, 1))
    with pytest.raises(ValueError, match=r"outside 0\.\.49"):
        MaskingVocabulary(50, 4, (4, 50))
    with pytest.raises(ValueError, match="no token left"):
        MaskingVocabulary(2, 0, (0, 1))


def test_span_weights_are_geometric():
    weights = torch.tensor(masking.SPAN_WEIGHTS)
    assert torch.allclose(weights[1:] / weights[:-1], torch.tensor(0.8))
