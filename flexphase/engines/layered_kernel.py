"""The way into the kernels of layered networks: the arrays of a run, and its state both ways."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import State
from ..estimators import LastTerm, RunningMean
from ..kernels import _native, owned, threads
from ..lanes import Lanes
from ..methods.equilibrium_propagation import hard_sigmoid
from .layered_state import (
    Arrays,
    aligned,
    by_replica,
    layers_from_arrays,
    layers_to_arrays,
    padded,
    states_from_arrays,
    states_to_arrays,
    terms,
    traces,
    with_traces,
)
from .layered_words import (
    ACTIVATIONS,
    CHANGE,
    MEAN,
    WAITING,
    curves,
    descent,
    feedback_of,
    memory_of,
    network,
    rows_of,
    steps_at_the_end,
    weighted,
)


class Kernel:
    """The kernels' view of a run: options, arrays that they only read, and the state both ways."""

    def __init__(self, lanes: Lanes):
        run = lanes.run
        self.method, self.replicas = network(run.method)
        self.sizes = self.method.sizes
        known = descent(run.optimiser.make, len(self.sizes) - 1)
        if known is None:
            raise ValueError("the optimiser is not one that the native engine knows.")
        self.momentum, self.memory = known.momentum, memory_of(run.estimator)
        at_once = self.memory == MEAN or steps_at_the_end(run.estimator)
        self.late = bool(self.momentum) or not at_once
        told = weighted(run.estimator)
        self.lanes = lanes if told is run.estimator else with_estimator(lanes, told)
        self.constant = self._constant(lanes, known.rates)

    def _constant(self, lanes: Lanes, rates: tuple[float, ...]) -> Arrays:
        count, layers = len(lanes.keys), len(self.sizes) - 1
        inputs, targets = (np.asarray(part) for part in rows_of(lanes.run.source).data)

        def per_lane(value: Any) -> np.ndarray:
            return owned(np.broadcast_to(np.asarray(value), (count,)))

        feedback = per_lane(feedback_of(self.method))
        baseline = {"rate": per_lane(lanes.run.estimator.rate)} if self.memory == MEAN else {}
        return (
            baseline
            | curves(self.method)
            | {
                "dt": per_lane(self.method.dt),
                "feedback": feedback,
                "gain": owned(feedback[:, None] ** np.arange(1 - layers, 1)),
                "eta": owned(
                    per_lane(lanes.run.optimiser.eta)[:, None] * np.asarray(rates, np.float32)
                ),
                "inputs": np.ascontiguousarray(inputs if inputs.ndim == 3 else inputs[None]),
                "targets": np.ascontiguousarray(targets if targets.ndim == 3 else targets[None]),
            }
        )

    def run(self, arrays: Arrays, ticks: int, threads: int, isa: str) -> None:
        """Advance the arrays."""
        reset = bool(self.method.reset)
        options = (self.sizes, ticks, self.memory, reset, self.momentum, threads, isa)
        _native.layered(arrays, *options)

    @property
    def late_names(self) -> list[str]:
        """Arrays of the first layer that are updated late (see native/layered_input.h)."""
        names = ["0.W", "0.c", "gathered", "steps"] if self.late else []
        return names + (["0.m_W", "0.m_c", "trace", "deferred"] if self.momentum else [])

    @property
    def kept_names(self) -> list[str]:
        """Arrays that are kept in State.noise, because a state has no other field for them."""
        waits = [f"{i}.s_kept" for i in range(len(self.sizes) - 1)] + ["x_kept", "kept", "known"]
        return self.late_names + (waits if self.memory == WAITING else [])

    def with_kept(self, state: State, arrays: Arrays) -> State:
        return state._replace(noise={name: jnp.array(arrays[name]) for name in self.kept_names})

    def to_arrays(self, state: State) -> Arrays:
        """The state as arrays that the kernels may write to."""
        lanes, n, (x, target) = len(state.key), self.replicas, state.x
        arrays = layers_to_arrays(state.params) | states_to_arrays(state.z, n) | self.constant
        arrays |= {
            "x": aligned(by_replica(x, n)),
            "target": padded(by_replica(target, n)),
            "left": owned(state.phase.left, np.int32),
            "updates": owned(state.updates, np.int32),
            "known": np.zeros(lanes, np.int32),
            "slot": np.zeros(lanes, np.int32),
            "gathered": np.zeros_like(arrays["0.s"]),
            "steps": np.zeros(lanes, np.int32),
        }
        if self.momentum:
            arrays |= layers_to_arrays(traces(state.opt), "m_")
            arrays["trace"] = np.zeros_like(arrays["0.s"])
            arrays["deferred"] = np.zeros((lanes, self.sizes[0]), np.int32)
        if self.memory == MEAN:
            arrays |= layers_to_arrays(state.memory.mean, "m_")
        if self.memory == CHANGE:
            arrays["known"] = owned(state.memory.known, np.int32)
        if self.memory == WAITING:
            layers = range(len(self.sizes) - 1)
            arrays |= {f"{i}.s_kept": np.zeros_like(arrays[f"{i}.s"]) for i in layers}
            arrays["x_kept"] = np.zeros_like(arrays["x"])
            arrays["kept"] = np.zeros((lanes, n), np.float32)
        if isinstance(state.noise, dict):
            return arrays | {name: aligned(part) for name, part in state.noise.items()}
        if self.memory == WAITING and any(np.any(g) for g in jax.tree.leaves(state.memory)):
            raise ValueError(
                "a term of the two-term rule waits in this state, which the native engine did not "
                "make; go on with engine='jax'."
            )
        return arrays

    def settled(self, arrays: Arrays, isa: str) -> Arrays:
        """The arrays with nothing left to be written to the first layer."""
        if not self.late:
            return arrays
        arrays = arrays | {name: arrays[name].copy() for name in self.late_names}
        _native.layered_settle(arrays, self.sizes, self.memory, self.momentum, isa)
        return arrays

    def params(self, arrays: Arrays, isa: str) -> Any:
        """The parameters after the ticks that the arrays have seen."""
        return layers_from_arrays(self.settled(arrays, isa), self.sizes)

    def to_state(self, state: State, arrays: Arrays, isa: str) -> State:
        """The state after the ticks that the arrays have seen."""
        state = self.with_kept(state, arrays)
        arrays = self.settled(arrays, isa)
        x = (arrays["x"], arrays["target"][..., : self.sizes[-1]])
        state = state._replace(
            params=layers_from_arrays(arrays, self.sizes),
            z=states_from_arrays(arrays, state.z),
            x=tuple(jnp.array(a.reshape(b.shape)) for a, b in zip(x, state.x, strict=True)),
            updates=arrays["updates"],
            memory=self.remembered(arrays),
        )
        if self.momentum:
            trace = layers_from_arrays(arrays, self.sizes, "m_")
            state = state._replace(opt=with_traces(state.opt, trace))
        return jax.tree.map(jnp.asarray, state)

    def remembered(self, arrays: Arrays) -> Any:
        """What the estimator remembers: nothing, the term that waits, that of the last tick, or
        their mean.
        """
        if self.memory == MEAN:
            return RunningMean(layers_from_arrays(arrays, self.sizes, "m_"))
        known = arrays["known"].astype(bool)
        if self.memory == WAITING:
            factor = arrays["kept"] * known[:, None]
            return terms(arrays, factor, arrays["x_kept"], "s_kept", self.sizes)
        if self.memory == CHANGE:
            scale = arrays["scale"][np.arange(len(known)), arrays["slot"]] / self.replicas
            term = terms(arrays, scale, arrays["x"], "s", self.sizes)
            return LastTerm(term, jnp.asarray(known))
        return ()


