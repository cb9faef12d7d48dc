"""Which marks of a picture can be told from what lies under them.

Marks are lines, outlines and dots. A point of a mark is hidden if what is seen on both sides of it,
or around a dot, contrasts less than 4.5:1 with it; a mark is faint if that is so for a stretch of
its length, which is more than a crossing with another mark.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.picture import (
    Circle,
    Line,
    Picture,
    Polygon,
    Polyline,
    Primitive,
    Rect,
    Segments,
    Text,
)

CONTRAST = 4.5
DECORATION = {style.GRID, style.CARD_EDGE}  # to hold a ruler against, without a meaning
GROUNDS = {style.CARD, style.WHITE}  # to set a mark apart from what it crosses
STEP = 2  # pixels between the points that are looked at
STRETCH = 16  # pixels
BESIDE = 0.75  # pixels from the edge of a mark to where its ground is looked at
DOT = 30  # pixels: a filled shape up to this size is a mark, not an area


class Ground(NamedTuple):
    """Something that a later mark may lie on, with its bounding box."""

    item: Primitive
    box: tuple[float, float, float, float]


def faint(drawn: Picture) -> list[str]:
    """Return the marks of a picture that cannot be told from what lies under them.

    Areas (cells of a heat map, shaded regions) may be light: a number or an outline tells them. A
    mark with two colours is seen if one of them stands out.
    """
    found: list[str] = []
    grounds: list[Ground] = []
    boxes = np.empty((len(drawn.items), 4))
    rings = {item[:3] for item in drawn.items if isinstance(item, Circle) and item.stroke}
    squares = {place(item) for item in drawn.items if is_square(item)}
    for item in drawn.items:
        no_mark = isinstance(item, Circle) and hides(item, rings)
        no_mark |= is_square(item) and in_a_grid(item, squares)
        colours = set() if no_mark else mark_colours(item)
        lines = list(edges(item)) if colours else []
        points = np.vstack([np.empty((0, 2)), *(line.reshape(-1, 2) for line in lines)])
        below = iter(colours_under(points, grounds, boxes[: len(grounds)]))
        for line in lines:
            sides = [[next(below) for _ in point] for point in line]
            hidden = [
                not any(stands_out(c, ground, item.opacity) for ground in side for c in colours)
                for side in sides
            ]
            if longest(hidden) >= min(STRETCH / STEP, len(hidden) / 2):
                ground = sides[hidden.index(True)][0]
                found.append(f"{' and '.join(sorted(colours))} on {ground}: {item}")
                break
        if is_ground(item):
            grounds.append(Ground(item, box(item)))
            boxes[len(grounds) - 1] = grounds[-1].box
    return found


def hides(item: Circle, rings: set[tuple]) -> bool:
    """Return whether a disc without an outline has its outline in another item."""
    return not item.stroke and item[:3] in rings


def is_square(item: Primitive) -> bool:
    """Return whether an item is drawn as the square of `attnbook.diagrams.mark` is."""
    plain = isinstance(item, Rect) and item.fill and not item.stroke
    return bool(plain) and item.width <= DOT and abs(item.width - item.height) < 1e-6


def place(square: Rect) -> tuple[float, float, float]:
    return round(square.x, 1), round(square.y, 1), round(square.width, 1)


def in_a_grid(square: Rect, squares: set[tuple]) -> bool:
    """Return whether a square touches another of its size: a cell of a map, not a mark."""
    x, y, side = square[:3]
    steps = [(side, 0), (-side, 0), (0, side), (0, -side)]
    return any(place(square._replace(x=x + i, y=y + j)) in squares for i, j in steps)


@lru_cache(maxsize=100_000)
def stands_out(colour: str, ground: str, opacity: float) -> bool:
    return style.contrast(style.shade((ground, colour), opacity), ground) >= CONTRAST


def mark_colours(item: Primitive) -> set[str]:
    """Return the colours by which a mark is seen; none if it is no mark."""
    if isinstance(item, Text):  # `picture.check` looks at those
        return set()
    stroke, fill = item.stroke, getattr(item, "fill", None)
    if stroke and stroke not in GROUNDS:
        return {stroke, fill} - {None} if stroke not in DECORATION else set()
    low_x, low_y, high_x, high_y = box(item)
    dot = isinstance(item, Circle | Polygon) and max(high_x - low_x, high_y - low_y) <= DOT
    dot |= is_square(item)
    return {fill} - DECORATION - GROUNDS - {None} if dot else set()


def edges(item: Primitive) -> Iterator[np.ndarray]:
    """Yield, for each line of a mark, the points beside it: (points, sides, 2)."""
    gap = BESIDE + (item.stroke_width / 2 if item.stroke else 0)
    for corners in paths(item):
        points, across = stepped(corners)
        outwards = 1
        if getattr(item, "fill", None):  # its own fill lies on the other side
            x, y = corners[:-1].T
            turn = (x * np.roll(y, -1) - y * np.roll(x, -1)).sum()
            outwards = 1 if turn > 0 else -1
            yield (points + outwards * gap * across)[:, None]
        else:
            yield np.stack([points + gap * across, points - gap * across], axis=1)


def paths(item: Primitive) -> Iterator[np.ndarray]:
    """Yield the corners of each line that an item consists of."""
    match item:
        case Line():
            lines = [[(item.x1, item.y1), (item.x2, item.y2)]]
        case Polyline():
            lines = [item.points]
        case Segments():
            lines = [[line[:2], line[2:]] for line in item.lines]
        case Polygon():
            lines = [[*item.points, item.points[0]]]
        case Rect():
            right, bottom = item.x + item.width, item.y + item.height
            corners = [(item.x, item.y), (right, item.y), (right, bottom), (item.x, bottom)]
            lines = [[*corners, corners[0]]]
        case Circle():
            t = np.linspace(0, 2 * np.pi, 25)
            circle = np.column_stack([np.cos(t), np.sin(t)])
            lines = [(item.x, item.y) + item.radius * circle]
    for line in lines:
        if len(line) > 1:
            yield np.array(line, float)


def stepped(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points along a line in steps, and the unit vector across it at each."""
    sides = np.diff(corners, axis=0)
    lengths = np.hypot(*sides.T)
    along = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(STEP / 2, max(along[-1], STEP), STEP)
    k = np.clip(np.searchsorted(along, at, side="right") - 1, 0, len(sides) - 1)
    u, v = (sides[k] / np.maximum(lengths[k], 1e-9)[:, None]).T
    points = np.column_stack([np.interp(at, along, corners[:, axis]) for axis in (0, 1)])
    return points, np.column_stack([v, -u])


