"""The one look of the book: colours, fonts and sizes of every picture."""

from functools import lru_cache

CARD = "#fdfdfb"
CARD_EDGE = "#b9bec6"
INK = "#1f2328"  # text, and the marks that stand for no object
MUTED = "#5b626c"  # axes and second-rank text
GRID = "#e3e5e9"
HATCH = "#636a74"  # the lines over a forbidden cell
FORBIDDEN = "#eceef1"  # the ground under them
WHITE = "#ffffff"
BLACK = "#000000"

# One colour per object, the same in every chapter.  All of them can be read as text on the card,
# and they differ for readers who do not tell red, green or blue apart (a test measures both).
QUERY = "#1368f9"
KEY = "#a85c00"
VALUE = "#0a4a12"
SCORE = "#77679c"
WEIGHT = "#6d0693"
OUTPUT = "#1c0022"
GRADIENT = "#cd2f53"
OBJECTS = {
    "query": QUERY,
    "key": KEY,
    "value": VALUE,
    "score": SCORE,
    "weight": WEIGHT,
    "output": OUTPUT,
    "gradient": GRADIENT,
}

# A colour scale is a tuple of colours, evenly spaced from its low to its high end.
SEQUENTIAL = (WHITE, "#cda5dd", WEIGHT, "#2b003c")
DIVERGING = ("#8a3c00", "#e0a15c", WHITE, "#7fa9f5", "#0b3fa8")

# Verdana is as wide as DejaVu Sans, so a picture laid out for one fits the other.
FONT = "'DejaVu Sans', Verdana, Geneva, sans-serif"
TITLE = 19
TEXT = 16  # the smallest text in a picture 800 wide
CELL = 15  # numbers in cells
DASHES = ((), (9, 5), (2, 4), (12, 4, 2, 4))  # line styles, so that colour is never needed
MARKERS = ("circle", "square", "triangle", "diamond")


def shade(scale: tuple[str, ...], t: float) -> str:
    """Return the colour at position ``t`` of a colour scale.

    Parameters
    ----------
    scale : tuple of colours
        Evenly spaced from the low end to the high end.
    t : float
        0 is the low end, 1 the high end; what lies outside gets the colour of the nearer end.

    Returns
    -------
    str
        A colour ``#rrggbb``.

    Examples
    --------
    >>> shade(("#000000", "#ffffff"), 0.5)
    '#808080'
    """
    position = min(max(float(t), 0.0), 1.0) * (len(scale) - 1)
    i = min(int(position), len(scale) - 2)
    low, high = _channels(scale[i]), _channels(scale[i + 1])
    mixed = [a + (position - i) * (b - a) for a, b in zip(low, high, strict=True)]
    return "#" + "".join(f"{int(channel + 0.5):02x}" for channel in mixed)


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours as WCAG 2 defines it, from 1 to 21.

    Text needs 4.5 against what lies under it, a mark needs 3.

    Parameters
    ----------
    first, second : str
        Colours ``#rrggbb``.

    Returns
    -------
    float
        ``(L_high + 0.05) / (L_low + 0.05)`` with the relative luminances ``L``.

    Examples
    --------
    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return round((high + 0.05) / (low + 0.05), 3)


def text_on(ground: str) -> str:
    """Return black or white, whichever reads better on the colour ``ground``.

    Examples
    --------
    >>> text_on(WHITE), text_on(WEIGHT)
    ('#000000', '#ffffff')
    """
    return max((BLACK, WHITE), key=lambda ink: contrast(ink, ground))


@lru_cache(maxsize=256)
def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def _luminance(colour: str) -> float:
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in _channels(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
