"""Labs of chapter 06: an allowed set composed from rules, and finite numbers in place of a mask."""

from typing import NamedTuple

import numpy as np

from attnbook import masks, style
from attnbook.diagrams import Group, Panel, apart, axes, bars, heat_map, number
from attnbook.examples import HEAD_ALL_WIDTHS_DIFFER
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Line, Picture, Primitive, Rect, Text
from attnbook.softmax import softmax

# Everything a reader sees, in one place.
YES_NO = {False: "no", True: "yes"}.get
CAUSAL, OFFSET = "causal", "position of the first query"
PADDING, DOCUMENTS = "padding", "documents"
ROW, COLUMN, FLIP = "look at row", "and at column", "flip this cell"
NO_PADDING, PADDED = "none", "{n} on the {side}"
LEFT, RIGHT = "left", "right"
ONE_DOCUMENT, TWO_DOCUMENTS = "one", "the second begins at {start}"
ALLOWED_TITLE, SCORES_TITLE = "Allowed set: 1 = may read", "Scores that take part"
WEIGHTS_TITLE, ROWS_TITLE = "Weights (this book)", "Each row under three policies"
KEYS, QUERIES = "position of the key", "query"
LETTERS = ("c", "p", "d")
LEGEND = "c later  p padding  d other document  f flipped"
PAD = "pad"
THIS_BOOK = "this book"
COLUMNS = ("keys", "raise", "zero", "uniform")
READS, ERROR, ZEROS, READS_ALL = "reads", "error", "zeros", "reads all"
REASONS = ("it stands later", "it is padding", "it belongs to the other document")
INSPECT = "The query at position {i} {may} the key at position {j}{why}."
MAY = {False: "may not read", True: "may read"}
BECAUSE, FLIPPED = ": {reasons}", " (flipped by hand)"
FLAGGED = (
    "Real queries without a key, by row: {rows}. The book raises an error, and the weights drawn "
    "are those of the other rows; zero passes over it, uniform reads what is forbidden."
)
NOT_FLAGGED = "No real query is without a key."
PADDED_ROWS = "Padded queries, by row: {rows}; in this book their weights are zeros."
ALT_MASK = (
    "Four parts, for four queries at the positions {queries} and six keys at the positions 0 to 5. "
    "The allowed set, with {n} of 24 cells allowed and a letter for the rule that forbids each "
    "other cell; the scores of the allowed cells; the weights; for each row its number of keys and "
    "what becomes of it under the policies raise, zero and uniform: {rows}."
)

FORBIDDEN_KEYS, FILL, DTYPE = "forbidden keys", "number $F$", "number type"
TRUE_MASK, REPLACED, ADDED = "True mask", "$F$ replaces the score", "$F$ is added to it"
FORBIDDEN = "forbidden"
NAN, NOTHING = "nan", "none"
WANTED, RAISES = "what is wanted", "raises: no key"
RIGHT_WEIGHTS, UNDEFINED = "as the mask", "undefined"
LEAKS, EQUAL = "leaks {leak}", "all keys, equally"
WITHOUT_MASK = "as if without a mask"
SCORES = "Scaled scores 0, 1, 2, 3 in {dtype}. {forbidden}"
HOW_MANY = (
    "No key is forbidden.",
    "The last key is forbidden.",
    "The last two keys are forbidden.",
    "The last three keys are forbidden.",
    "All four keys are forbidden.",
)
DASHES = "Dashes: the softmax of all four scores, without a mask."
ALT_FILL = (
    "Three bar charts of four weights in {dtype}. {forbidden} True mask: {mask}. "
    "Score replaced by {fill}: {replaced}. {fill} added to the score: {added}. Dashes show the "
    "softmax without a mask."
)
CAPTION_FILL = (
    "The number is {fill}. Replacing gives {replaced}: {replaced_verdict}. Adding gives {added}: "
    "{added_verdict}."
)

_Q, _K = (
    np.array(X, float) @ np.array(W, float)
    for X, W in (
        (HEAD_ALL_WIDTHS_DIFFER.X_q, HEAD_ALL_WIDTHS_DIFFER.W_Q),
        (HEAD_ALL_WIDTHS_DIFFER.X_m, HEAD_ALL_WIDTHS_DIFFER.W_K),
    )
)
U = _Q @ _K.T / np.sqrt(_K.shape[1])  # the scores of the book's own example, 4 x 6
U.flags.writeable = False
T, S = U.shape


