"""The exact mathematics, checked against the numbered equations of the sources."""

import ast
import decimal as python_decimal
import itertools
import math
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import pytest
import sympy
from sympy import Rational, exp, log, sqrt, symbols

from attnbook import exact
from attnbook.exact import agrees, decimal, decimals, equal

c = 1 / sqrt(2)
alpha = 1 / (1 + exp(c))

# R (5.13): W_Q = W_K = I, so Q = K = X.
X = ((1, 0), (0, 1), (1, 1))
W_V = ((1, 0), (0, 2))
V = ((1, 0), (0, 2), (1, 2))
CAUSAL = [[j <= i for j in range(3)] for i in range(3)]

# An example without any symmetry: T, S, d_k, d_v = 3, 4, 2, 5.
Q_ASYM = ((1, F(1, 2)), (-2, 3), (F(3, 4), -1))
K_ASYM = ((2, -1), (0, 1), (F(1, 3), 1), (-1, F(5, 2)))
V_ASYM = ((1, 2, 0, -1, 3), (0, 1, F(1, 2), 4, -2), (5, -3, 1, 0, 1), (2, 2, -4, 1, F(2, 3)))
ALLOWED_ASYM = [[True, True, False, True], [False, True, True, True], [True, False, False, True]]


def loop_attention(Q, K, V, allowed, scale, query_valid):
    """Algorithm 5.1 of [R] in floats, one number at a time."""
    A = [[0.0] * len(K) for _ in Q]
    O = [[0.0] * len(V[0]) for _ in Q]
    for i, q in enumerate(Q):
        if not query_valid[i]:
            continue
        J = [j for j in range(len(K)) if allowed[i][j]]
        u = {
            j: scale * math.fsum(float(a) * float(b) for a, b in zip(q, K[j], strict=True))
            for j in J
        }
        e = {j: math.exp(u[j] - max(u.values())) for j in J}
        for j in J:
            A[i][j] = e[j] / math.fsum(e.values())
            for r in range(len(V[0])):
                O[i][r] += A[i][j] * float(V[j][r])
    return A, O


def close(M, floats):
    assert M.shape == (len(floats), len(floats[0]))
    for x, y in zip(M, itertools.chain(*floats), strict=True):
        assert abs(float(x) - y) < 1e-12


# --- the worked example of R 5.4 ----------------------------------------------------------------


def test_R_5_14_values_and_scores():
    assert exact.project(X, W_V) == exact.matrix(V)
    assert equal(exact.scores(X, X), [[c, 0, c], [0, c, c], [c, c, 2 * c]])


def test_R_5_16_closed_forms_and_decimals():
    A = exact.attention(X, X, V, CAUSAL).A
    w = exp(c)
    closed = [[1, 0, 0], [1 / (1 + w), w / (1 + w), 0], [1 / (2 + w), 1 / (2 + w), w / (2 + w)]]
    assert equal(A, closed)
    assert exact.matrix(closed) == A  # the very form that R prints, not only the same value
    assert equal(A * sympy.ones(3, 1), sympy.ones(3, 1))
    printed = [["1", "0", "0"], ["0.330238", "0.669762", "0"], ["0.248255", "0.248255", "0.503490"]]
    assert all(map(agrees, itertools.chain(*printed), A))
    assert decimals(A, 6)[2] == ["0.248255", "0.248255", "0.503490"]


def test_R_5_17_output():
    head = exact.attention(X, X, V, CAUSAL)
    w = exp(c)
    assert equal(
        head.O, [[1, 0], [1 / (1 + w), 2 * w / (1 + w)], [(1 + w) / (2 + w), 2 * (1 + w) / (2 + w)]]
    )
    assert decimals(head.O, 6) == [
        ["1.000000", "0.000000"],
        ["0.330238", "1.339523"],
        ["0.751745", "1.503490"],
    ]
    assert equal(head.E, [[1, 0, 1], [0, 1, 1], [1, 1, 2]])
    assert equal(head.U, exact.scores(X, X))  # the scores before masking
    assert head._fields == ("E", "U", "A", "O")


def test_R_exercise_5_3_without_mask_and_with_a_zero_value():
    r, s = exp(c) / (2 * exp(c) + 1), 1 / (2 * exp(c) + 1)
    head = exact.attention(X[:1], X, V)
    assert equal(head.A, [[r, s, r]])
    assert equal(head.O, [[2 * r, 2 * s + 2 * r]])
    assert list(map(agrees, [".401112", ".197776", ".401112"], head.A)) == [True] * 3
    assert list(map(agrees, [".802224", "1.197776"], head.O)) == [True] * 2
    zeroed = exact.attention(X[:1], X, (V[0], V[1], (0, 0)))
    assert equal(zeroed.A, head.A)
    assert equal(zeroed.O, [[r, 2 * s]])
    assert list(map(agrees, [".401112", ".395552"], zeroed.O)) == [True] * 2
    assert equal(head.O - zeroed.O, [[r * V[2][0], r * V[2][1]]])


