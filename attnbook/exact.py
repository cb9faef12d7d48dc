r"""The mathematics of the book in exact numbers, written from the formulas.

An independent oracle: this module imports sympy and the standard library, nothing of the
numerical modules. Rows are positions, softmax runs over the keys, positions in error messages
count from 0. Every argument is exact: ints, ``Fraction``s and sympy expressions, nested in lists,
tuples, integer arrays or sympy matrices. Floats are refused, since 0.1 is not 1/10; strings are
refused before sympy sees them, since sympy would evaluate their text.
"""

import itertools
import math
import numbers
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import sympy

Exact = int | Fraction | sympy.Expr
Row = Sequence[Exact] | sympy.MatrixBase
Matrix = Sequence[Sequence[Exact]] | sympy.MatrixBase
Law = Mapping[Hashable, Exact]


class Attention(NamedTuple):
    """Raw scores E, scaled scores U, weights A (all T x S) and output O (T x d_v)."""

    E: sympy.ImmutableMatrix
    U: sympy.ImmutableMatrix
    A: sympy.ImmutableMatrix
    O: sympy.ImmutableMatrix


class Gradients(NamedTuple):
    """Gradients of the loss by Q, K, V, A and U, each with the shape of its variable."""

    dQ: sympy.ImmutableMatrix
    dK: sympy.ImmutableMatrix
    dV: sympy.ImmutableMatrix
    dA: sympy.ImmutableMatrix
    dU: sympy.ImmutableMatrix


# --- exact numbers, rows and matrices -----------------------------------------------------------


def row(values: Row) -> sympy.ImmutableMatrix:
    """Make a 1 x n matrix of exact numbers.

    Parameters
    ----------
    values : n exact numbers, or a matrix with one row

    Returns
    -------
    sympy.ImmutableMatrix, 1 x n

    Raises
    ------
    TypeError
        For floats, strings, booleans and anything else that is not an exact number.
    ValueError
        For no numbers at all, and for numbers that are not finite and real.

    Examples
    --------
    >>> row([1, Fraction(1, 2), sympy.sqrt(2)])
    Matrix([[1, 1/2, sqrt(2)]])
    """
    if isinstance(values, sympy.MatrixBase) and values.rows == 1:
        return matrix(values)
    return matrix([_items(values, "a row")])


def matrix(rows: Matrix) -> sympy.ImmutableMatrix:
    """Make a matrix of exact numbers from its rows.

    Parameters
    ----------
    rows : m rows of n exact numbers each

    Returns
    -------
    sympy.ImmutableMatrix, m x n

    Raises
    ------
    TypeError
        For floats, strings, booleans and anything else that is not an exact number.
    ValueError
        For rows of different lengths, no entries at all, and numbers that are not finite and real.

    Examples
    --------
    >>> matrix([[1, 0], [Fraction(1, 2), sympy.log(3)]])
    Matrix([
    [  1,      0],
    [1/2, log(3)]])
    """
    table = [_items(line, f"row {i}") for i, line in enumerate(_items(rows, "a matrix"))]
    if not table or not table[0]:
        raise ValueError("expected a matrix with at least one row and one column, got an empty one")
    n = len(table[0])
    for i, line in enumerate(table):
        if len(line) != n:
            raise ValueError(
                f"expected rows of equal length, got {n} entries in row 0, {len(line)} in row {i}"
            )
    entries = [
        _number(x, f"row {i}, column {j}")
        for i, line in enumerate(table)
        for j, x in enumerate(line)
    ]
    return sympy.ImmutableMatrix(len(table), n, entries)


def _number(x: Exact, where: str) -> sympy.Expr:
    if isinstance(x, sympy.Expr) and x.is_commutative:  # matrix symbols do not commute
        if x.has(sympy.Float):
            raise TypeError(
                f"{where}: expected an exact number, got an expression with a float in it"
            )
        if x.has(sympy.nan, sympy.oo, -sympy.oo, sympy.zoo) or x.is_real is False:
            raise ValueError(f"{where}: expected a finite real number, got {str(x)[:40]}")
        return x
    if isinstance(x, numbers.Rational) and not isinstance(x, bool):  # int, Fraction, numpy.int64
        return sympy.Rational(int(x.numerator), int(x.denominator))
    raise TypeError(
        f"{where}: expected an exact number (int, Fraction or sympy expression), got "
        f"{type(x).__name__}; write Fraction(1, 2) for 0.5 and sympy.sqrt(2) for a root"
    )


