"""Every chapter in JupyterLab: run, moved by keyboard, put back, saved, and opened again.

What a lab shows is compared with the picture that its state makes here, character by character.
"""

import base64
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import unquote

import driver
import pytest
from driver import HANDLE, LIMIT, PICTURE, ROOT, Book, Chapter, until
from playwright.sync_api import Locator

from attnbook import labs
from attnbook.labs import engine
from attnbook.labs.engine import Lab
from attnbook.markup import to_plain
from attnbook.picture import to_png, to_svg

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
SVG, PNG = "image/svg+xml", "image/png"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# What JupyterLab writes where a widget was.
GHOSTS = re.compile("model not found|Error displaying widget|Loading widget|disconnected", re.I)
# Keys on a slider and the place where each leaves it, of n.
MOVES = {"Home": lambda n: 0, "ArrowRight": lambda n: 1, "End": lambda n: n - 1}

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def book(browser, tmp_path_factory) -> Iterator[Book]:
    with driver.opened_book(browser, tmp_path_factory.mktemp("book")) as opened:
        yield opened


def maker(name: str):
    """Return the function of that name in the modules of labs."""
    modules = [f"attnbook.labs.{module.name}" for module in pkgutil.iter_modules(labs.__path__)]
    found = {getattr(importlib.import_module(module), name, None) for module in sorted(modules)}
    (function,) = found - {None}
    return function


def look(cell: Locator) -> dict[str, Any]:
    """Return source and width of the image in a cell; no width if it cannot be drawn or seen."""
    return cell.locator(PICTURE).evaluate(
        "i => ({src: i.src, width: i.complete && i.naturalWidth, seen: i.clientWidth})"
    )


class Shown:
    """A lab in the page: what can be seen of it, and what should be."""

    def __init__(self, chapter: Chapter, number: int):
        self.number, self._chapter = number, chapter
        self.cell: Locator = chapter.cell(number)
        self.cell.locator(PICTURE).wait_for()
        code = until(self._code, LIMIT, lambda: f"no caption in cell {number}")
        self.name = code[1]
        self.places = [int(float(h.get_attribute("aria-valuenow"))) for h in self._handles()]
        self._make = maker(self.name)
        self.controls = list(self._make().controls.values())
        assert len(self.places) == len(self.controls), f"sliders of {self.name}"
        self.start = list(self.places)
        self.first: tuple[str, str] | None = None  # picture and caption

    def _handles(self) -> list[Locator]:
        return self.cell.locator(HANDLE).all()

    def caption(self) -> str:
        return self.cell.locator(".jp-RenderedHTML").last.inner_text()

    def _code(self) -> re.Match | None:
        captions = self.cell.locator(".jp-RenderedHTML").all_inner_texts()
        return re.search(r"(\w+)\(.*\)$", captions[-1]) if captions else None

    def image(self) -> dict[str, Any]:
        return look(self.cell)

    def expected(self) -> Lab:
        """Return the lab that the places of the sliders make."""
        return self._make(
            **{c.name: c.values[i] for c, i in zip(self.controls, self.places, strict=True)}
        )

    def faults(self, lab: Lab, svg: str) -> list[str]:
        """Return where the page is not what a lab and its picture say."""
        image, caption = self.image(), self.caption()
        found = []
        if unquote(image["src"].partition(",")[2]) != svg:
            found.append(f"the picture is not that of {lab!r}")
        if image["width"] != lab.picture.width or not image["seen"]:
            found.append(f"the picture cannot be seen: {image['width']}, {image['seen']}")
        for control, place in zip(self.controls, self.places, strict=True):
            told = f"{to_plain(control.label)} = {to_plain(control.format(control.values[place]))}"
            if _letters(told) not in _letters(caption):
                found.append(f"the caption does not say {told!r}: {caption!r}")
        if not caption.endswith(repr(lab)):
            found.append(f"the caption does not end with {lab!r}: {caption!r}")
        return found

    def until_right(self, what: str) -> None:
        lab = self.expected()
        faults = partial(self.faults, lab, to_svg(lab.picture))
        until(lambda: not faults(), LIMIT, lambda: f"{self.name}, {what}: " + "; ".join(faults()))

    def move(self, i: int, key: str) -> None:
        """Press a key on slider i and wait for what it must bring."""
        handle = self.cell.locator(HANDLE).nth(i)
        handle.focus()
        self._chapter.page.keyboard.press(key)
        self.places[i] = MOVES[key](len(self.controls[i].values))
        what = f"{self.controls[i].name} after {key}"
        self.until_right(what)
        assert handle.evaluate("h => h === document.activeElement"), f"focus lost, {what}"

    def reset(self) -> None:
        self.cell.get_by_role("button", name=engine.RESET).focus()
        self._chapter.page.keyboard.press("Enter")
        self.places = list(self.start)


def _letters(text: str) -> str:
    """Return a text as the page and plain text agree on it: indices lose their marks there."""
    return re.sub(r"[\s_^{}]", "", text)


def lab_cells(notebook: dict[str, Any]) -> list[int]:
    return [
        number
        for number, cell in enumerate(notebook["cells"])
        if "lab" in cell["metadata"].get("tags", [])
    ]


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
    assert unquote(image["src"].partition(",")[2]) == svg
    assert image["width"]
    assert image["seen"]
    said = cell.inner_text()
    assert engine.RUN_ME in said
    assert not GHOSTS.search(said), said
    assert cell.locator(HANDLE).count() == 0
