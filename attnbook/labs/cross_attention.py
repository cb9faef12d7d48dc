"""Labs of chapter 10: two lengths and a source mask, translation word by word, who gives what."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attnbook import masks, style
from attnbook.attention import attention
from attnbook.diagrams import Group, apart, arrow, heat_map, matrix, number
from attnbook.examples import M_SENTENCE
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Line, Picture, Rect, Text
from attnbook.softmax import softmax

# ---------------------------------------------- two lengths and a source mask

# Everything a reader sees, in one place.
TARGET_LENGTH, SOURCE_LENGTH = "target length $T$", "source length $S$"
PADDING, ARRIVAL = "source padding", "source available"
PADDED = {"none": (), "last": (-1,), "last two": (-2, -1), "first": (0,)}
WAITS = {0: "all at once", 3: "wait-3", 2: "wait-2", 1: "wait-1, the triangle"}
MAP_TITLE = "Weights $A$: {T} × {S}"
OUTPUT_TITLE = "$O$: {T} × 2"
VALUES_TITLE = "values $v_j$"
PAD = "pad"
NO_KEY = "no key"
MAP_ALT = (
    "A table of weights with {T} rows, one for each query, and {S} columns, one for each source "
    "position: {rows}. Over each column stands its value: {values}. Beside the table the output, "
    "{T} rows of 2 numbers: {outputs}."
)
MAP_CAPTION = (
    "$A$ is {T} × {S}, and the output has {T} {rows}, as many as there are queries. "
    "{hidden} of the {pairs} pairs of query and key may not be read. {unread}{empty}"
)
ALL_READ = "Every source position is read by some query."
UNREAD = "Source positions that no query reads: {}."
EMPTY = " Queries without a key: {}; a valid query without a key is an error in the book's code."

MOST = 6
MAP_CONTROLS = (
    Slider("T", TARGET_LENGTH, tuple(range(1, MOST + 1)), start=3),
    Slider("S", SOURCE_LENGTH, tuple(range(1, MOST + 1)), start=4),
    Slider("padding", PADDING, tuple(PADDED), start="none"),
    Slider("wait", ARRIVAL, tuple(WAITS), start=0, format=WAITS.get),
)


@lru_cache
def _sequences() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return queries, keys and values of six positions each; a lab shows the first of them."""
    rng = np.random.default_rng(10)
    Q, K = rng.normal(size=(2, MOST, 3)) * 1.3
    V = rng.integers(-9, 10, (MOST, 2)) / 10
    for array in (Q, K, V):
        array.flags.writeable = False
    return Q, K, V


class CrossMap(NamedTuple):
    """Weights and output of T queries over S source positions."""

    padded: np.ndarray  # (S,) bool
    allowed: np.ndarray  # (T, S) bool
    A: np.ndarray  # (T, S), a row without a key is zero
    V: np.ndarray  # (S, 2)
    O: np.ndarray  # (T, 2)


def compute_map(T: int, S: int, padding: str, wait: int) -> CrossMap:
    """Compute the weights of the first T queries over the first S keys, and the output."""
    Q, K, V = (x[:n] for x, n in zip(_sequences(), (T, S, S), strict=True))
    padded = np.zeros(S, bool)
    padded[[place for place in PADDED[padding] if place >= -S]] = True
    allowed = np.broadcast_to(masks.padding(~padded), (T, S))
    if wait:
        allowed = allowed & masks.causal(np.arange(T) + wait - 1, S)
    read = attention(Q, K, V, allowed, query_valid=allowed.any(axis=1))
    return CrossMap(padded, allowed.copy(), read.A, V.copy(), read.O)


