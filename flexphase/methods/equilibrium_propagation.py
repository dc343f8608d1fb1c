"""Equilibrium propagation in a layered continuous Hopfield network, s_0 = input, s_1, ..., s_L =
output.

    E(s) = sum_l [ G(s_l) - s_{l-1} W_l s_l - c_l s_l ]     G' = inverse of the activation rho
    F(s) = E(s) + beta/2 |s_L - target|^2

E is Hopfield's energy. F is nudged in a positive phase and free, beta = 0, in a negative one. At
rest dF/ds = 0, that is s_l = rho(what l receives). There d/dtheta of the loss 1/2 |s_L - target|^2
of the free network is the limit beta -> 0 of (1/beta) dE/dtheta (nudged) - (1/beta) dE/dtheta
(free): two local terms, g_plus - g_minus.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero, matrix, whole_labels
from ..core import Key
from .layers import Layered, Pair, States


class Layer(NamedTuple):
    W: Array  # (units below, units)
    c: Array


Params = tuple[Layer, ...]


def hard_sigmoid(x: Array) -> Array:
    """The logistic function made of three lines: 1/2 + x/4 within [0, 1], so that no unit starts
    where it cannot learn.
    """
    return jnp.clip(0.5 + 0.25 * x, 0, 1)


def energy(params: Params, s: States, x: Array) -> Array:
    """The part of E that depends on the parameters: E without G."""
    below = (x, *s[:-1])
    return -sum(
        (s0 @ layer.W @ s1 + layer.c @ s1 for layer, s0, s1 in zip(params, below, s, strict=True)),
        jnp.zeros(()),
    )


def uniform_layers(key: Key, sizes: tuple[int, ...]) -> Params:
    """Weights uniform within +-sqrt(6 / (units below + units)), biases 0."""
    shapes = list(itertools.pairwise(sizes))
    u = [
        jax.random.uniform(k, n, minval=-1)
        for k, n in zip(jax.random.split(key, len(shapes)), shapes, strict=True)
    ]
    return tuple(
        Layer((6 / sum(n)) ** 0.5 * w, jnp.zeros(n[1])) for w, n in zip(u, shapes, strict=True)
    )


def relax(
    params: Params, s: States, x: Array, target: Array, beta: Array, dt: Array, rho: Callable
) -> States:
    """One step of all layers at once: s_l += dt (rho(what l receives, from below, above and the
    nudge) - s_l).
    """
    new = []
    for i, (layer, s1) in enumerate(zip(params, s, strict=True)):
        drive = (s[i - 1] if i else x) @ layer.W + layer.c
        drive += params[i + 1].W @ s[i + 1] if i + 1 < len(s) else beta * (target - s1)
        new.append(s1 + dt * (rho(drive) - s1))
    return tuple(new)


class EquilibriumPropagation(Layered):
    """A layered network, nudged towards the target in positive phases and free in negative ones.

    The stimulus is a pair (input, target): `Rows((inputs, targets))`. One step relaxes all layers
    once, s_l += dt (rho(what l receives) - s_l), and the local term is (1/beta) dE/dtheta. Graded
    phases are followed: the nudge is beta times the amplitude, and a phase of sign 0 is free. For
    nudges of random sign, and on a circle in the complex plane, see `RandomSign` and `Holomorphic`.

    Args:
        sizes: units of each layer, the input first and the output last.
        beta: strength of the nudge beta/2 |s_L - target|^2, above 0.
        dt: step of the relaxation, in (0, 1].
        activation: rho, any increasing function, such as the smooth jax.nn.sigmoid and jnp.tanh
            (default: 1/2 + x/4 within [0, 1]).
        centred: negative phases are nudged with -beta, and the term is divided by 2 beta: the error
            of the gradient is then O(beta^2) rather than O(beta).
        reset: a phase begins at rest (all units 0), not at the state that the last one left. What
            always-on learning sees of the way to equilibrium is then nearly the same in both
            phases, and cancels.
    """

    beta: Array = eqx.field(
        converter=lambda v: above_zero(v, "beta, the strength of the nudge,"), default=0.5
    )
    dt: Array = eqx.field(
        converter=lambda v: above_zero(v, "dt, the step of the relaxation,", 1), default=0.5
    )
    activation: Callable[[Array], Array] = eqx.field(static=True, default=hard_sigmoid)
    centred: bool = eqx.field(static=True, default=False)
    reset: bool = eqx.field(static=True, default=False)
    graded = True

    def init(self, key: Key) -> tuple[Params, States]:
        """Weights uniform within +-sqrt(6 / (units below + units)), biases 0, all units at rest."""
        return uniform_layers(key, self.sizes), self.rest()

    def enter(self, key: Key, params: Params, z: States, x: Pair, sign: Array) -> States:
        return self.rest() if self.reset else z

    def step(self, key: Key, params: Params, z: States, x: Pair, sign: Array) -> States:
        nudge = self.beta * (sign if self.centred else jnp.maximum(sign, 0))
        return relax(params, z, *x, nudge, self.dt, self.activation)

    def grad(self, params: Params, z: States, x: Pair, sign: Array) -> Params:
        """(1/beta) dE/dtheta, the same function in both phases."""
        scale = -1 / (self.beta * (2 if self.centred else 1))
        return tuple(
            Layer(scale * jnp.outer(s0, s1), scale * s1)
            for s0, s1 in zip((x[0], *z[:-1]), z, strict=True)
        )

    def predict(self, params: Params, inputs: Array, steps: int = 100) -> Array:
        """The output of the free network after `steps` from rest, for each row."""

        def one(x: Array) -> Array:
            def body(_, s):
                return relax(
                    params,
                    s,
                    x,
                    jnp.zeros(self.sizes[-1]),
                    jnp.float32(0),
                    self.dt,
                    self.activation,
                )

            return jax.lax.fori_loop(0, steps, body, self.rest())[-1]

        return jax.vmap(one)(inputs)


class Predicts(Protocol):
    def predict(self, params: Any, inputs: Array) -> Array: ...  # (rows, outputs)


class Accuracy(eqx.Module):
    """Share of rows whose label is the most active output unit of the free network: a metric for
    `train`, for every method that predicts.

    Args:
        method: has `predict(params, inputs)`, which returns the outputs, (rows, classes).
        inputs: (rows, input units).
        labels: the number of the right output unit, from 0, one for each row.
    """

    method: Predicts
    inputs: Array
    labels: Array

    def __init__(self, method: Predicts, inputs: Any, labels: Any):
        sizes = getattr(method, "sizes", (None,))
        self.method, self.inputs = method, matrix(inputs)
        self.labels = jnp.asarray(whole_labels(labels, len(self.inputs), sizes[-1]))

    def __call__(self, params: Any) -> Array:
        return (self.method.predict(params, self.inputs).argmax(1) == self.labels).mean()
