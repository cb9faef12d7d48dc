"""What the labs of chapter 08 draw is what the plain formulas give, and what the chapter says."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from attnbook import picture
from attnbook.labs import the_backward_pass as labs
from attnbook.labs.the_backward_pass import compute_descent, compute_maps, compute_quotient
from attnbook.picture import Polygon, Text

X = [(1, 0), (0, 1), (1, 1)]  # [R] (5.13): queries and keys
VALUES = {"R": [(1, 0), (0, 2), (1, 2)], "equal": [(1, 2)] * 3}
READS = {
    "none": [(0, 1, 2)] * 3,
    "causal": [(0,), (0, 1), (0, 1, 2)],
    "key": [(0, 1)] * 3,
    "query": [(0, 1, 2), (0, 1, 2), ()],
}

# ---- gradient maps -----------------------------------------------------------------------------


def plain_head(Q, K, V, reads, scale):
    """Outputs of a head by Python's own arithmetic; an invalid row is zero."""
    O = []
    for i, J in enumerate(reads):
        u = {j: scale * sum(q * k for q, k in zip(Q[i], K[j], strict=True)) for j in J}
        e = {j: math.exp(x - max(u.values())) for j, x in u.items()}
        O.append([sum(e[j] * V[j][p] for j in J) / (sum(e.values()) or 1) for p in (0, 1)])
    return O


def plain_loss(name, O):
    if name == "entry":
        return O[1][0]
    if name == "row":
        return sum(O[0])
    if name == "all":
        return sum(map(sum, O))
    return ((O[2][0] - 1) ** 2 + O[2][1] ** 2) / 2


EVERY_MAP = list(itertools.product(labs.LOSSES, labs.MASKS, labs.VALUE_SETS, (0.25, 1.0, 4.0)))


@pytest.mark.parametrize(("loss", "mask", "values", "factor"), EVERY_MAP)
def test_every_gradient_is_what_a_difference_measures(loss, mask, values, factor):
    arrays = compute_maps(loss, mask, values, factor)
    at = [np.array(X, float), np.array(X, float), np.array(VALUES[values], float)]
    scale = factor / math.sqrt(2)
    O = plain_head(*at, READS[mask], scale)
    np.testing.assert_allclose(arrays.O, O, atol=1e-12)
    assert arrays.loss == pytest.approx(plain_loss(loss, O))
    for n, dX in enumerate(arrays.gradients[:3]):
        for place in np.ndindex(3, 2):
            two = []
            for h in (1e-5, -1e-5):
                moved = [x.copy() for x in at]
                moved[n][place] += h
                two.append(plain_loss(loss, plain_head(*moved, READS[mask], scale)))
            assert dX[place] == pytest.approx((two[0] - two[1]) / 2e-5, abs=1e-7)
    for i, J in enumerate(READS[mask]):
        assert [j for j in range(3) if arrays.allowed[i, j]] == list(J)


def test_the_first_picture_is_r_s_example():
    arrays = compute_maps(**labs.gradient_maps().state)
    alpha = 1 / (1 + math.exp(1 / math.sqrt(2)))
    s = alpha * (1 - alpha)
    np.testing.assert_allclose(arrays.gradients.dU[1], [s, -s, 0], atol=1e-12)
    np.testing.assert_allclose(arrays.gradients.dK[0], [0, s / math.sqrt(2)], atol=1e-12)


def cells(arrays):
    """The texts of the gradient maps, which are drawn below y = 264."""
    drawn = labs.draw_maps(arrays).items
    return [t.text for t in drawn if isinstance(t, Text) and 264 < t.y < 360]


def test_a_zero_is_told_from_a_small_number():
    saturated = compute_maps("entry", "causal", "R", 16.0)
    dU = saturated.gradients.dU
    assert 0 < abs(dU).max() < 0.005
    shown = cells(saturated)
    assert shown.count("0.00") + shown.count("−0.00") >= 2
    assert "−0.00" not in shown
    everything = [x for dX in (*saturated.gradients, saturated.dO) for x in dX.ravel()]
    assert len(shown) == len(everything) == 42
    assert shown.count("0") == sum(abs(x) < 1e-12 for x in everything)


