"""Checks of what comes in, in one place: what was expected, what came, what to do.

Arithmetic is done in the precision of the input, for float16 in float32.
"""

import math
import numbers
from operator import add
from typing import NoReturn

import numpy as np

TRUE_MEANS = {
    "allowed": "this query may read this key",
    "query_valid": "this query is real, not padding",
    "key_valid": "this key is real, not padding",
    "keep": "dropout keeps this weight",
}


def first(bad: np.ndarray, start: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the index of the first True; start is where bad begins along its last axes."""
    index = np.argwhere(bad)[0].tolist()
    shift = (0,) * (len(index) - len(start)) + start
    return tuple(map(add, index, shift))


def row(index: tuple[int, ...]) -> str:
    """Return how an error message names a row: 'row 2', with leading axes 'row (0, 2)'."""
    return f"row {index[0] if len(index) == 1 else index}" if index else "the only row"


def as_array(name: str, x: object) -> np.ndarray:
    """Return x as a plain array; masked arrays and rows of unequal length are refused."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, whose mask would be lost: pass {name}.filled(0) and say "
            "with allowed or query_valid what does not count"
        )
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be an array with rows of equal length: {error}") from None


def real_array(name: str, x: object) -> np.ndarray:
    """Return x as an array of finite floating-point numbers."""
    x = as_array(name, x)
    if x.dtype.kind in "biu":
        x = x.astype(np.float64)
    if x.dtype.kind != "f":
        raise TypeError(
            f"{name} must hold real numbers, got dtype {x.dtype}: convert it with "
            "numpy.asarray(..., dtype=float)"
        )
    if not np.isfinite(x).all():
        index = first(~np.isfinite(x))
        advice = (
            "say with allowed which keys may not be read (masks.from_additive finds it from -inf)"
            if name in ("U", "bias")
            else "put any finite number, 0 for example, where no query reads"
        )
        raise ValueError(
            f"{name}{list(index)} is {x[index]}, but every number must be finite: {advice}"
        )
    return x


def real_arrays(**arrays: object) -> tuple[list[np.ndarray | None], np.dtype]:
    """Return the arrays in working precision and the dtype of the result; no bias stays None."""
    for name, x in arrays.items():
        if x is None and name != "bias":
            raise TypeError(f"{name} must be an array of numbers, got None")
    checked = [None if x is None else real_array(name, x) for name, x in arrays.items()]
    dtype = np.result_type(*(x.dtype for x in checked if x is not None))
    working = np.float32 if dtype == np.float16 else dtype
    return [None if x is None else x.astype(working, copy=False) for x in checked], dtype


def boolean_array(name: str, x: object) -> np.ndarray | None:
    """Return x as a boolean array; numbers are refused, since they do not say what they mean."""
    if x is None:
        return None
    x = as_array(name, x)
    if x.dtype != bool:
        raise TypeError(
            f"{name} must be boolean, True = {TRUE_MEANS[name]}; got dtype {x.dtype}, which could "
            "mean 1 = yes, 1 = no or numbers to add: compare it (x == 1), or turn an additive "
            "mask of 0 and -inf with masks.from_additive"
        )
    return x


def real_number(name: str, x: object) -> float:
    """Return x as a float; anything but one finite real number is refused."""
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x[()]
    if isinstance(x, numbers.Real) and not isinstance(x, bool):
        try:
            if math.isfinite(float(x)):
                return float(x)
        except OverflowError:
            pass
    raise ValueError(f"{name} must be one finite real number, got {x!r:.60}")


def whole_number(name: str, n: object, least: int = 1) -> int:
    """Return n as an int; anything but one integer from least on is refused."""
    if isinstance(n, numbers.Integral) and not isinstance(n, bool | np.bool) and n >= least:
        return int(n)
    raise ValueError(f"{name} must be one integer, {least} or more; got {n!r:.60}")


def group_size(H_q: int, H_kv: int) -> int:
    """Return how many query heads share a key/value head."""
    if H_kv == 0 or H_q == 0 or H_q % H_kv:
        raise ValueError(
            f"{H_q} query heads cannot share {H_kv} key/value heads evenly: H_q must be a "
            "multiple of H_kv, and neither may be 0"
        )
    return H_q // H_kv


