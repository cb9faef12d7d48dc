"""The exercises of chapter 06, masks.

Right answers are computed from the sets and the formulas in exact numbers. Each wrong answer is
what one misconception leads to on the numbers of the exercise.
"""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, log

from attnbook import exact
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program


def causal(queries: Iterable[int], keys: Iterable[int]) -> list[list[bool]]:
    """Return the causal set on absolute positions, R (5.12), without the book's numerics."""
    keys = list(keys)
    return [[j <= i for j in keys] for i in queries]


def per_row(allowed: list[list[bool]]) -> tuple[int, ...]:
    """Count the visible keys of each query."""
    return tuple(map(sum, allowed))


# ---------------------------------------------- 6.1: count the cells

cells = {
    "square": Number(
        sum(per_row(causal(range(5), range(5)))),
        [
            Wrong("all", 25, "those are all cells."),
            Wrong("strict", 10, "a query may read the key at its own position too."),
            Wrong("diagonal", 5, "earlier keys may be read as well."),
        ],
    ),
    "cached": Number(
        sum(per_row(causal(range(3, 7), range(7)))),
        [
            Wrong("upper left", 10, "the queries were taken for positions 0 to 3."),
            Wrong("strict", 18, "a query may read the key at its own position too."),
            Wrong("all", 28, "those are all cells."),
        ],
    ),
    "documents": Number(
        sum(per_row(causal(range(2), range(2)))) + sum(per_row(causal(range(3), range(3)))),
        [
            Wrong("one document", 15, "the second document still reads the first."),
            Wrong("not causal", 13, "inside a document later keys are forbidden too."),
            Wrong("strict", 4, "a query may read the key at its own position too."),
        ],
    ),
    "padded": Number(
        5 * 3,
        [
            Wrong("queries too", 9, "a padding mask hides keys. Who forbids the queries to read?"),
            Wrong("all", 25, "those are all cells."),
            Wrong("pads", 10, "those are the forbidden cells."),
            Wrong("causal too", 12, "there is no causal rule in this one."),
        ],
    ),
}

# ---------------------------------------------- 6.2: queries at 4 and 5, keys at 0 to 5

by_position = per_row(causal((4, 5), range(6)))
block_of_two = {
    "allowed": Number(
        by_position,
        [
            Wrong("upper left", (1, 2), "the queries were taken for rows 0 and 1."),
            Wrong("strict", (4, 5), "a query may read the key at its own position too."),
            Wrong("all", (6, 6), "one of these keys stands later than the first query."),
        ],
    ),
    "upper_left": Number(
        per_row(causal((0, 1), range(6))),
        [
            Wrong("by position", by_position, "that is the rule by positions."),
            Wrong("strict", (0, 1), "the diagonal belongs to the triangle."),
            Wrong("lost", (4, 4), "that is how many keys each query loses."),
        ],
    ),
    "lower_right": Number(
        per_row([[j <= i + 6 - 2 for j in range(6)] for i in range(2)]),
        [
            Wrong("upper left", (1, 2), "that is the other corner."),
            Wrong("strict", (4, 5), "the diagonal belongs to the triangle."),
            Wrong("all", (6, 6), "the first of the two rows of this triangle is one key shorter."),
        ],
    ),
}

# ---------------------------------------------- 6.3: key_padding_mask as attn_mask

ignored = (False, False, False, True)
equal = [0] * 4
wanted = tuple(exact.softmax(equal, [not x for x in ignored]))
got = tuple(exact.softmax(equal, list(ignored)))
quarters = (Rational(1, 4),) * 4
polarity = {
    "wanted": Number(
        wanted,
        [
            Wrong("swapped", got, "that is what comes out."),
            Wrong("no mask", quarters, "the padding is read here as well."),
            Wrong("not normalised", (*quarters[:3], 0), "this row does not sum to 1."),
        ],
    ),
    "got": Number(
        got,
        [
            Wrong("swapped", wanted, "that is what was wanted."),
            Wrong("no mask", quarters, "here a mask acts, if a wrong one."),
            Wrong("not normalised", (0, 0, 0, Rational(1, 4)), "this row does not sum to 1."),
            Wrong("zero", (0, 0, 0, 0), "one key takes part. Which?"),
        ],
    ),
}

# ---------------------------------------------- 6.4: mask, zero after softmax, finite bias

