"""Which keys a pattern of the catalogue names, and how much of its weight a head gives them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnbook import _checks
from attnbook.training.patterns import after_the_same, previous

FIRST, PREVIOUS, NEXT, SELF = "first token", "previous token", "next token", "itself"
THREE_BACK, COMMA, INDUCTION = "three back", "comma", "after the same"
PATTERNS = (FIRST, PREVIOUS, SELF, NEXT, THREE_BACK, COMMA, INDUCTION)


def named_keys(pattern: str, tokens: Sequence[str]) -> NDArray[np.bool]:
    """Return where the key stands that a pattern names, in the rows that can decide about it.

    The first two rows are left out: there the first, the previous and the token itself are not
    three different keys. For the same reason "three back" begins with the fifth row.

    Parameters
    ----------
    pattern : str
        One of `PATTERNS`; "after the same" is what came after an earlier copy of this token.
    tokens : sequence of str
        One text for each position.

    Returns
    -------
    boolean array, shape (T, T)
        At most one key a row if no token stands there three times. A pattern that the tokens cannot
        show (no comma, no repetition) names none.

    Raises
    ------
    ValueError
        There is no such pattern.
    TypeError
        The tokens are no sequence of texts, or one text that is not cut into tokens.

    Examples
    --------
    >>> named_keys("previous token", ("a", "b", "c", "d")).astype(int).tolist()
    [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    """
    if not isinstance(pattern, str) or pattern not in PATTERNS:
        raise ValueError(f"there is no pattern {pattern!r}: choose one of {', '.join(PATTERNS)}")
    if (
        isinstance(tokens, str)
        or not isinstance(tokens, Sequence | np.ndarray)
        or not all(isinstance(token, str) for token in tokens)
    ):
        raise TypeError(
            'tokens must be a sequence of texts, one for each position, as ("a", ",", "b"); got '
            f"{tokens!r:.60}"
        )
    T = len(tokens)
    there = np.zeros((T, T), dtype=bool)
    if pattern == FIRST:
        there[:, :1] = True
    elif pattern == PREVIOUS:
        there = previous(T)
    elif pattern == SELF:
        there = np.eye(T, dtype=bool)
    elif pattern == NEXT:
        there = np.eye(T, k=1, dtype=bool)
    elif pattern == THREE_BACK:
        there = np.eye(T, k=-3, dtype=bool)
        there[:4] = False
    elif pattern == COMMA:
        there[:, [token == "," for token in tokens]] = True
        there &= np.tri(T, k=-1, dtype=bool)
    else:
        there = after_the_same(np.array(tokens, dtype=str))
    there[:2] = False
    return there


def score(A: ArrayLike, there: ArrayLike) -> NDArray:
    """Return the mean weight that each head gives to the keys named, over the rows that name some.

    With n the number of rows in which a key is named::

        s = (1/n) sum_i sum_j A_ij [there_ij]

    Parameters
    ----------
    A : array, shape (..., T, S)
        Weights of any number of heads; each row sums to 1.
    there : boolean array, shape (T, S)

    Returns
    -------
    array, shape (...)
        From 0 to 1. Compare it with the score of uniform attention over the visible keys.

    Raises
    ------
    ValueError
        No row names a key, A holds no weights, or the last two axes differ.
    TypeError
        A holds no real numbers, or there no booleans.

    Examples
    --------
    >>> float(score([[1.0, 0.0], [0.25, 0.75]], [[False, False], [True, False]]))
    0.25
    """
    given, there = _checks.real_array("A", A), _booleans("there", there)
    A = given.astype(float)
    if there.ndim != 2 or A.shape[-2:] != there.shape:
        raise ValueError(
            "A must have shape (..., T, S) and there (T, S), with the same T and S; got A "
            f"{A.shape} and there {there.shape}"
        )
    _checks.check_weights(A, given)
    rows = there.any(axis=-1)
    if not rows.any():
        raise ValueError("no row names a key: the text cannot show this pattern")
    return np.where(there, A, 0.0).sum(axis=-1)[..., rows].mean(axis=-1)


def uniform(allowed: ArrayLike) -> NDArray:
    """Return the map of a head without a preference: each row shares 1 among its visible keys.

    Parameters
    ----------
    allowed : boolean array, shape (..., T, S)

    Returns
    -------
    array, shape (..., T, S)

    Raises
    ------
    ValueError
        A row sees no key.
    TypeError
        The entries are no booleans.

    Examples
    --------
    >>> uniform([[True, False], [True, True]]).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    allowed = _booleans("allowed", allowed)
    seen = allowed.sum(axis=-1, keepdims=True)
    if not seen.all():
        raise ValueError("a row sees no key: there is nothing to share its weight among")
    return allowed / seen


def _booleans(name: str, x: object) -> NDArray[np.bool]:
    x = _checks.as_array(name, x)
    if x.dtype != bool:
        raise TypeError(
            f"{name} must hold booleans, got dtype {x.dtype}: compare what you have, as in x == 1"
        )
    if x.ndim < 2:
        raise ValueError(f"{name} must have an axis of rows and one of keys, got shape {x.shape}")
    return x
