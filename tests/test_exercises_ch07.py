"""The exercises of chapter 07: answers found in other ways."""

import math

import numpy as np

from attnbook import attention, exact, examples, masks
from attnbook.exercises import ch07, check
from attnbook.exercises.parts import State

RNG = np.random.default_rng(7)


def test_three_shapes_by_running_a_head():
    Q, K, V = (RNG.normal(size=shape) for shape in ((5, 8), (7, 8), (7, 3)))
    O, A, U = attention(Q, K, V)
    verdict = check("7.1", scores=U.shape, weights=A.shape, output=O.shape, total=round(A.sum(), 9))
    assert verdict.state is State.RIGHT


def test_the_shapes_backwards_give_the_shapes_forwards():
    X_q, W_K, W_V = (RNG.normal(size=shape) for shape in ((9, 6), (8, 2), (8, 5)))
    X_m, W_Q = RNG.normal(size=(4, 8)), RNG.normal(size=(6, 2))
    O, A, _ = attention(X_q @ W_Q, X_m @ W_K, X_m @ W_V)
    assert (A.shape, O.shape) == ((9, 4), (9, 5))
    shapes = {"X_q": X_q.shape, "W_K": W_K.shape, "W_V": W_V.shape}
    assert check("7.2", **shapes, self_attention="no").state is State.RIGHT


def test_the_masked_reconstruction_in_floats():
    X, W_Q, W_K, W_V = (np.array(M, float) for M in examples.E_RECONSTRUCTION_2[1:5])
    O, A, _ = attention(X @ W_Q, X @ W_K, X @ W_V, masks.causal(2, 2))
    assert check("7.3", a_1=A[0], o_1=O[0], o_2=O[1]).state is State.RIGHT


def test_the_root_from_the_printed_weights_and_the_other_roots_as_the_messages_say():
    gap = math.log(0.9472 / 0.0528)
    assert check("7.4", square=(5 / gap) ** 2, letter="d_q").state is State.RIGHT
    first = {n: round(1 / (1 + math.exp(5 / math.sqrt(n))), 4) for n in (2, 3, 4)}
    assert first == {2: 0.0283, 3: 0.0528, 4: 0.0759}


def test_the_query_reads_the_given_weights():
    q = -math.log(4)
    O, A, _ = attention([[q]], [[1.0], [0.0]], [[2.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(A, [[0.2, 0.8]])
    assert check("7.5", query=q, output=O[0]).state is State.RIGHT


def test_the_hand_made_row_masked_and_cut():
    a = np.array(examples.M_SENTENCE.A[2], float)
    masked = attention([[1.0]], np.log(a)[:, None], np.eye(4), masks.causal([2], 4)).A[0]
    cut = a * (np.arange(4) <= 2)
    assert check("7.6", masked=masked, factor=(cut[:3] / masked[:3])[0]).state is State.RIGHT
    np.testing.assert_allclose(cut[:3] / masked[:3], 0.5)


def test_how_far_by_perturbation():
    def stack(X, layers):
        window = masks.causal(20, 20) & ~np.tri(20, 20, -3, dtype=bool)
        for _ in range(layers):
            X = X + attention(X, X, X, window, scale=0).O
        return X

    X = RNG.normal(size=(20, 2))

    def moved(token, layers):
        other = X.copy()
        other[token] += 0.5
        return np.flatnonzero((stack(other, layers) != stack(X, layers)).any(axis=1)) + 1

    inputs = sum(20 in moved(token, 4) for token in range(20))
    layers = next(n for n in range(1, 20) if 20 in moved(0, n))
    verdict = check("7.9", up_to=int(moved(0, 4).max()), inputs=inputs, layers=layers)
    assert verdict.state is State.RIGHT


def test_the_repaired_example_of_7_11_notices_what_its_solution_says():
    X, W_K = np.array(examples.R_HEAD.X, float), np.eye(2)
    W_Q, W_V = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0], [0.0]])
    allowed = np.array(examples.R_HEAD.allowed)

    def head(W_Q, W_K, root=2):
        return attention(X @ W_Q, X @ W_K, X @ W_V, allowed, scale=1 / math.sqrt(root)).O

    right = head(W_Q, W_K)
    for wrong in (head(W_K, W_Q), head(W_Q.T, W_K.T), head(W_Q, W_K, root=1)):
        assert abs(wrong - right).max() > 0.05


# ---- functions ---------------------------------------------------------------------------------


def test_hidden_inputs_keep_softmax_unsaturated():
    scores = [(exact.project(X, W_Q), exact.project(X, W_K)) for X, W_Q, W_K, _ in ch07.head.inputs]
    scores += [(exact.matrix(Q), exact.matrix(K)) for Q, K, *_ in ch07.attend.inputs[:3]]
    assert len(scores) == 6
    for Q, K in scores:
        assert float(max(exact.softmax(exact.scores(Q, K)))) < 0.96
