"""The labs of chapter 14: real maps, the catalogue, shared keys and the copy that moves away."""

import math

import numpy as np
import pytest

from attnbook import recordings
from attnbook.diagrams import number
from attnbook.examples import M_SENTENCE
from attnbook.head_catalogue import PATTERNS
from attnbook.labs import attention_in_a_trained_model as labs
from attnbook.picture import Line, Polygon, Rect, Text

LIST = recordings.word_list()


def plain_row(q, k):
    """One row of weights in plain Python, from the visible keys."""
    u = [math.fsum(float(x) * float(y) for x, y in zip(q, row, strict=True)) / 8 for row in k]
    e = [math.exp(x - max(u)) for x in u]
    return [x / math.fsum(e) for x in e]


def texts(picture):
    return [item.text for item in picture.items if isinstance(item, Text)]


def test_nobody_can_write_to_the_weights_of_a_lab():
    for text in labs.TEXTS:
        with pytest.raises(ValueError, match="read-only"):
            labs.weights(text)[...] = 0
    with pytest.raises(ValueError, match="read-only"):
        labs.moved_weights(3)[...] = 0


# ---- beside the hand-made map ------------------------------------------------------------------


@pytest.mark.parametrize("kind", [labs.PRINTED, labs.CUT])
def test_distance_from_the_hand_made_map(kind):
    arrays = labs.compute_beside(16, 1, kind)
    hand = [[float(x) for x in row] for row in M_SENTENCE.A]
    if kind == labs.CUT:
        hand = [[x if j <= i else 0 for j, x in enumerate(row)] for i, row in enumerate(hand)]
        hand = [[x / sum(row) for x in row] for row in hand]
    A = recordings.weights(recordings.sentence())[16, 1]
    apart = [sum(abs(a - b) for a, b in zip(A[i], hand[i], strict=True)) / 2 for i in (1, 2, 3)]
    equal = [sum(abs((j <= i) / (i + 1) - hand[i][j]) for j in range(4)) / 2 for i in (1, 2, 3)]
    np.testing.assert_allclose(arrays.hand, hand)
    assert math.isclose(arrays.tv, sum(apart) / 3)
    assert math.isclose(arrays.tv_uniform, sum(equal) / 3)
    shown = texts(labs.draw_beside(arrays))
    assert all(number(a) in shown for i in range(4) for a in A[i, : i + 1])
    assert number(arrays.tv) in labs.caption_beside(arrays)


# ---- the catalogue -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", labs.TEXTS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_five_highest_are_the_five_highest(pattern, text):
    arrays = labs.compute_catalogue(pattern, text, 2)
    if not arrays.top:
        assert "cannot show it" in labs.caption_catalogue(arrays)
        return
    expected = sorted(arrays.scores.ravel())[::-1][:5]
    np.testing.assert_allclose([arrays.scores[place] for place in arrays.top], expected, atol=1e-6)
    n, h = arrays.top[1]
    assert np.array_equal(arrays.A, labs.weights(text)[n, h])
    picture = labs.draw_catalogue(arrays)
    frames = [x for x in picture.items if isinstance(x, Rect) and x.stroke == labs.style.KEY]
    assert len(frames) == arrays.there.sum()
    equal = [1 / row.sum() * there.sum() for row, there in
             zip(arrays.allowed, arrays.there, strict=True) if there.any()]  # fmt: skip
    assert math.isclose(arrays.baseline, sum(equal) / len(equal))


def test_which_patterns_which_text_can_show():
    shown = {
        text: [p for p in PATTERNS if labs.compute_catalogue(p, text, 1).top] for text in labs.TEXTS
    }
    assert "next token" not in shown[labs.SENTENCE] + shown[labs.LIST]
    assert "next token" in shown[labs.ENCODER]
    assert set(shown[labs.LIST]) == set(PATTERNS) - {"next token"}


# ---- shared keys -------------------------------------------------------------------------------


def test_three_rows_of_one_query():
    arrays = labs.compute_shared(18, 2, 14)
    for r, h in enumerate((6, 7, 8)):
        np.testing.assert_allclose(
            arrays.A[r, :15], plain_row(LIST.q[3, h, 14], LIST.k[3, 2, :15]), atol=1e-12
        )
    pairs = [np.abs(arrays.A[a] - arrays.A[b]).sum() / 2 for a, b in ((0, 1), (0, 2), (1, 2))]
    assert math.isclose(arrays.tv, max(pairs))
    assert "head 6: 0.72 on seven at place 5" in labs.caption_shared(arrays)


# ---- the copy moves away -----------------------------------------------------------------------


def test_a_gap_of_nothing_is_the_recording():
    np.testing.assert_allclose(labs.moved_weights(0), labs.weights(labs.LIST), atol=1e-12)


def test_moved_scores_by_complex_numbers():
    """q_i k_j* as the real part of a sum over planes, turned by the change of the distance."""
    gap, n, h, i = 7, 2, 4, 13
    q, k = LIST.q[n, h, i].astype(float), LIST.k[n, h // 3].astype(float)
    q, k = q[::2] + 1j * q[1::2], k[:, ::2] + 1j * k[:, 1::2]
    more = np.where(np.arange(i + 1) < 9, gap, 0)  # how much farther key j is from query i
    turn = np.exp(1j * np.outer(more, 1e5 ** (-np.arange(32) / 32)))
    u = (q * turn * k[: i + 1].conj()).sum(axis=1).real / 8
    e = np.exp(u - u.max())
    np.testing.assert_allclose(labs.moved_weights(gap)[n, h, i, : i + 1], e / e.sum(), atol=1e-9)


def test_where_triangle_and_square_stand():
    for gap, i, distance in ((0, 11, 2), (3, 11, 5), (4, 13, 8), (7, 11, -1), (1, 17, -1)):
        assert gap in labs.GAPS
        arrays = labs.compute_moved("17.4", gap, i)
        assert (arrays.content, arrays.distance) == (i - 9, distance)
        old, new = np.arange(18), np.arange(18) + np.where(np.arange(18) >= 9, gap, 0)
        nine = [int(j) for j in old if new[i] - new[j] == 9]
        assert nine == ([distance] if distance >= 0 else [])
        marks = [x for x in labs.draw_moved(arrays).items if isinstance(x, Polygon)]
        assert len(marks) == 3
        dashed = [x for x in labs.draw_moved(arrays).items if isinstance(x, Line) and x.dash]
        assert len(dashed) == (gap > 0)
