"""The look, the labels, the two renderers, the layout check and the diagrams."""

import hashlib
import io
import itertools
import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from attnbook import diagrams, style
from attnbook.diagrams import Entry, Panel
from attnbook.markup import BAR, runs, to_html, to_plain
from attnbook.picture import (
    Circle,
    Line,
    Picture,
    Polygon,
    Polyline,
    Rect,
    Segments,
    Text,
    bundle,
    check,
    digest,
    to_png,
    to_svg,
)

SVG = "{http://www.w3.org/2000/svg}"


def gallery() -> Picture:
    """One picture with everything in it."""
    rng = np.random.default_rng(3)
    A = rng.dirichlet(np.ones(4), size=3)
    counts, edges = np.histogram(rng.normal(size=400), bins=12, range=(-4, 4))
    hist = Panel(470, 60, 250, 110, (-4, 4), (0, 150))
    line = Panel(90, 350, 200, 150, (0, 4), (-1, 1))
    bar = Panel(470, 350, 250, 120, y_limits=(0, 1.2))
    x = np.linspace(0, 4, 9)
    allowed = np.array([[1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1]], bool)
    items = [
        diagrams.heat_map(
            80,
            70,
            A,
            row_labels=["$q_1$", "$q_2$", "$q_3$"],
            column_labels=[f"$k_{j}$" for j in range(1, 5)],
            allowed=allowed,
        ),
        diagrams.colour_legend(320, 70, 132),
        diagrams.axes(hist, title="Scores $QK^⊤/√d_k$", x_label="$U$", y_label="count"),
        diagrams.histogram(hist, counts, edges),
        diagrams.vertical(hist, 2, "$σ$ = 2"),
        diagrams.axes(line, title="Curves", x_label="$τ$"),
        diagrams.curve(line, x, np.sin(x), style.QUERY, marker="circle"),
        diagrams.curve(line, x, np.cos(x), style.KEY, dash=style.DASHES[1], marker="square"),
        diagrams.end_labels(
            line, [(np.sin(4), "sine", style.QUERY), (np.cos(4), "cosine", style.KEY)]
        ),
        diagrams.axes(bar, title="Weights", x_ticks=()),
        diagrams.bars(bar, A[0], ["I", "love", "GPU", "code"]),
        diagrams.horizontal(bar, 1, "all"),
        diagrams.matrix(80, 610, [[1.5, -2], [0, 3]], f"$V{BAR}$", digits=1, fill=style.VALUE),
        diagrams.arrow(230, 640, 320, 640, style.GRADIENT),
        diagrams.legend(
            470,
            590,
            [Entry("swatch", style.SCORE), Entry("line & marker", style.KEY, (), "triangle")],
        ),
        Polygon(((400, 590), (430, 590), (415, 620)), style.OUTPUT, opacity=0.5),
    ]
    return Picture(800, 700, items, alt="Everything <that> & can be drawn.")


def texts(svg: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}text"))


def ink(picture: Picture, scale: float = 2) -> tuple[float, float, float, float]:
    """Return the box of all dark pixels of the PNG in picture coordinates."""
    grey = np.asarray(Image.open(io.BytesIO(to_png(picture, scale))).convert("L"), int)
    inner = grey[8:-8, 8:-8] < 128
    rows, columns = np.flatnonzero(inner.any(1)) + 8, np.flatnonzero(inner.any(0)) + 8
    return tuple(v / scale for v in (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))


# ---------------------------------------------------------------- style


def test_contrast_is_that_of_wcag():
    assert style.contrast("#000000", "#ffffff") == 21
    assert style.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert style.contrast("#ffffff", "#777777") == style.contrast("#777777", "#ffffff")


@pytest.mark.parametrize("name", ["INK", "MUTED", *(n.upper() for n in style.OBJECTS)])
def test_texts_can_be_read_on_the_card(name):
    assert style.contrast(getattr(style, name), style.CARD) >= 4.5


def test_marks_stand_out():
    assert style.contrast(style.HATCH, style.CARD) >= 4.5
    assert style.contrast(style.HATCH, style.FORBIDDEN) >= 4.5
    for scale in (style.SEQUENTIAL, style.DIVERGING):
        assert style.contrast(scale[-1], style.CARD) >= 3


