"""What the labs of chapter 10 draw is what the plain formulas give."""

import itertools
import math

import numpy as np
import pytest

from attnbook.examples import M_SENTENCE
from attnbook.labs import cross_attention as labs
from attnbook.labs.cross_attention import (
    ACCIDENT,
    RIGHT,
    STOPS,
    WRONG,
    compute_map,
    compute_steps,
    compute_wiring,
    verdict,
)
from attnbook.picture import Rect, Text


def plain_weights(u, allowed=None):
    """Softmax over the allowed keys in plain Python; a row of zeros without any."""
    allowed = [True] * len(u) if allowed is None else allowed
    e = [math.exp(x) if may else 0.0 for x, may in zip(u, allowed, strict=True)]
    return [x / sum(e) if sum(e) else 0.0 for x in e]


def plain_read(Q, K, V, allowed=None):
    rows, root = [], math.sqrt(len(K[0]))
    for i, q in enumerate(Q):
        u = [sum(a * b for a, b in zip(q, k, strict=True)) / root for k in K]
        rows.append(plain_weights(u, None if allowed is None else allowed[i]))
    return np.array(rows), np.array(rows) @ np.array(V)


# ---- two lengths and a source mask -------------------------------------------------------------


def plain_allowed(T, S, padding, wait):
    real = [True] * S
    if padding == "first":
        real[0] = False
    if padding in ("last", "last two"):
        real[-1] = False
    if padding == "last two":
        real[max(S - 2, 0)] = False
    return [
        [real[j] and (not wait or j + 1 <= i + 1 + wait - 1) for j in range(S)] for i in range(T)
    ]


@pytest.mark.parametrize("padding", labs.PADDED)
@pytest.mark.parametrize("wait", labs.WAITS)
def test_every_mask_at_every_length(padding, wait):
    Q, K, V = labs._sequences()
    for T, S in itertools.product((1, 2, 3, 6), (1, 2, 4, 6)):
        arrays = compute_map(T, S, padding, wait)
        allowed = plain_allowed(T, S, padding, wait)
        assert arrays.allowed.tolist() == allowed
        A, O = plain_read(Q[:T], K[:S], V[:S], allowed)
        np.testing.assert_allclose(arrays.A, A, atol=1e-12)
        np.testing.assert_allclose(arrays.O, O, atol=1e-12)


def test_a_new_target_position_changes_nothing_else():
    for T in range(1, 6):
        one, two = compute_map(T, 4, "none", 2), compute_map(T + 1, 4, "none", 2)
        np.testing.assert_allclose(two.A[:T], one.A, atol=1e-12)
        np.testing.assert_allclose(two.O[:T], one.O, atol=1e-12)


def test_a_new_source_position_lowers_every_weight():
    for S in range(1, 6):
        one, two = compute_map(3, S, "none", 0), compute_map(3, S + 1, "none", 0)
        assert (two.A[:, :S] < one.A).all()
        np.testing.assert_allclose(two.A.sum(axis=1), 1)


def texts(drawn):
    return [item.text for item in drawn.items if isinstance(item, Text)]


def test_what_the_answer_says_of_the_masks():
    wait_1 = labs.lengths_and_masks(T=2, S=5, wait=1)
    assert labs.UNREAD.format("3, 4, 5") in wait_1.caption_text
    np.testing.assert_array_equal(compute_map(2, 5, "none", 1).O[0], labs._sequences()[2][0])
    hidden = ~compute_map(3, 4, "none", 2).allowed
    assert np.argwhere(hidden).tolist() == [[0, 2], [0, 3], [1, 3]]
    for state, empty in (
        ({"T": 3, "S": 1, "padding": "last"}, "1, 2, 3"),
        ({"T": 3, "S": 4, "padding": "first", "wait": 1}, "1"),
    ):
        lab = labs.lengths_and_masks(**state)
        assert labs.EMPTY.format(empty) in lab.caption_text
        assert texts(lab.picture).count(labs.NO_KEY) == len(empty.split(", "))
    assert labs.NO_KEY not in texts(wait_1.picture)


def test_the_picture_has_the_numbers_and_the_padding():
    lab = labs.lengths_and_masks(T=2, S=3, padding="last")
    drawn = texts(lab.picture)
    assert drawn.count(labs.PAD) == 1
    arrays = compute_map(2, 3, "last", 0)
    assert {f"{a:.2f}" for a in arrays.A[:, :2].ravel()} <= set(drawn)
    assert labs.MAP_TITLE.format(T=2, S=3) in drawn


# ---- translation, word by word -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_three_sites(seed):
    rng = np.random.default_rng(seed)
    X = np.array(M_SENTENCE.X, float)
    Y = rng.normal(size=(5, 6)) / 2
    W = rng.normal(size=(3, 3, 6, 6)) * 0.8
    A, O = plain_read(X @ W[0, 0], X @ W[0, 1], X @ W[0, 2])
    triangle = [[j <= i for j in range(5)] for i in range(5)]
    B, P = plain_read(Y @ W[1, 0], Y @ W[1, 1], Y @ W[1, 2], triangle)
    C, _ = plain_read((Y + P) @ W[2, 0], (X + O) @ W[2, 1], (X + O) @ W[2, 2])
    for written in range(5):
        arrays = compute_steps(written, seed)
        T = written + 1
        assert arrays.T == T
        np.testing.assert_allclose(arrays.encoder, A, atol=1e-12)
        np.testing.assert_allclose(arrays.decoder, B[:T, :T], atol=1e-12)
        np.testing.assert_allclose(arrays.cross, C[:T], atol=1e-12)


