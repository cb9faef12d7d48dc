"""The exercises of chapter 09, many heads.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, log, sqrt

from attnbook import exact, examples
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 9.1: sizes, d = 512, H = 8

d, H = 512, 8
width = d // H
sizes = {
    "width": Number(
        width,
        [
            Wrong("full", d, "that is the width of all heads together."),
            Wrong("number", H, "that is the number of heads."),
            Wrong("root", sqrt(d), "the width is shared out, not its root taken."),
            Wrong("product", d * H, "heads share the width $d$; they do not add to it."),
        ],
    ),
    "one_head": Number(
        4 * d * width,
        [
            Wrong("three", 3 * d * width, "the block of $W_O$ is missing."),
            Wrong("one matrix", d * width, "that is one of the four matrices."),
            Wrong(
                "squares", 4 * width**2, "a head reads all features of the input, not its share."
            ),
            Wrong("layer", 4 * d**2, "that is the whole layer."),
            Wrong("full width", 4 * d**2 * H, "each head has a fraction of the width $d$."),
        ],
    ),
    "sixteen_heads": Number(
        4 * d**2,
        [
            Wrong("doubled", 8 * d**2, "twice as many heads, but each of half the width."),
            Wrong("halved", 2 * d**2, "half the width, but twice as many heads."),
            Wrong("no W_O", 3 * d**2, "$W_O$ is missing."),
            Wrong("one head", 4 * d * width // 2, "that is one of the sixteen heads."),
        ],
    ),
}

# ---------------------------------------------- 9.2: entry 5 of the query of programming

X, W_Q = exact.matrix(examples.M_SENTENCE.X), exact.matrix(examples.M_SENTENCE.W_Q)
x, column, row = X[3, :], W_Q[:, 4], W_Q[4, :].T
front = slice(0, 3)
which_features = {
    "entry": Number(
        x.dot(column),
        [
            Wrong("row", x.dot(row), "a row of $W_Q$ was used. An entry of $q$ needs a column."),
            Wrong("sliced", x[0, 3:].dot(column[3:, 0]), "features 1 to 3 count as well."),
            Wrong(
                "front only", x[0, front].dot(column[front, 0]), "features 4 to 6 count as well."
            ),
            Wrong("column sum", sum(column), "the column was summed without the token."),
        ],
    ),
    "from_features_1_to_3": Number(
        x[0, front].dot(column[front, 0]),
        [
            Wrong("rest", x[0, 3:].dot(column[3:, 0]), "that comes from features 4 to 6."),
            Wrong("all", x.dot(column), "that is the whole entry."),
            Wrong(
                "row",
                x[0, front].dot(row[front, 0]),
                "a row of $W_Q$ was used. An entry of $q$ needs a column.",
            ),
            Wrong("nothing", 0, "a column of $W_Q$ has an entry for every feature."),
            Wrong("half", x.dot(column) / 2, "the features do not bring equal parts: calculate."),
        ],
    ),
}

# ---------------------------------------------- 9.3: where a number comes from

T, H, d_k = 6, 3, 2
h, t, p = 2, 1, 0  # counted from 0


def place(flat: int) -> tuple[int, int]:
    """Return position and column, counted from 1, of an entry of X W, numbered from 0."""
    return flat // (H * d_k) + 1, flat % (H * d_k) + 1


split_rightly = t + 1, h * d_k + p + 1
at_once = place((h * T + t) * d_k + p)
where_from = {
    "split_rightly": Number(
        split_rightly,
        [
            Wrong("at once", at_once, "that is where it comes from after the wrong reshape."),
            Wrong("head 1", (t + 1, p + 1), "that column belongs to head 1."),
            Wrong("from zero", (t, h * d_k + p), "these are counted from 0."),
            Wrong("swapped", split_rightly[::-1], "position and column are exchanged."),
            Wrong("interleaved", (t + 1, p * H + h + 1), "the columns of a head lie together."),
            Wrong("head as row", (h + 1, t * d_k + p + 1), "row and head are exchanged."),
        ],
    ),
    "at_once": Number(
        at_once,
        [
            Wrong("split rightly", split_rightly, "that is where it comes from if split rightly."),
            Wrong("from zero", tuple(n - 1 for n in at_once), "these are counted from 0."),
            Wrong("swapped", at_once[::-1], "position and column are exchanged."),
            Wrong(
                "rows from one",
                place((h * T + t + 1) * d_k + p),
                "one row too far: row 2 has one row before it.",
            ),
            Wrong(
                "heads from one",
                place(((h - 1) * T + t) * d_k + p),
                "one head too few: head 3 has two heads before it.",
            ),
        ],
    ),
}

# ---------------------------------------------- 9.4: a sum through blocks

o_1, o_2 = exact.row([1, 2]), exact.row([3, -1])
blocks = exact.matrix([[1, 0, 2], [0, 1, 1]]), exact.matrix([[1, 1, 0], [2, 0, 1]])
W_O = sympy.Matrix.vstack(*blocks)
y = tuple(o_1 * blocks[0] + o_2 * blocks[1])
head_2 = tuple(o_2 * blocks[1])
wrong_order = tuple(o_2 * blocks[0] + o_1 * blocks[1])
interleaved = tuple(exact.row([1, 3, 2, -1]) * W_O)
through_blocks = {
    "head_2": Number(
        head_2,
        [
            Wrong("wrong block", tuple(o_2 * blocks[0]), "that is the block of head 1."),
            Wrong("head 1", tuple(o_1 * blocks[0]), "that is what head 1 adds."),
            Wrong("output 1", tuple(o_1 * blocks[1]), "that is the output of head 1, projected."),
            Wrong("all", y, "that is the sum of both heads."),
            Wrong("sign", tuple(-x for x in head_2), "the sign of all entries is wrong."),
        ],
    ),
    "y": Number(
        y,
        [
            Wrong("wrong order", wrong_order, "head 1 comes first in $C$."),
            Wrong("head 1", tuple(o_1 * blocks[0]), "the part of head 2 is missing."),
            Wrong("head 2", head_2, "the part of head 1 is missing."),
            Wrong("mean", tuple(x / 2 for x in y), "heads are added, not averaged."),
            Wrong("interleaved", interleaved, "the entries of a head stay together in $C$."),
        ],
    ),
    "wrong_order": Number(
        wrong_order,
        [
            Wrong("right order", y, "that is the right order."),
            Wrong("sign", tuple(-x for x in wrong_order), "the sign of all entries is wrong."),
            Wrong("head 2", tuple(o_2 * blocks[0]), "the part of head 1 is missing."),
            Wrong("head 1", tuple(o_1 * blocks[1]), "the part of head 2 is missing."),
        ],
    ),
}

# ---------------------------------------------- 9.5: project_heads(O, W_O)


def fractions(n: int, *sizes: int, seed: int) -> tuple:
    """Return a nested tuple of small multiples of 1/n, from a fixed sequence."""
    numbers = np.random.default_rng(seed).integers(-9, 10, size=sizes)

    def nested(x: np.ndarray) -> tuple | Fraction | int:
        if x.ndim:
            return tuple(map(nested, x))
        return Fraction(int(x), n) if n > 1 else int(x)

    return nested(numbers)


def _project_heads(O: tuple, W_O: tuple) -> sympy.ImmutableMatrix:
    parts = [exact.matrix(o) * exact.matrix(w) for o, w in zip(O, W_O, strict=True)]
    return sum(parts[1:], parts[0])


def _reshaped(O, W_O):
    H, T, d_v = O.shape
    return O.reshape(T, H * d_v) @ W_O.reshape(H * d_v, -1)


def _interleaved(O, W_O):
    H, T, d_v = O.shape
    return O.transpose(1, 2, 0).reshape(T, d_v * H) @ W_O.reshape(H * d_v, -1)


project_heads = Program(
    name="project_heads",
    shapes={"O": "H T d_v", "W_O": "H d_v d"},
    returns="T d",
    right=_project_heads,
    inputs=[
        (fractions(2, 2, 3, 4, seed=1), fractions(2, 2, 4, 1, seed=2)),
        (fractions(1, 3, 4, 2, seed=3), fractions(1, 3, 2, 1, seed=4)),
        (fractions(4, 2, 1, 3, seed=5), fractions(2, 2, 3, 4, seed=6)),
        (fractions(2, 4, 2, 3, seed=7), fractions(1, 4, 3, 1, seed=8)),
    ],
    wrong=[
        Wrong(
            "reshape at once",
            _reshaped,
            "the outputs were reshaped without swapping axes: rows of $C$ mix positions.",
        ),
        Wrong(
            "interleaved",
            _interleaved,
            "in $C$ the features of one head stay together. Here the heads take turns.",
        ),
        Wrong(
            "mean",
            lambda O, W_O: (O @ W_O).mean(axis=0),
            "the heads were averaged. (9.5) adds them.",
        ),
        Wrong(
            "mean output",
            lambda O, W_O: O.mean(axis=0) @ W_O.sum(axis=0),
            "the outputs were averaged before the projection: each has its own block.",
        ),
        Wrong(
            "summed first",
            lambda O, W_O: O.sum(axis=0) @ W_O.sum(axis=0),
            "outputs and blocks were summed apart: head 1 met the block of head 2 too.",
        ),
        Wrong("one head", lambda O, W_O: O[0] @ W_O[0], "that is head 1 alone."),
        Wrong("last head", lambda O, W_O: O[-1] @ W_O[-1], "that is the last head alone."),
        Wrong(
            "reversed",
            lambda O, W_O: (O @ W_O[::-1]).sum(axis=0),
            "the blocks of $W_O$ were taken in the reverse order.",
        ),
        Wrong("not summed", lambda O, W_O: O @ W_O, "these are the parts. They still are summed."),
    ],
)

# ---------------------------------------------- 9.6: the mean map

a = exact.matrix([[Rational(3, 4), Rational(1, 4)], [Rational(1, 2), Rational(1, 2)]])
N = exact.matrix([[8, 0], [0, 4]])  # N[h, j]
network = sum(a.multiply_elementwise(N))
a_mean = (a[0, :] + a[1, :]) / 2
mean_map = a_mean.dot(N[0, :] + N[1, :])
swapped = a[0, :].dot(N[1, :]) + a[1, :].dot(N[0, :])
mean_of_two = {
    "network": Number(
        network,
        [
            Wrong("mean map", mean_map, "that is what the mean map gives."),
            Wrong("mean", network / 2, "the heads were averaged. They are added."),
            Wrong("swapped", swapped, "each head met the numbers of the other one."),
            Wrong("head 1", a[0, :].dot(N[0, :]), "head 2 is missing."),
            Wrong("head 2", a[1, :].dot(N[1, :]), "head 1 is missing."),
            Wrong("all", sum(N), "the weights are missing."),
        ],
    ),
    "mean_map": Number(
        mean_map,
        [
            Wrong("network", network, "that is what the network gives."),
            Wrong("twice mean", mean_map / 2, "the numbers of the heads were averaged as well."),
            Wrong("mean", network / 2, "that is the mean of the heads' outputs."),
            Wrong("uniform", sum(N) / 2, "the mean map is not uniform here."),
            Wrong("sum of maps", 2 * mean_map, "the maps were added, not averaged."),
            Wrong("swapped", swapped, "each head met the numbers of the other one."),
        ],
    ),
}

# ---------------------------------------------- 9.7: R exercise 5.8

R = examples.R_EXERCISE_5_8
K, V = ([[x] for x in column] for column in (R.keys, R.values))
log_3 = exact.attention([[log(3)]], K, V)
same_parts = {
    "same_A": Choice(
        "sometimes",
        [
            Wrong("always", "always", "One token: the weight is 1, and the values may differ."),
            Wrong("never", "never", "Differences of values can cancel in the weighted sum."),
        ],
    ),
    "same_K_V": Choice(
        "sometimes",
        [
            Wrong("always", "always", "Section 11 has two queries with different outputs."),
            Wrong("never", "never", "What if there is one key, or if all values are equal?"),
        ],
    ),
    "query_log_3": Number(
        log_3.O[0],
        [
            Wrong("first weight", log_3.A[0], "that is the weight of token 1."),
            Wrong("score", log(3), "that is a score. Softmax comes next."),
            Wrong("exponential", 3, "that is an exponential. Divide by the sum."),
            Wrong("no sum", Rational(1, 3), "that is the ratio of the weights."),
            Wrong("query 1", exact.attention([[1]], K, V).O[0], "that is the output for query 1."),
            Wrong("uniform", Rational(1, 2), "that is the output for query 0."),
        ],
    ),
    "value_2": Number(
        0,
        [
            Wrong("one", 1, "then the output is $a_2$, which depends on the query."),
            Wrong("half", Rational(1, 2), "then the output is half of $a_2$, which varies."),
            Wrong("minus one", -1, "then the output is minus $a_2$, which varies."),
        ],
    ),
}

# ---------------------------------------------- 9.8: wide_weights(A)


def _wide_weights(A: tuple) -> tuple:
    A = exact.matrix(A)
    root = 1 / sqrt(A.rows)
    product = [sympy.prod(A[:, j]) ** root for j in range(A.cols)]
    return tuple(x / sum(product) for x in product)


def _share(x):
    return x / x.sum()


def tenths(*rows: tuple[int, ...]) -> tuple[tuple[Fraction | int, ...], ...]:
    """Divide a matrix of integers by 10; whole numbers stay whole."""
    return tuple(tuple(Fraction(n, 10) if n % 10 else n // 10 for n in row) for row in rows)


wide_weights = Program(
    name="wide_weights",
    shapes={"A": "H S"},
    returns="S",
    right=_wide_weights,
    inputs=[
        (tenths((5, 2, 3), (1, 6, 3)),),
        (tenths((4, 6), (3, 7), (8, 2)),),
        (tenths((5, 0, 5, 0), (2, 0, 8, 0), (4, 0, 6, 0)),),
        (tenths((1, 2, 7), (2, 4, 4), (3, 3, 4), (5, 1, 4)),),
    ],
    wrong=[
        Wrong("mean", lambda A: A.mean(axis=0), "this is the mean of the rows, not their product."),
        Wrong(
            "no root",
            lambda A: _share(A.prod(axis=0)),
            "the root is missing: the wide head divides by a larger $√d_k$.",
        ),
        Wrong(
            "geometric mean",
            lambda A: _share(A.prod(axis=0) ** (1 / len(A))),
            "the exponent is not $1/H$. By which factor does the scale of the scores change?",
        ),
        Wrong(
            "root of S",
            lambda A: _share(A.prod(axis=0) ** (1 / np.sqrt(A.shape[1]))),
            "the exponent was taken from the number of keys, not of heads.",
        ),
        Wrong(
            "not normalised",
            lambda A: A.prod(axis=0) ** (1 / np.sqrt(len(A))),
            "the products do not sum to 1 yet.",
        ),
        Wrong(
            "multiplied",
            lambda A: _share(A.prod(axis=0) ** np.sqrt(len(A))),
            "the exponent is upside down.",
        ),
        Wrong("first head", lambda A: A[0], "this is the row of head 1."),
        Wrong(
            "softmax of mean",
            lambda A: _share(np.exp(A.mean(axis=0))),
            "weights were used as if they were scores.",
        ),
        Wrong(
            "largest", lambda A: _share(A.max(axis=0)), "this is the largest weight of each key."
        ),
    ],
)

# ---------------------------------------------- 9.9: one step back

C, dY = exact.row([2, -3]), exact.row([1, 2])
W_O = exact.matrix([[1, 3], [4, -2]])
dC = tuple(dY * W_O.T)
step_back = {
    "dW_O_2": Number(
        tuple(C[1] * dY),
        [
            Wrong("head 1", tuple(C[0] * dY), "that is the block of head 1."),
            Wrong("no output", tuple(dY), "the output of the head is missing."),
            Wrong(
                "transposed",
                tuple(dY[1] * C),
                "that is a row of $\u0233^⊤ C$: the product is turned around.",
            ),
            Wrong("sign", tuple(-C[1] * dY), "the sign of the output was lost."),
            Wrong("weights", tuple(W_O[1, :]), "that is the block itself, not its gradient."),
        ],
    ),
    "dO": Number(
        dC,
        [
            Wrong("no transpose", tuple(dY * W_O), "$W_O$ was not transposed."),
            Wrong("reversed", dC[::-1], "the heads are exchanged."),
            Wrong("outputs", tuple(C), "these are the outputs, not their gradients."),
            Wrong("y", tuple(C * W_O), "that is $y$: this goes forwards."),
            Wrong("upstream", tuple(dY), "that is the gradient by $y$."),
        ],
    ),
    "learns_nothing": Number(
        2,
        [
            Wrong("head 1", 1, "the gradient by its output is not 0."),
            Wrong("none", 0, "look at the gradients by the outputs once more."),
            Wrong("third", 3, "there are two heads, counted from 1."),
        ],
    ),
}

# ---------------------------------------------- 9.12: cut_into_heads(X, H)


def _cut_into_heads(X: tuple, H: int) -> tuple:
    d_k = len(X[0]) // H
    return tuple(tuple(row[h * d_k : (h + 1) * d_k] for row in X) for h in range(H))


def numbered(n: int, m: int, unit: Fraction | int = 1) -> tuple[tuple, ...]:
    """Return n rows of m numbers, of which each tells its row and its column: 23, or 23 units."""
    return tuple(tuple((10 * i + c) * unit for c in range(1, m + 1)) for i in range(1, n + 1))


def _heads_last(X, H):
    return X.reshape(len(X), H, -1)


cut_into_heads = Program(
    name="cut_into_heads",
    shapes={"X": "n m", "H": ""},
    returns="H n d_k",
    right=_cut_into_heads,
    inputs=[
        (numbered(4, 6), 2),
        (numbered(1, 6, Fraction(1, 2)), 3),
        (numbered(3, 8, Fraction(-1, 4)), 4),
        (numbered(3, 8, Fraction(1, 10)), 2),
    ],
    wrong=[
        Wrong(
            "reshape at once",
            lambda X, H: X.reshape(H, len(X), -1),
            "the rows were cut as well: a head has features of some positions, not of all.",
        ),
        Wrong(
            "interleaved",
            lambda X, H: X.reshape(len(X), -1, H).transpose(2, 0, 1),
            "the features were dealt out in turn. Those of a head lie side by side in $X$.",
        ),
        Wrong(
            "positions first",
            _heads_last,
            "the cut is right, but positions and heads have not changed places yet.",
        ),
        Wrong(
            "heads last",
            lambda X, H: _heads_last(X, H).transpose(0, 2, 1),
            "the heads are the last axis. They should be the first.",
        ),
        Wrong(
            "transposed",
            lambda X, H: _heads_last(X, H).transpose(1, 2, 0),
            "each head is turned over: its rows should be positions, its columns features.",
        ),
        Wrong(
            "reshape of the transpose",
            lambda X, H: X.T.reshape(H, len(X), -1),
            "$X$ was transposed and then reshaped, so features lie where positions should.",
        ),
        Wrong(
            "reversed",
            lambda X, H: _heads_last(X, H).swapaxes(0, 1)[::-1],
            "the heads are right and their order is reversed.",
        ),
        Wrong(
            "H as width",
            lambda X, H: X.reshape(len(X), -1, H).swapaxes(0, 1),
            "$H$ was taken for the width of a head. It is the number of heads.",
        ),
        Wrong(
            "first head",
            lambda X, H: np.stack([_heads_last(X, H)[:, 0]] * H),
            "every head got the features of head 1.",
        ),
        Wrong(
            "copies",
            lambda X, H: np.stack([X] * H),
            "every head got all of $X$: nothing was cut.",
        ),
    ],
)

# ---------------------------------------------- 9.13: how many weights, T = 5, H = 3

T, H = 5, 3
maps = {
    "weights": Number(
        H * T * T,
        [
            Wrong("one map", T * T, "that is the map of one head."),
            Wrong("per query", H * T, "a query has a weight for each key, not one for each head."),
            Wrong("across heads", (H * T) ** 2, "a query of one head reads no keys of another."),
            Wrong("added", T + H, "a map has a row for each query: multiply."),
        ],
    ),
    "one_query": Number(
        H,
        [
            Wrong("one head", 1, "that is the sum in one head."),
            Wrong("one map", T, "that is the sum over a whole map. One query is asked for."),
            Wrong("all", H * T, "that is the sum of all weights. One query is asked for."),
            Wrong("shared", Fraction(1, H), "each head normalises its own row, and no row is "
                  "divided by the number of heads."),
        ],
    ),
}  # fmt: skip

EXERCISES = {
    "9.1": sizes,
    "9.2": which_features,
    "9.3": where_from,
    "9.4": through_blocks,
    "9.5": {"answer": project_heads},
    "9.6": mean_of_two,
    "9.7": same_parts,
    "9.8": {"answer": wide_weights},
    "9.9": step_back,
    "9.12": {"answer": cut_into_heads},
    "9.13": maps,
}
