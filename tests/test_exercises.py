"""Exercises: right answers in every form pass, every misconception gets its own diagnosis."""

import ast
import importlib
import importlib.util
import itertools
import json
import math
import random
import re
import subprocess
import sys
import warnings
from fractions import Fraction

import book
import numpy as np
import pytest
import sympy as sp

from attnbook import exact, style
from attnbook.exercises import check, engine, wording
from attnbook.exercises.engine import ANSWER, exercises
from attnbook.exercises.parts import Block, Choice, Judgement, Number, State, Wrong, tolerance
from attnbook.exercises.programs import Program, alike, same
from attnbook.exercises.reading import LARGEST, read, show
from attnbook.markup import to_html, to_plain

CHAPTERS = [n for n in range(1, 15) if exercises(n)]
PARTS = [
    (name, label, part)
    for chapter in CHAPTERS
    for name, parts in exercises(chapter).items()
    for label, part in parts.items()
]


def parts(kind):
    """Parametrise over all parts of a kind."""
    found = [pytest.param(*p, id=f"{p[0]}-{p[1]}") for p in PARTS if isinstance(p[2], kind)]
    return pytest.mark.parametrize(("name", "label", "part"), found)


def judged(name, label, given):
    """The state of one part and what was said about it, through `check`; shown both ways."""
    verdict = check(name, given) if label == ANSWER else check(name, **{label: given})
    text, page = repr(verdict), verdict._repr_html_()
    assert text.startswith(f"Exercise {name}: ")
    assert f"{verdict.state.value}</b>" in page
    judgement = verdict.parts[label]
    for line in judgement.lines:
        assert to_plain(line).splitlines()[0] in text
    return judgement.state, "\n".join(judgement.lines)


def gap(one, other):
    """How far two answers lie apart, in tolerances of the larger one."""
    x, y = read(one), read(other)
    if x.shape != y.shape:
        return math.inf
    return (np.abs(x - y) / np.maximum(tolerance(x), tolerance(y))).max()


def second_versions(chapter):
    """RIGHT and WRONG of ``second_versions_04.py`` for chapter 4; nothing where it is missing."""
    name = f"second_versions_{chapter:02d}"
    if importlib.util.find_spec(name) is None:
        return [], []
    module = importlib.import_module(name)
    return module.RIGHT, module.WRONG


# ---- right answers -----------------------------------------------------------------------------


def forms(right):
    """The same number or array in all forms in which a reader may hand it in."""
    x = read(right)
    as_sympy = [sp.sympify(number) for number in sp.flatten([right])]
    floats = x.ravel().tolist()
    three_digits = [float(f"{number:.3g}") for number in floats]
    found = {"sympy": as_sympy, "floats": floats, "three digits": three_digits}
    if all(number.is_Rational for number in as_sympy):
        found["Fraction"] = [Fraction(int(n.p), int(n.q)) for n in as_sympy]
    if all(number.is_Integer for number in as_sympy):
        found["int"] = [int(number) for number in as_sympy]
    for numpy_type in (np.float64, np.float32, np.longdouble):
        found[numpy_type.__name__] = [numpy_type(number) for number in floats]
    for form, values in found.items():
        if x.ndim == 0:
            yield form, values[0]
            yield f"[{form}]", values
            yield f"array of {form}", np.array(values[0])
        elif x.ndim == 1:
            yield f"list of {form}", list(values)
            yield f"tuple of {form}", tuple(values)
            yield f"array of {form}", np.array(values)
            yield f"one row of {form}", [values]
        else:
            yield f"list of rows of {form}", rows(values, x.shape[1])
            yield f"tuple of rows of {form}", tuple(map(tuple, rows(values, x.shape[1])))
            yield f"array of {form}", np.array(rows(values, x.shape[1]))
    as_rows = rows(as_sympy, x.shape[-1]) if x.ndim == 2 else [as_sympy]
    yield "Matrix", sp.Matrix(as_rows)
    yield "ImmutableMatrix", sp.ImmutableMatrix(as_rows)


def rows(values, width):
    """The values in rows of a width."""
    return [values[start : start + width] for start in range(0, len(values), width)]


