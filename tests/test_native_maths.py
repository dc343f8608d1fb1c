"""The compiled Boltzmann engine, fed the JAX engine's own noise, goes through the same states to
the same parameters.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexphase as fp
from flexphase import kernels
from flexphase.engines import boltzmann
from flexphase.engines.jax import JaxEngine
from flexphase.estimators import isd
from flexphase.lanes import lanes
from flexphase.methods.boltzmann import BoltzmannMachine, lattice

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")

ALTERNATING = (
    fp.Phases(fp.Alternating(), fp.Fixed(4), fp.Fixed(3)),
    fp.Phases(fp.Alternating(), fp.Geometric(3.0)),
    fp.Phases(fp.Alternating(), fp.Fixed(1)),
)
RANDOM = (
    fp.Phases(fp.Bernoulli(0.4), fp.Fixed(3)),
    fp.Phases(fp.Bernoulli(0.6), fp.Geometric(5.0), fp.Geometric(2.0)),
)
ESTIMATORS = {"two_term": fp.two_term, "isd": isd, "always_on": fp.always_on}
STARTS = ("carry", "data", "persistent", "random")
SIZES = ((1, 1), (3, 5), (17, 9), (130, 70))


class OneOf(eqx.Module):
    """A process among several, chosen by a number, so that all are lanes of one compiled loop."""

    which: jax.Array
    processes: tuple[Any, ...]
    mean_length: float = eqx.field(static=True, default=3.0)

    def init(self, key):
        return ()

    def step(self, key, n, state):
        drawn = [p.step(key, n, state)[0] for p in self.processes]
        return jax.tree.map(
            lambda *parts: jnp.stack([jnp.asarray(p, parts[0].dtype) for p in parts])[self.which],
            *drawn,
        ), state


def over_processes(method, data, estimator):
    """Lanes: every process that goes with the estimator."""
    processes = ALTERNATING + (() if estimator == "two_term" else RANDOM)
    source, optimiser = fp.Rows(data), fp.Optimiser(0.05)

    def make(which):
        return fp.Run(
            method, OneOf(jnp.int32(which), processes), ESTIMATORS[estimator], source, optimiser
        )

    return lanes(fp.grid(make, which=range(len(processes))), 1, 3)


def experiment(size, estimator, start, visible_bias=True):
    visible, hidden = size
    data = np.random.default_rng(visible).integers(0, 2, (5, visible))
    return over_processes(
        fp.RBM(visible, hidden, visible_bias=visible_bias, negative_start=start, scale=0.3),
        data,
        estimator,
    )


def machine(sweep, estimator, start):
    mask = lattice(3, 4) if sweep == "chequerboard" else None
    data = np.random.default_rng(1).integers(0, 2, (5, 7))
    return over_processes(
        BoltzmannMachine(7, 5, mask=mask, sweep=sweep, negative_start=start, scale=0.3),
        data,
        estimator,
    )


@functools.partial(jax.jit, static_argnums=(1, 2))
def noise_of(keys, ticks, units):
    """The uniform numbers of RBM.step at ticks 0, 1, ...: (ticks, lanes, units)."""
    return jax.vmap(
        lambda t: jax.vmap(lambda k: jax.random.uniform(jax.random.fold_in(k, t), (units,)))(keys)
    )(jnp.arange(ticks))


def assert_same(ours, theirs, where):
    for name in ("z", "x", "phase", "phases", "updates", "ticks"):
        for a, b in zip(
            jax.tree.leaves(getattr(ours, name)),
            jax.tree.leaves(getattr(theirs, name)),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b, err_msg=f"{name} {where}")
    for name in ("params", "memory"):
        for a, b in zip(
            jax.tree.leaves(getattr(ours, name)),
            jax.tree.leaves(getattr(theirs, name)),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-5, err_msg=f"{name} {where}")


def compare(monkeypatch, every, pieces=(1, 7, 192)):
    """Both regimes of the engine against JAX, whatever the size would choose."""
    theirs = JaxEngine().start(every)
    ours = {}
    for regime, limit in {"small": 10**9, "wide": 0}.items():
        monkeypatch.setattr(boltzmann, "WIDE", limit)
        ours[regime] = boltzmann.BoltzmannEngine(1).start(every)
    noise = np.asarray(noise_of(theirs.key, sum(pieces), theirs.z.v.shape[1] + theirs.z.h.shape[1]))
    for ticks in pieces:
        given = noise[int(theirs.ticks[0]) :][:ticks]
        theirs = JaxEngine().advance(every, theirs, ticks, lambda n: None)
        for regime, state in ours.items():
            ours[regime] = boltzmann.BoltzmannEngine(1).advance(
                every, state, ticks, lambda n: None, noise=given
            )
            assert_same(ours[regime], theirs, f"after {ticks} more ticks, {regime} regime")


SOME = [  # the rest takes minutes, because JAX compiles every one of them
    ((1, 1), "always_on", "data"),
    ((3, 5), "two_term", "data"),
    ((3, 5), "isd", "persistent"),
    ((17, 9), "always_on", "persistent"),
    ((17, 9), "two_term", "random"),
    ((130, 70), "always_on", "carry"),
]
ALL = [(size, e, s) for size in SIZES for e in ESTIMATORS for s in STARTS]


@pytest.mark.parametrize(
    ("size", "estimator", "start"),
    [
        pytest.param(*c, id="-".join(map(str, c)), marks=[] if c in SOME else pytest.mark.slow)
        for c in ALL
    ],
)
def test_same_states_and_parameters(monkeypatch, size, estimator, start):
    """Every process x estimator x start of the negative phase, odd sizes included; the numbers are
    the JAX engine's.
    """
    compare(monkeypatch, experiment(size, estimator, start))


def test_without_visible_bias(monkeypatch):
    every = experiment((3, 5), "always_on", "carry", visible_bias=False)
    compare(monkeypatch, every, (20,))


SOME_MACHINES = [
    ("sequential", "always_on", "random"),
    ("sequential", "isd", "persistent"),
    ("chequerboard", "two_term", "data"),
]
ALL_MACHINES = [
    (w, e, s) for w in ("sequential", "chequerboard") for e in ESTIMATORS for s in STARTS
]


@pytest.mark.parametrize(
    ("sweep", "estimator", "start"),
    [pytest.param(*c, marks=[] if c in SOME_MACHINES else pytest.mark.slow) for c in ALL_MACHINES],
)
def test_boltzmann_machine(monkeypatch, sweep, estimator, start):
    """With lateral weights, and the JAX engine's numbers again."""
    compare(monkeypatch, machine(sweep, estimator, start))
