"""Second versions of the functions of chapter 03's exercises, right ones and wrong ones.

Written without the chapter's module: loops, einsum, other orders of operations. Each wrong one
stands beside the misconception that the check has to recognise.
"""

import math

import numpy as np
import sympy as sp


def loop(entry):
    """A function that computes each score from the query of one token and the key of another."""
    return lambda X, W_Q, W_K: [[entry(x @ W_Q, y @ W_K) for y in X] for x in X]


def weights(X, W_Q, W_K):
    rows = []
    for x in X:
        e = [math.exp((x @ W_Q) @ (y @ W_K)) for y in X]
        rows.append([term / sum(e) for term in e])
    return rows


WRONG = [
    ("3.8", "transposed", lambda X, W_Q, W_K: np.einsum("ip,pk,jr,rk->ij", X, W_K, X, W_Q)),
    ("3.8", "scaled", loop(lambda q, k: q @ k / math.sqrt(len(q)))),
    ("3.8", "tied to queries", lambda X, W_Q, W_K: np.inner(np.dot(X, W_Q), np.dot(X, W_Q))),
    ("3.8", "tied to keys", lambda X, W_Q, W_K: X @ (W_K @ W_K.T) @ X.T),
    ("3.8", "not projected", lambda X, W_Q, W_K: [[float(np.dot(x, y)) for y in X] for x in X]),
    ("3.8", "no transpose", lambda X, W_Q, W_K: np.matmul(np.matmul(X, W_Q), np.matmul(X, W_K))),
    ("3.8", "columns", lambda X, W_Q, W_K: W_Q.T @ (X.T @ X) @ W_K),
    ("3.8", "weights of the match", lambda X, W_Q, W_K: np.inner(W_Q, W_K)),
    ("3.8", "softmax", weights),
]

RIGHT = [
    ("3.8", loop(lambda q, k: float(q @ k))),
    ("3.8", lambda X, W_Q, W_K: X @ (W_Q @ W_K.T) @ X.T),
    ("3.8", lambda X, W_Q, W_K: np.einsum("ip,pk,jr,rk->ij", X, W_Q, X, W_K)),
    (
        "3.8",
        lambda X, W_Q, W_K: (
            sp.Matrix(X.tolist()) * sp.Matrix((W_Q @ W_K.T).tolist()) * sp.Matrix(X.T.tolist())
        ),
    ),
]
