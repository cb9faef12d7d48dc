"""Labs of chapter 08: gradient maps of a head, the step of a difference, descent step by step."""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.attention import Gradients, attention, attention_backward
from attnbook.diagrams import (
    Entry,
    Group,
    Panel,
    apart,
    axes,
    bars,
    curve,
    legend,
    mark,
    matrix,
    number,
)
from attnbook.examples import R_HEAD
from attnbook.labs.engine import Lab, Slider
from attnbook.markup import BAR
from attnbook.picture import Circle, Picture, Polygon, Rect, Text

# Everything a reader sees, in one place.
LOSS = "loss $L$"
LOSSES = {
    "entry": "o₂₁",
    "row": "o₁₁ + o₁₂",
    "all": "all of O, added up",
    "distance": "½ |o₃ − (1, 0)|²",
}
MASK = "mask"
MASKS = {
    "none": "none",
    "causal": "causal",
    "key": "key 3 hidden",
    "query": "query 3 invalid",
}
VALUES = "values"
VALUE_SETS = {"R": "those of [R]", "equal": "all equal to (1, 2)"}
FACTOR = "score factor"
FORWARD = "Forward"
BACKWARD = "Gradients of the loss, each below its variable"
KEY_TO_ZEROS = "0 is zero, 0.00 is less than 0.005 in size, – is forbidden."
ALT_MAPS = (
    "Two rows of six matrices. Above, Q, K, the scaled scores U, the weights A = {A}, V and the "
    "output O = {O}. Below, the gradients of the loss by them: Q {dQ}, K {dK}, U {dU}, A {dA}, V "
    "{dV}, O {dO}."
)
CAPTION_MAPS = (
    "The loss is {loss}. Of the gradients by the scores {zeros_U} of 9 are zero, of those by the "
    "queries {zeros_Q} of 6, by the keys {zeros_K} of 6, by the values {zeros_V} of 6; the largest "
    "gradient by a score is {largest}. The rows of $U{bar}$ and the columns of $K{bar}$ sum to 0."
)

STEP = "step $h$"
METHOD = "method"
METHODS = {"forward": "forward", "central": "central", "complex": "complex step"}
DTYPE = "number type"
DIGITS = "The digits that are computed"
ROWS = {
    "forward": ("$f$(0)", "$f$($h$)"),
    "central": ("$f$(−$h$)", "$f$($h$)"),
    "complex": ("", "Im $f$(i$h$)"),
}
DIFFERENCE = "difference"
QUOTIENTS = {
    "forward": "divided by $h$",
    "central": "divided by 2$h$",
    "complex": "divided by $h$",
}
EXACT = "exact"
ERROR_NOW = "error"
RIGHT_DIGITS, CANCELLED = "bold: right so far", "grey: cancels in the difference"
ERROR = "How far off it is"
POWER = "step $h$"
MEASURED, TRUNCATION, ROUNDING = "measured", "truncation", "rounding"
ALT_STEP = (
    "Left, digits: {rows}quotient {quotient}, exact {exact}. Right, on logarithmic axes, the error "
    "of the {method} quotient against the step from 1 down to 10⁻¹⁷ in {dtype}; at the present "
    "step, marked by a circle, it is {error}.{guides}"
)
GUIDES = {
    True: " A dashed line falls with the step: truncation. A dotted one rises as it shrinks: "
    "rounding.",
    False: " A dashed line falls with the step: truncation. None rises: there is no difference.",
}
CAPTION_STEP = (
    "The quotient is {quotient}, the exact derivative {exact}: an error of {error}. Truncation is "
    "expected to give {truncation}{rounding}."
)
ROUNDING_TOO = ", rounding {rounding}"
NO_CANCELLING = "; no two values of $f$ are subtracted, so rounding stays in the last digits"
LESS_THAN = "less than {bound} in size"

