"""The lab engine with real widgets: without a kernel, and in one."""

import asyncio
import base64
import gc
import itertools
import json
import re
import threading
import time
import weakref
from contextlib import contextmanager
from xml.etree import ElementTree

import ipywidgets
import nbformat
import pytest
from nbclient import NotebookClient

from attnbook import diagrams
from attnbook.labs import engine
from attnbook.labs.engine import Lab, Slider
from attnbook.picture import Picture, check, to_png, to_svg

CONTROLS = (
    Slider("d_k", "width $d_k$", (1, 4, 16, 64), start=4),
    Slider("tau", "temperature $τ$", (0.5, 1.0, 2.0), start=1.0, format="{:.1f} units".format),
    Slider("scaled", "scaled", (False, True), start=True, format={False: "no", True: "yes"}.get),
)


def compute(d_k, tau, scaled):
    if (d_k, tau) == (16, 2.0):
        raise ZeroDivisionError("16 and 2 do not go together: take <another> $ value")
    return d_k, tau, [tau / (d_k if scaled else 2 * d_k), 1 / d_k]


def draw(arrays):
    d_k, tau, values = arrays
    panel = diagrams.Panel(80, 60, 300, 100, y_limits=(0, 2.4))
    items = [diagrams.axes(panel, x_ticks=()), diagrams.bars(panel, values)]
    return Picture(800, 240, items, alt=f"Two bars at {d_k} and {tau}.")


def caption(arrays):
    return f"The first bar is ${arrays[2][0]:.2f}_x$."


def make(**state) -> Lab:
    return Lab("make", CONTROLS, compute, draw, caption, state)


def parts(widget) -> list:
    """The widgets in the order of the page, which is that of the Tab key."""
    children = getattr(widget, "children", ())
    return [part for child in children for part in parts(child)] if children else [widget]


def box_of(lab) -> ipywidgets.VBox:
    return lab._open().box


def beside(lab) -> list[str]:
    """The words beside the sliders, as they are on the page."""
    rows = [box.children for box in box_of(lab).children if isinstance(box, ipywidgets.HBox)]
    return [value.value for slider, value in rows if slider in lab.sliders.values()]


class Place:
    """Stands for the notebook: what `display` puts there and every update of it."""

    def __init__(self, monkeypatch):
        self.shown, self.updates = [], []
        monkeypatch.setattr(engine, "display", self.display)

    def display(self, data, metadata=None, raw=False, display_id=False):
        assert raw
        self.shown.append(data)
        return self if display_id else None

    def update(self, data, metadata=None, raw=False):
        assert raw
        self.updates.append(data)

    @property
    def pictures(self):
        return [data for data in self.updates if "image/svg+xml" in data]

    @property
    def captions(self):
        return [data for data in self.updates if "text/html" in data]


@pytest.fixture
def place(monkeypatch):
    return Place(monkeypatch)


@pytest.fixture(autouse=True)
def no_widget_is_left_behind():
    yield
    ipywidgets.Widget.close_all()


# ---------------------------------------------------------------- state and wiring


def test_a_lab_begins_at_its_start():
    lab = make()
    assert lab.state == {"d_k": 4, "tau": 1.0, "scaled": True}
    assert to_svg(lab.picture) == to_svg(draw(compute(4, 1.0, True)))
    assert make(d_k=64, scaled=False).state == {"d_k": 64, "tau": 1.0, "scaled": False}


def test_the_picture_is_that_of_the_sliders_for_every_setting():
    lab = make()
    for d_k, tau, scaled in itertools.product(*(control.values for control in CONTROLS)):
        if (d_k, tau) == (16, 2.0):
            continue
        lab.set(d_k=d_k, tau=tau, scaled=scaled)
        assert to_svg(lab.picture) == to_svg(draw(compute(d_k, tau, scaled)))
        assert [slider.index for slider in lab.sliders.values()] == [
            control.values.index(v) for control, v in zip(CONTROLS, (d_k, tau, scaled), strict=True)
        ]


