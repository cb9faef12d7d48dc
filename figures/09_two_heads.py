"""The two heads of [E], rebuilt: from two sets of projections to one output."""

from pathlib import Path

import sympy as sp

from attnbook import exact, style
from attnbook.diagrams import arrow, matrix
from attnbook.examples import E_RECONSTRUCTION_HEADS
from attnbook.picture import Picture, Text, to_svg

HIGH = 30


def head(h, top, Q, K, V, result):
    """Draw one head: Q, K, V, scaled scores, weights, output."""
    items = [Text(20, top - 52, f"Head {h}", style.TITLE, bold=True)]
    parts = (("Q", Q, style.QUERY), ("K", K, style.KEY), ("V", V, style.VALUE))
    for n, (name, values, colour) in enumerate(parts):
        label = f"${name}^{{({h})}}$"
        items += matrix(
            24 + 100 * n, top, values.tolist(), label, cell=(38, HIGH), digits=0, fill=colour
        )
    parts = (
        (f"$U^{{({h})}}$", result.U, style.SCORE),
        (f"$A^{{({h})}}$", result.A, style.WEIGHT),
        (f"$O^{{({h})}}$", result.O, style.OUTPUT),
    )
    for n, (label, values, colour) in enumerate(parts):
        left = 336 + 154 * n
        items += matrix(left, top, exact.decimals(values, 3), label, cell=(64, HIGH), fill=colour)
        if n:
            items += arrow(left - 22, top + HIGH, left - 5, top + HIGH, colour)
    return items


def picture() -> Picture:
    """Draw both heads, and below them C W_O = Y."""
    two = E_RECONSTRUCTION_HEADS
    X = exact.matrix(two.of.X)
    items, outputs = [], []
    for h in (0, 1):
        Q, K, V = (X * exact.matrix(W[h]) for W in (two.W_Q, two.W_K, two.W_V))
        result = exact.attention(Q, K, V)
        items += head(h + 1, 74 + 140 * h, Q, K, V, result)
        outputs.append(result.O)
    C = sp.Matrix.hstack(*outputs)
    Y, top = C * exact.matrix(two.W_O), 376
    tints = [style.shade((style.CARD, colour), 0.2) for colour in (style.QUERY, style.KEY)]
    items += [
        Text(20, top - 52, "Side by side, then $W_O$", style.TITLE, bold=True),
        matrix(24, top + HIGH, exact.decimals(C, 3), "$C$ = [$O^{(1)}$ $O^{(2)}$]",
               cell=(62, HIGH), fill=style.OUTPUT, grounds=[[tints[c // 2] for c in range(4)]] * 2),
        matrix(300, top, two.W_O, "$W_O$", cell=(44, HIGH), digits=0,
               grounds=[[tints[p // 2]] * 4 for p in range(4)]),
        Text(496, top + 2 * HIGH, "=", style.TITLE, anchor="middle"),
        matrix(514, top + HIGH, exact.decimals(Y, 3), "$Y$", cell=(64, HIGH), fill=style.OUTPUT),
    ]  # fmt: skip
    told = (
        "Three lines. For head 1 and for head 2: the two by two matrices Q, K, V, which differ "
        "between the heads, then scaled scores, weights with rows of sum 1, and output. Third "
        "line: C, the two outputs side by side, two by four, times W O, four by four, of zeros and "
        "plus or minus ones, is Y, two by four. Columns of C and rows of W O are shaded by head."
    )
    return Picture(800, 520, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