def test_what_the_chapter_says_about_the_maps():
    for factor in (0.25, 1.0, 4.0, 16.0):
        g = compute_maps("row", "causal", "R", factor).gradients
        assert not np.any([*g.dU.ravel(), *g.dQ.ravel(), *g.dK.ravel()])
        np.testing.assert_allclose(g.dV, [[1, 1], [0, 0], [0, 0]])
        for mask in labs.MASKS:
            g = compute_maps("all", mask, "equal", factor).gradients
            assert abs(g.dU).max() < 1e-12
            assert abs(g.dV).max() > 0.5
    blind = compute_maps("distance", "query", "R", 1.0)
    assert not any(x.any() for x in blind.gradients)
    np.testing.assert_array_equal(blind.dO[2], [-1, 0])
    sharp = compute_maps("entry", "causal", "R", 16.0).gradients
    assert abs(sharp.dU).max() < 0.005
    assert sharp.dV[1, 0] == pytest.approx(1, abs=1e-4)
    tie = compute_maps("entry", "none", "R", 16.0).gradients
    assert abs(tie.dU).max() == pytest.approx(0.25, abs=1e-3)
    assert abs(tie.dQ).max() == pytest.approx(2.83, abs=0.005)
    assert abs(tie.dK).max() == pytest.approx(2.83, abs=0.005)
    assert abs(compute_maps("entry", "none", "R", 1.0).gradients.dU).max() < 0.25


def test_rows_and_columns_sum_to_zero_as_the_caption_says():
    for state in EVERY_MAP:
        g = compute_maps(*state).gradients
        np.testing.assert_allclose(g.dU.sum(axis=1), 0, atol=1e-12)
        np.testing.assert_allclose(g.dK.sum(axis=0), 0, atol=1e-12)


# ---- the step of a difference ------------------------------------------------------------------


def test_exp_sin_and_cos_are_rounded_correctly():
    from sympy import Float, cos, exp, sin

    rng = np.random.default_rng(0)
    for x in [*rng.uniform(-1, 2, 40).tolist(), 1e-17, 0.0]:
        exact = Float(Fraction(x).numerator, 60) / Fraction(x).denominator
        assert labs._rounded("exp", x) == float(exp(exact).evalf(50))
        if abs(x) <= 1:
            assert labs._rounded("cos", x) == float(cos(exact).evalf(50))
            assert labs._rounded("sin", x) == float(sin(exact).evalf(50))


def f(t):
    return 1 / (1 + np.exp((1 - t) / math.sqrt(2)))


@pytest.mark.parametrize("k", [0, -1, -2, -3])
def test_the_quotients(k):
    h = 10.0**k
    expected = {
        "forward": (f(h) - f(0)) / h,
        "central": (f(h) - f(-h)) / (2 * h),
        "complex": f(1j * h).imag / h,
    }
    for method, quotient in expected.items():
        arrays = compute_quotient(k, method, "float64")
        assert arrays.quotient == pytest.approx(quotient, rel=1e-10)
        assert arrays.exact == pytest.approx(0.1563986, abs=5e-8)
        assert arrays.error == abs(arrays.quotient - arrays.exact)
        at = list(arrays.powers).index(k)
        assert 10 ** arrays.errors[at] == pytest.approx(arrays.error)
        assert 10 ** arrays.truncation[at] == pytest.approx(arrays.error, rel=0.5)


def test_every_quotient_is_as_good_as_truncation_and_rounding_allow():
    for method, dtype in itertools.product(labs.METHODS, ("float64", "float32")):
        arrays = compute_quotient(-2, method, dtype)
        unit = 2.0**-53 if dtype == "float64" else 2.0**-24
        allowed = 2 * 10**arrays.truncation + 4 * 10**arrays.rounding + 4 * unit
        assert (10**arrays.errors <= allowed).all()


