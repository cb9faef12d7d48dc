"""Chapter 91 tells every fault that the tables list, and its links lead somewhere."""

import html
import re
from urllib.parse import urlparse

import book
import pytest
import sympy

from attnbook import sources
from attnbook.sources import Link, Table, page

PATH = book.NOTEBOOKS / "91_sources_and_corrections.ipynb"
SOURCES = "DEMR"
UNFIT = ("wrong", "hypothesis", "damaged")


@pytest.fixture(scope="module")
def chapter():
    return book.load(PATH)


def cell(chapter, name):
    return next(c for c in chapter.cells if c.id == name)


def pieces(chapter, *names):
    """The rows of the HTML tables and lists in the outputs of these cells."""
    return [
        re.sub(r"<(?:td|/td|li|/li)\b[^>]*>| · ", "\t", row)
        for c in book.code(chapter)
        if c.id in names
        for output in c.outputs
        for row in re.findall(
            r"<(?:tr><td|li>).*?</(?:tr|li)>", output.get("data", {}).get("text/html", "")
        )
    ]


def rows_by_id(chapter, *names):
    """Entries of each row without their tags, by the id that stands first."""
    found = {}
    for row in pieces(chapter, *names):
        entries = [html.unescape(re.sub(r"<[^>]*>", "", entry)) for entry in row.split("\t")]
        entries = [entry for entry in entries if entry]
        assert entries[0] not in found, f"{entries[0]} is told twice"
        found[entries[0]] = entries
    return found


def bare(text):
    """A text of the tables as a reader sees it: marks of sub- and superscripts are gone."""
    return re.sub(r"[_^{}]", "", text.replace("https://", ""))


def seen(text):
    return re.sub(r"[_^{}]", "", text)


# ---- what is told -----------------------------------------------------------------------------


def test_every_wrong_number_is_told(chapter):
    tables = [c.id for c in book.code(chapter) if re.fullmatch(r"wrong-.*-table", c.id)]
    told = rows_by_id(chapter, *tables)
    wrong = {row["id"]: row for row in sources.read("wrong_numbers.csv")}
    assert told.keys() == wrong.keys()
    for name, row in wrong.items():
        entries = [seen(entry) for entry in told[name]]
        for key in ("line", "printed", "right_exact", "right_decimal", "why"):
            assert bare(row[key]) in entries, (name, key)
        if chain := row["exact_chain_decimal"]:
            assert chain in entries, name


def test_every_inherited_number_is_told(chapter):
    told = rows_by_id(chapter, "inherited-table")
    assert told.keys() == {row["id"] for row in sources.read("inherited_numbers.csv")}
    for row in sources.read("inherited_numbers.csv"):
        assert {row["printed"], row["exact_chain_decimal"]} <= set(told[row["id"]])


def check_sentences(told, rows):
    assert told.keys() == {row["id"] for row in rows}
    for row in rows:
        entries = [seen(entry) for entry in told[row["id"]]]
        assert bare(row["claim"]) in entries, row["id"]
        assert row["verdict"] in entries, row["id"]
        if row["why"]:
            assert bare(row["why"]) in entries, row["id"]


@pytest.mark.parametrize("source", SOURCES)
def test_every_unfit_sentence_is_told(chapter, source):
    told = rows_by_id(chapter, f"unfit-{source.lower()}-table")
    check_sentences(told, sources.claims(source, *UNFIT))


def test_every_other_sentence_is_told(chapter):
    world = [row for s in SOURCES for row in sources.claims(s, "world")]
    true = [row for s in SOURCES for row in sources.claims(s, "true")]
    check_sentences(rows_by_id(chapter, "world-code"), world)
    check_sentences(rows_by_id(chapter, "remarks-code"), [row for row in true if row["why"]])
    plain = [row for row in true if not row["why"]]
    check_sentences(rows_by_id(chapter, "places-sentences-code"), plain)


@pytest.mark.parametrize("source", SOURCES)
def test_every_item_of_the_ledger_has_its_place(chapter, source):
    told = rows_by_id(chapter, f"places-{source.lower()}-table")
    ledger = [row["id"] for row in sources.read("coverage.csv") if row["source"] == source]
    assert sorted(told) == ledger
    for name in ledger:
        assert sources.treated_in(name), name
        for link in sources.treated_in(name):
            assert link.text in told[name][-1], name


def test_lost_things_are_told(chapter):
    kinds = {"figure", "table", "todo"}
    lost = {row["id"] for row in sources.read("coverage.csv") if row["kind"] in kinds}
    assert rows_by_id(chapter, "lost-code").keys() == lost


