"""The check of an exercise: which part was answered how, and what to say.

The exercises of chapter 4 are in ``attnbook.exercises.ch04.EXERCISES``: for each number ("4.2") its
parts by name. An exercise with one part calls it "answer".
"""

import html
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from attnbook.exercises import wording
from attnbook.exercises.catalogue import Part, exercises
from attnbook.exercises.parts import Block, Judgement, State
from attnbook.exercises.progress import record
from attnbook.exercises.reading import show
from attnbook.markup import to_html, to_plain

ANSWER = "answer"

# Ink on ground; the words of the badge say the same.
BADGES = {
    State.OPEN: ("#1f2328", "#e3e5e9"),
    State.RIGHT: ("#ffffff", "#0a5c36"),
    State.WRONG: ("#ffffff", "#8a3c00"),
    State.UNREADABLE: ("#ffffff", "#5b626c"),
}


class Verdict(NamedTuple):
    """What `check` shows: the exercise, how it stands, and what is said about each part."""

    exercise: str
    state: State
    parts: Mapping[str, Judgement]

    def __repr__(self) -> str:
        lines = [to_plain(self._head())]
        for label, line in self._lines():
            if isinstance(line, Block):
                lines += ["    " + row for row in line.splitlines()]
            else:
                lines.append("  " + label + to_plain(line))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        ink, ground = BADGES[self.state]
        style = f"color: {ink}; background: {ground}; padding: 0.2em 0.6em; border-radius: 0.3em"
        lines = [f'<p><b style="{style}">{to_html(self._head())}</b></p>']
        for label, line in self._lines():
            if isinstance(line, Block):
                lines.append(f"<pre>{html.escape(line)}</pre>")
            else:
                bold = f"<b>{html.escape(label)}</b>" if label else ""
                lines.append(f"<p>{bold}{to_html(line)}</p>")
        return "\n".join(lines)

    def _head(self) -> str:
        return wording.HEAD.format(name=self.exercise, state=self.state.value)

    def _lines(self) -> list[tuple[str, str]]:
        """Return every line with the name of its part in front, where there are several."""
        if self.state is State.OPEN:
            return []
        found = []
        for name, judgement in self.parts.items():
            label = f"{name}: " if len(self.parts) > 1 else ""
            first, *rest = judgement.lines or (wording.OPEN,)
            found += [(label, first), *(("", line) for line in rest)]
        return found


def find(name: str) -> Mapping[str, Part]:
    """Return the parts of an exercise.

    Parameters
    ----------
    name : str
        Chapter and number: "4.2".

    Raises
    ------
    TypeError
        If the name is no text: as numbers, 4.1 and 4.10 are the same.
    ValueError
        If there is no such exercise.

    Examples
    --------
    >>> list(find("4.2"))
    ['raw', 'scaled']
    """
    if not isinstance(name, str):
        raise TypeError(f'expected the exercise as text like "4.2", got {show(name)}')
    chapter = re.fullmatch(r"([1-9][0-9]?)\.[0-9]+", name)
    known = exercises(int(chapter[1])) if chapter else {}
    if name not in known:
        listed = ", ".join(known) or 'a number like "4.2"'
        raise ValueError(f"expected an exercise with a check ({listed}), got {show(name)}")
    return known[name]


def check(exercise: str, /, *answer: Any, **answers: Any) -> Verdict:
    """Check an answer, and say what is right and what most likely went wrong.

    Parameters
    ----------
    exercise : str
        Chapter and number: "4.2".
    *answer : anything
        The answer, for an exercise that has one; ``...`` is no answer yet.
    **answers : anything
        The answers by name, for an exercise that has several.

    Returns
    -------
    Verdict
        Shows itself at the end of a cell. In the working copy the result is kept, for
        `attnbook.progress`.

    Raises
    ------
    TypeError, ValueError
        If there is no such exercise. A wrong or odd answer never raises.

    Examples
    --------
    >>> check("4.2", raw=..., scaled=...)
    Exercise 4.2: not answered yet
    """
    parts = find(exercise)
    given = answers
    if list(parts) == [ANSWER] and len(answer) == 1 and not answers:
        given, answer = {ANSWER: answer[0]}, ()
    if problem := _misfit(exercise, parts, given, answer):
        judgement = Judgement(State.UNREADABLE, (problem,))
        return Verdict(exercise, State.UNREADABLE, {ANSWER: judgement})
    judged = {name: part.judge(given.get(name, ...)) for name, part in parts.items()}
    verdict = Verdict(exercise, _overall({j.state for j in judged.values()}), judged)
    record(exercise, verdict.state)
    return verdict


def _misfit(exercise: str, parts: Mapping, given: Mapping, unnamed: tuple) -> str:
    """Say how the exercise wants its answers, if they came otherwise."""
    astray = any(value is not ... for value in unnamed)
    unknown = [name for name in given if name not in parts]
    if list(parts) == [ANSWER]:
        return wording.ONE_ANSWER.format(name=exercise) if unknown or astray else ""
    call = ", ".join(f"{name}=..." for name in parts)
    several = wording.SEVERAL.format(name=exercise, n=len(parts), call=call)
    if unknown:
        return f"{wording.NO_SUCH_PART.format(part=unknown[0])} {several}"
    return several if astray else ""


def _overall(states: set[State]) -> State:
    """Return the state of the exercise; one that is answered in part is not right yet."""
    if len(states) == 1:
        return next(iter(states))
    return State.UNREADABLE if State.UNREADABLE in states else State.WRONG
