"""What the labs of chapter 05 draw is what the plain formulas give."""

import itertools
import math
import warnings

import numpy as np
import pytest

from attnbook.labs import softmax_and_the_weighted_read as labs
from attnbook.labs.softmax_and_the_weighted_read import (
    MOST,
    OFFSETS,
    barycentric,
    compute_dropout,
    compute_read,
    compute_stability,
)

VALUES = [(1, 0), (0, 2), (1, 2)]  # [R] (5.14)


def plain_weights(u):
    e = [math.exp(x - max(u)) for x in u]
    return [x / sum(e) for x in e]


def plain_read(a):
    return [sum(a_j * v[p] for a_j, v in zip(a, VALUES, strict=True)) for p in (0, 1)]


# ---- scores, weights, a point ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("e", "tau"), [((1, 1, 2), 1.0), ((-6, 6, 6), 0.5), ((3, -2, 0), 10.0), ((6, -6, 5), 0.05)]
)
def test_read(e, tau):
    u = [x / math.sqrt(2) for x in e]
    a = plain_weights([x / tau for x in u])
    arrays = compute_read(*e, tau)
    np.testing.assert_allclose(arrays.u, u)
    np.testing.assert_allclose(arrays.a, a, atol=1e-12)
    np.testing.assert_allclose(arrays.o, plain_read(a), atol=1e-12)
    for t, o in zip(labs.ALL_TEMPERATURES, arrays.path, strict=True):
        expected = plain_read(plain_weights([x / t for x in u]))
        np.testing.assert_allclose(o, expected, atol=1e-12)


def test_the_first_picture_is_the_third_row_of_r():
    start = labs.weighted_read().state
    assert compute_read(**start).a == pytest.approx([0.248255, 0.248255, 0.503490], abs=5e-7)
    assert compute_read(**start).o == pytest.approx([0.751745, 1.503490], abs=5e-7)


def test_a_common_shift_moves_scores_alone():
    one, two = compute_read(-1, 2, 0, 0.5), compute_read(2, 5, 3, 0.5)
    assert not np.allclose(one.u, two.u)
    np.testing.assert_allclose(one.a, two.a)
    np.testing.assert_allclose(one.path, two.path, atol=1e-12)


def test_the_path_of_temperatures_runs_from_the_winner_to_the_mean():
    path = compute_read(1, 0, -1, 1.0).path
    np.testing.assert_allclose(path[0], VALUES[0], atol=1e-9)
    np.testing.assert_allclose(path[-1], np.mean(VALUES, axis=0), atol=0.01)
    tie = compute_read(3, 3, 1, 1.0).path
    np.testing.assert_allclose(tie[0], np.mean(VALUES[:2], axis=0), atol=1e-9)


# ---- naive and stable --------------------------------------------------------------------------


def plain_naive(u, dtype):
    """Softmax by (5.1), each number rounded to the type, by Python's own arithmetic; None = nan."""
    largest = float(np.finfo(dtype).max)

    def rounded(x):
        return math.inf if x > largest else float(np.dtype(dtype).type(x))

    def exp(x):
        return rounded(math.exp(x)) if x < 709.78 else math.inf

    e = [exp(x) for x in u]
    z = rounded(sum(e)) if max(e) < math.inf else math.inf
    return [None if (z == 0 or x == z == math.inf) else 0.0 if z == math.inf else x / z for x in e]


@pytest.mark.parametrize("dtype", labs.DTYPES)
@pytest.mark.parametrize("g", [0, 1, 5, 1000])
def test_naive_and_stable_at_every_offset(g, dtype):
    eps = float(np.finfo(dtype).eps)
    for c in OFFSETS:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            arrays = compute_stability(c, g, dtype)
        stored = [float(np.dtype(dtype).type(c + k * g)) for k in range(3)]
        assert arrays.u.dtype == dtype
        np.testing.assert_array_equal(arrays.u, np.array(stored, dtype))
        assert arrays.rounded == (stored != [c, c + g, c + 2 * g])
        np.testing.assert_allclose(arrays.a, plain_weights(stored), atol=8 * eps)
        np.testing.assert_allclose(
            arrays.e, [math.exp(x - stored[2]) for x in stored], atol=8 * eps
        )
        expected = plain_naive(stored, dtype)
        assert arrays.undefined.tolist() == [x is None for x in expected], (c, g)
        expected = [0.0 if x is None else x for x in expected]
        brink = stored[0] < math.log(np.finfo(dtype).tiny)  # where exp has few digits
        np.testing.assert_allclose(arrays.a_naive, expected, atol=0.2 if brink else 8 * eps)
        close = np.allclose(arrays.a_naive, plain_weights(stored), rtol=0, atol=8 * eps)
        assert arrays.right == (close and not arrays.undefined.any())
        assert arrays.stable_right


