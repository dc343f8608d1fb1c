"""What phases look like: their signs, lengths, runs and rhythm, from a tape of them."""

from typing import Any, NamedTuple

import jax
import numpy as np

from ..core import lane_keys
from .process import before_end, tape

BINS = 2**16  # of the spectrum, at most


class Statistics(NamedTuple):
    """Of the phases that were seen; signs and runs are those of phases that have a sign."""

    b: float  # share of positive phases
    mean_length: float  # ticks of a phase, pauses included
    cv_length: float  # standard deviation over mean
    switch_rate: float  # changes of sign per phase that has one
    mean_run: float  # phases of the same sign in a row
    phases: int
    ticks: int


def drawn(process: Any, phases: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sign and ticks of the first phases that a lane of this seed sees; fewer if it ends."""
    keys = lane_keys(jax.random.key(seed))
    told = tape(process, keys.run, phases, state=process.init(keys.process))
    some = before_end(told.ticks, getattr(process, "ends", None))
    return np.asarray(told.sign, float)[:some], np.asarray(told.ticks, np.int64)[:some]


def statistics(sign: np.ndarray, ticks: np.ndarray) -> Statistics:
    """The numbers of `flexphase phases --json`."""
    runs = run_lengths(sign)
    signed = np.sign(sign[sign != 0])
    return Statistics(
        b=float((signed > 0).mean()) if len(signed) else float("nan"),
        mean_length=float(ticks.mean()),
        cv_length=float(ticks.std() / ticks.mean()),
        switch_rate=float((signed[1:] != signed[:-1]).sum() / max(len(signed), 1)),
        mean_run=float(runs.mean()) if len(runs) else float("nan"),
        phases=len(sign),
        ticks=int(ticks.sum()),
    )


def run_lengths(sign: np.ndarray) -> np.ndarray:
    """How many phases of the same sign come in a row; the last run, which may go on, is left out
    if there are others.
    """
    signed = np.sign(sign[sign != 0])
    ends = np.flatnonzero(signed[1:] != signed[:-1]) + 1
    runs = np.diff(np.concatenate([[0], ends]))
    return runs if len(runs) else np.array([len(signed)] if len(signed) else [], int)


def spectrum(sign: np.ndarray, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Frequency (1/ticks) and power density of the sign as a function of time.

    Welch's estimate from the mean sign in bins, as narrow as a tick where that can be afforded.
    """
    from scipy.signal import welch

    edges = np.concatenate([[0], np.cumsum(ticks)])
    area = np.concatenate([[0], np.cumsum(sign * ticks)])
    width = max(1, int(np.ceil(edges[-1] / BINS)))
    at = np.arange(0, edges[-1] + 1, width)
    level = np.diff(np.interp(at, edges, area)) / width
    if len(level) < 16:
        raise ValueError("a spectrum needs at least 16 ticks; ask for more phases.")
    size = min(len(level), max(256, len(level) // 8))
    frequency, power = welch(level, fs=1 / width, nperseg=size, detrend="constant")
    return frequency[1:], power[1:]
