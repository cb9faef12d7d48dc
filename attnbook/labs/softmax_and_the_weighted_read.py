"""Labs of chapter 05: scores to weights to a point, overflow and its cure, dropout of weights."""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.diagrams import (
    Entry,
    Group,
    Panel,
    apart,
    axes,
    bars,
    curve,
    legend,
    levels_before,
    mark,
    number,
)
from attnbook.examples import R_HEAD
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Circle, Picture, Polygon, Text
from attnbook.softmax import softmax

# Everything a reader sees, in one place.
RAW_SCORE = "raw score $e_{}$"
TAU = "temperature $τ$"
SCORES = "Scaled scores $u$"
WEIGHTS = "Weights $a$ = softmax($u/τ$)"
PLANE = "Values, and what is read"
OUTPUT = "output $o$"
EVERY_TAU = "$o$ at every $τ$"
MEAN = "mean of the values"
ALT_READ = (
    "Three pictures. Bars for the scaled scores {u} and for the weights {a} of three keys. A plane "
    "with the triangle of the values (1, 0), (0, 2) and (1, 2), the mean of the values in it, and "
    "the output at ({x}, {y}); a dotted curve shows the output at every temperature."
)
CAPTION_READ = (
    "The weights, rounded, are {a}; unrounded they sum to 1. The output is $o$ = ({x}, {y}), in "
    "the triangle of the values. The mean of the values is ({mean_x}, {mean_y})."
)
ALL_EQUAL = " All scores are equal, so the temperature changes nothing."

OFFSET = "offset $c$"
GAP = "gap $g$"
DTYPE = "number type"
STORED = "Scores $c$, $c + g$, $c + 2g$ as {dtype} stores them"
NAIVE, STABLE = "Naive: exp($u_j$)", "Stable: exp($u_j − m$)"
EXPONENTIALS, SUM = "exponentials", "their sum $z$"
RIGHT, WRONG, UNDEFINED = "right", "wrong", "undefined"
VERDICT = "weights: {verdict}"
ALT_STABLE = (
    "The scores {u} in {dtype}, and two columns. Naive: exponentials {e_naive}, sum {z_naive}, "
    "weights {a_naive}, which is {verdict}. Stable: exponentials {e_stable}, sum {z_stable}, "
    "weights {a_stable}."
)
CAPTION_STABLE = (
    "As {dtype} the scores are {u}{rounded}. The naive formula gives {a_naive}, which is "
    "{verdict}; with the maximum $m$ = {m} subtracted first the weights are {a_stable}."
)
ROUNDED = " (rounded to the steps that this type has at this size)"

KEEP = "keep probability $ρ$"
SAMPLES = "samples drawn"
SEED = "seed"
DROPPED = "After dropout: $κ_j a_j / ρ$"
BEFORE = "before dropout"
ROW_SUM = "row sum {sum}"
OUTPUTS = "Outputs of all samples"
INSIDE = {True: "inside the hull", False: "outside the hull"}
NOW, RUNNING, PLAIN = "this sample", "mean of the samples", "without dropout"
RUNNING_SUM = "Mean row sum so far"
SPREAD = "dashed: 1 ± sd/√$n$"
ALT_DROPOUT = (
    "Three pictures. Bars for the weights after dropout, {a}, beside those before it. A plane with "
    "the triangle of the values, the outputs of all samples, the one of this sample at ({x}, {y}), "
    "{inside}, and their mean at ({mean_x}, {mean_y}). A curve of the mean row sum over the "
    "samples so far, ending at {mean_sum}, and two dashed curves one standard deviation of that "
    "mean above and below 1."
)
CAPTION_DROPOUT = (
    "The last of the samples has the weights {a}, with row sum {sum}; its output ({x}, {y}) lies "
    "{inside}. The mean row sum of the samples so far is {mean_sum} and their mean output "
    "({mean_x}, {mean_y}); without dropout these are 1 and ({plain_x}, {plain_y}). The standard "
    "deviation sd of one row sum is {sd}.{kept}"
)
ALL_KEPT = " Every weight is kept, so the samples are equal and the seed changes nothing."

V = np.array(R_HEAD.W_V, float)
V = np.array(R_HEAD.X, float) @ V  # the three values of R (5.14), corners of a triangle
V.flags.writeable = False


# ---------------------------------------------------------------- scores, weights, a point

