"""Two heads over one sequence: own projections, own weights, joined along the features."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import arrow
from attnbook.picture import Line, Picture, Rect, Text, to_svg

TOKENS = 4
SIZE = 20  # of one entry of a matrix


def grid(x, y, columns, colour, name="", split=None):
    """Draw a matrix of 4 rows as empty cells, its name below; a heavy line at the column split."""
    ground = style.shade((style.CARD, colour), 0.2)
    wide, high = columns * SIZE, TOKENS * SIZE
    items = [Rect(x, y, wide, high, ground, colour, 2)]
    items += [Line(x + SIZE * c, y, x + SIZE * c, y + high, colour, 0.8) for c in range(1, columns)]
    items += [Line(x, y + SIZE * t, x + wide, y + SIZE * t, colour, 0.8) for t in range(1, TOKENS)]
    if split:
        items.append(Line(x + SIZE * split, y, x + SIZE * split, y + high, colour, 4))
    if name:
        items.append(Text(x + wide / 2, y + high + 17, name, fill=colour, anchor="middle"))
    return items


def head(h, top):
    """Draw one head from its queries, keys and values to its output."""
    items = [Text(190, top - 20, f"head {h}", style.TITLE, bold=True)]
    named = (("Q", style.QUERY), ("K", style.KEY), ("V", style.VALUE))
    for n, (name, colour) in enumerate(named):
        items += grid(190 + 66 * n, top, 3, colour, f"${name}^{{({h})}}$")
    items += [
        arrow(388, top + 40, 420, top + 40, style.WEIGHT),
        grid(424, top, 4, style.WEIGHT, f"$A^{{({h})}}$"),
        Text(464, top - 20, "each row sums to 1", fill=style.WEIGHT, anchor="middle"),
        arrow(508, top + 40, 538, top + 40, style.OUTPUT),
        grid(542, top, 3, style.OUTPUT, f"$O^{{({h})}}$"),
    ]
    return items


def picture() -> Picture:
    """Draw the way from X through two heads, side by side into C, and through W_O to Y."""
    first, second = 60, 230
    middle = (first + second) / 2
    items = [
        grid(20, middle, 6, style.INK, "$X$, 4 x 6"),
        arrow(144, middle + 30, 184, first + 60),
        arrow(144, middle + 50, 184, second + 40),
        head(1, first),
        head(2, second),
        arrow(606, first + 50, 654, middle + 24, style.OUTPUT),
        arrow(606, second + 30, 654, middle + 56, style.OUTPUT),
        grid(660, middle, 6, style.OUTPUT, "$C$, 4 x 6", split=3),
        Text(720, middle - 20, "side by side", fill=style.OUTPUT, anchor="middle"),
        arrow(720, middle + 110, 720, 376, style.OUTPUT),
        Text(706, 340, "$W_O$, 6 x 6", anchor="end"),
        grid(660, 384, 6, style.OUTPUT, "$Y$, 4 x 6"),
        Text(20, 424, "Rows are the four tokens, in every matrix: each head reads", bold=True),
        Text(20, 450, "all of them. What is cut, 6 = 3 + 3, are features.", bold=True),
    ]
    told = (
        "X, four tokens by six features, goes into two heads. Each head has queries, keys and "
        "values of its own, four by three, and its own four by four map whose rows sum to 1; each "
        "gives an output, four by three. The two outputs stand side by side in C, four by six, "
        "joined along the features; C times W O, six by six, is Y, four by six."
    )
    return Picture(800, 500, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
