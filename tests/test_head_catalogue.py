"""The patterns of the head catalogue: which keys they name, and what a head scores."""

import math

import numpy as np
import pytest

from attnbook import recordings
from attnbook.head_catalogue import PATTERNS, named_keys, score, uniform

LIST = recordings.word_list()


def test_keys_named_by_each_pattern():
    tokens = ("a", "b", "a", ",", "b", "a", "d")
    there = {name: np.argwhere(named_keys(name, tokens)).tolist() for name in PATTERNS}
    assert there["first token"] == [[i, 0] for i in range(2, 7)]
    assert there["previous token"] == [[i, i - 1] for i in range(2, 7)]
    assert there["itself"] == [[i, i] for i in range(2, 7)]
    assert there["next token"] == [[i, i + 1] for i in range(2, 6)]
    assert there["three back"] == [[i, i - 3] for i in range(4, 7)]
    assert there["comma"] == [[i, 3] for i in range(4, 7)]
    assert there["after the same"] == [[2, 1], [4, 2], [5, 1], [5, 3]]


def test_what_a_text_cannot_show_names_nothing():
    for name in ("comma", "after the same", "three back"):
        assert not named_keys(name, ("a", "b", "c", "d")).any()
    with pytest.raises(ValueError, match="there is no pattern 'topic'"):
        named_keys("topic", ("a", "b"))


def test_scores_of_all_heads_by_loops():
    A = recordings.weights(LIST)
    for name in PATTERNS:
        P = named_keys(name, LIST.tokens) & np.tri(18, dtype=bool)
        if not P.any():
            continue
        s = score(A, P)
        rows = [i for i in range(18) if P[i].any()]
        for n, h in ((0, 2), (3, 6)):
            total = sum(A[n, h, i, j] for i in rows for j in range(18) if P[i, j])
            assert math.isclose(s[n, h], total / len(rows))


def test_no_row_and_no_key_are_told():
    with pytest.raises(ValueError, match="no row names a key"):
        score(np.eye(2), np.zeros((2, 2), dtype=bool))
    with pytest.raises(ValueError, match="a row sees no key"):
        uniform([[True, False], [False, False]])


def test_one_head_or_many_and_keys_and_queries_differ_in_number():
    """T = 3 rows over S = 5 keys in two layers of four heads, by loops."""
    rng = np.random.default_rng(8)
    A = rng.dirichlet(np.ones(5), size=(2, 4, 3))
    there = np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]], dtype=bool)
    before = A.copy()
    s = score(A, there)
    assert s.shape == (2, 4)
    for n, h in np.ndindex(2, 4):
        assert math.isclose(s[n, h], (A[n, h, 0, 0] + A[n, h, 0, 2] + A[n, h, 2, 4]) / 2)
        assert math.isclose(score(A[n, h], there), s[n, h])
    assert np.array_equal(A, before)


def test_uniform_shares_one_among_the_visible_keys():
    allowed = np.array([[[1, 0, 1, 1]], [[0, 1, 0, 0]]], dtype=bool)
    np.testing.assert_allclose(uniform(allowed), [[[1 / 3, 0, 1 / 3, 1 / 3]], [[0, 1, 0, 0]]])


def test_rows_that_can_decide_between_first_previous_and_itself():
    """In each row that is kept the three patterns name three different keys."""
    tokens = tuple("abcdef")
    three = [named_keys(name, tokens) for name in ("first token", "previous token", "itself")]
    assert (sum(P.astype(int) for P in three).sum(axis=1) == [0, 0, 3, 3, 3, 3]).all()
    assert np.max(sum(P.astype(int) for P in three)) == 1
    back = named_keys("three back", tokens)
    assert not any((back & P).any() for P in three)


@pytest.mark.parametrize("tokens", [None, 5, "a,b", [1, 2], [["a"], ["b"]], iter("ab")])
def test_tokens_are_texts_one_for_each_position(tokens):
    with pytest.raises(TypeError, match="tokens must be a sequence of texts"):
        named_keys("after the same", tokens)
    assert named_keys("comma", []).shape == (0, 0)
    assert named_keys("comma", np.array(["a", ",", "b"])).sum() == 1


@pytest.mark.parametrize("pattern", [None, [], np.array(["comma", "itself"])])
def test_a_pattern_is_named_by_a_text(pattern):
    with pytest.raises(ValueError, match=r"there is no pattern .*choose one of first token"):
        named_keys(pattern, ("a", "b"))


def test_a_score_is_of_weights_at_places_that_fit():
    P = np.eye(2, dtype=bool)
    for A, there, error, said in (
        ([[np.nan, 1], [0, 1]], P, ValueError, r"A\[0, 0\] is nan"),
        (None, P, TypeError, "A must hold real numbers"),
        ([[5.0, -4.0], [0, 1]], P, ValueError, "weights are not negative"),
        ([[1.0, 1.0], [0, 1]], P, ValueError, "row 0 of A sums to 2"),
        (np.eye(3), P, ValueError, r"got A \(3, 3\) and there \(2, 2\)"),
        ([[1.0, 0.0]], P, ValueError, "with the same T and S"),
        (np.eye(2), [[1, 0], [0, 1]], TypeError, "there must hold booleans, got dtype int64"),
        ([1.0, 0.0], [True, False], ValueError, "an axis of rows and one of keys"),
    ):
        with pytest.raises(error, match=said):
            score(A, there)
    for allowed in (None, [[0.0, -np.inf]], "causal"):
        with pytest.raises(TypeError, match="allowed must hold booleans"):
            uniform(allowed)
    with pytest.raises(ValueError, match="an axis of rows"):
        uniform([True])
