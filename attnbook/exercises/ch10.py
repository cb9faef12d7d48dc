"""The exercises of chapter 10, cross-attention.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
from sympy import ImmutableMatrix, Rational, log, sqrt

from attnbook import exact, examples, masks
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 10.1: shapes

T, S, d_q, d_m, d_k, d_v = 5, 7, 6, 10, 4, 3
counts = {
    "weights": Number(
        T * S,
        [
            Wrong("target only", T * T, "that would be self-attention of the target."),
            Wrong("source only", S * S, "that would be self-attention of the source."),
            Wrong("both", T + S, "every query has a weight for every source position."),
            Wrong("output", T * d_v, "that is the output."),
        ],
    ),
    "output": Number(
        T * d_v,
        [
            Wrong("source length", S * d_v, "one output row for each source position?"),
            Wrong("match width", T * d_k, "outputs are mixtures of values, not of keys."),
            Wrong("input width", T * d_q, "that needs an output projection, which is not here."),
            Wrong("weights", T * S, "these are the weights."),
        ],
    ),
    "source_gradient": Number(
        S * d_m,
        [
            Wrong("target", T * d_q, "that is the gradient of the other input."),
            Wrong("target length", T * d_m, "a gradient has the shape of its variable."),
            Wrong("keys", S * d_k, "that is the gradient of the keys."),
            Wrong("values", S * d_v, "that is the gradient of the values."),
            Wrong("twice", 2 * S * d_m, "the two terms are added, not put side by side."),
        ],
    ),
    "parameters": Number(
        d_q * d_k + d_m * d_k + d_m * d_v,
        [
            Wrong("query width", d_q * (2 * d_k + d_v), "two of the three read the source."),
            Wrong("source width", d_m * (2 * d_k + d_v), "one of the three reads the target."),
            Wrong("no values", d_q * d_k + d_m * d_k, "one projection is missing."),
            Wrong("values of width d_k", d_q * d_k + 2 * d_m * d_k, "values have their own width."),
            Wrong(
                "activations",
                T * d_k + S * d_k + S * d_v,
                "that counts $Q$, $K$ and $V$. Parameters do not depend on lengths.",
            ),
        ],
    ),
}

# ---------------------------------------------- 10.2: R (5.23) with a third source position

V_3 = exact.matrix([*examples.R_CROSS.V, (2, 8)])
u_3 = exact.row([log(3), 0, log(4)])
a_3 = exact.softmax(u_3)
old = exact.softmax(u_3, [True, True, False])
late = exact.softmax(u_3, [False, True, True])
kept = exact.row([0, a_3[1], a_3[2]])
third = {
    "weights": Number(
        tuple(a_3),
        [
            Wrong("exponentials", (3, 1, 4), "these are the exponentials. Divide by their sum."),
            Wrong("old ones kept", (*old[:2], Rational(1, 2)), "this row does not sum to 1."),
            Wrong(
                "scores",
                tuple(u / sum(u_3) for u in u_3),
                "the scores themselves were divided by their sum.",
            ),
            Wrong("equal", (Rational(1, 3),) * 3, "the scores are not equal."),
            Wrong("third ignored", tuple(old), "the third position has a weight now."),
        ],
    ),
    "output": Number(
        tuple(a_3 * V_3),
        [
            Wrong("before", tuple(old * V_3), "that is what the query read before."),
            Wrong("added", tuple(old * V_3 + a_3[2] * V_3[2, :]), "the old weights change too."),
            Wrong("average", (Rational(4, 3), 4), "that is the plain average of the values."),
            Wrong("not divided", tuple(8 * a_3 * V_3), "the exponentials were not divided."),
            Wrong(
                "first query",
                tuple(exact.softmax([0, 0, log(4)]) * V_3),
                "the first two scores are those of another query.",
            ),
        ],
    ),
    "first_is_padding": Number(
        tuple(late * V_3),
        [
            Wrong("not normalised", tuple(kept * V_3), "these weights no longer sum to 1."),
            Wrong("no mask", tuple(a_3 * V_3), "the first position is still read."),
            Wrong(
                "score zero",
                tuple(exact.softmax([0, 0, log(4)]) * V_3),
                "the score was set to 0, and a score of 0 has a weight.",
            ),
            Wrong(
                "row of zeros",
                tuple(exact.softmax([0, 0, log(4)]) * exact.matrix([(0, 0), (0, 4), (2, 8)])),
                "key and value were set to 0, which makes the score 0, and that has a weight.",
            ),
            Wrong("other side", tuple(old * V_3), "the last position was masked."),
            Wrong("best", tuple(V_3[2, :]), "two positions are left, not one."),
        ],
    ),
}

# ---------------------------------------------- 10.3: masks

SOURCE, TARGET = "source padding", "target padding"
CAUSAL_SOURCE, CAUSAL_TARGET = f"causal and {SOURCE}", f"causal and {TARGET}"
mask_sites = {
    "encoder": Choice(
        SOURCE,
        [
            Wrong("target", TARGET, "The encoder does not see the target at all."),
            Wrong("causal", CAUSAL_SOURCE, "The whole source is known: what would be ahead?"),
            Wrong("both", CAUSAL_TARGET, "That is the set of another site."),
        ],
    ),
    "decoder": Choice(
        CAUSAL_TARGET,
        [
            Wrong("not causal", TARGET, "Then a position could read the word it has to produce."),
            Wrong("source", SOURCE, "The keys here are target positions."),
            Wrong(
                "causal source",
                CAUSAL_SOURCE,
                "The triangle is right. Whose positions are the keys?",
            ),
        ],
    ),
    "cross": Choice(
        SOURCE,
        [
            Wrong("target", TARGET, "Whose positions are the keys here?"),
            Wrong("causal", CAUSAL_SOURCE, "Target and source positions are not compared."),
            Wrong("both", CAUSAL_TARGET, "That is the set of another site."),
        ],
    ),
}

# ---------------------------------------------- 10.4: the triangle, T = 5, S = 8 and T = 8, S = 5


def hidden(T: int, S: int) -> int:
    """Count the pairs that the triangle hides."""
    return int((~masks.causal(T, S)).sum())


T, S = 5, 8
triangle = {
    "hidden": Number(
        hidden(T, S),
        [
            Wrong("open", T * S - hidden(T, S), "that is how many pairs stay open."),
            Wrong("square", T * (T - 1) // 2, "that is the triangle of a $5 × 5$ table."),
            Wrong("wide square", S * (S - 1) // 2, "that is the triangle of an $8 × 8$ table."),
            Wrong("diagonal too", hidden(T, S) + T, "query $i$ may read key $i$."),
            Wrong("all", T * S, "that is how many pairs there are."),
        ],
    ),
    "unread": Number(
        S - T,
        [
            Wrong("none", 0, "what is the last key that the last query reads?"),
            Wrong("T", T, "that many are read by somebody."),
            Wrong("one more", S - T + 1, "query $i$ may read key $i$ itself."),
            Wrong("one less", S - T - 1, "query $i$ may not read key $i + 1$."),
        ],
    ),
    "hidden_other_way": Number(
        hidden(S, T),
        [
            Wrong("as before", hidden(T, S), "that is the answer for $T$ = 5."),
            Wrong("open", T * S - hidden(S, T), "that is how many pairs stay open."),
            Wrong("square", S * (S - 1) // 2, "that is the triangle of an $8 × 8$ table."),
            Wrong("diagonal too", hidden(S, T) + T, "query $i$ may read key $i$."),
            Wrong("none", 0, "the first queries do miss something."),
        ],
    ),
}

# ---------------------------------------------- 10.5: stream_read(U, V, k)


def half(*table: tuple[int, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Divide a matrix of integers by 2."""
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in table)


