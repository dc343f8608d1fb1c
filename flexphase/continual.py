"""Continual equilibrium propagation (Ernoult et al. 2020) as a process, an estimator and a source.

A stimulus is shown to the free network until it settles, with learning at rest (sign 0); then the
nudge comes on, and every tick learns from the change of its local term since the tick before:

    theta -= eta (1/beta) (dE/dtheta(s_t) - dE/dtheta(s_{t-1}))

The changes of a nudged phase add up to (1/beta) (dE/dtheta(s_K) - dE/dtheta(s_*)). For beta -> 0,
and eta small beside beta, the sum over the first k ticks is the gradient that back-propagation
through the last k time steps of the free network gives (Ernoult et al. 2019). Where eta is not
small beside beta, learning moves the very state whose change it learns from.

    Run(EquilibriumPropagation((64, 32, 10)), *continual_ep(20, 10), ShownAtRest(Rows(...)), ...)
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from .checks import positive_length
from .core import Key, Phase, PyTree, Source
from .estimators import Differential, differential


def _ticks(T: Any) -> Array:
    return positive_length(T, whole=True)


class SettleThenLearn(eqx.Module):
    """Phases of `settle` ticks with sign 0 and of `learn` ticks with sign +1, in turn. Every phase
    that learns is positive, so their probability is 1.
    """

    settle: Array = eqx.field(converter=_ticks)
    learn: Array = eqx.field(converter=_ticks)
    alternates: bool = eqx.field(static=True, default=False)
    b: float = eqx.field(static=True, default=1.0)

    @property
    def mean_length(self) -> Array:
        return (self.settle + self.learn) / 2

    def with_length(self, tau: Any) -> "SettleThenLearn":
        """Both kinds of phases with tau ticks."""
        return SettleThenLearn(tau, tau)

    def init(self, key: Key) -> tuple[()]:
        return ()

    def step(self, key: Key, n: Array, state: tuple[()]) -> tuple[Phase, tuple[()]]:
        learns = n % 2 == 1
        ticks = jnp.where(learns, self.learn, self.settle)
        one = jnp.float32(1)
        return Phase(learns * one, one, ticks.astype(jnp.float32), ticks, ticks), state


class ShownAtRest(eqx.Module):
    """A new stimulus in each phase of sign 0, which is kept until the next one.

    Args:
        source: draws the stimuli, as it does in positive phases.
    """

    source: Source

    @property
    def stimuli(self) -> PyTree:
        return self.source.stimuli

    def init(self, key: Key) -> PyTree:
        return self.source.init(key)

    def __call__(self, key: Key, sign: Array, x: PyTree) -> PyTree:
        return self.source(key, jnp.where(sign == 0, 1.0, -1.0), x)


class Continual(NamedTuple):
    process: SettleThenLearn
    estimator: Differential


def continual_ep(settle: int = 20, learn: int = 10) -> Continual:
    """The process and the estimator of continual equilibrium propagation; the method is
    `EquilibriumPropagation` or, for nudges of either sign, `RandomSign` of it, and the source
    `ShownAtRest(Rows((inputs, targets)))`.

    Args:
        settle: ticks in which the free network settles.
        learn: ticks in which it is nudged and learns.
    """
    return Continual(SettleThenLearn(settle, learn), differential)
