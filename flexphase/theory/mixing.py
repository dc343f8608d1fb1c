"""How fast does a learner's gradient forget where its phase began?

One long phase is watched from its beginning with the parameters frozen.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..core import Key, Run
from .frozen import Starts, starts, step_and_term

# parameters in more dimensions are seen through this many sums with random signs, which keep
# squared lengths on average
DIRECTIONS = 32
REPLICAS = 4  # phases that share their beginning and their stimulus, but not their noise


class Mixing(NamedTuple):
    """What one long phase shows about the term of its sign."""

    mean: float  # |gbar|, the length of the term at equilibrium
    # ticks: 1 + 2 sum_k rho_k; n ticks of a phase are worth n / autocorrelation independent samples
    autocorrelation: float
    # |sum_t (E g_t - gbar)|: the transient bias of always-on learning is eta / tau times this
    transient: float
    # ticks in which what is left of a phase's beginning falls e-fold; the only time that
    # deterministic dynamics show, for they do not fluctuate at equilibrium
    settling: float
    error: "Mixing | None" = None  # standard errors


def mixing(
    run: Run, params: Any, sign: float, *, ticks: int = 1024, lanes: int = 64, seed: int = 0
) -> Mixing:
    """Autocorrelation time, equilibrium and transient of the term of `sign`, from long phases.

    The second half of a phase counts as equilibrium. Deviations are taken from the mean of the
    replicas that share a stimulus, so a chain that stays where it began is measured as slow. The
    transient is summed over each phase minus one that goes on from its end, with the same random
    numbers: once the two have met, the difference is exactly 0.

    Args:
        run: any run with phases of sign +1 and -1.
        params: at which it is frozen.
        sign: of the phases.
        ticks: length of the phases, at least 16.
        lanes: different beginnings, at least 8; each has REPLICAS phases.
        seed: of the measurement.
    """
    if ticks < 16 or lanes < 8:
        raise ValueError(f"mixing needs at least 16 ticks and 8 lanes, not {ticks} and {lanes}.")
    at = jax.tree.map(
        lambda a: jnp.repeat(a, REPLICAS, 0), starts(run, params, sign, lanes=lanes, seed=seed)
    )
    keys = jax.random.split(jax.random.key(seed + 1), lanes * REPLICAS)
    d = sum(leaf.size for leaf in jax.tree.leaves(params))
    signs = jax.random.rademacher(jax.random.key(7), (d,), jnp.float32)
    g, settled = _watch(run.method, params, at, keys, jnp.float32(sign), signs, ticks)
    g = np.asarray(g).transpose(1, 0, 2).reshape(lanes, REPLICAS, ticks, -1)
    early, late = g[:, :, : ticks // 2], g[:, :, ticks // 2 :]
    own = late.mean((1, 2), dtype=float)  # (lanes, directions)
    covariance = np.stack(
        [
            np.mean([autocovariance(x - c) for x in some], axis=0)
            for some, c in zip(late, own, strict=True)
        ]
    )
    size = float((own**2).sum(1).mean())
    left = np.stack([remembered(x - c) for x, c in zip(early, own, strict=True)])
    longest = max(integrated(covariance.mean(0)), settling(left, size))
    # after ten of these times there is only noise
    beyond = jnp.int32(min(ticks, max(64, np.ceil(10 * longest))))
    gaps = np.asarray(
        _gaps(run.method, params, at, settled, keys, jnp.float32(sign), signs, beyond), float
    )
    return over_lanes(own, covariance, gaps.reshape(lanes, REPLICAS, -1).mean(1), left, size)


def over_lanes(
    own: np.ndarray, covariance: np.ndarray, gaps: np.ndarray, left: np.ndarray, size: float
) -> Mixing:
    """The lanes together, and standard errors from leaving groups of them out (jackknife)."""

    def summary(kept: np.ndarray) -> tuple[float, float, float, float]:
        memory = integrated(covariance[kept].mean(0))
        return square(own[kept]), memory, square(gaps[kept]), settling(left[kept], size)

    everyone = np.arange(len(own))
    groups = np.array_split(everyone, min(len(own), 16))
    left_out = np.array([summary(np.delete(everyone, group)) for group in groups])
    error = np.sqrt((len(left_out) - 1) * left_out.var(0))
    mean, memory, transient, settles = summary(everyone)
    e_mean, e_memory, e_transient, e_settles = map(float, error)
    return Mixing(
        root(mean),
        memory,
        root(transient),
        settles,
        Mixing(root_error(mean, e_mean), e_memory, root_error(transient, e_transient), e_settles),
    )


def project(signs: Array, g: Array) -> Array:
    """Few numbers with the length of g, on average over the signs; g itself where it has few."""
    if len(g) <= DIRECTIONS:
        return g
    return jnp.pad(signs * g, (0, -len(g) % DIRECTIONS)).reshape(-1, DIRECTIONS).sum(0)


@eqx.filter_jit
def _watch(
    method: Any, params: Any, at: Starts, keys: Key, sign: Array, signs: Array, ticks: int
) -> tuple[Array, Any]:
    """The gradient, (ticks, lanes, directions), and the states at the end."""

    def lane(key: Key, at: Starts) -> tuple[Any, Array]:
        def one(z: Any, t: Array) -> tuple[Any, Array]:
            z, g = step_and_term(method, jax.random.fold_in(key, t), params, z, at.x, sign)
            return z, project(signs, g)

        return jax.lax.scan(one, at.z, jnp.arange(ticks))

    settled, g = jax.vmap(lane, out_axes=(0, 1))(keys, at)
    return g, settled


@eqx.filter_jit
def _gaps(
    method: Any,
    params: Any,
    at: Starts,
    settled: Any,
    keys: Key,
    sign: Array,
    signs: Array,
    ticks: Array,
) -> Array:
    """(lanes, directions): the gradient of a young phase minus that of an old one, summed."""

    def lane(key: Key, at: Starts, settled: Any) -> Array:
        def both(t: Array, carry: tuple) -> tuple:
            def move(z: Any) -> tuple[Any, Array]:
                k_tick = jax.random.fold_in(key, -1 - t)
                return step_and_term(method, k_tick, params, z, at.x, sign)

            z, (young, old) = jax.vmap(move)(carry[0])
            return z, carry[1] + young - old

        pair = jax.tree.map(lambda a, b: jnp.stack([a, b]), at.z, settled)
        return project(signs, jax.lax.fori_loop(0, ticks, both, (pair, jnp.zeros_like(signs)))[1])

    return jax.vmap(lane)(keys, at, settled)


def square(v: np.ndarray) -> float:
    """|E v|^2 from independent rows v.

    Products of different rows only, so that noise adds nothing to it on average.
    """
    return float((v.sum(0) @ v.sum(0) - (v * v).sum()) / (len(v) * (len(v) - 1)))


def root(square: float) -> float:
    """A length, from an estimate of its square that noise can make negative."""
    return float(np.sqrt(max(square, 0.0)))


def root_error(square: float, error: float) -> float:
    """The error of that length; near zero, the length below which nothing is resolved."""
    return float(error / (2 * np.sqrt(max(square, error / 4)))) if error > 0 else 0.0


def autocovariance(x: np.ndarray) -> np.ndarray:
    """At every lag along the first axis, summed over the second; x has mean zero."""
    n = len(x)
    power = (np.abs(np.fft.rfft(x, 2 * n, axis=0)) ** 2).sum(1)
    covariance = np.fft.irfft(power)[:n] / np.arange(n, 0, -1)
    # nothing moves: deterministic dynamics at their fixed point
    still = covariance[0] <= 1e-12 * (1 + np.abs(x).max() ** 2)
    return np.zeros(n) if still else covariance


def remembered(x: np.ndarray) -> np.ndarray:
    """|E[x_t | how the phase began]|^2 at every tick t, from (replicas, ticks, directions).

    Products of different replicas only, so that noise adds nothing to it on average.
    """
    n, total = len(x), x.sum(0)
    return ((total * total).sum(1) - (x * x).sum((0, 2))) / (n * (n - 1))


def settling(left: np.ndarray, size: float) -> float:
    """The ticks in which deviations from equilibrium fall e-fold, from their squares at each
    (lane, tick).

    A deviation that falls as r^t has the squares r^(2t), and 1 + 2 sum_t r^(2t) is -1 / log r, but
    for times of about a tick. It is 1 where nothing is seen beside noise, or beside the rounding of
    terms whose squared length is `size`.
    """
    squares = left.mean(0)
    noise = 5 * squares[len(squares) // 2 :].std() + 1e-10 * size
    return integrated(squares) if squares[0] > noise else 1.0


def integrated(covariance: np.ndarray) -> float:
    """The autocorrelation time, 1 + 2 sum_k rho_k, from the covariance at each lag k.

    The sum stops at five times its own value (Sokal).
    """
    if covariance[0] == 0:
        return 1.0
    time = 2 * np.cumsum(covariance / covariance[0]) - 1
    stop = np.flatnonzero(np.arange(len(time)) >= 5 * time)
    return float(max(time[stop[0] if len(stop) else -1], 1.0))
