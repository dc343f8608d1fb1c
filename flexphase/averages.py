"""Slow weights: a running mean of the parameters beside training.

The last iterate of a temporally local rule is noisy; the mean of its last iterates is not. An
average is an observation, not dynamics: the parameters are added to it at moments fixed in ticks,
between the calls of an engine, so no engine has to know.
"""

from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .checks import count


class Average(Protocol):
    """When parameters are added to the mean, and with which weight."""

    def moments(self, total: int) -> np.ndarray: ...  # ticks, increasing, at most `total`
    def rate(self, n: int) -> float: ...  # weight of the n-th moment, counted from 1


class Mean(eqx.Module):
    """The plain mean over evenly spaced moments of the last part of training.

    Args:
        start: the fraction of training after which it begins, in [0, 1).
        count: how many moments, the last one at the end of training.

    Example: `train(..., average=0.5)` is short for `train(..., average=Mean(0.5))`.
    """

    start: float = eqx.field(static=True, default=0.5)
    count: int = eqx.field(static=True, default=100)

    def __check_init__(self):
        start = self.start
        number = isinstance(start, (int, float, np.floating)) and not isinstance(start, bool)
        if not number or not 0 <= start < 1:
            raise ValueError(
                "an average begins after a fraction of training, at least 0 and below 1, not "
                f"{start!r}; try 0.5, which averages the second half."
            )
        count(self.count, "the number of moments of an average")

    def moments(self, total: int) -> np.ndarray:
        ticks = np.linspace(self.start * total, total, self.count + 1)[1:]
        return np.unique(np.maximum(ticks.round().astype(np.int64), 1))

    def rate(self, n: int) -> float:
        return 1 / n


class Exponential(eqx.Module):
    """A mean that forgets, for runs without a known end.

    Args:
        horizon: ticks over which it forgets (to a share of 1/e).
        count: moments per horizon.
    """

    horizon: int = eqx.field(static=True)
    count: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        count(self.count, "the number of moments of an average")
        if count(self.horizon, "the horizon of an average, in ticks,") < self.count:
            raise ValueError(
                f"a horizon of {self.horizon} ticks has no room for {self.count} moments; give a "
                "longer horizon or a smaller count."
            )

    def moments(self, total: int) -> np.ndarray:
        every = self.horizon // self.count
        return np.arange(every, total + 1, every)

    def rate(self, n: int) -> float:
        return max(1 / n, 1 / self.count)


def average_of(given: Any) -> Average | None:
    """The average that `train(average=...)` names: a fraction, an average, or None."""
    if given is None or isinstance(given, eqx.Module):
        return given
    return Mean(given)


class Slow(NamedTuple):
    """The mean so far, in double precision, and the moments at which it was taken."""

    mean: Any
    taken: np.ndarray  # ticks

    @staticmethod
    def empty(params: Any) -> "Slow":
        zeros = jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)), params)
        return Slow(zeros, np.zeros(0, np.int64))

    def add(self, average: Average, params: Any, tick: int) -> "Slow":
        """With the parameters of this tick in it."""
        rate = average.rate(len(self.taken) + 1)
        mean = jax.tree.map(lambda m, p: m + rate * (np.asarray(p, float) - m), self.mean, params)
        return Slow(mean, np.append(self.taken, tick))

    def params(self, like: Any) -> Any:
        """The mean in the precision of the parameters."""
        return jax.tree.map(lambda m, p: jnp.asarray(m, p.dtype), self.mean, like)
