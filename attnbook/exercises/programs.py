"""A function to be written: run on inputs that its author has not seen, and judged by its results.

Whatever the function does (raise, print, return nothing, change its arguments) ends in a sentence
to its author. The likely misconception is found by running the wrong versions on the same inputs.
"""

import contextlib
import inspect
import io
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbook.exercises import wording
from attnbook.exercises.parts import Block, Judgement, State, Wrong, shape_text
from attnbook.exercises.reading import Unreadable, read, show

TOLERANCE = 1e-6  # float32 passes, a constant added to keep log(0) away does not if it can be seen


class Outcome(NamedTuple):
    """What one call of a reader's function did."""

    value: Any = None
    error: str = ""
    line: tuple[int, str] | None = None
    printed: bool = False
    changed: tuple[str, ...] = ()


class Program(NamedTuple):
    """A function to be written.

    Parameters
    ----------
    name : str
        What the exercise calls the function.
    shapes : mapping
        Letters of the shape of each argument, in order: ``{"Q": "T d_k", "tau": ""}``.
    returns : str
        Letters of the shape of the result.
    right : callable
        Computes the result exactly, from the exact arguments.
    inputs : sequence of tuples
        Arguments as exact numbers, nested tuples or single ones. Arguments of ints alone reach the
        reader's function as integers, all others as floats.
    wrong : sequence of Wrong
        The answers are functions of the same arguments, in numpy.

    Examples
    --------
    >>> wrong = [Wrong("sign", lambda x: -x, "the sign is missing.")]
    >>> keep = Program("keep", {"x": "S"}, "S", lambda x: x, [((1, 2),)], wrong)
    >>> keep.judge(lambda x: x).state
    <State.RIGHT: 'right'>
    >>> keep.judge(lambda x: 0 - x).lines[-1]
    'Most likely: the sign is missing.'
    """

    name: str
    shapes: Mapping[str, str]
    returns: str
    right: Callable[..., Any]
    inputs: Sequence[tuple]
    wrong: Sequence[Wrong]

    def judge(self, function: Any) -> Judgement:
        """Say whether a function is right, or on which input it fails and why."""
        if function is ...:
            return Judgement(State.OPEN)
        if problem := self.problem_with(function):
            return Judgement(State.UNREADABLE, (problem,))
        outcomes = self.outcomes(function)
        if outcomes[0].value is ...:
            return Judgement(State.OPEN)
        expected = [read(self.right(*arguments)) for arguments in self.inputs]
        failures = map(self._faults, outcomes, expected)
        n, faults = next(((n, faults) for n, faults in enumerate(failures) if faults), (0, []))
        if not faults:
            state, lines = State.RIGHT, [self._praise(outcomes, expected)]
        else:
            state = State.WRONG
            first = wording.FIRST_FAILURE.format(n=n + 1, inputs=len(outcomes))
            lines = [first, Block(self.as_code(self.inputs[n])), *faults]
            if likely := self._likely(outcomes):
                lines.append(wording.LIKELY.format(message=likely.message))
        if any(outcome.printed for outcome in outcomes):
            lines.append(wording.PRINTED.format(function=self.name))
        return Judgement(state, tuple(lines))

    def outcomes(self, function: Callable) -> list[Outcome]:
        """Call the function on every input."""
        names = tuple(self.shapes)
        return [run(function, names, [_for_numpy(x) for x in given]) for given in self.inputs]

    def problem_with(self, function: Any) -> str:
        """Say why something cannot be called as this function, nothing if it can."""
        if not callable(function):
            return wording.NOT_A_FUNCTION.format(function=self.name, given=show(function))
        try:
            inspect.signature(function).bind(*self.shapes)
        except TypeError as problem:
            names = f"({', '.join(self.shapes)})"
            return wording.PARAMETERS.format(function=self.name, expected=names, problem=problem)
        except ValueError:  # a function in C that does not tell its parameters
            pass
        return ""

    def _faults(self, outcome: Outcome, right: NDArray) -> list[str]:
        """Return what is wrong with one result, nothing if it is right."""
        if nothing := no_result(self.name, outcome):
            return [nothing]
        try:
            x = read(outcome.value, wording.ARRAY.format(shape=shape_text(right.shape)))
        except Unreadable as problem:
            return [wording.NOT_NUMBERS.format(function=self.name, problem=problem)]
        return self._wrong_numbers(outcome.value, x, right) + [
            wording.CHANGED.format(function=self.name, argument=name) for name in outcome.changed
        ]

    def _wrong_numbers(self, value: Any, x: NDArray, right: NDArray) -> list[str]:
        if x.shape != right.shape:
            given = shape_text(x.shape) if x.ndim else wording.ONE_NUMBER
            if not right.ndim:
                lines = [wording.RESULT_NUMBER.format(given=given)]
            else:
                letters, expected = " x ".join(self.returns.split()), shape_text(right.shape)
                lines = [
                    wording.RESULT_SHAPE.format(letters=letters, expected=expected, given=given)
                ]
            return lines + [wording.EMPTY] * (x.size == 0)
        if same(x, right):
            return []
        table = [(wording.RETURNED, x), (wording.EXPECTED, right)]
        lines = [Block("\n".join(_array_text(name, array) for name, array in table))]
        if bad := np.count_nonzero(~np.isfinite(x)):
            lines.append(wording.HAS_NAN.format(n=bad, all=x.size))
        elif not x.any():
            lines.append(wording.ZEROS)
        else:
            lines.append(wording.DIFFERENCE.format(difference=np.abs(x - right).max()))
        if np.asarray(value).dtype.kind in "iu" and np.mod(right, 1).any():
            lines.append(wording.WHOLE_NUMBERS)
        return lines

    def _likely(self, outcomes: Sequence[Outcome]) -> Wrong | None:
        """Find the misconception that does the same as this function on every input."""
        for wrong in self.wrong:
            if all(map(alike, outcomes, self.outcomes(wrong.answer))):
                return wrong
        return None

    def _praise(self, outcomes: Sequence[Outcome], expected: Sequence[NDArray]) -> str:
        pairs = zip(outcomes, expected, strict=True)
        difference = max(np.abs(read(outcome.value) - right).max() for outcome, right in pairs)
        message = wording.ALL_RIGHT if difference else wording.ALL_EXACT
        return message.format(function=self.name, n=len(outcomes), difference=difference)

    def as_code(self, arguments: tuple) -> str:
        """Write a call that a reader can paste into a cell."""
        lines = [
            f"{name} = {_as_code(_for_numpy(x), indent=len(name) + 13)}"
            for name, x in zip(self.shapes, arguments, strict=True)
        ]
        return "\n".join([*lines, f"{self.name}({', '.join(self.shapes)})"])