u = exact.row([0, log(2), log(3)])
plain = tuple(exact.softmax(u))
masked = tuple(exact.softmax(u, [True, True, False]))
after = (*plain[:2], 0)
biased = tuple(exact.lowest_terms(exact.softmax(u - exact.row([0, 0, log(6)]))))
three_ways = {
    "mask": Number(
        masked,
        [
            Wrong("after", after, "this row does not sum to 1."),
            Wrong("no mask", plain, "the third key is still read."),
            Wrong("bias", biased, "that is the answer to the last part."),
            Wrong("equal", (Rational(1, 2), Rational(1, 2), 0), "the two scores differ."),
        ],
    ),
    "after": Number(
        after,
        [
            Wrong("mask", masked, "here nothing is normalised again."),
            Wrong("no mask", plain, "the third weight is set to 0."),
            Wrong("exponentials", (1, 2, 0), "these are exponentials, not weights."),
        ],
    ),
    "bias": Number(
        biased,
        [
            Wrong("mask", masked, "a finite bias does not take the key out."),
            Wrong("no bias", plain, "these are the weights without the bias."),
            Wrong(
                "on the weight",
                (*plain[:2], plain[2] / 6),
                "the bias is added to the score, before the normalisation.",
            ),
            Wrong(
                "sign",
                tuple(exact.lowest_terms(exact.softmax(u + exact.row([0, 0, log(6)])))),
                "the bias was added with the wrong sign.",
            ),
        ],
    ),
}

# ---------------------------------------------- 6.5: R exercise 5.10

quarter = (Rational(1, 4), Rational(3, 4))
nothing_to_read = {
    "real": Choice(
        "raise",
        [
            Wrong("zero", "zero", "A zero would go on as if it were an answer."),
            Wrong("uniform", "uniform", "That reads all eight keys, and all are forbidden."),
        ],
    ),
    "padding": Choice(
        "zero",
        [
            Wrong("raise", "raise", "Nobody needs this row: a batch may well hold such rows."),
            Wrong("uniform", "uniform", "That reads all eight keys, and all are forbidden."),
        ],
    ),
    "replaced": Number(
        Rational(1, 8),
        [
            Wrong("zero", 0, "the eight weights sum to 1."),
            Wrong("one", 1, "the eight weights sum to 1 together."),
            Wrong("score", -(10**9), "that is the score, not the weight."),
        ],
    ),
    "added": Number(
        quarter,
        [
            Wrong("replaced", (Rational(1, 2),) * 2, "that is what replacing gives."),
            Wrong("zero", (0, 0), "softmax divides by the sum: the weights sum to 1."),
            Wrong("swapped", quarter[::-1], "the larger score has the larger weight."),
            Wrong("exponentials", (1, 3), "these are exponentials, not weights."),
        ],
    ),
}

# ---------------------------------------------- 6.6: lengths 3, 5, 2 padded to 5, causal

WIDTH, LENGTHS = 5, (3, 5, 2)
pads = sum(WIDTH - n for n in LENGTHS)
sides = {
    "left": Number(
        sum(
            not any(j <= i and j >= WIDTH - n for j in range(WIDTH))
            for n in LENGTHS
            for i in range(WIDTH)
        ),
        [
            Wrong("none", 0, "look at the first query of the first sequence."),
            Wrong("real", sum(LENGTHS), "those are the rows that see a key."),
            Wrong("sequences", 2, "count rows, not sequences."),
            Wrong("all", 3 * WIDTH, "the real queries see themselves."),
        ],
    ),
    "right": Number(
        0,
        [
            Wrong("as on the left", pads, "what stands before a padded query here?"),
            Wrong("sequences", 2, "count rows that see nothing, not sequences with padding."),
            Wrong("real", sum(LENGTHS), "the real queries see themselves."),
        ],
    ),
    "reading": Number(
        pads,
        [
            Wrong("none", 0, "a padding mask hides keys. Who forbids the queries to read?"),
            Wrong("sequences", 2, "count queries, not sequences."),
            Wrong("real", sum(LENGTHS), "those are the real queries."),
        ],
    ),
}

# ---------------------------------------------- 6.7: what leaks

F = -log(9)


def forbidden_weight(visible: sympy.Expr, fill: sympy.Expr) -> sympy.Expr:
    """Return the weight of a forbidden key whose score is replaced."""
    return exact.lowest_terms(exact.softmax([visible, fill])[1])


leak = {
    "far": Number(
        forbidden_weight(0, F),
        [
            Wrong("not normalised", Rational(1, 9), "divide by the sum of both exponentials."),
            Wrong("visible", forbidden_weight(F, 0), "that is the weight of the visible key."),
            Wrong("zero", 0, "an exponential is positive for every finite number."),
            Wrong("exponential of minus F", 9, "the number is negative."),
        ],
    ),
    "near": Number(
        forbidden_weight(F, F),
        [
            Wrong("as before", Rational(1, 10), "the visible score has changed."),
            Wrong("zero", 0, "an exponential is positive for every finite number."),
            Wrong("not normalised", Rational(1, 9), "divide by the sum of both exponentials."),
            Wrong("one", 1, "the visible key has the same score."),
        ],
    ),
    "fill": Number(
        -log(4),
        [
            Wrong("sign", log(4), "that gives the forbidden key the larger weight."),
            Wrong("no sum", -log(5), "the weight is not the exponential: divide by the sum."),
            Wrong("exponential", Rational(1, 4), "that is the exponential of $F$."),
            Wrong("base 2", -2, "softmax has base $e$, this logarithm has base 2."),
            Wrong("added one", -log(6), "the sum of both exponentials is the denominator."),
        ],
    ),
}