STEPS = "steps taken"
RATE = "learning rate $η$"
MOVES = "what may move"
MOVERS = {
    "query": "the query",
    "scores": "query and keys",
    "values": "the values",
    "all": "query, keys, values",
}
TARGET = "target"
TARGETS = {"inside": (0.9, 0.8), "outside": (0.4, 0.4)}
TARGET_NAMES = {
    "inside": "(0.9, 0.8), in the triangle",
    "outside": "(0.4, 0.4), out of it",
}
PLANE = "Values and output"
OUTPUT, AIM, OLD = "output $o$", "target", "values at the start"
LOSS_CURVE = "Loss ½ |$o$ − target|²"
TAKEN = "steps"
WEIGHTS = "Weights now"
ALT_DESCENT = (
    "A plane with the triangle of the values, now at {V}, the path of the output from ({x0}, {y0}) "
    "to ({x}, {y}) and the target at ({tx}, {ty}). A curve of the loss from step 0 to step {n}, "
    "from {first} to {loss}. Bars for the weights {a}."
)
CAPTION_DESCENT = (
    "The loss is {loss}, at the start it was {first}. {last}The keys sum to ({kx}, {ky}), the "
    "weights are {a}."
)
LAST_STEP = "The gradient foretold a change of {foretold} for the last step; it was {change}. "

# ---------------------------------------------------------------- gradient maps

CELL = (50, 30)
STRONGEST = 2.0  # the size at which the colours end
MAPS_CONTROLS = (
    Slider("loss", LOSS, tuple(LOSSES), start="entry", format=LOSSES.get),
    Slider("mask", MASK, tuple(MASKS), start="causal", format=MASKS.get),
    Slider("values", VALUES, tuple(VALUE_SETS), start="R", format=VALUE_SETS.get),
    Slider("factor", FACTOR, (0.25, 1.0, 4.0, 16.0), start=1.0, format="{:g}".format),
)


class Maps(NamedTuple):
    """A head, a loss of its output, and the gradients of the loss by everything."""

    loss: float
    allowed: np.ndarray  # (3, 3) bool, False in the row of an invalid query
    Q: np.ndarray  # (3, 2), and so K, V, O, dO
    K: np.ndarray
    V: np.ndarray
    O: np.ndarray
    A: np.ndarray  # (3, 3), and so U
    U: np.ndarray
    dO: np.ndarray
    gradients: Gradients


def compute_maps(loss: str, mask: str, values: str, factor: float) -> Maps:
    """Compute R's head (5.13) with a mask, a factor on its scores, a loss and all gradients."""
    X, W_Q, W_K, W_V = (np.array(x, float) for x in R_HEAD[1:5])
    Q, K = X @ W_Q, X @ W_K
    V = X @ W_V if values == "R" else np.tile([1.0, 2.0], (3, 1))
    allowed, valid = np.ones((3, 3), bool), np.ones(3, bool)
    if mask == "causal":
        allowed = np.array(R_HEAD.allowed)
    elif mask == "key":
        allowed[:, 2] = False
    elif mask == "query":
        valid[2] = False
    scale = factor / math.sqrt(2)
    O, A, U = attention(Q, K, V, allowed, query_valid=valid, scale=scale)
    L, dO = loss_of(loss, O)
    gradients = attention_backward(dO, Q, K, V, A, scale=scale)
    return Maps(L, allowed & valid[:, None], Q, K, V, O, A, U, dO, gradients)


def loss_of(name: str, O: np.ndarray) -> tuple[float, np.ndarray]:
    """Return one of the losses of the lab and its gradient by the output."""
    dO = np.zeros_like(O)
    if name == "distance":
        dO[2] = O[2] - (1.0, 0.0)
        return float(dO[2] @ dO[2] / 2), dO
    if name == "entry":
        dO[1, 0] = 1
    else:
        dO[0 if name == "row" else slice(None)] = 1
    return float((dO * O).sum()), dO


