"""Tiled attention: for every tile size what `attention` gives, without an array of T x S."""

import math
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import (
    Tiled,
    TiledGradients,
    attention,
    attention_backward,
    masks,
    tiled_attention,
    tiled_attention_backward,
)

T, S, D_K, D_V = 7, 11, 4, 3
MAX = np.finfo(float).max
TILES = [(1, 1), (2, 3), (3, 2), (7, 11), (1, 11), (7, 1), (6, 10), (128, 128), (10**9, 4)]


def head(*lead, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*lead, *tail)) for tail in ((T, D_K), (S, D_K), (S, D_V))]


def everything(seed=7):
    """Leading axes that broadcast, a mask, invalid rows, bias and scale."""
    rng = np.random.default_rng(seed)
    Q, K, V = (
        rng.normal(size=(6, 1, T, D_K)),
        rng.normal(size=(5, S, D_K)),
        rng.normal(size=(2, 1, 1, S, D_V)),
    )
    allowed = rng.random((5, T, S)) < 0.4
    allowed[..., 8] = True
    query_valid = rng.random((6, 1, T)) < 0.7
    assert not query_valid.all()
    bias = rng.normal(size=(6, 1, 1, S))
    return (Q, K, V), {"allowed": allowed, "query_valid": query_valid, "bias": bias, "scale": 0.7}


def both(arrays, options, tiles, dO=None):
    """Forward and backward, dense and tiled, as named arrays."""
    dense = attention(*arrays, **options)
    dO = np.random.default_rng(1).normal(size=dense.O.shape) if dO is None else dO
    g = attention_backward(dO, *arrays, dense.A, scale=options.get("scale"))
    tile = {"query_tile": tiles[0], "key_tile": tiles[1]}
    forward = tiled_attention(*arrays, **options, **tile)
    tg = tiled_attention_backward(dO, *arrays, *forward, **options, **tile)
    assert isinstance(forward, Tiled)
    assert isinstance(tg, TiledGradients)
    return {"O": dense.O, "dQ": g.dQ, "dK": g.dK, "dV": g.dV}, forward._asdict() | tg._asdict()


def assert_equal(expected, got, rtol=1e-12, atol=1e-13):
    for name, x in expected.items():
        assert got[name].shape == x.shape, name
        np.testing.assert_allclose(got[name], x, rtol=rtol, atol=atol, err_msg=name)


# The same as dense


@pytest.mark.parametrize("tiles", TILES)
def test_equals_dense_with_everything_at_once(tiles):
    arrays, options = everything()
    expected, got = both(arrays, options, tiles)
    assert_equal(expected, got)
    invalid = ~np.broadcast_to(options["query_valid"], got["m"].shape)
    assert (got["O"][:, invalid] == 0).all()
    assert (got["dQ"][~options["query_valid"]] == 0).all()


@pytest.mark.parametrize("tiles", TILES)
def test_equals_dense_without_options(tiles):
    assert_equal(*both(head(2), {}, tiles))


@settings(derandomize=True, database=None, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 10),
    st.integers(1, 10),
    st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_equals_dense_for_any_sizes(seed, t, s, query_tile, key_tile, size):
    rng = np.random.default_rng(seed)
    arrays = [size * rng.normal(size=shape) for shape in ((t, 2), (s, 2), (s, 3))]
    options = {"allowed": rng.random((t, s)) < 0.5}
    options["query_valid"] = options["allowed"].any(axis=1)
    expected, got = both(arrays, options, (query_tile, key_tile))
    scale = {name: 1e-11 * max(1, abs(x).max(initial=0)) for name, x in expected.items()}
    for name, x in expected.items():
        np.testing.assert_allclose(got[name], x, rtol=1e-11, atol=scale[name], err_msg=name)


def test_the_weights_come_back_from_m_and_z():
    arrays, options = everything()
    _, A, U = attention(*arrays, **options)
    _, m, z = tiled_attention(*arrays, **options, query_tile=2, key_tile=3)
    valid = np.broadcast_to(options["query_valid"], m.shape)
    assert m.shape == z.shape == A.shape[:-1]
    assert (m[~valid] == 0).all()
    assert (z[~valid] == 0).all()
    read = np.broadcast_to(options["allowed"], A.shape) & valid[..., None]
    again = np.exp(U - m[..., None]) / np.where(z, z, 1)[..., None]
    np.testing.assert_allclose(again[read], A[read], rtol=1e-12)
    largest = np.max(U, axis=-1, where=read, initial=-np.inf)
    np.testing.assert_allclose(m[valid], largest[valid], rtol=1e-13)
    L = m + np.log(np.where(z, z, 1))
    expected = np.log(np.sum(np.exp(U), axis=-1, where=read, initial=0), where=valid, out=L.copy())
    np.testing.assert_allclose(L, expected, rtol=1e-12, atol=1e-13)


