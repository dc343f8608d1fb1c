"""Locality and variance: what is it worth to remember, and does the variance predict the loss?

Estimators that remember nothing, one tick, a running mean, a phase or a pair, for equal network
time, each at its own best eta, last iterate and slow weights. The methods and what they learn are
those of the study of the family.
"""

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from ..core import Optimiser, Run
from ..data import Held
from ..drawing import PALETTE
from ..estimators import Baseline, differential
from ..phases import Bernoulli, Fixed, Pairs, Pauses, Phases
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series
from ..sweep import Sweep, cells
from ..training import train
from . import family
from .claims import LEVEL, READ, SLIGHT, brief, mean_sd, verdict, within
from .family import LEARNED, SETTINGS, Scores, best_of, score, untrained

TITLE = "Locality and variance: what is it worth to remember?"
DATA = None
PLAIN = None  # many kinds of networks
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"
#: Rule: what it remembers, how much that is (in this order), and the rule of the family whose
#: stimuli it has.
RULES = {
    "isd": ("nothing\n(ISD)", 0, "isd"),
    "aol": ("nothing\n(AoL)", 0, "aol"),
    "tick": ("one tick\n(change)", 1, "isd"),
    "mean": ("a running\nmean", 2, "isd"),
    "phase": ("a phase\n(two-term)", 3, "two-term"),
    "pair": ("a pair\n(stimulus)", 4, "aol"),
}
LOCAL = ["isd", "aol"]
RATE = 0.05  # of the running mean
TINY = 1e-4  # eta at which variance is measured: parameters hardly move
PERMUTATIONS = 5000
ROW = 5  # methods in a panel
SIZES = {
    "quick": {
        "methods": ["rbm", "forward-forward", "equilibrium"],
        "share": 0.1,
        "seeds": 2,
        "rates": [0.1, 0.5],
        "window": 20,
    },
    "full": {
        "methods": [name for name in SETTINGS if name != "predictive"],  # it has one term only
        "share": 0.5,
        "seeds": 8,
        "rates": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
        "window": 100,
    },
}


def build(name: str, rule: str, eta: float) -> Run:
    """The run of a cell; `rule` is a key of RULES."""
    run, s = family.build(name, RULES[rule][2], eta), SETTINGS[name]
    match rule:
        case "tick":  # the stimulus changes in a pause, where nothing is learned
            process = Pauses(Phases(Bernoulli(0.5), Fixed(s.T)), s.T)
            held = Held(run.source, phases=2)
            return run._replace(process=process, estimator=differential, source=held)
        case "mean":
            return run._replace(estimator=Baseline(RATE))
        case "pair":
            process = Phases(Pairs(), Fixed(s.on))
            return run._replace(process=process, source=Held(run.source, phases=2))
    return run


def metrics(name: str, rule: str, **_: Any) -> dict[str, Any]:
    """What the family measures of a method."""
    return family.metrics(name, RULES[rule][2])


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """A sweep for each method: every rule at every learning rate, for the same ticks."""
    how: dict[str, Any] = {"records": 1, "average": 0.5, "keep_params": True}
    made = {}
    for name in size["methods"]:
        s = SETTINGS[name]
        rates = [s.eta * rate for rate in size["rates"]]
        ticks = int(size["share"] * s.phases) * s.on
        grid = cells(name=name, rule=list(RULES), eta=rates, ticks=ticks)
        made[name] = Sweep(f"locality-{name}", BUILD, METRICS, grid, size["seeds"], **how)
    return made


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """What is learned against what is remembered, and the loss against the variance."""
    names = size["methods"]
    start = {name: untrained(name) for name in names}
    scores = {
        averaged: {name: {r: score(data[name], r, averaged) for r in RULES} for name in names}
        for averaged in (False, True)
    }
    traces = {name: [variance(size, data[name], name, rule) for rule in RULES] for name in names}
    lost = {
        averaged: {name: shares_lost(name, scores, start[name], averaged) for name in names}
        for averaged in (False, True)
    }
    panels = []
    for some in (names[i : i + ROW] for i in range(0, len(names), ROW)):
        panels += [
            remembered("last iterate", some, lost[False]),
            remembered("slow weights", some, lost[True]),
            predicted("last iterate", some, traces, lost[False]),
            predicted("slow weights", some, traces, lost[True]),
        ]
    said = [*remarks(size, scores, traces), without_pairs(lost)]
    return Findings(panels, claims(scores, lost, traces, start), said)