def draw_map(arrays: CrossMap) -> Picture:
    """Draw the weights with the values over their columns and the output beside its rows."""
    (T, S), wide, high = arrays.A.shape, 62, 40
    left, top = 110, 176
    right = left + MOST * wide + 70
    items = [
        Text(left, 26, MAP_TITLE.format(T=T, S=S), style.TITLE, style.WEIGHT, bold=True),
        Text(right, 26, OUTPUT_TITLE.format(T=T), style.TITLE, style.OUTPUT, bold=True),
        Text(left - 10, 84, VALUES_TITLE, fill=style.VALUE, anchor="end"),
        matrix(left, 52, arrays.V.T, cell=(wide, 32), digits=1, fill=style.VALUE),
        Rect(left, top, MOST * wide, MOST * high, None, style.GRID),
        heat_map(
            left,
            top,
            arrays.A,
            cell=(wide, high),
            row_labels=[f"$q_{i}$" for i in range(1, T + 1)],
            column_labels=[f"$k_{j}$" for j in range(1, S + 1)],
            allowed=arrays.allowed,
        ),
        matrix(right, top, _rows(arrays), cell=(76, high), fill=style.OUTPUT),
    ]
    for j in np.flatnonzero(arrays.padded):
        x = left + (j + 0.5) * wide
        items.append(Text(x, top - 40, PAD, fill=style.MUTED, anchor="middle"))
    for i in np.flatnonzero(~arrays.allowed.any(axis=1)):
        y = top + (i + 0.5) * high
        items.append(Text(right + 160, y, NO_KEY, fill=style.GRADIENT, bold=True))
    return Picture(800, top + MOST * high + 24, items, MAP_ALT.format(**_map_told(arrays)))


def _rows(arrays: CrossMap) -> list[list[str]]:
    """Return the rows of the output as texts, a dash where a query has no key."""
    return [
        [number(x) if may.any() else "–" for x in o]
        for o, may in zip(arrays.O, arrays.allowed, strict=True)
    ]


def caption_map(arrays: CrossMap) -> str:
    """Say what the picture shows."""
    T, S = arrays.A.shape
    unread = np.flatnonzero(~arrays.allowed.any(axis=0)) + 1
    empty = np.flatnonzero(~arrays.allowed.any(axis=1)) + 1
    return MAP_CAPTION.format(
        T=T,
        S=S,
        rows="row" if T == 1 else "rows",
        pairs=T * S,
        hidden=(~arrays.allowed).sum(),
        unread=UNREAD.format(", ".join(map(str, unread))) if unread.size else ALL_READ,
        empty=EMPTY.format(", ".join(map(str, empty))) if empty.size else "",
    )


def _map_told(arrays: CrossMap) -> dict[str, object]:
    T, S = arrays.A.shape
    rows = [
        ", ".join(number(a) if may else "–" for a, may in zip(row, open_, strict=True))
        for row, open_ in zip(arrays.A, arrays.allowed, strict=True)
    ]
    return {
        "T": T,
        "S": S,
        "rows": "; ".join(rows),
        "values": "; ".join(f"({number(x, 1)}, {number(y, 1)})" for x, y in arrays.V),
        "outputs": "; ".join(
            f"({number(x)}, {number(y)})" if may.any() else NO_KEY
            for (x, y), may in zip(arrays.O, arrays.allowed, strict=True)
        ),
    }


def lengths_and_masks(**state) -> Lab:
    """Return the lab of two lengths and a source mask; ``state`` sets sliders by name.

    Examples
    --------
    >>> lengths_and_masks(T=5)
    lengths_and_masks(T=5, S=4, padding='none', wait=0)
    """
    return Lab("lengths_and_masks", MAP_CONTROLS, compute_map, draw_map, caption_map, state)


# ---------------------------------------------- translation, word by word

SOURCE = ("I", "love", "GPU", "prog")
TARGET = ("⟨s⟩", "wǒ", "ài", "GPU", "biānchéng", "⟨/s⟩")  # the start, four words, the end
CHINESE = ("⟨s⟩", "我", "爱", "GPU", "编程", "⟨/s⟩")
WRITTEN, SEED = "words written", "seed of all projections"
SITES = ("Encoder, self", "Decoder, self", "Cross")
SITE_KEYS = ("keys: source", "keys: target so far", "keys: source")
ASKED = "→ {}"
FRAMED = "framed: the new query; above it nothing changed"
STEP_ALT = (
    "Three tables of weights. Encoder self-attention, 4 by 4, complete from the start. Decoder "
    "self-attention, {T} of 5 rows so far, a triangle; its last row: {decoder}. Cross-attention, "
    "{T} of 5 rows so far over the 4 source positions; its last row, framed: {cross}."
)
STEP_CAPTION = (
    "Written so far: {so_far}. With the start token that makes $T$ = {T} positions. The new query "
    "stands at {here} and the word to come is {next}. It gives its {site} {weights} to I, love, "
    "GPU, programming; the most goes to {most}. No number here was learnt."
)
NOTHING = "nothing"
CROSS_WEIGHTS = "cross weights"
AND = " and "