def test_the_loop_of_the_docstring():
    (Q, K, V), allowed = head(), masks.causal(np.arange(4, 4 + T), S)
    O = tiled_attention(Q, K, V, allowed, query_tile=3, key_tile=4).O
    for i in range(T):
        m, z, o = -math.inf, 0.0, np.zeros(D_V)
        for start in range(0, S, 4):
            J = [j for j in range(start, min(start + 4, S)) if allowed[i, j]]
            if not J:
                continue
            u = [math.fsum(Q[i] * K[j]) / math.sqrt(D_K) for j in J]
            m_new = max(m, *u)
            z_new = math.exp(m - m_new) * z + math.fsum(math.exp(x - m_new) for x in u)
            o = math.exp(m - m_new) * z / z_new * o
            for x, j in zip(u, J, strict=True):
                o = o + math.exp(x - m_new) / z_new * V[j]
            m, z = m_new, z_new
        np.testing.assert_allclose(O[i], o, rtol=1e-12)


@pytest.mark.parametrize("variable", ["Q", "K", "V"])
def test_gradients_equal_central_differences(variable):
    arrays, options = everything()
    variables = dict(zip("QKV", arrays, strict=True))
    tile = {"query_tile": 3, "key_tile": 4}
    rng = np.random.default_rng(5)
    forward = tiled_attention(*arrays, **options, **tile)
    dO = rng.normal(size=forward.O.shape)
    direction = rng.normal(size=variables[variable].shape)

    def loss(h):
        moved = variables | {variable: variables[variable] + h * direction}
        return np.sum(dO * tiled_attention(**moved, **options, **tile).O)

    h = 1e-5
    g = tiled_attention_backward(dO, *arrays, *forward, **options, **tile)
    expected = (loss(h) - loss(-h)) / (2 * h)
    got = np.sum(getattr(g, "d" + variable) * direction)
    assert got == pytest.approx(expected, rel=1e-7)
    assert abs(expected) > 0.1


def test_the_backward_may_use_other_tiles():
    arrays, options = everything()
    expected, _ = both(arrays, options, (2, 3))
    forward = tiled_attention(*arrays, **options, query_tile=4, key_tile=5)
    dO = np.random.default_rng(1).normal(size=forward.O.shape)
    g = tiled_attention_backward(dO, *arrays, *forward, **options, query_tile=3, key_tile=1)
    del expected["O"]
    assert_equal(expected, g._asdict())


# Masks as functions of a tile


def test_a_function_of_the_tile_is_the_mask():
    arrays = head(5)
    query, key = np.arange(3, 3 + T), np.arange(S)
    lengths = np.array([4, 11, 1, 7, 5])[:, None]
    whole = masks.causal(query, key) & masks.padding(key < lengths)
    seen = np.zeros((5, T, S), int)

    def allowed(rows, keys):
        assert rows.stop - rows.start <= 3
        assert keys.stop - keys.start <= 4
        seen[:, rows, keys] += 1
        return masks.causal(query[rows], key[keys]) & masks.padding(key[keys] < lengths)

    tile = {"query_tile": 3, "key_tile": 4}
    forward = tiled_attention(*arrays, allowed, **tile)
    assert (seen == 1).all()
    assert_equal({"O": attention(*arrays, whole).O}, forward._asdict())
    dO = np.ones_like(forward.O)
    g = tiled_attention_backward(dO, *arrays, *forward, allowed, **tile)
    expected = attention_backward(dO, *arrays, attention(*arrays, whole).A)
    assert_equal({name: getattr(expected, name) for name in g._fields}, g._asdict())