@pytest.mark.parametrize("scale", [style.SEQUENTIAL, style.DIVERGING])
def test_numbers_can_be_read_on_every_shade(scale):
    for t in np.linspace(0, 1, 201):
        ground = style.shade(scale, t)
        assert style.contrast(style.text_on(ground), ground) >= 4.5


def test_scales_are_ordered_by_lightness():
    def lightness(scale):
        return [style.contrast(style.shade(scale, t), "#000000") for t in np.linspace(0, 1, 41)]

    rising = np.diff(lightness(style.SEQUENTIAL))
    assert (rising < 0).all()
    half = np.diff(lightness(style.DIVERGING))
    assert (half[:20] > 0).all()
    assert (half[20:] < 0).all()


def test_object_colours_differ_for_every_eye():
    """Differences in CIELAB, for full vision and three kinds of colour blindness (Machado 2009)."""
    eyes = {
        "full": np.eye(3),
        "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    }
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )

    def lab(colour, eye):
        rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        xyz = to_xyz @ np.clip(np.array(eye) @ linear, 0, 1) / [0.9505, 1, 1.089]
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for eye in eyes.values():
        for a, b in itertools.combinations(style.OBJECTS.values(), 2):
            assert np.linalg.norm(lab(a, eye) - lab(b, eye)) > 20, (a, b)


def test_sizes_can_be_read_from_the_back_row():
    assert style.TEXT >= 16
    assert style.TITLE > style.TEXT
    assert style.CELL >= 14


# ---------------------------------------------------------------- labels


def test_runs_of_a_formula():
    found = [(run.text, run.italic, run.level) for run in runs("a $W_Q^{(h)}/√d_k$ b")]
    assert found == [
        ("a ", False, 0),
        ("W", True, 0),
        ("Q", True, -1),
        ("(", False, 1),
        ("h", True, 1),
        (")", False, 1),
        ("/√", False, 0),
        ("d", True, 0),
        ("k", True, -1),
        (" b", False, 0),
    ]


def test_a_bar_stays_with_its_letter():
    assert [run.text for run in runs(f"$QV{BAR}$")] == [f"QV{BAR}"]
    assert runs(f"$A{BAR}$")[0].text == "Ā"  # one character where there is one


@pytest.mark.parametrize("label", ["$d_k", "$d_$", "$d_{k$", "$}$", "$x^$"])
def test_a_broken_formula_is_refused(label):
    with pytest.raises(ValueError, match=re.escape(repr(label))):
        runs(label)


def test_outside_formulas_everything_stands_for_itself():
    assert runs("a_b ^ {c}") == runs("a_b ^ {c}")
    assert to_plain("a_b ^ {c}") == "a_b ^ {c}"
    assert to_html("a_b < {c}") == "a_b &lt; {c}"


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    ("item", "error", "told"),
    [
        (Rect(0, math.nan, 1, 1), ValueError, "finite numbers in y"),
        (Rect(0, 0, -1, 1), ValueError, "width not below 0"),
        (Line(0, 0, math.inf, 1), ValueError, "finite numbers in x2"),
        (Segments(((0, 0, 1, math.nan),)), ValueError, "finite numbers in lines"),
        (Segments(((0, 0, 1),)), ValueError, "lines (x1, y1, x2, y2), at least one"),
        (Segments(iter([(0, 0, 1, 1)])), TypeError, "a tuple in lines"),
        (Polyline(zip((0, 1), (0, 1))), TypeError, "a tuple in points"),  # noqa: B905
        (Segments(()), ValueError, "at least one"),
        (Polyline(((0, 0), (1, math.nan))), ValueError, "finite numbers in points"),
        (Circle(0, 0, 1, "red"), ValueError, "colour #rrggbb in fill, got 'red'"),
        (Text(0, 0, "a", fill="#FFF"), ValueError, "colour #rrggbb in fill"),
        (Text(0, 0, "  "), ValueError, "words in text"),
        (Text(0, 0, 3), ValueError, "words in text"),
        (Text(0, 0, "a", anchor="left"), ValueError, "anchor start, middle or end"),
        ("words", TypeError, "expected primitives"),
        (3.5, TypeError, "expected primitives"),
    ],
)
def test_a_bad_item_is_refused(item, error, told):
    with pytest.raises(error, match=re.escape(told)):
        Picture(10, 10, [item], alt="x")


