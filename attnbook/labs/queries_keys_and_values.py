"""Labs of chapter 03: three faces of a vector, extractor columns, one number's reach, asymmetry."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.attention import attention, attention_backward
from attnbook.diagrams import Group, Panel, apart, arrow, curve, heat_map, mark, matrix, number
from attnbook.examples import M_SENTENCE, R_HEAD
from attnbook.labs.engine import Lab, Slider
from attnbook.markup import to_plain
from attnbook.masks import causal
from attnbook.picture import Circle, Line, Picture, Rect, Text
from attnbook.softmax import softmax_backward

SHORT = ("I", "love", "GPU", "prog")  # the tokens of the sentence, the last one cut
X = np.array(M_SENTENCE.X, float)
PROJECTIONS = {
    "Q": np.array(M_SENTENCE.W_Q, float),
    "K": np.array(M_SENTENCE.W_K, float),
    "V": np.array(M_SENTENCE.W_V, float),
}
COLOURS = {"Q": style.QUERY, "K": style.KEY, "V": style.VALUE}
for _array in (X, *PROJECTIONS.values()):
    _array.flags.writeable = False


# ---------------------------------------------- one vector, three faces

# Everything a reader sees, in one place.
ANGLE, LENGTH, SET = "angle of $x$", "length of $x$", "projections"
COPIES, OF_R, TURNS = "three copies", "of [R] (5.13)", "turn, mirror, shear"
SPLIT, BLIND = "match on one, send the other", "a query that drops a direction"
SELF, SELF_SCORE = "score of the token with itself:", "$q k^⊤$ = {}"
FACES_ALT = (
    "A plane with the token vector x at ({x}) and its three projections: the query at ({q}), the "
    "key at ({k}), the value at ({v}). Closed curves show where all vectors of length {length} "
    "go: {curves}."
)
FACES_CAPTION = (
    "$x$ = ({x}) has the query ({q}), the key ({k}) and the value ({v}). With itself it has the "
    "score {score}."
)
ON_CIRCLE, ON_ELLIPSE = "the {} lie on a circle", "the {} on an ellipse"
ON_SEGMENT = "the {} on a line segment"

EYE = ((1, 0), (0, 1))
FACES = {  # (W_Q, W_K, W_V), for rows: q = x W_Q
    COPIES: (EYE, EYE, EYE),
    OF_R: (R_HEAD.W_Q, R_HEAD.W_K, R_HEAD.W_V),
    TURNS: (((0, 1), (-1, 0)), ((1, 0), (0, -1)), ((1, 0), (0.8, 1))),
    SPLIT: (((1, 0), (0, 0)), ((1, 0), (0, 0)), ((0, 0), (0, 1))),
    BLIND: (((1, 0.5), (1, 0.5)), ((1.2, 0), (0.6, 0.8)), ((0.5, -0.5), (1, 1))),
}
FACES_CONTROLS = (
    Slider("angle", ANGLE, tuple(range(0, 360, 15)), start=30, format="{}°".format),
    Slider("length", LENGTH, (0.25, 0.5, 0.75, 1.0, 1.25), start=1.0, format="{:g}".format),
    Slider("projections", SET, tuple(FACES), start=TURNS),
)


class ThreeFaces(NamedTuple):
    """A token vector x and its rows q, k, v; the curves are the images of all x of its length."""

    length: float
    x: np.ndarray  # (2,)
    W: np.ndarray  # (3, 2, 2): W_Q, W_K, W_V
    faces: np.ndarray  # (3, 2): q, k, v
    curves: np.ndarray  # (3, points, 2)


def compute_faces(angle: int, length: float, projections: str) -> ThreeFaces:
    """Compute q = x W_Q, k = x W_K and v = x W_V."""
    W = np.array(FACES[projections], float)
    turns = np.radians([angle, *range(0, 361, 5)])
    circle = length * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    images = circle @ W
    return ThreeFaces(length, circle[0], W, images[:, 0], images[:, 1:])


def draw_faces(arrays: ThreeFaces) -> Picture:
    """Draw x, q, k and v in one plane, and the three matrices beside it."""
    panel = Panel(44, 14, 400, 400, (-2.6, 2.6), (-2.6, 2.6))
    items = _cross(panel)
    named = zip("QKV", arrays.curves, style.DASHES[1:], strict=True)
    for name, points, dash in named:
        items.append(curve(panel, *points.T, COLOURS[name], dash=dash))
    vectors = [(arrays.x, "$x$", style.INK, "diamond")]
    for name, face, shape in zip("QKV", arrays.faces, style.MARKERS, strict=False):
        vectors.append((face, f"${name.lower()}$", COLOURS[name], shape))
    lines, marks = [], []
    for n, (point, _, colour, shape) in enumerate(vectors):
        x, y = panel.x(point[0]), panel.y(point[1])
        lines += apart([Line(panel.x(0), panel.y(0), x, y, colour, 9 - 2 * n)])
        marks += apart([mark(x, y, shape, colour, 11 - 2 * n)])
    items += [lines, marks]
    items.append(_tip_labels(panel, [vector[:3] for vector in vectors]))
    for n, (name, W, face) in enumerate(zip("QKV", arrays.W, arrays.faces, strict=True)):
        top = 52 + 114 * n
        items += [
            matrix(520, top, W, f"$W_{name}$", cell=(58, 34), fill=COLOURS[name]),
            Text(662, top + 34, f"${name.lower()}$ =", fill=COLOURS[name], bold=True),
            Text(662, top + 60, f"({_pair(face)})", fill=COLOURS[name]),
        ]
    q, k, _ = arrays.faces
    items.append(Text(500, 396, SELF))
    items.append(Text(500, 422, SELF_SCORE.format(number(q @ k)), bold=True))
    return Picture(800, 450, items, FACES_ALT.format(**_faces_told(arrays)))


def caption_faces(arrays: ThreeFaces) -> str:
    """Say what the picture shows."""
    return FACES_CAPTION.format(**_faces_told(arrays))


def _faces_told(arrays: ThreeFaces) -> dict[str, str]:
    q, k, v = arrays.faces
    curves = []
    for name, W in zip(("queries", "keys", "values"), arrays.W, strict=True):
        large, small = np.linalg.svd(W, compute_uv=False)
        shape = ON_SEGMENT if small < 1e-9 else ON_CIRCLE if large - small < 1e-9 else ON_ELLIPSE
        curves.append(shape.format(name))
    return {
        "x": _pair(arrays.x),
        "q": _pair(q),
        "k": _pair(k),
        "v": _pair(v),
        "score": number(q @ k),
        "length": f"{arrays.length:g}",
        "curves": ", ".join(curves),
    }


def _pair(point: Sequence[float]) -> str:
    return ", ".join(number(x) for x in point)


def _cross(panel: Panel) -> list:
    """Draw the lines of a plane at every unit, with their values at its edges."""
    lines = []
    for n in range(-2, 3):
        stroke = style.HATCH if n == 0 else style.GRID
        lines.append(Line(panel.x(n), panel.top, panel.x(n), panel.bottom, stroke))
        lines.append(Line(panel.left, panel.y(n), panel.right, panel.y(n), stroke))
        tick = {"text": number(n, 0), "fill": style.MUTED}
        lines.append(Text(panel.x(n), panel.bottom + 18, anchor="middle", **tick))
        lines.append(Text(panel.left - 8, panel.y(n), anchor="end", **tick))
    return lines


def _tip_labels(panel: Panel, vectors: Sequence[tuple[np.ndarray, str, str]]) -> Group:
    """Name the tips of vectors; those that share a tip share a label, as in "x = q"."""
    tips: dict[tuple[float, float], list[tuple[str, str]]] = {}
    for point, text, colour in vectors:
        tips.setdefault(tuple(round(float(c), 6) + 0.0 for c in point), []).append((text, colour))
    items, taken = [], [(panel.x(x), panel.y(y), 8) for x, y in tips]
    for (x, y), names in tips.items():
        text = " = ".join(name for name, _ in names)
        colour = names[0][1] if len(names) == 1 else style.INK
        wide = 5.5 * len(to_plain(text)) + 4
        away = math.atan2(y, x)
        for distance in (wide + 14, wide + 32, wide + 50):
            for turn in (0, 1, -1, 2, -2, 3, -3, 4):
                angle = away + turn * math.pi / 4
                u = panel.x(x) + distance * math.cos(angle)
                v = panel.y(y) - min(distance, 26) * math.sin(angle)
                inside = panel.left + wide < u < panel.right - wide
                inside &= panel.top + 14 < v < panel.bottom - 14
                if inside and all(abs(u - p) > wide + w or abs(v - s) > 22 for p, s, w in taken):
                    break
            else:
                continue
            break
        taken.append((u, v, wide))
        items += [
            Rect(u - wide, v - 12, 2 * wide, 24, style.CARD, radius=4),
            Text(u, v, text, style.TITLE, colour, anchor="middle", bold=True),
        ]
    return tuple(items)


def three_faces(**state) -> Lab:
    """Return the lab of one vector and its query, key and value; ``state`` sets sliders by name.

    Examples
    --------
    >>> three_faces(angle=45, projections="three copies")
    three_faces(angle=45, length=1.0, projections='three copies')
    """
    return Lab("three_faces", FACES_CONTROLS, compute_faces, draw_faces, caption_faces, state)


# ---------------------------------------------- a column of W extracts one number

WHICH, TOKEN, COLUMN = "projection", "token", "column $c$"
FEATURE = "feature"
TOKEN_ROW = "$x$ of {}"
TERMS = "products, signed"
ITS = "{name} of {token}"
NAMES = {"Q": "query", "K": "key", "V": "value"}
COLUMN_ALT = (
    "A table. Left, the six features of the token {token}: {x}. Middle, the matrix W{which} with "
    "column {c} marked: {w}. Right, bars for the products of the two, row by row: {products}. "
    "Below, the {name} of {token}: {row}; its entry {c}, marked, is the sum {total}."
)
COLUMN_CAPTION = (
    "Entry {c} of the {name} of {token} is the token's features times column {c}: {terms} = "
    "{total}. {longest}"
)
LONGEST = "The longest bar belongs to feature {}."
EQUAL = "The longest bars, equally long, belong to the features {}."

COLUMN_CONTROLS = (
    Slider("which", WHICH, ("Q", "K", "V"), start="Q", format="$W_{}$".format),
    Slider("token", TOKEN, SHORT, start="I"),
    Slider("c", COLUMN, (1, 2, 3, 4, 5, 6), start=1),
)


class ExtractorColumn(NamedTuple):
    """One token's row through one projection, and what makes up its entry c (counted from 1)."""

    which: str
    token: str
    c: int
    x: np.ndarray  # (6,)
    W: np.ndarray  # (6, 6)
    products: np.ndarray  # (6,) x_p W_pc
    row: np.ndarray  # (6,) x W