def _plain(x: object) -> object:
    """Return x, with sympy matrices, numpy arrays and numpy scalars as Python objects."""
    return x.tolist() if hasattr(x, "tolist") else x


def _items(x: Sequence, what: str) -> list | tuple:
    items = _plain(x)
    if not isinstance(items, list | tuple):
        raise TypeError(
            f"expected {what} as a list, tuple, array or matrix, got {type(x).__name__}"
        )
    return items


def _nested(items: Sequence) -> bool:
    return len(items) > 0 and hasattr(items[0], "__len__")


def _table(x: Row | Matrix) -> sympy.ImmutableMatrix:
    """Return x as a matrix; x may also be one flat row."""
    return matrix(x) if _nested(_items(x, "a row or a matrix")) else row(x)


def _flags(flags: Sequence | None, T: int, S: int, name: str) -> list:
    """Return T x S booleans (one flat row will do for T = 1), all True when none are given."""
    if flags is None:
        return [[True] * S] * T
    items = _items(flags, name)
    table = [_items(line, name) for line in (items if _nested(items) else [items])]
    if len(table) != T or any(len(line) != S for line in table):
        got = f"{len(table)} rows of lengths {sorted({len(line) for line in table})}"
        raise ValueError(f"expected {name} as {T} x {S} booleans, got {got}")
    table = [[_plain(flag) for flag in line] for line in table]
    if wrong := [flag for line in table for flag in line if not isinstance(flag, bool)]:
        raise TypeError(f"expected True or False in {name}, got {type(wrong[0]).__name__}")
    return table


def _require(fits: bool, rule: str, **shapes: sympy.ImmutableMatrix) -> None:
    if not fits:
        got = ", ".join(f"{name} {M.rows} x {M.cols}" for name, M in shapes.items())
        raise ValueError(f"expected {rule}, got {got}")


# --- one head, forward and backward -------------------------------------------------------------


def project(X: Matrix, W: Matrix) -> sympy.ImmutableMatrix:
    """Project the rows of X: Q = X W_Q, and K, V alike, R (5.2).

    Parameters
    ----------
    X : n x d
    W : d x p

    Returns
    -------
    sympy.ImmutableMatrix, n x p

    Raises
    ------
    ValueError
        If X does not have as many columns as W has rows.

    Examples
    --------
    >>> project([[1, 2], [0, 1]], [[1, 0, 3], [0, 1, 1]])
    Matrix([
    [1, 2, 5],
    [0, 1, 1]])
    """
    X, W = matrix(X), matrix(W)
    _require(X.cols == W.rows, "as many columns in X as rows in W", X=X, W=W)
    return X * W


def project_backward(
    dY: Matrix, X: Matrix, W: Matrix
) -> tuple[sympy.ImmutableMatrix, sympy.ImmutableMatrix]:
    """Carry the gradient of Y = X W back: dX = dY W^T, R (5.30), and dW = X^T dY, R (5.29).

    In self-attention the three dX of Q, K and V add up, R (5.31).

    Parameters
    ----------
    dY : n x p
    X : n x d
    W : d x p

    Returns
    -------
    dX : sympy.ImmutableMatrix, n x d
    dW : sympy.ImmutableMatrix, d x p

    Raises
    ------
    ValueError
        If the shapes do not fit together.

    Examples
    --------
    >>> dX, dW = project_backward([[1, 0]], X=[[2, 3, 4]], W=[[1, 2], [3, 4], [5, 6]])
    >>> dX
    Matrix([[1, 3, 5]])
    >>> dW
    Matrix([
    [2, 0],
    [3, 0],
    [4, 0]])
    """
    dY, X, W = matrix(dY), matrix(X), matrix(W)
    fits = dY.shape == (X.rows, W.cols) and X.cols == W.rows
    _require(fits, "dY n x p, X n x d and W d x p", dY=dY, X=X, W=W)
    return dY * W.T, X.T * dY


def scores(Q: Matrix, K: Matrix, scale: Exact | None = None) -> sympy.ImmutableMatrix:
    """Compute the scaled scores U = Q K^T * scale, R (5.3) and (5.14).

    Parameters
    ----------
    Q : T x d_k
    K : S x d_k
    scale : exact number, 1/sqrt(d_k) if not given

    Returns
    -------
    sympy.ImmutableMatrix, T x S

    Raises
    ------
    ValueError
        If Q and K do not have the same number of columns.

    Examples
    --------
    >>> scores([[1, 2]], [[3, 4], [5, 6], [7, 8]], scale=1)
    Matrix([[11, 17, 23]])
    """
    Q, K = matrix(Q), matrix(K)
    _require(Q.cols == K.cols, "Q and K of the same width d_k", Q=Q, K=K)
    return Q * K.T * _scale(scale, d_k=K.cols)


