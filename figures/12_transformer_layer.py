"""One encoder layer of the original Transformer: what mixes positions, and what does not."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import arrow
from attnbook.picture import Circle, Line, Picture, Polyline, Rect, Text, to_svg

BOXES = (  # text, height of the middle, whether it mixes positions
    ("normalise", 60, False),
    ("feed-forward", 170, False),
    ("normalise", 250, False),
    ("multi-head attention", 360, True),
)
SUMS = (115, 305)  # each adds what went around the box below it
START = 442
NOTES = (
    (60, "each row by itself"),
    (170, "each row by itself"),
    (250, "each row by itself"),
    (360, "mixes positions"),
)


def picture() -> Picture:
    """Draw the column of boxes from the input at the bottom to the output at the top."""
    middle, half = 300, 120
    items = [Text(middle, START + 14, "word rows + position rows", anchor="middle", bold=True)]
    places = sorted([y for _, y, _ in BOXES] + list(SUMS), reverse=True)
    below = START
    for y in places:
        gap = 14 if y in SUMS else 24
        items.append(arrow(middle, below, middle, y + gap))
        below = y - gap
    items.append(arrow(middle, below, middle, 12))
    for text, y, mixes in BOXES:
        stroke = style.WEIGHT if mixes else style.MUTED
        items.append(
            Rect(middle - half, y - 24, 2 * half, 48, style.CARD, stroke, 4 if mixes else 2, 1, 6)
        )
        items.append(Text(middle, y, text, anchor="middle", bold=mixes))
    for y, source in zip(SUMS, (212, 410), strict=True):
        items.append(Circle(middle, y, 14, style.CARD, style.INK, 2))
        items.append(Line(middle - 7, y, middle + 7, y, style.INK, 2))
        items.append(Line(middle, y - 7, middle, y + 7, style.INK, 2))
        around = middle - half - 40
        items.append(Polyline(((middle, source), (around, source), (around, y)), style.INK, 2.5))
        items.append(arrow(around, y, middle - 14, y))
        items.append(Text(around - 12, (source + y) / 2, "residual", anchor="end"))
    for y, note in NOTES:
        mixes = y == 360
        colour = style.WEIGHT if mixes else style.MUTED
        items.append(Text(middle + half + 24, y, note, fill=colour, bold=mixes))
    alt = (
        "From bottom to top: word rows plus position rows, multi-head attention, a sum with what "
        "went around it, normalise, feed-forward, a sum with what went around it, normalise. "
        "Multi-head attention alone mixes positions; the others treat each row by itself."
    )
    return Picture(680, 480, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
