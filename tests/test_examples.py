"""The worked examples are exact, consistent, and able to show the usual slips."""

import ast
import itertools
from fractions import Fraction
from math import isclose
from pathlib import Path

import numpy as np
import pytest
import sympy
from sympy import Rational, exp

from attnbook import exact
from attnbook import examples as ex

EXAMPLES = {
    name: value
    for name, value in vars(ex).items()
    if isinstance(getattr(value, "where", None), str)
}
M = ex.M_SENTENCE


def leaves(value):
    if isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def is_matrix(value):
    return isinstance(value, tuple) and all(
        isinstance(row, tuple) and not any(isinstance(entry, tuple) for entry in row)
        for row in value
    )


def matrices(value):
    """Yield every tuple of rows inside an example."""
    if is_matrix(value):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from matrices(part)


def right_entries(printed, values, digits=2):
    """Count the printed decimals that agree with the exact values."""
    pairs = zip(leaves(printed), values, strict=True)
    return sum(exact.agrees(f"{float(p):.{digits}f}", x) for p, x in pairs)


def head(example):
    """Compute Q, K, V and the attention of one head exactly."""
    Q, K, V = (exact.project(example.X, W) for W in (example.W_Q, example.W_K, example.W_V))
    return Q, K, V, exact.attention(Q, K, V, example.allowed)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_exact_and_cannot_change(name):
    example = EXAMPLES[name]
    hash(example)  # tuples all the way down
    assert isinstance(example.where, str)
    for leaf in leaves(example):
        assert type(leaf) in {int, Fraction, str, bool, type(None)}, leaf
    for matrix in matrices(example):
        assert len({len(row) for row in matrix}) == 1


