"""Where a run was made, and what it would have cost the authors' way."""

import itertools
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..machine import cores


def clock(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def hardware() -> str:
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
            name,
        )
        memory = (
            f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of "
            "memory"
        )
    except (OSError, ValueError):
        memory = ""
    return f"{name}, {cores()} cores{memory}, {platform.system()}"


def per_call(step: Callable[[], None], seconds: float = 0.5) -> float:
    """Mean time of a call, over about so many seconds, after a tenth of that to warm up."""
    for budget in (0.1 * seconds, seconds):
        began, calls = time.perf_counter(), 0
        while (spent := time.perf_counter() - began) < budget:
            step()
            calls += 1
    return spent / calls


def numpy_rbm(visible: int, hidden: int) -> Callable[[], None]:
    """One tick of always-on learning in plain NumPy, one lane, as an author would write it."""
    rng = np.random.default_rng(0)
    W, c = 0.01 * rng.standard_normal((visible, hidden)), np.zeros(hidden)
    h = np.zeros(hidden)

    def tick() -> None:
        nonlocal h, W, c
        v = (rng.random(visible) < 1 / (1 + np.exp(-W @ h))).astype(float)
        h = (rng.random(hidden) < 1 / (1 + np.exp(-(v @ W + c)))).astype(float)
        W = W + 1e-9 * np.outer(v, h)
        c = c + 1e-9 * h

    return tick


def numpy_forward_forward(*sizes: int) -> Callable[[], None]:
    """One tick of Forward-Forward with Adam in plain NumPy, one lane: a pass through all layers and
    an update of each.
    """
    rng = np.random.default_rng(0)
    W = [rng.standard_normal(shape) / shape[0] ** 0.5 for shape in itertools.pairwise(sizes)]
    m, s = [np.zeros_like(w) for w in W], [np.zeros_like(w) for w in W]
    x = rng.random(sizes[0])

    def tick() -> None:
        y = x
        for i in range(len(W)):
            y = y / (np.linalg.norm(y) + 1e-4)
            h = np.maximum(y @ W[i], 0)
            g = np.outer(y, h * (2 / len(h)) / (1 + np.exp(2 - (h * h).mean())))
            m[i] = 0.9 * m[i] + 0.1 * g
            s[i] = 0.999 * s[i] + 0.001 * g * g
            W[i] = W[i] - 1e-9 * m[i] / (np.sqrt(s[i]) + 1e-8)
            y = h

    return tick


PLAIN = {"rbm": numpy_rbm, "forward-forward": numpy_forward_forward}
