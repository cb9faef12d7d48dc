"""Weights of the sentence: computed and set by hand, each without and with a causal mask."""

from pathlib import Path

import numpy as np

from attnbook import attention, masks, softmax, style
from attnbook.diagrams import heat_map
from attnbook.examples import M_SENTENCE
from attnbook.picture import Picture, Text, to_svg

TOKENS = ("I", "love", "GPU", "prog")
ALT = (
    "Four heat maps of 4 by 4 weights, rows for queries. Computed, no mask: {}. Computed, causal: "
    "{}. Set by hand, no mask: {}. Set by hand, then causal: {}."
)


def picture() -> Picture:
    """Draw the two kinds of weights one above the other, masked on the right."""
    X, W_Q, W_K, W_V = (np.array(M, float) for M in (M_SENTENCE.X, *M_SENTENCE[3:6]))
    causal, everything = masks.causal(4, 4), np.ones((4, 4), bool)
    by_hand = np.log(np.array(M_SENTENCE.A, float))
    items, told = [], []
    for row, name in enumerate(("computed from $X$", "set by hand")):
        for column, (kind, allowed) in enumerate((("no mask", everything), ("causal", causal))):
            A = softmax(by_hand, allowed)
            if row == 0:
                A = attention(X @ W_Q, X @ W_K, X @ W_V, allowed).A
            left, top = 84 + 392 * column, 96 + 300 * row
            items += [
                Text(left, top - 62, f"{name}, {kind}", style.TITLE, bold=True),
                *heat_map(
                    left,
                    top,
                    A,
                    cell=(70, 46),
                    row_labels=TOKENS,
                    column_labels=TOKENS,
                    digits=3,
                    allowed=allowed,
                ),
            ]
            told.append("; ".join(", ".join(f"{x:.3f}" for x in a) for a in A))
    return Picture(800, 600, items, ALT.format(*told))


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
