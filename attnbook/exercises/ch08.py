"""The exercises of chapter 08, the backward pass.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, sqrt

from attnbook import exact, examples
from attnbook.exercises.backward import Backward
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 8.1: R exercise 5.5 with the loss o_22

R = examples.R_HEAD
Q, K, V = (exact.project(R.X, W) for W in (R.W_Q, R.W_K, R.W_V))
A = exact.attention(Q, K, V, R.allowed).A
alpha = A[1, 0]
s = alpha * (1 - alpha)
g = exact.attention_backward([[0, 0], [0, 1], [0, 0]], Q, K, V, A)
g_no_value = exact.attention_backward([[0, 0], [0, 1], [0, 0]], Q, K, R.X, A)


def flat(M: sympy.MatrixBase) -> tuple:
    """Return the entries of a matrix in lowest terms."""
    return tuple(exact.lowest_terms(M))


second_coordinate = {
    "scores": Number(
        flat(g.dU[1, :]),
        [
            Wrong("first coordinate", (s, -s, 0), "that is the answer for the loss $o_{21}$."),
            Wrong("sign", flat(-g.dU[1, :]), "every sign is turned round."),
            Wrong("inputs", flat(g_no_value.dU[1, :]), "the second value is (0, 2), not (0, 1)."),
            Wrong("no mean", (0, 2 * (1 - alpha), 0), "the mean of $a\u0304$ was not subtracted."),
            Wrong(
                "weights",
                (0, 2, 0),
                "that is $a\u0304$ on the visible keys: go on through softmax.",
            ),
        ],
    ),
    "query": Number(
        flat(g.dQ[1, :]),
        [
            Wrong("no scale", flat(g.dQ[1, :] * sqrt(2)), "$√d_k$ is missing."),
            Wrong("by width", flat(g.dQ[1, :] / sqrt(2)), "divided by $d_k$, not by its root."),
            Wrong("sign", flat(-g.dQ[1, :]), "both signs are turned round."),
            Wrong("inputs", flat(g_no_value.dQ[1, :]), "the second value is (0, 2), not (0, 1)."),
        ],
    ),
    "key_1": Number(
        flat(g.dK[0, :]),
        [
            Wrong("no scale", flat(g.dK[0, :] * sqrt(2)), "$√d_k$ is missing."),
            Wrong("by width", flat(g.dK[0, :] / sqrt(2)), "divided by $d_k$, not by its root."),
            Wrong(
                "key 2",
                flat(g.dK[1, :]),
                "that is the gradient of the second key, or the signs are turned round.",
            ),
            Wrong("query", flat(g.dQ[1, :]), "that is the gradient of the query."),
            Wrong("inputs", flat(g_no_value.dK[0, :]), "the second value is (0, 2), not (0, 1)."),
        ],
    ),
}

# ---------------------------------------------- 8.2: a query that sees one key

ZERO, SOME = "zero", "any"
one_visible_key = {
    "score": Choice(
        ZERO, [Wrong("any", SOME, "How much does its weight change if this score changes?")]
    ),
    "query": Choice(
        ZERO,
        [Wrong("any", SOME, "The query acts through its scores alone. What is their gradient?")],
    ),
    "value": Choice(
        SOME, [Wrong("zero", ZERO, "Move the value: does the output of this query not move?")]
    ),
    "weight": Choice(
        SOME,
        [
            Wrong(
                "zero",
                ZERO,
                "On the way back this comes before softmax: it is $o\u0304 v^⊤$.",
            )
        ],
    ),
}

# ---------------------------------------------- 8.3: what may be added without effect

common_shifts = {
    "keys": Choice(ZERO, [Wrong("any", SOME, "By how much does each score of a row change?")]),
    "queries": Choice(
        SOME,
        [
            Wrong(
                "zero", ZERO, "The scores change by $c k_j^⊤/√d_k$. Is that the same for all keys?"
            )
        ],
    ),
    "values": Choice(SOME, [Wrong("zero", ZERO, "Each output moves along with $c$.")]),
    "scores": Choice(
        ZERO, [Wrong("any", SOME, "What does softmax do with a constant added to one row?")]
    ),
}

# ---------------------------------------------- 8.4: a = (1/2, 1/4, 1/4), da = (4, 0, 2)

a, da = exact.row([Rational(1, 2), Rational(1, 4), Rational(1, 4)]), exact.row([4, 0, 2])
mean, plain = (a * da.T)[0], sum(da) / 3
by_hand = Number(
    tuple(exact.softmax_backward(da, a)),
    [
        Wrong(
            "no mean", tuple(x * y for x, y in zip(a, da, strict=True)), "no mean was subtracted."
        ),
        Wrong(
            "plain mean",
            tuple(x * (y - plain) for x, y in zip(a, da, strict=True)),
            "the mean of $a\u0304$ has to be taken under the weights.",
        ),
        Wrong(
            "diagonal",
            tuple(x * (1 - x) * y for x, y in zip(a, da, strict=True)),
            "only the diagonal of $J$ was used.",
        ),
        Wrong(
            "no weights", tuple(y - mean for y in da), "the last factor, the weight, is missing."
        ),
        Wrong("sign", tuple(-exact.softmax_backward(da, a)), "every sign is turned round."),
    ],
)

# ---------------------------------------------- 8.5: three queries, 7 keys, 1, 2 and 4 visible

S, visible = 7, (1, 2, 4)
rank = sum(n - 1 for n in visible)
counting = {
    "rank": Number(
        rank,
        [
            Wrong("visible", sum(visible), "in every row one direction is lost: the common shift."),
            Wrong("no mask", 3 * (S - 1), "that is the rank without a mask."),
            Wrong("one row", max(visible) - 1, "that is the rank of the row with four keys."),
            Wrong("one loss", sum(visible) - 1, "each row has its own softmax and its own loss."),
            Wrong("all", 3 * S, "that is the number of entries."),
        ],
    ),
    "kernel": Number(
        3 * S - rank,
        [
            Wrong("masked", 3 * S - sum(visible), "the common shift of each row is missing."),
            Wrong("shifts", 3, "what $A\u0304$ says about masked keys is lost too."),
            Wrong("rank", rank, "that is the rank. How many dimensions has $A\u0304$ in all?"),
            Wrong("all", 3 * S, "not everything is lost."),
        ],
    ),
}

# ---------------------------------------------- 8.6: the best step in float32

eps = Rational(1, 2**24)
best_step = {
    "central": Number(
        Rational(1, 2**8),
        [
            Wrong(
                "equal",
                Rational(1, 2**8) * 2 ** Rational(1, 3),
                "there the two errors are equal, which is not where their sum is smallest.",
            ),
            Wrong(
                "square root", sqrt(eps), "the truncation error has $h^2$, so a cube root appears."
            ),
            Wrong("epsilon", eps, "that is $ε$."),
            Wrong("float64", Rational(1, 2**53) ** Rational(1, 3), "that is for float64."),
            Wrong("inverse", 2**8, "that is $1/h$."),
        ],
    ),
    "forward": Number(
        Rational(1, 2**12),
        [
            Wrong(
                "cube root",
                Rational(1, 2**8),
                "the truncation error has $h$, so a square root appears.",
            ),
            Wrong("epsilon", eps, "that is $ε$."),
            Wrong("one value", sqrt(eps / 2), "two values are rounded, each by up to $ε$."),
            Wrong("float64", sqrt(Rational(1, 2**53)), "that is for float64."),
        ],
    ),
}

# ---------------------------------------------- 8.7: total derivative, loss o_31

g = exact.attention_backward([[0, 0], [0, 0], [1, 0]], Q, K, V, A)
paths = [dZ * exact.matrix(W).T for dZ, W in zip(g[:3], R[2:5], strict=True)]
total = sum(paths[1:], paths[0])
third_input = {
    "by_query": Number(
        flat(paths[0][2, :]),
        [
            Wrong("by key", flat(paths[1][2, :]), "that is the path by way of the key."),
            Wrong("no scale", flat(paths[0][2, :] * sqrt(2)), "$√d_k$ is missing."),
            Wrong("sign", flat(-paths[0][2, :]), "both signs are turned round."),
        ],
    ),
    "by_key": Number(
        flat(paths[1][2, :]),
        [
            Wrong("by query", flat(paths[0][2, :]), "that is the path by way of the query."),
            Wrong("no scale", flat(paths[1][2, :] * sqrt(2)), "$√d_k$ is missing."),
            Wrong("sign", flat(-paths[1][2, :]), "both signs are turned round."),
        ],
    ),
    "by_value": Number(
        flat(paths[2][2, :]),
        [
            Wrong(
                "weight 1",
                flat(A[2, 0] * exact.row([1, 0])),
                "that is the first weight of the row.",
            ),
            Wrong("full", (1, 0), "the value is read with a weight."),
            Wrong("both", flat(A[2, 2] * exact.row([1, 2])), "the loss looks at one coordinate."),
        ],
    ),
    "total": Number(
        flat(total[2, :]),
        [
            Wrong("query only", flat(paths[0][2, :]), "the input is a key and a value as well."),
            Wrong("no value", flat((paths[0] + paths[1])[2, :]), "the input is a value as well."),
            Wrong("no key", flat((paths[0] + paths[2])[2, :]), "the input is a key as well."),
            Wrong("no query", flat((paths[1] + paths[2])[2, :]), "the input is a query as well."),
            Wrong("mean", flat(total[2, :] / 3), "the paths are added, not averaged."),
        ],
    ),
}

# ---------------------------------------------- numbers for functions


def half(*rows: tuple[int, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Divide a matrix of integers by 2."""
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in rows)


