"""Where queries, keys and values come from: one sequence, or two of different lengths."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import arrow
from attnbook.picture import Line, Picture, Rect, Text, to_svg

SIZE, STEP, READER = 40, 50, 2  # a cell, from one to the next, the query whose reading is drawn


def cell(x: float, y: float, text: str, colour: str) -> list:
    """Draw a small box with a name in it."""
    ground = style.shade((style.CARD, colour), 0.16)
    middle = x + SIZE / 2, y + SIZE / 2
    return [
        Rect(x, y, SIZE, SIZE, ground, colour, 2, radius=6),
        Text(*middle, text, fill=style.INK, anchor="middle"),
    ]


def inputs(left: float, top: float, name: str, shape: str) -> list:
    """Draw the box of one input."""
    ground = style.shade((style.CARD, style.INK), 0.1)
    return [
        Rect(left, top, 78, 58, ground, style.INK, 2, radius=8),
        Text(left + 39, top + 19, name, style.TITLE, anchor="middle", bold=True),
        Text(left + 39, top + 42, shape, anchor="middle"),
    ]


def reading(left: float, T: int, S: int) -> list:
    """Draw a row of queries over the pairs of keys and values that one of them reads."""
    q, k, v = 72, 196, 244
    items = []
    for j in range(1, S + 1):
        x = left + STEP * (j - 1)
        items += cell(x, k, f"$k_{j}$", style.KEY) + cell(x, v, f"$v_{j}$", style.VALUE)
        start = left + STEP * (READER - 1) + SIZE / 2
        items.append(Line(start, q + SIZE, x + SIZE / 2, k, style.WEIGHT, 2.5))
    for i in range(1, T + 1):
        items += cell(left + STEP * (i - 1), q, f"$q_{i}$", style.QUERY)
    return items


def picture() -> Picture:
    """Draw self-attention on the left and cross-attention on the right."""
    items = [
        Text(20, 28, "Self-attention: one sequence", style.TITLE, bold=True),
        inputs(20, 138, "$X$", "4 × $d$"),
        arrow(102, 150, 142, 110, style.QUERY),
        arrow(102, 180, 142, 214, style.KEY),
        arrow(102, 190, 142, 252, style.VALUE, dash=style.DASHES[2]),
        reading(150, 4, 4),
        Text(20, 322, "$q_i$, $k_i$ and $v_i$ belong to one token", fill=style.MUTED),
        Line(384, 20, 384, 332, style.GRID, 2),
        Text(410, 28, "Cross-attention: two sequences", style.TITLE, bold=True),
        inputs(410, 63, "$X_q$", "3 × $d_q$"),
        inputs(410, 211, "$X_m$", "5 × $d_m$"),
        arrow(492, 92, 532, 92, style.QUERY),
        arrow(492, 228, 532, 216, style.KEY),
        arrow(492, 250, 532, 262, style.VALUE, dash=style.DASHES[2]),
        reading(540, 3, 5),
        Text(410, 322, "$k_j$ and $v_j$ share a position, $q_i$ has none there", fill=style.MUTED),
    ]
    told = (
        "Two diagrams. Left, self-attention: one input X of 4 rows gives four queries and, below "
        "them, four pairs of a key and a value; lines lead from the second query to all four keys. "
        "Right, cross-attention: the input X q of 3 rows gives three queries, the input X m of 5 "
        "rows gives five pairs of a key and a value; lines lead from the second query to all five "
        "keys. Key and value of a pair have the same number; queries are numbered on their own."
    )
    return Picture(800, 346, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
