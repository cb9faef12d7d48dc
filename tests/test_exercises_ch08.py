"""The exercises of chapter 08: answers found in other ways, and functions with several results."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import second_versions_08 as second
import sympy as sp

from attnbook import attention, attention_backward, exact, examples
from attnbook.exercises import ch08, check, wording
from attnbook.exercises.backward import Backward, alike_in_all
from attnbook.exercises.engine import ANSWER
from attnbook.exercises.parts import State
from attnbook.exercises.reading import read
from attnbook.markup import to_plain

BACKWARD = {
    name: parts[ANSWER]
    for name, parts in ch08.EXERCISES.items()
    if isinstance(parts.get(ANSWER), Backward)
}
each_backward = pytest.mark.parametrize("name", BACKWARD)

# ---- numbers, computed otherwise ---------------------------------------------------------------


def measured(loss, X, h=1e-5):
    """Central differences of a loss by every entry of X."""
    slopes = np.zeros_like(X)
    for place in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[place] = h
        slopes[place] = (loss(X + step) - loss(X - step)) / (2 * h)
    return slopes


X, W_Q, W_K, W_V = (np.array(x, float) for x in examples.R_HEAD[1:5])
ALLOWED = np.array(examples.R_HEAD.allowed)


def output(Q, K, V):
    return attention(Q, K, V, ALLOWED).O


def test_the_other_coordinate_by_differences():
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    A = attention(Q, K, V, ALLOWED).A
    dU = attention_backward([[0, 0], [0, 1], [0, 0]], Q, K, V, A).dU
    dQ = measured(lambda Q: output(Q, K, V)[1, 1], Q)
    dK = measured(lambda K: output(Q, K, V)[1, 1], K)
    verdict = check("8.1", scores=dU[1].round(9), query=dQ[1].round(9), key_1=dK[0].round(9))
    assert verdict.state is State.RIGHT, verdict


def test_the_three_paths_by_differences():
    def loss(q, k, v):
        return output(q @ W_Q, k @ W_K, v @ W_V)[2, 0]

    paths = {
        "by_query": measured(lambda x: loss(x, X, X), X),
        "by_key": measured(lambda x: loss(X, x, X), X),
        "by_value": measured(lambda x: loss(X, X, x), X),
        "total": measured(lambda x: loss(x, x, x), X),
    }
    verdict = check("8.7", **{name: slopes[2].round(9) for name, slopes in paths.items()})
    assert verdict.state is State.RIGHT, verdict


def test_zero_and_any_by_trying():
    rng = np.random.default_rng(0)
    Q, K, V, dO = (rng.normal(size=s) for s in ((2, 3), (4, 3), (4, 5), (2, 5)))
    one = np.array([[True, False, False, False], [True] * 4])
    g = attention_backward(dO * [[1], [0]], Q, K, V, attention(Q, K, V, one).A)
    found = {"score": g.dU[0], "query": g.dQ[0], "value": g.dV[0], "weight": g.dA[0, :1]}
    words = {part: "any" if np.any(abs(x) > 1e-9) else "zero" for part, x in found.items()}
    assert check("8.2", **words).state is State.RIGHT

    c = rng.normal(size=3)
    g = attention_backward(dO, Q, K, V, attention(Q, K, V).A)
    found = {
        "keys": (g.dK @ c).sum(),
        "queries": (g.dQ @ c).sum(),
        "values": (g.dV @ rng.normal(size=5)).sum(),
        "scores": g.dU[1].sum(),
    }
    words = {part: "any" if abs(x) > 1e-9 else "zero" for part, x in found.items()}
    assert check("8.3", **words).state is State.RIGHT


def test_the_rank_of_the_whole_map():
    rng = np.random.default_rng(1)
    allowed = np.arange(7) < np.array([[1], [2], [4]])
    A = attention(rng.normal(size=(3, 2)), rng.normal(size=(7, 2)), np.ones((7, 1)), allowed).A
    blocks = [np.diag(a) - np.outer(a, a) for a in A]
    rank = sum(np.linalg.matrix_rank(J, tol=1e-9) for J in blocks)
    assert check("8.5", rank=int(rank), kernel=21 - int(rank)).state is State.RIGHT


def test_the_best_step_is_best():
    h = np.geomspace(1e-6, 1, 2_000_001)
    central = h[np.argmin(h**2 / 2 + 2.0**-24 / h)]
    forward = h[np.argmin(2 * h + 2 * 2.0**-24 / h)]
    assert check("8.6", central=central, forward=forward).state is State.RIGHT


def test_softmax_halves_and_no_more():
    rng = np.random.default_rng(2)
    for S in (2, 3, 7):
        for sharpness in (0.1, 1, 5):
            e = np.exp(sharpness * rng.normal(size=S))
            a = e / e.sum()
            eigenvalues = np.linalg.eigvalsh(np.diag(a) - np.outer(a, a))
            assert eigenvalues.min() > -1e-12
            assert eigenvalues.max() <= 0.5 + 1e-12
    J = exact.softmax_jacobian([Fraction(1, 2)] * 2)
    assert sp.Rational(1, 2) in J.eigenvals()


def test_the_check_for_one_product():
    rng = np.random.default_rng(3)
    Q, K, V, dO = (rng.normal(size=s) for s in ((4, 3), (6, 3), (6, 2), (4, 2)))
    g = attention_backward(dO, Q, K, V, attention(Q, K, V).A)
    np.testing.assert_allclose(Q.T @ g.dQ, g.dK.T @ K, atol=1e-12)
    # the directions (Q M, -K M^T), one for each unit matrix M, are independent
    units = np.eye(9).reshape(9, 3, 3)
    rows = [np.concatenate([(Q @ M).ravel(), -(K @ M.T).ravel()]) for M in units]
    assert np.linalg.matrix_rank(np.array(rows)) == 9


# ---- functions with several results ------------------------------------------------------------


def judged(name, function):
    verdict = check(name, function)
    text, page = repr(verdict), verdict._repr_html_()
    assert verdict.state.value in page
    for line in verdict.parts[ANSWER].lines:
        assert to_plain(line).splitlines()[0] in text
    return verdict.state, "\n".join(verdict.parts[ANSWER].lines)


def test_there_are_such_exercises():
    assert list(BACKWARD) == ["8.9", "8.10", "8.11"]


@each_backward
def test_the_right_function_is_exact_and_hidden_inputs_differ_in_every_size(name):
    part = BACKWARD[name]
    for given in part.inputs:
        sizes, letters = {}, [*part.shapes.values(), *part.returns.values()]
        for text, value in zip(letters, (*given, *part.right(*given)), strict=True):
            shape = read(value).shape
            assert len(shape) == len(text.split())
            for letter, size in zip(text.split(), shape, strict=True):
                assert sizes.setdefault(letter, size) == size
        assert len(set(sizes.values())) == len(sizes), sizes
        assert max(sizes.values()) <= 4
    assert len({str(read(given[0]).shape) for given in part.inputs}) >= 3
    kinds = {type(n) for given in part.inputs for n in np.array(given[0], dtype=object).flat}
    assert {int, Fraction} <= kinds


@each_backward
def test_the_weights_that_are_given_are_weights(name):
    for given in BACKWARD[name].inputs:
        arguments = dict(zip(BACKWARD[name].shapes, given, strict=True))
        if "A" in arguments:
            A = read(arguments["A"])
            assert (A >= 0).all()
            np.testing.assert_allclose(A.sum(axis=1), 1)


@each_backward
def test_wrong_functions_differ_and_each_gets_its_own_diagnosis(name):
    part = BACKWARD[name]
    assert len(part.wrong) >= 5
    assert len({wrong.message for wrong in part.wrong}) == len(part.wrong)
    outcomes = {wrong.name: part.outcomes(wrong.answer) for wrong in part.wrong}
    for one, other in itertools.combinations(outcomes, 2):
        assert not all(map(alike_in_all, outcomes[one], outcomes[other])), (one, other)
    for wrong in part.wrong:
        state, said = judged(name, wrong.answer)
        assert state is State.WRONG
        assert said.endswith(wording.LIKELY.format(message=wrong.message)), wrong.name


def test_every_function_was_written_a_second_time():
    assert {name for name, _ in second.BACKWARD_RIGHT} == set(BACKWARD)
    expected = {(name, wrong.name) for name, part in BACKWARD.items() for wrong in part.wrong}
    assert {(name, misconception) for name, misconception, _ in second.BACKWARD_WRONG} == expected


@pytest.mark.parametrize(("name", "function"), second.BACKWARD_RIGHT)
def test_right_functions_pass_with_a_table(name, function):
    state, said = judged(name, function)
    assert state is State.RIGHT, said
    table = said.splitlines()[1:]
    assert table[0].split() == " ".join(wording.TABLE_HEAD).split()
    assert [line.split()[0] for line in table[1:]] == list(BACKWARD[name].returns)
    assert all(line.split()[-2] == wording.YES for line in table[1:])


@pytest.mark.parametrize(("name", "misconception", "function"), second.BACKWARD_WRONG)
def test_a_misconception_is_recognised_however_it_is_written(name, misconception, function):
    (wrong,) = (w for w in BACKWARD[name].wrong if w.name == misconception)
    state, said = judged(name, function)
    assert state is State.WRONG
    assert said.endswith(wording.LIKELY.format(message=wrong.message)), said


def right(dO, Q, K, V, A):
    return list(second.BACKWARD_RIGHT[0][1](dO, Q, K, V, A))


def test_the_table_tells_exact_approximate_and_the_largest_difference():
    def function(*given):
        dV, dA, dU, dQ, dK = right(*given)
        return dV, dA + 1e-9, dU + 0.25, dQ.T, dK * np.nan

    state, said = judged("8.9", function)
    assert state is State.WRONG
    lines = {line.split()[0]: line.split()[1:] for line in said.splitlines() if "  " in line}
    assert lines["dV"] == ["3", "x", "1", "yes", "yes", "0"]
    assert lines["dA"] == ["2", "x", "3", "no", "yes", "1e-09"]
    assert lines["dU"] == ["2", "x", "3", "no", "no", "0.25"]
    assert " ".join(lines["dQ"]) == "2 x 4 no no its shape is 4 x 2"
    assert " ".join(lines["dK"]) == "3 x 4 no no nan or inf"
    assert wording.FIRST_WRONG.format(name="dU") in said


def changes_K(dO, Q, K, V, A):
    found = right(dO, Q, K, V, A)
    K[0] = 7
    return found


class NoTuple(tuple):
    """A tuple that lies about its length."""

    def __len__(self):
        return 5


def exits(*given):
    raise SystemExit(1)


def late(dO, Q, K, V, A):
    return right(dO, Q, K, V, A) if len(K) > 1 else None


def late_nan(dO, Q, K, V, A):
    dV, dA, dU, dQ, dK = right(dO, Q, K, V, A)
    return dV, dA, dU if len(K) > 1 else dU * np.nan, dQ, dK


def prints(*given):
    print("secret")
    return right(*given)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda *given: None, "returned None. Is the return missing?"),
        (lambda *given: print(1), "printed its result and returned None"),
        (
            lambda *given: right(*given)[:4],
            "return 5 arrays, dV, dA, dU, dQ, dK, in this order; got 4 in all",
        ),
        (
            lambda *given: (right(*given),),
            "return 5 arrays, dV, dA, dU, dQ, dK, in this order; got 1",
        ),
        (lambda *given: np.ones((5, 2)), "got one array of shape 5 x 2"),
        (lambda *given: {"dV": 1}, "got {'dV': 1}"),
        (lambda *given: NoTuple(), "got 0 in all"),
        (lambda *given: (x for x in right(*given)), "got <generator"),
        (lambda *given: [*right(*given)[:4], "text"], wording.NOT_ARRAY),
        (
            lambda *given: [*right(*given)[:4], "text"],
            "Expected an array of shape 3 x 4, got the text",
        ),
        (lambda *given: [None] * 5, "Expected an array of shape 3 x 1, got None"),
        (lambda *given: [right(*given)[0], ..., ..., ..., ...], wording.STILL_OPEN),
        (lambda *given: [x + 0j for x in right(*given)], wording.IS_COMPLEX),
        (lambda *given: [x.astype(int) for x in right(*given)], wording.INTEGERS),
        (lambda *given: [x.ravel() for x in right(*given)], "its shape is 3"),
        (lambda *given: [x * np.nan for x in right(*given)], wording.NAN_OR_INF),
        (lambda *given: [1, 0, 0, 0, 0], "its shape is 1"),
        (lambda *given: [[[1], [1, 2]]] * 5, wording.RAGGED),
        (exits, "raised SystemExit"),
        (late, "Input 3 of 3"),
        (late_nan, "dU  4 x 1     no           no          nan or inf"),
        (lambda *given: 1 / 0, "raised ZeroDivisionError"),
        (lambda *given: right(*given)[::-1], wording.FIRST_WRONG.format(name="dV")),
        (changes_K, "changed its argument K"),
    ],
)
def test_whatever_a_function_does_is_told_in_a_sentence(function, expected, capsys):
    state, said = judged("8.9", function)
    assert state is State.WRONG
    assert expected in said
    assert "is the first that fails" in said
    assert capsys.readouterr() == ("", "")


def test_what_it_prints_is_kept_back_and_no_function_is_told(capsys):
    state, said = judged("8.9", prints)
    assert state is State.RIGHT
    assert "left out here" in said
    assert capsys.readouterr() == ("", "")
    assert judged("8.9", lambda Q: Q)[0] is State.UNREADABLE
    assert judged("8.9", np.ones(3))[0] is State.UNREADABLE
    assert check("8.9", ...).state is State.OPEN
    assert check("8.9", lambda *given: ...).state is State.OPEN