# ---------------------------------------------------------------- the mask composer


def _padding_label(n: int) -> str:
    return PADDED.format(n=abs(n), side=LEFT if n < 0 else RIGHT) if n else NO_PADDING


def _document_label(start: int) -> str:
    return TWO_DOCUMENTS.format(start=start) if start else ONE_DOCUMENT


MASK_CONTROLS = (
    Slider("causal", CAUSAL, (False, True), start=True, format=YES_NO),
    Slider("offset", OFFSET, tuple(range(-2, 6)), start=2, format=lambda n: number(n, 0)),
    Slider("padding", PADDING, tuple(range(-4, 5)), start=0, format=_padding_label),
    Slider("documents", DOCUMENTS, tuple(range(6)), start=0, format=_document_label),
    Slider("row", ROW, tuple(range(1, T + 1)), start=2),
    Slider("column", COLUMN, tuple(range(1, S + 1)), start=4),
    Slider("flip", FLIP, (False, True), start=False, format=YES_NO),
)


class Mask(NamedTuple):
    """An allowed set of 4 queries and 6 keys, why cells are forbidden, and the weights."""

    positions: np.ndarray  # (T,) of the queries; the keys stand at 0 ... S-1
    key_valid: np.ndarray  # (S,)
    query_valid: np.ndarray  # (T,)
    documents: int  # position at which the second document begins, 0: there is one
    forbids: np.ndarray  # (3, T, S): which of causal, padding, documents forbid a cell
    cell: tuple[int, int]  # the cell that is looked at, from 0
    flipped: bool
    allowed: np.ndarray  # (T, S)
    A: np.ndarray  # (T, S); a row that raises is zero here
    fates: tuple[tuple[str, str, str], ...]  # of each row: under raise, zero and uniform


def compute_mask(
    causal: bool,
    offset: int,
    padding: int,
    documents: int,
    row: int,
    column: int,
    flip: bool,
) -> Mask:
    """Compute the intersection of the chosen rules, the weights, and what policies make of it."""
    query, key = offset + np.arange(T), np.arange(S)

    def padded(position: np.ndarray) -> np.ndarray:
        if padding < 0:
            return (position >= 0) & (position < -padding)
        return (S - padding <= position) & (position < S)

    key_valid, query_valid = ~padded(key), ~padded(query)
    everything = np.ones((T, S), bool)
    rules = (
        masks.causal(query, key) if causal else everything,
        masks.padding(key_valid) & everything,
        masks.documents(*((x >= documents).astype(int) for x in (query, key)))
        if documents
        else everything,
    )
    allowed = np.logical_and.reduce(rules)
    if flip:
        allowed[row - 1, column - 1] ^= True
    some = allowed.any(axis=1)
    return Mask(
        positions=query,
        key_valid=key_valid,
        query_valid=query_valid,
        documents=documents,
        forbids=~np.array(rules),
        cell=(row - 1, column - 1),
        flipped=flip,
        allowed=allowed,
        A=softmax(U, allowed, query_valid=query_valid & some),
        fates=tuple(
            (
                (READS if reads else ERROR) if valid else ZEROS,
                READS if reads else ZEROS,
                READS if reads else READS_ALL,
            )
            for reads, valid in zip(some, query_valid, strict=True)
        ),
    )


CELL = (50, 34)


