"""Allowed sets: which keys a query may read, as boolean arrays with True = may read.

Several rules hold together where all of them allow, so sets are combined with ``&``::

    allowed = causal(T, S) & padding(key_valid) & documents(query_ids, key_ids)

What other libraries call a mask, and the set that it means here (R 5.3 asks for the conversion at
the boundary, since True has no common meaning):

=====================================================  =========================================
there                                                  here
=====================================================  =========================================
PyTorch ``scaled_dot_product_attention``, boolean      ``allowed = attn_mask``
``attn_mask``: True = takes part. The same: ``mask``
in JAX and Keras ``dot_product_attention``,
``attn_mask`` in ONNX ``Attention``
the same, floating-point ``attn_mask`` (JAX:           ``allowed, bias = from_additive(M)``
``bias``): is added
PyTorch ``nn.MultiheadAttention``, boolean             ``allowed = ~attn_mask``
``attn_mask``: True = may *not* be read
the same, ``key_padding_mask``: True = ignored         ``padding(~key_padding_mask)``
Hugging Face ``attention_mask`` (B, S): 1 = a token    ``padding(attention_mask == 1)``
JAX ``key_value_seq_lengths`` (B,), ONNX               ``padding(np.arange(S) < n[:, None])``
``nonpad_kv_seqlen`` (B,): n, the keys before it
PyTorch ``is_causal=True``, ``causal_upper_left``,     ``causal(T, S)``
JAX ``is_causal=True``, FlashAttention 2.0,
ONNX ``is_causal=1`` without a cache
ONNX ``is_causal=1`` with p keys in the cache          ``causal(p + np.arange(T), S)``
PyTorch ``causal_lower_right``, FlashAttention from    ``causal(np.arange(S - T, S), S)``
2.1 on with ``causal=True``
FlashAttention ``cu_seqlens`` c, sequences packed end  ``documents(ids, ids)``
to end; ids = ``np.repeat(np.arange(B), np.diff(c))``
=====================================================  =========================================

With upper left and lower right alignment the first or the last query and key share a position;
for T = S they agree. With a batch and heads (B, H, T, S), a set (B, 1, S) needs ``[:, None]``.
"""

import numbers

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from attnbook._checks import as_array, boolean_array, first


def causal(query_positions: int | ArrayLike, key_positions: int | ArrayLike) -> NDArray[np.bool_]:
    """Return the causal set: a query reads the keys at its own and at earlier positions.

    R (5.12), on absolute positions, whatever the rows are numbered::

        J_i = {j : key_positions_j <= query_positions_i}

    Parameters
    ----------
    query_positions : int or integer array, shape (..., T)
        Absolute positions of the queries; an integer n means 0, 1, ..., n-1.
    key_positions : int or integer array, shape (..., S)
        Absolute positions of the keys, likewise. Leading axes broadcast.

    Returns
    -------
    allowed : boolean array, shape (..., T, S)

    Raises
    ------
    TypeError
        Positions are not integers.
    ValueError
        A length is negative, or the leading axes do not broadcast.

    Examples
    --------
    The query at position 2, with four keys in the cache, reads three of them:

    >>> causal([2], 4)
    array([[ True,  True,  True, False]])
    """
    query = _positions("query_positions", query_positions)
    key = _positions("key_positions", key_positions)
    return np.less_equal(*_pairs("positions", key, query))


def padding(key_valid: ArrayLike) -> NDArray[np.bool_]:
    """Return the padding set: every query reads the keys that are real.

    R 5.3::

        J_i = {j : key_valid_j}

    Padded *queries* still read; mark them with query_valid = False.

    Parameters
    ----------
    key_valid : boolean array, shape (..., S)
        True = this key is real, not padding.

    Returns
    -------
    allowed : boolean array, shape (..., 1, S)

    Raises
    ------
    TypeError
        key_valid is not boolean: numbers do not say what they mean.
    ValueError
        key_valid has no axis of keys.

    Examples
    --------
    >>> lengths = np.array([3, 1])
    >>> padding(np.arange(3) < lengths[:, None])
    array([[[ True,  True,  True]],
    <BLANKLINE>
           [[ True, False, False]]])
    """
    if key_valid is None:
        raise TypeError("key_valid must be a boolean array, got None")
    key_valid = boolean_array("key_valid", key_valid)
    if key_valid.ndim == 0:
        raise ValueError("key_valid needs an axis of keys, shape (..., S); got one value")
    return key_valid[..., None, :].copy()