def compute_column(which: str, token: str, c: int) -> ExtractorColumn:
    """Compute the products x_p W_pc whose sum is entry c of x W."""
    x, W = X[SHORT.index(token)], PROJECTIONS[which]
    return ExtractorColumn(which, token, c, x, W, x * W[:, c - 1], x @ W)


def draw_column(arrays: ExtractorColumn) -> Picture:
    """Draw x beside the rows of W, the products as bars in line with them, the sums below."""
    colour = COLOURS[arrays.which]
    tint = style.shade((style.CARD, colour), 0.22)
    top, high, wide, left = 70, 40, 56, 178
    grounds = [[tint if p == arrays.c - 1 else None for p in range(6)]] * 6
    panel = Panel(580, top, 196, 6 * high, (-0.42, 0.76))
    items = [
        matrix(
            left,
            top,
            arrays.W,
            f"$W_{arrays.which}$",
            cell=(wide, high),
            fill=colour,
            grounds=grounds,
        ),
        matrix(88, top, arrays.x[:, None], TOKEN_ROW.format(arrays.token), cell=(wide, high),
               digits=1),
        Text(panel.x(0), top - 18, TERMS, anchor="middle"),
        Line(panel.x(0), top, panel.x(0), panel.bottom, style.MUTED, 2),
    ]  # fmt: skip
    for p, product in enumerate(arrays.products):
        y = top + (p + 0.5) * high
        items.append(Text(76, y, str(p + 1), fill=style.MUTED, anchor="end"))
        ends = sorted((panel.x(0), panel.x(product)))
        items.append(Rect(ends[0], y - 12, ends[1] - ends[0], 24, colour))
        side = -1 if product < 0 else 1
        place = panel.x(product) + 8 * side
        text = number(product)
        items.append(Text(place, y, text, style.CELL, anchor="end" if side < 0 else "start"))
    items.append(Text(42, top + 3 * high, FEATURE, fill=style.MUTED, anchor="middle", rotate=-90))
    below = top + 6 * high + 56
    marked = [[tint if p == arrays.c - 1 else None for p in range(6)]]
    total = f"${NAMES[arrays.which][0]}_{arrays.c}$ = {number(arrays.row[arrays.c - 1])}"
    name = ITS.format(name=NAMES[arrays.which], token=arrays.token)
    x = left + (arrays.c - 0.5) * wide
    items += [
        arrow(x, top + 6 * high + 10, x, below - 8, colour),
        matrix(left, below, [arrays.row], cell=(wide, high), fill=colour, grounds=marked),
        Text(left - 14, below + high / 2, name, anchor="end"),
        Text(panel.x(0), below + high / 2, total, style.TITLE, colour, anchor="middle", bold=True),
    ]
    told = _column_told(arrays)
    return Picture(800, below + high + 30, items, COLUMN_ALT.format(**told))


