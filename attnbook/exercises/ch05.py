"""The exercises of chapter 05, softmax and the weighted read.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, exp, log, sqrt

from attnbook import exact, examples
from attnbook.exact import expectation, independent, variance
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 5.1: R exercise 5.3, the second row

R = examples.R_EXERCISE_5_3
Q, K, V = (exact.project(R.X, W) for W in (R.W_Q, R.W_K, R.W_V))
U = exact.scores(Q, K)
A = exact.softmax(U)
masked = exact.softmax(U, examples.R_HEAD.allowed)
V_zero = exact.matrix([*V.tolist()[:2], [0, 0]])
K_zero = exact.matrix([*K.tolist()[:2], [0, 0]])


def second(M: sympy.MatrixBase) -> tuple:
    """Return the second row of a matrix, its entries in lowest terms."""
    return tuple(exact.lowest_terms(M[1, :]))


without_mask = {
    "weights": Number(
        second(A),
        [
            Wrong("masked", second(masked), "this row still obeys the causal mask."),
            Wrong("first row", tuple(A[0, :]), "these are the weights of the first query."),
            Wrong("no scale", second(exact.softmax(exact.scores(Q, K, 1))), "$√d_k$ is missing."),
            Wrong(
                "by width",
                second(exact.softmax(exact.scores(Q, K, Rational(1, 2)))),
                "the scores were divided by $d_k$, not by its root.",
            ),
            Wrong(
                "over queries",
                second(exact.softmax(U.T).T),
                "normalised down the columns: this row does not sum to 1.",
            ),
            Wrong(
                "no exponential",
                tuple(u / sum(U[1, :]) for u in U[1, :]),
                "the scores themselves were divided by their sum.",
            ),
        ],
    ),
    "output": Number(
        second(A * V),
        [
            Wrong("masked", second(masked * V), "this row still obeys the causal mask."),
            Wrong("first row", tuple((A * V)[0, :]), "this is what the first query reads."),
            Wrong(
                "inputs",
                second(A * exact.matrix(R.X)),
                "the rows of $X$ were mixed, not those of $V$.",
            ),
            Wrong("average", (Rational(2, 3), Rational(4, 3)), "this is the plain average."),
            Wrong("third is zero", second(A * V_zero), "that is the answer to the last question."),
        ],
    ),
    "third_zero": Number(
        second(A * V_zero),
        [
            Wrong("unchanged", second(A * V), "the third value still takes part."),
            Wrong(
                "normalised again",
                second(masked * V),
                "the third weight was given to the others. It stays, and multiplies a zero.",
            ),
            Wrong(
                "difference", tuple(A[1, 2] * V[2, :]), "that is what the output loses, not keeps."
            ),
            Wrong(
                "key too",
                second(exact.attention(Q, K_zero, V_zero).O),
                "the third key was set to zero as well, which changes the scores.",
            ),
        ],
    ),
}

# ---------------------------------------------- 5.2: null directions, n = 3 of S = 8

S, n = 8, 3
null_directions = Number(
    1 + S - n,
    [
        Wrong("shift only", 1, "that is the common shift. What does a masked score change?"),
        Wrong("masked only", S - n, "the common shift of the visible scores is missing."),
        Wrong("visible", n, "that is the number of visible keys."),
        Wrong("rank", n - 1, "that is the rank: the directions that do change the weights."),
        Wrong("all", S, "some directions do change the weights."),
        Wrong("two shifts", 2 + S - n, "the shift of all eight scores is a sum of the others."),
    ],
)

# ---------------------------------------------- 5.3: R exercise 5.9, a = (1/2, 1/4, 1/4), rho = 4/5

a, rho = (Rational(1, 2), Rational(1, 4), Rational(1, 4)), Rational(4, 5)
masks = independent(*[{0: 1 - rho, 1: rho}] * len(a))
squares = sum(x**2 for x in a)


def row_sum(keep: tuple) -> sympy.Expr:
    """Return the sum of the weights that the mask keeps, divided by rho."""
    return sum(kept_j * a_j for kept_j, a_j in zip(keep, a, strict=True)) / rho


dropped_row = {
    "mean": Number(
        expectation(row_sum, masks),
        [
            Wrong("no division", rho, "what is kept is divided by $ρ$."),
            Wrong("all kept", 1 / rho, "that is the row sum when nothing is dropped."),
            Wrong("count", 3 * rho, "that is the mean number of weights that are kept."),
        ],
    ),
    "variance": Number(
        variance(row_sum, masks),
        [
            Wrong("deviation", sqrt(variance(row_sum, masks)), "that is the standard deviation."),
            Wrong("no division", rho * (1 - rho) * squares, "what is kept is divided by $ρ$."),
            Wrong(
                "divided twice",
                (1 - rho) * squares / rho**2,
                "Var$(κ_j)$ is $ρ(1 − ρ)$: one $ρ$ of the two cancels.",
            ),
            Wrong("swapped", rho * squares / (1 - rho), "keeping and dropping were exchanged."),
            Wrong("no squares", (1 - rho) / rho, "the weights enter squared: a factor is missing."),
            Wrong("equal weights", (1 - rho) / rho / 3, "that holds for three equal weights."),
            Wrong("no factor", squares, "the factor with $ρ$ is missing: nothing is random yet."),
        ],
    ),
    "nothing_kept": Number(
        (1 - rho) ** 3,
        [
            Wrong("all kept", rho**3, "that is the probability that nothing is dropped."),
            Wrong("some dropped", 1 - rho**3, "that is the probability that some are dropped."),
            Wrong("one", 1 - rho, "that is the probability that one given weight is dropped."),
            Wrong("added", 3 * (1 - rho), "probabilities of independent events multiply."),
        ],
    ),
}

# ---------------------------------------------- 5.4: the wrong axis, 4 queries and 6 keys

T, S = 4, 6
wrong_axis = {
    "total": Number(
        S,
        [
            Wrong("right axis", T, "that is the total of a correct matrix of weights."),
            Wrong("entries", T * S, "that is the number of entries."),
            Wrong("one", 1, "every column sums to 1. How many are there?"),
        ],
    ),
    "right_total": Number(
        T,
        [
            Wrong("wrong axis", S, "that is the total when columns sum to 1."),
            Wrong("entries", T * S, "that is the number of entries."),
            Wrong("one", 1, "every row sums to 1. How many are there?"),
        ],
    ),
    "mean_column": Number(
        Rational(T, S),
        [
            Wrong("wrong axis", 1, "columns sum to 1 on the wrong axis only."),
            Wrong("inverse", Rational(S, T), "the total is $T$, and there are $S$ columns."),
            Wrong("one weight", Rational(1, S), "that is the mean weight."),
            Wrong("total", T, "that is the total. Divide it by the number of columns."),
        ],
    ),
}

# ---------------------------------------------- 5.5: values 2 and 10, output 8

two_values = {
    "difference": Number(
        log(3),
        [
            Wrong("ratio", 3, "that is the ratio of the weights. Its logarithm is asked for."),
            Wrong("sign", -log(3), "that is $u_1 − u_2$."),
            Wrong("of values", log(4), "that compares the values 8 and 2, not the weights."),
            Wrong("weight", Rational(3, 4), "that is the weight $a_2$."),
            Wrong("log weight", log(Rational(3, 4)), "that is the logarithm of the weight $a_2$."),
            Wrong("base 2", log(3) / log(2), "softmax has base $e$, this logarithm has base 2."),
        ],
    ),
    "ten": Choice(
        "limit",
        [
            Wrong("reached", "reached", "$a_1$ is positive for all real scores."),
            Wrong("impossible", "impossible", "Let $u_2$ grow: how near does the output come?"),
        ],
    ),
    "eleven": Choice(
        "impossible",
        [
            Wrong("reached", "reached", "An output lies between the values, 2 and 10."),
            Wrong("limit", "limit", "No output is larger than 10, so none comes near 11."),
        ],
    ),
}

# ---------------------------------------------- 5.6: log_weights(U)


def half(*rows: tuple[int, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Divide a matrix of integers by 2."""
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in rows)


