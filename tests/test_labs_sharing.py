"""What the labs of chapter 11 draw is what plain formulas and plain loops give."""

import math
import runpy
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from attnbook.configurations import MODELS, cache_bytes_per_position, weights
from attnbook.labs import sharing_keys_and_values as labs

# ---- one slider --------------------------------------------------------------------------------


@pytest.mark.parametrize(("H_kv", "S", "base"), [(1, 256, 0), (3, 1024, 1), (6, 4096, 0)])
def test_sharing_is_what_the_sums_of_the_book_give(H_kv, S, base):
    arrays = labs.compute(H_kv, S, base)
    group = 12 // H_kv
    assert arrays.g.tolist() == [g for g in range(H_kv) for _ in range(group)]
    d, d_h = 768, 64
    for n, heads in ((0, H_kv), (1, 12)):
        shared = 2 * d * heads * d_h
        projections = 2 * S * d * (2 * 12 * d_h + 2 * heads * d_h)
        interactions = 2 * 12 * S * S * 2 * d_h
        expected = (
            shared,
            2 * S * heads * d_h * 2,
            2 * d * d + shared,
            2 * S * shared,
            interactions,
            projections + interactions,
        )
        if n == 0:
            np.testing.assert_array_equal(arrays.amounts, expected)
        else:
            np.testing.assert_allclose(arrays.of_mha, arrays.amounts / expected)
    assert arrays.of_mha[4] == 1
    assert [Fraction(x).limit_denominator(100) for x in arrays.of_mha[[0, 1, 3]]] == [
        Fraction(H_kv, 12)
    ] * 3


def test_the_answer_of_the_chapter_holds_at_its_sliders():
    mqa = labs.compute(1, 1024, 0)
    assert mqa.of_mha[[0, 1, 3]] == pytest.approx(1 / 12)
    assert mqa.of_mha[2] == pytest.approx(0.542, abs=5e-4)
    for S, share in ((256, 0.607), (16384, 0.961)):
        assert labs.compute(1, S, 0).of_mha[5] == pytest.approx(share, abs=5e-4)
        np.testing.assert_array_equal(labs.compute(1, S, 0).of_mha[:5], mqa.of_mha[:5])


def test_the_picture_counts_heads_as_the_slider_says():
    for base in (0, 1):
        picture = labs.sharing(H_kv=3, base=base).picture
        texts = [item.text for item in picture.items if getattr(item, "fill", "") == "#ffffff"]
        shown = [item for item in texts if item.isdigit()]
        assert shown[:12] == [str(h + base) for h in range(12)]
        assert shown[12:] == [str(g + base) for g in range(3)]
        assert f"{11 + base} to {2 + base}" in picture.alt


# ---- the cache ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("t", "chunk", "cached"), [(8, 1, False), (7, 4, False), (5, 2, True)])
def test_scores_are_counted_one_by_one(t, chunk, cached):
    times = np.zeros((8, 8), int)
    seen = 0
    while seen < t:
        end = min(seen + chunk, t)
        for i in range(seen if cached else 0, end):
            for j in range(i + 1):
                times[i, j] += 1
        seen = end
    arrays = labs.compute_cache(t, chunk, cached)
    np.testing.assert_array_equal(arrays.times, times)
    assert arrays.totals[int(cached), t] == times.sum()


