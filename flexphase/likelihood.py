"""How good is a Boltzmann machine? Exact log Z and NLL by enumeration; annealed importance sampling beyond that."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .checks import matrix
from .methods.rbm import Params, free_energy


def states(n: int, start: Any = 0, count: int | None = None) -> Array:
    """Binary states number start, start + 1, ... of n units, one a row."""
    numbers = start + jnp.arange(2**n if count is None else count, dtype=jnp.uint32)
    return ((numbers[:, None] >> jnp.arange(n, dtype=jnp.uint32)) & 1).astype(jnp.float32)


def log_z(params: Params, chunk: int = 4096) -> Array:
    """log sum_{v,h} exp(-E), enumerating the smaller layer in chunks; the larger one is summed in closed form."""
    if params.W.shape[0] < params.W.shape[1]:
        return log_z(Params(params.W.T, params.c, params.a), chunk)
    n = params.W.shape[1]
    if n > 26:
        raise ValueError(f"the smaller layer has {n} units, too many to enumerate; use annealed importance sampling.")
    chunk = min(chunk, 2**n)
    swapped = Params(params.W.T, params.c, params.a)

    def body(i: Array, total: Array) -> Array:
        part = jax.nn.logsumexp(-free_energy(swapped, states(n, i.astype(jnp.uint32) * chunk, chunk)))
        return jnp.logaddexp(total, part)

    return jax.lax.fori_loop(0, 2**n // chunk, body, jnp.array(-jnp.inf, params.W.dtype))


class NLL(eqx.Module):
    """Exact negative log-likelihood in nats, SUMMED over the rows of the data: sum_i F(v_i) + N log Z."""

    data: Array = eqx.field(converter=matrix)

    def __call__(self, params: Params) -> Array:
        return free_energy(params, self.data).sum() + len(self.data) * log_z(params)
