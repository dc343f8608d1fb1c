"""Phase processes: a selection (which sign?) times a duration (how long?)."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import at_least_one, count
from ..core import Key, Phase, Process, declares, phase_keys
from .durations import Duration, Matched, stretched, whole_ticks
from .selections import Selection


class Memory(NamedTuple):
    """What the parts of `Phases` remember between phases."""

    selection: Any
    positive: Any
    negative: Any


def needs_functions(what: str, thing: Any, *names: str) -> None:
    """A ValueError unless the thing has these functions."""
    if isinstance(thing, type) or not all(callable(getattr(thing, name, None)) for name in names):
        raise ValueError(
            f"the {what} needs the functions {' and '.join(names)}, which {thing!r} does not have; "
            "write, say, Phases(Bernoulli(0.5), Fixed(100))."
        )


def needs_key(key: Any) -> None:
    """A ValueError unless it is one random key, of JAX's newer or older kind."""
    dtype, shape = getattr(key, "dtype", np.dtype(object)), getattr(key, "shape", None)
    typed = jnp.issubdtype(dtype, jax.dtypes.prng_key) and shape == ()
    if not typed and not (dtype == np.uint32 and shape == (2,)):
        raise ValueError(f"key must be a random key, such as jax.random.key(0), not {key!r}.")


class Phases(eqx.Module):
    """Selection x duration; negative phases may have a duration of their own.

    `Phase.prob` is b or 1 - b, the share of phases that have this sign in the long run, and
    `Phase.length` the mean length of phases of this sign: with these weights the updates of many
    phases add up to eq. 1, whatever the selection remembers.

    Args:
        selection: Alternating, Bernoulli, Markov, Pairs, Homeostatic, Blocks, or your own.
        positive: Fixed, Geometric, Gamma, LogNormal, Weibull, Empirical, Matched, or your own.
        negative: the duration of negative phases (default: the same).

    Example: `Phases(Markov(0.9, 0.8), LogNormal(100, cv=1.5), Fixed(20))`.
    """

    selection: Selection
    positive: Duration
    negative: Duration

    def __init__(self, selection: Any, positive: Any, negative: Any = None):
        negative = positive if negative is None else negative
        needs_functions("selection", selection, "init", "sign")
        for sign, duration in (("positive", positive), ("negative", negative)):
            needs_functions(f"duration of {sign} phases", duration, "init", "next")
        if Matched in (type(positive), type(negative)) and not eqx.tree_equal(positive, negative):
            raise ValueError(
                "Matched says how long phases of both signs last; give it alone: "
                "Phases(selection, Matched(Geometric(100)))."
            )
        self.selection, self.positive, self.negative = selection, positive, negative

    @property
    def alternates(self) -> bool:
        return self.selection.alternates

    @property
    def b(self) -> Array:
        """Long-run share of positive phases."""
        return self.selection.b

    def with_length(self, tau: Any) -> "Phases":
        """The same selection, with phases of the same kind and mean length tau."""
        return Phases(self.selection, self.positive.with_mean(tau), self.negative.with_mean(tau))

    @property
    def mean_length(self) -> Array:
        beyond = self.positive.mean - self.negative.mean
        return self.negative.mean + self.selection.b * beyond  # exact where the two are equal

    def init(self, key: Key) -> Memory | tuple[()]:
        parts = (self.selection, self.positive, self.negative)
        k_sign, k_length = jax.random.split(key)
        keys = (k_sign, k_length, k_length)  # the same law for both signs has one memory
        memory = Memory(*(part.init(k) for part, k in zip(parts, keys, strict=True)))
        return memory if jax.tree.leaves(memory) else ()

    def step(self, key: Key, n: Array, state: Memory | tuple[()]) -> tuple[Phase, Any]:
        u_sign, u_length = jax.random.uniform(key, (2,))
        k_length = jax.random.fold_in(key, 2)
        selection, positive, negative = state or ((), (), ())
        sign, selection = self.selection.sign(u_sign, n, selection)
        plus, positive = self.positive.next(u_length, k_length, sign, positive)
        minus, negative = self.negative.next(u_length, k_length, sign, negative)
        b = self.selection.b
        prob = jnp.where(sign > 0, b, 1 - b)
        length = jnp.where(sign > 0, self.positive.mean, self.negative.mean).astype(jnp.float32)
        ticks = jnp.where(sign > 0, plus, minus)
        if declares(self.selection, "timed"):
            selection = self.selection.lasted(sign, ticks / length, selection)  # type: ignore
        memory = Memory(selection, positive, negative) if state else ()
        return Phase(sign, prob, length, ticks, ticks), memory


