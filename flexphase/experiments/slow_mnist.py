"""Last iterate against slow weights on labelled MNIST: test error, and what samples show.

The machine of the appendix under every rule of `slow`, for the same network time.
"""

from typing import Any

import numpy as np
import xarray as xr

from ..data.mnist import fetch_mnist
from ..record import Record
from ..report.findings import Claim, Findings
from ..sweep import Sweep, cells, learning_rates, matching
from .appendix import AVERAGE, LENGTH, UNTRAINED, pictures_panel, samples
from .claims import READ, Seeds, brief, is_worse, matters_less
from .judge import accuracy, shows_label
from .mnist import ERROR, EXACT_ERROR, HIDDEN, MACHINE, VISIBLE
from .seeds import wants_larger
from .slow import Ends, against_eta, at_best, better_at_best

TITLE = "Slow weights: labelled MNIST, errors and samples of every rule"
DATA = fetch_mnist
PLAIN = ("rbm", VISIBLE, HIDDEN)
LOW, HIGH = 0.00125, 0.02
RULES = {f"CD-{LENGTH}": "cd", "ISD": "isd", "AoL": "aol", "AoL random T": "aol-random"}
SIZES = {
    "quick": {"phases": 500, "rates": 2, "seeds": 2, "shown": 500, "each": 5},
    "full": {"phases": 20_000, "rates": 5, "seeds": 4, "shown": 1000, "each": 20},
}


def sweeps(size: dict[str, Any]) -> dict[str, Sweep]:
    """Rules x rates, phases of the same mean length."""
    rates = learning_rates(LOW, HIGH, size["rates"])
    shared = {"length": LENGTH, "shown": size["shown"], "ticks": LENGTH * size["phases"]}
    grid = cells(name=list(RULES.values()), eta=rates, **shared)
    how: dict[str, Any] = {"records": 4, "average": AVERAGE, "lanes": 4, "cost": 100}
    how |= {"keep_params": True}
    return {"slow": Sweep("slow-mnist", MACHINE[0], EXACT_ERROR, grid, size["seeds"], **how)}


def show(size: dict[str, Any], data: dict[str, xr.Dataset]) -> Findings:
    """Error against eta, how many samples show their label, and some of the samples."""
    rates = learning_rates(LOW, HIGH, size["rates"])
    runs = {name: matching(data["slow"], name=rule).sortby("eta") for name, rule in RULES.items()}
    ends = {name: {how: errors(run, READ[how]) for how in READ} for name, run in runs.items()}
    shown = {
        name: {how: labels_shown(run, READ[how], size["each"]) for how in READ}
        for name, run in runs.items()
    }
    at_least = {name: {how: at_best_of(ends, shown, name, how) for how in READ} for name in RULES}
    remarks = [
        f"RBM {VISIBLE} x {HIDDEN}, no visible bias, phases of mean length {LENGTH}, b = 0.5, "
        f"{size['phases']} phases (CD: half as many updates), {size['seeds']} seeds; exact errors "
        "on all test images; the average is over the second half. Points are medians over seeds, "
        "bars the interquartile range over 1.349.",
        f"Best eta, test error in % there, mean ± sd (median): {'; '.join(at_best(ends, rates))}.",
        f"Samples: {size['each']} of each class and seed, made as in the appendix, read by a "
        f"classifier that reads {accuracy():.0%} of the real test images. At the eta of the least "
        f"error they show their label, %: {'; '.join(map(in_words, at_least, at_least.values()))}.",
    ]
    panels = [
        against_eta(ends, rates, "test error (%)"),
        against_eta(shown, rates, "share (%)")._replace(
            title="Samples that show their label", ylim=(0, 115)
        ),
    ]
    for i in sorted({len(rates) // 2, len(rates) - 1}):
        aol = runs["AoL"].isel(cell=i)
        panels += [
            pictures_panel(
                f"AoL, eta {rates[i]:.2g}, {how}", samples(aol, averaged, each=size["each"])
            )
            for how, averaged in READ.items()
        ]
    return Findings(panels, claims(ends, at_least, rates), remarks)


def errors(runs: xr.Dataset, averaged: bool) -> np.ndarray:
    """(rates, seeds): test error in per cent; a machine that diverged counts as untrained."""
    return 100 * np.nan_to_num(Record(runs).final(ERROR, averaged).values, nan=UNTRAINED)


def labels_shown(runs: xr.Dataset, averaged: bool, each: int) -> np.ndarray:
    """(rates, seeds): share of the samples, in per cent, that show the label that was clamped."""
    shares = np.empty((runs.sizes["cell"], runs.sizes["seed"]))
    for cell, seed in np.ndindex(shares.shape):
        shares[cell, seed] = shows_label(samples(runs.isel(cell=cell), averaged, seed, each))
    return 100 * shares


def at_best_of(ends: Ends, values: Ends, name: str, how: str) -> np.ndarray:
    """The seeds at the rate where this rule, read this way, errs least."""
    return values[name][how][ends[name][how].mean(1).argmin()]


def in_words(name: str, shown: dict[str, np.ndarray]) -> str:
    return f"{name} {', '.join(f'{how} {brief(values)}' for how, values in shown.items())}"


def claims(ends: Ends, shown: dict[str, Any], rates: list[float]) -> list[Claim]:
    """Written before the first run; each could come out otherwise."""
    found = []
    for name, each in ends.items():
        larger = f"{name}: slow weights want a larger eta than the last iterate."
        found += [
            wants_larger(larger, rates, each["slow weights"], each["last iterate"]),
            better_at_best(name, each),
            more_labels(name, shown[name]),
        ]
    best = {how: [at_best_of(ends, ends, name, how) for name in ends] for how in READ}
    words = "With slow weights the rules differ less, each at its own best eta."
    return [*found, matters_less(words, "rules", best["last iterate"], best["slow weights"])]


def more_labels(name: str, shown: dict[str, np.ndarray]) -> Claim:
    """Do more samples of the slow weights show their label?"""
    last, slow = (Seeds(how, values) for how, values in shown.items())
    words = f"{name}: more samples of the slow weights show their label (%)."
    return is_worse(words, slow, last)
