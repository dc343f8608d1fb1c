"""Durations: how long is a phase? A whole number of ticks, never below one.

Gamma, LogNormal and Weibull are laws of the time beyond the first tick: T = 1 + Y, where Y has mean
`mean` - 1 and standard deviation cv x mean, rounded up or down at random so that the mean stays
exactly what it says. Rounding adds at most 1/4 to the variance.
"""

from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammaln, ndtri

from ..checks import positive_length, sample_of_lengths, spread
from ..core import Key

LONGEST = 2.0**30  # ticks


class Duration(Protocol):
    """How long? It may remember: `init` returns what, () if nothing."""

    @property
    def mean(self) -> Array: ...  # ticks; importance weights of always-on learning divide by it
    @property
    def variance(self) -> Any: ...  # ticks squared
    def with_mean(self, tau: Any) -> "Duration": ...  # the same kind of length, of mean tau
    def init(self, key: Key) -> Any: ...  # -> state
    def next(self, u: Array, key: Key, sign: Array, state: Any) -> tuple[Array, Any]:
        """-> ticks of the next phase, state; u is a uniform number in [0, 1)."""
        ...


class Law(eqx.Module):
    """A duration without a memory: `draw(u, key)` ticks, from a uniform u in [0, 1) and, where one
    number is not enough, a key. Your own needs `draw`, `mean`, `variance` and `with_mean`.
    """

    def draw(self, u: Array, key: Any = None) -> Array:
        """-> ticks, a whole number of at least 1."""
        raise NotImplementedError

    def init(self, key: Key) -> tuple[()]:
        return ()

    def next(self, u: Array, key: Key, sign: Array, state: Any = ()) -> tuple[Array, Any]:
        return self.draw(u, key), ()


class Fixed(Law):
    """Every phase lasts T ticks.

    Args:
        T: a whole number, at least 1.
    """

    T: Array = eqx.field(converter=lambda T: positive_length(T, whole=True))

    @property
    def mean(self) -> Array:
        return self.T

    @property
    def variance(self) -> float:
        return 0.0

    def with_mean(self, tau: Any) -> "Fixed":
        return Fixed(tau)

    def draw(self, u: Array, key: Any = None) -> Array:
        return jnp.int32(self.T)


class Geometric(Law):
    """A phase ends after each tick with probability 1/tau: P(T = k) = (1 - 1/tau)^(k-1) / tau, mean
    tau, variance tau^2 - tau.

    Args:
        tau: mean ticks of a phase, at least 1.
    """

    tau: Array = eqx.field(converter=positive_length)

    @property
    def mean(self) -> Array:
        return self.tau

    @property
    def variance(self) -> Array:
        return self.tau**2 - self.tau

    def with_mean(self, tau: Any) -> "Geometric":
        return Geometric(tau)

    def draw(self, u: Array, key: Any = None) -> Array:
        # Inverse distribution function; u in [0, 1), and tau = 1 gives log(0) = -inf, hence T = 1.
        return jnp.int32(jnp.floor(jnp.log1p(-u) / jnp.log1p(-1 / self.tau))) + 1


def whole_ticks(x: Array, v: Array) -> Array:
    """x, rounded up with the probability of its fraction, given a uniform v: the mean is x."""
    x = jnp.minimum(x, LONGEST)
    return jnp.int32(jnp.floor(x)) + (v < x - jnp.floor(x))


def rounding(quantiles: Any) -> float:
    """The variance that this rounding adds, E[f (1 - f)] over the fractions f."""
    f = np.asarray(quantiles, float) % 1
    return float((f * (1 - f)).mean())


GRID = (np.arange(2**14) + 0.5) / 2**14


class Gamma(Law):
    """T = 1 + Y with Y from a gamma law: short and long phases around `mean`.

    Args:
        mean: ticks, above 1.
        cv: standard deviation over mean, above 0 and at most 10. Beyond 1 the law is heavy-tailed.
    """

    mean: Array
    cv: Array

    def __init__(self, mean: Any, cv: Any):
        self.mean, self.cv = spread(mean, cv, "Gamma")

    @property
    def variance(self) -> float:
        from scipy.stats import gamma

        a = float(1 / beyond(self) ** 2)
        y = gamma(a, scale=(float(self.mean) - 1) / a)
        return float(self.cv * self.mean) ** 2 + rounding(y.ppf(GRID))

    def with_mean(self, tau: Any) -> Law:
        return Gamma(tau, self.cv) if tau > 1 else Fixed(1)

    def draw(self, u: Array, key: Any = None) -> Array:
        a = 1 / beyond(self) ** 2
        y = jax.random.gamma(jax.random.fold_in(key, 1), a) / a * (self.mean - 1)
        return whole_ticks(1 + y, u)


class LogNormal(Law):
    """T = 1 + Y with log Y normal: most phases are short, some very long.

    Args:
        mean: ticks, above 1.
        cv: standard deviation over mean, above 0 and at most 10. Lengths rarer than one in 2^23
            are not drawn: at cv = 3 that is 0.01 % of the mean.
    """

    mean: Array
    cv: Array

    def __init__(self, mean: Any, cv: Any):
        self.mean, self.cv = spread(mean, cv, "LogNormal")

    def quantile(self, u: Any) -> Array:
        """Of Y."""
        square = jnp.log1p(beyond(self) ** 2)
        return (self.mean - 1) * jnp.exp(jnp.sqrt(square) * ndtri(u) - square / 2)

    @property
    def variance(self) -> float:
        return float(self.cv * self.mean) ** 2 + rounding(self.quantile(jnp.float32(GRID)))

    def with_mean(self, tau: Any) -> Law:
        return LogNormal(tau, self.cv) if tau > 1 else Fixed(1)

    def draw(self, u: Array, key: Any = None) -> Array:
        return whole_ticks(1 + self.quantile(u), jax.random.uniform(key))