def variance(size: dict[str, Any], dataset: xr.Dataset, name: str, rule: str) -> float:
    """Tr cov of what a tick adds, at the slow weights of the rule at its best rate."""
    ticks = size["window"] * SETTINGS[name].on
    return scatter(build(name, rule, TINY), family.trained(dataset, name, rule), ticks)


def scatter(run: Run, params: Any, ticks: int, lanes: int = 32, eta: float = TINY) -> float:
    """Tr cov of what a tick adds to the parameters, over eta^2, whatever the estimator remembers.

    Lanes with their own random numbers begin at `params` and take tiny steps of plain descent;
    where they end varies by eta^2 ticks Tr cov.
    """
    tiny = run._replace(optimiser=Optimiser(eta))
    ends = train(tiny, ticks=ticks, seeds=lanes, params=params, records=1).params.values()
    flat = np.concatenate([np.reshape(leaf, (lanes, -1)).astype(float) for leaf in ends], 1)
    return float(flat.var(0, ddof=1).sum()) / (eta**2 * ticks)


def shares_lost(name: str, scores: Scores, start: float, averaged: bool) -> np.ndarray:
    """(rules, seeds): 0 for the best of all rules, 1 for an untrained network."""
    best = best_of(name, scores)
    values = np.array([scores[averaged][name][rule].values for rule in RULES])
    return (values - best) / (start - best)


def claims(
    scores: Scores,
    lost: dict[bool, dict[str, np.ndarray]],
    traces: dict[str, list[float]],
    start: dict[str, float],
) -> list[Claim]:
    """Written before the first run; each could come out otherwise."""
    order = {name: [much for _, much, _ in RULES.values()] for name in traces}
    found = []
    for averaged, how in ((False, "last iterate"), (True, "slow weights")):
        means = {name: each.mean(1) for name, each in lost[averaged].items()}
        found += [
            ranks(f"{how}: rules with a larger variance lose more.", traces, means, "greater"),
            ranks(f"{how}: rules that remember more lose less.", order, means, "less"),
        ]
    return found + [averaging_is_enough(name, scores, start[name]) for name in traces]


def ranks(words: str, x: dict[str, Any], lost: dict[str, np.ndarray], side: Any) -> Claim:
    """Spearman's rho over the rules of a method, mean over methods; rules are permuted within each
    method for its distribution by chance.
    """
    pairs = [(stats.rankdata(x[name]), stats.rankdata(lost[name])) for name in x]
    scale = [len(a) * a.std() * b.std() for a, b in pairs]
    rng = np.random.default_rng(0)

    def rho(shuffle: Any) -> float:
        each = [((a - a.mean()) @ shuffle(b)) / s for (a, b), s in zip(pairs, scale, strict=True)]
        return float(np.mean(each))

    found, chance = rho(np.asarray), [rho(rng.permutation) for _ in range(PERMUTATIONS)]
    above = np.mean(np.array(chance) >= found - 1e-9)
    below = np.mean(np.array(chance) <= found + 1e-9)
    p, opposite = (above, below) if side == "greater" else (below, above)
    return Claim(
        words,
        f"Spearman's rho over the rules, mean over {len(pairs)} methods: {found:.2f}, p = {p:.2g}",
        verdict(bool(p < LEVEL), bool(opposite < LEVEL)),
        f"permutation of the rules within each method, {PERMUTATIONS} times, one-sided",
    )