@pytest.mark.parametrize(("dtype", "unit"), [("float64", 2.0**-53), ("float32", 2.0**-24)])
def test_the_two_guides(dtype, unit):
    f0 = 1 / (1 + math.exp(1 / math.sqrt(2)))
    second = f0 * (1 - f0) * (1 - 2 * f0) / 2
    third = f0 * (1 - f0) * (1 - 6 * f0 + 6 * f0**2) / math.sqrt(8)
    for method, values, size, order in (
        ("forward", 2, abs(second) / 2, 1),
        ("central", 1, abs(third) / 6, 2),
        ("complex", 0, abs(third) / 6, 2),
    ):
        arrays = compute_quotient(-3, method, dtype)
        h = 10.0**arrays.powers
        np.testing.assert_allclose(10**arrays.rounding, values * unit * f0 / h)
        np.testing.assert_allclose(10**arrays.truncation, size * h**order)


def errors(method, dtype):
    return {k: compute_quotient(k, method, dtype).error for k in labs.EXPONENTS}


def test_what_the_chapter_says_about_the_steps():
    def best(found):
        return min(found, key=found.get)

    central, forward = errors("central", "float64"), errors("forward", "float64")
    assert best(central) == -6
    assert central[-6] == pytest.approx(7e-13, rel=0.05)
    assert best(forward) == -7
    assert forward[-7] == pytest.approx(1.4e-9, rel=0.05)
    assert best(errors("central", "float32")) == -2
    assert best(errors("forward", "float32")) == -3
    for method in ("central", "forward"):
        assert compute_quotient(-17, method, "float64").quotient == 0
        for k in range(-17, -7):
            assert compute_quotient(k, method, "float32").quotient == 0
    assert max(errors("complex", "float64")[k] for k in range(-17, -7)) <= 3e-17
    shared = labs._shared(
        *(labs._digits(x, "float64") for x in compute_quotient(-6, "central", "float64")[5:7])
    )
    assert shared == len("0.") + 12


def test_digits_that_cancel_and_digits_that_are_right():
    assert labs._shared("0.330", "0.331") == 4
    assert labs._shared("0.330", "0.330") == 5
    assert labs._scientific(3.25e-7, "float32") == "3.250000 · 10⁻⁷"
    assert labs._scientific(0.0, "float64") == "0"
    drawn = labs.draw_quotient(compute_quotient(-2, "central", "float64"))
    bold = [t.text for t in drawn.items if isinstance(t, Text) and t.bold and len(t.text) == 1]
    assert "".join(bold) == "0.156398"


def test_no_small_number_passes_for_zero():
    assert labs._told(0.00004, 4) == "less than 0.00005 in size"
    assert labs._told(-0.00006, 4) == "−0.0001"
    sharp = labs.caption_maps(compute_maps("distance", "none", "R", 16.0))
    assert "by a score is less than 0.00005 in size" in sharp
    blind = labs.caption_maps(compute_maps("distance", "query", "R", 1.0))
    assert "by a score is 0." in blind
    done = labs.caption_descent(compute_descent(60, 1.0, "all", "inside"))
    assert done.startswith("The loss is less than 0.00005")
    assert done.count("less than 0.000005 in size") == 2
    tiny = labs.caption_quotient(compute_quotient(-17, "central", "float64"))
    assert "give 4.3·10⁻³⁷, rounding" in tiny
    step = labs.caption_quotient(compute_quotient(-17, "complex", "float64"))
    assert "no two values of $f$ are subtracted" in step
    assert labs.ROUNDING_TOO.split("{")[0] not in step


# ---- descent -----------------------------------------------------------------------------------


def plain_descent(n, rate, moves, target):
    """The same steps, with gradients measured by differences."""
    at = [np.array([[1.0, 1.0]]), np.array(X, float), np.array(VALUES["R"], float)]

    def loss(q, K, V):
        (o,) = plain_head(q, K, V, [(0, 1, 2)], 1 / math.sqrt(2))
        return sum((x - t) ** 2 for x, t in zip(o, target, strict=True)) / 2

    losses = [loss(*at)]
    for _ in range(n):
        slopes = [np.zeros_like(x) for x in at]
        for k in moves:
            for place in np.ndindex(at[k].shape):
                two = []
                for h in (1e-5, -1e-5):
                    moved = [x.copy() for x in at]
                    moved[k][place] += h
                    two.append(loss(*moved))
                slopes[k][place] = (two[0] - two[1]) / 2e-5
        at = [x - rate * d for x, d in zip(at, slopes, strict=True)]
        losses.append(loss(*at))
    return at, losses


