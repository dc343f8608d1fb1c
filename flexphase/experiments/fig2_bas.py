"""Fig. 2 B and D: an RBM on Bars and Stripes under CD-1, CD-100, ISD, AoL and AoL random T."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from ..report.findings import Claim, Findings
from ..report.panels import Panel, curve, star
from ..sweep import Sweep, best, cells, learning_rates, matching
from .bas import BUILD, LABEL, METRICS, OPTIMUM, UNTRAINED
from .claims import Seeds, fails, is_worse, shrinks, slightly_worse, varies_more

TITLE = (
    "RBM on Bars and Stripes: "
    "negative log-likelihood over steps (B) and over network time steps (D)"
)
DATA = None
PLAIN = ("rbm", 16, 16)  # the loop that the authors' way is timed with
LOW, HIGH = 0.001, 0.04  # the paper's line search
SIZES = {
    "quick": {"steps": 30_000, "cd1_steps": 3_000_000, "rates": 5, "seeds": 6},
    "full": {"steps": 100_000, "cd1_steps": 10_000_000, "rates": 10, "seeds": 10},
}


class Trained(NamedTuple):
    """How a rule of the figure is trained."""

    rule: str  # as `bas.build` names it
    length: int  # ticks of a phase
    ticks: int  # per step
    clock: str  # what the paper calls a step of this rule


RULES = {
    "CD-1": Trained("cd", 1, 2, "updates"),
    "CD-100": Trained("cd", 100, 200, "updates"),
    "ISD": Trained("isd", 100, 100, "updates"),
    "AoL": Trained("aol", 100, 100, "phases"),
    "AoL random T": Trained("aol-random", 150, 150, "phases"),
}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Five rules x learning rates x seeds; CD-1 takes more steps than the others."""
    rates = learning_rates(LOW, HIGH, size["rates"])
    grid = []
    for name, (rule, length, ticks, _) in RULES.items():
        steps = size["cd1_steps" if name == "CD-1" else "steps"]
        grid += cells(name=rule, length=length, eta=rates, ticks=ticks * steps)
    return {"bas": Sweep("fig2-bas", BUILD, METRICS, grid, size["seeds"], records=100)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Each rule at its best learning rate."""
    runs = {
        name: best(matching(data["bas"], name=rule, length=length), "nll")
        for name, (rule, length, *_) in RULES.items()
    }
    rates = ", ".join(f"{name} {float(run.eta):.2g}" for name, run in runs.items())
    remarks = [
        f"eta by line search, lowest mean NLL at the end of training: {rates}.",
        "NLL is exact, in nats, summed over the 32 rows: "
        f"{OPTIMUM} is the optimum, {UNTRAINED} a uniform model.",
        f"CD-1 takes {size['cd1_steps'] // size['steps']} times as many steps: "
        "in B its line joins its first records, D shows them all.",
        "The curves are those of the seeds that chose eta, as a line search has it, "
        "so every rule is shown at its luckiest.",
    ]
    return Findings(panels(size, runs), claims(runs), remarks)


def panels(size: dict[str, Any], runs: dict[str, xr.Dataset]) -> list[Panel]:
    """B and D: the curves of `runs` over steps and over ticks."""
    common = RULES["ISD"].ticks * size["steps"]  # ticks at the stars: where ISD and AoL end
    steps, time = [], []
    for i, (name, (_, _, ticks, clock)) in enumerate(RULES.items()):
        over_steps = curve(name, runs[name], clock, "nll", colour=i)
        over_time = curve(name, runs[name], "ticks", "nll", colour=i)
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


def over(run: xr.Dataset, clock: str, x: np.ndarray) -> np.ndarray:
    """(seeds, len(x)): NLL of every seed at the moments x of a clock."""
    curves = zip(run[clock].values, run["nll"].values, strict=True)
    return np.stack([np.interp(x, when, nll) for when, nll in curves])


def claims(runs: dict[str, xr.Dataset]) -> list[Claim]:
    """The paper's sentences about B and D."""
    cd1, cd100, isd, aol, aol_random = (
        Seeds(name, runs[name]["nll"].values[:, -1]) for name in RULES
    )
    steps = np.linspace(0, float(runs["ISD"]["updates"].max()), 51)[1:]
    ticks = steps * RULES["ISD"].ticks
    wide, narrow = (
        (over(runs["ISD"], clock, x) - over(runs["CD-100"], clock, x)).mean(1)
        for clock, x in (("updates", steps), ("ticks", ticks))
    )
    gap = "ISD - CD-100, NLL averaged along the curve"
    return [
        slightly_worse("ISD is slightly worse than standard (CD-100).", isd, cd100, UNTRAINED),
        varies_more("ISD varies more than standard.", isd, cd100),
        fails("CD-1 fails.", cd1, cd100, UNTRAINED),
        slightly_worse("AoL is slightly worse than ISD.", aol, isd, UNTRAINED),
        is_worse("AoL with random T is worse again.", aol_random, aol),
        shrinks("In time steps the gap between ISD and standard shrinks.", wide, narrow, gap),
    ]
