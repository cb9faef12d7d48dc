"""The operator Attention of ONNX (opset 23 to 25), said in attnbook's conventions.

No mathematics of its own: layouts, masks, positions and names are translated, and
`grouped_attention` computes.
"""

from typing import NamedTuple

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from attnbook import masks
from attnbook.heads import grouped_attention


class Outputs(NamedTuple):
    """The outputs of the operator, by its names."""

    Y: np.ndarray
    present_key: np.ndarray
    present_value: np.ndarray
    qk_matmul_output: np.ndarray


def onnx_attention(
    Q,
    K,
    V,
    attn_mask=None,
    past_key=None,
    past_value=None,
    nonpad_kv_seqlen=None,
    *,
    is_causal=0,
    kv_num_heads=None,
    left_window_size=-1,
    q_num_heads=None,
    qk_matmul_output_mode=0,
    right_window_size=-1,
    scale=None,
    softcap=0.0,
    softmax_precision=None,
):
    """Return the operator's outputs, in the dtype of Q."""
    dtype = Q.dtype
    softmax_dtype = dtype
    if softmax_precision is not None:
        softmax_dtype = np.dtype(tensor_dtype_to_np_dtype(softmax_precision))
    packed = Q.ndim == 3  # (B, T, H d) instead of (B, H, T, d)
    if packed:
        Q, K, V = _heads(Q, q_num_heads), _heads(K, kv_num_heads), _heads(V, kv_num_heads)
    if past_key is not None:
        K, V = np.concatenate([past_key, K], axis=2), np.concatenate([past_value, V], axis=2)
    (B, H, T, _), S = Q.shape, K.shape[2]

    # Position of the first query: keys 0, ..., S-1 stand in the cache in their order.
    offset = np.zeros(B, int)
    if past_key is not None:
        offset += past_key.shape[2]
    elif nonpad_kv_seqlen is not None:
        offset += nonpad_kv_seqlen - T
    position = offset[:, None] + np.arange(T)

    allowed, bias = _mask(attn_mask, S)
    allowed = np.broadcast_to(allowed, (B, H, T, S))
    if is_causal:
        allowed = allowed & masks.causal(position, S)[:, None]
    if left_window_size >= 0:
        allowed = allowed & ~masks.causal(position - left_window_size - 1, S)[:, None]
    if right_window_size >= 0:
        allowed = allowed & masks.causal(position + right_window_size, S)[:, None]
    if nonpad_kv_seqlen is not None:
        allowed = allowed & masks.padding(np.arange(S) < nonpad_kv_seqlen[:, None])[:, None]
    valid = allowed.any(axis=-1)  # ONNX: a query without keys gives zeros

    work = np.result_type(_numpy(dtype), _numpy(softmax_dtype))
    if softcap:
        work = np.float64  # capped - raw cancels where raw is large
    head = [X.astype(work) for X in (Q, K, V)]
    raw = grouped_attention(*head, query_valid=np.zeros(valid.shape, bool), scale=scale).U
    capped = softcap * np.tanh(raw / softcap) if softcap else raw
    bias = np.broadcast_to(bias, raw.shape).astype(work)
    if softcap or softmax_precision is not None:  # what ONNX's softmax sees, rounded as there
        bias = (capped + bias).astype(dtype).astype(softmax_dtype).astype(work) - raw
    O, A, U = grouped_attention(*head, allowed, query_valid=valid, bias=bias, scale=scale)
    debug = (raw, capped, np.where(allowed, U, -np.inf), A)[qk_matmul_output_mode]
    Y = O.swapaxes(1, 2).reshape(B, T, -1) if packed else O
    return Outputs(Y.astype(dtype), K, V, debug.astype(dtype))


def _numpy(dtype):
    """float32 holds every bfloat16, which numpy does not have."""
    return np.dtype(np.float32) if dtype.name == "bfloat16" else dtype


def _heads(X, number):
    """(B, T, H d) -> (B, H, T, d)."""
    return X.reshape(*X.shape[:2], number, -1).swapaxes(1, 2)


def _mask(attn_mask, S):
    """Return allowed set and finite bias; keys beyond the end of the mask are forbidden."""
    if attn_mask is None:
        return np.True_, np.float32(0)
    if attn_mask.dtype == bool:
        allowed, bias = attn_mask, np.zeros(attn_mask.shape, np.float32)
    else:
        allowed, bias = masks.from_additive(attn_mask.astype(_numpy(attn_mask.dtype)))
    beyond = [(0, 0)] * (allowed.ndim - 1) + [(0, S - allowed.shape[-1])]
    return np.pad(allowed, beyond), np.pad(bias, beyond)
