"""Pictures as short lists of primitives, with two renderers: SVG for live use, PNG for the still.

Coordinates are pixels, x to the right and y down, from the top left corner of the card.  Every
number is rounded to 0.1 before it is drawn, so the SVG is the same bytes on every machine.
"""

import hashlib
import io
import math
import re
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from attnbook import style
from attnbook.markup import BAR, runs, to_plain

SCRIPT_SIZE = 0.72  # of a subscript or superscript, relative to its line
SCRIPT_SHIFT = {-1: 0.2, 0: 0.0, 1: -0.36}  # of its baseline, downwards
HALF_CAPITAL = 0.365  # from the middle of a capital letter down to the baseline
MARGIN = 4  # that a text keeps from the edge of the card
CORNER = 10  # radius of the card
COLOUR = re.compile("#[0-9a-f]{6}")


class Rect(NamedTuple):
    """A rectangle with its top left corner at ``(x, y)``."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1
    opacity: float = 1
    radius: float = 0


class Line(NamedTuple):
    """A straight line; ``dash`` is the lengths of strokes and gaps."""

    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str | None = style.INK
    stroke_width: float = 1.5
    dash: tuple[float, ...] = ()
    opacity: float = 1


class Polyline(NamedTuple):
    """A line through ``points``, pairs of x and y."""

    points: tuple[tuple[float, float], ...]
    stroke: str | None = style.INK
    stroke_width: float = 3
    dash: tuple[float, ...] = ()
    opacity: float = 1


class Segments(NamedTuple):
    """Straight lines of one look, each ``(x1, y1, x2, y2)``: the hatching of a whole matrix."""

    lines: tuple[tuple[float, float, float, float], ...]
    stroke: str | None = style.INK
    stroke_width: float = 1.5
    opacity: float = 1


class Polygon(NamedTuple):
    """A closed shape with its corners at ``points``, pairs of x and y."""

    points: tuple[tuple[float, float], ...]
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1
    opacity: float = 1


class Circle(NamedTuple):
    """A circle around ``(x, y)``."""

    x: float
    y: float
    radius: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 1
    opacity: float = 1


class Text(NamedTuple):
    """A label in the markup of `attnbook.markup`, as high as ``size``.

    ``(x, y)`` is the start, middle or end (``anchor``) of the line, halfway up its capital letters.
    ``rotate`` turns the text around this point, in degrees clockwise.
    """

    x: float
    y: float
    text: str
    size: float = style.TEXT
    fill: str = style.INK
    anchor: str = "start"
    bold: bool = False
    rotate: float = 0


Primitive = Rect | Line | Polyline | Segments | Polygon | Circle | Text


@dataclass(frozen=True)
class Picture:
    """A card with primitives on it, drawn in their order.

    Parameters
    ----------
    width, height : int
        Size of the card in pixels.
    items : iterable
        Primitives and groups of them, as the functions of `attnbook.diagrams` return.
    alt : str
        What the picture shows, in words, for those who cannot see it.

    Raises
    ------
    TypeError, ValueError
        If an item is no primitive, a number is not finite, a colour is not ``#rrggbb``, or ``alt``
        is empty.

    Examples
    --------
    >>> dot = Picture(40, 20, [Circle(20, 10, 5, fill="#000000")], alt="A black dot.")
    >>> to_svg(dot).count("<circle")
    1
    """

    width: int
    height: int
    items: tuple[Primitive, ...]
    alt: str

    def __post_init__(self):
        if not self.alt.strip():
            raise ValueError("expected words in alt, got none: say what the picture shows")
        for name in ("width", "height"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"expected a positive {name}, got {getattr(self, name)!r}")
        object.__setattr__(self, "items", tuple(_flatten(self.items)))
        for item in self.items:
            _validate(item)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return bundle(self)


def bundle(picture: Picture, still: bool = True) -> tuple[dict, dict]:
    """Return a picture as notebook output: its data and metadata by mime type.

    Parameters
    ----------
    picture : Picture
    still : bool
        Whether the PNG is included, which takes about a hundred times as long as the SVG.

    Examples
    --------
    >>> sorted(bundle(Picture(40, 20, [], alt="An empty card."), still=False)[0])
    ['image/svg+xml', 'text/plain']
    """
    data = {"image/svg+xml": to_svg(picture), "text/plain": picture.alt}
    if not still:
        return data, {}
    data["image/png"] = to_png(picture)  # with twice the pixels, so its size is told too
    return data, {"image/png": {"width": picture.width, "height": picture.height}}


def digest(picture: Picture) -> str:
    """Return a hash of what is drawn: equal digests mean equal pictures on every version.

    Examples
    --------
    >>> len(digest(Picture(40, 20, [], alt="An empty card.")))
    64
    """
    return hashlib.sha256(to_svg(picture).encode()).hexdigest()


# ---------------------------------------------------------------- SVG


def to_svg(picture: Picture) -> str:
    r"""Return a picture as an SVG document, the same characters on every version and machine.

    Examples
    --------
    >>> print(to_svg(Picture(40, 20, [Line(0, 0, 40, 1 / 3)], alt="A line.")).split("\n", 2)[2])
    <line x1="0" y1="0" x2="40" y2="0.3" stroke="#1f2328" stroke-width="1.5"/>
    </svg>
    """
    width, height = _n(picture.width), _n(picture.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label={quoteattr(picture.alt)} '
        f'font-family="{style.FONT}" stroke-linejoin="round">'
    )
    body = [_svg(item) for item in (_card(picture), *picture.items)]
    return "\n".join([head, *body, "</svg>"])


def _svg(item: Primitive) -> str:
    match item:
        case Rect():
            radius = {"rx": item.radius} if item.radius else {}
            place = {"x": item.x, "y": item.y, "width": item.width, "height": item.height, **radius}
            return f"<rect{_attributes(place)}{_paint(item)}/>"
        case Line():
            place = {"x1": item.x1, "y1": item.y1, "x2": item.x2, "y2": item.y2}
            return f"<line{_attributes(place)}{_paint(item)}/>"
        case Polyline() | Polygon():
            points = " ".join(f"{_n(x)},{_n(y)}" for x, y in item.points)
            return f'<{type(item).__name__.lower()} points="{points}"{_paint(item)}/>'
        case Segments():
            ends = [tuple(map(_n, line)) for line in item.lines]
            d = "".join(f"M{x1} {y1}L{x2} {y2}" for x1, y1, x2, y2 in ends)
            return f'<path d="{d}"{_paint(item)}/>'
        case Circle():
            place = {"cx": item.x, "cy": item.y, "r": item.radius}
            return f"<circle{_attributes(place)}{_paint(item)}/>"
        case Text():
            place = {"x": item.x, "y": item.y + HALF_CAPITAL * item.size, "font-size": item.size}
            look = f' fill="{item.fill}"'
            if item.anchor != "start":
                look += f' text-anchor="{item.anchor}"'
            if item.bold:
                look += ' font-weight="bold"'
            if item.rotate:
                look += f' transform="rotate({_n(item.rotate)} {_n(item.x)} {_n(item.y)})"'
            return f"<text{_attributes(place)}{look}>{_spans(item)}</text>"


def _spans(item: Text) -> str:
    spans, level = [], 0
    for run in runs(item.text):
        attributes = ' font-style="italic"' if run.italic else ""
        if run.level:
            attributes += f' font-size="{_n(SCRIPT_SIZE * item.size)}"'
        if run.level != level:  # the shift stays until the next one
            attributes += f' dy="{_n((SCRIPT_SHIFT[run.level] - SCRIPT_SHIFT[level]) * item.size)}"'
        level = run.level
        spans.append(
            f"<tspan{attributes}>{escape(run.text)}</tspan>" if attributes else escape(run.text)
        )
    return "".join(spans)


def _paint(item: Primitive) -> str:
    fill, stroke = getattr(item, "fill", None), item.stroke
    found = "" if isinstance(item, Line) else f' fill="{fill or "none"}"'
    if stroke:
        found += f' stroke="{stroke}" stroke-width="{_n(item.stroke_width)}"'
    if getattr(item, "dash", ()):
        found += f' stroke-dasharray="{" ".join(map(_n, item.dash))}"'
    return found + (f' opacity="{round(item.opacity, 2):g}"' if item.opacity != 1 else "")


def _attributes(values: dict[str, float]) -> str:
    return "".join(f' {name}="{_n(value)}"' for name, value in values.items())


@lru_cache(maxsize=4096)  # of the numbers in a picture most come again
def _n(value: float) -> str:
    return f"{_round(value):.1f}".removesuffix(".0")


def _round(value: float) -> float:
    # Twice, so that the last bits of a computation do not decide where x.x5 goes; no -0 either.
    return round(round(float(value), 6), 1) + 0.0


def _card(picture: Picture) -> Rect:
    size = picture.width - 1, picture.height - 1
    return Rect(0.5, 0.5, *size, fill=style.CARD, stroke=style.CARD_EDGE, radius=CORNER)


# ---------------------------------------------------------------- PNG


def to_png(picture: Picture, scale: float = 2) -> bytes:
    """Return a picture as a PNG with ``scale`` pixels for each of its own, drawn by matplotlib.

    Examples
    --------
    >>> to_png(Picture(40, 20, [], alt="An empty card."))[1:4]
    b'PNG'
    """
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.image import imsave
    from matplotlib.transforms import Affine2D

    width, height = round(picture.width * scale), round(picture.height * scale)
    renderer = RendererAgg(width, height, dpi=72)
    to_pixels = Affine2D().scale(scale, -scale).translate(0, height)  # Agg counts y upwards
    for item in (_card(picture), *picture.items):
        gc = renderer.new_gc()
        stroke = getattr(item, "stroke", None)
        gc.set_linewidth(_round(item.stroke_width) * scale if stroke else 0)
        gc.set_foreground(stroke or style.BLACK)
        if getattr(item, "dash", ()):
            gc.set_dashes(0, [_round(length) * scale for length in item.dash])
        opacity = round(getattr(item, "opacity", 1), 2)
        gc.set_alpha(opacity)
        fill = getattr(item, "fill", None)
        rgb = tuple(int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5)) if fill else None
        renderer.draw_path(gc, _path(item), to_pixels, rgb)
    file = io.BytesIO()
    pixels = renderer.buffer_rgba()
    imsave(file, pixels, format="png", origin="upper", dpi=72, metadata={"Software": None})
    return file.getvalue()


@lru_cache(maxsize=4096)
def _path(item: Primitive):
    """Return the outline of a primitive as a matplotlib Path in the picture's coordinates."""
    from matplotlib.path import Path

    match item:
        case Rect():
            x, y, w, h = map(_round, item[:4])
            if not item.radius:
                return Path([(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)], closed=True)
            r, k = item.radius, 0.4477 * item.radius  # control points of a quarter circle
            right, bottom = x + w, y + h
            corners = [(x + r, y), (right - r, y), (right - k, y), (right, y + k), (right, y + r)]
            corners += [
                (right, bottom - r),
                (right, bottom - k),
                (right - k, bottom),
                (right - r, bottom),
            ]
            corners += [(x + r, bottom), (x + k, bottom), (x, bottom - k), (x, bottom - r)]
            corners += [(x, y + r), (x, y + k), (x + k, y), (x + r, y), (x + r, y)]
            codes = [Path.MOVETO, *[Path.LINETO, *[Path.CURVE4] * 3] * 4, Path.CLOSEPOLY]
            return Path(corners, codes)
        case Line():
            return Path([(_round(item.x1), _round(item.y1)), (_round(item.x2), _round(item.y2))])
        case Polyline() | Polygon():
            points = [(_round(x), _round(y)) for x, y in item.points]
            closed = isinstance(item, Polygon)
            return Path(points + points[:1] if closed else points, closed=closed)
        case Segments():
            lines = [tuple(map(_round, line)) for line in item.lines]
            points = [point for line in lines for point in (line[:2], line[2:])]
            return Path(points, [Path.MOVETO, Path.LINETO] * len(lines))
        case Circle():
            return Path.circle((_round(item.x), _round(item.y)), _round(item.radius))
        case Text():
            return _text_path(item)


