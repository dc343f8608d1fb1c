"""Every kind of phase process, as lanes of one compiled loop."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import flexphase as fp

TABLE = {
    "onset": [0, 5, 9, 20, 22, 31],
    "duration": [5, 4, 8, 2, 7, 1],
    "type": ["wake", "sleep", "wake", "sleep", "sleep", "wake"],
}
#: One of each selection and duration, a record, and phases without plasticity.
PROCESSES = {
    "alternating, matched": fp.Phases(fp.Alternating(), fp.Matched(fp.Geometric(6.0))),
    "bernoulli, gamma": fp.Phases(fp.Bernoulli(0.4), fp.Gamma(5, 0.5)),
    "markov, lognormal": fp.Phases(fp.Markov(0.7, 0.4), fp.LogNormal(6, 1.0), fp.Fixed(3)),
    "pairs, weibull": fp.Phases(fp.Pairs(), fp.Weibull(4, 0.8)),
    "homeostatic, geometric": fp.Phases(fp.Homeostatic(0.4, 0.3), fp.Geometric(5.0)),
    "blocks, empirical": fp.Phases(fp.Blocks(2, 3), fp.Empirical([1, 2.5, 7])),
    "recorded": fp.Recorded(TABLE),
    "shuffled": fp.Recorded(TABLE, after="shuffle", block=2),
    "pauses": fp.Pauses(fp.Phases(fp.Bernoulli(0.5), fp.Fixed(4)), 2),
}


class OneOf(eqx.Module):
    """A process among several, chosen by a number, each with a memory of its own."""

    which: jax.Array
    processes: tuple[Any, ...]
    alternates = False
    rests = True
    b = 0.5
    mean_length = 4.0

    def init(self, key):
        return tuple(p.init(key) for p in self.processes)

    def step(self, key, n, states):
        drawn = [p.step(key, n, s) for p, s in zip(self.processes, states, strict=True)]
        phases, states = zip(*drawn, strict=True)

        def pick(*parts):
            return jnp.stack([jnp.asarray(p, parts[0].dtype) for p in parts])[self.which]

        return jax.tree.map(pick, *phases), states


def every_process(make, processes=PROCESSES):
    """`make(process)` is a run; the grid of it over all processes."""
    parts = tuple(processes.values())
    return fp.grid(lambda which: make(OneOf(jnp.int32(which), parts)), which=range(len(parts)))