def test_the_totals_of_the_chapter():
    one, four, eight = (labs.compute_cache(8, chunk, False).totals for chunk in (1, 4, 8))
    assert one[:, 8].tolist() == [120, 36]
    assert four[:, 8].tolist() == [46, 36]
    assert eight[:, 8].tolist() == [36, 36]
    np.testing.assert_array_equal(one[1], [t * (t + 1) // 2 for t in range(9)])


# ---- what fits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
@pytest.mark.parametrize(("device", "B"), [(8, 1), (24, 16), (160, 4)])
def test_one_position_more_would_not_fit(model, device, B):
    arrays = labs.compute_fits(model.name, device, B)
    assert set(arrays.H_kv) == {1, model.H_kv, model.H_q}
    for n, H_kv in enumerate(arrays.H_kv):
        changed = model._replace(H_kv=H_kv)
        S, room = int(arrays.longest[n]), device * 2**30
        per = 2 * changed.layers * H_kv * changed.d_h * 2
        assert arrays.per_position[n] == per == cache_bytes_per_position(changed)
        if S < 0:
            assert 2 * weights(changed) > room
        else:
            assert 2 * weights(changed) + B * S * per <= room
            assert 2 * weights(changed) + B * (S + 1) * per > room


def test_the_lengths_of_the_chapter():
    arrays = labs.compute_fits("Llama 3 8B", 24, 1)
    assert dict(zip(arrays.H_kv, arrays.longest.tolist(), strict=True)) == {
        32: 15_448,
        8: 74_080,
        1: 621_312,
    }
    sixteen = labs.compute_fits("Llama 3 8B", 24, 16).longest
    np.testing.assert_array_equal(sixteen, arrays.longest // 16)
    assert (labs.compute_fits("Llama 3 8B", 8, 1).longest == -1).all()


# ---- tile by tile ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", labs.ORDERS)
@pytest.mark.parametrize("tile", [1, 3, 4, 12])
def test_each_step_is_the_read_of_the_keys_so_far(tile, order):
    arrays = labs.compute_tiles(tile, 12, order)
    u, v = labs.U[labs.ORDERED[order]], labs.VALUES[labs.ORDERED[order]]
    np.testing.assert_array_equal(arrays.u, u)
    assert len(arrays.o) == 1 + 12 // tile
    for n in range(1, len(arrays.o)):
        read = n * tile
        m = max(u[:read])
        e = [math.exp(x - m) for x in u[:read]]
        assert arrays.m[n] == m
        assert arrays.z[n] == pytest.approx(sum(e), rel=1e-12)
        mean = sum(a * b for a, b in zip(e, v, strict=False)) / sum(e)
        assert arrays.o[n] == pytest.approx(mean, rel=1e-12)
    assert arrays.o[-1] == pytest.approx(arrays.end, rel=1e-12)
    assert arrays.end == pytest.approx(5.091, abs=5e-4)
    few = labs.compute_tiles(tile, 1, order)
    assert len(few.o) == 2


def test_rising_scores_rescale_each_time_and_falling_ones_never():
    rising, falling = (labs.compute_tiles(1, 12, order).m[1:] for order in ("rising", "falling"))
    assert all(a < b for a, b in pairwise(rising))
    assert len(set(falling)) == 1


# ---- memory ------------------------------------------------------------------------------------


def test_the_recording_is_complete_and_plausible():
    peaks = {(p.tile, p.T): p.bytes for p in labs.recorded_peaks()}
    assert {T for tile, T in peaks if tile == 0} == {2**n for n in range(7, 13)}
    for tile in (64, 128, 256, 512):
        lengths = [T for t, T in peaks if t == tile]
        assert lengths == [2**n for n in range(7, 15)]
        long = [peaks[tile, T] for T in lengths if tile < T]
        for one, two in pairwise(long):
            assert one < two < 2.01 * one, "at most linear"
        # no less than the output and its two numbers a query; no array of T x T
        assert all(peaks[tile, T] >= 8 * 66 * T for T in lengths)
        assert peaks[tile, 16384] < 16384**2 * 8 / 100
    for T in (2**n for n in range(7, 13)):
        assert peaks[0, T] == pytest.approx(8 * (2 * T * T + 2 * T * 64), rel=0.01)


def test_the_script_measures_again_what_it_recorded():
    script = runpy.run_path(str(Path(__file__).parents[1] / "figures" / "record_memory.py"))
    peaks = {(p.tile, p.T): p.bytes for p in labs.recorded_peaks()}
    script["measure"](0, 8), script["measure"](8, 8)  # loads what is loaded once
    for tile, T in ((0, 128), (0, 256), (64, 256), (128, 512)):
        again = script["measure"](tile, T)
        assert (again.tile, again.T) == (tile, T)
        assert again.bytes == pytest.approx(peaks[tile, T], rel=0.06)


def test_the_lab_shows_the_recording():
    peaks = {(p.tile, p.T): p.bytes for p in labs.recorded_peaks()}
    arrays = labs.compute_memory(512, 1024)
    assert arrays.tiled[labs.LENGTHS.index(1024)] == peaks[512, 1024]
    assert arrays.dense[labs.LENGTHS.index(4096)] == peaks[0, 4096]
    assert arrays.dense[labs.LENGTHS.index(8192)] == 0
    assert arrays.formula[-1] == 8 * (2 * 16384**2 + 2 * 16384 * 64)
    assert "29.8 %" in labs.caption_memory(arrays)
    for T in (128, 256, 512):
        small = labs.compute_memory(512, T)
        n = labs.LENGTHS.index(T)
        assert small.tiled[n] > small.dense[n]
    assert "9.28 MiB" in labs.caption_memory(labs.compute_memory(64, 16384))
    assert "12.8 MiB" in labs.caption_memory(labs.compute_memory(512, 16384))


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (10 * 2**30, "10.0 GiB")]
)
def test_sizes_in_words(n, text):
    assert labs.size(n) == text
