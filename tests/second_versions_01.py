"""Second versions of the function of chapter 01's exercises, right ones and wrong ones.

Written without the chapter's module: loops, einsum, slices. Each wrong one stands beside the
misconception that the check has to recognise.
"""

import numpy as np


def entry_by_entry(A, B, indices):
    """Entries as sums over j in ``indices(n)``, in plain loops."""
    return [[sum(a[j] * B[j][k] for j in indices(len(B))) for k in range(len(B[0]))] for a in A]


RIGHT = [
    ("1.11", lambda A, B: A @ B),
    ("1.11", lambda A, B: np.einsum("ij,jk->ik", A, B)),
    ("1.11", lambda A, B: entry_by_entry(A.tolist(), B.tolist(), range)),
    ("1.11", lambda A, B: np.column_stack([A @ b for b in B.T])),
]

WRONG = [
    ("1.11", "last layer", lambda A, B: entry_by_entry(A, B, lambda n: [n - 1])),
    ("1.11", "first layer", lambda A, B: A[:, :1] * B[:1]),
    ("1.11", "last missing", lambda A, B: A[:, :-1] @ B[:-1]),
    ("1.11", "first missing", lambda A, B: entry_by_entry(A, B, lambda n: range(1, n))),
    ("1.11", "three layers", lambda A, B: entry_by_entry(A, B, lambda n: range(3))),
    ("1.11", "mean", lambda A, B: A @ B / A.shape[1]),
    ("1.11", "stacked", lambda A, B: np.einsum("ij,jk->jik", A, B)),
    ("1.11", "transposed", lambda A, B: sum(np.outer(B[j], A[:, j]) for j in range(len(B)))),
    ("1.11", "sums first", lambda A, B: [[sum(a) * s for s in sum(B)] for a in A]),
]