def test_forms_keep_the_shape_and_the_numbers():
    for right in (Fraction(1, 3), (1, sp.log(3), 0), ((0, Fraction(5, 4), 2), (sp.log(3), -1, 7))):
        found = dict(forms(right))
        assert len(found) >= 14
        for form, given in found.items():
            x = read(given).squeeze()
            assert x.shape == read(right).shape, form
            np.testing.assert_allclose(x, read(right), rtol=0.005)


@parts(Number)
def test_the_right_answer_is_right_in_every_form(name, label, part):
    for form, given in forms(part.right):
        state, said = judged(name, label, given)
        assert state is State.RIGHT, (form, said)
        assert "is right" in said
    exact_form = show(part.right)
    if exact_form not in said:
        assert f"Exactly it is {exact_form}" in judged(name, label, read(part.right).tolist())[1]


@parts(Choice)
def test_the_right_word_is_right_as_it_is_usually_written(name, label, part):
    for said in (part.right, part.right.lower(), f" ({part.right}) ", np.str_(part.right)):
        assert judged(name, label, said)[0] is State.RIGHT


@parts(Program)
def test_the_right_function_is_exact_and_hidden_inputs_differ_in_every_size(name, label, part):
    for given in part.inputs:
        sizes = {}
        shapes = [*part.shapes.values(), part.returns]
        for letters, value in zip(shapes, (*given, part.right(*given)), strict=True):
            shape = read(value).shape
            assert len(shape) == len(letters.split()), (letters, shape)
            for letter, size in zip(letters.split(), shape, strict=True):
                assert sizes.setdefault(letter, size) == size
        assert len(set(sizes.values())) == len(sizes), f"sizes are not all different: {sizes}"
        assert max(sizes.values()) <= 8, "an input to be printed is small"
        assert max(read(value).size for value in given) <= 24
    assert len({str(read(given[0]).shape) for given in part.inputs}) >= 3


@parts(Program)
def test_functions_are_tested_on_integers_too(name, label, part):
    kinds = {type(n) for given in part.inputs for n in np.array(given[0], dtype=object).flat}
    assert int in kinds
    assert Fraction in kinds


def test_hidden_inputs_keep_softmax_unsaturated():
    scaled, weights = exercises(4)["4.9"][ANSWER], exercises(4)["4.11"][ANSWER]
    for Q, K in scaled.inputs:
        if len(K) > 1:
            assert read(exact.softmax(scaled.right(Q, K))).max() < 0.9
    for U, tau in weights.inputs:
        assert read(weights.right(U, tau)).max() < 0.99


# ---- wrong answers -----------------------------------------------------------------------------


@parts(Number)
def test_wrong_answers_differ_from_the_right_one_and_from_each_other(name, label, part):
    assert 3 <= len(part.wrong) <= 8
    answers = {"right": part.right, **{wrong.name: wrong.answer for wrong in part.wrong}}
    assert len(answers) == 1 + len(part.wrong), "a name is there twice"
    for one, other in itertools.combinations(answers, 2):
        assert gap(answers[one], answers[other]) > 2, (one, other)


@parts((Number, Choice))
def test_every_misconception_gets_its_own_diagnosis(name, label, part):
    messages = [to_plain(wrong.message) for wrong in part.wrong]
    assert len(set(messages)) == len(messages)
    for wrong, message in zip(part.wrong, part.wrong, strict=True):
        given = [form for _, form in forms(wrong.answer)] if isinstance(part, Number) else []
        for value in [*given, wrong.answer]:
            state, said = judged(name, label, value)
            assert state is State.WRONG
            assert said.endswith(message.message)


@parts(Program)
def test_wrong_functions_differ_and_each_gets_its_own_diagnosis(name, label, part):
    assert len(part.wrong) >= 5
    assert len({wrong.message for wrong in part.wrong}) == len(part.wrong)
    outcomes = {wrong.name: part.outcomes(wrong.answer) for wrong in part.wrong}
    for one, other in itertools.combinations(outcomes, 2):
        assert not all(map(alike, outcomes[one], outcomes[other])), (one, other)
    for wrong in part.wrong:
        state, said = judged(name, label, wrong.answer)
        assert state is State.WRONG
        assert said.endswith(wording.LIKELY.format(message=wrong.message)), wrong.name
        assert "is the first that fails" in said


