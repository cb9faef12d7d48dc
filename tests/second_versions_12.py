"""The functions of the exercises of chapter 12, written a second time."""

import math

import numpy as np


def length(row):
    return math.sqrt(sum(x * x for x in row))


def cell_by_cell(entry):
    def table(A, V, W_O):
        Y = [[sum(v * w for v, w in zip(row, W, strict=True)) for W in W_O.T] for row in V]
        return [[entry(a, V[j], Y[j]) for j, a in enumerate(row)] for row in A]

    return table


def placed(O, order):
    found = np.empty_like(O)
    found[order] = O
    return found


RIGHT = [
    ("12.8", placed),
    ("12.8", lambda O, order: np.eye(len(order))[order].T @ O),
    ("12.8", lambda O, order: [O[list(order).index(place)] for place in range(len(order))]),
    ("12.9", cell_by_cell(lambda a, v, y: a * length(y))),
    ("12.9", lambda A, V, W_O: np.linalg.norm(A[:, :, None] * (V @ W_O), axis=2)),
]

WRONG = [
    ("12.8", "applied again", lambda O, order: np.eye(len(order))[order] @ O),
    ("12.8", "left", lambda O, order: [list(row) for row in O]),
    ("12.8", "reversed", lambda O, order: np.flipud(O)),
    ("12.8", "sorted", lambda O, order: np.transpose([sorted(column) for column in O.T])),
    ("12.8", "columns", lambda O, order: np.take(O, np.argsort(order[: O.shape[1]]), axis=1)),
    ("12.8", "from one", lambda O, order: [O[list(order).index(i) - 1] for i in range(len(order))]),
    ("12.9", "weights", cell_by_cell(lambda a, v, y: a)),
    ("12.9", "before the projection", cell_by_cell(lambda a, v, y: a * length(v))),
    ("12.9", "squares", cell_by_cell(lambda a, v, y: a * sum(x * x for x in y))),
    ("12.9", "summands", cell_by_cell(lambda a, v, y: a * sum(map(abs, y)))),
    ("12.9", "signed sum", cell_by_cell(lambda a, v, y: a * sum(y))),
    ("12.9", "shares", lambda A, V, W_O: [
        row / sum(row) for row in np.array(cell_by_cell(lambda a, v, y: a * length(y))(A, V, W_O))
    ]),
    ("12.9", "no weights", cell_by_cell(lambda a, v, y: length(y))),
    ("12.9", "product of lengths", lambda A, V, W_O: np.einsum(
        "ij,j->ij", A, [length(v) * length(W_O.ravel()) for v in V]
    )),
]  # fmt: skip
