"""Every method under every rule: what does each relaxation of the phases cost where?

Each method learns what `flexphase train METHOD` learns, smaller, by the two-term rule, ISD, AoL,
AoL with random T, and AoL on pairs: both signs in random order on one stimulus. The learning rate
is searched for each rule, separately for the last iterate and for slow weights. Measured moments of
the two terms say whether variance explains a failure.
"""

import argparse
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from ..catalogue import METHODS, Task, datasets
from ..classification import Wrong
from ..core import Optimiser, Run
from ..export import from_numpy
from ..metrics import AtEnd, measure
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series
from ..sweep import Sweep, cells, matching
from ..theory.moments import moments
from ..theory.variance import Moments, best_b, trace_isd, trace_two_term
from .claims import DRASTIC, READ, brief, mean_sd, within

TITLE = "The whole family: every method under every rule"
DATA = None
PLAIN = None  # many kinds of networks
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"


class Setting(NamedTuple):
    """How a method is trained here."""

    method: str  # a key of METHODS
    metric: str  # what is shown, lower is better
    eta: float  # the unit of the learning rates
    T: int  # ticks of a phase for the two-term rule and ISD
    on: int  # ticks of a phase for always-on learning
    phases: int  # at full size
    words: str = ""  # options of the method
    data: str = ""


#: What is compared. A network that answers in one tick has T = 1; always-on learning needs more.
SETTINGS = {
    "rbm": Setting("rbm", "NLL", 0.02, 20, 20, 20_000, "--no-visible-bias"),
    "boltzmann": Setting("boltzmann", "NLL", 0.02, 20, 20, 20_000, "--hidden 6"),
    "harmonium": Setting("harmonium", "error", 0.01, 5, 5, 2_000, "--hidden 32"),
    "energy": Setting("energy", "NLL a row", 0.003, 10, 10, 1_000, "--hidden 32 32"),
    "nce": Setting("nce", "NLL", 0.01, 1, 4, 40_000),
    "helmholtz": Setting("helmholtz", "NLL", 0.2, 1, 4, 40_000),
    "hopfield": Setting("hopfield", "not stored", 0.05, 3, 3, 4_000),
    "forward-forward": Setting("forward-forward", "error", 0.01, 1, 4, 10_000, "--hidden 64 64"),
    "scff": Setting("scff", "probe error", 0.003, 1, 4, 20_000),
    "clapp": Setting("clapp", "probe error", 0.001, 1, 4, 20_000),
    "equilibrium": Setting("equilibrium-propagation", "error", 0.1, 20, 20, 10_000, "--centred"),
    "hebbian": Setting("contrastive-hebbian", "error", 0.1, 20, 20, 10_000),
    "twin-circuits": Setting("coupled", "error", 0.01, 4, 4, 10_000),
    "one-circuit": Setting("coupled", "error", 0.01, 4, 4, 10_000, "--apart"),
    "deep-resistor": Setting("deep-resistor", "error", 0.01, 4, 4, 6_000, "--hidden 32"),
    "predictive": Setting("predictive-coding", "error", 0.1, 5, 5, 10_000),
}
RULES = {
    "two-term": "two-term",
    "isd": "ISD",
    "aol": "AoL",
    "aol-random": "AoL random T",
    "pairs": "pairs",
}
#: Predictive coding has no negative term.
REFUSED = {("predictive", "two-term"), ("predictive", "pairs")}
FEW = [
    "rbm",
    "helmholtz",
    "forward-forward",
    "equilibrium",
    "hebbian",
    "twin-circuits",
    "predictive",
]
SIZES = {
    "quick": {"methods": FEW, "share": 0.2, "seeds": 2, "rates": [0.1, 0.5], "moments": 20},
    "full": {
        "methods": list(SETTINGS),
        "share": 1.0,
        "seeds": 4,
        "rates": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0],
        "moments": 100,
    },
}
LANES = 16  # chains in which moments are measured
ROW = 6  # methods side by side
LEARNED = "share learned (best: 1)"


def words(name: str, rule: str) -> dict[str, Any]:
    """The options that say which phases there are, as `flexphase train` takes them."""
    s, on = SETTINGS[name], rule not in ("two-term", "isd")
    T = s.on if on else s.T
    if rule == "pairs":
        return {"rule": "aol", "length": T, "select": "pairs", "hold": 2 * T}
    return {"rule": rule, "length": T}


@cache
def task(name: str, rule: str) -> Task:
    """What the command line would train; one object for all learning rates."""
    s, p = SETTINGS[name], argparse.ArgumentParser()
    entry = METHODS[s.method]
    entry.options(p)
    args = p.parse_args(s.words.split())
    shared = {"b": 0.5, "lr": s.eta, "batch": entry.batch, "optimiser": entry.optimiser, "seed": 0}
    shared |= {"device": None}
    data = s.data or entry.data
    vars(args).update(shared, data=data, side=None, **words(name, rule))
    return entry.build(args, datasets.load(data))


