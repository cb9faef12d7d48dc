"""The sentence of [M]: its exact scores before the causal mask, after it, and the weights."""

from pathlib import Path

import numpy as np

from attnbook import style
from attnbook.diagrams import arrow, heat_map
from attnbook.examples import M_SENTENCE
from attnbook.masks import causal
from attnbook.picture import Picture, Text, to_svg
from attnbook.softmax import softmax

TOKENS = tuple(token.replace("programming", "prog") for token in M_SENTENCE.tokens)
CELL = (52, 40)


def picture() -> Picture:
    """Draw scaled scores, the scores that take part, and the weights."""
    Q = np.array(M_SENTENCE.X, float) @ np.array(M_SENTENCE.W_Q, float)
    U = Q @ np.array(M_SENTENCE.K, float).T / np.sqrt(6)
    allowed = causal(4, 4)
    grids = (
        ("Scaled scores $U$", U, None),
        ("Causal: $U + M$", U, allowed),
        ("Weights $A$", softmax(U, allowed), allowed),
    )
    items = []
    for n, (title, values, mask) in enumerate(grids):
        left = 64 + 258 * n
        items += [
            Text(left, 26, title, style.TITLE, bold=True),
            heat_map(
                left,
                84,
                values,
                cell=CELL,
                row_labels=TOKENS if n == 0 else (),
                column_labels=TOKENS,
                allowed=mask,
            ),
        ]
        if n < 2:
            items.append(arrow(left + 216, 164, left + 248, 164, style.MUTED))
    told = (
        "Three heat maps, four queries by four keys of the sentence I love GPU prog. Left, the "
        "scaled scores, all sixteen. Middle, the same after the causal mask: the six cells above "
        "the diagonal are hatched, the others unchanged. Right, the weights: I gives 1.00 to "
        "itself, love 0.51 to I and 0.49 to itself, GPU and prog spread theirs nearly evenly over "
        "the keys up to their own."
    )
    return Picture(800, 268, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
