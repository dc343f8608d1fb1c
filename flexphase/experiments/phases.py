"""Which statistics of the phases matter: how long runs of a sign are, how they spread, imbalance?

An RBM, Forward-Forward and equilibrium propagation under many processes with as many positive as
negative phases and the same mean length, each at its own best eta; one regression for all of them.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from ..core import Run
from ..data import Held
from ..estimators import always_on
from ..phases import Bernoulli, Blocks, Fixed, LogNormal, Markov, Pairs, Phases, Recorded
from ..phases.statistics import drawn
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series
from ..sweep import Sweep, cells, matching
from ..theory.mixing import mixing
from . import bas, family, processes
from .claims import READ
from .seeds import own_best, resampled, share_claim

TITLE = "Which statistics of the phases matter?"
DATA = None
PLAIN = None  # three kinds of networks
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"


class Learner(NamedTuple):
    """How a method is trained here."""

    T: int  # mean length of phases
    etas: list[float]
    phases: int  # at full size
    settles: float | None  # ticks in which the network forgets; None: measured
    untrained: float | None = None  # None: measured


LEARNERS = {
    "rbm": Learner(100, [0.00125, 0.0025, 0.005, 0.01, 0.02], 50_000, None, bas.UNTRAINED),
    "forward-forward": Learner(1, [0.003, 0.01, 0.03, 0.1], 20_000, 1.0),
    "equilibrium": Learner(20, [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1], 10_000, 20.0),
}
HELD = 8  # phases that a stimulus of equilibrium propagation is held
SIZES = {
    "quick": {"share": 0.1, "seeds": 4},
    "full": {"share": 1.0, "seeds": 16},
}
#: Processes with phases of fixed length, and a number: phases of a sign in a row for blocks, the
#: probability to stay for Markov chains.
FIXED = [("alternating", 0.0), ("pairs-fixed", 0.0), ("bernoulli-fixed", 0.0)]
FIXED += [("blocks", n) for n in (4.0, 16.0, 64.0)] + [
    ("markov", s) for s in (0.25, 0.75, 0.9, 0.97)
]
RANDOM = [
    (name, 0.0) for name in ("matched", "pairs", "homeostatic", "bernoulli", "heavy", "recorded")
]
STATISTICS = ["run", "spread", "imbalance"]
WINDOW, DRAWN = 64, 8192  # phases


@cache
def recorded(T: int) -> Recorded:
    """A record like one of sleep and wake: wake bouts with a power law, sleep bouts exponential
    (as in mammals), here made by chance and with equal mean lengths.
    """
    rng = np.random.default_rng(0)
    wake, sleep = 1 + rng.pareto(1.8, 512), rng.exponential(1.0, 512)
    ticks = np.stack([wake / wake.mean(), sleep / sleep.mean()], 1).ravel()
    return Recorded(sign=np.tile([1.0, -1.0], 512), ticks=np.maximum(np.rint(T * ticks), 1))


def process(name: str, number: float, T: int) -> Any:
    """The process of that name, with phases of mean length T and b = 1/2."""
    match name:
        case "pairs-fixed":
            return Phases(Pairs(), Fixed(T))
        case "bernoulli-fixed":
            return Phases(Bernoulli(0.5), Fixed(T))
        case "blocks":
            return Phases(Blocks(number, number), Fixed(T))
        case "markov":
            return Phases(Markov(number, number), Fixed(T))
        case "heavy":
            return Phases(Bernoulli(0.5), LogNormal(T, 2.0))
        case "recorded":
            return recorded(T)
    return processes.process(name).with_length(T)


def processes_of(method: str) -> list[tuple[str, float]]:
    """The processes of a method: a phase of one tick has no random length."""
    return FIXED if LEARNERS[method].T == 1 else FIXED + RANDOM


def build(method: str, name: str, number: float, eta: float) -> Run:
    """The run of a cell: always on; a stimulus of equilibrium propagation is held."""
    phases = process(name, number, LEARNERS[method].T)
    if method == "rbm":
        run = bas.build("aol", LEARNERS[method].T, eta)
    else:
        run = family.build(method, "isd", eta)
    held = Held(run.source, phases=HELD) if method == "equilibrium" else run.source
    return run._replace(process=phases, estimator=always_on, source=held)


def metrics(method: str, **_: Any) -> dict[str, Any]:
    """NLL of the RBM, the test error of the others."""
    if method == "rbm":
        return {"error": bas.metrics()["nll"]}
    return family.metrics(method, "isd")


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """A sweep for each method: every process at every learning rate, slow weights beside them."""
    how: dict[str, Any] = {"records": 1, "average": 0.5, "keep_params": True}
    made = {}
    for method, learner in LEARNERS.items():
        ticks = int(size["share"] * learner.phases) * learner.T
        grid = [
            cell
            for name, number in processes_of(method)
            for cell in cells(
                method=method, name=name, number=number, eta=learner.etas, ticks=ticks
            )
        ]
        made[method] = Sweep(f"phases-{method}", BUILD, METRICS, grid, size["seeds"], **how)
    return made


def statistics(name: str, number: float, T: int) -> list[float]:
    """Mean ticks that a sign lasts, their sd over that mean, and how far the time of both signs is
    out of balance: the sd of (time positive - time negative) in windows of 64 phases, over their
    mean length.
    """
    sign, ticks = drawn(process(name, number, T), DRAWN)
    runs = np.add.reduceat(ticks, np.flatnonzero(np.diff(sign, prepend=0)))
    windows = (sign * ticks).reshape(-1, WINDOW).sum(1)
    return [runs.mean(), runs.std() / runs.mean(), windows.std() / (WINDOW * ticks.mean())]


class Points(NamedTuple):
    """What is regressed: a row for each method and process."""

    method: list[str]
    name: list[str]
    x: np.ndarray  # (rows, 3): log2 of run over mixing time, spread, imbalance
    values: dict[str, list[np.ndarray]]  # last iterate, slow weights -> (rates, seeds) of each row


def points(data: dict[str, xr.Dataset], settle: dict[str, float]) -> Points:
    """Shares lost: 0 for the best process of a method, 1 for an untrained network."""
    method, names, x = [], [], []
    values: dict[str, list[np.ndarray]] = {how: [] for how in READ}
    for m, learner in LEARNERS.items():
        start = learner.untrained or family.untrained(m)
        for how, averaged in READ.items():
            runs = [matching(data[m], name=name, number=n) for name, n in processes_of(m)]
            own = np.array([Record(run).final("error", averaged).values for run in runs])
            own = np.minimum(np.nan_to_num(own, nan=np.inf), 2 * start)
            best = own.mean(-1).min()
            values[how] += list((own - best) / (start - best))
        for name, number in processes_of(m):
            run, spread, imbalance = statistics(name, number, learner.T)
            method.append(m)
            names.append(f"{name} {number:g}" if number else name)
            x.append([np.log2(run / settle[m]), spread, imbalance])
    return Points(method, names, np.array(x), values)


def within_methods(p: Points) -> np.ndarray:
    """(rows, 3): the statistics less their means over the processes of a method."""
    method = np.array(p.method)
    return p.x - np.array([p.x[method == m].mean(0) for m in p.method])


def slopes(p: Points, lost: np.ndarray, without: str = "") -> np.ndarray:
    """Least squares with a level for each method: the change of the share lost with one standard
    deviation of each statistic within a method.

    The level of a method takes up what its processes share, its mixing time and mean length among
    it. The rows of the process `without` are left out.
    """
    x = within_methods(p)
    levels = [[float(m == method) for method in LEARNERS] for m in p.method]
    design = np.concatenate([x / x.std(0), np.array(levels)], 1)
    kept = np.array([name != without for name in p.name])
    return np.linalg.lstsq(design[kept], lost[kept], rcond=None)[0][: len(STATISTICS)]


def ranges(p: Points, lost: np.ndarray) -> np.ndarray:
    """(statistics, 2): the least and the largest slope where any one process is left out."""
    some = np.array([slopes(p, lost, name) for name in dict.fromkeys(p.name)])
    return np.stack([some.min(0), some.max(0)], 1)


def at_best(values: list[np.ndarray]) -> np.ndarray:
    """(rates, seeds) of each row -> (rows, seeds), each at its own best rate."""
    return np.array([own_best(row) for row in values])


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Share lost against each statistic, and the slopes of one regression for all."""
    settle = {m: learner.settles or forgets(data[m]) for m, learner in LEARNERS.items()}
    p = points(data, settle)
    lost = {how: at_best(values) for how, values in p.values.items()}
    again = {
        how: np.array([slopes(p, some.mean(1)) for (some,) in resampled(each)])
        for how, each in lost.items()
    }
    labels = ["log2 (mean run / mixing time)", "sd of runs / mean", "imbalance of time"]
    panels = [against(p, lost["last iterate"], i, label) for i, label in enumerate(labels)]
    spans = {how: ranges(p, each.mean(1)) for how, each in lost.items()}
    drawn_slopes = slopes_panel(p, lost, again)
    return Findings([*panels, drawn_slopes], claims(again, spans), told(size, p, lost))


