"""Labs of chapter 11: shared keys and values, the cache, and attention tile by tile."""

import csv
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnbook import cost, style
from attnbook.configurations import MODELS, cache_bytes_per_position, weights
from attnbook.diagrams import (
    Entry,
    Panel,
    apart,
    axes,
    curve,
    end_labels,
    heat_map,
    horizontal,
    legend,
    mark,
    number,
    vertical,
)
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Circle, Line, Picture, Rect, Text

# Everything a reader sees, in one place.
H_KV = "key/value heads $H_{kv}$"
LENGTH = "length $T = S$"
COUNT_FROM = "heads counted from"
NAMES = {"MHA": "multi-head", "GQA": "grouped-query", "MQA": "multi-query"}
FAMILY = "{short}: $H_q$ = {H_q}, $H_{{kv}}$ = {H_kv}, $r$ = {r}"
QUERY_HEADS, KV_HEADS = "query heads", "key/value heads"
KV_HEAD = "key/value head"
RELATIVE = "Compared with one key/value head per query head"
QUANTITIES = (
    "numbers in $W_K$ and $W_V$",
    "cached keys and values",
    "numbers in all projections",
    "operations: $K$ and $V$",
    "operations: scores and read",
    "operations: the whole layer",
)
MILLION, BILLION = "million", "billion"
ALT_SHARING = (
    "Twelve query heads in a row, counted from {base}, each joined by a line to the key/value head "
    "that it reads: {map}. Below, six bars that compare with twelve key/value heads: {bars}."
)
CAPTION_SHARING = (
    "{name} attention with groups of $r$ = {r}. {first} The cache holds {cache} a layer, {share} "
    "of what twelve heads would need; the layer takes {all_share} of their operations."
)
FIRST = "Query head {h} reads key/value head {g}."

POSITIONS = "positions so far"
STEP, SEQUENCE = "step", "sequence"
CHUNK = "positions per step"
CACHED = "keys and values are kept"
NO_YES = {False: "no", True: "yes"}
TIMES = "How often each score was computed"
TOTAL = "Scores computed in all"
WITH, WITHOUT = "kept", "not kept"
SLOTS = "Cache: {n} keys and values"
NO_SLOTS = "Nothing is kept"
ALT_CACHE = (
    "A triangle of eight rows of scores, each with the number of times that it was computed: "
    "row by row {rows}. A row of eight cache slots, {slots} filled. Two curves of all scores "
    "computed by the time: keys and values kept {kept}; not kept {not_kept}."
)
CAPTION_CACHE = (
    "After {t} of 8 positions, in {steps}, {now} scores have been computed: {kept} where keys and "
    "values are kept, {not_kept} where every step starts from the beginning."
)

MODEL = "model"
DEVICE = "memory of the device"
SAMPLES = "sequences at once $B$"
MEMORY_TITLE = "{model}, {B}: GiB for weights and cache"
LENGTH_TITLE = "positions of each sequence"
PUBLISHED = "{H_kv}, as published"
DEVICE_HAS = "device: {device} GiB"
FITS = "fits up to {S}"
TOO_LARGE = "weights do not fit"
HEADS_LABEL = "$H_{{kv}}$ = {text}"
ALT_FITS = (
    "Curves of the memory for weights and cache of {model} against the length of {B}, on "
    "logarithmic scales. A line marks the {device} GiB of the device. {lines}."
)
ALT_LINE = "With {heads} it {fits}"
CAPTION_FITS = (
    "{model}: {billions} billion weights of 2 bytes take {weights} GiB, a position of a sequence "
    "{per} KiB. {said}"
)
SAID_FITS = "On {device} GiB there is room for {B} of at most {S} positions."
SAID_NOT = "On {device} GiB the weights do not fit."

TILE = "keys in a tile"
READ = "tiles read"
ORDER = "order of the keys"
ORDERS = {"mixed": "mixed", "rising": "scores rise", "falling": "scores fall"}
SCORES = "Scores $u_j$"
EXPONENTIALS = "$e^{u−m}$ of the keys read"
SO_FAR = "Output $o$ so far"
MAXIMUM = "$m$ = {m}"
SUM = "sum $z$ = {z}"
WHOLE_ROW = "whole row: {o}"
ALT_TILES = (
    "Three pictures. Bars of twelve scores {u}; the first {read} are read, their maximum is {m}. "
    "Bars of the exponentials of the scores read, less the maximum: {e}, with the sum {z}. A line "
    "of the output after each tile: {o}; the output of the whole row is {end}."
)
CAPTION_TILES = (
    "{read} of 12 keys read: maximum $m$ = {m}, sum $z$ = {z}, output $o$ = {o}; the whole row "
    "gives {end}. {factor}"
)
FACTOR = (
    "In the last tile the maximum went from {old} to {new}, so what had been summed was multiplied "
    "by {factor}."
)
KEPT_FACTOR = "In the last tile the maximum stayed, and the old sum was kept as it was."
FIRST_FACTOR = "Nothing was summed before the last tile."
NOTHING = "No key is read yet: $z$ = 0 and there is no output."

