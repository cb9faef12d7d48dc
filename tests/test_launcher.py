"""The launcher: the working copy never loses a reader's work, and the server has the settings."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import websocket
from jupyterlab.commands import get_app_dir
from traitlets.config import Config

from attnbook.exercises.parts import State
from attnbook.exercises.progress import FILE, record
from attnbook.launcher import command, server, shell, working_copy
from attnbook.launcher.working_copy import MANIFEST, BookError, prepare, restore, sources_digest

START, SCORES = "00_start_here.ipynb", "04_scores_and_scaling.ipynb"
VIEW = "application/vnd.jupyter.widget-view+json"


def code(source, *outputs):
    return {
        "cell_type": "code",
        "id": f"c{zlib.crc32(''.join(source).encode()):x}",
        "metadata": {},
        "execution_count": 1 if outputs else None,
        "source": source,
        "outputs": list(outputs),
    }


def shown(**data):
    return {"output_type": "display_data", "metadata": {}, "data": data}


def notebook(*cells, **metadata):
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def save(path, *cells, **metadata):
    """Write with an indentation of its own, so that a copy byte by byte can be told."""
    path.write_text(json.dumps(notebook(*cells, **metadata), indent=3), encoding="utf-8")


@pytest.fixture
def project(tmp_path):
    """A book of two chapters, first version, not opened yet."""
    (tmp_path / "notebooks").mkdir()
    save(tmp_path / "notebooks" / START, code("1 + 1"))
    save(tmp_path / "notebooks" / SCORES, code("import attnbook\n"), code("d_k = 4"))
    return tmp_path


@pytest.fixture(autouse=True)
def settings_of_jupyter(monkeypatch):
    """Undo what `main` does to the environment."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")


@pytest.fixture
def opened(monkeypatch):
    """What JupyterLab was started with, if it was; it is not."""
    started = []
    monkeypatch.setattr("jupyterlab.labapp.main", started.append)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    return started


def mine(project, name=SCORES):
    return project / "my_book" / name


def book(project, name=SCORES):
    return project / "notebooks" / name


def new_version(project):
    save(book(project), code("import attnbook\n"), code("d_k = 64"))


def backups(project):
    return sorted(path.name for path in (project / "my_book").glob("*.yours-*"))


# Which chapters are copied


def test_first_start_copies_every_chapter_byte_by_byte(project):
    messages = prepare(project)
    assert messages == ["made my_book/, your working copy of the book"]
    for name in (START, SCORES):
        assert mine(project, name).read_bytes() == book(project, name).read_bytes()
    record = json.loads((project / "my_book" / MANIFEST).read_text(encoding="utf-8"))
    assert record["version"] == 1
    assert record["chapters"] == {
        name: sources_digest(book(project, name).read_bytes()) for name in (START, SCORES)
    }


def test_second_start_writes_nothing(project):
    prepare(project)
    before = {p: p.stat().st_mtime_ns for p in (project / "my_book").iterdir()}
    assert prepare(project) == []
    assert {p: p.stat().st_mtime_ns for p in (project / "my_book").iterdir()} == before


def test_new_chapter_is_added(project):
    prepare(project)
    save(book(project, "05_softmax.ipynb"), code("U"))
    assert prepare(project) == ["my_book/: new chapter 05_softmax.ipynb"]
    assert mine(project, "05_softmax.ipynb").read_bytes() == (
        book(project, "05_softmax.ipynb").read_bytes()
    )


def test_chapter_that_was_only_run_follows_the_book(project):
    prepare(project)
    # Saved by JupyterLab after a run: other layout, outputs, source as lists, a blank last cell.
    save(
        mine(project),
        code(["import attnbook\n"]),
        code(["d_k ", "= 4"], shown(**{"text/plain": "4"})),
        code(""),
        kernelspec={"name": "python3"},
    )
    new_version(project)
    assert prepare(project) == [f"my_book/: updated {SCORES} to the book's new version"]
    assert mine(project).read_bytes() == book(project).read_bytes()
    assert prepare(project) == []


def test_run_chapter_keeps_its_outputs_while_the_book_is_unchanged(project):
    prepare(project)
    save(mine(project), code("import attnbook\n"), code("d_k = 4", shown(**{"text/plain": "4"})))
    ran = mine(project).read_bytes()
    assert prepare(project) == []
    assert mine(project).read_bytes() == ran