def caption_column(arrays: ExtractorColumn) -> str:
    """Say what the picture shows."""
    return COLUMN_CAPTION.format(**_column_told(arrays))


def _column_told(arrays: ExtractorColumn) -> dict[str, str]:
    w = arrays.W[:, arrays.c - 1]
    factors = [f"({number(a, 1)})({number(b)})" for a, b in zip(arrays.x, w, strict=True)]
    return {
        "which": arrays.which,
        "name": NAMES[arrays.which],
        "token": arrays.token,
        "c": str(arrays.c),
        "x": ", ".join(number(a, 1) for a in arrays.x),
        "w": ", ".join(number(b) for b in w),
        "row": ", ".join(number(b) for b in arrays.row),
        "products": ", ".join(number(b) for b in arrays.products),
        "terms": " + ".join(factors),
        "total": number(arrays.row[arrays.c - 1]),
        "longest": _longest(arrays.products),
    }


def _longest(products: np.ndarray) -> str:
    """Name the features whose product is the largest in size; rounding does not break a tie."""
    size = np.round(abs(products), 10)
    features = [str(p + 1) for p in np.flatnonzero(size == size.max())]
    return (LONGEST if len(features) == 1 else EQUAL).format(", ".join(features))


def extractor_columns(**state) -> Lab:
    """Return the lab of the columns of a projection; ``state`` sets sliders by name.

    Examples
    --------
    >>> extractor_columns(which="K", c=5)
    extractor_columns(which='K', token='I', c=5)
    """
    return Lab(
        "extractor_columns", COLUMN_CONTROLS, compute_column, draw_column, caption_column, state
    )


