"""Pictures to measure with, each drawn from the same arrays by the book and by matplotlib.

Three hold about as much as the pictures of the book's labs do: two or more panels with all labels.
Each depends on one slider and carries a marker that tells the slider's value in squares, so that
what is on the screen can be dated. The fourth is a lab of the book as it is, `head_picker` of
chapter 09. The benchmark puts this file beside its notebooks.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np

from attnbook import style
from attnbook.diagrams import Panel, axes, bars, curve, end_labels, heat_map, number, vertical
from attnbook.labs import many_heads
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Picture, Rect, Text
from attnbook.softmax import entropy, softmax

BITS = 6
VALUES = 2**BITS
SQUARE = 12  # side of a square of the marker, in pixels of the picture
GUARD = "#ff00ff"  # left and right of the bits; nothing else in the pictures has this colour
WIDTH, HEIGHT = 800, 420
TAUS = np.geomspace(0.3, 8, VALUES)
E = np.array([[(7 * i + 3 * j * j) % 11 - 5 for j in range(8)] for i in range(8)]) / 2
CELL, LIMITS = (42, 40), (-12, 12)
QUERIES, KEYS = [[f"${letter}_{i + 1}$" for i in range(8)] for letter in "qk"]
HEADS = 8
PANELS = [(45, 185, ((-2, 3), (0, 1.1))), (310, 205, ((-2, 3), (0, 1.1)))]
PANELS += [(575, 205, ((0, 4), (0, 1.1)))]


class Arrays(NamedTuple):
    """What a picture shows at the value ``n`` of its slider."""

    n: int
    tau: float
    Z: np.ndarray
    A: np.ndarray


def marker(n: int) -> list[tuple[float, float, str]]:
    """Return the squares that tell ``n``: left, bottom and colour, from the bottom left corner."""
    bits = [style.BLACK if n >> b & 1 else style.WHITE for b in range(BITS)]
    return [(10 + SQUARE * i, 10, colour) for i, colour in enumerate([GUARD, *bits, GUARD])]


def book_picture(n: int, items: list[Any], alt: str) -> Picture:
    squares = [Rect(x, HEIGHT - y - SQUARE, SQUARE, SQUARE, colour) for x, y, colour in marker(n)]
    return Picture(WIDTH, HEIGHT, [*items, *squares], alt)


def figure(n: int, rows: int, columns: int):
    """Return a matplotlib figure of the same size, with the marker, and its axes."""
    fig, panels = plt.subplots(rows, columns, figsize=(WIDTH / 100, HEIGHT / 100), dpi=100)
    for x, y, colour in marker(n):
        place, size = (x / WIDTH, y / HEIGHT), (SQUARE / WIDTH, SQUARE / HEIGHT)
        fig.add_artist(plt.Rectangle(place, *size, color=colour, lw=0, transform=fig.transFigure))
    return fig, panels


# ---------------------------------------------------------------- a heat map with numbers


def compute_numbers(n: int) -> Arrays:
    Z = E / TAUS[n]
    return Arrays(n, TAUS[n], Z, softmax(Z))


def draw_numbers(arrays: Arrays) -> Picture:
    places = {"cell": CELL, "row_labels": QUERIES, "column_labels": KEYS}
    items = [
        Text(50, 20, f"Scores $Z = E/τ$, $τ$ = {number(arrays.tau)}"),
        heat_map(50, 62, arrays.Z, limits=LIMITS, scale=style.DIVERGING, digits=1, **places),
        Text(440, 20, "Weights $A$"),
        heat_map(440, 62, arrays.A, **places),
    ]
    return book_picture(arrays.n, items, f"Scores and weights at temperature {arrays.tau:.2f}.")


def plot_numbers(arrays: Arrays) -> None:
    _, panels = figure(arrays.n, 1, 2)
    title = f"Scores $Z = E/\\tau$, $\\tau$ = {arrays.tau:.2f}"
    parts = (title, arrays.Z, LIMITS, "RdBu", 1), ("Weights $A$", arrays.A, (0, 1), "Blues", 2)
    for panel, (title, values, (low, high), colours, digits) in zip(panels, parts, strict=True):
        panel.imshow(values, vmin=low, vmax=high, cmap=colours)
        panel.set_title(title)
        panel.set_xticks(range(8), KEYS)
        panel.set_yticks(range(8), QUERIES)
        for (i, j), value in np.ndenumerate(values):
            panel.text(j, i, f"{value:.{digits}f}", ha="center", va="center", fontsize=8)
    plt.show()


# ---------------------------------------------------------------- curves


def compute_curves(n: int) -> Arrays:
    Z = E[0, 1:5] / TAUS[:, None]
    return Arrays(n, TAUS[n], Z, softmax(Z))


def draw_curves(arrays: Arrays) -> Picture:
    places, now = np.log2(TAUS), np.log2(arrays.tau)
    x_ticks = tuple((x, f"{2.0**x:g}") for x in range(-2, 4))
    y_ticks = ((0, "0"), (0.5, "0.5"), (1, "1"))
    colours = (style.QUERY, style.KEY, style.VALUE, style.OUTPUT)
    left, middle, right = (Panel(x, 46, w, 280, *limits) for x, w, limits in PANELS)
    look = {"x_label": "temperature $τ$", "x_ticks": x_ticks, "y_ticks": y_ticks}
    ends = [(a, k, c) for a, k, c in zip(arrays.A[-1], KEYS[:4], colours, strict=True)]
    items = [
        axes(left, title="Weights", **look),
        [curve(left, places, a, c) for a, c in zip(arrays.A.T, colours, strict=True)],
        vertical(left, now),
        end_labels(left, ends),
        axes(middle, title="Entropy", **look),
        curve(middle, places, relative_entropy(arrays), style.WEIGHT),
        vertical(middle, now),
        axes(right, title="Row $a$", x_ticks=(), y_ticks=y_ticks),
        bars(right, arrays.A[arrays.n], KEYS[:4]),
    ]
    return book_picture(arrays.n, items, f"Curves of weights and entropy, {arrays.tau:.2f} now.")


def plot_curves(arrays: Arrays) -> None:
    _, (left, middle, right) = figure(arrays.n, 1, 3)
    places, a = np.log2(TAUS), arrays.A[arrays.n]
    for weights, k in zip(arrays.A.T, KEYS[:4], strict=True):
        left.plot(places, weights, label=k)
    left.legend()
    middle.plot(places, relative_entropy(arrays))
    for panel, title in ((left, "Weights"), (middle, "Entropy")):
        panel.axvline(np.log2(arrays.tau), color="black", linestyle="--")
        panel.set(title=title, xlabel="temperature $\\tau$", ylim=(0, 1.1), yticks=(0, 0.5, 1))
        panel.set_xticks(range(-2, 4), [f"{2.0**x:g}" for x in range(-2, 4)])
    right.bar_label(right.bar(KEYS[:4], a), [f"{weight:.2f}" for weight in a])
    right.set(title="Row $a$", ylim=(0, 1.1), yticks=(0, 0.5, 1))
    plt.show()


def relative_entropy(arrays: Arrays) -> np.ndarray:
    return entropy(arrays.A) / np.log(4)


# ---------------------------------------------------------------- a grid of heat maps


def compute_grid(n: int) -> Arrays:
    h, i = np.arange(HEADS), np.arange(6)
    Z = np.sin((h[:, None, None] + 1) * i[:, None] * i / 5) / TAUS[n]
    return Arrays(n, TAUS[n], Z, softmax(Z))


def draw_grid(arrays: Arrays) -> Picture:
    items, labels = [], [str(i + 1) for i in range(6)]
    for h, A in enumerate(arrays.A):
        left, top = 30 + 192 * (h % 4), 50 + 192 * (h // 4)
        cells = heat_map(left, top, A, cell=(25, 22), row_labels=labels, column_labels=labels)
        # Numbers would be too small here: of the texts only the labels, which stand outside.
        items += [i for i in cells if not isinstance(i, Text) or i.x < left or i.y < top]
        items += [Text(left, top - 36, f"head {h + 1}")]
    return book_picture(arrays.n, items, f"Weights of eight heads at {arrays.tau:.2f}.")


def plot_grid(arrays: Arrays) -> None:
    _, panels = figure(arrays.n, 2, HEADS // 2)
    places, labels = range(6), range(1, 7)
    for h, (panel, A) in enumerate(zip(panels.flat, arrays.A, strict=True)):
        panel.imshow(A, vmin=0, vmax=1, cmap="Blues")
        panel.set_title(f"head {h + 1}")
        panel.set_xticks(places, labels)
        panel.set_yticks(places, labels)
    plt.show()


# ---------------------------------------------------------------- a lab of the book

BOOK_LAB = many_heads.head_picker
PICKED = {"H": 6}  # so that each value of the slider h is another head


def plot_heads(arrays: many_heads.Heads) -> None:
    """Plot what `attnbook.labs.many_heads.draw_heads` draws."""
    H, h = len(arrays.A), arrays.h
    width = many_heads.D // H
    own = slice(h * width, (h + 1) * width)
    fig = plt.figure(figsize=(8, 6.2), dpi=100)
    above, below = fig.add_gridspec(2, 1, height_ratios=(1, 5))
    for n, (place, A) in enumerate(zip(above.subgridspec(1, H), arrays.A, strict=True)):
        panel = fig.add_subplot(place)
        panel.imshow(A, vmin=0, vmax=1, cmap="Blues")
        panel.set(title=many_heads.THUMB.format(h=n + 1), xticks=(), yticks=())
        for spine in panel.spines.values():
            spine.set_linewidth(4 if n == h else 1)
    corners = below.subgridspec(2, 2, hspace=0.4)
    places = [fig.add_subplot(corners[k]) for k in range(4)]
    titles = (many_heads.ONE_MAP, many_heads.SIDE_BY_SIDE, many_heads.BLOCK, many_heads.ADDED)
    added = np.vstack([arrays.parts[:, many_heads.LOVE], arrays.Y[many_heads.LOVE]])
    tokens, rows = list(many_heads.SHORT), [*(f"head {n + 1}" for n in range(H)), "sum"]
    tables = (
        (arrays.A[h], tokens, 2),
        (arrays.C, tokens, 2),
        (arrays.W_O, None, 1),
        (added, rows, 2),
    )
    for panel, title, (values, labels, digits) in zip(places, titles, tables, strict=True):
        panel.imshow(values, vmin=-1, vmax=1, cmap="RdBu", aspect="auto")
        panel.set_title(title.format(h=h + 1))
        panel.set_xticks(())
        panel.set_yticks(range(len(values)) if labels else (), labels or ())
        for (i, j), value in np.ndenumerate(values):
            panel.text(j, i, f"{value:.{digits}f}", ha="center", va="center", fontsize=8)
    for panel, corner, size in (
        (places[0], (-0.5, many_heads.LOVE - 0.5), (4, 1)),
        (places[1], (own.start - 0.5, -0.5), (width, 4)),
        (places[2], (-0.5, own.start - 0.5), (many_heads.D, width)),
    ):
        panel.add_patch(plt.Rectangle(corner, *size, fill=False, linewidth=3))
    plt.show()


def book_lab() -> Lab:
    """Return the lab of the book."""
    return BOOK_LAB(**PICKED)


def book_lab_with_interact() -> None:
    """Show the same sliders and arrays with ``interact`` and matplotlib."""
    lab = book_lab()

    def show(**state):
        plot_heads(many_heads.compute_heads(**state))

    ipywidgets.interact(
        show,
        **{
            name: ipywidgets.SelectionSlider(options=control.values, value=lab.state[name])
            for name, control in lab.controls.items()
        },
    )


# ---------------------------------------------------------------- both ways


class Ways(NamedTuple):
    """A picture: its arrays, the book's drawing of them, and matplotlib's."""

    compute: Callable[[int], Arrays]
    draw: Callable[[Arrays], Picture]
    plot: Callable[[Arrays], None]


PICTURES = {
    "numbers": Ways(compute_numbers, draw_numbers, plot_numbers),
    "curves": Ways(compute_curves, draw_curves, plot_curves),
    "grid": Ways(compute_grid, draw_grid, plot_grid),
}


def lab(name: str) -> Lab:
    """Return a picture as a lab of the book."""
    ways = PICTURES[name]
    step = Slider("n", "step", tuple(range(VALUES)), start=0)
    return Lab(name, [step], ways.compute, ways.draw, lambda arrays: f"Step {arrays.n}.")


def plain_interact(name: str) -> None:
    """Show a picture with ``interact`` and matplotlib."""
    ways = PICTURES[name]

    def show(n):
        ways.plot(ways.compute(n))

    ipywidgets.interact(show, n=ipywidgets.IntSlider(value=0, min=0, max=VALUES - 1))
