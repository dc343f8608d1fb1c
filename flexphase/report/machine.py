"""Where a run was made, and what it would have cost as a plain loop, as the authors have it."""

import itertools
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..machine import cores


def clock(seconds: float) -> str:
    """Seconds in words: "3.2 s", "4.5 min", "1.2 h", "2.0 days"."""
    for unit, name, below in ((1, "s", 60), (60, "min", 3600), (3600, "h", 48 * 3600)):
        if seconds < below:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds / 86400:.1f} days"


def hardware() -> str:
    """Processor, cores, memory and system of this machine in words, as far as the system says."""
    name, memory = platform.processor() or platform.machine(), ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        name = models[0] if models else name
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = f", {size / 2**30:.0f} GiB of memory"
    except (OSError, ValueError):
        pass
    return f"{name}, {cores()} cores{memory}, {platform.system()}"


def per_call(step: Callable[[], None], seconds: float = 0.5) -> float:
    """Mean seconds of a call, measured for about `seconds` after a tenth of that to warm up."""
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
    """One tick of Forward-Forward with Adam in plain NumPy, one lane: a pass, and an update of each
    layer.
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


def numpy_equilibrium(inputs: int, hidden: int, outputs: int) -> Callable[[], None]:
    """One tick of equilibrium propagation, always on, in plain NumPy, one lane."""
    rng = np.random.default_rng(0)
    W, V = rng.standard_normal((inputs, hidden)) / 28, rng.standard_normal((hidden, outputs)) / 22
    x, y, h, o = rng.random(inputs), np.eye(outputs)[0], np.zeros(hidden), np.zeros(outputs)

    def tick() -> None:
        nonlocal h, o, W, V
        below, above = x @ W + V @ o, h @ V + 0.5 * (y - o)
        h = h + 0.5 * (np.clip(0.5 + 0.25 * below, 0, 1) - h)
        o = o + 0.5 * (np.clip(0.5 + 0.25 * above, 0, 1) - o)
        W = W + 1e-9 * np.outer(x, h)
        V = V + 1e-9 * np.outer(h, o)

    return tick


#: The plain loops by name: called with the sizes of a network, each returns its tick.
PLAIN = {
    "rbm": numpy_rbm,
    "forward-forward": numpy_forward_forward,
    "equilibrium-propagation": numpy_equilibrium,
}
