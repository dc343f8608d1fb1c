"""Study: how much precision, range and symmetry the rules need, and how often they write.

An RBM 16 x 16 on Bars and Stripes, every rule on devices with one limit at a time.
"""

from typing import Any

import numpy as np
import xarray as xr

from .. import lanes
from ..core import Run
from ..costs.meter import Meter
from ..methods import RBM
from ..report.findings import Claim, Findings
from ..report.panels import Panel, points
from ..sweep import Sweep
from ..training import train
from . import devices
from .bas import HIDDEN, LABEL, METRICS, OPTIMUM, SIDE, UNTRAINED, source
from .claims import DRASTIC, verdict, within
from .devices import AVERAGE, FEW, RANGE, RULES, Learner, finals, least, optimiser, rule

COUNTED = 20  # phases in which writes are counted
TITLE = "Hardware: an RBM on Bars and Stripes, its devices and its writes"
DATA = None
PLAIN = ("rbm", SIDE**2, HIDDEN)
LENGTH, ETA = 100, 0.01
LEARNER = Learner(
    metric="nll",
    label=LABEL,
    untrained=UNTRAINED,
    ylim=(OPTIMUM - 5, 1.2 * UNTRAINED),
    length=LENGTH,
    etas=dict.fromkeys(RULES, ETA),
)
TRAINING = 1e5  # phases of a whole training, for endurance
ENDURANCE = {"flash": 1e5, "RRAM": 1e6, "PCM": 1e9}  # writes that cells of each kind survive
SIZES = {
    "quick": {
        "phases": 15_000,
        "seeds": 4,
        "bits": [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0],
        "range": [1.0, 2.0, 4.0, 8.0],
        "noise": [1e-4, 1e-3, 1e-2, 1e-1],
        "asymmetry": [0.001, 0.01, 0.1],
    },
    "full": {
        "phases": 100_000,
        "seeds": 4,
        "bits": [6.0, 8.0, 9.0, 14.0, 15.0],
        "range": [2.0, 4.0],
        "noise": [1e-3, 1e-2],
        "asymmetry": [0.01, 0.03, 0.1],
    },
}