def test_a_moved_slider_redraws():
    lab = make()
    lab.sliders["d_k"].index = 3
    lab.sliders["scaled"].index = 0
    assert lab.state == {"d_k": 64, "tau": 1.0, "scaled": False}
    assert to_svg(lab.picture) == to_svg(draw(compute(64, 1.0, False)))


def test_several_sliders_set_at_once_are_drawn_once(place):
    lab = make()
    lab._ipython_display_()
    lab.set(d_k=64, tau=2.0, scaled=False)
    assert len(place.pictures) == 1


def test_set_takes_what_the_state_gives():
    lab = make()
    lab.set(d_k=1, tau=0.5)
    again = make(**lab.state)
    assert again.state == lab.state
    assert to_svg(again.picture) == to_svg(lab.picture)
    assert repr(lab) == "make(d_k=1, tau=0.5, scaled=True)"
    pasted = eval(repr(lab), {"make": make})
    assert to_svg(pasted.picture) == to_svg(lab.picture)
    assert pasted.caption_text == lab.caption_text


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"width": 4}, "expected names among ['d_k', 'tau', 'scaled'], got 'width'"),
        ({"d_k": 5}, "expected d_k among (1, 4, 16, 64), got 5"),
        ({"tau": 2.0, "d_k": "4"}, "expected d_k among (1, 4, 16, 64), got '4'"),
    ],
)
def test_an_unknown_state_is_refused_and_nothing_moves(state, told):
    lab = make()
    with pytest.raises(ValueError, match=re.escape(told)):
        lab.set(**state)
    assert lab.state == make().state
    with pytest.raises(ValueError, match=re.escape(told)):
        make(**state)


def test_a_start_that_is_no_value_is_refused():
    with pytest.raises(ValueError, match=r"expected n among \(1, 2\), got 3"):
        Lab("lab", [Slider("n", "n", (1, 2), start=3)], lambda n: n, draw, caption)


def test_two_labs_are_independent():
    one, two = make(), make()
    one.sliders["d_k"].index = 0
    assert one.state["d_k"] == 1
    assert two.state["d_k"] == 4
    assert two.sliders["d_k"].index == 1


def test_reset_brings_back_the_first_picture():
    lab = make(tau=0.5)
    first, said = to_svg(lab.picture), lab.caption_text
    lab.set(d_k=64, tau=2.0, scaled=False)
    assert to_svg(lab.picture) != first
    (button,) = (part for part in parts(box_of(lab)) if isinstance(part, ipywidgets.Button))
    button.click()
    assert to_svg(lab.picture) == first
    assert lab.caption_text == said
    assert [slider.index for slider in lab.sliders.values()] == [1, 0, 1]


def test_sweep_visits_all_ends_and_returns():
    lab = make()
    seen = []
    for state, picture in lab.sweep():
        assert to_svg(picture) == to_svg(draw(compute(**state)))
        assert check(picture) == []
        seen.append(tuple(state.values()))
    assert seen[0] == (4, 1.0, True)
    single = {(1, 1.0, True), (64, 1.0, True), (4, 0.5, True), (4, 2.0, True), (4, 1.0, False)}
    corners = set(itertools.product((1, 64), (0.5, 2.0), (False, True)))
    assert single | corners <= set(seen)
    assert lab.state == make().state


# ---------------------------------------------------------------- failures


def test_a_failure_is_raised_and_told_in_place():
    lab = make(d_k=16)
    size = lab.picture.width, lab.picture.height
    with pytest.raises(ZeroDivisionError, match="do not go together"):
        lab.sliders["tau"].index = 2
    words = " ".join(item.text for item in lab.picture.items)
    assert engine.FAILED in words
    assert "width d_k = 16, temperature τ = 2.0 units, scaled = yes" in words
    assert "ZeroDivisionError: 16 and 2 do not go together: take <another>" in words
    assert (lab.picture.width, lab.picture.height) == size
    assert check(lab.picture) == []
    assert engine.FAILED in lab.caption_text
    assert lab.state["tau"] == 2.0


