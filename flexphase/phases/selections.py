"""Selections: which sign does the next phase have?

A selection is `init(key) -> state` and `sign(u, n, state) -> (sign, state)`, where u is a uniform
number in [0, 1) and n the number of the phase. `b` is the long-run share of positive phases, which
importance weights divide by; `alternates` is True for +, -, +, - only, which two terms need. One
that has to know how long phases last declares `timed = True`, and its function
`lasted(sign, share, state) -> state` is called with the length of every phase over its mean.
"""

from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import from_zero, probability, stay, whole_count
from ..core import Key


class Selection(Protocol):
    """Which sign? It may remember: `init` returns what, () if nothing."""

    @property
    def alternates(self) -> bool: ...  # strictly +, -, +, -
    @property
    def b(self) -> Array: ...  # long-run share of positive phases
    def init(self, key: Key) -> Any: ...  # -> state
    def sign(self, u: Array, n: Array, state: Any) -> tuple[Array, Any]:
        """-> the sign of phase n, state; u is a uniform number in [0, 1)."""
        ...


def only(share: float, b: Any) -> float:
    """The share of positive phases; a ValueError for another b, which would make weights wrong."""
    if not np.array_equal(b, share):
        raise ValueError(f"the share of positive phases is {share:g} here, so b cannot be {b!r}.")
    return share


def never(alternates: Any) -> bool:
    """False; a ValueError for True, which would promise an order that these phases do not have."""
    if alternates is not False:
        raise ValueError("only phases that alternate, Alternating(), can say so.")
    return False


class Alternating(eqx.Module):
    """+, -, +, -: the classical order. Seen over time, each sign has probability 1/2.

    Args:
        alternates: leave it at True.
        b: leave it at 1/2, the share of positive phases.
    """

    alternates: bool = eqx.field(static=True, default=True)
    b: Array = eqx.field(converter=lambda b: jnp.float32(only(0.5, b)), default=0.5)

    def init(self, key: Key) -> tuple[()]:
        return ()

    def sign(self, u: Array, n: Array, state: tuple[()] = ()) -> tuple[Array, tuple[()]]:
        return 1.0 - 2.0 * (n % 2), ()


class Bernoulli(eqx.Module):
    """The next phase is positive with probability b, whatever came before (eq. 2).

    Args:
        b: strictly between 0 and 1.
        alternates: leave it at False; only `Alternating` has a fixed order.
    """

    b: Array = eqx.field(converter=probability)
    alternates: bool = eqx.field(static=True, converter=never, default=False)

    def init(self, key: Key) -> tuple[()]:
        return ()

    def sign(self, u: Array, n: Array, state: tuple[()] = ()) -> tuple[Array, tuple[()]]:
        return jnp.where(u < self.b, 1.0, -1.0), ()


class Markov(eqx.Module):
    """The sign stays as it is with a probability that depends on it, and changes otherwise.

    Runs of a sign are geometric with mean 1 / (1 - stay), and
    b = (1 - stay_negative) / (2 - stay_positive - stay_negative). The first sign is drawn with
    these shares. Remembers the last sign.

    Args:
        stay_positive: P(the next phase is positive | this one is), from 0 up to, not including, 1.
        stay_negative: the same of negative phases.
        alternates: leave it at False; only `Alternating` has a fixed order.

    Example: `Phases(Markov(0.95, 0.9), Gamma(50, cv=0.5))`, long bouts of wake and sleep.
    """

    stay_positive: Array = eqx.field(converter=lambda p: stay(p, "stay_positive"))
    stay_negative: Array = eqx.field(converter=lambda p: stay(p, "stay_negative"))
    alternates: bool = eqx.field(static=True, converter=never, default=False)

    @property
    def b(self) -> Array:
        leave_positive, leave_negative = 1 - self.stay_positive, 1 - self.stay_negative
        return leave_negative / (leave_positive + leave_negative)

    def init(self, key: Key) -> Array:
        return jnp.where(jax.random.uniform(key) < self.b, 1.0, -1.0)

    def sign(self, u: Array, n: Array, state: Array) -> tuple[Array, Array]:
        stays = u < jnp.where(state > 0, self.stay_positive, self.stay_negative)
        sign = jnp.where(stays, state, -state)
        return sign, sign


