"""attnbook beside others: JAX and ONNX's reference evaluator, and PyTorch where it is installed.

Float64 agrees to 1e-12 wherever the other computes in float64 throughout.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_adapter import onnx_attention

from attnbook import attention, attention_backward, masks
from attnbook.heads import (
    grouped_attention,
    grouped_attention_backward,
    multi_head_attention,
    multi_head_attention_backward,
)

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

T, S, D_K, D_V = 3, 5, 4, 2
B, H, H_KV = 7, 6, 3
close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12)


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


# JAX: the formulas in jax.numpy, all gradients by jax.vjp


@jax.jit
def jax_head(dO, Q, K, V, bias, allowed, valid, keep, keep_prob, scale):
    """Return (O, A, U) and the gradients by Q, K, V, bias, A, U."""

    def head(Q, K, V, bias, A_shift, U_shift):
        U = scale * Q @ K.mT + bias + U_shift
        A = jax.nn.softmax(jnp.where(allowed | ~valid, U, -jnp.inf), axis=-1)
        A = jnp.where(valid, A, 0) + A_shift
        return jnp.where(keep, A, 0) / keep_prob @ V, A, U

    # Adding zero to A and U gives their gradients.
    zero = jnp.zeros(allowed.shape)
    results, vjp = jax.vjp(head, Q, K, V, bias, zero, zero)
    return results, vjp((dO, zero, zero))


HEADS = {
    "alone": ((), (), (), ()),
    "batch and heads": ((6, 7), (6, 7), (6, 7), (6, 7)),
    "shared keys": ((6, 7), (6, 1), (6, 1), (7,)),
    "several queries and biases for the same keys": ((6, 1), (7,), (1,), (6, 1)),
    "values of their own": ((1,), (), (6, 7), ()),
    "one query row, many keys": ((7,), (6, 1), (6, 7), (1, 1)),
}


@pytest.mark.parametrize("keep_prob", [1.0, 0.7])
@pytest.mark.parametrize("scale", [None, -1.3])
@pytest.mark.parametrize("name", HEADS)
def test_forward_and_all_gradients_are_those_of_jax(name, scale, keep_prob):
    lead_q, lead_k, lead_v, lead_b = HEADS[name]
    Q, K, V = draw(*lead_q, T, D_K), draw(*lead_k, S, D_K), draw(*lead_v, S, D_V)
    bias = draw(*lead_b, 1, S)
    rng = np.random.default_rng(1)
    lead = np.broadcast_shapes(lead_q, lead_k, lead_b)
    allowed = rng.random((*lead, T, S)) < 0.6
    allowed[..., 2] = True
    valid = rng.random((*lead, T)) < 0.8
    valid[..., 0] = True
    keep, dropout = np.ones((*lead, T, S), bool), {}
    if keep_prob < 1:
        keep = rng.random((*lead, T, S)) < keep_prob
        dropout = {"keep": keep, "keep_prob": keep_prob}
    dO = draw(*np.broadcast_shapes(lead, lead_v), T, D_V, seed=2)

    factor = 1 / math.sqrt(D_K) if scale is None else scale
    theirs, (dQ, dK, dV, dbias, dA, dU) = jax_head(
        dO, Q, K, V, bias, allowed, valid[..., None], keep, keep_prob, factor
    )
    ours = attention(Q, K, V, allowed, query_valid=valid, bias=bias, scale=scale, **dropout)
    for mine, other in zip(ours, theirs, strict=True):
        assert other.dtype == np.float64
        close(mine, other)
    gradients = attention_backward(dO, Q, K, V, ours.A, scale=scale, **dropout)
    close(gradients.dQ, dQ)
    close(gradients.dK, dK)
    close(gradients.dV, dV)
    close(gradients.dU, dU)
    close(gradients.dA, np.where(valid[..., None], dA, 0))
    per_key = [x.reshape(-1, S).sum(axis=0) for x in (gradients.dU, np.asarray(dbias))]
    close(*per_key)


@jax.jit
def jax_multi_head(dY, allowed, *arrays):
    """Return Y and the gradients by X_q, X_m and the projections; the shapes of W say the heads."""

    def layer(X_q, X_m, W_Q, W_K, W_V, W_O):  # W_Q (H_kv, r, d_q, d_k), W_K (H_kv, d_m, d_k), ...
        Q = jnp.einsum("bti,grip->bgrtp", X_q, W_Q)
        K, V = (jnp.einsum("bsi,gip->bgsp", X_m, W) for W in (W_K, W_V))
        U = jnp.einsum("bgrtp,bgsp->bgrts", Q, K) / math.sqrt(D_K)
        A = jax.nn.softmax(jnp.where(allowed, U, -jnp.inf), axis=-1)
        return jnp.einsum("bgrts,bgsp,grpo->bto", A, V, W_O)

    Y, vjp = jax.vjp(layer, *arrays)
    return Y, vjp(dY)


@pytest.mark.parametrize("H_kv", [H, H_KV, 1])
def test_many_heads_and_all_their_gradients_are_those_of_jax(H_kv):
    r, d_q, d_m, d = H // H_kv, 7, 8, 9
    X_q, X_m = draw(B, T, d_q), draw(B, S, d_m)
    W_Q, W_O = draw(H_kv, r, d_q, D_K), draw(H_kv, r, D_V, d)
    W_K, W_V = draw(H_kv, d_m, D_K), draw(H_kv, d_m, D_V)
    allowed, dY = masks.causal(np.arange(T) + 1, S), draw(B, T, d, seed=2)
    Y, (dX_q, dX_m, dW_Q, dW_K, dW_V, dW_O) = jax_multi_head(
        dY, allowed, X_q, X_m, W_Q, W_K, W_V, W_O
    )

    def packed(W):  # (..., d, width) -> (d, heads width)
        return np.asarray(W).reshape(-1, *W.shape[-2:]).swapaxes(0, 1).reshape(W.shape[-2], -1)

    inputs = X_q, X_m, packed(W_Q), packed(W_K), packed(W_V), W_O.reshape(H * D_V, d)
    forward = multi_head_attention(*inputs, allowed, H_q=H, H_kv=H_kv)
    close(forward.Y, Y)
    ours = multi_head_attention_backward(dY, *inputs, forward)
    theirs = dX_q, dX_m, packed(dW_Q), packed(dW_K), packed(dW_V), dW_O.reshape(H * D_V, d)
    for mine, other in zip(ours[:6], theirs, strict=True):
        close(mine, other)


# JAX: the library's own function. It computes the softmax in float32 whatever it is given, so the
# weights agree to some units of 6e-8.

library = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-6)


def jax_library(Q, K, V, **options):
    """jax.nn.dot_product_attention, (B, H, T, d) like here instead of its (B, T, H, d)."""
    O = jax.nn.dot_product_attention(*(jnp.swapaxes(x, 1, 2) for x in (Q, K, V)), **options)
    return jnp.swapaxes(O, 1, 2)


def lengths(n):
    """n - 1 and n - 2 in turn, one for each sample."""
    return (n - 1 - np.arange(B) % 2).astype(np.int32)


def real(n):
    return np.arange(n) < lengths(n)[:, None]


LIBRARY = {
    "plain": ({}, {}),
    "scale": ({"scale": 0.3}, {"scale": 0.3}),
    "bias": ({"bias": draw(1, H, T, S)}, {"bias": draw(1, H, T, S)}),
    "causal": ({"is_causal": True}, {"allowed": masks.causal(T, S)}),
    "mask": (
        {"mask": masks.causal(T, S)[None, None] & masks.padding(real(S))[:, None]},
        {"allowed": masks.causal(T, S) & masks.padding(real(S))[:, None]},
    ),
    "lengths": (
        {"key_value_seq_lengths": lengths(S)},
        {"allowed": masks.padding(real(S))[:, None]},
    ),
    "window": (
        {"local_window_size": (1, 2)},
        {"allowed": masks.causal(np.arange(T) + 2, S) & ~masks.causal(np.arange(T) - 2, S)},
    ),
}


@pytest.mark.parametrize(
    ("name", "kv_heads"), [*((name, H_KV) for name in LIBRARY), ("mask", H), ("mask", 1)]
)
def test_jax_nn_dot_product_attention(name, kv_heads):
    theirs, ours = LIBRARY[name]
    Q, K, V = draw(B, H, T, D_K), draw(B, kv_heads, S, D_K), draw(B, kv_heads, S, D_K, seed=1)
    dO = draw(B, H, T, D_K, seed=2)

    @jax.jit
    def forward_and_backward(dO, *QKV):
        O, vjp = jax.vjp(lambda *x: jax_library(*x, **theirs), *QKV)
        return O, vjp(dO)

    O, gradients = forward_and_backward(dO, Q, K, V)
    assert O.dtype == np.float64

    O_ours, A, _ = grouped_attention(Q, K, V, **ours)
    library(O_ours, O)
    ours = grouped_attention_backward(dO, Q, K, V, A, scale=ours.get("scale"))
    for mine, other in zip(ours[:3], gradients, strict=True):
        library(mine, other)


# ONNX: the reference evaluator on attributes drawn at random


@st.composite
def onnx_calls(draw):
    """Inputs and attributes of the operator, all within its specification."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    B, H_kv, G, T, S = draw(st.permutations([1, 2, 3, 4, 5])).copy()
    H, d_k, d_v = H_kv * G, 6, 7
    attributes = {}
    inputs = {
        "Q": rng.normal(size=(B, H, T, d_k)),
        "K": rng.normal(size=(B, H_kv, S, d_k)),
        "V": rng.normal(size=(B, H_kv, S, d_v)),
    }
    total = S
    cache = draw(st.sampled_from(["none", "past", "nonpad"]))
    if cache == "past":
        past = draw(st.integers(0, 8))
        inputs["past_key"] = rng.normal(size=(B, H_kv, past, d_k))
        inputs["past_value"] = rng.normal(size=(B, H_kv, past, d_v))
        total += past
    if cache == "nonpad":
        inputs["nonpad_kv_seqlen"] = rng.integers(0, S + 1, size=B)
    if draw(st.booleans()):
        attributes |= {"q_num_heads": H, "kv_num_heads": H_kv}
        for name in "QKV":
            x = inputs[name].swapaxes(1, 2)
            inputs[name] = x.reshape(*x.shape[:2], -1)
    rank = draw(st.integers(0, 4))
    if rank:
        needed = inputs.get("nonpad_kv_seqlen", np.array(1)).max()
        width = draw(st.integers(max(1, needed), total))
        lead = [n if draw(st.booleans()) else 1 for n in (B, H, T)][4 - rank :]
        mask = rng.random((*lead, width)) < 0.7
        if draw(st.booleans()):
            mask = np.where(mask, rng.normal(size=mask.shape), -np.inf)
        inputs["attn_mask"] = mask
    for name, values in {
        "is_causal": st.sampled_from([0, 1]),
        "scale": st.sampled_from([0.25, 2.25]),  # of exact root: the evaluator's is a float32
        "softcap": st.sampled_from([0.0, 0.5, 2.0]),
        "softmax_precision": st.sampled_from([1, 10, 11, 16]),
        "qk_matmul_output_mode": st.integers(0, 3),
        "left_window_size": st.integers(-1, 4),
        "right_window_size": st.integers(-1, 4),
    }.items():
        if draw(st.booleans()):
            attributes[name] = draw(values)
    return inputs, attributes


