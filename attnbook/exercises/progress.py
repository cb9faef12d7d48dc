"""What a reader has solved, kept in the working copy, for `attnbook.progress` to show.

The file ``progress.json`` beside the reader's chapters holds the day on which each checked exercise
was first right, or last wrong. Outside a working copy nothing is written. A file that this version
cannot read is never overwritten: what is broken or foreign gets another name, and what a newer
version of the book wrote, or what the system does not let us read, stays as it is.
"""

import csv
import io
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import NamedTuple

from attnbook.exercises import wording
from attnbook.exercises.catalogue import chapters, exercises
from attnbook.exercises.parts import State
from attnbook.launcher.working_copy import MANIFEST

FILE = "progress.json"
FORMAT, VERSION = "attnbook progress", 1
LIMIT = 1_000_000  # bytes; a longer file is not ours
LOCK, PATIENCE = ".progress.lock", 1.0  # seconds; a kernel holds the lock for milliseconds
# Chapter and number apart, since a spreadsheet takes 4.10 for 4.1, or for a day in April.
COLUMNS = ("chapter", "exercise", "state", "date")


class Standing(NamedTuple):
    """How an exercise stands: ``right``, ``wrong`` or ``open``, and since what day."""

    state: State
    day: str = ""


class Unreadable(Exception):
    """A file that this version cannot read, with the sentence that says why."""

    def __init__(self, remark: str):
        self.remark = remark


class Progress(NamedTuple):
    """What `attnbook.progress` shows: each exercise with a check, and where that is kept."""

    standings: Mapping[str, Standing]
    remark: str = ""

    def __repr__(self) -> str:
        lines = []
        for chapter in sorted({_chapter(name) for name in self.standings}):
            lines.append(self._line(wording.CHAPTER.format(chapter=chapter), chapter))
        lines += [self._line(wording.WHOLE_BOOK), wording.PROOFS]
        return "\n".join([*lines, *filter(None, [self.remark])])

    def _line(self, title: str, chapter: int | None = None) -> str:
        states = [s.state for n, s in self.standings.items() if chapter in (None, _chapter(n))]
        right, wrong = states.count(State.RIGHT), states.count(State.WRONG)
        return wording.SOLVED.format(title=title, right=right, all=len(states)) + (
            wording.TRIED.format(wrong=wrong) if wrong else ""
        )

    def to_csv(self) -> str:
        r"""Return a table for a teacher: chapter, exercise, state, date.

        Examples
        --------
        >>> Progress({"4.2": Standing(State.RIGHT, "2027-01-31")}).to_csv()
        'chapter,exercise,state,date\n4,2,right,2027-01-31\n'
        """
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows((*_place(n), s.state.name.lower(), s.day) for n, s in self.standings.items())
        return text.getvalue()

    def export(self, path: str | Path) -> Path:
        """Write the table of `to_csv` to a file and return its path.

        Raises
        ------
        FileExistsError
            If there is a file of this name that is no such table.
        """
        path = Path(path)
        if path.exists() and not _is_table(path):
            raise FileExistsError(
                "expected a name that is free or an earlier table of this kind, got "
                f"{str(path)!r}: choose another name"
            )
        path.write_text(self.to_csv(), encoding="utf-8", newline="")
        return path


def progress(folder: str | Path = ".") -> Progress:
    """Return how every exercise with a check stands.

    Parameters
    ----------
    folder : path
        The working copy; a chapter that is open in JupyterLab stands in it.

    Returns
    -------
    Progress
        Shows itself at the end of a cell; ``progress().export("progress.csv")`` is for a teacher.

    Examples
    --------
    >>> progress("nowhere").remark == wording.NOT_KEPT
    True
    """
    folder, known, remark = Path(folder), {}, ""
    if not _is_working_copy(folder):
        remark = wording.NOT_KEPT
    else:
        try:
            known = _read(folder / FILE)
        except Unreadable as error:
            remark = error.remark
        if not remark and not _is_writable(folder):
            remark = wording.READ_ONLY
    names = [name for chapter in chapters() for name in exercises(chapter)]
    return Progress({name: known.get(name, Standing(State.OPEN)) for name in names}, remark)


def record(name: str, state: State, folder: Path = Path(), today: date | None = None) -> None:
    """Keep the result of a check, if it is one and this is a working copy.

    Once right, an exercise stays right.
    """
    if state not in (State.RIGHT, State.WRONG) or not _is_working_copy(folder):
        return
    if not _is_writable(folder):
        return
    path = folder / FILE
    try:
        with _alone(folder):
            try:
                known = _read(path)
            except Unreadable as error:
                if error.remark != wording.FOREIGN:
                    return
                path.replace(_free_name(path))
                known = {}
            if known.get(name, Standing(State.OPEN)).state is State.RIGHT:
                return
            known[name] = Standing(state, (today or date.today()).isoformat())
            _write(Path(os.path.realpath(path)), known)  # where a symbolic link leads
    except OSError:
        return  # the answer was checked all the same; `progress` tells why nothing is kept


def _is_working_copy(folder: Path) -> bool:
    return os.path.isfile(folder / MANIFEST)


def _is_writable(folder: Path) -> bool:
    places = (folder, folder / FILE)
    return all(os.access(place, os.W_OK) for place in places if os.path.exists(place))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other kernels from writing meanwhile; a lock that a dead one left behind is broken."""
    lock, start = folder / LOCK, time.monotonic()
    while True:
        try:
            lock.touch(exist_ok=False)
            break
        except (FileExistsError, PermissionError):  # the latter: Windows is still deleting it
            waited = time.monotonic() - start
            if waited > 2 * PATIENCE:
                raise
            if waited > PATIENCE:
                lock.unlink(missing_ok=True)
            time.sleep(0.005)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Standing]:
    try:
        if not path.is_symlink() and not os.path.exists(path):
            return {}
        size = path.stat().st_size
        if size > LIMIT or not path.is_file():
            raise Unreadable(wording.FOREIGN)
        content = json.loads(path.read_bytes())  # in UTF-8, or what an editor made of it
    except OSError:
        raise Unreadable(wording.UNREAD) from None
    except (ValueError, RecursionError):
        raise Unreadable(wording.FOREIGN) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise Unreadable(wording.FOREIGN)
    version, entries = content.get("version"), content.get("exercises")
    if type(version) is int and version > VERSION:
        raise Unreadable(wording.NEWER)
    if type(version) is not int or version != VERSION or not isinstance(entries, dict):
        raise Unreadable(wording.FOREIGN)
    found = {}
    for name, entry in entries.items():
        state, day = (entry.get("state"), entry.get("date")) if isinstance(entry, dict) else (0, 0)
        if (
            not re.fullmatch(r"[0-9]{1,2}\.[0-9]{1,2}", name)
            or state not in ("right", "wrong")
            or not isinstance(day, str)
            or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", day)
        ):
            raise Unreadable(wording.FOREIGN)
        found[name] = Standing(State[state.upper()], day)
    return found


def _write(path: Path, known: Mapping[str, Standing]) -> None:
    """Write as a whole or not at all."""
    entries = {
        name: {"state": known[name].state.name.lower(), "date": known[name].day}
        for name in sorted(known, key=_place)
    }
    content = {"format": FORMAT, "version": VERSION, "exercises": entries}
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.stem}-unread-{n}{path.suffix}") for n in range(1, 10_000))
    return next(name for name in names if not name.exists())


def _is_table(path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8-sig").startswith(",".join(COLUMNS) + "\n")
    except (OSError, ValueError):
        return False


def _place(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def _chapter(name: str) -> int:
    return _place(name)[0]
