"""Second versions of the functions of chapter 04's exercises, right ones and wrong ones.

Written without the chapter's module: loops, einsum, other orders of operations. Each wrong one
stands beside the misconception that the check has to recognise.
"""

import math

import numpy as np
import sympy as sp


def loop(entry):
    """A function of Q and K that computes each score from a query and a key."""
    return lambda Q, K: [[entry(q, k, Q, K) for k in K] for q in Q]


def row_by_row(one_row):
    return lambda U, *more: np.array([one_row(u, *more) for u in U])


def p(u):
    e = [math.exp(x - max(u)) for x in u]
    return np.array([x / sum(e) for x in e])


def h(a, logarithm=math.log):
    return -sum(x * logarithm(x) for x in a if x > 0)


def into_an_array_like_Q(Q, K):
    U = np.zeros((len(Q), len(K)), dtype=Q.dtype)
    for i, j in np.ndindex(U.shape):
        U[i, j] = np.dot(Q[i], K[j]) / math.sqrt(len(Q[i]))
    return U


def weights_without_keepdims(U, tau):
    Z = U / tau
    e = np.exp(Z - np.max(Z, axis=1))
    return e / np.sum(e, axis=1)


def minus_the_maximum_then_divided(U, tau):
    e = np.exp(U / tau - np.array([[max(u)] for u in U]))
    return e / e.sum(axis=-1)[:, None]


WRONG = [
    ("4.9", "no scale", loop(lambda q, k, Q, K: sum(a * b for a, b in zip(q, k, strict=True)))),
    ("4.9", "by width", lambda Q, K: np.einsum("ip,jp->ij", Q, K) / K.shape[-1]),
    ("4.9", "by width", lambda Q, K: (Q / len(Q[0]) ** 0.5) @ (K / len(Q[0]) ** 0.5).T),
    ("4.9", "multiplied", loop(lambda q, k, Q, K: q @ k * math.sqrt(len(q)))),
    ("4.9", "number of keys", lambda Q, K: np.inner(Q, K) / np.sqrt(K.shape[0])),
    ("4.9", "number of queries", lambda Q, K: np.inner(Q, K) / np.sqrt(len(Q))),
    ("4.9", "swapped", lambda Q, K: np.inner(K, Q) / np.sqrt(Q.shape[-1])),
    ("4.9", "no transpose", lambda Q, K: np.matmul(Q, K) / np.sqrt(Q.shape[-1])),
    ("4.9", "cosine", loop(lambda q, k, Q, K: q @ k / math.hypot(*q) / math.hypot(*k))),
    ("4.9", "weights", lambda Q, K: [p(u) for u in np.inner(Q, K) / np.sqrt(Q.shape[-1])]),
    ("4.9", "truncated", into_an_array_like_Q),
    ("4.9", "width of 4", lambda Q, K: np.inner(Q, K) * 0.5),
    ("4.10", "log of zero", row_by_row(lambda a: -sum(a * np.log(a)))),
    ("4.10", "sign", row_by_row(lambda a: -h(a))),
    ("4.10", "bits", row_by_row(lambda a: h(a, math.log2))),
    ("4.10", "base 10", row_by_row(lambda a: h(a, math.log10))),
    ("4.10", "columns", lambda A: [h(a) for a in A.T]),
    ("4.10", "everything", lambda A: h(A.ravel())),
    ("4.10", "mean", row_by_row(lambda a: h(a) / len(a))),
    ("4.10", "no weight", row_by_row(lambda a: -sum(math.log(x) for x in a if x > 0))),
    ("4.10", "share of log S", row_by_row(lambda a: h(a) / math.log(len(a)))),
    ("4.10", "not summed", row_by_row(lambda a: [h([x]) for x in a])),
    ("4.11", "multiplied", row_by_row(lambda u, tau: p(u * tau))),
    ("4.11", "ignored", row_by_row(lambda u, tau: p(u))),
    ("4.11", "ignored", lambda U, tau: [p(u) * tau / sum(p(u) * tau) for u in U]),
    ("4.11", "weights divided", row_by_row(lambda u, tau: p(u) / tau)),
    ("4.11", "columns", lambda U, tau: np.transpose([p(u / tau) for u in U.T])),
    ("4.11", "everything", lambda U, tau: p(U.ravel() / tau).reshape(U.shape)),
    ("4.11", "overflow", row_by_row(lambda u, tau: np.exp(u / tau) / sum(np.exp(u / tau)))),
    ("4.11", "one shift", lambda U, tau: [
        e / e.sum() for e in (np.exp(u / tau - np.max(U) / tau) for u in U)
    ]),
    ("4.11", "unscaled shift", minus_the_maximum_then_divided),
    ("4.11", "no keepdims", weights_without_keepdims),
    ("4.11", "no sum", row_by_row(lambda u, tau: p(u / tau) / p(u / tau).max())),
]  # fmt: skip

RIGHT = [
    ("4.9", lambda Q, K: Q @ K.T / math.sqrt(K.shape[1])),
    ("4.9", loop(lambda q, k, Q, K: float(q @ k) / len(k) ** 0.5)),
    ("4.9", lambda Q, K: np.float32(Q) @ np.float32(K).T / math.sqrt(K.shape[1])),
    ("4.9", lambda Q, K: sp.Matrix(Q.tolist()) * sp.Matrix(K.tolist()).T / K.shape[1] ** 0.5),
    ("4.10", row_by_row(h)),
    ("4.10", lambda A: [float(h(a)) for a in A]),
    ("4.11", lambda U, tau: [p(u / tau) for u in U]),
    ("4.11", lambda U, tau: [list(p((u - max(u)) / tau)) for u in U]),
]
