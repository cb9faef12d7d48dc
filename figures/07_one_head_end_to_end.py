"""One head from its inputs to its output, a cell for each number; all six sizes differ."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import Group, arrow
from attnbook.examples import HEAD_ALL_WIDTHS_DIFFER as HEAD
from attnbook.picture import Picture, Rect, Segments, Text, to_svg

SIDE = 18  # of a cell
ROW = 2  # the marked query, counted from 0
ALT = (
    "One head with {T} queries and {S} keys. The query-side input, {T} by {d_q}, gives the "
    "queries, {T} by {d_k}; the other input, {S} by {d_m}, gives the keys, {S} by {d_k}, and the "
    "values, {S} by {d_v}. Queries and keys give the scores, {T} by {S}, then the weights, {T} by "
    "{S}; weights and values give the output, {T} by {d_v}. The row of the third "
    "query is marked in the input, the queries, the scores, the weights and the output."
)


def grid(
    left: float, middle: float, m: int, n: int, colour: str, name: str, shape: str, marked: bool
) -> Group:
    """Return an m x n matrix of empty cells, centred at a height, with its name and its shape."""
    width, height, top = n * SIDE, m * SIDE, middle - m * SIDE / 2
    lines = [(left, top + i * SIDE, left + width, top + i * SIDE) for i in range(1, m)]
    lines += [(left + j * SIDE, top, left + j * SIDE, top + height) for j in range(1, n)]
    items = [Rect(left, top, width, height, style.shade((style.CARD, colour), 0.14))]
    if marked:
        items.append(
            Rect(left, top + ROW * SIDE, width, SIDE, style.shade((style.CARD, colour), 0.6))
        )
    items += [
        Segments(tuple(lines), style.CARD, 1.5),
        Rect(left, top, width, height, None, colour, 2),
        Text(left + width / 2, top - 18, name, style.TITLE, colour, "middle", bold=True),
        Text(left + width / 2, top + height + 16, shape, fill=style.MUTED, anchor="middle"),
    ]
    return tuple(items)


def picture() -> Picture:
    """Draw the two inputs, queries, keys, values, scores, weights and output from left to right."""
    T, S = len(HEAD.X_q), len(HEAD.X_m)
    d_q, d_m, d_k, d_v = len(HEAD.W_Q), len(HEAD.W_K), len(HEAD.W_Q[0]), len(HEAD.W_V[0])
    high, low, lower = 100, 250, 410
    items = [
        *grid(26, high, T, d_q, style.INK, "$X_q$", "$T × d_q$", True),
        *grid(44, 330, S, d_m, style.INK, "$X_m$", "$S × d_m$", False),
        *grid(236, high, T, d_k, style.QUERY, "$Q$", "$T × d_k$", True),
        *grid(236, low, S, d_k, style.KEY, "$K$", "$S × d_k$", False),
        *grid(244, lower + 12, S, d_v, style.VALUE, "$V$", "$S × d_v$", False),
        *grid(374, high + 60, T, S, style.SCORE, "$E$, $U$, $Z$", "$T × S$", True),
        *grid(572, high + 60, T, S, style.WEIGHT, "$A$", "$T × S$", True),
        *grid(726, 290, T, d_v, style.OUTPUT, "$O$", "$T × d_v$", True),
        *arrow(164, high, 226, high, style.QUERY),
        Text(195, high - 18, "$W_Q$", fill=style.QUERY, anchor="middle"),
        *arrow(146, 310, 226, 266, style.KEY),
        Text(180, 262, "$W_K$", fill=style.KEY, anchor="middle"),
        *arrow(146, 350, 234, 404, style.VALUE),
        Text(176, 396, "$W_V$", fill=style.VALUE, anchor="middle"),
        *arrow(300, high + 10, 364, high + 46, style.SCORE),
        *arrow(300, low - 20, 364, high + 82, style.SCORE),
        *arrow(492, high + 60, 562, high + 60, style.WEIGHT),
        Text(527, high + 42, "softmax", style.TEXT, style.WEIGHT, "middle"),
        *arrow(688, high + 92, 720, 252, style.OUTPUT),
        *arrow(292, lower + 12, 718, 312, style.OUTPUT),
    ]
    alt = ALT.format(T=T, S=S, d_q=d_q, d_m=d_m, d_k=d_k, d_v=d_v)
    return Picture(800, 510, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
