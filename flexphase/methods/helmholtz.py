"""Helmholtz machine, trained by wake-sleep (Hinton, Dayan, Frey and Neal 1995).

A generative model draws hidden units, then visible ones, and a recognition model guesses the hidden
units of what is seen; all units are 0 or 1 and independent given the layer before:

    p(h) = sigmoid(c),  p(v | h) = sigmoid(h W + a)      q(h | v) = sigmoid(v R + r)

Awake (positive phase) v is data, h comes from q, and the generative model learns: g_plus = grad
-log p(v, h). Asleep (negative phase) both come from p, and the recognition model learns: g_minus =
grad log q(h | v). The two terms have no parameter in common.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import count, zeros_and_ones
from ..core import Key
from . import binary
from .binary import Units, bernoulli, states
from .rbm import biased


class Generative(NamedTuple):
    c: Array  # hidden bias
    W: Array  # (hidden, visible)
    a: Array  # visible bias


class Recognition(NamedTuple):
    R: Array  # (visible, hidden)
    r: Array  # hidden bias


class Params(NamedTuple):
    p: Generative
    q: Recognition


def log_bernoulli(x: Array, drive: Array) -> Array:
    """log probability of the zeros and ones x, summed over the last axis, at P(x = 1) =
    sigmoid(drive).
    """
    return (x * drive - jax.nn.softplus(drive)).sum(-1)


def log_joint(p: Generative, v: Array, h: Array) -> Array:
    """log p(v, h); v and h may have leading axes."""
    return log_bernoulli(h, jnp.broadcast_to(p.c, h.shape)) + log_bernoulli(v, biased(h @ p.W, p.a))


def log_recognised(q: Recognition, v: Array, h: Array) -> Array:
    """log q(h | v); v and h may have leading axes."""
    return log_bernoulli(h, biased(v @ q.R, q.r))


class HelmholtzMachine(eqx.Module):
    """`visible` units of zeros and ones, explained by `hidden` ones. Every tick draws afresh,
    without memory, so phases of one tick suffice.

    Args:
        visible: number of visible units, one for each column of the data.
        hidden: number of hidden units, at least 1.
        scale: standard deviation of the initial weights; biases begin at 0.

    Example: `Run(HelmholtzMachine(16, 8), *isd(0.5, 1), Rows(data), Optimiser(0.1))`.
    """

    visible: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    scale: float = eqx.field(static=True, default=0.1)

    def __check_init__(self):
        count(self.visible, "visible")
        count(self.hidden, "hidden")

    def check(self, x: Any) -> None:
        binary.check_rows(x, self.visible)

    def init(self, key: Key) -> tuple[Params, Units]:
        """Weights N(0, scale^2), biases 0."""
        k_p, k_q = jax.random.split(key)
        W = self.scale * jax.random.normal(k_p, (self.hidden, self.visible))
        R = self.scale * jax.random.normal(k_q, (self.visible, self.hidden))
        v, h = jnp.zeros(self.visible), jnp.zeros(self.hidden)
        return Params(Generative(h, W, v), Recognition(R, h)), Units(v, h)

    def enter(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        return z

    def step(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        """Awake: h given the datum. Asleep: h, then v given it."""
        p, q = params
        k_h, k_v = jax.random.split(key)
        drive = jnp.where(sign > 0, x @ q.R + q.r, p.c)
        h = bernoulli(jax.random.uniform(k_h, (self.hidden,)), jax.nn.sigmoid(drive))
        v = bernoulli(jax.random.uniform(k_v, (self.visible,)), jax.nn.sigmoid(h @ p.W + p.a))
        return Units(jnp.where(sign > 0, x, v), h)

    def grad(self, params: Params, z: Units, x: Array, sign: Array) -> Params:
        """Delta rules: the error of a unit is what came minus what its model expected."""
        p, q = params
        awake, asleep = (sign > 0).astype(z.v.dtype), (sign < 0).astype(z.v.dtype)
        prior = awake * (jax.nn.sigmoid(p.c) - z.h)
        seen = awake * (jax.nn.sigmoid(z.h @ p.W + p.a) - z.v)
        guess = asleep * (z.h - jax.nn.sigmoid(z.v @ q.R + q.r))
        return Params(
            Generative(prior, jnp.outer(z.h, seen), seen), Recognition(jnp.outer(z.v, guess), guess)
        )


class HelmholtzNLL(eqx.Module):
    """Exact negative log-likelihood in nats, summed over the rows of the data: -log sum_h p(v, h)
    over all 2^hidden states.

    Args:
        data: (rows, visible) zeros and ones. At most 20 hidden units can be enumerated.
    """

    data: Array = eqx.field(converter=zeros_and_ones)

    def __call__(self, params: Params) -> Array:
        hidden = len(params.p.c)
        if hidden > 20:
            raise ValueError(
                f"{hidden} hidden units have 2^{hidden} states, too many to enumerate (at most 20)."
            )
        h = states(hidden)

        def one(v: Array) -> Array:
            rows = jnp.broadcast_to(v, (len(h), len(v)))
            return -jax.nn.logsumexp(log_joint(params.p, rows, h))

        return jax.lax.map(one, self.data).sum()
