"""Labs of chapter 01: what two vectors reach, maps of the plane, four views, rank-one sums."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.diagrams import (
    Entry,
    Group,
    Panel,
    apart,
    arrow,
    axes,
    colour_legend,
    curve,
    end_labels,
    grid,
    heat_map,
    legend,
    mark,
    matrix,
    number,
    segment,
    vertical,
)
from attnbook.examples import M_ALGEBRA
from attnbook.labs.engine import Lab, Slider
from attnbook.markup import to_plain
from attnbook.picture import Picture, Polygon, Rect, Text

# This chapter has no queries and keys; their colours mark a first and a second vector or factor.
FIRST, SECOND = style.QUERY, style.KEY
TINTS = tuple(style.shade((style.CARD, colour), 0.2) for colour in (FIRST, SECOND))


# ---------------------------------------------- what two vectors reach

# Everything a reader sees, in one place.
ANGLE = "angle of $v_{}$"
COEFFICIENT = "coefficient $x_{}$"
SUM = "$x_1 v_1 + x_2 v_2$"
REACH_PLANE = ("Not parallel:", "every point is reached,", "each in one way.")
REACH_LINE = ("Parallel: only one line", "is reached, each point", "in many ways.")
POINT, TARGET = "sum", "target"
NEEDS = "The target needs"
MISSED = ("No coefficients reach", "the target.")
REACH_ALT = (
    "A plane with two arrows of length 1, v1 at {first} and v2 at {second} degrees. {x1} times v1 "
    "and {x2} times v2, joined head to tail, end at ({x}, {y}). {reach}"
)
REACH_CAPTION = "{x1} $v_1$ {plus} {size2} $v_2$ = ({x}, {y}). {reach} {target}"
TARGET_NEEDS = "To reach the target (2, 1) takes $x_1$ = {x1} and $x_2$ = {x2}."
TARGET_MISSED = "No coefficients reach the target (2, 1)."

ANGLES = tuple(range(0, 360, 15))
HALVES = tuple(n / 2 for n in range(-4, 5))
GOAL = (2.0, 1.0)

REACH_CONTROLS = (
    Slider("first", ANGLE.format(1), ANGLES, start=0, format="{}°".format),
    Slider("second", ANGLE.format(2), ANGLES, start=60, format="{}°".format),
    Slider("x1", COEFFICIENT.format(1), HALVES, start=1.0, format=lambda x: number(x, 1)),
    Slider("x2", COEFFICIENT.format(2), HALVES, start=1.0, format=lambda x: number(x, 1)),
)


class Reach(NamedTuple):
    """Two vectors, the combination shown, and the coefficients that reach the target, if any."""

    angles: tuple[int, int]
    V: np.ndarray  # (2, 2), its columns are v_1 and v_2
    x: np.ndarray  # (2,) coefficients
    point: np.ndarray  # (2,) V x
    independent: bool
    needed: np.ndarray | None  # (2,) with V needed = GOAL


def compute_reach(first: int, second: int, x1: float, x2: float) -> Reach:
    """Compute x_1 v_1 + x_2 v_2, and the coefficients that reach the target."""
    turns = np.radians([first, second])
    V, x = np.stack([np.cos(turns), np.sin(turns)]), np.array([x1, x2])
    independent = (first - second) % 180 != 0
    needed = np.linalg.solve(V, GOAL) if independent else None
    return Reach((first, second), V, x, V @ x, independent, needed)


def draw_reach(arrays: Reach) -> Picture:
    """Draw the two vectors, the combination head to tail, and all that can be reached."""
    panel = Panel(24, 24, 452, 452, (-4.3, 4.3), (-4.3, 4.3))
    v1, v2 = arrays.V.T
    corner = arrays.x[0] * v1
    items = [*_plane(panel), grid(panel, arrays.V, style.HATCH, most=24)]
    if not arrays.independent:
        items += segment(panel, -9 * v1, 9 * v1, style.SCORE, stroke_width=5)
    items += [
        _vector(panel, (0, 0), corner, FIRST, 3, style.DASHES[1]),
        _vector(panel, corner, arrays.point, SECOND, 3, style.DASHES[1]),
        _vector(panel, (0, 0), v1, FIRST, 5),
        _vector(panel, (0, 0), v2, SECOND, 5),
        mark(panel.x(GOAL[0]), panel.y(GOAL[1]), "diamond", style.GRADIENT, 7),
        mark(*_place(panel, arrays.point), "circle", style.OUTPUT, 7),
        _tips(
            panel,
            (
                (v1, "$v_1$", FIRST),
                (v2, "$v_2$", SECOND),
                (arrays.point, POINT, style.OUTPUT),
                (GOAL, TARGET, style.GRADIENT),
            ),
        ),
    ]
    told = _reach_told(arrays)
    items += [
        Text(500, 60, SUM, style.TITLE, bold=True),
        Text(500, 92, f"= ({told['x']}, {told['y']})", style.TITLE, bold=True),
        *_lines(500, 160, REACH_PLANE if arrays.independent else REACH_LINE),
        *_lines(500, 270, _needs(arrays)),
    ]
    return Picture(800, 500, items, REACH_ALT.format(**told))


def caption_reach(arrays: Reach) -> str:
    """Say what the picture shows."""
    return REACH_CAPTION.format(**_reach_told(arrays))


def _needs(arrays: Reach) -> tuple[str, ...]:
    if arrays.needed is None:
        return MISSED
    x1, x2 = map(number, arrays.needed)
    return NEEDS, f"$x_1$ = {x1}", f"$x_2$ = {x2}"


def _reach_told(arrays: Reach) -> dict[str, str]:
    (x1, x2), (x, y) = [number(c, 1) for c in arrays.x], map(number, arrays.point)
    target = TARGET_MISSED
    if arrays.needed is not None:
        target = TARGET_NEEDS.format(x1=number(arrays.needed[0]), x2=number(arrays.needed[1]))
    return {
        "first": str(arrays.angles[0]),
        "second": str(arrays.angles[1]),
        "x1": x1,
        "x2": x2,
        "plus": "−" if arrays.x[1] < 0 else "+",
        "size2": number(abs(arrays.x[1]), 1),
        "x": x,
        "y": y,
        "reach": " ".join(REACH_PLANE if arrays.independent else REACH_LINE),
        "target": target,
    }


def reach_of_two(**state) -> Lab:
    """Return the lab of the combinations of two vectors; ``state`` sets sliders by name.

    Examples
    --------
    >>> reach_of_two(second=180)
    reach_of_two(first=0, second=180, x1=1.0, x2=1.0)
    """
    return Lab("reach_of_two", REACH_CONTROLS, compute_reach, draw_reach, caption_reach, state)


# ---------------------------------------------- a map of the plane

ENTRY = "entry $a_{{{}}}$"
MORPH = "morph $t$"
NOW = "$(1−t)I + tA$"
DETERMINANT = "determinant {}"
UPRIGHT, TURNED, FLAT = "area {}", "area {}, turned over", "area 0: flat"
GRID_ALT = (
    "A plane with the image of the square grid. The first unit vector goes to ({a}, {c}), the "
    "second to ({b}, {d}). The unit square with a letter F in it became a parallelogram: {area}."
)
GRID_CAPTION = (
    "Now $f(e_1)$ = ({a}, {c}) and $f(e_2)$ = ({b}, {d}), the two columns of {now}. "
    "The determinant is {det}: {area}."
)

GRID_CONTROLS = (
    *(
        Slider(f"a{i}{k}", ENTRY.format(f"{i}{k}"), HALVES, start, lambda x: number(x, 1))
        for i, k, start in ((1, 1, 1.5), (1, 2, -0.5), (2, 1, 0.5), (2, 2, 1.0))
    ),
    Slider("t", MORPH, tuple(n / 10 for n in range(11)), start=1.0, format="{:.1f}".format),
)
# The letter F in the unit square: turned over, it is no F any more.
LETTER = np.array(
    [(2, 1), (2, 9), (8, 9), (8, 7.4), (4, 7.4), (4, 5.7), (7, 5.7), (7, 4.1), (4, 4.1), (4, 1)]
) / 10  # fmt: skip
SQUARE = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)


class GridTransform(NamedTuple):
    """A map on its way from the identity: ``A_t = (1 - t) I + t A``, and the determinant."""

    A: np.ndarray  # (2, 2)
    t: float
    A_t: np.ndarray  # (2, 2)
    det: float  # of A_t


def compute_grid(a11: float, a12: float, a21: float, a22: float, t: float) -> GridTransform:
    """Compute (1 - t) I + t A and its determinant."""
    A = np.array([[a11, a12], [a21, a22]])
    A_t = (1 - t) * np.eye(2) + t * A
    det = A_t[0, 0] * A_t[1, 1] - A_t[0, 1] * A_t[1, 0]
    return GridTransform(A, t, A_t, round(float(det), 9) + 0.0)


def draw_grid(arrays: GridTransform) -> Picture:
    """Draw the image of the grid, the unit square and the unit vectors, and the two matrices."""
    panel = Panel(24, 24, 452, 452, (-4.3, 4.3), (-4.3, 4.3))
    items = [*_plane(panel), *transformed(panel, arrays.A_t)]
    tips = zip(arrays.A_t.T, ("$f(e_1)$", "$f(e_2)$"), (FIRST, SECOND), strict=True)
    items.append(_tips(panel, tuple(tips)))
    grounds = [TINTS, TINTS]
    look = {"cell": (76, 40), "grounds": grounds}
    items += [
        matrix(560, 70, arrays.A, "$A$", digits=1, **look),
        matrix(560, 220, arrays.A_t, NOW, **look),
        Text(598, 320, "$f(e_1)$", fill=FIRST, anchor="middle", bold=True),
        Text(674, 320, "$f(e_2)$", fill=SECOND, anchor="middle", bold=True),
        Text(636, 380, DETERMINANT.format(number(arrays.det)), anchor="middle", bold=True),
        Text(636, 410, _area(arrays.det), anchor="middle"),
    ]
    return Picture(800, 500, items, GRID_ALT.format(**_grid_told(arrays)))


def caption_grid(arrays: GridTransform) -> str:
    """Say what the picture shows."""
    return GRID_CAPTION.format(**_grid_told(arrays))


def _area(det: float) -> str:
    if det == 0:
        return FLAT
    return (UPRIGHT if det > 0 else TURNED).format(number(abs(det)))


def _grid_told(arrays: GridTransform) -> dict[str, str]:
    (a, b), (c, d) = [[number(x) for x in row] for row in arrays.A_t]
    det, area = number(arrays.det), _area(arrays.det)
    return {"a": a, "b": b, "c": c, "d": d, "det": det, "area": area, "now": NOW}


def grid_transform(**state) -> Lab:
    """Return the lab of one map of the plane; ``state`` sets sliders by name.

    Examples
    --------
    >>> grid_transform(t=0.5)
    grid_transform(a11=1.5, a12=-0.5, a21=0.5, a22=1.0, t=0.5)
    """
    return Lab("grid_transform", GRID_CONTROLS, compute_grid, draw_grid, caption_grid, state)


# ---------------------------------------------- the order of two maps

NAMES = {
    "turn": "turn by 90°",
    "eighth turn": "turn by 45°",
    "stretch": "stretch",
    "shear": "shear",
    "mirror": "mirror",
    "double": "double",
}
MAP = "map {}"
STAGE = "show"
STAGES = ("before", "after the first map", "after both maps")
ORDER, IN_WORDS = "first {}, then {}", "{}, then {}"
FIRST_IMAGE, SECOND_IMAGE = "image of $e_1$", "image of $e_2$"
AT_THE_END = "at the end:"
SAME_END, OTHER_END = "the two orders end alike", "the two orders end differently"
ORDER_ALT = (
    "Two planes with the image of the square grid and of a letter F, {stage}. Left first map B "
    "({b}), then map A ({a}); right the other way round. AB is {ab}, BA is {ba}: {verdict}."
)
ORDER_CAPTION = "$A$: {a}; $B$: {b}. Shown {stage}. $AB$ = {ab} and $BA$ = {ba}: {verdict}."

MAPS = {
    "turn": np.array(M_ALGEBRA.turn, float),
    "eighth turn": np.array([[1, -1], [1, 1]]) / math.sqrt(2),
    "stretch": np.array(M_ALGEBRA.stretch, float),
    "shear": np.array([[1.0, 1], [0, 1]]),
    "mirror": np.array([[1.0, 0], [0, -1]]),
    "double": np.array([[2.0, 0], [0, 2]]),
}
ORDER_CONTROLS = (
    Slider("a", MAP.format("$A$"), tuple(MAPS), "turn", NAMES.get),
    Slider("b", MAP.format("$B$"), tuple(MAPS), "stretch", NAMES.get),
    Slider("stage", STAGE, (0, 1, 2), 2, STAGES.__getitem__),
)


class OrderOfMaps(NamedTuple):
    """Two maps, both products, and the map applied so far in each order."""

    names: tuple[str, str]
    stage: int
    AB: np.ndarray  # (2, 2)
    BA: np.ndarray  # (2, 2)
    shown: tuple[np.ndarray, np.ndarray]  # I, then B and A, then AB and BA
    commute: bool


def compute_order(a: str, b: str, stage: int) -> OrderOfMaps:
    """Compute AB and BA, and what is done after 0, 1 or 2 maps in each order."""
    A, B = MAPS[a], MAPS[b]
    AB, BA = A @ B, B @ A
    shown = ((np.eye(2), np.eye(2)), (B, A), (AB, BA))[stage]
    return OrderOfMaps((a, b), stage, AB, BA, shown, bool(np.allclose(AB, BA)))


def draw_order(arrays: OrderOfMaps) -> Picture:
    """Draw the plane after B and A on the left, after A and B on the right."""
    a, b = (NAMES[name] for name in arrays.names)
    sides = (("$B$", "$A$", b, a, arrays.AB, "$AB$ ="), ("$A$", "$B$", a, b, arrays.BA, "$BA$ ="))
    items = []
    for n, (first, second, one, other, product, label) in enumerate(sides):
        left = 30 + 395 * n
        panel = Panel(left, 76, 345, 345, (-2.35, 4.35), (-2.35, 4.35))
        items += [
            Text(left, 28, ORDER.format(first, second), style.TITLE, bold=True),
            Text(left, 56, IN_WORDS.format(one, other)),
            *_plane(panel),
            *transformed(panel, arrays.shown[n]),
            Text(left + 72, 470, label, style.TITLE, bold=True, anchor="end"),
            matrix(left + 84, 438, product, cell=(72, 32), digits=_digits(product)),
        ]
    images = (Entry(FIRST_IMAGE, FIRST, ()), Entry(SECOND_IMAGE, SECOND, style.DASHES[1]))
    items += [
        Text(345, 470, "=" if arrays.commute else "≠", 34, anchor="middle", bold=True),
        legend(30, 518, images[:1]),
        legend(220, 518, images[1:]),
    ]
    if arrays.stage < 2:  # the planes do not show AB and BA yet
        items.append(Text(345, 442, AT_THE_END, anchor="middle"))
    return Picture(800, 560, items, ORDER_ALT.format(**_order_told(arrays)))


def caption_order(arrays: OrderOfMaps) -> str:
    """Say what the picture shows."""
    return ORDER_CAPTION.format(**_order_told(arrays))


def _digits(M: np.ndarray) -> int:
    return 0 if np.array_equal(M, M.round()) else 2


def _order_told(arrays: OrderOfMaps) -> dict[str, str]:
    a, b = (NAMES[name] for name in arrays.names)
    ab, ba = (
        "[" + "; ".join(", ".join(number(x, _digits(M)) for x in row) for row in M) + "]"
        for M in (arrays.AB, arrays.BA)
    )
    verdict = SAME_END if arrays.commute else OTHER_END
    return {"a": a, "b": b, "ab": ab, "ba": ba, "verdict": verdict, "stage": STAGES[arrays.stage]}


def order_of_maps(**state) -> Lab:
    """Return the lab of two maps in both orders; ``state`` sets sliders by name.

    Examples
    --------
    >>> order_of_maps(b="double")
    order_of_maps(a='turn', b='double', stage=2)
    """
    return Lab("order_of_maps", ORDER_CONTROLS, compute_order, draw_order, caption_order, state)


# ---------------------------------------------- four views

VIEW = "view"
PRODUCTS = "products done"
VIEWS = ("entries", "columns", "rows", "layers")
FIXED = {
    "entries": "fix $i$ and $k$: one entry of $C$ at a time",
    "columns": "fix $k$: one column of $C$ at a time, a mixture of the columns of $A$",
    "rows": "fix $i$: one row of $C$ at a time, a mixture of the rows of $B$",
    "layers": "fix $j$: column $j$ of $A$ times row $j$ of $B$, a layer over all of $C$",
}
NOTHING_YET = "no product yet"
PRODUCT = (
    "product {n} of 12: $a_{{{i}{j}}} b_{{{j}{k}}}$ = {a} · {b} = {ab}, added to $c_{{{i}{k}}}$"
)
VIEWS_ALT = (
    "The matrices A, B and C = AB. Seen by {view}; {now}. C holds {c} so far. Below, the part of "
    "C that is being made, as a sum of three terms."
)
VIEWS_CAPTION = "{fixed}. {now}. So far $C$ = {c}."

A, B = np.array(M_ALGEBRA.A, float), np.array(M_ALGEBRA.B, float)
# The same twelve products in four orders: which index runs slowest, which fastest.
LOOPS = {"entries": "ikj", "columns": "kji", "rows": "ijk", "layers": "jik"}

VIEWS_CONTROLS = (
    Slider("view", VIEW, VIEWS, start="columns"),
    Slider("done", PRODUCTS, tuple(range(13)), start=4),
)


class FourViews(NamedTuple):
    """The products ``a_ij b_jk`` in the order of one view, and what they have added up to."""

    view: str
    done: int
    order: tuple[tuple[int, int, int], ...]  # (i, j, k) of the twelve products
    C: np.ndarray  # (2, 2) after the first ``done`` of them
    touched: np.ndarray  # (2, 2) of bool: entries that have had a product


def compute_views(view: str, done: int) -> FourViews:
    """Compute C = AB product by product, in the order of a view."""
    sizes, loop = {"i": 2, "j": 3, "k": 2}, LOOPS[view]
    order = []
    for place in np.ndindex(*(sizes[index] for index in loop)):
        at = dict(zip(loop, place, strict=True))
        order.append((at["i"], at["j"], at["k"]))
    C, touched = np.zeros((2, 2)), np.zeros((2, 2), bool)
    for i, j, k in order[:done]:
        C[i, k] += A[i, j] * B[j, k]
        touched[i, k] = True
    return FourViews(view, done, tuple(order), C, touched)


def draw_views(arrays: FourViews) -> Picture:
    """Draw A, B and C with what takes part marked, and the part of C that is being made."""
    now = arrays.order[max(arrays.done, 1) - 1]
    items = [Text(30, 30, FIXED[arrays.view], bold=True), *_factors(arrays, now)]
    items += [Text(30, 280, _product(arrays)), *_terms(arrays, now)]
    return Picture(800, 430, items, VIEWS_ALT.format(**_views_told(arrays, to_plain)))


def caption_views(arrays: FourViews) -> str:
    """Say what the picture shows."""
    return VIEWS_CAPTION.format(**_views_told(arrays, str))


def _factors(arrays: FourViews, now: tuple[int, int, int]) -> list[Group]:
    i, j, k = now
    part = {  # what stays, while the fast indices of the view run
        "entries": ((i, None), (None, k), (i, k)),
        "columns": ((None, j), (None, k), (None, k)),
        "rows": ((i, None), (j, None), (i, None)),
        "layers": ((None, j), (j, None), (None, None)),
    }[arrays.view]
    drawn = []
    text = [[number(x, 0) for x in row] for row in arrays.C]
    text = [[t if seen else "·" for t, seen in zip(*row, strict=True)]
            for row in zip(text, arrays.touched, strict=True)]  # fmt: skip
    for left, top, values, label, colour, (row, column), exact in (
        (60, 108, A, "$A$", FIRST, part[0], (i, j)),
        (330, 84, B, "$B$", SECOND, part[1], (j, k)),
        (570, 108, text, "$C = AB$", style.OUTPUT, part[2], (i, k)),
    ):
        grounds = [
            [
                _ground(colour, row in (None, m) and column in (None, n), (m, n) == exact)
                if arrays.done
                else None
                for n in range(len(values[0]))
            ]
            for m in range(len(values))
        ]
        drawn.append(
            matrix(
                left, top, values, label, cell=(64, 48), digits=0, fill=style.INK, grounds=grounds
            )
        )
    return drawn


def _ground(colour: str, takes_part: bool, is_now: bool) -> str | None:
    if is_now:
        return colour
    return style.shade((style.CARD, colour), 0.2) if takes_part else None


def _terms(arrays: FourViews, now: tuple[int, int, int]) -> list[Group | Text]:
    """Return the part of C that is being made, as a sum over j; the present product is marked."""
    i, j, k = now
    name = {
        "entries": f"$c_{{{i + 1}{k + 1}}}$",
        "columns": f"$C_{{:{k + 1}}}$",
        "rows": f"$C_{{{i + 1}:}}$",
        "layers": "$C$",
    }[arrays.view]
    y, items = 358, [Text(96, 358, f"{name} =", style.TITLE, anchor="end", bold=True)]
    for term in range(3):
        left = 120 + 222 * term
        a, b = A[:, term], B[term]
        here = arrays.done > 0 and term == j
        first, second = (FIRST, SECOND) if here else (None, None)
        match arrays.view:
            case "entries":
                parts = [([[a[i]]], [[first]]), ([[b[k]]], [[second]])]
            case "columns":
                parts = [([[b[k]]], [[second]]), (a[:, None], _one(2, i, first, down=True))]
            case "rows":
                parts = [([[a[i]]], [[first]]), (b[None], _one(2, k, second, down=False))]
            case "layers":
                parts = [
                    (a[:, None], _one(2, i, first, down=True)),
                    (b[None], _one(2, k, second, down=False)),
                ]
        x = left
        for n, (values, grounds) in enumerate(parts):
            height = 38 * len(values)
            if len(values) == len(values[0]) == 1:  # a bare number
                if grounds[0][0]:
                    items.append(Rect(x, y - 17, 38, 34, grounds[0][0], radius=4))
                ink = style.text_on(grounds[0][0]) if grounds[0][0] else style.INK
                items.append(Text(x + 19, y, number(values[0][0], 0), fill=ink, anchor="middle"))
                x += 38
            else:
                items.append(
                    matrix(x, y - height / 2, values, cell=(46, 38), digits=0, grounds=grounds)
                )
                x += 46 * len(values[0])
            if n == 0:
                items.append(Text(x + 10, y, "·", bold=True, anchor="middle"))
                x += 20
        if term < 2:
            items.append(Text(left + 200, y, "+", style.TITLE, anchor="middle", bold=True))
    return items


def _one(n: int, place: int, colour: str | None, *, down: bool) -> list[list[str | None]]:
    marks = [colour if m == place else None for m in range(n)]
    return [[m] for m in marks] if down else [marks]


def _product(arrays: FourViews) -> str:
    if not arrays.done:
        return NOTHING_YET
    i, j, k = arrays.order[arrays.done - 1]
    a, b = A[i, j], B[j, k]
    return PRODUCT.format(
        n=arrays.done,
        i=i + 1,
        j=j + 1,
        k=k + 1,
        a=number(a, 0),
        b=number(b, 0),
        ab=number(a * b, 0),
    )


def _views_told(arrays: FourViews, convert) -> dict[str, str]:
    c = "; ".join(
        ", ".join(number(x, 0) if seen else "nothing" for x, seen in zip(*row, strict=True))
        for row in zip(arrays.C, arrays.touched, strict=True)
    )
    fixed = FIXED[arrays.view]
    now = convert(_product(arrays))
    return {
        "view": arrays.view,
        "fixed": fixed[0].upper() + fixed[1:],
        "now": now[0].upper() + now[1:] if convert is str else now,
        "c": f"[{c}]",
    }


def four_views(**state) -> Lab:
    """Return the lab of the four views of one product; ``state`` sets sliders by name.

    Examples
    --------
    >>> four_views(view="layers")
    four_views(view='layers', done=4)
    """
    return Lab("four_views", VIEWS_CONTROLS, compute_views, draw_views, caption_views, state)


# ---------------------------------------------- an image as a sum of rank-one terms

TERMS = "number of terms $n$"
SPLIT = "terms from"
SPLITS = {"rows": "the rows of the image", "singular vectors": "singular vectors"}
TERM, NO_TERM = "term {}", "no term yet"
ONE, SEVERAL = "{} term", "{} terms"
SUM_OF, REST = "sum of {}", "what is missing"
ERROR = "Distance from the image, percent"
RANK_ALT = (
    "An image of 16 by 16 cells from rank-one terms, in three pictures: {term}, the sum of {terms} "
    "and what is missing. Below, curves of the error over the number of terms: singular vectors "
    "{best}; rows {rows} percent. The present error is {error} percent."
)
RANK_CAPTION = "{terms}: an error of {error} %, {numbers} numbers. The image has 256."

SIZE = 16
RANK_CONTROLS = (
    Slider("n", TERMS, tuple(range(SIZE + 1)), start=3),
    Slider("split", SPLIT, tuple(SPLITS), start="singular vectors", format=SPLITS.get),
)


class RankOneSum(NamedTuple):
    """An image ``C``, one way to split it into rank-one terms, and the first ``n`` of them."""

    n: int
    split: str
    term: np.ndarray  # (16, 16) the n-th term, zero for n = 0
    total: np.ndarray  # (16, 16) sum of the first n terms
    C: np.ndarray  # (16, 16)
    errors: dict[str, np.ndarray]  # (17,) |C - total| / |C| after 0 to 16 terms, Frobenius norms


def magnifier() -> np.ndarray:
    """Return a 16 x 16 image of a magnifying glass: a soft ring and a handle, two decimals.

    Examples
    --------
    >>> image = magnifier()
    >>> image.shape, float(image.min()), float(image.max())
    ((16, 16), 0.0, 1.0)
    """
    y, x = np.indices((SIZE, SIZE))
    ring = np.exp(-(((np.hypot(x - 7, y - 6) - 4.5) / 1.3) ** 2))
    handle = np.exp(-(((x - y) / 1.2) ** 2)) * (x + y > 19)
    return np.maximum(ring, handle).round(2)


@lru_cache(maxsize=1)
def _terms_of() -> dict[str, np.ndarray]:
    """Return the rank-one terms (16, 16, 16) of both ways to split the image."""
    C = magnifier()
    left, sigma, right = np.linalg.svd(C)
    return {
        "rows": np.stack([np.outer(e, row) for e, row in zip(np.eye(SIZE), C, strict=True)]),
        "singular vectors": np.stack(
            [s * np.outer(left[:, j], right[j]) for j, s in enumerate(sigma)]
        ),
    }


def compute_rank(n: int, split: str) -> RankOneSum:
    """Compute the sum of the first n rank-one terms and the errors of both ways to split."""
    C, terms = magnifier(), _terms_of()
    errors = {}
    for name, found in terms.items():
        sums = np.concatenate([np.zeros((1, SIZE, SIZE)), np.cumsum(found, axis=0)])
        errors[name] = np.linalg.norm(C - sums, axis=(1, 2)) / np.linalg.norm(C)
    term = terms[split][n - 1] if n else np.zeros((SIZE, SIZE))
    return RankOneSum(n, split, term, terms[split][:n].sum(axis=0), C, errors)


def draw_rank(arrays: RankOneSum) -> Picture:
    """Draw the present term, the sum and what is missing, and both error curves below."""
    look = {"cell": (12.5, 12.5), "limits": (-1.1, 1.1), "scale": style.DIVERGING}
    titles = (
        _term_in_words(arrays.n),
        SUM_OF.format(_terms_in_words(arrays.n)),
        REST,
    )
    items = []
    for column, values in enumerate((arrays.term, arrays.total, arrays.C - arrays.total)):
        left = 24 + 232 * column
        items += [
            Text(left, 26, titles[column], style.TITLE, bold=True),
            heat_map(left, 50, values.round(6), **look),
        ]
    items.append(colour_legend(716, 50, 200, limits=look["limits"], scale=look["scale"]))
    below = Panel(80, 320, 470, 120, (0, SIZE + 0.5), (0, 105))
    marks = tuple((x, str(x)) for x in range(0, SIZE + 1, 2))
    ends = []
    items += [
        axes(
            below,
            title=ERROR,
            x_label=TERMS,
            x_ticks=marks,
            y_ticks=((0, "0"), (50, "50"), (100, "100")),
        ),
        vertical(below, arrays.n),
    ]
    for name, colour, dash in (
        ("singular vectors", style.WEIGHT, ()),
        ("rows", style.MUTED, style.DASHES[1]),
    ):
        percent = 100 * arrays.errors[name]
        items.append(curve(below, range(SIZE + 1), percent, colour, dash=dash))
        ends.append((percent[-1], SPLITS[name], colour))
        if name == arrays.split:
            place = below.x(arrays.n), below.y(percent[arrays.n])
            items.append(mark(*place, "circle", colour, 8))
    items.append(end_labels(below, ends))
    return Picture(800, 500, items, RANK_ALT.format(**_rank_told(arrays)))


def caption_rank(arrays: RankOneSum) -> str:
    """Say what the picture shows."""
    return RANK_CAPTION.format(**_rank_told(arrays))


def _term_in_words(n: int) -> str:
    return TERM.format(n) if n else NO_TERM


def _terms_in_words(n: int) -> str:
    return (ONE if n == 1 else SEVERAL).format(n)


def _rank_told(arrays: RankOneSum) -> dict[str, str]:
    best, rows = (
        ", ".join(number(100 * e, 0) for e in arrays.errors[name])
        for name in ("singular vectors", "rows")
    )
    error = number(100 * arrays.errors[arrays.split][arrays.n], 1)
    numbers = str(arrays.n * 2 * SIZE)
    return {
        "term": _term_in_words(arrays.n),
        "terms": _terms_in_words(arrays.n),
        "best": best,
        "rows": rows,
        "error": error,
        "numbers": numbers,
    }


def rank_one_sum(**state) -> Lab:
    """Return the lab of an image built from rank-one terms; ``state`` sets sliders by name.

    Examples
    --------
    >>> rank_one_sum(n=5)
    rank_one_sum(n=5, split='singular vectors')
    """
    return Lab("rank_one_sum", RANK_CONTROLS, compute_rank, draw_rank, caption_rank, state)


# ---------------------------------------------- drawing in a plane


def transformed(panel: Panel, A: Sequence[Sequence[float]], stroke_width: float = 5) -> list[Group]:
    """Return what ``v -> A v`` makes of the grid, the unit square, a letter and the unit vectors.

    Examples
    --------
    >>> len(transformed(Panel(0, 0, 90, 90, (-3, 3), (-3, 3)), [[1, 0], [0, 2]]))
    5
    """
    A = np.asarray(A, float)
    square, letter = ([_place(panel, A @ v) for v in shape] for shape in (SQUARE, LETTER))
    tint = style.shade((style.CARD, style.SCORE), 0.35)
    return [
        grid(panel, A, style.HATCH),
        (Polygon(tuple(square), tint, opacity=0.8), Polygon(tuple(square), None, style.SCORE, 2)),
        (Polygon(tuple(letter), style.SCORE),),
        _vector(panel, (0, 0), A[:, 0], FIRST, stroke_width),
        _vector(panel, (0, 0), A[:, 1], SECOND, 0.8 * stroke_width, style.DASHES[1]),
    ]


def _plane(panel: Panel) -> list[Group]:
    low, high = panel.x_limits
    frame = Rect(panel.left, panel.top, panel.width, panel.height, None, style.MUTED, 1)
    return [
        (frame,),
        grid(panel),
        segment(panel, (low, 0), (high, 0), style.CARD_EDGE, stroke_width=2.5),
        segment(panel, (0, low), (0, high), style.CARD_EDGE, stroke_width=2.5),
    ]


def _place(panel: Panel, point: Sequence[float]) -> tuple[float, float]:
    return panel.x(point[0]), panel.y(point[1])


def _vector(panel, start, end, colour, width, dash=()) -> Group:
    """Return an arrow between two points of the plane, or a dot if it has no length."""
    (x1, y1), (x2, y2) = _place(panel, start), _place(panel, end)
    if math.hypot(x2 - x1, y2 - y1) < 1:
        return apart([mark(x1, y1, "circle", colour, 1.5 * width)])
    return apart(arrow(x1, y1, x2, y2, colour, stroke_width=width, dash=dash))


def _tips(panel: Panel, wanted: Sequence[tuple[Sequence[float], str, str]]) -> Group:
    """Return labels beside the tips of arrows from the origin, away from it and off the arrows."""
    places = [_place(panel, point) for point, _, _ in wanted]
    on_the_way = [
        _place(panel, np.multiply(point, part))
        for point, _, _ in wanted
        for part in np.linspace(0, 1, 12, endpoint=False)
    ]
    found, taken = [], [(x, y, 7, 7) for x, y in places + on_the_way]
    for (x, y), (point, text, colour) in zip(places, wanted, strict=True):
        wide, high = 0.34 * style.TEXT * len(to_plain(text).replace("_", "")) + 2, 12
        away = math.atan2(point[1], point[0])
        others = np.sum([other for other, _, _ in wanted], axis=0)
        side = -1 if point[0] * others[1] > point[1] * others[0] else 1  # away from the others
        for step, turn in itertools.product((1, 1.6, 2.2), (1, 0, 2, -1, 3, -2, -3, 4)):
            angle = away + side * turn * math.pi / 4
            u, v = x + step * (wide + 12) * math.cos(angle), y - step * 28 * math.sin(angle)
            inside = (
                panel.left + wide < u < panel.right - wide
                and panel.top + high < v < panel.bottom - high
            )
            if inside and all(
                abs(u - p) >= wide + w or abs(v - q) >= high + h for p, q, w, h in taken
            ):
                break
        taken.append((u, v, wide, high))
        found.append(Rect(u - wide, v - high, 2 * wide, 2 * high, style.CARD, radius=4))
        found.append(Text(u, v, text, fill=colour, anchor="middle", bold=True))
    return tuple(found)


def _lines(left: float, top: float, texts: Sequence[str]) -> Group:
    return tuple(Text(left, top + 28 * n, text) for n, text in enumerate(texts))


LABS = (reach_of_two, grid_transform, order_of_maps, four_views, rank_one_sum)
