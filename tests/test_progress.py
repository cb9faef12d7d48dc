"""What is solved is kept in the working copy, whatever lies there, and nowhere else."""

import json
import os
import subprocess
import sys
import time
from datetime import date

import pytest

import attnbook
from attnbook.exercises import check, wording
from attnbook.exercises.catalogue import chapters, exercises
from attnbook.exercises.parts import State
from attnbook.exercises.progress import FILE, LIMIT, LOCK, Progress, Standing, progress, record
from attnbook.launcher import working_copy
from attnbook.launcher.working_copy import MANIFEST

DAY, LATER = date(2027, 1, 31), date(2027, 2, 1)
OPEN = Standing(State.OPEN)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A working copy, and in it the reader's kernel."""
    (tmp_path / MANIFEST).write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder) -> set[str]:
    return {path.name for path in folder.iterdir()} - {MANIFEST}


def test_the_launcher_makes_what_counts_as_a_working_copy(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00_a.ipynb").write_text('{"cells": []}')
    working_copy.prepare(tmp_path)
    assert progress(tmp_path / working_copy.FOLDER).remark == ""
    assert progress(tmp_path).remark == wording.NOT_KEPT


def test_every_exercise_with_a_check_is_counted_once_in_order(copy):
    names = list(attnbook.progress().standings)
    assert names == [name for chapter in chapters() for name in exercises(chapter)]
    assert names == sorted(names, key=lambda name: [int(part) for part in name.split(".")])
    assert len(names) > 40
    assert set(attnbook.progress().standings.values()) == {OPEN}


def test_a_check_is_kept_and_right_stays_right(copy):
    check("4.2", raw=..., scaled=...)
    assert files(copy) == set()
    check("4.2", raw=1, scaled=1)
    assert attnbook.progress().standings["4.2"].state is State.WRONG
    right = {name: part.right for name, part in exercises(4)["4.2"].items()}
    check("4.2", **right)
    assert attnbook.progress().standings["4.2"].state is State.RIGHT
    check("4.2", raw=1, scaled=1)
    assert attnbook.progress().standings["4.2"].state is State.RIGHT
    check("4.2", raw="x", scaled=1)
    check("4.1", "x")  # cannot be read: no result
    assert [s for s in attnbook.progress().standings.values() if s != OPEN] == [
        Standing(State.RIGHT, date.today().isoformat())
    ]
    assert files(copy) == {FILE}


def test_outside_a_working_copy_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check("4.2", raw=1, scaled=1)
    assert list(tmp_path.iterdir()) == []
    assert repr(attnbook.progress()).endswith(wording.NOT_KEPT)


def test_the_day_is_that_of_the_first_right_answer_or_the_last_wrong_one(copy):
    record("4.1", State.WRONG, today=DAY)
    record("4.1", State.WRONG, today=LATER)
    assert progress().standings["4.1"] == Standing(State.WRONG, "2027-02-01")
    record("4.1", State.RIGHT, today=DAY)
    record("4.1", State.RIGHT, today=LATER)
    assert progress().standings["4.1"] == Standing(State.RIGHT, "2027-01-31")


def test_the_table_counts_by_chapter(copy):
    for name, state in (("4.10", State.RIGHT), ("4.9", State.WRONG), ("1.1", State.RIGHT)):
        record(name, state, today=DAY)
    lines = repr(progress()).splitlines()
    assert lines[0] == f"Chapter 01: 1 of {len(exercises(1))} right"
    assert f"Chapter 04: 1 of {len(exercises(4))} right, 1 not yet" in lines
    assert lines[-2].startswith("In all: 2 of ")
    kept = json.loads((copy / FILE).read_text())
    assert list(kept["exercises"]) == ["1.1", "4.9", "4.10"]


def test_exercises_that_this_version_lacks_are_kept(copy):
    record("77.1", State.RIGHT, today=DAY)
    record("4.1", State.WRONG, today=DAY)
    assert "77.1" in json.loads((copy / FILE).read_text())["exercises"]
    assert "77.1" not in progress().standings


GOOD = {"format": "attnbook progress", "version": 1, "exercises": {}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{" + b" " * LIMIT + b"}",
        b"null",
        b"[1]",
        b'{"mine": 1}',
        json.dumps(GOOD | {"version": "1"}).encode(),
        json.dumps(GOOD | {"version": True}).encode(),
        json.dumps(GOOD | {"version": 0}).encode(),
        json.dumps(GOOD | {"exercises": [1]}).encode(),
        json.dumps(GOOD | {"exercises": {"4.1": "right"}}).encode(),
        json.dumps(GOOD | {"exercises": {"x": {"state": "right", "date": "2027-01-31"}}}).encode(),
        json.dumps(GOOD | {"exercises": {"4.1": {"state": "open", "date": "2027-01-31"}}}).encode(),
        json.dumps(GOOD | {"exercises": {"4.1": {"state": [], "date": "2027-01-31"}}}).encode(),
        json.dumps(GOOD | {"exercises": {"4.1": {"state": "right", "date": "soon"}}}).encode(),
    ],
)
def test_a_foreign_file_is_kept_under_another_name(copy, content):
    (copy / FILE).write_bytes(content)
    assert progress().remark == wording.FOREIGN
    assert (copy / FILE).read_bytes() == content  # looking changes nothing
    record("4.1", State.RIGHT, today=DAY)
    assert files(copy) == {FILE, "progress-unread-1.json"}
    assert (copy / "progress-unread-1.json").read_bytes() == content
    assert progress().standings["4.1"].state is State.RIGHT
    (copy / FILE).write_bytes(content)
    record("4.2", State.RIGHT, today=DAY)
    assert files(copy) == {FILE, "progress-unread-1.json", "progress-unread-2.json"}


