"""The exercises of chapter 03, queries, keys and values.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import sqrt

from attnbook import exact, examples
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 3.1: sizes, all different

T, S, d_q, d_m, d_k, d_v = 5, 9, 12, 20, 8, 6
shapes = {
    "W_Q": Number(
        d_q * d_k,
        [
            Wrong("length", T * d_k, "that is the size of $Q$ itself: $T$ times $d_k$."),
            Wrong("other side", d_m * d_k, "that is $W_K$. Queries come from the other input."),
            Wrong("values", d_q * d_v, "a query has the width $d_k$, not $d_v$."),
            Wrong("square", d_q * d_q, "nothing makes the matrix square."),
            Wrong("input", T * d_q, "that is the size of the input $X_q$."),
        ],
    ),
    "W_K": Number(
        d_m * d_k,
        [
            Wrong("length", S * d_k, "that is the size of $K$ itself: $S$ times $d_k$."),
            Wrong("other side", d_q * d_k, "that is $W_Q$. Keys come from the other input."),
            Wrong("values", d_m * d_v, "that is $W_V$. A key has the width $d_k$."),
            Wrong("square", d_m * d_m, "nothing makes the matrix square."),
            Wrong("input", S * d_m, "that is the size of the input $X_m$."),
        ],
    ),
    "W_V": Number(
        d_m * d_v,
        [
            Wrong("length", S * d_v, "that is the size of $V$ itself: $S$ times $d_v$."),
            Wrong("other side", d_q * d_v, "values come from the same input as the keys."),
            Wrong("match", d_m * d_k, "that is $W_K$. A value has the width $d_v$."),
            Wrong("square", d_m * d_m, "nothing makes the matrix square."),
            Wrong("input", S * d_m, "that is the size of the input $X_m$."),
        ],
    ),
    "scores": Number(
        T * S,
        [
            Wrong("square of T", T * T, "queries meet keys, not each other."),
            Wrong("square of S", S * S, "keys meet queries, not each other."),
            Wrong("queries", T * d_k, "that is the size of $Q$. A score is one number, not $d_k$."),
            Wrong("products", T * S * d_k, "that counts the products inside the scores."),
            Wrong("sum", T + S, "every query meets every key: the numbers multiply."),
        ],
    ),
}

# ---------------------------------------------- 3.2: an entry of Q in the running example

sentence = examples.M_SENTENCE
X, W_Q, W_K, K, Q_printed = map(
    exact.matrix, (sentence.X, sentence.W_Q, sentence.W_K, sentence.K, sentence.Q_printed)
)
GPU, PROG = 2, 3
Q = X * W_Q
one_entry = Number(
    Q[GPU, 3],
    [
        Wrong("printed", Q_printed[GPU, 3], "that is what [M] printed, not what follows."),
        Wrong(
            "from 0", (X * W_Q[:, 4])[GPU], "that is component 5: the column was counted from 0."
        ),
        Wrong(
            "row of W",
            X[GPU, :].dot(W_Q[3, :]),
            "that is $x$ times row 4 of $W_Q$. In $x W$ a component comes from a column.",
        ),
        Wrong("next token", Q[PROG, 3], "that is the component of programming."),
        Wrong("key", K[GPU, 3], "that is the key: the projection was $W_K$."),
        Wrong("sum", sum(W_Q[:, 3]), "that is the sum of the column, without the features."),
    ],
)

# ---------------------------------------------- 3.3: one score, twice


def score(queries, keys, i=PROG, j=GPU):
    """Compute one raw score."""
    return (queries * keys.T)[i, j]


find_the_slip = {
    "exact_chain": Number(
        score(Q, K),
        [
            Wrong("printed Q", score(Q_printed, K), "that comes from the printed $Q$."),
            Wrong("printed", Fraction(82, 100), "that is what [M] printed."),
            Wrong("reverse", score(Q, K, GPU, PROG), "that is the query of GPU with the key of "
                  "programming. Who asks comes first."),
            Wrong("scaled", score(Q, K) / sqrt(6), "that is the scaled score, divided by $√d_k$."),
            Wrong("queries", score(Q, Q), "that is a query with a query: the key comes from "
                  "$W_K$."),
            Wrong("inputs", score(X, X), "that is the dot product of the inputs, not projected."),
            Wrong("itself", score(Q, K, PROG, PROG), "that is the score of programming with "
                  "itself."),
        ],
    ),
    "printed_matrices": Number(
        score(Q_printed, K),
        [
            Wrong("exact Q", score(Q, K), "that comes from the exact $Q$."),
            Wrong("printed", Fraction(82, 100), "that is the printed score, not the product."),
            Wrong("reverse", score(Q_printed, K, GPU, PROG), "that is the query of GPU with the "
                  "key of programming. Who asks comes first."),
            Wrong("scaled", score(Q_printed, K) / sqrt(6), "that is the scaled score."),
            Wrong("itself", score(Q_printed, K, PROG, PROG), "that is the score of programming "
                  "with itself."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 3.4: one projection times 3

factor = 3
which_matrix = {
    "second": Choice(
        "W_V",
        [
            Wrong("query", "W_Q", "Queries enter the scores, and so the weights."),
            Wrong("key", "W_K", "Keys enter the scores, and so the weights."),
        ],
    ),
    "factor": Number(
        factor,
        [
            Wrong("both", factor**2, "that needs both $W_Q$ and $W_K$ to be multiplied."),
            Wrong("none", 1, "the scores contain the matrix once, so they do change."),
            Wrong("variance", factor**3, "each score contains the matrix once, not three times."),
            Wrong("root", sqrt(factor), "a score is linear in each of the two projections."),
            Wrong("divided", Fraction(1, factor), "nothing divides by the matrix."),
        ],
    ),
}

# ---------------------------------------------- 3.5: k' = k G^-T

G, k = sympy.Matrix([[1, 2], [0, 4]]), sympy.Matrix([[3, 2]])
partner = Number(
    tuple(k * G.inv().T),
    [
        Wrong("same", tuple(k * G), "that is $k G$. Scores would get $G G^⊤$ in the middle."),
        Wrong("inverse", tuple(k * G.inv()), "that is $k G^{-1}$: the transpose is missing."),
        Wrong("transpose", tuple(k * G.T), "that is $k G^⊤$: the inverse is missing."),
        Wrong("unchanged", tuple(k), "an unchanged key has other scores with the new queries."),
    ],
)

# ---------------------------------------------- 3.6: reach in a sequence of 7, position 3

n, i = 7, 3
reach = {
    "no_mask": Number(
        2 * n - 1,
        [
            Wrong("twice", 2 * n, "the score of position 3 with itself was counted twice."),
            Wrong("row", n, "that is the row alone. Position 3 is also a key."),
            Wrong("all", n * n, "that is every score: weights spread that far, scores do not."),
            Wrong("off diagonal", 2 * n - 2, "the score of position 3 with itself changes too."),
            Wrong("one", 1, "that is the score of position 3 with itself alone."),
        ],
    ),
    "causal": Number(
        i + (n - i + 1) - 1,
        [
            Wrong("twice", n + 1, "the score of position 3 with itself was counted twice."),
            Wrong("row", i, "that is the row alone. Position 3 is also a key of later ones."),
            Wrong("column", n - i + 1, "that is the column alone. Position 3 also asks."),
            Wrong("no mask", 2 * n - 1, "that is the number without the mask."),
            Wrong("all", n * (n + 1) // 2, "that is every allowed score."),
            Wrong("off diagonal", n - 1, "the score of position 3 with itself changes too."),
        ],
    ),
    "rows": Number(
        n - i + 1,
        [
            Wrong("later", n - i, "position 3 reads itself: its own row changes too."),
            Wrong("earlier", i, "those are the positions that position 3 reads."),
            Wrong("all", n, "the mask keeps earlier positions from reading position 3."),
            Wrong("own", 1, "later positions read position 3, and change with it."),
        ],
    ),
}

# ---------------------------------------------- 3.7: packing, d = 768, H = 12

d, H = 768, 12
packing = {
    "columns": Number(
        3 * d,
        [
            Wrong("one head", 3 * d // H, "that is one head alone."),
            Wrong("one matrix", d, "that is one of the three matrices."),
            Wrong("two", 2 * d, "there are three matrices side by side."),
            Wrong("heads again", 3 * d * H, "$d/H$ columns for each of $H$ heads make $d$."),
        ],
    ),
    "numbers": Number(
        3 * d * d,
        [
            Wrong("one head", 3 * d * d // H, "that is one head alone."),
            Wrong("one matrix", d * d, "that is one of the three matrices."),
            Wrong("square", 9 * d * d, "the packed matrix has $d$ rows, not $3d$."),
            Wrong("with output", 4 * d * d, "that includes $W_O$, which is not packed here."),
        ],
    ),
    "saved": Number(
        0,
        [
            Wrong("two thirds", 2 * d * d, "the three parts do not share their numbers."),
            Wrong("one third", d * d, "no part is left out."),
            Wrong("all", 3 * d * d, "that is all of them."),
        ],
    ),
}

# ---------------------------------------------- 3.8: raw_scores(X, W_Q, W_K), n = 3, d = 4, d_k = 2


def half(*rows):
    """Divide a matrix of integers by 2."""
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in rows)


raw_scores = Program(
    name="raw_scores",
    shapes={"X": "n d", "W_Q": "d d_k", "W_K": "d d_k"},
    returns="n n",
    right=lambda X, W_Q, W_K: exact.scores(
        exact.project(X, W_Q), exact.project(X, W_K), scale=1
    ),
    inputs=[
        (
            half((2, -1, 0, 1), (1, 0, 3, 1), (0, 2, 1, -2)),
            half((1, 2), (0, -1), (2, 1), (1, 0)),
            half((0, 1), (2, 0), (1, -1), (3, 1)),
        ),
        (
            ((1, 0, 2), (0, 1, -1)),
            ((1, 2, 0, 1), (0, 1, 1, -1), (2, 0, 1, 0)),
            ((0, 1, 1, 0), (1, 0, 2, 1), (1, -1, 0, 2)),
        ),
        (half((1, 2), (3, -1), (0, 1), (2, 2)), half((1, 0, 2), (1, -1, 0)),
         half((2, 1, 0), (0, 1, 3))),
    ],
    wrong=[
        Wrong(
            "transposed",
            lambda X, W_Q, W_K: X @ W_K @ (X @ W_Q).T,
            "this is $E^⊤$: rows belong to queries, so $Q$ comes first.",
        ),
        Wrong(
            "scaled",
            lambda X, W_Q, W_K: X @ W_Q @ (X @ W_K).T / W_Q.shape[1] ** 0.5,
            "these are scaled scores, divided by $√d_k$. Raw ones were asked for.",
        ),
        Wrong(
            "tied to queries",
            lambda X, W_Q, W_K: X @ W_Q @ (X @ W_Q).T,
            "keys were made with $W_Q$, so that the table is symmetric.",
        ),
        Wrong(
            "tied to keys",
            lambda X, W_Q, W_K: X @ W_K @ (X @ W_K).T,
            "queries were made with $W_K$, so that the table is symmetric.",
        ),
        Wrong(
            "not projected",
            lambda X, W_Q, W_K: X @ X.T,
            "these are dot products of the inputs: both projections are missing.",
        ),
        Wrong(
            "no transpose",
            lambda X, W_Q, W_K: (X @ W_Q) @ (X @ W_K),
            "$K$ is not transposed: $QK$ does not exist, $QK^⊤$ does.",
        ),
        Wrong(
            "columns",
            lambda X, W_Q, W_K: (X @ W_Q).T @ (X @ W_K),
            "this is $Q^⊤ K$, features against features. Tokens are rows: $QK^⊤$.",
        ),
        Wrong(
            "weights of the match",
            lambda X, W_Q, W_K: W_Q @ W_K.T,
            "this is $W_Q W_K^⊤$ alone: the tokens on both sides are missing.",
        ),
        Wrong(
            "softmax",
            lambda X, W_Q, W_K: _softmax(X @ W_Q @ (X @ W_K).T),
            "these are weights: softmax comes after the scores.",
        ),
    ],
)  # fmt: skip


def _softmax(U):
    e = np.exp(U - U.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


EXERCISES = {
    "3.1": shapes,
    "3.2": {"answer": one_entry},
    "3.3": find_the_slip,
    "3.4": which_matrix,
    "3.5": {"answer": partner},
    "3.6": reach,
    "3.7": packing,
    "3.8": {"answer": raw_scores},
}
