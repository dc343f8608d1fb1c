"""Densities of points in the plane whose logarithm is known: two moons, rings, a mixture.

Each is a mixture of equally likely Gaussians with one width. Where the centres lie densely on a
curve, the mixture looks like a smeared curve; its density is exact all the same.
"""

from typing import Any, NamedTuple

import numpy as np

from ..checks import above_zero, count, matrix

ON_A_CURVE = 256  # centres along one curve; their distance is far below the noise


class Planar(NamedTuple):
    """p(x) = mean over k of N(x; centre_k, noise^2).

    Args:
        centres: (k, 2), the centres of the Gaussians.
        noise: standard deviation of each Gaussian along both axes, above 0.

    Example: `Rows(two_moons().draw(2000))` is a source of stimuli, and
    `-two_moons().log_density(rows).mean()` what a perfect model scores on them, in nats per row.
    """

    centres: np.ndarray
    noise: float

    def draw(self, rows: int = 2000, seed: int = 0) -> np.ndarray:
        """Independent points, (rows, 2) float32; the same seed gives the same points."""
        rng = np.random.default_rng(count(seed, "seed", 0))
        which = rng.integers(len(self.centres), size=count(rows, "rows"))
        points = self.centres[which] + self.noise * rng.normal(size=(rows, 2))
        return points.astype(np.float32)

    def log_density(self, x: Any) -> np.ndarray:
        """log p(x) of each row of x, (rows, 2), in nats."""
        points = np.asarray(matrix(x), np.float64)
        if points.shape[1] != 2:
            raise ValueError(f"points in the plane have 2 columns, not {points.shape[1]}.")
        distance = ((points[:, None] - self.centres) ** 2).sum(-1)
        exponent = -distance / (2 * self.noise**2)
        most = exponent.max(1)
        mean = np.exp(exponent - most[:, None]).mean(1)
        return most + np.log(mean) - np.log(2 * np.pi * self.noise**2)


def _planar(centres: np.ndarray, noise: Any) -> Planar:
    above_zero(noise, "noise, the standard deviation around a centre,")
    return Planar(np.asarray(centres, np.float64), float(noise))


def two_moons(noise: float = 0.15) -> Planar:
    """Two half circles of radius 1 that reach into each other, with their middle at the origin.

    Args:
        noise: standard deviation around the curves, above 0.
    """
    t = np.pi * (np.arange(ON_A_CURVE) + 0.5) / ON_A_CURVE
    upper = np.stack([np.cos(t), np.sin(t)], 1) - (0.5, 0.25)
    return _planar(np.concatenate([upper, -upper]), noise)


def rings(radii: tuple[float, ...] = (0.8, 2.0), noise: float = 0.15) -> Planar:
    """Circles around the origin, each as likely as the others.

    Args:
        radii: of the circles, above 0.
        noise: standard deviation around the circles, above 0.
    """
    if not radii:
        raise ValueError("rings need at least one radius, such as (0.8, 2.0).")
    for radius in radii:
        above_zero(radius, "a ring's radius")
    t = 2 * np.pi * np.arange(ON_A_CURVE) / ON_A_CURVE
    circle = np.stack([np.cos(t), np.sin(t)], 1)
    return _planar(np.concatenate([radius * circle for radius in radii]), noise)


def mixture(modes: int = 8, radius: float = 2.0, noise: float = 0.2) -> Planar:
    """`modes` Gaussians, evenly spaced on a circle around the origin.

    Args:
        modes: number of Gaussians, at least 1.
        radius: of the circle, above 0.
        noise: standard deviation of each Gaussian, above 0.
    """
    t = 2 * np.pi * np.arange(count(modes, "modes")) / modes
    above_zero(radius, "the radius of the mixture")
    return _planar(radius * np.stack([np.cos(t), np.sin(t)], 1), noise)
