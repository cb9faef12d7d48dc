"""R (5.34), (5.35), exercises 5.7 and 5.11, and what the code itself multiplies and stores."""

import importlib
import re

import numpy as np
import pytest

from attnbook import cost, multi_head_attention

SIZES = {
    "B": 2, "T": 5, "S": 7, "d": 12, "d_m": 9, "H_q": 6, "H_kv": 3, "d_k": 4, "d_v": 11,
}  # fmt: skip


def layer(*, B, T, S, d, d_m, H_q, H_kv, d_k, d_v):
    shapes = (B, T, d), (B, S, d_m), (d, H_q * d_k), (d_m, H_kv * d_k), (d_m, H_kv * d_v)
    return [np.ones(shape) for shape in (*shapes, (H_q * d_v, d))]


def without(names, sizes=SIZES):
    return {name: n for name, n in sizes.items() if name not in names}


def multiply_adds(X, Y):
    """X Y by three loops, and how many multiply-adds they took."""
    count, P = 0, np.zeros((X.shape[0], Y.shape[1]))
    for i in range(X.shape[0]):
        for j in range(Y.shape[1]):
            for k in range(X.shape[1]):
                P[i, j] += X[i, k] * Y[k, j]
                count += 1
    return P, count


# FLOPs


def test_a_product_counts_two_for_each_multiply_add():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(3, 5)), rng.normal(size=(5, 7))
    P, count = multiply_adds(X, Y)
    product, counted = cost.counting_product()
    np.testing.assert_allclose(product(X, Y), P)
    assert counted == [2 * count] == [cost.product_flops((3, 5), (5, 7))]
    product(np.ones((4, 1, 3, 5)), np.ones((2, 5, 7)))
    assert counted[1:] == [8 * 2 * count]
    assert cost.product_flops((0, 5), (5, 7)) == 0
    assert cost.counting_product()[1] == []


@pytest.mark.parametrize(
    ("X", "Y"), [((3, 5), (7, 5)), ((5,), (5, 3)), ((3, 5), (5,)), ((2, 3, 5), (4, 5, 7))]
)
def test_shapes_that_cannot_be_multiplied(X, Y):
    with pytest.raises(ValueError, match=r"expected shapes|broadcast"):
        cost.product_flops(X, Y)


def count_products(monkeypatch, call):
    """Run call, and return the FLOPs of every product that attnbook makes on the way."""
    counting, counted = cost.counting_product()

    def product(X, Y, scale=1.0):
        return counting(X, Y) * scale

    for module in ("heads", "attention"):
        monkeypatch.setattr(importlib.import_module(f"attnbook.{module}"), "product", product)
    return call(), counted


@pytest.mark.parametrize("H_kv", [1, 2, 3, 6])
def test_the_formula_is_what_the_code_multiplies(monkeypatch, H_kv):
    sizes = SIZES | {"H_kv": H_kv}
    plain = multi_head_attention(*layer(**sizes), H_q=6, H_kv=H_kv).Y
    Y, counted = count_products(
        monkeypatch, lambda: multi_head_attention(*layer(**sizes), H_q=6, H_kv=H_kv).Y
    )
    np.testing.assert_array_equal(Y, plain)
    assert counted == list(cost.flops(**sizes))
    assert cost.flops(**sizes)._fields == ("Q", "K", "V", "E", "O", "Y")


def test_r_5_34():
    B, T, S, d, H = 2, 5, 7, 12, 3
    d_k = d // H
    flops = cost.flops(B=B, T=T, S=S, d=d, H_q=H)
    assert flops.Q == flops.Y == 2 * B * T * d**2
    assert 4 * B * S * d**2 == flops.K + flops.V
    assert flops.E == flops.O == 2 * B * H * T * S * d_k


def test_projections_grow_with_t_and_scores_with_its_square():
    one, two = (cost.flops(T=n, S=n, d=64, H_q=4) for n in (100, 200))
    assert two.Q + two.K + two.V + two.Y == 2 * (one.Q + one.K + one.V + one.Y)
    assert two.E + two.O == 4 * (one.E + one.O)
    # they are equal at T = 2 d, where 8 B T d^2 = 4 B T^2 d
    even = cost.flops(T=128, S=128, d=64, H_q=4)
    assert even.Q + even.K + even.V + even.Y == even.E + even.O


def test_exercise_5_11_sharing_makes_projections_cheaper_and_scores_not():
    mha, gqa = (cost.flops(T=9, S=9, d=4096, H_q=32, H_kv=n) for n in (32, 8))
    assert (mha.K, mha.V) == (4 * gqa.K, 4 * gqa.V)
    assert (mha.Q, mha.E, mha.O, mha.Y) == (gqa.Q, gqa.E, gqa.O, gqa.Y)
    mha, gqa = (
        cost.cache_bytes(S=9, H_kv=n, d_k=128, bytes_per_number=2, layers=5) for n in (32, 8)
    )
    assert mha == 4 * gqa