def test_edited_chapter_is_kept_silently_while_the_book_is_unchanged(project):
    prepare(project)
    save(mine(project), code("import attnbook\n"), code("d_k = 5"))
    edited = mine(project).read_bytes()
    assert prepare(project) == []
    assert mine(project).read_bytes() == edited


@pytest.mark.parametrize(
    "cells",
    [
        (code("import attnbook\n"), code("d_k = 5")),
        (code("import attnbook\n"), code("d_k = 4"), code("my_note")),
        (code("import attnbook\n"),),
        (code("d_k = 4"), code("import attnbook\n")),
        (code("import attnbook\n"), {**code("d_k = 4"), "cell_type": "raw"}),
    ],
    ids=["word", "added", "removed", "moved", "type"],
)
def test_chapter_changed_on_both_sides_is_kept_with_a_way_out(project, cells):
    prepare(project)
    save(mine(project), *cells)
    edited = mine(project).read_bytes()
    new_version(project)
    for _ in range(2):
        (message,) = prepare(project)
        assert SCORES in message
        assert "you wrote in it" in message
        assert f"`{shell.book()} --fresh 04`" in message
        assert mine(project).read_bytes() == edited
    restore(project, ["04"])
    assert mine(project).read_bytes() == book(project).read_bytes()
    assert [(project / "my_book" / name).read_bytes() for name in backups(project)] == [edited]
    assert prepare(project) == []


def test_reader_who_makes_the_same_change_is_up_to_date(project):
    prepare(project)
    new_version(project)
    save(mine(project), code("import attnbook\n"), code("d_k = 64", shown(**{"text/plain": "64"})))
    assert prepare(project) == []
    save(book(project), code("third version"))
    prepare(project)
    assert mine(project).read_bytes() == book(project).read_bytes()


def test_deleted_chapter_comes_back_and_own_files_stay(project):
    prepare(project)
    mine(project).rename(mine(project, "04_my_solutions.ipynb"))
    own = {"04_my_solutions.ipynb": mine(project, "04_my_solutions.ipynb").read_bytes()}
    for name, data in {"99_own.ipynb": b"{}", "notes.txt": b"mine"}.items():
        mine(project, name).write_bytes(data)
        own[name] = data
    assert prepare(project) == [f"my_book/: new chapter {SCORES}"]
    assert {name: mine(project, name).read_bytes() for name in own} == own


def test_chapter_that_left_the_book_stays_with_the_reader(project):
    prepare(project)
    book(project).unlink()
    assert prepare(project) == []
    assert mine(project).exists()


@pytest.mark.parametrize(
    "data", [b"", b'{"cells": [', b"[]", b'{"cells": [{}]}', b"\xff\xfe", b"7"]
)
def test_chapter_that_is_no_notebook_any_more_is_kept(project, data):
    prepare(project)
    mine(project).write_bytes(data)
    (message,) = prepare(project)
    assert "cannot be read as a notebook" in message
    assert "--fresh 04" in message
    assert mine(project).read_bytes() == data
    restore(project, ["4"])
    assert mine(project).read_bytes() == book(project).read_bytes()
    assert [(project / "my_book" / name).read_bytes() for name in backups(project)] == [data]


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"version": 1}',
        '{"version": 1, "chapters": []}',
        '{"version": 1, "chapters": {"04_scores_and_scaling.ipynb": 7}}',
        '{"version": 2, "chapters": {}}',
        "[" * 100_000,
    ],
    ids=lambda record: record[:24] or "empty",
)
def test_unreadable_record_costs_no_work(project, record):
    prepare(project)
    save(mine(project), code("import attnbook\n"), code("d_k = 5"))
    edited = mine(project).read_bytes()
    (project / "my_book" / MANIFEST).write_text(record, encoding="utf-8")
    new_version(project)
    messages = prepare(project)
    assert mine(project).read_bytes() == edited
    assert any(MANIFEST in message for message in messages)
    assert any("--fresh 04" in message for message in messages)
    aside = [p for p in (project / "my_book").iterdir() if p.name.startswith(f"{MANIFEST[:-5]}.")]
    assert [p.read_text(encoding="utf-8") for p in aside if p.name != MANIFEST] == [record]
    # The untouched chapter is under record again, and follows the book.
    save(book(project, START), code("2 + 2"))
    prepare(project)
    assert mine(project, START).read_bytes() == book(project, START).read_bytes()


