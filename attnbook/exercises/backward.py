"""A backward function to be written: it returns several gradients, and each is judged by itself.

The table says for every variable whether its gradient is exact (the same float as the exact value,
rounded), whether it is right up to rounding, and how far off it is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbook.exercises import wording
from attnbook.exercises.parts import Block, Judgement, State, Wrong, shape_text
from attnbook.exercises.programs import Outcome, Program, alike, no_result, same
from attnbook.exercises.reading import Unreadable, read, show


class Backward(NamedTuple):
    """A backward function to be written.

    Parameters
    ----------
    name : str
        What the exercise calls the function.
    shapes : mapping
        Letters of the shape of each argument, in order, as for a `Program`.
    returns : mapping
        Letters of the shape of each gradient by its name, in the order in which they are returned,
        which is that in which they are computed: ``{"dV": "S d_v", "dA": "T S"}``.
    right : callable
        Computes the gradients exactly, from the exact arguments, as a tuple.
    inputs : sequence of tuples
        Arguments as exact numbers, as for a `Program`.
    wrong : sequence of Wrong
        The answers are functions of the same arguments, in numpy.

    Examples
    --------
    >>> by_both = lambda x, y: (y, x)  # the loss is x y
    >>> returns, wrong = {"dx": "", "dy": ""}, [Wrong("swap", lambda x, y: (x, y), "swapped.")]
    >>> part = Backward("by_both", {"x": "", "y": ""}, returns, by_both, [(2, 3)], wrong)
    >>> print(part.judge(lambda x, y: (y, x)).lines[1])
        shape  exact  approximate  largest difference
    dx      1    yes          yes                   0
    dy      1    yes          yes                   0
    >>> part.judge(lambda x, y: (x, y)).lines[-1]
    'Most likely: swapped.'
    """

    name: str
    shapes: Mapping[str, str]
    returns: Mapping[str, str]
    right: Callable[..., tuple]
    inputs: Sequence[tuple]
    wrong: Sequence[Wrong]

    def judge(self, function: Any) -> Judgement:
        """Say whether a function is right, or on which input which of its gradients fails."""
        if function is ...:
            return Judgement(State.OPEN)
        caller = self._caller()
        if problem := caller.problem_with(function):
            return Judgement(State.UNREADABLE, (problem,))
        outcomes = caller.outcomes(function)
        if outcomes[0].value is ...:
            return Judgement(State.OPEN)
        expected = [list(map(read, self.right(*arguments))) for arguments in self.inputs]
        pairs = list(zip(outcomes, expected, strict=True))
        n = next((n for n, pair in enumerate(pairs) if not self._fits(*pair)), None)
        if n is None:
            said = wording.ALL_GRADIENTS.format(function=self.name, n=len(outcomes))
            state, lines = State.RIGHT, [said, Block(self._table(pairs))]
        else:
            state = State.WRONG
            first = wording.FIRST_FAILURE.format(n=n + 1, inputs=len(outcomes))
            lines = [first, Block(caller.as_code(self.inputs[n])), *self._faults(*pairs[n])]
            if likely := self._likely(outcomes):
                lines.append(wording.LIKELY.format(message=likely.message))
        if any(outcome.printed for outcome in outcomes):
            lines.append(wording.PRINTED.format(function=self.name))
        return Judgement(state, tuple(lines))

    def outcomes(self, function: Callable) -> list[Outcome]:
        """Call the function on every input."""
        return self._caller().outcomes(function)

    def _caller(self) -> Program:
        """Return what calls a function on the inputs and writes them down."""
        return Program(self.name, self.shapes, "", self.right, self.inputs, self.wrong)

    def _several(self, value: Any) -> bool:
        return isinstance(value, tuple | list) and len(list(value)) == len(self.returns)

    def _fits(self, outcome: Outcome, right: list[NDArray]) -> bool:
        """Tell whether every gradient is right, and nothing else went wrong."""
        if outcome.error or outcome.changed or not self._several(outcome.value):
            return False
        return all(_right(x, r) for x, r in zip(outcome.value, right, strict=True))

    def _faults(self, outcome: Outcome, right: list[NDArray]) -> list[str]:
        """Return what is wrong with one call."""
        if nothing := no_result(self.name, outcome):
            return [nothing]
        if not self._several(outcome.value):
            names, given = ", ".join(self.returns), _given(outcome.value)
            return [
                wording.RESULTS.format(
                    function=self.name, n=len(self.returns), names=names, given=given
                )
            ]
        faults = [Block(self._table([(outcome, right)]))]
        rows = zip(self.returns, outcome.value, right, strict=True)
        if wrong := next((row for row in rows if not _right(*row[1:])), None):
            faults += [wording.FIRST_WRONG.format(name=wrong[0]), *_reason(*wrong[1:])]
        return faults + [
            wording.CHANGED.format(function=self.name, argument=name) for name in outcome.changed
        ]

    def _table(self, pairs: Sequence[tuple[Outcome, list[NDArray]]]) -> str:
        """Write one line for each gradient, the worst over these calls."""
        lines = [wording.TABLE_HEAD]
        for k, (name, letters) in enumerate(self.returns.items()):
            found = [(outcome.value[k], right[k]) for outcome, right in pairs]
            shape = (
                shape_text(found[0][1].shape) if len(found) == 1 else " x ".join(letters.split())
            )
            lines.append((name, shape or "1", *_compared(found)))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        )

    def _likely(self, outcomes: Sequence[Outcome]) -> Wrong | None:
        """Find the misconception that does the same as this function on every input."""
        for wrong in self.wrong:
            if all(map(alike_in_all, outcomes, self.outcomes(wrong.answer))):
                return wrong
        return None


def alike_in_all(one: Outcome, other: Outcome) -> bool:
    """Tell whether two calls raised the same error or returned the same arrays.

    Examples
    --------
    >>> alike_in_all(Outcome((1, [2.0])), Outcome((1.0, np.array([2]))))
    True
    """
    several = [isinstance(outcome.value, tuple | list) for outcome in (one, other)]
    if one.error or other.error or not all(several):
        return alike(one, other)
    some, more = list(one.value), list(other.value)
    return len(some) == len(more) and all(
        alike(Outcome(x), Outcome(y)) for x, y in zip(some, more, strict=True)
    )


def _numbers(x: Any) -> NDArray | None:
    try:
        return read(x)
    except Unreadable:
        return None


def _right(given: Any, right: NDArray) -> bool:
    x = _numbers(given)
    return x is not None and x.shape == right.shape and same(x, right)


def _given(value: Any) -> str:
    """Write what was returned in place of several arrays."""
    if isinstance(value, tuple | list):
        return wording.SO_MANY.format(n=len(list(value)))
    if isinstance(value, np.ndarray):
        return wording.ONE_ARRAY.format(shape=shape_text(value.shape))
    return show(value)


def _reason(given: Any, right: NDArray) -> list[str]:
    """Say what the table cannot: why it is no array of numbers, or that fractions were cut off."""
    try:
        x = read(given, wording.ARRAY.format(shape=shape_text(right.shape)))
    except Unreadable as problem:
        return [str(problem)]
    whole = x.shape == right.shape and np.asarray(given).dtype.kind in "iu"
    return [wording.INTEGERS] * bool(whole and np.mod(right, 1).any())


def _compared(found: Sequence[tuple[Any, NDArray]]) -> tuple[str, str, str]:
    """Return the words for exact, approximate and the largest difference."""
    worst, exact = 0.0, True
    for given, right in found:
        x = _numbers(given)
        if x is None:
            return wording.NO, wording.NO, wording.NOT_ARRAY
        if x.shape != right.shape:
            said = wording.NOT_THIS_SHAPE.format(given=shape_text(x.shape))
            return wording.NO, wording.NO, said
        if not np.isfinite(x).all():
            return wording.NO, wording.NO, wording.NAN_OR_INF
        exact = exact and np.array_equal(x, right)
        worst = max(worst, float(np.abs(x - right).max(initial=0)))
    near = all(_right(given, right) for given, right in found)
    words = {True: wording.YES, False: wording.NO}
    return words[exact], words[near], f"{worst:.2g}"