# ---------------------------------------------- where one number goes, and where one comes from

DIRECTION, FORWARD, BACK = "follow", "an input forwards", "an output backwards"
AT_TOKEN, AT_FEATURE, MASK = "token", "feature", "mask"
NO_MASK, CAUSAL = "none", "causal"
REACHES = "input ({token}, {feature}) reaches"
COMES_FROM = "output ({token}, {feature}) depends on"
FLOW_ALT = (
    "Seven matrices as grids of cells, from the input X by way of Q, K, V, the scores E and the "
    "weights A to the output O; the rows are the tokens I, love, GPU, programming. {what}: "
    "{counts}. {hatched}"
)
FILLED = "filled: the derivative is not 0"
HATCHED_NO, HATCHED = "Every score may be used.", "The cells above the diagonal are forbidden."
FLOW_CAPTION = "{what} {counts}."

FLOW_CONTROLS = (
    Slider("direction", DIRECTION, (FORWARD, BACK), start=FORWARD),
    Slider("token", AT_TOKEN, SHORT, start="GPU"),
    Slider("feature", AT_FEATURE, (1, 2, 3, 4, 5, 6), start=2),
    Slider("mask", MASK, (NO_MASK, CAUSAL), start=NO_MASK),
)


class Flow(NamedTuple):
    """Partial derivatives along the way; ``start`` is the entry that is followed, from 0."""

    back: bool
    start: tuple[int, int]
    allowed: np.ndarray  # (4, 4)
    d: dict[str, np.ndarray]  # by the names of the matrices, X to O