def test_counts_of_numbers_are_those_of_the_tables(chapter):
    shown = "".join(book.output_texts(cell(chapter, "numbers-counted-code")))
    for source in SOURCES:
        kinds = [r["kind"] for r in sources.read("printed_numbers.csv") if r["source"] == source]
        late = [r for r in sources.read("inherited_numbers.csv") if r["source"] == source]
        expected = [kinds.count(k) for k in ("label", "given", "derived", "claim")]
        expected += [len(sources.listed(source)), len(late)]
        line = re.search(rf"\[{source}\](.*)", shown)[1]
        assert list(map(int, line.split())) == expected


def test_counts_of_sentences_are_those_of_the_tables(chapter):
    shown = "".join(book.output_texts(cell(chapter, "sentences-counted-code")))
    for source in SOURCES:
        expected = [len(sources.claims(source, verdict)) for verdict in sources.VERDICTS]
        line = re.search(rf"\[{source}\](.*)", shown)[1]
        assert list(map(int, line.split())) == [*expected, sum(expected)]


def test_every_group_of_wrong_numbers_has_a_check(chapter):
    """A code cell before each table computes the numbers again and asserts which are wrong."""
    names = [c.id for c in book.code(chapter)]
    for table in (name for name in names if re.fullmatch(r"wrong-.*-table", name)):
        check = cell(chapter, table.replace("-table", "-code")).source
        assert "assert" in check, table
        assert "listed(" in check or "10**12" in check, table


def test_links_in_outputs_lead_somewhere(chapter):
    targets = [
        html.unescape(target)
        for c in book.code(chapter)
        for output in c.outputs
        for target in re.findall(r'href="([^"]*)"', output.get("data", {}).get("text/html", ""))
    ]
    assert len(targets) > 1000
    for target in set(targets):
        parts = urlparse(target)
        if parts.scheme:
            assert parts.scheme == "https", target
            assert parts.hostname in book.HOSTS, target
        else:
            name, _, cell_id = target.partition("#cell-id=")
            assert cell_id in sources.cells()[name], target


# ---- the tables as such -----------------------------------------------------------------------


def test_a_table_is_html_and_text():
    rows = [["a < b", [Link("there", "x.ipynb#cell-id=y")]], ["q_i^T, 10^{12}, attn_mask", ""]]
    bundle = Table("A & B", ["one", "two"], rows)._repr_mimebundle_()
    assert bundle["text/plain"] == "A & B\none | two\na < b | there\nq_i^T, 10^{12}, attn_mask | "
    shown = bundle["text/html"]
    assert "A &amp; B" in shown
    assert "a &lt; b" in shown
    assert '<a href="x.ipynb#cell-id=y">there</a>' in shown
    assert "q<sub>i</sub><sup>T</sup>, 10<sup>12</sup>, attn_mask" in shown
    assert "<colgroup>" not in shown
    assert (
        "<script" not in shown + page([Table("<script>", ["<script>"], [])]).tables[0].caption[9:]
    )


def test_an_address_becomes_a_link_without_the_full_stop():
    shown = Table("", [""], [["See https://arxiv.org/abs/1706.03762."]])._repr_mimebundle_()
    assert (
        '<a href="https://arxiv.org/abs/1706.03762">arxiv.org/abs/1706.03762</a>.'
        in shown["text/html"]
    )


def test_a_folded_table_is_a_list():
    table = Table("Title", ["id", "x"], [["1", "a"], ["2", ""]], folded=True)
    bundle = page([table, table])._repr_mimebundle_()
    assert bundle["text/html"].count("<summary>Title</summary>") == 2
    assert "<li>1 · a</li>\n<li>2</li>" in bundle["text/html"]
    assert bundle["text/plain"] == "Title (2 rows)\n\nTitle (2 rows)"


def test_wrong_entries_count_along_the_line():
    half = sympy.Rational(1, 8)
    right = [[1, half], [half, 2]]
    assert sources.wrong_entries("M0001", [[1, half], [half, 2]], right, 2) == []
    moved = [[1, half], [half + sympy.Rational(2, 100), 2]]
    assert sources.wrong_entries("M0001", moved, right, 2) == ["M0001-03"]
    assert sources.wrong_entries("M0001", moved, right, 2, first=5) == ["M0001-07"]
    with pytest.raises(ValueError, match=r"equal shapes, got \(2, 2\) and \(1, 2\)"):
        sources.wrong_entries("M0001", right, right[:1], 2)


def test_what_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match=r"expected tests/data/none\.csv in the folder"):
        sources.read("none.csv")
    with pytest.raises(ValueError, match=r"expected verdicts among .*, got \['false'\]"):
        sources.claims("D", "false")


def test_items_belong_to_sections():
    for row in sources.read("coverage.csv"):
        names = [r["section"] for r in sources.read("sections.csv") if r["source"] == row["source"]]
        assert sources.section_of_item(row) in names, row
