"""What three linear maps make of the square grid, and one map that is not linear."""

import math
from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, grid, segment
from attnbook.labs.four_views_of_a_product import LETTER, SQUARE, transformed
from attnbook.picture import Picture, Polygon, Rect, Text, to_svg

WINDOW = (-2.6, 2.6)
ANGLE = math.radians(30)
LINEAR = (
    ("turn", [[math.cos(ANGLE), -math.sin(ANGLE)], [math.sin(ANGLE), math.cos(ANGLE)]]),
    ("stretch", [[2, 0], [0, 1]]),
    ("shear", [[1, 1], [0, 1]]),
)


def uneven(v):
    """Return (x^3/4, y): grid lines stay straight and parallel, but not evenly spaced."""
    return np.stack([v[..., 0] ** 3 / 4, v[..., 1]], axis=-1)


def picture() -> Picture:
    """Draw the four images of the grid, the unit square and the letter F in it."""
    items = []
    for n, (name, A) in enumerate((*LINEAR, ("uneven: not linear", None))):
        panel = Panel(16 + 195 * n, 50, 182, 182, WINDOW, WINDOW)
        frame = Rect(panel.left, panel.top, panel.width, panel.height, None, style.MUTED)
        items += [Text(panel.left, 26, name, bold=True), frame, grid(panel)]
        if A is not None:
            items += transformed(panel, A, stroke_width=3)
            continue
        for k in range(-2, 3):
            x = uneven(np.array([k, 0.0]))[0]
            items += segment(panel, (x, -9), (x, 9), style.HATCH, stroke_width=1.5)
            items += segment(panel, (-9, k), (9, k), style.HATCH, stroke_width=1.5)
        square, letter = (
            tuple((panel.x(x), panel.y(y)) for x, y in uneven(shape)) for shape in (SQUARE, LETTER)
        )
        tint = style.shade((style.CARD, style.SCORE), 0.35)
        items += [Polygon(square, tint, style.SCORE, 2, 0.8), Polygon(letter, style.SCORE)]
    told = (
        "The square grid with a letter F in the unit square, after four maps. Turned, stretched or "
        "sheared, its lines stay straight, parallel and evenly spaced. Under the fourth map they "
        "stay straight and parallel, but the distances between them differ: that map is not linear."
    )
    return Picture(800, 250, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
