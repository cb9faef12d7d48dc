"""Softmax over an allowed set of keys, and its backward.

A forbidden key takes no part: not in the maximum, not in the exponential, not in the sum.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import check_weights, keys_read, real_arrays


@np.errstate(all="ignore")  # exp(-1e308) = 0 is the right answer, whatever the caller's settings
def softmax(
    U: ArrayLike, allowed: ArrayLike | None = None, *, query_valid: ArrayLike | None = None
) -> NDArray:
    r"""Return the weights A of the scores U, one softmax per row over its allowed keys.

    R (5.11), with every key allowed (5.9), J_i being the allowed keys of row i::

        A_ij = exp(U_ij - m_i) / sum_{r in J_i} exp(U_ir - m_i),   m_i = max_{r in J_i} U_ir

    and A_ij = 0 for a forbidden key j. A row that is no valid query is zero throughout.

    Parameters
    ----------
    U : array, shape (..., S)
        Scores, usually (..., T, S); finite.
    allowed : boolean array, optional
        True = this query may read this key; broadcasts to the shape of U. Default: all keys.
    query_valid : boolean array, optional
        False = this row is padding; broadcasts to U's shape without its last axis. Default: True.

    Returns
    -------
    A : array, shape of U
        Weights: not negative, each valid row sums to 1. Of U's dtype, float64 for integers.

    Raises
    ------
    ValueError
        A valid row has no allowed key, U is not finite, or a shape does not fit.
    TypeError
        U is not real, or allowed or query_valid not boolean.

    Examples
    --------
    >>> softmax([[0.0, 0.0, 5.0]], [[True, True, False]])
    array([[0.5, 0.5, 0. ]])
    """
    (U,), dtype = real_arrays(U=U)
    if U.ndim == 0:
        raise ValueError("U must be a row of scores or more, shape (..., S); got one number")
    J = keys_read(U.shape, allowed, query_valid)
    return row_softmax(U, J).astype(dtype, copy=False)


def row_softmax(U: NDArray, J: NDArray | None) -> NDArray:
    """Return the softmax of finite scores over the keys that J says are read (None: all)."""
    Z = U if J is None else np.where(J, U, -np.inf)
    m = np.max(Z, axis=-1, keepdims=True, initial=-np.inf)
    if J is not None:
        m[m == -np.inf] = 0  # a row that reads nothing: exp(-inf - 0) = 0
    e = Z - m
    np.exp(e, out=e)
    z = np.sum(e, axis=-1, keepdims=True)
    if J is not None:
        z[z == 0] = 1
    return np.divide(e, z, out=e)


@np.errstate(all="ignore")
def softmax_backward(dA: ArrayLike, A: ArrayLike) -> NDArray:
    r"""Return the gradient dU by the scores, from the gradient dA by the weights.

    R (5.25), by rows (5.27); the Jacobian of a row is diag(a) - a^T a, R (5.24)::

        dU_ij = A_ij (dA_ij - sum_r A_ir dA_ir)

    A key without weight (forbidden, or in a row of zeros) passes on exactly zero.

    Parameters
    ----------
    dA : array, shape (..., S)
        Gradient by the weights; finite.
    A : array, shape (..., S)
        The weights that `softmax` returned.

    Returns
    -------
    dU : array, shape (..., S)
        Gradient by the scores: each row sums to zero.

    Raises
    ------
    ValueError
        The shapes differ, a number is not finite, or a row of A neither sums to 1 nor is zero.

    Examples
    --------
    >>> softmax_backward([[1.0, 0.0, 7.0]], [[0.5, 0.5, 0.0]])
    array([[ 0.25, -0.25,  0.  ]])
    """
    given = A
    (dA, A), dtype = real_arrays(dA=dA, A=A)
    check_weights(A, given)
    if dA.shape != A.shape:
        raise ValueError(f"dA and A must have one shape (..., S); got dA {dA.shape}, A {A.shape}")
    return row_softmax_backward(dA, A).astype(dtype, copy=False)


def row_softmax_backward(dA: NDArray, A: NDArray) -> NDArray:
    """Return the gradient by the scores, of finite gradients by the weights."""
    return score_gradient(dA, A, np.vecdot(A, dA)[..., None])


def score_gradient(dA: NDArray, A: NDArray, mean: NDArray) -> NDArray:
    """Return A (dA - mean), where mean is that of dA in its row: finite, since dA is."""
    limits = np.finfo(dA.dtype)
    if (abs(mean) < limits.max * limits.eps / 4).all():  # too small to make dA - mean overflow
        dU = dA - mean
        dU *= A
    else:
        # In quarters, since dA - mean may be twice as large as dA, but dU is not. The mean lies
        # between the numbers of its row: it is out of range by rounding only.
        mean = np.clip(mean, -limits.max, limits.max)
        dU = 4 * (A * (dA / 4 - mean / 4))
    return np.add(dU, 0, out=dU)  # a key without weight gets 0, never -0


@np.errstate(all="ignore")
def entropy(A: ArrayLike) -> NDArray:
    r"""Return the entropy of each row of weights, in nats.

    It is 0 for a row that gives all weight to one key and log S for equal weights::

        H_i = -sum_j A_ij log A_ij,   0 log 0 = 0

    Parameters
    ----------
    A : array, shape (..., S)
        Weights; each row sums to 1 or is zero throughout (its entropy is 0).

    Returns
    -------
    H : array, shape (...)

    Raises
    ------
    ValueError
        A row neither sums to 1 nor is zero, or a number is not finite.

    Examples
    --------
    >>> entropy([[0.5, 0.5], [0.0, 1.0]]).round(3)
    array([0.693, 0.   ])
    """
    given = A
    (A,), dtype = real_arrays(A=A)
    check_weights(A, given)
    logs = np.log(A, where=A > 0, out=np.zeros_like(A))
    return np.abs(np.sum(A * logs, axis=-1)).astype(dtype)
