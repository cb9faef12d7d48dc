r"""What the tests know about the chapters: finding them, reading their cells, checking their form.

Every checker takes a `Chapter` and returns a list of problems, each naming its cell; an empty list
is a pass. ``tests/test_notebooks.py`` runs all of them on all chapters, and each on an example that
it must catch.

Tags (``cell.metadata["tags"]``); any other tag is rejected, so that a misspelt one is seen

=============  ====================================================================================
``setup``      the first code cell: imports and constants, nothing else
``lab``        a code cell that shows one interactive figure
``predict``    the text before a lab that asks for a prediction (it has a question mark)
``seen``       the text after a lab that says what was to be seen
``exercise``   a code cell with an answer and its check; runs after the set-up cell alone
``solution``   a code cell with a solution: may be longer than 15 lines
``plot``       a code cell where plotting is the lesson: only there may matplotlib be in view
``shows-error``  a code cell that catches an error and prints it on purpose
=============  ====================================================================================

``cell.metadata["covers"] = ["D009", ...]`` names the rows of ``tests/data/coverage.csv`` that the
cell treats, see ``tests/ledger.py``.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

from nbformat import NotebookNode

from attnbook import build
from attnbook.labs.engine import GONE

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
TEACHING = {f"{number:02d}" for number in range(1, 15)}
TAGS = {"setup", "lab", "predict", "seen", "exercise", "solution", "plot", "shows-error"}
HOSTS = {
    "aclanthology.org",
    "arxiv.org",
    "d2l.ai",
    "docs.jax.dev",
    "docs.pytorch.org",
    "docs.sympy.org",
    "doi.org",
    "github.com",
    "huggingface.co",
    "jupyter.org",
    "matplotlib.org",
    "numpy.org",
    "onnx.ai",
    "papers.nips.cc",
    "proceedings.mlr.press",
    "proceedings.neurips.cc",
    "pytorch.org",
    "transformer-circuits.pub",
}
COLUMNS, LINES, SENTENCE = 76, 15, 20


class Chapter(NamedTuple):
    """A notebook with the number its file name begins with."""

    path: Path
    number: str
    nb: NotebookNode

    @property
    def cells(self) -> list[NotebookNode]:
        return self.nb.cells

    @property
    def teaches(self) -> bool:
        return self.number in TEACHING


def chapter_paths() -> list[Path]:
    """Every committed chapter, in order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def load(path: Path) -> Chapter:
    return Chapter(path, path.name[:2], build.read(path))


# ---- cells ------------------------------------------------------------------------------------


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def code(chapter: Chapter, tag: str | None = None) -> list[NotebookNode]:
    """The code cells, or those of them that have this tag."""
    cells = [cell for cell in chapter.cells if cell.cell_type == "code"]
    return [cell for cell in cells if tag is None or tag in tags(cell)]


def markdown(chapter: Chapter) -> list[NotebookNode]:
    return [cell for cell in chapter.cells if cell.cell_type == "markdown"]


def prose(text: str) -> str:
    """Markdown without its code: fenced blocks and code spans are gone."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*~* *$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", " ", text, flags=re.DOTALL)


def headings(cell: NotebookNode) -> list[tuple[int, str]]:
    """Level and text of every heading of a cell, in order."""
    if cell.cell_type != "markdown":
        return []
    fenceless = re.sub(
        r"^(`{3,}|~{3,}).*?^\1`*~* *$", "", cell.source, flags=re.MULTILINE | re.DOTALL
    )
    found = re.findall(r"^(#{1,6}) +(.+?) *#* *$", fenceless, flags=re.MULTILINE)
    return [(len(marks), text) for marks, text in found]


def output_texts(cell: NotebookNode) -> Iterator[str]:
    """All that a reader reads in a cell's outputs; of marked-up text what is between the tags."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            yield output.text
        for mime, content in output.get("data", {}).items():
            if mime in ("text/html", "image/svg+xml"):
                visible = re.sub(r"<(style|script)\b.*?</\1>", " ", content, flags=re.DOTALL)
                yield html.unescape(re.sub(r"<[^>]*>", " ", visible))
            elif mime.startswith("text/"):
                yield content


