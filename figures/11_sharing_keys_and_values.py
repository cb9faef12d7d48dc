"""Eight query heads with eight, two and one key/value heads: what the cache and the scores cost."""

from pathlib import Path

from attnbook import cost, style
from attnbook.picture import Circle, Line, Picture, Rect, Text, to_svg

H_Q = 8
COLUMNS = (("MHA", 8), ("GQA", 2), ("MQA", 1))
SIZE = {"S": 4096, "d_k": 64}
WIDE = 190


def picture() -> Picture:
    """Draw the three columns; the bars compare with the first."""
    items: list = [
        Text(24, 82, "queries", fill=style.QUERY, bold=True),
        Text(24, 162, "keys, values", fill=style.KEY, bold=True),
        Text(24, 226, "cache"),
        Text(24, 262, "scores, reads"),
    ]
    told = []
    for column, (name, H_kv) in enumerate(COLUMNS):
        left = 165 + 215 * column
        queries = [left + (h + 0.5) * WIDE / H_Q for h in range(H_Q)]
        r = H_Q // H_kv
        shared = [sum(queries[g * r : (g + 1) * r]) / r for g in range(H_kv)]
        title = f"{name}: $H_{{kv}}$ = {H_kv}"
        items.append(Text(left + WIDE / 2, 34, title, size=style.TITLE, anchor="middle", bold=True))
        items += [Line(x, 91, shared[h // r], 153, style.MUTED, 2) for h, x in enumerate(queries)]
        items += [Circle(x, 82, 9, style.QUERY) for x in queries]
        items += [Rect(x - 9, 153, 18, 18, style.KEY, radius=3) for x in shared]
        cache, mha = (cost.cache_bytes(H_kv=n, bytes_per_number=2, **SIZE) for n in (H_kv, H_Q))
        work, of_mha = (cost.flops(T=4096, S=4096, d=512, H_q=H_Q, H_kv=n) for n in (H_kv, H_Q))
        shares = cache / mha, (work.E + work.O) / (of_mha.E + of_mha.O)
        for y, share, colour in zip((226, 262), shares, (style.KEY, style.SCORE), strict=True):
            items += [
                Rect(left, y - 10, WIDE, 20, None, style.MUTED, 1),
                Rect(left, y - 10, WIDE * share, 20, colour),
            ]
        told.append(f"{name} with {H_kv} key/value heads: cache {shares[0]:g}, work {shares[1]:g}")
    alt = (
        "Eight query heads with lines to the key/value heads that they read, in three columns. "
        "Bars below, as shares of the first column: " + "; ".join(told) + "."
    )
    return Picture(800, 292, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
