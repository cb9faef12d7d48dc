"""What the labs of chapter 02 draw is what the plain formulas give."""

import itertools
import math

import numpy as np
import pytest

from attnbook import directions, style
from attnbook.labs import embeddings_as_directions as labs
from attnbook.labs.embeddings_as_directions import compute_basis, compute_crowd, compute_probe
from attnbook.picture import Line, Rect, Text

ROWS = [(2.0, 1.0), (2.0, 0.5), (1.2, 1.4)]


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def flat(items):
    for item in items:
        if isinstance(item, tuple) and not hasattr(item, "_fields"):
            yield from flat(item)
        else:
            yield item


def drawn(picture, kind):
    return [item for item in flat(picture.items) if isinstance(item, kind)]


# ---- another basis -----------------------------------------------------------------------------


@pytest.mark.parametrize(("theta", "s"), [(0, 1.0), (35, 0.25), (90, 1.5), (180, 0.5)])
def test_coordinates_change_and_the_rest_does_not(theta, s):
    arrays = compute_basis(theta, s)
    rows = [ROWS[0], (s * ROWS[1][0], s * ROWS[1][1]), ROWS[2]]
    np.testing.assert_allclose(arrays.old, rows)
    t = math.radians(theta)
    axes = [(math.cos(t), math.sin(t)), (-math.sin(t), math.cos(t))]
    expected = [[dot(row, axis) for axis in axes] for row in rows]
    np.testing.assert_allclose(arrays.new, expected, atol=1e-12)
    pairs = list(itertools.combinations(rows, 2))
    cosines = [dot(x, y) / math.hypot(*x) / math.hypot(*y) for x, y in pairs]
    np.testing.assert_allclose(arrays.cosines, cosines)
    np.testing.assert_allclose(arrays.distances, [math.dist(x, y) for x, y in pairs])


def test_what_the_chapter_says_about_the_axes():
    largest = {theta: compute_basis(theta, 1.0).new.argmax(1).tolist() for theta in (0, 5, 180)}
    assert largest == {0: [0, 0, 1], 5: [0, 0, 0], 180: [1, 1, 0]}
    for s in (0.25, 0.5, 0.75, 1.0, 1.5):
        said = labs.caption_basis(compute_basis(40, s))
        other = labs.OTHER.format(angle=2, far=3)
        assert (other in said) == (s in (0.25, 0.5, 1.5))


# ---- a crowd of directions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "N", "kind"),
    [
        (100, 50, labs.RANDOM),
        (32, 500, labs.RANDOM),
        (100, 300, labs.EXPLICIT),
        (512, 20, labs.EXPLICIT),
        (128, 100, labs.EXPLICIT),
    ],
)
def test_crowd(n, N, kind):
    arrays = compute_crowd(n, N, kind)
    X = labs._lines(n, kind)[:N]
    angles = [
        math.degrees(math.acos(min(round(abs(x @ y), 12), 1)))
        for x, y in itertools.combinations(X, 2)
    ]
    assert arrays.smallest == pytest.approx(min(angles))
    assert arrays.above == pytest.approx(np.mean([a > 85 for a in angles]))
    counts, _ = np.histogram(angles, labs.EDGES)
    assert counts.sum() == len(angles)  # no angle lies outside of the picture
    np.testing.assert_allclose(arrays.shares * len(angles), counts, atol=1e-9)
    forced = math.degrees(math.acos(math.sqrt(max(N - n, 0) / (n * (N - 1)))))
    assert arrays.forced == pytest.approx(forced)
    assert arrays.smallest <= arrays.forced + 1e-9


def test_no_angle_of_any_crowd_lies_outside_of_the_picture():
    for n, kind in itertools.product((32, 100, 128, 512), (labs.RANDOM, labs.EXPLICIT)):
        assert labs._growth(n, kind).smallest[-1] > labs.EDGES[0]


def test_expected_shares_are_those_of_a_large_sample():
    X = directions.random_directions(1500, 32, seed=9)
    angles = np.degrees(np.arccos(np.abs(X @ X.T)[np.triu_indices(1500, 1)]))
    counts, _ = np.histogram(angles, labs.EDGES)
    np.testing.assert_allclose(counts / len(angles), compute_crowd(32, 5, labs.RANDOM).expected,
                               atol=0.003)  # fmt: skip


def test_the_construction_ends_at_300_in_100_dimensions():
    arrays = compute_crowd(100, 500, labs.EXPLICIT)
    assert arrays.N == 300
    assert arrays.all
    assert labs.ALL in labs.caption_crowd(arrays)
    assert not compute_crowd(100, 200, labs.EXPLICIT).all
    assert not compute_crowd(512, 500, labs.EXPLICIT).all


