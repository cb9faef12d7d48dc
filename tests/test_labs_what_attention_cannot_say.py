"""What the labs of chapter 12 draw is what the plain formulas give, and what the chapter says."""

import itertools
import math

import numpy as np
import pytest

from attnbook.labs import what_attention_cannot_say as labs
from attnbook.labs.what_attention_cannot_say import (
    ORDERS,
    compute_equal,
    compute_same,
    compute_shuffle,
    null_direction,
)

STATES = list(itertools.product(ORDERS, labs.MASKS, (False, True)))


def plain_weights(u):
    e = [math.exp(x - max(u)) for x in u]
    return [x / sum(e) for x in e]


def plain_head(X, sees):
    """One head as a loop: row i reads the rows j with sees(i, j)."""
    Q, K, V = X @ labs.W_Q, X @ labs.W_K, X @ labs.W_V
    outputs = []
    for i, q in enumerate(Q):
        js = [j for j in range(len(X)) if sees(i, j)]
        a = plain_weights([float(q @ K[j]) / math.sqrt(3) for j in js])
        outputs.append(sum(w * V[j] for w, j in zip(a, js, strict=True)))
    return np.array(outputs)


# ---- the words in another order ----------------------------------------------------------------


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("mask", list(labs.MASKS))
@pytest.mark.parametrize("order", ["1234", "3142", "4321", "2314"])
def test_shuffle(order, mask, positions):
    places = [int(c) - 1 for c in order]
    sees = {
        "none": lambda i, j: True,
        "moves": lambda i, j: places[j] <= places[i],
        "stays": lambda i, j: j <= i,
    }[mask]
    X = labs.SENTENCE[places] + positions * labs.X_POS
    O = plain_head(X, sees)
    first = labs.SENTENCE + positions * labs.X_POS
    before = plain_head(first, (lambda i, j: True) if mask == "none" else lambda i, j: j <= i)
    arrays = compute_shuffle(order, mask, positions)
    np.testing.assert_allclose([arrays.O[place] for place in places], O, atol=1e-12)
    np.testing.assert_allclose(arrays.O_before, before, atol=1e-12)
    np.testing.assert_allclose(arrays.moved, np.linalg.norm(arrays.O - before, axis=1), atol=1e-12)
    assert arrays.words == tuple(labs.WORDS[place] for place in places)
    assert [[bool(x) for x in row] for row in arrays.allowed] == [
        [sees(i, j) for j in range(4)] for i in range(4)
    ]


@pytest.mark.parametrize("mask", ["none", "moves"])
def test_without_positions_nothing_leaves_its_frame(mask):
    numbers = set()
    for order in ORDERS:
        arrays = compute_shuffle(order, mask, positions=False)
        assert arrays.moved.max() < 1e-12
        assert arrays.same_map
        said = labs.caption_shuffle(arrays)
        assert labs.SAME in said
        assert "The map is the sentence's map" in said
        numbers.add(tuple(sorted(arrays.A.ravel().round(9))))
    assert len(numbers) == 1  # sixteen numbers trade cells


def test_a_mask_that_stays_moves_words_but_not_a_last_word_that_stays_last():
    for order in ORDERS:
        arrays = compute_shuffle(order, "stays", positions=False)
        assert arrays.A[0, 0] == 1  # the first word reads itself alone
        if order[-1] == "4":
            assert arrays.moved[3] < 1e-12
        else:
            assert arrays.moved[3] > 0.01
        if order != "1234":
            assert arrays.moved.max() > 0.01
            assert labs.CHANGED in labs.caption_shuffle(arrays)
            assert not arrays.same_map


def test_with_positions_every_other_order_moves_words():
    for order, mask in itertools.product(ORDERS[1:], labs.MASKS):
        assert compute_shuffle(order, mask, positions=True).moved.max() > 0.01
    kept = [compute_shuffle(o, "stays", True).moved[3] for o in ORDERS[1:] if o[-1] == "4"]
    assert min(kept) > 0.001  # and the last word feels the order before it


def test_weights_are_not_saturated_and_markers_lie_apart():
    arrays = compute_shuffle("1234", "none", positions=False)
    assert arrays.A.max() < 0.7
    for O in (arrays.O, compute_shuffle("1234", "stays", positions=False).O):
        gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(O, 2)]
        assert min(gaps) > 0.2