STEP_CONTROLS = (
    Slider("written", WRITTEN, (0, 1, 2, 3, 4), start=2),
    Slider("seed", SEED, (0, 1, 2, 3, 4), start=0),
)


class Steps(NamedTuple):
    """The weights of the three sites after some words; T counts the start token too."""

    T: int
    encoder: np.ndarray  # (4, 4)
    decoder: np.ndarray  # (T, T)
    cross: np.ndarray  # (T, 4)


def compute_steps(written: int, seed: int) -> Steps:
    """Compute encoder, causal decoder and cross weights, each with a residual and one head."""
    T, X = written + 1, np.array(M_SENTENCE.X, float)
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(len(TARGET) - 1, 6)) / 2
    W = rng.normal(size=(3, 3, 6, 6)) * 0.8
    encoder = attention(*_projected(X, X, W[0]))
    X_m = X + encoder.O
    decoder = attention(*_projected(Y[:T], Y[:T], W[1]), masks.causal(T, T))
    X_q = Y[:T] + decoder.O
    return Steps(T, encoder.A, decoder.A, attention(*_projected(X_q, X_m, W[2])).A)


def _projected(X_q: np.ndarray, X_m: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, ...]:
    return X_q @ W[0], X_m @ W[1], X_m @ W[2]


def draw_steps(arrays: Steps) -> Picture:
    """Draw the three tables side by side; decoder and cross share their rows."""
    wide, high, top, most = 40, 40, 168, len(TARGET) - 1
    lefts, T = (54, 308, 522), arrays.T
    items = []
    for left, site, keys in zip(lefts, SITES, SITE_KEYS, strict=True):
        items.append(Text(left, 26, site, style.TITLE, bold=True))
        items.append(Text(left, 52, keys, fill=style.MUTED))
    for left, columns in zip(lefts[1:], (most, 4), strict=True):  # where rows will come
        items += [
            Rect(left, top + i * high, columns * wide, high, None, style.GRID)
            for i in range(T, most)
        ]
    causal = masks.causal(T, T)
    items += [
        heat_map(lefts[0], top, arrays.encoder, cell=(wide, high), row_labels=SOURCE),
        heat_map(
            lefts[1],
            top,
            arrays.decoder,
            cell=(wide, high),
            row_labels=TARGET[:T],
            allowed=causal,
        ),
        heat_map(lefts[2], top, arrays.cross, cell=(wide, high)),
    ]
    for left, labels in zip(lefts, (SOURCE, TARGET[:T], SOURCE), strict=True):
        items += [
            Text(left + (j + 0.5) * wide, top - 10, label, rotate=-90)
            for j, label in enumerate(labels)
        ]
    for i in range(T):
        now = i == T - 1
        items.append(
            Text(
                lefts[2] + 4 * wide + 8,
                top + (i + 0.5) * high,
                ASKED.format(TARGET[i + 1]),
                fill=style.INK if now else style.MUTED,
            )
        )
    for left, columns in zip(lefts[1:], (T, 4), strict=True):
        place = (left, top + (T - 1) * high, columns * wide, high)
        items.append(apart([Rect(*place, None, style.QUERY, 4, radius=3)]))
    items.append(Text(lefts[1], top + most * high + 28, FRAMED, fill=style.QUERY))
    alt = STEP_ALT.format(T=T, decoder=_listed(arrays.decoder[-1]), cross=_listed(arrays.cross[-1]))
    return Picture(800, top + most * high + 54, items, alt)


