"""Moments of the geometric phase length: sympy's sums, simulation of the library's own process, and
the paper's slips.
"""

import jax
import numpy as np
import pytest
import sympy
from conftest import z_score

from flexphase.phases import Alternating, Geometric, Phases, tape
from flexphase.theory.lengths import moment, moment_given, shorter

t = sympy.Symbol("tau", positive=True)


def generated(k):
    """E[T^k] from the generating function p e^u / (1 - (1 - p) e^u)."""
    u, p = sympy.symbols("u p", positive=True)
    return sympy.simplify(
        sympy.diff(p * sympy.exp(u) / (1 - (1 - p) * sympy.exp(u)), u, k).subs(u, 0).subs(p, 1 / t)
    )


@pytest.mark.parametrize("k", range(1, 6))
@pytest.mark.parametrize("tau", [1, 1.5, 3, 150])
def test_moments_are_those_of_the_generating_function(k, tau):
    assert moment(k, tau) == pytest.approx(
        float(generated(k).subs(t, sympy.Rational(str(tau)))), rel=1e-12
    )


def test_third_moment_ends_in_plus_tau():
    assert sympy.expand(generated(3) - (6 * t**3 - 6 * t**2 + t)) == 0  # printed: - tau


def sums(tau, s, f, ticks=40_000):
    """E[f(T) | T >= s] and P(T < s) by adding up the probabilities themselves."""
    k = np.arange(1, ticks, dtype=float)
    p = (1 - 1 / tau) ** (k - 1) / tau
    return (p * f(k))[k >= s].sum() / p[k >= s].sum(), p[k < s].sum()


@pytest.mark.parametrize("tau, s", [(1.5, 2), (10, 1), (10, 7), (150, 12), (150, 400)])
def test_conditional_moments_are_the_sums(tau, s):
    for k in range(4):
        assert moment_given(k, tau, s) == pytest.approx(
            sums(tau, s, lambda T, k=k: T**k)[0], rel=1e-9
        )
    assert shorter(tau, s) == pytest.approx(sums(tau, s, np.ones_like)[1], rel=1e-9, abs=1e-12)


def test_printed_conditional_moments_are_slips():
    tau, s = 10.0, 4
    assert moment_given(1, tau, s) == tau + s - 1  # printed: tau + s
    shifted = 2 * tau**2 - tau + 2 * tau * s + s**2  # E[(T + s)^2]; printed: tau^2 + 2 tau s + s^2
    assert moment_given(2, tau, s + 1) == pytest.approx(shifted)
    printed = 1 - (1 - 1 / tau) ** s  # for P(T < s): it is P(T <= s)
    assert printed == pytest.approx(shorter(tau, s + 1))


@pytest.mark.parametrize("tau", [1.0, 2.5, 40.0])
def test_phases_have_these_lengths(tau):
    """Half a million phases of the library's own process; |z| < 4 for three moments and a
    probability.
    """
    T = np.asarray(
        tape(Phases(Alternating(), Geometric(tau)), jax.random.key(1), 500_000).ticks, float
    )
    for k in (1, 2, 3):
        assert z_score(np.mean(T**k), moment(k, tau), np.std(T**k) / np.sqrt(len(T)) + 1e-12) < 4
    p = shorter(tau, 5)
    assert z_score(np.mean(T < 5), p, np.sqrt(p * (1 - p) / len(T)) + 1e-12) < 4


def test_bad_input():
    for tau in (0.5, np.nan, -1):
        with pytest.raises(ValueError, match=r"at least 1 tick|finite"):
            moment(1, tau)
    with pytest.raises(ValueError, match="order of a moment"):
        moment(-1, 3)
    with pytest.raises(ValueError, match="counts ticks"):
        shorter(3, 0)
