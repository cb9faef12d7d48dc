"""Bounds, chance and constructions of `attnbook.directions`, each computed a second time."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from attnbook import directions

COS_85 = math.cos(math.radians(85))

# ---- bounds ------------------------------------------------------------------------------------


def test_the_numbers_of_the_ledger():
    assert math.floor(directions.most_lines(100, COS_85)) == 412
    assert math.floor(directions.most_points(100, COS_85)) == 4102
    assert directions.forced_cosine(412, 100) < COS_85 < directions.forced_cosine(413, 100)


@pytest.mark.parametrize(("N", "n"), [(5, 2), (7, 3), (40, 12)])
def test_welch_holds_and_its_two_forms_agree(N, n):
    for seed in range(20):
        X = directions.random_directions(N, n, seed)
        largest = max(abs(x @ y) for x, y in itertools.combinations(X, 2))
        assert largest >= directions.forced_cosine(N, n)
    c = directions.forced_cosine(N, n)
    assert directions.most_lines(n, c) == pytest.approx(N)


def test_welch_is_reached_by_the_icosahedron_and_by_orthogonal_vectors():
    assert directions.forced_cosine(6, 3) == pytest.approx(1 / math.sqrt(5))
    assert directions.forced_cosine(4, 4) == directions.forced_cosine(3, 4) == 0
    assert directions.most_lines(4, Fraction(0)) == 4


def test_points_reach_the_cross_polytope():
    # 2 n vectors with cos <= 0 exist, and no more.
    assert directions.most_points(8, Fraction(0)) == 16
    with pytest.raises(ValueError, match="says nothing"):
        directions.most_points(3, 0.6)


@pytest.mark.parametrize("bound", [directions.most_lines, directions.most_points])
@pytest.mark.parametrize(("n", "c"), [(4, 0.5), (4, 0.7), (9, -0.1)])
def test_where_the_bounds_say_nothing(bound, n, c):
    with pytest.raises(ValueError, match="expected c >= 0 and n c\\^2 < 1"):
        bound(n, c)


@pytest.mark.parametrize(("N", "n"), [(1, 3), (2, 0)])
def test_forced_cosine_refuses(N, n):
    with pytest.raises(ValueError, match="expected N >= 2"):
        directions.forced_cosine(N, n)


@pytest.mark.parametrize("n", [3, 5, 512])
def test_expansion_in_gegenbauer_polynomials(n):
    t = sp.symbols("t")
    f = [Fraction(2), Fraction(-1, 3), Fraction(0), Fraction(5, 7), Fraction(1)]
    found = directions.expansion(f, n)
    half = sp.Rational(n - 2, 2)
    total = sum(
        sp.Rational(a.numerator, a.denominator)
        * sp.gegenbauer(k, half, t)
        / sp.gegenbauer(k, half, 1)
        for k, a in enumerate(found)
    )
    expected = sum(sp.Rational(a.numerator, a.denominator) * t**k for k, a in enumerate(f))
    assert sp.expand(total - expected) == 0


def test_certified_bounds():
    # The kissing number of 8 dimensions: 240 roots of E8, and the polynomial that proves it.
    t = sp.symbols("t")
    f = (t + 1) * (t + sp.Rational(1, 2)) ** 2 * t**2 * (t - sp.Rational(1, 2))
    assert directions.certified(sp.Poly(f, t).all_coeffs()[::-1], 8) == 240
    # Levenshtein's polynomial of degree 3 gives the formula.
    n, c = 20, sp.Rational(1, 6)
    b = (1 + c) / (1 + n * c)
    f = sp.Poly((t - c) * (t + b) ** 2, t).all_coeffs()[::-1]
    assert directions.certified(f, n) == directions.most_points(n, Fraction(1, 6))


@pytest.mark.parametrize("f", [(-1, 0, 1), (Fraction(1), -1, 1), (-1, 1)])
def test_what_proves_nothing_is_refused(f):
    with pytest.raises(ValueError, match="no negative coefficient"):
        directions.certified(f, 6)


def test_a_constant_certifies_that_one_vector_is_alone():
    assert directions.certified((Fraction(2),), 5) == 1


@pytest.mark.parametrize(("f", "n"), [((0, 1), 2), ((), 3)])
def test_expansion_refuses(f, n):
    with pytest.raises(ValueError, match="expected n >= 3 and at least one coefficient"):
        directions.expansion(f, n)


# ---- chance ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "printed"), [(100, 0.386132), (512, 0.048498), (4096, 2.3e-8)])
def test_the_share_at_85_degrees(n, printed):
    exactly = sp.betainc_regularized(
        sp.Rational(n - 1, 2), sp.Rational(1, 2), 0, 1 - sp.Float(COS_85, 30) ** 2
    )
    assert directions.share_beyond(n, COS_85) == pytest.approx(float(exactly), abs=1e-12)
    assert float(exactly) == pytest.approx(printed, abs=5e-7 if printed > 1e-6 else 5e-10)


def test_small_dimensions_in_closed_form():
    for c in (0, 0.3, 0.9, 1):
        assert directions.share_beyond(2, c) == pytest.approx(1 - 2 * math.asin(c) / math.pi)
        assert directions.share_beyond(3, c) == pytest.approx(1 - c)
        root = math.sqrt(1 - c * c)
        area = 1 - 2 * (math.asin(c) + c * root) / math.pi
        assert directions.share_beyond(4, c) == pytest.approx(area, abs=1e-12)


@pytest.mark.parametrize(("n", "c"), [(1, 0.5), (5, 1.1), (5, -0.1)])
def test_share_refuses(n, c):
    with pytest.raises(ValueError, match="expected n >= 2 and 0 <= c <= 1"):
        directions.share_beyond(n, c)


def test_random_directions():
    X = directions.random_directions(2000, 5, seed=3)
    np.testing.assert_allclose((X**2).sum(axis=1), 1)
    np.testing.assert_array_equal(X, directions.random_directions(2000, 5, seed=3))
    np.testing.assert_allclose(X.T @ X / 2000, np.eye(5) / 5, atol=0.03)
    cosines = abs(X[:1000] @ X[1000:].T)
    assert (cosines > 0.4).mean() == pytest.approx(directions.share_beyond(5, 0.4), abs=0.02)


# ---- constructions -----------------------------------------------------------------------------


def test_any_two_points_share_one_triple():
    pairs = [pair for triple in directions.triples() for pair in itertools.combinations(triple, 2)]
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == 300
    assert {point for pair in pairs for point in pair} == set(range(25))


def test_300_lines():
    X = directions.triple_lines()
    assert X.shape == (300, 100)
    G = 12 * X @ X.T
    off = G[~np.eye(300, dtype=bool)].round(9)
    np.testing.assert_allclose(np.diag(G), 12)
    assert set(np.abs(off)) == {0, 1}
    assert COS_85 > 1 / 12


def test_a_field_that_is_not_here_is_refused():
    with pytest.raises(ValueError, match="expected m in \\[3, 5, 7, 9\\], got 4"):
        directions.field_product(1, 1, 4)
    with pytest.raises(ValueError, match="expected m in"):
        directions.sign_lines(4, [0], [1])


@pytest.mark.parametrize("m", sorted(directions.IRREDUCIBLE))
def test_the_field_is_a_field(m):
    n, rng = 2**m, np.random.default_rng(m)
    some = [int(x) for x in rng.integers(1, n, size=12)]
    product = directions.field_product
    for x, y, z in zip(some, some[1:], some[2:], strict=False):
        assert product(x, y, m) == product(y, x, m) < n
        assert product(x, product(y, z, m), m) == product(product(x, y, m), z, m)
        assert product(x, y ^ z, m) == product(x, y, m) ^ product(x, z, m)
        assert product(x, 1, m) == x
    for x in some[:3]:  # multiplication by x is a permutation: x has an inverse
        assert sorted(product(x, y, m) for y in range(n)) == list(range(n))


@pytest.mark.parametrize("m", [3, 5])
def test_all_sign_lines(m):
    n = 2**m
    X = directions.sign_lines(m, *np.divmod(np.arange(n * n), n))
    assert X.shape == (n * n, n)
    np.testing.assert_allclose(np.abs(X), 1 / math.sqrt(n))
    off = np.abs(X @ X.T)[~np.eye(n * n, dtype=bool)].round(9)
    assert set(off) == {0, round(math.sqrt(2 / n), 9)}


@pytest.mark.parametrize("m", [7, 9])
def test_some_sign_lines(m):
    n = 2**m
    chosen = np.random.default_rng(m).choice(n * n, size=300, replace=False)
    X = directions.sign_lines(m, *np.divmod(chosen, n))
    off = np.abs(X @ X.T)[~np.eye(300, dtype=bool)].round(9)
    assert set(off) == {0, round(math.sqrt(2 / n), 9)}


def test_sign_lines_by_the_definition():
    a, u, m = 5, 3, 3
    (x,) = directions.sign_lines(m, [a], [u])
    for z in range(8):
        cube = directions.field_product(z, directions.field_product(z, z, m), m)
        sign = (-1) ** (bin(a & cube).count("1") + bin(u & z).count("1"))
        assert x[z] == pytest.approx(sign / math.sqrt(8))
