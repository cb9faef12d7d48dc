"""Which exercises with a check there are: one module for each chapter, read when it is needed."""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Mapping

from attnbook import exercises as package
from attnbook.exercises.backward import Backward
from attnbook.exercises.parts import Choice, Number
from attnbook.exercises.programs import Program

Part = Number | Choice | Program | Backward


def chapters() -> list[int]:
    """Return the numbers of the chapters that have exercises with a check.

    Examples
    --------
    >>> chapters()[:3]
    [1, 2, 3]
    """
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(int(name[2:]) for name in modules if re.fullmatch(r"ch[0-9]{2}", name))


def exercises(chapter: int) -> Mapping[str, Mapping[str, Part]]:
    """Return the exercises of a chapter that have a check, none if it has no module.

    Examples
    --------
    >>> list(exercises(4))[:2]
    ['4.1', '4.2']
    """
    module = f"attnbook.exercises.ch{chapter:02d}"
    if importlib.util.find_spec(module) is None:
        return {}
    return importlib.import_module(module).EXERCISES
