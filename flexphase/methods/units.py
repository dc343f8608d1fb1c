"""Visible units of a harmonium: what p(v | h) is when the units receive a field f = a + W h.

All have the same law, p(v | f) proportional to exp(f v - base(v)), and differ in the values that v
takes and in base(v):

    BinaryUnits      0 or 1                    base 0
    SoftmaxUnits     one of n is 1, others 0   base 0
    GaussianUnits    real numbers              base v^2 / (2 sigma^2): v is N(sigma^2 f, sigma^2)
    MixedUnits       several of these side by side, such as pixels and a label
"""

import itertools
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..checks import above_zero, count, matrix
from ..core import Key
from .binary import bernoulli, check_rows


class VisibleUnits(Protocol):
    """Fields and values may have leading axes; sums are over the last one."""

    @property
    def n(self) -> int: ...  # how many
    def check(self, rows: Any) -> None: ...  # ValueError if units cannot take these values
    def draw(self, key: Key, field: Array) -> Array: ...  # v ~ p(v | field)
    def base(self, v: Array) -> Array: ...  # the energy of v by itself
    def log_sum(self, field: Array) -> Array: ...  # log of the sum over v of exp(field v - base(v))


class BinaryUnits(eqx.Module):
    """n units that are 0 or 1.

    Args:
        n: number of units, at least 1.
    """

    n: int = eqx.field(static=True)

    def __check_init__(self):
        count(self.n, "the number of binary units")

    def check(self, rows: Any) -> None:
        check_rows(rows, self.n)

    def draw(self, key: Key, field: Array) -> Array:
        return bernoulli(jax.random.uniform(key, field.shape), jax.nn.sigmoid(field))

    def base(self, v: Array) -> Array:
        return jnp.zeros(v.shape[:-1])

    def log_sum(self, field: Array) -> Array:
        return jax.nn.softplus(field).sum(-1)


class SoftmaxUnits(eqx.Module):
    """n units of which exactly one is 1: a label.

    Args:
        n: number of units, at least 2: the classes.
    """

    n: int = eqx.field(static=True)

    def __check_init__(self):
        count(self.n, "the number of softmax units", 2)

    def check(self, rows: Any) -> None:
        check_rows(rows, self.n)
        if not (np.asarray(rows).sum(-1) == 1).all():
            raise ValueError(
                "softmax units stand for a label: exactly one of them is 1 in every row; make them "
                "with append_labels(images, labels)."
            )

    def draw(self, key: Key, field: Array) -> Array:
        return jax.nn.one_hot(jax.random.categorical(key, field), self.n)

    def base(self, v: Array) -> Array:
        return jnp.zeros(v.shape[:-1])

    def log_sum(self, field: Array) -> Array:
        return jax.nn.logsumexp(field, -1)


class GaussianUnits(eqx.Module):
    """n real numbers with standard deviation sigma given the hidden units.

    Args:
        n: number of units, at least 1.
        sigma: above 0, and not learned: 1 suits data that were standardised; take less where
            clusters are narrow.
    """

    n: int = eqx.field(static=True)
    sigma: Array = eqx.field(
        converter=lambda v: above_zero(v, "sigma, the standard deviation of Gaussian units,"),
        default=1.0,
    )

    def __check_init__(self):
        count(self.n, "the number of Gaussian units")

    def check(self, rows: Any) -> None:
        if (columns := matrix(rows).shape[1]) != self.n:
            raise ValueError(
                f"the data has {columns} columns for {self.n} Gaussian units; make them with "
                f"n={columns}."
            )

    def draw(self, key: Key, field: Array) -> Array:
        return self.sigma**2 * field + self.sigma * jax.random.normal(key, field.shape)

    def base(self, v: Array) -> Array:
        return (v**2).sum(-1) / (2 * self.sigma**2)

    def log_sum(self, field: Array) -> Array:
        """The integral over v of a Gaussian, in closed form."""
        each = 0.5 * self.sigma**2 * field**2 + 0.5 * jnp.log(2 * jnp.pi * self.sigma**2)
        return each.sum(-1)


class MixedUnits(eqx.Module):
    """Units of several kinds side by side: `MixedUnits((GaussianUnits(64), SoftmaxUnits(10)))`.

    Args:
        parts: the units of each kind, in the order of their columns in the data.
    """

    parts: tuple[Any, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        if not self.parts:
            raise ValueError(
                "mixed units need at least one part, such as (GaussianUnits(64), SoftmaxUnits(10))."
            )

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    def split(self, v: Any) -> list[Any]:
        """The columns of each part."""
        ends = np.cumsum([0, *(part.n for part in self.parts)])
        return [v[..., a:b] for a, b in itertools.pairwise(ends)]

    def check(self, rows: Any) -> None:
        if (columns := matrix(rows).shape[1]) != self.n:
            raise ValueError(
                f"the data has {columns} columns and the machine {self.n} visible units, "
                f"{' and '.join(str(part.n) for part in self.parts)}; make the two agree."
            )
        for part, own in zip(self.parts, self.split(np.asarray(rows)), strict=True):
            part.check(own)

    def draw(self, key: Key, field: Array) -> Array:
        keys = jax.random.split(key, len(self.parts))
        drawn = zip(self.parts, keys, self.split(field), strict=True)
        return jnp.concatenate([part.draw(k, own) for part, k, own in drawn], -1)

    def base(self, v: Array) -> Array:
        parts = zip(self.parts, self.split(v), strict=True)
        return sum((part.base(own) for part, own in parts), jnp.zeros(v.shape[:-1]))

    def log_sum(self, field: Array) -> Array:
        parts = zip(self.parts, self.split(field), strict=True)
        return sum((part.log_sum(own) for part, own in parts), jnp.zeros(field.shape[:-1]))