def sections(chapter: Chapter) -> list[tuple[str, list[NotebookNode]]]:
    """The code cells under each H2 or H3 heading (the set-up cell aside), with the heading."""
    found: list[tuple[str, list[NotebookNode]]] = [("before the first section", [])]
    for cell in chapter.cells:
        for level, text in headings(cell):
            if level in (2, 3):
                found.append((text, []))
        if cell.cell_type == "code" and "setup" not in tags(cell):
            found[-1][1].append(cell)
    return [(text, cells) for text, cells in found if cells]


def runs(chapter: Chapter) -> list[tuple[str, list[str]]]:
    """What must run in a fresh namespace: set-up with one section, one lab or one exercise."""
    setup = [cell.source for cell in code(chapter, "setup")]
    found = {
        tuple(cell.id for cell in cells): (f"section {text!r}", cells)
        for text, cells in sections(chapter)
    }
    for cell in [*code(chapter, "lab"), *code(chapter, "exercise")]:
        found.setdefault((cell.id,), (f"cell {cell.id!r}", [cell]))
    return [(name, setup + [cell.source for cell in cells]) for name, cells in found.values()]


# ---- files and cells --------------------------------------------------------------------------


def is_executed(chapter: Chapter) -> list[str]:
    """Every code cell was run, in order; nbval silently skips a cell that was not."""
    cells = code(chapter)
    counts = [cell.execution_count for cell in cells]
    if counts == list(range(1, len(counts) + 1)):
        return []
    wrong = [c.id for n, c in enumerate(cells, 1) if c.execution_count != n]
    return [f"{wrong}: not executed in order: run python -m attnbook.build"]


def is_normalised(chapter: Chapter) -> list[str]:
    """The committed text is the normal form, byte for byte."""
    text = chapter.path.read_bytes().decode("utf-8")
    if text == build.to_text(build.normalise(chapter.nb)):
        return []
    return ["not in normal form: run python -m attnbook.build"]


def has_plain_metadata(chapter: Chapter) -> list[str]:
    """Kernel python3, no version of Python, no widget state."""
    return [] if chapter.nb.metadata == build.METADATA else [f"metadata is {chapter.nb.metadata}"]


def has_readable_ids(chapter: Chapter) -> list[str]:
    """Cell ids are unique words joined by hyphens."""
    names = [cell.get("id", "") for cell in chapter.cells]
    found = [f"{name!r}: used twice" for name in sorted({n for n in names if names.count(n) > 1})]
    pattern = r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*"
    return found + [
        f"{name!r}: not words joined by hyphens"
        for name in names
        if not re.fullmatch(pattern, name)
    ]


def has_content(chapter: Chapter) -> list[str]:
    """No empty cell, no raw cell, no attachment."""
    found = [f"{c.id}: empty cell" for c in chapter.cells if not c.source.strip()]
    found += [
        f"{c.id}: {c.cell_type} cell"
        for c in chapter.cells
        if c.cell_type not in ("code", "markdown")
    ]
    return found + [f"{c.id}: has attachments" for c in chapter.cells if c.get("attachments")]


def has_known_tags(chapter: Chapter) -> list[str]:
    """Only the tags of this module, each on its kind of cell; nothing that switches nbval off."""
    texts = {"predict", "seen"}
    found = []
    for cell in chapter.cells:
        allowed = texts if cell.cell_type == "markdown" else TAGS - texts
        found += [
            f"{cell.id}: tag {t!r} on a {cell.cell_type} cell"
            for t in tags(cell)
            if t not in allowed
        ]
        if cell.cell_type == "code" and re.search(r"NBVAL_|PYTEST_VALIDATE", cell.source):
            found.append(f"{cell.id}: a comment switches nbval off")
    return found


