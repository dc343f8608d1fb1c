"""Units as a circuit computes them: noisy reads of the weights, activity of few levels."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero, from_zero
from ..core import Key, Method, PyTree, declares
from ..methods.binary import Units
from .limits import limit, whole_bits
from .synapses import normal

READ = 0x52454144  # the key of the read noise, far from the keys that methods make of their own


class Circuit(eqx.Module):
    """A method whose network reads its weights with noise, or whose units have few levels.

    Args:
        method: the method.
        read_noise: standard deviation that is added to every weight, afresh at every tick; the
            local term is taken from the activity that comes out.
        activity_bits: units take 2^bits levels from 0 to `activity_range`; for methods with graded
            units (units that are 0 or 1 have one bit anyway, and are refused).
        activity_range: the highest activity.

    Example: `Run(Circuit(RBM(16, 16), read_noise=0.1), *aol(0.5, 100), source, Optimiser(0.01))`.
    """

    method: Method
    read_noise: Array | None = limit(from_zero, "the read noise of a circuit")
    activity_bits: Array | None = limit(whole_bits, "the bits of the activity", 1)
    activity_range: Array = eqx.field(
        converter=lambda v: above_zero(v, "the range of the activity"), default=1.0
    )

    @property
    def graded(self) -> bool:
        """Whether the method can follow signs between -1 and 1."""
        return declares(self.method, "graded")

    def check(self, x: PyTree) -> None:
        self.method.check(x)
        z = jax.eval_shape(self.method.init, jax.random.key(0))[1]
        if self.activity_bits is not None and isinstance(z, Units):
            raise ValueError(
                f"the units of {type(self.method).__name__} are 0 or 1, which is one bit already; "
                "leave activity_bits out."
            )

    def init(self, key: Key) -> tuple[PyTree, PyTree]:
        return self.method.init(key)

    def read(self, key: Key, params: PyTree) -> PyTree:
        """The weights as this tick sees them."""
        if self.read_noise is None:
            return params
        xi = normal(jax.random.fold_in(key, READ), params)
        return jax.tree.map(lambda w, noise: w + self.read_noise * noise, params, xi)

    def levelled(self, z: PyTree) -> PyTree:
        """The activity at the nearest of its levels."""
        if self.activity_bits is None:
            return z
        highest, top = jnp.exp2(self.activity_bits) - 1, self.activity_range
        return jax.tree.map(
            lambda s: jnp.clip(jnp.round(s / top * highest), 0, highest) * top / highest, z
        )

    def enter(self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        return self.levelled(self.method.enter(key, self.read(key, params), z, x, sign))

    def step(self, key: Key, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        return self.levelled(self.method.step(key, self.read(key, params), z, x, sign))

    def grad(self, params: PyTree, z: PyTree, x: PyTree, sign: Array) -> PyTree:
        return self.method.grad(params, z, x, sign)
