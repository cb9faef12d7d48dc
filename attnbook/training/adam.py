"""Adam: a step of gradient descent whose size in each coordinate does not depend on the units."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbook._checks import real_number, whole_number
from attnbook.training._entry import instance, numbers, positive, vector


class Moments(NamedTuple):
    """What Adam remembers: running means of the gradient and of its square, and the step number."""

    m: NDArray
    v: NDArray
    step: int


def no_moments(theta: NDArray) -> Moments:
    """Return what Adam knows before its first step: nothing.

    Parameters
    ----------
    theta : array, shape (n,)

    Returns
    -------
    Moments

    Raises
    ------
    TypeError, ValueError
        theta is no row of finite numbers.

    Examples
    --------
    >>> no_moments(np.ones(2))
    Moments(m=array([0., 0.]), v=array([0., 0.]), step=0)
    """
    theta = vector("theta", theta)
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
        About the size of one step in each coordinate; above 0.
    beta : pair of float
        How much of the old means is kept, from 0 to below 1.
    eps : float
        Keeps coordinates without gradient where they are; above 0.

    Returns
    -------
    theta : array, shape (n,)
    moments : Moments

    Raises
    ------
    TypeError, ValueError
        A number is not finite or out of its range, or shapes do not fit.
    FloatingPointError
        The step is not finite: the gradient is too large, or eps too small.

    Examples
    --------
    The first step has the size of the rate, however large the gradient:

    >>> theta, moments = adam_step(np.zeros(2), np.array([4.0, -0.1]), no_moments(np.zeros(2)),
    ...                            rate=0.5)
    >>> theta.round(3).tolist()
    [-0.5, 0.5]
    """
    theta = vector("theta", theta)
    dtheta = numbers("dtheta", dtheta, theta.shape)
    moments = _checked_moments(moments, theta)
    rate, eps, beta = positive("rate", rate), positive("eps", eps), _checked_beta(beta)
    theta, moments = unchecked_step(theta, dtheta, moments, rate=rate, beta=beta, eps=eps)
    if not (np.isfinite(theta).all() and np.isfinite(moments.v).all()):
        raise FloatingPointError(
            f"step {moments.step} of Adam overflows {theta.dtype}: make the gradient smaller "
            f"(the largest is {abs(dtheta).max():.3g}) or eps larger (it is {eps:.3g})"
        )
    return theta, moments


@np.errstate(all="ignore")  # what is not finite shows in the result
def unchecked_step(
    theta: NDArray,
    dtheta: NDArray,
    moments: Moments,
    *,
    rate: float,
    beta: tuple[float, float] = (0.9, 0.99),
    eps: float = 1e-8,
) -> tuple[NDArray, Moments]:
    """Return what `adam_step` returns, without a look at what comes in: for the steps of a run."""
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


def _checked_moments(moments: Moments, theta: NDArray) -> Moments:
    instance("moments", moments, Moments, "no_moments(theta) makes the first")
    m, v = (numbers(f"moments.{x}", getattr(moments, x), theta.shape) for x in "mv")
    if v.min(initial=0) < 0:
        raise ValueError(
            f"moments.v is a mean of squares, got {v.min()} in it: are m and v swapped?"
        )
    return Moments(m, v, whole_number("moments.step", moments.step, 0))


def _checked_beta(beta: object) -> tuple[float, float]:
    if not (isinstance(beta, tuple | list) and len(beta) == 2):
        raise TypeError(f"beta must be a pair of numbers, as (0.9, 0.99); got {beta!r:.60}")
    beta = tuple(real_number(f"beta[{i}]", x) for i, x in enumerate(beta))
    for i, x in enumerate(beta):
        if not 0 <= x < 1:
            raise ValueError(
                f"beta[{i}] must lie in [0, 1), got {x}: at 1 the mean would take in no gradient"
            )
    return beta
