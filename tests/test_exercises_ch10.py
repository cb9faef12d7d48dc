"""The exercises of chapter 10: answers found in other ways."""

import math

import numpy as np
import pytest

from attnbook import attention, attention_backward, exact
from attnbook.exercises import ch10, check
from attnbook.exercises.parts import State
from attnbook.heads import multi_head_attention, multi_head_attention_backward


def weights(u):
    e = [math.exp(x) for x in u]
    return np.array([x / sum(e) for x in e])


def right(number, **parts):
    assert check(number, **parts).state is State.RIGHT


def test_the_counts_are_the_sizes_of_real_arrays():
    rng = np.random.default_rng(0)
    X_q, X_m = rng.normal(size=(5, 6)), rng.normal(size=(7, 10))
    W = [rng.normal(size=shape) for shape in ((6, 4), (10, 4), (10, 3), (3, 6))]
    forward = multi_head_attention(X_q, X_m, *W, H_q=1)
    back = multi_head_attention_backward(X_q, X_q, X_m, *W, forward)
    right(
        "10.1",
        weights=forward.A.size,
        output=forward.O.size,
        source_gradient=back.dX_m.size,
        parameters=sum(w.size for w in W[:3]),
    )


def test_the_third_source_position_in_floats():
    V = np.array([[2, 0], [0, 4], [2, 8]])
    a = weights([math.log(3), 0, math.log(4)])
    late = np.array([0, *weights([0, math.log(4)])])
    right("10.2", weights=a, output=a @ V, first_is_padding=late @ V)


def test_the_triangle_by_counting():
    def pairs(T, S):
        return [(i, j) for i in range(1, T + 1) for j in range(1, S + 1)]

    hidden = sum(j > i for i, j in pairs(5, 8))
    read = {j for i, j in pairs(5, 8) if j <= i}
    other = sum(j > i for i, j in pairs(8, 5))
    right("10.4", hidden=hidden, unread=8 - len(read), hidden_other_way=other)


def test_one_number_per_query_gives_the_weights_of_r():
    queries = np.array([0, math.log(3), -math.log(3)])
    right("10.6", answer=queries)
    A = attention(queries[:, None], [[1.0], [0.0]], [[2.0, 0.0], [0.0, 4.0]]).A
    np.testing.assert_allclose(A, [[1 / 2, 1 / 2], [3 / 4, 1 / 4], [1 / 4, 3 / 4]])


def test_the_proof_of_10_6_for_random_weights():
    rng = np.random.default_rng(1)
    for T, S in ((4, 2), (3, 5)):
        A = rng.dirichlet(np.ones(S), size=T)
        u = np.log(A / A[:, -1:])
        K = np.vstack([np.eye(S - 1), np.zeros(S - 1)])
        made = attention(math.sqrt(S - 1) * u[:, :-1], K, np.ones((S, 1)))
        np.testing.assert_allclose(made.A, A)


def test_the_gradient_of_the_scores_by_differences():
    V = np.array([[2.0, 0], [0, 4]])
    U = np.log([[1, 1], [3, 1], [1, 3]])

    def loss(U, V):
        return sum((weights(u) @ V)[1] for u in U[:2])

    h, dU, dV = 1e-6, np.zeros((3, 2)), np.zeros((2, 2))
    for x, gradient in ((U, dU), (V, dV)):
        for index in np.ndindex(x.shape):
            x[index] += h
            up = loss(U, V)
            x[index] -= 2 * h
            gradient[index] = (up - loss(U, V)) / (2 * h)
            x[index] += h
    right("10.7", dV=dV, dU=dU)
    A = np.array([weights(u) for u in U])
    back = attention_backward([[0.0, 1], [0, 1], [0, 0]], np.sqrt(2) * U, np.eye(2), V, A)
    right("10.7", dV=back.dV, dU=back.dU)


def test_the_reuse_by_adding_up_products():
    K = V = 2 * 30 * 256 * (4 * 64)
    right("10.8", once=K + V, saved=20 * (K + V) - (K + V), kept=30 * 4 * 64 + 30 * 4 * 64)


@pytest.mark.parametrize(
    ("case", "T", "S", "roles"),
    [("a", 4, 9, "ttt"), ("b", 4, 9, "stt"), ("c", 6, 6, "stt"), ("d", 4, 9, "tst")],
)
def test_whether_it_stops_by_running_it(case, T, S, roles):
    rng = np.random.default_rng(2)
    sides = {"t": rng.normal(size=(T, 3)), "s": rng.normal(size=(S, 3))}

    def run(roles):
        q, k, v = (sides[role] for role in roles)
        return sides["t"] + np.array([weights(u) for u in q @ k.T]) @ v

    try:
        said = "right" if np.allclose(run(roles), run("tss")) else "runs wrong"
    except ValueError:
        said = "stops"
    verdict = check("10.9", **({name: ... for name in "abcd"} | {case: said}))
    assert verdict.parts[case].state is State.RIGHT


def test_words_by_running_both_layers():
    A = np.array([[60, 15, 10, 15], [25, 15, 10, 50], [10, 10, 30, 50], [10, 20, 55, 15]]) / 100
    words = np.eye(4)  # what each word brought, told apart
    positions = A @ words
    right("10.10", answer=(positions[1] + positions[2]) / 2)


def test_hidden_inputs_keep_softmax_unsaturated():
    for U, V, k in ch10.stream_read.inputs:
        allowed = [[j <= i + k - 1 for j in range(len(V))] for i in range(len(U))]
        A = exact.softmax(U, allowed)
        assert all(float(a) < 0.95 for a in A if a != 1)
        assert not all(map(all, allowed))
