"""The exercises of chapter 05: answers found in other ways."""

import itertools
import math

import numpy as np
import pytest
import sympy as sp

from attnbook import exact, examples
from attnbook.exercises import ch05, check
from attnbook.exercises.parts import State


def weights(u):
    e = [math.exp(x - max(u)) for x in u]
    return np.array([x / sum(e) for x in e])


# ---- right answers, computed otherwise ---------------------------------------------------------


def test_the_second_row_without_the_mask_in_floats():
    u = np.array([0, 1, 1]) / math.sqrt(2)
    a = weights(u)
    V = np.array([[1, 0], [0, 2], [1, 2]])
    verdict = check("5.1", weights=a, output=a @ V, third_zero=a[:2] @ V[:2])
    assert verdict.state is State.RIGHT
    np.testing.assert_allclose(a, [0.197776, 0.401112, 0.401112], atol=5e-7)


def test_the_null_directions_of_a_masked_row():
    allowed = [True] * 3 + [False] * 5
    a = exact.softmax([sp.log(n) for n in range(1, 9)], allowed)
    null = exact.softmax_jacobian(a).nullspace()
    assert check("5.2", len(null)).state is State.RIGHT


def test_the_dropped_row_by_listing_its_masks():
    rho, a = 0.8, (0.5, 0.25, 0.25)
    law = [
        (math.prod(rho if m else 1 - rho for m in masks), np.dot(masks, a) / rho)
        for masks in itertools.product((0, 1), repeat=3)
    ]
    mean = sum(p * s for p, s in law)
    variance = sum(p * (s - mean) ** 2 for p, s in law)
    nothing = next(p for p, s in law if s == 0)
    verdict = check("5.3", mean=mean, variance=variance, nothing_kept=nothing)
    assert verdict.state is State.RIGHT


def test_the_smallest_width_is_enough_and_a_smaller_one_is_not():
    A, X = (np.array(x, float) for x in (examples.M_SENTENCE.A, examples.M_SENTENCE.X))
    centred = np.log(A) - np.log(A).mean(axis=1, keepdims=True)
    left, sizes, right = np.linalg.svd(centred)
    assert check("5.7", int((sizes > 1e-9).sum())).state is State.RIGHT
    d_k = 3
    W_Q = np.linalg.pinv(X) @ (left[:, :d_k] * sizes[:d_k]) * math.sqrt(d_k)
    W_K = np.linalg.pinv(X) @ right[:d_k].T
    U = (X @ W_Q) @ (X @ W_K).T / math.sqrt(d_k)
    np.testing.assert_allclose([weights(u) for u in U], A, atol=1e-12)
    # whatever is added to the rows, the rank stays above 2
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert np.linalg.matrix_rank(np.log(A) + rng.normal(size=(4, 1))) >= 3


def test_normalising_again_by_simulation():
    rng = np.random.default_rng(1)
    kept = (rng.random((200_000, 2)) < 0.5) * np.array([0.75, 0.25])
    kept = kept[kept.any(axis=1)]
    mean = (kept / kept.sum(axis=1, keepdims=True))[:, 0].mean()
    assert mean == pytest.approx(7 / 12, abs=0.003)
    assert check("5.8", sp.Rational(7, 12)).state is State.RIGHT


# ---- functions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [np.min, np.mean])
def test_only_the_largest_score_of_a_row_is_a_safe_shift(shift):
    def with_shift(m):
        def log_weights(U):
            Z = U - m(U, axis=1, keepdims=True)
            return Z - np.log(np.exp(Z).sum(axis=1, keepdims=True))

        def read(U, V):
            e = np.exp(U - m(U, axis=1, keepdims=True))
            return e / e.sum(axis=1, keepdims=True) @ V

        def weights_at(U, tau):
            e = np.exp((U - m(U, axis=1, keepdims=True)) / tau)
            return e / e.sum(axis=1, keepdims=True)

        return {"4.11": weights_at, "5.6": log_weights, "5.10": read}

    for name, function in with_shift(np.max).items():
        assert check(name, function).state is State.RIGHT
    for name, function in with_shift(shift).items():
        assert check(name, function).state is State.WRONG


def test_hidden_inputs_keep_softmax_unsaturated():
    softmax_inputs = [U for (U,) in ch05.log_weights.inputs if max(map(max, U)) < 900]
    softmax_inputs += [U for U, _ in ch05.read_program.inputs]
    assert len(softmax_inputs) == 7
    for U in softmax_inputs:
        assert float(max(exact.softmax(U))) < 0.95