SECOND = {chapter: second_versions(chapter) for chapter in CHAPTERS}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_function_was_written_a_second_time(chapter):
    programs = [
        p for p in PARTS if p[0].split(".")[0] == str(chapter) and isinstance(p[2], Program)
    ]
    right, wrong = SECOND[chapter]
    assert {name for name, _ in right} == {name for name, _, _ in programs}
    expected = {(name, w.name) for name, _, part in programs for w in part.wrong}
    assert {(name, misconception) for name, misconception, _ in wrong} == expected


@pytest.mark.parametrize(
    ("name", "misconception", "function"), [w for _, wrong in SECOND.values() for w in wrong]
)
def test_a_misconception_is_recognised_however_it_is_written(name, misconception, function):
    (wrong,) = (
        w for w in exercises(int(name.split(".")[0]))[name][ANSWER].wrong if w.name == misconception
    )
    state, said = judged(name, ANSWER, function)
    assert state is State.WRONG
    assert said.endswith(wording.LIKELY.format(message=wrong.message)), said


@pytest.mark.parametrize(("name", "function"), [r for right, _ in SECOND.values() for r in right])
def test_right_functions_pass(name, function):
    state, said = judged(name, ANSWER, function)
    assert state is State.RIGHT, said
    assert "inputs" in said


# ---- what a reader's function may do ----------------------------------------------------------


def right_scores(Q, K):
    return Q @ K.T / np.sqrt(Q.shape[1])


def raises(error):
    def function(Q, K):
        raise error

    return function


async def waits(Q, K):
    return right_scores(Q, K)


def prints(Q, K):
    print(right_scores(Q, K))


def prints_and_returns(Q, K):
    print("secret", file=sys.stderr)
    print("secret")
    return right_scores(Q, K)


def changes_K(Q, K):
    U = right_scores(Q, K)
    K[0] = 0
    return U


def warns(Q, K):
    np.log(-np.ones(1))
    warnings.warn("look out", stacklevel=1)
    return right_scores(Q, K)


def fails_late(Q, K):
    if len(Q) == 3:
        raise ValueError("three queries")
    return right_scores(Q, K)


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def calls_itself(Q, K):
    return calls_itself(Q, K)


FUNCTIONS = [
    (raises(ValueError("some $ text")), "raised ValueError: some text"),
    (raises(ValueError("some text")), "in its line 2: raise error"),
    (raises(Unprintable()), "raised"),
    (raises(SystemExit(3)), "raised SystemExit: 3"),
    (raises(ValueError("x" * 10_000)), "xxx..."),
    (fails_late, "Input 3 of 3"),
    (fails_late, "K = np.array([[1.0, 0.5]])"),
    (calls_itself, "raised RecursionError"),
    (lambda Q, K: None, "returned None. Is the return missing?"),
    (prints, "printed its result and returned None"),
    (lambda Q, K: right_scores(Q, K)[0], "T x S = 2 x 3, got 3"),
    (lambda Q, K: right_scores(Q, K)[None], "T x S = 2 x 3, got 1 x 2 x 3"),
    (lambda Q, K: 0.5, "T x S = 2 x 3, got one number"),
    (lambda Q, K: [], "Does a loop run over nothing?"),
    (lambda Q, K: np.zeros((0, 3)), "Does a loop run over nothing?"),
    (lambda Q, K: np.zeros((len(Q), len(K))), "Every entry is 0"),
    (lambda Q, K: right_scores(Q, K) * np.nan, "6 of 6 entries are nan or inf"),
    (lambda Q, K: right_scores(Q, K).round().astype(int), "array of integers"),
    (lambda Q, K: right_scores(Q, K).round(2), "The largest difference is 0.005"),
    (lambda Q, K: right_scores(Q, K).astype(np.float16), "The largest difference is"),
    (lambda Q, K: right_scores(Q, K).astype(complex), "got a complex one"),
    (lambda Q, K: right_scores(Q, K) > 0, "did not return numbers"),
    (lambda Q, K: right_scores(Q, K).astype(str), "did not return numbers. Expected"),
    (lambda Q, K: "[[1, 2, 3], [4, 5, 6]]", "got the text"),
    (lambda Q, K: [[1, 2, 3], [4, 5]], "differ in length"),
    (lambda Q, K: {"U": 1}, "an object of type dict"),
    (lambda Q, K: right_scores, "got a function"),
    (waits, "an object of type coroutine"),
    (lambda Q, K: (q @ K.T for q in Q), "type generator"),
    (lambda Q, K: np.zeros((1000, 1000)), f"more than {LARGEST}"),
    (lambda Q, K: [[..., 1, 2], [3, 4, 5]], "still `...`"),
    (lambda Q, K: np.ma.masked_less(right_scores(Q, K), 0), "got a masked array"),
    (lambda Q, K: Q.__imul__(2.0) @ K.T / 2 / np.sqrt(Q.shape[1]), "changed its argument Q"),
    (changes_K, "changed its argument K"),
]


