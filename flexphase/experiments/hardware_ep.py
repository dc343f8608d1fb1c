"""Study: equilibrium propagation on devices, test error on 8x8 digits against bits."""

from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from ..catalogue.datasets import load
from ..catalogue.entries import Input
from ..classification import Wrong
from ..core import Run
from ..data import Rows
from ..methods import EquilibriumPropagation
from ..methods.equilibrium_propagation import Accuracy
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, points
from ..sweep import Sweep, cells, matching
from .claims import mean_sd, verdict, worse
from .devices import RANGE, optimiser, rule

TITLE = "Hardware: equilibrium propagation on 8x8 digits, test error against bits"
DATA = None
PLAIN = ("rbm", 64, 32)
SIZES_OF_LAYERS, LENGTH, AVERAGE = (64, 32, 10), 20, 0.5
#: Word and learning rate: single terms are large and nearly cancel, so they need small steps.
RULES = {
    "two-term": ("two-term", 0.03),
    "ISD": ("isd", 0.001),
    "AoL": ("aol", 0.001),
    "AoL alternating": ("aol-alternating", 0.03),
}
SIZES = {
    "quick": {"phases": 6_000, "seeds": 2, "bits": [6.0, 8.0, 10.0, 12.0, 16.0]},
    "full": {
        "phases": 40_000,
        "seeds": 5,
        "bits": [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0],
    },
}


def method() -> EquilibriumPropagation:
    return EquilibriumPropagation(SIZES_OF_LAYERS, beta=1.0, centred=True)


@cache
def digits() -> Input:
    return load("digits")


@cache
def source() -> Rows:
    """One object for all cells, so that lanes share its data."""
    labels = np.asarray(digits().labels)
    return Rows((digits().images, np.eye(10, dtype=np.float32)[labels]))


def build(name: str, eta: float, kind: str, value: float, rounding: str) -> Run:
    """The run of a cell: a rule on devices whose `kind` is `value`."""
    return Run(method(), *rule(name, LENGTH), source(), optimiser(kind, value, rounding, eta))


def metrics(**_: Any) -> dict[str, Any]:
    images, labels = digits().test or ((), ())
    return {"test_error": Wrong(Accuracy(method(), images, labels))}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Every rule without limits and at each number of bits, for the same number of phases."""
    grid = []
    for word, eta in RULES.values():
        shared = {"name": word, "eta": eta, "ticks": LENGTH * size["phases"]}
        grid += cells(kind="none", value=0.0, rounding="nearest", **shared)
        both = ["nearest", "stochastic"]
        grid += cells(kind="bits", value=size["bits"], rounding=both, **shared)
    how = {"records": 4, "average": AVERAGE, "cost": 200}
    named = (f"{__name__}:build", f"{__name__}:metrics")
    return {"ep": Sweep("hardware-ep", *named, grid, size["seeds"], **how)}


def finals(data: xr.Dataset, averaged: bool = False, **cell: Any) -> np.ndarray:
    """(values, seeds): the final test error in per cent, cells in the order of their value."""
    found = matching(data, **cell)
    order = np.argsort(found["value"].values)
    return 100 * Record(found.isel(cell=order)).final("test_error", averaged).values


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Error against bits, for both kinds of rounding."""
    ep = data["ep"]
    without = ", ".join(
        f"{name} {mean_sd(finals(ep, kind='none', name=word)[0])} %"
        for name, (word, _) in RULES.items()
    )
    rates = ", ".join(f"{name} {eta:g}" for name, (_, eta) in RULES.items())
    remarks = [
        f"{'-'.join(map(str, SIZES_OF_LAYERS))}, centred, beta 1, T = {LENGTH}, range {RANGE:g}, "
        f"{size['phases']} phases; eta: {rates}. Solid: last weights, dashed: slow weights. "
        f"Without limits: {without}.",
    ]
    panels = [panel(size, ep, rounding) for rounding in ("nearest", "stochastic")]
    return Findings(panels, [saved_by_chance(size, ep)], remarks)


def panel(size: dict[str, Any], ep: xr.Dataset, rounding: str) -> Panel:
    """Error against bits under one kind of rounding."""
    series = [
        points(
            name if not averaged else "",
            size["bits"],
            list(finals(ep, averaged, kind="bits", name=word, rounding=rounding)),
            colour=i,
            line=line,
        )
        for i, (name, (word, _)) in enumerate(RULES.items())
        for line, averaged in enumerate((False, True))
    ]
    return Panel(f"{rounding} rounding", "bits", "test error (%)", series, ylim=(0, 95))


def saved_by_chance(size: dict[str, Any], ep: xr.Dataset) -> Claim:
    """Stochastic rounding lets the two-term rule learn on few bits."""
    near, chance = (
        finals(ep, kind="bits", name="two-term", rounding=r)[size["bits"].index(8.0)]
        for r in ("nearest", "stochastic")
    )
    p = worse(near, chance)
    return Claim(
        "At 8 bits stochastic rounding saves equilibrium propagation (two-term, test error, %).",
        f"nearest {mean_sd(near)}, stochastic {mean_sd(chance)}, p = {p:.2g}",
        verdict(p < 0.05, p > 0.95),
        "Welch t-test, one-sided",
    )
