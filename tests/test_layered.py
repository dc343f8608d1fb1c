"""The compiled engine of layered networks against the JAX engine, and against itself."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from flexphase import engines, kernels
from flexphase.core import Optimiser, Phase, Run
from flexphase.data import Held, Rows
from flexphase.engines.jax import JaxEngine
from flexphase.engines.layered import LayeredEngine
from flexphase.engines.layered_kernel import outputs
from flexphase.engines.layered_words import ACTIVATIONS
from flexphase.estimators import (
    Baseline,
    Weighted,
    always_on,
    differential,
    isd,
    phase_change,
    two_term,
)
from flexphase.lanes import grid, lanes
from flexphase.methods import RBM, ContrastiveHebbian, EquilibriumPropagation
from flexphase.methods.equilibrium_propagation import hard_sigmoid
from flexphase.optimisers import LayerRates
from flexphase.phases import Alternating, Bernoulli, Fixed, Geometric, Pauses, Phases
from flexphase.replicas import Batches, Replicas
from flexphase.training import train

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")
SIZES = (20, 17, 9, 5)
MOMENTUM = functools.partial(optax.sgd, momentum=0.8)
rng = np.random.default_rng(0)
INPUTS = np.where(rng.random((40, 20)) < 0.4, rng.random((40, 20)), 0).astype(np.float32)
TARGETS = np.eye(5, dtype=np.float32)[rng.integers(0, 5, 40)]


class Resting(eqx.Module):
    """+, 0, -, 0: nothing is learned in every second phase, whose lengths grow."""

    alternates = False
    b, mean_length = 0.5, 4.0

    def init(self, key):
        return jnp.int32(0)

    def step(self, key, n, state):
        sign, ticks = jnp.array([1.0, 0, -1, 0])[n % 4], 2 + state % 5
        one = jnp.float32(1)
        return Phase(sign, one / 2, 4 * one, ticks, ticks), state + 1


class Halves(Resting):
    """Signs that are no signs, without a word that they are graded."""

    def step(self, key, n, state):
        phase, state = super().step(key, n, state)
        return phase._replace(sign=jnp.float32(0.5)), state


PROCESSES = {
    "alternating": Phases(Alternating(), Fixed(7)),
    "unequal": Phases(Alternating(), Fixed(3), Fixed(6)),
    "one tick": Phases(Alternating(), Fixed(1)),
    "random": Phases(Bernoulli(0.4), Fixed(5)),
    "random length": Phases(Bernoulli(0.4), Geometric(4.0)),
    "resting": Resting(),
    "pauses": Pauses(Phases(Bernoulli(0.5), Geometric(4.0)), 3),
}
ESTIMATORS = {
    "two_term": two_term,
    "isd": isd,
    "always_on": always_on,
    "change": differential,
    "phase_change": phase_change,
    "baseline": Baseline(0.1),
    "baseline on": Baseline(0.1, always_on),
}


def make_run(process, estimator, make=optax.sgd, eta=0.02, replicas=1, sizes=SIZES, **options):
    method, source = EquilibriumPropagation(sizes, **options), Rows((INPUTS, TARGETS))
    if replicas > 1:
        method, source = Replicas(method, replicas), Batches(source, replicas)
    return Run(method, PROCESSES[process], ESTIMATORS[estimator], source, Optimiser(eta, make))


def quiet(n):
    pass


def advanced(engine, every, pieces):
    state = engine.start(every)
    for ticks in pieces:
        state = engine.advance(every, state, ticks, quiet)
    return state._replace(key=(), noise=())


def assert_like_jax(run, ticks=97, learns=True):
    """Every leaf of the state, in its shape and type; the ticks end in the midst of phases."""
    assert LayeredEngine(1).refuses(run) is None
    every = lanes(run, 2, 0)
    ours, theirs = (advanced(e, every, [ticks]) for e in (LayeredEngine(2), JaxEngine()))
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    moved = jax.tree.map(
        lambda a, b: np.abs(a - b).max(), JaxEngine().start(every).params, theirs.params
    )
    most = max(jax.tree.leaves(moved))
    assert most > 0.001 if learns else most == 0  # a hundred times the tolerance below
    for (path, a), (_, b) in zip(
        jax.tree_util.tree_leaves_with_path(ours),
        jax.tree_util.tree_leaves_with_path(theirs),
        strict=True,
    ):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(
            np.asarray(a, float), np.asarray(b, float), rtol=1e-5, atol=1e-5, err_msg=str(path)
        )


@pytest.mark.parametrize(
    ("process", "estimator", "options"),
    [
        ("unequal", "two_term", {"replicas": 3, "make": MOMENTUM}),
        ("random length", "always_on", {"make": LayerRates((1, 0.5, 0.2)), "centred": True}),
        ("resting", "change", {"reset": True}),
        ("pauses", "phase_change", {"centred": True}),
        ("random", "isd", {"activation": jax.nn.sigmoid}),
        ("random", "baseline", {"replicas": 3, "make": LayerRates((1, 0.5, 0.2))}),
    ],
)
def test_same_states_and_parameters_as_the_jax_engine(process, estimator, options):
    assert_like_jax(make_run(process, estimator, **options))


@pytest.mark.parametrize(
    ("estimator", "replicas", "random"), [("change", 1, False), ("isd", 3, True)]
)
def test_held_stimuli_are_those_of_the_jax_engine(estimator, replicas, random):
    """Two phases on each stimulus, or a random number of phases: pause and nudge, or pairs."""
    run = make_run("pauses", estimator, replicas=replicas, centred=True)
    assert_like_jax(run._replace(source=Held(run.source, phases=2, random=random)))


@pytest.mark.parametrize(
    ("estimator", "options"),
    [("two_term", {"feedback": 0.5, "linear_output": True}), ("always_on", {"reset": True})],
)
def test_contrastive_hebbian_learning_like_the_jax_engine(estimator, options):
    run = make_run("unequal", estimator, eta=0.05)
    assert_like_jax(run._replace(method=ContrastiveHebbian(SIZES, **options)))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("process", PROCESSES)
def test_same_as_jax_for_every_process_and_estimator(process, estimator):
    run = make_run(process, estimator)
    if estimator == "two_term" and not run.process.alternates:
        return
    learns = (process, estimator) != ("one tick", "phase_change")  # such a phase adds nothing
    assert_like_jax(run, learns=learns)
    make = optax.sgd if isinstance(run.estimator, Baseline) else MOMENTUM
    assert_like_jax(make_run(process, estimator, make, replicas=3, reset=True), learns=learns)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_same_as_jax_for_every_activation(activation):
    # these networks are unstable: rounding grows tenfold in twenty ticks, whatever the engine
    for sizes in ((20, 5), (20, 3, 33, 5)):
        assert_like_jax(make_run("random", "isd", activation=activation, sizes=sizes), ticks=41)


def test_a_grid_has_its_own_numbers_in_every_lane():
    """Lane by lane, each setting alone is the reference: equal to the last bit."""

    def one(eta, beta, b):
        return make_run("random length", "always_on", eta=eta, beta=beta)._replace(
            process=Phases(Bernoulli(b), Geometric(4.0))
        )

    values = {"eta": [0.01, 0.02], "beta": [0.4, 0.8], "b": [0.5]}
    many = advanced(LayeredEngine(2), lanes(grid(one, **values), 1, 3), [50])
    for lane, (eta, beta) in enumerate([(0.01, 0.4), (0.01, 0.8), (0.02, 0.4), (0.02, 0.8)]):
        alone = advanced(LayeredEngine(1), lanes(one(eta, beta, 0.5), 1, 3), [50])
        for a, b in zip(jax.tree.leaves(many), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(a[lane], b[0])


@pytest.mark.parametrize(
    "estimator", ["always_on", pytest.param("two_term", marks=pytest.mark.slow)]
)
def test_bits_do_not_depend_on_calls_threads_or_instruction_sets(estimator):
    every = lanes(make_run("unequal", estimator, MOMENTUM, replicas=2), 3, 0)
    whole = advanced(LayeredEngine(1), every, [97])
    others = [advanced(LayeredEngine(1), every, [1, 2, 30, 0, 64])]
    others += [advanced(LayeredEngine(3, isa), every, [97]) for isa in kernels._native.isas()]
    for other in others:
        for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    """The uninterrupted run is the reference; `progress` stops the other somewhere."""
    monkeypatch.setattr(engines, "compiled", lambda asked=None: [LayeredEngine(asked)])
    run = make_run("random length", "always_on", MOMENTUM)
    begin = functools.partial(train, run, ticks=500, seeds=2, records=5, engine="native")
    calls = iter(range(1000))

    def stop(done, total, latest):
        if next(calls) == 4:
            raise KeyboardInterrupt

    assert begin(checkpoint=tmp_path / "c.npz", progress=stop).attrs["interrupted"]
    resumed, whole = begin(checkpoint=tmp_path / "c.npz"), begin()
    assert len(whole.params) == 6
    for name, value in whole.params.items():
        np.testing.assert_array_equal(resumed.params[name], value)


@pytest.mark.parametrize("activation", [hard_sigmoid, jax.nn.sigmoid, jnp.tanh])
def test_outputs_are_the_methods_predictions(activation):
    """The JAX method, lane by lane; dt differs between the lanes, and weights are so small that
    rounding does not grow.
    """
    every = lanes(make_run("random", "isd", activation=activation), 3, 0)
    params = jax.tree.map(lambda part: part / 2, JaxEngine().start(every).params)
    dt = np.array([0.3, 0.5, 0.9], np.float32)
    ours = outputs(params, INPUTS, dt, activation, steps=50, asked=2)
    assert ours.shape == (3, 40, 5)
    for lane in range(3):
        method = EquilibriumPropagation(SIZES, dt=dt[lane], activation=activation)
        own = jax.tree.map(lambda part, lane=lane: part[lane], params)
        theirs = method.predict(own, jnp.asarray(INPUTS), steps=50)
        np.testing.assert_allclose(ours[lane], theirs, rtol=1e-5, atol=1e-6)


def test_refusals_are_sentences():
    good = make_run("alternating", "two_term")
    engine = LayeredEngine(1)
    assert engine.refuses(good) is None
    ramp = Weighted(lambda phase: (phase.sign * phase.left, phase.last))
    nesterov = functools.partial(optax.sgd, momentum=0.9, nesterov=True)
    softplus = EquilibriumPropagation(SIZES, activation=jax.nn.softplus)
    for run, word in (
        (good._replace(method=RBM(20, 5)), "RBM"),
        (good._replace(method=EquilibriumPropagation((20, *[3] * 16, 5))), "16 layers"),
        (good._replace(method=softplus), "activations"),
        (good._replace(source=Batches(Batches(good.source, 2), 2)), "Batches"),
        (good._replace(source=Held(good.source, ticks=5)), "Held"),
        (make_run("random", "baseline", MOMENTUM), "Baseline"),
        (good._replace(estimator=Baseline(0.1, ramp)), "first and the last"),
        (good._replace(estimator=ramp), "first and the last"),
        *(
            (good._replace(optimiser=Optimiser(0.1, make)), "optax.sgd")
            for make in (
                optax.adam,
                nesterov,
                LayerRates((1, 1)),
                LayerRates((1, 1, 1), 1.0),
                functools.partial(optax.sgd, momentum=0.0),
            )
        ),
    ):
        sentence = engine.refuses(run)
        assert sentence and word in sentence and sentence.endswith(".")


class Reversed(LayerRates):
    """Rates of one's own: uphill."""

    def __call__(self, eta):
        return super().__call__(-eta)


