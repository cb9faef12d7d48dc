"""Every row of the coverage ledger has its cell, and the cell's outputs show the row's numbers."""

import csv
import re

import book
import ledger
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

CHAPTERS = book.chapter_paths()
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=[p.stem for p in CHAPTERS])


def demanded(values: str) -> list[str]:
    return [demand.text for demand in ledger.demands(values)]


def shows(values: str, *texts: str) -> bool:
    return not ledger.missing(ledger.demands(values), texts)


# ---- the chapters -----------------------------------------------------------------------------


def test_there_are_chapters():
    assert CHAPTERS


@each_chapter
def test_tags_name_rows_of_their_chapter(path):
    assert ledger.tag_problems(book.load(path)) == []


@each_chapter
def test_every_row_of_the_chapter_is_covered(path):
    chapter = book.load(path)
    covered, total = ledger.count(chapter)
    print(f"{path.name}: {covered} of {total} rows covered")
    assert ledger.row_problems(chapter) == []


# ---- the ledger -------------------------------------------------------------------------------


def test_the_ledger_is_whole():
    rows = ledger.rows()
    assert len(rows) == 487
    columns = ["id", "source", "section", "kind", "claim", "values", "chapter"]
    assert list(ledger.Row._fields) == columns
    for row in rows.values():
        assert re.fullmatch(r"[DEMR]\d{3}", row.id)
        assert row.id[0] == row.source
        assert row.chapter in book.TEACHING | {"91"}
        assert row.claim


def audit() -> list[dict[str, str]]:
    """The verdicts of a reader who did not write the cells, in the order of the ledger."""
    with (ledger.DATA / "coverage_audit.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_was_judged_to_be_treated():
    verdicts = audit()
    assert [line["id"] for line in verdicts] == list(ledger.rows())
    assert [line["id"] for line in verdicts if line["verdict"] != "treated"] == []


def test_every_verdict_names_a_cell_that_covers_the_row():
    covering: dict[str, set[str]] = {}
    for path in CHAPTERS:
        for cell in book.load(path).cells:
            for row in cell.metadata.get("covers", []):
                covering.setdefault(row, set()).add(cell.id)
    unnamed = [
        line["id"]
        for line in audit()
        if not covering[line["id"]] & set(re.findall(r"[a-z0-9-]+", line["sentence"]))
    ]
    assert unnamed == []


def test_every_exception_names_a_row_and_a_reason():
    rows = ledger.rows()
    for name, (chapter, reason) in ledger.ELSEWHERE.items():
        assert name in rows
        assert chapter in book.TEACHING | {"00", "90", "91"}
        assert len(reason) >= 20
    for name, line in ledger.overrides().items():
        assert set(line) == {"id", "demanded", "why"}
        assert name in rows
        assert len(line["why"]) >= 20
        assert demanded(line["demanded"]) != demanded(rows[name].values), f"{name} changes nothing"


# ---- which numbers are demanded ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("D009", []),  # sums and subscripts
        ("D015", ["0", "1"]),
        ("D027", ["3", "0", "3/4", "1/4"]),
        ("D028", ["3/4", "2", "0", "1/4", "4", "1.5", "1"]),
        ("D037", ["-1e9"]),
        ("E023", ["64"]),  # from the table of corrections
        ("E026", ["1", "64", "8"]),
        ("E029", ["0", "8", "16", "0.0000001", "0.000335", "0.999665"]),
        ("E034", ["64", "1/8"]),
        ("M026", ["2", "1", "0", "-1", "-2"]),  # R90 is a name
        ("M043", ["2", "3", "1"]),  # sizes
        ("M063", ["100", "10^12", "300", "412", "600", "4102"]),  # ranges
        ("M164", []),  # index ranges
        ("M136", ["50%", "25%", "15%", "10%"]),
        ("R022", []),  # norms and an equation number
        ("R004", []),  # a year
        ("R030", ["-1", "1"]),
        ("R037", []),  # constants of a formula
        ("R080", ["1", "0"]),  # the matrix entries, not the ones in 1/(1+e^c)
        ("R113", []),
        ("R131", ["1", "0", "-1", "0.156399", "-0.156399"]),
        ("R165", ["5", "7", "3", "16", "0", "3,145,728", "1/4"]),  # labels of a list
        ("R168", ["0", ".401112", ".197776", ".802224", "1.197776"]),
        ("R181", []),  # a reference
    ],
)
def test_what_a_row_of_the_ledger_demands(name, expected):
    assert [demand.text for demand in ledger.demanded_of(ledger.rows()[name])] == expected


@pytest.mark.parametrize(
    "values",
    [
        "W_Q1 v1 q_i64 a11b21",
        "sum_{r=1}^{d_k} x_r^2",
        "(5.6)",
        "L441-445",
        "1^T A",
        "H_q-1",
        "x[:3]",
    ],
)
def test_what_is_no_number(values):
    assert demanded(values) == []


