"""Every lab wherever it may be met: unrun, in every window, on paper, after a restart.

This takes minutes, so it is done in CI; here: ``CI=true python -m pytest`` with this file. Each lab
leaves screenshots in ``.screenshots``, to be looked at.
"""

import io
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import driver
import nbconvert
import numpy as np
import pypdf
import pytest
from driver import HANDLE, LIMIT, PICTURE, SCREENSHOTS, Book, Chapter, until
from PIL import Image
from playwright.sync_api import Page
from shown import CHAPTERS, GHOSTS, Shown, lab_cells, look, maker, names

from attnbook import style
from attnbook.labs import engine
from attnbook.markup import runs
from attnbook.picture import Circle, Line, Picture, Rect, Text, _box, to_png, to_svg

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# Widths of windows; the last is what is left of 1280 pixels when the browser magnifies twice.
WINDOWS = {"800": (800, 900), "1280": (1280, 1000), "1920": (1920, 1080), "200%": (640, 500)}
CONTRAST = 4.5
STANDS_ALONE = "no image, an empty one, or one without its sentence"
COLOURS = """element => {
    let ground = element;
    while (ground && getComputedStyle(ground).backgroundColor.match(/, 0\\)|transparent/))
        ground = ground.parentElement;
    return [getComputedStyle(element).color, getComputedStyle(ground).backgroundColor];
}"""
HANDLE_COLOURS = """handle => {
    let ground = handle.closest(".widget-box");
    while (ground && getComputedStyle(ground).backgroundColor.match(/, 0\\)|transparent/))
        ground = ground.parentElement;
    const {borderTopColor, backgroundColor} = getComputedStyle(handle);
    return [borderTopColor, backgroundColor, getComputedStyle(ground).backgroundColor];
}"""
PLACE = """element => {
    const panel = element.closest(".jp-WindowedPanel-outer").getBoundingClientRect();
    const {left, right, width, height} = element.getBoundingClientRect();
    return {left: left - panel.left, right: panel.right - right, width, height};
}"""
# The middle of each text; what Chromium calls its box is as high as the line, not as the ink.
TEXTS = """svg => {
    document.body.innerHTML = svg;
    const card = document.querySelector("svg").getBoundingClientRect();
    return [...document.querySelectorAll("text")].map(text => {
        const {left, right, top, bottom} = text.getBoundingClientRect();
        const [x, y] = [(left + right) / 2 - card.left, (top + bottom) / 2 - card.top];
        return {text: text.textContent, x, y};
    });
}"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.flaky(reruns=1),  # see test_labs_in_browser
    pytest.mark.skipif(
        os.environ.get("CI", "").lower() not in ("true", "1"),
        reason=f"minutes of looking, done in CI; here: CI=true python -m pytest {__file__}",
    ),
]
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def book(browser, tmp_path_factory) -> Iterator[Book]:
    with driver.opened_book(browser, tmp_path_factory.mktemp("book")) as opened:
        yield opened


@each_chapter
def test_every_lab_in_every_window(book, path):
    notebook = driver.read(path)
    with book.chapter(path.name) as chapter:
        for number in lab_cells(notebook):
            not_run(chapter, number)
        chapter.run_all()
        labs = [Shown(chapter, number) for number in lab_cells(notebook)]
        for theme, name in THEMES.items():
            chapter.choose_theme(name)
            for window, (width, height) in WINDOWS.items():
                chapter.page.set_viewport_size({"width": width, "height": height})
                chapter.side_bar(shown=width >= 1280)  # as chapter 00 advises
                faults = [f for lab in labs for f in faults_in_window(chapter, lab, width)]
                assert faults == [], f"{theme}, {window}"
                if window in ("800", "1280"):
                    for lab in labs:
                        screenshot(chapter, lab, f"{theme}_{window}")
        # High enough for the whole of each lab, which a screenshot would cut off at the window.
        chapter.page.set_viewport_size({"width": 1280, "height": 1400})
        chapter.side_bar(shown=True)
        for lab in labs:
            chapter.cell(lab.number)
            for share in (0.6, 1):
                lab.go(share)
                screenshot(chapter, lab, f"dark_at_{share:.0%}")
        chapter.choose_theme(THEMES["light"])
        restarted(chapter, labs)
        assert chapter.errors == []


def not_run(chapter: Chapter, number: int) -> None:
    """Look at a lab of a notebook that was never run: a picture and a sentence, no ghost."""
    cell = chapter.cell(number)
    cell.locator(PICTURE).wait_for()
    image = look(cell)
    assert image["width"], f"cell {number}: the picture cannot be drawn"
    assert image["seen"], f"cell {number}: the picture cannot be seen"
    # JupyterLab may hide the cell for a moment while those above it take their places.
    until(
        lambda: engine.RUN_ME in chapter.cell(number).inner_text(),
        LIMIT,
        lambda: f"cell {number} says {cell.inner_text()!r}",
    )
    said = cell.inner_text()
    assert not GHOSTS.search(said), said


def faults_in_window(chapter: Chapter, lab: Shown, width: int) -> list[str]:
    """Return what a reader of this window cannot see or read of a lab."""
    cell = chapter.cell(lab.number)
    found = []
    place = cell.locator(PICTURE).evaluate(PLACE)
    if place["left"] < 0 or place["right"] < 0:
        found.append(f"{lab.name}: the picture leaves the window: {place}")
    if place["width"] < min(0.55 * width, lab.expected().picture.width):
        found.append(f"{lab.name}: the picture is {place['width']:.0f} of {width} wide")
    for handle in cell.locator(HANDLE).all():
        place = handle.evaluate(PLACE)
        if place["left"] < 0 or place["right"] < 0 or not place["height"]:
            found.append(f"{lab.name}: a slider leaves the window: {place}")
        rim, fill, ground = handle.evaluate(HANDLE_COLOURS)
        ground = over(ground, style.WHITE)
        if max(style.contrast(over(mark, ground), ground) for mark in (rim, fill)) < CONTRAST:
            found.append(f"{lab.name}: a handle is {fill} with a rim {rim} on {ground}")
    words = cell.locator(".jp-RenderedHTML p, .jp-RenderedHTML code, .widget-label, button")
    judged = 0
    for element in words.all():
        if element.is_visible() and element.inner_text().strip():
            judged += 1
            ink, ground = element.evaluate(COLOURS)
            ground = over(ground, style.WHITE)
            ink = over(ink, ground)
            if style.contrast(ink, ground) < CONTRAST:
                found.append(f"{lab.name}: {element.inner_text()!r} is {ink} on {ground}")
    if judged < 3 + len(lab.controls):  # labels, the button, the caption and its code
        found.append(f"{lab.name}: {judged} texts")
    return found


def over(colour: str, ground: str) -> str:
    """Return what "rgba(1, 2, 3, 0.5)", or "rgb(1, 2, 3)", is on a ground "#rrggbb"."""
    red, green, blue, *alpha = map(float, re.findall(r"[\d.]+", colour))
    plain = "#" + "".join(f"{int(channel):02x}" for channel in (red, green, blue))
    return style.shade((ground, plain), *alpha or [1])


def screenshot(chapter: Chapter, lab: Shown, name: str) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    cell = chapter.cell(lab.number)
    # At once: the image is another one as soon as the still is drawn.
    cell.locator(PICTURE).evaluate("image => image.scrollIntoView({block: 'nearest'})")
    cell.screenshot(path=SCREENSHOTS / f"{chapter.path.stem[:2]}_{lab.name}_{name}.png")


def restarted(chapter: Chapter, labs: list[Shown]) -> None:
    """Restart the kernel under open labs: pictures stay, and running again restores the labs."""
    before = []
    for lab in labs:
        chapter.cell(lab.number)
        before.append(lab.image()["src"])
    chapter.restart()
    for lab, src in zip(labs, before, strict=True):
        cell = chapter.cell(lab.number)
        image = lab.image()
        assert image["src"] == src, f"{lab.name}: another picture after the restart"
        assert image["seen"], f"{lab.name}: no picture after the restart"
        stale = cell.get_by_text(engine.STALE)
        until(stale.is_visible, LIMIT, lambda name=lab.name: f"{name}: {engine.STALE!r} is missing")
    chapter.run_all()
    for lab in labs:
        again = Shown(chapter, lab.number)
        again.until_right("after the kernel was restarted and the page run again")
        assert not chapter.cell(lab.number).get_by_text(engine.STALE).is_visible()


# ---- away from JupyterLab ----------------------------------------------------------------------


@pytest.fixture
def page(book):
    with book.blank_page() as page:
        yield page


@each_chapter
def test_every_lab_as_a_web_page_and_on_paper(page, path, tmp_path):
    body, _ = nbconvert.HTMLExporter().from_filename(str(path))
    file = tmp_path / f"{path.stem}.html"
    file.write_text(body, encoding="utf-8")
    page.goto(file.as_uri(), wait_until="domcontentloaded")
    cells = page.locator(".jp-Cell").all()
    notebook = driver.read(path)
    assert len(cells) == len(notebook["cells"])
    pictures = []
    page.emulate_media(media="print")  # the look that the PDF has
    for number in lab_cells(notebook):
        said, images = cells[number].inner_text(), cells[number].locator("img, svg").all()
        assert len(images) == 1, f"{path.stem}, cell {number}: {STANDS_ALONE}"
        box = images[0].bounding_box()
        assert box["width"] > 300, f"{path.stem}, cell {number}: {STANDS_ALONE}"
        assert box["height"] > 100, f"{path.stem}, cell {number}: {STANDS_ALONE}"
        assert engine.RUN_ME in said, f"{path.stem}, cell {number}: {STANDS_ALONE}"
        assert engine.AS_CODE in said, f"{path.stem}, cell {number}: {STANDS_ALONE}"
        assert not GHOSTS.search(said), said
        pictures.append(images[0].screenshot())
    assert all(np.ptp(grey(picture)) > 100 for picture in pictures), "an empty box"

    pdf = pypdf.PdfReader(io.BytesIO(page.pdf(format="A4")))
    text = "".join(re.sub(r"\s", "", sheet.extract_text()) for sheet in pdf.pages)
    assert text.count(re.sub(r"\s", "", engine.RUN_ME)) == len(pictures)
    assert text.count(re.sub(r"\s", "", engine.AS_CODE)) == len(pictures)
    assert not GHOSTS.search(text)


# ---- the two renderers -------------------------------------------------------------------------


def makers() -> list:
    found = [maker(name) for name in names()]
    return [pytest.param(make, id=make.__name__) for make in found]


@pytest.fixture(scope="module")
def canvas(book):
    with book.blank_page() as page:
        yield page


@pytest.mark.parametrize("make", makers())
def test_the_svg_and_the_png_of_a_lab_agree(canvas, make):
    lab = make()
    start = lab.picture
    lab.set(**{name: control.values[-1] for name, control in lab.controls.items()})
    for picture in (start, lab.picture):
        assert texts_elsewhere(page_texts(canvas, picture), picture) == []
        apart = np.abs(rasterised(canvas, picture) - blurred(to_png(picture, 1)))
        assert apart.max() < 40, f"{lab!r}: {np.argwhere(apart >= 40)[:5] * BLOCK}"


@pytest.mark.parametrize("make", makers())
def test_no_kind_of_mark_is_missing_from_svg_or_png(canvas, make):
    drawn = make().picture
    for kind in sorted({type(item) for item in drawn.items}, key=lambda kind: kind.__name__):
        items = [item for item in drawn.items if isinstance(item, kind)]
        assert ink_apart(canvas, replace(drawn, items=items)) < 0, kind


def ink_apart(page: Page, picture: Picture) -> float:
    """Return by how much the ink of SVG and PNG differs beyond what two rasterisers may."""
    empty = replace(picture, items=[])
    svg = ink(screenshot_of(page, picture)) - ink(screenshot_of(page, empty))
    png = ink(to_png(picture, 1)) - ink(to_png(empty, 1))
    return abs(svg - png) - INK[0] * max(svg, png) - INK[1]


def ink(png: bytes) -> float:
    return float((255 - grey(png)).sum())


def page_texts(page: Page, picture: Picture) -> list[dict[str, Any]]:
    """Return the words and the middle of each text that a browser makes of the SVG."""
    return page.evaluate(TEXTS, to_svg(picture))


def texts_elsewhere(shown: list[dict[str, Any]], picture: Picture) -> list[str]:
    """Return the texts that are shown elsewhere than the PNG has them, or otherwise."""
    found = []
    items = [item for item in picture.items if isinstance(item, Text)]
    for item, there in zip(items, shown, strict=True):
        if there["text"] != "".join(run.text for run in runs(item.text)):
            found.append(f"{item.text!r} reads {there['text']!r}")
        box, upright = _box(item), item.rotate % 180 == 90
        # Along the line the middle of the ink; across it the middle of the capitals, which is the
        # place that the item names.
        if upright:
            along, across = there["y"] - (box.y0 + box.y1) / 2, there["x"] - item.x
        else:
            along, across = there["x"] - (box.x0 + box.x1) / 2, there["y"] - item.y
        if abs(along) > 3 + 0.05 * max(box.width, box.height) or abs(across) > 0.4 * item.size:
            found.append(f"{item.text!r} is {along:.1f} along and {across:.1f} across away")
    return found


BLOCK = 20  # pixels of a side, over which the two may differ by where a font puts its strokes


INK = 0.07, 5000  # a share, and two dots of five pixels: the edge of the card is a few pixels off


def rasterised(page: Page, picture: Picture) -> np.ndarray:
    return blurred(screenshot_of(page, picture))


def screenshot_of(page: Page, picture: Picture) -> bytes:
    page.set_content(f"<style>body {{ margin: 0 }}</style>{to_svg(picture)}")
    return page.locator("svg").screenshot()


def blurred(png: bytes) -> np.ndarray:
    values = grey(png)
    height, width = (length // BLOCK * BLOCK for length in values.shape)
    blocks = values[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    return blocks.mean((1, 3))


def grey(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("L"), float)


def test_a_shifted_mark_or_word_is_seen(canvas):
    def picture(x: float) -> Picture:
        return Picture(200, 100, [Rect(x, 20, 60, 60, "#000000"), Text(100, 50, "word")], alt="x")

    apart = np.abs(rasterised(canvas, picture(20)) - blurred(to_png(picture(30), 1)))
    assert apart.max() > 60

    line, dot = Line(10, 50, 190, 50), Circle(150, 50, 6, style.INK)
    assert ink_apart(canvas, Picture(200, 100, [line, dot], alt="x")) < 0
    for one, other in (
        (line, Line(10, 50, 190, 50, stroke_width=3)),
        (dot, dot._replace(radius=8)),
    ):
        svg, png = (ink(screenshot_of(canvas, Picture(200, 100, [i], "x"))) for i in (one, other))
        assert abs(svg - png) > INK[0] * png + INK[1]
    moved = Picture(200, 100, [Text(110, 50, "word")], alt="x")
    here = page_texts(canvas, moved)
    assert texts_elsewhere(here, Picture(200, 100, [Text(100, 50, "word")], alt="x"))
    assert texts_elsewhere(here, Picture(200, 100, [Text(110, 50, "work")], alt="x"))
    assert texts_elsewhere(here, moved) == []
