"""The labs follow a slider several times faster than ``interact``; see `benchmark`."""

import os

import benchmark
import pictures
import pytest
import speed
from benchmark import Burst, Result
from shown import names

from attnbook import picture


def alone(test):
    """Mark a test that measures times: done where nothing else runs, which .ci/run sees to."""
    in_ci = os.environ.get("CI", "").lower() in ("true", "1")
    reason = "minutes of measuring, done by .ci/run with nothing beside it; here: "
    reason += "python tests/browser/benchmark.py and python tests/browser/speed.py"
    skip = pytest.mark.skipif(not in_ci or "PYTEST_XDIST_WORKER" in os.environ, reason=reason)
    return pytest.mark.browser(pytest.mark.flaky(reruns=1)(skip(test)))


@alone
def test_labs_are_fast_and_end_on_the_last_value(browser, tmp_path, capsys):
    with benchmark.opened(browser, tmp_path) as book:
        results = benchmark.measure(book)
    with capsys.disabled():  # times are to be read, not judged
        print("", *benchmark.report(results), sep="\n")
    assert results.keys() == {(n, w) for n in benchmark.FASTER for w in benchmark.WAYS}
    assert benchmark.broken(results) == []


@alone
def test_every_lab_keeps_up_and_ends_on_the_last_value(browser, tmp_path, capsys):
    with speed.opened(browser, tmp_path) as book:
        speeds = speed.measure(book)
    with capsys.disabled():
        print("", *speed.report(speeds), sep="\n")
    assert list(dict.fromkeys(one.name for one in speeds)) == names()
    assert speed.broken(speeds) == []


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_are_drawn_without_a_fault(name):
    ways = pictures.PICTURES[name]
    drawn = [ways.draw(ways.compute(n)) for n in (0, 1, pictures.VALUES - 1)]
    assert [picture.check(one) for one in drawn] == [[], [], []]
    assert len(set(map(picture.digest, drawn))) == 3


# ---- the judgement can fail --------------------------------------------------------------------


def results(lab=40.0, interact=250.0, values=(0, 1, 5, benchmark.EVENTS)):
    burst = Burst(list(values), 1.0, 50.0, 0)
    return {
        (name, way): Result(
            [milliseconds - 1, milliseconds, milliseconds + 9],
            burst if name in pictures.PICTURES else None,
        )
        for name in benchmark.FASTER
        for way, milliseconds in (("lab", lab), ("interact", interact))
    }


def test_what_is_promised_is_judged():
    assert benchmark.broken(results()) == []
    assert benchmark.broken(results(lab=400, interact=2500)) == []  # a slow machine
    slow = benchmark.broken(results(lab=55))
    assert slow == [f"{name}: 4.5 times faster, not 5" for name in ("numbers", "head_picker")]
    assert len(benchmark.broken(results(lab=65))) == 4
    older = benchmark.broken(results(values=(0, 5, 1, benchmark.EVENTS)))
    assert len(older) == 6
    assert all("older" in line for line in older)
    last = benchmark.broken(results(values=(0, 1, benchmark.EVENTS - 1)))
    assert len(last) == 6
    assert all("last" in line for line in last)
    assert len(benchmark.broken(results(values=(0, -1, benchmark.EVENTS)))) == 6  # no marker


def test_the_report_tells_median_and_percentile():
    line = list(benchmark.report(results()))[1]
    assert line.split()[:4] == ["numbers", "lab", "40", "49"]
    assert "3 pictures" in line


def test_speeds_are_judged():
    followed = speed.Burst(1.0, 60.0, 20)
    fast = speed.Speed("quick", (30.0, 34.0), followed, followed)
    assert speed.broken([fast]) == []
    assert speed.broken([fast, fast._replace(mouse=followed._replace(settle=451.0))]) == [
        "slowest to settle: 451 ms, more than 3 times the goal of 150"
    ]
    assert len(speed.broken([fast, fast._replace(milliseconds=(181.0,) * 9)])) == 2
    for way in ("keys", "mouse"):
        blank = fast._replace(**{way: followed._replace(faults=("blank",))})
        assert speed.broken([blank]) == ["quick: blank"]
    assert list(speed.report([fast]))[-1].endswith("within the goal of 150 ms")
