"""Phases for a training loop of your own: plain Python, tick by tick."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..checks import count
from ..core import Phase, lane_keys, phase_keys
from ..estimators import TwoTerm, Weighted
from .process import before_end

BLOCK = 256  # phases that are drawn at once
TICKS = 4096  # ticks that are weighed at once


class Tick(NamedTuple):
    """What a learner has to know at a tick: numbers of plain Python."""

    sign: float  # +1, -1, or 0 for a phase without plasticity; an amplitude if phases are graded
    first: bool  # the first tick of its phase
    last: bool  # the last one
    weight: float  # of the local term g_plus or g_minus, importance weight and sign included
    apply: bool  # does the optimiser step now?
    length: int  # ticks of this phase


class Schedule:
    """An iterator of `Tick`; see `schedule`."""

    def __init__(self, process: Any, weigh: Any, seed: int, phases: int | None):
        self.process, self.phases = process, phases
        keys = lane_keys(jax.random.key(seed))
        self.ticks = self._ticks(keys, weigh)
        self.ended = False

    def __iter__(self) -> "Schedule":
        return self

    def __next__(self) -> Tick:
        if self.ended:
            raise ValueError(
                f"this schedule has ended after its {self.phases} phases; make a new one with "
                "schedule(rule, seed), and another seed for other phases."
            )
        try:
            return next(self.ticks)
        except StopIteration:
            self.ended = True
            raise

    def _phases(self, keys: Any) -> Iterator[Phase]:
        """Phases, a block at a time, as NumPy arrays."""
        state, done = self.process.init(keys.process), 0
        left = getattr(self.process, "ends", None)
        while self.phases is None or done < self.phases:
            drawn, state = _block(self.process, keys.run, state, jnp.int32(done))
            some = before_end(drawn.ticks, left)
            if self.phases is not None:
                some = min(some, self.phases - done)
            block = jax.tree.map(lambda part, n=some: np.asarray(part)[:n], drawn)
            done += some
            if left is not None:
                left -= int(block.ticks.sum())
                self.phases = done if left <= 0 else self.phases
            yield block

    def _ticks(self, keys: Any, weigh: Any) -> Iterator[Tick]:
        for phases in self._phases(keys):
            ends = np.cumsum(phases.ticks, dtype=np.int64)
            for start in range(0, int(ends[-1]), TICKS):
                t = np.arange(start, min(start + TICKS, int(ends[-1])))
                number = np.searchsorted(ends, t, side="right")
                now = jax.tree.map(lambda part, at=number: part[at], phases)
                yield from self._tick(now._replace(left=np.int32(ends[number] - t)), weigh)

    def _tick(self, now: Phase, weigh: Any) -> Iterator[Tick]:
        n = len(now.left)
        padded = jax.tree.map(lambda part: np.resize(part, TICKS), now)
        weight, apply = _weigh(weigh, padded)
        columns = (
            now.sign.astype(float),
            now.first,
            now.last,
            np.asarray(weight, float)[:n],
            np.asarray(apply, bool)[:n],
            now.ticks,
        )
        for row in zip(*(np.asarray(column).tolist() for column in columns), strict=True):
            yield Tick(*row)


@eqx.filter_jit
def _block(process: Any, key: Any, state: Any, start: Any) -> tuple[Phase, Any]:
    def step(state: Any, n: Any) -> tuple[Any, Phase]:
        phase, state = process.step(phase_keys(key, n)[0], n, state)
        return state, phase

    state, phases = jax.lax.scan(step, state, start + jnp.arange(BLOCK, dtype=jnp.int32))
    return phases, state


@eqx.filter_jit
def _weigh(weigh: Any, phases: Phase) -> tuple[Any, Any]:
    weight, apply = jax.vmap(weigh)(phases)
    return jnp.float32(weight), jnp.bool_(apply)


def schedule(rule: Any, seed: int = 0, phases: int | None = None) -> Schedule:
    """The phases of a rule as a plain Python iterator, a tick at a time, for any framework.

    They are the very phases that `train(run, seed=seed)` would use. A loop sums weight x term into
    its gradient and lets its optimiser step where `apply` says so:

        for tick in schedule(isd(b=0.3), seed=0, phases=1000):
            loss = tick.weight * term(model, x, tick.sign)
            ...

    Args:
        rule: `cd(k)`, `isd(b, T)`, `aol(b, T)`, a pair (process, estimator), or a whole Run.
        seed: of the lane.
        phases: after how many phases it ends (default: never, or with its process).

    Returns: an iterator of (sign, first, last, weight, apply, length).
    """
    process, estimator = _parts(rule)
    if getattr(type(estimator), "update", None) not in (Weighted.update, TwoTerm.update):
        raise ValueError(
            f"the estimator {type(estimator).__name__} is not a weight of the local term, so no "
            "schedule can say it; give two_term, isd, always_on, phase_change or your own Weighted."
        )
    estimator.check(process)
    if count(seed, "the seed", 0) >= 2**31:
        raise ValueError(f"the seed must lie between 0 and 2^31 - 1, not {seed!r}.")
    limit = None if phases is None else count(phases, "phases")
    return Schedule(process, estimator.weigh, seed, limit)


def _parts(rule: Any) -> tuple[Any, Any]:
    if isinstance(rule, tuple) and len(rule) in (2, 5):
        process, estimator = rule if len(rule) == 2 else rule[1:3]
        if callable(getattr(process, "step", None)) and not isinstance(process, type):
            return process, estimator
    raise ValueError(
        f"schedule needs a rule, not {rule!r}: write schedule(isd(0.5), seed=0), a pair (process, "
        "estimator), or a Run."
    )
