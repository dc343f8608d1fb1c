"""Small learners as explicit Markov chains in float64: Theorem 1 computed instead of sampled.

A chain holds its transition matrix as a function of theta. Derivatives are complex steps,
f'(x) = Im f(x + ih) / h: exact to rounding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEP = 1e-30


class Chain(NamedTuple):
    """States 0..n-1, their transition matrix P(theta), and the theorem's weighted gradient
    g_hat(z, theta), one row for each state.
    """

    theta: np.ndarray  # (d,)
    kernel: Callable[[np.ndarray], np.ndarray]  # theta -> (n, n), rows sum to one
    grad: Callable[[np.ndarray], np.ndarray]  # theta -> (n, d)

    @property
    def P(self) -> np.ndarray:
        """(n, n), at theta."""
        return self.kernel(self.theta)

    @property
    def g(self) -> np.ndarray:
        """(n, d), at theta."""
        return self.grad(self.theta)


def derivative(f: Callable[[np.ndarray], np.ndarray], theta: np.ndarray) -> np.ndarray:
    """df/dtheta_i, i along the first axis."""
    return np.stack([np.imag(f(theta + 1j * STEP * e)) / STEP for e in np.eye(len(theta))])


def spectrum(P: np.ndarray) -> np.ndarray:
    """Moduli of the eigenvalues, largest first.

    Refuses a chain without a single equilibrium: one in parts, or a periodic one.
    """
    if not np.allclose(P.sum(1), 1) or P.min() < -1e-12:
        raise ValueError("a transition matrix has non-negative entries and rows that sum to one.")
    moduli = np.sort(np.abs(np.linalg.eigvals(P)))[::-1]
    if len(moduli) > 1 and moduli[1] > 1 - 1e-9:
        raise ValueError(
            "the chain is not ergodic: it falls into parts that do not reach each other, or it is "
            "periodic, so it has no single equilibrium and Theorem 1 does not apply; "
            "let every state reach every other (finite weights, a lazy step)."
        )
    return moduli


def relaxation_time(P: np.ndarray) -> float:
    """-1 / log |lambda_2|: ticks in which the slowest deviation from equilibrium shrinks by e."""
    moduli = spectrum(P)
    return float(-1 / np.log(moduli[1])) if len(moduli) > 1 and moduli[1] > 0 else 0.0


def stationary(P: np.ndarray) -> np.ndarray:
    """pi P = pi, sum pi = 1; works for a complex-stepped P as well."""
    n = len(P)
    return np.linalg.solve(np.eye(n) - P.T + 1.0, np.ones(n))


def binary_states(n: int) -> np.ndarray:
    """(2^n, n): row k has the bits of k, the lowest first."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)


def bernoulli_product(field: np.ndarray, states: np.ndarray) -> np.ndarray:
    """prod_j p_j^s_j (1 - p_j)^(1 - s_j), p = sigmoid(field), for each row of `field` (first axis)
    and each row s of `states` (second).
    """
    p = 1 / (1 + np.exp(-field))[:, None, :]
    return np.prod(np.where(states > 0, p, 1 - p), -1)


def rbm(params: Any, b: float = 0.5) -> Chain:
    """The negative phase of `methods.RBM`: v given h, then h given v.

    g_hat = -dE/dtheta / (1 - b); the number of a state is v + 2^V h, both read as binary numbers.
    """
    W, a, c = (np.asarray(p, float) for p in params)
    V, H = W.shape
    vs, hs = binary_states(V), binary_states(H)
    v, h = np.tile(vs, (2**H, 1)), np.repeat(hs, 2**V, 0)
    g = np.concatenate([(v[:, :, None] * h[:, None, :]).reshape(len(v), -1), v, h], 1) / (1 - b)

    def kernel(theta: np.ndarray) -> np.ndarray:
        W, a, c = theta[: V * H].reshape(V, H), theta[V * H : V * H + V], theta[V * H + V :]
        to_v = bernoulli_product(a + hs @ W.T, vs)  # (h, v')
        to_h = bernoulli_product(c + vs @ W, hs)  # (v', h')
        P = to_v[:, :, None] * to_h  # (h, v', h'); the old v does not matter
        return np.repeat(P.transpose(0, 2, 1).reshape(2**H, -1), 2**V, 0)

    return Chain(np.concatenate([W.ravel(), a, c]), kernel, lambda theta: g + 0 * theta[:1])


def boltzmann(params: Any, b: float = 0.5) -> Chain:
    """The negative phase of a sequential `methods.BoltzmannMachine`.

    g_hat = -dE/dtheta / (1 - b); the number of a state is sum_i 2^i z_i.
    """
    W, bias = (np.asarray(p, float) for p in params)
    n = len(bias)
    z = binary_states(n)
    joined = ~np.eye(n, dtype=bool)
    both_on = (z[:, :, None] * z[:, None, :] * joined).reshape(len(z), -1)
    g = np.concatenate([both_on, z], 1) / (1 - b)
    every = np.arange(2**n)

    def kernel(theta: np.ndarray) -> np.ndarray:
        W, bias = theta[: n * n].reshape(n, n), theta[n * n :]
        P = np.eye(2**n, dtype=theta.dtype)
        for i in range(n):
            on = 1 / (1 + np.exp(-(z @ W[i] + bias[i])))
            unit = np.zeros_like(P)
            unit[every, every | 1 << i], unit[every, every & ~(1 << i)] = on, 1 - on
            P = P @ unit
        return P

    return Chain(np.concatenate([W.ravel(), bias]), kernel, lambda theta: g + 0 * theta[:1])


def lazy(chain: Chain, move: float) -> Chain:
    """The same equilibrium, 1/move times slower: stay with probability 1 - move."""
    if not 0 < move <= 1:
        raise ValueError(
            f"a lazy chain moves with a probability above 0 and up to 1, not {move!r}."
        )
    stay = (1 - move) * np.eye(len(chain.g))
    return chain._replace(kernel=lambda theta: stay + move * chain.kernel(theta))


def ring(n: int = 8, theta: float = 0.3) -> Chain:
    """No neural network: a walker on a ring of n states with energies theta cos(2 pi k / n).

    Its gradient depends on theta: g_hat = cos(2 pi k / n) (1 + theta^2).
    """
    u = np.cos(2 * np.pi * np.arange(n) / n)
    k = np.arange(n)

    def kernel(theta: np.ndarray) -> np.ndarray:
        P = np.zeros((n, n), theta.dtype)
        for other in ((k + 1) % n, (k - 1) % n):
            # heat-bath acceptance: smooth in theta, as the theorem asks
            P[k, other] += 0.5 / (1 + np.exp(theta[0] * (u[other] - u)))
        P[k, k] += 1 - P.sum(1)
        return P

    return Chain(np.array([theta]), kernel, lambda theta: u[:, None] * (1 + theta**2))