def test_R_5_23_cross_attention_and_D_two_scores():
    A = exact.softmax([[0, 0], [log(3), 0], [0, log(3)]])
    assert A.tolist() == [[F(1, 2), F(1, 2)], [F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]]
    assert A * exact.matrix([[2, 0], [0, 4]]) == exact.matrix([[1, 2], [F(3, 2), 1], [F(1, 2), 3]])
    padded = exact.softmax([[0, 0], [log(3), 0], [0, log(3)]], [[True, False]] * 3)
    assert padded == exact.matrix([[1, 0]] * 3)


def test_R_5_32_and_5_33_and_exercise_5_5():
    A = exact.attention(X, X, V, CAUSAL).A
    dO = [[0, 0], [1, 0], [0, 0]]  # the loss is o_21
    g = exact.attention_backward(dO, X, X, V, A)
    assert g._fields == ("dQ", "dK", "dV", "dA", "dU")
    d = alpha * (1 - alpha)
    assert equal(g.dA, [[0, 0, 0], [1, 0, 1], [0, 0, 0]])
    assert equal(g.dU, [[0, 0, 0], [d, -d, 0], [0, 0, 0]])
    assert equal(g.dQ, [[0, 0], [d / sqrt(2), -d / sqrt(2)], [0, 0]])
    assert equal(g.dV, [[alpha, 0], [1 - alpha, 0], [0, 0]])
    assert equal(g.dK, [[0, d / sqrt(2)], [0, -d / sqrt(2)], [0, 0]])
    assert agrees("0.221181", g.dU[1, 0])
    assert agrees("0.156399", g.dQ[1, 0])
    assert agrees("-0.156399", g.dQ[1, 1])
    assert agrees(".1563986", g.dK[0, 1])
    t = symbols("t")
    f = 1 / (1 + exp(c - t / sqrt(2)))  # Ex 5.5: only K_12 moves
    assert equal(f.diff(t).subs(t, 0), g.dK[0, 1])


def test_R_5_31_the_three_paths_of_self_attention_add_up():
    # Total derivative of a loss by one entry of X, through Q, K and V at once, by sympy.diff.
    x = symbols("x")
    moved = ((1, 0), (x, 1), (1, 1))
    W_Q, W_K = ((1, 2), (0, 1)), ((0, 1), (1, -1))
    dO = ((1, -2), (0, 3), (2, 1))

    def forward(X):
        return [exact.project(X, W) for W in (W_Q, W_K, W_V)]

    loss = sum(map(lambda a, b: a * b, exact.matrix(dO), exact.attention(*forward(moved)).O))
    Q, K, values = forward(X)
    A = exact.attention(Q, K, values).A
    g = exact.attention_backward(dO, Q, K, values, A)
    dX = sympy.zeros(3, 2)
    for gradient, W in ((g.dQ, W_Q), (g.dK, W_K), (g.dV, W_V)):
        dX += exact.project_backward(gradient, X, W)[0]
    assert equal(loss.diff(x).subs(x, 0), dX[1, 0])


# --- [E]'s rows ---------------------------------------------------------------------------------


def test_E_rows_of_small_and_large_gaps():
    small, large = exact.softmax([0, 1, 2]), exact.softmax([0, 8, 16])
    assert decimals(small, 3) == [["0.090", "0.245", "0.665"]]
    assert list(map(agrees, ["0.0000001", "0.000335", "0.999665"], large)) == [True] * 3
    assert equal(small, [[exp(n) / (1 + exp(1) + exp(2)) for n in range(3)]])


def test_E_two_positions_from_gaps_five_halves_and_four():
    A = exact.softmax(exact.matrix([[3, 8], [3, 11]]) / sqrt(4))
    a, b = 1 / (1 + exp(Rational(5, 2))), 1 / (1 + exp(4))
    assert equal(A, [[a, 1 - a], [b, 1 - b]])
    assert decimals(A, 3) == [["0.076", "0.924"], ["0.018", "0.982"]]
    assert decimals(A, 10)[0][0] == "0.0758581800"
    assert decimals(A, 10)[1][0] == "0.0179862100"


# --- general inputs -----------------------------------------------------------------------------


def test_projections_multiply_on_the_right_and_back():
    X, W, dY = symbols("x:6"), symbols("w:12"), symbols("g:8")
    X, W, dY = sympy.Matrix(2, 3, X), sympy.Matrix(3, 4, W), sympy.Matrix(2, 4, dY)
    loss = sum(dY[i, p] * X[i, r] * W[r, p] for i in range(2) for r in range(3) for p in range(4))
    assert equal(exact.project(X, W)[1, 2], sum(X[1, r] * W[r, 2] for r in range(3)))
    dX, dW = exact.project_backward(dY, X, W)
    assert equal(dX, X.applyfunc(loss.diff))
    assert equal(dW, W.applyfunc(loss.diff))


