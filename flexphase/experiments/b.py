"""The effect of b as in Fig. 3, with enough seeds to decide: is the best b where the variance is
least?

An RBM on Bars and Stripes at the eta of our Fig. 3 (ISD: the paper's), last iterate and slow
weights, with two starts of the negative phase. `b_own` gives every b its own eta, `b_few` shows
few images.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ..methods.rbm import Params
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series, medians
from ..sweep import Sweep, cells
from ..theory.moments import moments
from ..theory.variance import Moments, trace_isd
from .bas import BUILD, METRICS, OPTIMUM, build
from .bas import LABEL as NLL
from .claims import READ
from .fig3 import AXIS, ETA, LABEL, LENGTH, about, by_b, trained
from .seeds import in_words, resampled, share_claim, with_power

TITLE = "The probability b of a positive phase: one eta for all b, 64 seeds, and the variance"
DATA = None
PLAIN = ("rbm", 16, 16)
STARTS = ["carry", "persistent"]
SIZES = {
    "quick": {
        "bs": [0.1, 0.3, 0.5, 0.7, 0.9],
        "phases": 30_000,
        "seeds": 12,
        "machines": 2,
        "moments": 50,
    },
    "full": {
        "bs": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "phases": 100_000,
        "seeds": 64,
        "machines": 4,
        "moments": 100,
    },
}
Errors = dict[tuple[str, str, str], list[np.ndarray]]  # rule, start, how it is read -> seeds by b


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Two rules x two starts x b, slow weights beside them."""
    shared = {"length": LENGTH, "b": size["bs"], "ticks": LENGTH * size["phases"]}
    grid = [
        cell
        for name, eta in ETA.items()
        for cell in cells(name=name, eta=eta, start=STARTS, **shared)
    ]
    how: dict[str, Any] = {"records": 4, "average": 0.5, "lanes": 64, "keep_params": True}
    return {"b": Sweep("b", BUILD, METRICS, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """NLL against b, and the measured variance beside it."""
    bs = size["bs"]
    errors = {
        (name, start, how): by_b(data["b"], name, start, ETA[name], averaged)
        for name in ETA
        for start in STARTS
        for how, averaged in READ.items()
    }
    traces = {name: variances(size, data["b"], name) for name in ETA}
    common = {name: trace_isd(measured(size, data["b"], name), bs) for name in ETA}
    remarks = [
        f"RBM 16 x 16, no visible bias, T = {LENGTH}, {size['phases']} phases, {size['seeds']} "
        f"seeds, eta {ETA}. {OPTIMUM} is the optimum. Points are medians over seeds, bars the "
        "interquartile range over 1.349. Power: seeds are drawn again, as many as would be needed.",
        f"Variance: Tr cov of g / P(sign), median over the machines of {size['machines']} seeds "
        "that were trained at each b; dashed: all b at one machine of b = 0.5.",
        *(
            f"{LABEL[name]}, {start}, {how}, mean ± sd (median) at each b: "
            f"{in_words(dict(zip(bs, each, strict=True)))}."
            for (name, start, how), each in errors.items()
        ),
    ]
    panels = [*(nll_panel(name, bs, errors) for name in ETA), variance_panel(bs, traces, common)]
    return Findings(panels, claims(bs, errors, traces), remarks, columns=3)


def variances(size: dict[str, Any], dataset: xr.Dataset, name: str) -> np.ndarray:
    """Tr cov of what a phase adds, at each b with the machines that were trained there."""
    machines = range(size["machines"])
    return np.array(
        [
            np.median(
                [variance(size, name, b, trained(dataset, name, b, seed)) for seed in machines]
            )
            for b in size["bs"]
        ]
    )


def measured(size: dict[str, Any], dataset: xr.Dataset, name: str) -> Moments:
    """Moments at the machine of the first seed of b = 0.5."""
    run = build(name, LENGTH, ETA[name])
    return moments(run, trained(dataset, name), phases=size["moments"])


def variance(size: dict[str, Any], name: str, b: float, params: Params) -> float:
    """Tr cov of what a phase adds at these parameters."""
    run = build(name, LENGTH, ETA[name], b)
    return float(trace_isd(moments(run, params, phases=size["moments"]), b))


def claims(bs: list[float], errors: Errors, traces: dict[str, np.ndarray]) -> list[Claim]:
    """The paper's sentences with more seeds, and where the variance is least."""
    found = []
    for name in ETA:
        last = {(name, start): errors[name, start, "last iterate"] for start in STARTS}
        found += with_power(partial(about, LABEL[name], name, bs), last)
        found += [
            least_variance(f"{LABEL[name]}, {how}", bs, traces[name], errors[name, "carry", how])
            for how in READ
        ]
    return found


def least_variance(label: str, bs: list[float], trace: np.ndarray, nll: list[np.ndarray]) -> Claim:
    """Is the best b where the measured variance is least, up to one step of the grid?

    Seeds are drawn again for the NLL only: where the variance is least is taken as known.
    """
    at = int(trace.argmin())
    tops = [some.mean(1).argmin() for (some,) in resampled(np.array(nll))]
    best = bs[int(np.mean(nll, axis=1).argmin())]
    return share_claim(
        f"{label}: the best b is within a step of the one of least variance.",
        f"best b {best:g}, least variance at {bs[at]:g}; near",
        [abs(top - at) <= 1 for top in tops],
    )


def nll_panel(name: str, bs: list[float], errors: Errors) -> Panel:
    series = [
        medians(
            f"{start}, {how}",
            bs,
            errors[name, start, how],
            colour=i,
            line=int(averaged),
        )
        for i, start in enumerate(STARTS)
        for how, averaged in READ.items()
    ]
    return Panel(f"{LABEL[name]}, eta {ETA[name]}", AXIS, NLL, series)


def variance_panel(
    bs: list[float], traces: dict[str, np.ndarray], common: dict[str, np.ndarray]
) -> Panel:
    series = []
    for i, (name, trace) in enumerate(traces.items()):
        own = Series(LABEL[name], np.array(bs), trace, kind="points", colour=i)
        series += [own, Series("", np.array(bs), common[name], colour=i, line=1)]
    label = "Tr cov of the term of a phase"
    return Panel("variance where each b was trained", AXIS, label, series, logy=True)