@pytest.mark.parametrize(
    ("allowed", "error", "message"),
    [
        (lambda rows, keys: None, TypeError, "allowed must be boolean, True = this query may read"),
        (lambda rows, keys: 1.0, TypeError, "allowed must be boolean"),
        (lambda rows, keys: np.ones((T, S), bool), ValueError, "must broadcast to (2, 3), the sh"),
        (lambda rows, keys: np.ones((6, 2, 3), bool), ValueError, "must broadcast to (2, 3)"),
        (np.ones((T, S)), TypeError, "allowed must be boolean"),
        (np.ones((S, T), bool), ValueError, "the last axes of allowed must be (7, 11) or 1"),
    ],
)
def test_a_mask_that_is_none(allowed, error, message):
    with pytest.raises(error, match=re.escape(message)):
        tiled_attention(*head(), allowed, query_tile=2, key_tile=3)


@pytest.mark.parametrize("first_tile_hidden", [True, False])
def test_rows_that_see_nothing_for_a_while(first_tile_hidden):
    arrays = head()
    allowed = np.zeros((T, S), bool)
    allowed[np.arange(T), 10 if first_tile_hidden else 0] = True
    allowed[3] = [False, True] * 5 + [False]
    expected, got = both(arrays, {"allowed": allowed}, (2, 2))
    assert_equal(expected, got)
    np.testing.assert_array_equal(np.delete(got["z"], 3), 1)


# The contract of attention


@pytest.mark.parametrize("by_function", [True, False])
def test_a_valid_query_without_keys_is_named(by_function):
    Q, K, V = head(2)
    allowed = np.ones((2, T, S), bool)
    allowed[1, 5] = False
    mask = (lambda rows, keys: allowed[:, rows, keys]) if by_function else allowed
    tile = {"query_tile": 3, "key_tile": 4}
    message = r"row \(1, 5\) is a valid query, but allowed leaves it none of the 11 keys"
    with pytest.raises(ValueError, match=message):
        tiled_attention(Q, K, V, mask, **tile)
    valid = allowed.any(axis=-1)
    O, m, z = tiled_attention(Q, K, V, mask, query_valid=valid, **tile)
    assert not O[1, 5].any()
    assert m[1, 5] == z[1, 5] == 0
    with pytest.raises(ValueError, match="none of the 0 keys"):
        tiled_attention(Q, K[:, :0], V[:, :0])


@pytest.mark.parametrize("sign", [1, -1])
def test_an_overflow_that_is_read_names_row_and_key(sign):
    Q, K, V = head(2)
    Q[1, 5], K[1, 8] = 1e200, sign * 1e200
    tile = {"query_tile": 3, "key_tile": 4}
    for errors in ("raise", "warn", "ignore"):
        with (
            np.errstate(all=errors),
            pytest.raises(FloatingPointError, match=r"row \(1, 5\), key 8 overflows float64"),
        ):
            tiled_attention(Q, K, V, **tile)
    hidden = np.arange(S) != 8
    dO = np.ones((2, T, D_V))
    with np.errstate(all="raise"):
        forward = tiled_attention(Q, K, V, hidden, **tile)
        g = tiled_attention_backward(dO, Q, K, V, *forward, hidden, **tile)
    dense = attention(Q, K, V, hidden)
    assert_equal({"O": dense.O}, forward._asdict())
    expected = attention_backward(dO, Q, K, V, dense.A)
    np.testing.assert_allclose(g.dV, expected.dV, rtol=1e-12, atol=1e-13)
    one = [[1e200]], [[1.0], [sign * 1e200]], [[1.0], [2.0]]
    forward = tiled_attention(*one, np.array([True, False]))
    with pytest.raises(FloatingPointError, match="row 0, key 1 overflows float64"):
        tiled_attention_backward(forward.O, *one, *forward)


def test_large_scores_keep_their_ties():
    Q, K = [[1e300], [-1e300], [3.0]], [[1.0], [0.5], [1.0], [-1.0], [1.0]]
    V = [[1.0], [2.0], [4.0], [9.0], [7.0]]
    with np.errstate(all="raise"):
        expected, got = both([Q, K, V], {"scale": 1.0}, (2, 2))
    for name, x in expected.items():
        np.testing.assert_allclose(got[name], x, rtol=1e-13, atol=1e-13 * abs(x).max())
    np.testing.assert_allclose(got["O"][:2, 0], [4, 9], rtol=1e-15)
    np.testing.assert_allclose(got["z"][:2], [3, 1])


