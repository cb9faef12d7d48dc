"""Labs of chapter 02: change of basis, a crowd of directions, a probe for features."""

from functools import cache
from math import erf
from typing import NamedTuple

import numpy as np

from attnbook import directions, style
from attnbook.diagrams import (
    Entry,
    Group,
    Panel,
    apart,
    arrow,
    axes,
    curve,
    histogram,
    legend,
    matrix,
    number,
    segment,
    vertical,
)
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Line, Picture, Text

# Everything a reader sees, in one place.
TURN = "axes turned by $θ$"
FACTOR = "length factor $s$ of $x_2$"
PLANE = "Three rows and two pairs of axes"
OLD, NEW = "old axes", "new axes"
NEW_NAMES = ("1′", "2′")
COORDINATES = ("old coordinates", "new coordinates")
LARGEST = "shaded: largest of its row"
COSINES, DISTANCES = "cosines", "distances"
ALT_BASIS = (
    "A plane with three arrows, the old axes and axes turned by {theta} degrees. Tables: old "
    "coordinates {old}; new coordinates {new}; cosines of the pairs 1-2, 1-3, 2-3: {cos}; their "
    "distances {far}."
)
CAPTION_BASIS = (
    "In the new axes the rows are {new}, in the old ones {old}. The cosines are {cos} for the "
    "pairs 1-2, 1-3, 2-3, and the distances {far}: both are the same on either pair of axes. {near}"
)
SAME = "Row $x_{near}$ is nearest to $x_1$ both by angle and by distance."
OTHER = "By angle $x_{angle}$ is nearest to $x_1$, by distance $x_{far}$ is."

DIMENSIONS = "dimensions $n$"
LINES = "lines $N$"
KIND = "directions"
RANDOM, EXPLICIT = "random", "explicit"
ANGLES = "Angles between all pairs of lines"
SHARE = "share of pairs"
DEGREES = "angle in degrees"
CHANCE = "expected for random directions"
ALT_FORCED = " and the forced angle, {angle} degrees"
SMALLEST = "smallest: {angle}°"
FORCED = "forced: {angle}°"
WANTED = "85°"
ALT_CROWD = (
    "Histogram of the angles of all pairs of {N} {kind} lines in {n} dimensions: the smallest is "
    "{smallest} degrees, {below} percent are not above 85. A dashed curve shows what is expected "
    "for random directions; upright lines mark the smallest angle, 85 degrees{flag}. {bound}"
)
CAPTION_CROWD = (
    "{N} {kind} lines in {n} dimensions{all}: {pairs} pairs, smallest angle {smallest}°, "
    "{below} % of the pairs not above 85°. {bound}"
)
ALL = " (the construction has no more)"
FREE = "With N ≤ n lines all angles can be 90°."
BOUND = "Some angle of so many lines must be {angle}° or less, whoever chose them"
POSSIBLE = BOUND + "; this is no obstacle to 85°."
EXCLUDED = BOUND + ", so they cannot all be above 85°."

FEATURES = "features $m$"
ACTIVE = "active at once $k$"
READINGS = ("Readings of features that are on", "Readings of features that are off")
READING = "reading $x · d_i$ (the end bars hold all beyond them)"
THRESHOLD = "threshold ½"
NORMAL = "normal curve with the predicted spread"
WRONG = "wrong: {share} %"
SPREAD = "sd {measured}, predicted {predicted}"
ALT_PROBE = (
    "Two histograms of readings, {m} features in {n} dimensions, {k} on at once. Features that are "
    "on read 1 with a standard deviation of {sd_on}, {miss} percent below one half. Features that "
    "are off read 0 with a standard deviation of {sd_off}, {alarm} percent above one half. Dotted: "
    "normal curves with the predicted spread; dashed: the threshold one half."
)
CAPTION_PROBE = (
    "Interference of $k$ = {k} features in $n$ = {n} dimensions: standard deviation {sd_off} in "
    "the features that are off, predicted $√(k/n)$ = {predicted}. One half as threshold misses "
    "{miss} % of the {k} features that are on and raises {alarms} false alarms per row among "
    "the {off} that are off."
)


