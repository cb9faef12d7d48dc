"""Every line of the sources that claims something is tested, and each verdict has its place.

data/claims_<source>.csv has one row for each claim; data/claimless_lines.csv lists the lines that
claim nothing: headings, definitions, transitions, and lines of drawings made of characters.
"""

import re
from functools import cache
from pathlib import Path
from urllib.parse import urlparse

import book
import pytest

from attnbook import sources

DATA = Path(__file__).parent / "data"
TEXTS = Path(__file__).parents[2] / "shared" / "sources"
FILES = {
    "D": "D-derivation.txt",
    "E": "E-essentials.txt",
    "M": "M-matrix-views.txt",
    "R": "R-chapter5.txt",
}
KINDS = {"heading", "definition", "transition", "drawing"}
each_source = pytest.mark.parametrize("source", FILES)


def lines_of(row):
    return [int(row["line"]), *map(int, row["also"].split())]


@cache
def text(source):
    if not TEXTS.is_dir():
        pytest.skip("the four source documents are not part of the book: nothing to compare with")
    return (TEXTS / FILES[source]).read_text(encoding="utf-8").split("\n")


@each_source
def test_table_is_tidy(source):
    raw = (DATA / f"claims_{source}.csv").read_bytes()
    assert b"\r" not in raw
    assert raw.endswith(b"\n")
    rows = sources.claims(source)
    assert list(rows[0]) == ["id", "line", "also", "claim", "verdict", "why", "where"]
    order = [tuple(map(int, row["id"][1:].split("-"))) for row in rows]
    assert order == sorted(set(order))
    for row in rows:
        assert None not in row.values(), row
        assert re.fullmatch(rf"{source}{int(row['line']):04d}-[1-9][0-9]*", row["id"]), row
        others = row["also"].split()
        assert len({row["line"], *others}) == 1 + len(others), row


@each_source
def test_every_verdict_is_known_and_has_its_reason(source):
    for row in sources.claims(source):
        assert row["verdict"] in sources.VERDICTS, row
        assert len(row["claim"]) >= 10, row
        if row["verdict"] != "true":
            assert len(row["why"]) >= 10, row


@each_source
def test_texts_are_no_markup(source):
    """A dollar sign or a backslash would be taken for mathematics where the table is shown."""
    for row in sources.claims(source):
        assert not set(row["claim"] + row["why"]) & set("$\\`"), row


@each_source
def test_every_place_is_a_cell(source):
    for row in sources.claims(source):
        assert sources.links(row["where"]), row["id"]
        places = row["where"].split()
        assert len(set(places)) == len(places), row


def test_a_place_that_is_no_cell_is_seen():
    assert sources.links("07:whole")
    for place in ("07:hole", "7:whole", "15:whole", "07", "whole"):
        with pytest.raises(ValueError, match="expected the cell of a chapter"):
            sources.links(place)


@each_source
def test_links_lead_to_known_hosts(source):
    for row in sources.claims(source):
        for address in re.findall(r"\w+://\S+", row["claim"] + " " + row["why"]):
            parts = urlparse(address)
            assert parts.scheme == "https", row
            assert parts.hostname in book.HOSTS, row


@each_source
def test_wrong_numbers_that_a_reason_names_are_listed(source):
    for row in sources.claims(source):
        if "wrong_numbers" in row["why"]:
            named = re.findall(r"[DEMR]\d{4}(?:-\d\d)?", row["why"].split("wrong_numbers")[1])
            assert named, row
            assert all(sources.listed(name) for name in named), row


def test_every_line_with_a_wrong_number_has_a_wrong_sentence():
    for number in sources.read("wrong_numbers.csv"):
        there = [
            row
            for row in sources.claims(number["source"], "wrong")
            if int(number["line"]) in lines_of(row)
        ]
        assert there, number


def test_sections_stand_in_order():
    rows = sources.read("sections.csv")
    assert list(rows[0]) == ["source", "line", "section", "heading"]
    for source in FILES:
        starts = [int(row["line"]) for row in rows if row["source"] == source]
        assert starts[0] == 1
        assert starts == sorted(set(starts))


def test_claimless_lines_stand_in_order():
    rows = sources.read("claimless_lines.csv")
    assert list(rows[0]) == ["source", "line", "kind"]
    order = [(row["source"], int(row["line"])) for row in rows]
    assert order == sorted(set(order))
    assert {row["kind"] for row in rows} == KINDS


@each_source
def test_every_line_of_the_source_is_tested_or_claims_nothing(source):
    tested = {line for row in sources.claims(source) for line in lines_of(row)}
    rows = sources.read("claimless_lines.csv")
    claimless = {int(row["line"]) for row in rows if row["source"] == source}
    filled = {number for number, line in enumerate(text(source), start=1) if line.strip()}
    assert not tested & claimless
    assert tested | claimless == filled


@each_source
def test_headings_are_those_of_the_source(source):
    for row in sources.read("sections.csv"):
        if row["source"] == source and row["heading"]:
            there = text(source)[int(row["line"]) - 1].strip().removeprefix("• ")
            assert there.startswith(row["heading"]), row
