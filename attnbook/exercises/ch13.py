"""The exercises of chapter 13, learning to attend.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, log, sqrt

from attnbook import cost, exact
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 13.1: 26 equal logits

equal_logits = Number(
    log(26),
    [
        Wrong("probability", Rational(1, 26), "this is the probability of the right answer."),
        Wrong("sign", -log(26), "a loss is not negative: its sign is turned round."),
        Wrong("bits", log(26) / log(2), "this is the logarithm to base 2."),
        Wrong("one less", log(25), "the right answer is one of the logits too."),
        Wrong("mean", log(26) / 26, "divided by the number of logits: the mean runs over places."),
    ],
)

# ---------------------------------------------- 13.2: three successors, T = 20

floors = {
    "masked": Number(
        log(3),
        [
            Wrong("two successors", log(2), "this is the floor of a language with two successors."),
            Wrong("shared", log(3) / 20, "with the mask every place is uncertain, not only one."),
            Wrong("sum", 20 * log(3), "this is the sum over the places. The loss is their mean."),
            Wrong("probability", Rational(1, 3), "this is a probability, not its -log."),
        ],
    ),
    "unmasked": Number(
        log(3) / 20,
        [
            Wrong("masked", log(3), "a place whose target can be read need not lose anything."),
            Wrong("zero", 0, "one of the targets is not among the words that are read."),
            Wrong("two successors", log(2) / 20, "how many words may follow here?"),
            Wrong("others", 19 * log(3) / 20, "these are the places whose target can be read."),
            Wrong("over 19", log(3) / 19, "the mean runs over all places that are asked."),
        ],
    ),
}

# ---------------------------------------------- 13.3: the gradient by three logits

p = exact.softmax(exact.row([log(3), 0, 0]))
logit_gradient = Number(
    tuple(p[c] - int(c == 1) for c in range(3)),
    [
        Wrong("sign", tuple(int(c == 1) - p[c] for c in range(3)), "every sign is turned round."),
        Wrong("probabilities", tuple(p), "these are the probabilities alone."),
        Wrong(
            "first target",
            tuple(p[c] - int(c == 0) for c in range(3)),
            "1 was taken off the largest logit, not off the target.",
        ),
        Wrong(
            "logits",
            (log(3), -1, 0),
            "1 was taken off the logit itself: softmax comes first.",
        ),
        Wrong("target alone", (0, p[1] - 1, 0), "the other logits have a gradient too."),
    ],
)

# ---------------------------------------------- 13.4: Adam's first step

RATE = Rational(1, 100)
d = (Rational(4), Rational(-1, 10), Rational(0))
length = sqrt(sum(x**2 for x in d))
first_step = Number(
    tuple(-RATE * sympy.sign(x) for x in d),
    [
        Wrong("uphill", tuple(RATE * sympy.sign(x) for x in d), "this goes up the slope."),
        Wrong("plain", tuple(-RATE * x for x in d), "this is plain gradient descent."),
        Wrong(
            "normalised",
            tuple(-RATE * x / length for x in d),
            "divided by the length of the whole gradient. Adam has a root for each parameter.",
        ),
        Wrong(
            "without first correction",
            tuple(-RATE * sympy.sign(x) / 10 for x in d),
            "the mean $m$ was not divided by $1 - β_1^t$.",
        ),
        Wrong(
            "without second correction",
            tuple(-RATE * sympy.sign(x) * 10 for x in d),
            "the mean $v$ was not divided by $1 - β_2^t$.",
        ),
        Wrong(
            "no root",
            (-RATE / d[0], -RATE / d[1], 0),
            "the root is missing: $m$ was divided by the square of the gradient.",
        ),
    ],
)

# ---------------------------------------------- 13.5: parameters of a small model


def count(H_kv: int = 2, W_O: int = 24 * 24, positions: int = 10, rows_out: int = 24) -> int:
    """Return the number of parameters of the exercise's model, or of a wrong one."""
    one_layer = 24 * 24 + 2 * 24 * H_kv * 6 + W_O
    return 12 * 24 + positions * 24 + 3 * one_layer + rows_out * 12


