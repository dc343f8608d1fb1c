"""Slow weights: a running mean of the parameters beside training.

The last iterate of a temporally local rule is noisy; the mean of its last iterates is not. An
average is an observation, not dynamics: the parameters are added to it at moments fixed in ticks,
between the calls of an engine, so engines need not know of it.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .checks import count
from .engine import Visits


class Average(Protocol):
    """When parameters are added to the mean, and with which weight."""

    def moments(self, total: int) -> np.ndarray: ...  # ticks, increasing, at most `total`
    def rate(self, n: int) -> float: ...  # weight of the n-th moment, counted from 1


def check_start(start: Any) -> None:
    """Refuse what is no fraction of training after which an average could begin."""
    number = isinstance(start, (int, float, np.floating)) and not isinstance(start, bool)
    if not number or not 0 <= start < 1:
        raise ValueError(
            "an average begins after a fraction of training, at least 0 and below 1, not "
            f"{start!r}; try 0.5, which averages the second half."
        )


class Mean(eqx.Module):
    """The plain mean over evenly spaced moments of the last part of training.

    Args:
        start: the fraction of training after which it begins, in [0, 1).
        count: how many moments, the last one at the end of training (default: 100, fewer where
            that would be closer than every 500 ticks, but at least 10).

    Example: `train(..., average=0.5)` is short for `train(..., average=Mean(0.5))`.
    """

    start: float = eqx.field(static=True, default=0.5)
    count: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_start(self.start)
        if self.count is not None:
            count(self.count, "the number of moments of an average")

    def moments(self, total: int) -> np.ndarray:
        span = total - self.start * total
        n = self.count or int(np.clip(span // 500, 10, 100))
        ticks = np.linspace(self.start * total, total, n + 1)[1:]
        return np.unique(np.ceil(ticks - 1e-9).astype(np.int64))

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
    kind, names = type(given), ("moments", "rate")
    own = issubclass(kind, eqx.Module) and all(callable(getattr(kind, n, None)) for n in names)
    if given is None or own:
        return given
    check_start(given)
    return Mean(given)


@dataclass
class Slow:
    """The mean so far, in double precision, and the moments at which it was taken."""

    average: Average
    mean: list[np.ndarray]  # leaves of the parameters
    taken: list[int]  # ticks

    @staticmethod
    def empty(average: Average, params: Any) -> "Slow":
        """Before its first moment."""
        zeros = [np.zeros(np.shape(leaf)) for leaf in jax.tree.leaves(params)]
        return Slow(average, zeros, [])

    def copy(self) -> "Slow":
        return Slow(self.average, [leaf.copy() for leaf in self.mean], list(self.taken))

    def add(self, params: Any, tick: int) -> None:
        """Take the parameters of this tick into the mean, in place."""
        self.taken.append(tick)
        rate = self.average.rate(len(self.taken))
        with np.errstate(invalid="ignore", over="ignore"):  # lanes that have diverged stay so
            for mean, leaf in zip(self.mean, jax.tree.leaves(params), strict=True):
                change = np.asarray(leaf) - mean
                change *= rate
                mean += change

    def visits(self, total: int, done: int, ahead: int) -> Visits:
        """Take the parameters at the moments of the next `ahead` ticks, after `done` of `total`."""
        moments = self.average.moments(total)
        due = moments[(moments > done) & (moments <= done + ahead)]
        ticks = iter(due.tolist())
        return Visits(tuple((due - done).tolist()), lambda params: self.add(params, next(ticks)))

    def params(self, like: Any) -> Any:
        """The mean in the form and precision of the parameters."""
        leaves, treedef = jax.tree.flatten(like)
        means = [jnp.asarray(m, leaf.dtype) for m, leaf in zip(self.mean, leaves, strict=True)]
        return jax.tree.unflatten(treedef, means)
