"""What the labs of chapter 07 draw is what the plain formulas give."""

import itertools
import math

import numpy as np
import pytest

from attnbook import examples, picture
from attnbook.labs import one_head_end_to_end as labs
from attnbook.labs.one_head_end_to_end import compute_reach, compute_step

HEADS = {
    labs.OF_R: (examples.R_HEAD, None),
    labs.TWIN: (examples.HEAD_ALL_WIDTHS_DIFFER, 2),
    labs.REBUILT_1: (examples.E_RECONSTRUCTION_1, None),
    labs.REBUILT_2: (examples.E_RECONSTRUCTION_2, None),
    labs.SENTENCE: (examples.M_SENTENCE, None),
}


def product(A, B):
    return [[sum(a * b for a, b in zip(row, c, strict=True)) for c in zip(*B, strict=True)]
            for row in A]  # fmt: skip


def plain_results(example, mask):
    """Q, K, V, E, U, Z, A, O by (7.1)-(7.4), entry by entry."""
    head, offset = HEADS[example]
    if example == labs.TWIN:
        X_q, X_m = head.X_q, head.X_m
    else:
        X_q = X_m = head.X
    as_floats = [[[float(x) for x in row] for row in M] for M in
                 (X_q, X_m, head.W_Q, head.W_K, head.W_V)]  # fmt: skip
    X_q, X_m, W_Q, W_K, W_V = as_floats
    Q, K, V = product(X_q, W_Q), product(X_m, W_K), product(X_m, W_V)
    E = product(Q, list(zip(*K, strict=True)))
    U = [[e / math.sqrt(len(Q[0])) for e in row] for row in E]
    Z = [
        [u if mask == labs.NO_MASK or j <= i + (offset or 0) else -math.inf
         for j, u in enumerate(row)]
        for i, row in enumerate(U)
    ]  # fmt: skip
    A = [[math.exp(z) / sum(map(math.exp, row)) for z in row] for row in Z]
    return Q, K, V, E, U, Z, A, product(A, V)


@pytest.mark.parametrize("mask", [labs.NO_MASK, labs.CAUSAL])
@pytest.mark.parametrize("example", HEADS)
def test_every_step_of_every_example(example, mask):
    results = plain_results(example, mask)
    for step, result in enumerate(results, 1):
        arrays = compute_step(example, step, 2, mask)
        np.testing.assert_allclose(arrays.result, result, atol=1e-12)
        if arrays.right is not None:
            np.testing.assert_allclose(arrays.left @ arrays.right, result, atol=1e-12)
        else:
            np.testing.assert_allclose(arrays.left, results[step - 2], atol=1e-12)


def texts(drawn):
    return [item.text for item in drawn.items if hasattr(item, "text")]


def test_the_result_is_drawn_with_its_numbers():
    shown = texts(labs.draw_step(compute_step(labs.OF_R, 8, 3, labs.CAUSAL)))
    for number in ("0.33", "1.34", "0.75", "1.50", "0.67"):
        assert number in shown
    masked = texts(labs.draw_step(compute_step(labs.OF_R, 6, 1, labs.CAUSAL)))
    assert masked.count("−∞") == 3
    weights = texts(labs.draw_step(compute_step(labs.TWIN, 7, 1, labs.CAUSAL)))
    assert weights.count("0") == 3 + 2 + 1


def test_a_row_that_is_not_there_is_said_to_be_the_last():
    arrays = compute_step(labs.REBUILT_1, 4, 6, labs.NO_MASK)
    assert arrays.row == 2
    assert labs.FEW.format(wanted=6) in labs.caption_step(arrays)
    assert "no row" not in labs.caption_step(compute_step(labs.REBUILT_1, 4, 2, labs.NO_MASK))


def test_the_caption_works_one_number_out():
    said = labs.caption_step(compute_step(labs.OF_R, 4, 3, labs.CAUSAL))
    assert "(1)(1) + (1)(0) = 1." in said
    said = labs.caption_step(compute_step(labs.TWIN, 6, 2, labs.CAUSAL))
    assert "4 of 6 keys" in said
    said = labs.caption_step(compute_step(labs.TWIN, 5, 2, labs.CAUSAL))
    assert "= 1.732" in said


def test_the_mask_changes_z_a_o_and_not_the_last_row_as_the_chapter_says():
    for example in HEADS:
        for step in range(1, 9):
            with_, without = (
                compute_step(example, step, 1, mask).result for mask in (labs.CAUSAL, labs.NO_MASK)
            )
            same = np.array_equal(with_, without)
            assert same == (step < 6), (example, step)
            np.testing.assert_array_equal(with_[-1], without[-1])


