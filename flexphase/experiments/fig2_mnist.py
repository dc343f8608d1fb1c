"""Fig. 2 A and C: Forward-Forward on MNIST, standard and ISD, train and test error."""

from typing import Any

import numpy as np
import xarray as xr

from ..data.mnist import fetch_mnist
from ..record import Record
from ..report.findings import Findings
from ..report.panels import Panel, curve, star
from ..sweep import Sweep, best, cells, learning_rates, matching
from .claims import mean_sd, shrinks, slightly_worse, varies_more
from .mnist import LAYERS, NETWORK

TITLE = (
    "Forward-Forward on MNIST: classification error over updates (A) and over network time steps "
    "(C)"
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
    shared = {"eta": learning_rates(LOW, HIGH, size["rates"]), "shown": size["shown"]}
    grid = [
        cell
        for name, ticks in TICKS.items()
        for cell in cells(name=name, ticks=ticks * size["updates"], **shared)
    ]
    return {
        "network": Sweep(
            "fig2-mnist", *NETWORK, grid, size["seeds"], records=size["records"], lanes=4, cost=2000
        )
    }


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    runs = {name: best(matching(data["network"], name=name), "train_error") for name in TICKS}
    common = size["updates"]  # time steps at the stars: where ISD ends
    panels = []
    for clock, (title, label) in CLOCKS.items():
        series = []
        for i, (name, run) in enumerate(runs.items()):
            for j, part in enumerate(("train", "test")):
                line = curve(f"{name}, {part}", run, clock, f"{part}_error", 100, colour=i, line=j)
                at = common / (TICKS[name] if clock == "updates" else 1)
                series.append(
                    line._replace(at=at)
                    if clock == "updates" and j == 0
                    else star(line, at)
                    if clock == "ticks"
                    else line
                )
        panels.append(Panel(title, label, "classification error (%)", series, logy=True))
    test = {name: 100 * Record(run).final("test_error").values for name, run in runs.items()}
    wide, narrow = (gap_along(runs, clock, common) for clock in CLOCKS)
    pair = ("ISD", test["ISD"], "standard", test["standard"])
    claims = [
        slightly_worse(
            "ISD is slightly worse than the standard algorithm (test error, %).",
            *pair,
            100 * UNTRAINED,
        ),
        varies_more("ISD varies more than the standard algorithm (test error, %).", *pair),
        shrinks(
            "In time steps the gap shrinks (test error, %).",
            wide,
            narrow,
            "ISD - standard, averaged along the curve",
        ),
    ]
    rates = ", ".join(f"{name} {float(run.eta):.2g}" for name, run in runs.items())
    errors = ", ".join(f"{name} {mean_sd(v)} %" for name, v in test.items())
    return Findings(
        panels,
        claims,
        [
            f"eta by line search, lowest mean training error at the end: {rates}.",
            f"{'-'.join(map(str, LAYERS))}, Adam, batch size 1; test error at the end: {errors}, "
            "on "
            "all test images; the curves are taken "
            f"on about {size['shown']} training and test images.",
            "Solid: training, dashed: test. The standard rule takes two passes to an update, ISD "
            "one.",
        ],
    )


def gap_along(runs: dict[str, xr.Dataset], clock: str, end: int) -> np.ndarray:
    """ISD - standard, test error in per cent, averaged over a clock up to `end`, for every seed."""
    grid = np.linspace(0, end, 25)[1:]
    isd, standard = (
        np.stack(
            [
                np.interp(grid, x, 100 * y)
                for x, y in zip(run[clock].values, run["test_error"].values, strict=True)
            ]
        )
        for run in (runs["ISD"], runs["standard"])
    )
    return (isd - standard).mean(1)
