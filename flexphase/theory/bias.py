"""Bias of always-on learning over one phase (Theorem 1), exactly, for small Markov chains.

With z_t drawn from P(. | z_{t-1}, theta_{t-1}) and
    theta_t = theta_{t-1} - (eta/tau) g(z_t, theta_{t-1}),
a phase of T ticks moves theta by the sum of its updates, whose mean should be eta times
gbar = E_pi[g(z, theta_0)]. It differs from that by two parts:
    transient   the phase begins away from equilibrium:
                eta/tau times a convergent sum of powers of P
    feedback    theta moves during the phase: eta^2 times `feedback`, plus terms of order eta^3
T is tau, or geometric with mean tau; in both cases tick t is reached with probability P(T >= t).

All functions take a chain, the state or the distribution that a phase starts from, and tau, and
return a vector with the shape of theta.
"""

from typing import Any

import numpy as np

from ..checks import positive_length
from .chains import Chain, derivative, spectrum, stationary


def equilibrium(chain: Chain) -> np.ndarray:
    """gbar = E_pi[g]."""
    spectrum(chain.P)
    return stationary(chain.P) @ chain.g


def transient(chain: Chain, start: Any, tau: float, geometric: bool = False) -> np.ndarray:
    """Bias of a frozen phase per unit of eta: (1/tau) sum_t P(T >= t) (p_0 P^t - pi) g."""
    P, p, far = _begin(chain, start, tau)
    if geometric:
        q = 1 - 1 / tau
        return p @ P @ np.linalg.solve(np.eye(len(P)) - q * P, far) / tau
    total = np.zeros(far.shape[1])
    for _ in range(int(tau)):
        p = p @ P
        total += p @ far
    return total / tau


def transient_limit(chain: Chain, start: Any) -> np.ndarray:
    """tau x transient as tau grows: sum_{t >= 1} (p_0 P^t - pi) g = p_0 P Z g.

    Z = (I - P + Pi)^-1 is the fundamental matrix.
    """
    P, p, far = _begin(chain, start, 1)
    return p @ P @ np.linalg.solve(np.eye(len(P)) - P + stationary(P), far)


def feedback(chain: Chain, start: Any, tau: float, geometric: bool = False) -> np.ndarray:
    """The exact coefficient of eta^2 in the feedback bias.

    To first order theta_t - theta_0 = -(eta/tau) sum_{s <= t} g(z_s), which acts at once through
    dg/dtheta and, through dP/dtheta, on all later states. With u_r = E[sum_{s <= r} g(z_s); z_r]:
        -(1/tau^2) sum_t P(T >= t) { u_{t-1} P dg + sum_{r <= t} u_{r-1} dP P^(t-r) g }
    """
    P, p, far = _begin(chain, start, tau)
    g, dP, dg = chain.g, derivative(chain.kernel, chain.theta), derivative(chain.grad, chain.theta)
    if geometric:
        q = 1 - 1 / tau
        resolvent = np.linalg.inv(np.eye(len(P)) - q * P)
        # sum_m q^m u_m, one row for each component of theta
        U = (q * p @ P @ resolvent * g.T) @ resolvent
        through_P = np.einsum("iz,izy,yj->j", U, dP, resolvent @ far)
        at_once = np.einsum("iz,zy,iyj->j", U, P, dg)
        return -(through_P + at_once) / tau**2
    ticks = int(tau)
    # later[k] = sum_{j <= k} P^j g, centred: dP sends constants to zero
    later = np.empty((ticks, *far.shape))
    later[0] = far
    for k in range(1, ticks):
        later[k] = far + P @ later[k - 1]
    u, total = np.zeros(g.shape[::-1]), np.zeros(far.shape[1])
    for r in range(1, ticks + 1):
        through_P = np.einsum("iz,izj->j", u, dP @ later[ticks - r])
        at_once = np.einsum("iz,izj->j", u @ P, dg)
        total += through_P + at_once
        p = p @ P
        u = u @ P + p * g.T
    return -total / tau**2


def feedback_limit(chain: Chain, geometric: bool = False) -> np.ndarray:
    """`feedback` as tau grows: -(1/2) (E[T^2]/tau^2) (d gbar/dtheta) gbar.

    E[T^2]/tau^2 is 1, or 2 for geometric T. The limit is finite: the feedback bias of stochastic
    dynamics is of order eta^2, not eta^2 tau.
    """

    def mean(theta: np.ndarray) -> np.ndarray:
        return stationary(chain.kernel(theta)) @ chain.grad(theta)

    gbar, slope = equilibrium(chain), derivative(mean, chain.theta)
    return -(1.0 if geometric else 0.5) * gbar @ slope


def _begin(chain: Chain, start: Any, tau: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, the start as a distribution, and g - gbar."""
    positive_length(tau)
    P = chain.P
    p = np.eye(len(P))[start] if np.ndim(start) == 0 else np.asarray(start, float)
    return P, p, chain.g - equilibrium(chain)
