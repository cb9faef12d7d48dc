"""What the checks cost, and what tiles save: ratios measured within one run, for one's own eyes.

    python tests/benchmark_numerics.py

Each time is the least of several, the sides taking turns: processor time on one thread, so that it
matters little what else the computer does. Goals: the dense code at most 1.15
times the plain expressions, tiled at most 1.2 times the dense time and 1/20 of its memory.
"""

import gc
import math
import os
import subprocess
import sys
import time
import tracemalloc

# Read when numpy is loaded.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np

from attnbook import (
    attention,
    attention_backward,
    masks,
    tiled_attention,
    tiled_attention_backward,
)


def plain(Q, K, V, dO, allowed):
    """The steps of forward and backward as numpy expressions, without a check: keep it as it is."""
    scale = 1 / math.sqrt(Q.shape[-1])
    U = scale * (Q @ K.mT)
    Z = U if allowed is None else np.where(allowed, U, -np.inf)
    e = np.exp(Z - Z.max(axis=-1, keepdims=True))
    A = e / e.sum(axis=-1, keepdims=True)
    O = A @ V
    dV = A.mT @ dO
    dA = dO @ V.mT
    dU = A * (dA - (A * dA).sum(axis=-1, keepdims=True))
    dQ = scale * (dU @ K)
    dK = scale * (dU.mT @ Q)
    return O, A, U, dQ, dK, dV, dA, dU


def dense(Q, K, V, dO, allowed):
    O, A, U = attention(Q, K, V, allowed)
    return O, A, U, *attention_backward(dO, Q, K, V, A)


def tiled(Q, K, V, dO, allowed):
    forward = tiled_attention(Q, K, V, allowed)
    return forward.O, *tiled_attention_backward(dO, Q, K, V, *forward, allowed)


def seconds(calls, times, clock=time.process_time):
    """The least time of each call."""
    best = [math.inf] * len(calls)
    for _ in range(times):
        for i, call in enumerate(calls):
            start = clock()
            call()
            best[i] = min(best[i], clock() - start)
    return best


def megabytes(call):
    """The largest memory that arrays take at one time, beyond the inputs."""
    gc.collect()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def inputs(*shape, dtype):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for _ in range(4)]


def compare_dense_with_plain():
    print("attention and attention_backward, H = 8, T = S = 512, d_k = d_v = 64")
    for dtype in (np.float64, np.float32):
        for name, allowed in (("all", None), ("causal", masks.causal(512, 512))):
            arrays = *inputs(8, 512, 64, dtype=dtype), allowed
            for x, y in zip(plain(*arrays)[3:6], dense(*arrays)[3:6], strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
            a, b = seconds([lambda: plain(*arrays), lambda: dense(*arrays)], 15)  # noqa: B023
            print(
                f"  {np.dtype(dtype).name} {name:6}  plain {1e3 * a:5.0f} ms   attnbook "
                f"{1e3 * b:5.0f} ms   ratio {b / a:.2f}"
            )


def compare_tiled_with_dense():
    print("tiled_attention and its backward, one head, T = S = 4096, d_k = d_v = 64")
    T = 4096
    positions = np.arange(T)
    whole = masks.causal(T, T)

    def causal(rows, keys):
        return masks.causal(positions[rows], positions[keys])

    arrays = inputs(T, 64, dtype=np.float64)
    for name, full, by_tile in (("all", None, None), ("causal", whole, causal)):
        calls = [lambda: dense(*arrays, full), lambda: tiled(*arrays, by_tile)]  # noqa: B023
        x, y = (call() for call in calls)
        np.testing.assert_allclose(x[0], y[0], rtol=1e-12, atol=1e-14)
        del x, y
        a, b = seconds(calls, 3)
        m, n = (megabytes(call) for call in calls)
        print(
            f"  float64 {name:6}  dense {1e3 * a:5.0f} ms, {m:5.0f} MiB   tiled {1e3 * b:5.0f} ms, "
            f"{n:5.1f} MiB   time {b / a:.2f}   memory 1/{m / n:.0f}"
        )


def compare_imports():
    def run(module):
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    a, b, c = seconds(
        [lambda: run("sys"), lambda: run("numpy"), lambda: run("attnbook")], 15, time.perf_counter
    )
    print("a new interpreter that imports")
    print(
        f"  nothing {1e3 * a:.0f} ms   numpy {1e3 * b:.0f} ms   attnbook {1e3 * c:.0f} ms   "
        f"attnbook beyond numpy {1e3 * (c - b):.0f} ms"
    )


if __name__ == "__main__":
    compare_dense_with_plain()
    compare_tiled_with_dense()
    compare_imports()
