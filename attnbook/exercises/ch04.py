"""The exercises of chapter 04, scores and scaling.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, log, sqrt

from attnbook import exact, examples
from attnbook.exact import independent, variance
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program


def product(pair):
    """Multiply a component of a query with one of a key."""
    return pair[0] * pair[1]


# ---------------------------------------------- 4.1: d_k = 128, S = 20

d_k, S = 128, 20
two_sizes = {
    "products": Number(
        d_k,
        [
            Wrong("number of keys", S, "that is the number of keys: scores in one softmax."),
            Wrong(
                "both sizes", d_k * S, "that is the number of products in a whole row of scores."
            ),
            Wrong("terms and sums", 2 * d_k - 1, "that counts the additions too."),
        ],
    ),
    "scores": Number(
        S,
        [
            Wrong("width", d_k, "that is the width: products in one score."),
            Wrong("square", S**2, "one softmax gets the scores of one query, not of all of them."),
            Wrong("both sizes", d_k * S, "that counts products, not scores."),
        ],
    ),
    "divisor": Number(
        sqrt(d_k),
        [
            Wrong("width", d_k, "that is the width itself, and the root is missing."),
            Wrong(
                "factor", 1 / sqrt(d_k), "that is the factor: dividing by it multiplies by $√d_k$."
            ),
            Wrong("root of keys", sqrt(S), "that is the root of the number of keys $S$."),
            Wrong("keys", S, "that is the number of keys, which plays no part here."),
        ],
    ),
}

# ---------------------------------------------- 4.2: R exercise 5.2 at d_k = 50

d_k = 50
of_q, of_k = examples.R_EXERCISE_5_2.query, examples.R_EXERCISE_5_2.key
law_q, law_k = ({s * sqrt(v): Rational(1, 2) for s in (-1, 1)} for v in (of_q, of_k))
one_product = variance(product, independent(law_q, law_k))
raw = d_k * one_product
variances_of_4 = {
    "raw": Number(
        raw,
        [
            Wrong("one product", one_product, "that is the variance of one product of the sum."),
            Wrong("one side", d_k * of_q, "only one of the two variances was counted."),
            Wrong("added", d_k * (of_q + of_k), "variances of factors multiply, they do not add."),
            Wrong("unit variances", d_k, "that holds for components of variance 1."),
            Wrong("deviation", sqrt(raw), "that is the standard deviation, not the variance."),
            Wrong(
                "terms squared",
                d_k**2 * one_product,
                "the number of terms was squared. That is right for a sum of equal terms, "
                "these are uncorrelated.",
            ),
        ],
    ),
    "scaled": Number(
        raw / d_k,
        [
            Wrong(
                "unit variance",
                1,
                "the division takes the number of terms away, not the size of each.",
            ),
            Wrong("unscaled", raw, "that is the variance before the division."),
            Wrong("root", raw / sqrt(d_k), "dividing $s$ by $√d_k$ divides its variance by $d_k$."),
            Wrong(
                "by width", raw / d_k**2, "that belongs to a division by $d_k$, not by its root."
            ),
            Wrong(
                "deviation", sqrt(raw / d_k), "that is the standard deviation, not the variance."
            ),
        ],
    ),
}

# ---------------------------------------------- 4.3: components -1, 0, 1, at d_k = 36

d_k = 36
thirds = {x: Rational(1, 3) for x in (-1, 0, 1)}
one_product = variance(product, independent(thirds, thirds))
one_component = variance(lambda x: x, thirds)
deviation = sqrt(d_k * one_product) / sqrt(d_k)
three_values = Number(
    deviation,
    [
        Wrong("variance", deviation**2, "that is the variance of the scaled score."),
        Wrong("raw", sqrt(d_k) * deviation, "that is the deviation before the division."),
        Wrong("raw variance", d_k * deviation**2, "that is the variance before the division."),
        Wrong(
            "unit variances", 1, "a component is 0 in a third of the cases: its variance is not 1."
        ),
        Wrong("one side", sqrt(one_component), "that is the deviation of one component alone."),
        Wrong("by width", deviation / sqrt(d_k), "that belongs to a division by $d_k$."),
    ],
)

# ---------------------------------------------- 4.4: k = -q, random signs, at d_k = 49

d_k = 49
opposite_keys = {
    "u": Number(
        -d_k / sqrt(d_k),
        [
            Wrong("sign", sqrt(d_k), "the key is $-q$, so every product is -1."),
            Wrong("raw", -d_k, "that is the raw score, before the division."),
            Wrong("raw and sign", d_k, "that is the raw score of $k = q$, before the division."),
            Wrong("by width", -1, "that is the score divided by $d_k$. It is also the cosine."),
            Wrong("mean", 0, "Theorem 4.2 gives mean 0 for independent sides. These are not."),
        ],
    ),
    "fails": Choice(
        "H3",
        [
            Wrong("H1", "H1", "Both signs are equally likely, so every component has mean 0."),
            Wrong("H2", "H2", "Every component has variance 1, on both sides."),
            Wrong("H4", "H4", "Every product is -1, and constants have covariance 0."),
        ],
    ),
}

# ---------------------------------------------- 4.5: correlations rho and -rho at rho = 3/5

rho = Rational(3, 5)
C_q, C_k = sympy.Matrix([[1, rho], [rho, 1]]), sympy.Matrix([[1, -rho], [-rho, 1]])
trace = (C_q * C_k).trace()
opposite_correlations = Number(
    trace,
    [
        Wrong("no correlation", 2, "that is $d_k$, which Theorem 4.2 gives with (H4)."),
        Wrong("same sign", (C_q * C_q).trace(), "both sides were given the same correlation."),
        Wrong("not squared", 2 * (1 - rho), "the correlation enters squared, once from each side."),
        Wrong(
            "scaled",
            trace / 2,
            "that is one diagonal entry of $C_q C_k$, or the variance of $u$, not of $s$.",
        ),
        Wrong(
            "two traces", C_q.trace() * C_k.trace(), "the trace of a product is not that product."
        ),
        Wrong("deviation", sqrt(trace), "that is the standard deviation, not the variance."),
    ],
)

# ---------------------------------------------- 4.6: W_Q and W_K doubled

doubled_weights = Number(
    2 * 2,
    [
        Wrong("one side", 2, "that undoes one doubling. Queries and keys both double."),
        Wrong("inverse", Rational(1, 4), "that stretches further: scores are divided by $τ$."),
        Wrong("nothing", 1, "$√d_k$ is the same as before, and undoes nothing."),
        Wrong("variance", 16, "that is the factor of the variance. Weights depend on the scores."),
        Wrong("added", 8, "the factors are 2 from $W_Q$ and 2 from $W_K$."),
    ],
)

# ---------------------------------------------- 4.7: scores (0, log 2, log 3) at tau = 1/2

u, tau = exact.row([0, log(2), log(3)]), Rational(1, 2)
ordinary = exact.softmax(u)
by_hand = Number(
    tuple(exact.softmax(u / tau)),
    [
        Wrong("ignored", tuple(ordinary), "these are the weights at $τ = 1$."),
        Wrong("multiplied", tuple(exact.softmax(u * tau)), "scores were multiplied by $τ$."),
        Wrong(
            "weights divided", tuple(ordinary / tau), "the weights were divided, not the scores."
        ),
        Wrong("no sum", (1, 4, 9), "these are the exponentials. Divide them by their sum."),
        Wrong(
            "no exponential", tuple(u / sum(u)), "the scores themselves were divided by their sum."
        ),
    ],
)

# ---------------------------------------------- 4.8: the larger of two weights is 9/10

two_scores = Number(
    log(9),
    [
        Wrong("ratio", 9, "that is the ratio of the two weights. Its logarithm is asked for."),
        Wrong("sign", -log(9), "that is how far the smaller score lies from the larger one."),
        Wrong(
            "log 10", log(10), "the smaller weight is 1/10 of the sum, and 1/9 of the larger one."
        ),
        Wrong("base 10", log(9) / log(10), "that is a logarithm to base 10. Softmax has base $e$."),
        Wrong("base 2", log(9) / log(2), "that is a logarithm to base 2. Softmax has base $e$."),
        Wrong("log weight", log(Rational(9, 10)), "that is the logarithm of the weight."),
    ],
)

# ---------------------------------------------- 4.9: scaled_scores(Q, K), T = 2, S = 3, d_k = 4


def half(*rows):
    """Divide a matrix of integers by 2."""
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in rows)


scaled_scores = Program(
    name="scaled_scores",
    shapes={"Q": "T d_k", "K": "S d_k"},
    returns="T S",
    right=exact.scores,
    inputs=[
        (half((2, -1, 0, 3), (1, 1, -2, 0)), half((1, 0, 2, 1), (-1, 3, 0, 1), (2, 2, 1, -1))),
        (((1, 0, 1), (0, 2, -1)), ((1, 1, 0), (2, 0, 1), (0, -1, 1), (1, 0, 0))),
        (half((1, 2), (-3, 1), (0, 1)), half((2, 1))),
    ],
    wrong=[
        Wrong(
            "no scale", lambda Q, K: Q @ K.T, "these are the raw scores $E$: the scale is missing."
        ),
        Wrong(
            "by width",
            lambda Q, K: Q @ K.T / Q.shape[1],
            "divided by $d_k$, or by its root twice. It should be once by $√d_k$.",
        ),
        Wrong(
            "multiplied",
            lambda Q, K: Q @ K.T * Q.shape[1] ** 0.5,
            "multiplied by $√d_k$ instead of divided.",
        ),
        Wrong(
            "width of 4",
            lambda Q, K: Q @ K.T / 2,
            "divided by 2, the root of $d_k = 4$. Other inputs have other widths.",
        ),
        Wrong(
            "number of keys",
            lambda Q, K: Q @ K.T / len(K) ** 0.5,
            "divided by $√S$, the root of the number of keys.",
        ),
        Wrong(
            "number of queries",
            lambda Q, K: Q @ K.T / len(Q) ** 0.5,
            "divided by $√T$, the root of the number of queries.",
        ),
        Wrong(
            "swapped",
            lambda Q, K: K @ Q.T / Q.shape[1] ** 0.5,
            "this is $KQ^⊤$: rows belong to queries, so $Q$ comes first.",
        ),
        Wrong(
            "no transpose",
            lambda Q, K: Q @ K / Q.shape[1] ** 0.5,
            "$K$ is not transposed: $QK$ does not exist, $QK^⊤$ does.",
        ),
        Wrong(
            "cosine",
            lambda Q, K: Q @ K.T / np.outer(np.linalg.norm(Q, axis=1), np.linalg.norm(K, axis=1)),
            "these are cosines: divided by the lengths of the vectors, not by $√d_k$.",
        ),
        Wrong(
            "weights",
            lambda Q, K: _softmax(Q @ K.T / Q.shape[1] ** 0.5),
            "these are weights: softmax comes after the scaled scores.",
        ),
        Wrong(
            "truncated",
            lambda Q, K: (Q @ K.T / Q.shape[1] ** 0.5).astype(np.result_type(Q, K)),
            "the result was written into an array of the dtype of $Q$. Integers cut fractions off.",
        ),
    ],
)

# ---------------------------------------------- 4.10: entropies(A), T = 2, S = 3


def _softmax(U):
    e = np.exp(U - U.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _a_log_a(A):
    return np.where(A > 0, A * np.log(np.where(A > 0, A, 1)), 0)


def _entropies(A):
    terms = [[a * log(a) for a in row if a] for row in exact.matrix(A).tolist()]
    return tuple(-sympy.Add(*row) for row in terms)


def tenths(*rows):
    """Divide a matrix of integers by 10."""
    return tuple(tuple(Fraction(entry, 10) for entry in row) for row in rows)


entropies = Program(
    name="entropies",
    shapes={"A": "T S"},
    returns="T",
    right=_entropies,
    inputs=[
        (tenths((2, 3, 5), (4, 4, 2)),),
        (tenths((5, 5, 0, 0), (0, 3, 1, 6), (1, 2, 3, 4)),),
        (((0, 1),),),
    ],
    wrong=[
        Wrong(
            "log of zero",
            lambda A: -(A * np.log(A)).sum(axis=1),
            "log 0 is minus infinity, and 0 times that is nan. Leave out the zeros: 0 log 0 = 0.",
        ),
        Wrong("sign", lambda A: _a_log_a(A).sum(axis=1), "the minus sign is missing."),
        Wrong(
            "bits",
            lambda A: -_a_log_a(A).sum(axis=1) / np.log(2),
            "these are bits, from the logarithm to base 2. Logarithms here are natural.",
        ),
        Wrong(
            "base 10",
            lambda A: -_a_log_a(A).sum(axis=1) / np.log(10),
            "this is the logarithm to base 10. Logarithms here are natural.",
        ),
        Wrong(
            "columns",
            lambda A: -_a_log_a(A).sum(axis=0),
            "summed down the columns. A row of weights belongs to a query: sum along axis 1.",
        ),
        Wrong(
            "everything",
            lambda A: -_a_log_a(A).sum(),
            "summed over the whole array. Every row has an entropy of its own.",
        ),
        Wrong(
            "mean",
            lambda A: -_a_log_a(A).mean(axis=1),
            "the mean over the keys instead of their sum.",
        ),
        Wrong(
            "no weight",
            lambda A: -np.log(np.where(A > 0, A, 1)).sum(axis=1),
            "the factor $a_j$ before the logarithm is missing.",
        ),
        Wrong(
            "share of log S",
            lambda A: -_a_log_a(A).sum(axis=1) / np.log(A.shape[1]),
            "divided by log $S$: that is the share of the largest possible entropy.",
        ),
        Wrong(
            "not summed",
            lambda A: -_a_log_a(A),
            "these are the terms $-a_j$ log $a_j$. Add them up along each row.",
        ),
    ],
)

# ---------------------------------------------- 4.11: weights_at(U, tau), T = 2, S = 3


def _weights_at(U, tau):
    """Compute the weights exactly, with no exponential above 1: exp(3000) is no float."""
    rows = (exact.matrix(U) / Rational(tau)).tolist()
    shifted = [[sympy.exp(z - max(row)) for z in row] for row in rows]
    return tuple(tuple(e / sum(row) for e in row) for row in shifted)


def _no_shift(U, tau):
    e = np.exp(U / tau)
    return e / e.sum(axis=1, keepdims=True)


def _one_shift(U, tau):
    e = np.exp((U - U.max()) / tau)
    return e / e.sum(axis=1, keepdims=True)


def _unscaled_shift(U, tau):
    e = np.exp(U / tau - U.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _without_keepdims(U, tau):
    e = np.exp(U / tau - (U / tau).max(axis=1))
    return e / e.sum(axis=1)


weights_at = Program(
    name="weights_at",
    shapes={"U": "T S", "tau": ""},
    returns="T S",
    right=_weights_at,
    inputs=[
        (half((0, 1, 3), (2, -1, 1)), Fraction(1, 2)),
        (half((1, 0, 2, 1), (0, 3, 1, 2), (2, 2, 1, 0)), Fraction(5, 2)),
        (((1000, 1001, 999), (0, 1, -3000)), 1),
        (((5, 2000, 1999),), 2000),
    ],
    wrong=[
        Wrong(
            "multiplied",
            lambda U, tau: _softmax(U * tau),
            "the scores were multiplied by $τ$. A small $τ$ has to stretch them.",
        ),
        Wrong("ignored", lambda U, tau: _softmax(U), "$τ$ has no effect."),
        Wrong(
            "weights divided",
            lambda U, tau: _softmax(U) / tau,
            "the weights were divided by $τ$, not the scores: rows no longer sum to 1.",
        ),
        Wrong(
            "columns",
            lambda U, tau: _softmax(U.T / tau).T,
            "normalised down the columns. Each row of weights has to sum to 1.",
        ),
        Wrong(
            "everything",
            lambda U, tau: _softmax((U / tau).reshape(1, -1)).reshape(U.shape),
            "all weights together sum to 1. Each row has to.",
        ),
        Wrong(
            "overflow",
            _no_shift,
            "exp overflows for scores near 1000. Subtract the largest score of each row first: "
            "the weights do not change.",
        ),
        Wrong(
            "one shift",
            _one_shift,
            "the largest score of the whole array was subtracted. A row far below it underflows "
            "to 0/0: every row needs its own.",
        ),
        Wrong(
            "unscaled shift",
            _unscaled_shift,
            "the largest score was subtracted after the others were divided by $τ$. Divide it too.",
        ),
        Wrong(
            "no keepdims",
            _without_keepdims,
            "a maximum or a sum over axis 1 has shape $T$, and does not fit to the columns of $U$. "
            "Write keepdims=True.",
        ),
        Wrong(
            "no sum",
            lambda U, tau: np.exp(U / tau - (U / tau).max(axis=1, keepdims=True)),
            "the exponentials were not divided by their sum.",
        ),
    ],
)

EXERCISES = {
    "4.1": two_sizes,
    "4.2": variances_of_4,
    "4.3": {"answer": three_values},
    "4.4": opposite_keys,
    "4.5": {"answer": opposite_correlations},
    "4.6": {"answer": doubled_weights},
    "4.7": {"answer": by_hand},
    "4.8": {"answer": two_scores},
    "4.9": {"answer": scaled_scores},
    "4.10": {"answer": entropies},
    "4.11": {"answer": weights_at},
}
