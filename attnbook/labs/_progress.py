"""A progress bar for cells that take seconds; in a notebook that is not run, a sentence."""

from collections.abc import Callable

import ipywidgets
from IPython.display import display

STANDS_IN = "(A progress bar stands here while the cell trains.)"


def progress_bar(steps: int) -> Callable[..., None]:
    """Show a bar and return what moves it: each call is one step, whatever its arguments.

    Parameters
    ----------
    steps : int
        Number of calls until the bar is full.

    Returns
    -------
    callable

    Examples
    --------
    >>> step = progress_bar(200)  # doctest: +ELLIPSIS
    {'text/plain': '(A progress bar stands here while the cell trains.)', ...
    >>> for _ in range(200):
    ...     step()
    """
    bar = ipywidgets.IntProgress(max=100, description="0 %")
    display({**bar._repr_mimebundle_(), "text/plain": STANDS_IN}, raw=True)
    done = 0

    def step(*_: object) -> None:
        nonlocal done
        done += 1
        percent = 100 * done // steps
        if percent != bar.value:  # a message to the page for each percent, not for each step
            bar.value, bar.description = percent, f"{percent} %"

    return step
