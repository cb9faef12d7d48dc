"""What tests/mutate.py changed without any other test noticing, although an answer changes."""

import numpy as np
import pytest
import sympy

from attnbook import exact, masks, softmax_backward
from attnbook.heads import grouped_attention, grouped_attention_backward


def test_values_without_an_axis_of_heads_are_refused():
    Q, K, V = np.zeros((2, 3, 4)), np.zeros((2, 5, 4)), np.zeros((5, 6))
    with pytest.raises(ValueError, match=r"need an axis of heads.*got Q .*V \(5, 6\)"):
        grouped_attention(Q, K, V)
    with pytest.raises(ValueError, match=r"need an axis of heads.*got Q .*V \(5, 6\)"):
        grouped_attention_backward(np.zeros((2, 3, 6)), Q, K, V, np.full((2, 3, 5), 0.2))


def test_a_group_of_float16_is_summed_in_float32():
    # In float16 60000 + 60000 would be infinite, and 2048 + 1 would stay 2048.
    Q, K, V = (np.zeros((n, 1, 1), np.float16) for n in (3, 1, 1))
    A = np.ones((3, 1, 1), np.float16)
    for members, total in (([60000, 60000, -60000], 60000), ([2048, 1, 1], 2050)):
        dO = np.array(members, np.float16)[:, None, None]
        dV = grouped_attention_backward(dO, Q, K, V, A).dV
        assert dV.dtype == np.float16
        assert dV.item() == total


def test_an_exact_number_with_symbols_names_them():
    x, y = sympy.symbols("y x")
    with pytest.raises(ValueError, match=r"\bx, y\b"):
        exact.decimal(x + y, 3)


def test_the_exact_backward_prints_every_shape():
    came = "got dO 2 x 1, Q 1 x 1, K 2 x 1, V 2 x 1, A 1 x 3"
    with pytest.raises(ValueError, match=came):
        exact.attention_backward([[1], [1]], [[1]], [[1], [0]], [[4], [0]], [[1, 0, 0]])


@pytest.mark.parametrize("make", [masks.causal, masks.documents])
@pytest.mark.parametrize(
    ("query", "key", "lead"), [((), (7,), (7,)), ((7,), (), (7,)), ((6, 1), (7,), (6, 7))]
)
def test_queries_and_keys_have_leading_axes_of_their_own(make, query, key, lead):
    rng = np.random.default_rng(0)
    q, k = rng.integers(0, 4, size=(*query, 3)), rng.integers(0, 4, size=(*key, 5))
    allowed = make(q, k)
    assert allowed.shape == (*lead, 3, 5)
    for *index, i, j in np.ndindex(allowed.shape):
        at = (*index, slice(None))
        one_q, one_k = (np.broadcast_to(x, (*lead, x.shape[-1]))[at] for x in (q, k))
        expected = one_k[j] <= one_q[i] if make is masks.causal else one_k[j] == one_q[i]
        assert allowed[(*index, i, j)] == expected


def test_a_row_of_large_gradients_is_finite_beside_a_row_of_small_ones():
    largest = np.finfo(float).max
    A = [[0.25, 0.75], [0.5, 0.5]]
    dU = softmax_backward([[largest, -largest], [1, 0]], A)  # the mean of row 0 is -largest / 2
    np.testing.assert_allclose(dU, [[0.375 * largest, -0.375 * largest], [0.25, -0.25]])
