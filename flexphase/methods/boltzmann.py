"""Boltzmann machine with lateral weights: E(z) = -1/2 z W z - bias z, p(z) proportional to exp(-E),
z = (visible, hidden) in {0, 1}^n.

W is symmetric with a zero diagonal, so -1/2 z W z = -sum_{i<j} W_ij z_i z_j: a pair of units has
ONE weight, written twice. Its gradient dE/dW_ij = -z_i z_j is written to both places too, so W
stays symmetric under every elementwise optimiser.
"""

from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import one_of
from ..core import Key
from . import binary
from .binary import NegativeStart, Units, bernoulli

Sweep = Literal["sequential", "chequerboard"]


class Couplings(NamedTuple):
    W: Array  # (n, n), symmetric, zero diagonal
    bias: Array  # (n,)


def energy(params: Couplings, z: Array) -> Array:
    """E(z); z may have leading axes."""
    return -0.5 * ((z @ params.W) * z).sum(-1) - z @ params.bias


def lattice(height: int, width: int) -> np.ndarray:
    """The mask of a square grid of units, numbered row by row, each joined to its up to four
    neighbours.
    """
    row, column = np.divmod(np.arange(height * width), width)
    return np.abs(row[:, None] - row) + np.abs(column[:, None] - column) == 1


def two_colours(mask: np.ndarray) -> np.ndarray:
    """Colours 0 and 1 such that no two joined units have the same one; the first unit of every
    connected part gets 0.
    """
    colour = np.full(len(mask), -1)
    for first in range(len(mask)):
        if colour[first] < 0:
            colour[first], reached = 0, [first]
            for unit in reached:
                fresh = np.flatnonzero(mask[unit] & (colour < 0))
                colour[fresh] = 1 - colour[unit]
                reached.extend(fresh)
    if np.any(mask & (colour[:, None] == colour)):
        raise ValueError(
            "a chequerboard needs a mask of two colours, with no odd cycle of joined units (a "
            "lattice, or visible to hidden only); "
            "this mask has one, so use sweep='sequential'."
        )
    return colour


def check_mask(mask: Any, n: int) -> np.ndarray:
    """Symmetric, empty diagonal; None joins every pair."""
    given = ~np.eye(n, dtype=bool) if mask is None else np.asarray(mask)
    if given.shape != (n, n) or not np.isin(given, (0, 1)).all():
        raise ValueError(
            f"the mask must be a ({n}, {n}) array of booleans, one row for each unit, visible "
            "units first."
        )
    given = given.astype(bool)
    if given.diagonal().any() or (given != given.T).any():
        raise ValueError(
            "the mask must be symmetric with an empty diagonal; try mask | mask.T with "
            "np.fill_diagonal(mask, False)."
        )
    return given


class BoltzmannMachine(eqx.Module):
    """One step is one sweep of Gibbs sampling over all free units, with one uniform number for each
    unit. In a positive phase the visible units are clamped to the data.

    Args:
        visible: number of visible units, one for each column of the data; they are numbered first.
        hidden: number of hidden units, at least 0.
        mask: (n, n) booleans, n = visible + hidden: which pairs of units are joined; symmetric,
            with an empty diagonal (default: all pairs).
        sweep: `sequential` visits unit 0, 1, ..., n - 1, each given the newest state of all
            others; `chequerboard` draws all units of colour 0 at once, then all of colour 1, and
            needs a mask without odd cycles.
        visible_bias: False: the visible biases are not learned and stay at 0.
        negative_start: where the chain of a negative phase begins, as in `RBM`.
        scale: standard deviation of the initial weights; biases begin at 0.
    """

    mask: Array
    colour: Array  # (n,) for the chequerboard; all 0 in a sequential sweep
    visible: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    sweep: Sweep = eqx.field(static=True)
    visible_bias: bool = eqx.field(static=True)
    negative_start: NegativeStart = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def __init__(
        self,
        visible: int,
        hidden: int,
        mask: Any = None,
        sweep: Sweep = "sequential",
        visible_bias: bool = True,
        negative_start: NegativeStart = "carry",
        scale: float = 0.01,
    ):
        binary.check_units(visible, hidden, 0, negative_start)
        one_of(sweep, get_args(Sweep), "sweep")
        joined = check_mask(mask, visible + hidden)
        self.mask = jnp.asarray(joined)
        self.colour = jnp.asarray(
            two_colours(joined) if sweep == "chequerboard" else np.zeros(len(joined), int),
            jnp.int32,
        )
        self.visible, self.hidden, self.sweep = visible, hidden, sweep
        self.visible_bias, self.negative_start, self.scale = visible_bias, negative_start, scale

    @property
    def n(self) -> int:
        return self.visible + self.hidden

    def check(self, x: Any) -> None:
        binary.check_rows(x, self.visible)

    def init(self, key: Key) -> tuple[Couplings, Units]:
        k_w, k_z = jax.random.split(key)
        upper = jnp.triu(self.scale * jax.random.normal(k_w, (self.n, self.n)), 1) * self.mask
        z = binary.first(*self.fresh(k_z), self.negative_start)
        return Couplings(upper + upper.T, jnp.zeros(self.n)), z

    def fresh(self, key: Key) -> tuple[Array, Array]:
        """A random state, whatever the parameters."""
        return binary.coins(key, self.visible, self.hidden)

    def gibbs(
        self, key: Key, params: Couplings, v: Array, h: Array, x: Array, clamped: Array
    ) -> tuple[Array, Array]:
        """One sweep over the units that are not clamped."""
        u = jax.random.uniform(key, (self.n,))
        held = jnp.concatenate(
            [jnp.broadcast_to(clamped, (self.visible,)), jnp.zeros(self.hidden, bool)]
        )
        z = jnp.concatenate([jnp.where(clamped, x, v), h])

        def unit(i: Array, z: Array) -> Array:
            p = jax.nn.sigmoid(params.W[i] @ z + params.bias[i])
            return z.at[i].set(jnp.where(held[i], z[i], bernoulli(u[i], p)))

        def block(colour: Array, z: Array) -> Array:
            p = jax.nn.sigmoid(params.W @ z + params.bias)
            return jnp.where((self.colour == colour) & ~held, bernoulli(u, p), z)

        z = (
            jax.lax.fori_loop(0, 2, block, z)
            if self.sweep == "chequerboard"
            else jax.lax.fori_loop(0, self.n, unit, z)
        )
        return z[: self.visible], z[self.visible :]

    def enter(self, key: Key, params: Couplings, z: Units, x: Array, sign: Array) -> Units:
        return binary.enter(self, key, params, z, x, sign)

    def step(self, key: Key, params: Couplings, z: Units, x: Array, sign: Array) -> Units:
        return binary.step(self, key, params, z, x, sign)

    def grad(self, params: Couplings, z: Units, x: Array, sign: Array) -> Couplings:
        """dE/dtheta at the sampled state: the same function in both phases."""
        both = jnp.concatenate([z.v, z.h])
        return Couplings(
            -jnp.outer(both, both) * self.mask, -jnp.concatenate([z.v * self.visible_bias, z.h])
        )