def dropout_arguments(keep: object, keep_prob: object) -> tuple[np.ndarray | None, float]:
    """Return the dropout mask and its keep probability."""
    keep, keep_prob = boolean_array("keep", keep), real_number("keep_prob", keep_prob)
    if not (0 < keep_prob <= 1 and math.isfinite(1 / keep_prob)):
        raise ValueError(
            f"keep_prob must lie in (0, 1], and 1/keep_prob be finite; got {keep_prob}"
        )
    if keep is None and keep_prob != 1:
        raise ValueError(
            f"keep_prob = {keep_prob} needs keep, the boolean dropout mask: draw one with "
            "rng.random(shape) < keep_prob and pass the same one to the backward"
        )
    return keep, keep_prob


def scale_or_default(scale: object, d_k: int) -> float:
    """Return the factor of the scores, 1/sqrt(d_k) unless given."""
    if scale is not None:
        return real_number("scale", scale)
    if d_k == 0:
        raise ValueError("d_k = 0 has no scale 1/sqrt(d_k): pass scale")
    return 1 / math.sqrt(d_k)


def keys_read(shape: tuple[int, ...], allowed: object, query_valid: object) -> np.ndarray | None:
    """Return which keys each query reads, None for all; a valid query that may read none fails."""
    J = visible(shape, allowed, query_valid)
    check_some_key(shape, shape[-1] > 0 if J is None else J.any(axis=-1), query_valid)
    return J


def visible(shape: tuple[int, ...], allowed: object, query_valid: object) -> np.ndarray | None:
    """Return which keys each query reads, None for all; fits an array of this shape."""
    allowed = boolean_array("allowed", allowed)
    query_valid = boolean_array("query_valid", query_valid)
    if allowed is None and query_valid is None:
        return None
    allowed = np.True_ if allowed is None else allowed
    query_valid = np.True_ if query_valid is None else query_valid
    _fit("allowed", allowed, shape)
    _fit("query_valid", query_valid, shape[:-1])
    J = allowed & query_valid[..., None]
    return np.broadcast_to(J, (*J.shape[:-1], shape[-1]))


def check_some_key(shape: tuple[int, ...], some: object, query_valid: object) -> None:
    """Check that every valid query reads a key, where some says which queries do."""
    query_valid = True if query_valid is None else query_valid
    empty = np.broadcast_to(np.logical_and(query_valid, np.logical_not(some)), shape[:-1])
    if empty.any():
        raise ValueError(
            f"{row(first(empty))} is a valid query, but allowed leaves it none of "
            f"the {shape[-1]} keys: allow a key, or mark the row as padding with query_valid = "
            "False"
        )


def _fit(name: str, x: np.ndarray, shape: tuple[int, ...]) -> None:
    try:
        np.broadcast_to(x, shape)
    except ValueError:
        raise ValueError(
            f"{name} of shape {np.shape(x)} must broadcast to {shape}, the shape of the "
            + ("scores" if name == "allowed" else "scores without the axis of the keys")
        ) from None


def check_weights(A: np.ndarray, given: object) -> None:
    """Check that the rows of A are weights: none negative, sum 1, or all zero if invalid.

    The dtype of A as given, before it went to working precision, says how exactly rows sum to 1.
    """
    if A.ndim == 0:
        raise ValueError("A must be a row of weights or more, shape (..., S); got one number")
    if A.min(initial=0) < 0:
        index = first(A < 0)
        raise ValueError(f"A{list(index)} is {A[index]}, but weights are not negative: scores?")
    given = np.asarray(given).dtype
    # Wide enough for weights read from a table or cast from float32; dropout and a wrong axis miss
    # 1 by far more.
    tolerance = max(1e-4, math.sqrt(np.finfo(given if given.kind == "f" else float).eps))
    sums = A.sum(axis=-1)
    wrong = abs(sums - 1) > tolerance
    if wrong.any():
        wrong &= A.any(axis=-1)
    if wrong.any():
        index = first(wrong)
        columns = A.ndim > 1 and np.allclose(A.sum(axis=-2), 1, atol=tolerance)
        raise ValueError(
            f"{row(index)} of A sums to {sums[index]:.6g}, but a row of weights sums to 1, or is "
            "all zero for an invalid query: "
            + (
                "its columns sum to 1, so the softmax ran along the wrong axis"
                if columns
                else "pass the weights before dropout (Attention.A), not those after it"
            )
        )


