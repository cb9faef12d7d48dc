"""The command `python -m attnbook`: bring the working copy up to date, open JupyterLab on it."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from attnbook.launcher import working_copy
from attnbook.launcher.working_copy import BOOK

CONFIG = Path(__file__).with_name("config")

HELP = """\
usage: python -m attnbook [--fresh NN] [arguments for JupyterLab]

Open the book in JupyterLab, on your own working copy of the chapters in my_book/.

  --fresh NN   put chapter NN back as the book has it, for example --fresh 04;
               your version is moved to a backup beside it (may be given several times)
  -h, --help   show this text

All other arguments go to JupyterLab, for example --no-browser or --port=8889;
`jupyter lab --help` lists them.

The chapters in my_book/ are yours: running `python -m attnbook` again adds new chapters and
updates those that you did not write in. It never overwrites what you wrote. A chapter
that you deleted comes back; to keep a changed one beside the book's, rename it.
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
        Everything else, in its order.

    Raises
    ------
    SystemExit
        After the help was shown, or if `--fresh` has no chapter.

    Examples
    --------
    >>> parse(["--fresh", "04", "--no-browser", "--port", "8889"])
    (['04'], ['--no-browser', '--port', '8889'])
    """
    parser = argparse.ArgumentParser(
        prog="python -m attnbook",
        usage="%(prog)s [--fresh NN] [arguments for JupyterLab]",
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("--fresh", action="append", default=[], metavar="NN")
    parser.add_argument("-h", "--help", action="store_true")
    own, rest = parser.parse_known_args(arguments)
    if own.help:
        print(HELP, end="")
        raise SystemExit(0)
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


def main(arguments: Sequence[str] | None = None, project: Path = BOOK) -> int:
    """Bring the working copy up to date and open the book in JupyterLab.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line; by default that of the program.
    project : Path, optional
        The folder that holds `notebooks/`.

    Returns
    -------
    int
        The exit status: 0 after JupyterLab was closed, 1 if the book cannot be opened.

    Examples
    --------
    >>> main([], Path("nowhere"))
    1
    """
    fresh, rest = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        for message in working_copy.prepare(project, fresh):
            print(f"attnbook: {message}", flush=True)
    except working_copy.BookError as error:
        print(f"attnbook: {error}", file=sys.stderr)
        return 1
    use_config()
    # Only now: it reads the config path when it is imported, and takes a second.
    from jupyterlab.labapp import main as open_jupyterlab

    open_jupyterlab(jupyterlab_arguments(project, rest))
    return 0
