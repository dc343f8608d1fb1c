"""What a user gives is checked once, here, and answered with a sentence of advice."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

SINGLE = np.finfo(np.float32)


def _number(value: Any, what: str) -> np.ndarray | None:
    """The value as a finite array, or None where it is being traced and was checked before."""
    if isinstance(value, Tracer):
        return None
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":  # no booleans, no words
            raise TypeError
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number, not {value!r}.") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{what} must be finite, not {value!r}.")
    size = np.abs(array[array != 0], dtype=np.float64)
    if np.any((size < SINGLE.tiny) | (size > SINGLE.max)):
        raise ValueError(
            f"{what} must be 0 or between 1.2e-38 and 3.4e38 in size, the range of single "
            f"precision, not {value!r}."
        )
    return array


def count(n: Any, what: str, least: int = 1) -> int:
    """A whole number of things."""
    if isinstance(n, (bool, np.bool_)) or not isinstance(n, (int, np.integer)) or n < least:
        raise ValueError(f"{what} must be a whole number, at least {least}, not {n!r}.")
    return int(n)


def probability(b: Any, what: str = "b, the probability of a positive phase,") -> Array:
    array = _number(b, what)
    if array is not None and not np.all((array > 0) & (array.astype(np.float32) < 1)):
        raise ValueError(
            f"{what} must lie strictly between 0 and 1, not {b!r}: at 0 or 1 one of the two terms "
            "is never seen. Try 0.5."
        )
    return jnp.asarray(b, jnp.float32)


def learning_rate(eta: Any) -> Array:
    array = _number(eta, "eta, the learning rate,")
    if array is not None and np.any(array < 0):
        raise ValueError(
            f"eta, the learning rate, must not be negative, not {eta!r}: gradients are descended."
        )
    return jnp.asarray(eta, jnp.float32)


def above_zero(value: Any, what: str, most: float = np.inf) -> Array:
    """A number above 0."""
    array = _number(value, what)
    if array is not None and not np.all((array > 0) & (array <= most)):
        raise ValueError(
            f"{what} must be above 0"
            + (f" and at most {most:g}" if most < np.inf else "")
            + f", not {value!r}."
        )
    return jnp.asarray(value, jnp.float32)


def between(value: Any, what: str, low: float, high: float = np.inf) -> Array:
    """A number from low to high, both included."""
    array = _number(value, what)
    if array is not None and not np.all((array >= low) & (array <= high)):
        top = f" and at most {high:g}" if high < np.inf else ""
        raise ValueError(f"{what} must be at least {low:g}{top}, not {value!r}.")
    return jnp.asarray(value, jnp.float32)


def positive_length(tau: Any, whole: bool = False) -> Array:
    what = "a phase length"
    array = _number(tau, what)
    if array is not None and not np.all((array >= 1) & (array <= 1e8)):
        raise ValueError(f"{what} must be at least 1 tick (and at most 10^8), not {tau!r}.")
    if array is not None and whole and np.any(array != np.round(array)):
        raise ValueError(
            f"a fixed phase length must be a whole number of ticks, not {tau!r}; use "
            "Geometric(tau) for a mean length."
        )
    return jnp.asarray(tau, jnp.int32 if whole else jnp.float32)


def matrix(data: Any, binary: bool = False) -> Array:
    """A non-empty, finite (rows, features) array."""
    if isinstance(data, Tracer):
        return data
    try:
        array = np.asarray(data, dtype=np.float32)
    except (TypeError, ValueError):
        raise ValueError(
            "data must be a two-dimensional array of numbers, one row per sample."
        ) from None
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"data must be a non-empty array of shape (rows, features), not {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError("data holds NaN or infinite values; drop or fill those rows first.")
    if binary and not ((array == 0) | (array == 1)).all():
        raise ValueError(
            "a Bernoulli model needs data of zeros and ones; call binarise(data, threshold=0.5) "
            "first."
        )
    return jnp.asarray(data, jnp.float32)


def matrices(data: Any) -> Any:
    """One such array, or a tuple of them with the same number of rows."""
    if not isinstance(data, tuple):
        return matrix(data)
    arrays = jax.tree.map(matrix, data, is_leaf=lambda part: not isinstance(part, tuple))
    rows = {len(array) for array in jax.tree.leaves(arrays)}
    if len(rows) != 1:
        raise ValueError(
            f"arrays of data that belong together need the same number of rows, not {sorted(rows)}."
        )
    return arrays
