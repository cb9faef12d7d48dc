"""The third query of R (5.17) as a walk along its three weighted values: R's lost figure 5.2."""

import itertools
from pathlib import Path

import numpy as np

from attnbook import attention, style
from attnbook.diagrams import Panel, arrow, axes, mark, number
from attnbook.examples import R_HEAD
from attnbook.picture import Picture, Polygon, Text, to_svg

ALT = (
    "A plane. The values (1, 0), (0, 2) and (1, 2) are the corners of a triangle. Arrows from "
    "the origin along the three values, {} times their length, end at the third output, ({}). The "
    "first output is the first value; the second, ({}), lies on the side from the first to "
    "the second."
)


def picture() -> Picture:
    """Draw the triangle of the values, the three outputs and the walk to the third."""
    X, W_Q, W_K, W_V = (np.array(M, float) for M in R_HEAD[1:5])
    V = X @ W_V
    O, A, _ = attention(X @ W_Q, X @ W_K, V, np.array(R_HEAD.allowed))
    panel = Panel(60, 40, 430, 380, (-0.15, 1.35), (-0.15, 2.3))

    def place(v):
        return panel.x(v[0]), panel.y(v[1])

    corners = tuple(map(place, V))
    walk = np.vstack([np.zeros(2), np.cumsum(A[2][:, None] * V, axis=0)])
    whole = ((0, "0"), (1, "1"))
    items = [
        axes(panel, x_ticks=whole, y_ticks=(*whole, (2, "2"))),
        Polygon(corners, style.VALUE, opacity=0.1),
        Polygon(corners, None, style.VALUE, 2),
        *(mark(x, y, "square", style.VALUE, 7) for x, y in corners),
        *(
            Text(x + dx, y + dy, f"$v_{j}$", style.TITLE, style.VALUE, "middle", bold=True)
            for j, ((x, y), (dx, dy)) in enumerate(
                zip(corners, ((22, 6), (-20, -18), (22, -16)), strict=True), 1
            )
        ),
    ]
    items += [
        arrow(*place(a), *place(b), style.WEIGHT, stroke_width=3)
        for a, b in itertools.pairwise(walk)
    ]
    for i, (dx, dy) in enumerate(((-26, -16), (-30, 12), (-28, -6))):
        x, y = place(O[i])
        items += [
            mark(x, y, "circle", style.OUTPUT, 8),
            Text(x + dx, y + dy, f"$o_{i + 1}$", style.TITLE, style.OUTPUT, "middle", bold=True),
        ]
    rows = [("the third query reads", style.INK, True)]
    rows += [
        (f"{number(a, 3)} · $v_{j}$ = ({_pair(a * v, 3)})", style.WEIGHT, False)
        for j, (a, v) in enumerate(zip(A[2], V, strict=True), 1)
    ]
    rows.append((f"$o_3$ = ({_pair(O[2], 3)})", style.OUTPUT, True))
    items += [
        Text(530, 150 + 34 * n, text, fill=colour, bold=bold)
        for n, (text, colour, bold) in enumerate(rows)
    ]
    weights = ", ".join(number(a, 3) for a in A[2])
    return Picture(800, 470, items, ALT.format(weights, _pair(O[2], 3), _pair(O[1], 3)))


def _pair(point: np.ndarray, digits: int) -> str:
    return ", ".join(number(x, digits) for x in point)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
