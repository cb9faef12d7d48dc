"""The product Q = X W_Q in four views: which cells of X, W_Q and Q belong together."""

from pathlib import Path

from attnbook import style
from attnbook.labs.queries_keys_and_values import SHORT
from attnbook.picture import Picture, Rect, Text, to_svg

CELL = 16
VIEWS = (  # title, marked row and column of X, W_Q and Q (None: all of them), equation
    ("entry: a token meets an extractor", (1, None), (None, 2), (1, 2), "$q_{ic} = x_i · w_c$"),
    ("row: each token alone", (1, None), (None, None), (1, None), "$q_i = x_i W_Q$"),
    ("column: one extractor, all tokens", (None, None), (None, 2), (None, 2),
     "$Q_{:c} = X w_c$"),
    ("layer: one feature, all over $Q$", (None, 2), (2, None), (None, None),
     "$Q$ = sum over $p$ of $X_{:p}$ (row $p$ of $W_Q$)"),
)  # fmt: skip


def grid(x, middle, rows, marked, label, colour):
    """Draw a matrix with six columns as cells, some of them full."""
    y, items = middle - rows * CELL / 2, []
    for i in range(rows):
        for j in range(6):
            full = marked[0] in (None, i) and marked[1] in (None, j)
            ground = colour if full else style.CARD
            items.append(Rect(x + j * CELL, y + i * CELL, CELL, CELL, ground, style.HATCH, 1))
    items.append(Text(x + 3 * CELL, middle - 3 * CELL - 14, label, fill=colour, anchor="middle",
                      bold=True))  # fmt: skip
    return items


def picture() -> Picture:
    """Draw the four views in two rows of two."""
    items = []
    for n, (title, of_x, of_w, of_q, equation) in enumerate(VIEWS):
        left, top = 16 + 392 * (n % 2), 28 + 230 * (n // 2)
        middle = top + 102
        items.append(Text(left, top, title, style.TITLE, bold=True))
        items += [
            Text(left + 44, middle + (i - 1.5) * CELL, name, anchor="end")
            for i, name in enumerate(SHORT)
        ]
        items += [
            *grid(left + 50, middle, 4, of_x, "$X$", style.INK),
            *grid(left + 160, middle, 6, of_w, "$W_Q$", style.SCORE),
            *grid(left + 284, middle, 4, of_q, "$Q$", style.QUERY),
            Text(left + 270, middle, "=", style.TITLE, anchor="middle", bold=True),
            Text(left + 50, top + 174, equation),
        ]
    told = (
        "The product of a 4 by 6 matrix X and a 6 by 6 matrix W Q four times. Entry: row love of X "
        "and column 3 of W Q give one entry of Q. Row: row love of X and all of W Q give row love "
        "of Q. Column: all of X and column 3 of W Q give column 3 of Q. Layer: column 3 of X and "
        "row 3 of W Q give a layer over all of Q."
    )
    return Picture(800, 456, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
