"""What the files around the book promise each other: README, ranges, packages, top level."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Fixed by the book's design: nothing else stands at the top.
TOP_LEVEL = {
    *("README.md", "requirements.txt", "notebooks", "attnbook", "figures", "tests"),
    *("pyproject.toml", "LICENSE", ".gitignore", ".gitattributes", ".ci"),
}


def lines(name):
    """The lines of a requirements file that say something."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


def requirements(texts):
    return {requirement.name: requirement.specifier for requirement in map(Requirement, texts)}


@pytest.fixture(scope="module")
def tracked():
    """The files that are in git, or would be after `git add .`."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(git, capture_output=True, check=True).stdout.decode().split("\0")
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: which files belong to the project is not known")
    return [path for path in sorted(filter(None, listed)) if (ROOT / path).is_file()]


# Versions


def test_requirements_are_the_ranges_of_pyproject_and_the_book():
    *ranges, book = lines("requirements.txt")
    assert requirements(ranges) == requirements(PYPROJECT["project"]["dependencies"])
    assert book == "-e ."


def test_every_range_has_both_ends():
    for name, specifier in requirements(PYPROJECT["project"]["dependencies"]).items():
        assert sorted(part.operator for part in specifier) == ["<", ">="], name


def test_lowest_constraints_are_the_lower_ends():
    ranges = requirements(PYPROJECT["project"]["dependencies"])
    ranges |= requirements(lines("tests/requirements.txt"))
    lower_ends = {
        name: Version(part.version)
        for name, specifier in ranges.items()
        for part in specifier
        if part.operator in (">=", "==")
    }
    assert lower_ends.keys() == ranges.keys()
    pinned = requirements(lines("tests/constraints-lowest.txt"))
    assert all([part.operator for part in pins] == ["=="] for pins in pinned.values())
    assert {name: Version(next(iter(pins)).version) for name, pins in pinned.items()} == lower_ends


def test_lowest_python_is_the_one_that_the_tools_assume():
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py311"


# README


def commands():
    """The marked commands of the README: name -> (language, lines)."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^<!-- command: (\S+) -->\n```(\w+)\n(.*?)^```$", readme, re.M | re.S)
    assert readme.count("<!-- command:") == len(found)
    return {name: (language, code.splitlines()) for name, language, code in found}


def test_readme_has_each_command_once_in_one_line():
    assert {name: (language, len(code)) for name, (language, code) in commands().items()} == {
        "open": ("sh", 1),
        "open-powershell": ("powershell", 1),
        "test": ("sh", 1),
        "test-powershell": ("powershell", 1),
    }


@pytest.mark.parametrize("name", ["open", "test"])
def test_both_shells_do_the_same(name):
    posix, windows = (commands()[key][1][0] for key in (name, f"{name}-powershell"))
    same_steps = [
        re.sub(r"\.venv/bin/python", "PYTHON", step).replace("python3", "CREATE")
        for step in posix.split(" && ")
    ]
    first, *others = windows.split("; ")
    steps = [first, *(re.fullmatch(r"if \(\$\?\) \{ (.*) \}", step)[1] for step in others)]
    steps = [
        re.sub(r"\.venv\\Scripts\\python", "PYTHON", step).replace("py -3", "CREATE")
        for step in steps
    ]
    assert steps == same_steps
    assert steps[-1] == {"open": "PYTHON -m attnbook", "test": "PYTHON -m pytest"}[name]


def test_readme_leads_to_files_and_names_every_folder(tracked):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!http)([^)]+)\)", readme)
    assert set(links) <= set(tracked)
    chapters = {path for path in tracked if re.fullmatch(r"notebooks/\d\d_\w+\.ipynb", path)}
    assert chapters <= set(links)
    named = set(re.findall(r"`([\w/]+/)`", readme))
    code = {f"{path.rpartition('/')[0]}/" for path in tracked if path.endswith((".py", ".npz"))}
    assert {folder for folder in code if "/data/" not in folder} <= named


# Files


def test_top_level_holds_what_the_design_names(tracked):
    assert {path.split("/")[0] for path in tracked} <= TOP_LEVEL
    assert {path for path in tracked if path.startswith(".ci/")} == {".ci/run"}


def test_ci_and_the_tests_look_for_the_same_browsers():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    driver = (ROOT / "tests" / "browser" / "driver.py").read_text(encoding="utf-8")
    (shell,) = re.findall(r"^BROWSERS=\((.*)\)$", script, re.M)
    (python,) = re.findall(r"^BROWSERS = \((.*)\)$", driver, re.M)
    assert shell.split() == re.findall(r'"(.+?)"', python)


def test_every_package_is_listed_and_every_listed_package_is_there():
    found = {
        ".".join(file.parent.relative_to(ROOT).parts)
        for file in (ROOT / "attnbook").rglob("__init__.py")
    }
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == found
    # A module in a folder without __init__.py would be missing from an installed book.
    assert {
        ".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "attnbook").rglob("*.py")
    } == found


def test_every_data_file_is_installed(tracked):
    package_data = PYPROJECT["tool"]["setuptools"]["package-data"]
    installed = {
        file.relative_to(ROOT).as_posix()
        for package, patterns in package_data.items()
        for pattern in patterns
        for file in (ROOT / package.replace(".", "/")).glob(pattern)
        if file.is_file()
    }
    in_package = {path for path in tracked if path.startswith("attnbook/")}
    data = {path for path in in_package if not path.endswith(".py")}
    assert data <= installed
    assert any(path.endswith(".json") for path in data)


def texts(tracked):
    """Path and text of every tracked file that is text."""
    for path in tracked:
        try:
            yield path, (ROOT / path).read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            assert not path.endswith((".py", ".md", ".ipynb", ".svg", ".toml", ".txt", ".csv"))


# Put together from parts, so that this file does not find itself.
PLACES = ["wo" + "rk/", "ro" + r"ot\b", "ho" + r"me/\w", "Us" + r"ers/\w"]
MACHINE_PATHS = re.compile(rf"(?<![\w./-])/(?:{'|'.join(PLACES)})|\b[A-Z]:\\+Users\\")
UNFINISHED = re.compile(rf"\b({'TO' + 'DO'}|{'FIX' + 'ME'}|{'X' * 3})\b")


def test_no_file_names_a_place_on_somebodys_machine(tracked):
    assert {
        path: found[0] for path, text in texts(tracked) if (found := MACHINE_PATHS.search(text))
    } == {}


@pytest.mark.parametrize(
    "path", ["/wo" + "rk/main", "/ro" + "ot", "/ho" + "me/ann", "C:\\Us" + "ers\\ann"]
)
def test_such_a_place_would_be_found(path):
    assert MACHINE_PATHS.search(f"see {path}/x.py")
    assert MACHINE_PATHS.search(f'"{path}"')


def test_nothing_is_marked_as_unfinished(tracked):
    # The sources have marks of their own: tests/data quotes them, and chapter 91 says so.
    quoting = ("tests/data/", "notebooks/91_sources_and_corrections.ipynb")
    found = [
        path
        for path, text in texts(tracked)
        if not path.startswith(quoting) and UNFINISHED.search(text)
    ]
    assert found == []


def test_licence_names_both_licences_and_has_the_text():
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "BSD-3-Clause" in licence or "BSD 3-Clause" in licence
    assert "CC BY 4.0" in licence
    assert "Redistribution and use in source and binary forms" in licence
    assert "THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS" in licence
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "BSD-3-Clause" in readme
    assert "CC BY 4.0" in readme
