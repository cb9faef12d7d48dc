"""Two ways to see no difference: a map of reordered words, and two rows with the same output."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, arrow, bars, heat_map, mark
from attnbook.labs.what_attention_cannot_say import compute_shuffle
from attnbook.picture import Line, Picture, Text, to_svg

SAME_NUMBERS, SAME_OUTPUT = "Other order, same numbers", "Other weights, same output"
VALUES = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
ROWS = np.array([[9, 1, 1, 9], [1, 9, 9, 1]]) / 20


def picture() -> Picture:
    """Draw the sentence's map in two orders, and two rows of weights over a square of values."""
    items = [
        Text(20, 28, SAME_NUMBERS, style.TITLE, bold=True),
        Text(460, 28, SAME_OUTPUT, style.TITLE, bold=True),
        Line(428, 20, 428, 276, style.GRID, 2),
    ]
    for order, left in (("1234", 64), ("3142", 274)):
        arrays = compute_shuffle(order, "none", positions=False)
        items.append(heat_map(left, 116, arrays.A, cell=(36, 36), digits=1))
        for k, word in enumerate(arrays.words):
            middle = (k + 0.5) * 36
            items.append(Text(left - 8, 116 + middle, word, anchor="end"))
            items.append(Text(left + middle, 104, word, anchor="start", rotate=-50))
    o = ROWS @ VALUES
    plane = Panel(566, 108, 112, 112, (0, 2), (0, 2))
    corners = [(plane.x(x), plane.y(y)) for x, y in VALUES]
    items += [mark(x, y, "square", style.VALUE, 7) for x, y in corners]
    for j, ((x, y), dy) in enumerate(zip(corners, (24, 24, -24, -24), strict=True), 1):
        items.append(Text(x, y + dy, f"$v_{j}$", fill=style.VALUE, anchor="middle", bold=True))
    x, y = plane.x(o[0, 0]), plane.y(o[0, 1])
    for row, left in ((ROWS[0], 440), (ROWS[1], 700)):
        panel = Panel(left, 108, 88, 112, y_limits=(0, 0.5))
        items += [bars(panel, row, ("1", "2", "3", "4"), digits=None)]
        items.append(Line(left, panel.bottom, left + 88, panel.bottom, style.MUTED))
        start = left + 96 if left < x else left - 8
        items.append(arrow(start, 164, x + (-16 if left < x else 16), 164, style.MUTED))
    items += [
        mark(x, y, "circle", style.OUTPUT, 9),
        Text(x, y + 26, "output", anchor="middle", bold=True),
    ]
    alt = (
        "Left: the weights of the words I, love, GPU, prog as a map, and those of GPU, I, prog, "
        "love: the same numbers in other cells. Right: the weights 0.45, 0.05, 0.05, 0.45 and "
        "0.05, 0.45, 0.45, 0.05 over four values at the corners of a square; both read its centre."
    )
    return Picture(800, 296, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
