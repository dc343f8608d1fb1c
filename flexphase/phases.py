"""Phase processes: a selection (which sign?) times a duration (how long?)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import positive_length, probability
from .core import Key, Phase, phase_keys


class Alternating(eqx.Module):
    """+, -, +, -: the classical order. Seen over time, each sign has probability 1/2."""

    alternates: bool = eqx.field(static=True, default=True)
    b: Array = eqx.field(converter=jnp.float32, default=0.5)

    def sign(self, u: Array, n: Array) -> Array:
        return 1.0 - 2.0 * (n % 2)


class Bernoulli(eqx.Module):
    """The next phase is positive with probability b, whatever came before (eq. 2)."""

    b: Array = eqx.field(converter=probability)
    alternates: bool = eqx.field(static=True, default=False)

    def sign(self, u: Array, n: Array) -> Array:
        return jnp.where(u < self.b, 1.0, -1.0)


class Fixed(eqx.Module):
    """Every phase lasts T ticks."""

    T: Array = eqx.field(converter=lambda T: positive_length(T, whole=True))

    @property
    def mean(self) -> Array:
        return self.T

    def draw(self, u: Array) -> Array:
        return jnp.int32(self.T)


class Geometric(eqx.Module):
    """A phase ends after each tick with probability 1/tau: P(T = k) = (1 - 1/tau)^(k-1) / tau, mean
    tau.
    """

    tau: Array = eqx.field(converter=positive_length)

    @property
    def mean(self) -> Array:
        return self.tau

    def draw(self, u: Array) -> Array:
        # Inverse distribution function; u in [0, 1), and tau = 1 gives log(0) = -inf, hence T = 1.
        return jnp.int32(jnp.floor(jnp.log1p(-u) / jnp.log1p(-1 / self.tau))) + 1


class Phases(eqx.Module):
    """Selection x duration; negative phases may have a duration of their own."""

    selection: Any
    positive: Any
    negative: Any

    def __init__(self, selection: Any, positive: Any, negative: Any = None):
        self.selection, self.positive, self.negative = (
            selection,
            positive,
            positive if negative is None else negative,
        )

    @property
    def alternates(self) -> bool:
        return self.selection.alternates

    @property
    def b(self) -> Array:
        """Long-run share of positive phases."""
        return self.selection.b

    def with_length(self, tau: Any) -> "Phases":
        """The same selection, with phases of the same kind and mean length tau."""
        return Phases(self.selection, type(self.positive)(tau), type(self.negative)(tau))

    @property
    def mean_length(self) -> Array:
        return self.negative.mean + self.selection.b * (
            self.positive.mean - self.negative.mean
        )  # exact where the two are equal

    def with_length(self, tau: Any) -> "Phases":
        """The same selection, with durations of the same kind and of mean tau."""
        return Phases(self.selection, type(self.positive)(tau), type(self.negative)(tau))

    def init(self, key: Key) -> tuple[()]:
        return ()

    def step(self, key: Key, n: Array, state: tuple[()]) -> tuple[Phase, tuple[()]]:
        u_sign, u_length = jax.random.uniform(key, (2,))
        sign, b = self.selection.sign(u_sign, n), self.selection.b
        prob = jnp.where(sign > 0, b, 1 - b)
        length = jnp.where(sign > 0, self.positive.mean, self.negative.mean).astype(jnp.float32)
        ticks = jnp.where(sign > 0, self.positive.draw(u_length), self.negative.draw(u_length))
        return Phase(sign, prob, length, ticks, ticks), state


def tape(process: Any, key: Key, phases: int, start: Any = 0, state: Any = None) -> Phase:
    """Unroll a process without a network: phases start, start + 1, ... as arrays, the very ones
    `tick` would draw with this key.
    """
    if state is None:
        state = process.init(key)
    n = start + jnp.arange(phases, dtype=jnp.int32)
    if not jax.tree.leaves(state):  # no memory between phases: draw them all at once
        return jax.vmap(lambda i: process.step(phase_keys(key, i)[0], i, state)[0])(n)
    return jax.lax.scan(lambda s, i: process.step(phase_keys(key, i)[0], i, s)[::-1], state, n)[1]
