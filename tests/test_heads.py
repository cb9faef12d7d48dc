"""Many heads: R (5.18)-(5.22), (5.29)-(5.31), (5.36), exercise 5.8, and the contract.

Every size differs from every other: B, T, S, d_q, d_m, d_k, d_v, d, H_q, H_kv and r.
"""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from attnbook import (
    MultiHead,
    MultiHeadGradients,
    attention,
    attention_backward,
    examples,
    grouped_attention,
    grouped_attention_backward,
    masks,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    pack_projections,
    split_heads,
    unpack_projections,
)

B, T, S = 4, 5, 7
D_Q, D_M, D_K, D_V, D = 8, 9, 10, 11, 12
H_Q, H_KV = 6, 3
MAX = np.finfo(float).max
INPUTS = ("X_q", "X_m", "W_Q", "W_K", "W_V", "W_O")


def layer(lead_q=(B,), lead_m=(B,), H_kv=H_KV, seed=0):
    """Inputs and projections, by name."""
    rng = np.random.default_rng(seed)
    shapes = {
        "X_q": (*lead_q, T, D_Q),
        "X_m": (*lead_m, S, D_M),
        "W_Q": (D_Q, H_Q * D_K),
        "W_K": (D_M, H_kv * D_K),
        "W_V": (D_M, H_kv * D_V),
        "W_O": (H_Q * D_V, D),
    }
    return {name: rng.normal(size=shape) / math.sqrt(shape[-2]) for name, shape in shapes.items()}


def everything(seed=1):
    """Mask per head, invalid rows, bias, scale and dropout."""
    rng = np.random.default_rng(seed)
    allowed = rng.random((B, H_Q, T, S)) < 0.6
    allowed[..., 2] = True
    query_valid = rng.random((B, T)) < 0.8
    assert not query_valid.all()
    return {
        "allowed": allowed,
        "query_valid": query_valid,
        "bias": rng.normal(size=(H_Q, T, S))[None],
        "scale": 0.5,
        "keep": rng.random((B, H_Q, T, S)) < 0.7,
        "keep_prob": 0.7,
    }


def dropout(options):
    return {name: options[name] for name in ("scale", "keep", "keep_prob") if name in options}


def multi_head_loop(X_q, X_m, W_Q, W_K, W_V, W_O, allowed, valid, bias, scale, keep, keep_prob):
    """One sample in plain Python: R (5.36) and (5.21), entry by entry."""
    r = H_Q // H_KV

    def entry(x, W, column):
        return math.fsum(a * W[p][column] for p, a in enumerate(x))

    Y = [[0.0] * D for _ in X_q]
    for i, x in enumerate(X_q):
        for h in range(H_Q):
            if not valid[i]:
                continue
            g = h // r
            q = [entry(x, W_Q, h * D_K + p) for p in range(D_K)]
            scores = {}
            for j in range(S):
                if allowed[h][i][j]:
                    k = [entry(X_m[j], W_K, g * D_K + p) for p in range(D_K)]
                    scores[j] = scale * math.fsum(map(math.prod, zip(q, k, strict=True)))
                    scores[j] += bias[h][i][j]
            m = max(scores.values())
            z = math.fsum(math.exp(u - m) for u in scores.values())
            for j, u in scores.items():
                a = math.exp(u - m) / z * keep[h][i][j] / keep_prob
                for p in range(D_V):
                    o = a * entry(X_m[j], W_V, g * D_V + p)
                    for c in range(D):
                        Y[i][c] += o * W_O[h * D_V + p][c]
    return Y


# Split and merge


def test_split_puts_every_number_where_it_belongs():
    X = np.arange(B * T * H_Q * D_K).reshape(B, T, H_Q * D_K)
    heads = split_heads(X, H_Q)
    assert heads.shape == (B, H_Q, T, D_K)
    for b, h, t, p in np.ndindex(heads.shape):
        assert heads[b, h, t, p] == X[b, t, h * D_K + p]
    np.testing.assert_array_equal(merge_heads(heads), X)
    np.testing.assert_array_equal(merge_heads(split_heads(X[0], H_Q)), X[0])
    np.testing.assert_array_equal(split_heads(X, 1)[:, 0], X)


def test_the_wrong_reshape_has_the_right_shape_and_mixes_positions():
    X = np.arange(B * T * H_Q * D_K).reshape(B, T, H_Q * D_K)
    wrong = X.reshape(B, H_Q, T, D_K)
    assert wrong.shape == split_heads(X, H_Q).shape
    assert (wrong != split_heads(X, H_Q)).mean() > 0.9
    heads = split_heads(X, H_Q)
    assert (heads.reshape(B, T, H_Q * D_K) != merge_heads(heads)).mean() > 0.9
    positions = np.arange(T)[:, None] + np.zeros((T, H_Q * D_K), int)
    assert (split_heads(positions, H_Q) == np.arange(T)[:, None]).all()
    assert (positions.reshape(H_Q, T, D_K) != np.arange(T)[:, None]).any()


@pytest.mark.parametrize("x", [Fraction(1, 3), np.float16(2), True, 1])
def test_split_and_merge_keep_the_dtype_and_make_new_arrays(x):
    X = np.full((T, 4), x)
    heads = split_heads(X, 2)
    assert heads.dtype == merge_heads(heads).dtype == X.dtype
    assert not np.shares_memory(heads, X)
    assert not np.shares_memory(split_heads(X, 1), X)
    assert not np.shares_memory(merge_heads(heads[:1]), heads)
    assert heads.flags.c_contiguous


