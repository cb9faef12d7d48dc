"""softmax and softmax_backward: R (5.9), (5.11), (5.24), (5.25), and their contract."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnbook import entropy, softmax, softmax_backward


def softmax_loop(u, allowed=None):
    """One row of R (5.11), in plain Python."""
    J = [j for j in range(len(u)) if allowed is None or allowed[j]]
    m = max(u[j] for j in J)
    z = math.fsum(math.exp(u[j] - m) for j in J)
    return [math.exp(u[j] - m) / z if j in J else 0.0 for j in range(len(u))]


def some_scores(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# The formula


def test_rows_of_r_5_16():
    c = 1 / math.sqrt(2)
    e = math.exp(c)
    U = [[c, 0, c], [0, c, c], [c, c, 2 * c]]
    A = softmax(U, np.tril(np.ones((3, 3), dtype=bool)))
    exact = [[1, 0, 0], [1 / (1 + e), e / (1 + e), 0], [1 / (2 + e), 1 / (2 + e), e / (2 + e)]]
    np.testing.assert_allclose(A, exact, rtol=1e-15)
    printed = [[1, 0, 0], [0.330238, 0.669762, 0], [0.248255, 0.248255, 0.503490]]
    np.testing.assert_allclose(A, printed, rtol=0, atol=0.5e-6)


def test_rows_of_r_5_23():
    A = softmax([[0, 0], [math.log(3), 0], [0, math.log(3)]])
    np.testing.assert_allclose(A, [[1 / 2, 1 / 2], [3 / 4, 1 / 4], [1 / 4, 3 / 4]], rtol=1e-15)


def test_equals_the_loop_with_leading_axes_and_mask():
    U = 3 * some_scores(2, 3, 4, 5)
    allowed = np.random.default_rng(1).random((3, 4, 5)) < 0.6
    allowed[..., 2] = True
    A = softmax(U, allowed)
    for b, h, i in np.ndindex(2, 3, 4):
        np.testing.assert_allclose(
            A[b, h, i], softmax_loop(U[b, h, i], allowed[h, i]), rtol=1e-14, atol=1e-300
        )


def test_softmax_runs_along_the_last_axis():
    A = softmax(some_scores(4, 3))
    np.testing.assert_allclose(A.sum(axis=-1), 1)
    assert abs(A.sum(axis=0) - 1).max() > 0.1


@pytest.mark.parametrize("allowed_shape", [(5,), (4, 5), (4, 1), (1, 5), (2, 1, 5), ()])
def test_allowed_broadcasts_to_the_scores(allowed_shape):
    U = some_scores(2, 4, 5)
    allowed = np.ones(allowed_shape, dtype=bool)
    if allowed_shape[-1:] == (5,):
        allowed[..., 1] = False
    np.testing.assert_array_equal(
        softmax(U, allowed), softmax(U, np.broadcast_to(allowed, U.shape).copy())
    )


def test_one_row_needs_no_axis_for_queries():
    np.testing.assert_allclose(softmax([1, 2, 4]), softmax_loop([1, 2, 4]), rtol=1e-15)
    assert softmax([1, 2, 4], query_valid=False).tolist() == [0, 0, 0]


# Properties

scores = arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=st.floats(-1e3, 1e3)
)


@settings(derandomize=True, database=None, deadline=None)
@given(scores, st.integers(0, 2**32))
def test_rows_are_weights(U, seed):
    allowed = np.random.default_rng(seed).random(U.shape) < 0.5
    allowed[:, 0] = True
    A = softmax(U, allowed)
    assert (A >= 0).all()
    assert (A[~allowed] == 0).all()
    np.testing.assert_allclose(A.sum(axis=-1), 1, rtol=1e-14)


@settings(derandomize=True, database=None, deadline=None)
@given(scores, st.floats(-1e3, 1e3))
def test_a_shift_of_a_row_changes_nothing(U, shift):
    np.testing.assert_allclose(softmax(U + shift), softmax(U), rtol=1e-9, atol=1e-300)


@settings(derandomize=True, database=None, deadline=None)
@given(scores, st.floats(-1e308, 1e308), st.integers(0, 2**32))
def test_a_forbidden_score_changes_no_bit(U, other, seed):
    allowed = np.random.default_rng(seed).random(U.shape) < 0.5
    allowed[:, 0] = True
    changed = np.where(allowed, U, other)
    assert softmax(changed, allowed).tobytes() == softmax(U, allowed).tobytes()


# Numbers at the edge


@pytest.mark.parametrize(
    ("u", "a"),
    [
        ([1e308, -1e308], [1, 0]),
        ([-1e308, -1e308], [0.5, 0.5]),
        ([1.7e308, 1.7e308, -1.7e308], [0.5, 0.5, 0]),
        ([1e300, 1e300, 1e300, 1e300], [0.25] * 4),
        ([0, -740], [1, math.exp(-740)]),  # a subnormal weight
        ([5e-324, -5e-324], [0.5, 0.5]),
        ([0, -1e5], [1, 0]),
        ([-1e308], [1]),
    ],
)
def test_large_and_small_scores_are_right_and_silent(u, a):
    with np.errstate(all="raise"):
        A = softmax([u])
        dU = softmax_backward([np.arange(len(a))], A)
    np.testing.assert_allclose(A, [a], rtol=1e-15)
    assert np.isfinite(dU).all()


def test_a_large_forbidden_score_is_not_the_maximum():
    with np.errstate(all="raise"):
        A = softmax([[1e308, 1.0, 2.0]], [[False, True, True]])
    np.testing.assert_allclose(A, [[0, 1 / (1 + math.e), math.e / (1 + math.e)]], rtol=1e-15)


# Rows that read nothing


def test_a_valid_row_without_keys_is_named():
    allowed = np.ones((2, 3, 4), dtype=bool)
    allowed[1, 2] = False
    with pytest.raises(ValueError, match=r"row \(1, 2\) is a valid query.*none of the 4 keys"):
        softmax(some_scores(2, 3, 4), allowed)
    with pytest.raises(ValueError, match=r"row 2 is a valid query.*query_valid = False"):
        softmax(some_scores(3, 4), allowed[1])
    with pytest.raises(ValueError, match=r"the only row is a valid query"):
        softmax([1, 2], False)


def test_an_invalid_row_is_zero_whatever_it_may_see():
    U = some_scores(2, 3, 4)
    valid = np.array([[True, False, True], [False, True, False]])
    allowed = np.ones((2, 3, 4), dtype=bool)
    allowed[0, 1] = False
    A = softmax(U, allowed, query_valid=valid)
    assert (A[~valid] == 0).all()
    np.testing.assert_array_equal(A[valid], softmax(U)[valid])


def test_empty_sizes():
    assert softmax(np.zeros((0, 5))).shape == (0, 5)
    assert softmax(np.zeros((0, 3, 5)), np.ones((3, 5), dtype=bool)).shape == (0, 3, 5)
    assert softmax(np.zeros((0, 0))).shape == (0, 0)
    assert softmax(np.zeros((3, 0)), query_valid=[False] * 3).shape == (3, 0)
    with pytest.raises(ValueError, match=r"row 1 is a valid query.*none of the 0 keys"):
        softmax(np.zeros((3, 0)), query_valid=[False, True, True])
    assert softmax_backward(np.zeros((0, 5)), np.zeros((0, 5))).shape == (0, 5)
    assert softmax_backward(np.zeros((3, 0)), np.zeros((3, 0))).shape == (3, 0)


# What comes in


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        (np.float16, np.float16),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.longdouble),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int8, np.float64),
        (bool, np.float64),
    ],
)
def test_the_dtype_follows_the_input(dtype, result):
    U = np.array([[1, 0, 1]], dtype=dtype)
    A = softmax(U)
    dU = softmax_backward(np.array([[1, 0, 0]], dtype=dtype), A.astype(result))
    assert A.dtype == dU.dtype == np.dtype(result)
    assert A.dtype.isnative
    assert dU.dtype.isnative
    eps = max(np.finfo(result).eps, np.finfo(float).eps)
    np.testing.assert_allclose(A.astype(float)[0], softmax_loop([1, 0, 1]), rtol=eps)


def test_float16_accumulates_in_float32():
    U = np.zeros((1, 4099), dtype=np.float16)  # a float16 sum of ones stops at 2048
    assert softmax(U)[0, 0] == np.float16(1 / 4099)


def test_inputs_are_left_alone():
    U, allowed, valid = some_scores(3, 4), np.tri(3, 4, dtype=bool), np.array([True, False, True])
    copies = U.copy(), allowed.copy(), valid.copy()
    for x in (U, allowed, valid):
        x.flags.writeable = False
    A = softmax(U, allowed, query_valid=valid)
    dU = softmax_backward(U, A)
    for x, copy in zip((U, allowed, valid), copies, strict=True):
        np.testing.assert_array_equal(x, copy)
        assert not np.shares_memory(A, x)
    assert A.flags.writeable
    assert dU.flags.writeable


def test_views_and_matrices_are_arrays():
    U = some_scores(5, 3)
    np.testing.assert_array_equal(softmax(U.T), softmax(U.T.copy()))
    np.testing.assert_array_equal(softmax(U[::-2, ::-1]), softmax(U[::-2, ::-1].copy()))
    assert type(softmax(np.array([[1.0, 2.0]]).view(np.matrix))) is np.ndarray


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_what_is_not_finite_is_named_and_points_to_allowed(value):
    U = some_scores(2, 3)
    U[1, 2] = value
    with pytest.raises(ValueError, match=rf"U\[1, 2\] is {value}.*allowed.*from_additive"):
        softmax(U)
    with pytest.raises(ValueError, match=r"U\[1, 2\]"):
        softmax(U, np.array([[True, True, False]]))


@pytest.mark.parametrize(
    ("U", "error", "message"),
    [
        ([[1j]], TypeError, "U must hold real numbers, got dtype complex128"),
        (["a"], TypeError, "U must hold real numbers, got dtype <U1"),
        ([[10**400]], TypeError, "U must hold real numbers, got dtype object"),
        ([[1, 2], [3]], ValueError, "U must be an array with rows of equal length"),
        (3.0, ValueError, r"U must be a row of scores or more, shape \(..., S\)"),
        (np.ma.masked_array([[1.0, 2.0]], [[0, 1]]), TypeError, r"U is a masked array.*allowed"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(U, error, message):
    with pytest.raises(error, match=message):
        softmax(U)


@pytest.mark.parametrize("allowed", [[[1, 0]], [[1.0, 0.0]], [[0.0, -np.inf]], [["y", "n"]]])
def test_allowed_that_is_not_boolean_is_refused(allowed):
    with pytest.raises(TypeError, match=r"allowed must be boolean, True = .*masks.from_additive"):
        softmax([[1.0, 2.0]], allowed)


def test_query_valid_that_is_not_boolean_is_refused():
    with pytest.raises(TypeError, match=r"query_valid must be boolean, True = this query is real"):
        softmax([[1.0, 2.0]], query_valid=[1])


def test_a_mask_with_a_mask_is_refused():
    with pytest.raises(TypeError, match="allowed is a masked array"):
        softmax([[1.0, 2.0]], np.ma.masked_array([[True, True]]))


@pytest.mark.parametrize("shape", [(3, 5), (2, 4), (2, 3, 4), (3,), (1, 1, 4)])
def test_allowed_must_fit_the_scores(shape):
    wanted = re.escape(f"allowed of shape {shape} must broadcast to (3, 4)")
    with pytest.raises(ValueError, match=wanted):
        softmax(some_scores(3, 4), np.ones(shape, dtype=bool))


def test_query_valid_must_fit_the_scores():
    with pytest.raises(ValueError, match=r"query_valid of shape \(4,\) must broadcast to \(3,\)"):
        softmax(some_scores(3, 4), query_valid=[True] * 4)


# The backward


def test_backward_is_the_jacobian_of_r_5_24():
    a = softmax([0.3, -1.2, 2.0, 0.1], [True, True, False, True])
    dA = some_scores(4, seed=2)
    J = np.diag(a) - np.outer(a, a)
    np.testing.assert_allclose(softmax_backward(dA, a), J @ dA, rtol=1e-12, atol=1e-16)


def test_backward_equals_central_differences():
    U, dA, direction = (some_scores(2, 3, 5, seed=s) for s in (1, 2, 3))
    allowed = np.array([True, False, True, True, True])
    h = 1e-6
    plus, minus = (softmax(U + s * h * direction, allowed) for s in (1, -1))
    expected = np.sum(dA * (plus - minus)) / (2 * h)
    dU = softmax_backward(dA, softmax(U, allowed))
    assert np.sum(dU * direction) == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(dU.sum(axis=-1), 0, atol=1e-15)


def test_a_key_without_weight_passes_exactly_plus_zero():
    A = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    with np.errstate(all="raise"):
        dU = softmax_backward([[1, 2, -1.7e308], [-1, 2, 3]], A)
    assert dU.tolist() == [[-0.25, 0.25, 0.0], [0.0, 0.0, 0.0]]
    assert not np.signbit(dU[:, 2]).any()
    assert not np.signbit(dU[1]).any()


@pytest.mark.parametrize("sign", [1, -1])
def test_backward_of_equal_largest_numbers_is_zero(sign):
    for s in range(1, 100):  # for some of them the mean rounds to infinity
        with np.errstate(all="raise"):
            dU = softmax_backward(np.full(s, sign * np.finfo(float).max), np.full(s, 1 / s))
        np.testing.assert_allclose(dU / np.finfo(float).max, 0, rtol=0, atol=1e-15)


def test_backward_of_the_largest_numbers_is_finite():
    big = np.finfo(float).max
    with np.errstate(all="raise"):
        dU = softmax_backward([[big, -big], [big, big]], [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(dU, [[0.375 * big, -0.375 * big], [0, 0]], rtol=1e-15)


@pytest.mark.parametrize(
    ("dA", "A", "message"),
    [
        ([[1.0, 2.0]], [[0.5, 0.6]], r"row 0 of A sums to 1.1.*before dropout"),
        ([[1.0, 2.0]] * 2, [[0.9, 0.2], [0.1, 0.8]], r"row 0 of A sums to 1.1.*wrong axis"),
        ([1.0, 2.0], [0.5, 0.6], r"the only row of A sums to 1.1"),
        ([[[1.0, 2.0]]], [[[0.5, 0.4]]], r"row \(0, 0\) of A sums to 0.9"),
        ([[1.0, 2.0]], [[1.5, -0.5]], r"A\[0, 1\] is -0.5, but weights are not negative"),
        (1.0, 1.0, r"A must be a row of weights or more, shape \(..., S\); got one number"),
        ([[1.0]], [[0.5, 0.5]], r"one shape \(..., S\); got dA \(1, 1\), A \(1, 2\)"),
        ([[1.0, np.nan]], [[0.5, 0.5]], r"dA\[0, 1\] is nan"),
        ([[1.0, 1.0]], [[0.5, np.nan]], r"A\[0, 1\] is nan"),
    ],
)
def test_backward_refuses_what_softmax_did_not_make(dA, A, message):
    with pytest.raises(ValueError, match=message):
        softmax_backward(dA, A)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_backward_accepts_the_rounding_of_its_dtype(dtype):
    A = softmax(some_scores(7, 1000).astype(dtype))
    softmax_backward(np.zeros_like(A), A)
    long = np.full((3, 4099), 1 / 4099, dtype=dtype, order="F")  # summed one by one along rows
    softmax_backward(np.zeros_like(long), long)
    with pytest.raises(ValueError, match="sums to"):
        softmax_backward(np.zeros_like(A), A * np.asarray(1.05, dtype))


# Entropy


def test_entropy_of_known_rows():
    A = [[1, 0, 0, 0], [0.25] * 4, [0.5, 0.25, 0.25, 0], [0] * 4]
    H = entropy(A)
    np.testing.assert_allclose(H, [0, math.log(4), 1.5 * math.log(2), 0], rtol=1e-15)
    assert not np.signbit(H).any()
    assert entropy(A[1]).shape == ()


@settings(derandomize=True, database=None, deadline=None)
@given(scores)
def test_entropy_is_the_sum_of_its_formula(U):
    A = softmax(U)
    with np.errstate(all="raise"):
        H = entropy(A)
    expected = [-math.fsum(a * math.log(a) for a in row if a > 0) for row in A.tolist()]
    np.testing.assert_allclose(H, expected, rtol=1e-9, atol=1e-12)
    assert (H >= 0).all()
    assert (math.log(U.shape[-1]) + 1e-12 >= H).all()


def test_entropy_keeps_the_dtype_and_refuses_what_are_no_weights():
    assert entropy(np.array([[0.5, 0.5]], dtype=np.float16)).dtype == np.float16
    assert entropy([[1, 0]]).dtype == np.float64
    with pytest.raises(ValueError, match=r"row 0 of A sums to 3"):
        entropy([[1.0, 2.0]])


def test_backward_takes_weights_as_a_table_prints_them():
    printed = [[0.330238, 0.669763, 0.0]]  # sums to 1.000001
    exact = softmax([[0.0, 1 / np.sqrt(2), 0.0]], [[True, True, False]])
    dA = [[1.0, 0.0, 5.0]]
    np.testing.assert_allclose(
        softmax_backward(dA, printed), softmax_backward(dA, exact), atol=2e-6
    )
    with pytest.raises(ValueError, match="sums to"):
        softmax_backward(dA, [[0.330, 0.669, 0.0]])
