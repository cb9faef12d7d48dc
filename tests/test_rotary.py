"""Rotary positions: turning there and back, and which features the recordings turn together."""

import math

import numpy as np
import pytest

from attnbook import recordings, rotary

LIST = recordings.word_list()


def test_turning_back_and_only_the_distance_matters():
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 5, 6))
    at = np.array([0, 2, 3, 7, 30])
    np.testing.assert_allclose(rotary.rotate(rotary.rotate(q, at), -at), q, atol=1e-12)
    scores = rotary.rotate(q, at) @ rotary.rotate(k, at).T
    moved = rotary.rotate(q, at + 11) @ rotary.rotate(k, at + 11).T
    np.testing.assert_allclose(scores, moved, atol=1e-12)
    for i, j in np.ndindex(5, 5):
        alone = q[i] @ rotary.rotate(k[[j]], [at[j] - at[i]])[0]
        assert math.isclose(scores[i, j], alone, abs_tol=1e-12)


def test_turns_as_complex_numbers():
    x = np.random.default_rng(4).normal(size=(3, 8))
    t = np.array([1.0, 5.0, 9.0])
    z = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * np.outer(t, 50.0 ** (-np.arange(4) / 4)))
    turned = rotary.rotate(x, t, theta=50)
    np.testing.assert_allclose(turned[:, ::2] + 1j * turned[:, 1::2], z, atol=1e-12)


@pytest.mark.parametrize(("shape", "n"), [((3, 5), 3), ((3, 4), 2), ((4,), 1)])
def test_wrong_shapes_of_turns_are_told(shape, n):
    with pytest.raises(ValueError, match="one number for each of the T rows"):
        rotary.rotate(np.ones(shape), np.arange(n))


@pytest.mark.parametrize(
    ("X", "positions", "theta", "error", "said"),
    [
        ([[np.nan, 0.0]], [0], 50, ValueError, r"X\[0, 0\] is nan"),
        ([[1.0, 0.0]], [np.inf], 50, ValueError, r"positions\[0\] is inf"),
        (None, [0], 50, TypeError, "X must hold real numbers"),
        ("abc", [0], 50, TypeError, "X must hold real numbers"),
        ([[1j, 0]], [0], 50, TypeError, "X must hold real numbers"),
        ([[1, 2], [1]], [0, 1], 50, ValueError, "rows of equal length"),
        ([[1.0, 0.0]], [0], 0, ValueError, "theta must be above 0"),
        ([[1.0, 0.0]], [0], -1, ValueError, "theta must be above 0"),
        ([[1.0, 0.0]], [0], None, ValueError, "theta must be one finite real number"),
        ([[1.0, 0.0]], [0], np.nan, ValueError, "theta must be one finite real number"),
        ([[1.7e308, 1.7e308]], [0.8], 50, FloatingPointError, "overflows"),
        (np.ones((1, 200)), [9e307], 1e-320, FloatingPointError, "overflows"),
    ],
)
def test_what_cannot_be_turned_is_told(X, positions, theta, error, said):
    with pytest.raises(error, match=said):
        rotary.rotate(X, positions, theta)


def test_turns_keep_lengths_and_the_input():
    x = np.random.default_rng(6).normal(size=(2, 3, 4, 10))
    before, at = x.copy(), np.array([0, -3, 8, 2.5])
    turned = rotary.rotate(x, at)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1))
    np.testing.assert_allclose(turned[:, :, 0], x[:, :, 0])
    assert np.array_equal(x, before)


@pytest.mark.parametrize("name", ["q", "k"])
def test_the_recordings_turn_neighbours_with_the_base_of_the_model(name):
    """Seven words come back 10 places later: plane p has turned by 10 theta^(-p/32)."""
    x = getattr(LIST, name).astype(float)

    def off(one, two, theta):
        z = x[..., one] + 1j * x[..., two]
        turned = (z[..., 11:18, :7] * z[..., 1:8, :7].conj()).sum(axis=(0, 1, 2))
        expected = np.exp(10j * theta ** (-np.arange(7) / 32))
        return np.abs(np.angle(turned / expected))

    p = np.arange(64)
    assert off(p[::2], p[1::2], rotary.THETA).max() < 0.25
    for theta in (1e4, 1e6):
        assert off(p[::2], p[1::2], theta).max() > 0.5
    assert off(p[:32], p[32:], rotary.THETA).max() > 2


@pytest.mark.parametrize(("layer", "head"), [(17, 3), (17, 4), (17, 5), (18, 6)])
def test_keys_that_change_places_are_followed(layer, head):
    """Chapter 14: the key after the earlier copy keeps its weight wherever it is turned to."""
    n, at = LIST.layers.index(layer), np.arange(18)
    place = np.array([0, 1, 7, 4, 8, 2, 6, 3, 5, *range(9, 18)])
    q = LIST.q[n, head].astype(float)
    k = rotary.rotate(rotary.rotate(LIST.k[n, head // 3], -at), place)
    for i in range(11, 18):
        u = q[i] @ k[: i + 1].T / 8
        a = np.exp(u - u.max()) / np.exp(u - u.max()).sum()
        asked = i - 9
        assert abs(a[asked] - recordings.weights(LIST)[n, head, i, asked]) < 0.25
        nine_back = int(np.flatnonzero(place == i - 9)[0])
        assert nine_back == asked or a[nine_back] < 0.1
