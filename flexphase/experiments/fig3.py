"""Fig. 3: performance against b (A), and what the variance predicts (B).

In A the start of the negative phase is a factor of its own.
"""

from typing import Any

import numpy as np
import xarray as xr

from ..methods.rbm import Params
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series, points
from ..sweep import Sweep, cells, matching
from ..theory.moments import moments
from ..theory.variance import Moments, best_b, given, trace_isd, trace_two_term
from .bas import BUILD, METRICS, UNTRAINED, build, machine
from .claims import best_is, leans, mean_sd, robust

TITLE = "The probability b of a positive phase: performance (A) and variance of the estimator (B)"
DATA = None
PLAIN = ("rbm", 16, 16)
B = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
LENGTH = 100
# ISD: the paper's. AoL: the paper's 0.05, read as eta per phase, makes learning collapse.
ETA = {"isd": 0.0025, "aol": 0.005}
LABEL = {"isd": "ISD", "aol": "AoL"}
PAPER_AOL_ETA = 0.05
STARTS = ["carry", "data", "persistent", "random"]
SIZES = {
    "quick": {
        "phases": 50_000,
        "seeds": 6,
        "bs": [0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9],
        "starts": ["carry", "persistent"],
        "moments": 100,
    },
    "full": {"phases": 100_000, "seeds": 10, "bs": B, "starts": STARTS, "moments": 400},
}
AXIS = "b, probability of a positive phase"
NLL = "final NLL (nats, sum over 32 rows)"
TRACE = "trace of the covariance of the estimate"
SCENARIOS = [0.125, 0.5, 2.0]  # Tr cov(g-) of the analytic curves; Tr cov(g+) = 0.5, means zero


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Two rules x starts of the negative phase x b, and AoL at the paper's eta."""
    shared = {"length": LENGTH, "b": size["bs"], "ticks": LENGTH * size["phases"]}
    grid = [
        cell
        for name, eta in ETA.items()
        for cell in cells(name=name, eta=eta, start=size["starts"], **shared)
    ]
    grid += cells(name="aol", eta=PAPER_AOL_ETA, start="carry", **shared)
    return {"b": Sweep("fig3", BUILD, METRICS, grid, size["seeds"], records=20, keep_params=True)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """A: final NLL against b. B: traces, analytic and from moments of the trained machines."""
    bs, trained_on_b = size["bs"], data["b"]
    errors = {
        (name, start): by_b(trained_on_b, name, start, ETA[name])
        for name in ETA
        for start in size["starts"]
    }
    series = [
        points(
            f"{LABEL[name]}, start: {start}",
            bs,
            values,
            colour=list(ETA).index(name),
            line=size["starts"].index(start),
        )
        for (name, start), values in errors.items()
    ]
    carry = [s for s in series if "carry" in s.name]
    panels = [
        Panel("A  start of the negative phase: carry (eq. 5)", AXIS, NLL, carry),
        Panel("A  every start of the negative phase", AXIS, NLL, series),
        analytic(),
        measured(size, trained_on_b),
    ]
    claims = [claim for name in ETA for claim in about(LABEL[name], name, bs, errors)]
    claims.append(variance_claim(size, trained_on_b, bs, errors[("isd", "carry")]))
    collapsed = np.concatenate(by_b(trained_on_b, "aol", "carry", PAPER_AOL_ETA))
    remarks = [
        f"eta: ISD {ETA['isd']} (the paper's), AoL {ETA['aol']}. "
        f"The paper's AoL value {PAPER_AOL_ETA}, read as eta per phase, ends at "
        f"{mean_sd(collapsed)} over all b: learning collapses.",
        "In the authors' code b also sets how long a free chain persists (carry: a run of negative "
        "phases goes on from its own state). `data` starts each negative phase at a data row, "
        "`persistent` at the end of the last negative phase, `random` afresh.",
        "B, analytic: Tr cov(g+) = 0.5, zero means, as in the paper. "
        "B, measured: second moments at the trained parameters of the first seed (b = 0.5).",
    ]
    return Findings(panels, claims, remarks)


def by_b(
    dataset: xr.Dataset, name: str, start: str, eta: float, averaged: bool = False
) -> list[np.ndarray]:
    """Final NLL of the seeds at each b; that of an untrained machine where one diverged."""
    runs = matching(dataset, name=name, start=start, eta=eta).sortby("b")
    final = Record(runs).final("nll", averaged).values
    return [np.where(np.isfinite(row), row, UNTRAINED) for row in final]


def about(
    label: str, name: str, bs: list[float], errors: dict[tuple[str, str], list[np.ndarray]]
) -> list[Claim]:
    """The claims of A for one rule."""
    own, persistent = errors[(name, "carry")], errors.get((name, "persistent"))
    mirrored = f"{label}: b below 0.5 does better on BAS than 1 - b (our reading)."
    claims = [
        robust(f"{label} is robust for b from 0.2 to 0.8.", bs, own, UNTRAINED),
        best_is(f"{label}: the best b on BAS is below 0.5.", "below", bs, own),
        leans(mirrored, "below", bs, own),
    ]
    if persistent:
        still = f"{label}, with persistent chains whatever b: still below 0.5."
        claims.append(best_is(still, "below", bs, persistent))
    return claims


def traces(m: Moments, isd: str, two_term: str) -> list[Series]:
    """Tr cov of eq. 2 against b, and that of eq. 1 as a level line, under these names."""
    b, level = np.linspace(0.05, 0.95, 91), np.full(2, float(trace_two_term(m)))
    return [
        Series(isd, b, np.array([float(trace_isd(m, x)) for x in b])),
        Series(two_term, b[[0, -1]], level, colour=6),
    ]


def analytic() -> Panel:
    """B for given covariances."""
    series = []
    for i, minus in enumerate(SCENARIOS):
        names = (f"{rule}, Tr cov(g-) = {minus:g}" for rule in ("ISD", "eq. 1"))
        series += [s._replace(line=i) for s in traces(given(0.5, minus), *names)]
    return Panel("B  analytic", AXIS, TRACE, series, logy=True)


def trained(dataset: xr.Dataset, name: str, b: float = 0.5, seed: int = 0) -> Params:
    """The trained parameters of a rule, one seed."""
    one = matching(dataset, name=name, start="carry", b=b).isel(cell=0, seed=seed)
    return machine(one)


def measured(size: dict[str, Any], dataset: xr.Dataset) -> Panel:
    """B for the moments of the trained machines."""
    series = []
    for i, (name, eta) in enumerate(ETA.items()):
        m = moments(build(name, LENGTH, eta), trained(dataset, name), phases=size["moments"])
        isd, two_term = traces(
            m,
            f"{LABEL[name]}, b* = {float(best_b(m)):.3f}",
            f"eq. 1 at the parameters of {LABEL[name]}",
        )
        series += [isd._replace(colour=i), two_term._replace(line=i)]
    return Panel("B  from measured moments of the trained RBM", AXIS, TRACE, series, logy=True)


def variance_claim(
    size: dict[str, Any], dataset: xr.Dataset, bs: list[float], errors: list[np.ndarray]
) -> Claim:
    """Is the best b of ISD on the side of 0.5 that the variance predicts?"""
    run = build("isd", LENGTH, ETA["isd"])
    m = moments(run, trained(dataset, "isd"), phases=size["moments"], seed=1)
    star, error = float(best_b(m)), float(m.error(best_b))
    found = best_is("", "below" if star < 0.5 else "above", bs, errors)
    return Claim(
        "The effect of b on variance underlies its effect on learning (the paper's conjecture).",
        f"least variance at b* = {star:.3f} ± {error:.3f} (s.e.); least NLL: {found.measured}",
        found.verdict if abs(star - 0.5) > 2 * error else "unclear",
        f"b* off 0.5 by 2 s.e., and the best b on the same side: {found.test}; "
        "necessary, not sufficient",
    )
