"""Second versions of the functions of chapter 09's exercises, right ones and wrong ones.

Written without the chapter's module: loops, einsum, logarithms. Each wrong one stands beside the
misconception that the check has to recognise.
"""

import math

import numpy as np


def entry_by_entry(O, W_O):
    H, T, d_v = O.shape
    Y = np.zeros((T, W_O.shape[2]))
    for i, c in np.ndindex(Y.shape):
        Y[i, c] = sum(O[h, i, p] * W_O[h, p, c] for h in range(H) for p in range(d_v))
    return Y


def merged(O, W_O):
    return np.hstack(list(O)) @ np.vstack(list(W_O))


def by_logarithms(A):
    with np.errstate(divide="ignore"):
        u = np.log(A).sum(axis=0) / math.sqrt(len(A))
    e = np.exp(u - u.max())
    return e / e.sum()


def by_loops(A):
    products = [math.prod(column) ** (len(A) ** -0.5) for column in A.T]
    return [x / sum(products) for x in products]


def powered(exponent):
    """The normalised products of the columns, with an exponent made of H and S."""

    def weights(A):
        x = [math.prod(column) ** exponent(*A.shape) for column in A.T]
        return np.array(x) / math.fsum(x)

    return weights


def in_turns(O, W_O):
    H, T, d_v = O.shape
    C = [[O[h, t, p] for p in range(d_v) for h in range(H)] for t in range(T)]
    return np.array(C) @ np.concatenate(W_O)


def heads_by(entry):
    """The heads entry by entry: head h, position t, feature p is entry(X, h, t, p, H, d_k)."""

    def cut(X, H):
        n, m = X.shape
        heads = np.empty((H, n, m // H))
        for h, t, p in np.ndindex(heads.shape):
            heads[h, t, p] = entry(X, h, t, p, H, m // H)
        return heads

    return cut


rightly = heads_by(lambda X, h, t, p, H, d_k: X[t, h * d_k + p])


RIGHT = [
    ("9.5", entry_by_entry),
    ("9.5", merged),
    ("9.5", lambda O, W_O: np.einsum("htv,hvc->tc", O, W_O)),
    ("9.5", lambda O, W_O: np.tensordot(O, W_O, axes=([0, 2], [0, 1]))),
    ("9.8", by_logarithms),
    ("9.8", by_loops),
    ("9.12", rightly),
    ("9.12", lambda X, H: np.split(X, H, axis=1)),
    ("9.12", lambda X, H: np.array(np.hsplit(X, H)).tolist()),
]

WRONG = [
    ("9.5", "reshape at once", lambda O, W_O: (
        O.ravel().reshape(O.shape[1], -1) @ np.vstack(list(W_O))
    )),
    ("9.5", "interleaved", in_turns),
    ("9.5", "mean", lambda O, W_O: merged(O, W_O) / len(O)),
    ("9.5", "mean output", lambda O, W_O: sum(O) / len(O) @ sum(W_O)),
    ("9.5", "summed first", lambda O, W_O: sum(o @ w for o in O for w in W_O)),
    ("9.5", "one head", lambda O, W_O: np.dot(O[0], W_O[0])),
    ("9.5", "last head", lambda O, W_O: [o @ w for o, w in zip(O, W_O, strict=True)][-1]),
    ("9.5", "reversed", lambda O, W_O: sum(
        o @ w for o, w in zip(O, reversed(W_O), strict=True)
    )),
    ("9.5", "not summed", lambda O, W_O: [o @ w for o, w in zip(O, W_O, strict=True)]),
    ("9.8", "mean", lambda A: sum(A) / len(A)),
    ("9.8", "no root", powered(lambda H, S: 1)),
    ("9.8", "geometric mean", powered(lambda H, S: 1 / H)),
    ("9.8", "root of S", powered(lambda H, S: 1 / math.sqrt(S))),
    ("9.8", "not normalised", lambda A: np.prod(A ** (len(A) ** -0.5), axis=0)),
    ("9.8", "multiplied", powered(lambda H, S: math.sqrt(H))),
    ("9.8", "first head", lambda A: list(A[0])),
    ("9.8", "softmax of mean", lambda A: np.exp(sum(A) / len(A)) / sum(np.exp(sum(A) / len(A)))),
    ("9.8", "largest", lambda A: [max(c) / sum(map(max, A.T)) for c in A.T]),
    ("9.12", "reshape at once", heads_by(
        lambda X, h, t, p, H, d_k: X.ravel()[(h * len(X) + t) * d_k + p]
    )),
    ("9.12", "interleaved", lambda X, H: [X[:, h::H] for h in range(H)]),
    ("9.12", "positions first", lambda X, H: [np.split(x, H) for x in X]),
    ("9.12", "heads last", lambda X, H: np.dstack(np.hsplit(X, H))),
    ("9.12", "transposed", lambda X, H: [x.T for x in np.hsplit(X, H)]),
    ("9.12", "reshape of the transpose", heads_by(
        lambda X, h, t, p, H, d_k: X.ravel(order="F")[(h * len(X) + t) * d_k + p]
    )),
    ("9.12", "reversed", lambda X, H: list(reversed(np.hsplit(X, H)))),
    ("9.12", "H as width", lambda X, H: rightly(X, X.shape[1] // H)),
    ("9.12", "first head", heads_by(lambda X, h, t, p, H, d_k: X[t, p])),
    ("9.12", "copies", lambda X, H: [X for _ in range(H)]),
]  # fmt: skip
