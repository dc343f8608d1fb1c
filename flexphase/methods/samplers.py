"""Samplers of p(z) proportional to exp(-E(z)) that need the energy alone, one step at a time.

They see the state as one flat array. `free` is 1 where a unit may move and 0 where it is clamped.
"""

from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero
from ..core import Key

Energy = Callable[[Array], Array]  # of a flat state


def _step_size(step: Any) -> Array:
    return above_zero(step, "step, the size of a sampler's step,")


class Sampler(Protocol):
    """z' ~ p(z' | z), with exp(-E) as its stationary law over the free units."""

    @property
    def binary(self) -> bool: ...  # is a unit 0 or 1, or any number?
    def __call__(self, key: Key, energy: Energy, z: Array, free: Array) -> Array: ...  # -> z'


class Gibbs(eqx.Module):
    """Units 0 and 1, visited one after the other: P(z_i = 1 | rest) = sigmoid(E(z_i = 0) - E(z_i =
    1)), exact for every energy. A sweep over n units takes the energy 2n times.

    Args:
        binary: tells `EnergyModel` that the units are 0 or 1; leave it at True.
    """

    binary: bool = eqx.field(static=True, default=True)

    def __call__(self, key: Key, energy: Energy, z: Array, free: Array) -> Array:
        u = jax.random.uniform(key, z.shape)

        def unit(i: Array, z: Array) -> Array:
            off, on = z.at[i].set(0), z.at[i].set(1)
            p = jax.nn.sigmoid(energy(off) - energy(on))
            return jnp.where(free[i] > 0, jnp.where(u[i] < p, on, off), z)

        return jax.lax.fori_loop(0, len(z), unit, z)


class Langevin(eqx.Module):
    """z' = z - step dE/dz + sqrt(2 step) noise, with noise from N(0, 1).

    Args:
        step: size of a step, above 0. The stationary law is off by O(step).
        metropolis: accept or reject each step (MALA), which makes the law exact for every step
            size; a step to where the energy is not finite is then rejected too.
        binary: tells `EnergyModel` that the units are real numbers; leave it at False.
    """

    step: Array = eqx.field(converter=_step_size, default=0.01)
    metropolis: bool = eqx.field(static=True, default=False)
    binary: bool = eqx.field(static=True, default=False)

    def __call__(self, key: Key, energy: Energy, z: Array, free: Array) -> Array:
        k_noise, k_accept = jax.random.split(key)
        before, slope = jax.value_and_grad(energy)(z)
        noise = jnp.sqrt(2 * self.step) * jax.random.normal(k_noise, z.shape)
        new = z + free * (noise - self.step * slope)
        if not self.metropolis:
            return new
        after, back_slope = jax.value_and_grad(energy)(new)
        forth = (free * (new - z + self.step * slope) ** 2).sum()
        back = (free * (z - new + self.step * back_slope) ** 2).sum()
        log_ratio = before - after + (forth - back) / (4 * self.step)
        return jnp.where(jnp.log(jax.random.uniform(k_accept)) < log_ratio, new, z)


class Descent(eqx.Module):
    """z' = z - step dE/dz: no noise, towards the nearest minimum of the energy.

    Args:
        step: size of a step, above 0.
        binary: tells `EnergyModel` that the units are real numbers; leave it at False.
    """

    step: Array = eqx.field(converter=_step_size, default=0.1)
    binary: bool = eqx.field(static=True, default=False)

    def __call__(self, key: Key, energy: Energy, z: Array, free: Array) -> Array:
        return z - self.step * free * jax.grad(energy)(z)
