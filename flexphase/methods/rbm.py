"""Restricted Boltzmann machine: E(v, h) = -v W h - a v - c h, p(v, h) proportional to exp(-E)."""

from typing import Any, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..core import Key

NegativeStart = Literal["carry", "data", "persistent", "random"]


class Params(NamedTuple):
    W: Array  # (visible, hidden)
    a: Array  # visible bias
    c: Array  # hidden bias


class Units(NamedTuple):
    v: Array
    h: Array
    chain: Any = ()  # (v, h) at the end of the last negative phase, kept for `persistent` only


def energy(params: Params, v: Array, h: Array) -> Array:
    return -v @ params.W @ h - params.a @ v - params.c @ h


def free_energy(params: Params, v: Array) -> Array:
    """F(v) = -log sum_h exp(-E(v, h)) = -a v - sum_j softplus(c_j + (v W)_j)."""
    return -v @ params.a - jax.nn.softplus(params.c + v @ params.W).sum(-1)


def p_hidden(params: Params, v: Array) -> Array:
    return jax.nn.sigmoid(params.c + v @ params.W)


def p_visible(params: Params, h: Array) -> Array:
    return jax.nn.sigmoid(params.a + h @ params.W.T)


def bernoulli(u: Array, p: Array) -> Array:
    return (u < p).astype(p.dtype)


class RBM(eqx.Module):
    """Bernoulli RBM. One step is "visible given hidden (when free), then hidden given visible", so h is always fresh given v
    and, with phases of one tick, CD-1 is Hinton's CD-1.

    negative_start says where the chain of a negative phase begins: `carry` goes on from the state that the last phase left (eq. 5;
    after a positive phase that is the data), `data` clamps the last data row once, `persistent` goes on from the end of the last
    negative phase, `random` forgets everything.
    """

    visible: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    visible_bias: bool = eqx.field(static=True, default=True)
    negative_start: NegativeStart = eqx.field(static=True, default="carry")
    scale: float = eqx.field(static=True, default=0.01)  # standard deviation of the initial weights

    def __check_init__(self):
        if self.visible < 1 or self.hidden < 1:
            raise ValueError(f"an RBM needs at least one visible and one hidden unit, not {self.visible} and {self.hidden}.")
        if self.negative_start not in get_args(NegativeStart):
            raise ValueError(f"negative_start must be one of {', '.join(get_args(NegativeStart))}, not {self.negative_start!r}.")

    def init(self, key: Key) -> tuple[Params, Units]:
        k_w, k_v, k_h = jax.random.split(key, 3)
        W = self.scale * jax.random.normal(k_w, (self.visible, self.hidden))
        v = bernoulli(jax.random.uniform(k_v, (self.visible,)), jnp.full(self.visible, 0.5))
        h = bernoulli(jax.random.uniform(k_h, (self.hidden,)), jnp.full(self.hidden, 0.5))
        chain = (v, h) if self.negative_start == "persistent" else ()
        return Params(W, jnp.zeros(self.visible), jnp.zeros(self.hidden)), Units(v, h, chain)

    def enter(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        """Only the start of a negative phase needs care: a positive one is clamped by every step."""
        match self.negative_start:
            case "carry":
                return z
            case "data":
                v, h = x, bernoulli(jax.random.uniform(key, (self.hidden,)), p_hidden(params, x))
            case "persistent":
                v, h = z.chain
            case "random":
                v, h = z.v, bernoulli(jax.random.uniform(key, (self.hidden,)), jnp.full(self.hidden, 0.5, z.h.dtype))
        return Units(jnp.where(sign < 0, v, z.v), jnp.where(sign < 0, h, z.h), z.chain)

    def step(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        u = jax.random.uniform(key, (self.visible + self.hidden,))
        v = jnp.where(sign > 0, x, bernoulli(u[: self.visible], p_visible(params, z.h)))
        h = bernoulli(u[self.visible :], p_hidden(params, v))
        chain = jax.tree.map(lambda new, old: jnp.where(sign < 0, new, old), (v, h), z.chain) if z.chain else ()
        return Units(v, h, chain)

    def grad(self, params: Params, z: Units, x: Array, sign: Array) -> Params:
        """dE/dtheta at the sampled state: the same function in both phases."""
        return Params(-jnp.outer(z.v, z.h), -z.v * self.visible_bias, -z.h)
