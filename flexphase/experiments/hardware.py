"""Study: how much precision, range and symmetry the rules need, and how often they write.

An RBM 16 x 16 on Bars and Stripes, every rule on devices with one limit at a time.
"""

from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from ..core import Run
from ..data import Rows, bars_and_stripes
from ..devices.precision import bits_needed
from ..lanes import grid
from ..ledger import Meter
from ..likelihood import NLL
from ..methods import RBM
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, points
from ..sweep import Sweep, cells, matching
from ..training import train
from .bas import HIDDEN, LABEL, OPTIMUM, SIDE, UNTRAINED
from .claims import DRASTIC, all_of, gap, mean_sd, verdict, worse
from .devices import RANGE, Trained, optimiser, rule, rules

TITLE = "Hardware: bits, range, write noise and asymmetry that each rule survives"
DATA = None
PLAIN = ("rbm", SIDE**2, HIDDEN)
LENGTH, ETA = 100, 0.01
RULES = rules(LENGTH)
AVERAGE = 0.5
LEARNS = 0.05  # share of what a rule learns without limits, from which on it counts as learning
ENDURANCE = {"flash": 1e5, "RRAM": 1e6, "PCM": 1e9}  # writes that cells of each kind survive
SIZES = {
    "quick": {
        "steps": 20_000,
        "seeds": 4,
        "bits": [4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0],
        "range": [1.0, 2.0, 4.0, 8.0],
        "noise": [1e-4, 1e-3, 1e-2, 1e-1],
        "proportional": [0.3, 1.0, 3.0],
        "asymmetry": [0.001, 0.01, 0.05, 0.2],
    },
    "full": {
        "steps": 100_000,
        "seeds": 10,
        "bits": [float(bits) for bits in range(3, 19)],
        "range": [0.5, 1.0, 2.0, 4.0, 8.0],
        "noise": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        "proportional": [0.1, 0.3, 1.0, 3.0, 10.0],
        "asymmetry": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3],
    },
}
LIMITS = {
    "range": "largest weight R",
    "noise": "write noise (sd per write)",
    "proportional": "write noise (share of the change)",
    "asymmetry": "asymmetry",
}


def build(name: str, kind: str, value: float, rounding: str = "nearest") -> Run:
    """The run of a cell: a rule on devices whose `kind` is `value`."""
    method = RBM(SIDE**2, HIDDEN, visible_bias=False)
    return Run(method, *rule(name, LENGTH), source(), optimiser(kind, value, rounding, ETA))


@cache
def source() -> Rows:
    """One object for all cells, so that lanes share its data."""
    return Rows(bars_and_stripes(SIDE))


