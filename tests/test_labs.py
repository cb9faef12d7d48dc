"""Every lab of the book: pure, drawn without a fault at every corner, told in words, used once."""

import ast
import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import get_type_hints

import book
import numpy as np
import pytest
from marks import faint

from attnbook import labs, picture, style
from attnbook.diagrams import apart, mark
from attnbook.labs.engine import Lab
from attnbook.markup import to_plain
from attnbook.picture import Circle, Line, Rect


def makers() -> list[Callable[..., Lab]]:
    """Every public function of a module of ``attnbook.labs`` that is annotated to return a Lab."""
    found = []
    for module in sorted(m.name for m in pkgutil.iter_modules(labs.__path__)):
        part = importlib.import_module(f"attnbook.labs.{module}")
        for name, function in sorted(vars(part).items()):
            here = inspect.isfunction(function) and function.__module__ == part.__name__
            if here and name[0] != "_" and get_type_hints(function).get("return") is Lab:
                found.append(function)
    return found


MAKERS = makers()
each_lab = pytest.mark.parametrize("make", MAKERS, ids=[make.__name__ for make in MAKERS])


def same(a, b) -> bool:
    """Whether two results of ``compute`` are equal, arrays bit for bit."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def has_nan(a) -> bool:
    if isinstance(a, tuple | list):
        return any(map(has_nan, a))
    if isinstance(a, dict):
        return any(map(has_nan, a.values()))
    return bool(np.isnan(a).any()) if isinstance(a, float | np.floating | np.ndarray) else False


def test_the_book_has_labs_and_none_hides():
    assert MAKERS
    modules = {make.__module__.rpartition(".")[2] for make in MAKERS}
    files = {m.name for m in pkgutil.iter_modules(labs.__path__) if m.name != "engine"}
    assert modules == {name for name in files if name[0] != "_"}
    names = [make.__name__ for make in MAKERS]
    assert len(set(names)) == len(names)


@each_lab
def test_every_public_function_of_its_module_says_what_it_returns(make):
    for name, function in vars(inspect.getmodule(make)).items():
        if inspect.isfunction(function) and function.__module__ == make.__module__:
            assert name[0] == "_" or "return" in get_type_hints(function), name


@each_lab
def test_every_state_is_drawn_without_a_fault_and_told_in_words(make):
    lab, pictures = make(), []
    for state, drawn in lab.sweep():
        assert picture.check(drawn) == [], state
        assert len(drawn.alt) >= book.SENTENCE
        for name, control in lab.controls.items():
            told = f"{to_plain(control.label)} = {to_plain(control.format(state[name]))}"
            assert told in lab.caption_text
        pictures.append((state, picture.digest(drawn)))
    for name, control in lab.controls.items():
        assert {state[name] for state, _ in pictures} >= {control.values[0], control.values[-1]}
    assert len(pictures) >= 1 + 2 * len(lab.controls) + 2 ** len(lab.controls)


@pytest.mark.once
@each_lab
def test_marks_stand_out_from_what_they_lie_on(make):
    lab, judged = make(), set()
    for state, drawn in [*lab.sweep(), *every_value(lab)]:
        if picture.digest(drawn) not in judged:
            judged.add(picture.digest(drawn))
            assert faint(drawn) == [], state


def every_value(lab: Lab) -> Iterator[tuple[dict[str, object], picture.Picture]]:
    """Move each control through all its values, with the others where they start."""
    for name, control in lab.controls.items():
        for value in control.values:
            lab.set(**{name: value})
            yield lab.state, lab.picture
        lab.reset()


BAR = Rect(0, 0, 90, 90, style.SCORE)
ACROSS = Line(5, 50, 85, 50, style.INK, 2)
DISC, FRAME = Circle(50, 50, 8, style.WEIGHT), Rect(20, 20, 40, 40, None, style.QUERY, 3)
SQUARE = mark(50, 50, "square", style.WEIGHT)


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([Line(1, 1, 9, 9, "#858c96")], "#858c96 on #fdfdfb"),
        ([Circle(4, 4, 3, "#cda5dd")], "#cda5dd on #fdfdfb"),
        ([BAR, ACROSS], "#1f2328 on #77679c"),
        ([Rect(0, 0, 30, 90, style.SCORE), ACROSS], "#1f2328 on #77679c"),  # a third of its way
        ([BAR, FRAME], "#1368f9 on #77679c"),
        ([BAR, DISC], "#6d0693 on #77679c"),
        ([BAR, SQUARE], "#6d0693 on #77679c"),
        ([mark(50, 50, "square", "#cda5dd")], "#cda5dd on #fdfdfb"),
    ],
)
def test_a_faint_mark_is_seen(items, told):
    (found,) = faint(picture.Picture(100, 100, items, alt="x"))
    assert found.startswith(f"{told}: ")


@pytest.mark.parametrize(
    "items",
    [
        [Line(1, 1, 9, 9, style.GRID), Line(1, 1, 9, 9), Circle(5, 5, 3, style.WHITE, style.INK)],
        [BAR, *apart([ACROSS]), *apart([FRAME]), *apart([DISC])],
        [BAR, *apart([SQUARE])],
        [Rect(18 * j, 9, 18, 18, c) for j, c in enumerate(("#f4ebf7", "#cda5dd"))],  # a heat map
        [BAR, Rect(0, 0, 90, 90, None, style.INK)],  # the card is beside it
        [ACROSS, Line(50, 5, 50, 85, style.KEY, 3)],  # they only cross
        [Line(5, 5, 90, 5, style.INK, 6), Line(50, 1, 50, 9, style.MUTED, 1)],
    ],
)
def test_a_mark_that_stands_out_is_no_fault(items):
    assert faint(picture.Picture(100, 100, items, alt="x")) == []


@each_lab
def test_both_ends_of_every_control_change_the_picture_or_the_words(make):
    first = make()
    shown = picture.digest(first.picture), first._said
    for name, control in first.controls.items():
        for value in {control.values[0], control.values[-1]} - {first.state[name]}:
            lab = make()
            lab.set(**{name: value})
            assert (picture.digest(lab.picture), lab._said) != shown, (name, value)


@each_lab
def test_compute_and_draw_are_pure(make):
    lab = make()
    for state, drawn in lab.sweep():
        given = copy.deepcopy(state)
        arrays, again = lab._compute(**given), lab._compute(**given)
        assert given == state
        assert same(arrays, again)
        assert not has_nan(arrays), state
        kept = copy.deepcopy(arrays)
        assert picture.digest(lab._draw(arrays)) == picture.digest(drawn)
        assert lab._caption(arrays) == lab._caption(again)
        assert same(arrays, kept), f"drawing changed the arrays of {state}"


@each_lab
def test_moving_a_slider_shows_what_the_state_makes(make):
    lab = make()
    for name, control in lab.controls.items():
        for index in (0, len(control.values) - 1):
            lab.sliders[name].index = index
            assert lab.state[name] == control.values[index]
            fresh = make(**lab.state)
            assert picture.digest(fresh.picture) == picture.digest(lab.picture)
            assert fresh.caption_text == lab.caption_text
            assert eval(repr(lab), {make.__name__: make}).state == lab.state
    lab.reset()
    assert picture.digest(lab.picture) == picture.digest(make().picture)


# ---- where they are used -----------------------------------------------------------------------


def calls(cell) -> list[str]:
    """Names of the functions that a code cell calls, `a` and `module.a` alike."""
    functions = [n.func for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.Call)]
    return [f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in functions]


def lab_calls() -> list[tuple[str, str]]:
    """Chapter stem and name of the lab, for every lab shown in a cell tagged ``lab``."""
    names = {make.__name__ for make in MAKERS}
    return [
        (path.stem, name)
        for path in book.chapter_paths()
        for cell in book.code(book.load(path), "lab")
        for name in calls(cell)
        if name in names
    ]


@each_lab
def test_a_lab_is_shown_once_in_the_chapter_of_its_module(make):
    module = make.__module__.rpartition(".")[2]
    shown = [stem for stem, name in lab_calls() if name == make.__name__]
    assert [stem[3:] for stem in shown].count(module) == 1
    # Chapter 00 may show a lab of another chapter as a taste.
    elsewhere = [stem for stem in shown if stem[3:] != module]
    assert len(elsewhere) <= 1
    assert all(stem.startswith("00") for stem in elsewhere)


def test_a_lab_cell_shows_one_lab():
    names = {make.__name__ for make in MAKERS}
    for path in book.chapter_paths():
        chapter = book.load(path)
        for cell in book.code(chapter):
            shown = [name for name in calls(cell) if name in names]
            assert len(shown) == ("lab" in book.tags(cell)), f"{path.name}, {cell.id}"


# ---- the checks can fail -----------------------------------------------------------------------


def test_same_sees_every_difference():
    a = (np.array([1.0, 2.0]), [1, {"x": np.array([3])}])
    assert same(a, copy.deepcopy(a))
    assert not same(a, (np.array([1.0, 2.5]), a[1]))
    assert not same(a, (np.array([1, 2]), a[1]))
    assert not same(a, (a[0], [1, {"x": np.array([4])}]))
    assert not same(a, (a[0], [2, {"x": np.array([3])}]))
    assert has_nan((1, [np.array([0.0, np.nan])]))
    assert has_nan({"x": float("nan")})
    assert not has_nan((1, ["a", np.array([np.inf])]))