def with_estimator(lanes: Lanes, estimator: Any) -> Lanes:
    """The lanes with another estimator, which has no numbers to sweep."""
    run, axes = (part._replace(estimator=estimator) for part in (lanes.run, lanes.axes))
    return lanes._replace(run=run, axes=axes)


def outputs(
    layers: Any,
    inputs: Any,
    dt: Any,
    activation: Any = hard_sigmoid,
    steps: int = 100,
    asked: int | None = None,
    isa: str = "",
) -> np.ndarray:
    """The outputs of free networks after `steps` from rest: (lanes, rows, output units).

    Args:
        layers: (W, c) of each layer, with an axis for the lanes first.
        inputs: (rows, input units).
        dt: the step of the relaxation, one number or one for each lane.
        activation: one of ACTIVATIONS.
        steps: how many; fewer are made where all units have come to rest.
        asked: number of threads (default: all cores).
        isa: instruction set (default: the best that there is).
    """
    arrays = layers_to_arrays(layers)
    lanes, rows = len(arrays["0.W"]), len(inputs)
    sizes = (np.shape(layers[0][0])[1], *(np.shape(W)[2] for W, _ in layers))
    curve, clip = ACTIVATIONS[activation]
    arrays |= {
        "curve": np.full(len(layers), curve, np.int32),
        "clip": owned(np.broadcast_to(np.array(clip), (len(layers), 4))),
        "dt": owned(np.broadcast_to(np.asarray(dt), (lanes,))),
        "feedback": np.ones(lanes, np.float32),
        "inputs": np.ascontiguousarray(inputs, np.float32),
        "outputs": np.empty((lanes, rows, sizes[-1]), np.float32),
    }
    _native.layered_outputs(arrays, sizes, steps, threads(asked), isa)
    return arrays["outputs"]
