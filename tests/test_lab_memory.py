"""What a chapter's kernel holds after Run All, and that moving its sliders adds nothing.

This takes minutes, so it is done in CI; here: ``CI=true python -m pytest`` with this file.
"""

import os

import book
import psutil
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

GOAL = 200  # MB after Run All, printed
MOVES = 1000
GROWTH = 3  # MB over as many moves, after as many to warm up
# Moves every slider of every lab of the page in turn, a place at a time, to and fro.
MOVE = f"""
import gc
from attnbook.labs.engine import Lab

labs = [one for one in gc.get_objects() if isinstance(one, Lab) and one._place is not None]
sliders = [slider for lab in labs for slider in lab.sliders.values()]
for k in range({MOVES}):
    slider = sliders[k % len(sliders)]
    last = len(slider.options) - 1
    step = (1 + k // len(sliders)) % (2 * last)
    slider.index = min(step, 2 * last - step)
for lab in labs:
    lab.settle()
del labs, sliders, slider
gc.collect()
"""

CHAPTERS = [path for path in book.chapter_paths() if book.code(book.load(path), "lab")]


def measure(nb) -> tuple[float, float]:
    """Return MB after Run All, and MB that as many moves as `MOVES` add."""
    client = NotebookClient(nb, timeout=120)
    with client.setup_kernel():
        for number, cell in enumerate(nb.cells):
            client.execute_cell(cell, number)
        kernel = psutil.Process(client.km.provisioner.pid)

        def megabytes() -> float:
            return kernel.memory_info().rss / 1e6

        after = [megabytes()]
        for _ in range(2):
            nb.cells.append(new_code_cell(MOVE))
            client.execute_cell(nb.cells[-1], len(nb.cells) - 1)
            after.append(megabytes())
    return after[0], after[2] - after[1]


@pytest.mark.skipif(
    os.environ.get("CI", "").lower() not in ("true", "1"),
    reason=f"minutes of moving, done in CI; here: CI=true python -m pytest {__file__}",
)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_moving_sliders_takes_no_memory(path, capsys):
    held, grown = measure(book.load(path).nb)
    with capsys.disabled():
        goal = "within" if held <= GOAL else "OVER"
        print(f"\n{path.stem}: {held:.0f} MB after Run All ({goal} the goal of {GOAL} MB),", end="")
        print(f" {grown:+.1f} MB over {MOVES} moves")
    assert grown < GROWTH
