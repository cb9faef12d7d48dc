"""From the key press to the changed picture, for every lab of the book.

``python tests/browser/speed.py`` prints the times and fails if a promise is broken.

In each lab the slider with the most values is moved: first key by key, then by 60 keys in one
second, to and fro. The clock is that of `benchmark`. A picture is known by its SVG, which the state
of the lab makes here too; so what was shown can be compared with what had to be.
"""

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from benchmark import TRIES, WATCH, Probe
from driver import NO_BROWSER, PICTURE, Book, Chapter, find_browser, opened_book, read
from shown import CHAPTERS, Shown, lab_cells

from attnbook.picture import to_svg

# Milliseconds, printed; a promise is broken at ROOM times as much.
GOALS = {"median over all labs": 40, "slowest lab": 60, "slowest to settle": 150}
ROOM = 3
PRESSES, EVENTS = 6, 60
LONGEST = 1.5  # seconds that the keys of one second may take


class Speed(NamedTuple):
    """What was measured at one lab."""

    name: str
    milliseconds: tuple[float, ...]  # from key press to picture
    settle: float  # ms from the last key of the burst to the last picture
    shown: int  # pictures during the burst
    faults: tuple[str, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


def to_and_fro(n: int, events: int) -> list[int]:
    """Return the places of a slider of ``n`` values, after each of so many steps from its end.

    >>> to_and_fro(3, 5)
    [1, 2, 1, 0, 1]
    """
    period = 2 * (n - 1)
    return [min(k % period, period - k % period) for k in range(1, events + 1)]


def out_of_order(shown: Sequence[str], expected: Sequence[str]) -> list[str]:
    """Return why pictures are not some of those expected, in their order, up to the last.

    >>> out_of_order("ac", "abc"), out_of_order("ab", "abc")
    ([], ['the last picture is not that of the last key'])
    >>> out_of_order("cbc", "abc")
    ['picture 2 of 3 is older than the one before, or of no setting']
    """
    left = iter(expected)
    for k, picture in enumerate(shown, 1):
        if not any(picture == one for one in left):
            return [f"picture {k} of {len(shown)} is older than the one before, or of no setting"]
    last = not shown or shown[-1] != expected[-1]
    return ["the last picture is not that of the last key"] * last


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
    single = single_presses(probe, svgs)
    for _ in range(TRIES):  # where JupyterLab took the focus away, the keys went elsewhere
        lab.settle(i)
        lab.places[i] = 0
        lab.move(i, "Home")
        result = burst(probe, svgs)
        if probe.focused():
            break
    return Speed(lab.name, tuple(single), *result)


def single_presses(probe: Probe, svgs: Sequence[str]) -> list[float]:
    """Return the milliseconds from key to picture, for keys that change the picture."""
    probe.rest(0.5)
    probe.watch()
    places = [0, *to_and_fro(len(svgs), 4 * PRESSES)]
    timed = []  # numbers of the keys whose picture is waited for
    for k, (before, after) in enumerate(itertools.pairwise(places)):
        key = "ArrowRight" if after > before else "ArrowLeft"
        if svgs[before] != svgs[after]:
            timed.append(k)
            probe.press(key)
        else:
            probe.page.keyboard.press(key)
        time.sleep(0.1 + 0.013 * (k % 5))  # out of step with frames
        if len(timed) == PRESSES:
            break
    assert timed, f"{probe.name}: no key changes the picture"
    keys, times, _ = probe.times()
    assert len(keys) == k + 1, f"{probe.name}: {len(keys)} key events of {k + 1}"
    return [shown - keys[k] for k, shown in zip(timed, times[1:], strict=True)]


def burst(probe: Probe, svgs: Sequence[str]) -> tuple[float, int, tuple[str, ...]]:
    """Return settling time, number of pictures and faults of one second of keys."""
    probe.rest(0.6)
    probe.watch()
    places = [0, *to_and_fro(len(svgs), EVENTS)]
    while svgs[places[-1]] == svgs[places[-2]]:  # the last key is to change the picture
        places.pop()
    start = time.monotonic()
    for k, (before, after) in enumerate(itertools.pairwise(places)):
        time.sleep(max(0, start + k / EVENTS - time.monotonic()))
        probe.page.keyboard.press("ArrowRight" if after > before else "ArrowLeft")
    probe.rest(1)
    keys, times, blank = probe.times()
    assert len(keys) == len(places) - 1, f"{probe.name}: {len(keys)} key events came"
    sources = probe.page.evaluate("W.shown.map(({src}) => src)")
    shown = [unquote(src.partition(",")[2]) for src in sources]
    faults = out_of_order(shown, [svgs[place] for place in places])
    faults += [f"{blank} frames without a picture"] * (blank > 0)
    seconds = (keys[-1] - keys[0]) / 1000
    faults += [f"the keys took {seconds:.1f} s"] * (seconds > LONGEST)
    return times[-1] - keys[-1], len(shown) - 1, tuple(faults)


def figures(speeds: Sequence[Speed]) -> dict[str, float]:
    """Return what the goals are about."""
    return {
        "median over all labs": statistics.median(t for s in speeds for t in s.milliseconds),
        "slowest lab": max(speed.median for speed in speeds),
        "slowest to settle": max(speed.settle for speed in speeds),
    }


def report(speeds: Sequence[Speed]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"{'lab':28}{'median':>7}{'most':>6}{'settled':>9}   ms; pictures of {EVENTS} keys"
    for s in speeds:
        line = f"{s.name:28}{s.median:7.0f}{max(s.milliseconds):6.0f}{s.settle:9.0f}   {s.shown}"
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
    with tempfile.TemporaryDirectory() as folder, opened_book(executable, Path(folder)) as book:
        speeds = measure(book, paths)
    print(*report(speeds), sep="\n")
    print(*broken(speeds), sep="\n", file=sys.stderr)
    return bool(broken(speeds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
