"""What a tick leaves behind for the next one, from the shapes of the state."""

from typing import Any, NamedTuple

import jax

from ..core import Run, State
from ..hardware.on_device import OnDevice
from .operations import reads_of

ALWAYS = float("inf")


class Store(NamedTuple):
    """Numbers that have to be kept from one tick to the next."""

    what: str
    per: str  # synapse, neuron or chip
    words: float  # numbers for each of them
    held: float  # the longest stretch for which it was needed, in ticks; inf: always


def stores(run: Run, state: State, longest: float) -> list[Store]:
    """Everything that is stored.

    Args:
        run: the experiment.
        state: its state, or the shapes of it.
        longest: ticks in a row for which the memory of the estimator was seen in use.
    """
    optimiser, units = run.optimiser, neurons(run, state)
    on_device = isinstance(optimiser, OnDevice)
    parts = {
        f"memory of {type(run.estimator).__name__}": (state.memory, longest),
        "state of the optimiser": (state.opt[0] if on_device else state.opt, ALWAYS),
        "state of the process": (state.process, ALWAYS),
    }
    found = [Store("weight", "synapse", 1, ALWAYS), Store("activity", "neuron", 1, ALWAYS)]
    if (more := size(state.z) - units) > 0:
        found.append(Store("second state (chain)", "neuron", more / units, ALWAYS))
    if isinstance(optimiser, OnDevice) and (late := optimiser.device.delay):
        found.append(Store("changes on their way", "synapse", late, late))
    for what, (tree, held) in parts.items():
        words = per_synapse_and_chip(tree, state.params)
        found += [Store(what, per, n, held) for per, n in words.items() if n]
    return found


def size(tree: Any) -> int:
    """How many numbers it holds."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def neurons(run: Run, state: State) -> int:
    """Numbers of the state on which the local term depends; all of it if none is seen."""
    used = reads_of(run.method.grad, state.params, state.z, state.x, state.phase.sign)[1]
    return sum(leaf.size for leaf in used) or size(state.z)


def per_synapse_and_chip(tree: Any, params: Any) -> dict[str, float]:
    """Arrays with the shape of parameters are there for each synapse, others once."""
    shapes = {leaf.shape for leaf in jax.tree.leaves(params)}
    leaves = jax.tree.leaves(tree)
    like = sum(leaf.size for leaf in leaves if leaf.shape in shapes)
    return {"synapse": like / size(params), "chip": float(size(leaves) - like)}
