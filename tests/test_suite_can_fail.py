"""The suite sees what must not pass: each of these changes, made in a copy of the book, fails it.

A copy of the project is tested in subprocesses, first untouched and then spoilt in one way at a
time; each time the test that must notice is named. The copy and the kernels that it starts import
the copy's `attnbook`, which a notebook of its own proves.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import book
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from test_labs import MAKERS

from attnbook import build

pytestmark = pytest.mark.once

CHAPTER = "04_scores_and_scaling"
OTHER = "00_start_here"
NOTEBOOK = f"notebooks/{CHAPTER}.ipynb"
LAB_MODULE = f"attnbook/labs/{CHAPTER[3:]}.py"
LAB_TESTS = "tests/test_labs.py::test_moving_a_slider_shows_what_the_state_makes"
FORM_TESTS = f"tests/test_notebooks.py::test_form[is_executed-{CHAPTER}]"
TAG_TESTS = "tests/test_coverage.py::test_tags_name_rows_of_their_chapter"

# Appended to a module of labs: its labs are drawn at their start and fail at the first move.
BROKEN_CALLBACK = """

def _broken(make):
    @__import__("functools").wraps(make)
    def broken(**state):
        lab = make(**state)
        start, compute = lab.state, lab._compute

        def compute_at_the_start_only(**values):
            if values != start:
                raise RuntimeError("this callback is broken")
            return compute(**values)

        lab._compute = compute_at_the_start_only
        return lab

    return broken


for _name, _function in list(globals().items()):
    if getattr(_function, "__annotations__", {}).get("return") in (Lab, "Lab"):
        globals()[_name] = _broken(_function)
"""


class Copy:
    """A copy of the project, and pytest on parts of it."""

    def __init__(self, root: Path):
        self.root = root
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*", Path(__file__).name)
        for name in ("attnbook", "notebooks", "figures", "tests"):
            shutil.copytree(book.ROOT / name, root / name, ignore=ignore)
        for file in sorted(book.ROOT.glob("*.*")):
            if file.is_file():
                shutil.copy(file, root)
        files = [*(root / "notebooks").glob("*.ipynb"), root / LAB_MODULE]
        self.originals = {file: file.read_bytes() for file in files}

    def restore(self):
        for file, content in self.originals.items():
            file.write_bytes(content)

    def pytest(self, *selected: str) -> tuple[int, set[str], str]:
        """Run pytest; return its status, the ids of the tests that failed, and what it said."""
        paths = [str(self.root), *filter(None, [os.environ.get("PYTHONPATH")])]
        result = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-p",
                "no:cacheprovider",
                "-rf",
                "--color=no",
                *selected,
            ],
            cwd=self.root,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        lines = result.stdout.splitlines()
        failed = {line[7:].split(" - ")[0] for line in lines if line.startswith("FAILED ")}
        return result.returncode, failed, result.stdout + result.stderr

    def edit(self, change: Callable[[NotebookNode], None], chapter: str = CHAPTER):
        """Read a chapter, let `change` spoil it, and write it back."""
        path = self.root / "notebooks" / f"{chapter}.ipynb"
        nb = build.read(path)
        change(nb)
        path.write_text(build.to_text(nb), encoding="utf-8")


@pytest.fixture(scope="module")
def whole_copy(tmp_path_factory) -> Copy:
    return Copy(tmp_path_factory.mktemp("elsewhere") / "copy_of_the_book")


@pytest.fixture
def copy(whole_copy) -> Iterator[Copy]:
    yield whole_copy
    whole_copy.restore()


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def test_the_untouched_copy_passes_and_imports_itself(copy):
    (copy.root / "tests" / "test_where.py").write_text(
        "import attnbook\nfrom pathlib import Path\n\n"
        "def test_where():\n"
        "    assert Path(attnbook.__file__).parents[1] == Path(__file__).parents[1]\n"
    )
    where = new_code_cell(
        "import attnbook, pathlib\nprint(pathlib.Path(attnbook.__file__).parents[1].name)",
        outputs=[new_output("stream", name="stdout", text=f"{copy.root.name}\n")],
        execution_count=1,
    )
    (copy.root / "where.ipynb").write_text(build.to_text(new_notebook(cells=[where])))
    status, failed, said = copy.pytest(
        "where.ipynb", "tests/test_where.py", NOTEBOOK, FORM_TESTS, TAG_TESTS, LAB_TESTS
    )
    assert failed == set(), said
    assert status == 0, said
    cells = len(code_cells(build.read(copy.root / NOTEBOOK)))
    expected = 2 + cells + 1 + len(book.chapter_paths()) + len(MAKERS)
    assert f"= {expected} passed in" in said


def test_a_changed_number_is_seen(copy):
    places = []

    def change(nb):
        for place, cell in enumerate(code_cells(nb)):
            for output in cell.outputs:
                numbers = re.findall(r"\d\.\d+", output.get("text", ""))
                if numbers and not places:
                    last = (int(numbers[0][-1]) + 1) % 10
                    wrong = f"{numbers[0][:-1]}{last}"
                    output.text = output.text.replace(numbers[0], wrong, 1)
                    places.append(place)

    copy.edit(change)
    status, failed, said = copy.pytest(NOTEBOOK)
    assert failed == {f"{NOTEBOOK}::Cell {places[0]}"}, said
    assert status == 1


def test_a_broken_callback_is_seen_though_the_first_picture_is_right(copy):
    with (copy.root / LAB_MODULE).open("a", encoding="utf-8") as file:
        file.write(BROKEN_CALLBACK)
    status, failed, said = copy.pytest(NOTEBOOK, LAB_TESTS)
    broken = [make.__name__ for make in MAKERS if make.__module__.endswith(CHAPTER[3:])]
    assert failed == {f"{LAB_TESTS}[{name}]" for name in broken}, said
    assert "this callback is broken" in said
    assert status == 1


def test_a_cell_without_its_outputs_is_seen(copy):
    copy.edit(lambda nb: code_cells(nb)[2].update(outputs=[], execution_count=None))
    status, failed, said = copy.pytest(FORM_TESTS)
    assert failed == {FORM_TESTS}, said
    assert status == 1


def test_wrong_tags_are_seen(copy):
    wrong = {CHAPTER: "X123", OTHER: "D001"}
    for chapter, row in wrong.items():
        copy.edit(lambda nb, row=row: nb.cells[-1].metadata.update(covers=[row]), chapter)
    tests = {f"{TAG_TESTS}[{chapter}]" for chapter in wrong}
    status, failed, said = copy.pytest(*sorted(tests))
    assert failed == tests, said
    assert "covers 'X123', which is no row of coverage.csv" in said
    assert "covers D001, a row of chapter 03" in said
    assert status == 1