def test_what_the_chapter_says_about_the_crowd():
    assert compute_crowd(100, 50, labs.RANDOM).smallest == pytest.approx(68.6, abs=0.05)
    assert compute_crowd(100, 300, labs.EXPLICIT).smallest == pytest.approx(85.2, abs=0.05)
    assert compute_crowd(100, 300, labs.EXPLICIT).forced == pytest.approx(85.3, abs=0.05)
    for N, sentence, angle in ((412, labs.POSSIBLE, "85.0017"), (413, labs.EXCLUDED, "84.9997")):
        said = labs.caption_crowd(compute_crowd(100, N, labs.RANDOM))
        assert sentence.format(angle=angle) in said
    assert compute_crowd(512, 5, labs.RANDOM).smallest < 85
    for n, angle in ((512, 86.4), (128, 82.8), (32, 75.5)):
        assert compute_crowd(n, 500, labs.EXPLICIT).smallest == pytest.approx(angle, abs=0.05)


def test_the_alternative_text_tells_the_flags():
    said = labs.draw_crowd(compute_crowd(100, 50, labs.RANDOM)).alt
    assert "upright lines mark the smallest angle, 85 degrees." in said
    assert "38.0 percent are not above 85" in said
    said = labs.draw_crowd(compute_crowd(100, 300, labs.EXPLICIT)).alt
    assert "85 degrees and the forced angle, 85.3 degrees." in said


def test_a_line_beyond_85_degrees_is_joined_to_its_text():
    for N, kind, joined in ((500, labs.EXPLICIT, 1), (500, labs.RANDOM, 0)):
        picture = labs.draw_crowd(compute_crowd(512, N, kind))
        lines = [x for x in drawn(picture, Line) if x.stroke != style.CARD]  # without rims
        level = [x for x in lines if x.y1 == x.y2 == 128]
        assert len(level) == joined


def test_the_bars_have_the_heights_of_the_shares():
    arrays = compute_crowd(128, 100, labs.EXPLICIT)
    bars = drawn(labs.draw_crowd(arrays), Rect)
    np.testing.assert_allclose([bar.height / 230 for bar in bars], arrays.shares, atol=1e-9)


# ---- a probe for features ----------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m", "k"), [(512, 2048, 5), (64, 256, 200), (128, 512, 50)])
def test_probe(n, m, k):
    D = directions.random_directions(2048, n, seed=1)[:m]
    rng = np.random.default_rng(2)
    orders = [rng.permutation(m) for _ in range(labs.VECTORS)]
    on, off = [], []
    for order in orders:
        active = set(order[:k].tolist())
        x = sum(D[j] for j in sorted(active))
        for i in range(m):
            (on if i in active else off).append(float(x @ D[i]))
    arrays = compute_probe(n, m, k)
    assert arrays.miss == pytest.approx(np.mean([r < 0.5 for r in on]))
    assert arrays.alarm == pytest.approx(np.mean([r > 0.5 for r in off]))
    assert arrays.sd_on == pytest.approx(math.sqrt(np.mean([(r - 1) ** 2 for r in on])))
    assert arrays.sd_off == pytest.approx(math.sqrt(np.mean([r**2 for r in off])))
    for shares, readings in ((arrays.on, on), (arrays.off, off)):
        inside = np.clip(readings, labs.BINS[0], labs.BINS[-1] - 1e-9)
        counts, _ = np.histogram(inside, labs.BINS)
        np.testing.assert_allclose(shares, counts / len(readings), atol=1e-12)


def test_the_spread_is_as_statement_2_13_says():
    for n, m, k in itertools.product((128, 512), (512, 2048), (5, 50, 200)):
        arrays = compute_probe(n, m, k)
        assert arrays.sd_off == pytest.approx(math.sqrt(k / n), rel=0.1)
        if k > 5:
            assert arrays.sd_on == pytest.approx(math.sqrt((k - 1) / n), rel=0.1)


def test_one_feature_alone_is_read_exactly():
    arrays = compute_probe(64, 256, 1)
    assert arrays.sd_on < 1e-12
    assert arrays.miss == 0
    assert arrays.on.max() == 1


def test_what_the_chapter_says_about_the_probe():
    arrays = compute_probe(512, 2048, 50)
    assert arrays.sd_off == pytest.approx(0.31, abs=0.005)
    assert 0.05 < arrays.miss < 0.065
    assert 0.05 < arrays.alarm < 0.065
    assert 90 < arrays.alarm * 1998 < 130
    fewer = compute_probe(512, 256, 50)
    assert fewer.alarm == pytest.approx(arrays.alarm, abs=0.015)
    assert fewer.miss == pytest.approx(arrays.miss, abs=0.02)
    assert compute_probe(128, 2048, 50).sd_off == pytest.approx(2 * arrays.sd_off, rel=0.05)
    calm = compute_probe(512, 2048, 5)
    assert calm.miss == calm.alarm == 0


def test_the_probe_tells_its_numbers():
    arrays = compute_probe(128, 512, 50)
    texts = [item.text for item in drawn(labs.draw_probe(arrays), Text)]
    assert labs.WRONG.format(share=f"{100 * arrays.miss:.2f}") in texts
    assert labs.WRONG.format(share=f"{100 * arrays.alarm:.2f}") in texts
    assert f"{arrays.alarm * 462:.1f} false alarms" in labs.caption_probe(arrays)