TEMPERATURES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 100.0)
ALL_TEMPERATURES = np.geomspace(0.02, 500, 90)
READ_CONTROLS = (
    *(
        Slider(
            f"e{j}", RAW_SCORE.format(j), tuple(range(-6, 7)), start, format=lambda e: number(e, 0)
        )
        for j, start in ((1, 1), (2, 1), (3, 2))
    ),
    Slider("tau", TAU, TEMPERATURES, start=1.0, format="{:g}".format),
)


class Read(NamedTuple):
    """Scores, weights and output of one query over the values of R (5.14)."""

    u: np.ndarray  # (3,) scaled scores
    a: np.ndarray  # (3,) weights
    o: np.ndarray  # (2,) output
    path: np.ndarray  # (temperatures, 2) outputs at other temperatures


def compute_read(e1: int, e2: int, e3: int, tau: float) -> Read:
    """Compute u = e / sqrt(2), a = softmax(u / tau) and o = a V; d_k = 2 as in R (5.13)."""
    u = np.array([e1, e2, e3]) / np.sqrt(2)
    a = softmax(u / tau)
    return Read(u, a, a @ V, softmax(u / ALL_TEMPERATURES[:, None]) @ V)


def draw_read(arrays: Read) -> Picture:
    """Draw scores and weights as bars, and the output in the triangle of the values."""
    above = Panel(80, 60, 260, 150, y_limits=(-6.5, 6.5))
    below = Panel(80, 290, 260, 140, y_limits=(0, 1.25))
    plane = Panel(450, 60, 310, 280, (-0.3, 1.3), (-0.3, 2.3))
    keys = [f"$a_{j}$" for j in (1, 2, 3)]
    x, y = arrays.o
    items = [
        axes(above, title=SCORES, x_ticks=(), y_ticks=((-4, "−4"), (0, "0"), (4, "4"))),
        bars(above, arrays.u, [f"$u_{j}$" for j in (1, 2, 3)], fill=style.SCORE),
        axes(below, title=WEIGHTS, x_ticks=(), y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
        bars(below, arrays.a, keys),
        axes(
            plane,
            title=PLANE,
            x_ticks=((0, "0"), (1, "1")),
            y_ticks=((0, "0"), (1, "1"), (2, "2")),
        ),
        _hull(plane),
        curve(plane, *arrays.path.T, style.OUTPUT, dash=style.DASHES[2]),
        apart([mark(*_place(plane, V.mean(axis=0)), "diamond", style.MUTED, 7)]),
        apart([mark(plane.x(x), plane.y(y), "circle", style.OUTPUT, 9)]),
        legend(
            450,
            372,
            [
                Entry(OUTPUT, style.CARD, (1, 99), None),
                Entry(EVERY_TAU, style.OUTPUT, style.DASHES[2]),
                Entry(MEAN, style.CARD, (1, 99), None),
            ],
        ),
        mark(464, 384, "circle", style.OUTPUT, 9),
        mark(464, 432, "diamond", style.MUTED, 7),
    ]
    alt = ALT_READ.format(u=_listed(arrays.u), a=_listed(arrays.a), x=number(x), y=number(y))
    return Picture(800, 470, items, alt)


def caption_read(arrays: Read) -> str:
    """Say what the picture shows."""
    mean_x, mean_y = V.mean(axis=0)
    return CAPTION_READ.format(
        a=_listed(arrays.a, 3),
        x=number(arrays.o[0], 3),
        y=number(arrays.o[1], 3),
        mean_x=number(mean_x, 3),
        mean_y=number(mean_y, 3),
    ) + ALL_EQUAL * bool(np.ptp(arrays.u) == 0)


def weighted_read(**state) -> Lab:
    """Return the lab of three scores, their weights and the output; ``state`` sets sliders by name.

    Examples
    --------
    >>> weighted_read(tau=0.1)
    weighted_read(e1=1, e2=1, e3=2, tau=0.1)
    """
    return Lab("weighted_read", READ_CONTROLS, compute_read, draw_read, caption_read, state)


# ---------------------------------------------------------------- naive and stable

DTYPES = ("float16", "float32", "float64")
OFFSETS = (-10_000, -1000, -746, -500, -104, -50, -17, -5, 0, 5, 9, 12, 50, 88)
OFFSETS += (100, 500, 709, 750, 1000, 10_000)
STABLE_CONTROLS = (
    Slider("c", OFFSET, OFFSETS, start=0, format=lambda c: number(c, 0)),
    Slider("g", GAP, (0, 0.5, 1, 2, 5, 20, 100, 1000), start=1, format="{:g}".format),
    Slider("dtype", DTYPE, DTYPES, start="float64"),
)


class Stability(NamedTuple):
    """The same weights by two formulas, in one number type.

    Where the naive formula is undefined (nan), ``a_naive`` is 0 and ``undefined`` True.
    """

    dtype: str
    rounded: bool  # whether the type changed the scores
    u: np.ndarray  # (3,) scores as stored
    e_naive: np.ndarray  # (3,) exp(u)
    z_naive: float
    a_naive: np.ndarray
    undefined: np.ndarray
    right: bool  # whether a_naive is softmax(u) up to rounding
    e: np.ndarray  # (3,) exp(u - m)
    z: float
    a: np.ndarray
    stable_right: bool  # the same for a


@np.errstate(all="ignore")  # overflow and 0/0 are what this lab shows
def compute_stability(c: int, g: float, dtype: str) -> Stability:
    """Compute softmax of (c, c + g, c + 2g) naively and with the maximum subtracted."""
    wanted = c + g * np.arange(3.0)
    u = wanted.astype(dtype)
    e = np.exp(u)
    z = e.sum(dtype=dtype)
    a_naive = e / z
    undefined = np.isnan(a_naive)
    a = softmax(u)
    wide, atol = softmax(u.astype(float)), 8 * float(np.finfo(dtype).eps)
    shifted = np.exp(u - u.max())
    return Stability(
        dtype=dtype,
        rounded=bool((u.astype(float) != wanted).any()),
        u=u,
        e_naive=e,
        z_naive=float(z),
        a_naive=np.where(undefined, 0, a_naive),
        undefined=undefined,
        right=np.allclose(a_naive, wide, rtol=0, atol=atol),
        e=shifted,
        z=float(shifted.sum(dtype=dtype)),
        a=a,
        stable_right=np.allclose(a, wide, rtol=0, atol=atol),
    )


def draw_stability(arrays: Stability) -> Picture:
    """Draw the scores on top and the two computations, with their weights, side by side."""
    verdict, stable = _verdict(arrays), RIGHT if arrays.stable_right else WRONG
    items = [
        Text(40, 30, STORED.format(dtype=arrays.dtype), style.TITLE, bold=True),
        [
            Text(40 + 190 * (j + 0.5), 62, _value(u), style.TITLE, style.SCORE, "middle")
            for j, u in enumerate(arrays.u)
        ],
    ]
    none = np.zeros(3, bool)
    sides = (
        (40, NAIVE, arrays.e_naive, arrays.z_naive, arrays.a_naive, arrays.undefined, verdict),
        (430, STABLE, arrays.e, arrays.z, arrays.a, none, stable),
    )
    items += [_side(*side) for side in sides]
    return Picture(800, 440, items, ALT_STABLE.format(verdict=verdict, **_stability(arrays)))


def _side(
    left: float,
    name: str,
    e: np.ndarray,
    z: float,
    a: np.ndarray,
    undefined: np.ndarray,
    verdict: str,
) -> Group:
    """Return one of the two computations: exponentials, their sum, a verdict and the weights."""
    panel = Panel(left, 268, 330, 130, y_limits=(0, 1.25))
    colour = style.VALUE if verdict == RIGHT else style.GRADIENT
    items = [
        Text(left, 112, name, style.TITLE, bold=True),
        Text(left, 146, EXPONENTIALS, fill=style.MUTED),
        Text(left, 210, SUM, fill=style.MUTED),
        Text(panel.right, 210, _value(z, 3), anchor="end", bold=True),
        Text(left, 244, VERDICT.format(verdict=verdict), fill=colour, bold=True),
        *axes(panel, x_ticks=(), y_ticks=()),
        *bars(panel, a, [f"$a_{j}$" for j in (1, 2, 3)], digits=None),
    ]
    for j in range(3):
        x = left + (j + 0.5) * panel.width / 3
        items.append(Text(x, 174, _value(e[j], 3), anchor="middle"))
        text, ink = ("nan", style.GRADIENT) if undefined[j] else (number(a[j]), style.INK)
        items.append(Text(x, panel.y(a[j]) - 14, text, fill=ink, anchor="middle"))
    return tuple(items)


def caption_stability(arrays: Stability) -> str:
    """Say what the picture shows."""
    return CAPTION_STABLE.format(
        verdict=_verdict(arrays),
        m=_value(arrays.u.max()),
        rounded=ROUNDED if arrays.rounded else "",
        **_stability(arrays),
    )


def _verdict(arrays: Stability) -> str:
    return UNDEFINED if arrays.undefined.any() else RIGHT if arrays.right else WRONG


def _stability(arrays: Stability) -> dict[str, str]:
    naive = [
        "nan" if nan else number(a, 3)
        for a, nan in zip(arrays.a_naive, arrays.undefined, strict=True)
    ]
    return {
        "dtype": arrays.dtype,
        "u": "(" + ", ".join(map(_value, arrays.u)) + ")",
        "e_naive": ", ".join(map(_value, arrays.e_naive)),
        "z_naive": _value(arrays.z_naive),
        "a_naive": "(" + ", ".join(naive) + ")",
        "e_stable": ", ".join(map(_value, arrays.e)),
        "z_stable": _value(arrays.z),
        "a_stable": _listed(arrays.a, 3),
    }


def naive_and_stable(**state) -> Lab:
    """Return the lab of overflow and its cure; ``state`` sets sliders by name.

    Examples
    --------
    >>> naive_and_stable(c=1000)
    naive_and_stable(c=1000, g=1, dtype='float64')
    """
    return Lab(
        "naive_and_stable",
        STABLE_CONTROLS,
        compute_stability,
        draw_stability,
        caption_stability,
        state,
    )


# ---------------------------------------------------------------- dropout

MOST = 1000
DROPOUT_CONTROLS = (
    Slider("rho", KEEP, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0), start=0.8, format="{:.1f}".format),
    Slider("n", SAMPLES, (1, 2, 3, 4, 5, 6, 8, 10, 20, 50, 100, 200, 500, MOST), start=1),
    Slider("seed", SEED, (0, 1, 2, 3, 4), start=0),
)