@pytest.mark.parametrize(("function", "expected"), FUNCTIONS)
def test_whatever_a_function_does_is_told_in_a_sentence(function, expected, capsys):
    state, said = judged("4.9", ANSWER, function)
    assert state is State.WRONG
    assert expected in said
    assert "is the first that fails" in said
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (lambda Q: Q, "too many positional arguments"),
        (lambda Q, K, V: Q, "missing a required argument: 'V'"),
        (lambda *, Q, K: Q, "too many positional arguments"),
        (np.ones((2, 3)), "Hand it in without calling it"),
        ("scaled_scores", "Expected the function scaled_scores itself"),
        (None, "got None"),
    ],
)
def test_what_is_no_fitting_function_is_told(given, expected):
    state, said = judged("4.9", ANSWER, given)
    assert state is State.UNREADABLE
    assert expected in said


@pytest.mark.parametrize(
    ("result", "expected"),
    [([0.5], "got an array of shape 1."), ([[1, 2]], "got an array of shape 1 x 2.")],
)
def test_a_function_that_has_to_return_one_number(result, expected):
    said = judged("2.6", ANSWER, lambda X: np.array(result))[1]
    assert f"Expected one number as the result, {expected}" in said


def test_printing_and_warnings_of_a_right_function_are_kept_back(capsys):
    state, said = judged("4.9", ANSWER, prints_and_returns)
    assert state is State.RIGHT
    assert "left out here" in said
    assert judged("4.9", ANSWER, warns)[0] is State.RIGHT
    assert capsys.readouterr() == ("", "")


def test_another_error_of_the_same_kind_is_no_misconception():
    assert "Most likely" not in judged("4.9", ANSWER, raises(ValueError("another")))[1]
    assert "Most likely" in judged("4.9", ANSWER, lambda Q, K: Q @ K)[1]


def test_a_function_cannot_spoil_the_inputs_of_the_next_check():
    assert judged("4.9", ANSWER, changes_K)[0] is State.WRONG
    assert judged("4.9", ANSWER, right_scores)[0] is State.RIGHT


def test_an_interrupt_gets_through():
    with pytest.raises(KeyboardInterrupt):
        check("4.9", raises(KeyboardInterrupt()))


def test_the_printed_call_fails_as_the_check_says():
    _, said = judged("4.11", ANSWER, lambda U, tau: np.exp(U / tau))
    (call,) = (line for line in said.split("weights_at(U, tau)\n") if "np.array" in line)
    names = {"np": np}
    exec(call.partition("fails:\n")[2], names)
    assert names["U"].shape == (2, 3)
    assert names["tau"] == 0.5


def test_a_result_with_three_axes_is_printed_matrix_by_matrix():
    state, said = judged("9.12", ANSWER, lambda X, H: [X[:, ::2], X[:, 1::2]])
    assert state is State.WRONG
    returned, expected = said.split("cut_into_heads(X, H)\n")[1].split("expected")
    head_1, head_2 = returned.removeprefix("returned").split("\n\n")
    assert head_1.split() == [f"{n}.0000" for i in (10, 20, 30, 40) for n in (i + 1, i + 3, i + 5)]
    assert head_2.split() == [f"{n}.0000" for i in (10, 20, 30, 40) for n in (i + 2, i + 4, i + 6)]
    assert {len(line) for line in returned.splitlines() if line} == {
        len("returned  11.0000  13.0000  15.0000")
    }
    first = expected.split("The largest")[0].split("\n\n")[0]
    assert first.split() == [f"{i}{c}.0000" for i in "1234" for c in "123"]


