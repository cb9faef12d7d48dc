"""Every lab away from JupyterLab: as a web page, on paper, and its two renderers side by side."""

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
from PIL import Image
from playwright.sync_api import Browser, Page
from shown import CHAPTERS, GHOSTS, lab_cells, maker, names

from attnbook import style
from attnbook.labs import engine
from attnbook.markup import runs
from attnbook.picture import Circle, Line, Picture, Rect, Text, _box, to_png, to_svg

PAPER = 717  # pixels across a page of A4, as Chromium prints it
STANDS_ALONE = "no image, an empty one, or one without its sentence"
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
BLOCK = 20  # pixels of a side, over which the two may differ by where a font puts its strokes
INK = 0.07, 5000  # a share, and two dots of five pixels: the edge of the card is a few pixels off

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        os.environ.get("CI", "").lower() not in ("true", "1"),
        reason=f"minutes of looking, done in CI; here: CI=true python -m pytest {__file__}",
    ),
]


@pytest.fixture(scope="module")
def chromium(browser) -> Iterator[Browser]:
    with driver.launched(browser) as launched:
        yield launched


# ---- as a web page, and on paper ---------------------------------------------------------------


@pytest.fixture
def page(chromium) -> Iterator[Page]:
    with driver.blank_page(chromium) as page:
        yield page


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_lab_as_a_web_page_and_on_paper(page, path, tmp_path):
    body, _ = nbconvert.HTMLExporter().from_filename(str(path))
    file = tmp_path / f"{path.stem}.html"
    file.write_text(body, encoding="utf-8")
    page.goto(file.as_uri(), wait_until="domcontentloaded")
    cells = page.locator(".jp-Cell").all()
    notebook = driver.read(path)
    assert len(cells) == len(notebook["cells"])
    pictures = []
    page.emulate_media(media="print")  # the look that the PDF has, and its width
    page.set_viewport_size({"width": PAPER, "height": 1000})
    for number in lab_cells(notebook):
        said, images = cells[number].inner_text(), cells[number].locator("img, svg").all()
        assert len(images) == 1, f"{path.stem}, cell {number}: {STANDS_ALONE}"
        box, room = images[0].bounding_box(), images[0].locator("..").bounding_box()
        assert box["width"] > 300, f"{path.stem}, cell {number}: {STANDS_ALONE}"
        right, edge = box["x"] + box["width"], room["x"] + room["width"]
        assert right < edge + 1, (
            f"{path.stem}, cell {number}: {right - edge:.0f} pixels are cut off"
        )
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
def canvas(chromium) -> Iterator[Page]:
    with driver.blank_page(chromium) as page:
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