def test_the_file_of_a_newer_version_stays_as_it_is(copy):
    newer = json.dumps({"format": "attnbook progress", "version": 2, "anything": []})
    (copy / FILE).write_text(newer)
    record("4.1", State.RIGHT, today=DAY)
    assert (copy / FILE).read_text() == newer
    assert files(copy) == {FILE}
    assert progress().remark == wording.NEWER


def test_a_folder_in_its_place_is_moved_aside(copy):
    (copy / FILE).mkdir()
    assert progress().remark == wording.FOREIGN
    record("4.1", State.RIGHT, today=DAY)
    assert progress().standings["4.1"].state is State.RIGHT
    assert files(copy) == {FILE, "progress-unread-1.json"}


def test_a_check_does_not_fail_where_nothing_can_be_written(copy, monkeypatch):
    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr("attnbook.exercises.progress._write", refuse)
    assert check("4.2", raw=1, scaled=1).state is State.WRONG
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert attnbook.progress().remark == wording.READ_ONLY


def test_export_is_a_table_that_can_be_written_again(copy):
    record("4.1", State.WRONG, today=DAY)
    path = progress().export("mine.csv")
    lines = path.read_text().splitlines()
    assert lines[0] == "chapter,exercise,state,date"
    assert "4,1,wrong,2027-01-31" in lines
    assert "4,2,open," in lines
    assert "4,10,open," in lines  # as one number 4.10 would be 4.1 to a spreadsheet
    assert len(lines) == 1 + len(progress().standings)
    record("4.2", State.RIGHT, today=DAY)
    progress().export("mine.csv")
    assert "4,2,right,2027-01-31" in path.read_text()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))  # by an editor
    progress().export("mine.csv")
    assert path.read_bytes().startswith(b"chapter,exercise,state,date\n")


def test_export_overwrites_nothing_else(copy):
    (copy / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"expected a name that is free.*'notes\.txt'"):
        progress().export("notes.txt")
    with pytest.raises(FileExistsError):
        progress().export(copy)
    assert (copy / "notes.txt").read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        Progress({}).export(copy / "no" / "such.csv")