def test_missing_record_keeps_what_differs(project):
    prepare(project)
    (project / "my_book" / MANIFEST).unlink()
    old = mine(project).read_bytes()
    new_version(project)
    (message,) = prepare(project)
    assert "--fresh 04" in message
    assert mine(project).read_bytes() == old


# --fresh


@pytest.mark.parametrize(
    "name", ["04", "4", "04_scores_and_scaling", SCORES, f"my_book/{SCORES}", f"notebooks/{SCORES}"]
)
def test_fresh_restores_one_chapter_and_moves_the_old_one(project, name):
    prepare(project)
    save(mine(project), code("mine"))
    save(mine(project, START), code("mine too"))
    edited = [mine(project, other).read_bytes() for other in (SCORES, START)]
    (message,) = restore(project, [name])
    (backup,) = backups(project)
    assert f"restored {SCORES}; your version is now {backup}" in message
    assert "reload the tab" in message
    assert backup.startswith("04_scores_and_scaling.yours-20")
    assert backup.endswith(".ipynb")
    assert mine(project, backup).read_bytes() == edited[0]
    assert mine(project).read_bytes() == book(project).read_bytes()
    assert mine(project, START).read_bytes() == edited[1]


def test_what_the_reader_has_solved_stays(project):
    prepare(project)
    record("4.1", State.RIGHT, project / working_copy.FOLDER)
    before = mine(project, FILE).read_bytes()
    save(mine(project), code("mine"))
    restore(project, ["04"])
    save(book(project), code("a new version"))
    prepare(project)
    assert mine(project, FILE).read_bytes() == before


def test_fresh_takes_several_and_backs_up_each_time(project):
    prepare(project)
    kept = set()
    for source in ("first", "second", "third"):
        for name in (START, SCORES):
            save(mine(project, name), code(f"{source} of {name}"))
            kept.add(mine(project, name).read_bytes())
        messages = restore(project, ["4", "00", "04"])
        assert [message.split()[2] for message in messages] == [f"{START};", f"{SCORES};"]
    assert {mine(project, name).read_bytes() for name in backups(project)} == kept
    assert len(backups(project)) == 6


def test_fresh_of_an_equal_or_missing_chapter_says_so_and_makes_no_backup(project):
    copied = f"my_book/: copied {SCORES} from the book"
    assert restore(project, ["04"]) == [copied]
    assert not mine(project, START).exists()
    written = mine(project).stat().st_mtime_ns
    assert restore(project, ["04"]) == [
        f"my_book/: {SCORES} is the book's version already; nothing to do"
    ]
    assert mine(project).stat().st_mtime_ns == written
    mine(project).unlink()
    assert restore(project, ["04"]) == [copied]
    assert backups(project) == []
    assert mine(project).read_bytes() == book(project).read_bytes()


@pytest.mark.parametrize("case", ["same", "newer", "no record"])
def test_fresh_of_a_chapter_that_was_only_run_makes_no_backup(project, case):
    prepare(project)
    # What JupyterLab does to a chapter that is opened, run and saved.
    save(
        mine(project),
        code(["import attnbook\n"]),
        code("d_k = 4", shown(**{"text/plain": "4"})),
        language_info={"name": "python"},
    )
    if case == "newer":
        new_version(project)
    elif case == "no record":
        (project / "my_book" / MANIFEST).unlink()
    (message,) = restore(project, ["04"])
    assert f"restored {SCORES}; you had run it and not written in it" in message
    assert "reload the tab" in message
    assert mine(project).read_bytes() == book(project).read_bytes()
    assert backups(project) == []
    assert prepare(project) == []


def test_fresh_of_an_older_version_without_a_record_makes_a_backup(project):
    prepare(project)
    (project / "my_book" / MANIFEST).unlink()
    old = mine(project).read_bytes()
    new_version(project)
    restore(project, ["04"])
    assert [mine(project, name).read_bytes() for name in backups(project)] == [old]


