"""Lanes over several devices: each gets an equal part of them.

Lanes never meet, so that a device needs nothing from the others; data that all lanes share is
copied to each. With one device, or a number of lanes that cannot be divided, nothing is moved.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..lanes import Lanes


def mesh_of(lanes: Lanes) -> Mesh | None:
    """The devices among which the lanes can be divided evenly; None if that is only one."""
    devices, n = jax.devices(), len(lanes.keys)
    parts = max(d for d in range(1, len(devices) + 1) if n % d == 0)
    return Mesh(np.array(devices[:parts]), ("lanes",)) if parts > 1 else None


def spread(lanes: Lanes, tree: Any) -> Any:
    """A tree of arrays with a leading lane axis, each part on its device."""
    mesh = mesh_of(lanes)
    return (
        tree if mesh is None else jax.device_put(tree, NamedSharding(mesh, PartitionSpec("lanes")))
    )


def spread_run(lanes: Lanes) -> Lanes:
    """Numbers and keys of the lanes on their devices, what they share on all of them."""
    mesh = mesh_of(lanes)
    if mesh is None:
        return lanes
    dynamic, static = eqx.partition(lanes.run, eqx.is_array)
    leaves, treedef = jax.tree.flatten(dynamic)
    everywhere = NamedSharding(mesh, PartitionSpec())
    placed = [
        jax.device_put(leaf, everywhere) if axis is None else spread(lanes, leaf)
        for leaf, axis in zip(leaves, treedef.flatten_up_to(lanes.axes), strict=True)
    ]
    run = eqx.combine(jax.tree.unflatten(treedef, placed), static)
    return lanes._replace(run=run, keys=spread(lanes, lanes.keys))
