"""Where a head looks: the share of its weight that falls on keys named beforehand."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
    ValueError
        No row has such a key.

    Examples
    --------
    >>> weight_on([[1.0, 0.0], [0.25, 0.75]], [[False, False], [True, False]])
    0.25
    """
    A = np.asarray(A)
    there = np.broadcast_to(np.asarray(there, dtype=bool), A.shape)
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

    Examples
    --------
    >>> previous(3).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    """
    return np.eye(T, k=-1, dtype=bool)


def after_the_same(tokens: ArrayLike) -> NDArray:
    """Return where a token stands that came after an earlier copy of this one.

    In row i the keys j <= i with x_(j-1) = x_i: what an induction head reads.

    Parameters
    ----------
    tokens : integer array, shape (..., T)

    Returns
    -------
    boolean array, shape (..., T, T)

    Examples
    --------
    In 5 7 5 the last token has an earlier copy, and after that stood the 7:

    >>> after_the_same([5, 7, 5]).astype(int).tolist()
    [[0, 0, 0], [0, 0, 0], [0, 1, 0]]
    """
    tokens = np.asarray(tokens)
    same = tokens[..., :, None] == tokens[..., None, :]
    there = np.zeros_like(same)
    there[..., 1:] = same[..., :-1]
    return there & np.tri(tokens.shape[-1], dtype=bool)
