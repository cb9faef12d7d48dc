"""Every chapter in JupyterLab: run, moved by keyboard, put back, saved, and opened again.

What a lab shows is compared with the picture that its state makes here, character by character.
"""

import base64
from collections.abc import Iterator
from typing import Any

import driver
import pytest
from driver import HANDLE, LIMIT, PICTURE, Book, Chapter, until
from shown import CHAPTERS, GHOSTS, MOVES, Shown, lab_cells, look, svg_of

from attnbook.labs import engine
from attnbook.labs.engine import Lab
from attnbook.picture import to_png, to_svg

SVG, PNG = "image/svg+xml", "image/png"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# On a busy machine JupyterLab now and then drops a key or a click; a fault of ours comes twice.
pytestmark = [pytest.mark.browser, pytest.mark.flaky(reruns=1)]


@pytest.fixture(scope="module")
def book(browser, tmp_path_factory) -> Iterator[Book]:
    with driver.opened_book(browser, tmp_path_factory.mktemp("book")) as opened:
        yield opened


def on_disk(cell: dict[str, Any], lab: Lab, png: bytes) -> list[str]:
    """Return what is wrong with the saved outputs of a lab whose picture has this PNG."""
    data = [output.get("data", {}) for output in cell["outputs"]]
    texts = ["".join(one.get("text/plain", "")) for one in data]
    found = [f"a widget view in output {i}" for i, one in enumerate(data) if WIDGET_VIEW in one]
    if texts != [engine.RUN_ME, lab.picture.alt, lab.caption_text]:
        found.append(f"{lab!r}: the texts are {texts}")
    pngs = [one[PNG] for one in data if PNG in one]
    if [base64.b64decode("".join(one)) for one in pngs] != [png]:
        found.append(f"{lab!r}: {len(pngs)} PNG, not the one of this state")
    if ["".join(one[SVG]) for one in data if SVG in one] != [to_svg(lab.picture)]:
        found.append(f"{lab!r}: not the SVG of this state")
    return found


def test_there_are_labs_to_look_at():
    assert [path for path in CHAPTERS if lab_cells(driver.read(path))]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter(book, path):
    with book.chapter(path.name) as chapter:
        chapter.run_all()
        notebook = chapter.save()
        assert driver.errors(notebook) == []
        every = [moved_to_all_ends(chapter, number) for number in lab_cells(notebook)]
        saved_whole(chapter, every)
        assert len(chapter.saved()["cells"]) == len(notebook["cells"])  # no key made one
        moved = {shown.number: to_svg(shown.expected().picture) for shown in every}
        for shown in every:
            reset(chapter, shown)
        # The server reports an error if a lab sends its still to a page that has just been closed.
        chapter.page.wait_for_timeout(3000 * engine.REST)
        assert chapter.errors == []
    with book.chapter(path.name) as chapter:
        for number, svg in moved.items():
            reopened(chapter, number, svg)
        assert chapter.errors == []


def moved_to_all_ends(chapter: Chapter, number: int) -> Shown:
    """Move every slider of a lab to both ends; leave all at the last one."""
    shown = Shown(chapter, number)
    shown.until_right("after Run All")
    shown.first = shown.image()["src"], shown.caption()
    for i in range(len(shown.controls)):
        for key in MOVES:
            shown.move(i, key)
    return shown


def saved_whole(chapter: Chapter, every: list[Shown]) -> None:
    """Save, again until every lab has come to rest, which brings its PNG back."""
    moved = [(shown.number, shown.expected()) for shown in every]
    expected = [(number, lab, to_png(lab.picture)) for number, lab in moved]

    def faults() -> list[str]:
        saved = chapter.save()
        cells = saved["cells"]
        found = [f for number, lab, png in expected for f in on_disk(cells[number], lab, png)]
        return found + ["widget state in the metadata"] * ("widgets" in saved["metadata"])

    until(lambda: not faults(), LIMIT, lambda: f"{chapter.path.name} as saved: {faults()}")


def reset(chapter: Chapter, shown: Shown) -> None:
    """Put a lab back with its button; it must show what it showed at first."""
    chapter.cell(shown.number)
    shown.reset()
    shown.until_right("after the reset")
    assert (shown.image()["src"], shown.caption()) == shown.first


def reopened(chapter: Chapter, number: int, svg: str) -> None:
    """Look at a lab of a notebook that was opened and not run."""
    cell = chapter.cell(number)
    cell.locator(PICTURE).wait_for()
    image = look(cell)
    assert svg_of(image["src"]) == svg
    assert image["width"]
    assert image["seen"]
    said = cell.inner_text()
    assert engine.RUN_ME in said
    assert not GHOSTS.search(said), said
    assert cell.locator(HANDLE).count() == 0
