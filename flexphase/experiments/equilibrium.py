"""Which temporally local rule brings equilibrium propagation near the two-term rule?

A network on MNIST, nudged by +beta and -beta. The two terms are (1 / 2 beta) times large numbers
that nearly cancel, and an update between the two phases of a stimulus moves what the second one
measures: a step of eta adds eta |x|^2 / (2 beta) s to the drive of the hidden units, while the
difference of the states that is to be learned is of order beta. So rules are compared that see the
same stimulus in both phases, that nudge more strongly, that learn a layer more slowly, and that
learn from the change of the term within a nudged phase, tick by tick or at its end. The last of
these is free of both troubles and remembers nothing across phases. A running mean of the terms,
which does remember across phases, stands beside them. All rules have the same ticks.

Why a rule works or not is measured at the slow weights of the two-term rule: the moments of the two
terms, how much the updates of each rule vary, and how far learning moves the states that it learns
from.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

from ..classification import Wrong
from ..core import Estimator, Optimiser, Process, Run, Source
from ..data import Held, Rows, mnist
from ..data.mnist import fetch_mnist
from ..data.transforms import every
from ..estimators import Baseline, always_on, differential, isd, phase_change, two_term
from ..export import from_numpy
from ..methods import EquilibriumPropagation
from ..methods.equilibrium_propagation import Accuracy
from ..metrics import AtEnd
from ..optimisers import LayerRates
from ..phases import Alternating, Bernoulli, Fixed, Pairs, Pauses, Phases
from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, points
from ..sweep import Sweep, cells, matching
from ..theory.moments import moments
from ..theory.variance import Moments, centred, trace_isd, trace_two_term
from .claims import Seeds, brief, decide, is_worse, tested, within
from .feedback import feedback
from .locality import scatter

TITLE = "Equilibrium propagation on MNIST: temporally local rules"
DATA = fetch_mnist
PLAIN = ("equilibrium-propagation", 784, 500, 10)
BUILD, METRICS = f"{__name__}:build", f"{__name__}:metrics"
T = 20
NEAR = 1.0  # percentage points
SIZES = {
    "quick": {
        "hidden": 100,
        "pairs": 10_000,
        "seeds": 2,
        "shown": 500,
        "moments": 20,
        "window": 20,
    },
    "full": {
        "hidden": 500,
        "pairs": 60_000,
        "seeds": 3,
        "shown": 1000,
        "moments": 40,
        "window": 200,
    },
}


class Rule(NamedTuple):
    """What is compared: a way of learning, and its settings."""

    words: str
    kind: str  # of `parts`
    etas: tuple[float, ...]
    beta: float = 0.5
    rates: tuple[float, float] = (1.0, 1.0)  # of the two layers, in units of eta
    norm: bool = False  # are images divided by their norm, and multiplied by the mean norm?
    T: int = T


SLOW_TOP = (1.0, 0.3)  # the hidden states are larger than the outputs
RULES = {
    "two-term": Rule("two-term", "two-term", (0.07, 0.15), rates=SLOW_TOP),
    "short": Rule("T = 10,\ntwo-term", "two-term", (0.07, 0.15), rates=SLOW_TOP, T=10),
    "independent": Rule("ISD,\nany\nstimuli", "independent", (0.0003, 0.001)),
    "baseline": Rule("ISD\nless its\nmean", "baseline", (0.0003, 0.001, 0.003)),
    "baseline-nudge": Rule("less its\nmean,\nbeta 2", "baseline", (0.003, 0.01), 2.0),
    "pairs": Rule("ISD,\npairs", "pairs", (0.0003, 0.001)),
    "pairs-on": Rule("always\non,\npairs", "pairs-on", (0.0003, 0.001)),
    "pairs-nudge": Rule("ISD,\npairs,\nbeta 2", "pairs", (0.003, 0.01), 2.0),
    "pairs-rates": Rule("ISD,\npairs,\nslow W_1", "pairs", (0.003, 0.01), 2.0, (0.1, 1.0)),
    "pairs-norm": Rule("pairs,\nequal\n|x|", "pairs", (0.003, 0.01), 2.0, norm=True),
    "pairs-long": Rule("pairs,\nbeta 2,\nT = 40", "pairs", (0.003, 0.01), 2.0, T=40),
    "held": Rule("four\nphases,\nbeta 2", "held", (0.003, 0.01), 2.0),
    "change": Rule("change,\nevery tick", "change", (0.003, 0.01)),
    "change-nudge": Rule("change,\nbeta 2", "change", (0.01, 0.03), 2.0),
    "change-rates": Rule("change,\nbeta 2,\nslow W_2", "change", (0.03, 0.06), 2.0, (1.0, 0.1)),
    "end": Rule("change,\nat the end", "end", (0.07, 0.15), 1.0, SLOW_TOP),
    "end-short": Rule("at the end,\nT = 10", "end", (0.07, 0.15), 1.0, SLOW_TOP, T=10),
}
REFERENCE = "two-term"  # at whose weights moments and feedback are measured
CLASSICAL = [REFERENCE, "short"]
BASELINE = [name for name in RULES if RULES[name].kind == "baseline"]
LOCAL = [name for name in RULES if name not in CLASSICAL + BASELINE]
WITHIN = [name for name in LOCAL if RULES[name].kind in ("change", "end")]
TWICE = [name for name in LOCAL if name != "independent"]  # see a stimulus more than once
#: Title of a panel, and what it shows beside the classical rules.
PANELS = {
    "Terms, a stimulus for each phase": ["independent", *BASELINE],
    "Terms, phases on one stimulus": [name for name in TWICE if name not in WITHIN],
    "Changes within a nudged phase": WITHIN,
}
RATE = 0.01  # of the running mean: about 100 phases
TINY = 1e-5  # eta at which variance is measured: far below that of feedback, far above rounding


@cache
def images(norm: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and targets, test images and labels."""
    train, test = mnist()
    size = np.linalg.norm(train.images, axis=1).mean() if norm else 1.0

    def scaled(part: np.ndarray) -> np.ndarray:
        own = np.linalg.norm(part, axis=1, keepdims=True) if norm else 1.0
        return (part * (size / own)).astype(np.float32)

    targets = np.eye(10, dtype=np.float32)[train.labels]
    return scaled(train.images), targets, scaled(test.images), test.labels


