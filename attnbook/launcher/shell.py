"""Paths and commands as the reader types them, so that a message can be copied to the shell.

Readers do not activate the book's environment: a command names the Python that runs now.
"""

import os
import shlex
import sys
from pathlib import Path


def shown(path: Path) -> str:
    """Return a path relative to the current folder if it lies below, and quoted if need be.

    Parameters
    ----------
    path : Path
        An absolute path.

    Returns
    -------
    str
        The path for the shell that the README has commands for.

    Examples
    --------
    >>> shown(Path.cwd() / "my_book" / "00_start_here.ipynb").replace(os.sep, "/")
    'my_book/00_start_here.ipynb'
    """
    here, text = Path.cwd(), str(path)
    if path.is_relative_to(here):
        text = str(path.relative_to(here))
        if text == path.name:  # which a shell would look for among the programs
            text = os.path.join(os.curdir, text)
    return quoted(text, windows=os.name == "nt")


def quoted(text: str, windows: bool) -> str:
    """Quote what a POSIX shell, or PowerShell, would not take as one word.

    Examples
    --------
    >>> quoted("/opt/my book/python", windows=False)
    "'/opt/my book/python'"
    >>> quoted("Jo's python.exe", windows=True)
    "'Jo''s python.exe'"
    """
    if not windows:
        return shlex.quote(text)
    return "'{}'".format(text.replace("'", "''")) if set(text) & set(" '()&;,`$") else text


def python(*arguments: str, executable: str = sys.executable) -> str:
    """Return the command that runs the Python of this process, or another, with arguments.

    Examples
    --------
    >>> python("-m", "attnbook", "--fresh", "04", executable="/usr/bin/python3")
    '/usr/bin/python3 -m attnbook --fresh 04'
    """
    program = shown(Path(executable))
    if program.startswith("'") and os.name == "nt":
        program = f"& {program}"  # without which PowerShell takes it for a text
    return " ".join([program, *arguments])


def book(*arguments: str) -> str:
    """Return the command that opens the book, with arguments.

    Examples
    --------
    >>> book("--fresh", "04").endswith(" -m attnbook --fresh 04")
    True
    """
    return python("-m", "attnbook", *arguments)
