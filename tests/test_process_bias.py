"""Which processes bias ISD and always-on learning, and by how much?

A learner without a network: g_plus = A theta - a, g_minus = C theta - c, so that the exact gradient
(A - C) theta - (a - c) is zero at theta* = 2. A phase is then an affine map of theta, and the mean
of theta in the long run follows exactly: from two by two products of maps, from the law of the
imbalance of a homeostat, from E[r^T] of a geometric length. The loop is the library's own.
"""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import z_score

import flexphase as fp
from flexphase.core import init, tick

A, a, C, c, ETA = 2.0, 3.0, 1.0, 1.0, 0.05
ROOT = (a - c) / (A - C)
T, KAPPA, REACH = 4, 1.0, 60
LANES, PHASES = 256, 1200


class Quadratic(eqx.Module):
    """Both terms are linear in the one parameter; there is no state."""

    def check(self, x):
        """Any stimulus will do."""

    def init(self, key):
        return jnp.float32(ROOT), jnp.float32(0)

    def enter(self, key, params, z, x, sign):
        return z

    def step(self, key, params, z, x, sign):
        return z

    def grad(self, params, z, x, sign):
        return jnp.where(sign > 0, A * params - a, C * params - c)


def maps(estimator, eta):
    """theta -> r theta + s of a positive and of a negative phase, at b = 1/2.

    ISD takes one step of 2 eta; always-on learning T of them of 2 eta / T.
    """
    steps = 1 if estimator is fp.estimators.isd else T
    pairs = []
    for sign, slope, level in ((1, A, a), (-1, C, c)):
        r = (1 - sign * 2 * eta / steps * slope) ** steps
        pairs.append((r, (1 - r) * level / slope))
    return pairs


def after(first, second):
    """The second map of what the first one gives."""
    return second[0] * first[0], second[0] * first[1] + second[1]


def fixed_point(*chances):
    """The mean that (chance, map) pairs, independent of theta, leave as it is."""
    r = sum(p * m[0] for p, m in chances)
    return sum(p * m[1] for p, m in chances) / (1 - r)


def homeostatic(plus, minus):
    """E[theta; D = d] for every imbalance d, from the linear equations that it solves."""
    D = np.arange(-REACH, REACH + 1) / 2
    up = 1 / (1 + np.exp(KAPPA * D))
    rise, fall = np.diag(up[:-1], -1), np.diag(1 - up[1:], 1)  # columns: from; rows: to
    lazy = (rise + fall + np.eye(len(D))) / 2
    law = np.linalg.matrix_power(lazy / lazy.sum(0), 2**14)[:, REACH]
    left = np.eye(len(D)) - plus[0] * rise - minus[0] * fall
    return np.linalg.solve(left, (plus[1] * rise + minus[1] * fall) @ law).sum()


def matched(eta):
    """Always on, + then - of the same geometric length: E[r^T] = (r/tau) / (1 - (1 - 1/tau) r)."""
    shrink, grow = 1 - 2 * eta / T * A, 1 + 2 * eta / T * C

    def mean_power(r):
        return (r / T) / (1 - (1 - 1 / T) * r)

    r = mean_power(shrink * grow)
    s = c / C - r * a / A + mean_power(grow) * (a / A - c / C)
    return s / (1 - r)


def exact(name, estimator, eta=ETA):
    """The mean of theta in the long run."""
    plus, minus = maps(estimator, eta)
    match name:
        case "bernoulli":
            return fixed_point((0.5, plus), (0.5, minus))
        case "alternating":
            return fixed_point((1, after(plus, minus)))
        case "pairs":
            return fixed_point((0.5, after(plus, minus)), (0.5, after(minus, plus)))
        case "homeostatic":
            return homeostatic(plus, minus)
        case "matched":
            return matched(eta)
    raise AssertionError


