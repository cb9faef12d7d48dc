r"""Recompute every number printed in the four sources that follows from something.

`line("R0178", ...)` states the exact values of the numbers on line 178 of source R, in their order,
matrices row by row; `_` stands for a number that nothing here decides (a label, a claim about the
world, a choice). The values become `FORMULAS[id]`, with the ids of tests/data/printed_numbers.csv.

A value is what the line's own formula gives from the quantities the sentence refers to, as they are
printed (the stated chain): [M] computes scores from its printed Q. A second, `chain=`, is what the
exact examples give from the start. A repeated display of a result (a table, a second copy, a
slice) is held to the formula of that result; an operand to the place it is copied from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import sympy
from sympy import Rational, exp, log, sqrt

from attnbook import exact
from attnbook import examples as ex


class CanFit(NamedTuple):
    """Bounds on how many directions fit: low many do, more than high do not."""

    low: sympy.Expr
    high: sympy.Expr


class Formula(NamedTuple):
    """The exact value of a printed number, and what it would be without earlier slips."""

    value: sympy.Expr | CanFit
    chain: sympy.Expr | CanFit


FORMULAS: dict[str, Formula] = {}
_ = None


def _flat(values):
    for value in values:
        if isinstance(value, (tuple, list, sympy.MatrixBase)) and not isinstance(value, CanFit):
            yield from _flat(value)
        else:
            yield value


def line(place, *values, chain=None):
    """Register the values of the numbers of one source line, counted from 1."""
    values = list(_flat(values))
    chain = values if chain is None else list(_flat(chain))
    if len(chain) != len(values):
        raise ValueError(f"{place}: {len(values)} values, but {len(chain)} in the exact chain")
    for k, (value, start) in enumerate(zip(values, chain, strict=True), start=1):
        name = f"{place}-{k:02d}"
        if name in FORMULAS:
            raise ValueError(f"{name} has two formulas")
        if value is not None:
            FORMULAS[name] = Formula(_expression(value), _expression(start))


def _expression(value):
    return value if isinstance(value, CanFit) else exact.row([value])[0]


def skip(n):
    """Leave out n numbers."""
    return [_] * n


# ---------------------------------------------- facts that several sources state

t = sympy.Symbol("t", real=True)
u = sympy.symbols("u1:4", real=True)  # one row of scores
a = exact.softmax(u)
ROW_SUM = sum(a)
FORBIDDEN = sympy.limit(exp(t), t, -sympy.oo)  # exp(-infinity)


def product_moments(query=1, key=1):
    """Mean and variance of q_r k_r, and the covariance of two such products, R (5.5)-(5.6).

    The components are zero-mean and independent, with the given variances.
    """
    q1, q2, k1, k2 = sympy.symbols("q1 q2 k1 k2")
    moments = (
        exact.moments([q1, q2], [0, 0], query * sympy.eye(2)),
        exact.moments([k1, k2], [0, 0], key * sympy.eye(2)),
    )
    mean = exact.expectation_from_moments(q1 * k1, *moments)
    variance = exact.variance_from_moments(q1 * k1, *moments)
    covariance = exact.expectation_from_moments(q1 * k1 * q2 * k2, *moments) - mean**2
    return mean, variance, covariance


def score_variance(d_k, query=1, key=1):
    """Var of q k^T: d_k variances of the products, and the covariances of all pairs."""
    _mean, variance, covariance = product_moments(query, key)
    return sympy.expand(d_k * variance + d_k * (d_k - 1) * covariance)


MEAN, VARIANCE, _COVARIANCE = product_moments()
B, T, S, d, d_k, d_v, d_h, H_q, H_kv = sympy.symbols("B T S d d_k d_v d_h H_q H_kv", positive=True)

# ---------------------------------------------- source D

line("D0018", 0, 1, MEAN, VARIANCE)
line("D0022", score_variance(d_k) / d_k)
line("D0026", sympy.limit(exp(t) / (exp(t) + 1), t, -sympy.oo), ROW_SUM)
D = ex.D_TWO_SCORES
D_A = exact.softmax([log(x) for x in D.exp_scores[0]])
line("D0033", D.exp_scores[0][0], log(D.exp_scores[0][1]), D_A, D.V)
line("D0034", D_A[0], D.V[0], D_A[1], D.V[1], D_A * exact.matrix(D.V))
line("D0042", 0, FORBIDDEN)

# ---------------------------------------------- source R

H = ex.R_HEAD
Q, K, V = (exact.project(H.X, W) for W in (H.W_Q, H.W_K, H.W_V))
R = exact.attention(Q, K, V, H.allowed)
c = R.U[0, 0]

line("R0062", 0, _, _)
line("R0066", d_k * MEAN, skip(6))
line("R0072", 1, sqrt(score_variance(d_k) / d_k), -1, 1)
line("R0074", 0)
line("R0082", ROW_SUM)
line("R0086", ROW_SUM)
line("R0088", exp(u[0] - u[0]))  # the largest score minus itself
line("R0090", sympy.diff(a[0], u[0]))
line("R0100", sum(0 * A_j for A_j in a), ROW_SUM)  # every weight dropped; before dropout
line("R0110", 0, FORBIDDEN)
line("R0126", _, sympy.Add())  # no allowed key: the empty sum
line("R0142", exp(u[0] - u[0]))
line("R0146", ROW_SUM, 0, R.A[0, 1])
offset = ex.R_OFFSET
seen = [j for j in offset.key_positions if j <= offset.query_positions[0]]
row_zero = [j for j in offset.key_positions if j <= 0]  # the query taken for row 0
line("R0156", offset.key_positions, offset.query_positions, len(seen), 0, row_zero)
line("R0162", len(H.X), len(H.W_Q[0]))
line("R0164", H.X, H.W_Q, H.W_V, _)
line("R0168", V, 1 / sqrt(Q.cols), R.E, _)
line("R0170", c, c)
line("R0172", R.U[1, 0], R.U[2, 2], _)
line("R0176", R.A[0, :], 1 / R.A[1, 0])
line("R0178", R.A, R.A, _)
line("R0182", R.O, _)
read_X = R.A * exact.matrix(H.X)  # X instead of V
line("R0184", R.A[1, 0], V[0, :], R.A[1, 1], V[1, :], read_X[1, 1] / R.O[1, 1])
line("R0190", R.A[0, 2], skip(3))
line("R0224", sum(H_q * d_h for _W in "QKV").subs(d_h, d / H_q))

two = ex.R_CROSS
cross_A = exact.softmax([[log(x) for x in row] for row in two.exp_scores])
line(
    "R0240",
    *(2, _, two.V[0], _, two.V[1], 3),
    *(0, 0, two.exp_scores[1][0], 0, 0, two.exp_scores[2][1]),
)
line("R0242", cross_A, cross_A * exact.matrix(two.V), _)
line("R0244", cross_A.rows, _)

g = sympy.symbols("g1:4")
line("R0260", sum(exact.softmax_backward(g, a)))
mask_gradient = exact.softmax_backward(sympy.Matrix(3, 3, sympy.symbols("g1:10")), R.A)
line("R0272", R.A[0, 1], mask_gradient[0, 1], sympy.diff(0, u[0]))
line("R0278", R.A[0, 0], mask_gradient[0, 0])
local = ex.R_LOCAL_GRADIENT
back = exact.attention_backward(local.dO, Q, K, V, R.A)
line("R0294", _, _, R.A[1, 1], R.A[1, 0], R.A[1, 0], _, local.dO[1], _, back.dA[1, :2])
line(
    "R0296",
    *(_, _, back.dU[1, 0], back.dU[1, 0], _, _, back.dU[1, 1], _, _, back.dU[1, 2], _),
)
line("R0298", back.dV[1, 0], _, K[0, :], _, K[1, :], _)
line("R0300", _, back.dQ[1, 0], back.dQ[1, :] / back.dQ[1, 0], back.dQ[1, :], _)
line("R0302", _, _, sum(back.dU[1, :]))


def flops(*shape):
    """Two operations per multiply-add of a product (rows x inner) (inner x columns)."""
    return 2 * sympy.prod(shape)


project_queries, project_keys = flops(B * T, d, d), flops(B * S, d, d)
line("R0308", 2, project_queries, 2 * project_keys, flops(B * T, d, d))
line("R0310", B * H_q * flops(T, d_k, S), B * H_q * flops(T, S, d_v), _)
projections = (2 * project_queries + 2 * project_keys).subs(S, T)
interaction = B * H_q * (flops(T, d_k, S) + flops(T, S, d_v))
interaction = interaction.subs({S: T, d_k: d / H_q, d_v: d / H_q})
line("R0312", projections.as_coeff_Mul()[1], interaction.as_coeff_Mul()[1])
memory = ex.R_WEIGHT_MEMORY
size = sympy.prod(memory[1:])
line("R0314", memory.B, memory.H, memory.T, memory.bytes_per_number)
line(
    "R0316",
    *(memory.B, memory.H, memory.T * memory.S, memory.bytes_per_number),
    *(size, Rational(size, 2**30), _),
)
line("R0318", sympy.limit(T * (T - 1) / 2 / T**2, T, sympy.oo), R.A[0, 1], _)
line("R0331", (H_kv / H_q).subs(H_kv, H_q))
line("R0333", 1, (H_kv / H_q).subs(H_kv, 1))
shared = ex.R_SHARING
share = Rational(shared.H_kv, shared.H_q)
line(
    "R0337",
    *(S * H_kv * d_h + S * H_kv * d_h, shared.H_q, shared.H_kv, share, Rational(1, shared.H_q)),
    *(d * H_q * d_h + d * H_q * d_h, d * H_kv * d_h + d * H_kv * d_h),
)

# exercises
shapes = ex.R_EXERCISE_5_1
answer_1 = [shapes.T, shapes.S, shapes.T, shapes.S, shapes.T, shapes.d_v]
variances = ex.R_EXERCISE_5_2
mean, variance, covariance = product_moments(variances.query, variances.key)
raw = score_variance(d_k, variances.query, variances.key)
scaled = raw / d_k
cache = ex.R_EXERCISE_5_7


def cache_bytes(heads):
    """Bytes of keys and values of one layer and one sample, R 5.8."""
    return sum(cache.S * heads * cache.d_h * cache.bytes_per_number for _kind in ("K", "V"))


keep = sympy.Symbol("q", positive=True)
weights = sympy.symbols("A1:4", positive=True)
drop = {0: 1 - keep, 1: keep}
drop_term = exact.variance(lambda m: m * weights[0] / keep, drop)


def dropped_row_sum(m):
    """Sum one row of weights after dropout, R 5.2."""
    return sum(m_j * A_j for m_j, A_j in zip(m, weights, strict=True)) / keep


drop_law = exact.independent(drop, drop, drop)
drop_variance = exact.variance(dropped_row_sum, drop_law)
drop_mean = exact.expectation(dropped_row_sum, drop_law).subs(weights[2], 1 - sum(weights[:2]))

line(
    "R0395",
    *(_, answer_1, _, raw, scaled, _, _, back.dK[0, :], _),
    *(_, cache_bytes(cache.H_kv), Rational(cache_bytes(cache.H_kv), 2**20)),
    *(Rational(cache.H_kv, cache.H_q), _, drop_variance),
)
line("R0409", shapes.T, shapes.d_k, shapes.S, shapes.d_k, shapes.S, shapes.d_v)
line("R0413", answer_1, shapes.S, shapes.T, ROW_SUM)
line("R0417", variances.query, 0)
line("R0421", mean, variances.query, variances.key, variance, covariance, raw, scaled)
free = exact.attention(Q, K, V, ex.R_EXERCISE_5_3.allowed)
without = free.A * exact.matrix([V[0, :].tolist()[0], V[1, :].tolist()[0], [0, 0]])
line("R0425", 0)
line(
    "R0429",
    *(free.U[0, 1], c, free.A[0, 0], free.A[0, 1], free.A[0, :], free.O[0, :], free.O[0, :]),
    *(0, without[0, 1], without[0, :], _),
)
p_1, p_2 = sympy.symbols("p1 p2")  # any weights of sum 1
J = exact.softmax_jacobian([p_1, p_2, 1 - p_1 - p_2])
line("R0433", _, sum(J[0, :]))
line("R0437", _, _, sum(J[0, :]), sympy.expand(J.det()))
moved_K = K.as_mutable()
moved_K[0, 1] = t
loss = exact.attention(Q, moved_K, V, H.allowed).O[1, 0]
slope = sympy.diff(loss, t).subs(t, 0)
central = sympy.diff(loss - loss.subs(t, -t), t).subs(t, 0)  # f(e) - f(-e) per e, as e -> 0
line(
    "R0445",
    *(R.A[1, 0], Q[1, :], back.dU[1, :2], _, back.dK[0, :], skip(4)),
    *(loss, central / slope, slope),
)
far = ex.R_EXERCISE_5_6
query, keys = far.query_positions[0], far.key_positions
allowed = [j for j in keys if j <= query]
corner = [j for j in keys if j <= 0]  # the query taken for row 0
lost = [j for j in allowed if j not in corner]
line("R0449", query, keys[0], keys[-1], len(far.query_positions), len(keys))
line(
    "R0453",
    *(query, allowed[:2], allowed[-1], len(far.query_positions), len(keys)),
    *(corner, lost[0], lost[-1]),
)
line("R0457", cache.H_q, cache.H_kv, cache.d_h, cache.S, cache.bytes_per_number)
line(
    "R0461",
    *(len(("K", "V")), cache.S, cache.H_kv, cache.d_h, cache.bytes_per_number),
    *(cache_bytes(cache.H_kv), Rational(cache_bytes(cache.H_kv), 2**20), cache.H_q),
    *(Rational(cache_bytes(cache.H_q), 2**20), Rational(cache.H_kv, cache.H_q), _),
)
scalar = ex.R_EXERCISE_5_8
scalar_outputs = exact.attention(*([[x] for x in column] for column in scalar[1:])).O
line("R0469", 1, _, 0, _, 1, scalar.keys, scalar.values, scalar.queries, scalar_outputs)
line("R0473", drop_mean, drop_mean)
line("R0477", ROW_SUM, drop_term, drop_variance, drop_mean)
fewer = ex.R_EXERCISE_5_11
line("R0489", fewer.H_q, fewer.H_q, fewer.H_kv, Rational(fewer.H_q, fewer.H_kv), _)
line("R0493", Rational(fewer.H_kv, fewer.H_q))

# ---------------------------------------------- source E

# The inputs of the printed A are lost, so A is given, and what the text says of it copies it.
E_A = exact.matrix(ex.E_TWO_POSITIONS.A_printed)
gaps = ex.E_GAPS
one, many = VARIANCE, score_variance(gaps.d_k)
tamed = many / gaps.d_k
terms = many / one  # independent terms: as many as variances add up

line("E0032", ROW_SUM)
line("E0037", E_A.rows)
line("E0039", E_A)
line("E0043", E_A[0, :], E_A[0, 0], _, E_A[0, 1], _)
line("E0044", E_A[1, :], E_A[1, 0], _, E_A[1, 1], _)
line("E0053", gaps.d_k, gaps.d_k)
line("E0055", gaps.d_k, gaps.d_k)
line("E0057", terms)
line("E0059", skip(4), gaps.d_k, gaps.d_k)
line("E0061", gaps.many_keys, gaps.many_keys, gaps.few_keys, gaps.few_keys, gaps.d_k)
line("E0063", 0, 1, one)
line("E0065", 1, one, gaps.d_k, many, sqrt(many))
line("E0067", gaps.d_k, sqrt(one), gaps.d_k, sqrt(many), len(gaps.near))
line("E0069", gaps.near, exact.softmax(gaps.near), gaps.far, exact.softmax(gaps.far))
line("E0073", gaps.d_k, gaps.d_k, sqrt(gaps.d_k))
line("E0075", many, sqrt(many), tamed, sqrt(tamed))
line("E0077", gaps.d_k)
line("E0079", gaps.d_k, terms, gaps.d_k, gaps.d_k, terms)
line("E0081", tamed, 0)
line("E0085", E_A.rows)
line("E0097", ROW_SUM)
line("E0122", 2)

# ---------------------------------------------- source M: columns, rows, outer products

alg = ex.M_ALGEBRA
A, Bm = exact.matrix(alg.A), exact.matrix(alg.B)
C = A * Bm
outer = A[:, 0] * Bm[0, :]
rank = outer.rank()

line("M0045", alg.factor, alg.scaled, alg.factor * exact.row(alg.scaled), alg.factor)
line("M0051", alg.e_1, alg.e_2, exact.row(alg.e_1) + exact.row(alg.e_2))
line("M0077", _, 1, 0, 0, _, 0, 1, 0, 0)
line("M0219", 1, (A[0, :] * Bm).rows)
line("M0233", 1, 1)
line("M0237", 1, 1, 1, _)
line("M0243", rank, rank)
line("M0245", _, _, rank)
line("M0247", 1)
line("M0273", rank)
line("M0277", skip(6), A.shape, skip(6), Bm.shape)
line("M0281", skip(3), A[:, 0].shape)
line("M0282", skip(2), A[0, :].shape)
line("M0283", skip(2), Bm[:, 0].shape)
line("M0284", skip(3), Bm[0, :].shape)
line("M0294", _, A.cols)
line("M0300", A.cols)
line("M0310", skip(11), C.shape)
line("M0326", skip(11), C.shape)
line("M0356", rank)
line("M0364", A[:, 0].shape, Bm[0, :].shape, outer.shape, C.shape)
line("M0368", rank, rank)

# ---------------------------------------------- source M: directions


def directions_at_most(n, cosine):
    """Bound the number of unit vectors with pairwise cosine <= cosine (Levenshtein, degree 3).

    It also holds for lines, whose angles are measured on both sides.
    """
    bound = n * (1 - cosine) * (2 + (n + 1) * cosine) / (1 - n * cosine**2)
    return sympy.floor(bound)


def lines_at_least():
    """Count lines in 512 dimensions with |cos| <= 1/16, after checking every pair.

    The vector (a, u) has the signs (-1)^(a . x^3 + u . x), x over the field with 512 elements. The
    inner product of two of them is an entry of the Walsh transform of the cube map.
    """
    n = 512
    index = np.arange(n)
    signs = 1.0 - 2.0 * (np.bitwise_count(index[:, None] & index[None, :]) % 2)
    cubes = [_field_product(_field_product(x, x), x) for x in range(n)]
    inner = signs[:, cubes] @ signs
    inner[0, 0] = 0  # of a vector with itself
    if np.abs(inner).max() > n / 16:
        raise ArithmeticError("expected |cos| <= 1/16 between any two lines")
    return n * n


def _field_product(x, y):
    """Multiply in the field with 512 elements, modulo X^9 + X^4 + 1."""
    product = 0
    for bit in range(9):
        if y >> bit & 1:
            product ^= x << bit
    for bit in range(16, 8, -1):
        if product >> bit & 1:
            product ^= 0b1000010001 << (bit - 9)
    return product


cos_85 = sympy.cos(sympy.pi * Rational(85, 180))
fit_100 = CanFit(low=sympy.Integer(100), high=directions_at_most(100, cos_85))
if not Rational(1, 16) < cos_85:
    raise ArithmeticError("the 512-dimensional lines are closer than 85 degrees")
fit_512 = CanFit(low=sympy.Integer(lines_at_least()), high=sympy.oo)

line("M0396", len(alg.direction), alg.direction)
line("M0400", 512, fit_512)
# n dimensions have n orthogonal directions.
line("M0410", 100, 100, 85, fit_100)
line("M0411", 512, 512)
line("M0413", sympy.acos(0) * 180 / sympy.pi)
line("M0549", 512, fit_512)

# ---------------------------------------------- source M: the sentence

m = ex.M_SENTENCE
n, width = len(m.X), len(m.X[0])
Q, K, V = (exact.project(m.X, W) for W in (m.W_Q, m.W_K, m.W_V))  # the exact chain
Q_said, said_scores, said_scaled = (
    exact.matrix(M) for M in (m.Q_printed, m.scores_printed, m.scaled_printed)
)
stated = Q_said * K.T
E = Q * K.T
A = exact.matrix(m.A)
O = A * V
square, same = E.shape, O.shape  # (4, 4) and (4, 6)
half = Q[:, : width // m.H].shape  # (4, 3)
LOVE, PROG = 1, 3

line("M0419", len(m.tokens), width, width)
line("M0421", n, width)
line("M0423", m.X, n, width)
line("M0425", width, n)
line("M0431", len(m.W_Q), len(m.W_Q[0]))
line("M0433", m.W_Q, len(m.W_Q), len(m.W_Q[0]))
line("M0435", len(m.W_K), len(m.W_K[0]))
line("M0437", n, width, len(m.W_Q), len(m.W_Q[0]), Q.shape)
line(
    "M0441",
    _,
    [(m.X[0][j], m.W_Q[j][0]) for j in range(width)],
    sum(m.X[0][j] * m.W_Q[j][0] for j in range(width)),
)
line("M0445", Q, Q.shape)
line("M0449", K, K.shape)
line("M0453", V, V.shape)
line("M0455", Q.shape, Q.cols)
line("M0471", width, width, (exact.matrix(m.X)[0, :] * exact.matrix(m.W_Q)[:, 0]).cols,
     width, width, Q.cols)  # fmt: skip
line("M0473", n)
line("M0475", Q.shape, Q.rows, n, Q.cols, Q.cols)
line("M0483", n)
for place in range(661, 665):
    line(f"M{place:04d}", m.A[place - 661], sum(m.A[place - 661]))
line("M0667", m.A[0][0])
line("M0669", m.A[LOVE][PROG])
line("M0671", m.A[PROG][2], m.A[PROG][LOVE])
line("M0673", m.A[PROG][2])
line("M0674", m.A[PROG][LOVE])
line("M0675", m.A[PROG][0])

line("M0734", K.shape, K.T.shape)
line("M0736", K.T, K.T.shape)
line("M0740", Q.shape, K.T.shape, E.shape, width, width, E.shape)
line("M0742", _, _, width)
line(
    "M0744",
    [(Q_said[LOVE, j], K[PROG, j]) for j in range(width)],
    sum(Q_said[LOVE, j] * K[PROG, j] for j in range(width)),
    chain=[[(Q[LOVE, j], K[PROG, j]) for j in range(width)], E[LOVE, PROG]],
)
line("M0748", stated, stated.shape, chain=[E, E.shape])
for i in range(n):
    line(f"M{752 + i:04d}", stated[i, :], chain=E[i, :])
line("M0758", E.shape)
line("M0762", width, width, sqrt(width))
U = E / sqrt(width)
line(
    "M0764",
    *(width, said_scores / sqrt(width), said_scores.shape),
    chain=[width, U, U.shape],
)
line(
    "M0766",
    512,
    sympy.limit(exp(t) / (exp(t) + 1), t, sympy.oo),
    sympy.limit(1 / (exp(t) + 1), t, sympy.oo),
)
line("M0774", ROW_SUM)
# Row love: exponentials of the printed scaled scores, then their printed sum, then the quotients.
exps = [exp(x) for x in U[LOVE, :]]
row_love = [x / sum(exps) for x in exps]
line(
    "M0778",
    [(x, exp(x)) for x in said_scaled[LOVE, :]],
    sum(m.exp_printed),
    [x / m.exp_sum_printed for x in m.exp_printed],
    chain=[list(zip(U[LOVE, :], exps, strict=True)), sum(exps), row_love],
)
line(
    "M0780",
    *(min(m.softmax_printed), max(m.softmax_printed)),
    chain=[sorted(row_love, key=lambda x: x.evalf())[k] for k in (0, -1)],
)
line("M0782", m.A, A.shape)
for place in range(786, 790):
    line(f"M{place:04d}", m.A[place - 786], sum(m.A[place - 786]))
line("M0792", A.shape, n, n)
line("M0796", A.shape, V.shape, O.shape, n, O.shape)
line("M0806", m.A[LOVE])
line("M0808", V.cols)
for place, j in zip((810, 812, 813, 814), range(n), strict=True):
    line(f"M{place:04d}", m.A[LOVE][j], m.V[j])
line("M0816", O[LOVE, :], O.cols)
line("M0820", O, O.shape)
line("M0822", O.shape)
line("M0826", m.A[LOVE])
for place, j in ((830, 3), (831, 1), (832, 0), (833, 2), (837, 3), (838, 0), (839, 1), (840, 2)):
    line(f"M{place:04d}", 100 * m.A[LOVE][j])
line("M0846", len([A[:, j] * V[j, :] for j in range(n)]))
line("M0852", A[:, PROG], skip(3))
line("M0854", (A[:, PROG] * V[PROG, :]).shape)
for i in range(n):
    line(f"M{856 + i:04d}", _, m.A[i][PROG])
line("M0871", n, width)
line("M0874", n, width, n, width)
line("M0876", len(m.W_Q), len(m.W_Q[0]), Q.shape, len(m.W_Q), width)
line("M0877", len(m.W_K), len(m.W_K[0]), K.shape)
line("M0878", len(m.W_V), len(m.W_V[0]), V.shape)
line("M0881", Q.shape, K.T.shape, E.shape, width)
line("M0883", width, U.shape)
line("M0885", A.shape, sum(m.A[0]))
line("M0888", A.shape, V.shape, O.shape, n)
line("M0893", width, E.shape)
line("M0898", n, O.shape)
# The operations of R (5.3), from Q, K and V on.
line("M0910", len(("Q K^T", "A V")), len(("softmax",)))

# ---------------------------------------------- source M: two heads

line("M0944", E.shape)
line("M0958", m.H, width, m.H, half[1], width, m.H, Rational(1, m.H))
line("M0968", m.H)
line("M0966", Q, Q.shape)
line("M0970", half[1], _, half[1], _)
for i in range(n):
    line(f"M{972 + i:04d}", Q[i, :])
line("M0978", half, half)
line("M0982", _, Q[:, :3], half, _, Q[:, 3:], half)
line("M0984", width, half[1], half[1])
line("M0986", K.shape, _, _, half)
line("M0988", V.shape, _, _, half)
line("M0992", skip(4), half)
line("M0994", skip(3), half[1], _)
line("M0996", _, square, _, half, Rational(half[1], width))
line("M1000", skip(3), half[1], _)
line("M1002", _, half)
line("M1008", _, _, half[1], half[1])
line("M1014", _, m.A_1)
line("M1016", m.A_1[LOVE][PROG], m.A_1[2][PROG], m.A_1[PROG][2])
line("M1020", _, m.A_2)
line("M1022", m.A_2[LOVE][0])
line("M1028", half)
line("M1030", _, half, _, half)
line("M1032", _, half[1], _, half[1])
both = exact.matrix(m.A_1) * V[:, :3], exact.matrix(m.A_2) * V[:, 3:]
concat = sympy.Matrix.hstack(*both)
line("M1039", _, _, concat.cols)
line("M1044", concat.shape)
line("M1046", both[0].shape, both[1].shape, concat.shape, concat.shape)
line("M1048", both[0].cols, both[1].cols)
W_O_shape = concat.cols, width
line("M1052", W_O_shape)
line("M1056", concat.shape, W_O_shape, (concat.rows, W_O_shape[1]))
line("M1060", both[0].cols, _, both[1].cols, _)
line("M1066", width, both[0].cols, both[1].cols)
line("M1073", n, width)
line("M1075", Q.shape)
line("M1076", K.shape, m.H)
line("M1077", V.shape)
line("M1084", half, half)
line("M1088", _, half, _, half)
line("M1093", concat.shape)
line("M1095", W_O_shape)
line("M1097", concat.rows, W_O_shape[1])
line("M1101", m.H, len(m.W_Q), len(m.W_Q[0]))
line("M1103", width, half[1], width, half[1])
line("M1105", len(m.W_Q), len(m.W_Q[0]), m.H, len(m.W_Q), half[1])
line(
    "M1127",
    m.A_love_one_head,
    *(m.A_love_one_head[k] for k in (PROG, 0, 0, PROG)),
)
line("M1131", m.A_love_object_head)
line("M1132", m.A_love_subject_head)
line("M1211", FORBIDDEN, FORBIDDEN)

# ---------------------------------------------- what printed words and expressions mean

alpha = R.A[1, 0]
r, s = free.A[0, 0], free.A[0, 1]
e = sympy.E
READ = {
    "零": 0,
    "一": 1,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "七": 7,
    "半": Rational(1, 2),
    "一半": Rational(1, 2),
    "减半": Rational(1, 2),
    "两半": 2,
    "四分之一": Rational(1, 4),
    "三十二分之一": Rational(1, 32),
    "四倍": 4,
    "几万": 90_000,  # "some tens of thousands": the largest the words allow
    "10^{12}": 10**12,
    "4096^2": 4096**2,
    "₆₄": 64,
    "3/4": Rational(3, 4),
    "1/4": Rational(1, 4),
    r"\frac34": Rational(3, 4),
    r"\frac14": Rational(1, 4),
    r"\frac{1}{2}": Rational(1, 2),
    r"\frac{3}{4}": Rational(3, 4),
    r"\frac{1}{4}": Rational(1, 4),
    r"\frac{3}{2}": Rational(3, 2),
    r"\frac1{\sqrt2}": 1 / sqrt(2),
    r"\frac{1}{\sqrt2}": 1 / sqrt(2),
    "2c": 2 * c,
    "1+e^c": 1 + exp(c),
    r"\frac1{1+e^c}": 1 / (1 + exp(c)),
    r"\frac{1}{1+e^c}": 1 / (1 + exp(c)),
    r"\frac{e^c}{1+e^c}": exp(c) / (1 + exp(c)),
    r"\frac1{2+e^c}": 1 / (2 + exp(c)),
    r"\frac{e^c}{2+e^c}": exp(c) / (2 + exp(c)),
    r"1-\alpha": 1 - alpha,
    r"\alpha(1-\alpha)": alpha * (1 - alpha),
    r"-\alpha(1-\alpha)": -alpha * (1 - alpha),
    r"\frac{\alpha(1-\alpha)}{\sqrt2}": alpha * (1 - alpha) / sqrt(2),
    r"\frac{e^c}{2e^c+1}": exp(c) / (2 * exp(c) + 1),
    r"\frac{1}{2e^c+1}": 1 / (2 * exp(c) + 1),
    "2r": 2 * r,
    "2s": 2 * s,
    "2s+2r": 2 * s + 2 * r,
    r"\frac{1}{[1+\exp(c-\frac{t}{\sqrt2})]}": 1 / (1 + exp(c - t / sqrt(2))),
    r"\frac{e}{1+e}": e / (1 + e),
    "a_j(1-a_j)": a[0] * (1 - a[0]),
    "3d": 3 * d,
    "2BTd^2": 2 * B * T * d**2,
    "4BSd^2": 4 * B * S * d**2,
    "2BHTSd_k": 2 * B * H_q * T * S * d_k,
    "2BHTSd_v": 2 * B * H_q * T * S * d_v,
    "O(BTd^2)": B * T * d**2,
    "O(BT^2d)": B * T**2 * d,
    r"\frac{1}{H_q}": 1 / H_q,
    "2SH_{kv}d_h": 2 * S * H_kv * d_h,
    "2dH_qd_h": 2 * d * H_q * d_h,
    "2dH_{kv}d_h": 2 * d * H_kv * d_h,
    "16d_k": 16 * d_k,
    r"\frac{A_{ij}^2q(1-q)}{q^2}": weights[0] ** 2 * keep * (1 - keep) / keep**2,
    r"(1-q)\sum_j \frac{A_{ij}^2}{q}": (1 - keep) * sum(x**2 for x in weights) / keep,
    r"(1-q)\sum_j\frac{A_{ij}^2}{q}": (1 - keep) * sum(x**2 for x in weights) / keep,
}


def is_right(printed, value):
    """Compare a printed number with its exact value.

    Decimals: within half a unit of the last printed digit. Integers, fractions, expressions and
    words: equal. A number of directions: not more than fit.
    """
    if isinstance(value, CanFit):
        return _fits(READ[printed] if printed in READ else int(printed), value)
    if printed in READ:
        return exact.equal(READ[printed], value)
    if "." in printed:
        return exact.agrees(printed, value)
    return exact.equal(int(printed.replace(",", "")), value)


def _fits(count, bounds):
    if count <= bounds.low:
        return True
    if count > bounds.high:
        return False
    raise ValueError(f"between {bounds.low} and {bounds.high} nobody knows whether {count} fit")
