"""Every b at its own best eta, and what is reached after an equal number of images.

An RBM on Bars and Stripes, last iterate and slow weights, two starts of the negative phase.
"""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from ..record import Record
from ..report.findings import Claim, Findings
from ..report.panels import Panel, Series, medians
from ..sweep import Sweep, cells, learning_rates, matching
from .b import variance
from .bas import BUILD, METRICS, OPTIMUM, UNTRAINED, bounded, machine
from .bas import LABEL as NLL
from .claims import (
    READ,
    Seeds,
    brief,
    decide,
    is_worse,
    leans,
    matters_less,
    mean_sd,
    p_value,
    robust,
    tested,
)
from .fig3 import AXIS, LENGTH
from .seeds import best_rate, own_best, wants_larger, with_power

TITLE = "The probability b of a positive phase: every b at its own best eta"
DATA = None
PLAIN = ("rbm", 16, 16)
LINES = {"AoL": ("aol", "carry"), "AoL, persistent": ("aol", "persistent"), "ISD": ("isd", "carry")}
BS = [0.1, 0.3, 0.5, 0.7, 0.9]
SIZES = {
    "quick": {
        "phases": 10_000,
        "rates": [0.01, 0.16, 3],
        "seeds": 12,
        "machines": 3,
        "moments": 50,
    },
    "full": {
        "phases": 30_000,
        "rates": [0.0025, 0.04, 5],
        "seeds": 64,
        "machines": 5,
        "moments": 100,
    },
}
Values = dict[tuple[str, str], dict[float, np.ndarray]]  # (line, read) -> b -> (rates, seeds)


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Rules and starts x b x a line of etas, slow weights beside them."""
    shared = {"length": LENGTH, "b": BS, "ticks": LENGTH * size["phases"]}
    rates = learning_rates(*size["rates"])
    grid = [
        cell
        for name, start in LINES.values()
        for cell in cells(name=name, start=start, eta=rates, **shared)
    ]
    how: dict[str, Any] = {"records": 20, "average": 0.5, "lanes": 64, "keep_params": True}
    return {"rates": Sweep("b-rates", BUILD, METRICS, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """NLL and the best eta against b, the variance there, and NLL against images shown."""
    rates, dataset = learning_rates(*size["rates"]), data["rates"]
    values = {
        (label, how): {b: finals(dataset, label, b, averaged) for b in BS}
        for label in LINES
        for how, averaged in READ.items()
    }
    shown = at_presentations(size, dataset)
    panels = [
        own_panel(values),
        rate_panel(values, rates),
        presentations_panel(dataset, shown),
    ]
    trace = np.array([trace_at_best(size, dataset, b, values["AoL", "last iterate"]) for b in BS])
    found = claims(values, trace, shown, rates)
    return Findings(panels, found, remarks(size, values, trace, rates), columns=3)


def by_eta(dataset: xr.Dataset, b: float, label: str = "AoL") -> xr.Dataset:
    """The cells of a line at this b, from the lowest eta to the highest."""
    name, start = LINES[label]
    return matching(dataset, name=name, start=start, b=b).sortby("eta")


def finals(dataset: xr.Dataset, label: str, b: float, averaged: bool) -> np.ndarray:
    """(rates, seeds): NLL at the end; at most twice that of an untrained machine."""
    return bounded(Record(by_eta(dataset, b, label)).final("nll", averaged).values)


def trace_at_best(
    size: dict[str, Any], dataset: xr.Dataset, b: float, values: dict[float, np.ndarray]
) -> float:
    """Tr cov of what a phase of AoL adds at its best eta, median over the first machines."""
    runs = by_eta(dataset, b)
    best = runs.isel(cell=int(values[b].mean(1).argmin()))
    machines = (machine(best.isel(seed=seed)) for seed in range(size["machines"]))
    return float(np.median([variance(size, "aol", b, params) for params in machines]))


def at_presentations(size: dict[str, Any], dataset: xr.Dataset) -> dict[float, np.ndarray]:
    """b: (rates, seeds), the NLL when as many images have been shown as the lowest b ever shows."""
    images = min(BS) * size["phases"]
    found = {}
    for b in BS:
        runs = by_eta(dataset, b)
        nll = bounded(runs["nll"].values)
        seen = b * runs["phases"].values
        found[b] = np.array(
            [
                [np.interp(images, x, y) for x, y in zip(*lanes, strict=True)]
                for lanes in zip(seen, nll, strict=True)
            ]
        )
    return found


def claims(
    values: Values, trace: np.ndarray, shown: dict[float, np.ndarray], rates: list[float]
) -> list[Claim]:
    """Written before the first run; each could come out otherwise."""
    low, high, half = BS[0], BS[-1], 0.5
    own = {key: [own_best(v) for v in by_b.values()] for key, by_b in values.items()}
    last, slow = (own["AoL", how] for how in READ)
    found = [
        wants_larger(
            f"AoL, {how}: b = {half} wants a larger eta than b = {low}.",
            rates,
            values["AoL", how][half],
            values["AoL", how][low],
        )
        for how in READ
    ]
    words = f"AoL, slow weights: no b from {low} to {high} loses 20 % of what the best learns."
    few, many = (Seeds(f"b = {b}", own_best(shown[b])) for b in (low, half))
    found += [
        rises(trace, last),
        matters_less("AoL: with slow weights b matters less.", "b", last, slow),
        robust(words, BS, slow, UNTRAINED, low, high),
        from_the_chain(last, own["AoL, persistent", "last iterate"]),
        is_worse(f"After as many images b = {low} is lower than b = {half}.", many, few),
    ]
    for (label, how), each in own.items():
        words = f"{label}, {how}: b below 0.5 does better than 1 - b."
        found += with_power(partial(lean, words), {"own": each})
    return found


def lean(words: str, errors: dict[str, list[np.ndarray]]) -> list[Claim]:
    """Is b below 0.5 better than its mirror image?"""
    return [leans(words, "below", BS, errors["own"])]


def rises(trace: np.ndarray, nll: list[np.ndarray]) -> Claim:
    """Over b, does the NLL of a seed rise with the variance?"""
    rho = [tested(stats.spearmanr, trace, of_seed).statistic for of_seed in np.array(nll).T]
    p = p_value(stats.ttest_1samp, rho, 0.0, alternative="greater")
    return Claim(
        "AoL: over b, NLL rises with the measured variance.",
        f"Spearman's rho over {len(trace)} b: {mean_sd(rho)}, p = {p:.2g}",
        decide(p),
        "t-test over seeds, one-sided, of the rank correlation in each seed; all seeds share the "
        "variances, so that p speaks of other seeds, not of other b or other variances",
    )


def from_the_chain(carry: list[np.ndarray], persistent: list[np.ndarray]) -> Claim:
    """Does b lean less to one side where the chain persists whatever b?"""
    gaps = [each[-1] - each[0] for each in (carry, persistent)]
    p = p_value(stats.ttest_rel, *gaps, alternative="greater")
    return Claim(
        f"AoL: low b is good for the chain: with persistent chains b = {BS[-1]} loses less "
        f"against b = {BS[0]}.",
        f"loses {mean_sd(gaps[0])} with carried chains, {mean_sd(gaps[1])} with persistent ones, "
        f"p = {p:.2g}",
        decide(p),
        "paired t-test over seeds, one-sided, last iterate",
    )


def own_panel(values: Values) -> Panel:
    series = [
        medians(
            label if how == "last iterate" else "",
            np.array(BS) + 0.01 * list(LINES).index(label),
            [own_best(v) for v in by_b.values()],
            colour=list(LINES).index(label),
            line=int(READ[how]),
        )
        for (label, how), by_b in values.items()
    ]
    return Panel("own best eta (dashed: slow weights)", AXIS, NLL, series)


def rate_panel(values: Values, rates: list[float]) -> Panel:
    series = [
        Series(
            label if how == "last iterate" else "",
            np.array(BS) + 0.01 * list(LINES).index(label),
            np.array([best_rate(v, rates) for v in by_b.values()]),
            kind="points",
            colour=list(LINES).index(label),
            line=int(READ[how]),
        )
        for (label, how), by_b in values.items()
    ]
    return Panel("the best eta (dashed: slow weights)", AXIS, "eta", series, logy=True)


def presentations_panel(dataset: xr.Dataset, shown: dict[float, np.ndarray]) -> Panel:
    """NLL against the images that were shown, at the eta that is best where the lowest b ends."""
    series = []
    for i, b in enumerate(BS):
        runs = by_eta(dataset, b)
        one = runs.isel(cell=int(shown[b].mean(1).argmin()))
        x = b * one["phases"].values.mean(0)
        series.append(Series(f"b = {b:g}", x, np.median(bounded(one["nll"].values), 0), colour=i))
    title = "AoL, eta best where the lowest b ends"
    return Panel(title, "images shown (positive phases)", NLL, series, logx=True)


def remarks(
    size: dict[str, Any], values: Values, trace: np.ndarray, rates: list[float]
) -> list[str]:
    told = [
        f"{label}, {how}: "
        + ", ".join(
            f"b {b:g} {brief(own_best(v))} at eta {best_rate(v, rates):.3g}"
            for b, v in by_b.items()
        )
        for (label, how), by_b in values.items()
    ]
    low, high, number = size["rates"]
    return [
        f"RBM 16 x 16, no visible bias, T = {LENGTH}, {size['phases']} phases, {size['seeds']} "
        f"seeds, {number} rates from {low} to {high}. {OPTIMUM} is the optimum. Points are "
        "medians over seeds, bars the interquartile range over 1.349.",
        "Half of the seeds choose the eta of the other half: no eta is chosen by the numbers that "
        "are shown. Claims are about the last iterate where they do not say slow weights.",
        f"Final NLL, mean ± sd (median): {'; '.join(told)}.",
        f"Tr cov of g / P(sign) of AoL at its best eta, median of {size['machines']} seeds: "
        + ", ".join(f"b {b:g} {v:.3g}" for b, v in zip(BS, trace, strict=True))
        + ".",
    ]