def _scale(scale: Exact | None, d_k: int) -> sympy.Expr:
    return 1 / sympy.sqrt(d_k) if scale is None else _number(scale, "scale")


def softmax(
    U: Row | Matrix,
    allowed: Sequence | None = None,
    *,
    query_valid: Sequence | None = None,
) -> sympy.ImmutableMatrix:
    """Compute weights over the allowed keys of each row, R (5.11).

    a_ij = exp(u_ij - c_i) / sum over the allowed r of exp(u_ir - c_i), and 0 where j is forbidden.
    Exact exponentials cannot overflow, so no c_i is needed, and any c_i gives the same weights. The
    smallest allowed score is used where the scores are numbers: closed forms then read as R (5.16).

    Parameters
    ----------
    U : scores, T x S, or one flat row of S scores
    allowed : booleans of the same shape, True = may read; every key if not given
    query_valid : T booleans; the row of a query that is not valid is zero

    Returns
    -------
    sympy.ImmutableMatrix, T x S, rows of sum 1 (0 where query_valid is False)

    Raises
    ------
    ValueError
        If a valid query may read no key, and for wrong shapes.

    Examples
    --------
    >>> softmax([sympy.log(3), 0])
    Matrix([[3/4, 1/4]])
    >>> softmax([[0, 1, 5]], allowed=[[True, True, False]])
    Matrix([[1/(1 + E), E/(1 + E), 0]])
    """
    U = _table(U)
    T, S = U.shape
    allowed = _flags(allowed, T, S, "allowed")
    (query_valid,) = _flags(query_valid, 1, T, "query_valid")
    A = sympy.zeros(T, S)
    for i in range(T):
        if not query_valid[i]:
            continue
        J = [j for j in range(S) if allowed[i][j]]
        if not J:
            raise ValueError(
                f"expected at least one allowed key for query {i}, got none; allow a key, or mark "
                f"the query as padding with query_valid"
            )
        c = _smallest([U[i, j] for j in J])
        e = {j: sympy.exp(U[i, j] - c) for j in J}
        for j in J:
            A[i, j] = e[j] / sum(e.values())
    return A.as_immutable()


def _smallest(u: list) -> sympy.Expr:
    """Return the smallest of the scores u, or 0 if they have no order (symbols)."""
    return min(u, key=lambda x: x.evalf()) if all(x.is_comparable for x in u) else sympy.S.Zero


def softmax_jacobian(a: Row) -> sympy.ImmutableMatrix:
    """Compute the derivatives of one row of weights by its scores, R (5.24).

    J = diag(a) - a^T a for the row a: entry (j, r) is da_j / du_r = a_j (1[j = r] - a_r).

    Parameters
    ----------
    a : S weights of one query

    Returns
    -------
    sympy.ImmutableMatrix, S x S, symmetric, rows of sum 0 if the weights sum to 1

    Raises
    ------
    TypeError, ValueError
        As `row`.

    Examples
    --------
    >>> softmax_jacobian([Fraction(3, 4), Fraction(1, 4)])
    Matrix([
    [ 3/16, -3/16],
    [-3/16,  3/16]])
    """
    a = row(a)
    return (sympy.diag(*a) - a.T * a).as_immutable()


def softmax_backward(dA: Row | Matrix, A: Row | Matrix) -> sympy.ImmutableMatrix:
    """Carry the gradient of the weights back to the scores, R (5.25) and (5.27).

    du_ij = a_ij (da_ij - sum over r of a_ir da_ir); it is zero where the weight is zero.

    Parameters
    ----------
    dA : T x S, or one flat row
    A : weights of the same shape

    Returns
    -------
    sympy.ImmutableMatrix, T x S

    Raises
    ------
    ValueError
        If dA and A differ in shape.

    Examples
    --------
    >>> softmax_backward([1, 0], [Fraction(3, 4), Fraction(1, 4)])
    Matrix([[3/16, -3/16]])
    """
    dA, A = _table(dA), _table(A)
    _require(dA.shape == A.shape, "dA and A of the same shape", dA=dA, A=A)
    T, S = A.shape
    mean = [sum(A[i, r] * dA[i, r] for r in range(S)) for i in range(T)]
    return sympy.ImmutableMatrix(T, S, lambda i, j: A[i, j] * (dA[i, j] - mean[i]))