# ---- structure --------------------------------------------------------------------------------


def has_one_title(chapter: Chapter) -> list[str]:
    """One H1, and the first cell begins with it."""
    titles = [text for cell in chapter.cells for level, text in headings(cell) if level == 1]
    found = [] if len(titles) == 1 else [f"expected one H1 title, found {titles}"]
    first = chapter.cells[0] if chapter.cells else None
    if first is None or first.cell_type != "markdown" or not first.source.startswith("# "):
        found.append("the first cell does not begin with the title")
    return found


def has_even_headings(chapter: Chapter) -> list[str]:
    """A heading is at most one level deeper than the one before it; none is there twice."""
    found, depth, seen = [], 0, set()
    for cell in chapter.cells:
        for level, text in headings(cell):
            if level > depth + 1:
                found.append(f"{cell.id}: {text!r} jumps from level {depth} to {level}")
            if text in seen:
                found.append(
                    f"{cell.id}: heading {text!r} is there twice, links cannot tell them apart"
                )
            depth = level
            seen.add(text)
    return found


def _block(text: str, name: str) -> str | None:
    """What follows a heading or bold words `name`, up to the next heading or bold beginning."""
    match = re.search(
        rf"^(?:#+ +|\*\*){name}\b(.*?)(?=^#|^\*\*|\Z)", text, flags=re.MULTILINE | re.DOTALL
    )
    return match[1] if match else None


def has_opening_and_closing(chapter: Chapter) -> list[str]:
    """What you will learn and need comes first; summary, exercises and what is next come last."""
    if not chapter.teaches:
        return []
    setup = [i for i, cell in enumerate(chapter.cells) if "setup" in tags(cell)] or [0]
    opening = "\n\n".join(
        cell.source for cell in chapter.cells[: setup[0]] if cell.cell_type == "markdown"
    )
    found = []
    learn, need = _block(opening, "You will learn"), _block(opening, "You need")
    if learn is None:
        found.append("before the set-up cell: no 'You will learn'")
    elif not 3 <= (items := len(re.findall(r"^ {0,3}(?:[-*+]|\d+\.) ", learn, re.MULTILINE))) <= 5:
        found.append(f"'You will learn' lists {items} things, expected 3 to 5")
    if need is None:
        found.append("before the set-up cell: no 'You need'")
    elif "](" not in need:
        found.append("'You need' has no link")
    titles = [text for cell in chapter.cells for level, text in headings(cell) if level == 2]
    closing = ["Summary", "Exercises", "Where this goes next"]
    if titles[-3:] != closing:
        found.append(f"the last three H2 headings are {titles[-3:]}, expected {closing}")
    everything = "\n\n".join(cell.source for cell in markdown(chapter))
    if not re.search(r"^\|.*\|$\s^\|[ :|-]+\|$", _block(everything, "Summary") or "", re.MULTILINE):
        found.append("the summary has no table")
    return found


def maps_the_book(chapter: Chapter) -> list[str]:
    """Chapter 00 links every other chapter that exists beside it."""
    if chapter.number != "00":
        return []
    text = "\n".join(cell.source for cell in markdown(chapter))
    others = sorted(p.name for p in chapter.path.parent.glob("*.ipynb") if p != chapter.path)
    return [f"no link to {name}" for name in others if f"]({name}" not in text]


# ---- code -------------------------------------------------------------------------------------


def has_plain_setup(chapter: Chapter) -> list[str]:
    """The first code cell, and it alone, is tagged ``setup`` and holds imports and constants."""
    cells = code(chapter)
    if not cells:
        return []
    found = (
        []
        if code(chapter, "setup") == cells[:1]
        else ["the first code cell alone must be tagged setup"]
    )
    try:
        body = ast.parse(cells[0].source).body
    except SyntaxError as problem:
        return [*found, f"{cells[0].id}: not plain Python: {problem.msg}"]
    for statement in body:
        constant = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        if not constant and not isinstance(statement, ast.Import | ast.ImportFrom):
            found.append(f"{cells[0].id}: set-up does more than import: {ast.unparse(statement)}")
    if cells[0].get("outputs"):
        found.append(f"{cells[0].id}: the set-up cell has outputs")
    return found


