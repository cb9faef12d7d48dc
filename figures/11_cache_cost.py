"""Operations of one layer for a text of T tokens: without a cache, with one, and in one pass."""

from pathlib import Path

import numpy as np

from attnbook import cost, style
from attnbook.diagrams import Panel, axes, curve, end_labels
from attnbook.picture import Picture, to_svg

SIZE = {"d": 4096, "H_q": 32, "H_kv": 8}
LENGTHS = tuple(2**n for n in range(15))  # 1 ... 16,384


def operations() -> dict[str, np.ndarray]:
    """Return the three counts at every length, summed over the tokens."""
    one = cost.flops(T=1, S=1, **SIZE)
    row, score = one.Q + one.K + one.V + one.Y, one.E + one.O
    T = np.array(LENGTHS, float)
    return {
        "without": row * T * (T + 1) / 2 + score * T * (T + 1) * (2 * T + 1) / 6,
        "with": row * T + score * T * (T + 1) / 2,
        "pass": row * T + score * T**2,
    }


def picture() -> Picture:
    """Draw the three curves on logarithmic scales."""
    panel = Panel(90, 66, 450, 200, (0, 14.2), (7, 17))
    counts = operations()
    looks = {
        "without": ("without a cache", style.GRADIENT, style.DASHES[1], "square"),
        "pass": ("one full pass", style.MUTED, style.DASHES[2], "triangle"),
        "with": ("with a cache", style.KEY, (), "circle"),
    }
    items = [
        axes(
            panel,
            title="Operations of one layer, $T$ tokens in all",
            x_label="tokens $T$",
            x_ticks=tuple((n, f"{2**n:,}") for n in (0, 4, 8, 12)),
            y_ticks=tuple((n, f"$10^{{{n}}}$") for n in (8, 11, 14, 17)),
        )
    ]
    for name, (_, colour, dash, marker) in looks.items():
        y = np.log10(counts[name])
        items.append(curve(panel, range(15), y, colour, dash=dash))
        items.append(curve(panel, range(0, 15, 2), y[::2], colour, dash=(1, 999), marker=marker))
    ends = [(np.log10(counts[n][-1]), text, colour) for n, (text, colour, _, _) in looks.items()]
    items.append(end_labels(panel, ends))
    alt = (
        "Curves of the operations of one layer against the number of tokens, on logarithmic "
        "scales: at 16,384 tokens "
        + ", ".join(f"{looks[n][0]} {counts[n][-1]:.1e}" for n in looks)
        + "."
    )
    return Picture(800, 330, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
