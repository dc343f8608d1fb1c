"""Strict: a broadcast between arrays of different rank raises, and every warning too (pyproject.toml). Numbers are float32."""

import jax
import pytest

from flexphase.data import bars_and_stripes

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session")
def bas():
    return bars_and_stripes(4)


def z_score(estimate, exact, error):
    """How many standard errors an estimate is off."""
    return abs(estimate - exact) / error
