"""One product read in four ways: the parts of A, B and C that belong together in each."""

from pathlib import Path

from attnbook import style
from attnbook.diagrams import matrix, number
from attnbook.labs.four_views_of_a_product import FIRST, SECOND, A, B
from attnbook.picture import Picture, Text, to_svg

C = A @ B
TINTS = {
    colour: style.shade((style.CARD, colour), 0.22) for colour in (FIRST, SECOND, style.OUTPUT)
}


def weighted(coefficients, names: str) -> str:
    """Write a sum of named vectors with numbers in front: "2 b + 3 c − d"."""
    text = ""
    for j, x in enumerate(coefficients, start=1):
        sign = ("−" if x < 0 else "") if j == 1 else (" − " if x < 0 else " + ")
        text += f"{sign}{number(abs(x), 0)} {names.format(j)}"
    return text


def picture() -> Picture:
    """Draw the four views side by side, each with the equation of its marked part."""
    terms = " + ".join(
        f"({number(a, 0)})({number(b, 0)})" for a, b in zip(A[0], B[:, 1], strict=True)
    )
    layers = " + ".join(f"$A_{{:{j}}} B_{{{j}:}}$" for j in (1, 2, 3))
    views = (  # title, marked row and column of A, B and C (None: all of them), equation
        ("entry: inner product", (0, None), (None, 1), (0, 1), f"$c_{{12}}$ = {terms} = 7"),
        ("column", (None, None), (None, 0), (None, 0),
         f"$C_{{:1}}$ = {weighted(B[:, 0], '$A_{{:{}}}$')}"),
        ("row", (0, None), (None, None), (0, None),
         f"$C_{{1:}}$ = {weighted(A[0], '$B_{{{}:}}$')}"),
        ("layers: outer products", (None, 1), (1, None), (None, None), f"$C$ = {layers}"),
    )  # fmt: skip
    assert C[0, 1] == 7
    items = []
    for n, (title, *parts, equation) in enumerate(views):
        left, top = 24 + 395 * (n % 2), 28 + 212 * (n // 2)
        items.append(Text(left, top, title, style.TITLE, bold=True))
        for x, (values, label, colour), (row, column) in zip(
            (left, left + 158, left + 276),
            ((A, "$A$", FIRST), (B, "$B$", SECOND), (C, "$C$", style.OUTPUT)),
            parts,
            strict=True,
        ):
            grounds = [
                [TINTS[colour] if row in (None, i) and column in (None, k) else None
                 for k in range(len(values[0]))]
                for i in range(len(values))
            ]  # fmt: skip
            y = top + 100 - 16 * len(values)
            look = {"cell": (42, 32), "digits": 0, "fill": style.INK, "grounds": grounds}
            items.append(matrix(x, y, values, label, **look))
        items += [
            Text(left + 142, top + 100, "·", style.TITLE, anchor="middle", bold=True),
            Text(left + 259, top + 100, "=", style.TITLE, anchor="middle", bold=True),
            Text(left, top + 172, equation),
        ]
    told = (
        "The product of a 2 by 3 matrix A and a 3 by 2 matrix B four times. Entry: row 1 of A and "
        "column 2 of B give entry 7 of C. Column: column 1 of C mixes the columns of A with column "
        "1 of B. Row: row 1 of C mixes the rows of B with row 1 of A. Layers: column 2 of A times "
        "row 2 of B is one of three layers over all of C."
    )
    return Picture(800, 440, items, told)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(to_svg(picture()), encoding="utf-8")
