"""Every number printed in the sources has a row, and the wrong ones are exactly those listed.

The rows of data/printed_numbers.csv stand in the order of the text; `column` counts characters
from 0. A number written as a fraction or a short expression is one row.
"""

import csv
import re
import unicodedata
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
import recompute
from recompute import FORMULAS, CanFit, is_right

from attnbook import exact
from attnbook import examples as ex

DATA = Path(__file__).parent / "data"
SOURCES = Path(__file__).parents[2] / "shared" / "sources"
FILES = {
    "D": "D-derivation.txt",
    "E": "E-essentials.txt",
    "M": "M-matrix-views.txt",
    "R": "R-chapter5.txt",
}
KINDS = {
    "label",  # a number that names: sections, equations, indices, exponents, bounds of sums
    "given",  # data, sizes and conditions that the source chooses
    "derived",  # follows from something by a formula
    "claim",  # asserted about the world, not decidable from the text
}
PLACES = re.compile(r"\.([0-9]+)$")
# Chinese words that state a number; plain counts ("two matrices") are rows only where they matter.
WORDS = re.compile(
    "[一二三四五六七八九十]+分之[一二三四五六七八九十]+|一半|减半|两半|四倍|两字节|几万"
)


@cache
def table(name):
    with open(DATA / name, encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def numbers():
    return table("printed_numbers.csv")


def by_id():
    return {row["id"]: row for row in numbers()}


def recomputed():
    return [row for row in numbers() if row["id"] in FORMULAS]


def places(printed):
    """Digits after the point of a printed decimal."""
    match = PLACES.search(printed)
    return len(match[1]) if match else 0


@cache
def verdict(name, chain=False):
    formula = FORMULAS[name]
    return is_right(by_id()[name]["printed"], formula.chain if chain else formula.value)


def decimal(value, printed):
    bound = value.high if isinstance(value, CanFit) else value
    return exact.decimal(bound, places(printed))


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("printed_numbers.csv", "id source line column text printed kind"),
        (
            "wrong_numbers.csv",
            "id source line printed right_exact right_decimal exact_chain_decimal why",
        ),
        ("inherited_numbers.csv", "id source line printed exact_chain_decimal why"),
    ],
)
def test_tables_are_tidy(name, columns):
    raw = (DATA / name).read_bytes()
    assert b"\r" not in raw
    assert raw.endswith(b"\n")
    rows = table(name)
    assert rows
    assert list(rows[0]) == columns.split()
    ids = [row["id"] for row in rows]
    assert ids == sorted(set(ids))
    for row in rows:
        assert None not in row.values()
        assert re.fullmatch(rf"{row['source']}{int(row['line']):04d}-[0-9]{{2}}", row["id"])
        assert row["source"] in FILES


def test_rows_stand_in_the_order_of_the_text():
    seen = [(row["source"], int(row["line"]), int(row["column"])) for row in numbers()]
    assert seen == sorted(set(seen))
    first = {}
    for row in numbers():
        place = row["source"], row["line"]
        first[place] = first.get(place, 0) + 1
        assert int(row["id"][-2:]) == first[place], row


def test_rows_are_complete_and_short():
    for row in numbers():
        assert row["kind"] in KINDS, row
        assert row["printed"] in row["text"], row
        assert len(row["text"]) <= 40, row


def test_every_derived_number_has_a_formula_and_every_formula_a_number():
    derived = {row["id"] for row in numbers() if row["kind"] == "derived"}
    assert not derived - set(FORMULAS), "derived numbers without a formula"
    decidable = {row["id"] for row in numbers() if row["kind"] in {"given", "derived"}}
    assert not set(FORMULAS) - decidable, "formulas for numbers that are not in the table"


def test_given_numbers_are_those_of_the_examples():
    wrong = [row for row in recomputed() if row["kind"] == "given" and not verdict(row["id"])]
    assert not wrong


def test_every_decimal_is_recomputed_or_found_in_the_examples():
    """No decimal point of the sources goes unchecked."""
    unchecked = [
        row
        for row in numbers()
        if "." in row["printed"] and row["kind"] != "label" and row["id"] not in FORMULAS
    ]
    assert not unchecked


def test_wrong_numbers_are_exactly_those_listed(capsys):
    wrong = {row["id"] for row in recomputed() if not verdict(row["id"])}
    listed = {row["id"] for row in table("wrong_numbers.csv")}
    derived = Counter(row["source"] for row in numbers() if row["kind"] == "derived")
    given = Counter(row["source"] for row in recomputed() if row["kind"] == "given")
    with capsys.disabled():
        for source in FILES:
            count = sum(name.startswith(source) for name in wrong)
            print(
                f"\n[{source}] {derived[source]} derived numbers recomputed, {count} wrong; "
                f"{given[source]} givens equal to the examples",
                end="",
            )
    assert not wrong - listed, "wrong, but not in wrong_numbers.csv"
    assert not listed - wrong, "in wrong_numbers.csv, but right"


@pytest.mark.parametrize("row", table("wrong_numbers.csv"), ids=lambda row: row["id"])
def test_listed_corrections_are_right(row):
    number, formula = by_id()[row["id"]], FORMULAS[row["id"]]
    assert {key: row[key] for key in ("source", "line", "printed")} == {
        key: number[key] for key in ("source", "line", "printed")
    }
    value = formula.value
    shown = f"at most {value.high}" if isinstance(value, CanFit) else str(value)
    assert row["right_exact"] == shown
    assert row["right_decimal"] == decimal(value, row["printed"])
    same = formula.chain == value
    assert row["exact_chain_decimal"] == ("" if same else decimal(formula.chain, row["printed"]))
    assert row["why"]


