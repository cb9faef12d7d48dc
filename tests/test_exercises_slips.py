"""Programs with one slip each that the hidden inputs have to tell from right ones.

Each is right as long as two sizes agree, a count is small or an entry is 0. Beside the wrong
versions of an exercise, which get a diagnosis, these are to fail and no more.
"""

import numpy as np
import pytest

from attnbook.exercises import check
from attnbook.exercises.parts import State


def three_keys(dA, A):
    return A * (dA - (A * dA)[:, :3].sum(axis=1, keepdims=True))


def wait(shift):
    """Read what has arrived, with another function of k in place of k - 1."""

    def read(U, V, k):
        E = np.exp(U) * np.tri(*U.shape, shift(int(k)))
        return E / E.sum(axis=1, keepdims=True) @ V

    return read


def tie_blocks(block):
    """Side by side, for every query head h, the columns that ``block(h, H_kv, r, d_k)`` names."""

    def tie(W, H_kv, r):
        d_k = W.shape[1] // H_kv
        heads = range(H_kv * r)
        return np.hstack([W[:, block(h, H_kv, r, d_k)] for h in heads])

    return tie


def groups_of_H_kv(h, H_kv, r, d_k):
    g = h // H_kv % H_kv
    return slice(g * d_k, (g + 1) * d_k)


def all_rows_but_one(A, P):
    return (A * P).sum() / (len(A) - 1)


SLIPS = [
    ("8.8", three_keys),
    ("10.5", wait(lambda k: 2 ** (k - 1) - 1)),
    ("10.5", wait(lambda k: k * (k - 1) // 2)),
    ("10.5", wait(lambda k: int(k > 1))),
    ("11.7", tie_blocks(lambda h, H_kv, r, d_k: slice(h // r, None, H_kv))),
    ("11.7", tie_blocks(lambda h, H_kv, r, d_k: slice(h // r, h // r + d_k))),
    ("11.7", tie_blocks(groups_of_H_kv)),
    ("14.8", all_rows_but_one),
]


@pytest.mark.parametrize(("name", "function"), SLIPS)
def test_a_slip_is_found(name, function):
    verdict = check(name, function)
    assert verdict.state is State.WRONG
    assert "is the first that fails" in repr(verdict)


def test_the_helpers_of_this_file_are_right_without_a_slip():
    assert check("10.5", wait(lambda k: k - 1)).state is State.RIGHT
    groups = tie_blocks(lambda h, H_kv, r, d_k: slice(h // r * d_k, (h // r + 1) * d_k))
    assert check("11.7", groups).state is State.RIGHT


def test_a_small_number_is_shown_with_as_many_digits_as_are_asked_for():
    said = check("8.6", central=0.00390625, forward=0.0002441).parts["forward"].lines[0]
    assert said == "0.0002441 is right. Exactly it is 1/4096, or 0.000244 rounded."
    assert check("8.6", central=0.00391, forward=0.000244).state is State.RIGHT


@pytest.mark.parametrize(
    ("name", "label", "given", "expected"),
    [
        ("10.2", "first_is_padding", [5 / 3, 6], "a score of 0 has a weight"),
        ("12.5", "c", 5 - 8, "not negative"),
        ("12.5", "d", 3 - 1, "only the row sum was kept"),
        ("13.8", "MHA", 1_024_000, "float32 has 4"),
        ("14.3", "itself", 0.3, "or the sum of the last two"),
        ("14.6", "six", 270 * 0.9**5, "more than $t$ is rare"),
        ("8.1", "key_1", [0, 0.313], "or the signs are turned round"),
    ],
)
def test_a_likely_mistake_is_named(name, label, given, expected):
    judgement = check(name, **{label: given}).parts[label]
    assert judgement.state is State.WRONG
    assert expected in judgement.lines[-1]


@pytest.mark.parametrize("name", ["10.6", "10.10"])
def test_one_answer_is_handed_in_without_a_name(name):
    assert check(name, [1, 2, 3]).state is not State.OPEN
    assert "This exercise has one answer" in repr(check(name, numbers=[1, 2, 3]))