@pytest.mark.parametrize("name", ["7", "", "scores", "-1", "4.5", "²", "../nothing"])
def test_fresh_of_an_unknown_chapter_changes_nothing(project, name):
    prepare(project)
    save(mine(project), code("mine"))
    before = {p.name: p.read_bytes() for p in (project / "my_book").iterdir()}
    with pytest.raises(BookError, match="the chapters are 00_start_here, 04_scores_and_scaling"):
        restore(project, ["04", name])
    assert {p.name: p.read_bytes() for p in (project / "my_book").iterdir()} == before


def test_fresh_starts_nothing(project, capsys, opened):
    prepare(project)
    save(mine(project), code("mine"))
    assert command.main(["--fresh", "04", "--fresh", "00"], project) == 0
    assert opened == []
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"attnbook: my_book/: {START} is the book's version already; nothing to do"
    assert second.startswith(f"attnbook: my_book/: restored {SCORES}; your version is now ")


# What can go wrong


def test_no_chapters(tmp_path, capsys):
    assert command.main([], tmp_path) == 1
    message = capsys.readouterr().err
    assert message.startswith("attnbook: no chapters found in ")
    assert message.count("\n") == 1
    assert not (tmp_path / "my_book").exists()


def test_damaged_chapter_of_the_book(project):
    book(project).write_text("<<<<<<< yours", encoding="utf-8")
    with pytest.raises(BookError, match=r"git checkout notebooks/04_scores_and_scaling\.ipynb"):
        prepare(project)


@pytest.mark.parametrize("arguments", [[], ["--fresh", "04"]])
def test_folder_in_the_place_of_a_chapter(project, capsys, opened, arguments):
    prepare(project)
    mine(project).unlink()
    mine(project).mkdir()
    assert command.main(arguments, project) == 1
    assert opened == []
    message = capsys.readouterr().err
    assert message.startswith(f"attnbook: {mine(project)} is not a file: move it away")
    assert message.count("\n") == 1
    assert mine(project).is_dir()