class Dropout(NamedTuple):
    """``n`` draws of the weights after dropout; *now* is the last of them."""

    a: np.ndarray  # (3,) before dropout
    A: np.ndarray  # (n, 3) after dropout
    O: np.ndarray  # (n, 2) outputs
    inside: bool  # whether the output of now lies in the hull
    sums: np.ndarray  # (n,) mean of the row sums of the first 1 ... n draws
    sd: float  # of one row sum, by R exercise 5.9


@lru_cache(maxsize=8)
def _uniforms(seed: int) -> np.ndarray:
    """Draw what decides which weights are kept, the same at every keep probability."""
    draws = np.random.default_rng(seed).random((MOST, 3))
    draws.flags.writeable = False
    return draws


def compute_dropout(rho: float, n: int, seed: int) -> Dropout:
    """Compute keep a / rho for n masks, and what they read; a is the third row of R (5.16)."""
    X = np.array(R_HEAD.X, float)
    a = softmax(X[2] @ X.T / np.sqrt(2))
    A = (_uniforms(seed)[:n] < rho) * a / rho
    O = A @ V
    return Dropout(
        a=a,
        A=A,
        O=O,
        inside=bool((barycentric(O[-1]) >= -1e-12).all()),
        sums=A.sum(axis=1).cumsum() / np.arange(1, n + 1),
        sd=float(np.sqrt((1 - rho) * (a**2).sum() / rho)),
    )