def keeps_setup_names(chapter: Chapter) -> list[str]:
    """No later cell gives a name of the set-up cell another meaning: any cell may run again."""
    if not code(chapter):
        return []
    setup, *rest = code(chapter)
    found = []
    for cell in rest:
        for name in sorted(_bound(cell.source) & _bound(setup.source)):
            found.append(f"{cell.id}: {name} of the set-up cell is bound again")
    return found


def _bound(source: str) -> set[str]:
    """The names that plain Python code binds at its top level."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic: other checkers tell
        return set()
    names, inner = set(), []
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        else:
            inner += ast.walk(node)
    return names | {
        node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def has_short_code(chapter: Chapter) -> list[str]:
    """At most 76 columns, and 15 lines where the cell is not a solution."""
    found = []
    for cell in code(chapter):
        lines = cell.source.splitlines()
        found += [f"{cell.id}: {len(x)} columns: {x}" for x in lines if len(x) > COLUMNS]
        if len(lines) > LINES and "solution" not in tags(cell):
            found.append(f"{cell.id}: {len(lines)} lines, at most {LINES}")
    return found


def hides_plotting(chapter: Chapter) -> list[str]:
    """No matplotlib in view outside the set-up cell and cells tagged ``plot``."""
    found = []
    for cell in code(chapter):
        in_view = not cell.metadata.get("jupyter", {}).get("source_hidden")
        exempt = {"setup", "plot"} & set(tags(cell))
        if in_view and not exempt and re.search(r"\b(plt|matplotlib)\b", cell.source):
            found.append(f"{cell.id}: plotting code in view")
    return found


# ---- pictures and labs ------------------------------------------------------------------------


def _is_sentence(text: str) -> bool:
    return len(text.strip()) >= SENTENCE and " " in text.strip() and not text.startswith("<")


def has_alt_text(chapter: Chapter) -> list[str]:
    """Every picture, in the text or in an output, has a sentence that says what it shows."""
    found = []
    for cell in markdown(chapter):
        text = prose(cell.source)
        alts = re.findall(r"!\[([^\]]*)\]\(", text)
        for image in re.findall(r"<img\b[^>]*>", text):
            alts += re.findall(r"\balt=\"([^\"]*)\"", image) or [""]
        found += [
            f"{cell.id}: alt text {alt!r} is no sentence" for alt in alts if not _is_sentence(alt)
        ]
    for cell in code(chapter):
        for output in cell.outputs:
            data = output.get("data", {})
            plain = data.get("text/plain", "")
            if any(mime.startswith("image/") for mime in data) and not _is_sentence(plain):
                found.append(f"{cell.id}: text/plain of a picture is no sentence: {plain!r}")
    return found


def has_framed_labs(chapter: Chapter) -> list[str]:
    """A prediction question, the lab with a still picture and a sentence, what was to be seen."""
    found = []
    for index, cell in enumerate(chapter.cells):
        if cell.cell_type != "code" or "lab" not in tags(cell):
            continue
        before, after = [], []
        for neighbours, step in ((before, -1), (after, 1)):
            place = index + step
            while 0 <= place < len(chapter.cells) and chapter.cells[place].cell_type == "markdown":
                neighbours.append(chapter.cells[place])
                place += step
        if not any("predict" in tags(c) and "?" in prose(c.source) for c in before):
            found.append(f"{cell.id}: no prediction question (tag predict) before the lab")
        if not any("seen" in tags(c) for c in after):
            found.append(f"{cell.id}: nothing says what was to be seen (tag seen) after the lab")
        bundles = [output.get("data", {}) for output in cell.outputs]
        if not any({"image/png", "image/svg+xml"} <= data.keys() for data in bundles):
            found.append(
                f"{cell.id}: the lab's output has no still picture (image/png and image/svg+xml)"
            )
        sentences = [
            d["text/plain"]
            for d in bundles
            if not any(m.startswith("image/") for m in d) and "text/plain" in d
        ]
        if not any(_is_sentence(text) for text in sentences):
            found.append(f"{cell.id}: no sentence stands in for the lab's controls")
    return found


# ---- text -------------------------------------------------------------------------------------


def anchors(chapter: Chapter) -> set[str]:
    """The anchors JupyterLab gives to the headings: the text with hyphens for spaces."""
    texts = [text for cell in chapter.cells for _, text in headings(cell)]
    return {re.sub(r"[*`]", "", text).replace(" ", "-") for text in texts}


def has_sound_links(chapter: Chapter) -> list[str]:
    """Relative links lead to files and headings of the book; others are https, to known hosts."""
    found = []
    for cell in markdown(chapter):
        text = prose(cell.source)
        targets = re.findall(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: \"[^\"]*\")?\)", text)
        targets += re.findall(r"\b(?:src|href)=[\"']([^\"']*)", text)
        for target in sorted({*targets, *re.findall(r"\bhttps?://[^\s)>\]\"']+", text)}):
            parts = urlparse(target)
            if parts.scheme or parts.netloc:
                if parts.scheme != "https" or parts.hostname not in HOSTS:
                    found.append(f"{cell.id}: {target}: not https to a host in book.HOSTS")
                continue
            file = (
                (chapter.path.parent / unquote(parts.path)).resolve()
                if parts.path
                else chapter.path
            )
            if parts.path.startswith("/") or not file.is_file():
                found.append(f"{cell.id}: {target}: no such file")
            elif parts.fragment:
                there = anchors(load(file)) if file.suffix == ".ipynb" else set()
                if unquote(parts.fragment) not in there:
                    found.append(f"{cell.id}: {target}: no such heading")
    return found


def has_no_raw_html(chapter: Chapter) -> list[str]:
    """No script, style, form or event handler, in the text or in an HTML output.

    But for the rule that fits the picture of a lab to the page, where it does not run.
    """
    texts = [(cell.id, prose(cell.source)) for cell in markdown(chapter)]
    for cell in code(chapter):
        outputs = [o.get("data", {}).get("text/html", "") for o in cell.outputs]
        texts += [(cell.id, text) for text in outputs if text != GONE["text/html"]]
    elements = "script|style|iframe|object|embed|form|input|button|link"
    pattern = rf"<(?:{elements})\b|<[^>]*\son\w+\s*=|javascript:"
    return [
        f"{name}: raw HTML {m[0]!r}"
        for name, text in texts
        for m in re.finditer(pattern, text, re.I)
    ]


def formulas(text: str) -> tuple[list[str], list[str]]:
    """Display and inline formulas of a Markdown text, and what is wrong with their delimiters."""
    text = re.sub(r"\\\\|\\\$", "  ", prose(text))
    found, problems = [], []
    pieces = text.split("$$")
    if len(pieces) % 2 == 0:
        problems.append("an odd number of $$")
    found += pieces[1::2]
    for outside in pieces[::2]:
        for paragraph in re.split(r"\n\s*\n", outside):
            spans = paragraph.split("$")
            if len(spans) % 2 == 0:
                problems.append(f"an odd number of $ in {paragraph.strip()[:50]!r}")
            elif re.search(r"\\(?:begin|end)\{", " ".join(spans[::2])):
                problems.append("\\begin or \\end outside of dollars")
            if "\\tag{" in paragraph:
                problems.append("\\tag outside of $$")
            found += spans[1::2]
    return found, problems


def has_balanced_math(chapter: Chapter) -> list[str]:
    r"""Dollars, braces, ``\begin`` and ``\end``, ``\left`` and ``\right`` come in pairs."""
    found = []
    for cell in markdown(chapter):
        spans, problems = formulas(cell.source)
        for span in spans:
            bare = re.sub(r"\\[{}]", "", span)
            depths = [0]
            for mark in re.findall(r"[{}]", bare):
                depths.append(depths[-1] + (1 if mark == "{" else -1))
            if min(depths) < 0 or depths[-1]:
                problems.append(f"braces do not match in {span.strip()!r}")
            open_names: list[str] = []
            for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", span):
                if kind == "begin":
                    open_names.append(name)
                elif not open_names or open_names.pop() != name:
                    problems.append(f"\\end{{{name}}} closes nothing in {span.strip()!r}")
            if open_names:
                problems.append(f"\\begin{{{open_names[-1]}}} is not closed in {span.strip()!r}")
            if len(re.findall(r"\\left\b", span)) != len(re.findall(r"\\right\b", span)):
                problems.append(f"\\left without \\right in {span.strip()!r}")
            if not span.strip():
                problems.append("an empty formula")
        found += [f"{cell.id}: {problem}" for problem in problems]
    return found


def equation_numbers(chapter: Chapter) -> list[str]:
    return [
        n for cell in markdown(chapter) for n in re.findall(r"\\tag\{([^}]*)\}", prose(cell.source))
    ]


def has_ordered_equations(chapter: Chapter) -> list[str]:
    r"""Equations are numbered ``\tag{chapter.n}``, increasing; a number that the text cites exists.

    "R (5.11)" cites a source and is left alone, and so are the numbers after it in the same list.
    """
    numbers, chapter_number = equation_numbers(chapter), int(chapter.number)
    found, last = [], 0
    for number in numbers:
        match = re.fullmatch(rf"{chapter_number}\.(\d+)", number)
        if not match or int(match[1]) <= last:
            found.append(f"equation ({number}) after ({chapter_number}.{last})")
        last = int(match[1]) if match else last
    source = r"\bR\]? *\(\d+\.\d+\)(?:(?:,? and |, |-|–| to | or )\(\d+\.\d+\))*"
    for cell in chapter.cells:
        text = prose(cell.source) if cell.cell_type == "markdown" else cell.source
        for number in re.findall(rf"\(({chapter_number}\.\d+)\)", re.sub(source, "", text)):
            if number not in numbers:
                found.append(f"{cell.id}: there is no equation ({number})")
    return found


def has_clean_outputs(chapter: Chapter) -> list[str]:
    """No error, no address in memory, no path of a machine, nothing on stderr."""
    folders = r"/(?:home|root|tmp|Users|usr|opt|work)/|[A-Z]:\\|site-packages"
    pattern = rf"\b0x[0-9a-f]{{4,}}|{folders}|<IPython\.|<Figure"
    found = []
    for cell in code(chapter):
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"{cell.id}: an error or a warning in the outputs")
        for text in output_texts(cell):
            found += [f"{cell.id}: output shows {m!r}" for m in re.findall(pattern, text)]
            if "Error" in text and "shows-error" not in tags(cell):
                found.append(f"{cell.id}: output shows an error (tag shows-error if it is meant)")
            if str(ROOT) in text:
                found.append(f"{cell.id}: output shows the path of the book")
    return found


CHECKERS = (
    is_executed,
    is_normalised,
    has_plain_metadata,
    has_readable_ids,
    has_content,
    has_known_tags,
    has_one_title,
    has_even_headings,
    has_opening_and_closing,
    maps_the_book,
    has_plain_setup,
    keeps_setup_names,
    has_short_code,
    hides_plotting,
    has_alt_text,
    has_framed_labs,
    has_sound_links,
    has_no_raw_html,
    has_balanced_math,
    has_ordered_equations,
    has_clean_outputs,
)
