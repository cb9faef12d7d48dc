"""All combinations of two arrows: the plane if they are not parallel, a line if they are."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, arrow, grid, segment
from attnbook.labs.four_views_of_a_product import FIRST, SECOND
from attnbook.picture import Picture, Rect, Text, to_svg

PAIRS = (
    ("not parallel: the whole plane", (2, 0.5), (-0.5, 1)),
    ("parallel: one line", (2, 1), (-1, -0.5)),
)


def picture() -> Picture:
    """Draw two pairs of arrows, each with the whole-number steps that they can make."""
    items = []
    for n, (title, v1, v2) in enumerate(PAIRS):
        panel = Panel(24 + 395 * n, 50, 357, 238, (-4.5, 4.5), (-3, 3))
        frame = Rect(panel.left, panel.top, panel.width, panel.height, None, style.MUTED)
        items += [Text(panel.left, 26, title, style.TITLE, bold=True), frame, grid(panel)]
        V = np.column_stack([v1, v2])
        items += [grid(panel, V, style.HATCH)]
        if np.linalg.matrix_rank(V) == 1:
            far = 9 * np.array(v1)
            items += segment(panel, -far, far, style.SCORE, stroke_width=6)
        for v, colour in ((v1, FIRST), (v2, SECOND)):
            place = panel.x(0), panel.y(0), panel.x(v[0]), panel.y(v[1])
            items += arrow(*place, colour, stroke_width=4)
        for v, name, colour in ((v1, "$v_1$", FIRST), (v2, "$v_2$", SECOND)):
            x, y = panel.x(v[0]), panel.y(v[1])
            x, y = (x + 16, y + 18) if v[0] > 0 else (x - 20, y - 14)
            ground = Rect(x - 15, y - 12, 30, 24, style.CARD, radius=4)
            items += [ground, Text(x, y, name, fill=colour, anchor="middle", bold=True)]
    told = (
        "Two planes with two arrows each. Left the arrows are not parallel and their combinations "
        "cover the plane with a slanted net. Right they are parallel: every combination lies on "
        "the one line through them."
    )
    return Picture(800, 306, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
