"""The three places of attention in an encoder-decoder, with who may read what at each."""

from pathlib import Path

import numpy as np

from attnbook import masks, style
from attnbook.diagrams import arrow
from attnbook.picture import Picture, Rect, Text, to_svg

S, T = 5, 4  # the last source position and the last target position are padding
SOURCE, TARGET = np.arange(S) < S - 1, np.arange(T) < T - 1
CELL = 17


def site(left: float, top: float, name: str, reads: str) -> list:
    """Draw the box of one attention sublayer: its name, and where its inputs come from."""
    ground = style.shade((style.CARD, style.WEIGHT), 0.08)
    return [
        Rect(left, top, 226, 62, ground, style.WEIGHT, 2, radius=8),
        Text(left + 113, top + 20, name, style.TITLE, anchor="middle", bold=True),
        Text(left + 113, top + 45, reads, anchor="middle"),
    ]


def plain(left: float, top: float, text: str) -> list:
    """Draw the box of an input or an output."""
    ground = style.shade((style.CARD, style.INK), 0.06)
    return [
        Rect(left, top, 226, 38, ground, style.INK, 1.5, radius=8),
        Text(left + 113, top + 19, text, anchor="middle"),
    ]


def grid(left: float, top: float, allowed: np.ndarray) -> list:
    """Draw an allowed set: a full cell may be read."""
    return [
        Rect(
            left + j * CELL,
            top + i * CELL,
            CELL,
            CELL,
            style.WEIGHT if may else style.CARD,
            style.MUTED,
            1,
        )
        for i, row in enumerate(allowed)
        for j, may in enumerate(row)
    ]


def picture() -> Picture:
    """Draw the encoder on the left, the decoder on the right, the mask of each site beside it."""
    e, d = 20, 440
    source, target = masks.padding(SOURCE), masks.padding(TARGET)
    items = [
        Text(e, 28, "Encoder", style.TITLE, bold=True),
        Text(d, 28, "Decoder", style.TITLE, bold=True),
        plain(e, 398, "source, $S$ positions"),
        plain(d, 398, "target so far, $T$ positions"),
        arrow(e + 113, 396, e + 113, 346, style.INK),
        arrow(d + 113, 396, d + 113, 346, style.INK),
        site(e, 280, "self-attention", "$Q$, $K$, $V$: source"),
        site(d, 280, "self-attention", "$Q$, $K$, $V$: target"),
        arrow(e + 113, 278, e + 113, 206, style.INK),
        arrow(d + 113, 278, d + 113, 206, style.QUERY),
        Text(d + 123, 240, "$Q$", fill=style.QUERY, bold=True),
        plain(e, 164, "encoder output $X_m$"),
        site(d, 140, "cross-attention", "$Q$: target   $K$, $V$: $X_m$"),
        arrow(e + 230, 176, d - 6, 164, style.KEY),
        arrow(e + 230, 190, d - 6, 184, style.VALUE, dash=style.DASHES[2]),
        Text(338, 148, "$K$", fill=style.KEY, anchor="middle", bold=True),
        Text(338, 212, "$V$", fill=style.VALUE, anchor="middle", bold=True),
        arrow(d + 113, 138, d + 113, 96, style.INK),
        plain(d, 54, "to the next word"),
        grid(e + 236, 270, np.broadcast_to(source, (S, S))),
        grid(d + 240, 278, masks.causal(T, T) & target),
        grid(d + 240, 138, np.broadcast_to(source, (T, S))),
        Text(e, 60, "full cell: may be read", fill=style.MUTED),
        Text(e, 84, "last position of each: padding", fill=style.MUTED),
        Text(d + 240, 364, "$T$ × $T$", fill=style.MUTED),
        Text(d + 240, 222, "$T$ × $S$", fill=style.MUTED),
        Text(e + 236, 372, "$S$ × $S$", fill=style.MUTED),
    ]
    told = (
        "Left, the encoder: the source goes through self-attention and becomes the encoder output "
        "X m. Right, the decoder: the target so far goes through self-attention, whose result "
        "gives the queries of the cross-attention above it; keys and values of the "
        "cross-attention come over from X m. Beside each attention a small table of who may read "
        "what, the last position of source and of target being padding: encoder, 5 by 5, all "
        "columns but the last; decoder, 4 by 4, a triangle without the last column; cross, 4 by "
        "5, all columns but the last and no triangle."
    )
    return Picture(800, 452, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