def draw_mask(arrays: Mask) -> Picture:
    """Draw the allowed set with its reasons, the scores, the weights and the fate of each row."""
    rows = [_label(arrays, p, v) for p, v in zip(arrays.positions, arrays.query_valid, strict=True)]
    columns = [_label(arrays, j, v) for j, v in enumerate(arrays.key_valid)]
    labels = {"row_labels": rows, "column_labels": columns}
    shown = arrays.allowed & arrays.query_valid[:, None]
    left, right, top, below = 92, 482, 94, 350
    items = [
        _head(left, top, ALLOWED_TITLE),
        _reasons(left, top, arrays, rows, columns),
        Text(left, top + T * CELL[1] + 22, LEGEND, fill=style.MUTED),
        _head(right, top, SCORES_TITLE),
        heat_map(
            right,
            top,
            U,
            cell=CELL,
            limits=(-2.5, 2.5),
            scale=style.DIVERGING,
            allowed=arrays.allowed,
            **labels,
        ),
        _head(left, below, WEIGHTS_TITLE),
        heat_map(left, below, arrays.A, cell=CELL, allowed=shown, **labels),
        _fates(right - 60, below, arrays),
    ]
    for x, y in ((left, top), (right, top), (left, below)):
        items.append(_cursor(x, y, arrays.cell))
    told = ALT_MASK.format(
        queries=", ".join(number(p, 0) for p in arrays.positions),
        n=arrays.allowed.sum(),
        rows="; ".join(
            f"{n}, {', '.join(words)}"
            for n, words in zip(arrays.allowed.sum(axis=1), arrays.fates, strict=True)
        ),
    )
    return Picture(800, 506, items, told)


def _label(arrays: Mask, position: int, valid: bool) -> str:
    """Name a position: its number, the letter of its document, or that it is padding."""
    if not valid:
        return PAD
    letter = "" if not arrays.documents else "B" if position >= arrays.documents else "A"
    return number(position, 0) + letter


def _head(left: float, top: float, title: str) -> Group:
    return (
        Text(left, top - 66, title, style.TITLE, bold=True),
        Text(left + S * CELL[0] / 2, top - 38, KEYS, fill=style.MUTED, anchor="middle"),
        Text(
            left - 70, top + T * CELL[1] / 2, QUERIES, fill=style.MUTED, anchor="middle", rotate=-90
        ),
    )


def _reasons(
    left: float, top: float, arrays: Mask, rows: list[str], columns: list[str]
) -> list[Primitive]:
    """Return the grid of the allowed set: 1 on a dark ground, or the letters of what forbids."""
    width, height = CELL
    items = []
    for i, j in np.ndindex(T, S):
        x, y = left + j * width, top + i * height
        letters = "".join(
            letter for letter, bad in zip(LETTERS, arrays.forbids[:, i, j], strict=True) if bad
        )
        if arrays.flipped and (i, j) == arrays.cell:
            letters = "f"
        may = arrays.allowed[i, j]
        ground = style.MUTED if may else style.WHITE
        items.append(Rect(x, y, width, height, ground, style.CARD if may else style.GRID, 2))
        text = ("f = 1" if letters == "f" else "1") if may else letters
        items.append(
            Text(x + width / 2, y + height / 2, text, fill=style.text_on(ground), anchor="middle")
        )
    items.append(Rect(left, top, S * width, T * height, None, style.MUTED, 1))
    for i, label in enumerate(rows):
        items.append(Text(left - 10, top + (i + 0.5) * height, label, anchor="end"))
    for j, label in enumerate(columns):
        items.append(Text(left + (j + 0.5) * width, top - 15, label, anchor="middle"))
    return items


def _fates(left: float, top: float, arrays: Mask) -> list[Primitive]:
    """Return a table beside the weights: the keys of each row, and what three policies make of it.

    Bold and red is what a reader of the output would be misled by, or stopped at.
    """
    columns = [left + 20, *(left + x for x in (78, 170, 262))]
    items = [
        Text(left, top - 66, ROWS_TITLE, style.TITLE, bold=True),
        Text(columns[1], top - 38, THIS_BOOK, fill=style.MUTED),
    ]
    for x, name in zip(columns, COLUMNS, strict=True):
        anchor = "middle" if x == columns[0] else "start"
        items.append(Text(x, top - 15, name, fill=style.MUTED, anchor=anchor))
    for i, words in enumerate(arrays.fates):
        y, n = top + (i + 0.5) * CELL[1], int(arrays.allowed[i].sum())
        misled = n == 0 and arrays.query_valid[i]
        items.append(_word(columns[0], y, str(n), misled, "middle"))
        for x, word in zip(columns[1:], words, strict=True):
            items.append(_word(x, y, word, misled or word == READS_ALL, "start"))
    return items


def _word(x: float, y: float, word: str, bad: bool, anchor: str) -> Text:
    ink = style.GRADIENT if bad else style.INK
    return Text(x, y, word, fill=ink, bold=bad, anchor=anchor)