def compute_flow(direction: str, token: str, feature: int, mask: str) -> Flow:
    """Compute the derivative of every entry by one input, or of one output by every entry.

    Forwards by (3.14) and (3.15) of the chapter; backwards the gradients of `attention_backward`
    and of the projections.
    """
    W_Q, W_K, W_V = PROJECTIONS.values()
    Q, K, V = (X @ W for W in (W_Q, W_K, W_V))
    scale = 1 / math.sqrt(Q.shape[1])
    allowed = causal(4, 4) if mask == CAUSAL else np.ones((4, 4), bool)
    A = attention(Q, K, V, allowed).A
    start = SHORT.index(token), feature - 1
    one = np.zeros_like(X)
    one[start] = 1
    if direction == FORWARD:
        X_dot = one
        Q_dot, K_dot, V_dot = (X_dot @ W for W in (W_Q, W_K, W_V))
        E_dot = np.where(allowed, Q_dot @ K.T + Q @ K_dot.T, 0)
        A_dot = softmax_backward(E_dot * scale, A)  # the Jacobian of softmax is symmetric
        O_dot = A_dot @ V + A @ V_dot
        found = X_dot, Q_dot, K_dot, V_dot, E_dot, A_dot, O_dot
    else:
        dO = one
        dQ, dK, dV, dA, dU = attention_backward(dO, Q, K, V, A)
        dX = dQ @ W_Q.T + dK @ W_K.T + dV @ W_V.T
        found = dX, dQ, dK, dV, dU * scale, np.where(allowed, dA, 0), dO
    return Flow(direction == BACK, start, allowed, dict(zip("XQKVEAO", found, strict=True)))


def draw_flow(arrays: Flow) -> Picture:
    """Draw every matrix as a grid, filled where the derivative is not zero."""
    token, feature = SHORT[arrays.start[0]], arrays.start[1] + 1
    title = (COMES_FROM if arrays.back else REACHES).format(token=token, feature=feature)
    items = [Text(20, 26, title, style.TITLE, bold=True), *flow(arrays, 66, 66)]
    items.append(Text(780, 26, FILLED, fill=style.MUTED, anchor="end"))
    return Picture(800, 400, items, FLOW_ALT.format(**_flow_told(arrays)))


def flow(arrays: Flow, left: float, top: float) -> Group:
    """Return the grids of a flow with arrows between them, 700 wide and 310 high."""
    cell, middle = 20, top + 160
    wide, high, small = 6 * cell, 4 * cell, 4 * cell
    q, e, a, o = left + 172, left + 352, left + 466, left + 580
    places = {
        "X": (left, middle - high / 2, style.INK),
        "Q": (q, top + 10, style.QUERY),
        "K": (q, middle - high / 2, style.KEY),
        "V": (q, top + 230, style.VALUE),
        "E": (e, top + 69, style.SCORE),
        "A": (a, top + 69, style.WEIGHT),
        "O": (o, middle - high / 2, style.OUTPUT),
    }
    links = [
        *((left + wide, middle, q, places[name][1] + high / 2) for name in "QKV"),
        (q + wide, top + 50, e, top + 98),
        (q + wide, middle, e, top + 126),
        (e + small, top + 109, a, top + 109),
        (a + small, top + 120, o, middle - 14),
        (q + wide, top + 270, o, middle + 20),
    ]
    items: list = []
    for x1, y1, x2, y2 in links:
        ends = (x2 - 4, y2, x1 + 4, y1) if arrays.back else (x1 + 4, y1, x2 - 4, y2)
        items.append(arrow(*ends, style.HATCH, stroke_width=2))
    for name, (x, y, colour) in places.items():
        d = arrays.d[name]
        allowed = arrays.allowed if name in "EA" else None
        items.append(_reached(x, y, d, colour, cell, allowed))
        items.append(Text(x + d.shape[1] * cell / 2, y - 14, f"${name}$", fill=colour,
                          anchor="middle", bold=True))  # fmt: skip
    x, y, _ = places["O" if arrays.back else "X"]
    i, p = arrays.start
    items.append(Circle(x + (p + 0.5) * cell, y + (i + 0.5) * cell, 5, style.WHITE))
    x, y, _ = places["X"]
    for i, name in enumerate(SHORT):
        items.append(Text(x - 8, y + (i + 0.5) * cell, name, anchor="end"))
    return tuple(items)