@cache
def rows(norm: bool) -> Rows:
    """One object for all cells, so that lanes share its data."""
    return Rows(images(norm)[:2])


def parts(kind: str, source: Rows, T: int) -> tuple[Process, Estimator, Source]:
    """Phases, estimator and stimuli; a stimulus has two phases of T ticks, held ones have four."""
    pair = Held(source, phases=2)
    match kind:
        case "two-term":
            return Phases(Alternating(), Fixed(T)), two_term, source
        case "independent":
            return Phases(Bernoulli(0.5), Fixed(T)), isd, Held(source, phases=1)
        case "baseline":
            return Phases(Bernoulli(0.5), Fixed(T)), Baseline(RATE), Held(source, phases=1)
        case "pairs" | "held":
            shown = pair if kind == "pairs" else Held(source, phases=4)
            return Phases(Pairs(), Fixed(T)), isd, shown
        case "pairs-on":
            return Phases(Pairs(), Fixed(T)), always_on, pair
        case "change" | "end":  # settle freely, then a nudge of random sign
            estimator = differential if kind == "change" else phase_change
            return Pauses(Phases(Bernoulli(0.5), Fixed(T)), T), estimator, pair
    raise ValueError(f"there is no kind {kind!r}.")


def build(rule: str, eta: float, hidden: int, **_: Any) -> Run:
    """The run of a cell; `rule` is a key of RULES."""
    how = RULES[rule]
    method = EquilibriumPropagation((784, hidden, 10), how.beta, centred=True)
    optimiser = Optimiser(eta, LayerRates(how.rates))
    process, estimator, source = parts(how.kind, rows(how.norm), how.T)
    return Run(method, process, estimator, source, optimiser)


