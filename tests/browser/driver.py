"""The book in JupyterLab in headless Chromium, as a reader has it.

`opened_book` starts ``python -m attnbook`` on a throw-away copy of the project, in a home of its
own, and a browser on it; both end with its ``with`` block. Nothing is known of JupyterLab here
beyond class names and menu entries that are the same from 4.2 to 4.6.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / ".screenshots"
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
NO_BROWSER = f"no browser: none of {', '.join(BROWSERS)} is on the PATH"
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
VIEWPORT = {"width": 1280, "height": 1000}
START_LIMIT, PAGE_LIMIT, BEGIN_LIMIT, RUN_LIMIT, LIMIT = 90, 60, 10, 180, 30  # seconds

NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden)"
PICTURE = ".jp-RenderedSVG img, .jp-RenderedImage img"
HANDLE = ".noUi-handle"
# Where the page is and what has the focus: both still change for a while after Run All.
PLACE = f"""() => {{
    const panel = document.querySelector("{NOTEBOOK} .jp-WindowedPanel-outer");
    const focused = document.activeElement.closest(".jp-Cell");
    return [panel.scrollTop, panel.scrollHeight, focused?.dataset.windowedListIndex ?? null];
}}"""
REST = 1.5  # seconds
# JupyterLab follows the window a frame or more later; the bar at the right takes less than this.
FITS = f"""() => {{
    const {{right, bottom}} = document.querySelector("{NOTEBOOK}").getBoundingClientRect();
    const [x, y] = [innerWidth - right, innerHeight - bottom];
    return 0 <= x && x < 100 && 0 <= y && y < 100;
}}"""
RESTART = re.compile(r"/api/kernels/[^/]+/restart")
SCROLL_ON = """panel => {
    const end = panel.scrollTop + panel.clientHeight >= panel.scrollHeight - 1;
    panel.scrollTop = end ? 0 : panel.scrollTop + panel.clientHeight / 2;
}"""


def find_browser() -> str | None:
    """Return the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def until(found: Callable[[], Any], seconds: float, what: Callable[[], str]) -> Any:
    """Return the first true result of ``found``; if none comes in time, say ``what`` is missing."""
    deadline = time.monotonic() + seconds
    while not (result := found()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what()} (waited {seconds:g} s)")
        time.sleep(0.05)
    return result


def read(notebook: Path) -> dict[str, Any]:
    """Return the content of a notebook file."""
    return json.loads(notebook.read_text(encoding="utf-8"))


def errors(notebook: dict[str, Any]) -> list[str]:
    """Return the errors among the outputs of a notebook."""
    return [
        f"{cell['id']}: {output['ename']}: {output['evalue']}"
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
    ]


# ---------------------------------------------------------------- server


class Server(NamedTuple):
    """A running JupyterLab: its address, which ends in a slash, its token, and what it tells."""

    url: str
    token: str
    log: Path

    def ask(self, path: str, method: str = "GET") -> str:
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return answer.read().decode()


def warnings_in(log: Path) -> list[str]:
    """Return the warnings and errors that JupyterLab has told in the terminal."""
    told = log.read_text(encoding="utf-8").splitlines()
    # A notebook that the reader did not make with the book is not trusted, and that is right. The
    # file that a notebook is saved in first may vanish while the file browser lists the folder, and
    # a kernel that is being ended may still say something.
    harmless = re.compile(
        r"is not trusted$|/\.~[^/]*\.ipynb doesn't exist$|Got events for closed stream"
    )
    return [t for t in told if t[:3] in ("[W ", "[E ") and not harmless.search(t)]


def copy_of_the_book(project: Path) -> None:
    """Copy to a folder what the book needs to be opened."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("attnbook", "notebooks", "figures", "tests/data"):  # the last for chapter 91
        shutil.copytree(ROOT / name, project / name, ignore=ignored)


@contextmanager
def serving(project: Path, home: Path) -> Iterator[Server]:
    """Open a project with ``python -m attnbook``, in a home without anybody's settings."""
    home.mkdir(exist_ok=True)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "XDG_"))}
    environ |= {"HOME": str(home), "USERPROFILE": str(home), "APPDATA": str(home / "data")}
    environ |= {"IPYTHONDIR": str(home / "ipython"), "JUPYTER_RUNTIME_DIR": str(home / "runtime")}
    environ |= {"PYTHONPATH": str(project)}  # for its kernels too
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = home / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "attnbook", "--no-browser", "--allow-root"),
                *("--ip=127.0.0.1", f"--port={port}"),
            ],
            cwd=project,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def started() -> Server | None:
        # Where it listens it tells in a file: the port may have been taken in the meantime.
        files = sorted((home / "runtime").glob("jpserver-*.json"))
        if process.poll() is not None:
            raise AssertionError(f"JupyterLab ended:\n{log.read_text(encoding='utf-8')}")
        try:
            told = json.loads(files[0].read_text(encoding="utf-8"))
            server = Server(told["url"], told["token"], log)
            server.ask("api")
        except (IndexError, ValueError, OSError):  # not yet written, not yet listening
            return None
        return server

    try:
        server = until(
            started,
            START_LIMIT,
            lambda: f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')}",
        )
        try:
            yield server
        finally:
            if process.poll() is None:
                server.ask("api/shutdown", "POST")  # which ends the kernels
                process.wait(timeout=LIMIT)
    finally:
        process.kill()
        process.wait()
    assert warnings_in(log) == []


