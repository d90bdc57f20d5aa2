import pytest

from unmasked.timing import interleaved, seconds


def test_ratios_are_of_interleaved_pairs_after_a_warm_up():
    now, order = [0.0], []
    slow_times, fast_times = iter([9.0, 4.0, 9.0, 8.0]), iter([9.0, 2.0, 3.0, 2.0])

    def work(name, times):
        def call():
            order.append(name)
            now[0] += next(times)

        return call

    ratio = interleaved(work("s", slow_times), work("f", fast_times), 3, clock=lambda: now[0])
    assert order == ["s", "f"] * 4
    assert (ratio.low, ratio.median, ratio.high) == (2.0, 3.0, 4.0)
    assert (ratio.slow_seconds, ratio.fast_seconds, ratio.repeats) == (8.0, 2.0, 3)


def test_no_repeat_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        interleaved(lambda: None, lambda: None, 0)


def test_seconds_is_the_median_without_the_first_call():
    now, times = [0.0], iter([90.0, 1.0, 7.0, 2.0])

    def work():
        now[0] += next(times)

    assert seconds(work, 3, clock=lambda: now[0]) == 2.0
    with pytest.raises(ValueError, match="at least 1"):
        seconds(work, 0)
