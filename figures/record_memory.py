"""Measure the peak memory of dense and of tiled attention: ``python figures/record_memory.py``.

Writes ``attnbook/labs/recorded/attention_memory.csv``, which chapter 11 shows. It takes about a
minute on an idle computer, and 300 MiB. No time is recorded. The bytes do not depend on the speed
of the computer, and hardly on the version of numpy: a temporary array may be spared.
"""

import csv

import numpy as np

from attnbook import attention, tiled_attention
from attnbook.labs.sharing_keys_and_values import RECORDED, Peak
from attnbook.memory import peak_bytes

D_K = D_V = 64
DENSE = tuple(2**n for n in range(7, 13))  # 128 ... 4,096
TILED = tuple(2**n for n in range(7, 15))  # 128 ... 16,384
TILES = (64, 128, 256, 512)


def head(T: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries, keys and values of one head, T of each."""
    rng = np.random.default_rng(T)
    return rng.normal(size=(T, D_K)), rng.normal(size=(T, D_K)), rng.normal(size=(T, D_V))


def measure(tile: int, T: int) -> Peak:
    """Return the peak of one call."""
    Q, K, V = head(T)
    if tile == 0:
        return Peak(0, T, peak_bytes(attention, Q, K, V))
    return Peak(tile, T, peak_bytes(tiled_attention, Q, K, V, query_tile=tile, key_tile=tile))


def record() -> list[Peak]:
    """Return all peaks, dense attention first."""
    measure(0, 64)  # loads what is loaded once
    measure(64, 64)
    plan = [(0, T) for T in DENSE] + [(tile, T) for tile in TILES for T in TILED]
    return [measure(tile, T) for tile, T in plan]


if __name__ == "__main__":
    with RECORDED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Peak._fields)
        writer.writerows(record())
    print(RECORDED.name)
