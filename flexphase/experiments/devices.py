"""What the parts of the study of hardware share: rules, devices with one limit, panels, claims.

Every part trains one learner under every rule, on devices with one limit at a time.
"""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from .. import estimators
from ..core import Estimator, Optimiser, Process, Updater
from ..hardware.device import Device
from ..hardware.on_device import OnDevice
from ..hardware.precision import bits_needed
from ..phases import Bernoulli, Fixed, Pairs, Pauses, Phases
from ..record import Record
from ..report.findings import Claim
from ..report.panels import Panel, points
from ..rules import named
from ..sweep import cells, matching
from .claims import Seeds, brief, is_worse, verdict

RANGE = 4.0  # the largest weight, where bits are swept
AVERAGE = 0.5  # slow weights: from this fraction of training on
#: Word of a rule, and what a legend calls it; every learner is trained with these.
RULES = {
    "two-term": "two-term",
    "isd": "ISD",
    "aol": "AoL",
    "aol-random": "AoL random T",
    "aol-pairs": "AoL pairs",
}
#: Rules that some learners have beside them.
LABELS = RULES | {"change": "phase change"}
ROUNDINGS = ("nearest", "stochastic")
#: Limits beside bits: a field of `Device`, and the label of its axis.
LIMITS = {
    "range": "largest weight R",
    "noise": "write noise (sd per write)",
    "asymmetry": "asymmetry a: (1 + a) up, (1 - a) down",
}
FEW = 8.0  # bits of the claim about stochastic rounding
LEARNS = 0.05  # share of what a rule learns without limits, from which on it counts as learning


class Learner(NamedTuple):
    """What a part of the study trains, and how its results are shown."""

    metric: str
    label: str
    untrained: float  # what the metric is then
    ylim: tuple[float, float]
    length: int  # ticks of a phase
    etas: dict[str, float]  # of each of its rules
    scale: float = 1.0


def rule(name: str, length: int) -> tuple[Process, Estimator]:
    """Process and estimator, at b = 1/2; random phases are half as long again, as in the paper."""
    match name:
        case "aol-random":
            return named(name, 0.5, 1.5 * length)
        case "aol-pairs":
            return Phases(Pairs(), Fixed(length)), estimators.always_on
        case "change":  # settle freely, then a nudge of random sign
            nudged = Phases(Bernoulli(0.5), Fixed(length))
            return Pauses(nudged, length), estimators.phase_change
    return named(name, 0.5, length)


def mean_length(name: str, learner: Learner) -> float:
    """Mean ticks per phase of a rule."""
    return float(rule(name, learner.length)[0].mean_length)


def change(name: str, learner: Learner) -> float:
    """The change that a term of 1 asks for: eta, eta / b and eta / (b tau)."""
    eta, tau = learner.etas[name], mean_length(name, learner)
    once = {"two-term": eta, "isd": 2 * eta, "change": 2 * eta}
    return once.get(name, 2 * eta / tau)


def least(name: str, learner: Learner) -> int:
    """The fewest bits with which rounding to the nearest sees a change of one term."""
    return bits_needed(change(name, learner), RANGE)


def optimiser(kind: str, value: float, rounding: str, eta: float) -> Updater:
    """Plain descent on devices with one limit: `kind` is a field of `Device`, or none."""
    plain = Optimiser(eta)
    if kind == "none":
        return plain
    fields: dict[str, Any] = {kind: value}
    if kind == "bits":
        fields |= {"range": RANGE, "rounding": rounding}
    return OnDevice(plain, Device(**fields))


def grid(size: dict[str, Any], learner: Learner, **more: Any) -> list[dict[str, Any]]:
    """Every rule without limits, and with each limit alone, for the same number of phases."""
    every = []
    for name in learner.etas:
        ticks = round(size["phases"] * mean_length(name, learner))
        shared = {"name": name, "eta": learner.etas[name], "ticks": ticks} | more
        every += cells(kind="none", value=0.0, rounding="nearest", **shared)
        every += cells(kind="bits", value=size["bits"], rounding=list(ROUNDINGS), **shared)
        for kind in LIMITS:
            every += cells(kind=kind, value=size[kind], rounding="nearest", **shared)
    return every


def finals(data: xr.Dataset, learner: Learner, averaged: bool = False, **cell: Any) -> np.ndarray:
    """(values, seeds): the metric at the end, cells in the order of their value."""
    found = matching(data, **cell)
    order = np.argsort(found["value"].values)
    return learner.scale * Record(found.isel(cell=order)).final(learner.metric, averaged).values