class Pairs(eqx.Module):
    """A positive and a negative phase in random order, then the next pair.

    No more than two phases of a sign come in a row. Remembers the last sign.

    Args:
        alternates: leave it at False; only `Alternating` has a fixed order.
        b: leave it at 1/2, the share of positive phases.
    """

    alternates: bool = eqx.field(static=True, converter=never, default=False)
    b: Array = eqx.field(converter=lambda b: jnp.float32(only(0.5, b)), default=0.5)

    def init(self, key: Key) -> Array:
        return jnp.float32(1)

    def sign(self, u: Array, n: Array, state: Array) -> tuple[Array, Array]:
        sign = jnp.where(n % 2 == 0, jnp.where(u < 0.5, 1.0, -1.0), -state)
        return sign, sign


class Homeostatic(eqx.Module):
    """The chance of a positive phase falls with the running imbalance of the two signs.

    P(positive) = sigmoid(logit(b) - kappa D), where D is the imbalance in time: a positive phase
    adds (1 - b) T / tau to it, a negative one takes away b T / tau, with T its length and tau the
    mean length of its sign. D is the sum of the weights of always-on learning, times b (1 - b).
    With lengths that are all equal D = (positive phases so far) - b (phases so far). D stays
    bounded, so that the share of positive phases is b with an error of order 1/n and not
    1/sqrt(n). Remembers D.

    Args:
        b: share of positive phases, strictly between 0 and 1.
        kappa: how strongly an imbalance is corrected, at least 0. At 0 it is `Bernoulli(b)`; with
            b = 1/2, equal lengths and a large kappa it is `Pairs()`.
        alternates: leave it at False; only `Alternating` has a fixed order.
    """

    b: Array = eqx.field(converter=probability)
    kappa: Array = eqx.field(converter=lambda k: from_zero(k, "kappa, the pull to balance,"))
    alternates: bool = eqx.field(static=True, converter=never, default=False)
    timed = True

    def init(self, key: Key) -> Array:
        return jnp.float32(0)

    def sign(self, u: Array, n: Array, state: Array) -> tuple[Array, Array]:
        positive = u < jax.nn.sigmoid(jax.scipy.special.logit(self.b) - self.kappa * state)
        return jnp.where(positive, 1.0, -1.0), state

    def lasted(self, sign: Array, share: Array, state: Array) -> Array:
        """The imbalance after a phase of that sign and `share` times its mean length."""
        return state + share * jnp.where(sign > 0, 1 - self.b, -self.b)


class Blocks(eqx.Module):
    """Positive phases in a row, then negative ones, and again: "sleep deprivation".

    b = n_positive / (n_positive + n_negative).

    Args:
        n_positive, n_negative: phases of a sign in a row, at least 1.
        alternates: leave it at False; only `Alternating` has a fixed order.
    """

    n_positive: Array = eqx.field(converter=lambda n: whole_count(n, "n_positive"))
    n_negative: Array = eqx.field(converter=lambda n: whole_count(n, "n_negative"))
    alternates: bool = eqx.field(static=True, converter=never, default=False)

    @property
    def b(self) -> Array:
        return (self.n_positive / (self.n_positive + self.n_negative)).astype(jnp.float32)

    def init(self, key: Key) -> tuple[()]:
        return ()

    def sign(self, u: Array, n: Array, state: tuple[()] = ()) -> tuple[Array, tuple[()]]:
        at = n % (self.n_positive + self.n_negative)
        return jnp.where(at < self.n_positive, 1.0, -1.0), ()


class Clamped(eqx.Module):
    """A selection of phases that are all positive, for learners with one equilibrium:
    `Phases(Clamped(), Fixed(20))`. b is 1, and so is every importance weight.

    Args:
        b: leave it at 1, the share of positive phases.
        alternates: leave it at False; only `Alternating` has a fixed order.
    """

    b: float = eqx.field(static=True, converter=lambda b: only(1.0, b), default=1.0)
    alternates: bool = eqx.field(static=True, converter=never, default=False)

    def init(self, key: Key) -> tuple[()]:
        return ()

    def sign(self, u: Array, n: Array, state: tuple[()] = ()) -> tuple[Array, tuple[()]]:
        return jnp.ones_like(u), ()
