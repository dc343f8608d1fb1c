"""Fig. 2 B and D: an RBM on Bars and Stripes under CD-1, CD-100, ISD, AoL and AoL random T."""

from typing import Any

import numpy as np
import xarray as xr

from ..report.findings import Claim, Findings
from ..report.panels import Panel, curve, star
from ..sweep import Sweep, best, cells, learning_rates, matching
from .bas import BUILD, LABEL, METRICS, OPTIMUM, UNTRAINED
from .claims import fails, is_worse, shrinks, slightly_worse, varies_more

TITLE = (
    "RBM on Bars and Stripes: negative log-likelihood over steps (B) and over network time steps "
    "(D)"
)
DATA = None
PLAIN = ("rbm", 16, 16)  # the loop that the authors' way is timed with
LOW, HIGH = 0.001, 0.04  # the paper's line search
SIZES = {
    "quick": {"steps": 30_000, "cd1_steps": 3_000_000, "rates": 5, "seeds": 6},
    "full": {"steps": 100_000, "cd1_steps": 10_000_000, "rates": 10, "seeds": 10},
}
RULES = {  # name on the page: (rule, length, ticks per step, the clock that the paper calls a step)
    "CD-1": ("cd", 1, 2, "updates"),
    "CD-100": ("cd", 100, 200, "updates"),
    "ISD": ("isd", 100, 100, "updates"),
    "AoL": ("aol", 100, 100, "phases"),
    "AoL random T": ("aol-random", 150, 150, "phases"),
}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    rates = learning_rates(LOW, HIGH, size["rates"])
    grid = [
        cell
        for rule, (name, length, ticks, _) in RULES.items()
        for cell in cells(
            name=name,
            length=length,
            eta=rates,
            ticks=ticks * size["cd1_steps" if rule == "CD-1" else "steps"],
        )
    ]
    return {"bas": Sweep("fig2-bas", BUILD, METRICS, grid, size["seeds"], records=100)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    runs = {
        rule: best(matching(data["bas"], name=name, length=length), "nll")
        for rule, (name, length, *_) in RULES.items()
    }
    final = {rule: run["nll"].values[:, -1] for rule, run in runs.items()}
    rates = ", ".join(f"{rule} {float(run.eta):.2g}" for rule, run in runs.items())
    return Findings(
        panels(size, runs),
        claims(runs, final),
        [
            f"eta by line search, lowest mean NLL at the end of training: {rates}.",
            f"NLL is exact, in nats, summed over the 32 rows: {OPTIMUM} is the optimum, "
            f"{UNTRAINED} a "
            "uniform model.",
            f"CD-1 takes {size['cd1_steps'] // size['steps']} times as many steps: in B its line "
            "joins "
            "its first records, D shows them all.",
            "The curves are those of the seeds that chose eta, as a line search has it, so every "
            "rule "
            "is shown at its luckiest.",
        ],
    )


def panels(size: dict[str, Any], runs: dict[str, xr.Dataset]) -> list[Panel]:
    common = RULES["ISD"][2] * size["steps"]  # time steps at the stars: where ISD and AoL end
    steps, time = [], []
    for i, (rule, (_, _, ticks, clock)) in enumerate(RULES.items()):
        over_steps, over_time = (
            curve(rule, runs[rule], clock, "nll", colour=i),
            curve(rule, runs[rule], "ticks", "nll", colour=i),
        )
        inside = over_steps.x <= size["steps"]
        cut = over_steps._replace(
            x=over_steps.x[inside], y=over_steps.y[inside], sd=over_steps.sd[inside]
        )
        steps.append(cut._replace(at=common / ticks) if common / ticks <= size["steps"] else cut)
        time.append(star(over_time, common) if over_time.x[-1] >= common else over_time)
    top = (OPTIMUM - 5, 1.05 * UNTRAINED)
    return [
        Panel("B  over steps", "updates (CD, ISD) or phases (AoL)", LABEL, steps, ylim=top),
        Panel("D  over time", "network time steps (ticks)", LABEL, time, ylim=top),
    ]


def over(runs: dict[str, xr.Dataset], rule: str, clock: str, x: np.ndarray) -> np.ndarray:
    """NLL of every seed at the moments x of a clock."""
    run = runs[rule]
    return np.stack(
        [np.interp(x, c, y) for c, y in zip(run[clock].values, run["nll"].values, strict=True)]
    )


def claims(runs: dict[str, xr.Dataset], final: dict[str, np.ndarray]) -> list[Claim]:
    isd, cd100 = RULES["ISD"], RULES["CD-100"]
    steps = np.linspace(0, float(runs["ISD"]["updates"].max()), 51)[1:]
    wide = (over(runs, "ISD", isd[3], steps) - over(runs, "CD-100", cd100[3], steps)).mean(1)
    narrow = (
        over(runs, "ISD", "ticks", steps * isd[2]) - over(runs, "CD-100", "ticks", steps * isd[2])
    ).mean(1)
    return [
        slightly_worse(
            "ISD is slightly worse than standard (CD-100).",
            "ISD",
            final["ISD"],
            "CD-100",
            final["CD-100"],
            UNTRAINED,
        ),
        varies_more(
            "ISD varies more than standard.", "ISD", final["ISD"], "CD-100", final["CD-100"]
        ),
        fails("CD-1 fails.", "CD-1", final["CD-1"], "CD-100", final["CD-100"], UNTRAINED),
        slightly_worse(
            "AoL is slightly worse than ISD.", "AoL", final["AoL"], "ISD", final["ISD"], UNTRAINED
        ),
        is_worse(
            "AoL with random T is worse again.",
            "AoL random T",
            final["AoL random T"],
            "AoL",
            final["AoL"],
        ),
        shrinks(
            "In time steps the gap between ISD and standard shrinks.",
            wide,
            narrow,
            "ISD - CD-100, NLL averaged along the curve",
        ),
    ]
