"""What the labs of chapter 09 draw is what the plain formulas give."""

import itertools
import math

import numpy as np
import pytest

from attnbook import examples, style
from attnbook.diagrams import number
from attnbook.labs import many_heads as labs
from attnbook.picture import Polygon, Rect, Text

X = np.array(examples.M_SENTENCE.X, float)


def texts(picture):
    return [item.text for item in picture.items if isinstance(item, Text)]


def plain_head(X, W_Q, W_K, W_V):
    """One head in plain Python: its weights and its output."""
    Q, K, V = ([[math.fsum(x * w for x, w in zip(row, column, strict=True)) for column in W.T]
                for row in X] for W in (W_Q, W_K, W_V))  # fmt: skip
    A, O = [], []
    for q in Q:
        e = [math.exp(math.fsum(map(math.prod, zip(q, k, strict=True))) / len(q) ** 0.5) for k in K]
        a = [x / math.fsum(e) for x in e]
        A.append(a)
        O.append([math.fsum(a[j] * V[j][p] for j in range(len(V))) for p in range(len(V[0]))])
    return np.array(A), np.array(O)


# ---- heads, one at a time ----------------------------------------------------------------------


@pytest.mark.parametrize("projections", labs.WEIGHTS)
@pytest.mark.parametrize(("H", "h"), [(1, 1), (2, 2), (3, 2), (6, 5)])
@pytest.mark.parametrize("output", [labs.IDENTITY, labs.BLOCKS, labs.DENSE])
def test_heads_and_what_they_add(H, h, projections, output):
    arrays = labs.compute_heads(H, h, projections, output)
    W_Q, W_K, W_V = labs.WEIGHTS[projections]
    width, total = 6 // H, np.zeros((4, 6))
    for n in range(H):
        own = slice(n * width, (n + 1) * width)
        A, O = plain_head(X, W_Q[:, own], W_K[:, own], W_V[:, own])
        np.testing.assert_allclose(arrays.A[n], A)
        np.testing.assert_allclose(arrays.C[:, own], O)
        np.testing.assert_allclose(arrays.parts[n], O @ arrays.W_O[own], atol=1e-12)
        total += O @ arrays.W_O[own]
        elsewhere = np.ones(6, bool)
        elsewhere[own] = False
        if output != labs.DENSE:
            assert not arrays.parts[n][:, elsewhere].any()
        else:
            assert arrays.parts[n].all()
    np.testing.assert_allclose(arrays.Y, total, atol=1e-12)


def test_the_kinds_of_output_projection():
    kinds = {kind: labs.compute_heads(3, 1, labs.RANDOM_1, kind).W_O for kind in
             (labs.IDENTITY, labs.BLOCKS, labs.DENSE)}  # fmt: skip
    assert np.array_equal(kinds[labs.IDENTITY], np.eye(6))
    for p, c in np.ndindex(6, 6):
        expected = kinds[labs.DENSE][p, c] if p // 2 == c // 2 else 0
        assert kinds[labs.BLOCKS][p, c] == expected
    one = (labs.compute_heads(1, 1, labs.RANDOM_1, kind).W_O for kind in (labs.BLOCKS, labs.DENSE))
    assert np.array_equal(*one)


def test_a_head_that_is_not_there_shows_the_last_one_and_says_so():
    for asked in (3, 6):
        arrays = labs.compute_heads(2, asked, labs.RANDOM_1, labs.IDENTITY)
        assert arrays.h == 1
        assert f"There is no head {asked}" in labs.caption_heads(arrays)
    assert "There is no" not in labs.caption_heads(
        labs.compute_heads(2, 2, labs.RANDOM_1, labs.IDENTITY)
    )


def test_the_picture_shows_the_numbers_of_the_picked_head():
    arrays = labs.compute_heads(3, 2, labs.RANDOM_2, labs.DENSE)
    picture = labs.draw_heads(arrays)
    shown = texts(picture)
    for values in (arrays.A[1], arrays.C, arrays.parts[:, 1], arrays.Y[1]):
        for value in values.ravel():
            assert number(value) in shown
    assert [t for t in shown if t.startswith("head ")] == ["head 1", "head 2", "head 3"]
    frames = [r for r in picture.items if isinstance(r, Rect) and r.stroke == style.INK]
    thumbnail, row, block = frames
    assert row.y == 206 + 32  # love, the second row
    assert (block.y, block.height) == (400 + 2 * 26, 2 * 26)  # rows 3 and 4 of W_O
    assert thumbnail.x == 150 + 106