def _cursor(left: float, top: float, cell: tuple[int, int]) -> Group:
    """Return a frame around the cell that is looked at."""
    (i, j), (width, height) = cell, CELL
    x, y = left + j * width + 1, top + i * height + 1
    return apart([Rect(x, y, width - 2, height - 2, None, style.GRADIENT, 3)])


def caption_mask(arrays: Mask) -> str:
    """Say whether the cell that is looked at is allowed, why, and which rows are flagged."""
    i, j = arrays.cell
    reasons = [reason for reason, bad in zip(REASONS, arrays.forbids[:, i, j], strict=True) if bad]
    why = BECAUSE.format(reasons=" and ".join(reasons)) if reasons else ""
    inspected = INSPECT.format(
        i=number(arrays.positions[i], 0),
        j=j,
        may=MAY[bool(arrays.allowed[i, j])],
        why=FLIPPED if arrays.flipped else why,
    )
    empty, told = ~arrays.allowed.any(axis=1), [inspected]
    if (bad := arrays.query_valid & empty).any():
        told.append(FLAGGED.format(rows=_listed(bad)))
    else:
        told.append(NOT_FLAGGED)
    if not arrays.query_valid.all():
        told.append(PADDED_ROWS.format(rows=_listed(~arrays.query_valid)))
    return " ".join(told)


def _listed(rows: np.ndarray) -> str:
    return ", ".join(str(i + 1) for i in np.flatnonzero(rows))


def mask_composer(**state) -> Lab:
    """Return the lab in which rules are combined; ``state`` sets sliders by name.

    Examples
    --------
    >>> mask_composer(offset=0).state["offset"]
    0
    """
    return Lab("mask_composer", MASK_CONTROLS, compute_mask, draw_mask, caption_mask, state)


# ---------------------------------------------------------------- finite numbers for a mask

u = np.arange(4.0)
u.flags.writeable = False
FILLS = ("-1", "-3", "-10", "-30", "-100", "-1e4", "-65504", "-1e9", "-1e38", "-inf")


def _fill_label(F: str) -> str:
    value = float(F)
    if np.isinf(value):
        return "−∞"
    return number(value, 0) if value >= -65504 else f"$−10^{{{round(np.log10(-value))}}}$"


FILL_CONTROLS = (
    Slider("n", FORBIDDEN_KEYS, (0, 1, 2, 3, 4), start=2),
    Slider("F", FILL, FILLS, start="-3", format=_fill_label),
    Slider("dtype", DTYPE, ("float16", "float32", "float64"), start="float64"),
)


class Fill(NamedTuple):
    """Three ways to forbid the last n of four keys; where a result is undefined (nan), it is 0."""

    n: int
    F: str  # as Python writes it, so that minus infinity can be given by name
    dtype: str
    plain: np.ndarray  # (4,) softmax without a mask
    mask: np.ndarray  # (4,) softmax over the allowed keys, 0 throughout if there are none
    replaced: np.ndarray  # (4,) the forbidden scores replaced by F
    added: np.ndarray  # (4,) F added to the forbidden scores
    undefined: tuple[bool, bool]  # of replaced, of added


@np.errstate(all="ignore")  # what overflows or is undefined is what this lab shows
def compute_fill(n: int, F: str, dtype: str) -> Fill:
    """Compute the stable softmax of (0, 1, 2, 3) with the last n keys forbidden in three ways."""
    z, F_stored = u.astype(dtype), np.array(float(F)).astype(dtype)
    allowed = np.arange(4) < 4 - n
    plain, mask, replaced, added = (
        _weights(np.where(allowed, z, scores)) for scores in (z, -np.inf, F_stored, z + F_stored)
    )
    undefined = tuple(bool(np.isnan(a).any()) for a in (replaced, added))
    mask, replaced, added = (np.where(np.isnan(a), 0, a) for a in (mask, replaced, added))
    return Fill(n, F, dtype, plain, mask, replaced, added, undefined)


def _weights(z: np.ndarray) -> np.ndarray:
    """Return a softmax worked out in the type of its scores, as softmax of the book is not."""
    e = np.exp(z - z.max())
    return e / e.sum(dtype=z.dtype)


