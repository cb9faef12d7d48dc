"""Labs of chapter 12: words in another order, values drawn together, other weights, same output."""

import itertools
from typing import NamedTuple

import numpy as np

from attnbook import masks, style
from attnbook.attention import attention
from attnbook.diagrams import (
    Entry,
    Group,
    Panel,
    apart,
    axes,
    bars,
    heat_map,
    legend,
    levels_before,
    mark,
    number,
)
from attnbook.examples import HEAD_ALL_WIDTHS_DIFFER, M_SENTENCE
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Circle, Line, Picture, Text
from attnbook.softmax import softmax

# Everything a reader sees, in one place.
WORDS = ("I", "love", "GPU", "prog")
ORDER = "order of the words"
MASK = "mask"
MASKS = {
    "none": "none",
    "moves": "causal, and it moves with the words",
    "stays": "causal, and it stays",
}
POSITIONS = "position rows"
ADDED = {False: "not added", True: "added"}
MAP = "Weights $A$, in this order"
OUTPUTS = "Outputs, by word"
MOVED_BY, MOVED = "moved by", "{word} {distance}"
FRAME = "frames: outputs in the order of the sentence"
SAME, CHANGED = "as in the order of the sentence", "not those of the sentence"
ALT_SHUFFLE = (
    "A four by four heat map of weights, its rows and columns in the order {order}. Beside it a "
    "plane with the outputs of the four words, each a marker of its own, and a frame of the same "
    "shape where the output was in the order I love GPU prog. The outputs have moved: {moved}."
)
CAPTION_SHUFFLE = (
    "The outputs of the words are {verdict}: {moved}. The map is {map_verdict} the sentence's map "
    "with its rows and columns in the new order."
)
MAP_VERDICT = {True: "", False: "not "}

SPREAD = "spread of the values $s$"
TAU = "temperature $τ$"
MAP_OF_FOUR = "Weights $A$: they do not know $s$"
PLANE = "Values and outputs"
VALUE, OUTPUT = "values $v_j$", "outputs $o_i$"
MEASURES = "Largest distances"
OF_OUTPUTS, BOUND, OF_VALUES = "outputs", "bound", "values"
ALT_EQUAL = (
    "A heat map of four rows of weights over six keys; its largest entry is {largest}. A plane "
    "with six values and four outputs. Three bars: the largest distance between two outputs, "
    "{between}; the bound for it, {bound}; the largest distance between two values, {diameter}."
)
CAPTION_EQUAL = (
    "Two outputs lie at most {between} apart. They cannot lie further apart than {bound}: the "
    "largest distance of two values, {diameter}, times the largest half-sum of differences of two "
    "rows of the map, {tv}. The largest weight is {largest}."
)

KEYS = "number of keys $S$"
STEP = "step along the null direction $t$"
ROW_NOW = "Weights: before (dashes) and now"
READ = "Values, and what is read"
WHERE = "output ({x}, {y})"
ALT_SAME = (
    "Bars for {keys} weights, {now}, with a dashed line at what each was before: {before}. A plane "
    "with {keys} values, drawn larger where the weight is larger, and the output at ({x}, {y})."
)
CAPTION_SAME = (
    "The weights are {now}; before they were {before}. Half the sum of their differences is {tv}. "
    "The output is ({x}, {y}), and it was ({x0}, {y0}). {freedom}"
)
FREEDOM = {
    0: "With three keys nothing can move: the three values are not on one line.",
    1: "There is one null direction.",
    2: "There are two independent null directions; the slider follows one of them.",
    3: "There are three independent null directions; the slider follows one of them.",
}
AT_AN_END = " One weight is exactly 0 here: softmax alone does not give that, a mask does."


# ---------------------------------------------------------------- the words in another order

SENTENCE = np.array(M_SENTENCE.X, float)
ORDERS = tuple("".join(map(str, order)) for order in itertools.permutations((1, 2, 3, 4)))
SHAPES = style.MARKERS  # one for each word
SHUFFLE_CONTROLS = (
    Slider(
        "order",
        ORDER,
        ORDERS,
        start="1234",
        format=lambda order: " ".join(WORDS[int(place) - 1] for place in order),
    ),
    Slider("mask", MASK, tuple(MASKS), start="none", format=MASKS.get),
    Slider("positions", POSITIONS, (False, True), start=False, format=ADDED.get),
)


def _projections() -> tuple[np.ndarray, ...]:
    """Draw the projections of the head, and rows that stand for the positions."""
    rng = np.random.default_rng(501)  # four outputs that lie well apart
    W_Q, W_K = 2 * rng.normal(size=(2, 6, 3))
    return W_Q, W_K, rng.normal(size=(6, 2)), 0.15 * rng.normal(size=(4, 6))


W_Q, W_K, W_V, X_POS = _projections()


