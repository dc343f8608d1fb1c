"""One flat loop for every two-term contrastive learner.

A learner follows g = g_plus(theta, z+) - g_minus(theta, z-) (eq. 1). What differs between
contrastive divergence, ISD, always-on learning and random phase lengths is only *which phase a
tick belongs to* and *what the estimator makes of its local term*: both are data here, so `tick`
is eq. 5 read top to bottom and a phase is a countdown on a tick, not an inner loop.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from . import shown
from .checks import learning_rate

Key = Array
PyTree = Any


class Phase(NamedTuple):
    """What the process says about the present phase; estimators see nothing else of it.

    Args:
        sign: +1 or -1; 0 is a phase without plasticity; an amplitude where phases are graded.
        prob: share of this sign among the phases that have one, in the long run.
        length: tau, the mean ticks of phases of this sign.
        ticks: how long this phase lasts.
        left: ticks still to go, the present one included.
    """

    sign: Array
    prob: Array
    length: Array
    ticks: Array
    left: Array

    @property
    def first(self) -> Array:
        """Is this its first tick?"""
        return self.left == self.ticks

    @property
    def last(self) -> Array:
        """Is this its last tick?"""
        return self.left == 1


class Process(Protocol):
    """Eq. 5, line 1: which phase comes next? Phase number n, drawn when it begins.

    It may declare `graded = True` (signs are amplitudes in [-1, 1], for methods that can follow),
    `rests = True` (some signs are 0) and `ends = ticks` (it has no later phases, like a record that
    does not repeat).
    """

    @property
    def alternates(self) -> bool: ...  # strictly +, -, +, -, as two terms need it
    @property
    def b(self) -> Any: ...  # long-run share of positive phases
    @property
    def mean_length(self) -> Any: ...  # mean ticks per phase
    def with_length(self, tau: Any) -> "Process": ...  # the same with phases of mean length tau
    def init(self, key: Key) -> PyTree: ...  # -> state
    def step(self, key: Key, n: Array, state: PyTree) -> tuple[Phase, PyTree]:
        """-> phase number n, which begins now, and the state after it."""
        ...


class Method(Protocol):
    """Eq. 5, line 3, and the two terms of eq. 1; `sign` is that of the phase.

    In a phase of sign 0 the network runs freely. A method that can follow signs between -1 and 1
    declares `graded = True`.
    """

    def check(self, x: PyTree) -> None: ...  # ValueError if such stimuli, stacked, do not fit
    def init(self, key: Key) -> tuple[PyTree, PyTree]: ...  # -> params, z
    def enter(self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        """The state with which a phase begins."""
        ...

    def step(self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        """One tick of the network: z' ~ p(z' | theta, z, x, sign)."""
        ...

    def grad(self, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        """The local term, g_plus or g_minus, shaped like the parameters; it is descended."""
        ...


class Source(Protocol):
    """Eq. 5, line 2: the stimulus of the phase that begins, given the one before.

    A source that declares `clocked = True` is asked at every tick instead, by the function `at` of
    `Clocked`.
    """

    @property
    def stimuli(self) -> PyTree: ...  # what it shows, or examples of that, stacked
    def init(self, key: Key) -> PyTree: ...  # -> x before the first phase
    def __call__(self, key: Key, sign: Array, x: PyTree) -> PyTree: ...  # -> the next x


class Clocked(Source, Protocol):
    """A source whose stimuli have a clock of their own."""

    @property
    def clocked(self) -> bool: ...  # True
    def at(self, key: Key, phase: Phase, n: Array, t: Array, x: PyTree) -> PyTree:
        """The stimulus of tick t, in phase n, given that of the tick before.

        The key is the same at every tick: fold t into it.
        """
        ...


class Estimator(Protocol):
    """Eq. 5, line 4: what the optimiser is given, in the manner of optax.

    An estimator is temporally local if `init` returns nothing: then no tick leaves anything behind
    for the next one.
    """

    def check(self, process: Process) -> None: ...  # ValueError if it cannot work with such phases
    def init(self, params: PyTree) -> PyTree: ...  # -> memory
    def update(self, phase: Phase, g: PyTree, memory: PyTree) -> tuple[PyTree, Array, PyTree]:
        """-> step, apply (does the optimiser take it now?), memory."""
        ...


class Updater(Protocol):
    """Eq. 5, last line: what a step does to the parameters. `Optimiser`, or a device around it."""

    @property
    def eta(self) -> Any: ...  # the learning rate
    @property
    def make(self) -> Any: ...  # eta -> optax.GradientTransformation
    def init(self, key: Key, params: PyTree) -> PyTree: ...  # -> state
    def update(self, step: PyTree, opt: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        """-> parameters after the step, state."""
        ...

    def hold(self, opt: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        """-> parameters after a tick without a step, state; called once before the first tick."""
        ...


class Optimiser(eqx.Module):
    """An optax optimiser whose learning rate is a leaf, so that eta can be swept.

    Args:
        eta: the learning rate, per phase for always-on learning.
        make: eta -> optax.GradientTransformation, such as optax.sgd or optax.adam. Random keys in
            its state (optax.add_noise) are made different in every lane.
    """

    eta: Array = eqx.field(converter=learning_rate)
    make: Callable[[Any], optax.GradientTransformation] = eqx.field(static=True, default=optax.sgd)

    def init(self, key: Key, params: PyTree) -> PyTree:
        """The optimiser's first state."""
        state = self.make(self.eta).init(params)
        return jax.tree.map(lambda leaf: own_key(key, leaf), state)

    def update(self, step: PyTree, opt: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        """-> parameters after the step, state of the optimiser."""
        updates, opt = self.make(self.eta).update(step, opt, params)
        return optax.apply_updates(params, updates), opt

    def hold(self, opt: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        """Parameters stay as they are."""
        return params, opt


class Run(NamedTuple):
    """An experiment is a value of five orthogonal parts.

    Args:
        method: the network: its dynamics, and the two terms g_plus and g_minus.
        process: which phase comes next, and how long it lasts.
        estimator: what the optimiser gets, made from the local terms.
        source: the stimuli.
        optimiser: what a step does to the parameters.
    """

    method: Method
    process: Process
    estimator: Estimator
    source: Source
    optimiser: Updater

    def __repr__(self) -> str:
        """A line for each part, with its numbers."""
        parts = (f"{name}={shown.text(part)}," for name, part in self._asdict().items())
        return "\n    ".join(["Run(", *parts]) + "\n)"

    def _repr_html_(self) -> str:
        return shown.table([(name, shown.text(part)) for name, part in self._asdict().items()])


class State(NamedTuple):
    """All that a run is made of at a tick boundary; key and clocks fix every later random
    number.

    Args:
        params: the parameters, in the form that the method gives them.
        z: the state of the network.
        x: the stimulus that is shown.
        phase: the present phase, with the ticks still to go.
        process: what the process remembers.
        memory: what the estimator remembers; () if it is temporally local.
        opt: the state of the optimiser.
        key: of all phases and ticks of the lane.
        ticks: network time steps so far.
        phases: finished phases.
        updates: parameter updates so far.
        noise: generators of a compiled engine.
        seen: what observers carry along.
    """

    params: PyTree
    z: PyTree
    x: PyTree
    phase: Phase
    process: PyTree
    memory: PyTree
    opt: PyTree
    key: Key
    ticks: Array
    phases: Array
    updates: Array
    noise: PyTree = ()
    seen: PyTree = ()

    @property
    def during(self) -> Phase:
        """The phase as it was during the tick that led here."""
        return self.phase._replace(left=self.phase.left + 1)


def own_key(key: Key, leaf: Any) -> Any:
    """Random keys in an optimiser's state, made different in every lane; other leaves as is."""
    if not isinstance(leaf, Array):
        return leaf
    typed = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    if not typed and not (leaf.dtype == jnp.uint32 and leaf.shape == (2,)):
        return leaf
    keys = leaf if typed else jax.random.wrap_key_data(leaf)  # of the older kind, as raw bits
    folded = jax.vmap(jax.random.fold_in, (0, None))(keys.ravel(), jax.random.bits(key))
    own = folded.reshape(keys.shape)
    return own if typed else jax.random.key_data(own)


def phase_keys(key: Key, n: Array) -> Array:
    """Keys of phase n for (process, source, enter).

    Counted down from -1, so that they never meet the keys of ticks.
    """
    return jax.random.split(jax.random.fold_in(key, -1 - n), 3)


class LaneKeys(NamedTuple):
    """What the key of a lane is split into."""

    run: Key  # State.key: of all phases and ticks
    method: Key
    source: Key
    process: Key


def lane_keys(key: Key) -> LaneKeys:
    return LaneKeys(*jax.random.split(key, 4))


def where(mask: Array, new: PyTree, old: PyTree) -> PyTree:
    """`jnp.where` leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), new, old)


def declares(part: Any, what: str) -> bool:
    """Does this part of a run declare it (graded, rests, clocked)? False where it says nothing."""
    return bool(getattr(part, what, False))


def stimulus(source: Source, s: State, phase: Phase, key: Key) -> PyTree:
    """What the network is shown at this tick; `phase` is the present one, `key` is its own."""
    if declares(source, "clocked"):
        return source.at(stimulus_key(s.key), phase, s.phases, s.ticks, s.x)  # type: ignore
    return where(s.phase.left == 0, source(key, phase.sign, s.x), s.x)


def stimulus_key(key: Key) -> Key:
    """The source's key of phase 0: free, because a clocked source draws nothing per phase."""
    return phase_keys(key, jnp.int32(0))[1]


def init(run: Run, key: Key, params: PyTree = None) -> State:
    """A lane before its first tick, with the method's own parameters unless some are given."""
    key, k_method, k_source, k_process = lane_keys(key)
    fresh, z = run.method.init(k_method)
    params = fresh if params is None else params
    opt = run.optimiser.init(jax.random.fold_in(k_process, 1), params)
    params, opt = run.optimiser.hold(opt, params)
    one, zero = jnp.float32(1), jnp.int32(0)
    return State(
        params=params,
        z=z,
        x=run.source.init(k_source),
        phase=Phase(-one, one, one, zero, zero),  # nothing is left of it: tick draws the first
        process=run.process.init(k_process),
        memory=run.estimator.init(params),
        opt=opt,
        key=key,
        ticks=zero,
        phases=zero,
        updates=zero,
    )


def tick(run: Run, s: State) -> State:
    """One lane one tick later: eq. 5, top to bottom. The update uses the freshly sampled z."""
    k_process, k_source, k_enter = phase_keys(s.key, s.phases)
    over = s.phase.left == 0
    drawn = run.process.step(k_process, s.phases, s.process)
    phase, process = where(over, drawn, (s.phase, s.process))
    x = stimulus(run.source, s, phase, k_source)
    z = where(over, run.method.enter(k_enter, s.params, s.z, x, phase.sign), s.z)

    k_tick = jax.random.fold_in(s.key, s.ticks)
    z = run.method.step(k_tick, s.params, z, x, phase.sign)

    g = run.method.grad(s.params, z, x, phase.sign)
    step, apply, memory = run.estimator.update(phase, g, s.memory)
    stepped = run.optimiser.update(step, s.opt, s.params)
    params, opt = where(apply, stepped, run.optimiser.hold(s.opt, s.params))
    return State(
        params=params,
        z=z,
        x=x,
        phase=phase._replace(left=phase.left - 1),
        process=process,
        memory=memory,
        opt=opt,
        key=s.key,
        ticks=s.ticks + 1,
        phases=s.phases + phase.last,
        updates=s.updates + apply,
        noise=s.noise,
        seen=s.seen,
    )


class Observer(Protocol):
    """What is recorded beside metrics: it sees the whole state after every tick of one lane."""

    def init(self, state: State) -> PyTree: ...  # -> carry, before the first tick
    def see(self, carry: PyTree, state: State) -> PyTree: ...  # -> carry
    def result(self, carry: PyTree) -> dict[str, Array]: ...  # arrays by name, for the record