def test_an_argument_with_three_axes_is_printed_as_code_that_runs():
    _, said = judged("9.5", ANSWER, lambda O, W_O: 0.0)
    names = {"np": np}
    exec(said.partition("fails:\n")[2].partition("project_heads(")[0], names)
    O, W_O = exercises(9)["9.5"][ANSWER].inputs[0]
    for name, right in (("O", O), ("W_O", W_O)):
        assert np.array_equal(names[name], read(right))
        assert f"{name} = np.array([[[" in said
    assert max(map(len, said.splitlines())) < 100


def test_whole_numbers_are_blamed_only_where_fractions_were_cut_off():
    assert "integers" not in judged("9.12", ANSWER, lambda X, H: X.reshape(H, len(X), -1))[1]
    assert "integers" in judged("9.12", ANSWER, lambda X, H: np.array(np.hsplit(X, H), int))[1]


# ---- what cannot be read -------------------------------------------------------------------------

itself = [1, 2]
itself.append(itself)


class Odd:
    def __repr__(self):
        raise RuntimeError("no repr")

    __float__ = __len__ = __iter__ = __eq__ = __hash__ = __bool__ = None


x = sp.Symbol("x")
GIVEN = [
    (None, "got None"),
    ("2/3", "got the text '2/3'. Write numbers without quotation marks"),
    (b"2/3", "got the text"),
    (np.str_("2/3"), "got the text"),
    (["2/3"], "got the text"),
    (np.array(["2/3"]), "got the text"),
    (np.array(["2/3"], dtype=object), "got the text"),
    (True, "got True"),
    (np.bool_(True), "Expected one number, got"),
    (np.array([True]), "got True"),
    (sp.true, "type BooleanTrue"),
    (2 / 3 + 0j, "a complex one"),
    (np.complex128(1), "a complex one"),
    (math.nan, "got nan"),
    (np.float32("inf"), "got inf"),
    (np.array([np.nan]), "got (nan)"),
    (sp.nan, "got nan"),
    (sp.oo, "got oo"),
    (1 + sp.zoo, "got zoo"),
    (sp.Float("nan"), "got nan"),
    (10**400, "too large"),
    (10**10_000, "too large"),
    (Fraction(10**400, 3), "too large"),
    (sp.Integer(10) ** 400, "Expected one number, got"),
    (sp.exp(sp.exp(sp.exp(100))), "too large"),
    (sp.Pow(2, sp.Pow(10, 50, evaluate=False), evaluate=False), "too large"),
    (2 * x / 3, "2*x/3 still contains x"),
    (sp.sqrt(-2), "contains ImaginaryUnit"),
    (sp.log(-2, evaluate=False), "is not a real number"),
    (sp.Pow(-2, sp.Rational(1, 3), evaluate=False), "is not a real number"),
    (sp.Function("f")(2), "contains f"),
    (sp.Integral(x, (x, 0, 1)), "contains Integral"),
    (sp.Add(*[sp.sqrt(sp.prime(n)) for n in range(1, 400)]), f"more than {LARGEST}"),
    (np.zeros(2000), f"more than {LARGEST}"),
    (np.broadcast_to(1.0, (10**6, 10**6)), f"more than {LARGEST}"),
    ([0] * 10**6, f"more than {LARGEST}"),
    ([[[[0] * 100] * 100] * 100] * 100, f"more than {LARGEST}"),
    (sp.zeros(40, 40), f"more than {LARGEST}"),
    ([[[[[1]]]]], "lists in lists"),
    (itself, "lists in lists"),
    ([[1, 2], [3]], "differ in length"),
    ([1, 2], "got an array of shape 2"),
    ([], "got an array of shape 0"),
    (sp.eye(2), "got an array of shape 2 x 2"),
    ([...], "still `...`"),
    (np.ma.array([2 / 3], mask=[True]), "a masked array, with entries left open"),
    (np.ma.masked, "Expected one number, got a masked array"),
    ({"answer": 1}, "type dict"),
    ({1}, "type set"),
    (range(3), "type range"),
    (len, "got a function"),
    (Odd(), "type Odd"),
    (sp.MatrixSymbol("M", 2, 2), "MatrixSymbol"),
]


