"""Restricted Boltzmann machine: E(v, h) = -v W h - a v - c h, p(v, h) proportional to exp(-E)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..core import Key
from . import binary
from .binary import NegativeStart, Units, bernoulli


class Params(NamedTuple):
    W: Array  # (visible, hidden)
    a: Array  # visible bias
    c: Array  # hidden bias


def biased(drive: Array, bias: Array) -> Array:
    """drive + bias along the last axis."""
    return drive + jnp.broadcast_to(bias, drive.shape)


def energy(params: Params, v: Array, h: Array) -> Array:
    return -v @ params.W @ h - params.a @ v - params.c @ h


def free_energy(params: Params, v: Array) -> Array:
    """F(v) = -log sum_h exp(-E(v, h)) = -a v - sum_j softplus(c_j + (v W)_j)."""
    return -v @ params.a - jax.nn.softplus(biased(v @ params.W, params.c)).sum(-1)


def p_hidden(params: Params, v: Array) -> Array:
    """P(h = 1 | v); v may have leading axes."""
    return jax.nn.sigmoid(biased(v @ params.W, params.c))


def p_visible(params: Params, h: Array) -> Array:
    """P(v = 1 | h); h may have leading axes."""
    return jax.nn.sigmoid(biased(h @ params.W.T, params.a))


class RBM(eqx.Module):
    """Bernoulli RBM. One step is "visible given hidden (when free), then hidden given visible", so
    h is always fresh given v and, with phases of one tick, CD-1 is Hinton's CD-1.

    Args:
        visible: number of visible units, one for each column of the data.
        hidden: number of hidden units, at least 1.
        visible_bias: False: the visible biases are not learned and stay at 0.
        negative_start: where the chain of a negative phase begins: `carry` goes on from the state
            that the last phase left (eq. 5), `data` makes one step clamped to the last data row,
            `persistent` goes on from the end of the last negative phase, `random` takes 0 or 1
            with probability 1/2 for every unit.
        scale: standard deviation of the initial weights; biases begin at 0.
    """

    visible: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    visible_bias: bool = eqx.field(static=True, default=True)
    negative_start: NegativeStart = eqx.field(static=True, default="carry")
    scale: float = eqx.field(static=True, default=0.01)

    def __check_init__(self):
        binary.check_units(self.visible, self.hidden, 1, self.negative_start)

    def check(self, x: Any) -> None:
        binary.check_rows(x, self.visible)

    def init(self, key: Key) -> tuple[Params, Units]:
        k_w, k_z = jax.random.split(key)
        W = self.scale * jax.random.normal(k_w, (self.visible, self.hidden))
        z = binary.first(*self.fresh(k_z), self.negative_start)
        return Params(W, jnp.zeros(self.visible), jnp.zeros(self.hidden)), z

    def fresh(self, key: Key) -> tuple[Array, Array]:
        """A random state, whatever the parameters."""
        return binary.coins(key, self.visible, self.hidden)

    def gibbs(
        self, key: Key, params: Params, v: Array, h: Array, x: Array, clamped: Array
    ) -> tuple[Array, Array]:
        """Visible given hidden, where not clamped to x; then hidden given visible. The old v is
        forgotten.
        """
        u = jax.random.uniform(key, (self.visible + self.hidden,))
        v = jnp.where(clamped, x, bernoulli(u[: self.visible], p_visible(params, h)))
        return v, bernoulli(u[self.visible :], p_hidden(params, v))

    def enter(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        return binary.enter(self, key, params, z, x, sign)

    def step(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        return binary.step(self, key, params, z, x, sign)

    def grad(self, params: Params, z: Units, x: Array, sign: Array) -> Params:
        """dE/dtheta at the sampled state: the same function in both phases."""
        return Params(-jnp.outer(z.v, z.h), -z.v * self.visible_bias, -z.h)
