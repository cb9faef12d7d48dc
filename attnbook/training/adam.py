"""Adam: a step of gradient descent whose size in each coordinate does not depend on the units."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Moments(NamedTuple):
    """What Adam remembers: running means of the gradient and of its square, and the step number."""

    m: NDArray
    v: NDArray
    step: int


def no_moments(theta: NDArray) -> Moments:
    """Return what Adam knows before its first step: nothing.

    Examples
    --------
    >>> no_moments(np.ones(2))
    Moments(m=array([0., 0.]), v=array([0., 0.]), step=0)
    """
    return Moments(np.zeros_like(theta), np.zeros_like(theta), 0)


def adam_step(
    theta: NDArray,
    dtheta: NDArray,
    moments: Moments,
    *,
    rate: float,
    beta: tuple[float, float] = (0.9, 0.99),
    eps: float = 1e-8,
) -> tuple[NDArray, Moments]:
    """Return the parameters after one step of Adam, and what it remembers for the next.

    Kingma and Ba (2015), algorithm 1, in step t = 1, 2, ...; squares and roots by coordinate::

        m <- beta_1 m + (1 - beta_1) dtheta,   v <- beta_2 v + (1 - beta_2) dtheta^2,
        theta <- theta - rate (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + eps)

    Parameters
    ----------
    theta, dtheta : arrays, shape (n,)
        Parameters and the gradient by them.
    moments : Moments
        What the step before returned, `no_moments` at first.
    rate : float
        About the size of one step in each coordinate.
    beta : pair of float
        How much of the old means is kept.
    eps : float
        Keeps coordinates without gradient where they are.

    Returns
    -------
    theta : array, shape (n,)
    moments : Moments

    Examples
    --------
    The first step has the size of the rate, however large the gradient:

    >>> theta, moments = adam_step(np.zeros(2), np.array([4.0, -0.1]), no_moments(np.zeros(2)),
    ...                            rate=0.5)
    >>> theta.round(3).tolist()
    [-0.5, 0.5]
    """
    step = moments.step + 1
    change = (1 - beta[0]) * dtheta
    m = beta[0] * moments.m
    m += change
    np.multiply(dtheta, dtheta, out=change)
    change *= 1 - beta[1]
    v = beta[1] * moments.v
    v += change
    root = np.sqrt(np.divide(v, 1 - beta[1] ** step, out=change), out=change)
    root += eps
    change = np.divide(m, root, out=root)
    change *= rate / (1 - beta[0] ** step)
    return theta - change, Moments(m, v, step)