@pytest.mark.parametrize(("width", "alt"), [(0, "x"), (math.inf, "x"), (10, ""), (10, " \n")])
def test_a_bad_card_is_refused(width, alt):
    with pytest.raises(ValueError, match="expected"):
        Picture(width, 10, [], alt=alt)


def test_a_picture_cannot_be_changed_by_its_maker():
    items = [Rect(0, 0, 1, 1)]
    picture = Picture(10, 10, items, alt="x")
    items.append(Rect(1, 1, 1, 1))
    assert len(picture.items) == 1
    with pytest.raises(AttributeError):
        picture.alt = "y"


def test_groups_are_drawn_in_their_order():
    a, b, c = Rect(0, 0, 1, 1), Rect(1, 1, 1, 1), Rect(2, 2, 1, 1)
    assert Picture(9, 9, [a, [(b,), ()], c], alt="x").items == (a, b, c)


# ---------------------------------------------------------------- SVG


def test_svg_is_well_formed_and_speaks():
    root = ET.fromstring(to_svg(gallery()))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Everything <that> & can be drawn."
    assert root.get("viewBox") == "0 0 800 700"
    card = root[0]
    assert (card.tag, card.get("fill")) == (f"{SVG}rect", style.CARD)


def test_svg_holds_every_text():
    picture = gallery()
    found = ["".join(element.itertext()) for element in texts(to_svg(picture))]
    wanted = [
        "".join(run.text for run in runs(i.text)) for i in picture.items if isinstance(i, Text)
    ]
    assert found == wanted
    assert "line & marker" in found


def test_svg_numbers_have_one_decimal():
    drawn = re.sub(r">[^<]*<", "><", to_svg(gallery()))  # without what is printed
    numbers = re.findall(r"\d+\.(\d+)", drawn)
    assert len(numbers) > 50
    assert {len(decimals) for decimals in numbers} == {1}


def test_rounding_does_not_hang_on_the_last_bits():
    tie = 10.25
    for x in (np.nextafter(tie, 0), tie, np.nextafter(tie, 99), tie - 1e-12, tie + 1e-12):
        assert 'x="10.2"' in to_svg(Picture(20, 20, [Rect(x, 0, 1, 1)], alt="x"))
    assert 'x="0"' in to_svg(Picture(20, 20, [Rect(-0.01, 0, 1, 1)], alt="x"))


def test_numpy_numbers_are_drawn_like_plain_ones():
    plain = Picture(20, 20, [Rect(1.5, 2, 3, 4, "#000000")], alt="x")
    arrays = Picture(20, 20, [Rect(*np.array([1.5, 2, 3, 4]), "#000000")], alt="x")
    assert to_svg(plain) == to_svg(arrays)


def test_subscripts_return_to_the_line():
    element = texts(to_svg(Picture(90, 30, [Text(9, 15, "$d_k + U^⊤$ end")], alt="x")))[0]
    shifts = [float(span.get("dy")) for span in element if span.get("dy")]
    assert len(shifts) == 4
    assert shifts[0] > 0 > shifts[2]
    assert sum(shifts) == pytest.approx(0)


def test_both_renderers_are_the_same_in_every_process():
    code = (
        "import hashlib, sys; sys.path.insert(0, 'tests');"
        "from test_picture import gallery; from attnbook.picture import digest, to_png;"
        "print(digest(gallery()), hashlib.sha256(to_png(gallery())).hexdigest())"
    )
    here = f"{digest(gallery())} {hashlib.sha256(to_png(gallery())).hexdigest()}"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code]
        there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert there.stdout.strip() == here


def test_svg_needs_no_matplotlib():
    code = (
        "import sys; from attnbook.picture import *; from attnbook import diagrams;"
        "to_svg(Picture(9, 9, [Text(1, 1, 'a')], alt='x'));"
        "assert not {'matplotlib', 'ipywidgets', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_png_needs_no_pyplot():
    code = (
        "import sys; from attnbook.picture import *;"
        "to_png(Picture(9, 9, [Text(1, 1, 'a')], alt='x'));"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_digest_tells_pictures_apart():
    moved = Picture(20, 20, [Rect(1.1, 0, 1, 1)], alt="x")
    assert digest(moved) == digest(Picture(20, 20, [Rect(1.1000001, 0, 1, 1)], alt="x"))
    assert digest(moved) != digest(Picture(20, 20, [Rect(1.2, 0, 1, 1)], alt="x"))


# ---------------------------------------------------------------- PNG


def test_png_is_stable_and_changes_no_setting():
    import matplotlib

    before = dict(matplotlib.rcParams)
    picture = gallery()
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 40, "image.origin": "lower"}):
        strange = to_png(picture)
    assert strange == to_png(picture)
    assert dict(matplotlib.rcParams) == before
    assert Image.open(io.BytesIO(strange)).size == (1600, 1400)
    assert Image.open(io.BytesIO(to_png(picture, 1))).size == (800, 700)


