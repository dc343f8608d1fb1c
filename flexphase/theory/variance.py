"""Variance of the two estimators (appendix proposition, Lemmas 1 and 2), from second moments.

With A = E|g+|^2, C = E|g-|^2 and the means mu+ and mu-, traces of the covariances are
    eq. 1    A + C - 2 E[g+ . g-] - |mu+ - mu-|^2
    eq. 2    A / b + C / (1 - b)  - |mu+ - mu-|^2
so six numbers are enough for parameters of any size, and no covariance matrix is ever formed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..checks import probability


class Moments(NamedTuple):
    """Second moments of the two terms.

    `replicas` (leave-one-out estimates along the last axis) carry the uncertainty of measured ones.
    """

    A: Any  # E|g+|^2
    C: Any  # E|g-|^2
    plus: Any  # |mu+|^2
    minus: Any  # |mu-|^2
    means: Any  # mu+ . mu-
    # E[g+ . g-] of a positive phase and the negative one it is paired with; equals `means` if they
    # are independent
    cross: Any
    replicas: "Moments | None" = None

    def error(self, f: "Callable[[Moments], Any]") -> Any:
        """Jackknife standard error of any function of the moments; zero for exact moments."""
        if self.replicas is None:
            return np.zeros(np.shape(f(self)))
        values = np.asarray(f(self.replicas))
        n = values.shape[-1]
        return np.sqrt((n - 1) * np.mean((values - values.mean(-1, keepdims=True)) ** 2, -1))

    @property
    def se(self) -> "Moments":
        """Standard errors of the six moments."""
        return Moments(*(self.error(lambda m, i=i: m[i]) for i in range(6)))


def given(
    cov_plus: float,
    cov_minus: float,
    mu_plus: Any = 0.0,
    mu_minus: Any = 0.0,
    cov_cross: float = 0.0,
) -> Moments:
    """Moments from the traces of cov(g+), cov(g-), cov(g+, g-) and the two mean vectors."""
    p, m = np.atleast_1d(np.asarray(mu_plus, float)), np.atleast_1d(np.asarray(mu_minus, float))
    return checked(
        Moments(cov_plus + p @ p, cov_minus + m @ m, p @ p, m @ m, p @ m, cov_cross + p @ m)
    )


def checked(m: Moments) -> Moments:
    """Refuse moments that no pair of terms can have."""
    if not all(np.all(np.isfinite(np.asarray(v, float))) for v in m[:6]):
        raise ValueError(
            "the moments are not finite: a gradient overflowed or a parameter diverged; "
            "take an earlier checkpoint or a smaller eta."
        )
    if np.any(np.asarray(m.A) < 0) or np.any(np.asarray(m.C) < 0):
        raise ValueError("A = E|g+|^2 and C = E|g-|^2 are mean squares and cannot be negative.")
    return m


def centred(m: Moments, b: Any = 0.5) -> Moments:
    """Moments of the terms less their common mean b mu+ + (1 - b) mu-: what `Baseline` learns from
    where its running mean is exact.
    """
    plus, minus = b * m.plus + (1 - b) * m.means, b * m.means + (1 - b) * m.minus  # . mean
    square = b * plus + (1 - b) * minus
    return Moments(
        A=m.A - 2 * plus + square,
        C=m.C - 2 * minus + square,
        plus=m.plus - 2 * plus + square,
        minus=m.minus - 2 * minus + square,
        means=m.means - plus - minus + square,
        cross=m.cross - plus - minus + square,
        replicas=None if m.replicas is None else centred(m.replicas, b),
    )


def mean_square(m: Moments) -> Any:
    """|mu+ - mu-|^2: the squared length of both estimators' mean (Proposition 1)."""
    return m.plus + m.minus - 2 * m.means


def trace_two_term(m: Moments) -> Any:
    """Tr cov of eq. 1: Tr(S+ + S- - S+- - S+-^T)."""
    return checked(m).A + m.C - 2 * m.cross - mean_square(m)


def trace_isd(m: Moments, b: Any) -> Any:
    """Tr cov of eq. 2 at each b: b along a new leading axis where it has one."""
    b = _axis(b, checked(m).A)
    return m.A / b + m.C / (1 - b) - mean_square(m)


def best_b(m: Moments) -> Any:
    """b* = sqrt(A) / (sqrt(A) + sqrt(C)): the appendix's b_min, where A = C too (no 0/0)."""
    root_A, root_C = np.sqrt(checked(m).A), np.sqrt(m.C)
    if np.any(root_A + root_C == 0):
        raise ValueError(
            "both terms are always zero, so every b is as good as any other: "
            "there is nothing to learn here."
        )
    return root_A / (root_A + root_C)


def least_trace(m: Moments) -> Any:
    """Tr cov of eq. 2 at b*: (sqrt(A) + sqrt(C))^2 - |mu+ - mu-|^2."""
    return (np.sqrt(checked(m).A) + np.sqrt(m.C)) ** 2 - mean_square(m)


def penalty(m: Moments, b: Any) -> Any:
    """Tr cov of eq. 2 minus that of eq. 1: A (1-b)/b + C b/(1-b) + 2 E[g+·g-].

    Never negative, see `least_penalty`: Lemma 1's assumptions are needed only for its "strictly".
    """
    b = _axis(b, checked(m).A)
    return m.A * (1 - b) / b + m.C * b / (1 - b) + 2 * m.cross


def least_penalty(m: Moments) -> Any:
    """The penalty at b*: 2 (sqrt(AC) + E[g+ . g-]).

    Not below zero by Cauchy-Schwarz, whatever the means and the dependence: given both terms, the
    mean of eq. 2 is eq. 1 (Rao and Blackwell). It is zero only where always g- = -c g+, c > 0.
    """
    return 2 * (np.sqrt(checked(m).A * m.C) + m.cross)


def saving(m: Moments, b: Any = 0.5) -> Any:
    """Fraction of eq. 2's variance at b that b* would save."""
    return 1 - least_trace(m) / trace_isd(m, b)


def _axis(b: Any, like: Any) -> np.ndarray:
    probability(b)
    b = np.asarray(b, float)
    return b.reshape(b.shape + (1,) * np.ndim(like))
