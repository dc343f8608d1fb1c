"""The compiled Boltzmann engine, fed the JAX engine's own noise, goes through the same states to the same parameters."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import flexphase as fp
from flexphase.core import JaxEngine, _start
from flexphase.engines import native
from flexphase.estimators import isd
from flexphase.lanes import lanes

pytestmark = pytest.mark.skipif(bool(native.MISSING), reason="built without a compiler")

PROCESSES = {
    "alternating": fp.Phases(fp.Alternating(), fp.Fixed(4), fp.Fixed(3)),
    "alternating geometric": fp.Phases(fp.Alternating(), fp.Geometric(3.0)),
    "bernoulli": fp.Phases(fp.Bernoulli(0.4), fp.Fixed(3)),
    "bernoulli geometric": fp.Phases(fp.Bernoulli(0.6), fp.Geometric(5.0), fp.Geometric(2.0)),
}
ESTIMATORS = {"two_term": fp.two_term, "isd": isd, "always_on": fp.always_on}
PAIRS = [(p, e) for p, e in itertools.product(PROCESSES, ESTIMATORS) if PROCESSES[p].alternates or ESTIMATORS[e].local]
STARTS = ("carry", "data", "persistent", "random")
SIZES = ((1, 1), (3, 5), (17, 9), (130, 70))


def experiment(size, process, estimator, start, visible_bias=True, seeds=3):
    visible, hidden = size
    data = np.random.default_rng(visible).integers(0, 2, (5, visible))
    method = fp.RBM(visible, hidden, visible_bias=visible_bias, negative_start=start, scale=0.3)
    run = fp.Run(method, PROCESSES[process], ESTIMATORS[estimator], fp.Rows(data), fp.Optimiser(0.05))
    return lanes(run, seeds, 3)


@jax.jit
def noise_of(keys, ticks, like):
    """The uniform numbers of RBM.step: (ticks, lanes, visible + hidden)."""
    return jax.vmap(lambda t: jax.vmap(lambda k: jax.random.uniform(jax.random.fold_in(k, t), like.shape))(keys))(ticks)


def assert_same(ours, theirs, where):
    for name in ("z", "x", "phase", "phases", "updates", "ticks"):
        for a, b in zip(jax.tree.leaves(getattr(ours, name)), jax.tree.leaves(getattr(theirs, name)), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{name} {where}")
    for name in ("params", "acc"):
        for a, b in zip(jax.tree.leaves(getattr(ours, name)), jax.tree.leaves(getattr(theirs, name)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=f"{name} {where}")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("process", "estimator"), PAIRS)
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_same_states_and_parameters(size, process, estimator, start):
    every = experiment(size, process, estimator, start)
    theirs = JaxEngine().start(every, _start(every))
    ours = native.Boltzmann(1).start(every, theirs)
    for ticks in (1, 7, 192):
        noise = noise_of(theirs.key, int(theirs.ticks[0]) + jnp.arange(ticks), jnp.zeros(sum(size)))
        theirs = JaxEngine().advance(every, theirs, ticks, lambda n: None)
        ours = native.advance(every, ours, ticks, lambda n: None, threads=1, noise=np.asarray(noise))
        assert_same(ours, theirs, f"after {ticks} more ticks")
