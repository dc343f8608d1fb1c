"""Measured moments: what A, C, the means and the cross term are at a checkpoint of any method."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import count
from ..contract import complete
from ..core import Key, Run, State, where
from .frozen import Tick, begin, check_params, frozen_tick
from .variance import Moments, checked


class Sums(NamedTuple):
    """Running sums of one lane; index 0 is the positive phase, 1 the negative one.

    JAX arrays while they run, NumPy's afterwards.
    """

    term: Any  # (d,) what the present phase has contributed so far
    before: Any  # (d,) what the phase before has contributed: eq. 1 pairs it with this one ...
    follows: Any  # ... if it was a positive one
    first: Any  # (2, d) sum of g
    second: Any  # (2,) sum of |g|^2
    phases: Any  # (2,)
    cross: Any  # sum of g+ . g- over the pairs
    pairs: Any


def moments(run: Run, params: Any, *, phases: int = 400, lanes: int = 32, seed: int = 0) -> Moments:
    """Moments of what one phase contributes, before its importance weight, at frozen `params`.

    For the two-term rule and ISD that is g at the end of the phase, for always-on learning its
    average over the phase. The run's own phases are used; a negative phase that follows a positive
    one is paired with it, as eq. 1 would. Standard errors are over lanes, which are independent
    whatever the correlation inside a chain.

    Args:
        run: any run with phases of sign +1 and -1 and a weighted estimator.
        params: at which it is frozen.
        phases: of each chain, after a tenth of that to settle; at least 4.
        lanes: independent chains, at least 4.
        seed: of the chains.

    Returns: A = E|g+|^2, C = E|g-|^2, plus = |mu+|^2, minus = |mu-|^2, means = mu+ . mu- and
    cross = E[g+ . g-] of paired phases, where mu+ and mu- are the means of g+ and g-; `se` has
    their standard errors.
    """
    sums = lane_sums(run, params, phases=phases, lanes=lanes, seed=seed)
    return from_lanes(sums.first, sums.second, sums.phases, sums.cross, sums.pairs)


def lane_sums(run: Run, params: Any, *, phases: int, lanes: int, seed: int) -> Sums:
    """The sums of every lane, in float64 with the lanes along the first axis."""
    complete(run)
    check_params(run, params)
    if count(lanes, "lanes") < 4 or count(phases, "phases") < 4:
        raise ValueError(
            f"moments with an error need at least 4 lanes of 4 phases, not {lanes} of {phases}."
        )
    tau = float(run.process.mean_length)
    keys = jax.random.split(jax.random.key(seed), lanes)
    settle = 2 * max(1, round(0.05 * phases)) * tau  # whole pairs of phases
    return jax.tree.map(
        lambda a: np.asarray(a, float),
        _sums(run, params, keys, jnp.int32(round(settle)), jnp.int32(round(phases * tau))),
    )


@eqx.filter_jit
def _sums(run: Run, params: Any, keys: Key, settle: Array, ticks: Array) -> Sums:
    d = sum(leaf.size for leaf in jax.tree.leaves(params))
    zero = Sums(
        term=jnp.zeros(d),
        before=jnp.zeros(d),
        follows=jnp.bool_(False),
        first=jnp.zeros((2, d)),
        second=jnp.zeros(2),
        phases=jnp.zeros(2),
        cross=jnp.zeros(()),
        pairs=jnp.zeros(()),
    )

    def one(t: Array, carry: tuple[State, Sums]) -> tuple[State, Sums]:
        s, tick = frozen_tick(run, carry[0])
        fresh = zero._replace(term=carry[1].term, before=carry[1].before, follows=carry[1].follows)
        # one loop for both parts, not two: half the code to compile
        return s, add(where(t == settle, fresh, carry[1]), tick)

    def lane(key: Key) -> Sums:
        return jax.lax.fori_loop(0, settle + ticks, one, (begin(run, params, key), zero))[1]

    return jax.vmap(lane)(keys)


def add(sums: Sums, tick: Tick) -> Sums:
    """The sums with one tick more. A phase is added at its last tick, unless its sign is 0."""
    sign, last = tick.phase.sign, tick.phase.last & (tick.phase.sign != 0)
    term = sums.term + tick.share * tick.g
    which = jnp.where(sign > 0, jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])) * last
    paired = last & (sign < 0) & sums.follows
    return Sums(
        term=jnp.where(last, 0, term),
        before=jnp.where(last, term, sums.before),
        follows=jnp.where(last, sign > 0, sums.follows),
        first=sums.first + jnp.outer(which, term),
        second=sums.second + which * (term @ term),
        phases=sums.phases + which,
        cross=sums.cross + paired * (sums.before @ term),
        pairs=sums.pairs + paired,
    )


def from_lanes(
    first: np.ndarray, second: np.ndarray, phases: np.ndarray, cross: np.ndarray, pairs: np.ndarray
) -> Moments:
    """Pool the lanes' sums; leave each lane out once for the errors.

    Squares of means come from products of different lanes only, so noise in a mean does not add to
    its square.
    """
    if np.any(phases.sum(0) < 2) or pairs.sum() < 2:
        raise ValueError(
            "too few phases of one sign were seen to measure its moments; "
            "take more phases, or b nearer to 0.5."
        )
    # all lanes, then all but one
    keep = np.concatenate([np.ones((1, len(pairs))), 1 - np.eye(len(pairs))])

    def apart(i: int, j: int) -> np.ndarray:
        sums, counts = first[:, i] @ first[:, j].T, np.outer(phases[:, i], phases[:, j])
        np.fill_diagonal(sums, 0)
        np.fill_diagonal(counts, 0)
        return ((keep @ sums) * keep).sum(1) / ((keep @ counts) * keep).sum(1)

    square = (keep @ second) / (keep @ phases)
    each = (
        square[:, 0],
        square[:, 1],
        apart(0, 0),
        apart(1, 1),
        apart(0, 1),
        (keep @ cross) / (keep @ pairs),
    )
    whole, left_out = zip(*((float(m[0]), m[1:]) for m in each), strict=True)
    return checked(Moments(*whole)._replace(replicas=Moments(*left_out)))
