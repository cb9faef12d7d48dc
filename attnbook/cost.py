"""What attention costs: floating-point operations, parameters, bytes; all exact integers.

One multiply-add counts as two operations (R 5.8). Biases, softmax and other work per number are
left out.
"""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbook._checks import group_size, whole_number


class Flops(NamedTuple):
    """Floating-point operations of each product; `sum` gives them all.

    Q, K, V and Y are projections; E = Q K^T and O = A V work between positions.
    """

    Q: int
    K: int
    V: int
    E: int
    O: int
    Y: int


class Parameters(NamedTuple):
    """Numbers in each projection matrix; `sum` gives them all."""

    W_Q: int
    W_K: int
    W_V: int
    W_O: int


def product_flops(X_shape: tuple[int, ...], Y_shape: tuple[int, ...]) -> int:
    """Return the operations of the product X Y, whose leading axes broadcast.

    R 5.8: each of the n m numbers of (n, k) by (k, m) takes k multiply-adds::

        2 n k m

    Parameters
    ----------
    X_shape, Y_shape : tuples of int
        Shapes (..., n, k) and (..., k, m).

    Returns
    -------
    int

    Raises
    ------
    ValueError
        The shapes cannot be multiplied.

    Examples
    --------
    >>> product_flops((5, 2, 3), (3, 4))
    240
    """
    if min(len(X_shape), len(Y_shape)) < 2 or X_shape[-1] != Y_shape[-2]:
        raise ValueError(
            f"expected shapes (..., n, k) and (..., k, m), got {tuple(X_shape)} and "
            f"{tuple(Y_shape)}"
        )
    lead = np.broadcast_shapes(tuple(X_shape[:-2]), tuple(Y_shape[:-2]))
    *_, n, k = X_shape
    return 2 * prod(lead) * n * k * Y_shape[-1]


def counting_product() -> tuple[Callable[[NDArray, NDArray], NDArray], list[int]]:
    """Return a product of arrays, and the list in which it writes down the FLOPs of each call.

    Returns
    -------
    product : function of X, Y
        X @ Y.
    counted : list of int
        One entry for each product so far.

    Examples
    --------
    >>> product, counted = counting_product()
    >>> Q, K, V = np.ones((3, 2)), np.ones((5, 2)), np.ones((5, 4))
    >>> O = product(product(Q, K.mT), V)
    >>> counted
    [60, 120]
    """
    counted = []

    def product(X: NDArray, Y: NDArray) -> NDArray:
        counted.append(product_flops(X.shape, Y.shape))
        return X @ Y

    return product, counted


def flops(
    *,
    T: int,
    S: int,
    d: int,
    H_q: int,
    H_kv: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    d_m: int | None = None,
    B: int = 1,
) -> Flops:
    """Return the operations of the forward of multi-head attention.

    R (5.34) and R 5.8; sharing keys and values makes K and V cheaper, E and O not at all::

        Q: 2 B T d H_q d_k       K: 2 B S d_m H_kv d_k    V: 2 B S d_m H_kv d_v
        E: 2 B H_q T S d_k       O: 2 B H_q T S d_v       Y: 2 B T H_q d_v d

    Parameters
    ----------
    T, S : int
        Numbers of queries and of keys.
    d : int
        Width of the query-side input and of the output.
    H_q : int
        Number of query heads.
    H_kv : int, optional
        Number of key/value heads, a divisor of H_q. Default: H_q.
    d_k, d_v : int, optional
        Widths of a head. Default: d_k = d / H_q, d_v = d_k.
    d_m : int, optional
        Width of the key/value-side input. Default: d.
    B : int, optional
        Number of samples.

    Returns
    -------
    Q, K, V, E, O, Y : int
        A named tuple.

    Raises
    ------
    ValueError
        A size is no integer from 0 on (heads: from 1), or does not divide.

    Examples
    --------
    >>> one_layer = flops(T=4096, S=4096, d=1024, H_q=16)
    >>> one_layer.E, sum(one_layer)
    (34359738368, 103079215104)
    """
    T, S, B = whole_number("T", T, 0), whole_number("S", S, 0), whole_number("B", B, 0)
    H_q, H_kv = _heads(H_q, H_kv)
    d, d_m, d_k, d_v = _widths(d, d_m, d_k, d_v, H_q)
    return Flops(
        Q=2 * B * T * d * H_q * d_k,
        K=2 * B * S * d_m * H_kv * d_k,
        V=2 * B * S * d_m * H_kv * d_v,
        E=2 * B * H_q * T * S * d_k,
        O=2 * B * H_q * T * S * d_v,
        Y=2 * B * T * H_q * d_v * d,
    )


