"""The compiled engine for layered networks with symmetric weights: equilibrium propagation and
contrastive Hebbian learning.

The same phases, stimuli, states and parameters as `tick`, to the rounding of single precision. The
kernels are told everything about a phase by the tape: how strongly the outputs are nudged, how the
local term is scaled and weighted, and whether the optimiser steps.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..core import Optimiser, Phase, Run, State, declares, stimulus_key
from ..data.held import Held
from ..data.sources import Rows
from ..engine import NONE, Visits, next_piece
from ..kernels import threads
from ..lanes import Lanes
from ..methods.contrastive_hebbian import ContrastiveHebbian
from ..methods.equilibrium_propagation import EquilibriumPropagation
from ..replicas import Batches
from .jax import start
from .layered_kernel import Kernel
from .layered_words import (
    ACTIVATIONS,
    CHANGE,
    MEAN,
    WAITING,
    descent,
    memory_of,
    network,
    rows_of,
    weighted,
    words,
)
from .tapes import Tape, check_signs, keys, not_on_tape, settled, slots, tape_of, unheld

ENGINE = "the native engine of layered networks"  # the subject of what it refuses


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
                f"{ENGINE} knows EquilibriumPropagation and ContrastiveHebbian, not "
                f"{type(method).__name__}."
            )
        if declares(run.process, "graded"):
            return f"{ENGINE} takes signs of +1, -1 and 0 only."
        if len(method.sizes) > 17:
            return f"{ENGINE} takes 16 layers at most."
        if method.activation not in ACTIVATIONS:
            return (
                f"{ENGINE} knows the activations hard_sigmoid, jax.nn.sigmoid, jnp.tanh, "
                "jax.nn.relu, relu6, hard_tanh and hard_sigmoid."
            )
        if type(rows_of(run.source)) is not Rows:
            return (
                f"{ENGINE} takes its stimuli from Rows, Batches(Rows) or Held of these, not "
                f"{type(run.source).__name__}."
            )
        if type(run.source) is Held and run.source.clock != "phases":
            return (
                f"{ENGINE} holds stimuli for a number of phases, Held(source, phases=2), not of "
                "ticks."
            )
        if type(run.optimiser) is not Optimiser:
            return f"{ENGINE} knows no devices."
        known = descent(run.optimiser.make, len(method.sizes) - 1)
        if known is None:
            return (
                f"{ENGINE} knows optax.sgd, functools.partial(optax.sgd, momentum=...) and "
                "LayerRates, with a momentum between 0 and 1."
            )
        if memory_of(run.estimator) in (WAITING, CHANGE):
            return None
        if memory_of(run.estimator) == MEAN and known.momentum:
            return f"{ENGINE} knows Baseline without momentum only."
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
            check_signs(tape.phase.sign)
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
