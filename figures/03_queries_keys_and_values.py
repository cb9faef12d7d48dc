"""One vector in three roles: how a query, a key and a value meet in one output."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import arrow
from attnbook.picture import Picture, Rect, Text, to_svg


def box(x, y, width, text, colour, below=""):
    """Draw a rounded box with a name in it and a role under it."""
    ground = style.shade((style.CARD, colour), 0.16)
    items = [
        Rect(x, y, width, 46, ground, colour, 2, radius=8),
        Text(x + width / 2, y + 23, text, style.TITLE, style.text_on(ground), anchor="middle",
             bold=True),
    ]  # fmt: skip
    if below:
        items.append(Text(x + width / 2, y + 62, below, fill=colour, anchor="middle"))
    return items


def picture() -> Picture:
    """Draw the way from the reader and from one token that is read to the reader's output."""
    q, k, v = 40, 150, 260
    items = [
        box(30, q, 130, "$x_i$", style.INK, "token that reads"),
        box(30, (k + v) / 2, 130, "$x_j$", style.INK, "each token read"),
        box(270, q, 110, "$q_i$", style.QUERY, "asks"),
        box(270, k, 110, "$k_j$", style.KEY, "answers"),
        box(270, v, 110, "$v_j$", style.VALUE, "is handed over"),
        box(450, 95, 110, "$e_{ij}$", style.SCORE, "score $q_i k_j^⊤$"),
        box(630, 95, 130, "$a_{ij}$", style.WEIGHT, "weight"),
        box(610, v, 170, "$o_i = Σ_j a_{ij} v_j$", style.OUTPUT, "output at position $i$"),
        arrow(164, q + 23, 264, q + 23, style.QUERY),
        Text(212, q + 8, "$W_Q$", fill=style.QUERY, anchor="middle"),
        arrow(164, 219, 264, k + 28, style.KEY),
        Text(206, 181, "$W_K$", fill=style.KEY, anchor="middle"),
        arrow(164, 237, 264, v + 18, style.VALUE),
        Text(206, 278, "$W_V$", fill=style.VALUE, anchor="middle"),
        arrow(384, q + 26, 446, 108, style.SCORE),
        arrow(384, k + 20, 446, 128, style.SCORE),
        arrow(564, 118, 624, 118, style.WEIGHT),
        Text(594, 50, "softmax over all $j$", fill=style.WEIGHT, anchor="middle"),
        arrow(695, 172, 695, 254, style.OUTPUT),
        arrow(384, v + 23, 604, v + 23, style.OUTPUT),
    ]
    told = (
        "A token x i that reads and each token x j that is read. W Q makes the query q i of the "
        "reader; W K and W V make the key k j and the value v j of the token read. Query and key "
        "meet in the score e i j, softmax over all j turns the scores of i into weights a i j, and "
        "the output o i is the sum over j of a i j times v j."
    )
    return Picture(800, 350, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
