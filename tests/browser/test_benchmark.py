"""The labs follow a slider several times faster than ``interact``; see `benchmark`."""

import os

import benchmark
import pictures
import pytest
from benchmark import Burst, Result

from attnbook import picture


@pytest.mark.browser
@pytest.mark.skipif(
    os.environ.get("CI", "").lower() not in ("true", "1"),
    reason="a minute and a half of measuring, done in CI; here: python tests/browser/benchmark.py",
)
def test_labs_are_fast_and_end_on_the_last_value(browser, tmp_path, capsys):
    with benchmark.opened(browser, tmp_path) as book:
        results = benchmark.measure(book)
    with capsys.disabled():  # times are to be read, not judged
        print("", *benchmark.report(results), sep="\n")
    assert results.keys() == {(n, w) for n in pictures.PICTURES for w in benchmark.WAYS}
    assert benchmark.broken(results) == []


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
        (name, way): Result([milliseconds - 1, milliseconds, milliseconds + 9], burst)
        for name in pictures.PICTURES
        for way, milliseconds in (("lab", lab), ("interact", interact))
    }


def test_what_is_promised_is_judged():
    assert benchmark.broken(results()) == []
    assert benchmark.broken(results(lab=400, interact=2500)) == []  # a slow machine
    slow = benchmark.broken(results(lab=55))
    assert slow == ["numbers: 4.5 times faster, not 5"]
    assert len(benchmark.broken(results(lab=65))) == 3
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