@pytest.mark.parametrize(
    ("c", "g", "dtype", "verdict"),
    [
        (0, 1, "float64", labs.RIGHT),
        (1000, 1, "float64", labs.UNDEFINED),
        (-1000, 1, "float64", labs.UNDEFINED),
        (709, 0, "float64", labs.WRONG),
        (88, 1, "float32", labs.UNDEFINED),
        (-104, 1, "float32", labs.WRONG),
        (-746, 1, "float64", labs.WRONG),
        (9, 1, "float16", labs.WRONG),
        (-17, 1, "float16", labs.WRONG),
    ],
)
def test_what_the_lab_says_about_the_naive_side(c, g, dtype, verdict):
    arrays = compute_stability(c, g, dtype)
    assert f"which is {verdict}" in labs.caption_stability(arrays)
    drawn = [item.text for item in labs.draw_stability(arrays).items if hasattr(item, "text")]
    assert labs.VERDICT.format(verdict=verdict) in drawn
    assert drawn.count("nan") == arrays.undefined.sum()


def test_the_caller_keeps_numpys_warnings():
    with np.errstate(over="raise"):
        compute_stability(1000, 1, "float64")
        with pytest.raises(FloatingPointError):
            np.exp(np.array(1000.0))


# ---- dropout -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rho", "n", "seed"), [(0.8, 1, 0), (0.5, 200, 3), (0.9, 7, 1)])
def test_dropout(rho, n, seed):
    draws = np.random.default_rng(seed).random((MOST, 3))[:n]
    a = plain_weights([x / math.sqrt(2) for x in (1, 1, 2)])
    A = [[a[j] / rho if row[j] < rho else 0.0 for j in range(3)] for row in draws]
    arrays = compute_dropout(rho, n, seed)
    np.testing.assert_allclose(arrays.a, a)
    np.testing.assert_allclose(arrays.A, A)
    np.testing.assert_allclose(arrays.O, [plain_read(row) for row in A])
    means = [sum(map(sum, A[:k])) / k for k in range(1, n + 1)]
    np.testing.assert_allclose(arrays.sums, means)
    assert arrays.sd == pytest.approx(math.sqrt((1 - rho) / rho * sum(x * x for x in a)))


def test_without_dropout_nothing_changes():
    arrays = compute_dropout(1.0, 5, 0)
    np.testing.assert_allclose(arrays.A, np.tile(arrays.a, (5, 1)))
    assert arrays.sd == 0
    assert arrays.inside


def inside(o):
    """Whether a point lies in the triangle, by the three sides: x <= 1, y <= 2, 2x + y >= 2."""
    x, y = o
    return x <= 1 + 1e-9 and y <= 2 + 1e-9 and 2 * x + y >= 2 - 1e-9


def test_inside_and_outside():
    for seed in range(5):
        for rho, n in itertools.product((0.5, 0.6, 0.7, 0.8, 0.9, 1.0), (1, 2, 5, 20)):
            arrays = compute_dropout(rho, n, seed)
            assert arrays.inside == inside(arrays.O[-1])
            said = labs.caption_dropout(arrays)
            assert (labs.INSIDE[True] in said) == arrays.inside


@pytest.mark.parametrize(("rho", "how_many"), [(0.5, 0), (0.8, 4)])
def test_how_many_of_the_eight_outputs_lie_inside_as_the_chapter_says(rho, how_many):
    a = np.array(plain_weights([x / math.sqrt(2) for x in (1, 1, 2)]))
    masks = np.array(list(itertools.product((0, 1), repeat=3)))
    outputs = [plain_read(a * m / rho) for m in masks]
    assert len({tuple(np.round(o, 9)) for o in outputs}) == 8
    assert sum(map(inside, outputs)) == how_many
    assert not np.isclose((masks * a / rho).sum(axis=1), 1).any()
    drawn = compute_dropout(rho, MOST, 0)
    assert len(np.unique(drawn.O.round(9), axis=0)) == 8
    for o in outputs:
        assert (barycentric(np.array(o)).min() > -1e-9) == inside(o)


def test_the_dashes_are_no_bound_as_the_chapter_says():
    n = np.arange(1, MOST + 1)
    outside = [
        (abs(arrays.sums - 1) > arrays.sd / np.sqrt(n)).mean()
        for rho, seed in itertools.product((0.5, 0.6, 0.7, 0.8, 0.9), range(5))
        for arrays in [compute_dropout(rho, MOST, seed)]
    ]
    assert np.mean(np.array(outside) > 0.05) > 0.7


def test_the_mean_settles_as_statement_5_9_says():
    for rho in (0.5, 0.8):
        arrays = compute_dropout(rho, MOST, 0)
        assert abs(arrays.sums[-1] - 1) < 4 * arrays.sd / math.sqrt(MOST)