def attention(
    Q: Matrix,
    K: Matrix,
    V: Matrix,
    allowed: Sequence | None = None,
    *,
    scale: Exact | None = None,
    query_valid: Sequence | None = None,
) -> Attention:
    """Compute one head: E = Q K^T, U = E * scale, A = softmax(U), O = A V, R (5.9) and (5.11).

    Parameters
    ----------
    Q : T x d_k
    K : S x d_k
    V : S x d_v
    allowed : T x S booleans, True = may read; every key if not given
    scale : exact number, 1/sqrt(d_k) if not given
    query_valid : T booleans; weights and output of a query that is not valid are zero

    Returns
    -------
    Attention
        E, U, A (T x S) and O (T x d_v); E and U are the scores before masking.

    Raises
    ------
    ValueError
        If a valid query may read no key, and for shapes that do not fit together.

    Examples
    --------
    >>> attention([[sympy.log(3)]], [[1], [0]], [[2, 0], [0, 4]]).O
    Matrix([[3/2, 1]])
    """
    K, V = matrix(K), matrix(V)
    _require(K.rows == V.rows, "one key and one value per position", K=K, V=V)
    E = scores(Q, K, scale=1)
    U = E * _scale(scale, d_k=K.cols)
    A = softmax(U, allowed, query_valid=query_valid)
    return Attention(E, U, A, A * V)


def attention_backward(
    dO: Matrix, Q: Matrix, K: Matrix, V: Matrix, A: Matrix, *, scale: Exact | None = None
) -> Gradients:
    """Carry the gradient of one head's output back to Q, K and V, R (5.26)-(5.28).

    dV = A^T dO, dA = dO V^T, dU = A * (dA - row means), dQ = dU K * scale, dK = dU^T Q * scale.
    The mask is in A: where a weight is zero, the score gradient is zero; a row of zeros is a query
    that is not valid, and all its gradients are zero.

    Parameters
    ----------
    dO : T x d_v
    Q : T x d_k
    K : S x d_k
    V : S x d_v
    A : weights of the forward pass, T x S
    scale : as in the forward pass, 1/sqrt(d_k) if not given

    Returns
    -------
    Gradients
        dQ, dK, dV, dA, dU, each with the shape of its variable.

    Raises
    ------
    ValueError
        For shapes that do not fit together.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> attention_backward([[1]], [[1]], [[1], [0]], [[4], [0]], [[half, half]]).dQ
    Matrix([[1]])
    """
    dO, Q, K, V, A = matrix(dO), matrix(Q), matrix(K), matrix(V), matrix(A)
    (T, d_k), (S, d_v) = Q.shape, V.shape
    fits = dO.shape == (T, d_v) and K.shape == (S, d_k) and A.shape == (T, S)
    rule = "dO T x d_v, Q T x d_k, K S x d_k, V S x d_v and A T x S"
    _require(fits, rule, dO=dO, Q=Q, K=K, V=V, A=A)
    scale = _scale(scale, d_k)
    valid = sympy.diag(*(int(any(A[i, :])) for i in range(T)))
    dV, dA = A.T * dO, valid * dO * V.T
    dU = softmax_backward(dA, A)
    dQ, dK = dU * K * scale, dU.T * Q * scale
    return Gradients(dQ, dK, dV, dA, dU)


# --- expectation and variance -------------------------------------------------------------------

LARGEST_LAW = 2**16  # outcomes; beyond that the sums take minutes, and moments do the same at once


def independent(*laws: Law) -> dict:
    """Join laws of independent random variables: probabilities multiply.

    Parameters
    ----------
    *laws : each a finite law {outcome: probability}

    Returns
    -------
    dict
        {(outcome of the first, outcome of the second, ...): product of their probabilities}

    Raises
    ------
    ValueError
        If a law is not one (see `expectation`), or if there are more than 65,536 outcomes.

    Examples
    --------
    >>> independent({0: 1}, {-1: Fraction(1, 2), 1: Fraction(1, 2)})
    {(0, -1): 1/2, (0, 1): 1/2}
    """
    laws = [_law(law) for law in laws]
    if (n := math.prod(len(law) for law in laws)) > LARGEST_LAW:
        raise ValueError(
            f"expected at most {LARGEST_LAW} joint outcomes, got {n}; use expectation_from_moments"
        )
    return {
        tuple(x for x, _ in pairs): sympy.prod(p for _, p in pairs)
        for pairs in itertools.product(*(law.items() for law in laws))
    }


