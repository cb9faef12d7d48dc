"""Allowed sets: R (5.12), R 5.3, and the conventions of libraries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnbook import attention, masks, softmax

# Causal


@pytest.mark.parametrize(("T", "S"), [(4, 4), (2, 5), (5, 2), (1, 3), (0, 3), (3, 0)])
def test_an_integer_counts_from_zero(T, S):
    allowed = masks.causal(T, S)
    assert allowed.dtype == bool
    assert allowed.shape == (T, S)
    for i, j in np.ndindex(T, S):
        assert allowed[i, j] == (j <= i)
    np.testing.assert_array_equal(allowed, masks.causal(np.arange(T), np.arange(S)))


def test_the_newest_query_reads_the_whole_cache():  # R after (5.12)
    assert masks.causal([3], 4).all()
    assert masks.causal(1, 4).tolist() == [[True, False, False, False]]


@settings(derandomize=True, database=None, deadline=None)
@given(st.lists(st.integers(-9, 9)), st.lists(st.integers(-9, 9)))
def test_positions_in_any_order(query_positions, key_positions):
    allowed = masks.causal(query_positions, key_positions)
    assert allowed.shape == (len(query_positions), len(key_positions))
    for i, j in np.ndindex(allowed.shape):
        assert allowed[i, j] == (key_positions[j] <= query_positions[i])


def test_positions_with_leading_axes():
    query = np.array([[0, 1, 2], [4, 5, 6]])
    key = np.array([[[0, 1, 2, 3, 4]]])
    allowed = masks.causal(query, key)
    assert allowed.shape == (1, 2, 3, 5)
    for b, i, j in np.ndindex(2, 3, 5):
        assert allowed[0, b, i, j] == (key[0, 0, j] <= query[b, i])


def test_unsigned_positions_are_compared_exactly():
    assert masks.causal(np.array([2**63], dtype=np.uint64), np.array([-1, 2**62])).all()


@pytest.mark.parametrize("bad", [[0.0, 1.0], 3.0, [True, False], True, ["a"], [1j], None])
def test_positions_that_are_not_integers_are_refused(bad):
    with pytest.raises(TypeError, match="query_positions must be integers, got dtype"):
        masks.causal(bad, 2)
    with pytest.raises(TypeError, match="key_positions must be integers, got dtype"):
        masks.causal(2, bad)


def test_positions_of_a_wrong_form_are_refused():
    with pytest.raises(ValueError, match=r"key_positions = -1: an integer n means 0, ..., n-1"):
        masks.causal(2, -1)
    with pytest.raises(ValueError, match=r"must broadcast: got queries \(2, 3\), keys \(4, 5\)"):
        masks.causal(np.zeros((2, 3), int), np.zeros((4, 5), int))
    with pytest.raises(ValueError, match="query_positions must be an array with rows of equal"):
        masks.causal([[1], [2, 3]], 2)
    with pytest.raises(TypeError, match="query_positions is a masked array"):
        masks.causal(np.ma.masked_array([1, 2]), 2)


# Padding and documents


def test_padding_gives_every_query_the_real_keys():
    key_valid = np.array([[True, True, False], [True, False, False]])
    allowed = masks.padding(key_valid)
    assert allowed.shape == (2, 1, 3)
    np.testing.assert_array_equal(np.broadcast_to(allowed, (2, 5, 3))[:, 4], key_valid)
    allowed[0, 0, 0] = False
    assert key_valid[0, 0]


def test_padding_needs_booleans_along_an_axis():
    with pytest.raises(TypeError, match="key_valid must be boolean, True = this key is real"):
        masks.padding([1, 1, 0])
    with pytest.raises(TypeError, match="key_valid must be a boolean array, got None"):
        masks.padding(None)
    with pytest.raises(ValueError, match="key_valid needs an axis of keys"):
        masks.padding(True)


def test_documents_read_themselves():
    query_ids, key_ids = np.array([[7, 7, 3]]), np.array([[7, 3, 3, 9], [3, 7, 7, 7]])
    allowed = masks.documents(query_ids, key_ids)
    assert allowed.shape == (2, 3, 4)
    for b, i, j in np.ndindex(2, 3, 4):
        assert allowed[b, i, j] == (query_ids[0, i] == key_ids[b, j])


def test_document_numbers_must_be_integers_along_an_axis():
    with pytest.raises(TypeError, match="query_ids must be integers, got dtype float64"):
        masks.documents([0.0], [0])
    with pytest.raises(ValueError, match="key_ids needs an axis of tokens"):
        masks.documents([0], 0)


def test_sets_are_intersected_with_and():  # R figure 5.1, right, and a padded last key
    allowed = (
        masks.causal(4, 4)
        & masks.documents([0, 0, 1, 1], [0, 0, 1, 1])
        & masks.padding([True, True, True, False])
    )
    assert allowed.astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
    ]


def test_left_padding_needs_query_valid():  # R 5.3: early rows of a left-padded causal batch
    key_valid = np.array([False, False, True, True])
    allowed = masks.causal(4, 4) & masks.padding(key_valid)
    U = np.zeros((4, 4))
    with pytest.raises(ValueError, match="row 0 is a valid query"):
        softmax(U, allowed)
    A = softmax(U, allowed, query_valid=key_valid)
    assert A.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0.5, 0.5]]


# Additive masks


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_additive_there_and_back(dtype):
    allowed = masks.causal(3, 5)
    M = masks.to_additive(allowed, dtype)
    assert M.dtype == dtype
    assert M.tolist() == [[0.0 if a else -np.inf for a in row] for row in allowed]
    back, bias = masks.from_additive(M)
    np.testing.assert_array_equal(back, allowed)
    assert bias.dtype == dtype
    assert not bias.any()
    assert masks.to_additive(allowed).dtype == np.float64


def test_from_additive_keeps_the_finite_part_as_a_bias():
    M = np.array([[0.5, -np.inf, -1e9], [-np.inf, 2.0, 0.0]])
    copy = M.copy()
    allowed, bias = masks.from_additive(M)
    assert allowed.tolist() == [[True, False, True], [False, True, True]]
    assert bias.tolist() == [[0.5, 0, -1e9], [0, 2, 0]]
    np.testing.assert_array_equal(M, copy)
    assert not np.shares_memory(bias, M)


def test_from_additive_makes_attention_equal_the_sum_with_infinities():
    rng = np.random.default_rng(3)
    Q, K, V, M = (rng.normal(size=s) for s in ((2, 3), (4, 3), (4, 5), (2, 4)))
    M[0, 1] = M[1, 3] = -np.inf
    allowed, bias = masks.from_additive(M)
    e = np.exp(Q @ K.T / np.sqrt(3) + M)
    np.testing.assert_allclose(
        attention(Q, K, V, allowed, bias=bias).A, e / e.sum(axis=-1, keepdims=True), rtol=1e-13
    )


def test_from_additive_of_integers_and_of_the_other_byte_order():
    allowed, bias = masks.from_additive([[0, -10000]])
    assert allowed.all()
    assert bias.dtype == np.float64
    allowed, bias = masks.from_additive(np.array([0, -np.inf], dtype=">f4"))
    assert allowed.tolist() == [True, False]
    assert bias.dtype == np.float32
    assert bias.dtype.isnative


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_from_additive_refuses_what_is_no_score(value):
    with pytest.raises(ValueError, match=rf"M\[0, 1\] is {value}: expected finite numbers or -inf"):
        masks.from_additive([[0.0, value]])


@pytest.mark.parametrize("M", [[True, False], ["0"], [1j], None])
def test_from_additive_refuses_what_is_not_additive(M):
    with pytest.raises(TypeError, match=r"M must hold the numbers added to the scores.*~mask"):
        masks.from_additive(M)


def test_to_additive_refuses_numbers_and_integer_dtypes():
    with pytest.raises(TypeError, match="allowed must be boolean"):
        masks.to_additive([[1, 0]])
    with pytest.raises(TypeError, match="allowed must be a boolean array, got None"):
        masks.to_additive(None)
    with pytest.raises(TypeError, match="dtype must be floating-point to hold -inf, got int64"):
        masks.to_additive([[True]], np.int64)


# Conventions of libraries, as the table in the module's docstring has them


@pytest.mark.parametrize(("T", "S"), [(3, 4), (4, 3), (4, 4)])
def test_upper_left_and_lower_right_alignment(T, S):
    # The definitions in PyTorch's reference of causal_upper_left and causal_lower_right.
    ones = np.ones((T, S), dtype=bool)
    np.testing.assert_array_equal(masks.causal(T, S), np.tril(ones))
    np.testing.assert_array_equal(masks.causal(np.arange(S - T, S), S), np.tril(ones, k=S - T))


def test_every_row_of_the_table_is_python():
    cells = [line[55:].strip("`") for line in masks.__doc__.splitlines() if line[55:57] == "``"]
    right = [cell.removeprefix("allowed = ").removeprefix("allowed, bias = ") for cell in cells]
    T, S = 2, 3
    shapes = {
        "attn_mask": (T, S),
        "from_additive(M)": (T, S),
        "~attn_mask": (T, S),
        "padding(~key_padding_mask)": (1, 1, S),
        "padding(attention_mask == 1)": (1, 1, S),
        "padding(np.arange(S) < n[:, None])": (1, 1, S),
        "causal(T, S)": (T, S),
        "causal(p + np.arange(T), S)": (T, S),
        "causal(np.arange(S - T, S), S)": (T, S),
        "documents(ids, ids)": (S, S),
    }
    assert right == list(shapes)
    namespace = {**vars(masks), "T": T, "S": S, "M": np.zeros((T, S))}
    namespace |= {"attn_mask": np.ones((T, S), bool), "key_padding_mask": np.zeros((1, S), bool)}
    namespace |= {"attention_mask": np.ones((1, S), int), "n": np.array([1]), "p": 1}
    namespace |= {"ids": np.repeat(np.arange(2), np.diff([0, 1, S]))}
    for cell, shape in shapes.items():
        value = eval(cell, namespace)
        allowed = value[0] if isinstance(value, tuple) else value
        assert (allowed.dtype, allowed.shape) == (np.dtype(bool), shape), cell
