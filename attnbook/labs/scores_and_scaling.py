"""Labs of chapter 04: what the width of queries and keys does to scores, weights and entropy."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.diagrams import (
    Panel,
    axes,
    bars,
    curve,
    end_labels,
    histogram,
    mark,
    number,
    vertical,
)
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Picture, Text
from attnbook.softmax import entropy, softmax

# Everything a reader sees, in one place.
D_K = "width $d_k$"
DIVIDE = "divide by $√d_k$"
TAU = "temperature $τ$"
KEYS = "number of keys $S$"
NO_YES = {False: "no", True: "yes"}
HISTOGRAM = "Scores that enter softmax"
SPREAD = "sd {sd}"
OUTSIDE = "{share} % lie outside"
ROW = "Weights of one query"
ENTROPY = "Entropy / log $S$, mean over queries"
DIVIDED, UNDIVIDED = "divided", "not divided"
ALT = (
    "Three pictures. A histogram of {n} scores with standard deviation {sd}; {share} percent of "
    "them lie outside the axis. Bars for the weights of one query over {keys} keys: {weights}. "
    "Curves of the mean entropy, as a share of its maximum, over the widths 1 to 512: divided by "
    "the root of the width {divided}; not divided {undivided}. The present width is {d_k}."
)
CAPTION = (
    "The scores that enter softmax have standard deviation {sd}. For the query shown the largest "
    "weight is {top} and the largest entry of the Jacobian is {jacobian}; on average over queries "
    "the entropy is {entropy} of its maximum log $S$."
)

WIDTHS = tuple(2**n for n in range(10))
MOST_KEYS = 16
PAIRS, QUERIES = 4000, 200
EDGES = np.arange(-40.5, 41)  # of the histogram: one score unit a bar, 0 in the middle of one

CONTROLS = (
    Slider("d_k", D_K, WIDTHS, start=4),
    Slider("divide", DIVIDE, (False, True), start=False, format=NO_YES.get),
    Slider("tau", TAU, (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), start=1.0, format="{:g}".format),
    Slider("keys", KEYS, (2, 4, 8, MOST_KEYS), start=8),
)


class WidthAndTemperature(NamedTuple):
    """What the lab shows: ``Z`` are the scores that enter softmax, one row of weights is ``a``."""

    d_k: int
    divide: bool
    Z_sd: float
    counts: np.ndarray  # of Z between EDGES
    outside: float  # share of Z beyond them
    a: np.ndarray  # (S,)
    entropy: np.ndarray  # (2, widths): not divided, divided; 1 is the maximum


@lru_cache(maxsize=1)
def _raw_scores() -> tuple[np.ndarray, np.ndarray]:
    """Draw normal queries and keys and return their raw scores at every width.

    Returns
    -------
    s : (widths, PAIRS) scores of independent pairs
    E : (widths, QUERIES, MOST_KEYS) scores of queries with keys of their own

    A vector of width 8 is the first half of the same vector of width 16, so that a row of weights
    changes step by step while the width grows.
    """
    rng = np.random.default_rng(29)
    s, E = np.zeros((len(WIDTHS), PAIRS)), np.zeros((len(WIDTHS), QUERIES, MOST_KEYS))
    for n, (low, high) in enumerate(zip((0, *WIDTHS), WIDTHS, strict=False)):
        q, k = rng.normal(size=(2, PAIRS, high - low))
        s[n] = s[n - 1] + (q * k).sum(axis=1)
        q = rng.normal(size=(QUERIES, 1, high - low))
        E[n] = E[n - 1] + (q * rng.normal(size=(QUERIES, MOST_KEYS, high - low))).sum(axis=2)
    s.flags.writeable = E.flags.writeable = False
    return s, E


def compute(d_k: int, divide: bool, tau: float, keys: int) -> WidthAndTemperature:
    """Compute Z = s / (sqrt(d_k) tau), or s / tau undivided, and A = softmax(Z) at every width."""
    s, E = _raw_scores()
    root = np.sqrt(WIDTHS)
    n = WIDTHS.index(d_k)
    Z = s[n] / tau / (root[n] if divide else 1)
    counts, _ = np.histogram(Z, EDGES)
    E = E[:, :, :keys]
    A = softmax(np.stack([E, E / root[:, None, None]]) / tau)
    return WidthAndTemperature(
        d_k=d_k,
        divide=divide,
        Z_sd=Z.std(),
        counts=counts,
        outside=1 - counts.sum() / PAIRS,
        a=A[int(divide), n, 0],
        entropy=entropy(A).mean(axis=-1) / np.log(keys),
    )


def draw(arrays: WidthAndTemperature) -> Picture:
    """Draw histogram and row of weights side by side, and the entropy curves below."""
    left = Panel(40, 46, 330, 150, (EDGES[0], EDGES[-1]), (0, 1.3))
    right = Panel(450, 46, 330, 150, (0, len(arrays.a)), (0, 1.15))
    below = Panel(70, 300, 580, 140, (0, len(WIDTHS) - 0.75), (0, 1.05))
    items = [
        axes(left, title=HISTOGRAM, y_ticks=()),
        histogram(left, arrays.counts / max(arrays.counts.max(), 1), EDGES),
        Text(left.right - 6, left.top + 12, SPREAD.format(sd=_sd(arrays)), anchor="end"),
    ]
    if arrays.outside >= 0.005:
        outside = OUTSIDE.format(share=number(100 * arrays.outside, 0))
        items.append(Text(left.left + 6, left.top + 12, outside))
    n = len(arrays.a)
    keys = [(j - 0.5, f"$k_{{{j}}}$") for j in range(1, n + 1) if n <= 8 or j % 3 == 1]
    items += [
        axes(right, title=ROW, x_ticks=keys, y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
        bars(right, arrays.a, digits=2 if n <= 8 else None),
    ]
    places = range(len(WIDTHS))
    items += [
        axes(
            below,
            title=ENTROPY,
            x_label=D_K,
            x_ticks=tuple((n, str(d_k)) for n, d_k in enumerate(WIDTHS)),
            y_ticks=((0, "0"), (0.5, "0.5"), (1, "1")),
        ),
        vertical(below, WIDTHS.index(arrays.d_k)),
        curve(below, places, arrays.entropy[0], style.MUTED, dash=style.DASHES[1]),
        curve(below, places, arrays.entropy[1], style.WEIGHT),
        end_labels(
            below,
            [
                (arrays.entropy[1, -1], DIVIDED, style.WEIGHT),
                (arrays.entropy[0, -1], UNDIVIDED, style.MUTED),
            ],
        ),
        mark(
            below.x(WIDTHS.index(arrays.d_k)),
            below.y(_entropy_now(arrays)),
            "circle",
            style.WEIGHT if arrays.divide else style.MUTED,
            8,
        ),
    ]
    alt = ALT.format(
        n=PAIRS,
        sd=_sd(arrays),
        share=number(100 * arrays.outside, 0),
        keys=len(arrays.a),
        weights=", ".join(number(weight) for weight in arrays.a),
        divided=", ".join(number(x) for x in arrays.entropy[1]),
        undivided=", ".join(number(x) for x in arrays.entropy[0]),
        d_k=arrays.d_k,
    )
    return Picture(800, 510, items, alt)


def caption(arrays: WidthAndTemperature) -> str:
    """Say what the picture shows."""
    return CAPTION.format(
        sd=_sd(arrays),
        top=number(arrays.a.max(), 3),
        jacobian=f"{(arrays.a * (1 - arrays.a)).max():.2g}",
        entropy=number(_entropy_now(arrays)),
    )


def _sd(arrays: WidthAndTemperature) -> str:
    return number(arrays.Z_sd, 2 if arrays.Z_sd < 10 else 1)


def _entropy_now(arrays: WidthAndTemperature) -> float:
    return arrays.entropy[int(arrays.divide), WIDTHS.index(arrays.d_k)]


def width_and_temperature(**state) -> Lab:
    """Return the lab of width, scaling and temperature; ``state`` sets sliders by name.

    Examples
    --------
    >>> width_and_temperature(d_k=64, divide=True)
    width_and_temperature(d_k=64, divide=True, tau=1.0, keys=8)
    """
    return Lab("width_and_temperature", CONTROLS, compute, draw, caption, state)


LABS = (width_and_temperature,)
