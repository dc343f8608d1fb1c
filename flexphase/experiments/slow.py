"""Last iterate against slow weights: every rule, learning rate and length of training.

An RBM on Bars and Stripes. How does the best eta move, how does the ranking of the rules change,
and when does averaging hurt? `slow_mnist` asks the same of labelled MNIST and of samples.
"""

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series, medians
from ..sweep import Sweep, cells, learning_rates, matching
from .bas import BUILD, LABEL, METRICS, OPTIMUM, UNTRAINED, bounded
from .claims import READ, Seeds, brief, decide, is_worse, mean_sd, p_value
from .fig2_bas import RULES as PAPER
from .seeds import wants_larger

TITLE = "Slow weights: last iterate and average of every rule, on Bars and Stripes"
DATA = None
PLAIN = ("rbm", 16, 16)
LOW, HIGH = 0.001, 0.16  # two octaves beyond the paper's line search
AVERAGE = 0.5
RULES = {name: PAPER[name] for name in ("CD-100", "ISD", "AoL", "AoL random T")}
SIZES = {
    "quick": {"phases": [2_500, 10_000], "rates": 5, "seeds": 8},
    "full": {"phases": [6_250, 25_000, 100_000], "rates": 10, "seeds": 16},
}
Ends = dict[str, dict[str, np.ndarray]]  # rule -> how it is read -> (rates, seeds)


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Rules x rates x lengths of training: slow weights have a length of their own."""
    rates = learning_rates(LOW, HIGH, size["rates"])
    grid = [
        cell
        for rule, length, *_ in RULES.values()
        for phases in size["phases"]
        for cell in cells(name=rule, length=length, eta=rates, ticks=length * phases)
    ]
    how: dict[str, Any] = {"records": 4, "average": AVERAGE}
    return {"slow": Sweep("slow", BUILD, METRICS, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """NLL against eta at the full length, and what averaging gains against eta times phases."""
    rates = learning_rates(LOW, HIGH, size["rates"])
    ends = {
        (name, phases): {how: finals(data["slow"], name, phases, READ[how]) for how in READ}
        for name in RULES
        for phases in size["phases"]
    }
    full = {name: ends[name, size["phases"][-1]] for name in RULES}
    remarks = [
        f"{size['phases'][-1]} phases, {size['seeds']} seeds, no visible bias; the average is over "
        f"the second half. {OPTIMUM} nats is the optimum, {UNTRAINED} an untrained machine; what "
        "ends worse than twice that is drawn at twice that. Points are medians over seeds, bars "
        "the interquartile range over 1.349.",
        f"Best eta and NLL there, mean ± sd (median): {'; '.join(at_best(full, rates))}.",
    ]
    panels = [against_eta(full, rates, LABEL), gains(ends, rates)]
    return Findings(panels, claims(full, ends, size, rates), remarks)


def finals(dataset: xr.Dataset, name: str, phases: int, averaged: bool) -> np.ndarray:
    """(rates, seeds): NLL at the end, a machine that diverged at twice the untrained one."""
    rule, length, *_ = RULES[name]
    runs = matching(dataset, name=rule, length=length)
    trained = runs["ticks"].isel(seed=0, record=-1).values
    runs = runs.isel(cell=trained == length * phases).sortby("eta")
    return bounded(Record(runs).final("nll", averaged).transpose("cell", "seed").values)


def at_best(full: Ends, rates: list[float]) -> list[str]:
    """Rule by rule: the best rate and the NLL there, in words."""
    words = []
    for name, ends in full.items():
        best = {how: int(v.mean(1).argmin()) for how, v in ends.items()}
        told = (f"{how} {rates[i]:.3g}, {brief(ends[how][i])}" for how, i in best.items())
        words.append(f"{name}: {', '.join(told)}")
    return words


def against_eta(full: Ends, rates: list[float], label: str) -> Panel:
    """Median and spread over seeds of every rule, last iterate solid and slow weights dashed."""
    series = [
        medians(f"{name}, {how}", rates, list(values), colour=i, line=j)
        for i, (name, ends) in enumerate(full.items())
        for j, (how, values) in enumerate(ends.items())
    ]
    return Panel("At the end of training", "eta", label, series, logx=True)


def gains(ends: dict[tuple[str, int], dict[str, np.ndarray]], rates: list[float]) -> Panel:
    """What averaging gains, against how far the steps could have led."""
    series = []
    for (name, phases), each in ends.items():
        gain = each["last iterate"] - each["slow weights"]
        how = {"colour": list(RULES).index(name), "kind": "dots"}
        last = phases == max(p for _, p in ends)
        x = np.asarray(rates) * phases
        series.append(Series(name if last else "", x, np.median(gain, 1), **how))
    words = "eta x phases"
    label = "gain (nats, median of seeds)"
    return Panel("What averaging gains, for every length of training", words, label, series, True)


def claims(
    full: Ends,
    ends: dict[tuple[str, int], dict[str, np.ndarray]],
    size: dict[str, Any],
    rates: list[float],
) -> list[Claim]:
    """Written before the full run; each could have come out otherwise."""
    shortest = {name: ends[name, size["phases"][0]] for name in RULES}
    return [
        *(
            wants_larger(
                f"{name}: slow weights want a larger eta than the last iterate.",
                rates,
                each["slow weights"],
                each["last iterate"],
            )
            for name, each in full.items()
        ),
        *(better_at_best(name, each) for name, each in full.items()),
        ranking(full),
        *(hurts(name, each) for name, each in shortest.items()),
    ]


def better_at_best(name: str, ends: dict[str, np.ndarray]) -> Claim:
    """Each read at its own best eta: are slow weights lower?"""
    last, slow = (Seeds(how, values[values.mean(1).argmin()]) for how, values in ends.items())
    words = f"{name}: at its own best eta, the average ends below the last iterate."
    return is_worse(words, last, slow)


def ranking(full: Ends) -> Claim:
    """Does averaging close more than half of the gap between always-on learning and CD-100?

    Both gaps vary over seeds, so that half of the one is compared with the other seed by seed.
    """
    gap = {}
    for how in READ:
        aol, cd = (full[name][how] for name in ("AoL", "CD-100"))
        gap[how] = aol[aol.mean(1).argmin()] - cd[cd.mean(1).argmin()]
    left = gap["slow weights"] - 0.5 * gap["last iterate"]
    p = p_value(stats.ttest_1samp, left, 0.0, alternative="less")
    return Claim(
        "Averaging closes more than half of the gap between AoL and CD-100, each at its best eta.",
        f"gap {mean_sd(gap['slow weights'])} with slow weights, {mean_sd(gap['last iterate'])} "
        f"without, p = {p:.2g}",
        decide(p),
        "paired t-test over seeds, one-sided, of the gap with slow weights and half the other gap",
    )


def hurts(name: str, ends: dict[str, np.ndarray]) -> Claim:
    """In the shortest run, at the best eta of the last iterate: is the average worse?"""
    at = int(ends["last iterate"].mean(1).argmin())
    last, slow = (values[at] for values in ends.values())
    p = p_value(stats.ttest_rel, slow, last, alternative="greater")
    return Claim(
        f"{name}: in the shortest run, at the last iterate's best eta, averaging hurts.",
        f"{mean_sd(slow)} against {mean_sd(last)}, p = {p:.2g}",
        decide(p),
        "paired t-test over seeds, one-sided",
    )
