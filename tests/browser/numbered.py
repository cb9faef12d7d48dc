"""Number what the labs draw; run in a kernel before the book is.

A slider comes back to where it was, and two settings may look alike. By its number in the SVG an
older picture can be told from a newer one all the same.
"""

import re

from attnbook.labs import engine

NUMBER = re.compile(r"<!-- (\d+) -->$")


def number_what_is_drawn() -> None:
    """Let the SVG of every picture end with how many have been drawn.

    A still has the number of the picture before it, unless another lab drew in between.
    """
    bundle, count, last = engine.bundle, 0, None

    def numbered(picture, still=True):
        nonlocal count, last
        if picture is not last:
            count, last = count + 1, picture
        number = count  # another thread may count on
        data, metadata = bundle(picture, still)
        return data | {"image/svg+xml": f"{data['image/svg+xml']}<!-- {number} -->"}, metadata

    engine.bundle = numbered


def without_number(svg: str) -> str:
    """Return an SVG as it is when pictures are not numbered.

    >>> without_number("<svg></svg><!-- 12 -->")
    '<svg></svg>'
    """
    return NUMBER.sub("", svg)


def number_of(svg: str) -> int:
    """Return the number of a picture.

    >>> number_of("<svg></svg><!-- 12 -->")
    12
    """
    return int(NUMBER.search(svg)[1])


if __name__ == "__main__":
    number_what_is_drawn()
