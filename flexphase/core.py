"""One flat loop for every two-term contrastive learner.

A learner follows g = g_plus(theta, z+) - g_minus(theta, z-) (eq. 1). What differs between
contrastive divergence, ISD, always-on learning and random phase lengths is only *which phase a tick
belongs to* and *how its local term is weighted*: both are data here, so `tick` is eq. 5 read top to
bottom and a phase is a countdown on a tick, not an inner loop.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from .checks import learning_rate
from .lanes import Grid, Lanes, lanes
from .log import Log, budget
from .record import Record

Key = Array
PyTree = Any


class Phase(NamedTuple):
    """What the phase process says: the weights of the estimators are made from nothing else."""

    sign: Array  # +1 or -1
    prob: Array  # P(a phase has this sign)
    length: Array  # tau, the mean length of phases of this sign
    ticks: Array  # how long this one lasts
    left: Array  # ticks still to go, the present one included

    @property
    def first(self) -> Array:
        return self.left == self.ticks

    @property
    def last(self) -> Array:
        return self.left == 1


class Process(Protocol):
    """Eq. 5, line 1: which phase comes next? Phase number n, drawn when it begins."""

    @property
    def alternates(self) -> bool: ...  # strictly +, -, +, -: what the two-term estimator needs
    @property
    def mean_length(self) -> Any: ...  # mean ticks per phase
    def init(self, key: Key) -> PyTree: ...  # -> state
    def step(self, key: Key, n: Array, state: PyTree) -> tuple[Phase, PyTree]: ...


class Method(Protocol):
    """Eq. 5, line 3, and the two terms of eq. 1."""

    def check(
        self, x: PyTree
    ) -> None: ...  # ValueError where such stimuli, stacked along a first axis, do not fit
    def init(self, key: Key) -> tuple[PyTree, PyTree]: ...  # -> params, z
    def enter(
        self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array
    ) -> PyTree: ...  # z where a phase begins
    def step(
        self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array
    ) -> PyTree: ...  # z' ~ p(z' | theta, z, x, sign)
    def grad(
        self, params: PyTree, z: PyTree, x: PyTree, sign: Array
    ) -> PyTree: ...  # g_plus or g_minus, shaped like params


class Source(Protocol):
    """Eq. 5, line 2: the stimulus of the phase that begins, given the one before."""

    @property
    def stimuli(
        self,
    ) -> PyTree: ...  # what it shows, or examples of that, stacked along a first axis
    def init(self, key: Key) -> PyTree: ...
    def __call__(self, key: Key, sign: Array, x: PyTree) -> PyTree: ...


class Estimator(eqx.Module):
    """Eq. 5, line 4: the weight of the local term, and whether the optimiser steps now."""

    weigh: Callable[[Phase], tuple[Array, Array]] = eqx.field(static=True)
    local: bool = eqx.field(static=True)  # temporally local: nothing is remembered beyond a tick

    def __call__(self, phase: Phase) -> tuple[Array, Array]:
        return self.weigh(phase)


class Optimiser(eqx.Module):
    """An optax optimiser whose learning rate is a leaf, so that eta can be swept like everything
    else.
    """

    eta: Array = eqx.field(converter=learning_rate)
    make: Callable[[Any], optax.GradientTransformation] = eqx.field(static=True, default=optax.sgd)


class Run(NamedTuple):
    """An experiment is a value of five orthogonal parts."""

    method: Any
    process: Any
    estimator: Estimator
    source: Any
    optimiser: Optimiser


class State(NamedTuple):
    """All that a run is made of at a tick boundary; the key and the clocks fix every later random
    number.
    """

    params: PyTree
    z: PyTree
    x: PyTree
    phase: Phase
    process: PyTree
    acc: PyTree  # empty (zero) at every tick boundary for temporally local rules
    opt: PyTree
    key: Key
    ticks: Array  # the three clocks: network time steps, finished phases, parameter updates
    phases: Array
    updates: Array
    noise: PyTree = ()  # what a compiled engine keeps of its own generators


def phase_keys(key: Key, n: Array) -> Array:
    """Keys of phase n for (process, source, enter): counted down from -1, so that they never meet
    the keys of ticks.
    """
    return jax.random.split(jax.random.fold_in(key, -1 - n), 3)


def where(mask: Array, new: PyTree, old: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), new, old)


def init(run: Run, key: Key) -> State:
    """A lane before its first tick."""
    key, k_method, k_source, k_process = jax.random.split(key, 4)
    params, z = run.method.init(k_method)
    one, zero = jnp.float32(1), jnp.int32(0)
    return State(
        params=params,
        z=z,
        x=run.source.init(k_source),
        phase=Phase(
            sign=-one, prob=one, length=one, ticks=zero, left=zero
        ),  # nothing is left of it: tick draws the first
        process=run.process.init(k_process),
        acc=jax.tree.map(jnp.zeros_like, params),
        opt=run.optimiser.make(run.optimiser.eta).init(params),
        key=key,
        ticks=zero,
        phases=zero,
        updates=zero,
    )


def tick(run: Run, s: State) -> State:
    """Eq. 5, top to bottom. The update uses the freshly sampled z."""
    k_process, k_source, k_enter = phase_keys(s.key, s.phases)
    over = s.phase.left == 0
    phase, process = where(
        over, run.process.step(k_process, s.phases, s.process), (s.phase, s.process)
    )
    x = where(over, run.source(k_source, phase.sign, s.x), s.x)
    z = where(over, run.method.enter(k_enter, s.params, s.z, x, phase.sign), s.z)

    z = run.method.step(jax.random.fold_in(s.key, s.ticks), s.params, z, x, phase.sign)

    weight, apply = run.estimator(phase)
    acc = jax.tree.map(
        lambda a, g: a + weight * g, s.acc, run.method.grad(s.params, z, x, phase.sign)
    )
    updates, opt = run.optimiser.make(run.optimiser.eta).update(acc, s.opt, s.params)
    params, opt = where(apply, (optax.apply_updates(s.params, updates), opt), (s.params, s.opt))
    acc = where(apply, jax.tree.map(jnp.zeros_like, acc), acc)
    return State(
        params,
        z,
        x,
        phase._replace(left=phase.left - 1),
        process,
        acc,
        opt,
        s.key,
        s.ticks + 1,
        s.phases + phase.last,
        s.updates + apply,
        s.noise,
    )


class Engine(Protocol):
    """Moves all lanes on by some ticks; `report` is told of ticks done, and may raise to stop."""

    @property
    def name(self) -> str: ...
    def start(self, lanes: Lanes) -> State: ...  # every lane before its first tick
    def advance(
        self, lanes: Lanes, state: State, ticks: int, report: Callable[[int], None]
    ) -> State: ...


def check(run: Run) -> None:
    """Refuse parts that do not fit each other."""
    run.method.check(run.source.stimuli)
    if not (run.estimator.local or run.process.alternates):
        raise ValueError(
            "the two-term estimator (eq. 1) waits for a negative phase after each positive one, so "
            "it needs Alternating phases; "
            "with randomly selected phases use isd or always_on."
        )


def train(
    run: Run | Grid,
    *,
    engine: Engine,
    ticks: int | None = None,
    phases: int | None = None,
    seeds: int = 1,
    seed: int = 0,
    metrics: Mapping[str, Any] | None = None,
    records: int = 50,
    progress: Callable[[int, int, dict[str, float]], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Record:
    """Train every lane and record the metrics, on all three clocks, at `records` evenly spaced
    moments after the start.

    `phases` is short for `ticks` = phases x mean phase length. A metric is a function of one lane's
    parameters. With `checkpoint` the state is kept in that file at every record, and a run that was
    stopped goes on from it, to the same bits.
    """
    for r in run.runs if isinstance(run, Grid) else [run]:
        check(r)
    every = lanes(run, seeds, seed)
    total = budget(every.run.process.mean_length, ticks, phases)
    log = Log.open(
        every, engine.start(every), total, records, metrics or {}, engine.name, checkpoint
    )

    def report(n: int) -> None:
        log.done += n
        if progress:
            progress(log.done, total, log.latest())

    try:
        while (ahead := log.next_mark()) is not None:
            with log.timing("seconds"):
                state = engine.advance(every, log.state, ahead, report)
            log.add(state)
        log.finish()
    except KeyboardInterrupt:
        log.interrupted = True
    return log.record()