def metrics(**_: Any) -> dict[str, Any]:
    return {"nll": NLL(bars_and_stripes(SIDE))}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Every rule without limits, and with each limit alone."""
    grid = []
    for trained in RULES.values():
        shared = {"name": trained.word, "ticks": trained.ticks * size["steps"]}
        grid += cells(kind="none", value=0.0, rounding="nearest", **shared)
        both = ["nearest", "stochastic"]
        grid += cells(kind="bits", value=size["bits"], rounding=both, **shared)
        for kind in LIMITS:
            grid += cells(kind=kind, value=size[kind], rounding="nearest", **shared)
    build_and_metrics = (f"{__name__}:build", f"{__name__}:metrics")
    how = {"records": 10, "average": AVERAGE}
    return {"bas": Sweep("hardware", *build_and_metrics, grid, size["seeds"], **how)}


def finals(data: xr.Dataset, averaged: bool, **cell: Any) -> np.ndarray:
    """(values, seeds): the NLL at the end, cells in the order of their value."""
    found = matching(data, **cell)
    order = np.argsort(found["value"].values)
    return Record(found.isel(cell=order)).final("nll", averaged).values


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """NLL against each limit, where learning stops, and writes."""
    bas = data["bas"]
    writes = endurance(size["bits"])
    stops = ", ".join(
        f"{name} {bits_needed(ETA * trained.weight, RANGE)}" for name, trained in RULES.items()
    )
    remarks = [
        f"RBM {SIDE**2} x {HIDDEN}, eta {ETA}, T = {LENGTH}, b = 0.5, range {RANGE:g} with bits; "
        f"NLL is exact, {OPTIMUM} is the optimum, {UNTRAINED} a uniform model. Solid: last "
        "weights, dashed: slow weights, which are kept beside the device in full precision.",
        "Dotted: the bits from which on rounding to the nearest sees a change of one term, "
        f"predicted: {stops}.",
        "Writes are counted in 20 phases of an untrained machine; a share of writes below one per "
        "phase is what stochastic rounding leaves.",
    ]
    panels = [
        bits_panel(size, bas, "nearest"),
        bits_panel(size, bas, "stochastic"),
        *(limit_panel(size, bas, kind) for kind in LIMITS),
        writes_panel(size, writes),
    ]
    return Findings(panels, claims(size, bas, writes), remarks)


def bits_panel(size: dict[str, Any], bas: xr.Dataset, rounding: str) -> Panel:
    """NLL against bits under one kind of rounding."""
    series = []
    for i, (name, trained) in enumerate(RULES.items()):
        for line, averaged in enumerate((False, True)):
            cell = {"kind": "bits", "name": trained.word, "rounding": rounding}
            drawn = points(
                name if not averaged else "",
                size["bits"],
                list(finals(bas, averaged, **cell)),
                colour=i,
                line=line,
            )
            at = bits_needed(ETA * trained.weight, RANGE) if rounding == "nearest" else None
            series.append(drawn._replace(at=at))
    title = f"{rounding} rounding"
    return Panel(title, "bits", LABEL, series, ylim=(OPTIMUM - 5, 1.2 * UNTRAINED))


def limit_panel(size: dict[str, Any], bas: xr.Dataset, kind: str) -> Panel:
    """NLL against one limit."""
    series = [
        points(
            name if not averaged else "",
            size[kind],
            list(finals(bas, averaged, kind=kind, name=trained.word)),
            colour=i,
            line=line,
        )
        for i, (name, trained) in enumerate(RULES.items())
        for line, averaged in enumerate((False, True))
    ]
    top = (OPTIMUM - 5, 1.2 * UNTRAINED)
    return Panel(LIMITS[kind], LIMITS[kind], LABEL, series, logx=True, ylim=top)


def endurance(bits: list[float], phases: int = 20) -> dict[str, np.ndarray]:
    """Writes per synapse and phase of each rule: without limits, then at each number of bits with
    stochastic rounding; counted by the ledger's observer.
    """
    found = {}
    for name, trained in RULES.items():
        ticks = phases * LENGTH if trained.word != "aol-random" else phases * trained.ticks
        plain = counted(build(trained.word, "none", 0.0), ticks)

        def on_bits(value: float, word: str = trained.word) -> Run:
            return build(word, "bits", value, "stochastic")

        found[name] = np.concatenate([plain, counted(grid(on_bits, value=bits), ticks)]) / phases
    return found


def counted(run: Any, ticks: int) -> np.ndarray:
    """Mean writes of the weights in every lane."""
    on_device = not isinstance(run, Run)
    record = train(run, ticks=ticks, records=1, observers={"meter": Meter(on_device)}, engine="jax")
    writes = record.observed("meter")["writes"].values
    return writes.reshape(-1, writes.shape[-1])[:, : SIDE**2 * HIDDEN].mean(1)


def writes_panel(size: dict[str, Any], writes: dict[str, np.ndarray]) -> Panel:
    """Writes per synapse and phase against bits; the last point is a device without levels."""
    x = [*size["bits"], max(size["bits"]) + 2]
    series = [
        points(name, x, [[w] for w in [*values[1:], values[0]]], colour=i)
        for i, (name, values) in enumerate(writes.items())
    ]
    label = "bits (the last point: no levels)"
    return Panel("writes, stochastic rounding", label, "per synapse and phase", series, logy=True)


def claims(size: dict[str, Any], bas: xr.Dataset, writes: dict[str, np.ndarray]) -> list[Claim]:
    """Our own claims."""
    return [
        *(stops_where_predicted(size, bas, name, trained) for name, trained in RULES.items()),
        saved_by_chance(size, bas),
        as_few_bits(size, bas),
        endures(size, writes),
    ]


def learned(bas: xr.Dataset, trained: Trained) -> float:
    """How far the rule gets without limits, in nats."""
    free = finals(bas, False, kind="none", name=trained.word)[0]
    return UNTRAINED - float(np.median(free))


def stops_where_predicted(
    size: dict[str, Any], bas: xr.Dataset, name: str, trained: Trained
) -> Claim:
    """With rounding to the nearest a rule learns if and only if a change is half a step or more."""
    least = bits_needed(ETA * trained.weight, RANGE)
    nll = finals(bas, False, kind="bits", name=trained.word, rounding="nearest")
    moved = np.abs(UNTRAINED - nll).max(1) > LEARNS * learned(bas, trained)
    predicted = np.array(size["bits"]) >= least
    found = [f"{int(b)}" for b, m in zip(size["bits"], moved, strict=True) if m]
    return Claim(
        f"{name}: rounding to the nearest stops learning below {least} bits (predicted).",
        f"weights move at {', '.join(found) or 'none'} of "
        f"{', '.join(f'{b:g}' for b in size['bits'])} bits",
        verdict(bool((moved == predicted).all()), bool((moved != predicted).any())),
        f"the NLL of some seed moves by more than {LEARNS:.0%} of what is learned without limits",
    )


def saved_by_chance(size: dict[str, Any], bas: xr.Dataset) -> Claim:
    """Stochastic rounding lets always-on learning learn where the nearest level stops it."""
    word, bits = RULES["AoL"].word, 8.0 if 8.0 in size["bits"] else size["bits"][0]
    at = size["bits"].index(bits)
    near, chance = (
        finals(bas, False, kind="bits", name=word, rounding=r)[at]
        for r in ("nearest", "stochastic")
    )
    p = worse(near, chance)
    return Claim(
        f"At {bits:g} bits stochastic rounding saves always-on learning.",
        f"nearest {mean_sd(near)}, stochastic {mean_sd(chance)}, p = {p:.2g}",
        verdict(p < 0.05, p > 0.95),
        "Welch t-test, one-sided",
    )


def as_few_bits(size: dict[str, Any], bas: xr.Dataset) -> Claim:
    """With stochastic rounding and slow weights, always-on learning needs as many bits as ISD."""
    needed, verdicts = {}, []
    for name in ("ISD", "AoL"):
        word = RULES[name].word
        free = finals(bas, True, kind="none", name=word)[0]
        nll = finals(bas, True, kind="bits", name=word, rounding="stochastic")
        limit = DRASTIC * (UNTRAINED - float(np.mean(free)))
        fine = [gap(values, free)[0] < limit for values in nll]
        needed[name] = next((b for b, ok in zip(size["bits"], fine, strict=True) if ok), np.inf)
    verdicts.append(verdict(needed["AoL"] <= needed["ISD"], needed["AoL"] > needed["ISD"] + 2))
    measured = ", ".join(f"{name} {bits:g} bits" for name, bits in needed.items())
    return Claim(
        "With stochastic rounding and slow weights, AoL needs no more bits than ISD.",
        measured,
        all_of(*verdicts),
        f"fewest bits at which less than {DRASTIC:.0%} of the improvement is lost (Welch)",
    )


def endures(size: dict[str, Any], writes: dict[str, np.ndarray]) -> Claim:
    """Writes of a whole training beside what cells survive."""
    at = 1 + size["bits"].index(8.0) if 8.0 in size["bits"] else 1
    whole = {name: values[[0, at]] * 1e5 for name, values in writes.items()}
    measured = ", ".join(f"{name} {free:.2g} and {few:.2g}" for name, (free, few) in whole.items())
    few = whole["AoL"][1]
    return Claim(
        "Endurance does not rule out always-on learning on 8 bits with stochastic rounding: "
        f"{1e5:.0g} phases stay below the {ENDURANCE['RRAM']:.0g} writes that RRAM survives.",
        f"writes per synapse in {1e5:.0g} phases without levels and on 8 bits: {measured}",
        verdict(bool(few < ENDURANCE["RRAM"]), bool(few >= ENDURANCE["RRAM"])),
        "counted by the ledger; cells survive about "
        + ", ".join(f"{kind} {n:.0g}" for kind, n in ENDURANCE.items()),
    )
