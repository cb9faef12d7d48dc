"""The exercises of chapter 14, attention in a trained model.

Right answers are computed from the formulas in exact numbers. Each wrong answer is what one
misconception leads to on the numbers of the exercise.
"""

from fractions import Fraction

import numpy as np

from attnbook import exact
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 14.1: 9 query heads, 3 key/value heads

H_Q, H_KV, D_K, LAYERS, T = 9, 3, 64, 30, 18
NUMBERS = 2 * LAYERS * H_KV * T * D_K

keys = {
    "head": Number(
        7 // (H_Q // H_KV),
        [
            Wrong("remainder", 7 % H_KV, "that is the remainder: neighbours share keys here."),
            Wrong("from one", 3, "heads count from 0: there are the key heads 0, 1 and 2."),
            Wrong("itself", 7, "there are fewer key/value heads than query heads."),
        ],
    ),
    "numbers": Number(
        NUMBERS,
        [
            Wrong("keys alone", NUMBERS // 2, "values are kept as well as keys."),
            Wrong("query heads", NUMBERS * 3, "that counts query heads. Whose rows are kept?"),
            Wrong("one layer", NUMBERS // LAYERS, "each layer has keys and values of its own."),
            Wrong("bytes", NUMBERS * 2, "that counts bytes in float16, not numbers."),
            Wrong("one head", NUMBERS // H_KV, "that is one key/value head of each layer."),
        ],
    ),
}

# ---------------------------------------------- 14.2: rows 2 to 5 of six tokens

ROWS = range(2, 6)


def mean(values: list) -> Fraction:
    """Return the mean, exactly."""
    return Fraction(sum(values), 1) / len(values)


baseline = {
    "causal": Number(
        mean([Fraction(1, i + 1) for i in ROWS]),
        [
            Wrong("all rows", mean([Fraction(1, i + 1) for i in range(6)]),
                  "that is the mean over all six rows. Which rows name a key?"),
            Wrong("one less", mean([Fraction(1, i) for i in ROWS]),
                  "row $i$, counted from 0, sees itself too."),
            Wrong("sum", sum(Fraction(1, i + 1) for i in ROWS),
                  "that is a sum over the rows. A score is a mean."),
            Wrong("of the mean", Fraction(4, 18),
                  "that is one divided by the mean number of keys, not the mean of the shares."),
            Wrong("divided by six", sum(Fraction(1, i + 1) for i in ROWS) / 6,
                  "divide by the number of rows in which a key is named."),
            Wrong("unmasked", Fraction(1, 6), "the mask hides later keys from most rows."),
        ],
    ),
    "unmasked": Number(
        Fraction(1, 6),
        [
            Wrong("causal", mean([Fraction(1, i + 1) for i in ROWS]),
                  "without a mask every row sees all keys."),
            Wrong("rows", Fraction(1, 4), "that is one divided by the number of rows."),
            Wrong("without itself", Fraction(1, 5), "a token sees itself too."),
        ],
    ),
}  # fmt: skip

# ---------------------------------------------- 14.3: three scores of one head

A = tuple(
    tuple(Fraction(x, 10) for x in row)
    for row in ((10, 0, 0, 0), (4, 6, 0, 0), (1, 7, 2, 0), (2, 1, 6, 1))
)


def over(first: int, key) -> Fraction:
    """Return the mean weight on the key of each row, from a row on."""
    return mean([A[i][key(i)] for i in range(first, 4)])


three = {
    "first": Number(
        over(2, lambda i: 0),
        [
            Wrong("all rows", over(0, lambda i: 0), "only the last two rows count here."),
            Wrong("from row 1", over(1, lambda i: 0), "row 1 is not one of the last two."),
            Wrong("sum", 2 * over(2, lambda i: 0), "that is the sum of two rows, not the mean."),
        ],
    ),
    "previous": Number(
        over(2, lambda i: i - 1),
        [
            Wrong("from row 1", over(1, lambda i: i - 1), "row 1 is not one of the last two."),
            Wrong("next", mean([A[1][2], A[2][3]]), "that is the key after, not before."),
            Wrong("sum", 2 * over(2, lambda i: i - 1), "that is the sum of two rows."),
            Wrong("itself", over(2, lambda i: i), "that is the diagonal."),
        ],
    ),
    "itself": Number(
        over(2, lambda i: i),
        [
            Wrong("all rows", over(0, lambda i: i), "only the last two rows count here."),
            Wrong(
                "from row 1",
                over(1, lambda i: i),
                "that is the mean of the last three rows, or the sum of the last two.",
            ),
            Wrong("previous", over(2, lambda i: i - 1), "that is the key one place before."),
        ],
    ),
}

# ---------------------------------------------- 14.4: row GPU under the mask

tenth = Fraction(1, 10)
cut = Number(
    (2 * tenth, 2 * tenth, 6 * tenth, 0),
    [
        Wrong("not shared", (tenth, tenth, 3 * tenth, 0), "the row no longer sums to 1."),
        Wrong("evenly", (tenth * 8 / 3, tenth * 8 / 3, tenth * 14 / 3, 0),
              "the missing half was dealt out in equal parts. Weights keep their proportions."),
        Wrong("strict", (Fraction(1, 2), Fraction(1, 2), 0, 0),
              "a token may read itself under the causal mask."),
        Wrong("unchanged", (tenth, tenth, 3 * tenth, 5 * tenth), "that is the row before."),
        Wrong("softmax again", (*exact.softmax([tenth, tenth, 3 * tenth]), 0),
              "softmax was taken of the weights. They are no scores."),
    ],
)  # fmt: skip

# ---------------------------------------------- 14.5: weight and contribution

weights = [Fraction(90, 100), Fraction(6, 100), Fraction(4, 100)]
lengths = [Fraction(1, 5), Fraction(3), Fraction(3, 2)]
products = [a * v for a, v in zip(weights, lengths, strict=True)]
contribution = {
    "shares": Number(
        tuple(c / sum(products) for c in products),
        [
            Wrong("weights", tuple(weights), "these are the weights alone."),
            Wrong("lengths", tuple(v / sum(lengths) for v in lengths), "the weights are missing."),
            Wrong("no sum", tuple(products), "these are the lengths. Shares have the sum 1."),
            Wrong(
                "squares",
                tuple(c**2 / sum(x**2 for x in products) for c in products),
                "these are shares of the squares.",
            ),
        ],
    ),
    "longest": Number(
        sum(products),
        [
            Wrong("largest value", Fraction(3), "the output is a mean of the values."),
            Wrong("largest term", max(products), "that is the longest of three terms."),
            Wrong("sum of lengths", sum(lengths), "the weights are missing."),
            Wrong("mean", sum(products) / 3, "weights have the sum 1 already."),
        ],
    ),
}

# ---------------------------------------------- 14.6: the best of 270

chance = {
    "three": Number(
        270 * Fraction(1, 10) ** 2,
        [
            Wrong("probability", Fraction(1, 100), "that is the probability for one head."),
            Wrong("one power", 27, "the power of $1 - t$ is missing."),
            Wrong("t", 270 * Fraction(9, 10) ** 2, "that is $t^2$: more than $t$ is rare."),
            Wrong("any key", 3 * 270 * Fraction(1, 10) ** 2, "that is for any of the three keys."),
        ],
    ),
    "six": Number(
        270 * Fraction(1, 10) ** 5,
        [
            Wrong("probability", Fraction(1, 10) ** 5, "that is the probability for one head."),
            Wrong("t", 270 * Fraction(9, 10) ** 5, "that is $t^5$: more than $t$ is rare."),
            Wrong("power of six", 270 * Fraction(1, 10) ** 6, "one power too many."),
            Wrong("three", 270 * Fraction(1, 10) ** 2, "that is for rows of three keys."),
            Wrong("any key", 6 * 270 * Fraction(1, 10) ** 5, "that is for any of the six keys."),
        ],
    ),
}

# ---------------------------------------------- 14.7: what is impossible

POSSIBLE, IMPOSSIBLE = "possible", "impossible"

judged = {
    "a": Choice(IMPOSSIBLE, [Wrong("possible", POSSIBLE, "What would the five add up to?")]),
    "b": Choice(POSSIBLE, [Wrong("impossible", IMPOSSIBLE, "What if two values are opposite?")]),
    "c": Choice(IMPOSSIBLE, [Wrong("possible", POSSIBLE, "Who comes first in the text?")]),
    "d": Choice(POSSIBLE, [Wrong("impossible", IMPOSSIBLE, "What else is in a score?")]),
}

# ---------------------------------------------- 14.8: a score as a function


def _score(A: tuple, P: tuple) -> Fraction:
    sums = [
        sum(a for a, p in zip(row, names, strict=True) if p)
        for row, names in zip(A, P, strict=True)
        if any(names)
    ]
    return sum(sums) / Fraction(len(sums))


def _tenths(*rows: tuple) -> tuple:
    return tuple(tuple(Fraction(x, 10) for x in row) for row in rows)


def _rows(P: np.ndarray) -> np.ndarray:
    return P.sum(axis=1) > 0


program = Program(
    name="pattern_score",
    shapes={"A": "T S", "P": "T S"},
    returns="",
    right=_score,
    inputs=[
        (
            _tenths((4, 3, 2, 1), (1, 6, 1, 2), (2, 2, 5, 1)),
            ((0, 1, 0, 1), (0, 0, 0, 0), (1, 1, 1, 0)),
        ),
        (
            _tenths((10, 0), (4, 6), (7, 3), (1, 9)),
            ((0, 0), (0, 0), (1, 1), (0, 1)),
        ),
        (
            _tenths((5, 5, 0), (2, 5, 3)),
            ((0, 1, 0), (1, 0, 1)),
        ),
        (
            ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)),
            ((1, 0, 0), (0, 1, 1), (1, 0, 0), (0, 0, 0)),
        ),
    ],
    wrong=[
        Wrong("all rows", lambda A, P: (A * P).sum(axis=1).mean(),
              "rows that name no key are not to be averaged over."),
        Wrong("sum", lambda A, P: (A * P).sum(), "a score is a mean over rows."),
        Wrong("per key", lambda A, P: (A * P).sum() / P.sum(),
              "that is the mean over the keys named. Weights in one row are added."),
        Wrong("all cells", lambda A, P: (A * P).mean(), "that is a mean over all cells."),
        Wrong("columns", lambda A, P: (A * P).sum(axis=0)[P.sum(axis=0) > 0].mean(),
              "the mean goes over columns. Queries are rows."),
        Wrong("largest", lambda A, P: (A * P).max(axis=1)[_rows(P)].mean(),
              "a row that names several keys gives the sum of their weights."),
        Wrong("not named", lambda A, P: (A * (1 - P)).sum(axis=1)[_rows(P)].mean(),
              "that is the weight on the keys that were not named."),
    ],
)  # fmt: skip

EXERCISES = {
    "14.1": keys,
    "14.2": baseline,
    "14.3": three,
    "14.4": {"answer": cut},
    "14.5": contribution,
    "14.6": chance,
    "14.7": judged,
    "14.8": {"answer": program},
}
