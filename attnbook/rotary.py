"""Rotary positions: a query or key is turned by an angle that grows with its position."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook import _checks

THETA = 100_000  # of SmolLM2


def rotate(X: ArrayLike, positions: ArrayLike, theta: float = THETA) -> NDArray:
    """Return the rows of X, each turned by the angles of its position.

    Features 2p and 2p + 1 (counted from 0) are the coordinates of a point in a plane, which is
    turned by t theta^(-2p/d_k) at position t::

        (x, y) -> (x cos a - y sin a, x sin a + y cos a),   a = t theta^(-2p/d_k)

    Turning by -t takes it back, and a product of two rows depends on the difference of their
    positions: rotate(q, i) rotate(k, j)^T = q rotate(k, j - i)^T.

    Parameters
    ----------
    X : array, shape (..., T, d_k), d_k even
    positions : array, shape (T,)
    theta : float, optional
        Base of the angles, above 0. Default: that of SmolLM2.

    Returns
    -------
    float array, shape (..., T, d_k)

    Raises
    ------
    TypeError, ValueError
        d_k is odd, there is not one position for each row, theta is not above 0, or something is
        not a finite real number.
    FloatingPointError
        A result is too large for a float.

    Examples
    --------
    A quarter turn of the first plane:

    >>> rotate([[1.0, 0.0]], [np.pi / 2]).round(12).tolist()
    [[0.0, 1.0]]
    """
    X, t = (
        _checks.real_array(name, x).astype(float)
        for name, x in (("X", X), ("positions", positions))
    )
    if X.ndim < 2 or X.shape[-1] % 2 or t.shape != (X.shape[-2],):
        raise ValueError(
            "X must have shape (..., T, d_k) with an even d_k, and positions one number for each "
            f"of the T rows; got X {X.shape} and positions {t.shape}"
        )
    d_k = X.shape[-1]
    theta = _checks.real_number("theta", theta)
    if theta <= 0:
        raise ValueError(f"theta must be above 0, got {theta}")
    x, y = X[..., 0::2], X[..., 1::2]
    turned = np.empty_like(X)
    with np.errstate(over="ignore", invalid="ignore"):
        a = t[:, None] * theta ** (-np.arange(0, d_k, 2) / d_k)
        turned[..., 0::2] = x * np.cos(a) - y * np.sin(a)
        turned[..., 1::2] = x * np.sin(a) + y * np.cos(a)
    return _checks.finite_result("rotate(X)", turned, turned.dtype)
