"""Three heads of one trained model on one text: three maps that have little in common."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import heat_map
from attnbook.labs.attention_in_a_trained_model import LIST, weights
from attnbook.masks import causal
from attnbook.picture import Picture, Text, to_svg
from attnbook.recordings import word_list

SHOWN = (
    (16, 0, "the token before"),
    (18, 6, "after an earlier copy"),
    (18, 8, "the first token"),
)
NAME = "Layer {layer}, head {head}"


def picture() -> Picture:
    """Draw the maps of three heads for the word list, a row for each token that reads."""
    recording, A = word_list(), weights(LIST)
    T, size = len(recording.tokens), 12
    labels = [token.strip() for token in recording.tokens]
    items = []
    for n, (layer, head, says) in enumerate(SHOWN):
        left, top = 84 + 240 * n, 82
        a = A[recording.layers.index(layer), head]
        items += [
            Text(left, 24, NAME.format(layer=layer, head=head), style.TITLE, bold=True),
            Text(left, 52, says),
            heat_map(left, top, a, cell=(size, size), allowed=causal(T, T)),
        ]
    for i in range(0, T, 2):
        items.append(Text(76, 82 + (i + 0.5) * size, labels[i], anchor="end"))
    alt = (
        "Three maps of eighteen by eighteen weights for a list of nine words that begins again. In "
        "the first, layer 16, head 0, the dark cells lie just under the diagonal: each token reads "
        "the one before. In the second, layer 18, head 6, they lie in the first column until the "
        "words repeat, and then on a diagonal nine columns back. In the third, layer 18, head 8, "
        "all of them lie in the first column."
    )
    return Picture(800, 310, items, alt)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
