"""The exercises of chapter 01: right answers found another way."""

import numpy as np

from attnbook.exercises.engine import ANSWER, exercises
from attnbook.exercises.reading import read

EXERCISES = exercises(1)


def right(name, part=ANSWER):
    return read(EXERCISES[name][part].right)


# ---- right answers, by other means --------------------------------------------------------------


def test_counts_are_those_of_a_product_done_one_by_one():
    A, B = [[1] * 5 for _ in range(4)], [[1] * 2 for _ in range(5)]
    entries = {(i, k) for i in range(4) for k in range(2)}
    products = [(i, j, k) for i, row in enumerate(A) for j, _ in enumerate(row) for k in range(2)]
    assert right("1.1", "entries") == len(entries)
    assert right("1.1", "products") == len(products)
    assert right("1.1", "layers") == len(A[0]) == len(B)


def test_only_f_is_linear():
    maps = {
        "f": lambda x, y: (x + 2 * y, 3 * x),
        "g": lambda x, y: (x + 1, y),
        "h": lambda x, y: (abs(x), y),
        "k": lambda x, y: (x * y, y),
    }

    def linear(f):
        pairs = [((1, 2), (-3, 1)), ((-1, 0), (1, 0)), ((2, -1), (0, 5))]
        return all(
            f(p[0] + q[0], p[1] + q[1]) == tuple(map(sum, zip(f(*p), f(*q), strict=True)))
            and f(-2 * p[0], -2 * p[1]) == tuple(-2 * c for c in f(*p))
            for p, q in pairs
        )

    part = EXERCISES["1.2"][ANSWER]
    assert [name for name, f in maps.items() if linear(f)] == [part.right]
    assert {wrong.answer for wrong in part.wrong} | {part.right} == set(maps)


def test_both_orders_by_complex_numbers():
    z = 1 + 2j
    turn, mirror = (lambda z: 1j * z), (lambda z: 1j * z.conjugate())
    for part, image in (("turn_first", mirror(turn(z))), ("mirror_first", turn(mirror(z)))):
        assert right("1.3", part).tolist() == [image.real, image.imag]
        wrong = {w.name: read(w.answer).tolist() for w in EXERCISES["1.3"][part].wrong}
        to_the_right = -1j * z
        assert wrong["right turn only"] == [to_the_right.real, to_the_right.imag] == [2, -1]
    # A turn to the right for one to the left gives the answer to the other question.
    assert right("1.3", "mirror_first").tolist() == [-1, 2]
    assert mirror(-1j * z) == -1 + 2j
    assert -1j * mirror(z) == 1 - 2j


def test_the_stretch_commutes_and_the_wrong_ones_do_not():
    turn = np.array([[0, -1], [1, 0]])
    part = EXERCISES["1.4"][ANSWER]
    for b, commutes in [(part.right, True), *((wrong.answer, False) for wrong in part.wrong)]:
        stretch = np.diag([3.0, float(b)])
        assert np.array_equal(turn @ stretch, stretch @ turn) == commutes


def test_the_recipe_gives_the_column():
    A = np.array([[2, -1, 3], [0, 1, 4]])
    assert (A @ right("1.5")).tolist() == [-9, -3]
    assert right("1.5")[2] == 0
    good = [
        w.name for w in EXERCISES["1.5"][ANSWER].wrong if (A @ read(w.answer) == [-9, -3]).all()
    ]
    assert good == ["column of B", "wrong direction"]  # recipes, but their third entry is not 0


def test_the_outer_product_is_the_matrix_of_the_exercise():
    u, v = right("1.6", "u"), right("1.6", "v")
    assert np.outer(u, v).tolist() == [[2, 4, 6], [1, 2, 3], [3, 6, 9]]
    assert v[0] == 1


def test_what_the_exchanges_do():
    rng = np.random.default_rng(5)
    X, W = rng.integers(1, 9, (3, 4)), rng.integers(1, 9, (4, 5))
    swap = [1, 0, 2]
    assert (X[swap] @ W == (X @ W)[swap]).all()
    assert EXERCISES["1.7"]["rows_of_X"].right == "rows"
    assert (X @ W[:, [1, 0, 2, 3, 4]] == (X @ W)[:, [1, 0, 2, 3, 4]]).all()
    assert EXERCISES["1.7"]["columns_of_W"].right == "columns"
    assert (X @ W[[1, 0, 2, 3]] != X @ W).all()
    assert EXERCISES["1.7"]["rows_of_W"].right == "all"


def test_the_weights_mix_the_values():
    V = np.array([[1, 0], [0, 2], [1, 2]])
    for part, point in (("weights", [0.75, 1]), ("origin", [0, 0])):
        weights = right("1.10", part)
        assert (weights @ V).tolist() == point
        assert weights.sum() == 1
    assert (right("1.10", "weights") > 0).all()
    assert right("1.10", "origin").min() < 0
    two = {w.name: w.answer for w in EXERCISES["1.10"]["weights"].wrong}["two values"]
    assert (read(two) @ V).tolist() == [0.75, 1]
    assert read(two).sum() == 1.25