def test_a_good_value_brings_the_picture_back():
    lab = make(d_k=16)
    with pytest.raises(ZeroDivisionError):
        lab.set(tau=2.0)
    lab.sliders["tau"].index = 1
    assert to_svg(lab.picture) == to_svg(draw(compute(16, 1.0, True)))
    assert engine.FAILED not in lab.caption_text


def test_a_failure_reaches_the_page_and_stays_until_the_next_move(place):
    lab = make(d_k=16)
    lab._ipython_display_()
    with pytest.raises(ZeroDivisionError):
        lab.sliders["tau"].index = 2
    assert engine.FAILED in place.pictures[-1]["image/svg+xml"]
    assert engine.FAILED in place.captions[-1]["text/html"]
    lab.settle()
    assert engine.FAILED in place.pictures[-1]["image/svg+xml"]
    assert place.pictures[-1]["image/png"]


@pytest.mark.parametrize("broken", ["draw", "caption", "markup"])
def test_failures_of_the_drawing_and_the_caption_are_told_too(broken):
    def fail(arrays):
        if arrays[0] == 64:
            raise RuntimeError("out of ink")
        return good(arrays)

    good = draw if broken == "draw" else caption
    parts = {"draw": draw, "caption": caption, broken: fail}
    if broken == "markup":
        parts["caption"] = lambda arrays: "a $" if arrays[0] == 64 else "fine"
    lab = Lab("lab", CONTROLS, compute, parts["draw"], parts["caption"])
    with pytest.raises((RuntimeError, ValueError)):
        lab.sliders["d_k"].index = 3
    assert lab.picture.items[0].text == engine.FAILED


def test_an_interrupt_leaves_no_stale_picture():
    def slow(d_k, tau, scaled):
        if d_k == 64:
            raise KeyboardInterrupt
        return compute(d_k, tau, scaled)

    lab = Lab("lab", CONTROLS, slow, draw, caption)
    with pytest.raises(KeyboardInterrupt):
        lab.set(d_k=64)
    assert lab.picture.items[0].text == engine.FAILED


def test_an_error_in_the_midst_of_the_sliders_leaves_the_picture_of_the_state(place):
    def mine(change):
        raise RuntimeError("an observer of the reader's own")

    lab = make()
    lab._ipython_display_()
    lab.sliders["d_k"].observe(mine, "index")
    with pytest.raises(RuntimeError, match="own"):
        lab.set(d_k=64, tau=0.5)
    assert place.pictures[-1]["text/plain"] == "Two bars at 64 and 0.5."
    assert lab.state == {"d_k": 64, "tau": 0.5, "scaled": True}


def test_a_message_with_control_characters_is_drawn():
    def fail(arrays):
        if arrays[0] == 64:
            raise RuntimeError("\x1b[31mred\x1b[0m\x00 and \ud800\nmore")
        return draw(arrays)

    lab = Lab("lab", CONTROLS, compute, fail, caption)
    with pytest.raises(RuntimeError):
        lab.set(d_k=64)
    root = ElementTree.fromstring(to_svg(lab.picture))
    assert "red" in "".join(root.itertext())
    assert to_png(lab.picture)


def test_a_long_message_stays_on_the_card():
    def fail(arrays):
        if arrays[0] == 64:
            raise RuntimeError("a long story " * 99)
        return draw(arrays)

    lab = Lab("lab", CONTROLS, compute, fail, caption)
    with pytest.raises(RuntimeError):
        lab.set(d_k=64)
    assert check(lab.picture) == []


def test_a_lab_that_cannot_begin_raises():
    with pytest.raises(ZeroDivisionError):
        make(d_k=16, tau=2.0)


