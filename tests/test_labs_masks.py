"""What the labs of chapter 06 draw is what the plain rules and formulas give."""

import itertools
import math
import warnings

import numpy as np
import pytest

from attnbook import softmax, style
from attnbook.examples import HEAD_ALL_WIDTHS_DIFFER as HEAD
from attnbook.labs import masks as labs
from attnbook.labs.masks import compute_fill, compute_mask
from attnbook.picture import Rect, Text

START = labs.mask_composer().state


def mask(**state):
    return compute_mask(**{**START, **state})


def plain_weights(u, J):
    m = max(u[j] for j in J)
    e = [math.exp(u[j] - m) if j in J else 0.0 for j in range(len(u))]
    return [x / sum(e) for x in e]


def plain_scores():
    dot = [
        [
            sum(
                sum(x[a] * HEAD.W_Q[a][p] for a in range(7))
                * sum(y[b] * HEAD.W_K[b][p] for b in range(5))
                for p in range(3)
            )
            for y in HEAD.X_m
        ]
        for x in HEAD.X_q
    ]
    return [[float(s) / math.sqrt(3) for s in row] for row in dot]


def plain_rules(causal, offset, padding, documents):
    """Sets of forbidden cells by rule, and the padded positions."""
    padded = set(range(-padding)) if padding < 0 else set(range(6 - padding, 6))
    cells = list(itertools.product(range(4), range(6)))
    return (
        {(i, j) for i, j in cells if causal and j > offset + i},
        {(i, j) for i, j in cells if j in padded},
        {(i, j) for i, j in cells if documents and (j >= documents) != (offset + i >= documents)},
    ), padded


# ---- the mask composer -------------------------------------------------------------------------


def test_the_scores_are_those_of_the_books_example():
    np.testing.assert_allclose(labs.U, plain_scores(), atol=1e-12)
    assert abs(labs.U).max() < 2.5
    with pytest.raises(ValueError, match="read-only"):
        labs.U[0, 0] = 0


@pytest.mark.parametrize("flip", [False, True])
def test_sets_weights_and_words_in_many_states(flip):
    scores = plain_scores()
    values = [control.values for control in labs.MASK_CONTROLS[:4]]
    for n, (causal, offset, padding, documents) in enumerate(itertools.product(*values)):
        row, column = n % 4 + 1, n % 6 + 1
        arrays = compute_mask(causal, offset, padding, documents, row, column, flip)
        rules, padded = plain_rules(causal, offset, padding, documents)
        forbidden = set().union(*rules)
        if flip:
            forbidden ^= {(row - 1, column - 1)}
        for letter, rule in enumerate(rules):
            cells = {tuple(cell) for cell in np.argwhere(arrays.forbids[letter]).tolist()}
            assert cells == rule
        for i in range(4):
            J = [j for j in range(6) if (i, j) not in forbidden]
            valid = offset + i not in padded
            assert np.flatnonzero(arrays.allowed[i]).tolist() == J
            assert arrays.query_valid[i] == valid
            expected = plain_weights(scores[i], J) if J and valid else [0] * 6
            np.testing.assert_allclose(arrays.A[i], expected, atol=1e-12)
            if J:
                words = ("reads" if valid else "zeros"), "reads", "reads"
            else:
                words = ("error" if valid else "zeros"), "zeros", "reads all"
            assert arrays.fates[i] == words


def test_the_fates_are_those_of_the_three_policies():
    """Raise, zero and uniform, as section 10 of the chapter writes them."""
    for state in ({"offset": -2, "padding": -1}, {"causal": False, "padding": 2}, {"padding": -4}):
        arrays = mask(**state)
        some, scores = arrays.allowed.any(axis=1), np.array(plain_scores())
        zero = softmax(scores, arrays.allowed, query_valid=some)
        uniform = softmax(np.where(arrays.allowed, scores, -1e9))
        for i, (first, second, third) in enumerate(arrays.fates):
            row = scores[i], arrays.allowed[i]
            try:
                raises = softmax(*row, query_valid=arrays.query_valid[i]).sum()
            except ValueError:
                raises = "error"
            assert first == {"error": "error", 0: "zeros"}.get(raises, "reads")
            assert second == ("reads" if zero[i].any() else "zeros")
            forbidden = uniform[i][~arrays.allowed[i]].sum()
            assert third == ("reads all" if forbidden > 0 else "reads")


