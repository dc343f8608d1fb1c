"""An observer that counts, in a real run, what is written and how long something is held."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..core import State
from ..observers import holds


class Metered(NamedTuple):
    """What `Meter` carries along."""

    before: Any  # parameters and stores at the tick before
    writes: Any  # per parameter: ticks at which it changed
    store_writes: Any  # per number in a store, in the same way
    stretch: Array  # ticks in a row after which the estimator holds something, until now
    longest: Array
    crossings: Array  # ends of phases at which it holds something


def kept(state: State) -> list[Array]:
    """Numbers that estimator and optimiser keep; random keys are none."""
    leaves = jax.tree.leaves((state.memory, state.opt))
    return [leaf for leaf in leaves if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]


def zeros(tree: Any) -> Any:
    """A count for every number."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.int32), tree)


def changed(counts: Any, before: Any, now: Any) -> Any:
    """One more where a number is not what it was."""
    return jax.tree.map(lambda n, a, b: n + (a != b), counts, before, now)


def flat(counts: Any) -> Array:
    """All of them in a row. Their sum may need more than 32 bits."""
    none = jnp.zeros(0, jnp.int32)
    return jnp.concatenate([none, *(leaf.ravel() for leaf in jax.tree.leaves(counts))])


class Meter(eqx.Module):
    """Counts the writes of every parameter, those to stores, and how long the estimator remembers.

    Returns, in `record.observed(name)`: `writes` (per parameter), `store_writes` (per number that
    estimator and optimiser keep), `longest` (ticks in a row with something in the estimator's
    memory) and `crossings` (ends of phases that the memory outlives).

    Example: `train(run, ticks=1000, observers={"meter": Meter()})`.
    """

    def init(self, state: State) -> Metered:
        zero, stores = jnp.int32(0), kept(state)
        before = (state.params, stores)
        return Metered(before, zeros(state.params), zeros(stores), zero, zero, zero)

    def see(self, carry: Metered, state: State) -> Metered:
        params, stores = carry.before
        now, held = kept(state), holds(state.memory)
        stretch = held * (carry.stretch + 1)
        return Metered(
            before=(state.params, now),
            writes=changed(carry.writes, params, state.params),
            store_writes=changed(carry.store_writes, stores, now),
            stretch=stretch,
            longest=jnp.maximum(carry.longest, stretch),
            crossings=carry.crossings + (held & state.during.last),
        )

    def result(self, carry: Metered) -> dict[str, Array]:
        return {
            "writes": flat(carry.writes),
            "store_writes": flat(carry.store_writes),
            "longest": carry.longest,
            "crossings": carry.crossings,
        }
