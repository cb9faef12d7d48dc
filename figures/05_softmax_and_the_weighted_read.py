"""Three scores become weights, and the weights one point among the values of R (5.14)."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, arrow, axes, bars, mark, number
from attnbook.labs.softmax_and_the_weighted_read import V, compute_read
from attnbook.picture import Picture, Polygon, Text, to_svg

STEPS = (("scores $u$", "any real numbers"), ("exp($u$)", "positive"), ("weights $a$", "sum 1"))


def picture() -> Picture:
    """Draw scores, exponentials and weights as bars, and the output in the triangle of values."""
    arrays = compute_read(-1, 1, 2, tau=1.0)
    columns = (arrays.u, np.exp(arrays.u), arrays.a)
    items = []
    for column, ((name, property_), values, fill) in enumerate(
        zip(STEPS, columns, (style.SCORE, style.SCORE, style.WEIGHT), strict=True)
    ):
        left = 24 + 190 * column
        panel = Panel(left, 60, 140, 150, y_limits=(2 * min(values.min(), 0), 1.25 * values.max()))
        items += [
            Text(left + 70, 28, name, style.TITLE, anchor="middle", bold=True),
            axes(panel, x_ticks=(), y_ticks=()),
            bars(panel, values, ("1", "2", "3"), fill=fill),
            Text(left + 70, 256, property_, fill=style.MUTED, anchor="middle"),
            arrow(left + 150, 135, left + 182, 135),
        ]
    plane = Panel(612, 74, 130, 136, (-0.1, 1.1), (-0.1, 2.1))
    corners = tuple((plane.x(x), plane.y(y)) for x, y in V)
    shifts = ((0, 22), (-2, -20), (8, -20))
    items += [
        Text(685, 28, "output $o$", style.TITLE, anchor="middle", bold=True),
        Polygon(corners, style.VALUE, opacity=0.1),
        Polygon(corners, None, style.VALUE, 2),
        *(
            mark(x, y, "square", style.VALUE, 3 + 12 * a)
            for (x, y), a in zip(corners, arrays.a, strict=True)
        ),
        *(
            Text(x + dx, y + dy, f"$v_{j}$", fill=style.VALUE, anchor="middle", bold=True)
            for j, ((x, y), (dx, dy)) in enumerate(zip(corners, shifts, strict=True), 1)
        ),
        mark(plane.x(arrays.o[0]), plane.y(arrays.o[1]), "circle", style.OUTPUT, 9),
        Text(685, 256, "in the triangle", fill=style.MUTED, anchor="middle"),
    ]
    told = [", ".join(map(number, values)) for values in (*columns, arrays.o)]
    alt = (
        "Scores {}; their exponentials {}; divided by their sum, the weights {}; the output ({}), "
        "a point inside the triangle of the three values."
    )
    return Picture(800, 284, items, alt.format(*told))


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
