"""Predictive coding (Rao and Ballard 1999, Whittington and Bogacz 2017): one clamped equilibrium.

Layer l predicts its own activity from the layer below, mu_l = rho(z_{l-1}) W_l + c_l (rho is not
applied to the input x), and all activities relax to lower the energy of the prediction errors

    F(z) = 1/2 sum_l |z_l - mu_l|^2        with z_L held at the target in a positive phase.

There the weights learn, dF/dW_l = -rho(z_{l-1}) e_l with e_l = z_l - mu_l: local in space and time.
A free network rests at its own feed-forward pass, where every error is zero, so that g_minus = 0: a
negative phase is possible, and a waste of time. `Clamped` leaves it out.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero
from ..core import Key
from .equilibrium_propagation import Layer, Params
from .layers import Layered, Pair, States


def predictions(params: Params, z: States, x: Array, rho: Callable[[Array], Array]) -> States:
    """mu_1, ..., mu_L."""
    below = (x, *(rho(s) for s in z[:-1]))
    return tuple(y @ layer.W + layer.c for layer, y in zip(params, below, strict=True))


def energy(params: Params, z: States, x: Array, rho: Callable[[Array], Array]) -> Array:
    """F = 1/2 sum_l |z_l - mu_l|^2."""
    mu = predictions(params, z, x, rho)
    return sum((0.5 * ((s - m) ** 2).sum() for s, m in zip(z, mu, strict=True)), jnp.zeros(()))


class PredictiveCoding(Layered):
    """Each layer predicts the next one; activities relax, and weights learn the errors that remain.

    The stimulus is a pair (input, target): `Rows((inputs, targets))`. A phase begins at the
    feed-forward pass. Each step moves the activities by -dt dF/dz. F = 1/2 sum_l |z_l - mu_l|^2,
    mu_l = rho(z_{l-1}) W_l + c_l (rho is not applied to the input), with z_L held at the target in
    a positive phase.

    Args:
        sizes: units of each layer, the input first and the output last.
        dt: step of the relaxation, in (0, 1].
        activation: rho, the activation function of the hidden layers.

    Example: predictive coding as it is usually written:

        process = Phases(Clamped(), Fixed(5))
        Run(PredictiveCoding((64, 32, 10)), process, estimators.isd, source, Optimiser(0.04))

    With `always_on` in place of `estimators.isd` weights and activities move together: incremental
    predictive coding (Salvatori et al. 2024).
    """

    dt: Array = eqx.field(
        converter=lambda v: above_zero(v, "dt, the step of the relaxation,", 1), default=0.2
    )
    activation: Callable[[Array], Array] = eqx.field(static=True, default=jax.nn.relu)

    def init(self, key: Key) -> tuple[Params, States]:
        """Weights and biases uniform within +-1/sqrt(units below)."""
        shapes = list(zip(self.sizes[:-1], self.sizes[1:], strict=True))
        params = []
        for k, shape in zip(jax.random.split(key, len(shapes)), shapes, strict=True):
            k_w, k_c = jax.random.split(k)
            bound = shape[0] ** -0.5
            params.append(
                Layer(
                    jax.random.uniform(k_w, shape, minval=-bound, maxval=bound),
                    jax.random.uniform(k_c, shape[1:], minval=-bound, maxval=bound),
                )
            )
        return tuple(params), self.rest()

    def forward(self, params: Params, x: Array) -> States:
        """The activities without any error: the feed-forward pass."""
        z = [x @ params[0].W + params[0].c]
        for layer in params[1:]:
            z.append(self.activation(z[-1]) @ layer.W + layer.c)
        return tuple(z)

    def clamp(self, z: States, target: Array, sign: Array) -> States:
        """The target in place of the last layer, in positive phases."""
        return (*z[:-1], jnp.where(sign > 0, target, z[-1]))

    def errors(self, params: Params, z: States, x: Array) -> States:
        """e_l = z_l - mu_l, layer by layer."""
        mu = predictions(params, z, x, self.activation)
        return tuple(s - m for s, m in zip(z, mu, strict=True))

    def enter(self, key: Key, params: Params, z: States, x: Pair, sign: Array) -> States:
        return self.clamp(self.forward(params, x[0]), x[1], sign)

    def step(self, key: Key, params: Params, z: States, x: Pair, sign: Array) -> States:
        """z_l += dt (-e_l + rho'(z_l) (W_{l+1} e_{l+1})), and the target where it is clamped."""
        e = self.errors(params, z, x[0])
        new = []
        for s, error, above, layer in zip(z[:-1], e[:-1], e[1:], params[1:], strict=True):
            _, slope = jax.vjp(self.activation, s)
            new.append(s + self.dt * (slope(layer.W @ above)[0] - error))
        return self.clamp((*new, z[-1] - self.dt * e[-1]), x[1], sign)

    def grad(self, params: Params, z: States, x: Pair, sign: Array) -> Params:
        """dF/dtheta, the same function in both phases: zero at the feed-forward pass."""
        below = (x[0], *(self.activation(s) for s in z[:-1]))
        errors = self.errors(params, z, x[0])
        return tuple(Layer(-jnp.outer(y, e), -e) for y, e in zip(below, errors, strict=True))

    def predict(self, params: Params, inputs: Array) -> Array:
        """The output of the feed-forward pass, for each row."""
        return jax.vmap(lambda x: self.forward(params, x)[-1])(inputs)