def run(function: Callable, names: Sequence[str], arguments: Sequence[Any]) -> Outcome:
    """Call a function that may do anything, and report what it did.

    Its warnings are silenced, its output is kept back, and its exceptions are caught, an interrupt
    from the keyboard aside.

    Examples
    --------
    >>> run(lambda x: x / 0, ["x"], [1]).error
    'ZeroDivisionError: division by zero'
    """
    before = [np.copy(argument) for argument in arguments]
    output = io.StringIO()
    value, error, line = None, "", None
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        warnings.simplefilter("ignore")
        try:
            value = function(*arguments)
            if inspect.iscoroutine(value):
                value.close()  # from `async def`; Python would warn that nobody awaits it
        except (Exception, SystemExit) as raised:
            error = _one_line(traceback.format_exception_only(raised)[-1], 200)
            line = _line_of(function, raised)
    changed = tuple(
        name
        for name, old, new in zip(names, before, arguments, strict=True)
        if not np.array_equal(old, new)
    )
    return Outcome(value, error, line, bool(output.getvalue()), changed)


def no_result(name: str, outcome: Outcome) -> str:
    """Say why a call of the function ``name`` has no result: it raised, or it returned None.

    Examples
    --------
    >>> no_result("keep", Outcome(None, printed=True))
    'keep printed its result and returned None. Let it return the result.'
    >>> no_result("keep", Outcome(3))
    ''
    """
    if outcome.error:
        number, line = outcome.line or ("", "")
        message = wording.RAISED_IN_LINE if line else wording.RAISED
        return message.format(function=name, error=outcome.error, number=number, line=line)
    if outcome.value is None:
        message = wording.PRINTS_ONLY if outcome.printed else wording.RETURNS_NONE
        return message.format(function=name)
    return ""


def alike(one: Outcome, other: Outcome) -> bool:
    """Tell whether two calls raised the same error or returned the same numbers.

    Examples
    --------
    >>> alike(Outcome([1.0, np.nan]), Outcome(np.array([1.0, np.nan])))
    True
    """
    if one.error or other.error:
        return one.error == other.error
    try:
        x, y = read(one.value), read(other.value)
    except Unreadable:
        return False
    return x.shape == y.shape and same(x, y)


def same(x: NDArray, y: NDArray) -> bool:
    """Tell whether two arrays of one shape agree but for rounding, nan at the same places."""
    return np.allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def _for_numpy(argument: Any) -> Any:
    """Turn exact numbers into what a reader's function gets: int, float or an array of them."""
    x = read(argument)
    whole = all(isinstance(number, int) for number in np.array(argument, dtype=object).flat)
    x = x.astype(np.int64 if whole else np.float64)
    return x if x.ndim else x.item()


def _as_code(x: Any, indent: int) -> str:
    if not isinstance(x, np.ndarray):
        return repr(x)
    rows = f",\n{' ' * indent}".join(map(repr, x.tolist()))
    return f"np.array([{rows}])" if x.ndim > 1 else f"np.array({x.tolist()!r})"


def _line_of(function: Callable, raised: BaseException) -> tuple[int, str] | None:
    """Return the number and text of the last line of the reader's own code that was running."""
    code = getattr(function, "__code__", None)
    for frame in reversed(traceback.extract_tb(raised.__traceback__)):
        if code and frame.filename == code.co_filename and frame.line:
            return frame.lineno - code.co_firstlineno + 1, _one_line(frame.line, 80)
    return None


def _one_line(text: str, width: int) -> str:
    text = " ".join(text.replace("$", "").split())
    return text if len(text) <= width else text[: width - 3] + "..."


def _array_text(name: str, x: NDArray) -> str:
    """Write an array as a table; of three axes, as matrices with an empty line between them."""
    cells = [f"{number:.4f}" for number in x.flat]
    width = max(map(len, cells), default=0)
    lines, columns = [], x.shape[-1] if x.ndim else 1
    for start in range(0, x.size, columns):
        if x.ndim > 2 and start and start % (x.shape[-2] * columns) == 0:
            lines.append("")
        row = "  ".join(cell.rjust(width) for cell in cells[start : start + columns])
        lines.append(f"{'' if lines else name:10}{row}")
    return "\n".join(lines)
