"""The form of the chapters: every checker of ``book.py`` on every chapter, and every part alone."""

import copy
import os
import queue

import book
import nbformat
import pytest
from jupyter_client import KernelManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from attnbook import build
from attnbook.labs.engine import GONE

CHAPTERS = book.chapter_paths()
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=[p.stem for p in CHAPTERS])
each_checker = pytest.mark.parametrize("checker", book.CHECKERS, ids=lambda c: c.__name__)


def test_the_chapters_are_there():
    numbers = [path.name[:2] for path in CHAPTERS]
    assert {"00", "04"} <= set(numbers)
    assert set(numbers) <= book.TEACHING | {"00", "90", "91", "92"}
    assert len(set(numbers)) == len(numbers)


@each_chapter
@each_checker
def test_form(path, checker):
    assert checker(book.load(path)) == []


# ---- every part runs after the set-up cell alone -----------------------------------------------


class Kernel:
    """One kernel for all chapters: imports are paid for once, names are forgotten between runs."""

    def __init__(self):
        self.manager = KernelManager(kernel_spec_manager=build.ThisPython())
        paths = [str(book.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.manager.start_kernel(
            cwd=str(book.NOTEBOOKS), env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        )
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def problems(self, sources: list[str]) -> list[str]:
        """Run cells in an empty namespace; return the errors and warnings they cause."""
        found: list[str] = []

        def collect(message):
            kind, content = message["msg_type"], message["content"]
            if kind == "error":
                found.append(f"{content['ename']}: {content['evalue']}")
            elif kind == "stream" and content["name"] == "stderr":
                found.append(content["text"])

        for source in ["%reset -f", *sources]:
            try:
                reply = self.client.execute_interactive(
                    source, store_history=False, output_hook=collect, timeout=60
                )
            except (TimeoutError, queue.Empty):
                return [*found, f"no answer after 60 s: {source}"]
            if reply["content"]["status"] != "ok" and not found:
                found.append(str(reply["content"]))
            if found:
                return found
        return found


@pytest.fixture(scope="module")
def kernel():
    kernel = Kernel()
    yield kernel
    kernel.close()


@pytest.mark.once
@each_chapter
def test_every_part_runs_after_the_setup_cell_alone(path, kernel):
    parts = book.runs(book.load(path))
    assert parts or not book.code(book.load(path))[1:]
    found = {name: problems for name, run in parts if (problems := kernel.problems(run))}
    assert found == {}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["import math", "x = math.pi", "x + 1"], None),
        (["y + 1"], "NameError"),
        (["import warnings", "warnings.warn('old')"], "old"),
        (
            ["class A:\n    def __repr__(self):\n        raise ValueError('no picture')\nA()"],
            "no pic",
        ),
    ],
    ids=["fine", "hidden state", "warning", "display fails"],
)
def test_the_kernel_tells_what_went_wrong(kernel, sources, expected):
    assert kernel.problems(["y = 1"]) == []  # a name that must be forgotten
    found = kernel.problems(sources)
    assert (not found) if expected is None else (expected in found[0])


# ---- every checker can fail --------------------------------------------------------------------

PNG = "iVBORw0KGgo="
SVG = "<svg xmlns='http://www.w3.org/2000/svg'><text>0.50</text></svg>"


def cells() -> list:
    """A small chapter that breaks no rule."""
    picture = {"image/png": PNG, "image/svg+xml": SVG, "text/plain": "Three bars of equal height."}
    controls = {"text/plain": "Run this cell to get the sliders."}
    texts = {
        "title": "# Why divide?\n\nOne question.\n\n**You will learn** to\n\n- a\n- b\n- c\n\n"
        "**You need** [this chapter](#The-idea).",
        "idea": "## The idea\n\nCost is \\$5, $\\{a_{ij}\\}$ and `$x`:\n\n"
        "$$\\begin{aligned}U&=\\left(E\\right)\\tag{4.1}\\end{aligned}$$\n\nSee R (5.1) and (4.1).",
        "detail": "### A detail\n\n![A figure with three bars](../figures/04_bars.svg)",
        "ask": "What happens to the bars?",
        "answer": "They became equal, see [the paper](https://arxiv.org/abs/1706.03762).",
        "summary": "## Summary\n\n| symbol | name |\n|---|---|\n| $U$ | score |",
        "exercises": "## Exercises\n\nDo it.",
        "next": "## Where this goes next\n\nOn.",
    }
    codes = {
        "setup": ("import math", []),
        "use": ("math.sqrt(64)", [new_output("display_data", {"text/plain": "8.0"})]),
        "lab": ("math.pi", [new_output("display_data", d) for d in (controls, picture)]),
    }
    order = ["title", "setup", "idea", "use", "detail", "ask", "lab", "answer"]
    order += ["summary", "exercises", "next"]
    found, count = [], 0
    for name in order:
        if name in texts:
            found.append(new_markdown_cell(texts[name], id=name))
        else:
            count += 1
            source, outputs = codes[name]
            found.append(new_code_cell(source, id=name, outputs=outputs, execution_count=count))
    for name, tag in [("setup", "setup"), ("lab", "lab"), ("ask", "predict"), ("answer", "seen")]:
        found[order.index(name)].metadata["tags"] = [tag]
    return found