parameters = Number(
    count(),
    [
        Wrong("all heads", count(H_kv=4), "every query head got keys and values of its own."),
        Wrong("one head", count(H_kv=1), "there is more than one key/value head."),
        Wrong("no output projection", count(W_O=0), "$W_O$ is missing in each layer."),
        Wrong("no positions", count(positions=0), "the position vectors are missing."),
        Wrong(
            "one layer",
            count() - 2 * (24 * 24 + 2 * 24 * 12 + 24 * 24),
            "the projections of one layer were counted once.",
        ),
        Wrong("no output matrix", count(rows_out=0), "the matrix that makes logits is missing."),
    ],
)

# ---------------------------------------------- 13.6: targets shifted the other way

backwards = Choice(
    "attention",
    [
        Wrong(
            "residual",
            "residual",
            "The residual path brings a place its own word. Is that the word asked for?",
        ),
        Wrong(
            "nothing",
            "nothing",
            "Which places may be read under the mask? Is the answer among them?",
        ),
    ],
)

# ---------------------------------------------- 13.7: the gradient by logits, as a function


def _gradient(U, Y):
    P = exact.softmax(exact.matrix(U))
    return (P - exact.matrix(Y)) / len(U)


def _p(U, axis=-1):
    e = np.exp(U - U.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def half(*rows: tuple[int, ...]) -> tuple:
    """Return rows of halves."""
    return tuple(tuple(Fraction(n, 2) for n in row) for row in rows)


logits_gradient = Program(
    name="logits_gradient",
    shapes={"U": "n C", "Y": "n C"},
    returns="n C",
    right=_gradient,
    inputs=[
        (half((1, 0, 2), (0, -1, 1)), ((0, 1, 0), (1, 0, 0))),
        (((0, 1), (1, -1), (2, 1)), ((1, 0), (0, 1), (0, 1))),
        (
            half((1, 2, 0, -1), (0, 1, 1, 3), (2, -1, 1, 0)),
            ((0, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, 0)),
        ),
    ],
    wrong=[
        Wrong("sum", lambda U, Y: _p(U) - Y, "this is the gradient of the sum over places."),
        Wrong("sign", lambda U, Y: (Y - _p(U)) / len(U), "every sign is turned round."),
        Wrong(
            "mean of all",
            lambda U, Y: (_p(U) - Y) / U.size,
            "divided by the number of logits. The mean runs over places.",
        ),
        Wrong(
            "classes",
            lambda U, Y: (_p(U) - Y) / U.shape[1],
            "divided by the number of classes. The mean runs over places.",
        ),
        Wrong(
            "columns",
            lambda U, Y: (_p(U, axis=0) - Y) / len(U),
            "softmax ran down the columns. A row holds the logits of one place.",
        ),
        Wrong("no softmax", lambda U, Y: (U - Y) / len(U), "softmax is missing."),
        Wrong(
            "target alone",
            lambda U, Y: -Y * (1 - _p(U)) / len(U),
            "the logits that are not the target have a gradient too.",
        ),
    ],
)

# ---------------------------------------------- 13.8: bytes of a cache


def cache(H_kv: int = 1, **change: int) -> int:
    """Return the bytes of the exercise's cache, or of a wrong one."""
    sizes = {"S": 1000, "d_k": 16, "layers": 2, "bytes_per_number": 2} | change
    return cost.cache_bytes(H_kv=H_kv, **sizes)


shared_cache = {
    "MHA": Number(
        cache(4),
        [
            Wrong("MQA", cache(), "this is the cache with one key/value head."),
            Wrong("half", cache(4) // 2, "keys and values are kept, in both layers, 2 bytes each."),
            Wrong("float32", cache(4, bytes_per_number=4), "float16 has 2 bytes, float32 has 4."),
            Wrong("float64", cache(4, bytes_per_number=8), "float16 has 2 bytes, float64 has 8."),
        ],
    ),
    "MQA": Number(
        cache(),
        [
            Wrong("MHA", cache(4), "this is the cache with as many key/value heads as queries."),
            Wrong("one of two", cache() // 2, "keys and values are kept, in every layer."),
            Wrong("head count twice", cache() // 4, "the head count went in twice."),
            Wrong("float32", cache(bytes_per_number=4), "float16 has 2 bytes."),
        ],
    ),
}

EXERCISES = {
    "13.1": {"answer": equal_logits},
    "13.2": floors,
    "13.3": {"answer": logit_gradient},
    "13.4": {"answer": first_step},
    "13.5": {"answer": parameters},
    "13.6": {"answer": backwards},
    "13.7": {"answer": logits_gradient},
    "13.8": shared_cache,
}
