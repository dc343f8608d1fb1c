"""Stimuli with a clock of their own."""

from typing import Any, Literal

import equinox as eqx
import jax
from jax import Array

from ..checks import at_least_one, whole_count
from ..core import Key, Phase, where

Clock = Literal["ticks", "phases"]


class Held(eqx.Module):
    """How long a stimulus is held, whatever the phases do: inputs and targets alike.

    A phase that begins meanwhile shows the same stimulus, a long phase shows several. Without
    `Held` a source decides at the beginning of each phase.

    Args:
        source: where stimuli come from: `Rows`, `LabelContrast`, `Batches` of them, or your own
            with `fresh` and `again`.
        ticks: how many ticks a stimulus is held, or
        phases: how many phases; 1 shows a new one in every phase, 2 one for each pair.
        random: the number is random, geometric with this mean.
        restart: the ticks are counted from the beginning of each phase, so that a phase begins with
            a new stimulus.
        every, clock: the number, and "ticks" or "phases", as a record writes them down; give ticks
            or phases instead.

    Example: `Held(Rows(data), ticks=50)`, `Held(Rows((inputs, targets)), phases=2)`,
    `Held(Rows(data), ticks=50, random=True)`.
    """

    source: Any
    every: Array
    clock: Clock = eqx.field(static=True)
    random: bool = eqx.field(static=True)
    restart: bool = eqx.field(static=True)
    clocked = True

    def __init__(
        self,
        source: Any,
        ticks: Any = None,
        phases: Any = None,
        random: bool = False,
        restart: bool = False,
        every: Any = None,
        clock: Clock | None = None,
    ):
        if every is not None and clock is not None:  # as a record writes it down
            ticks, phases = (every, None) if clock == "ticks" else (None, every)
        if (ticks is None) == (phases is None):
            raise ValueError(
                "say how long a stimulus is held, in ticks or in phases: Held(source, ticks=50) or "
                "Held(source, phases=2)."
            )
        if restart and (random or ticks is None):
            raise ValueError(
                "restart=True counts a fixed number of ticks from the beginning of each phase; "
                "give ticks= and not random=True."
            )
        inner = getattr(source, "source", source)  # of Batches
        if not all(callable(getattr(inner, name, None)) for name in ("fresh", "again")):
            raise ValueError(
                f"a {type(inner).__name__} cannot be held: a source that is held needs the "
                "functions fresh(key, sign, x) and again(key, sign, x)."
            )
        number, what = (ticks, "ticks") if phases is None else (phases, "phases")
        words = f"the number of {what} that a stimulus is held"
        self.source, self.clock = source, what
        self.every = at_least_one(number, words) if random else whole_count(number, words)
        self.random, self.restart = bool(random), bool(restart)

    @property
    def stimuli(self) -> Any:
        return self.source.stimuli

    def init(self, key: Key) -> Any:
        return self.source.init(key)

    def __call__(self, key: Key, sign: Array, x: Any) -> Any:
        """A new stimulus, as a phase of this sign shows it."""
        return self.source.fresh(key, sign, x)

    def due(self, key: Key, phase: Phase, n: Array, t: Array) -> Array:
        """Does the stimulus change at tick t, in phase n? The key is that of the tick."""
        chance = jax.random.uniform(key) * self.every < 1
        if self.clock == "phases":
            turn = (n == 0) | chance if self.random else n % self.every == 0
            return phase.first & turn
        if self.random:
            return (t == 0) | chance
        return (phase.ticks - phase.left if self.restart else t) % self.every == 0

    def at(self, key: Key, phase: Phase, n: Array, t: Array, x: Any) -> Any:
        """The stimulus of tick t, in phase n, given that of the tick before."""
        k_tick, k_new = tick_keys(key, t)
        kept = where(phase.first, self.source.again(k_new, phase.sign, x), x)
        fresh = self.source.fresh(k_new, phase.sign, x)
        return where(self.due(k_tick, phase, n, t), fresh, kept)


def tick_keys(key: Key, t: Array) -> tuple[Key, Key]:
    """Keys of tick t: does the stimulus change, and to which?"""
    k_tick = jax.random.fold_in(key, t)
    return k_tick, jax.random.fold_in(k_tick, 1)
