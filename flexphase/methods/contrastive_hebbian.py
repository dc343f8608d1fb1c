"""Contrastive Hebbian learning (Movellan 1991): outputs clamped to the target against outputs free.

Layered, with feedback of strength gamma (Xie and Seung 2003), s_0 = input, s_1, ..., s_L = output:

    E(s) = sum_l gamma^(l-L) [ G_l(s_l) - s_{l-1} W_l s_l - c_l s_l ],  G_l' = inverse of rho_l

At rest s_l = rho_l(s_{l-1} W_l + c_l + gamma W_{l+1} s_{l+1}). Both terms are dE/dtheta, so that
g_plus - g_minus = -gamma^(l-L) (s_{l-1} s_l clamped - s_{l-1} s_l free). For gamma -> 0 with linear
outputs this is the gradient of 1/2 |s_L - target|^2 of the feedforward network: back-propagation.

Fully recurrent: E(s) = sum_i G(s_i) - 1/2 s W s - c s, with W symmetric and an empty diagonal.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import above_zero, count
from ..core import Key
from .boltzmann import Couplings, check_mask
from .equilibrium_propagation import Layer, Params, hard_sigmoid, uniform_layers
from .layers import Layered, Pair, States, check_pairs


def _dt(dt: Any) -> Array:
    return above_zero(dt, "dt, the step of the relaxation,", 1)


def _linear(x: Array) -> Array:
    return x


class ContrastiveHebbian(Layered):
    """A layered network. A positive phase clamps the output layer to the target, a negative one
    leaves it free.

    The stimulus is a pair (input, target): `Rows((inputs, targets))`. One step relaxes all layers
    once: s_l += dt (rho(s_{l-1} W_l + c_l + gamma W_{l+1} s_{l+1}) - s_l).

    Args:
        sizes: units of each layer, the input first and the output last.
        feedback: gamma, the strength of the way down, in (0, 1]; 1 is Movellan's rule.
        dt: step of the relaxation, in (0, 1].
        activation: rho, an increasing function (default: 1/2 + x/4 within [0, 1]).
        linear_output: the output layer has no activation function: rho_L(x) = x.
        reset: a phase begins at rest (all units 0), not at the state that the last one left.
    """

    feedback: Array = eqx.field(
        converter=lambda v: above_zero(v, "feedback, the strength gamma of the way down,", 1),
        default=1.0,
    )
    dt: Array = eqx.field(converter=_dt, default=0.5)
    activation: Callable[[Array], Array] = eqx.field(static=True, default=hard_sigmoid)
    linear_output: bool = eqx.field(static=True, default=False)
    reset: bool = eqx.field(static=True, default=False)

    def init(self, key: Key) -> tuple[Params, States]:
        """Weights uniform within +-sqrt(6 / (units below + units)), biases 0, all units at rest."""
        return uniform_layers(key, self.sizes), self.rest()

    def relax(self, params: Params, s: States, x: Array) -> States:
        """One step of all layers at once: s_l += dt (rho_l(what l receives) - s_l)."""
        new = []
        for i, (layer, s1) in enumerate(zip(params, s, strict=True)):
            drive = (s[i - 1] if i else x) @ layer.W + layer.c
            top = i + 1 == len(s)
            if not top:
                drive += self.feedback * (params[i + 1].W @ s[i + 1])
            rho = _linear if top and self.linear_output else self.activation
            new.append(s1 + self.dt * (rho(drive) - s1))
        return tuple(new)

    def enter(self, key: Key, params: Params, z: States, x: Pair, sign: Array) -> States:
        return self.rest() if self.reset else z

    def step(self, key: Key, params: Params, z: States, x: Pair, sign: Array) -> States:
        *hidden, output = self.relax(params, z, x[0])
        return (*hidden, jnp.where(sign > 0, x[1], output))

    def grad(self, params: Params, z: States, x: Pair, sign: Array) -> Params:
        """dE/dtheta, the same function in both phases."""
        scales = [-(self.feedback ** (l + 1 - len(z))) for l in range(len(z))]  # noqa: E741
        return tuple(
            Layer(scale * jnp.outer(s0, s1), scale * s1)
            for scale, s0, s1 in zip(scales, (x[0], *z[:-1]), z, strict=True)
        )

    def predict(self, params: Params, inputs: Array, steps: int = 100) -> Array:
        """The output of the free network after `steps` from rest, for each row."""

        def one(x: Array) -> Array:
            def body(_, s):
                return self.relax(params, s, x)

            return jax.lax.fori_loop(0, steps, body, self.rest())[-1]

        return jax.vmap(one)(inputs)


class RecurrentHebbian(eqx.Module):
    """A recurrent network with symmetric weights. Inputs are clamped in both phases, outputs in
    positive ones.

    The stimulus is a pair (input, target): `Rows((inputs, targets))`. One step relaxes all units
    once: s += dt (rho(s W + c) - s).

    Args:
        inputs: number of input units, which come first.
        hidden: number of hidden units, at least 0.
        outputs: number of output units, which come last.
        mask: (n, n) booleans for all n units: which pairs are joined; symmetric, with an empty
            diagonal (default: all pairs). The layered network with feedback 1 is the mask that
            joins neighbouring layers only.
        dt: step of the relaxation, in (0, 1].
        activation: rho, an increasing function (default: 1/2 + x/4 within [0, 1]).
        scale: standard deviation of the initial weights; biases begin at 0.
    """

    mask: Array
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    outputs: int = eqx.field(static=True)
    dt: Array
    activation: Callable[[Array], Array] = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        outputs: int,
        mask: Any = None,
        dt: Any = 0.5,
        activation: Callable[[Array], Array] = hard_sigmoid,
        scale: float = 0.1,
    ):
        self.inputs, self.outputs = count(inputs, "inputs"), count(outputs, "outputs")
        self.hidden, self.dt, self.activation = count(hidden, "hidden", 0), _dt(dt), activation
        self.mask, self.scale = jnp.asarray(check_mask(mask, self.n)), scale

    @property
    def n(self) -> int:
        return self.inputs + self.hidden + self.outputs

    def check(self, x: Any) -> None:
        check_pairs(x, self.inputs, self.outputs)

    def init(self, key: Key) -> tuple[Couplings, Array]:
        upper = jnp.triu(self.scale * jax.random.normal(key, (self.n, self.n)), 1) * self.mask
        return Couplings(upper + upper.T, jnp.zeros(self.n)), jnp.zeros(self.n)

    def relax(self, params: Couplings, s: Array, x: Array) -> Array:
        """s += dt (rho(s W + c) - s), all units at once; then the inputs as they are given."""
        new = s + self.dt * (self.activation(s @ params.W + params.bias) - s)
        return new.at[: self.inputs].set(x)

    def enter(self, key: Key, params: Couplings, z: Array, x: Pair, sign: Array) -> Array:
        return z.at[: self.inputs].set(x[0])

    def step(self, key: Key, params: Couplings, z: Array, x: Pair, sign: Array) -> Array:
        new, first = self.relax(params, z, x[0]), self.n - self.outputs
        return new.at[first:].set(jnp.where(sign > 0, x[1], new[first:]))

    def grad(self, params: Couplings, z: Array, x: Pair, sign: Array) -> Couplings:
        """dE/dtheta; one weight for each pair of units, written to both places."""
        moves = np.arange(self.n) >= self.inputs
        return Couplings(-jnp.outer(z, z) * self.mask, -z * moves)

    def predict(self, params: Couplings, inputs: Array, steps: int = 100) -> Array:
        """The output of the free network after `steps` from rest, for each row."""

        def one(x: Array) -> Array:
            rest = jnp.zeros(self.n).at[: self.inputs].set(x)
            return jax.lax.fori_loop(0, steps, lambda _, s: self.relax(params, s, x), rest)

        return jax.vmap(one)(inputs)[:, self.n - self.outputs :]
