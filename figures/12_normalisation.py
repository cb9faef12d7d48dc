"""How long the rows are, layer by layer, with and without normalisation."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.attention import attention
from attnbook.diagrams import Panel, axes, curve, end_labels, number
from attnbook.picture import Picture, to_svg

DEPTH, T, D = 12, 8, 16


def norm(X: np.ndarray) -> np.ndarray:
    """Return every row with mean 0 and variance 1."""
    centred = X - X.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True))


def lengths(normalised: bool) -> list[float]:
    """Return the mean length of a row at each depth of a residual stack."""
    rng = np.random.default_rng(12)
    X = norm(rng.normal(size=(T, D)))
    found = []
    for _ in range(DEPTH + 1):
        found.append(float(np.linalg.norm(X, axis=1).mean()))
        W_Q, W_K, W_V = rng.normal(size=(3, D, D)) / np.sqrt(D)
        X = X + attention(X @ W_Q, X @ W_K, X @ W_V).O
        X = norm(X) if normalised else X
    return found


def picture() -> Picture:
    """Draw the two curves."""
    free, kept = lengths(normalised=False), lengths(normalised=True)
    top = 10 * (int(max(free)) // 10 + 1)
    panel = Panel(100, 60, 410, 220, (0, DEPTH), (0, top))
    depth = range(DEPTH + 1)
    items = [
        axes(
            panel,
            title="Mean length of a row",
            x_label="layers",
            x_ticks=[(k, str(k)) for k in range(0, DEPTH + 1, 2)],
        ),
        curve(panel, depth, free, style.MUTED, dash=style.DASHES[1], marker="circle"),
        curve(panel, depth, kept, style.INK, marker="square"),
        end_labels(
            panel,
            [(free[-1], "residual alone", style.MUTED), (kept[-1], "normalised", style.INK)],
        ),
    ]
    alt = (
        f"Residual attention layers with random projections. Without normalisation the mean length "
        f"of a row grows from {number(free[0], 1)} to {number(free[-1], 1)} in {DEPTH} layers; "
        f"normalised after each layer it stays at {number(kept[-1], 1)}."
    )
    return Picture(700, 350, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
