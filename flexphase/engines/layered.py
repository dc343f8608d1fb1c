"""The compiled engine for layered networks with symmetric weights: equilibrium propagation and
contrastive Hebbian learning.

The same phases, stimuli, states and parameters as `tick`, to the rounding of single precision. The
kernels are told everything about a phase by the tape: how strongly the outputs are nudged, how the
local term is scaled and weighted, and whether the optimiser steps.
"""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ..core import Optimiser, Phase, Run, State, declares, stimulus_key
from ..data.held import Held
from ..data.sources import Rows
from ..engine import NONE, Visits, next_piece
from ..estimators import (
    Baseline,
    Differential,
    LastTerm,
    PhaseChange,
    RunningMean,
    TwoTerm,
    Weighted,
    weigh_isd,
)
from ..kernels import _native, owned, threads
from ..lanes import Lanes
from ..methods.contrastive_hebbian import ContrastiveHebbian
from ..methods.equilibrium_propagation import EquilibriumPropagation, hard_sigmoid
from ..optimisers import LayerRates
from ..replicas import Batches, Replicas
from .jax import start
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
from .tapes import Tape, keys, not_on_tape, settled, slots, tape_of, unheld

INFINITY = float("inf")
#: How the kernels know an activation: a curve, and clip(offset + slope x, low, high) for curve 0.
ACTIVATIONS: dict[Any, tuple[int, tuple[float, float, float, float]]] = {
    hard_sigmoid: (0, (0.5, 0.25, 0, 1)),
    jax.nn.hard_sigmoid: (0, (0.5, 1 / 6, 0, 1)),
    jax.nn.hard_tanh: (0, (0, 1, -1, 1)),
    jax.nn.relu: (0, (0, 1, 0, INFINITY)),
    jax.nn.relu6: (0, (0, 1, 0, 6)),
    jax.nn.sigmoid: (1, (0, 0, 0, 0)),
    jax.nn.tanh: (2, (0, 0, 0, 0)),
    jnp.tanh: (2, (0, 0, 0, 0)),
}
LINEAR = (0, (0.0, 1.0, -INFINITY, INFINITY))
NOTHING, WAITING, CHANGE, MEAN = range(4)  # what is remembered; enum Memory in native/layered.h


class Descent(NamedTuple):
    """Gradient descent: the rate of each layer, in units of eta, and the momentum."""

    rates: tuple[float, ...]
    momentum: float


def descent(make: Any, layers: int) -> Descent | None:
    """The optimiser, if the kernels know it: optax.sgd, with a momentum, or LayerRates."""
    if make is optax.sgd:
        return Descent((1.0,) * layers, 0.0)
    if isinstance(make, LayerRates) and len(make.rates) == layers:
        rates, momentum = make.rates, make.momentum
    elif isinstance(make, functools.partial) and make.func is optax.sgd and not make.args:
        rates, momentum = (1.0,) * layers, make.keywords.get("momentum")
        if set(make.keywords) != {"momentum"}:
            return None
    else:
        return None
    if momentum is None:
        return Descent(rates, 0.0)
    return Descent(rates, float(momentum)) if 0 < momentum < 1 else None


def network(method: Any) -> tuple[Any, int]:
    """The method itself, and how many replicas there are of its state."""
    return (method.method, method.n) if type(method) is Replicas else (method, 1)


class PhaseWords(NamedTuple):
    """What a method does in a phase of some sign, in the words of the kernels."""

    nudge: Array  # of the outputs towards the target
    scale: Array  # of the local term s_{l-1} s_l
    clamp: Array  # are the outputs held at the target?


def words(method: Any, sign: Array) -> PhaseWords:
    """The method in phases of these signs."""
    if type(method) is ContrastiveHebbian:
        return PhaseWords(jnp.zeros_like(sign), jnp.full_like(sign, -1), sign > 0)
    nudge = method.beta * (sign if method.centred else jnp.maximum(sign, 0))
    scale = jnp.full_like(sign, -1 / (method.beta * (2 if method.centred else 1)))
    return PhaseWords(nudge, scale, jnp.zeros_like(sign, bool))


