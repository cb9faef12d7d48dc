"""How sharp the heads of a trained model are, layer by layer, and how much the first token gets."""

from pathlib import Path

import numpy as np

from attnbook import entropy, style
from attnbook.diagrams import Panel, axes, curve
from attnbook.head_catalogue import FIRST, named_keys, score
from attnbook.labs.attention_in_a_trained_model import SENTENCE, weights
from attnbook.picture import Circle, Picture, Text, to_svg
from attnbook.recordings import sentence

ENTROPY, ON_FIRST = "Entropy as a share of its maximum", "Weight on the first token"
LAYER = "layer"


def picture() -> Picture:
    """Draw nine dots for each of 30 layers in two panels, with the median as a line."""
    A = weights(SENTENCE)
    shares = (entropy(A)[..., 2:] / np.log([3, 4])).mean(axis=-1)
    firsts = score(A, named_keys(FIRST, sentence().tokens))
    items = []
    for n, (title, values) in enumerate(((ENTROPY, shares), (ON_FIRST, firsts))):
        panel = Panel(60, 58 + 214 * n, 716, 140, x_limits=(-0.7, 29.7), y_limits=(0, 1))
        ticks = [(layer, str(layer)) for layer in range(0, 30, 5)]
        items += [
            axes(panel, title=title, x_ticks=ticks, y_ticks=((0, "0"), (0.5, "0.5"), (1, "1"))),
            curve(panel, np.arange(30), np.median(values, axis=1), style.WEIGHT),
        ]
        for layer, head in np.ndindex(values.shape):
            x, y = panel.x(layer), panel.y(float(values[layer, head]))
            items.append(Circle(x, y, 3, None, style.INK, 1))
    items.append(Text(790, 434, LAYER, anchor="end"))
    alt = (
        "Two panels over the 30 layers, nine circles for the heads of a layer and a line through "
        "their medians. Above, entropy as a share of its maximum: the median is highest in layers "
        "0, 1, 10, 11 and 27 and lowest in 5, 7, 20 and 24, with a wide range in most layers. "
        "Below, the weight on the first token: its median is near 1 where the entropy is lowest, "
        "and near 0 in layer 11."
    )
    return Picture(800, 450, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
