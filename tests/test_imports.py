"""What attnbook loads and which module may import which: design of the layers, by AST."""

import ast
import inspect
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import attnbook

PACKAGE = Path(attnbook.__file__).parent
EXPORTED = {name for name in attnbook.__all__ if not inspect.ismodule(getattr(attnbook, name))}

MATHEMATICS = {
    *("softmax", "masks", "attention", "tiled", "heads", "cache", "cost", "directions", "exact")
}
DRAWING = {"style", "markup", "picture", "diagrams", "figures"}


class Layer(NamedTuple):
    """What the modules of a layer may import besides the standard library."""

    ours: set[str]
    packages: set[str]
    tool: bool = False  # a tool may start processes, open sockets and use any package but widgets


NUMPY = {"numpy"}
LAYERS = {
    # the mathematics, in numpy
    "_checks": Layer(set(), NUMPY),
    "_product": Layer(set(), NUMPY),
    "softmax": Layer({"_checks"}, NUMPY),
    "masks": Layer({"_checks"}, NUMPY),
    "attention": Layer({"_checks", "_product", "softmax", "masks"}, NUMPY),
    "tiled": Layer({"_checks", "_product", "softmax"}, NUMPY),
    "heads": Layer({"_checks", "_product", "attention"}, NUMPY),
    "cache": Layer({"_checks"}, NUMPY),
    "cost": Layer({"_checks"}, NUMPY),
    "configurations": Layer({"_checks", "cost"}, set()),
    "memory": Layer(set(), set()),
    "directions": Layer(set(), NUMPY),
    "training": Layer({"training", "_checks", "heads", "masks"}, NUMPY),
    # two trained models: what they computed, and what is asked of it
    "recordings": Layer({"heads", "masks"}, NUMPY),
    "rotary": Layer({"_checks"}, NUMPY),
    "head_catalogue": Layer({"_checks", "training"}, NUMPY),
    "__init__": Layer(MATHEMATICS - {"exact"} | {"exercises"}, NUMPY),  # those when asked for
    # the independent oracle and its data
    "exact": Layer(set(), {"sympy"}),
    "examples": Layer(set(), set()),
    "sources": Layer({"exact"}, set()),
    # pictures, without mathematics of attention
    "style": Layer(set(), set()),
    "markup": Layer({"style"}, set()),
    "picture": Layer({"style", "markup"}, {"numpy", "matplotlib", "PIL"}),
    "diagrams": Layer({"style", "markup", "picture"}, NUMPY),
    "figures": Layer({"style", "markup", "picture", "diagrams"}, {"numpy", "matplotlib"}),
    # what a reader works with
    "labs": Layer(
        {"labs", "examples", "configurations", "training", "__init__"}
        | {"recordings", "rotary", "head_catalogue"}
        | MATHEMATICS
        | DRAWING,
        {"numpy", "IPython", "ipywidgets"},
    ),
    "exercises": Layer(
        {"exercises", "examples", "configurations", "markup", "launcher", "__init__"} | MATHEMATICS,
        {"numpy", "sympy"},
    ),
    # tools
    "build": Layer({"launcher"} | DRAWING, set(), tool=True),
    "launcher": Layer({"launcher"}, set(), tool=True),
    "__main__": Layer({"launcher"}, set(), tool=True),
}

PROCESSES_AND_NETWORK = {
    *("concurrent", "ftplib", "http", "multiprocessing", "select", "selectors", "smtplib"),
    *("socket", "socketserver", "ssl", "subprocess", "threading", "urllib", "xmlrpc"),
}

# The labs start no thread; by a lock they keep Jupyter's threads apart.
STARTS_NOTHING = {"threading.RLock"}

FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path):
    """'softmax' for softmax.py, 'labs' for every file in labs/."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(source, path):
    """The full names that a source imports, anywhere in it: 'numpy.typing', 'attnbook.masks'.

    What attnbook/__init__.py exports comes out as 'attnbook' alone.
    """
    here = ("attnbook", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = here[: len(here) + 1 - node.level] if node.level else ()
            base = ".".join((*start, *filter(None, [node.module])))
            submodules = [alias.name for alias in node.names if alias.name not in EXPORTED]
            if base == "threading":
                yield from (f"{base}.{alias.name}" for alias in node.names)
            elif base != "attnbook" or len(submodules) < len(node.names):
                yield base
            if base == "attnbook":
                yield from (f"{base}.{name}" for name in submodules)


def faults(source, path):
    """What this source imports against the rule of its layer."""
    layer = LAYERS[module_of(path)]
    for name in imports(source, path):
        top = name.partition(".")[0]
        if top == "attnbook":
            module = (name.split(".")[1:] or ["__init__"])[0]
            if module not in layer.ours:
                yield f"{module} of attnbook"
        elif top in sys.stdlib_module_names:
            if top in PROCESSES_AND_NETWORK and name not in STARTS_NOTHING and not layer.tool:
                yield f"{top} (no threads, processes or network in what a notebook imports)"
        elif top not in layer.packages and (not layer.tool or top == "ipywidgets"):
            yield top


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_keeps_to_its_layer(path):
    module = module_of(path)
    assert module in LAYERS, f"{module} is new: say in LAYERS what it may import"
    found = list(faults(path.read_text(encoding="utf-8"), path))
    assert not found, f"{module} may not import {', '.join(found)}"


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("softmax.py", "from attnbook.masks import causal", "masks of attnbook"),
        ("softmax.py", "from attnbook import masks", "masks of attnbook"),
        ("softmax.py", "from . import masks", "masks of attnbook"),
        ("softmax.py", "from .attention import attention", "attention of attnbook"),
        ("softmax.py", "import scipy.special", "scipy"),
        ("masks.py", "def f():\n    import attnbook.softmax", "softmax of attnbook"),
        ("attention.py", "from attnbook import softmax_backward", "__init__ of attnbook"),
        ("attention.py", "from attnbook import softmax", "__init__ of attnbook"),
        ("exact.py", "from attnbook.attention import attention", "attention of attnbook"),
        ("exact.py", "import numpy as np", "numpy"),
        ("examples.py", "import sympy", "sympy"),
        ("examples.py", "from attnbook import exact", "exact of attnbook"),
        ("picture.py", "from attnbook import attention", "__init__ of attnbook"),
        ("diagrams.py", "from attnbook.softmax import softmax", "softmax of attnbook"),
        ("build.py", "import ipywidgets", "ipywidgets"),
        ("launcher/server.py", "from ..labs import engine", "labs of attnbook"),
        ("labs/engine.py", "import threading", "threading (no threads"),
        ("labs/engine.py", "from threading import RLock, Thread", "threading (no threads"),
        ("labs/engine.py", "from urllib.request import urlopen", "urllib (no threads"),
        ("__init__.py", "from attnbook import exact", "exact of attnbook"),
    ],
)
def test_a_fault_is_found(file, source, fault):
    found = list(faults(source, PACKAGE / file))
    assert len(found) == 1
    assert found[0].startswith(fault)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("attention.py", "from attnbook.softmax import softmax\nimport numpy.typing, math"),
        ("labs/engine.py", "from attnbook import attention, masks, examples\nfrom . import other"),
        ("labs/engine.py", "from ..softmax import softmax\nimport ipywidgets"),
        ("labs/engine.py", "from threading import RLock"),
        ("build.py", "import nbformat, subprocess, attnbook.picture"),
    ],
)
def test_what_is_allowed_is_no_fault(file, source):
    assert list(faults(source, PACKAGE / file)) == []


def in_a_fresh_python(code):
    """Run code in a new interpreter, warnings being errors, and return what it prints as JSON."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_attnbook_loads_numpy_alone():
    loaded = in_a_fresh_python(
        "import json, sys\n"
        "before = {name.partition('.')[0] for name in sys.modules}\n"
        "import attnbook\n"
        "after = {name.partition('.')[0] for name in sys.modules}\n"
        "print(json.dumps(sorted(after - before - sys.stdlib_module_names)))"
    )
    assert loaded == ["attnbook", "numpy"]


def test_import_attnbook_changes_no_global_setting():
    changed = in_a_fresh_python(
        "import json, locale, os, random, sys, warnings\n"
        "import numpy as np\n"
        "def settings():\n"
        "    return [np.geterr(), np.geterrcall(), np.get_printoptions(), list(warnings.filters),\n"
        "        np.random.get_state()[1].tolist(), random.getstate(), dict(os.environ),\n"
        "        list(sys.path), locale.setlocale(locale.LC_ALL), sys.excepthook]\n"
        "before = settings()\n"
        "import attnbook\n"
        "print(json.dumps([i for i, (x, y) in enumerate(zip(before, settings())) if x != y]))"
    )
    assert changed == []


def test_exact_is_an_ordinary_submodule_that_loads_sympy_when_imported():
    assert in_a_fresh_python(
        "import json, sys\n"
        "import attnbook\n"
        "before = 'sympy' in sys.modules\n"
        "from attnbook import exact\n"
        "print(json.dumps([before, 'sympy' in sys.modules, exact.__name__]))"
    ) == [False, True, "attnbook.exact"]


def test_exports():
    assert sorted(attnbook.__all__) == [
        "Attention",
        "Gradients",
        "KVCache",
        "MultiHead",
        "MultiHeadGradients",
        "Tiled",
        "TiledGradients",
        "attention",
        "attention_backward",
        "cost",
        "entropy",
        "grouped_attention",
        "grouped_attention_backward",
        "masks",
        "merge_heads",
        "multi_head_attention",
        "multi_head_attention_backward",
        "pack_projections",
        "progress",
        "softmax",
        "softmax_backward",
        "split_heads",
        "tiled_attention",
        "tiled_attention_backward",
        "unpack_projections",
    ]
    for name in attnbook.__all__:
        assert getattr(attnbook, name).__doc__, name
    assert callable(attnbook.softmax)
    assert callable(attnbook.attention)


@pytest.mark.parametrize("errors", ["ignore", "warn", "raise"])
def test_a_call_keeps_the_caller_s_settings(errors):
    with np.errstate(all=errors):
        before = np.geterr(), np.get_printoptions(), list(warnings.filters)
        O, A, _ = attnbook.attention([[1e200]], [[1e200], [1.0]], [[1.0], [2.0]], [False, True])
        attnbook.attention_backward(O, [[1e200]], [[1e200], [1.0]], [[1.0], [2.0]], A)
        with pytest.raises(FloatingPointError):
            attnbook.attention([[1e200]], [[1e200]], [[1.0]])
        assert (np.geterr(), np.get_printoptions(), list(warnings.filters)) == before