def draw_maps(arrays: Maps) -> Picture:
    """Draw the six matrices of the head, and below each the gradient by it."""
    g = arrays.gradients
    columns = (
        ("Q", arrays.Q, g.dQ, style.QUERY),
        ("K", arrays.K, g.dK, style.KEY),
        ("U", arrays.U, g.dU, style.SCORE),
        ("A", arrays.A, g.dA, style.WEIGHT),
        ("V", arrays.V, g.dV, style.VALUE),
        ("O", arrays.O, arrays.dO, style.OUTPUT),
    )
    items = [
        Text(16, 24, FORWARD, style.TITLE, bold=True),
        Text(16, 206, BACKWARD, style.TITLE, bold=True),
    ]
    left = 14
    for name, x, dx, fill in columns:
        shown = [[number(v, 1 if v >= 10 else 2) for v in row] for row in x]
        if name in "UA":
            shown = [
                [text if may else "–" for text, may in zip(*row, strict=True)]
                for row in zip(shown, arrays.allowed, strict=True)
            ]
        items.append(matrix(left, 78, shown, f"${name}$", cell=CELL, fill=fill))
        middle = left + CELL[0] * x.shape[1] / 2
        label = f"${name}{BAR}$"
        items += [
            Text(middle, 242, label, style.TITLE, style.GRADIENT, anchor="middle", bold=True),
            _gradient_map(left, 264, dx),
        ]
        left += CELL[0] * x.shape[1] + 14
    items += [
        Text(16, 394, KEY_TO_ZEROS, fill=style.MUTED),
        Text(628, 394, "≤ −2", fill=style.MUTED, anchor="end"),
        *(
            Rect(636 + 12 * i, 384, 108 - 12 * i, 20, style.shade(style.DIVERGING, i / 8))
            for i in range(9)
        ),
        Rect(636, 384, 108, 20, None, style.MUTED, 1),
        Text(752, 394, "≥ 2", fill=style.MUTED),
    ]
    told = {name: _rows(getattr(arrays, name)) for name in ("A", "O", "dO")}
    told |= {name: _rows(x) for name, x in g._asdict().items()}
    return Picture(800, 420, items, ALT_MAPS.format(**told))


def _gradient_map(left: float, top: float, dX: np.ndarray) -> Group:
    """Return gradients in coloured cells; a zero is told from a small number."""
    width, height = CELL
    items = []
    for i, row in enumerate(dX):
        for j, value in enumerate(row):
            x, y = left + j * width, top + i * height
            ground = style.shade(style.DIVERGING, 0.5 + 0.5 * value / STRONGEST)
            text, ink = "0" if _zero(value) else number(value), style.text_on(ground)
            items += [
                Rect(x, y, width, height, ground, style.CARD, 2),
                Text(x + width / 2, y + height / 2, text, style.CELL, ink, anchor="middle"),
            ]
    T, d = dX.shape
    return (*items, Rect(left, top, d * width, T * height, None, style.MUTED, 1))


def _zero(x: np.ndarray | float) -> np.ndarray | bool:
    return abs(x) < 1e-12


def caption_maps(arrays: Maps) -> str:
    """Say what the picture shows."""
    g = arrays.gradients
    return CAPTION_MAPS.format(
        loss=number(arrays.loss, 4),
        largest="0" if _zero(g.dU).all() else _told(abs(g.dU).max(), 4),
        bar=BAR,
        **{f"zeros_{x}": int(_zero(getattr(g, f"d{x}")).sum()) for x in "UQKV"},
    )


def gradient_maps(**state) -> Lab:
    """Return the lab of a loss and its gradients; ``state`` sets sliders by name.

    Examples
    --------
    >>> gradient_maps(loss="row")
    gradient_maps(loss='row', mask='causal', values='R', factor=1.0)
    """
    return Lab("gradient_maps", MAPS_CONTROLS, compute_maps, draw_maps, caption_maps, state)


# ---------------------------------------------------------------- the step of a difference

EXPONENTS = tuple(range(0, -18, -1))
FLOOR = -18.0  # where an error of 0 is drawn
STEP_CONTROLS = (
    Slider("k", STEP, EXPONENTS, start=-2, format=lambda k: f"10{_raised(k)}"),
    Slider("method", METHOD, tuple(METHODS), start="central", format=METHODS.get),
    Slider("dtype", DTYPE, ("float64", "float32"), start="float64"),
)


class Quotient(NamedTuple):
    """A difference quotient of R's f(t) = 1/(1 + exp((1 - t)/sqrt 2)) at t = 0, and its error."""

    method: str
    dtype: str
    k: float  # the step is 10^k
    low: float  # the smaller of the values subtracted, 0 for the complex step
    high: float
    quotient: float
    exact: float
    error: float
    powers: np.ndarray  # (35,) exponents of steps
    errors: np.ndarray  # (35,) log10 of the error at each
    truncation: np.ndarray  # (35,) log10 of what truncation is expected to give
    rounding: np.ndarray  # (35,) the same for rounding, all -inf for the complex step