def forgets(dataset: xr.Dataset) -> float:
    """Autocorrelation time of the negative term of an RBM that was trained at its best rate."""
    runs = matching(dataset, name="alternating")
    ends = runs["averaged.error"].isel(record=-1).mean("seed").values
    one = runs.isel(cell=int(np.nanargmin(ends)), seed=0)
    run = build("rbm", "alternating", 0.0, float(one["eta"]))
    params = bas.machine(one, averaged=True)
    return mixing(run, params, -1.0, ticks=512, lanes=16).autocorrelation


def claims(again: dict[str, np.ndarray], spans: dict[str, np.ndarray]) -> list[Claim]:
    """Written before the first run; each could come out otherwise."""
    found = []
    for how, some in again.items():
        run, spread, imbalance = some.T
        middle = ", ".join(
            f"{word} {with_error(v)} [{low:.2g}, {high:.2g}]"
            for word, v, (low, high) in zip(STATISTICS, some.T, spans[how], strict=True)
        )
        slope = f"slopes per sd, ± s.e. over seeds [range without any one process]: {middle};"
        found += [
            share_claim(f"{how}: imbalance of time hurts.", f"{slope} above 0", imbalance > 0),
            share_claim(f"{how}: longer runs hurt.", f"{slope} above 0", run > 0),
            share_claim(f"{how}: spread of runs hurts.", f"{slope} above 0", spread > 0),
            share_claim(
                f"{how}: of the three, imbalance matters most.",
                f"{slope} largest",
                np.abs(imbalance) > np.maximum(np.abs(run), np.abs(spread)),
            ),
        ]
    last, slow = (np.abs(some).sum(1) for some in again.values())
    sums = f"{with_error(slow)}, last iterate {with_error(last)}"
    measured = f"sum of the sizes of the slopes {sums}; less"
    return [
        *found,
        share_claim("With slow weights the phases matter less.", measured, slow < last),
    ]


