"""Centred gradients (Montavon and Mueller 2012; Melchior, Fischer and Wiskott 2016).

Activities are measured from offsets, mu of the visible and lam of the hidden units, and the update
is written in the ordinary parameters:

    g_W = -(v - mu) (h - lam)^T        g_a = -(v - mu) - g_W lam        g_c = -(h - lam) - mu g_W

Its mean is the ordinary gradient times a positive matrix, so that what is at rest stays at rest; a
pattern and its negative are learned alike, and the constants that both terms share are gone, which
lowers the variance of single terms.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero, matrix
from ..core import Key, where
from .harmonium import Harmonium
from .rbm import RBM, Params, p_hidden
from .tempering import Tempered


class Centring(NamedTuple):
    z: Any  # the state of the method
    lam: Array  # running mean of the hidden units in positive phases


def centred(v: Array, h: Array, mu: Array, lam: Array) -> Params:
    """The term of one state."""
    W = -jnp.outer(v - mu, h - lam)
    return Params(W, mu - v - W @ lam, lam - h - mu @ W)


class Centred(eqx.Module):
    """A machine that follows the centred gradient.

    Args:
        method: an `RBM` with visible biases, a `Harmonium`, or one of these `Tempered`.
        data: the rows that are learned; mu is their mean.
        rate: of the running mean lam, at every tick of a positive phase, in (0, 1].
        mu: the offsets themselves, one for each visible unit, in the place of data.

    Example: `Run(Centred(RBM(16, 16), data), *isd(0.5, 20), Rows(data), Optimiser(0.01))`.
    """

    method: Any
    mu: Array
    rate: Array

    def __init__(self, method: Any, data: Any = None, rate: Any = 0.01, mu: Any = None):
        inner = method.method if isinstance(method, Tempered) else method
        if not isinstance(inner, RBM | Harmonium):
            raise ValueError(
                "centred gradients are for an RBM, a Harmonium or one of these Tempered, not "
                f"{type(inner).__name__}."
            )
        if isinstance(inner, RBM) and not inner.visible_bias:
            raise ValueError(
                "centring moves the visible biases; make the machine with visible_bias=True."
            )
        self.method, self.rate = method, above_zero(rate, "rate, of the running mean,", 1)
        # mu is what a record writes down
        self.mu = matrix(data).mean(0) if mu is None else jnp.asarray(mu, jnp.float32)
        if self.mu.shape != (inner.visible,):
            raise ValueError(
                f"the data to centre on have {len(self.mu)} columns and the machine "
                f"{inner.visible} visible units; make the two agree."
            )

    def check(self, x: Any) -> None:
        self.method.check(x)

    def init(self, key: Key) -> tuple[Params, Centring]:
        params, z = self.method.init(key)
        return params, Centring(z, jnp.full(params.c.shape, 0.5))

    def enter(self, key: Key, params: Params, z: Centring, x: Array, sign: Array) -> Centring:
        return z._replace(z=self.method.enter(key, params, z.z, x, sign))

    def step(self, key: Key, params: Params, z: Centring, x: Array, sign: Array) -> Centring:
        moved = self.method.step(key, params, z.z, x, sign)
        lam = z.lam + self.rate * (p_hidden(params, moved.v) - z.lam)
        return Centring(moved, where(sign > 0, lam, z.lam))

    def grad(self, params: Params, z: Centring, x: Array, sign: Array) -> Params:
        return centred(z.z.v, z.z.h, self.mu, z.lam)