def compute_quotient(k: float, method: str, dtype: str) -> Quotient:
    """Compute the quotient at a step, and its errors at all steps."""
    low, high, quotient = quotient_at(k, method, dtype)
    powers = np.arange(0, -17.5, -0.5)
    exact, second, third = derivatives()
    errors = np.array([abs(quotient_at(p, method, dtype)[2] - exact) for p in powers.tolist()])
    unit = 2.0**-53 if dtype == "float64" else 2.0**-24
    leading = abs(second) / 2 if method == "forward" else abs(third) / 6
    order = 1 if method == "forward" else 2
    noise = {"forward": 2 * unit, "central": unit, "complex": 0.0}[method] * _f(0.0)
    with np.errstate(divide="ignore"):
        return Quotient(
            method=method,
            dtype=dtype,
            k=k,
            low=low,
            high=high,
            quotient=quotient,
            exact=exact,
            error=abs(quotient - exact),
            powers=powers,
            errors=np.maximum(np.log10(errors), FLOOR),
            truncation=math.log10(leading) + order * powers,
            rounding=np.log10(noise) - powers,
        )


def derivatives() -> tuple[float, float, float]:
    """Return f', f'' and f''' at 0, from f' = f (1 - f) / sqrt 2."""
    f = _f(0.0)
    slope = f * (1 - f)
    return (
        slope / math.sqrt(2),
        slope * (1 - 2 * f) / 2,
        slope * (1 - 6 * f + 6 * f * f) / math.sqrt(8),
    )


# exp, sin and cos differ in the last bit between computers, and a difference quotient with a small
# step shows nothing else. Here they are rounded correctly, so every reader sees the same digits.


@lru_cache(maxsize=512)
def quotient_at(k: float, method: str, dtype: str) -> tuple[float, float, float]:
    """Return the two values that are subtracted and the quotient, in the arithmetic of a type."""
    kind = np.dtype(dtype).type
    with localcontext(prec=40):
        h = kind(float(Decimal(10) ** Decimal(str(k))))
    if method == "complex":
        high = _imaginary(h, kind)
        return 0.0, float(high), float(high / h)
    if method == "forward":
        low, high, width = _f(kind(0), kind), _f(h, kind), h
    else:
        low, high, width = _f(-h, kind), _f(h, kind), h + h
    return float(low), float(high), float((high - low) / width)


def _f(t: float, kind: type = np.float64) -> float:
    """Return f(t), every operation rounded to the type."""
    one, c = kind(1), kind(1 / math.sqrt(2))
    return one / (one + kind(_rounded("exp", c - t * c)))


def _imaginary(h: float, kind: type) -> float:
    """Return the imaginary part of f(ih), by complex arithmetic without a subtraction."""
    one, c = kind(1), kind(1 / math.sqrt(2))
    e, y = kind(_rounded("exp", c)), h * c
    re, im = one + e * kind(_rounded("cos", y)), e * kind(_rounded("sin", y))
    return im / (re * re + im * im)


@lru_cache(maxsize=2048)
def _rounded(function: str, x: float) -> float:
    """Return exp, cos or sin of x, the nearest float to the true value."""
    with localcontext(prec=40):
        exact = Decimal(float(x))
        if function == "exp":
            return float(exact.exp())
        term = Decimal(1) if function == "cos" else exact
        first = 1 if function == "cos" else 2
        total = term
        for n in range(first, first + 40, 2):  # |x| < 1: the 20th term is below 10^-40
            term *= -exact * exact / (n * (n + 1))
            total += term
        return float(total)