def is_ground(item: Primitive) -> bool:
    if isinstance(item, Text | Segments):
        return False
    return bool(getattr(item, "fill", None)) or item.stroke in GROUNDS


def box(item: Primitive) -> tuple[float, float, float, float]:
    corners = np.vstack([np.empty((0, 2)), *paths(item)])
    if not len(corners):
        return (0, 0, 0, 0)
    pad = item.stroke_width / 2 if item.stroke else 0
    return (*(corners.min(axis=0) - pad), *(corners.max(axis=0) + pad))


def colours_under(points: np.ndarray, grounds: list[Ground], boxes: np.ndarray) -> list[str]:
    """Return the colour at each point of what was drawn before."""
    found = np.full(len(points), style.CARD, object)
    if not len(points):
        return []
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    met = (boxes[:, 0] <= right) & (boxes[:, 2] >= left)
    met &= (boxes[:, 1] <= bottom) & (boxes[:, 3] >= top)
    for item in (grounds[k].item for k in np.flatnonzero(met)):  # from the lowest up
        if fill := getattr(item, "fill", None):
            there = inside(item, points)
            if item.opacity == 1:
                found[there] = fill
            else:
                found[there] = [style.shade((c, fill), item.opacity) for c in found[there]]
        if item.stroke in GROUNDS:
            found[near(item, points)] = item.stroke
    return list(found)


def inside(item: Primitive, points: np.ndarray) -> np.ndarray:
    """Return which points lie in the area of an item."""
    x, y = points.T
    if isinstance(item, Circle):
        return np.hypot(x - item.x, y - item.y) <= item.radius
    if isinstance(item, Rect):
        across = (x >= item.x) & (x <= item.x + item.width)
        return across & (y >= item.y) & (y <= item.y + item.height)
    found = np.zeros(len(points), bool)
    (corners,) = paths(item)
    for (x1, y1), (x2, y2) in pairwise(corners):
        if y1 != y2:
            found ^= ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return found


def near(item: Primitive, points: np.ndarray) -> np.ndarray:
    """Return which points lie under the stroke of an item."""
    found = np.zeros(len(points), bool)
    for corners in paths(item):
        for start, end in pairwise(corners):
            side = end - start
            t = np.clip((points - start) @ side / max(side @ side, 1e-9), 0, 1)
            gaps = points - start - t[:, None] * side
            found |= np.hypot(*gaps.T) <= item.stroke_width / 2
    return found


def longest(hidden: list[bool]) -> int:
    """Return the length of the longest row of true values."""
    best = now = 0
    for one in hidden:
        now = now + 1 if one else 0
        best = max(best, now)
    return best
