"""Exercises: ``check("4.2", raw=..., scaled=...)`` says what is right and what went wrong.

Each chapter's exercises are data in a module of their own (``ch04``), read when one of them is
checked; the statements, hints and solutions are in the chapters.
"""

from attnbook.exercises.engine import Verdict, check

__all__ = ["Verdict", "check"]
