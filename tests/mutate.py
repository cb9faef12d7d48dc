"""Change the numerics in small ways and see whether the tests notice: python tests/mutate.py

Each mutant is one change of one module in a copy of the project. The module's own tests run on it
in a forked process (so not on Windows); on a survivor also the tests of properties and of the
conformance cases. The seed fixes the order of the mutants; when the minutes are over, those tried
so far are the sample. Nothing in the project itself is touched.
"""

import argparse
import ast
import copy
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LEFT_BEHIND = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "my_book", "notebooks")

TESTS = {  # module -> its own tests
    "softmax": ["softmax"],
    "masks": ["masks"],
    "attention": ["attention"],
    "heads": ["heads"],
    "exact": ["exact"],
    "tiled": ["tiled"],
    "cache": ["cache"],
    "cost": ["cost"],
    "_product": ["attention", "heads", "tiled"],
    "_checks": ["softmax", "attention", "heads", "tiled", "cache"],
    "rotary": ["rotary"],
    "directions": ["directions"],
    "head_catalogue": ["head_catalogue"],
    "memory": ["peak_memory"],
    "configurations": ["configurations"],
    "recordings": ["recordings"],
    "diagrams": ["picture"],
    **{f"training/{name}": ["training"] for name in ("step", "model", "loss", "adam", "tasks")},
    **{f"training/{name}": ["training"] for name in ("patterns", "weights", "run", "_entry")},
}
DEFAULT = ["softmax", "masks", "attention", "heads", "exact"]
WIDER = ["survivors", "properties", "onnx_cases"]

COMPARISONS = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
ARITHMETIC = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
}
PAIRS = (
    "max min, maximum minimum, any all, zeros ones, isfinite isnan, isneginf isposinf, ceil floor"
)
NAMES = {"zeros_like": "ones_like", "less_equal": "less"}  # easily taken for each other
for one, other in (pair.split() for pair in PAIRS.split(", ")):
    NAMES |= {one: other, other: one}


class Mutant(NamedTuple):
    """One change: the module, the line it is on, and the module's whole new text."""

    module: str
    line: int
    text: str

    def diff(self, original: str) -> str:
        old, new = original.splitlines(), self.text.splitlines()
        while old and new and old[0] == new[0]:
            del old[0], new[0]
        while old and new and old[-1] == new[-1]:
            del old[-1], new[-1]
        lines = [f"  - {x.strip()}" for x in old] + [f"  + {x.strip()}" for x in new]
        return f"{self.module}.py:{self.line}\n" + "\n".join(lines)


def variants(node: ast.AST) -> Iterator[ast.AST | str]:
    """Yield what may stand in the place of this node: other nodes, or text."""

    def changed(**fields: object) -> ast.AST:
        new = copy.copy(node)
        for name, value in fields.items():
            setattr(new, name, value)
        return new

    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for other in COMPARISONS[type(op)]:
                    yield changed(ops=[*ops[:i], other(), *ops[i + 1 :]])
        case ast.BinOp(op=op):
            for other in ARITHMETIC.get(type(op), []):
                yield changed(op=other())
            if isinstance(op, ast.MatMult | ast.Sub | ast.Div | ast.FloorDiv):
                yield changed(left=node.right, right=node.left)
        case ast.AugAssign(op=op):
            for other in ARITHMETIC.get(type(op), []):
                yield changed(op=other())
            yield "pass"
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.BoolOp(op=op, values=values):
            yield changed(op=ast.Or() if isinstance(op, ast.And) else ast.And())
            if len(values) > 2:
                for i in range(len(values)):
                    yield changed(values=values[:i] + values[i + 1 :])
            else:
                yield from values
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.IfExp(test=test):
            yield changed(test=ast.UnaryOp(ast.Not(), test))
        case ast.Call(func=func, args=args, keywords=keywords):
            name = getattr(func, "attr", getattr(func, "id", None))
            if name in NAMES:
                new = copy.copy(func)
                setattr(new, "attr" if isinstance(func, ast.Attribute) else "id", NAMES[name])
                yield changed(func=new)
            if len(args) > 1:
                yield changed(args=args[:-1])
                if not any(isinstance(x, ast.Starred) for x in args[:2]):
                    yield changed(args=[args[1], args[0], *args[2:]])
            elif len(args) == 1 and not isinstance(args[0], ast.Starred):
                yield args[0]
            for i, keyword in enumerate(keywords):
                if keyword.arg != "copy":
                    yield changed(keywords=keywords[:i] + keywords[i + 1 :])
        case ast.Attribute(value=value, attr="mT" | "T"):
            yield value
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None:
                yield changed(lower=None)
            if upper is not None:
                yield changed(upper=None)
        case ast.comprehension(ifs=[_, *_]):
            yield changed(ifs=[])
        case ast.Return(value=value) if value is not None:
            yield "return None"
        case ast.Raise() | ast.Continue() | ast.Break():
            yield "pass"
        case ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "pass"


