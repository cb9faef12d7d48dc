"""The exercises of chapter 12, what attention cannot say.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, log

from attnbook import exact
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 12.1: pi = (3, 1, 2)

P = sympy.Matrix([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
X = sympy.Matrix([10, 20, 30])
U = sympy.Matrix(3, 3, range(1, 10))


def corner(M: sympy.MatrixBase) -> sympy.Expr:
    """Return the entry (1, 2) of a table."""
    return M[0, 1]


reordering = {
    "column": Number(
        tuple(P * X),
        [
            Wrong("inverse", tuple(P.T * X), "that is $P^T X$: it puts row 1 at place $π(1)$."),
            Wrong("unchanged", tuple(X), "these are the rows in their old order."),
            Wrong("reversed", tuple(X[::-1]), "this is the order backwards."),
            Wrong("places", (3, 1, 2), "these are the places. Which entries of $X$ stand there?"),
        ],
    ),
    "entry": Number(
        corner(P * U * P.T),
        [
            Wrong("rows only", corner(P * U), "the rows were reordered, and not the columns."),
            Wrong("columns only", corner(U * P.T), "the columns were reordered, and not the rows."),
            Wrong("inverse", corner(P.T * U * P), "that is the entry of $P^T U P$."),
            Wrong(
                "no transpose",
                corner(P * U * P),
                "that is the entry of $P U P$: the columns went the other way.",
            ),
            Wrong("unchanged", corner(U), "that is the entry of $U$ itself."),
            Wrong("swapped", U[0, 2], "row and column were exchanged."),
        ],
    ),
}

# ---------------------------------------------- 12.2: which property

EQUIVARIANT, INVARIANT, NEITHER = "equivariant", "invariant", "neither"


def property_of(right: str, **messages: str) -> Choice:
    """Return the choice between the three words, with what is said about the wrong ones."""
    return Choice(right, [Wrong(word, word, message) for word, message in messages.items()])


properties = {
    "a": property_of(
        EQUIVARIANT,
        invariant="Each word keeps its output. At which place does that output stand afterwards?",
        neither="Nothing here knows places. What does the proof of section 2 say?",
    ),
    "b": property_of(
        INVARIANT,
        equivariant="The mean is one row: there is nothing to reorder.",
        neither="A sum does not depend on the order of its terms.",
    ),
    "c": property_of(
        NEITHER,
        equivariant="Which mask would have to be used for the reordered rows?",
        invariant="The first word reads itself alone. Another word is now the first.",
    ),
    "d": property_of(
        INVARIANT,
        equivariant="The output has one row for each query, and the queries stay.",
        neither="Keys and values move together, and every denominator is a sum over all keys.",
    ),
    "e": property_of(
        EQUIVARIANT,
        invariant="Each word keeps its output. At which place does that output stand afterwards?",
        neither="What is added, and what acts on each row by itself, keeps the property.",
    ),
    "f": property_of(
        NEITHER,
        equivariant="One row comes out. Whose output is it, before and after?",
        invariant="Another word stands at the last place now.",
    ),
}

# ---------------------------------------------- 12.3: counting with a causal mask

counting = {
    "place": Number(
        8,
        [
            Wrong("before", 7, "that is the number of keys before the place; it reads itself too."),
            Wrong("after", 9, "it reads itself too, so one key fewer is needed."),
            Wrong("weight", Rational(1, 8), "that is the weight. How many keys have it?"),
        ],
    ),
    "masked": Number(
        Rational(3 + 1 + 1 + 1, 4),
        [
            Wrong("unmasked", Rational(4, 3), "that is the answer without the mask, 6 places."),
            Wrong("mark only", Rational(3, 4), "the other values are 1, not 0."),
            Wrong("before", Rational(3 + 1 + 1, 3), "the place reads itself too."),
            Wrong("sum", 6, "that is the sum of the values. Each has a weight."),
            Wrong("own value", 1, "that is the value of the place itself."),
        ],
    ),
    "unmasked": Number(
        Rational(3 + 5, 6),
        [
            Wrong("masked", Rational(3, 2), "that is the answer under the mask."),
            Wrong("mark only", Rational(3, 6), "the other values are 1, not 0."),
            Wrong("without itself", Rational(3 + 4, 5), "the place reads itself too."),
            Wrong("sum", 8, "that is the sum of the values. Each has a weight."),
        ],
    ),
}

# ---------------------------------------------- 12.4: scores (log 3, 0, 0), key 2 twice

once = exact.softmax([log(3), 0, 0])
twice = exact.softmax([log(3), 0, 0, 0])
added = log(2)
copies = {
    "first": Number(
        twice[0],
        [
            Wrong("once", once[0], "that is its weight before the key was doubled."),
            Wrong("score", log(3), "that is its score."),
            Wrong("no exponential", 1, "the scores were divided by their sum."),
            Wrong(
                "twice the score",
                exact.softmax([log(3), log(2) + 1, 0])[0],
                "the doubled key was given a score that is too large.",
            ),
            Wrong("ratio", 3, "that is the ratio to the weight of another key."),
        ],
    ),
    "copies": Number(
        2 * twice[1],
        [
            Wrong("one copy", twice[1], "that is one copy. The weight of both is asked for."),
            Wrong("once", once[1], "that is the weight of the key when it stands once."),
            Wrong(
                "not normalised",
                2 * once[1],
                "the weight was doubled, but the others have to give way: rows sum to 1.",
            ),
            Wrong("exponentials", 2, "that is the sum of the two exponentials."),
        ],
    ),
    "added": Number(
        added,
        [
            Wrong("factor", 2, "that is the factor of the exponential, not what is added."),
            Wrong("sign", -added, "the sign is wrong: two copies weigh more than one."),
            Wrong("one", 1, "adding 1 multiplies the exponential by $e$."),
            Wrong("log 3", log(3), "that is what makes it as heavy as the first key."),
            Wrong("weight", Rational(1, 3), "that is the weight of the two copies."),
            Wrong("nothing", 0, "two equal keys are not the same as one."),
        ],
    ),
}

# ---------------------------------------------- 12.5: free directions


def free(values: list, visible: int | None = None) -> int:
    """Return the number of independent rows delta with delta [V 1] = 0."""
    V = sympy.Matrix(values[:visible])
    return len(V.row_join(sympy.ones(V.rows, 1)).T.nullspace())


PLANE = [[0, 0], [1, 0], [0, 1], [2, 1], [1, 3], [-1, 1], [2, 2]]
LINE = [[t, 2 * t + 1] for t in range(7)]
INDEPENDENT = [[int(i == j) for j in range(8)] for i in range(5)]
NO_SUM = "the condition that weights sum to 1 was forgotten: that is $S$ minus the rank of $V$."
directions = {
    "a": Number(
        free(PLANE),
        [
            Wrong("no row sum", 7 - 2, NO_SUM),
            Wrong("rank", 3, "that is the rank. It is what the output fixes, not what is free."),
            Wrong("all", 7, "some directions do change the output."),
            Wrong("sum only", 7 - 1, "only the row sum was kept, not the output."),
            Wrong("width", 2, "that is the width of the values."),
        ],
    ),
    "b": Number(
        free(LINE),
        [
            Wrong("plane", 7 - 3, "that holds for values that are not all on one line."),
            Wrong("sum only", 7 - 1, "that holds for values that are all equal."),
            Wrong("rank", 2, "that is the rank. It is what the output fixes, not what is free."),
            Wrong("all", 7, "some directions do change the output."),
        ],
    ),
    "c": Number(
        free(INDEPENDENT),
        [
            Wrong("width", 8 - 5, "the number of columns does not count here, but their rank."),
            Wrong("sum only", 5 - 1, "only the row sum was kept, not the output."),
            Wrong("negative", 5 - 8 - 1, "a number of directions is not negative."),
            Wrong(
                "negative, no row sum",
                5 - 8,
                "a number of directions is not negative, and the weights sum to 1.",
            ),
            Wrong("rank", 5, "that is the rank. It is what the output fixes, not what is free."),
            Wrong("one", 1, "would it change some weights and keep the output?"),
        ],
    ),
    "d": Number(
        free(PLANE, visible=3),
        [
            Wrong("no mask", 7 - 3, "that holds for seven visible keys."),
            Wrong("masked keys", 7 - 3 + 3, "that counts keys, not directions."),
            Wrong("no row sum", 3 - 2, NO_SUM),
            Wrong("sum only", 3 - 1, "only the row sum was kept, not the output."),
            Wrong("rank", 3, "that is the rank. It is what the output fixes, not what is free."),
        ],
    ),
}

# ---------------------------------------------- 12.6: values 0, 1, 3 and a third weight of 1/6

a_6, v_6, third = (Rational(1, 2), Rational(1, 4), Rational(1, 4)), (0, 1, 3), Rational(1, 6)
second = sum(a * v for a, v in zip(a_6, v_6, strict=True)) - 3 * third
moved = a_6[2] - third
other_weights = Number(
    (1 - second - third, second, third),
    [
        Wrong(
            "normalised again",
            (*(a * (1 - third) / (1 - a_6[2]) for a in a_6[:2]), third),
            "the first two were scaled up: the sum is right, the output is not.",
        ),
        Wrong(
            "to the first",
            (a_6[0] + moved, a_6[1], third),
            "what the third weight lost went to the first: the output is smaller now.",
        ),
        Wrong(
            "to the second",
            (a_6[0], a_6[1] + moved, third),
            "what the third weight lost went to the second: the output is smaller now.",
        ),
        Wrong(
            "no row sum",
            (a_6[0], second, third),
            "the output is right, but the weights do not sum to 1.",
        ),
        Wrong("before", a_6, "these are the weights that were given."),
        Wrong(
            "other output",
            (1 - third - third, third, third),
            "two equal weights were guessed. What do they read?",
        ),
    ],
)

# ---------------------------------------------- 12.7: three interventions

a_7 = exact.row([Rational(1, 2), Rational(1, 4), Rational(1, 4)])
V_7 = exact.matrix([[4, 0], [0, 4], [0, 8]])
o = a_7 * V_7
mean = sympy.ones(1, 3) * V_7 / 3
rest = (o - a_7[0] * V_7[0, :]) / (1 - a_7[0])
v = V_7[0, :]

interventions = {
    "zero": Number(
        tuple(-a_7[0] * v),
        [
            Wrong("after", tuple(o - a_7[0] * v), "that is the new output. The change is asked."),
            Wrong("sign", tuple(a_7[0] * v), "the sign is wrong: new minus old."),
            Wrong("no weight", tuple(-v), "the value enters with its weight."),
            Wrong("masked", tuple(rest - o), "that is the change when the key is masked."),
        ],
    ),
    "mean": Number(
        tuple(a_7[0] * (mean - v)),
        [
            Wrong("after", tuple(o + a_7[0] * (mean - v)), "that is the new output, not a change."),
            Wrong("sign", tuple(a_7[0] * (v - mean)), "the sign is wrong: new minus old."),
            Wrong("no weight", tuple(mean - v), "the value enters with its weight."),
            Wrong("the output", tuple(a_7[0] * (o - v)), "the mean of the values is not $o$."),
            Wrong(
                "mean of the others",
                tuple(a_7[0] * (rest - v)),
                "the mean is that of all three values.",
            ),
        ],
    ),
    "masked": Number(
        tuple(rest - o),
        [
            Wrong("after", tuple(rest), "that is the new output. The change is asked for."),
            Wrong("not normalised", tuple(-a_7[0] * v), "the other weights have to grow."),
            Wrong("sign", tuple(o - rest), "the sign is wrong: new minus old."),
            Wrong(
                "divided by the weight",
                tuple((o - v) / a_7[0]),
                "the factor is $a_1$ divided by $1 − a_1$.",
            ),
            Wrong("no factor o", tuple(-a_7[0] / (1 - a_7[0]) * v), "the output $o$ is missing."),
        ],
    ),
    "unnoticed": Number(
        tuple(rest),
        [
            Wrong("this output", tuple(o), "with another first value the output is another one."),
            Wrong("zero", (0, 0), "masking a zero lets the others grow all the same."),
            Wrong("mean", tuple(mean), "the other two keys do not read this."),
            Wrong("sum", (0, 3), "the other weights grow when the key is masked."),
        ],
    ),
}

# ---------------------------------------------- 12.8: undo(O, order)


def half(*rows: tuple[int | Fraction, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Divide a matrix by 2."""
    return tuple(tuple(Fraction(entry) / 2 for entry in row) for row in rows)