TILE_SIZE = "queries and keys in a tile"
LENGTH_ONE = "length $T = S$"
TILE_TITLE = "One tile of all scores"
PEAK_TITLE = "Peak memory, one head, $d_k = d_v$ = 64"
DENSE, TILED = "dense", "tiled"
ALT_MEMORY = (
    "A square of {T} by {T} scores with one tile of {tile} by {tile} in its corner. Curves of peak "
    "memory against length on logarithmic scales: dense {dense}; tiled, tile {tile}, {tiled}."
)
CAPTION_MEMORY = (
    "At {T} positions dense attention needs {dense} ({how}), tiled attention with tiles of {tile} "
    "{tiled} (measured): {ratio} of it. Dense attention makes an array of all {scores} scores, "
    "tiled attention of {held} at a time."
)
MEASURED, COMPUTED = "measured", "by formula"
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(n: float) -> str:
    """Return a number of bytes in the largest unit of which there is one, in three digits.

    Examples
    --------
    >>> size(3145728), size(700)
    ('3.00 MiB', '700 B')
    """
    unit = 0
    while n >= 1024 and unit + 1 < len(UNITS):
        n, unit = n / 1024, unit + 1
    digits = 0 if unit == 0 else max(0, 2 - int(np.log10(n)))
    return f"{number(n, digits)} {UNITS[unit]}"


def whole(n: int) -> str:
    """Return an integer with commas.

    Examples
    --------
    >>> whole(16384)
    '16,384'
    """
    return f"{n:,}"


def _count(n: int, name: str) -> str:
    return f"{n} {name}" if n == 1 else f"{n} {name}s"


# ---------------------------------------------------------------- one slider: MHA, GQA, MQA

H_Q, D, D_H = 12, 768, 64
SHARING_CONTROLS = (
    Slider("H_kv", H_KV, (1, 2, 3, 4, 6, 12), start=12),
    Slider("S", LENGTH, (256, 1024, 4096, 16384), start=1024, format=whole),
    Slider("base", COUNT_FROM, (0, 1), start=0),
)


LOOKS = (style.KEY, style.KEY, style.MUTED, style.KEY, style.SCORE, style.MUTED)


class Sharing(NamedTuple):
    """What sharing changes; ``amounts`` and ``of_mha`` hold the six quantities drawn."""

    base: int
    H_kv: int
    g: np.ndarray  # (H_Q,), counted from 0
    amounts: np.ndarray  # (6,)
    of_mha: np.ndarray  # (6,)


