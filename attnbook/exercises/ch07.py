"""The exercises of chapter 07."""

from fractions import Fraction

import numpy as np
from sympy import Rational, exp, log, sqrt

from attnbook import exact
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 7.1: Q 5 x 8, K 7 x 8, V 7 x 3

TRANSPOSED = "rows belong to queries. You have them as columns."

three_shapes = {
    "scores": Number(
        (5, 7),
        [
            Wrong("transposed", (7, 5), TRANSPOSED),
            Wrong("no product", (5, 8), "that is the shape of $Q$."),
            Wrong("features", (8, 8), "that is $Q^⊤$ against keys: features were kept."),
        ],
    ),
    "weights": Number(
        (5, 7),
        [
            Wrong("transposed", (7, 5), TRANSPOSED),
            Wrong("output", (5, 3), "that is the shape of the output."),
            Wrong("one row", (1, 7), "every query has a row of weights of its own."),
        ],
    ),
    "output": Number(
        (5, 3),
        [
            Wrong("values", (7, 3), "that is the shape of $V$. There is a row for each query."),
            Wrong("width of keys", (5, 8), "the output is as wide as a value."),
            Wrong("transposed", (3, 5), TRANSPOSED),
            Wrong("weights", (5, 7), "that is the shape of the weights."),
        ],
    ),
    "total": Number(
        5,
        [
            Wrong("keys", 7, "that is the total if every column sums to 1."),
            Wrong("one", 1, "every row sums to 1. How many rows are there?"),
            Wrong("entries", 35, "that is the number of entries."),
        ],
    ),
}

# ---------------------------------------------- 7.2: A 9 x 4, O 9 x 5, W_Q 6 x 2, X_m 4 x 8

backwards = {
    "X_q": Number(
        (9, 6),
        [
            Wrong("transposed", (6, 9), "positions are rows."),
            Wrong("width of X_m", (9, 8), "that width is $d_m$. Look at $W_Q$."),
            Wrong("keys", (4, 6), "that is the number of keys. Queries are the rows of $A$."),
            Wrong("queries", (9, 2), "that is the shape of $Q$."),
        ],
    ),
    "W_K": Number(
        (8, 2),
        [
            Wrong("W_Q", (6, 2), "that is the shape of $W_Q$. Keys are made from $X_m$."),
            Wrong("transposed", (2, 8), "a row of $X_m$ is multiplied from the left."),
            Wrong("keys", (4, 2), "that is the shape of $K$."),
            Wrong("width of values", (8, 5), "that width is $d_v$."),
        ],
    ),
    "W_V": Number(
        (8, 5),
        [
            Wrong("width of keys", (8, 2), "that width is $d_k$. Look at $O$."),
            Wrong("transposed", (5, 8), "a row of $X_m$ is multiplied from the left."),
            Wrong("values", (4, 5), "that is the shape of $V$."),
            Wrong("other input", (6, 5), "values are made from $X_m$."),
        ],
    ),
    "self_attention": Choice(
        "no", [Wrong("yes", "yes", "Compare the number of queries with the number of keys.")]
    ),
}

# ---------------------------------------------- 7.3: the second reconstruction of [E], causal

a, b = 1 / (1 + exp(Rational(5, 2))), 1 / (1 + exp(4))
unscaled = 1 / (1 + exp(8))
by_d_k = 1 / (1 + exp(2))
NO_MASK = "the first query still reads the second key."
AFTER_SOFTMAX = "a weight was set to 0 after the softmax: the first row no longer sums to 1."
causal_rebuilt = {
    "a_1": Number(
        (1, 0),
        [
            Wrong("no mask", (a, 1 - a), NO_MASK),
            Wrong("after softmax", (a, 0), AFTER_SOFTMAX),
            Wrong("itself", (0, 1), "a query may read its own key. The later one is forbidden."),
            Wrong("uniform", (Rational(1, 2), Rational(1, 2)), "that is the average of both keys."),
        ],
    ),
    "o_1": Number(
        (1, 0),
        [
            Wrong("no mask", (2 - a, 2 - 2 * a), NO_MASK),
            Wrong("after softmax", (a, 0), AFTER_SOFTMAX),
            Wrong("itself", (2, 2), "a query may read its own value. The later one is forbidden."),
            Wrong("average", (Rational(3, 2), 1), "that is the average of both values."),
        ],
    ),
    "o_2": Number(
        (2 - b, 2 - 2 * b),
        [
            Wrong("no scale", (2 - unscaled, 2 - 2 * unscaled), "the scale is missing."),
            Wrong(
                "divided by d_k", (2 - by_d_k, 2 - 2 * by_d_k), "divided by $d_k$, not its root."
            ),
            Wrong("weights", (b, 1 - b), "these are the weights."),
            Wrong("X for V", (1, 1 - b), "$X$ was read instead of $V$."),
            Wrong("first row", (2 - a, 2 - 2 * a), "that is the first row of the unmasked output."),
        ],
    ),
}

