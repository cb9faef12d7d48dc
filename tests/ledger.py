r"""The coverage ledger: which rows a chapter must cover, and which numbers its outputs must show.

``tests/data/coverage.csv`` lists every teachable item of the sources with the chapter it belongs
to. A cell says what it treats in ``cell.metadata["covers"]``. A row whose ``values`` have numbers
is covered only if a covering *code* cell shows them in its outputs.

Which numerals of ``values`` are demanded

* integers, decimals, powers of numbers (``10^12``), percentages and fractions: ``1/4`` is shown by
  a 1/4, by 0.25, or by a 1 and a 4;
* not: parts of names and sub- and superscripts (``W_Q1``, ``v1``, ``sum_{r=1}^{d_k}``, ``1^T``),
  constants of a formula (the 1 in ``a(1-a)``, ``1/S``, ``1[j=r]``), index ranges (``W[:, :3]``),
  equation numbers ``(5.6)``, line numbers ``L443``, years after a name, labels of a list
  (``; 2: ...``);
* where that is not what should be asked (a source's wrong value, a number that is only an
  allusion), ``tests/data/coverage_values.csv`` says what is asked instead, and why.

Run as a program (``python tests/ledger.py [chapter]``) it prints what is asked and what is missing.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

import book

DATA = Path(__file__).resolve().parent / "data"
MOST_IDS = 5

# Rows treated in another chapter than the ledger says: id -> (chapter, reason).
ELSEWHERE: dict[str, tuple[str, str]] = {}


class Row(NamedTuple):
    """One line of the ledger."""

    id: str
    source: str
    section: str
    kind: str
    claim: str
    values: str
    chapter: str


class Numeral(NamedTuple):
    """A number as printed: its value, the unit of its last digit (0 if exact), its digits."""

    value: Fraction
    unit: Fraction = Fraction(0)
    digits: int = 0


class Demand(NamedTuple):
    """A number to be shown, and the ways to show it: numerals that must all be there."""

    text: str
    ways: tuple[tuple[Numeral, ...], ...]


@cache
def rows() -> dict[str, Row]:
    """The ledger by id, every row in the chapter where the book treats it."""
    with (DATA / "coverage.csv").open(encoding="utf-8", newline="") as file:
        found = [Row(**line) for line in csv.DictReader(file)]
    return {r.id: r._replace(chapter=ELSEWHERE.get(r.id, [r.chapter])[0]) for r in found}


@cache
def overrides() -> dict[str, dict[str, str]]:
    """What is demanded instead of the numbers of a row's values, by id."""
    with (DATA / "coverage_values.csv").open(encoding="utf-8", newline="") as file:
        return {line["id"]: line for line in csv.DictReader(file)}


# ---- numbers ----------------------------------------------------------------------------------

NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?"


def numeral(text: str) -> Numeral:
    """Read one printed number.

    >>> numeral("-0.090")
    Numeral(value=Fraction(-9, 100), unit=Fraction(1, 1000), digits=2)
    """
    text = text.replace(",", "")
    mantissa, _, exponent = text.lower().partition("e")
    scale = Fraction(10) ** int(exponent or 0)
    decimals = len(mantissa.partition(".")[2])
    unit = scale / 10**decimals if decimals or exponent else Fraction(0)
    digits = len(re.sub(r"[-.]", "", mantissa).lstrip("0"))
    return Numeral(Fraction(mantissa) * scale, unit, digits)


def agree(demanded: Numeral, shown: Numeral) -> bool:
    """Whether two numerals agree within half a unit of the last digit of the coarser one.

    Integers and fractions are exact. A rounded number must show three significant digits, or as
    many as are demanded.
    """
    if demanded.value == shown.value:
        return True
    if shown.unit and shown.digits < min(3, demanded.digits or 3):
        return False
    return abs(demanded.value - shown.value) <= max(demanded.unit, shown.unit) / 2


def demands(values: str) -> list[Demand]:
    """The numbers that a row with these values asks for, in order, each once."""
    text = values.replace("−", "-").replace("≈", "=")
    for pattern, replacement in (
        (r"\(\d+\.\d+\)(?=\s*(?:$|[;,]))|\(5\.\d+\)", " "),  # equation numbers
        (r"\bL\d+(?:-\d+)?", " "),  # line numbers
        (r"(?<=[a-z.] )(?:19|20)\d\d\b", " "),  # years after a name
        (r"(?:^|(?<=; ))\d+: ", " "),  # labels
        (r"\[[^][]*:[^][]*\]", " "),  # index ranges
        (r"(?<![\w.])\d+\^[A-Za-z]", " "),  # a vector of ones
        (r"[_^]\{[^{}]*\}", "'"),  # sub- and superscripts
        (r"_\w+", "'"),
        (r"(?<![\d.])\^[-\w.]+|(?<=\d)\^[A-Za-z]\w*", "'"),
        (r"(?<=\d)x(?=\d)", " x "),  # sizes
        (r"\.{2,}", " ; "),  # ranges
    ):
        text = re.sub(pattern, replacement, text)
    found: dict[str, Demand] = {}
    pattern = (
        rf"(?<![\w.])(?P<sign>(?<![\w')\]\"])-)?(?P<a>(?=\.?\d){NUMBER})"
        r"(?:(?P<op>[/^])(?P<b>\d+))?(?P<percent>%?)(?![\w'])"
    )
    for match in re.finditer(pattern, text):
        sign, a, op, b, percent = match.group("sign", "a", "op", "b", "percent")
        before, after = text[: match.start()], text[match.end() :]
        whole = "." not in a and "e" not in a and not percent
        if whole and (
            re.match(r"\s?[-+]\s?[A-Za-z(]|/\s?[A-Za-z([]|\[", after)
            or re.search(r"[A-Za-z')]\s?[-+]\s?$", before)
        ):
            continue  # a constant of a formula
        one = numeral((sign or "") + a)
        if op == "/":
            other = numeral(b)
            ways = ((one, other),)
            if other.value:
                ways = ((Numeral(one.value / other.value),), *ways)
        elif op == "^":
            ways = ((Numeral(one.value ** int(b)),), (one, numeral(b)))
        elif percent:
            ways = ((one,), (one._replace(value=one.value / 100, unit=one.unit / 100),))
        else:
            ways = ((one,),)
        found.setdefault(match[0], Demand(match[0], ways))
    return list(found.values())


