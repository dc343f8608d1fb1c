"""Study: the labelled MNIST machine on devices, test error against bits."""

from typing import Any

import numpy as np
import xarray as xr

from ..core import Run
from ..data.mnist import fetch_mnist
from ..methods import RBM
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, points
from ..sweep import Sweep, cells, matching
from .claims import mean_sd, verdict, worse
from .devices import RANGE, optimiser, rule
from .mnist import HIDDEN, VISIBLE, rbm_errors, rows

TITLE = "Hardware: the labelled MNIST machine, test error against bits"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
ETA, LENGTH, AVERAGE = 0.005, 200, 0.5
RULES = {"two-term": ("two-term", 2), "ISD": ("isd", 1), "AoL": ("aol", 1)}  # phases per step
SIZES = {
    "quick": {"phases": 1_500, "seeds": 2, "bits": [6.0, 8.0, 10.0, 12.0], "shown": 500},
    "full": {
        "phases": 20_000,
        "seeds": 4,
        "bits": [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0],
        "shown": 1000,
    },
}


def build(name: str, kind: str, value: float, rounding: str, shown: int = 0) -> Run:
    """The run of a cell: a rule on devices whose `kind` is `value`."""
    method = RBM(VISIBLE, HIDDEN, visible_bias=False)
    return Run(method, *rule(name, LENGTH), rows(), optimiser(kind, value, rounding, ETA))


def metrics(shown: int, **_: Any) -> dict[str, Any]:
    """The exact error, by free energy."""
    return {"free_energy_error": rbm_errors(shown)["free_energy_error"]}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Every rule without limits and at each number of bits, for the same number of phases."""
    grid = []
    for word, _ in RULES.values():
        shared = {"name": word, "shown": size["shown"], "ticks": LENGTH * size["phases"]}
        grid += cells(kind="none", value=0.0, rounding="nearest", **shared)
        both = ["nearest", "stochastic"]
        grid += cells(kind="bits", value=size["bits"], rounding=both, **shared)
    how = {"records": 4, "lanes": 2, "average": AVERAGE, "cost": 200}
    named = (f"{__name__}:build", f"{__name__}:metrics")
    return {"rbm": Sweep("hardware-mnist", *named, grid, size["seeds"], **how)}


def finals(data: xr.Dataset, averaged: bool = False, **cell: Any) -> np.ndarray:
    """(values, seeds): the final test error in per cent, cells in the order of their value."""
    found = matching(data, **cell)
    order = np.argsort(found["value"].values)
    record = Record(found.isel(cell=order))
    return 100 * record.final("free_energy_error", averaged).values


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Error against bits, for both kinds of rounding."""
    rbm = data["rbm"]
    free = {
        name: [finals(rbm, averaged, kind="none", name=word)[0] for averaged in (False, True)]
        for name, (word, _) in RULES.items()
    }
    without = ", ".join(
        f"{name} {mean_sd(last)} % (slow weights {mean_sd(slow)} %)"
        for name, (last, slow) in free.items()
    )
    remarks = [
        f"RBM {VISIBLE} x {HIDDEN}, T = {LENGTH}, eta {ETA}, range {RANGE:g}, {size['phases']} "
        "phases; errors by free energy on all test images. Solid: last weights, dashed: slow "
        f"weights. Without limits: {without}.",
    ]
    panels = [panel(size, rbm, rounding) for rounding in ("nearest", "stochastic")]
    return Findings(panels, [saved_by_chance(size, rbm)], remarks)


def panel(size: dict[str, Any], rbm: xr.Dataset, rounding: str) -> Panel:
    """Error against bits under one kind of rounding."""
    series = [
        points(
            name if not averaged else "",
            size["bits"],
            list(finals(rbm, averaged, kind="bits", name=word, rounding=rounding)),
            colour=i,
            line=line,
        )
        for i, (name, (word, _)) in enumerate(RULES.items())
        for line, averaged in enumerate((False, True))
    ]
    return Panel(f"{rounding} rounding", "bits", "test error (%)", series, ylim=(0, 95))


def saved_by_chance(size: dict[str, Any], rbm: xr.Dataset) -> Claim:
    """Stochastic rounding lets always-on learning learn on few bits."""
    near, chance = (
        finals(rbm, kind="bits", name="aol", rounding=r)[size["bits"].index(8.0)]
        for r in ("nearest", "stochastic")
    )
    p = worse(near, chance)
    return Claim(
        "At 8 bits stochastic rounding saves always-on learning on MNIST (test error, %).",
        f"nearest {mean_sd(near)}, stochastic {mean_sd(chance)}, p = {p:.2g}",
        verdict(p < 0.05, p > 0.95),
        "Welch t-test, one-sided",
    )