def test_inherited_errors_are_exactly_those_listed():
    """Numbers right on their own line that an exact example would not give: earlier slips."""
    inherited = {
        row["id"]
        for row in recomputed()
        if verdict(row["id"]) and not verdict(row["id"], chain=True)
    }
    assert inherited == {row["id"] for row in table("inherited_numbers.csv")}
    for row in table("inherited_numbers.csv"):
        assert row["printed"] == by_id()[row["id"]]["printed"]
        assert row["line"] == by_id()[row["id"]]["line"]
        assert row["exact_chain_decimal"] == decimal(FORMULAS[row["id"]].chain, row["printed"])
        assert row["why"]


def test_a_changed_number_is_seen():
    """Two units in the last place are always too many."""
    changed = 0
    for row in recomputed():
        printed, value = row["printed"], FORMULAS[row["id"]].value
        if not re.fullmatch(r"-?[0-9]*\.?[0-9]+", printed) or isinstance(value, CanFit):
            continue
        if not verdict(row["id"]):
            continue
        digits = places(printed)
        moved = Fraction(printed) + Fraction(2, 10**digits)
        assert not is_right(exact.decimal(moved, digits), value), row
        changed += 1
    assert changed > 900


def test_words_and_expressions_can_be_read():
    unread = [
        row["printed"]
        for row in recomputed()
        if not re.fullmatch(r"-?[0-9]*\.?[0-9]+|[0-9]{1,3}(,[0-9]{3})+", row["printed"])
        and row["printed"] not in recompute.READ
    ]
    assert not unread


@pytest.mark.parametrize(
    ("first", "matrix"),
    [
        ("E0039-01", ex.E_TWO_POSITIONS.A_printed),
        ("M0445-01", ex.M_SENTENCE.Q_printed),
        ("M0744-13", ((ex.M_SENTENCE.love_prog_score_printed,),)),
        ("M0748-01", ex.M_SENTENCE.scores_printed),
        ("M0764-02", ex.M_SENTENCE.scaled_printed),
        ("M0778-09", ((ex.M_SENTENCE.exp_sum_printed,),)),
        ("M0778-10", (ex.M_SENTENCE.softmax_printed,)),
        ("M0816-01", (ex.M_SENTENCE.out_love_printed,)),
        ("M0820-01", ex.M_SENTENCE.output_printed),
        ("M0966-01", ex.M_SENTENCE.Q_printed_heads),
    ],
)
def test_examples_repeat_what_the_sources_print(first, matrix):
    entries = [entry for row in matrix for entry in row]
    ids = [row["id"] for row in numbers()]
    start = ids.index(first)
    assert [Fraction(row["printed"]) for row in numbers()[start : start + len(entries)]] == entries


def test_exponentials_of_row_love_are_repeated_as_printed():
    printed = [Fraction(by_id()[f"M0778-0{k}"]["printed"]) for k in (2, 4, 6, 8)]
    assert printed == list(ex.M_SENTENCE.exp_printed)


# ---------------------------------------------- against the source documents


@cache
def source_lines(source):
    if not SOURCES.is_dir():
        pytest.skip("the four source documents are not part of the book: nothing to compare with")
    return (SOURCES / FILES[source]).read_text(encoding="utf-8").split("\n")


def owners(source):
    """Map each character that a row claims to the ids of the rows that claim it."""
    claimed = {}
    for row in numbers():
        if row["source"] == source:
            for offset in range(len(row["printed"])):
                place = int(row["line"]), int(row["column"]) + offset
                claimed.setdefault(place, []).append(row["id"])
    return claimed


@pytest.mark.parametrize("source", FILES)
def test_rows_quote_the_source(source):
    lines = source_lines(source)
    for row in numbers():
        if row["source"] == source:
            text = lines[int(row["line"]) - 1]
            assert text.startswith(row["printed"], int(row["column"])), row
            assert row["text"] in text, row
    assert max(map(len, owners(source).values())) == 1, "two rows claim one character"


@pytest.mark.parametrize("source", FILES)
def test_every_digit_of_the_source_is_in_a_row(source):
    claimed = owners(source)
    missed = [
        (number, column, text[max(0, column - 10) : column + 10])
        for number, text in enumerate(source_lines(source), start=1)
        for column, character in enumerate(text)
        if unicodedata.category(character) in {"Nd", "Nl", "No"} and (number, column) not in claimed
    ]
    assert not missed


@pytest.mark.parametrize("source", FILES)
def test_every_numeral_of_the_source_is_one_row(source):
    """A numeral is one row; numerals run together ("0.490.22") are cut before each "d."."""
    claimed, named = owners(source), by_id()
    for number, text in enumerate(source_lines(source), start=1):
        for run in re.finditer(r"[0-9]+(?:\.[0-9]+)*|(?<![0-9A-Za-z])\.[0-9]+", text):
            ids = [claimed[number, column][0] for column in range(*run.span())]
            if run[0].count(".") <= 1:
                assert len(set(ids)) == 1, (source, number, run[0])
            else:
                parts = [named[name]["printed"] for name in dict.fromkeys(ids)]
                assert "".join(parts) == run[0], (source, number)
                assert all(re.fullmatch(r"[0-9]\.[0-9]+", part) for part in parts), parts
                assert len({places(part) for part in parts}) == 1, parts


@pytest.mark.parametrize("source", FILES)
def test_number_words_of_the_source_are_in_rows(source):
    claimed = owners(source)
    for number, text in enumerate(source_lines(source), start=1):
        for word in WORDS.finditer(text):
            assert (number, word.start()) in claimed, (source, number, word[0])