def _text_path(item: Text):
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    paths, x = [], 0.0
    for run in runs(item.text):
        size = item.size * (SCRIPT_SIZE if run.level else 1)
        shift = SCRIPT_SHIFT[run.level] * item.size
        glyphs, width = _glyphs(run.text, run.italic, item.bold)
        if glyphs is not None:
            paths.append(glyphs.transformed(Affine2D().scale(size, -size).translate(x, shift)))
        x += width * size
    start = {"start": 0.0, "middle": -x / 2, "end": -x}[item.anchor]
    place = Affine2D().translate(start, HALF_CAPITAL * item.size).rotate_deg(_round(item.rotate))
    place.translate(_round(item.x), _round(item.y))
    return Path.make_compound_path(*paths).transformed(place)


@lru_cache(maxsize=4096)
def _glyphs(text: str, italic: bool, bold: bool):
    """Return the outline of a run of text one unit high, y upwards, and the width it takes."""
    from matplotlib.path import Path
    from matplotlib.textpath import TextPath

    letters = text.replace(BAR, "")
    face = _face(italic, bold)
    # The outline ends with the ink; a stop behind the text tells how far the text itself reaches.
    stop = TextPath((0, 0), "|", size=1, prop=face).get_extents().x1
    width = TextPath((0, 0), letters + "|", size=1, prop=face).get_extents().x1 - stop
    paths = [TextPath((0, 0), letters, size=1, prop=face)] if letters.strip() else []
    for i, letter in enumerate(text):
        if letter == BAR:  # matplotlib before 3.11 would set it through the capital
            base = text[:i].replace(BAR, "")
            before = _glyphs(base[:-1], italic, bold)[1] if base[:-1] else 0.0
            box = TextPath((before, 0), base[-1], size=1, prop=face).get_extents()
            left, right = (box.x0 + box.x1) / 2 - 0.2, (box.x0 + box.x1) / 2 + 0.2
            low, high = box.y1 + 0.08, box.y1 + 0.15
            corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
            paths.append(Path(corners, closed=True))
    return (Path.make_compound_path(*paths) if paths else None), width