def expectation(f: Callable, law: Law) -> sympy.Expr:
    """Compute E[f(x)] = sum over the outcomes x of p(x) f(x).

    Parameters
    ----------
    f : function of one outcome, with exact values
    law : finite law {outcome: probability}; an outcome is an exact number or a tuple of outcomes,
        probabilities are exact, not negative, and sum to 1

    Returns
    -------
    sympy.Expr

    Raises
    ------
    TypeError
        If an outcome, a probability or a value of f is not exact.
    ValueError
        If the probabilities are negative or do not sum to 1.

    Examples
    --------
    >>> die = {n: Fraction(1, 6) for n in range(1, 7)}
    >>> expectation(lambda n: n, die)
    7/2
    """
    return sympy.Add(*(p * _number(f(x), "a value of f") for x, p in _law(law).items()))


def variance(f: Callable, law: Law) -> sympy.Expr:
    """Compute Var[f(x)] = E[(f(x) - E[f(x)])^2].

    Parameters
    ----------
    f : function of one outcome, with exact values
    law : finite law {outcome: probability}, see `expectation`

    Returns
    -------
    sympy.Expr

    Raises
    ------
    TypeError, ValueError
        As `expectation`.

    Examples
    --------
    >>> sign = {-1: Fraction(1, 2), 1: Fraction(1, 2)}
    >>> variance(lambda qk: qk[0] * qk[1], independent(sign, sign))
    1
    """
    mean = expectation(f, law)
    return expectation(lambda x: (_number(f(x), "a value of f") - mean) ** 2, law)


def _law(law: Law) -> dict:
    if not isinstance(law, Mapping):
        raise TypeError(f"expected a law {{outcome: probability}}, got {type(law).__name__}")
    exact = {_outcome(x): _number(p, "a probability") for x, p in law.items()}
    if any(p.is_number and _sign(p) < 0 for p in exact.values()):
        raise ValueError("expected probabilities that are not negative, got a negative one")
    if not exact or not equal(sympy.Add(*exact.values()), 1):
        total = str(sympy.Add(*exact.values()))[:40]
        raise ValueError(f"expected probabilities that sum to 1, got the sum {total}")
    return exact


def _outcome(x: Hashable) -> Hashable:
    return tuple(map(_outcome, x)) if isinstance(x, tuple) else _number(x, "an outcome")


def moments(variables: Sequence[sympy.Symbol], mean: Row, covariance: Matrix) -> dict:
    """List the first and second moments of a random row of symbols.

    E[x_r] = mean_r and E[x_r x_s] = C_rs + mean_r mean_s.

    Parameters
    ----------
    variables : n different symbols x_1 ... x_n
    mean : n exact numbers
    covariance : n x n, symmetric

    Returns
    -------
    dict
        {monomial: its expectation}, as `expectation_from_moments` takes it

    Raises
    ------
    ValueError
        If the sizes do not fit, a symbol comes twice, or the covariance is not symmetric.

    Examples
    --------
    >>> x, y, c = sympy.symbols("x y c")
    >>> moments([x, y], [0, 3], [[1, c], [c, 2]])
    {x: 0, y: 3, x**2: 1, x*y: c, y**2: 11}
    """
    x, mean, C = row(variables), row(mean), matrix(covariance)
    n = len(set(x))
    if not all(symbol.is_Symbol for symbol in x) or len(x) != n:
        raise ValueError("expected different symbols as variables")
    fits = mean.cols == n and C.shape == (n, n)
    _require(fits, f"{n} means and {n} x {n} covariances", mean=mean, C=C)
    if not equal(C, C.T):
        raise ValueError("expected a symmetric covariance matrix, got one that is not")
    pairs = itertools.combinations_with_replacement(range(n), 2)
    second = {x[r] * x[s]: C[r, s] + mean[r] * mean[s] for r, s in pairs}
    return {x[r]: mean[r] for r in range(n)} | second


