"""The numbers that training changes: their names, their shapes, and all of them as one vector.

The optimiser sees one vector theta; the model sees matrices. `unpack` and `pack` go between them.
"""

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import as_array, group_size, real_number, whole_number
from attnbook.training._entry import generator, instance, numbers


class Model(NamedTuple):
    """Sizes and switches of an attention-only model; see `attnbook.training.model`.

    Parameters
    ----------
    tokens : int
        Number of different tokens that come in, 0, 1, ..., tokens - 1.
    outputs : int
        Number of logits at each position.
    d : int
        Model width.
    d_k : int
        Width of a query, key and value of one head.
    H_q, H_kv : int
        Numbers of query heads and of key/value heads in a layer.
    layers : int
        Number of attention layers.
    positions : int
        Longest sequence for which there are position vectors; 0: the model has none.
    causal : bool
        Whether a position is kept from reading later ones.
    scale : float, optional
        Factor of the scores. Default: 1/sqrt(d_k).

    Examples
    --------
    >>> Model(tokens=5, outputs=5, d=8, d_k=4, H_q=2, H_kv=2).positions
    0
    """

    tokens: int
    outputs: int
    d: int
    d_k: int
    H_q: int = 1
    H_kv: int = 1
    layers: int = 1
    positions: int = 0
    causal: bool = True
    scale: float | None = None


class Layer(NamedTuple):
    """The projections of one attention layer, shaped as `multi_head_attention` wants them."""

    W_Q: NDArray
    W_K: NDArray
    W_V: NDArray
    W_O: NDArray


class Weights(NamedTuple):
    """All matrices of a model: embedding, position vectors, layers, output matrix W_out."""

    embedding: NDArray
    position: NDArray
    layers: tuple[Layer, ...]
    W_out: NDArray


@lru_cache
def _places(model: Model) -> tuple[tuple[int, int, tuple[int, int]], ...]:
    """Return where each matrix stands in theta, from and to, and its shape."""
    instance("model", model, Model, "as in Model(tokens=5, outputs=5, d=8, d_k=4)")
    for name in ("tokens", "outputs", "d", "d_k", "H_q", "H_kv", "layers"):
        whole_number(name, getattr(model, name))
    whole_number("positions", model.positions, 0)
    group_size(model.H_q, model.H_kv)
    if not isinstance(model.causal, bool | np.bool):
        raise ValueError(f"causal must be True or False, got {model.causal!r:.60}")
    if model.scale is not None:
        real_number("scale", model.scale)
    d, queries, keys = model.d, model.H_q * model.d_k, model.H_kv * model.d_k
    layer = [(d, queries), (d, keys), (d, keys), (queries, d)]
    shapes = [(model.tokens, d), (model.positions, d), *layer * model.layers, (d, model.outputs)]
    ends = itertools.accumulate(m * n for m, n in shapes)
    return tuple((end - m * n, end, (m, n)) for end, (m, n) in zip(ends, shapes, strict=True))


def initial(model: Model, rng: np.random.Generator) -> NDArray:
    """Return a random start theta: normal numbers with mean 0.

    Embeddings and position vectors have variance 1. A matrix with m rows has variance 1/m: it
    neither stretches nor shrinks a vector with independent components on average.

    Parameters
    ----------
    model : Model
    rng : numpy.random.Generator

    Returns
    -------
    theta : array, shape (n,)
        n is the number of parameters.

    Raises
    ------
    TypeError
        model is no Model or rng no generator.
    ValueError
        A size of the model is no integer from 1 on (positions: from 0), or H_q is no multiple of
        H_kv.

    Examples
    --------
    >>> model = Model(tokens=5, outputs=3, d=8, d_k=4)
    >>> initial(model, np.random.default_rng(0)).size == 5 * 8 + 4 * 8 * 4 + 8 * 3
    True
    """
    vectors, positions, *matrices = (shape for _, _, shape in checked_model(model))
    generator(rng)
    parts = [rng.normal(size=shape) for shape in (vectors, positions)]
    parts += [rng.normal(size=shape) / math.sqrt(shape[0]) for shape in matrices]
    return np.concatenate([x.ravel() for x in parts])


def unpack(model: Model, theta: ArrayLike) -> Weights:
    """Return the matrices that theta holds, as views of it: the inverse of `pack`.

    Parameters
    ----------
    model : Model
    theta : array, shape (n,)

    Returns
    -------
    Weights

    Raises
    ------
    TypeError
        theta does not hold floating-point numbers.
    ValueError
        The length of theta is not the number of parameters of the model.

    Examples
    --------
    >>> model = Model(tokens=2, outputs=1, d=1, d_k=1)
    >>> unpack(model, np.arange(7.0)).embedding.tolist()
    [[0.0], [1.0]]
    """
    theta, places = as_array("theta", theta), checked_model(model)
    if theta.dtype.kind != "f":
        raise TypeError(
            f"theta must hold floating-point numbers, got dtype {theta.dtype}: convert it with "
            "numpy.asarray(..., dtype=float)"
        )
    if theta.shape != (places[-1][1],):
        raise ValueError(
            f"theta must have shape ({places[-1][1]},), one number for each parameter of this "
            f"model; got {theta.shape}"
        )
    embedding, position, *matrices, W_out = (
        theta[start:end].reshape(shape) for start, end, shape in places
    )
    layers = tuple(Layer(*matrices[i : i + 4]) for i in range(0, len(matrices), 4))
    return Weights(embedding, position, layers, W_out)


def pack(weights: Weights) -> NDArray:
    """Return all matrices as one vector theta: the inverse of `unpack`.

    Parameters
    ----------
    weights : Weights

    Returns
    -------
    theta : array, shape (n,)

    Raises
    ------
    TypeError
        weights is no Weights.

    Examples
    --------
    >>> model = Model(tokens=2, outputs=1, d=1, d_k=1)
    >>> pack(unpack(model, np.arange(7.0))).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """
    instance("weights", weights, Weights, "unpack(model, theta) makes one")
    return np.concatenate([x.ravel() for x in _matrices(weights)])


def checked_model(model: Model) -> tuple[tuple[int, int, tuple[int, int]], ...]:
    """Return where each matrix of the model stands in theta, from and to, and its shape."""
    try:
        return _places(model)
    except TypeError:
        instance("model", model, Model, "as in Model(tokens=5, outputs=5, d=8, d_k=4)")
        raise ValueError(f"every size of a model must be one integer; got {model}") from None


def checked_weights(model: Model, weights: Weights) -> Weights:
    """Return the weights after checking that they are finite and fit the model."""
    instance("weights", weights, Weights, "unpack(model, theta) makes one")
    places = checked_model(model)
    if len(weights.layers) != model.layers:
        raise ValueError(f"the model has {model.layers} layers, weights {len(weights.layers)}")
    names = [f"layers[{i}].{x}" for i in range(model.layers) for x in Layer._fields]
    names = ["embedding", "position", *names, "W_out"]
    for name, x, (_, _, shape) in zip(names, _matrices(weights), places, strict=True):
        numbers(f"weights.{name}", x, shape)
    return weights


def _matrices(weights: Weights) -> list[NDArray]:
    matrices = [weights.embedding, weights.position]
    for layer in weights.layers:
        matrices += layer
    return [*matrices, weights.W_out]