def metrics(rule: str, hidden: int, shown: int, **_: Any) -> dict[str, Any]:
    """Test error on about `shown` images, at the end on all of them."""
    method = EquilibriumPropagation((784, hidden, 10))
    test = images(RULES[rule].norm)[2:]
    along, end = (Wrong(Accuracy(method, *part)) for part in (every(shown, *test), test))
    return {"error": AtEnd(along, end)}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Every rule at its learning rates, with slow weights; those of the two-term rule are kept."""
    shared = {"hidden": size["hidden"], "shown": size["shown"], "ticks": 2 * T * size["pairs"]}
    how: dict[str, Any] = {"records": 5, "average": 0.5, "lanes": 6, "cost": 100}

    def sweep(word: str, names: list[str], keep: bool) -> Sweep:
        each = (cells(rule=name, eta=list(RULES[name].etas), **shared) for name in names)
        grid = [cell for some in each for cell in some]
        return Sweep(word, BUILD, METRICS, grid, size["seeds"], keep_params=keep, **how)

    others = [name for name in RULES if name != REFERENCE]
    return {
        "rules": sweep("equilibrium", others, False),
        "kept": sweep("equilibrium-kept", [REFERENCE], True),
    }


def errors(data: dict[str, xr.Dataset], rule: str, averaged: bool) -> tuple[float, np.ndarray]:
    """The learning rate with the lowest mean test error, and the errors of its seeds in per cent.

    A seed that diverged counts as untrained, 90 %.
    """
    dataset, found = data["kept" if rule == REFERENCE else "rules"], {}
    for eta in RULES[rule].etas:
        run = matching(dataset, rule=rule, eta=eta).isel(cell=0)
        final = Record(run).final("error", averaged).values
        found[eta] = np.nan_to_num(100 * final, nan=90.0)
    best = min(found, key=lambda eta: found[eta].mean())
    return best, found[best]


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Test error of every rule at its best rate, last iterate and slow weights."""
    last, slow = (
        {rule: errors(data, rule, averaged) for rule in RULES} for averaged in (False, True)
    )
    panels = [panel(title, CLASSICAL + names, last, slow) for title, names in PANELS.items()]
    known = [trained(size, data["kept"], slow[REFERENCE][0], i) for i in range(size["seeds"])]
    moved = {rule: shares(size, rule, last[rule][0], known) for rule in TWICE}
    varied = {rule: variance(size, rule, known[0]) for rule in RULES}
    terms = moments(build(REFERENCE, 0.1, **size), known[0], phases=size["moments"], lanes=8)
    said = remarks(size, last, slow) + measured(terms, moved, varied)
    return Findings(panels, claims(last, slow) + reasons(last, moved, varied), said)


def trained(size: dict[str, Any], dataset: xr.Dataset, eta: float, seed: int) -> Any:
    """Slow weights of the two-term rule."""
    one = matching(dataset, rule=REFERENCE, eta=eta).isel(cell=0, seed=seed)
    return from_numpy(build(REFERENCE, eta, **size).method, Record(one).averaged_params)


def shares(size: dict[str, Any], rule: str, eta: float, known: list[Any]) -> np.ndarray:
    """How far the rule moves what it measures, as a share of what it is to learn, at parameters
    that the two-term rule has found, one number for each.
    """
    run = build(rule, eta, **size)
    return np.array([feedback(run, params, seed=i).share for i, params in enumerate(known)])


def variance(size: dict[str, Any], rule: str, params: Any) -> float:
    """Tr cov of what a tick adds, over eta^2, with the same rate in both layers."""
    return scatter(build(rule, TINY, **size), params, 2 * T * size["window"], eta=TINY)


Found = dict[str, tuple[float, np.ndarray]]


def panel(title: str, names: list[str], last: Found, slow: Found) -> Panel:
    """Every rule at the best of its learning rates."""
    x = np.arange(len(names))
    read = (("last iterate", last, -0.12), ("slow weights", slow, 0.12))
    series = [
        points(how, x + shift, [found[name][1] for name in names], kind="dots", colour=i)
        for i, (how, found, shift) in enumerate(read)
    ]
    labels = [RULES[name].words for name in names]
    return Panel(title, "rule", "test error (%)", series, names=labels)


def claims(last: Found, slow: Found) -> list[Claim]:
    """Which of these changes help, and whether they are enough."""

    def seeds(name: str, found: Found = last) -> Seeds:
        return Seeds(RULES[name].words.replace("\n", " "), found[name][1])

    best = min(LOCAL, key=lambda name: slow[name][1].mean())
    classical = min(CLASSICAL, key=lambda name: slow[name][1].mean())
    ours, theirs = seeds(best, slow), seeds(classical, slow)
    near = Claim(
        "The best temporally local rule is within one point of the best two-term rule, slow "
        "weights on both.",
        f"{ours}, {theirs}",
        within(ours.values, theirs.values, NEAR),
        f"90 % interval of the gap below {NEAR:g} point (Welch); rates chosen on the same errors",
    )
    return [
        near,
        is_worse(
            "Both phases have to see the same stimulus.", seeds("independent"), seeds("pairs")
        ),
        is_worse("Stronger nudges help pairs.", seeds("pairs"), seeds("pairs-nudge")),
        is_worse("Longer phases help pairs.", seeds("pairs-nudge"), seeds("pairs-long")),
        is_worse(
            "A stimulus held for four phases helps pairs.", seeds("pairs-nudge"), seeds("held")
        ),
        is_worse("Stronger nudges help changes.", seeds("change"), seeds("change-nudge")),
        is_worse(
            "Feedback is what hurts changes: learned at the end of the phase they do better.",
            seeds("change-rates"),
            seeds("end"),
        ),
        is_worse("Slow weights help pairs.", seeds("pairs-nudge"), seeds("pairs-nudge", slow)),
    ]


