"""The exercises of chapter 01, four views of a product.

Right answers are computed in exact numbers. Each wrong answer is what one misconception leads to
on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational

from attnbook import exact, examples
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program


def column(*entries) -> sympy.Matrix:
    """Return a column vector."""
    return sympy.Matrix(entries)


# ---------------------------------------------- 1.1: A is 4 x 5, B is 5 x 2

m, n, w = 4, 5, 2
counts = {
    "entries": Number(
        m * w,
        [
            Wrong("size of A", m * n, "that is the number of entries of $A$."),
            Wrong("size of B", n * w, "that is the number of entries of $B$."),
            Wrong(
                "products", m * n * w, "that counts products, and each entry is a sum of several."
            ),
            Wrong("shared size", n, "that is what the two factors share. It is summed over."),
        ],
    ),
    "products": Number(
        m * n * w,
        [
            Wrong(
                "entries", m * w, "that is one product for each entry. Each is a sum of several."
            ),
            Wrong("size of A", m * n, "each entry of $A$ is used once for every column of $B$."),
            Wrong("size of B", n * w, "each entry of $B$ is used once for every row of $A$."),
            Wrong("additions too", m * w * (2 * n - 1), "that counts the additions too."),
        ],
    ),
    "layers": Number(
        n,
        [
            Wrong("rows", m, "that is the number of rows of $A$: the row view has 4 parts."),
            Wrong("columns", w, "that is the number of columns of $B$, parts of the column view."),
            Wrong("entries", m * w, "that is the number of entries."),
        ],
    ),
}

# ---------------------------------------------- 1.2: which of four maps is linear

one_is_linear = Choice(
    "f",
    [
        Wrong("shift", "g", "The origin moves: $g(0, 0) = (1, 0)$."),
        Wrong(
            "absolute value",
            "h",
            "A minus sign is lost: $h(−1, 0) = (1, 0)$, which is not $−h(1, 0)$.",
        ),
        Wrong(
            "product",
            "k",
            "Scaling does not get through: $k(2, 2) = (4, 2)$, not $2 k(1, 1) = (2, 2)$.",
        ),
    ],
)

# ---------------------------------------------- 1.3: a quarter turn and a mirror, of (1, 2)

turn, mirror, v = (
    exact.matrix(examples.M_ALGEBRA.turn),
    exact.matrix([[0, 1], [1, 0]]),
    column(1, 2),
)
turned_first, mirrored_first = tuple(mirror * turn * v), tuple(turn * mirror * v)
one_map = [
    Wrong(
        "right turn only",
        tuple(turn.T * v),
        "this is turned to the right, and not mirrored. To the left $(x, y)$ goes to $(−y, x)$.",
    ),
    Wrong("turn only", tuple(turn * v), "this is turned, but not mirrored."),
    Wrong("mirror only", tuple(mirror * v), "this is mirrored, but not turned."),
    Wrong(
        "added", tuple((turn + mirror) * v), "the two images were added: that is no composition."
    ),
]
both_orders = {
    "turn_first": Number(
        turned_first,
        [
            Wrong(
                "other order",
                mirrored_first,
                "this is mirrored first, then turned (or turned to the right, then mirrored).",
            ),
            *one_map,
        ],
    ),
    "mirror_first": Number(
        mirrored_first,
        [
            Wrong(
                "other order",
                turned_first,
                "this is turned first, then mirrored (or mirrored, then turned to the right).",
            ),
            *one_map,
        ],
    ),
}

# ---------------------------------------------- 1.4: diag(3, b) and the quarter turn

a = 3
commuting_stretch = Number(
    a,
    [
        Wrong("one", 1, "diag(3, 1) stretches along $x$ alone: the example of section 6."),
        Wrong("sign", -a, "compare the entries again: both products have one minus sign."),
        Wrong("inverse", Fraction(1, a), "diag(3, 1/3) keeps areas, but the order still matters."),
        Wrong("zero", 0, "diag(3, 0) flattens onto the $x$ axis, and a turn moves that axis."),
    ],
)

# ---------------------------------------------- 1.5: another recipe for the first column of C

A, B = exact.matrix(examples.M_ALGEBRA.A), exact.matrix(examples.M_ALGEBRA.B)
b, null = B[:, 0], 2 * A.nullspace()[0]
other_recipe = b - null * (b[2] / null[2])
recipe = Number(
    tuple(other_recipe),
    [
        Wrong("column of B", tuple(b), "that is the recipe in $B$, whose third entry is not 0."),
        Wrong("dropped", (b[0], b[1], 0), "the third ingredient was dropped: nothing replaces it."),
        Wrong("null vector", tuple(null), "that is a vector with $A n = 0$: add a multiple of it."),
        Wrong(
            "wrong direction",
            tuple(b + null * (b[2] / null[2])),
            "the right vector, with the wrong sign: the third entry became −4.",
        ),
        Wrong(
            "one equation",
            (Rational(-9, 2), 0, 0),
            "that meets the first component, −9, but not the second.",
        ),
    ],
)

# ---------------------------------------------- 1.6: a matrix of rank one

u, v_row = (2, 1, 3), (1, 2, 3)
C = column(*u) * column(*v_row).T
rank_one = {
    "u": Number(
        u,
        [
            Wrong("swapped", v_row, "that is $v$: columns are multiples of $u$."),
            Wrong(
                "row", tuple(C[0, :]), "that is the first row. The columns are multiples of $u$."
            ),
            Wrong(
                "other scale",
                tuple(Rational(x, u[0]) for x in u),
                "with this $u$ the first component of $v$ is not 1.",
            ),
            Wrong("last column", tuple(C[:, 2]), "that column is $v_3 u$, and $v_3$ is not 1."),
        ],
    ),
    "v": Number(
        v_row,
        [
            Wrong("swapped", u, "that is $u$: rows are multiples of $v$."),
            Wrong("row", tuple(C[0, :]), "that is $u_1 v$. Its first entry is not 1."),
            Wrong(
                "inverse",
                tuple(Rational(1, x) for x in v_row),
                "these are quotients. Rows are multiples of $v$.",
            ),
        ],
    ),
}

# ---------------------------------------------- 1.7: what an exchange does

exchanges = {
    "rows_of_X": Choice(
        "rows",
        [
            Wrong("columns", "columns", "Every row goes through $W$ by itself, and stays a row."),
            Wrong("all", "all", "Every row goes through $W$ by itself: two are exchanged."),
            Wrong("none", "none", "Row $i$ of $XW$ is row $i$ of $X$ times $W$."),
        ],
    ),
    "columns_of_W": Choice(
        "columns",
        [
            Wrong("rows", "rows", "Column $k$ of $XW$ is $X$ times column $k$ of $W$."),
            Wrong("all", "all", "Column $k$ of $XW$ needs column $k$ of $W$ and no other."),
            Wrong("none", "none", "The two questions change places, and so do the answers."),
        ],
    ),
    "rows_of_W": Choice(
        "all",
        [
            Wrong("rows", "rows", "A row of $XW$ mixes all rows of $W$, each with its own weight."),
            Wrong("columns", "columns", "No column of $W$ has moved; each has changed inside."),
            Wrong(
                "none", "none", "The weights $x_{ij}$ stay in place and meet another ingredient."
            ),
        ],
    ),
}

# ---------------------------------------------- 1.10: weights in a triangle

V = exact.matrix([[1, 0], [0, 2], [1, 2]])


def barycentric(x, y) -> tuple:
    """Return the weights with sum 1 that mix the rows of V to (x, y)."""
    return tuple(V.row_join(sympy.ones(3, 1)).T.solve(column(x, y, 1)))


o = (Rational(3, 4), 1)
inside = barycentric(*o)
outside = barycentric(0, 0)
in_the_triangle = {
    "weights": Number(
        inside,
        [
            Wrong("equal", (Rational(1, 3),) * 3, "equal weights give the mean, (2/3, 4/3)."),
            Wrong(
                "two values", (o[0], Rational(o[1], 2), 0), "they give $o$, but their sum is 5/4."
            ),
            Wrong("reversed", inside[::-1], "the weights of $v_1$ and $v_3$ are exchanged."),
            Wrong("outputs", tuple(V * column(*o)), "those are the products $v_j · o$: scores."),
        ],
    ),
    "origin": Number(
        outside,
        [
            Wrong("zero", (0, 0, 0), "they give the origin, but their sum is 0."),
            Wrong("no third", (Rational(1, 2), Rational(1, 2), 0), "they give (1/2, 1)."),
            Wrong("sign", tuple(-x for x in outside), "their sum is −1."),
            Wrong("equal", (Rational(1, 3),) * 3, "equal weights give the mean, (2/3, 4/3)."),
        ],
    ),
}

# ---------------------------------------------- 1.11: product(A, B) by layers


def _layers(A, B):
    return [np.outer(A[:, j], B[j]) for j in range(len(B))]


def _half(*rows):
    return tuple(tuple(Fraction(x, 2) for x in row) for row in rows)


by_layers = Program(
    name="product",
    shapes={"A": "m n", "B": "n w"},
    returns="m w",
    right=lambda A, B: exact.matrix(A) * exact.matrix(B),
    inputs=[  # n is never below 3: a loop over three layers gives a result, not an IndexError
        (((1, 2, 4), (3, -1, 2)), ((2, 1, -1, 3), (1, 4, 2, 5), (3, -2, 1, 2))),
        (_half((1, 3, 2), (2, 5, -3), (-1, 4, 1), (3, 0, 5)), _half((3, 1), (5, 2), (-2, 7))),
        (_half((3, 1, 2, -5)), ((1, 2), (3, 5), (2, -1), (4, 7))),
    ],
    wrong=[
        Wrong("last layer", lambda A, B: _layers(A, B)[-1], "this is the last layer. Add them up."),
        Wrong("first layer", lambda A, B: _layers(A, B)[0], "this is the first layer alone."),
        Wrong(
            "last missing",
            lambda A, B: np.sum(_layers(A, B)[:-1], axis=0),
            "the last layer is missing: $j$ runs over all columns of $A$.",
        ),
        Wrong(
            "first missing",
            lambda A, B: np.sum(_layers(A, B)[1:], axis=0),
            "the first layer is missing: code counts from 0.",
        ),
        Wrong(
            "three layers",
            lambda A, B: sum(_layers(A, B)[:3]),
            "three layers are added, whatever the sizes: $j$ runs to $n$, and $n$ is not always 3.",
        ),
        Wrong(
            "mean", lambda A, B: np.mean(_layers(A, B), axis=0), "layers are added, not averaged."
        ),
        Wrong("stacked", lambda A, B: np.array(_layers(A, B)), "the layers were not added up."),
        Wrong("transposed", lambda A, B: (A @ B).T, "this is the transpose: outer(row, column)."),
        Wrong(
            "sums first",
            lambda A, B: np.outer(A.sum(axis=1), B.sum(axis=0)),
            "columns and rows were added before the outer product: that makes one layer.",
        ),
    ],
)

EXERCISES = {
    "1.1": counts,
    "1.2": {"answer": one_is_linear},
    "1.3": both_orders,
    "1.4": {"answer": commuting_stretch},
    "1.5": {"answer": recipe},
    "1.6": rank_one,
    "1.7": exchanges,
    "1.10": in_the_triangle,
    "1.11": {"answer": by_layers},
}