def evaluate(inputs, attributes):
    """Run a model of one operator in ONNX's reference evaluator."""
    if "attn_mask" in inputs:  # under is_causal the evaluator counts the queries by its rows
        mask = np.atleast_2d(inputs["attn_mask"])
        rows = inputs["Q"].shape[-2]
        mask = np.broadcast_to(mask, (*mask.shape[:-2], rows, mask.shape[-1]))
        inputs = inputs | {"attn_mask": mask}
    slots = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    outputs = ["Y", "present_key", "present_value", "qk_matmul_output"]
    slots = [name if name in inputs else "" for name in slots]
    node = helper.make_node("Attention", slots, outputs, **attributes)
    graph = helper.make_graph(
        [node],
        "one_operator",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), list(x.shape)
            )
            for name, x in inputs.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    return dict(zip(outputs, ReferenceEvaluator(model).run(None, inputs), strict=True))


# Units in the last place of the softmax in its own precision; 11 and none: float64.
SOFTMAX_TOLERANCE = {1: 2**-20, 10: 2**-7, 16: 2**-4}


@settings(max_examples=250, derandomize=True, database=None, deadline=None)
@given(onnx_calls())
def test_the_operator_attention_with_any_attributes(call):
    inputs, attributes = call
    expected = evaluate(inputs, attributes)
    if attributes.get("qk_matmul_output_mode", 0) == 0 and "softcap" in attributes:
        # Mode 0 is the raw product by the specification and the operator's function body, but the
        # evaluator caps it: ask without a cap.
        uncapped = {name: x for name, x in attributes.items() if name != "softcap"}
        expected["qk_matmul_output"] = evaluate(inputs, uncapped)["qk_matmul_output"]
    got = onnx_attention(**inputs, **attributes)._asdict()
    tolerance = SOFTMAX_TOLERANCE.get(attributes.get("softmax_precision"), 1e-12)
    for name, x in expected.items():
        assert got[name].shape == x.shape, name
        assert got[name].dtype == x.dtype, name
        np.testing.assert_allclose(got[name], x, rtol=tolerance, atol=tolerance, err_msg=name)


