"""The exercises of chapter 12: answers found in other ways."""

import itertools
import math

import numpy as np

from attnbook import attention, masks, softmax
from attnbook.exercises import ch12, check
from attnbook.exercises.parts import State


def right(exercise, **answers):
    assert check(exercise, **answers).state is State.RIGHT, check(exercise, **answers)


# ---- right answers, computed otherwise ---------------------------------------------------------


def test_a_reordering_by_indices():
    order = np.array([3, 1, 2]) - 1
    U = np.arange(1, 10).reshape(3, 3)
    column = np.array([10, 20, 30])[order]
    right("12.1", column=column, entry=U[np.ix_(order, order)][0, 1])


def test_the_properties_by_trying_all_orders():
    rng = np.random.default_rng(0)
    n, d = 4, 3
    X, queries = rng.normal(size=(n, d)), rng.normal(size=(2, d))
    W_Q, W_K, W_V, W_1 = rng.normal(size=(4, d, d))

    def head(X_q, X_m, M=None):
        return attention(X_q @ W_Q, X_m @ W_K, X_m @ W_V, M).O

    functions = {
        "a": lambda X: head(X, X),
        "b": lambda X: head(X, X).mean(axis=0, keepdims=True),
        "c": lambda X: head(X, X, masks.causal(n, n)),
        "d": lambda X: head(queries, X),
        "e": lambda X: np.maximum((X + head(X, X)) @ W_1, 0),
        "f": lambda X: head(X, X)[-1:],
    }
    found = {}
    for part, F in functions.items():
        orders = [list(order) for order in itertools.permutations(range(n))]
        invariant = all(np.allclose(F(X[order]), F(X)) for order in orders)
        equivariant = len(F(X)) == n and all(
            np.allclose(F(X[order]), F(X)[order]) for order in orders
        )
        assert not (invariant and equivariant)
        found[part] = {(1, 0): "invariant", (0, 1): "equivariant"}.get(
            (int(invariant), int(equivariant)), "neither"
        )
    right("12.2", **found)


def test_counting_with_the_head_itself():
    zeros = np.zeros((9, 1))
    marked = zeros.copy()
    marked[0] = 1
    O = attention(zeros, zeros, marked, masks.causal(9, 9)).O[:, 0]
    place = 1 + int(np.argmin(abs(O - 1 / 8)))
    values = np.ones((6, 1))
    values[0] = 3
    masked = attention(zeros[:6], zeros[:6], values, masks.causal(6, 6)).O[3, 0]
    unmasked = attention(zeros[:6], zeros[:6], values).O[3, 0]
    right("12.3", place=place, masked=masked, unmasked=unmasked)


def test_a_key_that_stands_twice():
    twice = softmax(np.log([3.0, 1, 1, 1]))
    once = softmax(np.array([math.log(3), math.log(2), 0]))
    np.testing.assert_allclose(once, [twice[0], twice[1] + twice[2], twice[3]])
    right("12.4", first=twice[0], copies=twice[1:3].sum(), added=math.log(2))


def test_free_directions_by_rank():
    def count(V):
        V = np.array(V, float)
        return len(V) - np.linalg.matrix_rank(np.column_stack([V, np.ones(len(V))]))

    assert np.linalg.matrix_rank(np.array(ch12.PLANE[:3]) - ch12.PLANE[0]) == 2
    right(
        "12.5",
        a=count(ch12.PLANE),
        b=count(ch12.LINE),
        c=count(ch12.INDEPENDENT),
        d=count(ch12.PLANE[:3]),
    )


def test_the_other_weights_by_linear_equations():
    V = np.array([0.0, 1, 3])
    o = np.array([0.5, 0.25, 0.25]) @ V
    a = np.linalg.solve([[1, 1, 1], V, [0, 0, 1]], [1, o, 1 / 6])
    assert check("12.6", a).state is State.RIGHT


def test_the_interventions_by_doing_them():
    u, V = np.log([2.0, 1, 1]), np.array([[4.0, 0], [0, 4], [0, 8]])
    o = softmax(u) @ V

    def with_first(v):
        return np.vstack([v, V[1:]])

    masked = softmax(u, np.array([False, True, True])) @ V
    right(
        "12.7",
        zero=softmax(u) @ with_first(np.zeros(2)) - o,
        mean=softmax(u) @ with_first(V.mean(axis=0)) - o,
        masked=masked - o,
        unnoticed=masked,
    )
    quiet = with_first(masked)
    np.testing.assert_allclose(
        softmax(u) @ quiet, softmax(u, np.array([False, True, True])) @ quiet
    )


def test_which_test_fails_first():
    rng = np.random.default_rng(1)
    X, later = rng.normal(size=(5, 4)), np.arange(5)[:, None] == 4
    W_Q, W_K, W_V = rng.normal(size=(3, 4, 4)) / 2
    M = masks.causal(5, 5)

    def head(X, fault):
        Q, K, V = X @ W_Q, X @ (W_Q if fault == "e" else W_K), X @ W_V
        U = Q @ K.T / (1 if fault == "a" else 2)
        A = softmax(U, np.tri(5, k=1, dtype=bool) if fault == "c" else M)
        A = softmax(U) * M if fault == "b" else A
        return A, A @ (V[::-1] if fault == "d" else V)

    truth = head(X, "")[1]
    found = {}
    for fault in "abcde":
        A, O = head(X, fault)
        passed = {
            "row sums": np.allclose(A.sum(axis=1), 1),
            "forbidden": not A[~M].any(),
            "future": np.allclose(head(X + later, fault)[1][:4], O[:4]),
            "numbers": np.allclose(O, truth),
        }
        assert list(passed) == list(ch12.TESTS)
        found[fault] = next(name for name, ok in passed.items() if not ok)
    right("12.10", **found)


def test_the_same_word_by_trying_projections():
    rng = np.random.default_rng(2)
    dog, bites, man, sees = rng.normal(size=(4, 3))

    def outputs(rows, W, M=None):
        W_Q, W_K, W_V = W
        return attention(rows @ W_Q, rows @ W_K, rows @ W_V, M).O

    projections = [*rng.normal(size=(6, 3, 3, 3)), np.zeros((3, 3, 3))]
    found = {"bites": [], "dogs": [], "masked": []}
    for W in projections:
        one, other = (outputs(np.array(s), W)[1] for s in ([dog, bites, man], [man, bites, dog]))
        found["bites"].append(np.allclose(one, other))
        for name, M in (("dogs", None), ("masked", masks.causal(3, 3))):
            O = outputs(np.array([dog, sees, dog]), W, M)
            found[name].append(np.allclose(O[0], O[2]))
    words = {(1, 1): "equal", (0, 1): "may differ", (0, 0): "always differ"}
    right("12.13", **{name: words[all(same), any(same)] for name, same in found.items()})


# ---- functions ---------------------------------------------------------------------------------


def test_no_hidden_order_is_its_own_inverse():
    for _, order in ch12.undo.inputs:
        assert tuple(np.argsort(order)) != order
        assert sorted(order) == list(range(len(order)))


def test_hidden_weights_are_weights():
    for A, _, _ in ch12.contributions.inputs:
        assert all(min(row) >= 0 and sum(row) == 1 for row in A)