def caption_steps(arrays: Steps) -> str:
    """Say what the picture shows."""
    row, T = arrays.cross[-1], arrays.T
    shown = [number(a) for a in row]
    most = [token for token, a in zip(M_SENTENCE.tokens, shown, strict=True) if a == max(shown)]
    named = [f"{TARGET[i]} ({CHINESE[i]})" if i in (1, 2, 4) else TARGET[i] for i in range(6)]
    return STEP_CAPTION.format(
        so_far=" ".join(named[1:T]) or NOTHING,
        T=T,
        here=named[T - 1],
        next=named[T],
        site=CROSS_WEIGHTS,
        weights=_listed(row),
        most=AND.join(most),
    )


def translation_steps(**state) -> Lab:
    """Return the lab of a translation word by word; ``state`` sets sliders by name.

    Examples
    --------
    >>> translation_steps(written=4)
    translation_steps(written=4, seed=0)
    """
    return Lab("translation_steps", STEP_CONTROLS, compute_steps, draw_steps, caption_steps, state)


# ---------------------------------------------- who gives queries, keys and values

FROM = "{} come from"
SOURCE_SIDE, TARGET_SIDE = "source", "target"
WIDTHS = "width of the source"
ROLES = ("queries", "keys", "values")
RIGHT, WRONG, STOPS = "right", "runs, and is wrong", "stops"
ACCIDENT = "right by accident"
MATCHED = "X_q + O"
AT = {
    "Q": "$Q$ = $X W_Q$: ({m} × {n})({p} × {s})",
    "K": "$K$ = $X W_K$: ({m} × {n})({p} × {s})",
    "V": "$V$ = $X W_V$: ({m} × {n})({p} × {s})",
    "O": "$O$ = $A V$: ({m} × {n})({p} × {s})",
    "Y": "$X_q$ + $O$: ({m} × {n}) + ({p} × {s})",
}
GIVES_TITLES = ("inputs", "projected", "weights", "output", "residual")
VERDICTS = {
    RIGHT: "✓ right: target asks, source answers",
    WRONG: "! runs without an error, and is wrong by up to {error}",
    STOPS: "✗ stops at {where}",
    ACCIDENT: "! right by accident: one position to read, nothing to ask",
}
GIVES_ALT = (
    "A diagram from left to right. The target, 3 rows of width 4, and the source, {S} rows of "
    "width {d_m}; the queries come from the {queries}, the keys from the {keys}, the values from "
    "the {values}. {stages} Result: {verdict}."
)
STAGE = "{name} is {rows} by {columns}."
GIVES_CAPTION = "{verdict}. {detail}"
BROADCAST = "numpy repeats the single row of $O$ for all three target rows. "
SHAPES_FIT = "Every shape fits. "
SHAPES_STOP = "Shapes that do not fit stop the program. "

GIVES_T, GIVES_D = 3, 4
GIVES_CONTROLS = (
    *(
        Slider(role, FROM.format(role), (TARGET_SIDE, SOURCE_SIDE), start)
        for role, start in zip(ROLES, (TARGET_SIDE, SOURCE_SIDE, SOURCE_SIDE), strict=True)
    ),
    Slider("S", SOURCE_LENGTH, (1, 2, 3, 4, 5), start=5),
    Slider("d_m", WIDTHS, (4, 5), start=4),
)


class Wiring(NamedTuple):
    """What plain numpy does with one choice of inputs: shapes up to where it stops."""

    sides: tuple[str, str, str]  # what gives queries, keys, values
    S: int
    d_m: int
    shapes: dict[str, tuple[int, int]]  # of Q, K, V, A, O, Y, as far as they were computed
    stop: tuple[str, tuple[int, int], tuple[int, int]] | None  # stage, and the shapes that clash
    error: float  # largest difference from the right output, 0 where it stopped