@pytest.mark.parametrize(
    ("item", "box"),
    [
        (Rect(20, 30, 40, 10, "#000000"), (20, 30, 60, 40)),
        (Rect(20, 30, 40, 10, "#000000", radius=4), (20, 30, 60, 40)),
        (Line(20, 30, 60, 30, "#000000", 2), (20, 29, 60, 31)),
        (Segments(((20, 30, 30, 30), (40, 30, 60, 30)), "#000000", 2), (20, 29, 60, 31)),
        (Polyline(((20, 30), (60, 30), (60, 50)), "#000000", 2), (20, 29, 61, 50)),
        (Polygon(((20, 30), (60, 30), (60, 50)), "#000000"), (20, 30, 60, 50)),
        (Circle(40, 40, 15, "#000000"), (25, 25, 55, 55)),
        (Circle(40, 40, 15, None, "#000000", 2), (24, 24, 56, 56)),
    ],
)
def test_png_draws_shapes_where_they_are(item, box):
    assert ink(Picture(100, 80, [item], alt="x")) == pytest.approx(box, abs=1)


def test_png_draws_colours_and_opacity():
    items = [
        Rect(20, 20, 20, 20, "#6d0693"),
        Rect(50, 20, 20, 20, "#000000", opacity=0.5),
        Rect(80, 20, 20, 20, None, "#ff0000", 8),
    ]
    image = Image.open(io.BytesIO(to_png(Picture(120, 60, items, alt="x"), 1)))
    assert image.getpixel((30, 30)) == (0x6D, 0x06, 0x93, 255)
    assert image.getpixel((60, 30))[:3] == pytest.approx((126, 126, 125), abs=2)
    assert image.getpixel((80, 30)) == (255, 0, 0, 255)
    assert image.getpixel((90, 30))[:3] == (0xFD, 0xFD, 0xFB)
    assert image.getpixel((0, 0))[3] == 0  # outside the round corner nothing is drawn


def test_png_dashes():
    dashed = Picture(100, 40, [Line(10, 20, 90, 20, "#000000", 2, (10, 10))], alt="x")
    assert 'stroke-dasharray="10 10"' in to_svg(dashed)
    row = np.asarray(Image.open(io.BytesIO(to_png(dashed, 1))).convert("L"))[20]
    assert row[12] < 99
    assert row[25] > 200
    assert row[32] < 99


@pytest.mark.parametrize("anchor", ["start", "middle", "end"])
@pytest.mark.parametrize("label", ["HHH", "$H_kH$", "$H^{(h)}$ H"])
def test_both_renderers_put_a_text_at_the_same_anchor(anchor, label):
    """In SVG the anchor is an attribute; in PNG the ink must lie where this attribute puts it."""
    picture = Picture(200, 60, [Text(100, 30, label, 20, "#000000", anchor)], alt="x")
    element = texts(to_svg(picture))[0]
    x0, _, x1, _ = ink(picture, 4)
    assert float(element.get("x")) == 100
    assert element.get("text-anchor", "start") == anchor
    reach = {"start": x0 - 100, "middle": (x0 + x1) / 2 - 100, "end": 100 - x1}[anchor]
    assert abs(reach) < 3  # the bearing of a letter is about two pixels here
    # The baseline of the SVG is the foot of the capitals of the PNG.
    capitals = Picture(200, 60, [Text(100, 30, "HHH", 20, "#000000", anchor)], alt="x")
    assert ink(capitals, 4)[3] == pytest.approx(float(element.get("y")), abs=0.5)
    assert ink(capitals, 4)[1] == pytest.approx(60 - float(element.get("y")), abs=0.5)


