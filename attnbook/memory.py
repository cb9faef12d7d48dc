"""Peak memory of a call."""

import tracemalloc
from collections.abc import Callable


def peak_bytes(function: Callable, *arguments: object, **options: object) -> int:
    """Return how many bytes more than before a call holds at its highest point.

    Counted by Python's tracemalloc, to which numpy tells every array that it makes. Call the
    function once before: what it loads the first time would be counted too.

    Parameters
    ----------
    function : callable
    *arguments, **options
        What it is called with; their own memory is not counted.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        The function cannot be called: most often it was called already, and its result is passed.
    RuntimeError
        tracemalloc is counting already, for example in a `peak_bytes` around this one.

    Examples
    --------
    >>> import numpy as np
    >>> 8_000_000 <= peak_bytes(np.ones, 1_000_000) < 8_010_000
    True
    """
    if not callable(function):
        raise TypeError(
            "expected a function and then its arguments, as in peak_bytes(np.ones, 1000); got "
            f"{type(function).__name__}: was it called already?"
        )
    if tracemalloc.is_tracing():
        raise RuntimeError(
            "tracemalloc is counting already, and one count would spoil the other: end it with "
            "tracemalloc.stop(), or take peak_bytes out of the function that it measures"
        )
    tracemalloc.start()
    try:
        function(*arguments, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