def _undo(O: tuple, order: tuple) -> tuple:
    places = dict(zip(order, O, strict=True))
    return tuple(places[place] for place in range(len(order)))


undo = Program(
    name="undo",
    shapes={"O": "T d_v", "order": "T"},
    returns="T d_v",
    right=_undo,
    inputs=[
        (half((1, 4), (-3, 2), (5, 7)), (2, 0, 1)),
        (half((1, 5, 2), (-2, 3, 9), (4, -1, 7), (8, 6, -5)), (2, 0, 3, 1)),
        (((3, 1, 8, -2), (5, 9, 2, 7), (-4, 6, 11, 12)), (1, 2, 0)),
        (((3, 10), (5, 1), (-4, 7), (2, 8)), (1, 3, 0, 2)),
    ],
    wrong=[
        Wrong("applied again", lambda O, order: O[order], "the order was applied a second time."),
        Wrong("left", lambda O, order: O, "the rows still stand in the new order."),
        Wrong("reversed", lambda O, order: O[::-1], "the rows were turned around, last first."),
        Wrong("sorted", lambda O, order: np.sort(O, axis=0), "the numbers were sorted, not rows."),
        Wrong(
            "columns",
            lambda O, order: O[:, np.argsort(order[: O.shape[1]])],
            "the features were reordered. Words are rows.",
        ),
        Wrong(
            "from one",
            lambda O, order: O[np.argsort(order) - 1],
            "every place is off by one: places count from 0.",
        ),
    ],
)

