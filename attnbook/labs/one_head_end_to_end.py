"""Labs of chapter 07: the steps of one head, and how far a changed token reaches."""

from typing import NamedTuple

import numpy as np

from attnbook import style
from attnbook.attention import attention
from attnbook.diagrams import Group, arrow, matrix, number
from attnbook.examples import (
    E_RECONSTRUCTION_1,
    E_RECONSTRUCTION_2,
    HEAD_ALL_WIDTHS_DIFFER,
    M_SENTENCE,
    R_HEAD,
)
from attnbook.labs.engine import Lab, Slider
from attnbook.masks import causal
from attnbook.picture import Line, Picture, Rect, Text
from attnbook.softmax import softmax

NO_MASK, CAUSAL = "none", "causal"
MASK = "mask"
SHORT = ("I", "love", "GPU", "prog")  # the tokens of the sentence, the last one cut


# ---------------------------------------------- the steps of one head

# Everything a reader sees, in one place.
EXAMPLE, STEP, ROW = "example", "step", "row"
OF_R, TWIN, REBUILT_1, REBUILT_2, SENTENCE = (
    "[R] (5.13)",
    "all widths differ",
    "[E], first rebuilt",
    "[E], rebuilt again",
    "[M]'s sentence",
)
# The result of each step, its name, what is computed (left, right; no right where each number or
# row of the left is turned into one of the result), the sizes of the result, and its colour.
STEPS = (
    ("Q", "queries", ("X_q", "W_Q"), "T d_k", style.QUERY),
    ("K", "keys", ("X_m", "W_K"), "S d_k", style.KEY),
    ("V", "values", ("X_m", "W_V"), "S d_v", style.VALUE),
    ("E", "match", ("Q", "K^⊤"), "T S", style.SCORE),
    ("U", "scale", ("E",), "T S", style.SCORE),
    ("Z", "mask", ("U",), "T S", style.SCORE),
    ("A", "softmax", ("Z",), "T S", style.WEIGHT),
    ("O", "read", ("A", "V"), "T d_v", style.OUTPUT),
)
TURNS = {"U": "÷ $√d_k$", "Z": "+ $M$", "A": "softmax"}
COLOURS = {name: colour for name, *_, colour in STEPS}
COLOURS |= {"X_q": style.INK, "X_m": style.INK, "K^⊤": style.KEY}
COLOURS |= {f"W_{name}": COLOURS[name] for name in "QKV"}
TITLE = "Step {n} of 8, {what}: {formula}"
FORMULAS = {
    "U": "$U = E / √d_k$",
    "Z": "$Z = U + M$",
    "A": "$A$ = softmax of each row of $Z$",
}
HIDDEN = {"Z": "−∞", "A": "0"}
STEP_ALT = (
    "Eight boxes in a row, Q, K, V, E, U, Z, A, O; the box {result} is filled. Below, the step "
    "{what}: {given}, and the result {result}, {m} by {n}. Row {i} is marked; in {result} it is "
    "({numbers})."
)
STEP_CAPTION = "Row {i} of ${result}$, {m} × {n}: ({numbers}). {how}{later}{few}"
LATER = {CAUSAL: " The mask acts in step 6.", NO_MASK: " A mask would act in step 6."}
FEW = " There is no row {wanted}: the last one is shown."
FIRST = "Its first number, with all numbers rounded, is {terms} = {total}."
SCALED = "Each number of $E$ is divided by $√{d_k}$ = {root}."
OPEN = "The causal rule leaves {seen} of {all} keys in this row."
NOTHING_HIDDEN = "There is no mask: all {all} keys stay."
SUMS = "Its numbers sum to 1."


def _given(example) -> tuple[np.ndarray, ...]:
    """Return X_q, X_m, W_Q, W_K, W_V and the positions of queries and keys."""
    fields = example._asdict()
    X_q, X_m = fields.get("X_q", fields.get("X")), fields.get("X_m", fields.get("X"))
    positions = fields.get("query_positions", range(len(X_q)))
    arrays = [np.array(M, float) for M in (X_q, X_m, example.W_Q, example.W_K, example.W_V)]
    arrays += [np.array(positions), np.arange(len(X_m))]
    for array in arrays:
        array.flags.writeable = False
    return tuple(arrays)