# PyTorch, where it is installed


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed: not compared with it")


def mask(seed=3):
    """A mask (B, 1, T, S) with a key in every row."""
    allowed = np.random.default_rng(seed).random((B, 1, T, S)) < 0.6
    allowed[..., 1] = True
    return allowed


TORCH = {  # arguments of scaled_dot_product_attention, and the same said here
    "plain": ({}, {}),
    "scale": ({"scale": 0.3}, {"scale": 0.3}),
    "causal is upper left": ({"is_causal": True}, {"allowed": masks.causal(T, S)}),
    "boolean mask": ({"attn_mask": mask()}, {"allowed": mask()}),
    "additive mask": (
        {"attn_mask": masks.to_additive(mask()) + draw(1, H, 1, S)},
        {"allowed": mask(), "bias": draw(1, H, 1, S)},
    ),
}


@pytest.mark.parametrize("kv_heads", [H, H_KV, 1])
@pytest.mark.parametrize("name", TORCH)
def test_torch_scaled_dot_product_attention(torch, name, kv_heads):
    theirs, ours = TORCH[name]
    theirs = {k: torch.tensor(x) if isinstance(x, np.ndarray) else x for k, x in theirs.items()}
    QKV = draw(B, H, T, D_K), draw(B, kv_heads, S, D_K), draw(B, kv_heads, S, D_V)
    dO = draw(B, H, T, D_V, seed=2)
    tensors = [torch.tensor(x, requires_grad=True) for x in QKV]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    O = sdpa(*tensors, **theirs, enable_gqa=kv_heads < H)
    assert O.dtype == torch.float64
    O.backward(torch.tensor(dO))

    O_ours, A, _ = grouped_attention(*QKV, **ours)
    close(O_ours, O.detach().numpy())
    gradients = grouped_attention_backward(dO, *QKV, A, scale=ours.get("scale"))
    for mine, other in zip(gradients[:3], tensors, strict=True):
        close(mine, other.grad.numpy())


