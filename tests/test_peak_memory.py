"""Peak memory is counted, also of calls that fail, and of nothing else."""

import tracemalloc

import numpy as np
import pytest

from attnbook.memory import peak_bytes


def two_at_once(n):
    first = np.ones(n)
    second = first + 1
    return first.sum() + second.sum()


def one_after_the_other(n):
    np.ones(n).sum()
    return np.ones(n).sum()


def test_arrays_that_live_together_are_counted_together():
    n = 200_000
    np.ones(8).sum()
    assert peak_bytes(two_at_once, n) == pytest.approx(16 * n, rel=0.01)
    assert peak_bytes(one_after_the_other, n) == pytest.approx(8 * n, rel=0.01)


def test_arguments_are_passed_and_not_counted():
    big = np.ones(500_000)
    seen = []
    peak = peak_bytes(lambda x, *, k: seen.append((x.size, k)), big, k=3)
    assert seen == [(500_000, 3)]
    assert peak < 10_000


def test_tracing_ends_whatever_happens():
    with pytest.raises(ZeroDivisionError):
        peak_bytes(lambda: 1 / 0)
    assert not tracemalloc.is_tracing()


def test_what_cannot_be_measured_is_told():
    with pytest.raises(TypeError, match="got ndarray: was it called already"):
        peak_bytes(np.ones(3))
    with pytest.raises(RuntimeError, match="counting already"):
        peak_bytes(lambda: peak_bytes(np.ones, 3))
    assert not tracemalloc.is_tracing()