EXAMPLES = {
    OF_R: _given(R_HEAD),
    TWIN: _given(HEAD_ALL_WIDTHS_DIFFER),
    REBUILT_1: _given(E_RECONSTRUCTION_1),
    REBUILT_2: _given(E_RECONSTRUCTION_2),
    SENTENCE: _given(M_SENTENCE),
}
STEP_CONTROLS = (
    Slider("example", EXAMPLE, tuple(EXAMPLES), start=OF_R),
    Slider(
        "step",
        STEP,
        tuple(range(1, 9)),
        start=4,
        format=lambda n: f"{n}, {STEPS[n - 1][1]}",
    ),
    Slider("row", ROW, (1, 2, 3, 4, 5, 6), start=3),
    Slider("mask", MASK, (NO_MASK, CAUSAL), start=CAUSAL),
)


MIDDLE = 318  # where the picture is centred


def _cell(X_q, X_m, W_Q, W_K, W_V, *_) -> tuple[float, float]:
    """Return the room for one number, the same in all steps of an example: small ones get more."""
    T, S = len(X_q), len(X_m)
    d_q, d_m, d_k, d_v = len(W_Q), len(W_K), W_Q.shape[1], W_V.shape[1]
    wide = max(d_q + d_k, d_m + d_k, d_m + d_v, d_k + S, S + d_v)
    high = max(T + d_q, S + d_m, T + d_k, T + S, 2 * T)
    return min(82, 648 / wide), min(42, 330 / high)


CELLS = {name: _cell(*given) for name, given in EXAMPLES.items()}


class Step(NamedTuple):
    """What one step of a head takes and gives; ``row`` counts from 1 and is there."""

    example: str
    step: int
    wanted: int
    row: int
    mask: str
    d_k: int
    left: np.ndarray
    right: np.ndarray | None  # None: a step within each row
    result: np.ndarray  # -inf where masked


def compute_step(example: str, step: int, row: int, mask: str) -> Step:
    """Compute all of Q, K, V, E, U, Z, A, O in turn, and return the step that is asked for."""
    X_q, X_m, W_Q, W_K, W_V, query_positions, key_positions = EXAMPLES[example]
    Q, K, V = X_q @ W_Q, X_m @ W_K, X_m @ W_V
    d_k = Q.shape[1]
    E = Q @ K.T
    U = E / np.sqrt(d_k)
    allowed = causal(query_positions, key_positions)
    if mask == NO_MASK:
        allowed = np.ones_like(allowed)
    Z = np.where(allowed, U, -np.inf)
    A = softmax(U, allowed)
    taken = ((X_q, W_Q), (X_m, W_K), (X_m, W_V), (Q, K.T), (E, None), (U, None), (Z, None), (A, V))
    result = (Q, K, V, E, U, Z, A, A @ V)[step - 1]
    left, right = taken[step - 1]
    return Step(example, step, row, min(row, len(result)), mask, d_k, left, right, result)


