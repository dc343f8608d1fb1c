"""Observers: recording that sees the whole state, tick by tick, for any method."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import count
from .core import State, where


def holds(memory: Any) -> Array:
    """Does the estimator hold anything but zeros?"""
    held = [jnp.any(leaf != 0) for leaf in jax.tree.leaves(memory)]
    return jnp.any(jnp.stack(held)) if held else jnp.bool_(False)


def phase_trace(state: State) -> dict[str, Array]:
    """What `Trace` writes down of the phases."""
    phase = state.during
    return {"sign": phase.sign, "first": phase.first, "remembers": holds(state.memory)}


def unseen(shape: tuple[int, ...], dtype: Any) -> Array:
    """Rows of ticks that are still to come: NaN, where the type has it."""
    real = jnp.issubdtype(dtype, jnp.inexact)
    return jnp.full(shape, jnp.nan, dtype) if real else jnp.zeros(shape, dtype)


class Traced(NamedTuple):
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
    tick?) and what was selected, each with a ticks axis. `plot.raster` draws them. Ticks that the
    run did not reach have the sign NaN, which is no sign (and so have other real numbers there).

    Example: `train(run, ticks=500, observers={"trace": Trace(200, lambda s: {"v": s.z.v})})`.
    """

    ticks: int = eqx.field(static=True)
    select: Callable[[State], dict[str, Any]] | None = eqx.field(static=True, default=None)
    start: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        count(self.ticks, "the ticks of a trace")
        count(self.start, "the start of a trace", 0)

    def row(self, state: State, updates: Array) -> dict[str, Any]:
        """What is kept of a tick, by name; `updates` as they were before it."""
        selected = self.select(state._replace(seen=())) if self.select else {}
        if not isinstance(selected, dict):
            raise ValueError("a trace selects a dict of arrays by name, such as {'v': s.z.v}.")
        return phase_trace(state) | {"learns": state.updates > updates} | selected

    def init(self, state: State) -> Traced:
        row = jax.eval_shape(self.row, state, state.updates)
        rows = jax.tree.map(lambda leaf: unseen((self.ticks, *leaf.shape), leaf.dtype), row)
        return Traced(rows, jnp.int32(0), state.updates)

    def see(self, carry: Traced, state: State) -> Traced:
        # Ticks outside of the stretch are written to an index out of bounds, which JAX drops.
        at = jnp.where(carry.ticks >= self.start, carry.ticks - self.start, self.ticks)
        row = self.row(state, carry.updates)
        rows = jax.tree.map(lambda all, new: all.at[at].set(new), carry.rows, row)
        return Traced(rows, carry.ticks + 1, state.updates)

    def result(self, carry: Traced) -> dict[str, Array]:
        return carry.rows


class Counts(NamedTuple):
    """What `PhaseStatistics` carries; index 0 is the positive sign, 1 the negative one, 2 rest."""

    phases: Array  # (3,), whole numbers
    ticks: Array  # (3,)
    switches: Array
    sign: Array  # of the last phase that had one; 0 before the first
    squares: Array  # sum of squared deviations from the mean length, all phases
    lost: Array  # what rounding has added too much to it


def deviation(length: Array, total: Array, n: Array) -> Array:
    """length - total / n of whole numbers, without the rounding of large ones."""
    return (length - total // n).astype(jnp.float32) - (total % n) / n


class PhaseStatistics(eqx.Module):
    """Counts finished phases: how many of each sign, how long, how often the sign changes.

    Returns, in `record.observed(name)`: `b` (share of positive phases among those with a sign) and
    `mean_length`, both NaN where there was no such phase; `cv_length`, `switch_rate` (changes of
    sign per phase that has one; pauses are passed over), `phases` and `ticks` of each sign.
    """

    def init(self, state: State) -> Counts:
        none, zero = jnp.zeros(3, jnp.int32), jnp.float32(0)
        return Counts(none, none, jnp.int32(0), zero, zero, zero)

    def see(self, carry: Counts, state: State) -> Counts:
        phase = state.during
        sign = jnp.sign(phase.sign)
        which = jnp.stack([sign > 0, sign < 0, sign == 0])
        phases, ticks = carry.phases + which, carry.ticks + which * phase.ticks
        # Welford: (length - mean before) (length - mean now); and Kahan's summation of these.
        before = deviation(phase.ticks, carry.ticks.sum(), jnp.maximum(carry.phases.sum(), 1))
        square = before * deviation(phase.ticks, ticks.sum(), phases.sum()) - carry.lost
        squares = carry.squares + square
        new = Counts(
            phases,
            ticks,
            carry.switches + (sign * carry.sign < 0),
            jnp.where(sign == 0, carry.sign, sign),
            squares,
            (squares - carry.squares) - square,
        )
        return where(phase.last, new, carry)

    def result(self, carry: Counts) -> dict[str, Array]:
        n = jnp.maximum(carry.phases.sum(-1), 1)
        signed = jnp.maximum(carry.phases[..., :2].sum(-1), 1)
        mean = carry.ticks.sum(-1) / n
        variance = jnp.maximum(carry.squares - carry.lost, 0) / n
        return {
            "b": carry.phases[..., 0] / carry.phases[..., :2].sum(-1),  # NaN of no phases
            "mean_length": jnp.where(carry.phases.sum(-1) > 0, mean, jnp.nan),
            "cv_length": jnp.sqrt(variance) / jnp.maximum(mean, 1),
            "switch_rate": carry.switches / signed,
            "phases": carry.phases,
            "ticks": carry.ticks,
        }