def remarks(size: dict[str, Any], last: Found, slow: Found) -> list[str]:
    square = float((images(False)[0] ** 2).sum(1).mean())

    def gain(rule: str) -> float:
        """Change of a hidden unit by one update of weight 2 = 1 / prob, over the state that made
        it, where rho' = 1/4.
        """
        how, eta = RULES[rule], last[rule][0]
        return 2 * eta * how.rates[0] * square / (2 * how.beta) / 4

    best = "; ".join(
        f"{rule} {brief(last[rule][1])} at eta {last[rule][0]:g}, slow weights "
        f"{brief(slow[rule][1])}"
        for rule in RULES
    )
    return [
        f"784-{size['hidden']}-10, centred nudges, T = {T}, {size['pairs']} stimuli of {2 * T} "
        f"ticks, {size['seeds']} seeds, test error in per cent, mean ± sd (median): {best}.",
        f"Mean |x|^2 is {square:.0f}. Feedback of one update on the hidden units, eta |x|^2 / "
        f"(4 beta): {', '.join(f'{rule} {gain(rule):.2g}' for rule in LOCAL)}. At the end of a "
        "phase it comes too late to matter.",
        "'At the end' keeps one term for each synapse during a phase, as the two-term rule does; "
        "it needs neither the other phase nor a common stimulus.",
    ]


def reasons(last: Found, moved: dict[str, np.ndarray], varied: dict[str, float]) -> list[Claim]:
    """What a running mean is worth, and whether feedback or variance orders the rules."""

    def seeds(name: str) -> Seeds:
        return Seeds(RULES[name].words.replace("\n", " "), last[name][1])

    shares = {rule: values.mean() for rule, values in moved.items()}
    return [
        is_worse("A running mean of the terms helps ISD.", seeds("independent"), seeds("baseline")),
        is_worse(
            "A common stimulus helps more than a running mean.", seeds("baseline"), seeds("pairs")
        ),
        ordered(
            "Of the rules that see a stimulus twice, those whose learning moves what they measure "
            "further end with a larger error.",
            shares,
            last,
        ),
        ordered(
            "Of the temporally local rules, those whose updates vary more end with a larger error.",
            {rule: varied[rule] for rule in LOCAL},
            last,
        ),
    ]


def ordered(words: str, reason: dict[str, float], last: Found) -> Claim:
    """Do rules with more of a reason end with a larger error?"""
    errors = [last[rule][1].mean() for rule in reason]
    found = tested(stats.spearmanr, list(reason.values()), errors, alternative="greater")
    rho, p = float(found.statistic), float(found.pvalue)
    return Claim(
        words,
        f"Spearman's rho over {len(reason)} rules {rho:.2f}, p = {p:.2g}",
        decide(p),
        "rank correlation, one-sided, with the mean error of the last iterate; the rules are not a "
        "sample of anything",
    )


def measured(m: Moments, moved: dict[str, np.ndarray], varied: dict[str, float]) -> list[str]:
    """Moments of the terms, variance of the updates and feedback, in words."""

    def with_error(name: str, f: Any) -> str:
        return f"{name} {float(f(m)):.3g} ± {float(m.error(f)):.1g}"

    said = [
        with_error("A", lambda m: m.A),
        with_error("C", lambda m: m.C),
        with_error("E[g+ . g-]", lambda m: m.cross),
        with_error("1 - r", lambda m: 1 - m.cross / np.sqrt(m.A * m.C)),
        with_error("Tr cov of two-term", trace_two_term),
        with_error("ISD over two-term", lambda m: trace_isd(m, 0.5) / trace_two_term(m)),
        with_error(
            "less its mean, over two-term",
            lambda m: trace_isd(centred(m), 0.5) / trace_two_term(m),
        ),
    ]
    shown = ", ".join(f"{rule} {brief(values)}" for rule, values in moved.items())
    spread = ", ".join(f"{rule} {v / varied[REFERENCE]:.3g}" for rule, v in varied.items())
    return [
        f"Moments of the terms at the slow weights of the two-term rule, seed 0, ± a standard "
        f"error: {', '.join(said)}. r = E[g+ . g-] / sqrt(A C).",
        "Tr cov of what a tick adds there, the same rate in both layers, over that of the two-term "
        f"rule ({varied[REFERENCE]:.3g}): {spread}.",
        "Measured feedback at the slow weights of the two-term rule: distance by which learning "
        "moves the hidden states at the end of the second phase, over the distance between the "
        f"phases; mean ± sd (median) over seeds: {shown}.",
    ]
