"""The feedback bias of any method, by simulation: one phase learned always-on beside the same phase with frozen parameters.

Both take the same random numbers, so most of the noise is common and the small difference, of order eta^2, is resolved. Tick t counts
with P(T >= t), which is the mean over phase lengths T given the noise: geometric lengths cost no extra variance. Dynamics that are
deterministic (Theorem 2) need one lane and have no error at all.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from ..checks import positive_length, probability
from ..core import Key

TAIL = 1e-6  # geometric lengths are followed until P(T >= t) is below this


class Beginning(NamedTuple):
    """Where a phase begins: its sign, the stimulus, the network's state and the parameters."""

    params: Any
    z: Any
    x: Any
    sign: float


def horizon(tau: float, geometric: bool) -> int:
    """Ticks that matter in a phase of (mean) length tau."""
    positive_length(tau, whole=not geometric)
    return int(np.ceil(np.log(TAIL) / np.log1p(-1 / tau))) if geometric and tau > 1 else int(tau)


def gap(method: Any, at: Beginning, eta: Any, tau: float, *, geometric: bool = False, b: float = 0.5, phases: int = 4096, seed: int = 0) -> np.ndarray:
    """(phases, d) samples of [sum of always-on updates] - [the same with theta frozen]; their mean is the feedback bias."""
    s = at.sign / float(probability(b) if at.sign > 0 else 1 - probability(b))
    q = 1 - 1 / tau if geometric else 1.0
    keys = jax.random.split(jax.random.key(seed), phases)
    ticks = jnp.int32(horizon(tau, geometric))
    return np.asarray(_gap(method, at, keys, jnp.float32(eta), jnp.float32(tau), jnp.float32(s), jnp.float32(q), ticks), float)


@eqx.filter_jit
def _gap(method: Any, at: Beginning, keys: Key, eta: Array, tau: Array, s: Array, q: Array, ticks: Array) -> Array:
    frozen, unravel = ravel_pytree(at.params)

    def lane(key: Key) -> Array:
        def tick(t: Array, carry: tuple) -> tuple:
            moved, z, z0, total = carry  # `moved` apart from theta: a small sum beside a large number would lose digits
            k, params = jax.random.fold_in(key, t), unravel(frozen - moved)
            z, z0 = method.step(k, params, z, at.x, at.sign), method.step(k, at.params, z0, at.x, at.sign)
            g, g0 = (ravel_pytree(method.grad(p, state, at.x, at.sign))[0] for p, state in ((params, z), (at.params, z0)))
            return moved + eta / tau * s * g, z, z0, total + q**t * (g - g0)

        zero = jnp.zeros_like(frozen)
        return eta / tau * s * jax.lax.fori_loop(0, ticks, tick, (zero, at.z, at.z, zero))[-1]

    return jax.vmap(lane)(keys)
