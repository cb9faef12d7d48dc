"""The first reconstruction of [E]'s lost example, from the input to the output, as tables."""

from pathlib import Path

import numpy as np

from attnbook import attention, style
from attnbook.diagrams import arrow, matrix
from attnbook.examples import E_RECONSTRUCTION_1
from attnbook.picture import Picture, Text, to_svg

ALT = (
    "Tables. Top, the input X, 2 by 4, and Q, K and V, each 2 by 4. Bottom, the raw scores {E}, "
    "the scaled scores {U}, the weights {A} and the output, 2 by 4. Arrows lead from one to "
    "the next."
)
CELL = (36, 34)


def picture() -> Picture:
    """Draw X with Q, K and V, and below them scores, scaled scores, weights and the output."""
    X, W_Q, W_K, W_V = (np.array(M, float) for M in E_RECONSTRUCTION_1[1:5])
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    O, A, U = attention(Q, K, V)
    E = Q @ K.T
    above, below = 72, 236
    items = [
        *matrix(30, above, X, "$X$", cell=CELL, digits=0),
        *matrix(236, above, Q, "$Q = X W_Q$", cell=CELL, digits=0, fill=style.QUERY),
        *matrix(424, above, K, "$K = X W_K$", cell=CELL, digits=0, fill=style.KEY),
        *matrix(612, above, V, "$V = X W_V$", cell=CELL, digits=0, fill=style.VALUE),
        *arrow(184, above + 34, 226, above + 34),
        *matrix(30, below, E, "$E = Q K^⊤$", cell=(44, 34), digits=0, fill=style.SCORE),
        *arrow(128, below + 34, 178, below + 34, style.SCORE),
        Text(153, below + 14, "÷ 2", fill=style.SCORE, anchor="middle"),
        *matrix(188, below, U, "$U$", cell=(48, 34), digits=1, fill=style.SCORE),
        *arrow(294, below + 34, 360, below + 34, style.WEIGHT),
        Text(327, below + 14, "softmax", fill=style.WEIGHT, anchor="middle"),
        *matrix(370, below, A, "$A$", cell=(64, 34), digits=3, fill=style.WEIGHT),
        *arrow(506, below + 34, 546, below + 34, style.OUTPUT),
        Text(526, below + 14, "· $V$", fill=style.OUTPUT, anchor="middle"),
        *matrix(554, below, O, "$O = A V$", cell=(56, 34), digits=3, fill=style.OUTPUT),
    ]
    told = {
        name: "; ".join(", ".join(f"{x:g}" for x in row.round(3)) for row in M)
        for name, M in (("E", E), ("U", U), ("A", A))
    }
    return Picture(800, 330, items, ALT.format(**told))


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
