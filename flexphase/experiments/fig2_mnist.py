"""Fig. 2 A and C: Forward-Forward on MNIST, standard and ISD, train and test error."""

from typing import Any

import numpy as np
import xarray as xr

from ..data.mnist import fetch_mnist
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, curve, star
from ..sweep import Sweep, best, cells, learning_rates, matching
from .claims import Seeds, mean_sd, shrinks, slightly_worse, varies_more
from .mnist import LAYERS, NETWORK

TITLE = (
    "Forward-Forward on MNIST: "
    "classification error over updates (A) and over network time steps (C)"
)
DATA = fetch_mnist
PLAIN = ("forward-forward", *LAYERS)
LOW, HIGH = 0.002, 0.05  # the paper's line search
UNTRAINED = 0.9
CLOCKS = {
    "updates": ("A  over updates", "parameter updates"),
    "ticks": ("C  over time", "network time steps (passes)"),
}
TICKS = {"standard": 2, "ISD": 1}  # network time steps (passes) per update
SIZES = {
    "quick": {"updates": 20_000, "rates": 3, "seeds": 3, "shown": 1000, "records": 10},
    "full": {"updates": 120_000, "rates": 10, "seeds": 4, "shown": 2000, "records": 24},
}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Two rules x learning rates x seeds, for the same number of updates."""
    shared = {"eta": learning_rates(LOW, HIGH, size["rates"]), "shown": size["shown"]}
    grid = [
        cell
        for name, ticks in TICKS.items()
        for cell in cells(name=name, ticks=ticks * size["updates"], **shared)
    ]
    how = {"records": size["records"], "lanes": 4, "cost": 2000}
    return {"network": Sweep("fig2-mnist", *NETWORK, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Each rule at its best learning rate."""
    runs = {name: best(matching(data["network"], name=name), "train_error") for name in TICKS}
    test = {name: 100 * Record(run).final("test_error").values for name, run in runs.items()}
    rates = ", ".join(f"{name} {float(run.eta):.2g}" for name, run in runs.items())
    errors = ", ".join(f"{name} {mean_sd(v)} %" for name, v in test.items())
    remarks = [
        f"eta by line search, lowest mean training error at the end: {rates}.",
        f"{'-'.join(map(str, LAYERS))}, Adam, batch size 1; "
        f"test error at the end: {errors}, on all test images; "
        f"the curves are taken on about {size['shown']} training and test images.",
        "Solid: training, dashed: test. The standard rule takes two passes to an update, ISD one.",
    ]
    return Findings(
        [panel(size, runs, clock) for clock in CLOCKS], claims(size, runs, test), remarks
    )


def panel(size: dict[str, Any], runs: dict[str, xr.Dataset], clock: str) -> Panel:
    """Train and test error over a clock. Where ISD ends in time steps there is a star on the curves
    over ticks, and a dotted line in the panel over updates.
    """
    common, series = size["updates"], []
    for i, (name, run) in enumerate(runs.items()):
        train, test = (
            curve(f"{name}, {part}", run, clock, f"{part}_error", 100, colour=i, line=j)
            for j, part in enumerate(("train", "test"))
        )
        if clock == "ticks":
            series += [star(train, common), star(test, common)]
        else:
            series += [train._replace(at=common / TICKS[name]), test]
    title, label = CLOCKS[clock]
    return Panel(title, label, "classification error (%)", series, logy=True)


def claims(
    size: dict[str, Any], runs: dict[str, xr.Dataset], test: dict[str, np.ndarray]
) -> list[Claim]:
    """The paper's sentences about A and C; `test` holds the final test errors in per cent."""
    isd, standard = Seeds("ISD", test["ISD"]), Seeds("standard", test["standard"])
    wide, narrow = (gap_along(runs, clock, size["updates"]) for clock in CLOCKS)
    gap = "ISD - standard, averaged along the curve"
    slightly = "ISD is slightly worse than the standard algorithm (test error, %)."
    return [
        slightly_worse(slightly, isd, standard, 100 * UNTRAINED),
        varies_more("ISD varies more than the standard algorithm (test error, %).", isd, standard),
        shrinks("In time steps the gap shrinks (test error, %).", wide, narrow, gap),
    ]


def gap_along(runs: dict[str, xr.Dataset], clock: str, end: int) -> np.ndarray:
    """ISD - standard, test error in per cent, averaged over a clock up to `end`, for every seed."""
    grid = np.linspace(0, end, 25)[1:]

    def along(run: xr.Dataset) -> np.ndarray:
        curves = zip(run[clock].values, run["test_error"].values, strict=True)
        return np.stack([np.interp(grid, x, 100 * y) for x, y in curves])

    return (along(runs["ISD"]) - along(runs["standard"])).mean(1)
