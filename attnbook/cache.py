"""The key-value cache: what decoding keeps of the positions that it has seen."""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook._checks import as_array, real_array, whole_number


class KVCache:
    """The keys and values of the positions seen so far, for one layer.

    R 5.8: 2 S H_kv d_h numbers per sample, each key/value head once. New queries read the cache
    by absolute positions, so a cache filled token by token, in chunks, or at once is the same::

        cache.append(K, V, positions)
        grouped_attention(Q, cache.K, cache.V, masks.causal(positions, cache.positions))

    Parameters
    ----------
    capacity : int
        The number of positions that there is room for. Memory is taken at the first append.

    Examples
    --------
    >>> cache = KVCache(capacity=4)
    >>> cache.append([[1.0], [2.0]], [[3.0], [4.0]], [0, 1])
    >>> cache.append([[5.0]], [[6.0]], [2])
    >>> cache.K.tolist(), cache.V.tolist(), cache.positions.tolist()
    ([[1.0], [2.0], [5.0]], [[3.0], [4.0], [6.0]], [0, 1, 2])
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = whole_number("capacity", capacity)
        self._positions = np.zeros(self.capacity, np.int64)
        self._K = self._V = None
        self._S = 0

    def __len__(self) -> int:
        """Return the number of cached positions S."""
        return self._S

    @property
    def K(self) -> NDArray:
        """The cached keys, shape (..., H_kv, S, d_k), read-only."""
        return self._read(self._K)

    @property
    def V(self) -> NDArray:
        """The cached values, shape (..., H_kv, S, d_v), read-only."""
        return self._read(self._V)

    @property
    def positions(self) -> NDArray[np.int64]:
        """The absolute positions of the cached keys, shape (S,), increasing, read-only."""
        return self._read(self._positions[:, None])[:, 0]

    def append(self, K: ArrayLike, V: ArrayLike, positions: ArrayLike) -> None:
        """Store the keys and values of new positions; after an error the cache is as before.

        Parameters
        ----------
        K, V : arrays, shape (..., H_kv, n, d_k) and (..., H_kv, n, d_v)
            Finite; in later chunks of the leading axes, widths and dtypes of the first.
        positions : integer array, shape (n,)
            Absolute positions, counted from 0, increasing, all beyond those in the cache.

        Raises
        ------
        ValueError
            There is no room, positions repeat or go backwards, or shapes do not fit.
        TypeError
            A dtype differs from that in the cache, or positions are not integers.
        """
        K, V = real_array("K", K), real_array("V", V)
        positions = as_array("positions", positions)
        self._check_chunk(K, V, positions)
        start, end = self._S, self._S + len(positions)
        if self._K is None:
            self._K, self._V = (
                np.zeros((*x.shape[:-2], self.capacity, x.shape[-1]), x.dtype) for x in (K, V)
            )
        self._K[..., start:end, :] = K
        self._V[..., start:end, :] = V
        self._positions[start:end] = positions
        self._S = end

    def _read(self, x: NDArray | None) -> NDArray:
        if x is None:
            raise ValueError("the cache is empty and does not know its shapes yet: append first")
        x = x[..., : self._S, :]
        x.flags.writeable = False
        return x

    def _check_chunk(self, K: NDArray, V: NDArray, positions: NDArray) -> None:
        if min(K.ndim, V.ndim) < 2 or K.shape[:-1] != V.shape[:-1]:
            raise ValueError(
                "K and V must have shapes (..., H_kv, n, d_k) and (..., H_kv, n, d_v) that differ "
                f"in the last axis alone; got K {K.shape}, V {V.shape}"
            )
        if positions.shape != (K.shape[-2],):
            raise ValueError(
                f"positions must have shape ({K.shape[-2]},), one for each row of K {K.shape}; got "
                f"{positions.shape}"
            )
        if positions.size and positions.dtype.kind not in "iu":
            raise TypeError(f"positions must be integers, got dtype {positions.dtype}")
        if self._S + len(positions) > self.capacity:
            raise ValueError(
                f"the cache holds {self._S} of {self.capacity} positions and has no room for "
                f"{len(positions)} more: make it with a capacity of {self._S + len(positions)} or "
                "more"
            )
        last = int(self._positions[self._S - 1]) if self._S else -1
        line = [last, *positions.tolist()]
        if any(b <= a for a, b in pairwise(line)):
            raise ValueError(
                f"positions must increase, from {last + 1} on, since "
                + (f"{last} is the last in the cache" if self._S else "they count from 0")
                + f"; got {positions.tolist()}"
            )
        if self._K is None:
            return
        for name, x, cached in (("K", K, self._K), ("V", V, self._V)):
            if x.dtype != cached.dtype:
                raise TypeError(
                    f"the cache holds {name} as {cached.dtype}, got {x.dtype}: convert it with "
                    f"astype, so that no rounding goes unseen"
                )
            if (*x.shape[:-2], x.shape[-1]) != (*cached.shape[:-2], cached.shape[-1]):
                raise ValueError(
                    f"{name} {x.shape} must have the leading axes and the width of what the cache "
                    f"holds, {(*cached.shape[:-2], self._S, cached.shape[-1])}"
                )
