"""The compiled Forward-Forward engine: the same phases, stimuli and optimiser as `tick`, touching
only what is not silent.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..core import Phase, State, phase_keys
from ..data.sources import LabelContrast
from ..estimators import always_on, isd, two_term
from ..lanes import Lanes
from ..methods import forward_forward as method
from ..phases import Fixed, Phases
from .jax import start
from .native import _native, cores, owned  # type: ignore[attr-defined]

BLOCK = 2048  # ticks between two looks at the keyboard


class ForwardForward:
    """Forward-Forward on images with labels, phases of one tick, Adam or plain gradient descent."""

    name = "native"

    def __init__(self, threads: int | None = None):
        self.threads = cores(threads)

    def refuses(self, run: Any) -> str | None:
        if type(run.method) is not method.ForwardForward:
            return f"the native Forward-Forward engine does not know {type(run.method).__name__}."
        if type(run.source) is not LabelContrast:
            return (
                "the native Forward-Forward engine takes its stimuli from LabelContrast, not "
                f"{type(run.source).__name__}."
            )
        lengths = (
            (run.process.positive, run.process.negative) if type(run.process) is Phases else ()
        )
        if not lengths or any(
            type(part) is not Fixed or np.any(np.asarray(part.T) != 1) for part in lengths
        ):
            return (
                "the native Forward-Forward engine needs phases of one tick, Phases(..., "
                "Fixed(1)), for a tick is a whole pass."
            )
        if all(run.estimator.weigh is not known.weigh for known in (two_term, isd, always_on)):
            return (
                "the native Forward-Forward engine knows the estimators two_term, isd and "
                "always_on."
            )
        if run.optimiser.make not in (optax.adam, optax.sgd):
            return "the native Forward-Forward engine knows optax.adam and optax.sgd."
        return None

    def start(self, lanes: Lanes) -> State:
        return start(lanes)

    def advance(
        self, lanes: Lanes, state: State, ticks: int, report: Callable[[int], None]
    ) -> State:
        return advance(lanes, state, ticks, report, self.threads)


@eqx.filter_jit
def draw(lanes: Lanes, state: State) -> tuple[Phase, Any, Any, Any, Any]:
    """The next BLOCK phases of every lane: phase, weight, apply, row and shown label, from the very
    keys that `tick` would use.
    """

    def one(run: Any, s: State) -> Any:
        n = s.phases + jnp.arange(BLOCK, dtype=jnp.int32)
        keys = jax.vmap(lambda i: phase_keys(s.key, i))(n)
        phase = jax.vmap(lambda k, i: run.process.step(k, i, s.process)[0])(keys[:, 0], n)
        weight, apply = jax.vmap(run.estimator)(phase)

        def follow(row: Any, given: Any) -> Any:
            return (drawn := run.source.draw(given[0], given[1], row))[0], drawn

        rows, labels = jax.lax.scan(follow, s.x.row, (keys[:, 1], phase.sign))[1]
        return phase, weight, apply, rows, labels

    return lanes.vmap(one, state)


@eqx.filter_jit
def move(
    lanes: Lanes, state: State, phase: Phase, row: Any, label: Any, ticks: int, updates: Any
) -> State:
    """The clocks and the stimulus after `ticks` phases of one tick, of which `phase` was the last."""
    x = lanes.vmap(lambda run, row, label: run.source.show(row, label), row, label)
    phase = phase._replace(left=jnp.zeros_like(phase.left))
    return state._replace(
        x=x,
        phase=phase,
        ticks=state.ticks + ticks,
        phases=state.phases + ticks,
        updates=state.updates + updates,
    )


@eqx.filter_jit
def remembered(lanes: Lanes, state: State) -> Any:
    """What `acc` holds: nothing, or between a positive and a negative phase of the two-term rule
    the term that waits.
    """

    def one(run: Any, s: State) -> Any:
        waits = (s.phase.sign > 0) & (not run.estimator.local)
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
    """Move all lanes on, block by block."""
    run, adam = lanes.run, lanes.run.optimiser.make is optax.adam
    images = np.asarray(run.source.images)
    arrays = unpack(state, adam) | {"images": images if images.ndim == 3 else images[None]}
    for name, value in {"eta": run.optimiser.eta, "theta": run.method.threshold}.items():
        arrays[name] = owned(np.broadcast_to(np.asarray(value), state.phases.shape))
    while ticks > 0:
        drawn = draw(lanes, state)
        n = min(BLOCK, ticks)
        phase, weight, apply, row, label = jax.tree.map(lambda part: np.asarray(part)[:, :n], drawn)  # noqa: B023
        tape = {"row": row, "label": label, "sign": phase.sign, "weight": weight, "apply": apply}
        if (
            not run.estimator.local and int(state.phases[0]) % 2
        ):  # a positive pass waits: it is run again, for no parameter has moved since
            last = {
                "row": state.x.row,
                "label": state.x.label.argmax(-1),
                "sign": state.phase.sign,
                "weight": state.phase.sign,
            }
            last["apply"] = np.zeros(len(row), bool)
            tape = {
                name: np.concatenate([np.asarray(last[name], part.dtype)[:, None], part], axis=1)
                for name, part in tape.items()
            }
        given = {name: np.ascontiguousarray(part) for name, part in tape.items()}
        _native.forward_forward(
            arrays | given, len(state.params), run.method.classes, adam, threads, isa
        )
        final = jax.tree.map(lambda part: part[:, -1], phase)
        state = move(lanes, state, final, row[:, -1], label[:, -1], n, apply.sum(1, dtype=np.int32))
        ticks -= n
        report(n)
    state = pack(state, arrays, adam)
    return state._replace(acc=remembered(lanes, state))


def named(tree: Any, before: str = "") -> dict[str, Any]:
    """The parameters of all layers by the names that the kernel knows."""
    return {
        f"{i}.{before}{name}": part
        for i, layer in enumerate(tree)
        for name, part in layer._asdict().items()
    }


def unpack(state: State, adam: bool) -> dict[str, np.ndarray]:
    """The state as arrays that the kernel may write to."""
    arrays = named(state.params) | {f"{i}.h": h for i, h in enumerate(state.z)}
    if adam:
        arrays |= named(state.opt[0].mu, "mu_") | named(state.opt[0].nu, "nu_")
    count = owned(state.opt[0].count if adam else np.zeros(len(state.phases)), np.int32)
    return {name: owned(part) for name, part in arrays.items()} | {"count": count}


def pack(state: State, arrays: dict[str, np.ndarray], adam: bool) -> State:
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


def label_scores(
    params: Any, images: Any, classes: int, threads: int | None = None, isa: str = ""
) -> np.ndarray:
    """methods.forward_forward.label_scores for all lanes at once: (lanes, rows, classes)."""
    arrays = {name: np.ascontiguousarray(part, np.float32) for name, part in named(params).items()}
    arrays["images"] = np.ascontiguousarray(images, np.float32)
    arrays["scores"] = np.empty((len(arrays["0.W"]), len(images), classes), np.float32)
    _native.forward_forward_scores(arrays, len(params), classes, cores(threads), isa)
    return arrays["scores"]