class Weibull(Law):
    """T = 1 + Y with P(Y > y) = exp(-(y / scale)^shape): the chance to end falls with age where cv
    is above 1 (shape below 1, a heavy tail) and rises with age where it is below.

    Args:
        mean: ticks, above 1.
        cv: standard deviation over mean, above 0.01 and at most 10.
    """

    mean: Array
    cv: Array
    shape: Array

    def __init__(self, mean: Any, cv: Any):
        self.mean, self.cv = spread(mean, cv, "Weibull")
        self.shape = jnp.asarray(weibull_shape(np.asarray(beyond(self))), jnp.float32)

    def quantile(self, u: Any) -> Array:
        """Of Y; its mean is scale x Gamma(1 + 1/shape)."""
        scale = (self.mean - 1) / jnp.exp(gammaln(1 + 1 / self.shape))
        return scale * (-jnp.log1p(-u)) ** (1 / self.shape)

    @property
    def variance(self) -> float:
        return float(self.cv * self.mean) ** 2 + rounding(self.quantile(jnp.float32(GRID)))

    def with_mean(self, tau: Any) -> Law:
        return Weibull(tau, self.cv) if tau > 1 else Fixed(1)

    def draw(self, u: Array, key: Any = None) -> Array:
        return whole_ticks(1 + self.quantile(u), jax.random.uniform(key))


def beyond(law: Any) -> Array:
    """The coefficient of variation of Y, the time beyond the first tick."""
    return law.cv * law.mean / (law.mean - 1)


def weibull_shape(cv: np.ndarray) -> np.ndarray:
    """The shape whose coefficient of variation is cv: 1 + cv^2 = G(1 + 2/k) / G(1 + 1/k)^2."""
    from scipy.optimize import brentq
    from scipy.special import gammaln

    def excess(log_k: float, cv: float) -> float:
        k = np.exp(log_k)
        return gammaln(1 + 2 / k) - 2 * gammaln(1 + 1 / k) - np.log1p(cv**2)

    if np.any(cv < 0.01):
        raise ValueError("a Weibull law needs a cv of at least 0.01; use Fixed for equal lengths.")
    ends: Any = (np.log(0.05), np.log(500))
    roots = [np.exp(float(brentq(excess, *ends, args=(c,)))) for c in cv.ravel()]  # type: ignore
    return np.reshape(roots, cv.shape)


class Empirical(Law):
    """Lengths drawn from those that were measured, each as likely as the others.

    Args:
        samples: lengths in ticks, at least 1. A fraction is rounded up or down at random, so that
            the mean is that of the samples.

    Example: `Empirical(bouts_in_seconds * rate)`.
    """

    samples: Array = eqx.field(converter=sample_of_lengths)

    @property
    def mean(self) -> Array:
        return self.samples.mean(-1)

    @property
    def variance(self) -> float:
        return float(np.var(np.asarray(self.samples, float))) + rounding(self.samples)

    def with_mean(self, tau: Any) -> "Empirical":
        """Stretched, or shrunk towards one tick, which no length falls below."""
        return Empirical(stretched(self.samples, self.mean, tau))

    def draw(self, u: Array, key: Any = None) -> Array:
        n = self.samples.shape[-1]
        x = self.samples[jnp.minimum(jnp.int32(u * n), n - 1)]
        return whole_ticks(x, jax.random.uniform(key))


def stretched(x: Array, mean: Any, tau: Any) -> Array:
    """Lengths x >= 1 of that mean, made longer or shorter so that their mean is tau."""
    shrink = (tau - 1) / jnp.maximum(mean - 1, 1e-6)
    return jnp.where(tau >= mean, x * (tau / mean), 1 + (x - 1) * shrink)


class Matched(eqx.Module):
    """A negative phase lasts as long as the positive one before it. Remembers that length.

    Positive phases follow the law; a negative one at the very beginning draws from it too, and
    several in a row all last as long as the last positive one.

    Args:
        law: of positive phases.

    Example: `Phases(Alternating(), Matched(Geometric(100)))`.
    """

    law: Law

    def __check_init__(self):
        if not isinstance(self.law, Law):
            raise ValueError(
                "Matched needs the law of positive phases: write Matched(Geometric(100))."
            )

    @property
    def mean(self) -> Array:
        return self.law.mean  # type: ignore[attr-defined]

    @property
    def variance(self) -> Any:
        return self.law.variance  # type: ignore[attr-defined]

    def with_mean(self, tau: Any) -> "Matched":
        return Matched(self.law.with_mean(tau))  # type: ignore[attr-defined]

    def init(self, key: Key) -> Array:
        return self.law.draw(jax.random.uniform(key), jax.random.fold_in(key, 1))

    def next(self, u: Array, key: Key, sign: Array, state: Array) -> tuple[Array, Array]:
        drawn = self.law.draw(u, key)
        ticks = jnp.where(sign < 0, state, drawn)
        return ticks, jnp.where(sign > 0, drawn, state)
