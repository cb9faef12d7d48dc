"""What chapter 06 says of masks in JAX, ONNX and PyTorch, asked of the libraries themselves.

With Q = 0 and V = I the output *is* the matrix of weights, so one call shows whom a query reads.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from attnbook import attention, masks

jax.config.update("jax_platforms", "cpu")

SHAPES = [(2, 5), (5, 2), (3, 4), (4, 4)]
TORCH = "2.13"  # the version that the chapter's tables state


def equal_weights(allowed):
    """The weights of equal scores over an allowed set without empty rows."""
    return allowed / allowed.sum(axis=-1, keepdims=True)


def some_mask(T, S):
    """A mask without symmetry, with a key in every row."""
    allowed = np.random.default_rng([T, S]).random((T, S)) < 0.5
    allowed[:, 1] = True
    return allowed


def probe(attend, T, S):
    """The weights that `attend(Q, K, V)` gives to equal scores."""
    return attend(np.zeros((T, S)), np.zeros((S, S)), np.eye(S))


# ---- JAX ---------------------------------------------------------------------------------------


def in_jax(Q, K, V, **options):
    """jax.nn.dot_product_attention of one head."""
    Q, K, V = (jnp.asarray(x, jnp.float32)[None, :, None] for x in (Q, K, V))
    return np.asarray(jax.nn.dot_product_attention(Q, K, V, **options))[0, :, 0]


@pytest.mark.parametrize(("T", "S"), SHAPES)
def test_jax_masks(T, S):
    allowed = some_mask(T, S)
    first = allowed | (np.arange(S) == 0)  # a key in every row of its intersections too
    for options, here in (
        ({"mask": allowed[None, None]}, allowed),
        ({"bias": masks.to_additive(allowed)[None, None]}, allowed),
        ({"is_causal": True}, masks.causal(T, S)),
        (
            {"mask": first[None, None], "is_causal": True},
            first & masks.causal(T, S),
        ),
        (
            {"key_value_seq_lengths": np.array([S - 1], np.int32)},
            np.broadcast_to(masks.padding(np.arange(S) < S - 1), (T, S)),
        ),
    ):
        A = probe(lambda *x, options=options: in_jax(*x, **options), T, S)
        np.testing.assert_allclose(A, equal_weights(here), atol=1e-6)


def test_jax_and_a_row_without_a_key():
    allowed = some_mask(3, 5)
    allowed[1] = False
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(n, 4)) for n in (3, 5, 5))
    O = in_jax(Q, K, V, mask=allowed[None, None])
    np.testing.assert_allclose(O[1], V.mean(axis=0), atol=1e-6)
    lengths = np.array([0], np.int32)
    O = in_jax(Q, K, V, key_value_seq_lengths=lengths)
    np.testing.assert_allclose(O, np.tile(V.mean(axis=0), (3, 1)), atol=1e-6)
    O = in_jax(Q, K, V, bias=masks.to_additive(allowed)[None, None])
    assert np.isnan(O[1]).all()
    assert np.isfinite(O[[0, 2]]).all()
    O = in_jax(Q, K, V, query_seq_lengths=np.array([2], np.int32))
    assert (O[2] == 0).all()
    assert O[1].any()


def test_jax_hides_nan_in_a_key_and_not_in_a_value():
    rng = np.random.default_rng(1)
    Q, K, V = (rng.normal(size=(n, 4)) for n in (3, 5, 5))
    allowed = np.ones((3, 5), bool)
    allowed[:, 3] = False
    bad = K.copy()
    bad[3] = math.nan
    O = in_jax(Q, bad, V, mask=allowed[None, None])
    np.testing.assert_allclose(O, attention(Q, K, V, allowed).O, atol=1e-6)
    bad = V.copy()
    bad[3] = math.nan
    assert np.isnan(in_jax(Q, K, bad, mask=allowed[None, None])).all()


# ---- ONNX --------------------------------------------------------------------------------------


def in_onnx(Q, K, V, is_causal=0, **more):
    """The operator Attention, of one head, in the reference evaluator."""
    inputs = {"Q": Q, "K": K, "V": V} | more
    heads = {"Q", "K", "V", "past_key", "past_value"}
    inputs = {n: np.asarray(x)[None, None] if n in heads else x for n, x in inputs.items()}
    slots = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    outputs = ["Y", "present_key", "present_value"][: 3 if "past_key" in inputs else 1]
    node = helper.make_node(
        "Attention", [n if n in inputs else "" for n in slots], outputs, is_causal=is_causal
    )
    graph = helper.make_graph(
        [node],
        "one_operator",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in inputs.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    return ReferenceEvaluator(model).run(None, inputs)[0][0, 0]


@pytest.mark.parametrize(("T", "S"), SHAPES)
def test_onnx_masks_and_the_causal_mask_without_a_cache(T, S):
    allowed = some_mask(T, S)
    first = allowed | (np.arange(S) == 0)
    for options, here in (
        ({"attn_mask": allowed}, allowed),
        ({"attn_mask": masks.to_additive(allowed)}, allowed),
        ({"is_causal": 1}, masks.causal(T, S)),
        ({"attn_mask": first, "is_causal": 1}, first & masks.causal(T, S)),
        ({"attn_mask": first[:, :-1]}, first & (np.arange(S) < S - 1)),
    ):
        A = probe(lambda *x, options=options: in_onnx(*x, **options), T, S)
        np.testing.assert_allclose(A, equal_weights(here), atol=1e-12)


def test_onnx_offsets():
    T, past, new = 2, 3, 2
    S = past + new
    A = in_onnx(
        np.zeros((T, S)),
        np.zeros((new, S)),
        np.eye(S)[past:],
        is_causal=1,
        past_key=np.zeros((past, S)),
        past_value=np.eye(S)[:past],
    )
    here = masks.causal(past + np.arange(T), S)
    np.testing.assert_allclose(A, equal_weights(here), atol=1e-12)
    S = 6
    for n in (4, 1):
        A = probe(lambda *x, n=n: in_onnx(*x, is_causal=1, nonpad_kv_seqlen=np.array([n])), T, S)
        here = masks.causal(n - T + np.arange(T), S) & masks.padding(np.arange(S) < n)
        np.testing.assert_array_equal(A > 0, here)  # zeros in the row without a key
        assert np.isfinite(A).all()


def test_onnx_gives_zeros_to_a_row_without_a_key():
    allowed = some_mask(3, 5)
    allowed[1] = False
    for mask in (allowed, masks.to_additive(allowed)):
        A = probe(lambda *x, mask=mask: in_onnx(*x, attn_mask=mask), 3, 5)
        assert (A[1] == 0).all()
        np.testing.assert_allclose(A[[0, 2]], equal_weights(allowed[[0, 2]]), atol=1e-12)


# ---- PyTorch, where it is installed ------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not installed: not asked")
    if not module.__version__.startswith(TORCH):
        pytest.skip(f"the chapter speaks of PyTorch {TORCH}, this is {module.__version__}")
    return module


def in_torch(torch, Q, K, V, **options):
    sdpa = torch.nn.functional.scaled_dot_product_attention
    options = {n: torch.tensor(x) if isinstance(x, np.ndarray) else x for n, x in options.items()}
    return sdpa(*(torch.tensor(x)[None, None] for x in (Q, K, V)), **options)[0, 0].numpy()


@pytest.mark.parametrize(("T", "S"), SHAPES)
def test_torch_masks(torch, T, S):
    allowed = some_mask(T, S)
    for options, here in (
        ({"attn_mask": allowed}, allowed),
        ({"attn_mask": masks.to_additive(allowed)}, allowed),
        ({"is_causal": True}, masks.causal(T, S)),
    ):
        A = probe(lambda *x, options=options: in_torch(torch, *x, **options), T, S)
        np.testing.assert_allclose(A, equal_weights(here), atol=1e-12)


@pytest.mark.parametrize(("T", "S"), [(2, 5), (3, 4), (4, 4)])
def test_torch_has_both_corners(torch, T, S):
    bias = pytest.importorskip("torch.nn.attention.bias")
    for made, first in ((bias.causal_upper_left, 0), (bias.causal_lower_right, S - T)):
        A = probe(lambda *x, made=made: in_torch(torch, *x, attn_mask=made(T, S)), T, S)
        here = masks.causal(np.arange(first, first + T), S)
        np.testing.assert_allclose(A, equal_weights(here), atol=1e-12)


def test_torch_multihead_attention_means_the_opposite_by_true(torch):
    B, H, T, S = 2, 3, 4, 5
    layer = torch.nn.MultiheadAttention(6, H, batch_first=True)
    rng = np.random.default_rng(3)
    x, y = (torch.tensor(rng.normal(size=(B, n, 6)), dtype=torch.float32) for n in (T, S))
    allowed = rng.random((B, H, T, S)) < 0.5
    allowed[..., :2] = True
    real = np.array([[True] * 5, [True] * 3 + [False] * 2])

    def read(attn_mask, **options):
        options = {n: torch.tensor(m) for n, m in options.items()} | {"average_attn_weights": False}
        return layer(x, y, y, attn_mask=torch.tensor(attn_mask), **options)[1].detach().numpy() > 0

    first = allowed[0, 0]
    np.testing.assert_array_equal(read(~first), np.broadcast_to(first, (B, H, T, S)))
    by_head = read(~allowed.reshape(B * H, T, S))
    np.testing.assert_array_equal(by_head, allowed)
    both = read(~first, key_padding_mask=~real)
    here = first & masks.padding(real)[:, None]
    np.testing.assert_array_equal(both, np.broadcast_to(here, (B, H, T, S)))
    M, pads = (masks.to_additive(x, np.float32) for x in (first, real))
    np.testing.assert_array_equal(read(M, key_padding_mask=pads), both)


def test_torch_gives_zeros_to_a_row_without_a_key(torch):
    allowed = some_mask(3, 5)
    allowed[1] = False
    for mask in (allowed, masks.to_additive(allowed)):
        A = probe(lambda *x, mask=mask: in_torch(torch, *x, attn_mask=mask), 3, 5)
        assert (A[1] == 0).all()


@pytest.mark.parametrize("where", ["key", "value"])
def test_torch_does_not_hide_nan(torch, where):
    rng = np.random.default_rng(2)
    Q, K, V = (rng.normal(size=(n, 4)) for n in (3, 5, 5))
    (K if where == "key" else V)[3] = math.nan
    allowed = np.ones((3, 5), bool)
    allowed[:, 3] = False
    for mask in (allowed, masks.to_additive(allowed)):
        assert np.isnan(in_torch(torch, Q, K, V, attn_mask=mask)).any()


@pytest.mark.parametrize(
    ("need_weights", "train", "grad", "is_nan"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (False, True, True, False),
        (False, False, True, False),
        (False, False, False, True),
    ],
)
def test_torch_multihead_attention_and_a_sample_of_padding(
    torch, need_weights, train, grad, is_nan
):
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).train(train)
    x = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))
    ignored = torch.tensor([[False] * 4, [True] * 4])
    with torch.set_grad_enabled(grad):
        Y, _ = layer(x, x, x, key_padding_mask=ignored, need_weights=need_weights)
    assert torch.isfinite(Y[0]).all()
    assert bool(torch.isnan(Y[1]).all()) == is_nan
    if not is_nan:
        torch.testing.assert_close(Y[1], layer.out_proj.bias.expand(4, 8))