def endless(process: Process, what: str) -> Process:
    """The process, if it never ends; inside another process its end would go unnoticed."""
    if getattr(process, "ends", None) is not None:
        raise ValueError(
            f"phases that end cannot be {what}; repeat a record: Recorded(..., after='repeat')."
        )
    return process


class Derived(eqx.Module):
    """A process made from another one: it keeps the order of signs, b and the memory."""

    process: eqx.AbstractVar[Process]

    @property
    def alternates(self) -> bool:
        return self.process.alternates

    @property
    def graded(self) -> bool:
        return declares(self.process, "graded")

    @property
    def b(self) -> Array:
        return self.process.b

    def init(self, key: Key) -> Any:
        return self.process.init(key)


class Stretched(Derived):
    """The phases of any process, made longer or shorter so that their mean length is tau.

    Longer ones are multiplied, shorter ones shrink towards one tick; both are rounded at random,
    so that means stay exact.

    Args:
        process: any process.
        tau: the mean length, at least 1 tick.
    """

    process: Process = eqx.field(converter=lambda process: endless(process, "stretched"))
    tau: Array = eqx.field(converter=lambda tau: at_least_one(tau, "the mean length of a phase"))

    @property
    def rests(self) -> bool:
        """Whether the process has phases without plasticity."""
        return declares(self.process, "rests")

    @property
    def mean_length(self) -> Array:
        return self.tau

    def with_length(self, tau: Any) -> "Stretched":
        return Stretched(self.process, tau)

    def step(self, key: Key, n: Array, state: Any) -> tuple[Phase, Any]:
        phase, state = self.process.step(key, n, state)
        mean = self.process.mean_length
        lasts = stretched(jnp.float32(phase.ticks), mean, self.tau)
        ticks = whole_ticks(lasts, jax.random.uniform(jax.random.fold_in(key, 3)))
        length = stretched(phase.length, mean, self.tau)
        return Phase(phase.sign, phase.prob, length, ticks, ticks), state


def before_end(ticks: Any, left: int | None) -> int:
    """How many of the next phases, of so many ticks each, a process has that ends after `left`
    ticks (None: it does not end).
    """
    if left is None:
        return len(ticks)
    clock = np.cumsum(np.asarray(ticks), dtype=np.int64)
    return min(len(ticks), int(np.searchsorted(clock, left)) + 1)


def tape(process: Any, key: Key, phases: int, start: Any = 0, state: Any = None) -> Phase:
    """Unroll a process without a network: phases as arrays from number `start` on, the very ones
    `tick` would draw with this key. For a process with a memory give the state of the lane too.

    Args:
        process: any process.
        key: of a lane, `State.key`.
        phases: how many.
        start: the number of the first.
        state: of the process before it, `State.process` (default: a fresh one, which is not that
            of the lane if the process draws what it remembers first: Markov, Matched, shuffled
            records).
    """
    needs_functions("process", process, "init", "step")
    needs_key(key)
    if state is None:
        state = process.init(key)
    n = start + jnp.arange(count(phases, "phases", 0), dtype=jnp.int32)
    if not jax.tree.leaves(state):  # no memory between phases: draw them all at once
        return jax.vmap(lambda i: process.step(phase_keys(key, i)[0], i, state)[0])(n)
    return jax.lax.scan(lambda s, i: process.step(phase_keys(key, i)[0], i, s)[::-1], state, n)[1]
