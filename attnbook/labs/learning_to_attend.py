"""Labs of chapter 13: learning curves with and without the scale, and a head that emerges.

Both show what ``figures/record_learning.py`` recorded while it trained: a run takes seconds, a
slider must not.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.diagrams import (
    Group,
    Panel,
    apart,
    axes,
    curve,
    end_labels,
    horizontal,
    number,
    vertical,
)
from attnbook.labs._progress import progress_bar as progress_bar
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Picture, Rect, Text
from attnbook.training.patterns import after_the_same, previous

RECORDED = Path(__file__).parent / "recorded" / "learning_to_attend.npz"

# Everything a reader sees, in one place.
D_K = "width $d_k$"
RATE = "rate of Adam"
LOSS = "Loss of three runs each"
ENTROPY = "Entropy / log $S$"
STEP = "step"
DIVIDED, UNDIVIDED = "divided", "not divided"
GUESS = "guessing: log 4"
ALT_CURVES = (
    "Two plots over 200 training steps at width {d_k} and rate {rate}, three runs each. Left, the "
    "loss at the end: divided by the root of the width {divided}, not divided {undivided}. Right, "
    "the entropy of the weights as a share of its maximum, at the first step: divided "
    "{divided_start}, not divided {undivided_start}."
)
CAPTION_CURVES = (
    "Mean loss of the last five steps: divided {divided}, not divided {undivided}. Entropy at the "
    "first step: divided {divided_start}, not divided {undivided_start} of log 5.{cut}"
)
CUT = " Where a loss lies above {top}, its curve is cut."
TO = "{low} to {high}"

TRAINED = "training step"
LAYER = "layer shown"
HEAT = "Layer {layer}: who reads whom"
FRAMED = ("framed: the letter before", "framed: after an earlier copy")
FIVE_RUNS = "Loss of five runs"
SCORES = "Weight on framed keys"
FIRST, SECOND = "layer 1", "layer 2"
ALT_HEAD = (
    "Left, the weights of layer {layer} after {step} training steps on the letters {letters}, a "
    "row for each letter that reads; framed are {framed}. They hold {share} of the weight of "
    "their rows. Right, over 200 steps: the loss of five runs, now {loss}; the weight that layer 1 "
    "gives to the letter before, now {previous}, and that layer 2 gives to what followed an "
    "earlier copy, now {induction}."
)
FRAMED_ALT = ("the letters just before", "the letters that followed an earlier copy of this one")
CAPTION_HEAD = (
    "After {step} steps the loss of this run is {loss} ({all} over five runs). On average over 64 "
    "sequences layer 1 gives {previous} of its weight to the letter before, in the rows that a "
    "later letter may read; layer 2 gives {induction} to what followed an earlier copy of the "
    "letter."
)

WIDTHS = (4, 16, 64, 256, 1024)
RATES = (0.001, 0.003, 0.01)
MOST_LOSS = 2.5  # of the axis; at large widths the first losses lie far above
STEPS = tuple(range(0, 201, 5))


@lru_cache(maxsize=1)
def recorded() -> dict[str, np.ndarray]:
    """Return the recorded arrays by name; what was stored in thousandths as plain numbers.

    Examples
    --------
    >>> recorded()["A"].shape
    (41, 2, 20, 20)
    """
    with np.load(RECORDED) as file:
        arrays = {name: file[name] for name in file.files}
    arrays = {k: x / 1000 if x.dtype == np.uint16 else x for k, x in arrays.items()}
    for x in arrays.values():
        x.flags.writeable = False
    return arrays


# ---------------------------------------------------------------- learning curves

CURVE_CONTROLS = (
    Slider("d_k", D_K, WIDTHS, start=64),
    Slider("rate", RATE, RATES, start=0.003, format="{:g}".format),
)


class Curves(NamedTuple):
    """Loss and entropy of three runs each, not divided and divided, (2, runs, kept steps)."""

    d_k: int
    rate: float
    loss: np.ndarray  # means over five steps
    entropy: np.ndarray  # share of its maximum, at every fifth step


def compute_curves(d_k: int, rate: float) -> Curves:
    """Look the recorded runs up."""
    place = WIDTHS.index(d_k), RATES.index(rate)
    kept = recorded()
    return Curves(d_k, rate, kept["curve_loss"][place], kept["curve_entropy"][place])


def draw_curves(arrays: Curves) -> Picture:
    """Draw the loss on the left and the entropy on the right."""
    left = Panel(70, 50, 270, 250, (0, 200), (0, MOST_LOSS))
    right = Panel(430, 50, 230, 250, (0, 200), (0, 1.02))
    x = np.arange(0, 200, 5)
    items = [
        axes(left, title=LOSS, x_label=STEP, x_ticks=_hundreds(200)),
        horizontal(left, np.log(4), stroke=style.MUTED),
        Text(left.right - 4, left.y(np.log(4)) - 14, GUESS, fill=style.MUTED, anchor="end"),
        axes(
            right,
            title=ENTROPY,
            x_label=STEP,
            x_ticks=_hundreds(200),
            y_ticks=((0, "0"), (0.5, "0.5"), (1, "1")),
        ),
    ]
    looks = ((style.MUTED, style.DASHES[1]), (style.WEIGHT, style.DASHES[0]))
    for divide, (stroke, dash) in enumerate(looks):
        for loss, spread in zip(arrays.loss[divide], arrays.entropy[divide], strict=True):
            items.append(curve(left, x + 2, np.minimum(loss, MOST_LOSS), stroke, dash=dash))
            items.append(curve(right, x, spread, stroke, dash=dash))
    ends = arrays.entropy[:, :, -1].mean(axis=1)
    items.append(
        end_labels(
            right, [(ends[1], DIVIDED, style.WEIGHT), (ends[0], UNDIVIDED, style.MUTED)], x=195
        )
    )
    return Picture(800, 370, items, ALT_CURVES.format(rate=f"{arrays.rate:g}", **_told(arrays)))


def caption_curves(arrays: Curves) -> str:
    """Say what the picture shows."""
    cut = CUT.format(top=number(MOST_LOSS, 1)) if arrays.loss.max() > MOST_LOSS else ""
    return CAPTION_CURVES.format(cut=cut, **_told(arrays))


def _told(arrays: Curves) -> dict[str, str]:
    return {
        "d_k": str(arrays.d_k),
        "divided": _range(arrays.loss[1, :, -1]),
        "undivided": _range(arrays.loss[0, :, -1]),
        "divided_start": _range(arrays.entropy[1, :, 0], 2),
        "undivided_start": _range(arrays.entropy[0, :, 0], 2),
    }


def _range(values: np.ndarray, digits: int = 3) -> str:
    low, high = number(values.min(), digits), number(values.max(), digits)
    return low if low == high else TO.format(low=low, high=high)


def _hundreds(last: int) -> tuple[tuple[int, str], ...]:
    return tuple((n, str(n)) for n in range(0, last + 1, 100))


def learning_curves(**state) -> Lab:
    """Return the lab of learning curves with and without 1/sqrt(d_k); ``state`` sets sliders.

    Examples
    --------
    >>> learning_curves(d_k=1024)
    learning_curves(d_k=1024, rate=0.003)
    """
    return Lab(
        "learning_curves", CURVE_CONTROLS, compute_curves, draw_curves, caption_curves, state
    )


# ---------------------------------------------------------------- a head that emerges

HEAD_CONTROLS = (
    Slider("step", TRAINED, STEPS, start=0),
    Slider("layer", LAYER, (1, 2), start=2),
)


class Head(NamedTuple):
    """The weights A of one layer on one sequence, and how the runs went."""

    step: int
    layer: int
    tokens: np.ndarray  # (T,)
    A: np.ndarray  # (T, T)
    framed: np.ndarray  # (T, T), the keys that this layer comes to read
    loss: np.ndarray  # (runs, kept steps), the first is the run shown
    previous: np.ndarray  # (kept steps,)
    induction: np.ndarray  # (kept steps,)


def compute_head(step: int, layer: int) -> Head:
    """Look the recorded run up, and find the keys to be framed."""
    kept, n = recorded(), STEPS.index(step)
    tokens = kept["tokens"]
    copied = after_the_same(tokens)
    passed_on = previous(len(tokens)) & copied.any(axis=0)[:, None]
    return Head(
        step=step,
        layer=layer,
        tokens=tokens,
        A=kept["A"][n, layer - 1],
        framed=(passed_on, copied)[layer - 1],
        loss=kept["loss"],
        previous=kept["previous"][0],
        induction=kept["induction"][0],
    )


CELL, LEFT, TOP = 19, 44, 76


def draw_head(arrays: Head) -> Picture:
    """Draw the weights on the left, losses and scores over training on the right."""
    above = Panel(540, 50, 165, 130, (0, 200), (0, 5.2))
    below = Panel(540, 272, 165, 150, (0, 200), (0, 1.05))
    x, n = np.array(STEPS), STEPS.index(arrays.step)
    items = [
        Text(LEFT, 20, HEAT.format(layer=arrays.layer), size=style.TITLE, bold=True),
        _weights(arrays),
        Text(LEFT + 20 * CELL, TOP + 28, FRAMED[arrays.layer - 1], fill=style.MUTED, anchor="end"),
        axes(above, title=FIVE_RUNS, x_ticks=(), y_ticks=((0, "0"), (2.5, "2.5"), (5, "5"))),
        [curve(above, x, loss, style.MUTED, dash=style.DASHES[2]) for loss in arrays.loss[1:]],
        curve(above, x, arrays.loss[0], style.INK),
        vertical(above, arrays.step),
        axes(
            below,
            title=SCORES,
            x_label=STEP,
            x_ticks=_hundreds(200),
            y_ticks=((0, "0"), (0.5, "0.5"), (1, "1")),
        ),
        curve(below, x, arrays.previous, style.KEY, dash=style.DASHES[1]),
        curve(below, x, arrays.induction, style.WEIGHT),
        end_labels(
            below,
            [
                (arrays.previous[-1], FIRST, style.KEY),
                (arrays.induction[-1], SECOND, style.WEIGHT),
            ],
        ),
        vertical(below, arrays.step),
    ]
    rows = arrays.framed.any(axis=1)
    alt = ALT_HEAD.format(
        letters=" ".join(map(_letter, arrays.tokens)),
        layer=arrays.layer,
        framed=FRAMED_ALT[arrays.layer - 1],
        share=number((arrays.A * arrays.framed).sum(axis=1)[rows].mean()),
        **_now(arrays, n),
    )
    return Picture(800, 490, items, alt)


def _weights(arrays: Head) -> Group:
    """Return the lower triangle of A, a cell for each weight, its framed keys and the letters."""
    items = []
    for i, row in enumerate(arrays.A):
        for j, a in enumerate(row[: i + 1]):
            fill = style.shade(style.SEQUENTIAL, a)
            x, y = LEFT + CELL * j, TOP + CELL * i
            items.append(Rect(x, y, CELL, CELL, fill, style.GRID, 1))
    for i, j in np.argwhere(arrays.framed):
        x, y = LEFT + CELL * j + 1.5, TOP + CELL * i + 1.5
        items.append(apart([Rect(x, y, CELL - 3, CELL - 3, None, style.KEY, 2)]))
    for n, letter in enumerate(map(_letter, arrays.tokens)):
        middle = CELL * (n + 0.5)
        items.append(Text(LEFT + middle, TOP - 14, letter, anchor="middle"))
        items.append(Text(LEFT - 14, TOP + middle, letter, anchor="middle"))
    return tuple(items)


def caption_head(arrays: Head) -> str:
    """Say what the picture shows."""
    n = STEPS.index(arrays.step)
    return CAPTION_HEAD.format(all=_range(arrays.loss[:, n], 2), **_now(arrays, n))


def _now(arrays: Head, n: int) -> dict[str, str]:
    return {
        "step": str(arrays.step),
        "loss": number(arrays.loss[0, n]),
        "previous": number(arrays.previous[n]),
        "induction": number(arrays.induction[n]),
    }


def _letter(token: int) -> str:
    return chr(ord("A") + int(token))


def emerging_head(**state) -> Lab:
    """Return the lab of a head that emerges during training; ``state`` sets sliders by name.

    Examples
    --------
    >>> emerging_head(step=100)
    emerging_head(step=100, layer=2)
    """
    return Lab("emerging_head", HEAD_CONTROLS, compute_head, draw_head, caption_head, state)
