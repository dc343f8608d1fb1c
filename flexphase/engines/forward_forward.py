"""The compiled Forward-Forward engine: the same phases, stimuli and optimiser as `tick`, touching
only what is not silent.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..core import Optimiser, Phase, Run, State, phase_keys
from ..data.sources import LabelContrast
from ..kernels import _native, owned, threads
from ..lanes import Lanes
from ..methods import forward_forward as method
from .jax import start
from .tapes import not_on_tape, remembers

BLOCK = 2048  # ticks between two looks at the keyboard


class ForwardForwardEngine:
    """Forward-Forward on images with labels, phases of one tick, Adam or plain gradient descent."""

    name = "native"

    def __init__(self, asked: int | None = None):
        self.threads = threads(asked)

    def refuses(self, run: Run) -> str | None:
        """Why this engine cannot train the run; None if it can."""
        if type(run.method) is not method.ForwardForward:
            return f"the native Forward-Forward engine does not know {type(run.method).__name__}."
        if type(run.source) is not LabelContrast:
            return (
                "the native Forward-Forward engine takes its stimuli from LabelContrast, not "
                f"{type(run.source).__name__}."
            )
        if np.any(np.asarray(run.process.mean_length) != 1):
            return (
                "the native Forward-Forward engine needs phases of one tick, such as Phases(..., "
                "Fixed(1)), because a tick is a whole pass."
            )
        if type(run.optimiser) is not Optimiser:
            return "the native Forward-Forward engine knows no devices."
        if run.optimiser.make not in (optax.adam, optax.sgd):
            return "the native Forward-Forward engine knows optax.adam and optax.sgd."
        return not_on_tape(run.estimator)

    def start(self, lanes: Lanes, params: Any = None) -> State:
        return start(lanes, params)

    def advance(
        self, lanes: Lanes, state: State, ticks: int, report: Callable[[int], None]
    ) -> State:
        return advance(lanes, state, ticks, report, self.threads)


class Passes(NamedTuple):
    """The next BLOCK phases of every lane, a pass each: (lanes, BLOCK)."""

    phase: Phase
    process: Any  # state of the process after each
    weight: Any
    apply: Any
    row: Any
    label: Any


@eqx.filter_jit
def next_passes(lanes: Lanes, state: State) -> Passes:
    """What every lane will be shown, from the very keys that `tick` would use."""

    def one(run: Any, s: State) -> Passes:
        n = s.phases + jnp.arange(BLOCK, dtype=jnp.int32)
        keys = jax.vmap(lambda i: phase_keys(s.key, i))(n)

        def follow(carry: tuple[Any, Any], at: tuple[Any, Any]) -> tuple[Any, Any]:
            process, row = carry
            phase, process = run.process.step(at[0][0], at[1], process)
            row, label = run.source.next_row(at[0][1], phase.sign, row)
            return (process, row), (phase, process, row, label)

        phase, process, row, label = jax.lax.scan(follow, (s.process, s.x.row), (keys, n))[1]
        weight, apply = jax.vmap(run.estimator.weigh)(phase)
        return Passes(phase, process, weight, apply, row, label)

    return lanes.vmap(one, state)


@eqx.filter_jit
def moved(lanes: Lanes, state: State, last: Passes, ticks: int) -> State:
    """Phases, stimulus and clocks after `ticks` passes, of which `last` was the last."""
    x = lanes.vmap(lambda run, row, label: run.source.show(row, label), last.row, last.label)
    return state._replace(
        x=x,
        phase=last.phase._replace(left=jnp.zeros_like(last.phase.left)),
        process=last.process,
        ticks=state.ticks + ticks,
        phases=state.phases + ticks,
    )


@eqx.filter_jit
def remembered(lanes: Lanes, state: State) -> Any:
    """What the two-term rule remembers between a positive and a negative phase: g_plus."""

    def one(run: Any, s: State) -> Any:
        waits = s.phase.sign > 0
        return jax.tree.map(lambda g: waits * g, run.method.grad(s.params, s.z, s.x, s.phase.sign))

    return lanes.vmap(one, state)


def advance(
    lanes: Lanes,
    state: State,
    ticks: int,
    report: Callable[[int], None],
    threads: int,
    isa: str = "",
) -> State:
    """Advance all lanes, block by block."""
    run, adam = lanes.run, lanes.run.optimiser.make is optax.adam
    images = np.asarray(run.source.images)
    arrays = to_arrays(state, adam) | {"images": images if images.ndim == 3 else images[None]}
    for name, value in {"eta": run.optimiser.eta, "theta": run.method.threshold}.items():
        arrays[name] = owned(np.broadcast_to(np.asarray(value), state.phases.shape))
    while ticks > 0:
        n = min(BLOCK, ticks)
        passes = first_of(next_passes(lanes, state), n)
        tape = kernel_tape(passes)
        if remembers(run.estimator) and int(state.phases[0]) % 2:
            tape = after_last(state, tape)
        _native.forward_forward(
            arrays | tape, len(state.params), run.method.classes, adam, threads, isa
        )
        state = moved(lanes, state, jax.tree.map(lambda part: part[:, -1], passes), n)
        state = state._replace(updates=state.updates + passes.apply.sum(1, dtype=np.int32))
        ticks -= n
        report(n)
    state = to_state(state, arrays, adam)
    return state._replace(memory=remembered(lanes, state)) if remembers(run.estimator) else state


def first_of(passes: Passes, n: int) -> Passes:
    """The first n passes of every lane, as NumPy arrays."""
    return jax.tree.map(lambda part: np.asarray(part)[:, :n], passes)


def kernel_tape(passes: Passes) -> dict[str, np.ndarray]:
    """By the names that the kernel knows."""
    tape = {"sign": passes.phase.sign, "weight": passes.weight, "apply": passes.apply}
    tape |= {"row": passes.row, "label": passes.label}
    return {name: np.ascontiguousarray(part) for name, part in tape.items()}


def after_last(state: State, tape: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tape with the positive pass in front whose term is remembered.

    It is run again: no parameter has moved since.
    """
    sign = np.asarray(state.phase.sign)
    last = {"sign": sign, "weight": sign, "apply": np.zeros(len(sign), bool)}
    last |= {"row": state.x.row, "label": state.x.label.argmax(-1)}
    front = {name: np.asarray(last[name], part.dtype)[:, None] for name, part in tape.items()}
    return {name: np.concatenate([front[name], part], axis=1) for name, part in tape.items()}