def with_error(resamples: np.ndarray) -> str:
    """Mean and standard error over seeds."""
    return f"{np.mean(resamples):.2g} ± {np.std(resamples):.1g}"


def against(p: Points, lost: np.ndarray, i: int, label: str) -> Panel:
    """Share lost against one statistic, a colour for each method."""
    series = []
    for j, m in enumerate(LEARNERS):
        rows = [k for k, method in enumerate(p.method) if method == m]
        each = np.minimum(lost[rows], 1.5)
        style = {"kind": "dots", "colour": j}
        series.append(Series(m, p.x[rows, i], np.median(each, 1), each.std(1), **style))
    return Panel("last iterate, own best eta", label, "share lost (median)", series)


def slopes_panel(p: Points, lost: dict[str, np.ndarray], again: dict[str, np.ndarray]) -> Panel:
    series = [
        Series(
            how,
            np.arange(3) + 0.1 * (2 * i - 1),
            slopes(p, each.mean(1)),
            again[how].std(0),
            kind="dots",
            colour=i,
        )
        for i, (how, each) in enumerate(lost.items())
    ]
    title = "one regression (bars: s.e. over seeds)"
    return Panel(title, "statistic", "share lost per sd", series, names=STATISTICS)


def share(lost: np.ndarray) -> str:
    """Mean ± sd over seeds, in hundredths: 0 and 1 are marks that mean something."""
    return f"{lost.mean():.2f} ± {lost.std(ddof=1):.2f}"


def told(size: dict[str, Any], p: Points, lost: dict[str, np.ndarray]) -> list[str]:
    correlation = np.corrcoef(within_methods(p).T)[np.triu_indices(3, 1)]
    rows = []
    for m in LEARNERS:
        parts = [
            f"{n} {share(lost['last iterate'][k])}, slow {share(lost['slow weights'][k])}"
            for k, (method, n) in enumerate(zip(p.method, p.name, strict=True))
            if method == m
        ]
        rows.append(f"{m}, share lost, mean ± sd: {'; '.join(parts)}.")
    return [
        f"{size['seeds']} seeds, b = 1/2, always on, T = "
        f"{', '.join(f'{v.T} ({m})' for m, v in LEARNERS.items())}. Half of the seeds choose the "
        "eta of the other half. 0 is the best process of a method, 1 an untrained network.",
        "The mixing time is the autocorrelation time of the negative term for the RBM (measured), "
        "1 tick for Forward-Forward and 20 for equilibrium propagation (set). It is the unit of an "
        "axis: the slopes are within methods, where it is one number, and say nothing about it.",
        "The statistics are not independent: correlations within methods are "
        f"{correlation[0]:.2f} (run, spread), {correlation[1]:.2f} (run, imbalance), "
        f"{correlation[2]:.2f} (spread, imbalance).",
        *rows,
    ]