def _reached(x, y, d: np.ndarray, colour: str, cell: float, allowed) -> Group:
    """Draw the cells of one matrix: full where d is not zero, hatched where forbidden."""
    items = []
    for i, j in np.ndindex(*d.shape):
        u, v = x + j * cell, y + i * cell
        if allowed is not None and not allowed[i, j]:
            items.append(Rect(u, v, cell, cell, style.FORBIDDEN, style.CARD, 1))
            items.append(Line(u, v + cell, u + cell, v, style.HATCH, 1.5))
        else:
            ground, edge = (colour, style.CARD) if d[i, j] != 0 else (style.CARD, style.HATCH)
            items.append(Rect(u, v, cell, cell, ground, edge, 1))
    return tuple(items)


def caption_flow(arrays: Flow) -> str:
    """Say what the picture shows."""
    return FLOW_CAPTION.format(**_flow_told(arrays))


def _flow_told(arrays: Flow) -> dict[str, str]:
    token, feature = SHORT[arrays.start[0]], arrays.start[1] + 1
    what = (COMES_FROM if arrays.back else REACHES).format(token=token, feature=feature)
    counts = []
    for name in "OAEVKQX" if arrays.back else "XQKVEAO":
        d = arrays.d[name]
        usable = arrays.allowed.sum() if name in "EA" else d.size
        counts.append(f"{np.count_nonzero(d)} of {usable} entries of {name}")
    hatched = HATCHED_NO if arrays.allowed.all() else HATCHED
    return {
        "what": what[0].upper() + what[1:],
        "counts": ", ".join(counts),
        "hatched": hatched,
    }


def information_flow(**state) -> Lab:
    """Return the lab of one number's way through a head; ``state`` sets sliders by name.

    Examples
    --------
    >>> information_flow(mask="causal")
    information_flow(direction='an input forwards', token='GPU', feature=2, mask='causal')
    """
    return Lab("information_flow", FLOW_CONTROLS, compute_flow, draw_flow, caption_flow, state)


# ---------------------------------------------- how asymmetric the scores are

MIX, WITH = "antisymmetric share $s$", "projections"
FOUND, HAND = "of the running example", "for the weights set by hand"
SCORES = "Scores $e_{ij}$: row $i$ reads column $j$"
PAIRS_TITLE = "Both directions of each pair"
ONE_WAY, OTHER_WAY = "first reads second", "second reads first"
READS = "{} → {}"
ASYMMETRY_ALT = (
    "Left, the scores of the four tokens as a table of numbers, the largest of each row framed: "
    "{tops}. Right, for each pair of tokens the scores in both directions on one axis: {pairs}."
)
ASYMMETRY_CAPTION = (
    "Best key of each query: {tops}. The two directions of a pair differ by at most {gap}. {kind}"
)
KINDS = {
    0.0: "The matrix in the middle is symmetric, and so are the scores.",
    0.5: "This is $W_Q W_K^⊤$ itself.",
    1.0: "The matrix in the middle is antisymmetric: $e_{ji} = −e_{ij}$, and $e_{ii} = 0$.",
}
LIMIT = 5

ASYMMETRY_CONTROLS = (
    Slider("s", MIX, tuple(n / 10 for n in range(11)), start=0.5, format="{:.1f}".format),
    Slider("projections", WITH, (FOUND, HAND), start=HAND),
)


class Asymmetry(NamedTuple):
    """Scores E = X B_s X^T with B_s = (1 - s)(B + B^T) + s (B - B^T) and B = W_Q W_K^T."""

    s: float
    E: np.ndarray  # (4, 4)
    top: np.ndarray  # (4,) the best key of each query


def match_matrix(projections: str) -> np.ndarray:
    """Return B = W_Q W_K^T, 6 x 6, of the running example or for given scores.

    For the weights A that [M] sets by hand, W_K is the right inverse of X, so that the keys are
    the rows of the identity, d_k = 4, and E = Q = X W_Q may be any table: 2 log A, each row shifted
    to mean 0.
    """
    if projections == FOUND:
        return PROJECTIONS["Q"] @ PROJECTIONS["K"].T
    E = 2 * np.log(np.array(M_SENTENCE.A, float))
    E -= E.mean(axis=1, keepdims=True)
    W_K = np.linalg.pinv(X)
    return W_K @ E @ W_K.T


