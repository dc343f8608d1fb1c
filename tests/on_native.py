"""The compiled Boltzmann engine, call by call."""

import jax
import numpy as np

from flexphase.engines.boltzmann import BoltzmannEngine


def quiet(n):
    """Reports nothing."""


def walk(every, pieces, threads=1, isa=""):
    """The state of the lanes after calls of so many ticks."""
    engine = BoltzmannEngine(threads, isa)
    state = engine.start(every)
    for ticks in pieces:
        state = engine.advance(every, state, ticks, quiet)
    return state


def assert_same_bits(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
