"""Study: equilibrium propagation on devices, test error on 8x8 digits against every limit."""

from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from ..catalogue.datasets import load
from ..catalogue.entries import Input
from ..classification import Wrong
from ..core import Run
from ..data import Held, Rows
from ..methods import EquilibriumPropagation
from ..methods.equilibrium_propagation import Accuracy
from ..report.findings import Claim, Findings
from ..sweep import Sweep
from . import devices
from .claims import Seeds, is_worse
from .devices import AVERAGE, LABELS, RANGE, RULES, Learner, finals, optimiser, rule

TITLE = "Hardware: equilibrium propagation on 8x8 digits, on devices"
DATA = None
LAYERS, LENGTH = (64, 32, 10), 20
PLAIN = ("equilibrium-propagation", *LAYERS)
DIFFERENCES = ("two-term", "change")  # rules that learn from the difference of two terms
LEARNER = Learner(
    metric="test_error",
    label="test error (%)",
    untrained=90.0,
    ylim=(0, 95),
    length=LENGTH,
    # Single terms are large and nearly cancel, so they need small steps.
    etas=dict.fromkeys(RULES, 0.003) | dict.fromkeys(DIFFERENCES, 0.1),
    scale=100,
)
SIZES: dict[str, dict[str, Any]] = {
    "quick": {
        "phases": 500,
        "seeds": 2,
        "bits": [8.0, 16.0],
        "range": [0.5],
        "noise": [1e-2],
        "asymmetry": [0.1],
    },
    "full": {
        "phases": 5_000,
        "seeds": 3,
        "bits": [8.0, 12.0, 16.0],
        "range": [0.5, 2.0],
        "noise": [1e-4, 1e-2],
        "asymmetry": [0.01, 0.1],
    },
}


def method() -> EquilibriumPropagation:
    return EquilibriumPropagation(LAYERS, beta=1.0, centred=True)


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
    shown = Held(source(), phases=2) if name == "change" else source()  # it changes in a pause
    return Run(method(), *rule(name, LENGTH), shown, optimiser(kind, value, rounding, eta))


def metrics(**_: Any) -> dict[str, Any]:
    images, labels = digits().test or ((), ())
    return {"test_error": Wrong(Accuracy(method(), images, labels))}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Every rule without limits, and with each limit alone."""
    how: dict[str, Any] = {"records": 4, "average": AVERAGE, "cost": 200}
    named = (f"{__name__}:build", f"{__name__}:metrics")
    return {"ep": Sweep("hardware-ep", *named, devices.grid(size, LEARNER), size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Error against every limit."""
    ep = data["ep"]
    rates = ", ".join(f"{LABELS[name]} {eta:g}" for name, eta in LEARNER.etas.items())
    remarks = [
        f"{'-'.join(map(str, LAYERS))}, centred, beta 1, T = {LENGTH}, {size['phases']} phases, "
        f"range {RANGE:g} with bits; eta: {rates}. Solid: last weights, dashed: slow weights.",
        devices.without_limits(ep, LEARNER),
    ]
    claims = [
        local_rule(ep),
        *(devices.saved_by_chance(size, ep, LEARNER, name) for name in DIFFERENCES),
        *(devices.asymmetry_claim(size, ep, LEARNER, True, name) for name in DIFFERENCES),
    ]
    return Findings(devices.panels(size, ep, LEARNER), claims, remarks)


def local_rule(ep: xr.Dataset) -> Claim:
    """What a phase changed is a better local rule than its single term, without limits."""
    names = ("isd", "change")
    found = (finals(ep, LEARNER, True, kind="none", name=name)[0] for name in names)
    seeds = (Seeds(LABELS[name], values) for name, values in zip(names, found, strict=True))
    return is_worse("Without limits, phase change learns better than ISD (slow weights).", *seeds)
