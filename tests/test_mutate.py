"""The mutation tool makes the changes that it promises, each one valid and each one different."""

import ast

from mutate import DEFAULT, ROOT, TESTS, mutants

SOURCE = '''
def f(x, y=2):
    """1 + 1 and x < y stay as they are."""
    if x < y and not x:
        raise ValueError(f"{x + y} stays too")
    g(x, y, key=x[1:], copy=True)
    return [a @ x.mT for a in y if a]
'''


def lines(mutant):
    old, new = SOURCE.splitlines(), mutant.text.splitlines()
    assert len(old) == len(new)
    (changed,) = [(i, b.strip()) for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    assert mutant.line == changed[0] + 1
    return changed[1]


def test_the_changes_of_a_small_function():
    found = {lines(mutant) for mutant in mutants("f", SOURCE)}
    assert found == {
        *("def f(x, y=3):", "def f(x, y=1):"),
        *("if (x <= y) and not x:", "if (x >= y) and not x:", "if x < y and (x):"),
        *("if (x < y or not x):", "if (x < y):", "if (not x):", "if not (x < y and (not x)):"),
        "pass",
        *(
            "g(x, key=x[1:], copy=True)",
            "g(y, x, key=x[1:], copy=True)",
            "g(x, y, copy=True)",
            "g(x, y, key=x[:], copy=True)",
        ),
        *("g(x, y, key=x[2:], copy=True)", "g(x, y, key=x[0:], copy=True)"),
        "return None",
        *("return [(a * x.mT) for a in y if a]", "return [(x.mT @ a) for a in y if a]"),
        *("return [a @ (x) for a in y if a]", "return [a @ x.mT for a in y]"),
    }


def test_every_mutant_of_a_module_is_another_program():
    source = (ROOT / "attnbook" / "masks.py").read_text(encoding="utf-8")
    programs = [ast.dump(ast.parse(mutant.text)) for mutant in mutants("masks", source)]
    assert ast.dump(ast.parse(source)) not in programs
    assert len(programs) > 50


def test_the_modules_and_their_tests_are_there():
    assert {"softmax", "masks", "attention", "heads", "exact"} == set(DEFAULT) <= TESTS.keys()
    for module, tests in TESTS.items():
        assert (ROOT / "attnbook" / f"{module}.py").is_file()
        assert all((ROOT / "tests" / f"test_{test}.py").is_file() for test in tests)
