"""The labs of chapter 01: what they compute and what they draw, against plain computation."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from attnbook import examples, style
from attnbook.diagrams import Panel, number
from attnbook.labs import four_views_of_a_product as labs
from attnbook.picture import Circle, Polygon, Rect, Text, check

A = [[2, -1, 3], [0, 1, 4]]
B = [[1, 2], [5, 0], [-2, 1]]
C = [[-9, 7], [-3, 4]]  # by hand


def texts(picture):
    return [item.text for item in picture.items if isinstance(item, Text)]


def polygons(picture, fill):
    return [np.array(p.points) for p in picture.items if isinstance(p, Polygon) and p.fill == fill]


def values(panel: Panel, points):
    """Places of the picture back to values."""
    (low, high), (bottom, top) = panel.x_limits, panel.y_limits
    x, y = np.array(points).T
    return np.stack(
        [
            low + (x - panel.left) / panel.width * (high - low),
            top - (y - panel.top) / panel.height * (top - bottom),
        ],
        axis=-1,
    )


PLANE = Panel(24, 24, 452, 452, (-4.3, 4.3), (-4.3, 4.3))

# ---- reach -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(0, 60), (90, 0), (15, 30), (345, 105)])
def test_the_needed_coefficients_reach_the_target(first, second):
    arrays = labs.compute_reach(first, second, 1.5, -2.0)
    v1, v2 = ([np.cos(np.pi * a / 180), np.sin(np.pi * a / 180)] for a in (first, second))
    assert arrays.point == pytest.approx([1.5 * p - 2 * q for p, q in zip(v1, v2, strict=True)])
    x1, x2 = arrays.needed
    assert [x1 * p + x2 * q for p, q in zip(v1, v2, strict=True)] == pytest.approx([2, 1])
    assert arrays.independent


def test_parallel_vectors_reach_one_line_and_never_the_target():
    for first, second in itertools.product(labs.ANGLES, labs.ANGLES):
        arrays = labs.compute_reach(first, second, 1.0, 0.5)
        parallel = first % 180 == second % 180
        assert (arrays.needed is None) == parallel
        assert arrays.independent != parallel
        assert (np.linalg.matrix_rank(arrays.V, tol=1e-9) == 1) == parallel
        if parallel:
            assert np.linalg.matrix_rank(np.column_stack([arrays.V[:, 0], labs.GOAL])) == 2


def test_the_sum_is_drawn_where_it_is():
    for state in ({}, {"second": 180, "x2": -2.0}, {"first": 75, "second": 255, "x1": 0.0}):
        lab = labs.reach_of_two(**state)
        arrays = labs.compute_reach(**lab.state)
        dots = [p for p in lab.picture.items if isinstance(p, Circle) and p.fill == style.OUTPUT]
        assert values(PLANE, [dots[-1][:2]])[0] == pytest.approx(arrays.point, abs=1e-9)
        x, y = (number(c) for c in arrays.point)
        assert f"= ({x}, {y})" in texts(lab.picture)


# ---- one map -----------------------------------------------------------------------------------


def test_the_morph_goes_from_the_identity_to_the_map():
    for t in (0.0, 0.3, 1.0):
        arrays = labs.compute_grid(2.0, -1.5, 0.5, 1.0, t)
        expected = [[1 + t, -1.5 * t], [0.5 * t, 1]]
        assert arrays.A_t == pytest.approx(np.array(expected))
        assert arrays.det == pytest.approx(np.linalg.det(expected), abs=1e-9)


def test_the_unit_square_is_drawn_where_the_map_takes_it():
    for state in ({}, {"a11": -2.0, "a12": 2.0, "a21": 2.0, "a22": 2.0}, {"a11": 1.0, "t": 0.4}):
        lab = labs.grid_transform(**state)
        A_t = labs.compute_grid(**lab.state).A_t
        tint = style.shade((style.CARD, style.SCORE), 0.35)
        (corners,) = polygons(lab.picture, tint)
        e1, e2 = A_t[:, 0], A_t[:, 1]
        assert values(PLANE, corners) == pytest.approx(np.array([0 * e1, e1, e1 + e2, e2]))


def test_the_area_of_the_drawn_square_is_the_determinant():
    lab = labs.grid_transform()
    for a, b, c, d in itertools.product((-2.0, -0.5, 1.0), repeat=4):
        lab.set(a11=a, a12=b, a21=c, a22=d, t=1.0)
        exact = Fraction(a) * Fraction(d) - Fraction(b) * Fraction(c)
        x, y = values(
            PLANE, polygons(lab.picture, style.shade((style.CARD, style.SCORE), 0.35))[0]
        ).T
        shoelace = (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2
        assert shoelace == pytest.approx(float(exact), abs=1e-9)
        assert f"determinant {number(float(exact))}" in texts(lab.picture)
        assert any("turned over" in text for text in texts(lab.picture)) == (exact < 0)
        assert any("flat" in text for text in texts(lab.picture)) == (exact == 0)


def test_every_setting_of_the_grid_can_be_drawn():
    lab, rng = labs.grid_transform(), np.random.default_rng(1)
    flat = [{"a11": a, "a12": a, "a21": a, "a22": a, "t": 1.0} for a in labs.HALVES]
    some = [
        {name: c.values[rng.integers(len(c.values))] for name, c in lab.controls.items()}
        for _ in range(12)
    ]
    for state in [*flat, *some]:
        lab.set(**state)
        assert check(lab.picture) == [], state


def test_no_label_covers_an_arrow():
    """Of all maps of the lab, those with parallel arrows included."""
    maps = [np.reshape(entries, (2, 2)) for entries in itertools.product(labs.HALVES, repeat=4)]
    for A_t in [np.array([[1.0, 2.0], [0.5, 1.0]]), *maps[::37]]:
        tips = zip(A_t.T, ("$f(e_1)$", "$f(e_2)$"), (labs.FIRST, labs.SECOND), strict=True)
        cards = [item for item in labs._tips(PLANE, tuple(tips)) if isinstance(item, Rect)]
        assert len(cards) == 2
        for tip in A_t.T:
            for part in np.linspace(0, 1, 60):
                x, y = PLANE.x(part * tip[0]), PLANE.y(part * tip[1])
                assert not any(
                    r.x < x < r.x + r.width and r.y < y < r.y + r.height for r in cards
                ), A_t


def test_every_setting_of_the_reach_can_be_drawn():
    lab, rng = labs.reach_of_two(), np.random.default_rng(2)
    for first, turn in itertools.product(range(0, 360, 45), (0, 15, 90, 180)):
        x1, x2 = rng.choice(labs.HALVES, size=2).tolist()
        lab.set(first=first, second=(first + turn) % 360, x1=x1, x2=x2)
        assert check(lab.picture) == [], lab.state


# ---- two maps ----------------------------------------------------------------------------------


def test_both_orders_of_every_two_maps():
    for a, b in itertools.product(labs.MAPS, labs.MAPS):
        arrays = labs.compute_order(a, b, 2)
        for v in ([1.0, 0.0], [0.0, 1.0], [0.7, -2.0]):
            assert arrays.AB @ v == pytest.approx(labs.MAPS[a] @ (labs.MAPS[b] @ v))
            assert arrays.BA @ v == pytest.approx(labs.MAPS[b] @ (labs.MAPS[a] @ v))
        lab = labs.order_of_maps(a=a, b=b)
        assert a < b or check(lab.picture) == [], lab.state
        assert ("=" in texts(lab.picture)) == arrays.commute
        assert ("≠" in texts(lab.picture)) != arrays.commute


def test_the_stages_show_nothing_then_one_map_then_both():
    stages = [labs.compute_order("turn", "stretch", stage).shown for stage in (0, 1, 2)]
    turn, stretch = np.array([[0, -1], [1, 0]]), np.array([[2, 0], [0, 1]])
    expected = [(np.eye(2),) * 2, (stretch, turn), ([[0, -1], [2, 0]], [[0, -2], [1, 0]])]
    for shown, wanted in zip(stages, expected, strict=True):
        assert all(np.array_equal(s, w) for s, w in zip(shown, wanted, strict=True))


def test_before_the_end_the_sign_is_said_to_be_about_the_end():
    for a, stage in itertools.product(("turn", "double"), (0, 1, 2)):
        lab = labs.order_of_maps(a=a, stage=stage)
        assert ("at the end:" in texts(lab.picture)) == (stage < 2)
        assert check(lab.picture) == [], lab.state


def test_which_maps_commute():
    pairs = {
        frozenset(p)
        for p in itertools.combinations(labs.MAPS, 2)
        if labs.compute_order(*p, 2).commute
    }
    with_double = {frozenset({"double", other}) for other in labs.MAPS if other != "double"}
    assert pairs == with_double | {
        frozenset({"turn", "eighth turn"}),
        frozenset({"stretch", "mirror"}),
    }


# ---- four views --------------------------------------------------------------------------------


def test_the_lab_uses_the_example_of_the_chapter():
    assert tuple(map(tuple, A)) == examples.M_ALGEBRA.A
    assert tuple(map(tuple, B)) == examples.M_ALGEBRA.B


@pytest.mark.parametrize("view", labs.VIEWS)
def test_all_views_add_the_same_twelve_products(view):
    arrays = labs.compute_views(view, 12)
    assert sorted(arrays.order) == sorted(itertools.product(range(2), range(3), range(2)))
    assert arrays.C.tolist() == C
    assert labs.compute_views(view, 0).C.tolist() == [[0, 0], [0, 0]]


def test_each_view_finishes_its_parts_one_after_the_other():
    after = {view: [labs.compute_views(view, n).C for n in range(13)] for view in labs.VIEWS}
    for n, (i, k) in enumerate(itertools.product(range(2), range(2))):
        done = np.zeros((2, 2))
        done.flat[: n + 1] = np.array(C).flat[: n + 1]
        assert after["entries"][3 * n + 3].tolist() == done.tolist(), (i, k)
    assert after["columns"][6].tolist() == [[-9, 0], [-3, 0]]
    assert after["columns"][4].tolist() == [[1 * 2 + 5 * -1, 0], [1 * 0 + 5 * 1, 0]]
    assert after["rows"][6].tolist() == [[-9, 7], [0, 0]]
    assert after["rows"][4].tolist() == [[2 * 1 - 1 * 5, 2 * 2 - 1 * 0], [0, 0]]
    assert after["layers"][4].tolist() == np.outer([2, 0], [1, 2]).tolist()
    assert after["layers"][8].tolist() == [[2 - 5, 4 - 0], [0 + 5, 0 + 0]]


def test_what_the_chapter_says_about_final_entries():
    """After four products the entry view has one; the layer view has its first after nine."""

    def final(view, done):
        met = [(i, k) for i, _, k in labs.compute_views(view, done).order[:done]]
        return [entry for entry in sorted(set(met)) if met.count(entry) == 3]

    assert final("entries", 4) == [(0, 0)]
    assert [final(view, 4) for view in ("columns", "rows", "layers")] == [[], [], []]
    assert final("layers", 8) == []
    assert final("layers", 9) == [(0, 0)]


@pytest.mark.parametrize("view", labs.VIEWS)
def test_every_step_is_drawn_with_its_numbers(view):
    lab = labs.four_views(view=view)
    for done in range(13):
        lab.set(done=done)
        assert check(lab.picture) == [], lab.state
        arrays = labs.compute_views(view, done)
        shown = [
            number(x, 0) for x, seen in zip(arrays.C.flat, arrays.touched.flat, strict=True) if seen
        ]
        assert texts(lab.picture).count("·") >= 4 - len(shown)
        assert set(shown) <= set(texts(lab.picture))
        strong = [
            item
            for item in lab.picture.items
            if isinstance(item, Rect) and item.fill in (labs.FIRST, labs.SECOND, style.OUTPUT)
        ]
        assert len(strong) == (5 if done else 0)  # in A, B, C and twice in the term below
        if done:
            i, j, k = arrays.order[done - 1]
            assert f"= {A[i][j]} · {B[j][k]} = {A[i][j] * B[j][k]},".replace("-", "−") in (
                " ".join(texts(lab.picture))
            )


# ---- rank one ----------------------------------------------------------------------------------


def test_the_image_is_the_sum_of_all_terms():
    for split in labs.SPLITS:
        arrays = labs.compute_rank(16, split)
        assert np.allclose(arrays.total, labs.magnifier())
        for n in range(1, 17):
            term = labs.compute_rank(n, split).term
            assert np.linalg.svd(term, compute_uv=False)[1] < 1e-12  # at most rank one


@pytest.mark.parametrize("n", [0, 1, 5, 12, 16])
def test_the_error_is_what_is_missing(n):
    C = labs.magnifier()
    rows = labs.compute_rank(n, "rows")
    below = np.vstack([C[:n], np.zeros((16 - n, 16))])
    assert np.array_equal(rows.total, below)
    assert rows.errors["rows"][n] == pytest.approx(np.sqrt((C[n:] ** 2).sum() / (C**2).sum()))
    sigma = np.linalg.svd(C, compute_uv=False)
    best = labs.compute_rank(n, "singular vectors")
    left = np.sqrt((sigma[n:] ** 2).sum() / (sigma**2).sum())
    assert best.errors["singular vectors"][n] == pytest.approx(left, abs=1e-12)
    assert np.linalg.norm(C - best.total) / np.linalg.norm(C) == pytest.approx(left, abs=1e-12)


def test_singular_values_are_apart_so_that_the_pictures_are_the_same_everywhere():
    sigma = np.linalg.svd(labs.magnifier(), compute_uv=False)
    assert (sigma[:10] - sigma[1:11] > 0.02).all()


def test_every_number_of_terms_can_be_drawn():
    lab = labs.rank_one_sum()
    for split in labs.SPLITS:
        for n in range(17):
            lab.set(n=n, split=split)
            assert n % 8 or check(lab.picture) == []  # the layout is the same between
            error = 100 * labs.compute_rank(n, split).errors[split][n]
            assert f"an error of {number(error, 1)} %" in lab.caption_text


def test_the_terms_are_counted_in_words():
    expected = ("no term yet", "0 terms"), ("term 1", "1 term"), ("term 2", "2 terms")
    for n, (term, total) in enumerate(expected):
        lab = labs.rank_one_sum(n=n)
        assert f"{term}, the sum of {total} and" in lab.picture.alt
        assert f"sum of {total}" in texts(lab.picture)
        assert f". {total}: an error of" in lab.caption_text


def test_what_the_chapter_says_about_the_image():
    """Below 5 % with seven terms; the handle's corner: a fifth, then nearly two thirds; rank 13."""
    errors = labs.compute_rank(3, "singular vectors").errors["singular vectors"]
    assert errors[3] == pytest.approx(0.25, abs=0.005)
    assert errors[6] > 0.05 > errors[7]
    y, x = np.indices((16, 16))
    arrays, corner = labs.compute_rank(3, "singular vectors"), x + y > 19
    share = [
        (image[corner] ** 2).sum() / (image**2).sum()
        for image in (arrays.C, arrays.C - arrays.total)
    ]
    assert share == pytest.approx([1 / 5, 2 / 3], abs=0.015)
    assert share[1] < 2 / 3
    hundredths = sp.Matrix((100 * labs.magnifier()).round().astype(int).tolist())
    assert hundredths.rank() == 13
