"""What two attention layers and a feed-forward network make of a single place."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, axes, curve, end_labels
from attnbook.heads import multi_head_attention
from attnbook.picture import Picture, to_svg

D = 6


def curves() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return t, and the first feature of attention and of the network at x = t x_1."""
    rng = np.random.default_rng(8)
    t = np.linspace(-2, 2, 81)
    X = t[:, None, None] * rng.normal(size=D)  # 81 inputs of one row each
    W = rng.normal(size=(2, 4, D, D)) / np.sqrt(D)
    W_1, W_2 = rng.normal(size=(D, 12)), rng.normal(size=(12, D)) / 4
    b = rng.normal(size=12)
    feed_forward = np.maximum(X @ W_1 + b, 0) @ W_2
    for layer in W:
        X = X + multi_head_attention(X, X, *layer, H_q=2).Y
    return t, X[:, 0, 0], feed_forward[:, 0, 0]


def picture() -> Picture:
    """Draw the two curves."""
    t, attended, fed = curves()
    top = float(np.ceil(max(abs(attended).max(), abs(fed).max())))
    panel = Panel(100, 60, 390, 220, (-2, 2), (-top, top))
    items = [
        axes(panel, title="First feature of the output", x_label="input"),
        curve(panel, t, attended, style.MUTED, dash=style.DASHES[1]),
        curve(panel, t, fed, style.INK),
        end_labels(
            panel,
            [
                (attended[-1], "2 attention layers", style.MUTED),
                (fed[-1], "feed-forward", style.INK),
            ],
        ),
    ]
    alt = (
        "One place, its input scaled from minus 2 to 2. What two attention layers with residual "
        "connections make of it is a straight line through the origin; what a feed-forward "
        "network makes of it is a line with bends."
    )
    return Picture(700, 350, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