def test_the_picture_flags_the_rows():
    arrays = mask(offset=-2, padding=-1)  # rows 1, 2 real, 3 padding, 4 reads nothing: key 0 is out
    texts = [item for item in labs.draw_mask(arrays).items if isinstance(item, Text)]
    flagged = [item.text for item in texts if item.bold and item.fill == style.GRADIENT]
    assert flagged == ["0", "error", "zeros", "reads all"] * 2 + ["reads all"]
    told = labs.caption_mask(arrays)
    assert "without a key, by row: 1, 2." in told
    assert "Padded queries, by row: 3;" in told


def test_the_picture_shows_each_cell_and_its_reasons():
    arrays = mask(offset=0, padding=-2, documents=3, row=1, column=4)
    drawn = labs.draw_mask(arrays)
    texts = [item.text for item in drawn.items if isinstance(item, Text)]
    for i, j in itertools.product(range(4), range(6)):
        assert arrays.allowed[i, j] or arrays.forbids[:, i, j].any()
    rules, _ = plain_rules(True, 0, -2, 3)
    for letters in ("c", "p", "d", "cp", "cd", "pd"):
        expected = sum(
            "".join(x for x, rule in zip("cpd", rules, strict=True) if cell in rule) == letters
            for cell in itertools.product(range(4), range(6))
        )
        assert texts.count(letters) == expected
    per_row = [str(n) for n in arrays.allowed.sum(axis=1)]  # stands beside the weights
    assert texts.count("1") == arrays.allowed.sum() + per_row.count("1")
    frames = [x for x in drawn.items if isinstance(x, Rect) and x.stroke_width == 3]
    assert len(frames) == 3


def test_the_caption_says_why():
    told = labs.caption_mask(mask(offset=0, padding=2, documents=2, row=1, column=5))
    assert "may not read the key at position 4" in told
    assert "it stands later and it is padding and it belongs to the other document" in told
    told = labs.caption_mask(mask(offset=0, row=1, column=5, flip=True))
    assert "may read the key at position 4 (flipped by hand)" in told
    assert labs.NOT_FLAGGED in told


def test_what_the_chapter_says_about_the_composer():
    assert mask().allowed.sum() == 18
    np.testing.assert_array_equal(mask().allowed, np.tril(np.ones((4, 6), bool), 2))
    np.testing.assert_array_equal(mask(offset=0).allowed, np.tril(np.ones((4, 6), bool)))
    assert mask(offset=0).allowed.sum() == 10
    early = mask(offset=-2)
    assert early.allowed.sum(axis=1).tolist() == [0, 0, 1, 2]
    assert early.fates == (("error", "zeros", "reads all"),) * 2 + (("reads",) * 3,) * 2
    before, after = mask(offset=0), mask(offset=0, padding=-2)
    assert after.fates[:2] == (("zeros", "zeros", "reads all"),) * 2
    assert not after.A[:2].any()
    assert (after.A[3, 2:4] > before.A[3, 2:4]).all()
    np.testing.assert_allclose(after.A[3, 2] / after.A[3, 3], before.A[3, 2] / before.A[3, 3])
    flipped = mask(offset=-2, row=1, column=5, flip=True)
    assert flipped.A[0].tolist() == [0, 0, 0, 0, 1, 0]
    assert flipped.fates[:2] == (("reads",) * 3, ("error", "zeros", "reads all"))
    padded = mask(causal=False, offset=3, padding=2)
    assert padded.fates[1] == ("zeros", "reads", "reads")


# ---- a number in place of a mask ---------------------------------------------------------------


def rounded(x, dtype):
    with np.errstate(over="ignore"):
        return float(np.array(x).astype(dtype))


