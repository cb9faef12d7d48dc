"""The functions of the exercises of chapter 07, written a second time, query by query."""

import math

import numpy as np


def weights(u):
    e = [math.exp(x - max(u)) for x in u]
    return [x / sum(e) for x in e]


def read(U, V):
    """Mix the values with softmax of each row of scores."""
    return [sum(a * np.array(v, float) for a, v in zip(weights(u), V, strict=True)) for u in U]


def scores(X, W_Q, W_K, root):
    return [[(x @ W_Q) @ (y @ W_K) / math.sqrt(root) for y in X] for x in X]


def head(root):
    return lambda X, W_Q, W_K, W_V: read(scores(X, W_Q, W_K, root(X, W_K, W_V)), X @ W_V)


def right_root(X, W_K, W_V):
    return len(W_K[0])


def with_scores(f):
    return lambda X, W_Q, W_K, W_V: f(np.array(scores(X, W_Q, W_K, len(W_K[0]))), X @ W_V)


def first_keys(Q, K, V, n, *, count=lambda m, S: m, root=None):
    """Read the first count(n_i, S) keys for each query."""
    O = []
    for q, m in zip(Q, n, strict=True):
        J = range(count(int(m), len(K)))
        u = [sum(a * b for a, b in zip(q, K[j], strict=True)) / (root or len(q) ** 0.5) for j in J]
        O.append(read([u], V[: len(u)])[0] if u else [0.0] * len(V[0]))
    return np.array(O)


def counting(count):
    return lambda Q, K, V, n: first_keys(Q, K, V, n, count=count)


def cut(Q, K, V, n):
    A = [weights(row) for row in np.array(Q @ K.T) / math.sqrt(len(K[0]))]
    return [
        sum((a * v for a, v in list(zip(row, V, strict=True))[: int(m)]), np.zeros(len(V[0])))
        for row, m in zip(A, n, strict=True)
    ]


def with_average(Q, K, V, n):
    O = first_keys(Q, K, V, n)
    O[np.array(n) == 0] = sum(V) / len(V)
    return O


def maximum_of_all(Q, K, V, n):
    U = Q @ K.T / math.sqrt(len(K[0]))
    e = np.exp(U - U.max(axis=1, keepdims=True)) * (np.arange(len(K)) < n[:, None])
    return np.where(n[:, None] == 0, 0, e / e.sum(axis=1, keepdims=True) @ V)


def masked(Q, K, V, n):
    allowed = np.arange(len(K)) < n[:, None]
    U = np.where(allowed, Q @ K.T / math.sqrt(len(K[0])), -1e9)
    return np.array([weights(row) for row in U]) * allowed @ V


RIGHT = [
    ("7.7", head(right_root)),
    ("7.7", lambda X, W_Q, W_K, W_V: np.einsum(
        "ij,jp->ip", [weights(u) for u in scores(X, W_Q, W_K, len(W_Q[0]))], X @ W_V)),
    ("7.8", first_keys),
    ("7.8", masked),
]  # fmt: skip

WRONG = [
    ("7.7", "exchanged", lambda X, W_Q, W_K, W_V: read(
        np.transpose(scores(X, W_Q, W_K, len(W_K[0]))), X @ W_V)),
    ("7.7", "queries twice", lambda X, W_Q, W_K, W_V: head(right_root)(X, W_Q, W_Q, W_V)),
    ("7.7", "no scale", head(lambda *_: 1)),
    ("7.7", "divided by d_k", head(lambda X, W_K, W_V: len(W_K[0]) ** 2)),
    ("7.7", "root of d_v", head(lambda X, W_K, W_V: len(W_V[0]))),
    ("7.7", "root of d", head(lambda X, W_K, W_V: len(W_V))),
    ("7.7", "root of n", head(lambda X, W_K, W_V: len(X))),
    ("7.7", "over queries", with_scores(
        lambda U, V: np.transpose([weights(column) for column in U.T]) @ V)),
    ("7.7", "no softmax", with_scores(lambda U, V: np.einsum("ij,jp->ip", U, V))),
    ("7.7", "no sum", with_scores(
        lambda U, V: [sum(math.exp(x - max(u)) * v for x, v in zip(u, V, strict=True))
                      for u in U])),
    ("7.7", "scale outside", lambda X, W_Q, W_K, W_V: np.array(
        read(scores(X, W_Q, W_K, 1), X @ W_V)) / len(W_K[0]) ** 0.5),
    ("7.7", "average", with_scores(lambda U, V: [sum(V) / len(V)] * len(U))),
    ("7.7", "causal", with_scores(
        lambda U, V: [read([u[: i + 1]], V[: i + 1])[0] for i, u in enumerate(U)])),
    ("7.8", "every key", counting(lambda m, S: S)),
    ("7.8", "invalid reads", counting(lambda m, S: S if m == 0 else m)),
    ("7.8", "invalid averages", with_average),
    ("7.8", "cut after softmax", cut),
    ("7.8", "divided again", maximum_of_all),
    ("7.8", "one more", counting(lambda m, S: 0 if m == 0 else min(m + 1, S))),
    ("7.8", "one less", counting(lambda m, S: max(0, m - 1))),
    ("7.8", "last keys", lambda Q, K, V, n: first_keys(Q, K[::-1], V[::-1], n)),
    ("7.8", "no scale", lambda Q, K, V, n: first_keys(Q, K, V, n, root=1)),
    ("7.8", "divided by d_k", lambda Q, K, V, n: first_keys(Q, K, V, n, root=len(Q[0]))),
]  # fmt: skip
