"""The named algorithms of the paper: a phase process with the estimator that goes with it.

Run(method, *aol(b=0.5, T=100), source, Optimiser(0.005))
"""

from typing import Any, NamedTuple

from . import estimators
from .core import Estimator
from .phases import Alternating, Bernoulli, Fixed, Geometric, Phases


class Rule(NamedTuple):
    """Which phases there are, and what is learned from them: `Run(method, *rule, source, ...)`.

    Args:
        process: draws the phases.
        estimator: makes steps of the optimiser from the local terms.
    """

    process: Phases
    estimator: Estimator


def cd(k: int = 1) -> Rule:
    """Contrastive divergence: k ticks clamped, k ticks free, then one update (eq. 1).

    Args:
        k: ticks of each phase, at least 1.
    """
    return Rule(Phases(Alternating(), Fixed(k)), estimators.two_term)


def isd(b: float = 0.5, T: int = 1) -> Rule:
    """Importance sampling, discrete: a random phase of T ticks, then one weighted update (eq. 2).

    Args:
        b: probability of a positive phase, strictly between 0 and 1.
        T: ticks of each phase, at least 1.
    """
    return Rule(Phases(Bernoulli(b), Fixed(T)), estimators.isd)


def aol(b: float = 0.5, T: int = 100) -> Rule:
    """Always-on learning: a random phase of T ticks, eta / T at every tick (eq. 4).

    Args:
        b: probability of a positive phase, strictly between 0 and 1.
        T: ticks of each phase, at least 1.
    """
    return Rule(Phases(Bernoulli(b), Fixed(T)), estimators.always_on)


def aol_random(b: float = 0.5, tau: float = 150) -> Rule:
    """Always-on learning with random phase lengths of mean tau (eq. 5).

    Args:
        b: probability of a positive phase, strictly between 0 and 1.
        tau: mean ticks of a phase, at least 1; lengths are geometric.
    """
    return Rule(Phases(Bernoulli(b), Geometric(tau)), estimators.always_on)


def named(name: str, b: float, length: Any) -> Rule:
    """The rule that the command line calls so: cd (or two-term), isd, aol or aol-random.

    Args:
        name: one of these.
        b: probability of a positive phase; cd has none.
        length: ticks of a phase, their mean for aol-random.
    """
    match name:
        case "cd" | "two-term":
            return cd(length)
        case "isd":
            return isd(b, length)
        case "aol":
            return aol(b, length)
        case "aol-random":
            return aol_random(b, length)
    raise ValueError(f"there is no rule {name!r}; choose from cd, two-term, isd, aol, aol-random.")
