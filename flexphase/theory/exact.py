"""Moments by enumeration, for small Boltzmann machines.

Both phases are at equilibrium and independent of each other.
"""

from typing import Any

import numpy as np

from ..methods.boltzmann import BoltzmannMachine
from ..methods.rbm import RBM
from .chains import binary_states
from .variance import Moments, given

LARGEST = 20  # units that are enumerated: 2^20 states


def exact_moments(method: Any, params: Any, data: Any) -> Moments:
    """A, C and the means at equilibrium, for uniformly drawn rows of the data.

    `method` is an RBM or a BoltzmannMachine. The cross term is that of independent terms.
    """
    data = np.asarray(data, float)
    if isinstance(method, RBM):
        two = _rbm(method, params, data)
    elif isinstance(method, BoltzmannMachine):
        two = _boltzmann(method, params, data)
    else:
        raise ValueError(
            f"only Boltzmann machines are enumerated, not {type(method).__name__}; "
            "measure with moments(run, params)."
        )
    (A, plus), (C, minus) = two
    return given(float(A - plus @ plus), float(C - minus @ minus), plus, minus)


def _rbm(method: RBM, params: Any, data: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """(E|g|^2, E g) of both phases; hidden units are independent given the visible ones."""
    _small(method.visible, "visible units")
    W, a, c = (np.asarray(p, float) for p in params)
    v = binary_states(method.visible)
    log_p = v @ a + np.logaddexp(0, c + v @ W).sum(1)

    def phase(v: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
        h, on = 1 / (1 + np.exp(-(c + v @ W))), v.sum(1)
        # v and h are 0 or 1: squares are themselves
        square = weight @ (on * h.sum(1) + method.visible_bias * on + h.sum(1))
        parts = [(v.T * weight @ h).ravel(), weight @ v * method.visible_bias, weight @ h]
        return square, -np.concatenate(parts)

    return [phase(data, np.full(len(data), 1 / len(data))), phase(v, _normalised(log_p))]


def _boltzmann(
    method: BoltzmannMachine, params: Any, data: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """(E|g|^2, E g) of both phases, over all states."""
    _small(method.n, "units")
    W, bias = (np.asarray(p, float) for p in params)
    z, mask = binary_states(method.n), np.asarray(method.mask, float)
    learns = np.concatenate(
        [np.full(method.visible, float(method.visible_bias)), np.ones(method.hidden)]
    )
    log_p = 0.5 * ((z @ W) * z).sum(1) + z @ bias
    clamped = np.zeros(len(z))
    for row in data:
        fits = (z[:, : method.visible] == row).all(1)
        clamped[fits] += _normalised(log_p[fits]) / len(data)

    def phase(weight: np.ndarray) -> tuple[float, np.ndarray]:
        square = weight @ (((z @ mask) * z).sum(1) + z @ learns)
        return square, -np.concatenate([((z.T * weight @ z) * mask).ravel(), (weight @ z) * learns])

    return [phase(clamped), phase(_normalised(log_p))]


def _normalised(log_p: np.ndarray) -> np.ndarray:
    p = np.exp(log_p - log_p.max())
    return p / p.sum()


def _small(n: int, what: str) -> None:
    if n > LARGEST:
        raise ValueError(
            f"{n} {what} are too many to enumerate (at most {LARGEST}); "
            "measure with moments(run, params)."
        )
