"""attention and its backward: algorithm 5.1, R (5.13)-(5.17), (5.23), (5.26)-(5.33), contract.

T, S, d_k, d_v and the leading axes all differ wherever an example does not fix them.
"""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import Attention, Gradients, attention, attention_backward, masks, softmax_backward

T, S, D_K, D_V = 3, 5, 4, 2
MAX = np.finfo(float).max


def attention_loop(Q, K, V, allowed, query_valid, bias, scale, keep, keep_prob):
    """Algorithm 5.1 for one head, in plain Python, with dropout before the sum over the values."""
    O = [[0.0] * len(V[0]) for _ in Q]
    A = [[0.0] * len(K) for _ in Q]
    for i, q in enumerate(Q):
        if not query_valid[i]:
            continue
        J = [j for j in range(len(K)) if allowed[i][j]]
        u = {
            j: scale * math.fsum(a * b for a, b in zip(q, K[j], strict=True)) + bias[i][j]
            for j in J
        }
        m = max(u.values())
        e = {j: math.exp(u[j] - m) for j in J}
        z = math.fsum(e.values())
        for j in J:
            A[i][j] = e[j] / z
            for p in range(len(V[0])):
                O[i][p] += keep[i][j] / keep_prob * A[i][j] * V[j][p]
    return O, A