def by_name(tree: Any, before: str = "") -> dict[str, Any]:
    """The parameters of all layers by the names that the kernel knows."""
    return {
        f"{i}.{before}{name}": part
        for i, layer in enumerate(tree)
        for name, part in layer._asdict().items()
    }


def to_arrays(state: State, adam: bool) -> dict[str, np.ndarray]:
    """The state as arrays that the kernel may write to."""
    arrays = by_name(state.params) | {f"{i}.h": h for i, h in enumerate(state.z)}
    if adam:
        arrays |= by_name(state.opt[0].mu, "mu_") | by_name(state.opt[0].nu, "nu_")
    count = owned(state.opt[0].count if adam else np.zeros(len(state.phases)), np.int32)
    return {name: owned(part) for name, part in arrays.items()} | {"count": count}


def to_state(state: State, arrays: dict[str, np.ndarray], adam: bool) -> State:
    layers = range(len(state.z))

    def tree(before: str = "") -> Any:
        return tuple(
            method.Layer(
                *(jnp.asarray(arrays[f"{i}.{before}{name}"]) for name in method.Layer._fields)
            )
            for i in layers
        )

    opt = state.opt
    if adam:
        opt = (
            opt[0]._replace(count=jnp.asarray(arrays["count"]), mu=tree("mu_"), nu=tree("nu_")),
            *opt[1:],
        )
    return state._replace(
        params=tree(), z=tuple(jnp.asarray(arrays[f"{i}.h"]) for i in layers), opt=opt
    )
