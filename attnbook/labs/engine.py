"""A lab: sliders, a picture that follows them, and a caption that says what it shows.

``compute`` turns the values of the sliders into arrays and ``draw`` turns the arrays into a
picture, both pure; this module ties them to widgets.  The picture and the caption are ordinary
output, so that they outlive the kernel; the widgets are not.
"""

import asyncio
import functools
import html
import itertools
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any, NamedTuple

import ipywidgets
from IPython import get_ipython
from IPython.display import DisplayHandle, display

from attnbook import style
from attnbook.markup import runs, to_html, to_plain
from attnbook.picture import Picture, Text, bundle

# Everything a reader sees, in one place.
RUN_ME = "Run this cell to get the sliders of this lab."
RESET = "Back to the start"
RESET_TIP = "Put every slider back to where it began"
FAILED = "This setting could not be drawn"
GO_ON = "Move a slider to go on."
AS_CODE = "This setting as code:"
STALE = "The kernel was restarted: run the page from the top to get the sliders back."
COPY = "This is a copy, whose picture does not follow: run this cell to bring it to life."

# JupyterLab, and a page that nbconvert makes, show an SVG as an <img> but limit the width of <svg>
# alone.  This stands where the sliders do, also where they are gone: on paper, in a saved notebook.
FIT = ".jp-RenderedSVG img, .jp-RenderedImage img { max-width: 100%; height: auto; }"
GONE = {"text/plain": RUN_ME, "text/html": f"<style>{FIT}</style>\n<p>{RUN_ME}</p>"}

# A picture grows with its pane to one and a half times its size, as far as that leaves room for the
# sliders.  In a pane without room for label, way and value side by side, a slider goes below the
# two.  Sliders whose kernel was restarted would still move, over a picture that does not;
# JupyterLab marks them.  A handle is white with a pale rim, which nobody sees on a white page.
# Where the reader's system sets the colours, ipywidgets draws neither a slider's track nor a
# button's edge.
STYLE = """\
<style>
{fit}
.jp-Cell:has(.{sizes}) .jp-RenderedSVG img {{
  width: max({width}px, min(1.5 * {width}px, 60vh * {width} / {height}));
}}
.{sizes} {{ container-type: inline-size; }}
@container (max-width: {narrow}px) {{
  .{sizes} .widget-hbox {{ flex-wrap: wrap; }}
  .{sizes} .widget-hslider {{ display: contents; }}
  .{sizes} .widget-label {{ flex: 1 0 auto; width: auto !important; text-align: left; }}
  .{sizes} .widget-hslider + .widget-html {{ flex: 0 1 auto !important; }}
  .{sizes} .slider-container {{ order: 1; flex: 1 1 calc(100% - 20px); margin: 12px 10px; }}
}}
.attnbook-lab .noUi-handle:not(:hover, :focus) {{
  border: 2px solid var(--jp-ui-font-color2);
}}
@media (forced-colors: active) {{
  .attnbook-lab :is(.noUi-target, button) {{ border: 1px solid; }}
  .attnbook-lab :is(.noUi-handle, button):focus {{ outline: 3px solid Highlight; }}
}}
.attnbook-stale, .attnbook-copy, .attnbook-lab .jupyter-widgets-disconnected button {{
  display: none;
}}
.jupyter-widgets-disconnected .attnbook-stale {{ display: inline; }}
.attnbook-lab .jupyter-widgets-disconnected .noUi-target {{ visibility: hidden; }}
.jupyter-widgets-disconnected:is(.attnbook-lab, .attnbook-lab *)::before {{ display: none; }}
</style>"""

# A cell that was copied, cut and pasted, or brought back by undo has live sliders, but JupyterLab
# shows it no further picture.  Such a cell is known by its caption, which carries the number of the
# rest that it is from: not the last one, and not the one that is just being told.
COPIES = """\
<style>
.jp-Cell:has(.attnbook-{id}):not(:has(.attnbook-rest-{last}, .attnbook-rest-{next}))
  .attnbook-{id} .attnbook-copy {{ display: inline; }}
</style>"""
FONT, WAY = 13, 12  # pixels of the words beside a slider; em that it needs itself, with its margins
REST = 0.4  # seconds without a move until the still is redrawn