def test_what_the_chapter_says_about_the_maps():
    for H in (1, 2, 3, 6):
        A = labs.compute_heads(H, 1, labs.OF_SENTENCE, labs.IDENTITY).A
        assert 0.22 < A.min() <= A.max() < 0.28
        decided = [labs.compute_heads(H, 1, seed, labs.IDENTITY).A for seed in
                   (labs.RANDOM_1, labs.RANDOM_2)]  # fmt: skip
        assert min(A.max() for A in decided) > 0.4
        assert not np.allclose(*decided, atol=0.05)


# ---- the wrong reshape -------------------------------------------------------------------------


@pytest.mark.parametrize("way", [labs.RIGHT, labs.WRONG])
def test_reshape_entry_by_entry(way):
    for T, H, d_k in itertools.product((1, 2, 5, 6), (1, 2, 3, 4), (1, 2, 3)):
        arrays = labs.compute_reshape(T, H, d_k, way)
        flat = [(t + 1, c + 1) for t in range(T) for c in range(H * d_k)]
        for h, t, p in itertools.product(range(H), range(T), range(d_k)):
            right = (t + 1, h * d_k + p + 1)
            expected = right if way == labs.RIGHT else flat[(h * T + t) * d_k + p]
            assert (arrays.position[h, t, p], arrays.column[h, t, p]) == expected


def test_the_two_ways_agree_exactly_for_one_head_or_one_position():
    for T, H, d_k in itertools.product(range(1, 7), range(1, 5), (1, 2, 3)):
        one, two = (labs.compute_reshape(T, H, d_k, way) for way in (labs.RIGHT, labs.WRONG))
        same = np.array_equal(one.position, two.position)
        assert same == np.array_equal(one.column, two.column) == (T == 1 or H == 1)
        said = labs.caption_reshape(two)
        assert ("both ways give the same" in said) == (T == 1 or H == 1)


def test_what_the_caption_says_about_the_wrong_way():
    said = labs.caption_reshape(labs.compute_reshape(4, 2, 3, labs.WRONG))
    assert "head 1 holds positions 1 to 2, head 2 holds positions 3 to 4" in said
    assert "In 6 of the 8 rows" in said
    arrays = labs.compute_reshape(5, 2, 3, labs.WRONG)
    assert arrays.position[0].max() == arrays.position[1].min() == 3
    said = labs.caption_reshape(labs.compute_reshape(4, 2, 3, labs.RIGHT))
    assert labs.SAME in said
    assert "In " not in said


def test_every_number_is_drawn_twice_and_at_its_place():
    for way in (labs.RIGHT, labs.WRONG):
        arrays = labs.compute_reshape(3, 2, 2, way)
        shown = [text for text in texts(labs.draw_reshape(arrays)) if text[0].isdigit()]
        whole = [f"{t}.{c}" for t in (1, 2, 3) for c in (1, 2, 3, 4)]
        assert shown[: len(whole)] == whole
        heads = np.stack([arrays.position, arrays.column], axis=-1).reshape(-1, 2)
        assert shown[len(whole) :] == [f"{t}.{c}" for t, c in heads]


# ---- the mean of the maps ----------------------------------------------------------------------


@pytest.mark.parametrize("values", labs.NUMBERS)
@pytest.mark.parametrize(("a", "b"), [(0.75, 0.25), (0.05, 0.95), (0.6, 0.6), (0.9, 0.3)])
def test_the_mean_map_and_the_heads(a, b, values):
    arrays = labs.compute_mean(a, b, values)
    (n_11, n_12), (n_21, n_22) = labs.NUMBERS[values]
    assert arrays.y == pytest.approx(a * n_11 + (1 - a) * n_12 + b * n_21 + (1 - b) * n_22)
    mean = (a + b) / 2
    assert arrays.mean == pytest.approx([mean, 1 - mean])
    assert arrays.y_mean == pytest.approx(mean * (n_11 + n_21) + (1 - mean) * (n_12 + n_22))
    equal = values == labs.EQUAL or a == b
    assert (arrays.y == pytest.approx(arrays.y_mean)) == equal


def test_the_marks_stand_where_the_numbers_are():
    arrays = labs.compute_mean(0.95, 0.05, labs.DIFFERENT)
    assert arrays.y == pytest.approx(7.6)
    assert labs.compute_mean(0.95, 0.05, labs.SWAPPED).y == pytest.approx(0.4)
    picture = labs.draw_mean(arrays)
    down, up = [item for item in picture.items if isinstance(item, Polygon)]
    assert down.points[0][0] == pytest.approx(100 + 600 * 7.6 / 8)
    assert up.points[0][0] == pytest.approx(100 + 600 * 4 / 8)
    assert {"the heads: 7.60", "the mean map: 4.00"} <= set(texts(picture))