def compute_asymmetry(s: float, projections: str) -> Asymmetry:
    """Mix the symmetric and the antisymmetric part of W_Q W_K^T; s = 1/2 gives it back."""
    B = match_matrix(projections)
    E = X @ ((1 - s) * (B + B.T) + s * (B - B.T)) @ X.T
    E = np.round(E, 10) + 0.0  # equal scores are equal, whatever rounding did
    return Asymmetry(s, E, E.argmax(axis=1))


def draw_asymmetry(arrays: Asymmetry) -> Picture:
    """Draw the scores as a heat map, and both directions of every pair on one axis."""
    left, top, cell = 70, 98, (64, 64)
    items = [
        Text(20, 30, SCORES, style.TITLE, bold=True),
        heat_map(
            left,
            top,
            arrays.E,
            cell=cell,
            limits=(-LIMIT, LIMIT),
            scale=style.DIVERGING,
            row_labels=SHORT,
            column_labels=SHORT,
        ),
    ]
    for i, j in enumerate(arrays.top):
        x, y = left + j * cell[0], top + i * cell[1]
        frame = Rect(x + 4, y + 4, cell[0] - 8, cell[1] - 8, None, style.INK, 3, radius=4)
        items.append(apart([frame]))
    panel = Panel(500, top, 270, 6 * 44, (-LIMIT, LIMIT))
    items.append(Text(386, 30, PAIRS_TITLE, style.TITLE, bold=True))
    for v in range(-4, 5, 2):
        stroke = style.MUTED if v == 0 else style.GRID
        items.append(Line(panel.x(v), top, panel.x(v), panel.bottom, stroke))
        place = panel.bottom + 20
        items.append(Text(panel.x(v), place, number(v, 0), fill=style.MUTED, anchor="middle"))
    for n, (i, j) in enumerate(_pairs()):
        y = top + 22 + 44 * n
        one, other = panel.x(arrays.E[i, j]), panel.x(arrays.E[j, i])
        items += [
            Text(panel.left - 14, y, f"{SHORT[i]}, {SHORT[j]}", anchor="end"),
            Line(one, y, other, y, style.SCORE, 4),
            apart([mark(other, y, "square", style.KEY, 9)]),
            apart([mark(one, y, "circle", style.QUERY, 6)]),
        ]
    y = panel.bottom + 54
    items += [
        mark(386, y, "circle", style.QUERY, 6),
        Text(402, y, ONE_WAY),
        mark(602, y, "square", style.KEY, 9),
        Text(618, y, OTHER_WAY),
    ]
    return Picture(800, 440, items, ASYMMETRY_ALT.format(**_asymmetry_told(arrays)))


def caption_asymmetry(arrays: Asymmetry) -> str:
    """Say what the picture shows."""
    return ASYMMETRY_CAPTION.format(**_asymmetry_told(arrays))


def _pairs() -> list[tuple[int, int]]:
    return [(i, j) for i in range(4) for j in range(i + 1, 4)]


def _asymmetry_told(arrays: Asymmetry) -> dict[str, str]:
    tops = ", ".join(READS.format(SHORT[i], SHORT[j]) for i, j in enumerate(arrays.top))
    pairs = "; ".join(
        f"{SHORT[i]} and {SHORT[j]} {number(arrays.E[i, j])} and {number(arrays.E[j, i])}"
        for i, j in _pairs()
    )
    gap = number(abs(arrays.E - arrays.E.T).max())
    return {"tops": tops, "pairs": pairs, "gap": gap, "kind": KINDS.get(arrays.s, "")}


def score_asymmetry(**state) -> Lab:
    """Return the lab of symmetric and antisymmetric scores; ``state`` sets sliders by name.

    Examples
    --------
    >>> score_asymmetry(s=0.0)
    score_asymmetry(s=0.0, projections='for the weights set by hand')
    """
    return Lab(
        "score_asymmetry",
        ASYMMETRY_CONTROLS,
        compute_asymmetry,
        draw_asymmetry,
        caption_asymmetry,
        state,
    )
