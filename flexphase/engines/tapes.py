"""Phase tapes: the coming phases of all lanes, drawn ahead in blocks with the same keys that `tick`
would use.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..core import Phase, State, phase_keys
from ..data.held import Held
from ..data.sources import random_row
from ..estimators import TwoTerm, Weighted
from ..lanes import Lanes

SLOTS = 4096  # phases per lane in a block of tape, at most


class Tape(NamedTuple):
    """Phases of every lane, (lanes, slots); slot 0 is the phase that the lane is in, the next one
    has number `start`.
    """

    start: Array  # (lanes,)
    phase: Phase
    process: Any  # state of the process in that slot
    row: Array  # the stimulus; -1 keeps the one that is there
    weight: Array  # (lanes, slots, 3): at the first tick of a phase, between, at its last
    apply: Array
    enter: Any  # (lanes, slots, noise) uniform numbers, or ()

    def for_kernel(self) -> dict[str, Array]:
        """By the names and types that the kernels want."""
        named = {
            "ticks": self.phase.ticks,
            "sign": self.phase.sign.astype(jnp.int8),
            "row": self.row,
            "weight": self.weight,
            "apply": self.apply,
        }
        return named | ({} if isinstance(self.enter, tuple) else {"enter": self.enter})


def unheld(source: Any) -> Any:
    """What is held, where the source has a clock of its own; else the source itself."""
    return source.source if type(source) is Held else source


def keys(key: Array, n: Array) -> tuple[Array, Array, Array]:
    """`phase_keys`, one by one. JAX's default split gives fold_in(key, i) as its i-th key, and that
    compiles to faster code.
    """
    if not jax.config.jax_threefry_partitionable:  # type: ignore[attr-defined]
        return tuple(phase_keys(key, n))
    phase = jax.random.fold_in(key, -1 - n)
    return jax.random.fold_in(phase, 0), jax.random.fold_in(phase, 1), jax.random.fold_in(phase, 2)


def remembers(estimator: Any) -> bool:
    """Does it keep a sum between ticks?"""
    return isinstance(estimator, TwoTerm)


class Left:
    """`Phase.left` for a rule that is tried: it can be compared with 1 and with `ticks`, by ==, as
    `Phase.last` and `Phase.first` do. Anything else that is done with it is an error.
    """

    def __init__(self, ticks: Array):
        self.ticks = ticks

    def __eq__(self, other: Any) -> Any:
        if other is self.ticks or (type(other) is int and other == 1):
            return self.ticks == 1  # any traced boolean: nothing is computed
        raise TypeError("which tick of the phase it is was asked for.")


def steady(rule: Weighted) -> bool:
    """Does it say the same at all ticks of a phase but the first and the last, whatever the phase?

    It does if it does not ask for more, which tracing it once shows. Trying it on numbers would
    not: a rule may change at any tick, of phases of any length.
    """

    def weigh(sign: Array, prob: Array, length: Array, ticks: Array) -> tuple[Array, Array]:
        left: Any = Left(ticks)
        return rule.weigh(Phase(sign, prob, length, ticks, left))

    number, whole = jax.ShapeDtypeStruct((), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    try:
        jax.eval_shape(weigh, number, number, number, whole)
    except Exception:  # of many kinds: what a rule does with `left` is up to JAX, NumPy or Python
        return False
    return True


def not_on_tape(estimator: Any) -> str | None:
    """Why this estimator cannot be written on a tape; None if it can."""
    if type(estimator) is TwoTerm:
        return None
    if type(estimator) is not Weighted:
        return (
            f"the estimator {type(estimator).__name__} has an update or a memory of its own, and "
            "the native engines know Weighted and two_term only."
        )
    if not steady(estimator):
        return (
            "the native engines need an estimator whose weight is the same at all ticks of a "
            "phase but the first and the last: a rule that asks for phase.first and phase.last, "
            "and not for phase.left."
        )
    return None


def said(estimator: Any, phase: Phase) -> tuple[Array, Array]:
    """The weight of the term at this tick, and whether the optimiser steps.

    A term that is neither used now nor remembered weighs nothing.
    """
    weight, apply = estimator.weigh(phase)
    weight = weight if remembers(estimator) else jnp.where(apply, weight, 0)
    return jnp.float32(weight), jnp.bool_(apply)


def weigh(estimator: Any, phase: Phase) -> tuple[Array, Array]:
    """What the estimator says at the first tick of a phase, between, and at the last, which may be
    the first.
    """
    left = jnp.stack([phase.ticks, jnp.maximum(phase.ticks - 1, 1), jnp.ones_like(phase.ticks)])
    return jax.vmap(lambda n: said(estimator, phase._replace(left=n)))(left)


@eqx.filter_jit
def tape_of(
    lanes: Lanes, at: tuple[Any, Any, Phase, Any], slots: int, rows: int, noise: int
) -> Tape:
    """The present phase and the next `slots` - 1 of every lane, with `noise` uniform numbers for
    the start of each.

    `at` is where the lanes are: their key, phases, phase and process of State.
    """

    def one(run: Any, key: Array, number: Array, phase: Phase, process: Any) -> Tape:
        start = number + (phase.left > 0)
        n = start + jnp.arange(slots - 1, dtype=jnp.int32)
        k_process, k_source, k_enter = jax.vmap(keys, (None, 0))(key, n)
        if jax.tree.leaves(process):

            def next_phase(state: Any, at: tuple[Array, Array]) -> tuple[Any, tuple[Phase, Any]]:
                new, state = run.process.step(*at, state)
                return state, (new, state)

            phases, processes = jax.lax.scan(next_phase, process, (k_process, n))[1]
        else:  # no memory between phases: all at once
            phases, processes = jax.vmap(run.process.step, (0, 0, None))(k_process, n, process)
        row = jnp.where(phases.sign > 0, jax.vmap(random_row, (0, None))(k_source, rows), -1)
        enter = jax.vmap(lambda k: jax.random.uniform(k, (noise,)))(k_enter) if noise else ()

        def before(first: Any, rest: Array) -> Array:
            return jnp.concatenate([jnp.asarray(first, rest.dtype)[None], rest])

        phases = jax.tree.map(before, phase, phases)
        weight, apply = jax.vmap(weigh, (None, 0))(run.estimator, phases)
        return Tape(
            start,
            phases,
            jax.tree.map(before, process, processes),
            before(jnp.int32(-1), row),
            weight,
            apply,
            jax.tree.map(lambda e: before(jnp.zeros(noise), e), enter),
        )

    return lanes.vmap(one, *at)


def slots(ticks: int, mean_length: Any) -> int:
    """Phases to draw ahead: enough, as a rule, for these ticks; in steps of an eighth of an octave,
    so that few sizes are compiled.
    """
    need = ticks / float(np.min(np.asarray(mean_length))) + 2
    need = min(max(need + 4 * need**0.5, 64), SLOTS)
    step = 2 ** max(int(np.log2(need)) - 3, 0)
    return int(-(-need // step) * step) + 1


def settled(state: State, tape: Tape, slot: np.ndarray, left: np.ndarray, ticks: int) -> State:
    """Where the lanes are in their phases after so many ticks."""
    lane = np.arange(len(slot))
    phase, process = jax.tree.map(
        lambda part: np.asarray(part)[lane, slot], (tape.phase, tape.process)
    )
    phases = np.asarray(tape.start) + slot - (left > 0)
    return state._replace(
        phase=phase._replace(left=left.copy()),
        process=process,
        phases=phases.astype(np.int32),
        ticks=state.ticks + ticks,
    )


def check_signs(sign: Any) -> None:
    """The kernels know signs of +1, -1 and 0."""
    if not np.isin(np.asarray(sign), (-1, 0, 1)).all():
        raise ValueError(
            "the process drew a sign that is not +1, -1 or 0; a process with graded phases "
            "declares graded = True."
        )
