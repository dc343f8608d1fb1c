"""Equilibrium propagation with other nudges than +beta, 0 and -beta: methods made of a method.

Random sign: a positive phase is nudged with sigma beta, sigma = +1 or -1 drawn when it begins; a
negative one is free, and both terms are (1 / (sigma beta)) dE/dtheta. Their mean over sigma is the
centred gradient, although no phase is ever compared with one of the other nudge.

Holomorphic (Laborieux and Zenke 2022): nudges lie at N points beta_k = r e^(2 pi i k / N) of a
circle in the complex plane; the gradient is (1/N) sum_k Re[ dE/dtheta(beta_k) / beta_k ], off by
O(r^N). Here a phase visits one point: a positive one draws u from the first half of the
circle, a negative one is nudged with the opposite point -u, and both terms are Re[ dE/dtheta /
(2 u r) ]; so each pair of phases is a centred estimate, and their mean over u is the sum above.
N = 2 is `centred`.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import count
from ..core import Key
from .equilibrium_propagation import EquilibriumPropagation, Layer, Params, relax
from .layers import Pair, States


class Nudged(NamedTuple):
    s: States
    turn: Array  # the direction of the nudge: +-1, or a complex number of size 1
    ready: Array  # was it drawn in a phase of sign 0, for the nudged phase to come?


def entered(z: Nudged, s: States, drawn: Array, sign: Array) -> Nudged:
    """A nudged phase has a new direction, the negative phase after it keeps it. A phase of sign 0
    draws for the nudged phase that follows, so that the terms of both have the same scale and
    `differential` may compare them.
    """
    fresh = (sign == 0) | ((sign > 0) & ~z.ready)
    return Nudged(s, jnp.where(fresh, drawn, z.turn), sign == 0)


def hebbian(s: States, x: Array, scale: Array) -> Params:
    """scale dE/dtheta, its real part."""
    return tuple(
        Layer((-scale * jnp.outer(s0, s1)).real, (-scale * s1).real)
        for s0, s1 in zip((x, *s[:-1]), s, strict=True)
    )


def not_centred(method: EquilibriumPropagation, name: str) -> None:
    if method.centred:
        raise ValueError(
            f"{name} has nudges of its own; give it EquilibriumPropagation(..., centred=False)."
        )


class RandomSign(eqx.Module):
    """Equilibrium propagation whose nudge has a random sign in each positive phase.

    Args:
        method: the network, with centred=False.

    Example: `RandomSign(EquilibriumPropagation((64, 32, 10)))`; parameters and metrics are those
    of the method inside.
    """

    method: EquilibriumPropagation
    graded = True

    def __check_init__(self):
        not_centred(self.method, "RandomSign")

    def check(self, x: Any) -> None:
        self.method.check(x)

    def init(self, key: Key) -> tuple[Params, Nudged]:
        params, s = self.method.init(key)
        return params, Nudged(s, jnp.ones(()), jnp.bool_(False))

    def enter(self, key: Key, params: Params, z: Nudged, x: Pair, sign: Array) -> Nudged:
        sigma = jax.random.rademacher(key, (), jnp.float32)
        return entered(z, self.method.enter(key, params, z.s, x, sign), sigma, sign)

    def step(self, key: Key, params: Params, z: Nudged, x: Pair, sign: Array) -> Nudged:
        ep, nudge = self.method, jnp.maximum(sign, 0) * z.turn * self.method.beta
        return Nudged(relax(params, z.s, *x, nudge, ep.dt, ep.activation), z.turn, z.ready)

    def grad(self, params: Params, z: Nudged, x: Pair, sign: Array) -> Params:
        """(1 / (sigma beta)) dE/dtheta, the same function in both phases."""
        return hebbian(z.s, x[0], 1 / (z.turn * self.method.beta))


class Holomorphic(eqx.Module):
    """Equilibrium propagation with nudges on a circle of radius beta in the complex plane.

    Args:
        method: the network, with centred=False. Its activation must be holomorphic, as
            jax.nn.sigmoid and jnp.tanh are, and beta small enough that no unit comes near their
            poles.
        points: number of nudges on the circle, an even number; 2 are the centred nudges.

    Example: `Holomorphic(EquilibriumPropagation((64, 32, 10), activation=jax.nn.sigmoid),
    points=4)`.
    """

    method: EquilibriumPropagation
    points: int = eqx.field(static=True, default=4)
    graded = True

    def __check_init__(self):
        not_centred(self.method, "Holomorphic")
        if count(self.points, "points, on the circle of nudges,", 2) % 2:
            raise ValueError(
                f"points, on the circle of nudges, come in opposite pairs: take {self.points + 1} "
                f"instead of {self.points}."
            )
        if not is_holomorphic(self.method.activation):
            raise ValueError(
                "a complex nudge needs a holomorphic activation; take jax.nn.sigmoid or jnp.tanh."
            )

    def check(self, x: Any) -> None:
        self.method.check(x)

    def init(self, key: Key) -> tuple[Params, Nudged]:
        params, s = self.method.init(key)
        return params, Nudged(tuple(layer + 0j for layer in s), jnp.ones(()) + 0j, jnp.bool_(False))

    def enter(self, key: Key, params: Params, z: Nudged, x: Pair, sign: Array) -> Nudged:
        u = self.direction(jax.random.randint(key, (), 0, self.points // 2))
        rest = tuple(layer + 0j for layer in self.method.rest())
        return entered(z, rest if self.method.reset else z.s, u, sign)

    def direction(self, k: Any) -> Array:
        """Point number k of the unit circle."""
        angle = 2 * jnp.pi * k / self.points
        return jnp.cos(angle) + 1j * jnp.sin(angle)

    def step(self, key: Key, params: Params, z: Nudged, x: Pair, sign: Array) -> Nudged:
        ep, nudge = self.method, sign * z.turn * self.method.beta
        return Nudged(relax(params, z.s, *x, nudge, ep.dt, ep.activation), z.turn, z.ready)

    def grad(self, params: Params, z: Nudged, x: Pair, sign: Array) -> Params:
        """Re[ dE/dtheta / (2 u beta) ], the same function in both phases."""
        return hebbian(z.s, x[0], 1 / (2 * z.turn * self.method.beta))


def is_holomorphic(activation: Any) -> bool:
    """The Cauchy-Riemann equations, at a few points: d rho / d(iy) = d rho / dx."""
    z, h = jnp.array([-5 + 0.3j, 0.003 + 0.2j, 0.7 - 0.5j, 5 - 0.1j]), 1e-2
    try:
        along, across = (
            activation(z + h) - activation(z - h),
            activation(z + 1j * h) - activation(z - 1j * h),
        )
    except (TypeError, ValueError):
        return False
    return bool(jnp.allclose(across, 1j * along, atol=1e-4))
