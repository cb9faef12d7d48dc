"""Tiled attention: `attention` without its T x S arrays, by a running maximum and a running sum.

R 5.8 names the idea and leaves it open: the definition stays, the order of the computation changes.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import (
    boolean_array,
    check_some_key,
    finite_result,
    finite_scores,
    finite_weight_gradient,
    first,
    real_arrays,
    row,
    scale_or_default,
    score_shape,
    visible,
    whole_number,
)
from attnbook._product import product, sum_to
from attnbook.softmax import score_gradient


class Tiled(NamedTuple):
    """What `tiled_attention` returns: output O, and of each row the maximum m and the sum z."""

    O: NDArray
    m: NDArray
    z: NDArray


class TiledGradients(NamedTuple):
    """What `tiled_attention_backward` returns: the gradients of the loss by Q, K and V."""

    dQ: NDArray
    dK: NDArray
    dV: NDArray


@np.errstate(all="ignore")  # what overflows is found, and named if a query reads it
def tiled_attention(
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    allowed: ArrayLike | Callable[[slice, slice], ArrayLike] | None = None,
    *,
    query_valid: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
    query_tile: int = 128,
    key_tile: int = 128,
) -> Tiled:
    """Return the O of `attention`, holding the scores and weights of one tile at a time.

    R (5.3) and (5.11), each row reading the keys tile by tile. With U the scores of a tile and J
    its allowed keys, the running maximum m, sum z and output O of a row become::

        m' = max(m, max_J U),   z' = exp(m - m') z + sum_J exp(U - m'),
        O' = (exp(m - m') z / z') O + sum_J (exp(U - m') / z') V

    from m = -inf, z = 0, O = 0 on. So O is at any time what attention to the keys so far returns,
    and at the end A_ij = exp(U_ij - m_i) / z_i. There is no dropout here: use `attention`.

    Parameters
    ----------
    Q, K, V : arrays, shape (..., T, d_k), (..., S, d_k) and (..., S, d_v)
        As in `attention`.
    allowed : boolean array, or function of two slices, optional
        As in `attention`. A whole array (..., T, S) is as large as what this function avoids; a
        function is asked for allowed(rows, keys), the array of one tile, such as
        ``lambda rows, keys: masks.causal(query_positions[rows], key_positions[keys])``.
    query_valid : boolean array, shape (..., T), optional
        False = this query is padding: its row of O is zero.
    bias : array, shape (..., T, S), optional
        Finite numbers added to the scores; T or S may be 1.
    scale : float, optional
        Factor of the scores. Default: 1/sqrt(d_k).
    query_tile, key_tile : int, optional
        Numbers of queries and of keys in a tile; the last one may have fewer.

    Returns
    -------
    O : array, shape (..., T, d_v)
        Output, of the dtype that `attention` gives it.
    m, z : arrays, shape (..., T)
        Maximum of the scores that a row reads, and its sum of exp(U - m); both 0 for an invalid
        query. Of the dtype of the arithmetic, so float32 for float16. (FlashAttention keeps one
        number, L = m + log z, in which z is lost where m is large.)

    Raises
    ------
    ValueError, TypeError, FloatingPointError
        As in `attention`; or a tile size is no positive integer.

    Examples
    --------
    >>> Q, K, V = [[1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]], [[1.0], [3.0]]
    >>> tiled_attention(Q, K, V, scale=0.0, key_tile=1)
    Tiled(O=array([[2.]]), m=array([0.]), z=array([2.]))
    """
    (Q, K, V, bias), dtype = real_arrays(Q=Q, K=K, V=V, bias=bias)
    query_valid = boolean_array("query_valid", query_valid)
    shape, score_tile = _score_tiles(Q, K, V, allowed, query_valid, bias, scale, dtype)
    *lead, T, S = shape
    query_tile, key_tile = _tile_sizes(query_tile, key_tile)

    O = np.zeros((*np.broadcast_shapes(tuple(lead), V.shape[:-2]), T, V.shape[-1]), Q.dtype)
    m, z = np.full((*lead, T, 1), -np.inf, Q.dtype), np.zeros((*lead, T, 1), Q.dtype)
    for rows in _tiles(T, query_tile):
        for keys in _tiles(S, key_tile):
            Z = score_tile(rows, keys)
            if Z is not None:
                _read(Z, V[..., keys, :], *(x[..., rows, :] for x in (O, m, z)))
    check_some_key(shape, z[..., 0] > 0, query_valid)
    m[z == 0] = 0
    return Tiled(finite_result("O", O, dtype), m[..., 0], z[..., 0])


def _read(Z: NDArray, V: NDArray, O: NDArray, m: NDArray, z: NDArray) -> None:
    """Let the rows O, m, z read one more tile of keys, in place."""
    m_new = np.maximum(m, Z.max(axis=-1, keepdims=True))
    m_finite = np.where(m_new == -np.inf, 0, m_new)  # -inf: the row has read nothing yet
    e = Z - m_finite
    np.exp(e, out=e)
    before = np.exp(m - m_finite) * z
    z_new = before + np.sum(e, axis=-1, keepdims=True)
    total = np.where(z_new == 0, 1, z_new)
    np.divide(e, total, out=e)
    O_new = before / total * O + product(e, V)
    largest = np.finfo(O.dtype).max  # a mean lies between its values: beyond by rounding only
    O[...], m[...], z[...] = np.clip(O_new, -largest, largest), m_new, z_new


@np.errstate(all="ignore")
def tiled_attention_backward(
    dO: ArrayLike,
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    O: ArrayLike,
    m: ArrayLike,
    z: ArrayLike,
    allowed: ArrayLike | Callable[[slice, slice], ArrayLike] | None = None,
    *,
    query_valid: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
    query_tile: int = 128,
    key_tile: int = 128,
) -> TiledGradients:
    """Return the gradients of a loss by Q, K and V, computing the weights anew tile by tile.

    R (5.26)-(5.28); the mean of the row's dA is known before its tiles, since O = A V::

        A = exp(U - m) / z,   dA = dO V^T,   (A dA) 1 = (dO O) 1,   dU = A (dA - (dO O) 1 1^T),
        dV = A^T dO,   dQ = scale dU K,   dK = scale dU^T Q,   each summed over the tiles

    Parameters
    ----------
    dO : array, shape (..., T, d_v)
        Gradient by the output O, of O's shape.
    Q, K, V : arrays
        As given to `tiled_attention`.
    O, m, z : arrays
        As `tiled_attention` returned them.
    allowed, query_valid, bias, scale, query_tile, key_tile : optional
        As given to `tiled_attention`; the tile sizes may differ.

    Returns
    -------
    dQ, dK, dV : arrays
        Each of the shape of its variable (broadcast axes are summed).

    Raises
    ------
    ValueError, TypeError, FloatingPointError
        As in `tiled_attention`; or O, m, z are not what it returned for this mask; or a gradient
        is too large for the dtype.

    Examples
    --------
    >>> Q, K, V = [[0.0]], [[1.0], [3.0]], [[2.0], [4.0]]
    >>> forward = tiled_attention(Q, K, V, key_tile=1)
    >>> tiled_attention_backward([[1.0]], Q, K, V, *forward, key_tile=1).dQ
    array([[1.]])
    """
    (m, z), _ = real_arrays(m=m, z=z)  # for float16 they came in float32
    (dO, Q, K, V, O, bias), dtype = real_arrays(dO=dO, Q=Q, K=K, V=V, O=O, bias=bias)
    query_valid = boolean_array("query_valid", query_valid)
    shape, score_tile = _score_tiles(Q, K, V, allowed, query_valid, bias, scale, dtype)
    scale = scale_or_default(scale, Q.shape[-1])
    T, S = shape[-2:]
    query_tile, key_tile = _tile_sizes(query_tile, key_tile)
    _check_forward(shape, V, dO=dO, O=O, m=m, z=z)
    m, z = m[..., None].astype(Q.dtype, copy=False), z[..., None].astype(Q.dtype, copy=False)

    dQ, dK, dV = np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
    mean = sum_to(m.shape, product(dO[..., None, :], O[..., None])[..., 0])
    for rows in _tiles(T, query_tile):
        Q_i, dO_i, mean_i, m_i, z_i, dQ_i = (x[..., rows, :] for x in (Q, dO, mean, m, z, dQ))
        sums = np.zeros_like(z_i)
        for keys in _tiles(S, key_tile):
            Z = score_tile(rows, keys)
            if Z is None:
                continue
            K_j, V_j, dK_j, dV_j = (x[..., keys, :] for x in (K, V, dK, dV))
            A = Z - m_i
            np.exp(A, out=A)
            np.divide(A, np.where(z_i == 0, 1, z_i), out=A)
            sums += A.sum(axis=-1, keepdims=True)
            _check_sums(sums > 1, sums, z_i, rows.start)
            dV_j += sum_to(V_j.shape, product(A.mT, dO_i))
            dA = sum_to(A.shape, product(dO_i, V_j.mT))
            dA = finite_weight_gradient(dA, A, dtype, (rows.start, keys.start))
            dU = score_gradient(dA, A, mean_i)
            dQ_i += sum_to(Q_i.shape, product(dU, K_j, scale))
            dK_j += sum_to(K_j.shape, product(dU.mT, Q_i, scale))
        _check_sums(True, sums, z_i, rows.start)
    gradients = {"dQ": dQ, "dK": dK, "dV": dV}
    return TiledGradients(*(finite_result(name, x, dtype) for name, x in gradients.items()))


def _score_tiles(
    Q: NDArray,
    K: NDArray,
    V: NDArray,
    allowed: object,
    query_valid: NDArray | None,
    bias: NDArray | None,
    scale: float | None,
    dtype: np.dtype,
) -> tuple[tuple[int, ...], Callable[[slice, slice], NDArray | None]]:
    """Return the shape of the scores, and the function that makes the tile of given rows and keys.

    In a tile, what is not read is -inf; a tile of which nothing is read is None.
    """
    ask = allowed if callable(allowed) else None
    allowed = None if ask else boolean_array("allowed", allowed)
    shape = score_shape(Q=Q, K=K, V=V, allowed=allowed, query_valid=query_valid, bias=bias)
    scale = scale_or_default(scale, Q.shape[-1])
    allowed, bias = _spread(allowed, shape[-2:]), _spread(bias, shape[-2:])
    query_valid = _spread(query_valid, shape[-2:-1])

    def score_tile(rows: slice, keys: slice) -> NDArray | None:
        tile = (*shape[:-2], rows.stop - rows.start, keys.stop - keys.start)
        tile_allowed = None if allowed is None else allowed[..., rows, keys]
        if ask is not None:
            tile_allowed = np.asarray(ask(rows, keys))
        J = visible(tile, tile_allowed, None if query_valid is None else query_valid[..., rows])
        if J is not None and not J.any():
            return None
        U = product(Q[..., rows, :], K[..., keys, :].mT, scale)
        if bias is not None:
            U = U + bias[..., rows, keys]
        U = np.broadcast_to(U, tile)
        U = finite_scores(U, J, dtype, (rows.start, keys.start))
        return U if J is None or J.all() else np.where(J, U, -np.inf)

    return shape, score_tile


def _spread(x: NDArray | None, tail: tuple[int, ...]) -> NDArray | None:
    """Return a view of x with full last axes, so that tiles can be cut from it."""
    return None if x is None else np.broadcast_to(x, np.broadcast_shapes(x.shape, tail))


def _tile_sizes(query_tile: object, key_tile: object) -> tuple[int, int]:
    return whole_number("query_tile", query_tile), whole_number("key_tile", key_tile)


def _tiles(n: int, size: int) -> Iterator[slice]:
    """Return slices of so many of 0, ..., n-1, the last one perhaps of fewer."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _check_forward(shape: tuple[int, ...], V: NDArray, **arrays: NDArray) -> None:
    """Check that dO, O, m and z have the shapes that the forward gave to O, m and z."""
    lead = np.broadcast_shapes(shape[:-2], V.shape[:-2])
    for name, x in arrays.items():
        expected = shape[:-1] if name in "mz" else (*lead, shape[-2], V.shape[-1])
        if x.shape != expected:
            raise ValueError(
                f"{name} must have the shape of {name[-1]} as tiled_attention returned it, "
                f"{expected}; got {x.shape}"
            )
    z = arrays["z"]
    bad = (z < 1) & (z != 0)
    if bad.any():
        index = first(bad)
        raise ValueError(
            f"z{list(index)} is {z[index]}, but z is 0 for an invalid query and 1 or more for any "
            "other: pass O, m, z as tiled_attention returned them"
        )


def _check_sums(known: ArrayLike, sums: NDArray, z: NDArray, first_row: int) -> None:
    """Check that the weights of each row sum to 1, those of an invalid one to 0."""
    wrong = known & ~(abs(sums - (z > 0)) < 1e-3)
    if wrong.any():
        *index, _ = first(wrong, (first_row, 0))
        raise ValueError(
            f"the weights of {row(tuple(index))} sum to {sums[wrong][0]:.6g}, not to 1 (0 for an "
            "invalid query): pass O, m, z with the Q, K, allowed, query_valid, bias and scale that "
            "they came from"
        )
