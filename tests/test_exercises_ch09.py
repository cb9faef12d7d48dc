"""The exercises of chapter 09: answers found in other ways."""

import itertools

import numpy as np
import pytest

from attnbook import exact, examples, multi_head_attention, multi_head_attention_backward
from attnbook.exercises import ch09, check
from attnbook.exercises.parts import State
from attnbook.heads import split_heads


def test_sizes_by_counting():
    def matrices(d, H):
        width = d // H
        return [np.zeros((d, width))] * 3 + [np.zeros((width, d))]

    one = matrices(512, 8)
    verdict = check(
        "9.1",
        width=one[0].shape[1],
        one_head=sum(W.size for W in one),
        sixteen_heads=16 * sum(W.size for W in matrices(512, 16)),
    )
    assert verdict.state is State.RIGHT


def test_the_entry_of_head_2_is_an_entry_of_the_example():
    X, W_Q = (np.array(x, float) for x in (examples.M_SENTENCE.X, examples.M_SENTENCE.W_Q))
    front = X.copy()
    front[:, 3:] = 0
    verdict = check("9.2", entry=(X @ W_Q)[3, 4], from_features_1_to_3=(front @ W_Q)[3, 4])
    assert verdict.state is State.RIGHT


def test_where_the_number_comes_from_by_search():
    flat = list(itertools.product(range(1, 7), repeat=2))  # position, column, row by row
    T, H, d_k = 6, 3, 2
    entries = list(itertools.product(range(1, H + 1), range(1, T + 1), range(1, d_k + 1)))
    at_once = dict(zip(entries, flat, strict=True))[3, 2, 1]
    rightly = {
        (h, t, p): (t, c) for t, c in flat for h, p in [((c - 1) // d_k + 1, (c - 1) % d_k + 1)]
    }[3, 2, 1]
    assert check("9.3", split_rightly=rightly, at_once=at_once).state is State.RIGHT


def test_the_sum_through_blocks_as_one_product():
    W_O = np.array([[1, 0, 2], [0, 1, 1], [1, 1, 0], [2, 0, 1]])
    verdict = check(
        "9.4",
        head_2=np.array([0, 0, 3, -1]) @ W_O,
        y=np.array([1, 2, 3, -1]) @ W_O,
        wrong_order=np.array([3, -1, 1, 2]) @ W_O,
    )
    assert verdict.state is State.RIGHT


def test_the_mean_map_by_theorem_9_5():
    A, N = np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([[8, 0], [0, 4]])
    missed = ((A - A.mean(axis=0)) * (N - N.mean(axis=0))).sum()
    network = 0.75 * 8 + 0.5 * 4
    assert check("9.6", network=network, mean_map=network - missed).state is State.RIGHT


def test_same_parts_in_floats():
    e = np.exp(np.log(3) * np.array([0, 1]))
    verdict = check(
        "9.7",
        same_A="sometimes",
        same_K_V="sometimes",
        query_log_3=(e / e.sum()) @ [0, 1],
        value_2=0,
    )
    assert verdict.state is State.RIGHT


def test_the_wide_row_is_that_of_a_wide_head():
    """Scores that are logarithms of the rows: the wide head adds them and divides by root H."""
    for (given,) in ch09.wide_weights.inputs:
        A = np.array(given, float)
        seen = A[0] > 0
        u = np.log(A[:, seen]).sum(axis=0) / np.sqrt(len(A))
        expected = np.zeros(A.shape[1])
        expected[seen] = np.exp(u) / np.exp(u).sum()
        np.testing.assert_allclose(np.array(ch09.wide_weights.right(given), float), expected)
        assert expected.max() < 0.95


def test_theorem_9_6_on_random_heads():
    rng = np.random.default_rng(1)
    X, W_Q, W_K = rng.normal(size=(5, 7)), rng.normal(size=(7, 6)), rng.normal(size=(7, 6))
    zero = np.zeros((7, 6))
    allowed = rng.random((5, 5)) < 0.6
    allowed[:, 2] = True
    heads = multi_head_attention(X, X, W_Q, W_K, zero, np.eye(6), allowed, H_q=3).A
    wide = multi_head_attention(X, X, W_Q, W_K, zero, np.eye(6), allowed, H_q=1).A[0]
    product = heads.prod(axis=0) ** (1 / np.sqrt(3))
    np.testing.assert_allclose(product / product.sum(axis=1, keepdims=True), wide)


def test_one_step_back_by_the_book():
    one = np.ones((1, 1))
    W_V, W_O = np.array([[2.0, -3.0]]), np.array([[1.0, 3.0], [4.0, -2.0]])
    W = np.zeros((1, 2)), np.zeros((1, 2)), W_V, W_O
    forward = multi_head_attention(one, one, *W, H_q=2)
    np.testing.assert_allclose(forward.C, [[2, -3]])
    g = multi_head_attention_backward([[1.0, 2.0]], one, one, *W, forward)
    assert g.dV[1] == 0 != g.dV[0]
    verdict = check("9.9", dW_O_2=g.dW_O[1], dO=g.dV.ravel(), learns_nothing=2)
    assert verdict.state is State.RIGHT


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_condition_of_exercise_9_11(seed):
    rng = np.random.default_rng(seed)
    alpha, mu, nu = rng.normal(size=(3, 2))

    def missed(alpha, mu, nu):
        A = np.stack([alpha, 1 - alpha], axis=1)
        N = np.stack([mu, nu], axis=1)
        return (A * N).sum() - A.mean(axis=0) @ N.sum(axis=0)

    expected = (alpha[0] - alpha[1]) * ((mu[0] - mu[1]) - (nu[0] - nu[1])) / 2
    assert missed(alpha, mu, nu) == pytest.approx(expected)
    assert abs(expected) > 1e-3
    assert missed(alpha, mu, mu + 4) == pytest.approx(0)


def test_hidden_inputs_are_exact_and_weights_sum_to_one():
    for (A,) in ch09.wide_weights.inputs:
        assert all(sum(row) == 1 for row in exact.matrix(A).tolist())


def test_the_heads_of_the_exercise_are_those_of_the_book():
    assert check("9.12", split_heads).state is State.RIGHT
    for X, H in ch09.cut_into_heads.inputs:
        expected = split_heads(np.array(X, float), H)
        assert np.array_equal(np.array(ch09.cut_into_heads.right(X, H), float), expected)


def test_the_entries_of_the_exercise_tell_row_and_column():
    assert ch09.numbered(2, 3) == ((11, 12, 13), (21, 22, 23))


def test_the_weights_of_three_heads_by_adding_them_up():
    rng = np.random.default_rng(2)
    X, (W_Q, W_K, W_V, W_O) = rng.normal(size=(5, 6)), rng.normal(size=(4, 6, 6))
    A = multi_head_attention(X, X, W_Q, W_K, W_V, W_O, H_q=3).A
    for query in range(5):
        verdict = check("9.13", weights=A.size, one_query=A[:, query].sum())
        assert verdict.state is State.RIGHT
