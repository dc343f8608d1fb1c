"""Phases that are neither positive nor negative: pauses without plasticity, and graded signs."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ..checks import at_least_one, positive_length
from ..core import Key, Phase, Process, where
from .process import Derived, endless


class Pauses(Derived):
    """A pause before every phase: the network runs freely and learning rests (sign 0).

    Odd phases are those of the process, even ones are pauses. `b` counts phases with a sign only,
    and `mean_length` all of them.

    Args:
        process: any process.
        ticks: how long a pause lasts.

    Example: `Pauses(Phases(Alternating(), Fixed(20)), 5)`. With `Held(source, phases=4)` the
    stimulus changes in every second pause, where nothing is learned of its jump.
    """

    process: Process = eqx.field(converter=lambda process: endless(process, "given pauses"))
    ticks: Array = eqx.field(converter=lambda T: positive_length(T, whole=True))
    rests = True

    @property
    def mean_length(self) -> Array:
        return (self.process.mean_length + self.ticks) / 2

    def with_length(self, tau: Any) -> "Pauses":
        """Phases of mean length tau, with the same pauses."""
        return Pauses(self.process.with_length(tau), self.ticks)

    def step(self, key: Key, n: Array, state: Any) -> tuple[Phase, Any]:
        one = jnp.float32(1)
        pause = Phase(0 * one, one, one * self.ticks, self.ticks, self.ticks)
        return where(n % 2 == 0, (pause, state), self.process.step(key, n // 2, state))


class Sinusoidal(eqx.Module):
    """A teacher that swings: sign = sin(2 pi t / period), every tick a phase of its own.

    The amplitude a is known to the method, which has to be able to follow (`graded`). Weights are
    a / prob with prob = E[a^2] / 2 = 1/4: where the term answers the teacher linearly,
    g(a) = g_0 + a (g_plus - g_minus) / 2, the updates add up to g_plus - g_minus per tick.

    Args:
        period: in ticks, long compared with the time in which the network settles. A network that
            lags behind the teacher sees less of it.

    Example: `Run(EquilibriumPropagation(sizes, centred=True), Sinusoidal(200), always_on,
    Held(Rows((x, y)), ticks=200), Optimiser(0.01))`.
    """

    period: Array = eqx.field(converter=lambda T: at_least_one(T, "the period, in ticks,"))
    alternates = False
    graded = True
    b = 0.5
    mean_length = 1.0

    def with_length(self, tau: Any) -> "Sinusoidal":
        """Half a wave lasts tau ticks."""
        return Sinusoidal(2 * tau)

    def init(self, key: Key) -> tuple[()]:
        return ()

    def step(self, key: Key, n: Array, state: tuple[()]) -> tuple[Phase, tuple[()]]:
        amplitude = jnp.sin(2 * jnp.pi * (remainder(n, self.period) / self.period))
        one = jnp.int32(1)
        return Phase(amplitude, jnp.float32(0.25), jnp.float32(1), one, one), ()


def remainder(n: Array, period: Array) -> Array:
    """n modulo the period, for every n of 32 bits.

    Not every whole number beyond 2^24 is a float32, so n is split into two parts that are. Nothing
    is rounded as long as the period is below 2^24.
    """
    high, low = ((part.astype(jnp.float32)) % period for part in (n & ~0xFFFF, n & 0xFFFF))
    short = period - low  # so much of the period is left after the low part
    return jnp.where(high < short, high + low, high - short)
