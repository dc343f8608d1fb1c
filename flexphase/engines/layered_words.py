"""A run of a layered network in the words of the kernels: what they know of its method, stimuli,
estimator and optimiser.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ..core import Phase
from ..estimators import Baseline, Differential, PhaseChange, TwoTerm, Weighted, weigh_isd
from ..methods.contrastive_hebbian import ContrastiveHebbian
from ..methods.equilibrium_propagation import hard_sigmoid
from ..optimisers import LayerRates
from ..replicas import Batches, Replicas
from .layered_state import Arrays
from .tapes import unheld

INFINITY = float("inf")
#: How the kernels know an activation: a curve, and clip(offset + slope x, low, high) for curve 0.
ACTIVATIONS: dict[Any, tuple[int, tuple[float, float, float, float]]] = {
    hard_sigmoid: (0, (0.5, 0.25, 0, 1)),
    jax.nn.hard_sigmoid: (0, (0.5, 1 / 6, 0, 1)),
    jax.nn.hard_tanh: (0, (0, 1, -1, 1)),
    jax.nn.relu: (0, (0, 1, 0, INFINITY)),
    jax.nn.relu6: (0, (0, 1, 0, 6)),
    jax.nn.sigmoid: (1, (0, 0, 0, 0)),
    jax.nn.tanh: (2, (0, 0, 0, 0)),
    jnp.tanh: (2, (0, 0, 0, 0)),
}
LINEAR = (0, (0.0, 1.0, -INFINITY, INFINITY))
NOTHING, WAITING, CHANGE, MEAN = range(4)  # what is remembered; enum Memory in native/layered.h


class Descent(NamedTuple):
    """Gradient descent: the rate of each layer, in units of eta, and the momentum."""

    rates: tuple[float, ...]
    momentum: float


def descent(make: Any, layers: int) -> Descent | None:
    """The optimiser, if the kernels know it: optax.sgd, with a momentum, or LayerRates."""
    if make is optax.sgd:
        return Descent((1.0,) * layers, 0.0)
    if type(make) is LayerRates and len(make.rates) == layers:
        rates, momentum = make.rates, make.momentum
    elif type(make) is functools.partial and make.func is optax.sgd and not make.args:
        rates, momentum = (1.0,) * layers, make.keywords.get("momentum")
        if set(make.keywords) != {"momentum"}:
            return None
    else:
        return None
    if momentum is None:
        return Descent(rates, 0.0)
    return Descent(rates, float(momentum)) if 0 < momentum < 1 else None


def network(method: Any) -> tuple[Any, int]:
    """The method itself, and how many replicas there are of its state."""
    return (method.method, method.n) if type(method) is Replicas else (method, 1)


class PhaseWords(NamedTuple):
    """What a method does in a phase of some sign, in the words of the kernels."""

    nudge: Array  # of the outputs towards the target
    scale: Array  # of the local term s_{l-1} s_l
    clamp: Array  # are the outputs held at the target?


def words(method: Any, sign: Array) -> PhaseWords:
    """The method in phases of these signs."""
    if type(method) is ContrastiveHebbian:
        return PhaseWords(jnp.zeros_like(sign), jnp.full_like(sign, -1), sign > 0)
    nudge = method.beta * (sign if method.centred else jnp.maximum(sign, 0))
    scale = jnp.full_like(sign, -1 / (method.beta * (2 if method.centred else 1)))
    return PhaseWords(nudge, scale, jnp.zeros_like(sign, bool))


def curves(method: Any) -> Arrays:
    """The activation of each layer."""
    known = [ACTIVATIONS[method.activation]] * (len(method.sizes) - 1)
    if type(method) is ContrastiveHebbian and method.linear_output:
        known[-1] = LINEAR
    return {
        "curve": np.array([curve for curve, _ in known], np.int32),
        "clip": np.array([clip for _, clip in known], np.float32),
    }


def feedback_of(method: Any) -> Any:
    """The strength of the way down."""
    return method.feedback if type(method) is ContrastiveHebbian else 1.0


def rows_of(source: Any) -> Any:
    """The rows from which a source draws; anything else if it is not known."""
    source = unheld(source)
    return source.source if type(source) is Batches else source


def memory_of(estimator: Any) -> int:
    """What it remembers."""
    kinds = {TwoTerm: WAITING, PhaseChange: WAITING, Differential: CHANGE, Baseline: MEAN}
    return kinds.get(type(estimator), NOTHING)


def weigh_change(phase: Phase) -> tuple[Array, Array]:
    """What `Differential` makes of a change of the term."""
    return phase.sign / phase.prob, phase.sign != 0


def weighted(estimator: Any) -> Any:
    """The estimator that says what a term weighs, on the tape."""
    if type(estimator) is Differential:
        return Weighted(weigh_change)
    return estimator.estimator if type(estimator) is Baseline else estimator


def steps_at_the_end(estimator: Any) -> bool:
    """Does the optimiser step at the last tick of a phase only?"""
    return memory_of(estimator) == WAITING or estimator == Weighted(weigh_isd)