@pytest.mark.parametrize("example", HEADS)
def test_numbers_keep_their_room_from_step_to_step(example):
    wide, high = labs.CELLS[example]
    assert 54 <= wide <= 82
    assert 30 <= high <= 42
    for step, row in itertools.product(range(1, 9), (1, 6)):
        arrays = compute_step(example, step, row, labs.CAUSAL)
        grounds = [item for item in labs.draw_step(arrays).items
                   if hasattr(item, "width") and item.y > 60]  # fmt: skip
        shown = arrays.left.shape[1] + arrays.result.shape[1]
        assert len(grounds) == shown  # the marked row on the left and in the result
        assert len({(round(item.width, 6), round(item.height, 6)) for item in grounds}) == 1


def test_every_step_of_every_example_is_drawn_without_a_fault():
    for example, step in itertools.product(HEADS, range(1, 9)):
        for row, mask in ((1, labs.CAUSAL), (3, labs.NO_MASK), (6, labs.CAUSAL)):
            drawn = labs.draw_step(compute_step(example, step, row, mask))
            assert picture.check(drawn) == [], (example, step, row)


# ---- a changed token ---------------------------------------------------------------------------


def plain_layer(h, mask):
    W_Q, W_K, W_V = (
        np.array(M, float)
        for M in (examples.M_SENTENCE.W_Q, examples.M_SENTENCE.W_K, examples.M_SENTENCE.W_V)
    )
    out = []
    for i in range(4):
        u = [h[i] @ W_Q @ (h[j] @ W_K) / math.sqrt(6) for j in range(4)]
        J = {
            labs.NO_MASK: range(4),
            labs.CAUSAL: range(i + 1),
            labs.AFTER: range(i + 1),
            labs.WINDOW: range(max(0, i - 1), i + 1),
        }[mask]
        over = range(4) if mask == labs.AFTER else J
        z = sum(math.exp(u[j]) for j in over)
        out.append(h[i] + sum(math.exp(u[j]) / z * (h[j] @ W_V) for j in J))
    return np.array(out)


@pytest.mark.parametrize("mask", [labs.NO_MASK, labs.CAUSAL, labs.AFTER, labs.WINDOW])
@pytest.mark.parametrize(("token", "by"), [("I", 0.5), ("GPU", -1.0), ("prog", 0.25)])
def test_the_sizes_of_the_changes(token, by, mask):
    X = np.array(examples.M_SENTENCE.X, float)
    other = X.copy()
    other[labs.SHORT.index(token)] += by
    arrays = compute_reach(token, by, mask)
    for level in range(4):
        size = np.linalg.norm(other - X, axis=1) / (abs(by) * math.sqrt(6))
        np.testing.assert_allclose(arrays.change[level], size, atol=1e-12)
        X, other = plain_layer(X, mask), plain_layer(other, mask)


def moved(token, by, mask):
    return [tuple(np.flatnonzero(row)) for row in compute_reach(token, by, mask).change]


@pytest.mark.parametrize("by", [-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])
def test_what_moves_is_what_the_chapter_says(by):
    for place, token in enumerate(labs.SHORT):
        later = tuple(range(place, 4))
        assert moved(token, by, labs.CAUSAL) == [(place,)] + [later] * 3
        assert moved(token, by, labs.NO_MASK) == [(place,)] + [(0, 1, 2, 3)] * 3
        assert moved(token, by, labs.AFTER) == [(place,)] + [(0, 1, 2, 3)] * 3
        window = [tuple(range(place, min(place + n, 3) + 1)) for n in range(4)]
        assert moved(token, by, labs.WINDOW) == window


def test_the_leak_of_the_example_in_the_chapter():
    change = compute_reach("prog", 0.5, labs.AFTER).change
    assert 0.015 < change[1, :3].min() < change[1, :3].max() < 0.065
    assert (change[2, :3] > change[1, :3]).all()
    assert (change[3, :3] > change[2, :3]).all()


def test_nothing_moves_without_a_change():
    arrays = compute_reach("love", 0.0, labs.NO_MASK)
    assert not arrays.change.any()
    assert "layer 3: nothing" in labs.caption_reach(arrays)
    assert "largest" not in labs.caption_reach(arrays)
    moved_one = labs.caption_reach(compute_reach("love", -0.25, labs.NO_MASK))
    assert moved_one.startswith("−0.25 was added to each of the six features of love.")
    assert moved_one.endswith("as large as the change of the input.")


def test_bold_lines_leave_the_boxes_that_moved():
    arrays = compute_reach("GPU", 0.5, labs.CAUSAL)
    lines = [item for item in labs.draw_reach(arrays).items if hasattr(item, "x1")]
    bold = [line for line in lines if line.stroke_width == 3.5]
    assert len(lines) == 3 * 10
    assert len(bold) == 2 + 2 * 3  # from GPU at the input, then from GPU and from prog
    dashed = labs.draw_reach(compute_reach("GPU", 0.5, labs.AFTER)).items
    assert sum(bool(getattr(item, "dash", ())) for item in dashed) == 3 * 6
