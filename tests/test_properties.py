"""What holds for any input: shapes, masks, leading axes, tiles and chunks drawn at random."""

import math
import re
from fractions import Fraction
from operator import mul
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import attention, attention_backward, masks
from attnbook.cache import KVCache
from attnbook.heads import grouped_attention, grouped_attention_backward
from attnbook.tiled import tiled_attention, tiled_attention_backward

MAX = np.finfo(float).max
FINITE = [0.0, -0.0, 1.0, -3e5, 1e308, -MAX, MAX, 5e-324]


def fixed(examples):
    """The same examples at every run."""
    return settings(max_examples=examples, derandomize=True, database=None, deadline=None)


close = np.testing.assert_allclose


class Head(NamedTuple):
    """Arguments of `attention`, and the shape of its scores."""

    Q: np.ndarray
    K: np.ndarray
    V: np.ndarray
    options: dict
    scores: tuple
    rng: np.random.Generator

    def __call__(self, **changed):
        arguments = {"Q": self.Q, "K": self.K, "V": self.V, **self.options, **changed}
        return attention(**arguments)

    def backward(self, dO, A, **changed):
        arguments = {"Q": self.Q, "K": self.K, "V": self.V, **self.options, **changed}
        for name in ("allowed", "query_valid", "bias"):
            arguments.pop(name, None)
        return attention_backward(dO, A=A, **arguments)

    def cotangent(self):
        lead = np.broadcast_shapes(self.scores[:-2], self.V.shape[:-2])
        if "keep" in self.options:
            lead = np.broadcast_shapes(lead, self.options["keep"].shape[:-2])
        return self.rng.normal(size=(*lead, self.scores[-2], self.V.shape[-1]))

    @property
    def reads(self):
        """Which keys each query reads, of the shape of the scores."""
        allowed = np.broadcast_to(self.options.get("allowed", True), self.scores)
        valid = np.broadcast_to(self.options.get("query_valid", True), self.scores[:-1])
        return allowed & valid[..., None]


