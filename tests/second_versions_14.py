"""The function of the exercises of chapter 14, written a second time, right and wrong."""

import numpy as np


def by_loops(A, P):
    total, rows = 0.0, 0
    for i in range(len(A)):
        if any(P[i]):
            rows += 1
            total += sum(A[i][j] for j in range(len(A[i])) if P[i][j])
    return total / rows


def by_products(A, P):
    return np.trace(A @ P.T) / np.count_nonzero(P.max(axis=1))


def by_where(A, P):
    kept = np.where(P == 1, A, 0)[np.any(P, axis=1)]
    return kept.sum() / kept.shape[0]


RIGHT = [("14.8", by_loops), ("14.8", by_products), ("14.8", by_where)]

WRONG = [
    ("14.8", "all rows", lambda A, P: np.trace(A @ P.T) / len(A)),
    ("14.8", "sum", np.vdot),
    ("14.8", "per key", lambda A, P: np.average(A, weights=P)),
    ("14.8", "all cells", lambda A, P: np.vdot(A, P) / A.size),
    ("14.8", "columns", lambda A, P: by_products(A.T, P.T)),
    ("14.8", "largest", lambda A, P: np.mean(
        [max(a * p for a, p in zip(*rows, strict=True)) for rows in zip(A, P, strict=True)
         if any(rows[1])]
    )),
    ("14.8", "not named", lambda A, P: by_loops(A, np.ones_like(P)) if P.all() else np.mean(
        [a[p == 0].sum() for a, p in zip(A, P, strict=True) if p.any()]
    )),
]  # fmt: skip
