"""Where stimuli come from (eq. 5, line 2)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..checks import matrix
from ..core import Key


def pick(key: Key, rows: int) -> Array:
    """A uniform row number."""
    return jnp.minimum((jax.random.uniform(key) * rows).astype(jnp.int32), rows - 1)


class Rows(eqx.Module):
    """A fresh random row of the data at each positive phase; a negative phase keeps the last one (free networks ignore it)."""

    data: Array = eqx.field(converter=matrix)

    def init(self, key: Key) -> Array:
        return self.data[pick(key, len(self.data))]

    def __call__(self, key: Key, sign: Array, x: Any) -> Array:
        return jnp.where(sign > 0, self.init(key), x)
