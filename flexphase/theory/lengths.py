"""Moments of the geometric phase length, P(T = k) = (1 - 1/tau)^(k-1) / tau, exact for every order.

The paper's appendix has three slips here: E[T^3] ends in +tau, not -tau; given T >= s the length is
s - 1 + T', not s + T' (that is T > s), with T' a fresh copy of T; and the second and third
conditional moments use E[T'^k] = tau^k. The orders in tau, which are all that the theorems need,
stand.
"""

from math import comb, factorial
from typing import Any

import numpy as np

from ..checks import positive_length


def _stirling(k: int, j: int) -> int:
    """Ways to part k things into j groups: T^k = sum_j S(k, j) T (T - 1) ... (T - j + 1)."""
    return sum((-1) ** (j - i) * comb(j, i) * i**k for i in range(j + 1)) // factorial(j)


def moment(k: int, tau: Any) -> Any:
    """E[T^k] = sum_j S(k, j) j! tau (tau - 1)^(j-1), for one tau or an array of them.

    For k = 1, 2, 3: tau, 2 tau^2 - tau, 6 tau^3 - 6 tau^2 + tau.
    """
    tau = _checked(k, tau)
    if k == 0:
        return np.ones_like(tau)
    return sum(_stirling(k, j) * factorial(j) * tau * (tau - 1) ** (j - 1) for j in range(1, k + 1))


def moment_given(k: int, tau: Any, s: int) -> Any:
    """E[T^k | T >= s] = E[(T' + s - 1)^k], because the length has no memory."""
    _checked(k, tau)
    shift = _start(s) - 1
    return sum(comb(k, j) * shift ** (k - j) * moment(j, tau) for j in range(k + 1))


def shorter(tau: Any, s: int) -> Any:
    """P(T < s) = 1 - (1 - 1/tau)^(s-1), about (s - 1) / tau.

    The paper's exponent s gives P(T <= s).
    """
    tau, before = _checked(0, tau), _start(s) - 1
    with np.errstate(divide="ignore"):  # tau = 1: the phase always ends at its first tick
        return -np.expm1(before * np.log1p(-1 / tau)) if before else np.zeros_like(tau)


def _checked(k: int, tau: Any) -> np.ndarray:
    if k != int(k) or k < 0:
        raise ValueError(f"the order of a moment is a whole number from 0 on, not {k!r}.")
    positive_length(tau)
    return np.asarray(tau, float)


def _start(s: int) -> int:
    if s != int(s) or s < 1:
        raise ValueError(f"s counts ticks, so it must be a whole number from 1 on, not {s!r}.")
    return int(s)