def test_png_subscripts_and_superscripts_leave_the_line():
    def box(label):
        return ink(Picture(90, 60, [Text(20, 30, label, 20, "#000000")], alt="x"), 4)

    assert box("$H_x$")[3] > box("H")[3] + 2
    assert box("$H^H$")[1] < box("H")[1] - 2
    assert box("$H_x$")[2] > box("H")[2] + 5
    assert box(f"$V{BAR}$")[1] < box("V")[1] - 2


def test_png_rotates_upwards():
    picture = Picture(
        60, 200, [Text(30, 100, "HHHHHH", 20, "#000000", "middle", rotate=-90)], alt="x"
    )
    x0, y0, x1, y1 = ink(picture)
    assert y1 - y0 > 3 * (x1 - x0)
    assert (y0 + y1) / 2 == pytest.approx(100, abs=1.5)
    start = Picture(60, 200, [Text(30, 100, "HHHHHH", 20, "#000000", rotate=-90)], alt="x")
    assert ink(start)[3] == pytest.approx(100, abs=3)  # it begins at the anchor and climbs
    assert 'transform="rotate(-90 30 100)"' in to_svg(picture)


def test_bundle_has_a_still_only_on_demand():
    picture = gallery()
    data, metadata = bundle(picture)
    assert set(data) == {"image/svg+xml", "image/png", "text/plain"}
    assert metadata == {"image/png": {"width": 800, "height": 700}}
    assert data["text/plain"] == picture.alt
    fast, nothing = bundle(picture, still=False)
    assert set(fast) == {"image/svg+xml", "text/plain"}
    assert nothing == {}
    assert picture._repr_mimebundle_() == (data, metadata)


# ---------------------------------------------------------------- check


def faults(*items, width=800, height=200):
    return check(Picture(width, height, items, alt="x"))


def test_check_finds_nothing_in_a_good_picture():
    assert check(gallery()) == []


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([Text(20, 50, "one"), Text(40, 55, "two")], "'two' overlaps 'one'"),
        ([Text(780, 50, "beyond")], "'beyond' leaves the card"),
        ([Text(20, 4, "above")], "'above' leaves the card"),
        ([Text(400, 190, "standing", rotate=90)], "'standing' leaves the card"),
        ([Rect(790, 10, 20, 20)], "leaves the card"),
        ([Text(20, 50, "small", 15)], "'small' is too small: 15.0"),
        ([Text(20, 50, "0.25", 13)], "'0.25' is too small: 13.0"),
        ([Text(20, 50, "faint", fill="#999999")], "'faint' is too faint"),
        ([Rect(10, 10, 90, 90, "#222222"), Text(20, 50, "dark")], "too faint: contrast"),
        ([Text(20, 50, "中")], "characters the font lacks: 中"),
    ],
)
def test_check_finds(items, told):
    found = faults(*items)
    assert len(found) == 1
    assert told in found[0]


def test_check_sees_through_what_lies_beside_and_above():
    dark = Rect(10, 10, 90, 90, "#222222")
    assert faults(dark, Text(20, 50, "dark", fill="#ffffff")) == []
    assert faults(dark, Text(200, 50, "beside")) == []
    assert faults(Rect(10, 10, 90, 90, "#222222", opacity=0.05), Text(20, 50, "veil")) == []
    assert faults(Text(20, 50, "0.25", 14), Text(90, 50, "apart")) == []


# ---------------------------------------------------------------- diagrams


def test_numbers_are_rounded_and_signed():
    assert diagrams.number(0.126, 2) == "0.13"
    assert diagrams.number(2.5, 0) == "2"
    assert diagrams.number(-0.0001, 2) == "0.00"
    assert diagrams.number(-3, 1) == "−3.0"
    assert diagrams.number(0.1 + 0.2, 1) == diagrams.number(0.3, 1) == "0.3"


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"),
        (0, 10, "0 2 4 6 8 10"),
        (-4, 4, "−4 −2 0 2 4"),
        (0, 3600, "0 1000 2000 3000"),
        (0.01, 0.034, "0.010 0.015 0.020 0.025 0.030"),
        (-0.3, 0.7, "−0.2 0.0 0.2 0.4 0.6"),
        (7, 8, "7.0 7.2 7.4 7.6 7.8 8.0"),
    ],
)
def test_ticks_are_round_numbers(low, high, wanted):
    found = diagrams.ticks(low, high)
    assert " ".join(text for _, text in found) == wanted
    assert all(low <= value <= high for value, _ in found)


