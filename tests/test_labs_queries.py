"""What the labs of chapter 03 draw is what the plain formulas give."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from attnbook import examples
from attnbook.labs import queries_keys_and_values as labs
from attnbook.labs.queries_keys_and_values import BACK, CAUSAL, FORWARD, NO_MASK, SHORT
from attnbook.picture import Circle, Rect

SENTENCE = examples.M_SENTENCE
MATRICES = {"Q": SENTENCE.W_Q, "K": SENTENCE.W_K, "V": SENTENCE.W_V}


def times(x, W):
    """Multiply a row with a matrix, entry by entry."""
    return [sum(a * W[p][j] for p, a in enumerate(x)) for j in range(len(W[0]))]


# ---- three faces


@pytest.mark.parametrize("projections", labs.FACES)
@pytest.mark.parametrize("angle", [0, 75, 135, 345])
def test_three_faces(angle, projections):
    length = 0.75
    x = [length * math.cos(math.radians(angle)), length * math.sin(math.radians(angle))]
    arrays = labs.compute_faces(angle, length, projections)
    np.testing.assert_allclose(arrays.x, x)
    for face, points, W in zip(arrays.faces, arrays.curves, labs.FACES[projections], strict=True):
        np.testing.assert_allclose(face, times(x, W), atol=1e-15)
        assert min(np.linalg.norm(points - face, axis=1)) < 1e-12  # on its own curve


def test_the_sets_of_projections_do_what_the_chapter_says_of_them():
    for angle in range(0, 360, 15):
        turns = labs.compute_faces(angle, 1.0, labs.TURNS)
        q, k, _ = turns.faces
        assert q @ turns.x == pytest.approx(0)  # a quarter turn
        assert (q @ k == pytest.approx(1)) == (angle in (135, 315))
        assert (q @ k == pytest.approx(-1)) == (angle in (45, 225))
        q, k, v = labs.compute_faces(angle, 1.25, labs.SPLIT).faces
        assert np.array_equal(q, k)
        assert q[1] == v[0] == 0
        q, _, _ = labs.compute_faces(angle, 1.0, labs.BLIND).faces
        assert np.allclose(q, 0) == (angle in (135, 315))
    assert labs.FACES[labs.OF_R][2] == examples.R_HEAD.W_V


# ---- extractor columns


@pytest.mark.parametrize(("which", "token", "c"), [("Q", 0, 1), ("K", 3, 3), ("V", 1, 6)])
def test_extractor_columns(which, token, c):
    W, x = MATRICES[which], SENTENCE.X[token]
    arrays = labs.compute_column(which, SHORT[token], c)
    np.testing.assert_allclose(arrays.row, np.array(times(x, W), float))
    products = [a * W[p][c - 1] for p, a in enumerate(x)]
    np.testing.assert_allclose(arrays.products, np.array(products, float))
    assert arrays.products.sum() == pytest.approx(arrays.row[c - 1])


def test_the_caption_names_every_longest_bar():
    for which, token, c in itertools.product(MATRICES, SHORT, range(1, 7)):
        x, W = SENTENCE.X[SHORT.index(token)], MATRICES[which]
        sizes = [abs(a * W[p][c - 1]) for p, a in enumerate(x)]
        longest = [str(p + 1) for p, size in enumerate(sizes) if size == max(sizes)]
        told = labs.caption_column(labs.compute_column(which, token, c))
        assert told.endswith((f"feature {longest[0]}.", f"features {', '.join(longest)}."))
        assert ("features" in told.split("=")[-1]) == (len(longest) > 1)
    assert "features 1, 4." in labs.caption_column(labs.compute_column("Q", "I", 1))


def test_bars_are_as_long_as_their_products():
    arrays = labs.compute_column("K", "prog", 3)
    wide = [item for item in labs.draw_column(arrays).items if isinstance(item, Rect)]
    lengths = [bar.width for bar in wide if bar.height == 24 and not bar.radius]
    scale = lengths[2] / arrays.products[2]
    np.testing.assert_allclose(lengths, scale * abs(arrays.products))


def test_only_w_q_has_no_negative_product():
    low = {which: 0.0 for which in MATRICES}
    for which, token, c in itertools.product(MATRICES, SHORT, range(1, 7)):
        low[which] = min(low[which], labs.compute_column(which, token, c).products.min())
    assert low["Q"] == 0
    assert low["K"] < 0
    assert low["V"] < 0


# ---- information flow


def plain_stages(X, mask):
    """Q, K, V, E, A, O of the sentence, entry by entry."""
    Q, K, V = ([times(x, W) for x in X] for W in MATRICES.values())
    E = [[sum(a * b for a, b in zip(q, k, strict=True)) for k in K] for q in Q]
    A = []
    for i, row in enumerate(E):
        seen = [j for j in range(4) if mask == NO_MASK or j <= i]
        e = {j: math.exp(row[j] / math.sqrt(6)) for j in seen}
        A.append([e.get(j, 0) / sum(e.values()) for j in range(4)])
        E[i] = [x if j in seen else 0 for j, x in enumerate(row)]
    O = [times(a, V) for a in A]
    return {n: np.array(m, float) for n, m in zip("QKVEAO", (Q, K, V, E, A, O), strict=True)}


@pytest.mark.parametrize("mask", [NO_MASK, CAUSAL])
@pytest.mark.parametrize(("token", "feature"), [(2, 2), (0, 5), (3, 1)])
def test_forwards_is_the_derivative(token, feature, mask):
    flow = labs.compute_flow(FORWARD, SHORT[token], feature, mask)
    step, ends = 1e-5, []
    for sign in (1, -1):
        X = [[float(x) for x in row] for row in SENTENCE.X]
        X[token][feature - 1] += sign * step
        ends.append(plain_stages(X, mask))
    for name in "QKVEAO":
        measured = (ends[0][name] - ends[1][name]) / (2 * step)
        np.testing.assert_allclose(flow.d[name], measured, atol=1e-9)
        assert not measured[flow.d[name] == 0].any() or abs(measured).max() < 1e-9


@pytest.mark.parametrize("mask", [NO_MASK, CAUSAL])
def test_backwards_asks_what_forwards_answers(mask):
    forward = {
        (i, p): labs.compute_flow(FORWARD, SHORT[i], p, mask).d["O"]
        for i, p in itertools.product(range(4), range(1, 7))
    }
    for i, c in itertools.product(range(4), (2, 6)):
        back = labs.compute_flow(BACK, SHORT[i], c, mask)
        there = np.array([[forward[j, p][i, c - 1] for p in range(1, 7)] for j in range(4)])
        np.testing.assert_allclose(back.d["X"], there, atol=1e-12)
        np.testing.assert_array_equal(back.d["X"] != 0, there != 0)


def test_nothing_flows_to_earlier_positions():
    for i in range(4):
        d = labs.compute_flow(FORWARD, SHORT[i], 3, CAUSAL).d
        assert not d["O"][:i].any()
        assert d["O"][i:].all()
    d = labs.compute_flow(BACK, "I", 4, CAUSAL).d
    assert not d["Q"].any()
    assert not d["K"].any()
    assert d["V"].any()


def test_full_cells_are_the_derivatives_that_are_not_zero():
    arrays = labs.compute_flow(FORWARD, "love", 3, CAUSAL)
    items = labs.draw_flow(arrays).items
    cells = [item for item in items if isinstance(item, Rect)]
    empty = {labs.style.CARD, labs.style.FORBIDDEN}
    full = sum(cell.fill not in empty for cell in cells)
    assert full == sum(np.count_nonzero(d) for d in arrays.d.values())
    assert sum(cell.fill == labs.style.FORBIDDEN for cell in cells) == 2 * 6
    assert len([item for item in items if isinstance(item, Circle)]) == 1


# ---- asymmetry


def exact_scores():
    """The scores of the running example in fractions."""
    Q, K = ([times(x, W) for x in SENTENCE.X] for W in (SENTENCE.W_Q, SENTENCE.W_K))
    return [[sum(map(Fraction.__mul__, q, k)) for k in K] for q in Q]


@pytest.mark.parametrize("s", [0.0, 0.3, 0.5, 1.0])
def test_the_mix_of_the_running_example(s):
    E = np.array(exact_scores(), float)
    arrays = labs.compute_asymmetry(s, labs.FOUND)
    np.testing.assert_allclose(arrays.E, (1 - s) * (E + E.T) + s * (E - E.T), atol=1e-9)


def test_the_weights_set_by_hand_come_out():
    E = labs.compute_asymmetry(0.5, labs.HAND).E
    e = np.exp(E / 2)  # d_k = 4
    np.testing.assert_allclose(e / e.sum(axis=1, keepdims=True), np.array(SENTENCE.A, float))
    np.testing.assert_allclose(E.mean(axis=1), 0, atol=1e-9)


@pytest.mark.parametrize("projections", [labs.FOUND, labs.HAND])
def test_the_ends_of_the_mix_are_symmetric_and_antisymmetric(projections):
    E = labs.compute_asymmetry(0.0, projections).E
    np.testing.assert_array_equal(E, E.T)
    E = labs.compute_asymmetry(1.0, projections).E
    np.testing.assert_array_equal(E, -E.T)


def test_what_the_chapter_says_of_the_ends():
    def top(s, projections):
        return [SHORT[j] for j in labs.compute_asymmetry(s, projections).top]

    assert top(0.0, labs.HAND) == ["I", "prog", "prog", "GPU"]
    assert top(1.0, labs.HAND) == ["prog", "prog", "love", "GPU"]
    assert labs.compute_asymmetry(1.0, labs.HAND).E.max(axis=1).min() > 0
    small = labs.compute_asymmetry(1.0, labs.FOUND)
    assert abs(small.E).max() < 0.2
    assert top(1.0, labs.FOUND)[2] == "GPU"
    assert small.E[2].max() == 0
