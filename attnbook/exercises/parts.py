"""An answer that is a number, an array or a choice of words, and what to say about it.

A part knows its right answer, exactly, and the wrong answers that a named misconception gives;
``judge`` compares what a reader hands in with all of them. The third kind of part, a function to be
written, is in `attnbook.exercises.programs`.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbook import exact
from attnbook.exercises import wording
from attnbook.exercises.reading import Unreadable, read, show


class State(Enum):
    """How an answer stands; the value is what a reader sees."""

    OPEN = wording.OPEN
    RIGHT = wording.RIGHT
    WRONG = wording.WRONG
    UNREADABLE = wording.UNREADABLE


class Block(str):
    """A line of a judgement that is code or an array, shown as it stands."""

    __slots__ = ()


class Judgement(NamedTuple):
    """What is said about one answer: its state, sentences in markup, and blocks."""

    state: State
    lines: tuple[str, ...] = ()


class Wrong(NamedTuple):
    """A misconception: its name, the answer it leads to, and what to say to a reader.

    The answer is of the kind of the right one: exact numbers, a word, or a function.
    """

    name: str
    answer: Any
    message: str


class Number(NamedTuple):
    """A number or an array to be found, exactly or to three significant digits.

    Parameters
    ----------
    right : exact number, or a sequence of them
        int, Fraction or sympy expression.
    wrong : sequence of Wrong

    Examples
    --------
    >>> from fractions import Fraction
    >>> third = Number(Fraction(1, 3), [Wrong("inverse", 3, "this is the inverse.")])
    >>> third.judge(0.333).lines
    ('0.333 is right. Exactly it is 1/3, or 0.33333 rounded.',)
    >>> third.judge(3.0).lines
    ('3 is not right.', 'Most likely: this is the inverse.')
    """

    right: Any
    wrong: Sequence[Wrong]

    def judge(self, given: Any) -> Judgement:
        """Say whether an answer is right, and if not, which misconception gives it."""
        if given is ...:
            return Judgement(State.OPEN)
        right = read(self.right)
        try:
            x = self._given(given, right)
        except Unreadable as problem:
            return Judgement(State.UNREADABLE, (str(problem),))
        close = np.abs(x - right) <= tolerance(right)
        hits = close & ~_miscounted(x, right)
        if hits.all():
            return Judgement(State.RIGHT, (self._praise(given),))
        lines = [wording.NOT_IT.format(given=show(given))]
        if hits.any():
            lines.append(wording.ENTRIES_RIGHT.format(right=hits.sum(), all=hits.size))
        if likely := self._likely(x):
            lines.append(wording.LIKELY.format(message=likely.message))
        elif close.all():
            lines.append(wording.COUNT)
        elif np.allclose(x, right, rtol=0.02, atol=0):
            lines.append(wording.CLOSE)
        else:
            lines.append(wording.NO_USUAL_MISTAKE)
        return Judgement(State.WRONG, tuple(lines))

    def _given(self, given: Any, right: NDArray) -> NDArray:
        what = _kind(right)
        x = read(given, what)
        if not np.isfinite(x).all():
            raise Unreadable(wording.NOT_FINITE.format(what=what, given=show(given)))
        # (a, b, c) may come as a matrix of one row, and the other way round
        if x.squeeze().shape != right.squeeze().shape:
            raise Unreadable(wording.NOT_THE_SHAPE.format(what=what, given=_kind(x)))
        return x.reshape(right.shape)

    def _likely(self, x: NDArray) -> Wrong | None:
        for wrong in self.wrong:
            answer = read(wrong.answer)
            if (np.abs(x - answer) <= tolerance(answer)).all():
                return wrong
        return None

    def _praise(self, given: Any) -> str:
        said, right = show(given), show(self.right)
        if said == right:
            return wording.EXACT.format(given=said)
        if isinstance(self.right, Sequence) or read(self.right) % 1 == 0:
            return wording.ROUNDED.format(given=said, exact=right)
        first = int(np.floor(np.log10(np.abs(read(self.right)))))  # the place of its first digit
        decimal = exact.decimal(self.right, max(5, 2 - first))
        return wording.DECIMAL.format(given=said, exact=right, decimal=decimal)


class Choice(NamedTuple):
    """A word to be chosen among a few.

    Parameters
    ----------
    right : str
    wrong : sequence of Wrong
        One for every other word.

    Examples
    --------
    >>> side = Choice("left", [Wrong("other side", "right", "That is the other side.")])
    >>> side.judge("Right").lines
    ("'Right' is not right.", 'That is the other side.')
    >>> side.judge(3).lines
    ("Expected one of 'left', 'right' as text, got 3.",)
    """

    right: str
    wrong: Sequence[Wrong]

    def judge(self, given: Any) -> Judgement:
        """Say whether the word is the right one, and if not, what speaks against it."""
        if given is ...:
            return Judgement(State.OPEN)
        said = given.strip(" ()").casefold() if isinstance(given, str) else None
        if said == self.right.casefold():
            return Judgement(State.RIGHT, (wording.EXACT.format(given=show(given)),))
        for wrong in self.wrong:
            if said == wrong.answer.casefold():
                not_it = wording.NOT_IT.format(given=show(given))
                return Judgement(State.WRONG, (not_it, wrong.message))
        options = sorted([self.right, *(wrong.answer for wrong in self.wrong)])
        expected = ", ".join(repr(option) for option in options)
        message = wording.CHOOSE.format(options=expected, given=show(given))
        return Judgement(State.UNREADABLE, (message,))


def tolerance(right: NDArray) -> NDArray:
    """Return how far a number that agrees to three significant digits may be off.

    Half a unit of the third digit, and a little for the last bits of a float.

    Examples
    --------
    >>> tolerance(np.array([128.0, 0.0225])).round(6).tolist()
    [0.5, 5e-05]
    """
    size = np.where(right == 0, 1.0, np.abs(right))
    return 0.5 * 10.0 ** (np.floor(np.log10(size)) - 2) * (1 + 1e-9)


def _miscounted(x: NDArray, right: NDArray) -> NDArray[np.bool_]:
    """Tell where a whole number stands for another one of which it is no rounding.

    A whole number claims every digit up to its last nonzero one: for 2304, 2300 is a rounding and
    2305 is a wrong count. The last digits of a float32 are let pass.
    """
    texts = [f"{abs(number):.0f}" for number in x.flat]
    claimed = [0.5 * 10.0 ** (len(text) - len(text.rstrip("0"))) for text in texts]
    slack = np.maximum(np.reshape(claimed, x.shape), 1e-6 * np.abs(right))
    return (x % 1 == 0) & (right % 1 == 0) & (np.abs(x - right) > slack)


def _kind(x: NDArray) -> str:
    """Name what was expected or given: one number, or an array and its shape."""
    return wording.ARRAY.format(shape=shape_text(x.shape)) if x.ndim else wording.ONE_NUMBER


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape as the book does: ``2 x 3``.

    Examples
    --------
    >>> shape_text((2, 3)), shape_text((4,)), shape_text(())
    ('2 x 3', '4', '1')
    """
    return " x ".join(map(str, shape)) or "1"
