"""The recordings, the catalogue of patterns, rotary positions, and the labs of chapter 14."""

import math

import numpy as np
import pytest

from attnbook import recordings, rotary
from attnbook.diagrams import number
from attnbook.examples import M_SENTENCE
from attnbook.head_catalogue import PATTERNS, named_keys, score, uniform
from attnbook.labs import attention_in_a_trained_model as labs
from attnbook.picture import Polygon, Rect, Text

LIST = recordings.word_list()


def plain_row(q, k):
    """One row of weights in plain Python, from the visible keys."""
    u = [math.fsum(float(x) * float(y) for x, y in zip(q, row, strict=True)) / 8 for row in k]
    e = [math.exp(x - max(u)) for x in u]
    return [x / math.fsum(e) for x in e]


def texts(picture):
    return [item.text for item in picture.items if isinstance(item, Text)]


# ---- the recordings ----------------------------------------------------------------------------


def test_shapes_and_types():
    for text, layers in ((recordings.sentence(), 30), (LIST, 6)):
        T = len(text.tokens)
        assert len(text.layers) == layers
        assert text.q.shape == (layers, 9, T, 64)
        assert text.k.shape == text.v.shape == (layers, 3, T, 64)
        assert text.q.dtype == text.k.dtype == text.v.dtype == np.float16
        assert "".join(text.tokens) == text.text
        assert [p for _, p in text.next_tokens] == sorted((p for _, p in text.next_tokens))[::-1]
    encoder = recordings.encoder_sentence()
    assert encoder.A.shape == (6, 12, 7, 7)
    np.testing.assert_allclose(encoder.A.sum(axis=-1), 1, atol=1e-6)


def test_nobody_can_write_to_a_recording():
    arrays = [LIST.q, LIST.k, LIST.v, recordings.encoder_sentence().A, labs.weights(labs.LIST)]
    for x in arrays:
        with pytest.raises(ValueError, match="read-only"):
            x[...] = 0


def test_provenance_stands_beside_the_arrays():
    said = (recordings.FOLDER / "README.md").read_text(encoding="utf-8")
    for file in recordings.FOLDER.iterdir():
        assert f"`{file.name}`" in said or file.name == "README.md"
    for word in ("SmolLM2-135M-Instruct", "all-MiniLM-L6-v2", "Apache License 2.0", "4 bits"):
        assert word in said
    assert "Apache License" in (recordings.FOLDER / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(("n", "h", "i"), [(0, 0, 17), (1, 2, 9), (2, 4, 12), (3, 8, 1), (5, 5, 0)])
def test_weights_are_softmax_of_the_shared_keys(n, h, i):
    a = recordings.weights(LIST)[n, h, i]
    np.testing.assert_allclose(
        a[: i + 1], plain_row(LIST.q[n, h, i], LIST.k[n, h // 3, : i + 1]), atol=1e-12
    )
    assert not a[i + 1 :].any()


# ---- patterns ----------------------------------------------------------------------------------


def test_keys_named_by_each_pattern():
    tokens = ("a", "b", "a", ",", "b", "a", "d")
    there = {name: np.argwhere(named_keys(name, tokens)).tolist() for name in PATTERNS}
    assert there["first token"] == [[i, 0] for i in range(2, 7)]
    assert there["previous token"] == [[i, i - 1] for i in range(2, 7)]
    assert there["itself"] == [[i, i] for i in range(2, 7)]
    assert there["next token"] == [[i, i + 1] for i in range(2, 6)]
    assert there["three back"] == [[i, i - 3] for i in range(4, 7)]
    assert there["comma"] == [[i, 3] for i in range(4, 7)]
    assert there["after the same"] == [[2, 1], [4, 2], [5, 1], [5, 3]]


def test_what_a_text_cannot_show_names_nothing():
    for name in ("comma", "after the same", "three back"):
        assert not named_keys(name, ("a", "b", "c", "d")).any()
    with pytest.raises(ValueError, match="there is no pattern 'topic'"):
        named_keys("topic", ("a", "b"))


def test_scores_of_all_heads_by_loops():
    A = recordings.weights(LIST)
    for name in PATTERNS:
        P = named_keys(name, LIST.tokens) & np.tri(18, dtype=bool)
        if not P.any():
            continue
        s = score(A, P)
        rows = [i for i in range(18) if P[i].any()]
        for n, h in ((0, 2), (3, 6)):
            total = sum(A[n, h, i, j] for i in rows for j in range(18) if P[i, j])
            assert math.isclose(s[n, h], total / len(rows))


def test_no_row_and_no_key_are_told():
    with pytest.raises(ValueError, match="no row names a key"):
        score(np.eye(2), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="a row sees no key"):
        uniform([[True, False], [False, False]])


# ---- rotary positions --------------------------------------------------------------------------


def test_turning_back_and_only_the_distance_matters():
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 5, 6))
    at = np.array([0, 2, 3, 7, 30])
    np.testing.assert_allclose(rotary.rotate(rotary.rotate(q, at), -at), q, atol=1e-12)
    scores = rotary.rotate(q, at) @ rotary.rotate(k, at).T
    moved = rotary.rotate(q, at + 11) @ rotary.rotate(k, at + 11).T
    np.testing.assert_allclose(scores, moved, atol=1e-12)
    for i, j in np.ndindex(5, 5):
        alone = q[i] @ rotary.rotate(k[[j]], [at[j] - at[i]])[0]
        assert math.isclose(scores[i, j], alone, abs_tol=1e-12)


def test_turns_as_complex_numbers():
    x = np.random.default_rng(4).normal(size=(3, 8))
    t = np.array([1.0, 5.0, 9.0])
    z = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(t, 50.0 ** (-np.arange(4) / 4)))
    turned = rotary.rotate(x, t, theta=50)
    np.testing.assert_allclose(turned[:, ::2] + 1j * turned[:, 1::2], z, atol=1e-12)


@pytest.mark.parametrize(("shape", "n"), [((3, 5), 3), ((3, 4), 2), ((4,), 1)])
def test_wrong_shapes_of_turns_are_told(shape, n):
    with pytest.raises(ValueError, match="one number for each of the T rows"):
        rotary.rotate(np.ones(shape), np.arange(n))


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
    assert "head 6 0.72 on seven at place 5" in labs.caption_shared(arrays)


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
    for gap, i, distance in ((0, 11, 2), (3, 11, 5), (6, 11, 8), (7, 11, -1), (1, 17, -1)):
        arrays = labs.compute_moved("17.4", gap, i) if gap in labs.GAPS else None
        if arrays is None:
            continue
        assert (arrays.content, arrays.distance) == (i - 9, distance)
        old, new = np.arange(18), np.arange(18) + np.where(np.arange(18) >= 9, gap, 0)
        nine = [int(j) for j in old if new[i] - new[j] == 9]
        assert nine == ([distance] if distance >= 0 else [])
        marks = [x for x in labs.draw_moved(arrays).items if isinstance(x, Polygon)]
        assert len(marks) == 3