def test_empty_sizes_split():
    assert split_heads(np.ones((0, 6)), 3).shape == (3, 0, 2)
    assert split_heads(np.ones((5, 0)), 3).shape == (3, 5, 0)
    assert merge_heads(np.ones((3, 0, 2))).shape == (0, 6)
    assert merge_heads(np.ones((4, 3, 5, 0))).shape == (4, 5, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_heads(np.ones((5, 8)), 3), "X has 8 features, which 3 heads cannot share"),
        (lambda: split_heads(np.ones(8), 2), "X must have shape (..., T, H d), got (8,)"),
        (lambda: split_heads(np.ones((5, 8)), 0), "H must be one integer, 1 or more; got 0"),
        (lambda: split_heads(np.ones((5, 8)), -2), "H must be one integer, 1 or more; got -2"),
        (lambda: split_heads(np.ones((5, 8)), 2.0), "H must be one integer, 1 or more; got 2.0"),
        (lambda: split_heads(np.ones((5, 8)), True), "H must be one integer, 1 or more; got True"),
        (lambda: merge_heads(np.ones((5, 8))), "X must have shape (..., H, T, d), got (5, 8)"),
    ],
)
def test_what_cannot_be_split_or_merged(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# Projections


def test_a_big_projection_is_the_projections_of_the_heads():
    x = layer()
    per_head = split_heads(x["W_Q"], H_Q)
    assert per_head.shape == (H_Q, D_Q, D_K)
    for h in range(H_Q):
        np.testing.assert_array_equal(per_head[h], x["W_Q"][:, h * D_K : (h + 1) * D_K])
    Q = split_heads(x["X_q"] @ x["W_Q"], H_Q)
    np.testing.assert_allclose(Q, x["X_q"][:, None] @ per_head, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(merge_heads(per_head), x["W_Q"])
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    np.testing.assert_allclose(forward.Q, Q, rtol=1e-12, atol=1e-14)


def test_packed_is_separate():
    rng = np.random.default_rng(3)
    X, W_Q, W_K, W_V = (rng.normal(size=(n, m)) for n, m in ((T, D), (D, 6), (D, 4), (D, 2)))
    W_QKV = pack_projections(W_Q, W_K, W_V)
    assert W_QKV.shape == (D, 12)
    assert W_QKV.size == W_Q.size + W_K.size + W_V.size
    for part, W in zip(unpack_projections(W_QKV, (6, 4, 2)), (W_Q, W_K, W_V), strict=True):
        np.testing.assert_array_equal(part, W)
        assert not np.shares_memory(part, W_QKV)
    for part, W in zip(unpack_projections(X @ W_QKV, (6, 4, 2)), (W_Q, W_K, W_V), strict=True):
        np.testing.assert_allclose(part, X @ W, rtol=1e-12, atol=1e-14)
    batch = unpack_projections(np.ones((B, T, 5)), (5, 0))
    assert [x.shape for x in batch] == [(B, T, 5), (B, T, 0)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack_projections(np.ones((3, 2)), np.ones((2, 3))), "got (3, 2), (2, 3)"),
        (lambda: pack_projections(np.ones(3)), "expected matrices (d, width)"),
        (pack_projections, "expected matrices (d, width) with the same d"),
        (
            lambda: unpack_projections(np.ones((3, 6)), (2, 3)),
            "the widths [2, 3] add up to 5, but must add up to the last axis of W, whose shape is "
            "(3, 6)",
        ),
        (lambda: unpack_projections(np.ones((3, 6)), (7, -1)), "a width must be one integer, 0"),
        (lambda: unpack_projections(np.ones((3, 6)), (3.0, 3)), "a width must be one integer, 0"),
        (lambda: unpack_projections(1.0, ()), "the widths [] add up to 0"),
    ],
)
def test_what_cannot_be_packed(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# Forward


def test_equals_the_loop_with_everything_at_once():
    x, options = layer(), everything()
    Y = multi_head_attention(**x, **options, H_q=H_Q, H_kv=H_KV).Y
    bias = np.broadcast_to(options["bias"], (B, H_Q, T, S))
    for b in range(B):
        expected = multi_head_loop(
            x["X_q"][b].tolist(),
            x["X_m"][b].tolist(),
            *(x[name].tolist() for name in INPUTS[2:]),
            options["allowed"][b].tolist(),
            options["query_valid"][b].tolist(),
            bias[b].tolist(),
            0.5,
            options["keep"][b].tolist(),
            0.7,
        )
        np.testing.assert_allclose(Y[b], expected, rtol=1e-11, atol=1e-13)
    assert (Y[~options["query_valid"]] == 0).all()


def test_shapes_and_names():
    forward = multi_head_attention(**layer(), H_q=H_Q, H_kv=H_KV)
    assert isinstance(forward, MultiHead)
    assert {name: x.shape for name, x in forward._asdict().items()} == {
        "Y": (B, T, D),
        "C": (B, T, H_Q * D_V),
        "O": (B, H_Q, T, D_V),
        "A": (B, H_Q, T, S),
        "U": (B, H_Q, T, S),
        "Q": (B, H_Q, T, D_K),
        "K": (B, H_KV, S, D_K),
        "V": (B, H_KV, S, D_V),
    }


def test_one_head_is_attention():
    x = layer()
    W_Q, W_K, W_V, W_O = (x[n] for n in ("W_Q", "W_K", "W_V", "W_O"))
    x |= {"W_Q": W_Q[:, :D_K], "W_K": W_K[:, :D_K], "W_V": W_V[:, :D_V], "W_O": W_O[:D_V]}
    forward = multi_head_attention(**x, H_q=1)
    one = attention(x["X_q"] @ x["W_Q"], x["X_m"] @ x["W_K"], x["X_m"] @ x["W_V"])
    np.testing.assert_allclose(forward.C, one.O, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(forward.A[:, 0], one.A, rtol=1e-12)
    np.testing.assert_allclose(forward.Y, one.O @ x["W_O"], rtol=1e-12, atol=1e-14)


def test_the_reconstructed_two_heads_of_e():
    heads = examples.E_RECONSTRUCTION_HEADS
    X = np.array(heads.of.X, float)
    W_Q, W_K, W_V = (merge_heads(np.array(W)) for W in (heads.W_Q, heads.W_K, heads.W_V))
    forward = multi_head_attention(X, X, W_Q, W_K, W_V, heads.W_O, H_q=2)
    assert np.rint(forward.U * math.sqrt(2)).tolist() == [[[1, 0], [0, 1]], [[2, 8], [3, 10]]]
    expected = [[1.683928, 2.301906, 0.344404, 1.641429], [1.337274, 2.655691, 0.676797, 1.316168]]
    np.testing.assert_allclose(forward.Y, expected, rtol=0, atol=0.5e-6)


def test_exercise_5_8():
    example = examples.R_EXERCISE_5_8
    Q = np.array(example.queries, float)[:, None, None]
    K, V = (np.array(x, float)[None, :, None] for x in (example.keys, example.values))
    O = grouped_attention(Q, K, V).O
    np.testing.assert_allclose(O[:, 0, 0], [1 / 2, math.e / (1 + math.e)], rtol=1e-15)


def test_concatenation_and_projection_is_a_sum_over_heads():
    x = layer()
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    blocks = x["W_O"].reshape(H_Q, D_V, D)
    total = sum(forward.O[:, h] @ blocks[h] for h in range(H_Q))
    np.testing.assert_allclose(forward.Y, total, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(forward.C, np.concatenate(list(forward.O.swapaxes(0, 1)), -1))
    averaged = forward.A.mean(axis=1, keepdims=True) @ np.repeat(forward.V, H_Q // H_KV, axis=1)
    assert abs(merge_heads(averaged) @ x["W_O"] - forward.Y).max() > 0.1


@pytest.mark.parametrize("H_kv", [1, 2, 3, 6])
def test_shared_heads_are_repeated_heads(H_kv):
    x = layer(H_kv=H_kv)
    options = everything()
    r = H_Q // H_kv
    repeated = x | {
        W: merge_heads(np.repeat(split_heads(x[W], H_kv), r, axis=0)) for W in ("W_K", "W_V")
    }
    shared = multi_head_attention(**x, **options, H_q=H_Q, H_kv=H_kv)
    every = multi_head_attention(**repeated, **options, H_q=H_Q)
    for name in ("Y", "C", "O", "A", "U", "Q"):
        np.testing.assert_allclose(
            getattr(shared, name), getattr(every, name), rtol=1e-11, atol=1e-13
        )
    assert shared.K.shape[1] == shared.V.shape[1] == H_kv
    for h in range(H_Q):  # R (5.36): g(h) = floor(h / r), counted from 0
        np.testing.assert_allclose(every.K[:, h], shared.K[:, h // r], rtol=1e-12, atol=1e-14)

    dY = np.random.default_rng(2).normal(size=(B, T, D))
    one = multi_head_attention_backward(dY, **x, forward=shared, **dropout(options))
    many = multi_head_attention_backward(dY, **repeated, forward=every, **dropout(options))
    for name in ("dX_q", "dX_m", "dW_Q", "dW_O", "dQ", "dA", "dU"):
        np.testing.assert_allclose(getattr(one, name), getattr(many, name), rtol=1e-9, atol=1e-12)
    for name in ("dW_K", "dW_V"):  # each key/value head collects over its query heads
        members = split_heads(getattr(many, name), H_Q)
        summed = merge_heads(members.reshape(H_kv, r, *members.shape[1:]).sum(axis=1))
        np.testing.assert_allclose(getattr(one, name), summed, rtol=1e-9, atol=1e-12)


def test_interleaved_sharing_is_another_function():
    x = layer()
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    g = np.arange(H_Q) % H_KV
    wrong = attention(forward.Q, forward.K[:, g], forward.V[:, g]).O
    assert abs(wrong - forward.O).max() > 0.1


def test_heads_that_share_keys_and_values_differ():
    forward = multi_head_attention(**layer(H_kv=1), H_q=H_Q, H_kv=1)
    for h in range(1, H_Q):
        assert abs(forward.O[:, h] - forward.O[:, 0]).max() > 0.1


def test_h_kv_is_h_q_unless_given():
    x = layer(H_kv=H_Q)
    given, default = (multi_head_attention(**x, H_q=H_Q, **o) for o in ({"H_kv": H_Q}, {}))
    np.testing.assert_array_equal(given.Y, default.Y)


# Masks with and without an axis of heads


def test_a_mask_is_for_all_heads_or_has_an_axis_for_them():
    x = layer()
    allowed = masks.causal(np.arange(2, 2 + T), S)
    Y = multi_head_attention(**x, allowed=allowed, H_q=H_Q, H_kv=H_KV).Y
    for same in (allowed[None], allowed[None, None], np.broadcast_to(allowed, (1, H_Q, T, S))):
        again = multi_head_attention(**x, allowed=same, H_q=H_Q, H_kv=H_KV).Y
        np.testing.assert_array_equal(again, Y)
    key_valid = np.arange(S) < np.array([[2], [3], [7], [1]])
    padded = masks.padding(key_valid)[:, None]
    Y = multi_head_attention(**x, allowed=padded, H_q=H_Q, H_kv=H_KV).Y
    for b in range(B):
        cut = x | {"X_q": x["X_q"][b], "X_m": x["X_m"][b, key_valid[b]]}
        alone = multi_head_attention(**cut, H_q=H_Q, H_kv=H_KV).Y
        np.testing.assert_allclose(Y[b], alone, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["allowed", "bias", "keep"])
def test_a_mask_of_a_batch_without_heads_is_refused(name):
    x = layer()
    square = layer(lead_q=(H_Q,), lead_m=(H_Q,))  # here it would pass, as a mask of the heads
    for lead, arrays in ((B, x), (H_Q, square)):
        mask = np.zeros((lead, 1, S)) if name == "bias" else np.ones((lead, 1, S), bool)
        with pytest.raises(ValueError, match=rf"{name} of shape .* lacks an axis.*\[\.\.\., None"):
            multi_head_attention(**arrays, **{name: mask}, H_q=H_Q, H_kv=H_KV)
        multi_head_attention(**arrays, **{name: mask[..., None, :, :]}, H_q=H_Q, H_kv=H_KV)


def test_query_valid_of_grouped_attention_has_an_axis_of_heads():
    forward = multi_head_attention(**layer(), H_q=H_Q, H_kv=H_KV)
    Q, K, V = forward.Q, forward.K, forward.V
    valid = np.random.default_rng(1).random((B, T)) < 0.5
    with pytest.raises(ValueError, match=r"query_valid of shape \(4, 5\) lacks an axis.*None, :\]"):
        grouped_attention(Q, K, V, query_valid=valid)
    O = grouped_attention(Q, K, V, query_valid=valid[:, None]).O
    np.testing.assert_array_equal((O != 0).any(axis=(1, 3)), valid)
    through = multi_head_attention(**layer(), query_valid=valid, H_q=H_Q, H_kv=H_KV)
    np.testing.assert_array_equal(through.O, O)
    row = multi_head_attention(**layer(), query_valid=valid[0], H_q=H_Q, H_kv=H_KV).Y
    np.testing.assert_array_equal((row != 0).any(axis=(0, 2)), valid[0])
    none = multi_head_attention(**layer(), query_valid=np.False_, H_q=H_Q, H_kv=H_KV).Y
    assert not none.any()


def test_leading_axes_broadcast():
    x = layer(lead_q=(), lead_m=(B,))
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    assert forward.Y.shape == (B, T, D)
    one = multi_head_attention(**(x | {"X_m": x["X_m"][2]}), H_q=H_Q, H_kv=H_KV)
    np.testing.assert_allclose(forward.Y[2], one.Y, rtol=1e-11, atol=1e-13)
    x = layer(lead_q=(2, 1), lead_m=(B,))
    assert multi_head_attention(**x, H_q=H_Q, H_kv=H_KV).A.shape == (2, B, H_Q, T, S)


# Order


def test_the_order_of_keys_is_nothing_but_that_of_queries_is_that_of_rows():
    x, options = layer(), everything()
    rng = np.random.default_rng(5)
    keys, queries = rng.permutation(S), rng.permutation(T)
    Y = multi_head_attention(**x, **options, H_q=H_Q, H_kv=H_KV).Y
    moved = options | {n: options[n][..., keys] for n in ("allowed", "bias", "keep")}
    other = x | {"X_m": x["X_m"][:, keys]}
    again = multi_head_attention(**other, **moved, H_q=H_Q, H_kv=H_KV).Y
    np.testing.assert_allclose(again, Y, rtol=1e-11, atol=1e-13)
    moved = options | {n: options[n][..., queries, :] for n in ("allowed", "bias", "keep")}
    moved["query_valid"] = options["query_valid"][:, queries]
    other = x | {"X_q": x["X_q"][:, queries]}
    again = multi_head_attention(**other, **moved, H_q=H_Q, H_kv=H_KV).Y
    np.testing.assert_allclose(again, Y[:, queries], rtol=1e-11, atol=1e-13)


def test_self_attention_is_equivariant_and_a_fixed_causal_mask_breaks_it():
    x = layer()
    rng = np.random.default_rng(6)
    X = rng.normal(size=(S, D))
    W = {n: rng.normal(size=(D, x[n].shape[1])) / 3 for n in ("W_Q", "W_K", "W_V")}
    P = rng.permutation(S)
    causal = masks.causal(S, S)

    def F(X, M=None):
        return multi_head_attention(X, X, **W, W_O=x["W_O"], allowed=M, H_q=H_Q, H_kv=H_KV).Y

    np.testing.assert_allclose(F(X[P]), F(X)[P], rtol=1e-10, atol=1e-12)  # R (5.40)
    moved = causal[np.ix_(P, P)]
    np.testing.assert_allclose(F(X[P], moved), F(X, causal)[P], rtol=1e-10, atol=1e-12)  # (5.41)
    assert abs(F(X[P], causal) - F(X, causal)[P]).max() > 0.1


def test_heads_have_no_order_as_long_as_groups_stay_together():
    x = layer()
    Y = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV).Y
    groups = np.array([2, 0, 1])
    heads = np.array([5, 4, 0, 1, 3, 2])  # the members of groups 2, 0, 1

    def columns(W, H, order):
        return merge_heads(split_heads(W, H)[order])

    W_O = x["W_O"].reshape(H_Q, D_V, D)
    moved = x | {
        "W_Q": columns(x["W_Q"], H_Q, heads),
        "W_K": columns(x["W_K"], H_KV, groups),
        "W_V": columns(x["W_V"], H_KV, groups),
        "W_O": W_O[heads].reshape(H_Q * D_V, D),
    }
    again = multi_head_attention(**moved, H_q=H_Q, H_kv=H_KV).Y
    np.testing.assert_allclose(again, Y, rtol=1e-11, atol=1e-13)
    stay = moved | {"W_K": x["W_K"], "W_V": x["W_V"]}
    assert abs(multi_head_attention(**stay, H_q=H_Q, H_kv=H_KV).Y - Y).max() > 0.1


# The backward


@pytest.mark.parametrize("variable", [*INPUTS, "bias"])
@pytest.mark.parametrize("case", ["everything", "plain", "shared queries", "shared memory"])
def test_gradients_equal_central_differences(variable, case):
    lead_q, lead_m = {"shared queries": ((), (B,)), "shared memory": ((B,), ())}.get(
        case, ((B,), (B,))
    )
    x = layer(lead_q, lead_m)
    options = everything() if case != "plain" else {"bias": np.zeros((T, S))}
    rng = np.random.default_rng(5)
    dY = rng.normal(size=(B, T, D))
    moving = options["bias"] if variable == "bias" else x[variable]
    direction = rng.normal(size=moving.shape)

    def run(h):
        moved = {variable: moving + h * direction}
        return multi_head_attention(**(x | options | moved), H_q=H_Q, H_kv=H_KV)

    h = 1e-5
    expected = np.sum(dY * (run(h).Y - run(-h).Y)) / (2 * h)
    g = multi_head_attention_backward(dY, **x, forward=run(0), **dropout(options))
    assert isinstance(g, MultiHeadGradients)
    if variable == "bias":
        axes = (0,) if case != "plain" else (0, 1)
        got = np.sum(g.dU.sum(axis=axes) * direction)
    else:
        assert getattr(g, "d" + variable).shape == x[variable].shape
        got = np.sum(getattr(g, "d" + variable) * direction)
    assert got == pytest.approx(expected, rel=1e-7)
    assert abs(expected) > 0.02


def test_backward_is_the_formulas_of_the_book():
    x = layer(lead_q=(), lead_m=(), H_kv=H_Q)
    forward = multi_head_attention(**x, H_q=H_Q)
    dY = np.random.default_rng(4).normal(size=(T, D))
    g = multi_head_attention_backward(dY, **x, forward=forward)
    np.testing.assert_allclose(g.dW_O, forward.C.T @ dY, rtol=1e-12, atol=1e-14)
    dC = dY @ x["W_O"].T
    dX_q, dX_m = np.zeros((T, D_Q)), np.zeros((S, D_M))
    for h in range(H_Q):
        k, v = slice(h * D_K, (h + 1) * D_K), slice(h * D_V, (h + 1) * D_V)
        W_Q, W_K, W_V = x["W_Q"][:, k], x["W_K"][:, k], x["W_V"][:, v]
        dQ, dK, dV, dA, dU = attention_backward(
            dC[:, v], x["X_q"] @ W_Q, x["X_m"] @ W_K, x["X_m"] @ W_V, forward.A[h]
        )
        for got, want in ((g.dQ, dQ), (g.dK, dK), (g.dV, dV), (g.dA, dA), (g.dU, dU)):
            np.testing.assert_allclose(got[h], want, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(g.dW_Q[:, k], x["X_q"].T @ dQ, rtol=1e-10, atol=1e-13)  # (5.29)
        np.testing.assert_allclose(g.dW_K[:, k], x["X_m"].T @ dK, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(g.dW_V[:, v], x["X_m"].T @ dV, rtol=1e-10, atol=1e-13)
        dX_q += dQ @ W_Q.T  # (5.30), inputs collect over the heads
        dX_m += dK @ W_K.T + dV @ W_V.T
    np.testing.assert_allclose(g.dX_q, dX_q, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(g.dX_m, dX_m, rtol=1e-10, atol=1e-13)


def test_weight_gradients_collect_over_the_batch_and_input_gradients_do_not():
    x, options = layer(), everything()
    forward = multi_head_attention(**x, **options, H_q=H_Q, H_kv=H_KV)
    dY = np.random.default_rng(4).normal(size=(B, T, D))
    g = multi_head_attention_backward(dY, **x, forward=forward, **dropout(options))
    parts = []
    for b in range(B):
        one = x | {"X_q": x["X_q"][b], "X_m": x["X_m"][b]}
        cut = options | {n: options[n][b] for n in ("allowed", "query_valid", "keep")}
        cut["bias"] = options["bias"][0]
        part = multi_head_attention(**one, **cut, H_q=H_Q, H_kv=H_KV)
        parts.append(multi_head_attention_backward(dY[b], **one, forward=part, **dropout(cut)))
    for name in ("dW_Q", "dW_K", "dW_V", "dW_O"):
        total = sum(getattr(part, name) for part in parts)
        np.testing.assert_allclose(getattr(g, name), total, rtol=1e-9, atol=1e-12)
    for name in ("dX_q", "dX_m", "dQ", "dK", "dV"):
        each = [getattr(part, name) for part in parts]
        np.testing.assert_allclose(getattr(g, name), each, rtol=1e-9, atol=1e-12)


def test_self_attention_adds_the_gradients_of_both_sides_and_tied_weights_those_of_both_uses():
    rng = np.random.default_rng(8)
    X, W_O = rng.normal(size=(B, S, D)), rng.normal(size=(H_Q * D_V, D)) / 8
    W, W_V = rng.normal(size=(D, H_Q * D_K)) / 4, rng.normal(size=(D, H_Q * D_V)) / 4
    dY, dX, dW = (rng.normal(size=x.shape) for x in (X, X, W))
    causal = masks.causal(S, S)

    def run(X, W):
        return multi_head_attention(X, X, W, W, W_V, W_O, causal, H_q=H_Q)

    g = multi_head_attention_backward(dY, X, X, W, W, W_V, W_O, run(X, W))
    h = 1e-5
    by_X = np.sum(dY * (run(X + h * dX, W).Y - run(X - h * dX, W).Y)) / (2 * h)
    by_W = np.sum(dY * (run(X, W + h * dW).Y - run(X, W - h * dW).Y)) / (2 * h)
    assert np.sum((g.dX_q + g.dX_m) * dX) == pytest.approx(by_X, rel=1e-7)  # R (5.31)
    assert np.sum((g.dW_Q + g.dW_K) * dW) == pytest.approx(by_W, rel=1e-7)
    assert np.sum(g.dX_m * dX) != pytest.approx(by_X, rel=1e-2)
    assert np.sum(g.dW_Q * dW) != pytest.approx(by_W, rel=1e-2)


def test_tied_blocks_stay_tied():
    x = layer()
    for W, H, d in (("W_Q", H_Q, D_K), ("W_K", H_KV, D_K), ("W_V", H_KV, D_V)):
        x[W] = np.tile(x[W][:, :d], H)
    x["W_O"] = np.tile(x["W_O"][:D_V], (H_Q, 1))
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    g = multi_head_attention_backward(np.ones((B, T, D)), **x, forward=forward)
    for name, H in (("dW_Q", H_Q), ("dW_K", H_KV), ("dW_V", H_KV)):
        heads = split_heads(getattr(g, name), H)
        np.testing.assert_allclose(heads, np.broadcast_to(heads[0], heads.shape), atol=1e-12)


def test_invalid_rows_pass_on_nothing():
    x, options = layer(), everything()
    valid = options["query_valid"]
    forward = multi_head_attention(**x, **options, H_q=H_Q, H_kv=H_KV)
    rng = np.random.default_rng(9)
    dY = rng.normal(size=(B, T, D))
    g = multi_head_attention_backward(dY, **x, forward=forward, **dropout(options))
    assert (g.dX_q[~valid] == 0).all()
    assert (g.dU.swapaxes(1, 2)[~valid] == 0).all()
    other = x | {"X_q": np.where(valid[..., None], x["X_q"], 1e3)}
    dY[~valid] = 1e3
    again = multi_head_attention(**other, **options, H_q=H_Q, H_kv=H_KV)
    g2 = multi_head_attention_backward(dY, **other, forward=again, **dropout(options))
    for name in ("dX_q", "dX_m", "dW_Q", "dW_K", "dW_V", "dW_O"):
        np.testing.assert_allclose(getattr(g2, name), getattr(g, name), rtol=1e-9, atol=1e-12)


def test_gradients_of_grouped_attention_have_the_shapes_of_their_variables():
    rng = np.random.default_rng(3)
    Q, K, V = (
        rng.normal(size=(H_Q, T, D_K)),
        rng.normal(size=(B, H_KV, S, D_K)),
        rng.normal(size=(1, H_KV, S, D_V)),
    )
    O, A, _ = grouped_attention(Q, K, V)
    g = grouped_attention_backward(O, Q, K, V, A)
    assert [x.shape for x in g] == [Q.shape, K.shape, V.shape, A.shape, A.shape]
    direction = rng.normal(size=V.shape)
    h = 1e-4
    moved = [grouped_attention(Q, K, V + s * h * direction).O for s in (1, -1)]
    expected = np.sum(O * (moved[0] - moved[1])) / (2 * h)
    assert np.sum(g.dV * direction) == pytest.approx(expected, rel=1e-9)


# Numbers at the edge, dtypes


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        ({}, np.float64),
        (dict.fromkeys(INPUTS, np.float32), np.float32),
        (dict.fromkeys(INPUTS, np.float16), np.float16),
        (dict.fromkeys(INPUTS, np.float32) | {"W_O": np.float64}, np.float64),
        (dict.fromkeys(INPUTS, np.float16) | {"X_m": np.float32}, np.float32),
        (dict.fromkeys(INPUTS, ">f8"), np.float64),
        (dict.fromkeys(INPUTS, int), np.float64),
    ],
)
def test_the_dtype_follows_the_input(dtypes, result):
    x = layer()
    if int in dtypes.values():
        x = {name: np.rint(2 * value) for name, value in x.items()}
    exact = x
    x = {name: value.astype(dtypes.get(name, float)) for name, value in x.items()}
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    g = multi_head_attention_backward(forward.Y, **x, forward=forward)
    assert {a.dtype for a in (*forward, *g)} == {np.dtype(result)}
    expected = multi_head_attention(**exact, H_q=H_Q, H_kv=H_KV)
    eps = np.finfo(np.float16 if np.float16 in dtypes.values() else result).eps
    if np.float32 in dtypes.values() and np.float16 not in dtypes.values():
        eps = np.finfo(np.float32).eps
    np.testing.assert_allclose(forward.Y.astype(float), expected.Y, rtol=0, atol=30 * eps)
    gradients = multi_head_attention_backward(expected.Y, **exact, forward=expected)
    for got, want in zip(g, gradients, strict=True):
        tolerance = 100 * eps * max(1, abs(want).max())
        np.testing.assert_allclose(got.astype(float), want, rtol=0, atol=tolerance)


def test_a_bias_counts_for_the_dtype():
    x = {name: value.astype(np.float32) for name, value in layer().items()}
    bias = np.zeros((T, S))
    for b, dtype in ((bias, np.float64), (bias.astype(np.float32), np.float32)):
        forward = multi_head_attention(**x, bias=b, H_q=H_Q, H_kv=H_KV)
        g = multi_head_attention_backward(forward.Y, **x, forward=forward)
        assert {a.dtype for a in (*forward, *g)} == {np.dtype(dtype)}


def test_float16_sums_in_float32():
    n = 4099
    one = np.ones((1, 1), np.float16)
    X, W = np.full((1, n), 0.25, np.float16), np.full((n, 1), 0.25, np.float16)
    forward = multi_head_attention(X, X, W, W, W, one, H_q=1, scale=0.01)
    assert forward.Q[0, 0, 0] == np.float16(n / 16)
    X = np.ones((n, 1), np.float16)
    forward = multi_head_attention(X, one, one, one, one, one, H_q=1)
    g = multi_head_attention_backward(np.full((n, 1), 0.25, np.float16), X, *[one] * 5, forward)
    assert g.dW_O[0, 0] == np.float16(n / 4)
    Q, K = np.zeros((n, 1, 1), np.float16), np.zeros((1, 2, 1), np.float16)
    A = np.tile(np.float16([1, 0]), (n, 1, 1))
    dO = np.ones((n, 1, 1), np.float16)
    dV = grouped_attention_backward(dO, Q, K, K, A).dV  # n query heads share one value
    assert dV.tolist() == [[[float(np.float16(n))], [0.0]]]


def test_an_overflow_is_named_and_partial_sums_are_none():
    x = layer()
    big = x | {"X_q": np.zeros((B, T, D_Q))}
    big["X_q"][1, 2, :2] = 1e200
    big["W_Q"] = x["W_Q"].copy()
    big["W_Q"][:2, 3] = 1e200
    for errors in ("raise", "warn"):
        with (
            np.errstate(all=errors),
            pytest.raises(
                FloatingPointError, match=re.escape("X_q W_Q[1, 2, 3] overflows float64")
            ),
        ):
            multi_head_attention(**big, H_q=H_Q, H_kv=H_KV)
    big["W_Q"][1, 3] = -1e200  # inf - inf on the way
    big["W_Q"][:2, :3] = big["W_Q"][:2, 4:] = 0
    with np.errstate(all="raise"):
        forward = multi_head_attention(**big, H_q=H_Q, H_kv=H_KV)
    assert not forward.Q.any()
    huge = x | {"W_O": np.full((H_Q * D_V, D), 1e308), "X_m": abs(x["X_m"]), "W_V": 9 + x["W_V"]}
    with pytest.raises(FloatingPointError, match=re.escape("Y[0, 0, 0] overflows float64")):
        multi_head_attention(**huge, H_q=H_Q, H_kv=H_KV)
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    with pytest.raises(FloatingPointError, match=r"d.*overflows float64"):
        multi_head_attention_backward(np.full((B, T, D), 1e308), **x, forward=forward)


def test_a_query_without_keys_is_named_by_sample_head_and_row():
    allowed = np.ones((B, H_Q, T, S), bool)
    allowed[3, 4, 2] = False
    with pytest.raises(ValueError, match=r"row \(3, 4, 2\) is a valid query.*none of the 7 keys"):
        multi_head_attention(**layer(), allowed=allowed, H_q=H_Q, H_kv=H_KV)


@pytest.mark.parametrize(("lead", "t", "s"), [((0,), 5, 7), ((B,), 0, 7), ((), 0, 0), ((), 9, 2)])
def test_empty_and_long_sizes(lead, t, s):
    x = layer()
    x |= {"X_q": np.ones((*lead, t, D_Q)), "X_m": np.ones((*lead, s, D_M))}
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    assert forward.Y.shape == (*lead, t, D)
    g = multi_head_attention_backward(forward.Y, **x, forward=forward)
    for name in INPUTS:
        assert getattr(g, "d" + name).shape == x[name].shape
    if 0 in (*lead, t):
        assert not g.dW_K.any()


# What comes in


def test_inputs_are_left_alone_and_results_are_new():
    x, options = layer(), everything()
    arrays = [*x.values(), *(o for o in options.values() if isinstance(o, np.ndarray))]
    copies = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    forward = multi_head_attention(**x, **options, H_q=H_Q, H_kv=H_KV)
    kept = [a.copy() for a in forward]
    g = multi_head_attention_backward(forward.Y, **x, forward=forward, **dropout(options))
    for a, copy in zip([*arrays, *forward], [*copies, *kept], strict=True):
        np.testing.assert_array_equal(a, copy)
    results = (*forward, *g)
    assert all(a.flags.writeable for a in results)
    for i, a in enumerate(results):
        assert not any(np.shares_memory(a, b) for b in (*arrays, *results[:i]))


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(name, value):
    x = layer()
    x[name] = x[name].copy()
    x[name][..., 1, 2] = value
    with pytest.raises(ValueError, match=rf"{name}\[.*1, 2\] is {value}, but every number must"):
        multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"X_q": (D_Q,)}, "X_q needs an axis for its rows: for one row write X_q[None]"),
        ({"X_m": ()}, "X_m needs an axis for its rows"),
        ({"W_Q": (H_Q, D_Q, D_K)}, "W_Q must be one matrix: merge_heads puts those of the heads"),
        ({"W_O": (D_V,)}, "W_O must be one matrix"),
        ({"X_q": (T, D_M)}, "the width of X_q must be the number of rows of W_Q"),
        ({"W_K": (D_Q, H_KV * D_K)}, "the width of X_m must be the number of rows of W_K"),
        ({"W_V": (D_Q, H_KV * D_V)}, "the width of X_m must be the number of rows of W_V"),
        ({"W_Q": (D_Q, 61)}, "the number of columns of W_Q must be a multiple of H_q = 6"),
        ({"W_K": (D_M, 31)}, "the number of columns of W_K must be a multiple of H_kv = 3"),
        ({"W_V": (D_M, 34)}, "the number of columns of W_V must be a multiple of H_kv = 3"),
        ({"W_K": (D_M, 33)}, "a head of W_Q has 10 columns, one of W_K 11, but both are d_k"),
        ({"W_O": (H_KV * D_V, D)}, "W_O must have H_q d_v = 66 rows"),
        ({"W_O": (D, H_Q * D_V)}, "W_O must have H_q d_v = 66 rows"),
        ({"X_m": (3, S, D_M)}, "the leading axes of X_q and X_m must broadcast together"),
    ],
)
def test_wrong_shapes_print_the_rule_and_every_shape(changed, rule):
    shapes = {name: value.shape for name, value in layer().items()} | changed
    x = {name: np.ones(shape) for name, shape in shapes.items()}
    forward = multi_head_attention(**layer(), H_q=H_Q, H_kv=H_KV)
    for call in (
        lambda: multi_head_attention(**x, H_q=H_Q, H_kv=H_KV),
        lambda: multi_head_attention_backward(np.ones((B, T, D)), **x, forward=forward),
    ):
        with pytest.raises(ValueError, match=re.escape(rule)) as caught:
            call()
        for name, shape in shapes.items():
            assert f"{name} {shape}" in str(caught.value)
        assert "W_K (d_m, H_kv d_k)" in str(caught.value)
        assert "H_q = 6, H_kv = 3" in str(caught.value)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({"H_q": 6, "H_kv": 4}, "6 query heads cannot share 4 key/value heads evenly: H_q must be"),
        ({"H_q": 3, "H_kv": 6}, "3 query heads cannot share 6 key/value heads evenly"),
        ({"H_q": 0}, "H_q must be one integer, 1 or more; got 0"),
        ({"H_q": 6.0}, "H_q must be one integer, 1 or more; got 6.0"),
        ({"H_q": None}, "H_q must be one integer, 1 or more; got None"),
        ({"H_q": 6, "H_kv": -1}, "H_kv must be one integer, 1 or more; got -1"),
    ],
)
def test_numbers_of_heads(heads, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        multi_head_attention(**layer(), **heads)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((T, D_K), (S, D_K), (S, D_V)), "Q, K and V need an axis of heads"),
        (((6, T, D_K), (4, S, D_K), (4, S, D_V)), "6 query heads cannot share 4 key/value heads"),
        (((6, T, D_K), (0, S, D_K), (0, S, D_V)), "6 query heads cannot share 0 key/value heads"),
        (((6, T, D_K), (3, S, D_K), (6, S, D_V)), "K and V must have the same number of heads"),
        (((6, T, D_K), (3, S, D_Q), (3, S, D_V)), "the last axis of Q and K, d_k, must agree"),
    ],
)
def test_grouped_attention_refuses(shapes, message):
    Q, K, V = (np.ones(shape) for shape in shapes)
    with pytest.raises(ValueError, match=re.escape(message)):
        grouped_attention(Q, K, V)
    dO, A = np.ones((6, T, D_V)), np.full((6, T, S), 1 / S)
    with pytest.raises(ValueError, match=re.escape(message)):
        grouped_attention_backward(dO, Q, K, V, A)