def test_rates_of_ones_own_are_what_they_say():
    run = make_run("alternating", "isd", Reversed((1, 0.5, 0.2)))
    assert "LayerRates" in (LayeredEngine(1).refuses(run) or "")
    assert train(run, ticks=7, records=1).attrs["engine"] == "jax"


def test_a_term_that_waits_in_a_foreign_state_is_not_lost_silently():
    """After an odd number of phases g_plus is remembered; the JAX engine has no place for its
    states.
    """
    every = lanes(make_run("alternating", "two_term"), 1, 0)
    state = JaxEngine().start(every)
    LayeredEngine(1).advance(every, state, 14, quiet)
    state = JaxEngine().advance(every, state, 8, quiet)
    with pytest.raises(ValueError, match="waits"):
        LayeredEngine(1).advance(every, state, 1, quiet)


def test_layer_rates_are_sgd_with_a_rate_for_each_layer():
    """optax.multi_transform is the reference."""
    params = ((jnp.ones(3),), (jnp.ones(2),))
    grads = ((jnp.arange(3.0),), (jnp.arange(2.0) + 1,))
    ours = LayerRates((1.0, 0.3), 0.9)(0.1)
    rates: dict[Any, Any] = {"a": optax.sgd(0.1, 0.9), "b": optax.sgd(0.03, 0.9)}
    theirs = optax.multi_transform(rates, (("a",), ("b",)))
    states = [ours.init(params), theirs.init(params)]
    for _ in range(3):
        (a, states[0]), (b, states[1]) = (
            make.update(grads, state, params)
            for make, state in zip((ours, theirs), states, strict=True)
        )
        for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)


def test_layer_rates_of_another_number_are_refused():
    params = ((jnp.ones(3),), (jnp.ones(2),))
    make = LayerRates((1.0,))(0.1)
    with pytest.raises(ValueError, match="one for each layer"):
        make.update(params, make.init(params), params)


@pytest.mark.parametrize("engine", ["auto", "native", "jax"])
def test_a_process_that_draws_no_sign_is_refused(engine):
    run = make_run("alternating", "isd")._replace(process=Halves())
    with pytest.raises(ValueError, match=r"a sign that is not \+1, -1 or 0"):
        train(run, ticks=20, engine=engine)