def expectation_from_moments(p: sympy.Expr, *groups: Mapping) -> sympy.Expr:
    """Compute the expectation of a polynomial, monomial by monomial.

    E is linear, and for independent groups of variables it multiplies: E[3 q^2 k] = 3 E[q^2] E[k].
    So R (5.5)-(5.8) follow from the moments alone, whatever the distribution.

    Parameters
    ----------
    p : polynomial in the random variables; other symbols in it are constants
    *groups : each {monomial: its expectation}, such as `moments` gives. Different groups are
        independent of each other; within a group nothing is assumed beyond the moments listed

    Returns
    -------
    sympy.Expr, expanded

    Raises
    ------
    ValueError
        If p is not a polynomial, a needed moment is missing, or a variable is in two groups.

    Examples
    --------
    >>> q, k, s, t = sympy.symbols("q k s t")
    >>> expectation_from_moments((q * k + 1) ** 2, {q: 0, q**2: s**2}, {k: 0, k**2: t**2})
    s**2*t**2 + 1
    """
    groups = [_moments(group) for group in groups]
    variables = [sorted(set().union(*(m.free_symbols for m in g)), key=str) for g in groups]
    every = [x for group in variables for x in group]
    if not every or len(set(every)) < len(every):
        raise ValueError("expected every random variable in exactly one group of moments")
    try:
        terms = sympy.Poly(_number(p, "p"), *every).terms()
    except sympy.PolynomialError:
        raise ValueError(f"expected a polynomial in {every}, got {str(p)[:60]}") from None
    total = sympy.S.Zero
    for exponents, coefficient in terms:
        power = dict(zip(every, exponents, strict=True))
        term = coefficient
        for group, names in zip(groups, variables, strict=True):
            monomial = sympy.Mul(*(x ** power[x] for x in names))
            if monomial not in group:
                raise ValueError(f"expected the moment E[{monomial}] in its group, it is missing")
            term *= group[monomial]
        total += term
    return sympy.expand(total)


def variance_from_moments(p: sympy.Expr, *groups: Mapping) -> sympy.Expr:
    """Compute Var[p] = E[p^2] - E[p]^2 of a polynomial from moments.

    Parameters
    ----------
    p, *groups : as for `expectation_from_moments`

    Returns
    -------
    sympy.Expr, expanded

    Raises
    ------
    ValueError
        As `expectation_from_moments`.

    Examples
    --------
    >>> q, k, s, t = sympy.symbols("q k s t")
    >>> variance_from_moments(q * k, moments([q], [0], [[s**2]]), moments([k], [0], [[t**2]]))
    s**2*t**2
    """
    return sympy.expand(
        expectation_from_moments(p**2, *groups) - expectation_from_moments(p, *groups) ** 2
    )


def _moments(group: Mapping) -> dict:
    if not isinstance(group, Mapping):
        raise TypeError(f"expected moments {{monomial: value}}, got {type(group).__name__}")
    exact = {_number(m, "a monomial"): _number(value, f"E[{m}]") for m, value in group.items()}
    for m in exact:
        if not all(x.is_Symbol and n.is_Integer and n > 0 for x, n in m.as_powers_dict().items()):
            raise ValueError(f"expected monomials such as q1**2*q2 as keys, got {m}")
    return {sympy.S.One: sympy.S.One} | exact


# --- proofs: equality, sign, lowest terms -------------------------------------------------------


def lowest_terms(x: Exact | Matrix) -> sympy.Expr | sympy.ImmutableMatrix:
    """Write an exact expression, or each entry of a matrix, as one fraction in lowest terms.

    Exponentials are cancelled as powers of symbols, w = exp(1/sqrt 2) say, which become
    exponentials again at the end; nothing turns into cosh on the way.

    Parameters
    ----------
    x : exact number or matrix of them

    Returns
    -------
    sympy.Expr, or sympy.ImmutableMatrix of the same shape

    Raises
    ------
    TypeError
        As `matrix`.
    ValueError
        As `matrix`, and if the exponents are so unrelated that powers beyond 200 would be needed.

    Examples
    --------
    >>> a = 1 / (1 + sympy.exp(2))
    >>> lowest_terms(a - a**2)
    exp(2)/(1 + exp(2))**2
    """
    if hasattr(x, "__len__") or isinstance(x, sympy.MatrixBase):
        return _table(x).applyfunc(lowest_terms)
    x, exponentials = _name_exponentials(_number(x, "x"))
    degree = max((abs(f.exp) for f in x.atoms(sympy.Pow) if f.base in exponentials), default=1)
    if degree > 200:
        raise ValueError(
            f"expected exponents with a simple common unit, got powers up to {degree}; print "
            f"decimals, and prove with equal"
        )
    return sympy.sqf(sympy.cancel(sympy.together(x))).xreplace(exponentials)