# ---------------------------------------------------------------- the page


def test_the_page_gets_controls_picture_and_caption(place):
    lab = make()
    lab._ipython_display_()
    controls, picture, said = place.shown
    assert controls["text/plain"] == engine.RUN_ME
    assert "application/vnd.jupyter.widget-view+json" in controls
    assert picture["image/svg+xml"] == to_svg(lab.picture)
    assert picture["image/png"].startswith(b"\x89PNG")
    assert picture["text/plain"] == "Two bars at 4 and 1.0."
    assert said["text/plain"] == lab.caption_text
    assert said["text/html"] == f'<div class="attnbook-rest-0">\n{lab.caption_html}\n</div>'
    assert place.updates == []


def test_the_caption_names_every_control_and_changes_with_the_picture(place):
    lab = make()
    lab._ipython_display_()
    lab.sliders["tau"].index = 0
    assert lab.caption_text == (
        "width d_k = 4, temperature τ = 0.5 units, scaled = yes. The first bar is 0.12_x. "
        f"{engine.AS_CODE} make(d_k=4, tau=0.5, scaled=True)"
    )
    html = place.captions[-1]["text/html"]
    assert "width <i>d</i><sub><i>k</i></sub> = 4, temperature <i>τ</i> = 0.5 units" in html
    assert "<code>make(d_k=4, tau=0.5, scaled=True)</code>" in html


def test_fast_moves_carry_the_svg_alone_and_settle_brings_the_png(place, monkeypatch):
    lab = make()
    lab._ipython_display_()
    with monkeypatch.context() as patch:
        patch.setattr("attnbook.picture.to_png", lambda *_: pytest.fail("a PNG in a fast move"))
        for index in (0, 1, 3, 2, 3):
            lab.sliders["d_k"].index = index
    assert [set(data) for data in place.pictures] == [{"image/svg+xml", "text/plain"}] * 5
    lab.settle()
    assert place.pictures[-1]["image/svg+xml"] == place.pictures[-2]["image/svg+xml"]
    assert place.pictures[-1]["image/png"].startswith(b"\x89PNG")
    assert place.pictures[-1]["text/plain"] == "Two bars at 64 and 1.0."


def test_the_png_comes_back_once_when_the_lab_rests(place, monkeypatch):
    monkeypatch.setattr(engine, "REST", 0.5)

    async def move():
        lab = make()
        lab._ipython_display_()
        for index in (0, 1, 2, 3, 2, 1, 2, 3):  # longer than a rest, never at rest
            lab.sliders["d_k"].index = index
            await asyncio.sleep(0.1)
        assert not any("image/png" in data for data in place.pictures)
        await asyncio.sleep(1.5)

    asyncio.run(move())
    stills = [data for data in place.pictures if "image/png" in data]
    assert len(stills) == 1
    assert stills == place.pictures[-1:]
    assert stills[0]["text/plain"] == "Two bars at 64 and 1.0."


def test_a_still_that_was_asked_for_does_not_come_again_at_rest(place, monkeypatch):
    monkeypatch.setattr(engine, "REST", 0.1)

    async def move():
        lab = make()
        lab._ipython_display_()
        lab.sliders["d_k"].index = 3
        lab.settle()
        await asyncio.sleep(1)

    asyncio.run(move())
    assert ["image/png" in data for data in place.pictures] == [False, True]


@pytest.mark.parametrize("loop", ["without a loop", "in a loop of its own"])
def test_the_png_comes_back_also_after_a_move_in_another_thread(place, monkeypatch, loop):
    monkeypatch.setattr(engine, "REST", 0.1)

    async def moved(lab):
        lab.set(d_k=64)

    async def move():
        lab = make()
        lab._ipython_display_()
        ways = {"without a loop": lambda: lab.set(d_k=64)}
        thread = threading.Thread(target=ways.get(loop, lambda: asyncio.run(moved(lab))))
        thread.start()
        thread.join()
        await asyncio.sleep(1)
        return lab

    lab = asyncio.run(move(), debug=True)  # which tells what is not safe in threads
    assert ["image/png" in data for data in place.pictures] == [False, True]
    lab.set(d_k=1)  # after the loop has ended
    assert place.pictures[-1]["text/plain"] == "Two bars at 1 and 1.0."


