"""The reader's working copy of the chapters: made once, kept up to date, never overwritten.

`notebooks/` belongs to the book and `my_book/` to the reader. A manifest in `my_book/` records
for each chapter the digest of its cell sources when it was copied. It is what tells a chapter
that the reader only ran (it may be replaced by a newer one) from one that the reader wrote in.
What JupyterLab changes by itself when it opens and saves a chapter does not count as writing.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from attnbook.launcher import shell

BOOK = Path(__file__).resolve().parents[2]
FOLDER = "my_book"
MANIFEST = ".attnbook.json"
MANIFEST_VERSION = 1
RELOAD = "If it is open in JupyterLab, reload the tab."


class BookError(Exception):
    """Something that the reader has to put right; its text is one sentence for the reader."""


def chapters(project: Path) -> list[Path]:
    """List the book's own chapters in reading order.

    Parameters
    ----------
    project : Path
        The folder that holds `notebooks/`.

    Returns
    -------
    list of Path
        The files `notebooks/NN_name.ipynb`, at least one.

    Raises
    ------
    BookError
        If there is none.

    Examples
    --------
    >>> chapters(Path("nowhere"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    attnbook.launcher.working_copy.BookError: no chapters found in nowhere/notebooks: ...
    """
    found = _chapters(project)
    if not found:
        raise BookError(
            f"no chapters found in {(project / 'notebooks').as_posix()}: start the book from its "
            "folder as downloaded, with the command that the README gives"
        )
    return found


def _chapters(project: Path) -> list[Path]:
    return sorted((project / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def find_chapter(name: str, book: list[Path]) -> Path:
    """Find the chapter that a reader means by "4", "04" or "04_scores_and_scaling".

    Parameters
    ----------
    name : str
        Number or file name, with or without `.ipynb` and folder.
    book : list of Path
        The chapters to choose from.

    Returns
    -------
    Path
        The one that is meant.

    Raises
    ------
    BookError
        If there is no such chapter; the message lists all.

    Examples
    --------
    >>> find_chapter("4", [Path("00_start_here.ipynb"), Path("04_scores_and_scaling.ipynb")]).stem
    '04_scores_and_scaling'
    """
    stem = Path(name).name.removesuffix(".ipynb")
    for chapter in book:
        if stem == chapter.stem or (stem.isdecimal() and stem.zfill(2) == chapter.name[:2]):
            return chapter
    known = ", ".join(chapter.stem for chapter in book)
    raise BookError(f"there is no chapter {name!r}; the chapters are {known}")


def sources_digest(data: bytes) -> str:
    r"""Digest what is written in a notebook's cells, whatever its outputs and metadata.

    Running a chapter does not change the digest. Blank cells do not count either, since
    JupyterLab appends one when the last cell is run with Shift-Enter.

    Parameters
    ----------
    data : bytes
        The notebook file.

    Returns
    -------
    str
        A SHA-256 digest in hexadecimal.

    Raises
    ------
    ValueError
        If the file is not a notebook of format 4.

    Examples
    --------
    >>> cell = b'{"cell_type": "code", "source": ["1 +\\n", " 1"], "outputs": []}'
    >>> run = b'{"cell_type": "code", "source": "1 +\\n 1", "outputs": [{"text": "2"}]}'
    >>> sources_digest(b'{"cells": [%s]}' % cell) == sources_digest(b'{"cells": [%s]}' % run)
    True
    """
    try:
        cells = [
            [str(cell["cell_type"]), "".join(cell["source"])] for cell in json.loads(data)["cells"]
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError("expected a notebook of format 4, got a file without cells") from error
    written = [cell for cell in cells if cell[1].strip()]
    return hashlib.sha256(json.dumps(written).encode()).hexdigest()


def prepare(project: Path) -> list[str]:
    """Make the working copy, or bring it up to date, without losing what the reader wrote.

    A chapter that is not in `my_book/` is copied there, also if the reader once deleted it. A
    chapter that the reader did not write in follows the book. One that the reader wrote in, or
    of which this cannot be known, stays as it is.

    Parameters
    ----------
    project : Path
        The folder that holds `notebooks/`; `my_book/` is made beside it.

    Returns
    -------
    list of str
        What was done, and what the reader may want to do, a sentence each.

    Raises
    ------
    BookError
        If the book or the working copy cannot be used.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     prepare(Path(folder))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    attnbook.launcher.working_copy.BookError: no chapters found in ...
    """
    book, folder = chapters(project), project / FOLDER
    with _told(folder):
        first_start = not any((folder / chapter.name).exists() for chapter in book)
        messages = _update(folder, book, _follow)
    if first_start:
        return [f"made {FOLDER}/, your working copy of the book"]
    return messages


def restore(project: Path, names: Iterable[str]) -> list[str]:
    """Put chapters of the working copy back as the book has them, and touch no other.

    What the reader wrote is moved to a backup; a chapter that was only run needs none.

    Parameters
    ----------
    project : Path
        The folder that holds `notebooks/` and `my_book/`.
    names : iterable of str
        Chapters, as `find_chapter` takes them.

    Returns
    -------
    list of str
        What was done, a sentence for each chapter.

    Raises
    ------
    BookError
        If the book or the working copy cannot be used, or if there is no such chapter; then
        nothing is changed.

    Examples
    --------
    >>> restore(Path("nowhere"), ["04"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    attnbook.launcher.working_copy.BookError: no chapters found in nowhere/notebooks: ...
    """
    book, folder = chapters(project), project / FOLDER
    chosen = {find_chapter(name, book) for name in names}
    with _told(folder):
        return _update(folder, sorted(chosen), _restore)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Turn what the system says about a file into a sentence for the reader."""
    try:
        yield
    except OSError as error:
        raise BookError(
            f"cannot use {error.filename or folder} ({error.strerror or error}): the book has to "
            f"read and write the files in {folder}"
        ) from error


Way = Callable[[Path, bytes, str, str | None], tuple[bool, str]]


def _update(folder: Path, book: list[Path], way: Way) -> list[str]:
    """Treat chapters one way, `_follow` or `_restore`, and keep the record of what was copied."""
    folder.mkdir(exist_ok=True)
    recorded, messages = _read_manifest(folder / MANIFEST)
    digests = dict(recorded)
    for chapter in book:
        data = chapter.read_bytes()
        try:
            digest = sources_digest(data)
        except ValueError as error:
            raise BookError(
                f"the book's own chapter {chapter} is damaged: restore it, for example with "
                f"`git checkout notebooks/{chapter.name}`"
            ) from error
        copy = folder / chapter.name
        if copy.exists() and not copy.is_file():
            raise BookError(
                f"{copy} is not a file: move it away or rename it, since the chapter belongs there"
            )
        replaced, message = way(copy, data, digest, recorded.get(chapter.name))
        if message:
            messages.append(f"{FOLDER}/: {message}")
        if replaced or _digest(copy) == digest:
            digests[chapter.name] = digest
    if digests != recorded:
        manifest = {"version": MANIFEST_VERSION, "chapters": digests}
        _write(folder / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    return messages


def _restore(copy: Path, data: bytes, digest: str, recorded: str | None) -> tuple[bool, str]:
    """Put one chapter back; tell whether it was copied, and what the reader should know."""
    if not copy.exists():
        _write(copy, data)
        return True, f"copied {copy.name} from the book"
    if copy.read_bytes() == data:
        return False, f"{copy.name} is the book's version already; nothing to do"
    mine = _digest(copy)
    if mine is not None and mine in (digest, recorded):
        _write(copy, data)
        return True, f"restored {copy.name}; you had run it and not written in it. {RELOAD}"
    backup = _backup(copy)
    _write(copy, data)
    return True, f"restored {copy.name}; your version is now {backup.name}. {RELOAD}"


def _follow(copy: Path, data: bytes, digest: str, recorded: str | None) -> tuple[bool, str]:
    """Bring one chapter up to date; tell whether it was copied, and what the reader should know."""
    if not copy.exists():
        _write(copy, data)
        return True, f"new chapter {copy.name}"
    mine = _digest(copy)
    if mine == digest:
        return False, ""
    if mine is not None and mine == recorded:
        _write(copy, data)
        return True, f"updated {copy.name} to the book's new version"
    if mine is None:
        reason = "it cannot be read as a notebook"
    elif recorded == digest:
        return False, ""
    else:
        reason = "you wrote in it, and the book has another version of it"
    return False, (
        f"kept {copy.name} as it is: {reason}. To get the book's version: "
        f"`{shell.book('--fresh', copy.name[:2])}` (yours is moved to a backup beside it)"
    )


def _digest(copy: Path) -> str | None:
    try:
        return sources_digest(copy.read_bytes())
    except ValueError:
        return None


def _read_manifest(path: Path) -> tuple[dict[str, str], list[str]]:
    """Read the recorded digests; a file that is not such a manifest is set aside, not deleted.

    Without a record, every chapter that differs from the book counts as the reader's work.
    """
    if not path.exists():
        return {}, []
    try:
        manifest = json.loads(path.read_bytes())
        recorded = manifest["chapters"]
        if manifest["version"] == MANIFEST_VERSION and all(
            isinstance(digest, str) for digest in recorded.values()
        ):
            return recorded, []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    backup = _backup(path)
    return {}, [
        f"{FOLDER}/: {path.name} is not a record that this version of the book can read; it is "
        f"now {backup.name}, and every chapter that differs from the book counts as yours"
    ]


def _backup(path: Path) -> Path:
    """Move a file of the reader to a name beside it that says which it was and when."""
    stem = f"{path.stem}.yours-{datetime.now():%Y-%m-%d-%H%M%S}"
    backup = path.with_name(f"{stem}{path.suffix}")
    number = 2
    while backup.exists():
        backup = path.with_name(f"{stem}-{number}{path.suffix}")
        number += 1
    return path.rename(backup)


def _write(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, whenever the program is stopped."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def untouched(project: Path) -> list[Path]:
    """List the chapters of the working copy that are byte for byte the book's own.

    Parameters
    ----------
    project : Path
        The folder that holds `notebooks/` and `my_book/`.

    Returns
    -------
    list of Path
        Files in `my_book/`, none of which the reader has saved.

    Examples
    --------
    >>> untouched(Path("nowhere"))
    []
    """
    pairs = [(book, project / FOLDER / book.name) for book in _chapters(project)]
    return [
        copy for book, copy in pairs if copy.is_file() and copy.read_bytes() == book.read_bytes()
    ]
