"""Parallel tempering for the negative phase (Desjardins et al. 2010, Cho et al. 2010).

Replicas of the free machine run side by side at inverse temperatures 0 = beta_1 < ... < beta_n = 1,

    E_beta(v, h) = base(v) - beta (a v + c h + v W h),

and neighbours exchange their states with probability min(1, exp((beta_j - beta_i) (J_i - J_j))),
J = a v + c h + v W h. The hot ones move anywhere, so that the coldest, which is the machine itself,
comes out of its minima. The chains persist from one negative phase to the next.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import count
from ..core import Key, where
from .harmonium import Harmonium, interaction
from .rbm import RBM, Params


class Tempering(NamedTuple):
    v: Array
    h: Array
    replicas: tuple[Array, Array]  # v and h of every temperature, the hottest first


def heated(params: Params, beta: Array) -> Params:
    """The parameters with which an ordinary Gibbs step samples exp(-E_beta)."""
    return Params(*(beta * part for part in params))


def exchange(
    key: Key, params: Params, betas: Array, v: Array, h: Array, first: int
) -> tuple[Array, Array]:
    """Neighbours (first, first + 1), (first + 2, first + 3), ... exchange their states, or not."""
    J = jax.vmap(interaction, (None, 0, 0))(params, v, h)
    low = jnp.arange(first, len(betas) - 1, 2)
    odds = (betas[low + 1] - betas[low]) * (J[low] - J[low + 1])
    yes = jnp.log(jax.random.uniform(key, low.shape)) < odds
    order = jnp.arange(len(betas))
    order = order.at[low].add(yes.astype(order.dtype)).at[low + 1].add(-yes.astype(order.dtype))
    return v[order], h[order]


class Tempered(eqx.Module):
    """A machine whose negative phases are sampled by parallel tempering.

    Args:
        method: an `RBM` or a `Harmonium`; its own `negative_start` plays no part.
        temperatures: how many inverse temperatures, evenly spaced from 0 to 1, at least 2.

    Example: `Run(Tempered(RBM(16, 16), 10), *cd(1), Rows(data), Optimiser(0.01))`.
    """

    method: Any
    temperatures: int = eqx.field(static=True, default=10)

    def __check_init__(self):
        count(self.temperatures, "the number of temperatures", 2)
        if not isinstance(self.method, RBM | Harmonium):
            raise ValueError(
                f"parallel tempering is for an RBM or a Harmonium, not {type(self.method).__name__}"
                "; wrap those first, and other wrappers around it."
            )

    @property
    def betas(self) -> Array:
        """Inverse temperatures, evenly spaced from 0 to 1."""
        return jnp.linspace(0, 1, self.temperatures)

    def check(self, x: Any) -> None:
        self.method.check(x)

    def init(self, key: Key) -> tuple[Params, Tempering]:
        params, z = self.method.init(key)
        each = jax.vmap(lambda k: self.method.init(k)[1][:2])
        return params, Tempering(z.v, z.h, each(jax.random.split(key, self.temperatures)))

    def enter(self, key: Key, params: Params, z: Tempering, x: Array, sign: Array) -> Tempering:
        cold = tuple(part[-1] for part in z.replicas)
        v, h = where(sign <= 0, cold, (z.v, z.h))
        return Tempering(v, h, z.replicas)

    def step(self, key: Key, params: Params, z: Tempering, x: Array, sign: Array) -> Tempering:
        """A clamped step in a positive phase; else a sweep of all replicas, then exchanges."""
        k_clamped, k_free = jax.random.split(key)
        held = self.method.gibbs(k_clamped, params, z.v, z.h, x, jnp.bool_(True))
        moved = self.sweep(k_free, params, z.replicas)
        v, h = where(sign > 0, held, tuple(part[-1] for part in moved))
        return Tempering(v, h, where(sign > 0, z.replicas, moved))

    def sweep(self, key: Key, params: Params, replicas: tuple[Array, Array]) -> tuple[Array, Array]:
        """One tick of all replicas."""
        k_gibbs, k_even, k_odd = jax.random.split(key, 3)

        def one(key: Key, beta: Array, v: Array, h: Array) -> tuple[Array, Array]:
            return self.method.gibbs(key, heated(params, beta), v, h, v, jnp.bool_(False))

        keys = jax.random.split(k_gibbs, self.temperatures)
        v, h = jax.vmap(one)(keys, self.betas, *replicas)
        v, h = exchange(k_even, params, self.betas, v, h, 0)
        return exchange(k_odd, params, self.betas, v, h, 1)

    def grad(self, params: Params, z: Tempering, x: Array, sign: Array) -> Params:
        """The term of the method, at the coldest replica."""
        return self.method.grad(params, z, x, sign)