def test_two_kernels_see_each_other(copy):
    record("4.1", State.RIGHT, today=DAY)
    known = progress()
    record("5.1", State.RIGHT, today=DAY)  # from another chapter
    assert known.standings["5.1"] == OPEN
    assert [n for n, s in progress().standings.items() if s != OPEN] == ["4.1", "5.1"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_an_editor_did_to_the_file_does_not_matter(copy, encoding):
    record("4.1", State.RIGHT, today=DAY)
    text = (copy / FILE).read_text().replace("\n", "\r\n")
    (copy / FILE).write_bytes(text.encode(encoding))
    assert progress().standings["4.1"].state is State.RIGHT
    record("4.2", State.RIGHT, today=DAY)
    assert files(copy) == {FILE}
    assert list(json.loads((copy / FILE).read_text())["exercises"]) == ["4.1", "4.2"]


def test_a_symbolic_link_stays_one(copy, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("synchronised") / "mine.json"
    elsewhere.write_text(json.dumps(GOOD))
    (copy / FILE).symlink_to(elsewhere)
    record("4.1", State.RIGHT, today=DAY)
    assert (copy / FILE).is_symlink()
    assert "4.1" in json.loads(elsewhere.read_text())["exercises"]
    assert progress().standings["4.1"].state is State.RIGHT
    elsewhere.unlink()  # a drive that is not there now
    assert progress().remark == wording.UNREAD
    record("4.2", State.RIGHT, today=DAY)
    assert not elsewhere.exists()
    assert files(copy) == {FILE}


def test_links_in_a_circle_are_left_alone(copy):
    (copy / FILE).symlink_to(copy / FILE)
    assert progress().remark == wording.UNREAD
    record("4.1", State.RIGHT, today=DAY)
    assert files(copy) == {FILE}


def test_a_file_that_cannot_be_read_now_is_not_taken_for_a_foreign_one(copy, monkeypatch):
    record("4.1", State.RIGHT, today=DAY)
    before = (copy / FILE).read_bytes()

    def refuse(path):
        raise PermissionError("in use")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.read_bytes", refuse)
        assert progress().remark == wording.UNREAD
        record("4.2", State.RIGHT, today=DAY)
    assert files(copy) == {FILE}
    assert (copy / FILE).read_bytes() == before


def test_a_read_only_file_is_not_written(copy, monkeypatch):
    record("4.1", State.RIGHT, today=DAY)
    before = (copy / FILE).read_bytes()
    monkeypatch.setattr(os, "access", lambda path, _: path.name != FILE)
    assert progress().remark == wording.READ_ONLY
    record("4.2", State.RIGHT, today=DAY)
    assert (copy / FILE).read_bytes() == before


KERNEL = """
import pathlib, sys, time
from attnbook.exercises.parts import State
from attnbook.exercises.progress import record
folder, chapter = pathlib.Path(sys.argv[1]), sys.argv[2]
(folder / f"ready-{chapter}").touch()
while len(list(folder.glob("ready-*"))) < 2:
    time.sleep(0.001)
for n in range(20):
    record(f"{chapter}.{n}", State.RIGHT, folder)
"""


def test_two_kernels_at_the_same_time_lose_nothing(copy):
    kernels = [subprocess.Popen([sys.executable, "-c", KERNEL, copy, str(n)]) for n in (1, 2)]
    assert [kernel.wait(60) for kernel in kernels] == [0, 0]
    assert len(json.loads((copy / FILE).read_text())["exercises"]) == 40
    assert files(copy) == {FILE, "ready-1", "ready-2"}


def test_the_lock_of_a_kernel_that_died_is_broken(copy, monkeypatch):
    monkeypatch.setattr("attnbook.exercises.progress.PATIENCE", 0.02)
    (copy / LOCK).touch()
    record("4.1", State.RIGHT, today=DAY)
    assert progress().standings["4.1"].state is State.RIGHT
    assert files(copy) == {FILE}

    def refuse(*_, **__):
        raise PermissionError("not here")

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    start = time.monotonic()
    record("4.2", State.RIGHT, today=DAY)
    assert time.monotonic() - start < 5
    assert progress().standings["4.2"].state is State.OPEN