@pytest.mark.parametrize("value", [MAX, -MAX])
def test_the_mean_of_the_largest_values_is_finite(value):
    rng = np.random.default_rng(3)
    Q, K = rng.normal(size=(40, 2)), rng.normal(size=(50, 2))
    with np.errstate(all="raise"):
        O = tiled_attention(Q, K, np.full((50, 1), value), query_tile=7, key_tile=3).O
    np.testing.assert_allclose(O, value, rtol=1e-14)


def test_a_forbidden_key_and_value_change_no_bit():
    Q, K, V = head()
    allowed = np.arange(S) != 8
    dO = np.ones((T, D_V))
    tile = {"query_tile": 3, "key_tile": 4}

    def run():
        forward = tiled_attention(Q, K, V, allowed, **tile)
        return (*forward, *tiled_attention_backward(dO, Q, K, V, *forward, allowed, **tile))

    before = run()
    for other in (0.0, MAX, -3e5):
        K[8], V[8] = other, -other
        with np.errstate(all="raise"):
            after = run()
        for x, y in zip(before, after, strict=True):
            assert x.tobytes() == y.tobytes()


@pytest.mark.parametrize(
    ("name", "dO", "Q", "K", "V"),
    [
        ("dA[0, 1]", [[2.0]], [[1.0]], [[1.0], [1.0]], [[1.0], [1e308]]),
        ("dQ[0, 0]", [[1e10]], [[1.0]], [[1e308], [-1e308]], [[1.0], [3.0]]),
        ("dK[0, 0]", [[1e200]], [[1e200]], [[0.0], [0.0]], [[1.0], [3.0]]),
        ("dV[0, 0]", [[MAX], [MAX], [MAX]], [[0.0]] * 3, [[0.0], [0.0]], [[0.0], [0.0]]),
    ],
)
@pytest.mark.parametrize("key_tile", [1, 2])
def test_a_gradient_that_overflows_is_named(name, dO, Q, K, V, key_tile):
    z, m = np.full(len(Q), 2.0), np.zeros(len(Q))  # as if both keys had the score 0
    O = np.full_like(dO, np.mean(V))
    bias = -np.array(Q) @ np.array(K).T
    for errors in ("raise", "warn"):
        with (
            np.errstate(all=errors),
            pytest.raises(FloatingPointError, match=re.escape(f"{name} overflows float64")),
        ):
            tiled_attention_backward(dO, Q, K, V, O, m, z, bias=bias, key_tile=key_tile)


def test_a_gradient_overflows_only_if_it_must():
    Q, K, V = [[0.0]], [[1.0], [-1.0]], [[-MAX], [MAX]]
    bias = [[0.0, math.log(3)]]
    with np.errstate(all="raise"):  # dA - mean is 2e308 and more, dU is not
        expected, got = both([Q, K, V], {"bias": bias}, (1, 2), np.array([[1.0]]))
    np.testing.assert_allclose(got["dQ"], [[-0.75 * MAX]], rtol=1e-13)
    assert_equal(expected, got, rtol=1e-13)


@pytest.mark.parametrize(("t", "s"), [(0, 5), (3, 5), (5, 3), (1, 1), (0, 0)])
@pytest.mark.parametrize("lead", [(), (0,), (2, 0)])
def test_empty_and_long_sizes(t, s, lead):
    arrays = np.ones((*lead, t, 4)), np.ones((*lead, s, 4)), np.ones((*lead, s, 2))
    expected, got = both(arrays, {}, (2, 2))
    assert_equal(expected, got)
    O, m, z = tiled_attention(*arrays, query_valid=np.zeros(t, bool))
    assert not O.any()
    assert m.shape == z.shape == (*lead, t)


