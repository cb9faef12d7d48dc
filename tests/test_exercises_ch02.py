"""The exercises of chapter 02: what is right for some inputs alone is refused."""

import numpy as np
import pytest

from attnbook.exercises import check
from attnbook.exercises.parts import State


def cosines(X):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return np.abs(X @ X.T)


def by_pairs(X):
    G = cosines(X)
    return max(G[i, j] for i in range(len(X)) for j in range(i))


def without_ones(X):
    G = cosines(X)
    return G[G < 1 - 1e-9].max()


def signs_lost_late(X):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return abs((X @ X.T - np.eye(len(X))).max())


def changes_X(X):
    result = by_pairs(X)
    X[0] = 0
    return result


ONLY_SOMETIMES = {
    "first row with the others": lambda X: cosines(X)[0, 1:].max(),
    "last row with the others": lambda X: cosines(X)[-1, :-1].max(),
    "neighbours": lambda X: np.diag(cosines(X), 1).max(),
    "first three rows": lambda X: by_pairs(X[:3]),
    "without the last row": lambda X: by_pairs(X[:-1]) if len(X) > 2 else by_pairs(X),
    "ones taken for the diagonal": without_ones,
    "sign lost after the maximum": signs_lost_late,
    "smallest": lambda X: cosines(X).min(),
    "changes its argument": changes_X,
}


def test_the_pairs_one_by_one_are_right():
    assert check("2.6", by_pairs).state is State.RIGHT


@pytest.mark.parametrize("name", ONLY_SOMETIMES)
def test_what_is_right_only_sometimes_is_refused(name):
    assert check("2.6", ONLY_SOMETIMES[name]).state is State.WRONG


def test_orthogonal_rows_by_rank():
    rng = np.random.default_rng(0)
    one_hot, W_E = np.eye(5), rng.normal(size=(5, 3))
    # pairwise orthogonal rows that are not zero are independent
    verdict = check("2.12", one_hot=one_hot[0] @ one_hot[4], orthogonal=np.linalg.matrix_rank(W_E))
    assert verdict.state is State.RIGHT