@pytest.mark.parametrize("scale", [None, 1, F(1, 3)])
def test_attention_equals_a_plain_loop(scale):
    valid = [True, True, True]
    h = exact.attention(Q_ASYM, K_ASYM, V_ASYM, ALLOWED_ASYM, scale=scale)
    factor = 2**-0.5 if scale is None else float(scale)
    A, O = loop_attention(Q_ASYM, K_ASYM, V_ASYM, ALLOWED_ASYM, factor, valid)
    close(h.A, A)
    close(h.O, O)
    assert equal(h.U, h.E * (1 / sqrt(2) if scale is None else Rational(scale)))
    assert h.E[1, 3] == -2 * -1 + 3 * Rational(5, 2)
    assert equal(h.A * sympy.ones(4, 1), sympy.ones(3, 1))
    forbidden = [not flag for line in ALLOWED_ASYM for flag in line]
    assert all(x == 0 for x, f in zip(h.A, forbidden, strict=True) if f)


def test_invalid_queries_are_zero_whatever_they_may_read():
    allowed = [[True] * 4, [True] * 4, [False] * 4]
    valid = [False, True, False]
    h = exact.attention(Q_ASYM, K_ASYM, V_ASYM, allowed, query_valid=valid)
    A, O = loop_attention(Q_ASYM, K_ASYM, V_ASYM, allowed, 2**-0.5, valid)
    close(h.A, A)
    close(h.O, O)
    assert h.A[0, :] == sympy.zeros(1, 4)
    assert h.O[2, :] == sympy.zeros(1, 5)
    dO = [[1] * 5] * 3
    g = exact.attention_backward(dO, Q_ASYM, K_ASYM, V_ASYM, h.A)
    assert g.dQ[0, :] == sympy.zeros(1, 2)
    assert g.dU[2, :] == sympy.zeros(1, 4)
    dA = exact.matrix(dO) * exact.matrix(V_ASYM).T
    assert g.dA == sympy.Matrix([[0] * 4, dA[1, :], [0] * 4])
    assert all(isinstance(M, sympy.ImmutableMatrix) for M in (*h, *g))


def test_a_valid_query_without_a_key_raises_and_names_the_query():
    allowed = [[True] * 4, [False] * 4, [True] * 4]
    with pytest.raises(ValueError, match="query 1, got none"):
        exact.attention(Q_ASYM, K_ASYM, V_ASYM, allowed)
    with pytest.raises(ValueError, match="query 0"):
        exact.softmax([1, 2], [False, False])


def test_softmax_is_shift_invariant_and_defined_for_symbols():
    u = symbols("u:4", real=True)
    t = symbols("t", real=True)
    a = exact.softmax(u)
    assert equal(a, [[exp(x) / sum(map(exp, u)) for x in u]])
    assert equal(a, exact.softmax([x + t for x in u]))
    masked = exact.softmax(u, [True, False, True, True])
    assert masked[1] == 0
    assert equal(masked[3], exp(u[3]) / (exp(u[0]) + exp(u[2]) + exp(u[3])))


def test_numpy_integers_and_masks_are_accepted():
    rows = np.array([[1, 0], [0, 1], [1, 1]])
    causal = np.tril(np.ones((3, 3), dtype=bool))
    assert exact.attention(rows, rows, V, causal) == exact.attention(X, X, V, CAUSAL)
    assert exact.row(np.arange(3)) == exact.row([np.int32(0), np.uint8(1), 2])
    assert exact.softmax([0, 5], [np.True_, np.False_]) == exact.row([1, 0])
    assert rows.tolist() == [list(x) for x in X]


# --- gradients ----------------------------------------------------------------------------------


def test_R_5_24_the_jacobian_is_the_derivative_of_softmax():
    u = symbols("u:3", real=True)
    a = exact.softmax(u)
    J = exact.softmax_jacobian(a)
    assert equal(J, sympy.Matrix(3, 3, lambda j, r: a[j].diff(u[r])))
    assert equal(J * sympy.ones(3, 1), sympy.zeros(3, 1))  # Ex 5.4
    assert equal(J, J.T)


def test_R_5_25_softmax_backward_is_the_jacobian_applied():
    a = exact.softmax([[0, 2, 1], [1, F(1, 2), 0]], [[True] * 3, [True, True, False]])
    dA = exact.matrix([[5, -1, 2], [3, 7, 11]])
    dU = exact.softmax_backward(dA, a)
    for i in range(2):
        assert equal(dU[i, :], dA[i, :] * exact.softmax_jacobian(a[i, :]))
    assert equal(dU * sympy.ones(3, 1), sympy.zeros(2, 1))
    assert dU[1, 2] == 0


@pytest.mark.parametrize("scale", [None, F(2, 5)])
def test_backward_is_the_derivative_of_the_exact_forward(scale):
    T, S, d_k, d_v = 2, 4, 3, 1
    names = {"q": (T, d_k), "k": (S, d_k), "v": (S, d_v)}
    Q, K, V = (
        sympy.Matrix(m, n, symbols(f"{name}:{m * n}", real=True)) for name, (m, n) in names.items()
    )
    allowed = [[True, True, False, True], [False, True, True, False]]
    dO = exact.matrix([[3], [-2]])
    loss = (dO.T * exact.attention(Q, K, V, allowed, scale=scale).O)[0]
    numbers = [F(n, 2) for n in (1, -2, 3, 0, 2, 1, 4, -1, 2, 1, 3, -3, 2, 0, 1, 1, -2, 5)]
    point = dict(zip([*Q, *K], numbers, strict=True)) | dict(zip(V, (1, 3, -1, 2), strict=True))
    point = {x: Rational(n) for x, n in point.items()}
    q, k, v = (M.subs(point) for M in (Q, K, V))
    A = exact.attention(q, k, v, allowed, scale=scale).A
    g = exact.attention_backward(dO, q, k, v, A, scale=scale)
    for gradient, M in ((g.dQ, Q), (g.dK, K), (g.dV, V)):
        assert gradient.shape == M.shape
        assert equal(gradient, M.applyfunc(lambda x: loss.diff(x).subs(point)))
    assert 0 not in [*g.dQ, *g.dV]
    assert equal(g.dA, dO * v.T)


