"""Every lab in JupyterLab: not run, in every window, after a restart.

This takes minutes, so it is done in CI; here: ``CI=true python -m pytest`` with this file. Each lab
leaves screenshots in ``.screenshots``, to be looked at.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import driver
import pytest
from driver import HANDLE, LIMIT, PICTURE, SCREENSHOTS, Book, Chapter, until
from shown import CHAPTERS, GHOSTS, Shown, lab_cells, look

from attnbook import style
from attnbook.labs import engine

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# Widths of windows; the last is what is left of 1280 pixels when the browser magnifies twice.
WINDOWS = {"800": (800, 900), "1280": (1280, 1000), "1920": (1920, 1080), "200%": (640, 500)}
CONTRAST = 4.5
WAY = 80  # pixels that a handle has to move on, or the mouse cannot choose
WORDS = ".jp-RenderedHTML p, .jp-RenderedHTML code, .widget-label, button"
# What stands where in a lab, and in which colours: all of it in one look.
LAB = f"""cell => {{
    const panel = cell.closest(".jp-WindowedPanel-outer").getBoundingClientRect();
    const place = element => {{
        const {{left, right, width, height}} = element.getBoundingClientRect();
        return {{left: left - panel.left, right: panel.right - right, width, height}};
    }};
    const ground = element => {{
        const colour = getComputedStyle(element).backgroundColor;
        return /^rgba.*, 0\\)$|transparent/.test(colour) ? ground(element.parentElement) : colour;
    }};
    const seen = element => {{
        const {{width, height}} = element.getBoundingClientRect();
        const visible = getComputedStyle(element).visibility === "visible";
        return visible && width && height && element.innerText.trim();
    }};
    const handles = [...cell.querySelectorAll("{HANDLE}")].map(handle => {{
        const way = handle.closest(".noUi-target").getBoundingClientRect().width;
        const {{borderTopColor: rim, backgroundColor: fill}} = getComputedStyle(handle);
        const box = ground(handle.closest(".widget-box"));
        return {{place: place(handle), way, rim, fill, ground: box}};
    }});
    const words = [...cell.querySelectorAll("{WORDS}")].filter(seen).map(element => {{
        const ink = getComputedStyle(element).color;
        return {{said: element.innerText, ink, ground: ground(element)}};
    }});
    return {{picture: place(cell.querySelector("{PICTURE}")), handles, words}};
}}"""

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
        chapter.resize(*WINDOWS["200%"])  # what fits there fits elsewhere
        chapter.side_bar(shown=False)
        for number in lab_cells(notebook):
            not_run(chapter, number)
        chapter.resize(*WINDOWS["1280"])
        chapter.run_all()
        labs = [Shown(chapter, number) for number in lab_cells(notebook)]
        for theme, name in THEMES.items():
            chapter.choose_theme(name)
            for window, (width, height) in WINDOWS.items():
                chapter.resize(width, height)
                chapter.side_bar(shown=width >= 1280)  # as chapter 00 advises
                faults = [f for lab in labs for f in faults_in_window(chapter, lab, width)]
                assert faults == [], f"{theme}, {window}"
                if window in ("800", "1280"):
                    for lab in labs:
                        screenshot(chapter, lab, f"{theme}_{window}")
        # A window as JupyterLab opens it, with the file browser beside the notebook.
        chapter.resize(*WINDOWS["800"])
        chapter.side_bar(shown=True)
        seen = [(lab.name, chapter.cell(lab.number).evaluate(LAB)) for lab in labs]
        assert [f for name, one in seen for f in faults_of_sliders(name, one["handles"])] == []
        # High enough for the whole of each lab, which a screenshot would cut off at the window.
        chapter.resize(1280, 1400)
        chapter.side_bar(shown=True)
        for lab in labs:
            chapter.cell(lab.number)
            for share in (0.6, 1):
                lab.go(share)
                screenshot(chapter, lab, f"dark_at_{share:.0%}")
        chapter.choose_theme(THEMES["light"])
        restarted(chapter, labs)
        assert chapter.errors == []


def test_a_copy_of_a_lab_says_that_it_does_not_follow(book):
    path = CHAPTERS[0]
    with book.chapter(path.name) as chapter:
        chapter.run_all()
        (number,) = lab_cells(driver.read(path))
        lab = Shown(chapter, number)
        lab.move(0, "End")
        for key in "cv":
            chapter.command(number, key)
        until(lambda: told(chapter, number + 1)[0], LIMIT, lambda: "there is no copy")
        lab.move(0, "Home")
        until(lambda: told(chapter, number + 1)[1], LIMIT, lambda: "the copy does not say so")
        assert not told(chapter, number)[1]
        chapter.command(number + 1, "Control+Enter")
        until(lambda: not told(chapter, number + 1)[1], LIMIT, lambda: "the copy that was run")
        again = Shown(chapter, number + 1)
        again.move(0, "End")
        chapter.page.wait_for_timeout(2000 * engine.REST)
        assert not told(chapter, number + 1)[1]
        assert not told(chapter, number)[1]
        assert chapter.errors == []


def told(chapter: Chapter, number: int) -> tuple[int, bool]:
    """Return how many handles a cell has and whether it tells that it is a copy."""
    cell = chapter.cell(number)
    return cell.locator(HANDLE).count(), cell.get_by_text(engine.COPY).is_visible()


def not_run(chapter: Chapter, number: int) -> None:
    """Look at a lab of a notebook that was never run: a picture and a sentence, no ghost."""
    cell = chapter.cell(number)
    cell.locator(PICTURE).wait_for()
    image = look(cell)
    assert image["width"], f"cell {number}: the picture cannot be drawn"
    assert image["seen"], f"cell {number}: the picture cannot be seen"
    wide, room = image["seen"], image["room"]
    assert wide <= room, f"cell {number}: {wide - room} pixels of the picture are out of view"
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
    seen = chapter.cell(lab.number).evaluate(LAB)
    found = faults_of_sliders(lab.name, seen["handles"])
    place = seen["picture"]
    if place["left"] < 0 or place["right"] < 0:
        found.append(f"{lab.name}: the picture leaves the window: {place}")
    if place["width"] < min(0.55 * width, lab.expected().picture.width):
        found.append(f"{lab.name}: the picture is {place['width']:.0f} of {width} wide")
    for handle in seen["handles"]:
        ground = over(handle["ground"], style.WHITE)
        marks = [over(handle[part], ground) for part in ("rim", "fill")]
        if max(style.contrast(mark, ground) for mark in marks) < CONTRAST:
            found.append(f"{lab.name}: a handle is {marks} on {ground}")
    for word in seen["words"]:
        ground = over(word["ground"], style.WHITE)
        ink = over(word["ink"], ground)
        if style.contrast(ink, ground) < CONTRAST:
            found.append(f"{lab.name}: {word['said']!r} is {ink} on {ground}")
    if len(seen["handles"]) != len(lab.controls):
        found.append(f"{lab.name}: {len(seen['handles'])} handles")
    # A label for each slider, the button, the two paragraphs of the caption and the code in it.
    if len(seen["words"]) < 4 + len(lab.controls):
        found.append(f"{lab.name}: {len(seen['words'])} texts")
    return found


def faults_of_sliders(name: str, handles: list[dict[str, Any]]) -> list[str]:
    """Return why the mouse cannot reach or move the sliders of a lab in this window."""
    found = []
    for handle in handles:
        place, way = handle["place"], handle["way"]
        if place["left"] < 0 or place["right"] < 0 or not place["height"]:
            found.append(f"{name}: a slider leaves the window: {place}")
        if way < WAY:
            found.append(f"{name}: a handle has {way:.0f} pixels to move on")
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