def curves(method: Any) -> Arrays:
    """The activation of each layer."""
    known = [ACTIVATIONS[method.activation]] * (len(method.sizes) - 1)
    if type(method) is ContrastiveHebbian and method.linear_output:
        known[-1] = LINEAR
    return {
        "curve": np.array([curve for curve, _ in known], np.int32),
        "clip": np.array([clip for _, clip in known], np.float32),
    }


def feedback_of(method: Any) -> Any:
    """The strength of the way down."""
    return method.feedback if type(method) is ContrastiveHebbian else 1.0


def rows_of(source: Any) -> Any:
    """The rows from which a source draws; anything else if it is not known."""
    source = unheld(source)
    return source.source if type(source) is Batches else source


def memory_of(estimator: Any) -> int:
    """What it remembers."""
    kinds = {TwoTerm: WAITING, PhaseChange: WAITING, Differential: CHANGE, Baseline: MEAN}
    return kinds.get(type(estimator), NOTHING)


def weigh_change(phase: Phase) -> tuple[Array, Array]:
    """What `Differential` makes of a change of the term."""
    return phase.sign / phase.prob, phase.sign != 0


def weighted(estimator: Any) -> Any:
    """The estimator that says what a term weighs, on the tape."""
    if type(estimator) is Differential:
        return Weighted(weigh_change)
    return estimator.estimator if type(estimator) is Baseline else estimator


def steps_at_the_end(estimator: Any) -> bool:
    """Does the optimiser step at the last tick of a phase only?"""
    return memory_of(estimator) == WAITING or estimator == Weighted(weigh_isd)


class LayeredEngine:
    """Equilibrium propagation and layered contrastive Hebbian learning, also with replicas, by
    gradient descent with or without momentum.

    Args:
        asked: number of threads (default: all cores); each takes lanes of its own.
        isa: instruction set (default: the best that there is); all give the same bits.
    """

    name = "native"

    def __init__(self, asked: int | None = None, isa: str = ""):
        self.threads, self.isa = threads(asked), isa

    def refuses(self, run: Run) -> str | None:
        """Why this engine cannot train the run; None if it can."""
        method, _ = network(run.method)
        if type(method) not in (EquilibriumPropagation, ContrastiveHebbian):
            return (
                "the native engine of layered networks knows EquilibriumPropagation and "
                f"ContrastiveHebbian, not {type(method).__name__}."
            )
        if declares(run.process, "graded"):
            return "the native engine of layered networks takes signs of +1, -1 and 0 only."
        if len(method.sizes) > 17:
            return "the native engine of layered networks takes 16 layers at most."
        if method.activation not in ACTIVATIONS:
            return (
                "the native engine of layered networks knows the activations hard_sigmoid, "
                "jax.nn.sigmoid, jnp.tanh, jax.nn.relu, relu6, hard_tanh and hard_sigmoid."
            )
        if type(rows_of(run.source)) is not Rows:
            return (
                "the native engine of layered networks takes its stimuli from Rows, Batches(Rows) "
                f"or Held of these, not {type(run.source).__name__}."
            )
        if type(run.source) is Held and run.source.clock != "phases":
            return (
                "the native engine of layered networks holds stimuli for a number of phases, "
                "Held(source, phases=2), not of ticks."
            )
        if type(run.optimiser) is not Optimiser:
            return "the native engine of layered networks knows no devices."
        known = descent(run.optimiser.make, len(method.sizes) - 1)
        if known is None:
            return (
                "the native engine of layered networks knows optax.sgd, "
                "functools.partial(optax.sgd, momentum=...) and LayerRates, with a momentum "
                "between 0 and 1."
            )
        if memory_of(run.estimator) in (WAITING, CHANGE):
            return None
        if memory_of(run.estimator) == MEAN and known.momentum:
            return "the native engine of layered networks knows Baseline without momentum only."
        return not_on_tape(weighted(run.estimator))

    def start(self, lanes: Lanes, params: Any = None) -> State:
        state, kernel = start(lanes, params), Kernel(lanes)
        return kernel.with_kept(state, kernel.to_arrays(state))

    def advance(
        self,
        lanes: Lanes,
        state: State,
        ticks: int,
        report: Callable[[int], None],
        visits: Visits = NONE,
    ) -> State:
        """In pieces of about a third of a second."""
        kernel = Kernel(lanes)
        arrays = kernel.to_arrays(state)
        block = slots(ticks, lanes.run.process.mean_length)
        done, piece = 0, 64
        while done < ticks:
            at = (state.key, state.phases, state.phase, state.process)
            tape, told = draw(kernel.lanes, at, state.ticks, block)
            told = {name: np.asarray(part) for name, part in told.items()}
            arrays |= {"slot": np.zeros_like(arrays["slot"])} | told
            begun, end = done, min(done + reach(tape, arrays["left"]), ticks)
            while done < end:
                began, n = time.perf_counter(), min(piece, end - done, visits.ahead(done, ticks))
                kernel.run(arrays, n, self.threads, self.isa)
                piece = next_piece(piece, n, began)
                done += n
                if done in visits.at:
                    visits.see(kernel.params(arrays, self.isa))
                report(n)
            state = settled(state, tape, arrays["slot"], arrays["left"], done - begun)
        return kernel.to_state(state, arrays, self.isa) if ticks else state