def build(name: str, eta: float, kind: str, value: float, rounding: str = "nearest") -> Run:
    """The run of a cell: a rule on devices whose `kind` is `value`."""
    method = RBM(SIDE**2, HIDDEN, visible_bias=False)
    return Run(method, *rule(name, LENGTH), source(), optimiser(kind, value, rounding, eta))


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Every rule without limits, and with each limit alone."""
    how: dict[str, Any] = {"records": 10, "average": AVERAGE}
    grid = devices.grid(size, LEARNER)
    return {"bas": Sweep("hardware", f"{__name__}:build", METRICS, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """NLL against each limit, where learning stops, and writes."""
    bas, writes = data["bas"], writes_of(size["bits"])
    stops = ", ".join(f"{RULES[name]} {least(name, LEARNER)}" for name in RULES)
    remarks = [
        f"RBM {SIDE**2} x {HIDDEN}, eta {ETA}, T = {LENGTH}, b = 0.5, {size['phases']} phases, "
        f"range {RANGE:g} with bits; NLL is exact, {OPTIMUM} is the optimum, {UNTRAINED} a uniform "
        "model. Solid: last weights, dashed: slow weights, which are kept beside the device in "
        "full precision.",
        devices.without_limits(bas, LEARNER),
        "Dotted: the bits from which on rounding to the nearest sees a change of one term, "
        f"predicted: {stops}.",
        f"Writes are counted in {COUNTED} phases of an untrained machine.",
    ]
    nearest, *others = devices.panels(size, bas, LEARNER)
    dotted = [
        s._replace(at=least(name, LEARNER)) if s.name else s
        for name, s in zip(np.repeat([*RULES], 2), nearest.series, strict=True)
    ]
    panels = [nearest._replace(series=dotted), *others, writes_panel(size, writes)]
    return Findings(panels, claims(size, bas, writes), remarks)


def writes_of(bits: list[float]) -> dict[str, np.ndarray]:
    """Writes per synapse and phase of each rule, at each number of bits with stochastic rounding,
    and last without limits; counted in a real run by the ledger's observer.
    """
    found = {}
    for name in RULES:

        def on_bits(value: float, name: str = name) -> Run:
            return build(name, ETA, "bits", value, "stochastic")

        runs = (lanes.grid(on_bits, value=bits), build(name, ETA, "none", 0.0))
        found[name] = np.concatenate([mean_writes(run) for run in runs]) / COUNTED
    return found


def mean_writes(run: Any) -> np.ndarray:
    """Writes of a weight in every lane, mean over the weights."""
    record = train(run, phases=COUNTED, records=1, observers={"meter": Meter()}, engine="jax")
    writes = record.observed("meter")["writes"].values
    return writes.reshape(-1, writes.shape[-1])[:, : SIDE**2 * HIDDEN].mean(1)


def writes_panel(size: dict[str, Any], writes: dict[str, np.ndarray]) -> Panel:
    """Writes per synapse and phase against bits; the last point is a device without levels."""
    x = [*size["bits"], max(size["bits"]) + 2]
    series = [
        points(RULES[name], x, [[w] for w in values], colour=i)
        for i, (name, values) in enumerate(writes.items())
    ]
    label = "bits (the last point: no levels)"
    return Panel("writes, stochastic rounding", label, "per synapse and phase", series, logy=True)


def claims(size: dict[str, Any], bas: xr.Dataset, writes: dict[str, np.ndarray]) -> list[Claim]:
    """Our own claims, written before the first run of the full size."""
    return [
        *(devices.stops_where_predicted(size, bas, LEARNER, name) for name in RULES),
        devices.saved_by_chance(size, bas, LEARNER, "aol"),
        as_few_bits(size, bas),
        devices.asymmetry_claim(size, bas, LEARNER, spares=False),
        endures(size, writes),
    ]


def as_few_bits(size: dict[str, Any], bas: xr.Dataset) -> Claim:
    """With stochastic rounding and slow weights, always-on learning needs as many bits as ISD."""
    needed = {}
    for name in ("isd", "aol"):
        free = finals(bas, LEARNER, True, kind="none", name=name)[0]
        nll = finals(bas, LEARNER, True, kind="bits", name=name, rounding="stochastic")
        limit = DRASTIC * (UNTRAINED - float(np.mean(free)))
        fine = [within(values, free, limit) == "pass" for values in nll]
        needed[name] = next((b for b, ok in zip(size["bits"], fine, strict=True) if ok), np.inf)
    return Claim(
        "With stochastic rounding and slow weights, AoL needs no more bits than ISD.",
        ", ".join(f"{RULES[name]} {bits:g} bits" for name, bits in needed.items()),
        verdict(needed["aol"] <= needed["isd"] < np.inf, needed["aol"] > needed["isd"] + 2),
        f"fewest bits at which less than {DRASTIC:.0%} of the improvement is lost (Welch)",
    )


def endures(size: dict[str, Any], writes: dict[str, np.ndarray]) -> Claim:
    """Writes of a whole training beside what cells survive."""
    at = size["bits"].index(FEW)
    whole = {name: TRAINING * values[[-1, at]] for name, values in writes.items()}
    counts = (f"{RULES[name]} {free:.2g} and {few:.2g}" for name, (free, few) in whole.items())
    few = whole["aol"][1]
    return Claim(
        f"Endurance does not rule out AoL on {FEW:g} bits with stochastic rounding: {TRAINING:.0g} "
        f"phases stay below the {ENDURANCE['RRAM']:.0g} writes that RRAM survives.",
        f"writes per synapse in {TRAINING:.0g} phases without levels and on {FEW:g} bits: "
        + ", ".join(counts),
        verdict(bool(few < ENDURANCE["RRAM"]), bool(few >= ENDURANCE["RRAM"])),
        "counted by the ledger; cells survive about "
        + ", ".join(f"{kind} {n:.0g}" for kind, n in ENDURANCE.items()),
    )