def test_what_the_answer_says_of_the_first_row():
    most = [M_SENTENCE.tokens[compute_steps(0, seed).cross[0].argmax()] for seed in range(5)]
    assert most == ["I", "love", "programming", "GPU", "love"]


def test_the_caption_names_the_step():
    said = labs.translation_steps(written=2).caption_text
    assert "wǒ (我) ài (爱)" in said
    assert "stands at ài (爱) and the word to come is GPU" in said
    assert labs.NOTHING in labs.translation_steps(written=0).caption_text
    assert "the most goes to I and programming." in labs.translation_steps(written=3).caption_text


# ---- who gives queries, keys and values --------------------------------------------------------

SIDES = (labs.TARGET_SIDE, labs.SOURCE_SIDE)
CHOICES = list(itertools.product(SIDES, repeat=3))
RIGHT_CHOICE = (labs.TARGET_SIDE, labs.SOURCE_SIDE, labs.SOURCE_SIDE)


def by_numpy(sides, S, d_m):
    """Run the layer in plain numpy; return the verdict and the largest error."""
    rng = np.random.default_rng(3)
    X_q, X_m = rng.normal(size=(3, 4)), rng.normal(size=(5, 5))[:S, :d_m]
    W = [rng.normal(size=(5, n)) / 2 for n in (2, 2, 4)]
    W = [W[0][:4], W[1][:d_m], W[2][:d_m]]

    def run(sides):
        X = [X_q if side == labs.TARGET_SIDE else X_m for side in sides]
        Q, K, V = (x @ w for x, w in zip(X, W, strict=True))
        A = np.array([plain_weights(u) for u in Q @ K.T / math.sqrt(2)])
        return X_q + A @ V

    try:
        Y = run(sides)
    except ValueError:
        return STOPS, 0.0
    error = abs(Y - run(RIGHT_CHOICE)).max()
    if error > 1e-9:
        return WRONG, error
    return (RIGHT if sides == RIGHT_CHOICE else ACCIDENT), error


@pytest.mark.parametrize("d_m", [4, 5])
@pytest.mark.parametrize("S", [1, 2, 3, 4, 5])
def test_the_verdict_is_that_of_numpy(S, d_m):
    for sides in CHOICES:
        arrays = compute_wiring(*sides, S, d_m)
        expected, error = by_numpy(sides, S, d_m)
        assert verdict(arrays) == expected, sides
        assert arrays.error == pytest.approx(error, abs=1e-12)
        assert (error > 0.01) == (expected == WRONG)


@pytest.mark.parametrize(
    ("S", "d_m", "counts"),
    [
        (5, 4, (1, 1, 6, 0)),
        (3, 4, (1, 7, 0, 0)),
        (1, 4, (1, 2, 4, 1)),
        (3, 5, (1, 0, 7, 0)),
    ],
)
def test_how_many_run(S, d_m, counts):
    found = [verdict(compute_wiring(*sides, S, d_m)) for sides in CHOICES]
    assert tuple(map(found.count, (RIGHT, WRONG, STOPS, ACCIDENT))) == counts


@pytest.mark.parametrize(
    ("sides", "S", "d_m", "where"),
    [
        ("tst", 5, 4, "O = A V: (3 × 5)(3 × 4)"),
        ("stt", 5, 4, "X_q + O: (3 × 4) + (5 × 4)"),
        ("sss", 5, 5, "Q = X W_Q: (5 × 5)(4 × 2)"),
        ("tts", 4, 5, "K = X W_K: (3 × 4)(5 × 2)"),
        ("tst", 4, 5, "V = X W_V: (3 × 4)(5 × 4)"),
    ],
)
def test_where_it_stops(sides, S, d_m, where):
    named = [labs.TARGET_SIDE if side == "t" else labs.SOURCE_SIDE for side in sides]
    arrays = compute_wiring(*named, S, d_m)
    assert where in labs.caption_wiring(arrays)
    crosses = [item for item in labs.draw_wiring(arrays).items if isinstance(item, Text)]
    assert [item.text for item in crosses].count("✗") == 1


def test_shapes_as_far_as_it_gets():
    arrays = compute_wiring(labs.TARGET_SIDE, labs.SOURCE_SIDE, labs.TARGET_SIDE, 5, 4)
    assert arrays.shapes == {"Q": (3, 2), "K": (5, 2), "V": (3, 4), "A": (3, 5)}
    right = compute_wiring(*RIGHT_CHOICE, 5, 5)
    assert right.shapes == {
        "Q": (3, 2),
        "K": (5, 2),
        "V": (5, 4),
        "A": (3, 5),
        "O": (3, 4),
        "Y": (3, 4),
    }
    assert sum(isinstance(item, Rect) for item in labs.draw_wiring(right).items) == 8


def test_the_single_row_is_repeated():
    arrays = compute_wiring(*[labs.SOURCE_SIDE] * 3, 1, 4)
    assert arrays.shapes["O"] == (1, 4)
    assert labs.BROADCAST.strip() in labs.caption_wiring(arrays)
    assert verdict(arrays) == ACCIDENT  # with one key its weight is 1, whoever asks