@st.composite
def heads(draw, dropout=True):
    """One head with different T, S, d_k, d_v and leading axes, each array with axes of its own."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    T, S, d_k, d_v = draw(st.permutations([1, 2, 3, 4, 5, 6]))[:4]
    lead = draw(st.sampled_from([(), (7,), (8, 7)]))

    def shape(*tail, lead=lead):
        own = lead[draw(st.integers(0, len(lead))) :]
        return *(n if draw(st.booleans()) else 1 for n in own), *tail

    def any_or_one(*tail):
        return shape(*(n if draw(st.integers(0, 3)) else 1 for n in tail))

    Q, K, V = (rng.normal(size=shape(*tail)) for tail in ((T, d_k), (S, d_k), (S, d_v)))
    options, in_scores = {}, [Q.shape[:-2], K.shape[:-2]]
    if draw(st.booleans()):
        options["bias"] = rng.normal(size=any_or_one(T, S))
        in_scores.append(options["bias"].shape[:-2])
    if draw(st.booleans()):
        options["query_valid"] = rng.random(any_or_one(T)) < 0.7
        in_scores.append(options["query_valid"].shape[:-1])
    if draw(st.booleans()):
        allowed = rng.random(any_or_one(T, S)) < 0.5
        # A key for every row: one of its own, not the same for all.
        row = rng.integers(allowed.shape[-1], size=(*allowed.shape[:-1], 1))
        np.put_along_axis(allowed, row, True, axis=-1)
        options["allowed"] = allowed
        in_scores.append(allowed.shape[:-2])
    if draw(st.booleans()):
        options["scale"] = draw(st.sampled_from([0.0, -0.7, 3.0]))
    if dropout and draw(st.booleans()):
        options["keep_prob"] = 0.6
        options["keep"] = rng.random(any_or_one(T, S)) < 0.6
    return Head(Q, K, V, options, (*np.broadcast_shapes(*in_scores), T, S), rng)


# The contract of one head


@fixed(150)
@given(heads(), st.sampled_from([np.float64, np.float32, np.float16]))
def test_what_attention_returns(head, dtype):
    Q, K, V, *_ = arrays = [x.astype(dtype) for x in (head.Q, head.K, head.V)]
    options = dict(head.options)
    if "bias" in options:
        options["bias"] = options["bias"].astype(dtype)
    before = [x.copy() for x in (*arrays, *options.values()) if isinstance(x, np.ndarray)]
    with np.errstate(all="raise"):  # neither a warning nor an error for those who ask for errors
        O, A, U = attention(Q, K, V, **options)
    after = [x for x in (*arrays, *options.values()) if isinstance(x, np.ndarray)]
    for x, y in zip(before, after, strict=True):
        np.testing.assert_array_equal(x, y)

    eps = np.finfo(dtype).eps
    assert (O.dtype, A.dtype, U.dtype) == (dtype,) * 3
    assert A.shape == U.shape == head.scores
    assert O.shape == head.cotangent().shape

    wide = np.float64
    scale = options.get("scale", 1 / math.sqrt(Q.shape[-1]))
    scores = scale * np.einsum("...ip,...jp->...ij", Q.astype(wide), K.astype(wide))
    scores = scores + np.asarray(options.get("bias", 0), wide)
    close(U, np.broadcast_to(scores, U.shape), rtol=4 * eps, atol=30 * eps)

    J = head.reads
    assert (A[~J] == 0).all()
    assert (A >= 0).all()
    valid = J.any(axis=-1)
    close(A.sum(axis=-1, dtype=wide), valid, rtol=0, atol=8 * eps)
    e = np.where(J, np.exp(scores - scores.max(axis=-1, keepdims=True)), 0)
    total = e.sum(axis=-1, keepdims=True)
    close(A, np.divide(e, total, out=np.zeros_like(e), where=total > 0), rtol=0, atol=60 * eps)

    kept = np.where(options.get("keep", True), A, 0).astype(wide) / options.get("keep_prob", 1)
    close(O, np.einsum("...ij,...jp->...ip", kept, V.astype(wide)), rtol=0, atol=60 * eps)
    if "keep" not in options:  # a mean of values lies between the least and the largest it reads
        V = np.broadcast_to(V[..., None, :, :], (*O.shape[:-1], *V.shape[-2:])).astype(wide)
        seen = np.broadcast_to(J, (*O.shape[:-1], J.shape[-1]))[..., None]
        rows = np.broadcast_to(valid, O.shape[:-1])
        low = np.min(V, axis=-2, where=seen, initial=np.inf)[rows]
        high = np.max(V, axis=-2, where=seen, initial=-np.inf)[rows]
        slack = 8 * eps * abs(V).max()
        assert (low - slack <= O[rows]).all()
        assert (O[rows] <= high + slack).all()
    assert (O[~np.broadcast_to(valid, O.shape[:-1])] == 0).all()


@fixed(100)
@given(heads())
def test_gradients_of_a_random_loss_along_a_random_direction(head):
    dO, A = head.cotangent(), head().A
    with np.errstate(all="raise"):
        gradients = head.backward(dO, A)
    directions = {name: head.rng.normal(size=getattr(head, name).shape) for name in "QKV"}
    if "bias" in head.options:
        directions["bias"] = head.rng.normal(size=head.options["bias"].shape)

    def loss(h):
        moved = {
            name: h * x + (head.options[name] if name == "bias" else getattr(head, name))
            for name, x in directions.items()
        }
        return np.sum(dO * head(**moved).O)

    h = 2**-10  # the error of the five-point rule is of order h^4
    slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
    dU = np.broadcast_to(gradients.dU, head.scores)
    expected = sum(np.sum(getattr(gradients, "d" + name) * directions[name]) for name in "QKV")
    expected += np.sum(dU * directions.get("bias", 0))
    close(slope, expected, rtol=1e-6, atol=1e-7)
    for name in "QKV":
        assert getattr(gradients, "d" + name).shape == getattr(head, name).shape
    assert gradients.dA.shape == gradients.dU.shape == A.shape
    invalid = ~head.reads.any(axis=-1)
    assert (gradients.dA[invalid] == 0).all()
    assert (gradients.dU[~head.reads] == 0).all()


@fixed(100)
@given(heads())
def test_the_order_of_keys_says_nothing_and_rows_follow_their_queries(head):
    T, S = head.scores[-2:]
    dO = head.cotangent()
    O, A, U = head()
    dQ, dK, dV, dA, _ = head.backward(dO, A)

    def taken(x, order, axis, n):
        return x[(..., order, *[slice(None)] * (-1 - axis))] if x.shape[axis] == n else x

    keys = head.rng.permutation(S)
    options = {
        name: taken(head.options[name], keys, -1, S)
        for name in ("allowed", "bias", "keep")
        if name in head.options
    }
    moved = {"K": head.K[..., keys, :], "V": head.V[..., keys, :], **options}
    O2, A2, U2 = head(**moved)
    gradients = head.backward(dO, A2, **moved)
    tolerance = {"rtol": 1e-12, "atol": 1e-13}
    close(O2, O, **tolerance)
    close(A2, A[..., keys], **tolerance)
    close(U2, U[..., keys], **tolerance)
    for got, x in zip(
        gradients, (dQ, dK[..., keys, :], dV[..., keys, :], dA[..., keys]), strict=False
    ):
        close(got, x, **tolerance)

    rows = head.rng.permutation(T)
    options = {
        name: taken(head.options[name], rows, axis, T)
        for name, axis in (("allowed", -2), ("bias", -2), ("keep", -2), ("query_valid", -1))
        if name in head.options
    }
    moved = {"Q": head.Q[..., rows, :], **options}
    O2, A2, _ = head(**moved)
    gradients = head.backward(dO[..., rows, :], A2, **moved)
    close(O2, O[..., rows, :], **tolerance)
    close(A2, A[..., rows, :], **tolerance)
    for got, x in zip(gradients, (dQ[..., rows, :], dK, dV), strict=False):
        close(got, x, **tolerance)


@fixed(100)
@given(heads(), st.floats(-100, 100))
def test_a_number_added_to_all_scores_of_a_row_changes_nothing(head, shift):
    bias = head.options.get("bias", np.zeros((1, 1)))
    row = shift * head.rng.normal(size=(head.scores[-2], 1))
    close(head(bias=bias + row).A, head().A, rtol=1e-10, atol=1e-15)


def filled(x, where, values, rng):
    """x with numbers from values at the rows (..., S) that are named."""
    return np.where(where[..., None], rng.choice(values, size=x.shape), x)


@fixed(200)
@given(heads(dropout=False), st.integers(0, 5), st.booleans())
def test_what_a_forbidden_key_or_value_holds_changes_no_bit(head, j, rounded):
    S = head.scores[-1]
    if S == 1:
        return
    forbidden = np.arange(S) == j % S
    allowed = np.broadcast_to(head.options.get("allowed", True), head.scores) & ~forbidden
    allowed = allowed | ~allowed.any(axis=-1, keepdims=True) & ~forbidden
    Q, K, V = (
        np.round(x) if rounded else x for x in (head.Q, head.K, head.V)
    )  # zeros of both signs
    first = head(Q=Q, K=K, V=V, allowed=allowed)
    dO = head.cotangent()
    gradients = head.backward(dO, first.A, Q=Q, K=K, V=V)
    K2, V2 = (filled(x, forbidden, FINITE, head.rng) for x in (K, V))
    with np.errstate(all="raise"):
        second = head(Q=Q, K=K2, V=V2, allowed=allowed)
        gradients2 = head.backward(dO, second.A, Q=Q, K=K2, V=V2)
    assert second.O.tobytes() == first.O.tobytes()
    assert second.A.tobytes() == first.A.tobytes()
    assert np.isfinite(second.U).all()
    assert second.U[..., ~forbidden].tobytes() == first.U[..., ~forbidden].tobytes()
    for name in ("dQ", "dK", "dV", "dU"):
        assert getattr(gradients2, name).tobytes() == getattr(gradients, name).tobytes(), name
    assert np.isfinite(gradients2.dA).all()

    # Forbidden to one query alone: its own row stays as it is, whatever that does to the others.
    i = head.scores[-2] - 1
    K2, V2 = (filled(x, forbidden, [0.0, -2.0, 1e100], head.rng) for x in (K, V))
    allowed[..., :i, :] = True
    assert (
        head(Q=Q, K=K2, V=V2, allowed=allowed, scale=1e-100).O[..., i, :].tobytes()
        == head(Q=Q, K=K, V=V, allowed=allowed, scale=1e-100).O[..., i, :].tobytes()
    )


@fixed(100)
@given(heads())
def test_an_invalid_query_is_zero_and_pulls_at_nothing(head):
    T = head.scores[-2]
    valid = head.rng.random(T) < 0.5
    query_valid = np.broadcast_to(head.options.get("query_valid", True), head.scores[:-1]) & valid
    dO = head.cotangent()
    O, A, _ = head(query_valid=query_valid)
    gradients = head.backward(dO, A)
    Q2 = filled(head.Q, ~valid, FINITE, head.rng)
    dO2 = filled(dO, ~valid, FINITE, head.rng)
    # Its row of allowed may be empty.
    allowed = np.broadcast_to(head.options.get("allowed", True), head.scores) & valid[:, None]
    with np.errstate(all="raise"):
        O2, A2, _ = head(Q=Q2, allowed=allowed, query_valid=query_valid)
        gradients2 = head.backward(dO2, A2, Q=Q2)
    assert O2.tobytes() == O.tobytes()
    assert A2.tobytes() == A.tobytes()
    assert (O2[..., ~valid, :] == 0).all()
    assert (A2[..., ~valid, :] == 0).all()
    for name, got, x in zip(gradients._fields, gradients2, gradients, strict=True):
        np.testing.assert_array_equal(got, x, err_msg=name)
    for x in (gradients2.dQ, gradients2.dA, gradients2.dU):
        assert (x[..., ~valid, :] == 0).all()


@fixed(60)
@given(heads())
def test_a_valid_query_without_keys_is_named(head):
    if not head.reads.any(axis=-1).any():
        return
    *lead, i = index = [int(n) for n in head.rng.choice(np.argwhere(head.reads.any(axis=-1)))]
    allowed = np.broadcast_to(head.options.get("allowed", True), head.scores).copy()
    allowed[tuple(index)] = False
    name = f"({', '.join(map(str, index))})" if lead else str(i)
    with pytest.raises(ValueError, match=re.escape(f"row {name} is a valid query")):
        head(allowed=allowed)


@fixed(60)
@given(
    heads(), st.sampled_from(["Q", "K", "V", "bias"]), st.sampled_from([np.nan, np.inf, -np.inf])
)
def test_what_is_not_finite_is_named(head, name, value):
    x = getattr(head, name, head.options.get("bias", np.zeros(head.scores[-2:]))).copy()
    index = tuple(int(head.rng.integers(n)) for n in x.shape)
    x[index] = value
    with pytest.raises(ValueError, match="must be finite") as error:
        head(**{name: x})
    assert str(error.value).startswith(f"{name}{list(index)} is {value}")


@fixed(60)
@given(heads(), st.data())
def test_a_wrong_size_prints_all_shapes(head, data):
    arrays = {"Q": head.Q, "K": head.K, "V": head.V}
    arrays |= {k: x for k, x in head.options.items() if isinstance(x, np.ndarray)}
    # d_k of Q or K, S of K or V, T or S of what belongs to the scores
    axes = {"Q": [-1], "K": [-1, -2], "V": [-2], "query_valid": [-1]}
    name = data.draw(st.sampled_from(sorted(arrays)))
    axis = data.draw(st.sampled_from(axes.get(name, [-1, -2])))
    x = arrays[name]
    arrays[name] = np.repeat(np.take(x, [0], axis=axis), 9, axis=axis)
    with pytest.raises(ValueError, match="expected Q ") as error:
        head(**arrays)
    for other, y in arrays.items():
        assert f"{other} {y.shape}" in str(error.value)


# Scores of any size, against exact arithmetic


def exact_weights(Q, K, allowed, scale):
    """Scores as fractions and weights in float64; the weights are right to a few units of 1e-16."""
    q, k = ([[Fraction(x) for x in row] for row in X.tolist()] for X in (Q, K))
    U = [[Fraction(scale) * sum(map(mul, a, b)) for b in k] for a in q]
    A = np.zeros((len(q), len(k)))
    for i, row in enumerate(U):
        m = max(u for u, may in zip(row, allowed[i], strict=True) if may)
        for j, u in enumerate(row):
            A[i, j] = math.exp(max(u - m, -800)) if allowed[i, j] else 0
    return U, A / A.sum(axis=-1, keepdims=True)


@fixed(300)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(-500, 511),
    st.integers(-500, 511),
    st.integers(-1000, 1000),
)
def test_any_scale_is_right_or_names_the_score_that_overflows(seed, q, k, s):
    rng = np.random.default_rng(seed)
    T, S, d_k = 3, 5, 4
    # Small integers times powers of two: no rounding, so that the scores must be exact.
    Q, K = (rng.integers(-9, 10, size=(n, d_k)) * 2.0**e for n, e in ((T, q), (S, k)))
    V, scale = rng.normal(size=(S, 2)), 2.0**s
    allowed = rng.random((T, S)) < 0.6
    allowed[:, 1] = True
    U, A = exact_weights(Q, K, allowed, scale)
    over = [(i, j) for i in range(T) for j in range(S) if allowed[i, j] and abs(U[i][j]) > MAX]
    with np.errstate(all="raise"):
        if over:
            with pytest.raises(
                FloatingPointError, match="score of row {}, key {} ".format(*over[0])
            ):
                attention(Q, K, V, allowed, scale=scale)
            return
        got = attention(Q, K, V, allowed, scale=scale)
    close(got.A, A, rtol=1e-14, atol=0 if A.min() > 1e-300 else 1e-300)
    expected = [[float(max(min(u, Fraction(MAX)), -Fraction(MAX))) for u in row] for row in U]
    close(got.U, expected, rtol=0, atol=5e-324)
    close(got.O, A @ V, rtol=1e-13, atol=1e-14)


@fixed(100)
@given(st.integers(0, 2**32 - 1), st.integers(0, 1023), st.integers(0, 1000))
def test_the_backward_is_finite_or_raises(seed, e, f):
    rng = np.random.default_rng(seed)
    T, S = 3, 5
    Q, K, V, dO = (rng.normal(size=shape) for shape in ((T, 4), (S, 4), (S, 2), (T, 2)))
    A = attention(Q, K, V).A
    with np.errstate(all="raise"):
        try:
            gradients = attention_backward(dO * 2.0**e, Q, K, V * 2.0**f, A)
        except FloatingPointError:
            assert e + f > 1010  # every gradient is of the size of dO or of dO V
            return
    reference = attention_backward(dO, Q, K, V, A)
    for name, power in (("dV", e), ("dA", e + f), ("dU", e + f), ("dQ", e + f), ("dK", e + f)):
        got, x = getattr(gradients, name), getattr(reference, name)
        assert np.isfinite(got).all()
        close(np.ldexp(got, -power), x, rtol=1e-10, atol=1e-10)


# Many heads, tiles, the cache


@fixed(80)
@given(st.integers(0, 2**32 - 1), st.permutations([1, 2, 3, 4, 5]), st.booleans())
def test_shared_heads_are_repeated_heads(seed, sizes, dropped):
    rng = np.random.default_rng(seed)
    B, H_kv, r, T, S = sizes
    d_k, d_v = 6, 7
    H = H_kv * r
    Q, K, V = (
        rng.normal(size=shape) for shape in ((B, H, T, d_k), (B, H_kv, S, d_k), (1, H_kv, S, d_v))
    )
    allowed = rng.random((1, H, T, S)) < 0.6
    allowed[..., 0] = True
    options = {"allowed": allowed, "query_valid": rng.random((B, 1, T)) < 0.8}
    dropout = {"keep": rng.random((B, H, T, S)) < 0.7, "keep_prob": 0.7} if dropped else {}
    got = grouped_attention(Q, K, V, **options, **dropout)
    repeated = K.repeat(r, axis=1), V.repeat(r, axis=1)
    expected = attention(Q, *repeated, **options, **dropout)
    for x, y in zip(got, expected, strict=True):
        close(x, y, rtol=1e-13, atol=1e-14)
    dO = rng.normal(size=got.O.shape)
    gradients = grouped_attention_backward(dO, Q, K, V, got.A, **dropout)
    heads = attention_backward(dO, Q, *repeated, got.A, **dropout)
    summed = (x.reshape(x.shape[0], H_kv, r, S, -1).sum(axis=2) for x in (heads.dK, heads.dV))
    for x, y in zip(gradients, (heads.dQ, *summed, heads.dA, heads.dU), strict=True):
        close(x, y, rtol=1e-12, atol=1e-13)


@fixed(150)
@given(heads(dropout=False), st.integers(1, 7), st.integers(1, 7), st.integers(1, 7), st.booleans())
def test_tiles_of_any_size_are_the_whole(head, query_tile, key_tile, other_tile, asked):
    dO = head.cotangent()
    O, A, U = head()
    expected = head.backward(dO, A)
    options, arrays = dict(head.options), (head.Q, head.K, head.V)
    if asked and "allowed" in options:
        allowed = np.broadcast_to(options.pop("allowed"), head.scores)
        if attention(*arrays, **options).A.shape == head.scores:  # a function adds no axes
            options["allowed"] = lambda rows, keys: allowed[..., rows, keys]
        else:
            options["allowed"] = allowed
    with np.errstate(all="raise"):
        got = tiled_attention(*arrays, **options, query_tile=query_tile, key_tile=key_tile)
        gradients = tiled_attention_backward(
            dO, *arrays, *got, **options, query_tile=other_tile, key_tile=query_tile
        )
    tolerance = {"rtol": 1e-12, "atol": 1e-13}
    close(got.O, O, **tolerance)
    J = head.reads
    m = np.max(U, axis=-1, where=J, initial=-np.inf)
    m[~J.any(axis=-1)] = 0
    close(got.m, m, **tolerance)
    e = np.exp(U - m[..., None], where=J, out=np.zeros_like(U))
    close(got.z, e.sum(axis=-1), **tolerance)
    for name in ("dQ", "dK", "dV"):
        close(getattr(gradients, name), getattr(expected, name), **tolerance, err_msg=name)


@fixed(60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(-300, 300))
def test_tiles_survive_scores_of_any_size(seed, key_tile, e):
    rng = np.random.default_rng(seed)
    T, S = 3, 6
    Q, K, V = (rng.normal(size=shape) for shape in ((T, 4), (S, 4), (S, 2)))
    allowed = rng.random((T, S)) < 0.5
    allowed[:, 2] = True
    K[4], V[4] = MAX, -MAX
    allowed[:, 4] = False
    with np.errstate(all="raise"):
        dense = attention(Q, K, V, allowed, scale=10.0**e)
        got = tiled_attention(Q, K, V, allowed, scale=10.0**e, key_tile=key_tile, query_tile=2)
    close(got.O, dense.O, rtol=1e-12, atol=1e-13)


@fixed(80)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 4), max_size=6), st.integers(0, 5))
def test_a_cache_filled_in_any_chunks_is_the_full_pass(seed, chunks, spare):
    rng = np.random.default_rng(seed)
    B, H, H_kv, d_k, d_v, n = 2, 6, 3, 4, 5, sum(chunks)
    Q, K, V = (
        rng.normal(size=shape) for shape in ((B, H, n, d_k), (B, H_kv, n, d_k), (B, H_kv, n, d_v))
    )
    positions = np.cumsum(rng.integers(1, 4, size=n)) - 1  # from 0, 1 or 2 on, with gaps
    full = grouped_attention(Q, K, V, masks.causal(positions, positions))
    cache = KVCache(capacity=n + spare + 1)
    start = 0
    for size in chunks:
        rows = slice(start, start + size)
        cache.append(K[..., rows, :], V[..., rows, :], positions[rows])
        start += size
        assert len(cache) == start
        allowed = masks.causal(positions[rows], cache.positions)
        got = grouped_attention(Q[..., rows, :], cache.K, cache.V, allowed)
        close(got.O, full.O[..., rows, :], rtol=1e-12, atol=1e-13)
        close(got.A, full.A[..., rows, :start], rtol=1e-12, atol=1e-13)
    if chunks:
        np.testing.assert_array_equal(cache.K, K)
        np.testing.assert_array_equal(cache.V, V)
        np.testing.assert_array_equal(cache.positions, positions)
