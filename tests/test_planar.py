"""Densities in the plane: against scipy, a grid, and their own draws."""

import numpy as np
import pytest
from scipy import stats

from flexphase.data.planar import mixture, rings, two_moons

DENSITIES = {"two moons": two_moons(), "rings": rings(), "mixture": mixture(5, 1.5, 0.3)}


def squares(reach, points):
    """Midpoints of the squares of a grid within +-reach, and the area of one."""
    side = 2 * reach / points
    axis = side * (np.arange(points) + 0.5) - reach
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2), side**2


def test_the_mixture_is_what_scipy_says():
    d = mixture(3, 1.0, 0.4)
    x = np.random.default_rng(0).normal(size=(50, 2))
    density = np.mean(
        [stats.multivariate_normal(c, 0.4**2 * np.eye(2)).pdf(x) for c in d.centres], axis=0
    )
    assert np.allclose(d.log_density(x), np.log(density), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", DENSITIES)
def test_draws_follow_the_density(name):
    """20,000 draws in the 400 squares of a grid, each square integrated by 8 x 8 midpoints.
    Chi-square over the squares where at least 5 draws are expected: |z| < 4.
    """
    d, reach, fine = DENSITIES[name], 4.0, 160
    points, area = squares(reach, fine)
    p = np.exp(d.log_density(points)).reshape(fine, fine) * area
    assert p.sum() == pytest.approx(1, abs=1e-4)
    coarse = p.reshape(20, 8, 20, 8).sum((1, 3))
    drawn = d.draw(20_000, seed=3)
    counts = np.histogram2d(*drawn.T, bins=20, range=[[-reach, reach]] * 2)[0]
    often = coarse * len(drawn) >= 5
    expected = coarse[often] * len(drawn)
    chi2, n = ((counts[often] - expected) ** 2 / expected).sum(), often.sum()
    assert abs(chi2 - n) / np.sqrt(2 * n) < 4
    assert drawn.dtype == np.float32 and np.array_equal(drawn, d.draw(20_000, seed=3))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: two_moons(0), "noise.*above 0"),
        (lambda: rings(()), "at least one radius"),
        (lambda: rings((1.0, -1.0)), "radius must be above 0"),
        (lambda: mixture(0), "modes must be a whole number"),
        (lambda: two_moons().draw(0), "rows must be a whole number"),
        (lambda: two_moons().draw(5, -1), "seed must be a whole number"),
        (lambda: two_moons().log_density(np.zeros((4, 3))), "2 columns, not 3"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(ValueError, match=words):
        make()