def build(name: str, rule: str, eta: float) -> Run:
    """The run of a cell."""
    run = task(name, rule).run
    return run._replace(optimiser=Optimiser(eta, run.optimiser.make))


def metrics(name: str, rule: str, **_: Any) -> dict[str, Any]:
    """The first metric of the command line, on all of its data, lower is better."""
    metric = next(iter(task(name, rule).metrics.values()))
    exact = metric.end if isinstance(metric, AtEnd) else metric
    return {"error": Wrong(exact) if METHODS[SETTINGS[name].method].higher_is_better else exact}


def rules_of(name: str) -> list[str]:
    """The rules that a method can learn by."""
    return [rule for rule in RULES if (name, rule) not in REFUSED]


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """A sweep for each method: every rule at every learning rate, with slow weights."""
    how: dict[str, Any] = {"records": 1, "average": 0.5, "keep_params": True}
    made = {}
    for name in size["methods"]:
        s, grid = SETTINGS[name], []
        for rule in rules_of(name):
            ticks = int(size["share"] * s.phases) * words(name, rule)["length"]
            rates = [s.eta * rate for rate in size["rates"]]
            grid += cells(name=name, rule=rule, eta=rates, ticks=ticks)
        made[name] = Sweep(f"family-{name}", BUILD, METRICS, grid, size["seeds"], **how)
    return made


class Score(NamedTuple):
    """The seeds of a rule at its best learning rate."""

    values: np.ndarray
    eta: float


def score(dataset: xr.Dataset, rule: str, averaged: bool) -> Score:
    """The learning rate with the least mean error; a lane that diverged rules its rate out."""
    runs = matching(dataset, rule=rule)
    final = Record(runs).final("error", averaged).values.astype(float)
    means = np.where(np.isfinite(final).all(1), final.mean(1), np.inf)
    best = int(np.argmin(means))
    return Score(final[best], float(runs["eta"].values[best]))


def untrained(name: str) -> float:
    """The error at the first parameters, mean of 4 seeds."""
    rule = rules_of(name)[0]
    method, metric = task(name, rule).run.method, metrics(name, rule)["error"]
    params = jax.vmap(lambda key: method.init(key)[0])(jax.random.split(jax.random.key(0), 4))
    return float(np.mean(measure(metric, params)))


def trained(dataset: xr.Dataset, name: str, rule: str = "two-term") -> Any:
    """The slow weights of a rule at its best rate, first seed."""
    best = score(dataset, rule, averaged=True)
    one = matching(dataset, rule=rule, eta=best.eta).isel(cell=0, seed=0)
    return from_numpy(task(name, "isd").run.method, Record(one).averaged_params)


def moments_of(size: dict[str, Any], dataset: xr.Dataset, name: str) -> Moments | None:
    """Moments of the terms at those parameters; None where there is no negative term."""
    if (name, "two-term") in REFUSED:
        return None
    run = build(name, "two-term", SETTINGS[name].eta)
    return moments(run, trained(dataset, name), phases=size["moments"], lanes=LANES)


def excess(m: Moments) -> float:
    """Tr cov of ISD at b = 1/2 over that of the two-term rule."""
    return float(trace_isd(m, 0.5) / trace_two_term(m))


def alike(m: Moments) -> float:
    """E[g+ . g-] / sqrt(A C): 1 where the terms of a pair are the same, 0 where one is missing."""
    return float(m.cross / np.sqrt(m.A * m.C)) if m.A * m.C else 0.0


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """What is learned by rule, last iterate and slow weights, and the variance beside it."""
    names = size["methods"]
    start = {name: untrained(name) for name in names}
    scores = {
        averaged: {
            name: {rule: score(data[name], rule, averaged) for rule in rules_of(name)}
            for name in names
        }
        for averaged in (False, True)
    }
    known = {name: moments_of(size, data[name], name) for name in names}
    rows = [names[i : i + ROW] for i in range(0, len(names), ROW)]
    panels = []
    for some in rows:
        panels += [learned_panel(how, some, start, scores) for how in READ]
    panels += [
        variance_panel(some, known)
        for some in rows
        if any(known[name] is not None for name in some)
    ]
    claims = [
        works(name, rule, scores, start[name], known[name])
        for name in names
        for rule in rules_of(name)[1:]
    ]
    return Findings(panels, claims, remarks(size, scores, start, known))


Scores = dict[bool, dict[str, dict[str, Score]]]


def best_of(name: str, scores: Scores) -> float:
    """The least mean error of all rules, last iterate or slow."""
    means = [np.mean(s.values) for by in scores.values() for s in by[name].values()]
    return float(np.min(means))


