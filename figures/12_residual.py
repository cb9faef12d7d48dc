"""How unlike the rows are, layer by layer, with and without a residual connection."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.attention import attention
from attnbook.diagrams import Panel, axes, curve, end_labels, number
from attnbook.picture import Picture, to_svg

DEPTH, T, D = 12, 8, 16


def spread(residual: bool) -> list[float]:
    """Return the size of the rows without their mean, relative to their size, at each depth."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(T, D))
    found = []
    for _ in range(DEPTH + 1):
        found.append(float(np.linalg.norm(X - X.mean(axis=0)) / np.linalg.norm(X)))
        W_Q, W_K, W_V = rng.normal(size=(3, D, D)) / np.sqrt(D)
        Y = attention(X @ W_Q, X @ W_K, X @ W_V).O
        X = X + Y if residual else Y
        X = X * np.sqrt(T * D) / np.linalg.norm(X)  # the same size at every depth
    return found


def picture() -> Picture:
    """Draw the two curves."""
    panel = Panel(90, 60, 420, 220, (0, DEPTH), (0, 1))
    without, added = spread(residual=False), spread(residual=True)
    depth = range(DEPTH + 1)
    items = [
        axes(
            panel,
            title="Spread of the rows, relative to their size",
            x_label="layers",
            x_ticks=[(k, str(k)) for k in range(0, DEPTH + 1, 2)],
        ),
        curve(panel, depth, added, style.INK, marker="square"),
        curve(panel, depth, without, style.MUTED, dash=style.DASHES[1], marker="circle"),
        end_labels(
            panel,
            [
                (added[-1], "with residual", style.INK),
                (without[-1], "attention alone", style.MUTED),
            ],
        ),
    ]
    alt = (
        f"Attention layers with random projections. Without residual connections the relative "
        f"spread of the rows falls from {number(without[0])} to {number(without[3])} after three "
        f"layers and {number(without[-1])} after {DEPTH}; with them it is {number(added[-1])}."
    )
    return Picture(700, 350, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