# ---------------------------------------------------------------- another basis

ROWS = np.array([[2.0, 1.0], [2.0, 0.5], [1.2, 1.4]])  # x_1, x_2 before the factor, x_3
ROWS.flags.writeable = False
PAIRS = ((0, 1), (0, 2), (1, 2))
BASIS_CONTROLS = (
    Slider("theta", TURN, tuple(range(0, 181, 5)), start=0, format="{}°".format),
    Slider("s", FACTOR, (0.25, 0.5, 0.75, 1.0, 1.5), start=1.0, format="{:g}".format),
)


class Basis(NamedTuple):
    """Three rows in old and new coordinates, and what does not depend on the axes."""

    theta: int
    basis: np.ndarray  # (2, 2) rows: the new unit axes in old coordinates
    old: np.ndarray  # (3, 2)
    new: np.ndarray  # (3, 2)
    cosines: np.ndarray  # (3,) of the pairs 1-2, 1-3, 2-3, from the new coordinates
    distances: np.ndarray  # (3,)


def compute_basis(theta: int, s: float) -> Basis:
    """Compute the coordinates X R^T of the rows in axes turned by theta, cosines and distances."""
    t = np.radians(theta)
    R = np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
    old = ROWS * np.array([[1], [s], [1]])
    new = old @ R.T
    norms = np.linalg.norm(new, axis=1)
    cosines = [new[i] @ new[j] / (norms[i] * norms[j]) for i, j in PAIRS]
    distances = [np.linalg.norm(new[i] - new[j]) for i, j in PAIRS]
    return Basis(theta, R, old, new, np.array(cosines), np.array(distances))


def draw_basis(arrays: Basis) -> Picture:
    """Draw the rows with both pairs of axes, and four tables."""
    plane = Panel(30, 60, 360, 360, (-3.3, 3.3), (-3.3, 3.3))
    items = [Text(30, 30, PLANE, style.TITLE, bold=True)]
    for direction in np.eye(2):
        items += segment(plane, -3.2 * direction, 3.2 * direction, style.MUTED)
    names = iter(NEW_NAMES)
    for direction in arrays.basis:
        ends = -3.2 * direction, 3.2 * direction
        items += segment(plane, *ends, style.GRADIENT, dash=style.DASHES[1], stroke_width=2.5)
        x, y = 3.05 * direction + 0.3 * np.array([-direction[1], direction[0]])
        items.append(
            Text(plane.x(x), plane.y(y), next(names), anchor="middle", fill=style.GRADIENT)
        )
    for name, point in zip(("$x_1$", "$x_2$", "$x_3$"), arrays.old, strict=True):
        x, y = plane.x(point[0]), plane.y(point[1])
        away = 18 * point / np.linalg.norm(point)
        items += arrow(plane.x(0), plane.y(0), x, y, style.QUERY)
        label = Text(x + away[0], y - away[1], name, anchor="middle", bold=True, fill=style.QUERY)
        items.append(label)
    items.append(
        legend(
            60,
            432,
            [
                Entry(OLD, style.MUTED, style.DASHES[0]),
                Entry(NEW, style.GRADIENT, style.DASHES[1]),
            ],
        )
    )
    names = ["$x_1$", "$x_2$", "$x_3$"]
    for left, title, values in zip((450, 620), COORDINATES, (arrays.old, arrays.new), strict=True):
        largest = values.argmax(axis=1)
        grounds = [[style.SEQUENTIAL[1] if j == best else None for j in (0, 1)] for best in largest]
        items.append(matrix(left, 84, values, grounds=grounds, cell=(66, 34)))
        items.append(Text(left + 66, 60, title, anchor="middle", bold=True))
    items += [
        Text(440, 84 + 34 * (i + 0.5), name, anchor="end", fill=style.QUERY, bold=True)
        for i, name in enumerate(names)
    ]
    items.append(Text(450, 206, LARGEST, fill=style.MUTED))
    for left, title, values in (
        (450, COSINES, arrays.cosines),
        (620, DISTANCES, arrays.distances),
    ):
        items.append(matrix(left, 284, [[v] for v in values], digits=3, cell=(90, 34)))
        items.append(Text(left + 45, 260, title, anchor="middle", bold=True))
    items += [
        Text(440, 284 + 34 * (row + 0.5), f"{i + 1}, {j + 1}", anchor="end")
        for row, (i, j) in enumerate(PAIRS)
    ]
    return Picture(800, 490, items, ALT_BASIS.format(theta=arrays.theta, **_basis(arrays)))