def compute(H_kv: int, S: int, base: int) -> Sharing:
    """Compute g(h) = floor(h / r), and the costs of a layer beside those with H_kv = H_q."""
    amounts, mha = _amounts(H_kv, S), _amounts(H_Q, S)
    return Sharing(base, H_kv, np.arange(H_Q) // (H_Q // H_kv), amounts, amounts / mha)


def _amounts(H_kv: int, S: int) -> np.ndarray:
    numbers = cost.parameters(d=D, H_q=H_Q, H_kv=H_kv)
    work = cost.flops(T=S, S=S, d=D, H_q=H_Q, H_kv=H_kv)
    return np.array(
        [
            numbers.W_K + numbers.W_V,
            cost.cache_bytes(S=S, H_kv=H_kv, d_k=D_H, bytes_per_number=2),
            sum(numbers),
            work.K + work.V,
            work.E + work.O,
            sum(work),
        ],
        float,
    )


def draw(arrays: Sharing) -> Picture:
    """Draw who reads whom above, and six costs as shares of those of MHA below."""
    items: list = [Text(24, 28, _family(arrays.H_kv), size=style.TITLE, bold=True)]
    queries = [210 + 49 * h for h in range(H_Q)]
    heads = [queries[0] + (queries[-1] - queries[0]) * (g + 0.5) / arrays.H_kv for g in arrays.g]
    if arrays.H_kv == H_Q:
        heads = queries
    top, low = 80, 168
    for x, y in zip(queries, heads, strict=True):
        items.append(Line(x, top + 18, y, low, style.MUTED, 2))
    for h, x in enumerate(queries):
        items += [
            Circle(x, top, 18, style.QUERY),
            Text(x, top, str(h + arrays.base), fill=style.WHITE, anchor="middle"),
        ]
    for g, x in sorted(set(zip(arrays.g.tolist(), heads, strict=True))):
        items += [
            Rect(x - 18, low - 16, 36, 32, style.KEY, radius=4),
            Text(x, low, str(g + arrays.base), fill=style.WHITE, anchor="middle"),
        ]
    items += [
        Text(24, top, QUERY_HEADS, fill=style.QUERY, bold=True),
        Text(24, low, KV_HEADS, fill=style.KEY, bold=True),
        Text(24, 224, RELATIVE, size=style.TITLE, bold=True),
    ]
    left, wide = 290, 270
    items.append(Line(left + wide, 244, left + wide, 428, style.INK, 2, style.DASHES[1]))
    shown = zip(QUANTITIES, LOOKS, arrays.of_mha, arrays.amounts, strict=True)
    for n, (name, colour, share, amount) in enumerate(shown):
        y = 262 + 30 * n
        items += [
            Text(left - 14, y, name, anchor="end"),
            Rect(left, y - 10, wide * share, 20, colour),
            Text(left + wide + 12, y, _share(share)),
            Text(left + wide + 90, y, size(amount) if n == 1 else _large(amount)),
        ]
    alt = ALT_SHARING.format(
        base=arrays.base,
        map=", ".join(f"{h + arrays.base} to {g + arrays.base}" for h, g in enumerate(arrays.g)),
        bars="; ".join(
            f"{name} {_share(share)}" for name, share in zip(QUANTITIES, arrays.of_mha, strict=True)
        ).replace("$", ""),
    )
    return Picture(800, 445, items, alt)


def caption(arrays: Sharing) -> str:
    """Say what the picture shows."""
    h = H_Q - 1
    return CAPTION_SHARING.format(
        name=NAMES[_short(arrays.H_kv)].capitalize(),
        r=H_Q // arrays.H_kv,
        first=FIRST.format(h=h + arrays.base, g=arrays.g[h] + arrays.base),
        cache=size(arrays.amounts[1]),
        share=_share(arrays.of_mha[1]),
        all_share=_share(arrays.of_mha[5]),
    )


def _short(H_kv: int) -> str:
    return {H_Q: "MHA", 1: "MQA"}.get(H_kv, "GQA")


def _family(H_kv: int) -> str:
    return FAMILY.format(short=_short(H_kv), H_q=H_Q, H_kv=H_kv, r=H_Q // H_kv)


def _share(x: float) -> str:
    return f"{number(100 * x, 0 if x == 1 else 1)} %"


def _large(x: float) -> str:
    """Write a large number in millions or billions, in three digits or with two decimals."""
    unit, name = (1e9, BILLION) if x >= 1e9 else (1e6, MILLION)
    return f"{number(x / unit, max(0, 2 - int(np.log10(max(x / unit, 1)))))} {name}"


def sharing(**state) -> Lab:
    """Return the lab of shared keys and values; ``state`` sets sliders by name.

    Examples
    --------
    >>> sharing(H_kv=3)
    sharing(H_kv=3, S=1024, base=0)
    """
    return Lab("sharing", SHARING_CONTROLS, compute, draw, caption, state)


# ---------------------------------------------------------------- the cache, step by step

MOST = 8
CACHE_CONTROLS = (
    Slider("t", POSITIONS, tuple(range(1, MOST + 1)), start=5),
    Slider("chunk", CHUNK, (1, 2, 4, 8), start=1),
    Slider("cached", CACHED, (False, True), start=False, format=NO_YES.get),
)


class CacheGrowth(NamedTuple):
    """How often each score was computed, and the totals with and without a cache."""

    t: int
    chunk: int
    cached: bool
    times: np.ndarray  # (MOST, MOST)
    totals: np.ndarray  # (2, MOST + 1): without, with; after 0 ... MOST positions


def compute_cache(t: int, chunk: int, cached: bool) -> CacheGrowth:
    """Count the scores u_ij, j <= i, that each step computes."""
    totals = np.array([[_times(n, chunk, c).sum() for n in range(MOST + 1)] for c in (False, True)])
    return CacheGrowth(t, chunk, cached, _times(t, chunk, cached), totals)


def _times(t: int, chunk: int, cached: bool) -> np.ndarray:
    """Return how often each score is computed on the way to t positions, in steps of chunk."""
    times = np.zeros((MOST, MOST), int)
    causal = np.tri(MOST, dtype=int)
    for start in range(0, t, chunk):
        end = min(start + chunk, t)
        first = start if cached else 0
        times[first:end] += causal[first:end]
    return times


def draw_cache(arrays: CacheGrowth) -> Picture:
    """Draw the counts as a triangle, the filled slots below it, and both totals as curves."""
    t = arrays.t
    labels = [str(n) for n in range(MOST)]
    right = Panel(500, 78, 190, 300, (0, MOST + 0.2), (0, 126))
    items = [
        Text(24, 28, TIMES, size=style.TITLE, bold=True),
        heat_map(
            80,
            82,
            arrays.times,
            cell=(38, 34),
            limits=(0, MOST),
            digits=0,
            allowed=np.tri(MOST, dtype=bool),
            row_labels=[f"$q_{n}$" for n in labels],
            column_labels=[f"$k_{n}$" for n in labels],
        ),
        Text(500, 28, TOTAL, size=style.TITLE, bold=True),
        axes(
            right,
            x_label=POSITIONS,
            x_ticks=tuple((n, str(n)) for n in (0, 2, 4, 6, 8)),
            y_ticks=tuple((n, str(n)) for n in (0, 40, 80, 120)),
        ),
        vertical(right, t),
    ]
    looks = ((WITHOUT, style.GRADIENT, style.DASHES[1]), (WITH, style.KEY, ()))
    for n, (_, colour, dash) in enumerate(looks):
        items.append(curve(right, range(MOST + 1), arrays.totals[n], colour, dash=dash))
    now = int(arrays.cached)
    items += [
        mark(right.x(t), right.y(arrays.totals[now, t]), "circle", looks[now][1], 8),
        end_labels(
            right,
            [(arrays.totals[n, -1], name, colour) for n, (name, colour, _) in enumerate(looks)],
        ),
    ]
    filled = t if arrays.cached else 0
    words = SLOTS.format(n=t) if arrays.cached else NO_SLOTS
    items.append(Text(80, 384, words, fill=style.KEY, bold=True))
    for n in range(MOST):
        fill = style.KEY if n < filled else None
        items.append(Rect(80 + 38 * n + 2, 400, 34, 26, fill, style.KEY, 2, radius=3))
    alt = ALT_CACHE.format(
        t=t,
        rows=", ".join(str(arrays.times[i, 0]) for i in range(MOST)),
        slots=filled,
        kept=", ".join(map(str, arrays.totals[1])),
        not_kept=", ".join(map(str, arrays.totals[0])),
    )
    return Picture(800, 450, items, alt)


def caption_cache(arrays: CacheGrowth) -> str:
    """Say what the picture shows."""
    t = arrays.t
    return CAPTION_CACHE.format(
        t=t,
        steps=_count(-(-t // arrays.chunk), STEP),
        now=arrays.totals[int(arrays.cached), t],
        kept=arrays.totals[1, t],
        not_kept=arrays.totals[0, t],
    )


def cache_growth(**state) -> Lab:
    """Return the lab of the key-value cache; ``state`` sets sliders by name.

    Examples
    --------
    >>> cache_growth(cached=True)
    cache_growth(t=5, chunk=1, cached=True)
    """
    return Lab("cache_growth", CACHE_CONTROLS, compute_cache, draw_cache, caption_cache, state)


# ---------------------------------------------------------------- what fits

BY_NAME = {model.name: model for model in MODELS}
GIB = 2**30
EXPONENTS = range(8, 21)  # lengths 256 ... 1,048,576
LOWEST, HIGHEST = 2, 11  # of the scale: powers of two of GiB
FITS_CONTROLS = (
    Slider("model", MODEL, tuple(BY_NAME), start="Llama 3 8B"),
    Slider("device", DEVICE, (8, 16, 24, 48, 80, 160), start=24, format="{} GiB".format),
    Slider("B", SAMPLES, (1, 4, 16, 64), start=1),
)


class WhatFits(NamedTuple):
    """Memory of a model with three numbers of key/value heads: all, published, one."""

    model: str
    device: int
    B: int
    H_kv: tuple[int, ...]
    weights: np.ndarray  # (heads,) bytes
    per_position: np.ndarray  # (heads,) bytes of one position of one sequence
    longest: np.ndarray  # (heads,) positions that fit, -1 where the weights do not


def compute_fits(model: str, device: int, B: int) -> WhatFits:
    """Compute floor((device - weights) / (B bytes of a position)) for three H_kv."""
    published = BY_NAME[model]
    heads = tuple(sorted({published.H_q, published.H_kv, 1}, reverse=True))
    models = [published._replace(H_kv=H_kv) for H_kv in heads]
    bytes_of_weights = np.array([2 * weights(m) for m in models])
    per_position = np.array([cache_bytes_per_position(m) for m in models])
    room = device * GIB - bytes_of_weights
    longest = np.where(room < 0, -1, room // (B * per_position))
    return WhatFits(model, device, B, heads, bytes_of_weights, per_position, longest)


def draw_fits(arrays: WhatFits) -> Picture:
    """Draw memory against length, one curve for each number of heads, and the device."""
    panel = Panel(80, 74, 470, 300, (EXPONENTS[0], EXPONENTS[-1]), (LOWEST, HIGHEST))
    sequences = _count(arrays.B, SEQUENCE)
    x = np.linspace(EXPONENTS[0], EXPONENTS[-1], 97)
    items = [
        axes(
            panel,
            title=MEMORY_TITLE.format(model=arrays.model, B=sequences),
            x_label=LENGTH_TITLE,
            x_ticks=tuple((n, whole(2**n)) for n in EXPONENTS[::4]),
            y_ticks=tuple((n, str(2**n)) for n in range(LOWEST, HIGHEST + 1, 2)),
        ),
        horizontal(panel, np.log2(arrays.device)),
    ]
    ends, told = [], []
    for n, H_kv in enumerate(arrays.H_kv):
        colour, dash, marker = _head_look(arrays, n)
        y = np.log2((arrays.weights[n] + arrays.B * arrays.per_position[n] * 2**x) / GIB)
        seen = (y >= LOWEST) & (y <= HIGHEST)
        if seen.any():
            items.append(curve(panel, x[seen], y[seen], colour, dash=dash))
        longest = int(arrays.longest[n])
        fits = FITS.format(S=whole(longest)) if longest >= 0 else TOO_LARGE
        place = np.log2(max(longest, 1))
        if EXPONENTS[0] <= place <= EXPONENTS[-1]:
            items.append(mark(panel.x(place), panel.y(np.log2(arrays.device)), marker, colour, 7))
        ends.append((H_kv, fits, colour, dash, marker))
        told.append(ALT_LINE.format(heads=_count(H_kv, KV_HEAD), fits=fits))
    published = BY_NAME[arrays.model].H_kv
    left = 575
    for n, (H_kv, fits, colour, dash, marker) in enumerate(ends):
        y = 96 + 76 * n
        text = PUBLISHED.format(H_kv=H_kv) if H_kv == published else str(H_kv)
        items += [
            Line(left, y, left + 40, y, colour, 3, dash),
            mark(left + 20, y, marker, colour, 6),
            Text(left, y + 24, HEADS_LABEL.format(text=text), fill=colour, bold=True),
            Text(left, y + 46, fits),
        ]
    y = 96 + 76 * 3
    items += [
        Line(left, y, left + 40, y, style.INK, 2, style.DASHES[1]),
        Text(left, y + 24, DEVICE_HAS.format(device=arrays.device), bold=True),
    ]
    alt = ALT_FITS.format(
        model=arrays.model,
        B=sequences,
        device=arrays.device,
        lines=". ".join(told),
    )
    return Picture(800, 450, items, alt)


def _head_look(arrays: WhatFits, n: int) -> tuple[str, tuple[float, ...], str]:
    """Return colour, line and marker of a curve: the published number of heads is solid."""
    if arrays.H_kv[n] == BY_NAME[arrays.model].H_kv:
        return style.KEY, (), "square"
    if n == 0:
        return style.GRADIENT, style.DASHES[1], "circle"
    return style.QUERY, style.DASHES[3], "triangle"


def caption_fits(arrays: WhatFits) -> str:
    """Say what the picture shows."""
    model = BY_NAME[arrays.model]
    n = arrays.H_kv.index(model.H_kv)
    longest = int(arrays.longest[n])
    said = SAID_FITS if longest >= 0 else SAID_NOT
    return CAPTION_FITS.format(
        model=arrays.model,
        billions=number(weights(model) / 1e9, 2),
        weights=number(arrays.weights[n] / GIB, 1),
        per=arrays.per_position[n] // 1024,
        said=said.format(device=arrays.device, B=_count(arrays.B, SEQUENCE), S=whole(longest)),
    )


def what_fits(**state) -> Lab:
    """Return the lab of models, devices and lengths; ``state`` sets sliders by name.

    Examples
    --------
    >>> what_fits(device=80)
    what_fits(model='Llama 3 8B', device=80, B=1)
    """
    return Lab("what_fits", FITS_CONTROLS, compute_fits, draw_fits, caption_fits, state)


# ---------------------------------------------------------------- a row, tile by tile

U = np.array([0.6, -0.9, 1.1, 0.2, 1.9, -0.4, 0.9, 2.6, -1.3, 1.4, 0.4, 2.1])
VALUES = np.array([3.0, 9.0, 1.0, 5.0, 8.0, 2.0, 6.0, 7.0, 4.0, 0.0, 10.0, 3.0])
KEYS = len(U)
ORDERED = {"mixed": np.arange(KEYS), "rising": np.argsort(U), "falling": np.argsort(-U)}
TILES_CONTROLS = (
    Slider("tile", TILE, (1, 2, 3, 4, 6, 12), start=3),
    Slider("read", READ, tuple(range(KEYS + 1)), start=2),
    Slider("order", ORDER, tuple(ORDERS), start="mixed", format=ORDERS.get),
)


class RunningMaximum(NamedTuple):
    """One row on its way: m, z and o after 0, 1, ... tiles, as far as they are read."""

    tile: int
    u: np.ndarray  # (KEYS,)
    m: np.ndarray  # (tiles read + 1,), -inf at first
    z: np.ndarray
    o: np.ndarray  # (tiles read + 1,), 0 at first
    end: float


def compute_tiles(tile: int, read: int, order: str) -> RunningMaximum:
    """Read tiles by m' = max(m, max u), z' = e^(m - m') z + sum e^(u - m'), o' = (...) / z'.

    More tiles than there are: all of them are read.
    """
    u, v = U[ORDERED[order]], VALUES[ORDERED[order]]
    m, z, o = [-np.inf], [0.0], [0.0]
    for start in range(0, min(read * tile, KEYS), tile):
        keys = slice(start, start + tile)
        new = max(m[-1], u[keys].max())
        old, e = np.exp(m[-1] - new) * z[-1], np.exp(u[keys] - new)
        m.append(new)
        z.append(old + e.sum())
        o.append((old * o[-1] + e @ v[keys]) / z[-1])
    e = np.exp(u - u.max())
    return RunningMaximum(tile, u, np.array(m), np.array(z), np.array(o), e @ v / e.sum())


def draw_tiles(arrays: RunningMaximum) -> Picture:
    """Draw the scores with the running maximum, the exponentials, and the output on its way."""
    steps, tile = len(arrays.m) - 1, arrays.tile
    read = steps * tile
    above = Panel(60, 60, 430, 150, (0, KEYS), (-1.6, 3.2))
    below = Panel(60, 280, 430, 110, (0, KEYS), (0, 1.3))
    right = Panel(580, 60, 200, 330, (0, 12.4), (-0.4, 10.4))
    dash = style.DASHES[1]
    items: list = []
    if steps:
        x = above.x(read - tile)
        items.append(Rect(x, above.top, tile * above.width / KEYS, above.height, style.GRID))
    items.append(axes(above, title=SCORES, x_ticks=(), y_ticks=tuple((n, str(n)) for n in (0, 2))))
    items.append(axes(below, title=EXPONENTIALS, x_ticks=(), y_ticks=((0, "0"), (1, "1"))))
    slot = above.width / KEYS
    for j, u in enumerate(arrays.u):
        x, zero, y = above.left + (j + 0.5) * slot, above.y(0), above.y(u)
        fill = style.SCORE if j < read else None
        top, height = min(zero, y), abs(zero - y)
        items.append(apart([Rect(x - 11, top, 22, height, fill, style.SCORE, 2)]))
        items.append(Text(x, below.bottom + 18, f"$k_{{{j + 1}}}$", anchor="middle"))
    if steps:
        m, z = arrays.m[-1], arrays.z[-1]
        e = np.exp(arrays.u[:read] - m)
        items += [
            apart(horizontal(above, m)),
            Text(above.right, above.top - 30, MAXIMUM.format(m=number(m, 1)), anchor="end"),
            Text(below.right, below.top - 30, SUM.format(z=number(z, 3)), anchor="end"),
        ]
        for j, height in enumerate(e):
            x, y = below.left + (j + 0.5) * slot, below.y(height)
            items.append(Rect(x - 11, y, 22, below.bottom - y, style.WEIGHT))
    items += [
        axes(
            right,
            title=SO_FAR,
            x_label=READ,
            x_ticks=tuple((n, str(n)) for n in (0, 4, 8, 12)),
            y_ticks=tuple((n, str(n)) for n in (0, 5, 10)),
        ),
        horizontal(right, arrays.end, stroke=style.OUTPUT),
        Line(right.left + 14, right.y(1), right.left + 44, right.y(1), style.OUTPUT, 2, dash),
        Text(right.left + 52, right.y(1), WHOLE_ROW.format(o=number(arrays.end, 3))),
    ]
    if steps:
        places = range(1, steps + 1)
        items.append(curve(right, places, arrays.o[1:], style.OUTPUT, marker="circle"))
    alt = ALT_TILES.format(
        u=_listed(arrays.u, 1),
        read=read,
        m=number(arrays.m[-1], 1) if steps else NOTHING,
        e=_listed(np.exp(arrays.u[:read] - arrays.m[-1])) if steps else "none",
        z=number(arrays.z[-1], 3),
        o=_listed(arrays.o[1:], 3) if steps else "none",
        end=number(arrays.end, 3),
    )
    return Picture(800, 460, items, alt)


def caption_tiles(arrays: RunningMaximum) -> str:
    """Say what the picture shows."""
    m, z = arrays.m, arrays.z
    steps = len(m) - 1
    if steps == 0:
        return NOTHING
    factor = FIRST_FACTOR if steps == 1 else KEPT_FACTOR
    if steps > 1 and m[-1] > m[-2]:
        factor = FACTOR.format(
            old=number(m[-2], 1), new=number(m[-1], 1), factor=number(np.exp(m[-2] - m[-1]), 3)
        )
    return CAPTION_TILES.format(
        read=steps * arrays.tile,
        m=number(m[-1], 1),
        z=number(z[-1], 3),
        o=number(arrays.o[-1], 3),
        end=number(arrays.end, 3),
        factor=factor,
    )


def _listed(values: np.ndarray, digits: int = 2) -> str:
    return ", ".join(number(value, digits) for value in values)


def running_maximum(**state) -> Lab:
    """Return the lab of a row read tile by tile; ``state`` sets sliders by name.

    Examples
    --------
    >>> running_maximum(tile=4, order="rising")
    running_maximum(tile=4, read=2, order='rising')
    """
    return Lab("running_maximum", TILES_CONTROLS, compute_tiles, draw_tiles, caption_tiles, state)


# ---------------------------------------------------------------- memory by tile size

LENGTHS = tuple(2**n for n in range(7, 15))
MEMORY_CONTROLS = (
    Slider("tile", TILE_SIZE, (64, 128, 256, 512), start=128),
    Slider("T", LENGTH_ONE, LENGTHS, start=2048, format=whole),
)


RECORDED = Path(__file__).parent / "recorded" / "attention_memory.csv"


class Peak(NamedTuple):
    """One recorded measurement: T queries and keys; tile 0 is dense attention."""

    tile: int
    T: int
    bytes: int


def recorded_peaks() -> tuple[Peak, ...]:
    """Return the peak memory of dense and tiled attention, as figures/record_memory.py measured it.

    One head, no mask, d_k = d_v = 64, float64. The dense ones end at 4,096, where they get too
    large to ask of every computer.

    Examples
    --------
    >>> sorted({peak.tile for peak in recorded_peaks()})
    [0, 64, 128, 256, 512]
    """
    with RECORDED.open(encoding="utf-8", newline="") as file:
        return tuple(
            Peak(*(int(row[name]) for name in Peak._fields)) for row in csv.DictReader(file)
        )


class TileMemory(NamedTuple):
    """Peak bytes at every length: dense by formula and as recorded, tiled as recorded."""

    tile: int
    T: int
    formula: np.ndarray  # (lengths,)
    dense: np.ndarray  # (lengths,), 0 where none was recorded
    tiled: np.ndarray  # (lengths,)


@lru_cache(maxsize=1)
def _peaks() -> dict[tuple[int, int], int]:
    return {(peak.tile, peak.T): peak.bytes for peak in recorded_peaks()}


def compute_memory(tile: int, T: int) -> TileMemory:
    """Look up the recorded peaks, and compute 8 (2 T^2 + 2 T d_v) bytes for dense attention."""
    lengths = np.array(LENGTHS)
    return TileMemory(
        tile=tile,
        T=T,
        formula=8 * (2 * lengths**2 + 2 * lengths * D_H),
        dense=np.array([_peaks().get((0, n), 0) for n in LENGTHS]),
        tiled=np.array([_peaks()[tile, n] for n in LENGTHS]),
    )


def draw_memory(arrays: TileMemory) -> Picture:
    """Draw one tile in the square of all scores, and peak memory against length."""
    side, tile = 190, min(arrays.tile, arrays.T)
    part = max(3, side * tile / arrays.T)
    left, top = 40, 104
    panel = Panel(370, 74, 320, 290, (7, 14.2), (17, 33))
    places = np.log2(LENGTHS)
    now = LENGTHS.index(arrays.T)
    measured = arrays.dense > 0
    last = int(np.flatnonzero(measured)[-1])
    items = [
        Text(left, 44, TILE_TITLE, size=style.TITLE, bold=True),
        Rect(left, top, side, side, style.CARD, style.SCORE, 2),
        Rect(left, top, part, part, style.SCORE),
        Text(left + side / 2, top - 18, f"$S$ = {whole(arrays.T)}", anchor="middle"),
        Text(left, top + side + 22, f"$T$ = {whole(arrays.T)}"),
        Text(left, top + side + 48, f"tile: {tile} × {tile}", fill=style.SCORE),
        axes(
            panel,
            title=PEAK_TITLE,
            x_label=LENGTH_ONE,
            x_ticks=tuple((n, whole(2**n)) for n in (7, 10, 13)),
            y_ticks=((20, "1 MiB"), (25, "32 MiB"), (30, "1 GiB")),
        ),
        vertical(panel, places[now]),
        curve(panel, places[: last + 1], np.log2(arrays.dense[: last + 1]), style.GRADIENT),
        curve(
            panel,
            places[last:],
            np.log2(arrays.formula[last:]),
            style.GRADIENT,
            dash=style.DASHES[1],
        ),
        [
            mark(panel.x(places[n]), panel.y(np.log2(arrays.dense[n])), "square", style.GRADIENT, 5)
            for n in np.flatnonzero(measured)
        ],
        curve(panel, places, np.log2(arrays.tiled), style.KEY, marker="circle"),
        end_labels(
            panel,
            [
                (np.log2(arrays.formula[-1]), DENSE, style.GRADIENT),
                (np.log2(arrays.tiled[-1]), TILED, style.KEY),
            ],
        ),
    ]
    items.append(
        legend(
            left - 4,
            380,
            [
                Entry(MEASURED, style.INK, (), "circle"),
                Entry(COMPUTED, style.INK, style.DASHES[1]),
            ],
        )
    )
    alt = ALT_MEMORY.format(
        T=arrays.T,
        tile=tile,
        dense=", ".join(map(size, arrays.formula)),
        tiled=", ".join(map(size, arrays.tiled)),
    )
    return Picture(800, 440, items, alt)


def caption_memory(arrays: TileMemory) -> str:
    """Say what the picture shows."""
    n = LENGTHS.index(arrays.T)
    recorded = arrays.dense[n] > 0
    dense = arrays.dense[n] if recorded else arrays.formula[n]
    return CAPTION_MEMORY.format(
        T=whole(arrays.T),
        tile=arrays.tile,
        dense=size(dense),
        how=MEASURED if recorded else COMPUTED,
        tiled=size(arrays.tiled[n]),
        ratio=f"{number(100 * arrays.tiled[n] / dense, 1)} %",
        scores=whole(arrays.T**2),
        held=whole(min(arrays.tile, arrays.T) ** 2),
    )


def tile_memory(**state) -> Lab:
    """Return the lab of tile size and memory; ``state`` sets sliders by name.

    Examples
    --------
    >>> tile_memory(tile=512)
    tile_memory(tile=512, T=2048)
    """
    return Lab("tile_memory", MEMORY_CONTROLS, compute_memory, draw_memory, caption_memory, state)