@pytest.mark.parametrize(("given", "expected"), GIVEN, ids=range(len(GIVEN)))
def test_what_is_no_number_is_told(given, expected):
    state, said = judged("4.3", ANSWER, given)
    assert state is State.UNREADABLE
    assert expected in said
    assert len(said) < 250


def test_an_array_is_asked_for_by_its_shape():
    assert "an array of shape 3, got one number" in judged("4.7", ANSWER, 3)[1]
    assert "an array of shape 3, got an array of shape 2" in judged("4.7", ANSWER, [1, 2])[1]
    column = [[Fraction(n, 14)] for n in (1, 4, 9)]
    assert judged("4.7", ANSWER, column)[0] is State.RIGHT


def test_text_is_never_evaluated(tmp_path):
    trap = f"open({str(tmp_path / 'trap')!r}, 'w')"
    given = [trap, [trap], [[trap, 1]], np.array([trap, 2], dtype=object), (trap,), trap.encode()]
    for name, label, _ in PARTS:
        for answer in [*given, lambda *arguments: [[trap]], lambda *arguments: trap]:
            assert judged(name, label, answer)[0] in (State.UNREADABLE, State.WRONG)
    assert list(tmp_path.iterdir()) == []


def test_wrong_words_are_answered_with_the_list_of_words():
    for given in ("H5", "", 3, None, ["H3"], "H3" * 1000, sp.Symbol("H3")):
        state, said = judged("4.4", "fails", given)
        assert state is State.UNREADABLE
        assert "Expected one of 'H1', 'H2', 'H3', 'H4' as text" in said
        assert len(said) < 150


def test_an_answer_that_no_misconception_explains():
    assert "hints" in judged("4.3", ANSWER, 17)[1]
    assert "Was something rounded on the way?" in judged("4.3", ANSWER, 0.66)[1]
    assert "2 of 3 entries are right" in judged("4.7", ANSWER, [1 / 14, 2 / 7, 0.6])[1]


def test_three_digits_are_enough_and_two_are_not():
    assert judged("4.3", ANSWER, 0.667)[0] is State.RIGHT
    assert judged("4.3", ANSWER, 0.666)[0] is State.WRONG
    assert judged("4.3", ANSWER, 0.67)[0] is State.WRONG


def test_a_whole_number_is_exact_or_rounded():
    count = Number(2304, [])
    for given in (2304, 2300, 2300.0, 2.3e3, [2304], np.float32(2304), sp.Integer(2304), 2304.4):
        assert count.judge(given).state is State.RIGHT, given
    for given in (2305, 2303, 2305.0, 2301, 2308, sp.Integer(2305), Fraction(2305)):
        judgement = count.judge(given)
        assert judgement.state is State.WRONG, given
        assert judgement.lines[-1] == wording.COUNT
    weights = Number(3 * 768 * 768, [])
    for given in (1.77e6, 1769472, np.float32(1769472), 1769500, 1.7695e6):
        assert weights.judge(given).state is State.RIGHT, given
    assert weights.judge(3 * 768 * 769).state is State.WRONG  # with a bias for every column
    assert Number((0, 2304), []).judge([0, 2305]).lines[1] == "1 of 2 entries are right."
    assert Number(Fraction(2304001, 1000), []).judge(2304).state is State.RIGHT


def test_a_table_with_one_row_can_be_handed_in():
    for right in (((1, Fraction(1, 2)),), ((3,),), ((1,), (2,))):
        one_row = Number(right, [])
        for given in (right, [list(row) for row in right], read(right), sp.Matrix(right)):
            assert one_row.judge(given).state is State.RIGHT
        assert one_row.judge(sp.flatten(right)).state is State.RIGHT
        assert one_row.judge([[7, 7, 7]]).state is State.UNREADABLE


def test_minus_zero_is_shown_as_zero():
    assert show([-0.0, np.float64(-0.0), -1.0]) == "(0, 0, -1)"


