"""Study: the labelled MNIST machine on devices, test error against every limit."""

from typing import Any

import xarray as xr

from ..core import Run
from ..data.mnist import fetch_mnist
from ..methods import RBM
from ..report.findings import Findings
from ..sweep import Sweep
from . import devices
from .devices import AVERAGE, RANGE, RULES, Learner, optimiser, rule
from .mnist import EXACT_ERROR, HIDDEN, VISIBLE, rows

TITLE = "Hardware: the labelled MNIST machine on devices"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
ETA, LENGTH = 0.005, 200
LEARNER = Learner(
    metric="free_energy_error",
    label="test error (%)",
    untrained=90.0,
    ylim=(0, 95),
    length=LENGTH,
    etas=dict.fromkeys(RULES, ETA),
    scale=100,
)
SIZES = {
    "quick": {
        "phases": 200,
        "seeds": 2,
        "shown": 500,
        "bits": [8.0, 12.0],
        "range": [1.0],
        "noise": [1e-2],
        "asymmetry": [0.1],
    },
    "full": {
        "phases": 5_000,
        "seeds": 2,
        "shown": 1000,
        "bits": [6.0, 8.0, 10.0, 17.0],
        "range": [0.5, 1.0],
        "noise": [1e-3, 1e-2],
        "asymmetry": [0.01, 0.1],
    },
}


def build(name: str, eta: float, kind: str, value: float, rounding: str, shown: int = 0) -> Run:
    """The run of a cell: a rule on devices whose `kind` is `value`."""
    method = RBM(VISIBLE, HIDDEN, visible_bias=False)
    return Run(method, *rule(name, LENGTH), rows(), optimiser(kind, value, rounding, eta))


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Every rule without limits, and with each limit alone."""
    how: dict[str, Any] = {"records": 4, "lanes": 2, "average": AVERAGE, "cost": 300}
    named = (f"{__name__}:build", EXACT_ERROR)
    grid = devices.grid(size, LEARNER, shown=size["shown"])
    return {"rbm": Sweep("hardware-mnist", *named, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Error against every limit."""
    rbm = data["rbm"]
    remarks = [
        f"RBM {VISIBLE} x {HIDDEN}, T = {LENGTH}, eta {ETA}, b = 0.5, {size['phases']} phases, "
        f"range {RANGE:g} with bits; errors by free energy on all test images. Solid: last "
        "weights, dashed: slow weights.",
        devices.without_limits(rbm, LEARNER),
    ]
    claims = [
        *(devices.stops_where_predicted(size, rbm, LEARNER, name) for name in RULES),
        devices.saved_by_chance(size, rbm, LEARNER, "aol"),
    ]
    return Findings(devices.panels(size, rbm, LEARNER), claims, remarks)
