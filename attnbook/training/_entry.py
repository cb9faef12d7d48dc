"""Checks of what comes into this package: what was expected, what came, what to do."""

import numpy as np
from numpy.typing import NDArray

from attnbook._checks import as_array, first, real_number


def numbers(name: str, x: object, shape: tuple[int, ...] | None = None) -> NDArray:
    """Return x as an array of finite floating-point numbers, of this shape if one is given.

    Half precision becomes double: small steps and small means would be rounded away in it.
    """
    x = as_array(name, x)
    if x.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold real numbers, got dtype {x.dtype}: convert it with "
            "numpy.asarray(..., dtype=float)"
        )
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if shape is not None and x.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {x.shape}")
    if not np.isfinite(x).all():
        index = first(~np.isfinite(x))
        raise ValueError(
            f"{name}{list(index)} is {x[index]}, but every number must be finite: look for the "
            "step that made it, and train with a smaller rate if it was training"
        )
    return x


def vector(name: str, x: object) -> NDArray:
    """Return x as numbers in one row, as theta and the gradient by it are."""
    x = numbers(name, x)
    if x.ndim != 1:
        raise ValueError(f"{name} must have shape (n,), got {x.shape}: pack makes it of matrices")
    return x


def positive(name: str, x: object) -> float:
    """Return x as a float above 0."""
    x = real_number(name, x)
    if x <= 0:
        raise ValueError(f"{name} must be above 0, got {x}")
    return x


def generator(rng: object) -> np.random.Generator:
    """Return the generator; a seed is refused, since two draws from it would be the same."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, got {rng!r:.60}: make one with "
            "numpy.random.default_rng(seed)"
        )
    return rng


def instance(name: str, x: object, kind: type, source: str) -> None:
    """Check that x is one of our tuples, and say where to get one if it is not."""
    if not isinstance(x, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {x!r:.60}: {source}")