def panels(size: dict[str, Any], data: xr.Dataset, learner: Learner) -> list[Panel]:
    """The metric against bits, for both kinds of rounding, and against every other limit."""
    return [
        *(panel(size, data, learner, "bits", f"{r} rounding", rounding=r) for r in ROUNDINGS),
        *(panel(size, data, learner, kind, kind) for kind in LIMITS),
    ]


def panel(
    size: dict[str, Any], data: xr.Dataset, learner: Learner, kind: str, title: str, **cell: Any
) -> Panel:
    """The metric against one limit: last weights solid, slow weights dashed."""
    series = [
        points(
            "" if averaged else LABELS[name],
            size[kind],
            list(finals(data, learner, averaged, kind=kind, name=name, **cell)),
            colour=i,
            line=int(averaged),
        )
        for i, name in enumerate(learner.etas)
        for averaged in (False, True)
    ]
    axis, logarithmic = LIMITS.get(kind, kind), kind in LIMITS
    return Panel(title, axis, learner.label, series, logx=logarithmic, ylim=learner.ylim)


def without_limits(data: xr.Dataset, learner: Learner) -> str:
    """The metric of every rule without a device, last and slow weights, in words."""
    found = []
    for name in learner.etas:
        last, slow = (finals(data, learner, a, kind="none", name=name)[0] for a in (False, True))
        found.append(f"{LABELS[name]} {brief(last)}, slow weights {brief(slow)}")
    return f"Without limits, mean ± sd (median): {'; '.join(found)}."


def saved_by_chance(size: dict[str, Any], data: xr.Dataset, learner: Learner, name: str) -> Claim:
    """Stochastic rounding lets a rule learn on few bits, where the nearest level stops it."""
    at = size["bits"].index(FEW)
    cells = (finals(data, learner, kind="bits", name=name, rounding=r)[at] for r in ROUNDINGS)
    seeds = map(Seeds, ROUNDINGS, cells)
    words = f"{LABELS[name]} on {FEW:g} bits learns better with stochastic rounding."
    return is_worse(words, *seeds)


def stops_where_predicted(
    size: dict[str, Any], data: xr.Dataset, learner: Learner, name: str
) -> Claim:
    """With rounding to the nearest a rule learns if and only if a change is half a step or more."""
    free = finals(data, learner, kind="none", name=name)[0]
    learned = learner.untrained - float(np.median(free))
    limit, decided = LEARNS * learned, learned > LEARNS * learner.untrained
    ends = finals(data, learner, kind="bits", name=name, rounding="nearest")
    moved = np.abs(learner.untrained - ends).max(1) > limit
    fewest = least(name, learner)
    predicted = np.array(size["bits"]) >= fewest
    found = [f"{b:g}" for b, m in zip(size["bits"], moved, strict=True) if m]
    return Claim(
        f"{LABELS[name]}: rounding to the nearest stops learning below {fewest} bits.",
        f"weights move at {', '.join(found) or 'none'} of "
        f"{', '.join(f'{b:g}' for b in size['bits'])} bits",
        verdict(
            decided and bool((moved == predicted).all()),
            decided and bool((moved != predicted).any()),
        ),
        f"the metric of some seed moves by more than {LEARNS:.0%} of what is learned without "
        f"limits; decided where that is more than {LEARNS:.0%} of the untrained value",
    )


def asymmetry_claim(
    size: dict[str, Any],
    data: xr.Dataset,
    learner: Learner,
    spares: bool,
    name: str = "two-term",
) -> Claim:
    """Does asymmetry spare a rule that learns from differences?

    Up and down in turn leave a drift of a times the sizes of the changes. Single terms have
    E|g+| + E|g-|, the difference of two has E|g+ - g-|. For units of 0 and 1 that are on together
    with probability p the drifts are 2 p and 2 p (1 - p), so that nothing much is gained; where the
    terms of two phases nearly cancel, nearly all is.
    """
    lost, at = {}, len(size["asymmetry"]) // 2
    for each in (name, "aol"):
        free = finals(data, learner, True, kind="none", name=each)[0]
        bent = finals(data, learner, True, kind="asymmetry", name=each)[at]
        lost[each] = float(np.mean(bent) - np.mean(free)) / abs(learner.untrained - np.mean(free))
    spared = lost[name] < 0.3 * lost["aol"]
    share = ", ".join(f"{LABELS[each]} {value:.0%}" for each, value in lost.items())
    decided = lost["aol"] > 0.05
    return Claim(
        f"An asymmetry of {size['asymmetry'][at]:g} costs {LABELS[name]} "
        + ("less" if spares else "no less")
        + " than 30 % of what it costs AoL (slow weights).",
        f"lost, as a share of the improvement: {share}",
        verdict(decided and spared == spares, decided and spared != spares),
        "means over seeds; decided where AoL loses more than 5 %",
    )
