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

    Examples
    --------
    >>> import numpy as np
    >>> 8_000_000 <= peak_bytes(np.ones, 1_000_000) < 8_010_000
    True
    """
    tracemalloc.start()
    try:
        function(*arguments, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