class Shuffle(NamedTuple):
    """One head on the sentence in an order; what is *by word* stands in the sentence's order."""

    words: tuple[str, ...]  # in the order read
    A: np.ndarray  # (4, 4)
    allowed: np.ndarray  # (4, 4)
    O: np.ndarray  # (4, 2) by word
    O_before: np.ndarray  # (4, 2) by word, when read in the order of the sentence
    moved: np.ndarray  # (4,) distances between the two
    same_map: bool  # whether A is P A P^T of the map in the order of the sentence


def compute_shuffle(order: str, mask: str, positions: bool) -> Shuffle:
    """Compute F(PX) and F(X) by R (5.37)-(5.41); the mask is none, P M P^T or M."""
    places = [int(place) - 1 for place in order]
    causal = np.ones((4, 4), bool) if mask == "none" else masks.causal(4, 4)
    moved_along = causal if mask == "stays" else causal[np.ix_(places, places)]
    before = _head(SENTENCE, causal, positions)
    after = _head(SENTENCE[places], moved_along, positions)
    O = after.O[np.argsort(places)]
    return Shuffle(
        words=tuple(WORDS[place] for place in places),
        A=after.A,
        allowed=moved_along,
        O=O,
        O_before=before.O,
        moved=np.linalg.norm(O - before.O, axis=1),
        same_map=np.allclose(after.A, before.A[np.ix_(places, places)], rtol=0, atol=1e-12),
    )


def _head(X: np.ndarray, allowed: np.ndarray, positions: bool):
    X = X + positions * X_POS
    return attention(X @ W_Q, X @ W_K, X @ W_V, allowed)


def draw_shuffle(arrays: Shuffle) -> Picture:
    """Draw the map in the new order, and every word's output beside where it was."""
    plane = Panel(484, 60, 280, 272, (-2.8, -0.6), (-1.4, 1.0))
    items = [
        Text(40, 30, MAP, style.TITLE, bold=True),
        heat_map(
            88,
            92,
            arrays.A,
            cell=(66, 60),
            row_labels=arrays.words,
            column_labels=arrays.words,
            allowed=arrays.allowed,
        ),
        axes(
            plane,
            title=OUTPUTS,
            x_ticks=((-2, "−2"), (-1, "−1")),
            y_ticks=((-1, "−1"), (0, "0"), (1, "1")),
        ),
    ]
    for o, before, shape in zip(arrays.O, arrays.O_before, SHAPES, strict=True):
        (x, y), (x0, y0) = _place(plane, o), _place(plane, before)
        items.append(mark(x0, y0, shape, style.HATCH, 11))
        items.append(mark(x0, y0, shape, style.CARD, 8))
        if np.hypot(x - x0, y - y0) > 1:
            items.append(Line(x0, y0, x, y, style.OUTPUT, 1.5, dash=style.DASHES[2]))
        items.append(mark(x, y, shape, style.OUTPUT, 5))
    for k, (word, distance, shape) in enumerate(zip(WORDS, arrays.moved, SHAPES, strict=True)):
        x = 170 + 160 * k
        items.append(mark(x, 386, shape, style.OUTPUT, 6))
        items.append(Text(x + 16, 386, MOVED.format(word=word, distance=number(distance))))
    items += [Text(40, 386, MOVED_BY), Text(40, 416, FRAME, fill=style.MUTED)]
    alt = ALT_SHUFFLE.format(order=" ".join(arrays.words), moved=_moved(arrays))
    return Picture(800, 440, items, alt)


def caption_shuffle(arrays: Shuffle) -> str:
    """Say what the picture shows."""
    same = bool((arrays.moved < 1e-12).all())
    return CAPTION_SHUFFLE.format(
        verdict=SAME if same else CHANGED,
        moved=_moved(arrays),
        map_verdict=MAP_VERDICT[arrays.same_map],
    ).replace("  ", " ")


def _moved(arrays: Shuffle) -> str:
    told = zip(WORDS, arrays.moved, strict=True)
    return ", ".join(f"{word} {number(distance)}" for word, distance in told)


def shuffled_words(**state) -> Lab:
    """Return the lab of the sentence in another order; ``state`` sets sliders by name.

    Examples
    --------
    >>> shuffled_words(order="4321")
    shuffled_words(order='4321', mask='none', positions=False)
    """
    return Lab(
        "shuffled_words", SHUFFLE_CONTROLS, compute_shuffle, draw_shuffle, caption_shuffle, state
    )


# ---------------------------------------------------------------- values drawn together

HEAD = HEAD_ALL_WIDTHS_DIFFER
U = (
    (np.array(HEAD.X_q, float) @ np.array(HEAD.W_Q, float))
    @ (np.array(HEAD.X_m, float) @ np.array(HEAD.W_K, float)).T
    / np.sqrt(3)
)
V = np.array(HEAD.X_m, float) @ np.array(HEAD.W_V, float)
for _array in (SENTENCE, W_Q, W_K, W_V, X_POS, U, V):
    _array.flags.writeable = False
