"""One run of training: draw a batch, go forward and back, take a step, again.

And what is done with the result: generating, and printing a range over runs.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook.training.adam import adam_step, no_moments
from attnbook.training.model import logits_of
from attnbook.training.step import gradient
from attnbook.training.weights import Model, initial, unpack

Task = Callable[[np.random.Generator], tuple[NDArray, NDArray]]


class Run(NamedTuple):
    """What `train` returns: the parameters at the end, and the loss before each step."""

    theta: NDArray
    losses: NDArray


def train(
    model: Model,
    task: Task,
    *,
    steps: int,
    rate: float,
    seed: int,
    watch: Callable[[int, NDArray, float], object] | None = None,
) -> Run:
    """Return what training makes of a random start, by Adam.

    Parameters
    ----------
    model : Model
    task : callable
        ``task(rng) -> (tokens, targets)``, a batch drawn at random.
    steps : int
    rate : float
        Of Adam.
    seed : int
        Of the start and of the batches.
    watch : callable, optional
        ``watch(step, theta, loss)`` is called before every step with what it begins from.

    Returns
    -------
    theta : array, shape (n,)
    losses : array, shape (steps,)

    Examples
    --------
    >>> from attnbook.training.tasks import next_word
    >>> run = train(Model(8, 8, d=16, d_k=8), next_word, steps=40, rate=0.02, seed=0)
    >>> bool(run.losses[-1] < run.losses[0] / 2)
    True
    """
    rng = np.random.default_rng(seed)
    theta = initial(model, rng)
    moments, losses = no_moments(theta), np.zeros(steps)
    for step in range(steps):
        losses[step], dtheta = gradient(model, theta, *task(rng))
        if watch is not None:
            watch(step, theta, losses[step])
        theta, moments = adam_step(theta, dtheta, moments, rate=rate)
    return Run(theta, losses)


def generate(
    model: Model, theta: NDArray, tokens: ArrayLike, steps: int, rng: np.random.Generator
) -> NDArray:
    """Return sequences that go on: each next token is drawn with the model's probabilities.

    Parameters
    ----------
    model : Model
    theta : array, shape (n,)
    tokens : integer array, shape (B, T)
    steps : int
        Number of tokens to add.
    rng : numpy.random.Generator

    Returns
    -------
    integer array, shape (B, T + steps)

    Examples
    --------
    >>> model = Model(tokens=5, outputs=5, d=8, d_k=4)
    >>> rng = np.random.default_rng(0)
    >>> generate(model, initial(model, rng), [[1, 2]], 3, rng).shape
    (1, 5)
    """
    tokens, weights = np.asarray(tokens), unpack(model, theta)
    for _ in range(steps):
        z = logits_of(model, weights, tokens).logits[:, -1]
        z = z + rng.gumbel(size=z.shape)  # the largest is then a draw from softmax(z)
        tokens = np.concatenate([tokens, z.argmax(axis=-1)[:, None]], axis=1)
    return tokens


def span(values: Sequence[float]) -> str:
    """Return the range of some numbers, with three significant digits.

    Examples
    --------
    >>> span([0.12345, 2.0, 0.5])
    '0.123 to 2.00'
    """
    low, high = (_three(x) for x in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _three(x: float) -> str:
    return f"{x:#.3g}".rstrip(".")