def draw_fill(arrays: Fill) -> Picture:
    """Draw three bar charts side by side, over dashes for the softmax without a mask."""
    titles = TRUE_MASK, REPLACED, ADDED
    rows = arrays.mask, arrays.replaced, arrays.added
    items = [
        Text(40, 28, SCORES.format(dtype=arrays.dtype, forbidden=HOW_MANY[arrays.n])),
        Text(40, 54, DASHES, fill=style.MUTED),
    ]
    for k, (title, a, verdict) in enumerate(zip(titles, rows, _verdicts(arrays), strict=True)):
        panel = Panel(40 + 255 * k, 166, 210, 180, y_limits=(0, 1.2))
        good = verdict in (WANTED, RIGHT_WEIGHTS)
        items += [
            Text(panel.left, 100, title, style.TITLE, bold=True),
            Text(
                panel.left, 132, verdict, fill=style.INK if good else style.GRADIENT, bold=not good
            ),
            axes(panel, x_ticks=(), y_ticks=()),
            bars(panel, a, [f"$a_{j}$" for j in (1, 2, 3, 4)], digits=None),
        ]
        slot = panel.width / 4
        for j in range(4):
            x, y = panel.left + (j + 0.5) * slot, panel.y(arrays.plain[j])
            items.append(apart([Line(x - 24, y, x + 24, y, style.INK, 2, (5, 3))]))
            nan = arrays.undefined[k - 1] if k else arrays.n == 4
            value = (NAN if k else NOTHING) if nan else number(a[j])
            items.append(Text(x, panel.bottom + 42, value, anchor="middle"))
        if arrays.n:
            left = panel.left + (4 - arrays.n) * slot + 4
            y = panel.bottom + 60
            items += [
                Line(left, y, panel.right - 4, y, style.GRADIENT, 3),
                Text(panel.right - 4, y + 16, FORBIDDEN, fill=style.GRADIENT, anchor="end"),
            ]
    return Picture(800, 440, items, ALT_FILL.format(**_words(arrays)))


def _verdicts(arrays: Fill) -> tuple[str, str, str]:
    """Say of each way what it gives: the right weights, a leak, or what else."""
    first = WANTED if arrays.n < 4 else RAISES
    return first, *(
        _verdict(arrays, a, nan)
        for a, nan in zip((arrays.replaced, arrays.added), arrays.undefined, strict=True)
    )


def _verdict(arrays: Fill, a: np.ndarray, nan: bool) -> str:
    if nan:
        return UNDEFINED
    if arrays.n == 4:
        return WITHOUT_MASK if (a == arrays.plain).all() else EQUAL
    if (a == arrays.mask).all():
        return RIGHT_WEIGHTS
    leak = float(a[4 - arrays.n :].astype(float).sum())
    return LEAKS.format(leak=f"{leak:.2g}".replace("e-", "e−"))


def _words(arrays: Fill) -> dict[str, str]:
    def listed(a: np.ndarray, nan: bool = False) -> str:
        return "(" + ", ".join("nan" if nan else number(x, 3) for x in a) + ")"

    _, replaced_verdict, added_verdict = _verdicts(arrays)
    return {
        "forbidden": HOW_MANY[arrays.n],
        "dtype": arrays.dtype,
        "fill": _fill_label(arrays.F),
        "mask": listed(arrays.mask) if arrays.n < 4 else RAISES,
        "replaced": listed(arrays.replaced, arrays.undefined[0]),
        "added": listed(arrays.added, arrays.undefined[1]),
        "replaced_verdict": replaced_verdict,
        "added_verdict": added_verdict,
    }


def caption_fill(arrays: Fill) -> str:
    """Say what replacing and adding give, and whether that is what a mask gives."""
    return CAPTION_FILL.format(**_words(arrays))


def finite_fill(**state) -> Lab:
    """Return the lab of finite numbers in place of a mask; ``state`` sets sliders by name.

    Examples
    --------
    >>> finite_fill(n=4)
    finite_fill(n=4, F='-3', dtype='float64')
    """
    return Lab("finite_fill", FILL_CONTROLS, compute_fill, draw_fill, caption_fill, state)
