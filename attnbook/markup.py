r"""Mathematical labels: ``"scores $q_i k_j/√d_k$"`` for pictures, HTML and plain text.

Between two dollar signs letters are italic, ``_`` sets the next character or ``{group}`` lower
and ``^`` sets it higher.  A bar over a letter is the combining macron, as in ``"$V\u0304$"``.
Everything else is upright and stands for itself.
"""

import html
import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

BAR = "\N{COMBINING MACRON}"
_SCRIPT = re.compile(r"([_^])(\{[^{}]*\}|[^{}_^])|([^{}_^]+)")
_LETTERS = re.compile(rf"((?:[^\W\d_]|{BAR})+)|(?:(?!{BAR})[\W\d_])+")


class Run(NamedTuple):
    """Text in one style; ``level`` is -1 in a subscript, 1 in a superscript, 0 elsewhere."""

    text: str
    italic: bool = False
    level: int = 0


@lru_cache(maxsize=4096)
def runs(text: str) -> tuple[Run, ...]:
    """Split a label into stretches of one style.

    Parameters
    ----------
    text : str
        A label in the markup of this module.

    Returns
    -------
    tuple of Run
        In reading order; their texts joined are the label without its markup.

    Raises
    ------
    ValueError
        If a dollar sign or a brace has no partner, or nothing follows a ``_`` or ``^``.

    Examples
    --------
    >>> [(run.text, run.level) for run in runs("width $d_k$")]
    [('width ', 0), ('d', 0), ('k', -1)]
    """
    parts = unicodedata.normalize("NFC", text).split("$")
    if len(parts) % 2 == 0:
        raise ValueError(
            f"expected dollar signs in pairs, got the label {text!r}: close the formula"
        )
    found = []
    for i, part in enumerate(parts):
        if i % 2 == 0:
            found.append(Run(part))
            continue
        end = 0
        for match in _SCRIPT.finditer(part):
            if match.start() != end:
                break
            end = match.end()
            level = {"_": -1, "^": 1, None: 0}[match[1]]
            for piece in _LETTERS.finditer(match[3] or match[2].strip("{}")):
                found.append(Run(piece[0], piece[1] is not None, level))
        if end != len(part):
            raise ValueError(
                f"cannot read {part[end:]!r} in the label {text!r}: "
                "after _ or ^ write one character or a {group}"
            )
    return tuple(run for run in found if run.text)


def to_plain(text: str) -> str:
    """Return a label as plain text.

    Examples
    --------
    >>> to_plain("width $d_k$, root $√d_k$, group $W^{(h)}$")
    'width d_k, root √d_k, group W^(h)'
    """
    runs(text)
    return text.replace("$", "").replace("{", "").replace("}", "") if "$" in text else text


def to_html(text: str) -> str:
    """Return a label as HTML, with everything in it escaped.

    Examples
    --------
    >>> to_html("$d_k$ < 4")
    '<i>d</i><sub><i>k</i></sub> &lt; 4'
    """
    tags = {-1: "<sub>{}</sub>", 0: "{}", 1: "<sup>{}</sup>"}
    return "".join(
        tags[run.level].format(
            f"<i>{html.escape(run.text)}</i>" if run.italic else html.escape(run.text)
        )
        for run in runs(text)
    )
