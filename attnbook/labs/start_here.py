"""The lab of chapter 00: one query reads two values, the smallest attention there is."""

from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, axes, bars, curve, mark, number
from attnbook.examples import D_TWO_SCORES
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Picture, Text
from attnbook.softmax import softmax

# Everything a reader sees, in one place.
DIFFERENCE = "score difference $u_1 − u_2$"
WEIGHTS = "Weights"
PLANE = "Values and output"
ALT = (
    "Left: bars for the weights {a1} and {a2} of two keys. Right: a plane with the values v1 at "
    "(2, 0) and v2 at (0, 4), a line between them, and on it the output at ({x}, {y})."
)
CAPTION = (
    "The weights are {a1} and {a2}; the output is $o$ = ({x}, {y}), "
    "on the line from $v_1$ to $v_2$."
)

CONTROLS = (
    Slider(
        "n",
        DIFFERENCE,
        (-3, -2, -1, 0, 1, 2, 3),
        start=0,
        format={
            -3: "−3 log 3",
            -2: "−2 log 3",
            -1: "−log 3",
            0: "0",
            1: "log 3",
            2: "2 log 3",
            3: "3 log 3",
        }.get,
    ),
)


class OneRead(NamedTuple):
    """The values that are read, their weights and the output ``o = a V``."""

    V: np.ndarray  # (2, 2)
    a: np.ndarray  # (2,)
    o: np.ndarray  # (2,)


def compute(n: int) -> OneRead:
    """Compute a = softmax([n log 3, 0]) and o = a V with the values of [D] section 5."""
    V = np.array(D_TWO_SCORES.V, float)
    a = softmax([n * np.log(3), 0])
    return OneRead(V, a, a @ V)


def draw(arrays: OneRead) -> Picture:
    """Draw the weights as bars, and the output as a point between the values."""
    left = Panel(60, 60, 220, 240, y_limits=(0, 1.15))
    right = Panel(400, 60, 360, 240, (0, 2.6), (0, 4.6))
    (x1, y1), (x2, y2), (x, y) = [(right.x(p), right.y(q)) for p, q in (*arrays.V, arrays.o)]
    items = [
        axes(left, title=WEIGHTS, x_ticks=(), y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
        bars(left, arrays.a, ("$a_1$", "$a_2$")),
        axes(right, title=PLANE),
        curve(right, arrays.V[:, 0], arrays.V[:, 1], style.MUTED, dash=style.DASHES[1]),
        mark(x1, y1, "square", style.VALUE),
        Text(x1 + 14, y1 - 18, "$v_1$", fill=style.VALUE),
        mark(x2, y2, "square", style.VALUE),
        Text(x2 + 14, y2 - 10, "$v_2$", fill=style.VALUE),
        mark(x, y, "circle", style.OUTPUT, 9),
        Text(x + 14, y - 42, "output $o$", fill=style.OUTPUT, bold=True),
    ]
    return Picture(800, 350, items, ALT.format(**_told(arrays)))


def caption(arrays: OneRead) -> str:
    """Say what the picture shows."""
    return CAPTION.format(**_told(arrays))


def _told(arrays: OneRead) -> dict[str, str]:
    a1, a2, x, y = (number(value) for value in (*arrays.a, *arrays.o))
    return {"a1": a1, "a2": a2, "x": x, "y": y}


def one_read(**state) -> Lab:
    """Return the lab of one query that reads two values; ``state`` sets its slider by name.

    Examples
    --------
    >>> one_read(n=1)
    one_read(n=1)
    """
    return Lab("one_read", CONTROLS, compute, draw, caption, state)
