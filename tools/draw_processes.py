"""The rasters of docs/processes/, as docs/figures/process_*.svg.

The first 40 phases of each process of mean length 20, with the seed 1.
"""

from pathlib import Path

import jax
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from flexphase import (
    Alternating,
    Bernoulli,
    Blocks,
    Clamped,
    Empirical,
    Fixed,
    Gamma,
    Geometric,
    Homeostatic,
    LogNormal,
    Markov,
    Matched,
    Pairs,
    Pauses,
    Phases,
    Recorded,
    Sinusoidal,
    Stretched,
    Weibull,
    tape,
)
from flexphase.phase_figure import raster

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
COIN = Bernoulli(0.5)
NIGHT = {
    "onset": [0, 30, 45, 80, 100],
    "duration": [28, 12, 35, 20, 10],
    "trial_type": ["wake", "NREM", "wake", "NREM", "REM"],
}
REPLAYED = {"positive": "wake", "negative": ["NREM", "REM"]}
PROCESSES = {
    "alternating": {"": Phases(Alternating(), Fixed(20))},
    "bernoulli": {f"b = {b}": Phases(Bernoulli(b), Fixed(20)) for b in (0.2, 0.5, 0.8)},
    "markov": {f"stay {p}": Phases(Markov(p, p), Fixed(20)) for p in (0.1, 0.5, 0.9)},
    "pairs": {"": Phases(Pairs(), Fixed(20))},
    "homeostatic": {f"κ = {k}": Phases(Homeostatic(0.5, k), Fixed(20)) for k in (0, 1, 5)},
    "blocks": {f"{n}, {m}": Phases(Blocks(n, m), Fixed(20)) for n, m in ((4, 4), (8, 2))},
    "fixed": {"": Phases(COIN, Fixed(20))},
    "geometric": {"": Phases(COIN, Geometric(20))},
    **{
        law.__name__.lower(): {f"cv {cv}": Phases(COIN, law(20, cv=cv)) for cv in (0.5, 1.0, 2.0)}
        for law in (Gamma, LogNormal, Weibull)
    },
    "empirical": {"5, 5, 50": Phases(COIN, Empirical([5.0, 5.0, 50.0]))},
    "matched": {"": Phases(Alternating(), Matched(Geometric(20)))},
    "recorded": {
        after: Recorded(NIGHT, **REPLAYED, after=after, block=3) for after in ("repeat", "shuffle")
    },
    "pauses": {"5 ticks": Pauses(Phases(Alternating(), Fixed(20)), 5)},
    "sinusoidal": {"period 100": Sinusoidal(100)},
    "clamped": {"": Phases(Clamped(), Fixed(20))},
    "stretched": {
        "as recorded": Recorded(NIGHT, **REPLAYED),
        "τ = 60": Stretched(Recorded(NIGHT, **REPLAYED), 60),
    },
}


def draw(name: str, processes: dict) -> None:
    """A row for each process; all of them of one width in time."""
    sheet = Figure(figsize=(8, 0.45 + 0.75 * len(processes)), layout="constrained")
    axes = np.ravel(sheet.subplots(len(processes), squeeze=False, sharex=True))
    for ax, (label, process) in zip(axes, processes.items(), strict=True):
        drawn = jax.tree.map(np.asarray, tape(process, jax.random.key(1), 400))
        raster(ax, drawn.sign, drawn.ticks)
        ax.set(title="", xlabel="", xlim=(0, 400))
        ax.set_ylabel(label, rotation=0, ha="right", va="center")
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("time (ticks)")
    sheet.savefig(FIGURES / f"process_{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    matplotlib.rcParams["svg.hashsalt"] = "flexphase"
    matplotlib.rcParams["svg.fonttype"] = "none"
    for name, processes in PROCESSES.items():
        draw(name, processes)