def without_pairs(lost: dict[bool, dict[str, np.ndarray]]) -> str:
    """The trend with memory over the other rules: that a pair remembers most, though it stores a
    stimulus and no term, is our choice.
    """
    kept = [i for i, rule in enumerate(RULES) if rule != "pair"]
    order, told = [[much for _, much, _ in RULES.values()][i] for i in kept], []
    for how, averaged in READ.items():
        means = {name: each[kept].mean(1) for name, each in lost[averaged].items()}
        told.append(f"{how}: {ranks('', dict.fromkeys(means, order), means, 'less').measured}")
    return f"Rules that remember more lose less, pairs left out: {'; '.join(told)}."


def averaging_is_enough(name: str, scores: Scores, start: float) -> Claim:
    """Is the better of the rules that remember nothing, with slow weights, as good as two-term
    without them?
    """
    mine = min((scores[True][name][rule].values for rule in LOCAL), key=np.mean)
    theirs = scores[False][name]["phase"].values
    return Claim(
        f"{name}: slow weights make up for the memory of a phase.",
        f"no memory, slow weights {mean_sd(mine)}; two-term, last iterate {mean_sd(theirs)}; "
        f"untrained {start:.4g}",
        within(mine, theirs, SLIGHT * (start - float(np.mean(theirs)))),
        f"90 % interval of the gap (Welch) below {SLIGHT:.0%} of what two-term learns; the better "
        "of ISD and AoL, rates chosen on the same errors",
    )


def remembered(title: str, names: list[str], lost: dict[str, np.ndarray]) -> Panel:
    """What is learned against what is remembered."""
    series = [
        Series(
            name,
            np.arange(len(RULES)) + 0.06 * (i - len(names) / 2),
            1 - lost[name].mean(1),
            lost[name].std(1, ddof=1),
            kind="points",
            colour=i % len(PALETTE),
            line=i // len(PALETTE),
        )
        for i, name in enumerate(names)
    ]
    words = [label for label, *_ in RULES.values()]
    return Panel(title, "remembers", LEARNED, series, names=words, ylim=(-0.3, 1.15))


def predicted(
    title: str, names: list[str], traces: dict[str, list[float]], lost: dict[str, np.ndarray]
) -> Panel:
    """Share lost against the variance, over the least of the method."""
    series = []
    for i, name in enumerate(names):
        x = np.array(traces[name]) / max(min(traces[name]), 1e-30)
        series.append(Series(name, x, each_in(lost[name]), kind="dots", colour=i % len(PALETTE)))
    label = "Tr cov of a tick (least of the method: 1)"
    return Panel(title, label, "share lost (mean of seeds)", series, logx=True)


def each_in(lost: np.ndarray) -> np.ndarray:
    """Means over seeds, at most 1.5 so that a rule that diverged can be drawn."""
    return np.minimum(lost.mean(1), 1.5)


def remarks(size: dict[str, Any], scores: Scores, traces: dict[str, list[float]]) -> list[str]:
    told = []
    for name, trace in traces.items():
        parts = [
            f"{rule} {brief(scores[False][name][rule].values)}, slow "
            f"{brief(scores[True][name][rule].values)}, variance {v:.3g}"
            for rule, v in zip(RULES, trace, strict=True)
        ]
        ticks = int(size["share"] * SETTINGS[name].phases) * SETTINGS[name].on
        head = f"{name} ({SETTINGS[name].metric}, {ticks} ticks), mean ± sd (median)"
        told.append(f"{head}: {'; '.join(parts)}.")
    return [
        f"{size['seeds']} seeds; the best of {len(size['rates'])} learning rates for each rule, "
        "apart for last iterate and slow weights. Variance: Tr cov of what a tick adds, over "
        f"eta^2, in 32 lanes of {size['window']} phases from the slow weights of each rule.",
        "It says nothing of bias: always-on learning also learns on the way to rest.",
        *told,
    ]
