"""Few images: does a learner with few positive phases (low b) need fewer data?

An RBM is shown some of the 32 rows of Bars and Stripes; its NLL is that of all of them. Every b has
its own best eta.
"""

from functools import cache, partial
from typing import Any

import numpy as np
import xarray as xr

from ..core import Run
from ..data import Rows, bars_and_stripes
from ..report.findings import Findings
from ..report.panels import Panel, medians
from ..sweep import Sweep, cells, learning_rates, matching
from . import bas
from .b_own import BS, bounded, lean
from .bas import LABEL as NLL
from .bas import METRICS, OPTIMUM, SIDE, UNTRAINED
from .fig3 import AXIS, LENGTH
from .seeds import best_rate, in_words, own_best, with_power

TITLE = "The probability b of a positive phase: few images"
DATA = None
PLAIN = ("rbm", 16, 16)
READINGS = ["slow weights", "stopped in time"]
SIZES = {
    "quick": {
        "phases": 10_000,
        "images": [16, 24],
        "subsets": 4,
        "seeds": 3,
        "rates": [0.005, 0.02, 3],
    },
    "full": {
        "phases": 40_000,
        "images": [12, 16, 24],
        "subsets": 16,
        "seeds": 4,
        "rates": [0.0025, 0.02, 4],
    },
}


@cache
def some_rows(images: int, subset: int) -> Rows:
    """`images` of the 32 rows, without replacement; one object for all cells of a subset."""
    rows = bars_and_stripes(SIDE)
    return Rows(rows[np.random.default_rng(subset).permutation(len(rows))[:images]])


def build_few(images: int, subset: int, **cell: Any) -> Run:
    """The run of a cell that is shown few of the images; the metric knows all of them."""
    return bas.build(**cell)._replace(source=some_rows(images, subset))


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Always-on learning at every b and eta, on subsets of the images."""
    shared = {"images": size["images"], "subset": list(range(size["subsets"]))}
    shared |= {"length": LENGTH, "ticks": LENGTH * size["phases"]}
    grid = cells(name="aol", eta=learning_rates(*size["rates"]), b=BS, **shared)
    how: dict[str, Any] = {"records": 20, "average": 0.5, "lanes": 40}
    return {"few": Sweep("b-few", f"{__name__}:build_few", METRICS, grid, size["seeds"], **how)}


def nll(dataset: xr.Dataset, images: int, how: str, rates: list[float]) -> list[np.ndarray]:
    """(rates, subsets) for each b: NLL of all 32 rows. Seeds that share their images are no
    independent samples, so that their mean is taken.
    """

    def at(b: float, eta: float) -> np.ndarray:
        run = matching(dataset, images=images, b=b, eta=eta).sortby("subset")
        if how == "slow weights":
            return bounded(run["averaged.nll"].values[..., -1]).mean(1)
        return bounded(run["nll"].values).min(-1).mean(1)

    return [np.array([at(b, eta) for eta in rates]) for b in BS]


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """NLL against b for every number of images."""
    rates = learning_rates(*size["rates"])
    each_eta = {
        (n, how): nll(data["few"], n, how, rates) for n in size["images"] for how in READINGS
    }
    found = {key: [own_best(values) for values in by_b] for key, by_b in each_eta.items()}
    claims = [
        claim
        for (n, how), each in found.items()
        for claim in with_power(
            partial(lean, f"{n} of 32 images, {how}: b below 0.5 does better than 1 - b."),
            {"own": each},
            "subsets",
        )
    ]
    series = [
        medians(
            f"{n} of 32 images, {how}",
            BS,
            each,
            colour=size["images"].index(n),
            line=READINGS.index(how),
        )
        for (n, how), each in found.items()
    ]
    remarks = [
        f"Always-on learning, T = {LENGTH}, {len(rates)} rates from {rates[0]:g} to "
        f"{rates[-1]:g}, {size['phases']} phases, {size['subsets']} subsets of the images (n), the "
        f"mean of {size['seeds']} seeds with each; NLL of all 32 rows. Half of the subsets choose "
        "the eta of the other half. Stopped in time: the least NLL of 20 moments of training, "
        "because images are learned by heart.",
        *(
            f"{n} of 32 images, {how}, mean ± sd (median): "
            f"{in_words(dict(zip(BS, each, strict=True)))}; best eta "
            f"{', '.join(f'{best_rate(v, rates):.3g}' for v in each_eta[n, how])}."
            for (n, how), each in found.items()
        ),
    ]
    panel = Panel("shown few images", AXIS, NLL, series, ylim=(OPTIMUM, 2 * UNTRAINED))
    return Findings([panel], claims, remarks, 1)