def _basis(arrays: Basis) -> dict[str, str]:
    return {
        "old": ", ".join(map(_listed, arrays.old)),
        "new": ", ".join(map(_listed, arrays.new)),
        "cos": _listed(arrays.cosines, 3),
        "far": _listed(arrays.distances, 3),
    }


def caption_basis(arrays: Basis) -> str:
    """Say what the picture shows."""
    by_angle = 2 if arrays.cosines[0] > arrays.cosines[1] else 3
    by_distance = 2 if arrays.distances[0] < arrays.distances[1] else 3
    near = SAME.format(near=by_angle)
    if by_angle != by_distance:
        near = OTHER.format(angle=by_angle, far=by_distance)
    return CAPTION_BASIS.format(near=near, **_basis(arrays))


def change_of_basis(**state) -> Lab:
    """Return the lab of coordinates and directions; ``state`` sets sliders by name.

    Examples
    --------
    >>> change_of_basis(theta=45)
    change_of_basis(theta=45, s=1.0)
    """
    return Lab("change_of_basis", BASIS_CONTROLS, compute_basis, draw_basis, caption_basis, state)


# ---------------------------------------------------------------- a crowd of directions

WIDTH = 1.25  # of a bin, in degrees; angles below the first bin do not occur here
EDGES = np.arange(45, 90.1, WIDTH)
FIELDS = {32: 5, 128: 7, 512: 9}  # n = 2^m
MOST_LINES = 500
CROWD_CONTROLS = (
    Slider("n", DIMENSIONS, (32, 100, 128, 512), start=100),
    Slider("N", LINES, (5, 10, 20, 50, 100, 200, 300, 412, 413, MOST_LINES), start=50),
    Slider("kind", KIND, (RANDOM, EXPLICIT), start=RANDOM),
)


class Crowd(NamedTuple):
    """The angles of all pairs of lines, counted in bins, and what must happen."""

    n: int
    N: int  # lines shown
    kind: str
    all: bool  # whether the construction has no more lines than these
    shares: np.ndarray  # (bins,) of the pairs
    expected: np.ndarray  # (bins,) for random directions
    smallest: float  # degrees
    above: float  # share of the pairs above 85 degrees
    forced: float  # degrees: some pair of N lines in n dimensions is at this angle or below


@cache
def _lines(n: int, kind: str) -> np.ndarray:
    """Return up to MOST_LINES lines; a smaller crowd is a part of a larger one."""
    if kind == RANDOM:
        X = directions.random_directions(MOST_LINES, n, seed=0)
    elif n == 100:
        X = np.random.default_rng(0).permutation(directions.triple_lines())
    else:
        pairs = np.random.default_rng(0).permutation(n * n)[:MOST_LINES]
        X = directions.sign_lines(FIELDS[n], *np.divmod(pairs, n))
    X.flags.writeable = False
    return X


@cache
def _expected(n: int) -> np.ndarray:
    """Return the share of random pairs in each bin of angles."""
    beyond = [directions.share_beyond(n, max(np.cos(np.radians(edge)), 0)) for edge in EDGES]
    shares = np.diff(beyond)
    shares.flags.writeable = False
    return shares


