"""The effect of b on labelled MNIST, with 16 seeds: the appendix again, each b at its own best eta.

The machine of the appendix, trained for a shorter time; errors are exact, by free energy, and from
samples of the label units, as in the paper, on part of the test images.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ..classification import SampledError
from ..core import Run
from ..data import binarised_mnist
from ..data.mnist import fetch_mnist
from ..data.transforms import every
from ..metrics import AtEnd
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, medians
from ..sweep import Sweep, cells, matching
from .appendix import ERRORS, LENGTH, UNTRAINED
from .claims import READ, best_is, leans, robust
from .fig3 import AXIS
from .mnist import ERROR, HIDDEN, VISIBLE, build_rbm, exact_error
from .seeds import in_words, own_best, with_power

TITLE = "The probability b of a positive phase: labelled MNIST"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"
BS = [0.1, 0.3, 0.5, 0.7, 0.9]
ETAS = [0.0025, 0.005]
SIZES = {
    "quick": {"phases": 500, "seeds": 3, "shown": 500, "sampled": 500},
    "full": {"phases": 10_000, "seeds": 16, "shown": 1000, "sampled": 2000},
}


def metrics(shown: int, sampled: int, **_: Any) -> dict[str, Any]:
    """The exact error, and at the end that from samples on about `sampled` test images."""
    along, end = (SampledError(*every(n, *binarised_mnist().test)) for n in (50, sampled))
    return exact_error(shown) | {"sampled_error": AtEnd(along, end)}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Always-on learning at every b and two rates, slow weights beside them."""
    shared = {"length": LENGTH, "ticks": LENGTH * size["phases"]}
    shared |= {"shown": size["shown"], "sampled": size["sampled"]}
    grid = cells(b=BS, eta=ETAS, **shared)
    how: dict[str, Any] = {"records": 4, "average": 0.5, "lanes": 4, "cost": 100}
    return {"b": Sweep("b-mnist", BUILD, METRICS, grid, size["seeds"], **how)}


def build(sampled: int, **cell: Any) -> Run:
    """The run of a cell; `sampled` is a setting of the metrics alone."""
    return build_rbm(**cell)


def errors(dataset: xr.Dataset, metric: str, averaged: bool) -> list[np.ndarray]:
    """Test error in per cent of the seeds at each b, at its own best eta."""
    by_b = (Record(matching(dataset, b=b)).final(metric, averaged) for b in BS)
    return [own_best(100 * np.nan_to_num(each, nan=UNTRAINED)) for each in by_b]


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Test error against b, last iterate and slow weights."""
    found = {
        (name, how): errors(data["b"], name, averaged)
        for name in ERRORS
        for how, averaged in READ.items()
    }
    series = [
        medians(f"{how}, {ERRORS[name]}", BS, each, colour=i % 2, line=i // 2)
        for i, ((name, how), each) in enumerate(found.items())
    ]
    remarks = [
        f"RBM {VISIBLE} x {HIDDEN}, no visible bias, AoL with T = {LENGTH}, the better of eta "
        f"{ETAS} for each b (half of the seeds choose for the other half), {size['phases']} "
        f"phases, {size['seeds']} seeds; exact errors on all test images, those from samples on "
        f"about {size['sampled']}. Points are medians over seeds, bars the interquartile range "
        "over 1.349.",
        *(
            f"{how}, {ERRORS[name]}, %, mean ± sd (median) at each b: "
            f"{in_words(dict(zip(BS, each, strict=True)))}."
            for (name, how), each in found.items()
        ),
    ]
    claims = [
        claim
        for (name, how), each in found.items()
        for claim in with_power(
            partial(about if name == ERROR else best_of_samples, how), {0: each}
        )
    ]
    return Findings([Panel("labelled MNIST", AXIS, "test error (%)", series)], claims, remarks)


def best_of_samples(how: str, errors: dict[int, list[np.ndarray]]) -> list[Claim]:
    """The paper's sentence about the best b, with its own error."""
    words = f"{how}: the best b on MNIST is above 0.5 (error from samples)."
    return [best_is(words, "above", BS, errors[0])]


def about(how: str, errors: dict[int, list[np.ndarray]]) -> list[Claim]:
    """The paper's sentences about b on MNIST, for one way to read the machine."""
    each = errors[0]
    return [
        best_is(f"{how}: the best b on MNIST is above 0.5.", "above", BS, each),
        leans(f"{how}: b above 0.5 does better on MNIST than 1 - b.", "above", BS, each),
        robust(f"{how}: robust for b from 0.3 to 0.7.", BS, each, 100 * UNTRAINED, 0.3, 0.7),
    ]