def documents(query_ids: ArrayLike, key_ids: ArrayLike) -> NDArray[np.bool_]:
    """Return the document set: a query reads the keys of its own document.

    R 5.3::

        J_i = {j : key_ids_j = query_ids_i}

    Parameters
    ----------
    query_ids : integer array, shape (..., T)
        Number of the document that each query belongs to.
    key_ids : integer array, shape (..., S)
        The same for the keys. Leading axes broadcast.

    Returns
    -------
    allowed : boolean array, shape (..., T, S)

    Raises
    ------
    TypeError
        The numbers are not integers.
    ValueError
        An array has no axis, or the leading axes do not broadcast.

    Examples
    --------
    Two documents of two tokens, each causal by itself (the right of R's figure 5.1):

    >>> documents([0, 0, 1, 1], [0, 0, 1, 1]) & causal(4, 4)
    array([[ True, False, False, False],
           [ True,  True, False, False],
           [False, False,  True, False],
           [False, False,  True,  True]])
    """
    query, key = _integers("query_ids", query_ids), _integers("key_ids", key_ids)
    return np.equal(*_pairs("ids", key, query))


def to_additive(allowed: ArrayLike, dtype: DTypeLike = np.float64) -> NDArray:
    """Return the additive mask M of an allowed set, to be added to the scores.

    R 5.3::

        M_ij = 0 for j in J_i,   M_ij = -inf otherwise

    Parameters
    ----------
    allowed : boolean array
        True = may read.
    dtype : floating-point dtype, optional

    Returns
    -------
    M : array, shape of allowed

    Raises
    ------
    TypeError
        allowed is not boolean, or dtype cannot hold -inf.

    Examples
    --------
    >>> to_additive(causal(2, 3))
    array([[  0., -inf, -inf],
           [  0.,   0., -inf]])
    """
    if allowed is None:
        raise TypeError("allowed must be a boolean array, got None")
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise TypeError(f"dtype must be floating-point to hold -inf, got {dtype}")
    return np.where(boolean_array("allowed", allowed), dtype.type(0), dtype.type(-np.inf))


def from_additive(M: ArrayLike) -> tuple[NDArray[np.bool_], NDArray]:
    """Return the allowed set and the finite bias that an additive mask M holds.

    R 5.3::

        J_i = {j : M_ij > -inf},   bias_ij = M_ij for j in J_i and 0 otherwise

    A large negative number such as -1e9 is finite and therefore a bias, not a prohibition:
    a row that holds nothing else would read what it must not.

    Parameters
    ----------
    M : array of real numbers
        What is added to the scores: -inf = forbidden.

    Returns
    -------
    allowed : boolean array, shape of M
    bias : array, shape and dtype of M (float64 for integers)

    Raises
    ------
    TypeError
        M does not hold numbers; a boolean M is an allowed set already, or its opposite.
    ValueError
        M holds NaN or +inf.

    Examples
    --------
    >>> allowed, bias = from_additive([[0.0, -np.inf, 0.5]])
    >>> allowed
    array([[ True, False,  True]])
    >>> bias
    array([[0. , 0. , 0.5]])
    """
    M = as_array("M", M)
    if M.dtype.kind not in "iuf":
        raise TypeError(
            f"M must hold the numbers added to the scores, got dtype {M.dtype}: a boolean mask is "
            "an allowed set already if True = may read, and ~mask is if True = forbidden"
        )
    M = M.astype(M.dtype.newbyteorder("=") if M.dtype.kind == "f" else np.float64)
    bad = np.isnan(M) | np.isposinf(M)
    if bad.any():
        index = first(bad)
        raise ValueError(f"M{list(index)} is {M[index]}: expected finite numbers or -inf")
    allowed = ~np.isneginf(M)
    return allowed, np.where(allowed, M, M.dtype.type(0))


def _positions(name: str, x: int | ArrayLike) -> NDArray:
    if isinstance(x, numbers.Integral) and not isinstance(x, bool):
        if x < 0:
            raise ValueError(f"{name} = {x}: an integer n means 0, ..., n-1 and is not negative")
        return np.arange(x)
    return _integers(name, x)


def _integers(name: str, x: ArrayLike) -> NDArray:
    x = as_array(name, x)
    if x.size == 0:
        x = x.astype(np.int64)
    if x.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {x.dtype}")
    if x.ndim == 0:
        raise ValueError(f"{name} needs an axis of tokens, got the single number {x}")
    return x


def _pairs(what: str, key: NDArray, query: NDArray) -> tuple[NDArray, NDArray]:
    """Return the keys along the last axis, the queries along the one before."""
    try:
        np.broadcast_shapes(key.shape[:-1], query.shape[:-1])
    except ValueError:
        raise ValueError(
            f"the leading axes of the {what} must broadcast: got queries {query.shape}, "
            f"keys {key.shape}"
        ) from None
    return key[..., None, :], query[..., :, None]
