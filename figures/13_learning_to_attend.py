"""A head that emerges: weights of layer 2 at four training steps, and the loss of five runs."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, axes, curve, number, vertical
from attnbook.labs.learning_to_attend import STEPS, compute_head
from attnbook.picture import Picture, Rect, Text, to_svg

SHOWN = (0, 65, 90, 200)
CELL = 8.5


def picture() -> Picture:
    """Draw four triangles of weights above the loss curves."""
    items, told = [], []
    for n, step in enumerate(SHOWN):
        head = compute_head(step, 2)
        left, top = 24 + 195 * n, 50
        items.append(Text(left, 24, f"step {step}", size=style.TITLE, bold=True))
        for i, j in np.argwhere(np.tri(len(head.A), dtype=bool)):
            fill = style.shade(style.SEQUENTIAL, head.A[i, j])
            items.append(Rect(left + CELL * j, top + CELL * i, CELL, CELL, fill, style.GRID, 0.7))
        place = STEPS.index(step)
        told.append(
            f"at step {step} the weight on the letters after an earlier copy is "
            f"{number(head.induction[place])} and the loss {number(head.loss[0, place])}"
        )
    panel = Panel(60, 280, 700, 110, (0, 200), (0, 5.2))
    items.append(
        axes(
            panel,
            title="Loss of five runs",
            x_label="training step",
            y_ticks=((0, "0"), (2.5, "2.5"), (5, "5")),
        )
    )
    for run, loss in enumerate(head.loss):
        stroke, dash = (style.MUTED, style.DASHES[2]) if run else (style.INK, ())
        items.append(curve(panel, STEPS, loss, stroke, dash=dash))
    items += [vertical(panel, step) for step in SHOWN]
    return Picture(800, 460, items, "Layer 2 of a small model: " + "; ".join(told) + ".")


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
