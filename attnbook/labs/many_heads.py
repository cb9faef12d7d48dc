"""Labs of chapter 09: heads one by one, the wrong reshape, the mean of the maps."""

from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.diagrams import Group, Panel, apart, axes, bars, heat_map, matrix, number
from attnbook.examples import M_SENTENCE
from attnbook.heads import multi_head_attention, split_heads
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Line, Picture, Polygon, Rect, Text

# Everything a reader sees, in one place.
SHORT = ("I", "love", "GPU", "prog")
HEADS, HEAD = "number of heads $H$", "head $h$"
PROJECTIONS, OUTPUT = "projections", "output projection $W_O$"
OF_SENTENCE, RANDOM_1, RANDOM_2 = "of the sentence", "random, seed 1", "random, seed 2"
IDENTITY, BLOCKS, DENSE = "identity", "block-diagonal", "dense"
ALL_MAPS = "All maps"
THUMB = "$A^{{({h})}}$"
ONE_MAP = "Weights $A^{{({h})}}$"
SIDE_BY_SIDE = "$C$, columns of head {h} marked"
BLOCK = "$W_O$, block {h} framed"
ADDED = "What each head adds to row love of $Y$"
ROW, TOTAL = "head {h}", "sum"
ALT_HEADS = (
    "Top: all maps, {H} in number, four by four weights each, as small squares; the one of head "
    "{h} is framed. Middle left: this map with its numbers, rows and columns I, love, GPU, prog; "
    "row love is {row}. Middle right: the four by six matrix C with {columns}, those of head {h}, "
    "marked. Bottom left: the six by six matrix W O, {kind}, with its rows of head {h} framed. "
    "Bottom right: what each head adds to row love of Y, one row a head, and the sum {total}."
)
CAPTION_HEADS = (
    "Each head has $d_k = d_v$ = {width}. Head {h} owns {columns} of $Q$, $K$, $V$ and $C$, and "
    "the same rows of $W_O$. Row love of its map is {row}; it adds ({part}) to row love of $Y$, "
    "which is ({total}).{clipped}{one}"
)
CLIPPED = " There is no head {asked}: the last one is shown."
ONE = " With one head there is one block: block-diagonal and dense are the same."
COLUMN, COLUMNS = "column {}", "columns {} to {}"

LENGTH, WIDTH, WAY = "positions $T$", "head width $d_k$", "way to split"
RIGHT, WRONG = "reshape, then swap axes", "reshape at once"
PROJECTED = "$XW$, {T} x {columns}: position.column"
SPLIT_RIGHT = "reshape to ({T}, {H}, {d_k}), then swap the first two axes"
SPLIT_WRONG = "reshape to ({H}, {T}, {d_k}) at once"
HOLDS_ONE, HOLDS_MANY = "position {}", "positions {} to {}"
ALT_RESHAPE = (
    "Above, the projected matrix with {T} rows and {columns} columns; each cell tells its position "
    "and column, and is shaded by position. Below, the {H} heads that the way {way} makes of it, "
    "each with {T} rows and {d_k} columns: {holdings}."
)
CAPTION_RESHAPE = "{Way}: {holdings}. {verdict}"
SAME = "Every head has row $t$ from position $t$."
NO_MATTER = "Here both ways give the same: {why}."
ONE_HEAD, ONE_POSITION = "there is one head", "there is one position"
OFF = "In {n} of the {all} rows something comes from another position."
HEAD_HOLDS = "head {h} holds {what}"

FIRST, SECOND, HANDED = "$a$ of head 1", "$a$ of head 2", "values, projected"
DIFFERENT, SWAPPED, EQUAL = "4, 0 and 0, 4", "0, 4 and 4, 0", "4, 0 and 4, 0"
MAP = "Head {h}: $A^{{({h})}}$, reads {n}"
MEAN_MAP = "Mean of the two maps"
LINE = "The output $y$"
NETWORK, OF_MEAN = "the heads: {y}", "the mean map: {y}"
TOKENS = ("token 1", "token 2")
ALT_MEAN = (
    "Three pairs of bars: the weights of head 1, {a}, those of head 2, {b}, and their mean, "
    "{mean}. Under them a line from 0 to 8 with two marks: the output of the two heads at {y}, "
    "and what the mean map would read at {y_mean}."
)
CAPTION_MEAN = (
    "Two heads, one query, two tokens. The projected values $v_j^{{(h)}} W_O^{{(h)}}$ are {n_1} in "
    "head 1 and {n_2} in head 2. The heads give {sum_1} + {sum_2} = {y}; the mean map gives "
    "{y_mean}."
)

