"""What a training step costs, beside JAX and PyTorch: ratios measured within one run.

    python tests/benchmark_training.py

A step is forward, backward and Adam on one batch, in float64 on one thread; the time is the least
of many, the sides taking turns. JAX is compiled beforehand; PyTorch, where it is
installed, runs eagerly with its own Adam. Before anything is timed, all sides take the same first
step. Goal: the book takes no longer than either.
"""

import math
import os
import time

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

from attnbook.training import Model, gradient, initial, no_moments, unpack
from attnbook.training.adam import unchecked_step  # as `train` does it

RATE, BETA, EPS = 0.003, (0.9, 0.99), 1e-8
SIZES = {
    "one layer, 1 head, T = 8": (Model(16, 16, 16, 16, positions=8), 32, 8),
    "two layers, 1 head, T = 20": (Model(16, 16, 32, 16, layers=2, positions=20), 64, 20),
    "two layers, 4 heads, T = 32": (Model(32, 32, 64, 16, 4, 4, layers=2, positions=32), 32, 32),
    "one layer, 4 heads on 1": (Model(8, 32, 32, 8, 4, 1, positions=12), 32, 12),
}


def batch(model, B, T):
    rng = np.random.default_rng(1)
    return rng.integers(model.tokens, size=(B, T)), rng.integers(model.outputs, size=(B, T))


def by_attnbook(model, theta, tokens, targets):
    """Return a call that takes one step after the other, and gives theta."""
    state = [theta, no_moments(theta)]

    def step():
        _, dtheta = gradient(model, state[0], tokens, targets)
        state[:] = unchecked_step(state[0], dtheta, state[1], rate=RATE, beta=BETA, eps=EPS)
        return state[0]

    return step


def loss_with(xp, softmax, log_softmax, model, weights, tokens, targets):
    """The model once more, with the functions of another library."""
    T = tokens.shape[1]
    X = weights.embedding[tokens]
    if model.positions:
        X = X + weights.position[:T]
    later = xp.tril(xp.ones((T, T))) == 0
    r = model.H_q // model.H_kv
    for W_Q, W_K, W_V, W_O in weights.layers:
        Q, K, V = (
            (X @ W).reshape(*X.shape[:2], -1, model.d_k).swapaxes(1, 2) for W in (W_Q, W_K, W_V)
        )
        Q = Q.reshape(Q.shape[0], model.H_kv, r, T, model.d_k)
        U = Q @ K[:, :, None].swapaxes(-1, -2) / math.sqrt(model.d_k)
        A = softmax(xp.where(later, -math.inf, U))
        O = (A @ V[:, :, None]).reshape(X.shape[0], model.H_q, T, model.d_k)
        X = X + O.swapaxes(1, 2).reshape(*X.shape[:2], -1) @ W_O
    logp = log_softmax(X @ weights.W_out)
    B = xp.arange(len(tokens))[:, None]
    return -logp[B, xp.arange(T), targets].mean()


def by_jax(model, theta, tokens, targets):
    def loss(theta):
        shapes = jax.tree.map(np.shape, unpack(model, np.zeros(theta.size)), is_leaf=_is_array)
        leaves, tree = jax.tree.flatten(shapes, is_leaf=lambda x: isinstance(x[0], int))
        ends = np.cumsum([math.prod(s) for s in leaves]).tolist()
        parts = [theta[e - math.prod(s) : e].reshape(s) for s, e in zip(leaves, ends, strict=True)]
        weights = jax.tree.unflatten(tree, parts)
        return loss_with(jnp, jax.nn.softmax, jax.nn.log_softmax, model, weights, tokens, targets)

    @jax.jit
    def step(theta, m, v, t):
        d = jax.grad(loss)(theta)
        m, v, t = BETA[0] * m + (1 - BETA[0]) * d, BETA[1] * v + (1 - BETA[1]) * d * d, t + 1
        root = jnp.sqrt(v / (1 - BETA[1] ** t))
        return theta - RATE * m / (1 - BETA[0] ** t) / (root + EPS), m, v, t

    tokens, targets = jnp.asarray(tokens), jnp.asarray(targets)
    zero = jnp.zeros(theta.size)
    state = [jnp.asarray(theta), zero, zero, 0.0]

    def call():
        state[:] = jax.block_until_ready(step(*state))
        return state[0]

    return call


def _is_array(x):
    return isinstance(x, np.ndarray)


def by_torch(model, theta, tokens, targets):
    tokens, targets = torch.from_numpy(tokens), torch.from_numpy(targets)
    weights = unpack(model, theta.copy())
    leaf = lambda x: torch.tensor(x, requires_grad=True)  # noqa: E731
    layers = tuple(type(layer)(*map(leaf, layer)) for layer in weights.layers)
    weights = type(weights)(
        leaf(weights.embedding), leaf(weights.position), layers, leaf(weights.W_out)
    )
    flat = [
        weights.embedding,
        weights.position,
        *(W for layer in layers for W in layer),
        weights.W_out,
    ]
    optimiser = torch.optim.Adam(flat, lr=RATE, betas=BETA, eps=EPS)

    def softmax(U):
        return torch.softmax(U, -1)

    def log_softmax(z):
        return torch.log_softmax(z, -1)

    def call():
        optimiser.zero_grad()
        loss_with(torch, softmax, log_softmax, model, weights, tokens, targets).backward()
        optimiser.step()
        return np.concatenate([x.detach().numpy().ravel() for x in flat])

    return call


def milliseconds(calls, turns, steps=10):
    """The least time of a step: sides take turns, each turn some steps in a row as in a run."""
    best = [math.inf] * len(calls)
    for _ in range(turns):
        for i, call in enumerate(calls):
            for _ in range(steps):
                start = time.perf_counter()
                call()
                best[i] = min(best[i], time.perf_counter() - start)
    return [1e3 * x for x in best]


def main():
    jax.config.update("jax_enable_x64", True)
    sides = {"attnbook": by_attnbook, "JAX": by_jax}
    if torch is not None:
        torch.set_num_threads(1)
        sides["PyTorch"] = by_torch
    print("one training step, milliseconds, and the ratio attnbook / other")
    for name, (model, B, T) in SIZES.items():
        tokens, targets = batch(model, B, T)
        theta = initial(model, np.random.default_rng(0))
        calls = [side(model, theta, tokens, targets) for side in sides.values()]
        first, *others = (call() for call in calls)
        assert not np.allclose(first, theta, atol=1e-4)
        for other in others:
            np.testing.assert_allclose(other, first, atol=1e-6)
        ours, *theirs = milliseconds(calls, 20)
        told = "".join(
            f"   {side} {t:6.2f} ({ours / t:.2f})"
            for side, t in zip(list(sides)[1:], theirs, strict=True)
        )
        print(f"  {name:28} B = {B}   attnbook {ours:6.2f}{told}")


if __name__ == "__main__":
    main()