def barycentric(o: np.ndarray) -> np.ndarray:
    """Return the three numbers of sum 1 that make ``o`` of the values: none is negative inside."""
    return np.linalg.solve(np.vstack([V.T, np.ones(3)]), np.append(o, 1))


def draw_dropout(arrays: Dropout) -> Picture:
    """Draw the weights of this sample, its output among all outputs, and the mean row sum."""
    left = Panel(80, 60, 260, 150, y_limits=(0, 1.25))
    plane = Panel(450, 60, 310, 290, (-0.1, 1.7), (-0.25, 3.25))
    below = Panel(80, 310, 260, 130, (0, 3.1), (0, 2.1))
    n, now = len(arrays.A), arrays.A[-1]
    items = [
        axes(left, title=DROPPED, x_ticks=(), y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
        bars(left, now, [f"$ã_{j}$" for j in (1, 2, 3)]),
        levels_before(left, arrays.a),
        Text(left.left + 6, left.top - 2, ROW_SUM.format(sum=number(now.sum(), 3)), bold=True),
        axes(
            plane,
            title=OUTPUTS,
            x_ticks=((0, "0"), (1, "1")),
            y_ticks=((0, "0"), (1, "1"), (2, "2"), (3, "3")),
        ),
    ]
    points, counts = np.unique(arrays.O.round(9), axis=0, return_counts=True)
    for o, count in zip(points, counts, strict=True):
        disc = *_place(plane, o), 5 + 16 * np.sqrt(count / n)
        items.append(Circle(*disc, style.OUTPUT, opacity=0.25))
        items.append(Circle(*disc, None, style.OUTPUT, 1.5))
    items += [
        _hull(plane),
        apart([mark(*_place(plane, arrays.a @ V), "square", style.VALUE, 8)]),
        apart([mark(*_place(plane, arrays.O.mean(axis=0)), "diamond", style.WEIGHT, 7)]),
        apart([mark(*_place(plane, arrays.O[-1]), "circle", style.OUTPUT, 5)]),
        legend(450, 396, [Entry(text, style.CARD, (1, 99)) for text in (NOW, RUNNING, PLAIN)]),
        mark(464, 408, "circle", style.OUTPUT, 6),
        mark(464, 432, "diamond", style.WEIGHT, 7),
        mark(464, 456, "square", style.VALUE, 8),
        axes(
            below,
            title=RUNNING_SUM,
            x_label=SAMPLES,
            x_ticks=((0, "1"), (1, "10"), (2, "100"), (3, "1000")),
            y_ticks=((0, "0"), (1, "1"), (2, "2")),
        ),
    ]
    every = np.geomspace(1, MOST, 60)
    for sign in (-1, 1):
        band = 1 + sign * arrays.sd / np.sqrt(every)
        items.append(curve(below, np.log10(every), band, style.MUTED, dash=style.DASHES[1]))
    places = np.unique(np.geomspace(1, n, 80).round().astype(int))
    items += [
        curve(below, np.log10(places), arrays.sums[places - 1], style.WEIGHT),
        mark(below.x(np.log10(n)), below.y(arrays.sums[-1]), "circle", style.WEIGHT, 6),
        Text(below.right, below.y(1.7), SPREAD, fill=style.MUTED, anchor="end"),
    ]
    return Picture(800, 510, items, ALT_DROPOUT.format(**_dropout(arrays)))


def caption_dropout(arrays: Dropout) -> str:
    """Say what the picture shows."""
    return CAPTION_DROPOUT.format(**_dropout(arrays))


def _dropout(arrays: Dropout) -> dict[str, object]:
    (x, y), (mean_x, mean_y) = arrays.O[-1], arrays.O.mean(axis=0)
    plain_x, plain_y = arrays.a @ V
    told = {"x": x, "y": y, "mean_x": mean_x, "mean_y": mean_y}
    told |= {"plain_x": plain_x, "plain_y": plain_y, "sum": arrays.A[-1].sum()}
    told |= {"mean_sum": arrays.sums[-1], "sd": arrays.sd}
    return {name: number(value, 3) for name, value in told.items()} | {
        "a": _listed(arrays.A[-1], 3),
        "inside": INSIDE[arrays.inside],
        "kept": ALL_KEPT * (arrays.sd == 0),
    }


def dropout_sampler(**state) -> Lab:
    """Return the lab of dropout of weights; ``state`` sets sliders by name.

    Examples
    --------
    >>> dropout_sampler(rho=0.5, n=10)
    dropout_sampler(rho=0.5, n=10, seed=0)
    """
    return Lab(
        "dropout_sampler", DROPOUT_CONTROLS, compute_dropout, draw_dropout, caption_dropout, state
    )


# ---------------------------------------------------------------- common parts


def _place(panel: Panel, point: np.ndarray) -> tuple[float, float]:
    return panel.x(point[0]), panel.y(point[1])


def _hull(plane: Panel) -> Group:
    """Return the triangle of the values with its corners named."""
    corners = tuple(_place(plane, v) for v in V)
    shifts = ((16, 4), (-4, -20), (14, -16))
    return (
        Polygon(corners, style.VALUE, opacity=0.1),
        Polygon(corners, None, style.VALUE, 2),
        *(mark(*corner, "square", style.VALUE, 6) for corner in corners),
        *(
            Text(x + dx, y + dy, f"$v_{j}$", fill=style.VALUE, bold=True)
            for j, ((x, y), (dx, dy)) in enumerate(zip(corners, shifts, strict=True), 1)
        ),
    )


def _listed(values: np.ndarray, digits: int = 2) -> str:
    return "(" + ", ".join(number(value, digits) for value in values) + ")"


def _value(x: float, digits: int = 5) -> str:
    """Return a number of any size in few characters."""
    return (
        "∞" if x == np.inf else re.sub(r"e\+?(-?)0*", r"e\1", f"{x:.{digits}g}").replace("-", "−")
    )
