"""What a user gives is checked once, here, and answered with a sentence of advice."""

from collections.abc import Iterable
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


def one_of(choice: Any, known: Iterable[str], what: str) -> None:
    """A word from a list."""
    if choice not in (names := tuple(known)):
        raise ValueError(f"{what} must be one of {', '.join(names)}, not {choice!r}.")


def layer_sizes(sizes: tuple[int, ...]) -> None:
    """The units of each layer, the input first."""
    if len(sizes) < 2:
        raise ValueError(
            "sizes must name the input and at least one layer, such as (64, 32, 10), not "
            f"{sizes!r}."
        )
    for size in sizes:
        count(size, "a layer's size")


def probability(b: Any, what: str = "b, the probability of a positive phase,") -> Array:
    array = _number(b, what)
    if array is not None and not np.all((array > 0) & (array.astype(np.float32) < 1)):
        raise ValueError(
            f"{what} must lie strictly between 0 and 1, not {b!r}: at 0 or 1 one of the two terms "
            "is never seen. Try 0.5."
        )
    return jnp.asarray(b, jnp.float32)


def stay(p: Any, what: str) -> Array:
    """The probability that a sign stays as it is."""
    array = _number(p, what)
    if array is not None and not np.all((array >= 0) & (array.astype(np.float32) < 1)):
        raise ValueError(
            f"{what}, the probability that the sign stays as it is, must be at least 0 and below "
            f"1, not {p!r}: at 1 it would never change."
        )
    return jnp.asarray(p, jnp.float32)


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


def from_zero(value: Any, what: str) -> Array:
    """A number that is not negative."""
    return between(value, what, 0)


def at_least_one(value: Any, what: str) -> Array:
    """A mean of whole numbers from 1 on."""
    array = _number(value, what)
    if array is not None and not np.all((array >= 1) & (array <= 1e8)):
        raise ValueError(f"{what} must be at least 1 (and at most 10^8), not {value!r}.")
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


def spread(mean: Any, cv: Any, name: str) -> tuple[Array, Array]:
    """The mean, in ticks, and the coefficient of variation of random lengths."""
    tau, ratio = _number(mean, f"the mean of {name}"), _number(cv, f"the cv of {name}")
    if tau is not None and not np.all((tau > 1) & (tau <= 1e8)):
        raise ValueError(
            f"the mean of {name} must be above 1 tick (and at most 10^8), not {mean!r}: a phase "
            "lasts at least one tick, so a mean of 1 leaves no room to vary; use Fixed(1)."
        )
    if ratio is not None and not np.all((ratio > 0) & (ratio <= 10)):
        raise ValueError(
            f"the cv of {name}, standard deviation over mean, must be above 0 and at most 10, not "
            f"{cv!r}; use Fixed for equal lengths."
        )
    if tau is not None and ratio is not None and np.any(ratio * tau > 20 * (tau - 1)):
        raise ValueError(
            f"a {name} of mean {mean!r} cannot vary by cv = {cv!r}: a phase lasts at least one "
            "tick; take a longer mean or a smaller cv."
        )
    return jnp.asarray(mean, jnp.float32), jnp.asarray(cv, jnp.float32)


def sample_of_lengths(samples: Any) -> Array:
    """Measured phase lengths, in ticks."""
    if isinstance(samples, Tracer):
        return samples
    array = _number(samples, "a sample of phase lengths")
    if array is None or array.ndim != 1 or not len(array):
        raise ValueError(
            f"lengths must be a list of at least one number of ticks, not {samples!r}."
        )
    if not ((array >= 1) & (array <= 1e8)).all():
        raise ValueError(
            f"phase lengths must be at least 1 tick (and at most 10^8), not {array.min():g} to "
            f"{array.max():g}; seconds become ticks when multiplied by ticks per second."
        )
    return jnp.asarray(array, jnp.float32)


def whole_count(n: Any, what: str) -> Array:
    """A whole number of things that may differ between lanes."""
    array = _number(n, what)
    if array is not None and np.any((array < 1) | (array != np.round(array)) | (array > 1e8)):
        raise ValueError(f"{what} must be a whole number, at least 1, not {n!r}.")
    return jnp.asarray(n, jnp.int32)


def matrix(data: Any, binary: bool = False) -> Array:
    """A non-empty, finite (rows, features) array."""
    if isinstance(data, Tracer):
        return data
    try:
        array = np.asarray(data)
    except (TypeError, ValueError):
        raise ValueError(
            "data must be a two-dimensional array of numbers, one row per sample."
        ) from None
    if array.dtype.kind not in "biuf" and not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(
            f"data must be real numbers, one row per sample, not {array.dtype}; convert them first."
        )
    array = array.astype(np.float32)
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
    return jnp.asarray(array)


def zeros_and_ones(data: Any) -> Array:
    """A (rows, features) array of zeros and ones."""
    return matrix(data, binary=True)


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


def budget(mean_length: Any, ticks: int | None, phases: int | None) -> int:
    """Ticks to run, from ticks or from phases x mean phase length."""
    if (ticks is None) == (phases is None):
        raise ValueError("give either ticks= or phases=, the length of training.")
    if phases is not None:
        phases = count(phases, "phases")
        lengths = np.unique(np.asarray(mean_length))
        if len(lengths) > 1:
            raise ValueError(
                "the lanes have different mean phase lengths, so one number of phases is many "
                "numbers of ticks; give ticks=."
            )
        ticks = round(phases * float(lengths[0]))
    ticks = count(ticks, "ticks")
    if ticks >= 2**31:
        raise ValueError(
            f"training must last fewer than 2^31 ticks, not {ticks}; train longer in several runs."
        )
    return ticks


def check_end(ends: int | None, ticks: int) -> None:
    """Phases that end, such as a record that does not repeat, must last as long as training."""
    if ends is not None and ticks > ends:
        raise ValueError(
            f"the phases end after {ends} ticks, and training would last {ticks}; train for fewer, "
            "or repeat a record: Recorded(..., after='repeat')."
        )


def whole_labels(labels: Any, rows: int, classes: int | None = None) -> np.ndarray:
    """One whole number in 0 .. classes - 1 for each row; from 0 on where classes are not known."""
    array = np.asarray(labels)
    if array.shape != (rows,):
        raise ValueError(
            f"{rows} images need {rows} labels in a one-dimensional array, not one of shape "
            f"{array.shape}."
        )
    most = np.inf if classes is None else count(classes, "classes") - 1
    real = array.dtype.kind in "iuf"
    if not real or ((array < 0) | (array > most) | (array % 1 != 0)).any():
        top = "on" if classes is None else f"to {classes - 1}"
        raise ValueError(
            f"labels must be whole numbers from 0 {top}; count the classes from 0, or "
            "give classes= as many as there are."
        )
    return array.astype(np.int32)
