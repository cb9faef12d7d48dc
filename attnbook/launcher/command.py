"""The command `python -m attnbook`: bring the working copy up to date, open JupyterLab on it."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from attnbook.launcher import shell, working_copy
from attnbook.launcher.working_copy import BOOK

CONFIG = Path(__file__).with_name("config")

HELP = """\
usage: {book} [arguments for JupyterLab]
       {book} --fresh NN

The first opens the book in JupyterLab, on your own working copy of the chapters in my_book/.
All arguments go to JupyterLab, for example --no-browser or --port=8889, or --log-level=INFO to
see what it does; `{jupyterlab} --help` lists them.

The second puts chapter NN back as the book has it, for example --fresh 04, and starts nothing.
What you wrote is moved to a backup beside it. It may be given several times, and while the
book is open: then reload the tab.

  -h, --help   show this text

The chapters in my_book/ are yours: opening the book again adds new chapters and updates those
that you did not write in. It never overwrites what you wrote. A chapter that you deleted comes
back; to keep a changed one beside the book's, rename it.
"""


def parse(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the command line into the book's own options and JupyterLab's arguments.

    Parameters
    ----------
    arguments : sequence of str
        The command line after `python -m attnbook`.

    Returns
    -------
    fresh : list of str
        The chapters to restore.
    rest : list of str
        The arguments for JupyterLab, in their order; none if there is something to restore.

    Raises
    ------
    SystemExit
        After the help was shown, or if `--fresh` has no chapter or stands beside other arguments.

    Examples
    --------
    >>> parse(["--no-browser", "--port", "8889"])
    ([], ['--no-browser', '--port', '8889'])
    >>> parse(["--fresh", "04", "--fresh=5"])
    (['04', '5'], [])
    """
    book = shell.book()
    parser = argparse.ArgumentParser(
        prog=book,
        usage="%(prog)s [--fresh NN] [arguments for JupyterLab]",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("--fresh", action="append", default=[], metavar="NN")
    parser.add_argument("-h", "--help", action="store_true")
    own, rest = parser.parse_known_args(arguments)
    if own.help:
        print(HELP.format(book=book, jupyterlab=shell.python("-m", "jupyterlab")), end="")
        raise SystemExit(0)
    if own.fresh and rest:
        parser.error(
            f"--fresh NN restores one chapter and starts nothing, so it takes no {rest[0]!r}: give "
            "--fresh once for each chapter, and open the book by a command of its own"
        )
    return own.fresh, rest


def jupyterlab_arguments(project: Path, rest: Sequence[str]) -> list[str]:
    """Add the book's folder and first page to the reader's arguments, which win.

    Parameters
    ----------
    project : Path
        The folder that holds `notebooks/` and `my_book/`.
    rest : sequence of str
        The reader's arguments for JupyterLab.

    Returns
    -------
    list of str
        The arguments to start JupyterLab with.

    Examples
    --------
    >>> jupyterlab_arguments(BOOK, ["--notebook-dir=elsewhere"])
    ['--notebook-dir=elsewhere']
    """
    # JupyterLab refuses an option that is given twice.
    given = {argument.partition("=")[0] for argument in rest}
    if given & {"--notebook-dir", "--ServerApp.root_dir", "--ServerApp.notebook_dir"}:
        return list(rest)
    own = [f"--ServerApp.root_dir={project}"]
    if "--LabApp.default_url" not in given:
        first = working_copy.chapters(project)[0].name
        own.append(f"--LabApp.default_url=/lab/tree/{working_copy.FOLDER}/{first}")
    return own + list(rest)


def use_config(environ: dict[str, str] = os.environ) -> None:
    """Put the book's settings on Jupyter's config path.

    They come after the folders that the reader named there, which keep the last word, and
    before those of the machine, the user and the environment, since these were not made for
    the book.

    Parameters
    ----------
    environ : mapping of str to str
        The environment to change.

    Examples
    --------
    >>> environ = {"JUPYTER_CONFIG_PATH": "mine"}
    >>> use_config(environ)
    >>> environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0]
    'mine'
    """
    folders = [f for f in environ.get("JUPYTER_CONFIG_PATH", "").split(os.pathsep) if f]
    environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join([*folders, str(CONFIG)])
    # Notebooks run on the Python that has the book, even if the user once registered another.
    environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")


def without_jupyterlab(project: Path, error: ImportError) -> str:
    """Say what to run when this Python has no JupyterLab, most often since it is another one.

    Parameters
    ----------
    project : Path
        The folder that holds `requirements.txt`, and `.venv/` if the README was followed.
    error : ImportError
        What Python says.

    Returns
    -------
    str
        One sentence with the command.

    Examples
    --------
    >>> print(without_jupyterlab(Path("/nowhere"), ImportError("none")))  # doctest: +ELLIPSIS
    JupyterLab cannot be started (none): install it with `... -m pip install -r ...`
    """
    usual = project / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if usual.exists() and Path(sys.prefix).resolve() != (project / ".venv").resolve():
        opens = shell.python("-m", "attnbook", executable=str(usual))
        return f"this Python has no JupyterLab ({error}): open the book with `{opens}`"
    installs = shell.python("-m", "pip", "install", "-r", shell.shown(project / "requirements.txt"))
    return f"JupyterLab cannot be started ({error}): install it with `{installs}`"


def main(arguments: Sequence[str] | None = None, project: Path = BOOK) -> int:
    """Bring the working copy up to date and open the book in JupyterLab, or restore chapters.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line; by default that of the program.
    project : Path, optional
        The folder that holds `notebooks/`.

    Returns
    -------
    int
        The exit status: 0 after chapters were restored or JupyterLab was closed, 1 if the book
        cannot be opened.

    Examples
    --------
    >>> main(["--fresh", "04"], Path("nowhere"))
    1
    """
    fresh, rest = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        if fresh:
            _say(working_copy.restore(project, fresh))
            return 0
        use_config()
        # Only now: it reads the config path when it is imported, and takes a second. And before
        # any file is touched: without it there is nothing to open.
        from jupyterlab.labapp import main as open_jupyterlab

        done = working_copy.prepare(project)
    except working_copy.BookError as error:
        print(f"attnbook: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"attnbook: {without_jupyterlab(project, error)}", file=sys.stderr)
        return 1
    print()
    _say([*done, "JupyterLab opens; Control-C here closes it again"])
    print(flush=True)
    sys.argv[0] = "python -m attnbook"  # what JupyterLab's own messages call the program
    open_jupyterlab(jupyterlab_arguments(project, rest))
    return 0


def _say(messages: Sequence[str]) -> None:
    for message in messages:
        print(f"attnbook: {message}", flush=True)
