r"""What was found in the four sources, as tables for chapter 91.

The findings are data: ``tests/data/*.csv`` of the book's folder, one row for each number, each
tested sentence and each item of the sources. Places in the book are written ``"07:whole"``, the
cell ``whole`` of chapter 07; which cells treat an item of the ledger stands in the chapters.
"""

import csv
import html
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from attnbook import exact

BOOK = Path(__file__).resolve().parents[1]
VERDICTS = ("true", "hypothesis", "wrong", "damaged", "world")

_CELL = "text-align:left;vertical-align:top"
_WORDS = re.compile(
    r"(?P<link>https://[^\s,;]*[^\s,;.)])"
    r"|(?P<mark>(?<=[\w)\]])\^|(?<=\b[A-Za-z])_)(?P<script>\{[^{}]*\}|-?[A-Za-z0-9]+)"
)


class Link(NamedTuple):
    """A text to follow, and where it leads."""

    text: str
    target: str


Entry = str | Sequence[Link]


class Table(NamedTuple):
    """A table that a notebook shows as HTML and as plain text; ``widths`` are percentages.

    A folded one is opened by the reader, and shows its rows as a list.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    widths: Sequence[int] = ()
    folded: bool = False

    def _repr_mimebundle_(self, include=None, exclude=None):
        return page([self])._repr_mimebundle_()


class Page(NamedTuple):
    """Tables that a notebook shows below each other."""

    tables: Sequence[Table]

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {
            "text/html": "\n".join(_html(table) for table in self.tables),
            "text/plain": "\n\n".join(_plain(table) for table in self.tables),
        }


def page(tables: Iterable[Table]) -> Page:
    """Put tables below each other.

    Parameters
    ----------
    tables : iterable of Table

    Returns
    -------
    Page

    Examples
    --------
    >>> len(page([Table("Empty", ["a"], [])]).tables)
    1
    """
    return Page(tuple(tables))


@cache
def read(name: str) -> tuple[dict[str, str], ...]:
    """Read one file of findings.

    Parameters
    ----------
    name : str
        A file in ``tests/data`` of the book's folder, such as ``"wrong_numbers.csv"``.

    Returns
    -------
    tuple of dict
        The rows, by column.

    Raises
    ------
    FileNotFoundError
        If the file is not there.

    Examples
    --------
    >>> read("wrong_numbers.csv")[0]["id"]
    'M0410-04'
    """
    path = BOOK / "tests" / "data" / name
    if not path.is_file():
        raise FileNotFoundError(
            f"expected tests/data/{name} in the folder of the book, beside attnbook/, and found "
            "none: install the book from its folder with `pip install -r requirements.txt`"
        )
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def claims(source: str, *verdicts: str) -> list[dict[str, str]]:
    """Return the tested sentences of one source, in the order of its text.

    Parameters
    ----------
    source : str
        ``"D"``, ``"E"``, ``"M"`` or ``"R"``.
    *verdicts : str
        Only sentences with one of these verdicts; all if there is none.

    Returns
    -------
    list of dict
        The rows of ``claims_<source>.csv``.

    Raises
    ------
    ValueError
        If a verdict is unknown.

    Examples
    --------
    >>> claims("D", "damaged")[0]["line"]
    '41'
    """
    if unknown := sorted(set(verdicts) - set(VERDICTS)):
        raise ValueError(f"expected verdicts among {VERDICTS}, got {unknown}")
    wanted = verdicts or VERDICTS
    return [row for row in read(f"claims_{source}.csv") if row["verdict"] in wanted]


def section(source: str, line: int) -> str:
    """Return the section of a source in which a line stands.

    Parameters
    ----------
    source : str
        ``"D"``, ``"E"``, ``"M"`` or ``"R"``.
    line : int
        Counted from 1 in the plain text, empty lines included.

    Returns
    -------
    str

    Examples
    --------
    >>> section("R", 66)
    '5.2'
    """
    starts = [row for row in read("sections.csv") if row["source"] == source]
    return [row["section"] for row in starts if int(row["line"]) <= line][-1]


@cache
def cells() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the cells of all chapters, with the ledger rows that each of them treats.

    Returns
    -------
    dict
        File name of the chapter -> id of the cell -> ids of rows of ``coverage.csv``.

    Examples
    --------
    >>> "R024" in cells()["04_scores_and_scaling.ipynb"]["variance"]
    True
    """
    found = {}
    for path in sorted((BOOK / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        found[path.name] = {
            cell["id"]: tuple(cell["metadata"].get("covers", ())) for cell in notebook["cells"]
        }
    return found


def links(where: str) -> tuple[Link, ...]:
    """Turn places in the book into links.

    Parameters
    ----------
    where : str
        Cells such as ``"07:whole 05:read"``.

    Returns
    -------
    tuple of Link

    Raises
    ------
    ValueError
        If a cell does not exist.

    Examples
    --------
    >>> links("07:whole")[0].target
    '07_one_head_end_to_end.ipynb#cell-id=whole'
    """
    found = []
    for place in where.split():
        number, _, cell = place.partition(":")
        files = [name for name in cells() if name.startswith(f"{number}_")]
        if not files or cell not in cells()[files[0]]:
            raise ValueError(f"expected the cell of a chapter, such as '07:whole', got {place!r}")
        found.append(Link(f"{number}\u00a0{cell}", f"{files[0]}#cell-id={cell}"))
    return tuple(found)


def treated_in(name: str) -> tuple[Link, ...]:
    """Return links to the cells that treat one item of the ledger.

    Parameters
    ----------
    name : str
        The id of a row of ``coverage.csv``.

    Returns
    -------
    tuple of Link

    Examples
    --------
    >>> "04\u00a0variance" in [link.text for link in treated_in("R024")]
    True
    """
    return tuple(
        link
        for file, there in cells().items()
        for cell, ids in there.items()
        if name in ids
        for link in links(f"{file[:2]}:{cell}")
    )


def listed(*ids: str) -> list[str]:
    """Return the ids of the wrong numbers that begin with one of these.

    Parameters
    ----------
    *ids : str
        Beginnings such as ``"M0445"``: the source and the line.

    Returns
    -------
    list of str

    Examples
    --------
    >>> listed("M0744", "M0764")
    ['M0744-13', 'M0764-17']
    """
    return [row["id"] for row in read("wrong_numbers.csv") if row["id"].startswith(ids)]


def wrong_entries(
    place: str, printed: exact.Matrix, right: exact.Matrix, digits: int, first: int = 1
) -> list[str]:
    """Return the ids of the entries of a printed matrix that are not the exact ones rounded.

    Parameters
    ----------
    place : str
        The source and the line, such as ``"M0445"``.
    printed, right : matrix (n, d)
        What the line prints, row by row, and the exact values.
    digits : int
        Digits after the point in print; half a unit of the last one is allowed.
    first : int
        Which number of the line the first entry is.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If the two shapes differ.

    Examples
    --------
    >>> wrong_entries("M0001", [[1, 2]], [[1, 3]], digits=0, first=5)
    ['M0001-06']
    """
    printed, right = exact.matrix(printed), exact.matrix(right)
    if printed.shape != right.shape:
        raise ValueError(f"expected equal shapes, got {printed.shape} and {right.shape}")
    return [
        f"{place}-{k:02d}"
        for k, (x, y) in enumerate(zip(printed, right, strict=True), start=first)
        if not exact.agrees(exact.decimal(x, digits), y)
    ]


def wrong_numbers(caption: str, *ids: str) -> Table:
    """Show the wrong numbers whose ids begin with one of these.

    Parameters
    ----------
    caption : str
    *ids : str
        Beginnings such as ``"M0445"``: the source and the line.

    Returns
    -------
    Table

    Examples
    --------
    >>> len(wrong_numbers("Q", "M0445").rows)
    21
    """
    rows = [row for row in read("wrong_numbers.csv") if row["id"].startswith(ids)]
    places = dict.fromkeys(section(row["source"], int(row["line"])) for row in rows)
    names = {
        "id": ("id", 11),
        "line": ("line", 8),
        "printed": ("printed", 10),
        "right_exact": ("exact", 14),
        "right_decimal": ("decimal", 10),
        "exact_chain_decimal": ("exact chain", 12),
        "why": ("what happened", 35),
    }
    shown = [key for key in names if any(row[key] for row in rows)]
    return Table(
        f"{caption} ({'; '.join(places)})",
        [names[key][0] for key in shown],
        [[row[key] for key in shown] for row in rows],
        [names[key][1] for key in shown],
    )


def sentences(caption: str, rows: Iterable[dict[str, str]], folded: bool = False) -> Table:
    """Show tested sentences with what was found and where the book treats it.

    Parameters
    ----------
    caption : str
    rows : iterable of dict
        As `claims` returns them.
    folded : bool
        Whether the reader has to open the table.

    Returns
    -------
    Table

    Examples
    --------
    >>> len(sentences("Damaged", claims("D", "damaged")).rows)
    2
    """
    shown = [
        [
            row["id"],
            _place(row["id"][0], row["line"], row["also"]),
            row["claim"],
            row["verdict"],
            row["why"],
            links(row["where"]),
        ]
        for row in rows
    ]
    columns = ["id", "where", "what it says", "verdict", "what was found", "in the book"]
    return Table(caption, columns, shown, (9, 13, 24, 11, 27, 16), folded)


def items(source: str) -> list[Table]:
    """Show, section by section, where the book treats each item of one source.

    Parameters
    ----------
    source : str
        ``"D"``, ``"E"``, ``"M"`` or ``"R"``.

    Returns
    -------
    list of Table
        One for each section that has items, in the order of the text.

    Examples
    --------
    >>> items("D")[1].caption
    '[D] section 1, lines 4-9: 6 items, chapters 03, 10'
    """
    ledger = [row for row in read("coverage.csv") if row["source"] == source]
    starts = [row for row in read("sections.csv") if row["source"] == source]
    ends = [f"-{int(row['line']) - 1}" for row in starts[1:]] + [" to the end"]
    found = []
    for start, end in zip(starts, ends, strict=True):
        rows = [row for row in ledger if section_of_item(row) == start["section"]]
        if rows:
            name = start["section"]
            if start["heading"] not in ("", name):
                name += f" ({start['heading']})"
            read_in = sorted({link.text[:2] for row in rows for link in treated_in(row["id"])})
            caption = (
                f"[{source}] {name}, lines {start['line']}{end}: "
                f"{_several(len(rows), 'item')}, {_several(read_in, 'chapter')}"
            )
            found.append(ledger_rows(caption, rows, folded=True))
    return found


def _several(what: int | list[str], noun: str) -> str:
    """Return how many, or which, with the noun in its right number.

    >>> _several(1, "item"), _several(["03", "10"], "chapter")
    ('1 item', 'chapters 03, 10')
    """
    if isinstance(what, int):
        return f"{what} {noun}" + "s" * (what != 1)
    return noun + "s" * (len(what) != 1) + " " + ", ".join(what)


def ledger_rows(caption: str, rows: Iterable[dict[str, str]], folded: bool = False) -> Table:
    """Show items of the ledger with the cells that treat them.

    Parameters
    ----------
    caption : str
    rows : iterable of dict
        Rows of ``coverage.csv``.
    folded : bool
        Whether the reader has to open the table.

    Returns
    -------
    Table

    Examples
    --------
    >>> ledger_rows("The first item", read("coverage.csv")[:1]).rows[0][0]
    'D001'
    """
    shown = [
        [
            row["id"],
            f"[{row['source']}] {row['section']}",
            row["kind"],
            row["claim"],
            treated_in(row["id"]),
        ]
        for row in rows
    ]
    columns = ["id", "where", "kind", "item", "in the book"]
    return Table(caption, columns, shown, (6, 16, 10, 42, 26), folded)


def section_of_item(row: dict[str, str]) -> str:
    """Return the section of a source to which an item of the ledger belongs.

    Parameters
    ----------
    row : dict
        A row of ``coverage.csv``.

    Returns
    -------
    str
        A section of ``sections.csv``.

    Examples
    --------
    >>> section_of_item({"source": "R", "section": "5.2 eq 5.4 (L52-54)"})
    '5.2'
    """
    if line := re.search(r"\(.*?L(\d+)", row["section"]):
        return section(row["source"], int(line[1]))
    if number := re.match(r"§(\d+(?:\.\d+)?)", row["section"]):
        return f"section {number[1]}"
    return section(row["source"], 1)


def _place(source: str, line: str, also: str = "") -> str:
    lines = ", ".join(sorted({line, *also.split()}, key=int))
    return f"line{'s' if also else ''} {lines} ({section(source, int(line))})"


def _text(entry: Entry) -> str:
    return entry if isinstance(entry, str) else ", ".join(link.text for link in entry)


def _plain(table: Table) -> str:
    if table.folded:
        return f"{table.caption} ({len(table.rows)} rows)"
    lines = [" | ".join(map(_text, row)) for row in (table.columns, *table.rows)]
    return "\n".join([table.caption, *lines]).replace("\u00a0", " ")


def _html(table: Table) -> str:
    if table.folded:
        return _folded(table)
    columns = "".join(f'<col style="width:{width}%">' for width in table.widths)
    head = "".join(
        f'<th scope="col" style="{_CELL}">{html.escape(name)}</th>' for name in table.columns
    )
    rows = "\n".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_marked(x)}</td>' for x in row) + "</tr>"
        for row in table.rows
    )
    layout = "width:100%;table-layout:fixed;overflow-wrap:anywhere;" if table.widths else ""
    return (
        f'<table style="{layout}border-collapse:collapse">'
        f'<caption style="text-align:left"><b>{html.escape(table.caption)}</b></caption>'
        f"{columns}<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    )


def _folded(table: Table) -> str:
    rows = "\n".join(
        f"<li>{' · '.join(_marked(entry) for entry in row if entry)}</li>" for row in table.rows
    )
    summary = f"<summary>{html.escape(table.caption)}</summary>"
    return f"<details>{summary}<ul>\n{rows}\n</ul></details>"


def _marked(entry: Entry) -> str:
    """Escape an entry and mark its links, subscripts and superscripts."""
    if not isinstance(entry, str):
        return ", ".join(_anchor(link.text, link.target) for link in entry)
    end, parts = 0, []
    for match in _WORDS.finditer(entry):
        parts.append(html.escape(entry[end : match.start()]))
        if address := match["link"]:
            parts.append(_anchor(address.removeprefix("https://"), address))
        else:
            tag = "sup" if match["mark"] == "^" else "sub"
            parts.append(f"<{tag}>{html.escape(match['script'].strip('{}'))}</{tag}>")
        end = match.end()
    return "".join([*parts, html.escape(entry[end:])])


def _anchor(text: str, target: str) -> str:
    return f'<a href="{html.escape(target)}">{html.escape(text)}</a>'
