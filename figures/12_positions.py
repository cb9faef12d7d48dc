"""The same three words in two orders: the row of each place is added to the row of the word."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, bars
from attnbook.picture import Line, Picture, Rect, Text, to_svg

WORDS = {"dog": (0.2, 0.9, 0.5), "bites": (0.8, 0.3, 0.2), "man": (0.4, 0.2, 0.9)}
PLACES = ((0.1, 0.1, 0.7), (0.4, 0.4, 0.4), (0.7, 0.1, 0.1))
ORDERS = (("dog", "bites", "man"), ("man", "bites", "dog"))


def picture() -> Picture:
    """Draw word, place and sum as three small bars each; the sums of "dog" differ."""
    items = []
    for left, words in zip((100, 460), ORDERS, strict=True):
        for k, word in enumerate(words):
            x = left + 112 * k
            rows = (np.array(WORDS[word]), np.array(PLACES[k]), None)
            rows = (*rows[:2], rows[0] + rows[1])
            if word == "dog":
                items.append(Rect(x - 10, 240, 92, 102, None, style.INK, 3, 1, 6))
            items.append(Text(x + 36, 26, word, anchor="middle", bold=True))
            for top, row, fill in zip(
                (44, 148, 250), rows, (style.MUTED, style.HATCH, style.INK), strict=True
            ):
                panel = Panel(x, top, 72, 80, y_limits=(0, 1.7))
                items += [
                    bars(panel, row, digits=None, fill=fill),
                    Line(x, panel.bottom, x + 72, panel.bottom, style.MUTED),
                ]
            items.append(Text(x + 36, 362, f"place {k + 1}", fill=style.MUTED, anchor="middle"))
    for y, text in ((96, "word"), (200, "+ place"), (302, "= sum")):
        items.append(Text(16, y, text, bold=True))
    alt = (
        "The words dog bites man and man bites dog, each as three bars; below, the bars of places "
        "one, two and three; below, their sums. The two sums for dog, at place one and at place "
        "three, are framed: they differ."
    )
    return Picture(800, 384, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
