"""Observers: recording that sees the whole state, tick by tick, for any method."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import count
from .core import State


def phase_trace(state: State) -> dict[str, Array]:
    """What `Trace` writes down of the phases."""
    phase = state.during
    held = [jnp.any(leaf != 0) for leaf in jax.tree.leaves(state.memory)]
    return {
        "sign": phase.sign,
        "first": phase.first,
        "remembers": jnp.any(jnp.stack(held)) if held else jnp.bool_(False),
    }


class Tape(NamedTuple):
    """What a `Trace` carries: its rows, and the clocks at the tick before."""

    rows: Any
    ticks: Array
    updates: Array


class Trace(eqx.Module):
    """Phases, and whatever `select` picks from the state, at `ticks` ticks in a row.

    Args:
        ticks: how many ticks are written down.
        select: State -> dict of arrays: chosen units, weights, anything (default: nothing more).
        start: ticks that are passed over first.

    Returns, in `record.observed(name)`: `sign`, `first` (is it the first tick of its phase?),
    `learns` (did the optimiser step?), `remembers` (does the estimator hold anything after the
    tick?) and what was selected, each with a ticks axis. `plot.raster` draws them.

    Example: `train(run, ticks=500, observers={"trace": Trace(200, lambda s: {"v": s.z.v})})`.
    """

    ticks: int = eqx.field(static=True)
    select: Callable[[State], dict[str, Any]] | None = eqx.field(static=True, default=None)
    start: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        count(self.ticks, "the ticks of a trace")
        count(self.start, "the start of a trace", 0)

    def row(self, state: State, updates: Array) -> dict[str, Any]:
        selected = self.select(state) if self.select else {}
        if not isinstance(selected, dict):
            raise ValueError("a trace selects a dict of arrays by name, such as {'v': s.z.v}.")
        return phase_trace(state) | {"learns": state.updates > updates} | selected

    def init(self, state: State) -> Tape:
        row = jax.eval_shape(self.row, state, state.updates)
        rows = jax.tree.map(lambda leaf: jnp.zeros((self.ticks, *leaf.shape), leaf.dtype), row)
        return Tape(rows, jnp.int32(0), state.updates)

    def see(self, carry: Tape, state: State) -> Tape:
        # What lies outside of the stretch is written to an index that JAX drops.
        at = jnp.where(carry.ticks >= self.start, carry.ticks - self.start, self.ticks)
        row = self.row(state, carry.updates)
        rows = jax.tree.map(lambda all, new: all.at[at].set(new), carry.rows, row)
        return Tape(rows, carry.ticks + 1, state.updates)

    def result(self, carry: Tape) -> dict[str, Array]:
        return carry.rows


class Counts(NamedTuple):
    """What `PhaseStatistics` carries; index 0 is the positive sign, 1 the negative one, 2 rest."""

    phases: Array  # (3,)
    ticks: Array  # (3,)
    squares: Array  # sum of squared lengths, all phases
    switches: Array
    sign: Array  # of the phase before


class PhaseStatistics(eqx.Module):
    """Counts finished phases: how many of each sign, how long, how often the sign changes.

    Returns, in `record.observed(name)`: `b` (share of positive phases among those with a sign),
    `mean_length`, `cv_length`, `switch_rate` (changes of sign per phase), `phases` and `ticks` of
    each sign.
    """

    def init(self, state: State) -> Counts:
        zero = jnp.float32(0)
        return Counts(jnp.zeros(3), jnp.zeros(3), zero, zero, zero)

    def see(self, carry: Counts, state: State) -> Counts:
        phase = state.during
        over = phase.last
        which = jnp.stack([phase.sign > 0, phase.sign < 0, phase.sign == 0]) * over
        length = jnp.float32(phase.ticks)
        switched = over & (carry.sign != 0) & (jnp.sign(phase.sign) != carry.sign)
        return Counts(
            carry.phases + which,
            carry.ticks + which * length,
            carry.squares + over * length**2,
            carry.switches + switched,
            jnp.where(over, jnp.sign(phase.sign), carry.sign),
        )

    def result(self, carry: Counts) -> dict[str, Array]:
        n = jnp.maximum(carry.phases.sum(-1), 1)
        mean = carry.ticks.sum(-1) / n
        variance = jnp.maximum(carry.squares / n - mean**2, 0)
        signed = jnp.maximum(carry.phases[..., :2].sum(-1), 1)
        return {
            "b": carry.phases[..., 0] / signed,
            "mean_length": mean,
            "cv_length": jnp.sqrt(variance) / jnp.maximum(mean, 1),
            "switch_rate": carry.switches / n,
            "phases": carry.phases,
            "ticks": carry.ticks,
        }