def learned_panel(how: str, names: list[str], start: dict[str, float], scores: Scores) -> Panel:
    own, series = scores[READ[how]], []
    for i, (rule, label) in enumerate(RULES.items()):
        at = [j for j, name in enumerate(names) if rule in own[name]]
        if not at:
            continue
        shares = []
        for j in at:
            name = names[j]
            whole = start[name] - best_of(name, scores)
            shares.append((start[name] - own[name][rule].values) / whole)
        middle = np.array([np.median(share) for share in shares])
        spread = np.array([np.std(share, ddof=1) for share in shares])
        x = np.array(at, float) + 0.13 * (i - 2)
        series.append(Series(label, x, middle, spread, kind="dots", colour=i))
    ticks = [name.replace("-", "-\n") for name in names]
    return Panel(how, "method", LEARNED, series, names=ticks, ylim=(-0.3, 1.15))


def variance_panel(names: list[str], known: dict[str, Moments | None]) -> Panel:
    pairs = [(j, m) for j, name in enumerate(names) if (m := known[name]) is not None]
    x = np.array([j for j, _ in pairs], float)
    y = np.array([excess(m) for _, m in pairs])
    ticks = [name.replace("-", "-\n") for name in names]
    series = [Series("ISD (b = 1/2) / two-term", x, y, kind="dots", colour=1)]
    return Panel("variance of an update", "method", "ratio", series, names=ticks, logy=True)


def works(name: str, rule: str, scores: Scores, start: float, m: Moments | None) -> Claim:
    """With slow weights, does the rule learn at least 80 % of what the first rule learns?"""
    reference = rules_of(name)[0]
    ours, theirs = (scores[True][name][r].values for r in (rule, reference))
    learned = start - float(np.mean(theirs))
    text = f"{name}: {RULES[rule]} learns at least 80 % of what {RULES[reference]} learns."
    test = f"slow weights; 90 % interval of the gap (Welch) below {DRASTIC:.0%} of the improvement"
    if learned < 0.05 * abs(start):
        measured = f"{RULES[reference]} has hardly learned: {mean_sd(theirs)} from {start:.4g}"
        return Claim(text, measured, "unclear", test)
    lost = (float(np.mean(ours)) - float(np.mean(theirs))) / learned
    found = within(ours, theirs, DRASTIC * learned)
    measured = f"{mean_sd(ours)} against {mean_sd(theirs)}, from {start:.4g}: {lost:.0%} is lost"
    if found == "fail":
        measured += f"; {why(name, rule, scores, start, m)}"
    return Claim(text, measured, found, test)


def why(name: str, rule: str, scores: Scores, start: float, m: Moments | None) -> str:
    """The likely reason: variance where ISD, which only adds variance, fails too."""
    if m is None:
        return "there is no variance to blame: one term only"
    slow = scores[True][name]
    reference = float(np.mean(slow[rules_of(name)[0]].values))
    isd_lost = (float(np.mean(slow["isd"].values)) - reference) / (start - reference)
    size = f"the variance of a single term is {excess(m):.3g} times that of the pair"
    if rule in ("isd", "aol", "aol-random") and isd_lost > DRASTIC:
        return f"variance: {size}"
    return f"not variance alone (ISD loses {isd_lost:.0%}; {size}): learning on the way to rest"


def remarks(
    size: dict[str, Any], scores: Scores, start: dict[str, float], known: dict[str, Moments | None]
) -> list[str]:
    said = [
        f"{size['seeds']} seeds; learning rate: the best of {len(size['rates'])} for each rule, "
        "apart for the last iterate and the slow weights. Pairs: always on, both signs in random "
        "order on one stimulus. Points are medians over seeds, bars one standard deviation; "
        "numbers are mean ± sd (median).",
        "T is the length of a phase for two-term and ISD / for always-on learning; every rule has "
        "the same number of phases. r = E[g+ . g-] / sqrt(A C), at the slow weights of the "
        "two-term rule; ratio: variance of ISD (b = 1/2) over that of the two-term rule.",
    ]
    for name in size["methods"]:
        s, parts = SETTINGS[name], []
        for rule in rules_of(name):
            last, slow = (scores[averaged][name][rule] for averaged in (False, True))
            parts.append(f"{RULES[rule]} {brief(last.values)}, slow {brief(slow.values)}")
        phases = int(size["share"] * s.phases)
        text = f"{name} ({s.metric}; T {s.T} / {s.on}, {phases} phases; untrained "
        text += f"{start[name]:.4g}): {'; '.join(parts)}."
        if (m := known[name]) is not None:
            text += f" A {m.A:.3g}, C {m.C:.3g}, r {alike(m):.3f}, b* {float(best_b(m)):.3f}, "
            text += f"ratio {excess(m):.3g}."
        said.append(text)
    return said
