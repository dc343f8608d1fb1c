"""Estimators with a memory: against sums by hand, autodiff of nothing, and exact expectations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from on_jax import train
from test_core import SOURCE, Counter

import flexphase as fp
from flexphase import estimators
from flexphase.core import init, tick


def phases_of(process, key, n):
    return jax.tree.map(lambda a: np.asarray(a, float), fp.tape(process, key, n))


def test_the_differential_telescopes_to_what_a_phase_added():
    """The counter's term is 1, 2, ..., T_n in phase n, so phase n adds T_n - T_{n-1} (the first one
    T_1 - 1, for there is no tick before it), weighted by sign / prob; summed in NumPy."""
    process = fp.Phases(fp.Bernoulli(0.3), fp.Geometric(4.0), fp.Fixed(2))
    run = fp.Run(Counter(), process, fp.differential, SOURCE, fp.Optimiser(0.5))
    told = phases_of(process, init(run, jax.random.key(2)).key, 80)
    ticks = int(told.ticks.sum())
    before = np.concatenate([[1], told.ticks[:-1]])
    expected = -0.5 * np.sum(told.sign / told.prob * (told.ticks - before))
    record = train(run, ticks=ticks, seed=2, records=1)
    assert record.params["theta"][0] == pytest.approx(expected, rel=1e-4)
    assert record["updates"][0, -1] == ticks - 1


def test_the_change_of_a_phase_is_learned_at_its_end():
    """The counter's term is 1 at the first tick of phase n and T_n at its last; summed in NumPy."""
    process = fp.Phases(fp.Bernoulli(0.3), fp.Geometric(4.0), fp.Fixed(2))
    run = fp.Run(Counter(), process, fp.phase_change, SOURCE, fp.Optimiser(0.5))
    told = phases_of(process, init(run, jax.random.key(2)).key, 80)
    expected = -0.5 * np.sum(told.sign / told.prob * (told.ticks - 1))
    record = train(run, ticks=int(told.ticks.sum()), seed=2, records=1)
    assert record.params["theta"][0] == pytest.approx(expected, rel=1e-4)
    assert record["updates"][0, -1] == 80


@pytest.mark.parametrize("duration", [fp.Fixed(1), fp.Geometric(1.0)])
def test_phases_of_one_tick_are_refused_where_nothing_would_be_learned(duration):
    """g_T - g_1 is 0 for T = 1; where one sign has two ticks there is something to learn."""
    run = fp.Run(
        Counter(),
        fp.Phases(fp.Bernoulli(0.3), duration),
        fp.phase_change,
        SOURCE,
        fp.Optimiser(0.5),
    )
    with pytest.raises(ValueError, match=r"phases of one tick.*estimators.isd"):
        train(run, ticks=4)
    longer = run._replace(process=fp.Phases(fp.Bernoulli(0.3), duration, fp.Fixed(2)))
    assert train(longer, ticks=40, records=1).params["theta"][0] != 0


def test_the_baseline_is_the_recursion_of_its_definition():
    """step = sign/prob (T - m), m += rate (T - m) at the end of each phase, in NumPy."""
    process = fp.Phases(fp.Bernoulli(0.4), fp.Geometric(3.0))
    run = fp.Run(Counter(), process, fp.Baseline(0.2), SOURCE, fp.Optimiser(0.1))
    told = phases_of(process, init(run, jax.random.key(1)).key, 60)
    theta = m = 0.0
    for sign, prob, T in zip(told.sign, told.prob, told.ticks, strict=True):
        theta -= 0.1 * sign / prob * (T - m)
        m += 0.2 * (T - m)
    record = train(run, ticks=int(told.ticks.sum()), seed=1, records=1)
    assert record.params["theta"][0] == pytest.approx(theta, rel=1e-4)


def steps_of(estimator, b, phases=400, lanes=256):
    """The steps that a frozen RBM's estimator makes, (lanes, phases, numbers): terms at T = 1."""
    method = fp.RBM(4, 2, scale=0.7)
    process = fp.Phases(fp.Bernoulli(b), fp.Fixed(1))
    run = fp.Run(method, process, estimator, fp.Rows(fp.bars_and_stripes(2)), fp.Optimiser(0.0))
    params = method.init(jax.random.key(1))[0]

    def lane(key):
        def one(s, _):
            new = tick(run, s)
            g = method.grad(s.params, new.z, new.x, new.phase.sign)
            step = estimator.update(new.during, g, s.memory)[0]
            return new, step.W.ravel()

        return jax.lax.scan(one, init(run, key, params), None, phases)[1]

    return np.asarray(jax.vmap(lane)(jax.random.split(jax.random.key(7), lanes)))


@pytest.mark.parametrize("b", [0.2, 0.5, 0.8])
def test_a_baseline_is_unbiased_for_every_b_and_less_noisy(b):
    """Against ISD, which test_rbm.py measures against enumeration: the same means over independent
    lanes (largest |z| of 8 numbers below 4), and a smaller trace of the covariance."""
    plain, centred = steps_of(estimators.isd, b), steps_of(fp.Baseline(0.05), b)
    late = slice(100, None)  # after the mean has settled; it is unbiased before, too
    means = [steps[:, late].mean(1) for steps in (plain, centred)]
    error = np.sqrt(sum(m.var(0, ddof=1) / len(m) for m in means))
    assert np.abs((means[0].mean(0) - means[1].mean(0)) / error).max() < 4
    trace = [steps[:, late].var((0, 1)).sum() for steps in (plain, centred)]
    assert trace[1] < 0.8 * trace[0]


class Peeks(fp.Baseline):
    """A baseline that knows the present phase: its mean already holds this term."""

    def update(self, phase, g, memory):
        _, _, known = fp.Baseline.update(self, phase, g, memory)
        return fp.Baseline.update(self, phase, g, known)


def test_a_baseline_that_knows_the_present_phase_is_found_out():
    """It shrinks every term by 1 - rate: here to half of the unbiased mean."""
    plain, peeking = steps_of(estimators.isd, 0.5), steps_of(Peeks(0.5), 0.5)
    means = [steps.mean(1) for steps in (plain, peeking)]
    error = np.sqrt(sum(m.var(0, ddof=1) / len(m) for m in means))
    assert np.abs((means[0].mean(0) - means[1].mean(0)) / error).max() > 6


def test_a_phase_of_sign_0_teaches_nothing():
    rest = fp.Phase(*map(jnp.float32, (0, 0.5, 3)), jnp.int32(3), jnp.int32(1))
    for estimator in (estimators.isd, fp.always_on, fp.two_term, fp.Baseline(0.1), fp.differential):
        memory = estimator.init(jnp.ones(2))
        assert not estimator.update(rest, jnp.ones(2), memory)[1]


@pytest.mark.parametrize("rate", [0, -1, 1.5, np.nan, "fast"])
def test_rates_that_no_baseline_has(rate):
    with pytest.raises(ValueError, match="the rate of a baseline"):
        fp.Baseline(rate)


def test_the_advice_for_random_phases_works():
    """Both estimators that the error names train where two_term does not."""
    process = fp.Phases(fp.Bernoulli(0.5), fp.Fixed(2))
    run = fp.Run(Counter(), process, fp.two_term, SOURCE, fp.Optimiser(0.1))
    with pytest.raises(ValueError, match=r"flexphase.estimators.isd or flexphase.always_on"):
        train(run, ticks=4)
    for named in (fp.estimators.isd, fp.always_on):
        assert train(run._replace(estimator=named), ticks=4)["updates"].max() > 0