def test_ticks_of_any_interval_are_few_and_even():
    rng = np.random.default_rng(5)
    for low, width in zip(rng.normal(size=300) * 50, 10 ** rng.uniform(-3, 4, 300), strict=True):
        found = [value for value, _ in diagrams.ticks(low, low + width)]
        assert 2 <= len(found) <= 6
        np.testing.assert_allclose(np.diff(found), found[1] - found[0], rtol=1e-6)
        assert len({text for _, text in diagrams.ticks(low, low + width)}) == len(found)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (math.nan, 1)])
def test_ticks_of_an_empty_interval_are_refused(low, high):
    with pytest.raises(ValueError, match="expected low < high"):
        diagrams.ticks(low, high)


def test_a_panel_maps_values_to_places():
    panel = Panel(100, 50, 200, 80, (-2, 2), (0, 10))
    assert (panel.x(-2), panel.x(0), panel.x(2)) == (100, 200, 300)
    assert (panel.y(0), panel.y(10), panel.y(2.5)) == (130, 50, 110)
    assert (panel.right, panel.bottom) == (300, 130)
    with pytest.raises(ValueError, match=r"expected y between 0 and 10, got 10\.5"):
        panel.y(10.5)
    with pytest.raises(ValueError, match="expected x between"):
        panel.x(math.nan)


def test_axes_put_ticks_at_their_values():
    panel = Panel(100, 50, 200, 80, (0, 4), (0, 10))
    labels = {i.text: i for i in diagrams.axes(panel) if isinstance(i, Text)}
    ticks = [t for t in diagrams.axes(panel, y_ticks=()) if isinstance(t, Text)]
    assert [(t.text, t.x) for t in ticks] == [(str(v), panel.x(v)) for v in range(5)]
    assert labels["10"].y == panel.y(10)
    assert labels["10"].x < panel.left


def test_histogram_bars_have_the_heights_of_the_counts():
    counts, edges = np.histogram(np.random.default_rng(0).normal(size=500), bins=9)
    panel = Panel(10, 20, 180, 100, (edges[0], edges[-1]), (0, counts.max()))
    bars = diagrams.histogram(panel, counts, edges)
    heights = np.array([bar.height for bar in bars])
    np.testing.assert_allclose(heights, 100 * counts / counts.max())
    np.testing.assert_allclose([bar.x for bar in bars], 10 + 20 * np.arange(9) + 0.5)
    np.testing.assert_allclose([bar.y + bar.height for bar in bars], panel.bottom)
    with pytest.raises(ValueError, match="one more edge than counts, got 9 and 9"):
        diagrams.histogram(panel, counts, edges[1:])


def test_bars_have_the_heights_of_their_values_and_print_them():
    values = [0.25, -0.5, 0.0, 1.0]
    panel = Panel(0, 0, 400, 150, y_limits=(-0.5, 1))
    items = diagrams.bars(panel, values, ["a", "b", "c", "d"])
    bars = [item for item in items if isinstance(item, Rect)]
    assert [bar.height for bar in bars] == pytest.approx([25, 50, 0, 100])
    assert bars[0].y + bars[0].height == pytest.approx(panel.y(0))
    assert bars[1].y == pytest.approx(panel.y(0))
    assert [bar.x + bar.width / 2 for bar in bars] == pytest.approx([50, 150, 250, 350])
    assert all(a.x + a.width < b.x for a, b in itertools.pairwise(bars))
    printed = [item.text for item in items if isinstance(item, Text)]
    assert printed == ["0.25", "−0.50", "0.00", "1.00", "a", "b", "c", "d"]
    with pytest.raises(ValueError, match="expected 4 labels or none, got 2"):
        diagrams.bars(panel, values, ["a", "b"])


def test_a_curve_runs_through_its_points():
    panel = Panel(100, 50, 200, 80, (0, 4), (0, 10))
    line, *marks = diagrams.curve(panel, [0, 2, 4], [0, 5, 10], "#000000", marker="circle")
    assert line.points == ((100, 130), (200, 90), (300, 50))
    assert [(m.x, m.y) for m in marks] == list(line.points)
    with pytest.raises(ValueError, match="expected y between"):
        diagrams.curve(panel, [0, 1], [0, 11])


