"""Where a head looks: the share of its weight that falls on keys named beforehand."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import as_array, check_weights, real_array, whole_number


def weight_on(A: ArrayLike, there: ArrayLike) -> float:
    """Return the weight that rows give to the keys named, on average over rows that have some.

    With n the number of rows i for which a key j is named::

        (1/n) sum_i sum_j A_ij [there_ij]

    Parameters
    ----------
    A : array, shape (..., T, S)
        Weights; each row sums to 1.
    there : boolean array, shape (T, S) or (..., T, S)

    Returns
    -------
    float
        1: all weight lies there. Equal weights give the share of keys that are named.

    Raises
    ------
    TypeError
        there is not boolean.
    ValueError
        No row has such a key, A holds no weights, or the shapes do not fit.

    Examples
    --------
    >>> weight_on([[1.0, 0.0], [0.25, 0.75]], [[False, False], [True, False]])
    0.25
    """
    given, A, there = A, real_array("A", A), as_array("there", there)
    check_weights(A, given)
    if there.dtype != bool:
        raise TypeError(
            "there must be boolean, True = the weight on this key counts; got dtype "
            f"{there.dtype}: compare it (there == 1)"
        )
    if there.ndim > A.ndim or any(
        n not in (1, size) for n, size in zip(there.shape[::-1], A.shape[::-1], strict=False)
    ):
        raise ValueError(
            f"expected there of shape (T, S) or that of A, (..., T, S); got {there.shape} for A "
            f"{A.shape}: a mask per sequence, (B, T, S), becomes there[:, None] for weights by head"
        )
    there = np.broadcast_to(there, A.shape)
    rows = there.any(axis=-1)
    if not rows.any():
        raise ValueError("there names no key in any row: there is nothing to average")
    return float((A * there).sum(axis=-1)[rows].mean())


def previous(T: int) -> NDArray:
    """Return where the token before stands: in row i the key i - 1.

    Parameters
    ----------
    T : int

    Returns
    -------
    boolean array, shape (T, T)

    Raises
    ------
    ValueError
        T is no integer from 1 on.

    Examples
    --------
    >>> previous(3).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    """
    return np.eye(whole_number("T", T), k=-1, dtype=bool)


def after_the_same(tokens: ArrayLike) -> NDArray:
    """Return where a token stands that came after an earlier copy of this one.

    In row i the keys j <= i with x_(j-1) = x_i: what an induction head reads.

    Parameters
    ----------
    tokens : array of integers or texts, shape (..., T)

    Returns
    -------
    boolean array, shape (..., T, T)

    Raises
    ------
    ValueError
        tokens are neither integers nor texts, or they stand in no row.

    Examples
    --------
    In 5 7 5 the last token has an earlier copy, and after that stood the 7:

    >>> after_the_same([5, 7, 5]).astype(int).tolist()
    [[0, 0, 0], [0, 0, 0], [0, 1, 0]]
    """
    tokens = as_array("tokens", tokens)
    if tokens.dtype.kind not in "iuU" or tokens.ndim == 0:
        raise ValueError(
            "tokens must be integers or texts of shape (..., T); got dtype "
            f"{tokens.dtype}, shape {tokens.shape}: numbers of tokens are made with "
            ".astype(int)"
        )
    same = tokens[..., :, None] == tokens[..., None, :]
    there = np.zeros_like(same)
    there[..., 1:] = same[..., :-1]
    return there & np.tri(tokens.shape[-1], dtype=bool)