def compute_wiring(queries: str, keys: str, values: str, S: int, d_m: int) -> Wiring:
    """Compute X_q + softmax(Q K^T / sqrt(d_k)) V with inputs from the sides that are named."""
    rng = np.random.default_rng(3)
    inputs = {
        TARGET_SIDE: rng.normal(size=(GIVES_T, GIVES_D)),
        SOURCE_SIDE: rng.normal(size=(5, 5))[:S, :d_m],
    }
    W = dict(zip("QKV", (rng.normal(size=(5, n)) / 2 for n in (2, 2, GIVES_D)), strict=True))
    W = {name: w[: GIVES_D if name == "Q" else d_m] for name, w in W.items()}
    sides = queries, keys, values
    shapes, stop, Y = _run(inputs, W, sides)
    right = _run(inputs, W, (TARGET_SIDE, SOURCE_SIDE, SOURCE_SIDE))[2]
    error = 0.0 if stop else float(abs(Y - right).max())
    return Wiring(sides, S, d_m, shapes, stop, error)


def _run(inputs: dict, W: dict, sides: tuple[str, str, str]) -> tuple[dict, tuple | None, object]:
    """Go on as long as shapes fit; return the shapes so far, the clash, and the last result."""
    shapes, made = {}, {}
    for name, side in zip("QKV", sides, strict=True):
        X = inputs[side]
        if X.shape[1] != W[name].shape[0]:
            return shapes, (name, X.shape, W[name].shape), None
        made[name] = X @ W[name]
        shapes[name] = made[name].shape
    A = softmax(made["Q"] @ made["K"].T / np.sqrt(made["K"].shape[1]))
    shapes["A"] = A.shape
    if A.shape[1] != made["V"].shape[0]:
        return shapes, ("O", A.shape, made["V"].shape), None
    O, X_q = A @ made["V"], inputs[TARGET_SIDE]
    shapes["O"] = O.shape
    if O.shape[0] not in (1, len(X_q)):
        return shapes, ("Y", X_q.shape, O.shape), None
    shapes["Y"] = X_q.shape
    return shapes, None, X_q + O


def verdict(arrays: Wiring) -> str:
    """Return RIGHT, WRONG, STOPS or ACCIDENT."""
    if arrays.stop:
        return STOPS
    if arrays.error > 1e-9:
        return WRONG
    return RIGHT if arrays.sides == (TARGET_SIDE, SOURCE_SIDE, SOURCE_SIDE) else ACCIDENT


BOXES = {  # name: (left, top, width, colour)
    "Q": (258, 60, 100, style.QUERY),
    "K": (258, 150, 100, style.KEY),
    "V": (258, 240, 100, style.VALUE),
    "A": (432, 105, 90, style.WEIGHT),
    "O": (560, 172, 90, style.OUTPUT),
    "Y": (684, 60, 100, style.INK),
}
NAMES = {name: f"${name}$" for name in "QKVAO"} | {"Y": "$X_q$ + $O$"}
HIGH = 56


def draw_wiring(arrays: Wiring) -> Picture:
    """Draw the two inputs, who gives what, and the shapes up to the end or to the clash."""
    failed = arrays.stop[0] if arrays.stop else None
    sizes = {TARGET_SIDE: (GIVES_T, GIVES_D), SOURCE_SIDE: (arrays.S, arrays.d_m)}
    tops = {TARGET_SIDE: 82, SOURCE_SIDE: 218}
    items = []
    for side, top in tops.items():
        items += _box(24, top, 112, side, sizes[side], style.INK)
    for name, side in zip("QKV", arrays.sides, strict=True):
        left, top, _, colour = BOXES[name]
        dash = style.DASHES["QKV".index(name)]
        items.append(arrow(140, tops[side] + HIGH / 2, left - 5, top + HIGH / 2, colour, dash=dash))
    for start, end in (("Q", "A"), ("K", "A"), ("A", "O"), ("V", "O")):
        items.append(_link(start, end, end in arrays.shapes or end == failed))
    reached = "Y" in arrays.shapes or failed == "Y"
    items.append(arrow(654, 182, 694, 121, style.INK if reached else style.GRID))
    items += _over(tops[TARGET_SIDE])
    for name, (left, top, width, colour) in BOXES.items():
        if name == failed:
            items += _box(left, top, width, NAMES[name], None, style.GRADIENT)
        elif name in arrays.shapes:
            items += _box(left, top, width, NAMES[name], arrays.shapes[name], colour)
        else:
            items.append(Rect(left, top, width, HIGH, None, style.GRID, 2, radius=8))
            items.append(
                Text(
                    left + width / 2, top + HIGH / 2, NAMES[name], fill=style.MUTED, anchor="middle"
                )
            )
    colour = style.VALUE if verdict(arrays) == RIGHT else style.GRADIENT
    items.append(Text(24, 340, _verdict_text(arrays), style.TITLE, colour, bold=True))
    return Picture(800, 376, items, GIVES_ALT.format(**_wiring_told(arrays)))