def _stream_read(U: tuple, V: tuple, k: int) -> ImmutableMatrix:
    allowed = [[j <= i + k - 1 for j in range(len(V))] for i in range(len(U))]
    return exact.softmax(U, allowed) * exact.matrix(V)


def _softmax(Z):
    e = np.exp(Z - Z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _open(U, k):
    return np.arange(U.shape[1]) <= np.arange(U.shape[0])[:, None] + int(k) - 1


def _read(U, V, allowed):
    return _softmax(np.where(allowed, U, -np.inf)) @ V


stream_read = Program(
    name="stream_read",
    shapes={"U": "T S", "V": "S d_v", "k": ""},
    returns="T d_v",
    right=_stream_read,
    inputs=[
        (
            half((0, 1, 3, 2), (2, -1, 1, 0)),
            half((2, 0, 1), (0, 4, 1), (2, 2, -3), (-1, 3, 5)),
            2,
        ),
        (
            half((1, 0, 2), (0, 3, 1), (2, 2, 1), (-1, 1, 2)),
            half((1, 0), (0, 3), (5, 1)),
            1,
        ),
        (
            ((0, 1, 2, 1), (2, 0, 1, 1), (1, 1, 0, 2)),
            ((1, 0), (0, 2), (3, 1), (-2, 4)),
            3,
        ),
    ],
    wrong=[
        Wrong(
            "one too many",
            lambda U, V, k: _read(U, V, _open(U, k + 1)),
            "each query sees one position too many. Count $i$ and $j$ from the same number.",
        ),
        Wrong(
            "all",
            lambda U, V, k: _softmax(U) @ V,
            "nothing is hidden: the whole source is read.",
        ),
        Wrong(
            "zeroed weights",
            lambda U, V, k: (_softmax(U) * _open(U, k)) @ V,
            "the weights were set to 0 after the softmax, so that rows no longer sum to 1.",
        ),
        Wrong(
            "zero scores",
            lambda U, V, k: _softmax(np.where(_open(U, k), U, 0)) @ V,
            "hidden scores were set to 0. A score of 0 still has a weight.",
        ),
        Wrong(
            "fixed prefix",
            lambda U, V, k: _read(U, V, np.arange(U.shape[1]) < int(k)),
            "every query sees the first $k$ positions only. The source goes on arriving.",
        ),
        Wrong(
            "window",
            lambda U, V, k: _read(
                U,
                V,
                _open(U, k)
                & (np.arange(U.shape[1]) >= np.minimum(np.arange(len(U)), U.shape[1] - 1)[:, None]),
            ),
            "earlier source positions were dropped. What has arrived stays.",
        ),
        Wrong(
            "no softmax",
            lambda U, V, k: np.where(_open(U, k), U, 0) @ V,
            "the scores were used as weights.",
        ),
        Wrong(
            "columns",
            lambda U, V, k: _columns(np.where(_open(U, k), U, -np.inf)) @ V,
            "normalised over the queries. The weights of each query have to sum to 1.",
        ),
        Wrong(
            "average",
            lambda U, V, k: _read(0 * U, V, _open(U, k)),
            "this is the average of what has arrived, without the scores.",
        ),
    ],
)


def _columns(Z):
    e = np.exp(Z)
    total = e.sum(axis=0, keepdims=True)
    return e / np.where(total == 0, 1, total)


# ---------------------------------------------- 10.6: the narrowest head

narrow = Number(
    (0, log(3), -log(3)),
    [
        Wrong("ratios", (1, 3, Rational(1, 3)), "these are ratios of weights. Scores are logs."),
        Wrong("sign", (0, -log(3), log(3)), "the sign is turned: which weight is larger?"),
        Wrong(
            "log weights",
            (log(Rational(1, 2)), log(Rational(3, 4)), log(Rational(1, 4))),
            "the second score is 0 here, and not the logarithm of the second weight.",
        ),
        Wrong("first scores", (0, log(3), 0), "with $k_2$ = 0 the second score is always 0."),
        Wrong("no exponential", (0, 3, -3), "softmax has an exponential in it."),
        Wrong(
            "other width",
            (0, sqrt(2) * log(3), -sqrt(2) * log(3)),
            "these are for $d_k$ = 2. How wide is this head?",
        ),
    ],
)

# ---------------------------------------------- 10.7: gradients of R (5.23)

V_2 = exact.matrix(examples.R_CROSS.V)
A_2 = exact.softmax(exact.matrix(examples.R_CROSS.exp_scores).applyfunc(log))
second, first = (exact.matrix([row, row, (0, 0)]) for row in ((0, 1), (1, 0)))


def table(matrix: ImmutableMatrix) -> tuple:
    """Return a matrix as a tuple of rows."""
    return tuple(map(tuple, matrix.tolist()))


def value_gradient(dO: ImmutableMatrix) -> tuple:
    """Return the gradient of the values."""
    return table(A_2.T * dO)


def score_gradient(dO: ImmutableMatrix) -> tuple:
    """Return the gradient of the scores."""
    return table(exact.softmax_backward(dO * V_2.T, A_2))


every = exact.matrix([(0, 1)] * 3)
backwards = {
    "dV": Number(
        value_gradient(second),
        [
            Wrong("all queries", value_gradient(every), "the third output is not in this loss."),
            Wrong(
                "swapped",
                value_gradient(second)[::-1],
                "the two positions changed places: which of them has the larger weights?",
            ),
            Wrong("transposed", table((A_2.T * second).T), "the rows are positions, not features."),
            Wrong(
                "mean",
                table(A_2.T * second / 2),
                "gradients of several queries are added, not averaged.",
            ),
            Wrong(
                "no weights",
                ((0, 2), (0, 2)),
                "each query passes its gradient on by its weights.",
            ),
            Wrong(
                "first query",
                value_gradient(exact.matrix([(0, 1), (0, 0), (0, 0)])),
                "only the first query was counted.",
            ),
            Wrong("first coordinates", value_gradient(first), "that is the other coordinate."),
        ],
    ),
    "dU": Number(
        score_gradient(second),
        [
            Wrong("weights", table(second * V_2.T), "that is $Ā$. Softmax comes between."),
            Wrong(
                "no mean",
                table(A_2.multiply_elementwise(second * V_2.T)),
                "the weighted mean of the row was not subtracted.",
            ),
            Wrong(
                "plain mean",
                table(A_2.multiply_elementwise(exact.matrix([(-2, 2), (-2, 2), (0, 0)]))),
                "the mean was taken without the weights.",
            ),
            Wrong(
                "sign",
                score_gradient(-second),
                "the sign is turned: does raising the second score help here?",
            ),
            Wrong(
                "all queries",
                score_gradient(every),
                "a query that the loss does not see gets no gradient.",
            ),
            Wrong(
                "first coordinates",
                score_gradient(first),
                "that is the gradient for the first coordinates.",
            ),
        ],
    ),
}

# ---------------------------------------------- 10.8: once per source

T, S, H, d_m, d_k = 20, 30, 4, 256, 64
once = 2 * S * d_m * H * (d_k + d_k)
HALF = "that is half: the keys alone, or multiplications without additions."
reuse = {
    "once": Number(
        once,
        [
            Wrong("one head", once // H, "that is one head."),
            Wrong("half", once // 2, HALF),
            Wrong("half of a head", once // 2 // H, "heads are missing, and a factor 2."),
            Wrong("target length", once // S * T, "the source has another length."),
            Wrong("every step", once * T, "that is what they take when computed at every step."),
        ],
    ),
    "saved": Number(
        (T - 1) * once,
        [
            Wrong("all steps", T * once, "one computation remains."),
            Wrong("source length", (S - 1) * once, "the number of steps is the target's length."),
            Wrong("one head", (T - 1) * once // H, "that is one head."),
            Wrong("half", (T - 1) * once // 2, HALF),
            Wrong("ratio", T, "that is the ratio. The difference is asked for."),
        ],
    ),
    "kept": Number(
        S * H * 2 * d_k,
        [
            Wrong("keys only", S * H * d_k, "that is the keys, or the values."),
            Wrong("one head", S * 2 * d_k, "that is one head."),
            Wrong("grows", T * H * 2 * d_k, "that is what the self-attention keeps at the end."),
            Wrong("both", (S + T) * H * 2 * d_k, "that is both caches at the end."),
        ],
    ),
}

# ---------------------------------------------- 10.9: does it stop?

RIGHT, STOPS, RUNS = "right", "stops", "runs wrong"
swapped = {
    "a": Choice(
        RUNS,
        [
            Wrong("right", RIGHT, "Is the source read?"),
            Wrong("stops", STOPS, "All three have the same number of rows. What would stop it?"),
        ],
    ),
    "b": Choice(
        STOPS,
        [
            Wrong("right", RIGHT, "Who asks here, and who should?"),
            Wrong("runs", RUNS, "How many rows has the output, and what is it added to?"),
        ],
    ),
    "c": Choice(
        RUNS,
        [
            Wrong("right", RIGHT, "Who asks here, and who should?"),
            Wrong("stops", STOPS, "Compare the two lengths."),
        ],
    ),
    "d": Choice(
        STOPS,
        [
            Wrong("right", RIGHT, "Weights made for one sequence are applied to another."),
            Wrong("runs", RUNS, "How many columns has $A$, and how many rows has $V$?"),
        ],
    ),
}

# ---------------------------------------------- 10.10: position or word?

A_enc = exact.matrix(examples.M_SENTENCE.A)
a_cross = exact.row([0, Rational(1, 2), Rational(1, 2), 0])
words = Number(
    tuple(a_cross * A_enc),
    [
        Wrong("positions", tuple(a_cross), "these are the weights on positions."),
        Wrong("columns", tuple(A_enc * a_cross.T), "that is $A$ times a column: who reads whom?"),
        Wrong("sum", tuple(2 * a_cross * A_enc), "each of the two rows has the weight one half."),
        Wrong("first row", tuple(A_enc[1, :]), "that is the row of love alone."),
        Wrong("second row", tuple(A_enc[2, :]), "that is the row of GPU alone."),
        Wrong(
            "product",
            tuple(A_enc[1, j] * A_enc[2, j] for j in range(4)),
            "the rows are mixed, not multiplied.",
        ),
    ],
)

EXERCISES = {
    "10.1": counts,
    "10.2": third,
    "10.3": mask_sites,
    "10.4": triangle,
    "10.5": {"answer": stream_read},
    "10.6": {"answer": narrow},
    "10.7": backwards,
    "10.8": reuse,
    "10.9": swapped,
    "10.10": {"answer": words},
}
