"""What a reader hands in, turned into numbers without ever evaluating text.

sympy evaluates strings (``sympify``, ``Matrix``, ``nsimplify``), and can compute for ever at an
expression like exp(exp(exp(100))). So the type of every element is looked at first, and expressions
are evaluated here, in floats, from a short list of functions.
"""

import itertools
import math
import reprlib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from attnbook.exercises import wording

LARGEST = 1000  # entries, lists and parts of expressions; the answers have about ten
DEEPEST = 4  # lists in lists
WIDEST = 60  # characters of an answer that are repeated to its author

FUNCTIONS = {
    sympy.Add: lambda *terms: math.fsum(terms),
    sympy.Mul: lambda *factors: math.prod(factors),
    sympy.Pow: math.pow,
    sympy.exp: math.exp,
    sympy.log: math.log,
    sympy.Abs: abs,
    sympy.Max: max,
    sympy.Min: min,
    sympy.sin: math.sin,
    sympy.cos: math.cos,
    sympy.tanh: math.tanh,
}


class Unreadable(Exception):
    """The answer is neither a number nor an array of numbers; the message tells its author."""


def read(value: Any, what: str = wording.NUMBER) -> NDArray[np.float64]:
    """Turn a number, a list, an array or a sympy object into an array of floats.

    Parameters
    ----------
    value : anything
    what : str
        What was expected, for the message.

    Returns
    -------
    array of float64
        Of shape () for a number. It may hold nan and inf.

    Raises
    ------
    Unreadable
        If there is anything but real numbers in it, or if it is too large.

    Examples
    --------
    >>> read([1, Fraction(1, 4), sympy.sqrt(4)])
    array([1.  , 0.25, 2.  ])
    """
    try:
        return _array(value, what, itertools.count(1), depth=0)
    except OverflowError:
        raise Unreadable(wording.TOO_LARGE) from None


def show(value: Any) -> str:
    """Write a value for its author to recognise, on one short line without dollar signs.

    Examples
    --------
    >>> show(2 / 3), show([1, Fraction(2, 3)]), show(range(10**9))
    ('0.666667', '(1, 2/3)', 'range(0, 1000000000)')
    """
    text = " ".join(_text(value, depth=0).replace("$", "").split())
    return text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."


def _text(value: Any, depth: int) -> str:
    if isinstance(value, float | np.floating):
        return f"{float(value) + 0.0:.6g}"  # -0.0 is 0
    if isinstance(value, np.ndarray | sympy.MatrixBase) and math.prod(value.shape) <= LARGEST:
        value = value.tolist()
    if isinstance(value, list | tuple) and depth < DEEPEST:
        items = [_text(item, depth + 1) for item in value[:7]]
        return "(" + ", ".join(items[:6] + ["..."] * (len(items) > 6)) + ")"
    try:
        exact = isinstance(value, Fraction | np.integer | sympy.Basic)
        return str(value) if exact else reprlib.repr(value)
    except Exception:  # a repr that fails, or an integer with more digits than Python prints
        return type(value).__name__


def _array(value: Any, what: str, steps: Iterator[int], depth: int) -> NDArray[np.float64]:
    _step(steps)
    # What is left open still holds some number.
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise Unreadable(wording.IS_MASKED.format(what=what))
    if isinstance(value, np.ndarray | sympy.MatrixBase):
        if math.prod(value.shape) > LARGEST:
            raise Unreadable(wording.TOO_LONG.format(limit=LARGEST))
        if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
            with np.errstate(all="ignore"):
                return np.array(value, dtype=np.float64)
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return np.array(_number(value, what, steps))
    if depth == DEEPEST:
        raise Unreadable(wording.TOO_DEEP.format(limit=DEEPEST))
    rows = [_array(row, what, steps, depth + 1) for row in value]
    if len({row.shape for row in rows}) > 1:
        raise Unreadable(wording.RAGGED)
    return np.array(rows, dtype=np.float64)


def _step(steps: Iterator[int]) -> None:
    if next(steps) > LARGEST:
        raise Unreadable(wording.TOO_LONG.format(limit=LARGEST))


def _number(x: Any, what: str, steps: Iterator[int]) -> float:
    if isinstance(x, bool | np.bool_):  # Python counts True as the integer 1
        raise Unreadable(wording.IS_BOOLEAN.format(what=what, given=show(x)))
    if isinstance(x, complex | np.complexfloating):
        raise Unreadable(wording.IS_COMPLEX)
    if isinstance(x, int | float | Fraction | np.integer | np.floating):
        return float(x)
    if isinstance(x, sympy.Expr):
        return _expression(x, x, steps)
    if x is ...:
        raise Unreadable(wording.STILL_OPEN)
    if x is None:
        raise Unreadable(wording.IS_NONE.format(what=what))
    if isinstance(x, str | bytes):
        raise Unreadable(wording.IS_TEXT.format(what=what, given=show(x)))
    message = wording.IS_FUNCTION if callable(x) else wording.IS_OTHER
    raise Unreadable(message.format(what=what, kind=type(x).__name__))


def _expression(x: sympy.Expr, whole: sympy.Expr, steps: Iterator[int]) -> float:
    """Evaluate a part of a sympy expression in floats, without sympy's own evaluation."""
    _step(steps)
    if x in (sympy.nan, sympy.oo, -sympy.oo, sympy.zoo):
        raise Unreadable(wording.NOT_FINITE.format(what=wording.NUMBER, given=show(whole)))
    if isinstance(x, sympy.Number | sympy.NumberSymbol):
        return float(x)
    if isinstance(x, sympy.Symbol):
        raise Unreadable(wording.HAS_SYMBOLS.format(given=show(whole), symbol=show(x)))
    if x.func not in FUNCTIONS:
        kind = x.func.__name__.replace("$", "")
        raise Unreadable(wording.UNKNOWN_FUNCTION.format(given=show(whole), kind=kind))
    parts = [_expression(part, whole, steps) for part in x.args]
    try:
        return float(FUNCTIONS[x.func](*parts))
    except (ValueError, ZeroDivisionError):  # the logarithm of -1, 0 to the power -1
        raise Unreadable(wording.NOT_REAL.format(given=show(whole))) from None