def test_markers_have_different_shapes():
    drawn = {
        to_svg(Picture(40, 40, [diagrams.mark(20, 20, m, "#000000")], alt="x"))
        for m in style.MARKERS
    }
    assert len(drawn) == len(style.MARKERS)
    with pytest.raises(ValueError, match="expected a marker among"):
        diagrams.mark(0, 0, "star", "#000000")


def test_end_labels_keep_their_order_and_do_not_touch():
    panel = Panel(60, 20, 200, 160)
    labels = [(v, f"v{i}", "#000000") for i, v in enumerate([0.0, 0.02, 0.9, 0.91, 0.05])]
    items = diagrams.end_labels(panel, labels)
    assert [item.text for item in items] == ["v3", "v2", "v4", "v1", "v0"]
    assert all(b.y - a.y >= 16 for a, b in itertools.pairwise(items))
    assert all(panel.top <= item.y <= panel.bottom for item in items)
    assert faults(*items) == []


def test_heat_map_cells_lie_as_in_the_matrix():
    values = np.arange(6).reshape(2, 3) / 5
    items = diagrams.heat_map(50, 40, values, cell=(60, 30))
    cells = [item for item in items if isinstance(item, Rect) and item.fill]
    numbers = [item for item in items if isinstance(item, Text)]
    assert [(c.x, c.y) for c in cells[:4]] == [(50, 40), (110, 40), (170, 40), (50, 70)]
    assert [n.text for n in numbers] == ["0.00", "0.20", "0.40", "0.60", "0.80", "1.00"]
    assert [c.fill for c in cells] == [style.shade(style.SEQUENTIAL, v) for v in values.flat]
    assert all(style.contrast(n.fill, c.fill) >= 4.5 for n, c in zip(numbers, cells, strict=True))
    assert all((n.x, n.y) == (c.x + 30, c.y + 15) for n, c in zip(numbers, cells, strict=True))


def test_heat_map_prints_numbers_up_to_eight():
    def numbers(T, S):
        items = diagrams.heat_map(0, 0, np.zeros((T, S)))
        return sum(isinstance(item, Text) for item in items)

    assert numbers(8, 8) == 64
    assert numbers(2, 9) == 0
    assert numbers(9, 1) == 0


def test_heat_map_hatches_what_is_forbidden():
    allowed = [[True, False], [True, True]]
    items = diagrams.heat_map(0, 0, [[0.5, 9.0], [0.5, 0.5]], cell=(60, 40), allowed=allowed)
    (hatching,) = [item for item in items if isinstance(item, Segments)]  # one for all cells
    assert sum(isinstance(item, Text) for item in items) == 3
    assert len(hatching.lines) > 5
    for line in hatching.lines:
        assert all(60 <= x <= 120 and 0 <= y <= 40 for x, y in (line[:2], line[2:]))
        assert line[0] + line[1] == line[2] + line[3]  # parallel
    assert not [i for i in diagrams.heat_map(0, 0, [[0.5]]) if isinstance(i, Segments)]


def test_heat_map_refuses_values_beyond_its_scale():
    with pytest.raises(ValueError, match=r"expected cell \(0, 1\) between 0 and 1, got 1\.5"):
        diagrams.heat_map(0, 0, [[0.5, 1.5]])
    with pytest.raises(ValueError, match="expected 1 row_labels or none, got 2"):
        diagrams.heat_map(0, 0, [[0.5]], row_labels=["a", "b"])


def test_diverging_heat_map_is_white_in_the_middle():
    items = diagrams.heat_map(0, 0, [[-2, 0, 2]], limits=(-2, 2), scale=style.DIVERGING)
    fills = [item.fill for item in items if isinstance(item, Rect) and item.fill]
    assert fills == [style.DIVERGING[0], style.WHITE, style.DIVERGING[-1]]


def test_matrix_prints_its_numbers_in_order():
    items = diagrams.matrix(20, 30, [[1, 2, 3], [4, 5, 6]], "$Q$", digits=0)
    found = [item for item in items if isinstance(item, Text)]
    assert [item.text for item in found] == ["1", "2", "3", "4", "5", "6", "$Q$"]
    assert found[1].x > found[0].x
    assert found[3].y > found[0].y


