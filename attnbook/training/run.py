"""One run of training: draw a batch, go forward and back, take a step, again.

And what is done with the result: generating, and printing a range over runs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import whole_number
from attnbook.training._entry import generator, numbers, positive
from attnbook.training.adam import no_moments, unchecked_step
from attnbook.training.model import checked_tokens, logits_of
from attnbook.training.step import GROWN, gradient
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

    Raises
    ------
    TypeError, ValueError
        steps is no integer from 1 on, rate not above 0, seed no integer from 0 on, task or watch
        cannot be called, or a batch does not fit the model.
    FloatingPointError
        The parameters grew beyond what can be computed: the rate was too large.

    Examples
    --------
    >>> from attnbook.training.tasks import next_word
    >>> run = train(Model(8, 8, d=16, d_k=8), next_word, steps=40, rate=0.02, seed=0)
    >>> bool(run.losses[-1] < run.losses[0] / 2)
    True
    """
    steps, rate = whole_number("steps", steps), positive("rate", rate)
    if not callable(task):
        raise TypeError(f"task must be a function, as tasks.recall is; got {task!r:.60}")
    if watch is not None and not callable(watch):
        raise TypeError(f"watch must be a function or None, got {watch!r:.60}")
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    theta = initial(model, rng)
    moments, losses = no_moments(theta), np.zeros(steps)
    for step in range(steps):
        losses[step], dtheta = gradient(model, theta, *_pair(task(rng)))
        if watch is not None:
            watch(step, theta, losses[step])
        theta, moments = unchecked_step(theta, dtheta, moments, rate=rate)
    if not np.isfinite(theta).all():
        raise FloatingPointError(f"theta is not finite after the last step: {GROWN}")
    return Run(theta, losses)


def _pair(batch: object) -> tuple[NDArray, NDArray]:
    if not (isinstance(batch, tuple | list) and len(batch) == 2):
        raise TypeError(f"task must return a pair (tokens, targets), got {batch!r:.60}")
    return batch


def generate(
    model: Model, theta: NDArray, tokens: ArrayLike, steps: int, rng: np.random.Generator
) -> NDArray:
    """Return sequences that go on: each next token is drawn with the model's probabilities.

    Parameters
    ----------
    model : Model
        Its outputs are tokens.
    theta : array, shape (n,)
    tokens : integer array, shape (B, T)
    steps : int
        Number of tokens to add, 0 or more.
    rng : numpy.random.Generator

    Returns
    -------
    integer array, shape (B, T + steps)

    Raises
    ------
    TypeError, ValueError
        As in `logits_of`; steps is negative, the model has other outputs than tokens, or rng is no
        generator.

    Examples
    --------
    >>> model = Model(tokens=5, outputs=5, d=8, d_k=4)
    >>> rng = np.random.default_rng(0)
    >>> generate(model, initial(model, rng), [[1, 2]], 3, rng).shape
    (1, 5)
    """
    generator(rng)
    steps, tokens = whole_number("steps", steps, 0), checked_tokens(model, tokens)
    if model.outputs != model.tokens:
        raise ValueError(
            f"the model has {model.outputs} outputs for {model.tokens} tokens: what it puts out "
            "cannot be read as its next token"
        )
    if 0 < model.positions < tokens.shape[1] + steps - 1:
        raise ValueError(
            f"the model has {model.positions} position vectors, too few to add {steps} tokens to "
            f"{tokens.shape[1]}: the last is drawn from {tokens.shape[1] + steps - 1}; take fewer "
            "steps"
        )
    weights = unpack(model, numbers("theta", theta))
    for _ in range(steps):
        z = logits_of(model, weights, tokens).logits[:, -1]
        z = z + rng.gumbel(size=z.shape)  # the largest is then a draw from softmax(z)
        tokens = np.concatenate([tokens, z.argmax(axis=-1)[:, None]], axis=1)
    return tokens


def span(values: ArrayLike) -> str:
    """Return the range of some numbers, with three significant digits.

    Parameters
    ----------
    values : array, any shape
        At least one number.

    Returns
    -------
    str
        One number if the ends are printed alike.

    Raises
    ------
    TypeError, ValueError
        values are no finite numbers, or there is none.

    Examples
    --------
    >>> span([0.12345, 2.0, 0.5])
    '0.123 to 2.00'
    """
    values = numbers("values", values)
    if values.size == 0:
        raise ValueError("values is empty: a range needs at least one number")
    low, high = (_three(x) for x in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _three(x: float) -> str:
    return f"{x:#.3g}".rstrip(".")