def draw_quotient(arrays: Quotient) -> Picture:
    """Draw the digits on the left, the error against the step on the right."""
    panel = Panel(470, 66, 300, 270, (-17.0, 0.0), (FLOOR - 0.6, 1.0))
    items = [Text(24, 36, DIGITS, style.TITLE, bold=True)]
    names, y = ROWS[arrays.method], 80
    low, high = (_digits(x, arrays.dtype) for x in (arrays.low, arrays.high))
    if arrays.method == "complex":
        y += 40
        items += _spelled(y, names[1], _scientific(arrays.high, arrays.dtype), 0, "")
        y += 80
    else:
        same = _shared(low, high)
        items += _spelled(y, names[0], low, same, "muted")
        items += _spelled(y + 40, names[1], high, same, "muted")
        difference = _scientific(arrays.high - arrays.low, arrays.dtype)
        items += _spelled(y + 80, DIFFERENCE, difference, 0, "")
        y += 120
    quotient, exact = (_digits(x, arrays.dtype) for x in (arrays.quotient, arrays.exact))
    items += _spelled(y, QUOTIENTS[arrays.method], quotient, _shared(quotient, exact), "bold")
    items += _spelled(y + 40, EXACT, exact, 0, "")
    items += [
        _spelled(y + 80, ERROR_NOW, _size(arrays.error), 0, ""),
        Text(24, 398, RIGHT_DIGITS, fill=style.MUTED),
        () if arrays.method == "complex" else Text(24, 424, CANCELLED, fill=style.MUTED),
        axes(
            panel,
            title=ERROR,
            x_label=POWER,
            x_ticks=[(p, f"10{_raised(p)}") for p in (-16, -12, -8, -4, 0)],
            y_ticks=[(FLOOR, "0"), *((p, f"10{_raised(p)}") for p in (-16, -12, -8, -4, 0))],
        ),
    ]
    guides = ((arrays.truncation, TRUNCATION, 1), (arrays.rounding, ROUNDING, 2))
    for line, _, dash in guides:
        inside = (line >= FLOOR) & (line <= 0.9)
        if inside.sum() > 1:
            items.append(
                curve(
                    panel,
                    arrays.powers[inside],
                    line[inside],
                    style.MUTED,
                    dash=style.DASHES[dash],
                )
            )
    items += [
        curve(panel, arrays.powers, arrays.errors, style.GRADIENT),
        mark(panel.x(arrays.k), panel.y(_log(arrays.error)), "circle", style.GRADIENT, 8),
        legend(
            470,
            398,
            [
                Entry(MEASURED, style.GRADIENT, style.DASHES[0]),
                *(
                    Entry(text, style.MUTED, style.DASHES[dash])
                    for line, text, dash in guides
                    if np.isfinite(line).all()
                ),
            ],
        ),
    ]
    told = "" if arrays.method == "complex" else f"{low}, {high}, "
    alt = ALT_STEP.format(
        rows=told,
        quotient=quotient,
        exact=exact,
        method=METHODS[arrays.method],
        dtype=arrays.dtype,
        error=_size(arrays.error),
        guides=GUIDES[arrays.method != "complex"],
    )
    return Picture(800, 480, items, alt)


VALUE_LEFT, PITCH = 170, 11.0


def _spelled(y: float, name: str, text: str, same: int, how: str) -> Group:
    """Return a named number, digit by digit: the first ``same`` characters bold or muted."""
    if not (how or text[-1].isdecimal()):  # a power of ten at its own pitch
        return Text(24, y, name), Text(VALUE_LEFT + 1, y, text)
    items = [Text(24, y, name)]
    for i, character in enumerate(text):
        if character == " ":
            continue
        first = i < same
        ink = style.MUTED if first and how == "muted" else style.INK
        x = VALUE_LEFT + PITCH * (i + 0.5)
        items.append(Text(x, y, character, fill=ink, anchor="middle", bold=first and how == "bold"))
    return tuple(items)


def _digits(x: float, dtype: str) -> str:
    return f"{x:.{17 if dtype == 'float64' else 9}f}".replace("-", "−")


def _scientific(x: float, dtype: str) -> str:
    mantissa, _, exponent = f"{x:.{9 if dtype == 'float64' else 6}e}".partition("e")
    text = "0" if x == 0 else f"{mantissa} · 10{_raised(int(exponent))}"
    return text.replace("-", "−")


def _shared(one: str, other: str) -> int:
    """Return how many leading characters two texts have in common."""
    pairs = zip(one, other, strict=True)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(one))


def _raised(k: int) -> str:
    return str(k).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _log(x: float) -> float:
    return max(math.log10(x), FLOOR) if x else FLOOR


