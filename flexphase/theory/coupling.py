"""The feedback bias of any method, by simulation.

One phase with always-on learning is compared with the same phase at frozen parameters.

Both take the same random numbers, so most of the noise is common and the small difference, of order
eta^2, is resolved. Tick t counts with P(T >= t), which is the mean over phase lengths T given the
noise: random lengths cost no extra variance. Dynamics that are deterministic (Theorem 2) need
one lane and have no error at all.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from ..checks import positive_length, probability
from ..core import Key
from .frozen import Starts, step_and_term

TAIL = 1e-6  # geometric lengths are followed until P(T >= t) is below this


def horizon(tau: float, geometric: bool) -> int:
    """Ticks that matter in a phase of (mean) length tau."""
    positive_length(tau, whole=not geometric)
    return int(np.ceil(np.log(TAIL) / np.log1p(-1 / tau))) if geometric and tau > 1 else int(tau)


def gap(
    method: Any,
    params: Any,
    at: Starts,
    sign: float,
    eta: float,
    tau: float,
    *,
    geometric: bool = False,
    b: float = 0.5,
    seed: int = 0,
    survival: np.ndarray | None = None,
) -> np.ndarray:
    """(lanes, d) samples of [sum of always-on updates] - [the same with theta frozen].

    Their mean is the feedback bias of a phase, with weights 1/b and -1/(1-b).

    Args:
        method: any method.
        params: where theta starts, flat in the result.
        at: states and stimuli with which the phase begins, a lane each.
        sign: of the phase.
        eta: learning rate.
        tau: (mean) length of the phase in ticks.
        geometric: are lengths geometric, or all tau?
        b: probability of a positive phase.
        seed: of the noise, which both sums share.
        survival: P(T >= t) for t = 1, 2, ..., of any other law.
    """
    prob = float(probability(b))
    s = 1 / prob if sign > 0 else -1 / (1 - prob)
    if survival is None:
        q = 1 - 1 / tau if geometric else 1.0
        survival = q ** np.arange(horizon(tau, geometric))
    ticks = len(survival)
    padded = np.zeros(2 ** int(np.ceil(np.log2(ticks))), np.float32)  # few sizes to compile
    padded[:ticks] = survival
    keys = jax.random.split(jax.random.key(seed), len(jax.tree.leaves(at)[0]))
    sign_, rate = map(jnp.float32, (sign, eta / tau * s))
    reached, n = jnp.asarray(padded), jnp.int32(ticks)
    return np.asarray(_gap(method, params, at, keys, sign_, rate, reached, n), float)


@eqx.filter_jit
def _gap(
    method: Any,
    params: Any,
    at: Starts,
    keys: Key,
    sign: Array,
    rate: Array,
    survival: Array,
    ticks: Array,
) -> Array:
    frozen, unravel = ravel_pytree(params)

    def lane(key: Key, at: Starts) -> Array:
        def term(moved: Array, z: Any, k: Key) -> tuple[Any, Array]:
            return step_and_term(method, k, unravel(frozen - moved), z, at.x, sign)

        def tick(t: Array, carry: tuple) -> tuple:
            # `moved` apart from theta: a small sum beside a large number would lose digits
            moved, z, total = carry
            z, (g, g_frozen) = jax.vmap(term, (0, 0, None))(
                jnp.stack([moved, zero]), z, jax.random.fold_in(key, t)
            )
            return moved + rate * g, z, total + survival[t] * (g - g_frozen)

        zero = jnp.zeros_like(frozen)
        both = jax.tree.map(lambda a: jnp.stack([a, a]), at.z)
        return rate * jax.lax.fori_loop(0, ticks, tick, (zero, both, zero))[-1]

    return jax.vmap(lane)(keys, at)


def series(
    method: Any, params: Any, at: Starts, sign: float, ticks: int, seed: int = 0
) -> np.ndarray:
    """(ticks, lanes, d): the term at every tick of a phase with frozen parameters."""
    keys = jax.random.split(jax.random.key(seed), len(jax.tree.leaves(at)[0]))
    return np.asarray(_series(method, params, at, keys, jnp.float32(sign), int(ticks)), float)


@eqx.filter_jit
def _series(method: Any, params: Any, at: Starts, keys: Key, sign: Array, ticks: int) -> Array:
    def lane(key: Key, at: Starts) -> Array:
        def tick(z: Any, t: Array) -> tuple[Any, Array]:
            k_tick = jax.random.fold_in(key, t)
            return step_and_term(method, k_tick, params, z, at.x, sign)

        return jax.lax.scan(tick, at.z, jnp.arange(ticks))[1]

    return jax.vmap(lane, out_axes=1)(keys, at)
