"""What the labs of chapter 04 draw is what the plain formulas give."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from attnbook.labs import scores_and_scaling as labs
from attnbook.labs.scores_and_scaling import PAIRS, QUERIES, WIDTHS, compute, compute_correlation


def plain_softmax(row):
    m = max(row)
    e = [math.exp(u - m) for u in row]
    return [x / sum(e) for x in e]


def raw_vectors(d_k):
    """The same draws as the lab's, as whole vectors: pairs q, k and queries with their keys."""
    rng = np.random.default_rng(29)
    pairs, own = [], []
    for low, high in zip((0, *WIDTHS), WIDTHS, strict=False):
        pairs.append(rng.normal(size=(2, PAIRS, high - low)))
        own.append(
            (
                rng.normal(size=(QUERIES, 1, high - low)),
                rng.normal(size=(QUERIES, labs.MOST_KEYS, high - low)),
            )
        )
    q, k = np.concatenate(pairs, axis=2)[:, :, :d_k]
    Q = np.concatenate([Q for Q, _ in own], axis=2)[:, :, :d_k]
    K = np.concatenate([K for _, K in own], axis=2)[:, :, :d_k]
    return q, k, Q, K


@pytest.mark.parametrize(
    ("d_k", "divide", "tau", "keys"), [(8, False, 1.0, 4), (32, True, 2.0, 8), (512, True, 0.25, 2)]
)
def test_width_and_temperature(d_k, divide, tau, keys):
    q, k, Q, K = raw_vectors(d_k)
    divisor = tau * (math.sqrt(d_k) if divide else 1)
    Z = np.einsum("np,np->n", q, k) / divisor
    rows = np.einsum("nip,njp->nj", Q, K)[:, :keys] / divisor
    weights = [plain_softmax(row) for row in rows]
    entropy = [-sum(a * math.log(a) for a in row if a > 0) for row in weights]

    arrays = compute(d_k, divide, tau, keys)
    assert arrays.Z_sd == pytest.approx(Z.std())
    assert arrays.outside == pytest.approx(np.mean(abs(Z) > 40.5))
    for i in (0, 40, 41, 60):
        inside = (labs.EDGES[i] <= Z) & (labs.EDGES[i + 1] > Z)
        assert arrays.counts[i] == inside.sum()
    np.testing.assert_allclose(arrays.a, weights[0], atol=1e-12)
    shown = arrays.entropy[int(divide), WIDTHS.index(d_k)]
    assert shown == pytest.approx(np.mean(entropy) / math.log(keys))


def test_temperature_root_d_k_undoes_the_missing_division():
    plain, warm = compute(256, True, 1.0, 8), compute(256, False, 16.0, 8)
    np.testing.assert_array_equal(plain.counts, warm.counts)
    np.testing.assert_allclose(plain.a, warm.a)


@pytest.mark.parametrize(
    ("d_k", "gamma", "kappa"), [(4, 0.0, 0.5), (64, 0.3, 0.0), (16, 0.9, 1.0), (512, 0.2, 0.7)]
)
def test_correlation(d_k, gamma, kappa):
    rng = np.random.default_rng(12)
    b, c = rng.normal(size=(2, PAIRS, 1))
    parts = [
        rng.normal(size=(2, PAIRS, high - low))
        for low, high in zip((0, *WIDTHS), WIDTHS, strict=False)
    ]
    g, h = np.concatenate(parts, axis=2)[:, :, :d_k]
    q = math.sqrt(gamma) * b + math.sqrt(1 - gamma) * g
    other = math.sqrt(gamma) * c + math.sqrt(1 - gamma) * h
    k = kappa * q + math.sqrt(1 - kappa**2) * other
    u = (q * k).sum(axis=1) / math.sqrt(d_k)

    arrays = compute_correlation(d_k, gamma, kappa)
    n = WIDTHS.index(d_k)
    assert arrays.mean[n] == pytest.approx(u.mean())
    assert arrays.sd[n] == pytest.approx(u.std())
    assert arrays.outside == pytest.approx(np.mean(abs(u) > 30.25))
    C = (1 - gamma) * np.eye(d_k) + gamma * np.ones((d_k, d_k))
    assert arrays.mean_exact[n] == pytest.approx(kappa * np.trace(C) / math.sqrt(d_k))
    assert arrays.sd_exact[n] == pytest.approx(math.sqrt((1 + kappa**2) * np.trace(C @ C) / d_k))
    # the formula against the sample: within five standard errors
    error = u.std() / math.sqrt(PAIRS)
    assert abs(u.mean() - arrays.mean_exact[n]) < 5 * error
    spread = ((u - u.mean()) ** 2).std() / math.sqrt(PAIRS)
    assert abs(u.var() - arrays.sd_exact[n] ** 2) < 5 * spread


@pytest.mark.parametrize(("d_k", "tau", "keys"), [(64, 1.0, 8), (256, 0.25, 16), (64, 0.5, 2)])
def test_the_caption_tells_the_largest_derivative_also_near_one_hot(d_k, tau, keys):
    _, _, Q, K = raw_vectors(d_k)
    u = [Fraction(float(x)) / Fraction(tau) for x in np.einsum("ip,jp->ij", Q[0], K[0])[0][:keys]]
    e = [Decimal(float(x - max(u))).exp() for x in u]
    z = sum(e)
    exact = max(x / z * sum(e[:j] + e[j + 1 :]) / z for j, x in enumerate(e))
    told = labs._largest_derivative(compute(d_k, False, tau, keys).a)
    assert told == pytest.approx(float(exact), rel=1e-6)
    assert labs._power(2.62e-22) == "2.6 · $10^{−22}$"
    assert labs._power(0.2184) == "0.218"