# ---------------------------------------------------------------- heads, one by one

X = np.array(M_SENTENCE.X, float)
D = X.shape[1]
LOVE = SHORT.index("love")
X.flags.writeable = False


def _random(seed: int) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(seed).normal(size=(3, D, D)).round(2))


WEIGHTS = {
    OF_SENTENCE: tuple(
        np.array(W, float) for W in (M_SENTENCE.W_Q, M_SENTENCE.W_K, M_SENTENCE.W_V)
    ),
    RANDOM_1: _random(1),
    RANDOM_2: _random(2),
}


def _dense(seed: int) -> np.ndarray:
    """Return a matrix without a zero, of tenths from -1 to 1."""
    rng = np.random.default_rng(seed)
    return rng.choice([-1, 1], size=(D, D)) * rng.integers(1, 11, size=(D, D)) / 10


DENSE_W_O = _dense(3)
HEADS_CONTROLS = (
    Slider("H", HEADS, (1, 2, 3, 6), start=2),
    Slider("h", HEAD, (1, 2, 3, 4, 5, 6), start=1),
    Slider("projections", PROJECTIONS, tuple(WEIGHTS), start=RANDOM_1),
    Slider("output", OUTPUT, (IDENTITY, BLOCKS, DENSE), start=IDENTITY),
)


class Heads(NamedTuple):
    """All heads over the sentence; ``h`` is the head that is shown, counted from 0."""

    asked: int  # the head asked for, from 1: may be more than there are
    h: int
    kind: str
    W_O: np.ndarray  # (6, 6)
    A: np.ndarray  # (H, 4, 4)
    C: np.ndarray  # (4, 6)
    parts: np.ndarray  # (H, 4, 6): O^(h) W_O^(h)
    Y: np.ndarray  # (4, 6)