class _Growth(NamedTuple):
    """What a crowd of the first N = 1, 2, ... lines looks like."""

    counts: np.ndarray  # (MOST_LINES, bins) pairs in each bin
    above: np.ndarray  # (MOST_LINES,) pairs above 85 degrees
    smallest: np.ndarray  # (MOST_LINES,) degrees


@cache
def _growth(n: int, kind: str) -> _Growth:
    """Count the angles arccos |x_i x_j| that each line makes with those before it, and add up."""
    X = _lines(n, kind)
    angles = np.degrees(np.arccos(np.minimum(np.abs(X @ X.T).round(12), 1)))
    places = np.minimum(((angles - EDGES[0]) / WIDTH).astype(int), len(EDGES) - 2)
    counts = [np.bincount(places[j, :j], minlength=len(EDGES) - 1) for j in range(len(X))]
    above = [np.count_nonzero(angles[j, :j] > 85) for j in range(len(X))]
    smallest = [angles[j, :j].min(initial=90.0) for j in range(len(X))]
    return _Growth(np.cumsum(counts, 0), np.cumsum(above), np.minimum.accumulate(smallest))


def compute_crowd(n: int, N: int, kind: str) -> Crowd:
    """Compute the angles of all pairs of N lines, and the angle that Welch's bound forces."""
    growth = _growth(n, kind)
    available = len(growth.counts)
    N = min(N, available)
    pairs = N * (N - 1) // 2
    return Crowd(
        n=n,
        N=N,
        kind=kind,
        all=N == available < MOST_LINES,
        shares=growth.counts[N - 1] / pairs,
        expected=_expected(n),
        smallest=float(growth.smallest[N - 1]),
        above=float(growth.above[N - 1] / pairs),
        forced=float(np.degrees(np.arccos(directions.forced_cosine(N, n)))),
    )


def draw_crowd(arrays: Crowd) -> Picture:
    """Draw the histogram of the angles with three flags: the smallest, the forced one, and 85."""
    panel = Panel(90, 150, 670, 230, (EDGES[0], 90), (0, 1))
    middles = (EDGES[:-1] + EDGES[1:]) / 2
    items = [
        axes(
            panel,
            title="",
            x_label=DEGREES,
            y_label=SHARE,
            x_ticks=tuple((v, str(v)) for v in range(45, 91, 5)),
            y_ticks=((0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1, "1")),
        ),
        Text(30, 28, ANGLES, style.TITLE, bold=True),
        histogram(panel, arrays.shares, EDGES),
        apart(curve(panel, middles, arrays.expected, style.INK, dash=style.DASHES[1])),
        _flag(panel, 85, 68, WANTED, style.KEY, style.DASHES[2]),
        _flag(panel, arrays.smallest, 128, _smallest(arrays), style.QUERY, style.DASHES[0]),
    ]
    if arrays.forced < 90:
        text = FORCED.format(angle=number(arrays.forced, 1))
        items.append(_flag(panel, arrays.forced, 98, text, style.GRADIENT, style.DASHES[3]))
    items.append(legend(30, 46, [Entry(CHANCE, style.INK, style.DASHES[1])]))
    flag = ALT_FORCED.format(angle=number(arrays.forced, 1)) if arrays.forced < 90 else ""
    alt = ALT_CROWD.format(flag=flag, bound=_bound(arrays), **_crowd(arrays))
    return Picture(800, 450, items, alt)


def _smallest(arrays: Crowd) -> str:
    return SMALLEST.format(angle=number(arrays.smallest, 1))


