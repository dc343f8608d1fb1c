"""Variance of the estimators: closed forms by sympy, full covariances on tiny cases, simulated
streams, enumerated machines.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from conftest import z_score
from test_core import SOURCE, Counter

from flexphase.core import Optimiser, Run
from flexphase.data import Rows, bars_and_stripes
from flexphase.estimators import Weighted, phase_change
from flexphase.methods import RBM, BoltzmannMachine
from flexphase.phases import Bernoulli, Fixed, Geometric, Phases
from flexphase.rules import aol, cd, isd
from flexphase.theory import figures
from flexphase.theory.claims import FEW, variance_claims
from flexphase.theory.exact import exact_moments
from flexphase.theory.moments import from_lanes, moments
from flexphase.theory.streams import Stream, deviation, stream
from flexphase.theory.variance import (
    Moments,
    best_b,
    centred,
    given,
    least_penalty,
    least_trace,
    penalty,
    saving,
    trace_isd,
    trace_two_term,
)
from flexphase.theory.zoo import learners

B = np.array([0.05, 0.2, 0.5, 0.8, 0.95])
LEARNERS = [pytest.param(item, id=item.name) for item in learners()]


def tiny(seed, dependent, less=None):
    """Two terms in R^3 that take four joint values: points, probabilities, their Moments, and the
    full covariances of both estimators. `less` is a share b: b mu+ + (1 - b) mu- is subtracted.
    """
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(2, 4, 3))
    weight = rng.dirichlet(np.ones(4)) if dependent else np.full(4, 0.25)
    if not dependent:  # all sixteen pairs of values
        p, q, weight = np.repeat(p, 4, 0), np.tile(q, (4, 1)), np.full(16, 1 / 16)

    def mean(f):
        return np.tensordot(weight, f, 1)

    def outer(f):
        return mean(f[:, :, None] * f[:, None, :])

    if less is not None:
        common = less * mean(p) + (1 - less) * mean(q)
        p, q = p - common, q - common
    mu_p, mu_q = mean(p), mean(q)
    m = Moments(
        mean((p * p).sum(1)),
        mean((q * q).sum(1)),
        mu_p @ mu_p,
        mu_q @ mu_q,
        mu_p @ mu_q,
        mean((p * q).sum(1)),
    )
    both = np.outer(mu_p - mu_q, mu_p - mu_q)
    return m, outer(p - q) - both, lambda b: outer(p) / b + outer(q) / (1 - b) - both


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_traces_equal_those_of_the_full_covariances(seed, dependent):
    m, two, single = tiny(seed, dependent)
    assert trace_two_term(m) == pytest.approx(np.trace(two), rel=1e-12)
    assert trace_isd(m, B) == pytest.approx([np.trace(single(b)) for b in B], rel=1e-12)
    assert (m.cross == pytest.approx(m.means)) == (not dependent)


@pytest.mark.parametrize("dependent", [False, True])
def test_moments_less_the_common_mean_are_those_of_the_shifted_terms(dependent):
    m, shifted = tiny(1, dependent)[0], tiny(1, dependent, less=0.3)[0]
    ours = centred(m._replace(replicas=m), 0.3)
    assert ours.replicas is not None
    for one in (ours, ours.replicas):
        np.testing.assert_allclose(np.array(one[:6]), np.array(shifted[:6]), rtol=1e-12)
    assert trace_two_term(centred(m, 0.3)) == pytest.approx(trace_two_term(m), rel=1e-12)


def test_the_cross_term_of_eq_1_is_symmetric():
    """cov(g+ - g-) = S+ + S- - S+- - S+-^T, which the paper writes with 2 S+-: as a matrix that is
    another one, its trace is the same.
    """
    rng = np.random.default_rng(0)
    g = rng.normal(size=(6, 6)) @ rng.normal(size=(6, 100))
    S = np.cov(g)
    plus, minus, cross = S[:3, :3], S[3:, 3:], S[:3, 3:]
    right, printed = plus + minus - cross - cross.T, plus + minus - 2 * cross
    assert right == pytest.approx(np.cov(g[:3] - g[3:]), rel=1e-9)
    assert not np.allclose(printed, right) and np.trace(printed) == pytest.approx(np.trace(right))


def test_closed_forms_by_sympy():
    A, C, b, X = sympy.symbols("A C b X", positive=True)
    trace = A / b + C / (1 - b) - X
    best = sympy.sqrt(A) / (sympy.sqrt(A) + sympy.sqrt(C))
    printed = (A - sympy.sqrt(A * C)) / (A - C)
    assert sympy.simplify(sympy.diff(trace, b).subs(b, best)) == 0
    assert sympy.simplify(best - printed) == 0  # where the printed form is not 0/0
    bend = 2 * A / b**3 + 2 * C / (1 - b) ** 3  # positive on (0, 1): Lemma 2
    assert sympy.simplify(sympy.diff(trace, b, 2) - bend) == 0
    assert sympy.simplify(trace.subs(b, best) - ((sympy.sqrt(A) + sympy.sqrt(C)) ** 2 - X)) == 0
    cross = sympy.Symbol("x", real=True)
    excess = trace - (A + C - 2 * cross - X)
    assert sympy.simplify(excess.subs(b, best) - 2 * (sympy.sqrt(A * C) + cross)) == 0


@pytest.mark.parametrize(
    "A, C", [(1.0, 1.0), (1.0, 4.0), (9.0, 0.25), (1e-12, 1e12), (3.0, 3.0 + 1e-12)]
)
def test_best_b_is_the_brute_force_minimum(A, C):
    m = given(A, C)
    grid = np.concatenate(
        [
            np.linspace(1e-4, 1 - 1e-4, 19_999),
            best_b(m) + np.linspace(-1, 1, 2001) * 1e-3 * min(best_b(m), 1 - best_b(m)),
        ]
    )
    assert np.all(
        trace_isd(m, grid[(grid > 0) & (grid < 1)]) >= trace_isd(m, best_b(m)) * (1 - 1e-12)
    )
    assert least_trace(m) == pytest.approx(trace_isd(m, best_b(m)), rel=1e-9)
    assert 0 <= saving(m) < 1


def test_the_printed_b_min_breaks_where_the_stable_form_does_not():
    assert best_b(given(0.5, 0.5)) == 0.5
    with np.errstate(invalid="ignore"):
        A = C = np.float64(0.5)
        assert np.isnan((A - np.sqrt(A * C)) / (A - C))


@pytest.mark.parametrize("dependent", [False, True])
def test_lemma_1_holds_weakly_for_all_means_and_dependences(dependent):
    """Rao and Blackwell: whatever the signs of the means, ISD is never better; strictly worse under
    the lemma's assumptions.
    """
    for seed in range(40):
        m, two, single = tiny(seed, dependent)
        excess = np.array([np.trace(single(b)) for b in B]) - np.trace(two)
        assert penalty(m, B) == pytest.approx(excess, abs=1e-9)
        assert excess.min() >= least_penalty(m) - 1e-9 >= -1e-9
        if not dependent and m.means >= 0:
            assert excess.min() > 0


def test_lemma_1_is_not_strict_without_its_assumption_on_the_means():
    """Opposite constants are independent, mu+ . mu- < 0, and both estimates are always 2: no
    variance in either.
    """
    m = given(0, 0, [1.0], [-1.0])
    assert (
        m.means < 0 and trace_two_term(m) == 0 and trace_isd(m, 0.5) == 0 and penalty(m, 0.5) == 0
    )
    assert penalty(m, 0.4) > 0


@pytest.mark.parametrize(
    "method, rule",
    [(RBM(4, 3, scale=0.7), cd(12)), (BoltzmannMachine(4, 2, scale=0.7), isd(0.3, 12))],
    ids=["RBM, eq. 1", "Boltzmann, eq. 2"],
)
def test_measured_moments_meet_enumerated_ones(method, rule):
    """Twelve ticks are many relaxation times of these machines. Six numbers: |z| < 4."""
    data = bars_and_stripes(2)
    params, _ = method.init(jax.random.key(1))
    exact = exact_moments(method, params, data)
    m = moments(Run(method, *rule, Rows(data), Optimiser(0.1)), params, phases=100, lanes=256)
    assert max(z_score(np.array(m[:6]), np.array(exact[:6]), np.array(m.se[:6]))) < 4
    assert z_score(best_b(m), best_b(exact), m.error(best_b)) < 4


def test_errors_of_moments_are_honest():
    """The standard errors match the spread over 24 repeats (chi-square: each within a factor 1.6
    with 23 degrees of freedom).
    """
    method, data = RBM(2, 2, scale=0.5), bars_and_stripes(2)[:, :2]
    params, _ = method.init(jax.random.key(0))
    run = Run(method, *isd(0.5, 4), Rows(data), Optimiser(0.1))
    repeats = [moments(run, params, phases=40, lanes=64, seed=s) for s in range(24)]
    spread = np.std([m[:6] for m in repeats], axis=0, ddof=1)
    stated = np.sqrt(np.mean([np.square(m.se[:6]) for m in repeats], axis=0))
    assert np.all((spread / stated > 1 / 1.6) & (spread / stated < 1.6))


def test_always_on_terms_are_averages_over_the_phase():
    """Clamped chains are independent draws, so averaging T of them leaves the mean and divides the
    variance given the data by T: A = |mu|^2 + between + within/T, from enumeration at T = 1 and the
    means of the rows.
    """
    method, data = RBM(4, 3, scale=0.7), bars_and_stripes(2)
    params, _ = method.init(jax.random.key(1))
    each = [exact_moments(method, params, row[None]) for row in data]
    within, means = np.mean([m.A - m.plus for m in each]), np.mean([m.plus for m in each])
    m = moments(
        Run(method, *aol(0.5, 10), Rows(data), Optimiser(0.1)), params, phases=100, lanes=256
    )
    assert z_score(m.A, means + within / 10, m.se.A) < 4


def test_moments_of_what_a_phase_added():
    """The counter's term is 1 at the first tick of a phase and T at its last, so that a phase adds
    T - 1. With a geometric T of mean 4: mean 3, mean square (tau - 1) (2 tau - 1) = 21 (|z| < 4);
    with two ticks always 1.
    """
    process = Phases(Bernoulli(0.3), Geometric(4.0), Fixed(2))
    run = Run(Counter(), process, phase_change, SOURCE, Optimiser(0.0))
    m = moments(run, jnp.float32(0), phases=2000, lanes=32)
    assert z_score(m.A, 21, m.se.A) < 4 and z_score(m.plus, 9, m.se.plus) < 4
    assert (m.C, m.minus) == pytest.approx((1, 1))
    steps = stream(run, jnp.float32(0), phases=2000, lanes=32)  # of sign/prob (T - 1)
    assert z_score(steps.mean.mean(), 3 - 1, steps.mean.std(ddof=1) / np.sqrt(32)) < 4


def test_a_term_that_is_not_used_has_no_moments():
    """sign/prob at every tick, used at the last alone, is isd."""
    learner = learners()[0]
    run = learner.isd(0.3)
    wide = run._replace(estimator=Weighted(lambda phase: (phase.sign / phase.prob, phase.last)))
    ours, theirs = (moments(each, learner.params, phases=20, lanes=8) for each in (wide, run))
    assert ours[:6] == pytest.approx(theirs[:6], rel=1e-6)


def test_every_learner_is_drawn():
    """A predicted curve, its name and a dotted level for each of the five."""
    b = np.array([0.25, 0.75])
    curves = {
        learner.name: (given(1, i), b, trace_isd(given(1, i), b), np.full(2, 0.01), 1.0)
        for i, learner in enumerate(learners(), 1)
    }
    ax = figures.panels(1)[0]
    figures.measured_traces(ax, curves)
    names = [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()]
    assert names == list(curves) and len(curves) == 5
    drawn = [line for line in ax.lines if len(line.get_xdata()) == len(figures.B)]
    for line, (m, *_) in zip(drawn, curves.values(), strict=True):
        np.testing.assert_allclose(line.get_ydata(), trace_isd(m, figures.B) / least_trace(m))


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_claims_of_the_variance_hold_on_every_kind_of_learner(learner):
    """Proposition 1 (|z| below the Bonferroni bound), traces within 2 %, both lemmas and b*, on
    simulated streams.
    """
    claims = list(variance_claims(learner))
    assert [c.statement for c in claims if not c.passed] == []
    assert claims[0].source == "Proposition 1" and claims[0].measured < FEW


def test_a_biased_estimator_is_found_out():
    """Weights made from the wrong b, as in the authors' code for Forward-Forward, fail the test
    that ISD passes.
    """
    learner = learners()[0]
    right = stream(learner.two_term(), learner.params, phases=100, seed=1)
    single = stream(learner.isd(0.3), learner.params, phases=100, seed=2)
    assert deviation(single.mean, right.mean) < FEW
    assert deviation(single.mean * 0.3 / 0.5, right.mean) > 2 * FEW


def test_trace_of_a_stream_is_that_of_its_samples():
    """One estimate a lane: the pooled trace is the unbiased sample covariance's."""
    g = np.random.default_rng(0).normal(size=(50, 4))
    trace, error = Stream(g, (g * g).sum(1)).trace()
    assert trace == pytest.approx(np.trace(np.cov(g.T))) and error > 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_moments_must_be_finite(bad):
    with pytest.raises(ValueError, match="not finite"):
        trace_isd(Moments(bad, 1, 0, 0, 0, 0), 0.5)
    with pytest.raises(ValueError, match="not finite"):
        best_b(given(1.0, bad))


