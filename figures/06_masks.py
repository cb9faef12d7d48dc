"""Four visibility patterns on four positions, after R figure 5.1."""

from pathlib import Path

import numpy as np

from attnbook import masks, style
from attnbook.picture import Picture, Rect, Text, to_svg

N, CELL = 4, 36
PATTERNS = (
    ("all keys", "encoder", np.ones((N, N), bool)),
    ("padding", "key 4 is padding", masks.padding([True, True, True, False])),
    ("causal", "no later key", masks.causal(N, N)),
    (
        "two documents",
        "causal in each",
        masks.causal(N, N) & masks.documents([1, 1, 2, 2], [1, 1, 2, 2]),
    ),
)


def picture() -> Picture:
    """Draw the four allowed sets: a dark cell with a 1 may be read."""
    items = [Text(14, 156, "query", fill=style.MUTED, anchor="middle", rotate=-90)]
    for n, (name, note, allowed) in enumerate(PATTERNS):
        left, top = 52 + 190 * n, 84
        items += [
            Text(left, 24, name, style.TITLE, bold=True),
            Text(left, 256, note, fill=style.MUTED),
        ]
        for k in range(N):
            items.append(Text(left + CELL * (k + 0.5), top - 14, str(k + 1), anchor="middle"))
            items.append(Text(left - 8, top + CELL * (k + 0.5), str(k + 1), anchor="end"))
        for i, j in np.ndindex(N, N):
            may = np.broadcast_to(allowed, (N, N))[i, j]
            x, y = left + CELL * j, top + CELL * i
            items.append(Rect(x, y, CELL, CELL, style.MUTED if may else style.WHITE, style.GRID, 2))
            if may:
                items.append(
                    Text(x + CELL / 2, y + CELL / 2, "1", fill=style.WHITE, anchor="middle")
                )
        items.append(Rect(left, top, N * CELL, N * CELL, None, style.MUTED, 1))
    items.append(Text(52 + 2 * CELL, 48, "key", fill=style.MUTED, anchor="middle"))
    told = (
        "Four grids of four queries by four keys, a dark cell with a 1 for a key that may be read. "
        "All keys: all sixteen cells. Padding: the last column is empty. Causal: the diagonal and "
        "what lies below it. Two documents: two small causal triangles, queries 1 and 2 with keys "
        "1 and 2, queries 3 and 4 with keys 3 and 4."
    )
    return Picture(800, 280, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
