"""What pictures are made of: axes, bars, curves, heat maps, matrices, arrows and legends.

Every function returns a group of primitives; a picture is a list of such groups.  Plots are drawn
into a `Panel`, which knows where a value lies in the picture.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from attnbook import style
from attnbook.picture import Circle, Line, Polygon, Polyline, Primitive, Rect, Segments, Text

Group = tuple[Primitive, ...]
ROOM = 1e-9  # relative, by which a value may leave its limits through rounding
RIM = 1.5  # pixels around what is set apart


class Panel(NamedTuple):
    """The plotting area of axes: a rectangle of the picture with two linear scales.

    Leave about 45 pixels above it for a title, 60 below and 75 to the left for labels.

    Examples
    --------
    >>> panel = Panel(100, 50, 200, 80, x_limits=(0, 10))
    >>> panel.x(5), panel.y(0)
    (200.0, 130.0)
    """

    left: float
    top: float
    width: float
    height: float
    x_limits: tuple[float, float] = (0, 1)
    y_limits: tuple[float, float] = (0, 1)

    @property
    def right(self) -> float:
        """Return the right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Return the lower edge."""
        return self.top + self.height

    def x(self, value: float) -> float:
        """Return how far to the right ``value`` lies; outside ``x_limits`` is an error."""
        return self.left + self.width * _fraction(value, self.x_limits, "x")

    def y(self, value: float) -> float:
        """Return how far down ``value`` lies; outside ``y_limits`` is an error."""
        return self.bottom - self.height * _fraction(value, self.y_limits, "y")


def number(value: float, digits: int = 2) -> str:
    """Return a number as it is printed in pictures: rounded, with a true minus, never "-0".

    Examples
    --------
    >>> number(-1.5, 1), number(-0.001)
    ('−1.5', '0.00')
    """
    rounded = round(round(float(value), 10), digits) + 0.0
    return f"{rounded:.{digits}f}".replace("-", "−")


def ticks(low: float, high: float, most: int = 6) -> tuple[tuple[float, str], ...]:
    """Return round values from ``low`` to ``high``, at most ``most`` of them, with their texts.

    Their distance is 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> ticks(0, 1, 3)
    ((0.0, '0.0'), (0.5, '0.5'), (1.0, '1.0'))
    """
    if not low < high:
        raise ValueError(f"expected low < high, got {low} and {high}: give the axis some width")
    exponent = math.floor(math.log10((high - low) / most)) - 1
    while True:
        for multiple in (1, 2, 5):
            step = multiple * 10.0**exponent
            first, last = math.ceil(low / step - ROOM), math.floor(high / step + ROOM)
            if last - first < most:
                digits = max(0, -exponent)
                values = [round(k * step, digits) + 0.0 for k in range(first, last + 1)]
                return tuple((value, number(value, digits)) for value in values)
        exponent += 1


def axes(
    panel: Panel,
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    x_ticks: Sequence[tuple[float, str]] | None = None,
    y_ticks: Sequence[tuple[float, str]] | None = None,
) -> Group:
    """Return the frame of a panel: grid, ticks, labels and title.

    Parameters
    ----------
    panel : Panel
    title, x_label, y_label : str
        Above, below and to the left of the panel.
    x_ticks, y_ticks : sequence of (value, text), optional
        By default `ticks` of the limits; ``()`` for none.

    Examples
    --------
    >>> axes(Panel(80, 50, 200, 90), title="Weights", x_ticks=(), y_ticks=())[-1].text
    'Weights'
    """
    x_ticks = ticks(*panel.x_limits) if x_ticks is None else x_ticks
    y_ticks = ticks(*panel.y_limits, most=5) if y_ticks is None else y_ticks
    left, right, bottom = panel.left, panel.right, panel.bottom
    items = [Line(left, panel.y(v), right, panel.y(v), stroke=style.GRID) for v, _ in y_ticks]
    items += [
        Text(left - 10, panel.y(v), text, fill=style.MUTED, anchor="end") for v, text in y_ticks
    ]
    for v, text in x_ticks:
        items.append(Line(panel.x(v), bottom, panel.x(v), bottom + 6, stroke=style.MUTED))
        items.append(Text(panel.x(v), bottom + 18, text, fill=style.MUTED, anchor="middle"))
    items.append(Line(left, bottom, right, bottom, stroke=style.MUTED))
    if title:
        items.append(Text(left, panel.top - 30, title, size=style.TITLE, bold=True))
    if x_label:
        items.append(Text(left + panel.width / 2, bottom + 44, x_label, anchor="middle"))
    if y_label:
        widest = max((len(text) for _, text in y_ticks), default=0)
        middle = panel.top + panel.height / 2
        x = left - 26 - 0.6 * style.TEXT * widest
        items.append(Text(x, middle, y_label, anchor="middle", rotate=-90))
    return tuple(items)


def histogram(
    panel: Panel, counts: Sequence[float], edges: Sequence[float], fill: str = style.SCORE
) -> Group:
    """Return one bar for each count, from its left edge to its right edge.

    Parameters
    ----------
    panel : Panel
    counts : (n,) array
        Heights of the bars.
    edges : (n + 1,) array
        Where the bars meet, increasing.
    fill : str
        Colour of the bars.

    Examples
    --------
    >>> [bar.height for bar in histogram(Panel(0, 0, 90, 40, y_limits=(0, 4)), [1, 3], [0, 0.5, 1])]
    [10.0, 30.0]
    """
    if len(edges) != len(counts) + 1:
        raise ValueError(
            f"expected one more edge than counts, got {len(edges)} and {len(counts)}: "
            "pass both as numpy.histogram returns them"
        )
    return tuple(
        _bar(panel, panel.x(left) + 0.5, panel.x(right) - 0.5, count, fill)
        for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True)
    )


def bars(
    panel: Panel,
    values: Sequence[float],
    labels: Sequence[str] = (),
    *,
    fill: str = style.WEIGHT,
    digits: int | None = 2,
) -> Group:
    """Return evenly spaced bars with their values printed at their ends.

    The horizontal scale of the panel is not used.

    Parameters
    ----------
    panel : Panel
    values : (n,) array
    labels : sequence of n str
        Printed under the bars.
    fill : str
        Colour of the bars.
    digits : int or None
        Decimals of the printed values; None prints none.

    Examples
    --------
    >>> [bar.height for bar in bars(Panel(0, 0, 90, 40), [0.25, 0.75], digits=None)]
    [10.0, 30.0]
    """
    slot = panel.width / len(values)
    half = min(0.36 * slot, 45)
    items = []
    for i, value in enumerate(values):
        x = panel.left + (i + 0.5) * slot
        items.append(_bar(panel, x - half, x + half, value, fill))
        if digits is not None:
            y = panel.y(value) + (14 if value < 0 else -14)
            items.append(Text(x, y, number(value, digits), size=style.CELL, anchor="middle"))
    for i, label in _labelled(labels, len(values), "labels"):
        x = panel.left + (i + 0.5) * slot
        items.append(Text(x, panel.bottom + 18, label, anchor="middle"))
    return tuple(items)


def curve(
    panel: Panel,
    x: Sequence[float],
    y: Sequence[float],
    stroke: str = style.INK,
    *,
    dash: tuple[float, ...] = (),
    marker: str | None = None,
) -> Group:
    """Return a line through points, and markers on them.

    Parameters
    ----------
    panel : Panel
    x, y : (n,) arrays
    stroke : str
        Colour.
    dash : tuple of float
        One of ``style.DASHES``: two curves in one panel differ in it or in their markers.
    marker : str, optional
        One of ``style.MARKERS``.

    Examples
    --------
    >>> curve(Panel(0, 0, 90, 40), [0, 1], [0, 0.5])[0].points
    ((0.0, 40.0), (90.0, 20.0))
    """
    points = tuple((panel.x(a), panel.y(b)) for a, b in zip(x, y, strict=True))
    line = Polyline(points, stroke, 3, dash)
    return (line, *(mark(*point, marker, stroke) for point in points if marker))


def end_labels(
    panel: Panel, labels: Sequence[tuple[float, str, str]], x: float | None = None
) -> Group:
    """Return labels beside the ends of curves, moved apart where they would overlap.

    Parameters
    ----------
    panel : Panel
    labels : sequence of (value, text, colour)
        The last value of each curve, its label and its colour.
    x : float, optional
        Where the curves end; by default at the right edge of the panel.

    Examples
    --------
    >>> ends = [(0.5, "up", style.QUERY), (0.49, "down", style.KEY)]
    >>> [round(label.y, 1) for label in end_labels(Panel(0, 0, 90, 80), ends)]
    [40.0, 60.8]
    """
    height = 1.3 * style.TEXT
    ordered = sorted(labels, key=lambda label: -label[0])
    places = [panel.y(value) for value, _, _ in ordered]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + height)
    limit = panel.bottom
    for i in reversed(range(len(places))):
        places[i] = limit = min(places[i], limit)
        limit -= height
    left = 10 + (panel.right if x is None else panel.x(x))
    return tuple(
        Text(left, y, text, fill=colour, bold=True)
        for y, (_, text, colour) in zip(places, ordered, strict=True)
    )


def levels_before(panel: Panel, values: Sequence[float], inset: float = 0.08) -> Group:
    """Return a dashed line across each of the `bars` of a panel, at the height that it had before.

    Parameters
    ----------
    panel : Panel
        That of the bars.
    values : sequence of float
        The heights, one for each bar.
    inset : float
        What the line leaves free at each end of the bar's place, as a share of it.

    Examples
    --------
    >>> [line.stroke_width for line in levels_before(Panel(0, 0, 90, 90), [0.25, 0.75])]
    [6.0, 3, 6.0, 3]
    """
    slot = panel.width / len(values)
    return tuple(
        item
        for j, value in enumerate(values)
        for item in apart(
            curve(
                Panel(
                    panel.left + j * slot, panel.top, slot, panel.height, y_limits=panel.y_limits
                ),
                (inset, 1 - inset),
                (value, value),
                style.INK,
                dash=style.DASHES[1],
            )
        )
    )


def mark(x: float, y: float, shape: str, fill: str, size: float = 6) -> Primitive:
    """Return a marker at a point of the picture: one of ``style.MARKERS``.

    Examples
    --------
    >>> type(mark(10, 10, "circle", "#000000")).__name__
    'Circle'
    """
    match shape:
        case "circle":
            return Circle(x, y, size, fill)
        case "square":
            return Rect(x - 0.9 * size, y - 0.9 * size, 1.8 * size, 1.8 * size, fill)
        case "triangle":
            return Polygon(
                ((x, y - 1.2 * size), (x + 1.2 * size, y + size), (x - 1.2 * size, y + size)), fill
            )
        case "diamond":
            r = 1.3 * size
            return Polygon(((x, y - r), (x + r, y), (x, y + r), (x - r, y)), fill)
    raise ValueError(f"expected a marker among {style.MARKERS}, got {shape!r}")


def apart(items: Iterable[Primitive]) -> Group:
    """Return marks with a rim of the card's colour under them: they show on whatever they cross.

    All rims lie under all marks; texts get none.

    Examples
    --------
    >>> rim, line = apart([Line(0, 0, 9, 9, style.INK, 2)])
    >>> rim.stroke == style.CARD, rim.stroke_width, line.stroke_width
    (True, 5.0, 2)
    """
    items = tuple(items)
    rims = []
    for item in items:
        if isinstance(item, Text):
            continue
        width = 2 * RIM + (item.stroke_width if item.stroke else 0)
        rim = item._replace(stroke=style.CARD, stroke_width=width, opacity=1)
        if hasattr(item, "dash"):
            rim = rim._replace(dash=())
        elif getattr(item, "fill", None):
            rim = rim._replace(fill=style.CARD)
        rims.append(rim)
    return (*rims, *items)


def vertical(panel: Panel, x: float, text: str = "", stroke: str = style.INK) -> Group:
    """Return a dashed line across the panel at the value ``x``, with a label at its top.

    Examples
    --------
    >>> vertical(Panel(0, 0, 90, 40), 0.5)[0].x1
    45.0
    """
    place = panel.x(x)
    line = Line(place, panel.top, place, panel.bottom, stroke, 2, style.DASHES[1])
    if not text:
        return (line,)
    anchor, shift = ("start", 8) if place < panel.left + 0.6 * panel.width else ("end", -8)
    return line, Text(place + shift, panel.top + 8, text, fill=stroke, anchor=anchor)


def horizontal(panel: Panel, y: float, text: str = "", stroke: str = style.INK) -> Group:
    """Return a dashed line across the panel at the value ``y``, with a label at its right end.

    Examples
    --------
    >>> horizontal(Panel(0, 0, 90, 40), 0.5)[0].y1
    20.0
    """
    place = panel.y(y)
    line = Line(panel.left, place, panel.right, place, stroke, 2, style.DASHES[1])
    if not text:
        return (line,)
    shift = -13 if place > panel.top + 20 else 13
    return line, Text(panel.right, place + shift, text, fill=stroke, anchor="end")


def arrow(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    stroke: str = style.INK,
    *,
    stroke_width: float = 2.5,
    dash: tuple[float, ...] = (),
) -> Group:
    """Return an arrow from ``(x1, y1)`` to ``(x2, y2)``.

    Examples
    --------
    >>> line, tip = arrow(0, 0, 30, 40)
    >>> tip.points[0]
    (30, 40)
    """
    length = math.hypot(x2 - x1, y2 - y1)
    if not length > 0:
        raise ValueError(f"expected two different points, got ({x1}, {y1}) twice")
    head = min(5 * stroke_width, length)
    u, v = (x2 - x1) / length, (y2 - y1) / length
    x, y = x2 - head * u, y2 - head * v
    side = 0.45 * head
    tip = Polygon(((x2, y2), (x - side * v, y + side * u), (x + side * v, y - side * u)), stroke)
    return Line(x1, y1, x, y, stroke, stroke_width, dash), tip


def segment(
    panel: Panel,
    start: tuple[float, float],
    end: tuple[float, float],
    stroke: str = style.INK,
    *,
    stroke_width: float = 2,
    dash: tuple[float, ...] = (),
) -> Group:
    """Return the part inside a panel of the straight line between two points, given as values.

    Examples
    --------
    >>> line = segment(Panel(0, 0, 90, 40), (-1, 0.5), (0.5, 0.5))[0]
    >>> line.x1, line.x2
    (0.0, 45.0)
    """
    low, high = 0.0, 1.0
    for a, b, limits in zip(start, end, (panel.x_limits, panel.y_limits), strict=True):
        if a == b:
            if not limits[0] <= a <= limits[1]:
                return ()
            continue
        enters, leaves = sorted((limit - a) / (b - a) for limit in limits)
        low, high = max(low, enters), min(high, leaves)
    if not low < high:
        return ()
    ends = [[a + t * (b - a) for a, b in zip(start, end, strict=True)] for t in (low, high)]
    (x1, y1), (x2, y2) = [(panel.x(x), panel.y(y)) for x, y in ends]
    return (Line(x1, y1, x2, y2, stroke, stroke_width, dash),)


def grid(
    panel: Panel,
    A: Sequence[Sequence[float]] = ((1, 0), (0, 1)),
    stroke: str = style.GRID,
    *,
    stroke_width: float = 1.5,
    most: int = 12,
) -> Group:
    """Return the images of the lines ``x = n`` and ``y = n`` under ``v -> A v``, inside a panel.

    Parameters
    ----------
    panel : Panel
    A : (2, 2) array
        Its columns are where the unit vectors go. A line that it takes to a point is left out.
    stroke : str
        Colour.
    stroke_width : float
    most : int
        ``n`` runs from ``-most`` to ``most``.

    Examples
    --------
    >>> len(grid(Panel(0, 0, 90, 90, (-1.5, 1.5), (-1.5, 1.5))))
    6
    """
    (a, b), (c, d) = [[float(x) for x in row] for row in A]
    size = 2 * max(abs(limit) for limit in (*panel.x_limits, *panel.y_limits))
    items = []
    for across, along in (((a, c), (b, d)), ((b, d), (a, c))):
        length = math.hypot(*along)
        if length < ROOM:
            continue
        for n in range(-most, most + 1):
            x, y = n * across[0], n * across[1]
            reach = (size + math.hypot(x, y)) / length  # far enough to leave the panel
            ends = [(x + r * along[0], y + r * along[1]) for r in (-reach, reach)]
            items += segment(panel, *ends, stroke, stroke_width=stroke_width)
    return tuple(items)


def heat_map(
    left: float,
    top: float,
    values: Sequence[Sequence[float]],
    *,
    cell: tuple[float, float] = (54, 44),
    limits: tuple[float, float] = (0, 1),
    scale: tuple[str, ...] = style.SEQUENTIAL,
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    digits: int = 2,
    allowed: Sequence[Sequence[bool]] | None = None,
) -> Group:
    """Return a matrix as coloured cells, row 0 at the top, numbers printed in them up to 8 x 8.

    Parameters
    ----------
    left, top : float
        Corner of the first cell; the labels lie outside.
    values : (T, S) array
    cell : (float, float)
        Width and height of a cell.
    limits : (float, float)
        The values at the two ends of ``scale``; a value outside is an error.
    scale : tuple of colours
        ``style.SEQUENTIAL`` from nothing to much, ``style.DIVERGING`` around a middle.
    row_labels, column_labels : sequence of str
    digits : int
        Decimals of the printed values.
    allowed : (T, S) array of bool, optional
        Cells that are False are hatched and carry no number.

    Examples
    --------
    >>> [item.text for item in heat_map(40, 30, [[0.25, 0.75]]) if isinstance(item, Text)]
    ['0.25', '0.75']
    """
    width, height = cell
    T, S = len(values), len(values[0])
    items, hatching = [], []
    for i in range(T):
        for j in range(S):
            x, y = left + j * width, top + i * height
            if allowed is not None and not allowed[i][j]:
                items.append(Rect(x, y, width, height, style.FORBIDDEN, style.CARD, 2))
                hatching += _hatching(x, y, width, height)
                continue
            ground = style.shade(scale, _fraction(values[i][j], limits, f"cell ({i}, {j})"))
            items.append(Rect(x, y, width, height, ground, style.CARD, 2))
            if max(T, S) <= 8:
                ink, text = style.text_on(ground), number(values[i][j], digits)
                items.append(
                    Text(x + width / 2, y + height / 2, text, style.CELL, ink, anchor="middle")
                )
    if hatching:
        items.append(Segments(tuple(hatching), style.HATCH, 1.5))
    # The outline keeps cells apart from the card that are as light as it.
    items.append(Rect(left, top, S * width, T * height, None, style.MUTED, 1))
    for i, label in _labelled(row_labels, T, "row_labels"):
        items.append(Text(left - 10, top + (i + 0.5) * height, label, anchor="end"))
    for j, label in _labelled(column_labels, S, "column_labels"):
        items.append(Text(left + (j + 0.5) * width, top - 15, label, anchor="middle"))
    return tuple(items)


def colour_legend(
    left: float,
    top: float,
    height: float,
    *,
    limits: tuple[float, float] = (0, 1),
    scale: tuple[str, ...] = style.SEQUENTIAL,
    digits: int = 1,
) -> Group:
    """Return an upright bar of the colours of ``scale`` with the values at its ends and middle.

    Examples
    --------
    >>> [item.text for item in colour_legend(10, 10, 90, limits=(-1, 1)) if isinstance(item, Text)]
    ['−1.0', '0.0', '1.0']
    """
    steps, width = 32, 18
    items = [  # each reaches down to the end, so that no seam shows between two
        Rect(
            left,
            top + k * height / steps,
            width,
            height - k * height / steps,
            style.shade(scale, 1 - k / (steps - 1)),
        )
        for k in range(steps)
    ]
    items.append(Rect(left, top, width, height, None, style.MUTED, 1))
    for t in (0, 0.5, 1):
        value = number(limits[0] + t * (limits[1] - limits[0]), digits)
        items.append(Text(left + width + 8, top + (1 - t) * height, value, fill=style.MUTED))
    return tuple(items)


def matrix(
    left: float,
    top: float,
    values: Sequence[Sequence[float | str]],
    label: str = "",
    *,
    cell: tuple[float, float] = (58, 30),
    digits: int = 2,
    fill: str = style.INK,
    grounds: Sequence[Sequence[str | None]] | None = None,
) -> Group:
    """Return a matrix of numbers between brackets, with its name above it.

    Parameters
    ----------
    left, top : float
        Corner of the brackets; the label lies above.
    values : (m, n) array
        Numbers; a text is printed as it is.
    label : str
    cell : (float, float)
        Room for one number.
    digits : int
        Decimals.
    fill : str
        Colour of brackets, label and numbers.
    grounds : (m, n) colours, optional
        What lies under the numbers, to mark some of them; None for the bare card.

    Examples
    --------
    >>> matrix(20, 40, [[1, 0], [0, 1]], "$I$", digits=0)[-1].text
    '$I$'
    """
    m, n = len(values), len(values[0])
    right, bottom, lip = left + n * cell[0], top + m * cell[1], 8
    items = [
        Polyline(((left + lip, top), (left, top), (left, bottom), (left + lip, bottom)), fill, 2),
        Polyline(
            ((right - lip, top), (right, top), (right, bottom), (right - lip, bottom)), fill, 2
        ),
    ]
    for i in range(m):
        for j in range(n):
            x, y = left + j * cell[0], top + i * cell[1]
            ground = grounds[i][j] if grounds else None
            if ground:
                items.append(Rect(x + 3, y + 3, cell[0] - 6, cell[1] - 6, ground, radius=4))
            value = values[i][j]
            items.append(
                Text(
                    x + cell[0] / 2,
                    y + cell[1] / 2,
                    value if isinstance(value, str) else number(value, digits),
                    fill=style.text_on(ground) if ground else fill,
                    anchor="middle",
                )
            )
    if label:
        items.append(
            Text((left + right) / 2, top - 18, label, fill=fill, anchor="middle", bold=True)
        )
    return tuple(items)


class Entry(NamedTuple):
    """A line of a legend: a swatch, or a curve's line and marker if ``dash`` is given.

    Examples
    --------
    >>> swatch = Entry("weights", style.WEIGHT)
    """

    text: str
    colour: str
    dash: tuple[float, ...] | None = None
    marker: str | None = None


def legend(left: float, top: float, entries: Sequence[Entry]) -> Group:
    """Return lines that name colours, line styles and markers, one under the other.

    Examples
    --------
    >>> legend(10, 10, [Entry("weights", style.WEIGHT)])[-1].text
    'weights'
    """
    items = []
    for k, entry in enumerate(entries):
        y = top + (k + 0.5) * 1.5 * style.TEXT
        if entry.dash is None:
            items.append(Rect(left, y - 8, 28, 16, entry.colour))
        else:
            items.append(Line(left, y, left + 28, y, entry.colour, 3, entry.dash))
            if entry.marker:
                items.append(mark(left + 14, y, entry.marker, entry.colour))
        items.append(Text(left + 38, y, entry.text))
    return tuple(items)


def _bar(panel: Panel, left: float, right: float, value: float, fill: str) -> Rect:
    zero = panel.y(min(max(0, panel.y_limits[0]), panel.y_limits[1]))
    top, bottom = sorted((zero, panel.y(value)))
    return Rect(left, top, right - left, bottom - top, fill)


def _hatching(x: float, y: float, width: float, height: float):
    """Yield the strokes of one cell, as lines of `Segments`."""
    for d in range(10, int(width + height), 10):  # along x + y = d inside the cell
        (x1, y1), (x2, y2) = (
            (min(d, width), max(0, d - width)),
            (max(0, d - height), min(d, height)),
        )
        yield x + x1, y + y1, x + x2, y + y2


def _labelled(labels: Sequence[str], n: int, name: str):
    if labels and len(labels) != n:
        raise ValueError(f"expected {n} {name} or none, got {len(labels)}: {list(labels)}")
    return enumerate(labels)


def _fraction(value: float, limits: tuple[float, float], where: str) -> float:
    low, high = limits
    t = (float(value) - low) / (high - low)
    if not -ROOM <= t <= 1 + ROOM:
        raise ValueError(
            f"expected {where} between {low} and {high}, got {value}: "
            "widen the limits or leave the value out"
        )
    return min(max(t, 0.0), 1.0)
