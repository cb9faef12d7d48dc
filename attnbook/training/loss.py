"""How wrong the logits are: cross-entropy, its gradient, and the share of right answers.

A target of -1 says that nothing is asked at this place.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import as_array, real_array


def cross_entropy(logits: ArrayLike, targets: ArrayLike) -> float:
    """Return the mean of -log p_y over the places that have a target y.

    With u the logits of one place::

        p = softmax(u),   loss = mean(-log p_y),   -log p_y = log(sum_c exp(u_c)) - u_y

    Parameters
    ----------
    logits : array, shape (..., classes)
    targets : integer array, shape (...)
        -1: no target.

    Returns
    -------
    float
        log(classes) if the logits are equal.

    Raises
    ------
    ValueError
        The shapes do not fit, a target is no class, or there is none.
    FloatingPointError
        The loss overflows.

    Examples
    --------
    >>> round(cross_entropy([[0.0, 0.0], [9.0, 9.0]], [1, -1]), 3)
    0.693
    """
    logits = real_array("logits", logits)
    targets, asked = checked_targets(logits, targets)
    y = targets[asked]
    with np.errstate(over="ignore"):
        loss = 0.0 - float(log_softmax(logits[asked])[np.arange(len(y)), y].mean())
    if not np.isfinite(loss):
        raise FloatingPointError(
            f"the loss overflows {logits.dtype}: the logits go from {logits.min():.3g} to "
            f"{logits.max():.3g}; make them smaller"
        )
    return loss


def cross_entropy_backward(logits: ArrayLike, targets: ArrayLike) -> NDArray:
    """Return the gradient of `cross_entropy` by the logits.

    At a place with a target, n being the number of such places; elsewhere zero::

        du_c = (p_c - [c = y]) / n

    Parameters
    ----------
    logits, targets
        As given to `cross_entropy`.

    Returns
    -------
    array, shape (..., classes)

    Raises
    ------
    ValueError
        As in `cross_entropy`.

    Examples
    --------
    >>> cross_entropy_backward([[0.0, 0.0], [9.0, 9.0]], [1, -1]).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    logits = real_array("logits", logits)
    targets, asked = checked_targets(logits, targets)
    y, dlogits = targets[asked], np.zeros_like(logits)
    with np.errstate(over="ignore"):
        p = np.exp(log_softmax(logits[asked]))
    p[np.arange(len(y)), y] -= 1
    dlogits[asked] = p / len(y)
    return dlogits


def accuracy(logits: ArrayLike, targets: ArrayLike) -> float:
    """Return the share of places with a target where its logit is the one largest.

    Parameters
    ----------
    logits, targets
        As given to `cross_entropy`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        As in `cross_entropy`.

    Examples
    --------
    >>> accuracy([[0.0, 1.0], [2.0, 1.0], [5.0, 1.0]], [1, 1, -1])
    0.5
    """
    logits = real_array("logits", logits)
    targets, asked = checked_targets(logits, targets)
    return float((logits.argmax(axis=-1) == targets)[asked].mean())


def log_softmax(u: NDArray) -> NDArray:
    """Return log p along the last axis, without rounding small p to 0."""
    u = u - u.max(axis=-1, keepdims=True)
    return u - np.log(np.exp(u).sum(axis=-1, keepdims=True))


def checked_targets(logits: NDArray, targets: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return the targets as an array that fits the logits, and where there is one."""
    targets = as_array("targets", targets)
    if targets.dtype.kind not in "iu" or logits.shape[:-1] != targets.shape or logits.ndim == 0:
        raise ValueError(
            "expected logits (..., classes) and integer targets (...), one for each row of "
            f"logits; got {logits.shape} and {targets.dtype} {targets.shape}"
        )
    classes, asked = logits.shape[-1], targets != -1
    if not asked.any():
        raise ValueError("no target: at least one must be a class and not -1")
    if targets.min() < -1 or targets.max() >= classes:
        raise ValueError(
            f"targets must be classes 0, ..., {classes - 1}, or -1 for none; got "
            f"{targets.min()} to {targets.max()}"
        )
    return targets, asked