# --- variance of a score, R (5.5)-(5.8) ---------------------------------------------------------

SIGN = {-1: F(1, 2), 1: F(1, 2)}
THREE = {-2: F(1, 8), 0: F(3, 4), 2: F(1, 8)}  # mean 0, variance 1, not a sign


def dot(q, k):
    return sum(a * b for a, b in zip(q, k, strict=True))


def test_expectation_and_variance_of_finite_laws():
    die = {n: F(1, 6) for n in range(1, 7)}
    assert exact.expectation(lambda n: n, die) == Rational(7, 2)
    assert exact.variance(lambda n: n, die) == Rational(35, 12)
    assert exact.expectation(lambda n: n / 3, die) == Rational(7, 6)  # outcomes are exact: no float
    assert exact.independent(SIGN, {5: 1}) == {(-1, 5): Rational(1, 2), (1, 5): Rational(1, 2)}


def test_R_5_6_variance_of_independent_signs_and_of_another_law():
    for law, d_k in ((SIGN, 3), (THREE, 2)):
        rows = exact.independent(*[law] * d_k)
        pairs = exact.independent(rows, rows)
        assert exact.variance(lambda qk: dot(*qk), pairs) == d_k
        assert exact.variance(lambda qk, d_k=d_k: dot(*qk) / sqrt(d_k), pairs) == 1


def test_equal_query_and_key_break_the_scaling():
    rows = exact.independent(*[SIGN] * 5)

    def score(q):
        return dot(q, q) / sqrt(5)

    assert exact.expectation(score, rows) == sqrt(5)
    assert exact.variance(score, rows) == 0


def test_R_exercise_5_9_dropout_row_sum():
    rho = symbols("rho", positive=True)
    A = exact.row([F(1, 2), F(1, 3), F(1, 6)])
    masks = exact.independent(*[{1: rho, 0: 1 - rho}] * 3)

    def row_sum(m):
        return dot(m, A) / rho

    assert equal(exact.expectation(row_sum, masks), 1)
    assert equal(exact.variance(row_sum, masks), (1 - rho) * dot(A, A) / rho)


def test_R_5_5_to_5_8_from_moments():
    n = 3
    q, k = symbols("q1:4"), symbols("k1:4")
    s_q, s_k = symbols("sigma_q sigma_k", positive=True)
    s = dot(q, k)
    zero, identity = [0] * n, sympy.eye(n)
    plain = [exact.moments(q, zero, s_q**2 * identity), exact.moments(k, zero, s_k**2 * identity)]
    assert exact.expectation_from_moments(s, *plain) == 0
    assert equal(exact.variance_from_moments(s, *plain), n * s_q**2 * s_k**2)
    assert equal(exact.variance_from_moments(s / sqrt(n), *plain), s_q**2 * s_k**2)
    assert equal(exact.variance_from_moments(s / sqrt(n), *plain).subs({s_q: 2, s_k: 2}), 16)

    C_q = sympy.Matrix(n, n, lambda i, j: symbols(f"a{min(i, j)}{max(i, j)}"))
    C_k = sympy.Matrix(n, n, lambda i, j: symbols(f"b{min(i, j)}{max(i, j)}"))
    correlated = [exact.moments(q, zero, C_q), exact.moments(k, zero, C_k)]
    assert equal(exact.variance_from_moments(s, *correlated), (C_q * C_k).trace())
    row = sympy.Matrix([q])
    middle = (row * C_k * row.T)[0]  # the middle of (5.8), an expectation over q alone
    assert equal(exact.expectation_from_moments(middle, correlated[0]), (C_q * C_k).trace())

    m_q, m_k = sympy.Matrix([symbols("m1:4")]), sympy.Matrix([symbols("l1:4")])
    shifted = [exact.moments(q, m_q, C_q), exact.moments(k, m_k, C_k)]
    extra = (m_q * C_k * m_q.T + m_k * C_q * m_k.T)[0]
    assert equal(exact.expectation_from_moments(s, *shifted), (m_q * m_k.T)[0])
    assert equal(exact.variance_from_moments(s, *shifted), (C_q * C_k).trace() + extra)


