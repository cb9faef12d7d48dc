"""The notebook normaliser: what it keeps, what it drops, and that a second run changes nothing."""

import base64
import copy
import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from attnbook import build

VIEW = "application/vnd.jupyter.widget-view+json"

# A picture as the book draws it: exact SVG, and a PNG whose bytes depend on who drew it.
PICTURE = """\
import base64, os
from IPython.display import display

def bundle(label, png):
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'><text>{label}</text></svg>"
    data = base64.b64encode(png).decode()
    return {"image/svg+xml": svg, "image/png": data, "text/plain": f"A picture of {label}."}
"""


def notebook(*sources: str, names: list[str] | None = None) -> nbformat.NotebookNode:
    cells = [new_markdown_cell(s) if s.startswith("#") else new_code_cell(s) for s in sources]
    nb = new_notebook(cells=cells)
    for index, cell in enumerate(cells):
        cell.id = names[index] if names else f"c{index}"
    return nb


def save(folder: Path, nb: nbformat.NotebookNode, name: str = "chapter.ipynb") -> Path:
    path = folder / name
    path.write_text(build.to_text(nb), encoding="utf-8")
    return path


def built(path: Path) -> nbformat.NotebookNode:
    assert build.main([str(path)]) == 0
    return build.read(path)


# ---- normalise: no kernel ---------------------------------------------------------------------


def test_existing_ids_stay_and_missing_ones_come_from_the_heading():
    nb = notebook("# Why divide by $d_k$?", "1", "2", "## A second look", "3")
    nb.cells[1].id = "kept_As-is"
    nb.cells[2].id = "why-divide-by-d-k-2"
    for index in (0, 3, 4):
        del nb.cells[index]["id"]
    names = [cell.id for cell in build.normalise(nb).cells]
    assert names == [
        "why-divide-by-d-k",
        "kept_As-is",
        "why-divide-by-d-k-2",
        "a-second-look",
        "a-second-look-2",
    ]


def test_a_repeated_or_invalid_id_is_replaced_and_the_first_owner_keeps_it():
    nb = notebook("# T", "1", "2", names=["same", "same", "not valid"])
    assert [cell.id for cell in build.normalise(nb).cells] == ["same", "t", "t-2"]


def test_a_new_cell_changes_no_id_of_the_others():
    nb = notebook("# T", "1", "2")
    for cell in nb.cells:
        del cell["id"]
    before = build.normalise(nb)
    fresh = new_code_cell("0")
    del fresh["id"]
    after = copy.deepcopy(before)
    after.cells.insert(1, fresh)
    after = build.normalise(after)
    assert [c.id for c in after.cells if c.id != after.cells[1].id] == [c.id for c in before.cells]


def test_metadata_is_minimal_and_names_no_version():
    nb = notebook("1")
    nb.metadata = nbformat.from_dict(
        {
            "kernelspec": {"name": "my-env", "display_name": "Mine", "language": "python"},
            "language_info": {"name": "python", "version": "3.11.7"},
            "widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}},
            "toc": {},
        }
    )
    nb.cells[0].metadata = nbformat.from_dict(
        {
            "tags": ["lab"],
            "covers": ["D009"],
            "jupyter": {"source_hidden": True},
            "execution": {"iopub.execute_input": "2024-01-01"},
            "scrolled": True,
            "trusted": True,
        }
    )
    result = build.normalise(nb)
    assert result.metadata == build.METADATA
    assert result.cells[0].metadata == {
        "tags": ["lab"],
        "covers": ["D009"],
        "jupyter": {"source_hidden": True},
    }
    assert not re.search(r"\d+\.\d+", json.dumps(build.METADATA))


def test_outputs_are_cleaned_and_counted():
    nb = notebook("# T", "1", "2", "3")
    nb.cells[1].execution_count = 7
    nb.cells[3].execution_count = 4
    nb.cells[1].outputs = [
        new_output("stream", name="stdout", text="a"),
        new_output("stream", name="stdout", text="b\n"),
        new_output("display_data", {VIEW: {"model_id": "3f"}, "text/plain": "Move the slider."}),
        new_output("display_data", {VIEW: {"model_id": "40"}}),
        new_output("stream", name="stdout", text="c"),
        new_output("execute_result", {"text/plain": "1"}, execution_count=7),
    ]
    first, second, third = build.normalise(nb).cells[1:]
    assert [first.execution_count, second.execution_count, third.execution_count] == [1, None, 3]
    assert [o.get("text") or o.data for o in first.outputs] == [
        "ab\n",
        {"text/plain": "Move the slider."},
        "c",
        {"text/plain": "1"},
    ]
    assert first.outputs[-1].execution_count == 1


def test_normalise_leaves_its_input_alone_and_is_idempotent():
    nb = notebook("# T", "1", names=["x", "x"])
    nb.cells[1].outputs = [new_output("stream", text="a"), new_output("stream", text="b")]
    before = copy.deepcopy(nb)
    once = build.normalise(nb)
    assert nb == before
    assert build.normalise(once) == once
    assert build.to_text(once).endswith("}\n")


# ---- build: a real kernel ---------------------------------------------------------------------


