"""Second versions of the function of chapter 13's exercises, right ones and wrong ones.

Written without the chapter's module: loops, einsum, other orders of operations. Each wrong one
stands beside the misconception that the check has to recognise.
"""

import math

import numpy as np


def p(u):
    e = [math.exp(x - max(u)) for x in u]
    return np.array([x / sum(e) for x in e])


def by_loops(U, Y):
    n, C = U.shape
    return [[(p(U[i])[c] - Y[i, c]) / n for c in range(C)] for i in range(n)]


def by_the_jacobian(U, Y):
    """-1/p_y through diag(p) - p^T p, place by place."""
    found = []
    for u, y in zip(U, Y, strict=True):
        a = p(u)
        dp = -np.asarray(y, dtype=float) / a
        found.append((np.diag(a) - np.outer(a, a)) @ dp / len(U))
    return np.array(found)


def by_targets(U, Y):
    G = np.array([p(u) for u in U])
    G[np.arange(len(U)), np.argmax(Y, axis=1)] -= 1
    return G / len(G)


def places(one):
    return lambda U, Y: np.array([one(u, y, U) for u, y in zip(U, Y, strict=True)])


RIGHT = [("13.7", by_loops), ("13.7", by_the_jacobian), ("13.7", by_targets)]

WRONG = [
    ("13.7", "sum", places(lambda u, y, U: p(u) - y)),
    ("13.7", "sign", lambda U, Y: -np.array(by_loops(U, Y))),
    ("13.7", "mean of all", places(lambda u, y, U: (p(u) - y) / (len(U) * len(u)))),
    ("13.7", "classes", places(lambda u, y, U: (p(u) - y) / len(u))),
    ("13.7", "columns", lambda U, Y: (np.array([p(u) for u in U.T]).T - Y) / len(Y)),
    ("13.7", "no softmax", places(lambda u, y, U: (u - y) / len(U))),
    ("13.7", "target alone", places(lambda u, y, U: np.where(y == 1, p(u) - 1, 0) / len(U))),
]