def equal(a: Exact | Matrix, b: Exact | Matrix) -> bool:
    """Decide whether two exact expressions or matrices are equal.

    True is proved: the numerator of a - b is the zero polynomial in the symbols, the exponentials
    and the logarithms. False means that a - b has certain non-zero digits at a point. Anything
    between is an error, never a guess.

    Parameters
    ----------
    a, b : exact numbers (symbols allowed), or matrices or rows of them of the same shape

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If the shapes differ, or if neither a proof nor a difference is found.

    Examples
    --------
    >>> c = 1 / sympy.sqrt(2)
    >>> equal(sympy.exp(c) / (2 * sympy.exp(c) + sympy.exp(2 * c)), 1 / (2 + sympy.exp(c)))
    True
    >>> equal(sympy.pi, Fraction(355, 113))
    False
    """
    if any(hasattr(x, "__len__") for x in (a, b)):
        a, b = _table(a), _table(b)
        _require(a.shape == b.shape, "two matrices of the same shape", a=a, b=b)
        return all(equal(x, y) for x, y in zip(a, b, strict=True))
    difference = _number(a, "a") - _number(b, "b")
    if _proved_zero(difference):
        return True
    if _seen_nonzero(difference):
        return False
    raise ValueError(
        f"cannot decide whether {str(difference)[:80]} is zero; bring both sides to the same form"
    )


def _proved_zero(x: sympy.Expr) -> bool:
    hyperbolic = sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth, sympy.sech, sympy.csch
    x = sympy.expand_log(x.rewrite(hyperbolic, sympy.exp), factor=True)
    x, _ = _name_exponentials(x)
    numerator, denominator = map(sympy.expand, sympy.fraction(sympy.together(x)))
    if denominator == 0:
        raise ValueError("expected a finite expression, got a division by zero in it")
    return numerator == 0


def _name_exponentials(x: sympy.Expr) -> tuple[sympy.Expr, dict]:
    """Write the exponentials in x as powers of new symbols; also return what the symbols are.

    exp(c) and exp(2c + 3/2) become w and w^2 v^3 with w = exp(c) and v = exp(1/2): polynomial
    algebra then sees how they are related. The symbols are not declared positive, since sympy
    looks for the real roots of polynomials in positive symbols, without end at degree 10,000.
    """
    exponentials = sorted(x.atoms(sympy.exp), key=sympy.default_sort_key)  # the same every time
    exponents = {f: sympy.expand(f.args[0]) for f in exponentials}
    if x.has(sympy.E):  # sympy has its own class for exp(1)
        exponents[sympy.E] = sympy.S.One
    terms = {  # each exponent as a sum of rational number times part
        f: [term.as_coeff_Mul(rational=True) for term in sympy.Add.make_args(exponent)]
        for f, exponent in exponents.items()
    }
    denominators = {}
    for number, part in itertools.chain(*terms.values()):
        denominators[part] = math.lcm(denominators.get(part, 1), number.q)
    name = {part: sympy.Dummy(f"w{i}") for i, part in enumerate(denominators)}
    powers = {
        f: sympy.prod(name[part] ** (number * denominators[part]) for number, part in pairs)
        for f, pairs in terms.items()
    }
    meaning = {name[part]: sympy.exp(part / n) for part, n in denominators.items()}
    return x.xreplace(powers), meaning


def _seen_nonzero(x: sympy.Expr) -> bool:
    """Tell whether x, at one of two points, has certain non-zero digits."""
    names = sorted(x.free_symbols, key=str)
    for first in (1, 2):
        primes = [sympy.prime(n) for n in range(first, first + len(names))]
        point = {s: -p if s.is_negative else p for s, p in zip(names, primes, strict=True)}
        value = _certain_digits(x.subs(point), 10)
        if value is not None and value.is_finite is True and value.is_zero is False:
            return True
    return False


def _sign(x: sympy.Expr) -> int:
    """Return the sign of an exact real number, -1, 0 or 1: by certain digits, 0 by proof."""
    value = _certain_digits(x, 10)
    if value is None and _proved_zero(x):
        return 0
    if value is None or not value.is_comparable:
        raise ValueError(f"cannot decide the sign of {str(x)[:80]}; expected an exact real number")
    return int(sympy.sign(value))