def _box(x, y, width, text, shape, colour) -> list:
    """Return a rounded box with a name and, if it was computed, its shape; else a cross."""
    ground = style.shade((style.CARD, colour), 0.14)
    second = "✗" if shape is None else "{} × {}".format(*shape)
    return [
        Rect(x, y, width, HIGH, ground, colour, 2, radius=8),
        Text(x + width / 2, y + 18, text, fill=style.INK, anchor="middle", bold=True),
        Text(x + width / 2, y + 40, second, fill=style.INK, anchor="middle"),
    ]


def _link(start: str, end: str, reached: bool) -> Group:
    """Return the arrow between two boxes, faint where the program did not get."""
    x1 = BOXES[start][0] + BOXES[start][2] + 4
    y1, y2 = (BOXES[name][1] + HIGH / 2 for name in (start, end))
    y2 += {"Q": -12, "K": 12, "A": -10, "V": 12}[start]
    return arrow(x1, y1, BOXES[end][0] - 5, y2, BOXES[start][3] if reached else style.GRID)


def _over(top: float) -> list:
    """Return the way of the residual: from the target over the top to the sum."""
    x, high = BOXES["Y"][0] + 50, 24
    return [
        Line(80, top - 3, 80, high, style.MUTED, 2),
        Line(79, high, x + 1, high, style.MUTED, 2),
        *arrow(x, high, x, BOXES["Y"][1] - 4, style.MUTED),
    ]


def caption_wiring(arrays: Wiring) -> str:
    """Say what the picture shows."""
    detail = SHAPES_STOP if arrays.stop else SHAPES_FIT
    if not arrays.stop and arrays.shapes["O"][0] == 1 < GIVES_T:
        detail = BROADCAST
    told = _wiring_told(arrays)
    return GIVES_CAPTION.format(verdict=told["verdict"], detail=detail.strip())


def _verdict_text(arrays: Wiring) -> str:
    where = ""
    if arrays.stop:
        stage, (m, n), (p, s) = arrays.stop
        where = AT[stage].format(m=m, n=n, p=p, s=s)
    return VERDICTS[verdict(arrays)].format(where=where, error=number(arrays.error))


def _wiring_told(arrays: Wiring) -> dict[str, object]:
    names = {"Y": "The sum"}
    stages = [
        STAGE.format(name=names.get(name, name), rows=rows, columns=columns)
        for name, (rows, columns) in arrays.shapes.items()
    ]
    text = _verdict_text(arrays)[2:].replace("$", "")
    return {
        **dict(zip(ROLES, arrays.sides, strict=True)),
        "S": arrays.S,
        "d_m": arrays.d_m,
        "stages": " ".join(stages),
        "verdict": text[0].upper() + text[1:] if text else "",
    }


def who_gives_what(**state) -> Lab:
    """Return the lab of swapped sources; ``state`` sets sliders by name.

    Examples
    --------
    >>> who_gives_what(values="target")
    who_gives_what(queries='target', keys='source', values='target', S=5, d_m=4)
    """
    return Lab("who_gives_what", GIVES_CONTROLS, compute_wiring, draw_wiring, caption_wiring, state)


# ---------------------------------------------- common parts


def _listed(values: np.ndarray) -> str:
    return "(" + ", ".join(map(number, values)) + ")"