# ---- values drawn together ---------------------------------------------------------------------


@pytest.mark.parametrize(("s", "tau"), [(1.0, 0.5), (0.3, 0.05), (0.7, 100.0), (0.0, 1.0)])
def test_equal(s, tau):
    arrays = compute_equal(s, tau)
    A = [plain_weights([x / tau for x in row]) for row in labs.U]
    mean = [sum(v[p] for v in labs.V) / 6 for p in (0, 1)]
    V = [[m + s * (x - m) for x, m in zip(v, mean, strict=True)] for v in labs.V]
    np.testing.assert_allclose(arrays.A, A, atol=1e-12)
    np.testing.assert_allclose(arrays.V, V, atol=1e-12)
    O = [[sum(a * v[p] for a, v in zip(row, V, strict=True)) for p in (0, 1)] for row in A]
    np.testing.assert_allclose(arrays.O, O, atol=1e-12)
    between = max(math.dist(a, b) for a, b in itertools.combinations(O, 2))
    diameter = max(math.dist(a, b) for a, b in itertools.combinations(V, 2))
    tv = max(
        sum(abs(x - y) for x, y in zip(a, b, strict=True)) / 2
        for a, b in itertools.combinations(A, 2)
    )
    measured = arrays.between, arrays.diameter, arrays.tv
    np.testing.assert_allclose(measured, (between, diameter, tv), atol=1e-12)
    assert arrays.between <= arrays.tv * arrays.diameter + 1e-12


def test_the_map_does_not_know_the_spread_and_distances_scale_with_it():
    for tau in (0.05, 0.5, 100.0):
        whole = compute_equal(1.0, tau)
        mean = labs.V.mean(axis=0)
        for s in (0.0, 0.5, 0.9):
            arrays = compute_equal(s, tau)
            np.testing.assert_array_equal(arrays.A, whole.A)
            np.testing.assert_allclose(arrays.O, mean + s * (whole.O - mean), atol=1e-12)
            assert arrays.between == pytest.approx(s * whole.between, abs=1e-12)
    flat = compute_equal(1.0, 100.0)
    assert flat.between < 0.1
    assert np.linalg.norm(flat.O - labs.V.mean(axis=0), axis=1).max() < 0.1


def test_the_first_and_the_fourth_query_choose_the_same_key():
    sharp = compute_equal(1.0, 0.05).A
    assert sharp[0].argmax() == sharp[3].argmax() == 3
    assert min(sharp[0, 3], sharp[3, 3]) > 0.99


# ---- other weights, the same output ------------------------------------------------------------


@pytest.mark.parametrize("t", [-1.0, -0.4, 0.0, 0.1, 0.8, 1.0])
@pytest.mark.parametrize("keys", [3, 4, 5, 6])
def test_same(keys, t):
    arrays = compute_same(keys, t)
    before = plain_weights([float(u) for u in labs.U[3, :keys]])
    np.testing.assert_allclose(arrays.before, before, atol=1e-12)
    assert arrays.a.sum() == pytest.approx(1, abs=1e-12)
    assert arrays.a.min() >= 0
    np.testing.assert_allclose(arrays.a @ arrays.V, np.array(before) @ labs.V[:keys], atol=1e-12)
    assert arrays.freedom == keys - 3
    moved = np.abs(arrays.a - arrays.before)
    if keys == 3 or t == 0:
        assert moved.max() == 0
    else:
        assert moved.max() > 0.005
        assert (arrays.a == 0).any() == (abs(t) == 1)
    said = labs.caption_same(arrays)
    assert (labs.AT_AN_END in said) == (keys > 3 and abs(t) == 1)


def test_four_keys_move_all_and_the_largest_weight_changes_hands():
    start, later = compute_same(4, 0.0), compute_same(4, 0.8)
    assert (np.abs(later.a - start.a) > 0.01).all()
    assert start.a.argmax() == 3
    assert later.a.argmax() == 2


def test_the_null_direction_is_one():
    rng = np.random.default_rng(3)
    B = np.column_stack([rng.normal(size=(7, 4)), np.ones(7)])
    delta = null_direction(B)
    np.testing.assert_allclose(delta @ B, 0, atol=1e-12)
    assert delta[0] == pytest.approx(delta @ delta)  # the projection of (1, 0, ..., 0)
    assert delta[0] > 0.01
