"""Chapter 92: the plans fit into their minutes, and what they send a class to is there."""

import re

import book
import pytest
from nbformat import NotebookNode

PLANS = book.load(book.NOTEBOOKS / "92_teaching_plans.ipynb")
CHAPTERS = {c.number: c for c in map(book.load, book.chapter_paths()) if c.number < "90"}
NUMBERS = sorted(book.TEACHING)
each_plan = pytest.mark.parametrize("number", NUMBERS)
LINK = r"\[((?:[^\]\\]|\\.)*)\]\((\d\d)_\w+\.ipynb(?:#\S*?)?\)(?=[^)]|$)"


def part(title: str) -> str:
    """The text of the cell that begins with this H2 heading."""
    found = [c.source for c in book.markdown(PLANS) if re.match(rf"## {title}\b", c.source)]
    assert len(found) == 1, title
    return found[0]


def table(text: str, *header: str) -> list[list[str]]:
    """The rows of the table with this header."""
    found, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        inside = line.startswith("|") and (inside or cells[: len(header)] == list(header))
        if inside and not set(line) <= set("|-: "):
            found.append(cells)
    assert found[0][: len(header)] == list(header)
    return found[1:]


def labs(cells: list[NotebookNode]) -> set[str]:
    """The calls that show a lab, as the plans name them."""
    found = [c.source.strip() for c in cells if c.cell_type == "code" and "lab" in book.tags(c)]
    return {call.removesuffix("()") for call in found}


def section(number: str, title: str) -> list[NotebookNode]:
    """The cells from this heading up to the next one that is not below it."""
    found, depth = [], None
    for cell in CHAPTERS[number].cells:
        for level, text in book.headings(cell):
            if depth is None and text == title:
                depth = level
            elif depth is not None and level <= depth:
                return found
        if depth is not None:
            found.append(cell)
    assert depth is not None, f"{number}: no heading {title!r}"
    return found


def steps(text: str) -> list[list[str]]:
    return table(text, "min", "run", "ask before", "the class sees")


def check_step(row: list[str]) -> None:
    """The section that a row runs exists, and holds the labs that the row names."""
    assert all(row)
    assert len(row) == 4
    links = re.findall(LINK, row[1])
    assert len(links) == 1
    title, number = re.sub(r"\\([\[\]])", r"\1", links[0][0]), links[0][1]
    named = set(re.findall(r"`([^`]*)`", row[1]))
    assert named <= labs(section(number, title))
    assert "?" in row[2] or "." in row[2]


@each_plan
def test_a_plan_takes_fifty_minutes(number):
    rows = steps(part(f"Chapter {number}"))
    assert len(rows) >= 5
    assert sum(int(row[0]) for row in rows) == 50


@each_plan
def test_a_plan_runs_what_is_there(number):
    for row in steps(part(f"Chapter {number}")):
        check_step(row)
        assert re.findall(LINK, row[1])[0][1] == number


@each_plan
def test_every_lab_of_the_chapter_has_its_misconception(number):
    text = part(f"Chapter {number}")
    rows = table(text, "lab", "the misconception", "what refutes it")
    names = [row[0].strip("`") for row in rows]
    assert len(names) == len(set(names))
    assert set(names) == labs(CHAPTERS[number].cells)
    assert all(all(row) and len(row) == 3 for row in rows)


@each_plan
def test_a_plan_says_what_to_leave_out_what_goes_wrong_and_what_is_for_home(number):
    text = part(f"Chapter {number}")
    parts = "**Aim.**", "**Short of time:**", "**Where students go wrong.**", "**At home:**"
    places = [text.index(name) for name in parts]
    assert places == sorted(places)
    exercises = re.findall(rf"\[{int(number)}\.\d+\]\({number}_", text[places[-1] :])
    assert len(exercises) >= 3


def test_the_lecture_takes_ninety_minutes_and_runs_what_is_there():
    rows = steps(part("One lecture"))
    assert sum(int(row[0]) for row in rows) == 90
    for row in rows:
        check_step(row)


def test_the_course_has_every_chapter_and_what_it_needs():
    rows = table(part("A course"), "meeting", "chapter", "the one thing to take home")
    assert [int(row[0]) for row in rows] == list(range(1, 15))
    for row, number in zip(rows, NUMBERS, strict=True):
        assert f"({number}_" in row[1]
        opening = "\n".join(c.source for c in book.markdown(CHAPTERS[number])[:2])
        need = re.search(r"\*\*You need\*\*.*?(?:\n\n|\Z)", opening, re.DOTALL)[0]
        chapters = set(re.findall(r"\((\d\d)_|chapter (\d\d)", need))
        needed = {int(a or b) for a, b in chapters} - {0}
        assert {int(n) for n in re.findall(r"\d+", row[3])} == needed, number


def test_what_is_not_there_is_caught():
    good = ["5", "[1 Softmax in one box](04_scores_and_scaling.ipynb#x)", "What?", "This."]
    check_step(good)
    for place, text in (
        (1, good[1].replace("box", "bag")),
        (1, good[1] + ", `correlation`"),
        (2, "What"),
        (3, ""),
    ):
        with pytest.raises(AssertionError):
            check_step([*good[:place], text, *good[place + 1 :]])
