"""Hopfield network that dreams (Hopfield, Feinstein and Palmer 1983): learn what is stored, unlearn
what the free network falls into.

Units are -1 or +1, E(s) = -1/2 s W s, W symmetric without a diagonal. A positive phase holds the
network at a pattern and learns it; a negative one begins anywhere, falls into a minimum of E, and
unlearns it, `dream` times as strongly:

    g_plus = -x x^T / N        g_minus = -dream s s^T / N        (zero on the diagonal)

Without dreams this is Hebb's rule, which stores 0.138 N patterns with a few errors. The rule that
stores N independent patterns is the projector, W = X^+ X (Personnaz, Guyon and Dreyfus 1985).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import above_zero, count, matrix
from ..core import Key


class Weights(NamedTuple):
    W: Array  # (units, units)


def energy(params: Weights, s: Array) -> Array:
    return -0.5 * s @ params.W @ s


def without_diagonal(W: Array) -> Array:
    return W - jnp.diag(jnp.diag(W))


def sweep(params: Weights, s: Array) -> Array:
    """Every unit once, in order: s_i = sign(W_i s), or as it was where that is 0; E never rises."""

    def unit(s: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        i, row = at
        field = row @ s
        return s.at[i].set(jnp.where(field == 0, s[i], jnp.sign(field))), None

    return jax.lax.scan(unit, s, (jnp.arange(len(s)), params.W))[0]


def hebb(patterns: Any) -> Weights:
    """W = sum_x x x^T / N, what learning each pattern once at eta = 1 leaves."""
    x = signs(patterns)
    return Weights(without_diagonal(x.T @ x / x.shape[1]))


def projector(patterns: Any) -> Weights:
    """W = X^+ X: the projection onto the patterns, without its diagonal."""
    x = np.asarray(signs(patterns), float)
    return Weights(without_diagonal(jnp.asarray(np.linalg.pinv(x) @ x, jnp.float32)))


def signs(patterns: Any) -> Array:
    """A (rows, units) array of -1 and +1."""
    array = matrix(patterns)
    if not bool((jnp.abs(array) == 1).all()):
        raise ValueError(
            "a Hopfield network stores patterns of -1 and +1; give 2 * data - 1 for data of zeros "
            "and ones."
        )
    return array


class Hopfield(eqx.Module):
    """`units` units, all connected. One tick is one sweep; a dream needs a few to come to rest.

    Under random phases with importance weights (isd, aol) `dream` alone is the ratio of unlearning
    to learning, whatever b is. Without weights b is the ratio: b of the phases learn and 1 - b
    unlearn, which is dream = (1 - b) / b.

    Args:
        units: number of units, at least 2: one for each column of the patterns of -1 and +1.
        dream: strength of unlearning over that of learning, above 0.

    Example: `Run(Hopfield(100), *isd(0.5, 5), Rows(patterns), Optimiser(0.05))`.
    """

    units: int = eqx.field(static=True)
    dream: Array = eqx.field(
        converter=lambda v: above_zero(v, "dream, the strength of unlearning,"), default=1.0
    )

    def __check_init__(self):
        count(self.units, "units", 2)

    def check(self, x: Any) -> None:
        if isinstance(x, tuple):
            raise ValueError("a Hopfield network stores one array of patterns; use Rows(patterns).")
        columns = signs(x).shape[1]
        if columns != self.units:
            raise ValueError(
                f"the patterns have {columns} columns and the network {self.units} units; make it "
                f"with units={columns}."
            )

    def init(self, key: Key) -> tuple[Weights, Array]:
        """No weights, and all units at random."""
        return Weights(jnp.zeros((self.units, self.units))), self.anywhere(key)

    def anywhere(self, key: Key) -> Array:
        """A random state: each unit -1 or 1."""
        return jnp.where(jax.random.bernoulli(key, shape=(self.units,)), 1.0, -1.0)

    def enter(self, key: Key, params: Weights, z: Array, x: Array, sign: Array) -> Array:
        return jnp.where(sign > 0, x, self.anywhere(key))

    def step(self, key: Key, params: Weights, z: Array, x: Array, sign: Array) -> Array:
        return jnp.where(sign > 0, x, sweep(params, z))

    def grad(self, params: Weights, z: Array, x: Array, sign: Array) -> Weights:
        strength = jnp.where(sign > 0, 1, self.dream) / self.units
        return Weights(-strength * without_diagonal(jnp.outer(z, z)))


class Recall(eqx.Module):
    """Mean overlap x s / N with each pattern, `steps` sweeps after a start in which a share
    `flipped` of its units is turned over. 1 is perfect memory; a network that does not move has 1 -
    2 flipped.

    Args:
        patterns: (rows, units) of -1 and +1.
        flipped: share of the units that are turned over, from 0 to 1.
        steps: number of sweeps.
        seed: chooses the units that are turned over; they are the same at every call.
    """

    patterns: Array = eqx.field(converter=signs)
    flipped: float = eqx.field(static=True, default=0.1)
    steps: int = eqx.field(static=True, default=20)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if not 0 <= self.flipped <= 1:
            raise ValueError(f"flipped is a share from 0 to 1, not {self.flipped!r}.")

    def __call__(self, params: Weights) -> Array:
        rows, units = self.patterns.shape
        turned = np.zeros((rows, units), bool)
        turned[:, : round(self.flipped * units)] = True
        turned = np.random.default_rng(self.seed).permuted(turned, axis=1)

        def recalled(s: Array) -> Array:
            return jax.lax.fori_loop(0, self.steps, lambda _, s: sweep(params, s), s)

        s = jax.vmap(recalled)(jnp.where(turned, -self.patterns, self.patterns))
        return (s * self.patterns).mean()


class Stored(eqx.Module):
    """Share of the patterns whose units all agree with their fields, x_i W_i x > 0: the network
    stays there. A field of 0 does not count, so that a network without weights stores nothing.

    Args:
        patterns: (rows, units) of -1 and +1.
    """

    patterns: Array = eqx.field(converter=signs)

    def __call__(self, params: Weights) -> Array:
        return ((self.patterns @ params.W) * self.patterns > 0).all(1).mean()