def numerals(texts: Iterable[str]) -> set[Numeral]:
    """Every number in what a reader reads: decimals, fractions, powers, with or without commas."""
    found: set[Numeral] = set()
    plain = r"(?<![A-Za-z0-9_.])((?<![\w)\]])-)?((?=\.?\d)" + NUMBER + ")"
    for raw in texts:
        text = raw.replace("−", "-").replace("{,}", ",").replace("\\,", "")
        for pattern, replacement in (
            (r"\\[td]?frac\{(-?\d+)\}\{(\d+)\}", r" \1/\2 "),
            (r"\s*(?:\\cdot|\\times|×|·|\*)\s*10(?:\^|\*\*)\{?(-?\d+)\}?", r"e\1"),
        ):
            text = re.sub(pattern, replacement, text)
        for match in re.finditer(plain, text):
            sign, digits = match[1] or "", match[2]
            found.add(numeral(sign + digits))
            rest = text[match.end() :]
            fraction = re.match(r"/(\d+)(?![\d.])", rest)
            if fraction and int(fraction[1]):
                found.add(Numeral(numeral(sign + digits).value / int(fraction[1])))
            if power := re.match(r"(?:\^|\*\*)\{?(\d{1,3})\b", rest):
                found.add(Numeral(numeral(digits).value ** int(power[1])))
    return found


def missing(demanded: Iterable[Demand], texts: Iterable[str]) -> list[str]:
    """Those of the demanded numbers that the texts do not show."""
    shown = numerals(texts)
    return [
        demand.text
        for demand in demanded
        if not any(
            all(any(agree(part, other) for other in shown) for part in way) for way in demand.ways
        )
    ]


def demanded_of(row: Row) -> list[Demand]:
    """What a row demands, after the corrections in ``coverage_values.csv``."""
    if row.id in (table := overrides()):
        return demands(table[row.id]["demanded"])
    return [] if row.kind == "reference" else demands(row.values)


# ---- chapters ---------------------------------------------------------------------------------


def tag_problems(chapter: book.Chapter) -> list[str]:
    """Unknown ids, ids of other chapters, ids given twice, and more than five ids on a cell."""
    ledger, found = rows(), []
    for cell in chapter.cells:
        ids = cell.metadata.get("covers", [])
        if len(ids) > MOST_IDS:
            found.append(f"{cell.id}: covers {len(ids)} rows, at most {MOST_IDS}")
        if len(set(ids)) < len(ids):
            found.append(f"{cell.id}: covers a row twice: {ids}")
        for name in ids:
            if name not in ledger:
                found.append(f"{cell.id}: covers {name!r}, which is no row of coverage.csv")
            elif ledger[name].chapter != chapter.number:
                found.append(f"{cell.id}: covers {name}, a row of chapter {ledger[name].chapter}")
    return found


def row_problems(chapter: book.Chapter) -> list[str]:
    """The rows of a chapter that no cell covers, or whose numbers no covering code cell shows."""
    found = []
    for row in rows().values():
        if row.chapter != chapter.number:
            continue
        cells = [c for c in chapter.cells if row.id in c.metadata.get("covers", [])]
        if not cells:
            found.append(f"{row.id}: no cell covers it: {row.claim}")
            continue
        texts = [t for c in cells if c.cell_type == "code" for t in book.output_texts(c)]
        if absent := missing(demanded_of(row), texts):
            found.append(f"{row.id}: no covering code cell shows {', '.join(absent)}")
    return found


def count(chapter: book.Chapter) -> tuple[int, int]:
    """How many rows of a chapter are covered, and how many it has."""
    total = sum(row.chapter == chapter.number for row in rows().values())
    return total - len(row_problems(chapter)), total


def main(wanted: list[str]) -> None:
    """Print what each chapter is asked for, and what is missing."""
    chapters = {chapter.number: chapter for chapter in map(book.load, book.chapter_paths())}
    for number in sorted({row.chapter for row in rows().values()}):
        if wanted and number not in wanted:
            continue
        for row in rows().values() if wanted else ():
            if row.chapter == number:
                print(row.id, [demand.text for demand in demanded_of(row)], "|", row.values)
        if number in chapters:
            print("chapter {}: {} of {} rows".format(number, *count(chapters[number])))
            print(*tag_problems(chapters[number]), *row_problems(chapters[number]), sep="\n  ")
        else:
            print(f"chapter {number}: not there yet")


if __name__ == "__main__":
    main(sys.argv[1:])