def test_no_keys_at_all():
    Q, K, V = np.ones((T, D_K)), np.ones((0, D_K)), np.ones((0, D_V))
    O, m, z = tiled_attention(Q, K, V, query_valid=[False] * T)
    assert O.tolist() == [[0] * D_V] * T
    g = tiled_attention_backward(O, Q, K, V, O, m, z, query_valid=[False] * T)
    assert [x.shape for x in g] == [(T, D_K), (0, D_K), (0, D_V)]


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        ((np.float16, np.float16, np.float16), np.float16),
        ((np.float32, np.float32, np.float32), np.float32),
        ((np.float16, np.float32, np.float16), np.float32),
        ((np.float32, np.float32, np.float64), np.float64),
        ((np.float32, np.int64, np.float32), np.float64),
        ((">f8", "<f8", ">f8"), np.float64),
        ((np.longdouble, np.float64, np.float64), np.longdouble),
    ],
)
def test_the_dtype_follows_the_input(dtypes, result):
    arrays = [np.rint(2 * x).astype(t) for x, t in zip(head(2), dtypes, strict=True)]
    exact = [x.astype(float) for x in arrays]
    expected, _ = both(exact, {}, (2, 3))
    dO = np.random.default_rng(1).normal(size=expected["O"].shape).astype(arrays[0].dtype)
    forward = tiled_attention(*arrays, query_tile=2, key_tile=3)
    dO = dO.astype(result)
    g = tiled_attention_backward(dO, *arrays, *forward, query_tile=2, key_tile=3)
    assert {x.dtype for x in (forward.O, *g)} == {np.dtype(result)}
    assert forward.m.dtype == forward.z.dtype == (np.float32 if result == np.float16 else result)
    tolerance = 100 * max(np.finfo(t).eps for t in (result, arrays[0].dtype))
    tolerance = max(1e-14, float(tolerance))
    assert_equal(expected, forward._asdict() | g._asdict(), rtol=0, atol=tolerance)


def test_float16_sums_in_float32():
    n = 4099
    zeros, V = np.zeros((1, 1), np.float16), np.ones((n, 1), np.float16)
    K = np.zeros((n, 1), np.float16)
    O, _, z = tiled_attention(zeros, K, V, key_tile=10)
    assert O[0, 0] == 1
    assert z[0] == n
    Q = np.zeros((n, 1), np.float16)
    O, m, z = tiled_attention(Q, zeros, zeros, query_tile=10)
    g = tiled_attention_backward(np.ones_like(Q), Q, zeros, zeros, O, m, z, query_tile=10)
    assert g.dV[0, 0] == np.float16(n)
    Q, K = np.full((1, 4), 250, np.float16), np.full((2, 4), 250, np.float16)
    with pytest.raises(FloatingPointError, match="row 0, key 0 overflows float16"):
        tiled_attention(Q, K, V[:2])


# What comes in


@pytest.mark.parametrize("name", ["query_tile", "key_tile"])
@pytest.mark.parametrize("size", [0, -1, 2.0, "2", None, True, (2, 3)])
def test_tile_sizes_are_positive_integers(name, size):
    arrays = head()
    O, m, z = tiled_attention(*arrays)
    message = re.escape(f"{name} must be one integer, 1 or more; got {size!r}")
    for t in (T, 0):
        with pytest.raises(ValueError, match=message):
            tiled_attention(arrays[0][:t], *arrays[1:], **{name: size})
        few = O[:t], arrays[0][:t], *arrays[1:], O[:t], m[:t], z[:t]
        with pytest.raises(ValueError, match=message):
            tiled_attention_backward(*few, **{name: size})


def test_inputs_are_left_alone_and_results_are_new():
    arrays, options = everything()
    forward = tiled_attention(*arrays, **options, query_tile=2, key_tile=3)
    inputs = [*arrays, *forward, *(x for x in options.values() if isinstance(x, np.ndarray))]
    copies = [x.copy() for x in inputs]
    for x in inputs:
        x.flags.writeable = False
    again = tiled_attention(*arrays, **options, query_tile=2, key_tile=3)
    g = tiled_attention_backward(forward.O, *arrays, *forward, **options, query_tile=2, key_tile=3)
    for x, copy in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(x, copy)
        assert not any(np.shares_memory(x, result) for result in (*again, *g))
    assert all(x.flags.writeable for x in (*again, *g))