# ---- check ---------------------------------------------------------------------------------------


def test_an_untouched_answer_says_so_and_nothing_else():
    for chapter in CHAPTERS:
        for name in exercises(chapter):
            verdict = check(name)
            assert verdict.state is State.OPEN
            assert repr(verdict) == f"Exercise {name}: not answered yet"
            assert verdict._repr_html_().count("<p>") == 1


def test_a_function_that_still_returns_dots_is_not_answered():
    assert check("4.9", lambda Q, K: ...).state is State.OPEN


def test_an_exercise_answered_in_part_is_not_right_yet():
    verdict = check("4.2", scaled=16)
    assert verdict.state is State.WRONG
    assert repr(verdict) == (
        "Exercise 4.2: not yet\n  raw: not answered yet\n  scaled: 16 is right, exactly."
    )
    assert check("4.2", raw=800, scaled="16").state is State.UNREADABLE
    assert check("4.2", raw=800, scaled=16).state is State.RIGHT


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: check("4.2", 800), 'has 2 answers: write check("4.2", raw=..., scaled=...)'),
        (lambda: check("4.2", (800, 16)), "has 2 answers"),
        (lambda: check("4.2", 800, 16), 'has 2 answers: write check("4.2", raw=..., scaled=...)'),
        (lambda: check("4.2", 800, scaled=16), "has 2 answers"),
        (lambda: check("4.7", 1, 4, 9), 'has one answer: write check("4.7", answer)'),
        (lambda: check("4.3", 1, answer=1), "has one answer"),
        (lambda: check("4.9", right_scores, [[1]], [[1]]), "has one answer"),
        (lambda: check("4.2", raw=800, sclaed=16), "There is no answer called sclaed."),
        (lambda: check("4.3", variance=1), 'has one answer: write check("4.3", answer)'),
    ],
)
def test_answers_handed_in_otherwise_are_told_how(call, expected):
    assert call().state is State.UNREADABLE
    assert expected in repr(call())
    assert to_html(expected) in call()._repr_html_()


def test_the_one_answer_may_be_named():
    assert check("4.3", answer=sp.Rational(2, 3)).state is State.RIGHT


@pytest.mark.parametrize("name", ["4.99", "99.1", "04.2", "4", "", "4.2.1", "../4.2", "٤.2", "0.1"])
def test_an_exercise_that_is_not_there(name):
    with pytest.raises(ValueError, match="expected an exercise with a check"):
        check(name)


def test_the_name_of_an_exercise_is_text():
    with pytest.raises(TypeError, match=r'as text like "4.2", got 4\.1'):
        check(4.10)


def test_a_verdict_is_safe_html():
    page = check("4.3", "<script>alert('$x$')</script>")._repr_html_()
    assert "<script" not in page
    assert "&lt;script" in page
    page = check("4.9", raises(ValueError("<b>no</b> $\\sqrt{2}$ {x} _")))._repr_html_()
    assert "<b>no</b>" not in page
    assert "&lt;b&gt;no" in page
    judgement = Judgement(State.WRONG, (Block("1 < 2"),))
    assert "1 &lt; 2" in engine.Verdict("4.0", State.WRONG, {ANSWER: judgement})._repr_html_()


def test_verdicts_are_the_same_every_time():
    random.seed(1)
    for _ in range(2):
        assert repr(check("4.9", right_scores)) == repr(check("4.9", right_scores))
    assert "0x" not in repr(check("4.3", object())) + repr(check("4.3", lambda: 1))


def test_badges_can_be_read():
    for ink, ground in engine.BADGES.values():
        assert style.contrast(ink, ground) >= 4.5
    assert set(engine.BADGES) == set(State)


def test_all_that_is_said_is_sound_markup():
    said = [text for text in vars(wording).values() if isinstance(text, str)]
    said += [wrong.message for _, _, part in PARTS for wrong in part.wrong]
    for text in said:
        to_html(text)
    wrong = [(name, w.message) for name, _, part in PARTS for w in part.wrong]
    assert [w for w in wrong if not w[1].endswith((".", "?"))] == []