def draw_step(arrays: Step) -> Picture:
    """Draw a product with its right factor above its result, another step from top to bottom."""
    name, what, names, _, colour = STEPS[arrays.step - 1]
    m, n = arrays.left.shape
    k = arrays.result.shape[1]
    wide, high = size = CELLS[arrays.example]
    if arrays.right is None:
        left = x = 400 - n * wide / 2
        top = MIDDLE - m * high - 35
        y = MIDDLE + 35
        items = [
            arrow(400, MIDDLE - 23, 400, MIDDLE + 23, colour),
            Text(418, MIDDLE, TURNS[name]),
        ]
    else:
        left = 400 - (n + k) * wide / 2 - 12
        x = left + n * wide + 24
        y = top = MIDDLE + (n - m) * high / 2 + 12
        above = y - 24 - n * high
        beside = {"fill": COLOURS[names[1]], "anchor": "end"}
        items = [
            *_matrix(x, above, size, _texts(arrays.right), names[1]),
            Text(x - 16, above + 20, f"${names[1]}$", bold=True, **beside),
            Text(x - 16, above + 44, f"{n} × {k}", style.TEXT, style.MUTED, "end"),
        ]
    items += [
        *_matrix(
            left, top, size, _texts(arrays.left, HIDDEN.get(names[0], "")), names[0], arrays.row
        ),
        *_matrix(x, y, size, _texts(arrays.result, HIDDEN.get(name, "")), name, arrays.row),
        *_ribbon(arrays.step),
        Text(
            40,
            92,
            TITLE.format(n=arrays.step, what=what, formula=_formula(arrays.step)),
            style.TITLE,
            bold=True,
        ),
    ]
    for start in (top, y) if arrays.right is None else (top,):
        place = start + (arrays.row - 0.5) * high
        row = SHORT[arrays.row - 1] if arrays.example == SENTENCE else str(arrays.row)
        items.append(Text(left - 8, place, row, anchor="end"))
    items += _below(left, top, size, names[0], arrays.left, beside=arrays.right is None)
    items += _below(x, y, size, name, arrays.result, beside=arrays.right is None)
    return Picture(800, 570, items, STEP_ALT.format(**_step_told(arrays)))


def _below(
    left: float,
    top: float,
    cell: tuple[float, float],
    name: str,
    values: np.ndarray,
    beside: bool,
) -> Group:
    """Return name and size of a matrix, below it or to its right."""
    m, n = values.shape
    wide, high = n * cell[0], m * cell[1]
    if beside:
        x, y, anchor = left + wide + 14, top + high / 2 - 12, "start"
    else:
        x, y, anchor = left + wide / 2, top + high + 22, "middle"
    return (
        Text(x, y, f"${name}$", style.TEXT, COLOURS[name], anchor, bold=True),
        Text(x, y + 24, f"{m} × {n}", style.TEXT, style.MUTED, anchor),
    )


def _ribbon(step: int) -> Group:
    """Return eight boxes, one for each result, the one of this step filled."""
    items = []
    for k, (name, _, _, _, colour) in enumerate(STEPS, 1):
        x, here = 40 + 92 * (k - 1), k == step
        items.append(Rect(x, 20, 76, 34, colour if here else None, colour, 2, radius=6))
        ink = style.text_on(colour) if here else colour
        items.append(Text(x + 38, 37, f"${name}$", style.TITLE, ink, anchor="middle", bold=True))
        if k < 8:
            items.append(Line(x + 78, 37, x + 90, 37, style.MUTED, 2))
    return tuple(items)


def _formula(step: int) -> str:
    name, _, names, *_ = STEPS[step - 1]
    return FORMULAS.get(name) or f"${name} = {' '.join(names)}$"


def _texts(values: np.ndarray, hidden: str = "") -> list[list[str]]:
    """Return the numbers as printed, with as few digits as they need and at most two.

    ``hidden`` is what is printed where the mask acts: −∞ for a score, a bare 0 for a weight.
    """
    shown = values[np.isfinite(values)]
    digits = next((d for d in (0, 1) if np.allclose(shown, shown.round(d))), 2)
    off = (values == 0) | np.isinf(values) if hidden else np.zeros(values.shape, bool)
    if hidden == HIDDEN["Z"]:
        off = np.isinf(values)
    return [
        [hidden if out else number(v, digits) for v, out in zip(line, outs, strict=True)]
        for line, outs in zip(values, off, strict=True)
    ]


def _matrix(
    left: float,
    top: float,
    cell: tuple[float, float],
    texts: list[list[str]],
    name: str,
    row: int = 0,
) -> Group:
    """Return a matrix in the colour of its object, with one row marked (they count from 1)."""
    colour = COLOURS[name]
    tint = style.shade((style.CARD, colour), 0.2)
    grounds = [[tint if i == row else None] * len(line) for i, line in enumerate(texts, 1)]
    return matrix(left, top, texts, cell=cell, fill=colour, grounds=grounds)


def caption_step(arrays: Step) -> str:
    """Say what the picture shows."""
    return STEP_CAPTION.format(**_step_told(arrays))


