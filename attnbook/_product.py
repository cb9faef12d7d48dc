"""Products of stacks of matrices, and what their gradients need: one place for every product."""

import math
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray


def product(X: NDArray, Y: NDArray, scale: float = 1.0) -> NDArray:
    """Return scale X Y, infinite only where this number itself is too large for the dtype."""
    P = X @ Y
    if scale != 1:
        P *= scale
    if _sums_are_finite(X, Y, P) or np.isfinite(P).all():
        return P
    rows = np.broadcast_to(X, (*P.shape[:-1], X.shape[-1]))
    columns = np.broadcast_to(Y.mT, (*P.shape[:-2], *Y.mT.shape[-2:]))
    for *lead, i, j in np.argwhere(~np.isfinite(P)):
        # Perhaps only a partial sum was too large, or the sum before scaling: once more, exactly.
        P[*lead, i, j] = _exact_product(rows[*lead, i], columns[*lead, j], scale)
    return P


def _sums_are_finite(X: NDArray, Y: NDArray, P: NDArray) -> bool:
    """Say whether the numbers in X and Y are too small for a sum in X Y to overflow.

    A quick look at X and Y instead of a long one at P; if P is no larger, False.
    """
    if P.size <= X.size + Y.size:
        return False
    x, y = (max(float(Z.max(initial=0)), -float(Z.min(initial=0))) for Z in (X, Y))
    return X.shape[-1] * x * y < float(np.finfo(P.dtype).max) / 2


def _exact_product(x: NDArray, y: NDArray, scale: float) -> float:
    (m, D), (n, E) = _integers(x), _integers(y)
    total = Fraction(sum(map(mul, m, n)), D * E) * Fraction(scale)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _integers(x: NDArray) -> tuple[list[int], int]:
    """Return integers n and D with x = n / D."""
    ratios = [number.as_integer_ratio() for number in x]
    D = max(d for _, d in ratios)  # every d is a power of two, so the largest is common to all
    return [n * (D // d) for n, d in ratios], D


def kept(X: NDArray, keep: NDArray | None) -> NDArray:
    """Return X where dropout keeps it, and exactly zero elsewhere."""
    return X if keep is None else np.where(keep, X, 0)


def sum_to(shape: tuple[int, ...], X: NDArray) -> NDArray:
    """Return X summed over the axes along which an array of this shape was broadcast."""
    if X.shape == shape:
        return X
    X = X.sum(axis=tuple(range(X.ndim - len(shape))))
    return X.sum(
        axis=tuple(i for i, n in enumerate(shape) if n == 1 and X.shape[i] > 1), keepdims=True
    )