def test_a_second_run_changes_nothing(tmp_path, capsys):
    path = save(
        tmp_path,
        notebook(
            "# Slow printing",
            "import sys\nfor word in 'abc':\n    print(word, flush=True)",
            "from IPython.display import display\nimport ipywidgets\n"
            "out = ipywidgets.Output()\nwith out:\n    print('inside')\n"
            "display({'text/plain': 'Move the slider below.', "
            f"'{VIEW}': {{'model_id': out.model_id}}}}, raw=True)",
            "out.model_id[:0] or 6 * 7",
        ),
    )
    nb = built(path)
    assert nb.cells[1].outputs == [new_output("stream", name="stdout", text="a\nb\nc\n")]
    assert nb.cells[2].outputs[0].data == {"text/plain": "Move the slider below."}
    assert nb.cells[3].outputs[0].data == {"text/plain": "42"}
    assert [cell.get("execution_count") for cell in nb.cells] == [None, 1, 2, 3]
    assert nb.metadata == build.METADATA
    text = path.read_bytes()
    capsys.readouterr()
    assert build.main([str(path)]) == 0
    assert "unchanged" in capsys.readouterr().out
    assert path.read_bytes() == text


def test_a_display_handle_ends_in_its_last_state(tmp_path):
    path = save(
        tmp_path,
        notebook(
            "from IPython.display import display\nh = display('first', display_id=True)",
            "h.update('second')",
        ),
    )
    first, second = built(path).cells
    assert [o.data for o in first.outputs] == [{"text/plain": "'second'"}]
    assert second.outputs == []
    assert "transient" not in path.read_text()


def test_the_committed_png_stays_while_the_svg_is_the_same(tmp_path):
    drawing = "display(bundle('six keys', os.urandom(9)), raw=True)"
    path = save(tmp_path, notebook(PICTURE, drawing))
    first = built(path).cells[1].outputs[0].data
    again = built(path).cells[1].outputs[0].data
    assert again == first
    changed = build.read(path)
    changed.cells[1].source = drawing.replace("six", "ten")
    save(tmp_path, changed)
    other = built(path).cells[1].outputs[0].data
    assert "ten" in other["image/svg+xml"]
    assert other["image/png"] != first["image/png"]
    assert base64.b64decode(other["image/png"])


def test_the_kernel_works_in_the_folder_of_the_notebook_and_imports_this_tree(
    tmp_path, monkeypatch
):
    (tmp_path / "neighbour.txt").write_text("beside the notebook")
    decoy = tmp_path / "elsewhere" / "attnbook"
    decoy.mkdir(parents=True)
    (decoy / "__init__.py").write_text("raise ImportError('the wrong attnbook')")
    monkeypatch.setenv("PYTHONPATH", str(decoy.parent))
    path = save(
        tmp_path,
        notebook("print(open('neighbour.txt').read())", "import attnbook\nattnbook.__file__"),
    )
    _, text = build.build(path)
    first, second = nbformat.reads(text, 4).cells
    assert first.outputs[0].text == "beside the notebook\n"
    assert second.outputs[0].data["text/plain"] == repr(
        str(build.ROOT / "attnbook" / "__init__.py")
    )


def test_check_says_what_would_change_and_writes_nothing(tmp_path, capsys):
    path = save(tmp_path, notebook("# T", "6 * 7", "1"))
    built(path)
    nb = build.read(path)
    nb.cells[1].outputs[0].data["text/plain"] = "41"
    wrong = save(tmp_path, nb).read_bytes()
    capsys.readouterr()
    assert build.main(["--check", str(path)]) == 1
    said = capsys.readouterr().out
    assert "cell 'c1': outputs" in said
    assert "c2" not in said
    assert path.read_bytes() == wrong
    built(path)
    assert build.main(["--check", str(path)]) == 0
    path.write_text(path.read_text().replace("\n ", "\n  "))
    assert build.main(["--check", str(path)]) == 1
    assert "the layout of the file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "def f():\n    return 1 / 0\nf()",
            ["cell 'c1' raised", "ZeroDivisionError", "return 1 / 0"],
        ),
        ("import warnings\nwarnings.warn('old name')", ["cell 'c1' wrote to stderr", "old name"]),
        ("import os\nos._exit(1)", ["the kernel did not come back"]),
    ],
    ids=["raises", "warns", "dies"],
)
def test_a_bad_cell_stops_the_build_and_leaves_the_file(tmp_path, capsys, source, expected):
    path = save(tmp_path, notebook("# T", source, "print('never')"))
    before = path.read_bytes()
    assert build.main([str(path)]) == 2
    said = capsys.readouterr().err
    for part in [str(path), *expected]:
        assert part in said
    assert "\x1b" not in said
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "no such file"),
        ("a book", "not a notebook"),
        ("[1]", "no list of cells"),
        ('{"cells": [], "nbformat": 3}', "expected notebook format 4, got 3"),
        ('{"cells": [{"source": 1}], "nbformat": 4, "metadata": {}}', "not a valid notebook"),
        (
            '{"cells": [{"cell_type": "poem", "source": "", "metadata": {}}], "nbformat": 4, '
            '"metadata": {}}',
            "not a valid notebook",
        ),
    ],
)
def test_what_is_not_a_notebook_is_refused(tmp_path, capsys, text, expected):
    path = tmp_path / "x.ipynb"
    if text is not None:
        path.write_text(text)
    assert build.main([str(path)]) == 2
    assert expected in capsys.readouterr().err


def test_without_a_name_every_chapter_is_built_and_none_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "ROOT", tmp_path)
    (tmp_path / "notebooks").mkdir()
    assert build.main([]) == 2
    assert "no notebook found" in capsys.readouterr().err
    for name in ("02_b.ipynb", "01_a.ipynb"):
        save(tmp_path / "notebooks", notebook("# T"), name)
    assert build.main([]) == 0
    said = capsys.readouterr().out
    assert said.index("01_a") < said.index("02_b")
