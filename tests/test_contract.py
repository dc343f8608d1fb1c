"""What is wrong with a run is said in one sentence before a tick is run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_core import SOURCE, Counter

import flexphase as fp
from flexphase.contract import check

DATA = fp.bars_and_stripes(2)
GOOD = fp.Run(Counter(), *fp.isd(0.5, 2), SOURCE, fp.Optimiser(0.1))


class Method(Counter):
    """The counter, with one function replaced."""

    replaced: dict = eqx.field(static=True)

    def __getattribute__(self, name):
        replaced = object.__getattribute__(self, "replaced") if name != "replaced" else {}
        return replaced[name] if name in replaced else object.__getattribute__(self, name)

    def __hash__(self):
        return 0


def with_method(**replaced):
    return GOOD._replace(method=Method(replaced))


def branches(key, params, z, x, sign):
    return z if sign > 0 else -z


class Process(eqx.Module):
    """Phases of `ticks` ticks."""

    ticks: int = eqx.field(static=True)
    alternates: bool = eqx.field(static=True, default=False)
    b: float = eqx.field(static=True, default=0.5)
    mean_length: float = eqx.field(static=True, default=2.0)

    def init(self, key):
        return ()

    def step(self, key, n, state):
        ticks = jnp.int32(self.ticks)
        return fp.Phase(jnp.float32(1), jnp.float32(0.5), jnp.float32(2), ticks, ticks), state


class Fickle(Process):
    def step(self, key, n, state):
        return Process.step(self, key, n, state)[0], (n,)


class Doubles(eqx.Module):
    """A source whose stimulus grows."""

    stimuli: jax.Array = eqx.field(converter=jnp.asarray)

    def init(self, key):
        return self.stimuli[0]

    def __call__(self, key, sign, x):
        return jnp.concatenate([x, x])


class Half(eqx.Module):
    """An estimator without a memory function."""

    def check(self, process):
        pass

    def update(self, phase, g, memory):
        return g, True, memory


class Wide(Half):
    def init(self, params):
        return ()

    def update(self, phase, g, memory):
        return jnp.stack([g, g]), jnp.bool_(True), memory


BAD = {
    "step has another shape": (
        with_method(step=lambda key, params, z, x, sign: jnp.stack([z, z])),
        r"Method.step must return arrays like the state z.*float32\[\], not float32\[2\]",
    ),
    "step has another type": (
        with_method(step=lambda key, params, z, x, sign: jnp.int32(z)),
        r"Method.step must return.*float32\[\], not int32\[\]",
    ),
    "a gradient would be broadcast": (
        with_method(grad=lambda params, z, x, sign: jnp.ones(3)),
        r"Method.grad must return arrays like the parameters",
    ),
    "a gradient of another structure": (
        with_method(grad=lambda params, z, x, sign: (z, z)),
        r"Method.grad must return the structure of the parameters",
    ),
    "init returns one thing": (
        with_method(init=lambda key: jnp.zeros(2)),
        r"Method.init must return \(params, z\)",
    ),
    "if sign > 0": (with_method(step=branches), r"write jnp.where\(sign > 0, a, b\)"),
    "NumPy on a tracer": (
        with_method(step=lambda key, params, z, x, sign: np.sin(np.asarray(z))),
        r"use jax.numpy",
    ),
    "too few arguments": (with_method(step=lambda key, params: params), r"does not take what it"),
    "a missing function": (
        with_method(enter=None),
        r"the method a Method has no function 'enter'; a method needs check, init, enter",
    ),
    "a class": (GOOD._replace(method=fp.RBM), r"is the class RBM itself; make one: RBM\("),
    "another part": (
        GOOD._replace(source=np.ones((2, 2))),
        r"the source a ndarray has no function",
    ),
    "a process without b": (
        GOOD._replace(process=fp.Fixed(2)),
        r"the process a Fixed has no function 'step'",
    ),
    "a fickle process": (
        GOOD._replace(process=Fickle(2)),
        r"Fickle.step must return the structure",
    ),
    "a source that grows": (
        GOOD._replace(source=Doubles(np.ones((2, 1)))),
        r"Doubles.__call__ must return arrays like the stimulus",
    ),
    "an estimator without init": (GOOD._replace(estimator=Half()), r"has no function 'init'"),
    "a step of another shape": (GOOD._replace(estimator=Wide()), r"the step of Wide.update must"),
    "optax itself": (
        GOOD._replace(optimiser=__import__("optax").sgd(0.1)),
        r"write Optimiser\(eta\)",
    ),
}


class Halved(eqx.Module):
    """An updater with all functions, and some of its values."""

    eta: float = 0.1

    def init(self, key, params):
        return ()

    def update(self, step, opt, params):
        return params, opt

    def hold(self, opt, params):
        return params, opt


BAD["an optimiser without make"] = (GOOD._replace(optimiser=Halved()), r"no 'make'.*eta, make")


def test_what_is_right_passes():
    check(GOOD)
    check(fp.grid(lambda b: GOOD._replace(process=fp.isd(b)[0]), b=[0.2, 0.3]))


@pytest.mark.parametrize("name", BAD)
def test_parts_that_do_not_fit(name):
    run, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        fp.train(run, ticks=4, progress=pytest.fail)


def test_a_process_of_no_ticks_ends_with_a_sentence():
    with pytest.raises(ValueError, match=r"Process drew a phase of 0 ticks"):
        fp.train(GOOD._replace(process=Process(0)), ticks=10)


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"m": lambda p: jnp.stack([p, p])}, r"'m' must be one real number.*shape \(2,\)"),
        ({"m": lambda p: None}, r"one real number.*NoneType"),
        ({"m": lambda p: {"a": p}}, r"one real number.*dict"),
        ({"m": lambda p: p * 1j}, r"complex"),
        ({"m": fp.AtEnd(lambda p: p, lambda p: jnp.zeros(3))}, r"one real number.*shape \(3,\)"),
        (fp.NLL(DATA), r"metrics must be a dict.*not a NLL"),
        ({"m": 3}, r"'m' is a int, not a function"),
    ],
)
def test_metrics_that_are_not_one_number_a_lane(metrics, words):
    with pytest.raises(ValueError, match=words):
        fp.train(GOOD, ticks=4, metrics=metrics, progress=pytest.fail)


class Best(eqx.Module):
    """A metric that says what a perfect learner would score."""

    optimum: float = eqx.field(static=True)

    def __call__(self, params):
        return params


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"m": Best(np.inf)}, r"optimum of the metric 'm' must be a finite number, not inf"),
        ({"m": fp.AtEnd(lambda p: p, Best(np.nan))}, r"must be a finite number, not nan"),
        ({1: lambda p: p}, r"1 cannot name an axis or a metric"),
        ({"a\0b": lambda p: p}, r"cannot name an axis or a metric"),
    ],
)
def test_metrics_with_which_a_record_could_not_be_loaded(metrics, words):
    with pytest.raises(ValueError, match=words):
        fp.train(GOOD, ticks=4, metrics=metrics, progress=pytest.fail)


class Turns(fp.PhaseStatistics):
    """An observer that returns a complex number."""

    def result(self, carry):
        return {"z": 1j * carry.sign}


def test_complex_numbers_with_which_a_record_could_not_be_loaded():
    with pytest.raises(ValueError, match=r"Turns.result returns must be real numbers"):
        fp.train(GOOD, ticks=4, observers={"o": Turns()})
    start = with_method(init=lambda key: (jnp.complex64(0), jnp.float32(0)))
    with pytest.raises(ValueError, match=r"parameters of Method.init must be real numbers"):
        fp.train(start, ticks=4)


class TwoNumbers(fp.OverLanes):
    def __call__(self, params):
        return np.zeros((len(params), 2))


def test_a_metric_over_lanes_is_checked_at_the_start():
    with pytest.raises(ValueError, match="one real number for each of the 3 lanes"):
        fp.train(GOOD, ticks=4, seeds=3, metrics={"m": TwoNumbers()}, progress=pytest.fail)


@pytest.mark.parametrize("what", [fp.RBM(4, 3), None, [GOOD], "rbm"])
def test_something_else_where_a_run_belongs(what):
    with pytest.raises(ValueError, match=r"train needs a run"):
        fp.train(what, ticks=4)


class Grows(eqx.Module):
    """An observer whose carry changes its shape."""

    def init(self, state):
        return jnp.zeros(1)

    def see(self, carry, state):
        return jnp.zeros(2)

    def result(self, carry):
        return {}


@pytest.mark.parametrize(
    ("observers", "words"),
    [
        ({"o": Grows()}, r"Grows.see must return arrays like what its init returns"),
        ({"o": fp.NLL(DATA)}, r"the observer 'o' \(NLL\) has no function 'init'"),
        (fp.Trace(3), r"observers must be a dict"),
        ({"o": fp.Trace(3, lambda s: s.z)}, r"selects a dict of arrays"),
    ],
)
def test_observers_of_the_wrong_shape(observers, words):
    with pytest.raises(ValueError, match=words):
        fp.train(GOOD, ticks=4, observers=observers)
    with pytest.raises(ValueError, match="use engine='jax'"):
        fp.train(GOOD, ticks=4, observers={"o": fp.Trace(3)}, engine="native")
