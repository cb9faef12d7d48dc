"""Loss and gradient of a batch in one go: what a training step needs, and no check on the way.

The same numbers as `logits_of`, `cross_entropy` and their backwards give, which a test holds for
every model of chapter 13. A run takes this step thousands of times on arrays that it made itself.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook import masks
from attnbook._checks import as_array
from attnbook.training.loss import checked_targets
from attnbook.training.model import checked_tokens
from attnbook.training.weights import Layer, Model, unpack

GROWN = "the parameters have grown too large; train with a smaller rate"
FEW, MANY = 1e-100, 1e100  # between these, row sums of exponentials have lost no digit


@np.errstate(all="ignore")  # what is not finite shows in the loss
def gradient(
    model: Model, theta: NDArray, tokens: ArrayLike, targets: ArrayLike
) -> tuple[float, NDArray]:
    """Return the loss of a batch and its gradient by all parameters.

    Parameters
    ----------
    model : Model
    theta : array, shape (n,)
    tokens : integer array, shape (B, T)
    targets : integer array, shape (B, T) or (B, T, m)
        -1: nothing is asked. With m targets the logits of a place are cut into m parts of equal
        width, one for each.

    Returns
    -------
    loss : float
    dtheta : array, shape (n,)

    Raises
    ------
    ValueError
        As in `logits_of` and `cross_entropy`.
    FloatingPointError
        The loss or its gradient is not finite: the rate was too large.

    Examples
    --------
    >>> from attnbook.training import initial
    >>> model = Model(tokens=5, outputs=5, d=8, d_k=4)
    >>> theta = initial(model, np.random.default_rng(0))
    >>> loss, dtheta = gradient(model, theta, [[0, 3, 4]], [[3, 4, -1]])
    >>> dtheta.shape == theta.shape
    True
    """
    tokens = checked_tokens(model, tokens)
    T, weights = tokens.shape[1], unpack(model, theta)
    theta = np.asarray(theta)
    dtheta = np.zeros_like(theta)
    d = unpack(model, dtheta)  # views: what is written into them is written into dtheta

    x = weights.embedding[tokens]
    if model.positions:
        x += weights.position[:T]
    x = x.reshape(-1, model.d)
    M = _causal(T) if model.causal else None
    kept = []
    for layer in weights.layers:
        forward = _attend(model, layer, x, T, M)
        kept.append((x, *forward))
        x = x + forward[-1] @ layer.W_O
    logits = x @ weights.W_out

    shape = (*tokens.shape, model.outputs)
    loss, dlogits = _loss(by_target(logits.reshape(shape), targets), targets)
    dlogits = dlogits.reshape(logits.shape)
    np.matmul(x.T, dlogits, out=d.W_out)
    dx = dlogits @ weights.W_out.T
    for layer, dlayer, forward in zip(
        weights.layers[::-1], d.layers[::-1], kept[::-1], strict=True
    ):
        dx += _attend_backward(model, layer, dlayer, dx, T, *forward)
    chosen = (tokens.ravel() == np.arange(model.tokens)[:, None]).astype(dx.dtype)
    np.matmul(chosen, dx, out=d.embedding)
    if model.positions:
        np.sum(dx.reshape(-1, T, model.d), axis=0, out=d.position[:T])
    if not math.isfinite(dtheta.sum()):
        raise FloatingPointError(f"the gradient of the loss is not finite: {GROWN}")
    return loss, dtheta


def by_target(logits: NDArray, targets: ArrayLike) -> NDArray:
    """Return logits (B, T, outputs) cut into parts, one for each target, (..., classes).

    Parameters
    ----------
    logits : array, shape (B, T, outputs)
    targets : integer array, shape (B, T) or (B, T, m)

    Returns
    -------
    array, shape (B, T, outputs) or (B, T, m, outputs / m)

    Raises
    ------
    ValueError
        The targets have another B or T, or m parts of equal width cannot be made.

    Examples
    --------
    >>> by_target(np.zeros((2, 3, 8)), np.zeros((2, 3, 2), int)).shape
    (2, 3, 2, 4)
    """
    logits, shape = as_array("logits", logits), as_array("targets", targets).shape
    parts = math.prod(shape[2:])
    if logits.ndim != 3 or shape[:2] != logits.shape[:2] or parts == 0 or logits.shape[-1] % parts:
        raise ValueError(
            "expected targets (B, T) or (B, T, m) for logits (B, T, outputs), m a divisor of "
            f"outputs; got targets {shape} for logits {logits.shape}"
        )
    return logits.reshape(*shape, logits.shape[-1] // parts)


def _loss(logits: NDArray, targets: ArrayLike) -> tuple[float, NDArray]:
    """Return `cross_entropy` and `cross_entropy_backward`, sharing their softmax."""
    targets, asked = checked_targets(logits, targets)
    u, y = logits[asked], targets[asked]
    n = np.arange(len(y))
    u -= u.max(axis=-1, keepdims=True)
    at_target = u[n, y]
    p = np.exp(u, out=u)
    total = p.sum(axis=-1, keepdims=True)
    loss = float((np.log(total[:, 0]) - at_target).mean())
    if not math.isfinite(loss):
        raise FloatingPointError(f"the loss is {loss}: {GROWN}")
    p /= len(y) * total
    p[n, y] -= 1 / len(y)
    if asked.all():
        return loss, p.reshape(logits.shape)
    dlogits = np.zeros_like(logits)
    dlogits[asked] = p
    return loss, dlogits


@lru_cache
def _causal(T: int) -> NDArray:
    return masks.to_additive(masks.causal(T, T))


def _scale(model: Model) -> float:
    return 1 / math.sqrt(model.d_k) if model.scale is None else model.scale


def _split(x: NDArray, model: Model, T: int, r: int) -> NDArray:
    """Return rows (B T, H_kv r d_k) by head, as a view: (B, H_kv, r, T, d_k)."""
    return x.reshape(-1, T, model.H_kv, r, model.d_k).transpose(0, 2, 3, 1, 4)


def _merge(X: NDArray) -> NDArray:
    """Return the heads side by side again: the inverse of `_split`."""
    B, H_kv, r, T, d_k = X.shape
    return X.transpose(0, 3, 1, 2, 4).reshape(B * T, H_kv * r * d_k)


def _exp(U: NDArray, M: NDArray | None, *, shift: bool = False) -> tuple[NDArray, NDArray]:
    """Return exp(U + M), in the place of U, and its row sums."""
    if M is not None:
        U += M
    if shift:
        U -= U.max(axis=-1, keepdims=True)
    e = np.exp(U, out=U)
    return e, e.sum(axis=-1, keepdims=True)


def _attend(
    model: Model, layer: Layer, x: NDArray, T: int, M: NDArray | None
) -> tuple[NDArray, ...]:
    """Return Q times its scale, K and V by head, the weights A, and C = Concat(O)."""
    r = model.H_q // model.H_kv
    Q = _split((x @ layer.W_Q) * _scale(model), model, T, r)
    K, V = (_split(x @ W, model, T, 1) for W in (layer.W_K, layer.W_V))
    A, z = _exp(Q @ K.mT, M)
    if not FEW < z.min() <= z.max() < MANY:  # too large or too small: subtract the row's maximum
        A, z = _exp(Q @ K.mT, M, shift=True)
    A /= z
    return Q, K, V, A, _merge(A @ V)


def _attend_backward(
    model: Model,
    layer: Layer,
    dlayer: Layer,
    dy: NDArray,
    T: int,
    x: NDArray,
    Q: NDArray,
    K: NDArray,
    V: NDArray,
    A: NDArray,
    C: NDArray,
) -> NDArray:
    """Return the gradient by x, and write those by the projections into dlayer."""
    dO = _split(dy @ layer.W_O.T, model, T, model.H_q // model.H_kv)
    dV = A.mT @ dO
    dU = dO @ V.mT
    dU -= np.vecdot(A, dU)[..., None]
    dU *= A
    dQ = _merge(dU @ K)
    dQ *= _scale(model)
    dK, dV = (_merge(X.sum(axis=2, keepdims=True)) for X in (dU.mT @ Q, dV))
    np.matmul(C.T, dy, out=dlayer.W_O)
    for g, out in ((dQ, dlayer.W_Q), (dK, dlayer.W_K), (dV, dlayer.W_V)):
        np.matmul(x.T, g, out=out)
    return dQ @ layer.W_Q.T + dK @ layer.W_K.T + dV @ layer.W_V.T
