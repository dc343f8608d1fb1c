"""Eqs. 1 and 2 as they happen: the estimates that a run produces with its parameters frozen.

Random selection is included. `moments` predicts what their mean and variance should be; this
measures what they are.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core import Run
from .frozen import single
from .moments import lane_sums


class Stream(NamedTuple):
    """Per lane: the mean estimate and the mean of its squared length."""

    mean: np.ndarray  # (lanes, d)
    square: np.ndarray  # (lanes,)

    def trace(self) -> tuple[float, float]:
        """Tr cov of the estimate and its jackknife error over lanes."""
        n = len(self.square)
        keep = np.concatenate([np.ones((1, n)), 1 - np.eye(n)])
        gram = self.mean @ self.mean.T
        np.fill_diagonal(gram, 0)
        lanes = keep.sum(1)
        values = keep @ self.square / lanes - ((keep @ gram) * keep).sum(1) / (lanes * (lanes - 1))
        return float(values[0]), float(np.sqrt((n - 1) * np.var(values[1:])))


def stream(run: Run, params: Any, *, phases: int = 500, lanes: int = 512, seed: int = 0) -> Stream:
    """The estimates of `phases` phases in each lane, at frozen `params`.

    ISD makes one estimate per phase, the two-term rule one per pair.
    """
    sums = lane_sums(run, params, phases=phases, lanes=lanes, seed=seed)
    n = sums.phases.sum(1)
    if not single(run):
        g = (sums.first[:, 0] - sums.first[:, 1]) / sums.pairs[:, None]
        return Stream(g, (sums.second.sum(1) - 2 * sums.cross) / sums.pairs)
    b = float(run.process.b)
    weight = np.array([1 / b, -1 / (1 - b)])
    return Stream(
        np.einsum("kid,i->kd", sums.first, weight) / n[:, None], sums.second @ weight**2 / n
    )


def deviation(a: np.ndarray, b: np.ndarray, directions: int = 8) -> float:
    """Largest |z| of the difference of two sets of lanes' mean vectors, (lanes, d) each.

    Seen along fixed random directions, or along every axis if there are few.
    """
    d = a.shape[1]
    random = jax.random.normal(jax.random.key(11), (directions, d), jnp.float32)
    look = np.eye(d) if d <= directions else np.asarray(random, float)
    a, b = a @ look.T, b @ look.T
    error = np.sqrt(a.var(0, ddof=1) / len(a) + b.var(0, ddof=1) / len(b))
    gap = np.abs(a.mean(0) - b.mean(0))
    return float(np.max(gap[error > 1e-9] / error[error > 1e-9], initial=0.0))


def fitted_b(b: np.ndarray, trace: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """b* and its error from simulated traces alone: fit Tr = A/b + C/(1-b) - M to them."""
    columns = np.stack([1 / b, 1 / (1 - b), -np.ones_like(b)], 1) / error[:, None]
    A, C, _ = np.linalg.lstsq(columns, trace / error, rcond=None)[0]
    covariance = np.linalg.inv(columns.T @ columns)
    rA, rC = np.sqrt(A), np.sqrt(C)
    slope = np.array([rC / rA, -rA / rC]) / (2 * (rA + rC) ** 2)
    return float(rA / (rA + rC)), float(np.sqrt(slope @ covariance[:2, :2] @ slope))


def second_differences(b: np.ndarray, trace: np.ndarray, error: np.ndarray) -> np.ndarray:
    """z-scores of the divided second differences of the curve: all positive if it is convex."""
    h0, h1 = np.diff(b)[:-1], np.diff(b)[1:]
    weights = np.stack([1 / h0, -(1 / h0 + 1 / h1), 1 / h1])
    parts = np.stack([trace[:-2], trace[1:-1], trace[2:]])
    errors = np.stack([error[:-2], error[1:-1], error[2:]])
    return (weights * parts).sum(0) / np.sqrt((weights**2 * errors**2).sum(0))
