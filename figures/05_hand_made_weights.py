"""The sentence of [M]: the weights that follow from its queries and keys, and those set by hand."""

from pathlib import Path

import numpy as np

from attnbook.attention import attention
from attnbook.diagrams import heat_map
from attnbook.examples import M_SENTENCE
from attnbook.picture import Picture, Text, to_svg
from attnbook.style import MUTED, TITLE

TITLES = "What follows from $Q$ and $K$", "Set by hand"
TOKENS = tuple(token.replace("programming", "prog") for token in M_SENTENCE.tokens)


def picture() -> Picture:
    """Draw both weight matrices with their row sums, which are all 1."""
    Q, K, V, by_hand = (
        np.array(x, float) for x in (M_SENTENCE.Q_printed, M_SENTENCE.K, M_SENTENCE.V, M_SENTENCE.A)
    )
    items = []
    for left, title, A in zip((70, 465), TITLES, (attention(Q, K, V).A, by_hand), strict=True):
        items += [
            Text(left, 28, title, TITLE, bold=True),
            heat_map(left, 84, A, cell=(60, 44), row_labels=TOKENS, column_labels=TOKENS),
            Text(left + 285, 69, "sum", fill=MUTED, anchor="middle"),
            *(
                Text(left + 285, 106 + 44 * i, f"{row.sum():.2f}", fill=MUTED, anchor="middle")
                for i, row in enumerate(A)
            ),
        ]
    alt = (
        "Two heat maps of weights, four queries by four keys, every row of sum 1. Left, computed: "
        "all sixteen weights, rounded, lie between 0.24 and 0.27. Right, set by hand: I gives 0.60 "
        "to itself, love 0.50 to prog, GPU 0.50 to prog, prog 0.55 to GPU."
    )
    return Picture(800, 284, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
