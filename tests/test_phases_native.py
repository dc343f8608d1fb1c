"""Every process and every clock of the stimuli on the compiled engines.

The same phases and the same stimuli as `tick`, to the last bit.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from any_process import every_process

import flexphase as fp
from flexphase import kernels
from flexphase.engines import boltzmann
from flexphase.engines.jax import JaxEngine
from flexphase.lanes import lanes

pytestmark = pytest.mark.skipif(bool(kernels.MISSING), reason="built without a compiler")
ROWS = fp.Rows(np.random.default_rng(0).integers(0, 2, (6, 5)))
SOURCES = {
    "a row for each positive phase": ROWS,
    "ticks": fp.Held(ROWS, ticks=3),
    "random ticks": fp.Held(ROWS, ticks=2.5, random=True),
    "part of a phase": fp.Held(ROWS, ticks=2, restart=True),
    "pairs": fp.Held(ROWS, phases=2),
    "random phases": fp.Held(ROWS, phases=1.5, random=True),
}
STARTS = ("carry", "persistent", "data", "random")


@jax.jit
def noise_of(keys, t):
    """The uniform numbers of RBM.step with 8 units at these ticks."""
    each = jax.vmap(lambda k, t: jax.random.uniform(jax.random.fold_in(k, t), (8,)), (0, None))
    return jax.vmap(each, (None, 0))(keys, t)


def assert_same(ours, theirs):
    """Phases, stimuli, clocks and units are equal; parameters up to the order of sums."""
    for name in ("phase", "process", "x", "z", "phases", "updates", "ticks"):
        pair = (jax.tree.leaves(getattr(s, name)) for s in (ours, theirs))
        for a, b in zip(*pair, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
    for a, b in zip(jax.tree.leaves(ours.params), jax.tree.leaves(theirs.params), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-5)


def compare(monkeypatch, every, pieces=(1, 7, 192)):
    """Small and wide kernels with the JAX engine's own noise beside the JAX engine."""
    theirs, ours = JaxEngine().start(every), {}
    for limit in (10**9, 0):
        monkeypatch.setattr(boltzmann, "WIDE", limit)
        ours[limit] = boltzmann.BoltzmannEngine(1).start(every)
    for ticks in pieces:
        noise = np.asarray(noise_of(theirs.key, theirs.ticks[0] + jnp.arange(ticks)))
        theirs = JaxEngine().advance(every, theirs, ticks, lambda n: None)
        for limit, state in ours.items():
            engine = boltzmann.BoltzmannEngine(1)
            ours[limit] = engine.advance(every, state, ticks, lambda n: None, noise=noise)
            assert_same(ours[limit], theirs)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param(*pair, marks=[pytest.mark.slow] * (i > 1))
        for i, pair in enumerate(zip(SOURCES, STARTS + STARTS[:2], strict=True))
    ],
)
def test_phases_and_stimuli_are_those_of_the_loop(monkeypatch, name, start):
    """Nine processes, each a lane: one of every selection and duration, records, pauses."""
    method = fp.RBM(5, 3, negative_start=start, scale=0.3)

    def make(process):
        return fp.Run(method, process, fp.always_on, SOURCES[name], fp.Optimiser(0.05))

    compare(monkeypatch, lanes(every_process(make), 1, 3))