def _size(x: float) -> str:
    """Return a size in two digits, at most: 3.1 x 10^-7."""
    if x == 0:
        return "0"
    mantissa, _, exponent = f"{x:.1e}".partition("e")
    return f"{mantissa}·10{_raised(int(exponent))}" if int(exponent) else mantissa


def caption_quotient(arrays: Quotient) -> str:
    """Say what the picture shows."""
    at = int(np.argmin(abs(arrays.powers - arrays.k)))
    return CAPTION_STEP.format(
        quotient=_digits(arrays.quotient, arrays.dtype),
        exact=_digits(arrays.exact, arrays.dtype),
        error=_size(arrays.error),
        truncation=_size(10 ** arrays.truncation[at]),
        rounding=NO_CANCELLING
        if arrays.method == "complex"
        else ROUNDING_TOO.format(rounding=_size(10 ** arrays.rounding[at])),
    )


def difference_step(**state) -> Lab:
    """Return the lab of a difference quotient and its step; ``state`` sets sliders by name.

    Examples
    --------
    >>> difference_step(k=-8)
    difference_step(k=-8, method='central', dtype='float64')
    """
    return Lab(
        "difference_step", STEP_CONTROLS, compute_quotient, draw_quotient, caption_quotient, state
    )


# ---------------------------------------------------------------- gradient descent, step by step

MOST = 60
DESCENT_CONTROLS = (
    Slider("n", STEPS, (*range(11), 12, 15, 20, 25, 30, 40, 50, MOST), start=1),
    Slider("rate", RATE, (0.1, 0.3, 1.0, 3.0), start=1.0, format="{:g}".format),
    Slider("moves", MOVES, tuple(MOVERS), start="scores", format=MOVERS.get),
    Slider("target", TARGET, tuple(TARGETS), start="inside", format=TARGET_NAMES.get),
)


class Descent(NamedTuple):
    """Gradient descent of one query over three keys and values, n steps."""

    target: np.ndarray  # (2,)
    rate: float
    K: np.ndarray  # (3, 2) now
    V: np.ndarray  # (3, 2) now
    V_first: np.ndarray  # (3, 2)
    a: np.ndarray  # (3,) now
    path: np.ndarray  # (n + 1, 2) outputs
    losses: np.ndarray  # (n + 1,)
    foretold: float  # - rate |gradient|^2 before the last step, 0 if there is none


def compute_descent(n: int, rate: float, moves: str, target: str) -> Descent:
    """Compute n steps q - rate dq, K - rate dK, V - rate dV of the loss |o - t|^2 / 2."""
    X, W_Q, W_K, W_V = (np.array(x, float) for x in R_HEAD[1:5])
    q, K, V = (X @ W_Q)[2:], X @ W_K, X @ W_V
    V_first, t = V, np.array(TARGETS[target])
    moving = {"query": (1, 0, 0), "scores": (1, 1, 0), "values": (0, 0, 1), "all": (1, 1, 1)}
    path, losses, foretold = [], [], 0.0
    for step in range(n + 1):
        o, A, _ = attention(q, K, V)
        path.append(o[0])
        losses.append(float((o - t)[0] @ (o - t)[0] / 2))
        if step == n:
            break
        g = attention_backward(o - t, q, K, V, A)
        dq, dK, dV = (m * dx for m, dx in zip(moving[moves], g[:3], strict=True))
        foretold = -rate * float((dq**2).sum() + (dK**2).sum() + (dV**2).sum())
        q, K, V = q - rate * dq, K - rate * dK, V - rate * dV
    return Descent(t, rate, K, V, V_first, A[0], np.array(path), np.array(losses), foretold)