def plain_fill(scores):
    """Softmax in Python's floats; None = undefined."""
    m = max(scores)
    if m == -math.inf:
        return None
    e = [math.exp(z - m) for z in scores]
    return [x / sum(e) for x in e]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_replacing_and_adding(dtype):
    eps = float(np.finfo(dtype).eps)
    for n, F in itertools.product(range(5), labs.FILLS):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            arrays = compute_fill(n, F, dtype)
        allowed = [j < 4 - n for j in range(4)]
        value = rounded(float(F), dtype)
        replaced = plain_fill([j if may else value for j, may in enumerate(allowed)])
        added = plain_fill(
            [j if may else rounded(j + value, dtype) for j, may in enumerate(allowed)]
        )
        assert arrays.undefined == (replaced is None, added is None)
        for mine, other in ((arrays.replaced, replaced), (arrays.added, added)):
            np.testing.assert_allclose(mine, other or [0] * 4, atol=8 * eps)
        for a in (arrays.plain, arrays.mask, arrays.replaced, arrays.added):
            assert a.dtype == dtype
        J = [j for j in range(4) if allowed[j]]
        expected = plain_weights(range(4), J) if J else [0] * 4
        np.testing.assert_allclose(arrays.mask, expected, atol=8 * eps)
        np.testing.assert_allclose(arrays.plain, plain_weights(range(4), range(4)), atol=8 * eps)


@pytest.mark.parametrize(
    ("n", "F", "dtype", "replaced", "added"),
    [
        (2, "-1e4", "float64", labs.RIGHT_WEIGHTS, labs.RIGHT_WEIGHTS),
        (2, "-1e4", "float32", labs.RIGHT_WEIGHTS, labs.RIGHT_WEIGHTS),
        (2, "-30", "float16", labs.RIGHT_WEIGHTS, labs.RIGHT_WEIGHTS),
        (2, "-30", "float32", "leaks 5e−14", "leaks 6.9e−13"),
        (0, "-1", "float64", labs.RIGHT_WEIGHTS, labs.RIGHT_WEIGHTS),
        (4, "-1e9", "float64", labs.EQUAL, labs.WITHOUT_MASK),
        (4, "-1e9", "float32", labs.EQUAL, labs.EQUAL),
        (4, "-1e9", "float16", labs.UNDEFINED, labs.UNDEFINED),
        (4, "-inf", "float64", labs.UNDEFINED, labs.UNDEFINED),
        (2, "-3", "float64", "leaks 0.026", "leaks 0.27"),
    ],
)
def test_what_the_lab_says(n, F, dtype, replaced, added):
    arrays = compute_fill(n, F, dtype)
    told = labs.caption_fill(arrays)
    assert f": {replaced}. Adding" in told
    assert told.endswith(f": {added}.")
    texts = [item.text for item in labs.draw_fill(arrays).items if isinstance(item, Text)]
    assert replaced in texts
    assert added in texts
    assert (labs.RAISES in texts) == (n == 4)


def test_added_to_a_whole_row_the_number_leaves_it_unmasked_or_uniform():
    for F, dtype in itertools.product(labs.FILLS, ("float16", "float32", "float64")):
        arrays = compute_fill(4, F, dtype)
        if labs.WITHOUT_MASK in labs.caption_fill(arrays):
            np.testing.assert_array_equal(arrays.added, arrays.plain)
        elif not arrays.undefined[1]:
            np.testing.assert_array_equal(arrays.added, [0.25] * 4)


def test_adding_leaks_more_by_the_factor_in_the_chapter():
    arrays = compute_fill(2, "-10", "float64")
    e = [math.exp(x - 1) for x in (0, 1)]
    odds = [a[2:].sum() / a[:2].sum() * sum(e) for a in (arrays.added, arrays.replaced)]
    assert odds[0] / odds[1] == pytest.approx((math.e**2 + math.e**3) / 2)
    assert odds[0] / odds[1] == pytest.approx(13.7, abs=0.05)


def test_where_the_chapter_says_that_the_weights_are_those_of_the_mask():
    for dtype in ("float16", "float32", "float64"):
        arrays = compute_fill(2, "-30", dtype)
        for a in (arrays.replaced, arrays.added):
            np.testing.assert_array_equal(a.round(2), arrays.mask.round(2))
            assert (a == arrays.mask).all() == (dtype == "float16")
            assert float(a[2:].sum()) < 1e-12
        arrays = compute_fill(2, "-1e4", dtype)
        np.testing.assert_array_equal(arrays.replaced, arrays.mask)
        np.testing.assert_array_equal(arrays.added, arrays.mask)


def test_the_caller_keeps_numpys_warnings():
    with np.errstate(over="raise"):
        compute_fill(4, "-1e9", "float16")
        with pytest.raises(FloatingPointError):
            np.exp(np.array(1000.0))
