"""A row of a table, the same row on two pairs of axes, and its length along a direction."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, arrow, matrix, number, segment
from attnbook.picture import Line, Picture, Text, to_svg

TABLE = np.array([[1.2, 1.4], [2.0, 1.0], [-0.6, 1.8], [0.4, -1.1]])
ROW = 1
ANGLE, FEATURE = 35, 70  # degrees: the turned axes, the direction of the feature


def picture() -> Picture:
    """Draw the three steps side by side."""
    x = TABLE[ROW]
    grounds = [[style.SEQUENTIAL[1] if i == ROW else None] * 2 for i in range(len(TABLE))]
    items = [
        Text(130, 28, "a row of a table", style.TITLE, anchor="middle", bold=True),
        matrix(60, 80, TABLE, grounds=grounds, digits=1, cell=(70, 36)),
        Text(130, 256, "token 1: two numbers", fill=style.MUTED, anchor="middle"),
        arrow(230, 134, 270, 134),
    ]
    for left, title in ((300, "coordinates"), (560, "a direction")):
        plane = Panel(left, 52, 210, 182, (-0.7, 2.6), (-0.86, 2.0))
        items.append(Text(left + 105, 28, title, style.TITLE, anchor="middle", bold=True))
        for axis in np.eye(2):
            items += segment(plane, -3 * axis, 3 * axis, style.MUTED)
        if left == 300:
            t = np.radians(ANGLE)
            for axis in np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]):
                items += segment(plane, -3 * axis, 3 * axis, style.KEY, dash=style.DASHES[1])
                foot = (x @ axis) * axis
                items += segment(plane, x, foot, style.KEY, dash=style.DASHES[2])
            new = [x @ [np.cos(t), np.sin(t)], x @ [-np.sin(t), np.cos(t)]]
            told = " or ".join(f"({number(a, 1)}, {number(b, 1)})" for a, b in (x, new))
        else:
            t = np.radians(FEATURE)
            d = np.array([np.cos(t), np.sin(t)])
            foot = (x @ d) * d
            items += [
                *arrow(plane.x(0), plane.y(0), plane.x(1.9 * d[0]), plane.y(1.9 * d[1]), style.KEY),
                Text(
                    plane.x(1.9 * d[0]) + 18,
                    plane.y(1.9 * d[1]) + 4,
                    "$d$",
                    fill=style.KEY,
                    bold=True,
                ),
                *segment(plane, x, foot, style.INK, dash=style.DASHES[1]),
                Line(plane.x(0), plane.y(0), plane.x(foot[0]), plane.y(foot[1]), style.SCORE, 8),
            ]
            told = f"length along $d$: {number(x @ d, 2)}"
        items += [
            *arrow(plane.x(0), plane.y(0), plane.x(x[0]), plane.y(x[1]), style.QUERY),
            Text(plane.x(x[0]) + 12, plane.y(x[1]) - 10, "$x$", fill=style.QUERY, bold=True),
            Text(left + 105, 256, told, fill=style.MUTED, anchor="middle"),
        ]
    alt = (
        "A table of four rows of two numbers, one row marked; the row as an arrow with its "
        "coordinates on two pairs of axes; the length of the row along the direction of a feature."
    )
    return Picture(800, 284, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
