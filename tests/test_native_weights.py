"""Rules of a user's own on the compiled engines: what they say is what is learned, or they are
refused. The JAX engine, which asks the rule at every tick, is the reference.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_forward_forward_native import SIZES as FORWARD
from test_layered import assert_like_jax
from test_phases_native import ROWS, compare

import flexphase as fp
from flexphase import kernels
from flexphase.data import LabelContrast, digits
from flexphase.engines import compiled
from flexphase.engines import forward_forward as forward
from flexphase.engines.jax import JaxEngine
from flexphase.engines.tapes import not_on_tape
from flexphase.lanes import lanes
from flexphase.methods import ForwardForward

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")


@fp.Weighted
def at_the_end(phase):
    """The example of the docstring of `Weighted`: a weight at all ticks, a step at the last."""
    return phase.sign / phase.prob, phase.last


@fp.Weighted
def when_positive(phase):
    """A weight in all phases, a step in positive ones."""
    return phase.sign / phase.prob, phase.sign > 0


@fp.Weighted
def at_first_or_last(phase):
    return phase.sign, phase.first | phase.last


def after(n):
    return fp.Weighted(lambda p: (p.sign * (p.ticks - p.left >= n), p.sign != 0))


def before(n):
    return fp.Weighted(lambda p: (p.sign, p.left <= n))


def window(low, high):
    return fp.Weighted(lambda p: (jnp.where((p.left > low) & (p.left < high), 2.0, 1.0), p.last))


CHANGES = {
    **{f"after {n}": after(n) for n in (2, 5, 10, 100, 5_000, 1_000_000)},
    **{f"before {n}": before(n) for n in (2, 5, 10, 100, 5_000, 1_000_000)},
    "window": window(200, 220),
    "every fifth": fp.Weighted(lambda p: (p.sign * (p.left % 5 == 0), p.sign != 0)),
    "half": fp.Weighted(lambda p: (p.sign * (2 * p.left < p.ticks), p.sign != 0)),
    "in rests": fp.Weighted(lambda p: (jnp.where(p.sign == 0, 1.0 * p.left, p.sign), p.last)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_rule_that_changes_inside_a_phase_is_refused(name):
    assert "same at all ticks" in (not_on_tape(CHANGES[name]) or "")


def test_a_fixed_number_of_ticks_is_never_trained_as_another_rule():
    """`left <= 10` is constant in phases of seven ticks, and not in those of twenty."""
    run = fp.Run(fp.RBM(5, 3), *fp.aol(0.5, 20), ROWS, fp.Optimiser(0.1))
    run = run._replace(estimator=before(10))
    assert all(engine.refuses(run) for engine in compiled(1))


@pytest.mark.parametrize("rule", [at_the_end, when_positive, at_first_or_last, fp.always_on])
def test_a_rule_that_can_be_told_is_not_refused(rule):
    assert not_on_tape(rule) is None


@pytest.mark.parametrize("rule", [at_the_end, when_positive])
def test_a_weight_without_a_step_is_not_learned_by_boltzmann_machines(rule, monkeypatch):
    method = fp.RBM(5, 3, scale=0.3)
    process = fp.Phases(fp.Bernoulli(0.4), fp.Geometric(4.0))
    run = fp.Run(method, process, rule, ROWS, fp.Optimiser(0.05))
    compare(monkeypatch, lanes(run, 2, 3))


@pytest.mark.parametrize("rule", [at_the_end, when_positive])
def test_a_weight_without_a_step_is_not_learned_by_layered_networks(rule):
    from test_layered import make_run

    assert_like_jax(make_run("random length", "isd")._replace(estimator=rule))


@pytest.mark.parametrize("b", [0.4, 0.9])
def test_a_weight_without_a_step_is_not_learned_by_forward_forward(b):
    process = fp.Phases(fp.Bernoulli(b), fp.Fixed(1))
    source = LabelContrast(*digits(), paired=False)
    method = ForwardForward(FORWARD)
    every = lanes(
        fp.Run(method, process, when_positive, source, fp.Optimiser(0.5, optax.sgd)), 1, 3
    )
    start = JaxEngine().start(every)
    theirs = JaxEngine().advance(every, start, 100, lambda n: None)
    ours = forward.advance(every, start, 100, lambda n: None, 1)
    assert int(ours.updates[0]) == int(theirs.updates[0])
    leaves = map(jax.tree.leaves, (ours.params, theirs.params, start.params))
    for native, exact, first in zip(*leaves, strict=True):
        assert np.abs(exact - first).max() > 1e-3
        np.testing.assert_allclose(native, exact, atol=1e-5)
