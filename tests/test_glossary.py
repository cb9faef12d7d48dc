"""Chapter 90 is true of the book: its letters, terms and equation numbers stand where it says."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import book
import pytest

GLOSSARY = book.load(book.NOTEBOOKS / "90_notation_and_glossary.ipynb")
CHAPTERS = {p.name: book.load(p) for p in book.chapter_paths() if p.name[:2] in book.TEACHING}


class Row(NamedTuple):
    """A row of a table: its cells, and the names of the chapters that it links, in order."""

    cells: list[str]
    links: list[str]


def rows(*titles: str) -> Iterator[Row]:
    """The rows of the tables whose header begins with these column titles."""
    for cell in book.markdown(GLOSSARY):
        table = None
        for line in cell.source.splitlines():
            if not line.startswith("|"):
                table = None
                continue
            cells = [text.strip() for text in line.strip("|").split("|")]
            if table is None:
                table = cells
            elif table[: len(titles)] == list(titles) and not set(line) <= set("|-: "):
                yield Row(cells, re.findall(r"\]\((\d\d_\w+\.ipynb)", line))


def squeezed(text: str) -> str:
    r"""Mathematics without spaces and thin spaces."""
    return re.sub(r"\\[,;!:]|\s", "", text)


def formulas(chapter: book.Chapter) -> list[str]:
    return [span for cell in book.markdown(chapter) for span in book.formulas(cell.source)[0]]


def has_letter(chapter: book.Chapter, letter: str) -> bool:
    """Whether a formula of the chapter has this letter, as a letter of its own."""
    before = "" if letter.startswith("\\") else r"(?<![\\A-Za-z])"
    pattern = before + re.escape(letter) + r"(?![A-Za-z])"
    return any(
        re.search(pattern, re.sub(r"\\(text|rm) *\{[^}]*\}", "", x)) for x in formulas(chapter)
    )


def all_text(chapter: book.Chapter) -> str:
    return "\n".join(cell.source for cell in book.markdown(chapter))


# ---- letters ----------------------------------------------------------------------------------


LETTERS = list(rows("symbol", "name", "中文"))


def test_the_tables_of_letters_are_there():
    assert len(LETTERS) >= 60
    symbols = [x for row in LETTERS for x in row.cells[0].split(", ")]
    assert len(set(symbols)) == len(symbols)


@pytest.mark.parametrize("row", LETTERS, ids=lambda row: row.cells[0])
def test_each_symbol_occurs_in_the_chapter_that_its_row_links(row):
    assert len(row.links) == 1
    chapter = CHAPTERS[row.links[0]]
    text = squeezed(" ".join(formulas(chapter)))
    for symbol in re.findall(r"\$([^$]*)\$", row.cells[0]):
        if re.fullmatch(r"[A-Za-z]|\\[a-z]+", symbol):
            assert has_letter(chapter, symbol), symbol
        else:
            assert squeezed(symbol) in text, symbol


CODE = "\n".join(cell.source for chapter in CHAPTERS.values() for cell in book.code(chapter))
MODULES = "\n".join(p.read_text("utf-8") for p in sorted((book.ROOT / "attnbook").glob("*.py")))


@pytest.mark.parametrize("row", LETTERS, ids=lambda row: row.cells[0])
def test_each_name_in_code_is_used_in_code(row):
    column = -2
    for name in re.findall(r"`([^`]*)`", row.cells[column]):
        pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
        assert re.search(pattern, CODE + MODULES), name


def test_each_other_meaning_of_a_letter_is_found_where_its_row_says():
    others = [*rows("letter", "in most places"), *rows("Greek letter", "in most places")]
    assert len(others) >= 40
    found = []
    for row in others:
        letter = row.cells[0].strip("$")
        for name in row.links:
            if not has_letter(CHAPTERS[name], letter):
                found.append(f"{letter} in {name}")
    assert found == []


def test_a_letter_that_is_not_there_is_not_found():
    chapter = CHAPTERS["04_scores_and_scaling.ipynb"]
    assert has_letter(chapter, "s")
    assert has_letter(chapter, r"\gamma")
    assert not has_letter(chapter, "r")
    assert not has_letter(chapter, r"\theta")


# ---- terms ------------------------------------------------------------------------------------


TERMS = list(rows("term", "中文", "in one line"))


def test_sixty_eight_terms_in_alphabetical_order_each_defined_once():
    names = [row.cells[0] for row in TERMS]
    assert len(names) == 68
    assert names == sorted(names, key=str.lower)
    assert len({row.cells[2] for row in TERMS}) == 68
    assert all(len(row.cells) == 4 and all(row.cells) for row in TERMS)


def test_each_chinese_term_occurs_in_a_chapter_that_its_row_links():
    absent = {}
    for row in TERMS:
        assert row.links, row.cells[0]
        for term in row.cells[1].split("、"):
            texts = [all_text(CHAPTERS[name]) for name in row.links]
            if not any(term in text for text in texts):
                absent[term] = row.links[0][:2]
    assert absent == {}


# ---- equations --------------------------------------------------------------------------------


EQUATIONS = list(rows("R", "subject", "here"))


def test_every_equation_of_the_source_has_a_row():
    assert [row.cells[0] for row in EQUATIONS] == [f"5.{n}" for n in range(1, 42)]


@pytest.mark.parametrize("row", EQUATIONS, ids=lambda row: row.cells[0])
def test_the_equations_of_the_book_that_a_row_names_exist(row):
    by_number = {int(name[:2]): chapter for name, chapter in CHAPTERS.items()}
    linked = {int(name[:2]) for name in row.links}
    assert linked
    named = re.findall(r"\((\d+)\.(\d+)\)", row.cells[2])
    for chapter, number in named:
        assert int(chapter) in linked
        assert f"{chapter}.{number}" in book.equation_numbers(by_number[int(chapter)])


@pytest.mark.parametrize("row", EQUATIONS, ids=lambda row: row.cells[0])
def test_a_chapter_that_a_row_links_cites_the_equation(row):
    number = int(row.cells[0][2:])
    cited = False
    for name in row.links:
        text = all_text(CHAPTERS[name])
        source = r"\bR\]? " if name.startswith("05") else r""  # 05 has equations (5.n) of its own
        cited |= bool(re.search(rf"{source}\(5\.{number}\)", text))
        cited |= bool(re.search(rf"R \(5\.\d+, 5\.{number}\)", text.replace("), (", ", ")))
        ranges = re.findall(r"R \(5\.(\d+)\)-\(5\.(\d+)\)", text)
        cited |= any(int(first) <= number <= int(last) for first, last in ranges)
    assert cited
