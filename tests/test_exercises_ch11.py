"""The exercises of chapter 11: answers found in other ways."""

import math
from fractions import Fraction

import numpy as np
import pytest

from attnbook import attention, cost, grouped_attention, grouped_attention_backward, heads, masks
from attnbook.cache import KVCache
from attnbook.exercises import ch11, check
from attnbook.exercises.parts import State


def is_right(verdict):
    return verdict.state is State.RIGHT


# ---- right answers, computed otherwise ---------------------------------------------------------


def test_the_head_map_by_dealing_out_groups():
    groups = [g for g in range(5) for _ in range(4)]
    assert is_right(check("11.1", r=groups.count(0), from_0=groups[9], from_1=groups[9 - 1] + 1))


def test_the_cache_by_making_it():
    one = np.zeros((8, 512, 128), np.float16)  # an eighth of the positions
    layer = 8 * 2 * one.nbytes
    ratio = Fraction(8, 40)
    assert is_right(check("11.2", layer=layer, ratio=ratio, model=48 * layer / 2**20))


def test_what_changes_by_counting():
    size = {"T": 7, "S": 7, "d": 64 * 4, "H_q": 64}
    before, after = (cost.flops(**size, H_kv=n) for n in (64, 8))
    p, q = (cost.parameters(d=256, H_q=64, H_kv=n) for n in (64, 8))
    verdict = check(
        "11.3",
        kv_parameters=Fraction(q.W_K + q.W_V, p.W_K + p.W_V),
        cache=Fraction(1, 8),
        scores=Fraction(after.E, before.E),
        all_parameters=Fraction(sum(q), sum(p)),
        time="open",
    )
    assert is_right(verdict)


def test_the_rank_is_reached():
    d, d_v = 512, 64
    rng = np.random.default_rng(0)
    W_V, W_O = rng.normal(size=(d, 2 * d_v)), rng.normal(size=(8 * d_v, d))
    W = heads.merge_heads(heads.split_heads(W_V, 2).repeat(4, axis=0))
    assert is_right(check("11.4", int(np.linalg.matrix_rank(W @ W_O))))


def test_the_shared_gradients_by_the_backward_pass():
    rng = np.random.default_rng(1)
    Q, K, V = rng.normal(size=(4, 1, 1)), rng.normal(size=(1, 1, 1)), rng.normal(size=(1, 1, 1))
    A = grouped_attention(Q, K, V).A
    dO = np.array([1.0, 2, 3, 4]).reshape(4, 1, 1)
    g = grouped_attention_backward(dO, Q, K, V, A)
    assert is_right(check("11.5", value=g.dV.item(), key=g.dK.item()))


def test_the_crossing_by_search():
    def gap(T):
        work = cost.flops(T=T, S=T, d=2048, H_q=16, H_kv=4)
        return work.E + work.O - (work.Q + work.K + work.V + work.Y)

    (T,) = (T for T in range(1, 5000) if gap(T) == 0)
    assert is_right(check("11.6", T))


def test_scores_with_and_without_a_cache_one_by_one():
    without = sum(1 for t in range(1, 101) for _ in range(t) for _ in range(t))
    kept = sum(1 for t in range(1, 101) for _ in range(t))
    assert is_right(check("11.8", without / kept))


def test_what_fits_by_filling_up():
    per = 2 * 40 * 4 * 64 * 2
    room = (16 - 6) * 2**30
    S = 0
    for step in (2**n for n in range(30, -1, -1)):
        if (S + step) * per <= room:
            S += step
    assert is_right(check("11.9", one=S, eight=S // 8))


# ---- functions ---------------------------------------------------------------------------------


def tie(W, H_kv, r):
    return np.hstack([b for b in np.split(W, H_kv, axis=1) for _ in range(r)])


def step(u, V, state):
    m, z, o = state[0], state[1], state[2:]
    new = max(m, u.max())
    e, old = np.exp(u - new), np.exp(m - new) * z
    return np.array([new, old + e.sum(), *((old * o + e @ V) / (old + e.sum()))])


def test_tied_projections_give_the_grouped_layer():
    assert is_right(check("11.7", tie))
    rng = np.random.default_rng(2)
    X, W_Q, W_O = rng.normal(size=(5, 6)), rng.normal(size=(6, 12)), rng.normal(size=(18, 7))
    W_K, W_V = rng.normal(size=(6, 4)), rng.normal(size=(6, 6))
    gqa = heads.multi_head_attention(X, X, W_Q, W_K, W_V, W_O, H_q=6, H_kv=2).Y
    mha = heads.multi_head_attention(X, X, W_Q, tie(W_K, 2, 3), tie(W_V, 2, 3), W_O, H_q=6).Y
    np.testing.assert_allclose(mha, gqa)


def test_steps_lead_to_the_output_of_the_row():
    assert is_right(check("11.10", step))
    rng = np.random.default_rng(3)
    u, V = rng.normal(size=7) * 3, rng.normal(size=(7, 2))
    state = np.array([u[0], 1.0, *V[0]])
    for k in range(1, 7, 2):
        state = step(u[k : k + 2], V[k : k + 2], state)
    K = u[:, None]
    np.testing.assert_allclose(state[2:], attention([[1.0]], K, V).O[0])
    assert state[0] == u.max()
    assert state[1] == pytest.approx(sum(math.exp(x - u.max()) for x in u))


def test_hidden_states_are_not_saturated():
    for u, _, state in ch11.step.inputs[:2]:
        assert max(abs(float(x) - float(state[0])) for x in u) <= 3


# ---- 11.12, a step with a cache ----------------------------------------------------------------


def weights(q, k, K):
    u = np.vstack([K, k]) @ q / np.sqrt(len(q))
    e = np.exp(u - u.max())
    return e / e.sum()


def test_a_step_with_the_books_cache():
    def by_cache(q, k, v, K, V):
        cache = KVCache(capacity=len(K) + 1)
        cache.append(K, V, range(len(K)))
        cache.append(k[None], v[None], [len(K)])
        return attention(q[None], cache.K, cache.V).O[0]

    assert is_right(check("11.12", by_cache))


def test_a_step_is_the_last_row_of_the_causal_pass():
    for given in ch11.next_output.inputs:
        q, k, v, K, V = (np.array(x, float) for x in given)
        K, V = np.vstack([K, k]), np.vstack([V, v])
        Q = np.vstack([np.ones((len(K) - 1, len(q))), q])
        last = attention(Q, K, V, masks.causal(len(K), len(K))).O[-1]
        np.testing.assert_allclose(last, np.array(ch11.next_output.right(*given), float))


def test_hidden_inputs_of_the_step_keep_softmax_unsaturated():
    for q, k, _, K, _ in ch11.next_output.inputs:
        a = weights(*(np.array(x, float) for x in (q, k, K)))
        assert 0.02 < a.min() <= a.max() < 0.8
        assert a[-1] > 0.1, "the new key matters"
