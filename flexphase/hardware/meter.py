"""An observer that counts, in a real run, what is written and how long something is held."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..core import State


class Metered(NamedTuple):
    """What `Meter` carries along."""

    before: Any  # parameters and stores at the tick before
    writes: Any  # per parameter: ticks at which it changed
    store_writes: Array  # numbers in the stores that changed
    stretch: Array  # ticks in a row after which the estimator holds something, until now
    longest: Array
    crossings: Array  # ends of phases at which it holds something


def stores(state: State) -> list[Array]:
    """Numbers that estimator and optimiser keep; random keys are none."""
    leaves = jax.tree.leaves((state.memory, state.opt))
    return [leaf for leaf in leaves if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]


def holds(memory: Any) -> Array:
    """Is there anything but zeros?"""
    full = [jnp.any(leaf != 0) for leaf in jax.tree.leaves(memory)]
    return jnp.any(jnp.stack(full)) if full else jnp.bool_(False)


class Meter(eqx.Module):
    """Counts the writes of every parameter, those to stores, and how long the estimator remembers.

    Returns, in `record.observed(name)`: `writes` (per parameter), `store_writes`, `longest` (ticks
    in a row with something in the estimator's memory) and `crossings` (ends of phases that the
    memory outlives).

    Example: `train(run, ticks=1000, observers={"meter": Meter()})`.
    """

    def init(self, state: State) -> Metered:
        zero = jnp.int32(0)
        writes = jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.int32), state.params)
        return Metered((state.params, stores(state)), writes, zero, zero, zero, zero)

    def see(self, carry: Metered, state: State) -> Metered:
        params, kept = carry.before
        pairs = zip(stores(state), kept, strict=True)
        remembers = holds(state.memory)
        stretch = remembers * (carry.stretch + 1)
        return Metered(
            before=(state.params, stores(state)),
            writes=jax.tree.map(lambda n, a, b: n + (a != b), carry.writes, params, state.params),
            store_writes=sum((jnp.sum(a != b) for a, b in pairs), carry.store_writes),
            stretch=stretch,
            longest=jnp.maximum(carry.longest, stretch),
            crossings=carry.crossings + (remembers & state.during.last),
        )

    def result(self, carry: Metered) -> dict[str, Array]:
        writes = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(carry.writes)])
        counts = {name: getattr(carry, name) for name in ("store_writes", "longest", "crossings")}
        return {"writes": writes} | counts