@pytest.mark.parametrize("missing", ["jupyterlab", "jupyterlab.labapp"])
def test_without_jupyterlab_no_file_is_touched(project, capsys, monkeypatch, missing):
    monkeypatch.delitem(sys.modules, "jupyterlab.labapp", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    assert command.main([], project) == 1
    out, message = capsys.readouterr()
    assert out == ""
    assert message.count("\n") == 1
    assert missing in message
    requirements = shell.shown(project / "requirements.txt")
    assert f"install it with `{shell.python('-m', 'pip')} install -r {requirements}`" in message
    assert not (project / "my_book").exists()
    # A chapter can be restored all the same.
    assert command.main(["--fresh", "04"], project) == 0


def test_another_python_is_sent_to_the_one_of_the_readme(project, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    monkeypatch.chdir(project)
    usual = project / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    usual.parent.mkdir(parents=True)
    usual.touch()
    assert command.main([], project) == 1
    here = usual.relative_to(project)
    assert f"open the book with `{here} -m attnbook`" in capsys.readouterr().err
    # If it is that one which lacks JupyterLab, it has to be installed there.
    monkeypatch.setattr(sys, "prefix", str(project / ".venv"))
    assert command.main([], project) == 1
    assert f"-m pip install -r .{os.sep}requirements.txt`" in capsys.readouterr().err


def test_folder_that_cannot_be_made(project, capsys):
    (project / "my_book").write_text("a file of the reader", encoding="utf-8")
    assert command.main([], project) == 1
    assert "my_book" in capsys.readouterr().err
    assert (project / "my_book").read_text(encoding="utf-8") == "a file of the reader"


def test_folder_that_cannot_be_written(project, capsys, monkeypatch):
    prepare(project)
    before = {p.name: p.read_bytes() for p in (project / "my_book").iterdir()}
    new_version(project)

    def refuse(path, data):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert command.main([], project) == 1
    message = capsys.readouterr().err
    assert "Permission denied" in message
    assert message.count("\n") == 1
    assert {p.name: p.read_bytes() for p in (project / "my_book").iterdir()} == before


def test_interrupted_write_leaves_the_old_chapter_whole(project, monkeypatch):
    prepare(project)
    old = mine(project).read_bytes()
    new_version(project)

    def fail(path, data):
        with path.open("wb") as file:
            file.write(data[:5])
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(BookError, match="No space left"):
        prepare(project)
    monkeypatch.undo()
    assert mine(project).read_bytes() == old
    assert sorted(p.name for p in (project / "my_book").iterdir()) == [MANIFEST, START, SCORES]
    prepare(project)
    assert mine(project).read_bytes() == book(project).read_bytes()


# The command line


def test_help_is_short_and_opens_nothing(capsys):
    with pytest.raises(SystemExit) as stop:
        command.parse(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: {shell.book()} [arguments for JupyterLab]\n")
    assert f"{shell.book()} --fresh NN\n" in text
    assert "go to JupyterLab" in text
    assert len(text.splitlines()) < 25


@pytest.mark.parametrize(
    ("executable", "told"),
    [
        ("book/.venv/bin/python", ".venv/bin/python"),
        ("book/my env/bin/python", "'my env/bin/python'"),
        ("python", "{folder}/python"),
        ("book/python", "./python"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths and quotes are those of a POSIX shell")
def test_commands_name_the_python_that_runs_as_the_shell_takes_it(
    tmp_path, monkeypatch, executable, told
):
    (tmp_path / "book").mkdir()
    monkeypatch.chdir(tmp_path / "book")
    command_line = shell.python("-m", "attnbook", executable=str(tmp_path / executable))
    assert command_line == told.format(folder=tmp_path) + " -m attnbook"
    assert shell.python().split()[0] == shell.shown(Path(sys.executable)).split()[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (r".venv\Scripts\python.exe", r".venv\Scripts\python.exe"),
        (r"C:\Jo's books\python.exe", r"'C:\Jo''s books\python.exe'"),
        (r"C:\$a\python.exe", r"'C:\$a\python.exe'"),
    ],
)
def test_quotes_are_those_of_powershell_on_windows(text, told):
    assert shell.quoted(text, windows=True) == told


def test_fresh_without_a_chapter_is_an_error(capsys):
    with pytest.raises(SystemExit) as stop:
        command.parse(["--fresh"])
    assert stop.value.code == 2
    assert "--fresh" in capsys.readouterr().err


def test_everything_else_is_passed_on_in_order():
    line = ["--no-browser", "--port", "9000", "-y", "--ip=::1", "file", "--fre", "04", "--help-all"]
    assert command.parse(line) == ([], line)


def test_fresh_stands_alone(project, capsys, opened):
    prepare(project)
    save(mine(project), code("mine"))
    edited = mine(project).read_bytes()
    assert command.parse(["--fresh", "04", "--fresh=5"]) == (["04", "5"], [])
    for line in (["--fresh", "04", "05"], ["--no-browser", "--fresh=04"]):
        with pytest.raises(SystemExit) as stop:
            command.main(line, project)
        assert stop.value.code == 2
        usage, error = capsys.readouterr().err.splitlines()
        assert usage.startswith(f"usage: {shell.book()} ")
        assert "--fresh NN restores one chapter and starts nothing" in error
        assert repr(({*line} - {"--fresh", "--fresh=04", "04"}).pop()) in error
    assert mine(project).read_bytes() == edited
    assert opened == []


def test_messages_stand_apart_and_come_before_jupyterlab(project, capsys, opened):
    prepare(project)
    save(mine(project), code("mine"))
    new_version(project)
    assert command.main(["--no-browser"], project) == 0
    first, kept, closing, last = capsys.readouterr().out.split("\n", 3)
    assert (first, last) == ("", "\n")
    assert kept.startswith(f"attnbook: my_book/: kept {SCORES} as it is")
    assert "Control-C" in closing
    assert opened == [command.jupyterlab_arguments(project, ["--no-browser"])]


@pytest.mark.parametrize(
    ("rest", "own"),
    [
        ([], ["--ServerApp.root_dir", "--LabApp.default_url"]),
        (["--LabApp.default_url=/lab"], ["--ServerApp.root_dir"]),
        (["--notebook-dir=elsewhere"], []),
        (["--ServerApp.root_dir", "elsewhere"], []),
    ],
)
def test_arguments_of_the_reader_win(project, rest, own):
    arguments = command.jupyterlab_arguments(project, rest)
    assert [argument.partition("=")[0] for argument in arguments[: len(own)]] == own
    assert arguments[len(own) :] == rest


def test_first_page_is_the_first_chapter_of_the_working_copy(project):
    root, url = command.jupyterlab_arguments(project, [])
    assert root == f"--ServerApp.root_dir={project}"
    assert url == f"--LabApp.default_url=/lab/tree/my_book/{START}"


@pytest.mark.parametrize("own", [[], ["first", "second"]])
def test_config_path_of_the_reader_comes_first(own):
    environ = {"JUPYTER_CONFIG_PATH": os.pathsep.join(own)} if own else {}
    command.use_config(environ)
    assert environ["JUPYTER_CONFIG_PATH"].split(os.pathsep) == [*own, str(command.CONFIG)]


# The server's settings


def test_widget_views_are_stripped_and_the_rest_is_kept():
    table = shown(**{"text/html": "<b>1</b>", "text/plain": "1"})
    both = shown(**{VIEW: {"model_id": "7"}, "text/plain": "Run the cell to move the sliders."})
    stream = {"output_type": "stream", "name": "stdout", "text": "1\n"}
    text = {"cell_type": "markdown", "id": "t", "metadata": {}, "source": "# Scores"}
    live = notebook(text, code("lab", table, both, stream), widgets={"state": {}}, title="04")
    before = json.dumps(live)
    clean = server.without_widget_views(live)
    sentence = shown(**{"text/plain": "Run the cell to move the sliders."})
    assert clean == notebook(text, code("lab", table, sentence, stream), title="04")
    assert json.dumps(live) == before
    assert server.without_widget_views(clean) == clean


@pytest.mark.parametrize(
    "model",
    [
        {"type": "file", "content": "text"},
        {"type": "directory", "content": None},
        {"type": "notebook", "content": {"nbformat": 3, "metadata": {}, "worksheets": []}},
    ],
)
def test_other_files_are_saved_as_they_are(model):
    before = json.dumps(model)
    server.strip_on_save(model=model, path="x", contents_manager=None)
    assert json.dumps(model) == before


def test_only_untouched_chapters_are_signed(project):
    prepare(project)
    save(mine(project), code("import attnbook\n"), code("d_k = 4"), title="saved by the reader")

    signed = []
    server.trust_the_book(SimpleNamespace(sign=signed.append), project)
    assert signed == [nbformat.read(book(project, START), as_version=4)]


def test_server_without_a_connection_class_starts_all_the_same(project, monkeypatch):
    monkeypatch.setattr(working_copy, "BOOK", project)
    prepare(project)
    hooks, signed, later = [], [], []
    manager = SimpleNamespace(
        notary=SimpleNamespace(sign=signed.append), register_pre_save_hook=hooks.append
    )
    serverapp = SimpleNamespace(
        contents_manager=manager,
        web_app=SimpleNamespace(settings={}),
        config=Config(),
        io_loop=SimpleNamespace(add_callback=lambda *call: later.append(call)),
    )
    server._load_jupyter_server_extension(serverapp)
    assert hooks == [server.strip_on_save]
    assert len(signed) == 2
    assert serverapp.web_app.settings == {}
    assert later == [(server.tell_address, serverapp)]


def test_address_is_told_once(capsys):
    def tell(token, generated):
        provider = SimpleNamespace(token=token, token_generated=generated)
        server.tell_address(SimpleNamespace(identity_provider=provider, display_url="http://here"))
        return capsys.readouterr().out

    assert tell("made by Jupyter", True) == ""  # which prints it then
    assert tell("", True) == tell("mine", False) == "attnbook: the book is open at http://here\n"


@pytest.mark.parametrize(
    ("traits", "curve", "section"),
    [
        (["transport_encryption"], True, {"transport_encryption": "auto"}),
        (["transport_encryption"], False, {}),
        ([], True, {}),  # before jupyter_client 8.9
    ],
)
def test_kernels_are_encrypted_where_they_can_be(monkeypatch, traits, curve, section):
    monkeypatch.setattr(server, "KernelManager", SimpleNamespace(class_trait_names=lambda: traits))
    monkeypatch.setattr(server, "zmq", SimpleNamespace(has=lambda _: curve))
    config = Config()
    server.encrypt(config)
    assert config.get("KernelManager", {}) == section


# One real server

# A server extension of the reader's own: it tells what the kernels' connections look like.
PROBE = """
import gc, json, socket
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler

class Probe(JupyterHandler):
    def get(self):
        connections = [
            o for o in gc.get_objects()
            if isinstance(o, KernelWebsocketHandler) and o.ws_connection is not None
        ]
        connection = self.settings["kernel_websocket_connection_class"]
        self.finish({
            "classes": [c.__name__ for c in connection.mro()],
            "nodelay": [
                o.ws_connection.stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                for o in connections
            ],
        })

def _load_jupyter_server_extension(serverapp):
    serverapp.web_app.add_handlers(".*$", [(serverapp.base_url + "probe", Probe)])
    serverapp.contents_manager.register_pre_save_hook(lambda model, **_: None)
"""

# Settings in a reader's home that would keep a careless launcher from opening the book.
HOME_CONFIG = """
c.ServerApp.root_dir = {home!r}
c.LabApp.default_url = "/lab/tree/elsewhere.ipynb"
c.FileContentsManager.preferred_dir = "nowhere"
"""

TOKEN = "test"
PING = 300  # milliseconds between two pings; Jupyter's own are 30 s apart


class Server:
    """`python -m attnbook` on a copy of the project, in a home of its own."""

    def __init__(self, project, folder):
        home, own = folder / "home", folder / "own_config"
        (home / ".jupyter").mkdir(parents=True)
        (home / ".jupyter" / "jupyter_server_config.py").write_text(
            HOME_CONFIG.format(home=str(home)), encoding="utf-8"
        )
        own.mkdir()
        (own / "probe.py").write_text(PROBE, encoding="utf-8")
        (own / "jupyter_server_config.json").write_text(
            json.dumps({"ServerApp": {"jpserver_extensions": {"probe": True}}}), encoding="utf-8"
        )
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")
        }
        environ |= {
            "HOME": str(home),
            "USERPROFILE": str(home),
            "APPDATA": str(home / "AppData"),
            "IPYTHONDIR": str(home / ".ipython"),
            "JUPYTER_CONFIG_PATH": str(own),
            "PYTHONPATH": os.pathsep.join([str(project), str(own)]),
        }
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            environ.pop(name, None)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "attnbook", "--no-browser", "--allow-root"),
                    *(f"--port={self.port}", "--ServerApp.port_retries=0", "--ip=127.0.0.1"),
                    f"--IdentityProvider.token={TOKEN}",
                    f"--ServerApp.tornado_settings={{'ws_ping_interval': {PING}}}",
                ],
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def ask(self, path, method="GET", **body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.geturl(), answer.read().decode()

    def ask_json(self, path, method="GET", **body):
        return json.loads(self.ask(path, method, **body)[1])

    def wait(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                return self.ask("/api")
            except urllib.error.URLError:
                time.sleep(0.1)
        raise AssertionError(f"no server:\n{self.log.read_text(encoding='utf-8')}")

    def stop(self):
        """Ask it to shut down, and report how it ended."""
        try:
            if self.process.poll() is None:
                self.ask("/api/shutdown", "POST")
            return self.process.wait(timeout=30)
        finally:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    project = folder / "a book"  # a blank in the path, as in many a home
    package = Path(command.__file__).parents[1]
    shutil.copytree(package, project / "attnbook", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "notebooks").mkdir()
    picture = shown(**{"image/svg+xml": "<svg/>", "text/plain": "a picture"})
    save(book(project, START), code("1 + 1", picture), code("2 + 2"))
    save(book(project), code("d_k = 4", picture))
    prepare(project)
    save(mine(project), code("d_k = 5", picture))
    process = Server(project, folder)
    try:
        process.wait()
        yield process, project
    finally:
        status = process.stop()
    log = process.log.read_text(encoding="utf-8")
    assert status == 0, log
    assert "extension failed" not in log, log


def test_server_opens_chapter_00_of_the_working_copy(running):
    process, _ = running
    url, page = process.ask(f"/?token={TOKEN}")
    assert url.partition("?")[0].endswith(f"/lab/tree/my_book/{START}")
    assert "JupyterLab" in page
    chapter = process.ask_json(f"/api/contents/my_book/{START}")
    assert [cell["source"] for cell in chapter["content"]["cells"]] == ["1 + 1", "2 + 2"]
    # The root is the project's folder: links to ../figures work from the working copy.
    names = {entry["name"] for entry in process.ask_json("/api/contents/")["content"]}
    assert {"attnbook", "notebooks", "my_book"} <= names


def test_server_tells_the_address_and_little_else(running):
    process, _ = running
    log = process.log.read_text(encoding="utf-8")
    address = f"http://127.0.0.1:{process.port}/lab/tree/my_book/{START}"
    assert f"attnbook: the book is open at {address}" in log
    assert "[I " not in log


def test_server_trusts_the_book_and_not_the_readers_changes(running):
    process, _ = running
    trusted = {
        name: [
            cell["metadata"]["trusted"]
            for cell in process.ask_json(f"/api/contents/my_book/{name}")["content"]["cells"]
        ]
        for name in (START, SCORES)
    }
    assert trusted == {START: [True, True], SCORES: [False]}


def test_server_shows_no_news(running):
    process, _ = running
    settings = process.ask_json("/lab/api/settings/@jupyterlab/apputils-extension:notification")
    defaults = {name: rule["default"] for name, rule in settings["schema"]["properties"].items()}
    assert defaults["fetchNews"] == "false"
    assert defaults["checkForUpdates"] is False


def test_saved_chapter_is_clean_on_disk(running):
    process, project = running
    both = shown(**{VIEW: {"model_id": "7"}, "text/plain": "Run the cell to move the sliders."})
    live = notebook(code("lab(d_k=8)", both), widgets={VIEW: {"state": {}}}, title="mine")
    process.ask("/api/contents/my_book/mine.ipynb", "PUT", type="notebook", content=live)
    saved = json.loads(mine(project, "mine.ipynb").read_text(encoding="utf-8"))
    (cell,) = saved["cells"]
    assert "".join(cell["source"]) == "lab(d_k=8)"
    assert list(cell["outputs"][0]["data"]) == ["text/plain"]
    assert "".join(cell["outputs"][0]["data"]["text/plain"]).startswith("Run the cell")
    assert saved["metadata"] == {"title": "mine"}


def kernel_of(process):
    """Start a kernel and connect to it as JupyterLab does, for a ``with`` block."""
    kernel = process.ask_json("/api/kernels", "POST", name="python3")["id"]
    place = f"127.0.0.1:{process.port}/api/kernels/{kernel}/channels"
    return closing(
        websocket.create_connection(f"ws://{place}?session_id=s&token={TOKEN}", timeout=30)
    )


def test_kernel_messages_are_sent_at_once(running):
    process, _ = running
    with kernel_of(process) as connection:
        connection.recv()
        probe = process.ask_json("/probe")
    assert probe["classes"][0] == "SendingAtOnce"
    assert "ZMQChannelsWebsocketConnection" in probe["classes"]
    assert [bool(value) for value in probe["nodelay"]] == [True]
    log = process.log.read_text(encoding="utf-8")
    assert "eavesdropping" not in log, log
    assert "websocket_ping_timeout" not in log, log


def test_the_connection_of_a_kernel_outlives_its_pings(running):
    process, _ = running
    pings = 0
    with kernel_of(process) as connection:
        while pings < 4:
            opcode, frame = connection.recv_data_frame(control_frame=True)  # answers a ping
            assert opcode != websocket.ABNF.OPCODE_CLOSE, f"closed after {pings} pings: {frame}"
            pings += opcode == websocket.ABNF.OPCODE_PING
    assert "ping timeout" not in process.log.read_text(encoding="utf-8")


def test_the_settings_are_ones_that_this_jupyterlab_has():
    config = Path(server.__file__).parent / "config" / "labconfig"
    overrides = json.loads((config / "default_setting_overrides.json").read_text(encoding="utf-8"))
    assert overrides
    for plugin, settings in overrides.items():
        package, name = plugin.rsplit(":", 1)
        file = Path(get_app_dir(), "schemas", package, f"{name}.json")
        known = json.loads(file.read_text(encoding="utf-8"))["properties"]
        for setting, value in settings.items():
            allowed = known[setting].get("enum") or [
                one["const"] for one in known[setting].get("oneOf", []) if "const" in one
            ]
            assert not allowed or value in allowed, f"{plugin}: {setting}"
