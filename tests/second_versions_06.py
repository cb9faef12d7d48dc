"""The functions of the exercises of chapter 06, written a second time."""

import math

import numpy as np


def softmax_row(u, J, m=None):
    """Softmax of one row over the keys in J, with the maximum m if it is given."""
    m = max((u[j] for j in J), default=0) if m is None else m
    with np.errstate(all="ignore"):
        e = [np.exp(float(u[j]) - m) if j in J else 0.0 for j in range(len(u))]
        return np.array(e) / sum(e)


def keys(i, pos_k, test=lambda j, i: j <= i):
    return {n for n, j in enumerate(pos_k) if test(j, i)}


def by_rows(J_of_row, m_of_row=lambda u: None):
    """Weights of every row over the set that a rule gives it."""
    return lambda U, pos_q, pos_k: [
        softmax_row(u, J_of_row(n, pos_q, pos_k), m_of_row(u)) for n, u in enumerate(U)
    ]


def visible(n, pos_q, pos_k):
    return keys(pos_q[n], pos_k)


def everything(n, pos_q, pos_k):
    return set(range(len(pos_k)))


def ones(J):
    return [set(np.flatnonzero(row)) for row in J]


def reads(U, sets, V, empty=0.0):
    """Rows of outputs, `empty` for a row without a key."""
    O = np.full((len(U), V.shape[1]), empty)
    for i, (u, J) in enumerate(zip(U, sets, strict=True)):
        if J:
            O[i] = sum(a * v for a, v in zip(softmax_row(u, J), V, strict=True))
    return O


def read_with(m_of_row):
    def read(U, J, V):
        return [
            softmax_row(u, s, m_of_row(u)) @ V if s else 0 * V[0]
            for u, s in zip(U, ones(J), strict=True)
        ]

    return read


def masked_array(U, J, V):
    Z = np.ma.masked_array(U, J == 0)
    e = np.ma.exp(Z - Z.max(axis=1).reshape(-1, 1))
    A = e / e.sum(axis=1).reshape(-1, 1)
    return A.filled(0) @ V


RIGHT = [
    ("6.9", by_rows(visible)),
    ("6.9", lambda U, pos_q, pos_k: np.exp(
        np.where(np.less_equal.outer(pos_k, pos_q).T, U, -np.inf)
        - np.logaddexp.reduce(
            np.where(np.less_equal.outer(pos_k, pos_q).T, U, -np.inf), axis=1, keepdims=True
        )
    )),
    ("6.10", lambda U, J, V: reads(U, ones(J), V)),
    ("6.10", masked_array),
]  # fmt: skip

WRONG = [
    ("6.9", "maximum of all", by_rows(visible, max)),
    ("6.9", "triangle", by_rows(lambda n, pos_q, pos_k: set(range(n + 1)))),
    ("6.9", "lower right", by_rows(
        lambda n, pos_q, pos_k: set(range(n + 1 + len(pos_k) - len(pos_q)))
    )),
    ("6.9", "strict", by_rows(lambda n, q, k: keys(q[n], k, lambda j, i: j < i))),
    ("6.9", "inverted", by_rows(lambda n, q, k: keys(q[n], k, lambda j, i: j > i))),
    ("6.9", "no mask", by_rows(everything)),
    ("6.9", "finite fill", lambda U, pos_q, pos_k: [
        softmax_row([x if j <= i else -99 for x, j in zip(u, pos_k, strict=True)], {*range(len(u))})
        for u, i in zip(U, pos_q, strict=True)
    ]),
    ("6.9", "after softmax", lambda U, pos_q, pos_k: [
        [a if j <= i else 0 for a, j in zip(softmax_row(u, set(range(len(u)))), pos_k, strict=True)]
        for u, i in zip(U, pos_q, strict=True)
    ]),
    ("6.9", "times zero", lambda U, pos_q, pos_k: [
        softmax_row([x if j <= i else 0 for x, j in zip(u, pos_k, strict=True)], {*range(len(u))})
        for u, i in zip(U, pos_q, strict=True)
    ]),
    ("6.9", "columns", lambda U, pos_q, pos_k: np.transpose([
        softmax_row(u, {n for n, i in enumerate(pos_q) if j <= i})
        for u, j in zip(U.T, pos_k, strict=True)
    ])),
    ("6.10", "uniform", lambda U, J, V: reads(U, ones(J), V) + [
        V.mean(axis=0) * (not s) for s in ones(J)
    ]),
    ("6.10", "nan rows", lambda U, J, V: reads(U, ones(J), V, math.nan)),
    ("6.10", "added", lambda U, J, V: reads(U, [s or {*range(len(V))} for s in ones(J)], V)),
    ("6.10", "inverted", lambda U, J, V: reads(U, ones(J == 0), V)),
    ("6.10", "after softmax", lambda U, J, V: [
        sum(a * x * v for a, x, v in zip(softmax_row(u, {*range(len(V))}), row, V, strict=True))
        for u, row in zip(U, J, strict=True)
    ]),
    ("6.10", "overflow", read_with(lambda u: 0)),
    ("6.10", "maximum of all", lambda U, J, V: np.nan_to_num(read_with(max)(U, J, V))),
    ("6.10", "maximum of all, empty rows apart", read_with(max)),
    ("6.10", "no mask", lambda U, J, V: reads(U, ones(J + 1), V)),
    ("6.10", "weights", lambda U, J, V: [
        softmax_row(u, s) if s else [0] * len(V) for u, s in zip(U, ones(J), strict=True)
    ]),
    ("6.10", "columns", lambda U, J, V: np.transpose([
        softmax_row(u, s) if s else [0] * len(U) for u, s in zip(U.T, ones(J.T), strict=True)
    ]) @ V),
]  # fmt: skip
