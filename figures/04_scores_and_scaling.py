"""Scores and weights at three widths, undivided above and divided by the root of d_k below."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import Panel, axes, bars, histogram, number
from attnbook.labs.scores_and_scaling import EDGES, compute
from attnbook.picture import Picture, Text, to_svg

WIDTHS = (4, 64, 512)
ROWS = ((False, "$s$"), (True, "$s/√d_k$"))


def picture() -> Picture:
    """Draw a histogram of scores and a row of eight weights for each width and both divisions."""
    items, told = [], []
    for column, d_k in enumerate(WIDTHS):
        left = 50 + 250 * column
        title = f"width $d_k$ = {d_k}"
        items.append(Text(left + 117, 28, title, size=style.TITLE, anchor="middle", bold=True))
        for row, (divide, _) in enumerate(ROWS):
            arrays = compute(d_k, divide, tau=1.0, keys=8)
            top = 60 + 160 * row
            scores = Panel(left, top, 130, 100, (EDGES[0], EDGES[-1]), (0, 1.1))
            weights = Panel(left + 155, top, 80, 100, (0, 1), (0, 1.1))
            counts = arrays.counts.reshape(27, 3).sum(axis=1)  # bars of three units, one at 0
            items += [
                axes(scores, x_ticks=((-30, "−30"), (0, "0"), (30, "30")), y_ticks=()),
                histogram(scores, counts / counts.max(), EDGES[::3]),
                axes(weights, x_ticks=(), y_ticks=((1, "1"),)),
                bars(weights, arrays.a, digits=None),
                Text(weights.left + 40, weights.bottom + 18, "weights", anchor="middle"),
            ]
            told.append(
                f"{'divided' if divide else 'undivided'}, width {d_k}: standard deviation "
                f"{number(arrays.Z_sd, 1)}, largest weight {number(arrays.a.max())}"
            )
    for row, (_, name) in enumerate(ROWS):
        items.append(Text(24, 110 + 160 * row, name, size=style.TITLE, anchor="middle", rotate=-90))
    alt = "Histograms of random scores, each with one softmax row over eight keys: "
    return Picture(800, 355, items, alt + "; ".join(told) + ".")


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