@pytest.mark.parametrize("name", ["Q", "K", "V", "O", "m", "z", "dO", "bias"])
def test_what_is_not_finite_is_named(name):
    arrays = dict(zip("QKV", head(), strict=True))
    forward = tiled_attention(**arrays)
    x = arrays | forward._asdict() | {"dO": forward.O, "bias": np.zeros((T, S))}
    x[name] = x[name].copy()
    x[name][..., 1] = np.nan
    with pytest.raises(ValueError, match=rf"{name}\[.*1\] is nan, but every number must be finite"):
        tiled_attention_backward(**x)
    if name in ("Q", "K", "V", "bias"):
        with pytest.raises(ValueError, match=rf"{name}\[0, 1\] is nan, but every number"):
            tiled_attention(**{n: x[n] for n in ("Q", "K", "V", "bias")})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Q": (T, 6)}, "the last axis of Q and K, d_k, must agree"),
        ({"V": (6, D_V)}, "K and V must have the same number of rows S"),
        ({"bias": (T, 6)}, "the last axes of bias must be (7, 11) or 1"),
        ({"query_valid": (S,)}, "the last axes of query_valid must be (7,) or 1"),
        ({"dO": (1, D_V)}, "dO must have the shape of O as tiled_attention returned it, (7, 3); g"),
        ({"O": (T, 6)}, "O must have the shape of O as tiled_attention returned it, (7, 3); got"),
        ({"m": (T, 1)}, "m must have the shape of m as tiled_attention returned it, (7,); got (7"),
        ({"z": (S,)}, "z must have the shape of z as tiled_attention returned it, (7,); got (11,)"),
    ],
)
def test_wrong_shapes_print_the_rule(changed, message):
    shapes = {"dO": (T, D_V), "Q": (T, D_K), "K": (S, D_K), "V": (S, D_V), "O": (T, D_V)}
    shapes |= {"m": (T,), "z": (T,)} | changed
    x = {n: np.ones(shape, bool if n == "query_valid" else float) for n, shape in shapes.items()}
    with pytest.raises(ValueError, match=re.escape(message)):
        tiled_attention_backward(**x)
    if not {"dO", "O", "m", "z"} & set(changed):
        with pytest.raises(ValueError, match=re.escape(message)):
            tiled_attention(**{n: x[n] for n in x if n not in ("dO", "O", "m", "z")})


def test_swapped_m_and_z_are_found():
    Q, K, V = head()
    O, m, z = tiled_attention(Q, K, V)
    with pytest.raises(
        ValueError, match=r"z\[\d\] is .*, but z is 0 for an invalid query and 1 or"
    ):
        tiled_attention_backward(O, Q, K, V, O, z, m)


@pytest.mark.parametrize("changed", ["allowed", "query_valid", "bias", "scale", "K"])
def test_the_backward_finds_that_the_forward_was_another(changed):
    arrays, options = everything()
    forward = tiled_attention(*arrays, **options, query_tile=2, key_tile=3)
    other = dict(zip("QKV", arrays, strict=True)) | options
    if changed == "allowed":
        other["allowed"] = other["allowed"] | (np.arange(S) == 9)
    elif changed == "query_valid":
        other["query_valid"] = other["query_valid"] ^ (np.arange(T) == 3)
    elif changed == "K":
        other["K"] = 1e3 * other["K"]
    else:
        other[changed] = other[changed] + 0.5
    message = r"the weights of row \(\d, \d, \d\) sum to .*, not to 1 .*: pass O, m, z with the Q"
    dO = np.ones_like(forward.O)
    with pytest.raises(ValueError, match=message):
        tiled_attention_backward(dO, **other, **forward._asdict(), query_tile=2, key_tile=3)


# Memory


def peak(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("masked", [False, True])
def test_no_array_is_as_large_as_the_scores(masked):
    n = 1500
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(n, d)) for d in (2, 2, 3))
    positions = np.arange(n)

    def causal(rows, keys):
        return masks.causal(positions[rows], positions[keys])

    allowed = causal if masked else None
    tile = {"query_tile": 64, "key_tile": 64}
    forward = tiled_attention(Q, K, V, allowed, **tile)
    tiled = peak(lambda: tiled_attention(Q, K, V, allowed, **tile))
    backward = peak(lambda: tiled_attention_backward(V, Q, K, V, *forward, allowed, **tile))
    assert max(tiled, backward) < n * n / 2  # bytes: not even booleans
    dense = attention(Q, K, V, causal(slice(n), slice(n)) if masked else None)
    np.testing.assert_allclose(forward.O, dense.O, rtol=1e-12, atol=1e-14)
    assert peak(lambda: attention(Q, K, V)) > 20 * tiled


def test_memory_does_not_grow_with_the_number_of_keys_beyond_the_inputs():
    Q = np.ones((1, 2))

    def extra(s):
        K, V = np.ones((s, 2)), np.ones((s, 3))
        return peak(lambda: tiled_attention(Q, K, V, query_tile=1, key_tile=16))

    # one boolean per number of K and V: the check that they are finite
    assert extra(8_000) - extra(2_000) < 6_000 * 3 + 1000