# JupyterLab lets several threads of a kernel answer the sliders of one lab (its subshells).  They
# draw and show in turn, or an older picture could come after a newer one; labs do not draw side by
# side either, as matplotlib, which makes the PNG, is made for one thread.
_TURN = RLock()


def _in_turn(method: Callable) -> Callable:
    @functools.wraps(method)
    def waiting(self, *args, **kwargs):
        with _TURN:
            return method(self, *args, **kwargs)

    return waiting


class Slider(NamedTuple):
    """A control: an ordered list of values and the one to start from.

    Yes or no, and a choice of names, are sliders too: JupyterLab takes the arrow keys of other
    controls for itself.

    Parameters
    ----------
    name : str
        The parameter of ``compute`` that it sets.
    label : str
        What stands beside it, in the markup of `attnbook.markup`.
    values : sequence
        Plain Python values, in the order of the slider.
    start : one of the values
    format : callable
        Turns a value into the text shown, with its unit: ``"{:.1f} s".format``.

    Examples
    --------
    >>> width = Slider("d_k", "key width $d_k$", (4, 16, 64), start=16)
    """

    name: str
    label: str
    values: Sequence[Any]
    start: Any
    format: Callable[[Any], str] = str


class _Widgets(NamedTuple):
    box: ipywidgets.VBox
    sliders: dict[str, ipywidgets.SelectionSlider]
    readouts: dict[str, ipywidgets.HTML]
    copies: ipywidgets.HTML