EQUAL_CONTROLS = (
    Slider("s", SPREAD, tuple(k / 10 for k in range(11)), start=1.0, format="{:.1f}".format),
    Slider(
        "tau",
        TAU,
        (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0),
        start=0.5,
        format="{:g}".format,
    ),
)


class Equal(NamedTuple):
    """Four queries that read six values drawn towards their mean."""

    A: np.ndarray  # (4, 6)
    V: np.ndarray  # (6, 2) mean + s (v_j - mean)
    O: np.ndarray  # (4, 2)
    between: float  # largest distance of two outputs
    diameter: float  # largest distance of two values
    tv: float  # largest half-sum of differences of two rows of A


def compute_equal(s: float, tau: float) -> Equal:
    """Compute A = softmax(U / tau) and its reads of values whose distances are s times as large."""
    A = softmax(U / tau)
    mean = V.mean(axis=0)
    values = mean + s * (V - mean)
    O = A @ values
    tv = np.abs(A[:, None] - A).sum(axis=-1).max() / 2
    return Equal(A, values, O, _diameter(O), _diameter(values), float(tv))


def _diameter(points: np.ndarray) -> float:
    """Return the largest distance between two rows."""
    return float(np.linalg.norm(points[:, None] - points, axis=-1).max())


def draw_equal(arrays: Equal) -> Picture:
    """Draw the map, the plane of values and outputs, and the three distances as bars."""
    plane = Panel(470, 60, 300, 270, (-1.4, 3.4), (-3.4, 2.4))
    below = Panel(66, 322, 324, 108, y_limits=(0, 8))
    limits = (arrays.between, arrays.tv * arrays.diameter, arrays.diameter)
    items = [
        Text(40, 30, MAP_OF_FOUR, style.TITLE, bold=True),
        heat_map(
            66,
            86,
            arrays.A,
            cell=(54, 38),
            row_labels=[f"$q_{i}$" for i in range(1, 5)],
            column_labels=[f"$k_{j}$" for j in range(1, 7)],
        ),
        axes(below, title=MEASURES, x_ticks=(), y_ticks=((0, "0"), (4, "4"), (8, "8"))),
        bars(below, limits, (OF_OUTPUTS, BOUND, OF_VALUES), fill=style.OUTPUT),
        axes(
            plane,
            title=PLANE,
            x_ticks=((-1, "−1"), (0, "0"), (1, "1"), (2, "2"), (3, "3")),
            y_ticks=((-3, "−3"), (-2, "−2"), (-1, "−1"), (0, "0"), (1, "1"), (2, "2")),
        ),
        [apart([mark(*_place(plane, v), "square", style.VALUE, 6)]) for v in arrays.V],
        apart([Circle(*_place(plane, o), 10, None, style.OUTPUT, 3) for o in arrays.O]),
        legend(470, 372, [Entry(text, style.CARD, (1, 99)) for text in (VALUE, OUTPUT)]),
        mark(484, 384, "square", style.VALUE, 6),
        Circle(484, 408, 10, None, style.OUTPUT, 3),
    ]
    return Picture(800, 470, items, ALT_EQUAL.format(**_equal(arrays)))


def caption_equal(arrays: Equal) -> str:
    """Say what the picture shows."""
    return CAPTION_EQUAL.format(**_equal(arrays))


def _equal(arrays: Equal) -> dict[str, str]:
    told = {"between": arrays.between, "diameter": arrays.diameter, "tv": arrays.tv}
    told |= {"bound": arrays.tv * arrays.diameter, "largest": arrays.A.max()}
    return {name: number(value, 3) for name, value in told.items()}


def equal_values(**state) -> Lab:
    """Return the lab of values drawn together; ``state`` sets sliders by name.

    Examples
    --------
    >>> equal_values(s=0.0)
    equal_values(s=0.0, tau=0.5)
    """
    return Lab("equal_values", EQUAL_CONTROLS, compute_equal, draw_equal, caption_equal, state)


# ---------------------------------------------------------------- other weights, the same output

SAME_CONTROLS = (
    Slider("keys", KEYS, (3, 4, 5, 6), start=4),
    Slider(
        "t",
        STEP,
        tuple(k / 10 for k in range(-10, 11)),
        start=0.0,
        format=lambda t: number(t, 1),
    ),
)


class Same(NamedTuple):
    """A row of weights moved along a null direction of the values."""

    V: np.ndarray  # (S, 2)
    before: np.ndarray  # (S,) weights
    a: np.ndarray  # (S,) weights with the same output
    o: np.ndarray  # (2,) what they read
    o_before: np.ndarray  # (2,)
    freedom: int  # number of independent null directions