def compute_heads(H: int, h: int, projections: str, output: str) -> Heads:
    """Compute R (5.18)-(5.21) for the sentence, with d_k = d_v = 6 / H."""
    block = np.arange(D) // (D // H)
    W_O = {
        IDENTITY: np.eye(D),
        BLOCKS: np.where(block[:, None] == block, DENSE_W_O, 0.0),
        DENSE: DENSE_W_O,
    }[output]
    result = multi_head_attention(X, X, *WEIGHTS[projections], W_O, H_q=H)
    parts = result.O @ W_O.reshape(H, D // H, D)
    return Heads(h, min(h, H) - 1, output, W_O, result.A, result.C, parts, result.Y)


def draw_heads(arrays: Heads) -> Picture:
    """Draw all maps, the one of the head shown, its columns of C and its rows of W_O."""
    width, h = D // len(arrays.A), arrays.h
    own = slice(h * width, (h + 1) * width)
    tint = style.shade((style.CARD, style.OUTPUT), 0.2)
    items = [Text(20, 62, ALL_MAPS, style.TITLE, bold=True)]
    for n, A in enumerate(arrays.A):
        left = 150 + 106 * n
        items.append(_thumbnail(left, 28, A, picked=n == h))
        label = THUMB.format(h=n + 1)
        items.append(Text(left + 36, 118, label, anchor="middle", bold=n == h))
    tokens = list(SHORT)
    items += [
        Text(70, 164, ONE_MAP.format(h=h + 1), style.TITLE, bold=True),
        heat_map(
            70, 206, arrays.A[h], cell=(54, 32), row_labels=tokens, column_labels=tokens
        ),
        apart([Rect(70, 206 + 32 * LOVE, 4 * 54, 32, None, style.INK, 3)]),
        Text(430, 164, SIDE_BY_SIDE.format(h=h + 1), style.TITLE, bold=True),
        matrix(430, 206, arrays.C, cell=(58, 32), fill=style.OUTPUT,
               grounds=[[tint if own.start <= c < own.stop else None for c in range(D)]] * 4),
        [Text(420, 222 + 32 * i, t, anchor="end") for i, t in enumerate(tokens)],
        Text(70, 378, BLOCK.format(h=h + 1), style.TITLE, bold=True),
        heat_map(70, 400, arrays.W_O, cell=(42, 26), limits=(-1, 1), scale=style.DIVERGING,
                 digits=1),
        apart([Rect(70, 400 + 26 * own.start, 6 * 42, 26 * width, None, style.INK, 3)]),
        Text(370, 378, ADDED, style.TITLE, bold=True),
        _contributions(430, 400, arrays),
    ]  # fmt: skip
    return Picture(800, 620, items, ALT_HEADS.format(**_heads_told(arrays)))


def _thumbnail(left: float, top: float, A: np.ndarray, picked: bool) -> Group:
    """Return a map as a square of small cells, with a heavy frame if it is the one picked."""
    size = 18
    cells = [
        Rect(left + size * j, top + size * i, size, size, style.shade(style.SEQUENTIAL, a))
        for (i, j), a in np.ndenumerate(A)
    ]
    side = size * len(A)
    frame = (style.INK, 4) if picked else (style.MUTED, 1)
    return (*cells, Rect(left, top, side, side, None, *frame))


def _contributions(left: float, top: float, arrays: Heads) -> Group:
    """Return the rows that the heads add to row love of Y, and their sum under a line."""
    H, cell = len(arrays.A), (58, 26)
    tint = style.shade((style.CARD, style.OUTPUT), 0.2)
    rows = [*arrays.parts[:, LOVE], arrays.Y[LOVE]]
    grounds = [[tint if n == arrays.h else None] * D for n in range(H + 1)]
    line = top + H * cell[1]
    items = [
        *matrix(left, top, rows, cell=cell, fill=style.OUTPUT, grounds=grounds),
        Line(left + 8, line, left + D * cell[0] - 8, line, style.OUTPUT, 2),
    ]
    for n in range(H + 1):
        text = TOTAL if n == H else ROW.format(h=n + 1)
        items.append(Text(left - 10, top + (n + 0.5) * cell[1], text, anchor="end"))
    return tuple(items)


def caption_heads(arrays: Heads) -> str:
    """Say what the picture shows."""
    return CAPTION_HEADS.format(**_heads_told(arrays))


def _heads_told(arrays: Heads) -> dict[str, str]:
    H, h = len(arrays.A), arrays.h + 1
    width = D // H
    first, last = arrays.h * width + 1, h * width
    columns = COLUMN.format(first) if width == 1 else COLUMNS.format(first, last)
    return {
        "H": str(H),
        "h": str(h),
        "kind": arrays.kind,
        "width": str(width),
        "columns": columns,
        "row": _listed(arrays.A[arrays.h, LOVE]),
        "part": _listed(arrays.parts[arrays.h, LOVE]),
        "total": _listed(arrays.Y[LOVE]),
        "clipped": CLIPPED.format(asked=arrays.asked) if arrays.asked > H else "",
        "one": ONE if H == 1 and arrays.kind != IDENTITY else "",
    }


def _listed(values: np.ndarray) -> str:
    return ", ".join(number(x) for x in values)


def head_picker(**state) -> Lab:
    """Return the lab of heads, one at a time; ``state`` sets sliders by name.

    Examples
    --------
    >>> head_picker(H=3, h=2)
    head_picker(H=3, h=2, projections='random, seed 1', output='identity')
    """
    return Lab("head_picker", HEADS_CONTROLS, compute_heads, draw_heads, caption_heads, state)


# ---------------------------------------------------------------- the wrong reshape

RESHAPE_CONTROLS = (
    Slider("T", LENGTH, (1, 2, 3, 4, 5, 6), start=4),
    Slider("H", HEADS, (1, 2, 3, 4), start=2),
    Slider("d_k", WIDTH, (1, 2, 3), start=3),
    Slider("way", WAY, (RIGHT, WRONG), start=RIGHT),
)


class Reshape(NamedTuple):
    """Where each entry of the heads comes from: position and column of X W, counted from 1."""

    way: str
    position: np.ndarray  # (H, T, d_k)
    column: np.ndarray  # (H, T, d_k)


def compute_reshape(T: int, H: int, d_k: int, way: str) -> Reshape:
    """Split a matrix that holds its own indices, either way."""
    position, column = np.indices((T, H * d_k)) + 1
    if way == RIGHT:
        return Reshape(way, split_heads(position, H), split_heads(column, H))
    return Reshape(way, position.reshape(H, T, d_k), column.reshape(H, T, d_k))


def draw_reshape(arrays: Reshape) -> Picture:
    """Draw the projected matrix, and below it the heads that are made of it."""
    H, T, d_k = arrays.position.shape
    position, column = np.indices((T, H * d_k)) + 1
    told = {"T": T, "H": H, "d_k": d_k, "columns": H * d_k}
    text = (SPLIT_RIGHT if arrays.way == RIGHT else SPLIT_WRONG).format(**told)
    items = [
        Text(40, 30, PROJECTED.format(**told), style.TITLE, bold=True),
        _sources(40, 54, position, column, T),
        Text(40, 258, text, style.TITLE, bold=True),
    ]
    for h in range(H):
        left = 40 + h * (46 * d_k + 50)
        middle = left + 23 * d_k
        items += [
            Text(middle, 290, ROW.format(h=h + 1), anchor="middle", bold=True),
            _sources(left, 308, arrays.position[h], arrays.column[h], T),
        ]
    return Picture(800, 490, items, ALT_RESHAPE.format(**_reshape_told(arrays)))


def _sources(left: float, top: float, position: np.ndarray, column: np.ndarray, T: int) -> Group:
    """Return a matrix whose entries say where they come from, shaded by position."""
    texts = [
        [f"{t}.{c}" for t, c in zip(*rows, strict=True)]
        for rows in zip(position, column, strict=True)
    ]
    pale = (style.CARD, style.QUERY)
    grounds = [[style.shade(pale, 0.1 + 0.75 * (t - 1) / T) for t in row] for row in position]
    return matrix(left, top, texts, cell=(46, 28), fill=style.QUERY, grounds=grounds)


def caption_reshape(arrays: Reshape) -> str:
    """Say what the picture shows."""
    return CAPTION_RESHAPE.format(**_reshape_told(arrays))


def _reshape_told(arrays: Reshape) -> dict[str, str | int]:
    H, T, d_k = arrays.position.shape
    holdings = []
    for h, position in enumerate(arrays.position, 1):
        first, last = position.min(), position.max()
        what = HOLDS_ONE.format(first) if first == last else HOLDS_MANY.format(first, last)
        holdings.append(HEAD_HOLDS.format(h=h, what=what))
    off = int((arrays.position != np.arange(1, T + 1)[:, None]).any(axis=-1).sum())
    if H == 1 or T == 1:
        verdict = NO_MATTER.format(why=ONE_HEAD if H == 1 else ONE_POSITION)
    else:
        verdict = OFF.format(n=off, all=H * T) if off else SAME
    return {
        "T": T,
        "H": H,
        "d_k": d_k,
        "columns": H * d_k,
        "way": arrays.way,
        "Way": arrays.way[0].upper() + arrays.way[1:],
        "holdings": ", ".join(holdings),
        "verdict": verdict,
    }


def wrong_reshape(**state) -> Lab:
    """Return the lab of two ways to split heads; ``state`` sets sliders by name.

    Examples
    --------
    >>> wrong_reshape(way="reshape at once")
    wrong_reshape(T=4, H=2, d_k=3, way='reshape at once')
    """
    return Lab(
        "wrong_reshape", RESHAPE_CONTROLS, compute_reshape, draw_reshape, caption_reshape, state
    )


# ---------------------------------------------------------------- the mean of the maps

NUMBERS = {
    DIFFERENT: ((4, 0), (0, 4)),
    SWAPPED: ((0, 4), (4, 0)),
    EQUAL: ((4, 0), (4, 0)),
}
SHARES = (0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95)
MEAN_CONTROLS = (
    Slider("a", FIRST, SHARES, start=0.75, format="{:.2f}".format),
    Slider("b", SECOND, SHARES, start=0.25, format="{:.2f}".format),
    Slider("values", HANDED, tuple(NUMBERS), start=DIFFERENT),
)


class Mean(NamedTuple):
    """One query, two heads, two tokens, outputs of width 1."""

    A: np.ndarray  # (2, 2): a row of weights for each head
    N: np.ndarray  # (2, 2): N[h, j] = v_j W_O of head h
    mean: np.ndarray  # (2,)
    y: float  # what the heads give
    y_mean: float  # what the mean map gives


def compute_mean(a: float, b: float, values: str) -> Mean:
    """Compute y = sum_h A^(h) N^(h), and the same with the mean of the A^(h)."""
    A, N = np.array([[a, 1 - a], [b, 1 - b]]), np.array(NUMBERS[values], float)
    mean = A.mean(axis=0)
    return Mean(A, N, mean, float((A * N).sum()), float(mean @ N.sum(axis=0)))


def draw_mean(arrays: Mean) -> Picture:
    """Draw the maps and their mean as bars, and both outputs on a line."""
    items = []
    for n, a in enumerate([*arrays.A, arrays.mean]):
        panel = Panel(60 + 250 * n, 70, 190, 130, y_limits=(0, 1.2))
        title = MEAN_MAP
        if n < 2:
            title = MAP.format(h=n + 1, n=_pair(arrays.N[n]))
        items += [
            axes(panel, x_ticks=(), y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
            Text(panel.left - 30, 30, title, bold=True),
            bars(panel, a, TOKENS),
        ]
    line = Panel(100, 330, 600, 1, x_limits=(0, 8))
    items.append(Text(30, 260, LINE, bold=True))
    for v in range(9):
        items += [
            Line(line.x(v), 326, line.x(v), 334, style.MUTED),
            Text(line.x(v), 350, number(v, 0), fill=style.MUTED, anchor="middle"),
        ]
    x, x_mean = line.x(arrays.y), line.x(arrays.y_mean)
    items += [
        Line(line.left, 330, line.right, 330, style.MUTED, 2),
        Polygon(((x, 326), (x - 11, 304), (x + 11, 304)), style.OUTPUT),
        Text(_inside(x), 288, NETWORK.format(y=number(arrays.y)), fill=style.OUTPUT,
             anchor="middle", bold=True),
        Polygon(((x_mean, 364), (x_mean - 11, 386), (x_mean + 11, 386)), style.WEIGHT),
        Text(_inside(x_mean), 402, OF_MEAN.format(y=number(arrays.y_mean)), fill=style.WEIGHT,
             anchor="middle", bold=True),
    ]  # fmt: skip
    return Picture(800, 430, items, ALT_MEAN.format(**_mean_told(arrays)))


def _inside(x: float) -> float:
    """Return where the middle of a label of 180 pixels may lie, as near to x as possible."""
    return min(max(x, 110), 690)


def caption_mean(arrays: Mean) -> str:
    """Say what the picture shows."""
    return CAPTION_MEAN.format(**_mean_told(arrays))


def _mean_told(arrays: Mean) -> dict[str, str]:
    sums = (arrays.A * arrays.N).sum(axis=1)
    return {
        "a": _listed(arrays.A[0]),
        "b": _listed(arrays.A[1]),
        "mean": _listed(arrays.mean),
        "n_1": _pair(arrays.N[0]),
        "n_2": _pair(arrays.N[1]),
        "sum_1": number(sums[0]),
        "sum_2": number(sums[1]),
        "y": number(arrays.y),
        "y_mean": number(arrays.y_mean),
    }


def _pair(values: np.ndarray) -> str:
    return "(" + ", ".join(number(x, 0) for x in values) + ")"


def mean_map(**state) -> Lab:
    """Return the lab of two heads and the mean of their maps; ``state`` sets sliders by name.

    Examples
    --------
    >>> mean_map(a=0.9)
    mean_map(a=0.9, b=0.25, values='4, 0 and 0, 4')
    """
    return Lab("mean_map", MEAN_CONTROLS, compute_mean, draw_mean, caption_mean, state)
