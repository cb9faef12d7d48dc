"""The exercises of chapter 06: answers found in other ways."""

import math

import numpy as np
import pytest

from attnbook import exact, masks, softmax
from attnbook.exercises import ch06, check
from attnbook.exercises.parts import State


def test_cells_are_counted_by_the_books_masks():
    ids = np.array([0, 0, 1, 1, 1])
    verdict = check(
        "6.1",
        square=int(masks.causal(5, 5).sum()),
        cached=int(masks.causal(np.arange(3, 7), 7).sum()),
        documents=int((masks.causal(5, 5) & masks.documents(ids, ids)).sum()),
        padded=int(np.broadcast_to(masks.padding(np.arange(5) < 3), (5, 5)).sum()),
    )
    assert verdict.state is State.RIGHT


def test_the_block_of_two_by_the_books_masks():
    triangle = np.ones((2, 6), bool)
    verdict = check(
        "6.2",
        allowed=masks.causal([4, 5], 6).sum(axis=1),
        upper_left=np.tril(triangle).sum(axis=1),
        lower_right=np.tril(triangle, k=4).sum(axis=1),
    )
    assert verdict.state is State.RIGHT


def test_polarity_three_ways_and_leaks_in_floats():
    ignored = np.array([False, False, False, True])
    wanted, got = softmax(np.zeros(4), ~ignored), softmax(np.zeros(4), ignored)
    assert check("6.3", wanted=wanted, got=got).state is State.RIGHT
    u = np.log([1.0, 2.0, 3.0])
    e = np.exp(u - np.array([0, 0, math.log(6)]))
    verdict = check(
        "6.4",
        mask=softmax(u, np.array([True, True, False])),
        after=softmax(u) * [1, 1, 0],
        bias=e / e.sum(),
    )
    assert verdict.state is State.RIGHT
    F = -math.log(9)
    verdict = check("6.7", far=softmax([0, F])[1], near=softmax([F, F])[1], fill=-math.log(4))
    assert verdict.state is State.RIGHT
    assert softmax([0, -math.log(4)])[1] == pytest.approx(1 / 5)


def test_nothing_to_read_in_floats():
    added = softmax(np.array([0, math.log(3)]) - 1e9)
    replaced = softmax(np.full(8, -1e9))[0]
    verdict = check("6.5", real="raise", padding="zero", replaced=replaced, added=added)
    assert verdict.state is State.RIGHT


def test_left_and_right_padding_by_the_books_masks():
    lengths = np.array([3, 5, 2])[:, None]
    place = np.arange(5)
    empty = []
    for real in (place >= 5 - lengths, place < lengths):
        allowed = masks.causal(5, 5) & masks.padding(real)
        empty.append(int((~allowed.any(axis=-1)).sum()))
    reading = int((allowed.any(axis=-1) & ~real).sum())
    assert check("6.6", left=empty[0], right=empty[1], reading=reading).state is State.RIGHT


def test_nan_or_not_by_computing_it():
    allowed, nan = np.array([True, True, False]), math.nan
    u, v = np.array([1.0, 2.0, nan]), np.array([3.0, 4.0, 5.0])

    def output(z, v):
        e = np.exp(z - z.max())
        return float(e / e.sum() @ v)

    a = softmax(np.array([1.0, 2.0, 0.0]), allowed)
    outputs = {
        "added": output(u + masks.to_additive(allowed), v),
        "chosen": output(np.where(allowed, u, -np.inf), v),
        "value": float(a @ np.array([3.0, 4.0, nan])),
        "large": float(a @ np.array([3.0, 4.0, 1e300])),
    }
    words = {name: "finite" if math.isfinite(x) else "nan" for name, x in outputs.items()}
    assert check("6.8", **words).state is State.RIGHT


def test_two_masks_one_after_the_other_as_exercise_6_11_proves():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, J1, J2 = softmax(rng.normal(size=6)), rng.random(6) < 0.6, rng.random(6) < 0.6
        J1[3] = J2[3] = True
        once = a * J1 / (a * J1).sum()
        twice = once * J2 / (once * J2).sum()
        np.testing.assert_allclose(twice, a * (J1 & J2) / (a * (J1 & J2)).sum())


def test_the_lower_right_corner_as_exercise_6_12_says():
    for S in range(1, 6):
        for T in range(1, S + 1):
            triangle = np.tril(np.ones((T, S), bool), k=S - T)
            for p in range(-6, 9):
                same = (masks.causal(p + np.arange(T), S) == triangle).all()
                assert same == (p == S - T or (T == 1 and p > S - T)), (T, S, p)


@pytest.mark.parametrize("fill", [-10, -100, -1000])
def test_a_finite_number_for_forbidden_scores_is_noticed(fill):
    def causal_weights(U, pos_q, pos_k):
        return softmax(np.where(pos_k <= pos_q[:, None], U, fill))

    def masked_read(U, J, V):
        return softmax(np.where(J == 1, U, fill)) @ V * J.any(axis=1, keepdims=True)

    assert check("6.9", causal_weights).state is State.WRONG
    if fill > -600:  # exp(-600) is still a float
        assert check("6.10", masked_read).state is State.WRONG
    # so far below all scores of the check that nothing leaks
    fill = -1e9
    for name, function in (("6.9", causal_weights), ("6.10", masked_read)):
        assert check(name, function).state is State.RIGHT


@pytest.mark.parametrize("m", [np.min, np.mean, lambda Z, **how: np.zeros((len(Z), 1))])
def test_a_masked_row_is_shifted_by_its_largest_visible_score(m):
    def masked_read(U, J, V):
        Z = np.where(J == 1, U, -np.inf)
        shift = m(Z, axis=1, keepdims=True)
        e = np.exp(Z - np.where(np.isinf(shift), 0, shift))
        z = e.sum(axis=1, keepdims=True)
        return e / np.where(z == 0, 1, z) @ V

    lines = check("6.10", masked_read).parts["answer"].lines
    assert any("nan or inf" in line for line in lines)


def test_hidden_inputs_keep_softmax_unsaturated():
    calm = 0
    for U, pos_q, pos_k in ch06.causal_weights.inputs:
        if max(map(max, U)) < 900:
            calm += 1
            assert float(max(exact.softmax(U, ch06.causal(pos_q, pos_k)))) <= 1
            rows = exact.softmax(U).tolist()
            assert max(float(max(row)) for row in rows) < 0.95
    for U, _, _ in ch06.masked_read.inputs:
        if max(map(max, U)) < 900:
            calm += 1
            assert float(max(exact.softmax(U))) < 0.95
    assert calm == 5
