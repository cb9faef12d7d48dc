"""Execute the chapters and bring their files to one normal form.

``python -m attnbook.build [--check] [notebooks ...]`` runs each notebook from top to bottom in a
fresh kernel and writes it back in the form that is committed: readable cell ids, counts 1..n, text
outputs and still pictures, no widget state, nothing that depends on the machine or on the version
of a package. A second run changes nothing. With ``--check`` nothing is written: the command says
what would change and ends with status 1 if anything would.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("covers", "jupyter", "tags")
CELL_SECONDS = 300


class BuildError(Exception):
    """A notebook that cannot be read, run or committed; the message says why and what to do."""


def read(path: Path) -> NotebookNode:
    r"""Read a notebook file as it is, without repairing anything.

    Parameters
    ----------
    path : Path
        An ``.ipynb`` file of format 4.

    Returns
    -------
    NotebookNode
        The notebook, multi-line fields joined to strings.

    Raises
    ------
    BuildError
        If there is no such file or it is not a notebook of format 4.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.ipynb"
    ...     _ = path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    ...     read(path).nbformat_minor
    5
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BuildError(
            f"{path}: there is no such file; give the path of an .ipynb file"
        ) from None
    except (OSError, ValueError) as problem:
        raise BuildError(f"{path}: not a notebook: {problem}") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("cells"), list):
        raise BuildError(f"{path}: not a notebook of format 4: it has no list of cells")
    if raw.get("nbformat") != 4:
        raise BuildError(
            f"{path}: expected notebook format 4, got {raw.get('nbformat')}; "
            "open and save it in JupyterLab"
        )
    try:
        return nbformat.v4.to_notebook(raw)
    except (AttributeError, KeyError, TypeError) as problem:
        raise BuildError(f"{path}: not a valid notebook: {problem!r}") from None


def normalise(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook in its committed form, without executing anything.

    Valid, unique cell ids stay as they are; others are made from the heading above the cell. Of the
    metadata only the kernel, the language and the keys of ``CELL_METADATA`` stay; widget state and
    widget views go; neighbouring chunks of one stream are joined; executed cells count 1..n.

    Parameters
    ----------
    notebook : NotebookNode
        A notebook of format 4; it is not modified.

    Returns
    -------
    NotebookNode
        The normalised notebook; normalising it again changes nothing.

    Raises
    ------
    BuildError
        If the notebook is not valid in a way that has no obvious repair.

    Examples
    --------
    >>> notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Why divide?")])
    >>> notebook.cells[0].id = "not valid!"
    >>> normalise(notebook).cells[0].id
    'why-divide'
    """
    notebook = copy.deepcopy(notebook)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    _name_cells(notebook.cells)
    count = 0
    for cell in notebook.cells:
        kept = {k: cell.metadata[k] for k in CELL_METADATA if cell.metadata.get(k)}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type == "code":
            count += 1
            if cell.get("execution_count") is not None:
                cell.execution_count = count
            cell.outputs = _normalise_outputs(cell.get("outputs", []), cell.execution_count)
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as problem:
        raise BuildError(f"not a valid notebook: {problem}") from None
    return notebook


def _name_cells(cells: list[NotebookNode]) -> None:
    """Give every cell without a valid id of its own one made from the heading above it."""
    taken: set[str] = set()
    named = []
    for cell in cells:
        valid = re.fullmatch(r"[\w-]{1,64}", str(cell.get("id", "")), re.ASCII)
        named.append(bool(valid) and cell.id not in taken)
        taken.update([cell.id] if named[-1] else [])
    stem = "start"
    for cell, has_name in zip(cells, named, strict=True):
        heading = re.match(r"#{1,6} +(.+)", cell.source) if cell.cell_type == "markdown" else None
        if heading:
            words = re.sub(r"[^a-z0-9]+", "-", heading[1].lower())
            stem = words[:48].strip("-") or "section"
        if not has_name:
            name, number = stem, 1
            while name in taken:
                number += 1
                name = f"{stem}-{number}"
            cell.id = name
            taken.add(name)


def _normalise_outputs(outputs: list[NotebookNode], count: int | None) -> list[NotebookNode]:
    """Join stream chunks and drop widget views, and with them outputs that held nothing else."""
    kept: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream":
            if kept and kept[-1].output_type == "stream" and kept[-1].name == output.name:
                kept[-1].text += output.text
                continue
        elif "data" in output:
            output.data.pop(WIDGET_VIEW, None)
            output.get("metadata", {}).pop(WIDGET_VIEW, None)
            output.pop("transient", None)
            if not output.data:
                continue
            if output.output_type == "execute_result":
                output.execution_count = count
        kept.append(output)
    return kept


def to_text(notebook: NotebookNode) -> str:
    r"""Write a notebook as the text of its file: sorted keys, indent 1, one newline at the end.

    Parameters
    ----------
    notebook : NotebookNode
        A notebook, as `normalise` returns it.

    Returns
    -------
    str
        The text of the ``.ipynb`` file.

    Examples
    --------
    >>> to_text(nbformat.v4.new_notebook()).startswith('{\n "cells": [],\n "metadata": {}')
    True
    """
    return nbformat.v4.writes(notebook) + "\n"


class ThisPython(KernelSpecManager):
    """Whatever kernel is asked for: the Python that runs this command, as nbval does it."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:  # noqa: D102
        return KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())