def draw_descent(arrays: Descent) -> Picture:
    """Draw values, output and target in the plane; the loss over the steps; the weights."""
    plane = Panel(60, 60, 319, 330, (-1.24, 2.24), (-1.1, 2.5))  # both axes in one scale
    above = Panel(480, 60, 290, 150, (0, MOST), (0, 0.8))
    below = Panel(480, 326, 290, 100, y_limits=(0, 1.35))
    place = [(plane.x(x), plane.y(y)) for x, y in arrays.V]
    first = [(plane.x(x), plane.y(y)) for x, y in arrays.V_first]
    shifts = ((20, 8), (-18, -12), (18, -14))
    n, steps = len(arrays.losses) - 1, np.arange(len(arrays.losses))
    (x0, y0), (x, y), (tx, ty) = arrays.path[0], arrays.path[-1], arrays.target
    items = [
        axes(
            plane,
            title=PLANE,
            x_ticks=((-1, "−1"), (0, "0"), (1, "1"), (2, "2")),
            y_ticks=((0, "0"), (1, "1"), (2, "2")),
        ),
        Polygon(tuple(first), None, style.MUTED, 1.5),
        Polygon(tuple(place), style.VALUE, opacity=0.1),
        Polygon(tuple(place), None, style.VALUE, 2),
        *(mark(*p, "square", style.VALUE, 6) for p in place),
        *(
            Text(x + dx, y + dy, f"$v_{j}$", fill=style.VALUE, anchor="middle", bold=True)
            for j, ((x, y), (dx, dy)) in enumerate(zip(place, shifts, strict=True), 1)
        ),
        curve(plane, *arrays.path.T, style.OUTPUT) if n else (),
        *(Circle(plane.x(x), plane.y(y), 4, style.OUTPUT) for x, y in arrays.path),
        apart([mark(plane.x(tx), plane.y(ty), "diamond", style.GRADIENT, 9)]),
        apart([mark(plane.x(x), plane.y(y), "circle", style.OUTPUT, 9)]),
        mark(74, 440, "circle", style.OUTPUT, 8),
        Text(92, 440, OUTPUT),
        mark(194, 440, "diamond", style.GRADIENT, 8),
        Text(212, 440, AIM),
        Polygon(((284, 446), (306, 446), (295, 432)), None, style.MUTED, 1.5),
        Text(314, 440, OLD),
        axes(
            above, title=LOSS_CURVE, x_label=TAKEN, y_ticks=((0, "0"), (0.4, "0.4"), (0.8, "0.8"))
        ),
        curve(above, steps, arrays.losses, style.GRADIENT) if n else (),
        mark(above.x(n), above.y(arrays.losses[-1]), "circle", style.GRADIENT, 7),
        axes(below, title=WEIGHTS, x_ticks=(), y_ticks=((0, "0"), (1, "1"))),
        bars(below, arrays.a, [f"$a_{j}$" for j in (1, 2, 3)]),
    ]
    told = {"x0": x0, "y0": y0, "x": x, "y": y, "first": arrays.losses[0]}
    told |= {"loss": arrays.losses[-1], "tx": tx, "ty": ty}
    alt = ALT_DESCENT.format(
        n=n,
        a=_row(arrays.a),
        V=_rows(arrays.V),
        **{name: number(value, 3) for name, value in told.items()},
    )
    return Picture(800, 470, items, alt)


def caption_descent(arrays: Descent) -> str:
    """Say what the picture shows."""
    last, losses = "", arrays.losses
    if len(losses) > 1:
        change = _told(losses[-1] - losses[-2], 5)
        last = LAST_STEP.format(foretold=_told(arrays.foretold, 5), change=change)
    kx, ky = arrays.K.sum(axis=0)
    return CAPTION_DESCENT.format(
        loss=_told(losses[-1], 4),
        first=number(losses[0], 4),
        last=last,
        kx=number(kx, 3),
        ky=number(ky, 3),
        a=_row(arrays.a, 3),
    )


def descent(**state) -> Lab:
    """Return the lab of gradient descent, one step at a time; ``state`` sets sliders by name.

    Examples
    --------
    >>> descent(n=3)
    descent(n=3, rate=1.0, moves='scores', target='inside')
    """
    return Lab("descent", DESCENT_CONTROLS, compute_descent, draw_descent, caption_descent, state)


# ---------------------------------------------------------------- common parts


def _row(values: Sequence[float], digits: int = 2) -> str:
    return "(" + ", ".join(number(value, digits) for value in values) + ")"


def _told(x: float, digits: int) -> str:
    """Round a number, and do not let a small one pass for zero."""
    bound = 0.5 * 10**-digits
    return (
        number(x, digits) if abs(x) >= bound else LESS_THAN.format(bound=number(bound, digits + 1))
    )


def _rows(M: np.ndarray) -> str:
    return ", ".join(map(_row, M))