# ---------------------------------------------- 12.9: contributions(A, V, W_O)


def _contributions(A: tuple, V: tuple, W_O: tuple) -> tuple:
    Y = exact.matrix(V) * exact.matrix(W_O)
    lengths = [Y[j, :].norm() for j in range(Y.rows)]
    return tuple(
        tuple(a * length for a, length in zip(row, lengths, strict=True))
        for row in exact.matrix(A).tolist()
    )


def _lengths(V):
    return np.linalg.norm(V, axis=1)


contributions = Program(
    name="contributions",
    shapes={"A": "T S", "V": "S d_v", "W_O": "d_v d"},
    returns="T S",
    right=_contributions,
    inputs=[
        (
            half(
                (1, 1, 0),
            ),
            half((2, 1), (0, -4), (3, 2)),
            half((2, 0, 1, 1), (0, 1, -2, 4)),
        ),
        (
            half((1, 1), (0, 2), (2, 0), (Fraction(1, 2), Fraction(3, 2))),
            half((2, -1, 4), (1, 6, 2)),
            half((1,), (3,), (-2,)),
        ),
        (
            ((1, 0, 0, 0), (0, 0, 1, 0)),
            ((1, 2, -1), (0, 3, 1), (-4, 1, 2), (2, 2, 5)),
            ((2,), (1,), (-1,)),
        ),
    ],
    wrong=[
        Wrong("weights", lambda A, V, W_O: A, "these are the weights alone."),
        Wrong(
            "before the projection",
            lambda A, V, W_O: A * _lengths(V),
            "these are the lengths of $a_{ij} v_j$: they depend on the basis of the values.",
        ),
        Wrong(
            "squares",
            lambda A, V, W_O: A * _lengths(V @ W_O) ** 2,
            "the square root of the length is missing.",
        ),
        Wrong(
            "summands",
            lambda A, V, W_O: A * np.abs(V @ W_O).sum(axis=1),
            "the absolute values were added. A length is the root of a sum of squares.",
        ),
        Wrong(
            "signed sum",
            lambda A, V, W_O: A * (V @ W_O).sum(axis=1),
            "the features were added up, and these may cancel.",
        ),
        Wrong(
            "shares",
            lambda A, V, W_O: (
                A * _lengths(V @ W_O) / (A * _lengths(V @ W_O)).sum(axis=1, keepdims=True)
            ),
            "these are shares that sum to 1 in each row. The lengths themselves are asked for.",
        ),
        Wrong(
            "no weights",
            lambda A, V, W_O: np.tile(_lengths(V @ W_O), (len(A), 1)),
            "the weights are missing: every query has the same row.",
        ),
        Wrong(
            "product of lengths",
            lambda A, V, W_O: A * _lengths(V) * np.linalg.norm(W_O),
            "the length of a product is not the product of the lengths.",
        ),
    ],
)