def eighths(*rows: tuple[int, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Divide a matrix of integers by 8: weights, if every row sums to 8."""
    return tuple(tuple(Fraction(entry, 8) for entry in row) for row in rows)


# ---------------------------------------------- 8.8: softmax_backward(dA, A)


def _centred(dA, A, mean):
    return A * (dA - mean)


softmax_backward = Program(
    name="back_through_softmax",
    shapes={"dA": "T S", "A": "T S"},
    returns="T S",
    right=exact.softmax_backward,
    inputs=[
        (half((1, -2, 4), (0, 3, 1)), eighths((4, 3, 1), (2, 1, 5))),
        (((2, -1), (0, 1), (3, 2)), eighths((5, 3), (8, 0), (2, 6))),
        (half((1, 4, -2, 3)), eighths((3, 2, 0, 3))),
    ],
    wrong=[
        Wrong(
            "no mean",
            lambda dA, A: A * dA,
            "the mean of `dA` under the weights was not subtracted.",
        ),
        Wrong(
            "plain mean",
            lambda dA, A: _centred(dA, A, dA.mean(axis=1, keepdims=True)),
            "the plain mean was subtracted; the weights decide how much each entry counts.",
        ),
        Wrong(
            "over queries",
            lambda dA, A: _centred(dA, A, (A * dA).sum(axis=0, keepdims=True)),
            "the mean was taken down the columns. Each query has its own softmax.",
        ),
        Wrong(
            "over everything",
            lambda dA, A: _centred(dA, A, (A * dA).sum()),
            "one number was subtracted from all rows. Each query has its own.",
        ),
        Wrong("diagonal", lambda dA, A: A * (1 - A) * dA, "only the diagonal of $J$ was used."),
        Wrong(
            "no weights",
            lambda dA, A: dA - (A * dA).sum(axis=1, keepdims=True),
            "what is left after the mean still has to be multiplied by the weights.",
        ),
        Wrong(
            "sign",
            lambda dA, A: -_centred(dA, A, (A * dA).sum(axis=1, keepdims=True)),
            "every sign is turned round.",
        ),
    ],
)

# ---------------------------------------------- 8.9: backward(dO, Q, K, V, A)


def _backward(dO, Q, K, V, A) -> tuple:
    found = exact.attention_backward(dO, Q, K, V, A)
    return found.dV, found.dA, found.dU, found.dQ, found.dK


def _scores(dA, A):
    return A * (dA - (A * dA).sum(axis=1, keepdims=True))


def _numpy_backward(dO, Q, K, V, A, *, dU=None, scale=None):
    dV, dA = A.T @ dO, dO @ V.T
    dU = _scores(dA, A) if dU is None else dU(dA, A)
    scale = 1 / np.sqrt(Q.shape[1]) if scale is None else scale(Q)
    return dV, dA, dU, scale * dU @ K, scale * dU.T @ Q


def _scaled_too_early(dO, Q, K, V, A):
    dV, dA, dU, dQ, dK = _numpy_backward(dO, Q, K, V, A)
    return dV, dA, dU / np.sqrt(Q.shape[1]), dQ, dK


head_backward = Backward(
    name="head_backward",
    shapes={"dO": "T d_v", "Q": "T d_k", "K": "S d_k", "V": "S d_v", "A": "T S"},
    returns={"dV": "S d_v", "dA": "T S", "dU": "T S", "dQ": "T d_k", "dK": "S d_k"},
    right=_backward,
    inputs=[
        (
            half((3,), (-1,)),
            half((1, 0, 2, -1), (0, 2, 1, 1)),
            half((2, 1, 0, 1), (0, -1, 2, 1), (1, 1, 0, -2)),
            half((1,), (4,), (-2,)),
            eighths((4, 3, 1), (2, 1, 5)),
        ),
        (
            ((1, 0, -2),),
            ((2, -1),),
            ((1, 0), (0, 1), (2, 1), (-1, 1)),
            ((1, 0, 2), (0, 3, 1), (1, -1, 0), (2, 1, 1)),
            eighths((3, 2, 0, 3)),
        ),
        (
            half((1, 2), (0, -1), (4, 1), (2, 2)),
            half((1, 0, 2), (0, 1, 1), (-2, 1, 0), (1, 1, 1)),
            half((2, 1, -1)),
            half((1, 3)),
            ((1,), (1,), (1,), (1,)),
        ),
    ],
    wrong=[
        Wrong(
            "no scale",
            lambda *x: _numpy_backward(*x, scale=lambda Q: 1.0),
            "$√d_k$ is missing on the way from the scores to queries and keys.",
        ),
        Wrong(
            "by width",
            lambda *x: _numpy_backward(*x, scale=lambda Q: 1 / Q.shape[1]),
            "divided by $d_k$, not by its root.",
        ),
        Wrong(
            "no mean",
            lambda *x: _numpy_backward(*x, dU=lambda dA, A: A * dA),
            "the mean of `dA` under the weights was not subtracted.",
        ),
        Wrong(
            "plain mean",
            lambda *x: _numpy_backward(*x, dU=lambda dA, A: A * (dA - dA.mean(1, keepdims=True))),
            "the plain mean of `dA` was subtracted; the weights decide how much each entry counts.",
        ),
        Wrong(
            "over queries",
            lambda *x: _numpy_backward(*x, dU=lambda dA, A: A * (dA - (A * dA).sum(0))),
            "the mean was taken down the columns. Each query has its own softmax.",
        ),
        Wrong(
            "diagonal",
            lambda *x: _numpy_backward(*x, dU=lambda dA, A: A * (1 - A) * dA),
            "only the diagonal of $J$ was used.",
        ),
        Wrong(
            "no softmax",
            lambda *x: _numpy_backward(*x, dU=lambda dA, A: dA),
            "the step back through softmax is missing.",
        ),
        Wrong(
            "scale of values",
            lambda *x: _numpy_backward(*x, scale=lambda Q: 1 / np.sqrt(x[3].shape[1])),
            "divided by the root of the width of the values.",
        ),
        Wrong(
            "scale in dU",
            _scaled_too_early,
            "`dU` is the gradient by the scores that softmax gets: $√d_k$ comes after it.",
        ),
        Wrong(
            "no transpose",
            lambda dO, Q, K, V, A: (A @ dO, dO @ V.T, 0, 0, 0),
            "a transpose is missing on the way to the values or to the keys.",
        ),
    ],
)

# ---------------------------------------------- 8.10: projection_backward(dQ, X, W)


def _projection_backward(dQ, X, W) -> tuple:
    pairs = [exact.project_backward(dq, x, W) for dq, x in zip(dQ, X, strict=True)]
    dX, dW = zip(*pairs, strict=True)
    return tuple(map(_nested, dX)), sum(dW[1:], dW[0])


def _nested(M: sympy.MatrixBase) -> tuple:
    return tuple(map(tuple, M.tolist()))


projection_backward = Backward(
    name="projection_backward",
    shapes={"dQ": "B T d_k", "X": "B T d", "W": "d d_k"},
    returns={"dX": "B T d", "dW": "d d_k"},
    right=_projection_backward,
    inputs=[
        (
            (half((1,), (-2,), (4,)), half((0,), (3,), (1,))),
            (
                half((1, 0, 2, 1), (0, 1, 1, -1), (2, 1, 0, 3)),
                half((1, 1, 0, 0), (4, -1, 2, 1), (1, 0, 0, 2)),
            ),
            half((1,), (2,), (-1,), (3,)),
        ),
        (
            (((1, 0, 2, -1),), ((0, 1, 1, 1),), ((2, 1, 0, 0),)),
            (((1, 2),), ((0, -1),), ((3, 1),)),
            ((1, 0, 2, 1), (0, 1, -1, 3)),
        ),
        (
            (half((1, 2), (0, 1), (3, -1), (1, 1)),),
            (half((1, 0, 2), (0, 1, 1), (2, -1, 0), (1, 1, 1)),),
            half((1, 2), (0, 1), (-3, 1)),
        ),
    ],
    wrong=[
        Wrong(
            "not summed",
            lambda dQ, X, W: (dQ @ W.T, X.swapaxes(1, 2) @ dQ),
            "one `dW` for each sample was returned. All samples use the same $W$.",
        ),
        Wrong(
            "mean over the batch",
            lambda dQ, X, W: (dQ @ W.T, (X.swapaxes(1, 2) @ dQ).mean(axis=0)),
            "the mean over the batch was taken. A factor of the loss would be in `dQ` already.",
        ),
        Wrong(
            "first sample",
            lambda dQ, X, W: (dQ @ W.T, X[0].T @ dQ[0]),
            "`dW` counts the first sample only.",
        ),
        Wrong(
            "inputs summed",
            lambda dQ, X, W: ((dQ @ W.T).sum(axis=0), (X.swapaxes(1, 2) @ dQ).sum(axis=0)),
            "`dX` was summed over the batch, but each sample has its own input.",
        ),
        Wrong(
            "transposed",
            lambda dQ, X, W: (dQ @ W.T, (dQ.swapaxes(1, 2) @ X).sum(axis=0)),
            "`dW` must have the shape of `W`: it is transposed.",
        ),
        Wrong(
            "positions averaged",
            lambda dQ, X, W: (dQ @ W.T, (X.swapaxes(1, 2) @ dQ).sum(axis=0) / X[..., 0].size),
            "`dW` was divided by the number of all positions.",
        ),
    ],
)

# ---------------------------------------------- 8.11: dropout_backward(dO, V, A, keep, rho)


def _dropout_backward(dO, V, A, keep, rho) -> tuple:
    dO, V, A, keep = map(exact.matrix, (dO, V, A, keep))
    factor = keep / exact.row([rho])[0]
    dA = (dO * V.T).multiply_elementwise(factor)
    return A.multiply_elementwise(factor).T * dO, exact.softmax_backward(dA, A)


dropout_backward = Backward(
    name="dropout_backward",
    shapes={"dO": "T d_v", "V": "S d_v", "A": "T S", "keep": "T S", "rho": ""},
    returns={"dV": "S d_v", "dU": "T S"},
    right=_dropout_backward,
    inputs=[
        (
            half((3,), (-1,)),
            half((1,), (4,), (-2,)),
            eighths((4, 3, 1), (2, 1, 5)),
            ((1, 0, 1), (1, 1, 0)),
            Fraction(1, 2),
        ),
        (
            ((1, -2), (2, 1), (0, 3)),
            ((1, 0), (0, 3), (2, 1), (-1, 1)),
            eighths((3, 2, 1, 2), (1, 1, 4, 2), (2, 4, 1, 1)),
            ((1, 1, 0, 1), (0, 1, 1, 1), (1, 0, 0, 1)),
            Fraction(4, 5),
        ),
        (
            half((2, 1, 4)),
            half((1, 2, 0), (3, 0, 1)),
            eighths((5, 3)),
            ((0, 1),),
            Fraction(1, 4),
        ),
    ],
    wrong=[
        Wrong(
            "no dropout",
            lambda dO, V, A, keep, rho: (A.T @ dO, _scores(dO @ V.T, A)),
            "neither gradient knows the mask.",
        ),
        Wrong(
            "not divided",
            lambda dO, V, A, keep, rho: ((keep * A).T @ dO, _scores(keep * (dO @ V.T), A)),
            "what is kept is divided by `rho`, forwards and backwards.",
        ),
        Wrong(
            "only values",
            lambda dO, V, A, keep, rho: ((keep * A / rho).T @ dO, _scores(dO @ V.T, A)),
            "the mask acts on the way to the scores too, not on the values alone.",
        ),
        Wrong(
            "only scores",
            lambda dO, V, A, keep, rho: (A.T @ dO, _scores(keep / rho * (dO @ V.T), A)),
            "the values were read with the weights after dropout.",
        ),
        Wrong(
            "after softmax",
            lambda dO, V, A, keep, rho: (
                (keep * A / rho).T @ dO,
                keep / rho * _scores(dO @ V.T, A),
            ),
            "the factor comes before the step back through softmax, since dropout came after it.",
        ),
        Wrong(
            "dropped weights",
            lambda dO, V, A, keep, rho: (
                (keep * A / rho).T @ dO,
                _scores(keep / rho * (dO @ V.T), keep * A / rho),
            ),
            "softmax made the weights before dropout: its step back needs those.",
        ),
        Wrong(
            "other way round",
            lambda dO, V, A, keep, rho: (
                ((1 - keep) * A / rho).T @ dO,
                _scores((1 - keep) / rho * (dO @ V.T), A),
            ),
            "kept and dropped were exchanged: 1 means kept.",
        ),
    ],
)

ANSWER = "answer"
EXERCISES = {
    "8.1": second_coordinate,
    "8.2": one_visible_key,
    "8.3": common_shifts,
    "8.4": {ANSWER: by_hand},
    "8.5": counting,
    "8.6": best_step,
    "8.7": third_input,
    "8.8": {ANSWER: softmax_backward},
    "8.9": {ANSWER: head_backward},
    "8.10": {ANSWER: projection_backward},
    "8.11": {ANSWER: dropout_backward},
}
