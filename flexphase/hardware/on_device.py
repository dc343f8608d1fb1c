"""An optimiser whose changes are written to devices."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..core import Key, Optimiser, PyTree
from ..optimisers import stopped_at_0
from .device import Device
from .synapses import Synapses


class OnDevice(eqx.Module):
    """An optimiser whose changes are written to devices; for every method. What `conductances`
    stops at 0 stays there, whatever the device would write.

    Args:
        optimiser: computes the changes.
        device: writes them. `Device()` gives the bits of the optimiser alone.

    Example: `Run(method, *aol(0.5, 100), source, OnDevice(Optimiser(0.01), Device.like("rram")))`.
    """

    optimiser: Optimiser
    device: Device

    @property
    def eta(self) -> Array:
        return self.optimiser.eta

    @property
    def make(self) -> Any:
        return self.optimiser.make

    def init(self, key: Key, params: PyTree) -> tuple[PyTree, Synapses]:
        own = jax.random.fold_in(key, 1)
        return self.optimiser.init(key, params), self.device.init(own, params)

    def update(self, step: PyTree, opt: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        change, inner = self.make(self.eta).update(step, opt[0], params)
        params, synapses = self.device.write(change, opt[1], params)
        return stopped_at_0(self.make, params), (inner, synapses)

    def hold(self, opt: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        params, synapses = self.device.hold(opt[1], params)
        return stopped_at_0(self.make, params), (opt[0], synapses)


def transformation(device: Device, seed: int = 0) -> optax.GradientTransformation:
    """The device as an optax transformation, for loops of your own.

    `optax.chain(optax.sgd(0.01), transformation(device))`. Leak and delay count updates there, and
    weights are on their levels up to the rounding of w + (w' - w); `OnDevice` has neither limit.
    """

    def init(params: PyTree) -> Synapses:
        return device.init(jax.random.key(seed), params)

    def update(change: PyTree, state: Synapses, params: PyTree = None) -> tuple[PyTree, Synapses]:
        if params is None:
            raise ValueError("a device needs the parameters: update(updates, state, params).")
        new, state = device.write(change, state, params)
        return jax.tree.map(jnp.subtract, new, params), state

    return optax.GradientTransformation(init, update)  # type: ignore[arg-type]