def test_moments_of_higher_degree_and_constants():
    q, k, a = symbols("q k a")
    assert exact.expectation_from_moments(a * q**4 - 2 * q + 7, {q: 3, q**4: 5}) == 5 * a + 1
    one_group = {q: 0, k: 0, q * k: a}  # not independent: the joint moment is given
    assert exact.expectation_from_moments(q * k, one_group) == a
    assert exact.expectation_from_moments(q * k, {q: 2}, {k: 3}) == 6


def test_moment_errors():
    q, k = symbols("q k")
    with pytest.raises(ValueError, match=r"E\[q\*\*2\]"):
        exact.expectation_from_moments(q**2, {q: 0})
    with pytest.raises(ValueError, match="polynomial"):
        exact.expectation_from_moments(exp(q), {q: 0})
    with pytest.raises(ValueError, match="exactly one group"):
        exact.expectation_from_moments(q * k, {q: 0}, {q * k: 1})
    with pytest.raises(ValueError, match="exactly one group"):
        exact.expectation_from_moments(q)
    with pytest.raises(ValueError, match="monomials"):
        exact.expectation_from_moments(q, {2 * q: 0})
    with pytest.raises(TypeError, match="moments"):
        exact.expectation_from_moments(q, [(q, 0)])
    with pytest.raises(TypeError, match="exact number"):
        exact.expectation_from_moments(q, {q: 0.5})
    with pytest.raises(ValueError, match="symmetric"):
        exact.moments([q, k], [0, 0], [[1, 2], [3, 1]])
    with pytest.raises(ValueError, match="different symbols"):
        exact.moments([q, q], [0, 0], [[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="different symbols"):
        exact.moments([q, 2 * k], [0, 0], [[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="2 means"):
        exact.moments([q, k], [0, 0, 0], [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("law", "error", "words"),
    [
        ({0: F(1, 2), 1: F(1, 3)}, ValueError, "sum to 1, got the sum 5/6"),
        ({0: F(3, 2), 1: F(-1, 2)}, ValueError, "negative"),
        ({}, ValueError, "sum to 1"),
        ({0: 0.5, 1: 0.5}, TypeError, "a probability: expected an exact"),
        ({0.5: 1}, TypeError, "an outcome"),
        ({"0": 1}, TypeError, "an outcome"),
        ([(0, 1)], TypeError, "outcome: probability"),
    ],
)
def test_law_errors(law, error, words):
    for call in (lambda: exact.expectation(lambda x: x, law), lambda: exact.independent(law)):
        with pytest.raises(error, match=words):
            call()


def test_expectation_refuses_inexact_values_and_endless_sums():
    with pytest.raises(TypeError, match="a value of f"):
        exact.expectation(lambda x: 0.5, SIGN)
    with pytest.raises(TypeError, match="a value of f"):
        exact.variance(float, SIGN)
    with pytest.raises(ValueError, match="expectation_from_moments"):
        exact.independent(*[SIGN] * 17)


# --- input --------------------------------------------------------------------------------------


def test_rows_and_matrices_of_every_exact_kind():
    M = exact.matrix([[1, F(1, 2)], (sqrt(2), symbols("x"))])
    assert isinstance(M, sympy.ImmutableMatrix)
    assert M.tolist() == [[1, Rational(1, 2)], [sqrt(2), symbols("x")]]
    assert exact.matrix(sympy.Matrix(M)) == M
    assert exact.row((1, 2)).shape == (1, 2)
    assert exact.row(sympy.Matrix([[1, 2, 3]])) == exact.row([1, 2, 3])


BAD_NUMBERS = [
    (True, TypeError, "bool"),
    (np.True_, TypeError, "exact number"),
    (0.5, TypeError, "float; write Fraction"),
    (float("nan"), TypeError, "float"),
    (np.float64(2), TypeError, "float64"),
    (sympy.Float("0.5"), TypeError, "float"),
    (sqrt(2) * sympy.Float("0.5"), TypeError, "float"),
    (python_decimal.Decimal(1), TypeError, "Decimal"),
    (1j, TypeError, "complex"),
    (sympy.nan, ValueError, "finite"),
    (sympy.oo, ValueError, "finite"),
    (sympy.zoo, ValueError, "finite"),
    (sympy.I, ValueError, "real"),
    (None, TypeError, "NoneType"),
    ("1", TypeError, "str"),
    (b"1", TypeError, "bytes"),
    ([1], TypeError, "list"),
    (sympy.true, TypeError, "BooleanTrue"),
    (sympy.MatrixSymbol("M", 1, 1), TypeError, "MatrixSymbol"),
]


@pytest.mark.parametrize(("x", "error", "words"), BAD_NUMBERS)
def test_what_is_not_an_exact_number_is_refused(x, error, words):
    with pytest.raises(error, match=f"row 1, column 0: .*{words}"):
        exact.matrix([[1, 2], [x, 3]])
    with pytest.raises(error, match=f"row 0, column 2: .*{words}"):
        exact.row([1, 2, x])
    with pytest.raises(error):
        decimal(x, 2)
    if x is not None:  # None is the default scale
        with pytest.raises(error):
            exact.scores([[1]], [[1]], scale=x)


def test_shapes_are_refused():
    for bad in ([], [[]], ()):
        with pytest.raises(ValueError, match="at least one row"):
            exact.matrix(bad)
    with pytest.raises(ValueError, match="2 entries in row 0, 1 in row 1"):
        exact.matrix([[1, 2], [3]])
    for bad in ("12", ["12"], 3, {1: 2}, None, [1, 2], {(1, 2)}, np.int64(1)):
        with pytest.raises(TypeError, match="as a list, tuple, array or matrix"):
            exact.matrix(bad)
    with pytest.raises(TypeError):
        exact.matrix(np.array([[0.5]]))
    nest = []
    for _ in range(100_000):
        nest = [nest]
    with pytest.raises(TypeError, match="got list"):
        exact.matrix(nest)
    with pytest.raises(ValueError, match="same width d_k, got Q 1 x 2, K 1 x 3"):
        exact.scores([[1, 2]], [[1, 2, 3]])
    with pytest.raises(ValueError, match="one key and one value per position"):
        exact.attention([[1]], [[1], [2]], [[1]])
    with pytest.raises(ValueError, match="columns in X"):
        exact.project([[1, 2]], [[1, 2]])
    with pytest.raises(ValueError, match="dY n x p"):
        exact.project_backward([[1, 2]], [[1, 2]], [[1], [2]])
    with pytest.raises(ValueError, match="same shape"):
        exact.softmax_backward([1, 2], [1, 2, 3])
    good = {"dO": [[1]], "Q": [[1, 2]], "K": [[1, 2]] * 3, "V": [[1]] * 3, "A": [[1, 0, 0]]}
    exact.attention_backward(**good)
    for name, bad in [("dO", [[1, 2]]), ("Q", [[1]]), ("K", [[1, 2]]), ("V", [[1]]), ("A", [[1]])]:
        with pytest.raises(ValueError, match="dO T x d_v"):
            exact.attention_backward(**good | {name: bad})


def test_masks_are_refused_unless_boolean_and_of_the_right_shape():
    with pytest.raises(ValueError, match=r"allowed as 2 x 3 booleans, got 3 rows of lengths \[2\]"):
        exact.softmax([[1, 2, 3], [4, 5, 6]], [[True, True]] * 3)
    with pytest.raises(ValueError, match="allowed as 2 x 3"):
        exact.softmax([[1, 2, 3], [4, 5, 6]], [True, True, True])
    for wrong, name in ((1, "int"), (0.0, "float"), ("True", "str"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"True or False in allowed, got {name}"):
            exact.softmax([1, 2], [True, wrong])
    with pytest.raises(ValueError, match="query_valid as 1 x 2"):
        exact.softmax([[1], [2]], query_valid=[True])
    with pytest.raises(TypeError, match="allowed"):
        exact.softmax([1, 2], "TT")


def test_strings_are_never_evaluated(tmp_path):
    sentinel = tmp_path / "evaluated"
    text = f"__import__('pathlib').Path({str(sentinel)!r}).touch()"
    good = [[1, 2], [3, 4]]
    sympy.sympify(text.replace("evaluated", "control"))  # the danger is real
    assert (tmp_path / "control").exists()
    for bad in (text, [text], [[text]], [[text, 1], [2, 3]], (text, text), {text: text}):
        for call in (
            exact.matrix,
            exact.row,
            exact.softmax,
            lambda x: exact.softmax([1, 2], x),
            lambda x: exact.softmax([[1], [2]], query_valid=x),
            exact.softmax_jacobian,
            lambda x: exact.softmax_backward(x, good),
            lambda x: exact.project(x, good),
            lambda x: exact.project_backward(good, x, good),
            lambda x: exact.scores(good, x),
            lambda x: exact.scores(good, good, scale=x),
            lambda x: exact.attention(good, good, x),
            lambda x: exact.attention_backward(good, good, good, good, x),
            lambda x: exact.attention_backward(good, good, good, good, good, scale=x),
            lambda x: exact.equal(x, 1),
            lambda x: exact.equal(1, x),
            exact.lowest_terms,
            lambda x: exact.decimal(x, 2),
            lambda x: exact.decimal(1, x),
            lambda x: exact.decimals(x, 2),
            lambda x: exact.agrees(x, 1),
            lambda x: exact.agrees("1", x),
            lambda x: exact.expectation(lambda y: y, x),
            lambda x: exact.expectation(lambda y: x, SIGN),
            lambda x: exact.variance(lambda y: x, SIGN),
            exact.independent,
            lambda x: exact.moments(x, [0], [[1]]),
            lambda x: exact.expectation_from_moments(x, {symbols("q"): 0}),
            lambda x: exact.expectation_from_moments(symbols("q"), x),
        ):
            with pytest.raises((TypeError, ValueError)):
                call(bad)
    assert not sentinel.exists()


# --- proofs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (exp(c) / (2 * exp(c) + exp(2 * c)), 1 / (2 + exp(c))),
        (exp(Rational(5, 2)) / (exp(Rational(3, 2)) + exp(4)), exp(1) / (1 + exp(Rational(5, 2)))),
        (exp(1) * exp(sqrt(2)) + 1, exp(1 + sqrt(2)) + 1),
        (log(6) - log(Rational(3, 4)), 3 * log(2)),
        (log(exp(c) / (1 + exp(c))), c - log(1 + exp(c))),
        ((sympy.cosh(c) + sympy.sinh(c)) ** 2, exp(2 * c)),
        (sqrt(2) * sqrt(3), sqrt(6)),
        ((sqrt(2) + 1) * (sqrt(2) - 1), 1),
        (1 / sqrt(8), sqrt(2) / 4),
        (F(1, 3), Rational(2, 6)),
    ],
)
def test_equal_proves(a, b):
    assert equal(a, b) is True
    assert equal(a, b + F(1, 10**60)) is False


def test_equal_for_symbols_and_matrices():
    x, y = symbols("x y")
    n = symbols("n", integer=True, positive=True)
    assert equal(exp(x + y), exp(x) * exp(y))
    assert equal((x**2 - y**2) / (x - y), x + y)
    assert equal(sympy.tanh(x / 2), (exp(x) - 1) / (exp(x) + 1))
    assert equal(sqrt(n) ** 2, n)
    assert not equal(exp(x + y), exp(x) + exp(y))
    assert not equal(x, y)
    for value in (2, 3, 5):
        assert not equal(n, value)
    assert equal([[x, 1], [y, 2]], sympy.Matrix([[x, 1], [y, 2]]))
    assert not equal([[x, 1]], [[x, 2]])
    with pytest.raises(ValueError, match="same shape, got a 1 x 2, b 2 x 1"):
        equal([[1, 2]], [[1], [2]])


def test_equal_never_guesses():
    nested = sqrt(3 + 2 * sqrt(2))  # equals 1 + sqrt(2), beyond the proof's reach
    with pytest.raises(ValueError, match="cannot decide"):
        equal(nested, 1 + sqrt(2))
    with pytest.raises(ValueError, match="cannot decide"):
        decimal(nested - 1 - sqrt(2), 3)
    x = symbols("x")
    with pytest.raises(ValueError, match="division by zero"):
        equal(1 / ((x + 1) ** 2 - x**2 - 2 * x - 1), 1)
    with pytest.raises(ValueError, match="finite"):
        equal(1 / ((sqrt(2) - 1) * (sqrt(2) + 1) - 1), 1)
    m = symbols("m", negative=True)  # equal, but only for negative m: False would be wrong
    with pytest.raises(ValueError, match="cannot decide"):
        equal(sqrt(m**2 - 2 * m + 1), 1 - m)
    # sqrt(exp(2x)) is not exp(x) where x is not real
    with pytest.raises(ValueError, match="cannot decide"):
        equal(sqrt(exp(2 * x)), exp(x))


def test_lowest_terms_reads_like_a_book():
    d = exact.softmax_jacobian(exact.softmax([0, c]))
    w = exp(c)
    assert exact.lowest_terms(d[0, 0]) == w / (1 + w) ** 2
    assert exact.lowest_terms(d) == exact.matrix(
        [[w / (1 + w) ** 2, -w / (1 + w) ** 2], [-w / (1 + w) ** 2, w / (1 + w) ** 2]]
    )
    assert exact.lowest_terms(exp(2) / (exp(2) + exp(3))) == 1 / (1 + exp(1))
    assert exact.lowest_terms(log(6)) == log(6)
    x, y = symbols("x y")
    assert exact.lowest_terms((exp(2 * x) - 1) / (exp(x) + 1) ** 2) == (exp(x) - 1) / (exp(x) + 1)
    two = exact.softmax_backward([1, 0, 2], exact.softmax([x, y, 0]))  # always in the same order
    denominator = "(exp(x) + exp(y) + 1)**2"
    assert str(exact.lowest_terms(two[0])) == f"(exp(x)*exp(y) - exp(x))/{denominator}"
    assert str(exact.lowest_terms(two[2])) == f"(exp(x) + 2*exp(y))/{denominator}"
    assert str(exact.lowest_terms(exp(c) + exp(-c))).count("cosh") == 0


def test_unrelated_exponents_are_proved_but_not_reduced():
    a = exact.softmax([F(1, 7), F(3, 1000), F(5, 11), F(2, 13)])  # powers of exp(1/1001000)
    assert equal(sum(a), 1)
    assert equal(exact.softmax_jacobian(a) * sympy.ones(4, 1), sympy.zeros(4, 1))
    with pytest.raises(ValueError, match="prove with equal"):
        exact.lowest_terms(a)


# --- printed decimals ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "digits", "text"),
    [
        (F(1, 8), 2, "0.13"),
        (F(-1, 8), 2, "-0.13"),
        (F(1, 2), 0, "1"),
        (F(3, 2), 0, "2"),
        (F(5, 2), 0, "3"),
        (F(-1, 2), 0, "-1"),
        (F(-1, 3), 0, "0"),
        (F(-1, 300), 2, "0.00"),
        (0, 3, "0.000"),
        (7, 0, "7"),
        (F(199, 200), 2, "1.00"),
        (F(-1999, 1000), 2, "-2.00"),
        (F(2, 3), 4, "0.6667"),
        (-123456, 1, "-123456.0"),
        (1 / (1 + exp(4)), 3, "0.018"),
        (-sqrt(2), 5, "-1.41421"),
        (sympy.pi, 30, "3.141592653589793238462643383280"),
        (log(3) - log(2), 6, "0.405465"),
        (10**30 + sqrt(2), 3, f"1{'0' * 29}1.414"),
        # on the two sides of a tie, much nearer than any fixed working precision
        (F(1, 2) + exp(-1000), 0, "1"),
        (F(1, 2) - exp(-1000), 0, "0"),
        (-F(1, 2) + exp(-1000), 0, "0"),
        (F(1, 8) - exp(-900), 2, "0.12"),
        # a tie, a zero that only a proof can show
        ((sqrt(2) + 1) * (sqrt(2) - 1) / 2, 0, "1"),
        (-(sqrt(2) + 1) * (sqrt(2) - 1) / 2, 0, "-1"),
        ((sqrt(2) + 1) * (sqrt(2) - 1) - 1, 2, "0.00"),
        # a tiny number that cancellation hides
        (exp(F(1, 10**200)) - 1, 201, f"0.{'0' * 199}10"),
    ],
)
def test_decimal_rounds_correctly(x, digits, text):
    assert decimal(x, digits) == text


def test_decimal_agrees_with_pythons_decimal_arithmetic():
    with python_decimal.localcontext() as context:
        context.prec = 80
        for n in range(1, 40):
            x = python_decimal.Decimal(n) / 7
            value = x.exp() / (1 + x.exp()) - x.sqrt()
            expected = value.quantize(python_decimal.Decimal(1).scaleb(-n))
            x = Rational(n, 7)
            assert decimal(exp(x) / (1 + exp(x)) - sqrt(x), n) == str(expected)


def test_decimal_errors():
    for digits, error in (
        (-1, ValueError),
        (1001, ValueError),
        (2.0, TypeError),
        (True, TypeError),
    ):
        with pytest.raises(error, match="digits"):
            decimal(1, digits)
    with pytest.raises(ValueError, match="substitute them first"):
        decimal(symbols("x"), 2)


@pytest.mark.parametrize(
    ("printed", "x", "answer"),
    [
        ("0.330238", alpha, True),
        ("0.330237", alpha, False),
        ("0.330239", alpha, False),
        ("0.33024", alpha, True),
        (".401112", exp(c) / (2 * exp(c) + 1), True),
        ("-0.5", F(-1, 2), True),
        ("-0.5", F(1, 2), False),
        ("+0.5", F(1, 2), True),
        ("3,145,728", 2 * 2048 * 6 * 64 * 2, True),
        ("1073741824", 2 * 16 * 4096**2 * 2, True),
        ("3,145,729", 2 * 2048 * 6 * 64 * 2, False),
        ("0.12", F(1, 8), True),  # a tie: both neighbours are half a unit away
        ("0.13", F(1, 8), True),
        ("0.12", F(1, 8) + exp(-1000), False),
        ("0.13", F(1, 8) + exp(-1000), True),
        ("0.13", F(1, 8) - exp(-1000), False),
        ("0.50", F(1, 2) + F(1, 201), True),
        ("0.50", F(1, 2) + F(1, 199), False),
        ("2", sqrt(2) * sqrt(3) / sqrt(6) + 1, True),
        ("1", 0, False),
    ],
)
def test_agrees_within_half_a_unit_of_the_last_digit(printed, x, answer):
    assert agrees(printed, x) is answer


def test_agrees_errors():
    bad = ("", ".", "-", "abc", "1e-3", "1.2.3", "12,34", "1,2345", "0.5 ", "nan", "1.", "½", "١")
    for printed in bad:
        with pytest.raises(ValueError, match="expected a decimal"):
            agrees(printed, 1)
    with pytest.raises(TypeError, match="as a str, got float"):
        agrees(0.5, F(1, 2))
    with pytest.raises(TypeError, match="exact number"):
        agrees("0.5", 0.5)
    with pytest.raises(ValueError, match="substitute"):
        agrees("0.5", symbols("x"))


# --- an independent oracle ----------------------------------------------------------------------


def test_exact_imports_only_sympy_and_the_standard_library():
    tree = ast.parse(Path(exact.__file__).read_text(encoding="utf-8"))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    }
    allowed = {"collections", "fractions", "itertools", "math", "numbers", "re", "sympy", "typing"}
    assert names <= allowed


def test_printed_forms_are_the_same_for_every_supported_sympy():
    head = exact.attention(X, X, V, CAUSAL)
    w = "exp(sqrt(2)/2)"
    assert str(head.A[1, :]) == f"Matrix([[1/(1 + {w}), {w}/(1 + {w}), 0]])"
    third = exact.lowest_terms(head.O[2, :])
    assert str(third) == f"Matrix([[(1 + {w})/(2 + {w}), 2*(1 + {w})/(2 + {w})]])"
    gap = exact.softmax([0, F(5, 2)])
    assert repr(gap) == "Matrix([[1/(1 + exp(5/2)), exp(5/2)/(1 + exp(5/2))]])"