def parameters(
    *,
    d: int,
    H_q: int,
    H_kv: int | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    d_m: int | None = None,
) -> Parameters:
    """Return the numbers in the projection matrices of multi-head attention.

    R 5.8, no biases; for d_k = d_v = d_h the key and value projections hold 2 d H_kv d_h::

        W_Q: d H_q d_k     W_K: d_m H_kv d_k     W_V: d_m H_kv d_v     W_O: H_q d_v d

    Parameters
    ----------
    d, H_q, H_kv, d_k, d_v, d_m : int
        As in `flops`.

    Returns
    -------
    W_Q, W_K, W_V, W_O : int
        A named tuple.

    Raises
    ------
    ValueError
        As in `flops`.

    Examples
    --------
    >>> parameters(d=1024, H_q=16, H_kv=4)
    Parameters(W_Q=1048576, W_K=262144, W_V=262144, W_O=1048576)
    """
    H_q, H_kv = _heads(H_q, H_kv)
    d, d_m, d_k, d_v = _widths(d, d_m, d_k, d_v, H_q)
    return Parameters(
        W_Q=d * H_q * d_k, W_K=d_m * H_kv * d_k, W_V=d_m * H_kv * d_v, W_O=H_q * d_v * d
    )


def weight_bytes(*, T: int, S: int, H_q: int, bytes_per_number: int, B: int = 1) -> int:
    """Return the memory of one full copy of the weights A.

    R (5.35); a causal mask makes half of them zero and the array no smaller::

        B H_q T S bytes_per_number

    Parameters
    ----------
    T, S, H_q, bytes_per_number : int
        float16 and bfloat16 take 2 bytes, float32 4, float64 8.
    B : int, optional
        Number of samples.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ValueError
        A size is no integer from 0 on (heads, bytes: from 1).

    Examples
    --------
    >>> weight_bytes(B=2, H_q=16, T=4096, S=4096, bytes_per_number=2) == 2**30  # 1 GiB
    True
    """
    return (
        whole_number("B", B, 0)
        * whole_number("H_q", H_q)
        * whole_number("T", T, 0)
        * whole_number("S", S, 0)
        * whole_number("bytes_per_number", bytes_per_number)
    )


def cache_bytes(
    *,
    S: int,
    H_kv: int,
    d_k: int,
    bytes_per_number: int,
    d_v: int | None = None,
    layers: int = 1,
    B: int = 1,
) -> int:
    """Return the memory of the cached keys and values.

    R 5.8; for d_k = d_v = d_h these are 2 S H_kv d_h numbers per layer and sample::

        layers B S H_kv (d_k + d_v) bytes_per_number

    Parameters
    ----------
    S : int
        Number of cached positions.
    H_kv : int
        Number of key/value heads.
    d_k : int
        Width of a key.
    bytes_per_number : int
        float16 and bfloat16 take 2 bytes, float32 4, float64 8.
    d_v : int, optional
        Width of a value. Default: d_k.
    layers : int, optional
        Number of layers, each with a cache of its own.
    B : int, optional
        Number of samples.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ValueError
        A size is no integer from 0 on (heads, layers, bytes: from 1).

    Examples
    --------
    R exercise 5.7, where the query heads do not matter:

    >>> cache_bytes(S=2048, H_kv=6, d_k=64, bytes_per_number=2)
    3145728
    """
    d_k = whole_number("d_k", d_k, 0)
    d_v = d_k if d_v is None else whole_number("d_v", d_v, 0)
    return (
        whole_number("layers", layers)
        * whole_number("B", B, 0)
        * whole_number("S", S, 0)
        * whole_number("H_kv", H_kv)
        * (d_k + d_v)
        * whole_number("bytes_per_number", bytes_per_number)
    )


def _heads(H_q: object, H_kv: object) -> tuple[int, int]:
    H_q = whole_number("H_q", H_q)
    H_kv = H_q if H_kv is None else whole_number("H_kv", H_kv)
    group_size(H_q, H_kv)
    return H_q, H_kv


def _widths(
    d: object, d_m: object, d_k: object, d_v: object, H_q: int
) -> tuple[int, int, int, int]:
    d = whole_number("d", d, 0)
    if d_k is None and d % H_q:
        raise ValueError(
            f"d = {d} is no multiple of H_q = {H_q}, so d_k = d / H_q is no integer: pass d_k"
        )
    d_k = d // H_q if d_k is None else whole_number("d_k", d_k, 0)
    d_v = d_k if d_v is None else whole_number("d_v", d_v, 0)
    return d, d if d_m is None else whole_number("d_m", d_m, 0), d_k, d_v
