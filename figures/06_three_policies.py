"""Rows without a key under three policies: raise, zero, uniform."""

from pathlib import Path

import numpy as np

from attnbook import masks, style
from attnbook.diagrams import heat_map
from attnbook.picture import Picture, Text, to_svg
from attnbook.softmax import softmax

N = 5
LABELS = ("pad", "pad", "3", "4", "5")
ERROR, ALL = "error", "all"  # a row that raises, a row that reads every key


def weights() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the allowed set, and the weights by policy (a row that raises: zero)."""
    real = np.array([False, False, True, True, True])
    allowed = masks.causal(N, N) & masks.padding(real)
    allowed[4] = False  # a real query whose keys were all filtered out
    U = np.zeros((N, N))
    U[:, 2] = 1
    some = allowed.any(axis=1)
    return (
        allowed,
        {
            "raise": softmax(U, allowed, query_valid=real & some),
            "zero": softmax(U, allowed, query_valid=some),
            "uniform": softmax(np.where(allowed, U, -1e9)),
        },
    )


def picture() -> Picture:
    """Draw the weights of one left-padded batch row under the three policies."""
    allowed, A = weights()
    words = {
        "raise": ("zero", "zero", "", "", ERROR),
        "zero": ("zero", "zero", "", "", "zero"),
        "uniform": (ALL, ALL, "", "", ALL),
    }
    titles = {"raise": "raise (this book)", "zero": "zero", "uniform": "uniform"}
    items = []
    for n, (policy, values) in enumerate(A.items()):
        left, top = (52, 314, 560)[n], 88
        items += [
            Text(left, 26, titles[policy], style.TITLE, bold=True),
            heat_map(
                left,
                top,
                values,
                cell=(40, 36),
                row_labels=LABELS if n == 0 else (),
                column_labels=LABELS,
                digits=1,
                allowed=allowed | (values > 0),
            ),
        ]
        for i, word in enumerate(words[policy]):
            bad = word in (ERROR, ALL)
            ink = style.GRADIENT if bad else style.INK
            if word:
                y = top + 36 * (i + 0.5)
                items.append(Text(left + 208, y, word, fill=ink, bold=bad))
    told = (
        "Three heat maps of the weights of five queries, the first two of them padding on the "
        "left. Query 3 reads key 3 alone, query 4 reads keys 3 and 4 with weights 0.7 and 0.3, "
        "query 5 is real but has no key. Raise: the padded rows are zero, and the row of query 5 "
        "raises an error. Zero: all three rows without a key are zero. Uniform: all three read all "
        "five keys with weight 0.2 each, the padded and the later ones too."
    )
    return Picture(800, 288, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