def compute_same(keys: int, t: float) -> Same:
    """Compute a + step * delta with delta [V 1] = 0; at t = 1 and -1 a weight reaches 0."""
    values = V[:keys]
    before = softmax(U[3, :keys])
    B = np.column_stack([values, np.ones(keys)])
    freedom = keys - int(np.linalg.matrix_rank(B))
    a = before
    if freedom and t:
        delta = np.sign(t) * null_direction(B)
        shrinking = delta < -1e-12
        longest = (before[shrinking] / -delta[shrinking]).min()
        a = before + abs(t) * longest * delta
        a[a < 1e-12] = 0  # at the ends, but for rounding
    return Same(values, before, a, a @ values, before @ values, freedom)


def null_direction(B: np.ndarray) -> np.ndarray:
    """Return the projection of (1, 0, ..., 0) on the rows delta with delta B = 0."""
    first = np.zeros(len(B))
    first[0] = 1
    return first - B @ np.linalg.solve(B.T @ B, B.T @ first)


def draw_same(arrays: Same) -> Picture:
    """Draw the weights as bars, and the values with the output that does not move."""
    panel = Panel(80, 70, 330, 260, y_limits=(0, 1.15))
    plane = Panel(490, 70, 280, 260, (-2.4, 3.8), (-3.6, 2.8))
    keys = [f"$a_{j}$" for j in range(1, len(arrays.a) + 1)]
    x, y = _place(plane, arrays.o)
    items = [
        axes(panel, title=ROW_NOW, x_ticks=(), y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
        bars(panel, arrays.a, keys, digits=None),
        levels_before(panel, arrays.before, 0.06),
        _under(panel, arrays.a),
        axes(
            plane,
            title=READ,
            x_ticks=((-1, "−1"), (0, "0"), (1, "1"), (2, "2"), (3, "3")),
            y_ticks=((-3, "−3"), (-2, "−2"), (-1, "−1"), (0, "0"), (1, "1"), (2, "2")),
        ),
    ]
    for j, (v, weight) in enumerate(zip(arrays.V, arrays.a, strict=True), 1):
        place = _place(plane, v)
        dx, dy = SHIFTS[j - 1]
        items.append(Line(*place, x, y, style.GRID, 1 + 8 * weight))
        items.append(mark(*place, "square", style.VALUE, 3 + 12 * weight))
        items.append(
            Text(
                place[0] + dx,
                place[1] + dy,
                f"$v_{j}$",
                fill=style.VALUE,
                anchor="middle",
                bold=True,
            )
        )
    items += [
        mark(x, y, "circle", style.OUTPUT, 8),
        mark(504, 384, "circle", style.OUTPUT, 8),
        Text(522, 384, WHERE.format(x=number(arrays.o[0], 3), y=number(arrays.o[1], 3)), bold=True),
    ]
    return Picture(800, 420, items, ALT_SAME.format(**_same(arrays)))


SHIFTS = ((28, -4), (4, -24), (-28, -6), (-28, 12), (24, -14), (-28, -10))


def _under(panel: Panel, weights: np.ndarray) -> Group:
    """Return the weights as numbers under the names of the bars."""
    slot = panel.width / len(weights)
    y = panel.bottom + 42
    return tuple(
        Text(panel.left + (j + 0.5) * slot, y, number(weight), anchor="middle")
        for j, weight in enumerate(weights)
    )


def caption_same(arrays: Same) -> str:
    """Say what the picture shows."""
    told = _same(arrays)
    end = AT_AN_END if (arrays.a == 0).any() else ""
    return CAPTION_SAME.format(freedom=FREEDOM[arrays.freedom], **told) + end


def _same(arrays: Same) -> dict[str, object]:
    tv = np.abs(arrays.a - arrays.before).sum() / 2
    told = {"x": arrays.o[0], "y": arrays.o[1], "tv": tv}
    told |= {"x0": arrays.o_before[0], "y0": arrays.o_before[1]}
    return {name: number(value, 3) for name, value in told.items()} | {
        "keys": len(arrays.a),
        "now": _listed(arrays.a),
        "before": _listed(arrays.before),
    }


def same_output(**state) -> Lab:
    """Return the lab of other weights with the same output; ``state`` sets sliders by name.

    Examples
    --------
    >>> same_output(keys=5)
    same_output(keys=5, t=0.0)
    """
    return Lab("same_output", SAME_CONTROLS, compute_same, draw_same, caption_same, state)


# ---------------------------------------------------------------- common parts


def _place(panel: Panel, point: np.ndarray) -> tuple[float, float]:
    return panel.x(point[0]), panel.y(point[1])


def _listed(values: np.ndarray) -> str:
    return "(" + ", ".join(number(value, 3) for value in values) + ")"