# ---------------------------------------------- 6.8: NaN, or not?

nan_or_not = {
    "added": Choice(
        "nan", [Wrong("finite", "finite", "Adding minus infinity does not remove a NaN.")]
    ),
    "chosen": Choice(
        "finite", [Wrong("nan", "nan", "The score is not used in any operation: it is left out.")]
    ),
    "value": Choice(
        "nan", [Wrong("finite", "finite", "Its weight is 0. What is that times the value?")]
    ),
    "large": Choice(
        "finite", [Wrong("nan", "nan", "The value is large, but it is a number. Times 0 it is?")]
    ),
}

# ---------------------------------------------- 6.9: causal_weights(U, pos_q, pos_k)


def half(*rows: tuple[int, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Divide a matrix of integers by 2."""
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in rows)


def _softmax(U, axis=1):
    e = np.exp(U - U.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _visible(pos_q, pos_k):
    return pos_k[None, :] <= pos_q[:, None]


def _maximum_of_all(U, pos_q, pos_k):
    e = np.exp(U - U.max(axis=1, keepdims=True)) * _visible(pos_q, pos_k)
    return e / e.sum(axis=1, keepdims=True)


def _over(U, allowed):
    return _softmax(np.where(allowed, U, -np.inf))


causal_weights = Program(
    name="causal_weights",
    shapes={"U": "T S", "pos_q": "T", "pos_k": "S"},
    returns="T S",
    right=lambda U, pos_q, pos_k: exact.softmax(exact.matrix(U), causal(pos_q, pos_k)),
    inputs=[
        (half((0, 1, 3), (2, -1, 1)), (1, 2), (0, 1, 2)),
        (half((1, 0, 2, 1), (0, 3, 1, 2), (2, 2, 1, 0)), (5, 3, 4), (4, 5, 2, 3)),
        (((1, 1000, 2), (-2001, 1, -2000)), (2, 6), (1, 7, 2)),
        (half((2, 1, 0, 1), (0, 1, 1, 2)), (4, 2), (0, 1, 2, 3)),
    ],
    wrong=[
        Wrong(
            "maximum of all",
            _maximum_of_all,
            "the maximum was taken over all keys. If a forbidden score is the largest, the visible "
            "exponentials underflow.",
        ),
        Wrong(
            "triangle",
            lambda U, pos_q, pos_k: _over(U, np.tril(np.ones(U.shape, bool))),
            "this is a triangle at the upper left: the positions were not used.",
        ),
        Wrong(
            "lower right",
            lambda U, pos_q, pos_k: _over(U, np.tril(np.ones(U.shape, bool), len(U[0]) - len(U))),
            "this is a triangle at the lower right: the positions were not used.",
        ),
        Wrong(
            "strict",
            lambda U, pos_q, pos_k: _over(U, pos_k[None, :] < pos_q[:, None]),
            "a query may read the key at its own position too.",
        ),
        Wrong(
            "inverted",
            lambda U, pos_q, pos_k: _over(U, ~_visible(pos_q, pos_k)),
            "the mask is inverted: these queries read the later keys.",
        ),
        Wrong("no mask", lambda U, pos_q, pos_k: _softmax(U), "there is no mask in this."),
        Wrong(
            "finite fill",
            lambda U, pos_q, pos_k: _softmax(np.where(_visible(pos_q, pos_k), U, -1000)),
            "a finite number stands for the forbidden scores. It wins where the visible ones lie "
            "far below it.",
        ),
        Wrong(
            "after softmax",
            lambda U, pos_q, pos_k: _softmax(U) * _visible(pos_q, pos_k),
            "the weights were set to 0 after softmax: these rows do not sum to 1.",
        ),
        Wrong(
            "times zero",
            lambda U, pos_q, pos_k: _softmax(U * _visible(pos_q, pos_k)),
            "a forbidden score was set to 0, and its exponential is 1.",
        ),
        Wrong(
            "columns",
            lambda U, pos_q, pos_k: _softmax(np.where(_visible(pos_q, pos_k), U, -np.inf), axis=0),
            "normalised over the queries. Each query has its own softmax.",
        ),
    ],
)

# ---------------------------------------------- 6.10: masked_read(U, J, V)


def _masked_read(U: tuple, J: tuple, V: tuple) -> sympy.Matrix:
    allowed = [[x == 1 for x in row] for row in J]
    real = [any(row) for row in allowed]
    return exact.softmax(exact.matrix(U), allowed, query_valid=real) * exact.matrix(V)


def _zero_rows(U, J, m):
    e = np.where(J == 1, np.exp(np.where(J == 1, U, 0) - m), 0)
    z = e.sum(axis=1, keepdims=True)
    return e / np.where(z == 0, 1, z)


def _row_maximum(U, J):
    m = np.where(J == 1, U, -np.inf).max(axis=1, keepdims=True)
    return np.where(np.isinf(m), 0, m)


def _empty_rows_apart(U, J):
    e = np.exp(U - U.max(axis=1, keepdims=True)) * J
    return np.where(J.any(axis=1, keepdims=True), e / e.sum(axis=1, keepdims=True), 0)


masked_read = Program(
    name="masked_read",
    shapes={"U": "T S", "J": "T S", "V": "S d_v"},
    returns="T d_v",
    right=_masked_read,
    inputs=[
        (
            half((0, 1, 3), (2, -1, 1)),
            ((1, 1, 0), (0, 0, 0)),
            half((2, 0, 1, 4), (0, 4, 1, -2), (2, 2, -3, 0)),
        ),
        (
            half((1, 0, 2, 1), (0, 3, 1, 2), (2, 2, 1, 0)),
            ((0, 0, 0, 0), (1, 0, 1, 1), (0, 1, 1, 0)),
            half((1, 0), (0, 3), (5, 1), (-2, 2)),
        ),
        (
            ((1000, 1001), (-600, 1000), (2, 1)),
            ((1, 1), (1, 0), (0, 0)),
            ((1, 0, 3, 2), (0, 2, 1, -4)),
        ),
        (((1000, 7, 1001),), ((1, 0, 1),), ((1, 0), (5, 5), (0, 2))),
    ],
    wrong=[
        Wrong(
            "uniform",
            lambda U, J, V: _softmax(np.where(J == 1, U, -1e9)) @ V,
            "a row without a key reads all keys equally: one finite number stands for all its "
            "scores.",
        ),
        Wrong(
            "nan rows",
            lambda U, J, V: _softmax(np.where(J == 1, U, -np.inf)) @ V,
            "a row without a key is undefined: its maximum is minus infinity.",
        ),
        Wrong(
            "added",
            lambda U, J, V: _softmax(U + np.where(J == 1, 0, -1e9)) @ V,
            "one number was added to all scores of a row without a key. Softmax does not see that.",
        ),
        Wrong(
            "inverted",
            lambda U, J, V: _zero_rows(U, 1 - J, _row_maximum(U, 1 - J)) @ V,
            "the mask is inverted: 1 means may read.",
        ),
        Wrong(
            "after softmax",
            lambda U, J, V: (_softmax(U) * J) @ V,
            "the weights were set to 0 after softmax and not normalised again.",
        ),
        Wrong(
            "overflow",
            lambda U, J, V: _zero_rows(U, J, 0) @ V,
            "exp overflows for scores near 1000. Subtract each row's maximum first.",
        ),
        Wrong(
            "maximum of all",
            lambda U, J, V: _zero_rows(U, J, U.max(axis=1, keepdims=True)) @ V,
            "the maximum was taken over all keys. If a forbidden score is the largest, the visible "
            "exponentials underflow.",
        ),
        Wrong(
            "maximum of all, empty rows apart",
            lambda U, J, V: _empty_rows_apart(U, J) @ V,
            "in a row with a key the sum of the exponentials is 0: the maximum that was subtracted "
            "is that of a forbidden score.",
        ),
        Wrong("no mask", lambda U, J, V: _softmax(U) @ V, "there is no mask in this."),
        Wrong(
            "weights",
            lambda U, J, V: _zero_rows(U, J, _row_maximum(U, J)),
            "these are the weights. They still read $V$.",
        ),
        Wrong(
            "columns",
            lambda U, J, V: _zero_rows(U.T, J.T, _row_maximum(U.T, J.T)).T @ V,
            "normalised over the queries. Each query has its own softmax.",
        ),
    ],
)

EXERCISES = {
    "6.1": cells,
    "6.2": block_of_two,
    "6.3": polarity,
    "6.4": three_ways,
    "6.5": nothing_to_read,
    "6.6": sides,
    "6.7": leak,
    "6.8": nan_or_not,
    "6.9": {"answer": causal_weights},
    "6.10": {"answer": masked_read},
}
