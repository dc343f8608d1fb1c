"""The compiled Forward-Forward engine: the same phases, stimuli and optimiser as `tick`, touching
only what is not silent.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..core import Optimiser, Phase, Run, State, declares, phase_keys, stimulus_key
from ..data.held import tick_keys
from ..data.sources import LabelContrast
from ..engine import NONE, Visits
from ..kernels import _native, owned, threads
from ..lanes import Lanes
from ..methods import forward_forward as method
from .jax import start
from .tapes import check_signs, not_on_tape, remembers, said, unheld

BLOCK = 2048  # ticks per block; after each, progress is reported and Ctrl-C is handled


class ForwardForwardEngine:
    """Forward-Forward on images with labels, phases of one tick, Adam or plain gradient descent."""

    name = "native"

    def __init__(self, asked: int | None = None):
        self.threads = threads(asked)

    def refuses(self, run: Run) -> str | None:
        """Why this engine cannot train the run; None if it can."""
        if type(run.method) is not method.ForwardForward:
            return f"the native Forward-Forward engine does not know {type(run.method).__name__}."
        source = unheld(run.source)
        if type(source) is not LabelContrast:
            return (
                "the native Forward-Forward engine takes its stimuli from LabelContrast, held or "
                f"not, not from {type(source).__name__}."
            )
        if remembers(run.estimator) and declares(run.process, "rests"):
            return (
                "the native Forward-Forward engine cannot remember a term through a phase without "
                "plasticity."
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
        self,
        lanes: Lanes,
        state: State,
        ticks: int,
        report: Callable[[int], None],
        visits: Visits = NONE,
    ) -> State:
        return advance(lanes, state, ticks, report, self.threads, visits=visits)


def next_row(source: Any, s: State, key: Any, phase: Phase, n: Any, row: Any) -> tuple[Any, Any]:
    """Row and label of phase n, a pass of one tick, given the row before."""
    if not declares(source, "clocked"):
        return source.next_row(key, phase.sign, row)
    t = s.ticks + n - s.phases
    k_tick, k_new = tick_keys(stimulus_key(s.key), t)
    return source.source.row(k_new, phase.sign, row, ~source.due(k_tick, phase, n, t))


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
            row, label = next_row(run.source, s, at[0][1], phase, at[1], row)
            return (process, row), (phase, process, row, label)

        phase, process, row, label = jax.lax.scan(follow, (s.process, s.x.row), (keys, n))[1]
        weight, apply = jax.vmap(said, (None, 0))(run.estimator, phase)
        return Passes(phase, process, weight, apply, row, label)

    return lanes.vmap(one, state)


@eqx.filter_jit
def moved(lanes: Lanes, state: State, last: Passes, ticks: int) -> State:
    """Phases, stimulus and clocks after `ticks` passes, of which `last` was the last."""
    x = lanes.vmap(
        lambda run, row, label: unheld(run.source).show(row, label), last.row, last.label
    )
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
    visits: Visits = NONE,
) -> State:
    """Advance all lanes, block by block."""
    run, adam = lanes.run, lanes.run.optimiser.make is optax.adam
    images = np.asarray(unheld(run.source).images)
    arrays = to_arrays(state, adam) | {"images": images if images.ndim == 3 else images[None]}
    for name, value in {"eta": run.optimiser.eta, "theta": run.method.threshold}.items():
        arrays[name] = owned(np.broadcast_to(np.asarray(value), state.phases.shape))
    done = 0
    while done < ticks:
        n = min(BLOCK, ticks - done)
        passes = first_of(next_passes(lanes, state), n)
        check_passes(passes, remembers(run.estimator))
        tape = kernel_tape(passes)
        waits = remembers(run.estimator) and int(state.phases[0]) % 2
        if waits:
            tape = after_last(state, tape)
        cuts = [*(t - done for t in visits.at if done < t < done + n), n]
        for cut, part in zip(cuts, parts_of(tape, cuts, waits, run.estimator), strict=True):
            _native.forward_forward(
                arrays | part, len(state.params), run.method.classes, adam, threads, isa
            )
            visits.pay(done + cut, layers_in(arrays, len(state.params)))
        done += n
        state = moved(lanes, state, jax.tree.map(lambda part: part[:, -1], passes), n)
        state = state._replace(updates=state.updates + passes.apply.sum(1, dtype=np.int32))
        report(n)
    state = to_state(state, arrays, adam)
    return state._replace(memory=remembered(lanes, state)) if remembers(run.estimator) else state


def first_of(passes: Passes, n: int) -> Passes:
    """The first n passes of every lane, as NumPy arrays."""
    return jax.tree.map(lambda part: np.asarray(part)[:, :n], passes)


def check_passes(passes: Passes, remembers: bool) -> None:
    """Signs that the kernel knows, and no pause between two terms that belong together."""
    check_signs(passes.phase.sign)
    if remembers and (passes.phase.sign == 0).any():
        raise ValueError(
            "the native Forward-Forward engine cannot remember a term through a phase without "
            "plasticity; let the process declare rests = True, or use engine='jax'."
        )


def kernel_tape(passes: Passes) -> dict[str, np.ndarray]:
    """By the names that the kernel knows."""
    tape = {"sign": passes.phase.sign, "weight": passes.weight, "apply": passes.apply}
    tape |= {"row": passes.row, "label": passes.label}
    return {name: np.ascontiguousarray(part) for name, part in tape.items()}


def parts_of(
    tape: dict[str, np.ndarray], cuts: list[int], waits: int, estimator: Any
) -> Iterator[dict[str, np.ndarray]]:
    """The tape between cuts, counted in passes; `waits` passes stand in front of it.

    A positive pass whose term is remembered across a cut is run again, as in `after_last`.
    """
    end = 0
    for cut in cuts:
        again = remembers(estimator) and end > 0 and tape["sign"][0, end - 1] > 0
        begin, end = end - int(again), cut + waits
        yield {name: np.ascontiguousarray(told[:, begin:end]) for name, told in tape.items()}


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


def layers_in(arrays: Mapping[str, Any], layers: int, before: str = "") -> Any:
    """The arrays of that name in the form of the parameters."""
    names = method.Layer._fields
    return tuple(
        method.Layer(*(arrays[f"{i}.{before}{name}"] for name in names)) for i in range(layers)
    )


def to_state(state: State, arrays: dict[str, np.ndarray], adam: bool) -> State:
    """The state from what the kernel has written."""
    n = len(state.z)
    read = {name: jnp.asarray(part) for name, part in arrays.items() if name != "images"}
    opt = state.opt
    if adam:
        mu, nu = layers_in(read, n, "mu_"), layers_in(read, n, "nu_")
        opt = (opt[0]._replace(count=read["count"], mu=mu, nu=nu), *opt[1:])
    h = tuple(read[f"{i}.h"] for i in range(n))
    return state._replace(params=layers_in(read, n), z=h, opt=opt)
