"""Harmonium (Smolensky 1986; Welling, Rosen-Zvi and Hinton 2004): an RBM with visible units of any
kind, and binary hidden ones.

    E(v, h) = base(v) - a v - c h - v W h        p(v, h) proportional to exp(-E)

Both terms are -(v h^T, v, h), as for the RBM; what differs is how v is drawn, which is said by
`units` (see `units.py`). With Gaussian units p(v) is a mixture of 2^hidden Gaussians of one width.
"""

from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import count, one_of
from ..core import Key
from . import binary
from .binary import NegativeStart, Units, bernoulli
from .rbm import Params, biased, p_hidden
from .units import VisibleUnits


def interaction(params: Params, v: Array, h: Array) -> Array:
    """a v + c h + v W h, the part of -E that the parameters make."""
    return params.a @ v + params.c @ h + v @ params.W @ h


def energy(units: VisibleUnits, params: Params, v: Array, h: Array) -> Array:
    return units.base(v) - interaction(params, v, h)


def free_energy(units: VisibleUnits, params: Params, v: Array) -> Array:
    """F(v) = base(v) - a v - sum_j softplus(c_j + (v W)_j); v may have leading axes."""
    drive = jax.nn.softplus(biased(v @ params.W, params.c)).sum(-1)
    return units.base(v) - v @ params.a - drive


class Harmonium(eqx.Module):
    """An RBM whose visible units are `units`, with `hidden` hidden units of 0 and 1.

    One step is that of `RBM`: visible given hidden where free, then hidden given visible.

    Args:
        units: the visible units: `BinaryUnits`, `GaussianUnits`, `SoftmaxUnits` or `MixedUnits`.
        hidden: number of hidden units, at least 1.
        negative_start: where the chain of a negative phase begins, as in `RBM`; with `random` the
            visible units are drawn at a field of 0.
        scale: standard deviation of the initial weights; biases begin at 0.

    Example, pixels with a label:

        units = MixedUnits((GaussianUnits(64, sigma=0.5), SoftmaxUnits(10)))
        Run(Harmonium(units, 32), *cd(10), Rows(append_labels(images, labels)), Optimiser(0.01))
    """

    units: VisibleUnits
    hidden: int = eqx.field(static=True)
    negative_start: NegativeStart = eqx.field(static=True, default="carry")
    scale: float = eqx.field(static=True, default=0.01)

    def __check_init__(self):
        count(self.hidden, "hidden")
        one_of(self.negative_start, get_args(NegativeStart), "negative_start")

    @property
    def visible(self) -> int:
        """How many visible units."""
        return self.units.n

    def check(self, x: Any) -> None:
        self.units.check(x)

    def init(self, key: Key) -> tuple[Params, Units]:
        k_w, k_z = jax.random.split(key)
        W = self.scale * jax.random.normal(k_w, (self.visible, self.hidden))
        z = binary.first(*self.fresh(k_z), self.negative_start)
        return Params(W, jnp.zeros(self.visible), jnp.zeros(self.hidden)), z

    def fresh(self, key: Key) -> tuple[Array, Array]:
        """A random state, whatever the parameters."""
        k_v, k_h = jax.random.split(key)
        h = bernoulli(jax.random.uniform(k_h, (self.hidden,)), 0.5)
        return self.units.draw(k_v, jnp.zeros(self.visible)), h

    def gibbs(
        self, key: Key, params: Params, v: Array, h: Array, x: Array, clamped: Array
    ) -> tuple[Array, Array]:
        """Visible given hidden, where not clamped to x; then hidden given visible."""
        k_v, k_h = jax.random.split(key)
        v = jnp.where(clamped, x, self.units.draw(k_v, params.a + params.W @ h))
        return v, bernoulli(jax.random.uniform(k_h, h.shape), p_hidden(params, v))

    def enter(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        return binary.enter(self, key, params, z, x, sign)

    def step(self, key: Key, params: Params, z: Units, x: Array, sign: Array) -> Units:
        return binary.step(self, key, params, z, x, sign)

    def grad(self, params: Params, z: Units, x: Array, sign: Array) -> Params:
        """dE/dtheta at the sampled state: the same function in both phases."""
        return Params(-jnp.outer(z.v, z.h), -z.v, -z.h)