def _step_told(arrays: Step) -> dict[str, object]:
    name, what, names, *_ = STEPS[arrays.step - 1]
    i = arrays.row - 1
    numbers = _texts(arrays.result, HIDDEN.get(name, ""))[i]
    return {
        "result": name,
        "what": what,
        "given": " times ".join(names) if arrays.right is not None else f"each row of {names[0]}",
        "m": arrays.result.shape[0],
        "n": arrays.result.shape[1],
        "i": arrays.row,
        "numbers": ", ".join(numbers),
        "how": _how(arrays),
        "later": LATER[arrays.mask] if arrays.step < 6 else "",
        "few": FEW.format(wanted=arrays.wanted) if arrays.wanted > arrays.row else "",
    }


def _how(arrays: Step) -> str:
    i = arrays.row - 1
    if arrays.right is not None:
        factors = zip(arrays.left[i], arrays.right[:, 0], strict=True)
        terms = " + ".join(f"({_short(a)})({_short(b)})" for a, b in factors)
        return FIRST.format(terms=terms, total=_short(arrays.result[i, 0]))
    if STEPS[arrays.step - 1][0] == "U":
        return SCALED.format(d_k=arrays.d_k, root=number(np.sqrt(arrays.d_k), 3))
    if STEPS[arrays.step - 1][0] == "A":
        return SUMS
    S = arrays.result.shape[1]
    if arrays.mask == NO_MASK:
        return NOTHING_HIDDEN.format(all=S)
    return OPEN.format(seen=np.isfinite(arrays.result[i]).sum(), all=S)


def _short(x: float) -> str:
    return number(x).rstrip("0").rstrip(".")


def step_through(**state) -> Lab:
    """Return the lab of one head, step by step; ``state`` sets sliders by name.

    Examples
    --------
    >>> step_through(step=8)
    step_through(example='[R] (5.13)', step=8, row=3, mask='causal')
    """
    return Lab("step_through", STEP_CONTROLS, compute_step, draw_step, caption_step, state)


# ---------------------------------------------- a changed token

TOKEN, BY = "token changed", "added to its six features"
AFTER, WINDOW = "causal, after softmax", "causal, window of 2"
LEVELS = ("input", "layer 1", "layer 2", "layer 3")
HEADING = "Size of the change, relative to the change of the input"
LEAK = "dashed: only through the denominator"
TOKEN_ALT = (
    "Four tokens from left to right, and four levels from the input at the bottom to layer 3 "
    "at the top; lines go from every place to those that read it. Filled boxes moved: {told}."
)
TOKEN_CAPTION = "{by} was added to each of the six features of {token}. What moved, {told}. {size}"
LEVEL_MOVED = "{level}: {tokens}"
NOBODY = "{level}: nothing"
LARGEST = "The largest change in layer 3 is {size} times as large as the change of the input."
TINY = "<0.001"

X, W_Q, W_K, W_V = (
    np.array(M, float) for M in (M_SENTENCE.X, M_SENTENCE.W_Q, M_SENTENCE.W_K, M_SENTENCE.W_V)
)
for _array in (X, W_Q, W_K, W_V):
    _array.flags.writeable = False

TOKEN_CONTROLS = (
    Slider("token", TOKEN, SHORT, start="GPU"),
    Slider("by", BY, (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0), start=0.5, format=number),
    Slider("mask", MASK, (CAUSAL, NO_MASK, AFTER, WINDOW), start=CAUSAL),
)


class Reach(NamedTuple):
    """What a change of one token does to four tokens at the input and after each of 3 layers."""

    token: int  # counts from 0
    by: float
    change: np.ndarray  # (4, 4): level, token; relative to the change of the input
    reads: np.ndarray  # (4, 4): token i weighs the value of token j
    leaks: np.ndarray  # (4, 4): only the denominator of i contains the score of j


def layer(state: np.ndarray, mask: str) -> np.ndarray:
    """Return X + O for the rows X of a state: one head of the sentence, and the residual path."""
    Q, K, V = state @ W_Q, state @ W_K, state @ W_V
    if mask == AFTER:
        return state + attention(Q, K, V).A * causal(4, 4) @ V
    return state + attention(Q, K, V, _allowed(mask)).O


