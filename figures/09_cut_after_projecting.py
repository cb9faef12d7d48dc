"""What is cut into heads is Q, that is the columns of W_Q; every head reads all of X."""

from pathlib import Path

from attnbook import exact, style
from attnbook.diagrams import matrix
from attnbook.examples import M_SENTENCE
from attnbook.picture import Line, Picture, Rect, Text, to_svg

HIGH = 30
TINTS = [style.shade((style.CARD, colour), 0.2) for colour in (style.QUERY, style.KEY)]


def halves(rows):
    """Ground for the columns of head 1 and of head 2."""
    return [[TINTS[c // 3] for c in range(6)] for _ in range(rows)]


def picture() -> Picture:
    """Draw X W_Q = Q with the columns of the two heads, and one entry of head 1."""
    X, W_Q = exact.matrix(M_SENTENCE.X), exact.matrix(M_SENTENCE.W_Q)
    Q = X * W_Q
    top, left_x, left_w, left_q = 60, 24, 276, 532
    rows = top + HIGH  # X and Q are centred on the six rows of W_Q
    items = [
        matrix(left_x, rows, exact.decimals(X, 1), "$X$", cell=(38, HIGH)),
        matrix(left_w, top, exact.decimals(W_Q, 1), "$W_Q$", cell=(38, HIGH), grounds=halves(6)),
        Text(left_q - 16, top + 3 * HIGH, "=", style.TITLE, anchor="middle"),
        matrix(left_q, rows, exact.decimals(Q, 2), "$Q$", cell=(42, HIGH), grounds=halves(4)),
        Rect(left_x + 4, rows, 220, HIGH, None, style.INK, 3, radius=4),
        Rect(left_w + 1, top, 36, 6 * HIGH, None, style.INK, 3, radius=4),
        Rect(left_q + 1, rows, 40, HIGH, None, style.INK, 3, radius=4),
    ]
    for left, cell, above, n in ((left_w, 38, top, 6), (left_q, 42, rows, 4)):
        middle, below = left + 3 * cell, above + n * HIGH + 20
        items.append(Line(middle, above, middle, below, style.INK, 2, (9, 5)))
        for h in (1, 2):
            place = left + (1.5 + 3 * (h - 1)) * cell
            items.append(Text(place, below, f"head {h}", anchor="middle", bold=True))
    products = " + ".join(
        f"{exact.decimal(a, 1)}·{exact.decimal(b, 1)}"
        for a, b in zip(X[0, :], W_Q[:, 0], strict=True)
    )
    halves_of = [exact.decimal((X[0, s] * W_Q[s, 0])[0], 2) for s in (slice(0, 3), slice(3, 6))]
    items += [
        Text(24, 306, f"$q_{{11}}$ = {products}"),
        Text(
            24,
            334,
            f"= {halves_of[0]} (features 1 to 3) + {halves_of[1]} (features 4 to 6) = "
            f"{exact.decimal(Q[0, 0], 2)}",
            bold=True,
        ),
    ]
    told = (
        "The product of X, four by six, and W Q, six by six, gives Q, four by six. A dashed line "
        "cuts the columns of W Q and of Q into those of head 1 and those of head 2; X is not cut. "
        "The first entry of Q, 0.38, belongs to head 1: features 1 to 3 of row I bring 0.19 of it "
        "and features 4 to 6 the other 0.19."
    )
    return Picture(800, 362, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