# ---------------------------------------------------------------- browser


@contextmanager
def launched(executable: str) -> Iterator[Browser]:
    """Launch a browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def blank_page(browser: Browser) -> Iterator[Page]:
    """Open a page without JupyterLab and without a network."""
    context = browser.new_context(viewport=VIEWPORT, offline=True)
    try:
        yield context.new_page()
    finally:
        context.close()


class Book:
    """A copy of the book, the JupyterLab that serves it, and a browser."""

    def __init__(self, project: Path, server: Server, browser: Browser):
        self.project, self.server, self._browser = project, server, browser

    @contextmanager
    def chapter(self, name: str) -> Iterator["Chapter"]:
        """Open a notebook of the working copy; if that fails, keep a screenshot and the error.

        A test that is tried once more would otherwise take the error with it.
        """
        page = self._browser.new_page(viewport=VIEWPORT)
        page.set_default_timeout(1000 * LIMIT)
        chapter = Chapter(page, self.project / "my_book" / name, self.server)
        before = len(warnings_in(self.server.log))
        try:
            chapter.open()
            yield chapter
            assert warnings_in(self.server.log)[before:] == []
        except BaseException as error:
            SCREENSHOTS.mkdir(exist_ok=True)
            shot = SCREENSHOTS / f"{Path(name).stem}.png"
            shot.with_suffix(".txt").write_text(traceback.format_exc(), encoding="utf-8")
            try:
                page.screenshot(path=shot)
                error.add_note(f"The page as it was then: {shot}")
            except Error as second:  # the first error is the one to tell
                error.add_note(f"No screenshot: {second.message}")
            error.add_note(f"Errors that the page told: {chapter.errors}")
            raise
        finally:
            page.close()
            self.shut_down_kernels()

    def shut_down_kernels(self) -> None:
        """End the kernels of notebooks that are not open any more."""
        for session in json.loads(self.server.ask("api/sessions")):
            self.server.ask(f"api/sessions/{session['id']}", "DELETE")


class Chapter:
    """A notebook in a page of the browser."""

    def __init__(self, page: Page, path: Path, server: Server):
        self.page, self.path, self._server = page, path, server
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        page.on("console", self._hear)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            place = message.location.get("url", "").partition("?")[0]
            self.errors.append(f"{message.text} ({place})")

    def open(self) -> None:
        """Go to the notebook and wait until its kernel is idle."""
        place = f"lab/tree/my_book/{quote(self.path.name)}?reset&token={self._server.token}"
        self.page.goto(self._server.url + place, timeout=1000 * PAGE_LIMIT)
        self.page.locator(f"{NOTEBOOK} .jp-Cell").first.wait_for(timeout=1000 * PAGE_LIMIT)
        what = f"{self.path.name} got no kernel"
        until(self._idle, PAGE_LIMIT, lambda: what)

    def _idle(self) -> bool:
        kernels = [session["kernel"] for session in json.loads(self._server.ask("api/sessions"))]
        states = [(kernel["connections"], kernel["execution_state"]) for kernel in kernels]
        return states == [(1, "idle")]

    def menu(self, *labels: str) -> None:
        """Choose from the menu bar, as with the mouse."""
        first, *others = labels
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text(first, exact=True).click()
        for label in others:
            self.page.locator(".lm-Menu-itemLabel").get_by_text(label, exact=True).click()

    def command(self, number: int, key: str) -> None:
        """Select a cell and press a key that is for it, not for its text."""
        self.cell(number).locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Escape")
        self.page.keyboard.press(key)

    def choose_theme(self, name: str) -> None:
        """Choose a theme of JupyterLab by its name in the menu."""
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text("Settings", exact=True).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text("Theme", exact=True).hover()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(name, exact=True).click()
        light = str(name.endswith("Light")).lower()
        self.page.locator(f"body[data-jp-theme-light='{light}']").wait_for(state="attached")

    def resize(self, width: int, height: int) -> None:
        """Give the window a size and wait until the notebook fits into it."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_function(FITS)

    def side_bar(self, shown: bool) -> None:
        """Show the file browser beside the notebook, or put it away, as Ctrl + B does."""
        bar = self.page.locator("#jp-left-stack")
        if bar.is_visible() != shown:
            self.page.keyboard.press("Control+b")
            bar.wait_for(state="visible" if shown else "hidden")

    def restart(self) -> None:
        """Restart the kernel and wait until the page shows it as idle again.

        What the server tells of a kernel's last activity is no sign of a restart: it counts the
        first message of the new kernel alone, and may miss it.
        """
        self.menu("Kernel", "Restart Kernel…")
        with self.page.expect_response(RESTART, timeout=1000 * PAGE_LIMIT) as answer:
            self.page.locator(".jp-Dialog .jp-mod-accept").click()
        assert answer.value.ok, f"{self.path.name}: {answer.value.status} {answer.value.text()}"
        indicator = self.page.locator(f"{NOTEBOOK} .jp-Notebook-ExecutionIndicator")

        def shown() -> str | None:
            return indicator.get_attribute("data-status")

        what = f"the kernel of {self.path.name} did not come back"
        until(
            lambda: shown() == "idle" and self._idle(),
            PAGE_LIMIT,
            lambda: f"{what}: the page shows {shown()!r}, {self._server.ask('api/sessions')}",
        )

    def run_all(self) -> None:
        """Run all cells and wait until the last is done, or one has failed."""
        self.menu("Edit", "Clear Outputs of All Cells")  # so that what ran can be told
        self.menu("Run", "Run All Cells")
        again = time.monotonic() + BEGIN_LIMIT

        def done() -> bool:
            nonlocal again
            self.page.wait_for_timeout(300)
            if not self._idle():
                return False
            code = [cell for cell in self.save()["cells"] if cell["cell_type"] == "code"]
            counts = [cell["execution_count"] for cell in code if "".join(cell["source"]).strip()]
            if not any(counts) and time.monotonic() > again:
                # While JupyterLab is being connected to a kernel it may drop what is to run.
                self.menu("Run", "Run All Cells")
                again += BEGIN_LIMIT
            return all(counts) or errors(self.saved()) != []

        until(done, RUN_LIMIT, lambda: f"{self.path.name} did not run to its end")
        self._rest()

    def _rest(self) -> None:
        """Wait until the page has come to rest.

        A second or so after Run All, JupyterLab goes to the last cell and focuses a cell.
        """
        place, since = None, time.monotonic()

        def at_rest() -> bool:
            nonlocal place, since
            self.page.wait_for_timeout(100)
            if place != (place := self.page.evaluate(PLACE)):
                since = time.monotonic()
            return time.monotonic() > since + REST

        until(at_rest, LIMIT, lambda: f"{self.path.name} does not come to rest")

    def save(self) -> dict[str, Any]:
        """Save the notebook and return what is on the disk then."""
        before, again = self.path.stat().st_mtime_ns, 0.0

        def saved() -> bool:
            nonlocal again
            if time.monotonic() > again:  # a busy page may drop a click
                self.menu("File", "Save Notebook")
                again = time.monotonic() + BEGIN_LIMIT
            return self.path.stat().st_mtime_ns != before and self._whole()

        until(saved, LIMIT, lambda: f"{self.path.name} was not saved")
        return self.saved()

    def saved(self) -> dict[str, Any]:
        """Return the notebook as it is on the disk."""
        return read(self.path)

    def _whole(self) -> bool:
        try:
            return bool(self.saved())
        except ValueError:  # it is being written
            return False

    def cell(self, number: int) -> Locator:
        """Return the cell of a number, counted from 0, scrolled into view.

        JupyterLab takes cells that are far from the view out of the page, or hides them.
        """
        panel = self.page.locator(f"{NOTEBOOK} .jp-WindowedPanel-outer")
        cell = self.page.locator(f"{NOTEBOOK} .jp-Cell[data-windowed-list-index='{number}']")

        def there() -> bool:
            if cell.is_visible():
                return True
            panel.evaluate(SCROLL_ON)
            self.page.wait_for_timeout(50)
            return False

        until(there, LIMIT, lambda: f"cell {number} of {self.path.name} is not in the page")
        cell.evaluate("cell => cell.scrollIntoView({block: 'nearest'})")
        return cell


@contextmanager
def opened_book(
    executable: str, folder: Path, files: Sequence[Path] = (), startup: Path | None = None
) -> Iterator[Book]:
    """Open a copy of the book in ``folder``.

    ``files`` are put into the working copy as well; ``startup`` is run in every kernel first.
    """
    project = folder / "book"
    copy_of_the_book(project)
    working_copy = project / "my_book"
    working_copy.mkdir()
    for file in files:
        shutil.copy(file, working_copy)
    home = folder / "home"
    if startup is not None:
        profile = home / "ipython/profile_default/startup"
        profile.mkdir(parents=True)
        shutil.copy(startup, profile)
    with serving(project, home) as server, launched(executable) as browser:
        yield Book(project, server, browser)
