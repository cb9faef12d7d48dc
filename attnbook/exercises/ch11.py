"""The exercises of chapter 11: sharing keys and values, cost, cache, tiles."""

from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational

from attnbook import cost, exact
from attnbook.exercises.parts import Choice, Number, Wrong
from attnbook.exercises.programs import Program

# ---------------------------------------------- 11.1: H_q = 20, H_kv = 5, query head 9

H_q, H_kv, h = 20, 5, 9
r = H_q // H_kv
head_map = {
    "r": Number(
        r,
        [
            Wrong("key/value heads", H_kv, "that is the number of key/value heads, so of groups."),
            Wrong("inverse", Rational(1, r), "that is the relative size of the cache."),
            Wrong("difference", H_q - H_kv, "the numbers were subtracted, not divided."),
        ],
    ),
    "from_0": Number(
        h // r,
        [
            Wrong("modulo", h % H_kv, "that deals the heads out in turn. Groups are neighbours."),
            Wrong("by heads", h // H_kv, "divided by the number of groups, not by their size."),
            Wrong("from 1", -(-h // r), "that is the map for heads counted from 1."),
        ],
    ),
    "from_1": Number(
        -(-h // r),
        [
            Wrong("from 0", h // r, "that is the map for heads counted from 0."),
            Wrong(
                "modulo",
                (h - 1) % H_kv + 1,
                "that deals the heads out in turn. Groups are neighbours.",
            ),
            Wrong("last", H_kv, "that is the last group. Query head 9 comes before it."),
        ],
    ),
}

# ---------------------------------------------- 11.2: as R exercise 5.7, other sizes

size = {"S": 4096, "d_k": 128, "bytes_per_number": 2}
H_q, H_kv, layers = 40, 8, 48
layer = cost.cache_bytes(**size, H_kv=H_kv)
mha = cost.cache_bytes(**size, H_kv=H_q)
bytes_of_a_cache = {
    "layer": Number(
        layer,
        [
            Wrong(
                "one of two",
                layer // 2,
                "half of it: the values were left out, or bytes and numbers confused.",
            ),
            Wrong("query heads", mha, "the query heads were counted. They have nothing to store."),
            Wrong("bits", 8 * layer, "these are bits."),
            Wrong("MiB", layer // 2**20, "that is in MiB; bytes were asked for."),
            Wrong("one head", layer // H_kv, "that is one key/value head."),
        ],
    ),
    "ratio": Number(
        Rational(layer, mha),
        [
            Wrong("inverse", Rational(mha, layer), "upside down: the part comes first."),
            Wrong("one head", Rational(1, H_kv), "that is one over the number of heads it has."),
            Wrong("MQA", Rational(1, H_q), "that is the ratio for one key/value head."),
        ],
    ),
    "model": Number(
        layers * layer // 2**20,
        [
            Wrong("one layer", layer // 2**20, "that is one layer. Every layer has its own."),
            Wrong("MHA", layers * mha // 2**20, "that is a model with 40 key/value heads."),
            Wrong(
                "one of two",
                layers * layer // 2**21,
                "half of it: the values were left out, or bytes and numbers confused.",
            ),
            Wrong("bytes", layers * layer, "that is in bytes; MiB were asked for."),
        ],
    ),
}

# ---------------------------------------------- 11.3: as R exercise 5.11, 64 heads to 8

share = Rational(8, 64)
what_changes = {
    "kv_parameters": Number(
        share,
        [
            Wrong("inverse", 1 / share, "that is how many times as large it was before."),
            Wrong("saving", 1 - share, "that is what is saved, not what is left."),
            Wrong("nothing", 1, "$W_K$ and $W_V$ have fewer columns now."),
        ],
    ),
    "cache": Number(
        share,
        [
            Wrong("inverse", 1 / share, "that is how many times as large it was before."),
            Wrong("saving", 1 - share, "that is what is saved, not what is left."),
            Wrong(
                "squared", share**2, "keys and values shrink side by side, not one in the other."
            ),
        ],
    ),
    "scores": Number(
        1,
        [
            Wrong("shared", share, "each query head still compares with each position."),
            Wrong("inverse", 1 / share, "no score is added."),
            Wrong("squared", share**2, "neither $T$ nor $S$ has changed, nor has $H_q$."),
        ],
    ),
    "all_parameters": Number(
        (2 + 2 * share) / 4,
        [
            Wrong("key and value", share, "$W_Q$ and $W_O$ are there too, and do not shrink."),
            Wrong("key alone", (3 + share) / 4, "two of the four matrices shrink, not one."),
            Wrong("three", (1 + 3 * share) / 4, "two of the four matrices shrink, not three."),
            Wrong("half", Rational(1, 2), "the shared matrices have not vanished."),
        ],
    ),
    "time": Choice(
        "open",
        [
            Wrong("share", "share", "That is the cache. Time depends on much that was not given."),
            Wrong("same", "same", "Reading less may well take less time, and need not."),
        ],
    ),
}

# ---------------------------------------------- 11.4: rank at one position

d, H_q, H_kv, d_v = 512, 8, 2, 64
largest_rank = Number(
    H_kv * d_v,
    [
        Wrong("all heads", H_q * d_v, "that is MHA: each query head has values of its own there."),
        Wrong("one head", d_v, "that is the rank that one value head gives."),
        Wrong("heads", H_kv, "that is the number of heads; each has a width."),
        Wrong("half", d // 2, "what is divided by what? Count the columns of all $W_V$."),
    ],
)

# ---------------------------------------------- 11.5: gradients of a shared key and value

dO = (1, 2, 3, 4)
shared_gradient = {
    "value": Number(
        sum(dO),
        [
            Wrong("last", dO[-1], "one term only: the others were overwritten."),
            Wrong("first", dO[0], "one term only, that of the first head."),
            Wrong("mean", Rational(sum(dO), 4), "the mean: every use counts in full."),
            Wrong("squares", sum(n * n for n in dO), "each weight is 1, so no factor is left."),
        ],
    ),
    "key": Number(
        0,
        [
            Wrong("as the value", sum(dO), "a key acts through the weight. Can this weight move?"),
            Wrong("mean", Rational(sum(dO), 4), "what happens to the only weight of a row?"),
            Wrong("one head", 1, "what could a change of the one score change?"),
        ],
    ),
}

# ---------------------------------------------- 11.6: where interactions overtake projections

d, H_q, H_kv = 2048, 16, 4
share = Rational(H_kv, H_q)
crossing = Number(
    d * (1 + share),
    [
        Wrong("MHA", 2 * d, "that is right for $H_{kv} = H_q$."),
        Wrong("MQA", d + d // H_q, "that is right for one key/value head."),
        Wrong("width", d, "keys and values were left out of the projections."),
        Wrong("no output", d * (1 + 2 * share) / 2, "the output projection was left out."),
        Wrong("one product", 2 * d * (1 + share), "there are two products between positions."),
        Wrong("head width", d // H_q, "that is the width of a head."),
    ],
)

# ---------------------------------------------- 11.8: scores without and with a cache, T = 100

T = 100
without_cache = Number(
    Rational(2 * T + 1, 3),
    [
        Wrong("length", T, "the first steps are shorter than the last one."),
        Wrong("rows", Rational(T + 1, 2), "that is the ratio of projected rows."),
        Wrong("allowed half", Rational(T + 2, 3), "that counts half squares without a cache."),
        Wrong("without", T * (T + 1) * (2 * T + 1) // 6, "that is the number without a cache."),
        Wrong("with", T * (T + 1) // 2, "that is the number with a cache."),
    ],
)

# ---------------------------------------------- 11.9: what fits

per = cost.cache_bytes(S=1, H_kv=4, d_k=64, layers=40, bytes_per_number=2)
room = 10 * 2**30
what_fits = {
    "one": Number(
        room // per,
        [
            Wrong("no weights", 16 * 2**30 // per, "the weights need their place too."),
            Wrong("keys alone", 2 * room // per, "half of the cache is missing."),
            Wrong("one layer", 40 * room // per, "that would be one layer."),
            Wrong("decimal", 10 * 10**9 // per, "a GiB is not $10^9$ bytes."),
        ],
    ),
    "eight": Number(
        room // per // 8,
        [
            Wrong("one", room // per, "that is the total over all of them."),
            Wrong("no weights", 2 * 2**30 // per, "the weights need their place too, once."),
            Wrong("weights eight times", 0, "the eight sequences use the same weights."),
            Wrong("keys alone", room // per // 4, "half of the cache is missing."),
        ],
    ),
}

# ---------------------------------------------- 11.7: tie(W, H_kv, r)


def _tie(W, H_kv, r):
    W = exact.matrix(W)
    d_k = W.cols // H_kv
    blocks = [W[:, g * d_k : (g + 1) * d_k] for g in range(H_kv) for _ in range(r)]
    return tuple(map(tuple, sympy.Matrix.hstack(*blocks).tolist()))


def _blocks(W, H_kv):
    return np.split(W, H_kv, axis=1)


def _padded(W, H_kv, r):
    zeros = [np.zeros_like(W[:, : W.shape[1] // H_kv])] * (r - 1)
    return np.hstack([part for block in _blocks(W, H_kv) for part in (block, *zeros)])


def _half(*rows):
    return tuple(tuple(Fraction(entry, 2) for entry in row) for row in rows)


tie = Program(
    name="tie",
    shapes={"W": "d n", "H_kv": "", "r": ""},
    returns="d m",
    right=_tie,
    inputs=[
        (((1, 2), (3, 4), (5, 6)), 2, 3),
        (_half((1, -3, 5, 2)), 2, 2),
        (_half((1,), (2,), (-1,), (5,)), 1, 3),
    ],
    wrong=[
        Wrong(
            "tile",
            lambda W, H_kv, r: np.tile(W, (1, r)),
            "the whole list of heads was repeated, not each head: $g(h) = h$ mod $H_{kv}$.",
        ),
        Wrong(
            "columns",
            lambda W, H_kv, r: np.repeat(W, r, axis=1),
            "single columns were repeated. A head is a block of columns and stays together.",
        ),
        Wrong(
            "rows",
            lambda W, H_kv, r: np.repeat(W, r, axis=0),
            "rows were repeated. Heads lie side by side, in the columns.",
        ),
        Wrong(
            "dealt out",
            lambda W, H_kv, r: np.hstack([W[:, g::H_kv] for g in range(H_kv) for _ in range(r)]),
            "the columns were dealt out to the heads in turn. Those of a head lie side by side.",
        ),
        Wrong("untouched", lambda W, H_kv, r: W, "this is $W$ as it came, without the copies."),
        Wrong(
            "first head",
            lambda W, H_kv, r: np.tile(_blocks(W, H_kv)[0], (1, H_kv * r)),
            "every query head got the first key/value head. Each group has its own.",
        ),
        Wrong(
            "zeros",
            _padded,
            "only the first query head of a group got the matrix, the others zeros.",
        ),
        Wrong(
            "divided",
            lambda W, H_kv, r: np.hstack([b for b in _blocks(W, H_kv) for _ in range(r)]) / r,
            "the copies were divided by $r$. Each copy is the whole matrix.",
        ),
    ],
)

# ---------------------------------------------- 11.10: step(u, V, state)


def _step(u, V, state):
    m, z, *o = state
    new = max(m, *u)
    e, old = [sympy.exp(x - new) for x in u], sympy.exp(m - new) * z
    total = old + sum(e)
    means = [
        (old * mean + sum(a * v[p] for a, v in zip(e, V, strict=True))) / total
        for p, mean in enumerate(o)
    ]
    return (new, total, *means)


def _parts(u, V, state):
    m, z, o = state[0], state[1], state[2:]
    new = max(m, u.max())
    e = np.exp(u - new)
    return new, e, np.exp(m - new) * z, o


def _no_rescaling(u, V, state):
    new, e, _, o = _parts(u, V, state)
    total = state[1] + e.sum()
    return np.array([new, total, *((state[1] * o + e @ V) / total)])


def _inverse(u, V, state):
    new, e, _, o = _parts(u, V, state)
    old = np.exp(new - state[0]) * state[1]
    total = old + e.sum()
    return np.array([new, total, *((old * o + e @ V) / total)])


def _only_sum(u, V, state):
    new, e, old, o = _parts(u, V, state)
    total = old + e.sum()
    return np.array([new, total, *((state[1] * o + e @ V) / total)])


def _not_divided(u, V, state):
    new, e, old, o = _parts(u, V, state)
    return np.array([new, old + e.sum(), *(old * o + e @ V)])


def _old_dropped(u, V, state):
    new, e, old, _ = _parts(u, V, state)
    total = old + e.sum()
    return np.array([new, total, *(e @ V / total)])


def _mean_of_two(u, V, state):
    new, e, old, o = _parts(u, V, state)
    return np.array([new, old + e.sum(), *((o + e @ V / e.sum()) / 2)])


def _tile_alone(u, V, state):
    e = np.exp(u - u.max())
    return np.array([u.max(), e.sum(), *(e @ V / e.sum())])


def _old_maximum(u, V, state):
    m, z, o = state[0], state[1], state[2:]
    e = np.exp(u - m)
    total = z + e.sum()
    return np.array([m, total, *((z * o + e @ V) / total)])


step = Program(
    name="step",
    shapes={"u": "S", "V": "S d_v", "state": "n"},
    returns="n",
    right=_step,
    inputs=[
        ((Fraction(1, 2), Fraction(3, 2)), ((1,), (4,)), (1, 2, 3)),
        ((1, 2, 0), _half((1, 0), (4, 3), (-2, 5)), (3, Fraction(3, 2), 1, -2)),
        ((1000, 1001), ((2,), (6,)), (0, 4, 5)),
        ((Fraction(-1, 2),) * 4, ((1,), (2,), (3,), (6,)), (0, 1, -1)),
    ],
    wrong=[
        Wrong(
            "no rescaling",
            _no_rescaling,
            "what was summed before keeps the old maximum: multiply it by $e^{m − m'}$.",
        ),
        Wrong(
            "inverse",
            _inverse,
            "the factor is upside down. It takes the old maximum out and puts the new one in.",
        ),
        Wrong(
            "only the sum",
            _only_sum,
            "the sum was rescaled, and the part of the old output was not.",
        ),
        Wrong(
            "not divided",
            _not_divided,
            "this is the sum of weighted values, not yet divided by $z'$.",
        ),
        Wrong("old dropped", _old_dropped, "the old output has no part in the new one."),
        Wrong(
            "mean of two",
            _mean_of_two,
            "old output and tile count half each here, however many exponentials stand for each.",
        ),
        Wrong("tile alone", _tile_alone, "the state is forgotten: this is the tile alone."),
        Wrong(
            "old maximum",
            _old_maximum,
            "the maximum was not moved: $e^{u − m}$ overflows for large scores.",
        ),
    ],
)

# ---------------------------------------------- 11.12: next_output(q, k, v, K, V)


def _next_output(q, k, v, K, V):
    return tuple(exact.attention([q], [*K, k], [*V, v]).O)


def _read(q, K, V, width=None):
    """Read one row of attention, with a scale of another width if need be."""
    e = np.exp(K @ q / np.sqrt(width or len(q)))
    return e @ V / e.sum()


def _without_new(q, k, v, K, V):
    return _read(q, K, V)


def _overwritten(q, k, v, K, V):
    return _read(q, np.vstack([K[:-1], k]), np.vstack([V[:-1], v]))


def _unlike_ends(q, k, v, K, V):
    return _read(q, np.vstack([K, k]), np.vstack([v, V]))


def _key_asks(q, k, v, K, V):
    return _read(k, np.vstack([K, k]), np.vstack([V, v]))


def _not_normalised(q, k, v, K, V):
    return np.exp(np.vstack([K, k]) @ q / np.sqrt(len(q))) @ np.vstack([V, v])


def _scaled_by(width):
    return lambda q, k, v, K, V: _read(
        q, np.vstack([K, k]), np.vstack([V, v]), width(K.shape[1], V.shape[1], len(K) + 1)
    )


next_output = Program(
    name="next_output",
    shapes={"q": "d_k", "k": "d_k", "v": "d_v", "K": "S d_k", "V": "S d_v"},
    returns="d_v",
    right=_next_output,
    inputs=[
        ((1, 2), (1, 0), (4, -2, 0), ((0, 1),), ((1, 1, 5),)),
        (
            _half((1, -2, 2))[0],
            (1, 1, 2),
            (3, -1),
            ((2, 0, 1), (0, 1, 0), (1, 2, -1), (-1, 0, 1)),
            ((1, 2), (5, 0), (-2, 4), (0, -3)),
        ),
        (
            _half((1,))[0],
            (2,),
            (4, 1, -3, 2),
            ((1,), (-1,)),
            ((1, 0, 2, 0), (0, 4, 1, 6)),
        ),
        (
            _half((2, -1, 1, 1))[0],
            (1, 1, 0, -2),
            (-4,),
            ((1, 0, 2, 0), (0, 2, 1, 1), (3, 1, 0, -1)),
            ((6,), (1,), (-3,)),
        ),
    ],
    wrong=[
        Wrong(
            "without the new",
            _without_new,
            "the cache was read before the new key and value were in it. Position $S + 1$ sees "
            "itself.",
        ),
        Wrong(
            "new alone",
            lambda q, k, v, K, V: v,
            "the query read its own key alone, and nothing of the cache.",
        ),
        Wrong(
            "overwritten",
            _overwritten,
            "the new row took the place of the last one. A cache grows by a row.",
        ),
        Wrong(
            "unlike ends",
            _unlike_ends,
            "the new key stands at one end and the new value at the other: every weight meets a "
            "value of another position.",
        ),
        Wrong("no scale", _scaled_by(lambda d_k, d_v, n: 1), "the scores were not scaled."),
        Wrong(
            "scale of values",
            _scaled_by(lambda d_k, d_v, n: d_v),
            "the scores were scaled by the width of the values.",
        ),
        Wrong(
            "scale of positions",
            _scaled_by(lambda d_k, d_v, n: n),
            "the scores were scaled by the number of positions.",
        ),
        Wrong(
            "not normalised",
            _not_normalised,
            "the exponentials were not divided by their sum.",
        ),
        Wrong("key asks", _key_asks, "the new key was used as the query."),
        Wrong(
            "mean of two",
            lambda q, k, v, K, V: (_read(q, K, V) + v) / 2,
            "the new value counts as much here as the whole cache, whatever its score.",
        ),
        Wrong(
            "running mean",
            lambda q, k, v, K, V: (len(K) * _read(q, K, V) + v) / (len(K) + 1),
            "the new value got an equal share, whatever its score.",
        ),
    ],
)

EXERCISES = {
    "11.1": head_map,
    "11.2": bytes_of_a_cache,
    "11.3": what_changes,
    "11.4": {"answer": largest_rank},
    "11.5": shared_gradient,
    "11.6": {"answer": crossing},
    "11.7": {"answer": tie},
    "11.8": {"answer": without_cache},
    "11.9": what_fits,
    "11.10": {"answer": step},
    "11.12": {"answer": next_output},
}