@pytest.mark.parametrize(
    ("moves", "which"), [("query", (0,)), ("scores", (0, 1)), ("values", (2,)), ("all", (0, 1, 2))]
)
@pytest.mark.parametrize("target", labs.TARGETS)
def test_descent(moves, which, target):
    (_, K, V), losses = plain_descent(4, 0.3, which, labs.TARGETS[target])
    arrays = compute_descent(4, 0.3, moves, target)
    np.testing.assert_allclose(arrays.losses, losses, atol=1e-8)
    np.testing.assert_allclose(arrays.K, K, atol=1e-8)
    np.testing.assert_allclose(arrays.V, V, atol=1e-8)
    assert len(arrays.path) == 5
    assert arrays.foretold < 0


def test_a_small_step_does_what_was_foretold():
    for moves, target in itertools.product(labs.MOVERS, labs.TARGETS):
        arrays = compute_descent(1, 0.001, moves, target)
        assert arrays.losses[1] - arrays.losses[0] == pytest.approx(arrays.foretold, rel=0.01)
        for n in (1, 10, 60):
            arrays = compute_descent(n, 0.1, moves, target)
            change = arrays.losses[-1] - arrays.losses[-2]
            assert change == pytest.approx(arrays.foretold, rel=0.15)
    assert compute_descent(0, 1.0, "all", "inside").foretold == 0


def test_what_the_chapter_says_about_descent():
    edge = (2 - 2 * 0.4 - 0.4) ** 2 / 5 / 2  # from (0.4, 0.4) to the line 2x + y = 2
    assert edge == pytest.approx(0.064)
    for moves, rate in itertools.product(("query", "scores"), (0.1, 0.3, 1.0, 3.0)):
        arrays = compute_descent(60, rate, moves, "outside")
        assert arrays.losses.min() > edge
        assert arrays.a[2] < compute_descent(0, rate, moves, "outside").a[2]
    for moves in ("values", "all"):
        assert compute_descent(60, 1.0, moves, "outside").losses[-1] < 1e-6
    last = {moves: compute_descent(60, 0.1, moves, "inside").losses[-1] for moves in labs.MOVERS}
    assert max(last, key=last.get) == "query"
    for moves, rate in itertools.product(labs.MOVERS, (0.1, 0.3, 1.0, 3.0)):
        path = compute_descent(60, rate, moves, "inside").losses
        assert path[-1] < path[0] / 3
    wild = compute_descent(40, 3.0, "scores", "outside")
    assert wild.losses[30] == pytest.approx(0.067, abs=5e-4)
    assert wild.losses[40] == pytest.approx(0.113, abs=5e-4)
    assert wild.foretold < 0 < wild.losses[40] - wild.losses[39]


def test_the_sum_of_the_keys_stands_still():
    for moves, rate, n in itertools.product(labs.MOVERS, (0.1, 3.0), (0, 1, 60)):
        for target in labs.TARGETS:
            K = compute_descent(n, rate, moves, target).K
            np.testing.assert_allclose(K.sum(axis=0), [2, 2], atol=1e-9)


def test_the_values_move_towards_the_target_by_their_weights():
    arrays = compute_descent(1, 0.3, "values", "outside")
    pull = arrays.target - arrays.path[0]
    np.testing.assert_allclose(arrays.V - arrays.V_first, 0.3 * np.outer(arrays.a, pull))


def test_the_plane_has_one_scale():
    drawn = labs.draw_descent(compute_descent(0, 1.0, "all", "inside"))
    squares = [p.points for p in drawn.items if isinstance(p, Polygon) and len(p.points) == 3]
    (x1, y1), (x2, y2), (x3, y3) = squares[0]  # the values (1, 0), (0, 2), (1, 2)
    assert (x3 - x2) * 2 == pytest.approx(y1 - y3, rel=0.002)
    assert x1 == pytest.approx(x3)
    assert y2 == pytest.approx(y3)


def test_every_state_of_descent_can_be_drawn():
    for n, rate, moves, target in itertools.product(
        (0, 1, 2, 3, 5, 10, 60), (0.1, 3.0), labs.MOVERS, labs.TARGETS
    ):
        assert picture.check(labs.draw_descent(compute_descent(n, rate, moves, target))) == []