def test_examples_import_the_standard_library_alone():
    tree = ast.parse(Path(ex.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"fractions", "typing"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


def test_no_example_hides_in_a_float():
    with pytest.raises(TypeError):
        exact.matrix([[float(M.X[0][1])]])
    assert exact.matrix(M.X)[0, 1] == Rational(1, 5)


# ---------------------------------------------- source M


def test_found_projections_give_the_printed_matrices_exactly():
    assert exact.project(M.X, M.W_K) == exact.matrix(M.K)
    assert exact.project(M.X, M.W_V) == exact.matrix(M.V)
    assert exact.project(M.X, M.W_Q_for_Q_printed) == exact.matrix(M.Q_printed)


def test_found_projections_have_two_decimals_and_small_entries():
    for entry in leaves((M.W_K, M.W_V, M.W_Q_for_Q_printed)):
        assert (100 * entry).denominator == 1
        assert abs(entry) <= Fraction(61, 100)


def test_printed_queries_are_not_the_projection():
    Q = exact.project(M.X, M.W_Q)
    for printed, wrong in ((M.Q_printed, 21), (M.Q_printed_heads, 22)):
        assert sum(a != b for a, b in zip(Q, exact.matrix(printed), strict=True)) == wrong
    assert Q[0, 0] == M.Q_printed[0][0] == Rational(38, 100)
    assert exact.matrix(M.Q_printed)[1:, :] == exact.matrix(M.Q_printed_heads)[1:, :]


def test_printed_results_are_wrong_where_they_are_said_to_be():
    K, V, A = (exact.matrix(X) for X in (M.K, M.V, M.A))
    assert right_entries(M.scores_printed, exact.matrix(M.Q_printed) * K.T) == 1
    assert right_entries(M.output_printed, A * V) == 12


def test_every_target_has_a_projection():
    """X has rank 4 in 6 columns: W exists for every 4 x 6 target, and is not unique."""
    X = exact.matrix(M.X)
    assert X.rank() == 4
    assert (X * X.T).det() == Rational(7694879, 10**8)
    kernel = exact.matrix([[-1, -15, 0, -9, 29, 14], [-21, -16, 12, -3, -31, 63]]).T
    assert X * kernel == sympy.zeros(4, 2)
    minors = [(10 * X)[:, list(columns)].det() for columns in itertools.combinations(range(6), 4)]
    assert sympy.igcd(*minors) == 1


@pytest.mark.parametrize(
    "weights",
    [M.A, M.A_1, M.A_2, (M.A_love_one_head, M.A_love_object_head, M.A_love_subject_head)],
)
def test_weights_set_by_hand_sum_to_one(weights):
    assert [sum(row) for row in weights] == [1] * len(weights)
    assert all(weight > 0 for weight in leaves(weights))


def test_sizes_of_the_sentence():
    assert len(M.tokens) == len(M.X) == len(M.A) == len(M.A_1) == len(M.A_2)
    assert len(M.X[0]) == len(M.W_Q) == len(M.W_K) == len(M.W_V)
    assert len(M.W_Q[0]) % M.H == 0


def test_maps_of_the_algebra_example_do_not_commute():
    turn, stretch = exact.matrix(ex.M_ALGEBRA.turn), exact.matrix(ex.M_ALGEBRA.stretch)
    assert turn * stretch == sympy.Matrix([[0, -1], [2, 0]])
    assert stretch * turn == sympy.Matrix([[0, -2], [1, 0]])
    assert exact.matrix(ex.M_ALGEBRA.A).shape == (2, 3)
    assert exact.matrix(ex.M_ALGEBRA.B).shape == (3, 2)
    assert exact.matrix(ex.M_ALGEBRA.B).rank() == 2


# ---------------------------------------------- sources D and R


def test_two_scores_of_D_are_a_row_of_R():
    assert ex.D_TWO_SCORES.V == ex.R_CROSS.V
    assert ex.D_TWO_SCORES.exp_scores[0] == ex.R_CROSS.exp_scores[1]


def test_exercise_5_3_is_the_head_without_its_mask():
    assert ex.R_EXERCISE_5_3[1:5] == ex.R_HEAD[1:5]
    assert all(leaves(ex.R_EXERCISE_5_3.allowed))
    assert ex.R_HEAD.allowed == ((True, False, False), (True, True, False), (True, True, True))


def test_local_gradient_is_that_of_one_entry():
    assert ex.R_LOCAL_GRADIENT.of is ex.R_HEAD
    assert sum(leaves(ex.R_LOCAL_GRADIENT.dO)) == 1
    assert ex.R_LOCAL_GRADIENT.dO[ex.R_LOCAL_GRADIENT.row][0] == 1


# ---------------------------------------------- source E, reconstructed

ALPHA, BETA = 1 / (1 + exp(Rational(5, 2))), 1 / (1 + exp(4))


def agree(printed, values):
    return right_entries(printed, values, digits=3) == len(list(leaves(printed)))


def test_values_of_alpha_and_beta():
    assert exact.decimal(ALPHA, 10) == "0.0758581800"
    assert exact.decimal(BETA, 10) == "0.0179862100"


@pytest.mark.parametrize(
    ("example", "scores", "output"),
    [
        (
            ex.E_RECONSTRUCTION_1,
            [[3, 8], [3, 11]],
            [[p, 1 - p, 1 + p, 2 - 2 * p] for p in (ALPHA, BETA)],
        ),
        (ex.E_RECONSTRUCTION_2, [[2, 7], [3, 11]], [[2 - p, 2 - 2 * p] for p in (ALPHA, BETA)]),
    ],
)
def test_reconstructions_give_the_printed_weights(example, scores, output):
    Q, _K, _V, result = head(example)
    assert Q.cols == 4
    assert sympy.Matrix(scores) == result.E
    assert exact.equal(result.A, [[ALPHA, 1 - ALPHA], [BETA, 1 - BETA]])
    assert agree(ex.E_TWO_POSITIONS.A_printed, result.A)
    assert exact.equal(result.O, output)


def test_first_reconstruction_uses_zeros_and_ones():
    example = ex.E_RECONSTRUCTION_1
    assert set(leaves((example.X, example.W_Q, example.W_K, example.W_V))) == {0, 1}


def test_second_reconstruction_tells_the_widths_apart():
    Q, K, V, right = head(ex.E_RECONSTRUCTION_2)
    wrong = exact.attention(Q, K, V, scale=1 / sympy.sqrt(V.cols))
    assert not agree(ex.E_TWO_POSITIONS.A_printed, wrong.A)
    assert right.E == wrong.E


def test_only_one_small_integer_example_fits_the_printed_weights():
    """Rounding leaves score gaps near 5/2 and 4; integer scores need d_k = 4 (up to d_k = 15)."""
    bounds = [
        [np.log((1 - p) / p) for p in (float(first) + 0.0005, float(first) - 0.0005)]
        for first, _second in ex.E_TWO_POSITIONS.A_printed
    ]
    assert [[round(x, 3) for x in pair] for pair in bounds] == [[2.491, 2.505], [3.971, 4.028]]
    fits = [
        (d_k, gaps)
        for d_k in range(1, 16)
        for gaps in itertools.product(range(40), repeat=2)
        if all(low <= gap / d_k**0.5 <= high for gap, (low, high) in zip(gaps, bounds, strict=True))
    ]
    assert fits == [(4, (5, 8))]


def test_two_head_sequel():
    example = ex.E_RECONSTRUCTION_HEADS
    heads = []
    for W_Q, W_K, W_V in zip(example.W_Q, example.W_K, example.W_V, strict=True):
        Q, K, V = (exact.project(example.of.X, W) for W in (W_Q, W_K, W_V))
        heads.append(exact.attention(Q, K, V))
    first, second = heads
    assert sympy.Matrix([[1, 0], [0, 1]]) == first.E
    assert sympy.Matrix([[2, 8], [3, 10]]) == second.E
    assert first.E + second.E == head(example.of)[3].E
    Y = sympy.Matrix.hstack(first.O, second.O) * exact.matrix(example.W_O)
    assert exact.equal(Y, sympy.Matrix.hstack(first.O + second.O, second.O - first.O))
    assert exact.decimals(Y, 6) == [
        ["1.683928", "2.301906", "0.344404", "1.641429"],
        ["1.337274", "2.655691", "0.676797", "1.316168"],
    ]


# ---------------------------------------------- the twin of R's example

TWIN = ex.HEAD_ALL_WIDTHS_DIFFER


def twin_arrays():
    return [np.array(X, dtype=float) for X in TWIN[1:6]]


def softmax(Z, axis=-1):
    e = np.exp(Z - Z.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def twin_slips():
    """Return the right output, and what each usual slip makes of it."""
    X_q, X_m, W_Q, W_K, W_V = twin_arrays()
    Q, K, V = X_q @ W_Q, X_m @ W_K, X_m @ W_V
    (T, d_q), (S, d_m), d_k, d_v = X_q.shape, X_m.shape, Q.shape[1], V.shape[1]
    allowed = np.array(TWIN.allowed)
    E = Q @ K.T

    def output(E, scale=d_k**-0.5, allowed=allowed, axis=-1):
        return softmax(np.where(allowed, E * scale, -np.inf), axis) @ V

    after = softmax(E / d_k**0.5) * allowed
    return output(E), {
        "no scale": output(E, scale=1),
        "divided by d_k": output(E, scale=1 / d_k),
        "root of d_v": output(E, scale=d_v**-0.5),
        "root of d_q": output(E, scale=d_q**-0.5),
        "root of d_m": output(E, scale=d_m**-0.5),
        "root of T": output(E, scale=T**-0.5),
        "root of S": output(E, scale=S**-0.5),
        "multiplied by the root": output(E, scale=d_k**0.5),
        "cosine": output(
            E / np.linalg.norm(Q, axis=1, keepdims=True) / np.linalg.norm(K, axis=1), scale=1
        ),
        "no mask": output(E, allowed=True),
        "mask of the upper left corner": output(E, allowed=np.tri(T, S, dtype=bool)),
        "diagonal masked too": output(E, allowed=np.tri(T, S, k=S - T - 1, dtype=bool)),
        "mask after softmax": after @ V,
        "softmax over the queries": output(E, axis=0, allowed=True),
        "softmax over the queries, masked after": (softmax(E / d_k**0.5, axis=0) * allowed) @ V,
        "softmax over everything": softmax(np.where(allowed, E, -np.inf), axis=None) @ V,
        "sign": output(-E),
        "average": allowed / allowed.sum(axis=1, keepdims=True) @ V,
    }


def test_all_sizes_of_the_twin_differ():
    X_q, X_m, W_Q, W_K, W_V = twin_arrays()
    sizes = [*X_q.shape, *X_m.shape, W_Q.shape[1], W_V.shape[1]]
    assert len(set(sizes)) == 6
    assert W_Q.shape == (X_q.shape[1], W_K.shape[1])
    assert W_K.shape[0] == W_V.shape[0] == X_m.shape[1]
    assert np.shape(TWIN.allowed) == (len(X_q), len(X_m))


def test_slips_show_in_the_twin():
    right, slips = twin_slips()
    outputs = {"right": right, **slips}
    for (name, one), (other, two) in itertools.combinations(outputs.items(), 2):
        assert one.shape == two.shape
        assert np.abs(one - two).max() > 0.01, (name, other)


def test_a_wrong_scale_shows_in_every_row():
    """Row by row: no test can look at a row that hides the slip."""
    right, slips = twin_slips()
    for name in slips:
        if name.startswith(("no scale", "divided", "root", "multiplied", "sign")):
            assert (np.abs(slips[name] - right).max(axis=1) > 0.01).all(), name


def test_swapped_and_untransposed_matrices_do_not_fit_the_twin():
    X_q, X_m, W_Q, W_K, W_V = twin_arrays()
    Q, K, V = X_q @ W_Q, X_m @ W_K, X_m @ W_V
    for left, right in ((Q, K), (X_q, W_K), (X_m, W_Q), (X_q, W_V), (K @ Q.T, V)):
        with pytest.raises(ValueError, match="matmul"):
            left @ right
    assert (K @ Q.T).shape != (Q @ K.T).shape
    assert K.shape != V.shape


def test_inverted_mask_of_the_twin_leaves_a_query_without_keys():
    X_q, X_m, W_Q, W_K, W_V = TWIN[1:6]
    Q, K, V = (exact.project(X, W) for X, W in ((X_q, W_Q), (X_m, W_K), (X_m, W_V)))
    inverted = tuple(tuple(not may for may in row) for row in TWIN.allowed)
    with pytest.raises(ValueError, match="at least one allowed key"):
        exact.attention(Q, K, V, inverted)


def test_twin_is_not_saturated_and_not_symmetric():
    X_q, X_m, W_Q, W_K, W_V = TWIN[1:6]
    Q, K, V = (exact.project(X, W) for X, W in ((X_q, W_Q), (X_m, W_K), (X_m, W_V)))
    result = exact.attention(Q, K, V, TWIN.allowed)
    assert max(float(weight) for weight in result.A) < 0.95
    assert len({tuple(row) for row in result.E.tolist()}) == len(X_q)
    assert isclose(float(sum(result.A)), len(X_q))
    numeric, _slips = twin_slips()
    assert np.allclose(numeric, np.array(result.O.tolist(), dtype=float), atol=1e-12)
