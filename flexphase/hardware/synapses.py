"""What differs from synapse to synapse, and weights that two units share."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ..core import Key, PyTree
from ..methods.boltzmann import Couplings


class Synapses(NamedTuple):
    """State of a device; () where it needs none."""

    key: Any = ()
    spread: Any = ()  # factor of every change, per synapse
    broken: Any = ()  # True for synapses that cannot change
    value: Any = ()  # and where those are
    queue: Any = ()  # changes on their way, (delay, ...)


def fail(broken: Array, value: Array, change: Array, w: Array, idle: Array, new: Array) -> Array:
    """The weights after a write, with broken synapses at their value from their first change on.
    A parameter that the method never changes is `idle`, what it would be without a write.
    """
    return jnp.where(broken, jnp.where((change != 0) | (w == value), value, idle), new)


def keys_like(key: Key, params: PyTree) -> PyTree:
    """A key for each leaf."""
    leaves, treedef = jax.tree.flatten(params)
    return jax.tree.unflatten(treedef, list(jax.random.split(key, len(leaves))))


def normal(key: Key, params: PyTree) -> PyTree:
    """N(0, 1), with the shapes of the parameters."""
    return jax.tree.map(lambda k, p: jax.random.normal(k, p.shape), keys_like(key, params), params)


def uniform(key: Key, params: PyTree) -> PyTree:
    """Uniform in [0, 1), with the shapes of the parameters."""
    return jax.tree.map(lambda k, p: jax.random.uniform(k, p.shape), keys_like(key, params), params)


def tied(params: PyTree) -> PyTree:
    """Copies the upper triangle of W to the lower: a pair of units has one weight, written twice.
    Parameters of other kinds stay as they are.
    """
    if not isinstance(params, Couplings):
        return params
    upper = jnp.triu(params.W, 1)
    return params._replace(W=upper | upper.T if upper.dtype == bool else upper + upper.T)
