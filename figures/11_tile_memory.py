"""Recorded peak memory of attention: dense, and in tiles of 64, 128 and 512."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, axes, curve, end_labels
from attnbook.labs.sharing_keys_and_values import LENGTHS, compute_memory, size
from attnbook.picture import Picture, to_svg

TILES = ((512, style.QUERY, "diamond"), (128, style.VALUE, "triangle"), (64, style.KEY, "circle"))


def picture() -> Picture:
    """Draw the curves on logarithmic scales; what was not measured is dashed."""
    panel = Panel(100, 66, 430, 230, (7, 14.2), (17, 33))
    places = np.log2(LENGTHS)
    dense = compute_memory(64, LENGTHS[0])
    last = int(np.flatnonzero(dense.dense)[-1])
    measured, formula = np.log2(dense.dense[: last + 1]), np.log2(dense.formula[last:])
    items = [
        axes(
            panel,
            title="Peak memory of one head, $d_k = d_v$ = 64, float64",
            x_label="length $T = S$",
            x_ticks=tuple((n, f"{2**n:,}") for n in (7, 9, 11, 13)),
            y_ticks=((20, "1 MiB"), (25, "32 MiB"), (30, "1 GiB")),
        ),
        curve(panel, places[: last + 1], measured, style.GRADIENT, marker="square"),
        curve(panel, places[last:], formula, style.GRADIENT, dash=style.DASHES[1]),
    ]
    ends = [(formula[-1], "dense (dashed: formula)", style.GRADIENT)]
    told = [f"dense {size(dense.formula[-1])} by formula"]
    for tile, colour, marker in TILES:
        peaks = compute_memory(tile, LENGTHS[0]).tiled
        items.append(curve(panel, places, np.log2(peaks), colour, marker=marker))
        ends.append((np.log2(peaks[-1]), f"tiles of {tile}", colour))
        told.append(f"tiles of {tile} {size(peaks[-1])}")
    items.append(end_labels(panel, ends))
    alt = "Curves of peak memory against length on logarithmic scales; at 16,384: " + ", ".join(
        told
    )
    return Picture(800, 360, items, alt + ".")


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
