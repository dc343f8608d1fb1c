"""Rules of a user's own on the compiled engines: what they say is what is learned, or they are
refused. The JAX engine, which asks the rule at every tick, is the reference.
"""

import copy

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
from flexphase.engines import choose, compiled
from flexphase.engines import forward_forward as forward
from flexphase.engines.jax import JaxEngine
from flexphase.engines.tapes import not_on_tape
from flexphase.estimators import weigh_always_on
from flexphase.lanes import lanes
from flexphase.methods import EquilibriumPropagation, ForwardForward
from flexphase.optimisers import LayerRates
from flexphase.replicas import Batches, Replicas

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


def after_a_share(phase):
    """No learning in the first tenth of a phase of mean length."""
    return phase.sign / phase.prob, phase.ticks - phase.left >= 0.1 * phase.length


CHANGES = {
    **{f"after {n}": after(n) for n in (2, 5, 10, 100, 5_000, 1_000_000)},
    **{f"before {n}": before(n) for n in (2, 5, 10, 100, 5_000, 1_000_000)},
    "window": window(200, 220),
    "every fifth": fp.Weighted(lambda p: (p.sign * (p.left % 5 == 0), p.sign != 0)),
    "half": fp.Weighted(lambda p: (p.sign * (2 * p.left < p.ticks), p.sign != 0)),
    "in rests": fp.Weighted(lambda p: (jnp.where(p.sign == 0, 1.0 * p.left, p.sign), p.last)),
    "after a share of the mean": fp.Weighted(after_a_share),
    "before a share of the mean": fp.Weighted(lambda p: (p.sign, p.left <= 0.1 * p.length)),
    "before so many in four": fp.Weighted(lambda p: (p.sign, p.left <= 4 * p.prob)),
    "one of many": fp.Weighted(lambda p: (p.sign, p.left == 37)),
    "by itself": fp.Weighted(lambda p: (p.left, p.last)),
    "through jnp": fp.Weighted(lambda p: (p.sign, jnp.less(p.left, 3))),
    "in a table": fp.Weighted(lambda p: (jnp.arange(200.0)[p.left], p.last)),
    "as a leaf": fp.Weighted(lambda p: (p.sign, jnp.int32(jax.tree.leaves(p)[-1]) < 3)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_rule_that_changes_inside_a_phase_is_refused(name):
    assert "same at all ticks" in (not_on_tape(CHANGES[name]) or "")


def test_a_fixed_number_of_ticks_is_never_trained_as_another_rule():
    """`left <= 10` is constant in phases of seven ticks, and not in those of twenty."""
    run = fp.Run(fp.RBM(5, 3), *fp.aol(0.5, 20), ROWS, fp.Optimiser(0.1))
    run = run._replace(estimator=before(10))
    assert all(engine.refuses(run) for engine in compiled(1))


@pytest.mark.parametrize("make", [fp.RBM, EquilibriumPropagation])
@pytest.mark.parametrize(
    "name", ["after a share of the mean", "before a share of the mean", "before so many in four"]
)
def test_whatever_the_lengths_and_shares_of_phases_auto_trains_the_rule_that_was_given(make, name):
    """Updates are counted by hand, from the tape of phases; and in every run of a grid."""
    data = np.eye(4)
    method, rows = (make(4, 4), data) if make is fp.RBM else (make((4, 4)), (data, data))

    def run(b):
        process = fp.Phases(fp.Bernoulli(b), fp.Fixed(100))
        return fp.Run(method, process, CHANGES[name], fp.Rows(rows), fp.Optimiser(0.02))

    record = fp.train(fp.grid(run, b=[0.5, 0.75]), ticks=1000, records=1)
    for lane, b in enumerate((0.5, 0.75)):
        ticks = list(fp.schedule(run(b), seed=0, phases=10))
        by_hand = sum(tick.apply for tick in ticks)
        assert record["updates"].values[lane, 0, -1] == by_hand
    assert record.attrs["engine"] == "jax"
    with pytest.raises(ValueError, match="same at all ticks"):
        choose("native", run(0.5))


CAN_BE_TOLD = {
    "at the end": at_the_end,
    "when positive": when_positive,
    "at first or last": at_first_or_last,
    "always on": fp.always_on,
    "isd": fp.estimators.isd,
    "in full": fp.Weighted(lambda p: (p.sign, (p.left == 1) | (p.ticks == p.left))),
    "by length": fp.Weighted(lambda p: (p.sign * p.ticks / p.length, p.ticks > 10 * p.prob)),
    "plain numbers": fp.Weighted(lambda p: (1.0, True)),
}


@pytest.mark.parametrize("name", CAN_BE_TOLD)
def test_a_rule_that_can_be_told_is_not_refused(name):
    assert not_on_tape(CAN_BE_TOLD[name]) is None


class Nothing(fp.Weighted):
    """A step of its own: none."""

    def update(self, phase, g, memory):
        return super().update(phase, jax.tree.map(jnp.zeros_like, g), memory)


NOTHING = Nothing(weigh_always_on)


def fitting():
    """A run for each compiled engine, with every part that it takes to pieces."""
    noisy = fp.OnDevice(fp.Optimiser(0.1), fp.Device(range=2.0))
    layers, pair = (4, 3, 4), fp.Rows((np.eye(4), np.eye(4)))
    rates = fp.Optimiser(0.1, LayerRates((1.0, 0.5)))
    replicas = Replicas(EquilibriumPropagation(layers), 2)
    held, labelled = fp.Held(Batches(pair, 2), phases=2), LabelContrast(*digits())
    return {
        "boltzmann": fp.Run(
            fp.RBM(4, 3), *fp.aol(0.5, 5), fp.Held(fp.Rows(np.eye(4)), ticks=5), noisy
        ),
        "forward": fp.Run(
            ForwardForward(FORWARD), *fp.isd(0.5, 1), fp.Held(labelled, ticks=2), fp.Optimiser(0.1)
        ),
        "layered": fp.Run(replicas, *fp.isd(0.5, 5), held, rates),
        "two-term": fp.Run(fp.RBM(4, 3), *fp.cd(5), fp.Rows(np.eye(4)), fp.Optimiser(0.1)),
        "baseline": fp.Run(
            EquilibriumPropagation(layers),
            fp.isd(0.5, 5).process,
            fp.Baseline(0.1),
            pair,
            fp.Optimiser(0.1),
        ),
    }


@pytest.mark.parametrize("engine", ["boltzmann", "forward", "layered"])
@pytest.mark.parametrize("estimator", [NOTHING, fp.Baseline(0.1, NOTHING)])
def test_a_step_of_ones_own_is_refused(engine, estimator):
    run = fitting()[engine]
    assert choose("native", run).name == "native"
    with pytest.raises(ValueError, match="of its own"):
        choose("native", run._replace(estimator=estimator))


@pytest.mark.parametrize("estimator", [NOTHING, fp.Baseline(0.1, NOTHING)])
def test_a_step_of_ones_own_is_what_auto_takes(estimator):
    """A step of zero moves nothing, whatever the time."""
    run = fitting()["baseline"]._replace(estimator=estimator)
    early, late = (fp.train(run, ticks=ticks, records=1).params for ticks in (1, 50))
    for name in early:
        np.testing.assert_array_equal(early[name], late[name])


def with_own(whole, *path):
    """The same, with the part at the end of the path of a class of one's own."""
    if not path:
        kind = type(f"Own{type(whole).__name__}", (type(whole),), {})
        mine = object.__new__(kind)
        mine.__dict__.update(whole.__dict__)
        return mine
    part = with_own(getattr(whole, path[0]), *path[1:])
    if isinstance(whole, fp.Run):
        return whole._replace(**{path[0]: part})
    other = copy.copy(whole)
    other.__dict__[path[0]] = part
    return other


PARTS = {
    "boltzmann": (
        "method",
        "estimator",
        "source",
        "source.source",
        "optimiser",
        "optimiser.optimiser",
        "optimiser.device",
    ),
    "forward": ("method", "estimator", "source", "source.source", "optimiser"),
    "layered": (
        "method",
        "method.method",
        "estimator",
        "source",
        "source.source",
        "source.source.source",
        "optimiser",
        "optimiser.make",
    ),
    "two-term": ("estimator",),
    "baseline": ("estimator", "estimator.estimator"),
}


@pytest.mark.parametrize(("name", "part"), [(name, part) for name in PARTS for part in PARTS[name]])
def test_a_part_of_a_class_of_ones_own_is_refused(name, part):
    """Kernels do what they know of a class; what a subclass does instead they would never ask."""
    run = fitting()[name]
    assert choose("native", run).name == "native"
    mine = with_own(run, *part.split("."))
    for engine in compiled(1):
        sentence = engine.refuses(mine)
        assert sentence and sentence.endswith(".")


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