def _weights(U: tuple) -> sympy.Matrix:
    """Compute the weights exactly, with no exponential above 1: exp(3000) is no float."""
    shifted = [[exp(u - max(row)) for u in row] for row in exact.matrix(U).tolist()]
    return sympy.Matrix([[e / sum(row) for e in row] for row in shifted])


def _log_weights(U: tuple) -> tuple:
    return tuple(
        tuple(u - max(row) - log(sum(exp(x - max(row)) for x in row)) for u in row)
        for row in exact.matrix(U).tolist()
    )


def _softmax(U, axis=1):
    e = np.exp(U - U.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _stable_log(U, m):
    return U - m - np.log(np.exp(U - m).sum(axis=1, keepdims=True))


log_weights = Program(
    name="log_weights",
    shapes={"U": "T S"},
    returns="T S",
    right=_log_weights,
    inputs=[
        (half((0, 1, 3), (2, -1, 1)),),
        (half((1, 0, 2, 1), (0, 3, 1, 2), (2, 2, 1, 0)),),
        (((0, -800, -2400), (1000, 1001, 999)),),
        (((2, 1, 0, 1), (0, 1, 1, 2)),),
    ],
    wrong=[
        Wrong(
            "log of softmax",
            lambda U: np.log(_softmax(U)),
            "a weight that underflows to 0 has the logarithm minus infinity. Take the logarithm "
            "of (5.6) on paper first.",
        ),
        Wrong(
            "epsilon",
            lambda U: np.log(_softmax(U) + 1e-12),
            "a small number was added to the weight: the logarithm stops near −27.6.",
        ),
        Wrong(
            "no shift",
            lambda U: U - np.log(np.exp(U).sum(axis=1, keepdims=True)),
            "exp overflows for scores near 1000. Subtract each row's maximum first.",
        ),
        Wrong(
            "one shift",
            lambda U: _stable_log(U, U.max()),
            "the maximum of the whole array was subtracted. A row far below it underflows.",
        ),
        Wrong("no logarithm", _softmax, "these are the weights, not their logarithms."),
        Wrong(
            "no sum",
            lambda U: U - U.max(axis=1, keepdims=True),
            "the logarithm of the sum is missing: these are the shifted scores.",
        ),
        Wrong(
            "shift lost",
            lambda U: U - np.log(np.exp(U - U.max(axis=1, keepdims=True)).sum(1, keepdims=True)),
            "the maximum was subtracted in the sum, but not from the score in front of it.",
        ),
        Wrong(
            "base 2",
            lambda U: _stable_log(U, U.max(axis=1, keepdims=True)) / np.log(2),
            "these are logarithms to base 2. Logarithms here are natural.",
        ),
        Wrong(
            "sign",
            lambda U: -_stable_log(U, U.max(axis=1, keepdims=True)),
            "the sign is wrong: weights below 1 have negative logarithms.",
        ),
        Wrong(
            "columns",
            lambda U: _stable_log(U.T, U.T.max(axis=1, keepdims=True)).T,
            "normalised down the columns. Each row has its own softmax.",
        ),
    ],
)

# ---------------------------------------------- 5.7: the smallest d_k for the hand-made A

smallest_width = Number(
    3,
    [
        Wrong("no constant", 4, "that is the rank of log $A$. Every row may be shifted freely."),
        Wrong("width of X", 6, "that suffices, but fewer columns do."),
        Wrong("two", 2, "the centred logarithms have a larger rank than that."),
        Wrong("one", 1, "that would need rows of scores that are multiples of each other."),
    ],
)

# ---------------------------------------------- 5.8: dropout, then rows normalised again

a, rho = (Rational(3, 4), Rational(1, 4)), Rational(1, 2)
half_kept = independent(*[{0: 1 - rho, 1: rho}] * 2)
kept = {keep: p / (1 - half_kept[(0, 0)]) for keep, p in half_kept.items() if any(keep)}


def again(j: int):
    """Return weight j of a row that is divided by its own sum, as a function of the mask."""
    return lambda keep: keep[j] * a[j] / (keep[0] * a[0] + keep[1] * a[1])


normalised_again = Number(
    expectation(again(0), kept),
    [
        Wrong("unbiased", a[0], "that is the weight before dropout, and its mean by (5.10)."),
        Wrong("second", expectation(again(1), kept), "that is the mean of the second weight."),
        Wrong(
            "four masks",
            expectation(again(0), kept) * (1 - half_kept[(0, 0)]),
            "one of the four masks keeps nothing and is excluded: three are left.",
        ),
        Wrong("kept", rho, "that is the keep probability."),
        Wrong("given kept", Rational(7, 8), "the mask that drops the first weight was left out."),
    ],
)

# ---------------------------------------------- 5.10: read(U, V)


def _no_shift(U, V):
    e = np.exp(U)
    return e / e.sum(axis=1, keepdims=True) @ V


def _one_shift(U, V):
    e = np.exp(U - U.max())
    return e / e.sum(axis=1, keepdims=True) @ V


read_program = Program(
    name="read",
    shapes={"U": "T S", "V": "S d_v"},
    returns="T d_v",
    right=lambda U, V: _weights(U) * exact.matrix(V),
    inputs=[
        (half((0, 1, 3), (2, -1, 1)), half((2, 0, 1, 4), (0, 4, 1, -2), (2, 2, -3, 0))),
        (half((1, 0, 2, 1), (0, 3, 1, 2), (2, 2, 1, 0)), half((1, 0), (0, 3), (5, 1), (-2, 2))),
        (((1000, 1001), (0, 1), (2, 1)), ((1, 0, 3, 2), (0, 2, 1, -4))),
        (((1000, 1001, 0, -2000),), ((1, 0, 3), (0, 2, 1), (2, 1, 1), (4, 0, 1))),
    ],
    wrong=[
        Wrong(
            "overflow",
            _no_shift,
            "exp overflows for scores near 1000. Subtract each row's maximum first.",
        ),
        Wrong(
            "one shift",
            _one_shift,
            "the maximum of the whole array was subtracted. A row far below it underflows to 0/0.",
        ),
        Wrong(
            "columns",
            lambda U, V: _softmax(U, axis=0) @ V,
            "normalised over the queries. The weights of each query have to sum to 1.",
        ),
        Wrong(
            "no sum",
            lambda U, V: np.exp(U - U.max(axis=1, keepdims=True)) @ V,
            "the exponentials were not divided by their sum.",
        ),
        Wrong(
            "average",
            lambda U, V: np.tile(V.mean(axis=0), (len(U), 1)),
            "this is the plain average of the values for every query.",
        ),
        Wrong(
            "hard",
            lambda U, V: V[U.argmax(axis=1)],
            "this picks the value of the largest score. Softmax blends.",
        ),
        Wrong("weights", lambda U, V: _softmax(U), "these are the weights. They still read $V$."),
        Wrong("scores", lambda U, V: U @ V, "the scores were used as weights, without a softmax."),
        Wrong(
            "divided by S",
            lambda U, V: _softmax(U) @ V / len(V),
            "divided by the number of keys as well: the weights sum to 1 already.",
        ),
    ],
)

EXERCISES = {
    "5.1": without_mask,
    "5.2": {"answer": null_directions},
    "5.3": dropped_row,
    "5.4": wrong_axis,
    "5.5": two_values,
    "5.6": {"answer": log_weights},
    "5.7": {"answer": smallest_width},
    "5.8": {"answer": normalised_again},
    "5.10": {"answer": read_program},
}
