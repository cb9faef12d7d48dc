"""The functions of the exercises of chapter 05, written a second time."""

import math

import numpy as np


def weights(u):
    e = [math.exp(x - max(u)) for x in u]
    return np.array([x / sum(e) for x in e])


def log_row(u, m=None):
    m = max(u) if m is None else m
    with np.errstate(all="ignore"):
        return np.array([x - m - np.log(sum(np.exp(np.array(u, float) - m))) for x in u])


def row_by_row(one_row):
    return lambda U, *more: np.array([one_row(u, *more) for u in U])


RIGHT = [
    ("5.6", row_by_row(log_row)),
    ("5.6", lambda U: [list(log_row(u)) for u in U]),
    ("5.6", lambda U: U - np.logaddexp.reduce(U, axis=1, keepdims=True)),
    ("5.10", lambda U, V: [sum(a * v for a, v in zip(weights(u), V, strict=True)) for u in U]),
    ("5.10", lambda U, V: np.einsum("ij,jp->ip", [weights(u) for u in U], V)),
]

WRONG = [
    ("5.6", "log of softmax", row_by_row(lambda u: np.log(weights(u)))),
    ("5.6", "epsilon", row_by_row(lambda u: [math.log(x + 1e-12) for x in weights(u)])),
    ("5.6", "no shift", row_by_row(lambda u: log_row(u, 0))),
    ("5.6", "one shift", lambda U: [log_row(u, np.max(U)) for u in U]),
    ("5.6", "no logarithm", row_by_row(weights)),
    ("5.6", "no sum", row_by_row(lambda u: u - max(u))),
    ("5.6", "shift lost", row_by_row(lambda u: log_row(u) + max(u))),
    ("5.6", "base 2", row_by_row(lambda u: log_row(u) * math.log2(math.e))),
    ("5.6", "sign", row_by_row(lambda u: -log_row(u))),
    ("5.6", "columns", lambda U: np.transpose([log_row(u) for u in U.T])),
    ("5.10", "overflow", row_by_row(lambda u, V: np.exp(u) / sum(np.exp(u)) @ V)),
    ("5.10", "one shift", lambda U, V: [
        e / sum(e) @ V for e in np.exp(np.subtract(U, np.max(U)))
    ]),
    ("5.10", "columns", lambda U, V: np.transpose([weights(u) for u in U.T]) @ V),
    ("5.10", "no sum", row_by_row(lambda u, V: weights(u) / max(weights(u)) @ V)),
    ("5.10", "average", row_by_row(lambda u, V: sum(V) / len(V))),
    ("5.10", "hard", row_by_row(lambda u, V: V[list(u).index(max(u))])),
    ("5.10", "weights", row_by_row(lambda u, V: weights(u))),
    ("5.10", "scores", lambda U, V: np.einsum("ij,jp->ip", U, V)),
    ("5.10", "divided by S", row_by_row(lambda u, V: np.mean(weights(u)[:, None] * V, axis=0))),
]  # fmt: skip