@pytest.mark.parametrize("b", [0, 1, -0.1, 1.5, np.nan, [0.5, 1.0]])
def test_b_at_the_ends_is_refused(b):
    with pytest.raises(ValueError, match=r"0 and 1|finite"):
        trace_isd(given(1, 1), b)


def test_other_bad_input():
    with pytest.raises(ValueError, match="every b is as good"):
        best_b(given(0, 0))
    with pytest.raises(ValueError, match="cannot be negative"):
        best_b(given(-1, 1))
    learner = learners()[0]
    with pytest.raises(ValueError, match="at least 4 lanes"):
        moments(learner.two_term(), learner.params, lanes=1)
    with pytest.raises(ValueError, match="do not fit"):
        moments(learner.two_term(), learner.params.W)
    with pytest.raises(ValueError, match="not finite"):
        moments(learner.two_term(), learner.params._replace(W=learner.params.W * np.nan))
    with pytest.raises(ValueError, match="too few phases"):
        from_lanes(
            np.zeros((4, 2, 3)),
            np.zeros((4, 2)),
            np.array([[0.0, 4.0]] * 4),
            np.zeros(4),
            np.zeros(4),
        )
    with pytest.raises(ValueError, match="too many to enumerate"):
        exact_moments(RBM(30, 2), RBM(30, 2).init(jax.random.key(0))[0], np.zeros((1, 30)))
    with pytest.raises(ValueError, match="only Boltzmann machines"):
        exact_moments(learners()[3].method, learners()[3].params, np.zeros((1, 4)))