def score_shape(**arrays: np.ndarray | None) -> tuple[int, ...]:
    """Return the shape (..., T, S) of the scores, after checking the arrays of a head."""
    arrays = {name: x for name, x in arrays.items() if x is not None}
    T, S = _head_sizes(arrays)
    tails = {"allowed": (T, S), "query_valid": (T,), "bias": (T, S), "keep": (T, S), "A": (T, S)}
    lead = {"Q": arrays["Q"].shape[:-2], "K": arrays["K"].shape[:-2]}
    for name, tail in tails.items():
        shape = arrays[name].shape if name in arrays else ()
        if any(n not in (1, size) for n, size in zip(shape[::-1], tail[::-1], strict=False)):
            hint = ": masks.padding makes (B, 1, S) of a key mask (B, S)" * (name == "allowed")
            _refuse(arrays, f"the last axes of {name} must be {tail} or 1{hint}")
        lead[name] = shape[: -len(tail)]
    dropout = lead.pop("keep")
    scores = _broadcast(arrays, *lead.values())
    _broadcast(arrays, scores, arrays["V"].shape[:-2], dropout)
    return (*scores, T, S)


def check_gradient_shapes(**arrays: np.ndarray | None) -> None:
    """Check that A and dO have the shapes that the forward gave to A and O."""
    arrays = {name: x for name, x in arrays.items() if x is not None}
    A, V = arrays["A"], arrays["V"]
    sizes = _head_sizes(arrays)
    shape = score_shape(**arrays) if A.shape[-2:] == sizes else ("...", *sizes)
    if A.shape != shape:
        _refuse(arrays, f"A must have the shape of the scores, {shape}".replace("'", ""))
    dropout = arrays["keep"].shape[:-2] if "keep" in arrays else ()
    lead = _broadcast(arrays, A.shape[:-2], V.shape[:-2], dropout)
    shape = (*lead, sizes[0], V.shape[-1])
    if arrays["dO"].shape != shape:
        _refuse(arrays, f"dO must have the shape of the output, {shape}")


def _head_sizes(arrays: dict[str, np.ndarray]) -> tuple[int, int]:
    Q, K, V = arrays["Q"], arrays["K"], arrays["V"]
    for name in "QKV":
        if arrays[name].ndim < 2:
            _refuse(arrays, f"{name} needs an axis for its rows: for one row write {name}[None]")
    if Q.shape[-1] != K.shape[-1]:
        _refuse(arrays, "the last axis of Q and K, d_k, must agree")
    if K.shape[-2] != V.shape[-2]:
        _refuse(arrays, "K and V must have the same number of rows S")
    return Q.shape[-2], K.shape[-2]


def _broadcast(arrays: dict[str, np.ndarray], *lead: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*lead)
    except ValueError:
        _refuse(arrays, "the leading axes (before T, S and the widths) must broadcast together")


def _refuse(arrays: dict[str, np.ndarray], rule: str) -> NoReturn:
    came = ", ".join(f"{name} {x.shape}" for name, x in arrays.items())
    raise ValueError(
        f"{rule}; expected Q (..., T, d_k), K (..., S, d_k), V (..., S, d_v), got {came}"
    )


def finite_scores(
    U: np.ndarray, reads: np.ndarray | None, dtype: np.dtype, start: tuple[int, ...] = ()
) -> np.ndarray:
    """Return scores that are finite everywhere; an overflow is an error where a query reads."""
    finite = np.isfinite(U.astype(dtype, copy=False))
    if finite.all():
        return U
    over = ~finite if reads is None else reads & ~finite
    if over.any():
        *query, key = first(over, start)
        raise FloatingPointError(
            f"the score of {row(tuple(query))}, key {key} overflows {dtype}: make Q, K, scale or "
            "bias smaller, or forbid the key"
        )
    largest = np.finfo(dtype).max
    return np.clip(U, -largest, largest)


def finite_result(
    name: str, X: np.ndarray, dtype: np.dtype, start: tuple[int, ...] = ()
) -> np.ndarray:
    """Return X as dtype; an overflow is an error that names the entry."""
    X = X.astype(dtype, copy=False)
    if not np.isfinite(X).all():
        raise FloatingPointError(
            f"{name}{list(first(~np.isfinite(X), start))} overflows {dtype}: make the inputs "
            "smaller, or use a wider dtype"
        )
    return X


def finite_weight_gradient(
    dA: np.ndarray, A: np.ndarray, dtype: np.dtype, start: tuple[int, ...] = ()
) -> np.ndarray:
    """Return dA, zero in rows without weight and where it overflows without weight."""
    if (A[..., :1] == 0).any():  # perhaps a row without weight
        dA = np.where(A.any(axis=-1, keepdims=True), dA, 0)
    finite = np.isfinite(dA.astype(dtype, copy=False))
    if not finite.all():
        dA = np.where((A == 0) & ~finite, 0, dA)
        finite_result("dA", dA, dtype, start)
    return dA
