"""One attention head over any leading axes: forward and backward side by side."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import (
    boolean_array,
    check_gradient_shapes,
    check_weights,
    dropout_arguments,
    finite_result,
    finite_scores,
    finite_weight_gradient,
    keys_read,
    real_arrays,
    scale_or_default,
    score_shape,
)
from attnbook._product import kept, product, sum_to
from attnbook.softmax import row_softmax, row_softmax_backward


class Attention(NamedTuple):
    """What `attention` returns: output O, weights A before dropout, scores U before masking."""

    O: NDArray
    A: NDArray
    U: NDArray


class Gradients(NamedTuple):
    """What `attention_backward` returns: the gradients of the loss by Q, K, V, A and U."""

    dQ: NDArray
    dK: NDArray
    dV: NDArray
    dA: NDArray
    dU: NDArray


@np.errstate(all="ignore")  # what overflows is found, and named if a query reads it
def attention(
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
    r"""Return what each query reads: the mean of the values, weighted by softmax of the scores.

    R (5.3), softmax over the allowed keys by R (5.11), dropout as in R 5.2::

        U = scale Q K^T + bias,   A = softmax(U),   O = (keep A / keep_prob) V

    Parameters
    ----------
    Q : array, shape (..., T, d_k)
        Queries. Leading axes of all arrays broadcast.
    K : array, shape (..., S, d_k)
        Keys.
    V : array, shape (..., S, d_v)
        Values.
    allowed : boolean array, shape (..., T, S), optional
        True = this query may read this key (see `attnbook.masks`); T or S may be 1. Default: all.
    query_valid : boolean array, shape (..., T), optional
        False = this query is padding: its rows of A and O are zero. Default: all True.
    bias : array, shape (..., T, S), optional
        Finite numbers added to the scores.
    scale : float, optional
        Factor of the scores, any finite number. Default: 1/sqrt(d_k).
    keep : boolean array, shape (..., T, S), optional
        Dropout mask: False = this weight is dropped.
    keep_prob : float, optional
        Probability with which keep was drawn, in (0, 1].

    Returns
    -------
    O : array, shape (..., T, d_v)
        Output.
    A : array, shape (..., T, S)
        Weights before dropout: rows of valid queries sum to 1.
    U : array, shape (..., T, S)
        Scores before masking. Where one overflows and is not read, the largest finite number.

    All of the dtype that numpy gives the arrays Q, K, V and bias together; float64 for integers and
    Python numbers. Of float16, products and sums are computed in float32.

    Raises
    ------
    ValueError
        A number is not finite, a shape does not fit, or a valid query has no allowed key.
    TypeError
        An array is not real, or a mask is not boolean.
    FloatingPointError
        A score that is read, or an output after dropout, is too large for the dtype.

    Examples
    --------
    >>> O, A, U = attention([[1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]], [[1.0], [3.0]], scale=0.0)
    >>> A
    array([[0.5, 0.5]])
    >>> O
    array([[2.]])
    """
    (Q, K, V, bias), dtype = real_arrays(Q=Q, K=K, V=V, bias=bias)
    allowed = boolean_array("allowed", allowed)
    query_valid = boolean_array("query_valid", query_valid)
    keep, keep_prob = dropout_arguments(keep, keep_prob)
    shape = score_shape(
        Q=Q, K=K, V=V, allowed=allowed, query_valid=query_valid, bias=bias, keep=keep
    )
    scale = scale_or_default(scale, Q.shape[-1])

    U = product(Q, K.mT, scale)
    if bias is not None:
        U = U + bias
    if U.shape != shape:
        U = np.broadcast_to(U, shape).copy()
    J = keys_read(shape, allowed, query_valid)
    U = finite_scores(U, J, dtype)
    A = row_softmax(U, J)
    O = product(kept(A, keep), V, 1 / keep_prob)
    if keep is None:  # a mean lies between its values: beyond the range by rounding only
        O = np.clip(O, -np.finfo(O.dtype).max, np.finfo(O.dtype).max)
    O = finite_result("O", O, dtype)
    return Attention(O, A.astype(dtype, copy=False), U.astype(dtype, copy=False))


@np.errstate(all="ignore")
def attention_backward(
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
    r"""Return the gradients of a loss by Q, K, V, A and U, from its gradient dO by the output.

    R (5.26), (5.27), (5.28); with A' = keep A / keep_prob, which is A without dropout::

        dV = A'^T dO,   dA = (keep / keep_prob) dO V^T,   dU = A (dA - (A dA) 1 1^T),
        dQ = scale dU K,   dK = scale dU^T Q

    A row of zeros in A is an invalid query: its gradients, dA too, are zero. A key without weight
    gets dU = 0, and dA = 0 if dO V^T overflows there.

    Parameters
    ----------
    dO : array, shape (..., T, d_v)
        Gradient by the output O, of O's shape.
    Q, K, V : arrays
        As given to `attention`.
    A : array, shape (..., T, S)
        The weights that `attention` returned, before dropout.
    scale, keep, keep_prob : optional
        As given to `attention`: the same dropout mask, not a new one.

    Returns
    -------
    dQ, dK, dV, dA, dU : arrays
        Each of the shape of its variable (broadcast axes are summed). dU, summed over the axes
        along which the bias was broadcast, is the gradient by the bias too.

    Raises
    ------
    ValueError
        A number is not finite, a shape does not fit, or a row of A neither sums to 1 nor is zero.
    TypeError
        An array is not real, or keep is not boolean.
    FloatingPointError
        A gradient is too large for the dtype.

    Examples
    --------
    >>> Q, K, V = [[0.0]], [[1.0], [3.0]], [[2.0], [4.0]]
    >>> A = attention(Q, K, V).A
    >>> attention_backward([[1.0]], Q, K, V, A).dQ
    array([[1.]])
    """
    given = A
    (dO, Q, K, V, A), dtype = real_arrays(dO=dO, Q=Q, K=K, V=V, A=A)
    check_weights(A, given)
    keep, keep_prob = dropout_arguments(keep, keep_prob)
    check_gradient_shapes(dO=dO, Q=Q, K=K, V=V, A=A, keep=keep)
    scale = scale_or_default(scale, Q.shape[-1])

    dV = product(kept(A, keep).mT, dO, 1 / keep_prob)
    dA = sum_to(A.shape, kept(product(dO, V.mT, 1 / keep_prob), keep))
    dA = finite_weight_gradient(dA, A, dtype)
    dU = row_softmax_backward(dA, A)
    dQ = product(dU, K, scale)
    dK = product(dU.mT, Q, scale)
    return Gradients(
        finite_result("dQ", sum_to(Q.shape, dQ), dtype),
        finite_result("dK", sum_to(K.shape, dK), dtype),
        finite_result("dV", sum_to(V.shape, dV), dtype),
        dA.astype(dtype, copy=False),
        dU.astype(dtype, copy=False),
    )