# ---------------------------------------------- 12.10: which test fails first

TESTS = {
    "row sums": "Do the rows of this head sum to 1?",
    "forbidden": "Are the weights of forbidden keys 0 in this head?",
    "future": "Does an earlier output feel a later row here, and do the tests before it pass?",
    "numbers": "One of the structural tests notices it before.",
}


def first_test(right: str) -> Choice:
    """Return the choice of a test, with a question back for each wrong one."""
    return Choice(right, [Wrong(test, test, said) for test, said in TESTS.items() if test != right])


tests = {
    "a": first_test("numbers"),
    "b": first_test("row sums"),
    "c": first_test("forbidden"),
    "d": first_test("future"),
    "e": first_test("numbers"),
}

# ---------------------------------------------- 12.13: dog bites man, dog sees dog

EQUAL, MAY_DIFFER, DIFFER = "equal", "may differ", "always differ"
same_word = {
    "bites": Choice(
        EQUAL,
        [
            Wrong("may", MAY_DIFFER, "Which keys does bites read in the two sentences?"),
            Wrong("differ", DIFFER, "The sentences differ for us. What does the head see of that?"),
        ],
    ),
    "dogs": Choice(
        EQUAL,
        [
            Wrong("may", MAY_DIFFER, "Let $P$ exchange places 1 and 3. What is $P X$?"),
            Wrong("differ", DIFFER, "What could tell the head which of the two rows comes first?"),
        ],
    ),
    "masked": Choice(
        MAY_DIFFER,
        [
            Wrong("equal", EQUAL, "Which keys does place 1 read now, and which place 3?"),
            Wrong("differ", DIFFER, "What if dog and sees have the same value?"),
        ],
    ),
}

EXERCISES = {
    "12.1": reordering,
    "12.2": properties,
    "12.3": counting,
    "12.4": copies,
    "12.5": directions,
    "12.6": {"answer": other_weights},
    "12.7": interventions,
    "12.8": {"answer": undo},
    "12.9": {"answer": contributions},
    "12.10": tests,
    "12.13": same_word,
}
