"""The key-value cache: token by token, in chunks and at once are one computation."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import (
    KVCache,
    cost,
    grouped_attention,
    masks,
    merge_heads,
    multi_head_attention,
    split_heads,
)

B, S, D, H_Q, H_KV, D_K, D_V = 4, 11, 7, 6, 2, 3, 5


def layer(seed=0):
    rng = np.random.default_rng(seed)
    shapes = (B, S, D), (D, H_Q * D_K), (D, H_KV * D_K), (D, H_KV * D_V), (H_Q * D_V, D)
    return [rng.normal(size=shape) / 2 for shape in shapes]


def decode(X, W_Q, W_K, W_V, W_O, chunks, positions, capacity=S):
    """The layer chunk by chunk, from projections, cache and grouped heads."""
    cache, Y = KVCache(capacity), []
    start = 0
    for n in chunks:
        rows = slice(start, start + n)
        x, now = X[:, rows], positions[rows]
        cache.append(split_heads(x @ W_K, H_KV), split_heads(x @ W_V, H_KV), now)
        allowed = masks.causal(now, cache.positions)
        O = grouped_attention(split_heads(x @ W_Q, H_Q), cache.K, cache.V, allowed).O
        Y.append(merge_heads(O) @ W_O)
        start += n
    assert start == len(cache) == X.shape[1]
    return np.concatenate(Y, axis=1), cache


@settings(derandomize=True, database=None, deadline=None)
@given(st.lists(st.integers(1, S), max_size=S), st.integers(0, 3))
def test_any_chunks_equal_the_full_pass(cuts, capacity):
    cuts = sorted({c for c in cuts if c < S} | {0, S})
    X, *W = layer()
    full = multi_head_attention(X, X, *W, masks.causal(S, S), H_q=H_Q, H_kv=H_KV)
    Y, cache = decode(X, *W, np.diff(cuts), np.arange(S), S + capacity)
    np.testing.assert_allclose(Y, full.Y, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(cache.K, full.K, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(cache.V, full.V, rtol=1e-12, atol=1e-14)


def test_token_by_token_equals_chunks_equals_the_full_pass():
    X, *W = layer(1)
    full = multi_head_attention(X, X, *W, masks.causal(S, S), H_q=H_Q, H_kv=H_KV).Y
    for chunks in ([1] * S, [3, 1, 5, 2], [S]):
        Y, _ = decode(X, *W, chunks, np.arange(S))
        np.testing.assert_allclose(Y, full, rtol=1e-12, atol=1e-13)


def test_positions_with_gaps_decide_what_is_read():
    X, *W = layer(2)
    positions = np.array([0, 2, 3, 7, 8, 9, 12, 20, 21, 30, 41])
    allowed = masks.causal(positions, positions)
    full = multi_head_attention(X, X, *W, allowed, H_q=H_Q, H_kv=H_KV).Y
    Y, cache = decode(X, *W, [4, 1, 6], positions)
    np.testing.assert_allclose(Y, full, rtol=1e-12, atol=1e-13)
    assert cache.positions.tolist() == positions.tolist()
    assert masks.causal([8], cache.positions).sum() == 5


def test_a_prompt_s_future_is_hidden_within_its_chunk():
    X, *W = layer()
    changed = X.copy()
    changed[:, 4:] += 1
    before, after = (decode(x, *W, [S], np.arange(S))[0] for x in (X, changed))
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    assert abs(after[:, 4:] - before[:, 4:]).max() > 0.1


def test_memory_is_one_key_and_one_value_per_key_value_head():
    X, *W = layer()
    _, cache = decode(X, *W, [S], np.arange(S))
    assert cache.K.shape == (B, H_KV, S, D_K)
    assert cache.V.shape == (B, H_KV, S, D_V)
    expected = cost.cache_bytes(B=B, S=S, H_kv=H_KV, d_k=D_K, d_v=D_V, bytes_per_number=8)
    assert cache.K.nbytes + cache.V.nbytes == expected


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_dtype_is_kept(dtype):
    cache = KVCache(4)
    cache.append(np.ones((2, 3, 1), dtype), np.ones((2, 3, 2), dtype), [0, 1, 2])
    assert cache.K.dtype == cache.V.dtype == dtype
    other = np.float32 if dtype == np.float64 else np.float64
    with pytest.raises(TypeError, match=f"the cache holds V as {np.dtype(dtype)}, got"):
        cache.append(np.ones((2, 1, 1), dtype), np.ones((2, 1, 2), other), [3])
    assert len(cache) == 3
    integers = KVCache(1)
    integers.append([[1]], [[2]], [0])
    assert integers.K.dtype == np.float64


def test_what_is_read_is_the_cache_itself_and_cannot_be_written():
    K, V, positions = np.ones((2, 3, 1)), np.ones((2, 3, 2)), np.arange(3)
    cache = KVCache(5)
    cache.append(K, V, positions)
    for read, given_array in ((cache.K, K), (cache.V, V), (cache.positions, positions)):
        assert not read.flags.writeable
        assert not np.shares_memory(read, given_array)
        with pytest.raises(ValueError, match="read-only"):
            read[...] = 0
    early = cache.K
    cache.append(2 * K[:, :2], V[:, :2], [3, 4])
    assert np.shares_memory(early, cache.K)
    assert (early == 1).all()
    assert cache.K[0, :, 0].tolist() == [1, 1, 1, 2, 2]
    K[:] = 9
    assert cache.K.max() == 2
    assert K.flags.writeable


def test_an_empty_cache():
    cache = KVCache(3)
    assert len(cache) == 0
    assert cache.positions.tolist() == []
    for read in ("K", "V"):
        with pytest.raises(ValueError, match="the cache is empty and does not know its shapes"):
            getattr(cache, read)
    cache.append(np.ones((2, 0, 1)), np.ones((2, 0, 4)), [])
    assert cache.K.shape == (2, 0, 1)
    assert cache.V.shape == (2, 0, 4)
    assert cache.capacity == 3


@pytest.mark.parametrize(
    ("shapes", "positions", "error", "message"),
    [
        (((2, 3, 1), (2, 3, 4)), [2, 3, 4], ValueError, "the cache holds 2 of 4 positions and has"),
        (((2, 3, 1), (2, 3, 4)), [2, 3, 4], ValueError, "with a capacity of 5 or more"),
        (((2, 2, 1), (2, 2, 4)), [1, 2], ValueError, "positions must increase, from 2 on, since 1"),
        (((2, 2, 1), (2, 2, 4)), [3, 3], ValueError, "is the last in the cache; got [3, 3]"),
        (((2, 2, 1), (2, 2, 4)), [4, 3], ValueError, "positions must increase"),
        (((2, 2, 1), (2, 2, 4)), [0, 5], ValueError, "positions must increase"),
        (((2, 2, 1), (2, 2, 4)), [2], ValueError, "positions must have shape (2,), one for each"),
        (((2, 1, 1), (2, 1, 4)), 2, ValueError, "positions must have shape (1,), one for each"),
        (((2, 2, 1), (2, 2, 4)), [[2, 3]], ValueError, "positions must have shape (2,)"),
        (((2, 2, 1), (2, 2, 4)), [2.0, 3.0], TypeError, "positions must be integers, got dtype"),
        (((2, 2, 1), (2, 2, 4)), [True, False], TypeError, "positions must be integers"),
        (
            ((2, 2, 1), (2, 1, 4)),
            [2, 3],
            ValueError,
            "K and V must have shapes (..., H_kv, n, d_k)",
        ),
        (
            ((2, 2, 1), (3, 2, 4)),
            [2, 3],
            ValueError,
            "K and V must have shapes (..., H_kv, n, d_k)",
        ),
        (((2,), (2,)), [2, 3], ValueError, "K and V must have shapes (..., H_kv, n, d_k)"),
        (((2, 2, 6), (2, 2, 4)), [2, 3], ValueError, "K (2, 2, 6) must have the leading axes and"),
        (((2, 2, 1), (2, 2, 6)), [2, 3], ValueError, "holds, (2, 2, 4)"),
        (((3, 2, 1), (3, 2, 4)), [2, 3], ValueError, "K (3, 2, 1) must have the leading axes and"),
        (((1, 2, 1), (1, 2, 4)), [2, 3], ValueError, "K (1, 2, 1) must have the leading axes and"),
        (((9, 2, 2, 1), (9, 2, 2, 4)), [2, 3], ValueError, "must have the leading axes and"),
    ],
)
def test_a_chunk_that_does_not_fit_changes_nothing(shapes, positions, error, message):
    cache = KVCache(4)
    cache.append(np.ones((2, 2, 1)), np.ones((2, 2, 4)), [0, 1])
    with pytest.raises(error, match=re.escape(message)):
        cache.append(*(np.full(shape, 7.0) for shape in shapes), positions)
    assert len(cache) == 2
    assert cache.positions.tolist() == [0, 1]
    cache.append(np.ones((2, 2, 1)), np.ones((2, 2, 4)), [2, 3])
    assert (cache.K == 1).all()
    assert (cache.V == 1).all()


def test_the_first_chunk_is_checked_too():
    cache = KVCache(2)
    with pytest.raises(ValueError, match=re.escape("from 0 on, since they count from 0; got [-1]")):
        cache.append([[1.0]], [[1.0]], [-1])
    with pytest.raises(ValueError, match="positions must increase, from 0 on"):
        cache.append([[1.0], [1.0]], [[1.0], [1.0]], [1, 0])
    with pytest.raises(ValueError, match=r"V\[0, 0\] is nan, but every number must be finite"):
        cache.append([[1.0]], [[np.nan]], [0])
    with pytest.raises(ValueError, match="the cache holds 0 of 2 positions and has no room for 3"):
        cache.append([[1.0]] * 3, [[1.0]] * 3, [0, 1, 2])
    assert len(cache) == 0


@pytest.mark.parametrize("capacity", [0, -1, 2.0, "2", None, True])
def test_capacity_is_a_positive_integer(capacity):
    with pytest.raises(ValueError, match="capacity must be one integer, 1 or more; got"):
        KVCache(capacity)