def head(*lead, seed=0):
    """Q, K, V of different sizes."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*lead, *tail)) for tail in ((T, D_K), (S, D_K), (S, D_V))]


def everything():
    """A case with leading axes that broadcast, mask, invalid rows, bias, scale, dropout."""
    rng = np.random.default_rng(7)
    Q, K, V = (
        rng.normal(size=(6, 1, T, D_K)),
        rng.normal(size=(7, S, D_K)),
        rng.normal(size=(1, 7, S, D_V)),
    )
    query_valid = rng.random((6, 1, T)) < 0.7
    allowed = rng.random((7, T, S)) < 0.6
    allowed[..., 1] = True
    options = {
        "allowed": allowed,
        "query_valid": query_valid,
        "bias": rng.normal(size=(6, 1, 1, S)),
        "scale": 0.7,
        "keep": rng.random((6, 7, T, S)) < 0.8,
        "keep_prob": 0.8,
    }
    assert not query_valid.all()
    assert query_valid.any()
    return Q, K, V, options


# The formula


def test_r_5_13_to_5_17():
    X = np.array([[1, 0], [0, 1], [1, 1]])
    O, A, U = attention(X, X, X @ [[1, 0], [0, 2]], masks.causal(3, 3))
    e = math.exp(1 / math.sqrt(2))
    exact = np.array(
        [[1, 0, 0], [1 / (1 + e), e / (1 + e), 0], [1 / (2 + e), 1 / (2 + e), e / (2 + e)]]
    )
    np.testing.assert_allclose(
        U, np.array([[1, 0, 1], [0, 1, 1], [1, 1, 2]]) / math.sqrt(2), rtol=1e-15
    )
    np.testing.assert_allclose(A, exact, rtol=1e-15)
    np.testing.assert_allclose(O, exact @ [[1, 0], [0, 2], [1, 2]], rtol=1e-15)
    printed = [[1, 0], [0.330238, 1.339523], [0.751745, 1.503490]]
    np.testing.assert_allclose(O, printed, rtol=0, atol=0.5e-6)


def test_r_5_23():
    log3 = math.log(3)
    Q, K, V = [[0, 0], [log3, 0], [0, log3]], [[1, 0], [0, 1]], [[2, 0], [0, 4]]
    O, A, _ = attention(Q, K, V, scale=1)
    np.testing.assert_allclose(A, [[1 / 2, 1 / 2], [3 / 4, 1 / 4], [1 / 4, 3 / 4]], rtol=1e-15)
    np.testing.assert_allclose(O, [[1, 2], [3 / 2, 1], [1 / 2, 3]], rtol=1e-15)
    padded = attention(Q, K, V, masks.padding([True, False]), scale=1)
    assert padded.O.tolist() == [[2, 0]] * 3


def test_equals_algorithm_5_1_with_everything_at_once():
    Q, K, V, options = everything()
    O, A, U = attention(Q, K, V, **options)
    assert (O.shape, A.shape, U.shape) == ((6, 7, T, D_V), (6, 7, T, S), (6, 7, T, S))
    whole = {"allowed": (T, S), "query_valid": (T,), "bias": (T, S), "keep": (T, S)}
    whole = {name: np.broadcast_to(options[name], (6, 7, *tail)) for name, tail in whole.items()}
    for b, h in np.ndindex(6, 7):
        one = {name: x[b, h].tolist() for name, x in whole.items()}
        args = Q[b, 0].tolist(), K[h].tolist(), V[0, h].tolist()
        O_loop, A_loop = attention_loop(*args, **one, scale=0.7, keep_prob=0.8)
        np.testing.assert_allclose(A[b, h], A_loop, rtol=1e-13)
        np.testing.assert_allclose(O[b, h], O_loop, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(
            U[b, h], 0.7 * Q[b, 0] @ K[h].T + whole["bias"][b, h], rtol=1e-12
        )


def test_without_options_the_scale_is_one_over_root_d_k():
    Q, K, V = head(2)
    O, A, U = attention(Q, K, V)
    np.testing.assert_allclose(U, Q @ K.mT / math.sqrt(D_K), rtol=1e-15)
    np.testing.assert_allclose(A, np.exp(U) / np.exp(U).sum(axis=-1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(O, A @ V, rtol=1e-15)


def test_results_are_named_tuples_in_the_order_of_the_contract():
    Q, K, V = head()
    result = attention(Q, K, V)
    assert isinstance(result, Attention)
    assert result._fields == ("O", "A", "U")
    gradients = attention_backward(result.O, Q, K, V, result.A)
    assert isinstance(gradients, Gradients)
    assert gradients._fields == ("dQ", "dK", "dV", "dA", "dU")


def test_scale_zero_is_the_mean_and_a_negative_scale_prefers_the_far():
    Q, K, V = head()
    np.testing.assert_allclose(
        attention(Q, K, V, scale=0).O, np.broadcast_to(V.mean(axis=0), (T, D_V))
    )
    np.testing.assert_array_equal(attention(Q, K, V, scale=-2).A, attention(-Q, K, V, scale=2).A)


def test_values_may_have_leading_axes_of_their_own():
    Q, K, _ = head()
    V = np.random.default_rng(1).normal(size=(6, S, D_V))
    O, A, _ = attention(Q, K, V)
    assert (O.shape, A.shape) == ((6, T, D_V), (T, S))
    np.testing.assert_allclose(O[4], attention(Q, K, V[4]).O, rtol=1e-14)


# Dropout


def test_dropout_acts_on_the_weights_and_leaves_a_alone():
    Q, K, V = head()
    keep = np.array([True, False, True, True, False])
    O, A, _ = attention(Q, K, V, keep=keep, keep_prob=0.6)
    np.testing.assert_array_equal(A, attention(Q, K, V).A)
    np.testing.assert_allclose(O, (A * keep / 0.6) @ V, rtol=1e-14)
    np.testing.assert_array_equal(
        attention(Q, K, V, keep=np.zeros((T, S), bool), keep_prob=0.5).O, 0
    )
    np.testing.assert_allclose(attention(Q, K, V, keep=keep).O, (A * keep) @ V, rtol=1e-14)


def test_several_dropout_masks_share_the_weights():
    Q, K, V = head()
    keep = np.random.default_rng(9).random((6, T, S)) < 0.5
    O, A, U = attention(Q, K, V, keep=keep, keep_prob=0.5)
    assert (O.shape, A.shape, U.shape) == ((6, T, D_V), (T, S), (T, S))
    gradients = attention_backward(O, Q, K, V, A, keep=keep, keep_prob=0.5)
    parts = [attention_backward(O[b], Q, K, V, A, keep=keep[b], keep_prob=0.5) for b in range(6)]
    for x, *rest in zip(gradients, *parts, strict=True):
        np.testing.assert_allclose(x, sum(rest), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("keep_prob", [0, 5e-324, -0.5, 1.5, math.nan, "0.5", None, [0.5], True])
def test_keep_prob_is_a_probability(keep_prob):
    Q, K, V = head()
    with pytest.raises(ValueError, match="keep_prob must"):
        attention(Q, K, V, keep=np.ones((T, S), bool), keep_prob=keep_prob)
    with pytest.raises(ValueError, match="keep_prob must"):
        attention_backward(V[:T], Q, K, V, np.full((T, S), 1 / S), keep_prob=keep_prob)


def test_keep_prob_needs_keep():
    Q, K, V = head()
    with pytest.raises(ValueError, match=r"keep_prob = 0\.5 needs keep, the boolean dropout mask"):
        attention(Q, K, V, keep_prob=0.5)
    with pytest.raises(ValueError, match=r"keep_prob = 0\.5 needs keep, the boolean dropout mask"):
        attention_backward(V[:T], Q, K, V, np.full((T, S), 1 / S), keep_prob=0.5)


# Rows that read nothing, keys that are not read


def test_a_valid_query_without_keys_is_named():
    Q, K, V = head(6, 7)
    allowed = np.ones((6, 7, T, S), bool)
    allowed[4, 5, 2] = False
    with pytest.raises(ValueError, match=r"row \(4, 5, 2\) is a valid query.*none of the 5 keys"):
        attention(Q, K, V, allowed)
    valid = allowed.any(axis=-1)
    assert (attention(Q, K, V, allowed, query_valid=valid).O[4, 5, 2] == 0).all()


@settings(derandomize=True, database=None, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0, -0.0, 1.0, -3e5, 1e308, -MAX, MAX, 5e-324]))
def test_a_forbidden_key_and_value_change_no_bit(seed, other):
    rng = np.random.default_rng(seed)
    Q, K, V = (np.round(x, 1) for x in head(seed=seed))
    query_valid = rng.random(T) < 0.8
    allowed = rng.random((T, S)) < 0.5
    allowed[:, 0] = True
    allowed[:, 3] = False  # no query reads key 3; key 4 is read by query 1 alone
    allowed[:, 4] = False
    allowed[1, 4] = True
    dO = np.round(rng.normal(size=(T, D_V)))
    K2, V2, K3, V3 = K.copy(), V.copy(), K.copy(), V.copy()
    K2[3], V2[3] = other, other
    before = attention(Q, K, V, allowed, query_valid=query_valid)
    gradients = attention_backward(dO, Q, K, V, before.A)
    with np.errstate(all="raise"):
        after = attention(Q, K2, V2, allowed, query_valid=query_valid)
        gradients2 = attention_backward(dO, Q, K2, V2, after.A)
    assert after.O.tobytes() == before.O.tobytes()
    assert after.A.tobytes() == before.A.tobytes()
    assert np.isfinite(after.U).all()
    assert np.delete(after.U, 3, axis=1).tobytes() == np.delete(before.U, 3, axis=1).tobytes()
    for name in ("dQ", "dK", "dV", "dU"):
        assert getattr(gradients2, name).tobytes() == getattr(gradients, name).tobytes(), name
    assert np.isfinite(gradients2.dA).all()

    V3[4], K3[4] = other, 0
    rows = [0, 2]
    after = attention(Q, K3, V3, allowed, query_valid=query_valid)
    assert after.O[rows].tobytes() == before.O[rows].tobytes()
    assert after.A[rows].tobytes() == before.A[rows].tobytes()


def test_an_invalid_query_may_hold_anything_finite():
    Q, K, V = head()
    K *= 1e300
    Q[1] = [MAX, -MAX, MAX, -MAX]
    valid = np.array([True, False, True])
    with np.errstate(all="raise"):
        O, A, U = attention(Q * [[1e-300], [1], [1e-300]], K, V, query_valid=valid)
    assert not O[1].any()
    assert not A[1].any()
    assert np.isfinite(U).all()
    assert abs(U[1]).max() == MAX
    dO = np.array([[1.0, 2.0], [MAX, -MAX], [-1.0, 0.5]])
    with np.errstate(all="raise"):
        gradients = attention_backward(dO, Q * [[1e-300], [1], [1e-300]], K, 2 * V, A)
    for name in ("dQ", "dA", "dU"):
        assert (getattr(gradients, name)[1] == 0).all(), name
    other = dO.copy()
    other[1] = 0
    again = attention_backward(other, Q * [[1e-300], [0], [1e-300]], K, 2 * V, A)
    for x, y in zip(gradients, again, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(("t", "s"), [(0, 5), (3, 5), (5, 3), (1, 1), (0, 0)])
@pytest.mark.parametrize("lead", [(), (0,), (2, 0)])
def test_empty_and_long_sizes(t, s, lead):
    Q, K, V = np.ones((*lead, t, 4)), np.ones((*lead, s, 4)), np.ones((*lead, s, 2))
    O, A, U = attention(Q, K, V)
    assert (O.shape, A.shape, U.shape) == ((*lead, t, 2), (*lead, t, s), (*lead, t, s))
    np.testing.assert_allclose(O, 1)
    gradients = attention_backward(O, Q, K, V, A)
    assert [x.shape for x in gradients] == [Q.shape, K.shape, V.shape, A.shape, A.shape]


def test_no_keys_at_all():
    Q, K, V = np.ones((T, D_K)), np.ones((0, D_K)), np.ones((0, D_V))
    with pytest.raises(
        ValueError, match="row 0 is a valid query, but allowed leaves it none of the 0"
    ):
        attention(Q, K, V)
    O, A, _ = attention(Q, K, V, query_valid=[False] * T)
    assert O.tolist() == [[0] * D_V] * T
    assert [x.shape for x in attention_backward(O, Q, K, V, A)] == [
        (T, D_K),
        (0, D_K),
        (0, D_V),
        (T, 0),
        (T, 0),
    ]


def test_width_zero():
    Q, K, V = head()
    assert attention(Q, K, V[:, :0]).O.shape == (T, 0)
    none = Q[:, :0], K[:, :0], V
    with pytest.raises(ValueError, match=r"d_k = 0 has no scale 1/sqrt\(d_k\): pass scale"):
        attention(*none)
    O, A, _ = attention(*none, scale=1)
    np.testing.assert_allclose(A, 1 / S)
    assert attention_backward(O, *none, A, scale=1).dQ.shape == (T, 0)


# Numbers at the edge


@pytest.mark.parametrize(
    ("Q", "K", "scale", "U"),
    [
        ([[1e300, 0]], [[1, 0], [0, 1]], 1, [[1e300, 0]]),
        ([[1e200, 0]], [[1e200, 0], [0, 1]], 1e-100, [[1e300, 0]]),  # QK^T alone is too large
        ([[1e308, 1e308, 1e308, 1e308]], [[1, 1, 1, 1], [0, 0, 0, 0]], 0.25, [[1e308, 0]]),
        ([[1e200, 1e200]], [[1e200, -1e200], [0, 0]], 1, [[0, 0]]),  # inf - inf on the way
        ([[1e200, 1e200, 3]], [[1e200, -1e200, 1], [1, 1, 1]], 1e-3, [[3e-3, 2e197]]),
        ([[MAX, MAX]], [[MAX, MAX], [0, 0]], 0, [[0, 0]]),
        ([[1e-200]], [[1e-200], [0]], 1, [[0, 0]]),  # underflow
        ([[MAX]], [[MAX], [0]], 1e-310, [[MAX * 1e-310 * MAX, 0]]),
    ],
)
def test_a_score_overflows_only_if_it_must(Q, K, scale, U):
    with np.errstate(all="raise"):
        result = attention(Q, K, [[1], [2]], scale=scale)
    np.testing.assert_allclose(result.U, U, rtol=1e-9)
    a = 1 / (1 + math.exp(min(U[0][1] - U[0][0], 700)))
    np.testing.assert_allclose(result.A, [[a, 1 - a]], atol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_overflow_that_is_read_names_row_and_key(sign):
    Q, K, V = head(6, 7)
    Q[4, 5, 1] = 1e200
    K[4, 5, 3] = sign * 1e200
    for errors in ("raise", "warn", "ignore"):
        with (
            np.errstate(all=errors),
            pytest.raises(FloatingPointError, match=r"row \(4, 5, 1\), key 3 overflows float64"),
        ):
            attention(Q, K, V)
    allowed = np.arange(S) != 3
    assert np.isfinite(attention(Q, K, V, allowed).U).all()
    assert attention(Q, K, V, allowed).U[4, 5, 1, 3] == sign * MAX
    valid = np.ones((6, 7, T), bool)
    valid[4, 5, 1] = False
    assert attention(Q, K, V, query_valid=valid).U[4, 5, 1, 3] == sign * MAX


@pytest.mark.parametrize(
    ("q", "k", "scale"),
    [
        (1e200, 1e200, 1.0),
        (-1e200, 1e200, 1.0),
        (1e200, -1e200, 1.0),
        (1e150, 1e150, 1e10),
        (1e150, 1e150, -1e10),
        (1.2e154, 1.2e154, 1.0),  # each product is 1.44e308, their sum is too large
    ],
)
def test_an_overflow_among_many_scores_is_found(q, k, scale):
    n = 20  # more scores than numbers in Q and K
    Q, K, V = np.zeros((n, 2)), np.zeros((n, 2)), np.ones((n, 1))
    Q[11], K[13] = q, k
    with pytest.raises(FloatingPointError, match="row 11, key 13 overflows float64"):
        attention(Q, K, V, scale=scale)
    U = attention(Q, K, V, scale=scale / 1e200).U
    np.testing.assert_allclose(U[11, 13] * 1e100, 2 * (q / 1e50 * (k / 1e50)) * scale, rtol=1e-13)
    assert np.count_nonzero(U) == 1


@pytest.mark.parametrize(
    ("dtype", "q", "scale", "u"),
    [
        (np.float64, 9e153, 0.1, 3.24e307),
        (np.float64, 1e200, 1e-200, 4e200),
        (np.float32, 1e30, 1e-30, 4e30),
    ],
)
def test_a_sum_among_many_scores_may_be_too_large_before_scaling(dtype, q, scale, u):
    Q, K, V = np.zeros((20, 4), dtype), np.zeros((30, 4), dtype), np.ones((30, 1), dtype)
    Q[11], K[13] = q, q
    with np.errstate(all="raise"):
        U = attention(Q, K, V, scale=scale).U
    assert U[11, 13] == pytest.approx(u, rel=1e-6)


def test_an_overflow_through_the_bias_names_row_and_key():
    with pytest.raises(FloatingPointError, match=r"row 0, key 1 overflows float64.*bias"):
        attention([[1e308]], [[0.0], [1.0]], [[1.0], [1.0]], bias=[[0.0, 1e308]])


def test_float32_overflows_at_its_own_limit():
    Q, K, V = (x.astype(np.float32) for x in head())
    Q[2], K[4] = 1e30, 1e30
    with pytest.raises(FloatingPointError, match="row 2, key 4 overflows float32"):
        attention(Q, K, V)
    assert np.isfinite(attention(Q, K, V, scale=1e-30).U).all()
    assert np.isfinite(attention(Q, K, V, scale=1e-60).U).all()


@pytest.mark.parametrize("value", [MAX, -MAX, 1e308])
@pytest.mark.parametrize("s", [3, 7, 1000])
def test_the_mean_of_the_largest_values_is_finite(value, s):
    rng = np.random.default_rng(s)
    Q, K = rng.normal(size=(40, 2)), rng.normal(size=(s, 2))
    with np.errstate(all="raise"):
        O = attention(Q, K, np.full((s, 1), value)).O
    np.testing.assert_allclose(O, value, rtol=1e-14)
    for dtype in (np.float16, np.float32):
        big = math.copysign(np.finfo(dtype).max, value)
        Q2, K2, V2 = Q.astype(dtype), K.astype(dtype), np.full((s, 1), big, dtype)
        O = attention(Q2, K2, V2).O
        np.testing.assert_allclose(O.astype(float), big, rtol=1e-5)


def test_dropout_may_leave_the_range_and_says_so():
    keep = np.array([[True, False], [True, True]])
    V = [[MAX], [MAX]]
    with pytest.raises(FloatingPointError, match=r"O\[1, 0\] overflows float64"):
        attention([[0], [0]], [[0], [0]], V, keep=keep, keep_prob=0.5)
    O = attention([[0], [0]], [[0], [0]], V, keep=keep[:1], keep_prob=0.5).O
    np.testing.assert_allclose(O, MAX)
    O = attention([[0]], [[0], [0]], [[MAX], [-MAX]], keep=keep[1:], keep_prob=1e-3).O
    assert O.tolist() == [[0]]
    O = attention([[0]], [[0], [0]], [[1e-300], [3e-300]], keep=keep[1:], keep_prob=1e-308).O
    np.testing.assert_allclose(O, 2e8)
    O = attention(*np.float32([[[0]], [[0]], [[1e-30]]]), keep=keep[1:, 1:], keep_prob=1e-60).O
    np.testing.assert_allclose(O, 1e30, rtol=1e-6)


# Dtypes


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        ((np.float16, np.float16, np.float16), np.float16),
        ((np.float32, np.float32, np.float32), np.float32),
        ((np.float16, np.float32, np.float16), np.float32),
        ((np.float32, np.float32, np.float64), np.float64),
        ((np.float32, np.int64, np.float32), np.float64),
        ((bool, np.int8, np.uint8), np.float64),
        ((">f8", "<f8", ">f8"), np.float64),
        ((">f2", ">f2", ">f2"), np.float16),
        ((np.longdouble, np.float64, np.float64), np.longdouble),
    ],
)
def test_the_dtype_follows_the_input(dtypes, result):
    Q, K, V = (np.round(4 * x).astype(float) for x in head())
    Q, K, V = (abs(x).astype(t) for x, t in zip((Q, K, V), dtypes, strict=True))
    out = attention(Q, K, V)
    gradients = attention_backward(out.O, Q, K, V, out.A)
    assert {x.dtype for x in (*out, *gradients)} == {np.dtype(result)}
    assert all(x.dtype.isnative for x in (*out, *gradients))
    exact = attention(*(x.astype(float) for x in (Q, K, V)))
    np.testing.assert_allclose(out.O.astype(float), exact.O, rtol=4 * np.finfo(result).eps + 1e-15)


def test_lists_are_float64_and_a_bias_counts():
    assert attention([[1]], [[2]], [[3]]).O.dtype == np.float64
    Q, K, V = (x.astype(np.float32) for x in head())
    assert attention(Q, K, V, bias=np.zeros((T, S), np.float32)).U.dtype == np.float32
    assert attention(Q, K, V, bias=np.zeros((T, S))).U.dtype == np.float64


def test_float16_accumulates_in_float32():
    n = 4099
    Q, K = np.ones((1, n), np.float16), np.ones((2, n), np.float16)
    assert attention(Q, K, [[1], [2]], scale=1 / n).U.tolist() == [[1.0, 1.0]]  # float16: 2048 / n
    Q, K = np.full((1, 4), 250, np.float16), np.full((2, 4), 250, np.float16)
    V = np.ones((2, 1), np.float16)
    assert attention(Q, K, V, scale=0.1).U[0, 0] == 25000  # QK^T = 250,000 is no float16
    with pytest.raises(FloatingPointError, match="row 0, key 0 overflows float16"):
        attention(Q, K, V)
    assert attention(Q, K, V, query_valid=[False]).U[0, 0] == np.finfo(np.float16).max
    zeros, V = np.zeros((1, 1), np.float16), np.ones((n, 1), np.float16)
    A = attention(zeros, np.zeros((n, 1), np.float16), V).A
    dO = np.full((1, 1), 100, np.float16)
    Q, K = np.zeros((1, 1), np.float16), np.zeros((n, 1), np.float16)
    assert attention_backward(dO, Q, K, V, A).dV[0, 0] == pytest.approx(100 / n, rel=2e-3)


# What comes in


def test_inputs_are_left_alone_and_results_are_new():
    Q, K, V, options = everything()
    O, A, _ = attention(Q, K, V, **options)
    inputs = [Q, K, V, O, A, *(x for x in options.values() if isinstance(x, np.ndarray))]
    copies = [x.copy() for x in inputs]
    for x in inputs:
        x.flags.writeable = False
    dropout = {name: options[name] for name in ("scale", "keep", "keep_prob")}
    results = (*attention(Q, K, V, **options), *attention_backward(O, Q, K, V, A, **dropout))
    for x, copy in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(x, copy)
        assert not any(np.shares_memory(x, result) for result in results)
    assert all(result.flags.writeable for result in results)
    one = attention([[1.0]], [[1.0]], [[1.0]], np.ones((2, 1, 1), bool))
    assert all(x.flags.writeable for x in one)


def test_views_of_any_layout():
    Q, K, V = head(6)
    views = Q[::-2, :, ::-1], np.asfortranarray(K)[::-2, :, ::-1], V.mT.copy().mT[::-2]
    plain = [x.copy() for x in views]
    out, expected = attention(*views), attention(*plain)
    for x, y in zip(out, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)
    gradients = attention_backward(out.O, *views, out.A)
    for x, y in zip(gradients, attention_backward(out.O, *plain, out.A), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["Q", "K", "V", "bias", "dO"])
def test_what_is_not_finite_is_named(name, value):
    Q, K, V = head()
    arrays = {"Q": Q, "K": K, "V": V, "bias": np.zeros((T, S)), "dO": np.zeros((T, D_V))}
    arrays[name][2, 1] = value
    advice = "from_additive" if name == "bias" else "put any finite number"
    message = rf"{name}\[2, 1\] is {value}, but every number must be finite.*{advice}"
    dO, bias = arrays.pop("dO"), arrays.pop("bias")
    if name != "dO":
        with pytest.raises(ValueError, match=message):
            attention(**arrays, bias=bias, allowed=np.arange(S) == 0)
    if name != "bias":
        with pytest.raises(ValueError, match=message):
            attention_backward(dO, **arrays, A=np.full((T, S), 1 / S))


@pytest.mark.parametrize("name", ["Q", "K", "V"])
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda x: x + 0j, TypeError, "must hold real numbers, got dtype complex128"),
        (lambda x: x.astype(object), TypeError, "must hold real numbers, got dtype object"),
        (lambda x: x.astype(str), TypeError, "must hold real numbers, got dtype <U32"),
        (lambda x: np.ma.masked_array(x, x > 0), TypeError, "is a masked array"),
        (lambda x: [[1.0], [1.0, 2.0]], ValueError, "must be an array with rows of equal length"),
        (lambda x: x[0], ValueError, "needs an axis for its rows: for one row write {}[None]"),
        (lambda x: 1.0, ValueError, "needs an axis for its rows"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(name, make, error, message):
    arrays = dict(zip("QKV", head(), strict=True))
    arrays[name] = make(arrays[name])
    message = re.escape(f"{name} {message.format(name)}")
    with pytest.raises(error, match=message):
        attention(**arrays)
    with pytest.raises(error, match=message):
        attention_backward(np.zeros((T, D_V)), **arrays, A=np.full((T, S), 1 / S))


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"Q": (T, 6)}, "the last axis of Q and K, d_k, must agree"),
        ({"V": (6, D_V)}, "K and V must have the same number of rows S"),
        (
            {"Q": (6, T, D_K), "K": (7, S, D_K)},
            "the leading axes (before T, S and the widths) must",
        ),
        (
            {"Q": (6, T, D_K), "V": (7, S, D_V)},
            "the leading axes (before T, S and the widths) must",
        ),
        ({"allowed": (6, S)}, "the last axes of allowed must be (3, 5) or 1: masks.padding makes"),
        ({"allowed": (T,)}, "the last axes of allowed must be (3, 5) or 1"),
        ({"allowed": (S, T)}, "the last axes of allowed must be (3, 5) or 1"),
        ({"bias": (T, 6)}, "the last axes of bias must be (3, 5) or 1"),
        ({"keep": (T, 6)}, "the last axes of keep must be (3, 5) or 1"),
        ({"query_valid": (S,)}, "the last axes of query_valid must be (3,) or 1"),
        (
            {"Q": (6, T, D_K), "query_valid": (7, T)},
            "the leading axes (before T, S and the widths)",
        ),
    ],
)
def test_wrong_shapes_print_the_rule_and_every_shape(changed, rule):
    shapes = {"Q": (T, D_K), "K": (S, D_K), "V": (S, D_V)} | changed
    boolean = ("allowed", "keep", "query_valid")
    arrays = {name: np.ones(s, bool if name in boolean else float) for name, s in shapes.items()}
    with pytest.raises(ValueError, match=re.escape(rule)) as caught:
        attention(**arrays)
    for name, shape in shapes.items():
        assert f"{name} {shape}" in str(caught.value)
    assert "expected Q (..., T, d_k), K (..., S, d_k), V (..., S, d_v)" in str(caught.value)


def test_one_query_may_not_become_many():
    Q, K, V = head()
    with pytest.raises(ValueError, match=re.escape("the last axes of allowed must be (1, 5) or 1")):
        attention(Q[:1], K, V, np.ones((T, S), bool))
    with pytest.raises(ValueError, match=re.escape("the last axes of allowed must be (3, 1) or 1")):
        attention(Q, K[:1], V[:1], np.ones((T, S), bool))


def test_leading_axes_of_the_mask_add_to_those_of_the_head():
    Q, K, V = head()
    allowed = masks.padding(np.arange(S) < np.array([[1], [4]]))
    O, A, U = attention(Q, K, V, allowed)
    assert (O.shape, A.shape, U.shape) == ((2, T, D_V), (2, T, S), (2, T, S))
    np.testing.assert_allclose(O[0], np.broadcast_to(V[0], (T, D_V)))


@pytest.mark.parametrize("name", ["allowed", "query_valid", "keep"])
@pytest.mark.parametrize("dtype", [float, int, "U1"])
def test_masks_that_are_not_boolean_are_refused(name, dtype):
    with pytest.raises(TypeError, match=f"{name} must be boolean, True = .*masks.from_additive"):
        attention(*head(), **{name: np.ones(T if name == "query_valid" else S).astype(dtype)})


@pytest.mark.parametrize(
    "scale", [math.nan, math.inf, "1", [1.0], np.ones(1), True, 1j, 10**400, {}, np.ones((T, 1))]
)
def test_scale_must_be_one_finite_number(scale):
    with pytest.raises(ValueError, match="scale must be one finite real number, got"):
        attention(*head(), scale=scale)
    Q, K, V = head()
    with pytest.raises(ValueError, match="scale must be one finite real number, got"):
        attention_backward(V[:T], Q, K, V, np.full((T, S), 1 / S), scale=scale)


@pytest.mark.parametrize("scale", [2, np.float32(2), np.int8(2), np.array(2.0)])
def test_scale_may_be_any_kind_of_number(scale):
    np.testing.assert_array_equal(
        attention(*head(), scale=scale).U, attention(*head(), scale=2.0).U
    )


# The backward


def test_r_5_32_and_5_33():
    X = np.array([[1.0, 0], [0, 1], [1, 1]])
    V = X @ [[1, 0], [0, 2]]
    A = attention(X, X, V, masks.causal(3, 3)).A
    gradients = attention_backward([[0, 0], [1, 0], [0, 0]], X, X, V, A)
    alpha = 1 / (1 + math.exp(1 / math.sqrt(2)))
    slope = alpha * (1 - alpha)
    np.testing.assert_allclose(gradients.dU, [[0, 0, 0], [slope, -slope, 0], [0, 0, 0]], rtol=1e-14)
    np.testing.assert_allclose(gradients.dQ[1], [slope / math.sqrt(2), -slope / math.sqrt(2)])
    np.testing.assert_allclose(gradients.dV, [[alpha, 0], [1 - alpha, 0], [0, 0]], rtol=1e-14)
    np.testing.assert_allclose(gradients.dU[1, :2], [0.221181, -0.221181], rtol=0, atol=0.5e-6)
    np.testing.assert_allclose(gradients.dQ[1], [0.156399, -0.156399], rtol=0, atol=0.5e-6)


def test_backward_is_the_formulas_of_the_book():
    Q, K, V = head()
    dO = np.random.default_rng(4).normal(size=(T, D_V))
    A = attention(Q, K, V).A
    dV, dA = A.T @ dO, dO @ V.T
    dU = A * (dA - (A * dA).sum(axis=1, keepdims=True))
    dQ, dK = dU @ K / math.sqrt(D_K), dU.T @ Q / math.sqrt(D_K)
    gradients = attention_backward(dO, Q, K, V, A)
    for got, expected in zip(gradients, (dQ, dK, dV, dA, dU), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("variable", ["Q", "K", "V", "bias"])
@pytest.mark.parametrize("dropped", [True, False])
def test_gradients_equal_central_differences(variable, dropped):
    Q, K, V, options = everything()
    if not dropped:
        options |= {"keep": None, "keep_prob": 1.0}
    variables = {"Q": Q, "K": K, "V": V, "bias": options.pop("bias")}
    O, A, _ = attention(**variables, **options)
    rng = np.random.default_rng(5)
    dO = rng.normal(size=O.shape)
    direction = rng.normal(size=variables[variable].shape)

    def loss(h):
        moved = variables | {variable: variables[variable] + h * direction}
        return np.sum(dO * attention(**moved, **options).O)

    h = 1e-5
    expected = (loss(h) - loss(-h)) / (2 * h)
    backward = {name: options[name] for name in ("scale", "keep", "keep_prob")}
    gradients = attention_backward(dO, Q, K, V, A, **backward)
    assert [x.shape for x in gradients] == [Q.shape, K.shape, V.shape, A.shape, A.shape]
    if variable == "bias":  # the score is moved by the bias: its gradient is dU
        got = np.sum(gradients.dU.sum(axis=(1, 2), keepdims=True) * direction)
    else:
        got = np.sum(getattr(gradients, "d" + variable) * direction)
    assert got == pytest.approx(expected, rel=1e-8)
    assert abs(expected) > 0.1


def test_da_is_the_gradient_by_the_weights_before_dropout():
    Q, K, V, options = everything()
    keep, keep_prob = options["keep"], options["keep_prob"]
    O, A, _ = attention(Q, K, V, **options)
    dO = np.random.default_rng(6).normal(size=O.shape)
    dA = attention_backward(dO, Q, K, V, A, scale=0.7, keep=keep, keep_prob=keep_prob).dA
    valid = np.broadcast_to(options["query_valid"], O.shape[:-1])
    expected = np.where(keep, dO @ V.mT / keep_prob, 0)
    np.testing.assert_allclose(dA[valid], expected[valid], rtol=1e-14)  # on forbidden keys too
    assert (dA[~valid] == 0).all()
    assert (dA[~keep] == 0).all()


def test_gradients_of_weights_that_the_values_share():
    Q, K, _ = head()
    rng = np.random.default_rng(8)
    V, dO = rng.normal(size=(6, S, D_V)), rng.normal(size=(6, T, D_V))
    A = attention(Q, K, V).A
    gradients = attention_backward(dO, Q, K, V, A)
    assert [x.shape for x in gradients] == [(T, D_K), (S, D_K), (6, S, D_V), (T, S), (T, S)]
    parts = [attention_backward(dO[b], Q, K, V[b], A) for b in range(6)]
    for name in ("dQ", "dK", "dA", "dU"):
        total = sum(getattr(part, name) for part in parts)
        np.testing.assert_allclose(getattr(gradients, name), total, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradients.dV, [part.dV for part in parts], rtol=1e-13)


def test_one_visible_key_gives_no_score_gradient_but_a_value_gradient():
    Q, K, V = head()
    O, A, _ = attention(Q, K, V, np.arange(S) == 2)
    gradients = attention_backward(np.ones((T, D_V)), Q, K, V, A)
    for name in ("dQ", "dK", "dU"):
        assert (getattr(gradients, name) == 0).all(), name
    np.testing.assert_allclose(gradients.dV[2], T)
    np.testing.assert_allclose(O, np.broadcast_to(V[2], O.shape))


def test_adding_a_row_to_all_keys_leaves_the_weights_alone():
    Q, K, V = head()
    A = attention(Q, K, V).A
    np.testing.assert_allclose(attention(Q, K + np.arange(1, 5), V).A, A, rtol=1e-12)
    dK = attention_backward(np.ones((T, D_V)), Q, K, V, A).dK
    np.testing.assert_allclose(dK.sum(axis=0), 0, atol=1e-14)


def test_where_the_weight_is_zero_an_overflow_is_a_zero():
    A = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    V = np.array([[1.0, 2.0], [3.0, 4.0], [MAX, MAX]])
    dO = np.array([[2.0, 2.0], [1.0, -1.0]])
    with np.errstate(all="raise"):
        gradients = attention_backward(dO, np.ones((2, 1)), np.ones((3, 1)), V, A)
    assert gradients.dA.tolist() == [[6, 14, 0], [-1, -1, 0]]  # MAX - MAX is no overflow, but 0
    assert gradients.dU.tolist() == [[-2, 2, 0], [0, 0, 0]]
    assert gradients.dV[2].tolist() == [0, 0]
    dO, A = np.float16([[400.0]]), np.float16([[0.0, 1.0]])
    V = np.float16([[400.0], [1.0]])  # 160,000 is no float16
    gradients = attention_backward(
        dO, np.ones((1, 4), np.float16), np.ones((2, 4), np.float16), V, A
    )
    assert gradients.dA.tolist() == [[0, 400]]


@pytest.mark.parametrize(
    ("name", "dO", "Q", "K", "V"),
    [
        ("dA[0, 1]", [[2.0]], [[1.0]], [[1.0], [1.0]], [[1.0], [1e308]]),
        ("dQ[0, 0]", [[1e10]], [[1.0]], [[1e308], [-1e308]], [[1.0], [3.0]]),
        ("dK[0, 0]", [[1e200]], [[1e200]], [[0.0], [0.0]], [[1.0], [3.0]]),
        ("dV[0, 0]", [[MAX], [MAX], [MAX]], [[0.0]] * 3, [[0.0], [0.0]], [[0.0], [0.0]]),
    ],
)
def test_a_gradient_that_overflows_is_named(name, dO, Q, K, V):
    A = np.full((len(Q), len(K)), 0.5)
    for errors in ("raise", "warn"):
        with (
            np.errstate(all=errors),
            pytest.raises(FloatingPointError, match=re.escape(f"{name} overflows float64")),
        ):
            attention_backward(dO, Q, K, V, A)


def test_a_gradient_overflows_only_if_it_must():
    A = [[0.25, 0.75]]
    with np.errstate(all="raise"):  # dA - mean is out of range, 2e308 and more
        gradients = attention_backward([[1.0]], [[1.0]], [[0.0], [1.0]], [[-MAX], [MAX]], A)
        again = attention_backward(
            [[1.0]], [[1.0]], [[1e200], [-1e200]], [[0.0], [1e200]], A, scale=1e-100
        )
    np.testing.assert_allclose(gradients.dU, [[-0.375 * MAX, 0.375 * MAX]], rtol=1e-15)
    np.testing.assert_allclose(again.dQ, [[-0.375e300]], rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": (T, 6)}, "A must have the shape of the scores, (..., 3, 5)"),
        ({"A": (S, T)}, "A must have the shape of the scores, (..., 3, 5)"),
        ({"A": (T, S), "Q": (6, T, D_K)}, "A must have the shape of the scores, (6, 3, 5)"),
        ({"A": (S,)}, "A must have the shape of the scores, (..., 3, 5)"),
        ({"dO": (T, 6)}, "dO must have the shape of the output, (3, 2)"),
        ({"dO": (1, D_V)}, "dO must have the shape of the output, (3, 2)"),
        ({"dO": (6, T, D_V)}, "dO must have the shape of the output, (3, 2)"),
        ({"V": (6, S, D_V)}, "dO must have the shape of the output, (6, 3, 2)"),
        ({"keep": (T, 6)}, "the last axes of keep must be (3, 5) or 1"),
        ({"K": (6, D_K)}, "K and V must have the same number of rows S"),
    ],
)
def test_backward_prints_rule_and_shapes(change, message):
    shapes = {"dO": (T, D_V), "Q": (T, D_K), "K": (S, D_K), "V": (S, D_V), "A": (T, S)} | change
    arrays = {name: np.ones(shape) for name, shape in shapes.items()}
    arrays["A"] /= shapes["A"][-1]
    if "keep" in arrays:
        arrays["keep"] = arrays["keep"] > 0
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        attention_backward(**arrays)
    for name, shape in shapes.items():
        assert f"{name} {shape}" in str(caught.value)


def test_backward_refuses_weights_after_dropout_and_other_axes():
    Q, K, V = head()
    A = attention(Q, K, V).A
    keep = np.arange(S) != 1
    with pytest.raises(ValueError, match=r"row 0 of A sums to .*weights before dropout"):
        attention_backward(V[:T], Q, K, V, A * keep / 0.8)
    columns = np.full((T, S), 1 / T)
    with pytest.raises(
        ValueError, match=r"row 0 of A sums to 1.66667.*columns sum to 1.*wrong axis"
    ):
        attention_backward(V[:T], Q, K, V, columns)
    with pytest.raises(ValueError, match=r"A\[0, 0\] is -0.2, but weights are not negative"):
        attention_backward(V[:T], Q, K, V, -np.full((T, S), 1 / S))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rounded_weights_are_weights(dtype):
    Q, K, V = (x.astype(dtype) for x in head(6))
    O, A, _ = attention(Q, K, V)
    for wide in (dtype, np.float64):
        gradients = attention_backward(O.astype(wide), Q, K, V, A)
        exact = attention_backward(*(x.astype(float) for x in (O, Q, K, V)), attention(*head(6)).A)
        for x, y in zip(gradients, exact, strict=True):
            np.testing.assert_allclose(x.astype(float), y, rtol=0, atol=20 * np.finfo(dtype).eps)


def test_backward_of_softmax_is_the_same_function():
    Q, K, V = head(6)
    O, A, _ = attention(Q, K, V)
    gradients = attention_backward(O, Q, K, V, A)
    np.testing.assert_array_equal(gradients.dU, softmax_backward(gradients.dA, A))


@pytest.mark.parametrize("name", ["Q", "K", "V", "A", "dO"])
def test_none_in_place_of_an_array_is_named(name):
    Q, K, V = head()
    arrays = {"Q": Q, "K": K, "V": V, "A": np.full((T, S), 1 / S), "dO": np.zeros((T, D_V))}
    arrays[name] = None
    message = f"{name} must be an array of numbers, got None"
    with pytest.raises(TypeError, match=message):
        attention_backward(**arrays)
    if name in "QKV":
        with pytest.raises(TypeError, match=message):
            attention(arrays["Q"], arrays["K"], arrays["V"])
