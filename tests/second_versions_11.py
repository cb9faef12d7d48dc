"""The functions of the exercises of chapter 11, written a second time."""

import math

import numpy as np


def columns_of(map_of_columns):
    """A function of W, H_kv, r that takes the columns of W in the order that is given."""
    return lambda W, H_kv, r: np.array(
        [[row[c] for c in map_of_columns(len(row), int(H_kv), int(r))] for row in W.tolist()]
    )


def tied(n, H_kv, r):
    d_k = n // H_kv
    return [h // r * d_k + p for h in range(H_kv * r) for p in range(d_k)]


def dealt_out(n, H_kv, r):
    d_k = n // H_kv
    return [h % H_kv * d_k + p for h in range(H_kv * r) for p in range(d_k)]


def with_zeros(W, H_kv, r):
    d_k = W.shape[1] // H_kv
    out = np.zeros((len(W), W.shape[1] * r))
    for g in range(H_kv):
        out[:, g * r * d_k : g * r * d_k + d_k] = W[:, g * d_k : (g + 1) * d_k]
    return out


def loop(factor=None, output=None, weight_of_old=None, maximum=max):
    """One step of a row, key by key where that is possible; parts can be exchanged."""

    def step(u, V, state):
        m, z, o = state[0], state[1], list(state[2:])
        new = maximum(m, max(u))
        f = math.exp(m - new) if factor is None else factor(m, new)
        e = [math.exp(min(x - new, 700)) if maximum is max else np.exp(x - new) for x in u]
        total = f * z + sum(e)
        g = f if weight_of_old is None else weight_of_old
        read = [sum(a * v[p] for a, v in zip(e, V, strict=True)) for p in range(len(o))]
        if output is None:
            mixed = [(g * z * a + b) / total for a, b in zip(o, read, strict=True)]
        else:
            mixed = [output(f * z, a, b, sum(e)) for a, b in zip(o, read, strict=True)]
        return np.array([new, total, *mixed], float)

    return step


def alone(u, V, state):
    e = [math.exp(x - max(u)) for x in u]
    return [max(u), sum(e), *(np.array(e) / sum(e) @ V)]


def unmoved(u, V, state):
    m, z = state[:2]
    e = np.exp(np.asarray(u, float) - m)
    o = (z * state[2:] + (e[:, None] * V).sum(axis=0)) / (z + e.sum())
    return np.concatenate([[m, z + e.sum()], o])


def one_read(pairs, scale=None, normalise=True):
    """One step with a cache, in plain numbers: pairs(q, k, v, K, V) lists query, keys, values."""

    def output(q, k, v, K, V):
        query, keys, values = pairs(q, k, v, K.tolist(), V.tolist())
        width = len(q) if scale is None else scale(len(keys), len(v))
        e = [
            math.exp(sum(a * b for a, b in zip(query, x, strict=True)) / math.sqrt(width))
            for x in keys
        ]
        z = math.fsum(e) if normalise else 1.0
        return [
            math.fsum(a * row[p] for a, row in zip(e, values, strict=True)) / z
            for p in range(len(v))
        ]

    return output


def grown(q, k, v, K, V):
    return q, [*K, k], [*V, v]


in_the_cache = one_read(lambda q, k, v, K, V: (q, K, V))


def mixed(share):
    """The old output and the new value, the latter with a share that the score does not change."""

    def output(q, k, v, K, V):
        old = np.array(in_the_cache(q, k, v, K, V))
        return old + share(len(K)) * (v - old)

    return output


RIGHT = [
    ("11.7", columns_of(tied)),
    ("11.7", lambda W, H_kv, r: W.reshape(len(W), H_kv, -1).repeat(r, axis=1).reshape(len(W), -1)),
    ("11.10", loop()),
    ("11.10", lambda u, V, state: loop()(u, V, np.array(state, float)).tolist()),
    ("11.12", one_read(grown)),
    ("11.12", one_read(lambda q, k, v, K, V: (q, [k, *K], [v, *V]))),
]

WRONG = [
    ("11.7", "tile", columns_of(dealt_out)),
    ("11.7", "columns", columns_of(lambda n, H_kv, r: [c // r for c in range(n * r)])),
    ("11.7", "rows", lambda W, H_kv, r: [row for row in W.tolist() for _ in range(r)]),
    ("11.7", "dealt out", columns_of(
        lambda n, H_kv, r: [g + H_kv * p for g in range(H_kv) for _ in range(r)
                            for p in range(n // H_kv)]
    )),
    ("11.7", "untouched", columns_of(lambda n, H_kv, r: range(n))),
    ("11.7", "first head", columns_of(
        lambda n, H_kv, r: [p for _ in range(H_kv * r) for p in range(n // H_kv)]
    )),
    ("11.7", "zeros", with_zeros),
    ("11.7", "divided", lambda W, H_kv, r: columns_of(tied)(W, H_kv, r) * (1 / r)),
    ("11.10", "no rescaling", loop(factor=lambda m, new: 1.0)),
    ("11.10", "inverse", loop(factor=lambda m, new: np.exp(float(new - m)))),
    ("11.10", "only the sum", loop(weight_of_old=1.0)),
    ("11.10", "not divided", loop(output=lambda old, a, b, e: old * a + b)),
    ("11.10", "old dropped", loop(output=lambda old, a, b, e: b / (old + e))),
    ("11.10", "mean of two", loop(output=lambda old, a, b, e: 0.5 * a + 0.5 * b / e)),
    ("11.10", "tile alone", alone),
    ("11.10", "old maximum", unmoved),
    ("11.12", "without the new", in_the_cache),
    ("11.12", "new alone", one_read(lambda q, k, v, K, V: (q, [k], [v]))),
    ("11.12", "overwritten", one_read(lambda q, k, v, K, V: (q, [*K[:-1], k], [*V[:-1], v]))),
    ("11.12", "unlike ends", one_read(lambda q, k, v, K, V: (q, [*K, k], [v, *V]))),
    ("11.12", "no scale", one_read(grown, scale=lambda n, d_v: 1)),
    ("11.12", "scale of values", one_read(grown, scale=lambda n, d_v: d_v)),
    ("11.12", "scale of positions", one_read(grown, scale=lambda n, d_v: n)),
    ("11.12", "not normalised", one_read(grown, normalise=False)),
    ("11.12", "key asks", one_read(lambda q, k, v, K, V: (k, [*K, k], [*V, v]))),
    ("11.12", "mean of two", mixed(lambda S: 0.5)),
    ("11.12", "running mean", mixed(lambda S: 1 / (S + 1))),
]  # fmt: skip