def mutants(module: str, source: str) -> list[Mutant]:
    """Return all mutants of a module, without those of its texts, annotations and imports."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    raw, found = source.encode(), []

    def put(line: int, start: int, end: int, new: str) -> None:
        text = (raw[:start] + new.encode() + raw[end:]).decode()
        try:
            ast.parse(text)
        except SyntaxError:
            return
        found.append(Mutant(module, line, text))

    def span(node: ast.AST) -> tuple[int, int]:
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.keyword) and node.arg == "copy":  # speed, not values
            return
        if isinstance(node, ast.comprehension):  # has no place of its own
            start, end = span(node.target)[0], span((node.ifs or [node.iter])[-1])[1]
        elif hasattr(node, "lineno"):
            start, end = span(node)
        for new in variants(node):
            text = new if isinstance(new, str) else ast.unparse(new)
            if isinstance(new, ast.comprehension):
                text = text.strip().removeprefix("for ")
            if isinstance(new, ast.Slice):
                text = text.strip("()")
            elif isinstance(new, ast.expr) and not isinstance(new, ast.Constant | ast.Call):
                text = f"({text})"
            line = getattr(node, "lineno", None) or node.target.lineno
            put(line, start, end, text)
        if isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Compare):
            start, end = span(node.test)
            put(node.lineno, start, end, f"not ({ast.unparse(node.test)})")
        for decorator in getattr(node, "decorator_list", []):
            start, end = span(decorator)
            put(decorator.lineno, start - 1, end, "")
        skipped = {"annotation", "returns", "exc", "decorator_list", "type_params"}
        for name, value in ast.iter_fields(node):
            if name in skipped:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child)

    visit(ast.parse(source))
    return list({mutant.text: mutant for mutant in found if mutant.text != source}.values())


def run_tests(folder: Path, names: list[str], log: str) -> None:
    """Run the tests of the copy in this process, and end it with pytest's status."""
    with open(log, "w", encoding="utf-8") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.chdir(folder)
    sys.dont_write_bytecode = True  # an old .pyc would stand for a new mutant of the same size
    sys.path.insert(0, str(folder))
    import hypothesis
    import pytest

    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile("mutate", derandomize=True, database=None, phases=phases)
    hypothesis.settings.load_profile("mutate")
    files = [f"tests/test_{name}.py" for name in names if Path(f"tests/test_{name}.py").exists()]
    imported_before = "ignore::pytest.PytestAssertRewriteWarning"
    flags = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", "-W", imported_before]
    flags += ["-o", "addopts=", "-p", "no:nbval"]
    status = pytest.main([*flags, *files])
    if Path(sys.modules["attnbook"].__file__).parent != folder / "attnbook":
        status = 99  # the tests have not seen the copy
    os._exit(status)


def outcome(folder: Path, names: list[str], limit: float) -> str:
    """Return 'passed', 'failed' or 'timeout'."""
    log = str(folder / "log.txt")
    process = multiprocessing.get_context("fork").Process(
        target=run_tests, args=(folder, names, log), daemon=True
    )
    process.start()
    process.join(limit)
    if process.exitcode is None:
        process.kill()
        process.join()
        return "timeout"
    if process.exitcode == 0:
        return "passed"
    if process.exitcode not in (1, 2, 4):  # a test failed, or a module could not be imported
        raise RuntimeError(
            f"pytest ended with {process.exitcode}:\n{Path(log).read_text()[-3000:]}"
        )
    return "failed"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=DEFAULT, help=f"of {', '.join(TESTS)}")
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the mutants")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.modules) - TESTS.keys())
    if unknown:
        parser.error(f"unknown modules {unknown}: choose of {', '.join(TESTS)}")

    # Imported once, shared by all forks; neither uses threads yet.
    for name in ("numpy", "hypothesis", "pytest", "sympy"):
        __import__(name)
    stop = time.monotonic() + 60 * options.minutes
    counts = {module: Counter() for module in options.modules}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve() / "project"
        shutil.copytree(ROOT, folder, ignore=LEFT_BEHIND)
        sources, limits, queues = {}, {}, []
        for module in options.modules:
            sources[module] = (folder / "attnbook" / f"{module}.py").read_text(encoding="utf-8")
            started = time.monotonic()
            if outcome(folder, TESTS[module], 600) != "passed":
                print((folder / "log.txt").read_text()[-3000:])
                raise SystemExit(f"the tests of {module} fail without any change")
            limits[module] = 20 + 5 * (time.monotonic() - started)
            found = mutants(module, sources[module])
            counts[module]["mutants"] = len(found)
            random.Random(options.seed).shuffle(found)
            queues.append(found)
        # In turn one of each module, so that minutes that are too few are shared evenly.
        queue = [mutant for turn in zip_longest(*queues) for mutant in turn if mutant]

        for i, mutant in enumerate(queue):
            if time.monotonic() > stop:
                break
            file = folder / "attnbook" / f"{mutant.module}.py"
            file.write_text(mutant.text, encoding="utf-8")
            result = outcome(folder, TESTS[mutant.module], limits[mutant.module])
            if result == "passed":
                result = "survived"
                if outcome(folder, WIDER, 600) != "passed":
                    result = "found by the wider tests"
                print(f"{result}: {mutant.diff(sources[mutant.module])}", flush=True)
            counts[mutant.module]["tried"] += 1
            counts[mutant.module][result] += 1
            file.write_text(sources[mutant.module], encoding="utf-8")
            if i % 50 == 49:
                print(f"-- {i + 1} of {len(queue)} tried", flush=True)

    print(f"\nseed {options.seed}")
    kinds = ["mutants", "tried", "failed", "timeout", "found by the wider tests", "survived"]
    print("module", *kinds, sep=" | ")
    total = sum(counts.values(), Counter())
    for name, count in [*counts.items(), ("all", total)]:
        print(name, *(count[kind] for kind in kinds), sep=" | ")
    return 1 if total["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