def test_the_backward_wants_what_the_forward_returned():
    x = layer()
    forward = multi_head_attention(**x, H_q=H_Q, H_kv=H_KV)
    dY = np.ones((B, T, D))
    with pytest.raises(TypeError, match=r"forward must be the MultiHead that .* got tuple"):
        multi_head_attention_backward(dY, **x, forward=tuple(forward))
    with pytest.raises(ValueError, match=r"dY must have the shape .* \(4, 5, 12\); got \(5, 12\)"):
        multi_head_attention_backward(dY[0], **x, forward=forward)
    shorter = x | {"X_m": x["X_m"][:, 1:]}
    with pytest.raises(ValueError, match=r"forward.V has shape .*, but these inputs give"):
        multi_head_attention_backward(dY, **shorter, forward=forward)
    shorter = x | {"X_q": x["X_q"][:, 1:]}
    with pytest.raises(ValueError, match=r"forward.Q has shape .*, but these inputs give"):
        multi_head_attention_backward(dY[:, 1:], **shorter, forward=forward)


def test_axes_that_only_the_values_have_ask_nothing_of_a_mask():
    rng = np.random.default_rng(21)
    Q, K, V = (rng.normal(size=n) for n in ((2, 3, 4), (2, 5, 4), (7, 2, 5, 6)))
    allowed = rng.random((2, 3, 5)) < 0.7
    allowed[..., 0] = True
    O = grouped_attention(Q, K, V, allowed).O
    assert O.shape == (7, 2, 3, 6)
    for b in range(7):
        np.testing.assert_allclose(O[b], grouped_attention(Q, K, V[b], allowed).O, rtol=1e-12)
