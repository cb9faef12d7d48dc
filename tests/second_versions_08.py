"""The functions of the exercises of chapter 08, written a second time.

RIGHT and WRONG are programs with one result, BACKWARD_RIGHT and BACKWARD_WRONG return several.
"""

import numpy as np


def by_jacobians(dA, A):
    return np.array([da @ (np.diag(a) - np.outer(a, a)) for da, a in zip(dA, A, strict=True)])


def by_row(entry):
    """Row by row, entry by entry: entry(j, da, a)."""

    def rows(dA, A):
        pairs = zip(dA, A, strict=True)
        return [[entry(j, da, a) for j in range(len(a))] for da, a in pairs]

    return rows


RIGHT = [
    ("8.8", by_jacobians),
    ("8.8", by_row(lambda j, da, a: a[j] * (da[j] - np.dot(a, da)))),
    ("8.8", lambda dA, A: A * dA - np.einsum("ij,il,il->ij", A, A, dA)),
]

WRONG = [
    ("8.8", "no mean", by_row(lambda j, da, a: a[j] * da[j])),
    ("8.8", "plain mean", by_row(lambda j, da, a: a[j] * (da[j] - sum(da) / len(da)))),
    ("8.8", "over queries", lambda dA, A: A * (dA - np.einsum("ij,ij->j", A, dA))),
    ("8.8", "over everything", lambda dA, A: A * (dA - np.vdot(A, dA))),
    ("8.8", "diagonal", by_row(lambda j, da, a: (a[j] - a[j] ** 2) * da[j])),
    ("8.8", "no weights", by_row(lambda j, da, a: da[j] - np.dot(a, da))),
    ("8.8", "sign", lambda dA, A: -by_jacobians(dA, A)),
]


def whole_head(softmax=by_jacobians, factor=lambda d_k: d_k**-0.5):
    def backward(dO, Q, K, V, A):
        dV = np.einsum("ij,ip->jp", A, dO)
        dA = np.einsum("ip,jp->ij", dO, V)
        dU = np.array(softmax(dA, A))
        s = factor(len(Q[0]))
        return [dV, dA, dU, np.einsum("ij,jp->ip", dU, K) * s, np.einsum("ij,ip->jp", dU, Q) * s]

    return backward


def scaled_scores(dO, Q, K, V, A):
    """Take the gradient by the products of queries and keys for that by the scores."""
    dV, dA, dU, _, _ = whole_head()(dO, Q, K, V, A)
    products = dU / len(Q[0]) ** 0.5
    return dV, dA, products, products @ K, np.transpose(products) @ Q


def projected(dQ, X, W):
    return np.einsum("bip,rp->bir", dQ, W), np.einsum("bir,bip->brp", X, dQ)


def dropped(values=np.ones_like, before=np.ones_like, after=np.ones_like):
    """With what is made of the factor keep / rho on the value path, on dA and on dU."""

    def backward(dO, V, A, keep, rho):
        factor = keep / rho
        dV = np.transpose(values(factor) * A) @ dO
        return dV, after(factor) * by_jacobians(before(factor) * (dO @ np.transpose(V)), A)

    return backward


def same(x):
    return x


def undivided(x):
    return (x > 0) * 1.0


BACKWARD_RIGHT = [
    ("8.9", whole_head()),
    ("8.9", whole_head(by_row(lambda j, da, a: a[j] * (da[j] - np.dot(a, da))))),
    ("8.10", lambda dQ, X, W: (projected(dQ, X, W)[0], projected(dQ, X, W)[1].sum(0))),
    ("8.10", lambda dQ, X, W: (dQ @ W.T, np.tensordot(X, dQ, ((0, 1), (0, 1))))),
    ("8.11", dropped(same, same)),
]

BACKWARD_WRONG = [
    ("8.9", "no scale", whole_head(factor=lambda d_k: 1)),
    ("8.9", "by width", whole_head(factor=lambda d_k: 1 / d_k)),
    ("8.9", "no mean", whole_head(lambda dA, A: dA * A)),
    ("8.9", "plain mean", whole_head(by_row(lambda j, da, a: a[j] * (da[j] - np.mean(da))))),
    ("8.9", "over queries", whole_head(lambda dA, A: A * (dA - np.einsum("ij,ij->j", A, dA)))),
    ("8.9", "diagonal", whole_head(by_row(lambda j, da, a: (a[j] - a[j] ** 2) * da[j]))),
    ("8.9", "no softmax", whole_head(lambda dA, A: dA)),
    ("8.9", "scale of values", lambda *x: whole_head(factor=lambda d_k: len(x[3][0]) ** -0.5)(*x)),
    ("8.9", "scale in dU", scaled_scores),
    ("8.9", "no transpose", lambda dO, Q, K, V, A: [A @ dO]),
    ("8.10", "not summed", projected),
    (
        "8.10",
        "mean over the batch",
        lambda dQ, X, W: (projected(dQ, X, W)[0], projected(dQ, X, W)[1].sum(0) / len(X)),
    ),
    ("8.10", "first sample", lambda dQ, X, W: (dQ @ W.T, projected(dQ, X, W)[1][0])),
    ("8.10", "inputs summed", lambda dQ, X, W: [x.sum(0) for x in projected(dQ, X, W)]),
    ("8.10", "transposed", lambda dQ, X, W: (dQ @ W.T, projected(dQ, X, W)[1].sum(0).T)),
    (
        "8.10",
        "positions averaged",
        lambda dQ, X, W: (dQ @ W.T, projected(dQ, X, W)[1].mean(0) / len(X[0])),
    ),
    ("8.11", "no dropout", dropped()),
    ("8.11", "not divided", dropped(undivided, undivided)),
    ("8.11", "only values", dropped(same)),
    ("8.11", "only scores", dropped(before=same)),
    ("8.11", "after softmax", dropped(same, after=same)),
    (
        "8.11",
        "dropped weights",
        lambda dO, V, A, keep, rho: (
            (A * keep / rho).T @ dO,
            by_jacobians(dO @ V.T * keep / rho, A * keep / rho),
        ),
    ),
    (
        "8.11",
        "other way round",
        lambda dO, V, A, keep, rho: dropped(same, same)(dO, V, A, 1 - keep, rho),
    ),
]
