"""From the key press to the changed picture, for every lab of the book.

``python tests/browser/speed.py`` prints the times and fails if a promise is broken.

In each lab the slider with the most values is moved, to and fro: key by key; then by the keys of
about 60 changes in one second; then by the mouse over as many changes. The mouse is slower, as the
page takes one of its moves a frame, but shows more: while keys come this fast, Chromium puts off
what comes from the kernel until after the next frame, sometimes for as long as they come. The clock
is that of `benchmark`. A picture is known by its SVG, which the state of the lab makes here too; so
what was shown can be compared with what had to be. Its number (see `numbered`) tells whether it is
newer than the one before, also where the two look alike.
"""

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numbered
from benchmark import TRIES, WATCH, Probe
from driver import NO_BROWSER, PICTURE, Book, Chapter, find_browser, opened_book, read
from numbered import number_of, without_number
from shown import CHAPTERS, Shown, lab_cells, svg_of

from attnbook.picture import to_svg

# Milliseconds, printed; a promise is broken at ROOM times as much.
GOALS = {"median over all labs": 40, "slowest lab": 60, "slowest to settle": 150}
ROOM = 3
PRESSES, EVENTS = 6, 61  # an odd number: a slider that goes to and fro ends elsewhere
LONGEST = 1.5  # seconds that the keys of one second may take
REST = 1.0  # seconds that one more picture is waited for


class Burst(NamedTuple):
    """What followed from so many changes."""

    seconds: float  # from the first change to the last
    settle: float  # ms from the last change to the last picture
    shown: int  # pictures
    faults: tuple[str, ...] = ()


class Speed(NamedTuple):
    """What was measured at one lab."""

    name: str
    milliseconds: tuple[float, ...]  # from key press to picture
    keys: Burst
    mouse: Burst

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def settle(self) -> float:
        return max(self.keys.settle, self.mouse.settle)

    @property
    def faults(self) -> tuple[str, ...]:
        return (*self.keys.faults, *self.mouse.faults)


def to_and_fro(n: int, events: int) -> list[int]:
    """Return the places of a slider of ``n`` values, after each of so many steps from its end.

    >>> to_and_fro(3, 5)
    [1, 2, 1, 0, 1]
    """
    period = 2 * (n - 1)
    return [min(k % period, period - k % period) for k in range(1, events + 1)]


def out_of_order(shown: Sequence[str], expected: Sequence[str]) -> list[str]:
    """Return why numbered pictures are not some of those expected, in their order, up to the last.

    >>> out_of_order(["a<!-- 4 -->", "a<!-- 6 -->"], "aba")
    []
    >>> out_of_order(["a<!-- 4 -->", "a<!-- 6 -->", "b<!-- 5 -->"], "abab")
    ['picture 3 of 3 is older than the one before']
    >>> out_of_order(["a<!-- 4 -->"], "aba")
    ['no picture came']
    >>> out_of_order(["b<!-- 5 -->", "a<!-- 6 -->"], "ab")
    ['picture 2 of 2 is of no setting still to come', 'the last is not that of the last change']
    """
    n, found = len(shown), []
    numbers = [number_of(svg) for svg in shown]
    found += [
        f"picture {k} of {n} is older than the one before"
        for k, (before, after) in enumerate(itertools.pairwise(numbers), 2)
        if after <= before
    ][:1]
    pictures, left = [without_number(svg) for svg in shown], iter(expected)
    late = [k for k, svg in enumerate(pictures, 1) if not any(svg == one for one in left)][:1]
    found += [f"picture {k} of {n} is of no setting still to come" for k in late]
    if n < 2:
        found.append("no picture came")
    if not pictures or pictures[-1] != expected[-1]:
        found.append("the last is not that of the last change")
    return found


@contextmanager
def opened(executable: str, folder: Path) -> Iterator[Book]:
    """Open the book, with kernels that number what its labs draw."""
    with opened_book(executable, folder, startup=Path(numbered.__file__)) as book:
        yield book


def measure(book: Book, paths: Sequence[Path] = CHAPTERS) -> list[Speed]:
    """Measure every lab of some chapters."""
    found = []
    for path in paths:
        with book.chapter(path.name) as chapter:
            chapter.run_all()
            chapter.page.evaluate(WATCH, [PICTURE])
            found += [measure_lab(chapter, number) for number in lab_cells(read(path))]
            assert chapter.errors == []
    return found


def measure_lab(chapter: Chapter, number: int) -> Speed:
    """Measure one lab by the slider with the most values."""
    lab = Shown(chapter, number)
    lab.until_right("after Run All")
    sizes = [len(control.values) for control in lab.controls]
    i = sizes.index(max(sizes))
    lab.settle(i)
    lab.move(i, "Home")
    svgs = []
    for place in range(sizes[i]):
        lab.places[i] = place
        svgs.append(to_svg(lab.expected().picture))
    probe = Probe(chapter, number, lab.name, i)
    single = single_presses(probe, len(svgs))
    bursts = []
    for way in (burst, drag):
        for _ in range(TRIES):  # where JupyterLab took the focus away, the keys went elsewhere
            lab.settle(i)
            lab.move(i, "Home")
            followed = way(probe, svgs)
            if probe.focused():
                break
        bursts.append(followed)
    return Speed(lab.name, tuple(single), *bursts)