class Lab:
    """An interactive figure; show it by ending a cell with it.

    Parameters
    ----------
    name : str
        The function that makes the lab; called with ``state`` as keyword arguments it makes the
        same picture again.
    controls : sequence of Slider
    compute : callable
        ``compute(**state) -> arrays``.
    draw : callable
        ``draw(arrays) -> Picture``.
    caption : callable
        ``caption(arrays) -> str``, what the picture shows now, in the markup of `attnbook.markup`.
    start : mapping, optional
        Values to begin with, where they differ from the starts of the controls.

    Raises
    ------
    ValueError
        If ``start`` has a name or a value that no control has.

    Examples
    --------
    >>> from attnbook.picture import Rect
    >>> draw = lambda n: Picture(200, 60, [Rect(9, 9, 20 * n, 9, "#000000")], alt="A bar.")
    >>> length = Slider("n", "length", (1, 2, 3), start=2)
    >>> bar = Lab("bar", [length], lambda n: n, draw, "Bar of {}.".format)
    >>> bar.set(n=3)
    >>> bar.state, bar.picture.items[0].width
    ({'n': 3}, 60)
    >>> print(bar.caption_text)
    length = 3. Bar of 3. This setting as code: bar(n=3)
    """

    def __init__(
        self,
        name: str,
        controls: Sequence[Slider],
        compute: Callable[..., Any],
        draw: Callable[[Any], Picture],
        caption: Callable[[Any], str],
        start: Mapping[str, Any] | None = None,
    ):
        self.name = name
        self.controls = {control.name: control for control in controls}
        self._compute, self._draw, self._caption = compute, draw, caption
        self._index = {c.name: _position(c, c.start) for c in controls}
        self._index |= self._positions(start or {})
        self._start = dict(self._index)
        self._widgets: _Widgets | None = None  # ipywidgets keeps them until they are closed
        self._place: tuple[DisplayHandle, DisplayHandle, DisplayHandle] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._forget: Callable[[], None] | None = None
        self._still: Picture | None = None  # what is shown, if with its PNG
        self._moves = self._rests = 0
        self.picture, self._said = self._drawn()

    # ---------------------------------------------------------------- state

    @property
    def state(self) -> dict[str, Any]:
        """Return the value of every control by its name."""
        return {name: self.controls[name].values[i] for name, i in self._index.items()}

    def set(self, **state: Any) -> None:
        """Move sliders to values, all at once; the others stay.

        Raises
        ------
        ValueError
            If a name or a value is not one of the controls'; nothing is moved then.
        """
        self._move(self._positions(state))

    def reset(self) -> None:
        """Move every slider back to where it began."""
        self._move(self._start)

    def sweep(self) -> Iterator[tuple[dict[str, Any], Picture]]:
        """Move through the ends of all controls and yield each state with its picture.

        First the start, then every control to both ends with the others at their start, then all
        combinations of ends; in the end everything is back at the start.
        """
        ends = {name: (0, len(c.values) - 1) for name, c in self.controls.items()}
        tours = [self._start]
        tours += [{**self._start, name: end} for name, pair in ends.items() for end in pair]
        tours += [
            dict(zip(ends, corner, strict=True)) for corner in itertools.product(*ends.values())
        ]
        for index in tours:
            self._move(index)
            yield self.state, self.picture
        self.reset()

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.state.items())
        return f"{self.name}({arguments})"

    def _positions(self, state: Mapping[str, Any]) -> dict[str, int]:
        unknown = [name for name in state if name not in self.controls]
        if unknown:
            raise ValueError(
                f"expected names among {list(self.controls)}, got {unknown[0]!r}: "
                f"{self.name} has no such control"
            )
        return {name: _position(self.controls[name], value) for name, value in state.items()}

    # ---------------------------------------------------------------- drawing

    @_in_turn
    def _move(self, index: Mapping[str, int]) -> None:
        self._index = {**self._index, **index}
        try:
            if self._widgets is not None:
                for name, i in index.items():  # the others may be waiting for their turn
                    self.sliders[name].index = i  # the observer sees that nothing is left to do
        finally:
            self._redraw()

    @_in_turn
    def _moved(self, name: str) -> None:
        index = self.sliders[name].index  # now: it may have been moved on before its turn came
        if index != self._index[name]:
            self._index[name] = index
            self._redraw()

    def _drawn(self) -> tuple[Picture, str]:
        arrays = self._compute(**self.state)
        picture, said = self._draw(arrays), self._caption(arrays)
        runs(said)  # so that a fault in its markup is told like any other
        return picture, said

    def _redraw(self) -> None:
        """Draw the present state; if that fails, draw a message and raise."""
        try:
            self.picture, self._said = self._drawn()
        except BaseException as error:  # an interrupt too leaves no picture of this state
            self.picture, self._said = self._message(error), FAILED + "."
            raise
        finally:
            try:
                if self._widgets is not None:
                    for name, readout in self._widgets.readouts.items():
                        readout.value = self._value(name, to_html)
                self._publish(still=False)
            finally:  # where that was interrupted, the page is put right then
                self._rest()

    def _message(self, error: BaseException) -> Picture:
        width, height = self.picture.width, self.picture.height  # nothing else may move
        told = f"{type(error).__name__}: {error}"
        told = "".join(c if c.isprintable() else " " for c in told)  # which no SVG may hold
        lines = [
            line
            for part in (self._values(to_plain), told.replace("$", ""), GO_ON)
            for line in textwrap.wrap(part, int(width / 11), max_lines=5)
        ]
        items = [Text(24, 30, FAILED, style.TITLE, style.GRADIENT, bold=True)]
        items += [Text(24, 64 + 26 * k, line) for k, line in enumerate(lines)]
        return Picture(width, height, items, alt=f"{FAILED}. {told}")

    # ---------------------------------------------------------------- caption

    @property
    def caption_text(self) -> str:
        """Return the caption as plain text: all controls with their values, and what is shown."""
        return f"{self._values(to_plain)}. {to_plain(self._said)} {AS_CODE} {self!r}"

    @property
    def caption_html(self) -> str:
        """Return the caption as HTML."""
        return (
            f"<p><b>{self._values(to_html)}.</b> {to_html(self._said)}</p>\n"
            f"<p>{AS_CODE} <code>{html.escape(repr(self))}</code></p>"
        )

    def _values(self, convert: Callable[[str], str]) -> str:
        return ", ".join(
            f"{convert(c.label)} = {self._value(name, convert)}"
            for name, c in self.controls.items()
        )

    def _value(self, name: str, convert: Callable[[str], str]) -> str:
        control = self.controls[name]
        return convert(control.format(control.values[self._index[name]]))

    # ---------------------------------------------------------------- display

    @_in_turn
    def _ipython_display_(self) -> None:
        if self._place is not None:
            self.close()  # a lab is live in one place, the last one
        data, metadata = bundle(self.picture)
        view = {**self._open().box._repr_mimebundle_(), **GONE}
        self._close_on_rerun()
        self._loop = _running_loop()
        controls = display(view, raw=True, display_id=True)
        picture = display(data, metadata=metadata, raw=True, display_id=True)
        self._still = self.picture
        caption = display(self._caption_bundle(), raw=True, display_id=True)
        self._place = controls, picture, caption

    def _publish(self, still: bool) -> None:
        if self._place is None:
            return
        _, picture, caption = self._place
        self._still = None
        self._rests += still
        data, metadata = bundle(self.picture, still)
        picture.update(data, metadata=metadata, raw=True)
        caption.update(self._caption_bundle(), raw=True)
        if still:
            self._still = self.picture
            self._open().copies.value = self._rule_for_copies()

    def _caption_bundle(self) -> dict[str, str]:
        told = f'<div class="attnbook-rest-{self._rests}">\n{self.caption_html}\n</div>'
        return {"text/html": told, "text/plain": self.caption_text}

    def _rest(self) -> None:
        """Bring the PNG back once no slider has moved for a while.

        The loop that showed the lab does it: it is the kernel's own, while that of another thread
        may have ended by then.
        """
        if self._loop is None or self._loop.is_closed():
            return  # plain Python: who wants the still calls settle
        # The number of the move, not its picture, which would be held until then.
        self._moves += 1
        later = functools.partial(self._loop.call_later, REST, self._rested, self._moves)
        self._loop.call_soon_threadsafe(later)

    @_in_turn
    def _rested(self, move: int) -> None:
        if move == self._moves:  # else a later one has its own rest
            self._settle_once()

    @_in_turn
    def settle(self) -> None:
        """Redraw with the PNG, without which a saved notebook would lose the picture."""
        self._publish(still=True)

    def _settle_once(self) -> None:
        if self._still is not self.picture:
            self.settle()

    # ---------------------------------------------------------------- widgets

    @property
    def sliders(self) -> dict[str, ipywidgets.SelectionSlider]:
        """Return the widget of every control by its name; ``index`` is the place of its value."""
        return self._open().sliders

    def _open(self) -> _Widgets:
        if self._widgets is None or self._widgets.box.comm is None:
            self._widgets = self._made()
        return self._widgets

    def _made(self) -> _Widgets:
        values = (c.format(value) for c in self.controls.values() for value in c.values)
        label_room, value_room = _room(c.label for c in self.controls.values()), _room(values)
        sliders = {n: self._slider(control, label_room) for n, control in self.controls.items()}
        readouts = {name: self._readout(name, value_room) for name in self.controls}
        rows = [
            ipywidgets.HBox([slider, readouts[name]], layout={"width": "min(100%, 48em)"})
            for name, slider in sliders.items()
        ]
        reset = ipywidgets.Button(description=RESET, tooltip=RESET_TIP)
        reset.on_click(lambda _: self.reset())
        words = {"stale": STALE, "copy": COPY}
        told = "".join(f'<span class="attnbook-{k}">{v}</span>' for k, v in words.items())
        narrow = FONT * (label_room + value_room + WAY)
        width, height = self.picture.width, self.picture.height
        sizes = f"attnbook-{width}-{height}-{narrow}"
        look = STYLE.format(fit=FIT, sizes=sizes, width=width, height=height, narrow=narrow)
        copies = ipywidgets.HTML()
        box = ipywidgets.VBox(
            [*rows, ipywidgets.HBox([reset, ipywidgets.HTML(told)]), ipywidgets.HTML(look), copies]
        )
        for name in ("attnbook-lab", sizes, f"attnbook-{box.model_id}"):
            box.add_class(name)
        return _Widgets(box, sliders, readouts, copies)

    def _rule_for_copies(self) -> str:
        box = self._open().box
        return COPIES.format(id=box.model_id, last=self._rests, next=self._rests + 1)

    def _readout(self, name: str, room: int) -> ipywidgets.HTML:
        """Return the value beside a slider, written together with the picture.

        The slider's own readout can be typed in, and moves before the picture does.
        """
        layout = {"flex": f"0 1 {room}em", "margin": "0 8px 4px"}
        return ipywidgets.HTML(self._value(name, to_html), layout=layout)

    def _slider(self, control: Slider, room: int) -> ipywidgets.SelectionSlider:
        slider = ipywidgets.SelectionSlider(
            options=[
                (to_plain(control.format(value)), i) for i, value in enumerate(control.values)
            ],
            index=self._index[control.name],
            description=_description(control.label),
            description_allow_html=True,
            tooltip=to_plain(control.label),  # which is the title of the label, else "null"
            readout=False,
            style={"description_width": f"{room}em"},
            layout={"flex": "1 1 auto"},
        )
        slider.observe(lambda _: self._moved(control.name), "index")
        return slider

    @_in_turn
    def close(self) -> None:
        """Take the widgets away and leave a sentence; the picture and the caption stay."""
        try:
            if self._place is not None:
                self._settle_once()
                self._place[0].update(GONE, raw=True)
        finally:
            self._place = None
            if self._forget is not None:
                self._forget()
                self._forget = None
            if self._widgets is not None:
                _close(self._widgets.box)
                self._widgets = None

    def _close_on_rerun(self) -> None:
        """Close the lab as soon as the cell that shows it runs again."""
        shell = get_ipython()
        cell = _running_cell(shell)
        if cell is None:
            return

        def rerun(info):
            if info.cell_id == cell:
                self.close()

        shell.events.register("pre_run_cell", rerun)
        self._forget = functools.partial(shell.events.unregister, "pre_run_cell", rerun)