@lru_cache(maxsize=4)
def _face(italic: bool, bold: bool):
    from pathlib import Path

    from matplotlib import get_data_path
    from matplotlib.font_manager import FontProperties

    name = "DejaVuSans" + ("-" if bold or italic else "") + "Bold" * bold + "Oblique" * italic
    return FontProperties(fname=Path(get_data_path(), "fonts", "ttf", f"{name}.ttf"))


# ---------------------------------------------------------------- checks


def check(picture: Picture) -> list[str]:
    """Return what is wrong with the layout of a picture, by the font metrics of matplotlib.

    Reported are texts that overlap, that leave the card, that are too small (16 in a picture 800
    wide; numbers 14), too faint (contrast under 4.5) or have characters the font lacks, and shapes
    that leave the card.

    Parameters
    ----------
    picture : Picture

    Returns
    -------
    list of str
        One sentence for each fault, empty if there is none.

    Examples
    --------
    >>> check(Picture(800, 40, [Text(5, 20, "Hi", size=9), Text(40, 20, "there")], alt="Hi."))
    ["'Hi' is too small: 9.0 in a picture 800 wide"]
    """
    faults, boxes = [], []
    for i, item in enumerate(picture.items):
        box = _box(item)
        margin = MARGIN if isinstance(item, Text) else 0
        label = repr(to_plain(item.text)) if isinstance(item, Text) else repr(item)
        if (
            min(box.x0, box.y0) < margin
            or box.x1 > picture.width - margin
            or box.y1 > picture.height - margin
        ):
            faults.append(f"{label} leaves the card")
        if isinstance(item, Text):
            faults += _text_faults(picture, i, label)
            faults += [f"{label} overlaps {other}" for other, b in boxes if _overlap(box, b)]
            boxes.append((label, box))
    return faults