def test_torch_has_two_causal_alignments(torch):
    from torch.nn.attention import bias

    Q, K, V = draw(B, H, T, D_K), draw(B, H, S, D_K), draw(B, H, S, D_V)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for alignment, positions in (("upper_left", T), ("lower_right", np.arange(S - T, S))):
        theirs = getattr(bias, f"causal_{alignment}")(T, S)
        O = sdpa(*map(torch.tensor, (Q, K, V)), attn_mask=theirs)
        close(attention(Q, K, V, masks.causal(positions, S)).O, O.numpy())


def test_torch_multihead_attention_means_the_opposite_by_true(torch):
    d = H * D_K
    X_q, X_m = draw(B, T, d), draw(B, S, d)
    forbidden, ignored = ~mask()[0, 0], ~real(S)
    ignored[:, 1] = False
    theirs = torch.nn.MultiheadAttention(d, H, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        Y, A = theirs(
            *map(torch.tensor, (X_q, X_m, X_m)),
            attn_mask=torch.tensor(forbidden),
            key_padding_mask=torch.tensor(ignored),
            average_attn_weights=False,
        )
        W_Q, W_K, W_V = (W.T for W in theirs.in_proj_weight.numpy().reshape(3, d, d))
        W_O = theirs.out_proj.weight.numpy().T
    allowed = (~forbidden & masks.padding(~ignored))[:, None]
    ours = multi_head_attention(X_q, X_m, W_Q, W_K, W_V, W_O, allowed, H_q=H)
    close(ours.A, A.numpy())
    close(ours.Y, Y.numpy())