def _close(widget: ipywidgets.Widget) -> None:
    """Close a widget with all that belongs to it, most of which ipywidgets would leave behind."""
    for child in getattr(widget, "children", ()):
        _close(child)
    for part in ("layout", "style"):
        if hasattr(widget, part):
            getattr(widget, part).close()
    widget.close()


def _position(control: Slider, value: Any) -> int:
    if value not in control.values:
        raise ValueError(
            f"expected {control.name} among {tuple(control.values)}, got {value!r}: "
            "choose a value of the slider"
        )
    return list(control.values).index(value)


def _room(texts: Iterable[str]) -> int:
    """Return a width in em that holds each of several texts, the same for all rows of a lab."""
    return round(0.6 * max(len(to_plain(text)) for text in texts) + 1)


def _description(label: str) -> str:
    """Return a label as the HTML that a widget's description may have: no <sub>, no <sup>."""
    text = to_html(label)
    for tag, align in (("sub", "sub"), ("sup", "super")):
        span = f'<span style="vertical-align: {align}; font-size: smaller">'
        text = text.replace(f"<{tag}>", span).replace(f"</{tag}>", "</span>")
    return text


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _running_cell(shell: Any) -> str | None:
    """Return the id of the running cell, or None where the front end does not tell."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return parent.get("metadata", {}).get("cellId")
