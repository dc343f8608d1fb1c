"""Fields that hold a limit of hardware: a number that `grid` may sweep, or None for no limit."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from jax.core import Tracer

from ..checks import between

MOST_BITS = 23  # beyond, float32 cannot tell the highest levels from what lies half-way between


def limit(check: Callable[..., Array], what: str, *bounds: float) -> Any:
    """A field that is None or a number that `check(value, what, *bounds)` lets through."""
    return eqx.field(
        converter=lambda value: None if value is None else check(value, what, *bounds), default=None
    )


def whole_bits(value: Any, what: str, least: int) -> Array:
    """A whole number of bits, from `least` on."""
    bits = between(value, what, least, MOST_BITS)
    if not isinstance(bits, Tracer) and np.any(np.asarray(bits) % 1 != 0):
        raise ValueError(f"{what} must be a whole number, not {value!r}.")
    return bits
