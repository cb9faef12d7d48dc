"""Two triangles in a rectangle: aligned to the upper left and to the lower right corner."""

from pathlib import Path

import numpy as np

from attnbook import masks, style
from attnbook.picture import Picture, Rect, Text, to_svg

CELL = 32
SHAPES = ((2, 5), (5, 2))


def picture() -> Picture:
    """Draw both alignments for fewer and for more queries than keys."""
    items = []
    for n, (T, S) in enumerate(SHAPES):
        for m, (name, first) in enumerate((("upper left", 0), ("lower right", S - T))):
            left, top = (70, 300, 540, 680)[2 * n + m], 104
            allowed = masks.causal(first + np.arange(T), S)
            items.append(Text(left - 24, 24, name, bold=True))
            items.append(Text(left - 24, 48, f"$T$ = {T}, $S$ = {S}", fill=style.MUTED))
            for j in range(S):
                items.append(Text(left + CELL * (j + 0.5), top - 14, str(j), anchor="middle"))
            for i in range(T):
                position = str(first + i).replace("-", "−")
                items.append(Text(left - 8, top + CELL * (i + 0.5), position, anchor="end"))
            for i, j in np.ndindex(T, S):
                x, y = left + CELL * j, top + CELL * i
                ground = style.MUTED if allowed[i, j] else style.WHITE
                items.append(Rect(x, y, CELL, CELL, ground, style.GRID, 2))
                if allowed[i, j]:
                    centre = x + CELL / 2, y + CELL / 2
                    items.append(Text(*centre, "1", fill=style.WHITE, anchor="middle"))
            items.append(Rect(left, top, S * CELL, T * CELL, None, style.MUTED, 1))
    told = (
        "Two causal triangles in rectangles, with the positions that they assume. Two queries, "
        "five keys: the upper left triangle takes the queries for positions 0 and 1, which read "
        "one and two keys; the lower right one for positions 3 and 4, which read four and five. "
        "Five queries, two keys: upper left, positions 0 to 4 read one, two, two, two, two keys; "
        "lower right, positions minus 3 to 1 read none, none, none, one, two."
    )
    return Picture(800, 284, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
