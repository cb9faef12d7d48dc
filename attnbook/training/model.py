"""An attention-only model: logits from tokens, and back.

No feed-forward part and no normalisation, so that what is learnt is learnt by attention.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook import masks
from attnbook._checks import as_array, finite_result
from attnbook.heads import MultiHead, multi_head_attention, multi_head_attention_backward
from attnbook.training._entry import instance, numbers
from attnbook.training.weights import Layer, Model, Weights, checked_model, checked_weights


class Forward(NamedTuple):
    """What `logits_of` returns: the logits and all that the way back needs."""

    logits: NDArray
    X: tuple[NDArray, ...]
    heads: tuple[MultiHead, ...]


def logits_of(model: Model, weights: Weights, tokens: ArrayLike) -> Forward:
    """Return the logits at each position of each sequence.

    x is a token, p the vector of its position, and every layer adds what its heads read::

        X_0 = embedding[x] + p,   X_l = X_(l-1) + multi_head(X_(l-1)),   logits = X_L W_out

    Parameters
    ----------
    model : Model
    weights : Weights
    tokens : integer array, shape (B, T)

    Returns
    -------
    logits : array, shape (B, T, outputs)
    X : tuple of layers + 1 arrays, shape (B, T, d)
    heads : tuple of MultiHead
        One for each layer: A is the weights, shape (B, H_q, T, T).

    Raises
    ------
    ValueError
        A token is unknown, there is no position vector for a place, or a matrix does not have
        the shape that the model asks for.

    Examples
    --------
    >>> from attnbook.training import initial, unpack
    >>> model = Model(tokens=5, outputs=3, d=8, d_k=4)
    >>> weights = unpack(model, initial(model, np.random.default_rng(0)))
    >>> logits_of(model, weights, [[0, 1, 4, 1]]).logits.shape
    (1, 4, 3)
    """
    tokens, weights = checked_tokens(model, tokens), checked_weights(model, weights)
    T = tokens.shape[1]
    x = weights.embedding[tokens]
    if model.positions:
        x += weights.position[:T]
    allowed = masks.causal(T, T) if model.causal else None
    X, heads = [x], []
    for layer in weights.layers:
        heads.append(
            multi_head_attention(
                x, x, *layer, allowed, H_q=model.H_q, H_kv=model.H_kv, scale=model.scale
            )
        )
        x = x + heads[-1].Y
        X.append(x)
    with np.errstate(over="ignore", invalid="ignore"):
        logits = x @ weights.W_out
    return Forward(finite_result("logits", logits, logits.dtype), tuple(X), tuple(heads))


def logits_backward(
    dlogits: NDArray, model: Model, weights: Weights, tokens: ArrayLike, forward: Forward
) -> Weights:
    """Return the gradients of a loss by all matrices, from its gradient by the logits.

    The residual sum passes a gradient on to both of its terms::

        dW_out = X_L^T dlogits,   dX_L = dlogits W_out^T,
        dX_(l-1) = dX_l + dX_q + dX_m,   where dX_q and dX_m come from dY = dX_l

    A row of the embedding collects dX_0 wherever its token stands, a position vector over the
    batch.

    Parameters
    ----------
    dlogits : array, shape (B, T, outputs)
    model, weights, tokens
        As given to `logits_of`.
    forward : Forward
        What `logits_of` returned for them.

    Returns
    -------
    Weights
        Each gradient has the shape of its matrix.

    Raises
    ------
    TypeError, ValueError
        As in `logits_of`, or dlogits does not have the shape of the logits.

    Examples
    --------
    >>> from attnbook.training import initial, unpack
    >>> model = Model(tokens=5, outputs=3, d=8, d_k=4)
    >>> weights = unpack(model, initial(model, np.random.default_rng(0)))
    >>> forward = logits_of(model, weights, [[0, 1, 4, 1]])
    >>> d = logits_backward(np.ones((1, 4, 3)), model, weights, [[0, 1, 4, 1]], forward)
    >>> d.W_out.shape, d.layers[0].W_K.shape
    ((8, 3), (8, 4))
    """
    tokens, weights = checked_tokens(model, tokens), checked_weights(model, weights)
    instance("forward", forward, Forward, "logits_of(model, weights, tokens) returns it")
    if forward.logits.shape != (*tokens.shape, model.outputs):
        raise ValueError(
            f"forward has logits of shape {forward.logits.shape}, but for these tokens they have "
            f"{(*tokens.shape, model.outputs)}: pass what logits_of returned for them"
        )
    dlogits = numbers("dlogits", dlogits, forward.logits.shape)
    dW_out = _rows(forward.X[-1]).T @ _rows(dlogits)
    dx = dlogits @ weights.W_out.T
    layers = []
    for layer, x, heads in zip(
        reversed(weights.layers), forward.X[-2::-1], reversed(forward.heads), strict=True
    ):
        d = multi_head_attention_backward(dx, x, x, *layer, heads, scale=model.scale)
        layers.insert(0, Layer(d.dW_Q, d.dW_K, d.dW_V, d.dW_O))
        dx = dx + d.dX_q + d.dX_m
    chosen = (tokens.ravel() == np.arange(model.tokens)[:, None]).astype(dx.dtype)
    position = np.zeros_like(weights.position)
    if model.positions:
        position[: tokens.shape[1]] = dx.sum(axis=0)
    return Weights(chosen @ _rows(dx), position, tuple(layers), dW_out)


def _rows(X: NDArray) -> NDArray:
    return X.reshape(-1, X.shape[-1])


def checked_tokens(model: Model, tokens: ArrayLike) -> NDArray:
    """Return the tokens as an array that fits the model."""
    checked_model(model)
    tokens = as_array("tokens", tokens)
    if tokens.dtype.kind not in "iu" or tokens.ndim != 2 or tokens.size == 0:
        raise ValueError(
            "tokens must be integers of shape (B, T), at least one: for one sequence write "
            f"tokens[None]; got dtype {tokens.dtype}, shape {tokens.shape}"
        )
    if tokens.min() < 0 or tokens.max() >= model.tokens:
        raise ValueError(
            f"tokens must lie in 0, ..., {model.tokens - 1}; got {tokens.min()} to {tokens.max()}"
        )
    if 0 < model.positions < tokens.shape[1]:
        raise ValueError(
            f"the model has {model.positions} position vectors, too few for sequences of length "
            f"{tokens.shape[1]}: shorten them, or make the model with more"
        )
    return tokens
