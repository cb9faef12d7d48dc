"""Tasks of chapter 13: each function draws a batch of sequences and what is asked about them.

A target of -1 says that nothing is asked at this place.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from attnbook._checks import as_array, whole_number
from attnbook.training._entry import generator

Batch = tuple[NDArray, NDArray]

# ---------------------------------------------------------------- recall: which value has this key?

KEYS, VALUES = 4, 4


def recall(rng: np.random.Generator, B: int = 32) -> Batch:
    """Draw a pair for each key, in random order, then a question for the value of one key.

    Parameters
    ----------
    rng : numpy.random.Generator
    B : int
        Number of sequences.

    Returns
    -------
    tokens : integer array, shape (B, 5)
        Four pairs, 4 key + value, and a question, 16 + key: 20 different tokens.
    targets : integer array, shape (B, 5)
        At the question the value, 0 to 3.

    Raises
    ------
    TypeError, ValueError
        rng is no generator, or B no integer from 1 on.

    Examples
    --------
    >>> tokens, targets = recall(np.random.default_rng(0), B=1)
    >>> tokens.tolist(), targets.tolist()
    ([[9, 0, 4, 12, 18]], [[-1, -1, -1, -1, 1]])
    """
    generator(rng), whole_number("B", B)
    keys = rng.permuted(np.tile(np.arange(KEYS), (B, 1)), axis=1)
    values = rng.integers(VALUES, size=(B, KEYS))
    chosen = rng.integers(KEYS, size=(B, 1))
    question = KEYS * VALUES + np.take_along_axis(keys, chosen, axis=1)
    targets = np.full((B, KEYS + 1), -1)
    targets[:, -1:] = np.take_along_axis(values, chosen, axis=1)
    return np.concatenate([VALUES * keys + values, question], axis=1), targets


# ---------------------------------------------------------------- language: what comes next?

WORDS = 8


def successors() -> NDArray:
    """Return the grammar: after word n comes one of the two words in row n.

    Returns
    -------
    integer array, shape (8, 2)

    Examples
    --------
    >>> successors()[[0, 7]].tolist()
    [[1, 3], [0, 2]]
    """
    return (np.arange(WORDS)[:, None] + [1, 3]) % WORDS


def sentences(rng: np.random.Generator, B: int = 32, T: int = 12) -> NDArray:
    """Draw sentences of the grammar: any first word, then each successor with probability 1/2.

    Parameters
    ----------
    rng : numpy.random.Generator
    B, T : int
        Number and length of the sentences.

    Returns
    -------
    integer array, shape (B, T)

    Raises
    ------
    TypeError, ValueError
        rng is no generator, or B or T no integer from 1 on.

    Examples
    --------
    >>> sentences(np.random.default_rng(0), B=1, T=6).tolist()
    [[6, 1, 4, 5, 6, 7]]
    """
    generator(rng), whole_number("B", B), whole_number("T", T)
    words = [rng.integers(WORDS, size=B)]
    for _ in range(T - 1):
        words.append(successors()[words[-1], rng.integers(2, size=B)])
    return np.stack(words, axis=1)


def legal(text: NDArray) -> float:
    """Return the share of words that may follow the word before them.

    Parameters
    ----------
    text : integer array, shape (B, T)
        T at least 2.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        text has another shape, or holds something else than words.

    Examples
    --------
    >>> legal(np.array([[0, 1, 4, 4, 7]]))
    0.75
    """
    text = as_array("text", text)
    if text.dtype.kind not in "iu" or text.ndim != 2 or text.shape[0] < 1 or text.shape[1] < 2:
        raise ValueError(
            "text must be words 0, ..., 7 in an integer array of shape (B, T), T at least 2; got "
            f"dtype {text.dtype}, shape {text.shape}: for one sentence write text[None]"
        )
    if text.min() < 0 or text.max() >= WORDS:
        raise ValueError(f"words must lie in 0, ..., {WORDS - 1}; got {text.min()} to {text.max()}")
    return float((successors()[text[:, :-1]] == text[:, 1:, None]).any(axis=-1).mean())


def next_word(rng: np.random.Generator, B: int = 32, T: int = 12) -> Batch:
    """Draw sentences and ask at each place for the word that comes next.

    Parameters
    ----------
    rng : numpy.random.Generator
    B, T : int
        Number and length of the sentences.

    Returns
    -------
    tokens, targets : integer arrays, shape (B, T)

    Raises
    ------
    TypeError, ValueError
        rng is no generator, or B or T no integer from 1 on.

    Examples
    --------
    >>> tokens, targets = next_word(np.random.default_rng(0), B=1)
    >>> bool((tokens[:, 1:] == targets[:, :-1]).all())
    True
    """
    text = sentences(rng, B, whole_number("T", T) + 1)
    return text[:, :-1], text[:, 1:]


def same_word(rng: np.random.Generator, B: int = 32, T: int = 12) -> Batch:
    """Draw sentences and ask at each place for the word that stands there: the shift is forgotten.

    Parameters
    ----------
    rng : numpy.random.Generator
    B, T : int
        Number and length of the sentences.

    Returns
    -------
    tokens, targets : integer arrays, shape (B, T)

    Raises
    ------
    TypeError, ValueError
        rng is no generator, or B or T no integer from 1 on.

    Examples
    --------
    >>> tokens, targets = same_word(np.random.default_rng(0), B=1)
    >>> bool((tokens == targets).all())
    True
    """
    text = sentences(rng, B, T)
    return text, text


# ---------------------------------------------------------------- names: several reads at once

NAMES = 8


def neighbours(rng: np.random.Generator, B: int = 32, T: int = 6) -> Batch:
    """Draw names and ask each inner place for the name on its left and the name on its right.

    Parameters
    ----------
    rng : numpy.random.Generator
    B, T : int
        Number and length of the sequences; T at least 3, for an inner place.

    Returns
    -------
    tokens : integer array, shape (B, T)
    targets : integer array, shape (B, T, 2)

    Raises
    ------
    TypeError, ValueError
        rng is no generator, or B or T no integer from 1 and 3 on.

    Examples
    --------
    >>> tokens, targets = neighbours(np.random.default_rng(0), B=1, T=4)
    >>> tokens.tolist(), targets.tolist()
    ([[6, 5, 4, 2]], [[[-1, -1], [6, 4], [5, 2], [-1, -1]]])
    """
    generator(rng), whole_number("B", B), whole_number("T", T, 3)
    tokens = rng.integers(NAMES, size=(B, T))
    targets = np.full((B, T, 2), -1)
    targets[:, 1:-1, 0], targets[:, 1:-1, 1] = tokens[:, :-2], tokens[:, 2:]
    return tokens, targets


def last_four(rng: np.random.Generator, B: int = 32, T: int = 6) -> Batch:
    """Draw names and ask the last place for the four names before it.

    Parameters
    ----------
    rng : numpy.random.Generator
    B, T : int
        Number and length of the sequences; T at least 5.

    Returns
    -------
    tokens : integer array, shape (B, T)
    targets : integer array, shape (B, T, 4)

    Raises
    ------
    TypeError, ValueError
        rng is no generator, or B or T no integer from 1 and 5 on.

    Examples
    --------
    >>> tokens, targets = last_four(np.random.default_rng(0), B=1)
    >>> tokens.tolist(), targets[0, -1].tolist()
    ([[6, 5, 4, 2, 2, 0]], [5, 4, 2, 2])
    """
    generator(rng), whole_number("B", B), whole_number("T", T, 5)
    tokens = rng.integers(NAMES, size=(B, T))
    targets = np.full((B, T, 4), -1)
    targets[:, -1] = tokens[:, -5:-1]
    return tokens, targets


# ---------------------------------------------------------------- order: which came first?

FILLER, QUESTION = 2, 3


def arrangements(T: int = 5) -> Batch:
    """Return all arrangements of the tokens 0 and 1 on T places; the last place asks for the first.

    Parameters
    ----------
    T : int
        Number of places, at least 2; what is left is filled with the token 2.

    Returns
    -------
    tokens : integer array, shape (T (T - 1), T + 1)
        The last token is 3, the question.
    targets : integer array, shape (T (T - 1), T + 1)
        At the question 0 or 1, whichever came first.

    Raises
    ------
    ValueError
        T is no integer from 2 on.

    Examples
    --------
    >>> tokens, targets = arrangements(2)
    >>> tokens.tolist(), targets.tolist()
    ([[0, 1, 3], [1, 0, 3]], [[-1, -1, 0], [-1, -1, 1]])
    """
    whole_number("T", T, 2)
    places = np.array(list(itertools.permutations(range(T), 2)))
    tokens = np.full((len(places), T + 1), FILLER)
    tokens[:, -1] = QUESTION
    np.put_along_axis(tokens, places, [[0, 1]], axis=1)
    targets = np.full_like(tokens, -1)
    targets[:, -1] = places[:, 0] > places[:, 1]
    return tokens, targets


# ---------------------------------------------------------------- repetition: what came after this?

LETTERS, SHORTEST, LONGEST = 16, 6, 10


def repetitions(rng: np.random.Generator, B: int = 24, T: int = 20) -> Batch:
    """Draw a block of 6 to 10 different letters, repeat it, and ask what is next once it repeats.

    Parameters
    ----------
    rng : numpy.random.Generator
    B, T : int
        Number and length of the sequences; T at least 11, so that every block repeats.

    Returns
    -------
    tokens, targets : integer arrays, shape (B, T)

    Raises
    ------
    TypeError, ValueError
        rng is no generator, or B or T no integer from 1 and 11 on.

    Examples
    --------
    >>> tokens, targets = repetitions(np.random.default_rng(0), B=1, T=12)
    >>> print(*tokens[0])
    2 11 3 10 0 4 7 5 14 12 2 11
    >>> print(*targets[0])
    -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 11 3
    """
    generator(rng), whole_number("B", B), whole_number("T", T, LONGEST + 1)
    period = rng.integers(SHORTEST, LONGEST + 1, size=(B, 1))
    letters = rng.permuted(np.tile(np.arange(LETTERS), (B, 1)), axis=1)
    text = np.take_along_axis(letters, np.arange(T + 1) % period, axis=1)
    return text[:, :-1], np.where(np.arange(T) >= period, text[:, 1:], -1)