def reach(tape: Tape, left: np.ndarray) -> int:
    """Ticks that the tape lasts in every lane, with that many left of the present phase."""
    return int((np.asarray(tape.phase.ticks)[:, 1:].sum(1, dtype=np.int64) + left).min())


@eqx.filter_jit
def draw(
    lanes: Lanes, at: tuple[Any, Any, Phase, Any], ticks: Array, slots: int
) -> tuple[Tape, dict[str, Any]]:
    """The next phases of every lane, and what the kernels are told about them."""
    tape = tape_of(lanes, at, slots, 1, 0)

    def one(run: Any, key: Array, start: Array, phase: Phase, begin: Array) -> dict[str, Array]:
        method, replicas = network(run.method)
        n = start + jnp.arange(slots - 1, dtype=jnp.int32)
        later = jax.tree.map(lambda part: part[1:], phase)
        t = begin + jnp.cumsum(later.ticks) - later.ticks  # with which each phase begins
        row = jax.vmap(functools.partial(next_rows, run.source, replicas, key))(later, n, t)
        said = words(method, phase.sign)
        return {
            "row": jnp.concatenate([jnp.full((1, replicas), -1), row]),
            "nudge": jnp.broadcast_to(said.nudge[:, None], (slots, replicas)),
            "scale": jnp.broadcast_to(said.scale[:, None], (slots, replicas)),
            "clamp": said.clamp,
        }

    begin = ticks + at[2].left
    return tape, tape.for_kernel() | lanes.vmap(one, at[0], tape.start, tape.phase, begin)


def next_rows(source: Any, replicas: int, key: Array, phase: Phase, n: Array, t: Array) -> Array:
    """The rows that a source shows in phase n, which begins with tick t: one for each replica, -1
    where it keeps the last.

    The source itself is asked, with the numbers of the rows in the place of the data.
    """
    rows = len(jax.tree.leaves(rows_of(source).data)[0])
    numbers = jnp.arange(rows, dtype=jnp.int32)[:, None]
    numbered = eqx.tree_at(lambda s: rows_of(s).data, source, numbers)
    before = jnp.full((replicas, 1) if type(unheld(source)) is Batches else (1,), -1, jnp.int32)
    if type(source) is Held:
        return numbered.at(stimulus_key(key), phase, n, t, before).reshape(replicas)
    return numbered(keys(key, n)[1], phase.sign, before).reshape(replicas)


def with_estimator(lanes: Lanes, estimator: Any) -> Lanes:
    """The lanes with another estimator, which has no numbers to sweep."""
    run, axes = (part._replace(estimator=estimator) for part in (lanes.run, lanes.axes))
    return lanes._replace(run=run, axes=axes)


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
        """What of the first layer is written late (see native/layered_input.h)."""
        names = ["0.W", "0.c", "gathered", "steps"] if self.late else []
        return names + (["0.m_W", "0.m_c", "trace", "deferred"] if self.momentum else [])

    @property
    def kept_names(self) -> list[str]:
        """State.noise: what a state has no other place for."""
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
