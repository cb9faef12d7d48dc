"""What the checks cost, and what tiles save: ratios measured within one run, for one's own eyes.

    python tests/benchmark_numerics.py

Each time is the least of several, the sides taking turns: processor time on one thread, so that it
matters little what else the computer does. Goals: the dense code at most 1.15 times the plain
expressions at T = S = 512 (on small arrays the checks cost more than the arithmetic), tiled at most
1.2 times the dense time and 1/20 of its memory. JAX, and PyTorch where it is installed, do the same
steps on the CPU beside them, for the reader's orientation: JAX compiled, PyTorch by its own
scaled_dot_product_attention.
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
os.environ.update(XLA_FLAGS="--xla_cpu_multi_thread_eigen=false", JAX_PLATFORMS="cpu")

import jax
import jax.numpy as jnp
import numpy as np

try:
    import torch
except ModuleNotFoundError:
    torch = None
    print("PyTorch is not installed: its columns are left out")

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


@jax.jit
def by_jax(Q, K, V, dO, allowed):
    def forward(Q, K, V):
        U = Q @ K.mT / math.sqrt(Q.shape[-1])
        return jax.nn.softmax(U if allowed is None else jnp.where(allowed, U, -jnp.inf)) @ V

    O, backward = jax.vjp(forward, Q, K, V)
    return O, *backward(dO)


def by_torch(Q, K, V, dO, allowed):
    Q, K, V = (torch.tensor(x, requires_grad=True) for x in (Q, K, V))
    mask = None if allowed is None else torch.from_numpy(allowed)
    O = torch.nn.functional.scaled_dot_product_attention(Q, K, V, mask)
    O.backward(torch.from_numpy(dO))
    return tuple(x.detach().numpy() for x in (O, Q.grad, K.grad, V.grad))


def peers(arrays):
    """The same steps elsewhere: name and call, after a first call that agrees with the book's."""
    *numbers, allowed = arrays
    calls = {"JAX": lambda: jax.block_until_ready(by_jax(*numbers, allowed))}
    if torch is not None:
        calls["PyTorch"] = lambda: by_torch(*numbers, allowed)
    O, _, _, dQ, dK, dV, _, _ = dense(*arrays)
    for call in calls.values():
        for x, y in zip(call(), (O, dQ, dK, dV), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
    return calls


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
    print("attention and attention_backward, H = 8, d_k = d_v = 64; milliseconds")
    for T in (8, 64, 128, 512):
        for dtype in (np.float64, np.float32):
            for name, allowed in (("all", None), ("causal", masks.causal(T, T))):
                arrays = *inputs(8, T, 64, dtype=dtype), allowed
                for x, y in zip(plain(*arrays)[3:6], dense(*arrays)[3:6], strict=True):
                    np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)
                others = peers(arrays)
                calls = [lambda: plain(*arrays), lambda: dense(*arrays)]  # noqa: B023
                a, b, *rest = seconds([*calls, *others.values()], 15)
                told = "".join(f"   {n} {1e3 * x:6.2f}" for n, x in zip(others, rest, strict=True))
                print(
                    f"  T = S = {T:3} {np.dtype(dtype).name} {name:6}  plain {1e3 * a:6.2f}   "
                    f"attnbook {1e3 * b:6.2f}   ratio {b / a:.2f}{told}"
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
        others = peers((*arrays, full))
        a, b, *rest = seconds([*calls, *others.values()], 3)
        m, n = (megabytes(call) for call in calls)
        told = "".join(f"   {k} {1e3 * x:.0f} ms" for k, x in zip(others, rest, strict=True))
        print(
            f"  float64 {name:6}  dense {1e3 * a:5.0f} ms, {m:5.0f} MiB   tiled {1e3 * b:5.0f} ms, "
            f"{n:5.1f} MiB   time {b / a:.2f}   memory 1/{m / n:.0f}{told}"
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
    jax.config.update("jax_enable_x64", True)
    compare_dense_with_plain()
    compare_tiled_with_dense()
    compare_imports()
