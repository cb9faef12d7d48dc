"""The function of exercise 2.6, written a second time, pair by pair."""

import math
from itertools import combinations, product


def dot(x, y):
    return sum(float(a) * float(b) for a, b in zip(x, y, strict=True))


def cosine(x, y):
    return dot(x, y) / math.sqrt(dot(x, x) * dot(y, y))


def pairs(X, of=cosine):
    return [of(x, y) for x, y in combinations(X, 2)]


def by_columns(X):
    lengths = [math.hypot(*column) for column in zip(*X, strict=True)]
    return [[x / length for x, length in zip(row, lengths, strict=True)] for row in X]


RIGHT = [
    ("2.6", lambda X: max(abs(t) for t in pairs(X))),
    ("2.6", lambda X: math.sqrt(max(t * t for t in pairs(X)))),
    ("2.6", lambda X: max(*pairs(X), *(-t for t in pairs(X)))),
]

WRONG = [
    ("2.6", "with itself", lambda X: max(abs(cosine(x, y)) for x, y in product(X, X))),
    ("2.6", "no sign", lambda X: max(pairs(X))),
    ("2.6", "no lengths", lambda X: max(abs(t) for t in pairs(X, dot))),
    ("2.6", "one length", lambda X: max(
        abs(dot(x, y)) / min(math.hypot(*x), math.hypot(*y)) for x, y in combinations(X, 2)
    )),
    ("2.6", "columns", lambda X: max(abs(t) for t in pairs(list(zip(*X, strict=True))))),
    ("2.6", "lengths of columns", lambda X: max(abs(t) for t in pairs(by_columns(X), dot))),
    ("2.6", "length of the whole", lambda X: max(
        abs(dot(x, y)) / sum(dot(row, row) for row in X) for x, y in combinations(X, 2)
    )),
    ("2.6", "average", lambda X: sum(abs(t) for t in pairs(X)) / len(pairs(X))),
    ("2.6", "squared", lambda X: max(t * t for t in pairs(X))),
    ("2.6", "angle", lambda X: min(math.acos(abs(t)) for t in pairs(X))),
]  # fmt: skip
