"""The function of the exercises of chapter 10, written a second time."""

import math

import numpy as np


def visible(i, k, S):
    return range(min(i + int(k), S))


def weights(u):
    e = [math.exp(x) for x in u]
    return np.array([x / sum(e) for x in e])


def read(u, V):
    return sum(a * v for a, v in zip(weights(u), V, strict=True))


def row_by_row(one_row):
    return lambda U, V, k: np.array([one_row(i, u, V, k) for i, u in enumerate(U)], float)


def arrived(i, u, V, k):
    n = len(visible(i, k, len(V)))
    return read(u[:n], V[:n])


def with_hidden(i, u, V, k, hidden):
    shown = visible(i, k, len(V))
    return read([x if j in shown else hidden for j, x in enumerate(u)], V)


def columns(U, V, k):
    T, S = U.shape
    e = np.array(
        [[math.exp(U[i, j]) * (j in visible(i, k, S)) for j in range(S)] for i in range(T)]
    )
    total = e.sum(axis=0)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ V


RIGHT = [
    ("10.5", row_by_row(arrived)),
    ("10.5", lambda U, V, k: [list(arrived(i, u, V, k)) for i, u in enumerate(U)]),
    ("10.5", row_by_row(lambda i, u, V, k: with_hidden(i, u, V, k, -1e9))),
]

WRONG = [
    ("10.5", "one too many", row_by_row(lambda i, u, V, k: arrived(i + 1, u, V, k))),
    ("10.5", "all", row_by_row(lambda i, u, V, k: read(u, V))),
    ("10.5", "zeroed weights", row_by_row(
        lambda i, u, V, k: sum(weights(u)[j] * V[j] for j in visible(i, k, len(V)))
    )),
    ("10.5", "zero scores", row_by_row(lambda i, u, V, k: with_hidden(i, u, V, k, 0))),
    ("10.5", "fixed prefix", row_by_row(lambda i, u, V, k: arrived(0, u, V, k))),
    ("10.5", "window", row_by_row(
        lambda i, u, V, k: arrived(0, u[min(i, len(V) - 1):], V[min(i, len(V) - 1):], k)
    )),
    ("10.5", "no softmax", row_by_row(
        lambda i, u, V, k: sum(u[j] * V[j] for j in visible(i, k, len(V)))
    )),
    ("10.5", "columns", columns),
    ("10.5", "average", row_by_row(
        lambda i, u, V, k: np.mean(V[: len(visible(i, k, len(V)))], axis=0)
    )),
]  # fmt: skip
