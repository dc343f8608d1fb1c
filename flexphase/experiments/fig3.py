"""Fig. 3: performance against b, with the start of the negative phase as a factor of its own (A),
and what the variance predicts (B).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from ..methods.rbm import Params
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series, points
from ..sweep import Sweep, cells, matching
from ..theory.moments import moments
from ..theory.variance import best_b, given, trace_isd, trace_two_term
from .bas import BUILD, METRICS, UNTRAINED, build
from .claims import best_is, leans, mean_sd, robust

TITLE = "The probability b of a positive phase: performance (A) and variance of the estimator (B)"
DATA = None
PLAIN = ("rbm", 16, 16)
B = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
LENGTH = 100
ETA = {
    "isd": 0.0025,
    "aol": 0.005,
}  # ISD: the paper's. AoL: its 0.05, read as eta per phase, makes learning collapse
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
AXIS, NLL, TRACE = (
    "b, probability of a positive phase",
    "final NLL (nats, sum over 32 rows)",
    "trace of the covariance of the estimate",
)
SCENARIOS = [0.125, 0.5, 2.0]  # Tr cov(g-) of the analytic curves; Tr cov(g+) = 0.5, means zero


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    shared = {"length": LENGTH, "b": size["bs"], "ticks": LENGTH * size["phases"]}
    grid = [
        cell
        for name, eta in ETA.items()
        for cell in cells(name=name, eta=eta, start=size["starts"], **shared)
    ]
    grid += cells(name="aol", eta=PAPER_AOL_ETA, start="carry", **shared)
    return {"b": Sweep("fig3", BUILD, METRICS, grid, size["seeds"], records=20, keep_params=True)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    bs, errors = (
        size["bs"],
        {
            (name, start): by_b(data["b"], name, start, ETA[name])
            for name in ETA
            for start in size["starts"]
        },
    )
    collapsed = by_b(data["b"], "aol", "carry", PAPER_AOL_ETA)
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
    panels = [
        Panel(
            "A  start of the negative phase: carry (eq. 5)",
            AXIS,
            NLL,
            [s for s in series if "carry" in s.name],
        ),
        Panel("A  every start of the negative phase", AXIS, NLL, series),
        analytic(),
        measured(size, data["b"]),
    ]
    found = [claim for name in ETA for claim in about(LABEL[name], name, bs, errors)]
    trend = matching(data["b"], name="isd", start="carry")
    found.append(variance_claim(size, trend, bs, errors[("isd", "carry")]))
    return Findings(
        panels,
        found,
        [
            f"eta: ISD {ETA['isd']} (the paper's), AoL {ETA['aol']}. The paper's AoL value "
            f"{PAPER_AOL_ETA}, read as eta per phase, ends at "
            f"{mean_sd(np.concatenate(collapsed))} over all b: learning collapses.",
            "In the authors' code b also sets how long a free chain persists (carry: a run of "
            "negative "
            "phases goes on from its own state). "
            "`data` starts each negative phase at a data row, `persistent` at the end of the last "
            "negative phase, `random` afresh.",
            "B, analytic: Tr cov(g+) = 0.5, zero means, as in the paper. B, measured: second "
            "moments "
            "at the trained parameters of the first "
            "seed (b = 0.5).",
        ],
    )


def by_b(dataset: xr.Dataset, name: str, start: str, eta: float) -> list[np.ndarray]:
    """Final NLL of the seeds at each b."""
    final = matching(dataset, name=name, start=start, eta=eta).sortby("b")["nll"].values[:, :, -1]
    return [np.where(np.isfinite(row), row, UNTRAINED) for row in final]


def about(
    label: str, name: str, bs: list[float], errors: dict[tuple[str, str], list[np.ndarray]]
) -> list[Claim]:
    own = [
        robust(f"{label} is robust for b from 0.2 to 0.8.", bs, errors[(name, "carry")], UNTRAINED),
        best_is(f"{label}: the best b on BAS is below 0.5.", "below", bs, errors[(name, "carry")]),
        leans(
            f"{label}: b below 0.5 does better on BAS than 1 - b (our reading).",
            "below",
            bs,
            errors[(name, "carry")],
        ),
    ]
    other = errors.get((name, "persistent"))
    return (
        [
            *own,
            best_is(
                f"{label}, with persistent chains whatever b: still below 0.5.", "below", bs, other
            ),
        ]
        if other
        else own
    )


def analytic() -> Panel:
    b = np.linspace(0.05, 0.95, 91)
    series = []
    for i, minus in enumerate(SCENARIOS):
        m = given(0.5, minus)
        series.append(
            Series(
                f"ISD, Tr cov(g-) = {minus:g}",
                b,
                np.array([float(trace_isd(m, x)) for x in b]),
                colour=0,
                line=i,
            )
        )
        series.append(
            Series(
                f"eq. 1, Tr cov(g-) = {minus:g}",
                b[[0, -1]],
                np.full(2, float(trace_two_term(m))),
                colour=6,
                line=i,
            )
        )
    return Panel("B  analytic", AXIS, TRACE, series, logy=True)


def trained(dataset: xr.Dataset, name: str) -> Params:
    one = matching(dataset, name=name, start="carry", b=0.5).isel(cell=0, seed=0)
    return Params(**jax.tree.map(jnp.asarray, Record(one).params))


def measured(size: dict[str, Any], dataset: xr.Dataset) -> Panel:
    b, series = np.linspace(0.05, 0.95, 91), []
    for i, (name, eta) in enumerate(ETA.items()):
        m = moments(build(name, LENGTH, eta), trained(dataset, name), phases=size["moments"])
        series.append(
            Series(
                f"{LABEL[name]}, b* = {float(best_b(m)):.3f}",
                b,
                np.array([float(trace_isd(m, x)) for x in b]),
                colour=i,
            )
        )
        level = np.full(2, float(trace_two_term(m)))
        series.append(
            Series(f"eq. 1 at the parameters of {LABEL[name]}", b[[0, -1]], level, colour=6, line=i)
        )
    return Panel("B  from measured moments of the trained RBM", AXIS, TRACE, series, logy=True)


def variance_claim(
    size: dict[str, Any], dataset: xr.Dataset, bs: list[float], errors: list[np.ndarray]
) -> Claim:
    m = moments(
        build("isd", LENGTH, ETA["isd"]), trained(dataset, "isd"), phases=size["moments"], seed=1
    )
    star, error = float(best_b(m)), float(m.error(best_b))
    found = best_is(
        "", "below" if star < 0.5 else "above", bs, errors
    )  # is the best b on the side that the variance predicts?
    verdict = found.verdict if abs(star - 0.5) > 2 * error else "unclear"
    return Claim(
        "The effect of b on variance underlies its effect on learning (the paper's conjecture).",
        f"least variance at b* = {star:.3f} ± {error:.3f} (s.e.); least NLL: {found.measured}",
        verdict,
        f"b* off 0.5 by 2 s.e., and the best b on the same side: {found.test}; necessary, not "
        "sufficient",
    )
