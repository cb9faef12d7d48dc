"""What a lab shows in the page, and what it should.

What a lab shows is compared with the picture that its state makes here, character by character.
"""

import importlib
import json
import pkgutil
import re
from typing import Any
from urllib.parse import unquote

from driver import HANDLE, LIMIT, PICTURE, ROOT, Chapter, until
from numbered import without_number
from playwright.sync_api import Locator

from attnbook import labs
from attnbook.labs import engine
from attnbook.labs.engine import Lab
from attnbook.markup import to_plain
from attnbook.picture import to_svg

CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
# What JupyterLab writes where a widget was.
GHOSTS = re.compile("model not found|Error displaying widget|Loading widget|disconnected", re.I)
# Keys on a slider and the place where each leaves it, of n.
MOVES = {"Home": lambda n: 0, "ArrowRight": lambda n: 1, "End": lambda n: n - 1}


def maker(name: str):
    """Return the function of that name in the modules of labs."""
    modules = [f"attnbook.labs.{module.name}" for module in pkgutil.iter_modules(labs.__path__)]
    found = {getattr(importlib.import_module(module), name, None) for module in sorted(modules)}
    (function,) = found - {None}
    return function


def names() -> list[str]:
    """Return the names of all labs that the chapters show, in their order."""
    found = []
    for path in CHAPTERS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for number in lab_cells({"cells": cells}):
            name = re.search(r"(\w+)\(.*\)\s*$", "".join(cells[number]["source"]))[1]
            found += [name] if name not in found else []
    return found


def look(cell: Locator) -> dict[str, Any]:
    """Return source and width of the image in a cell; no width if it cannot be drawn or seen.

    It has room in the output around it.
    """
    return cell.locator(PICTURE).evaluate(
        "i => ({src: i.src, width: i.complete && i.naturalWidth, seen: i.clientWidth,"
        " room: i.parentElement?.clientWidth})"
    )


def svg_of(src: str) -> str:
    """Return the SVG that the source of an image is.

    >>> svg_of("data:image/svg+xml,%3Csvg/%3E")
    '<svg/>'
    """
    return unquote(src.partition(",")[2])


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
        if without_number(svg_of(image["src"])) != svg:
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
        """Wait until the page is what the lab says.

        Cells above it may still take their places and push it out of the view, where JupyterLab
        does not lay it out: so it is brought back each time.
        """
        lab = self.expected()
        svg = to_svg(lab.picture)

        def faults() -> list[str]:
            self._chapter.cell(self.number)
            return self.faults(lab, svg)

        until(lambda: not faults(), LIMIT, lambda: f"{self.name}, {what}: " + "; ".join(faults()))

    def settle(self, i: int) -> None:
        """Focus slider i and wait until it keeps the focus.

        After a long way of scrolling JupyterLab puts cells into the page and takes others out for
        a while, and what it moves loses the focus.
        """
        handle = self.cell.locator(HANDLE).nth(i)

        def kept() -> bool:
            handle.focus()
            self._chapter.page.wait_for_timeout(400)
            return handle.evaluate("h => h === document.activeElement")

        until(kept, LIMIT, lambda: f"{self.name}: slider {i} does not keep the focus")

    def move(self, i: int, key: str) -> None:
        """Press a key on slider i and wait for what it must bring."""
        handle = self.cell.locator(HANDLE).nth(i)
        handle.focus()
        self._chapter.page.keyboard.press(key)
        self.places[i] = MOVES[key](len(self.controls[i].values))
        what = f"{self.controls[i].name} after {key}"
        self.until_right(what)
        assert handle.evaluate("h => h === document.activeElement"), f"focus lost, {what}"

    def go(self, share: float) -> None:
        """Move every slider to a share of its way by keys, and wait for the picture.

        This is the way to a picture, not a test of the keys: they are pressed again if a busy page
        has dropped one.
        """
        for i, control in enumerate(self.controls):
            place = self.places[i] = round(share * (len(control.values) - 1))
            handle = self.cell.locator(HANDLE).nth(i)

            def there(control=control, handle=handle, place=place) -> bool:
                handle.focus()
                back = len(control.values) - 1 - place
                near = ("Home", *["ArrowRight"] * place), ("End", *["ArrowLeft"] * back)
                for key in min(near, key=len):
                    handle.press(key)
                return float(handle.get_attribute("aria-valuenow") or "nan") == place

            until(there, LIMIT, lambda i=i: f"{self.name}: slider {i} does not follow the keys")
        self.until_right(f"at {share:.0%} of the way of every slider")

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
