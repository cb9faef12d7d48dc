"""The computation of a head as a chain, and the gradients that run back along it."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import arrow
from attnbook.markup import BAR
from attnbook.picture import Picture, Rect, Text, to_svg

# letter -> centre of its box, colour; the gradient by it and where that is written
BOXES = {
    "X": (76, 160, style.INK, f"$X{BAR}$: sum of three", 0, 68),
    "Q": (226, 60, style.QUERY, f"$Q{BAR}$ = $U{BAR}K$/$√d_k$", 0, -34),
    "K": (226, 160, style.KEY, f"$K{BAR}$ = $U{BAR}^⊤Q$/$√d_k$", 10, 33),
    "V": (226, 260, style.VALUE, f"$V{BAR}$ = $A^⊤O{BAR}$", 0, 33),
    "U": (396, 110, style.SCORE, f"$U{BAR}$ = $A$ ⊙ ($A{BAR}$ − mean)", 54, 40),
    "A": (570, 110, style.WEIGHT, f"$A{BAR}$ = $O{BAR}V^⊤$", 0, -34),
    "O": (650, 260, style.OUTPUT, f"$O{BAR}$", 0, 33),
    "L": (752, 260, style.INK, "", 0, 0),
}
ARROWS = ("XQ", "XK", "XV", "QU", "KU", "UA", "AO", "VO", "OL")
FORWARD, BACKWARD = "forward: values are computed", "backward: gradients are passed on"
WIDTH, HEIGHT = 52, 34


def picture() -> Picture:
    """Draw the boxes, an arrow forward and one back between neighbours, and the gradients."""
    items = []
    for pair in ARROWS:
        (x1, y1), (x2, y2) = (BOXES[letter][:2] for letter in pair)
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        u, v = (x2 - x1) / length, (y2 - y1) / length
        first, last = _out(u, v), _out(-u, -v)
        a, b = (x1 + first * u, y1 + first * v), (x2 - last * u, y2 - last * v)
        n, m = -5 * v, 5 * u  # to the side: forward above, backward below
        items += [
            arrow(a[0] - n, a[1] - m, b[0] - n, b[1] - m, style.MUTED, stroke_width=1.8),
            arrow(
                b[0] + n,
                b[1] + m,
                a[0] + n,
                a[1] + m,
                style.GRADIENT,
                stroke_width=1.8,
                dash=style.DASHES[1],
            ),
        ]
    for letter, (x, y, colour, gradient, dx, dy) in BOXES.items():
        left, top = x - WIDTH / 2, y - HEIGHT / 2
        items += [
            Rect(left, top, WIDTH, HEIGHT, style.CARD, colour, 2.5, radius=6),
            Text(x, y, f"${letter}$", style.TITLE, colour, anchor="middle", bold=True),
        ]
        if gradient:
            items.append(Text(x + dx, y + dy, gradient, fill=style.GRADIENT, anchor="middle"))
    for y, text, colour, dash in (
        (326, FORWARD, style.MUTED, ()),
        (352, BACKWARD, style.GRADIENT, style.DASHES[1]),
    ):
        ends = (24, 66) if colour == style.MUTED else (66, 24)
        items += [
            arrow(ends[0], y, ends[1], y, colour, stroke_width=1.8, dash=dash),
            Text(78, y, text),
        ]
    alt = (
        "A chain of boxes: X leads to Q, K and V; Q and K lead to U, U to A; A and V lead to O, "
        "and O to the loss L. Dashed arrows run the other way, and under each box stands the "
        "gradient by it."
    )
    return Picture(800, 376, items, alt)


def _out(u: float, v: float) -> float:
    """Return how far the edge of a box, and a little room, lies from its centre."""
    across = (WIDTH / 2 + 7) / abs(u) if u else 1e9
    along = (HEIGHT / 2 + 7) / abs(v) if v else 1e9
    return min(across, along)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
