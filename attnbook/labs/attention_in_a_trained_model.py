"""Labs of chapter 14: a real map beside a hand-made one, and the catalogue of heads on real heads.

All of them show recorded heads (``attnbook/recordings.py``). Layers and heads count from 0.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from attnbook import recordings, style
from attnbook.diagrams import Group, Panel, apart, axes, colour_legend, heat_map, number
from attnbook.examples import M_SENTENCE
from attnbook.head_catalogue import (
    COMMA,
    FIRST,
    INDUCTION,
    NEXT,
    PATTERNS,
    PREVIOUS,
    SELF,
    THREE_BACK,
    named_keys,
    score,
    uniform,
)
from attnbook.heads import grouped_attention
from attnbook.labs.engine import Lab, Slider
from attnbook.masks import causal
from attnbook.picture import Line, Picture, Polygon, Rect, Text
from attnbook.recordings import Decoder, encoder_sentence, sentence, word_list
from attnbook.rotary import rotate

# Everything a reader sees, in one place.
LAYER, HEAD = "layer", "head"
HAND_MADE = "hand-made map"
PRINTED, CUT = "as [M] has it", "causal part, shared anew"
OF_M, OF_HEAD = "Set by hand in [M]", "Layer {layer}, head {head}"
ALL_HEADS = "All nine heads of layer {layer}"
KEYS_OF = "keys {g}"
APART = "apart: {tv}"
ALT_BESIDE = (
    "Two four by four maps of the words I, love, GPU, prog. Left the one that [M] set by hand, "
    "{kind}: row prog is {m_row}. Right the weights of layer {layer}, head {head}, with the future "
    "hatched: row prog is {row}. Below, the maps of all nine heads of the layer as small squares, "
    "in threes that share keys; the one shown is framed."
)
CAPTION_BESIDE = (
    "Row prog: {row} in this head, {m_row} in the hand-made map. Over rows love, GPU and prog, "
    "{tv} of the weight of a row lies on other keys than by hand, on average; for equal weights "
    "it would be {tv_uniform}."
)

PATTERN, TEXT = "reads", "text"
RANK = "head shown"
SENTENCE, LIST, ENCODER = "sentence, SmolLM2", "word list, SmolLM2", "sentence, MiniLM"
TEXTS = (SENTENCE, LIST, ENCODER)
PLACES = {1: "highest", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
SCORES = "Score of every head: {pattern}"
LAYERS, HEADS = "layer", "head"
TOP_FIVE = "Five highest: layer.head"
EQUAL = "equal weights"
UNDEFINED = "This text cannot show it: {why}."
WHY = {
    NEXT: "the next token may not be read",
    THREE_BACK: "no row is long enough",
    COMMA: "it has no comma",
    INDUCTION: "no token is repeated",
}
NO_WHY = "the tokens do not allow it"
ALT_CATALOGUE = (
    "Above, a table of the scores of {n} heads, a column for each layer and a row for each head, "
    "darker for more; {missing}the highest is {best} and the median {median}. Below left, the map "
    "of layer {layer}, head {head}, a row for each token that reads, with the keys named by the "
    "pattern framed. Below right, bars: the five highest scores {top}, and a line for equal "
    "weights at {baseline}."
)
MISSING = "layers that were not recorded are hatched; "
ALT_UNDEFINED = "An empty table of heads. {said} There is no map and no bar."
CAPTION_CATALOGUE = (
    "Mean weight on {what}: {score} in layer {layer}, head {head}, with equal weights {baseline}. "
    "{over} of {n} heads score above one half; the median is {median}."
)
WHAT = {
    FIRST: "the first token",
    PREVIOUS: "the token before",
    SELF: "the token itself",
    NEXT: "the token after",
    THREE_BACK: "the token three places back",
    COMMA: "the comma",
    INDUCTION: "what came after an earlier copy",
}

KV_HEAD = "key/value head"
QUERY = "query token"
QUERY_FORMAT = "{i}: {token}"
SAME_KEYS = "Layer {layer}: three query heads, the same keys"
BARS_OF = "head {h}"
ALT_SHARED = (
    "Three rows of bars over the tokens of the word list: the weights of query heads {heads} of "
    "layer {layer} for the query {token} at place {i}. All three read key/value head {g}. The "
    "largest weights: {largest}."
)
CAPTION_SHARED = (
    "The same query token, the same keys, three rows of weights. Largest weight: {largest}. Two "
    "of the rows have up to {tv} of their weight on different keys."
)
LARGEST = "head {h}: {a} on {token} at place {j}"

MOVED_HEAD = "layer.head"
GAP = "places put between"
ORIGINAL, MOVED = "as recorded", "{gap} places put between the two copies"
TRIANGLE, SQUARE = "came after the earlier copy", "stands 9 places before"
ALT_MOVED = (
    "Two rows of bars over the tokens of the word list, the weights of layer {layer}, head {head} "
    "for the query {token} at place {i}: above as recorded, below with {gap} places put between "
    "the two copies. A triangle marks what came after the earlier copy, {content} above and "
    "{content_moved} below; a square marks the key nine places before the query, "
    "{distance}.{break_}"
)
BREAK = " A dashed line shows where the places were put."
NONE = "none in the lower row"
CAPTION_MOVED = (
    "On what came after the earlier copy: {content} as recorded, {content_moved} moved away. {rest}"
)
REST = "On the key that is now nine places before: {distance}."
REST_NONE = "No key that was recorded is now nine places before."
REST_SAME = "Nothing was moved: it is also the key nine places before."

SHORT = ("I", "love", "GPU", "prog")


# ---------------------------------------------------------------- what was recorded


@cache
def weights(text: str) -> np.ndarray:
    """Return the weights of all heads that were recorded for a text, recomputed from q and k.

    Parameters
    ----------
    text : str
        One of `TEXTS`; those of the encoder were recorded as weights.

    Returns
    -------
    float64 array, shape (layers, heads, T, T)
    """
    recorded = text == ENCODER
    A = encoder_sentence().A.astype(float) if recorded else recordings.weights(_recording(text))
    A.flags.writeable = False
    return A


def _recording(text: str) -> Decoder:
    return sentence() if text == SENTENCE else word_list()


def _tokens(text: str) -> tuple[str, ...]:
    return encoder_sentence().tokens if text == ENCODER else _recording(text).tokens


def _labels(text: str) -> tuple[str, ...]:
    """Return the tokens of a text without the space that most of them begin with."""
    return tuple(token.strip() for token in _tokens(text))


def _listed(values: np.ndarray) -> str:
    return ", ".join(number(x) for x in values)


# ---------------------------------------------------------------- beside the hand-made map

HAND = np.array(M_SENTENCE.A, float)
HAND.flags.writeable = False
BESIDE_CONTROLS = (
    Slider("layer", LAYER, tuple(range(30)), start=1),
    Slider("head", HEAD, tuple(range(9)), start=0),
    Slider("hand_made", HAND_MADE, (PRINTED, CUT), start=PRINTED),
)


class Beside(NamedTuple):
    """One head of the sentence and the map that [M] set by hand."""

    layer: int
    head: int
    kind: str
    hand: np.ndarray  # (4, 4)
    A: np.ndarray  # (9, 4, 4): all heads of the layer
    tv: float  # mean total variation of rows 2 to 4
    tv_uniform: float


def compute_beside(layer: int, head: int, hand_made: str) -> Beside:
    """Look the head up, and compare it row by row with the hand-made map."""
    hand = HAND
    if hand_made == CUT:
        hand = np.tril(HAND)
        hand = hand / hand.sum(axis=1, keepdims=True)
    A = weights(SENTENCE)[layer]
    equal = uniform(causal(4, 4))
    tv, tv_uniform = (np.abs(x - hand).sum(axis=1)[1:].mean() / 2 for x in (A[head], equal))
    return Beside(layer, head, hand_made, hand, A, float(tv), float(tv_uniform))


def draw_beside(arrays: Beside) -> Picture:
    """Draw both maps, and all heads of the layer small."""
    allowed = causal(4, 4)
    tokens, cell = list(SHORT), (62, 44)
    title = OF_HEAD.format(layer=arrays.layer, head=arrays.head)
    items = [
        Text(70, 26, OF_M, style.TITLE, bold=True),
        heat_map(
            70, 74, arrays.hand, cell=cell, row_labels=tokens, column_labels=tokens,
            allowed=allowed if arrays.kind == CUT else None,
        ),
        Text(470, 26, title, style.TITLE, bold=True),
        heat_map(
            470, 74, arrays.A[arrays.head], cell=cell, row_labels=tokens, column_labels=tokens,
            allowed=allowed,
        ),
        Text(70, 292, ALL_HEADS.format(layer=arrays.layer), style.TITLE, bold=True),
    ]  # fmt: skip
    for h, A in enumerate(arrays.A):
        left = 70 + 72 * h + 24 * (h // 3)
        items += _thumbnail(left, 318, A, picked=h == arrays.head)
        items.append(Text(left + 28, 392, str(h), anchor="middle", bold=h == arrays.head))
    for g in range(3):
        left = 70 + 240 * g
        items += [
            Line(left, 408, left + 200, 408, style.KEY, 3),
            Text(left + 100, 424, KEYS_OF.format(g=g), fill=style.KEY, anchor="middle"),
        ]
    return Picture(800, 444, items, ALT_BESIDE.format(**_beside_told(arrays)))


def _thumbnail(left: float, top: float, A: np.ndarray, picked: bool) -> Group:
    """Return a map as a square of small cells, with a heavy frame if it is the one picked."""
    size = 14
    cells = [
        Rect(left + size * j, top + size * i, size, size, style.shade(style.SEQUENTIAL, a))
        for (i, j), a in np.ndenumerate(A)
    ]
    frame = (style.INK, 4) if picked else (style.MUTED, 1)
    return (*cells, Rect(left, top, size * len(A), size * len(A), None, *frame))


def caption_beside(arrays: Beside) -> str:
    """Say what the picture shows."""
    return CAPTION_BESIDE.format(**_beside_told(arrays))


def _beside_told(arrays: Beside) -> dict[str, str]:
    return {
        "layer": str(arrays.layer),
        "head": str(arrays.head),
        "kind": arrays.kind,
        "row": _listed(arrays.A[arrays.head, 3]),
        "m_row": _listed(arrays.hand[3]),
        "tv": number(arrays.tv),
        "tv_uniform": number(arrays.tv_uniform),
    }


def beside_the_hand_made_map(**state) -> Lab:
    """Return the lab of a recorded head beside [M]'s map; ``state`` sets sliders by name.

    Examples
    --------
    >>> beside_the_hand_made_map(layer=16)
    beside_the_hand_made_map(layer=16, head=0, hand_made='as [M] has it')
    """
    return Lab(
        "beside_the_hand_made_map",
        BESIDE_CONTROLS,
        compute_beside,
        draw_beside,
        caption_beside,
        state,
    )


# ---------------------------------------------------------------- the catalogue

CATALOGUE_CONTROLS = (
    Slider("pattern", PATTERN, PATTERNS, start=FIRST),
    Slider("text", TEXT, TEXTS, start=SENTENCE),
    Slider("rank", RANK, tuple(PLACES), start=1, format=PLACES.get),
)


class Catalogue(NamedTuple):
    """The score of each head for a pattern, and the map of one head."""

    pattern: str
    text: str
    tokens: tuple[str, ...]
    layers: tuple[int, ...]
    scores: np.ndarray  # (layers, heads); empty if the text cannot show the pattern
    baseline: float
    top: tuple[tuple[int, int], ...]  # the five highest: index of layer, head
    shown: int  # which of them is shown
    A: np.ndarray  # (T, T): its map
    there: np.ndarray  # (T, T): the keys named
    allowed: np.ndarray  # (T, T)


def compute_catalogue(pattern: str, text: str, rank: int) -> Catalogue:
    """Score all heads of a text for a pattern, and pick one of the highest."""
    A, tokens = weights(text), _tokens(text)
    T = len(tokens)
    layers = tuple(range(len(A))) if text == ENCODER else _recording(text).layers
    allowed = np.ones((T, T), dtype=bool) if text == ENCODER else causal(T, T)
    there = named_keys(pattern, tokens) & allowed
    if not there.any():
        nothing = np.zeros((T, T))
        return Catalogue(
            pattern, text, tokens, layers, np.zeros((0, 0)), 0.0, (), 0, nothing, there, allowed
        )
    scores = score(A, there)
    order = np.argsort(-scores.round(6), axis=None, kind="stable")[: len(PLACES)]
    top = tuple((int(n) // A.shape[1], int(n) % A.shape[1]) for n in order)
    n, h = top[rank - 1]
    baseline = float(score(uniform(allowed), there))
    return Catalogue(
        pattern, text, tokens, layers, scores, baseline, top, rank - 1, A[n, h], there, allowed
    )


def draw_catalogue(arrays: Catalogue) -> Picture:
    """Draw the scores of all heads, the map of the one picked and the five highest scores."""
    encoder = arrays.text == ENCODER
    columns, rows = (6, 12) if encoder else (30, 9)
    width, height = (40, 16) if encoder else (21, 21)
    values, recorded = np.zeros((rows, columns)), np.zeros((rows, columns), dtype=bool)
    if arrays.top:
        values[:, list(arrays.layers)] = arrays.scores.T
        recorded[:, list(arrays.layers)] = True
    left, top = 70, 58
    items = [
        Text(20, 24, SCORES.format(pattern=arrays.pattern), style.TITLE, bold=True),
        heat_map(left, top, values, cell=(width, height), allowed=recorded),
        colour_legend(left + 30 * 21 + 24, top, 9 * 21),
        Text(left + columns * width + 4, 266, LAYERS, anchor="start"),
        Text(18, top + rows * height / 2, HEADS, anchor="middle", rotate=-90),
    ]
    for column in range(0, columns, 1 if encoder else 5):
        x = left + (column + 0.5) * width
        items.append(Text(x, 266, str(column), anchor="middle"))
    for row in range(0, rows, 2):
        items.append(Text(left - 10, top + (row + 0.5) * height, str(row), anchor="end"))
    if not arrays.top:
        items.append(Text(70, 330, _undefined(arrays), style.TITLE, bold=True))
        return Picture(800, 590, items, ALT_UNDEFINED.format(said=_undefined(arrays)))
    n, h = arrays.top[arrays.shown]
    layer = arrays.layers[n]
    x, y = left + layer * width, top + h * height
    items += [
        apart([Rect(x - 2, y - 2, width + 4, height + 4, None, style.INK, 3)]),
        Text(20, 302, OF_HEAD.format(layer=layer, head=h), style.TITLE, bold=True),
        _map(140, 322, arrays),
        _highest(arrays),
    ]
    return Picture(800, 590, items, ALT_CATALOGUE.format(**_catalogue_told(arrays)))


def _map(left: float, top: float, arrays: Catalogue) -> Group:
    """Return the map of the head picked, rows labelled, the keys named in a frame."""
    T = len(arrays.tokens)
    size = 248 / T
    allowed = None if arrays.allowed.all() else arrays.allowed
    digits = 2 if T <= 4 else 1
    cells = heat_map(left, top, arrays.A, cell=(size, size), digits=digits, allowed=allowed)
    items = [*cells]
    for i, j in np.argwhere(arrays.there):
        x, y = left + size * j, top + size * i
        items.append(apart([Rect(x + 1, y + 1, size - 2, size - 2, None, style.KEY, 2)]))
    labels = _labels(arrays.text)
    for i in range(0, T, 1 if T <= 8 else 2):
        items.append(Text(left - 8, top + (i + 0.5) * size, labels[i], anchor="end"))
    return tuple(items)


def _highest(arrays: Catalogue) -> Group:
    """Return the five highest scores as bars, with a line for equal weights."""
    panel = Panel(480, 350, 290, 180, y_limits=(0, 1.15))
    step = panel.width / len(arrays.top)
    items = [
        *axes(panel, title=TOP_FIVE, x_ticks=(), y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
    ]
    for place, (n, h) in enumerate(arrays.top):
        s = float(arrays.scores[n, h])
        x, y = panel.left + step * place + 8, panel.y(s)
        items += [
            Rect(x, y, step - 16, panel.y(0) - y, style.WEIGHT),
            Text(x + step / 2 - 8, y - 13, number(s), anchor="middle", bold=place == arrays.shown),
            Text(x + step / 2 - 8, panel.bottom + 18, f"{arrays.layers[n]}.{h}", anchor="middle",
                 bold=place == arrays.shown),
        ]  # fmt: skip
    y = panel.y(arrays.baseline)
    items += [
        Line(panel.left, y, panel.right, y, style.CARD, 5),
        Line(panel.left, y, panel.right, y, style.INK, 2, (9, 5)),
        Text(panel.left, 572, f"{EQUAL}: {number(arrays.baseline)}"),
        Line(panel.left + 190, 572, panel.left + 240, 572, style.INK, 2, (9, 5)),
    ]
    return tuple(items)


def caption_catalogue(arrays: Catalogue) -> str:
    """Say what the picture shows."""
    if not arrays.top:
        return _undefined(arrays)
    return CAPTION_CATALOGUE.format(**_catalogue_told(arrays))


def _undefined(arrays: Catalogue) -> str:
    return UNDEFINED.format(why=WHY.get(arrays.pattern, NO_WHY))


def _catalogue_told(arrays: Catalogue) -> dict[str, str]:
    n, h = arrays.top[arrays.shown]
    scores = arrays.scores
    return {
        "what": WHAT[arrays.pattern],
        "score": number(scores[n, h]),
        "layer": str(arrays.layers[n]),
        "head": str(h),
        "baseline": number(arrays.baseline),
        "over": str(int((scores > 0.5).sum())),
        "n": str(scores.size),
        "median": number(float(np.median(scores))),
        "best": number(scores.max()),
        "top": _listed(np.array([scores[place] for place in arrays.top])),
        "missing": MISSING if arrays.text == LIST else "",
    }


def catalogue_of_heads(**state) -> Lab:
    """Return the lab of patterns and heads; ``state`` sets sliders by name.

    Examples
    --------
    >>> catalogue_of_heads(pattern="previous token")
    catalogue_of_heads(pattern='previous token', text='sentence, SmolLM2', rank=1)
    """
    return Lab(
        "catalogue_of_heads",
        CATALOGUE_CONTROLS,
        compute_catalogue,
        draw_catalogue,
        caption_catalogue,
        state,
    )


# ---------------------------------------------------------------- the same keys, three maps

LIST_TOKENS = _labels(LIST)


def _query(i: int) -> str:
    return QUERY_FORMAT.format(i=i, token=LIST_TOKENS[i])


SHARED_CONTROLS = (
    Slider("layer", LAYER, word_list().layers, start=18),
    Slider("g", KV_HEAD, (0, 1, 2), start=2),
    Slider("i", QUERY, tuple(range(len(LIST_TOKENS))), start=17, format=_query),
)


class Shared(NamedTuple):
    """The rows of three query heads that read the same keys."""

    layer: int
    g: int
    i: int
    A: np.ndarray  # (3, T)
    tv: float  # the largest distance of two of the rows


def compute_shared(layer: int, g: int, i: int) -> Shared:
    """Look up the three rows of one query."""
    n = word_list().layers.index(layer)
    A = weights(LIST)[n, 3 * g : 3 * g + 3, i]
    tv = max(float(np.abs(a - b).sum()) / 2 for a in A for b in A)
    return Shared(layer, g, i, A, tv)


def draw_shared(arrays: Shared) -> Picture:
    """Draw three rows of bars over the tokens."""
    items = [Text(20, 24, SAME_KEYS.format(layer=arrays.layer), style.TITLE, bold=True)]
    for r, a in enumerate(arrays.A):
        panel = Panel(110, 54 + 118 * r, 670, 84, y_limits=(0, 1.3))
        title = BARS_OF.format(h=3 * arrays.g + r)
        items += [Text(20, panel.top + 42, title, bold=True), _row(panel, a, arrays.i)]
    items += _words(Panel(110, 290, 670, 84), 380)
    return Picture(800, 462, items, ALT_SHARED.format(**_shared_told(arrays)))


def _row(panel: Panel, a: np.ndarray, i: int) -> Group:
    """Return one row of weights as bars, the largest with its number, keys after i left empty."""
    step = panel.width / len(a)
    items = [
        *axes(panel, x_ticks=(), y_ticks=((0, "0"), (1, "1"))),
    ]
    for j in range(i + 1):
        x, y = panel.left + step * j + 5, panel.y(float(a[j]))
        items.append(Rect(x, y, step - 10, panel.y(0) - y, style.WEIGHT))
    j = int(np.argmax(a.round(9)))
    x = panel.left + step * (j + 0.5)
    items.append(Text(x, panel.y(float(a[j])) - 11, number(a[j]), anchor="middle"))
    return tuple(items)


def _words(panel: Panel, top: float) -> Group:
    """Return the tokens of the list, turned, under the middle of their bars."""
    step = panel.width / len(LIST_TOKENS)
    return tuple(
        Text(panel.left + step * (j + 0.5), top, token, anchor="end", rotate=-90)
        for j, token in enumerate(LIST_TOKENS)
    )


def caption_shared(arrays: Shared) -> str:
    """Say what the picture shows."""
    return CAPTION_SHARED.format(**_shared_told(arrays))


def _shared_told(arrays: Shared) -> dict[str, str]:
    largest = []
    for r, a in enumerate(arrays.A):
        j = int(np.argmax(a.round(9)))
        largest.append(
            LARGEST.format(h=3 * arrays.g + r, a=number(a[j]), token=LIST_TOKENS[j], j=j)
        )
    return {
        "layer": str(arrays.layer),
        "g": str(arrays.g),
        "i": str(arrays.i),
        "token": LIST_TOKENS[arrays.i],
        "heads": ", ".join(str(3 * arrays.g + r) for r in range(3)),
        "largest": "; ".join(largest),
        "tv": number(arrays.tv),
    }


def shared_keys(**state) -> Lab:
    """Return the lab of three query heads on the same keys; ``state`` sets sliders by name.

    Examples
    --------
    >>> shared_keys(i=10)
    shared_keys(layer=18, g=2, i=10)
    """
    return Lab("shared_keys", SHARED_CONTROLS, compute_shared, draw_shared, caption_shared, state)


# ---------------------------------------------------------------- content or distance

MOVED_HEADS = ("17.3", "17.4", "17.5", "18.6", "18.7", "20.6", "16.0")
GAPS = (0, 1, 2, 3, 4, 5, 7, 10, 20, 50)
MOVED_CONTROLS = (
    Slider("which", MOVED_HEAD, MOVED_HEADS, start="17.4"),
    Slider("gap", GAP, GAPS, start=3),
    Slider("i", QUERY, tuple(range(11, 18)), start=11, format=_query),
)
DISTANCE = 9  # from a word of the second copy back to what came after its first copy


class Moved(NamedTuple):
    """One row of a head, as recorded and with the second copy moved away from the first."""

    layer: int
    head: int
    gap: int
    i: int
    A: np.ndarray  # (2, T)
    content: int  # the key after the earlier copy
    distance: int  # the key nine places before, -1 if there is none


@cache
def moved_weights(gap: int) -> np.ndarray:
    """Return the weights of the word list with `gap` places put between its two copies.

    They lie before the comma. The turn of its position is taken back from each query and key and
    made again with the new position; what they hold beside it stays.

    Parameters
    ----------
    gap : int

    Returns
    -------
    float64 array, shape (6, 9, T, T)
    """
    recording = word_list()
    T = len(recording.tokens)
    old = np.arange(T)
    new = old + np.where(old >= DISTANCE, gap, 0)
    Q, K = (rotate(rotate(x, -old), new) for x in (recording.q, recording.k))
    A = grouped_attention(Q, K, recording.v.astype(float), causal(T, T)).A
    A.flags.writeable = False
    return A


def compute_moved(which: str, gap: int, i: int) -> Moved:
    """Compute a row with and without the gap."""
    layer, head = map(int, which.split("."))
    n = word_list().layers.index(layer)
    A = np.stack([moved_weights(0)[n, head, i], moved_weights(gap)[n, head, i]])
    distance = i - DISTANCE + gap
    distance = distance if distance < DISTANCE else -1  # it lies in the gap
    return Moved(layer, head, gap, i, A, i - DISTANCE, distance)


def draw_moved(arrays: Moved) -> Picture:
    """Draw the two rows, with a triangle at the content key and a square at the distance key."""
    titles = (ORIGINAL, MOVED.format(gap=arrays.gap))
    items = [
        Text(20, 24, OF_HEAD.format(layer=arrays.layer, head=arrays.head), style.TITLE, bold=True),
        Polygon(((330, 17), (323, 30), (337, 30)), style.KEY),
        Text(344, 24, TRIANGLE),
        Rect(590, 18, 12, 12, style.SCORE),
        Text(610, 24, SQUARE),
    ]
    for r, a in enumerate(arrays.A):
        panel = Panel(60, 84 + 160 * r, 720, 92, y_limits=(0, 1.3))
        items.append(Text(60, panel.top - 24, titles[r], bold=True))
        items.append(_row(panel, a, arrays.i))
        step = panel.width / len(a)
        distance = arrays.content if r == 0 else arrays.distance
        x = panel.left + step * (arrays.content + 0.5) - (7 if distance == arrays.content else 0)
        y = panel.bottom + 14
        items.append(Polygon(((x, y - 7), (x - 7, y + 6), (x + 7, y + 6)), style.KEY))
        if distance >= 0:
            x = panel.left + step * (distance + 0.5) + (7 if distance == arrays.content else 0)
            items.append(Rect(x - 6, y - 6, 12, 12, style.SCORE))
    if arrays.gap:  # where the places were put, in the lower row
        x = panel.left + step * DISTANCE
        items.append(Line(x, panel.top - 4, x, panel.bottom + 22, style.INK, 2, (5, 5)))
    items += _words(Panel(60, 336, 720, 84), 364)
    return Picture(800, 446, items, ALT_MOVED.format(**_moved_told(arrays)))


def caption_moved(arrays: Moved) -> str:
    """Say what the picture shows."""
    return CAPTION_MOVED.format(**_moved_told(arrays))


def _moved_told(arrays: Moved) -> dict[str, str]:
    distance = number(arrays.A[1, arrays.distance]) if arrays.distance >= 0 else NONE
    rest = REST.format(distance=distance) if arrays.distance >= 0 else REST_NONE
    return {
        "layer": str(arrays.layer),
        "head": str(arrays.head),
        "token": LIST_TOKENS[arrays.i],
        "i": str(arrays.i),
        "gap": str(arrays.gap),
        "content": number(arrays.A[0, arrays.content]),
        "content_moved": number(arrays.A[1, arrays.content]),
        "distance": distance,
        "rest": rest if arrays.gap else REST_SAME,
        "break_": BREAK if arrays.gap else "",
    }


def moved_copy(**state) -> Lab:
    """Return the lab of a copy that is moved away; ``state`` sets sliders by name.

    Examples
    --------
    >>> moved_copy(gap=0)
    moved_copy(which='17.4', gap=0, i=11)
    """
    return Lab("moved_copy", MOVED_CONTROLS, compute_moved, draw_moved, caption_moved, state)