@lru_cache(maxsize=2)
def _characters(bold: bool) -> set[str]:
    """Return the characters that the font has."""
    from matplotlib.font_manager import get_font

    return set(map(chr, get_font(_face(False, bold).get_file()).get_charmap()))


def _text_faults(picture: Picture, i: int, label: str) -> Iterator[str]:
    item = picture.items[i]
    smallest = 14 if re.fullmatch(r"[-−+\d.,]+", item.text) else 16
    relative = item.size * 800 / picture.width
    if relative < smallest:
        yield f"{label} is too small: {relative:.1f} in a picture 800 wide"
    missing = sorted(set(to_plain(item.text)) - _characters(item.bold) - {BAR})
    if missing:
        yield f"{label} has characters the font lacks: {' '.join(missing)}"
    ground, centre = style.CARD, _box(item)
    x, y = (centre.x0 + centre.x1) / 2, (centre.y0 + centre.y1) / 2
    for below in picture.items[:i]:
        if getattr(below, "fill", None) and not isinstance(below, Text) and _covers(below, x, y):
            ground = style.shade((ground, below.fill), below.opacity)
    if style.contrast(item.fill, ground) < 4.5:
        yield f"{label} is too faint: contrast {style.contrast(item.fill, ground)} on {ground}"


def _box(item: Primitive):
    """Return the bounding box of an item; that of a text at the origin is worked out once."""
    if not isinstance(item, Text):
        return _extents(item)
    return _extents(item._replace(x=0, y=0)).translated(_round(item.x), _round(item.y))