def test_same_and_alike_tell_apart():
    assert same(np.array([1.0, np.nan]), np.array([1.0 + 1e-9, np.nan]))
    assert not same(np.array([1.0, np.nan]), np.array([np.nan, 1.0]))
    assert not same(np.array([1.0]), np.array([1.0001]))


def test_a_misconception_that_is_the_right_answer_would_be_seen():
    bad = Number(Fraction(1, 2), [Wrong("the same", 0.5, "no.")] * 3)
    with pytest.raises(AssertionError):
        test_wrong_answers_differ_from_the_right_one_and_from_each_other("4.0", ANSWER, bad)


def test_importing_the_exercises_loads_no_widgets_and_attnbook_no_exercises():
    code = (
        "import json, sys, attnbook\n"
        "first = 'attnbook.exercises' in sys.modules\n"
        "import attnbook.exercises\n"
        "names = ('ipywidgets', 'IPython', 'matplotlib', 'attnbook.exercises.ch04')\n"
        "print(json.dumps([first, [name for name in names if name in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == [False, []]


# ---- the exercises in the chapters ---------------------------------------------------------------

HEAD = r"### Exercise ({}\.\d+): (.+)\n\n\*(easy|medium|hard), (\d+) minutes?(?:;.+)?\*\n\n"


def chapter(number):
    (path,) = (path for path in book.chapter_paths() if path.name.startswith(f"{number:02d}_"))
    return book.load(path)


def solution_of(text):
    """The code of a solution: the last Python block of a folded text."""
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)[-1]


def checks_in(source):
    """The exercises that a cell checks."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [c.args[0].value for c in calls if getattr(c.func, "id", "") == "check"]


def run(source):
    """Run a cell after the imports of a chapter and return the value of its last line."""
    names = {"np": np, "sp": sp, "check": check}
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "<cell>", "exec"), names)
    return eval(compile(last, "<cell>", "eval"), names)


@pytest.mark.parametrize("number", CHAPTERS)
def test_every_exercise_stands_in_its_chapter(number):
    cells = chapter(number).cells
    headed = [re.match(HEAD.format(number), cell.source) for cell in cells]
    names = [match[1] for match in headed if match]
    assert names == [f"{number}.{n}" for n in range(1, len(names) + 1)], "numbered in order"
    assert len(names) >= 8
    answers = [c for c in cells if c.cell_type == "code" and "exercise" in book.tags(c)]
    assert [checks_in(cell.source) for cell in answers] == [[name] for name in exercises(number)]
    assert set(exercises(number)) <= set(names)


@pytest.mark.parametrize("number", CHAPTERS)
def test_an_exercise_has_its_hints_before_the_answer_and_its_solution_folded_after(number):
    cells = chapter(number).cells
    for i, cell in enumerate(cells):
        match = re.match(HEAD.format(number), cell.source)
        if not match:
            continue
        name = match[1]
        summaries = re.findall(r"<details><summary>(.*?)</summary>\n\n", cell.source)
        hints = [text for text in summaries if text.startswith("Hint")]
        assert hints == [f"Hint {n}" for n in range(1, len(hints) + 1)], name
        assert hints, name
        if name in exercises(number):
            assert summaries == hints
            assert checks_in(cells[i + 1].source) == [name]
            solution = cells[i + 2].source
            assert solution.startswith(f"<details><summary>Solution of {name}"), name
            assert solution.endswith("</details>"), name
        else:  # a proof: the solution is in the same cell, with what to mark oneself by
            assert summaries[-1].startswith(f"Solution of {name}")
            assert "one point each" in cell.source


@pytest.mark.parametrize("number", CHAPTERS)
def test_the_answer_cells_are_untouched_and_the_printed_solutions_are_right(number):
    cells = chapter(number).cells
    for cell, solution in itertools.pairwise(cells):
        if cell.cell_type == "code" and "exercise" in book.tags(cell):
            (name,) = checks_in(cell.source)
            assert run(cell.source).state is State.OPEN
            (output,) = cell.outputs
            assert output.data["text/plain"] == f"Exercise {name}: not answered yet"
            verdict = run(solution_of(solution.source))
            assert verdict.exercise == name
            assert verdict.state is State.RIGHT, verdict
