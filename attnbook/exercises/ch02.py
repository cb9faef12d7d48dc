"""The exercises of chapter 02, embeddings as directions.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

import math
from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, sqrt

from attnbook import exact
from attnbook.directions import most_lines, most_points
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program


def dot(x, y):
    """Return the dot product of two rows, exactly."""
    return sum(a * b for a, b in zip(x, y, strict=True))


def cosine(x, y):
    """Return the cosine of the angle of two rows, exactly."""
    return dot(x, y) / sqrt(dot(x, x) * dot(y, y))


def distance(x, y):
    """Return the distance of two rows, exactly."""
    return sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


# ---------------------------------------------- 2.1: near by angle, near by distance

x, y, z = (2, 1, 2), (6, 3, 6), (1, 2, 2)
near = {
    "cosine_z": Number(
        cosine(x, z),
        [
            Wrong("dot product", dot(x, z), "that is the dot product. Divide it by both lengths."),
            Wrong("one length", Rational(dot(x, z), 3), "only one of the lengths was divided out."),
            Wrong("other pair", cosine(x, y), "that is the cosine of $x$ and $y$."),
            Wrong("sine", sqrt(1 - cosine(x, z) ** 2), "that is the sine of the angle."),
        ],
    ),
    "distance_y": Number(
        distance(x, y),
        [
            Wrong("squared", distance(x, y) ** 2, "that is the square of the distance."),
            Wrong("length", sqrt(dot(y, y)), "that is the length of $y$."),
            Wrong("other pair", distance(x, z), "that is the distance of $x$ and $z$."),
            Wrong("sum", 10, "the differences were added. Square them, add, take the root."),
        ],
    ),
    "distance_z": Number(
        distance(x, z),
        [
            Wrong("squared", distance(x, z) ** 2, "that is the square of the distance."),
            Wrong("other pair", distance(x, y), "that is the distance of $x$ and $y$."),
            Wrong("signed sum", 0, "differences of both signs cancel. Square them first."),
        ],
    ),
    "by_angle": Choice(
        "y",
        [
            Wrong("z", "z", "Compare the cosines. What is $y$ as a multiple of $x$?"),
            Wrong("tie", "tie", "The two cosines differ."),
        ],
    ),
    "by_distance": Choice(
        "z",
        [
            Wrong("y", "y", "Compare the distances, not the angles."),
            Wrong("tie", "tie", "The two distances differ."),
        ],
    ),
}

# ---------------------------------------------- 2.2: what a change of basis does

STAYS, MAY, MUST = "stays", "may change", "always changes"
change = {
    "dot_product": Choice(
        STAYS,
        [
            Wrong("may", MAY, "Insert $R R^⊤ = I$ between the two rows."),
            Wrong("must", MUST, "What is $x R (y R)^⊤$?"),
        ],
    ),
    "largest": Choice(
        MAY,
        [
            Wrong("stays", STAYS, "Turn the axes by 90 degrees: which coordinate is the largest?"),
            Wrong(
                "must", MUST, "There are turns that are small, and $R = I$ is one of the choices."
            ),
        ],
    ),
    "distance": Choice(
        STAYS,
        [
            Wrong("may", MAY, "A distance is made of dot products."),
            Wrong("must", MUST, "Turning a sheet of paper moves no two points apart."),
        ],
    ),
    "angle_invertible": Choice(
        MAY,
        [
            Wrong("stays", STAYS, "Stretch one of two axes: what happens to a diagonal?"),
            Wrong("must", MUST, "Every orthogonal matrix is invertible too."),
        ],
    ),
}

# ---------------------------------------------- 2.3: reading a feature

x, d = (3, 1, 2), (2, -1, 2)
reading = {
    "dot_product": Number(
        dot(x, d),
        [
            Wrong("sign lost", 11, "the second product is negative."),
            Wrong("along d", Rational(dot(x, d), 3), "that is the length along $d$."),
            Wrong("largest", 6, "that is one of the products. Add all three."),
        ],
    ),
    "length": Number(
        Rational(dot(x, d), 3),
        [
            Wrong("dot product", dot(x, d), "that depends on how long $d$ was written."),
            Wrong("divided twice", 1, "divide by the length of $d$, not by its square."),
            Wrong("by x", dot(x, d) / sqrt(14), "the length of $x$ was divided out instead."),
            Wrong("cosine", cosine(x, d), "that is the cosine."),
        ],
    ),
    "cosine": Number(
        cosine(x, d),
        [
            Wrong("dot product", dot(x, d), "that is the dot product."),
            Wrong("along d", Rational(dot(x, d), 3), "the length of $x$ is still in it."),
            Wrong("by x", dot(x, d) / sqrt(14), "the length of $d$ is still in it."),
            Wrong("squares", Rational(dot(x, d), 9 * 14), "lengths are roots."),
        ],
    ),
}

# ---------------------------------------------- 2.4: n = 64, |cos| or cos at most 1/10

n, c = 64, Fraction(1, 10)
how_many = {
    "lines": Number(
        most_lines(n, c),
        [
            Wrong("orthogonal", n, "that many can be orthogonal. A little slack allows more."),
            Wrong("no numerator", n / (1 - n * c**2), "the factor $1 − c^2$ is missing."),
            Wrong("points", most_points(n, c), "that counts points, where obtuse angles are free."),
            Wrong("doubled", 2 * n, "these are the vectors of a basis and their negatives."),
            Wrong("no n", int(n * (1 - c**2)), "the denominator $1 − n c^2$ is missing."),
        ],
    ),
    "points": Number(
        most_points(n, c),
        [
            Wrong("lines", most_lines(n, c), "that counts lines."),
            Wrong("twice the lines", 2 * most_lines(n, c), "points need not be opposite."),
            Wrong("c squared", n * (1 - c**2) * (2 + (n + 1) * c) / (1 - n * c**2), "the first "
                  "factor is $1 − c$, not $1 − c^2$."),
            Wrong("n, not n + 1", n * (1 - c) * (2 + n * c) / (1 - n * c**2), "the factor in the "
                  "middle is $2 + (n + 1) c$."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 2.5: the diagonals of an icosahedron

golden = (1 + sqrt(5)) / 2
ICOSAHEDRON = tuple(
    tuple(entry for entry in row)
    for a in (1, -1)
    for row in ((0, a, golden), (a, golden, 0), (golden, 0, a))
)
icosahedron = {
    "largest": Number(
        1 / sqrt(5),
        [
            Wrong("no lengths", golden, "that is a dot product. The vectors are not unit vectors."),
            Wrong("one length", sympy.radsimp(golden / sqrt(1 + golden**2)), "only one of the two "
                  "lengths was divided out."),
            Wrong("square", Rational(1, 5), "that is the square of the cosine."),
            Wrong("angle", math.degrees(math.acos(math.sqrt(1 / 5))), "that is the angle in "
                  "degrees, not its cosine."),
            Wrong("with itself", 1, "that is a vector with itself."),
            Wrong("orthogonal", 0, "no two of these are orthogonal."),
        ],
    ),
    "seven": Number(
        sqrt(2) / 3,
        [
            Wrong("six", 1 / sqrt(5), "that is (2.5) for six lines."),
            Wrong("square", Rational(2, 9), "(2.5) has a root."),
            Wrong("N, not N − 1", 2 / sqrt(21), "the denominator is $n (N − 1)$."),
            Wrong("no n", sqrt(Rational(2, 3)), "the factor $n$ in the denominator is missing."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 2.6: largest_cosine(X)


def tenths(*rows):
    """Divide a matrix of integers by 10."""
    return tuple(tuple(Fraction(entry, 10) for entry in row) for row in rows)


def _largest_cosine(X):
    return max(
        sympy.Abs(cosine(exact.row(X[i]), exact.row(X[j]))) for i in range(len(X)) for j in range(i)
    )


def _cosines(X):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T


def _columns(X):
    return X / np.linalg.norm(X, axis=0)


def _off(G):
    return G[~np.eye(len(G), dtype=bool)]


largest_cosine = Program(
    name="largest_cosine",
    shapes={"X": "N n"},
    returns="",
    right=_largest_cosine,
    inputs=[  # neither first nor last row is in every nearest pair; one pair is on one line
        (tenths((0, 5, 20), (-9, 1, -4), (3, -3, 1), (10, 2, 3)),),
        (tenths((15, 5), (5, 4), (-20, 10)),),
        (((1, 2, 0, 3), (2, -1, 1, 0), (-1, -1, 2, -2)),),
        (tenths((7, 2, -4), (-5, 11, 3)),),
        (tenths((0, 10), (5, 5), (0, -20)),),
    ],
    wrong=[
        Wrong("with itself", lambda X: np.abs(_cosines(X)).max(), "a vector was compared with "
              "itself: leave out the diagonal."),
        Wrong("no sign", lambda X: _off(_cosines(X)).max(), "a line has no sign: take absolute "
              "values before the maximum."),
        Wrong("no lengths", lambda X: np.abs(_off(X @ X.T)).max(), "these are dot products: divide "
              "by the lengths of both rows."),
        Wrong("one length", lambda X: np.abs(_off(X @ X.T / np.linalg.norm(X, axis=1))).max(),
              "only one of the two lengths was divided out."),
        Wrong("columns", lambda X: np.abs(_off(_cosines(X.T))).max(), "columns were compared. The "
              "vectors are the rows."),
        Wrong("lengths of columns", lambda X: np.abs(_off(_columns(X) @ _columns(X).T)).max(),
              "the columns were divided by their lengths. The vectors are the rows: axis=1."),
        Wrong("length of the whole", lambda X: np.abs(_off(X @ X.T)).max() / (X**2).sum(),
              "the whole matrix was divided by one number. Each row has its own length: axis=1."),
        Wrong("average", lambda X: np.abs(_off(_cosines(X))).mean(), "that is the mean of all "
              "pairs, not the largest."),
        Wrong("squared", lambda X: (_off(_cosines(X)) ** 2).max(), "that is the square of the "
              "cosine."),
        Wrong("angle", lambda X: np.arccos(np.abs(_off(_cosines(X))).max()), "that is the angle, "
              "not its cosine."),
    ],
)  # fmt: skip

# ---------------------------------------------- 2.7: interference, n = 400

n = 400
interference = {
    "equal": Number(
        sqrt(Rational(36, n)),
        [
            Wrong("variance", Rational(36, n), "that is the variance."),
            Wrong("linear", Rational(36, 20), "cosines of both signs cancel: variances add, not "
                  "sizes."),
            Wrong("no k", Rational(1, 20), "that is the interference of one feature."),
            Wrong("inverse", sqrt(Rational(n, 36)), "$k$ and $n$ were exchanged."),
        ],
    ),
    "two": Number(
        Rational(5, 20),
        [
            Wrong("added", Rational(7, 20), "amounts were added. Their squares add."),
            Wrong("variance", Rational(25, n), "that is the variance."),
            Wrong("count", sqrt(Rational(2, n)), "that holds for amounts of 1."),
            Wrong("no root of n", Rational(5, n), "the length of the amounts is divided by $√n$."),
        ],
    ),
    "most": Number(
        25,
        [
            Wrong("linear", 100, "that is $n/4$. The standard deviation has a root."),
            Wrong("root", 5, "that is $√k$ for the $k$ asked for."),
            Wrong("half", 50, "put the standard deviation in, square, and solve for $k$."),
            Wrong("all", n, "at $k = n$ the standard deviation is 1."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 2.8: three directions in the plane

D = sympy.Matrix([[1, 0], [Rational(3, 5), Rational(4, 5)], [0, 1]])
kernel = D.T.nullspace()[0]
kernel = tuple(-5 * entry / kernel[1] for entry in kernel)
three = {
    "amounts": Number(
        kernel,
        [
            Wrong("sign", (-3, -5, -4), "then the three add up instead of cancelling."),
            Wrong("swapped", (4, -5, 3), "the first and the last amount were exchanged."),
            Wrong("not scaled", (Rational(3, 5), -5, Rational(4, 5)), "these cancel one $d_2$, and "
                  "there are five."),
            Wrong("one d_2", (Rational(3, 5), -1, Rational(4, 5)), "these cancel, but the amount "
                  "in the middle is given: it is −5."),
            Wrong("equal", (5, -5, 5), "$5 d_2$ is not $5 d_1 + 5 d_3$."),
        ],
    ),
    "reading": Number(
        dot(D[0, :] + D[2, :], D[1, :]),
        [
            Wrong("amount", 0, "that is the amount. Interference comes on top."),
            Wrong("one of two", Rational(3, 5), "that is the interference of $d_1$ alone."),
            Wrong("other of two", Rational(4, 5), "that is the interference of $d_3$ alone."),
            Wrong("normalised", Rational(7, 5) / sqrt(2), "the length of $x$ was divided out: the "
                  "reading is a dot product."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 2.9: the guarantee for 300 lines and for n = 128

guarantee = {
    "hundred": Number(
        5,
        [
            Wrong("at the threshold", 6, "then a feature that is off can read exactly ½."),
            Wrong("off by the on side", 7, "that is what the features that are on allow, with one "
                  "at ½; those that are off allow less."),
            Wrong("no half", 11, "a reading must stay on its side of ½, not of 1."),
            Wrong("dimensions", 100, "that is $n$. The guarantee depends on $c$."),
        ],
    ),
    "n_128": Number(
        3,
        [
            Wrong("at the threshold", 4, "then a feature that is off can read exactly ½."),
            Wrong("other lines", 7, "that is the number for $n$ = 512, where $c$ = 1/16."),
            Wrong("no root", 31, "$c$ is $√(2/n)$, not $2/n$."),
            Wrong("no two", 5, "$c$ is $√(2/n)$, not $√(1/n)$."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 2.12: five tokens, W_E is 5 x 3

vocabulary, d = 5, 3
one_hot = exact.matrix([[int(i == j) for j in range(vocabulary)] for i in range(vocabulary)])
how_orthogonal = {
    "one_hot": Number(
        dot(one_hot[1, :], one_hot[3, :]),
        [
            Wrong("with itself", dot(one_hot[1, :], one_hot[1, :]), "that is the product of a "
                  "one-hot row with itself."),
            Wrong("distance", distance(one_hot[1, :], one_hot[3, :]), "that is their distance."),
            Wrong("both ones", sum(one_hot[1, :]) + sum(one_hot[3, :]), "the ones were counted. "
                  "Multiply what stands at the same place, then add."),
        ],
    ),
    "orthogonal": Number(
        d,
        [
            Wrong("tokens", vocabulary, "so many one-hot rows are. How long is an embedding?"),
            Wrong("tetrahedron", d + 1, "so many can have equal angles, wider than a right one."),
            Wrong("plane", 2, "so many are in a plane. How long is an embedding?"),
        ],
    ),
}  # fmt: skip

EXERCISES = {
    "2.1": near,
    "2.2": change,
    "2.3": reading,
    "2.4": how_many,
    "2.5": icosahedron,
    "2.6": {"answer": largest_cosine},
    "2.7": interference,
    "2.8": three,
    "2.9": guarantee,
    "2.12": how_orthogonal,
}
