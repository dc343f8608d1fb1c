"""A deep energy-based model of points: E(z) = |z|^2 / (2 width^2) + network(z), and its exact NLL
in the plane.

The quadratic part keeps exp(-E) normalisable; a network of zeros is a Gaussian.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import above_zero, count, matrix
from ..core import Key, PyTree
from .binary import NegativeStart
from .energy import EnergyModel
from .samplers import Langevin, Sampler

WIDTH = 2.0  # standard deviation of the untrained model


class Dense(NamedTuple):
    W: Array  # (units below, units)
    c: Array


def deep_energy(params: tuple[Dense, ...], z: Array, x: Any) -> Array:
    """Layers of silu units; the last layer is the energy. The stimulus plays no part."""
    h = z
    for layer in params[:-1]:
        h = jax.nn.silu(h @ layer.W + layer.c)
    last = params[-1]
    return (z @ z) / (2 * WIDTH**2) + (h @ last.W + last.c).sum()


class DeepStart(eqx.Module):
    """Weights N(0, 1 / units below), those of the last layer 0; biases 0; a point N(0, width^2).
    The first layer is three times as steep, with biases N(0, 1), so that its units differ at the
    scale of the data.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, key: Key) -> tuple[tuple[Dense, ...], Array]:
        k_z, k_c, *keys = jax.random.split(key, len(self.sizes) + 1)
        layers = [
            Dense(jax.random.normal(k, n) / n[0] ** 0.5, jnp.zeros(n[1]))
            for k, n in zip(keys, itertools.pairwise(self.sizes), strict=True)
        ]
        layers[0] = Dense(3 * layers[0].W, jax.random.normal(k_c, layers[0].c.shape))
        layers.append(Dense(jnp.zeros((self.sizes[-1], 1)), jnp.zeros(1)))
        return tuple(layers), WIDTH * jax.random.normal(k_z, self.sizes[:1])


def everything(z: Array, x: Array) -> Array:
    """All units are visible: a positive phase shows the datum."""
    return x


def deep_energy_model(
    sizes: tuple[int, ...] = (2, 64, 64),
    sampler: Sampler | None = None,
    negative_start: NegativeStart = "persistent",
) -> EnergyModel:
    """E(z) = |z|^2 / 8 + network(z) as a method. A network of zeros is a Gaussian of sd 2.

    Args:
        sizes: the dimension of a datum, then the units of each hidden layer.
        sampler: as in `EnergyModel` (default: `Langevin(0.01)`).
        negative_start: as in `EnergyModel`.

    Example, with mini-batches of 32:

        Run(
            Replicas(deep_energy_model(), 32), *cd(20),
            Batches(Rows(two_moons().draw()), 32), Optimiser(0.003, optax.adam),
        )
    """
    if len(sizes) < 2:
        raise ValueError(
            f"sizes must name the dimension of a datum and at least one hidden layer, such as "
            f"(2, 64, 64), not {sizes!r}."
        )
    start = DeepStart(tuple(count(size, "a layer's size") for size in sizes))
    return EnergyModel(
        deep_energy, start, sampler or Langevin(0.01), everything, negative_start=negative_start
    )


class GridNLL(eqx.Module):
    """Exact negative log-likelihood of points in the plane, in nats PER ROW: a metric for `train`.

    It is the mean of E over the data + log Z, where Z sums exp(-E) over the squares of a grid. The
    error of the sum is that of the midpoint rule, and what lies beyond the grid.

    Args:
        data: (rows, 2) points.
        energy: a function (params, z, x) that ignores x (default: that of `deep_energy_model`).
        points: squares along each axis of the grid, at least 2.
        reach: the grid lies within -reach and +reach on both axes.
    """

    data: Array
    energy: Callable[[PyTree, Array, Any], Array] = eqx.field(static=True)
    points: int = eqx.field(static=True)
    reach: Array

    def __init__(
        self, data: Any, energy: Callable = deep_energy, points: int = 200, reach: float = 8.0
    ):
        self.data, self.energy = matrix(data), energy
        self.points, self.reach = count(points, "points", 2), above_zero(reach, "reach")
        if self.data.shape[1] != 2:
            raise ValueError(
                f"a grid is for points in the plane, with 2 columns, not {self.data.shape[1]}."
            )

    def __call__(self, params: PyTree) -> Array:
        def energies(rows: Array) -> Array:
            return jax.vmap(lambda z: self.energy(params, z, z))(rows)

        side = 2 * self.reach / self.points
        axis = side * (jnp.arange(self.points) + 0.5) - self.reach

        def line(y: Array) -> Array:
            row = jnp.stack([axis, jnp.broadcast_to(y, axis.shape)], 1)
            return jax.nn.logsumexp(-energies(row))

        log_z = jax.nn.logsumexp(jax.lax.map(line, axis)) + 2 * jnp.log(side)
        return energies(self.data).mean() + log_z