def _certain_digits(x: sympy.Expr, n: int) -> sympy.Expr | None:
    """Return x to n certain digits, or None where 1000 more do not tell it from zero."""
    if x.is_Rational:
        return x
    try:
        return x.evalf(n, maxn=n + 1000, strict=True)
    except sympy.PrecisionExhausted:
        return None


# --- printed decimals ---------------------------------------------------------------------------


def decimal(x: Exact, digits: int) -> str:
    """Round an exact real number to a decimal with the given number of digits after the point.

    Rounded, never truncated, and correct however near x lies to the middle of two decimals; the
    exact middle rounds away from zero. There is no negative zero.

    Parameters
    ----------
    x : exact number without symbols
    digits : digits after the point, 0 to 1000

    Returns
    -------
    str

    Raises
    ------
    TypeError
        If x is not exact or digits is not an int.
    ValueError
        If x has symbols, if digits is out of range, or if the rounding cannot be decided.

    Examples
    --------
    >>> decimal(1 / (1 + sympy.exp(1 / sympy.sqrt(2))), 6)
    '0.330238'
    >>> decimal(Fraction(-1, 8), 2)
    '-0.13'
    """
    x = _constant(x, "x")
    if isinstance(digits, bool) or not isinstance(digits, int):
        raise TypeError(f"expected digits as an int, got {type(digits).__name__}")
    if not 0 <= digits <= 1000:
        raise ValueError(f"expected 0 to 1000 digits, got {digits}")
    sign = _sign(x)
    n = _nearest_integer(sign * x * 10**digits) if sign else 0
    whole, part = divmod(n, 10**digits)
    point = f".{part:0{digits}}" if digits else ""
    return f"{'-' if sign < 0 < n else ''}{whole}{point}"


def _nearest_integer(x: sympy.Expr) -> int:
    """Return the integer nearest to x > 0; halves go up."""
    digits = int(_certain_digits(x, 15)).bit_length() // 3 + 15
    n = int(sympy.floor(sympy.Rational(_certain_digits(x, digits))))
    return n + 1 if _sign(x - n - sympy.Rational(1, 2)) >= 0 else n


def decimals(M: Row | Matrix, digits: int) -> list[list[str]]:
    """Round every entry of a matrix, see `decimal`.

    Parameters
    ----------
    M : m x n, or one flat row
    digits : digits after the point

    Returns
    -------
    list of m lists of n strings

    Raises
    ------
    TypeError, ValueError
        As `decimal`.

    Examples
    --------
    >>> decimals(softmax([0, 1, 2]), 3)
    [['0.090', '0.245', '0.665']]
    """
    return [[decimal(x, digits) for x in line] for line in _table(M).tolist()]


PRINTED = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)(?:\.([0-9]+))?")


def agrees(printed: str, exact: Exact) -> bool:
    """Tell whether a printed decimal is the exact value, correctly rounded.

    It is if they differ by at most half a unit of the last printed digit.

    Parameters
    ----------
    printed : such as "0.330238", ".401112", "-0.5" or "3,145,728"
    exact : exact number without symbols

    Returns
    -------
    bool

    Raises
    ------
    TypeError
        If printed is not a string or exact is not exact.
    ValueError
        If printed is not a decimal number, or if the comparison cannot be decided.

    Examples
    --------
    >>> agrees("0.33", Fraction(1, 3)), agrees("0.34", Fraction(1, 3))
    (True, False)
    """
    if not isinstance(printed, str):
        raise TypeError(f"expected the printed number as a str, got {type(printed).__name__}")
    match = PRINTED.fullmatch(printed)
    if not match or not any(c.isdigit() for c in printed):
        raise ValueError(f'expected a decimal such as "0.5" or "3,145,728", got {printed[:40]!r}')
    x = _constant(exact, "exact")
    value = _number(Fraction(printed.replace(",", "")), "printed")
    half = sympy.Rational(1, 2 * 10 ** len(match[1] or ""))
    return _sign(x - value + half) >= 0 and _sign(value + half - x) >= 0


def _constant(x: Exact, where: str) -> sympy.Expr:
    x = _number(x, where)
    if x.free_symbols:
        names = ", ".join(sorted(map(str, x.free_symbols)))
        raise ValueError(
            f"{where}: expected a number, got the symbols {names}; substitute them first"
        )
    return x