def test_without_an_event_loop_the_still_waits_to_be_asked_for(place):
    lab = make()
    lab._ipython_display_()
    lab.set(d_k=64)
    assert [set(data) for data in place.pictures] == [{"image/svg+xml", "text/plain"}]


def test_an_older_still_does_not_come_after_a_newer_picture(place, monkeypatch):
    """Two threads of a kernel answer the sliders, one of them while the other draws the PNG."""
    lab, drawing, moved = make(), threading.Event(), threading.Event()
    lab._ipython_display_()
    lab.sliders["d_k"].index = 3

    def slow(*_):
        drawing.set()
        moved.wait(0.5)  # seconds; the move is to wait for its turn, so they pass
        return b"PNG"

    def move():
        drawing.wait(9)
        lab.sliders["tau"].index = 0
        moved.set()

    monkeypatch.setattr("attnbook.picture.to_png", slow)
    threads = [threading.Thread(target=target) for target in (lab.settle, move)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown = [data["text/plain"] for data in place.pictures]
    assert shown == ["Two bars at 64 and 1.0."] * 2 + ["Two bars at 64 and 0.5."]


WAYS = {
    "set": lambda lab: lab.set(d_k=1),
    "reset": Lab.reset,
    "move": lambda lab: setattr(lab.sliders["d_k"], "index", 0),
    "show": Lab._ipython_display_,
    "settle": Lab.settle,
    "close": Lab.close,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_whatever_changes_the_page_waits_for_its_turn(place, way):
    lab = make()
    lab._ipython_display_()
    lab.set(d_k=16)
    before = len(place.shown), len(place.updates)
    thread = threading.Thread(target=way, args=[lab])
    with engine._TURN:
        thread.start()
        thread.join(0.2)
        assert (len(place.shown), len(place.updates)) == before
    thread.join()
    assert (len(place.shown), len(place.updates)) != before


@contextmanager
def a_move_that_waits(lab):
    """Move the slider of d_k to its end by a message of the page, while others are at turn."""
    with engine._TURN:
        message = threading.Thread(target=lab.sliders["d_k"].set_state, args=[{"index": 3}])
        message.start()
        until = time.monotonic() + 9
        while lab.sliders["d_k"].index != 3:
            assert time.monotonic() < until, "the message did not come"
            time.sleep(0.01)
        yield
    message.join()


def test_moves_of_several_threads_end_in_the_picture_of_all(place):
    lab = make()
    lab._ipython_display_()

    def move(name):
        for k in range(40):
            lab.sliders[name].index = k % 2

    threads = [threading.Thread(target=move, args=[name]) for name in ("d_k", "tau", "scaled")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.pictures[-1]["image/svg+xml"] == to_svg(draw(compute(**lab.state)))
    assert lab.caption_text == place.captions[-1]["text/plain"]
    assert lab.state == {name: c.values[1] for name, c in lab.controls.items()}


def test_a_move_that_waits_for_its_turn_is_not_undone_by_a_set_of_another_slider(place):
    lab = make()
    lab._ipython_display_()
    with a_move_that_waits(lab):
        lab.set(tau=0.5)
    assert lab.state == {"d_k": 64, "tau": 0.5, "scaled": True}
    assert place.pictures[-1]["text/plain"] == "Two bars at 64 and 0.5."


@pytest.mark.parametrize("first", [Lab.reset, Lab._ipython_display_])
def test_a_move_that_waits_for_its_turn_does_not_undo_what_came_first(place, first):
    lab = make(d_k=16)
    lab._ipython_display_()
    with a_move_that_waits(lab):
        first(lab)
    shown = lab.controls["d_k"].values[lab.sliders["d_k"].index]
    assert lab.state["d_k"] == shown == 16
    pictures = [*place.shown[1::3], *place.pictures]
    assert {data["text/plain"] for data in pictures} == {"Two bars at 16 and 1.0."}


def test_after_an_interrupt_the_page_is_put_right_at_rest(place, monkeypatch):
    monkeypatch.setattr(engine, "REST", 0.1)
    bundle = engine.bundle

    def interrupted(*_):
        monkeypatch.setattr(engine, "bundle", bundle)
        raise KeyboardInterrupt

    async def move():
        lab = make()
        lab._ipython_display_()
        monkeypatch.setattr(engine, "bundle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lab.set(d_k=64)
        await asyncio.sleep(1)
        return lab

    lab = asyncio.run(move())
    assert place.pictures[-1]["text/plain"] == "Two bars at 64 and 1.0."
    assert "image/png" in place.pictures[-1]
    assert place.captions[-1]["text/plain"] == lab.caption_text


def test_a_picture_that_comes_again_gets_its_still_again(place, monkeypatch):
    monkeypatch.setattr(engine, "REST", 0.1)
    drawn = {}

    def kept(arrays):
        return drawn.setdefault(arrays[0], draw(arrays))

    async def move():
        lab = Lab("lab", CONTROLS, compute, kept, caption)
        lab._ipython_display_()
        for index in (3, 1):
            lab.sliders["d_k"].index = index
        await asyncio.sleep(1)

    asyncio.run(move())
    assert place.pictures[-1]["text/plain"] == "Two bars at 4 and 1.0."
    assert "image/png" in place.pictures[-1]


def test_a_picture_that_is_no_longer_shown_is_not_kept_until_the_rest(place):
    """A cell that moves a slider a thousand times would hold a thousand pictures."""

    async def move():
        lab = make()
        lab._ipython_display_()
        lab.sliders["d_k"].index = 0
        first = weakref.ref(lab.picture)
        lab.sliders["d_k"].index = 3
        gc.collect()
        assert first() is None

    asyncio.run(move())


def test_pictures_come_in_the_order_of_the_moves(place):
    lab = make()
    lab._ipython_display_()
    for index in (3, 0, 2, 1):
        lab.sliders["d_k"].index = index
    alts = [data["text/plain"] for data in place.pictures]
    assert alts == [f"Two bars at {d_k} and 1.0." for d_k in (64, 1, 16, 4)]


def test_sliders_are_ones_that_the_keyboard_moves_and_say_what_they_are():
    lab = make()
    for control, slider in zip(CONTROLS, lab.sliders.values(), strict=True):
        assert isinstance(slider, ipywidgets.SelectionSlider)
        assert [text for text, _ in slider.options] == [control.format(v) for v in control.values]
        assert slider.continuous_update
        assert not slider.readout  # one can type in it, and nothing comes of it
    focusable = [part for part in parts(box_of(lab)) if not isinstance(part, ipywidgets.HTML)]
    assert focusable[:-1] == list(lab.sliders.values())
    assert isinstance(focusable[-1], ipywidgets.Button)
    description = lab.sliders["d_k"].description
    assert re.sub("<[^>]*>", "", description) == "width dk"
    assert "<sub>" not in description  # JupyterLab would drop it


def test_values_stand_beside_the_sliders_whatever_moves_them():
    lab = make()
    assert beside(lab) == ["4", "1.0 units", "yes"]
    lab.sliders["d_k"].index = 3
    assert beside(lab) == ["64", "1.0 units", "yes"]
    lab.set(tau=0.5, scaled=False)
    assert beside(lab) == ["64", "0.5 units", "no"]
    lab.reset()
    assert beside(lab) == ["4", "1.0 units", "yes"]
    lab.set(tau=2.0)
    with pytest.raises(ZeroDivisionError):
        lab.sliders["d_k"].index = 2
    assert beside(lab) == ["16", "2.0 units", "yes"]


def test_values_use_the_markup():
    angle = Slider("n", "angle", (1, 2), start=1, format="${}_x$ <b>".format)
    lab = Lab("lab", [angle], lambda n: (n, n, [n, n]), draw, caption)
    lab.sliders["n"].index = 1
    assert beside(lab) == ["2<sub><i>x</i></sub> &lt;b&gt;"]


def test_a_value_moves_neither_before_its_picture_is_drawn_nor_after_it_is_shown(
    place, monkeypatch
):
    during = []

    def slow(d_k, tau, scaled):
        during.append(beside(lab)[0] if lab else None)
        return compute(d_k, tau, scaled)

    lab = None
    lab = Lab("lab", CONTROLS, slow, draw, caption)
    lab._ipython_display_()
    with_picture = []

    def update(data, **_):
        with_picture.append((beside(lab)[0], data["text/plain"]))

    monkeypatch.setattr(place, "update", update)
    lab.sliders["d_k"].index = 3
    assert during == [None, "4"]
    picture, said = "Two bars at 64 and 1.0.", lab.caption_text
    assert with_picture == [("64", picture), ("64", said)]


def test_the_style_is_made_for_the_picture_and_hides_dead_sliders():
    lab = make()
    texts = [part.value for part in parts(box_of(lab)) if isinstance(part, ipywidgets.HTML)]
    (style,) = (text for text in texts if "<style>" in text)
    sizes = f"attnbook-800-240-{13 * (9 + 6 + 12)}"  # the longest label, "1.0 units", the way
    assert f".jp-Cell:has(.{sizes}) .jp-RenderedSVG img" in style
    assert "width: max(800px, min(1.5 * 800px, 60vh * 800 / 240));" in style
    assert style.count("{") == style.count("}") > 0
    assert {"attnbook-lab", sizes} <= set(box_of(lab)._dom_classes)
    assert ".attnbook-stale, " in style
    (told,) = (text for text in texts if engine.STALE in text)
    assert f'<span class="attnbook-copy">{engine.COPY}</span>' in told


def test_shown_again_a_lab_leaves_its_first_place_as_on_paper(place):
    lab = make()
    lab._ipython_display_()
    lab.sliders["d_k"].index = 3
    lab._ipython_display_()
    (sentence,) = (data for data in place.updates if data["text/plain"] == engine.RUN_ME)
    assert sentence == engine.GONE
    assert f"<p>{engine.RUN_ME}</p>" in sentence["text/html"]
    first, second = place.shown[0], place.shown[3]
    assert first != second
    assert "application/vnd.jupyter.widget-view+json" in second
    before = len(place.updates)
    lab.sliders["d_k"].index = 0
    assert len(place.updates) == before + 2  # one picture and one caption


def test_shown_again_while_it_moves_a_lab_leaves_the_still(place):
    async def move():
        lab = make()
        lab._ipython_display_()
        lab.sliders["d_k"].index = 3
        assert "image/png" not in place.pictures[-1]
        lab._ipython_display_()

    asyncio.run(move())
    assert len(place.pictures) == 2
    assert place.pictures[-1]["image/png"].startswith(b"\x89PNG")


def test_a_closed_lab_says_so_and_moves_nothing(place):
    lab = make()
    lab._ipython_display_()
    lab.close()
    lab.close()
    assert place.updates == [engine.GONE]
    lab.set(d_k=64)
    assert len(place.updates) == 1
    assert lab.state["d_k"] == 64


def test_closing_leaves_no_widget_and_showing_again_opens_new_ones(place):
    def alive():
        return len(ipywidgets.widgets.widget._instances)

    before = alive()
    lab = make()
    lab.set(d_k=64)
    assert alive() == before
    lab._ipython_display_()
    opened = alive()
    assert opened > before
    lab._ipython_display_()
    assert alive() == opened  # live in one place, the last one
    lab.close()
    assert alive() == before
    lab._ipython_display_()
    assert alive() == opened
    lab.sliders["d_k"].index = 0
    assert place.pictures[-1]["text/plain"] == "Two bars at 1 and 1.0."


def test_a_lab_that_was_never_shown_is_forgotten():
    lab = make(d_k=16)
    lab.set(d_k=64)
    gone = weakref.ref(lab)
    del lab
    gc.collect()
    assert gone() is None


# ---------------------------------------------------------------- in a kernel


def run(*sources: str) -> list:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    setup = "import sys; sys.path.insert(0, 'tests'); from test_lab_engine import *"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(setup))
    NotebookClient(notebook, timeout=60, store_widget_state=False).execute()
    return [cell.outputs for cell in notebook.cells[1:]]


def test_a_notebook_holds_controls_picture_and_caption():
    outputs, moved = run(
        "lab = make(); lab",
        "import asyncio\nlab.sliders['d_k'].index = 3\nawait asyncio.sleep(1)\nlab",
    )
    for output, d_k in ((outputs, 64), (moved, 64)):
        controls, picture, said = output
        assert controls.data["text/plain"] == engine.RUN_ME
        assert picture.data["image/svg+xml"] == to_svg(make(d_k=d_k).picture)
        assert picture.data["image/png"]
        assert picture.metadata["image/png"] == {"width": 800, "height": 240}
        assert said.data["text/plain"] == make(d_k=d_k).caption_text


def test_in_a_kernel_the_still_comes_back_at_rest():
    (_, picture, _), _ = run(
        "lab = make(); lab",
        "lab.sliders['d_k'].index = 3\nawait asyncio.sleep(1)",
    )
    assert picture.data["image/svg+xml"] == to_svg(make(d_k=64).picture)
    assert base64.b64decode(picture.data["image/png"]) == to_png(make(d_k=64).picture)


def test_a_lab_in_two_cells_is_live_in_the_last():
    first, second = run("lab = make(); lab", "lab")
    view = "application/vnd.jupyter.widget-view+json"
    assert dict(first[0].data) == engine.GONE
    assert view in second[0].data
    for output in (first, second):
        assert output[1].data["image/png"]
        assert output[2].data["text/plain"] == make().caption_text


def test_running_a_cell_again_closes_the_old_sliders():
    # A front end tells the id of the cell; here a cell stands for it.
    told = (
        "shell = get_ipython()\n"
        "def run(cell):\n"
        "    shell.get_parent()['metadata']['cellId'] = cell\n"
        "    shell.run_cell('make()', cell_id=cell, store_history=True)\n"
        "    return counted()\n"
        "def counted():\n"
        "    gc.collect()\n"
        "    widgets = sum(isinstance(one, ipywidgets.Widget) for one in gc.get_objects())\n"
        "    return widgets, len(shell.events.callbacks['pre_run_cell'])\n"
    )
    (_, outputs, last) = run(
        told,
        "print([counted(), run('a'), run('a'), run('a'), run('b'), run('b')])",
        "live = [lab for lab in gc.get_objects() if isinstance(lab, Lab) and lab._place]\n"
        "for lab in live: lab.close()\n"
        "print([len(live), *counted()])",
    )
    printed = [o.text for out in (outputs, last) for o in out if o.output_type == "stream"]
    nothing, *counts = json.loads(printed[0].replace("(", "[").replace(")", "]"))
    added = [(widgets - nothing[0], hooks - nothing[1]) for widgets, hooks in counts]
    of_a_lab = added[0][0]
    assert of_a_lab > 0
    assert added == 3 * [(of_a_lab, 1)] + 2 * [(2 * of_a_lab, 2)]
    assert json.loads(printed[1]) == [2, *nothing]
