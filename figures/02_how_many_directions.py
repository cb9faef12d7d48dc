"""How many directions more than 85 degrees apart there are: what is built, proved and claimed."""

from fractions import Fraction
from math import cos, floor, log10, radians
from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Entry, Panel, legend, mark
from attnbook.directions import certified, most_lines, most_points
from attnbook.picture import Line, Picture, Rect, Text, to_svg

C = cos(radians(85))
ABOVE_C = Fraction("0.0871557427477")  # cos 85 degrees, rounded up
# The polynomials that chapter 02 uses in 512 dimensions, as factors, coefficients of 1, t, t^2 ...
LINES = [(-(ABOVE_C**2), 0, 1), *[(-Fraction("0.00061360881"), 0, 1)] * 2]
POINTS = [(-ABOVE_C, 1), *[(*map(Fraction, ("-0.0001164606", "0.00551066", "0.189796", "1")),)] * 2]


def certified_512(factors) -> int:
    """Return how many directions at most a product of polynomials allows."""
    product = np.array([Fraction(1)])
    for factor in factors:
        product = np.convolve(product, np.array([Fraction(x) for x in factor]))
    return floor(certified(product.tolist(), 512))


CASES = (
    (100, (300, floor(most_lines(100, C))), (600, floor(most_points(100, C)))),
    (512, (2**18, certified_512(LINES)), (2**19, certified_512(POINTS))),
)
CLAIM = 12  # 10^12 in 100 dimensions


def picture() -> Picture:
    """Draw two scales of powers of ten with brackets from what is built to what is proved."""
    items = []
    for row, (n, lines, points) in enumerate(CASES):
        panel = Panel(130, 60 + 190 * row, 610, 100, (0, 13))
        items += [
            Text(24, panel.top - 24, f"{n} dimensions", style.TITLE, bold=True),
            Line(panel.left, panel.bottom, panel.right, panel.bottom, style.MUTED),
        ]
        for power in range(14):
            x = panel.x(power)
            items.append(Line(x, panel.bottom, x, panel.bottom + 6, style.MUTED))
            if power % 2 == 0:
                text = "1" if power == 0 else "10" if power == 1 else f"$10^{{{power}}}$"
                items.append(Text(x, panel.bottom + 20, text, fill=style.MUTED, anchor="middle"))
        for name, (low, high), up, fill in (
            ("lines", lines, 28, style.SCORE),
            ("points", points, 68, style.WEIGHT),
        ):
            y, left, right = panel.top + up, panel.x(log10(low)), panel.x(log10(high))
            told = " to ".join(f"{N:,}" if N > 9999 else str(N) for N in (low, high)).replace(
                ",", " "
            )
            items += [
                Text(24, y, name, fill=fill, bold=True),
                Rect(left, y - 8, right - left, 16, fill),
                Text(right + 10, y, told, fill=fill),
            ]
        x = panel.x(log10(n))
        items.append(mark(x, panel.bottom, "triangle", style.INK, 8))
        if n == 100:
            x = panel.x(CLAIM)
            items.append(mark(x, panel.bottom, "diamond", style.GRADIENT, 8))
            items.append(
                Text(x, panel.bottom - 26, "claimed", fill=style.GRADIENT, anchor="middle")
            )
    items += [
        legend(470, 8, [Entry("orthogonal: $n$", style.CARD)]),
        mark(484, 20, "triangle", style.INK, 8),
    ]
    told = "; ".join(
        f"{n} dimensions: lines between {a[0]} and {a[1]}, points between {b[0]} and {b[1]}"
        for n, a, b in CASES
    )
    alt = f"Scales of powers of ten. {told}. The claim of 10 to the 12 lies far to the right."
    return Picture(800, 400, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