def chapter(folder, change=None, number="04") -> book.Chapter:
    """The small chapter as a file, after `change` has spoilt its cells (given by id)."""
    (folder / "notebooks").mkdir(exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures" / "04_bars.svg").write_text(SVG)
    by_name = {cell.id: cell for cell in cells()}
    if change:
        change(by_name)
    nb = nbformat.v4.new_notebook(metadata=copy.deepcopy(build.METADATA))
    nb.cells = list(by_name.values())
    path = folder / "notebooks" / f"{number}_example.ipynb"
    path.write_text(build.to_text(nb), encoding="utf-8")
    return book.load(path)


def source(name, text):
    return lambda cells: cells[name].update(source=text)


def append(name, text):
    return lambda cells: cells[name].update(source=cells[name].source + text)


def tag(name, *tags):
    return lambda cells: cells[name].metadata.update(tags=list(tags))


def output(name, mime, text, place=-1):
    return lambda cells: cells[name].outputs[place].data.update({mime: text})


def drop(name):
    return lambda cells: cells.pop(name)


def drop_output(name, mime):
    return lambda cells: cells[name].outputs[-1].data.pop(mime)


def clear(name):
    return lambda cells: cells[name].update(outputs=[], execution_count=None)


def stderr(cells):
    cells["use"].outputs.append(new_output("stream", name="stderr", text="careful"))


BAD = [
    (book.is_executed, clear("use"), "['use']: not executed"),
    (book.is_executed, lambda c: c["use"].update(execution_count=7), "['use']"),
    (book.is_normalised, lambda c: c["use"].metadata.update(scrolled=True), "normal form"),
    (book.is_normalised, lambda c: c["use"].update(execution_count=7), "normal form"),
    (book.has_readable_ids, lambda c: c["use"].update(id="-x-"), "'-x-'"),
    (book.has_content, source("use", " \n"), "use: empty"),
    (book.has_content, lambda c: c["idea"].update(cell_type="raw"), "idea: raw"),
    (book.has_known_tags, tag("lab", "lap"), "'lap'"),
    (book.has_known_tags, tag("use", "raises-exception"), "'raises-exception'"),
    (book.has_known_tags, tag("use", "nbval-ignore-output"), "'nbval-ignore-output'"),
    (book.has_known_tags, tag("idea", "lab"), "on a markdown cell"),
    (book.has_known_tags, append("use", "  # NBVAL_IGNORE_OUTPUT"), "switches nbval off"),
    (book.has_one_title, append("idea", "\n\n# Again"), "one H1"),
    (book.has_one_title, drop("title"), "does not begin"),
    (book.has_one_title, source("title", "Why?\n\n# Why divide?"), "does not begin"),
    (book.has_even_headings, append("idea", "\n\n#### Deep"), "from level 2 to 4"),
    (book.has_even_headings, append("detail", "\n\n### A detail"), "twice"),
    (book.has_opening_and_closing, source("title", "# Why\n\n**You need** [x](y)"), "learn"),
    (book.has_opening_and_closing, source("title", "# Why\n\n## You will learn\n- a"), "1 things"),
    (book.has_opening_and_closing, append("title", "\n\n**You need** courage"), None),
    (book.has_opening_and_closing, source("title", "# W\n\n**You need** courage"), "no link"),
    (book.has_opening_and_closing, drop("next"), "last three"),
    (book.has_opening_and_closing, source("exercises", "## Practice"), "last three"),
    (book.has_opening_and_closing, source("summary", "## Summary\n\nDone."), "no table"),
    (book.has_plain_setup, tag("setup"), "tagged setup"),
    (book.has_plain_setup, tag("use", "setup"), "tagged setup"),
    (book.has_plain_setup, append("setup", "\nSEED = 3"), None),
    (book.has_plain_setup, append("setup", "\nx = math.sqrt(2)"), "math.sqrt(2)"),
    (book.has_plain_setup, append("setup", "\n%matplotlib inline"), "not plain Python"),
    (book.keeps_setup_names, append("use", "\nmath = 3"), "use: math of the set-up cell"),
    (book.keeps_setup_names, append("use", "\nfor math in (1, 2):\n    pass"), "use: math"),
    (book.keeps_setup_names, append("use", "\ndef math():\n    pass"), "use: math"),
    (book.keeps_setup_names, append("use", "\ndef f(math):\n    math = 2"), None),
    (book.has_short_code, append("use", "  # " + 60 * "x"), "columns"),
    (book.has_short_code, append("use", "\n1" * 15), "16 lines"),
    (book.hides_plotting, source("use", "plt.plot([1])"), "plotting code"),
    (book.hides_plotting, append("setup", "\nimport matplotlib.pyplot as plt"), None),
    (book.has_alt_text, append("detail", "\n\n![](../figures/04_bars.svg)"), "detail: alt text ''"),
    (book.has_alt_text, append("detail", '\n\n<img src="x.svg">'), "detail: alt text ''"),
    (book.has_alt_text, output("lab", "text/plain", "<Figure size 640x480 with 1 Axes>"), "<Fig"),
    (book.has_alt_text, output("lab", "text/plain", "A picture."), "'A picture.'"),
    (book.has_alt_text, drop_output("lab", "text/plain"), "''"),
    (book.has_framed_labs, source("ask", "Think."), "no prediction"),
    (book.has_framed_labs, tag("ask"), "no prediction"),
    (book.has_framed_labs, tag("answer"), "was to be seen"),
    (book.has_framed_labs, drop("answer"), "was to be seen"),
    (book.has_framed_labs, drop_output("lab", "image/png"), "no still"),
    (book.has_framed_labs, drop_output("lab", "image/svg+xml"), "no still"),
    (book.has_framed_labs, output("lab", "text/plain", "VBox()", 0), "controls"),
    (book.has_sound_links, append("idea", "\n[x](../figures/05_bars.svg)"), "no such file"),
    (book.has_sound_links, append("idea", "\n[x](04_example.ipynb#The-end)"), "no such heading"),
    (book.has_sound_links, append("idea", "\n[x](04_example.ipynb#A-detail)"), None),
    (book.has_sound_links, append("idea", "\n[x](#The-end)"), "no such heading"),
    (book.has_sound_links, append("idea", "\n[x](/etc/passwd)"), "no such file"),
    (book.has_sound_links, append("idea", "\n[x](http://arxiv.org/abs/1)"), "not https"),
    (book.has_sound_links, append("idea", "\nhttps://example.com/x"), "not https to a host"),
    (book.has_sound_links, append("idea", '\n<img src="../figures/06.svg">'), "no such file"),
    (book.has_no_raw_html, append("idea", "\n<script>1</script>"), "<script"),
    (book.has_no_raw_html, append("idea", "\n<style>b{}</style>"), "<style"),
    (book.has_no_raw_html, append("idea", '\n<b onclick="x()">x</b>'), "onclick"),
    (book.has_no_raw_html, append("idea", "\n`<script>`"), None),
    (book.has_no_raw_html, output("use", "text/html", "<style>b{}</style>"), "use: raw HTML"),
    (book.has_no_raw_html, output("use", "text/html", GONE["text/html"]), None),
    (book.has_no_raw_html, output("use", "text/html", GONE["text/html"] + "<form>"), "<style"),
    (book.has_balanced_math, append("idea", "\n\nFor $x"), "odd number of $"),
    (book.has_balanced_math, append("idea", "\n\n$$x$"), "odd number of $$"),
    (book.has_balanced_math, append("idea", "\n\n$a_{i$ and $j}$"), "braces"),
    (book.has_balanced_math, append("idea", "\n\n$}a{$"), "braces"),
    (book.has_balanced_math, append("idea", "\n\n$$\\begin{a}x\\end{b}$$"), "closes nothing"),
    (book.has_balanced_math, append("idea", "\n\n$$\\begin{a}x$$"), "not closed"),
    (book.has_balanced_math, append("idea", "\n\n$\\left(x)$"), "\\left"),
    (book.has_balanced_math, append("idea", "\n\n\\begin{a}x\\end{a}"), "of dollars"),
    (book.has_balanced_math, append("idea", "\n\n$\\begin{a}x\\end{a}$"), None),
    (book.has_balanced_math, append("idea", "\n\n$x\\tag{4.2}$"), "\\tag"),
    (book.has_ordered_equations, append("detail", "\n$$x\\tag{4.1}$$"), "(4.1) after (4.1)"),
    (book.has_ordered_equations, append("detail", "\n$$x\\tag{5.2}$$"), "(5.2)"),
    (book.has_ordered_equations, append("detail", "\n$$x\\tag{4.3}$$ and (4.3)"), None),
    (book.has_ordered_equations, append("detail", "\nby (4.2)"), "detail: there is no equation"),
    (book.has_ordered_equations, append("use", "  # by (4.2)"), "use: there is no equation"),
    (book.has_ordered_equations, append("detail", "\n[R] (4.7)-(4.9), R (4.2)"), None),
    (book.has_clean_outputs, output("use", "text/plain", "ValueError: no"), "shows an error"),
    (book.has_clean_outputs, output("use", "text/html", "<b>at 0x7f3a9c</b>"), "0x7f3a9c"),
    (book.has_clean_outputs, output("use", "text/plain", "/ho" + "me/someone/x.py"), "/home/"),
    (book.has_clean_outputs, output("use", "text/plain", str(book.ROOT)), "path of the book"),
    (book.has_clean_outputs, output("use", "text/html", "<b class='Error'>x</b>"), None),
    (book.has_clean_outputs, stderr, "a warning"),
]


@each_checker
def test_a_good_chapter_passes(tmp_path, checker):
    assert checker(chapter(tmp_path)) == []


@pytest.mark.parametrize(("checker", "change", "expected"), BAD)
def test_a_bad_chapter_is_caught(tmp_path, checker, change, expected):
    found = checker(chapter(tmp_path, change))
    if expected is None:  # no fault, only something that looks like one
        assert found == []
    else:
        assert expected in "\n".join(found)


def test_a_shown_error_and_a_plot_can_be_meant(tmp_path):
    def change(cells):
        cells["use"].metadata["tags"] = ["plot", "shows-error"]
        cells["use"].source = "plt.plot([1])"
        cells["use"].outputs[0].data["text/plain"] = "ValueError: no"

    bad = chapter(tmp_path, change)
    assert book.hides_plotting(bad) == book.has_clean_outputs(bad) == book.has_known_tags(bad) == []


def test_versions_and_widget_state_are_caught(tmp_path):
    good = chapter(tmp_path)
    good.nb.metadata["language_info"]["version"] = "3.11.7"
    assert "3.11.7" in book.has_plain_metadata(good)[0]
    good.nb.metadata = {**build.METADATA, "widgets": {}}
    assert "widgets" in book.has_plain_metadata(good)[0]


def test_repeated_ids_are_caught(tmp_path):
    good = chapter(tmp_path)
    good.cells[1].id = good.cells[0].id
    assert "'title': used twice" in book.has_readable_ids(good)


def test_the_first_chapter_must_map_the_others(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_other.ipynb").write_text("{}")
    assert book.maps_the_book(chapter(tmp_path, number="00")) == ["no link to 05_other.ipynb"]
    linked = append("idea", "\n[next](05_other.ipynb)")
    assert book.maps_the_book(chapter(tmp_path, linked, number="00")) == []


def test_every_checker_has_a_bad_example():
    named_above = {book.has_plain_metadata, book.maps_the_book}
    assert {checker for checker, _, expected in BAD if expected} | named_above == set(book.CHECKERS)


def test_sections_and_labs_are_the_parts_that_run_alone(tmp_path):
    assert book.runs(chapter(tmp_path)) == [
        ("section 'The idea'", ["import math", "math.sqrt(64)"]),
        ("section 'A detail'", ["import math", "math.pi"]),
    ]
    both = chapter(tmp_path, lambda c: c["detail"].update(source="no heading"))
    assert book.runs(both) == [
        ("section 'The idea'", ["import math", "math.sqrt(64)", "math.pi"]),
        ("cell 'lab'", ["import math", "math.pi"]),
    ]
