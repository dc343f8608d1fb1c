"""The effect of b on labelled MNIST, with 16 seeds: the appendix again, each b at its own best eta.

The machine of the appendix, trained for a shorter time; errors are exact, by free energy.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ..data.mnist import fetch_mnist
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, medians
from ..sweep import Sweep, cells, matching
from .appendix import LENGTH, UNTRAINED
from .claims import READ, best_is, leans, robust
from .fig3 import AXIS
from .mnist import ERROR, EXACT_ERROR, HIDDEN, MACHINE, VISIBLE
from .seeds import in_words, own_best, with_power

TITLE = "The probability b of a positive phase: labelled MNIST"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
BS = [0.1, 0.3, 0.5, 0.7, 0.9]
ETAS = [0.0025, 0.005]
SIZES = {
    "quick": {"phases": 500, "seeds": 3, "shown": 500},
    "full": {"phases": 10_000, "seeds": 16, "shown": 1000},
}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Always-on learning at every b and two rates, slow weights beside them."""
    shared = {"length": LENGTH, "shown": size["shown"], "ticks": LENGTH * size["phases"]}
    grid = cells(b=BS, eta=ETAS, **shared)
    how: dict[str, Any] = {"records": 4, "average": 0.5, "lanes": 4, "cost": 100}
    return {"b": Sweep("b-mnist", MACHINE[0], EXACT_ERROR, grid, size["seeds"], **how)}


def errors(dataset: xr.Dataset, averaged: bool) -> list[np.ndarray]:
    """Test error in per cent of the seeds at each b, at its own best eta."""
    by_b = (Record(matching(dataset, b=b)).final(ERROR, averaged) for b in BS)
    return [own_best(100 * np.nan_to_num(each, nan=UNTRAINED)) for each in by_b]


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Test error against b, last iterate and slow weights."""
    found = {how: errors(data["b"], averaged) for how, averaged in READ.items()}
    series = [medians(how, BS, each, colour=i) for i, (how, each) in enumerate(found.items())]
    remarks = [
        f"RBM {VISIBLE} x {HIDDEN}, no visible bias, AoL with T = {LENGTH}, the better of eta "
        f"{ETAS} for each b (half of the seeds choose for the other half), {size['phases']} "
        f"phases, {size['seeds']} seeds; exact errors on all test images. Points are medians over "
        "seeds, bars the interquartile range over 1.349.",
        *(
            f"{how}, %, mean ± sd (median) at each b: {in_words(dict(zip(BS, each, strict=True)))}."
            for how, each in found.items()
        ),
    ]
    claims = [c for how, each in found.items() for c in with_power(partial(about, how), {0: each})]
    return Findings([Panel("labelled MNIST", AXIS, "test error (%)", series)], claims, remarks)


def about(how: str, errors: dict[int, list[np.ndarray]]) -> list[Claim]:
    """The paper's sentences about b on MNIST, for one way to read the machine."""
    each = errors[0]
    return [
        best_is(f"{how}: the best b on MNIST is above 0.5.", "above", BS, each),
        leans(f"{how}: b above 0.5 does better on MNIST than 1 - b.", "above", BS, each),
        robust(f"{how}: robust for b from 0.3 to 0.7.", BS, each, 100 * UNTRAINED, 0.3, 0.7),
    ]