def _execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run every cell of a copy in a fresh kernel that works in `folder` and imports this tree."""
    notebook = copy.deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=ThisPython()),
        resources={"metadata": {"path": str(folder)}},
        timeout=CELL_SECONDS,
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],  # the kernel's remarks on its own transport
        # Widget state is dropped later: without it nbclient 0.11 stumbles over an Output widget.
        store_widget_state=True,
    )
    try:
        client.execute(cleanup_kc=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    except CellExecutionError as problem:
        trace = re.sub(r"\x1b\[[0-9;]*m", "", str(problem))
        name, _ = _outputs(notebook, "error")[0]
        raise BuildError(f"cell {name!r} raised\n{trace}") from None
    except (CellTimeoutError, DeadKernelError) as problem:
        raise BuildError(f"the kernel did not come back: {problem}") from None
    return notebook


def _outputs(notebook: NotebookNode, kind: str) -> list[tuple[str, NotebookNode]]:
    """Cell id and output, for every output of this kind (an output type or a stream's name)."""
    return [
        (cell.id, output)
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if kind in (output.output_type, output.get("name"))
    ]


def _keep_pictures(new: NotebookNode, old: NotebookNode) -> None:
    """Put the committed PNG back wherever the SVG beside it says that the picture is the same.

    The SVG is exact and the same on every version; the PNG's bytes change with matplotlib.
    """
    committed = {cell.id: cell.outputs for cell in old.cells if cell.cell_type == "code"}
    for cell in new.cells:
        stills = {
            output.data["image/svg+xml"]: output.data["image/png"]
            for output in committed.get(cell.id, [])
            if {"image/svg+xml", "image/png"} <= output.get("data", {}).keys()
        }
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data and data.get("image/svg+xml") in stills:
                data["image/png"] = stills[data["image/svg+xml"]]


def build(path: Path) -> tuple[str, str]:
    r"""Execute and normalise one notebook, and return its text as it is and as it should be.

    Parameters
    ----------
    path : Path
        The notebook; its folder is the kernel's working folder. The file is not written.

    Returns
    -------
    tuple of str
        The text of the file now and the text that should be committed.

    Raises
    ------
    BuildError
        If the file is not a notebook, a cell raises, or a cell writes to stderr (a warning must
        not be committed).

    Examples
    --------
    >>> import tempfile
    >>> cell = nbformat.v4.new_code_cell("2 + 3")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.ipynb"
    ...     _ = path.write_text(to_text(nbformat.v4.new_notebook(cells=[cell])))
    ...     before, after = build(path)
    >>> nbformat.reads(after, 4).cells[0].outputs[0].data
    {'text/plain': '5'}
    """
    committed = read(path)
    try:
        old = normalise(committed)
        new = normalise(_execute(old, path.resolve().parent))
        for name, output in _outputs(new, "stderr"):
            raise BuildError(f"cell {name!r} wrote to stderr; remove the cause:\n{output.text}")
    except BuildError as problem:
        raise BuildError(f"{path}: {problem}") from None
    _keep_pictures(new, old)
    return path.read_text(encoding="utf-8"), to_text(new)


def _changes(before: str, after: str) -> list[str]:
    """Say which parts of which cells differ between two texts of one notebook."""
    old, new = (nbformat.v4.reads(text) for text in (before, after))
    found = [
        f"notebook {key}" for key in sorted(new) if key != "cells" and old.get(key) != new[key]
    ]
    for cell, good in zip(old.cells, new.cells, strict=True):
        differing = [k for k in sorted({*cell, *good}) if cell.get(k) != good.get(k)]
        found += [f"cell {good.id!r}: {', '.join(differing)}"] if differing else []
    return found or ["the layout of the file"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the named notebooks, or all chapters, and return the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line; the process's own by default.

    Returns
    -------
    int
        0 done; 1 with ``--check``, something would change; 2 a notebook could not be built.

    Examples
    --------
    >>> main(["--check", "no_such.ipynb"])
    2
    """
    parser = argparse.ArgumentParser(
        prog="python -m attnbook.build", description="Execute and normalise the notebooks."
    )
    parser.add_argument("--check", action="store_true", help="write nothing, say what would change")
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: every chapter")
    options: Any = parser.parse_args(arguments)
    paths = options.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    if not paths:
        print(f"no notebook found in {ROOT / 'notebooks'}; name one", file=sys.stderr)
        return 2
    status = 0
    for path in paths:
        try:
            before, after = build(path)
        except BuildError as problem:
            print(problem, file=sys.stderr)
            return 2
        if before == after:
            print(f"{path}: unchanged")
        elif options.check:
            print(f"{path}: would change:", *_changes(before, after), sep="\n  ")
            status = 1
        else:
            path.write_text(after, encoding="utf-8", newline="\n")
            print(f"{path}: written")
    return status


if __name__ == "__main__":
    sys.exit(main())