# ---- when a number is shown -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("0.665", "0.665"),
        ("0.665", "a = 0.66524"),
        ("0.330238", "0.330"),  # three digits of a longer number
        ("0.330238", "[0.3302, 1]"),
        ("1.0086", "5043/5000"),
        ("0.0000001", "1.1253e-07"),
        ("0.0000001", r"1.1253 \cdot 10^{-7}"),
        ("1/8", "0.125"),
        ("1/8", r"$\frac{1}{8}$"),
        ("1/8", "1 and 8"),
        ("64", "d_k = 64"),
        ("64", "64."),
        ("64", "64.00"),
        ("3,145,728", "3145728"),
        ("1073741824", "1,073,741,824"),
        ("10^12", "1e12"),
        ("10^12", "10**12"),
        ("-0.156399", "−0.156399"),
        ("-1e9", "-1000000000.0"),
        ("50%", "0.5"),
        ("[1,0]", "[[1. 0.]\n [0. 1.]]"),
    ],
)
def test_a_shown_number_is_found(values, text):
    assert shows(values, text)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("0.665", "0.666"),
        ("0.665", "0.7"),  # too coarse
        ("0.335", "0"),
        ("0.0000001", "0.000"),
        ("0.330238", "0.33"),
        ("0.156399", "-0.156399"),
        ("-1", "n-1"),
        ("64", "63.98"),
        ("64", "d64 x_64 0x64 3.64"),
        ("64", "640"),
        ("1/8", "0.13"),
        ("1/8", "1"),
        ("8", "0.8 8.5"),
        ("2, 3", "2"),
    ],
)
def test_a_number_that_is_not_shown_is_missed(values, text):
    assert not shows(values, text)


# ---- a chapter that should fail ---------------------------------------------------------------


def chapter(tmp_path, *covers, texts=("",), number="04"):
    """A notebook whose first cell is text and whose others are code cells with these outputs."""
    cells = [new_markdown_cell("# Text"), *(new_code_cell("1") for _ in texts)]
    for cell, ids in zip(cells, covers, strict=False):
        cell.metadata["covers"] = list(ids)
    for cell, text in zip(cells[1:], texts, strict=True):
        cell.outputs = [new_output("display_data", {"text/html": text})]
    path = tmp_path / f"{number}_x.ipynb"
    return book.Chapter(path, number, new_notebook(cells=cells))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["D999"], "no row"),
        (["D001"], "a row of chapter 03"),
        (["D009", "D009"], "twice"),
        (["D009", "D010", "D011", "D012", "D013", "D014"], "6 rows"),
        ("D009", "no row"),  # a string instead of a list
    ],
)
def test_a_wrong_tag_is_rejected(tmp_path, ids, expected):
    assert ledger.tag_problems(chapter(tmp_path, ["D010"])) == []
    assert expected in " ".join(ledger.tag_problems(chapter(tmp_path, ids)))


def test_a_row_counts_only_where_a_tagged_code_cell_shows_its_numbers(tmp_path):
    softmax, shown = "E028", "<td>0</td><td>1</td><td>2</td>: <b>0.0900</b>, 0.2447, 0.6652"
    assert [p for p in ledger.row_problems(chapter(tmp_path)) if softmax in p and "no cell" in p]

    def problems(*covers, texts):
        return [
            p for p in ledger.row_problems(chapter(tmp_path, *covers, texts=texts)) if softmax in p
        ]

    assert problems([], [softmax], texts=[shown]) == []
    assert "0.665" in problems([], [softmax], texts=[shown.replace("0.6652", "0.6662")])[0]
    assert "0.665" in problems([softmax], [], texts=[shown])[0]  # the tag is on the text
    assert "0.665" in problems([], [softmax], [], texts=["nothing", shown])[0]  # another cell
    assert problems([], [softmax], [softmax], texts=["nothing", shown]) == []
    hidden = "<td style='width: 0.0900em; height: 0.2447em; top: 0.6652em'>0 1 2</td>"
    assert "0.665" in problems([], [softmax], texts=[hidden])[0]  # no reader sees an attribute


def test_a_row_without_numbers_needs_a_cell_of_any_kind(tmp_path):
    assert not [p for p in ledger.row_problems(chapter(tmp_path, ["D010"])) if "D010" in p]
    assert [p for p in ledger.row_problems(chapter(tmp_path, ["D011"])) if "D010" in p]


def test_the_count_adds_up(tmp_path):
    total = sum(row.chapter == "04" for row in ledger.rows().values())
    assert ledger.count(chapter(tmp_path)) == (0, total)
    assert ledger.count(chapter(tmp_path, ["D010", "D011"])) == (2, total)