# ---------------------------------------------- 7.4: a gap of 5 that became log(0.9472/0.0528)

which_root = {
    "square": Number(
        3,
        [
            Wrong("root", sqrt(3), "that is the number itself. Its square is asked for."),
            Wrong("right one", 4, "that is what a correct head would have: its first weight is "
                  "0.0759."),
            Wrong("d_v", 2, "the first weight would be 0.0283."),
            Wrong("fourth power", 9, "that is the square of the square."),
            Wrong("gap", Rational(2887, 1000), "that is the scaled gap."),
            Wrong("inverse", Rational(1, 3), "that is the square of what they were multiplied by."),
        ],
    ),
    "letter": Choice(
        "d_q",
        [
            Wrong("d_k", "d_k", "That would be right, and give other weights."),
            Wrong("d_v", "d_v", "Its root would make the row sharper than it is here."),
            Wrong("S", "S", "The number of keys is 2. Which weights would its root give?"),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 7.5: weights (1/5, 4/5), keys 1 and 0

given_weights = {
    "query": Number(
        -log(4),
        [
            Wrong("sign", log(4), "then the first key has the larger weight."),
            Wrong("of a weight", log(Rational(1, 5)), "that is the logarithm of $a_1$. The second "
                  "score is 0, but its exponential is not."),
            Wrong("ratio", Rational(1, 4), "that is the ratio of the weights."),
            Wrong("other weight", log(Rational(4, 5)), "that is the logarithm of $a_2$."),
            Wrong("base 2", -2, "softmax has base $e$, not 2."),
        ],
    ),
    "output": Number(
        (Rational(2, 5), Rational(16, 5)),
        [
            Wrong("swapped", (Rational(8, 5), Rational(4, 5)), "the weights were exchanged."),
            Wrong("average", (1, 2), "that is the average of the values."),
            Wrong("weights", (Rational(1, 5), Rational(4, 5)), "these are the weights."),
            Wrong("hard", (0, 4), "that is the value of the larger weight. Softmax blends."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 7.6: (0.10, 0.10, 0.30, 0.50), causal

TENTH = Rational(1, 10)
hand_made_row = {
    "masked": Number(
        (Rational(1, 5), Rational(1, 5), Rational(3, 5), 0),
        [
            Wrong("not divided", (TENTH, TENTH, 3 * TENTH, 0), "the row does not sum to 1."),
            Wrong("unmasked", (TENTH, TENTH, 3 * TENTH, 5 * TENTH), "nothing was masked."),
            Wrong(
                "spread",
                (*[TENTH + Rational(1, 6)] * 2, 3 * TENTH + Rational(1, 6), 0),
                "the forbidden weight was spread evenly. A softmax keeps the ratios.",
            ),
            Wrong(
                "own key too",
                (Rational(1, 2), Rational(1, 2), 0, 0),
                "the own key was masked as well.",
            ),
            Wrong("two rows", (0, 0, Rational(3, 8), Rational(5, 8)), "the past was masked."),
            Wrong("uniform", (*[Rational(1, 3)] * 3, 0), "the remaining weights are not equal."),
        ],
    ),
    "factor": Number(
        Rational(1, 2),
        [
            Wrong("inverse", 2, "that is what it would have to be multiplied by."),
            Wrong("one weight", 3 * TENTH, "that is the weight of one key."),
            Wrong("count", Rational(3, 4), "that is the share of keys that may be read."),
            Wrong("one", 1, "without a division the row no longer sums to 1."),
        ],
    ),
}

# ---------------------------------------------- 7.7: head(X, W_Q, W_K, W_V)


def half(*rows: tuple[int, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Divide a matrix of integers by 2."""
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in rows)


def _exact_head(X, W_Q, W_K, W_V):
    return exact.attention(*(exact.project(X, W) for W in (W_Q, W_K, W_V))).O


def _softmax(U, axis=1):
    e = np.exp(U - U.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _over(width):
    """Return a head that divides by the root of a width of its own choice."""

    def wrong(X, W_Q, W_K, W_V):
        return _softmax(X @ W_Q @ (X @ W_K).T / np.sqrt(width(X, W_K, W_V))) @ (X @ W_V)

    return wrong


def _reads(weights):
    """Return a head with another way from scaled scores and values to the output."""

    def wrong(X, W_Q, W_K, W_V):
        return weights(X @ W_Q @ (X @ W_K).T / np.sqrt(W_K.shape[1]), X @ W_V)

    return wrong


head = Program(
    name="head",
    shapes={"X": "n d", "W_Q": "d d_k", "W_K": "d d_k", "W_V": "d d_v"},
    returns="n d_v",
    right=_exact_head,
    inputs=[
        (
            half((2, 1), (0, -1), (-2, 3)),
            half((1, 0, 2, -1), (2, -1, 0, 1)),
            half((2, 1, -1, 0), (-1, 0, 1, 3)),
            half((2,), (-3,)),
        ),
        (
            half((1, 0, 1, 0), (0, 1, -1, 1)),
            ((1,), (0,), (1,), (-1,)),
            ((0,), (1,), (-1,), (1,)),
            ((2, 0, 1), (0, 3, -1), (1, 1, 0), (-2, 1, 4)),
        ),
        (
            ((1,), (-1,), (2,), (0,)),
            ((1, 0, -1),),
            ((0, 1, -1),),
            ((3, -2),),
        ),
    ],
    wrong=[
        Wrong(
            "exchanged",
            lambda X, W_Q, W_K, W_V: _over(lambda *_: W_Q.shape[1])(X, W_K, W_Q, W_V),
            "$W_Q$ and $W_K$ were exchanged, or the scores transposed.",
        ),
        Wrong(
            "queries twice",
            lambda X, W_Q, W_K, W_V: _over(lambda *_: W_Q.shape[1])(X, W_Q, W_Q, W_V),
            "the keys were made with $W_Q$.",
        ),
        Wrong("no scale", _over(lambda *_: 1), "the scores were not divided by anything."),
        Wrong(
            "divided by d_k",
            _over(lambda X, W_K, W_V: W_K.shape[1] ** 2),
            "the scores were divided by $d_k$, not by its root.",
        ),
        Wrong(
            "root of d_v",
            _over(lambda X, W_K, W_V: W_V.shape[1]),
            "the root of the width of the values was taken.",
        ),
        Wrong(
            "root of d",
            _over(lambda X, W_K, W_V: X.shape[1]),
            "the root of the width of $X$ was taken.",
        ),
        Wrong(
            "root of n",
            _over(lambda X, W_K, W_V: len(X)),
            "the root of the number of keys was taken.",
        ),
        Wrong(
            "over queries",
            _reads(lambda U, V: _softmax(U, axis=0) @ V),
            "softmax ran along the queries. Every query needs weights of sum 1.",
        ),
        Wrong(
            "no softmax",
            _reads(lambda U, V: U @ V),
            "the scores were used as weights, without a softmax.",
        ),
        Wrong(
            "no sum",
            _reads(lambda U, V: np.exp(U - U.max(axis=1, keepdims=True)) @ V),
            "the exponentials were not divided by their sum.",
        ),
        Wrong(
            "scale outside",
            lambda X, W_Q, W_K, W_V: _over(lambda *_: 1)(X, W_Q, W_K, W_V) / np.sqrt(W_K.shape[1]),
            "the weights were divided instead of the scores.",
        ),
        Wrong(
            "average",
            _reads(lambda U, V: np.tile(V.mean(axis=0), (len(U), 1))),
            "this is the plain average of the values for every query.",
        ),
        Wrong(
            "causal",
            _reads(lambda U, V: _softmax(np.where(np.tri(len(U), dtype=bool), U, -np.inf)) @ V),
            "a causal mask was applied. Here every query may read every key.",
        ),
    ],
)

# ---------------------------------------------- 7.8: attend(Q, K, V, n)


def _exact_attend(Q, K, V, n):
    allowed = [[j < n_i for j in range(len(K))] for n_i in n]
    return exact.attention(Q, K, V, allowed, query_valid=[n_i > 0 for n_i in n]).O


def _loop(Q, K, V, n, weights):
    """Return what ``weights(scores, n_i)`` reads, query by query."""
    U = Q @ K.T / np.sqrt(Q.shape[1])
    return np.array([weights(u, int(n_i)) @ V for u, n_i in zip(U, n, strict=True)])


def _first(u, n):
    """Return softmax over the first n scores, zeros elsewhere."""
    a = np.zeros(len(u))
    if n:
        a[:n] = _softmax(u[None, :n])[0]
    return a


def _divided_again(u, n):
    return _cut(u, n) / _cut(u, n).sum() if n else np.zeros(len(u))


def _cut(u, n):
    return np.where(np.arange(len(u)) < n, _softmax(u[None])[0], 0)


attend = Program(
    name="attend",
    shapes={"Q": "T d_k", "K": "S d_k", "V": "S d_v", "n": "T"},
    returns="T d_v",
    right=_exact_attend,
    inputs=[
        (
            half((2, -1), (1, 3), (0, 2)),
            half((1, 0), (2, 1), (-1, 2), (0, -2)),
            half((2,), (-1,), (3,), (5,)),
            (0, 2, 3),
        ),
        (
            ((1,), (-1,), (1,), (0,)),
            ((1,), (-1,)),
            ((2, 0, 1), (0, 3, -2)),
            (1, 0, 2, 2),
        ),
        (
            half((3, 0, -1, 1), (1, 2, 0, -2)),
            half((1, -1, 0, 1), (2, 0, 1, 0), (0, 2, 1, -1)),
            half((4,), (1,), (-2,)),
            (2, 0),
        ),
        (
            ((40, 1),),
            ((0, 2), (0, 1), (40, 0)),
            ((1, 0, 3, 2), (0, 2, 1, -4), (5, 5, 5, 5)),
            (2,),
        ),
    ],
    wrong=[
        Wrong(
            "every key",
            lambda Q, K, V, n: _loop(Q, K, V, n, lambda u, m: _first(u, len(u))),
            "every query reads every key: $n$ is not used.",
        ),
        Wrong(
            "invalid reads",
            lambda Q, K, V, n: _loop(Q, K, V, n, lambda u, m: _first(u, m or len(u))),
            "an invalid query reads everything. Its row is zero.",
        ),
        Wrong(
            "invalid averages",
            lambda Q, K, V, n: _loop(
                Q, K, V, n, lambda u, m: _first(u, m) if m else np.full(len(u), 1 / len(u))
            ),
            "an invalid query gets the average of the values. Its row is zero.",
        ),
        Wrong(
            "cut after softmax",
            lambda Q, K, V, n: _loop(Q, K, V, n, _cut),
            "the forbidden weights were set to 0 after the softmax: they are still in the "
            "denominator.",
        ),
        Wrong(
            "divided again",
            lambda Q, K, V, n: _loop(Q, K, V, n, _divided_again),
            "the softmax ran over all keys first. If a forbidden score is the largest by far, the "
            "weights of the keys that are read are 0 in floating point.",
        ),
        Wrong(
            "one more",
            lambda Q, K, V, n: _loop(
                Q, K, V, n, lambda u, m: _first(u, min(m + 1, len(u)) if m else 0)
            ),
            "one key too many is read.",
        ),
        Wrong(
            "one less",
            lambda Q, K, V, n: _loop(Q, K, V, n, lambda u, m: _first(u, max(m - 1, 0))),
            "one key too few is read.",
        ),
        Wrong(
            "last keys",
            lambda Q, K, V, n: _loop(Q, K, V, n, lambda u, m: _first(u[::-1], m)[::-1]),
            "the last keys are read instead of the first.",
        ),
        Wrong(
            "no scale",
            lambda Q, K, V, n: _loop(Q * np.sqrt(Q.shape[1]), K, V, n, _first),
            "the scores were not divided by anything.",
        ),
        Wrong(
            "divided by d_k",
            lambda Q, K, V, n: _loop(Q / np.sqrt(Q.shape[1]), K, V, n, _first),
            "the scores were divided by $d_k$, not by its root.",
        ),
    ],
)

# ---------------------------------------------- 7.9: window of 3, four layers, 20 tokens

how_far = {
    "up_to": Number(
        9,
        [
            Wrong("one layer", 3, "that is one layer."),
            Wrong("three a layer", 13, "a window of three tokens leads two tokens on."),
            Wrong("steps", 8, "that is how many tokens further. Which token is it?"),
            Wrong("window", 12, "that is 3 times 4. How far does one layer lead?"),
            Wrong("all", 20, "a window lets nobody read the whole text in four layers."),
        ],
    ),
    "inputs": Number(
        9,
        [
            Wrong("one layer", 3, "that is one layer."),
            Wrong("without itself", 8, "the token itself counts too."),
            Wrong("all", 20, "the first tokens are too far away."),
            Wrong("window", 12, "overlapping windows share tokens."),
            Wrong("three a layer", 13, "a window of three tokens leads two tokens back."),
        ],
    ),
    "layers": Number(
        10,
        [
            Wrong("three a layer", 7, "a window of three tokens leads two tokens on."),
            Wrong("one a layer", 19, "that is a window of two tokens."),
            Wrong("rounded down", 9, "nine layers lead 18 tokens on."),
            Wrong("tokens", 20, "that is the number of tokens."),
        ],
    ),
}  # fmt: skip

EXERCISES = {
    "7.1": three_shapes,
    "7.2": backwards,
    "7.3": causal_rebuilt,
    "7.4": which_root,
    "7.5": given_weights,
    "7.6": hand_made_row,
    "7.7": {"answer": head},
    "7.8": {"answer": attend},
    "7.9": how_far,
}
