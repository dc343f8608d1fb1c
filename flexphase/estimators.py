"""Estimators of g = g_plus - g_minus: from the local term of a tick to a step of the optimiser.

`Weighted` is the simple kind: the term times a number, remembering nothing. The others have a
memory, which `init` returns.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import above_zero
from .core import Phase, Process, PyTree, where


class Weighted(eqx.Module):
    """step = weight x g, with (weight, apply) = weigh(phase): temporally local.

    Args:
        weigh: Phase -> (weight of the local term, does the optimiser step now?). The compiled
            engines fit if it asks for `phase.first` and `phase.last`, and not for `phase.left`.

    Example: `Weighted(weigh)` with `def weigh(phase): return phase.sign / phase.prob, phase.last`.
    """

    weigh: Callable[[Phase], tuple[Array, Array]] = eqx.field(static=True)

    def check(self, process: Process) -> None:
        """Every process will do."""

    def init(self, params: PyTree) -> tuple[()]:
        return ()

    def update(self, phase: Phase, g: PyTree, memory: PyTree) -> tuple[PyTree, Array, PyTree]:
        weight, apply = self.weigh(phase)
        return jax.tree.map(lambda term: weight * term, g), apply, memory


def weigh_isd(phase: Phase) -> tuple[Array, Array]:
    """Eq. 2: at the end of a phase its term, over the probability that it was chosen."""
    return phase.sign / phase.prob * phase.last, phase.last & (phase.sign != 0)


def weigh_always_on(phase: Phase) -> tuple[Array, Array]:
    """Eqs. 4 and 5: eta / tau at every tick; the end of a phase need not be known."""
    return phase.sign / (phase.prob * phase.length), phase.sign != 0


class TwoTerm(eqx.Module):
    """Eq. 1: one step at the end of a negative phase. Remembers g_plus until then."""

    def check(self, process: Process) -> None:
        if not process.alternates:
            raise ValueError(
                "the two-term estimator (eq. 1) waits for a negative phase after each positive "
                "one, so it needs phases that alternate; with randomly selected phases give the "
                "estimator flexphase.estimators.isd or flexphase.always_on instead."
            )

    def weigh(self, phase: Phase) -> tuple[Array, Array]:
        """Weight of the term in the sum that is remembered, and whether that sum is used now."""
        return phase.sign * phase.last, phase.last & (phase.sign < 0)

    def init(self, params: PyTree) -> PyTree:
        """-> g_plus, zero while there is none."""
        return jax.tree.map(jnp.zeros_like, params)

    def update(self, phase: Phase, g: PyTree, memory: PyTree) -> tuple[PyTree, Array, PyTree]:
        weight, apply = self.weigh(phase)
        total = jax.tree.map(lambda kept, term: kept + weight * term, memory, g)
        return total, apply, where(apply, jax.tree.map(jnp.zeros_like, total), total)


class PhaseChange(TwoTerm):
    """What a phase added to its term, learned at its end: step = sign/prob (g_T - g_1).

    `Differential` learns it tick by tick, with the change at the first tick added. Here the weights
    rest during the phase, so that learning does not move what it measures. Remembers g_1 until the
    end of the phase, and nothing across phases. A stimulus should change in a phase of sign 0.
    """

    def check(self, process: Process) -> None:
        if process.mean_length == 1:
            raise ValueError(
                "phase_change learns what a phase has added since its first tick, and phases of "
                "one tick add nothing; make them longer, or give the estimator "
                "flexphase.estimators.isd instead."
            )

    def weigh(self, phase: Phase) -> tuple[Array, Array]:
        """+1 at the last tick and -1 at the first, times sign/prob."""
        ends = jnp.float32(phase.last) - jnp.float32(phase.first)
        return phase.sign / phase.prob * ends, phase.last & (phase.sign != 0)


class RunningMean(NamedTuple):
    """Memory of `Baseline`: the running mean of the terms."""

    mean: Any


class Baseline(eqx.Module):
    """A running mean of the terms, per synapse, is subtracted before the weight.

    step = weight (g - m), then m += rate (g - m) at every tick at which the optimiser steps. As m
    does not know the present phase, E[sign/prob m] = 0 and the estimate stays unbiased for every
    b, as long as phases are chosen independently; where both terms have a large common part its
    variance falls. Remembers m, across phases.

    Args:
        rate: share of the newest term in the mean, in (0, 1].
        estimator: the weighted estimator whose terms are centred (default: `isd`).
    """

    rate: Array = eqx.field(converter=lambda rate: above_zero(rate, "the rate of a baseline", 1))
    estimator: Weighted = Weighted(weigh_isd)

    def check(self, process: Process) -> None:
        self.estimator.check(process)

    def init(self, params: PyTree) -> RunningMean:
        return RunningMean(jax.tree.map(jnp.zeros_like, params))

    def update(
        self, phase: Phase, g: PyTree, memory: RunningMean
    ) -> tuple[PyTree, Array, RunningMean]:
        centred = jax.tree.map(jnp.subtract, g, memory.mean)
        step, apply, _ = self.estimator.update(phase, centred, ())
        mean = jax.tree.map(lambda m, c: m + apply * self.rate * c, memory.mean, centred)
        return step, apply, RunningMean(mean)


class LastTerm(NamedTuple):
    """Memory of `Differential`: the term of the tick before."""

    term: Any
    known: Array  # False before the first tick of training


class Differential(eqx.Module):
    """Learns from the change of the term since the last tick: continual equilibrium propagation.

    step = sign/prob (g_t - g_{t-1}) at every tick, so that a phase telescopes to what it added,
    g_T - g_0, where g_0 is the term with which the phase before ended. Remembers one tick. A
    stimulus should change in a phase of sign 0: otherwise its jump is learned as noise.
    """

    def check(self, process: Process) -> None:
        """Every process will do."""

    def init(self, params: PyTree) -> LastTerm:
        return LastTerm(jax.tree.map(jnp.zeros_like, params), jnp.bool_(False))

    def update(self, phase: Phase, g: PyTree, memory: LastTerm) -> tuple[PyTree, Array, LastTerm]:
        weight = phase.sign / phase.prob
        step = jax.tree.map(lambda now, before: weight * (now - before), g, memory.term)
        return step, memory.known & (phase.sign != 0), LastTerm(g, jnp.bool_(True))


two_term = TwoTerm()
isd = Weighted(weigh_isd)
always_on = Weighted(weigh_always_on)
differential = Differential()
phase_change = PhaseChange()
