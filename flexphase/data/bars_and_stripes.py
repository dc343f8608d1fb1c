"""Bars and Stripes: every row, or every column, of a square is all on or all off."""

import itertools

import numpy as np

from ..checks import count


def bars_and_stripes(side: int = 4) -> np.ndarray:
    """The 2 * 2^side patterns as rows of side^2 zeros and ones; the all-0 and the all-1 pattern are
    in it twice, once of each kind.

    Args:
        side: rows and columns of the square, from 1 to 12.
    """
    if not 1 <= count(side, "side", 0) <= 12:
        raise ValueError(
            f"side must lie between 1 and 12, not {side!r}: there are 2 * 2^side patterns."
        )
    lines = np.array(list(itertools.product((0.0, 1.0), repeat=side)), dtype=np.float32)
    bars = np.repeat(lines[:, None, :], side, axis=1)
    return np.concatenate([bars, bars.transpose(0, 2, 1)]).reshape(-1, side * side)