def _flag(panel: Panel, x: float, y: float, text: str, fill: str, dash: tuple) -> Group:
    """Return an upright line that rises above the panel, and its text beside its top."""
    place = panel.x(x)
    beside = min(place, panel.x(85)) - 8
    flag = (
        Line(place, y - 8, place, panel.bottom, fill, 2.5, dash),
        Text(beside, y, text, fill=fill, bold=True, anchor="end"),
    )
    if place > panel.x(85):  # the flag of 85 stands between the text and its line: join them
        flag += (Line(beside + 3, y, place, y, fill, 1.5),)
    return apart(flag)


def caption_crowd(arrays: Crowd) -> str:
    """Say what the picture shows."""
    return CAPTION_CROWD.format(
        all=ALL if arrays.all else "",
        pairs=arrays.N * (arrays.N - 1) // 2,
        bound=_bound(arrays),
        **_crowd(arrays),
    )


def _bound(arrays: Crowd) -> str:
    if arrays.forced == 90:
        return FREE
    text = POSSIBLE if arrays.forced > 85 else EXCLUDED
    rounded_up = np.ceil(1e4 * arrays.forced) / 1e4  # so that the sentence stays true
    return text.format(angle=number(rounded_up, 4))


def _crowd(arrays: Crowd) -> dict[str, object]:
    return {
        "n": arrays.n,
        "N": arrays.N,
        "kind": arrays.kind,
        "smallest": number(arrays.smallest, 1),
        "below": number(100 * (1 - arrays.above), 1),
    }


def crowd_of_directions(**state) -> Lab:
    """Return the lab of many lines and their angles; ``state`` sets sliders by name.

    Examples
    --------
    >>> crowd_of_directions(N=300, kind="explicit")
    crowd_of_directions(n=100, N=300, kind='explicit')
    """
    return Lab(
        "crowd_of_directions", CROWD_CONTROLS, compute_crowd, draw_crowd, caption_crowd, state
    )


# ---------------------------------------------------------------- a probe for features

WIDTHS, COUNTS = (64, 128, 256, 512), (256, 512, 1024, 2048)
VECTORS = 16  # how many rows, each with its own active features
BINS = -4.1 + 0.2 * np.arange(47)  # 0 and 1 are the middles of bins, 1/2 is an edge
PROBE_CONTROLS = (
    Slider("n", DIMENSIONS, WIDTHS, start=512),
    Slider("m", FEATURES, COUNTS, start=2048),
    Slider("k", ACTIVE, (1, 2, 5, 10, 20, 50, 100, 200), start=5),
)


class Probe(NamedTuple):
    """What the features read in vectors that are sums of k directions."""

    n: int
    m: int
    k: int
    on: np.ndarray  # (bins,) shares of the readings of features that are on
    off: np.ndarray  # (bins,) shares of the readings of features that are off
    sd_on: float
    sd_off: float
    miss: float  # share of the readings of features that are on below 1/2
    alarm: float  # share of the readings of features that are off above 1/2


@cache
def _directions(n: int) -> np.ndarray:
    D = directions.random_directions(COUNTS[-1], n, seed=1)
    D.flags.writeable = False
    return D


@cache
def _orders(m: int) -> np.ndarray:
    """Return for each vector the features in the order in which they become active."""
    rng = np.random.default_rng(2)
    orders = np.array([rng.permutation(m) for _ in range(VECTORS)])
    orders.flags.writeable = False
    return orders


def compute_probe(n: int, m: int, k: int) -> Probe:
    """Compute x = sum of k directions and the readings x D^T, for VECTORS choices of the k."""
    D = _directions(n)[:m]
    on = np.zeros((VECTORS, m), bool)
    np.put_along_axis(on, _orders(m)[:, :k], True, axis=1)
    readings = on.astype(float) @ D @ D.T
    return Probe(
        n=n,
        m=m,
        k=k,
        on=_shares(readings[on]),
        off=_shares(readings[~on]),
        sd_on=float(np.sqrt(np.mean((readings[on] - 1) ** 2))),
        sd_off=float(np.sqrt(np.mean(readings[~on] ** 2))),
        miss=float((readings[on] < 0.5).mean()),
        alarm=float((readings[~on] > 0.5).mean()),
    )


