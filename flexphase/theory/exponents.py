"""Exponents: the slope of log |bias| against log eta or log tau, with a confidence interval."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student


class Exponent(NamedTuple):
    """A fitted slope with its interval."""

    slope: float
    low: float  # 95 % confidence interval
    high: float

    def __str__(self) -> str:
        return f"{self.slope:.3f} [{self.low:.3f}, {self.high:.3f}]"


def exponent(x: Any, y: Any, se: Any = 0.0) -> Exponent:
    """Least squares of log|y| on log x; `se` are standard errors of y, if it has any.

    The interval takes the larger of the stated errors and the scatter about the line, so that
    curvature, which is what a wrong exponent looks like, widens it.
    """
    x, y = np.log(np.asarray(x, float)), np.asarray(y, float)
    if len(x) < 3 or np.any(y == 0) or not np.all(np.isfinite(y)):
        raise ValueError("an exponent needs at least three finite values that are not zero.")
    error = np.broadcast_to(np.abs(np.asarray(se, float) / y), y.shape)
    weight = 1 / error**2 if np.all(error > 0) else np.ones(len(y))
    weight = weight / weight.sum()
    centre = x - weight @ x
    spread = weight @ centre**2
    slope = weight @ (centre * np.log(np.abs(y))) / spread
    rest = np.log(np.abs(y)) - weight @ np.log(np.abs(y)) - slope * centre
    scatter = np.sqrt(weight @ rest**2 / (len(x) - 2) / spread)
    stated = np.sqrt((weight**2 * centre**2) @ error**2) / spread
    half = max(student.ppf(0.975, len(x) - 2) * scatter, 1.96 * stated)
    return Exponent(float(slope), float(slope - half), float(slope + half))


def along(samples: np.ndarray, direction: np.ndarray) -> tuple[float, float]:
    """Mean and standard error of the samples' component along a direction."""
    values = samples @ (direction / np.linalg.norm(direction))
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