# Parameters and bytes


@pytest.mark.parametrize("H_kv", [1, 3, 6])
def test_parameters_are_the_sizes_of_the_matrices(H_kv):
    sizes = SIZES | {"H_kv": H_kv}
    parameters = cost.parameters(**without(("B", "T", "S"), sizes))
    assert parameters._fields == ("W_Q", "W_K", "W_V", "W_O")
    assert list(parameters) == [W.size for W in layer(**sizes)[2:]]


def test_r_5_8_parameters():
    d, d_h = 512, 16
    for H_kv in (32, 8, 1):
        parameters = cost.parameters(d=d, H_q=32, H_kv=H_kv)
        assert 2 * d * H_kv * d_h == parameters.W_K + parameters.W_V
        assert parameters.W_Q == parameters.W_O == d * d


def test_defaults():
    full = {"T": 5, "S": 7, "d": 12, "H_q": 3, "H_kv": 3, "d_k": 4, "d_v": 4, "d_m": 12, "B": 1}
    assert cost.flops(T=5, S=7, d=12, H_q=3) == cost.flops(**full)
    assert cost.parameters(d=12, H_q=3) == cost.parameters(**without(("T", "S", "B"), full))
    assert cost.flops(T=5, S=7, d=12, H_q=3, d_k=7) == cost.flops(**full | {"d_k": 7, "d_v": 7})
    one = {"S": 3, "H_kv": 2, "d_k": 5, "bytes_per_number": 4}
    assert cost.cache_bytes(**one) == cost.cache_bytes(**one, d_v=5, layers=1, B=1)


def test_r_5_35():
    sizes = {"B": 2, "H_q": 16, "T": 4096, "S": 4096}
    assert cost.weight_bytes(**sizes, bytes_per_number=2) == 1_073_741_824
    A = multi_head_attention(*layer(**SIZES), H_q=6, H_kv=3).A
    some = {name: SIZES[name] for name in ("B", "H_q", "T", "S")}
    assert cost.weight_bytes(**some, bytes_per_number=8) == A.nbytes


def test_exercise_5_7():
    gqa, mha = (cost.cache_bytes(S=2048, H_kv=n, d_k=64, bytes_per_number=2) for n in (6, 24))
    assert gqa == 3_145_728 == 3 * 2**20
    assert mha == 4 * gqa
    assert cost.cache_bytes(S=2048, H_kv=6, d_k=64, bytes_per_number=2, layers=30, B=5) == 150 * gqa
    forward = multi_head_attention(*layer(**SIZES), H_q=6, H_kv=3)
    sizes = {name: SIZES[name] for name in ("B", "S", "H_kv", "d_k", "d_v")}
    assert cost.cache_bytes(**sizes, bytes_per_number=8) == forward.K.nbytes + forward.V.nbytes


def test_results_are_exact_integers():
    n = np.int32(2**30)
    assert cost.weight_bytes(B=n, H_q=n, T=n, S=n, bytes_per_number=2) == 2**121
    assert cost.flops(T=2**40, S=2**40, d=2**20, H_q=2**4).E == 2 * 2**80 * 2**20
    for number in (*cost.flops(**SIZES), *cost.parameters(d=np.int64(8), H_q=np.uint8(2))):
        assert type(number) is int
    assert sum(cost.flops(T=0, S=0, d=8, H_q=2)) == 0


@pytest.mark.parametrize("function", ["flops", "parameters", "weight_bytes", "cache_bytes"])
@pytest.mark.parametrize("bad", [-1, 2.0, "3", True, np.array([2]), 1 + 0j])
def test_every_size_is_an_integer(function, bad):
    arguments = {
        "flops": SIZES,
        "parameters": without(("B", "T", "S")),
        "weight_bytes": without(("d", "d_m", "H_kv", "d_k", "d_v")) | {"bytes_per_number": 2},
        "cache_bytes": without(("T", "d", "d_m", "H_q")) | {"bytes_per_number": 2, "layers": 3},
    }[function]
    assert getattr(cost, function)(**arguments)
    for name in arguments:
        with pytest.raises(ValueError, match=f"^{name} must be one integer, [01] or more; got"):
            getattr(cost, function)(**arguments | {name: bad})


@pytest.mark.parametrize("function", ["flops", "parameters"])
def test_sizes_that_do_not_divide(function):
    lengths = {"T": 2, "S": 3} if function == "flops" else {}
    with pytest.raises(ValueError, match=re.escape("d = 10 is no multiple of H_q = 4, so d_k")):
        getattr(cost, function)(**lengths, d=10, H_q=4)
    with pytest.raises(ValueError, match="6 query heads cannot share 4 key/value heads evenly"):
        getattr(cost, function)(**lengths, d=12, H_q=6, H_kv=4)
    assert getattr(cost, function)(**lengths, d=10, H_q=4, d_k=3)