def _shares(readings: np.ndarray) -> np.ndarray:
    """Return the share of readings in each bin; what lies outside is counted in the end bins."""
    places = np.floor((readings - BINS[0]) / 0.2).astype(int)
    places = np.clip(places, 0, len(BINS) - 2)
    return np.bincount(places, minlength=len(BINS) - 1) / len(readings)


def draw_probe(arrays: Probe) -> Picture:
    """Draw the readings of active features over those of the others."""
    items = []
    cases = (
        (arrays.on, 1, arrays.k - 1, arrays.sd_on, arrays.miss, style.SCORE),
        (arrays.off, 0, arrays.k, arrays.sd_off, arrays.alarm, style.SCORE),
    )
    for row, (shares, centre, others, sd, wrong, fill) in enumerate(cases):
        panel = Panel(40, 80 + 200 * row, 500, 110, (BINS[0], BINS[-1]), (0, 1))
        spread = np.sqrt(others / arrays.n)
        items += [
            axes(
                panel,
                title=READINGS[row],
                x_label=READING if row else "",
                x_ticks=tuple((v, number(v, 0)) for v in range(-4, 6)),
                y_ticks=(),
            ),
            histogram(panel, shares / shares.max(), BINS, fill),
            apart(vertical(panel, 0.5, stroke=style.GRADIENT)),
        ]
        if others:
            expected = np.diff([erf((edge - centre) / (spread * np.sqrt(2))) for edge in BINS]) / 2
            middles = (BINS[:-1] + BINS[1:]) / 2
            height = np.minimum(expected / shares.max(), 1.1)  # may rise a little above the panel
            bell = panel._replace(top=panel.top - 11, height=121, y_limits=(0, 1.1))
            items.append(apart(curve(bell, middles, height, style.INK, dash=style.DASHES[2])))
        texts = (
            WRONG.format(share=number(100 * wrong, 2)),
            SPREAD.format(measured=number(sd, 3), predicted=number(spread, 3)),
        )
        items += [
            Text(570, panel.top + 24, texts[0], bold=True),
            Text(570, panel.top + 54, texts[1].split(", ")[0]),
            Text(570, panel.top + 80, texts[1].split(", ")[1]),
        ]
    items.append(
        legend(
            40,
            456,
            [
                Entry(THRESHOLD, style.GRADIENT, style.DASHES[1]),
                Entry(NORMAL, style.INK, style.DASHES[2]),
            ],
        )
    )
    return Picture(800, 516, items, ALT_PROBE.format(**_probe(arrays)))


def caption_probe(arrays: Probe) -> str:
    """Say what the picture shows."""
    off = arrays.m - arrays.k
    return CAPTION_PROBE.format(
        off=off,
        alarms=number(arrays.alarm * off, 1),
        predicted=number(np.sqrt(arrays.k / arrays.n), 4),
        **_probe(arrays),
    )


def _probe(arrays: Probe) -> dict[str, object]:
    return {
        "n": arrays.n,
        "m": arrays.m,
        "k": arrays.k,
        "sd_on": number(arrays.sd_on, 3),
        "sd_off": number(arrays.sd_off, 3),
        "miss": number(100 * arrays.miss, 2),
        "alarm": number(100 * arrays.alarm, 2),
    }


def feature_probe(**state) -> Lab:
    """Return the lab of features read by their directions; ``state`` sets sliders by name.

    Examples
    --------
    >>> feature_probe(k=50)
    feature_probe(n=512, m=2048, k=50)
    """
    return Lab("feature_probe", PROBE_CONTROLS, compute_probe, draw_probe, caption_probe, state)


def _listed(values: np.ndarray, digits: int = 2) -> str:
    return "(" + ", ".join(number(value, digits) for value in values) + ")"