def test_matrix_marks_cells_and_prints_texts():
    grounds = [[None, style.WEIGHT]]
    items = diagrams.matrix(20, 30, [["·", 2]], cell=(40, 30), digits=0, grounds=grounds)
    (mark,) = [item for item in items if isinstance(item, Rect)]
    plain, marked = [item for item in items if isinstance(item, Text)]
    assert (plain.text, plain.fill) == ("·", style.INK)
    assert (marked.text, marked.fill) == ("2", style.text_on(style.WEIGHT))
    assert mark.fill == style.WEIGHT
    assert mark.x < marked.x < mark.x + mark.width
    assert not mark.x < plain.x < mark.x + mark.width


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((-1, -1), (1, 1), (-1, -1, 1, 1)),  # inside
        ((-9, 0), (9, 0), (-2, 0, 2, 0)),  # right through
        ((0, 9), (0, 1), (0, 3, 0, 1)),  # in from above
        ((-4, -2), (4, 2), (-2, -1, 2, 1)),
        ((-9, 4), (9, 4), None),  # passes outside
        ((2.5, -9), (2.5, 9), None),
        ((3, 3), (9, 9), None),  # ends before it arrives
        ((1, 1), (1, 1), (1, 1, 1, 1)),
    ],
)
def test_a_segment_stays_in_its_panel(start, end, expected):
    panel = Panel(10, 20, 80, 120, (-2, 2), (-3, 3))
    items = diagrams.segment(panel, start, end)
    if expected is None:
        assert items == ()
    else:
        (line,) = items
        x1, y1, x2, y2 = expected
        assert line[:4] == pytest.approx((panel.x(x1), panel.y(y1), panel.x(x2), panel.y(y2)))


def test_a_grid_is_where_the_map_takes_the_lines():
    panel, A = Panel(0, 0, 200, 100, (-5, 5), (-2, 3)), np.array([[2, 1], [0.5, 1]])
    lines = diagrams.grid(panel, A, most=4)
    assert len(lines) > 10
    for line in lines:
        x, y = np.array(line[0:4:2]) / 20 - 5, 3 - np.array(line[1:4:2]) / 20
        back = np.linalg.solve(A, [x, y])  # on a line x = n or y = n of the plane before the map
        steady = [row for row in back if np.isclose(row[0], row[1])]
        assert len(steady) == 1
        assert np.isclose(steady[0], np.round(steady[0])).all()
        assert abs(steady[0][0]) < 4.01
        assert (abs(x) <= 5.001).all()
        assert (abs(y - 0.5) <= 2.501).all()


def test_a_grid_that_collapses_is_drawn_as_what_is_left():
    panel = Panel(0, 0, 100, 100, (-1, 1), (-1, 1))
    flat = diagrams.grid(panel, [[1, 0], [0, 0]])
    assert {(line.y1, line.y2) for line in flat} == {(50, 50)}
    assert diagrams.grid(panel, [[0, 0], [0, 0]]) == ()


def test_rims_lie_under_all_marks_and_show_on_both_sides():
    line = Line(0, 0, 9, 9, style.KEY, 2, style.DASHES[1], opacity=0.5)
    dot, ring = Circle(5, 5, 3, style.QUERY), Rect(1, 1, 5, 5, None, style.INK, 3)
    given = (line, Text(4, 4, "word"), dot, ring)
    drawn = diagrams.apart(given)
    rims, marks = drawn[:3], (line, dot, ring)
    assert drawn[3:] == given
    assert {rim.stroke for rim in rims} == {style.CARD}
    assert [rim.stroke_width for rim in rims] == [2 + 3, 3, 3 + 3]
    assert [rim.opacity for rim in rims] == [1, 1, 1]
    assert rims[0].dash == ()
    assert [rims[1].fill, rims[2].fill] == [style.CARD, None]
    for rim, mark in zip(rims, marks, strict=True):
        assert rim[:2] == mark[:2]


def test_an_arrow_ends_at_its_point():
    line, tip = diagrams.arrow(10, 10, 10, 90)
    assert tip.points[0] == (10, 90)
    assert line.x2 == pytest.approx(10)
    assert line.y2 < 90
    with pytest.raises(ValueError, match="two different points"):
        diagrams.arrow(5, 5, 5, 5)
