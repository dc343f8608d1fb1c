"""Noise-contrastive estimation (Gutmann and Hyvarinen): learn a density by telling it from noise.

The model is any log f(theta, x), not normalised: its log Z is a parameter like the others. With nu
noise samples for each datum and the noise density p_n, a sample is a datum with probability h(x) =
sigmoid(log f(x) - log p_n(x) - log nu), and

    g_plus  = -grad log h       = -(1 - h) d log f / d theta         at a datum
    g_minus = nu grad log(1 - h) = -nu h   d log f / d theta         at a noise sample

descend the log loss of that classification, -E log h - nu E log(1 - h).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import above_zero, matrix, probability
from ..core import Key, PyTree
from . import rbm
from .binary import bernoulli


class Noise(Protocol):
    """A distribution to sample from, with a known density."""

    @property
    def features(self) -> int: ...  # numbers in a sample
    def sample(self, key: Key) -> Array: ...  # -> (features,)
    def log_density(self, x: Array) -> Array: ...  # of one sample


class GaussianNoise(eqx.Module):
    """Independent normal variables: feature i is N(mean_i, scale_i^2).

    Args:
        scale: a number above 0 for each feature, or one number for one feature.
        mean: a number for each feature, or one for all.
    """

    scale: Array
    mean: Array

    def __init__(self, scale: Any, mean: Any = 0.0):
        self.scale = jnp.atleast_1d(above_zero(scale, "scale, the noise's standard deviation,"))
        self.mean = jnp.asarray(mean, jnp.float32)
        if self.scale.ndim != 1 or self.mean.shape not in ((), self.scale.shape):
            raise ValueError(
                "mean and scale of the noise need one number for each feature, not shapes "
                f"{self.mean.shape} and {self.scale.shape}."
            )
        self.mean = jnp.broadcast_to(self.mean, self.scale.shape)

    @property
    def features(self) -> int:
        return len(self.scale)

    def sample(self, key: Key) -> Array:
        return self.mean + self.scale * jax.random.normal(key, self.scale.shape)

    def log_density(self, x: Array) -> Array:
        return jax.scipy.stats.norm.logpdf(x, self.mean, self.scale).sum()


class CoinNoise(eqx.Module):
    """Independent zeros and ones, x_i = 1 with probability p_i: noise for binary data.

    Args:
        p: one for each feature, strictly between 0 and 1.
    """

    p: Array = eqx.field(converter=lambda p: probability(p, "p, the probability of a one,"))

    @property
    def features(self) -> int:
        return len(self.p)

    def sample(self, key: Key) -> Array:
        return bernoulli(jax.random.uniform(key, self.p.shape), self.p)

    def log_density(self, x: Array) -> Array:
        return (x * jnp.log(self.p) + (1 - x) * jnp.log1p(-self.p)).sum()


class Precision(NamedTuple):
    """Parameters of exp(-lambda |x|^2 / 2 + c), a normal density where c = -log Z(lambda)."""

    lam: Array
    c: Array


def log_normal(params: Precision, x: Array) -> Array:
    """log f = -lambda |x|^2 / 2 + c."""
    return params.c - 0.5 * params.lam * (x @ x)


class Machine(NamedTuple):
    """Parameters of an RBM that knows its own normaliser."""

    rbm: rbm.Params
    c: Array


class MachineStart(eqx.Module):
    """The parameters of a new machine: small random weights, and the c of one without weights.

    Args:
        machine: the RBM.
    """

    machine: rbm.RBM

    def __call__(self, key: Key) -> Machine:
        units = self.machine.visible + self.machine.hidden
        return Machine(self.machine.init(key)[0], jnp.float32(-np.log(2) * units))


def log_machine(params: Machine, v: Array) -> Array:
    """log f = c - F(v), an RBM's log-likelihood where c = -log Z: learned without any sampling."""
    return params.c - rbm.free_energy(params.rbm, v)


class NCE(eqx.Module):
    """Learn a density, not normalised, by telling data from noise.

    A positive phase shows a datum (`Rows(data)`), every tick of a negative one draws a new noise
    sample.

    Args:
        log_f: log_f(params, x) is one number, the logarithm of the density at one row x.
        start: the first parameters, the same in every lane; or an eqx.Module that makes them from
            a key, such as `MachineStart`.
        noise: `GaussianNoise`, `CoinNoise`, or your own with `features`, `sample` and
            `log_density`. It must be possible wherever data is.
        nu: noise samples for each datum in the loss, above 0. The phases say how often noise is
            shown, and any b descends the same loss. At b = 1/(1 + nu) both terms weigh the same,
            1/b = nu/(1-b) = 1 + nu: logistic regression as it is usually written.

    Example: `NCE(log_f, params, GaussianNoise(np.ones(2)), nu=10)`, where params are those of log_f
    to start from.
    """

    log_f: Callable[[Any, Array], Array] = eqx.field(static=True)
    start: PyTree
    noise: Noise
    nu: Array = eqx.field(
        converter=lambda v: above_zero(v, "nu, noise samples for each datum,"), default=1.0
    )

    def check(self, x: Any) -> None:
        if isinstance(x, tuple):
            raise ValueError("this method learns the density of one array; use Rows(data).")
        rows = matrix(x)
        if rows.shape[1] != self.noise.features:
            raise ValueError(
                f"the data has {rows.shape[1]} columns and the noise {self.noise.features}; make "
                "the two agree."
            )
        start = self.init(jax.random.key(0))[0]
        value = jax.eval_shape(self.log_f, start, rows[0])
        if value.shape != ():
            raise ValueError(
                f"log_f must return one number for one row, not an array of shape {value.shape}."
            )
        if not np.isfinite(jax.vmap(self.log_ratio, (None, 0))(start, rows)).all():
            raise ValueError(
                "log f - log p_n is not finite on some rows; the noise must be possible wherever "
                "data is, and log_f finite at the first parameters."
            )

    def init(self, key: Key) -> tuple[PyTree, Array]:
        start = self.start(key) if callable(self.start) else self.start
        return jax.tree.map(jnp.asarray, start), jnp.zeros(self.noise.features)

    def log_ratio(self, params: PyTree, x: Array) -> Array:
        """log f(x) - log p_n(x): positive where the model finds data likelier than noise."""
        return self.log_f(params, x) - self.noise.log_density(x)

    def enter(self, key: Key, params: PyTree, z: Array, x: Array, sign: Array) -> Array:
        return z

    def step(self, key: Key, params: PyTree, z: Array, x: Array, sign: Array) -> Array:
        return jnp.where(sign > 0, x, self.noise.sample(key))

    def grad(self, params: PyTree, z: Array, x: Array, sign: Array) -> PyTree:
        log_ratio, slope = jax.value_and_grad(self.log_ratio)(params, z)
        odds = log_ratio - jnp.log(self.nu)
        weight = jnp.where(sign > 0, jax.nn.sigmoid(-odds), self.nu * jax.nn.sigmoid(odds))
        return jax.tree.map(lambda s: -weight * s, slope)