def single_presses(probe: Probe, n: int) -> list[float]:
    """Return the milliseconds from key to picture, on a slider of ``n`` values."""
    probe.rest(REST)
    probe.watch()
    places = [0, *to_and_fro(n, PRESSES)]
    for k, (before, after) in enumerate(itertools.pairwise(places)):
        probe.press("ArrowRight" if after > before else "ArrowLeft")
        time.sleep(0.1 + 0.013 * (k % 5))  # out of step with frames
    keys, times, _ = probe.times()
    assert len(keys) == PRESSES, f"{probe.name}: {len(keys)} key events of {PRESSES}"
    return [shown - key for key, shown in zip(keys, times[1:], strict=True)]


def burst(probe: Probe, svgs: Sequence[str]) -> Burst:
    """Press the keys of all changes in one second."""

    def press(before: int, after: int) -> None:
        probe.page.keyboard.press("ArrowRight" if after > before else "ArrowLeft")

    followed = follow(probe, svgs, press, "keys")
    late = [f"the keys took {followed.seconds:.1f} s"] * (followed.seconds > LONGEST)
    return followed._replace(faults=(*followed.faults, *late))


def drag(probe: Probe, svgs: Sequence[str]) -> Burst:
    """Drag the mouse over all changes, as fast as the page takes them, in no less than 1 s."""
    mouse = probe.page.mouse
    handle, track = probe.boxes()
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2

    def move(_: int, after: int) -> None:
        mouse.move(x + after / (len(svgs) - 1) * track["width"], y)

    mouse.move(x, y)
    mouse.down()
    followed = follow(probe, svgs, move, "moves")
    mouse.up()
    few = [f"{followed.shown} pictures of a drag"] * (followed.shown < EVENTS / 3)
    return followed._replace(faults=(*followed.faults, *few))


def follow(probe: Probe, svgs: Sequence[str], step: Callable[[int, int], None], kind: str) -> Burst:
    """Return what a slider of so many pictures shows while it is moved from its first."""
    probe.watch()
    places = [0, *to_and_fro(len(svgs), EVENTS)]
    start = time.monotonic()
    for k, (before, after) in enumerate(itertools.pairwise(places)):
        time.sleep(max(0, start + k / EVENTS - time.monotonic()))
        step(before, after)
    probe.rest(REST)
    events, times, blank = probe.times(kind)
    assert events, f"{probe.name}: no {kind} came"
    shown = [svg_of(src) for src in probe.page.evaluate("W.shown.map(({src}) => src)")]
    faults = out_of_order(shown, [svgs[place] for place in places])
    faults += [f"{blank} frames without a picture"] * (blank > 0)
    faults += [f"{len(events)} {kind} of {EVENTS} came"] * (len(events) != EVENTS)
    seconds = (events[-1] - events[0]) / 1000
    return Burst(seconds, times[-1] - events[-1], len(shown) - 1, tuple(faults))


def figures(speeds: Sequence[Speed]) -> dict[str, float]:
    """Return what the goals are about."""
    return {
        "median over all labs": statistics.median(t for s in speeds for t in s.milliseconds),
        "slowest lab": max(speed.median for speed in speeds),
        "slowest to settle": max(speed.settle for speed in speeds),
    }


def report(speeds: Sequence[Speed]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"{'':28}{'key to picture':>14}{f'{EVENTS} keys':>20}{f'mouse, {EVENTS} changes':>22}"
    yield f"{'lab':28}{'median':>7}{'most':>7}" + f"{'s':>9}{'shown':>6}{'settled':>8}" * 2
    for s in speeds:
        line = f"{s.name:28}{s.median:7.0f}{max(s.milliseconds):7.0f}"
        line += "".join(f"{b.seconds:9.1f}{b.shown:6}{b.settle:8.0f}" for b in (s.keys, s.mouse))
        yield "; ".join([line, *s.faults])
    for name, value in figures(speeds).items():
        goal = f"{'within' if value <= GOALS[name] else 'OVER'} the goal of {GOALS[name]} ms"
        yield f"{name}: {value:.0f} ms, {goal}"


def broken(speeds: Sequence[Speed]) -> list[str]:
    """Return what the labs promise and did not keep."""
    found = [f"{speed.name}: {fault}" for speed in speeds for fault in speed.faults]
    return found + [
        f"{name}: {value:.0f} ms, more than {ROOM} times the goal of {GOALS[name]}"
        for name, value in figures(speeds).items()
        if value > ROOM * GOALS[name]
    ]


def main(numbers: Sequence[str]) -> int:
    """Measure chapters (none named: all), print, and return the exit status."""
    executable = find_browser()
    if executable is None:
        print(NO_BROWSER, file=sys.stderr)
        return 1
    paths = [path for path in CHAPTERS if not numbers or path.name[:2] in numbers]
    with tempfile.TemporaryDirectory() as folder, opened(executable, Path(folder)) as book:
        speeds = measure(book, paths)
    print(*report(speeds), sep="\n")
    print(*broken(speeds), sep="\n", file=sys.stderr)
    return bool(broken(speeds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