def _allowed(mask: str) -> np.ndarray:
    allowed = np.ones((4, 4), bool) if mask == NO_MASK else causal(4, 4)
    return allowed & ~np.tri(4, 4, -2, dtype=bool) if mask == WINDOW else allowed


def compute_reach(token: str, by: float, mask: str) -> Reach:
    """Compute three layers for the sentence as it is and with ``by`` added to one token."""
    place = SHORT.index(token)
    h = X.copy()
    h[place] += by
    levels = [(X, h)]
    for _ in range(3):
        levels.append(tuple(layer(rows, mask) for rows in levels[-1]))
    change = np.array([np.linalg.norm(b - a, axis=1) for a, b in levels])
    change /= np.linalg.norm(h[place] - X[place]) or 1
    reads = _allowed(mask)
    leaks = ~reads if mask == AFTER else np.zeros((4, 4), bool)
    return Reach(place, by, np.where(change < 1e-12, 0, change), reads, leaks)


def draw_reach(arrays: Reach) -> Picture:
    """Draw a box for each token at each level, and lines to those that read it."""
    wide, high = 104, 42
    xs, ys = [190 + 170 * j for j in range(4)], [414 - 112 * level for level in range(4)]
    behind, before, boxes = [], [], []
    for level in range(1, 4):
        for i in range(4):
            for j in range(4):
                if not (arrays.reads[i, j] or arrays.leaks[i, j]):
                    continue
                dash = style.DASHES[1] if arrays.leaks[i, j] else ()
                ends = xs[j], ys[level - 1] - high / 2, xs[i], ys[level] + high / 2
                if arrays.change[level - 1, j]:
                    before.append(Line(*ends, style.GRADIENT, 3.5, dash))
                else:
                    behind.append(Line(*ends, style.HATCH, 1.5, dash))
    for level, y in enumerate(ys):
        boxes.append(Text(24, y, LEVELS[level], fill=style.MUTED))
        for j, x in enumerate(xs):
            size = arrays.change[level, j]
            fill = style.GRADIENT if size else style.CARD
            edge = style.GRADIENT if size else style.MUTED
            boxes.append(Rect(x - wide / 2, y - high / 2, wide, high, fill, edge, 2, radius=6))
            boxes.append(
                Text(x, y, _size(size), fill=style.text_on(fill), anchor="middle", bold=bool(size))
            )
    names = [Text(x, 456, token, anchor="middle", bold=True)
             for x, token in zip(xs, SHORT, strict=True)]  # fmt: skip
    items = [Text(24, 28, HEADING, style.TITLE, bold=True), behind, before, boxes, names]
    if arrays.leaks.any():
        items.append(Text(24, 490, LEAK, fill=style.MUTED))
    return Picture(800, 510, items, TOKEN_ALT.format(told=_levels(arrays)))


def _size(change: float) -> str:
    return "0" if change == 0 else TINY if change < 0.0005 else number(change, 3)


def _levels(arrays: Reach) -> str:
    told = []
    for level, row in zip(LEVELS, arrays.change, strict=True):
        tokens = [token for token, size in zip(SHORT, row, strict=True) if size]
        told.append(
            LEVEL_MOVED.format(level=level, tokens=", ".join(tokens))
            if tokens
            else NOBODY.format(level=level)
        )
    return "; ".join(told)


def caption_reach(arrays: Reach) -> str:
    """Say what the picture shows."""
    size = LARGEST.format(size=_size(arrays.change[3].max())) if arrays.by else ""
    return TOKEN_CAPTION.format(
        by=number(arrays.by), token=SHORT[arrays.token], told=_levels(arrays), size=size
    ).strip()


def future_token(**state) -> Lab:
    """Return the lab of a changed token in three layers; ``state`` sets sliders by name.

    Examples
    --------
    >>> future_token(mask="none")
    future_token(token='GPU', by=0.5, mask='none')
    """
    return Lab("future_token", TOKEN_CONTROLS, compute_reach, draw_reach, caption_reach, state)