PROCESSES = {
    "bernoulli": fp.Phases(fp.Bernoulli(0.5), fp.Fixed(T)),
    "alternating": fp.Phases(fp.Alternating(), fp.Fixed(T)),
    "pairs": fp.Phases(fp.Pairs(), fp.Fixed(T)),
    "homeostatic": fp.Phases(fp.Homeostatic(0.5, KAPPA), fp.Fixed(T)),
    "matched": fp.Phases(fp.Alternating(), fp.Matched(fp.Geometric(float(T)))),
}
#: Processes that are looked at after every second phase, where a pair is over.
PAIRED = ("alternating", "pairs", "matched")


@cache
def measured(name, estimator):
    """The mean of theta at the ends of phases (of pairs), a number for each lane."""
    run = fp.Run(Quadratic(), PROCESSES[name], estimator, fp.Rows(np.eye(2)), fp.Optimiser(ETA))
    every = 2 if name in PAIRED else 1

    def one(carry, _):
        s, total, count = carry
        s = tick(run, s)
        ends = (s.phase.left == 0) & (s.phases % every == 0) & (s.phases > 200)
        return (s, total + ends * s.params, count + ends), None

    def lane(key):
        start = (init(run, key), jnp.float32(0), jnp.int32(0))
        (_, total, count), _ = jax.lax.scan(one, start, None, PHASES * T)
        return total / count

    return np.asarray(jax.jit(jax.vmap(lane))(jax.random.split(jax.random.key(9), LANES)), float)


CASES = [
    (name, estimator)
    for estimator in ("isd", "always_on")
    for name in PROCESSES
    if (name, estimator) != ("matched", "isd")  # the same as alternating: lengths do not matter
]


@pytest.mark.parametrize(("name", "estimator"), CASES)
def test_the_long_run_mean_is_the_exact_one(name, estimator):
    """256 lanes of 1,000 phases after 200: |z| < 4."""
    rule = getattr(fp.estimators, estimator)
    values = measured(name, rule)
    error = values.std(ddof=1) / LANES**0.5 + 1e-5  # strict alternation has no noise
    assert z_score(values.mean(), exact(name, rule), error) < 4


def leading(estimator, eta=1e-4):
    """The bias of theta over eta, for a small eta."""
    return {name: (exact(name, estimator, eta) - ROOT) / eta for name in PROCESSES}


def test_only_independent_signs_leave_isd_unbiased():
    """With g = g_plus = g_minus = 1 at theta*, by hand: 0 for independent signs;
    -2 C g / (A - C) = -2 for a negative phase after each positive one;
    -(A + C) g / (A - C) = -3 for pairs, and for a homeostat that has all the time that a small eta
    leaves.
    """
    bias = leading(fp.estimators.isd)
    assert bias["bernoulli"] == pytest.approx(0, abs=1e-6)
    assert bias["alternating"] == pytest.approx(-2, abs=0.01)
    assert bias["pairs"] == pytest.approx(-3, abs=0.01)
    assert bias["homeostatic"] == pytest.approx(-3, abs=0.01)


def test_always_on_learning_adds_its_feedback():
    """By hand: learning inside a phase adds (A + C) g E[T (T - 1)] / tau^2 / (A - C), and the
    correlation is that of ISD times E[T^2] / tau^2 where both phases of a pair last as long.
    """
    bias, inside = leading(fp.always_on), (A + C) * (1 - 1 / T)
    assert bias["bernoulli"] == pytest.approx(inside, abs=0.01)
    assert bias["alternating"] == pytest.approx(inside - 2, abs=0.01)
    assert bias["pairs"] == pytest.approx(inside - 3, abs=0.01)
    assert bias["homeostatic"] == pytest.approx(inside - 3, abs=0.01)
    assert bias["matched"] == pytest.approx(2 * inside - 2 * (2 - 1 / T), abs=0.01)


def test_the_measured_bias_is_seen_beyond_noise():
    """Ten standard errors from theta* where signs are correlated, less than four where not."""
    far = {}
    for name in ("bernoulli", "pairs", "homeostatic", "alternating"):
        values = measured(name, fp.estimators.isd)
        far[name] = z_score(values.mean(), ROOT, values.std(ddof=1) / LANES**0.5 + 1e-5)
    assert far.pop("bernoulli") < 4 and min(far.values()) > 10
