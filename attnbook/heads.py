"""Many heads: split and merge, projections, shared keys and values.

MHA, GQA and MQA are one function of the number of key/value heads: H_kv = H_q, in between, or 1.
Heads are counted from 1 in formulas, from 0 in code and in g(h) = floor(h / r).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import (
    as_array,
    boolean_array,
    finite_result,
    group_size,
    real_arrays,
    whole_number,
)
from attnbook._product import product
from attnbook.attention import Attention, Gradients, attention, attention_backward


def split_heads(X: ArrayLike, H: int) -> NDArray:
    """Return X with its features cut into H heads, the heads in an axis before the rows.

    R 5.5: [B, T, H d] is read as [B, T, H, d], then T and H change places::

        split_heads(X, H)[..., h, t, p] = X[..., t, h d + p]

    So a big projection matrix (d, H d_k) becomes those of the heads, (H, d, d_k), as R (5.18)
    writes them, and split_heads(X W, H) are their products. (Reading X as [B, H, T, d] at once
    has the right shape and mixes positions.)

    Parameters
    ----------
    X : array, shape (..., T, H d)
    H : int
        Number of heads.

    Returns
    -------
    array, shape (..., H, T, d), of X's dtype

    Raises
    ------
    ValueError
        The width is no multiple of H, or X has no axis of rows.

    Examples
    --------
    >>> split_heads([[1, 2, 3, 4], [5, 6, 7, 8]], 2).tolist()
    [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    """
    X, H = as_array("X", X), whole_number("H", H)
    if X.ndim < 2:
        raise ValueError(
            f"X must have shape (..., T, H d), got {X.shape}: for one row write X[None]"
        )
    *rows, width = X.shape
    if width % H:
        raise ValueError(
            f"X has {width} features, which {H} heads cannot share evenly: the last axis of X "
            f"{X.shape} must be a multiple of H = {H}"
        )
    return X.reshape(*rows, H, width // H).swapaxes(-3, -2).copy()


def merge_heads(X: ArrayLike) -> NDArray:
    """Return the heads side by side along the features: the inverse of `split_heads`.

    R (5.20)::

        C = Concat(O^(1), ..., O^(H)),   C[..., t, h d + p] = O[..., h, t, p]

    Parameters
    ----------
    X : array, shape (..., H, T, d)

    Returns
    -------
    array, shape (..., T, H d), of X's dtype

    Raises
    ------
    ValueError
        X has no axis of heads.

    Examples
    --------
    >>> merge_heads([[[1, 2], [5, 6]], [[3, 4], [7, 8]]]).tolist()
    [[1, 2, 3, 4], [5, 6, 7, 8]]
    """
    X = as_array("X", X)
    if X.ndim < 3:
        raise ValueError(f"X must have shape (..., H, T, d), got {X.shape}: one head is X[None]")
    *lead, H, T, d = X.shape
    return X.swapaxes(-3, -2).copy().reshape(*lead, T, H * d)


def pack_projections(*W: ArrayLike) -> NDArray:
    """Return projection matrices that read the same input, side by side.

    R (5.22); packing saves no parameter and makes nothing equal::

        W_QKV = [W_Q W_K W_V],   X W_QKV = [X W_Q  X W_K  X W_V]

    Parameters
    ----------
    *W : arrays, shape (d, any width)

    Returns
    -------
    array, shape (d, sum of the widths)

    Raises
    ------
    ValueError
        The matrices do not have the same number of rows.

    Examples
    --------
    >>> pack_projections([[1], [2]], [[3, 4], [5, 6]]).tolist()
    [[1, 3, 4], [2, 5, 6]]
    """
    W = [as_array("W", w) for w in W]
    if not W or any(w.ndim != 2 or w.shape[0] != W[0].shape[0] for w in W):
        raise ValueError(
            "expected matrices (d, width) with the same d, since they read the same input; got "
            f"{', '.join(str(w.shape) for w in W) or 'none'}"
        )
    return np.concatenate(W, axis=1)


def unpack_projections(W: ArrayLike, widths: Sequence[int]) -> list[NDArray]:
    """Return the parts that stand side by side in W: the inverse of `pack_projections`.

    The same cut takes X W_QKV, of shape (..., T, sum of the widths), into Q, K and V.

    Parameters
    ----------
    W : array, shape (..., sum of the widths)
    widths : sequence of int
        Widths of the parts, such as (H_q d_k, H_kv d_k, H_kv d_v).

    Returns
    -------
    list of arrays, shape (..., width)

    Raises
    ------
    ValueError
        The widths do not add up to the last axis of W.

    Examples
    --------
    >>> [w.tolist() for w in unpack_projections([[1, 3, 4], [2, 5, 6]], (1, 2))]
    [[[1], [2]], [[3, 4], [5, 6]]]
    """
    W = as_array("W", W)
    widths = [whole_number("a width", n, least=0) for n in widths]
    if W.ndim == 0 or sum(widths) != W.shape[-1]:
        raise ValueError(
            f"the widths {widths} add up to {sum(widths)}, but must add up to the last axis of W, "
            f"whose shape is {W.shape}"
        )
    return [part.copy() for part in np.split(W, np.cumsum(widths)[:-1], axis=-1)]


def grouped_attention(
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    allowed: ArrayLike | None = None,
    *,
    query_valid: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
    keep: ArrayLike | None = None,
    keep_prob: float = 1.0,
) -> Attention:
    """Return `attention` per query head, where r query heads share one key/value head.

    R (5.36), h = 0, ..., H_q - 1; H_kv = H_q is MHA, H_kv = 1 is MQA, between them is GQA::

        O^(h) = softmax(scale Q^(h) K^(g(h))^T) V^(g(h)),   g(h) = floor(h / r),   r = H_q / H_kv

    Parameters
    ----------
    Q : array, shape (..., H_q, T, d_k)
        Queries. Leading axes of all arrays broadcast.
    K, V : arrays, shape (..., H_kv, S, d_k) and (..., H_kv, S, d_v)
        Keys and values, once per key/value head.
    allowed, query_valid, bias, scale, keep, keep_prob : optional
        As in `attention`, for scores of shape (..., H_q, T, S). A mask for all heads of a batch
        keeps an axis for the heads: (B, 1, T, S).

    Returns
    -------
    O, A, U : arrays, shape (..., H_q, T, d_v), (..., H_q, T, S) and (..., H_q, T, S)

    Raises
    ------
    ValueError
        H_q is no multiple of H_kv, it is not clear whether an axis of a mask is batch or head, or
        as in `attention`.
    TypeError, FloatingPointError
        As in `attention`.

    Examples
    --------
    >>> Q, K, V = np.zeros((4, 1, 2)), np.zeros((2, 3, 2)), [[[1.0]] * 3, [[2.0]] * 3]
    >>> grouped_attention(Q, K, V).O[:, 0, 0]
    array([1., 1., 2., 2.])
    """
    Q, K, V = (as_array(name, x) for name, x in (("Q", Q), ("K", K), ("V", V)))
    g = _group(Q, K, V)
    lead = max(Q.ndim, K.ndim) - 2
    _check_head_axis(lead, allowed=allowed, query_valid=query_valid, bias=bias, keep=keep)
    return attention(
        Q,
        np.take(K, g, axis=-3),
        np.take(V, g, axis=-3),
        allowed,
        query_valid=query_valid,
        bias=bias,
        scale=scale,
        keep=keep,
        keep_prob=keep_prob,
    )


def grouped_attention_backward(
    dO: ArrayLike,
    Q: ArrayLike,
    K: ArrayLike,
    V: ArrayLike,
    A: ArrayLike,
    *,
    scale: float | None = None,
    keep: ArrayLike | None = None,
    keep_prob: float = 1.0,
) -> Gradients:
    """Return the gradients of a loss by Q, K, V, A and U, from its gradient dO by the outputs.

    Per query head R (5.26)-(5.28); a shared key/value head gets the sum over its query heads::

        dK^(g) = sum_{h : g(h) = g} dK^(h),   dV^(g) = sum_{h : g(h) = g} dV^(h)

    Parameters
    ----------
    dO : array, shape (..., H_q, T, d_v)
    Q, K, V : arrays
        As given to `grouped_attention`.
    A : array, shape (..., H_q, T, S)
        The weights that `grouped_attention` returned.
    scale, keep, keep_prob : optional
        As given to `grouped_attention`.

    Returns
    -------
    dQ, dK, dV, dA, dU : arrays
        Each of the shape of its variable.

    Raises
    ------
    ValueError, TypeError, FloatingPointError
        As in `grouped_attention` and `attention_backward`.

    Examples
    --------
    Both query heads read the one value, so its gradient counts both:

    >>> Q, K, V = np.zeros((2, 1, 1)), np.zeros((1, 1, 1)), np.ones((1, 1, 1))
    >>> grouped_attention_backward(Q + 1, Q, K, V, Q + 1).dV
    array([[[2.]]])
    """
    Q, K, V = (as_array(name, x) for name, x in (("Q", Q), ("K", K), ("V", V)))
    g = _group(Q, K, V)
    heads = attention_backward(
        dO,
        Q,
        np.take(K, g, axis=-3),
        np.take(V, g, axis=-3),
        A,
        scale=scale,
        keep=keep,
        keep_prob=keep_prob,
    )
    return heads._replace(
        dK=_sum_over_groups("dK", heads.dK, K.shape), dV=_sum_over_groups("dV", heads.dV, V.shape)
    )


def _group(Q: NDArray, K: NDArray, V: NDArray) -> NDArray[np.intp]:
    """Return g: query head h reads key/value head g[h]."""
    shapes = f"got Q {Q.shape}, K {K.shape}, V {V.shape}"
    if min(Q.ndim, K.ndim, V.ndim) < 3:
        raise ValueError(
            "Q, K and V need an axis of heads, (..., H_q, T, d_k), (..., H_kv, S, d_k) and "
            f"(..., H_kv, S, d_v): one head is Q[None]; {shapes}"
        )
    H_q, H_kv = Q.shape[-3], K.shape[-3]
    if V.shape[-3] != H_kv:
        raise ValueError(f"K and V must have the same number of heads H_kv; {shapes}")
    return np.arange(H_q) // group_size(H_q, H_kv)


def _check_head_axis(lead: int, **masks: object) -> None:
    """Check that a mask with leading axes has all of them: one for the heads too."""
    for name, x in masks.items():
        shape = () if x is None else as_array(name, x).shape
        own = 1 if name == "query_valid" else 2
        if len(shape) < lead + own and any(n != 1 for n in shape[:-own]):
            raise ValueError(
                f"{name} of shape {shape} lacks an axis: is its first one the batch or the heads? "
                f"The scores have {lead} axes before T and S, the heads being the last of these: "
                f"for all heads alike write {name}[..., None, {':, :' if own == 2 else ':'}]"
            )


def _sum_over_groups(name: str, dX: NDArray, shape: tuple[int, ...]) -> NDArray:
    *lead, H_kv, S, d = shape
    members = dX.reshape(*lead, H_kv, dX.shape[-3] // H_kv, S, d)
    return finite_result(name, members.sum(axis=-3, dtype=np.result_type(dX, np.float32)), dX.dtype)


class MultiHead(NamedTuple):
    """What `multi_head_attention` returns: Y = C W_O, C = the O side by side, per head the rest."""

    Y: NDArray
    C: NDArray
    O: NDArray
    A: NDArray
    U: NDArray
    Q: NDArray
    K: NDArray
    V: NDArray


class MultiHeadGradients(NamedTuple):
    """What `multi_head_attention_backward` returns; dQ, dK, dV, dA and dU are per head."""

    dX_q: NDArray
    dX_m: NDArray
    dW_Q: NDArray
    dW_K: NDArray
    dW_V: NDArray
    dW_O: NDArray
    dQ: NDArray
    dK: NDArray
    dV: NDArray
    dA: NDArray
    dU: NDArray


@np.errstate(all="ignore")  # what overflows is found and named
def multi_head_attention(
    X_q: ArrayLike,
    X_m: ArrayLike,
    W_Q: ArrayLike,
    W_K: ArrayLike,
    W_V: ArrayLike,
    W_O: ArrayLike,
    allowed: ArrayLike | None = None,
    *,
    H_q: int,
    H_kv: int | None = None,
    query_valid: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
    keep: ArrayLike | None = None,
    keep_prob: float = 1.0,
) -> MultiHead:
    """Return what H_q heads read together, with everything on the way to it.

    R (5.18)-(5.20), with shared keys and values R (5.36); self-attention is X_q = X_m::

        Q = X_q W_Q,   K = X_m W_K,   V = X_m W_V,   cut into heads,
        O^(h) = softmax(scale Q^(h) K^(g(h))^T) V^(g(h)),   C = Concat(O^(1), ..., O^(H_q)),
        Y = C W_O = sum_h O^(h) W_O^(h)   (5.21)

    Parameters
    ----------
    X_q : array, shape (..., T, d_q)
        Query-side input.
    X_m : array, shape (..., S, d_m)
        Key/value-side input. Leading axes broadcast.
    W_Q : array, shape (d_q, H_q d_k)
        The heads lie side by side: `split_heads` shows each, `merge_heads` makes W_Q of them.
    W_K, W_V : arrays, shape (d_m, H_kv d_k) and (d_m, H_kv d_v)
    W_O : array, shape (H_q d_v, d)
    allowed : boolean array, shape (T, S) or (..., H_q or 1, T, S), optional
        True = this query may read this key. Default: all.
    H_q : int
        Number of query heads.
    H_kv : int, optional
        Number of key/value heads, a divisor of H_q. Default: H_q.
    query_valid : boolean array, shape (..., T), optional
        False = this row of X_q is padding: its rows of A, O, C and Y are zero. Without an axis of
        heads.
    bias : array, shape (T, S) or (..., H_q or 1, T, S), optional
        Finite numbers added to the scores.
    scale : float, optional
        Factor of the scores. Default: 1/sqrt(d_k).
    keep : boolean array, shape (T, S) or (..., H_q or 1, T, S), optional
        Dropout mask of the weights: False = dropped.
    keep_prob : float, optional
        Probability with which keep was drawn.

    Returns
    -------
    Y : array, shape (..., T, d)
    C : array, shape (..., T, H_q d_v)
    O, A, U : arrays, shape (..., H_q, T, d_v), (..., H_q, T, S) and (..., H_q, T, S)
        As in `attention`, for each query head.
    Q, K, V : arrays, shape (..., H_q, T, d_k), (..., H_kv, S, d_k) and (..., H_kv, S, d_v)

    All of the dtype that numpy gives the arrays together. Of float16, products and sums are
    computed in float32.

    Raises
    ------
    ValueError
        Widths or numbers of heads do not fit, or as in `attention`.
    TypeError, FloatingPointError
        As in `attention`.

    Examples
    --------
    >>> X, I = np.array([[0.0, 4.0], [2.0, 8.0]]), np.eye(2)
    >>> multi_head_attention(X, X, 0 * I, I, I, I, H_q=2).Y
    array([[1., 6.],
           [1., 6.]])
    """
    H_q = whole_number("H_q", H_q)
    H_kv = H_q if H_kv is None else whole_number("H_kv", H_kv)
    (X_q, X_m, W_Q, W_K, W_V, W_O, bias), dtype = real_arrays(
        X_q=X_q, X_m=X_m, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, bias=bias
    )
    _check_widths(H_q, H_kv, X_q=X_q, X_m=X_m, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O)
    query_valid = boolean_array("query_valid", query_valid)
    if query_valid is not None and query_valid.ndim > 0:
        query_valid = query_valid[..., None, :]

    Q = split_heads(finite_result("X_q W_Q", product(X_q, W_Q), dtype), H_q)
    K = split_heads(finite_result("X_m W_K", product(X_m, W_K), dtype), H_kv)
    V = split_heads(finite_result("X_m W_V", product(X_m, W_V), dtype), H_kv)
    O, A, U = grouped_attention(
        Q,
        K,
        V,
        allowed,
        query_valid=query_valid,
        bias=bias,
        scale=scale,
        keep=keep,
        keep_prob=keep_prob,
    )
    C = merge_heads(O)
    Y = finite_result("Y", product(C.astype(W_O.dtype, copy=False), W_O), dtype)
    return MultiHead(Y, C, O, A, U, Q, K, V)


@np.errstate(all="ignore")
def multi_head_attention_backward(
    dY: ArrayLike,
    X_q: ArrayLike,
    X_m: ArrayLike,
    W_Q: ArrayLike,
    W_K: ArrayLike,
    W_V: ArrayLike,
    W_O: ArrayLike,
    forward: MultiHead,
    *,
    scale: float | None = None,
    keep: ArrayLike | None = None,
    keep_prob: float = 1.0,
) -> MultiHeadGradients:
    """Return the gradients of a loss by inputs and projections, from its gradient dY by Y.

    R (5.29), (5.30) and R 5.7, the gradients of the heads being merged along the features::

        dW_O = C^T dY,   dC = dY W_O^T, cut into the dO^(h), from which dQ, dK and dV follow,
        dW_Q = X_q^T dQ,   dW_K = X_m^T dK,   dW_V = X_m^T dV,
        dX_q = dQ W_Q^T,   dX_m = dK W_K^T + dV W_V^T

    Weights collect over the batch, inputs over the heads, shared keys and values over the query
    heads of their group. In self-attention X = X_q = X_m, so dX = dX_q + dX_m, R (5.31).

    Parameters
    ----------
    dY : array, shape (..., T, d)
        Gradient by the output Y, of Y's shape.
    X_q, X_m, W_Q, W_K, W_V, W_O : arrays
        As given to `multi_head_attention`.
    forward : MultiHead
        What `multi_head_attention` returned for them: Q, K, V, A and C are used.
    scale, keep, keep_prob : optional
        As given to `multi_head_attention`: the same dropout mask, not a new one.

    Returns
    -------
    dX_q, dX_m, dW_Q, dW_K, dW_V, dW_O, dQ, dK, dV, dA, dU : arrays
        Each of the shape of its variable. dU is the gradient by the bias too.

    Raises
    ------
    ValueError
        A shape does not fit, or a number is not finite.
    TypeError
        forward is not what `multi_head_attention` returned, or an array is not real.
    FloatingPointError
        A gradient is too large for the dtype.

    Examples
    --------
    >>> X, W = np.array([[1.0, 2.0]]), np.eye(2)
    >>> forward = multi_head_attention(X, X, W, W, W, W, H_q=2)
    >>> multi_head_attention_backward([[1.0, 10.0]], X, X, W, W, W, W, forward).dW_V
    array([[ 1., 10.],
           [ 2., 20.]])
    """
    if not isinstance(forward, MultiHead):
        raise TypeError(
            "forward must be the MultiHead that multi_head_attention returned, got "
            f"{type(forward).__name__}"
        )
    (dY, X_q, X_m, W_Q, W_K, W_V, W_O, C), dtype = real_arrays(
        dY=dY, X_q=X_q, X_m=X_m, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, C=forward.C
    )
    H_q, H_kv = forward.Q.shape[-3], forward.K.shape[-3]
    _check_widths(H_q, H_kv, X_q=X_q, X_m=X_m, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O)
    _check_forward(dY, X_q, X_m, W_Q, W_V, W_O, forward)

    dW_O = _weight_gradient(C, dY)
    dO = split_heads(finite_result("dC", product(dY, W_O.mT), dtype), H_q)
    heads = grouped_attention_backward(
        dO,
        forward.Q,
        forward.K,
        forward.V,
        forward.A,
        scale=scale,
        keep=keep,
        keep_prob=keep_prob,
    )
    dQ, dK, dV = (
        merge_heads(x).astype(dY.dtype, copy=False) for x in (heads.dQ, heads.dK, heads.dV)
    )
    gradients = {
        "dX_q": product(dQ, W_Q.mT),
        "dX_m": product(dK, W_K.mT) + product(dV, W_V.mT),
        "dW_Q": _weight_gradient(X_q, dQ),
        "dW_K": _weight_gradient(X_m, dK),
        "dW_V": _weight_gradient(X_m, dV),
        "dW_O": dW_O,
    }
    return MultiHeadGradients(
        **{name: finite_result(name, x, dtype) for name, x in gradients.items()}, **heads._asdict()
    )


def _weight_gradient(X: NDArray, dZ: NDArray) -> NDArray:
    """Return X^T dZ, the gradient by W of Z = X W, summed over all rows of all leading axes."""
    rows = math.prod(X.shape[:-1])
    return product(X.reshape(rows, X.shape[-1]).mT, dZ.reshape(rows, dZ.shape[-1]))


def _check_widths(H_q: int, H_kv: int, **arrays: NDArray) -> None:
    def refuse(rule: str) -> NoReturn:
        came = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
        raise ValueError(
            f"{rule}; expected X_q (..., T, d_q), X_m (..., S, d_m), W_Q (d_q, H_q d_k), W_K (d_m, "
            f"H_kv d_k), W_V (d_m, H_kv d_v), W_O (H_q d_v, d), got {came}, H_q = {H_q}, H_kv = "
            f"{H_kv}"
        )

    group_size(H_q, H_kv)
    for name, x in arrays.items():
        if name.startswith("X") and x.ndim < 2:
            refuse(f"{name} needs an axis for its rows: for one row write {name}[None]")
        if name.startswith("W") and x.ndim != 2:
            refuse(f"{name} must be one matrix: merge_heads puts those of the heads side by side")
    for x, w in (("X_q", "W_Q"), ("X_m", "W_K"), ("X_m", "W_V")):
        if arrays[x].shape[-1] != arrays[w].shape[0]:
            refuse(f"the width of {x} must be the number of rows of {w}")
    widths = {}
    for w, name, H in (("W_Q", "H_q", H_q), ("W_K", "H_kv", H_kv), ("W_V", "H_kv", H_kv)):
        widths[w], rest = divmod(arrays[w].shape[1], H)
        if rest:
            refuse(f"the number of columns of {w} must be a multiple of {name} = {H}")
    if widths["W_Q"] != widths["W_K"]:
        refuse(
            f"a head of W_Q has {widths['W_Q']} columns, one of W_K {widths['W_K']}, but both are "
            "d_k"
        )
    if arrays["W_O"].shape[0] != H_q * widths["W_V"]:
        refuse(f"W_O must have H_q d_v = {H_q * widths['W_V']} rows")
    try:
        np.broadcast_shapes(arrays["X_q"].shape[:-2], arrays["X_m"].shape[:-2])
    except ValueError:
        refuse("the leading axes of X_q and X_m must broadcast together")


def _check_forward(
    dY: NDArray,
    X_q: NDArray,
    X_m: NDArray,
    W_Q: NDArray,
    W_V: NDArray,
    W_O: NDArray,
    forward: MultiHead,
) -> None:
    """Check that forward has the shapes that these inputs give, and dY that of its Y."""
    H_q, H_kv = forward.Q.shape[-3], forward.K.shape[-3]
    for name, X, W, H in (("Q", X_q, W_Q, H_q), ("V", X_m, W_V, H_kv)):
        *lead, n, _ = X.shape
        shape, came = (*lead, H, n, W.shape[1] // H), getattr(forward, name).shape
        if came != shape:
            raise ValueError(
                f"forward.{name} has shape {came}, but these inputs give {shape}: pass what "
                "multi_head_attention returned for the same inputs"
            )
    shape = (*forward.C.shape[:-1], W_O.shape[1])
    if dY.shape != shape:
        raise ValueError(f"dY must have the shape of the output Y, {shape}; got {dY.shape}")
