"""Deep resistive network (Kendall et al. 2020; Scellier 2024): layers of nodes, resistors between
neighbouring layers, diodes at the hidden nodes, trained by equilibrium propagation.

    P(v) = sum_l [ 1/2 sum_ij k_l,ij (v_{l-1,i} - v_l,j)^2 - c_l v_l ]   power; current sources c
    F(v) = P(v) + beta/2 |v_L - target|^2                                nudged by +beta or -beta

Inputs are voltage sources, gain (x, -x): with both signs, conductances above 0 suffice. The first
half of each hidden layer cannot fall below 0 volts, the second half cannot rise above. Given its
neighbours, a layer's best voltages are a weighted mean, cut by the diodes; a step sets the odd
layers, then the even ones. Both terms are (1 / 2 beta) dP/dtheta, at +beta and at -beta.
"""

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero, layer_sizes
from ..core import Key
from .layers import Pair, check_pairs


class ResistorLayer(NamedTuple):
    k: Array  # (nodes below, nodes), conductances
    c: Array  # (nodes,), currents


Params = tuple[ResistorLayer, ...]
Volts = tuple[Array, ...]  # v_1, ..., v_L


def power(params: Params, v: Volts, sources: Array) -> Array:
    """P(v), with the input layer at `sources`."""
    below = (sources, *v[:-1])
    return sum(
        (
            0.5 * (layer.k * (v0[:, None] - v1[None]) ** 2).sum() - layer.c @ v1
            for layer, v0, v1 in zip(params, below, v, strict=True)
        ),
        jnp.zeros(()),
    )


class DeepResistor(eqx.Module):
    """Layers of nodes joined by resistors, with diodes at the hidden nodes.

    The stimulus is a pair (input, target): `Rows((inputs, targets))`. A positive phase is nudged by
    +beta, a negative one by -beta; each goes on from the voltages of the last. Take
    `Optimiser(eta, conductances)`, which keeps the conductances at 0 or above.

    Args:
        sizes: the pixels, the hidden nodes and the outputs, as in (784, 100, 10); there are twice
            as many voltage sources as pixels.
        beta: strength of the nudge, above 0. At -beta an output's conductances must sum to more
            than beta, or no voltage is best.
        gain: input voltage of a pixel of 1, above 0: the sources are gain (x, -x).
        least: a conductance below it acts as `least`; above 0.
    """

    sizes: tuple[int, ...] = eqx.field(static=True, converter=tuple)
    beta: Array = eqx.field(
        converter=lambda v: above_zero(v, "beta, the strength of the nudge,"), default=0.5
    )
    gain: Array = eqx.field(
        converter=lambda v: above_zero(v, "gain, of the input voltages,"), default=100.0
    )
    least: float = eqx.field(static=True, default=1e-6)
    graded = True  # the nudge is beta times the amplitude

    def __check_init__(self):
        layer_sizes(self.sizes)
        if self.least <= 0:
            raise ValueError(f"least, a conductance, must be above 0, not {self.least!r}.")

    def check(self, x: Any) -> None:
        check_pairs(x, self.sizes[0], self.sizes[-1])
        total = (self.sizes[-2] * (2 if len(self.sizes) == 2 else 1)) ** 0.5 / 4
        if (self.beta >= total).any():
            raise ValueError(
                f"an output's conductances start with a sum of about {total:.2g}, and beta must be "
                f"smaller, not {float(self.beta):g}; take a smaller beta or a wider layer below."
            )

    def init(self, key: Key) -> tuple[Params, Volts]:
        """Conductances uniform within +-1 / sqrt(nodes below), those below 0 set to 0; no currents,
        all nodes at 0 volts.
        """
        shapes = list(itertools.pairwise((2 * self.sizes[0], *self.sizes[1:])))
        layers = [
            ResistorLayer(
                jnp.maximum(jax.random.uniform(k, n, minval=-1), 0) / n[0] ** 0.5, jnp.zeros(n[1])
            )
            for k, n in zip(jax.random.split(key, len(shapes)), shapes, strict=True)
        ]
        return tuple(layers), self.rest()

    def rest(self) -> Volts:
        """All voltages 0."""
        return tuple(jnp.zeros(n) for n in self.sizes[1:])

    def sources(self, x: Array) -> Array:
        """The input voltages: gain x, and the same inverted."""
        return self.gain * jnp.concatenate([x, -x])

    def best(
        self, params: Params, v: Volts, i: int, sources: Array, nudge: Array, t: Array
    ) -> Array:
        """The voltages of layer i + 1 at which F is least, given the others."""
        k = jnp.maximum(params[i].k, self.least)
        inflow = (v[i - 1] if i else sources) @ k + params[i].c
        total = k.sum(0)
        if i + 1 == len(v):
            return (inflow + nudge * t) / (total + nudge)
        above = jnp.maximum(params[i + 1].k, self.least)
        volts = (inflow + above @ v[i + 1]) / (total + above.sum(1))
        upper = jnp.arange(len(volts)) < len(volts) // 2
        return jnp.where(upper, jnp.maximum(volts, 0), jnp.minimum(volts, 0))

    def sweep(self, params: Params, v: Volts, x: Array, nudge: Array, target: Array) -> Volts:
        """Every second layer, then the others, each at its best voltages."""
        volts, sources = list(v), self.sources(x)
        for i in (*range(0, len(v), 2), *range(1, len(v), 2)):
            volts[i] = self.best(params, tuple(volts), i, sources, nudge, target)
        return tuple(volts)

    def enter(self, key: Key, params: Params, z: Volts, x: Pair, sign: Array) -> Volts:
        return z

    def step(self, key: Key, params: Params, z: Volts, x: Pair, sign: Array) -> Volts:
        return self.sweep(params, z, x[0], sign * self.beta, x[1])

    def grad(self, params: Params, z: Volts, x: Pair, sign: Array) -> Params:
        """(1 / 2 beta) dP/dtheta, the same function in both phases."""
        scale = 0.5 / self.beta
        return tuple(
            ResistorLayer(scale * 0.5 * (v0[:, None] - v1[None]) ** 2, -scale * v1)
            for v0, v1 in zip((self.sources(x[0]), *z[:-1]), z, strict=True)
        )

    def predict(self, params: Params, inputs: Array, steps: int = 8) -> Array:
        """The outputs of the free network after `steps` sweeps from 0 volts, for each row."""
        free = jnp.float32(0)

        def one(x: Array) -> Array:
            def body(_, v: Volts) -> Volts:
                return self.sweep(params, v, x, free, jnp.zeros(self.sizes[-1]))

            return jax.lax.fori_loop(0, steps, body, self.rest())[-1]

        return jax.vmap(one)(inputs)
