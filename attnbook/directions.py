"""How many nearly orthogonal directions fit into n dimensions: bounds, constructions, chance.

A *line* is a unit vector up to its sign, so that only ``|cos|`` counts; for *points* of the sphere
the sign counts, and obtuse angles are welcome.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

# Polynomials over two elements, as bits, by which the field with 2^m elements is made.
IRREDUCIBLE = {3: 0b1011, 5: 0b100101, 7: 0b10000011, 9: 0b1000010001}
BASE_TRIPLES = ((0, 1, 12), (0, 2, 9), (0, 3, 8), (0, 4, 10))


# ---------------------------------------------------------------- upper bounds


def forced_cosine(N: int, n: int) -> float:
    """Return Welch's bound: among N lines in n dimensions some pair has at least this ``|cos|``.

    ``sqrt((N - n) / (n (N - 1)))``, and 0 for ``N <= n``; chapter 02, (2.5).

    Parameters
    ----------
    N : int
        Number of lines, at least 2.
    n : int
        Dimensions, at least 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If N or n is too small.

    Examples
    --------
    >>> round(forced_cosine(6, 3) ** 2, 12)  # the six diagonals of an icosahedron reach it
    0.2
    """
    if N < 2 or n < 1:
        raise ValueError(f"expected N >= 2 lines in n >= 1 dimensions, got N = {N}, n = {n}")
    return math.sqrt(max(N - n, 0) / (n * (N - 1)))


def most_lines(n: int, c: float) -> float:
    """Return Welch's bound on how many lines have pairwise ``|cos| <= c``.

    ``N <= n (1 - c^2) / (1 - n c^2)``; chapter 02, (2.6).

    Parameters
    ----------
    n : int
        Dimensions.
    c : float or Fraction
        With ``n c^2 < 1``: beyond that the bound says nothing.

    Returns
    -------
    float or Fraction
        Not rounded: at most its whole part.

    Raises
    ------
    ValueError
        If the bound says nothing.

    Examples
    --------
    >>> most_lines(3, Fraction(1, 3))
    Fraction(4, 1)
    """
    _check_small(n, c)
    return n * (1 - c * c) / (1 - n * c * c)


def most_points(n: int, c: float) -> float:
    """Return the bound of degree 3 on how many unit vectors have pairwise ``cos <= c``.

    ``N <= n (1 - c) (2 + (n + 1) c) / (1 - n c^2)``, after Levenshtein; chapter 02, (2.8).

    Parameters
    ----------
    n : int
        Dimensions.
    c : float or Fraction
        Not negative, and ``n c^2 < 1``.

    Returns
    -------
    float or Fraction
        Not rounded: at most its whole part.

    Raises
    ------
    ValueError
        If c is negative or ``n c^2 >= 1``.

    Examples
    --------
    >>> most_points(24, Fraction(0))  # the 2 n vectors of an orthonormal basis and their negatives
    Fraction(48, 1)
    """
    _check_small(n, c)
    return n * (1 - c) * (2 + (n + 1) * c) / (1 - n * c * c)


def expansion(f: Sequence[Fraction], n: int) -> tuple[Fraction, ...]:
    """Return the coefficients of a polynomial in the Gegenbauer polynomials of n dimensions.

    ``f(t) = sum_k f_k g_k(t)`` with ``g_k(1) = 1``, ``g_0 = 1``, ``g_1 = t`` and
    ``(k + n - 2) g_{k+1} = (2 k + n - 2) t g_k - k g_{k-1}``; chapter 02, Statement 2.9.

    Parameters
    ----------
    f : sequence of Fraction
        Coefficients of 1, t, t^2, ...
    n : int
        Dimensions, at least 3.

    Returns
    -------
    tuple of Fraction
        ``f_0, f_1, ...``, exact.

    Raises
    ------
    ValueError
        If n is below 3 or there is no coefficient.

    Examples
    --------
    >>> expansion((0, 0, Fraction(1)), 3)  # t^2 = 1/3 + 2/3 g_2
    (Fraction(1, 3), Fraction(0, 1), Fraction(2, 3))
    """
    if n < 3 or len(f) == 0:
        raise ValueError(f"expected n >= 3 and at least one coefficient, got n = {n}, {len(f)}")
    g = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    for k in range(1, len(f) - 1):
        higher = [Fraction(0), *((2 * k + n - 2) * x for x in g[k])]
        for i, x in enumerate(g[k - 1]):
            higher[i] -= k * x
        g.append([x / (k + n - 2) for x in higher])
    rest, found = [Fraction(x) for x in f], []
    for k in reversed(range(len(f))):
        found.append(rest[k] / g[k][k])
        for i, x in enumerate(g[k]):
            rest[i] -= found[-1] * x
    return tuple(reversed(found))


def certified(f: Sequence[Fraction], n: int) -> Fraction:
    """Return the bound ``f(1) / f_0`` that a polynomial certifies, after Delsarte.

    It bounds how many unit vectors there can be whose pairwise cosines t all have ``f(t) <= 0``;
    chapter 02, (2.11).

    Parameters
    ----------
    f : sequence of Fraction
        Coefficients of 1, t, t^2, ...
    n : int
        Dimensions, at least 3.

    Returns
    -------
    Fraction

    Raises
    ------
    ValueError
        If ``f_0`` is not positive or another coefficient of the expansion is negative: then the
        polynomial proves nothing.

    Examples
    --------
    >>> certified((Fraction(-1, 25), 0, Fraction(1)), 16)  # t^2 - c^2 is Welch's bound
    Fraction(128, 3)
    >>> most_lines(16, Fraction(1, 5))
    Fraction(128, 3)
    """
    first, *others = expansion(f, n)
    if first <= 0 or min(others, default=0) < 0:
        raise ValueError(
            "expected f_0 > 0 and no negative coefficient, got "
            + ", ".join(f"{float(x):.3g}" for x in (first, *others))
        )
    return sum(map(Fraction, f)) / first


def _check_small(n: int, c: float) -> None:
    if not (c >= 0 and n * c * c < 1):
        raise ValueError(
            f"expected c >= 0 and n c^2 < 1, got n = {n}, c = {c}: this bound says nothing there, "
            "use a polynomial of higher degree"
        )


# ---------------------------------------------------------------- chance


def share_beyond(n: int, c: float) -> float:
    """Return the probability that two random directions in n dimensions have ``|cos| > c``.

    With ``phi = arcsin c`` it is ``1 - S_{n-2}``, where ``S_0 = 2 phi / pi``, ``S_1 = c`` and
    ``S_k = S_{k-2} + c cos(phi)^(k-1) / (k W_k)``, ``W_k`` the integral of ``cos^k`` from 0 to
    ``pi / 2``; chapter 02, (2.12).

    Parameters
    ----------
    n : int
        Dimensions, at least 2.
    c : float
        From 0 to 1.

    Returns
    -------
    float
        Absolute error below 1e-12.

    Examples
    --------
    >>> round(share_beyond(3, 0.25), 12)  # on the sphere cosines are uniform
    0.75
    """
    if n < 2 or not 0 <= c <= 1:
        raise ValueError(f"expected n >= 2 and 0 <= c <= 1, got n = {n}, c = {c}")
    k = n % 2
    W, S = (1.0, c) if k else (math.pi / 2, 2 * math.asin(c) / math.pi)
    root = math.sqrt(1 - c * c)
    while k < n - 2:
        k += 2
        W *= (k - 1) / k
        S += c * root ** (k - 1) / (k * W)
    return max(1 - S, 0.0)


def random_directions(N: int, n: int, seed: int) -> NDArray[np.float64]:
    """Return N unit vectors in n dimensions, independent and uniform on the sphere.

    Parameters
    ----------
    N, n : int
    seed : int

    Returns
    -------
    (N, n) array

    Examples
    --------
    >>> random_directions(3, 5, seed=0).shape
    (3, 5)
    """
    X = np.random.default_rng(seed).normal(size=(N, n))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# ---------------------------------------------------------------- constructions


def triples() -> list[tuple[int, int, int]]:
    """Return 100 triples of 25 points such that any two points lie in exactly one of them.

    Four triples, moved around the circle of 25 points: their differences are 1, ..., 24, each once.

    Returns
    -------
    list of 100 (int, int, int)

    Examples
    --------
    >>> triples()[:3]
    [(0, 1, 12), (1, 2, 13), (2, 3, 14)]
    """
    return [tuple((x + step) % 25 for x in base) for base in BASE_TRIPLES for step in range(25)]


def hadamard_12() -> NDArray[np.float64]:
    """Return a matrix of signs of order 12 with orthogonal rows, made from the squares modulo 11.

    Returns
    -------
    (12, 12) array

    Examples
    --------
    >>> H = hadamard_12()
    >>> bool((H @ H.T == 12 * np.eye(12)).all())
    True
    """
    squares = {x * x % 11 for x in range(1, 11)}
    S = np.zeros((12, 12))
    S[0, 1:], S[1:, 0] = 1, -1
    for i in range(11):
        for j in range(11):
            if i != j:
                S[i + 1, j + 1] = 1 if (i - j) % 11 in squares else -1
    return S + np.eye(12)


def triple_lines() -> NDArray[np.float64]:
    """Return 300 unit vectors in 100 dimensions with ``|cos|`` 0 or 1/12 (85.2 degrees).

    The coordinates are the 100 `triples`. Each of the 25 points has 12 vectors: the rows of
    `hadamard_12`, on the 12 triples through the point.

    Returns
    -------
    (300, 100) array

    Examples
    --------
    >>> X = triple_lines()
    >>> round(12 * float(abs(X @ X.T - np.eye(300)).max()), 12)
    1.0
    """
    X = np.zeros((25, 12, 100))
    for point in range(25):
        through = [j for j, triple in enumerate(triples()) if point in triple]
        X[point][:, through] = hadamard_12() / np.sqrt(12)
    return X.reshape(300, 100)


def field_product(x: int, y: int, m: int) -> int:
    """Return the product of two elements of the field with 2^m elements.

    The bits of a number are the coefficients of a polynomial over two elements; the product is
    taken modulo the polynomial ``IRREDUCIBLE[m]``.

    Parameters
    ----------
    x, y : int
        From 0 to ``2**m - 1``.
    m : int
        3, 5, 7 or 9.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If there is no polynomial for this m.

    Examples
    --------
    >>> field_product(0b100, 0b010, 3)  # z^2 times z is z^3 = z + 1
    3
    """
    if m not in IRREDUCIBLE:
        raise ValueError(f"expected m in {sorted(IRREDUCIBLE)}, got {m}")
    product = 0
    for bit in range(m):
        if y >> bit & 1:
            product ^= x << bit
    for bit in range(2 * m - 2, m - 1, -1):
        if product >> bit & 1:
            product ^= IRREDUCIBLE[m] << (bit - m)
    return product


@cache
def _cubes(m: int) -> NDArray[np.int64]:
    cubes = [field_product(x, field_product(x, x, m), m) for x in range(2**m)]
    found = np.array(cubes)
    found.flags.writeable = False
    return found


def sign_lines(m: int, a: Sequence[int], u: Sequence[int]) -> NDArray[np.float64]:
    """Return unit vectors in n = 2^m dimensions, of which any two have ``|cos|`` 0 or sqrt(2/n).

    Coordinate x of vector (a, u) is ``(-1)^(a . x^3 + u . x) / sqrt(n)``, with the cube taken in
    the field with n elements and the dot of two numbers counting the bits they share. There are
    ``n^2`` pairs (a, u), and so ``n^2`` lines; chapter 02, (2.9).

    Parameters
    ----------
    m : int
        3, 5, 7 or 9.
    a, u : (N,) arrays of int
        From 0 to ``2**m - 1``; the pairs differ.

    Returns
    -------
    (N, 2**m) array

    Examples
    --------
    >>> X = sign_lines(3, [0] * 8 + [1] * 8, [*range(8)] * 2)
    >>> abs(X[0] @ X.T).round(3).tolist()[8:]
    [0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 0.0, 0.5]
    """
    a, u, x = np.asarray(a)[:, None], np.asarray(u)[:, None], np.arange(2**m)
    odd = (np.bitwise_count(a & _cubes(m)) + np.bitwise_count(u & x)) % 2
    return (1.0 - 2.0 * odd) / np.sqrt(2**m)
