"""How many bits a change needs to be seen at all."""

import math

from ..checks import above_zero


def bits_needed(change: float, range: float) -> int:
    """The fewest bits with which rounding to the nearest sees a change of this size.

    It must be at least half the distance of two levels, s = R / (2^(n-1) - 1), so that
    n = 1 + log2(1 + R / (2 change)), rounded up. A term of 1 asks for changes of eta (two-term),
    eta / b (ISD) and eta / (b tau) (always-on learning), hence always-on learning needs about
    log2(tau) bits more than ISD.

    Example: `bits_needed(0.005 / (0.5 * 100), range=4)` is 16; `bits_needed(0.005 / 0.5, 4)` is 9.
    """
    size, limit = float(above_zero(change, "a change")), float(above_zero(range, "the range"))
    return max(2, math.ceil(1 + math.log2(1 + limit / (2 * size)) - 1e-6))
