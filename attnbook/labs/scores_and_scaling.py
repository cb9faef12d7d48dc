"""Labs of chapter 04: what the width of queries and keys does to scores, weights and entropy."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.diagrams import (
    Panel,
    apart,
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

GAMMA = "correlation of $q_p$ with $q_{p'}$, $γ$"
KAPPA = "correlation of $q_p$ with $k_p$, $κ$"
SCALED = "Scaled scores $u$"
MOMENTS = "Mean and sd of $u$: lines by (4.9), marks measured"
MEAN, SD = "mean", "sd"
MEAN_SD = "mean {mean}, sd {sd}"
PROMISED = "dotted: mean 0, sd 1 (Theorem 4.2)"
ALT_CORRELATION = (
    "Two pictures. A histogram of {n} scaled scores with mean {mean} and standard deviation {sd}, "
    "and the normal curve of mean 0 and standard deviation 1; {share} percent lie outside the "
    "axis. Curves over the widths 1 to 512: the mean by the formula {means}, the standard "
    "deviation {sds}, with the measured values on them. The present width is {d_k}."
)
CAPTION_CORRELATION = (
    "The scaled scores have mean {mean} and standard deviation {sd}; by (4.9) they are "
    "{mean_exact} and {sd_exact}. Theorem 4.2, where its hypotheses hold, says 0 and 1."
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
    left = Panel(40, 46, 330, 120, (EDGES[0], EDGES[-1]), (0, 1.3))
    right = Panel(450, 46, 330, 120, (0, len(arrays.a)), (0, 1.15))
    below = Panel(70, 252, 580, 110, (0, len(WIDTHS) - 0.75), (0, 1.05))
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
    return Picture(800, 430, items, alt)


def caption(arrays: WidthAndTemperature) -> str:
    """Say what the picture shows."""
    return CAPTION.format(
        sd=_sd(arrays),
        top=number(arrays.a.max(), 3),
        jacobian=_power(_largest_derivative(arrays.a)),
        entropy=number(_entropy_now(arrays)),
    )


def _largest_derivative(a: np.ndarray) -> float:
    """Return max_j a_j (1 - a_j), the rest as a sum of weights: 1 - a_j loses all digits near 1."""
    rest = [np.delete(a, j).sum() for j in range(len(a))]
    return (a * rest).max()


def _power(x: float) -> str:
    """Write a small number as a multiple of a power of ten, others with three decimals."""
    if x == 0 or x >= 0.001:
        return number(x, 3)
    digits, exponent = f"{x:.1e}".split("e")
    return f"{digits} · $10^{{{int(exponent)}}}$".replace("-", "−")


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


# ---------------------------------------------------------------- correlation and dependence

FINE_EDGES = np.arange(-30.25, 30.5, 0.5)
CORRELATION_CONTROLS = (
    Slider("d_k", D_K, WIDTHS, start=64),
    Slider("gamma", GAMMA, (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9), start=0.0, format="{:g}".format),
    Slider("kappa", KAPPA, (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0), start=0.0, format="{:g}".format),
)


class Correlation(NamedTuple):
    """Scaled scores ``u`` of vectors that break (H3) and (H4): measured, and by (4.9)."""

    d_k: int
    counts: np.ndarray  # of u between FINE_EDGES
    outside: float  # share of u beyond them
    mean: np.ndarray  # (widths,) measured
    sd: np.ndarray
    mean_exact: np.ndarray  # (widths,) by (4.9)
    sd_exact: np.ndarray


@lru_cache(maxsize=1)
def _sums() -> tuple[np.ndarray, ...]:
    """Draw independent normal g, h (width 512) and b, c (one number) for each pair of vectors.

    Returns
    -------
    b, c : (PAIRS,)
    g, h, gg, gh : (widths, PAIRS) sums over the components of g, h, g^2 and g h
    """
    rng = np.random.default_rng(12)
    b, c = rng.normal(size=(2, PAIRS))
    g, h, gg, gh = np.zeros((4, len(WIDTHS), PAIRS))
    for n, (low, high) in enumerate(zip((0, *WIDTHS), WIDTHS, strict=False)):
        x, y = rng.normal(size=(2, PAIRS, high - low))
        for total, term in ((g, x), (h, y), (gg, x * x), (gh, x * y)):
            total[n] = total[n - 1] + term.sum(axis=1)
    return b, c, g, h, gg, gh


def compute_correlation(d_k: int, gamma: float, kappa: float) -> Correlation:
    """Compute u = q k^T / sqrt(d_k) for normal vectors with correlated, dependent components.

    q = sqrt(gamma) b 1 + sqrt(1 - gamma) g,  k' = sqrt(gamma) c 1 + sqrt(1 - gamma) h  and
    k = kappa q + sqrt(1 - kappa^2) k'. The products are expanded, so that all widths cost sums
    that are drawn once.
    """
    b, c, g, h, gg, gh = _sums()
    widths = np.array(WIDTHS)[:, None]
    mixed = np.sqrt(gamma * (1 - gamma))
    qq = gamma * widths * b * b + 2 * mixed * b * g + (1 - gamma) * gg
    qk = gamma * widths * b * c + mixed * (b * h + c * g) + (1 - gamma) * gh
    u = (kappa * qq + np.sqrt(1 - kappa**2) * qk) / np.sqrt(widths)
    now = u[WIDTHS.index(d_k)]
    counts, _ = np.histogram(now, FINE_EDGES)
    widths = widths[:, 0]
    return Correlation(
        d_k=d_k,
        counts=counts,
        outside=1 - counts.sum() / PAIRS,
        mean=u.mean(axis=1),
        sd=u.std(axis=1),
        mean_exact=kappa * np.sqrt(widths),
        sd_exact=np.sqrt((1 + kappa**2) * (1 + (widths - 1) * gamma**2)),
    )


def draw_correlation(arrays: Correlation) -> Picture:
    """Draw the histogram with the curve that the theorem promises, and the two moments below."""
    above = Panel(70, 70, 690, 110, (FINE_EDGES[0], FINE_EDGES[-1]), (0, 1.15))
    below = Panel(70, 262, 610, 120, (0, len(WIDTHS) - 0.75), (-2, 32))
    x = np.linspace(-4, 4, 81)
    y = _relative(arrays.counts)
    places = range(len(WIDTHS))
    n = WIDTHS.index(arrays.d_k)
    items = [
        axes(above, y_ticks=()),
        Text(above.left, 20, SCALED, size=style.TITLE, bold=True),
        histogram(above, y, FINE_EDGES),
        apart(curve(above, x, np.exp(-(x**2) / 2), style.INK, dash=style.DASHES[2])),
        Text(above.right, 20, MEAN_SD.format(**_moments(arrays)), anchor="end"),
        Text(above.right, 48, PROMISED, fill=style.MUTED, anchor="end"),
        axes(
            below,
            title=MOMENTS,
            x_label=D_K,
            x_ticks=tuple((i, str(d_k)) for i, d_k in enumerate(WIDTHS)),
            y_ticks=((0, "0"), (10, "10"), (20, "20"), (30, "30")),
        ),
        vertical(below, n),
        curve(below, places, arrays.sd_exact, style.SCORE),
        curve(below, places, arrays.mean_exact, style.MUTED, dash=style.DASHES[1]),
        [mark(below.x(i), below.y(v), "circle", style.SCORE, 5) for i, v in enumerate(arrays.sd)],
        [mark(below.x(i), below.y(v), "square", style.MUTED, 5) for i, v in enumerate(arrays.mean)],
        end_labels(
            below,
            [(arrays.sd_exact[-1], SD, style.SCORE), (arrays.mean_exact[-1], MEAN, style.MUTED)],
        ),
    ]
    if arrays.outside >= 0.005:
        outside = OUTSIDE.format(share=number(100 * arrays.outside, 0))
        items.append(Text(above.left, 48, outside))
    alt = ALT_CORRELATION.format(
        n=PAIRS,
        share=number(100 * arrays.outside, 0),
        means=", ".join(number(v, 1) for v in arrays.mean_exact),
        sds=", ".join(number(v, 1) for v in arrays.sd_exact),
        d_k=arrays.d_k,
        **_moments(arrays),
    )
    return Picture(800, 450, items, alt)


def caption_correlation(arrays: Correlation) -> str:
    """Say what the picture shows."""
    n = WIDTHS.index(arrays.d_k)
    return CAPTION_CORRELATION.format(
        mean_exact=number(arrays.mean_exact[n]),
        sd_exact=number(arrays.sd_exact[n]),
        **_moments(arrays),
    )


def _moments(arrays: Correlation) -> dict[str, str]:
    n = WIDTHS.index(arrays.d_k)
    return {"mean": number(arrays.mean[n]), "sd": number(arrays.sd[n])}


def _relative(counts: np.ndarray) -> np.ndarray:
    """Scale counts so that the tallest bar is 1."""
    return counts / max(counts.max(), 1)


def correlation(**state) -> Lab:
    """Return the lab of correlated and dependent components; ``state`` sets sliders by name.

    Examples
    --------
    >>> correlation(gamma=0.3)
    correlation(d_k=64, gamma=0.3, kappa=0.0)
    """
    return Lab(
        "correlation",
        CORRELATION_CONTROLS,
        compute_correlation,
        draw_correlation,
        caption_correlation,
        state,
    )