@lru_cache(maxsize=4096)
def _extents(item: Primitive):
    return _path(item).get_extents()


def _covers(item: Primitive, x: float, y: float) -> bool:
    # The box first: asking the outline takes ten times as long.
    return _extents(item).contains(x, y) and _path(item).contains_point((x, y))


def _overlap(a, b) -> bool:
    return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1


# ---------------------------------------------------------------- validation


def _flatten(items: Iterable) -> Iterator[Primitive]:
    for item in items:
        if isinstance(item, Primitive):
            yield item
        elif isinstance(item, tuple | list):
            yield from _flatten(item)
        else:
            raise TypeError(f"expected primitives or groups of them, got {item!r}")


def _validate(item: Primitive) -> None:
    for name, value in zip(item._fields, item, strict=True):
        if name in ("fill", "stroke"):
            if value is not None and not COLOUR.fullmatch(str(value)):
                raise ValueError(f"expected a colour #rrggbb in {name}, got {value!r} in {item}")
        elif name == "text":
            if not isinstance(value, str) or not to_plain(value).strip():
                raise ValueError(f"expected words in text, got {value!r} in {item}")
        elif name == "anchor":
            if value not in ("start", "middle", "end"):
                raise ValueError(
                    f"expected the anchor start, middle or end, got {value!r} in {item}"
                )
        elif name != "bold":
            if name in ("points", "lines", "dash") and not isinstance(value, Sized):
                raise TypeError(f"expected a tuple in {name}, got {value!r}: an iterator ends")
            if name == "lines" and (not value or any(len(line) != 4 for line in value)):
                raise ValueError(f"expected lines (x1, y1, x2, y2), at least one, got {value!r}")
            if name in ("points", "lines"):
                numbers = chain.from_iterable(value)
            else:
                numbers = value if name == "dash" else (value,)
            if not all(map(math.isfinite, numbers)):
                raise ValueError(f"expected finite numbers in {name}, got {value!r} in {item}")
            if name in ("width", "height", "radius", "size", "stroke_width") and value < 0:
                raise ValueError(f"expected {name} not below 0, got {value!r} in {item}")
